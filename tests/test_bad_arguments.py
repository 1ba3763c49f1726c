"""Wrong arguments of every public function raise an error of dovetail that names the op,
immediately.

The fuzzer is `bad_arguments.py`. Its findings are below it, by kind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import bad_arguments as bad
import dovetail as dt
import numpy as np
import pytest

pytest.importorskip("dovetail_cpu_llvm", reason="the calls are made on the CPU")


def test_calls_with_bad_arguments_raise_named_errors(
    thinned: Callable[..., Any], is_plain: bool
) -> None:
    assert bad.trouble(bad.calls(0, len(thinned(range(2000), 12 if is_plain else 4)))) == []


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(1, 21))
def test_100000_calls_with_bad_arguments_raise_named_errors(seed: int) -> None:
    assert bad.in_another_process(seed, 5000, 1700) == []


def test_fuzzer_calls_every_public_function() -> None:
    called = {t.text for t in bad.targets()}
    assert {"dt.sum", "dt.fft.fft", "dt.linalg.outer", "dt.random.normal"} <= called
    assert {"dt.sparse.to_scipy"} <= called
    assert {"dt.ones(3).reshape", "dt.memory.set_limit", "dt.autograd.vjp"} <= called
    assert len(called) > 900
    functions = {f"dt.{n}" for n in dt.__all__ if type(getattr(dt, n)) is type(dt.sum)}
    assert functions <= called


def test_fuzzer_is_deterministic_for_a_seed() -> None:
    def lines(seed: int) -> list[str]:
        return [line for line, _ in bad.calls(seed, 50)]

    assert lines(5) == lines(5) != lines(6)


def test_fuzzer_detects_foreign_errors_and_errors_without_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def foreign(x: Any) -> Any:
        return dt.reshape(x, 1).nothing_of_that_name

    def unnamed(x: Any) -> None:
        raise dt.ShapeError("something is wrong")

    for function, says in ((foreign, "foreign AttributeError"), (unnamed, "unnamed ShapeError")):
        monkeypatch.setattr(dt, "sum", function)
        (found,) = bad.trouble([("dt.sum(dt.ones(1))", bad.Target("", (), frozenset({"sum"})))])
        assert says in found


def test_fuzzer_detects_hangs_and_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bad, "SECONDS", 0.2)
    line = "__import__('time').sleep(5)"
    assert "takes longer" in bad.trouble([(line, bad.Target("", (), frozenset()))])[0]
    (found,) = bad.in_another_process(0, 1, 100, "__import__('os').abort()")
    assert found.startswith("__import__('os').abort()\n    the process ended: -6")


# --- integers, axes, shapes ----------------------------------------------------------------------

Call = Callable[[], Any]


def assert_raises(call: Call, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        call()
    assert isinstance(caught.value, dt.DovetailError)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "prod", "any", "flip", "squeeze", "var"])
@pytest.mark.parametrize("axis", [dt.asarray([0], device="reference"), "", {}, set(), 1.0, [None]])
def test_non_integer_axis_raises_type_error(name: str, axis: Any) -> None:
    x = dt.ones((1, 2), device="reference")
    assert_raises(
        lambda: getattr(dt, name)(x, axis=axis), TypeError, f"^{name}: axis must be an int"
    )
    assert_raises(
        lambda: getattr(dt, name)(x, axis=axis), ValueError, f"^{name}: axis must be an int"
    )


def test_integer_arrays_without_dimensions_are_accepted_as_integers() -> None:
    x = dt.arange(6, device="reference")
    two = dt.asarray(2, device="reference")
    assert dt.reshape(x, (two, 3)).tolist() == dt.reshape(x, (2, 3)).tolist()
    assert dt.sum(dt.reshape(x, (2, 3)), axis=dt.asarray(1)).tolist() == [3, 12]
    for refused in (dt.asarray(2.0), dt.asarray(True)):
        with pytest.raises(dt.DovetailError):
            dt.eye(refused)  # type: ignore[arg-type]  # no int


def test_numpy_integers_are_accepted_as_integers() -> None:
    x = dt.reshape(dt.arange(6, device="reference"), (np.int64(2), np.uint8(3)))
    assert dt.sum(x, axis=np.int64(1)).tolist() == dt.sum(x, axis=1).tolist()
    assert dt.flip(x, axis=np.int8(-1)).tolist() == dt.flip(x, axis=-1).tolist()
    assert dt.expand_dims(x, np.int64(0)).shape == (1, 2, 3)
    assert dt.zeros(np.int32(3), device="reference").shape == (3,)
    assert dt.eye(2, k=np.int64(1), device="reference").tolist() == [[0, 1], [0, 0]]


def test_mask_in_place_of_an_axis_raises() -> None:
    x = dt.ones(3, device="reference")
    assert_raises(
        lambda: x.var(dt.asarray([True, False, True], device="reference")), TypeError, "var:"
    )


X = dt.ones((3, 3), device="reference")
NOT_INTEGERS: list[tuple[Call, str]] = [
    (lambda: dt.repeat(X, 2.7), "repeat: repeats must be an int"),  # type: ignore[arg-type]
    (lambda: dt.tril(X, k=1.7), "tril: k must be an int"),  # type: ignore[arg-type]
    (lambda: dt.round(X, decimals=1.5), "round: decimals must be an int"),  # type: ignore[arg-type]
    (lambda: dt.random.manual_seed(1.7), "manual_seed: seed must be an int"),  # type: ignore[arg-type]
    (lambda: dt.memory.set_limit("reference", "abc"), "set_limit: nbytes must be an int"),  # type: ignore[arg-type]
    (lambda: dt.topk(X, 1.5), "topk: k must be an int"),  # type: ignore[arg-type]
    (lambda: dt.linspace(0, 1, 2.5), "linspace: num must be an int"),  # type: ignore[arg-type]
    (lambda: dt.arange("a"), "arange: stop must be a number"),
    (lambda: dt.sum(X, keepdims="no"), "sum: keepdims must be True or False"),  # type: ignore[arg-type]
    (lambda: dt.einsum(X, [0, 1]), "einsum: subscripts must be a string"),  # type: ignore[arg-type]
    (lambda: dt.random.set_state((dt.ones(2), dt.ones(3))), "set_state: state must be"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("number", range(len(NOT_INTEGERS)))
def test_values_of_a_wrong_kind_raise_type_errors(number: int) -> None:
    call, says = NOT_INTEGERS[number]
    assert_raises(call, TypeError, says)


def test_tensor_in_place_of_axes_of_transpose_raises() -> None:
    assert_raises(lambda: dt.transpose(X, X), ValueError, "^transpose: expected ints")  # type: ignore[arg-type]
    assert_raises(lambda: X.transpose(X.to_sparse_csr()), ValueError, "^transpose: expected ints")


WRONG_KINDS: list[tuple[Call, str]] = [
    (lambda: dt.linalg.vector_norm(X, ord=10**400), "vector_norm: ord"),
    (lambda: dt.kernel(len), "kernel: function must be defined with def"),
    (lambda: dt.kernel(functools.partial(len)), "kernel: function must be defined with def"),
    (lambda: X.cumprod(NotImplemented), "axis must be an int"),  # type: ignore[arg-type]
    (lambda: X.cumsum(np.array([1, 2])), "axis must be an int"),  # type: ignore[arg-type]
    (lambda: dt.set_default_dtype(np.str_("a")), "no dovetail dtype"),
]


@pytest.mark.parametrize("number", range(len(WRONG_KINDS)))
def test_errors_of_python_or_numpy_become_errors_of_dovetail(number: int) -> None:
    call, says = WRONG_KINDS[number]
    with pytest.raises(dt.DovetailError, match=says):
        call()


def test_rejected_random_state_changes_nothing() -> None:
    dt.random.manual_seed(3)
    before = dt.random.get_state()
    for state in ((dt.ones(2), dt.ones(3)), (1, "a"), (1,), (1, 2, 3), "ab", None):
        assert_raises(lambda state=state: dt.random.set_state(state), TypeError, "^set_state: ")  # type: ignore[misc]
    assert dt.random.get_state() == before
    assert dt.random.uniform(2, device="reference").shape == (2,)


def test_diagonal_outside_of_the_matrix_equals_the_nearest_outside_one() -> None:
    numpy = np.ones((3, 3), np.float32)
    for k in (-(2**64), -5, -1, 0, 2, 5, 2**63, 2**64):
        near = max(-5, min(k, 5))
        assert dt.eye(3, k=k, device="reference").tolist() == np.eye(3, k=near).tolist()
        assert dt.tril(X, k=k).tolist() == np.tril(numpy, near).tolist()
        assert dt.triu(X, k=k).tolist() == np.triu(numpy, near).tolist()


def test_tensordot_accepts_one_axis_per_operand() -> None:
    a = np.arange(6.0).reshape(2, 3)
    x = dt.asarray(a, device="reference")
    have = dt.tensordot(x, x, axes=(1, 1)).tolist()
    assert have == np.tensordot(a, a, axes=(1, 1)).tolist()
    assert_raises(
        lambda: dt.tensordot(x, x, axes=("a", "b")), TypeError, "tensordot: axes must be an int"
    )  # type: ignore[arg-type]
    assert_raises(lambda: dt.tensordot(x, x, axes=(1, 0, 1)), ValueError, "tensordot: axes")  # type: ignore[arg-type]


def test_diff_with_huge_n_returns_immediately() -> None:
    assert dt.diff(dt.ones((2, 3), device="reference"), n=2**31).shape == (2, 0)
    assert dt.diff(dt.ones((2, 3), device="reference"), n=3, axis=0).shape == (0, 3)


# --- sizes ---------------------------------------------------------------------------------------

DEEP: list[tuple[Call, str]] = [
    (lambda: dt.ones((1,) * 65, device="reference"), "ones"),
    (lambda: dt.ones(1, device="reference").reshape((1,) * 65), "reshape"),
    (lambda: dt.ones((1,) * 64, device="reference")[None], "index"),
    (lambda: dt.expand_dims(dt.ones((1,) * 64, device="reference"), 0), "expand_dims"),
    (lambda: dt.stack([dt.ones((1,) * 64, device="reference")]), "stack"),
    (lambda: dt.broadcast_to(dt.ones(1, device="reference"), (1,) * 65), "broadcast_to"),
    (lambda: dt.tile(dt.ones(1, device="reference"), (1,) * 65), "tile"),
    (lambda: dt.tensordot(*[dt.ones((1,) * 40, device="reference")] * 2, axes=0), "tensordot"),
    (lambda: dt.sparse_coo_tensor([[0]] * 65, [1.0], device="reference"), "sparse_coo_tensor"),
]


@pytest.mark.parametrize("number", range(len(DEEP)))
def test_more_than_64_dimensions_raise_with_the_op_name(number: int) -> None:
    call, name = DEEP[number]
    assert_raises(call, ValueError, rf"^{name}: .*(at most 64 dimensions, got |\b)(65|80)\b")


def test_64_dimensions_are_printed() -> None:
    assert str(dt.ones((1,) * 64, device="reference")) == "[" * 64 + "1." + "]" * 64


@pytest.mark.parametrize("n", [2**63, 2**64, 10**400, -1])
def test_size_of_2_to_the_63_raises(n: int) -> None:
    x = dt.ones(1, device="reference")
    for call in (
        lambda: dt.empty(n, device="reference"),
        lambda: dt.zeros((1, n), device="reference"),
        lambda: dt.broadcast_to(x, (n,)),
        lambda: dt.linspace(0, 1, n, device="reference"),
        lambda: dt.repeat(x, n),
        lambda: dt.eye(n, device="reference"),
        lambda: dt.random.uniform(n, device="reference"),
    ):
        with pytest.raises((dt.ShapeError, dt.ArgumentError), match=r"2\*\*63|negative"):
            call()


# --- numbers -------------------------------------------------------------------------------------

HUGE = 10**400
NUMBERS: list[Callable[[dt.Tensor], Any]] = [
    lambda x: x + HUGE,
    lambda x: -HUGE * x,
    lambda x: x.minimum_(HUGE),
    lambda x: dt.maximum(x, HUGE, out=x),
    lambda x: x.__setitem__(0, HUGE),
    lambda x: x.__setitem__(x > 0, HUGE),
    lambda x: x.__setitem__([0], HUGE),
    lambda x: x.__setitem__(slice(None), [HUGE]),
    lambda x: x.fill_(HUGE),
    lambda x: dt.full_like(x, HUGE),
    lambda x: dt.where(x > 0, x, HUGE),
    lambda x: dt.clip(x, 0, HUGE) if x.dtype.kind == "f" else x + HUGE,
    lambda x: x.index_add(0, [0], HUGE),
]
COMPARISONS: list[tuple[Callable[[dt.Tensor], Any], Any]] = [  # comparisons of integers are exact
    (lambda x: dt.searchsorted(x, HUGE), 2),
    (lambda x: dt.isin(x, HUGE), [False, False]),
    (lambda x: x == HUGE, [False, False]),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8"])
@pytest.mark.parametrize("number", range(len(NUMBERS)))
def test_number_beyond_the_dtype_raises_immediately(device: str, dtype: str, number: int) -> None:
    x = dt.asarray([1, 2], dtype=dtype, device=device)
    with pytest.raises(dt.ValueOverflowError, match="fit"):
        NUMBERS[number](x)
    assert x.tolist() == [1, 2]
    assert (x + 1).tolist() == [2, 3]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8"])
@pytest.mark.parametrize("number", range(len(COMPARISONS)))
def test_comparison_with_a_huge_int_is_exact_for_integers_and_raises_for_floats(
    device: str, dtype: str, number: int
) -> None:
    compare, answer = COMPARISONS[number]
    x = dt.asarray([1, 2], dtype=dtype, device=device)
    if x.dtype.is_integer:
        assert compare(x).tolist() == answer
    else:
        with pytest.raises(dt.ValueOverflowError, match="fit"):
            compare(x)


def test_largest_int_that_fits_a_float_is_accepted(device: str) -> None:
    most = (1 << 1024) - (1 << 970) - 1
    assert (dt.ones(1, dtype="float64", device=device) * most).item() == float(most)
    with pytest.raises(OverflowError, match=r"multiply: an int of 1024 bits does not fit float64"):
        dt.ones(1, dtype="float64", device=device) * (most + 1)


# --- tensors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", [[1, 2], None, "abc", object(), 1.5])
def test_non_tensor_raises_with_a_remedy(what: Any) -> None:
    for name in (
        "sum", "argmax", "flip", "squeeze", "expand_dims", "unstack", "split", "ravel", "softmax",
        "take_along_axis", "nonzero", "tril", "sort", "topk", "unique_all", "cumulative_sum",
        "diff", "repeat", "tile", "roll", "concat", "stack", "matrix_transpose", "reshape",
        "broadcast_to", "permute_dims", "moveaxis", "swapaxes", "astype", "clip",
    ):  # fmt: skip
        function = getattr(dt, name)
        args = {"take_along_axis": ([0],), "split": (1,), "topk": (1,), "repeat": (1,),
                "tile": (1,), "roll": (1,), "reshape": (1,), "broadcast_to": (1,),
                "moveaxis": (0, 0), "swapaxes": (0, 0), "astype": ("int8",)}  # fmt: skip
        with pytest.raises(TypeError, match=f"^{name}: ") as caught:
            function(what, *args.get(name, ()))
        assert isinstance(caught.value, dt.DovetailError)
        if not isinstance(what, list) and name not in ("concat", "stack"):
            assert "dt.asarray" in str(caught.value)


def test_sparse_functions_name_the_required_operand() -> None:
    x = dt.ones(3, device="reference")
    for function in (dt.sparse.to_dense, dt.sparse.to_scipy, dt.sparse.to_pydata, dt.sparse.spy):
        name = function.__name__
        assert_raises(lambda f=function: f(x), TypeError, f"^{name}: expected a sparse tensor")  # type: ignore[misc]
        assert_raises(lambda f=function: f([1]), TypeError, f"^{name}: expected a tensor, got list")  # type: ignore[misc]


def test_composed_function_names_itself_and_the_failing_op() -> None:
    x = dt.ones(3, device="reference")
    assert_raises(lambda: dt.clip(x, min="a"), TypeError, "^clip: maximum: expected tensors")  # type: ignore[arg-type]
    assert_raises(
        lambda: dt.softmax(dt.ones((), device="reference")), IndexError, "^softmax: axis -1"
    )


def test_unshareable_memory_raises_buffer_and_sharing_error() -> None:
    with pytest.raises(BufferError) as caught:
        dt.from_dlpack(np.array("a"))
    assert isinstance(caught.value, dt.SharingError)


def test_mask_with_a_size_of_zero_selects_nothing(device: str) -> None:
    a = np.ones((2, 3), np.float32)
    for shape in ((0, 3), (2, 0), (0, 0), (0,)):
        x, mask = dt.asarray(a, device=device), dt.zeros(shape, dtype="bool", device=device)
        assert x[mask].shape == a[np.zeros(shape, bool)].shape
        x[mask] = 7.0
        assert x.tolist() == a.tolist()
    with pytest.raises(IndexError, match="mask of shape"):
        dt.asarray(a, device=device)[dt.zeros((0, 4), dtype="bool", device=device)]


def test_rank_threshold_per_matrix_is_broadcast_to_the_batch(device: str) -> None:
    rng = np.random.default_rng(0)
    a = dt.asarray(rng.normal(size=(2, 4, 3)), dtype=dt.float32, device=device)
    b = dt.asarray(rng.normal(size=(2, 4, 2)), dtype=dt.float32, device=device)
    share = dt.asarray([1e-6, 0.9], dtype=dt.float32, device=device)
    found = dt.linalg.lstsq(a, b, share)
    assert dt.allclose(found.solution, dt.linalg.pinv(a, rtol=share) @ b, atol=1e-5)
    assert found.rank.tolist() == dt.linalg.matrix_rank(a, rtol=share).tolist() == [3, 1]
    assert_raises(lambda: dt.linalg.lstsq(a, b, dt.ones(3, device=device)), ValueError, "^lstsq: ")


def test_unhashable_axisless_or_huge_arguments_are_named() -> None:
    x = dt.ones((2, 3), device="reference")
    assert_raises(lambda: dt.fft.ihfft(x, 10**5000), ValueError, "^ihfft: n must be at most")
    assert_raises(lambda: dt.fft.fft2(x, (10**5000, 2)), ValueError, "^fft2: n must be at most")
    assert_raises(
        lambda: dt.lexsort(np.array(1)), ValueError, "^lexsort: keys must have at least 1 dimension"
    )
    matrix = pytest.importorskip("scipy.sparse").eye_array(3)
    assert_raises(lambda: dt.sparse.from_scipy(matrix, layout=set()), ValueError, "layout must be")
    assert_raises(
        lambda: dt.unfold(x, 10**5000), ValueError, "^unfold: kernel_size must be at least 1"
    )
