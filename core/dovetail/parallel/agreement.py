"""Records by which ranks tell each other which call they make.

A record has a fixed size, so a rank can receive one without knowing which call the other makes.
Small values travel inside of it.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import NamedTuple

RECORD_BYTES = 1024
HEADER = struct.Struct("<4sIIQ")  # magic, bytes of the text, bytes of the content, number
MAGIC = b"dvt1"
TEXT_BYTES_MAX = 224
CONTENT_BYTES_MAX = RECORD_BYTES - HEADER.size - TEXT_BYTES_MAX


class Record(NamedTuple):
    """A call of a rank: its text, its number on that rank, and the bytes of a small value."""

    text: str
    number: int
    content: bytes = b""

    def pack(self) -> memoryview:
        """Return the record as bytes. A text that is too long ends with a digest of all of it."""
        text, content = self.text.encode(), self.content
        if len(text) > TEXT_BYTES_MAX:
            end = f"... ({blake2b(text, digest_size=8).hexdigest()})".encode()
            text = text[: TEXT_BYTES_MAX - len(end)] + end
        packed = bytearray(RECORD_BYTES)
        HEADER.pack_into(packed, 0, MAGIC, len(text), len(content), self.number)
        packed[HEADER.size : HEADER.size + len(text)] = text
        begin = HEADER.size + TEXT_BYTES_MAX
        packed[begin : begin + len(content)] = content
        return memoryview(packed)


def empty_record() -> memoryview:
    """Return memory for a record that is received."""
    return memoryview(bytearray(RECORD_BYTES))


def unpack(packed: memoryview) -> Record:
    """Return the record of these bytes. Raises: ValueError for other bytes."""
    magic, text_bytes, content_bytes, number = HEADER.unpack_from(packed)
    if magic != MAGIC or text_bytes > TEXT_BYTES_MAX or content_bytes > CONTENT_BYTES_MAX:
        raise ValueError("these bytes are no record; do all ranks have the same dovetail?")
    begin = HEADER.size + TEXT_BYTES_MAX
    text = bytes(packed[HEADER.size : HEADER.size + text_bytes])
    content = bytes(packed[begin : begin + content_bytes])
    return Record(text.decode("utf-8", "replace"), number, content)
