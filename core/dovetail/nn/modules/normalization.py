"""Layers of normalisation, with PyTorch's state: `running_mean`, `num_batches_tracked`, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from .. import functional as F
from .. import init
from ..functional.sizes import check_counts
from .linear import empty_parameter
from .module import Module

if TYPE_CHECKING:
    from dovetail.extend import DeviceLike, DTypeLike

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]

Tensor: TypeAlias = dt.Tensor


class _Affine(Module):
    """The base of normalisations with an optional weight and bias."""

    weight: Tensor | None
    bias: Tensor | None

    def _make_affine(
        self, shape: tuple[int, ...], weight: bool, bias: bool, device: DeviceLike, dtype: DTypeLike
    ) -> None:
        """Register weight and bias, uninitialised, or as None if not enabled."""
        for name, enabled in (("weight", weight), ("bias", bias)):
            parameter = empty_parameter(shape, device, dtype) if enabled else None
            self.register_parameter(name, parameter)

    def _reset_affine(self) -> None:
        """Set the weight to ones and the bias to zeros, if present."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


def _parse_shape(name: str, shape: int | Sequence[int]) -> tuple[int, ...]:
    """Return `normalized_shape` as a tuple.

    Raises: ArgumentTypeError for no ints, ArgumentError for negative ones.
    """
    values = [*shape] if isinstance(shape, Sequence) and not isinstance(shape, str) else shape
    sizes = arguments.integers(name, values, "normalized_shape")
    if min(sizes, default=0) < 0:
        raise dt.ArgumentError(f"{name}: normalized_shape must not be negative, got {shape}")
    return sizes


