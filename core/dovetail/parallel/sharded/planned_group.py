"""A group that sends nothing, for `dt.explain`: it records the bytes of each call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.extend import MessageReport

from ..agreement import CONTENT_BYTES_MAX
from ..membership import of_thread
from .sharded_tensor import ShardedTensor, wrap
from .sharding import Shape

Tensor = dt.Tensor


class PlannedGroup:
    """A group whose calls return memory without values, and are recorded in `messages`.

    `sent` has the tensors whose elements would be sent, with their pending work.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.messages: list[MessageReport] = []
        self.sent: list[Tensor] = []

    def __getattr__(self, name: str) -> Any:
        raise dt.ArgumentError(
            f"explain: a function that is explained cannot call {name} of its group; it may use "
            "sharded tensors, all_reduce, all_gather and all_to_all"
        )

    def all_reduce(self, tensor: Tensor, op: str = "sum", *, name: str = "") -> Tensor:
        """Record the parts that each rank reduces, and this rank's reduced part."""
        sizes = [tensor.nbytes] * self.size
        if tensor.nbytes > CONTENT_BYTES_MAX:
            shares = [len(c) for c in np.array_split(np.empty(tensor.size, bool), self.size)]
            sizes = [(n + shares[self.rank]) * tensor.itemsize for n in shares]
        self._record(name, "all_reduce", sizes, [tensor])
        return dt.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)

    def all_gather(
        self, tensor: Any, shapes: Sequence[Shape] | None = None, *, name: str = ""
    ) -> tuple[Any, ...]:
        """Record the tensor, which is sent to all ranks. Arrays are shapes, equal on all ranks."""
        self._record(name, "all_gather", [tensor.nbytes] * self.size, [tensor])
        if not isinstance(tensor, Tensor):
            return (tensor,) * self.size
        expected = [tensor.shape] * self.size if shapes is None else shapes
        return tuple([dt.empty(s, dtype=tensor.dtype, device=tensor.device) for s in expected])

    def all_to_all(
        self, tensors: Sequence[Tensor], shapes: Sequence[Shape] | None = None, *, name: str = ""
    ) -> tuple[Tensor, ...]:
        """Record one tensor for each rank."""
        self._record(name, "all_to_all", [x.nbytes for x in tensors], tensors)
        expected = [x.shape for x in tensors] if shapes is None else shapes
        first = tensors[0]
        return tuple([dt.empty(s, dtype=first.dtype, device=first.device) for s in expected])

    def _record(self, name: str, step: str, sizes: Sequence[int], tensors: Sequence[Any]) -> None:
        """Record a call, and the tensors that it sends."""
        sent = tuple([(p, n) for p, n in enumerate(sizes) if p != self.rank])
        self.messages.append(MessageReport(name, step, sent))
        self.sent += [x.detach() for x in tensors if isinstance(x, Tensor)]


def trace(
    f: Callable[..., object], args: Sequence[object]
) -> tuple[list[Tensor], list[MessageReport]]:
    """Call `f` with a group that sends nothing; return what it would compute and send.

    The tensors of `args` are replaced: sharded ones belong to that group, and gradients that `f`
    computes are accumulated in the copies.
    """
    group = next(a.sharding.group for a in args if isinstance(a, ShardedTensor))
    planned, before = PlannedGroup(group.rank, group.size), of_thread.group

    def replace(x: Any) -> Any:
        """Return a tensor over the same memory that does not send."""
        if not isinstance(x, Tensor):
            return x
        y: Any = x.detach()
        if isinstance(y, ShardedTensor):
            y = wrap(y.local(), y.sharding._replace(group=planned))
        return y.requires_grad_() if x.requires_grad else y

    of_thread.group = planned  # type: ignore[assignment]  # it has the methods that `f` may call
    try:
        replaced = dt.tree.map(replace, list(args))
        results = dt.tree.leaves(f(*replaced))
    finally:
        of_thread.group = before
    gradients = [x.grad for x in dt.tree.leaves(replaced) if isinstance(x, Tensor)]
    computed = [x for x in (*results, *gradients) if isinstance(x, Tensor)]
    return [*planned.sent, *computed], planned.messages
