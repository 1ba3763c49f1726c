"""A snapshot of an allocator as one HTML page.

This module draws everything as SVG; the colours are in `page.html`. The page's script only
follows the mouse pointer. The page loads nothing from elsewhere.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import NamedTuple

from ...argument_checks import path as file_name
from ...device_class import Device, device, opened
from ..allocator import Allocator
from ..units import UNITS, format_bytes
from .snapshot import Json, Snapshot, build, check

TEMPLATE = Path(__file__).with_name("page.html")
COLORED_LINES_MAX = 8  # source lines with a colour of their own, `h0` to `h7` in `page.html`
TIMELINE_POINTS_MAX = 600  # about one per pixel
SEGMENTS_MAX = 200  # drawn, the largest ones
WIDTH, HEIGHT = 960, 300  # of the timeline's plot
LEFT, RIGHT, TOP, BOTTOM = 76, 12, 10, 30  # its margins
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def html_report(path: str | os.PathLike[str], spec: Device | str | None = None) -> None:
    """Write an HTML page, or a .json snapshot, about a device's memory and the lines that hold it.

    After `trace(True)` the page has a timeline, too. The page is one file.

    - `path`: the name of the file; one that ends in .json gets the snapshot that `dovetail memory
      FILE.json` draws.

    Raises: OSError if the file cannot be written; ArgumentTypeError, DeviceError, UnavailableError.

    >>> import dovetail as dt
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "now.html")
    >>> dt.memory.html_report(path, "reference")
    >>> os.path.getsize(path) > 1000
    True
    """
    name = file_name("html_report", path)
    of = device(spec, "html_report")
    allocator: Allocator = opened(of).allocator
    snapshot = build(str(of), allocator.stats(), allocator.snapshot(), allocator.timeline)
    text = json.dumps(snapshot) if os.fspath(name).endswith(".json") else draw(snapshot)
    # a file's name may hold surrogates
    with open(name, "w", encoding="utf-8", errors="backslashreplace") as f:
        f.write(text)


def draw(snapshot: Snapshot) -> str:
    """Render a snapshot as the text of an HTML page. Raises: ArgumentError if it is invalid."""
    check(snapshot)
    lines = usage_by_line(snapshot)
    series = timeline(snapshot, lines)
    template = TEMPLATE.read_text(encoding="utf-8")
    return _fill_template(
        template,
        script=_digest(_SCRIPT.findall(template)[0]),
        device=escape(snapshot["device"]),
        written=escape(snapshot["written"]),
        figures="".join(_render_figures(snapshot, series)),
        timeline=_render_timeline(series, lines) if series else _NO_TIMELINE,
        lines="".join(_render_line(x, lines) for x in lines),
        untraced="" if any(x.where for x in lines) else _NO_LINES,
        segments="".join(_render_segments(snapshot, lines)),
        data=json.dumps(_build_script_data(series, lines)).replace("<", "\\u003c"),
    )


def _digest(script: str) -> str:
    """Return the base64 SHA-256 of the page's script, for its content security policy."""
    return b64encode(sha256(script.encode()).digest()).decode()


def _fill_template(template: str, **fields: str) -> str:
    """Replace each $name in the template by its field. Raises: KeyError for an unknown name."""
    return re.sub(r"\$([a-z]+)", lambda match: fields[match[1]], template)


def escape(text: str) -> str:
    """Escape text for HTML, also within quotes; `html.escape` costs a millisecond at import."""
    for mark, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot"), ("'", "#x27")):
        text = text.replace(mark, f"&{name};")
    return text


class LineUsage(NamedTuple):
    """A source line and its memory; `where` is None for blocks that were not traced."""

    number: int
    where: str | None
    hue: str  # a CSS class of the page
    live: int
    blocks: int
    peak: int
    total: int  # bytes allocated while traced
    allocations: int


