"""Pictures of the memory that a tensor views: `dt.show(x)`.

A `Picture` has a panel for each tensor: a title, its elements as a table, and the cells of its
storage. Cells are coloured by the order in which a walk through the view, row by row, meets them.
Large tables show their beginning and their end. All of it is SVG, without a script.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from html import escape
from itertools import product
from math import gcd, prod
from pathlib import Path
from typing import NamedTuple

from ..argument_checks import sequence
from ..errors import ArgumentError
from ..layout import Shape
from ..tensor.c_fields import is_strided
from ..tensor.tensor import Tensor, parts_of, required
from .svg_boxes import page, write_drawing

__all__ = ["show"]

CELL_WIDTH, CELL_HEIGHT = 46, 38  # of a cell, in pixels
TABLE_COLUMNS_MAX = 8  # of a table, and cells of memory in a line
TABLE_ROWS_MAX = 8  # of a table
TABLES_MAX = 3  # of a tensor of more than two dimensions
MEMORY_LINES_MAX = 8  # of memory
WIDTH = TABLE_COLUMNS_MAX * CELL_WIDTH + 2
LINE_LETTERS_MAX = 52  # in a line of text of that width
SEARCH_STEPS_MAX = 4_000  # of the search for the elements in one cell; they take 10 ms
# From light to dark, so that they differ in grey, too.
FIRST_COLOR, LAST_COLOR = (222, 235, 247), (8, 69, 148)


class MemoryView(NamedTuple):
    """A strided view of a storage, with all facts that its picture needs."""

    title: str
    shape: Shape
    strides: Shape
    offset: int
    cells: int  # elements of the storage
    tensor: Tensor  # the whole storage, as a vector
    facts: tuple[str, ...]

    @property
    def size(self) -> int:
        """Return the number of elements of the view."""
        return prod(self.shape)

    def position(self, index: Sequence[int]) -> int:
        """Return the storage cell of the element at an index."""
        return self.offset + sum(i * s for i, s in zip(index, self.strides, strict=True))

    def count_visits(self, cell: int) -> Visits | None:
        """Return the elements in a cell; None if the search takes more than SEARCH_STEPS_MAX."""
        if not self.size:
            return Visits(0, None)
        axes, repeats, step = [], 1, 1  # axes of stride 0 repeat the elements of the others
        for stride, n in zip(reversed(self.strides), reversed(self.shape), strict=True):
            if stride and n > 1:
                axes.append(_Axis(stride, n, step))
            elif not stride:
                repeats *= n
            step *= n
        axes.sort(key=lambda axis: -abs(axis.stride))
        try:
            visits = _VisitSearch(axes).find(cell - self.offset, 0)
        except _SearchError:
            return None
        return Visits(visits.times * repeats, visits.first)


class Visits(NamedTuple):
    """The number of elements in a cell, and how many elements a walk by rows meets before them.

    `first` is None if the cell has no element.
    """

    times: int
    first: int | None


class _Axis(NamedTuple):
    """An axis of a view: its stride in memory, its size, and its step in a walk by rows."""

    stride: int
    size: int
    step: int

    def range_towards(self, low: int, high: int) -> tuple[int, int]:
        """Return the first and last index whose distance is from `low` to `high`."""
        if self.stride < 0:
            low, high = -high, -low
        stride = abs(self.stride)
        return max(0, -(-low // stride)), min(self.size - 1, high // stride)


class _SearchError(Exception):
    """The search for the elements in a cell takes too many steps."""


class _VisitSearch:
    """A search for the elements of a view in one cell; the axis of the largest stride is first.

    It tries the indices of an axis from which the axes behind it can reach the cell. The last two
    axes are one linear Diophantine equation.
    """

    def __init__(self, axes: list[_Axis]) -> None:
        self._axes = axes
        self._steps = 0
        self._visits: dict[tuple[int, int], Visits] = {}
        self._reach = [(0, 0)]  # by axis: the lowest and highest distance of the axes from it on
        for axis in reversed(axes):
            low, high = self._reach[0]
            end = axis.stride * (axis.size - 1)
            self._reach.insert(0, (low + min(end, 0), high + max(end, 0)))

    def find(self, distance: int, depth: int) -> Visits:
        """Return the elements at a distance from the first one, over the axes from `depth` on.

        Raises: _SearchError.
        """
        visits = self._visits.get((distance, depth))
        if visits is None:
            visits = self._visits[distance, depth] = self._search(distance, depth)
        return visits

    def _search(self, distance: int, depth: int) -> Visits:
        """Find the elements without the cache."""
        left = self._axes[depth:]
        if not left:
            return Visits(1, 0) if distance == 0 else Visits(0, None)
        if len(left) == 2:
            return _solve_two_axes(distance, *left)
        low, high = self._reach[depth + 1]
        start, end = left[0].range_towards(distance - high, distance - low)
        count, first = 0, None
        for i in range(start, end + 1):
            self._steps += 1
            if self._steps > SEARCH_STEPS_MAX:
                raise _SearchError
            inner = self.find(distance - i * left[0].stride, depth + 1)
            if inner.first is not None:
                count += inner.times
                place = inner.first + i * left[0].step
                first = place if first is None else min(first, place)
        return Visits(count, first)


def _solve_two_axes(distance: int, a: _Axis, b: _Axis) -> Visits:
    """Return the elements with i * a.stride + j * b.stride == distance, in O(log(stride)).

    The solutions are i = start, start + period, ...; the walk position is linear in i, so the
    first element is at an end.
    """
    divisor = gcd(a.stride, b.stride)
    if distance % divisor:
        return Visits(0, None)
    period = abs(b.stride) // divisor
    residue = distance // divisor * pow(a.stride // divisor, -1, period) % period
    end = b.stride * (b.size - 1)
    start, last = a.range_towards(distance - max(end, 0), distance - min(end, 0))
    start += (residue - start) % period
    if start > last:
        return Visits(0, None)
    last -= (last - start) % period
    places = [i * a.step + (distance - i * a.stride) // b.stride * b.step for i in (start, last)]
    return Visits((last - start) // period + 1, min(places))


class Picture:
    """The result of `dt.show`: a notebook draws it, `save` writes it, `print` gives text.

    `svg`: one drawing. `html`: a panel for each tensor, side by side where there is room.
    """

    def __init__(
        self, panels: Sequence[tuple[tuple[MemoryView, ...], SparseEntries | None]]
    ) -> None:
        self._panels = tuple(panels)

    def svg(self) -> str:
        """Draw all panels in one SVG, side by side."""
        panels = [_draw_panel(views, pattern) for views, pattern in self._panels]
        width, height = len(panels) * (WIDTH + 30) + 10, max(h for _, h in panels) + 20
        inner = "".join(
            f'<g transform="translate({20 + i * (WIDTH + 30)} 10)">{text}</g>'
            for i, (text, _) in enumerate(panels)
        )
        return _wrap_svg(inner, width, height, self._join_titles())

    def html(self) -> str:
        """Render a panel for each tensor; a narrow screen shows them below each other."""
        drawings = []
        for views, pattern in self._panels:
            text, height = _draw_panel(views, pattern)
            inner = f'<g transform="translate(10 10)">{text}</g>'
            drawings.append(_wrap_svg(inner, WIDTH + 20, height + 20, views[0].title))
        return (
            '<div style="display:flex;flex-wrap:wrap;gap:12px;align-items:flex-start">'
            f"{''.join(drawings)}</div>"
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture as .svg or .html, and return the path.

        Raises: ArgumentError for another kind of file; OSError.
        """
        return write_drawing(
            path, self.svg(), page(self._join_titles(), self.html(), "#fff", "light")
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return self.html()

    def _join_titles(self) -> str:
        """Return the titles of all panels, joined."""
        return "; ".join(views[0].title for views, _ in self._panels)

    def __repr__(self) -> str:
        return f"<Picture of {self._join_titles()}>"

    def __str__(self) -> str:
        return "\n\n".join("\n".join(_format_lines(v)) for views, _ in self._panels for v in views)


def show(*tensors: Tensor) -> Picture:
    """Draw the positions of tensors' elements in memory, for notebooks and files.

    The darker a cell of memory, the later a walk through the view, row by row, comes there; cells
    that it does not touch are grey, and one that it meets several times says how often. Several
    tensors are drawn side by side: `dt.show(x, x.T)`. Large tables show the beginning and the end.
    Tensors that are pending are computed.

    - `tensors`: the tensors to draw.

    Shapes: any.
    Dtypes: all.
    Raises: DTypeError if an argument is not a tensor, ArgumentError for none.
    See also: `draw_graph`, `Tensor.stride`.

    >>> import dovetail as dt
    >>> x = dt.arange(6, device="reference").reshape(2, 3)
    >>> picture = dt.show(x, x.T)
    >>> picture.svg()[:4]
    '<svg'
    >>> print(dt.show(x.T[1:]))
    int64 (2, 2) on reference
    strides (1, 3), offset 1, 8 bytes an element
    touches 4 of 6 cells, not row by row
      cell   0   1   2   3   4   5
     value   0   1   2   3   4   5
      walk   .   0   2   .   1   3
    """
    listed = sequence("show", tensors, "tensors", "tensors")
    if not listed:
        raise ArgumentError(
            "show: expected at least one tensor, got none; use dt.show(x) or dt.show(x, x.T)"
        )
    panels: list[tuple[tuple[MemoryView, ...], SparseEntries | None]] = []
    storages: list[int] = []
    for x in tensors:
        strided_parts = parts_of(required("show", x))
        if is_strided(x):
            memory = id(x.storage())
            shared = storages.index(memory) + 1 if memory in storages else 0
            storages.append(memory)
            panels.append(((_view(x, "", shared),), None))
            continue
        storages.append(0)
        names = _name_parts(x, len(strided_parts))
        views = tuple(_view(p, name) for p, name in zip(strided_parts, names, strict=True))
        head = f"{x.dtype.name} {_format_shape(x.shape)} on {x.device}, {x.layout.name}"
        own = MemoryView(head, (), (), 0, 0, x, (f"{len(strided_parts)} parts, {x.nbytes} bytes",))
        panels.append(((own, *views), _read_sparse_entries(x, strided_parts)))
    return Picture(panels)


# --- panels ---------------------------------------------------------------------------------------


def _view(x: Tensor, name: str, shared: int = 0) -> MemoryView:
    """Evaluate a strided tensor, and return its view with the facts for its picture."""
    cells = x.storage().view(x.dtype)
    strides, offset = x.stride(), x.storage_offset()
    title = f"{x.dtype.name} {_format_shape(x.shape)} on {x.device}"
    title = f"{name}: {title}" if name else title
    strides_text = f"strides {_format_shape(strides)}, offset {offset}, {x.itemsize} byte"
    strides_text += f"{'s' * (x.itemsize != 1)} an element"
    view = MemoryView(title, x.shape, strides, offset, cells.size, cells, ())
    count = _count_touched(view)
    of = f"touches {count} of {cells.size} cell{'s' * (cells.size != 1)}"
    order = "row by row" if x.is_contiguous() and x.size == cells.size else "not row by row"
    if 0 in [s for n, s in zip(x.shape, strides, strict=True) if n > 1]:
        order = "stride 0 repeats elements"
    elif any(s < 0 for s in strides):
        order = "a negative stride walks back"
    same = (f"the same memory as picture {shared}",) if shared else ()
    return view._replace(facts=(strides_text, f"{of}, {order}", *same))


def _count_touched(v: MemoryView) -> str:
    """Return the number of cells that a view touches as text, "at most n" if too many."""
    moving = sorted((abs(s), n) for n, s in zip(v.shape, v.strides, strict=True) if s and n > 1)
    if not v.size:
        return "0"
    reach, is_disjoint = 0, True
    for s, n in moving:
        is_disjoint &= s > reach
        reach += s * (n - 1)
    if is_disjoint:
        return str(prod(n for _, n in moving))
    if v.cells <= 1 << 12:
        cells = 1  # bit c: an element is c cells above the lowest one
        for s, n in moving:
            cells = _repeat_bits(cells, s, n)
        return str(cells.bit_count())
    return f"at most {min(v.cells, prod(n for _, n in moving))}"


def _repeat_bits(bits: int, stride: int, times: int) -> int:
    """Return the union of `bits` shifted by 0, stride, ..., (times - 1) * stride."""
    union, count = bits, 1
    while count < times:
        shift = min(count, times - count)
        union |= union << shift * stride
        count += shift
    return union


def _format_shape(sizes: Shape) -> str:
    """Format a tuple of sizes; more than six are abbreviated."""
    if len(sizes) <= 6:
        return str(sizes)
    first, last = ", ".join(map(str, sizes[:3])), ", ".join(map(str, sizes[-2:]))
    return f"({first}, ..., {last})"


def _abbreviate_indices(n: int, count_max: int) -> list[int | None]:
    """Return the first of n indices, None for a gap, and the last, at most `count_max` in all."""
    if n <= count_max:
        return [*range(n)]
    return [*range(count_max - 2), None, n - 1]


def _format_value(value: object) -> str:
    """Format a value so that it fits a cell."""
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, complex):
        return f"{value:.2g}"
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 7 else f"{value:.1e}"


