"""The time of a small launch: `z = x + y` of 4 x 4 float32, evaluated again and again.

    python bench/launch_rate.py [DEVICE ...]

It compares devices in turn, each time in a process of its own. It prints microseconds per launch:
the least time of the Python thread, and the least and the median by the clock, of several series.
Drivers on the CPU run launches on other threads.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import dovetail as dt

DEVICES = ("vulkan", "opencl")
LAUNCHES, SERIES, ROUNDS = 1000, 16, 4


def measure(device: str) -> tuple[float, float, float]:
    """Return the times of a launch: least of the thread, least and median by the clock."""
    x, y = dt.ones((4, 4), device=device), dt.ones((4, 4), device=device)
    thread, clock = list[float](), list[float]()
    for _ in range(SERIES):
        in_thread, by_clock = time.thread_time(), time.perf_counter()
        for _ in range(LAUNCHES):
            z = x + y
            dt.evaluate(z)
        dt.synchronize(device)
        thread.append((time.thread_time() - in_thread) / LAUNCHES * 1e6)
        clock.append((time.perf_counter() - by_clock) / LAUNCHES * 1e6)
    del thread[0], clock[0]  # the first compiles
    return min(thread), min(clock), statistics.median(clock)


def main() -> None:
    """Print a line for each process, or the times of one device for `--measure`."""
    if sys.argv[1:2] == ["--measure"]:
        print(*(f"{t:.2f}" for t in measure(sys.argv[2])))
        return
    print("us a launch: least of the thread, least and median by the clock")
    for device in (sys.argv[1:] or DEVICES) * ROUNDS:
        command = [sys.executable, __file__, "--measure", device]
        print(
            device,
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip(),
        )


if __name__ == "__main__":
    main()
