"""Arguments of a user's kernel: its tensors as leaves that the kernel may read and write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..engine import tracer_api
from ..engine.evaluate import evaluate
from ..errors import ArgumentTypeError, DeviceError, GradientError, ReadOnlyError
from ..graph.expr import Expr, node, overlaps
from ..ops.table import COPY
from ..settings import current, flags
from ..tensor import writes
from ..tensor.c_fields import AliasGroup, aliases_of, expr_of, is_strided
from ..tensor.tensor import Tensor, strided


class NamedParameter(Protocol):
    """A parameter."""

    @property
    def name(self) -> str: ...


def collect_leaves(
    kernel: str,
    parameters: Sequence[NamedParameter],
    tensors: tuple[int, ...],
    written: tuple[int, ...],
    args: tuple[Any, ...],
) -> list[Expr]:
    """Check tensor arguments and return their expressions; copy inputs that overlap outputs.

    tensors: the positions of these arguments. written: the positions within `tensors` of those
    that the kernel writes. An argument that is read, and shares memory with one that is written,
    is copied.
    Raises: ArgumentTypeError, DTypeError, LayoutError, DeviceError, ReadOnlyError, GradientError.
    """
    leaves: list[Expr] = []
    device = None
    grad = current().grad
    for k in tensors:
        x = args[k]
        if not is_strided(x):
            x = _require_strided(kernel, parameters[k].name, x)
        e = expr_of(x)
        if device is None:
            device = e.spec.device
        elif e.spec.device is not device:
            raise DeviceError(
                f"{kernel}: {parameters[k].name} is on {e.spec.device} and "
                f"{parameters[tensors[0]].name} on {device}; move one with x.to(device)"
            )
        if grad and e.tape is not None:
            _refuse_gradient(kernel, parameters[k].name)
        leaves.append(e)
    recorder = tracer_api.current() if flags.captures else None
    for i in written:
        x, e = args[tensors[i]], leaves[i]
        if recorder is not None and e.op is not None:
            recorder.evaluate_earlier(e)  # so that a replay writes to the same memory
        group = aliases_of(x)
        if grad and group is not None and group.has_tape and _is_any_taped(group):
            _refuse_gradient(kernel, parameters[tensors[i]].name)
        if e.op is None:
            writes._require_writable(kernel, e)
    if written:
        _copy_overlapping(kernel, parameters, tensors, written, leaves)
    return leaves


def _require_strided(kernel: str, name: str, x: object) -> Tensor:
    """Return a tensor in strided layout. Raises: ArgumentTypeError, LayoutError for others."""
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(
            f"{kernel}: {name} must be a tensor, got {type(x).__name__}; use dt.asarray"
        )
    return strided(kernel, x)


def _is_any_taped(group: AliasGroup) -> bool:
    """Return True if a gradient flows to any tensor over the same memory."""
    return any(t._expr.tape is not None for t in group.live_tensors())


def _refuse_gradient(kernel: str, name: str) -> None:
    """Raise the GradientError of an argument that requires a gradient."""
    raise GradientError(
        f"{kernel}: {name} requires a gradient, but a kernel has none; use dt.autograd.Function, "
        "or call the kernel under dt.no_grad()"
    )


def _copy_overlapping(
    kernel: str,
    parameters: Sequence[NamedParameter],
    tensors: tuple[int, ...],
    written: tuple[int, ...],
    leaves: list[Expr],
) -> None:
    """Replace inputs that overlap outputs by copies. Raises: ReadOnlyError if outputs overlap."""
    for i in written:
        target = leaves[i]
        for j, e in enumerate(leaves):
            if j == i or not _may_overlap(e, target):
                continue
            if j in written:
                names = f"{parameters[tensors[i]].name} and {parameters[tensors[j]].name}"
                raise ReadOnlyError(
                    f"{kernel}: {names} are both written and share memory; pass a copy of one"
                )
            copy = node(COPY, (e,), e.spec)
            evaluate((copy,))
            leaves[j] = copy


def _may_overlap(a: Expr, b: Expr) -> bool:
    """Return True if two expressions may share memory; two different pending ones do not."""
    return a is b or (a.op is None and b.op is None and overlaps(a, b))
