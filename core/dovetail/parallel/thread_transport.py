"""A transport between threads of one process, for tests and for runs without processes."""

from __future__ import annotations

from collections import Counter
from threading import Condition
from time import monotonic

from dovetail.extend import Request, Transport

__all__: list[str] = []


class Hub:
    """The mailbox of all ranks: messages by sender, receiver, tag and number."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.changed = Condition()
        self.messages: dict[tuple[int, int, int, int], bytes] = {}
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
    """A message that was copied into the mailbox, so that it is complete."""

    def wait(self, timeout: float | None = None) -> None:
        """Return at once."""


class MailboxRequest(Request):
    """A message that is taken from the mailbox when it arrives."""

    def __init__(self, hub: Hub, key: tuple[int, int, int, int], buffer: memoryview) -> None:
        self._hub, self._key, self._buffer = hub, key, buffer
        self._is_complete = False
        self._error: ValueError | None = None

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the message and copy it into the buffer; overrides `Request.wait`."""
        (source, own, *_), hub = self._key, self._hub
        end = None if timeout is None else monotonic() + timeout
        with hub.changed:
            while not self._is_complete and self._key not in hub.messages:
                for rank in (source, own):
                    if rank in hub.lost:
                        raise ConnectionError(f"rank {rank} is lost")
                left = None if end is None else end - monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError
                hub.changed.wait(left)
            if not self._is_complete:
                message = hub.messages[self._key]
                if len(message) == len(self._buffer):
                    self._buffer[:] = message
                else:
                    text = f"it has {len(message)} bytes, expected {len(self._buffer)}"
                    self._error = ValueError(text)
                self._is_complete = True
                del hub.messages[self._key]
        if self._error is not None:
            raise ValueError(*self._error.args)


class ThreadTransport(Transport):
    """The transport of one thread. A sent message is copied, so `send` completes at once."""

    def __init__(self, hub: Hub, rank: int) -> None:
        self.rank, self.size, self._hub = rank, hub.size, hub
        self._sent: Counter[tuple[int, int]] = Counter()  # by rank and tag
        self._received: Counter[tuple[int, int]] = Counter()

    def send(self, buffer: memoryview, to: int, tag: int) -> Request:
        """Copy the message into the mailbox; overrides `Transport.send`."""
        hub = self._hub
        with hub.changed:
            for rank in (to, self.rank):
                if rank in hub.lost:
                    raise ConnectionError(f"rank {rank} is lost")
            hub.messages[self.rank, to, tag, self._sent[to, tag]] = bytes(buffer)
            self._sent[to, tag] += 1
            hub.changed.notify_all()
        return SentRequest()

    def receive(self, buffer: memoryview, source: int, tag: int) -> Request:
        """Return a request for the next message; overrides `Transport.receive`."""
        with self._hub.changed:
            number = self._received[source, tag]
            self._received[source, tag] += 1
        return MailboxRequest(self._hub, (source, self.rank, tag, number), buffer)

    def close(self) -> None:
        """Mark this rank as lost; overrides `Transport.close`."""
        self._hub.lose(self.rank)
