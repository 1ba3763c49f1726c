"""Children of fork() compute, whatever the threads of their parent did at that moment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from installed import INSTALLED
from places import ROOT

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
    pytest.mark.skipif("cpu" not in INSTALLED, reason="the backend for cpu is not installed"),
]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("pure", ["0", "1"])
@pytest.mark.parametrize("count", [20, pytest.param(500, marks=pytest.mark.exhaustive)])
def test_forked_children_of_a_computing_parent_compute_right_values(count: int, pure: str) -> None:
    command = [
        sys.executable,
        "-W",
        "ignore",
        str(ROOT / "tests" / "support" / "forking.py"),
        str(count),
    ]
    environ = {**os.environ, "DOVETAIL_PURE": pure}
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=3600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"0 of {count} children failed; the parent's threads work\n"
