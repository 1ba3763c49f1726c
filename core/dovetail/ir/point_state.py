"""The state of points: words of memory that parts of a kernel share, for each point of the grid."""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import DType, float32, uint32, uint64
from .builder import Kernel
from .language import Store, Value, bitcast, cast, const, load
from .lower_limits import append_buffer

WORD_BYTES = 4


class PointState:
    """A buffer of words of 32 bits, in which each word of all points is contiguous.

    `kernel`: the kernel with this buffer. `start`: the index of its first word.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.buffer, self.start = append_buffer(kernel, "state", uint32)
        self.points, self.point = const(1, kernel.index), const(0, kernel.index)
        for axis, extent in enumerate(kernel.grid):
            self.points = self.points * extent
            self.point = self.point * extent + Value("index", kernel.index, (), axis)

    def write(self, word: Value | int, v: Value) -> list[Store]:
        """Return the stores that write a value to the state, from `word` on."""
        return [Store(self.buffer, self._locate(word + k), w) for k, w in enumerate(_to_words(v))]

    def read(self, word: Value | int, d: DType, when: Value | None = None) -> Value:
        """Return the value of dtype `d` that loads read from the state, from `word` on."""
        return _from_words(
            [load(self.buffer, self._locate(word + k), when) for k in range(word_count(d))], d
        )

    def _locate(self, word: Value | int) -> Value:
        """Return the index of a word of this point."""
        return self.start + (self.points * word + self.point)


def word_count(d: DType) -> int:
    """Return the number of words of a value."""
    return 2 if d.itemsize == 8 else 1


def _to_words(v: Value) -> list[Value]:
    """Return the words of a value."""
    if v.dtype.itemsize == 8:
        wide = bitcast(v, uint64)
        return [cast(wide, uint32), cast(wide >> 32, uint32)]
    if v.dtype.itemsize == 4:
        return [bitcast(v, uint32)]
    if v.dtype.kind == "f":  # a half, which a kernel can only load, store and cast
        return [bitcast(cast(v, float32), uint32)]
    return [cast(v, uint32)]


def _from_words(words: Sequence[Value], d: DType) -> Value:
    """Return the value of dtype `d` that has these words."""
    if d.itemsize == 8:
        low, high = words
        return bitcast(cast(low, uint64) | (cast(high, uint64) << 32), d)
    (word,) = words
    if d.itemsize == 4:
        return bitcast(word, d)
    return cast(bitcast(word, float32) if d.kind == "f" else word, d)
