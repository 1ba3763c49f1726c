"""Runs the tests of the core's packages under coverage, and prints how much of each they reach: a
figure to look at, which decides nothing.

    python tools/covered.py [--least N] [--only NAME ...]

`--only` takes some of the folders and files under tests; `--least N` also names the files of which
less than N % is reached.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Those that take long, and those that replace the tracer, are left out.
TESTS = (
    "kernel graph ops backend fusion memory plugins engine tensor functions insight autograd sparse"
    " test_errors.py test_environment.py test_settings.py test_recent.py test_random_programs.py"
)
LEFT_OUT = {"commands", "testing"}  # their tests run them in processes of their own
LINE = "{:14} {:>6} {:>8} {:>6}"


def main() -> int:
    """Prints the table; the exit status of the tests."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--least", type=float, default=0.0)
    parser.add_argument("--only", nargs="+", default=TESTS.split())
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        report = Path(work, "coverage.json")
        status = run(asked.only, report, Path(work, "data"))
        if not report.exists():
            print("no coverage was measured")
            return status or 1
        files = json.loads(report.read_text())["files"]
    show({name: f["summary"] for name, f in files.items()}, asked.least)
    return status


def run(names: Sequence[str], report: Path, data: Path) -> int:
    """The tests, without what takes long."""
    core = (
        {"COVERAGE_CORE": "sysmon"} if sys.version_info >= (3, 12) else {}
    )  # costs nearly nothing
    paths = [f"tests/{name}" for name in names if (ROOT / "tests" / name).exists()]
    # Without the kit's entry point, which imports dovetail before coverage begins.
    options = [
        "-p",
        "no:dovetail",
        "--cov=dovetail",
        "--cov=dovetail_sparse",
        f"--cov-report=json:{report}",
    ]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=line", "-W", "default", *options, *paths],
        cwd=ROOT, check=False,
        env={**os.environ, **core, "COVERAGE_FILE": str(data), "DOVETAIL_PURE": "1"},
    ).returncode  # fmt: skip


def show(files: dict[str, dict[str, int]], least: float) -> None:
    """Prints a line for each package, and one for all."""
    rooms: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, summary in files.items():
        parts = Path(name).parts
        at = next(k for k, part in enumerate(parts) if part.startswith("dovetail"))
        room = parts[at + 1] if len(parts) > at + 2 else "ground floor"
        if room in LEFT_OUT:
            continue
        for key in ("all", "sparse" if parts[at] == "dovetail_sparse" else room):
            rooms[key][0] += summary["num_statements"]
            rooms[key][1] += summary["covered_lines"]
    print(LINE.format("room", "lines", "reached", "%"))
    for key, (lines, reached) in sorted(rooms.items()):
        print(LINE.format(key, lines, reached, f"{100 * reached / max(lines, 1):.1f}"))
    for name, summary in sorted(files.items()):
        if summary["percent_covered"] < least:
            print(f"  {name}: {summary['percent_covered']:.0f} %")


if __name__ == "__main__":
    sys.exit(main())
