"""Transforms, constraints and composed distributions against PyTorch."""

from __future__ import annotations

import pickle
from typing import Any

import dovetail as dt
import numpy as np
import pytest

torch = pytest.importorskip("torch")

D, TD = dt.distributions, torch.distributions
T, TT = D.transforms, TD.transforms
C, TC = D.constraints, TD.constraints

X = np.array([[-1.3, 0.2, 0.9], [0.4, -0.6, 2.1]])
SQUARE = np.array([[[0.5, 0.0, 0.0], [0.3, -0.2, 0.0], [-0.4, 0.8, 0.1]]])
LOC, SCALE = np.array([0.5, -1.0, 2.0]), np.array([[2.0], [-0.5]])


def t(x: Any) -> Any:
    return torch.tensor(x)


def of(x: Any) -> dt.Tensor:
    return dt.asarray(x, dtype=dt.float64)


CASES: dict[str, tuple[Any, Any, Any]] = {
    "exp": (lambda: T.ExpTransform(), lambda: TT.ExpTransform(), X),
    "abs": (lambda: T.AbsTransform(), lambda: TT.AbsTransform(), X),
    "sigmoid": (lambda: T.SigmoidTransform(), lambda: TT.SigmoidTransform(), X),
    "tanh": (lambda: T.TanhTransform(), lambda: TT.TanhTransform(), X),
    "softplus": (lambda: T.SoftplusTransform(), lambda: TT.SoftplusTransform(), X),
    "power": (lambda: T.PowerTransform(of(LOC)), lambda: TT.PowerTransform(t(LOC)), abs(X)),
    "affine": (
        lambda: T.AffineTransform(of(LOC), of(SCALE)),
        lambda: TT.AffineTransform(t(LOC), t(SCALE)),
        X,
    ),
    "affine-1": (
        lambda: T.AffineTransform(1.0, -2.0, event_dim=1),
        lambda: TT.AffineTransform(1.0, -2.0, event_dim=1),
        X,
    ),
    "softmax": (lambda: T.SoftmaxTransform(), lambda: TT.SoftmaxTransform(), X),
    "sticks": (lambda: T.StickBreakingTransform(), lambda: TT.StickBreakingTransform(), X),
    "correlation": (lambda: T.CorrCholeskyTransform(), lambda: TT.CorrCholeskyTransform(), X),
    "triangle": (lambda: T.LowerCholeskyTransform(), lambda: TT.LowerCholeskyTransform(), SQUARE),
    "definite": (
        lambda: T.PositiveDefiniteTransform(),
        lambda: TT.PositiveDefiniteTransform(),
        SQUARE,
    ),
    "reshape": (
        lambda: T.ReshapeTransform((3,), (3, 1)),
        lambda: TT.ReshapeTransform((3,), (3, 1)),
        X,
    ),
    "independent": (
        lambda: T.IndependentTransform(T.ExpTransform(), 1),
        lambda: TT.IndependentTransform(TT.ExpTransform(), 1),
        X,
    ),
    "composed": (
        lambda: T.ComposeTransform([T.AffineTransform(0.5, 2.0), T.StickBreakingTransform()]),
        lambda: TT.ComposeTransform([TT.AffineTransform(0.5, 2.0), TT.StickBreakingTransform()]),
        X,
    ),
    "inverse": (lambda: T.ExpTransform().inv, lambda: TT.ExpTransform().inv, abs(X)),
    "cat": (
        lambda: T.CatTransform([T.ExpTransform(), T.TanhTransform()], dim=-1, lengths=[1, 2]),
        lambda: TT.CatTransform([TT.ExpTransform(), TT.TanhTransform()], dim=-1, lengths=[1, 2]),
        X,
    ),
    "stack": (
        lambda: T.StackTransform([T.ExpTransform(), T.TanhTransform()], dim=0),
        lambda: TT.StackTransform([TT.ExpTransform(), TT.TanhTransform()], dim=0),
        X,
    ),
    "cdf": (
        lambda: T.CumulativeDistributionTransform(D.Normal(of(LOC), 2.0)),
        lambda: TT.CumulativeDistributionTransform(TD.Normal(t(LOC), 2.0)),
        X,
    ),
}


def assert_equal(have: dt.Tensor, want: Any, what: str = "") -> None:
    assert have.shape == tuple(want.shape), what
    np.testing.assert_allclose(
        have.detach().numpy(), want.detach().numpy(), rtol=1e-9, atol=1e-9, err_msg=what
    )


