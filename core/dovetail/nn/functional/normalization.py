"""Normalisation to mean 0 and variance 1 over some axes.

float16 and bfloat16 are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from .precision import cast_like, require_floats, require_same_dtype_or_float32, widen_half

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "rms_norm",
]

Tensor: TypeAlias = dt.Tensor
Axes: TypeAlias = int | tuple[int, ...]

# While a batch is computed in groups that share their statistics (`dt.parallel`): a function that
# returns the sum of a tensor over all groups.
sum_over_groups: ContextVar[Callable[[Tensor], Tensor] | None] = ContextVar(
    "the sum over all groups of a batch", default=None
)


def _normalized_sizes(op: str, x: Tensor, shape: int | Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of the axes to normalise over.

    Raises: ShapeError unless the shape of `x` ends in them, DTypeError unless `x` has floats.
    """
    require_floats(op, x)
    sizes = arguments.integers(op, shape, "normalized_shape")
    if not sizes or x.shape[-len(sizes) :] != sizes:
        raise dt.ShapeError(
            f"{op}: the input's shape must end in normalized_shape {sizes}, got shape {x.shape}"
        )
    return sizes


def _check_affine(op: str, sizes: tuple[int, ...], **parameters: Tensor | None) -> None:
    """Raise ShapeError for a weight or bias of another shape."""
    for name, x in parameters.items():
        if x is not None and x.shape != sizes:
            raise dt.ShapeError(
                f"{op}: {name} must have the shape normalized_shape {sizes}, got shape {x.shape}"
            )


def _standardize(x: Tensor, axes: Axes, eps: float) -> Tensor:
    """Normalise `x` to mean 0 and variance 1 over axes."""
    centered = x - dt.mean(x, axis=axes, keepdims=True)
    return centered * dt.rsqrt(dt.mean(centered * centered, axis=axes, keepdims=True) + eps)


def _apply_affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Return `x` times `weight` plus `bias`; None leaves a step out."""
    x = x if weight is None else x * widen_half(weight)
    return x if bias is None else x + widen_half(bias)


def layer_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the last axes to mean 0 and variance 1, times `weight`, plus `bias`.

    - `normalized_shape`: the sizes of those axes, or the size of the last one.
    - `weight`, `bias`: the factors and addends after normalising; None is 1 and 0.
    - `eps`: is added to the variance.

    Shapes: weight and bias have `normalized_shape`.
    Dtypes: floats; halves are computed as float32, and the result has the input's.
    Raises: ShapeError, DTypeError.
    See also: `rms_norm`, `batch_norm`, `dt.nn.LayerNorm`.
    Source: Ba, Kiros, Hinton, "Layer normalization", 2016.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 3.0]])
    >>> dt.nn.functional.layer_norm(x, (2,), eps=0.0).tolist()
    [[-1.0, 1.0]]
    """
    sizes = _normalized_sizes("layer_norm", input, normalized_shape)
    _check_affine("layer_norm", sizes, weight=weight, bias=bias)
    require_same_dtype_or_float32("layer_norm", input, weight=weight, bias=bias)
    axes = tuple(range(-len(sizes), 0))
    return cast_like(_apply_affine(_standardize(widen_half(input), axes, eps), weight, bias), input)


