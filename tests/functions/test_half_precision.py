"""float16 and bfloat16: composed functions compute in float32 and round once, by construction."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.functions.elementwise.op_functions import FUNCTIONS
from dovetail.nn.functional.precision import NOT_WIDENED_FUNCTIONS

pytestmark = pytest.mark.values

F = dt.nn.functional
HALVES = (dt.float16, dt.bfloat16)
DIGITS = {dt.float16: 11, dt.bfloat16: 8}
LARGEST = {d: dt.finfo(d).max for d in HALVES}
SMALLEST = {dt.float16: 2.0**-24, dt.bfloat16: 2.0**-133}
NAMESPACES = {"dt": dt, "linalg": dt.linalg, "fft": dt.fft, "random": dt.random, "func": dt.func}

# Public functions without a decorator that are not a single op: they move
# elements, create tensors of values, read facts, call user functions, or set something.
_UNDECORATED = """
all any argmax argmin count_nonzero max mean min prod sum pow where matmul as_strided
broadcast_arrays broadcast_shapes broadcast_to diagonal expand_dims flip moveaxis
permute_dims reshape split squeeze swapaxes transpose unstack matrix_transpose atleast_1d
atleast_2d atleast_3d concat contiguous copy diag_indices pin_memory asarray astype empty
empty_like full full_like ones ones_like zeros zeros_like fromfunction get_default_dtype
isdtype result_type set_default_dtype element_size storage_index is_complex is_contiguous
is_floating_point numel contiguous_strides default_device device devices current_stream
default_stream stream synchronize get_num_threads set_num_threads get_printoptions
set_printoptions get_autocast_dtype is_autocast_enabled is_grad_enabled
is_inference_mode_enabled get_state manual_seed set_state
evaluate explain draw_graph show profile grad grid load_function save_function custom_op
elementwise kernel raw_kernel jit vmap constant is_tensor
"""
UNDECORATED = frozenset(_UNDECORATED.split())
# Their gradient is computed from the half-precision result: that of float64 by the same rule.
BY_RESULT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "erfinv": lambda r: np.sqrt(np.pi) / 2 * np.exp(r * r),
    "ndtri": lambda r: np.sqrt(2 * np.pi) * np.exp(r * r / 2),
    "sigmoid": lambda r: r * (1 - r), "expit": lambda r: r * (1 - r),
    "reciprocal": lambda r: -r * r, "tanh": lambda r: 1 - r * r, "tan": lambda r: 1 + r * r,
    "exp": lambda r: r, "exp2": lambda r: r * np.log(2),
    "sqrt": lambda r: 0.5 / r, "rsqrt": lambda r: -0.5 * r**3, "cbrt": lambda r: 1 / (3 * r * r),
}  # fmt: skip
# Exact gradients of the walk's constant one are 0, where float32 has 1e-7 and less: of the
# correlation of a vector with itself, of weights whose sum is 1, of what is centred. Coefficients
# of 6e15 add up to the value of a polynomial at 1.
_CANCELLED = "corrcoef poly softmax softmin group_norm instance_norm"
CANCELLED = frozenset(_CANCELLED.split())
# Not comparable with float64: random draws, or results that depend on the dtype by definition.
_APART = """
nextafter finfo iinfo can_cast result_type empty empty_like element_size frexp spacing rrelu
gumbel_softmax jit vmap elementwise kernel raw_kernel custom_op evaluate show explain
profile draw_graph load save synchronize resize fix
"""
APART = frozenset(_APART.split())
_rng = np.random.default_rng(0)
V, W, BIG = _rng.uniform(0.3, 3, 40), _rng.uniform(0.3, 3, 40), _rng.uniform(100, 400, 40)
M, PLACES = _rng.uniform(0.2, 2, (5, 5)), np.sort(_rng.uniform(0, 9, 40))
IMAGES, SCORES = _rng.normal(size=(2, 4, 6, 6)), _rng.normal(size=(4, 6))
CASES: tuple[tuple[Any, ...], ...] = (
    (V,), (V, W), (M,), (M, M.T.copy()), (BIG,), (BIG, V), (V, PLACES, W), (IMAGES,), (M, M, M),
    ([V, W],), ([M, M, M],), (2, V), (V, 2), (IMAGES, 2), (M, np.array([0, 1, 2, 3, 0])),
    (SCORES, _rng.normal(size=6), _rng.uniform(0.5, 2, 6)), (M, M, M[0].copy()),
)  # fmt: skip
MORE: dict[str, tuple[tuple[Any, ...], ...]] = {  # operands that the functions above do not accept
    "erfinv": ((np.linspace(-0.9, 0.9, 40),),), "ndtri": ((np.linspace(0.05, 0.95, 40),),),
    "cross": ((M[:, :3].copy(), M[:, 2:].copy()),),
    "fold": ((_rng.normal(size=(2, 8, 9)), (4, 4), 2),),
    "bincount": ((np.array([0, 2, 2, 1]), V[:4].copy()),),
    "avg_pool1d": ((IMAGES[0], 3),), "adaptive_avg_pool1d": ((IMAGES[0], 4),),
    "lp_pool1d": ((np.abs(IMAGES[0]), 2, 3),), "lp_pool2d": ((np.abs(IMAGES), 3, 2),),
    "lp_pool3d": ((np.abs(IMAGES), 2, 2),), "rms_norm": ((SCORES, 6),),
    "affine_grid": ((_rng.normal(size=(2, 2, 3)), (2, 3, 4, 5)),),
    "grid_sample": ((IMAGES, _rng.uniform(-0.9, 0.9, (2, 3, 3, 2))),),
    "ctc_loss": ((-np.abs(SCORES[:, None]), np.array([[1, 2]]), np.array([4]), np.array([2])),),
    "renorm": ((M, 2, 0, 1.0),),
    "multilabel_margin_loss": ((SCORES, np.array([[1, 0, -1, 2, 3, 3]] * 4)),),
}  # fmt: skip
WITHOUT_FLOATS = frozenset(["isclose", "allclose", "multinomial"])  # results are bools or ints
MAKERS = ("bartlett", "blackman", "hamming", "hann", "kaiser", "fftfreq", "rfftfreq")


def _public(space: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in sorted({*dir(space)}):
        found = getattr(space, name)
        if name.startswith("_") or isinstance(found, (type, types.ModuleType, dt.DType)):
            continue
        if callable(found) and getattr(found, "__module__", "").startswith("dovetail"):
            yield name, found


def _names(*spaces: Any) -> list[str]:
    return sorted({n for s in spaces for n, _ in _public(s)} - APART)


EVERY = [(s, n) for s, m in {**NAMESPACES, "F": F}.items() for n in _names(m)
         if s not in ("random", "func") and "dropout" not in n]  # fmt: skip


def _found(space: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(F if space == "F" else NAMESPACES[space], name)
    return found


# --- by construction ------------------------------------------------------------------------------


@pytest.mark.parametrize("space", NAMESPACES)
def test_undecorated_public_function_is_an_op_or_is_listed(space: str) -> None:
    undecorated = {n for n, f in _public(NAMESPACES[space]) if not hasattr(f, "widen")}
    assert undecorated <= {*FUNCTIONS, *UNDECORATED}


def test_network_functions_compute_in_float32_or_are_listed() -> None:
    given = {n for n in F.__all__ if getattr(getattr(F, n), "widen", None) != "first"}
    assert given == NOT_WIDENED_FUNCTIONS


def test_new_function_computes_in_float32_by_default() -> None:
    @dt.extend.arguments.public
    def squares_summed(x: dt.Tensor) -> dt.Tensor:
        return dt.sqrt((x * x).sum())

    assert squares_summed(dt.asarray([300.0, 400.0], dtype=dt.float16)).item() == 500.0


# --- values ---------------------------------------------------------------------------------------


def _as_half(case: Any, half: dt.DType, want: dt.DType) -> Any:
    """Return arrays as tensors of `want` that hold half-precision values."""
    if isinstance(case, (list, tuple)):
        return type(case)(_as_half(x, half, want) for x in case)
    if not isinstance(case, np.ndarray):
        return case
    if case.dtype.kind != "f":
        return dt.asarray(case)
    return dt.copy(dt.asarray(case).astype(half).astype(want)).requires_grad_()


def _tensors(found: Any) -> list[dt.Tensor]:
    if isinstance(found, (list, tuple)):
        return [y for x in found for y in _tensors(x)]
    return [found] if isinstance(found, dt.Tensor) else []


def _values(x: dt.Tensor) -> np.ndarray:
    return x.detach().astype(dt.float64).numpy()


def _units(found: dt.Tensor, exact: dt.Tensor, half: dt.DType) -> float:
    """Return the largest error in units of the last place of the exact value in half precision."""
    got, want = _values(found), _values(exact)
    with np.errstate(all="ignore"):
        size = np.where(np.isfinite(want), np.abs(want), 0.0)
        power = np.floor(np.log2(np.maximum(size, SMALLEST[half])))
        unit = np.maximum(2.0 ** (power - DIGITS[half] + 1), SMALLEST[half])
        over = np.isinf(got) & (np.abs(want) > LARGEST[half]) & (np.sign(got) == np.sign(want))
        same = (got == want) | (np.isnan(got) & np.isnan(want)) | over
        errors = np.where(same, 0.0, np.abs(got - want) / unit)
    return float(np.nan_to_num(errors, nan=np.inf).max(initial=0.0))


def _calls(space: str, name: str, half: dt.DType) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield operands in half precision and float64, and the results of a function for both."""
    function = _found(space, name)
    for case in (*CASES, *MORE.get(name, ())):
        short, long = (_as_half(case, half, d) for d in (half, dt.float64))
        try:
            found, exact = function(*short), function(*long)
        except (dt.DovetailError, TypeError, AttributeError, ValueError, IndexError):
            continue  # it does not take such operands
        yield short, long, found, exact


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize(("space", "name"), EVERY)
def test_half_results_are_within_a_unit_of_float64(space: str, name: str, half: dt.DType) -> None:
    reached = False
    for _, _, found, exact in _calls(space, name, half):
        for x, y in zip(_tensors(found), _tensors(exact), strict=True):
            if x.dtype.kind == "f":
                assert _units(x, y, half) <= 1
                reached = reached or x.dtype is half
    if getattr(_found(space, name), "widen", False):
        assert reached or name in (*WITHOUT_FLOATS, *MAKERS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize(("space", "name"), EVERY)
def test_half_gradients_are_within_two_roundings_of_the_largest(
    space: str, name: str, half: dt.DType
) -> None:
    # the rounding of a result is in its gradient up to three times
    roundings = 4 if name in BY_RESULT else 2
    for short, long, found, exact in _calls(space, name, half):
        if not _differentiate(found, exact) or name in CANCELLED:
            continue
        for a, b in zip(_tensors(short), _tensors(long), strict=True):
            if a.grad is not None and b.grad is not None:
                _assert_near(_values(a.grad), _values(b.grad), half, roundings)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize(("space", "name"), [e for e in EVERY if e[1] in CANCELLED])
def test_half_gradients_with_cancellation_equal_float32(
    space: str, name: str, half: dt.DType
) -> None:
    function, reached = _found(space, name), False
    for case in CASES:
        short, wide = (_as_half(case, half, d) for d in (half, dt.float32))
        try:
            found, exact = function(*short), function(*wide)
        except (dt.DovetailError, TypeError, AttributeError):
            continue  # it does not take such operands
        assert _differentiate(found, exact)
        for a, b in zip(_tensors(short), _tensors(wide), strict=True):
            if a.grad is not None:
                np.testing.assert_array_equal(_values(a.grad), _values(b.grad.astype(half)))
                reached = True
    assert reached


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("name", BY_RESULT)
def test_half_gradients_by_result_are_those_of_the_rounded_result(
    name: str, half: dt.DType
) -> None:
    reached = False
    for short, _, found, _ in _calls("dt", name, half):
        (x,), slope = _tensors(short), BY_RESULT[name](_values(found))
        found.backward(dt.full_like(found.detach(), 0.75))
        fine = np.isfinite(slope)
        exact = dt.asarray(0.75 * slope[fine], dtype=dt.float64)
        assert _units(dt.asarray(_values(x.grad)[fine]), exact, half) <= 1
        reached = reached or fine.any()
    assert reached


def _differentiate(*results: Any) -> bool:
    """Return True after the first tensors of results got a gradient, False if one has none."""
    firsts = [
        x for x in zip(*map(_tensors, results), strict=True) if all(y.requires_grad for y in x)
    ]
    if not firsts:
        return False
    try:
        for x in firsts[0]:
            x.backward(dt.full_like(x.detach(), 0.75))
    except dt.GradientError:
        return False
    return True


def _assert_near(got: np.ndarray, want: np.ndarray, half: dt.DType, roundings: int) -> None:
    largest = float(np.max(np.abs(want), initial=0.0))
    if not largest <= LARGEST[half]:  # no half holds it
        return
    bound = max(roundings * largest * 2.0 ** -DIGITS[half], SMALLEST[half])
    assert np.max(np.abs(got - want), initial=0.0) <= bound


# --- regressions ----------------------------------------------------------------------------------


def half(*values: float, dtype: dt.DType = dt.float16) -> dt.Tensor:
    return dt.asarray(values, dtype=dtype)


def test_clip_grad_norm_of_halves_with_overflowing_squares_scales_them() -> None:
    w = half(0.0, 0.0).requires_grad_()
    (w * half(300.0, 400.0)).sum().backward()
    assert dt.nn.utils.clip_grad_norm_([w], 1.0).item() == 500.0
    assert w.grad.tolist() == half(0.6, 0.8).tolist()


def test_clip_grad_norm_with_a_norm_beyond_half_range_keeps_gradients() -> None:
    w = half(0.0, 0.0).requires_grad_()
    (w * half(60000.0, 60000.0)).sum().backward()
    dt.nn.utils.clip_grad_norm_([w], 1.0)
    assert w.grad.tolist() == half(0.7071, 0.7071).tolist()


def test_gradient_of_mean_of_many_halves_is_not_zero() -> None:
    x = dt.ones(65520, dtype=dt.float16).requires_grad_()
    x.mean().backward()
    assert x.grad[0].item() == half(1 / 65520).item()


def test_gradient_of_rows_read_often_counts_each_read() -> None:
    table = dt.ones((2, 1), dtype=dt.float16).requires_grad_()
    dt.take(table, dt.zeros(3000, dtype=dt.int64), axis=0).sum().backward()
    assert table.grad.tolist() == [[3000.0], [0.0]]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "var", "std", "mean"])
