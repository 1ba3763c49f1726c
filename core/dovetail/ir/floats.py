"""Checks for devices whose float arithmetic deviates from IEEE 754.

A kernel that needs what a device lacks runs on its companion (`plugins.companion`).
"""

from __future__ import annotations

from collections.abc import Iterator

from .builder import Kernel, combine
from .language import Loop, Value, walk
from .target import Capabilities

_MOVE_OPS = ("load", "where", "bitcast", "complex", "real", "imag")  # no arithmetic


def supports_all_floats(capabilities: Capabilities) -> bool:
    """Return True if a device runs every kernel, as far as floats are concerned."""
    return capabilities.nan


def find_missing_feature(kernel: Kernel, capabilities: Capabilities) -> str:
    """Return the first feature that a legalised kernel needs and a device lacks.

    The result is "" if the device runs the kernel as it should.
    """
    if not capabilities.nan and any(map(_may_meet_nan, _operations(kernel))):
        return "float arithmetic with infinities and NaN"
    return ""


def _operations(kernel: Kernel) -> Iterator[Value]:
    """Yield the operations of a kernel, those of its reductions' combines included."""
    for s in walk(kernel.body):
        if isinstance(s, Value):
            yield s
        elif isinstance(s, Loop) and s.combine is not None:
            rule = combine(s.combine, tuple(u.dtype for u in s.update))
            yield from (v for v in rule.body if isinstance(v, Value))


def _may_meet_nan(v: Value) -> bool:
    """Return True if an operation of floats depends on infinities and NaN."""
    if v.op in _MOVE_OPS:
        return False
    if v.op == "cast" and (v.args[0].dtype.kind != "f" or v.dtype.kind in "iu"):
        return False  # integers have no NaN; the cast of NaN to an integer is undefined
    return any(x.dtype.kind == "f" for x in (v, *v.args))
