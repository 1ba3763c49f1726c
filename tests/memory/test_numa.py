"""NUMA policies of host memory."""

from __future__ import annotations

import os
import subprocess
import sys

import dovetail as dt
import pytest

pytest.importorskip("dovetail_cpu_llvm")
from dovetail_cpu_llvm import numa

NBYTES = 32 << 20  # more than any cached segment of these tests


def missing_policies() -> str:
    """Return the reason why this system has no NUMA policies, or ""."""
    text = numa.describe()
    return "" if text.endswith("policies work") else text


needs_numa = pytest.mark.skipif(bool(missing_policies()), reason=missing_policies() or "-")


def kernel_policy(address: int) -> str:
    """Return the policy of the pages at an address, as the system shows it."""
    with open("/proc/self/numa_maps") as lines:
        found = [f for f in map(str.split, lines) if int(f[0], 16) == address]
    return str(found[0][1])


@needs_numa
@pytest.mark.parametrize(
    ("policy", "shown"), [(0, "bind:0"), ("local", "local"), ("interleave", "interleave:0")]
)
def test_new_memory_has_the_policy(policy: int | str, shown: str) -> None:
    nodes = numa.read_nodes()
    dt.memory.empty_cache("cpu")
    dt.memory.set_numa_policy(policy, "cpu")
    try:
        assert dt.memory.get_numa_policy("cpu") == policy
        x = dt.full(NBYTES, 7, dtype=dt.uint8, device="cpu")
        assert x[-1].item() == 7
        expected = shown if policy != "interleave" or len(nodes) == 1 else "interleave:"
        assert kernel_policy(x.data_ptr()).startswith(expected)
    finally:
        dt.memory.set_numa_policy("default", "cpu")
    del x
    dt.memory.empty_cache("cpu")
    y = dt.full(NBYTES, 8, dtype=dt.uint8, device="cpu")
    assert y[0].item() == 8 and kernel_policy(y.data_ptr()) == "default"


@needs_numa
def test_node_that_does_not_exist_raises() -> None:
    with pytest.raises(dt.ArgumentError, match=r"the nodes with memory are .*, got 1023"):
        dt.memory.set_numa_policy(1023, "cpu")
    assert dt.memory.get_numa_policy("cpu") == "default"


def test_wrong_policies_raise() -> None:
    with pytest.raises(dt.ArgumentError, match="must be a node or one of default, local, inter"):
        dt.memory.set_numa_policy("near", "cpu")
    with pytest.raises(dt.ArgumentError, match="policy"):
        dt.memory.set_numa_policy(-1, "cpu")
    with pytest.raises(dt.ArgumentTypeError, match="policy"):
        dt.memory.set_numa_policy(1.5, "cpu")  # type: ignore[arg-type]


def test_device_without_policies_raises_unless_default() -> None:
    dt.memory.set_numa_policy("default", "reference")
    with pytest.raises(dt.DeviceError, match="reference has no NUMA policies"):
        dt.memory.set_numa_policy("local", "reference")


def test_system_without_policies_has_the_default_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numa, "read_nodes", tuple)
    dt.memory.set_numa_policy("default", "cpu")
    with pytest.raises(dt.DeviceError, match="has no NUMA policies here"):
        dt.memory.set_numa_policy("local", "cpu")
    assert "no NUMA policies" in numa.describe()


def test_system_that_refuses_policies_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(numa, "read_nodes", lambda: (0,))
    monkeypatch.setattr(numa, "bind_pages", refuse)
    monkeypatch.setattr(numa.sys, "platform", "linux")
    monkeypatch.setattr(numa.platform, "machine", lambda: "x86_64")
    with pytest.raises(dt.DeviceError, match=r"refuses NUMA policies .mbind: Operation not"):
        dt.memory.set_numa_policy(0, "cpu")
    assert "refuses" in numa.describe()


@needs_numa
def test_environment_variable_sets_the_first_policy() -> None:
    program = "import dovetail as dt; print(dt.memory.get_numa_policy('cpu'))"
    out = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "DOVETAIL_CPU_NUMA": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.strip() == "0"
