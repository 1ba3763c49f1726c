"""The group of all workers of a program: messages and collective operations between them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple, NoReturn

import dovetail as dt
from dovetail.extend import Lock, Request, Transport, arguments

from . import collectives
from .agreement import CONTENT_BYTES_MAX, Record, empty_record, unpack
from .host_buffers import (
    Buffer,
    Reduction,
    Result,
    Spec,
    Value,
    bytes_of,
    check_value,
    read_buffer,
    spec_of,
)
from .worker_errors import WorkerError

__all__ = ["ProcessGroup", "ReceiveRequest", "SendRequest"]

TIMEOUT_SECONDS = 300.0  # the default limit of each step of a call
CONTROL_TAG, AGREEMENT_TAG = 0, 1  # the transport's tags; `collectives` has others
USER_TAG = 1 << 20  # the transport's tag of the user's tag 0
TAG_MAX = (1 << 20) - 1
POLL_SECONDS_MIN, POLL_SECONDS_MAX = 0.001, 0.05  # between looks at the control messages
CONTROL_TEXT_MAX = 500  # characters of an error in a control message
LEFT_SECONDS = 2.0  # for messages that a rank sent before it left
LEFT, FAILED = "left", "failed"


class Departure(NamedTuple):
    """The last collective call of a rank that has left the group, and when this rank saw it."""

    call: str
    seen: float


class ProcessGroup:
    """All workers of a program, each with its `rank` from 0 to `size` - 1.

    Every rank makes the same collective calls in the same order: `barrier`, `broadcast`,
    `all_reduce`, `reduce_scatter`, `all_gather`, `gather`, `scatter`. Arguments are tensors of any
    device, which are copied through host memory, or NumPy arrays. Results are new, of the same
    kind, on the same device. Gradients do not flow through messages.

    - `transport`: the connection of this worker with the others.
    - `timeout`: the longest time in seconds that a step of a call waits for another rank.

    Raises: ArgumentError for a limit of 0 or less. The methods raise WorkerError, on every rank, if
    a rank is lost or too late, raises an error, or makes another call than the others. After that,
    the group cannot be used any more, and each call raises WorkerError.

    >>> import dovetail as dt
    >>> group = dt.parallel.current()
    >>> group.rank, group.size, group.all_reduce(dt.ones(2)).tolist()
    (0, 1, [1.0, 1.0])
    """

    def __init__(self, transport: Transport, timeout: float = TIMEOUT_SECONDS) -> None:
        self.rank, self.size = transport.rank, transport.size
        self.timeout = arguments.real("parallel.ProcessGroup", timeout, "timeout")
        if not self.timeout > 0:
            raise dt.ArgumentError(
                f"parallel.ProcessGroup: timeout must be above 0 seconds, got {timeout}"
            )
        self.transport = transport
        self.peers = [p for p in range(self.size) if p != self.rank]
        self._lock = Lock(waited=False)
        self._count = 0  # collective calls so far
        self._call = "no collective call"  # the last one
        self._error: WorkerError | None = None
        self._is_closed = False
        self._heard: tuple[str, int] | None = None  # why the group has failed, and at which rank
        self._left: dict[int, Departure] = {}  # the ranks that left the group
        self._control = {p: self._receive_control(p) for p in self.peers}

    def __repr__(self) -> str:
        return f"<ProcessGroup: rank {self.rank} of {self.size}>"

    # --- collectives
    def barrier(self) -> None:
        """Wait until every rank has called this.

        Raises: WorkerError.
        """
        with self._lock:
            self._agree("barrier()")

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
        with self._lock:
            call = f"broadcast({spec_of(x)}, src={root})"
            own = read_buffer(x) if self.rank == root else None
            result = Result(x)
            small = self._is_small(result.buffer)
            contents = self._agree(call, bytes_of(own) if small and own is not None else b"")
            if own is not None:
                result.buffer[:] = own
            elif small:
                bytes_of(result.buffer)[:] = contents[root]
            if not small:
                collectives.broadcast(self, result.buffer, root)
            return result.value()

    def all_reduce(self, tensor: Value, op: str = "sum") -> Any:
        """Return the sum, or another reduction, of the tensors of all ranks, on all ranks.

        They are combined in the order of the ranks, so results have the same bits on all ranks and
        in each run with the same number of ranks. Another number of ranks may change the bits.

        - `tensor`: a tensor or array, of the same shape and dtype on all ranks.
        - `op`: "sum", "prod", "min", "max" or "mean".

        Raises: WorkerError; ArgumentError for another `op`, DTypeError for one that the dtype does
        not have, ArgumentTypeError, LayoutError, GradientError.
        """
        x = check_value("all_reduce", tensor)
        reduction = Reduction("all_reduce", op, x)
        with self._lock:
            own, result = read_buffer(x), Result(x)
            call = f"all_reduce({spec_of(x)}, op={op!r})"
            if self._is_small(own):
                contents = self._agree(call, bytes_of(own))
                parts = [collectives.array_like(own, c) for c in contents]
                collectives.reduce_in_order(parts, reduction, result.buffer)
            else:
                self._agree(call)
                collectives.all_reduce(self, own, reduction, result.buffer)
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
        with self._lock:
            self._agree(f"reduce_scatter({self.size} of {spec_of(xs[0])}, op={op!r})")
            result = Result(xs[0])
            buffers = [read_buffer(x) for x in xs]
            collectives.reduce_scatter(self, buffers, reduction, result.buffer)
            return result.value()

    def all_gather(self, tensor: Value) -> tuple[Any, ...]:
        """Return the tensors of all ranks, in their order, on all ranks.

        - `tensor`: a tensor or array, of the same shape and dtype on all ranks.

        Raises: WorkerError; ArgumentTypeError, DTypeError, LayoutError, GradientError.
        """
        x = check_value("all_gather", tensor)
        with self._lock:
            own, call = read_buffer(x), f"all_gather({spec_of(x)})"
            results = [Result(x) for _ in range(self.size)]
            buffers = [r.buffer for r in results]
            if self._is_small(own):
                for buffer, content in zip(buffers, self._agree(call, bytes_of(own)), strict=True):
                    bytes_of(buffer)[:] = content
            else:
                self._agree(call)
                collectives.all_gather(self, own, buffers)
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
        with self._lock:
            self._agree(f"gather({spec_of(x)}, dst={root})")
            own = read_buffer(x)
            if self.rank != root:
                self.complete(self.start_send(own, root), root)
                return None
            results = [Result(x) for _ in range(self.size)]
            collectives.gather(self, own, [r.buffer for r in results])
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
        with self._lock:
            content = b"" if xs is None else json.dumps(spec_of(xs[0])).encode()
            contents = self._agree(f"scatter(src={root})", content)
            if xs is not None:
                buffers = [read_buffer(x) for x in xs]
                result = Result(xs[root])
                result.buffer[:] = buffers[root]
                collectives.scatter(self, buffers)
            else:
                name, shape = json.loads(contents[root])
                result = Result(dt.empty(tuple(shape), dtype=name))
                self.complete(self.start_receive(result.buffer, root), root)
            return result.value()

    # --- messages
    def send(self, tensor: Value, dst: int, tag: int = 0) -> SendRequest:
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
        with self._lock:
            self._raise_if_unusable("send")
            own = read_buffer(x)
            is_small = self._is_small(own)
            content = bytes(bytes_of(own)) if is_small else b""
            record = Record(str(spec_of(x)), number, content).pack()
            buffers = [record] if is_small else [record, bytes_of(own)]
            what = f"send({spec_of(x)}, dst={to}, tag={number})"
            try:
                requests = [self.transport.send(b, to, USER_TAG + number) for b in buffers]
            except ConnectionError:
                self._fail_lost(what, to)
            return SendRequest(self, to, what, requests)

    def receive(self, like: Value, src: int, tag: int = 0) -> ReceiveRequest:
        """Start to receive a tensor of a rank, and return the request, whose `wait` returns it.

        Tensors of one rank with one tag arrive in the order in which they were sent.

        - `like`: a tensor or array of the shape, dtype and device of the result.
        - `src`: the rank that sends it, another than this one.
        - `tag`: the tag with which it is sent.

        Raises: WorkerError; ArgumentError, ArgumentTypeError, DTypeError, LayoutError.
        """
        x = check_value("receive", like.detach() if isinstance(like, dt.Tensor) else like, "like")
        source, number = self._check_peer("receive", src, "src"), self._check_tag("receive", tag)
        with self._lock:
            self._raise_if_unusable("receive")
            result, record = Result(x), empty_record()
            is_small = self._is_small(result.buffer)
            buffers = [record] if is_small else [record, bytes_of(result.buffer)]
            requests = [self.transport.receive(b, source, USER_TAG + number) for b in buffers]
            what = f"receive({spec_of(x)}, src={source}, tag={number})"
            return ReceiveRequest(self, source, what, requests, record, result, spec_of(x))

    def close(self) -> None:
        """Leave the group: tell the other ranks, and free the connection. A second call is nothing.

        It happens at the end of the process, too.
        """
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                if self._error is None:
                    self._tell(LEFT, self._call, self.rank)
                self.transport.close()

    def abort(self, reason: str) -> None:
        """Tell the other ranks that this one has failed, so that they raise WorkerError.

        - `reason`: the text of their errors.
        """
        with self._lock:
            if self._error is None and not self._is_closed:
                self._error = WorkerError(reason, self.rank)
                self._tell(FAILED, reason, self.rank)

    # --- steps of collectives, for the module `collectives`
    def start_send(self, buffer: Buffer, to: int, tag: int = collectives.DATA_TAG) -> Request:
        """Start to send a flat array to a rank. Raises: WorkerError."""
        try:
            return self.transport.send(bytes_of(buffer), to, tag)
        except ConnectionError:
            self._fail_lost(self._call, to)

    def start_receive(
        self, buffer: Buffer, source: int, tag: int = collectives.DATA_TAG
    ) -> Request:
        """Start to receive a flat array of a rank."""
        return self.transport.receive(bytes_of(buffer), source, tag)

    def complete(
        self,
        request: Request,
        peer: int,
        what: str = "",
        timeout: float | None = None,
        pending: Mapping[int, Request] | None = None,
    ) -> None:
        """Wait for a request to or from a rank. Raises: WorkerError.

        - `what`: the call in errors, by default the last collective one.
        - `timeout`: the limit in seconds; None is that of the group.
        - `pending`: requests of other ranks; if time is up, the error names all that are late.
        """
        call, pause = what or self._call, POLL_SECONDS_MIN
        limit = self.timeout if timeout is None else timeout
        end = monotonic() + limit
        while True:
            try:
                request.wait(min(pause, max(0.0, end - monotonic())))
                return
            except TimeoutError:
                pass
            except ConnectionError:
                self._fail_lost(call, peer)
            except ValueError as error:
                self.fail(f"{call}: the message of rank {peer}: {error}", peer)
            self._listen(call)
            if self._heard is not None:
                if is_complete(request):  # it came before the other rank failed
                    continue
                self.fail(*self._heard)
            if peer in self._left:  # what it sent before may be on its way
                end = min(end, self._left[peer].seen + LEFT_SECONDS)
            if monotonic() >= end:
                if peer in self._left:
                    self._fail_lost(call, peer)
                late = [p for p, r in (pending or {}).items() if not is_complete(r)]
                self._fail_late(call, late or [peer], limit)
            pause = min(2 * pause, POLL_SECONDS_MAX)

    # --- agreement, errors
    def _agree(self, call: str, content: bytes | memoryview = b"") -> list[bytes]:
        """Tell all ranks which call this one makes; return the content that each rank has added.

        Raises: WorkerError if another rank makes another call, is lost, or too late.
        """
        self._raise_if_unusable(call)
        self._count, self._call = self._count + 1, call
        packed = Record(call, self._count, bytes(content)).pack()
        own = unpack(packed)
        received = {p: empty_record() for p in self.peers}
        receives = {p: self.transport.receive(b, p, AGREEMENT_TAG) for p, b in received.items()}
        sends = {}
        for p in self.peers:
            try:
                sends[p] = self.transport.send(packed, p, AGREEMENT_TAG)
            except ConnectionError:
                self._fail_lost(call, p)
        for p, request in receives.items():
            self.complete(request, p, pending=receives)
        for p, request in sends.items():
            self.complete(request, p)
        records = {p: unpack(b) for p, b in received.items()} | {self.rank: own}
        for p in self.peers:
            if records[p][:2] != own[:2]:
                self.fail(
                    f"{call}: rank {p} called {records[p].text} as its collective call "
                    f"{records[p].count}, but rank {self.rank} called {own.text} as its call "
                    f"{own.count}; all ranks must make the same calls in the same order, with the "
                    "same shapes and dtypes",
                    p,
                )
        return [records[r].content for r in range(self.size)]

    def _raise_if_unusable(self, call: str) -> None:
        """Raise WorkerError if the group is closed, has failed, or another rank says so."""
        if self._is_closed:
            raise WorkerError(f"{call}: this rank has closed the group", self.rank)
        if self._error is not None:
            raise WorkerError(str(self._error), self._error.rank) from self._error
        self._listen(call)
        if self._heard is not None:
            self.fail(*self._heard)

    def _listen(self, call: str) -> None:
        """Read the control messages that have arrived, and notice ranks that are lost."""
        for p, (request, buffer) in [*self._control.items()]:
            try:
                request.wait(0)
            except TimeoutError:
                continue
            except ConnectionError:
                self._heard = self._heard or (describe_loss(call, p), p)
                continue
            del self._control[p]
            record = unpack(buffer)
            rank, text = json.loads(record.content)
            if record.text == FAILED:
                self._heard = self._heard or (text, rank)
            else:
                self._left[p] = Departure(text, monotonic())

    def _receive_control(self, p: int) -> tuple[Request, memoryview]:
        """Start to receive the control message of a rank, which it sends at its end."""
        buffer = empty_record()
        return self.transport.receive(buffer, p, CONTROL_TAG), buffer

    def _fail_lost(self, call: str, p: int) -> NoReturn:
        """Raise WorkerError for a rank that is gone, by what it said last."""
        self._listen(call)
        if p in self._left and self._heard is None:
            self.fail(f"{call}: rank {p} has left the group after {self._left[p].call}", p)
        self.fail(*(self._heard or (describe_loss(call, p), p)))

    def _fail_late(self, call: str, ranks: list[int], limit: float) -> NoReturn:
        """Raise WorkerError for ranks that did not answer in time."""
        names = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
        self.fail(
            f"{call}: {names} did not answer rank {self.rank} within {limit:g} seconds; if that is "
            "no fault, pass a longer timeout to dt.parallel.init or run",
            ranks[0],
        )

    def fail(self, text: str, rank: int) -> NoReturn:
        """Mark the group as failed, tell the other ranks, and raise WorkerError.

        They are told also what another rank has told this one: else its end could be seen first.
        """
        error = WorkerError(text, rank)
        if self._error is None:
            self._error = error
            self._tell(FAILED, text, rank)
        raise error

    def _tell(self, kind: str, text: str, rank: int) -> None:
        """Send a control message to all ranks that can still be reached, without waiting."""
        content = json.dumps([rank, text[:CONTROL_TEXT_MAX]]).encode()[:CONTENT_BYTES_MAX]
        packed = Record(kind, 0, content).pack()
        for p in self.peers:
            try:
                self.transport.send(packed, p, CONTROL_TAG).wait(0)
            except (ConnectionError, TimeoutError):  # it is lost; or slow, and gets it later
                continue

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

    def _check_list(self, op: str, tensors: Sequence[Value]) -> list[Value]:
        """Return a list of a value for each rank. Raises: ArgumentError, ArgumentTypeError, ..."""
        if isinstance(tensors, dt.Tensor) or not isinstance(tensors, Sequence):
            raise arguments.refused(op, "tensors", "a list of tensors", tensors)
        xs = [check_value(op, x, "tensors") for x in tensors]
        specs = {spec_of(x) for x in xs}
        if len(xs) != self.size or len(specs) > 1:
            raise dt.ArgumentError(
                f"{op}: tensors must have {self.size} tensors of one shape and dtype, one for each "
                f"rank, got {len(xs)}: {', '.join(map(str, specs))}"
            )
        return xs

    @staticmethod
    def _is_small(buffer: Buffer) -> bool:
        """Return True if an array fits into a record."""
        return buffer.nbytes <= CONTENT_BYTES_MAX


class SendRequest:
    """A tensor that is being sent."""

    def __init__(
        self, group: ProcessGroup, peer: int, what: str, requests: Sequence[Request]
    ) -> None:
        self._group, self._peer, self._what = group, peer, what
        self._requests = requests

    def wait(self, timeout: float | None = None) -> Any:
        """Wait until the tensor may be written again.

        - `timeout`: the limit in seconds; None is that of the group.

        Raises: WorkerError.
        """
        for request in self._requests:
            self._group.complete(request, self._peer, self._what, timeout)

    def is_done(self) -> bool:
        """Return True if `wait` would return, or raise an error, at once; never block."""
        return all(map(is_complete, self._requests))


class ReceiveRequest(SendRequest):
    """A tensor that is being received; `wait` returns it."""

    def __init__(
        self,
        group: ProcessGroup,
        peer: int,
        what: str,
        requests: Sequence[Request],
        record: memoryview,
        result: Result,
        spec: Spec,
    ) -> None:
        super().__init__(group, peer, what, requests)
        self._record, self._result, self._spec = record, result, spec
        self._value: Any = None

    def wait(self, timeout: float | None = None) -> Any:
        """Wait for the tensor and return it; overrides `SendRequest.wait`.

        - `timeout`: the limit in seconds; None is that of the group.

        Raises: WorkerError, also for another shape or dtype than that of `like`.
        """
        if self._value is None:
            group = self._group
            group.complete(self._requests[0], self._peer, self._what, timeout)
            sent = unpack(self._record)
            if sent.text != str(self._spec):
                group.fail(
                    f"{self._what}: rank {self._peer} sent {sent.text}, but rank {group.rank} "
                    f"receives {self._spec}",
                    self._peer,
                )
            super().wait(timeout)
            if sent.content:
                bytes_of(self._result.buffer)[:] = sent.content
            self._value = self._result.value()
        return self._value

    def is_done(self) -> bool:
        """Return True if `wait` would not block; overrides `SendRequest.is_done`."""
        first = self._requests[0]
        if not is_complete(first):
            return False
        return unpack(self._record).text != str(self._spec) or super().is_done()


def describe_loss(call: str, p: int) -> str:
    """Return the text about a rank whose connection is closed."""
    return (
        f"{call}: rank {p} is lost: its connection was closed without a word; it was killed, or it "
        "crashed"
    )


def is_complete(request: Request) -> bool:
    """Return True if a request is complete or has failed; never block."""
    try:
        request.wait(0)
    except TimeoutError:
        return False
    except (ConnectionError, ValueError):
        return True
    return True
