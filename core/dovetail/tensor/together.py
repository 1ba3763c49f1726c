"""Writing several tensors at once, in as few launches as that takes."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine import recording
from ..engine.evaluate import evaluate
from ..engine.together import write_together as write_memory
from ..graph.expr import Expr, overwritten
from ..graph.ownership import Holder
from .fields import expr_of
from .other_layouts import scatter_rows
from .tensor import Tensor, lazy_storage, make, strided
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


def _written(
    name: str, targets: Sequence[Tensor], roots: list[Expr], at: Expr | None = None
) -> bool:
    leaves = [_leaf(x) for x in targets]
    notes = [_noted(name, x, r) for x, r in zip(targets, roots, strict=True)]
    for e in leaves:
        _require_writable(name, e)
    if any(notes) or not write_memory(roots, leaves, at):
        return False
    for e in leaves:
        overwritten(e, name)
    return True


def _leaf(x: Tensor) -> Expr:
    """The leaf of what is to be written; what is pending gets memory first."""
    e = expr_of(x)
    recorder = recording.current()
    if recorder is not None and e.op is not None:
        recorder.evaluate_earlier(e)
    return lazy_storage(x) if e.op is not None else e


def put_rows(name: str, targets: Sequence[Tensor], values: list[Tensor], at: Tensor) -> None:
    """Makes each value the rows of its target at places `at`; `values` is emptied.

    The places are unchecked and distinct, along the first axis. All values are of what was there
    before, and go right there where one launch reads and writes these rows.
    Raises: ReadOnlyError.
    """
    roots = [v._expr for v in values]
    values.clear()
    place = at._expr
    if place.op is None and recording.current() is None and _written(name, targets, roots, place):
        return
    evaluate(roots)
    for x, new in zip(targets, map(make, roots), strict=True):
        write(name, x, [scatter_rows(x, new, at)._expr], updates=True)
