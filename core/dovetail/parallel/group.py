"""The group of all workers of a program: messages and collective operations between them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import dovetail as dt
from dovetail.extend import Lock, Request, Transport, arguments

from . import collectives
from .agreement import CONTENT_BYTES_MAX, Record, empty_record, unpack
from .communicator import USER_TAG, Communicator, is_complete
from .host_buffers import (
    Buffer,
    Reduction,
    Result,
    Value,
    bytes_of,
    check_value,
    read_buffer,
    spec_of,
)

__all__ = ["MessageRequest", "ProcessGroup"]

TIMEOUT_SECONDS = 300.0  # the default limit of each step of a call
TIMEOUT_SECONDS_MAX = 365 * 86_400
TAG_MAX = (1 << 20) - 1


class ProcessGroup:
    """All workers of a program, each with its `rank` from 0 to `size` - 1.

    Every rank makes the same collective calls in the same order: `barrier`, `broadcast`,
    `all_reduce`, `reduce_scatter`, `all_gather`, `all_to_all`, `gather`, `scatter`. Arguments are
    tensors of any device, which are copied through host memory, or NumPy arrays. Results are new,
    of the same kind, on the same device. Gradients do not flow through messages; they do through
    tensors of `shard`.

    - `transport`: the connection of this worker with the others.
    - `timeout`: the longest time in seconds that a step of a call waits for another rank.

    Raises: ArgumentError for a limit of 0 or less, or above a year. The methods raise WorkerError,
    on every rank, if a rank is lost or too late, raises an error, or makes another call than the
    others. After that, the group cannot be used any more, and each call raises WorkerError.

    >>> import dovetail as dt
    >>> group = dt.parallel.current()
    >>> group.rank, group.size, group.all_reduce(dt.ones(2)).tolist()
    (0, 1, [1.0, 1.0])
    """

    def __init__(self, transport: Transport, timeout: float = TIMEOUT_SECONDS) -> None:
        self.rank, self.size = transport.rank, transport.size
        self.timeout = check_timeout("parallel.ProcessGroup", timeout)
        self._lock = Lock(waited=False)
        self._communicator = Communicator(transport, self.timeout)

    def __repr__(self) -> str:
        return f"<ProcessGroup: rank {self.rank} of {self.size}>"

    # --- collectives
    def barrier(self) -> None:
        """Wait until every rank has called this.

        Raises: WorkerError.
        """
        with self._lock, self._communicator.call():
            self._communicator.agree("barrier()")

    def broadcast(self, tensor: Value, src: int = 0) -> Any:
        """Return the tensor of one rank, on all ranks.

        - `tensor`: a tensor or array, of the same shape and dtype on all ranks; its elements matter
          on the rank `src` only.
        - `src`: the rank whose tensor is returned.

        Raises: WorkerError; ArgumentError, ArgumentTypeError, DTypeError, LayoutError,
        GradientError.
        """
        x = check_value("broadcast", tensor)
        root = self._check_rank("broadcast", src, "src")
        with self._lock, self._communicator.call():
            call = f"broadcast({spec_of(x)}, src={root})"
            own = read_buffer(x) if self.rank == root else None
            result = Result(x)
            small = self._is_small(result.buffer)
            contents = self._communicator.agree(
                call, bytes_of(own) if small and own is not None else b""
            )
            if own is not None:
                result.buffer[:] = own
            elif small:
                bytes_of(result.buffer)[:] = contents[root]
            if not small:
                collectives.broadcast(self._communicator, result.buffer, root)
            return result.value()

    def all_reduce(self, tensor: Value, op: str = "sum", *, name: str = "") -> Any:
        """Return the sum, or another reduction, of the tensors of all ranks, on all ranks.

        They are combined in the order of the ranks, so results have the same bits on all ranks and
        in each run with the same number of ranks. Another number of ranks may change the bits.

        - `tensor`: a tensor or array, of the same shape and dtype on all ranks.
        - `op`: "sum", "prod", "min", "max" or "mean".
        - `name`: the function that errors name, of a caller that makes several such calls.

        Raises: WorkerError; ArgumentError for another `op`, DTypeError for one that the dtype does
        not have, ArgumentTypeError, LayoutError, GradientError.
        """
        x = check_value("all_reduce", tensor)
        reduction = Reduction("all_reduce", op, x)
        with self._lock, self._communicator.call():
            own, result = read_buffer(x), Result(x)
            call = f"{_prefix(name)}all_reduce({spec_of(x)}, op={op!r})"
            if self._is_small(own):
                contents = self._communicator.agree(call, bytes_of(own))
                arrays = [collectives.array_like(own, c) for c in contents]
                collectives.reduce_in_order(arrays, reduction, result.buffer)
            else:
                self._communicator.agree(call)
                collectives.all_reduce(self._communicator, own, reduction, result.buffer)
            return result.value()

    def reduce_scatter(self, tensors: Sequence[Value], op: str = "sum") -> Any:
        """Return the reduction of one tensor of each rank: on rank r that of their r-th tensors.

        - `tensors`: a list of a tensor for each rank, all of the same shape and dtype.
        - `op`: "sum", "prod", "min", "max" or "mean"; see `all_reduce`.

        Raises: WorkerError; ArgumentError for another number of tensors or another `op`, DTypeError
        for one that the dtype does not have, ArgumentTypeError, LayoutError, GradientError.
        """
        xs = self._check_list("reduce_scatter", tensors)
        reduction = Reduction("reduce_scatter", op, xs[0])
        with self._lock, self._communicator.call():
            self._communicator.agree(f"reduce_scatter({self.size} of {spec_of(xs[0])}, op={op!r})")
            result = Result(xs[0])
            buffers = [read_buffer(x) for x in xs]
            collectives.reduce_scatter(self._communicator, buffers, reduction, result.buffer)
            return result.value()

    def all_gather(
        self, tensor: Value, shapes: Sequence[Sequence[int]] | None = None, *, name: str = ""
    ) -> tuple[Any, ...]:
        """Return the tensors of all ranks, in their order, on all ranks.

        - `tensor`: a tensor or array, of the same dtype on all ranks.
        - `shapes`: the shape of each rank's tensor; None if all have that of `tensor`.
        - `name`: the function that errors name; see `all_reduce`.

        Raises: WorkerError; ArgumentError for `shapes` that do not fit, ArgumentTypeError,
        DTypeError, LayoutError, GradientError.
        """
        x = check_value("all_gather", tensor)
        expected = self._check_shapes("all_gather", shapes, x)
        self._require_shape("all_gather", x, expected[self.rank])
        with self._lock, self._communicator.call():
            own, listed = read_buffer(x), " ".join(map(str, map(list, expected)))
            kind = str(spec_of(x)) if shapes is None else f"{x.dtype.name} {listed}"
            call = f"{_prefix(name)}all_gather({kind})"
            results = [Result(x, s) for s in expected]
            buffers = [r.buffer for r in results]
            if all(map(self._is_small, buffers)):
                for buffer, content in zip(
                    buffers, self._communicator.agree(call, bytes_of(own)), strict=True
                ):
                    bytes_of(buffer)[:] = content
            else:
                self._communicator.agree(call)
                collectives.all_gather(self._communicator, own, buffers)
            return tuple([r.value() for r in results])

    def all_to_all(
        self,
        tensors: Sequence[Value],
        shapes: Sequence[Sequence[int]] | None = None,
        *,
        name: str = "",
    ) -> tuple[Any, ...]:
        """Return one tensor of each rank: from rank r its tensor for this rank.

        - `tensors`: a list of a tensor for each rank, all of one dtype, the same on all ranks.
        - `shapes`: the shape of the tensor that each rank sends here; None if all tensors of all
          ranks have one shape.
        - `name`: the function that errors name; see `all_reduce`.

        Raises: WorkerError; ArgumentError for another number of tensors or `shapes` that do not
        fit, ArgumentTypeError, DTypeError, LayoutError, GradientError.
        """
        xs = self._check_list("all_to_all", tensors, same_shape=shapes is None)
        expected = self._check_shapes("all_to_all", shapes, xs[self.rank])
        self._require_shape("all_to_all", xs[self.rank], expected[self.rank])
        with self._lock, self._communicator.call():
            spec = spec_of(xs[0])
            sent = spec if shapes is None else spec.dtype
            self._communicator.agree(f"{_prefix(name)}all_to_all({sent})")
            own, results = [read_buffer(x) for x in xs], [Result(xs[0], s) for s in expected]
            collectives.all_to_all(self._communicator, own, [r.buffer for r in results])
            return tuple([r.value() for r in results])

    def gather(self, tensor: Value, dst: int = 0) -> tuple[Any, ...] | None:
        """Return the tensors of all ranks, in their order, on one rank; None on the others.

        - `tensor`: a tensor or array, of the same shape and dtype on all ranks.
        - `dst`: the rank that gets them.

        Raises: WorkerError; ArgumentError, ArgumentTypeError, DTypeError, LayoutError,
        GradientError.
        """
        x = check_value("gather", tensor)
        root = self._check_rank("gather", dst, "dst")
        with self._lock, self._communicator.call():
            self._communicator.agree(f"gather({spec_of(x)}, dst={root})")
            own = read_buffer(x)
            if self.rank != root:
                collectives.send(self._communicator, own, root)
                return None
            results = [Result(x) for _ in range(self.size)]
            collectives.gather(self._communicator, own, [r.buffer for r in results])
            return tuple([r.value() for r in results])

    def scatter(self, tensors: Sequence[Value] | None = None, src: int = 0) -> Any:
        """Return one tensor of a list that one rank has: on rank r the r-th.

        The result is a tensor on the device of the list's tensors if this rank has one, else on
        the default device.

        - `tensors`: on the rank `src` a list of a tensor for each rank, all of the same shape and
          dtype; None on the others.
        - `src`: the rank that has the list.

        Raises: WorkerError; ArgumentError for another number of tensors, ArgumentTypeError,
        DTypeError, LayoutError, GradientError.
        """
        root = self._check_rank("scatter", src, "src")
        if self.rank == root and tensors is None:
            raise dt.ArgumentError(
                f"scatter: tensors must have {self.size} tensors on the rank src={root}, got None"
            )
        xs = None if self.rank != root or tensors is None else self._check_list("scatter", tensors)
        with self._lock, self._communicator.call():
            content = b"" if xs is None else json.dumps(spec_of(xs[0])).encode()
            contents = self._communicator.agree(f"scatter(src={root})", content)
            if xs is not None:
                buffers = [read_buffer(x) for x in xs]
                result = Result(xs[root])
                result.buffer[:] = buffers[root]
                collectives.scatter(self._communicator, buffers)
            else:
                name, shape = json.loads(contents[root])
                result = Result(dt.empty(tuple(shape), dtype=name))
                collectives.receive(self._communicator, result.buffer, root)
            return result.value()

    # --- messages
    def send(self, tensor: Value, dst: int, tag: int = 0) -> MessageRequest:
        """Start to send a tensor to a rank, and return the request, without waiting.

        The tensor must not be written before the request's `wait` returns.

        - `tensor`: a tensor or array.
        - `dst`: the rank that receives it, another than this one.
        - `tag`: a number from 0 to 2**20 - 1, by which `receive` asks for it.

        Raises: WorkerError; ArgumentError, ArgumentTypeError, DTypeError, LayoutError,
        GradientError.
        """
        x = check_value("send", tensor)
        to, number = self._check_peer("send", dst, "dst"), self._check_tag("send", tag)
        with self._lock, self._communicator.call():
            self._communicator.raise_if_unusable("send")
            own = read_buffer(x)
            is_small = self._is_small(own)
            content = bytes(bytes_of(own)) if is_small else b""
            record = Record(str(spec_of(x)), number, content).pack()
            buffers = [record] if is_small else [record, bytes_of(own)]
            what = f"send({spec_of(x)}, dst={to}, tag={number})"
            requests = [self._communicator.send(b, to, USER_TAG + number, what) for b in buffers]
            return MessageRequest(self._communicator, to, what, requests, None, buffers)

    def receive(self, like: Value, src: int, tag: int = 0) -> MessageRequest:
        """Start to receive a tensor of a rank, and return the request, whose `wait` returns it.

        Tensors of one rank with one tag arrive in the order in which they were sent.

        - `like`: a tensor or array of the shape, dtype and device of the result.
        - `src`: the rank that sends it, another than this one.
        - `tag`: the tag with which it is sent.

        Raises: WorkerError; ArgumentError, ArgumentTypeError, DTypeError, LayoutError.
        """
        x = check_value("receive", like.detach() if isinstance(like, dt.Tensor) else like, "like")
        source, number = self._check_peer("receive", src, "src"), self._check_tag("receive", tag)
        with self._lock, self._communicator.call():
            self._communicator.raise_if_unusable("receive")
            arrival = Arrival(x)
            is_small = self._is_small(arrival.result.buffer)
            buffers = [arrival.record] + ([] if is_small else [bytes_of(arrival.result.buffer)])
            requests = [self._communicator.receive(b, source, USER_TAG + number) for b in buffers]
            what = f"receive({spec_of(x)}, src={source}, tag={number})"
            return MessageRequest(self._communicator, source, what, requests, arrival, buffers)

    def close(self) -> None:
        """Leave the group and free its connection; a second call does nothing.

        It happens at the end of the process, too.
        """
        self._communicator.is_closing = True  # a thread that waits in a call stops waiting
        with self._lock:
            self._communicator.close()

    def abort(self, reason: str) -> None:
        """Tell the other ranks that this one has failed, so that they raise WorkerError.

        - `reason`: the text of their errors.
        """
        self._communicator.abort(reason)

    # --- arguments
    def _check_rank(self, op: str, rank: int, name: str) -> int:
        """Return a rank. Raises: ArgumentTypeError, ArgumentError."""
        number = arguments.integer(op, rank, name)
        if not 0 <= number < self.size:
            raise dt.ArgumentError(
                f"{op}: {name} must be a rank from 0 to {self.size - 1}, got {number}"
            )
        return number

    def _check_peer(self, op: str, rank: int, name: str) -> int:
        """Return a rank other than this one. Raises: ArgumentTypeError, ArgumentError."""
        number = self._check_rank(op, rank, name)
        if number == self.rank:
            raise dt.ArgumentError(f"{op}: {name} must be another rank, got {number}, this one")
        return number

    def _check_tag(self, op: str, tag: int) -> int:
        """Return a tag of a user. Raises: ArgumentTypeError, ArgumentError."""
        number = arguments.integer(op, tag, "tag")
        if not 0 <= number <= TAG_MAX:
            raise dt.ArgumentError(f"{op}: tag must be from 0 to {TAG_MAX:,}, got {number}")
        return number

    def _check_list(
        self, op: str, tensors: Sequence[Value], same_shape: bool = True
    ) -> list[Value]:
        """Return a list of a value for each rank. Raises: ArgumentError, ArgumentTypeError, ..."""
        if isinstance(tensors, dt.Tensor) or not isinstance(tensors, Sequence):
            raise arguments.refused(op, "tensors", "a list of tensors", tensors)
        xs = [check_value(op, x, "tensors") for x in tensors]
        specs = {spec_of(x) if same_shape else spec_of(x).dtype for x in xs}
        if len(xs) != self.size or len(specs) > 1:
            kind = "one shape and dtype" if same_shape else "one dtype"
            raise dt.ArgumentError(
                f"{op}: tensors must have {self.size} tensors of {kind}, one for each "
                f"rank, got {len(xs)}: {', '.join(map(str, specs))}"
            )
        return xs

    def _check_shapes(
        self, op: str, shapes: Sequence[Sequence[int]] | None, x: Value
    ) -> list[tuple[int, ...]]:
        """Return the shape of each rank's tensor, that of `x` for None. Raises: ArgumentError."""
        if shapes is None:
            return [tuple(x.shape)] * self.size
        expected = [tuple([arguments.integer(op, n, "shapes") for n in s]) for s in shapes]
        if len(expected) != self.size:
            raise dt.ArgumentError(
                f"{op}: shapes must have {self.size} shapes, one for each rank, got {len(expected)}"
            )
        return expected

    def _require_shape(self, op: str, x: Value, shape: tuple[int, ...]) -> None:
        """Raise ArgumentError unless a tensor has the shape that `shapes` has for this rank."""
        if tuple(x.shape) != shape:
            raise dt.ArgumentError(
                f"{op}: shapes[{self.rank}] must be that of this rank's tensor, {tuple(x.shape)}, "
                f"got {shape}"
            )

    @staticmethod
    def _is_small(buffer: Buffer) -> bool:
        """Return True if an array fits into a record."""
        return buffer.nbytes <= CONTENT_BYTES_MAX


