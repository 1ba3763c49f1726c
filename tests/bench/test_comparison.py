"""`bench/run.py`: the arithmetic of the report; wrong results and missing peers are reported."""

from __future__ import annotations

import json
import os
from pathlib import Path

import comparison
import comparison_cases
import dovetail as dt
import numpy as np
import pytest
from comparison import Report, Result
from comparison_cases import Case, Target, by_numpy, chain, count_text, numbers, ours
from dovetail.engine.evaluate import counters


def result(target: Target, **seconds: float) -> Result:
    return Result("case", (target,), seconds, nbytes=8_000_000)


def test_ratio_is_the_speedup_over_a_peer() -> None:
    seconds = {"dovetail": 2e-3, "numpy": 4e-3, "jax": 1e-3}
    assert result(Target("numpy", 2.0), **seconds).met(1e9) is True
    assert result(Target("numpy", 2.1), **seconds).met(1e9) is False
    r = result(Target("numpy|jax", 1.0), **seconds)
    assert r.ratio(r.targets[0], 1e9) == 0.5 and r.met(1e9) is False


def test_ratio_to_a_copy_uses_the_copy_rate() -> None:
    r = result(Target("copy", 2.0), dovetail=2e-3)
    assert r.ratio(r.targets[0], 8e9) == pytest.approx(2.0) and r.met(8e9) is True
    assert r.met(8.1e9) is False


def test_met_requires_all_targets() -> None:
    seconds = {"dovetail": 2e-3, "numpy": 4e-3, "jax": 1e-3}
    both = Result("case", (Target("numpy", 1.0), Target("jax", 1.0)), seconds)
    assert both.met(1e9) is False


def test_met_is_none_without_a_measurement() -> None:
    assert result(Target("torch", 1.0), dovetail=1e-3).met(1e9) is None
    assert result(Target("numpy|torch", 1.0), dovetail=1e-3, numpy=1e-3).met(1e9) is None


def test_result_of_a_single_value_is_compared_with_its_limit() -> None:
    assert Result("x", (Target("", 0),), value=0).met(1e9) is True
    assert Result("x", (Target("", 40.0, "ms"),), value=41.0).met(1e9) is False
    assert str(Target("", 0)) == "<= 0" and str(Target("", 40.0, "ms")) == "<= 40 ms"
    assert str(Target("numpy", 6)) == ">= 6 x numpy" and str(Target("copy", 1.6)) == "<= 1.6 x copy"


def small(compute: object, name: str = "small") -> Case:
    contestants = {
        "dovetail": ours(compute, "reference"),  # type: ignore[arg-type]
        "numpy": by_numpy(lambda x: x + 1),
        "no_such_peer": by_numpy(lambda x: x + 1),
    }
    return Case(name, (Target("numpy", 1e-6),), numbers(32), contestants, 256)


def measure(case: Case, peers: list[str], rounds: int = 1) -> Result:
    """Return the result of one case."""
    [found] = comparison.measure([case], peers, rounds)
    return found


def test_measure_times_every_available_contestant() -> None:
    found = measure(small(lambda x: x + 1.0), ["numpy", "no_such_peer"], rounds=2)
    assert set(found.seconds) == {"dovetail", "numpy"}
    assert found.missing == {"no_such_peer": "not installed"}
    assert all(0 < s < 1 for s in found.seconds.values())


def test_measure_gives_each_contestant_a_process_of_its_own(tmp_path: Path) -> None:
    def record(x: object) -> object:
        (tmp_path / str(os.getpid())).touch()
        return x + 1.0  # type: ignore[operator]

    case = small(record)
    numpy = {"numpy": by_numpy(record), "dovetail": ours(record, "reference")}
    measure(Case(case.name, case.targets, case.inputs, numpy), ["numpy"])
    names = {path.name for path in tmp_path.iterdir()}
    assert len(names) == 2 and str(os.getpid()) not in names


def test_wrong_result_raises_instead_of_being_timed() -> None:
    with pytest.raises(ArithmeticError, match="dovetail computed small wrongly"):
        measure(small(lambda x: x + 2.0), ["numpy"])
    with pytest.raises(ArithmeticError, match="dovetail gave float64"):
        measure(small(lambda x: dt.astype(x + 1.0, dt.float64)), ["numpy"])


def test_failing_peer_is_listed_with_its_reason() -> None:
    def fail(x: object) -> object:
        raise RuntimeError("no compiler\nand more")

    case = small(lambda x: x + 1.0)
    broken = Case(case.name, case.targets, case.inputs, {**case.contestants, "jax": lambda x: fail})  # type: ignore[dict-item]
    if not comparison_cases.installed("jax"):
        pytest.skip("JAX, one of the peers, has to be installed to fail")
    found = measure(broken, ["numpy", "jax"])
    assert "jax" in found.missing and "jax" not in found.seconds


def test_work_is_recorded_and_evaluated_each_time() -> None:
    work = ours(lambda x: x * 2.0, "reference")(np.ones(4, "f4"))
    before = counters.launches
    first, second = work(), work()
    assert counters.launches - before == 2
    assert first is not second and first._expr.op is None


def test_cases_compute_the_results_of_numpy() -> None:
    for case in comparison_cases.all_cases(shrink=2048):
        work = case.contestants["dovetail"]
        arrays = case.inputs()
        truth = case.contestants["numpy"](*arrays)()
        comparison._check(case, "dovetail", work(*arrays)(), truth)
        wrong = np.logical_not(truth).astype(truth.dtype) + 7
        with pytest.raises(ArithmeticError, match=r"computed .* wrongly"):
            comparison._check(case, "dovetail", wrong, truth)


def test_chain_moves_three_arrays() -> None:
    assert chain(1000).nbytes == 12_000
    assert (
        count_text(16 << 20) == "16 M" and count_text(1 << 10) == "1 K" and count_text(37) == "37"
    )


def test_new_shapes_compile_nothing() -> None:
    assert comparison.new_shapes(6).value == 0


def test_copy_rate_is_plausible() -> None:
    assert 1e8 < comparison.copy_rate(1 << 18, rounds=3) < 1e13


def test_report_is_written_as_table_page_and_json() -> None:
    results = [
        result(Target("numpy", 1.0), dovetail=2e-3, numpy=4e-3),
        Result("import", (Target("", 40.0, "ms"),), value=50.0, missing={"jax": "not installed"}),
    ]
    report = Report(results, 8e9, {"Python": "3"})
    headings, rows = report.cells()
    assert headings == ["case", "dovetail", "numpy", "of copy", "target", "ratio", "met"]
    assert rows[0] == ["case", "2 ms", "4 ms", "50%", ">= 1 x numpy", "2", "yes"]
    assert rows[1] == ["import", "", "", "", "<= 40 ms", "50 ms", "no"]
    page = report.markdown()
    assert "| case | 2 ms | 4 ms | 50% |" in page and "8.0 GB/s" in page and "jax" in page
    assert "{" not in page
    assert json.loads(report.json())["results"][0]["seconds"]["numpy"] == 4e-3


def test_bar_in_a_table_cell_is_escaped() -> None:
    report = Report([result(Target("numpy|jax", 1.0), dovetail=2e-3)], 8e9, {"Python": "3"})
    assert r"| >= 1 x numpy\|jax |" in report.markdown()


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (4.56e-6, "4.56 us"), (3e-9, "3 ns")]
)
def test_seconds_text_has_unit_and_two_digits(seconds: float, text: str) -> None:
    assert comparison.seconds_text(seconds) == text
