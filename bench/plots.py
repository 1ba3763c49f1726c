"""Draws the tables of docs/benchmarks.md: `python bench/plots.py` writes docs/pictures/*.svg and
the section of the page that shows them; `--check` says which are not those of the tables.

Nothing is measured here: a number that is drawn stands in the page. Each picture holds a digest of
its numbers. Text has the colour of the page's, light or dark.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from benchmarks_page import PAGE, put
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

PICTURES = PAGE.parent / "pictures"
INK = "#102030"  # stands for the colour of text, which the page decides
SCHEMES = "<style>svg{color:#24292f}@media (prefers-color-scheme:dark){svg{color:#d5d9df}}</style>"
COLOURS = {
    "numpy": "#4c8dd6", "torch": "#e0703a", "jax": "#a06bd0", "numexpr": "#b79a1e",
    "scipy": "#4fa03c", "torch.compile": "#d34d86", "numba": "#2fa39a", "built-in": "#8a8f98",
    "captured": "#8a8f98",
}  # fmt: skip
OTHERS = ("#2fa39a", "#b06a3c", "#6f7bd8", "#c4574f")
MARKERS = "osD^vPX*"
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
TIME = re.compile(r"([\d.]+) (ns|us|ms|s)")
LEAST = 0.005  # what the page writes as 0.00
COLUMNS = 6  # of a legend
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
SIZES = ("64", "1 K", "64 K", "1 M", "16 M")
MORE = ("#9ec5f0", "#6ba3e0", "#4c8dd6", "#e0a03a", "#d34d4d")  # of sizes, small ones first

Table = list[dict[str, str]]
Point = tuple[str, str, float]  # a row, a series, a ratio


@dataclass(frozen=True)
class Picture:
    """One picture: what it says, which numbers it has, and how these are drawn."""

    name: str
    title: str
    about: str
    points: Callable[[str], list[Point]]
    draw: Callable[[Sequence[Point], str], Figure]

    def digest(self, page: str) -> str:
        """A digest of the numbers that the page has for it."""
        return hashlib.sha256(json.dumps(self.points(page)).encode()).hexdigest()

    @property
    def path(self) -> Path:
        """Where it lies."""
        return PICTURES / f"{self.name}.svg"

    def svg(self, page: str) -> str:
        """The picture, the same each time."""
        kept = {"Date": None, "Creator": "bench/plots.py", "Title": self.title}
        with mpl.rc_context(
            {
                "svg.fonttype": "none", "svg.hashsalt": self.name, "font.size": 9.0,
                "text.color": INK, "axes.labelcolor": INK,
            }
        ):  # fmt: skip
            out = io.StringIO()
            figure = self.draw(self.points(page), self.title)
            figure.savefig(
                out, format="svg", transparent=True, bbox_inches="tight", pad_inches=0.08,
                metadata={**kept, "Identifier": f"numbers {self.digest(page)}"},
            )  # fmt: skip
        text = out.getvalue().replace(INK, "currentColor")
        lines = (line.rstrip() for line in text.splitlines())
        return re.sub(r"(<svg [^>]*>)", rf"\1{SCHEMES}", "\n".join(lines), count=1) + "\n"


# --- the numbers


def tables(page: str, section: str) -> list[Table]:
    """The tables of a section; "" is what comes before the first."""
    text = re.split(r"^## ", page, flags=re.MULTILINE)
    (part,) = [t for i, t in enumerate(text) if _is(t, i, section)]
    found, rows = list[Table](), list[list[str]]()
    for line in [*part.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows:
            head, _, *body = rows
            found.append([dict(zip(head, row, strict=True)) for row in body])
            rows = []
    return found


def _is(text: str, number: int, section: str) -> bool:
    return number == 0 if section == "" else number > 0 and text.startswith(f"{section}\n")


def seconds(text: str) -> float:
    """A time as the page writes it."""
    match = TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"plots: {text!r} is no time")
    return float(match[1]) * UNITS[match[2]]


def of_times(page: str) -> list[Point]:
    """The main table: peers' times by ours."""
    found = []
    for row in tables(page, "")[0]:
        if row["dovetail"] and not row["case"].startswith("opencl"):
            for peer in ("numpy", "scipy", "torch", "torch.compile", "jax", "numexpr", "sparse"):
                if row[peer]:
                    ratio = seconds(row[peer]) / seconds(row["dovetail"])
                    found.append((row["case"], peer, round(ratio, 3)))
    return found


def of_columns(section: str) -> Callable[[str], list[Point]]:
    """A table with a column for each peer's ratio."""

    def points(page: str) -> list[Point]:
        (table,) = tables(page, section)
        return [
            (next(iter(row.values())), _peer(column[2:]), float(cell))
            for row in table
            for column, cell in row.items()
            if column.startswith("x ") and cell
        ]

    return points