@pytest.mark.parametrize("name", CASES)
def test_transform_equals_pytorch(device: dt.Device, name: str) -> None:
    make, theirs, value = CASES[name]
    f, g = make(), theirs()
    x, y = of(value).requires_grad_(), torch.tensor(value, requires_grad=True)
    have, want = f(x), g(y)
    assert_equal(have, want, "forward")
    assert_equal(f.inv(have.detach()), g.inv(want.detach()), "inverse")
    assert f.inv.inv is f and f.bijective == g.bijective
    assert f.domain.event_dim == g.domain.event_dim
    assert f.codomain.event_dim == g.codomain.event_dim
    if name not in ("cat", "stack"):
        assert f.forward_shape(x.shape) == tuple(g.forward_shape(y.shape))
        assert f.inverse_shape(have.shape) == tuple(g.inverse_shape(want.shape))
    try:
        jacobian = g.log_abs_det_jacobian(y, want)
    except NotImplementedError:
        with pytest.raises(dt.UnsupportedError):
            f.log_abs_det_jacobian(x, have)
        return
    mine = f.log_abs_det_jacobian(x, have)
    assert_equal(mine, jacobian, "jacobian")
    if jacobian.requires_grad and mine.requires_grad:
        (a,) = dt.autograd.grad(mine.sum(), [x])
        (b,) = torch.autograd.grad(jacobian.sum(), [y])
        assert_equal(a, b, "gradient of the jacobian")
    assert_equal(
        f.inv.log_abs_det_jacobian(have, x), g.inv.log_abs_det_jacobian(want, y), "of the inverse"
    )


def test_equal_transforms_compare_equal() -> None:
    assert T.ExpTransform() == T.ExpTransform() != T.AbsTransform()
    assert T.AffineTransform(1.0, 2.0) == T.AffineTransform(1.0, 2.0) != T.AffineTransform(1.0, 3.0)
    assert T.ExpTransform().inv == T.ExpTransform().inv != T.ExpTransform()
    assert T.PowerTransform(of([1.0])) == T.PowerTransform(of([1.0]))
    both = [T.ExpTransform(), T.TanhTransform()]
    assert T.ComposeTransform(both) == T.ComposeTransform(both) != T.ComposeTransform(both[:1])


def test_transform_cache_returns_the_original_value() -> None:
    f = T.TanhTransform(cache_size=1)
    x = of([30.0])  # tanh of it is 1
    assert f.inv(f(x)) is x
    assert T.TanhTransform().with_cache()(x).tolist() == [1.0]
    assert not np.isfinite(T.TanhTransform().inv(f(x)).item())
    assert pickle.loads(pickle.dumps(f)) == f
    assert T.AffineTransform(1.0, 2.0).with_cache() == T.AffineTransform(1.0, 2.0)


@pytest.mark.parametrize("dims", [0, 1])
def test_transformed_distribution_equals_pytorch(device: dt.Device, dims: int) -> None:
    loc, scale = np.array([0.3, -0.5, 1.0]), np.array([0.5, 1.0, 2.0])

    def built(D: Any, T: Any, of: Any) -> Any:
        base = D.Normal(of(loc), of(scale))
        steps = [T.AffineTransform(0.5, -2.0), T.SigmoidTransform()]
        if dims:
            return D.TransformedDistribution(base, [*steps[:1], T.StickBreakingTransform()])
        return D.TransformedDistribution(base, steps)

    p, q = built(D, T, of), built(TD, TT, t)
    assert p.batch_shape == tuple(q.batch_shape) and p.event_shape == tuple(q.event_shape)
    value = (
        np.array([[0.2, 0.3, 0.4, 0.1]]) if dims else np.array([[0.2, 0.3, 0.4], [0.9, 0.5, 0.6]])
    )
    assert_equal(p.log_prob(of(value)), q.log_prob(t(value)))
    x = p.rsample((7,))
    assert x.shape == (7, *p.batch_shape, *p.event_shape)
    assert bool(dt.all(p.support.check(x)))
    larger = (4, 3) if not dims else (4,)
    assert p.expand(larger).log_prob(p.expand(larger).sample()).shape == larger
    if not dims:
        assert_equal(p.cdf(of(value)), q.cdf(t(value)))
        assert_equal(p.icdf(of(value)), q.icdf(t(value)))


def test_mixture_and_independent_equal_pytorch(device: dt.Device) -> None:
    weights, loc = np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([[0.0, 3.0], [-1.0, 1.0]])

    def mixture(D: Any, of: Any) -> Any:
        return D.MixtureSameFamily(D.Categorical(of(weights)), D.Normal(of(loc), of(loc * 0 + 1.5)))

    p, q = mixture(D, of), mixture(TD, t)
    value = np.array([[0.3, -0.2], [1.0, 2.0], [5.0, 0.0]])
    assert_equal(p.log_prob(of(value)), q.log_prob(t(value)))
    assert_equal(p.cdf(of(value)), q.cdf(t(value)))
    assert_equal(p.mean, q.mean)
    assert_equal(p.variance, q.variance)

    def independent(D: Any, of: Any) -> Any:
        return D.Independent(D.Normal(of(loc), of(loc * 0 + 1.5)), 1)

    r, s = independent(D, of), independent(TD, t)
    for what in ("log_prob",):
        assert_equal(getattr(r, what)(of(value[:2])), getattr(s, what)(t(value[:2])))
    assert_equal(r.entropy(), s.entropy())
    assert_equal(D.kl_divergence(r, r.expand((3, 2))), TD.kl_divergence(s, s.expand((3, 2))))


