"""Means of a network's parameters over steps (SWA, EMA), and the learning rate for them."""

from __future__ import annotations

import copy
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, publish_all

from ..nn.call_errors import explain_all
from ..nn.missing_names import make_module_getattr
from ..nn.modules.module import Module
from ..nn.modules.normalization import _BatchNorm
from .fused_step import StepOptions, run_step
from .optimizer import Optimizer
from .schedules import LRScheduler, Rates, group_values, values_per_group

if TYPE_CHECKING:
    from dovetail.extend import DeviceLike

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Tensors: TypeAlias = Sequence[dt.Tensor]
Count: TypeAlias = "dt.Tensor | int"
Mean: TypeAlias = Callable[[dt.Tensor, dt.Tensor, Count], dt.Tensor]
MultiMean: TypeAlias = Callable[[Tensors, Tensors, Count], None]


def _swa_mean(
    averaged_param: dt.Tensor, current_param: dt.Tensor, num_averaged: Count
) -> dt.Tensor:
    """Return the mean of `num_averaged` + 1 values, from that of all but the last."""
    return averaged_param + (current_param - averaged_param) / (num_averaged + 1)


def _ema_mean(
    decay: float, ema_param: dt.Tensor, current_param: dt.Tensor, num_averaged: Count
) -> dt.Tensor:
    """Return the old mean moved by 1 - decay of its distance to the current value."""
    return ema_param + (current_param - ema_param) * (1.0 - decay)


def _write_means(mean: Mean, averaged: Tensors, current: Tensors, num_averaged: Count) -> None:
    """Write the new mean of each pair into its first tensor, in few launches.

    Means are computed in the compute dtype: float32 for float16 and bfloat16.
    """

    def rule(options: object, numbers: object, p: dt.Tensor, value: dt.Tensor) -> Tensors:
        """Return the new mean; `Optimizer.rule` says what the arguments are."""
        return (mean(p, value, num_averaged),)

    without_state: list[list[dt.Tensor]] = [[] for _ in averaged]
    tensors = [*averaged], [*current], without_state
    with dt.no_grad():
        run_step(rule, [StepOptions(None, False)], [tensors], [()], name="update_parameters")


class _MultiMean:
    """A mean of lists of tensors that is written into the first list."""

    def __init__(self, mean: Mean) -> None:
        self.mean = mean

    def __call__(
        self, averaged_param_list: Tensors, current_param_list: Tensors, num_averaged: Count
    ) -> None:
        _write_means(self.mean, averaged_param_list, current_param_list, num_averaged)


def _check_decay(function: str, decay: float) -> float:
    """Return a decay. Raises: ArgumentError if it is not between 0 and 1."""
    if not 0.0 <= arguments.real(function, decay, "decay") <= 1.0:
        raise dt.ArgumentError(f"{function}: decay must be between 0 and 1, got {decay}")
    return float(decay)


def get_ema_avg_fn(decay: float = 0.999) -> Mean:
    """Return the function of an exponential moving average, for `avg_fn` of `AveragedModel`.

    - `decay`: the weight of the old mean, between 0 and 1.

    The function takes the mean, the current value and the number of values, and returns the new
    mean.
    Raises: ArgumentError for another decay.
    See also: `get_ema_multi_avg_fn`, `get_swa_avg_fn`.

    >>> import dovetail as dt
    >>> mean = dt.optim.swa_utils.get_ema_avg_fn(0.75)
    >>> mean(dt.asarray(1.0), dt.asarray(3.0), 1).item()
    1.5
    """
    return functools.partial(_ema_mean, _check_decay("get_ema_avg_fn", decay))


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiMean:
    """Return the function of exponential moving averages, for `multi_avg_fn` of `AveragedModel`.

    - `decay`: the weight of the old means, between 0 and 1.

    The function takes lists of means and of current values, and the number of values. It writes the
    new means into the first list, in few launches.
    Raises: ArgumentError for another decay.
    See also: `get_ema_avg_fn`, `get_swa_multi_avg_fn`.

    >>> import dovetail as dt
    >>> means = [dt.ones(2), dt.zeros(1)]
    >>> update = dt.optim.swa_utils.get_ema_multi_avg_fn(0.75)
    >>> update(means, [dt.full(2, 3.0), dt.ones(1)], 1)
    >>> [x.tolist() for x in means]
    [[1.5, 1.5], [0.25]]
    """
    decay = _check_decay("get_ema_multi_avg_fn", decay)
    return _MultiMean(functools.partial(_ema_mean, decay))


