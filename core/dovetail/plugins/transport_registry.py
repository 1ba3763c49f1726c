"""Transport plugins: messages between the workers of a program, `dt.parallel`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pluggy

from .entry import PluginEntry
from .plugin_registry import PluginRegistry
from .plugin_state import PluginRecord, PluginState

GROUP_PREFIX = "dovetail.transports.v"
INTERFACE = (1, 0)
hookspec = pluggy.HookspecMarker("dovetail")


class Request(ABC):
    """A message that is being sent or received."""

    @abstractmethod
    def wait(self, timeout: float | None = None) -> None:
        """Block until the message's buffer may be used again; return at once if that is so.

        Once it has returned, a received message is in its buffer. After TimeoutError the request
        goes on, and may be waited for again.

        - `timeout`: the longest time in seconds. 0 makes progress and does not block; None waits
          without a limit.

        Raises: TimeoutError; ConnectionError, as soon as the other rank is known to be lost;
        ValueError if the message has another length than the buffer.
        """


class Transport(ABC):
    """Messages between `size` ranks; this process, or thread, has the number `rank`.

    Messages from one rank with one tag arrive in the order in which they were sent. Messages with
    different tags are independent: a message that no `receive` asks for yet delays no other. No
    call but `Request.wait` and `close` blocks, and any number of requests may be pending.
    Several threads may use a transport.
    """

    rank: int
    size: int

    @abstractmethod
    def send(self, buffer: memoryview, to: int, tag: int) -> Request:
        """Start to send the bytes of a buffer, and return the request.

        - `buffer`: contiguous bytes, which do not change until the request is complete.
        - `to`: the rank of the receiver, another than this one.
        - `tag`: a number from 0 to 2**21 - 1, by which the receiver asks for the message.

        Raises: ConnectionError if the other rank is known to be lost.
        """

    @abstractmethod
    def receive(self, buffer: memoryview, source: int, tag: int) -> Request:
        """Start to receive the next message with this tag of a rank, and return the request.

        - `buffer`: contiguous, writable bytes, as many as the message has.
        - `source`: the rank of the sender, another than this one.
        - `tag`: the tag of the message.

        A rank that is lost fails the request when it is waited for, not here.
        """

    @abstractmethod
    def close(self) -> None:
        """Send what is pending, for a short time at most, and free everything; never raises."""


@dataclass(frozen=True)
class TransportInfo:
    """The description of a transport plugin.

    - `name`: the name of the transport, for `dt.parallel.init`; the entry point has it, too.
    - `open`: the function that connects this process with all others, and returns its transport.
      It gets the variables of the environment, and the time limit in seconds. It raises
      TimeoutError or ConnectionError, which name the ranks that are missing, and may have the first
      one as their attribute `rank`.
    - `minimum_interface`: the least interface (major, minor) that the plugin needs.
    """

    name: str
    open: Callable[[Mapping[str, str], float], Transport]
    minimum_interface: tuple[int, int] = INTERFACE


class TransportHooks:
    """The hook of a transport plugin: a module-level function marked with `hookimpl`."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_transport_info() -> TransportInfo:  # type: ignore[empty-body]  # a spec
        """Return the description of the transport, without connecting anything."""


class TransportRegistry(PluginRegistry):
    """The transport plugins of one process. A usable one is in state `open`."""

    plugin_kind = "transport"
    groups, interface, hooks = GROUP_PREFIX, INTERFACE, TransportHooks
    info_hook = "dovetail_transport_info"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._infos: dict[str, TransportInfo] = {}

    def accept_info(self, record: PluginRecord, info: object) -> None:
        """Store the description of a transport and mark its record open, or as failed."""
        if not isinstance(info, TransportInfo):
            reason = f"dovetail_transport_info must return a TransportInfo, got {info!r}"
            authors = f"tell the authors of {record.distribution}"
            record.fail(PluginState.IMPORT_FAILED, reason, authors)
        elif self.check_description(record, info.name, info.minimum_interface):
            self._infos[record.type] = info
            record.state = PluginState.OPEN

    def find(self, name: str) -> TransportInfo:
        """Load the plugin of a name and return its description. Raises: PluginError."""
        record = self.probe(name)
        if record.state is not PluginState.OPEN:
            raise record.error()
        return self._infos[name]


@cache
def _registry(built_in: tuple[tuple[str, str], ...]) -> TransportRegistry:
    """Return the registry of this process."""
    group = f"{GROUP_PREFIX}{INTERFACE[0]}"
    return TransportRegistry(built_in=[PluginEntry(*each, group) for each in built_in])


def find_transport(name: str, built_in: Mapping[str, str]) -> TransportInfo:
    """Load a transport plugin and return its description.

    - `name`: the name of the transport.
    - `built_in`: the modules of transports that are not installed as plugins, by name.

    Raises: PluginError.
    """
    return _registry(tuple(built_in.items())).find(name)
