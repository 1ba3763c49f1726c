"""`dt.explain` and `dt.profile` describe what evaluation then does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import dovetail as dt
import numpy as np
import pytest
from dovetail.device_class import device
from dovetail.dtypes import dtype
from dovetail.engine import evaluate as run
from dovetail.engine import events, programs
from dovetail.errors import ArgumentError, DTypeError
from dovetail.insight.explain import explain
from dovetail.insight.explain_report import Explanation
from dovetail.insight.profile import profile
from dovetail.memory.units import format_bytes
from dovetail.ops.table import SUM, TABLE
from dovetail.settings import flags
from dovetail.tensor.host import from_host
from dovetail.tensor.primitives import apply, reduce
from dovetail.tensor.tensor import Tensor

REFERENCE = device("reference")


def tensor(values: object) -> Tensor:
    array = np.asarray(values)
    return from_host(array, dtype(array.dtype), REFERENCE)


def ramp(*shape: int) -> Tensor:
    return tensor(np.arange(np.prod(shape), dtype="f4").reshape(shape))


# --- explain


def test_explain_runs_and_consumes_nothing() -> None:
    x = ramp(4, 5)
    y = x * 2.0 + 1.0
    before = run.counters.launches, run.counters.compiles
    assert len(explain(y).launches) == 1
    assert (run.counters.launches, run.counters.compiles) == before
    assert y._expr.op is not None, "it is no longer pending"
    assert np.array_equal(y.numpy(), np.arange(20, dtype="f4").reshape(4, 5) * 2 + 1)


def test_elementwise_chain_is_one_kernel_that_moves_each_array_once() -> None:
    x, y = ramp(30, 40), ramp(30, 40)
    found = explain((x * y + x) / (y + 1.0))
    assert len(found.launches) == 1
    assert found.nbytes == 3 * 4 * 30 * 40  # x, y and the result
    assert found.fresh == 4 * 30 * 40
    assert found.launches[0].grid == (1200,)
    assert "div" in found.launches[0].text and "kernel" in found.launches[0].text


def test_number_of_launches_equals_evaluation() -> None:
    x = ramp(6, 7)
    s = reduce(SUM, x, (0,), False)
    y = reduce(SUM, x * s, (1,), False)
    promised = explain(y)
    before = run.counters.launches
    y.numpy()
    assert run.counters.launches - before == len(promised.launches) == 2


def test_every_stored_value_has_a_reason() -> None:
    x = ramp(3, 3)
    held = x * 2.0
    y = held + 1.0
    lines = explain(y).stored
    assert [line.split(":")[0] for line in lines] == [
        "multiply float32[3, 3] on reference",
        "add float32[3, 3] on reference",
    ]
    assert "still held" in lines[0] and "asked for" in lines[1]
    del held
    assert len(explain(y).stored) == 1


def test_several_tensors_are_planned_together() -> None:
    x = ramp(8)
    a, b = x + 1.0, x + 2.0
    assert len(explain(a, b).launches) == 1
    assert len(explain(a, b).stored) == 2


def test_evaluated_tensor_has_nothing_pending() -> None:
    x = ramp(3) + 1.0
    x.numpy()
    assert explain(x).launches == ()
    assert "Nothing is pending" in str(explain(x))


def test_programs_are_in_memory_after_the_first_evaluation() -> None:
    def work() -> Tensor:
        return apply(TABLE["tan"], (ramp(5) * 0.125,)) - 3.0

    assert explain(work()).launches[0].origin != "in memory"
    work().numpy()
    assert explain(work()).launches[0].origin == "in memory"


def test_source_compiles_without_running() -> None:
    y = ramp(5) * 17.0 - 4.0
    before = run.counters.launches
    found = explain(y, source=True)
    assert (
        found.launches[0].source
        == programs.get_program(
            REFERENCE.opened, run.plan_pending([y._expr])[0][1].steps[0].kernel
        ).source
    )
    assert run.counters.launches == before


def test_text_names_kernels_bytes_and_reasons() -> None:
    y = ramp(64, 64) * 2.0
    text = explain(y).text()
    assert text == str(explain(y, verbose=True)) == repr(explain(y, verbose=True))
    for part in ("1 launch,", "32.0 KiB moved", "multiply", "asked for", "grid 4096", "Stored:"):
        assert part in text, part


def many_launches() -> Tensor:
    x = ramp(8, 8)
    for _ in range(6):  # alternating sums of rows and columns: one launch each
        x = x * reduce(SUM, x, (0,), False) - reduce(SUM, x, (1,), False)
    return x


def test_summary_is_short_and_names_the_largest_launches() -> None:
    found = explain(many_launches())
    assert len(found.launches) > 5
    lines = str(found).splitlines()
    assert str(found) == repr(found) == found.summary() and len(lines) < 12
    assert len(found.text().splitlines()) > 10 * len(lines)
    biggest = sorted((s.nbytes for s in found.launches), reverse=True)[:3]
    named = [found.launches[int(n) - 1] for n in re.findall(r"^  (\d+)\. ", str(found), re.M)]
    assert sorted((s.nbytes for s in named), reverse=True) == biggest
    assert " = " not in str(found), "the text of a kernel"
    assert f"... and {len(found.launches) - 3} that move less" in str(found)


def test_times_are_those_of_an_earlier_profile() -> None:
    x = ramp(11, 13)
    held = x * 2.5
    assert explain(held).seconds is None and "took" not in str(explain(held))
    with profile() as p:
        held.numpy()
    again = explain(ramp(11, 13) * 2.5)
    assert again.seconds is not None and "took" in str(again) and "last profiled" in str(again)
    (launch,) = [line for line in p.lines() if line.name.startswith("launch")]
    assert again.seconds == pytest.approx(launch.seconds)
    assert explain(ramp(11, 14) * 2.5).seconds is None, "of another size nothing is known"


def test_launch_graph_shows_bytes_and_results() -> None:
    x = ramp(16, 8)
    s = reduce(SUM, x, (0,), False)
    y = reduce(SUM, x * s, (1,), False)
    found = explain(y)
    svg = found.svg()
    root = ElementTree.fromstring(svg)
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [t for t in texts if t and t[:2] in ("1.", "2.")] == [
        f"{n}. {step.name}" for n, step in enumerate(found.launches, 1)
    ]
    assert "float32[16, 8]" in texts and "float32[16]" in texts, "what is read, and what is kept"
    assert "32 bytes" in texts and "64 bytes" in texts, "what is handed on"
    html = found._repr_html_()
    assert svg in html and "<script" not in html and "2 launches as a table" in html
    assert "Nothing is pending" in explain(ramp(3))._repr_html_()


def test_launch_graph_is_limited_in_size_and_saved(tmp_path: Path) -> None:
    x = ramp(4)
    held = [x * (n + 1.0) for n in range(3)]
    found = explain(*held)
    launch = found.launches[0]._replace(name="<script>x</script>")
    many = Explanation((launch,) * 300, ())
    assert "and 100 launches more" in many.svg() and "<script>" not in many.html()
    assert found.save(tmp_path / "e.svg").read_text().startswith("<svg")
    assert "<svg" in found.save(tmp_path / "e.html").read_text()
    with pytest.raises(ArgumentError, match=r"save: the file must end in .svg or .html"):
        found.save(tmp_path / "e.png")


def test_captured_function_is_drawn() -> None:
    f = dt.jit(lambda x: (x * x.sum(axis=0)).sum(axis=1))
    for _ in range(2):
        f(dt.ones((5, 5), device="reference"))
    found = dt.explain(f)
    assert "captured" in found._repr_html_() and "<svg" in found.captures[0]._repr_html_()
    assert len(found.text()) > len(str(found)) and found.captures[0].text() in found.text()
    assert str(dt.explain(f, verbose=True)) == found.text()


def test_explain_of_a_non_tensor_raises() -> None:
    with pytest.raises(DTypeError, match="explain: expected a tensor, got ndarray"):
        explain(np.zeros(3))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (3 << 30, "3.0 GiB")]
)
def test_bytes_text_has_a_binary_unit(n: int, text: str) -> None:
    assert format_bytes(n) == text


# --- profile


def test_profile_records_plan_compile_and_launch(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    x = ramp(16, 16)
    with profile(path) as p:
        ((x + 0.5) * 3.0 / (x + 9.0)).numpy()
    kinds = [line.name.split(" ")[0] for line in p.lines()]
    assert sorted(kinds) in (["compile", "launch", "plan"], ["launch", "load", "plan"])
    launch = next(line for line in p.lines() if line.name.startswith("launch"))
    assert (launch.count, launch.nbytes) == (1, 2 * 16 * 16 * 4)
    trace = json.loads(path.read_text())["traceEvents"]
    complete = [e for e in trace if e["ph"] == "X"]
    assert len(complete) == len(p.events) == 3
    assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in complete)
    counter = next(e for e in trace if e["ph"] == "C")
    assert counter["args"]["live bytes"] >= 2 * 16 * 16 * 4


def test_summary_has_a_row_for_each_kind_of_event() -> None:
    x = ramp(9)
    with profile() as p:
        for _ in range(3):
            (x * 5.0).numpy()
    text = p.summary()
    row = next(line for line in text.splitlines() if line.startswith("launch multiply"))
    assert row.split()[2] == "3"
    assert p.seconds > 0 and "ms in events" in text


def test_nothing_is_recorded_outside_of_a_profile() -> None:
    x = ramp(3)
    with profile() as p:
        pass
    (x + 1.0).numpy()
    assert p.events == [] and events.profiles == ()


def test_outer_profile_has_the_events_of_an_inner_one() -> None:
    x = ramp(3)
    with profile() as outer:
        (x + 1.0).numpy()
        with profile() as inner:
            (x * 2.0).numpy()
    assert 0 < len(inner.events) < len(outer.events)
    assert outer.events[-len(inner.events) :] == inner.events


def test_profiles_may_overlap() -> None:
    first, second = profile(), profile()
    x = dt.ones(5, device="reference")
    first.__enter__()
    dt.evaluate(x + 1)
    second.__enter__()
    dt.evaluate(x + 2)
    first.__exit__(None, None, None)
    dt.evaluate(x + 3)
    second.__exit__(None, None, None)
    dt.evaluate(x + 4)
    count = [sum(e["name"].startswith("launch") for e in p.events) for p in (first, second)]
    assert count == [2, 2] and events.profiles == ()


def test_profile_cannot_be_entered_twice() -> None:
    p = profile()
    with p:
        pass
    with pytest.raises(ArgumentError, match="entered only once"), p:
        pass


def test_profiled_flag_follows_overlapping_profiles() -> None:
    first, second = profile(), profile()
    assert not flags.is_observed
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert flags.is_observed
    second.__exit__(None, None, None)
    second.__exit__(None, None, None)  # which is over already
    assert not flags.is_observed and events.profiles == ()


def test_explain_of_another_layout_reports_the_work_of_its_parts() -> None:
    x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    report = dt.explain(x * 2)
    assert "multiply" in report.text() and report.messages == () and report.bytes_sent == 0
