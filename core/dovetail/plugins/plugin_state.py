"""The record of a plugin: its state and its error."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from functools import partial

from pluggy import PluginManager

from ..backend.interface import DeviceInfo
from ..errors import DovetailError, PluginError, UnavailableError
from ..locks import Lock
from .entry import PluginEntry

LINE_LENGTH_MAX = 500  # characters of an error that are shown in a line
TRACEBACK_LENGTH_MAX = 20_000  # characters of a traceback, its end


class PluginState(enum.Enum):
    """The state of a plugin in its life cycle."""

    DISCOVERED = "discovered"
    BLOCKED = "blocked"
    API_MISMATCH = "api mismatch"
    CONFLICT = "conflict"
    IMPORT_FAILED = "import failed"
    PROBE_FAILED = "probe failed"
    UNAVAILABLE = "unavailable"
    AVAILABLE = "available"
    OPEN = "open"
    OPEN_FAILED = "open failed"


BROKEN_STATES = frozenset(
    (
        PluginState.API_MISMATCH,
        PluginState.CONFLICT,
        PluginState.IMPORT_FAILED,
        PluginState.PROBE_FAILED,
        PluginState.OPEN_FAILED,
    )
)
_STATE_PHRASES = {  # other states: "is" and the value
    PluginState.API_MISMATCH: "is not compatible with this dovetail",
    PluginState.CONFLICT: "is in conflict",
    PluginState.IMPORT_FAILED: "could not be loaded",
    PluginState.PROBE_FAILED: "could not be probed",
    PluginState.OPEN_FAILED: "could not be opened",
}


@dataclass(eq=False, repr=False)
class PluginRecord:
    """The record of one device type's plugin."""

    type: str
    entries: tuple[PluginEntry, ...]
    state: PluginState = PluginState.DISCOVERED
    distribution: str = ""
    version: str = ""
    file: str = ""
    reason: str = ""
    hint: str = ""
    traceback: str = ""
    milliseconds: float = 0.0
    devices: tuple[DeviceInfo, ...] = ()
    manager: PluginManager | None = None
    plugin_kind: str = "device type"
    opening: list[DeviceInfo] = field(
        default_factory=list
    )  # devices that the thread with the lock is opening
    # held while this plugin is imported, probed or opened, which runs its code
    lock: Lock = field(default_factory=partial(Lock, waited=False))

    def fail(
        self, state: PluginState, reason: str, hint: str = "", error: BaseException | None = None
    ) -> None:
        """Set state, reason and hint, escaped for terminals, and the end of the traceback."""
        self.state, self.reason, self.hint = (
            state,
            escape_surrogates(reason),
            escape_surrogates(hint),
        )
        self.traceback = (
            ""
            if error is None
            else escape_surrogates(_format_traceback(error)[-TRACEBACK_LENGTH_MAX:])
        )

    def error(self) -> PluginError:
        """Build the PluginError or UnavailableError for a use of this name."""
        phrase = _STATE_PHRASES.get(self.state, f"is {self.state.value}")
        text = f'{self.plugin_kind} "{self.type}" {phrase}: {self.reason}'
        if self.distribution and self.state is not PluginState.UNAVAILABLE:
            origin = " ".join(s for s in (self.distribution, self.version, self.file) if s)
            text += f"\nIt comes from {origin}."
        if self.traceback:
            text += "\n" + self.traceback.rstrip()
        if self.hint:
            text += f"\nTo fix it: {self.hint}"
        return (
            UnavailableError(text) if self.state is PluginState.UNAVAILABLE else PluginError(text)
        )


def device_details(info: DeviceInfo) -> dict[str, str]:
    """Return the details of a device, with its companion if it names one."""
    companion = {} if info.companion is None else {"companion": str(info.companion)}
    return {**companion, **info.details}


def error_line(error: BaseException) -> str:
    """Return the first line of an error's text, with its class unless it is dovetail's own."""
    try:
        first = (str(error).strip().splitlines() or [""])[0][:LINE_LENGTH_MAX]
    except BaseException:  # a plugin's `__str__`, treated as `traceback` does
        first = "<its message cannot be read>"
    ours = first and isinstance(error, DovetailError)
    return first if ours else f"{type(error).__name__}: {first}"


def escape_surrogates(text: str) -> str:
    """Return a text with lone surrogates escaped, for any terminal or file."""
    return str(text).encode("utf-8", "backslashreplace").decode()


def _format_traceback(error: BaseException) -> str:
    """Return the formatted traceback of an error."""
    import traceback  # 1 ms, not part of `import dovetail`

    return "".join(traceback.format_exception(error))
