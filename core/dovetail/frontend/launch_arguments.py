"""What kernels of one's own are given: tensors, as leaves that may be read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..engine import recording
from ..engine.evaluate import evaluate
from ..errors import ArgumentTypeError, DeviceError, GradientError, ReadOnlyError
from ..graph.expr import Expr, node, overlaps
from ..ops.table import COPY
from ..settings import current, flags
from ..tensor import writes
from ..tensor.fields import Aliases, aliases_of, expr_of, is_strided
from ..tensor.tensor import Tensor, strided


class Named(Protocol):
    """A parameter."""

    @property
    def name(self) -> str: ...


def leaves_of(
    called: str, parameters: Sequence[Named], tensors: tuple[int, ...], written: tuple[int, ...],
    args: tuple[Any, ...],
) -> list[Expr]:  # fmt: skip
    """The nodes of the arguments that are tensors; those of `written`, by place, may be written.

    What is read and shares memory with what is written is a copy.
    Raises: ArgumentTypeError, DTypeError, LayoutError, DeviceError, ReadOnlyError, GradientError.
    """
    found: list[Expr] = []
    device = None
    grad = current().grad
    for k in tensors:
        x = args[k]
        if not is_strided(x):
            x = _tensor(called, parameters[k].name, x)
        e = expr_of(x)
        if device is None:
            device = e.spec.device
        elif e.spec.device is not device:
            raise DeviceError(
                f"{called}: {parameters[k].name} is on {e.spec.device}, and "
                f"{parameters[tensors[0]].name} on {device}; move one with x.to(device)"
            )
        if grad and e.tape is not None:
            _refuse_gradient(called, parameters[k].name)
        found.append(e)
    recorder = recording.current() if flags.captures else None
    for i in written:
        x, e = args[tensors[i]], found[i]
        if recorder is not None and e.op is not None:
            recorder.evaluate_earlier(e)  # so that a replay writes there, too
        group = aliases_of(x)
        if grad and group is not None and group.taped and _is_any_taped(group):
            _refuse_gradient(called, parameters[tensors[i]].name)
        if e.op is None:
            writes._require_writable(called, e)
    if written:
        _part(called, parameters, tensors, written, found)
    return found


def _tensor(called: str, name: str, x: object) -> Tensor:
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(
            f"{called}: {name} must be a tensor, not {type(x).__name__}; see dt.asarray"
        )
    return strided(called, x)


def _is_any_taped(group: Aliases) -> bool:
    """Whether a gradient flows to any tensor over the same memory."""
    return any(t._expr.tape is not None for t in group.live())


def _refuse_gradient(called: str, name: str) -> None:
    raise GradientError(
        f"{called}: {name} requires a gradient, and a kernel has none of its own: give it one with "
        "dt.autograd.Function, or call it under dt.no_grad()"
    )


def _part(
    called: str, parameters: Sequence[Named], tensors: tuple[int, ...], written: tuple[int, ...],
    found: list[Expr],
) -> None:  # fmt: skip
    """Puts copies in place of what is read where something else is written."""
    for i in written:
        target = found[i]
        for j, e in enumerate(found):
            if j == i or not _meet(e, target):
                continue
            if j in written:
                names = f"{parameters[tensors[i]].name} and {parameters[tensors[j]].name}"
                raise ReadOnlyError(
                    f"{called}: {names} are both written and share memory; pass a copy of one"
                )
            made = node(COPY, (e,), e.spec)
            evaluate((made,))
            found[j] = made


def _meet(a: Expr, b: Expr) -> bool:
    """Return True if two nodes may have memory in common."""
    return a is b or (a.op is None and b.op is None and overlaps(a, b))
