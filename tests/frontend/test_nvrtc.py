"""NVRTC compiles user kernels; that needs no GPU."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import pytest
from test_kernel_examples import SIZES, example
from test_raw_kernels import CUDA


@pytest.fixture
def to_cubin() -> Any:
    pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
    room = pytest.importorskip("dovetail_cuda.compile", reason="dovetail-cuda is not installed")
    try:
        room.to_cubin("", "sm_80")
    except dt.CompileError:
        raise
    except Exception as error:
        pytest.skip(f"NVRTC is not installed: {error}")
    return room.to_cubin


def test_nvrtc_compiles_raw_kernel_text(to_cubin: Any) -> None:
    assert b"scale" in to_cubin(CUDA, "sm_80", "scale", ())
    with pytest.raises(dt.CompileError, match=r"kernel.cu\(3\): error"):
        to_cubin(CUDA.replace("a * x[i]", "b * x[i]"), "sm_90")


@pytest.mark.parametrize("name", SIZES)
def test_nvrtc_compiles_loop_kernels(to_cubin: Any, name: str) -> None:
    schedule = pytest.importorskip("dovetail_cuda.schedule")
    extend = pytest.importorskip("dovetail.extend")
    one, two = dt.zeros(4, device="reference"), dt.zeros((4, 4), device="reference")
    (k,) = [v for v in example(name).values() if type(v).__name__ == "LoopKernel"]
    args = {
        "stencil_kernel": (two, two, 0.1),
        "histogram_kernel": (dt.zeros(4, dtype=dt.int32, device="reference"), one, 0.0, 1.0),
        "attention_kernel": (two, two, two, two, two, 1.0),
    }[name]
    for text in k.text(*args).split("\n\n"):
        kernel = extend.legalize(extend.parse_kernel(text), extend.Capabilities())
        first = schedule.first(kernel)
        assert to_cubin(schedule.schedule(kernel, first).source(), "sm_90", kernel)
