"""The pass `emit`: every kernel that has been decided becomes launches."""

from __future__ import annotations

from collections.abc import Sequence

from ..layout import Shape
from ..loops.language import map_loop
from .decisions import Decisions
from .emitter import Emitter, names, traffic
from .groups import Group, Kernel, Output, OwnKernels
from .kernels_of_ops import launches_of_op
from .plan import Call, Step
from .split_rows import launches_in_chunks

SHORT, LONG = 4, 64  # extents of a last axis that had better not be it, and of one in its place


def emit(d: Decisions) -> None:
    """Builds the launches, in order."""
    d.steps = [step for kernel in d.kernels for step in _launches(d, kernel)]


def _launches(d: Decisions, kernel: Kernel) -> list[Step | Call]:
    if isinstance(kernel, Group):
        return [_launch(d, kernel)]
    if isinstance(kernel, OwnKernels):
        return launches_of_op(d, kernel)
    return launches_in_chunks(d, kernel)


def _long_last(
    extents: Shape, strides: Sequence[Shape], written: Sequence[int]
) -> tuple[Shape, Sequence[Shape]]:
    """The axes of a grid with a long one last, where the last is very short.

    Vectors, or items that work together, would be mostly idle: as of points by three coordinates.
    Of several long ones it is that along which what is `written` lies closest: of 256 outer
    products of 256 with 4 the one of neighbouring rows, not that from product to product.
    """
    if len(extents) < 2 or extents[-1] > SHORT or max(extents) < LONG:
        return extents, strides

    def apart(axis: int) -> tuple[int, int]:
        return max([abs(strides[k][axis]) for k in written], default=0), -extents[axis]

    long = min((axis for axis, n in enumerate(extents) if n >= LONG), key=apart)
    order = [axis for axis in range(len(extents)) if axis != long] + [long]
    return tuple([extents[a] for a in order]), [tuple([s[a] for a in order]) for s in strides]


def _launch(d: Decisions, group: Group) -> Step:
    """The launch of a kernel that materialised nodes share."""
    domain, accesses, nodes = group.domain, group.accesses, [out.node for out in group.outputs]
    em = Emitter(names([out.term for out in group.outputs]))
    strides = [a.strides for a in accesses]
    extents, outer = domain.coalesced_grid(strides)
    if not domain.axes:
        stored = {id(out.access) for out in group.outputs}
        written = [k for k, a in enumerate(accesses) if id(a) in stored]
        extents, outer = _long_last(extents, outer, written)
    lengths, row = domain.coalesced_row(strides)
    point = tuple(em.grid(extents))[: len(extents)]
    em.rows(len(point), lengths)
    em.place(accesses, [o + r for o, r in zip(outer, row, strict=True)])
    inner: list[Output] = []
    for out in group.outputs:
        if domain.axes and d.graph.nodes[out.node].spec.shape == domain.full:
            inner.append(out)
        else:
            em.builder.store(
                em.written(out.access), em.index(out.access, point), em.value(out.term, point)
            )
    if inner:
        em.builder.effect(
            map_loop(0, em.row_length, lambda k: em.stores(inner, (*point, *em.row_point(k))))
        )
    fresh = tuple(f for i in nodes for f in d.fresh(i))
    nbytes = traffic(accesses, domain.outer + domain.row)
    checks = em.checks(d)
    return em.step(extents, fresh, (d.materialised[i] for i in nodes), nbytes, checks)