def test_reduction_of_more_elements_than_a_half_can_count_is_right(name: str) -> None:
    values = np.resize([0.0, 1.0], 66000)
    function = getattr(dt, name)
    found = function(dt.asarray(values, dtype=dt.float16))
    assert _units(found, function(dt.asarray(values, dtype=dt.float64)), dt.float16) <= 1


def test_methods_and_transforms_round_once() -> None:
    x = half(300.0, 400.0, 200.0)
    want = half(np.std([300.0, 400.0, 200.0])).item()
    assert x.std().item() == np.std(x).item() == dt.jit(dt.std)(x).item() == want
    assert dt.vmap(dt.std)(dt.stack([x, x])).tolist() == [want, want]
    with dt.eager():
        assert dt.std(x).item() == want


CONTRACTIONS = (
    ("ij,jk,kl->il", 3), ("ij,jk,kl,lm->im", 4), ("ij,jk->i", 2), ("ij,jk->", 2), ("ij,ij,ij->", 3),
    ("ii,jk,kl->jl", 3),
)  # fmt: skip


@pytest.mark.parametrize("half_dtype", HALVES, ids=str)
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(("subscripts", "count"), CONTRACTIONS)
def test_einsum_of_several_ops_rounds_once(
    subscripts: str, count: int, optimize: bool, half_dtype: dt.DType
) -> None:
    operands = [*np.random.default_rng(0).uniform(-3, 3, (count, 8, 8))]
    short, long = (_as_half(operands, half_dtype, d) for d in (half_dtype, dt.float64))
    found = dt.einsum(subscripts, *short, optimize=optimize)
    exact = dt.einsum(subscripts, *long, optimize=optimize)
    assert found.dtype is half_dtype and _units(found, exact, half_dtype) <= 1
    same = dt.einsum(subscripts, *(x.astype(dt.float32) for x in short), optimize=optimize)
    assert found.tolist() == same.astype(half_dtype).tolist()
    assert np.einsum(subscripts, *short, optimize=optimize).tolist() == found.tolist()


