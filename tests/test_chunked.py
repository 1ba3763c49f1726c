"""Reductions and products of arrays in chunks: the bits of the whole array."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import dovetail as dt
import numpy as np
import pytest
from dovetail import chunked
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CHUNK, BLOCK, GROUP = 4096, 256, 65536
WHOLE: dict[str, Callable[..., dt.Tensor]] = {
    name: getattr(dt.linalg if name == "vector_norm" else dt, name)
    for name in ("sum", "prod", "mean", "var", "std", "vector_norm")
}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3 * CHUNK + 100)).astype("f4")
# `float.hex` of sums in another order differs in about half of the cases.
FEW = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def split(x: Any, chunks: Any) -> Any:
    """Return a Dask array with tensors or NumPy arrays as chunks."""
    return da.from_array(x, chunks=chunks, asarray=False)


def computed(x: Any) -> Any:
    return x.compute(scheduler="synchronous")


def same_bits(found: Any, want: dt.Tensor) -> bool:
    """Return True if an array and a tensor have the same dtype, shape and bytes."""
    a, b = np.asarray(found), want.numpy()
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@st.composite
def cuts(draw: st.DrawFn, length: int, multiple: int) -> tuple[int, ...]:
    """Draw sizes of chunks along an axis, with borders at multiples."""
    places = st.integers(1, (length - 1) // multiple)
    borders = sorted(draw(st.sets(places, max_size=4)))
    return tuple(int(n) for n in np.diff([0, *(b * multiple for b in borders), length]))


@pytest.mark.parametrize("name", WHOLE)
@FEW
@given(chunks=cuts(X.shape[1], CHUNK))
def test_reduction_of_aligned_chunks_has_the_bits_of_the_whole(
    device: dt.Device, name: str, chunks: tuple[int, ...]
) -> None:
    x = dt.asarray(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = getattr(chunked, name)(split(x, (1, chunks)), axis=1)
    assert found.chunks == ((1, 1),)
    found = computed(found)
    assert type(found) is dt.Tensor and found.device is device
    assert same_bits(found, WHOLE[name](x, axis=1))


@pytest.mark.parametrize("name", ["sum", "std"])
@FEW
@given(chunks=cuts(X.shape[1], 1))
def test_reduction_of_other_chunks_has_the_bits_of_the_whole(
    name: str, chunks: tuple[int, ...]
) -> None:
    x = dt.asarray(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dt.DovetailWarning)
        found = getattr(chunked, name)(split(x, (2, chunks)), axis=1)
    assert same_bits(computed(found), WHOLE[name](x, axis=1))


def test_dasks_own_sum_depends_on_the_chunks() -> None:
    """Otherwise the tests of this file would show nothing."""
    sums = {float(computed(split(dt.asarray(X[0]), n).sum())) for n in (1000, 3000, 5000, 9000)}
    assert len(sums) > 1


@pytest.mark.parametrize("axis", [None, 0, (0, 2), (2, 1), (-1,), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes_are_those_of_the_whole(axis: Any, keepdims: bool) -> None:
    x = RNG.normal(size=(70, 3, 95)).astype("f4")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dt.DovetailWarning)
        found = chunked.sum(split(x, (30, 2, 50)), axis=axis, keepdims=keepdims)
    want = dt.sum(dt.asarray(x), axis=axis, keepdims=keepdims)
    assert found.shape == want.shape and same_bits(computed(found), want)


def test_rows_that_are_whole_blocks_need_no_other_chunks() -> None:
    x = RNG.normal(size=(200, 64)).astype("f4")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = chunked.sum(split(x, ((64, 128, 8), 64)))
    assert same_bits(computed(found), dt.sum(dt.asarray(x)))


def test_long_sum_of_one_block_per_chunk_is_folded_in_levels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = RNG.normal(size=9 * CHUNK + 5).astype("f4")
    whole = dt.sum(dt.asarray(x))
    sizes: list[int] = []
    fold = chunked._fold_all  # type: ignore[attr-defined]  # the last step
    monkeypatch.setattr(chunked, "_fold_all", lambda *a: (sizes.append(a[5].shape[0]), fold(*a))[1])
    assert same_bits(computed(chunked.sum(split(x, CHUNK))), whole) and sizes == [10]


@pytest.mark.parametrize("name", ["float16", "float64", "complex64", "int8", "bool"])
@pytest.mark.parametrize("function", WHOLE)
def test_dtypes_are_those_of_the_whole(name: str, function: str) -> None:
    if function == "vector_norm" and name in ("int8", "bool"):
        pytest.skip("vector_norm is of floats")
    values = RNG.normal(size=CHUNK + 3000) * 2 + 1
    x = dt.asarray(values + 1j * values[::-1] if name == "complex64" else values)
    x = x.astype(getattr(dt, name))
    found = getattr(chunked, function)(split(x, CHUNK))
    want = WHOLE[function](x)
    found = computed(found)
    assert found.dtype is want.dtype
    assert repr(found.tolist()) == repr(want.tolist())  # the complex product overflows to NaN


def test_dtype_of_sum_casts_the_elements_first() -> None:
    x = dt.asarray(X[0])
    found = computed(chunked.sum(split(x, CHUNK), dtype=dt.float16))
    assert found.dtype is dt.float16 and found.item() == dt.sum(x, dtype=dt.float16).item()


@pytest.mark.parametrize("p", [0, 1, 3, 0.5, -1, float("inf"), -float("inf")])
def test_norms_of_each_order_have_the_bits_of_the_whole(p: float) -> None:
    x = dt.asarray(X[0])
    found = computed(chunked.vector_norm(split(x, CHUNK), ord=p))
    assert same_bits(found, dt.linalg.vector_norm(x, ord=p))


@pytest.mark.parametrize("correction", [0.0, 1.5, 1e9])
def test_correction_of_variance_is_that_of_the_whole(correction: float) -> None:
    x = dt.asarray(X[0])
    found = computed(chunked.var(split(x, CHUNK), correction=correction))
    assert same_bits(found, dt.var(x, correction=correction))


def test_numpy_chunks_give_numpy_arrays() -> None:
    found = chunked.mean(split(X, (1, CHUNK)), axis=1)
    assert type(found._meta) is np.ndarray and found.dtype == np.float32
    assert type(computed(found)) is np.ndarray


def test_arrays_without_elements_are_those_of_the_whole() -> None:
    x = dt.zeros((0, 3))
    assert computed(chunked.sum(split(x, (1, 3)), axis=0)).tolist() == [0, 0, 0]
    assert computed(chunked.prod(split(x, (1, 3)), axis=1)).shape == (0,)
    with_hole = da.concatenate([split(X[0][:CHUNK], CHUNK), split(X[0][:0], 1), split(X[0], CHUNK)])
    want = dt.sum(dt.asarray(np.concatenate([X[0][:CHUNK], X[0]])))
    assert same_bits(computed(chunked.sum(with_hole)), want)


# --- products

A = RNG.normal(size=(3, GROUP + 5 * BLOCK + 10)).astype("f4")
B = RNG.normal(size=(A.shape[1], 4)).astype("f4")


@FEW
@given(chunks=cuts(A.shape[1], BLOCK))
def test_product_of_aligned_chunks_has_the_bits_of_the_whole(
    device: dt.Device, chunks: tuple[int, ...]
) -> None:
    a, b = dt.asarray(A), dt.asarray(B)
    with warnings.catch_warnings(), dt.vendor_products(False):
        warnings.simplefilter("error")
        found = chunked.matmul(split(a, (2, chunks)), split(b, (chunks, 3)))
        assert found.chunks == ((2, 1), (3, 1))
        assert same_bits(computed(found), a @ b)


@pytest.mark.parametrize("chunks", [1000, GROUP - BLOCK, GROUP, 256 * 100])
def test_product_does_not_depend_on_groups_and_other_chunks(chunks: int) -> None:
    a, b = dt.asarray(A), dt.asarray(B)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dt.DovetailWarning)
        found = [
            chunked.matmul(split(a, (3, chunks)), split(b, (5000, 4))),
            chunked.matmul(split(a[0], chunks), split(b, (chunks, 4))),
            chunked.matmul(split(a, (3, chunks)), split(b[:, 1], chunks)),
            chunked.vecdot(split(a[0], chunks), split(b[:, 1], chunks)),
        ]
    want = [a @ b, a[0] @ b, a @ b[:, 1], dt.vecdot(a[0], b[:, 1])]
    assert all(same_bits(computed(x), y) for x, y in zip(found, want, strict=True))


def test_batches_broadcast() -> None:
    a = dt.asarray(RNG.normal(size=(2, 1, 5, 600)).astype("f4"))
    b = dt.asarray(RNG.normal(size=(3, 600, 4)).astype("f4"))
    found = chunked.matmul(split(a, (1, 1, 5, 256)), split(b, (2, 512, 4)))
    assert same_bits(computed(found), a @ b)


@pytest.mark.parametrize("name", ["float16", "complex64", "int8"])
def test_dtypes_of_products_are_those_of_the_whole(name: str) -> None:
    d = getattr(dt, name)
    a, b = (dt.asarray(x[:, :1000]).astype(d) for x in (A * 9, B.T * 9))
    a = a * 1j + a if d.is_complex else a
    found = computed(chunked.matmul(split(a, (3, 512)), split(b.T, (512, 4))))
    assert found.dtype is d and found.tolist() == (a @ b.T).tolist()
    found = computed(chunked.vecdot(split(a, (3, 256)), split(b[:3], (3, 256))))
    assert found.dtype is d and found.tolist() == dt.vecdot(a, b[:3]).tolist()


def test_vecdot_along_another_axis() -> None:
    a = dt.asarray(RNG.normal(size=(600, 2)).astype("f4"))
    found = chunked.vecdot(split(a, (256, 1)), split(a, (512, 2)), axis=-2)
    assert same_bits(computed(found), dt.vecdot(a, a, axis=-2))


def test_memory_of_a_product_does_not_grow_with_k() -> None:
    """Each task has one chunk of each operand and the state of its result."""
    a = da.zeros((4, 20 * BLOCK), chunks=(4, BLOCK))
    (product,) = dask.optimize(chunked.matmul(a, a.T))
    loads = [len(task.dependencies) for task in dict(product.__dask_graph__()).values()]
    assert max(loads) <= 3


# --- what the user is told


def test_warning_names_chunks_that_avoid_it_at_the_users_line() -> None:
    x = split(X, (2, 1000))
    with pytest.warns(dt.DovetailWarning, match=r"^sum: .*4096.*rechunk\(\{1: 4096\}\)") as caught:
        chunked.sum(x, axis=1)
    assert caught[0].filename == __file__ and len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chunked.sum(x.rechunk({1: 4096}), axis=1)
    with pytest.warns(dt.DovetailWarning, match=r"^var: .*rechunk\(\{0: 2048, 1: -1\}\)") as caught:
        chunked.var(da.zeros((12388, 128), chunks=(1000, 64)), axis=None)
    assert len(caught) == 1


def test_warning_of_a_product_names_the_axis_of_the_operand() -> None:
    with pytest.warns(dt.DovetailWarning, match=r"rechunk\(\{0: 256\}\)") as caught:
        chunked.vecdot(split(X[0], 100), split(X[0], 100))
    assert len(caught) == 2


def test_new_chunks_have_no_more_elements_than_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "CHUNK_ELEMENTS_MIN", 1)
    x = da.zeros((CHUNK * 2, 3000), chunks=(100, 3000))
    with pytest.warns(dt.DovetailWarning):
        rows = chunked.Rows("sum", x, 0, False).array  # type: ignore[attr-defined]  # not public
    sizes = [max(c) for c in rows.chunks]
    assert sizes[0] == CHUNK and sizes[0] * sizes[1] <= 100 * 3000


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (3, 0, 4), (0, 0)])
@pytest.mark.parametrize("name", ["sum", "mean", "var"])
def test_several_axes_without_elements_are_those_of_the_whole(name: str, shape: Any) -> None:
    x = np.zeros(shape, np.float32)
    found = computed(getattr(chunked, name)(da.from_array(x, chunks=-1)))
    assert same_bits(found, getattr(dt, name)(dt.asarray(x)))


def test_axis_may_be_of_numpy() -> None:
    x = split(X, (2, CHUNK))
    assert same_bits(computed(chunked.sum(x, axis=np.int64(1))), dt.sum(dt.asarray(X), axis=1))
    with pytest.raises(dt.ArgumentTypeError, match=r"^sum: axis"):
        chunked.sum(x, axis=1.5)  # type: ignore[arg-type]  # on purpose


def test_shapes_that_do_not_match_are_shown_as_passed() -> None:
    a, b, c = (da.zeros(shape, dtype=np.float32) for shape in ((2, 4), (3, 4), (2, 1)))
    with pytest.raises(dt.ShapeError, match="vecdot"):
        chunked.vecdot(a, b)
    with pytest.raises(dt.ShapeError, match=r"^vecdot: .*\(2, 1\) and \(2, 4\)"):
        chunked.vecdot(c, a)
    with pytest.raises(dt.ShapeError, match="matmul"):
        chunked.matmul(da.zeros((2, 3, 4)), da.zeros((3, 4, 5)))


def test_errors_name_the_function_and_the_way_out() -> None:
    x = split(X, (2, CHUNK))
    with pytest.raises(dt.ArgumentTypeError, match=r"^sum: .*Tensor; for a tensor use dt\.sum$"):
        chunked.sum(dt.ones(3))
    with pytest.raises(dt.ArgumentTypeError, match=r"^mean: x must be an array of Dask or Cubed"):
        chunked.mean(X)
    with pytest.raises(dt.AxisError, match=r"^var: "):
        chunked.var(x, axis=2)
    with pytest.raises(dt.AxisError, match=r"^sum: axis"):
        chunked.sum(x, axis=(0, -2))
    with pytest.raises(dt.ArgumentError, match=r"^vecdot: axis must be negative, got 0"):
        chunked.vecdot(x, x, axis=0)
    with pytest.raises(dt.ShapeError, match=r"^matmul: .*\(2, 12388\)"):
        chunked.matmul(x, x)
    with pytest.raises(dt.ArgumentError, match="compute_chunk_sizes"):
        chunked.sum(x[x > 0])
    with pytest.raises(dt.ArgumentTypeError, match="keepdims"):
        chunked.sum(x, keepdims="yes")  # type: ignore[arg-type]  # on purpose
