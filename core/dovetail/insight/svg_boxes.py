"""Boxes and arrows as SVG, from top to bottom, and the HTML parts that all pages share.

No script, no style sheet and nothing from elsewhere; all text is escaped. Colours are those of the
page around it, so that it can be read on a dark page, too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ..argument_checks import path as file_name
from ..errors import ArgumentError

__all__: list[str] = []

FONT = "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:12px"
EDGES = "1px solid rgba(128,128,128,.35)"
# width of a letter, and distance of lines, in a text of 12 pixels
LETTER_WIDTH = 7.3
LINE_HEIGHT = 15
BOX_GAP, LAYER_GAP = 18, 46  # between boxes, and between layers
MARGIN = 10  # margin of a drawing
BOX_LETTERS_MAX = 44  # letters in a box; the whole text is its title
# By kind of box: its colour, and the opacity of its inside.
COLOURS = {
    "work": ("#2563eb", 0.16),
    "memory": ("#808080", 0.10),
    "result": ("#16a34a", 0.18),
    "gradient": ("#d97706", 0.18),
    "much": ("#dc2626", 0.18),
}


class Box(NamedTuple):
    """A box of a drawing: its lines, the first one bold, its kind, and its tooltip."""

    lines: tuple[str, ...]
    kind: str = "work"
    tip: str = ""


class Arrow(NamedTuple):
    """An arrow from one box to a later one, by number, with a text."""

    start: int
    end: int
    text: str = ""


def frame(inner: str) -> str:
    """Wrap HTML in a block with the font of all pages."""
    return f'<div style="{FONT};line-height:1.4;margin:2px 0">{inner}</div>'


def make_scrollable(svg: str) -> str:
    """Wrap a drawing in HTML that scrolls if the drawing is wider than the page."""
    return f'<div style="overflow:auto;max-width:100%;max-height:80vh">{svg}</div>'


def head(strong: str, text: str) -> str:
    """Render the first line of a block as HTML: a bold word and a text, escaped."""
    return f'<div style="margin:0 0 4px"><b>{escape(strong)}</b> {escape(text)}</div>'


def table(names: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Render an HTML table; its first `left` columns are words, the others numbers."""
    cell = f"border:{EDGES};padding:2px 7px"
    words, numbers = "white-space:pre-wrap;text-align:left", "white-space:pre;text-align:right"
    sides = [f"{cell};{words if i < left else numbers}" for i in range(len(names))]
    top = "".join(f'<th style="{s}">{escape(n)}</th>' for s, n in zip(sides, names, strict=True))
    body = "".join(
        '<tr style="background:transparent">'
        + "".join(f'<td style="{s}">{escape(t)}</td>' for s, t in zip(sides, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        '<div style="overflow:auto;max-width:100%"><table style="border-collapse:collapse;'
        f'margin:4px 0;font:inherit;border:0"><thead><tr>{top}</tr></thead><tbody>{body}</tbody>'
        "</table></div>"
    )


def collapsible(title: str, inner: str) -> str:
    """Wrap HTML in a block that is hidden until its title is clicked."""
    return (
        '<details style="margin:2px 0"><summary style="cursor:pointer">'
        f"{escape(title)}</summary>{inner}</details>"
    )


def preformatted(text: str) -> str:
    """Render text as HTML that keeps its lines, escaped."""
    return (
        '<pre style="margin:4px 0;padding:4px 8px;font:inherit;background:transparent;'
        f'color:inherit;border:{EDGES};max-height:360px;overflow:auto">{escape(text)}</pre>'
    )


def svg(inner: str, width: float, height: float, title: str) -> str:
    """Return an SVG document in the colour of the text around it, in its natural size."""
    w, h = round(width), round(height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" '
        f'viewBox="0 0 {w} {h}" role="img" fill="currentColor" style="{FONT};display:block">'
        f"<title>{escape(title)}</title>{inner}</svg>"
    )


def save_drawing(path: str | os.PathLike[str], title: str, drawing: str, html: str) -> Path:
    """Write a drawing as .svg, on white, or HTML as .html, light or dark as its reader has it.

    Raises: ArgumentError for another kind of file; OSError.
    """
    white = drawing.replace("</title>", '</title><rect width="100%" height="100%" fill="#fff"/>', 1)
    return write_drawing(path, white, page(title, html))


def write_drawing(path: str | os.PathLike[str], svg: str, page: str) -> Path:
    """Write the SVG or the page by the file's suffix; return the path.

    Raises: ArgumentError for another suffix.
    """
    to = Path(file_name("save", path))
    if to.suffix not in (".svg", ".html"):
        raise ArgumentError(f"save: the file must end in .svg or .html, got {to.name!r}")
    to.write_text(svg + "\n" if to.suffix == ".svg" else page, encoding="utf-8")
    return to


def page(title: str, html: str, ground: str = "", scheme: str = "light dark") -> str:
    """Return a whole HTML page. `ground`: its background; `scheme`: its colour schemes."""
    style = f"margin:12px;background:{ground}" if ground else "margin:12px"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="{scheme}">'
        f'<title>{escape(title)}</title></head><body style="{style}">{html}</body></html>\n'
    )


def seconds_text(seconds: float) -> str:
    """Format a time with three digits and a unit, such as "1.25 ms"."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.0f} ns"


def shorten(text: str, length_max: int = BOX_LETTERS_MAX) -> str:
    """Return a text, cut to `length_max` with "..." at the end if longer."""
    return text if len(text) <= length_max else text[: length_max - 3] + "..."


# --- boxes and arrows -----------------------------------------------------------------------------


def draw_boxes(boxes: Sequence[Box], arrows: Sequence[Arrow], title: str) -> str:
    """Draw boxes in layers in SVG, each below its inputs; arrows lead to higher numbers."""
    if not boxes:
        return svg(f'<text x="{MARGIN}" y="22">nothing to draw</text>', 160, 34, title)
    plan = _LayeredLayout(boxes, arrows)
    shapes = [plan.arrow(a, via) for a, via in zip(plan.arrows, plan.routes, strict=True)]
    shapes += [
        _draw_box(b, *plan.box_top(i), plan.widths[i], plan.heights[i]) for i, b in enumerate(boxes)
    ]
    marker = (
        '<defs><marker id="dt-to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor" '
        'fill-opacity=".55"/></marker></defs>'
    )
    return svg(marker + "".join(shapes), plan.width, plan.height, title)


def _draw_box(b: Box, x: float, y: float, width: float, height: float) -> str:
    """Draw a box with its lines, centred at `x`, as SVG."""
    colour, inside = COLOURS[b.kind]
    rows = "".join(
        f'<text x="{x:.0f}" y="{y + 16 + n * LINE_HEIGHT:.0f}" text-anchor="middle" {style}>'
        f"{escape(shorten(line))}</text>"
        for n, line in enumerate(b.lines)
        for style in ('opacity=".8"' if n else 'font-weight="bold"',)
    )
    return (
        f"<g><title>{escape(b.tip or ' '.join(b.lines))}</title>"
        f'<rect x="{x - width / 2:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'rx="5" fill="{colour}" fill-opacity="{inside}" stroke="{colour}"/>{rows}</g>'
    )


class _LayeredLayout:
    """The layout of boxes and of the bends of arrows: layers, sorted by neighbours."""

    def __init__(self, boxes: Sequence[Box], arrows: Sequence[Arrow]) -> None:
        self.arrows = [*{(a.start, a.end): a for a in arrows}.values()]
        self.widths = [max(len(shorten(t)) for t in b.lines) * LETTER_WIDTH + 20 for b in boxes]
        self.heights = [len(b.lines) * LINE_HEIGHT + 9.0 for b in boxes]
        self.layer = self._assign_layers(len(boxes))
        self.neighbors: list[list[int]] = [[] for _ in boxes]  # above, and below
        self.routes = [self._add_route(a) for a in self.arrows]
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer) + 1)]
        for i, n in enumerate(self.layer):
            self.rows[n].append(i)
        self._sort_layers()
        self.x = [0.0] * len(self.layer)
        self._set_positions()
        self.tops = [float(MARGIN)]
        for row in self.rows:
            self.tops.append(self.tops[-1] + max(self.heights[i] for i in row) + LAYER_GAP)
        self.height = self.tops[-1] - LAYER_GAP + MARGIN

    def _assign_layers(self, count: int) -> list[int]:
        """Return the layer of each box: below its inputs, or, without inputs, above its users."""
        layer, first = [0] * count, [count] * count
        into = {a.end for a in self.arrows}
        for a in sorted(self.arrows, key=lambda a: a.start):
            layer[a.end] = max(layer[a.end], layer[a.start] + 1)
        for a in self.arrows:
            first[a.start] = min(first[a.start], layer[a.end])
        # a box without inputs stands right above its first user
        return [n if i in into or first[i] == count else first[i] - 1 for i, n in enumerate(layer)]

    def _add_route(self, a: Arrow) -> list[int]:
        """Return an arrow's points, as numbers; append a bend for each layer between its ends."""
        way = [a.start]
        for n in range(self.layer[a.start] + 1, self.layer[a.end]):
            way.append(len(self.layer))
            self.layer.append(n)
            self.widths.append(8.0)
            self.heights.append(0.0)
            self.neighbors.append([])
        way.append(a.end)
        for above, below in pairwise(way):
            self.neighbors[above].append(below)
            self.neighbors[below].append(above)
        return way

    def _sort_layers(self) -> None:
        """Sort each layer in place by the means of its neighbours' positions, alternately."""
        positions = {i: k / len(row) for row in self.rows for k, i in enumerate(row)}
        for sweep in range(6):
            down = sweep % 2 == 0
            for row in self.rows if down else self.rows[::-1]:
                step = -1 if down else 1
                targets = {i: self._average_neighbor_positions(i, step, positions) for i in row}
                row.sort(key=lambda i, w=targets: w[i])  # type: ignore[misc]  # a default
                positions.update({i: (k + 0.5) / len(row) for k, i in enumerate(row)})

    def _average_neighbor_positions(self, i: int, step: int, at: dict[int, float]) -> float:
        """Return the mean of the neighbours' positions in the adjacent layer, else the own one."""
        positions = [at[j] for j in self.neighbors[i] if self.layer[j] == self.layer[i] + step]
        return sum(positions) / len(positions) if positions else at[i]

    def _set_positions(self) -> None:
        """Set `x` and `width`: boxes as near to their neighbours as the gaps permit."""
        for row in self.rows:
            left = 0.0
            for i in row:
                self.x[i] = left + self.widths[i] / 2
                left += self.widths[i] + BOX_GAP
        for sweep in range(8):
            for row in self.rows if sweep % 2 else self.rows[::-1]:
                targets = [self._average_neighbor_x(i) for i in row]
                self._fit_row(row, targets)
        left = min(x - w / 2 for x, w in zip(self.x, self.widths, strict=True))
        self.x = [x - left + MARGIN for x in self.x]
        self.width = max(x + w / 2 for x, w in zip(self.x, self.widths, strict=True)) + MARGIN

    def _average_neighbor_x(self, i: int) -> float:
        """Return the mean x of the neighbours, or the own x without neighbours."""
        near = self.neighbors[i]
        return sum(self.x[j] for j in near) / len(near) if near else self.x[i]

    def _fit_row(self, row: list[int], targets: list[float]) -> None:
        """Move a layer's boxes near their targets, in order, without overlaps."""
        edge = float("-inf")
        for i, x in zip(row, targets, strict=True):
            self.x[i] = max(x, edge + self.widths[i] / 2)
            edge = self.x[i] + self.widths[i] / 2 + BOX_GAP
        shift = sum(self.x[i] - x for i, x in zip(row, targets, strict=True)) / len(row)
        for i in row:
            self.x[i] -= shift

    def box_top(self, i: int) -> tuple[float, float]:
        """Return the middle of the upper edge of a box."""
        return self.x[i], self.tops[self.layer[i]]

    def arrow(self, a: Arrow, route: list[int]) -> str:
        """Draw an arrow in SVG as a curve through the points of `route`, with its label."""
        x, y = self.box_top(route[0])
        y += self.heights[route[0]]
        path = f"M{x:.0f} {y:.0f}"
        label = ""
        for n, i in enumerate(route[1:]):
            to, low = self.box_top(i)
            bend = (low - y) / 2
            path += f"C{x:.0f} {y + bend:.0f} {to:.0f} {low - bend:.0f} {to:.0f} {low:.0f}"
            if n == 0 and a.text:
                label = (
                    f'<text x="{(x + to) / 2 + 5:.0f}" y="{(y + low) / 2 + 4:.0f}" '
                    f'font-size="10.5" opacity=".85">{escape(a.text)}</text>'
                )
            x, y = to, low
            if i != route[-1]:  # beside the boxes of a layer in between
                y = self.tops[self.layer[i] + 1] - LAYER_GAP
                path += f"V{y:.0f}"
        return (
            f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity=".45" '
            f'marker-end="url(#dt-to)"/>{label}'
        )
