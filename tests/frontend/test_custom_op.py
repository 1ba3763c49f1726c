"""`dt.custom_op`: results and gradients equal their declaration, on the tape and captured."""

from __future__ import annotations

import pickle
from typing import Any

import dovetail as dt
import numpy as np
import pytest


@dt.custom_op("tests.cube", gradient=lambda g, x: g * 3 * x * x)
def cube(x: dt.Tensor) -> dt.Tensor:
    """The cube."""
    return x * x * x


@dt.custom_op(
    "moved", result=lambda x, w, by: ((*x.shape[:-1], w.shape[0]), x.dtype),
    gradient=lambda g, x, w, by, r: (g @ w, (g.T @ x) + 0 * r.sum()),
)  # fmt: skip
def matmul_and_shift(x: dt.Tensor, w: dt.Tensor, *, by: float = 1.0) -> dt.Tensor:
    """A matrix product, and a shift."""
    return x @ w.T + by


def points(*shape: int, d: dt.DType = dt.float64, seed: int = 0) -> dt.Tensor:
    return dt.asarray(np.random.default_rng(seed).normal(size=shape), dtype=d).requires_grad_()


def test_custom_op_has_its_values_and_gradients(device: dt.Device) -> None:
    x = points(3)
    assert cube(x).tolist() == (x * x * x).tolist()
    assert dt.autograd.gradcheck(cube, (x,)) and dt.autograd.gradgradcheck(cube, (x,))
    x, w = points(4, 3), points(5, 3, seed=1)
    assert matmul_and_shift(x, w).shape == (4, 5)
    assert dt.autograd.gradcheck(lambda x, w: matmul_and_shift(x, w, by=2.0), (x, w))
    assert dt.autograd.gradgradcheck(lambda x, w: matmul_and_shift(x, w, by=2.0), (x, w))


def test_custom_op_has_a_name_and_can_be_pickled() -> None:
    assert repr(cube) == "<custom op tests.cube(x)>" and cube.__doc__ == "The cube."
    assert pickle.loads(pickle.dumps(cube)) is cube
    x = dt.ones(2, device="reference").requires_grad_()
    assert "tests.cube" in repr(cube(x).grad_fn)


def test_custom_op_is_captured_and_explained(device: dt.Device) -> None:
    @dt.jit
    def step(x: dt.Tensor) -> Any:
        return dt.grad(cube(x).sum(), [x])[0]

    for seed in (0, 1):
        x = points(5, seed=seed)
        assert step(x).tolist() == (1.0 * 3 * x * x).tolist()
    y = points(5).detach()
    assert [k.name for k in dt.explain(cube(y)).launches] == ["multiply"]


def test_custom_op_of_an_elementwise_function_needs_no_rule(device: dt.Device) -> None:
    double = dt.custom_op("double", dt.elementwise(lambda x, y: x * y + y))
    x, y = points(3), points(3, seed=1)
    assert dt.autograd.gradcheck(double, (x, y)) and dt.autograd.gradgradcheck(double, (x, y))


def test_custom_op_of_a_function_that_writes_its_results(device: dt.Device) -> None:
    """As a kernel, it takes the new tensors first."""

    def split(small: dt.Tensor, large: dt.Tensor, x: dt.Tensor, at: float) -> None:
        small[...] = dt.where(x < at, x, 0.0)
        large[...] = dt.where(x < at, 0.0, x)

    op = dt.custom_op(
        "split", split, writes=True, result=lambda x: [(x.shape, x.dtype)] * 2,
        gradient=lambda g, x, at: dt.where(x < at, g[0], g[1]),
    )  # fmt: skip
    x = dt.asarray([1.0, 5.0, 3.0], dtype=dt.float64).requires_grad_()
    small, large = op(x, 4.0)
    assert small.tolist() == [1.0, 0.0, 3.0] and large.tolist() == [0.0, 5.0, 0.0]
    assert dt.autograd.gradcheck(lambda x: op(x, 4.0), (x,))
    assert op(x, at=4.0)[0].tolist() == [1.0, 0.0, 3.0]
    plain = dt.custom_op("plain", split, writes=True, result=lambda x: [(x.shape, x.dtype)] * 2)
    with pytest.raises(dt.GradientError, match="plain: has no gradient"):
        plain(x, 4.0)[0].sum().backward()
    with pytest.raises(dt.ArgumentTypeError, match="split: the first of small, large, x, at"):
        op(small, large, x, 4.0)


