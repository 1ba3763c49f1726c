"""Values and gradients of a batch whose bits do not depend on the number of workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import dovetail as dt
from dovetail.extend import Lock, arguments, is_capturing

from .dealing import check_groups, deal
from .group_sum import OP, GroupSum
from .lockstep import GroupThread, compute_in_lockstep
from .membership import current
from .packing import Vectors, pack, unpack
from .reduction_tree import list_groups
from .step_timeline import StepRecorder

if TYPE_CHECKING:
    from .group import ProcessGroup

__all__ = ["value_and_grad"]

Loss: TypeAlias = Callable[[Any, Any], tuple[dt.Tensor, Any]]

# Groups draw from the default generator, which all threads share: one group draws at a time.
_DRAWING = Lock(waited=False)


def value_and_grad(
    loss: Loss,
    *,
    groups: int,
    group: ProcessGroup | None = None,
    jit: bool = False,
    generator: dt.random.Generator | None = None,
    statistics: str = "group",
) -> Callable[[Any, Any], tuple[dt.Tensor, Any]]:
    """Return a function that gives the loss and the gradient of a batch, computed by all workers.

    The function is called with (params, batch). Its results have the same bits for any number of
    workers. Example k of the batch belongs to group k modulo `groups`. The workers compute `loss`
    and its gradient for each group on its own, and add the results of groups in one fixed tree. All
    workers get the sum, divided by the total weight.

    - `loss`: a function of (params, examples of one group) that gives a sum over the examples, and
      its weight, such as their number.
    - `groups`: a power of two, at least the number of workers. It is part of the result's meaning;
      the number of workers is not.
    - `group`: the workers; None is `current()`.
    - `jit`: capture the computation of a group by `dt.jit`.
    - `generator`: the source of the random states of groups; None is the default generator. It is
      advanced by `groups` elements at each call, and must be in the same state on all workers.
    - `statistics`: of layers such as `nn.BatchNorm2d`. "group" normalises each group by its own
      mean and variance. "all" takes those of the whole batch: in each layer the groups wait for
      each other, and the workers exchange sums. It excludes `jit`; captured functions in `loss`
      run uncaptured.

    `params` is a tree of tensors, or a module. The gradient is a tree like `params`; of a module it
    is a dict by name, whose tensors replace the `grad` of the parameters. A parameter that the loss
    does not depend on has a gradient of zeros. Buffers of a module that the loss changes, such as
    running statistics, get the mean of the changes by all groups.
    `batch` is a tree of tensors or arrays with the examples along the first axis, the same on all
    workers; or a `Share`, from a loader with a `DealtSampler`.
    During `loss`, the default generator draws from a stream that depends on its state, the call and
    the group alone.

    Raises: ArgumentError for other groups, and for workers that differ in batch size or random
    state; ArgumentTypeError; CaptureError inside of `dt.jit`; WorkerError.
    See also: `DealtSampler`, `run`, `func.value_and_grad`.

    >>> import dovetail as dt
    >>> def loss(w, x):
    ...     return ((w * x) ** 2).sum(), len(x)
    >>> step = dt.parallel.value_and_grad(loss, groups=4)
    >>> value, gradient = step(dt.asarray(2.0), dt.asarray([1.0, 2.0, 3.0, 4.0, 5.0]))
    >>> value.item(), gradient.item()
    (44.0, 44.0)
    """
    arguments.function(OP, loss, "loss")
    arguments.choice(OP, statistics, "statistics", ("group", "all"))
    if arguments.flag(OP, jit, "jit") and statistics == "all":
        raise dt.ArgumentError(
            f'{OP}: jit must be False with statistics="all", because groups wait for each other in '
            "loss; pass jit=False, or use a layer such as nn.GroupNorm"
        )
    if generator is not None:
        arguments.instance(OP, generator, "generator", dt.random.Generator)
    workers = current() if group is None else group
    check_groups(OP, groups, workers.size)
    return _GroupedGradient(loss, groups, workers, jit, generator, statistics == "all")


class _GroupedGradient:
    """The function that `value_and_grad` returns."""

    def __init__(
        self,
        loss: Loss,
        groups: int,
        workers: ProcessGroup,
        jit: bool,
        generator: dt.random.Generator | None,
        shares_statistics: bool,
    ) -> None:
        self.groups, self.workers, self.generator = groups, workers, generator
        self.shares_statistics, self.timeline = shares_statistics, StepRecorder()

        def compute(params: Any, examples: Any, buffers: Vectors) -> Vectors:
            """Return the packed result of one group."""
            return _compute_group(loss, params, examples, buffers)

        self.compute = dt.jit(compute) if jit else compute

    def __call__(self, params: Any, batch: Any) -> tuple[dt.Tensor, Any]:
        """Return the loss of a batch and its gradient."""
        if is_capturing():
            raise dt.CaptureError(
                f"{OP}: must not be called in a captured function, because workers exchange "
                "gradients on the host; pass jit=True to capture the computation of a group"
            )
        inputs, changing = _differentiable(params), _buffers(params)
        share = deal(OP, batch, self.groups, self.workers, inputs[0].device)
        states, header = self._spawn_states(share.size)
        before = [dt.copy(b) for b in changing]
        dt.evaluate(*before)

        def compute(g: int) -> Vectors:
            """Return the packed result of group `g`."""
            vectors: Vectors = self.compute(params, share.of_group(g), before)
            return vectors

        def compute_alone(g: int) -> Vectors:
            """Return the packed result of group `g`, computed from the random state of `g`."""
            with _DRAWING:
                outer = dt.random.get_state()
                dt.random.set_state(states[g])
                try:
                    return compute(g)
                finally:
                    dt.random.set_state(outer)

        sums = GroupSum(self.workers, self.groups, header, self.timeline)
        with dt.no_grad():
            try:
                if self.shares_statistics:
                    threads = {
                        g: GroupThread(partial(compute, g), states[g], changing)
                        for g in list_groups(self.groups, self.workers.size, self.workers.rank)
                        if g < share.size
                    }
                    add = sums.sum_of_addends
                    results = compute_in_lockstep(threads, add, _DRAWING, self.timeline)
                    total = sums.sum_on_all(results.pop, _likes(inputs, before))
                else:
                    total = sums.sum_on_all(compute_alone, _likes(inputs, before))
            except BaseException:
                for b, x in zip(changing, before, strict=True):
                    b.copy_(x)
                raise
            count = min(share.size, self.groups)
            with self.timeline.record("update"):
                value, grads = _FINISH(total, inputs, changing, before, count)
        return value, _store_gradients(params, inputs, grads)

    def _spawn_states(self, size: int) -> tuple[list[tuple[int, int]], np.ndarray]:
        """Return the random state of each group, and the header of messages; advance the generator.

        The header is equal on all workers unless they differ in random state or batch.
        """
        source = self.generator
        if source is None:
            source = dt.random.Generator(0)
            source.state = dt.random.get_state()
        header = np.array([self.groups, size, *source.state], np.uint64)
        states = [g.state for g in source.spawn(self.groups)]
        if self.generator is None:
            dt.random.set_state(source.state)
        return states, header


# --- parameters -----------------------------------------------------------------------------------


def _differentiable(params: Any) -> list[dt.Tensor]:
    """Return the tensors to differentiate by: of a module its parameters that require a gradient.

    Raises: ArgumentTypeError for other leaves, ArgumentError for none or several devices.
    """
    if isinstance(params, dt.nn.Module):
        inputs = [p for p in params.parameters() if p.requires_grad]
    else:
        inputs = [arguments.instance(OP, x, "params", dt.Tensor) for x in dt.tree.leaves(params)]
    devices = sorted({str(x.device) for x in inputs})
    if len(devices) != 1:
        raise dt.ArgumentError(
            f"{OP}: params must have tensors to differentiate by, all on one device, got "
            f"{', '.join(devices) or 'none'}"
        )
    return inputs


def _buffers(params: Any) -> list[dt.Tensor]:
    """Return the buffers of a module that hold numbers."""
    if not isinstance(params, dt.nn.Module):
        return []
    return [b for b in params.buffers() if b.dtype is not dt.bool]


def _store_gradients(params: Any, inputs: Sequence[dt.Tensor], grads: Sequence[dt.Tensor]) -> Any:
    """Return gradients in the structure of `params`; set those of a module's parameters."""
    if not isinstance(params, dt.nn.Module):
        return dt.tree.unflatten(dt.tree.structure(params), grads)
    by_id = {id(x): g for x, g in zip(inputs, grads, strict=True)}
    for x, g in zip(inputs, grads, strict=True):
        x.grad = g
    return {name: by_id[id(x)] for name, x in params.named_parameters() if id(x) in by_id}


