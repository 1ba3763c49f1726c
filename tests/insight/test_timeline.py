"""Profiles and devices in a notebook."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import dovetail as dt
from dovetail.engine.events import ProfileEvent
from dovetail.insight import svg_boxes, timeline

SVG = "{http://www.w3.org/2000/svg}"


def event(name: str, begun: int, ended: int, thread: int = 1) -> ProfileEvent:
    return ProfileEvent(name=name, begun=begun, ended=ended, thread=thread, details={"bytes": 8})


def bars(svg: str) -> dict[str, tuple[float, float, float]]:
    """Return the position and the width of each bar by name."""
    found = {}
    for g in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        title, rect = g.find(f"{SVG}title"), g.find(f"{SVG}rect")
        if title is not None and rect is not None and title.text:
            at = tuple(float(rect.attrib[k]) for k in ("x", "y", "width"))
            found[title.text.partition(",")[0]] = (at[0], at[1], at[2])
    return found


def test_bar_spans_the_time_of_its_event() -> None:
    events = [event("launch a", 0, 250), event("compile b", 500, 1000)]
    found = bars(timeline.svg(events, 0, 1000))
    assert found["launch a"][0] == 10 and found["launch a"][2] == 210  # of 840
    assert found["compile b"][0] == 430 and found["compile b"][2] == 420
    assert found["launch a"][1] == found["compile b"][1]


def test_overlapping_bars_and_threads_have_rows_of_their_own() -> None:
    events = [event("replay f", 0, 900), event("launch a", 100, 300), event("plan", 0, 50, 2)]
    found = bars(timeline.svg(events, 0, 1000))
    assert found["launch a"][1] > found["replay f"][1], "within it"
    assert found["plan"][1] > found["launch a"][1], "another thread"


def test_profile_has_a_notebook_view(tmp_path: Path) -> None:
    x = dt.ones((40, 40), device="reference")
    with dt.profile() as p:
        dt.evaluate(dt.softmax(x * 3))
    html = p._repr_html_()
    assert "<svg" in html and "events in" in html and "memory in use: up to" in html
    assert "launch" in html and "on reference" in html and "<script" not in html
    assert p.save(tmp_path / "p.svg").read_text().startswith("<svg")
    with dt.profile() as nothing:
        pass
    assert "0 events" in nothing._repr_html_() and "nothing to draw" in nothing._repr_html_()


def test_longest_of_many_events_are_drawn_and_names_are_escaped() -> None:
    events = [event("<script>x</script>", 10 * n, 10 * n + 1 + n % 7) for n in range(3000)]
    svg = timeline.svg(events, 0, 30000)
    assert "<script" not in svg and "the 1000 longest of 3000 events" in svg
    assert svg.count("<g>") == 1000


def test_devices_are_shown_as_a_table() -> None:
    html = dt.devices()._repr_html_()  # type: ignore[attr-defined]  # a list, to type checkers
    assert "reference" in html and "(default)" in html and html.count("<tr") > len(dt.devices())


def test_table_wraps_words_and_not_numbers() -> None:
    html = svg_boxes.table(("name", "of what", "size"), [("a b", "c d", "1 MiB")], 2)
    cells = re.findall(r'<td style="([^"]*)">([^<]*)', html)
    spaces = {text: re.findall("white-space:([a-z-]+)", style) for style, text in cells}
    assert spaces == {"a b": ["pre-wrap"], "c d": ["pre-wrap"], "1 MiB": ["pre"]}
    dt.evaluate(dt.ones(1000, device="reference") * 2)
    one = dt.device("reference")._repr_html_()
    assert one.count("<tr") == 2 and "NumPy interpreter" in one and "not open" not in one
    missing = dt.device("nosuch")._repr_html_()
    assert "nosuch" in missing and "no plugin" in missing
