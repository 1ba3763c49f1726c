"""Distributions of float16 and bfloat16: every value is computed in float32 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import dovetail as dt
import numpy as np
import pytest
from dovetail.nn import Linear

pytestmark = pytest.mark.values

D = dt.distributions
HALVES = ("float16", "bfloat16")
# Public names that return no half-precision value, or a sample or a parameter unchanged.
NO_VALUES = frozenset((
    "arg_constraints", "batch_shape", "captured_for", "component_distribution", "concentration",
    "df", "enumerate_support", "event_shape", "expand", "has_enumerate_support", "has_rsample",
    "loc", "mixture_distribution", "param_shape", "rate", "rsample", "sample", "sample_n", "scale",
    "set_default_validate_args", "support",
))  # fmt: skip


@pytest.fixture(autouse=True)
def device() -> Iterator[None]:
    before = dt.default_device()
    dt.set_default_device("reference")
    yield
    dt.set_default_device(before)


def classes_below(cls: type) -> Iterator[type]:
    yield cls
    for derived in cls.__subclasses__():
        yield from classes_below(derived)


def test_every_value_of_every_distribution_is_computed_in_float32() -> None:
    class Mine(D.Normal):
        @property
        def mean(self) -> dt.Tensor:
            return self.loc * 1.0

    every = [*classes_below(D.Distribution)]
    assert Mine in every and len(every) > 30
    for cls in every:
        for name, value in vars(cls).items():
            if name.startswith("_") or name in NO_VALUES:
                continue
            if isinstance(value, property):
                value = value.fget
            elif type(value).__name__ == "computed":
                value = value._compute
            if callable(value):
                assert getattr(value, "is_widened", False), f"{cls.__name__}.{name}"
            else:
                assert isinstance(value, (bool, D.constraints.Constraint)) or value is None, name
    assert D.kl_divergence.is_widened


@pytest.mark.parametrize("d", HALVES)
def test_user_distribution_computes_halves_in_float32(d: str) -> None:
    seen = []

    class Squares(D.Distribution):
        arg_constraints: ClassVar = {"scale": D.constraints.positive}
        support = D.constraints.real

        def __init__(self, scale: Any) -> None:
            self.scale = scale
            super().__init__(scale.shape)

        @property
        def variance(self) -> dt.Tensor:
            seen.append(self.scale.dtype)
            return self.scale * self.scale * self.scale / (self.scale * self.scale)

        def log_prob(self, value: Any) -> dt.Tensor:
            seen.append(value.dtype)
            return value * self.scale * self.scale / self.scale

    scale = dt.asarray([3e3, 10.0], dtype=d).requires_grad_()
    p = Squares(scale)
    assert p.variance.dtype is scale.dtype
    np.testing.assert_array_equal(p.variance.tolist(), scale.tolist())
    value = dt.asarray([2.0, 3.0], dtype=d)
    y = p.log_prob(value)
    np.testing.assert_array_equal(y.tolist(), (scale * value).tolist())
    y.sum().backward()
    assert scale.grad is not None and scale.grad.dtype is scale.dtype
    np.testing.assert_array_equal(scale.grad.tolist(), value.tolist())
    assert set(seen) == {dt.float32}


@pytest.mark.parametrize("d", HALVES)
def test_reported_dirichlet_of_halves_is_right(d: str) -> None:
    a = dt.asarray([1000.0, 2000.0, 3000.0], dtype=d).requires_grad_()
    p, q = D.Dirichlet(a), D.Dirichlet(a.detach().astype(dt.float64))
    x = dt.asarray([0.25, 0.25, 0.5], dtype=d)
    eps = float(dt.finfo(a.dtype).eps)
    for have, want in (
        (p.log_prob(x), q.log_prob(x.astype(dt.float64))), (p.entropy(), q.entropy()),
        (p.stddev, q.stddev), (p.variance * 1.0, q.variance),
    ):  # fmt: skip
        assert have.dtype is a.dtype
        np.testing.assert_allclose(have.astype(dt.float64).tolist(), want.tolist(), rtol=2 * eps,
                                   atol=float(dt.finfo(a.dtype).smallest_normal) * eps)  # fmt: skip
    (g,) = dt.autograd.grad(p.entropy(), [a])
    b = a.detach().astype(dt.float64).requires_grad_()
    (want,) = dt.autograd.grad(D.Dirichlet(b).entropy(), [b])
    np.testing.assert_allclose(g.astype(dt.float64).numpy(), want.numpy(), rtol=0.02, atol=1e-6)


@pytest.mark.parametrize("d", HALVES)
def test_nested_distributions_and_transforms_of_halves_round_once(d: str) -> None:
    def build(t: Any) -> list[Any]:
        base = D.Normal(t([0.3, -0.7]), t(1.7))
        steps = [D.AffineTransform(t(0.3), t(1.3)), D.TanhTransform(), D.AffineTransform(0.1, t(3))]
        mixed = D.MixtureSameFamily(D.Categorical(t([1.0, 300.0])), D.Gamma(t([2.0, 70.0]), t(0.3)))
        kinds = D.TransformedDistribution(D.Exponential(t([0.1])), [D.ExpTransform().inv])
        return [D.TransformedDistribution(base, steps), mixed, kinds,
                D.Independent(D.TransformedDistribution(base, steps), 1), mixed.expand((2,)),
                D.OneHotCategorical(logits=t([[0.3, 5.0]])).expand((3, 1))]  # fmt: skip

    values = [[1.9, -2.1], 300.0, [2.0], [1.9, -2.1], 300.0, [0.0, 1.0]]
    halves = build(lambda v: dt.asarray(v, dtype=d))
    exact = build(lambda v: dt.asarray(v, dtype=d).astype(dt.float64))
    for p, q, v in zip(halves, exact, values, strict=True):
        x = dt.asarray(v, dtype=d)
        have, want = p.log_prob(x), q.log_prob(x.astype(dt.float64))
        assert have.dtype is x.dtype and have.shape == want.shape
        np.testing.assert_array_equal(have.tolist(), want.astype(x.dtype).tolist(), err_msg=repr(p))


@pytest.mark.parametrize("d", HALVES)
def test_cached_sample_of_halves_keeps_its_density(d: str) -> None:
    loc = dt.asarray([-50.0, 50.0], dtype=d)
    p = D.TransformedDistribution(D.Normal(loc, 1.0), D.TanhTransform(cache_size=1))
    y = p.rsample(generator=dt.random.default_rng(1))
    assert y.tolist() == [-1.0, 1.0]
    x = p.transforms[0].inv(y).astype(dt.float64).numpy()
    off = x - loc.astype(dt.float64).numpy()
    want = -off * off / 2 - 0.5 * math.log(2 * math.pi) + 2 * (np.abs(x) - math.log(2.0))
    rtol = float(dt.finfo(y.dtype).eps)
    np.testing.assert_allclose(p.log_prob(y).astype(dt.float64).numpy(), want, rtol=rtol)
    shared = p.transforms[0]
    shared(dt.asarray(0.5, dtype="float32"))  # a cached value of another dtype cannot be an operand
    assert p.log_prob(dt.asarray([0.5, 0.5], dtype=d)).dtype is y.dtype


@pytest.mark.parametrize("d", HALVES)
def test_user_transform_with_a_half_module_computes_in_float32(d: str) -> None:
    class Moved(D.Transform):
        domain = codomain = D.constraints.real_vector
        bijective, sign = True, 1

        def __init__(self) -> None:
            super().__init__()
            self.layer = Linear(2, 2).to(getattr(dt, d))

        def _inverse(self, y: dt.Tensor) -> dt.Tensor:
            return y - self.layer(dt.ones_like(y))

        def log_abs_det_jacobian(self, x: dt.Tensor, y: dt.Tensor) -> dt.Tensor:
            return dt.sum(x * 0.0, axis=-1)

    t = Moved()
    base = D.Independent(D.Normal(dt.zeros(2, dtype=d), 1.0), 1)
    x = dt.asarray([0.3, 0.4], dtype=d)
    y = D.TransformedDistribution(base, t, validate_args=False).log_prob(x)
    w = t.layer.weight.detach().astype(dt.float64).numpy()
    b = t.layer.bias.detach().astype(dt.float64).numpy()
    off = x.astype(dt.float64).numpy() - w.sum(1) - b
    want = -(off * off).sum() / 2 - math.log(2 * math.pi)
    assert abs(y.item() - want) <= float(dt.finfo(x.dtype).eps) * abs(want)
    y.backward()
    assert t.layer.weight.grad is not None and t.layer.weight.grad.dtype is x.dtype


@pytest.mark.parametrize("d", HALVES)
def test_samples_of_halves_pass_validation(d: str) -> None:
    for p in (
        D.Dirichlet(dt.asarray([0.3, 1.0, 7.0], dtype=d)), D.Beta(dt.asarray(0.3, dtype=d), 2.0),
        D.Uniform(dt.asarray(-1.0, dtype=d), 0.3), D.Categorical(dt.asarray([0.1, 0.7], dtype=d)),
    ):  # fmt: skip
        x = p.sample((50,), generator=dt.random.default_rng(3))
        assert p.log_prob(x).shape == (50,)
    with pytest.raises(dt.ArgumentError, match="Simplex"):
        D.Dirichlet(dt.asarray([1.0, 1.0], dtype=d)).log_prob(dt.asarray([0.5, 0.6], dtype=d))


@pytest.mark.parametrize("d", HALVES)
def test_matrices_of_halves_round_once(d: str) -> None:
    m, at = dt.asarray([[2.0, 0.7], [0.7, 1.3]], dtype=d), dt.asarray([0.0, 0.1], dtype=d)
    for which in ("covariance_matrix", "precision_matrix"):
        p = D.MultivariateNormal(at, **{which: m})
        q = D.MultivariateNormal(at.astype(dt.float64), **{which: m.astype(dt.float64)})
        for name in ("covariance_matrix", "precision_matrix", "scale_tril", "variance"):
            have, want = getattr(p, name), getattr(q, name)
            np.testing.assert_array_equal(have.tolist(), want.astype(m.dtype).tolist(), name)
        assert p.sample((3,)).dtype is m.dtype
        both = [D.kl_divergence(a, D.MultivariateNormal(a.loc + 1.0, scale_tril=a.scale_tril * 2.0))
                for a in (p, q)]  # fmt: skip
        assert abs(both[0].item() - both[1].item()) <= 2e-2


@pytest.mark.parametrize("d", HALVES)
def test_mean_that_is_a_parameter_stays_that_tensor(d: str) -> None:
    p = D.Normal(dt.asarray([1.0], dtype=d), 1.0)
    assert p.mean is p.loc and p.stddev is p.scale


def test_captured_values_of_halves_equal_plain_ones() -> None:
    def value(a: dt.Tensor, x: dt.Tensor) -> dt.Tensor:
        p = D.Gamma(a, 0.3, validate_args=False)
        return p.log_prob(x) + p.entropy()

    a, x = dt.asarray([3.0, 90.0], dtype="float16"), dt.asarray([2.0, 200.0], dtype="float16")
    np.testing.assert_array_equal(dt.jit(value)(a, x).tolist(), value(a, x).tolist())


def test_values_of_distributions_take_keywords() -> None:
    p = D.Normal(dt.zeros(2, dtype="float16"), 1.0)
    q = D.Normal(dt.ones(2, dtype="float32"), 1.0)
    assert D.kl_divergence(p=p, q=p).dtype is dt.float16
    assert D.kl_divergence(p, q=q).tolist() == D.kl_divergence(q=q, p=p).tolist() == [0.5, 0.5]
    assert q.log_prob(value=1.0).tolist() == q.log_prob(1.0).tolist()
    assert p.log_prob(value=1.0).dtype is dt.float16
    with pytest.raises(TypeError, match="missing argument p"):
        D.kl_divergence()


def test_parameters_assigned_later_select_the_computation_dtype() -> None:
    half, whole = dt.asarray([0.3], dtype=dt.float16), dt.asarray([0.3])
    d = D.Normal(half, half)
    d.log_prob(half)
    d.loc, d.scale = whole, whole
    assert dt.array_equal(d.log_prob(whole), D.Normal(whole, whole).log_prob(whole))
    d.loc, d.scale = half, half
    assert dt.array_equal(d.log_prob(half), D.Normal(half, half).log_prob(half))