# --- one group ------------------------------------------------------------------------------------


def _compute_group(loss: Loss, params: Any, examples: Any, before: Vectors) -> Vectors:
    """Return the packed gradients, loss, weight and changes of buffers of one group.

    `before`: the values from which the buffers of a module start.
    """
    inputs, changing, arguments_of_loss = _differentiable(params), _buffers(params), params
    with dt.no_grad():
        for b, x in zip(changing, before, strict=True):
            b.copy_(x)
    if not isinstance(params, dt.nn.Module):
        inputs = [x.detach().requires_grad_() for x in inputs]
        arguments_of_loss = dt.tree.unflatten(dt.tree.structure(params), inputs)
    with dt.enable_grad():
        total, weight = _check_result(loss(arguments_of_loss, examples))
        grads = dt.autograd.grad(total, inputs, allow_unused=True)
    with dt.no_grad():
        dtype = _value_dtype(inputs)
        leaves = [dt.zeros_like(x) if g is None else g for x, g in zip(inputs, grads, strict=True)]
        leaves = [g if g.layout is dt.strided else g.to_dense() for g in reversed(leaves)]
        leaves += [
            total.detach().astype(dtype),
            dt.asarray(weight, dtype=dtype, device=total.device),
        ]
        # equal values are not subtracted: infinities would give NaN
        leaves += [dt.where(b == x, 0, b - x) for b, x in zip(changing, before, strict=True)]
        return pack(leaves)


