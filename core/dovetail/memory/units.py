"""Bytes: their units, and how they are written for people."""

from __future__ import annotations

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
UNITS = ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))


def format_bytes(n: float) -> str:
    """Return a number of bytes as readable text, for example "1.5 MiB".

    - `n`: the number of bytes.
    """
    for unit, name in UNITS:
        if n >= unit:
            return f"{n / unit:.1f} {name}"
    return f"{n:.0f} bytes"