def _read_cell_texts(v: MemoryView, cells: Sequence[int]) -> dict[int, str]:
    """Read the values of storage cells on the host at once; return their texts by cell."""
    if not cells:
        return {}
    low, high = min(cells), max(cells) + 1
    if high - low <= 4 * len(cells):
        texts = dict(zip(range(low, high), v.tensor[low:high].tolist(), strict=True))  # type: ignore[arg-type]  # a vector
        return {c: _format_value(texts[c]) for c in cells}
    picked: list[object] = v.tensor[list(cells)].tolist()  # type: ignore[assignment]  # as above
    return {c: _format_value(value) for c, value in zip(cells, picked, strict=True)}


def _choose_colours(walk_position: int | None, walk_length: int) -> tuple[str, str]:
    """Return the fill and text colours of a cell by its walk position; grey for None."""
    if walk_position is None:
        return "#f4f4f5", "#71717a"
    t = walk_position / max(walk_length - 1, 1)
    r, g, b = (round(a + (b - a) * t) for a, b in zip(FIRST_COLOR, LAST_COLOR, strict=True))
    return f"#{r:02x}{g:02x}{b:02x}", "#fff" if t > 0.66 else "#111"


def _format_short_number(n: int, digits: int = 5) -> str:
    """Format a count; with more than `digits` digits as one digit and a power of ten."""
    return str(n) if n < 10**digits else f"{n:.0e}".replace("e+0", "e").replace("e+", "e")


