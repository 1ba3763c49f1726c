"""The page of figures: sections that programs write, each between marks of its own, and tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from comparison import respawned

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
MARK = "<!-- {name}: {side} -->"
REDRAW = "the pictures of the page are drawn again by: python bench/plots.py"
SECTIONS = ("plots", "sweep", "small work", "numeric surface", "own work", "networks")


class Named(Protocol):
    """A row of a program's table."""

    name: str


R = TypeVar("R", bound=Named)


def measured(
    section: str, about: str, rows: Callable[[], list[R]], measure: Callable[[R, int], None],
    table: Callable[[Sequence[R]], list[list[str]]], rounds: int,
) -> int:  # fmt: skip
    """A program that measures its rows, prints their table, and writes its section if asked; 0."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--only", nargs="*", default=[], help="only rows whose name contains one")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--write", action="store_true", help="write the section of the page")
    asked = parser.parse_args()
    status = respawned(sys.argv)
    if status is not None:
        return status
    done = [r for r in rows() if not asked.only or any(text in r.name for text in asked.only)]
    for row in done:
        measure(row, asked.rounds)
    print(aligned(table(done)))
    if asked.write:
        title = f"## {section[0].upper()}{section[1:]}"
        put(section, [title, "", about.strip(), "", *markdown(table(done))])
        print(REDRAW)
    return 0


def put(name: str, lines: Sequence[str]) -> None:
    """Writes a section of the page, in its old place or at the end."""
    text, begin, end = PAGE.read_text(), *_marks(name)
    made = "\n".join([begin, *lines, end])
    if begin in text:
        text = text[: text.index(begin)] + made + text[text.index(end) + len(end) :]
    else:
        text = f"{text.rstrip()}\n\n{made}\n"
    PAGE.write_text(text)


def sections(text: str) -> str:
    """All sections of a page, in their order, to follow a new beginning of it."""
    found = {}
    for name in SECTIONS:
        begin, end = _marks(name)
        if begin in text:
            found[text.index(begin)] = text[text.index(begin) : text.index(end) + len(end)]
    return "".join(f"\n{found[at]}\n" for at in sorted(found))


def _marks(name: str) -> tuple[str, str]:
    return MARK.format(name=name, side="begin"), MARK.format(name=name, side="end")


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A table for the terminal."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table for a page."""
    escaped = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    texts = [f"| {' | '.join(row)} |" for row in escaped]
    return [texts[0], "|---" * len(rows[0]) + "|", *texts[1:]]
