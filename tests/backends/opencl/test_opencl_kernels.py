"""The kernels of test_cstyle, and more, on every OpenCL device here: the reference's bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

pytest.importorskip("pyopencl", reason="pyopencl is not installed")
pytest.importorskip("dovetail_opencl", reason="dovetail-opencl is not installed")

from cstyle_cases import (  # noqa: F401 - collected here again, with this module's `host`
    test_atomics_have_the_reference_bits,
    test_casts_and_bitcasts_have_the_reference_bits,
    test_constants_are_exact,
    test_elementary_functions_have_the_reference_bits,
    test_every_operation_on_special_values_has_the_reference_bits,
    test_extreme_integer_constants_are_exact,
    test_fold_steps_read_the_previous_carries,
    test_fold_stops_once_its_carry_is_constant,
    test_golden_kernels_have_the_reference_bits,
    test_nested_reductions_and_maps_have_the_reference_bits,
    test_parameter_names_may_be_c_keywords,
    test_random_kernels_have_the_reference_bits,
    test_reduction_of_chunks_of_chunks_has_the_reference_bits,
    test_reductions_of_every_length_have_the_reference_bits,
    test_rounding_of_large_integers_and_of_float64_has_the_reference_bits,
)
from dovetail.extend import Backend, Kernel, Unavailable, legalize
from dovetail_opencl import plugin

FOUND = plugin.dovetail_probe({})
DEVICES = [] if isinstance(FOUND, Unavailable) else list(FOUND)
REASON = f"{FOUND.reason}: {FOUND.hint}" if isinstance(FOUND, Unavailable) else ""
SHIFT = 192  # bytes before the buffers' first elements, so that offset 0 cannot be assumed

pytestmark = pytest.mark.skipif(not DEVICES, reason=REASON)


class OpenCLHost:
    """Run kernels on one device, with the arrays at offsets in larger buffers."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.programs: dict[str, Any] = {}

    def run(
        self, kernel: Kernel, arrays: Sequence[Any], ints: Sequence[int], scalars: Sequence[Any]
    ) -> None:
        b = self.backend
        text = str(kernel)
        if text not in self.programs:
            self.programs[text] = b.compile(legalize(kernel, b.info.capabilities))
        names = dict(zip(kernel.ints, ints, strict=True))
        grid = [names[e.name] if e.op == "param" else int(e.number) for e in kernel.grid]
        handles = [b.allocate(a.nbytes + SHIFT) for a in arrays]
        for handle, a in zip(handles, arrays, strict=True):
            b.copy_in(handle, SHIFT, memoryview(a).cast("B"))
        b.launch(
            self.programs[text], tuple(x for h in handles for x in (h, SHIFT)), ints, scalars, grid
        )
        for handle, a in zip(handles, arrays, strict=True):
            b.copy_out(memoryview(a).cast("B"), handle, SHIFT)
            b.free(handle, a.nbytes + SHIFT)


@pytest.fixture(scope="module", params=DEVICES, ids=lambda d: d.details["platform"].split("(")[0])
def host(request: pytest.FixtureRequest) -> Iterator[OpenCLHost]:
    backend = plugin.dovetail_open(request.param, {})
    yield OpenCLHost(backend)
    backend.close()