NAMED = {
    "real": X,
    "positive": X,
    "nonnegative": X,
    "unit_interval": X,
    "boolean": np.array([0.0, 1.0, 0.5]),
    "nonnegative_integer": np.array([0.0, 1.5, -1.0]),
    "positive_integer": np.array([0.0, 1.5, 1.0]),
    "simplex": np.array([[0.2, 0.8], [0.2, 0.9], [-0.2, 1.2]]),
    "real_vector": X,
    "one_hot": np.array([[0.0, 1.0], [1.0, 1.0]]),
    "lower_triangular": np.stack([np.tril(np.ones((3, 3))), np.ones((3, 3))]),
    "lower_cholesky": np.stack([np.eye(3), -np.eye(3), np.ones((3, 3))]),
    "corr_cholesky": np.stack([np.eye(3), np.eye(3) * 2]),
    "square": np.ones((2, 3, 3)),
    "symmetric": np.stack([np.eye(3), np.triu(np.ones((3, 3)))]),
    "positive_definite": np.stack([np.eye(3), -np.eye(3), np.ones((3, 3)) * 0.5 + np.eye(3)]),
    "positive_semidefinite": np.stack([np.eye(3), -np.eye(3)]),
}
BUILT = {
    "interval": (-1.0, 0.5),
    "half_open_interval": (-1.0, 0.9),
    "greater_than": (0.2,),
    "greater_than_eq": (0.2,),
    "less_than": (0.2,),
    "integer_interval": (0, 2),
    "multinomial": (3,),
}


@pytest.mark.parametrize("name", [*NAMED, *BUILT])
def test_constraint_equals_pytorch(name: str) -> None:
    if name in NAMED:
        ours, theirs, value = getattr(C, name), getattr(TC, name), NAMED[name]
    else:
        ours, theirs = (getattr(c, name)(*BUILT[name]) for c in (C, TC))
        value = np.array([[0.0, 1.0], [2.0, 3.0]]) if "inte" in name or name == "multinomial" else X
    have, want = ours.check(of(value)), theirs.check(t(value))
    assert have.shape == tuple(want.shape) and have.tolist() == want.tolist()
    assert ours.event_dim == theirs.event_dim and ours.is_discrete == theirs.is_discrete


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", [
    "real", "positive", "nonnegative", "unit_interval", "interval", "greater_than", "less_than",
    "simplex", "corr_cholesky", "lower_cholesky", "positive_definite", "real_vector",
])  # fmt: skip
def test_constraint_registries_equal_pytorch(registry: str, name: str) -> None:
    ours = getattr(C, name)(*BUILT[name]) if name in BUILT else getattr(C, name)
    theirs = getattr(TC, name)(*BUILT[name]) if name in BUILT else getattr(TC, name)
    value = SQUARE if name in ("lower_cholesky", "positive_definite") else X
    try:
        want = getattr(TD, registry)(theirs)
    except NotImplementedError:
        with pytest.raises(dt.UnsupportedError):
            getattr(D, registry)(ours)
        return
    f = getattr(D, registry)(ours)
    y = f(of(value))
    assert_equal(y, want(t(value)))
    assert bool(dt.all(ours.check(y)))


def test_user_constraint_can_be_registered() -> None:
    class Mine(C.Constraint):
        def check(self, value: dt.Tensor) -> dt.Tensor:
            return value > 7

    with pytest.raises(dt.UnsupportedError, match="register"):
        D.biject_to(Mine())
    D.biject_to.register(
        Mine, lambda c: T.ComposeTransform([T.ExpTransform(), T.AffineTransform(7.0, 1.0)])
    )
    assert bool(dt.all(Mine().check(D.biject_to(Mine())(of(X)))))


def test_cat_and_stack_constraints_equal_pytorch() -> None:
    value = np.array([[1.0, -2.0, 0.5], [-1.0, 3.0, 0.2]])
    for c, d in (
        (C.cat([C.positive, C.real], -1, [1, 2]), TC.cat([TC.positive, TC.real], -1, [1, 2])),
        (C.stack([C.positive, C.real], 0), TC.stack([TC.positive, TC.real], 0)),
    ):
        assert c.check(of(value)).tolist() == d.check(t(value)).tolist()
