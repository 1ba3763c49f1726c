"""`dt.elementwise`: the bits of the same functions on tensors, fused, with gradients."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.dtypes import ALL, DType
from dovetail.testing.values import sample

Function = Callable[..., Any]


def samples(d: DType, shape: tuple[int, ...] = (5, 7), seed: int = 0) -> dt.Tensor:
    """Return samples of a dtype, including special values."""
    found = dt.asarray(sample(dt.float32, shape, seed))
    return dt.asarray(dt.nan_to_num(found, nan=2.5, posinf=3.5, neginf=-0.5), dtype=d)


def bits(x: dt.Tensor) -> bytes:
    """Return dtype, shape and bytes of a tensor."""
    wide = x if x.dtype is not dt.bfloat16 else x.astype(dt.float32)
    return wide.dtype.name.encode() + np.asarray(wide).tobytes()


def silu(x: Any) -> Any:
    return x / (1 + dt.exp(-x))


def polynomial(x: Any) -> Any:
    return x**2 * 3 - x + 1


def bell(x: Any, y: Any) -> Any:
    return dt.where(x > y, dt.exp(-x * x) * y, dt.maximum(x, y) + dt.sin(y))


def mixed(x: Any, y: Any, z: Any) -> Any:
    return dt.clip(x * y, -3, 4) + abs(z - 0.5) / (1 + dt.sqrt(dt.abs(x)))


def powers(x: Any, y: Any) -> Any:
    return dt.abs(x) ** y + dt.hypot(x, y) + dt.logaddexp(x, y)


def steps(x: Any) -> Any:
    return dt.floor(x * 2) + dt.round(x) % 3 + dt.sign(x) + dt.isfinite(x)


FUNCTIONS: dict[str, tuple[Function, int]] = {
    "silu": (silu, 1), "polynomial": (polynomial, 1), "bell": (bell, 2), "mixed": (mixed, 3),
    "powers": (powers, 2), "steps": (steps, 1),
    "erf": (lambda x: dt.erf(x) * x.tanh(), 1), "sigmoid": (lambda x: dt.sigmoid(x), 1),
}  # fmt: skip


def accepts(f: Function, args: list[dt.Tensor]) -> bool:
    try:
        f(*args)
    except dt.DTypeError:
        return False
    return True


# --- bits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)
def test_elementwise_has_the_bits_of_the_function_on_tensors(
    name: str, d: DType, device: dt.Device
) -> None:
    f, n = FUNCTIONS[name]
    args = [samples(d, seed=k) for k in range(n)]
    if not accepts(f, args):
        with pytest.raises(dt.DTypeError, match="op"):
            dt.elementwise(name="op")(f)(*args)
        return
    made = dt.elementwise(name="op")(f)(*args)
    wanted = f(*args)
    assert made.dtype is wanted.dtype and made.shape == wanted.shape
    assert bits(made) == bits(wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operands_of_different_dtypes_promote_like_tensors(name: str, device: dt.Device) -> None:
    f, n = FUNCTIONS[name]
    kinds = [dt.float16, dt.int32, dt.float32]
    args = [samples(kinds[k], seed=k) for k in range(n)]
    assert bits(dt.elementwise(f)(*args)) == bits(f(*args))


def test_operands_broadcast_in_any_layout(device: dt.Device) -> None:
    op = dt.elementwise(bell)
    x, y = samples(dt.float32, (6, 4)), samples(dt.float32, (4,), 1)
    for a, b in ((x, y), (x.T, y[:, None]), (x[::2, ::-1], y), (x[:0], y), (x[0, 0], y[1])):
        assert bits(op(a, b)) == bits(bell(a, b))


@pytest.mark.parametrize("number", [2, 0.3, True])
@pytest.mark.parametrize("d", [dt.float16, dt.float32, dt.float64, dt.int16])
def test_python_number_takes_the_dtype_of_the_tensors(d: DType, number: float) -> None:
    op = dt.elementwise(lambda x, a: x * a + a)
    x = dt.asarray([1, 2, 3], dtype=d, device="reference")
    made = op(x, number)
    assert made.dtype is (x * number).dtype
    assert bits(made) == bits(x * number + number)


def test_changed_number_needs_no_new_kernel() -> None:
    op = dt.elementwise(lambda x, a: x * a)
    x = dt.asarray([1.0, 2.0], device="reference")
    texts = {dt.explain(op(x, a)).launches[0].text for a in (2.0, 3.0, 4)}
    assert len(texts) == 1
    with pytest.raises(dt.ValueOverflowError):
        op(x.astype(dt.int8), 1000)


def test_complex_operands_equal_numpy(device: dt.Device) -> None:
    def f(z: Any, w: Any) -> Any:
        return dt.exp(z * 1j) / w + dt.conj(z) * 2 - dt.abs(w)

    z = dt.asarray([1 + 2j, -0.5j, 3.0])
    w = dt.asarray([2.0, 1.0, -1.0])
    assert bits(dt.elementwise(f)(z, w)) == bits(f(z, w))
    assert dt.elementwise(f)(z, w).dtype is dt.complex64
    assert bits(dt.elementwise(f)(z, 2j)) == bits(f(z, dt.asarray(2j)))


def test_composed_functions_have_the_bits_on_tensors(device: dt.Device) -> None:
    def f(x: Any) -> Any:
        return dt.nan_to_num(dt.select([x < 0, x < 1], [-x, x * x], 3.0)) + dt.expit(x)

    x = samples(dt.float32)
    assert bits(dt.elementwise(f)(x)) == bits(f(x))


@pytest.mark.parametrize("to", [dt.int8, dt.uint32, dt.bool, dt.bfloat16, dt.float32])
@pytest.mark.parametrize("d", [dt.float32, dt.float16, dt.int64, dt.bool])
def test_casts_equal_those_of_tensors(to: DType, d: DType, device: dt.Device) -> None:
    """They saturate, and NaN becomes 0."""
    x = dt.asarray([0.5, -1.0, 300.0, 1e9, math.nan, math.inf, -math.inf, 65537.0])
    x = dt.nan_to_num(x, nan=7.0) if d.kind == "i" else x
    x = x.astype(d)
    assert bits(dt.elementwise(lambda x: x.astype(to))(x)) == bits(x.astype(to))
    assert bits(dt.elementwise(result=to)(lambda x: x)(x)) == bits(x.astype(to))


def test_constant_result_and_several_results(device: dt.Device) -> None:
    x = samples(dt.float32)
    assert dt.elementwise(lambda x: 1.5)(x).tolist() == dt.full(x.shape, 1.5).tolist()
    both = dt.elementwise(lambda x, y: (x + y, dt.exp(x) > y))
    a, b = both(x, 2.0)
    assert bits(a) == bits(x + 2.0) and bits(b) == bits(dt.exp(x) > 2.0)
    assert len(dt.explain(*both(x, 2.0)).launches) == 1
    with pytest.raises(dt.ArgumentError, match=r"out= is not supported .* 2 tensors"):
        both(x, 2.0, out=x)


def test_dtypes_argument_selects_the_promotion_rule() -> None:
    x = dt.asarray([1, 2], dtype=dt.int16, device="reference")
    assert dt.elementwise(dtypes="floating")(lambda x: x)(x).dtype is dt.float32
    y = dt.asarray([1, 2], dtype=dt.float64, device="reference")
    assert dt.elementwise(dtypes="promoted")(lambda x, y: x)(x, y).dtype is dt.float64
    assert dt.elementwise(dtypes=lambda a, b: (b, b))(lambda x, y: x)(x, y).dtype is dt.float64
    assert dt.elementwise(result="int8")(lambda x: x * 2.5)(x).tolist() == [2, 5]
    assert dt.elementwise(result=dt.int8)(lambda x: x)(x).dtype is dt.int8
    with pytest.raises(dt.DTypeError, match="must return 1 dtypes, one per operand"):
        dt.elementwise(dtypes=lambda a: a)(lambda x: x)(x)
    with pytest.raises(dt.ArgumentError, match="'promoted', 'floating' or a function"):
        dt.elementwise(dtypes="narrow")(lambda x: x)


# --- like any op --------------------------------------------------------------------------------


def test_elementwise_is_fused_with_other_ops(device: dt.Device) -> None:
    op = dt.elementwise(silu)
    x = samples(dt.float32)
    dt.evaluate(x)
    (launch,) = dt.explain((op(x * 2) + 1).sum(axis=1)).launches
    assert "silu" in launch.name
    assert bits((op(x * 2) + 1).sum(axis=1)) == bits((silu(x * 2) + 1).sum(axis=1))


def test_out_argument_and_in_place_use(device: dt.Device) -> None:
    op = dt.elementwise(bell)
    x, y = samples(dt.float32), samples(dt.float32, seed=1)
    wanted = bits(bell(x, y))
    out = dt.zeros(x.shape)
    assert op(x, y, out=out) is out and bits(out) == wanted
    assert op(x, y, out=y) is y and bits(y) == wanted
    x, y = samples(dt.float32), samples(dt.float32, seed=1)
    seen = x[1:]
    assert op.in_place(x, y) is x and bits(x) == wanted
    assert bits(seen) == bits(x[1:])
    with pytest.raises(dt.ShapeError):
        op(x, y, out=dt.zeros(3))


def test_elementwise_is_captured(device: dt.Device) -> None:
    op = dt.elementwise(lambda x, a: dt.tanh(x) * a + x)
    step = dt.jit(lambda x, a: op(op(x, a), 2.0).sum())
    for a in (0.5, 0.25):
        for seed in (0, 1):
            x = samples(dt.float32, seed=seed)
            assert bits(step(x, a)) == bits(op(op(x, a), 2.0).sum())
    assert step.captures == 1


def test_eager_and_deferred_modes_have_the_same_bits(device: dt.Device) -> None:
    op, x = dt.elementwise(bell), samples(dt.float16)
    with dt.eager():
        now = op(x, 0.5)
    assert bits(now) == bits(op(x, 0.5))


def test_nested_elementwise_and_numpy_operands(device: dt.Device) -> None:
    inner = dt.elementwise(silu)
    outer = dt.elementwise(lambda x, y: inner(x * y) + inner(y))
    x, y = samples(dt.float32), samples(dt.float32, seed=1)
    assert bits(outer(x, y)) == bits(silu(x * y) + silu(y))
    assert bits(outer(x, np.asarray(y))) == bits(outer(x, y))
    assert bits(outer(x, np.float32(0.5))) == bits(outer(x, 0.5))


def test_keyword_only_parameters_are_static() -> None:
    @dt.elementwise
    def power(x: Any, *, n: int = 2) -> Any:
        made = x
        for _ in range(n - 1):
            made = made * x
        return made

    x = dt.asarray([2.0, 3.0], device="reference")
    assert power(x).tolist() == [4.0, 9.0]
    assert power(x, n=3).tolist() == [8.0, 27.0]
    assert power(x, n=3).tolist() == [8.0, 27.0]
    with pytest.raises(dt.ArgumentTypeError, match=r"must be hashable, got n=\[1\]"):
        power(x, n=[1])
    with pytest.raises(dt.ArgumentTypeError, match="unexpected keyword argument 'm'"):
        power(x, m=3)


def test_operands_by_name_and_defaults() -> None:
    op = dt.elementwise(lambda x, scale=2.0: x * scale)
    x = dt.asarray([1.0], device="reference")
    assert op(x).tolist() == [2.0]
    assert op(x, scale=3.0).tolist() == [3.0]
    assert op(scale=x, x=x).tolist() == [1.0]
    with pytest.raises(dt.ArgumentTypeError, match="missing a required argument"):
        op()


@dt.elementwise
def kept(x: Any) -> Any:
    """Return x + 1."""
    return x + 1


def test_elementwise_has_the_metadata_of_its_function() -> None:
    assert pickle.loads(pickle.dumps(kept)) is kept
    assert kept.__doc__ == "Return x + 1." and kept.__name__ == "kept"
    assert repr(kept) == "<elementwise kept(x)>"
    text = kept.text("float16")
    assert text.startswith("kernel kept(out0: w f16, in1: r f16;")
    assert "load in1" in text


# --- loops in the kernel -------------------------------------------------------------------------


@dt.elementwise
def escape(x: Any, y: Any, *, steps: int) -> Any:
    """Return after how many steps a point leaves the disc of radius 2."""

    def step(i: Any, c: Any) -> Any:
        re, im, n = c
        inside = re * re + im * im < 4
        re, im = (
            dt.where(inside, re * re - im * im + x, 2.0),
            dt.where(inside, 2 * re * im + y, 2.0),
        )
        return re, im, n + inside.astype(dt.int32)

    return dt.fori_loop(0, steps, step, (x, y, 0))[2]


def test_while_loop_becomes_a_loop_in_the_kernel(device: dt.Device) -> None:
    x, y = dt.linspace(-2.1, 0.7, 20), dt.linspace(-1.2, 1.2, 9)[:, None]
    re, im = np.broadcast_arrays(np.asarray(x), np.asarray(y))
    cx, cy, n = re, im, np.zeros(re.shape, np.int64)
    for _ in range(50):
        inside = re * re + im * im < 4
        re, im = (
            np.where(inside, re * re - im * im + cx, np.float32(2)),
            np.where(inside, 2 * re * im + cy, np.float32(2)),
        )
        n = n + inside
    found = escape(x, y, steps=50)
    assert found.dtype is dt.int64 and found.tolist() == n.tolist()
    assert escape.text(steps=50).count("fold ") == 1


def test_loop_bounds_may_be_elements(device: dt.Device) -> None:
    triangle = dt.elementwise(lambda n: dt.fori_loop(0, n, lambda i, s: s + i, n * 0))
    assert triangle(dt.asarray([0, 1, 4, 10, -3])).tolist() == [0, 0, 6, 45, 0]
    with pytest.raises(dt.DTypeError, match="upper must be an integer, got float32"):
        triangle(dt.asarray([1.0]))


@pytest.mark.parametrize("d", [dt.float16, dt.bfloat16, dt.complex64, dt.bool])
def test_loops_carry_every_dtype(d: DType, device: dt.Device) -> None:
    def f(x: Any) -> Any:
        return dt.fori_loop(0, 3, lambda i, c: (c[0] * x, ~c[1]), (x, x == x))[0]

    x = samples(d)
    assert bits(dt.elementwise(f)(x)) == bits(x * x * x * x)


@pytest.mark.parametrize("d", [dt.float16, dt.float64, dt.complex64])
def test_initial_number_of_a_loop_takes_the_dtype_of_the_body(d: DType) -> None:
    x = dt.asarray([2, 3], dtype=d, device="reference")
    cubed = dt.elementwise(lambda x: dt.fori_loop(0, 3, lambda i, c: c * x, 1))
    assert cubed(x).dtype is d and cubed(x).tolist() == [8, 27]


def test_nested_loops_read_outer_values(device: dt.Device) -> None:
    def f(x: Any, y: Any) -> Any:
        outside = dt.exp(y)

        def round_(i: Any, c: Any) -> Any:
            return dt.fori_loop(0, 2, lambda j, e: e * 0.5 + outside + i * 1.0, c) + x

        return dt.fori_loop(0, 3, round_, x) * outside

    x, y = (p.detach() for p in points(2))
    want = np.asarray(x)
    for i in range(3):
        for _ in range(2):
            want = want * 0.5 + np.exp(np.asarray(y)) + i
        want = want + np.asarray(x)
    op = dt.elementwise(f)
    assert np.allclose(np.asarray(op(x, y)), want * np.exp(np.asarray(y)))
    assert dt.autograd.gradcheck(op, (x[0].requires_grad_(), y[0].requires_grad_()))


def test_unsupported_loops_raise() -> None:
    x = dt.asarray([1.0], device="reference")

    def refused(f: Function, error: type[Exception], says: str) -> None:
        with pytest.raises(error, match=says):
            dt.elementwise(f)(x)

    refused(lambda x: dt.while_loop(lambda c: c < 3, lambda c: c + 1, x), dt.CaptureError,
            "while_loop is not supported.*dt.fori_loop")  # fmt: skip
    refused(lambda x: dt.scan(lambda c, x: (c, x), x)[0], dt.CaptureError, "scan is not")
    refused(lambda x: dt.fori_loop(0, 3, lambda i, c: c > 1, x), dt.DTypeError,
            "dtype of its carry, float32, got bool")  # fmt: skip
    refused(lambda x: dt.fori_loop(0, 3, lambda i, c: (c, c), x), dt.DTypeError, "same containers")
    refused(lambda x: dt.fori_loop(0, 3, lambda i, c: "no", x), dt.DTypeError, "must hold numbers")
    leaked: list[Any] = []

    def leaks(x: Any) -> Any:
        dt.fori_loop(0, 3, lambda i, c: leaked.append(c) or c, x)  # type: ignore[func-returns-value]
        return leaked[-1]

    with pytest.raises(dt.CaptureError, match="used outside of it"):
        dt.evaluate(dt.elementwise(leaks)(x))


# --- gradients -----------------------------------------------------------------------------------

SMOOTH: dict[str, tuple[Function, int]] = {
    "silu": (silu, 1), "polynomial": (polynomial, 1),
    "tanh": (lambda x: dt.tanh(x), 1), "exp": (lambda x: dt.exp(x), 1),
    "product": (lambda x, y: x * y * x, 2), "quotient": (lambda x, y: dt.sin(x) / (2 + y * y), 2),
    "power": (lambda x, y: dt.abs(x) ** y, 2), "where": (bell, 2), "mixed": (mixed, 3),
    "four": (lambda a, b, c, d: a * b + dt.exp(c * 0.1) * d, 4), "identity": (lambda x: x, 1),
    "constant": (lambda x: x * 0 + 1, 1),
}  # fmt: skip


def points(n: int, d: DType = dt.float64) -> list[dt.Tensor]:
    rng = np.random.default_rng(7)
    return [dt.asarray(rng.normal(size=(2, 3)), dtype=d).requires_grad_() for _ in range(n)]


@pytest.mark.parametrize("name", SMOOTH)
def test_first_and_second_derivatives_pass_gradcheck(name: str, device: dt.Device) -> None:
    f, n = SMOOTH[name]
    op = dt.elementwise(name="op")(f)
    assert dt.autograd.gradcheck(op, points(n))
    assert dt.autograd.gradgradcheck(op, points(n))


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("d", [dt.float16, dt.float32, dt.float64])
def test_gradients_have_the_bits_of_gradients_on_tensors(
    name: str, d: DType, device: dt.Device
) -> None:
    f, n = SMOOTH[name]
    ours, theirs = points(n, d), points(n, d)
    (dt.elementwise(name="op")(f)(*ours) * 3).sum().backward()
    (f(*theirs) * 3).sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        assert a.grad is not None and b.grad is not None
        assert bits(a.grad) == bits(b.grad)


@pytest.mark.parametrize("name", sorted({*SMOOTH} - {"identity"}))  # which is a copy
def test_gradients_need_no_more_kernel_lines_than_on_tensors(name: str) -> None:
    f, n = SMOOTH[name]

    def lines(f: Function) -> int:
        xs = [dt.asarray(p.detach().numpy(), device="reference").requires_grad_()
              for p in points(n)]  # fmt: skip
        y = f(*xs)
        launches = dt.explain(y.detach(), *dt.grad(y.sum(), xs)).launches
        return sum(len(k.text.splitlines()) for k in launches)

    assert lines(dt.elementwise(name="op")(f)) <= lines(f) + 2


def test_gradients_of_broadcast_operands_and_numbers(device: dt.Device) -> None:
    op = dt.elementwise(lambda x, y: x * dt.exp(y))
    x, y = dt.ones((3, 1)).requires_grad_(), dt.zeros((4,)).requires_grad_()
    op(x, y).sum().backward()
    assert x.grad.tolist() == [[4.0]] * 3 and y.grad.tolist() == [3.0] * 4
    x.grad = None
    op(x, 0.0).sum().backward()
    assert x.grad.tolist() == [[1.0]] * 3


def test_gradients_of_several_results(device: dt.Device) -> None:
    both = dt.elementwise(lambda x, y: (x * y, dt.sin(x)))
    assert dt.autograd.gradcheck(lambda x, y: both(x, y), points(2))
    assert dt.autograd.gradgradcheck(lambda x, y: both(x, y), points(2))


def test_gradients_through_loops_pass_gradcheck(device: dt.Device) -> None:
    def root(x: Any) -> Any:
        """Return the square root by Newton's method; its gradient is that of the square root."""
        return dt.fori_loop(0, 20, lambda i, r: (r + x / r) * 0.5, x * 0.5 + 0.5)

    op = dt.elementwise(root)
    x = dt.asarray([0.5, 1.0, 2.0, 9.0], dtype=dt.float64).requires_grad_()
    y = op(x)
    (g,) = dt.grad(y.sum(), [x], create_graph=True)
    (gg,) = dt.grad(g.sum(), [x])
    at = np.asarray(x.detach())
    assert np.allclose(np.asarray(g.detach()), 0.5 / np.sqrt(at))
    assert np.allclose(np.asarray(gg), -0.25 * at**-1.5)
    z = dt.asarray([1j], dtype=dt.complex128).requires_grad_()
    with pytest.raises(dt.GradientError, match="loop of complex numbers has no gradient"):
        dt.grad(dt.abs(op(z)).sum(), [z])