def check_timeout(op: str, timeout: float) -> float:
    """Return a limit in seconds. Raises: ArgumentTypeError, ArgumentError."""
    limit = arguments.real(op, timeout, "timeout")
    if not 0 < limit <= TIMEOUT_SECONDS_MAX:
        raise dt.ArgumentError(
            f"{op}: timeout must be above 0 seconds, and at most {TIMEOUT_SECONDS_MAX:,} (a year), "
            f"got {timeout}"
        )
    return limit


def _prefix(name: str) -> str:
    """Return the name of a caller as the beginning of a call's text."""
    return f"{name}: " if name else ""


class Arrival:
    """A tensor that is being received: the sender's record, and memory for the elements."""

    def __init__(self, like: Value) -> None:
        self.record, self.result, self.spec = empty_record(), Result(like), spec_of(like)

    def is_expected(self) -> bool:
        """Return True if the record that has arrived names the expected shape and dtype."""
        return unpack(self.record).text == str(self.spec)

    def value(self) -> Any:
        """Return the tensor, after its elements have arrived."""
        content = unpack(self.record).content
        if content:
            bytes_of(self.result.buffer)[:] = content
        return self.result.value()


class MessageRequest:
    """A tensor that is being sent or received, from `send` or `receive` of a group.

    - `communicator`, `peer`, `what`, `requests`, `arrival`, `buffers`: set by the group.

    >>> import dovetail as dt
    >>> def exchange():
    ...     group = dt.parallel.current()
    ...     other, own = 1 - group.rank, dt.full((2,), float(group.rank))
    ...     sent, arriving = group.send(own, other), group.receive(own, other)
    ...     sent.wait()
    ...     return arriving.wait().tolist()
    >>> dt.parallel.run(exchange, workers=2, transport="threads")
    [[1.0, 1.0], [0.0, 0.0]]
    """

    def __init__(
        self,
        communicator: Communicator,
        peer: int,
        what: str,
        requests: Sequence[Request],
        arrival: Arrival | None = None,
        buffers: Sequence[memoryview] = (),
    ) -> None:
        self._communicator, self._peer, self._what = communicator, peer, what
        self._requests, self._arrival, self._buffers = requests, arrival, buffers
        self._value: Any = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The bytes of each message that carries the tensor: a record, and maybe the elements."""
        return tuple([buffer.nbytes for buffer in self._buffers])

    def wait(self, timeout: float | None = None) -> Any:
        """Wait for a message: return a received tensor, or None if a sent one may be written again.

        - `timeout`: the limit in seconds; None is that of the group.

        Raises: WorkerError, also if the received tensor has another shape or dtype than expected.
        """
        if self._value is not None:
            return self._value
        communicator, arrival = self._communicator, self._arrival
        if timeout is not None:
            arguments.real("MessageRequest.wait", timeout, "timeout")
        for k, request in enumerate(self._requests):
            communicator.complete(request, self._peer, self._what, timeout)
            if k == 0 and arrival is not None and not arrival.is_expected():
                sent = unpack(arrival.record).text
                communicator.fail(
                    f"{self._what}: rank {self._peer} sent {sent}, but rank {communicator.rank} "
                    f"receives {arrival.spec}",
                    self._peer,
                )
        if arrival is not None:
            self._value = arrival.value()
        return self._value

    def is_done(self) -> bool:
        """Return True if `wait` would return, or raise an error, at once; never block."""
        first, *others = self._requests
        if not is_complete(first):
            return False
        is_wrong = self._arrival is not None and not self._arrival.is_expected()
        return is_wrong or all(map(is_complete, others))