def usage_by_line(snapshot: Snapshot) -> list[LineUsage]:
    """Return every line that holds memory or did so while traced, the largest first."""
    live, blocks, peak, total, times = (Counter[int]() for _ in range(5))
    for segment in snapshot["segments"]:
        for _, nbytes, state, number in segment["blocks"]:
            if state == "live":
                live[number] += nbytes
                blocks[number] += 1
    current = Counter(dict(snapshot["before"]))
    peak |= current
    for _, change, number, *_ in snapshot["events"]:
        current[number] += change
        peak[number] = max(peak[number], current[number])
        if change > 0:
            total[number] += change
            times[number] += 1
    largest = live | peak  # the larger of both
    numbers = sorted(largest, key=lambda n: (-largest[n], snapshot["lines"][n] or ""))
    hues = iter(f"h{i}" for i in range(COLORED_LINES_MAX))
    return [
        LineUsage(
            n,
            snapshot["lines"][n],
            next(hues, "other") if snapshot["lines"][n] else "none",
            live[n],
            blocks[n],
            largest[n],
            total[n],
            times[n],
        )
        for n in numbers
        if largest[n]
    ]


class MemorySeries(NamedTuple):
    """The timeline: times in milliseconds, and bytes at each of them by name."""

    times: list[float]
    layers: dict[str, list[int]]  # by CSS class of the page, from the bottom up

    @property
    def top(self) -> int:
        """Return the largest sum of the layers at one time, in bytes."""
        return max(map(sum, zip(*self.layers.values(), strict=True)))


def timeline(snapshot: Snapshot, lines: Sequence[LineUsage]) -> MemorySeries | None:
    """Build the series to plot, at most one point per pixel; return None without a trace.

    Each stretch of events is one point: the event with most live memory.
    """
    events = snapshot["events"]
    if len(events) < 2:
        return None
    hues = {x.number: x.hue for x in lines}
    layers = dict.fromkeys(hues.values(), 0)
    for number, nbytes in snapshot["before"]:
        if number in hues:  # other lines never hold memory
            layers[hues[number]] += nbytes
    keep = set(_find_peak_events(events))
    times, rows = [], []
    for i, (at, change, number, _, cached, fragmented, *_) in enumerate(events):
        if number in hues:
            layers[hues[number]] += change
        if i in keep:
            times.append(at)
            rows.append({**layers, "fragmented": fragmented, "cached": cached})
    return MemorySeries(times, {name: [row[name] for row in rows] for name in rows[0]})


def _find_peak_events(events: Sequence[Sequence[Json]]) -> Iterator[int]:
    """Yield the indices of the first, the last and, per pixel, the event with most live memory."""
    span = (events[-1][0] - events[0][0]) or 1.0
    peaks: dict[int, int] = {}
    for i, event in enumerate(events):
        point = int((event[0] - events[0][0]) / span * TIMELINE_POINTS_MAX)
        if point not in peaks or event[3] >= events[peaks[point]][3]:
            peaks[point] = i
    yield from (0, *peaks.values(), len(events) - 1)


# --- text


def _render_figures(snapshot: Snapshot, series: MemorySeries | None) -> Iterator[str]:
    """Yield the HTML of the six key figures, such as live, cached and fragmented bytes."""
    stats = snapshot["stats"]
    free = [(s, sum(b[1] for b in s["blocks"] if b[2] != "live")) for s in snapshot["segments"]]
    split = sum(n for s, n in free if n < s["nbytes"])
    shown = (
        ("live", format_bytes(stats["live_bytes"]), f"in {stats['live_blocks']:,} blocks"),
        ("peak", format_bytes(stats["peak_live_bytes"]), "live at once"),
        ("cached", format_bytes(stats["cached_bytes"] - split), "in segments that are wholly free"),
        ("fragmented", format_bytes(split), "free between live blocks"),
        (
            "reserved",
            format_bytes(stats["reserved_bytes"]),
            f"in {len(snapshot['segments']):,} segments",
        ),
        ("allocations", f"{stats['allocations']:,}", _format_hit_rate(stats)),
    )
    for name, value, note in shown:
        yield f'<div class="figure"><dt>{name}</dt><dd>{value}</dd><p>{note}</p></div>'


