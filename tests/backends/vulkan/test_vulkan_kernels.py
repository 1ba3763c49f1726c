"""The kernels of test_cstyle, and more, on every Vulkan device here: the reference's bits."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

pytest.importorskip("dovetail_vulkan", reason="dovetail-vulkan is not installed")

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
    test_reductions_of_every_length_have_the_reference_bits,
    test_rounding_of_large_integers_and_of_float64_has_the_reference_bits,
)
from dovetail.extend import Kernel, legalize
from dovetail.ir.floats import find_missing_feature
from vulkan_devices import DEVICES, NAMES, REASON, opened

VALIDATOR = shutil.which("spirv-val")
SHIFT = 192  # bytes before the buffers' first elements, so that offset 0 cannot be assumed

pytestmark = pytest.mark.skipif(not DEVICES, reason=REASON)


class VulkanHost:
    """Run kernels on one device, with the arrays at offsets in larger buffers."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.programs: dict[str, Any] = {}

    def run(
        self, kernel: Kernel, arrays: Sequence[Any], ints: Sequence[int], scalars: Sequence[Any]
    ) -> None:
        b = self.backend
        program = self.programs.get(str(kernel)) or self.compile(kernel)
        names = dict(zip(kernel.ints, ints, strict=True))
        grid = [names[e.name] if e.op == "param" else int(e.number) for e in kernel.grid]
        handles = [b.allocate(a.nbytes + SHIFT) for a in arrays]
        for handle, a in zip(handles, arrays, strict=True):
            b.copy_in(handle, SHIFT, memoryview(a).cast("B"))
        b.launch(program, tuple(x for h in handles for x in (h, SHIFT)), ints, scalars, grid)
        for handle, a in zip(handles, arrays, strict=True):
            b.copy_out(memoryview(a).cast("B"), handle, SHIFT)
            b.free(handle, a.nbytes + SHIFT)

    def compile(self, kernel: Kernel) -> Any:
        """Compile a kernel, of which the module must be valid."""
        can = self.backend.info.capabilities
        legalized = legalize(kernel, can)
        if missing := find_missing_feature(legalized, can):
            pytest.skip(f"this device does not have {missing}")
        program = self.programs[str(kernel)] = self.backend.compile(legalized)
        if VALIDATOR is not None:
            command = [VALIDATOR, "--target-env", "vulkan1.2", "-"]
            done = subprocess.run(command, input=program.module.words, capture_output=True)
            assert not done.returncode, f"{(done.stdout + done.stderr).decode()}\n{kernel}"
        return program


@pytest.fixture(scope="module", params=DEVICES, ids=NAMES)
def host(request: Any) -> Iterator[VulkanHost]:
    with opened(request.param) as (_, backend):
        yield VulkanHost(backend)