def test_backward_of_a_loop_is_one_loop() -> None:
    op = dt.elementwise(lambda x: dt.exp(dt.fori_loop(0, 5, lambda i, c: c * x + 1, x)) ** 2)
    x = dt.asarray([0.1], device="reference").requires_grad_()
    (launch,) = dt.explain(dt.grad(op(x).sum(), x)).launches
    assert launch.text.count("fold ") == 1


def test_gradients_of_complex_operands(device: dt.Device) -> None:
    op = dt.elementwise(lambda z, w: dt.exp(z) * dt.conj(w) + dt.abs(z))
    z, w = (dt.asarray([1 + 2j, 0.5 - 1j], dtype=dt.complex128).requires_grad_() for _ in range(2))
    assert dt.autograd.gradcheck(op, (z, w))


def test_gradients_are_captured(device: dt.Device) -> None:
    op = dt.elementwise(silu)

    @dt.jit
    def step(x: dt.Tensor) -> Any:
        return dt.grad(op(x).sum(), [x])[0]

    for seed in (0, 1):
        x, y = (samples(dt.float32, seed=seed).requires_grad_() for _ in range(2))
        assert bits(step(x)) == bits(dt.grad(op(y).sum(), [y])[0])


def test_only_values_that_the_rule_reads_are_saved() -> None:
    """For exp this is its result only, as for the op."""
    op = dt.elementwise(lambda x: dt.exp(x))
    x = dt.asarray([1.0], device="reference").requires_grad_()
    y = op(x)
    x.detach().add_(1.0)  # is not read any more
    y.sum().backward()
    assert np.isclose(x.grad.item(), math.e)


