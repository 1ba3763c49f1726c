"""The connection of all workers with each other: one stream socket for each pair.

Over TCP, rank 0 listens at MASTER_ADDR and MASTER_PORT. Every other rank connects to it, says where
it listens itself, and gets the addresses of all ranks. With an address "unix:FOLDER", each rank
listens at a socket in that folder. Of each pair, the higher rank connects.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import socket
import struct
from collections.abc import Callable, Generator, Iterable, Mapping
from time import monotonic, sleep
from typing import Any, TypeAlias

Address: TypeAlias = "str | tuple[str, int]"
Tell: TypeAlias = "Callable[[int], object]"
UNIX_PREFIX = "unix:"
PROTOCOL = "dovetail.parallel 1"
LENGTH = struct.Struct("<I")
MESSAGE_BYTES_MAX = 1 << 20
RETRY_SECONDS = 0.02
HELLO_SECONDS = 5.0  # for a connected program to say which rank it is
HELLO_BYTES_MAX = 1 << 12
POLL_SECONDS, SECONDS_MIN = 0.5, 0.001
BACKLOG_MIN = 128  # connections that wait to be accepted, also those of other programs


class LostError(ConnectionError):
    """A rank cannot be reached, or is no rank of the group. `rank`: the one at fault, if known."""

    def __init__(self, text: str, rank: int | None) -> None:
        super().__init__(text)
        self.rank = rank


class LateError(TimeoutError):
    """A rank did not answer in time. `rank`: the first one that is late."""

    def __init__(self, text: str, rank: int) -> None:
        super().__init__(text)
        self.rank = rank


class Meeting:
    """The exchange of addresses and the connections of one rank, within a time limit."""

    def __init__(self, rank: int, size: int, timeout: float) -> None:
        self.rank, self.size = rank, size
        self.timeout, self._end = timeout, monotonic() + timeout
        self.sockets: dict[int, socket.socket] = {}
        self.listener: socket.socket | None = None

    def connect_unix(self, folder: str) -> None:
        """Connect with all ranks by sockets in a folder. Raises: LateError, LostError."""
        self.listen(os.path.join(folder, str(self.rank)))
        for rank in range(self.rank):
            self.connect(rank, os.path.join(folder, str(rank)))
        self.accept(range(self.rank + 1, self.size))

    def connect_tcp(self, host: str, port: int, tell: Tell | None = None) -> None:
        """Connect with all ranks by way of rank 0. Raises: LateError, LostError.

        `tell`: a function that rank 0 calls with the port at which it listens.
        """
        if self.rank == 0:
            self.listen((host, port))
            if tell is not None and self.listener is not None:
                tell(self.listener.getsockname()[1])
            table = self.accept(range(1, self.size))
            for rank, peer in self.sockets.items():
                self._write(peer, rank, {"addresses": {**table, 0: [host, port]}})
            return
        master = self.connect(0, (host, port), listen=True)
        answer = self._read(master, 0, self._remaining())
        if "error" in answer:
            raise LostError(answer["error"], answer.get("rank"))
        for rank in range(1, self.rank):
            self.connect(rank, tuple(answer["addresses"][str(rank)]))
        self.accept(range(self.rank + 1, self.size))

    def listen(self, address: Address) -> None:
        """Listen at an address. Raises: LostError if another program does so."""
        try:
            if isinstance(address, str):
                self.listener = listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                listener.bind(address)
            else:
                host, port = address
                family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
                self.listener = listener = socket.socket(family, socket.SOCK_STREAM)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(where)
            listener.listen(max(self.size, BACKLOG_MIN))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                reason = "it is in use; is there another worker with this rank, or another program?"
            else:
                reason = error.strerror or str(error)
            text = f"rank {self.rank} cannot listen at {address_text(address)}: {reason}"
            raise LostError(text, self.rank) from error

    def connect(self, rank: int, address: Address, listen: bool = False) -> socket.socket:
        """Connect to a rank, which may not listen yet, and return the socket.

        `listen`: listen at this end of the connection, on any port, and tell the rank so.
        """
        while True:
            try:
                peer = self._open(address)
                break
            except (FileNotFoundError, ConnectionRefusedError, TimeoutError, BlockingIOError) as e:
                if monotonic() + RETRY_SECONDS >= self._end:
                    raise LateError(
                        f"rank {rank} did not listen at {address_text(address)} within "
                        f"{self.timeout:g} seconds; has it started?",
                        rank,
                    ) from e
                sleep(RETRY_SECONDS)
            except OSError as e:
                text = (
                    f"rank {rank} cannot be reached at {address_text(address)}: {e.strerror or e}"
                )
                raise LostError(text, rank) from e
        self.sockets[rank] = peer
        hello: dict[str, Any] = {"protocol": PROTOCOL, "rank": self.rank, "size": self.size}
        if listen:
            self.listen((peer.getsockname()[0], 0))
            assert self.listener is not None
            hello["address"] = self.listener.getsockname()[:2]
        self._write(peer, rank, hello)
        self._check_hello(self._read(peer, rank, self._remaining()), [rank])
        return peer

    def accept(self, ranks: Iterable[int]) -> dict[int, Any]:
        """Accept a connection from each of the ranks; return the addresses that they give.

        Raises: LateError, which names the missing ranks; LostError. The ranks that have connected
        get the error's text and rank.
        """
        missing, addresses = {*ranks}, {}
        hello_back = {"protocol": PROTOCOL, "rank": self.rank, "size": self.size}
        try:
            with contextlib.closing(self._visitors(missing)) as visitors:
                for peer, hello in visitors:
                    try:
                        self._check_hello(hello, missing)
                        self._write(peer, hello["rank"], hello_back)
                    except LostError as error:
                        tell_error(peer, error)
                        peer.close()
                        raise
                    addresses[hello["rank"]] = hello.get("address")
                    self.sockets[hello["rank"]] = peer
                    missing.remove(hello["rank"])
        except (LateError, LostError) as error:
            for peer in self.sockets.values():
                tell_error(peer, error)
            raise
        return addresses

    def _visitors(
        self, missing: set[int]
    ) -> Generator[tuple[socket.socket, dict[str, Any]], None, None]:
        """Yield workers that connect, with what they say first, until no rank is missing.

        Other programs, which look for open ports, may connect, and say nothing or anything else.
        Raises: LateError.
        """
        assert self.listener is not None
        self.listener.setblocking(False)
        hellos: dict[socket.socket, Hello] = {}
        with selectors.DefaultSelector() as selector:
            selector.register(self.listener, selectors.EVENT_READ)
            try:
                while missing:
                    if monotonic() >= self._end:
                        names = ", ".join(map(str, sorted(missing)))
                        raise LateError(
                            f"{'rank' if len(missing) == 1 else 'ranks'} {names} did not connect "
                            f"to rank {self.rank} within {self.timeout:g} seconds",
                            min(missing),
                        )
                    ready = selector.select(min(self._remaining(), POLL_SECONDS))
                    for key, _ in ready:
                        if key.fileobj is self.listener:
                            with contextlib.suppress(OSError):  # it has gone again
                                peer, _ = self.listener.accept()
                                peer.setblocking(False)
                                selector.register(peer, selectors.EVENT_READ)
                                hellos[peer] = Hello()
                    for peer, hello in [*hellos.items()]:
                        if not hello.read(peer):
                            selector.unregister(peer)
                            del hellos[peer]
                            if hello.message is None:
                                peer.close()
                            else:
                                peer.settimeout(HELLO_SECONDS)
                                yield peer, hello.message
            finally:
                for peer in hellos:
                    peer.close()

    def close(self, is_failed: bool) -> None:
        """Close the listener, and all connections if the meeting has failed."""
        if self.listener is not None and isinstance(path := self.listener.getsockname(), str):
            with contextlib.suppress(OSError):
                os.unlink(path)
        for each in [self.listener, *(self.sockets.values() if is_failed else ())]:
            if each is not None:
                each.close()

    def _open(self, address: Address) -> socket.socket:
        """Return a socket that is connected to an address."""
        if not isinstance(address, str):
            return socket.create_connection(address, self._remaining())
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            peer.settimeout(self._remaining())
            peer.connect(address)
        except BaseException:
            peer.close()
            raise
        return peer

    def _remaining(self) -> float:
        """Return the seconds until the limit, above 0, because sockets take 0 for "at once"."""
        return max(SECONDS_MIN, self._end - monotonic())

    def _read(self, peer: socket.socket, rank: int, limit: float) -> dict[str, Any]:
        """Return the message of a rank. Raises: LateError, LostError."""
        try:
            return read_message(peer, monotonic() + limit)
        except TimeoutError:
            text = f"rank {rank} did not answer rank {self.rank} within {self.timeout:g} seconds"
            raise LateError(text, rank) from None
        except OSError as error:
            raise LostError(f"rank {rank} is lost: {error}", rank) from error
        except (ValueError, RecursionError) as error:
            text = f"the program that listens as rank {rank} is no worker of dovetail: {error}"
            raise LostError(text, rank) from error

    def _write(self, peer: socket.socket, rank: int, message: Mapping[str, Any]) -> None:
        """Send a message to a rank. Raises: LostError."""
        try:
            write_message(peer, message)
        except OSError as error:
            raise LostError(f"rank {rank} is lost: {error}", rank) from error

    def _check_hello(self, hello: Mapping[str, Any], expected: Iterable[int]) -> None:
        """Raise LostError unless another worker is an expected rank of this group."""
        if "error" in hello:
            raise LostError(hello["error"], hello.get("rank"))
        rank, size = hello.get("rank"), hello.get("size")
        if hello.get("protocol") != PROTOCOL or size != self.size:
            raise LostError(
                f"rank {rank} has WORLD_SIZE={size} and {hello.get('protocol')!r}, but rank "
                f"{self.rank} has WORLD_SIZE={self.size} and {PROTOCOL!r}",
                rank,
            )
        if rank not in {*expected}:
            raise LostError(
                f"rank {rank} has connected to rank {self.rank} twice; each worker must have a "
                "RANK of its own",
                rank,
            )


class Hello:
    """The first message of a program that has connected, as far as it has arrived."""

    def __init__(self) -> None:
        self.message: dict[str, Any] | None = None
        self._data = bytearray()
        self._end = monotonic() + HELLO_SECONDS

    def read(self, peer: socket.socket) -> bool:
        """Read what has arrived; return False if the message is complete or none of a worker."""
        try:
            part = peer.recv(HELLO_BYTES_MAX)
        except BlockingIOError:
            return monotonic() < self._end
        except OSError:
            return False
        self._data += part
        if not part or monotonic() >= self._end:
            return False
        if len(self._data) < LENGTH.size:
            return True
        (length,) = LENGTH.unpack_from(self._data)
        if len(self._data) < LENGTH.size + length <= HELLO_BYTES_MAX:
            return True
        with contextlib.suppress(ValueError, RecursionError):
            message = json.loads(self._data[LENGTH.size :])
            if isinstance(message, dict) and message.get("protocol") == PROTOCOL:
                self.message = message if isinstance(message.get("rank"), int) else None
        return False


def meet(
    rank: int, size: int, host: str, port: int, timeout: float, tell: Tell | None = None
) -> dict[int, socket.socket]:
    """Connect with all other ranks, and return a socket for each.

    `tell`: see `Meeting.connect_tcp`.

    Raises: LateError, LostError.
    """
    meeting = Meeting(rank, size, timeout)
    is_failed = True
    try:
        if host.startswith(UNIX_PREFIX):
            meeting.connect_unix(host.removeprefix(UNIX_PREFIX))
        else:
            meeting.connect_tcp(host, port, tell)
        is_failed = False
    finally:
        meeting.close(is_failed)
    return meeting.sockets


def write_message(peer: socket.socket, message: Mapping[str, Any]) -> None:
    """Send a message of the rendezvous."""
    data = json.dumps(message).encode()
    peer.sendall(LENGTH.pack(len(data)) + data)


def tell_error(peer: socket.socket, error: LateError | LostError) -> None:
    """Send an error to another rank, unless that is lost, too."""
    with contextlib.suppress(OSError):
        write_message(peer, {"error": str(error), "rank": error.rank})


def read_message(peer: socket.socket, end: float) -> dict[str, Any]:
    """Receive a message of the rendezvous. Raises: OSError; ValueError for other bytes.

    `end`: the moment at which it must have arrived.
    """
    (length,) = LENGTH.unpack(read_exactly(peer, LENGTH.size, end))
    if length > MESSAGE_BYTES_MAX:
        raise ValueError(f"a message of {length} bytes")
    message = json.loads(read_exactly(peer, length, end))
    if not isinstance(message, dict):
        raise ValueError("a message that is no object")
    return message


def read_exactly(peer: socket.socket, count: int, end: float) -> bytes:
    """Receive so many bytes. Raises: ConnectionError at an earlier end; TimeoutError."""
    data = bytearray()
    while len(data) < count:
        peer.settimeout(max(SECONDS_MIN, end - monotonic()))
        part = peer.recv(count - len(data))
        if not part:
            raise ConnectionError("the connection was closed")
        data += part
        if monotonic() >= end and len(data) < count:
            raise TimeoutError
    return bytes(data)


def address_text(address: Address) -> str:
    """Return an address as text."""
    return address if isinstance(address, str) else ":".join(map(str, address[:2]))
