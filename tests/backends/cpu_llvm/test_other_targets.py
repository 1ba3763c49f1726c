"""LLVM's code for every AVX-512 CPU that this one can run has the reference's bits.

LLVM 22.1 miscompiled a select between vectors for such CPUs (bfloat16 sinh in code of another front
end).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

PROGRAM = Path(__file__).parent / "other_targets.py"
NARROW = "+prefer-256-bit"
CPUS = ("skylake-avx512", "cascadelake", "icelake-server", "znver4", "znver5", "haswell")


@pytest.mark.exhaustive
@pytest.mark.parametrize("features", ["", NARROW])
@pytest.mark.parametrize("cpu", CPUS)
def test_half_ops_for_other_cpus_have_the_bits_of_the_reference(
    cpu: str, features: str, tmp_path: Path
) -> None:
    found = llvm.get_host_cpu_features()
    if cpu != "haswell" and not (found.get("avx512bw") and found.get("avx512vbmi")):
        pytest.skip("this CPU has no AVX-512, so it cannot run code for one that has")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), cpu, features],
        env={**os.environ, "DOVETAIL_CACHE_DIR": str(tmp_path)},
        capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
