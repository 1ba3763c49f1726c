"""The base classes of distributions: shapes, parameters, validation, samples, densities."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, overload

import dovetail as dt
from dovetail.extend import arguments, is_capturing

from ..nn.constructor_errors import Explained
from ..nn.missing_names import make_class_getattr
from .constraints import Constraint, is_dependent
from .half_rounding import in_float32, widen_values
from .parameters import Value, as_tensor, broadcast_all, sum_last

__all__ = ["Distribution", "ExponentialFamily"]

Tensor: TypeAlias = dt.Tensor
Generator: TypeAlias = "dt.random.Generator"
Shape: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = "Sequence[int] | int"


def sizes_of(op: str, shape: Sizes) -> Shape:
    """Return a shape as a tuple of ints. Raises: ShapeError for other sizes than ints >= 0."""
    if not isinstance(shape, (int, Sequence)):
        raise arguments.refused(op, "a shape", "an int or a tuple of ints", shape)
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(n, int) and n >= 0 for n in sizes):
        raise dt.ShapeError(
            f"{op}: a shape must be non-negative ints, got {arguments.shown(shape)}"
        )
    return sizes


def constraints_of(**kinds: Constraint) -> dict[str, Constraint]:
    """Return a dict of the constraint of each parameter, by name."""
    return kinds


def all_valid(valid: Sequence[Any]) -> bool:
    """Return True if all are true, or if values are unknown because of a capture or a transform."""
    checks = [v if isinstance(v, bool) else dt.all(v) for v in valid]
    if not all(v for v in checks if isinstance(v, bool)):
        return False
    tensors = [v for v in checks if isinstance(v, dt.Tensor)]
    if not tensors:
        return True
    if is_capturing():
        return True
    every = tensors[0]
    for v in tensors[1:]:
        every = every & v
    try:
        return bool(every)
    except dt.TransformError:
        return True


def offender_text(value: Any, valid: Any) -> str:
    """Return text with the index and the value of the first invalid element."""
    if not isinstance(value, dt.Tensor) or not value.ndim:
        return f"got {value.item() if isinstance(value, dt.Tensor) else value!r}"
    if not isinstance(valid, dt.Tensor) or not valid.ndim:
        return f"got {value.tolist()}" if value.size <= 9 else f"got shape {value.shape}"
    at = tuple(int(i.item()) for i in dt.unstack(dt.argwhere(~valid)[0]))
    at = at[len(at) - min(len(at), value.ndim) :]
    element = value[tuple(i if n > 1 else 0 for i, n in zip(at, value.shape, strict=False))]
    shown = element.tolist() if element.size <= 9 else f"of shape {element.shape}"
    return f"got {shown} at {at} in shape {value.shape}"


def masked_log_density(
    valid: Tensor, x: Tensor, safe: Value, log_density: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return the log density of x, and -inf without a gradient outside of the support.

    `valid`: a mask, True if x is in the support. `safe`: a value of the support.
    """
    valid = valid | dt.isnan(x)
    return dt.where(valid, log_density(dt.where(valid, x, safe)), -math.inf)


class computed:
    """A descriptor of a parameter that is computed from another one unless the user passed it."""

    def __init__(self, of: Callable[[Any], Tensor]) -> None:
        self._compute, self.__doc__ = in_float32(of), of.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Tensor: ...

    def __get__(self, instance: object, owner: type) -> Self | Tensor:
        return self if instance is None else self._compute(instance)


