"""The kernels of test_cstyle on every WebGPU device here: the reference's bits."""

from __future__ import annotations

from collections.abc import Iterator
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
from device_host import DeviceHost
from dovetail.extend import CompileError, float32, parse_kernel
from dovetail_webgpu.render import WgslStyle
from webgpu_devices import ADD, DEVICES, NAMES, REASON, opened

ONE_POINT = """kernel once(out: rw i32; ; ) grid() {
  atomic add out[i64(0)] = i32(7)
}"""

pytestmark = pytest.mark.skipif(not DEVICES, reason=REASON)


@pytest.fixture(scope="module", params=DEVICES, ids=NAMES)
def host(request: Any) -> Iterator[DeviceHost]:
    with opened(request.param) as (device, _):
        yield DeviceHost(device.opened)


def test_text_names_bindings_arguments_and_points() -> None:
    kernel = parse_kernel(ADD)
    text = WgslStyle(kernel).render(kernel)
    assert "@group(0) @binding(1) var<storage, read_write> p_out: array<f32>;" in text
    assert "struct Arguments { p_n: i32, p_at0: i32, p_at1: i32, p_c: f32 }" in text
    assert "let i0 = i32(item.x);" in text and "if (i0 >= p_n) { return; }" in text


def test_two_long_reductions_in_one_kernel_are_complete(host: DeviceHost) -> None:
    """llvmpipe ends the loops of a work item in silence."""
    import dovetail as dt

    x = np.random.default_rng(0).standard_normal((2, 10_000)).astype("f4")
    sums = [
        dt.logsumexp(dt.asarray(x, dtype=float32, device=d), axis=1).numpy()
        for d in (host.opened.device, "reference")
    ]
    assert sums[0].tobytes() == sums[1].tobytes()


def test_rejected_text_is_a_compile_error_that_shows_it(
    host: DeviceHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WgslStyle, "points", lambda self, extents, lanes: ["let i0 = nothing;"])
    with pytest.raises(CompileError, match=r"(?s)wgpu rejected.*kernel add.*let i0 = nothing"):
        host.backend.compile(parse_kernel(ADD))


def test_kernel_of_one_point_runs_once(host: DeviceHost) -> None:
    """A group has more items than the grid has points."""
    out = np.zeros(1, "i4")
    host.run(parse_kernel(ONE_POINT), [out], [], [])
    assert out.tolist() == [7]
