"""Vector loads across rows: each lane reads along k in its own row, which is called a line.

A sum takes one k after the other, so a vector register has one element of each of several sums,
while the elements of one k lie in different lines. A load puts a piece of a line, 16 bytes, into
its 128-bit lane. Shuffles within 128-bit lanes do the rest: they are half as many as for whole
squares, and a CPU executes more of them in a cycle than of shuffles between these lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .ir_writer import FunctionWriter

if TYPE_CHECKING:
    from .gemm import Renderer

PIECE_BYTES = 16
NATIVE_BYTES_MAX = 32  # of a vector of lines: a wider one is joined by slower instructions
CACHE_LINE_BYTES = 64


def prefetch(w: FunctionWriter, start: str, nbytes: int) -> None:
    """Append prefetches of some bytes into the second-level cache."""
    for offset in range(0, nbytes, CACHE_LINE_BYTES):
        prefetch_line(w, w.let(f"getelementptr i8, ptr {start}, i64 {offset}"), 2)


def prefetch_line(w: FunctionWriter, address: str, locality: int) -> None:
    """Append a prefetch of a cache line: 3 into the first-level cache, 2 into the second."""
    w.emit(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 {locality}, i32 1)")


class Lines:
    """The current addresses of the lines in the lanes of a vector.

    Consecutive lanes of a 128-bit lane are `near` bytes apart, the 128-bit lanes `far` bytes.
    """

    def __init__(
        self, renderer: Renderer, w: FunctionWriter, base: str, near: str, far: str
    ) -> None:
        self.renderer, self.writer = renderer, w
        self.nears = [w.i64("mul", near, str(i)) for i in range(renderer.piece)]
        halves = renderer.width // renderer.piece
        starts = [renderer.move(w, base, (str(i), far)) for i in range(halves)]
        self.slots = [w.slot("ptr", start) for start in starts]

    def load(self) -> list[str]:
        """Append loads of the next 16 bytes of each line; return a vector of all lanes per k."""
        r, w, n = self.renderer, self.writer, self.renderer.piece
        starts, lines = [w.load(slot) for slot in self.slots], []
        for near in self.nears:
            at = [r.move(w, start, ("1", near)) for start in starts]
            pieces = [w.let(f"load <{n} x {r.real}>, ptr {x}, align {r.size}") for x in at]
            lines.append(self._join(pieces))
        return self._transpose(lines)

    def _join(self, pieces: list[str]) -> str:
        """Append the concatenation of two 16-byte vectors; return a single one unchanged."""
        first, *others = pieces
        type_ = f"<{self.renderer.piece} x {self.renderer.real}>"
        for other in others:
            first = self.writer.shuffle(type_, first, other, range(self.renderer.width))
        return first

    def _transpose(self, lines: list[str]) -> list[str]:
        """Append the transposition of the square in each 128-bit lane, as perfect shuffles."""
        r, n, width = self.renderer, self.renderer.piece, self.renderer.width
        low = [start + i // 2 + i % 2 * width for start in range(0, width, n) for i in range(n)]
        high = [i + n // 2 for i in low]
        half, passes = n // 2, n.bit_length() - 1
        for _ in range(passes):
            lines = [
                self.writer.shuffle(r.type, lines[i], lines[i + half], picks)
                for i in range(half)
                for picks in (low, high)
            ]
        return lines

    def gather(self) -> str:
        """Append scalar loads of the next element of each line; return them as one vector."""
        r, w, vector = self.renderer, self.writer, "poison"
        for half, slot in enumerate(self.slots):
            start = w.load(slot)
            for i, near in enumerate(self.nears):
                at = r.move(w, start, ("1", near))
                x = w.let(f"load {r.real}, ptr {at}, align {r.size}")
                lane = half * r.piece + i
                vector = w.let(f"insertelement {r.type} {vector}, {r.real} {x}, i64 {lane}")
        return vector

    def prefetch(self, ahead: int) -> None:
        """Append prefetches of the memory `ahead` bytes further in each line."""
        r, w = self.renderer, self.writer
        for slot in self.slots:
            start = r.move(w, w.load(slot), ("1", str(ahead)))
            for near in self.nears:
                prefetch(w, r.move(w, start, ("1", near)), CACHE_LINE_BYTES)

    def advance(self, nbytes: str) -> None:
        """Append the move of all addresses by `nbytes` bytes.

        LLVM does not see through the empty assembly. Else it would keep the address of every line,
        in memory, in place of two for each 128-bit lane.
        """
        w = self.writer
        for slot in self.slots:
            start = self.renderer.move(w, w.load(slot), ("1", nbytes))
            w.store(slot, w.let(f'call ptr asm "", "=r,0"(ptr {start})'))
