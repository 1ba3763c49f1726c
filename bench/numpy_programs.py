"""Run the NumPy programs of `bench/programs` on dovetail: `python bench/numpy_programs.py`.

A program is loaded twice from its text: as it is, and with `import dovetail.numpy as np` for its
line `import numpy as np`. Both must return equal values. NumPy, dovetail, and dovetail under
`dt.jit` each run in a process of their own and take turns in short blocks. A ratio is the least
time of NumPy divided by dovetail's: above 1 dovetail is faster. `--first` times the first captured
call in a fresh process with an empty kernel cache.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

PROGRAMS = Path(__file__).parent / "programs"
NUMPY = "import numpy as np\n"
SIDES = ("numpy", "plain", "jit")
PAUSE = 0.2  # seconds before a block: the threads of the side before may still spin
RTOL = {"f": {8: 1e-8, 4: 1e-4}, "c": {16: 1e-8, 8: 1e-4}}

Row = dict[str, Any]
Clock = Callable[[], float]


# --- programs -------------------------------------------------------------------------------------


def program_names() -> list[str]:
    """Return the names of all programs in order."""
    return sorted(path.stem for path in PROGRAMS.glob("*.py"))


def load(name: str, library: str = "numpy") -> types.ModuleType:
    """Return a program as a module that imports `library` in NumPy's place."""
    path = PROGRAMS / f"{name}.py"
    text = path.read_text()
    if text.count(NUMPY) != 1:
        raise ValueError(f"load: {name} must have one line {NUMPY!r}")
    module = types.ModuleType(name)
    exec(compile(text.replace(NUMPY, f"import {library} as np\n"), path, "exec"), module.__dict__)
    return module