def rms_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide the input by the root of its mean square over its last axes, times `weight`.

    - `normalized_shape`: the sizes of those axes, or the size of the last one.
    - `weight`: the factors after normalising; None is 1.
    - `eps`: is added to the mean square. Default: `dt.finfo(dtype).eps` of the input's dtype.

    Shapes: weight has `normalized_shape`.
    Dtypes: floats; halves are computed as float32, and the result has the input's.
    Raises: ShapeError, DTypeError.
    See also: `layer_norm`, `dt.nn.RMSNorm`.
    Source: Zhang, Sennrich, "Root mean square layer normalization", 2019.

    >>> import dovetail as dt
    >>> x = dt.asarray([[2.0, -2.0]])
    >>> dt.nn.functional.rms_norm(x, (2,), eps=0.0).tolist()
    [[1.0, -1.0]]
    """
    sizes = _normalized_sizes("rms_norm", input, normalized_shape)
    _check_affine("rms_norm", sizes, weight=weight)
    axes = tuple(range(-len(sizes), 0))
    small = dt.finfo(input.dtype).eps if eps is None else eps
    y = input * dt.rsqrt(dt.mean(input * input, axis=axes, keepdims=True) + small)
    return cast_like(_apply_affine(y, weight, None), input)


def _along_channels(x: Tensor, v: Tensor) -> Tensor:
    """Reshape a vector so that it broadcasts along the second axis of `x`."""
    return v.reshape((v.size, *(1,) * (x.ndim - 2)))


def _require_channels(op: str, x: Tensor, **vectors: Tensor | None) -> None:
    """Raise an error if the input has no channels or a vector does not fit them."""
    require_floats(op, x)
    if x.ndim < 2:
        raise dt.ShapeError(
            f"{op}: the input must have shape (batch, channels, ...), got shape {x.shape}"
        )
    for name, v in vectors.items():
        if v is not None and v.shape != (x.shape[1],):
            raise dt.ShapeError(
                f"{op}: {name} must have shape ({x.shape[1]},), one element for each channel of "
                f"the input of shape {x.shape}, got shape {v.shape}"
            )
    require_same_dtype_or_float32(op, x, **vectors)


def _channel_means(x: Tensor, keepdims: bool) -> Tensor:
    """Return means over all axes but the second; first over the last axes, which are contiguous."""
    if x.ndim > 2:
        x = dt.mean(x, axis=tuple(range(2, x.ndim)), keepdims=keepdims)
    return dt.mean(x, axis=0, keepdims=keepdims)


def _update_running(running: Tensor, current: Tensor, momentum: float | Tensor) -> None:
    """Move a running statistic towards its current value, in place."""
    with dt.no_grad():
        previous = widen_half(running)
        running.copy_(cast_like(previous * (1.0 - momentum) + current * momentum, running))


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel, times `weight`, plus `bias`; in training, update running statistics.

    - `running_mean`, `running_var`: the running mean and variance, or None; an empty batch does not
      change them.
    - `weight`, `bias`: a factor and an addend for each channel; None is 1 and 0.
    - `training`: True uses the mean and variance of the batch, and moves the running ones towards
      them in place. False uses the running ones.
    - `momentum`: the weight of the batch in the running statistics: running = (1 - momentum) *
      running + momentum * batch. The variance of the batch has the divisor n - 1 here.
    - `eps`: is added to the variance.

    Shapes: input (batch, channels, ...), all others (channels,).
    Dtypes: floats; halves are computed as float32, and the result has the input's.
    Raises: ShapeError, DTypeError; ArgumentError for one value in a channel while training, and
    without running statistics otherwise.
    See also: `layer_norm`, `group_norm`, `instance_norm`, `dt.nn.BatchNorm1d`.
    Source: Ioffe, Szegedy, "Batch normalization", 2015.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0], [3.0]])
    >>> dt.nn.functional.batch_norm(x, None, None, training=True, eps=0.0).tolist()
    [[-1.0], [1.0]]
    """
    op = "batch_norm"
    _require_channels(
        op, input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    x = widen_half(input)
    if training:
        mean, var = _batch_statistics(op, x, running_mean, running_var, momentum)
    elif running_mean is None or running_var is None:
        raise dt.ArgumentError(
            f"{op}: running_mean and running_var must be given if training=False"
        )
    else:
        mean, var = (_along_channels(x, widen_half(v)) for v in (running_mean, running_var))
    scale = dt.rsqrt(var + eps)
    scale = scale if weight is None else scale * _along_channels(x, widen_half(weight))
    y = (x - mean) * scale
    return cast_like(y if bias is None else y + _along_channels(x, widen_half(bias)), input)


def _batch_statistics(
    op: str,
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float | Tensor,
) -> tuple[Tensor, Tensor]:
    """Return mean and variance of the batch; update the running ones.

    Raises: ArgumentError if a channel has only one value.
    """
    count = x.size // max(x.shape[1], 1)
    total = sum_over_groups.get()
    if total is None:
        mean = _channel_means(x, True)
        var = _channel_means(dt.square(x - mean), True)  # one expression: no squares are stored
    else:
        axes = tuple([k for k in range(x.ndim) if k != 1])
        size = dt.full((1,), count, dtype=x.dtype, device=x.device)
        added = total(dt.concat([dt.sum(x, axis=axes), size]))
        count = round(added[-1].item())
        mean = _along_channels(x, added[:-1] / count)
        var = _along_channels(x, total(dt.sum(dt.square(x - mean), axis=axes)) / count)
    if count == 1:
        raise dt.ArgumentError(
            f"{op}: training needs more than one value in each channel to compute a variance, got "
            f"an input of shape {x.shape}"
        )
    if running_mean is not None and count:
        _update_running(running_mean, mean.detach().reshape((-1,)), momentum)
    if running_var is not None and count:
        _update_running(
            running_var, var.detach().reshape((-1,)) * (count / max(count - 1, 1)), momentum
        )
    return mean, var


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each example to mean 0 and variance 1.

    - `running_mean`, `running_var`: the running mean and variance, or None; an empty batch does not
      change them.
    - `weight`, `bias`: a factor and an addend for each channel; None is 1 and 0.
    - `use_input_stats`: True uses the mean and variance of each channel and example, and moves the
      running ones in place towards the means of these over the batch. False uses the running ones.
    - `momentum`: the weight of the current values in the running statistics.
    - `eps`: is added to the variance.

    Shapes: input (batch, channels, ...), all others (channels,).
    Dtypes: floats; halves are computed as float32, and the result has the input's.
    Raises: ShapeError, DTypeError; ArgumentError for one value in a channel, and without
    statistics.
    Source: Ulyanov, Vedaldi, Lempitsky, "Instance normalization", 2016.

    >>> import dovetail as dt
    >>> x = dt.asarray([[[1.0, 3.0]]])
    >>> dt.nn.functional.instance_norm(x, eps=0.0).tolist()
    [[[-1.0, 1.0]]]
    """
    op = "instance_norm"
    running = {"running_mean": running_mean, "running_var": running_var}
    _require_channels(op, input, weight=weight, bias=bias, **running)
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    x, axes = widen_half(input), tuple(range(2, input.ndim))
    count = math.prod(input.shape[2:])
    if count == 1:
        raise dt.ArgumentError(
            f"{op}: each channel needs more than one value to compute a variance, got an input of "
            f"shape {input.shape}"
        )
    mean = dt.mean(x, axis=axes, keepdims=True)
    var = dt.mean(dt.square(x - mean), axis=axes, keepdims=True)
    if running_mean is not None and x.size:
        _update_running(running_mean, mean.detach().mean(axis=0).reshape((-1,)), momentum)
    if running_var is not None and x.size:
        unbiased = count / max(count - 1, 1)
        _update_running(running_var, var.detach().mean(axis=0).reshape((-1,)) * unbiased, momentum)
    y = (x - mean) * dt.rsqrt(var + eps)
    y = y if weight is None else y * _along_channels(x, widen_half(weight))
    return cast_like(y if bias is None else y + _along_channels(x, widen_half(bias)), input)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each group of channels of each example to mean 0 and variance 1.

    - `num_groups`: the number of groups, of equal size.
    - `weight`, `bias`: the factors and addends after normalising; None is 1 and 0.
    - `eps`: is added to the variance.

    Shapes: input (batch, channels, ...), weight and bias (channels,).
    Dtypes: floats; halves are computed as float32, and the result has the input's.
    Raises: ShapeError where the channels are no such number of groups; DTypeError.
    Source: Wu, He, "Group normalization", 2018.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 3.0]])
    >>> dt.nn.functional.group_norm(x, 1, eps=0.0).tolist()
    [[-1.0, 1.0]]
    """
    _require_channels("group_norm", input, weight=weight, bias=bias)
    channels = input.shape[1]
    if arguments.integer("group_norm", num_groups, "num_groups") < 1 or channels % num_groups:
        raise dt.ShapeError(
            f"group_norm: the number of channels must be divisible by num_groups, got {channels} "
            f"(input of shape {input.shape}) and {num_groups}"
        )
    x = widen_half(input)
    groups = x.reshape((x.shape[0], num_groups, x.size // max(x.shape[0] * num_groups, 1)))
    y = _standardize(groups, -1, eps).reshape(x.shape)
    y = y if weight is None else y * _along_channels(x, widen_half(weight))
    return cast_like(y if bias is None else y + _along_channels(x, widen_half(bias)), input)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divide by (k + alpha * the mean square of `size` channels around each)**beta.

    - `size`: the number of neighbouring channels in each mean.
    - `alpha`, `beta`, `k`: the numbers of this formula.

    Shapes: (batch, channels, ...), with at least one more axis.
    Dtypes: floats; halves are computed as float32, and the result has the input's.
    Raises: ShapeError, DTypeError; ArgumentError for a size below 1.
    Source: Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural
    networks", 2012.

    >>> import dovetail as dt
    >>> x = dt.ones((1, 1, 2))
    >>> dt.nn.functional.local_response_norm(x, 1, alpha=0.0).tolist()
    [[[1.0, 1.0]]]
    """
    op = "local_response_norm"
    require_floats(op, input)
    if input.ndim < 3:
        raise dt.ShapeError(
            f"{op}: the input must have at least 3 dimensions, (batch, channels, ...), got shape "
            f"{input.shape}"
        )
    if size < 1:
        raise dt.ArgumentError(f"{op}: size must be positive, got {size}")
    x, n = input, input.shape[1]
    squares = x * x
    around = ((0, 0), (size // 2, (size - 1) // 2), *((0, 0),) * (x.ndim - 2))
    padded = dt.pad(squares, around)
    total = padded[:, :n]
    for shift in range(1, size):
        total = total + padded[:, shift : shift + n]
    return x / (total * (alpha / size) + k) ** beta