def _check_result(result: Any) -> tuple[dt.Tensor, Any]:
    """Return (sum, weight) of a loss. Raises: ArgumentTypeError for another result, ShapeError."""
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[0], dt.Tensor):
        raise arguments.refused(OP, "loss", "a function that returns (sum, weight)", result)
    total, weight = result
    for name, x in (("sum", total), ("weight", weight)):
        if isinstance(x, dt.Tensor) and x.size != 1:
            raise dt.ShapeError(
                f"{OP}: the {name} that loss returns must have one element, got shape {x.shape}; "
                "add the losses of the examples by x.sum()"
            )
    return total.reshape(()), weight.detach().reshape(()) if isinstance(
        weight, dt.Tensor
    ) else weight


def _likes(inputs: Vectors, buffers: Vectors) -> Vectors:
    """Return tensors with shapes and dtypes of gradients, loss, weight and changes of buffers.

    The gradients of the last parameters, which the backward pass computes first, come first.
    """
    scalar = dt.empty((), dtype=_value_dtype(inputs), device=inputs[0].device)
    return [*reversed(inputs), scalar, scalar, *buffers]


def _value_dtype(inputs: Iterable[dt.Tensor]) -> dt.DType:
    """Return the dtype in which losses and weights are added."""
    wide = (dt.float64, dt.complex128)
    return dt.float64 if any(x.dtype in wide for x in inputs) else dt.float32


def _finish(
    total: Vectors, inputs: Vectors, changing: Vectors, before: Vectors, count: int
) -> tuple[dt.Tensor, Vectors]:
    """Return the loss and the gradients of a batch; write the mean change into the buffers.

    `total`: the packed sum of `count` groups.
    """
    n = len(inputs)
    leaves = unpack(total, _likes(inputs, before))
    loss, weight = leaves[n], leaves[n + 1]
    grads = [(g / weight).astype(g.dtype) for g in reversed(leaves[:n])]
    for b, x, change in zip(changing, before, leaves[n + 2 :], strict=True):
        mean = change / count if b.dtype.kind in "fc" else change // count
        b.copy_(x + mean.astype(b.dtype))
    return loss / weight, grads


_FINISH = dt.jit(_finish)