def test_einsum_with_an_intermediate_beyond_half_range_is_finite() -> None:
    x = dt.full((4, 4), 200.0, dtype=dt.float16)
    assert dt.einsum("ij,jk,kl->il", x, x, x * 2.0**-14)[0, 0].item() == half(7812.5).item()
    assert dt.einsum("ij,jk->k", x, x * 2.0**-8)[0].item() == 200.0**2 * 2.0**-4


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize(("half_dtype", "total"), [(dt.float16, 3000.0), (dt.bfloat16, 3008.0)])
def test_index_add_of_many_halves_rounds_once(
    half_dtype: dt.DType, total: float, device: str
) -> None:
    ones = dt.ones(3000, dtype=half_dtype, device=device)
    places = dt.zeros(3000, dtype=dt.int64, device=device)
    start = dt.zeros(2, dtype=half_dtype, device=device)
    assert dt.index_add(start, 0, places, ones).tolist() == [total, 0.0]
    assert start.index_add_(0, places, 1) is start
    assert start.tolist() == [total, 0.0]
    table = dt.zeros((2, 2), dtype=half_dtype, device=device)
    table[:, 1].scatter_add_(0, places, ones)
    assert table.tolist() == [[0.0, total], [0.0, 0.0]]
    assert dt.bincount(places, ones).tolist() == [total]


