"""Two workers against one: `python bench/parallel_speed.py`, on an idle machine of two cores.

Trains the transformer of `dovetail demo parallel` with batches of 64 examples, one thread in each
worker, by one and by two processes in turn. It prints steps per second, and the processor time of a
step: that of the slowest worker, and its part outside of the groups (messages, additions, clipping,
the optimizer). If the machine is busy, the ratio of processor times tells what an idle machine
could reach at most, because waiting takes no processor time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any, NamedTuple

import dovetail as dt
from dovetail.commands.demo_parallel import GRADIENT_NORM_MAX, TASKS

WARM_UP = 4  # steps that capture and compile


class Times(NamedTuple):
    """Seconds of a step: wall time, processor time, and that within groups."""

    wall: float
    processor: float
    groups: float


def train(steps: int, batch: int, groups: int, jit: bool) -> Times:
    """Train in each worker, and return the medians over the steps."""
    dt.random.manual_seed(0)
    task = TASKS["letters"]
    rows = dt.data.TensorDataset(*map(dt.asarray, task.data()))
    model = task.network()
    optimizer = dt.optim.Adam(model.parameters(), lr=1e-3)
    step: Any = dt.parallel.value_and_grad(task.loss, groups=groups, jit=jit)
    in_groups = 0.0
    compute = step.compute

    def timed(*arguments: Any) -> Any:
        """Compute a group, and add its processor time."""
        nonlocal in_groups
        started = time.process_time()
        result = compute(*arguments)
        dt.evaluate(*result)
        in_groups += time.process_time() - started
        return result

    step.compute = timed
    sampler = dt.parallel.DealtSampler(rows, batch, groups=groups, drop_last=True)
    times: list[Times] = []
    while len(times) < steps + WARM_UP:
        for share in dt.data.DataLoader(rows, batch_sampler=sampler):
            in_groups, wall, processor = 0.0, time.perf_counter(), time.process_time()
            loss, _ = step(model, share)
            dt.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM_MAX)
            optimizer.step()
            loss.item()
            now = time.perf_counter(), time.process_time()
            times.append(Times(now[0] - wall, now[1] - processor, in_groups))
            if len(times) == steps + WARM_UP:
                break
    return Times(*map(statistics.median, zip(*times[WARM_UP:], strict=True)))


def main() -> None:
    """Print the medians of all rounds, and the ratios."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=30)
    options.add_argument("--batch", type=int, default=64)
    options.add_argument("--groups", type=int, default=32)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--no-jit", action="store_true")
    asked = options.parse_args()
    results: dict[int, list[Times]] = {1: [], 2: []}
    for _ in range(asked.rounds):
        for workers, each in results.items():
            arguments = (asked.steps, asked.batch, asked.groups, not asked.no_jit)
            times = dt.parallel.run(train, arguments, workers=workers, threads=1)
            each.append(Times(*map(max, zip(*times, strict=True))))
    best = {w: Times(*map(min, zip(*each, strict=True))) for w, each in results.items()}
    for w, t in best.items():
        print(
            f"{w} workers: {1 / t.wall:.2f} steps/s; processor time of a step {t.processor:.4f} s, "
            f"{t.processor - t.groups:.4f} s of it outside of groups"
        )
    print(
        f"steps per second {best[1].wall / best[2].wall:.2f} x, "
        f"processor time {best[1].processor / best[2].processor:.2f} x (best of {asked.rounds})"
    )


if __name__ == "__main__":
    main()
