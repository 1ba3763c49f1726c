"""The trace of an allocator and the page of `dovetail memory`: its content, and its view in a
browser.
"""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
import random
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import dovetail as dt
import pytest
from dovetail import memory
from dovetail.commands.memory_report import main as memory_report
from dovetail.errors import ArgumentError
from dovetail.memory import CachingAllocator, DataPtr
from dovetail.memory.tracing import html_report, snapshot, trace
from dovetail.memory.tracing.html_report import draw, timeline, usage_by_line
from dovetail.memory.units import MIB, format_bytes
from fake_device import make

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--virtual-time-budget=2000",
]  # fmt: skip


@pytest.fixture
def traced() -> Iterator[CachingAllocator]:
    """Return the traced allocator of a device that only counts."""
    _, allocator = make()
    memory.trace(True)
    yield allocator
    memory.trace(False)


def recorded(allocator: CachingAllocator) -> dict[str, Any]:
    found = snapshot.build("fake", allocator.stats(), allocator.snapshot(), allocator.timeline)
    again: dict[str, Any] = json.loads(json.dumps(found))
    return again


def work(allocator: CachingAllocator, seed: int, steps: int = 300) -> list[DataPtr]:
    """Return the live pointers of a random trace."""
    rng, live = random.Random(seed), list[DataPtr]()
    for _ in range(steps):
        if live and rng.random() < 0.45:
            live.pop(rng.randrange(len(live)))
        elif rng.random() < 0.5:
            live.append(allocator.allocate(rng.choice((1, 5000, 600_000, MIB))))
        else:
            live.append(allocator.allocate(rng.choice((2, 9, 11)) * MIB))
        if rng.random() < 0.02:
            allocator.empty_cache()
    return live


# --- the timeline


def fragmented(allocator: CachingAllocator) -> int:
    """Return the free bytes of segments with a live block."""
    total = 0
    for s in allocator.snapshot():
        live = sum(b.nbytes for b in s.blocks if b.state == "live")
        total += s.nbytes - live if live else 0
    return total


@pytest.mark.parametrize("seed", range(5))
def test_last_event_agrees_with_the_allocator(traced: CachingAllocator, seed: int) -> None:
    live = work(traced, seed)
    stats = traced.stats()
    assert traced.timeline is not None
    last = traced.timeline.events[-1]
    assert last.live == stats.live_bytes and len(live) == stats.live_blocks
    assert last.live + last.cached + last.fragmented == stats.reserved_bytes
    assert last.fragmented == fragmented(traced)
    assert max(e.live for e in traced.timeline.events) == stats.peak_live_bytes
    times = [e.time for e in traced.timeline.events]
    assert times == sorted(times)


def test_memory_live_before_tracing_is_counted() -> None:
    _, allocator = make()
    live = work(allocator, 9)
    memory.trace(True)
    try:
        before = allocator.stats().live_bytes
        assert allocator.timeline is not None
        assert allocator.timeline.events[0].live == before > 0
        del live[::2]
        live += work(allocator, 10)
        assert allocator.stats().live_bytes == allocator.timeline.events[-1].live
        found = recorded(allocator)
        assert usage_by_line(found)[0].blocks > 0 and draw(found)
    finally:
        memory.trace(False)


