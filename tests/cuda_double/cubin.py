"""The image that the double's NVRTC makes and its driver loads: a shared object with a checksum."""

from __future__ import annotations

import ctypes
import hashlib
import struct
from typing import Any

MAGIC = b"\x7fDOUBLE\0"
_HEAD = struct.Struct("<8sBBBxI32s")  # magic, major, minor, cooperates, length, digest


def sealed(binary: bytes, arch: tuple[int, int], cooperates: bool) -> bytes:
    """Return the image."""
    digest = hashlib.sha256(binary).digest()
    return _HEAD.pack(MAGIC, *arch, cooperates, len(binary), digest) + binary


def opened(image: Any) -> tuple[bytes, tuple[int, int], bool]:
    """Return the object, its architecture, and whether its threads cooperate.

    Raises: ValueError if the data are no image or damaged.
    """
    content = ctypes.string_at(image, _HEAD.size) if isinstance(image, int) else bytes(image)
    if len(content) < _HEAD.size:
        raise ValueError("too short")
    magic, major, minor, cooperates, length, digest = _HEAD.unpack_from(content)
    if magic != MAGIC:
        raise ValueError("not an image of the double")
    if isinstance(image, int):
        content = ctypes.string_at(image, _HEAD.size + length)
    binary = content[_HEAD.size : _HEAD.size + length]
    if hashlib.sha256(binary).digest() != digest:
        raise ValueError("damaged")
    return binary, (major, minor), bool(cooperates)
