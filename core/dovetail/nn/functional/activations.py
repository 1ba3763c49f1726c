"""Elementwise nonlinearities. Each is fused with the operations around it.

float16 and bfloat16 are computed in float32 and rounded once.
`inplace=True` writes the result into the input and returns the input. If gradients are recorded,
they need the input, so it is not written and the result is a new tensor.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import dovetail as dt

from .precision import cast_like, require_floats, require_same_dtype, require_tensors, widen_half

__all__ = [
    "celu",
    "elu",
    "gelu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "rrelu",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]

Tensor: TypeAlias = dt.Tensor
EXP_ARGUMENT_MAX = (
    20.0  # for larger x, exp(x) + 1 rounds to exp(x), and its square in double precision
)
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _store_result(x: Tensor, y: Tensor, inplace: bool) -> Tensor:
    """Return `y` in x's dtype; write it into `x` if `inplace`, unless `x` is being recorded."""
    y = cast_like(y, x)
    if inplace and not (x.requires_grad and dt.is_grad_enabled()):
        return x.copy_(y)
    return y


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the input where it is positive, else 0.

    Shapes: any; the result's is the input's.
    Dtypes: integers and real floats; the result has the input's.
    Raises: DTypeError for bool and complex numbers.
    See also: `leaky_relu`, `gelu`, `silu`.

    >>> import dovetail as dt
    >>> dt.nn.functional.relu(dt.asarray([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    require_tensors("relu", input)
    return _store_result(input, dt.relu(input), inplace)


def _clip(x: Tensor, low: float, high: float) -> Tensor:
    """Return `x` clipped to bounds, with slope 0 also at the bounds."""
    return dt.where(x <= low, low, dt.where(x >= high, high, x))


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Return the input, clipped to `min_val` and `max_val`.

    - `min_val`, `max_val`: the lower and the upper bound.

    Shapes: any; the result's is the input's.
    Dtypes: real; the result has the input's; results for integers are cast to it.
    Raises: ArgumentError where min_val > max_val; DTypeError for complex numbers.

    >>> import dovetail as dt
    >>> dt.nn.functional.hardtanh(dt.asarray([-2.0, 0.5, 2.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    require_tensors("hardtanh", input)
    if min_val > max_val:
        raise dt.ArgumentError(
            f"hardtanh: min_val must be at most max_val, got min_val={min_val} and "
            f"max_val={max_val}"
        )
    return _store_result(input, _clip(input, min_val, max_val), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the input, clipped to 0 and 6.

    Shapes: any; the result's is the input's.
    Dtypes: real; the result has the input's; results for integers are cast to it.
    Raises: DTypeError for complex numbers.

    >>> import dovetail as dt
    >>> dt.nn.functional.relu6(dt.asarray([-2.0, 2.0, 8.0])).tolist()
    [0.0, 2.0, 6.0]
    """
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x / 6 + 1/2, clipped to 0 and 1.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.hardsigmoid(dt.asarray([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    require_floats("hardsigmoid", input)
    return _store_result(input, _clip(widen_half(input) + 3.0, 0.0, 6.0) / 6.0, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x times its `hardsigmoid`.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.hardswish(dt.asarray([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.0, 4.0]
    """
    require_floats("hardswish", input)
    x = widen_half(input)
    inner = x * (x + 3.0) / 6.0
    return _store_result(input, dt.where(x <= -3.0, 0.0, dt.where(x >= 3.0, x, inner)), inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return the input where it is positive, else `negative_slope` times it.

    - `negative_slope`: the factor of negative elements.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.leaky_relu(dt.asarray([-1.0, 2.0]), 0.5).tolist()
    [-0.5, 2.0]
    """
    require_floats("leaky_relu", input)
    return _store_result(input, dt.where(input > 0, input, input * negative_slope), inplace)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return the input where it is positive, else `weight` times it.

    - `weight`: one factor, or one for each element of axis 1.

    Shapes: weight has one element, or one for each of input's second axis; the result's is the
    input's.
    Dtypes: floats, the same for both.
    Raises: ShapeError for another number of weights; DTypeError.

    >>> import dovetail as dt
    >>> x, w = dt.asarray([-1.0, 2.0]), dt.asarray([0.5])
    >>> dt.nn.functional.prelu(x, w).tolist()
    [-0.5, 2.0]
    """
    require_floats("prelu", input, weight)
    require_same_dtype("prelu", input, weight=weight)
    if weight.size != 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.ndim != 1 or weight.size != channels:
            raise dt.ShapeError(
                f"prelu: weight must have 1 element or one for each of {channels} channels, got "
                f"shape {weight.shape} for an input of shape {input.shape}"
            )
        weight = weight.reshape((-1, *(1,) * (input.ndim - 2)))
    elif weight.ndim > input.ndim or weight.ndim:
        weight = weight.reshape(())
    return dt.where(input > 0, input, input * weight)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return `leaky_relu` with a random slope per element in training, else with the mean slope.

    - `lower`, `upper`: the bounds of the uniform distribution of slopes, which `dt.random` draws.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: ArgumentError where lower > upper; DTypeError for other than floats.

    >>> import dovetail as dt
    >>> x = dt.asarray([-1.0, 2.0])
    >>> dt.nn.functional.rrelu(x, 0.25, 0.75).tolist()
    [-0.5, 2.0]
    """
    require_floats("rrelu", input)
    if lower > upper:
        raise dt.ArgumentError(
            f"rrelu: lower must be at most upper, got lower={lower} and upper={upper}"
        )
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = dt.random.uniform(
        input.shape, low=lower, high=upper, dtype=input.dtype, device=input.device
    )
    return _store_result(input, dt.where(input > 0, input, input * slope), inplace)


def _negative_part(x: Tensor) -> Tensor:
    """Return `x` where it is negative, else 0. NaN stays, with its slope, unlike with a minimum."""
    return dt.where(x > 0, 0.0, x)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the input where it is positive, else alpha * (exp(x) - 1).

    - `alpha`: minus the limit of the result at -infinity.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.elu(dt.asarray([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    require_floats("elu", input)
    x = widen_half(input)
    return _store_result(input, dt.where(x > 0, x, dt.expm1(_negative_part(x)) * alpha), inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the input where it is positive, else alpha * (exp(x / alpha) - 1).

    - `alpha`: minus the limit of the result at -infinity; a smaller one is sharper.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: ArgumentError for alpha = 0; DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.celu(dt.asarray([0.0, 2.0]), 2.0).tolist()
    [0.0, 2.0]
    """
    require_floats("celu", input)
    if alpha == 0:
        raise dt.ArgumentError("celu: alpha must not be 0")
    x = widen_half(input)
    below = _negative_part(x) if alpha > 0 else x
    return _store_result(input, dt.where(x > 0, x, dt.expm1(below / alpha) * alpha), inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return scaled `elu`, with constants for which layers keep mean 0 and variance 1.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.
    Source: Klambauer, Unterthiner, Mayr, Hochreiter, "Self-normalizing neural networks", 2017.

    >>> import dovetail as dt
    >>> dt.nn.functional.selu(dt.zeros(1)).tolist()
    [0.0]
    """
    require_floats("selu", input)
    x = widen_half(input)
    below = dt.expm1(_negative_part(x)) * (SELU_ALPHA * SELU_SCALE)
    return _store_result(input, dt.where(x > 0, x * SELU_SCALE, below), inplace)


def _set_infinite_limits(x: Tensor, y: Tensor) -> Tensor:
    """Return `y`, but where `x` is infinite, the limits of value and slope: those of relu."""
    return dt.where(dt.isinf(x), dt.relu(x), y)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return x times the probability that a standard normal variable is below x.

    - `approximate`: "none", or "tanh" for x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x**3))).

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: ArgumentError for another `approximate`; DTypeError for other than floats.
    See also: `silu`, `relu`, `dt.nn.GELU`.
    Source: Hendrycks, Gimpel, "Gaussian error linear units", 2016.

    >>> import dovetail as dt
    >>> dt.nn.functional.gelu(dt.asarray([0.0, 10.0])).tolist()
    [0.0, 10.0]
    """
    require_floats("gelu", input)
    x = input
    if approximate == "none":
        part = dt.erf(x * math.sqrt(0.5))
    elif approximate == "tanh":
        part = dt.tanh((x + x * x * x * 0.044715) * math.sqrt(2.0 / math.pi))
    else:
        raise dt.ArgumentError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return _set_infinite_limits(x, x * 0.5 * (part + 1.0))


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x * sigmoid(x).

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.silu(dt.zeros(1)).tolist()
    [0.0]
    """
    require_floats("silu", input)
    x = widen_half(input)
    return _store_result(input, _set_infinite_limits(x, x * dt.sigmoid(x)), inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x * tanh(softplus(x)), computed with one exponential.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.
    Source: Misra, "Mish: a self regularized non-monotonic activation function", 2019.

    >>> import dovetail as dt
    >>> dt.nn.functional.mish(dt.zeros(1)).tolist()
    [0.0]
    """
    require_floats("mish", input)
    x = widen_half(input)
    e = dt.exp(dt.minimum(x, EXP_ARGUMENT_MAX))
    n = e * (e + 2.0)  # tanh(log(1 + e)) is n / (n + 2)
    return _store_result(input, _set_infinite_limits(x, x * (n / (n + 2.0))), inplace)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Return log(1 + exp(beta * x)) / beta; x where beta * x is above `threshold`.

    - `beta`: the sharpness of the bend.
    - `threshold`: the bound of beta * x above which the result is x.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.softplus(dt.asarray([-200.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    require_floats("softplus", input)
    if beta == 0:
        raise dt.ArgumentError("softplus: beta must not be 0")
    x = input
    z = x * float(beta)
    above = min(float(threshold), 80.0)  # where the other is not 1 but its logarithm is the same
    bend = dt.log1p(dt.exp(dt.where(z > above, above, z))) * (1.0 / beta)
    return dt.where(z > above, x, bend)


def logsigmoid(input: Tensor) -> Tensor:
    """Return log(sigmoid(x)), without overflow.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.logsigmoid(dt.asarray([-100.0])).tolist()
    [-100.0]
    """
    require_floats("logsigmoid", input)
    return -dt.logaddexp(-input, dt.zeros((), dtype=input.dtype, device=input.device))


def softsign(input: Tensor) -> Tensor:
    """Return x / (1 + |x|).

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.softsign(dt.asarray([1.0, -1.0])).tolist()
    [0.5, -0.5]
    """
    require_floats("softsign", input)
    limits = dt.sign(input)
    return dt.where(dt.isinf(input), limits, input / (dt.abs(input) + 1.0))


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return the input, moved towards 0 by `lambd`, but not beyond.

    - `lambd`: the distance, at least 0.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: ArgumentError for a negative lambd; DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.softshrink(dt.asarray([-2.0, 0.2, 2.0])).tolist()
    [-1.5, 0.0, 1.5]
    """
    require_floats("softshrink", input)
    if lambd < 0:
        raise dt.ArgumentError(f"softshrink: lambd must not be negative, got {lambd}")
    x = input
    return dt.where(x > lambd, x - lambd, dt.where(x < -lambd, x + lambd, x * 0.0))


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return the input where its magnitude is greater than `lambd`, else 0.

    - `lambd`: the greatest magnitude that becomes 0.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.hardshrink(dt.asarray([-2.0, 0.2, 2.0])).tolist()
    [-2.0, 0.0, 2.0]
    """
    require_floats("hardshrink", input)
    return dt.where((input >= -lambd) & (input <= lambd), 0.0, input)


def tanhshrink(input: Tensor) -> Tensor:
    """Return x - tanh(x).

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.tanhshrink(dt.zeros(1)).tolist()
    [0.0]
    """
    require_floats("tanhshrink", input)
    return input - dt.tanh(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return the input where it is above `threshold`, else `value`.

    - `threshold`: the greatest input that is replaced.
    - `value`: the value that replaces it.

    Shapes: any; the result's is the input's.
    Dtypes: real; the result has the input's; results for integers are cast to it.
    Raises: DTypeError for complex numbers.

    >>> import dovetail as dt
    >>> dt.nn.functional.threshold(dt.asarray([1.0, 3.0]), 2.0, 9.0).tolist()
    [9.0, 3.0]
    """
    require_tensors("threshold", input)
    return _store_result(input, dt.where(input <= threshold, value, input), inplace)


def sigmoid(input: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)).

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.sigmoid(dt.zeros(1)).tolist()
    [0.5]
    """
    require_floats("sigmoid", input)
    return dt.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.tanh(dt.zeros(1)).tolist()
    [0.0]
    """
    require_floats("tanh", input)
    return dt.tanh(input)
