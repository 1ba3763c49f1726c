"""Packing of the operands of products into contiguous panels, with a cast from other dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from dovetail.extend import (
    PRODUCT_BLOCK,
    DType,
    bfloat16,
    float16,
    float32,
    int8,
    uint8,
)

from .ir_writer import FunctionWriter, Slot
from .lines import CACHE_LINE_BYTES, PIECE_BYTES, Lines, prefetch

if TYPE_CHECKING:
    from .gemm import Renderer


PREFETCH_BYTES = 1 << 8  # ahead, along k, of the columns that are copied


class Cast(NamedTuple):
    """A cast of operands: the operand's dtype, its LLVM type and bytes, and the instruction."""

    name: str
    type: str
    nbytes: int
    instruction: str


# By the letter of a product's dtype: the dtypes of operands that are cast to its elements.
CASTS: dict[str, dict[DType, Cast]] = {
    "s": {
        bfloat16: Cast("bfloat16", "bfloat", 2, "fpext"),
        int8: Cast("int8", "i8", 1, "sitofp"),
        uint8: Cast("uint8", "i8", 1, "uitofp"),
        float16: Cast("float16", "half", 2, "fpext"),  # last, as some targets lack it
    },
    "d": {float32: Cast("float32", "float", 4, "fpext")},
    "i": {int8: Cast("int8", "i8", 1, "sext"), uint8: Cast("uint8", "i8", 1, "zext")},
}
K_PER_ELEMENT = {"s": 1, "d": 1, "i": 2}  # an element of an int32 product is a pair of int16


