"""The timeline of a profile: its events along time, by thread, and the memory below."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from html import escape

from ..engine.events import Event
from ..memory.units import bytes_text
from . import svg_boxes

__all__: list[str] = []

WIDE, LEFT, BAR, MEMORY = 860, 10, 18, 56  # of a drawing; its margin; a bar; the memory's height
MOST = 1000  # the largest number of events in a drawing
KINDS = {
    "plan": "#9333ea",
    "compile": "#dc2626",
    "load": "#d97706",
    "launch": "#2563eb",
    "call": "#0d9488",
    "replay": "#16a34a",
}
OTHER = "#6b7280"


def svg(events: Sequence[Event], begun: int, ended: int) -> str:
    """Return the events from `begun` to `ended`; of many the longest."""
    if not events:
        return svg_boxes.draw((), (), "an empty profile")
    shown = sorted(nlargest(MOST, events, key=_length), key=lambda e: (e["begun"], -e["ended"]))
    first = min(begun, *(e["begun"] for e in shown))
    scale = (WIDE - 2 * LEFT) / max(1, max(ended, *(e["ended"] for e in shown)) - first)
    shapes, top = [_legend(shown)], 30.0
    threads = list(dict.fromkeys(e["thread"] for e in shown))
    for n, thread in enumerate(threads):
        thread_events = [e for e in shown if e["thread"] == thread]
        if len(threads) > 1:
            shapes.append(f'<text x="{LEFT}" y="{top + 10:.0f}" opacity=".7">thread {n}</text>')
            top += 16
        rows = _rows(thread_events)
        for event, row in zip(thread_events, rows, strict=True):
            x = LEFT + (event["begun"] - first) * scale
            shapes.append(_bar(event, x, top + row * (BAR + 2), _length(event) * scale))
        top += (max(rows) + 1) * (BAR + 2) + 6
    shapes.append(_ticks(top, scale))
    top += 24
    live = [(e["ended"], e["details"]["live"]) for e in shown if "live" in e["details"]]
    if live:
        shapes.append(_memory(live, first, scale, top))
        top += MEMORY + 24
    if len(events) > MOST:
        note = f"the {MOST} longest of {len(events)} events"
        shapes.append(f'<text x="{LEFT}" y="{top + 8:.0f}" opacity=".7">{note}</text>')
        top += 20
    return svg_boxes.svg("".join(shapes), WIDE, top + 4, f"{len(events)} events")


def html(
    svg: str, head: str, names: Sequence[str], rows: Sequence[Sequence[str]], more: str
) -> str:
    """Return the timeline, and a table of the longest events."""
    note = f"<div>{escape(more)}</div>" if more else ""
    return svg_boxes.frame(
        svg_boxes.head("profile", head)
        + svg_boxes.make_scrollable(svg)
        + svg_boxes.table(names, rows)
        + note
    )


def _length(e: Event) -> int:
    return e["ended"] - e["begun"]


def _rows(events: Sequence[Event]) -> list[int]:
    """Return the row of each event, so that none overlaps another; events are sorted."""
    ends: list[int] = []
    rows = []
    for e in events:
        row = next((i for i, end in enumerate(ends) if end <= e["begun"]), len(ends))
        ends[row : row + 1] = [e["ended"]]
        rows.append(row)
    return rows


def _bar(e: Event, x: float, y: float, width: float) -> str:
    colour = KINDS.get(e["name"].partition(" ")[0], OTHER)
    facts = [e["name"], svg_boxes.seconds_text(_length(e) / 1e9)]
    facts += [bytes_text(e["details"]["bytes"])] if "bytes" in e["details"] else []
    facts += [f"on {e['details']['device']}"] if "device" in e["details"] else []
    room = int((width - 6) / svg_boxes.LETTER)
    text = escape(svg_boxes.short(e["name"], room)) if room >= 5 else ""
    label = (
        f'<text x="{x + 3:.1f}" y="{y + 13:.0f}" font-size="11" fill="#fff">{text}</text>'
        if text
        else ""
    )
    return (
        f'<g><title>{escape(", ".join(facts))}</title><rect x="{x:.1f}" y="{y:.0f}" '
        f'width="{max(width, 1):.1f}" height="{BAR}" rx="2" fill="{colour}"/>{label}</g>'
    )


def _legend(events: Sequence[Event]) -> str:
    kinds = dict.fromkeys(e["name"].partition(" ")[0] for e in events)
    shapes, x = [], float(LEFT)
    for kind in [k for k in kinds if k in KINDS]:
        shapes.append(
            f'<rect x="{x:.0f}" y="7" width="10" height="10" rx="2" fill="{KINDS[kind]}"/>'
            f'<text x="{x + 14:.0f}" y="16">{kind}</text>'
        )
        x += 30 + len(kind) * svg_boxes.LETTER
    return "".join(shapes)


def _ticks(top: float, scale: float) -> str:
    """Return an axis of times since the beginning, with steps of 1, 2 or 5 times 10^n."""
    whole = (WIDE - 2 * LEFT) / scale
    step = next(n * 10**p for p in range(20) for n in (1, 2, 5) if n * 10**p * 8 >= whole)
    shapes = [
        f'<path d="M{LEFT} {top:.0f}H{WIDE - LEFT}" stroke="currentColor" stroke-opacity=".4"/>'
    ]
    for n in range(int(whole // step) + 1):
        x, text = LEFT + n * step * scale, svg_boxes.seconds_text(n * step / 1e9) if n else "0"
        anchor = "end" if x > WIDE - 60 else "middle" if n else "start"
        shapes.append(
            f'<path d="M{x:.1f} {top:.0f}v4" stroke="currentColor" stroke-opacity=".4"/>'
            f'<text x="{x:.1f}" y="{top + 16:.0f}" font-size="10.5" text-anchor="{anchor}">'
            f"{text}</text>"
        )
    return "".join(shapes)


def _memory(live: Sequence[tuple[int, int]], first: int, scale: float, top: float) -> str:
    """Return the bytes in use after each launch, as steps."""
    bytes_max = max(n for _, n in live) or 1
    path, base = f"M{LEFT} {top + MEMORY + 14:.1f}", top + 14 + MEMORY
    for when, n in sorted(live):
        path += f"H{LEFT + (when - first) * scale:.1f}V{base - n / bytes_max * MEMORY:.1f}"
    label = f"memory in use: up to {bytes_text(bytes_max)}"
    return (
        f'<text x="{LEFT}" y="{top + 8:.0f}" opacity=".8">{label}</text>'
        f'<path d="{path}H{WIDE - LEFT}V{base:.1f}Z" fill="#2563eb" fill-opacity=".2" '
        'stroke="#2563eb"/>'
    )
