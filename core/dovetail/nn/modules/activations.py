"""Layers of nonlinearities. Each applies the function of its name in `dt.nn.functional`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import dovetail as dt

from .. import functional as F
from ..functional.sizes import check_counts
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from dovetail.extend import DeviceLike, DTypeLike

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]

Tensor: TypeAlias = dt.Tensor


class _InPlace(Module):
    """The base of layers that may write their result into the input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return "inplace=True" if self.inplace else ""

    def _append_inplace(self, options: str) -> str:
        """Return the options for `repr`, with `inplace=True` if it is set."""
        return f"{options}, inplace=True" if self.inplace else options


class ReLU(_InPlace):
    """x where it is positive, else 0: `relu`.

    See also: `LeakyReLU`, `GELU`, `SiLU`, `dt.nn.functional.relu`.

    >>> import dovetail as dt
    >>> dt.nn.ReLU()(dt.asarray([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.relu`."""
        return F.relu(input, self.inplace)


class LeakyReLU(_InPlace):
    """`x` if x > 0, otherwise `negative_slope * x`: `leaky_relu`.

    - `negative_slope`: the factor of negative elements.

    See also: `PReLU`, `RReLU`, `ReLU`.

    >>> import dovetail as dt
    >>> dt.nn.LeakyReLU(0.5)(dt.asarray([-1.0, 2.0])).tolist()
    [-0.5, 2.0]
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.leaky_relu`."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return self._append_inplace(f"negative_slope={self.negative_slope}")


class RReLU(_InPlace):
    """`leaky_relu` with random slopes between two bounds in training: `rrelu`.

    - `lower`, `upper`: the bounds of the uniform distribution of slopes; after `eval()` the slope
      is their mean.

    >>> import dovetail as dt
    >>> dt.nn.RReLU(0.25, 0.75).eval()(dt.asarray([-1.0, 2.0])).tolist()
    [-0.5, 2.0]
    """

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__(inplace)
        self.lower, self.upper = lower, upper

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.rrelu`."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return self._append_inplace(f"lower={self.lower}, upper={self.upper}")


class Hardtanh(_InPlace):
    """x, clipped to two bounds: `hardtanh`.

    - `min_val`, `max_val`: the lower and the upper bound.
    - `inplace`: True writes the result into the input. If a gradient is recorded, the input stays
      unchanged.
    - `min_value`, `max_value`: older names of the bounds.

    Raises: ArgumentError where min_val is not below max_val.

    >>> import dovetail as dt
    >>> dt.nn.Hardtanh()(dt.asarray([-2.0, 0.5, 2.0])).tolist()
    [-1.0, 0.5, 1.0]
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__(inplace)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if self.max_val <= self.min_val:
            raise dt.ArgumentError(
                f"Hardtanh: min_val must be less than max_val, got min_val={self.min_val} and "
                f"max_val={self.max_val}"
            )

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.hardtanh`."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return self._append_inplace(f"min_val={self.min_val}, max_val={self.max_val}")


class ReLU6(Hardtanh):
    """x, clipped to 0 and 6: `relu6`.

    >>> import dovetail as dt
    >>> dt.nn.ReLU6()(dt.asarray([-2.0, 8.0])).tolist()
    [0.0, 6.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    See also: `Tanh`, `Hardsigmoid`, `BCEWithLogitsLoss`.

    >>> import dovetail as dt
    >>> dt.nn.Sigmoid()(dt.zeros(1)).tolist()
    [0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.sigmoid`."""
        return F.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent.

    >>> import dovetail as dt
    >>> dt.nn.Tanh()(dt.zeros(1)).tolist()
    [0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.tanh`."""
        return F.tanh(input)


class Hardsigmoid(_InPlace):
    """x / 6 + 1/2, clipped to 0 and 1: `hardsigmoid`.

    >>> import dovetail as dt
    >>> dt.nn.Hardsigmoid()(dt.asarray([-4.0, 0.0])).tolist()
    [0.0, 0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.hardsigmoid`."""
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return ""


