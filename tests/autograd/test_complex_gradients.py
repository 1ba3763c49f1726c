"""Gradients of complex tensors, dL/da + i dL/db of a real L, against differences and PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.ops import table as ops
from dovetail.tensor.primitives import apply

torch = pytest.importorskip("torch")
Function = Callable[..., Any]


def random_complex(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)) + (0.3 + 0.2j)


def leaf(*shape: int, seed: int = 0) -> dt.Tensor:
    return dt.asarray(random_complex(*shape, seed=seed), device="reference").requires_grad_()


def complex_ops() -> list[str]:
    """Return the elementwise ops that have gradients for complex operands."""
    found = []
    for name, op in ops.TABLE.items():
        if op.kind != "map" or op.arity > 2 or not op.gradient or name == "astype":
            continue
        try:
            _, result = op.dtypes(name, (dt.complex128,) * op.arity, None)
        except dt.DTypeError:
            continue
        if result.kind in "fc":
            found.append(name)
    return found


ROWS = complex_ops()


@pytest.mark.parametrize("name", ROWS)
def test_complex_ops_pass_gradcheck(name: str) -> None:
    op = ops.TABLE[name]
    x, y = leaf(4, 3, seed=1), leaf(3, seed=2)
    if op.arity == 1:
        assert dt.autograd.gradcheck(lambda t: apply(op, (t,)), y)
        assert dt.autograd.gradgradcheck(lambda t: apply(op, (t,)), y, atol=1e-4)
        return
    assert dt.autograd.gradcheck(lambda s, t: apply(op, (s, t)), (x, y))
    assert dt.autograd.gradgradcheck(lambda s, t: apply(op, (s, t)), (x, y), atol=1e-4)
    assert dt.autograd.gradcheck(lambda t: apply(op, (t, 0.7)), y)
    assert dt.autograd.gradcheck(lambda t: apply(op, (1.5, t)), y)
    real = dt.asarray(random_complex(4, 3, seed=3).real.copy(), device="reference").requires_grad_()
    assert dt.autograd.gradcheck(lambda s, t: apply(op, (s, t)), (real, y))


PROGRAMS: dict[str, Function] = {
    "sum": lambda x: x.sum(axis=0),
    "mean": lambda x: x.mean(),
    "product": lambda x: x.prod(axis=1),
    "running sum": lambda x: dt.cumulative_sum(x, axis=1),
    "running product": lambda x: dt.cumulative_prod(x, axis=0),
    "matrix product": lambda x: x @ x.mT,
    "vecdot": lambda x: dt.vecdot(x, x * 2j),
    "where": lambda x: dt.where(abs(x) > 1, x, x.conj()),
    "gather": lambda x: x[[2, 0, 2]],
    "slice": lambda x: x[::2, 1:],
    "concat": lambda x: dt.concat([x, x * x]),
    "sparse sum": lambda x: dt.index_add(x, 0, dt.asarray([1, 1], device="reference"), x[:2]),
    "transpose": lambda x: (x.T * 1j).reshape((-1,)),
    "size": lambda x: (abs(x) ** 2).sum(),
    "parts": lambda x: dt.real(x) * dt.imag(x) + dt.angle(x),
    "from real": lambda x: dt.real(x).astype(dt.complex128) * x,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_complex_programs_pass_gradcheck(name: str) -> None:
    x = leaf(3, 4)
    assert dt.autograd.gradcheck(PROGRAMS[name], x)
    assert dt.autograd.gradgradcheck(PROGRAMS[name], x, atol=1e-4)


SAME: dict[str, Function] = {  # functions of dovetail or of PyTorch
    "square of the size": lambda f, z: (f.abs(z) ** 2).sum(),
    "exp": lambda f, z: f.real(f.exp(z * 1j)).sum(),
    "quotient": lambda f, z: f.abs(z / (z * z + 2)).sum(),
    "power": lambda f, z: f.imag(z**2.5).sum(),
    "angle": lambda f, z: f.angle(z).sum(),
    "log and root": lambda f, z: f.real(f.log(z) * f.sqrt(z)).sum(),
    "hyperbolic": lambda f, z: f.real(f.tanh(z) + f.sinh(z) * f.conj(f.cosh(z))).sum(),
}


@pytest.mark.parametrize("name", SAME)
def test_complex_gradient_convention_equals_pytorch(name: str) -> None:
    z = random_complex(20)
    ours, theirs = leaf(20), torch.tensor(z, requires_grad=True)
    SAME[name](dt, ours).backward()
    SAME[name](torch, theirs).backward()
    assert ours.grad is not None and theirs.grad is not None
    assert np.allclose(ours.grad.numpy(), theirs.grad.resolve_conj().numpy(), rtol=1e-10)


def test_real_operand_gets_a_real_gradient() -> None:
    x = dt.asarray([1.0, 2.0], device="reference").requires_grad_()
    (abs(x * (3 + 4j)) ** 2).sum().backward()
    assert x.grad is not None and x.grad.dtype is dt.float32
    assert np.allclose(x.grad.numpy(), [50, 100])


def test_gradient_descent_on_complex_values_converges() -> None:
    z = dt.asarray(random_complex(5), device="reference").requires_grad_()
    for _ in range(50):
        loss = (abs(z - (1 + 2j)) ** 2).sum()
        z = (z - 0.1 * dt.grad(loss, z)).detach().requires_grad_()
    assert np.allclose(z.numpy(), 1 + 2j, atol=1e-3)


def test_incoming_gradient_must_have_the_dtype_of_the_output() -> None:
    z = leaf(2)
    with pytest.raises(dt.DTypeError, match="must be complex128"):
        dt.grad(z * z, z, dt.ones(2, dtype=dt.float64, device="reference"))
