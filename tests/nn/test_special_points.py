"""Activations and losses at special points against PyTorch: kinks, tails, infinities, NaN."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import dovetail as dt
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

F, THEIRS = dt.nn.functional, torch.nn.functional
INF, NAN = math.inf, math.nan
POINTS = (
    *(sign * x for x in (0.0, 0.5, 1.0, 2.0, 3.0, 6.0, 20.0, 21.0, 50.0, 1e30, INF, 1e-8, 1e-40)
      for sign in (1.0, -1.0)), NAN,
)  # fmt: skip
CHANCES = (0.0, 1.0, 0.5, 0.25, 1e-30, 1.0 - 2**-53)


class Case(NamedTuple):
    """A function of dovetail and of PyTorch, and the points."""

    ours: Callable[[Any], Any]
    theirs: Callable[[Any], Any]
    points: tuple[float, ...] = POINTS


def named(name: str, **options: Any) -> Case:
    mine, other = getattr(F, name), getattr(THEIRS, name, None) or getattr(torch, name)
    return Case(lambda x: mine(x, **options), lambda x: other(x, **options))


def loss(name: str, other: float, points: tuple[float, ...] = POINTS, **options: Any) -> Case:
    """Return a loss of x and a constant."""
    return Case(
        lambda x: getattr(F, name)(x, dt.full_like(x, other), reduction="none", **options),
        lambda x: getattr(THEIRS, name)(x, torch.full_like(x, other), reduction="none", **options),
        points,
    )


ACTIVATIONS = {
    "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
    "logsigmoid", "mish", "prelu", "relu", "relu6", "rrelu", "selu", "sigmoid", "silu", "softplus",
    "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
}  # fmt: skip
LOSSES = {
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss", "huber_loss",
    "kl_div", "l1_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
}  # fmt: skip
CASES: dict[str, Case] = {
    **{n: named(n) for n in sorted(ACTIVATIONS - {"prelu", "threshold"})},
    "prelu": Case(
        lambda x: F.prelu(x, dt.asarray([0.25], dtype=x.dtype)),
        lambda x: THEIRS.prelu(x, torch.tensor([0.25], dtype=x.dtype)),
    ),
    "threshold": named("threshold", threshold=0.5, value=2.0),
    "gelu tanh": named("gelu", approximate="tanh"),
    "elu 2": named("elu", alpha=2.0),
    "celu 2": named("celu", alpha=2.0),
    "softplus 3": named("softplus", beta=3.0),
    **{f"{n} {t}": loss(n, t)
       for n in sorted(LOSSES - {"binary_cross_entropy", "gaussian_nll_loss", "soft_margin_loss"})
       for t in (0.0, 1.0, 0.5)},
    **{f"{n} {INF}": loss(n, INF) for n in ("smooth_l1_loss", "huber_loss", "mse_loss")},
    **{f"binary_cross_entropy {t}": loss("binary_cross_entropy", t, CHANCES)
       for t in (0.0, 1.0, 0.5)},
    **{f"soft_margin_loss {t}": loss("soft_margin_loss", t) for t in (1.0, -1.0)},
    "gaussian_nll_loss": Case(
        lambda x: F.gaussian_nll_loss(x, dt.zeros_like(x), dt.ones_like(x), reduction="none"),
        lambda x: THEIRS.gaussian_nll_loss(
            x, torch.zeros_like(x), torch.ones_like(x), reduction="none"
        ),
    ),
    "poisson_nll_loss of rates": loss("poisson_nll_loss", 2.0, log_input=False, full=True),
}  # fmt: skip

LIMIT = "the limit; PyTorch multiplies 0 by infinity, or divides infinities"
EXACT = "the exact value; PyTorch subtracts numbers that are nearly equal"
RANGE = "no overflow"
# Intentional differences: points, value or slope, dovetail's result, and the reason.
DIFFERENT: dict[str, dict[tuple[float, str], tuple[float, str]]] = {
    "hardswish": {(-INF, "value"): (0.0, LIMIT)},
    "softsign": {
        (INF, "value"): (1.0, LIMIT), (-INF, "value"): (-1.0, LIMIT),
        (INF, "slope"): (0.0, LIMIT), (-INF, "slope"): (0.0, LIMIT),
    },
    **{n: {
        (INF, "slope"): (1.0, LIMIT), (-INF, "value"): (0.0, LIMIT), (-INF, "slope"): (0.0, LIMIT),
    } for n in ("gelu", "gelu tanh", "silu", "mish")},
    "binary_cross_entropy_with_logits 0.0": {(-50.0, "value"): (math.exp(-50.0), EXACT)},
    "binary_cross_entropy_with_logits 0.5": {(-INF, "value"): (INF, LIMIT)},
    "binary_cross_entropy_with_logits 1.0": {
        (50.0, "slope"): (-math.exp(-50.0), EXACT), (-INF, "value"): (INF, LIMIT),
    },
    **{f"soft_margin_loss {t}": {
        (-t * 1e30, "value"): (1e30, RANGE), (-t * 1e30, "slope"): (-t, RANGE),
        (-t * INF, "slope"): (-t, RANGE),
    } for t in (1.0, -1.0)},
}  # fmt: skip


def same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-300) or (math.isnan(a) and math.isnan(b))


def excuse(case: str, point: float, what: str) -> tuple[float, str] | None:
    for (at, kind), (ours, why) in DIFFERENT.get(case, {}).items():
        if kind == what and (at == point or (math.isnan(at) and math.isnan(point))):
            return ours, why
    return None


def values(case: Case) -> dict[str, tuple[list[float], list[float]]]:
    x = dt.asarray(np.array(case.points)).requires_grad_()
    t = torch.tensor(case.points, dtype=torch.float64, requires_grad=True)
    y, u = case.ours(x), case.theirs(t)
    g, v = dt.grad(y.sum(), x), torch.autograd.grad(u.sum(), t)[0]
    return {"value": (y.tolist(), u.tolist()), "slope": (g.tolist(), v.tolist())}


@pytest.mark.parametrize("name", CASES)
def test_values_and_slopes_at_special_points_equal_torch(name: str) -> None:
    case = CASES[name]
    for what, (mine, other) in values(case).items():
        for point, a, b in zip(case.points, mine, other, strict=True):
            if math.isnan(point) and what == "slope":
                continue  # PyTorch's depends on the number of elements
            excused = excuse(name, point, what)
            want = b if excused is None else excused[0]
            assert same(a, want), f"{name}: {what} at {point} is {a}, not {want}"
            assert excused is None or not same(a, b), f"{name}: {point} needs no excuse: {excused}"


def test_every_activation_and_loss_has_a_case() -> None:
    tried = {name.partition(" ")[0] for name in CASES}
    for module, names in (("activations", ACTIVATIONS), ("losses", LOSSES)):
        here = {
            n for n in F.__all__ if inspect.unwrap(getattr(F, n)).__module__.endswith(f".{module}")
        }
        assert here == names <= tried


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", sorted(ACTIVATIONS - {"threshold", "prelu"}))
def test_activations_propagate_nan_and_are_finite_in_tails(name: str, dtype: str) -> None:
    x = dt.asarray([NAN, -1e4, 1e4], dtype=getattr(dt, dtype)).requires_grad_()
    y = getattr(F, name)(x)
    slopes = dt.grad(y.sum(), x).tolist()
    assert [math.isnan(v) for v in y.tolist()] == [True, False, False]
    assert not any(math.isnan(v) for v in slopes[1:])
    assert slopes[0] != 0.0 or name == "softshrink"  # there it is PyTorch's


@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
@pytest.mark.parametrize("x", [-6.0, -20.0, -50.0, -80.0])
def test_exponential_units_keep_their_slope_far_below_zero(name: str, x: float) -> None:
    scale = 1.6732632423543772 * 1.0507009873554805 if name == "selu" else 1.0
    t = dt.asarray([x]).requires_grad_()
    (got,) = dt.grad(getattr(F, name)(t).sum(), t).tolist()
    assert got == pytest.approx(scale * math.exp(x), rel=1e-6, abs=0.0)


@pytest.mark.parametrize("target", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("weight", [None, 3.0])
def test_cross_entropy_of_logits_is_exact_in_both_tails(
    target: float, weight: float | None
) -> None:
    points = np.array([-80.0, -30.0, -5.0, -0.5, 0.0, 0.5, 5.0, 30.0, 80.0])
    w = 1.0 if weight is None else weight
    x = dt.asarray(points.astype(np.float32)).requires_grad_()
    options = {} if weight is None else {"pos_weight": dt.asarray([weight])}
    y = F.binary_cross_entropy_with_logits(x, dt.full_like(x, target), reduction="none", **options)
    want = target * w * np.logaddexp(0, -points) + (1 - target) * np.logaddexp(0, points)
    np.testing.assert_allclose(y.tolist(), want, rtol=1e-6)
    part = lambda z: np.exp(z - np.logaddexp(0, z))  # noqa: E731 - the sigmoid, without overflow
    slope = (1 - target) * part(points) - target * w * part(-points)
    np.testing.assert_allclose(dt.grad(y.sum(), x).tolist(), slope, rtol=1e-6)


@pytest.mark.parametrize("name", ["smooth_l1_loss", "huber_loss"])
def test_second_derivative_of_a_squared_loss_at_zero_is_that_of_the_square(name: str) -> None:
    x = dt.zeros(2, dtype=dt.float64)
    f = lambda t: getattr(F, name)(t, dt.zeros_like(t), reduction="sum")  # noqa: E731
    assert dt.func.hessian(f)(x).tolist() == [[1.0, 0.0], [0.0, 1.0]]


VECTORS = [[0.0, 0.0], [3.0, 4.0], [0.0, -2.0]]


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 2.5, 3, 4, -1, -2, INF, -INF])
def test_norms_have_slope_zero_at_zero(p: float) -> None:
    for mine, other in (
        (lambda x: dt.linalg.vector_norm(x, ord=p, axis=-1),
         lambda x: torch.linalg.vector_norm(x, ord=p, dim=-1)),
        (lambda x: dt.linalg.vector_norm(x * 0.0, ord=p),
         lambda x: torch.linalg.vector_norm(x * 0.0, ord=p)),
        (lambda x: F.normalize(x, p=p, dim=-1), lambda x: THEIRS.normalize(x, p=p, dim=-1)),
        (lambda x: F.pairwise_distance(x, x * 1.0, p=p, eps=0.0),
         lambda x: THEIRS.pairwise_distance(x, x * 1.0, p=p, eps=0.0)),
        (lambda x: F.cosine_similarity(x, x + 1.0), lambda x: THEIRS.cosine_similarity(x, x + 1.0)),
    ):  # fmt: skip
        x = dt.asarray(VECTORS, dtype=dt.float64).requires_grad_()
        t = torch.tensor(VECTORS, dtype=torch.float64, requires_grad=True)
        y, u = mine(x), other(t)
        np.testing.assert_allclose(y.tolist(), u.tolist(), rtol=1e-12)
        want = torch.autograd.grad(u.sum(), t)[0].numpy()
        np.testing.assert_allclose(dt.grad(y.sum(), x).numpy(), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, INF])
def test_lp_pool_has_slope_zero_where_it_is_zero(p: float) -> None:
    row = [[[0.0, 0.0, 1.0, 2.0, 0.0, 3.0]]]
    x = dt.asarray(row, dtype=dt.float64).requires_grad_()
    y = F.lp_pool1d(x, p, 2)
    t = torch.tensor(row, dtype=torch.float64, requires_grad=True)
    u = THEIRS.lp_pool1d(t, float(p), 2)
    np.testing.assert_allclose(y.tolist(), u.tolist(), rtol=1e-12)
    got = dt.grad(y.sum(), x).numpy()
    assert got[0, 0, :2].tolist() == [0.0, 0.0]
    want = torch.autograd.grad(u.sum(), t)[0].numpy()
    np.testing.assert_allclose(got, want, rtol=1e-12)
