"""The timeline of a profile: its events along time, by thread, and the memory below."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from html import escape

from ..engine.events import ProfileEvent
from ..memory.units import format_bytes
from . import svg_boxes

__all__: list[str] = []

# of a drawing; its margin; a bar; the memory's height
WIDTH = 860
MARGIN = 10
BAR_HEIGHT = 18
MEMORY_HEIGHT = 56
EVENTS_MAX = 1000  # the largest number of events in a drawing
KIND_COLORS = {
    "plan": "#9333ea",
    "compile": "#dc2626",
    "load": "#d97706",
    "launch": "#2563eb",
    "call": "#0d9488",
    "replay": "#16a34a",
}
OTHER_COLOR = "#6b7280"


def svg(events: Sequence[ProfileEvent], start_ns: int, end_ns: int) -> str:
    """Draw the events of each thread in SVG, from `start_ns` on; of too many, the longest."""
    if not events:
        return svg_boxes.draw_boxes((), (), "an empty profile")
    shown = sorted(
        nlargest(EVENTS_MAX, events, key=_event_duration), key=lambda e: (e["begun"], -e["ended"])
    )
    first = min(start_ns, *(e["begun"] for e in shown))
    scale = (WIDTH - 2 * MARGIN) / max(1, max(end_ns, *(e["ended"] for e in shown)) - first)
    shapes, top = [_draw_legend(shown)], 30.0
    threads = list(dict.fromkeys(e["thread"] for e in shown))
    for n, thread in enumerate(threads):
        thread_events = [e for e in shown if e["thread"] == thread]
        if len(threads) > 1:
            shapes.append(f'<text x="{MARGIN}" y="{top + 10:.0f}" opacity=".7">thread {n}</text>')
            top += 16
        rows = _assign_rows(thread_events)
        for event, row in zip(thread_events, rows, strict=True):
            x = MARGIN + (event["begun"] - first) * scale
            shapes.append(
                _draw_bar(event, x, top + row * (BAR_HEIGHT + 2), _event_duration(event) * scale)
            )
        top += (max(rows) + 1) * (BAR_HEIGHT + 2) + 6
    shapes.append(_draw_ticks(top, scale))
    top += 24
    live = [(e["ended"], e["details"]["live"]) for e in shown if "live" in e["details"]]
    if live:
        shapes.append(_draw_memory(live, first, scale, top))
        top += MEMORY_HEIGHT + 24
    if len(events) > EVENTS_MAX:
        note = f"the {EVENTS_MAX} longest of {len(events)} events"
        shapes.append(f'<text x="{MARGIN}" y="{top + 8:.0f}" opacity=".7">{note}</text>')
        top += 20
    return svg_boxes.svg("".join(shapes), WIDTH, top + 4, f"{len(events)} events")


def html(
    svg: str, head: str, names: Sequence[str], rows: Sequence[Sequence[str]], more: str
) -> str:
    """Render the timeline and a table of the longest events as HTML."""
    note = f"<div>{escape(more)}</div>" if more else ""
    return svg_boxes.frame(
        svg_boxes.head("profile", head)
        + svg_boxes.make_scrollable(svg)
        + svg_boxes.table(names, rows)
        + note
    )


def _event_duration(e: ProfileEvent) -> int:
    """Return the nanoseconds of an event."""
    return e["ended"] - e["begun"]


def _assign_rows(events: Sequence[ProfileEvent]) -> list[int]:
    """Return a row for each event, so that none overlaps another; events are sorted by start."""
    ends: list[int] = []
    rows = []
    for e in events:
        row = next((i for i, end in enumerate(ends) if end <= e["begun"]), len(ends))
        ends[row : row + 1] = [e["ended"]]
        rows.append(row)
    return rows


def _draw_bar(e: ProfileEvent, x: float, y: float, width: float) -> str:
    """Draw an event in SVG as a bar with a tooltip, and its name if that fits."""
    colour = KIND_COLORS.get(e["name"].partition(" ")[0], OTHER_COLOR)
    facts = [e["name"], svg_boxes.seconds_text(_event_duration(e) / 1e9)]
    facts += [format_bytes(e["details"]["bytes"])] if "bytes" in e["details"] else []
    facts += [f"on {e['details']['device']}"] if "device" in e["details"] else []
    letters_max = int((width - 6) / svg_boxes.LETTER_WIDTH)
    text = escape(svg_boxes.shorten(e["name"], letters_max)) if letters_max >= 5 else ""
    label = (
        f'<text x="{x + 3:.1f}" y="{y + 13:.0f}" font-size="11" fill="#fff">{text}</text>'
        if text
        else ""
    )
    return (
        f'<g><title>{escape(", ".join(facts))}</title><rect x="{x:.1f}" y="{y:.0f}" '
        f'width="{max(width, 1):.1f}" height="{BAR_HEIGHT}" rx="2" fill="{colour}"/>{label}</g>'
    )


def _draw_legend(events: Sequence[ProfileEvent]) -> str:
    """Draw the colours of the kinds of events that occur, in SVG."""
    kinds = dict.fromkeys(e["name"].partition(" ")[0] for e in events)
    shapes, x = [], float(MARGIN)
    for kind in [k for k in kinds if k in KIND_COLORS]:
        shapes.append(
            f'<rect x="{x:.0f}" y="7" width="10" height="10" rx="2" fill="{KIND_COLORS[kind]}"/>'
            f'<text x="{x + 14:.0f}" y="16">{kind}</text>'
        )
        x += 30 + len(kind) * svg_boxes.LETTER_WIDTH
    return "".join(shapes)


def _draw_ticks(top: float, scale: float) -> str:
    """Draw an axis of times since the beginning in SVG, with steps of 1, 2 or 5 times 10^n."""
    duration = (WIDTH - 2 * MARGIN) / scale
    step = next(n * 10**p for p in range(20) for n in (1, 2, 5) if n * 10**p * 8 >= duration)
    shapes = [
        f'<path d="M{MARGIN} {top:.0f}H{WIDTH - MARGIN}" stroke="currentColor" '
        'stroke-opacity=".4"/>'
    ]
    for n in range(int(duration // step) + 1):
        x, text = MARGIN + n * step * scale, svg_boxes.seconds_text(n * step / 1e9) if n else "0"
        anchor = "end" if x > WIDTH - 60 else "middle" if n else "start"
        shapes.append(
            f'<path d="M{x:.1f} {top:.0f}v4" stroke="currentColor" stroke-opacity=".4"/>'
            f'<text x="{x:.1f}" y="{top + 16:.0f}" font-size="10.5" text-anchor="{anchor}">'
            f"{text}</text>"
        )
    return "".join(shapes)


def _draw_memory(live: Sequence[tuple[int, int]], first: int, scale: float, top: float) -> str:
    """Draw the bytes in use after each launch as a step function in SVG."""
    bytes_max = max(n for _, n in live) or 1
    path, base = f"M{MARGIN} {top + MEMORY_HEIGHT + 14:.1f}", top + 14 + MEMORY_HEIGHT
    for when, n in sorted(live):
        path += f"H{MARGIN + (when - first) * scale:.1f}V{base - n / bytes_max * MEMORY_HEIGHT:.1f}"
    label = f"memory in use: up to {format_bytes(bytes_max)}"
    return (
        f'<text x="{MARGIN}" y="{top + 8:.0f}" opacity=".8">{label}</text>'
        f'<path d="{path}H{WIDTH - MARGIN}V{base:.1f}Z" fill="#2563eb" fill-opacity=".2" '
        'stroke="#2563eb"/>'
    )
