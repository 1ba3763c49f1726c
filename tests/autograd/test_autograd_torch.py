"""Gradients judged by PyTorch: its gradcheck, its subgradients, and programs that write in place.

`test_opinfo.py` takes the samples of PyTorch's own tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradgradcheck, vjp
from gradient_cases import CASES, uniform

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

pytestmark = pytest.mark.usefixtures("cpu_device")


@pytest.fixture
def cpu_device() -> Any:
    """Run on the cpu if it is installed.

    Rules are the same for every device, and this one is fast.
    """
    before = dt.default_device()
    found = [str(d) for d in dt.devices()]
    yield dt.set_default_device("cpu" if "cpu" in found else "reference")
    dt.set_default_device(before)


# --- torch.autograd.gradcheck --------------------------------------------------------------------


class TorchWrapper(torch.autograd.Function):  # type: ignore[misc, name-defined]
    """A dovetail program and its gradient as a PyTorch autograd function."""

    @staticmethod
    def forward(ctx: Any, program: Callable[..., Any], *inputs: Any) -> Any:
        given = [dt.asarray(t.detach().numpy(), copy=True) for t in inputs]
        out, ctx.back = vjp(program, *given)
        return torch.tensor(out.numpy())

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        found = ctx.back(dt.asarray(g.numpy(), copy=True))
        return None, *(torch.tensor(part.numpy().copy()) for part in found)


@pytest.mark.parametrize("name", CASES)
def test_torch_gradcheck_accepts_every_gradient(name: str) -> None:
    _, f, arrays, eps = CASES[name]
    inputs = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]
    assert torch.autograd.gradcheck(lambda *ts: TorchWrapper.apply(f, *ts), inputs, eps=eps)


def test_torch_gradcheck_reports_a_wrong_gradient() -> None:
    class Wrong(dt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 3.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2.0

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(lambda t: TorchWrapper.apply(Wrong.apply, t), [x])


# --- subgradients --------------------------------------------------------------------------------


def leaf(values: Any) -> dt.Tensor:
    x = dt.asarray(values, copy=True)
    dt.evaluate(x)
    return x.requires_grad_()


def derivatives(module: Any, f: Callable[..., Any], xs: list[Any]) -> list[Any]:
    """Return the first derivatives of the sum of f and the derivatives of their sum, as arrays."""
    take = dt.grad if module is dt else torch.autograd.grad
    first = take(f(*xs).sum(), xs, create_graph=True, allow_unused=True)
    parts = [g.sum() for g in first if g is not None and g.requires_grad]
    total: Any = None
    for part in parts:
        total = part if total is None else total + part
    second = [None] * len(xs) if total is None else take(total, xs, allow_unused=True)
    return [
        np.zeros(x.shape) if g is None
        else g.numpy() if module is dt else g.numpy(force=True)
        for x, g in zip([*xs, *xs], [*first, *second], strict=True)
    ]  # fmt: skip


def assert_equal_derivatives(f: Callable[..., Any], g: Callable[..., Any], *arrays: Any) -> None:
    """Assert that the first and second derivatives of f in dovetail equal those of g in PyTorch."""
    ours = derivatives(dt, f, [leaf(a) for a in arrays])
    theirs = derivatives(torch, g, [torch.tensor(a, requires_grad=True) for a in arrays])
    for i, (have, want) in enumerate(zip(ours, theirs, strict=True)):
        if i >= len(arrays):  # torch: second derivative of copysign and pow is NaN at 0
            have = np.where(np.isnan(want), want, have)
        np.testing.assert_allclose(have, want, 1e-12, 1e-12)


POINTS = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
PAIRS = [m.reshape(-1) for m in np.meshgrid(POINTS, POINTS)]
TRIPLES = [m.reshape(-1) for m in np.meshgrid(POINTS, POINTS, POINTS)]

ONE = (
    "abs", "negative", "positive", "sign", "square", "reciprocal", "sqrt", "rsqrt", "ceil", "floor",
    "trunc", "round", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc",
    "sigmoid", "relu",
)  # fmt: skip
TWO = ("add", "subtract", "multiply", "divide", "remainder", "atan2", "hypot", "copysign",
       "logaddexp", "maximum", "minimum")  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_subgradients_of_unary_functions_equal_pytorch(name: str) -> None:
    assert_equal_derivatives(getattr(dt, name), getattr(torch, name), POINTS)


@pytest.mark.parametrize("name", TWO)
def test_subgradients_of_binary_functions_equal_pytorch(name: str) -> None:
    assert_equal_derivatives(getattr(dt, name), getattr(torch, name), *PAIRS)


def test_subgradients_of_powers_equal_pytorch() -> None:
    for k in (0, 1, 2, 3, -1, 0.0, 0.5, -0.5, 2.0, 2.5):
        assert_equal_derivatives(lambda x, k=k: x**k, lambda x, k=k: x**k, POINTS)
    for base in (1.0, 2, 0.5):
        assert_equal_derivatives(lambda x, b=base: b**x, lambda x, b=base: b**x, POINTS)
    assert_equal_derivatives(dt.pow, torch.pow, *PAIRS)
    assert_equal_derivatives(lambda y: 0.0 ** y.exp(), lambda y: 0.0 ** y.exp(), POINTS)


@pytest.mark.parametrize("bounds", [(0, 1), (0, None), (None, 1), (-0.5, 0.5), (1, -1)])
def test_subgradients_of_clip_at_its_bounds_equal_pytorch(bounds: Any) -> None:
    assert_equal_derivatives(
        lambda x: dt.clip(x, *bounds), lambda x: torch.clip(x, *bounds), POINTS
    )


def test_subgradients_of_clip_and_where_equal_pytorch() -> None:
    assert_equal_derivatives(dt.clip, torch.clip, *TRIPLES)
    assert_equal_derivatives(
        lambda x, y: dt.where(x > 0, x * y, y), lambda x, y: torch.where(x > 0, x * y, y), *PAIRS
    )


REDUCED: dict[str, tuple[Any, Any]] = {
    "max": (lambda x: dt.max(x, axis=1), lambda x: torch.amax(x, 1)),
    "min": (lambda x: dt.min(x, axis=0), lambda x: torch.amin(x, 0)),
    "prod": (lambda x: dt.prod(x, axis=1), lambda x: torch.prod(x, 1)),
    "cumprod": (lambda x: dt.cumulative_prod(x, axis=1), lambda x: torch.cumprod(x, 1)),
    "std": (lambda x: dt.std(x, axis=1), lambda x: torch.std(x, 1, correction=0)),
    "std of one": (lambda x: dt.std(x[:, :1], axis=1),
                   lambda x: torch.std(x[:, :1], 1, correction=0)),
    "var": (lambda x: dt.var(x, axis=1, correction=1), lambda x: torch.var(x, 1)),
    "logsumexp": (lambda x: dt.logsumexp(x, axis=1), lambda x: torch.logsumexp(x, 1)),
    "softmax": (lambda x: dt.softmax(x, axis=1)[:, 0], lambda x: torch.softmax(x, 1)[:, 0]),
    "log_softmax": (lambda x: dt.log_softmax(x, axis=0), lambda x: torch.log_softmax(x, 0)),
}  # fmt: skip
TIES = np.array([[1.0, 3.0, 3.0, -2.0], [0.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 3.0],
                 [0.0, -1.0, 2.0, 2.0]])  # fmt: skip


@pytest.mark.parametrize("name", REDUCED)
def test_subgradients_of_reductions_at_ties_and_zeros_equal_pytorch(name: str) -> None:
    assert_equal_derivatives(*REDUCED[name], TIES)


def test_gradients_propagate_nan() -> None:
    nan = np.array([np.nan, 1.0])
    for name in ("relu", "maximum", "minimum"):
        args = (nan,) if name == "relu" else (nan, nan[::-1].copy())
        assert_equal_derivatives(getattr(dt, name), getattr(torch, name), *args)
    assert_equal_derivatives(dt.max, torch.max, nan)  # amax gives NaN to all


# --- programs ------------------------------------------------------------------------------------


def test_gradient_of_a_tensor_with_many_uses_equals_pytorch() -> None:
    def f(x: Any, y: Any) -> Any:
        h = x * y
        return h * h + x * h - y

    assert_equal_derivatives(f, f, uniform(5), uniform(5))


def test_gradient_of_a_small_network_equals_pytorch() -> None:
    arrays = [uniform(8, 5), uniform(5, 7), uniform(7), uniform(7, 3)]

    def f(x: Any, w: Any, b: Any, v: Any) -> Any:
        h = (x @ w + b).tanh() @ v
        return h - h.logsumexp(1).reshape(8, 1)

    assert_equal_derivatives(f, f, *arrays)


def test_gradient_of_in_place_ops_equals_pytorch() -> None:
    def f(x: Any, y: Any) -> Any:
        h = x * 2.0
        h += y
        h *= 3.0
        h.exp_()
        return h * y

    assert_equal_derivatives(f, f, uniform(4), uniform(4))
    assert gradgradcheck(f, [leaf(uniform(4)), leaf(uniform(4))])


def test_gradient_of_row_writes_to_a_buffer_equals_pytorch() -> None:
    def f(x: Any, y: Any, empty: Any) -> Any:
        buffer = empty((4, 3))
        buffer[0] = x
        for i in range(1, 4):
            buffer[i] = (buffer[i - 1] + 0.0) * y + i
        buffer[1:3, 1] = 5.0
        buffer[:, 2] *= 3.0
        buffer[0, :2] += x[1:]
        return buffer

    assert_equal_derivatives(
        lambda x, y: f(x, y, lambda s: dt.zeros(s, dtype=dt.float64)),
        lambda x, y: f(x, y, lambda s: torch.zeros(s, dtype=torch.float64)),
        uniform(3), uniform(3) + 1.0,
    )  # fmt: skip


@pytest.mark.parametrize("evaluated", [False, True])
def test_gradient_of_writes_through_views_and_bases_equals_pytorch(
    evaluated: bool,
) -> None:
    def f(x: Any, y: Any) -> Any:
        base = (y * 1.0).reshape(3, 3)
        if evaluated and isinstance(base, dt.Tensor):
            dt.evaluate(base)
        row, column = base[1], base[:, 0]
        row.add_(x)
        base[:, 2] = x * x
        column *= 2.0
        return column * 2.0, row * 3.0, base * 1.0

    for k in range(3):
        assert_equal_derivatives(
            lambda x, y, k=k: f(x, y)[k], lambda x, y, k=k: f(x, y)[k], uniform(3), uniform(9)
        )