def test_free_is_recorded_at_its_time(
    traced: CachingAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that advances by one each time it is read."""
    clock = itertools.count(1e9)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    ptr = traced.allocate(1000)
    begun = next(clock)
    del ptr
    freed = next(clock)
    traced.stats()  # the allocator notices the free only now
    assert traced.timeline is not None
    last = traced.timeline.events[-1]
    assert last.change == -1024 and begun <= last.time <= freed


def test_untraced_work_records_nothing() -> None:
    _, allocator = make()
    work(allocator, 1)
    assert allocator.timeline is None
    memory.trace(True)
    memory.trace(False)
    live = work(allocator, 2)
    assert allocator.timeline is not None and len(allocator.timeline.events) == 1
    assert all(b.where is None for s in allocator.snapshot() for b in s.blocks) and live
    assert "No timeline was recorded" in draw(recorded(allocator))


def test_oldest_events_are_dropped_at_the_limit(
    traced: CachingAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "EVENTS_MAX", 50)
    live = work(traced, 3)
    found = recorded(traced)
    assert len(found["events"]) == 50 and live
    held = dict(found["before"])
    for _, change, number, *_ in found["events"]:
        held[number] = held.get(number, 0) + change
    assert {x.number: x.live for x in usage_by_line(found) if x.live} == {
        n: nbytes for n, nbytes in held.items() if nbytes
    }


def test_allocator_created_while_tracing_is_traced(traced: CachingAllocator) -> None:
    _, later = make()
    ptr = later.allocate(10)
    assert later.timeline is not None and later.timeline.events[-1].where is not None
    assert "test_memory_page.py" in later.timeline.events[-1].where and ptr.nbytes == 10


# --- the numbers of the page


def test_lines_agree_with_the_snapshot(traced: CachingAllocator) -> None:
    live = work(traced, 4)
    lines = usage_by_line(recorded(traced))
    stats = traced.stats()
    assert sum(x.live for x in lines) == stats.live_bytes
    assert sum(x.blocks for x in lines) == stats.live_blocks == len(live)
    assert sum(x.allocations for x in lines) == stats.allocations
    assert [x.peak for x in lines] == sorted((x.peak for x in lines), reverse=True)
    assert all(x.peak >= x.live for x in lines) and len(lines) == 2
    assert sum(x.peak for x in lines) >= stats.peak_live_bytes >= lines[0].peak


def test_plot_keeps_the_peak_and_adds_up_to_reserved_bytes(traced: CachingAllocator) -> None:
    live = work(traced, 5, 4000)
    found = recorded(traced)
    series = timeline(found, usage_by_line(found))
    assert series is not None and len(series.times) <= html_report.TIMELINE_POINTS_MAX + 3 and live
    rows = list(zip(*series.layers.values(), strict=True))
    assert sum(rows[-1]) == traced.stats().reserved_bytes
    held = [sum(row[:-2]) for row in rows]  # the last two layers are fragmented and cached
    assert max(held) == traced.stats().peak_live_bytes


def record_of(*events: tuple[float, int, int], before: int = 0) -> dict[str, Any]:
    """Return a record of events of one line, each of (time, live bytes, cached bytes)."""
    _, allocator = make()
    found = recorded(allocator)
    found["lines"], found["before"] = [None, "a.py:1"], [[1, before]]
    found["written"] = "then"
    held = [before, *(live for _, live, _ in events)]
    found["events"] = [
        [at, live - held[i], 1, live, cached, 0, -1, 0]
        for i, (at, live, cached) in enumerate(events)
    ]
    return found


def test_plot_keeps_the_latest_maximum_of_each_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(html_report, "TIMELINE_POINTS_MAX", 4)
    live = [5, 1, 9, 9, 2, 1, 1, 1, 0, 0, 0, 7, 1, 3, 2, 2, 1]
    found = record_of(*((1000.0 + k, n, 0) for k, n in enumerate(live)))
    series = timeline(found, usage_by_line(found))
    assert series is not None
    assert [t - 1000 for t in series.times] == [0, 3, 4, 11, 13, 16]
    assert series.layers["h0"] == [5, 9, 2, 7, 3, 1]


def test_plot_starts_with_memory_live_before() -> None:
    found = record_of((0.0, 300, 0), (1.0, 700, 0), before=300)
    series = timeline(found, usage_by_line(found))
    assert series is not None and series.top == 700
    assert series.layers == {"h0": [300, 700], "fragmented": [0, 0], "cached": [0, 0]}


def test_plot_needs_two_events() -> None:
    one, two = record_of((0.0, 300, 0)), record_of((0.0, 300, 0), (1.0, 700, 0))
    assert (
        timeline(one, usage_by_line(one)) is None and timeline(two, usage_by_line(two)) is not None
    )


def outlines(text: str) -> dict[str, list[tuple[float, float]]]:
    """Return the corners of each area of a page's timeline."""
    areas = re.findall(r'class="area [a-z0-9]+" data-hue="([a-z0-9]+)" d="M(.*?)Z"', text)
    return {
        name: [(float(x), float(y)) for x, y in (p.split(",") for p in path.split("L"))]
        for name, path in areas
    }


def test_areas_are_stacked_steps_at_the_times_of_events() -> None:
    events = [(0.0, 100, 50), (10.0, 300, 0), (40.0, 200, 800)]
    found = outlines(draw(record_of(*events)))
    wide, high = 960 - 76 - 12, 300 - 10 - 30

    def place(at: float, nbytes: int) -> tuple[float, float]:
        return round(76 + wide * at / 40, 1), round(270 - high * nbytes / 1040, 1)

    low = [place(0, 100), place(10, 100), place(10, 300), place(40, 300), place(40, 200)]
    top = [place(0, 150), place(10, 150), place(10, 300), place(40, 300), place(40, 1000)]
    floor = [place(at, 0) for at in (0, 10, 10, 40, 40)]
    assert found == {
        "h0": low + floor[::-1], "fragmented": low + low[::-1], "cached": top + low[::-1],
    }  # fmt: skip


def test_drawing_does_not_depend_on_the_start_time() -> None:
    events = [(float(k), 100 * (k * 7 % 13), 50) for k in range(3000)]
    later = [(at + 4096.0, live, cached) for at, live, cached in events]
    first, second = draw(record_of(*events)), draw(record_of(*later))
    assert first == second and len(outlines(first)["h0"]) > 1200


def test_events_at_one_time_are_drawn() -> None:
    found = outlines(draw(record_of((5.0, 100, 0), (5.0, 300, 0), (5.0, 200, 0))))
    assert {x for x, _ in found["h0"]} == {76.0}


def test_plot_of_zeros_is_flat() -> None:
    found = outlines(draw(record_of((0.0, 0, 0), (1.0, 0, 0))))
    assert found and {y for area in found.values() for _, y in area} == {270.0}


@pytest.mark.parametrize(
    ("top", "unit", "said"),
    [
        (5, 1, [0, 1, 2, 3, 4, 5]),
        (5.5, 1, [0, 2, 4]),
        (6, 1, [0, 2, 4, 6]),
        (11, 1, [0, 5, 10]),
        (26, 1, [0, 10, 20]),
        (100, 1, [0, 20, 40, 60, 80, 100]),
        (101, 1, [0, 50, 100]),
        (7 * MIB, MIB, [0, 2 * MIB, 4 * MIB, 6 * MIB]),
        (0, 1, [0]),
    ],
)
def test_ticks_are_few_and_round(top: float, unit: float, said: list[float]) -> None:
    assert html_report._ticks(top, unit) == said


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (3 * MIB // 2, "1.5 MiB"), (5 << 40, "5.0 TiB")],
)
def test_bytes_text_has_a_binary_unit(n: int, text: str) -> None:
    assert format_bytes(n) == text


# --- the page


class Structure(HTMLParser):
    """The unclosed tags at the end, and all references outside of the page."""

    VOID = ("meta", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.seen.append((tag, found))
        links = [found.get(a) for a in ("src", "href", "action", "data") if found.get(a)]
        self.outside += [x for x in links if x is not None and not x.startswith("data:")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def count(self, tag: str, **attributes: str) -> int:
        """Return how many elements have the tag and, among others, these words in attributes."""
        return sum(
            t == tag
            and all(v in (a.get(k.rstrip("_")) or "").split() for k, v in attributes.items())
            for t, a in self.seen
        )


def test_page_is_one_well_formed_file(traced: CachingAllocator) -> None:
    live = work(traced, 6)
    found = recorded(traced)
    text = draw(found)
    page = Structure(text)
    assert page.open == [] and page.outside == []
    assert "http" not in text.replace("http-equiv", "") and "@import" not in text
    assert page.count("path", class_="area") == len(usage_by_line(found)) + 2
    assert page.count("div", class_="segment") == len(found["segments"]) > 3
    assert page.count("rect") == sum(len(s["blocks"]) for s in found["segments"])
    assert page.count("div", class_="figure") == 6 and live
    for x in usage_by_line(found):
        assert f'title="{html.escape(x.where or "")}"' in text
    data = re.search(r'<script id="data"[^>]*>(.*?)</script>', text, re.S)
    assert data is not None and set(json.loads(data[1])) == {"x", "times", "layers", "names"}
    assert "prefers-color-scheme: dark" in text


def test_empty_allocator_has_a_page() -> None:
    _, allocator = make()
    text = draw(recorded(allocator))
    assert Structure(text).open == [] and "No timeline" in text and "No lines were recorded" in text


def test_file_names_are_escaped(traced: CachingAllocator) -> None:
    name = '</script><b onclick="x">&\'$device.py'
    live: list[Any] = []
    exec(compile("live.append(a.allocate(5000))", name, "exec"), {"live": live, "a": traced})
    text = draw(recorded(traced))
    page = Structure(text)
    assert page.open == [] and not any("onclick" in a for _, a in page.seen)
    assert html.escape("$device.py:1") in text


@pytest.mark.parametrize("bad", [[], {}, {"version": 2}, {"version": 1}, "text"])
def test_command_rejects_files_that_are_no_snapshot(bad: Any, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps(bad))
    assert memory_report([str(path)]) == 2
    assert "not a memory snapshot" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [path]


def test_missing_file_is_reported(tmp_path: Path, capsys: Any) -> None:
    assert memory_report([str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err


def test_command_draws_the_file_that_page_writes(tmp_path: Path) -> None:
    memory.trace(True)
    try:
        x = dt.asarray([1.0, 2.0], device="reference")
        dt.evaluate(x + 1)
        memory.html_report(tmp_path / "now.json", "reference")
        memory.html_report(tmp_path / "now.html", "reference")
    finally:
        memory.trace(False)
    assert memory_report([str(tmp_path / "now.json"), "-o", str(tmp_path / "drawn.html")]) == 0
    drawn = (tmp_path / "drawn.html").read_text()
    assert "Memory of reference" in drawn and "test_memory_page.py" in drawn
    assert Structure(drawn).count("svg", id="timeline") == 1
    assert Structure((tmp_path / "now.html").read_text()).count("svg", id="timeline") == 1


# --- escaping

EVIL = """"'><script>alert(1)</script><!--<script>&amp;</title></style>]]>"""


def test_all_texts_of_a_record_are_escaped(traced: CachingAllocator) -> None:
    live = work(traced, 3)
    record = recorded(traced)
    assert live and record["segments"]
    plain = Counter(tag for tag, _ in Structure(draw(record)).seen)
    record["device"] = record["written"] = EVIL
    record["lines"] = [None, *(f"{EVIL}{i}:1" for i in range(len(record["lines"]) - 1))]
    for s in record["segments"]:
        s["stream"] = EVIL
    page = draw(record)
    assert Counter(tag for tag, _ in Structure(page).seen) == plain, "it has made no element"
    [data] = re.findall(r'<script id="data"[^>]*>(.*?)</script>', page)
    assert "<" not in data and json.loads(data)["layers"]
    assert EVIL in html.unescape(page) and EVIL not in page
    record["segments"][0]["blocks"][0][2] = EVIL
    with pytest.raises(ArgumentError, match=r"segments\[0\].blocks\[0\]\[2\] must be one of live"):
        draw(record)


def test_content_security_policy_allows_only_the_own_script(traced: CachingAllocator) -> None:
    page = draw(recorded(traced))
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert re.findall(r"script-src ([^;]*)", policy) == [f"'sha256-{digests[0]}'"]
    assert len(scripts) == 1 and policy.startswith("default-src 'none';")


# --- in a browser

PROBE = """
<script>
"use strict";
const found = { errors: [] };
addEventListener("error", (e) => found.errors.push(e.message));
addEventListener("load", () => {
  const box = plot.getBoundingClientRect();
  const at = { clientX: box.left + box.width * 0.7, clientY: box.top + 40, bubbles: true };
  plot.dispatchEvent(new PointerEvent("pointermove", at));
  found.tip = tip.innerText;
  found.cursor = document.getElementById("cursor").getBoundingClientRect().x - at.clientX;
  plot.dispatchEvent(new PointerEvent("pointerleave"));
  found.hiddenAgain = tip.hidden;
  const first = document.querySelector("#legend li:last-child");
  first.dispatchEvent(new PointerEvent("pointerenter"));
  found.lit = document.querySelectorAll(".lit").length;
  first.dispatchEvent(new PointerEvent("pointerleave"));
  found.areas = [...document.querySelectorAll(".area")].map((a) => a.getBBox().height);
  found.fill = getComputedStyle(document.querySelector(".area")).fill;
  found.wide = document.documentElement.scrollWidth - innerWidth;
  found.ran = document.documentElement.dataset.ran ?? null;
  found.fetched = performance.getEntriesByType("resource").length;
  document.body.setAttribute("data-found", JSON.stringify(found));
});
</script>
"""


def browse(text: str, folder: Path, *flags: str) -> dict[str, Any]:
    """Return the results of the probe in a page that a browser shows."""
    path = folder / "page.html"
    mine = html_report._digest(html_report._SCRIPT.findall(PROBE)[0])
    allowed = text.replace("script-src '", f"script-src 'sha256-{mine}' '")
    path.write_text(allowed.replace("</body>", f"{PROBE}</body>"), encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [str(BROWSER), *FLAGS, *flags, profile, "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    match = re.search(r'data-found="([^"]*)"', done.stdout)
    assert match is not None, done.stdout[-2000:] + done.stderr[-2000:]
    found: dict[str, Any] = json.loads(html.unescape(match[1]))
    return found


needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="there is no chromium here (apt install chromium)"
)


@needs_browser
def test_browser_runs_no_foreign_script(traced: CachingAllocator, tmp_path: Path) -> None:
    work(traced, 7)
    page = draw(recorded(traced))
    strange = "<script>document.documentElement.dataset.ran = 1</script>"
    handler = '<img src="data:," onerror="document.documentElement.dataset.ran = 1">'
    found = browse(page.replace("</header>", f"{strange}{handler}</header>"), tmp_path)
    assert found["ran"] is None and found["errors"] == [] and "reserved" in found["tip"]


@needs_browser
@pytest.mark.parametrize("width", [420, 1200])
def test_browser_shows_the_page(traced: CachingAllocator, tmp_path: Path, width: int) -> None:
    live = work(traced, 7)
    record = recorded(traced)
    for i, event in enumerate(record["events"]):
        event[0] = i / 2  # milliseconds; real events come in bursts
    found = browse(draw(record), tmp_path, f"--window-size={width},900")
    assert found["errors"] == [] and found["fetched"] == 0 and live
    assert "reserved" in found["tip"] and "test_memory_page.py" in found["tip"]
    assert abs(found["cursor"]) < 2 and found["hiddenAgain"]
    assert found["lit"] >= 3, "a key, an area and a row of the same line"
    assert min(found["areas"][:2]) > 20 and found["fill"].startswith("rgb(")
    assert found["wide"] <= 0, "the page is wider than its window"


@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_allocations_of_plugins_name_the_line_of_the_user(name: str) -> None:
    """A layout or a backend allocates on behalf of the user's line."""
    x = dt.eye(50, device=name) * 3
    memory.trace(True)
    try:
        s = x.to_sparse()
        t = (s + s @ s).coalesce()
        dt.evaluate(s, t)
        blocks = [b for s in memory.snapshot(name) for b in s.blocks if b.where is not None]
    finally:
        memory.trace(False)
    assert {b.where.rpartition(":")[0] for b in blocks if b.where is not None} == {__file__}


def test_allocations_of_cached_graphs_name_the_line_of_the_user(device: dt.Device) -> None:
    """The code that `plan_cache` generates belongs to dovetail; a trace skips it."""
    memory.trace(True)
    try:
        x, kept = dt.ones(1000), []
        for _ in range(4):
            kept.append(x * 2.5 + 1.5)
            dt.evaluate(kept[-1])
        blocks = [b for s in memory.snapshot(device) for b in s.blocks if b.where is not None]
    finally:
        memory.trace(False)
    lines = {b.where.rpartition(":")[0] for b in blocks if b.where is not None}
    assert lines == {__file__} and len(blocks) >= 4


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0.0, "0"), (0.25, "250 µs"), (0.9994, "999.4 µs"), (1.0, "1 ms"), (999.5, "999.5 ms"),
        (1000.0, "1 s"), (12345.0, "12.35 s"),
    ],
)  # fmt: skip
def test_times_have_a_fitting_unit(ms: float, said: str) -> None:
    assert html_report._format_time(ms) == said
