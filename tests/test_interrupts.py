"""Ctrl-C at any moment: afterwards values are right, no memory is lost, and nothing is printed.

A signal that raises KeyboardInterrupt arrives after a few microseconds, repeatedly, while a program
of every kind of work runs in a process of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import gc, random, signal, sys, time
import numpy as np
import dovetail as dt

name, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
on, rng = dt.device(name), random.Random(seed)
noise = []
sys.unraisablehook = lambda u: noise.append(f"{u.exc_type} in {u.object!r}: {u.err_msg}")
START = np.random.default_rng(0).standard_normal((40, 60)).astype("f4")
PLACES = np.array([3, 1, -1, 3, 7])
BIG = np.random.default_rng(1).standard_normal(400_000).astype("f4")  # threads share it


def fused(x):
    y = dt.tanh(x * 2 + 1)
    return y, y.sum(axis=1)

def views(x):
    y = x * 3
    v, w = y[1:5], y.mT
    y += 1
    return v + 0, w[2:4], y

def in_place(x):
    y = x + 0
    y[2:4] = y[5:7] * 2
    y += y.mean()
    y[:, :40] += y[:, :40].mT
    return (y,)

def gathers(x):
    at = dt.asarray(PLACES, device=on)
    y = x + 0
    y[at[:3]] = x[at[:3]] * 2
    return x[at], y, x[x > 0.5], dt.take(x, at, axis=1)

def sorts(x):
    running = dt.cumulative_sum(x, axis=1)
    return dt.sort(x, axis=1), dt.argsort(x[0]), running, dt.unique_values(x[0])

def gradients(x):
    w = (x * 1).detach().requires_grad_()
    (dt.tanh(w) * x).sum().backward()
    return (w.grad,)

def products(x):
    return x @ x.mT, (x[:8, :8].astype(dt.int64) @ x[:8, :8].astype(dt.int64))

def shared(x):
    return (dt.tanh(BIG_ * 2).sum(), (BIG_ + 1).reshape((-1, 1000)).sum(axis=0))

def sparse(x):
    s = dt.where(dt.abs(x) > 1.5, x, 0).to_sparse()
    return (s @ x.mT, (s * 2).to_dense())

def sizes(x):
    n = rng.randrange(1, 5)
    return (dt.zeros((1000 * n,), device=on) + n,)[:0] + (dt.zeros((7, 9), device=on) + 1,)

KINDS = (fused, views, in_place, gathers, sorts, gradients, products, shared, sparse, sizes)


def run(kind):
    x = dt.asarray(START, device=on)
    return [np.array(r.numpy()).tobytes() for r in kind(x)]


def live():
    for _ in range(3):
        gc.collect()
    dt.synchronize()
    return dt.memory.stats(on).live_blocks

BIG_ = dt.asarray(BIG, device=on)
expected = {kind: run(kind) for kind in KINDS}
for kind in KINDS:
    assert run(kind) == expected[kind]
baseline = live()
x0 = dt.asarray(START, device=on)


class Struck(KeyboardInterrupt):
    pass


def strike(signum, frame):
    raise Struck

signal.signal(signal.SIGALRM, strike)
struck = wrong = 0
kept = []
for step in range(count):
    kind = KINDS[step % len(KINDS)]
    before = struck
    try:
        try:
            delay = rng.choice((2e-5, 2e-4, 2e-3)) * (rng.random() + 0.05)
            signal.setitimer(signal.ITIMER_REAL, delay)
            until = time.monotonic() + 60
            while True:  # until it comes
                if time.monotonic() > until:
                    print("an interrupt was lost:", kind.__name__, step, noise)
                    sys.exit(5)
                found = run(kind)
                if found != expected[kind]:
                    wrong += 1
                    print("wrong while uninterrupted:", kind.__name__, step)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Struck:
        struck += 1
    if step % 5 == 0 and run(kind) != expected[kind]:
        wrong += 1
        print("wrong afterwards:", kind.__name__, step)
    if step % 500 == 499 and live() != baseline + 1:
        print("blocks:", live(), "not", baseline + 1, "after", step + 1)
        sys.exit(4)
for kind in KINDS:
    if run(kind) != expected[kind]:
        wrong += 1
        print("wrong at the end:", kind.__name__)
if live() != baseline + 1:
    print("blocks:", live(), "not", baseline + 1)
    sys.exit(4)
if x0.numpy().tobytes() != START.tobytes():
    print("an input has changed")
    wrong += 1
allocator = dt.memory.get_allocator(on)
allocator.empty_cache()
figures, segments = allocator.stats(), allocator.snapshot()
blocks = [b for s in segments for b in s.blocks]
assert figures.reserved_bytes == sum(s.nbytes for s in segments)
assert figures.live_bytes == sum(b.nbytes for b in blocks if b.state == "live")
assert all(sum(b.nbytes for b in s.blocks) == s.nbytes for s in segments), "a part is lost"
print("noise", len(noise), noise[:3])
print("struck", struck, "wrong", wrong)
sys.exit(bool(wrong) or bool(noise))
"""


def interrupted(name: str, count: int, seed: int = 0) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name, str(count), str(seed)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = f"{done.returncode}: {done.stdout}{done.stderr[-3000:]}"
    assert done.returncode == 0 and f"struck {count} wrong 0" in done.stdout, said
    assert "ignored" not in done.stderr, said


pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer") or os.name != "posix", reason="this system has no setitimer"
)
DEVICES = ("reference", "cpu", "opencl")


def require(name: str) -> None:
    if name == "cpu":
        pytest.importorskip("dovetail_cpu_llvm", reason="pip install dovetail-cpu-llvm")
    if name == "opencl":
        pytest.importorskip("dovetail_opencl", reason='pip install "dovetail-opencl[cpu]"')


@pytest.mark.parametrize("name", DEVICES)
def test_interrupts_change_no_value_and_lose_no_block(name: str) -> None:
    require(name)
    interrupted(name, {"reference": 60, "cpu": 400, "opencl": 250}[name])


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", DEVICES)
def test_ten_thousand_interrupts_change_no_value_and_lose_no_block(name: str) -> None:
    require(name)
    interrupted(name, 1000 if name == "reference" else 10_000, seed=1)
