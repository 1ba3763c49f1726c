"""Writing several tensors at once, in as few launches as that takes."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine import recording
from ..engine.together import write_together as write_memory
from ..graph.expr import Expr, overwritten
from ..graph.ownership import Holder
from .fields import expr_of
from .other_layouts import scatter_rows
from .tensor import Tensor, lazy_storage, strided
from .writes import _noted, _require_writable, to_spec, write


def write_together(name: str, targets: Sequence[Tensor], values: list[Tensor]) -> None:
    """Makes each value, broadcast and cast, the contents of its target; `values` is emptied.

    They are computed together, from what is in memory before, and where nobody else holds them
    right into the targets: over tensors of one shape in a single launch. Pending values that are
    left in other tensors are the old ones' still.
    Raises: as `copy_`; ReadOnlyError.
    """
    wanted = [expr_of(strided(name, x)).spec for x in targets]
    exprs = [strided(name, v)._expr for v in values]
    values.clear()
    roots = [to_spec(name, e, s) for e, s in zip(exprs, wanted, strict=True)]
    exprs.clear()
    if _written(name, targets, roots):
        return
    holders: list[Holder[Expr]] = [[r] for r in roots]
    roots.clear()
    for x, holder in zip(targets, holders, strict=True):
        write(name, x, holder)


def _written(name: str, targets: Sequence[Tensor], roots: list[Expr]) -> bool:
    leaves = [_leaf(x) for x in targets]
    notes = [_noted(name, x, r) for x, r in zip(targets, roots, strict=True)]
    for e in leaves:
        _require_writable(name, e)
    if any(notes) or not write_memory(roots, leaves):
        return False
    for e in leaves:
        overwritten(e, name)
    return True


def _leaf(x: Tensor) -> Expr:
    """The leaf of what is to be written; what is pending gets memory first."""
    e = expr_of(x)
    recorder = recording.current()
    if recorder is not None and e.op is not None and recorder.is_earlier(e):
        recorder.settle_earlier(e)
    return lazy_storage(x) if e.op is not None else e


def put_rows(x: Tensor, values: Tensor, at: Tensor) -> None:
    """Writes rows of `values` to `x`, at places along its first axis that are unchecked, distinct.

    Both are strided, of one dtype and device.
    Raises: ReadOnlyError.
    """
    write("put_rows", x, [scatter_rows(x, values, at)._expr], updates=True)
