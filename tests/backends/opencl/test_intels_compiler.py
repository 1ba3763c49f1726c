"""Kernels given to Intel's CPU compiler avoid its use-after-free with many barriers.

See docs/internals/backends.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyopencl", reason="pyopencl is not installed")
pytest.importorskip("dovetail_opencl", reason="dovetail-opencl is not installed")

from dovetail_opencl import loader

TESTS = Path(__file__).parents[2]
# By groups, four reductions would be too many: the compiler then copies into more than 48 blocks.
COMPILES = """
from cstyle_cases import COMBINES, reduction
from dovetail.extend import float32, legalize, parse_kernel
from dovetail_opencl import plugin
from dovetail_opencl.schedule import LANED, PLAIN
from places import GOLDEN

built = 0
for info in plugin.dovetail_probe({}):
    if "Intel" in info.details["platform"]:
        backend = plugin.dovetail_open(info, {})
        two = [float32] * 2
        kernels = [reduction(*x) for x in (("add", COMBINES["add"]), ("add", two), ("argmax", two))]
        kernels += [parse_kernel(path.read_text()) for path in sorted(GOLDEN.glob("*.txt"))]
        for kernel in kernels:
            backend.compile(legalize(kernel, info.capabilities))
            built += 1
        firsts = [backend.compiler.first(kernel) for kernel in kernels[:3]]
        assert firsts == [PLAIN, LANED, LANED], firsts
print("built", built)
"""


def child(script: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that has opened no device yet."""
    path = os.pathsep.join([str(TESTS), *(p for p in sys.path if p)])
    full = {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1", **environ}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=full, capture_output=True, text=True, timeout=250)


@pytest.mark.skipif(loader.intel_runtime() is None, reason="intel-opencl-rt is not installed")
def test_intel_compiler_reads_no_freed_memory() -> None:
    """glibc fills freed memory, so a read of it finds no valid address."""
    done = child(COMPILES, MALLOC_PERTURB_="165")
    assert done.returncode == 0 and done.stdout.startswith("built "), done.stderr[-2000:]
    assert done.stdout != "built 0\n"