def _format_position(place: int) -> str:
    """Format a cell's number with "@", with digits enough to tell neighbours apart."""
    return f"@{_format_short_number(place, 7)}"


def _draw_cell(
    left: int,
    top: int,
    value: str,
    above: str,
    below: str,
    walk_position: int | None,
    walk_length: int,
) -> str:
    """Draw a cell in SVG: its value, and the small texts above and below."""
    fill, ink = _choose_colours(walk_position, walk_length)
    size = 13 if len(value) <= 5 else 11 if len(value) <= 6 else 9
    middle = left + CELL_WIDTH // 2
    dashed = ' stroke-dasharray="3 2"' if walk_position is None else ""
    shapes = [
        f'<rect x="{left}" y="{top}" width="{CELL_WIDTH}" height="{CELL_HEIGHT}" fill="{fill}" '
        f'stroke="#a1a1aa"{dashed}/>',
        f'<text x="{middle}" y="{top + 24}" font-size="{size}" fill="{ink}" '
        f'text-anchor="middle">{escape(value)}</text>',
    ]
    if above:
        shapes.append(
            f'<text x="{left + 3}" y="{top + 10}" font-size="9" fill="{ink}" '
            f'opacity=".8">{above}</text>'
        )
    if below:
        shapes.append(
            f'<text x="{left + CELL_WIDTH - 3}" y="{top + CELL_HEIGHT - 4}" font-size="9" '
            f'fill="{ink}" '
            f'text-anchor="end" opacity=".8">{below}</text>'
        )
    return "".join(shapes)