class Packer:
    """Renders the packing functions for one operand dtype; `cast` is None for the product's own.

    `element_bytes`: the bytes of the operand along k that become an element.
    """

    def __init__(self, renderer: Renderer, cast: Cast | None) -> None:
        self.renderer, self.cast = renderer, cast
        self.k_per_element = K_PER_ELEMENT[renderer.letter]
        self._bytes = renderer.size if cast is None else cast.nbytes
        self.element_bytes = self._bytes * self.k_per_element
        self._bits = f"i{8 * self._bytes}"
        self._vectors = renderer.panel // renderer.width
        self._scales = cast is not None and not renderer.pairs
        suffix = "" if cast is None else f"_{cast.name}"
        self.columns_name = f"pack_columns{suffix}"
        self.rows_name = f"pack_rows{suffix}"
        self.turned_name = f"tile_turned{suffix}"

    def declarations(self) -> list[str]:
        """Return the declarations of the intrinsics that the functions use."""
        n = self.renderer.width
        t = f"<{n} x {self._bits}>"
        name = f"@llvm.masked.load.v{n}{self._bits}.p0"
        return [] if self.cast is None else [f"declare {t} {name}(ptr, i32, <{n} x i1>, {t})"]

    def render(self) -> list[str]:
        """Return the IR of the copies of rows and of columns."""
        if self.cast is not None:
            return [self._render_cast_rows(), self._render_columns()]
        return [*map(self._render_rows, self.renderer.heights), self._render_columns()]

    # --- elements

    def load_along(self, w: FunctionWriter, at: str) -> str:
        """Append the load and cast of a vector of consecutive elements along k."""
        r = self.renderer
        if self.cast is None:
            return r.load(w, at)
        t = f"<{r.width * self.k_per_element} x {self._bits}>"
        return self._cast_vector(w, w.let(f"load {t}, ptr {at}, align {self._bytes}"))

    def _load_across(
        self, w: FunctionWriter, at: str, stride: str, mask: str | None, is_pair: bool
    ) -> str:
        """Append the load and cast of a vector of elements at one k; masked-off lanes are 0.

        stride: the register of the bytes from k to k + 1; is_pair: False if k is the last one, so
        that the second half of the pairs is 0.
        """
        r = self.renderer
        if self.cast is None:
            return r.load(w, at, mask)
        t, bits = f"<{r.width} x {self._bits}>", f"<{r.width} x i1>"
        halves = []
        for i in range(self.k_per_element):
            source = r.move(w, at, (str(i), stride))
            if i and not is_pair:
                halves.append("zeroinitializer")
            elif mask is None:
                halves.append(w.let(f"load {t}, ptr {source}, align {self._bytes}"))
            else:
                name = f"@llvm.masked.load.v{r.width}{self._bits}.p0"
                arguments = f"ptr {source}, i32 {self._bytes}, {bits} {mask}, {t} zeroinitializer"
                halves.append(w.let(f"call {t} {name}({arguments})"))
        if len(halves) == 1:
            return self._cast_vector(w, halves[0])
        picks = [k for j in range(r.width) for k in (j, r.width + j)]
        return self._cast_vector(w, w.shuffle(t, halves[0], halves[1], picks))

    def _cast_vector(self, w: FunctionWriter, x: str) -> str:
        """Append the conversion of a vector of raw operand bits to the product's dtype."""
        r, cast = self.renderer, self.cast
        assert cast is not None
        n = r.width * self.k_per_element
        if cast.type != self._bits:
            x = w.let(f"bitcast <{n} x {self._bits}> {x} to <{n} x {cast.type}>")
        wide = "i16" if r.pairs else r.real
        x = w.let(f"{cast.instruction} <{n} x {cast.type}> {x} to <{n} x {wide}>")
        return w.let(f"bitcast <{n} x {wide}> {x} to {r.type}") if r.pairs else x

    def load_one(
        self, w: FunctionWriter, at: str, stride: str = "0", is_pair: str = "false"
    ) -> str:
        """Append the load and cast of one element.

        stride: the register of the bytes from k to k + 1; is_pair: the register that is false at an
        odd end of k.
        """
        r, cast = self.renderer, self.cast
        if cast is None:
            return w.let(f"load {r.real}, ptr {at}, align {r.size}")
        x = w.let(f"load {cast.type}, ptr {at}, align {self._bytes}")
        if not r.pairs:
            return w.let(f"{cast.instruction} {cast.type} {x} to {r.real}")
        offset = w.select_i64(is_pair, stride, "0")
        y = w.let(f"load {cast.type}, ptr {r.move(w, at, ('1', offset))}, align {self._bytes}")
        y = w.let(f"select i1 {is_pair}, {cast.type} {y}, {cast.type} 0")
        low, high = (w.let(f"{cast.instruction} {cast.type} {z} to i16") for z in (x, y))
        low, high = (w.let(f"zext i16 {z} to i32") for z in (low, high))
        return w.let(f"or i32 {low}, {w.let(f'shl i32 {high}, 16')}")

    def _find_stride(self, w: FunctionWriter, stride: str) -> str:
        """Return the register of the bytes from k to k + 1; `stride` is that of an element."""
        return w.let(f"ashr i64 {stride}, 1") if self.renderer.pairs else stride

    def _find_pairs(self, w: FunctionWriter) -> str:
        """Append the count of complete elements along k: all, or the pairs below %limit."""
        return w.let("ashr i64 %limit, 1") if self.renderer.pairs else "%count"

    def load_scales(self, w: FunctionWriter, valid: str) -> list[str | None]:
        """Append loads of the scales of `valid` columns; return a vector for each of the panel's.

        There are none for operands that are not cast, or not to floats.
        """
        r = self.renderer
        if not self._scales:
            return [None] * self._vectors
        last, scales = w.i64("sub", valid, "1"), list[str | None]()
        for j in range(self._vectors):
            vector = "poison"
            for i in range(r.width):
                lane = w.min_i64(last, str(j * r.width + i))
                at = r.move(w, "%scale", (lane, "%scale_step"))
                x = w.let(f"load {r.real}, ptr {at}, align {r.size}")
                vector = w.let(f"insertelement {r.type} {vector}, {r.real} {x}, i64 {i}")
            scales.append(vector)
        return scales

    def scale(self, w: FunctionWriter, vector: str, factor: str | None) -> str:
        """Append the product of a vector and its scales; without scales return the vector."""
        return vector if factor is None else w.let(f"fmul {self.renderer.type} {vector}, {factor}")

    # --- rows of the first operand

    def _render_rows(self, rows: int) -> str:
        """Return the function that packs rows: the elements of all rows at one k are adjacent.

        Rows that are adjacent in memory are copied as a vector; those of the next tile are
        prefetched.
        """
        r = self.renderer
        w = r.writer()
        t, nbytes = f"<{rows} x {r.real}>", str(rows * r.size)
        is_near = w.let(f"icmp eq i64 %a_row, {r.size}")
        slot = w.counter("0")
        with w.loop_from(slot, w.select_i64(is_near, "%count", "0"), 1) as k:
            source = r.move(w, "%a", (k, "%a_col"))
            x = w.let(f"load {t}, ptr {source}, align {r.size}")
            w.emit(f"store {t} {x}, ptr {r.move(w, '%to', (k, nbytes))}, align {r.size}")
            prefetch(w, r.move(w, source, ("1", nbytes)), 1)
        with w.loop_from(slot, "%count", 1) as k:
            source = r.move(w, "%a", (k, "%a_col"))
            target = r.move(w, "%to", (k, nbytes))
            for i in range(rows):
                at = r.move(w, source, (str(i), "%a_row"))
                r.copy_element(w, at, r.move(w, target, (str(i), str(r.size))))
        parameters = "i64 %count, ptr %a, i64 %a_row, i64 %a_col, ptr %to"
        return r.function(f"pack_{rows}", parameters, w, "internal ")

    def _render_cast_rows(self) -> str:
        """Return the function that casts rows, each into PRODUCT_BLOCK contiguous elements."""
        r = self.renderer
        w = r.writer()
        pairs, stride = self._find_pairs(w), self._find_stride(w, "%a_col")
        is_near = w.let(f"icmp eq i64 %a_col, {self.element_bytes}")
        near = w.select_i64(is_near, pairs, "0")
        with w.loop("0", "%rows") as row:
            source = r.move(w, "%a", (row, "%a_row"))
            target = r.move(w, "%to", (row, str(PRODUCT_BLOCK * r.size)))
            slot, factor, factors = w.counter("0"), "", None
            if self._scales:
                at = r.move(w, "%scale", (row, "%scale_step"))
                factor = w.let(f"load {r.real}, ptr {at}, align {r.size}")
                factors = w.splat(r.real, factor)
            with w.loop_from(slot, near, r.width) as k:
                vector = self.load_along(w, r.move(w, source, (k, str(self.element_bytes))))
                vector = self.scale(w, vector, factors)
                r.store(w, vector, r.move(w, target, (k, str(r.size))))
            with w.loop_from(slot, "%count", 1) as k:
                is_pair = w.let(f"icmp slt i64 {k}, {pairs}")
                x = self.load_one(w, r.move(w, source, (k, "%a_col")), stride, is_pair)
                x = w.let(f"fmul {r.real} {x}, {factor}") if factor else x
                at = r.move(w, target, (k, str(r.size)))
                w.emit(f"store {r.real} {x}, ptr {at}, align {r.size}")
        parameters = (
            "i64 %count, ptr %a, i64 %a_row, i64 %a_col, i64 %limit, ptr %scale, "
            "i64 %scale_step, i64 %rows, ptr %to"
        )
        return r.function(self.rows_name, parameters, w, "internal ")

    # --- columns of the second operand

    def _render_columns(self) -> str:
        """Return the function that packs %valid columns into a panel and pads it with zeros."""
        r = self.renderer
        w = r.writer()
        end = w.new_label()
        pairs, stride = self._find_pairs(w), self._find_stride(w, "%b_row")
        is_whole = w.let(f"icmp eq i64 %valid, {r.panel}")
        has_rows = w.let(f"icmp eq i64 %b_col, {self._bytes}")
        has_columns = w.let(f"icmp eq i64 %b_row, {self.element_bytes}")
        masks = [
            w.prefix_mask(w.i64("sub", "%valid", str(j * r.width)), r.width)
            for j in range(self._vectors)
        ]
        factors = self.load_scales(w, "%valid")
        cases: tuple[tuple[str, Sequence[str | None]], ...] = (
            (w.let(f"and i1 {has_rows}, {is_whole}"), [None] * self._vectors),
            (has_rows, masks),
        )
        for condition, used in cases:
            with r.last_case(w, condition, end):
                slot = w.counter("0")
                with w.loop_from(slot, pairs, 1) as k:
                    self._copy_columns(w, k, stride, used, factors, True)
                if r.pairs:
                    with w.loop_from(slot, "%count", 1) as k:
                        self._copy_columns(w, k, stride, used, factors, False)
        slot = w.counter("0")
        with w.if_then(w.let(f"and i1 {has_columns}, {is_whole}")):
            if self.cast is None:
                self._copy_lines(w, slot)
            else:
                self._copy_turned(w, slot, pairs, factors)
        with w.loop_from(slot, "%count", 1) as k:
            is_pair = w.let(f"icmp slt i64 {k}, {pairs}")
            source = r.move(w, "%b", (k, "%b_row"))
            target = r.move(w, "%to", (k, str(r.panel * r.size)))
            for j in range(self._vectors):
                r.store(w, "zeroinitializer", r.move(w, target, (str(j), str(r.native))))
            with w.loop("0", "%valid") as column:
                x = self.load_one(w, r.move(w, source, (column, "%b_col")), stride, is_pair)
                if self._scales:
                    at = r.move(w, "%scale", (column, "%scale_step"))
                    factor = w.let(f"load {r.real}, ptr {at}, align {r.size}")
                    x = w.let(f"fmul {r.real} {x}, {factor}")
                at = r.move(w, target, (column, str(r.size)))
                w.emit(f"store {r.real} {x}, ptr {at}, align {r.size}")
        w.enter_block(end)
        parameters = (
            "i64 %count, ptr %b, i64 %b_row, i64 %b_col, i64 %limit, ptr %scale, "
            "i64 %scale_step, i64 %valid, ptr %to"
        )
        return r.function(self.columns_name, parameters, w, "internal ")

    def _copy_columns(
        self,
        w: FunctionWriter,
        k: str,
        stride: str,
        masks: Sequence[str | None],
        factors: Sequence[str | None],
        is_pair: bool,
    ) -> None:
        """Append the packing of one k: a row of the panel, from contiguous columns."""
        r = self.renderer
        source = r.move(w, "%b", (k, "%b_row"))
        target = r.move(w, "%to", (k, str(r.panel * r.size)))
        for j, (mask, factor) in enumerate(zip(masks, factors, strict=True)):
            at = r.move(w, source, (str(j), str(r.width * self._bytes)))
            vector = self.scale(w, self._load_across(w, at, stride, mask, is_pair), factor)
            r.store(w, vector, r.move(w, target, (str(j), str(r.native))))

    def _copy_lines(self, w: FunctionWriter, slot: Slot) -> None:
        """Append the packing of columns that are contiguous along k, transposed in registers."""
        whole, r = self.renderer, self.renderer.narrow
        far = w.i64("mul", "%b_col", str(r.piece))
        starts = [(str(j), "%b_col") for j in range(0, whole.panel, r.width)]
        vectors = [Lines(r, w, r.move(w, "%b", start), "%b_col", far) for start in starts]
        for pieces in (CACHE_LINE_BYTES // PIECE_BYTES, 1):
            with w.loop_from(slot, "%count", pieces * r.piece) as k:
                for piece in range(pieces):
                    if pieces > 1 and piece < len(vectors):
                        vectors[piece].prefetch(PREFETCH_BYTES)
                    start = w.i64("add", k, str(piece * r.piece))
                    self._copy_pieces(w, vectors, start)

    def _copy_pieces(self, w: FunctionWriter, vectors: Sequence[Lines], k: str) -> None:
        """Append the transposed copy of 16 bytes of each column to the rows from `k` on."""
        row_bytes, r = str(self.renderer.panel * self.renderer.size), self.renderer.narrow
        target = r.move(w, "%to", (k, row_bytes))
        for j, lines in enumerate(vectors):
            for i, vector in enumerate(lines.load()):
                at = r.move(w, target, (str(i), row_bytes), (str(j), str(r.native)))
                r.store(w, vector, at)
            lines.advance(str(PIECE_BYTES))

    def _copy_turned(
        self, w: FunctionWriter, slot: Slot, stop: str, factors: Sequence[str | None]
    ) -> None:
        """Append the cast and packing of columns contiguous along k: squares are transposed."""
        r = self.renderer
        with w.loop_from(slot, stop, r.width) as k:
            for j in range(self._vectors):
                base = r.move(w, "%b", (str(j * r.width), "%b_col"))
                for i, vector in enumerate(r.load_turned(w, base, k, "%b_col", self)):
                    line = self.scale(w, vector, factors[j])
                    at = r.move(w, "%to", (w.i64("add", k, str(i)), str(r.panel * r.size)))
                    r.store(w, line, r.move(w, at, (str(j), str(r.native))))


def column_packers(packers: Sequence[Packer]) -> list[str]:
    """Return the names of the column packing functions, indexed by the number of the cast."""
    return [f"{p.renderer.letter}{p.columns_name}" for p in packers]


def list_turned_tiles(packers: Sequence[Packer]) -> list[str]:
    """Return the names of the tiles that read columns contiguous along k in place, by cast.

    Products of pairs have none.
    """
    return [f"{p.renderer.letter}{p.turned_name}" for p in packers if not p.renderer.pairs]


def row_packers(packers: Sequence[Packer]) -> list[str]:
    """Return the names of the functions that cast rows; the first packer may have none."""
    return [f"{p.renderer.letter}{p.rows_name}" for p in packers if p.cast is not None]
