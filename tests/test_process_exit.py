"""Process exit: forked children with an open device, and finalizers that compute during exit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from installed import INSTALLED

PACKAGES = {"cpu": "dovetail_cpu_llvm", "opencl": "dovetail_opencl", "reference": "dovetail"}

FORKS = """
import gc, os, signal, sys, threading, time
import numpy as np
import dovetail as dt

name, count, leave = sys.argv[1], int(sys.argv[2]), sys.argv[3]
x = dt.asarray(np.arange(300_000, dtype=np.float32), device=name)
x.sum().item()
stop = threading.Event()

def meanwhile():  # so that the driver has work under way
    while not stop.is_set():
        (dt.tanh(x) + 1).sum().item()

thread = threading.Thread(target=meanwhile, daemon=True)
thread.start()
hung, wrong = [], []
for k in range(count):
    held = [dt.tanh(x) * k for _ in range(3)]
    dt.evaluate(*held)
    child = os.fork()
    if child == 0:
        if leave == "released":
            held.clear()
            gc.collect()
        print("child", k)
        sys.exit(k % 7)
    end, got = time.monotonic() + 20, 0
    while not got and time.monotonic() < end:
        got, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.002)
    if not got:
        hung.append(k)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    elif os.waitstatus_to_exitcode(status) != k % 7:
        wrong.append((k, os.waitstatus_to_exitcode(status)))
    if len(hung) == 3:
        break
stop.set()
thread.join()
sys.stdout.flush()
print("hung", hung, "wrong status", wrong, flush=True)
"""


def fork(name: str, count: int, leave: str) -> None:
    pytest.importorskip(PACKAGES[name])
    done = subprocess.run(
        [sys.executable, "-u", "-W", "ignore", "-c", FORKS, name, str(count), leave],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("hung [] wrong status []\n"), done.stdout[-500:] + done.stderr
    assert done.stdout.count("child") == count, "what a child prints is lost"


NEEDS_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@NEEDS_FORK
@pytest.mark.parametrize("leave", ["held", "released"])
@pytest.mark.parametrize("name", ["cpu", "opencl"])
def test_forked_children_exit(name: str, leave: str) -> None:
    fork(name, 8, leave)


@NEEDS_FORK
@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("leave", ["held", "released"])
@pytest.mark.parametrize("name", ["cpu", "opencl"])
def test_two_hundred_forked_children_exit(name: str, leave: str) -> None:
    fork(name, 200, leave)


LATE = """
import os, sys
import dovetail as dt

class Late:
    def __init__(self, n):
        self.x = dt.ones(4, device=sys.argv[1]) * 2
        self.n, self.dt, self.write = n, dt, os.write

    def __del__(self):
        dt, x = self.dt, self.x
        y = x * x + 3
        found = [float(y.sum().item())]
        if not known_only:
            found += dt.sort(dt.tanh(x)).tolist()[:0] + y[x > 1].tolist()
            w = x.detach().requires_grad_()
            (w * w * w).sum().backward()
            found += [dt.matmul(y, y).item(), *w.grad.tolist()]
            found.append(float(len(repr(y))) * 0)
        self.write(1, f"{self.n} {found}\\n".encode())

known_only = sys.argv[2] == "known"
dt.evaluate(dt.ones(3, device=sys.argv[1]))
if known_only:
    Late(0)
late = Late(1)

class Cycle:
    pass

c = Cycle()
c.c, c.late = c, Late(2)
"""


@pytest.mark.parametrize(
    ("name", "what"), [("reference", "any"), ("cpu", "any"), ("opencl", "known")]
)
def test_finalizer_may_compute_during_interpreter_exit(
    name: str, what: str, tmp_path: Path
) -> None:
    """pyopencl imports modules to build a program, so only earlier builds can run there."""
    pytest.importorskip(PACKAGES[name])
    done = subprocess.run(
        [sys.executable, "-c", LATE, name, what],
        capture_output=True, text=True, check=False,
        env={**os.environ, "DOVETAIL_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    more = ", 7.0, 7.0, 7.0, 7.0, 196.0, 12.0, 12.0, 12.0, 12.0, 0.0" if what == "any" else ""
    said = sorted(done.stdout.splitlines())
    assert said[what == "known" :] == [f"1 [28.0{more}]", f"2 [28.0{more}]"], done.stderr
    assert done.stderr == ""


KERNELS_LAST = """
import sys
import dovetail as dt

@dt.kernel
def swapped(out: dt.Out, x: dt.In):
    for i in dt.grid(x.shape[0]):
        a = 0.0
        b = 1.0
        for j in range(x.shape[0]):
            a, b = b, a
        out[i] = a

@dt.kernel
def chosen(out: dt.Out, x: dt.In):
    for i in dt.grid(x.shape[0]):
        a = 0.0
        b = 1.0
        for j in range(x.shape[0]):
            if x[j] > 0:
                a = b
                b = 2.0
            else:
                a = 1.0
        out[i] = a + b

for k in (swapped, chosen):
    for d in sys.argv[1:]:
        out = dt.zeros(4, device=d)
        k(out, dt.ones(4, device=d))
        print(out)
"""


def test_memory_freed_at_exit_prints_nothing(tmp_path: Path) -> None:
    """Its allocator may be gone by then."""
    program = tmp_path / "program.py"
    program.write_text(KERNELS_LAST)
    names = [name for name in PACKAGES if name in INSTALLED]
    done = subprocess.run([sys.executable, program, *names], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == ""
