"""The three forms of a function: `out=` and the in-place form have the bits of the returned result.

The table has a call for each function with `out`; ops are called by their arity.
"""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type"
from __future__ import annotations

import importlib
import inspect
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.declarations import IN_PLACE_METHODS
from dovetail.functions.elementwise import op_functions
from dovetail.functions.methods import LAZY_METHODS

CALLS = """
append(m, row, axis=0) | block([[m, m]]) | choose(i, [a, b]) | column_stack([v, w])
convolve(v, w) | corrcoef(m) | correlate(v, w) | cov(m) | cross(v, w) | delete(v, 1) | diag(v)
diagflat(v) | diff(v) | digitize(v, w.sort()) | dstack([m, m]) | ediff1d(v) | hstack([m, m])
fmax(v, w) | fmin(v, w) | fmod(v, w) | fold(dt.unfold(image, 2), (4, 4), 2) | index_add(v, 0, i, w)
inner(v, w) | insert(v, 1, 9.0) | interp(v, w.sort(), w) | isclose(v, w) | isin(v, w) | kron(v, w)
lexsort([v, w]) | log_softmax(m) | logaddexp2(v, w) | logsumexp(m, 1) | matvec(q, v) | median(m)
nan_to_num(m) | nanargmax(m, 0) | nanargmin(m, 0) | nancumprod(v) | nancumsum(v) | nanmax(m, 0)
nanmean(m, 0) | nanmedian(m) | nanmin(m, 0) | nanpercentile(m, 30) | nanprod(m, 0)
nanquantile(m, 0.3) | nanstd(m, 0) | nansum(m, 0) | nanvar(m, 0) | outer(v, w) | pad(m, 1)
partition(v, 1) | argpartition(v, 1) | percentile(m, 30) | polyadd(v, w) | polyder(v)
polyfit(v, w, 1) | polyint(v) | polymul(v, w) | polysub(v, w) | polyval(v, w) | polygamma(1, v + 9)
ptp(m) | put(v, i, w) | put_along_axis(v, i, w, 0) | quantile(m, 0.3)
ravel_multi_index((i, i), (3, 3)) | repeat(m, 2, axis=0) | resize(m, (3, 4)) | roll(m, 1)
scatter(v, 0, i, w) | scatter_add(v, 0, i, w) | scatter_reduce(v, 0, i, w, "amax")
index_copy(v, 0, i, w) | index_fill(v, 0, i, 2.0) | index_reduce(v, 0, i, w, "prod")
masked_scatter(v, v > 0, w) | bucketize(v, w.sort()) | cummax(v, 0) | cummin(m, 1) | histc(v, 4)
kthvalue(v, 2) | mode(v) | renorm(m, 2, 0, 1.0)
searchsorted(w.sort(), v) | select([v > 0], [v], 1.0) | softmax(m)
sort(m) | argsort(m) | stack([m, m]) | take(m, i, axis=1) | take_along_axis(v, i, 0)
tensordot(m, q, axes=1) | tile(m, (2, 1)) | trace(q) | trapezoid(v) | tril(q) | triu(q)
unfold(image, 2) | unwrap(v) | vander(v) | vdot(v, w) | vecdot(v, w) | vecmat(v, q)
vstack([m, m]) | arange(2, 8, dtype=dt.float32) | eye(3) | linspace(0, 1, 5) | logspace(0, 1, 5)
zeros((2, 3)) | ones((2, 3)) | full((2, 3), 7.0) | hann(5) | hamming(5) | blackman(5) | bartlett(5)
kaiser(5, 2.0)
geomspace(1, 2, 5) | tri(3) | piecewise(v, [v > 0], [1.0, 2.0]) | topk(v, 2) | frexp(m) | modf(m)
divmod(v, w) | concat([m, m]) | clip(m, 0.0, 1.0) | where(m > 0, m, 1.0) | round(m, 1) | pow(m, 3)
cat([m, m]) | amax(m, 0) | amin(m) | lerp(m, w, 0.5) | addcmul(m, v, w) | addcdiv(m, v, w, value=2)
addmm(m, m, q) | addmv(v, q, w, beta=0.5) | baddbmm(m[None], m[None], q[None])
bitwise_count(i) | iscomplex(m) | isneginf(m) | isposinf(m) | isreal(m) | expit(m)
cumulative_logsumexp(v) | cumulative_prod(v) | cumulative_sum(v) | dot(v, w) | einsum("i,i->", v, w)
std(m) | var(m) | matmul(m, q) | all(m) | any(m) | argmax(m, 0) | argmin(m) | count_nonzero(m, 0)
max(m, 0) | mean(m, 1) | min(m) | prod(m) | sum(m, 1, keepdims=True)
linalg.block_diag(q, m) | linalg.cholesky(p) | linalg.cholesky_solve(v[:, None], p) | linalg.cond(p)
linalg.det(q) | linalg.eigvals(q) | linalg.eigvalsh(p) | linalg.expm(q) | linalg.inv(p)
linalg.householder(q, v) | linalg.lu_solve(dt.linalg.lu(p), v[:, None]) | linalg.matrix_norm(q)
linalg.matrix_power(q, 3) | linalg.matrix_rank(p) | linalg.multi_dot([m, q]) | linalg.pinv(m)
linalg.solve(p, v) | linalg.solve_triangular(p, q, upper=False) | linalg.svdvals(m) | linalg.eig(q)
linalg.eigh(p) | linalg.lu(q) | linalg.qr(q) | linalg.slogdet(q) | linalg.svd(m)
linalg.vector_norm(m) | linalg.cross(v, w) | linalg.kron(v, w) | linalg.outer(v, w)
linalg.tensordot(m, q, axes=1) | linalg.trace(q) | linalg.vecdot(v, w) | linalg.matmul(m, q)
fft.fft(v) | fft.fft2(m) | fft.fftfreq(5) | fft.fftn(m) | fft.fftshift(v) | fft.hfft(v)
fft.ifft(v) | fft.ifft2(m) | fft.ifftn(m) | fft.ifftshift(v) | fft.ihfft(v) | fft.irfft(v)
fft.irfft2(m) | fft.irfftn(m) | fft.rfft(v) | fft.rfft2(m) | fft.rfftfreq(5) | fft.rfftn(m)
random.bernoulli(0.5, (2, 3)) | random.beta(1.0, 2.0, (2, 3)) | random.binomial(5, 0.5, (2, 3))
random.choice(v, (2,)) | random.dirichlet([1.0, 2.0], (2,)) | random.exponential(2.0, (2, 3))
random.gamma(2.0, 1.0, (2, 3)) | random.integers(0, 9, (2, 3)) | random.laplace(0.0, 1.0, (2, 3))
random.multinomial(5, [0.5, 0.5]) | random.normal((2, 3), mean=1.0) | random.permutation(5)
random.categorical(v, shape=(4,)) | multinomial(p[0, :2], 2, generator=g)
random.poisson(3.0, (2, 3)) | random.rand(2, 3) | random.randint(0, 9, (2, 3)) | random.randn(2, 3)
random.truncated_normal(-1.0, 1.0, (2, 3)) | random.uniform((2, 3))
"""
TABLE = [call.strip() for line in CALLS.splitlines() for call in line.split(" | ") if call.strip()]