def test_custom_gradient_replaces_the_derived_one(device: dt.Device) -> None:
    straight = dt.elementwise(gradient=lambda g: g)(lambda x: dt.round(x))
    x = dt.asarray([0.4, 1.6]).requires_grad_()
    straight(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]

    @dt.elementwise(gradient=lambda g, x, y, r: (g * r / x, None))
    def product(x: Any, y: Any) -> Any:
        return x * y

    x, y = points(2)
    dt.grad(product(x, y).sum(), [x])
    assert dt.autograd.gradcheck(lambda x: product(x, y.detach()), (x,))
    assert dt.autograd.gradgradcheck(lambda x: product(x, y.detach()), (x,))
    half = dt.elementwise(gradient={"x": lambda g, y: g * y * 0.5})(lambda x, y: x * y)
    x, y = dt.ones(1).requires_grad_(), dt.ones(1).requires_grad_()
    half(x, y).sum().backward()
    assert x.grad.item() == 0.5 and y.grad is None


def test_wrong_custom_gradient_raises() -> None:
    x = dt.asarray([1.0], device="reference").requires_grad_()

    def refused(gradient: Any, says: str) -> None:
        op = dt.elementwise(name="op", gradient=gradient)(lambda x, y: x * y)
        with pytest.raises(dt.GradientError, match=says):
            op(x, x).sum().backward()

    refused(lambda g: g, "op: gradient must return 2 gradients, one for each of x, y, got 1")
    refused(
        lambda g: (g, g > 0),
        "op: gradient must return a float .* for y, which is a float32, got a bool",
    )
    refused(lambda g: (g, "no"), "op: gradient must return .* for y, .* got 'no'")
    for gradient, says in (
        (lambda g, q: g, "the parameters of gradient must be among .* got q"),
        ({"z": lambda g: g}, "the keys of gradient must be operands, x, y, got 'z'"),
    ):
        with pytest.raises(dt.ArgumentError, match=says):
            dt.elementwise(name="op", gradient=gradient)(lambda x, y: x)
    with pytest.raises(dt.ArgumentError, match="a parameter must not be named g"):
        dt.elementwise(name="op", gradient=lambda g: g)(lambda g: g)


