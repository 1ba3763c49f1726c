"""Time a training step of the programs in `examples/ported`: `python bench/ported_steps.py`.

The sides are PyTorch, dovetail by changed import lines ("plain"), and that with the step captured
by `torch.compile`, which is `dt.jit` ("jit"). Each runs in a process of its own; they take turns in
short blocks. A step is an iteration of the program's training loop with batches of 32: it makes
the batch, trains, and reads the loss. A ratio is the time of PyTorch by dovetail's: above 1
dovetail is faster. Iterations differ in work, so a time is the least median of a block.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy_programs import Worker, describe, measure, serve
from ported_cases import CASES, Step

sys.path.insert(0, str(Path(__file__).parents[1]))

from examples.ported.__main__ import load

SIDES = ("torch", "plain", "jit")
WARM_UP = 20  # iterations before the first that is timed: kernels, plans and captures


def prepare(name: str, side: str, threads: int) -> tuple[Step, str]:
    """Return a step of a program that ran before, and why `dt.jit` ran it plain.

    Raises: AssertionError if a loss is not finite.
    """
    program = load(name, "torch" if side == "torch" else "dovetail.torch")
    program.torch.set_num_threads(threads)
    program.torch.manual_seed(0)
    step = CASES[name](program, program.torch.compile if side == "jit" else lambda f: f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        losses = [step() for _ in range(WARM_UP)]
    assert all(0 < loss < 1e6 for loss in losses), f"{name}: losses {losses}"
    plain = [str(w.message) for w in caught if "without a capture" in str(w.message)]
    return step, describe(*plain[:1])


def row_cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of a program: milliseconds of a step, steps a second, ratios, notes."""
    seconds, ratio = row["seconds"], row["ratio"]
    cells = [row["name"]]
    cells += [f"{1e3 * seconds[s]:.2f}" if s in seconds else "" for s in SIDES]
    cells += [f"{1 / seconds[s]:.0f}" if s in seconds else "" for s in SIDES]
    cells += [f"{ratio[s]:.2f}" if s in ratio else "" for s in SIDES[1:]]
    notes = {**row["errors"], **({"ran plain": row["ran plain"]} if row["ran plain"] else {})}
    cells.append("; ".join(f"{s}: {text}".replace("|", "/") for s, text in notes.items()))
    return cells


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table of a page."""
    heads = ["program", *(f"{s} ms" for s in SIDES), *(f"{s} steps/s" for s in SIDES)]
    heads += ["plain x PyTorch", "jit x PyTorch", "notes"]
    table = [heads, ["---"] * len(heads), *map(row_cells, rows)]
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in table])


def main(arguments: Sequence[str] | None = None) -> int:
    """Time the steps; return 1 if a program raises."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[*CASES], choices=CASES)
    parser.add_argument("--sides", nargs="*", default=SIDES, choices=SIDES)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5, help="blocks of a program on each side")
    parser.add_argument("--block", type=float, default=0.5, help="seconds of a block")
    parser.add_argument("--processor-time", action="store_true", help="of busy machines")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    parser.add_argument("--serve", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        clock = time.process_time if options.processor_time else time.perf_counter

        def make(name: str) -> tuple[Step, str]:
            return prepare(name, options.serve, options.threads)

        serve(make, options.block, clock)
        return 0
    command = (__file__, "--threads", str(options.threads))
    workers = {side: Worker(side, options, *command) for side in options.sides}
    rows = []
    for name in options.only:
        rows.append(measure(name, workers, options.rounds, statistics.median))
        print("  ".join(cell for cell in row_cells(rows[-1]) if cell), flush=True)
    for worker in workers.values():
        worker.close()
    if options.markdown:
        options.markdown.write_text(markdown(rows) + "\n")
    return any(row["errors"] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