def _format_hit_rate(stats: Mapping[str, int]) -> str:
    """Return the share of allocations from the cache as text."""
    if not stats["allocations"]:
        return "none yet"
    return f"{100 * stats['cache_hits'] / stats['allocations']:.1f} % from the cache"


def _shorten_path(where: str | None) -> str:
    """Return the last two parts of a source line's path, or "not traced" for None."""
    if where is None:
        return "not traced"
    return "/".join(where.replace("\\", "/").split("/")[-2:])


def _render_line(x: LineUsage, lines: Sequence[LineUsage]) -> str:
    """Render the table row of a source line; its bar is relative to the line with most memory."""
    share = 100 * x.live / max(1, *(y.live for y in lines))
    where = escape(x.where or "allocated while tracing was off")
    return (
        f'<tr data-hue="{x.hue}"><td title="{where}"><i class="key {x.hue}"></i>'
        f"<code>{escape(_shorten_path(x.where))}</code></td>"
        f'<td class="bar"><b class="{x.hue}" style="width:{share:.1f}%"></b></td>'
        f"<td>{format_bytes(x.live)}</td><td>{x.blocks:,}</td><td>{format_bytes(x.peak)}</td>"
        f"<td>{x.allocations:,}</td><td>{format_bytes(x.total)}</td></tr>\n"
    )


_NO_TIMELINE = (
    '<p class="hint">No timeline was recorded: call <code>dovetail.memory.trace(True)</code> '
    "before the work.</p>"
)
_NO_LINES = (
    '<p class="hint">No lines were recorded: call <code>dovetail.memory.trace(True)</code> '
    "before the work.</p>"
)


# --- the timeline


def _render_timeline(series: MemorySeries, lines: Sequence[LineUsage]) -> str:
    """Render HTML: an SVG plot of the stacked layers of the series, and a legend with `lines`."""
    x, y = _scale_axes(series.times, series.top)
    parts = [f'<div class="scroll"><svg id="timeline" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">']
    parts.append("<title>Bytes reserved on the device over time, by what they are used for</title>")
    parts += _render_axes(series, x, y)
    base = [0] * len(series.times)
    for name, values in series.layers.items():
        above = [a + b for a, b in zip(base, values, strict=True)]
        parts.append(
            f'<path class="area {name}" data-hue="{name}" d="{_draw_area(base, above, x, y)}"/>'
        )
        base = above
    parts.append('<line id="cursor" hidden></line></svg></div>')
    return "\n".join([*parts, _render_legend(series, lines)])


def _scale_axes(times: Sequence[float], top: int) -> tuple[list[float], float]:
    """Return the x coordinates of the times, and the height of one byte, in SVG units."""
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    span = (times[-1] - times[0]) or 1.0
    return [LEFT + wide * (t - times[0]) / span for t in times], high / (1.04 * top or 1)


def _draw_area(low: Sequence[int], high: Sequence[int], x: Sequence[float], y: float) -> str:
    """Return the SVG path between two step functions: a value holds until the next event."""
    floor = HEIGHT - BOTTOM

    def steps(values: Sequence[int]) -> list[tuple[float, float]]:
        """Return the corner points of a step function of these values."""
        corners = [(x[0], floor - values[0] * y)]
        for i in range(1, len(values)):
            corners += [(x[i], floor - values[i - 1] * y), (x[i], floor - values[i] * y)]
        return corners

    outline = steps(high) + steps(low)[::-1]
    return "M" + "L".join(f"{a:.1f},{b:.1f}" for a, b in outline) + "Z"


def _render_axes(series: MemorySeries, x: Sequence[float], y: float) -> Iterator[str]:
    """Yield the SVG of the grid lines and the labels of both axes."""
    floor = HEIGHT - BOTTOM
    unit, name = next((u for u in UNITS if series.top >= 4 * u[0]), (1, "B"))
    for n in _ticks(series.top, unit):
        at = floor - n * y
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{n / unit:g} {name}</text>'
    span = series.times[-1] - series.times[0]
    for t in _ticks(span, 1e-3):
        at = LEFT + (WIDTH - LEFT - RIGHT) * t / (span or 1.0)
        anchor = "middle" if at < WIDTH - 40 else "end"
        yield f'<text x="{at:.1f}" y="{floor + 20}" text-anchor="{anchor}">{_format_time(t)}</text>'


