"""Gradients that carry the forward's checks of indices."""

from __future__ import annotations

from collections.abc import Sequence

from ..functions.datatypes import move
from ..functions.elementwise import op_functions as ew
from ..functions.reductions.statistics import all as every
from ..graph.expr import has_index_checks, have_unresolved_checks
from ..settings import flags
from ..tensor.c_fields import is_strided
from ..tensor.tensor import Tensor


def attach_index_checks(gradients: Sequence[Tensor], outputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradients such that each raises if an index behind the outputs is out of range.

    A gradient that reads such an index checks it already. Any other is made to depend on the
    outputs. A gradient that checks some index of the outputs counts as one that checks all:
    computed work does not keep which index a check is of, so the rest cannot be compared. In
    `x[i] + w[j]` the gradient of x raises for i only; the output raises for j too.
    """
    if not (has_index_checks() or flags.has_unresolved_checks):
        return [*gradients]
    unsure = have_unresolved_checks([t._expr for t in outputs])
    bad = [t for t, is_bad in zip(outputs, unsure, strict=True) if is_bad]
    plain = [g for g in gradients if is_strided(g)] if bad else []
    checked = have_unresolved_checks([g._expr for g in plain])
    loose = {id(g) for g, is_checked in zip(plain, checked, strict=True) if not is_checked}
    return [_depend_on(g, bad) if id(g) in loose else g for g in gradients]


def _depend_on(g: Tensor, outputs: Sequence[Tensor]) -> Tensor:
    """Return `g` made to depend on the outputs by a condition that is always true."""
    for t in outputs:
        missing = ew.isnan(t)
        g = ew.where(move(every(ew.equal(missing, missing)), g.device), g, 0.0)
    return g
