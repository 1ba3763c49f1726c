"""Few, long rows are reduced in chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import layout as lay
from ..dtypes import bool_
from ..kernel.language import CHUNK, Value, load, reduce_loop, where
from .decisions import Draft
from .emit import Emitter, _names, _traffic
from .plan import Call, Overlap, Step
from .terms import Access, Term

if TYPE_CHECKING:
    from .placing import Planner


def _split(planner: Planner, draft: Draft) -> list[Step | Call]:
    """Two launches for few, long rows: every chunk of CHUNK elements is reduced by its own grid
    point, then those.
    """
    i, group, domain = draft.node, draft.group, draft.group.domain
    path = domain.path(planner.nodes[i].spec.shape)
    assert path is not None
    term, accesses = planner.term(i, path, draft), group.accesses
    if (
        planner.target is not None
        and i == planner.roots[0]
        and any(a.slot in planner.target.overlaps for a in accesses)
    ):
        raise Overlap
    cut, n, rows = len(domain.outer), math.prod(domain.row), math.prod(domain.outer)
    chunks = -(-n // CHUNK)
    em = Emitter(_names([term]) + "_chunks")
    parts = Access(
        planner.slots, bool_, lay.contiguous_strides(domain.outer) + (0,) * len(domain.row), 0
    )
    extents, outer = lay.coalesce(domain.outer, [a.strides[:cut] for a in (*accesses, parts)])
    lengths, row = lay.coalesce(domain.row, [a.strides[cut:] for a in (*accesses, parts)])
    if len(lengths) > 1:
        planner.crooked.add(domain)
        planner.straighten(group)
    chunk, *point = em.grid((chunks, *extents))
    em.rows(len(point), lengths)
    em.place((*accesses, parts), [o + r for o, r in zip(outer, row, strict=True)])
    start = chunk * CHUNK
    stop = where(start + CHUNK < em.row_length, start + CHUNK, em.row_length)
    assert term.op is not None
    results = reduce_loop(
        term.op.combine, start, stop, lambda k: em.combined(term, (*point, *em.row_point(k)), k)
    )
    where_ = em.index(parts, point) + (chunk if rows == 1 else chunk * em.integer("s", rows))
    made: list[Access] = []
    for r in results:
        made.append(Access(planner.slots, r.dtype, (), 0))
        planner.slots += 1
        em.builder.store(em.written(made[-1]), where_, r)
    em.nbytes = _traffic(accesses, domain.outer + domain.row)
    fresh = tuple((p.slot, chunks * rows * p.dtype.itemsize) for p in made)
    first = em.step(
        (chunks, *extents), fresh, "few, long rows: each chunk of rows is reduced by itself"
    )
    steps: list[Step | Call] = [first]
    while chunks > CHUNK:
        made, chunks = _fewer_chunks(planner, term, made, chunks, rows, steps)
    return [*steps, _gather_chunks(planner, draft, term, path, made, chunks)]


def _fewer_chunks(
    planner: Planner, term: Term, made: Sequence[Access], chunks: int, rows: int, steps: Any
) -> tuple[list[Access], int]:
    """A launch in between, for more chunks than make a chunk: their results are reduced in chunks.
    By one grid point, a quarter of a billion elements would take as long here as the first launch.
    """
    em, fewer = Emitter(_names([term]) + "_chunks_of_chunks"), -(-chunks // CHUNK)
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
    left: list[Access] = []
    for r in results:
        left.append(Access(planner.slots, r.dtype, (), 0))
        planner.slots += 1
        em.builder.store(em.written(left[-1]), at(chunk), r)
    em.nbytes = sum((chunks + fewer) * rows * p.dtype.itemsize for p in left)
    fresh = tuple((p.slot, fewer * rows * p.dtype.itemsize) for p in left)
    steps.append(em.step(grid, fresh, "chunks of chunks are reduced by themselves"))
    return left, fewer


def _gather_chunks(
    planner: Planner, draft: Draft, term: Term, path: Any, made: Sequence[Access], chunks: int
) -> Step:
    """The second launch: the chunks' results are reduced by the same rule."""
    i, domain, cut = draft.node, draft.group.domain, len(draft.group.domain.outer)
    rows = math.prod(domain.outer)
    em = Emitter(_names([term]) + "_of_chunks")
    out = planner._out(i, path, draft)
    parts = Access(-2, bool_, lay.contiguous_strides(domain.outer), 0)
    extents, outer = lay.coalesce(domain.outer, [out.strides[:cut], parts.strides])
    point = tuple(em.grid(extents))[: len(extents)]
    em.place((out, parts), outer)
    em.row_length = em.integer("m", math.prod(domain.row))
    here, step = em.index(parts, point), None if rows == 1 else em.integer("s", rows)

    def partial(k: Value) -> list[Value]:
        at = here + (k if step is None else k * step)
        return [load(em.buffer(p.slot, p.dtype, 0, "r"), at) for p in made]

    assert term.op is not None
    results = reduce_loop(term.op.combine, 0, em.integer("m", chunks), partial)
    em.builder.store(em.written(out), em.index(out, point), em.finished(term, results))
    em.nbytes = sum(chunks * rows * p.dtype.itemsize for p in made)
    return em.step(extents, planner.fresh(i), planner.why[i])
