"""`dt.show(x)`: a picture of the memory that a tensor views, and of the way that it takes there.

A `Picture` has a panel for each tensor: what it is, its elements as a table, and the cells of its
storage, in the colours of the order in which a walk through the view, row by row, meets them. What
is shown of much is its beginning and its end. All of it is SVG, without a script.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from html import escape
from itertools import product
from math import prod
from pathlib import Path
from typing import NamedTuple

from ..arguments import sequence
from ..errors import ArgumentError
from ..layout import Shape
from ..tensor.tensor import Tensor, parts_of, required
from .drawing import page, write

__all__ = ["show"]

CELL, HIGH = 46, 38  # of a cell, in pixels
COLUMNS = 8  # of a table, and cells of memory in a line
ROWS = 8  # of a table
TABLES = 3  # of a tensor of more than two dimensions
LINES = 8  # of memory
WIDTH = COLUMNS * CELL + 2
LETTERS = 52  # in a line of text of that width
SOLUTIONS = 32  # elements of a view that are looked for in one cell
# From light to dark, so that they differ in grey, too.
FIRST, LAST = (222, 235, 247), (8, 69, 148)


class View(NamedTuple):
    """A strided view of a storage: all that a picture of it needs."""

    title: str
    shape: Shape
    strides: Shape
    offset: int
    cells: int  # elements that the storage has
    tensor: Tensor  # all of them, as a vector
    facts: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many elements the view has."""
        return prod(self.shape)

    def position(self, index: Sequence[int]) -> int:
        """The cell of an element."""
        return self.offset + sum(i * s for i, s in zip(index, self.strides, strict=True))

    def visits(self, cell: int) -> tuple[int, int | None]:
        """How many elements are in a cell, and the place of the first of them in a walk."""
        axes = sorted(range(len(self.shape)), key=lambda d: -abs(self.strides[d]))
        steps = [0] * len(self.shape)  # of places in the walk, by axis
        step = 1
        for d in reversed(range(len(self.shape))):
            steps[d], step = step, step * self.shape[d]
        still = [d for d in axes if not self.strides[d]]
        moving = [d for d in axes if self.strides[d]]
        repeats = prod(self.shape[d] for d in still)
        if not self.size:
            return 0, None
        found = [*self._solutions(cell - self.offset, moving, steps)]
        return (len(found) * repeats, min(found)) if found else (0, None)

    def _solutions(self, rest: int, axes: list[int], steps: list[int]) -> Iterator[int]:
        """The places of elements that lie `rest` from the first one, at most a few."""
        if not axes:
            if rest == 0:
                yield 0
            return
        d, others = axes[0], axes[1:]
        spans = [(self.shape[o] - 1) * self.strides[o] for o in others]
        low, high = sum(min(s, 0) for s in spans), sum(max(s, 0) for s in spans)
        stride = self.strides[d]
        near, far = (rest - high, rest - low) if stride > 0 else (rest - low, rest - high)
        first, last = max(0, -(-near // stride)), min(self.shape[d] - 1, far // stride)
        met = 0
        for i in range(first, last + 1):
            for found in self._solutions(rest - i * stride, others, steps):
                yield found + i * steps[d]
                met += 1
                if met >= SOLUTIONS:
                    return


class Picture:
    """What `dt.show` gives: a notebook draws it, `save` keeps it, `print` says it in text.

    `svg`: one drawing. `html`: a panel for each tensor, side by side where there is room.
    """

    def __init__(self, panels: Sequence[tuple[tuple[View, ...], Pattern | None]]) -> None:
        self._panels = tuple(panels)

    def svg(self) -> str:
        """All panels in one drawing, side by side."""
        drawn = [_panel(views, pattern) for views, pattern in self._panels]
        width, height = len(drawn) * (WIDTH + 30) + 10, max(h for _, h in drawn) + 20
        inner = "".join(
            f'<g transform="translate({20 + i * (WIDTH + 30)} 10)">{text}</g>'
            for i, (text, _) in enumerate(drawn)
        )
        return _svg(inner, width, height, self._said())

    def html(self) -> str:
        """A panel for each tensor; on a narrow screen they are below each other."""
        found = []
        for views, pattern in self._panels:
            text, height = _panel(views, pattern)
            inner = f'<g transform="translate(10 10)">{text}</g>'
            found.append(_svg(inner, WIDTH + 20, height + 20, views[0].title))
        return (
            '<div style="display:flex;flex-wrap:wrap;gap:12px;align-items:flex-start">'
            f"{''.join(found)}</div>"
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a file, .svg or .html, and returns its path.

        Raises: ArgumentError for another kind of file; OSError.
        """
        return write(path, self.svg(), page(self._said(), self.html(), "#fff", "light"))

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return self.html()

    def _said(self) -> str:
        return "; ".join(views[0].title for views, _ in self._panels)

    def __repr__(self) -> str:
        return f"<Picture of {self._said()}>"

    def __str__(self) -> str:
        return "\n\n".join("\n".join(_lines(v)) for views, _ in self._panels for v in views)


def show(*tensors: Tensor) -> Picture:
    """A picture of where tensors' elements lie in memory, for notebooks and files.

    The darker a cell of memory, the later a walk through the view, row by row, comes there; cells
    that it does not touch are grey, and one that it meets several times says how often. Several
    tensors are drawn side by side: `dt.show(x, x.T)`. Of much the beginning and the end are shown.
    Tensors that are pending are computed.
    Shapes: any.
    Dtypes: all.
    Raises: DTypeError for what is no tensor, ArgumentError for none.

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
    given = sequence("show", tensors, "tensors", "tensors")
    if not given:
        raise ArgumentError("show: needs at least one tensor: dt.show(x), dt.show(x, x.T)")
    panels: list[tuple[tuple[View, ...], Pattern | None]] = []
    storages: list[int] = []
    for x in tensors:
        parts = parts_of(required("show", x))
        if type(x) is Tensor:
            memory = id(x.storage())
            shared = storages.index(memory) + 1 if memory in storages else 0
            storages.append(memory)
            panels.append(((_view(x, "", shared),), None))
            continue
        storages.append(0)
        names = _names_of_parts(x, len(parts))
        views = tuple(_view(p, name) for p, name in zip(parts, names, strict=True))
        head = f"{x.dtype.name} {_shape(x.shape)} on {x.device}, {x.layout.name}"
        own = View(head, (), (), 0, 0, x, (f"{len(parts)} parts, {x.nbytes} bytes",))
        panels.append(((own, *views), _pattern(x, parts)))
    return Picture(panels)


# --- what is drawn --------------------------------------------------------------------------------


def _view(x: Tensor, name: str, shared: int = 0) -> View:
    """What there is to say of a strided tensor, which is computed."""
    cells = x.storage().view(x.dtype)
    strides, offset = x.stride(), x.storage_offset()
    title = f"{x.dtype.name} {_shape(x.shape)} on {x.device}"
    title = f"{name}: {title}" if name else title
    how = f"strides {_shape(strides)}, offset {offset}, {x.itemsize} byte"
    how += f"{'s' * (x.itemsize != 1)} an element"
    view = View(title, x.shape, strides, offset, cells.size, cells, ())
    touched = _touched(view)
    of = f"touches {touched} of {cells.size} cell{'s' * (cells.size != 1)}"
    order = "row by row" if x.is_contiguous() and x.size == cells.size else "not row by row"
    if 0 in [s for n, s in zip(x.shape, strides, strict=True) if n > 1]:
        order = "stride 0 repeats elements"
    elif any(s < 0 for s in strides):
        order = "a negative stride walks back"
    same = (f"the same memory as picture {shared}",) if shared else ()
    return view._replace(facts=(how, f"{of}, {order}", *same))


def _touched(v: View) -> str:
    """How many cells a view touches."""
    moving = sorted(
        (abs(s), n) for n, s in zip(v.shape, v.strides, strict=True) if s and n > 1
    )  # fmt: skip
    if not v.size:
        return "0"
    reach, apart = 0, True
    for s, n in moving:
        apart &= s > reach
        reach += s * (n - 1)
    if apart:
        return str(prod(n for _, n in moving))
    if v.cells <= 1 << 12:
        return str(sum(v.visits(c)[0] > 0 for c in range(v.cells)))
    return f"at most {min(v.cells, prod(n for _, n in moving))}"


def _shape(sizes: Shape) -> str:
    """A tuple for a line of text."""
    if len(sizes) <= 6:
        return str(sizes)
    first, last = ", ".join(map(str, sizes[:3])), ", ".join(map(str, sizes[-2:]))
    return f"({first}, ..., {last})"


def _some(n: int, most: int) -> list[int | None]:
    """Which of n there is room for: the first ones, None for those left out, and the last."""
    if n <= most:
        return [*range(n)]
    return [*range(most - 2), None, n - 1]


def _text(value: object) -> str:
    """A value that a cell has room for."""
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, complex):
        return f"{value:.2g}"
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 7 else f"{value:.1e}"


def _values(v: View, cells: Sequence[int]) -> dict[int, str]:
    """The values of cells, as text; they are read together."""
    if not cells:
        return {}
    low, high = min(cells), max(cells) + 1
    if high - low <= 4 * len(cells):
        found = dict(zip(range(low, high), v.tensor[low:high].tolist(), strict=True))  # type: ignore[arg-type]  # a vector
        return {c: _text(found[c]) for c in cells}
    picked: list[object] = v.tensor[list(cells)].tolist()  # type: ignore[assignment]  # as above
    return {c: _text(value) for c, value in zip(cells, picked, strict=True)}


def _colour(place: int | None, of: int) -> tuple[str, str]:
    """The colours of a cell, and of the text in it, by its place in a walk."""
    if place is None:
        return "#f4f4f5", "#71717a"
    t = place / max(of - 1, 1)
    r, g, b = (round(a + (b - a) * t) for a, b in zip(FIRST, LAST, strict=True))
    return f"#{r:02x}{g:02x}{b:02x}", "#fff" if t > 0.66 else "#111"


def _brief(n: int, digits: int = 5) -> str:
    """A count or a place that the corner of a cell has room for."""
    return str(n) if n < 10**digits else f"{n:.0e}".replace("e+0", "e").replace("e+", "e")


def _at(place: int) -> str:
    """A place, which has a corner to itself: neighbours are told apart."""
    return f"@{_brief(place, 7)}"


def _cell(
    left: int, top: int, value: str, above: str, below: str, place: int | None, of: int
) -> str:
    """A cell: its value, what is small above it, and below."""
    fill, ink = _colour(place, of)
    size = 13 if len(value) <= 5 else 11 if len(value) <= 6 else 9
    middle = left + CELL // 2
    dashed = ' stroke-dasharray="3 2"' if place is None else ""
    found = [
        f'<rect x="{left}" y="{top}" width="{CELL}" height="{HIGH}" fill="{fill}" '
        f'stroke="#a1a1aa"{dashed}/>',
        f'<text x="{middle}" y="{top + 24}" font-size="{size}" fill="{ink}" '
        f'text-anchor="middle">{escape(value)}</text>',
    ]
    if above:
        found.append(
            f'<text x="{left + 3}" y="{top + 10}" font-size="9" fill="{ink}" '
            f'opacity=".8">{above}</text>'
        )
    if below:
        found.append(
            f'<text x="{left + CELL - 3}" y="{top + HIGH - 4}" font-size="9" fill="{ink}" '
            f'text-anchor="end" opacity=".8">{below}</text>'
        )
    return "".join(found)


def _note(left: int, top: int, text: str, size: int = 11, weight: str = "normal") -> str:
    room = LETTERS if size <= 11 else LETTERS - 8
    text = text if len(text) <= room else text[: room - 3] + "..."
    return (
        f'<text x="{left}" y="{top}" font-size="{size}" font-weight="{weight}" '
        f'fill="#27272a">{escape(text)}</text>'
    )


def _svg(inner: str, width: int, height: int, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" style="max-width:100%;height:auto" role="img" '
        "font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\">"
        f"<title>{escape(title)}</title>"
        f'<rect width="{width}" height="{height}" rx="6" fill="#fff"/>{inner}</svg>'
    )


def _panel(views: tuple[View, ...], pattern: Pattern | None) -> tuple[str, int]:
    """The drawing of a tensor, and how high it is."""
    found, top = [], 0
    for i, v in enumerate(views):
        top += 14 + 12 * bool(i)
        found.append(_note(0, top, v.title, 13, "bold"))
        for fact in v.facts:
            top += 16
            found.append(_note(0, top, fact))
        top += 10
        if pattern is not None and i == 0:
            text, top = _pattern_table(pattern, top)
            found.append(text)
        elif len(views) == 1 and v.shape:
            text, top = _tables(v, top)
            found.append(text)
        if v.cells:
            text, top = _memory(v, top, len(views) == 1)
            found.append(text)
    return "".join(found), top


def _tables(v: View, top: int) -> tuple[str, int]:
    """The elements as tables: above each its cell in memory, below it when a walk comes there."""
    found: list[str] = []
    rows, columns = (1, *v.shape)[-2:] if len(v.shape) == 1 else v.shape[-2:]
    matrices = v.shape[:-2]
    leading = [*product(*(_some(n, TABLES + 1) for n in matrices))]
    shown = [index for index in leading if None not in index]
    if not v.size:
        return _note(0, top + 14, "no elements") + "", top + 22
    for at in shown[:TABLES]:
        if matrices:
            top += 14
            found.append(_note(0, top, f"[{', '.join(map(str, at))}, :, :]"))
            top += 5
        text, top = _table(v, tuple(i for i in at if i is not None), rows, columns, top)
        found.append(text)
    more = prod(matrices) - min(len(shown), TABLES)
    if more > 0:
        top += 13
        found.append(_note(0, top, f"... and {more} more of these"))
    return "".join(found), top + 6


def _table(v: View, at: Shape, rows: int, columns: int, top: int) -> tuple[str, int]:
    down, across = _some(rows, ROWS), _some(columns, COLUMNS)
    flat = len(v.shape) == 1
    places = {
        (r, c): v.position((c,) if flat else (*at, r, c))
        for r in down for c in across
        if r is not None and c is not None
    }  # fmt: skip
    values = _values(v, sorted({*places.values()}))
    before = 0
    for i, n in zip(at, v.shape[: len(at)], strict=True):
        before = before * n + i
    found = []
    for line, r in enumerate(down):
        for column, c in enumerate(across):
            left, high = 1 + column * CELL, top + line * HIGH
            if r is None or c is None:
                found.append(
                    f'<text x="{left + CELL // 2}" y="{high + 23}" font-size="13" fill="#71717a" '
                    'text-anchor="middle">...</text>'
                )
                continue
            cell = places[r, c]
            order = (before * rows + r) * columns + c
            found.append(_cell(left, high, values[cell], _at(cell), "", order, v.size))
    return "".join(found), top + len(down) * HIGH + 4


def _memory(v: View, top: int, walked: bool) -> tuple[str, int]:
    """The cells of the storage: above each where it is, below it when a walk comes there."""
    top += 16
    line = "memory: @ cell" + (", # place in the walk, x how often" if walked else "")
    found = [_note(0, top, line)]
    top += 6
    cells = _shown_cells(v)
    values = _values(v, [c for c in cells if c is not None])
    for n, c in enumerate(cells):
        left, high = 1 + n % COLUMNS * CELL, top + n // COLUMNS * HIGH
        if c is None:
            found.append(
                f'<text x="{left + CELL // 2}" y="{high + 23}" font-size="13" fill="#71717a" '
                'text-anchor="middle">...</text>'
            )
            continue
        times, first = v.visits(c)
        often = f" x{_brief(times)}" if times > 1 else ""
        seen = "" if first is None or not walked else f"#{_brief(first)}{often}"
        found.append(_cell(left, high, values[c], _at(c), seen, first, v.size))
    return "".join(found), top + -(-len(cells) // COLUMNS) * HIGH + 4


def _shown_cells(v: View) -> list[int | None]:
    """The cells that are drawn: the first ones, where the view begins, and the last."""
    most = LINES * COLUMNS
    if v.cells <= most:
        return [*range(v.cells)]
    start = v.offset if v.size else 0
    blocks = [range(COLUMNS), range(start - COLUMNS, start + 4 * COLUMNS)]
    blocks.append(range(v.cells - COLUMNS, v.cells))
    wanted = sorted({c for block in blocks for c in block if 0 <= c < v.cells})
    found: list[int | None] = []
    for c in wanted:
        if found and found[-1] != c - 1:
            found.append(None)
        found.append(c)
    return found


# --- other layouts --------------------------------------------------------------------------------


class Pattern(NamedTuple):
    """Where the entries of a sparse matrix are: by row and column which one."""

    shape: Shape
    entries: dict[tuple[int, int], int]
    values: list[str]


def _names_of_parts(x: Tensor, count: int) -> list[str]:
    """What the parts of a layout are called here."""
    if x.layout.name == "sparse_coo":
        return [*(f"indices, axis {d}" for d in range(count - 1)), "values"]
    return [f"part {n}" for n in range(count)]


def _pattern(x: Tensor, parts: Sequence[Tensor]) -> Pattern | None:
    """The entries of a sparse vector or matrix of which there are few."""
    if x.layout.name != "sparse_coo" or not 1 <= x.ndim <= 2 or parts[-1].ndim != 1:
        return None
    if parts[-1].size > 1 << 12 or len(parts) != x.ndim + 1:
        return None
    places: list[list[int]] = [p.tolist() for p in parts[:-1]]  # type: ignore[misc]  # vectors
    kept: list[object] = parts[-1].tolist()  # type: ignore[assignment]  # a vector
    rows = places[0] if x.ndim == 2 else [0] * parts[-1].size
    entries = {place: n for n, place in enumerate(zip(rows, places[-1], strict=True))}
    values = [_text(value) for value in kept]
    shape = x.shape if x.ndim == 2 else (1, *x.shape)
    return Pattern(shape, entries, values)


def _pattern_table(pattern: Pattern, top: int) -> tuple[str, int]:
    """A table with the entries alone, in the order in which they are kept."""
    down, across = _some(pattern.shape[0], ROWS), _some(pattern.shape[1], COLUMNS)
    found, count = [], len(pattern.values)
    for line, r in enumerate(down):
        for column, c in enumerate(across):
            left, high = 1 + column * CELL, top + line * HIGH
            n = None if r is None or c is None else pattern.entries.get((r, c))
            if r is None or c is None:
                found.append(
                    f'<text x="{left + CELL // 2}" y="{high + 23}" font-size="13" fill="#71717a" '
                    'text-anchor="middle">...</text>'
                )
            elif n is None:
                found.append(_cell(left, high, "", "", "", None, count))
            else:
                found.append(_cell(left, high, pattern.values[n], f"#{_brief(n)}", "", n, count))
    return "".join(found), top + len(down) * HIGH + 4


# --- as text --------------------------------------------------------------------------------------


def _lines(v: View) -> Iterator[str]:
    """A view as lines of text: for each cell its value, and when a walk comes there."""
    yield from (v.title, *v.facts)
    cells = _shown_cells(v)
    values = _values(v, [c for c in cells if c is not None])
    for start in range(0, len(cells), 2 * COLUMNS):
        columns = []
        for c in cells[start : start + 2 * COLUMNS]:
            times, first = (0, None) if c is None else v.visits(c)
            walk = "." if first is None else str(first) + (f"x{times}" if times > 1 else "")
            columns.append(("...",) * 3 if c is None else (str(c), values[c], walk))
        wide = [max(3, *map(len, column)) for column in columns]
        for name, row in zip(("cell", "value", "walk"), zip(*columns, strict=True), strict=True):
            yield f"{name:>6} " + " ".join(t.rjust(n) for t, n in zip(row, wide, strict=True))
