"""Kernels stay within memory: some tests, run with guard pages around each tensor (`guarded`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import dovetail as dt
import pytest

TESTS = Path(__file__).parent
DEVICES = [str(d) for d in dt.devices() if d.type in ("cpu", "opencl")]
CHILD = """
import ctypes
import sys
import guarded
guarded.install()
if sys.argv[1] == "cuda":
    from cuda_double import plugin
    plugin.install()
import dovetail as dt

@dt.kernel
def ahead(out: dt.InOut, x: dt.In, n: int):
    for i in dt.grid(len(out)):
        out[i] = x[i + n]

device, where = sys.argv[1:]
x, out = dt.arange(8, device=device, dtype=dt.float32), dt.zeros(8, device=device)
if where == "later":
    a = x.numpy()
    address = a.__array_interface__["data"][0]
    del a, x
    dt.evaluate(out)  # who allocates, takes back what was freed
    ctypes.string_at(address, 1)
else:
    ahead(out, x, {"inside": 0, "beside": 1}[where])
print(out.tolist())
"""
PART = (
    "frontend/test_kernels.py", "frontend/test_raw_kernels.py",
    "backends/opencl/test_opencl_kernels.py", "backends/cuda/test_cuda_kernels.py",
    "backends/cpu_llvm/test_tiles.py", "fusion", "ops",
)  # fmt: skip

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pages are Linux's")


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(TESTS), *(p for p in sys.path if p)])
    return {**os.environ, "PYTHONPATH": path, "DOVETAIL_PURE": "1"}


def child(folder: Path, device: str, where: str) -> subprocess.CompletedProcess[str]:
    (script := folder / "ahead.py").write_text(CHILD)
    command = [sys.executable, str(script), device, where]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize("device", DEVICES)
def test_access_one_element_out_of_bounds_is_detected(tmp_path: Path, device: str) -> None:
    done = child(tmp_path, device, "inside")
    assert done.stdout == f"{[*map(float, range(8))]}\n", done.stderr
    for where in ("beside", "later"):
        assert child(tmp_path, device, where).returncode == -signal.SIGSEGV


def test_access_out_of_bounds_is_detected_on_the_cuda_double(tmp_path: Path) -> None:
    if not find_spec("cuda") or not find_spec("dovetail_cuda"):
        pytest.skip("CUDA's double needs dovetail-cuda and cuda-bindings")
    assert child(tmp_path, "cuda", "inside").stdout == f"{[*map(float, range(8))]}\n"
    assert "ILLEGAL_ADDRESS" in child(tmp_path, "cuda", "beside").stderr


@pytest.mark.exhaustive
def test_kernels_of_these_tests_stay_within_their_memory() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "guarded",
        "-q",
        *(str(TESTS / p) for p in PART),
    ]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, cwd=TESTS.parent
    )
    assert done.returncode == 0, done.stdout[-5000:]