class Hardswish(_InPlace):
    """x times its hard sigmoid: `hardswish`.

    >>> import dovetail as dt
    >>> dt.nn.Hardswish()(dt.asarray([-4.0, 4.0])).tolist()
    [0.0, 4.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.hardswish`."""
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return ""


class _Exponential(_InPlace):
    """The base of functions with an exponential below 0, scaled by `alpha`."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return self._append_inplace(f"alpha={self.alpha}")


class ELU(_Exponential):
    """x where it is positive, else alpha * (exp(x) - 1): `elu`.

    - `alpha`: minus the limit of the result at -infinity.

    >>> import dovetail as dt
    >>> dt.nn.ELU()(dt.asarray([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.elu`."""
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Exponential):
    """x where it is positive, else alpha * (exp(x / alpha) - 1): `celu`.

    - `alpha`: minus the limit of the result at -infinity; not 0.

    >>> import dovetail as dt
    >>> dt.nn.CELU(2.0)(dt.asarray([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.celu`."""
        return F.celu(input, self.alpha, self.inplace)


class SELU(_InPlace):
    """A scaled `elu` that keeps mean 0 and variance 1: `selu`.

    >>> import dovetail as dt
    >>> dt.nn.SELU()(dt.zeros(1)).tolist()
    [0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.selu`."""
        return F.selu(input, self.inplace)


class GLU(Module):
    """The first half of an axis times the sigmoid of the second half: `glu`.

    >>> import dovetail as dt
    >>> dt.nn.GLU()(dt.asarray([4.0, 0.0])).tolist()
    [2.0]
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.glu`."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"dim={self.dim}"


class GELU(Module):
    """x times the probability that a standard normal variable is below x: `gelu`.

    - `approximate`: "none", or "tanh" for the formula with tanh in place of the error function.

    See also: `ReLU`, `SiLU`, `dt.nn.functional.gelu`.

    >>> import dovetail as dt
    >>> dt.nn.GELU()(dt.zeros(1)).tolist()
    [0.0]
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.gelu`."""
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"approximate={self.approximate!r}"


class SiLU(_InPlace):
    """x * sigmoid(x): `silu`.

    See also: `GELU`, `Mish`, `Hardswish`.

    >>> import dovetail as dt
    >>> dt.nn.SiLU()(dt.zeros(1)).tolist()
    [0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.silu`."""
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """x * tanh(softplus(x)): `mish`.

    >>> import dovetail as dt
    >>> dt.nn.Mish()(dt.zeros(1)).tolist()
    [0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.mish`."""
        return F.mish(input, self.inplace)


class _Shrink(Module):
    """The base of functions that are 0 up to a magnitude of `lambd`."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"{self.lambd}"


class Hardshrink(_Shrink):
    """x where its magnitude is greater than lambd, else 0: `hardshrink`.

    - `lambd`: the greatest magnitude that becomes 0.

    >>> import dovetail as dt
    >>> dt.nn.Hardshrink()(dt.asarray([0.2, 2.0])).tolist()
    [0.0, 2.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.hardshrink`."""
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """x, moved towards 0 by lambd, but not beyond: `softshrink`.

    - `lambd`: the distance, at least 0.

    >>> import dovetail as dt
    >>> dt.nn.Softshrink()(dt.asarray([0.2, 2.0])).tolist()
    [0.0, 1.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.softshrink`."""
        return F.softshrink(input, self.lambd)


class Tanhshrink(Module):
    """x - tanh(x): `tanhshrink`.

    >>> import dovetail as dt
    >>> dt.nn.Tanhshrink()(dt.zeros(1)).tolist()
    [0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.tanhshrink`."""
        return F.tanhshrink(input)


class Softsign(Module):
    """x / (1 + |x|): `softsign`.

    >>> import dovetail as dt
    >>> dt.nn.Softsign()(dt.ones(1)).tolist()
    [0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.softsign`."""
        return F.softsign(input)


class LogSigmoid(Module):
    """log(sigmoid(x)): `logsigmoid`.

    >>> import dovetail as dt
    >>> dt.nn.LogSigmoid()(dt.asarray([-100.0])).tolist()
    [-100.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.logsigmoid`."""
        return F.logsigmoid(input)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta: `softplus`.

    - `beta`: the sharpness of the bend.
    - `threshold`: the result is x where beta * x is greater.

    >>> import dovetail as dt
    >>> dt.nn.Softplus()(dt.asarray([100.0])).tolist()
    [100.0]
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.softplus`."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Threshold(_InPlace):
    """x where it is above a threshold, else a value: `threshold`.

    - `threshold`: the greatest input that is replaced.
    - `value`: the value that replaces it.

    >>> import dovetail as dt
    >>> dt.nn.Threshold(2.0, 9.0)(dt.asarray([1.0, 3.0])).tolist()
    [9.0, 3.0]
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold, self.value = threshold, value

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.threshold`."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return self._append_inplace(f"threshold={self.threshold}, value={self.value}")


class PReLU(Module):
    """x where it is positive, else weight * x with a learnable weight: `prelu`.

    - `num_parameters`: 1, or the number of channels (axis 1 of the input) for a weight of each.
    - `init`: the initial weight.

    >>> import dovetail as dt
    >>> dt.nn.PReLU()(dt.asarray([-4.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    weight: Tensor

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        (self.num_parameters,) = check_counts(type(self).__name__, num_parameters=num_parameters)
        self.init = init
        self.weight = Parameter(dt.full((self.num_parameters,), init, dtype=dtype, device=device))

    def reset_parameters(self) -> None:
        """Set the weight to its initial value."""
        with dt.no_grad():
            self.weight.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.prelu`."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"num_parameters={self.num_parameters}"


class _AlongAxis(Module):
    """The base of layers that act along the axis `dim`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"dim={self.dim}"


class Softmax(_AlongAxis):
    """exp(x) divided by its sum along an axis: `softmax`.

    - `dim`: the axis. None, for PyTorch's programs, is 0 for 0, 1 or 3 dimensions, else 1.

    See also: `LogSoftmax`, `CrossEntropyLoss`, `dt.softmax`.

    >>> import dovetail as dt
    >>> dt.nn.Softmax(0)(dt.zeros(2)).tolist()
    [0.5, 0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.softmax`."""
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongAxis):
    """The logarithm of softmax: `log_softmax`.

    - `dim`: the axis. None, for PyTorch's programs, is 0 for 0, 1 or 3 dimensions, else 1.

    >>> import dovetail as dt
    >>> dt.nn.LogSoftmax(0)(dt.zeros(1)).tolist()
    [0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.log_softmax`."""
        return F.log_softmax(input, self.dim)


class Softmin(_AlongAxis):
    """Softmax of -x: `softmin`.

    - `dim`: the axis. None, for PyTorch's programs, is 0 for 0, 1 or 3 dimensions, else 1.

    >>> import dovetail as dt
    >>> dt.nn.Softmin(0)(dt.zeros(2)).tolist()
    [0.5, 0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.softmin`."""
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of (batch, channels, height, width), or without the batch.

    Raises: ShapeError for another number of dimensions.

    >>> import dovetail as dt
    >>> dt.nn.Softmax2d()(dt.zeros((2, 1, 1))).ravel().tolist()
    [0.5, 0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the softmax along the third axis from the end."""
        if input.ndim not in (3, 4):
            raise dt.ShapeError(
                "Softmax2d: the input must have shape (batch, channels, height, width) or "
                f"(channels, height, width), got shape {input.shape}"
            )
        return F.softmax(input, -3)
