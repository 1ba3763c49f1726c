"""Reductions of few, long rows, in chunks.

A point reduces each chunk of CHUNK elements, then a launch reduces the chunks' results.

The pass `split_reductions` chooses the reductions; the launches are built when all kernels are
known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import layout as lay
from ..dtypes import bool_, int64
from ..ir.language import CHUNK, Value, const, load, reduce_loop, where
from .cost import COLUMNS_PER_ROW, keeps_device_idle
from .decisions import Decisions
from .domain import Domain
from .groups import Access, FusionGroup, SplitRows, Term
from .kernel_emitter import KernelEmitter, count_bytes, kernel_name
from .plan import PlannedCall, PlannedLaunch
from .reasons import Reason, ReasonKind


def split_reductions(decisions: Decisions) -> None:
    """Decide which reductions' rows are cut into chunks: `decisions.split_domains`."""
    all_rows = decisions.graph.rows.values()
    decisions.split_domains = {
        rows for rows in all_rows if _keeps_device_idle(rows, decisions.graph.concurrency)
    }


def _keeps_device_idle(rows: Domain, concurrency: int) -> bool:
    """Return True if rows are so few and long that they occupy only a part of the device."""
    n, count = math.prod(rows.row), math.prod(rows.outer)
    if count and rows.full and len(rows.full) - 1 not in rows.axes:  # columns
        count = -(-count // min(COLUMNS_PER_ROW, rows.full[-1]))
    return n > CHUNK and keeps_device_idle(count, n, concurrency)


def count_partial_results(term: Term) -> int:
    """Return the number of values that a chunk of a reduction gives."""
    assert term.op is not None
    return len(term.op.before(const(0, term.casts[0].compute), const(0, int64)))


def build_chunk_launches(
    decisions: Decisions, kernel: SplitRows
) -> list[PlannedLaunch | PlannedCall]:
    """Build the launch over chunks, further ones for many chunks, and the last one."""
    steps: list[PlannedLaunch | PlannedCall] = []
    partials, chunks = _reduce_chunks(decisions, kernel.group, kernel.output.term, steps)
    rows = math.prod(kernel.group.domain.outer)
    while chunks > CHUNK:
        partials, chunks = _reduce_partials(
            decisions, kernel.output.term, partials, chunks, rows, steps
        )
    return [*steps, _combine_partials(decisions, kernel, partials, chunks)]


def _reduce_chunks(
    decisions: Decisions, group: FusionGroup, term: Term, steps: list[PlannedLaunch | PlannedCall]
) -> tuple[list[Access], int]:
    """Append the launch that reduces every chunk; return its results and the number of chunks."""
    domain, accesses = group.domain, group.accesses
    n, rows = math.prod(domain.row), math.prod(domain.outer)
    chunks = -(-n // CHUNK)
    em = KernelEmitter(kernel_name([term]) + "_chunks")
    along = lay.row_major_strides(domain.outer) + (0,) * len(domain.row)
    chunk_access = Access(-2, bool_, along, 0)
    strides = [a.strides for a in (*accesses, chunk_access)]
    extents, outer = domain.coalesce_grid(strides)
    lengths, row = domain.coalesce_row(strides)
    chunk, *point = em.declare_grid((chunks, *extents))
    em.declare_row(len(point), lengths)
    em.declare_strides((*accesses, chunk_access), [o + r for o, r in zip(outer, row, strict=True)])
    start = chunk * CHUNK
    stop = where(start + CHUNK < em.row_length, start + CHUNK, em.row_length)
    assert term.op is not None
    results = reduce_loop(
        term.op.combine,
        start,
        stop,
        lambda k: em.value_to_combine(term, (*point, *em.row_point(k)), k),
    )
    at = em.index(chunk_access, point) + (chunk if rows == 1 else chunk * em.add_integer("s", rows))
    partials = _store_partials(decisions, em, results, at)
    fresh = tuple((p.slot, chunks * rows * p.dtype.itemsize) for p in partials)
    nbytes = count_bytes(accesses, domain.outer + domain.row)
    steps.append(em.build_step((chunks, *extents), fresh, (Reason(ReasonKind.CHUNKS),), nbytes))
    return partials, chunks


def _store_partials(
    decisions: Decisions, em: KernelEmitter, results: Sequence[Value], index: Value
) -> list[Access]:
    """Add stores of a chunk's results to new slots; return their accesses."""
    partials: list[Access] = []
    for r in results:
        partials.append(Access(decisions.new_slot(), r.dtype, (), 0))
        em.builder.store(em.output_buffer(partials[-1]), index, r)
    return partials


def _reduce_partials(
    decisions: Decisions,
    term: Term,
    partials: Sequence[Access],
    chunks: int,
    rows: int,
    steps: list[PlannedLaunch | PlannedCall],
) -> tuple[list[Access], int]:
    """Append a launch that reduces partial results in chunks; return results and their number.

    If one grid point reduced them all, a quarter of a billion elements would take as long here as
    in the first launch.
    """
    em, fewer = KernelEmitter(kernel_name([term]) + "_chunks_of_chunks"), -(-chunks // CHUNK)
    grid = (fewer,) if rows == 1 else (fewer, rows)
    chunk, *point = em.declare_grid(grid)
    count, start = em.add_integer("m", chunks), chunk * CHUNK
    stop = where(start + CHUNK < count, start + CHUNK, count)
    width = None if rows == 1 else em.add_integer("s", rows)

    def at(k: Value) -> Value:
        """Return the index of partial result `k` at the grid point."""
        return k if width is None else k * width + point[0]

    assert term.op is not None
    results = reduce_loop(
        term.op.combine,
        start,
        stop,
        lambda k: [load(em.buffer(p.slot, p.dtype, 0, "r"), at(k)) for p in partials],
    )
    fewer_partials = _store_partials(decisions, em, results, at(chunk))
    fresh = tuple((p.slot, fewer * rows * p.dtype.itemsize) for p in fewer_partials)
    nbytes = sum((chunks + fewer) * rows * p.dtype.itemsize for p in fewer_partials)
    steps.append(em.build_step(grid, fresh, (Reason(ReasonKind.CHUNKS_OF_CHUNKS),), nbytes))
    return fewer_partials, fewer


def _combine_partials(
    decisions: Decisions, kernel: SplitRows, partials: Sequence[Access], chunks: int
) -> PlannedLaunch:
    """Build the last launch, which reduces the chunks' results and stores the output."""
    domain, (i, term, out) = kernel.group.domain, kernel.output
    rows = math.prod(domain.outer)
    em = KernelEmitter(kernel_name([term]) + "_of_chunks")
    row_access = Access(-2, bool_, lay.row_major_strides(domain.outer), 0)
    extents, outer = lay.coalesce(
        domain.outer, [out.strides[: len(domain.outer)], row_access.strides]
    )
    point = tuple(em.declare_grid(extents))[: len(extents)]
    em.declare_strides((out, row_access), outer)
    em.declare_row_length(math.prod(domain.row))
    here, step = em.index(row_access, point), None if rows == 1 else em.add_integer("s", rows)

    def partial(k: Value) -> list[Value]:
        """Return the loads of partial result `k` from each buffer."""
        at = here + (k if step is None else k * step)
        return [load(em.buffer(p.slot, p.dtype, 0, "r"), at) for p in partials]

    assert term.op is not None
    results = reduce_loop(term.op.combine, 0, em.add_integer("m", chunks), partial)
    em.builder.store(
        em.output_buffer(out), em.index(out, point), em.finish_reduction(term, results)
    )
    nbytes = sum(chunks * rows * p.dtype.itemsize for p in partials)
    return em.build_step(extents, decisions.allocations_of(i), (decisions.materialised[i],), nbytes)
