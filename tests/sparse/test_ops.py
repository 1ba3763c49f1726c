"""Ops of a sparse tensor equal those of the dense one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from sparse_samples import triples

SHAPES = {"matrix": ((6, 7), 0), "cube": ((4, 3, 5), 0), "hybrid": ((4, 5, 3), 1),
          "blocks": ((3, 4, 2, 2), 2)}  # fmt: skip


def made(kind: str, seed: int = 0, dtype: Any = np.float64) -> Any:
    shape, dense = SHAPES[kind]
    at, values = triples(np.random.default_rng(seed), shape, dense=dense, dtype=dtype)
    return dt.sparse_coo_tensor(at, values, shape)


def same(f: Callable[..., Any], *operands: Any, rtol: float = 1e-12) -> Any:
    """Assert that `f` of sparse tensors equals `f` of the dense ones."""
    found = f(*operands)
    expected = f(*(x.to_dense() for x in operands))
    dense = found.to_dense().numpy()
    assert dense.dtype == expected.numpy().dtype
    np.testing.assert_allclose(dense, expected.numpy(), rtol=rtol, atol=1e-13, strict=True)
    if found.layout is dt.sparse_coo and found.is_coalesced() and found.nnz > 1:
        at = tuple(found.indices().numpy())
        if at:
            key = np.ravel_multi_index(at, found.shape[: len(at)])
            assert (np.diff(key) > 0).all(), "it is not in order"
    return found


# --- elementwise ---------------------------------------------------------------------------------

UNARY = ("abs", "sin", "negative", "square", "sign", "isnan", "tanh", "relu", "expm1", "floor",
         "copy", "positive", "asinh", "erf", "signbit")  # fmt: skip


@pytest.mark.parametrize("kind", SHAPES)
def test_functions_that_map_zero_to_zero_stay_sparse(device: dt.Device, kind: str) -> None:
    x = made(kind)
    for name in UNARY:
        assert same(getattr(dt, name), x).layout is dt.sparse_coo
    for f in (lambda x: x * 2, lambda x: 2.5 * x, lambda x: x / 4, lambda x: x > 1,
              lambda x: x != 0, lambda x: x**2, lambda x: x**3, lambda x: abs(-x),
              lambda x: dt.clip(x, -1, 2), lambda x: x.astype(dt.int32) // 2,
              lambda x: dt.round(x * 0.5)):  # fmt: skip
        assert same(f, x).layout is dt.sparse_coo


PAIRS = ("add", "subtract", "multiply", "maximum", "minimum", "not_equal", "greater", "hypot",
         "logical_or", "logical_and", "logical_xor", "atan2")  # fmt: skip


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_binary_ops_have_the_union_or_intersection_of_entries(
    device: dt.Device, whole: bool
) -> None:
    """The interpreter takes 0.5 s for each union, so by default each op gets one pair."""
    x, y = made("matrix"), made("matrix", 1)
    row = y[:1]
    pairs = [(x, y), (x, x.coalesce()), (x, row), (row, x), (made("hybrid"), made("hybrid", 2)),
             (made("cube"), made("cube", 3)[:, :, 1:2])]  # fmt: skip
    for k, name in enumerate(PAIRS):
        f = getattr(dt, name)
        for a, b in pairs if whole else [pairs[k % len(pairs)]]:
            assert same(f, a, b).layout is dt.sparse_coo
    assert (x * y).nnz <= min(x.coalesce().nnz, y.coalesce().nnz) < (x + y).nnz
    same(lambda c, a, b: dt.where(c > 0, a, b), x, y, x)
    same(lambda a, b: (a > 0) | (b < 0), x, y)


def test_products_with_dense_tensors_are_sparse(device: dt.Device) -> None:
    rng = np.random.default_rng(3)
    x, d = made("matrix"), dt.asarray(rng.normal(size=(6, 7)))
    for f in (lambda s: s * d, lambda s: d * s, lambda s: s / d, lambda s: s * d[:, :1],
              lambda s: s * d[0], lambda s: s[:1] * d, lambda s: s * dt.stack([d, d]),
              lambda s: s * d[0, 0], lambda s: dt.logical_and(s, d > 0)):  # fmt: skip
        assert same(f, x).layout is dt.sparse_coo
    same(lambda s: s * d[:3, 0], made("hybrid"))
    same(lambda s: s * dt.reshape(d[:4, :5], (4, 5, 1)), made("hybrid"))


def test_in_place_operators_return_new_tensors() -> None:
    x = y = made("matrix")
    before = x.to_dense().numpy().copy()
    y += x
    assert y is not x
    np.testing.assert_array_equal(x.to_dense().numpy(), before)
    np.testing.assert_array_equal(y.to_dense().numpy(), 2 * before)


# --- shapes --------------------------------------------------------------------------------------

KEYS = (
    np.s_[1:], np.s_[::-1], np.s_[1:3, ::2], np.s_[..., 1:], np.s_[:, -1], np.s_[..., -1],
    np.s_[None, 1:], np.s_[:, None], np.s_[..., ::-2], np.s_[:0], np.s_[2], np.s_[-1, ...],
    np.s_[[0, 2, 2, 1]], np.s_[:, [1, 0, 1]], np.s_[[0, 1], [2, 1]], np.s_[..., [1, 0]],
    np.s_[1, [0, 2]], np.s_[[[0, 1], [1, 2]], 1:], np.s_[[-1, -2]], np.s_[[0, 1], :, None],
)  # fmt: skip


@pytest.mark.parametrize("kind", SHAPES)
def test_slices_integers_and_index_arrays_equal_dense(device: dt.Device, kind: str) -> None:
    x = made(kind)
    for key in KEYS:
        same(lambda s, key=key: s[key], x)  # type: ignore[misc]
    rng = np.random.default_rng(0)
    for mask in (rng.random(x.shape[0]) < 0.5, rng.random(x.shape[:2]) < 0.5):
        same(lambda s, m=mask: s[m], x)  # type: ignore[misc]
        same(lambda s, m=mask: s[dt.asarray(m)], x)  # type: ignore[misc]
    same(lambda s: dt.take(s, dt.asarray([1, 0, 1]), axis=1), x)


@pytest.mark.parametrize("kind", SHAPES)
def test_shape_functions_equal_dense(device: dt.Device, kind: str) -> None:
    x = made(kind)
    for order in itertools.permutations(range(x.ndim)):
        same(lambda s, o=order: dt.permute_dims(s, o), x)  # type: ignore[misc]
        turned = dt.permute_dims(x.coalesce(), order).coalesce()
        np.testing.assert_array_equal(
            turned.to_dense().numpy(), x.to_dense().numpy().transpose(order)
        )
    for f in (
        lambda s: s.reshape(-1), lambda s: s.reshape(2, -1), lambda s: dt.flip(s),
        lambda s: dt.flip(s, axis=0), lambda s: dt.expand_dims(s, axis=1), lambda s: s.mT,
        lambda s: dt.squeeze(dt.expand_dims(s, axis=(0, 2))), lambda s: dt.moveaxis(s, 0, -1),
        lambda s: dt.broadcast_to(s, (2, *s.shape)), lambda s: dt.concat([s, s, s * 2], axis=0),
        lambda s: dt.concat([s, s * 3], axis=-1), lambda s: dt.stack([s, s], axis=1),
        lambda s: dt.broadcast_to(s[:1], s.shape), lambda s: dt.broadcast_to(s[:, :1], s.shape),
        lambda s: dt.linalg.diagonal(s, offset=1), lambda s: dt.diagonal(s, -1),
        lambda s: dt.roll(s, 1, axis=0), lambda s: dt.tile(s, (2, 1)), lambda s: dt.unstack(s)[1],
        lambda s: dt.split(s, 2, axis=1)[0],
    ):  # fmt: skip
        same(f, x)


def test_order_preserving_ops_stay_coalesced() -> None:
    x = made("cube").coalesce()
    for y in (x[1:, :, ::2], x[1], x.reshape(-1), dt.expand_dims(x, axis=0), dt.stack([x, x]),
              x * 2, dt.broadcast_to(x, (2, *x.shape))):  # fmt: skip
        assert y.is_coalesced()
    for y in (dt.flip(x), x.mT, dt.concat([x, x], axis=1)):
        assert not y.is_coalesced()


# --- reductions ----------------------------------------------------------------------------------

REDUCTIONS = ("sum", "mean", "prod", "max", "min", "any", "all", "count_nonzero")


@pytest.mark.parametrize("kind", SHAPES)
def test_reductions_count_implicit_zeros(device: dt.Device, kind: str) -> None:
    x = made(kind)
    for axis in (None, *range(x.ndim), (0, x.ndim - 1), -1):
        keepdims = axis == 0 or axis == (0, x.ndim - 1)
        for name in REDUCTIONS:
            same(lambda s, n=name, a=axis, k=keepdims: getattr(dt, n)(s, axis=a, keepdims=k), x)  # type: ignore[misc]
        for name in ("argmax", "argmin"):
            if not isinstance(axis, tuple):
                same(lambda s, n=name, a=axis, k=keepdims: getattr(dt, n)(s, axis=a, keepdims=k), x)  # type: ignore[misc]


def test_full_rows_have_no_implicit_zeros(device: dt.Device) -> None:
    v = [[-1.0, -2.0, -3.0], [4.0, 0.0, 5.0], [0.0, -1.0, 0.0]]
    x = dt.sparse_coo_tensor(np.indices((3, 3)).reshape(2, -1), np.ravel(v), (3, 3))
    for name in (*REDUCTIONS, "argmax", "argmin"):
        for axis in (None, 0, 1):
            same(lambda s, n=name, a=axis: getattr(dt, n)(s, axis=a), x)  # type: ignore[misc]
    y = dt.sparse_coo_tensor([[0, 0, 1]], [np.nan, 1.0, np.inf], (3,))
    for name in ("sum", "max", "min", "argmax", "prod"):
        same(getattr(dt, name), y)


@pytest.mark.parametrize("dtype", [np.int8, bool, np.float16, np.uint16])
def test_reductions_have_the_dtypes_of_dense_ones(device: dt.Device, dtype: Any) -> None:
    at, values = triples(np.random.default_rng(0), (6, 7), dtype=np.int8)
    x = dt.sparse_coo_tensor(at, np.abs(values).astype(dtype), (6, 7))
    for name in ("sum", "prod", "max", "mean", "any", "argmax"):
        for axis in (None, 0):
            same(lambda s, n=name, a=axis: getattr(dt, n)(s, axis=a), x, rtol=1e-3)  # type: ignore[misc]
    assert dt.sum(x, axis=0).layout is dt.sparse_coo and dt.sum(x).layout is dt.strided


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_covers_stored_entries(device: dt.Device, axis: int) -> None:
    x = made("cube").coalesce()
    there = np.zeros(x.shape, bool)
    there[tuple(x.indices().numpy())] = True
    full = np.where(there, x.to_dense().numpy(), -np.inf)
    e = np.where(there, np.exp(full - np.nan_to_num(full.max(axis, keepdims=True), neginf=0)), 0)
    want = e / np.where(e.sum(axis, keepdims=True) == 0, 1, e.sum(axis, keepdims=True))
    found = dt.softmax(x, axis=axis)
    np.testing.assert_allclose(found.to_dense().numpy(), want, rtol=1e-12)
    logs = dt.log_softmax(x, axis=axis)
    np.testing.assert_allclose(logs.values().numpy(), np.log(found.values().numpy()), atol=1e-12)


@pytest.mark.parametrize("function", [dt.softmax, dt.log_softmax])
@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "hybrid"])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float64"])
def test_softmax_has_the_dtype_of_the_dense_one(
    device: dt.Device, function: Callable[..., Any], layout: str, dtype: str
) -> None:
    for entries in (0, 2):
        at = np.arange(entries)[None] % 2 + np.zeros((1 if layout == "hybrid" else 2, 1), int)
        block = (3,) if layout == "hybrid" else ()
        x = dt.sparse_coo_tensor(at, np.ones((entries, *block), dtype), (2, 3))
        if layout == "bsr":
            x = x.to_sparse_bsr((2, 1))
        elif layout in ("csr", "csc"):
            x = getattr(x, f"to_sparse_{layout}")()
        for axis in (0, 1):
            y = function(x, axis=axis)
            assert y.dtype is function(x.to_dense(), axis=axis).dtype
            assert y.layout is x.layout and y.nnz == x.nnz and y.values().dtype is y.dtype


@pytest.mark.parametrize("function", [dt.softmax, dt.log_softmax])
@pytest.mark.parametrize("dtype", ["bool", "complex64"])
def test_softmax_of_sparse_bool_or_complex_raises(
    device: dt.Device, function: Callable[..., Any], dtype: str
) -> None:
    for entries in (0, 2):
        for axis in (0, 1):
            x = dt.sparse_coo_tensor(
                np.zeros((1, entries), int), np.ones((entries, 3), dtype), (2, 3)
            )
            with pytest.raises(dt.DTypeError, match=rf"^{function.__name__}: expected .* {dtype}"):
                function(x, axis=axis)


# --- products ------------------------------------------------------------------------------------


def test_matrix_products_equal_dense(device: dt.Device) -> None:
    rng = np.random.default_rng(0)
    at, values = triples(rng, (5, 2, 6, 7))
    for s in (made("matrix"), made("cube"), made("matrix").T,
              dt.sparse_coo_tensor(at, values, (5, 2, 6, 7)), made("hybrid")):  # fmt: skip
        k, m = s.shape[-1], s.shape[-2]
        for right in ((k,), (k, 4), (1, k, 3)):
            r = dt.asarray(rng.normal(size=right))
            assert same(lambda s, r=r: s @ r, s, rtol=1e-9).layout is dt.strided  # type: ignore[misc]
        for left in ((m,), (4, m)):
            d = dt.asarray(rng.normal(size=left))
            assert same(lambda s, d=d: d @ s, s, rtol=1e-9).layout is dt.strided  # type: ignore[misc]
        same(lambda a, b: a @ b, s, dt.matrix_transpose(s))
    x, v = made("matrix"), made("matrix")[0]
    same(lambda a, b: a @ b, x, v)
    same(lambda a, b: b[:6] @ a, x, v)
    same(lambda a: a @ a, v)
    batch = dt.asarray(rng.normal(size=(3, 7, 2)))
    same(lambda a: a @ batch, x, rtol=1e-9)
    same(lambda a: a @ (a > 0).T, x)  # bool with a number has the number's dtype
    same(lambda a: (a > 0) @ v, x)


def test_tensordot_and_einsum_equal_dense(device: dt.Device) -> None:
    at, values = triples(np.random.default_rng(5), (5, 4, 2))
    t, u = made("cube"), dt.sparse_coo_tensor(at, values, (5, 4, 2))
    d = dt.asarray(np.arange(40.0).reshape(5, 4, 2))
    same(lambda a, b: dt.tensordot(a, b, axes=((0, 2), (1, 0))), t, u)
    same(lambda a: dt.tensordot(a, d, axes=((0, 2), (1, 0))), t)
    m = made("matrix")
    for text, operands in (("ij,jk->ik", (m, m.T)), ("ij,ij->ij", (m, m)), ("ij,ij", (m, m)),
                           ("abc,cad->bd", (t, u)), ("ij->ji", (m,)), ("ij->", (m,)),
                           ("ii->i", (m[:, :6],)), ("ii", (m[:, :6],)),
                           ("...j,j->...", (t, t[0, 0])),
                           ("bij,bkj->bik", (t, t)), ("i,j->ij", (m[0], m[1]))):  # fmt: skip
        same(lambda *s, x=text: dt.einsum(x, *s), *operands)
        strided = [x if i % 2 else x.to_dense() for i, x in enumerate(operands)]
        want = dt.einsum(text, *(x.to_dense() for x in operands)).numpy()
        np.testing.assert_allclose(dt.einsum(text, *strided).to_dense().numpy(), want, atol=1e-12)


# --- unsupported ops -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (lambda x: dt.exp(x), r"exp\(0\) is 1.0"), (lambda x: x + 1, r"add\(0, 1\) is 1.0"),
        (lambda x: x + x.to_dense(), "add: the result of a sparse_coo and a strided"),
        (lambda x: x.to_dense() - x, "subtract: the result of a sparse_coo and a strided"),
        (lambda x: x == x, "equal"), (lambda x: x / 0, "nan"), (lambda x: 1 / x, "divide"),
        (lambda x: x.numpy(), "numpy"), (lambda x: dt.argsort(x), "argsort"),
        (lambda x: x.exp_(), "exp in place"), (lambda x: x.__setitem__(0, 1), "setitem"),
        (lambda x: dt.concat([x, x.to_dense()]), "concat"), (lambda x: x.stride(), "stride"),
        (lambda x: dt.add(x, x, out=x.to_dense()), "add"),
    ],
)  # fmt: skip
def test_unsupported_op_raises_with_a_remedy(f: Any, says: str) -> None:
    with pytest.raises(dt.LayoutError, match=says) as error:
        f(made("matrix"))
    assert "to_dense()" in str(error.value) or "returns a new one" in str(error.value)
    assert isinstance(error.value, TypeError)


def test_numpy_scalars_keep_their_dtype() -> None:
    x = made("matrix", dtype=np.int32)
    assert (x * np.float64(0.5)).dtype is dt.float64
    with pytest.raises(dt.LayoutError, match="to_dense"):
        x + np.float64(0.5)
    with pytest.raises(dt.ValueOverflowError):
        x.astype(dt.int8) * 1000


def test_wrong_operands_are_named() -> None:
    x = made("matrix")
    for f, error, says in (
        (lambda: x @ dt.ones(4, dtype=dt.float64), dt.ShapeError, r"\(6, 7\) and \(4,\)"),
        (lambda: x + made("cube"), dt.ShapeError, "broadcast"),
        (lambda: x[9], dt.OutOfRangeError, "index 9|9 is out of range"),
        (lambda: x[[9]], dt.OutOfRangeError, "9 is out of range for axis 0"),
        (lambda: x[[0], 10**5000], dt.OutOfRangeError, "is out of range for axis 1"),
        (lambda: (x > 0) @ (x > 0).T, dt.DTypeError, "bool"),
        (lambda: dt.max(x[:0]), dt.ShapeError, "at least one element"),
        (lambda: dt.diagonal(x, 0, 1, 1), dt.AxisError, "must be different"),
        (lambda: dt.einsum("ij,jk", x), dt.ArgumentError, "2 operands"),
        (lambda: dt.einsum("ij,ij", x, x.T), dt.ShapeError, "sizes"),
        (lambda: dt.einsum("ijk", x), dt.ShapeError, "name each axis"),
    ):
        with pytest.raises(error, match=says):
            f()