def _draw_text_line(left: int, top: int, text: str, size: int = 11, weight: str = "normal") -> str:
    """Draw a line of text, cut to the panel's width."""
    letters_max = LINE_LETTERS_MAX if size <= 11 else LINE_LETTERS_MAX - 8
    text = text if len(text) <= letters_max else text[: letters_max - 3] + "..."
    return (
        f'<text x="{left}" y="{top}" font-size="{size}" font-weight="{weight}" '
        f'fill="#27272a">{escape(text)}</text>'
    )


def _wrap_svg(inner: str, width: int, height: int, title: str) -> str:
    """Return a whole SVG document on white, with a title."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" style="max-width:100%;height:auto" role="img" '
        "font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\">"
        f"<title>{escape(title)}</title>"
        f'<rect width="{width}" height="{height}" rx="6" fill="#fff"/>{inner}</svg>'
    )


def _draw_panel(views: tuple[MemoryView, ...], pattern: SparseEntries | None) -> tuple[str, int]:
    """Draw a tensor's panel: titles, tables and memory; return the SVG and its height."""
    shapes, top = [], 0
    for i, v in enumerate(views):
        top += 14 + 12 * bool(i)
        shapes.append(_draw_text_line(0, top, v.title, 13, "bold"))
        for fact in v.facts:
            top += 16
            shapes.append(_draw_text_line(0, top, fact))
        top += 10
        if pattern is not None and i == 0:
            text, top = _draw_sparse_table(pattern, top)
            shapes.append(text)
        elif len(views) == 1 and v.shape:
            text, top = _draw_tables(v, top)
            shapes.append(text)
        if v.cells:
            text, top = _draw_memory_cells(v, top, len(views) == 1)
            shapes.append(text)
    return "".join(shapes), top


