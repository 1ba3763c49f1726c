"""The algorithms of collective operations on large flat arrays, in segments.

Each pair of ranks exchanges its part directly, and a reduction adds in the order of the ranks: so
each rank sends and receives as many bytes as in a ring, and the order of additions depends on the
number of ranks alone. A segment is added while the next ones are on their way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from dovetail.extend import Request

from .communicator import REDUCED_TAG, Communicator
from .host_buffers import Buffer, Reduction

SEGMENT_BYTES = 1 << 20
WINDOW = 4  # segments of a rank that may be on their way to a buffer of their own


def array_like(like: Buffer, content: bytes) -> Buffer:
    """Return bytes as an array of the dtype of another one."""
    return np.frombuffer(content, like.dtype)


def reduce_in_order(pieces: Sequence[Buffer], reduction: Reduction, out: Buffer) -> None:
    """Write the reduction of one array of each rank, in the order of the ranks, into `out`.

    `out` may be no part, or the first one.
    """
    if len(pieces) == 1:
        out[:] = pieces[0]
    else:
        reduction.combine(pieces[0], pieces[1], out)
        for part in pieces[2:]:
            reduction.combine(out, part, out)
    reduction.finish(out, len(pieces))


def segments(size: int, itemsize: int) -> list[slice]:
    """Return the segments of an array of `size` elements."""
    step = max(1, SEGMENT_BYTES // itemsize)
    return [slice(k, min(k + step, size)) for k in range(0, size, step)]


def chunks(buffer: Buffer, size: int) -> list[Buffer]:
    """Return views of `size` parts of a flat array, of nearly equal lengths."""
    return np.array_split(buffer, size)


def broadcast(communicator: Communicator, buffer: Buffer, root: int) -> None:
    """Send the array of the rank `root` to all ranks, along a binomial tree."""
    size, position = communicator.size, (communicator.rank - root) % communicator.size
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
    pieces = [buffer[s] for s in segments(buffer.size, buffer.itemsize)]
    receives = [] if parent is None else [communicator.start_receive(p, parent) for p in pieces]
    for k, part in enumerate(pieces):
        if parent is not None:
            communicator.complete(receives[k], parent)
        sends += [(communicator.start_send(part, child), child) for child in children]
    complete_all(communicator, sends)


def send(communicator: Communicator, own: Buffer, to: int) -> None:
    """Send an array to a rank, and wait."""
    communicator.complete(communicator.start_send(own, to), to)


def receive(communicator: Communicator, out: Buffer, source: int) -> None:
    """Receive an array of a rank, and wait."""
    communicator.complete(communicator.start_receive(out, source), source)


def all_gather(communicator: Communicator, own: Buffer, results: Sequence[Buffer]) -> None:
    """Write the array of each rank into one of the results."""
    all_to_all(communicator, [own] * communicator.size, results)


def all_to_all(
    communicator: Communicator, buffers: Sequence[Buffer], results: Sequence[Buffer]
) -> None:
    """Send one array to each rank, and write that of each rank into one of the results.

    Arrays without elements are not sent.
    """
    senders = [p for p in communicator.peers if results[p].size]
    receivers = [p for p in communicator.peers if buffers[p].size]
    receives = [(communicator.start_receive(results[p], p), p) for p in senders]
    sends = [(communicator.start_send(buffers[p], p), p) for p in receivers]
    results[communicator.rank][:] = buffers[communicator.rank]
    complete_all(communicator, receives)
    complete_all(communicator, sends)


def gather(communicator: Communicator, own: Buffer, results: Sequence[Buffer]) -> None:
    """Write the array of each rank into one of the results, on the rank that gets them."""
    receives = [(communicator.start_receive(results[p], p), p) for p in communicator.peers]
    results[communicator.rank][:] = own
    complete_all(communicator, receives)


def scatter(communicator: Communicator, buffers: Sequence[Buffer]) -> None:
    """Send one array to each rank, from the rank that has them."""
    complete_all(
        communicator, [(communicator.start_send(buffers[p], p), p) for p in communicator.peers]
    )


def reduce_scatter(
    communicator: Communicator, buffers: Sequence[Buffer], reduction: Reduction, out: Buffer
) -> None:
    """Write the reduction of the arrays for this rank into `out`; buffer r is for rank r."""
    sends = []
    for p in communicator.peers:
        pieces = segments(buffers[p].size, buffers[p].itemsize)
        sends += [(communicator.start_send(buffers[p][s], p), p) for s in pieces]
    for _ in reduce_segments(communicator, buffers[communicator.rank], reduction, out):
        pass
    complete_all(communicator, sends)


def all_reduce(communicator: Communicator, own: Buffer, reduction: Reduction, out: Buffer) -> None:
    """Write the reduction of one array of each rank into `out`.

    Rank r reduces the r-th chunk, and sends each segment to all others as soon as it is finished.
    """
    mine, results = chunks(own, communicator.size), chunks(out, communicator.size)
    receives, sends = [], []
    for p in communicator.peers:
        pieces = segments(results[p].size, out.itemsize)
        receives += [(communicator.start_receive(results[p][s], p, REDUCED_TAG), p) for s in pieces]
        sends += [(communicator.start_send(mine[p][s], p), p) for s in pieces]
    reduced = results[communicator.rank]
    for s in reduce_segments(communicator, mine[communicator.rank], reduction, reduced):
        sends += [
            (communicator.start_send(reduced[s], p, REDUCED_TAG), p) for p in communicator.peers
        ]
    complete_all(communicator, receives)
    complete_all(communicator, sends)


def reduce_segments(
    communicator: Communicator, own: Buffer, reduction: Reduction, out: Buffer
) -> Iterator[slice]:
    """Receive the segments of all ranks, write their reduction into `out`, and yield each one."""
    pieces = segments(own.size, own.itemsize)
    longest = pieces[0].stop if pieces else 0
    memory = {p: np.empty((WINDOW, longest), own.dtype) for p in communicator.peers}

    def start(k: int) -> dict[int, tuple[Request, Buffer]]:
        """Start to receive segment `k` of all ranks."""
        length = pieces[k].stop - pieces[k].start
        buffers = {p: memory[p][k % WINDOW, :length] for p in communicator.peers}
        return {p: (communicator.start_receive(b, p), b) for p, b in buffers.items()}

    pending = deque(map(start, range(min(WINDOW, len(pieces)))))
    for k, s in enumerate(pieces):
        values = {communicator.rank: own[s]}
        for p, (request, buffer) in pending.popleft().items():
            communicator.complete(request, p)
            values[p] = buffer
        reduce_in_order([values[r] for r in range(communicator.size)], reduction, out[s])
        if k + WINDOW < len(pieces):
            pending.append(start(k + WINDOW))
        yield s


def complete_all(communicator: Communicator, requests: Sequence[tuple[Request, int]]) -> None:
    """Wait for requests to or from ranks. Raises: WorkerError."""
    for request, p in requests:
        communicator.complete(request, p)
