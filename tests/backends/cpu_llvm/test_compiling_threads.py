"""Compilation by several threads at the same time."""

from __future__ import annotations

import dovetail as dt
import pytest
from dovetail.backend.thread_map import map_in_threads
from dovetail.extend import Kernel, KernelBuilder, load
from dovetail.plugins.registry import open_device


def power(n: int) -> Kernel:
    """Return a kernel that multiplies an element with itself."""
    b = KernelBuilder("power")
    x, out = b.buffer("x", dt.float32, "r"), b.buffer("out", dt.float32, "w")
    i = b.axis(b.int("n"))
    value = load(x, i)
    for _ in range(n):
        value = value * load(x, i) + 1.5
    b.store(out, i, value)
    return b.build()


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_make_the_binaries_that_one_thread_makes(threads: int) -> None:
    backend, kernels = open_device("cpu").backend, [power(n) for n in range(1, 25)]
    alone = [backend.compile(k).binary for k in kernels]
    programs = map_in_threads(backend.compile, kernels, threads)
    assert [getattr(p, "binary", p) for p in programs] == alone
    assert len({*alone}) == len(kernels)


def test_number_of_compiling_threads_is_that_of_the_device() -> None:
    before = dt.get_num_threads("cpu")
    try:
        for n in (1, 3):
            dt.set_num_threads(n, "cpu")
            assert open_device("cpu").backend.compile_threads == n
    finally:
        dt.set_num_threads(before, "cpu")