def test_function_without_a_gradient_raises_in_backward() -> None:
    op = dt.elementwise(lambda x: dt.nextafter(x, 2.0))
    x = dt.asarray([1.0], device="reference").requires_grad_()
    with pytest.raises(dt.GradientError, match="nextafter has no gradient"):
        op(x).sum().backward()


# --- errors, with the user's line ----------------------------------------------------------------


def branches(x: Any) -> Any:
    if x > 0:  # this very line
        return x
    return -x


TENSOR = dt.ones(3, device="reference")
MISTAKES: dict[str, tuple[Function, type[Exception], str]] = {
    "a branch": (branches, dt.CaptureError, r"(?s)dt\.where.*at .*: if x > 0:  # this very line"),
    "and": (lambda x: x > 0 and x < 1, dt.CaptureError, "dt.logical_and"),
    "min": (lambda x: min(x, 1.0), dt.CaptureError, "dt.minimum"),
    "math": (lambda x: math.exp(x), dt.CaptureError, "dt.exp, not math.exp"),
    "float": (lambda x: float(x), dt.CaptureError, "has no value"),
    "item": (lambda x: x.item(), dt.CaptureError, "has no value"),
    "sum": (lambda x: dt.sum(x), dt.CaptureError, "sum is not an elementwise"),
    "method": (lambda x: x.mean(), dt.CaptureError, "mean is not an elementwise"),
    "index": (lambda x: x[0], dt.CaptureError, "cannot be indexed"),
    "reshape": (lambda x: dt.reshape(x, (1,)), dt.CaptureError, "is asked for"),
    "softmax": (lambda x: dt.softmax(x), dt.DovetailError, "op"),
    "a tensor": (lambda x: x + TENSOR, dt.CaptureError, r"a tensor, float32\[3\].*another operand"),
    "an array": (lambda x: x + np.ones(3), dt.CaptureError, "another operand"),
    "matmul": (lambda x: x @ x, dt.DovetailError, "op"),
    "in place": (lambda x: x.add_(1), dt.DovetailError, "op: add expected|op: add in place"),
    "written": (lambda x: x.__setitem__(0, 1), dt.CaptureError, "written to"),
    "dtype": (lambda x: x & 0.5, dt.DTypeError, "bitwise_and: expected .* got float32"),
    "a text": (lambda x: "no", dt.ArgumentTypeError, "got str"),
    "nothing": (lambda x: None, dt.ArgumentTypeError, "got NoneType"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_error_shows_the_line_of_the_user(name: str) -> None:
    f, error, says = MISTAKES[name]
    x = dt.asarray([1.0], device="reference")
    with pytest.raises(error, match=says) as caught:
        dt.elementwise(name="op")(f)(x)
    text = str(caught.value)
    assert text.startswith("op: ")
    if name not in ("a text", "nothing"):
        assert f"at {__file__}:{f.__code__.co_firstlineno + (name == 'a branch')}: " in text


def test_invalid_functions_raise() -> None:
    with pytest.raises(
        dt.ArgumentTypeError, match="elementwise: function must be a function, got 3"
    ):
        dt.elementwise(3)
    with pytest.raises(dt.ArgumentError, match=r"cannot have \*xs"):
        dt.elementwise(lambda *xs: xs[0])
    with pytest.raises(dt.ArgumentError, match=r"must have 1 to 64 operands, got 0"):
        dt.elementwise(lambda: 1.0)
    with pytest.raises(dt.ArgumentError, match="name must be a Python identifier, got 'a b'"):
        dt.elementwise(name="a b")(lambda x: x)


def test_operand_that_is_no_tensor_raises() -> None:
    op = dt.elementwise(name="op")(lambda x, y: x + y)
    x = dt.asarray([1.0], device="reference")
    with pytest.raises(dt.DTypeError, match=r"op: operands must be tensors.*got str"):
        op(x, "no")
    assert op(1.0, 2.0).tolist() == 3.0
    with pytest.raises(dt.ShapeError, match="op: "):
        op(dt.ones(2, device="reference"), dt.ones(3, device="reference"))
    sparse = dt.ones((2, 2), device="reference").to_sparse()
    with pytest.raises(dt.LayoutError, match="op"):
        op(sparse, x)
