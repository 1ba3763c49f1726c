"""What a reader of a skipped test can do, so that the test runs."""

from __future__ import annotations

import re

import pytest
from sampling import ABSENT

_BACKENDS = {
    "cpu": "pip install -e ./backends/cpu_llvm",
    "opencl": 'pip install -e "./backends/opencl[cpu]"',
    "cuda": "pip install -e ./backends/cuda",
    "vulkan": "pip install -e ./backends/vulkan",
    "webgpu": "pip install -e ./backends/webgpu",
}
_PEERS = "PyTorch|torch|JAX|jax|numexpr|pybind11|peers|PyData|Cubed|Icechunk"
# A pattern of the reason, and what helps; the first that matches counts.
REMEDIES = {
    r"(pip|apt) install|install gcc|set CC": "",  # the reason has a command
    r"dovetail[_-]cuda|cuda[.-]bindings|CUDA's double": _BACKENDS["cuda"],
    r"dovetail[_-]opencl|intel-opencl-rt|[Oo]pen[Cc][Ll]": _BACKENDS["opencl"],
    r"dovetail[_-]vulkan|Vulkan": _BACKENDS["vulkan"],
    r"dovetail[_-]webgpu|WebGPU": _BACKENDS["webgpu"],
    r"dovetail[_-]cpu|llvmlite|second device": _BACKENDS["cpu"],
    r"empty parameter set for \((device|there)\)": _BACKENDS["opencl"],  # a further device
    r"GPU here|nvcc|NVRTC|CuPy": "run it on a machine with an NVIDIA GPU and CUDA's toolkit",
    rf"\b({_PEERS})\b": "pip install --group peers",
    r"'(mkdocs|material|playwright|PIL)\b": "pip install --group docs",
    r"Pyright|jedi": "pip install --group checks",
    r"polars|pyarrow": "pip install polars pyarrow",
    r"C(\+\+)? compiler|there is no (cc|gcc|clang)\b": "apt install gcc g++",
    r"could not import '": 'pip install -e ".[test]"',
    **{rf"\b{device}\b": _BACKENDS[device] for device in sorted(ABSENT)},
}


def add_remedy(reason: str) -> str:
    """Return the reason of a skip with what the reader can do, where that is known."""
    for pattern, remedy in REMEDIES.items():
        if re.search(pattern, reason):
            return f"{reason}; {remedy}" if remedy else reason
    return reason


def complete_reason(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Add the remedy to the report of a skipped test or file; change no other report."""
    if report.skipped and isinstance(report.longrepr, tuple):
        path, line, reason = report.longrepr
        report.longrepr = (path, line, add_remedy(reason))
