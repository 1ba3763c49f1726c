"""CSR, CSC and BSR: their parts, sharing of patterns, and ops equal to those of COO."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

Array = np.ndarray[Any, Any]
KINDS: dict[str, Callable[[dt.Tensor], Any]] = {
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 3)),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def matrix(seed: int = 0, shape: tuple[int, int] = (6, 9), d: Any = np.float64) -> Array:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-4, 5, shape) * (rng.random(shape) < 0.4)
    return numbers.astype(d)


def assert_same(found: dt.Tensor, wanted: Any) -> None:
    np.testing.assert_array_equal((found.to_dense() if found.layout is not dt.strided else found)
                                  .numpy(), wanted)  # fmt: skip


# --- parts ---------------------------------------------------------------------------------------


def test_parts_equal_scipy(device: dt.Device) -> None:
    scipy = pytest.importorskip("scipy.sparse")
    a = matrix()
    for form, kind in KINDS.items():
        x = kind(dt.asarray(a))
        theirs = scipy.csr_array(a).asformat(form)
        if form == "bsr":
            theirs = scipy.bsr_array(a, blocksize=(2, 3))
        theirs.sort_indices()
        names = (
            ("ccol_indices", "row_indices") if form == "csc" else ("crow_indices", "col_indices")
        )
        parts = [getattr(x, names[0])(), getattr(x, names[1])(), x.values()]
        for ours, part in zip(parts, (theirs.indptr, theirs.indices, theirs.data), strict=True):
            np.testing.assert_array_equal(ours.numpy(), part)
        assert x.layout is getattr(dt, f"sparse_{form}") and x.shape == a.shape
        assert x.nnz == theirs.nnz


def test_coalesced_coo_matrix_shares_its_pattern_with_csr(device: dt.Device) -> None:
    x = dt.asarray(matrix()).to_sparse()
    y = x.to_sparse_csr()
    assert y.pattern is x.pattern and y.values() is x.values()
    assert y.to_sparse().pattern is x.pattern and y.T.T.pattern is x.pattern
    assert y.T.values() is y.values(), "a transpose is the same memory, by columns"


def test_round_trip_between_layouts_sorts_once(device: dt.Device) -> None:
    """The permutation and its inverse are cached with the pattern."""
    x = dt.asarray(matrix()).to_sparse_csr()
    columns = x.to_sparse_csc()
    assert (x * 2).to_sparse_csc().pattern is columns.pattern
    assert columns.to_sparse_csr().pattern is x.pattern
    assert_same(columns.to_sparse_csr(), matrix())


def test_product_with_the_transpose_is_one_launch(device: dt.Device) -> None:
    x, v = dt.asarray(matrix()).to_sparse_csr(), dt.ones(6, dtype=dt.float64)
    dt.evaluate(x.T @ v)
    launches = dt.explain(x.T @ v).launches
    assert len(launches) == 1, launches
    coo = x.to_sparse()
    assert len(dt.explain(coo.T @ v).launches) == 1
    assert len(dt.explain(v @ coo.T.T).launches) == 1


@kinds
def test_empty_and_narrow_matrices(device: dt.Device, kind: str) -> None:
    for shape in ((0, 0), (0, 3), (2, 0), (2, 3), (4, 3)):
        a = np.zeros(shape)
        x = KINDS[kind](dt.asarray(a))
        assert_same(x, a)
        assert_same(x + x, a)
        assert_same(x @ dt.ones(shape[1], dtype=dt.float64), np.zeros(shape[0]))
        assert_same(x.T, a.T)
        assert_same(dt.sum(x, axis=1), np.zeros(shape[0]))
        assert_same(dt.sum(x, axis=0), np.zeros(shape[1]))


@kinds
def test_copies_and_pickles_are_equal(device: dt.Device, kind: str) -> None:
    a = matrix()
    x = KINDS[kind](dt.asarray(a))
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is type(x) and y.layout is x.layout
        assert_same(y, a)


# --- from their parts ----------------------------------------------------------------------------


def test_construction_from_parts(device: dt.Device) -> None:
    x = dt.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [3.0, 4.0, 5.0], (2, 3))
    assert_same(x, [[0, 0, 3], [4, 5, 0]])
    assert_same(dt.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [3.0, 4.0, 5.0]), [[0, 0, 3], [4, 5, 0]])
    y = dt.sparse_csc_tensor(dt.asarray([0, 1, 2, 3]), dt.asarray([1, 1, 0]), [4.0, 5.0, 3.0])
    assert_same(y, [[0, 0, 3], [4, 5, 0]])
    z = dt.sparse_bsr_tensor([0, 0, 1], [1], np.arange(4.0).reshape(1, 2, 2), (4, 6))
    assert z.shape == (4, 6) and z.blocksize == (2, 2)
    assert_same(z[2:, 2:4], [[0, 1], [2, 3]])
    v = dt.sparse_csr_tensor([0, 1], [0], [2.0], requires_grad=True)
    dt.sum(v).backward()
    assert_same(v.grad, [[1.0]])  # type: ignore[arg-type]  # it has one


GOOD: dict[str, Any] = {
    "crow_indices": [0, 1, 3], "col_indices": [2, 0, 1], "values": [1.0, 2.0, 3.0], "size": (2, 3),
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "error", "says"),
    [
        ({"crow_indices": [1, 1, 3]}, dt.ArgumentError, "ascend from 0 to 3"),
        ({"crow_indices": [0, 1, 2]}, dt.ArgumentError, "got 0 to 2"),
        ({"crow_indices": [0, 4, 3]}, dt.ArgumentError, "descent between"),
        ({"crow_indices": [0, 3], "size": (1, 3)}, dt.ArgumentError, "must ascend without"),
        ({"col_indices": [2, 1, 1]}, dt.ArgumentError, "without repetition"),
        ({"col_indices": [3, 0, 1]}, IndexError, "3 in col_indices is out of range for size 3"),
        ({"col_indices": [-1, 0, 1]}, IndexError, "-1 in col_indices"),
        ({"col_indices": [0, 1]}, dt.ShapeError, "2 col_indices, got shape"),
        ({"col_indices": [0.5, 1, 2]}, dt.DTypeError, "col_indices must be integers"),
        ({"crow_indices": []}, dt.ShapeError, "at least 1"),
        ({"crow_indices": [[0, 1, 3]]}, dt.ShapeError, "crow_indices must be a vector"),
        ({"values": [[1.0], [2.0], [3.0]]}, dt.ShapeError, "a vector, with one item for each"),
        ({"size": (3, 3)}, dt.ShapeError, "for size 3"),
        ({"size": (2, 3, 1)}, dt.ShapeError, "2 dimensions"),
        ({"size": (2, -3)}, dt.ShapeError, "negative|-3"),
    ],
)
def test_invalid_parts_are_named(
    device: dt.Device, changed: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says) as caught:
        dt.sparse_csr_tensor(**{**GOOD, **changed})
    assert isinstance(caught.value, dt.DovetailError)
    assert str(caught.value).startswith("sparse_csr_tensor: ")


def test_invalid_block_sizes_are_named(device: dt.Device) -> None:
    x = dt.ones((4, 6))
    with pytest.raises(dt.LayoutError, match=r"must be divisible by the blocksize \(3, 2\)"):
        x.to_sparse_bsr((3, 2))
    with pytest.raises(dt.ArgumentError, match="blocksize"):
        x.to_sparse_bsr((0, 2))
    for name in ("to_sparse_csr", "to_sparse_csc"):
        with pytest.raises(dt.LayoutError, match=rf"^{name}: .* a matrix, got shape \(3,\)"):
            getattr(dt.ones(3), name)()
    with pytest.raises(dt.ShapeError, match="sparse_bsr_tensor: size"):
        dt.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2.0]]], (1, 3))
    with pytest.raises(dt.ShapeError, match="sparse_bsr_tensor: values must"):
        dt.sparse_bsr_tensor([0, 1], [0], [1.0])


# --- ops equal to those of COO -------------------------------------------------------------------

OPS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
    "scaled": lambda x, y: x * 3, "halved": lambda x, y: x / 2, "tanh": lambda x, y: dt.tanh(x),
    "times row": lambda x, y: x * dt.arange(9, dtype=dt.float64),
    "times column": lambda x, y: x * dt.reshape(dt.arange(6, dtype=dt.float64), (6, 1)),
    "transpose": lambda x, y: x.T, "slice": lambda x, y: x[1:5, ::2],
    "flip": lambda x, y: x[::-1],
    "row": lambda x, y: x[2], "rows": lambda x, y: x[[3, 0, 3]],
    "reshape": lambda x, y: x.reshape(9, 6),
    "concat": lambda x, y: dt.concat([x, y]), "beside": lambda x, y: dt.concat([x, y], axis=1),
    "stack": lambda x, y: dt.stack([x, y]), "diagonal": lambda x, y: dt.diagonal(x, offset=1),
    "vector": lambda x, y: x @ dt.arange(9, dtype=dt.float64),
    "from the left": lambda x, y: dt.arange(6, dtype=dt.float64) @ x,
    "dense": lambda x, y: x @ dt.ones((9, 4), dtype=dt.float64),
    "square": lambda x, y: x @ y.T, "tall": lambda x, y: x.T @ y,
    "sum": lambda x, y: dt.sum(x), "sum 0": lambda x, y: dt.sum(x, axis=0),
    "sum 1": lambda x, y: dt.sum(x, axis=1, keepdims=True), "mean": lambda x, y: dt.mean(x, axis=1),
    "count": lambda x, y: dt.count_nonzero(x, axis=0), "max": lambda x, y: dt.max(x, axis=1),
    "argmin": lambda x, y: dt.argmin(x, axis=0), "all": lambda x, y: dt.all(x, axis=1),
    "std": lambda x, y: dt.std(x, axis=0), "tril": lambda x, y: dt.tril(x, 1),
    "triu": lambda x, y: dt.triu(x, -1), "sort": lambda x, y: dt.sort(x, axis=0),
    "kron": lambda x, y: dt.kron(x, y[:2, :2]), "where": lambda x, y: dt.where(x > 1, x, 0),
    "mask": lambda x, y: x[x > 1], "softmax": lambda x, y: dt.softmax(x, axis=1),
    "softmax 0": lambda x, y: dt.softmax(x, axis=0), "astype": lambda x, y: x.astype(dt.float32),
    "einsum": lambda x, y: dt.einsum("ij,ij->i", x, y), "roll": lambda x, y: dt.roll(x, 1, axis=0),
}  # fmt: skip


@kinds
@pytest.mark.parametrize("name", OPS)
def test_ops_equal_those_of_coo(device: dt.Device, kind: str, name: str) -> None:
    f, make = OPS[name], KINDS[kind]
    x, y = (dt.asarray(matrix(seed)) for seed in (0, 1))
    wanted = f(x.to_sparse(), y.to_sparse())
    if kind == "bsr" and "softmax" in name:
        wanted = f(make(x).to_sparse(), make(y).to_sparse())  # over all stored entries
    for mixed in (make(y), y.to_sparse()):
        found = f(make(x), mixed)
        if found.layout is dt.strided:
            assert_same(
                found,
                wanted.to_dense().numpy() if wanted.layout is not dt.strided else wanted.numpy(),
            )
        else:
            assert_same(found, wanted.to_dense().numpy())
            assert found.ndim != 2 or found.layout is not dt.sparse_coo
        assert found.dtype is wanted.dtype


@kinds
def test_first_operand_determines_the_result_layout(device: dt.Device, kind: str) -> None:
    x = dt.asarray(matrix())
    ours, coo = KINDS[kind](x), x.to_sparse()
    assert (ours + coo).layout is ours.layout and (coo + ours).layout is dt.sparse_coo
    other = x.to_sparse_csr() if kind != "csr" else x.to_sparse_csc()
    assert (ours * other).layout is ours.layout and (other * ours).layout is other.layout
    assert dt.concat([coo, ours]).layout is dt.sparse_coo


@kinds
def test_gradients_equal_those_of_coo(device: dt.Device, kind: str) -> None:
    a, w = matrix(), dt.asarray(np.arange(9.0))

    def loss(x: Any) -> dt.Tensor:
        y = dt.tanh(x * 0.5 + x) @ w
        return dt.sum(y * y) + dt.sum(dt.sum(x * x, axis=1) ** 2) + dt.sum((x.T @ y) ** 2)

    def gradient(make: Callable[[dt.Tensor], Any]) -> Array:
        x = dt.asarray(a).requires_grad_()
        (g,) = dt.grad(loss(make(x)), [x])
        return np.asarray(g.numpy())

    wanted = gradient(lambda x: x.to_sparse())
    np.testing.assert_allclose(gradient(KINDS[kind]), wanted, rtol=1e-13)
    x = KINDS[kind](dt.asarray(a)).requires_grad_()
    loss(x).backward()
    assert type(x.grad) is type(x)
    np.testing.assert_allclose(x.grad.to_dense().numpy()[a != 0], wanted[a != 0], rtol=1e-13)


@kinds
def test_compressed_ops_have_the_same_bits_on_every_device(kind: str) -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    rng = np.random.default_rng(3)
    a = rng.normal(size=(60, 90)) * (rng.random((60, 90)) < 0.1)
    v = rng.normal(size=90)

    def bits(on: str) -> list[bytes]:
        x, y = KINDS[kind](dt.asarray(a, device=on)), dt.asarray(v, device=on)
        made = [x @ y, x.T @ (x @ y), dt.sum(x, axis=1), dt.sum(x, axis=0), dt.std(x, axis=1),
                (x @ x.T).to_dense(), dt.sort(x, axis=0).to_dense()]  # fmt: skip
        return [m.numpy().tobytes() for m in made]

    assert bits("cpu") == bits("reference")


@kinds
def test_captured_functions_of_a_closure_matrix(device: dt.Device, kind: str) -> None:
    """Data derived from its pattern are computed once, outside of the capture."""
    a = matrix()
    x = KINDS[kind](dt.asarray(a))
    f = dt.jit(lambda v, w: (x @ v, x.T @ w, dt.sum(x, axis=1) + v[0]))
    v, w = np.arange(9.0), np.arange(6.0)
    for k in (1, 2):
        found = f(dt.asarray(v * k), dt.asarray(w))
        for y, wanted in zip(found, (a @ v * k, a.T @ w, a.sum(1) + v[0]), strict=True):
            np.testing.assert_array_equal(y.numpy(), wanted)
    assert_same(x @ dt.asarray(v), a @ v)

    made = KINDS[kind](dt.asarray(a))
    looped = dt.while_loop(
        lambda c: c[1] < 2, lambda c: (made.T @ (made @ c[0]), c[1] + 1),
        (dt.asarray(v), dt.asarray(0)),
    )  # fmt: skip
    np.testing.assert_array_equal(looped[0].numpy(), a.T @ (a @ (a.T @ (a @ v))))
    assert_same(made.T @ dt.asarray(w), a.T @ w)


# --- SciPy and others ----------------------------------------------------------------------------


@kinds
def test_scipy_round_trip(device: dt.Device, kind: str) -> None:
    scipy = pytest.importorskip("scipy.sparse")
    a = matrix()
    x = KINDS[kind](dt.asarray(a))
    theirs = dt.sparse.to_scipy(x)
    assert theirs.format == kind
    np.testing.assert_array_equal(theirs.toarray(), a)
    np.testing.assert_array_equal(dt.sparse.to_scipy(x, "coo").toarray(), a)
    for given in (theirs, scipy.coo_array(a)):
        back = dt.sparse.from_scipy(given, layout=x.layout)
        assert back.layout is x.layout
        assert_same(back, a)
    assert_same(dt.sparse.from_scipy(theirs), a)
    untidy = scipy.csr_array((np.ones(3), [2, 0, 0], [0, 3]), (1, 3))
    assert_same(dt.sparse.from_scipy(untidy, layout=dt.sparse_csr), [[2, 0, 1]])
    with pytest.raises(dt.ArgumentError, match="from_scipy: layout must be"):
        dt.sparse.from_scipy(theirs, layout=dt.strided)
    with pytest.raises(dt.LayoutError, match="sparse_csr needs a matrix"):
        dt.sparse.from_scipy(scipy.coo_array(np.ones(3)), layout=dt.sparse_csr)


@kinds
def test_repr_shows_layout_shape_and_block_size(device: dt.Device, kind: str) -> None:
    x = KINDS[kind](dt.asarray(matrix()))
    text = repr(x)
    assert text.startswith(f"sparse_{kind}_tensor(") and "shape=(6, 9)" in text
    assert ("blocksize=(2, 3)" in text) == (kind == "bsr")
    assert dt.sparse.spy(x).startswith("<svg") and f"sparse_{kind}" in x._repr_html_()


@kinds
def test_ops_with_a_dense_result_raise(device: dt.Device, kind: str) -> None:
    x = KINDS[kind](dt.asarray(matrix()))
    for f, says in (
        (lambda: dt.exp(x), "exp"), (lambda: x + 1, "add"),
        (lambda: x + x.to_dense(), "add"), (lambda: x.__setitem__(0, 1), "setitem"),
        (lambda: dt.argsort(x), "argsort"), (lambda: x.numpy(), "numpy"),
    ):  # fmt: skip
        with pytest.raises(dt.LayoutError, match=says) as caught:
            f()
        assert "to_dense()" in str(caught.value)