def _peer(column: str) -> str:
    jit, slash, peer = column.partition("/")
    return f"{peer}, ours captured" if slash else jit


def of_lists(section: str) -> Callable[[str], list[Point]]:
    """A table whose rows name their contestants, and list the ratios."""

    def points(page: str) -> list[Point]:
        (table,) = tables(page, section)
        return [
            (row["work"], re.sub(r" [\d.]+ \w+$", "", beside), float(ratio))
            for row in table
            if row["ratio"]
            for beside, ratio in zip(
                row["beside"].split(", "), row["ratio"].split(", "), strict=True
            )
        ]

    return points


def of_sizes(page: str) -> list[Point]:
    """The sweep's geometric means: by dtype, operands and peer along the sizes."""
    return [
        (f"{row['dtype']}, {row['operands']}, {row['size']}", peer, float(row[column]))
        for row in tables(page, "The sweep")[0]
        for peer in ("numpy", "torch")
        for column in (f"x {peer}, geometric mean",)
        if row[column]
    ]


def of_causes(page: str) -> list[Point]:
    """The sweep's rows that are slower than a peer: by cause, size, and the least ratio."""
    return [
        (row["cause"], row["size"], min(float(row[c]) for c in ("x numpy", "x torch") if row[c]))
        for row in tables(page, "The sweep")[1]
    ]


# --- how they are drawn


def dots(points: Sequence[Point], title: str) -> Figure:
    """A row for each work, a dot for each peer."""
    names = list(dict.fromkeys(name for name, _, _ in points))
    series = list(dict.fromkeys(peer for _, peer, _ in points))
    axes = _axes(title, 1.2 + 0.26 * len(names), len(series))
    for number, peer in enumerate(series):
        mine = [(ratio, names.index(name)) for name, p, ratio in points if p == peer]
        hollow = peer.endswith("captured")
        colour = _colour(peer.partition(",")[0], number)
        axes.scatter(
            [x for x, _ in mine], [y for _, y in mine], s=26, label=peer, zorder=3,
            marker=MARKERS[number % len(MARKERS)], edgecolors=colour, linewidths=1.3,
            facecolors="none" if hollow else colour,
        )  # fmt: skip
    _rows(axes, names)
    _ratios(axes, [ratio for _, _, ratio in points])
    axes.set_xlabel("times as fast as the peer (logarithmic); right of 1 dovetail is faster")
    _legend(axes, len(series))
    return axes.figure  # type: ignore[return-value]  # no part of a larger one


def strips(points: Sequence[Point], title: str) -> Figure:
    """A row for each cause, its dots spread a little, coloured by size."""
    causes = sorted({cause for cause, _, _ in points})
    axes = _axes(title, 1.2 + 0.3 * len(causes), len(SIZES))
    for number, size in enumerate(SIZES):
        mine = [(max(r, LEAST), causes.index(c)) for c, s, r in points if s == size]
        spread = [y + 0.32 * math.sin(2.4 * i) for i, (_, y) in enumerate(mine)]
        axes.scatter(
            [x for x, _ in mine], spread, s=11, label=size, zorder=3, linewidths=0,
            color=MORE[number], alpha=0.85,
        )  # fmt: skip
    _rows(axes, causes)
    _ratios(axes, [max(ratio, LEAST) for _, _, ratio in points])
    axes.set_xlabel("times as fast as the faster peer (logarithmic), of rows below 0.9")
    _legend(axes, len(SIZES))
    return axes.figure  # type: ignore[return-value]  # no part of a larger one


def lines(points: Sequence[Point], title: str) -> Figure:
    """A panel for each peer, a line for each dtype and kind of operands, along the sizes."""
    figure = Figure(figsize=(7.6, 4.0))
    FigureCanvasSVG(figure)
    kinds = list(dict.fromkeys(name.rpartition(", ")[0] for name, _, _ in points))
    for number, peer in enumerate(("numpy", "torch"), 1):
        axes = figure.add_subplot(1, 2, number)
        for kind in kinds:
            dtype, operands = kind.split(", ")
            own = {n.rpartition(", ")[2]: r for n, p, r in points if p == peer and _in(n, kind)}
            there = [size for size in SIZES if size in own]
            axes.plot(
                [SIZES.index(size) for size in there], [own[size] for size in there], label=kind,
                color={"float32": "#4c8dd6", "float64": "#e0703a"}.get(dtype, "#4fa03c"),
                linestyle={"contiguous": "-", "transposed": ":"}.get(operands, "--"),
                marker="o", markersize=3.5, linewidth=1.4, zorder=3,
            )  # fmt: skip
        _plain(axes)
        axes.set_yscale("log")
        _ticks(axes.yaxis, [r for _, _, r in points])
        axes.axhline(1, color=INK, linewidth=1)
        axes.set_xticks(range(len(SIZES)), SIZES)
        axes.set_title(f"beside {'NumPy' if peer == 'numpy' else 'PyTorch'}", fontsize=9)
        axes.set_xlabel("elements")
    figure.axes[0].set_ylabel("times as fast, geometric mean")
    figure.suptitle(title, fontsize=10, fontweight="bold", x=0.06, ha="left")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncol=3,
                  frameon=False, fontsize=8, labelcolor=INK)  # fmt: skip
    figure.subplots_adjust(top=0.84, bottom=0.16, wspace=0.2)
    return figure