def _ticks(top: float, unit: float) -> list[float]:
    """Return at most six numbers from 0 to `top`, round in `unit`."""
    steps = (unit * factor * 10.0**power for power in count() for factor in (1, 2, 5))
    step = next(s for s in steps if top / s <= 5)
    return [k * step for k in range(int(top / step) + 1)]


def _format_time(ms: float) -> str:
    """Return a time in milliseconds as text in s, ms or µs."""
    if ms == 0:
        return "0"
    return f"{ms / 1e3:.4g} s" if ms >= 1e3 else f"{ms:.4g} ms" if ms >= 1 else f"{ms * 1e3:.4g} µs"


def _label_layers(series: MemorySeries, lines: Sequence[LineUsage]) -> dict[str, str]:
    """Return the legend's label of each layer, by CSS class."""
    names = {x.hue: _shorten_path(x.where) for x in lines if x.hue not in ("other", "none")}
    return {
        **names,
        "other": "other lines",
        "none": "not traced",
        "fragmented": "fragmented: free between live blocks",
        "cached": "cached",
    }


def _render_legend(series: MemorySeries, lines: Sequence[LineUsage]) -> str:
    """Render the legend as an HTML list, the top layer first."""
    names = _label_layers(series, lines)
    keys = (
        f'<li data-hue="{name}"><i class="key {name}"></i>{escape(names[name])}</li>'
        for name in reversed(series.layers)
    )
    return f'<ul id="legend">{"".join(keys)}</ul>'


def _build_script_data(
    series: MemorySeries | None, lines: Sequence[LineUsage]
) -> dict[str, object]:
    """Build the values that the page's script shows under the mouse pointer; {} without a trace."""
    if series is None:
        return {}
    x, _ = _scale_axes(series.times, series.top)
    return {
        "x": [round(a, 1) for a in x],
        "times": [_format_time(t - series.times[0]) for t in series.times],
        "layers": series.layers,
        "names": _label_layers(series, lines),
    }


# --- segments


def _render_segments(snapshot: Snapshot, lines: Sequence[LineUsage]) -> Iterator[str]:
    """Yield the HTML of the largest segments, and a line with the number of the others."""
    segments = sorted(snapshot["segments"], key=lambda s: -s["nbytes"])
    largest = segments[0]["nbytes"] if segments else 1
    hues = {x.number: x.hue for x in lines}
    for s in segments[:SEGMENTS_MAX]:
        stream = "" if s["stream"] is None else f" on {escape(s['stream'])}"
        width = max(8.0, 100 * s["nbytes"] / largest)
        blocks = "".join(_render_block(b, s["nbytes"], snapshot, hues) for b in s["blocks"])
        yield (
            f'<div class="segment"><span>{format_bytes(s["nbytes"])}{stream}</span>'
            f'<svg style="width:{width:.1f}%" viewBox="0 0 1000 20" preserveAspectRatio="none">'
            f"{blocks}</svg></div>\n"
        )
    if len(segments) > SEGMENTS_MAX:
        yield f'<p class="hint">and {len(segments) - SEGMENTS_MAX:,} smaller ones</p>'


def _render_block(
    block: Sequence[Json], nbytes: int, snapshot: Snapshot, hues: Mapping[int, str]
) -> str:
    """Render a block as an SVG rectangle, in the colour of its source line or state."""
    offset, n, state, number = block
    hue = hues.get(number, "none") if state == "live" else escape(state)
    whose = _shorten_path(snapshot["lines"][number]) if state == "live" else state
    return (
        f'<rect class="{hue}" data-hue="{hue}" x="{1000 * offset / nbytes:.2f}" '
        f'width="{1000 * n / nbytes:.2f}" height="20">'
        f"<title>{format_bytes(n)} at {offset:,}: {escape(whose)}</title></rect>"
    )
