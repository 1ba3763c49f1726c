"""Batched writes: several tensors written in as few launches as possible."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine import tracer_api
from ..engine.batched_write import write_batch as write_memory
from ..engine.evaluate import evaluate
from ..graph.expr import Expr, mark_value_overwritten
from ..graph.refcount import Box
from .c_fields import expr_of
from .other_layouts import scatter_rows
from .tensor import Tensor, attach_lazy_storage, create_tensor, strided
from .writes import _before_write, _require_writable, cast_to_spec, write_tensor


def write_together(name: str, targets: Sequence[Tensor], values: list[Tensor]) -> None:
    """Write each value, broadcast and cast, into its target; empty `values`.

    All values are computed together from the old contents of memory. Values without other
    references are computed right into the targets: in a single launch for tensors of one shape.
    Pending values in other tensors keep the old contents.

    - `name`: the function that errors name.
    - `targets`: the tensors to write.
    - `values`: the value of each target; the list is emptied.

    Raises: the errors of `copy_`; ReadOnlyError.
    """
    specs = [expr_of(strided(name, x)).spec for x in targets]
    exprs = [strided(name, v)._expr for v in values]
    values.clear()
    roots = [cast_to_spec(name, e, s) for e, s in zip(exprs, specs, strict=True)]
    exprs.clear()
    if _try_write_directly(name, targets, roots):
        return
    holders: list[Box[Expr]] = [[r] for r in roots]
    roots.clear()
    for x, holder in zip(targets, holders, strict=True):
        write_tensor(name, x, holder)


def _try_write_directly(
    name: str, targets: Sequence[Tensor], roots: list[Expr], row_indices: Expr | None = None
) -> bool:
    """Write the roots straight into the targets' memory; return False, unwritten, if impossible."""
    leaves = [_prepare_target_leaf(x) for x in targets]
    notes = [_before_write(name, x, r) for x, r in zip(targets, roots, strict=True)]
    for e in leaves:
        _require_writable(name, e)
    if any(notes) or not write_memory(roots, leaves, row_indices):
        return False
    for e in leaves:
        mark_value_overwritten(e, name)
    return True


def _prepare_target_leaf(x: Tensor) -> Expr:
    """Return the leaf of a target; give a pending tensor a lazy storage."""
    e = expr_of(x)
    recorder = tracer_api.current()
    if recorder is not None and e.op is not None:
        recorder.evaluate_earlier(e)
    return attach_lazy_storage(x) if e.op is not None else e


def put_rows(name: str, targets: Sequence[Tensor], values: list[Tensor], at: Tensor) -> None:
    """Write each value into the rows of its target at positions `at`; empty `values`.

    The positions along the first axis are unchecked and distinct. All values are computed from the
    old contents, and right into the rows if one launch reads and writes these.

    - `name`: the function that errors name.
    - `targets`: the tensors to write.
    - `values`: the new rows of each target; the list is emptied.
    - `at`: the positions along the first axis, unchecked and distinct.

    Raises: ReadOnlyError.
    """
    roots = [v._expr for v in values]
    values.clear()
    positions = at._expr
    if (
        positions.op is None
        and tracer_api.current() is None
        and _try_write_directly(name, targets, roots, positions)
    ):
        return
    evaluate(roots)
    for x, new in zip(targets, map(create_tensor, roots), strict=True):
        write_tensor(name, x, [scatter_rows(x, new, at)._expr], is_update=True)
