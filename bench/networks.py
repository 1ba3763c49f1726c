"""Networks beside PyTorch's: `python bench/networks.py`.

The rows are in `bench/networks_*.py`. The contestants take turns, with two threads each, and
results are freed each time. A time is the median of all rounds. A ratio is the median, over the
rounds, of another contestant's time divided by dovetail's: above 1 dovetail is faster.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from benchmarks_page import measured
from turns import Row, measure, table


def rows() -> list[Row]:
    """Those of the files beside this one."""
    paths = sorted(Path(__file__).parent.glob("networks_*.py"))
    return [row for path in paths for row in importlib.import_module(path.stem).rows()]


def main() -> int:
    """Measures and prints; 0."""
    return measured("networks", __doc__ or "", rows, measure, table, rounds=60)


if __name__ == "__main__":
    sys.exit(main())
