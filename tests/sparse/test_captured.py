"""Sparse tensors as arguments, constants and results of captured functions."""

# mypy: disable-error-code="attr-defined"  # what the layout plugin adds
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("device")
Make = Callable[[Any], Any]

KINDS: dict[str, Make] = {
    "coo": lambda a: dt.asarray(a).to_sparse(),
    "turned": lambda a: dt.asarray(np.ascontiguousarray(np.asarray(a).T)).to_sparse().T,
    "csr": lambda a: dt.asarray(a).to_sparse_csr(),
    "csc": lambda a: dt.asarray(a).to_sparse_csc(),
    "bsr": lambda a: dt.asarray(a).to_sparse_bsr((2, 3)),
}
kinds = pytest.mark.parametrize("kind", KINDS)
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "times a vector": lambda A, v: A @ v,
    "the transpose": lambda A, v: (A.T, A.T @ v),
    "scaled": lambda A, v: A * v[0],
    "several results": lambda A, v: {"a": A * 2, "b": [A, A @ v], "n": 3},
    "dense": lambda A, v: A.to_dense() + 1,
    "summed": lambda A, v: dt.sum(A),
    "with itself": lambda A, v: A + A * 3,
    "values": lambda A, v: A.values() * 2,
    "from the left": lambda A, v: v @ A,
}


def matrix(seed: int, size: int = 12) -> np.ndarray:
    """Return a matrix with 36 nonzero entries."""
    rng = np.random.default_rng(seed)
    a = np.zeros(size * size)
    a[rng.choice(size * size, 36, replace=False)] = rng.normal(size=36)
    return a.reshape(size, size)


