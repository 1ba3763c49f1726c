# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.distributions`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
import builtins
from collections.abc import Callable
from dovetail.distributions.distribution import Distribution
from dovetail.distributions.kl import R
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from . import constraints as constraints
from . import kl as kl
from . import transforms as transforms
from dovetail.distributions import AbsTransform as AbsTransform
from dovetail.distributions import AffineTransform as AffineTransform
from dovetail.distributions import Bernoulli as Bernoulli
from dovetail.distributions import Beta as Beta
from dovetail.distributions import Binomial as Binomial
from dovetail.distributions import CatTransform as CatTransform
from dovetail.distributions import Categorical as Categorical
from dovetail.distributions import Cauchy as Cauchy
from dovetail.distributions import Chi2 as Chi2
from dovetail.distributions import ComposeTransform as ComposeTransform
from dovetail.distributions import ConstraintRegistry as ConstraintRegistry
from dovetail.distributions import CorrCholeskyTransform as CorrCholeskyTransform
from dovetail.distributions import CumulativeDistributionTransform as CumulativeDistributionTransform
from dovetail.distributions import Dirichlet as Dirichlet
from dovetail.distributions import Distribution as Distribution
from dovetail.distributions import ExpTransform as ExpTransform
from dovetail.distributions import Exponential as Exponential
from dovetail.distributions import ExponentialFamily as ExponentialFamily
from dovetail.distributions import FisherSnedecor as FisherSnedecor
from dovetail.distributions import Gamma as Gamma
from dovetail.distributions import Geometric as Geometric
from dovetail.distributions import Gumbel as Gumbel
from dovetail.distributions import HalfCauchy as HalfCauchy
from dovetail.distributions import HalfNormal as HalfNormal
from dovetail.distributions import Independent as Independent
from dovetail.distributions import IndependentTransform as IndependentTransform
from dovetail.distributions import InverseGamma as InverseGamma
from dovetail.distributions import Laplace as Laplace
from dovetail.distributions import LogNormal as LogNormal
from dovetail.distributions import LowerCholeskyTransform as LowerCholeskyTransform
from dovetail.distributions import MixtureSameFamily as MixtureSameFamily
from dovetail.distributions import Multinomial as Multinomial
from dovetail.distributions import MultivariateNormal as MultivariateNormal
from dovetail.distributions import NegativeBinomial as NegativeBinomial
from dovetail.distributions import Normal as Normal
from dovetail.distributions import OneHotCategorical as OneHotCategorical
from dovetail.distributions import OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from dovetail.distributions import Pareto as Pareto
from dovetail.distributions import Poisson as Poisson
from dovetail.distributions import PositiveDefiniteTransform as PositiveDefiniteTransform
from dovetail.distributions import PowerTransform as PowerTransform
from dovetail.distributions import ReshapeTransform as ReshapeTransform
from dovetail.distributions import SigmoidTransform as SigmoidTransform
from dovetail.distributions import SoftmaxTransform as SoftmaxTransform
from dovetail.distributions import SoftplusTransform as SoftplusTransform
from dovetail.distributions import StackTransform as StackTransform
from dovetail.distributions import StickBreakingTransform as StickBreakingTransform
from dovetail.distributions import StudentT as StudentT
from dovetail.distributions import TanhTransform as TanhTransform
from dovetail.distributions import Transform as Transform
from dovetail.distributions import TransformedDistribution as TransformedDistribution
from dovetail.distributions import Uniform as Uniform
from dovetail.distributions import Weibull as Weibull
biject_to: Any
identity_transform: Any
def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the divergence of q from p: the mean under p of log(p(x) / q(x)), in nats."""
def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable[[R], R]:
    """Return a decorator that registers a function (p, q) for the divergence of two
    classes."""
transform_to: Any
def __getattr__(name: str) -> Any: ...
