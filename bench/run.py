"""All benchmarks: `python bench/run.py [--few] [--write] [--json FILE]`.

The cases are in `comparison_cases`, the method is in `comparison`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import comparison
from benchmarks_page import PAGE, REDRAW, sections
from comparison_cases import PEERS, all_cases, few_cases
from sparse_cases import sparse_cases

try:
    import opencl_cases
except ImportError:  # dovetail-opencl is not installed
    opencl_cases = None


def main() -> int:
    """0 if every target that could be measured is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shrink", type=int, default=1, help="divide the sizes by this")
    parser.add_argument("--few", action="store_true", help="without sorts, reductions, ...")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    asked = parser.parse_args()
    status = comparison.respawned(sys.argv)
    if status is not None:
        return status
    chosen = few_cases if asked.few else all_cases
    everything = [*chosen(asked.shrink), *sparse_cases(asked.shrink)]
    cases = [c for c in everything if asked.only in c.name]
    peers, opencl = (
        list(asked.peers),
        opencl_cases is not None and comparison.ask_process(opencl_cases.available),
    )
    if opencl:
        cases += [c for c in opencl_cases.cases(asked.shrink) if asked.only in c.name]
        peers += opencl_cases.PEERS
    report = comparison.measure_all(cases, peers, asked.rounds, once=not (asked.only or asked.few))
    if opencl and asked.only in opencl_cases.LAUNCH:
        report.results.append(opencl_cases.launch())
    comparison.show(report)
    if asked.json:
        asked.json.write_text(report.json())
    if asked.write:
        PAGE.write_text(report.markdown() + sections(PAGE.read_text()))
        print(REDRAW)
    return int(any(r.met(report.copy_rate) is False for r in report.results))


if __name__ == "__main__":
    sys.exit(main())
