"""The time of a small launch: `z = x + y` of 4 x 4 float32, evaluated again and again.

    python bench/launch_rate.py [DEVICE ...]

It compares devices in turn, each time in a process of its own, and prints the least of several
times per launch in microseconds: that of the Python thread, that of all threads of the process, and
by the clock. Drivers on the CPU run launches on other threads.
"""

from __future__ import annotations

import subprocess
import sys
import time

import dovetail as dt

DEVICES = ("vulkan", "opencl")
LAUNCHES, REPEATS, ROUNDS = 2000, 20, 3
CLOCKS = {"thread": time.thread_time, "processor": time.process_time, "clock": time.perf_counter}


def measure(device: str) -> list[float]:
    """Return the least time of a launch by each clock, in microseconds."""
    x, y = dt.ones((4, 4), device=device), dt.ones((4, 4), device=device)
    times = []
    for _ in range(REPEATS):
        starts = [now() for now in CLOCKS.values()]
        for _ in range(LAUNCHES):
            z = x + y
            dt.evaluate(z)
        dt.synchronize(device)
        ends = [now() for now in CLOCKS.values()]
        times.append([(b - a) / LAUNCHES * 1e6 for a, b in zip(starts, ends, strict=True)])
    return [min(column) for column in zip(*times[1:], strict=True)]  # the first compiles


def main() -> None:
    """Print a line for each process, or the times of one device for `--measure`."""
    if sys.argv[1:2] == ["--measure"]:
        print(*(f"{t:.2f}" for t in measure(sys.argv[2])))
        return
    print("us a launch:", *CLOCKS)
    for device in (sys.argv[1:] or DEVICES) * ROUNDS:
        command = [sys.executable, __file__, "--measure", device]
        print(
            device,
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip(),
        )


if __name__ == "__main__":
    main()
