"""Agreement of all ranks on each call, the steps of a call, and errors that reach every rank."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import NamedTuple, NoReturn

from dovetail.extend import Request, Transport

from .agreement import Record, empty_record, unpack
from .host_buffers import Buffer, bytes_of
from .worker_errors import WorkerError

CONTROL_TAG, AGREEMENT_TAG, DATA_TAG, REDUCED_TAG = range(4)  # the transport's tags
USER_TAG = 1 << 20  # that of a user's tag 0
POLL_SECONDS_MIN, POLL_SECONDS_MAX = 0.001, 0.05  # between looks at the control messages
CONTROL_TEXT_BYTES_MAX = 600  # of an error in a control message; JSON adds some
LEFT_SECONDS = 2.0  # for messages that a rank sent before it left
LEFT, FAILED, LATE = "left", "failed", "late"


class Report(NamedTuple):
    """The error that another rank has told, the rank at fault, and FAILED or LATE."""

    text: str
    rank: int
    kind: str = FAILED


class Departure(NamedTuple):
    """The last collective call of a rank that has left the group, and when this rank noticed."""

    call: str
    moment: float


class Communicator:
    """The state of a group on one rank: the transport, the last call, and who has left or failed.

    At its end each rank sends one control message to all others: it leaves, or it has failed, and
    why. A waiting rank reads control messages, so an error of one rank soon ends the calls of all.
    """

    def __init__(self, transport: Transport, timeout: float) -> None:
        self.transport, self.timeout = transport, timeout
        self.rank, self.size = transport.rank, transport.size
        self.peers = [p for p in range(self.size) if p != self.rank]
        self._number = 0  # collective calls so far
        self._call = "no collective call"  # the last one
        self._error: WorkerError | None = None
        self._started = 0  # messages so far
        self.is_closing, self._is_closed = False, False
        self._process = os.getpid()
        self._heard: Report | None = None  # why the group has failed
        self._left: dict[int, Departure] = {}  # the ranks that left the group
        self._control = {p: self._receive_control(p) for p in self.peers}

    # --- steps of calls
    @contextmanager
    def call(self) -> Iterator[None]:
        """Fail the group if an error, such as an interrupt, ends a call after its first message.

        The other ranks would wait for the rest of the call, or take it for that of the next one.
        """
        started = self._started
        try:
            yield
        except BaseException as error:
            if self._started != started:
                self.abort(describe_error(self.rank, error))
            raise

    def start_send(self, buffer: Buffer, to: int, tag: int = DATA_TAG) -> Request:
        """Start to send a flat array to a rank. Raises: WorkerError."""
        return self.send(bytes_of(buffer), to, tag, self._call)

    def start_receive(self, buffer: Buffer, source: int, tag: int = DATA_TAG) -> Request:
        """Start to receive a flat array of a rank."""
        return self.receive(bytes_of(buffer), source, tag)

    def send(self, buffer: memoryview, to: int, tag: int, call: str) -> Request:
        """Start to send bytes to a rank. Raises: WorkerError."""
        self._started += 1
        try:
            return self.transport.send(buffer, to, tag)
        except ConnectionError:
            self.fail_lost(call, to)

    def receive(self, buffer: memoryview, source: int, tag: int) -> Request:
        """Start to receive bytes of a rank."""
        self._started += 1
        return self.transport.receive(buffer, source, tag)

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
                self._raise_if_ended(call)
                self.fail_lost(call, peer)
            except ValueError as error:
                self.fail(f"{call}: the message of rank {peer}: {error}", peer)
            self._raise_if_ended(call)
            self._listen(call)
            if self._heard is not None:
                if is_complete(request):  # it came before the other rank failed
                    continue
                if self._heard.kind == LATE and self._heard.rank == self.rank:
                    self._fail_late(call, [peer], limit - (end - monotonic()))  # it waits, too
                self.fail(*self._heard)
            needed = pending or {peer: request}
            gone = [p for p in self._left if p in needed and not has_arrived(needed[p])]
            if gone:  # what it sent before may be on its way
                end = min(end, self._left[gone[0]].moment + LEFT_SECONDS)
            if monotonic() >= end:
                if gone:
                    self.fail_lost(call, gone[0])
                late = [p for p, r in (pending or {}).items() if not is_complete(r)]
                self._fail_late(call, late or [peer], limit)
            pause = min(2 * pause, POLL_SECONDS_MAX)

    # --- agreement, errors
    def agree(self, call: str, content: bytes | memoryview = b"") -> list[bytes]:
        """Tell all ranks which call this one makes; return the content that each rank has added.

        Raises: WorkerError if another rank makes another call, is lost, or too late.
        """
        self.raise_if_unusable(call)
        self._number, self._call = self._number + 1, call
        packed = Record(call, self._number, bytes(content)).pack()
        own = unpack(packed)
        received = {p: empty_record() for p in self.peers}
        receives = {p: self.receive(b, p, AGREEMENT_TAG) for p, b in received.items()}
        sends = {p: self.send(packed, p, AGREEMENT_TAG, call) for p in self.peers}
        for p, request in receives.items():
            self.complete(request, p, pending=receives)
        for p, request in sends.items():
            self.complete(request, p)
        records = {p: unpack(b) for p, b in received.items()} | {self.rank: own}
        for p in self.peers:
            if records[p][:2] != own[:2]:
                self.fail(
                    f"{call}: rank {p} called {records[p].text} as its collective call "
                    f"{records[p].number}, but rank {self.rank} called {own.text} as its call "
                    f"{own.number}; all ranks must make the same calls in the same order, with the "
                    "same shapes and dtypes",
                    p,
                )
        return [records[r].content for r in range(self.size)]

    def raise_if_unusable(self, call: str) -> None:
        """Raise WorkerError if the group is closed, has failed, or another rank says so."""
        if os.getpid() != self._process:
            text = f"{call}: this process is a fork of rank {self.rank}, and no rank itself"
            raise WorkerError(text, self.rank)
        self._raise_if_ended(call)
        self._listen(call)
        if self._heard is not None:
            self.fail(*self._heard)

    def _raise_if_ended(self, call: str) -> None:
        """Raise WorkerError if this rank has failed, or another thread of it closes the group."""
        if self._error is not None:
            raise WorkerError(str(self._error), self._error.rank) from self._error
        if self.is_closing:
            self.fail(f"{call}: rank {self.rank} has closed the group", self.rank)

    def _listen(self, call: str) -> None:
        """Read the control messages that have arrived, and notice ranks that are lost."""
        for p, (request, buffer) in [*self._control.items()]:
            try:
                request.wait(0)
            except TimeoutError:
                continue
            except ConnectionError:
                self._heard = self._heard or Report(describe_loss(call, p), p)
                continue
            del self._control[p]
            record = unpack(buffer)
            rank, text = json.loads(record.content)
            if record.text == LEFT:
                self._left[p] = Departure(text, monotonic())
            else:
                self._heard = self._heard or Report(text, rank, record.text)

    def _receive_control(self, p: int) -> tuple[Request, memoryview]:
        """Start to receive the control message of a rank, which it sends at its end."""
        buffer = empty_record()
        return self.transport.receive(buffer, p, CONTROL_TAG), buffer

    def fail_lost(self, call: str, p: int) -> NoReturn:
        """Raise WorkerError for a rank that is gone, by what it said last."""
        self._listen(call)
        if p in self._left and self._heard is None:
            self.fail(f"{call}: rank {p} has left the group after {self._left[p].call}", p)
        self.fail(*(self._heard or Report(describe_loss(call, p), p)))

    def _fail_late(self, call: str, ranks: list[int], limit: float) -> NoReturn:
        """Raise WorkerError for ranks that did not answer in time."""
        names = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
        self.fail(
            f"{call}: {names} did not answer rank {self.rank} within {limit:.3g} seconds; if that "
            "is no fault, pass a longer timeout to dt.parallel.init or run",
            ranks[0],
            LATE,
        )

    def fail(self, text: str, rank: int, kind: str = FAILED) -> NoReturn:
        """Mark the group as failed, tell the other ranks, and raise WorkerError.

        They are told also what another rank has told this one: else its end could be seen first.
        """
        error = WorkerError(text, rank)
        if self._error is None:
            self._error = error
            self._tell(kind, text, rank)
        raise error

    def _tell(self, kind: str, text: str, rank: int) -> None:
        """Send a control message to all ranks that can still be reached, without waiting."""
        content = to_json([rank, cut_text(text)])
        packed = Record(kind, 0, content).pack()
        for p in self.peers:
            try:
                self.transport.send(packed, p, CONTROL_TAG).wait(0)
            except (ConnectionError, TimeoutError):  # it is lost; or slow, and gets it later
                continue

    # --- the end
    def close(self) -> None:
        """Tell the other ranks that this one leaves, and free the connection."""
        if not self._is_closed and os.getpid() == self._process:
            self.is_closing = self._is_closed = True
            if self._error is None:
                self._tell(LEFT, self._call, self.rank)
            self.transport.close()

    def abort(self, reason: str) -> None:
        """Tell the other ranks that this one has failed."""
        if self._error is None and not self.is_closing and os.getpid() == self._process:
            self._error = WorkerError(reason, self.rank)
            self._tell(FAILED, reason, self.rank)


def describe_error(rank: int, error: BaseException) -> str:
    """Return the text about the error of a rank for the other ranks."""
    return f"rank {rank} raised {type(error).__name__}: {error}".removesuffix(": ")


def cut_text(text: str) -> str:
    """Return the begin of a text that fits into a control message as JSON."""
    while len(to_json(text)) > CONTROL_TEXT_BYTES_MAX:
        text = text[: 9 * len(text) // 10]
    return text


def to_json(value: object) -> bytes:
    """Return a value as JSON, with few bytes for text of any language."""
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def describe_loss(call: str, p: int) -> str:
    """Return the text about a rank whose connection is closed."""
    return (
        f"{call}: rank {p} is lost: its connection was closed without a word; it was killed, or it "
        "crashed"
    )


def has_arrived(request: Request) -> bool:
    """Return True if a request is complete, and its rank was not lost before; never block."""
    try:
        request.wait(0)
    except (TimeoutError, ConnectionError):
        return False
    except ValueError:  # of another length
        return True
    return True


def is_complete(request: Request) -> bool:
    """Return True if a request is complete or has failed; never block."""
    try:
        request.wait(0)
    except TimeoutError:
        return False
    except (ConnectionError, ValueError):
        return True
    return True