class LayerNorm(_Affine):
    """A layer that normalises the last axes to mean 0 and variance 1: `layer_norm`.

    - `normalized_shape`: the sizes of these axes, or the size of the last axis.
    - `eps`: is added to the variance.
    - `elementwise_affine`: have a weight and a bias, initially ones and zeros, of
      `normalized_shape`.
    - `bias`: with `elementwise_affine`, have a bias.

    See also: `RMSNorm`, `BatchNorm1d`, `dt.nn.functional.layer_norm`.

    >>> import dovetail as dt
    >>> dt.nn.LayerNorm(2)
    LayerNorm((2,), eps=1e-05, elementwise_affine=True, bias=True)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _parse_shape(type(self).__name__, normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        affine = elementwise_affine
        self._make_affine(self.normalized_shape, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        self._reset_affine()

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.layer_norm`."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """A layer that divides by the root of the mean square over the last axes: `rms_norm`.

    - `normalized_shape`: the sizes of these axes, or the size of the last axis.
    - `eps`: is added to the mean square. Default: `dt.finfo(dtype).eps` of the input's dtype.
    - `elementwise_affine`: have a weight, initially ones, of `normalized_shape`.

    See also: `LayerNorm`, `dt.nn.functional.rms_norm`.

    >>> import dovetail as dt
    >>> dt.nn.RMSNorm(2)
    RMSNorm((2,), eps=None, elementwise_affine=True)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _parse_shape(type(self).__name__, normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        weight = (
            empty_parameter(self.normalized_shape, device, dtype) if elementwise_affine else None
        )
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.rms_norm`."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Affine):
    """A layer that normalises each group of channels of each example: `group_norm`.

    - `num_groups`: the number of groups of equal size; it divides `num_channels`.
    - `num_channels`: the number of channels.
    - `eps`: is added to the variance.
    - `affine`: have a weight and a bias, initially ones and zeros, one number for each channel.
    - `bias`: with `affine`, have a bias.

    Each group gets mean 0 and variance 1. `weight` scales it and `bias` shifts it.
    Raises: ArgumentError if the number of channels is not a multiple of the number of groups.
    See also: `LayerNorm`, `InstanceNorm2d`, `dt.nn.functional.group_norm`.

    >>> import dovetail as dt
    >>> dt.nn.GroupNorm(2, 4)
    GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        (self.num_groups,) = check_counts(name, 1, num_groups=num_groups)
        (self.num_channels,) = check_counts(name, num_channels=num_channels)
        if self.num_channels % self.num_groups:
            raise dt.ArgumentError(
                f"{name}: num_channels must be divisible by num_groups, got {num_channels} and "
                f"{num_groups}"
            )
        self.eps, self.affine = eps, affine
        self._make_affine((num_channels,), affine, affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        self._reset_affine()

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.group_norm`."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """A layer that divides by the mean square of channels around each: `local_response_norm`.

    - `size`: the number of neighbouring channels in each mean.
    - `alpha`, `beta`, `k`: the divisor is (k + alpha * mean)**beta.

    >>> import dovetail as dt
    >>> dt.nn.LocalResponseNorm(2)
    LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.local_response_norm`."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class _RunningStatsNorm(_Affine):
    """The base of normalisations with optional running statistics of channels."""

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    DIMENSIONS: tuple[int, ...] = ()  # allowed numbers of dimensions of an input

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: DeviceLike,
        dtype: DTypeLike,
        bias: bool,
    ) -> None:
        super().__init__()
        (self.num_features,) = check_counts(type(self).__name__, num_features=num_features)
        self.eps, self.momentum = eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._make_affine((num_features,), affine, affine and bias, device, dtype)
        mean = var = count = None
        if track_running_stats:
            mean = dt.zeros(num_features, dtype=dtype, device=device)
            var = dt.ones(num_features, dtype=dtype, device=device)
            count = dt.zeros((), dtype=dt.int64, device=device)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running statistics to their initial values."""
        for x, value in (
            (self.running_mean, 0),
            (self.running_var, 1),
            (self.num_batches_tracked, 0),
        ):
            if x is not None:
                x.fill_(value)

    def reset_parameters(self) -> None:
        """Set parameters and running statistics to their initial values."""
        self.reset_running_stats()
        self._reset_affine()

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _check_input(self, input: Tensor) -> None:
        """Raise ShapeError for a number of dimensions that the layer does not take."""
        if input.ndim not in self.DIMENSIONS:
            allowed = " or ".join(map(str, self.DIMENSIONS))
            raise dt.ShapeError(
                f"{type(self).__name__}: expected {allowed} dimensions, got shape {input.shape}"
            )

    def _count_batch(self, input: Tensor) -> float | Tensor:
        """Count the batch if training, unless it is empty; return the weight of its statistics."""
        if self.training and self.num_batches_tracked is not None and input.size:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches
                return 1.0 / self.num_batches_tracked.astype(dt.float32)
        return 0.0 if self.momentum is None else self.momentum


class _BatchNorm(_RunningStatsNorm):
    """Mean 0 and variance 1 in each channel."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.batch_norm`; in training, also count the batch."""
        self._check_input(input)
        momentum = self._count_batch(input)
        mean, var = self.running_mean, self.running_var
        by_batch = self.training or (mean is None and var is None)
        if self.training and not self.track_running_stats:
            mean = var = None
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """A layer that normalises each channel of (batch, channels) or (batch, channels, length).

    - `num_features`: the number of channels.
    - `eps`: is added to the variance.
    - `momentum`: the weight of each batch in the running statistics; None: they are means of all
      batches.
    - `affine`: have a weight and a bias, initially ones and zeros, one number for each channel.
    - `track_running_stats`: have a running mean and variance, which are used after `eval()`. False
      uses the statistics of each batch, also after `eval()`.
    - `bias`: with `affine`, have a bias.

    In training each channel gets mean 0 and variance 1 over the batch. `weight` scales
    it, and `bias` shifts it.
    See also: `LayerNorm`, `GroupNorm`, `InstanceNorm2d`, `dt.nn.functional.batch_norm`.

    >>> import dovetail as dt
    >>> layer = dt.nn.BatchNorm1d(2)
    >>> [*layer.state_dict()]
    ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked']
    """

    DIMENSIONS = (2, 3)


class BatchNorm2d(_BatchNorm):
    """A layer that normalises each channel of (batch, channels, height, width).

    - `num_features`: the number of channels.
    - `eps`: is added to the variance.
    - `momentum`: the weight of each batch in the running statistics; None: they are means of all
      batches.
    - `affine`: have a weight and a bias, initially ones and zeros, one number for each channel.
    - `track_running_stats`: have a running mean and variance, which are used after `eval()`. False
      uses the statistics of each batch, also after `eval()`.
    - `bias`: with `affine`, have a bias.

    In training each channel gets mean 0 and variance 1 over the batch. `weight` scales
    it, and `bias` shifts it.
    See also: `LayerNorm`, `GroupNorm`, `InstanceNorm2d`, `dt.nn.functional.batch_norm`.

    >>> import dovetail as dt
    >>> layer = dt.nn.BatchNorm2d(2)
    >>> layer(dt.ones((1, 2, 2, 2))).sum().item()
    0.0
    """

    DIMENSIONS = (4,)


class BatchNorm3d(_BatchNorm):
    """A layer that normalises each channel of (batch, channels, depth, height, width).

    - `num_features`: the number of channels.
    - `eps`: is added to the variance.
    - `momentum`: the weight of each batch in the running statistics; None: they are means of all
      batches.
    - `affine`: have a weight and a bias, initially ones and zeros, one number for each channel.
    - `track_running_stats`: have a running mean and variance, which are used after `eval()`. False
      uses the statistics of each batch, also after `eval()`.
    - `bias`: with `affine`, have a bias.

    In training each channel gets mean 0 and variance 1 over the batch. `weight` scales
    it, and `bias` shifts it.
    See also: `LayerNorm`, `GroupNorm`, `InstanceNorm2d`, `dt.nn.functional.batch_norm`.

    >>> import dovetail as dt
    >>> layer = dt.nn.BatchNorm3d(2)
    >>> layer(dt.ones((1, 2, 2, 2, 2))).sum().item()
    0.0
    """

    DIMENSIONS = (5,)


class _InstanceNorm(_RunningStatsNorm):
    """Mean 0 and variance 1 in each channel of each example."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.instance_norm`; an input may have no batch."""
        self._check_input(input)
        is_unbatched = input.ndim == min(self.DIMENSIONS)
        x = dt.expand_dims(input, 0) if is_unbatched else input
        if x.shape[1] != self.num_features and (self.affine or self.track_running_stats):
            raise dt.ShapeError(
                f"{type(self).__name__}: the input must have {self.num_features} channels, got "
                f"{x.shape[1]} in shape {input.shape}"
            )
        y = F.instance_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return y.squeeze(0) if is_unbatched else y


class InstanceNorm1d(_InstanceNorm):
    """A layer that normalises each channel of each example of (batch, channels, length).

    - `num_features`: the number of channels.
    - `eps`: is added to the variance.
    - `momentum`: the weight of each batch in the running statistics.
    - `affine`: have a weight and a bias, initially ones and zeros, one number for each channel.
    - `track_running_stats`: have a running mean and variance, which are used after `eval()`.
    - `bias`: with `affine`, have a bias.

    Each channel of each example gets mean 0 and variance 1.
    By default it is without weight, bias and running statistics.
    See also: `BatchNorm2d`, `GroupNorm`, `dt.nn.functional.instance_norm`.

    >>> import dovetail as dt
    >>> dt.nn.InstanceNorm1d(2)(dt.ones((1, 2, 4))).sum().item()
    0.0
    """

    DIMENSIONS = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """A layer that normalises each channel of each example of (batch, channels, height, width).

    - `num_features`: the number of channels.
    - `eps`: is added to the variance.
    - `momentum`: the weight of each batch in the running statistics.
    - `affine`: have a weight and a bias, initially ones and zeros, one number for each channel.
    - `track_running_stats`: have a running mean and variance, which are used after `eval()`.
    - `bias`: with `affine`, have a bias.

    Each channel of each example gets mean 0 and variance 1.
    See also: `BatchNorm2d`, `GroupNorm`, `dt.nn.functional.instance_norm`.

    >>> import dovetail as dt
    >>> dt.nn.InstanceNorm2d(2)(dt.ones((1, 2, 4, 4))).sum().item()
    0.0
    """

    DIMENSIONS = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """A layer that normalises each channel of each example, with three axes of space.

    - `num_features`: the number of channels.
    - `eps`: is added to the variance.
    - `momentum`: the weight of each batch in the running statistics.
    - `affine`: have a weight and a bias, initially ones and zeros, one number for each channel.
    - `track_running_stats`: have a running mean and variance, which are used after `eval()`.
    - `bias`: with `affine`, have a bias.

    Each channel of each example gets mean 0 and variance 1.
    See also: `BatchNorm2d`, `GroupNorm`, `dt.nn.functional.instance_norm`.

    >>> import dovetail as dt
    >>> dt.nn.InstanceNorm3d(2)(dt.ones((1, 2, 2, 2, 2))).sum().item()
    0.0
    """

    DIMENSIONS = (4, 5)