def operands() -> dict[str, Any]:
    """Return the operands of the calls, the same each time."""
    m = dt.asarray([[0.5, -1.5, 2.0], [0.25, 3.0, 1.0]])
    p = dt.asarray([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
    return {
        "dt": dt, "m": m, "p": p, "q": p + dt.arange(9.0).reshape(3, 3) / 8, "row": m[:1],
        "v": dt.asarray([1.0, 0.5, -2.0]), "w": dt.asarray([3.0, 0.25, 1.0]),
        "i": dt.asarray([0, 1, 1]), "a": dt.asarray([1.0, 2.0, 3.0]),
        "b": dt.asarray([4.0, 5.0, 6.0]), "image": dt.arange(16.0).reshape(1, 1, 4, 4),
        "g": dt.random.default_rng(7),
    }  # fmt: skip


def called(text: str, **more: Any) -> Any:
    """Return the result of a call, with a generator of its own if it draws."""
    with_options = ", ".join(
        [f"{n}={n}" for n in more] + (["generator=g"] if text.startswith("random.") else [])
    )
    ends = f", {with_options})" if with_options else ")"
    return eval(f"dt.{text[:-1]}{ends}", operands() | more)


def listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


def bits(x: dt.Tensor) -> tuple[Any, ...]:
    return x.shape, x.dtype, x.numpy().tobytes()


def empty(x: dt.Tensor) -> dt.Tensor:
    return dt.full(x.shape, 77 if x.dtype is not dt.bool else True, dtype=x.dtype)


def public() -> dict[str, Any]:
    return {
        f"{where}{n}": getattr(module, n)
        for where, module in (
            ("", dt), ("linalg.", dt.linalg), ("fft.", dt.fft), ("random.", dt.random)
        )
        for n in dir(module)
        if inspect.isroutine(getattr(module, n))
    }  # fmt: skip


def takes_out(function: Any) -> bool:
    try:
        return "out" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def test_table_has_every_function_with_out() -> None:
    rows = {*op_functions.FUNCTIONS}
    taking = {n for n, f in public().items() if takes_out(f)} - rows - {"empty"}  # see below
    assert taking == {call.partition("(")[0] for call in TABLE} - rows
    assert len(taking) > 170


@pytest.mark.parametrize("text", TABLE)
def test_out_has_the_bits_of_the_returned_result(device: dt.Device, text: str) -> None:
    want = called(text)
    outs = tuple(empty(x) for x in listed(want))
    got = called(text, out=outs if isinstance(want, tuple) else outs[0])
    assert [id(y) for y in listed(got)] == [id(y) for y in outs]
    assert type(got) is type(want)
    assert [bits(y) for y in outs] == [bits(x) for x in listed(want)]


@pytest.mark.parametrize("text", [t for t in TABLE if not t.startswith(("random", "fft"))])
def test_wrong_out_raises_and_is_not_written(text: str) -> None:
    with dt.device("reference"):
        name = text.partition("(")[0].rpartition(".")[2]
        want = called(text)
        (first, *rest) = (empty(x) for x in listed(want))
        others: list[tuple[Any, type[Exception]]] = [
            (dt.zeros((7, 7, 7), dtype=first.dtype), dt.ShapeError),
            ("text", dt.DTypeError),
        ]
        if "device" not in inspect.signature(public()[text.partition("(")[0]]).parameters:
            other = dt.int8 if first.dtype is not dt.int8 else dt.int16
            others.append((dt.zeros(first.shape, dtype=other), dt.DTypeError))
        for wrong, error in others:
            out: Any = (wrong, *rest) if isinstance(want, tuple) else wrong
            before = [bits(x) for x in rest]
            with pytest.raises(error, match=name) as found:
                called(text, out=out)
            assert "out=" in str(found.value)
            assert [bits(x) for x in rest] == before


def test_out_on_another_device_raises(device: dt.Device) -> None:
    other = "cpu" if device.type == "reference" else "reference"
    if other == "cpu":
        pytest.importorskip("dovetail_cpu_llvm")
    for text in ("softmax(m)", "stack([m, m])", "sum(m, 1, keepdims=True)", "linalg.inv(p)"):
        out = dt.empty_like(called(text), device=other)
        with pytest.raises(dt.DeviceError, match="out="):
            called(text, out=out)


DIFFERENTIABLE = "softmax(m) | stack([m, m]) | sum(m, 1) | take(m, i, axis=1) | tril(q) | sort(m)"


@pytest.mark.parametrize("text", DIFFERENTIABLE.split(" | "))
def test_out_with_a_gradient_raises(device: dt.Device, text: str) -> None:
    scope = operands()
    for name in "mq":
        scope[name].requires_grad_()
    out = empty(called(text))
    with pytest.raises(dt.GradientError, match=text.partition("(")[0]):
        eval(f"dt.{text[:-1]}, out=out)", scope | {"out": out})
    with dt.no_grad():
        eval(f"dt.{text[:-1]}, out=out)", scope | {"out": out})
    assert bits(out) == bits(called(text))
    leaf = empty(out).requires_grad_()
    if leaf.dtype.is_float:
        with pytest.raises(dt.GradientError, match=text.partition("(")[0]):
            called(text, out=leaf)


def test_out_that_overlaps_an_operand_is_computed_from_old_values(device: dt.Device) -> None:
    for function in (dt.flip, dt.sort, dt.softmax, lambda x, out=None: dt.roll(x, 1, out=out)):
        x = dt.asarray([3.0, 1.0, 2.0, 5.0, 4.0, 0.5])
        want = function(x).tolist()
        if function is dt.flip:
            x.flip_(0)
        else:
            function(x, out=x)
        assert x.tolist() == want
    x = dt.arange(6.0)
    want = dt.cumulative_sum(x[:-1]).tolist()
    dt.cumulative_sum(x[:-1], out=x[1:])  # overlaps an operand
    assert x.tolist() == [0.0, *want]


def test_out_with_elements_that_share_memory_raises(device: dt.Device) -> None:
    for text in ("softmax(m)", "roll(m, 1)", "random.normal((2, 3))", "fft.fft2(m)"):
        want = called(text)
        with pytest.raises(dt.ReadOnlyError, match="share memory"):
            called(text, out=dt.zeros((), dtype=want.dtype).expand(want.shape))


def test_number_of_outs_must_equal_the_number_of_results(device: dt.Device) -> None:
    one = dt.empty((3, 3))
    with pytest.raises(dt.ArgumentError, match="qr: out= must have 2 tensors, got 1"):
        dt.linalg.qr(operands()["q"], out=(one,))
    with pytest.raises(dt.ArgumentTypeError, match="qr: out"):
        dt.linalg.qr(operands()["q"], out=one)


def test_creation_functions_take_dtype_and_device_from_out(device: dt.Device) -> None:
    z = dt.zeros(4, dtype=dt.float64)
    assert dt.arange(4, out=z) is z and z.tolist() == [0, 1, 2, 3]
    assert dt.random.uniform(4, out=z) is z and len({*z.tolist()}) == 4
    g = dt.random.default_rng(7)
    for draw, args in ((g.uniform, (4,)), (g.normal, (4,)), (g.exponential, (2.0, 4))):
        g.state = (7, 0)
        assert draw(*args, out=z) is z
        g.state = (7, 0)
        assert z.tolist() == draw(*args, dtype=dt.float64).tolist()
    k = dt.zeros(4, dtype=dt.int32)
    assert g.integers(0, 9, 4, out=k) is k
    assert sorted(g.permutation(4, out=dt.zeros(4, dtype=dt.int64)).tolist()) == [0, 1, 2, 3]
    x = dt.ones((2, 2))
    assert x.cumsum(0, out=dt.zeros((2, 2))).tolist() == [[1, 1], [2, 2]]
    assert x.cumprod(out=dt.zeros(4)).tolist() == [1, 1, 1, 1]
    with pytest.raises(dt.DTypeError, match="arange: out="):
        dt.arange(4, dtype=dt.int32, out=z)


def test_creation_function_aliases_and_empty_accept_out(device: dt.Device) -> None:
    k, x = dt.zeros(3, dtype=dt.int32), dt.full((2, 3), 5.0)
    assert dt.ones(3, out=k) is k and k.tolist() == [1, 1, 1]
    assert dt.full(3, fill_value=2, out=k) is k and k.tolist() == [2, 2, 2]
    assert dt.empty((2, 3), out=x) is x and x.tolist() == [[5.0] * 3] * 2  # unchanged
    assert dt.ones(2, 3, out=x) is x and x.tolist() == [[1.0] * 3] * 2
    assert dt.zeros(size=(2, 3), out=x) is x and x.sum().item() == 0
    assert dt.full((2, 3), 7, out=x[:, :]).dtype is dt.float32 and x.sum().item() == 42
    with pytest.raises(dt.DTypeError, match="zeros: out="):
        dt.zeros((2, 3), dt.int8, out=x)
    for wrong, error in ((dt.ones(4), dt.ShapeError), ("text", dt.DTypeError)):
        with pytest.raises(error, match="empty: out="):
            dt.empty((2, 3), out=wrong)
    with pytest.raises(dt.ArgumentError, match="empty: out= and allocator="):
        dt.empty((2, 3), out=x, allocator=object())
    assert x.sum().item() == 42


def test_out_in_captured_and_eager_functions(device: dt.Device) -> None:
    x, z = dt.asarray([[3.0, 1.0], [2.0, 5.0]]), dt.zeros((2, 2))

    def step(x: dt.Tensor, z: dt.Tensor) -> dt.Tensor:
        dt.softmax(x, out=z)
        return dt.roll(z, 1).cumulative_sum_(0)

    want = dt.roll(dt.softmax(x), 1).cumulative_sum(0).tolist()
    captured = dt.jit(step)
    for _ in range(3):
        z.zero_()
        assert captured(x, z).tolist() == want
        assert z.tolist() == dt.softmax(x).tolist()
    with dt.eager():
        assert step(x, z).tolist() == want


# --- in place -------------------------------------------------------------------------------------

ROW = [1.0, 2.0, 0.5]
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "roll": (1,), "fmax": (1.0,), "fmin": (1.0,), "fmod": (0.75,), "logaddexp2": (1.0,),
    "flip": (0,), "lerp": (ROW, 0.5), "addcmul": (ROW, ROW), "addcdiv": (ROW, ROW),
    "index_reduce": (0, [0, 1], 1.0, "amax"), "renorm": (2, 0, 1.0),
    "scatter_reduce": (1, [[0, 1], [2, 2]], 1.0, "prod"), "masked_scatter": ([True] * 3, ROW * 2),
    "addmm": ([ROW, ROW], [ROW, ROW, ROW]), "addmv": ([ROW, ROW, ROW], ROW),
    **dict.fromkeys(
        ("cumulative_sum", "cumulative_prod", "cumulative_logsumexp", "nancumsum", "nancumprod"),
        (0,),
    ),
}  # fmt: skip


for _home in LAZY_METHODS:  # they declare their methods when they are loaded
    importlib.import_module(f".{_home}", "dovetail.functions")
_FUNCTIONS = {f.__name__: f for f in IN_PLACE_METHODS.values()}
SAMPLERS = {n for n, f in _FUNCTIONS.items() if "shape" in inspect.signature(f).parameters}


@pytest.mark.parametrize("name", sorted({*_FUNCTIONS} - SAMPLERS))
def test_in_place_form_has_the_bits_of_the_returned_result(device: dt.Device, name: str) -> None:
    args = ARGUMENTS.get(name, ())
    base = dt.stack([operands()["m"]] * 2)  # of which the first half is written
    x = base[0]
    want = bits(getattr(dt, name)(x.copy(), *args))
    assert getattr(x, f"{name}_")(*args) is x
    assert bits(x) == want
    assert bits(base[0]) == want and base[1].tolist() == operands()["m"].tolist()
    leaf = operands()["m"].requires_grad_()
    with pytest.raises(dt.GradientError, match=name):
        getattr(leaf, f"{name}_")(*args)
    with pytest.raises(dt.ReadOnlyError, match=name):
        getattr(dt.zeros(()).expand((2, 3)), f"{name}_")(*args)
    whole = dt.asarray([[1, 2]])
    if name in ("softmax", "expit", "logaddexp2"):
        with pytest.raises(dt.DTypeError, match=f"{name} in place"):
            getattr(whole, f"{name}_")(*args)


def test_gradients_flow_through_in_place_forms(device: dt.Device) -> None:
    for name, args in (("softmax", ()), ("cumulative_sum", (0,)), ("tril", ()), ("roll", (1,))):
        x, w = operands()["m"].requires_grad_(), dt.arange(6.0).reshape(2, 3)
        (getattr(x * 2, f"{name}_")(*args) * w).sum().backward()
        y = operands()["m"].requires_grad_()
        (getattr(y * 2, name)(*args) * w).sum().backward()
        assert x.grad is not None and y.grad is not None
        assert x.grad.tolist() == y.grad.tolist()


DRAWS: dict[str, tuple[Any, ...]] = {"integers": (0, 9), "binomial": (9, 0.5), "poisson": (3.0,)}


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_in_place_sampling_methods(device: dt.Device, name: str) -> None:
    x = dt.zeros((2, 3), dtype=dt.int64 if name == "integers" else dt.float32)
    args = DRAWS.get(name, ())
    view = x.T
    kept = getattr(x, f"{name}_")(*args, generator=dt.random.default_rng(7))
    function = getattr(dt.random, name)
    want = function(
        *args, shape=(2, 3), dtype=x.dtype, generator=dt.random.default_rng(7)
    )  # fmt: skip
    assert kept is x and x.tolist() == want.tolist() and view.tolist() == x.T.tolist()
    assert len({*x.ravel().tolist()}) > 1
    with pytest.raises(dt.ArgumentError, match=f"{name}_: expected at most"):
        getattr(x, f"{name}_")(1, 2, 3, 4, 5, 6)
    with pytest.raises(dt.ArgumentTypeError, match=name):
        getattr(x, f"{name}_")(*args, nonsense=3)


def test_positional_parameters_follow_pytorch(device: dt.Device) -> None:
    x = dt.zeros(4096).normal_(5.0, 0.1)
    assert abs(x.mean().item() - 5.0) < 0.02 and abs(x.std().item() - 0.1) < 0.02
    y = dt.zeros(4096).uniform_(-1, 1)
    assert -1 <= y.min().item() < -0.9 and 0.9 < y.max().item() <= 1
    assert dt.zeros(3).cumsum_().tolist() == [0, 0, 0]
    assert dt.ones(3).cumsum_().tolist() == dt.ones(3).cumsum_(0).tolist() == [1, 2, 3]


def test_parameter_names_of_other_libraries_are_accepted(device: dt.Device) -> None:
    x = dt.ones((1, 2))
    assert dt.concat(tensors=[x, x], dim=1).shape == (1, 4)
    assert x.numpy(force=True).tolist() == [[1, 1]]
    np.testing.assert_array_equal(x.numpy(force=False), np.ones((1, 2)))
