"""bench/gpu_check without a GPU: its figures on the double, its page, and its refusal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
pytest.importorskip("dovetail_cuda", reason="dovetail-cuda is not installed")

BENCH = ROOT / "bench" / "gpu_check"
ON_THE_DOUBLE = """
import json, sys
from cuda_double.plugin import install
install()
import figures
figures.SAMPLE, figures.ROUNDS = 0, 1
print(json.dumps(figures.measure("cuda", 5000, (16,))))
"""


@pytest.fixture(scope="module")
def figures() -> object:
    """Return figures of the double from a process of its own; they do not measure speed."""
    path = [str(BENCH), str(BENCH.parent.parent / "tests"), *filter(None, sys.path)]
    code = f"import sys; sys.path[:] = {path!r}\n{ON_THE_DOUBLE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_gpu_check_reports_figures_and_correct_results(
    figures: dict[str, dict[str, float]],
) -> None:
    assert len(figures["seconds"]["dovetail"]) == 7
    assert all(error < 1e-4 for error in figures["errors"].values())
    assert figures["copy rate"] > 0
    assert {"to the device, pinned", "from the device"} <= set(figures["host rates"])
    assert {*figures["products"]} == {"float32, 16", "float64, 16", "float16, 16"}
    assert all("generated, in tiles" in ways for ways in figures["products"].values())


def test_page_compares_the_vendors_products_with_tiles(
    figures: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    from page import page

    rates = {
        "float32, 512": {"the vendor's routine": 4e12, "generated, in tiles": 3e12},
        "float64, 512": {"generated, in tiles": 2e12},
    }
    run = {
        "gpu": "G",
        "date": "D",
        "setting": {},
        "figures": {"cuda": figures | {"products": rates}},
    }
    lines = page(run).splitlines()
    assert "| float32, 512 | 4.00 TFLOP/s | 3.00 TFLOP/s | 75% |" in lines
    assert "| float64, 512 |  | 2.00 TFLOP/s |  |" in lines


def test_page_shows_passed_and_failed_checks(
    figures: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    from page import page  # type: ignore[import-not-found]

    kit = {
        "counts": {"passed": 7, "failed": 1}, "conforms": False, "comparisons": 9, "seconds": 1.5,
        "digest": "0123456789abcdef0", "failures": [
            {"case": "table.maps.exp", "outcome": "failed", "message": "3 of 9 differ\nmore"}
        ],
    }  # fmt: skip
    run = {
        "gpu": "Some GPU", "date": "2030-01-01", "setting": {"commit": "abc"},
        "kits": {"cuda": kit},
        "figures": {"cuda": figures}, "demo": "digest 42", "problems": ["figures of opencl: hung"],
    }  # fmt: skip
    text = page(run)
    assert text.startswith("# Some GPU, 2030-01-01\n") and "| commit | abc |" in text
    assert "Does not conform: 7 passed, 1 failed" in text
    assert "- table.maps.exp (failed): `3 of 9 differ`" in text
    assert "| `sum` |" in text and "digest 42" in text and "- figures of opencl: hung" in text


def test_gpu_check_without_a_gpu_writes_nothing(tmp_path: Path) -> None:
    hidden = {"CUDA_VISIBLE_DEVICES": "", "PATH": ""}
    done = subprocess.run(
        [sys.executable, str(BENCH), f"--out={tmp_path}"],
        capture_output=True,
        text=True,
        env=hidden,
    )
    assert done.returncode == 2, done.stderr
    assert "No GPU to check" in done.stderr and not list(tmp_path.iterdir())
