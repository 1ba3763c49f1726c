"""The thread pool under the thread sanitizer, and the backend without its compiled module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

SOURCES = ROOT / "backends" / "cpu_llvm" / "dovetail_cpu_llvm"
STRESS = Path(__file__).with_name("pool_stress.c")
COMPILER = shutil.which("cc")
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-pthread"]
EMPTY = "int main(void) { return 0; }\n"


def compiled(source: Path, target: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    assert COMPILER is not None
    command = [COMPILER, *FLAGS, *flags, f"-I{SOURCES}", str(source), "-o", str(target)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_thread_sanitizer_finds_no_race_in_concurrent_launches(tmp_path: Path) -> None:
    empty = tmp_path / "empty.c"
    empty.write_text(EMPTY)
    sanitized = tmp_path / "empty"
    if compiled(empty, sanitized, "-fsanitize=thread").returncode:
        pytest.skip("the C compiler has no thread sanitizer")
    if subprocess.run([sanitized], check=False).returncode:
        pytest.skip("the thread sanitizer does not run on this system")
    built = compiled(STRESS, tmp_path / "stress", "-fsanitize=thread")
    assert built.returncode == 0, built.stderr
    done = subprocess.run(
        [tmp_path / "stress", "2000"],
        env={**os.environ, "TSAN_OPTIONS": "halt_on_error=0"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("0 wrong, ") and " 0 tiles" not in done.stdout
    assert "ThreadSanitizer" not in done.stderr


PROGRAM = """
import sys
import numpy as np
import dovetail as dt
if sys.argv[1] == "missing":
    sys.modules["dovetail_cpu_llvm._native"] = None
x = dt.asarray(np.random.default_rng(0).standard_normal(300_000).astype("f4"), device="cpu")
dt.set_num_threads(3, "cpu")
print(float(dt.sum(dt.exp(x))).hex(), dt.sort(x)[:3].tolist(), dt.get_num_threads("cpu"))
import threading
from dovetail_cpu_llvm import plugin
from dovetail_cpu_llvm.native import native
print(native is not None, sum(t.name.startswith("dovetail-cpu-") for t in threading.enumerate()))
print(plugin.dovetail_diagnostics())
"""


def run_with(pool: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, pool]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_backend_without_its_compiled_module_has_the_same_bits_and_doctor_reports_it() -> None:
    bits, threads, diagnostics = run_with("missing")
    assert threads == "False 0"
    assert "not compiled" in diagnostics and "one thread" in diagnostics
    usual, threads, diagnostics = run_with("usual")
    assert bits == usual
    if threads != "False 0":
        assert threads == "True 2" and "'threads and launches': 'compiled'" in diagnostics
