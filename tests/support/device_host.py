"""An open device as the host of the kernels of `cstyle_cases`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from dovetail.engine.programs import bind_program
from dovetail.errors import DTypeError
from dovetail.extend import Kernel, legalize
from dovetail.ir.floats import find_missing_feature

SHIFT = 192  # bytes before the buffers' first elements, so that offset 0 cannot be assumed


class DeviceHost:
    """Run kernels on one device, with the arrays at offsets in larger buffers.

    - `opened`: the opened device.
    - `validate`: a function that checks a program and the kernel that it was made of.
    """

    def __init__(self, opened: Any, validate: Callable[[Any, Kernel], None] | None = None) -> None:
        self.opened, self.backend, self.validate = opened, opened.backend, validate
        self.programs: dict[str, Any] = {}

    def run(
        self, kernel: Kernel, arrays: Sequence[Any], ints: Sequence[int], scalars: Sequence[Any]
    ) -> None:
        b = self.backend
        program = self.programs.get(str(kernel)) or self.compile(kernel)
        names = dict(zip(kernel.ints, ints, strict=True))
        grid = [names[e.name] if e.op == "param" else int(e.number) for e in kernel.grid]
        launch = bind_program(self.opened, program, ints, grid)
        handles = [b.allocate(a.nbytes + SHIFT) for a in arrays]
        for handle, a in zip(handles, arrays, strict=True):
            b.copy_in(handle, SHIFT, memoryview(a).cast("B"))
        launch(tuple(x for h in handles for x in (h, SHIFT)), scalars, None)
        for handle, a in zip(handles, arrays, strict=True):
            b.copy_out(memoryview(a).cast("B"), handle, SHIFT)
            b.free(handle, a.nbytes + SHIFT)

    def compile(self, kernel: Kernel) -> Any:
        """Return the program of a kernel; skip the test if the device lacks what it needs."""
        can = self.backend.info.capabilities
        try:
            legalized = legalize(kernel, can)
        except DTypeError as error:
            pytest.skip(str(error))
        if missing := find_missing_feature(legalized, can):
            pytest.skip(f"this device does not have {missing}")
        program = self.programs[str(kernel)] = self.backend.compile(legalized)
        if self.validate is not None:
            self.validate(program, kernel)
        return program
