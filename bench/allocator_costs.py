"""Measure the caching allocator, for `run.py`.

A request that the cache serves, and random traces of few and of many blocks.
"""

from __future__ import annotations

import random
import statistics
import time
import timeit

from dovetail.device_class import default_device
from dovetail.memory.allocator import Allocator
from dovetail.memory.caching_allocator import CachingAllocator
from dovetail.memory.tracing.replay import TraceReplay, TraceStep
from dovetail.memory.units import KIB
from dovetail.plugins.registry import open_device

FEW, MANY = 10, 1000  # blocks
STEPS = 4000


def cached_us(rounds: int = 7, number: int = 20_000) -> float:
    """Microseconds to allocate and free what is in the cache of the default device."""
    allocate = _allocator().allocate
    times = timeit.repeat(lambda: allocate(1000), number=number, repeat=rounds)
    return statistics.median(times) / number * 1e6


def growth(rounds: int = 5) -> float:
    """How many times as much a step of a random trace costs with `MANY` blocks as with `FEW`."""
    traces = {blocks: steady_trace(blocks, STEPS) for blocks in (FEW, MANY)}
    ratios = []
    for _ in range(rounds):
        few, many = (_seconds(trace, skip) for skip, trace in traces.items())
        ratios.append(many / few)
    return statistics.median(ratios)


def steady_trace(blocks: int, steps: int) -> list[TraceStep]:
    """`blocks` of random sizes; then, again and again, one of them is freed and another made."""
    rng, live = random.Random(blocks), list(range(blocks))
    made = [TraceStep("allocate", (n, _size(rng), 0)) for n in live]
    for n in range(blocks, blocks + steps // 2):
        at = rng.randrange(blocks)
        made.append(TraceStep("free", (live[at],)))
        made.append(TraceStep("allocate", (n, _size(rng), 0)))
        live[at] = n
    return made


def _size(rng: random.Random) -> int:
    """Of both kinds: mostly small ones, in segments that they share."""
    return rng.randint(1, rng.choice((4 * KIB, 64 * KIB, 256 * KIB)))


def _seconds(trace: list[TraceStep], skip: int) -> float:
    """Of a whole trace but its first steps, with an allocator of its own."""
    going = TraceReplay(_allocator(), str)
    for step in trace[:skip]:
        going.run_step(step)
    begun = time.perf_counter()
    for step in trace[skip:]:
        going.run_step(step)
    return time.perf_counter() - begun


def _allocator() -> Allocator:
    opened = open_device(default_device())
    return CachingAllocator(opened.backend, opened.device)