def test_index_add_of_halves_has_gradients() -> None:
    x, source = half(1.0, 2.0).requires_grad_(), half(3.0, 4.0, 5.0).requires_grad_()
    (dt.index_add(x, 0, [1, 1, 0], source) * half(2.0, 3.0)).sum().backward()
    assert (x.grad.tolist(), source.grad.tolist()) == ([2.0, 3.0], [3.0, 3.0, 2.0])


def test_index_add_of_halves_out_of_range_keeps_the_tensor() -> None:
    x = half(1.0, 2.0)
    with pytest.raises(dt.OutOfRangeError, match="index_add"):
        x.index_add_(0, [0, 2], 1)
        x.tolist()
    assert x.tolist() == [1.0, 2.0]


def test_function_with_out_rounds_into_it() -> None:
    out = dt.empty(3, dtype=dt.float16)
    assert dt.round(half(0.123, 2.345, 300.5), 2, out=out) is out
    assert out.tolist() == half(0.12, 2.35, 300.5).tolist()


def test_result_dtype_follows_promotion() -> None:
    a, b, c = half(1.0), half(2.0, dtype=dt.bfloat16), dt.asarray([1.0])
    assert dt.trapezoid(a, a).dtype is dt.float16
    assert dt.fmod(a, b).dtype is dt.fmod(a, c).dtype is dt.float32
    assert dt.gradient(half(1.0, 2.0), [0.0, 1.0]).dtype is dt.float16


