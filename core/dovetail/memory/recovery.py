"""Recovery of the caching allocator from an exception at any point: Ctrl-C, a driver's error.

The segments' blocks and their states are the truth: they change in single assignments. Lists, bins
and statistics are rebuilt from them.
"""

from __future__ import annotations

from collections.abc import Collection

from .blocks import FREE, LIVE, WAITING, MemoryBlock, Pool, Segment, merge
from .fast_path import FastPath
from .slow_path import DeferredFrees, Segments


def rebuild(
    fast: FastPath, pools: Collection[Pool], segments: Segments, deferred: DeferredFrees
) -> None:
    """Rebuild lists, bins and statistics from blocks, free unlisted memory. Needs the lock."""
    while fast.freed and fast.freed[0].state != LIVE:
        del fast.freed[0]  # the allocator has it back already
    deferred.entries = [entry for entry in deferred.entries if entry[0].state == WAITING]
    segments.free_unlisted()
    for pool in pools:
        pool.small.clear()
        pool.large.clear()
        for blocks in pool.bins.values():
            blocks.clear()
    for segment in segments.by_serial.values():
        _list_free_blocks(segment)
    for pool in pools:
        pool.small.sort()
        pool.large.sort()
    segments.recount()
    live = [b.size for s in segments.by_serial.values() for b in s.blocks() if b.state == LIVE]
    fast.live_bytes = sum(live)
    fast.peak_bytes = max(fast.peak_bytes, fast.live_bytes)
    fast.allocations = fast.frees + len(live)


def _list_free_blocks(segment: Segment) -> None:
    """Merge neighbours that are neither live nor waiting; append them, unsorted, to free lists."""
    block: MemoryBlock | None = segment.first
    while block is not None:
        if block.state < LIVE:
            while block.next is not None and block.next.state < LIVE:
                merge(block, block.next)
            block.state = FREE
            segment.pool.free_list(segment).append((block.size, block.serial, block))
        if block.next is not None:
            block.next.prev = block
        block = block.next
