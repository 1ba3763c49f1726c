"""The pass `emit`, which makes launches of all kernels."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.language import map_loop
from ..layout import Shape
from .decisions import Decisions
from .groups import FusionGroup, Output, OwnKernels, PlannedKernel
from .kernel_emitter import KernelEmitter, count_bytes, kernel_name
from .kernel_templates import GroupStructure
from .kernels_of_ops import build_op_launches
from .plan import PlannedCall, PlannedLaunch
from .split_rows import build_chunk_launches

# A last axis up to the first extent is exchanged for one of at least the second.
SHORT_EXTENT_MAX, LONG_EXTENT_MIN = 4, 64


def emit(decisions: Decisions) -> None:
    """Build the launches of all kernels, in order, and store them in `decisions.steps`."""
    decisions.steps = [
        step for kernel in decisions.kernels for step in _build_launches(decisions, kernel)
    ]


def _build_launches(
    decisions: Decisions, kernel: PlannedKernel
) -> list[PlannedLaunch | PlannedCall]:
    """Build the launches of one kernel, by its kind."""
    if isinstance(kernel, FusionGroup):
        return [_build_launch(decisions, kernel)]
    if isinstance(kernel, OwnKernels):
        return build_op_launches(decisions, kernel)
    return build_chunk_launches(decisions, kernel)


def _move_long_axis_last(
    extents: Shape, strides: Sequence[Shape], written: Sequence[int]
) -> tuple[Shape, Sequence[Shape]]:
    """Return the axes of a grid with a long one last, if the last one is very short.

    Otherwise vectors, or items that work together, would be mostly idle: as of points by three
    coordinates. Of several long axes the last becomes the one with the smallest stride in the
    buffers that are `written`: of 256 outer products of 256 with 4 that of neighbouring rows, not
    that from product to product.
    """
    if len(extents) < 2 or extents[-1] > SHORT_EXTENT_MAX or max(extents) < LONG_EXTENT_MIN:
        return extents, strides

    def distance(axis: int) -> tuple[int, int]:
        """Return the sort key of an axis: its largest written stride, then the longer axis."""
        return max([abs(strides[k][axis]) for k in written], default=0), -extents[axis]

    long = min((axis for axis, n in enumerate(extents) if n >= LONG_EXTENT_MIN), key=distance)
    order = [axis for axis in range(len(extents)) if axis != long] + [long]
    return tuple([extents[a] for a in order]), [tuple([s[a] for a in order]) for s in strides]


def _build_launch(decisions: Decisions, group: FusionGroup) -> PlannedLaunch:
    """Build the launch of a kernel that materialised nodes share; equal groups share a kernel."""
    domain, nodes = group.domain, [out.node for out in group.outputs]
    shapes = [decisions.graph.nodes[i].spec.shape for i in nodes]
    in_rows = [bool(domain.axes) and shape == domain.full for shape in shapes]
    structure = GroupStructure(group, in_rows)
    key = structure.key
    template = None if key is None else decisions.kernel_templates.get(key)
    fresh = tuple(f for i in nodes for f in decisions.allocations_of(i))
    reasons = [decisions.materialised[i] for i in nodes]
    nbytes = count_bytes(group.accesses, domain.outer + domain.row)
    if template is None:
        em, grid = _emit_kernel(group, in_rows)
        launch = em.build_step(grid, fresh, reasons, nbytes, em.emit_checks(decisions))
        if key is not None:
            decisions.kernel_templates[key] = structure.create_template(launch)
        return launch
    buffers, scalars = structure.arguments(template)
    why = tuple(dict.fromkeys(reasons))
    kernel, ints, grid = template.kernel, template.ints, template.grid
    return PlannedLaunch(kernel, buffers, fresh, ints, scalars, grid, why, nbytes)


def _emit_kernel(group: FusionGroup, in_rows: Sequence[bool]) -> tuple[KernelEmitter, Shape]:
    """Emit a group's kernel; return the emitter and the grid's extents.

    in_rows: for each output, True if it is stored along the rows.
    """
    domain, accesses = group.domain, group.accesses
    em = KernelEmitter(kernel_name([out.term for out in group.outputs]))
    strides = [a.strides for a in accesses]
    extents, outer = domain.coalesce_grid(strides)
    if not domain.axes:
        stored = {id(out.access) for out in group.outputs}
        written = [k for k, a in enumerate(accesses) if id(a) in stored]
        extents, outer = _move_long_axis_last(extents, outer, written)
    lengths, row = domain.coalesce_row(strides)
    point = tuple(em.declare_grid(extents))[: len(extents)]
    em.declare_row(len(point), lengths)
    em.declare_strides(accesses, [o + r for o, r in zip(outer, row, strict=True)])
    inner: list[Output] = []
    for out, in_row in zip(group.outputs, in_rows, strict=True):
        if in_row:
            inner.append(out)
        else:
            em.builder.store(
                em.output_buffer(out.access), em.index(out.access, point), em.value(out.term, point)
            )
    if inner:
        em.builder.effect(
            map_loop(0, em.row_length, lambda k: em.build_stores(inner, (*point, *em.row_point(k))))
        )
    return em, extents
