"""Few, long rows: each chunk of CHUNK elements is reduced by its own point, then those results.

The pass `split` says of which reductions; the launches are built when all kernels are known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import layout as lay
from ..dtypes import bool_, int64
from ..loops.language import CHUNK, Value, const, load, reduce_loop, where
from .cost import ABREAST, ROWS_BUSY, SMALL_ROWS
from .decisions import Decisions
from .domain import Domain
from .emitter import Emitter, names, traffic
from .groups import Access, Group, SplitRows, Term
from .plan import Call, Step
from .reasons import Kind, Reason


def split(d: Decisions) -> None:
    """Decides which reductions' rows are cut into chunks."""
    d.split = {rows for rows in d.graph.rows.values() if _is_worth_it(rows, d.graph.concurrency)}


def _is_worth_it(rows: Domain, concurrency: int) -> bool:
    """Whether rows are so few and long that they keep the device busy only in parts."""
    n, count = math.prod(rows.row), math.prod(rows.outer)
    if count and rows.full and len(rows.full) - 1 not in rows.axes:  # columns
        count = -(-count // min(ABREAST, rows.full[-1]))
    return n > CHUNK and count < concurrency * ROWS_BUSY and n * count > SMALL_ROWS


def partial_results(term: Term) -> int:
    """How many values a chunk of a reduction gives."""
    assert term.op is not None
    return len(term.op.before(const(0, term.casts[0].compute), const(0, int64)))


def launches_in_chunks(d: Decisions, kernel: SplitRows) -> list[Step | Call]:
    """One launch for the chunks, and one for their results; more between where those are many."""
    steps: list[Step | Call] = []
    made, chunks = _reduce_chunks(d, kernel.group, kernel.output.term, steps)
    rows = math.prod(kernel.group.domain.outer)
    while chunks > CHUNK:
        made, chunks = _fewer_chunks(d, kernel.output.term, made, chunks, rows, steps)
    return [*steps, _gather_chunks(d, kernel, made, chunks)]


def _reduce_chunks(
    d: Decisions, group: Group, term: Term, steps: list[Step | Call]
) -> tuple[list[Access], int]:
    """The launch in which every chunk is reduced; where its results are, and how many."""
    domain, accesses = group.domain, group.accesses
    n, rows = math.prod(domain.row), math.prod(domain.outer)
    chunks = -(-n // CHUNK)
    em = Emitter(names([term]) + "_chunks")
    along = lay.contiguous_strides(domain.outer) + (0,) * len(domain.row)
    parts = Access(-2, bool_, along, 0)
    strides = [a.strides for a in (*accesses, parts)]
    extents, outer = domain.coalesced_grid(strides)
    lengths, row = domain.coalesced_row(strides)
    chunk, *point = em.grid((chunks, *extents))
    em.rows(len(point), lengths)
    em.place((*accesses, parts), [o + r for o, r in zip(outer, row, strict=True)])
    start = chunk * CHUNK
    stop = where(start + CHUNK < em.row_length, start + CHUNK, em.row_length)
    assert term.op is not None
    results = reduce_loop(
        term.op.combine, start, stop, lambda k: em.combined(term, (*point, *em.row_point(k)), k)
    )
    at = em.index(parts, point) + (chunk if rows == 1 else chunk * em.integer("s", rows))
    made = _stored(d, em, results, at)
    fresh = tuple((p.slot, chunks * rows * p.dtype.itemsize) for p in made)
    nbytes = traffic(accesses, domain.outer + domain.row)
    steps.append(em.step((chunks, *extents), fresh, (Reason(Kind.CHUNKS),), nbytes))
    return made, chunks


def _stored(d: Decisions, em: Emitter, results: Sequence[Value], at: Value) -> list[Access]:
    """Stores what a chunk gives into new memory."""
    made: list[Access] = []
    for r in results:
        made.append(Access(d.new_slot(), r.dtype, (), 0))
        em.builder.store(em.written(made[-1]), at, r)
    return made


def _fewer_chunks(
    d: Decisions, term: Term, made: Sequence[Access], chunks: int, rows: int,
    steps: list[Step | Call],
) -> tuple[list[Access], int]:  # fmt: skip
    """A launch in between, for more chunks than make a chunk: their results are reduced in chunks.
    By one grid point, a quarter of a billion elements would take as long here as the first launch.
    """
    em, fewer = Emitter(names([term]) + "_chunks_of_chunks"), -(-chunks // CHUNK)
    grid = (fewer,) if rows == 1 else (fewer, rows)
    chunk, *point = em.grid(grid)
    count, start = em.integer("m", chunks), chunk * CHUNK
    stop = where(start + CHUNK < count, start + CHUNK, count)
    width = None if rows == 1 else em.integer("s", rows)

    def at(k: Value) -> Value:
        return k if width is None else k * width + point[0]

    assert term.op is not None
    results = reduce_loop(
        term.op.combine,
        start,
        stop,
        lambda k: [load(em.buffer(p.slot, p.dtype, 0, "r"), at(k)) for p in made],
    )
    left = _stored(d, em, results, at(chunk))
    fresh = tuple((p.slot, fewer * rows * p.dtype.itemsize) for p in left)
    nbytes = sum((chunks + fewer) * rows * p.dtype.itemsize for p in left)
    steps.append(em.step(grid, fresh, (Reason(Kind.CHUNKS_OF_CHUNKS),), nbytes))
    return left, fewer


def _gather_chunks(d: Decisions, kernel: SplitRows, made: Sequence[Access], chunks: int) -> Step:
    """The last launch: the chunks' results are reduced by the same rule."""
    domain, (i, term, out) = kernel.group.domain, kernel.output
    rows = math.prod(domain.outer)
    em = Emitter(names([term]) + "_of_chunks")
    parts = Access(-2, bool_, lay.contiguous_strides(domain.outer), 0)
    extents, outer = lay.coalesce(domain.outer, [out.strides[: len(domain.outer)], parts.strides])
    point = tuple(em.grid(extents))[: len(extents)]
    em.place((out, parts), outer)
    em.whole_row(math.prod(domain.row))
    here, step = em.index(parts, point), None if rows == 1 else em.integer("s", rows)

    def partial(k: Value) -> list[Value]:
        at = here + (k if step is None else k * step)
        return [load(em.buffer(p.slot, p.dtype, 0, "r"), at) for p in made]

    assert term.op is not None
    results = reduce_loop(term.op.combine, 0, em.integer("m", chunks), partial)
    em.builder.store(em.written(out), em.index(out, point), em.finished(term, results))
    nbytes = sum(chunks * rows * p.dtype.itemsize for p in made)
    return em.step(extents, d.fresh(i), (d.materialised[i],), nbytes)