def _draw_tables(v: MemoryView, top: int) -> tuple[str, int]:
    """Draw at most TABLES_MAX matrices below `top`; return the SVG and the new bottom."""
    shapes: list[str] = []
    rows, columns = (1, *v.shape)[-2:] if len(v.shape) == 1 else v.shape[-2:]
    matrices = v.shape[:-2]
    leading = [*product(*(_abbreviate_indices(n, TABLES_MAX + 1) for n in matrices))]
    shown = [index for index in leading if None not in index]
    if not v.size:
        return _draw_text_line(0, top + 14, "no elements") + "", top + 22
    for at in shown[:TABLES_MAX]:
        if matrices:
            top += 14
            shapes.append(_draw_text_line(0, top, f"[{', '.join(map(str, at))}, :, :]"))
            top += 5
        text, top = _draw_table(v, tuple(i for i in at if i is not None), rows, columns, top)
        shapes.append(text)
    more = prod(matrices) - min(len(shown), TABLES_MAX)
    if more > 0:
        top += 13
        shapes.append(_draw_text_line(0, top, f"... and {more} more of these"))
    return "".join(shapes), top + 6


def _draw_table(v: MemoryView, at: Shape, rows: int, columns: int, top: int) -> tuple[str, int]:
    """Draw a matrix of rows x columns, abbreviated, below `top`; return SVG and new bottom."""
    down, across = (
        _abbreviate_indices(rows, TABLE_ROWS_MAX),
        _abbreviate_indices(columns, TABLE_COLUMNS_MAX),
    )
    flat = len(v.shape) == 1
    positions = {
        (r, c): v.position((c,) if flat else (*at, r, c))
        for r in down
        for c in across
        if r is not None and c is not None
    }
    values = _read_cell_texts(v, sorted({*positions.values()}))
    matrix = 0
    for i, n in zip(at, v.shape[: len(at)], strict=True):
        matrix = matrix * n + i
    shapes = []
    for line, r in enumerate(down):
        for column, c in enumerate(across):
            left, high = 1 + column * CELL_WIDTH, top + line * CELL_HEIGHT
            if r is None or c is None:
                shapes.append(
                    f'<text x="{left + CELL_WIDTH // 2}" y="{high + 23}" font-size="13" '
                    f'fill="#71717a" '
                    'text-anchor="middle">...</text>'
                )
                continue
            cell = positions[r, c]
            order = (matrix * rows + r) * columns + c
            shapes.append(
                _draw_cell(left, high, values[cell], _format_position(cell), "", order, v.size)
            )
    return "".join(shapes), top + len(down) * CELL_HEIGHT + 4