def bits(value: Any) -> list[tuple[str, bytes]]:
    """Return the layouts and the bits of all tensors in a value."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, (list, tuple)):
        return [b for part in value for b in bits(part)]
    if not isinstance(value, dt.Tensor):
        return [("", repr(value).encode())]
    return [(value.layout.name, value.to_dense().numpy().tobytes())]


@kinds
@pytest.mark.parametrize("name", FUNCTIONS)
def test_captured_results_equal_plain_ones(kind: str, name: str) -> None:
    function, make = FUNCTIONS[name], KINDS[kind]
    f, v = dt.jit(function), dt.linspace(1, 2, 12, dtype=dt.float64)
    x = make(matrix(1))
    for A in (x, x, x * 1.5, make(matrix(2)), make(matrix(3))):
        assert bits(f(A, v)) == bits(function(A, v)), name
    assert 1 <= f.captures <= 4


def test_pattern_is_an_argument_and_its_number_of_entries_is_part_of_the_key() -> None:
    f = dt.jit(lambda A, v: A @ v)
    v = dt.ones(12, dtype=dt.float64)
    for seed in range(4):  # other positions, as many of them
        a = matrix(seed)
        np.testing.assert_allclose(f(dt.asarray(a).to_sparse_csr(), v).numpy(), a.sum(1))
    assert f.captures == 1
    more = matrix(1)
    more[more == 0] = np.r_[1.0, np.zeros(144 - 37)]
    np.testing.assert_allclose(f(dt.asarray(more).to_sparse_csr(), v).numpy(), more.sum(1))
    assert f.captures == 2
    f(dt.asarray(matrix(1)).to_sparse(), v)  # another layout
    assert f.captures == 3
    f(dt.asarray(matrix(2)).to_sparse_csr(), v)
    assert f.captures == 3
    f(dt.asarray(matrix(2)).to_dense(), v)
    f(v, v)
    assert f.captures == 5


def test_matrices_with_one_pattern_share_it_inside() -> None:
    f = dt.jit(lambda A, B: A + B, fullgraph=True)
    x = dt.asarray(matrix(1)).to_sparse_csr()
    for A, B in ((x, x * 2), (x * 3, x)):
        assert bits(f(A, B)) == bits(A + B)
    assert f.captures == 1
    other = dt.asarray(matrix(2)).to_sparse_csr()
    with pytest.raises(dt.CaptureError, match="the host reads"):  # the number of its entries
        f(x, other)


def test_results_have_their_own_memory_and_a_valid_pattern() -> None:
    f = dt.jit(lambda A: A * 2)
    x = dt.asarray(matrix(1)).to_sparse()
    first, second = f(x), f(x * 5)
    assert bits(first) == bits(x * 2) and bits(second) == bits(x * 10)
    for y in (first, second):
        square = (y @ y.T).to_dense().numpy()  # two host reads outside of a capture, for a pattern
        np.testing.assert_allclose(square, y.to_dense().numpy() @ y.to_dense().numpy().T)
        assert y.is_coalesced() and y.nnz == x.nnz
    assert dt.jit(lambda A: A)(x).values() is x.values()


def test_other_shapes_are_captured() -> None:
    f = dt.jit(lambda A: A * 2)
    for x in (
        dt.zeros((3, 4)).to_sparse(), dt.asarray([0.0, 1.0, 0.0]).to_sparse(),
        dt.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (3, 2)).coalesce(),
        dt.asarray(np.eye(4).reshape(2, 2, 2, 2)).to_sparse(), dt.asarray(3.0).to_sparse(),
    ):  # fmt: skip
        for _ in range(2):
            assert bits(f(x)) == bits(x * 2)


@pytest.mark.parametrize("kind", ["coo", "turned", "csr", "csc"])
def test_gradients_inside_and_outside_of_a_capture(kind: str) -> None:
    def loss(A: Any, v: Any) -> Any:
        return ((A @ v) ** 2).sum()

    A = KINDS[kind](matrix(1)).requires_grad_()
    v = dt.linspace(1, 2, 12, dtype=dt.float64).requires_grad_()

    def around(f: Any) -> list[tuple[str, bytes]]:
        A.values().grad = v.grad = None
        f(A, v).backward()
        return bits([A.grad, v.grad])

    def inside(A: Any, v: Any) -> Any:
        return dt.grad(loss(A, v), [A.values(), v])

    want, f, g = around(loss), dt.jit(loss), dt.jit(inside)
    for _ in range(3):
        assert around(f) == want
        assert bits(g(A, v)) == bits(inside(A, v))
    assert f.captures == g.captures == 1
    # the backward pass is captured too
    assert f.explain_captures((A, v))[1] == [] and len(f.programs) == 2


@kinds
def test_conjugate_gradients_with_the_matrix_as_an_argument(kind: str) -> None:
    solve = dt.sparse.linalg.cg
    f = dt.jit(lambda A, b: solve(A, b, rtol=1e-12))
    a = np.diag(np.full(12, 4.0)) + np.diag(np.ones(11), 1) + np.diag(np.ones(11), -1)
    for k in (1, 2, 3):
        A, b = KINDS[kind](a * k), dt.linspace(0, k, 12, dtype=dt.float64)
        found, plain = f(A, b), solve(A, b, rtol=1e-12)
        assert bits(found.x) == bits(plain.x) and found.info.item() == 0
        np.testing.assert_allclose(found.x.numpy(), np.linalg.solve(a * k, b.numpy()), rtol=1e-9)
    assert f.captures == 1


def test_op_that_needs_the_number_of_entries_raises() -> None:
    twice = dt.sparse_coo_tensor([[1, 1], [0, 0]], [1.0, 2.0], (3, 4))
    f = dt.jit(lambda A: A * 2, fullgraph=True)
    with pytest.raises(dt.CaptureError, match=r"test_captured.py.*x\.coalesce\(\)"):
        f(twice)
    assert bits(f(twice.coalesce())) == bits(twice * 2)
    x = dt.asarray(matrix(1)).to_sparse_csr()
    for function in (lambda A: A @ A, lambda A: A.to_dense().to_sparse()):
        with pytest.raises(dt.CaptureError, match="the host reads a tensor"):
            dt.jit(function, fullgraph=True)(x)


def test_sparse_tensor_of_the_closure_is_read_again(device: dt.Device) -> None:
    x = dt.asarray(matrix(1)).to_sparse_csr()
    f = dt.jit(lambda v: (x @ v, x * v[0]))
    for k in (1.0, 2.0):
        v = dt.full(12, k, dtype=dt.float64)
        assert bits(f(v)) == bits((x @ v, x * v[0]))
    assert f.captures == 1
    x = x * 3
    assert bits(f(v)) == bits((x @ v, x * v[0]))
    x = dt.asarray(matrix(2)).to_sparse_csr()
    assert bits(f(v)) == bits((x @ v, x * v[0]))


def test_saving_raises_and_eager_and_nested_calls_work(tmp_path: Path) -> None:
    x = dt.asarray(matrix(1)).to_sparse_csr()
    f = dt.jit(lambda A: A * 2)
    assert bits(dt.jit(lambda A: f(A) * 3)(x)) == bits(x * 2 * 3)
    f(x)
    with pytest.raises(dt.CaptureError, match=r"save_function: .* must be strided"):
        dt.save_function(f, tmp_path / "f")
    with dt.eager():
        assert bits(f(x)) == bits(x * 2)
