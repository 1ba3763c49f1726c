"""Wrong parameters and values of distributions are named; PyTorch is not needed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import pytest

D = dt.distributions
T = D.transforms


def v(*x: float) -> dt.Tensor:
    return dt.asarray(x, dtype=dt.float32)


PARAMETERS: dict[str, tuple[Callable[[], Any], str]] = {
    "number": (
        lambda: D.Normal(0.0, -1.0),
        r"Normal: scale must be GreaterThan\(lower_bound=0.0\), got -1.0",
    ),
    "element": (
        lambda: D.Normal(0.0, v(1, 0, 2)),
        r"Normal: scale .*got 0.0 at \(1,\) in shape \(3,\)",
    ),
    "nan": (
        lambda: D.Normal(v(0, float("nan")), 1.0),
        r"Normal: loc must be Real\(\), got .* at \(1,\)",
    ),
    "base": (lambda: D.LogNormal(0.0, v(-1)), "LogNormal: scale"),
    "half": (lambda: D.HalfNormal(v(-1)), "HalfNormal: scale"),
    "uniform": (
        lambda: D.Uniform(v(0, 3), v(1, 2)),
        r"Uniform: low .*\[0.0, 3.0\].*high=\[1.0, 2.0\]",
    ),
    "chance": (
        lambda: D.Bernoulli(v(0.5, 1.5)),
        r"Bernoulli: probs .*got 1.5 at \(1,\) in shape \(2,\)",
    ),
    "both": (lambda: D.Bernoulli(v(0.5), v(0.5)), "Bernoulli: exactly one of probs or logits"),
    "neither": (lambda: D.Categorical(), "Categorical: exactly one of probs or logits"),
    "negative": (lambda: D.Categorical(v(2, -1)), "Categorical: probs must be Simplex"),
    "logits": (lambda: D.Categorical(logits=v(1, float("nan"))), "Categorical: logits"),
    "counts": (
        lambda: D.Binomial(2.5, v(0.5)),
        "Binomial: total_count must be IntegerGreaterThan",
    ),
    "total": (lambda: D.Multinomial(2.5, v(0.5, 0.5)), "Multinomial: total_count must be an int"),
    "rate": (lambda: D.Poisson(v(-0.5)), "Poisson: rate"),
    "sure": (lambda: D.NegativeBinomial(1.0, v(1.0)), "NegativeBinomial: probs"),
    "never": (lambda: D.Geometric(v(0.0)), "Geometric: probs"),
    "gamma": (lambda: D.Gamma(v(0.0), 1.0), "Gamma: concentration"),
    "chi2": (lambda: D.Chi2(v(-1.0)), "Chi2: df"),
    "beta": (lambda: D.Beta(1.0, v(0.0)), "Beta: concentration0"),
    "dirichlet": (lambda: D.Dirichlet(v(1.0, -1.0)), r"Dirichlet: concentration .*Independent"),
    "student": (lambda: D.StudentT(v(0.0)), "StudentT: df"),
    "pareto": (lambda: D.Pareto(1.0, v(0.0)), "Pareto: alpha"),
    "weibull": (lambda: D.Weibull(v(0.0), 1.0), "Weibull: scale"),
    "matrix": (
        lambda: D.MultivariateNormal(v(0, 0), covariance_matrix=-dt.eye(2)),
        "MultivariateNormal: covariance_matrix must be PositiveDefinite",
    ),
    "triangle": (
        lambda: D.MultivariateNormal(v(0, 0), scale_tril=dt.ones((2, 2))),
        "MultivariateNormal: scale_tril must be LowerCholesky",
    ),
    "matrices": (
        lambda: D.MultivariateNormal(v(0, 0), dt.eye(2), dt.eye(2)),
        "MultivariateNormal: exactly one of covariance_matrix or precision_matrix or scale_tril",
    ),
    "cache": (lambda: T.ExpTransform(cache_size=2), "ExpTransform: cache_size must be 0 or 1"),
    "default": (lambda: D.Distribution.set_default_validate_args(2), "set_default_validate_args"),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_invalid_parameters_raise(device: dt.Device, name: str) -> None:
    make, said = PARAMETERS[name]
    with pytest.raises(dt.ArgumentError, match=said):
        make()


def test_invalid_parameters_pass_without_validation() -> None:
    p = D.Normal(0.0, v(-1.0), validate_args=False)
    assert p.scale.tolist() == [-1.0]
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Normal(0.0, v(-1.0)).log_prob(0.0).shape == (1,)
    finally:
        D.Distribution.set_default_validate_args(True)


SHAPES: dict[str, Callable[[], Any]] = {
    "that broadcast, got loc of shape (2,), scale of shape (3,)": lambda: D.Normal(
        v(1, 2), v(1, 2, 3)
    ),
    "Categorical: probs must be a non-empty vector": lambda: D.Categorical(dt.asarray(0.5)),
    "Dirichlet: concentration must be a non-empty vector": lambda: D.Dirichlet(dt.asarray(0.5)),
    "MultivariateNormal: loc must be a non-empty vector": lambda: D.MultivariateNormal(
        v(0, 0), dt.eye(3)
    ),
    "Independent: reinterpreted_batch_ndims must be between 0 and 1": lambda: D.Independent(
        D.Normal(v(0, 0), 1.0), 2
    ),
    "MixtureSameFamily: the last dimension of component_distribution's batch": lambda: (
        D.MixtureSameFamily(D.Categorical(v(1, 1)), D.Normal(v(1, 2, 3), 1.0))
    ),
    "MixtureSameFamily: the batch of mixture_distribution must broadcast": lambda: (
        D.MixtureSameFamily(D.Categorical(dt.ones((3, 2))), D.Normal(dt.zeros((4, 2)), 1.0))
    ),
    "TransformedDistribution: the transforms need values": lambda: D.TransformedDistribution(
        D.Normal(0.0, 1.0), T.StickBreakingTransform()
    ),
    "Normal: the value must broadcast with (2,)": lambda: D.Normal(v(0, 1), 1.0).log_prob(
        v(1, 2, 3)
    ),
    "Dirichlet: the value's shape must end in the event shape (3,), got shape (2,)": lambda: (
        D.Dirichlet(v(1, 1, 1)).log_prob(v(0.5, 0.5))
    ),
    "Normal.sample: a shape must be non-negative ints": lambda: D.Normal(0.0, 1.0).sample((-1,)),
    "ReshapeTransform: in_shape and out_shape must have": lambda: T.ReshapeTransform((3,), (2,)),
    "ReshapeTransform: the shape must end in (3,)": lambda: T.ReshapeTransform((3,), (1, 3))(
        v(1, 2)
    ),
    "CorrCholeskyTransform: the last dimension must have": lambda: T.CorrCholeskyTransform()(
        v(1, 2)
    ),
    "StackTransform: dimension 0 must have 2 elements": lambda: T.StackTransform(
        [T.ExpTransform()] * 2
    )(v(1, 2, 3)),
    "CatTransform: dimension 0 must have 2 elements": lambda: T.CatTransform(
        [T.ExpTransform()] * 2
    )(v(1, 2, 3)),
    "IndependentTransform: expected at least 1 dimensions": lambda: T.IndependentTransform(
        T.ExpTransform(), 1
    )(dt.asarray(1.0)),
    "kl_divergence: p and q must have the same event shape, got (2,) and (3,)": lambda: (
        D.kl_divergence(
            D.MultivariateNormal(v(0, 0), dt.eye(2)), D.MultivariateNormal(v(0, 0, 0), dt.eye(3))
        )
    ),
}


@pytest.mark.parametrize("said", SHAPES)
def test_wrong_shapes_raise(said: str) -> None:
    with pytest.raises(dt.ShapeError) as error:
        SHAPES[said]()
    assert said in str(error.value)


VALUES: dict[str, tuple[Callable[[], Any], str]] = {
    "nan": (
        lambda: D.Normal(v(0, 1), 1.0).log_prob(v(0, float("nan"))),
        r"Normal: value must be Real\(\), got .* at \(1,\)",
    ),
    "below": (
        lambda: D.Exponential(v(1.0)).log_prob(v(1, -2)),
        r"Exponential: value must be .*got -2.0 at \(1,\) in shape \(2,\)",
    ),
    "number": (lambda: D.Gamma(1.0, 1.0).log_prob(-1.0), "Gamma: value must be .*got -1.0"),
    "beta": (lambda: D.Beta(1.0, 1.0).log_prob(v(1.5)), "Beta: value must be"),
    "bit": (lambda: D.Bernoulli(v(0.5)).log_prob(0.5), "Bernoulli: value must be Boolean"),
    "kind": (
        lambda: D.Categorical(v(1, 1)).log_prob(dt.asarray([0, 2])),
        r"Categorical: value must be .*got 2 at \(1,\) in shape \(2,\)",
    ),
    "hot": (
        lambda: D.OneHotCategorical(v(1, 1)).log_prob(v(1, 1)),
        "OneHotCategorical: value must be OneHot",
    ),
    "many": (lambda: D.Multinomial(2, v(1, 1)).log_prob(v(3, 0)), "Multinomial: value must be"),
    "fraction": (lambda: D.Poisson(1.0).log_prob(1.5), "Poisson: value must be"),
    "trials": (lambda: D.Binomial(3, v(0.5)).log_prob(4.0), "Binomial: value must be"),
    "outside": (lambda: D.Uniform(0.0, 1.0).log_prob(2.0), "Uniform: value must be Interval"),
    "simplex": (
        lambda: D.Dirichlet(v(1, 1)).log_prob(v(0.5, 0.6)),
        "Dirichlet: value must be Simplex",
    ),
    "least": (lambda: D.Pareto(2.0, 1.0).log_prob(v(1.0)), "Pareto: value must be"),
    "probability": (
        lambda: D.Normal(v(0.0), 1.0).icdf(v(1.5)),
        r"Normal.icdf: value must be between 0 and 1, got .* at \(0,\)",
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_outside_of_the_support_raise(device: dt.Device, name: str) -> None:
    make, said = VALUES[name]
    with pytest.raises(dt.ArgumentError, match=said):
        make()


def test_values_outside_of_the_support_without_validation() -> None:
    inf = float("inf")
    assert D.Uniform(0.0, 1.0, validate_args=False).log_prob(v(2, 0.5)).tolist() == [-inf, 0.0]
    assert D.HalfNormal(1.0, validate_args=False).log_prob(v(-1)).tolist() == [-inf]
    assert D.HalfCauchy(1.0, validate_args=False).log_prob(v(-1)).tolist() == [-inf]
    assert D.HalfNormal(1.0, validate_args=False).cdf(v(-1)).tolist() == [0.0]


def test_arguments_of_a_wrong_type_raise() -> None:
    with pytest.raises(
        dt.ArgumentTypeError, match="mixture_distribution must be a Categorical, got Normal"
    ):
        D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(v(0, 1), 1.0))  # type: ignore[arg-type]
    with pytest.raises(dt.ArgumentTypeError, match="component_distribution must be a Distribution"):
        D.MixtureSameFamily(D.Categorical(v(1, 1)), 3)  # type: ignore[arg-type]
    with pytest.raises(dt.ArgumentTypeError, match="transforms must be a Transform"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), [3])  # type: ignore[list-item]
    with pytest.raises(dt.ArgumentTypeError, match="register_kl"):
        D.register_kl(int, D.Normal)  # type: ignore[type-var]
    with pytest.raises(dt.DTypeError, match="Normal: loc must be real, got complex64"):
        D.Normal(dt.ones(2, dtype=dt.complex64), 1.0)
    with pytest.raises(dt.ArgumentError, match="one length for each"):
        T.CatTransform([T.ExpTransform()], lengths=[1, 2])


def test_missing_methods_and_rules_are_named() -> None:
    with pytest.raises(NotImplementedError, match="Normal and Bernoulli"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Bernoulli(0.5))
    with pytest.raises(NotImplementedError, match="Normal has no enumerate_support"):
        D.Normal(0.0, 1.0).enumerate_support()
    with pytest.raises(
        NotImplementedError, match="Binomial: the entropy needs the same total_count"
    ):
        D.Binomial(dt.asarray([2, 3]), v(0.5)).entropy()
    with pytest.raises(NotImplementedError, match="total_count of q"):
        D.kl_divergence(D.Binomial(2, v(0.5)), D.Binomial(3, v(0.5)))
    with pytest.raises(NotImplementedError, match="has no sign"):
        _ = T.AbsTransform().sign
    with pytest.raises(NotImplementedError, match="must have the same transforms"):
        D.kl_divergence(D.LogNormal(0.0, 1.0), D.HalfCauchy(1.0))
    assert D.kl_divergence(D.Binomial(3, v(0.5)), D.Binomial(2, v(0.5))).tolist() == [float("inf")]


def test_ambiguous_kl_rule_warns() -> None:
    class A(D.Normal):
        pass

    D.register_kl(A, D.Normal)(lambda p, q: p.loc)
    D.register_kl(D.Normal, A)(lambda p, q: p.loc + 1.0)
    p = A(v(0.0), 1.0)
    with pytest.warns(RuntimeWarning, match=r"kl_divergence\(A, A\) is ambiguous"):
        assert D.kl_divergence(p, p).tolist() == [0.0]


def test_captured_or_mapped_values_are_not_validated(device: dt.Device) -> None:
    def f(scale: dt.Tensor) -> dt.Tensor:
        return D.Normal(0.0, scale).log_prob(1.0)

    good = v(1.0, 2.0)
    want = f(good).tolist()
    for mapped in (dt.jit(f), dt.vmap(f)):
        assert mapped(good).tolist() == pytest.approx(want)
        assert dt.isnan(mapped(v(-1.0, 1.0))).tolist() == [True, False]
    with pytest.raises(dt.ArgumentError):
        f(v(-1.0, 1.0))


def test_numbers_and_lists_are_parameters_and_values() -> None:
    p = D.Normal([0, 1], 2)
    assert p.loc.dtype is dt.float32 and p.log_prob([0.0, 1.0]).shape == (2,)
    assert repr(p) == "Normal(loc: (2,), scale: 2.0)"
    assert repr(D.LogNormal(v(0), 1.0)) == "LogNormal(loc: (1,), scale: (1,))"
    assert D.Normal(dt.asarray([1, 2]), 1.0).loc.dtype is dt.float32
    assert D.Normal(dt.zeros(2, dtype=dt.float64), v(1)).scale.dtype is dt.float64
    assert "Affine" in repr(D.TransformedDistribution(p, T.AffineTransform(1.0, 2.0)))
    assert "Normal" in repr(D.Independent(p, 1))


def test_user_exponential_family_has_entropy_and_divergence() -> None:
    class Waits(D.ExponentialFamily):
        arg_constraints = dict.fromkeys(("rate",), D.constraints.positive)
        support = D.constraints.nonnegative
        _mean_carrier_measure = 0.0

        def __init__(self, rate: Any) -> None:
            super().__init__(self._set_parameters(rate=rate))

        @property
        def _natural_params(self) -> tuple[dt.Tensor, ...]:
            return (-self.rate,)

        def _log_normalizer(self, *x: dt.Tensor) -> dt.Tensor:
            return -dt.log(-x[0])

    p, q = Waits(v(0.5, 2.0)), Waits(v(1.0, 1.0))
    e, f = D.Exponential(v(0.5, 2.0)), D.Exponential(v(1.0, 1.0))
    assert p.entropy().tolist() == pytest.approx(e.entropy().tolist())
    found = D.kl_divergence(p, q).tolist()
    assert found == pytest.approx(D.kl_divergence(e, f).tolist(), abs=1e-6)
