"""`dt.draw_graph`: pending work, and the path of gradients."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import dovetail as dt
import numpy as np
import pytest
from dovetail.insight import svg_boxes
from dovetail.insight.svg_boxes import Arrow, Box

SVG = "{http://www.w3.org/2000/svg}"


def ramp(*shape: int) -> dt.Tensor:
    return dt.asarray(np.arange(np.prod(shape), dtype="f4").reshape(shape), device="reference")


def texts(svg: str) -> list[str]:
    return [t.text or "" for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_drawing_a_pending_graph_keeps_it_pending() -> None:
    x = ramp(2, 3)
    y = (x * 2).sum(axis=1)
    found = dt.draw_graph(y, names={"x": x, "y": y})
    assert y._expr.op is not None, "it was computed"
    assert str(found).splitlines() == [
        "3 nodes pending",
        "  %0 x: float32[2, 3]",
        "  %1 multiply: float32[2, 3] of %0",
        "  %2 y = sum: float32[2] of %1",
    ]
    assert texts(found.svg()) == [
        "x", "float32[2, 3]", "multiply", "float32[2, 3]", "y = sum", "float32[2]",
    ]  # fmt: skip
    assert len([*ElementTree.fromstring(found.svg()).iter(f"{SVG}path")]) == 1 + 2, "two arrows"
    assert repr(found) == "<Graph of 3 nodes pending>" and found.svg() in found._repr_html_()


def test_tape_is_drawn_once_nothing_is_pending() -> None:
    w = ramp(3).requires_grad_()
    loss = (w * w).sum()
    assert "pending" in repr(dt.draw_graph(loss))
    on_tape = dt.draw_graph(loss, gradient=True, names={"w": w})
    assert str(on_tape).splitlines()[1:] == [
        "  %0 w: float32[3]",
        "  %1 multiply: float32[3] of %0, %0",
        "  %2 sum: float32[] of %1",
    ]
    dt.evaluate(loss)
    assert repr(dt.draw_graph(loss)) == "<Graph of 3 nodes on the tape>"
    assert repr(dt.draw_graph(loss, gradient=False)) == "<Graph of 1 node pending>"
    with pytest.raises(
        dt.ArgumentError, match=r"draw_graph: the tensor has no recorded graph.*requires_grad_"
    ):
        dt.draw_graph(ramp(3), gradient=True)


def test_large_graph_names_the_number_of_omitted_nodes() -> None:
    w = ramp(2).requires_grad_()
    z = w
    for _ in range(5000):
        z = z * 1.0 + w
    found = dt.draw_graph(z, gradient=True)
    assert (found.count, found.drawn) == (10_001, 200)
    assert "the nearest 200 are drawn" in found.html()
    assert texts(found.svg()).count("...") == 1, "the place where it goes on"


def test_views_of_pending_work_are_drawn_as_part_of_it() -> None:
    y = (ramp(4) + 1)[1:] * 3
    assert [line.split()[1] for line in str(dt.draw_graph(y)).splitlines()[1:]][-2:] == [
        "add:",
        "multiply:",
    ]


def test_names_are_escaped_and_files_are_written(tmp_path: Path) -> None:
    x = ramp(2)
    found = dt.draw_graph(x + 1, names={"<script>alert(1)</script>": x})
    assert "<script" not in found.html() and "&lt;script&gt;" in found.html()
    assert "<rect" in found.save(tmp_path / "g.svg").read_text()
    assert "&lt;script&gt;" in found.save(tmp_path / "g.html").read_text()
    with pytest.raises(dt.ArgumentError, match=r"\.svg or \.html"):
        found.save(tmp_path / "g.gif")


def test_sparse_tensors_are_drawn_as_their_parts() -> None:
    s = ramp(3, 3).to_sparse() * 2
    assert "on reference" in dt.draw_graph(s).svg()


def test_draw_graph_of_wrong_arguments_raises() -> None:
    with pytest.raises(dt.ArgumentError, match="at least one tensor"):
        dt.draw_graph()
    with pytest.raises(dt.DTypeError, match="draw_graph: expected a tensor"):
        dt.draw_graph(3)  # type: ignore[arg-type]
    with pytest.raises(dt.ArgumentTypeError, match="names"):
        dt.draw_graph(ramp(2), names=[1])  # type: ignore[arg-type]


def test_boxes_do_not_overlap() -> None:
    rng = np.random.default_rng(5)
    boxes = [Box((f"node {i}" * rng.integers(1, 4), "x"), "work") for i in range(60)]
    arrows = [Arrow(int(rng.integers(0, i)), i) for i in range(1, 60) for _ in range(2)]
    root = ElementTree.fromstring(svg_boxes.draw_boxes(boxes, arrows, "t"))
    rects = [
        tuple(float(r.attrib[k]) for k in ("x", "y", "width", "height"))
        for r in root.iter(f"{SVG}rect")
    ]
    assert len(rects) == 60
    for i, (x, y, w, h) in enumerate(rects):
        assert x >= 0 and x + w <= float(root.attrib["width"]), "outside of the drawing"
        for a, b, c, d in rects[i + 1 :]:
            assert x + w <= a or a + c <= x or y + h <= b or b + d <= y, "one box over another"
    for arrow in arrows:
        assert rects[arrow.start][1] < rects[arrow.end][1], "an arrow that leads upwards"