def get_swa_avg_fn() -> Mean:
    """Return the function of a mean with equal weights, for `avg_fn` of `AveragedModel`.

    The function takes the mean, the current value and the number of values in the mean. It returns
    the new mean.
    See also: `get_swa_multi_avg_fn`, `get_ema_avg_fn`.

    >>> import dovetail as dt
    >>> dt.optim.swa_utils.get_swa_avg_fn()(dt.asarray(1.0), dt.asarray(4.0), 2).item()
    2.0
    """
    return _swa_mean


def get_swa_multi_avg_fn() -> MultiMean:
    """Return the function of means with equal weights, for `multi_avg_fn` of `AveragedModel`.

    The function takes lists of means and of current values, and the number of values in the means.
    It writes the new means into the first list, in few launches.
    See also: `get_swa_avg_fn`, `get_ema_multi_avg_fn`.

    >>> import dovetail as dt
    >>> means = [dt.ones(2)]
    >>> dt.optim.swa_utils.get_swa_multi_avg_fn()(means, [dt.full(2, 4.0)], 2)
    >>> means[0].tolist()
    [2.0, 2.0]
    """
    return _MultiMean(_swa_mean)


class AveragedModel(Module):
    """A copy of a network whose parameters are means over training steps (SWA, EMA).

    - `model`: the network. Its copy is the submodule `module`.
    - `device`: the device of the copy; by default each tensor stays on its own.
    - `avg_fn`: a function of the mean, the current value and the number of values in the mean that
      returns the new mean. Default: a mean with equal weights.
    - `multi_avg_fn`: a function of lists of means and values, and the number of values, which
      writes the new means into the first list.
    - `use_buffers`: average the buffers too, in place of copying them.

    Call `update_parameters(model)` after steps, also within a function captured by `dt.jit`. The
    first call copies the parameters. The buffer `n_averaged` counts the calls.

    Means are computed in float32 and stored in the dtype of the copy. The mean of float16 or
    bfloat16 parameters stalls, because small changes are rounded away: `AveragedModel(net).float()`
    stores it in float32.
    Raises: ArgumentError for both functions.
    See also: `get_ema_multi_avg_fn`, `update_bn`, `SWALR`.
    Source: Izmailov et al., Averaging weights leads to wider optima (2018).

    >>> import dovetail as dt
    >>> net = dt.nn.Linear(1, 1, bias=False)
    >>> ema = dt.optim.swa_utils.get_ema_multi_avg_fn(0.75)
    >>> averaged = dt.optim.swa_utils.AveragedModel(net, multi_avg_fn=ema)
    >>> for value in (1.0, 3.0):
    ...     with dt.no_grad():
    ...         _ = net.weight.fill_(value)
    ...     averaged.update_parameters(net)
    >>> averaged(dt.ones((1, 1))).tolist()
    [[1.5]]
    """

    n_averaged: dt.Tensor

    def __init__(
        self,
        model: Module,
        device: DeviceLike = None,
        avg_fn: Mean | None = None,
        multi_avg_fn: MultiMean | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(model, Module):
            raise arguments.refused("AveragedModel", "model", "a dt.nn.Module", model)
        if avg_fn is not None and multi_avg_fn is not None:
            raise dt.ArgumentError(
                "AveragedModel: avg_fn and multi_avg_fn must not both be given; pass one of them"
            )
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", dt.asarray(0, dtype=dt.int64, device=device))
        self.avg_fn, self.multi_avg_fn = avg_fn, multi_avg_fn
        self.use_buffers = arguments.flag("AveragedModel", use_buffers, "use_buffers")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the averaged network.

        - `args`, `kwargs`: the arguments of the network.
        """
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the parameters of a network to the means.

        - `model`: a network with the parameters and buffers of the averaged one.

        Raises: ArgumentError for a network with other parameters.
        """
        count = self.n_averaged
        averaged, current = self._pairs(model, Module.parameters)
        buffers = self._pairs(model, Module.buffers)
        if self.use_buffers:
            averaged, current = averaged + buffers[0], current + buffers[1]
        else:
            _write_means(lambda _, value, n: value, *buffers, count)
        mean = self.avg_fn
        if self.multi_avg_fn is None:
            mean = mean or _swa_mean
        elif isinstance(self.multi_avg_fn, _MultiMean):
            mean = self.multi_avg_fn.mean
        else:
            with dt.no_grad():
                self.multi_avg_fn(averaged, current, count)
        _write_means(functools.partial(_first_or_mean, mean), averaged, current, count)
        count.add_(1)

    def _pairs(
        self, model: Module, tensors_of: Callable[[Module], Iterable[dt.Tensor]]
    ) -> tuple[list[dt.Tensor], list[dt.Tensor]]:
        """Return the tensors of the averaged network, and those of another on their devices."""
        averaged = [x.detach() for x in tensors_of(self.module)]
        current = [x.detach() for x in tensors_of(model)]
        shapes, others = [x.shape for x in averaged], [x.shape for x in current]
        if shapes != others:
            own, other = next(
                pair for pair in itertools.zip_longest(shapes, others) if pair[0] != pair[1]
            )
            raise dt.ArgumentError(
                "AveragedModel.update_parameters: model must have the parameters and buffers of "
                f"the averaged one; expected shape {own}, got {other}"
            )
        return averaged, [x.to(p.device) for p, x in zip(averaged, current, strict=True)]


def _first_or_mean(
    mean: Mean | None, averaged: dt.Tensor, current: dt.Tensor, count: dt.Tensor
) -> dt.Tensor:
    """Return the current value if the count is 0, else the new mean; None: it is written already.

    The count is not read by the host, so that a captured function has no such branch.
    """
    count = count.to(averaged.device)
    if mean is not None:
        averaged = mean(averaged, current, count).astype(averaged.dtype)
    return dt.where(count == 0, current.astype(averaged.dtype, copy=False), averaged)


def update_bn(loader: Iterable[Any], model: Module, device: DeviceLike = None) -> None:
    """Compute the running statistics of batch norm layers anew, as means over all batches.

    - `loader`: batches, or tuples and lists whose first item is the batch.
    - `model`: the network, such as an `AveragedModel`. Its other layers run in training mode too.
    - `device`: the device that batches are moved to; None leaves them where they are.

    Without batch norm layers nothing is read from the loader.
    Raises: ArgumentTypeError for a batch that is not a tensor.
    See also: `AveragedModel`, `dt.nn.BatchNorm1d`.

    >>> import dovetail as dt
    >>> net = dt.nn.BatchNorm1d(1, affine=False)
    >>> dt.optim.swa_utils.update_bn([dt.asarray([[1.0], [3.0]])], net)
    >>> net.running_mean.tolist()
    [2.0]
    """
    layers = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not layers:
        return
    momentums, was_training = [m.momentum for m in layers], model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    try:
        with dt.no_grad():
            for batch in loader:
                x = batch[0] if isinstance(batch, (list, tuple)) else batch
                if not isinstance(x, dt.Tensor):
                    raise arguments.refused("update_bn", "a batch of loader", "a tensor", x)
                model(x if device is None else x.to(device))
    finally:
        for layer, momentum in zip(layers, momentums, strict=True):
            layer.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """A schedule that moves the rates of all groups to a constant, at which means are taken.

    - `swa_lr`: the constant rate, or a list with one for each group.
    - `anneal_epochs`: the number of epochs until it is reached.
    - `anneal_strategy`: the way there: "cos" for half a cosine wave, or "linear".

    It begins at the current rates, so that it can follow another schedule.
    Raises: ArgumentError, ArgumentTypeError.
    See also: `AveragedModel`, `dt.optim.lr_scheduler.LRScheduler`.

    >>> import dovetail as dt
    >>> opt = dt.optim.SGD([dt.ones(1).requires_grad_()], lr=1.0)
    >>> schedule = dt.optim.swa_utils.SWALR(opt, swa_lr=0.5, anneal_epochs=4)
    >>> for _ in range(6):
    ...     opt.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        self._attach(optimizer)
        if anneal_strategy not in ("cos", "linear"):
            raise dt.ArgumentError(
                f"{self._name}: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}"
            )
        rates = values_per_group(self._name, "swa_lr", optimizer, swa_lr)
        self.anneal_epochs = arguments.integer(self._name, anneal_epochs, "anneal_epochs", 0)
        self._anneal_strategy = anneal_strategy
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = arguments.real(self._name, rate, "swa_lr")
        super().__init__(optimizer, last_epoch)

    def _part(self, step: int) -> float:
        """Return the part of the way from the first rate to `swa_lr` after some steps."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> Rates:
        """Return the rates of the next step, from the current ones."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, part = self._part(step - 1), self._part(step)
        rates = []
        lrs, ends = group_values(self.optimizer), group_values(self.optimizer, "swa_lr")
        for lr, end in zip(lrs, ends, strict=True):
            first = end if before == 1 else (lr - before * end) / (1 - before)
            rates.append(end * part + first * (1 - part))
        return rates


explain_all(globals(), __all__)
publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("optim.swa_utils")