def leaves(value: Any) -> Iterator[Any]:
    """Yield the arrays and numbers of nested tuples and lists."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def finish(result: Any) -> Any:
    """Return a result of dovetail when its tensors are evaluated."""
    import dovetail as dt

    dt.evaluate(*[leaf for leaf in leaves(result) if isinstance(leaf, dt.Tensor)])
    return result


def assert_equal_results(ours: Any, theirs: Any) -> None:
    """Raise AssertionError where two results differ: floats beyond rounding, others at all."""
    pairs = list(leaves(ours)), list(leaves(theirs))
    assert len(pairs[0]) == len(pairs[1]), f"{len(pairs[0])} results, expected {len(pairs[1])}"
    for k, (value, wanted) in enumerate(zip(*pairs, strict=True)):
        a, b = np.asarray(value), np.asarray(wanted)
        assert (a.dtype, a.shape) == (b.dtype, b.shape), (
            f"result {k} is {a.dtype} {a.shape}, expected {b.dtype} {b.shape}"
        )
        if b.dtype.kind in "fc":
            rtol = RTOL[b.dtype.kind][b.dtype.itemsize]
            scale = np.max(np.abs(b[np.isfinite(b)]), initial=0)
            np.testing.assert_allclose(a, b, rtol, rtol * scale, err_msg=f"result {k}")
        else:
            np.testing.assert_array_equal(a, b, err_msg=f"result {k}")


def prepare(name: str, side: str, library: str) -> tuple[Callable[[], Any], str]:
    """Return a call of a program that ran once with equal results, and why `dt.jit` ran it plain.

    Raises: AssertionError if its results differ from NumPy's.
    """
    theirs = load(name)
    if side == "numpy":
        operands = theirs.inputs()
        return lambda: theirs.run(*operands), ""
    import dovetail as dt

    ours = load(name, library)
    run = dt.jit(ours.run) if side == "jit" else ours.run
    operands = finish(ours.inputs())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", dt.errors.DovetailWarning)
        assert_equal_results(finish(run(*operands)), theirs.main())
    plain = [str(w.message) for w in caught if "without a capture" in str(w.message)]
    return lambda: finish(run(*operands)), describe(*plain[:1])


def time_first_call(name: str, library: str, clock: Clock) -> float:
    """Return the seconds of the call that captures a program.

    Raises: ValueError if it runs without a capture.
    """
    import dovetail as dt

    program = load(name, library)
    operands = finish(program.inputs())
    run = dt.jit(program.run)
    begin = clock()
    finish(run(*operands))
    seconds = clock() - begin
    if not run.captures:
        raise ValueError("it runs without a capture")
    return seconds


def describe(error: Exception | str = "") -> str:
    """Return the beginning of an error or a warning in one line."""
    kind = "" if isinstance(error, str) else f"{type(error).__name__}: "
    return (kind + " ".join(str(error).split()))[:240]


# --- processes ------------------------------------------------------------------------------------


def block_seconds(call: Callable[[], Any], block: float, clock: Clock) -> list[float]:
    """Return the seconds of calls for about `block` seconds, at least two."""
    times = list[float]()
    end = clock() + block
    while len(times) < 2 or clock() < end:
        begin = clock()
        call()
        times.append(clock() - begin)
    return times


def serve(
    prepare: Callable[[str], tuple[Callable[[], Any], str]], block: float, clock: Clock
) -> None:
    """Answer each name on standard input by seconds of calls, or by the text of an error.

    `prepare`: returns a call of the program with a name, and why `dt.jit` ran it plain.
    """
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # a program's prints do not mix with the answers
    name, plain, call = "", "", lambda: None
    for line in sys.stdin:
        try:
            if line.strip() != name:
                name = line.strip()
                call, plain = prepare(name)
                call()
            answer: Any = [block_seconds(call, block, clock), plain]
        except Exception as error:
            name, answer = "", describe(error)
        print(json.dumps(answer), file=out)


class Worker:
    """A process that times programs on one side, and starts again if it ends.

    `command`: the script that serves, and its arguments.
    """

    def __init__(self, side: str, options: argparse.Namespace, *command: str) -> None:
        self.command = [
            sys.executable, "-W", "ignore", *command, "--serve", side,
            "--block", str(options.block),
            *(["--processor-time"] if options.processor_time else []),
        ]  # fmt: skip
        count = str(options.threads)
        names = ("OMP", "MKL", "OPENBLAS", "DOVETAIL")
        self.environment = {**os.environ, **{f"{name}_NUM_THREADS": count for name in names}}
        if side in ("numpy", "torch"):
            self.environment |= {"OMP_PROC_BIND": "true", "OMP_PLACES": "threads"}
        self.process: subprocess.Popen[str] | None = None

    def ask(self, name: str) -> tuple[list[float], str] | str:
        """Return the seconds of calls and why `dt.jit` ran them plain, or an error."""
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                env=self.environment, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        time.sleep(PAUSE)
        self.process.stdin.write(f"{name}\n")
        answer = self.process.stdout.readline()
        if answer:
            return json.loads(answer)  # type: ignore[no-any-return]
        status = self.process.wait()
        self.process = None
        return f"the process ended with status {status}"

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.communicate()


def measure(
    name: str,
    workers: dict[str, Worker],
    rounds: int,
    block_time: Callable[[list[float]], float] = min,
) -> Row:
    """Return the least time of a program's blocks on each side in seconds, or the errors.

    `block_time`: returns the time of a block from those of its calls. Ratios are of the first
    side's time and another's.
    """
    base = next(iter(workers))
    times: dict[str, list[float]] = {side: [] for side in workers}
    errors, plain = dict[str, str](), ""
    for _ in range(rounds):
        for side, worker in workers.items():
            if side not in errors:
                answer = worker.ask(name)
                if isinstance(answer, str):
                    errors[side] = answer
                else:
                    times[side].append(block_time(answer[0]))
                    plain = answer[1] or plain
    row: Row = {"name": name, "errors": errors, "ran plain": plain}
    row["seconds"] = {side: min(taken) for side, taken in times.items() if side not in errors}
    row["ratio"] = {
        side: row["seconds"][base] / taken
        for side, taken in row["seconds"].items()
        if side != base and base in row["seconds"]
    }
    return row


def measure_first(name: str, options: argparse.Namespace) -> float | str:
    """Return the seconds of the first captured call with an empty kernel cache, or the error."""
    command = [sys.executable, "-W", "ignore", __file__, "--child", name]
    command += ["--processor-time"] if options.processor_time else []
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [*command, "--library", options.library], capture_output=True, text=True, check=False,
            env={**os.environ, "DOVETAIL_CACHE_DIR": cache},
        )  # fmt: skip
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:240]
    return float(done.stdout.split()[-1])


# --- reports --------------------------------------------------------------------------------------


def summarize(rows: Sequence[Row]) -> list[str]:
    """Return a line for each side: how many programs run, and their ratios."""
    lines = []
    for side in SIDES[1:]:
        ratios = {row["name"]: row["ratio"][side] for row in rows if side in row["ratio"]}
        asked = [row for row in rows if side in row["ratio"] or side in row["errors"]]
        if ratios:
            worst = min(ratios, key=ratios.__getitem__)
            mean = statistics.geometric_mean(ratios.values())
            below = sum(ratio < 0.4 for ratio in ratios.values())
            lines.append(
                f"{side}: {len(ratios)} of {len(asked)} run, geometric mean {mean:.2f}, "
                f"worst {ratios[worst]:.3f} ({worst}), {below} below 0.4"
            )
    plain = [row["name"] for row in rows if row["ran plain"]]
    lines += [f"without a capture: {len(plain)}"] if plain else []
    first = {row["name"]: row["first"] for row in rows if isinstance(row.get("first"), float)}
    if first:
        worst = max(first, key=first.__getitem__)
        lines.append(
            f"first call: median {statistics.median(first.values()):.2f} s, "
            f"worst {first[worst]:.2f} s ({worst})"
        )
    return lines


def row_cells(row: Row) -> list[str]:
    """Return the cells of a program: milliseconds, ratios, seconds of the first call, errors."""
    seconds, ratio, first = row["seconds"], row["ratio"], row.get("first")
    cells = [row["name"]]
    cells += [f"{1e3 * seconds[s]:.1f}" if s in seconds else "" for s in SIDES]
    cells += [f"{ratio[s]:.2f}" if s in ratio else "" for s in SIDES[1:]]
    cells.append(f"{first:.2f}" if isinstance(first, float) else "")
    errors = {**row["errors"], **({"first call": first} if isinstance(first, str) else {})}
    if row["ran plain"]:
        errors["ran plain"] = row["ran plain"]
    cells.append("; ".join(f"{s}: {text}".replace("|", "/") for s, text in errors.items()))
    return cells


def markdown(rows: Sequence[Row]) -> str:
    """Return the summary and the table of a page."""
    heads = ["program", *(f"{s} ms" for s in SIDES), "plain", "jit", "first s", "notes"]
    table = [heads, ["---"] * len(heads), *map(row_cells, rows)]
    lines = [f"- {line}" for line in summarize(rows)]
    return "\n".join([*lines, "", *("| " + " | ".join(cells) + " |" for cells in table), ""])


def check(names: Sequence[str], options: argparse.Namespace) -> int:
    """Print the programs whose results differ from NumPy's or that raise; return 1 if any does."""
    failed = 0
    for name in names:
        begin = time.process_time()
        try:
            _, plain = prepare(name, "jit" if options.jit else "plain", options.library)
        except Exception as error:
            failed += 1
            print(f"{name:26} {describe(error)}", flush=True)
        else:
            print(f"{name:26} equal, {time.process_time() - begin:.2f} s {plain}", flush=True)
    print(f"{len(names) - failed} of {len(names)} equal")
    return bool(failed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check or time programs, as the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="programs whose name contains one")
    parser.add_argument("--check", action="store_true", help="compare results; time nothing")
    parser.add_argument("--jit", action="store_true", help="with dt.jit")
    parser.add_argument("--first", action="store_true", help="time the first captured call")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3, help="blocks of a program on each side")
    parser.add_argument("--block", type=float, default=0.3, help="seconds of a block")
    parser.add_argument("--processor-time", action="store_true", help="of busy machines")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    parser.add_argument("--library", default="dovetail.numpy", help="the module in NumPy's place")
    parser.add_argument("--serve", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    clock = time.process_time if options.processor_time else time.perf_counter
    if options.serve:
        make = functools.partial(prepare, side=options.serve, library=options.library)
        serve(make, options.block, clock)
        return 0
    if options.child:
        print(time_first_call(options.child, options.library, clock))
        return 0
    names = [
        name for name in program_names()
        if not options.only or any(word in name for word in options.only)
    ]  # fmt: skip
    if options.check:
        return check(names, options)
    command = (__file__, "--library", options.library)
    sides = [side for side in SIDES if side != "jit" or options.jit]
    workers = {side: Worker(side, options, *command) for side in sides}
    rows = list[Row]()
    for name in names:
        rows.append(measure(name, workers, options.rounds))
        if options.first:
            rows[-1]["first"] = measure_first(name, options)
        print("  ".join(cell for cell in row_cells(rows[-1]) if cell), flush=True)
    for worker in workers.values():
        worker.close()
    print("\n".join(summarize(rows)))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(markdown(rows))
    return any(row["errors"] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
