"""The algorithms of collective operations on large flat arrays, in segments.

Each pair of ranks exchanges its part directly, and a reduction adds in the order of the ranks: so
each rank sends and receives as many bytes as in a ring, and the order of additions depends on the
number of ranks alone. A segment is added while the next ones are on their way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dovetail.extend import Request

from .host_buffers import Buffer, Reduction

if TYPE_CHECKING:
    from .group import ProcessGroup

DATA_TAG, REDUCED_TAG = 2, 3  # the transport's tags; 0 and 1 are those of `group`
SEGMENT_BYTES = 1 << 20
WINDOW = 4  # segments of a rank that may be on their way to a buffer of their own


def array_like(like: Buffer, content: bytes) -> Buffer:
    """Return bytes as an array of the dtype of another one."""
    return np.frombuffer(content, like.dtype)


def reduce_in_order(parts: Sequence[Buffer], reduction: Reduction, out: Buffer) -> None:
    """Write the reduction of one array of each rank, in the order of the ranks, into `out`.

    `out` may be no part, or the first one.
    """
    if len(parts) == 1:
        out[:] = parts[0]
    else:
        reduction.combine(parts[0], parts[1], out)
        for part in parts[2:]:
            reduction.combine(out, part, out)
    reduction.finish(out, len(parts))


def segments(size: int, itemsize: int) -> list[slice]:
    """Return the segments of an array of `size` elements."""
    step = max(1, SEGMENT_BYTES // itemsize)
    return [slice(k, min(k + step, size)) for k in range(0, size, step)]


def chunks(buffer: Buffer, size: int) -> list[Buffer]:
    """Return views of `size` parts of a flat array, of nearly equal lengths."""
    return np.array_split(buffer, size)


def broadcast(group: ProcessGroup, buffer: Buffer, root: int) -> None:
    """Send the array of the rank `root` to all ranks, along a binomial tree."""
    size, position = group.size, (group.rank - root) % group.size
    mask = 1
    while mask < size and not position & mask:
        mask *= 2
    parent = None if position == 0 else (position - mask + root) % size
    children = []
    mask //= 2
    while mask:
        if position + mask < size:
            children.append((position + mask + root) % size)
        mask //= 2
    sends: list[tuple[Request, int]] = []
    parts = [buffer[s] for s in segments(buffer.size, buffer.itemsize)]
    receives = [] if parent is None else [group.start_receive(p, parent) for p in parts]
    for k, part in enumerate(parts):
        if parent is not None:
            group.complete(receives[k], parent)
        sends += [(group.start_send(part, child), child) for child in children]
    complete_all(group, sends)


def all_gather(group: ProcessGroup, own: Buffer, results: Sequence[Buffer]) -> None:
    """Write the array of each rank into one of the results."""
    receives = [(group.start_receive(results[p], p), p) for p in group.peers]
    sends = [(group.start_send(own, p), p) for p in group.peers]
    results[group.rank][:] = own
    complete_all(group, receives)
    complete_all(group, sends)


def gather(group: ProcessGroup, own: Buffer, results: Sequence[Buffer]) -> None:
    """Write the array of each rank into one of the results, on the rank that gets them."""
    receives = [(group.start_receive(results[p], p), p) for p in group.peers]
    results[group.rank][:] = own
    complete_all(group, receives)


def scatter(group: ProcessGroup, buffers: Sequence[Buffer]) -> None:
    """Send one array to each rank, from the rank that has them."""
    complete_all(group, [(group.start_send(buffers[p], p), p) for p in group.peers])


def reduce_scatter(
    group: ProcessGroup, buffers: Sequence[Buffer], reduction: Reduction, out: Buffer
) -> None:
    """Write the reduction of the arrays for this rank into `out`; buffer r is for rank r."""
    sends = []
    for p in group.peers:
        parts = segments(buffers[p].size, buffers[p].itemsize)
        sends += [(group.start_send(buffers[p][s], p), p) for s in parts]
    for _ in reduce_segments(group, buffers[group.rank], reduction, out):
        pass
    complete_all(group, sends)


def all_reduce(group: ProcessGroup, own: Buffer, reduction: Reduction, out: Buffer) -> None:
    """Write the reduction of one array of each rank into `out`.

    Rank r reduces the r-th chunk, and sends each segment to all others as soon as it is finished.
    """
    mine, results = chunks(own, group.size), chunks(out, group.size)
    receives, sends = [], []
    for p in group.peers:
        parts = segments(results[p].size, out.itemsize)
        receives += [(group.start_receive(results[p][s], p, REDUCED_TAG), p) for s in parts]
        sends += [(group.start_send(mine[p][s], p), p) for s in parts]
    reduced = results[group.rank]
    for s in reduce_segments(group, mine[group.rank], reduction, reduced):
        sends += [(group.start_send(reduced[s], p, REDUCED_TAG), p) for p in group.peers]
    complete_all(group, receives)
    complete_all(group, sends)


def reduce_segments(
    group: ProcessGroup, own: Buffer, reduction: Reduction, out: Buffer
) -> Iterator[slice]:
    """Receive the segments of all ranks, write their reduction into `out`, and yield each one."""
    parts = segments(own.size, own.itemsize)
    longest = parts[0].stop if parts else 0
    memory = {p: np.empty((WINDOW, longest), own.dtype) for p in group.peers}

    def start(k: int) -> dict[int, tuple[Request, Buffer]]:
        """Start to receive segment `k` of all ranks."""
        length = parts[k].stop - parts[k].start
        buffers = {p: memory[p][k % WINDOW, :length] for p in group.peers}
        return {p: (group.start_receive(b, p), b) for p, b in buffers.items()}

    pending = deque(map(start, range(min(WINDOW, len(parts)))))
    for k, s in enumerate(parts):
        values = {group.rank: own[s]}
        for p, (request, buffer) in pending.popleft().items():
            group.complete(request, p)
            values[p] = buffer
        reduce_in_order([values[r] for r in range(group.size)], reduction, out[s])
        if k + WINDOW < len(parts):
            pending.append(start(k + WINDOW))
        yield s


def complete_all(group: ProcessGroup, requests: Sequence[tuple[Request, int]]) -> None:
    """Wait for requests to or from ranks. Raises: WorkerError."""
    for request, p in requests:
        group.complete(request, p)
