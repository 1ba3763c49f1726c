"""The kernels of test_cstyle on every WebGPU device here: the reference's bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dovetail_webgpu", reason="dovetail-webgpu is not installed")

from cstyle_cases import (  # noqa: F401 - collected here again, with this module's `host`
    test_atomics_have_the_reference_bits,
    test_casts_and_bitcasts_have_the_reference_bits,
    test_extreme_integer_constants_are_exact,
    test_fold_steps_read_the_previous_carries,
    test_fold_stops_once_its_carry_is_constant,
    test_golden_kernels_have_the_reference_bits,
    test_nested_reductions_and_maps_have_the_reference_bits,
    test_parameter_names_may_be_c_keywords,
    test_random_kernels_have_the_reference_bits,
    test_reductions_of_every_length_have_the_reference_bits,
)
from dovetail.engine.programs import bind_program
from dovetail.errors import DTypeError
from dovetail.extend import CompileError, Kernel, float32, legalize, parse_kernel
from dovetail.ir.floats import find_missing_feature
from dovetail_webgpu.render import WgslStyle
from webgpu_devices import ADD, DEVICES, NAMES, REASON, opened

SHIFT = 192  # bytes before the buffers' first elements, so that offset 0 cannot be assumed

ONE_POINT = """kernel once(out: rw i32; ; ) grid() {
  atomic add out[i64(0)] = i32(7)
}"""

pytestmark = pytest.mark.skipif(not DEVICES, reason=REASON)


class WebgpuHost:
    """Run kernels on one device, with the arrays at offsets in larger buffers."""

    def __init__(self, opened: Any) -> None:
        self.opened, self.backend = opened, opened.backend

    def run(
        self, kernel: Kernel, arrays: Sequence[Any], ints: Sequence[int], scalars: Sequence[Any]
    ) -> None:
        b, can = self.backend, self.backend.info.capabilities
        try:
            legalized = legalize(kernel, can)
        except DTypeError as error:
            pytest.skip(str(error))
        if missing := find_missing_feature(legalized, can):
            pytest.skip(f"this device does not have {missing}")
        names = dict(zip(kernel.ints, ints, strict=True))
        grid = [names[e.name] if e.op == "param" else int(e.number) for e in kernel.grid]
        launch = bind_program(self.opened, b.compile(legalized), ints, grid)
        handles = [b.allocate(a.nbytes + SHIFT) for a in arrays]
        for handle, a in zip(handles, arrays, strict=True):
            b.copy_in(handle, SHIFT, memoryview(a).cast("B"))
        launch(tuple(x for h in handles for x in (h, SHIFT)), scalars, None)
        for handle, a in zip(handles, arrays, strict=True):
            b.copy_out(memoryview(a).cast("B"), handle, SHIFT)
            b.free(handle, a.nbytes + SHIFT)


@pytest.fixture(scope="module", params=DEVICES, ids=NAMES)
def host(request: Any) -> Iterator[WebgpuHost]:
    with opened(request.param) as (device, _):
        yield WebgpuHost(device.opened)


def test_text_names_bindings_arguments_and_points() -> None:
    kernel = parse_kernel(ADD)
    text = WgslStyle(kernel).render(kernel)
    assert "@group(0) @binding(1) var<storage, read_write> p_out: array<f32>;" in text
    assert "struct Arguments { p_n: i32, p_at0: i32, p_at1: i32, p_c: f32 }" in text
    assert "let i0 = i32(item.x);" in text and "if (i0 >= p_n) { return; }" in text


def test_two_long_reductions_in_one_kernel_are_complete(host: WebgpuHost) -> None:
    """llvmpipe ends the loops of a work item in silence."""
    import dovetail as dt

    x = np.random.default_rng(0).standard_normal((2, 10_000)).astype("f4")
    found = dt.logsumexp(dt.asarray(x, dtype=float32, device="webgpu"), axis=1).numpy()
    assert found.tobytes() == dt.logsumexp(dt.asarray(x), axis=1).numpy().tobytes()


def test_rejected_text_is_a_compile_error_that_shows_it(
    host: WebgpuHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WgslStyle, "points", lambda self, extents, lanes: ["let i0 = nothing;"])
    with pytest.raises(CompileError, match=r"(?s)wgpu rejected.*kernel add.*let i0 = nothing"):
        host.backend.compile(parse_kernel(ADD))


def test_kernel_of_one_point_runs_once(host: WebgpuHost) -> None:
    """A group has more items than the grid has points."""
    out = np.zeros(1, "i4")
    host.run(parse_kernel(ONE_POINT), [out], [], [])
    assert out.tolist() == [7]