def _draw_memory_cells(v: MemoryView, top: int, shows_walk: bool) -> tuple[str, int]:
    """Draw cells of the storage, numbered, below `top`; return the SVG and the new bottom."""
    top += 16
    line = "memory: @ cell" + (", # place in the walk, x how often" if shows_walk else "")
    shapes = [_draw_text_line(0, top, line)]
    top += 6
    cells = _select_cells(v)
    values = _read_cell_texts(v, [c for c in cells if c is not None])
    for n, c in enumerate(cells):
        left, high = (
            1 + n % TABLE_COLUMNS_MAX * CELL_WIDTH,
            top + n // TABLE_COLUMNS_MAX * CELL_HEIGHT,
        )
        if c is None:
            shapes.append(
                f'<text x="{left + CELL_WIDTH // 2}" y="{high + 23}" font-size="13" '
                f'fill="#71717a" '
                'text-anchor="middle">...</text>'
            )
            continue
        visits = v.count_visits(c)
        first = None if visits is None else visits.first
        walk = _format_short_walk(visits) if shows_walk else ""
        shapes.append(_draw_cell(left, high, values[c], _format_position(c), walk, first, v.size))
    return "".join(shapes), top + -(-len(cells) // TABLE_COLUMNS_MAX) * CELL_HEIGHT + 4


def _format_short_walk(visits: Visits | None) -> str:
    """Format the first walk position in a cell in a few letters; "#?" if it is not known."""
    if visits is None:
        return "#?"
    often = f" x{_format_short_number(visits.times)}" if visits.times > 1 else ""
    return "" if visits.first is None else f"#{_format_short_number(visits.first)}{often}"


def _select_cells(v: MemoryView) -> list[int | None]:
    """Return the cells to draw, with None for gaps: first, at the view's start, and last."""
    cells_max = MEMORY_LINES_MAX * TABLE_COLUMNS_MAX
    if v.cells <= cells_max:
        return [*range(v.cells)]
    start = v.offset if v.size else 0
    blocks = [
        range(TABLE_COLUMNS_MAX),
        range(start - TABLE_COLUMNS_MAX, start + 4 * TABLE_COLUMNS_MAX),
    ]
    blocks.append(range(v.cells - TABLE_COLUMNS_MAX, v.cells))
    wanted = sorted({c for block in blocks for c in block if 0 <= c < v.cells})
    shown: list[int | None] = []
    for c in wanted:
        if shown and shown[-1] != c - 1:
            shown.append(None)
        shown.append(c)
    return shown


# --- other layouts --------------------------------------------------------------------------------


class SparseEntries(NamedTuple):
    """The entries of a sparse matrix: row and column -> number."""

    shape: Shape
    entries: dict[tuple[int, int], int]
    values: list[str]


def _name_parts(x: Tensor, count: int) -> list[str]:
    """Return names for the parts of a layout, by position."""
    if x.layout.name == "sparse_coo":
        return [*(f"indices, axis {d}" for d in range(count - 1)), "values"]
    return [f"part {n}" for n in range(count)]


def _read_sparse_entries(x: Tensor, parts: Sequence[Tensor]) -> SparseEntries | None:
    """Read the entries of a COO vector or matrix on the host; return None for many or others."""
    if x.layout.name != "sparse_coo" or not 1 <= x.ndim <= 2 or parts[-1].ndim != 1:
        return None
    if parts[-1].size > 1 << 12 or len(parts) != x.ndim + 1:
        return None
    indices: list[list[int]] = [p.tolist() for p in parts[:-1]]  # type: ignore[misc]  # vectors
    entry_values: list[object] = parts[-1].tolist()  # type: ignore[assignment]  # a vector
    rows = indices[0] if x.ndim == 2 else [0] * parts[-1].size
    entries = {index: n for n, index in enumerate(zip(rows, indices[-1], strict=True))}
    values = [_format_value(value) for value in entry_values]
    shape = x.shape if x.ndim == 2 else (1, *x.shape)
    return SparseEntries(shape, entries, values)


def _draw_sparse_table(pattern: SparseEntries, top: int) -> tuple[str, int]:
    """Draw the stored entries as a table below `top`; return the SVG and the new bottom."""
    down, across = (
        _abbreviate_indices(pattern.shape[0], TABLE_ROWS_MAX),
        _abbreviate_indices(pattern.shape[1], TABLE_COLUMNS_MAX),
    )
    shapes, count = [], len(pattern.values)
    for line, r in enumerate(down):
        for column, c in enumerate(across):
            left, high = 1 + column * CELL_WIDTH, top + line * CELL_HEIGHT
            n = None if r is None or c is None else pattern.entries.get((r, c))
            if r is None or c is None:
                shapes.append(
                    f'<text x="{left + CELL_WIDTH // 2}" y="{high + 23}" font-size="13" '
                    f'fill="#71717a" '
                    'text-anchor="middle">...</text>'
                )
            elif n is None:
                shapes.append(_draw_cell(left, high, "", "", "", None, count))
            else:
                shapes.append(
                    _draw_cell(
                        left, high, pattern.values[n], f"#{_format_short_number(n)}", "", n, count
                    )
                )
    return "".join(shapes), top + len(down) * CELL_HEIGHT + 4


# --- as text --------------------------------------------------------------------------------------


def _format_lines(v: MemoryView) -> Iterator[str]:
    """Yield a view as lines of text: title, facts, and cells with value and walk position."""
    yield from (v.title, *v.facts)
    cells = _select_cells(v)
    values = _read_cell_texts(v, [c for c in cells if c is not None])
    for start in range(0, len(cells), 2 * TABLE_COLUMNS_MAX):
        columns = [
            ("...",) * 3 if c is None else (str(c), values[c], _format_walk(v.count_visits(c)))
            for c in cells[start : start + 2 * TABLE_COLUMNS_MAX]
        ]
        wide = [max(3, *map(len, column)) for column in columns]
        for name, row in zip(("cell", "value", "walk"), zip(*columns, strict=True), strict=True):
            yield f"{name:>6} " + " ".join(t.rjust(n) for t, n in zip(row, wide, strict=True))


def _format_walk(visits: Visits | None) -> str:
    """Format the first walk position in a cell: "." for no element, "?" if it is not known."""
    if visits is None:
        return "?"
    often = f"x{visits.times}" if visits.times > 1 else ""
    return "." if visits.first is None else f"{visits.first}{often}"
