"""onnx's node tests: each runs, or is skipped for a reason that docs/onnx.md counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dovetail as dt
import pytest

pytest.importorskip("onnx")
from onnx_cases import cases, left_out, run, table

PAGE = Path(__file__).parent.parent.parent / "docs" / "onnx.md"


def failures(device: str, chosen: Sequence[Any]) -> list[str]:
    found = []
    for case in chosen:
        if not left_out(case):
            try:
                run(case, device)
            except Exception as error:
                found.append(f"{case.name}: {type(error).__name__}: {str(error)[:300]}")
    return found


def test_every_case_that_is_not_skipped_passes(thinned: Callable[..., Any]) -> None:
    assert failures("reference", thinned(cases(), 5)) == []


def test_sampled_cases_pass_on_the_cpu(is_plain: bool) -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    assert failures("cpu", cases()[:: 69 if is_plain else 23]) == []


@pytest.mark.exhaustive
def test_all_cases_pass_on_the_cpu() -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    assert failures("cpu", cases()) == []


def test_page_has_the_current_table() -> None:
    assert table() in PAGE.read_text()


def test_most_cases_of_supported_dtypes_run() -> None:
    why = [left_out(case) for case in cases()]
    ran = why.count("")
    had = len(why) - sum(w.startswith("dtype ") for w in why)
    assert ran / had > 0.95


def test_wrong_result_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(c for c in cases() if c.name == "test_add")
    run(case, "reference")
    monkeypatch.setattr(case, "data_sets", [(case.data_sets[0][0], [case.data_sets[0][1][0] + 1])])
    with pytest.raises(AssertionError):
        run(case, "reference")


def test_every_skip_reason_matches_a_case() -> None:
    from onnx_cases import LEFT_OUT, WIDER

    for pattern in [*LEFT_OUT, *WIDER]:
        assert any(re.search(pattern, case.name) for case in cases()), pattern
    assert dt.onnx.load is not None
