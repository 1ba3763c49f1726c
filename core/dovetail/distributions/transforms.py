"""Elementwise transforms: exp, affine, sigmoid and others, with inverses and log determinants."""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt
from dovetail.extend import arguments, publish_all

from . import constraints
from .constraints import Constraint
from .matrix_transforms import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)
from .parameters import Value, log_cosh, softplus, sum_last, xlogy
from .reshape_transforms import CatTransform, ReshapeTransform, StackTransform
from .transform import (
    ComposeTransform,
    IndependentTransform,
    Shape,
    Tensor,
    Transform,
    identity_transform,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


class ExpTransform(Transform):
    """y = exp(x).

    >>> import dovetail as dt
    >>> x = dt.asarray([0.0])
    >>> dt.distributions.ExpTransform()(x).tolist()
    [1.0]
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return dt.exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return dt.log(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class AbsTransform(Transform):
    """y = abs(x); the inverse returns y.

    >>> import dovetail as dt
    >>> x = dt.asarray([-2.0, 1.0])
    >>> dt.distributions.AbsTransform()(x).tolist()
    [2.0, 1.0]
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return dt.abs(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x)), clipped to values between 0 and 1, both excluded.

    >>> import dovetail as dt
    >>> x = dt.asarray([0.0])
    >>> dt.distributions.SigmoidTransform()(x).tolist()
    [0.5]
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return clip_open_unit(dt.sigmoid(x))

    def _inverse(self, y: Tensor) -> Tensor:
        y = clip_open_unit(y)
        return dt.log(y) - dt.log1p(-y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


def clip_open_unit(y: Tensor) -> Tensor:
    """Clip shares so that they are neither 0 nor 1."""
    limits = dt.finfo(y.dtype)
    return dt.clip(y, float(limits.smallest_normal), 1.0 - float(limits.eps))


class SoftplusTransform(Transform):
    """y = log(1 + exp(x)).

    >>> import dovetail as dt
    >>> t = dt.distributions.SoftplusTransform()
    >>> t.inv(t(dt.zeros(1))).tolist()
    [0.0]
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return dt.log(-dt.expm1(-y)) + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(Transform):
    """y = tanh(x).

    With `cache_size=1` values that round to 1 have an inverse.

    >>> import dovetail as dt
    >>> t = dt.distributions.TanhTransform(cache_size=1)
    >>> t.inv(t(dt.asarray([50.0]))).tolist()
    [50.0]
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return dt.tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return dt.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return log_cosh(x) * -2.0  # log(1 - tanh(x)**2) without the difference


class PowerTransform(Transform):
    """y = x ** exponent, for positive x.

    - `exponent`: a number or a tensor.

    >>> import dovetail as dt
    >>> x = dt.asarray([3.0])
    >>> dt.distributions.PowerTransform(2.0)(x).tolist()
    [9.0]
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Value, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        """1 if it is increasing, -1 if decreasing."""
        return _sign(self.exponent)

    def _comparison_key(self) -> object:
        return _comparable(self.exponent)

    def _call(self, x: Tensor) -> Tensor:
        return dt.pow(x, self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return dt.pow(y, _reciprocal(self.exponent))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return xlogy(self.exponent - 1.0, x) + _log_abs(self.exponent)

    def forward_shape(self, shape: Shape) -> Shape:
        return _broadcast_shape(shape, self.exponent)

    inverse_shape = forward_shape


def _sign(x: Value) -> Any:
    """Return -1, 0 or 1, or NaN for NaN; as a tensor for a tensor."""
    if isinstance(x, dt.Tensor):
        return dt.sign(x)
    return math.nan if x != x else int(x > 0) - int(x < 0)  # NumPy's bools have no difference


def _log_abs(x: Value) -> Value:
    """Return log(abs(x)), as a tensor for a tensor; -inf for 0."""
    if isinstance(x, dt.Tensor):
        return dt.log(dt.abs(x))
    return math.log(abs(x)) if x else -math.inf


def _reciprocal(x: Value) -> Value:
    """Return 1 / x, as a tensor for a tensor; an infinity for 0."""
    return 1.0 / x if isinstance(x, dt.Tensor) or x else math.copysign(math.inf, x)


def _comparable(x: Value) -> object:
    """Return a number, or the shape and the numbers of a tensor, which the host reads."""
    return (x.shape, x.tolist()) if isinstance(x, dt.Tensor) else x


def _broadcast_shape(*operands: Any) -> Shape:
    """Return the common shape of shapes, tensors and numbers."""
    shapes = [getattr(p, "shape", () if isinstance(p, (int, float)) else p) for p in operands]
    return tuple(dt.broadcast_shapes(*shapes))


class AffineTransform(Transform):
    """y = loc + scale * x.

    - `loc`, `scale`: numbers or tensors.
    - `event_dim`: the number of dimensions of one value.

    >>> import dovetail as dt
    >>> t = dt.distributions.transforms.AffineTransform(1.0, 2.0)
    >>> t.inv(dt.asarray([3.0])).tolist()
    [1.0]
    """

    bijective = True

    def __init__(self, loc: Value, scale: Value, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """Return the constraint of inputs."""
        n = self._event_dim
        return constraints.independent(constraints.real, n) if n else constraints.real

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        """Return the constraint of outputs."""
        n = self._event_dim
        return constraints.independent(constraints.real, n) if n else constraints.real

    @property
    def sign(self) -> Any:
        """1 if it is increasing, -1 if decreasing."""
        return _sign(self.scale)

    def _comparison_key(self) -> object:
        return _comparable(self.loc), _comparable(self.scale), self._event_dim

    def _call(self, x: Tensor) -> Tensor:
        return x * self.scale + self.loc

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        log_scale = _log_abs(self.scale)
        if isinstance(log_scale, dt.Tensor):
            return sum_last(dt.broadcast_to(log_scale, x.shape), self._event_dim)
        return sum_last(dt.full_like(x, log_scale), self._event_dim)

    def forward_shape(self, shape: Shape) -> Shape:
        return _broadcast_shape(shape, self.loc, self.scale)

    inverse_shape = forward_shape

    def __repr__(self) -> str:
        loc, scale = (getattr(v, "shape", v) for v in (self.loc, self.scale))
        return f"AffineTransform(loc={loc}, scale={scale})"


class CumulativeDistributionTransform(Transform):
    """y = cdf(x) of a distribution; the inverse is `icdf`.

    - `distribution`: of real values.

    >>> import dovetail as dt
    >>> D, zero = dt.distributions, dt.zeros(1)
    >>> D.CumulativeDistributionTransform(D.Normal(zero, 1.0))(zero).tolist()
    [0.5]
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        if not all(hasattr(distribution, name) for name in ("cdf", "icdf", "log_prob")):
            raise arguments.refused(
                "CumulativeDistributionTransform", "distribution", "a Distribution", distribution
            )
        self.distribution = distribution

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """Return the constraint of inputs."""
        support: Constraint = self.distribution.support
        return support

    def _comparison_key(self) -> object:
        return id(self.distribution)

    def _call(self, x: Tensor) -> Tensor:
        y: Tensor = self.distribution.cdf(x)
        return y

    def _inverse(self, y: Tensor) -> Tensor:
        x: Tensor = self.distribution.icdf(y)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        log_density: Tensor = self.distribution.log_prob(x)
        return log_density


publish_all(globals())


def __dir__() -> list[str]:
    return __all__
