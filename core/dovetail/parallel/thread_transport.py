"""A transport between threads of one process, for tests and for runs without processes."""

from __future__ import annotations

from collections import deque
from threading import Condition
from time import monotonic

from dovetail.extend import Request, Transport

__all__: list[str] = []


class Hub:
    """The mailboxes of all ranks: messages by sender, receiver and tag."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.changed = Condition()
        self.messages: dict[tuple[int, int, int], deque[bytes]] = {}
        self.lost: set[int] = set()

    def transport(self, rank: int) -> ThreadTransport:
        """Return the transport of a rank."""
        return ThreadTransport(self, rank)

    def lose(self, rank: int) -> None:
        """Mark a rank as lost; its messages can still be received."""
        with self.changed:
            self.lost.add(rank)
            self.changed.notify_all()


class SentRequest(Request):
    """A message that was copied into a mailbox, so that it is complete."""

    def wait(self, timeout: float | None = None) -> None:
        """Return at once."""


class MailboxRequest(Request):
    """A message that is taken from a mailbox when it arrives."""

    def __init__(self, hub: Hub, key: tuple[int, int, int], buffer: memoryview) -> None:
        self._hub, self._key, self._buffer = hub, key, buffer
        self.earlier: MailboxRequest | None = None
        self.is_complete = False

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the message and copy it into the buffer, after those of earlier requests."""
        if self.earlier is not None:
            self.earlier.wait(timeout)
            self.earlier = None
        if self.is_complete:
            return
        (source, own, _), hub = self._key, self._hub
        end = None if timeout is None else monotonic() + timeout
        with hub.changed:
            while not (waiting := hub.messages.get(self._key)):
                for rank in (source, own):
                    if rank in hub.lost:
                        raise ConnectionError(f"rank {rank} is lost")
                left = None if end is None else end - monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError
                hub.changed.wait(left)
            message = waiting.popleft()
        self.is_complete = True
        if len(message) != len(self._buffer):
            raise ValueError(f"got {len(message)} bytes, expected {len(self._buffer)}")
        self._buffer[:] = message


class ThreadTransport(Transport):
    """The transport of one thread. A sent message is copied, so `send` completes at once."""

    def __init__(self, hub: Hub, rank: int) -> None:
        self.rank, self.size, self._hub = rank, hub.size, hub
        self._last: dict[tuple[int, int, int], MailboxRequest] = {}

    def send(self, buffer: memoryview, to: int, tag: int) -> Request:
        """Copy the message into the receiver's mailbox; overrides `Transport.send`."""
        hub = self._hub
        with hub.changed:
            for rank in (to, self.rank):
                if rank in hub.lost:
                    raise ConnectionError(f"rank {rank} is lost")
            hub.messages.setdefault((self.rank, to, tag), deque()).append(bytes(buffer))
            hub.changed.notify_all()
        return SentRequest()

    def receive(self, buffer: memoryview, source: int, tag: int) -> Request:
        """Return a request for the next message in the mailbox; overrides `Transport.receive`."""
        key = (source, self.rank, tag)
        request = MailboxRequest(self._hub, key, buffer)
        last = self._last.get(key)
        if last is not None and not last.is_complete:
            request.earlier = last
        self._last[key] = request
        return request

    def close(self) -> None:
        """Mark this rank as lost; overrides `Transport.close`."""
        self._hub.lose(self.rank)
