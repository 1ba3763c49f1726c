"""The variables DOVETAIL_*, read in one place.

A value that makes no sense is reported once, and the default is used.

| variable | meaning | default |
|---|---|---|
| DOVETAIL_DEFAULT_DEVICE | the device of tensors made without `device=` | cpu, if it is there |
| DOVETAIL_NUM_THREADS | threads of the device cpu; 0: one a core | 0 |
| DOVETAIL_CPU_TARGET | instructions of the device cpu: native, avx512, avx2 or sse | native |
| DOVETAIL_CPU_NUMA | node of the device cpu's memory; `dt.memory.set_numa_policy` | default |
| DOVETAIL_CACHE_DIR | the folder of compiled kernels | the user's cache folder |
| DOVETAIL_CACHE_MIB | its largest size; 0: nothing is cached | 256 |
| DOVETAIL_BACKENDS | the device types that may be loaded, with commas between | all |
| DOVETAIL_STRICT_PLUGINS | 1: a broken plugin is an error for every user of plugins | 0 |
| DOVETAIL_PROBE_SECONDS | time limit for the import, and for the probe, of a plugin | 30 |
| DOVETAIL_PURE | 1: no compiled module is used, but the same modules as Python | 0 |
| DOVETAIL_VENDOR_PRODUCTS | 0: products use no vendor's routine; see `dt.vendor_products` | 1 |
| DOVETAIL_JUNK | 1: `dt.empty` holds NaN, or the largest integer, everywhere | 0 |
| DOVETAIL_TRACE | traces to print on stderr, with commas between: fusion | nothing |
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

VALUE_CHARACTERS_MAX = 60  # characters of a value in a message
FLAG_VALUES = {"1": True, "true": True, "yes": True, "on": True}
FLAG_VALUES |= {"0": False, "false": False, "no": False, "off": False}
_issued_warnings: set[str] = set()
_ROOT = __name__.partition(".")[0]


def warn_once(text: str, kind: type[DovetailWarning] = DovetailWarning) -> None:
    """Warn at the user's line, unless this process has given the same text before."""
    if text not in _issued_warnings:
        _issued_warnings.add(text)
        warn_user(text, kind)


def warn_user(text: str, kind: type[Warning]) -> None:
    """Warn at the user's line.

    - `text`: the message.
    - `kind`: the class of the warning, such as `dt.DovetailWarning`.
    """
    warnings.warn(text, kind, stacklevel=_find_user_stack_level())


def _find_user_stack_level() -> int:
    """Return `warnings.warn`'s `stacklevel` for the innermost frame outside of dovetail."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_ROOT):
        frame, level = frame.f_back, level + 1
    return level


def warn_invalid(name: str, value: str, valid_values: str, instead: str) -> None:
    """Warn once of a variable's invalid value; name its valid values and the value used instead."""
    shown = ascii(
        value if len(value) <= VALUE_CHARACTERS_MAX else value[:VALUE_CHARACTERS_MAX] + "..."
    )
    warn_once(f"{name} must be {valid_values}, got {shown}; {instead}")


def read_text(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the value of a variable; None if it is not set, or empty."""
    return environ.get(name) or None


def read_float(name: str, default: float, low: float, high: float) -> float:
    """Return a variable as a number in low..high; else `default`, with a warning if it is set."""
    value = read_text(name)
    parsed = default if value is None else _parse_number(value)
    if low <= parsed <= high:  # NaN is not
        return parsed
    warn_invalid(name, value or "", f"a number from {low:,} to {high:,}", f"using {default:,}")
    return default


def read_int(name: str, default: int, low: int, high: int) -> int:
    """Return a variable as an int in low..high; else `default`, with a warning if it is set.

    - `name`: the name of the environment variable.
    - `default`: the number without it.
    - `low`, `high`: the least and the largest allowed number.
    """
    value = read_float(name, default, low, high)
    if value == int(value):
        return int(value)
    warn_invalid(name, read_text(name) or "", "a whole number", f"using {default:,}")
    return default


def _parse_number(value: str) -> float:
    """Parse a number; return NaN for other text."""
    try:
        return float(value)
    except ValueError:
        return math.nan


def read_flag(name: str, environ: Mapping[str, str] = os.environ, default: bool = False) -> bool:
    """Return a variable as a flag; if it is empty, or invalid (warns once), return `default`."""
    value = read_text(name, environ) or str(int(default))
    if value.strip().lower() not in FLAG_VALUES:
        warn_invalid(name, value, "0 or 1", f"using {int(default)}")
    return FLAG_VALUES.get(value.strip().lower(), default)


def read_word(name: str, default: str, allowed: tuple[str, ...]) -> str:
    """Return a variable in lower case if it is an allowed word; else `default`, with a warning.

    - `name`: the name of the environment variable.
    - `default`: the word without it.
    - `allowed`: the allowed words, in lower case.
    """
    value = read_text(name) or default
    word = value.strip().lower()
    if word not in allowed:
        warn_invalid(name, value, f"one of {', '.join(allowed)}", f"using {default}")
    return word if word in allowed else default


def read_words(name: str, allowed: tuple[str, ...]) -> frozenset[str]:
    """Return the allowed words of a comma-separated variable, in lower case; warn of others."""
    value = read_text(name)
    if value is None:
        return frozenset()
    listed = frozenset(w for part in value.split(",") if (w := part.strip().lower()))
    if not listed <= {*allowed}:
        warn_invalid(name, value, f"a list of {', '.join(allowed)}", "other words are ignored")
    return listed & {*allowed}