class Distribution(Explained):
    """The base class of distributions.

    - `batch_shape`: the shape of a batch of distributions, each with parameters of its own.
    - `event_shape`: the shape of one value.
    - `validate_args`: check parameters and values, which waits for them; captured functions do not
      check. True by default, False under `python -O`.

    >>> import dovetail as dt
    >>> d = dt.distributions.Normal(dt.zeros(3), 1.0)
    >>> d.batch_shape, d.event_shape, d.sample((5,)).shape
    ((3,), (), (5, 3))
    """

    # Settings that captures depend on, beside those that methods of subclasses name.
    captured_for: ClassVar = ("_batch_shape", "_event_shape", "_scalar_parameters")
    has_rsample: bool = False
    has_enumerate_support: bool = False
    _validate_args: bool = __debug__
    _scalar_parameters: Mapping[str, float] = MappingProxyType(
        {}
    )  # parameters that the user passed as numbers
    _has_halves: bool | None = None  # None until a value is computed
    _validation_dtype: dt.DType | None = None  # set on float32 copies: the dtype of the original

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        widen_values(cls)

    def __setattr__(self, name: str, value: object) -> None:
        self.__dict__.pop("_has_halves", None)
        super().__setattr__(name, value)

    if not TYPE_CHECKING:
        __getattr__ = make_class_getattr("Distribution")

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set the default of `validate_args` for distributions that are built from now on."""
        if value not in (True, False):
            raise dt.ArgumentError(
                f"set_default_validate_args: value must be True or False, got {value!r}"
            )
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Sizes = (), event_shape: Sizes = (), validate_args: bool | None = None
    ) -> None:
        name = type(self).__name__
        self._batch_shape, self._event_shape = (
            sizes_of(name, batch_shape),
            sizes_of(name, event_shape),
        )
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    # --- parameters
    def _set_parameters(self, **parameters: Value) -> Shape:
        """Store parameters by name as tensors of one shape, numbers as well; return the shape."""
        tensors = broadcast_all(type(self).__name__, **parameters)
        self._scalar_parameters = {
            name: float(v)
            for name, v in parameters.items()
            if not hasattr(v, "__len__") and not isinstance(v, dt.Tensor)
        }
        for name, x in zip(parameters, tensors, strict=True):
            self.__dict__[name] = x
        return tensors[0].shape

    def _log(self, name: str) -> Value:
        """Return the logarithm of a parameter: a number if the user passed one."""
        number = self._scalar_parameters.get(name, 0.0)
        if number > 0.0:
            return math.log(number)
        x: Tensor = self.__dict__[name]
        return dt.log(x)

    def _number_or_tensor(self, name: str) -> Value:
        """Return a parameter: a number if the user passed one, else a tensor."""
        parameter: Value = self._scalar_parameters.get(name, self.__dict__[name])
        return parameter

    def _check_parameters(self) -> None:
        """Raise ArgumentError if a parameter that the user passed violates its constraint."""
        checks: list[tuple[str, Constraint, Any, Any]] = []
        with dt.no_grad():
            for name, constraint in self.arg_constraints.items():
                if is_dependent(constraint) or self._is_computed(name):
                    continue
                value = self._scalar_parameters.get(name, getattr(self, name))
                checks.append((name, constraint, value, constraint.check(value)))
            if all_valid([valid for *_, valid in checks]):
                return
            for name, constraint, value, valid in checks:
                if not all_valid([valid]):
                    raise dt.ArgumentError(
                        f"{type(self).__name__}: {name} must be {constraint!r}, "
                        f"{offender_text(value, valid)}; validate_args=False skips the check"
                    )

    def _update_derived(self) -> None:
        """Set attributes that are computed from parameters; called again on a float32 copy."""

    def _is_computed(self, name: str) -> bool:
        """Return True if a parameter is computed from another one."""
        return name not in self.__dict__ and isinstance(getattr(type(self), name, None), computed)

    def expand(self, batch_shape: Sizes) -> Self:
        """Return the distribution for a larger batch; parameters are broadcast without a copy.

        Raises: ShapeError if the batch does not broadcast to that shape.
        """
        shape = sizes_of(f"{type(self).__name__}.expand", batch_shape)
        new = copy.copy(self)
        new._batch_shape = shape
        for name, x in self.__dict__.items():
            if isinstance(x, dt.Tensor):
                own = x.shape[x.ndim - self._event_dims(name) :] if self._event_dims(name) else ()
                new.__dict__[name] = dt.broadcast_to(x, (*shape, *own))
        return new

    def _event_dims(self, name: str) -> int:
        """Return the number of a parameter's dimensions that are not of the batch."""
        constraint = self.arg_constraints.get(name.removeprefix("_"))
        return 0 if constraint is None else constraint.event_dim

    # --- properties
    @property
    def batch_shape(self) -> Shape:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Shape:
        """The shape of one value."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        """The constraint of each parameter, by name."""
        raise NotImplementedError(f"{type(self).__name__} has no arg_constraints")

    @property
    def support(self) -> Any:
        """The constraint of its values."""
        raise NotImplementedError(f"{type(self).__name__} has no support")

    @property
    def mean(self) -> Tensor:
        """The mean of each distribution."""
        raise self._unsupported_error("mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value of each distribution."""
        raise self._unsupported_error("mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each distribution."""
        raise self._unsupported_error("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation of each distribution."""
        return dt.sqrt(self.variance)

    def _unsupported_error(self, what: str) -> Exception:
        """Return the UnsupportedError that the class has no `what`."""
        return dt.UnsupportedError(f"{type(self).__name__} has no {what}")

    # --- samples
    def sample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        """Draw samples of shape (*sample_shape, *batch_shape, *event_shape), without gradients.

        - `generator`: the source of random numbers; None is the global generator.

        See also: `rsample`.
        """
        with dt.no_grad():
            return self.rsample(sample_shape, generator=generator)

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        """Draw samples with gradients to the parameters.

        See also: `sample`.
        """
        raise dt.UnsupportedError(
            f"{type(self).__name__} has no rsample; use sample(), which has no gradient"
        )

    def sample_n(self, n: int) -> Tensor:
        """Draw `n` samples: PyTorch's older name for sample((n,))."""
        return self.sample((n,))

    # --- functions of values
    def log_prob(self, value: Value) -> Tensor:
        """Return the logarithm of the density, or of the probability, at a value."""
        raise self._unsupported_error("log_prob")

    def cdf(self, value: Value) -> Tensor:
        """Return the probability of a value not above this one."""
        raise self._unsupported_error("cdf")

    def icdf(self, value: Value) -> Tensor:
        """Return the quantile: the value below which values have this probability.

        - `value`: the probability, from 0 to 1.
        """
        raise self._unsupported_error("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values along a first dimension.

        - `expand`: True returns them for each element of the batch, False once.
        """
        raise self._unsupported_error("enumerate_support")

    def entropy(self) -> Tensor:
        """Return the entropy of each distribution, in nats."""
        raise self._unsupported_error("entropy")

    def perplexity(self) -> Tensor:
        """Return exp of the entropy."""
        return dt.exp(self.entropy())

    # --- for subclasses
    def _extended_shape(self, sample_shape: Sizes = ()) -> Shape:
        """Return the shape of samples."""
        name = f"{type(self).__name__}.sample"
        return (*sizes_of(name, sample_shape), *self._batch_shape, *self._event_shape)

    def _any_parameter(self) -> Tensor:
        """Return a tensor of this or a nested distribution.

        Raises: ArgumentError if it has none.
        """
        for x in self.__dict__.values():
            if isinstance(x, dt.Tensor):
                return x
            if isinstance(x, Distribution):
                return x._any_parameter()
        raise dt.ArgumentError(
            f"{type(self).__name__} holds no tensor; pass at least one parameter as a tensor"
        )

    def _as_value(self, value: Value, allow_integers: bool = False) -> Tensor:
        """Validate a value, unless that is switched off, and return it as a tensor.

        Integers become floats unless `allow_integers`. Raises: ShapeError, ArgumentError.
        """
        like = self._any_parameter()
        if not isinstance(value, dt.Tensor):
            value = as_tensor(value, like.dtype, like.device)
            if value.dtype is not like.dtype and value.dtype.kind == "f":
                value = value.astype(like.dtype)
        if self._validate_args:
            self._validate_sample(value)
        return value if allow_integers or value.dtype.kind == "f" else value.astype(like.dtype)

    def _as_probability(self, value: Value) -> Tensor:
        """Return a probability as a tensor. Raises: ArgumentError outside of 0..1, if validated."""
        like = self._any_parameter()
        if not isinstance(value, dt.Tensor):
            value = dt.asarray(value, dtype=like.dtype, device=like.device)
        if self._validate_args:
            with dt.no_grad():
                valid = (value >= 0) & (value <= 1)
                if not all_valid([valid]):
                    raise dt.ArgumentError(
                        f"{type(self).__name__}.icdf: value must be between 0 and 1, "
                        f"{offender_text(value, valid)}"
                    )
        return value

    def _validate_sample(self, value: Tensor) -> None:
        """Raise ShapeError, or ArgumentError for a value outside the support (not in captures)."""
        name, own = type(self).__name__, self._event_shape
        if len(own) > value.ndim or value.shape[value.ndim - len(own) :] != own:
            raise dt.ShapeError(
                f"{name}: the value's shape must end in the event shape {own}, got shape "
                f"{value.shape}"
            )
        whole = (*self._batch_shape, *own)
        try:
            dt.broadcast_shapes(value.shape, whole)
        except dt.ShapeError:
            raise dt.ShapeError(
                f"{name}: the value must broadcast with {whole}, the batch shape and the event "
                f"shape, got shape {value.shape}"
            ) from None
        with dt.no_grad():
            if self._validation_dtype is not None and value.dtype.kind == "f":
                value = value.astype(self._validation_dtype)
            valid = self.support.check(value)
            if not all_valid([valid]):
                raise dt.ArgumentError(
                    f"{name}: value must be {self.support!r}, {offender_text(value, valid)}; "
                    "validate_args=False skips the check"
                )

    def __repr__(self) -> str:
        parameters = [(n, self.__dict__[n]) for n in self.arg_constraints if n in self.__dict__]
        texts = [f"{n}: {self._scalar_parameters.get(n, x.shape)}" for n, x in parameters]
        return f"{type(self).__name__}({', '.join(texts)})"


widen_values(Distribution)


class ExponentialFamily(Distribution):
    """The base class of distributions with density exp(t(x) . theta - F(theta) + k(x)).

    - `batch_shape`, `event_shape`, `validate_args`: those of `Distribution`.

    A subclass defines `_natural_params` (theta), `_log_normalizer(*theta)` (F) and
    `_mean_carrier_measure` (the mean of k). The entropy follows from gradients of F.

    >>> import dovetail as dt
    >>> D = dt.distributions
    >>> isinstance(D.Normal(dt.zeros(1), 1.0), D.ExponentialFamily)
    True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        """The natural parameters theta, as tensors."""
        raise self._unsupported_error("_natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        """Return F for the natural parameters; differentiable."""
        raise self._unsupported_error("_log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Value:
        """The mean of k(x)."""
        raise self._unsupported_error("_mean_carrier_measure")

    def entropy(self) -> Tensor:
        """Return the entropy of each distribution, in nats."""
        carrier = self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normal = self._log_normalizer(*params)
        slopes = dt.autograd.grad(normal.sum(), params, create_graph=True)
        entropy = normal - carrier
        for p, slope in zip(params, slopes, strict=True):
            entropy = entropy - sum_last(p * slope, len(self._event_shape))
        return entropy
