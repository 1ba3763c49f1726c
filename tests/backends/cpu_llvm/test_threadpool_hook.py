"""threadpoolctl lists the pool of the device cpu, and limits it."""

from __future__ import annotations

import subprocess
import sys

import dovetail as dt
import pytest

threadpoolctl = pytest.importorskip("threadpoolctl", minversion="3.2")


def listed() -> list[int]:
    found = threadpoolctl.threadpool_info()
    return [entry["num_threads"] for entry in found if entry["user_api"] == "dovetail"]


def test_threadpoolctl_lists_and_limits_the_pool() -> None:
    before = dt.get_num_threads("cpu")
    assert listed() == [before]
    try:
        dt.set_num_threads(3, "cpu")
        assert listed() == [3]
        with threadpoolctl.threadpool_limits(1):
            assert dt.get_num_threads("cpu") == 1 and listed() == [1]
        assert dt.get_num_threads("cpu") == 3
        with threadpoolctl.threadpool_limits(2, user_api="dovetail"):
            assert dt.get_num_threads("cpu") == 2
        with threadpoolctl.threadpool_limits(1, user_api="blas"):
            assert dt.get_num_threads("cpu") == 3
        with threadpoolctl.threadpool_limits({"dovetail": 0}):  # 1 is the minimum
            assert dt.get_num_threads("cpu") == 1
    finally:
        dt.set_num_threads(before, "cpu")


@pytest.mark.parametrize("seen_by", ["dt.get_num_threads('cpu')", "(dt.ones(3) * 7).tolist()"])
@pytest.mark.parametrize("first", [True, False])
def test_pool_is_listed_for_either_import_order(first: bool, seen_by: str) -> None:
    lines = ["import threadpoolctl", "import dovetail as dt\ndt.ones(2, device='cpu').tolist()"]
    lines = lines if first else [*reversed(lines), f"dt.set_default_device('cpu')\n{seen_by}"]
    check = "assert 'dovetail' in [x['user_api'] for x in threadpoolctl.threadpool_info()]"
    subprocess.run([sys.executable, "-c", "\n".join([*lines, check])], check=True, timeout=100)


def test_dovetail_does_not_import_threadpoolctl() -> None:
    lines = "import dovetail as dt, sys; (dt.ones(3, device='cpu') + 1).tolist()"
    check = "assert 'threadpoolctl' not in sys.modules"
    subprocess.run([sys.executable, "-c", f"{lines}; {check}"], check=True, timeout=100)
