"""Fixtures of all tests."""

from __future__ import annotations

import importlib.util

import pytest

HAVE_CPU = importlib.util.find_spec("dovetail_cpu_llvm") is not None


@pytest.fixture(
    params=[
        "reference",
        pytest.param(
            "cpu", marks=pytest.mark.skipif(not HAVE_CPU, reason="dovetail-cpu-llvm is not installed")
        ),
    ]
)
def device(request: pytest.FixtureRequest) -> str:
    """The name of a device; each test runs on every installed one."""
    return str(request.param)