@pytest.mark.parametrize("name", MAKERS)
def test_window_of_halves_is_rounded_once(name: str) -> None:
    space = dt.fft if "freq" in name else dt
    args = (9, 12.0) if name == "kaiser" else (9,)
    found = getattr(space, name)(*args, dtype=dt.float16)
    assert _units(found, getattr(space, name)(*args, dtype=dt.float64), dt.float16) <= 1


STEPS = {
    "Adam": {}, "AdamW": {}, "Adamax": {}, "NAdam": {}, "RAdam": {}, "RMSprop": {}, "Adagrad": {},
    "Adadelta": {"lr": 1.0}, "SGD": {"momentum": 0.9}, "ASGD": {}, "Rprop": {}, "SparseAdam": {},
}  # fmt: skip


@pytest.mark.parametrize("half_dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", STEPS)
def test_optimizer_step_of_halves_is_the_rounded_float32_step(
    name: str, half_dtype: dt.DType
) -> None:
    after = []
    for d in (half_dtype, dt.float32):
        w = dt.asarray([1.0, 2.0, 3.0], dtype=d).requires_grad_()
        optimizer = getattr(dt.optim, name)([w], **{"lr": 0.125, **STEPS[name]})
        (w * dt.asarray([304.0, 400.0, 2.0**-13], dtype=d)).sum().backward()
        optimizer.step()
        after.append(w)
        kept = [x for x in optimizer.state[w].values() if isinstance(x, dt.Tensor)]
        assert all(x.dtype is dt.float32 for x in kept)
    assert after[0].tolist() == after[1].astype(half_dtype).tolist()


@pytest.mark.parametrize("half_dtype", HALVES, ids=str)
def test_running_mean_of_a_half_parameter_does_not_stall(half_dtype: dt.DType) -> None:
    w = dt.asarray([1.0], dtype=half_dtype).requires_grad_()
    optimizer = dt.optim.ASGD([w], lr=0.5, lambd=0.0, alpha=0.0, t0=0)
    for step in range(600):  # from 1 to 0.5 and back
        w.grad = dt.asarray([1.0 if step % 2 == 0 else -1.0], dtype=half_dtype)
        optimizer.step()
    after_the_first = (299 * 0.5 + 300 * 1.0) / 599  # like PyTorch, whose second step starts anew
    assert optimizer.state[w]["ax"].item() == pytest.approx(after_the_first, abs=1e-6)
    mean, n = dt.zeros(1), 0  # a float32 mean of halves
    for n in range(1, 601):
        mean += (dt.asarray([0.5 if n % 2 else 1.0], dtype=half_dtype) - mean) / n
    assert mean.item() == pytest.approx(0.75, abs=1e-6)