def _in(name: str, kind: str) -> bool:
    return name.rpartition(", ")[0] == kind


def _axes(title: str, height: float, series: int) -> Axes:
    figure = Figure(figsize=(7.6, height))
    FigureCanvasSVG(figure)
    axes = figure.add_axes((0.36, 0.0, 0.64, 1.0))
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold", x=-0.55,
                   pad=10 + 14 * math.ceil(series / COLUMNS))  # fmt: skip
    _plain(axes)
    return axes


def _plain(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(INK)
    axes.tick_params(colors=INK, labelsize=8)
    axes.grid(True, color="#8a8f98", alpha=0.28, linewidth=0.7, zorder=0)


def _rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [_wrapped(n) for n in names], fontsize=7.5)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.axvline(1, color=INK, linewidth=1, zorder=2)


def _wrapped(name: str) -> str:
    return textwrap.fill(name, 46 if len(name) <= 46 else max(30, len(name) // 2 + 6))


def _ratios(axes: Axes, ratios: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(min(0.85, min(ratios) / 1.15), max(1.2, max(ratios) * 1.15))
    _ticks(axes.xaxis, ratios)


def _ticks(axis: object, ratios: Sequence[float]) -> None:
    low, high = min(*ratios, 1) / 1.15, max(*ratios, 1) * 1.15
    axis.set_major_locator(FixedLocator([t for t in TICKS if low <= t <= high]))  # type: ignore[attr-defined]  # XAxis, YAxis
    axis.set_minor_locator(NullLocator())  # type: ignore[attr-defined]  # the same
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))  # type: ignore[attr-defined]  # the same


def _legend(axes: Axes, columns: int) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.56, 1.0), ncol=min(columns, COLUMNS), frameon=False,
        fontsize=8, labelcolor=INK, handletextpad=0.2, columnspacing=1.2, borderaxespad=0.2,
    )  # fmt: skip


def _colour(peer: str, number: int) -> str:
    return COLOURS.get(peer, OTHERS[number % len(OTHERS)])


# --- the page

ALL = (
    Picture("cases", "Ops and sorts", "Ops at four sizes, sorts, sparse work and small "
            "networks, compared with each peer.", of_times, dots),
    Picture("sweep-sizes", "The sweep: every function, by size", "Geometric means over all public "
            "functions and forms of indexing. Below 1 K elements the cost of a call decides.",
            of_sizes, lines),
    Picture("sweep-causes", "Where we are slower, and why", "Each dot is a row of the sweep that "
            "reaches less than 0.9 times the faster peer's speed. 0.00 is drawn as 0.005. The "
            "section of the sweep explains the causes.",
            of_causes, strips),
    Picture("small-work", "Small statements", "Small statements of ordinary programs. "
            "Hollow dots: in a captured function.", of_columns("Small work"), dots),
    Picture("numeric-surface", "Numeric surface", "Complex numbers, transforms, matrices, counts "
            "and ranks.", of_columns("Numeric surface"), dots),
    Picture("own-work", "Own work", "Your own kernels, transforms of functions, sparse "
            "matrices and solvers. Hollow dots: compared with dovetail's own captured function.",
            of_lists("Own work"), dots),
    Picture("networks", "Networks", "Layers, losses, optimizer steps and training steps.",
            of_lists("Networks"), dots),
)  # fmt: skip


def section() -> Iterator[str]:
    """The section of the page that shows them."""
    yield from ("## In pictures", "")
    yield (
        "`python bench/plots.py` draws these pictures from the tables of this page. It measures "
        "nothing."
    )
    for picture in ALL:
        way = picture.path.relative_to(PAGE.parent).as_posix()
        yield from ("", picture.about, "", f"![{picture.title}]({way})")


def stale(page: str) -> list[str]:
    """The pictures that are not there, or not of these numbers."""
    return [
        p.name
        for p in ALL
        if not p.path.exists() or f"numbers {p.digest(page)}" not in p.path.read_text()
    ]


def main() -> int:
    """0, or 1 if asked to check and something is stale."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="write nothing, compare the numbers")
    if parser.parse_args().check:
        found = stale(PAGE.read_text())
        print(f"not of the page: {', '.join(found)}; python bench/plots.py" if found else "as is")
        return int(bool(found))
    put("plots", list(section()))
    PICTURES.mkdir(exist_ok=True)
    for picture in ALL:
        picture.path.write_text(picture.svg(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