def test_custom_op_with_several_results_and_a_rule_per_operand(device: dt.Device) -> None:
    @dt.custom_op("both", gradient={"x": lambda g, y, r: g[0] * y + g[1] + 0 * r[0]})
    def both(x: dt.Tensor, y: dt.Tensor) -> Any:
        return x * y, x + y

    x, y = points(3), points(3, seed=1)
    assert dt.autograd.gradcheck(lambda x: both(x, y.detach()), (x,))
    both(x, y)[1].sum().backward()
    assert x.grad is not None and y.grad is None


def test_rule_may_return_none_for_an_operand(device: dt.Device) -> None:
    op = dt.custom_op("op", lambda x, y: x * y, gradient=lambda g, y: (g * y, None))
    x, y = points(3), points(3, seed=1)
    op(x, y).sum().backward()
    assert x.grad.tolist() == y.tolist() and y.grad is None


# --- wrong rules ----------------------------------------------------------------------------------

WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "number": (lambda g: g, dt.GradientError, "op: gradient must return 2 gradients, one for each"),
    "more": (lambda g: (g, g, g), dt.GradientError, "op: gradient must return 2 .* got 3"),
    "shape": (
        lambda g: (g, g), dt.ShapeError,
        r"op: gradient must return float32\[3\] .* for y, .* got float32\[2, 3\]",
    ),
    "dtype": (
        lambda g: (g.astype(dt.float64), None), dt.DTypeError,
        r"op: gradient must return .* for x, .* got float64",
    ),
    "a number": (
        lambda g: (1.0, None), dt.DTypeError, r"op: gradient must return a tensor for x, got 1\.0"
    ),
    "device": (
        lambda g: (g.to("cpu"), None), dt.DeviceError, r"op: gradient must .* for x, .* got .*cpu"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_rule_with_a_wrong_result_is_named(name: str) -> None:
    gradient, error, says = WRONG[name]
    if name == "device":
        pytest.importorskip("dovetail_cpu_llvm")
    op = dt.custom_op("op", lambda x, y: x + y, gradient=gradient)
    x = dt.ones((2, 3), device="reference").requires_grad_()
    y = dt.ones((3,), device="reference").requires_grad_()
    with pytest.raises(error, match=says):
        op(x, y).sum().backward()
    assert x.grad is None and y.grad is None


def test_result_that_differs_from_its_declaration_raises() -> None:
    x = dt.ones((2, 3), device="reference")

    def refused(f: Any, rule: Any, error: type[Exception], says: str) -> None:
        with pytest.raises(error, match=says):
            dt.custom_op("op", f, result=rule, gradient=lambda g: g)(x)

    good = lambda x: (x.shape, x.dtype)  # noqa: E731
    refused(
        lambda x: x.sum(axis=0), good, dt.ShapeError, r"op: the result must be .* got float32\[3\]"
    )
    refused(lambda x: x > 0, good, dt.DTypeError, "op: the result must be .* got bool")
    refused(
        lambda x: (x, x), good, dt.ArgumentError, "op: the function must return .* as result= says"
    )
    refused(lambda x: 3.0, good, dt.DTypeError, "op: expected a tensor, got float")
    refused(lambda x: (x, x), lambda x: [good(x)], dt.ArgumentError, "must return 1 results.*got 2")
    refused(lambda x: x, lambda x: 3, dt.ArgumentError, r"must return \(shape, dtype\)")
    refused(lambda x: x, lambda x: (3, x.dtype), dt.ArgumentError, "the shape of")
    with pytest.raises(dt.DTypeError, match="op: forward must return tensors, got str"):
        dt.custom_op("op", lambda x: "no", gradient=lambda g: g)(x)


def test_bad_parameters_of_custom_op_raise() -> None:
    def refused(says: str, *args: Any, **options: Any) -> None:
        with pytest.raises((dt.ArgumentError, dt.DTypeError), match=says):
            dt.custom_op(*args, **options)

    refused("custom_op: name must be a name", "a b", lambda x: x)
    refused("op: function must be a function", "op", 3)
    refused("op: writes=True requires result=", "op", lambda o, x: x, writes=True)
    refused("must have named parameters", "op", lambda *xs: xs[0])
    refused("the parameters of gradient .* got q", "op", lambda x: x, gradient=lambda g, q: g)
    refused("got 'z'", "op", lambda x: x, gradient={"z": lambda g: g})
    with pytest.raises(
        dt.ArgumentTypeError, match=r"tests\.cube: missing a required argument: 'x'"
    ):
        cube()
    with pytest.raises(dt.LayoutError, match=r"tests\.cube"):
        cube(dt.ones((2, 2), device="reference").to_sparse())
