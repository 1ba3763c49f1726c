"""Vulkan in a process that forks, is interrupted or ends."""

from __future__ import annotations

from pathlib import Path

import pytest
import test_interrupts
import test_process_exit

pytest.importorskip("dovetail_vulkan", reason="dovetail-vulkan is not installed")

from vulkan_devices import DEVICES, REASON, run_python

pytestmark = pytest.mark.skipif(not DEVICES, reason=REASON)

FORKED = """if True:
    import os, sys
    import dovetail as dt
    x = dt.ones(1000, device="vulkan")
    print((x + 1).sum(), flush=True)
    queued = x * 3
    if (child := os.fork()) == 0:
        try:
            (x * 2).sum().item()
        except dt.DeviceError as error:
            print("fork()" in str(error), flush=True)
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), queued.sum())
"""


@test_process_exit.NEEDS_FORK
def test_child_of_a_fork_gets_an_error_and_exits() -> None:
    done = run_python(FORKED)
    assert done.stdout.split() == ["2000.", "True", "7", "3000."], done.stderr


@test_process_exit.NEEDS_FORK
@pytest.mark.parametrize("leave", ["held", "released"])
def test_forked_children_end_without_the_driver(
    leave: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(test_process_exit.PACKAGES, "vulkan", "dovetail_vulkan")
    test_process_exit.fork("vulkan", 4, leave)


def test_finalizer_computes_during_interpreter_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(test_process_exit.PACKAGES, "vulkan", "dovetail_vulkan")
    test_process_exit.test_finalizer_may_compute_during_interpreter_exit("vulkan", "any", tmp_path)


@test_interrupts.pytestmark
def test_interrupts_change_no_value_and_lose_no_block_of_vulkan() -> None:
    test_interrupts.interrupted("vulkan", 120)
