"""Sums of gradients of slices: those that `split` makes are concatenated, not padded and added."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from ..functions.elementwise import op_functions as ew
from ..functions.known_calls import CONCAT_LAZY_TENSORS_MAX
from ..graph.expr import Spec, node
from ..ops import table as ops
from ..tensor.tensor import Tensor, create_tensor
from .tape import OpNode


class SliceSum(NamedTuple):
    """A sum of gradients of disjoint slices, as `split` makes them, that is added up on demand.

    `slices`: (first position along `axis`, gradient, tape node of the slice) in order of arrival.
    """

    spec: Spec
    axis: int
    slices: tuple[tuple[int, Tensor, OpNode], ...]

    def merge(self, other: SliceSum) -> SliceSum | None:
        """Return the sum of both, or None if the slices overlap or are too many to join."""
        slices = self.slices + other.slices
        if self.axis != other.axis or len(slices) > CONCAT_LAZY_TENSORS_MAX:
            return None
        spans = sorted([(start, start + g.shape[self.axis]) for start, g, _ in slices])
        if any([stop > start for (_, stop), (start, _) in pairwise(spans)]):
            return None
        return SliceSum(self.spec, self.axis, slices)

    def total(self) -> Tensor:
        """Return the sum as one tensor.

        Slices that cover the axis are concatenated. Their sum adds zeros to each element, and that
        changes the sign of -0.0, so one zero is added here, too.
        """
        covered = sum([g.shape[self.axis] for _, g, _ in self.slices])
        if len(self.slices) > 1 and covered == self.spec.shape[self.axis]:
            exprs = tuple([g._expr for _, g, _ in sorted(self.slices, key=itemgetter(0))])
            return create_tensor(node(ops.CONCAT, exprs, self.spec, self.axis)) + 0.0
        padded: list[Any] = [n.backward(g, None)[0] for _, g, n in self.slices]
        total: Tensor = reduce(ew.add, padded)
        return total


def as_slice_sum(n: OpNode, g: Tensor) -> SliceSum | None:
    """Return the gradient of a slice along one axis as a SliceSum; None for other nodes.

    None also if the operand takes gradients of another dtype, or complex ones, to which adding 0.0
    may not change the imaginary part.
    """
    want, edge = n.operands[0], n.edges[0]
    if n.op is not ops.VIEW or n.attrs[0] != "slice" or want is None or edge is None:
        return None
    _, starts, lengths, steps = n.attrs
    cut = [d for d, length in enumerate(lengths) if length != want.shape[d]]
    if len(cut) != 1 or lengths[cut[0]] == 0 or any([t != 1 for t in steps]):
        return None
    if edge.node.accepts_unrounded or g.dtype is not want.dtype or g.dtype.kind != "f":
        return None
    return SliceSum(want, cut[0], ((starts[cut[0]], g, n),))
