"""The transport over stream sockets: Unix sockets on one machine, TCP between machines.

A message is a frame: its length, its tag, and its bytes, which move between the buffers of both
ranks and the kernel without another copy. A thread that waits moves data itself, so a message needs
no switch of threads. While no thread waits, one of the transport moves what arrives and what is
left to send.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from math import ceil
from threading import Thread
from time import monotonic, sleep
from weakref import WeakSet

import dovetail as dt
from dovetail.extend import Lock, Request, Transport, TransportInfo, hookimpl

from .rendezvous import meet

FRAME = struct.Struct("<QQ")  # length, tag
STAGE_BYTES = 1 << 14  # small frames and the begin of large ones are read into it
BUFFERS_MAX = 64  # buffers of one system call
SOCKET_BYTES = 1 << 22  # asked for as the kernel's buffer; the system may give less
EARLY_BYTES_MAX = 1 << 26  # of frames that no receive has asked for; the thread reads no more
READS_MAX, PUMP_READS = 1024, 32  # of one rank in a row
STEP_SECONDS = 0.05  # the longest time for which the lock is held
IDLE_SECONDS = 0.005  # without a wait, after which the thread moves data
POLL_MILLISECONDS = 1000
VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
CLOSE_SECONDS = 2.0
PORT_MAX = (1 << 16) - 1
INTERRUPTED = "an interrupt has ended a transfer"
READ, WRITE = getattr(select, "POLLIN", 1), getattr(select, "POLLOUT", 4)  # Windows lacks them


class SocketRequest(Request):
    """A frame that is being sent or received."""

    def __init__(self, transport: SocketTransport, link: Link, buffer: memoryview) -> None:
        self.transport, self.link, self.buffer = transport, link, buffer
        self.is_complete = False
        self.error: Exception | None = None

    def wait(self, timeout: float | None = None) -> None:
        """Move data until this frame is complete; overrides `Request.wait`."""
        if not self.is_complete:
            self.transport.move_until(self, timeout)
        if self.error is not None:
            raise type(self.error)(*self.error.args)

    def finish(self, error: Exception | None = None) -> None:
        """Mark the frame as complete, or as failed."""
        self.error, self.is_complete = error, True


class Link:
    """The connection with one rank: frames to send, receives, and frames that came before them."""

    def __init__(self, rank: int, peer: socket.socket) -> None:
        self.rank, self.socket = rank, peer
        self.error: ConnectionError | None = None  # nothing can be received any more
        self.send_error: ConnectionError | None = None
        self.unsent: deque[memoryview] = deque()
        self.senders: deque[tuple[SocketRequest, int]] = deque()  # with their number of buffers
        self.receivers: dict[int, deque[SocketRequest]] = {}
        self.early: dict[int, deque[bytearray]] = {}
        self.early_bytes = 0
        self._stage = memoryview(bytearray(STAGE_BYTES))
        self._begin = self._end = 0  # of the bytes in the stage
        self._target: memoryview | None = None  # the rest of the frame that is being read
        self._receiver: SocketRequest | None = None
        self._tag, self._data = 0, bytearray()

    # --- sending
    def send(self, request: SocketRequest, tag: int) -> None:
        """Queue a frame, and send as much as the kernel takes at once."""
        if self.send_error is not None or self.error is not None:
            raise ConnectionError(*(self.send_error or self.error or OSError()).args)
        buffers = [memoryview(FRAME.pack(request.buffer.nbytes, tag))]
        if request.buffer.nbytes:
            buffers.append(request.buffer)
        self.unsent += buffers
        self.senders.append((request, len(buffers)))
        if len(self.senders) == 1:
            self.write()

    def write(self) -> None:
        """Send queued frames until the kernel takes no more."""
        while self.unsent:
            first = [self.unsent[k] for k in range(min(len(self.unsent), BUFFERS_MAX))]
            try:
                sent = self.socket.sendmsg(first)
                self._drop_sent(sent)
            except BlockingIOError:
                return
            except OSError as error:
                self.send_error = ConnectionError(f"rank {self.rank} is lost: {error}")
                for request, _ in self.senders:
                    request.finish(self.send_error)
                self.unsent.clear()
                self.senders.clear()
                return
            except BaseException:  # Ctrl-C: how many bytes were sent is unknown
                self.lose(ConnectionError(INTERRUPTED))
                raise

    def _drop_sent(self, sent: int) -> None:
        """Remove bytes from the queue, and finish the frames that are sent."""
        unsent, senders = self.unsent, self.senders
        while unsent and sent >= unsent[0].nbytes:
            sent -= unsent.popleft().nbytes
            request, left = senders[0]
            if left > 1:
                senders[0] = (request, left - 1)
            else:
                senders.popleft()
                request.finish()
        if sent:
            unsent[0] = unsent[0][sent:]

    # --- receiving
    def receive(self, request: SocketRequest, tag: int) -> None:
        """Queue a receive, or give it the frame that came before it."""
        early = self.early.get(tag)
        if early:
            data = early.popleft()
            self.early_bytes -= len(data)
            if not early:
                del self.early[tag]
            if len(data) != request.buffer.nbytes:
                request.finish(length_error(len(data), request))
                return
            request.buffer[:] = data
            request.finish()
        elif self.error is not None:
            request.finish(self.error)
        else:
            self.receivers.setdefault(tag, deque()).append(request)

    def has_staged(self) -> bool:
        """Return True if bytes were read that belong to the next frames; no poll tells of them."""
        least = FRAME.size if self._target is None else 1
        return self.error is None and self._end - self._begin >= least

    def read(self, until: SocketRequest | None = None, times: int = READS_MAX) -> None:
        """Read frames until the kernel has no more bytes, or a request is complete.

        A lost link reads nothing: after an interrupt, the next bytes may be no header.
        `times`: the largest number of reads.
        """
        for _ in range(times if self.error is None else 0):
            if until is not None and until.is_complete:
                return
            try:
                if not self._read_some():
                    return
            except BlockingIOError:
                return
            except OSError as error:
                self.lose(ConnectionError(f"rank {self.rank} is lost: {error}"))
                return
            except BaseException:  # Ctrl-C: bytes may be lost
                self.lose(ConnectionError(INTERRUPTED))
                raise

    def _read_some(self) -> bool:
        """Read bytes once, or take some from the stage; return False at the end of the stream."""
        target, staged = self._target, self._end - self._begin
        if target is None:
            if staged >= FRAME.size:
                self._begin_frame()
                return True
            self._stage[:staged] = bytes(self._stage[self._begin : self._end])
            self._begin, self._end = 0, staged
            count = self.socket.recv_into(self._stage[staged:])
            self._end += count
        elif staged:
            count = min(staged, target.nbytes)
            target[:count] = self._stage[self._begin : self._begin + count]
            self._begin += count
            self._advance(count)
        else:
            count = self.socket.recv_into(target)
            self._advance(count)
        if count == 0:
            self.lose(ConnectionError(f"rank {self.rank} has closed the connection"))
        return count > 0

    def _begin_frame(self) -> None:
        """Read the header of a frame, and choose the memory for its bytes."""
        length, self._tag = FRAME.unpack_from(self._stage, self._begin)
        self._begin += FRAME.size
        receivers = self.receivers.get(self._tag)
        self._receiver = None
        if receivers:
            request = receivers.popleft()
            if not receivers:
                del self.receivers[self._tag]
            if request.buffer.nbytes != length:
                request.finish(length_error(length, request))
                dropped = memoryview(bytearray(length))  # takes the bytes of the frame
                request = SocketRequest(request.transport, self, dropped)
            self._receiver = request
        if self._receiver is not None:
            self._target = self._receiver.buffer
        else:
            self._data = bytearray(length)
            self.early_bytes += length
            self._target = memoryview(self._data)
        if length == 0:
            self._advance(0)

    def _advance(self, count: int) -> None:
        """Count bytes of the frame as read, and finish it after the last one."""
        assert self._target is not None
        self._target = self._target[count:]
        if self._target.nbytes:
            return
        self._target = None
        if self._receiver is not None:
            self._receiver.finish()
            self._receiver = None
        else:
            self.early.setdefault(self._tag, deque()).append(self._data)
            receivers = self.receivers.pop(self._tag, None)
            while receivers and self._tag in self.early:  # asked for while the frame arrived
                self.receive(receivers.popleft(), self._tag)
            if receivers:
                self.receivers[self._tag] = receivers

    def lose(self, error: ConnectionError) -> None:
        """Fail all requests: the connection was closed, by the other rank or by its death."""
        if self.error is not None:
            return
        self.error = self.send_error = error
        waiting = [r for requests in self.receivers.values() for r in requests]
        for request in [*waiting, *(r for r, _ in self.senders), self._receiver]:
            if request is not None:
                request.finish(error)
        self.receivers.clear()
        self.senders.clear()
        self.unsent.clear()
        self._target = self._receiver = None


def length_error(length: int, request: SocketRequest) -> ValueError:
    """Return the error for a frame whose length is not that of the buffer."""
    return ValueError(f"it has {length} bytes, expected {request.buffer.nbytes}")


class SocketTransport(Transport):
    """The transport over one socket for each other rank."""

    def __init__(self, rank: int, size: int, sockets: Mapping[int, socket.socket]) -> None:
        self.rank, self.size = rank, size
        self._links = {p: Link(p, s) for p, s in sockets.items()}
        self._by_fd = {link.socket.fileno(): link for link in self._links.values()}
        for link in self._links.values():
            prepare(link.socket)
        self._lock = Lock(waited=False)
        self._waits = 0  # calls so far that move data
        self._waiting: list[None] = []  # one entry for each call that is moving data
        self._is_closed = False
        self._is_polling = False  # the thread polls sockets, so it must be woken to poll others
        self._poll = select.poll()
        self._events: dict[int, int] = {}
        self._wake, self._wakened = socket.socketpair()
        self._wake.setblocking(False)
        _open.add(self)
        self._thread = Thread(target=self._pump, name="dovetail.parallel", daemon=True)
        self._thread.start()

    def send(self, buffer: memoryview, to: int, tag: int) -> Request:
        """Send what the kernel takes at once; the rest later; overrides `Transport.send`."""
        link = self._links[to]
        request = SocketRequest(self, link, buffer)
        with self._lock:
            link.send(request, tag)
            if link.unsent and self._is_polling:
                self._wake_pump()
        return request

    def receive(self, buffer: memoryview, source: int, tag: int) -> Request:
        """Queue a receive; overrides `Transport.receive`."""
        link = self._links[source]
        request = SocketRequest(self, link, buffer)
        with self._lock:
            link.receive(request, tag)
        return request

    def move_until(self, request: SocketRequest, timeout: float | None) -> None:
        """Move data until a request is complete. Raises: TimeoutError."""
        end = None if timeout is None else monotonic() + timeout
        self._waits += 1
        self._waiting.append(None)
        try:
            while True:
                with self._lock:
                    if not request.is_complete:
                        left = STEP_SECONDS if end is None else end - monotonic()
                        self._step(request, min(max(0.0, left), STEP_SECONDS))
                if request.is_complete:
                    return
                if end is not None and monotonic() >= end:
                    raise TimeoutError
        finally:
            self._waiting.pop()

    def _step(self, request: SocketRequest, timeout: float) -> None:
        """Wait until data can move, and move it: what is unsent, and what the request's rank sent.

        Other ranks' data stays in the kernel, so that they wait if they are ahead of this one.
        """
        if request.link.has_staged():
            request.link.read(request)
            if request.is_complete:
                return
        for fd, link in self._by_fd.items():
            self._watch(fd, (WRITE if link.unsent else 0) | (READ if link is request.link else 0))
        for fd, event in self._poll.poll(ceil(timeout * 1000)):
            link = self._by_fd[fd]
            if link.unsent:
                link.write()
            if link is request.link and event & ~WRITE:
                link.read(request)

    def _watch(self, fd: int, events: int) -> None:
        """Tell the system which events of a socket to poll; 0 is none, not even its end."""
        if events != self._events.get(fd, 0):
            if events:
                self._poll.register(fd, events)
            else:
                self._poll.unregister(fd)
            self._events[fd] = events

    # --- the thread that moves data while no caller waits
    def _pump(self) -> None:
        """Move data of all ranks, in a thread, unless a caller has done so a moment ago."""
        waits, poll = -1, select.poll()
        while not self._is_closed:
            if self._waiting or self._waits != waits:
                waits = self._waits
                sleep(IDLE_SECONDS)
                continue
            poll.register(self._wakened, READ)
            for fd, link in self._by_fd.items():
                can_read = link.error is None and link.early_bytes < EARLY_BYTES_MAX
                poll.register(fd, (WRITE if link.unsent else 0) | (READ if can_read else 0))
                if not link.unsent and not can_read:
                    poll.unregister(fd)
            self._is_polling = True
            staged = [(f, READ) for f, link in self._by_fd.items() if link.has_staged()]
            ready = poll.poll(0 if staged else POLL_MILLISECONDS) + staged
            self._is_polling = False
            if self._waiting or self._waits != waits or self._is_closed:
                continue
            with self._lock:
                for fd, event in ready:
                    moved = self._by_fd.get(fd)
                    if moved is None:
                        self._wakened.recv(STAGE_BYTES)
                        continue
                    if moved.unsent:
                        moved.write()
                    if event & ~WRITE:
                        moved.read(times=PUMP_READS)

    def _wake_pump(self) -> None:
        """Let the thread look again which sockets to poll."""
        self._is_polling = False
        with suppress(BlockingIOError):
            self._wake.send(b"w")

    # --- the end
    def close(self) -> None:
        """Send what is left, for a short time at most, and close; overrides `Transport.close`."""
        end = monotonic() + CLOSE_SECONDS
        self._waiting.append(None)  # stops the thread
        with self._lock:
            if self._is_closed:
                return
            for link in self._links.values():
                request = SocketRequest(self, link, memoryview(b""))
                while link.unsent and monotonic() < end:
                    self._step(request, STEP_SECONDS)
            self._is_closed = True
        self._wake_pump()
        self._thread.join(CLOSE_SECONDS)
        for link in self._links.values():
            with suppress(OSError):
                link.socket.shutdown(socket.SHUT_WR)
        self.release(ConnectionError("this rank has closed its connections"))

    def release(self, error: ConnectionError) -> None:
        """Close the sockets of this process, and fail all requests."""
        self._is_closed = True
        for link in self._links.values():
            link.lose(error)
            link.socket.close()
        self._wake.close()
        self._wakened.close()


def prepare(peer: socket.socket) -> None:
    """Set the options of a connected socket."""
    peer.setblocking(False)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        peer.setsockopt(socket.SOL_SOCKET, option, SOCKET_BYTES)
    if peer.family != getattr(socket, "AF_UNIX", None):
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


# A child of fork() closes its copies of the sockets: else a worker that is killed would seem to
# live on in the processes that it has forked.
_open: WeakSet[SocketTransport] = WeakSet()


def _release_in_child() -> None:
    """Close the sockets in a child of fork()."""
    for transport in [*_open]:
        transport.release(ConnectionError("this process is a fork of a worker, and no worker"))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)


# --- the plugin


def open_sockets(environ: Mapping[str, str], timeout: float) -> Transport:
    """Connect with all other workers, as the environment says.

    Raises: TimeoutError, ConnectionError; ArgumentError for missing or wrong variables;
    UnsupportedError on Windows.
    """
    if not hasattr(select, "poll"):
        raise dt.UnsupportedError(
            'parallel.init: this system has no poll(), which the transport "sockets" needs; use '
            'transport="mpi", or dt.parallel.run with transport="threads"'
        )
    missing = [name for name in VARIABLES if not environ.get(name)]
    if missing:
        raise dt.ArgumentError(
            f"parallel.init: the variables {', '.join(VARIABLES)} must be set in the environment, "
            f"missing: {', '.join(missing)}; python -m dovetail.parallel sets them"
        )
    numbers = {name: environ[name] for name in VARIABLES if name != "MASTER_ADDR"}
    for name, text in numbers.items():
        if not text.isdecimal():
            raise dt.ArgumentError(f"parallel.init: {name} must be a whole number, got {text!r}")
    rank, size, port = (int(numbers[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    if port > PORT_MAX:
        raise dt.ArgumentError(
            f"parallel.init: MASTER_PORT must be at most {PORT_MAX:,}, got {port}"
        )
    if rank >= size:
        raise dt.ArgumentError(f"parallel.init: RANK must be below WORLD_SIZE={size}, got {rank}")
    return SocketTransport(rank, size, meet(rank, size, environ["MASTER_ADDR"], port, timeout))


@hookimpl
def dovetail_transport_info() -> TransportInfo:
    """Return the description of the transport over sockets."""
    return TransportInfo("sockets", open_sockets)
