"""The variables DOVETAIL_*, read in one place.

What makes no sense is named once, with its value, and the default stands.

| variable | what | default |
|---|---|---|
| DOVETAIL_DEFAULT_DEVICE | the device of tensors made without `device=` | cpu, if it is there |
| DOVETAIL_NUM_THREADS | threads of the device cpu; 0: one a core | 0 |
| DOVETAIL_CACHE_DIR | where compiled kernels are kept | the user's cache folder |
| DOVETAIL_CACHE_MIB | how much of them; 0: none | 256 |
| DOVETAIL_BACKENDS | the device types that may be loaded, with commas between | all |
| DOVETAIL_STRICT_PLUGINS | whether a broken plugin is everybody's error | 0 |
| DOVETAIL_PROBE_SECONDS | how long a plugin may take to be imported, and to be probed | 30 |
| DOVETAIL_PURE | 1: no compiled module is used, but the same modules as Python | 0 |
| DOVETAIL_JUNK | whether `dt.empty` holds NaN, or the largest integer, everywhere | 0 |
| DOVETAIL_TRACE | what to say on stderr, with commas between: fusion | nothing |
| DOVETAIL_<TYPE>_<KEY> | a setting of one backend: see its own page | |

An empty variable counts as one that is not set.
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Mapping

from .errors import DovetailWarning

SHOWN = 60  # characters of a value in a message
FLAGS = {"1": True, "true": True, "yes": True, "on": True}
FLAGS |= {"0": False, "false": False, "no": False, "off": False}
_said: set[str] = set()
_ROOT = __name__.partition(".")[0]


def say_once(text: str, kind: type[DovetailWarning] = DovetailWarning) -> None:
    """Warns, unless the same was said before in this process: of the user's line."""
    if text not in _said:
        _said.add(text)
        warnings.warn(text, kind, stacklevel=_user())


def _user() -> int:
    """How many calls above the caller's the first one is that is not dovetail's: the user's."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_ROOT):
        frame, level = frame.f_back, level + 1
    return level


def nonsense(name: str, value: str, wanted: str, instead: str) -> None:
    """Says of a variable what it should be, and what is done in its place."""
    shown = ascii(value if len(value) <= SHOWN else value[:SHOWN] + "...")
    say_once(f"{name}={shown} is not {wanted}; {instead}")


def text(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The value of a variable; None where it is not set, or empty."""
    return environ.get(name) or None


def number(name: str, default: float, low: float, high: float) -> float:
    """A variable that holds a number from `low` to `high`, which may be a fraction."""
    value = text(name)
    found = default if value is None else _parsed(value)
    if low <= found <= high:  # NaN is not
        return found
    nonsense(name, value or "", f"a number from {low:,} to {high:,}", f"{default:,} is used")
    return default


def whole(name: str, default: int, low: int, high: int) -> int:
    """A variable that holds a whole number from `low` to `high`."""
    found = number(name, default, low, high)
    if found == int(found):
        return int(found)
    nonsense(name, text(name) or "", "a whole number", f"{default:,} is used")
    return default


def _parsed(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


def flag(name: str, environ: Mapping[str, str] = os.environ) -> bool:
    """A variable that says yes (1, true, yes, on) or no (0, false, no, off, or nothing)."""
    value = text(name, environ) or "0"
    if value.strip().lower() not in FLAGS:
        nonsense(name, value, "0 or 1", "0 is used")
    return FLAGS.get(value.strip().lower(), False)


def words(name: str, known: tuple[str, ...]) -> frozenset[str]:
    """A variable that holds some of these words, with commas between."""
    value = text(name)
    if value is None:
        return frozenset()
    found = frozenset(w for part in value.split(",") if (w := part.strip().lower()))
    if not found <= {*known}:
        nonsense(name, value, f"made of the words {', '.join(known)}", "other words are left out")
    return found & {*known}
