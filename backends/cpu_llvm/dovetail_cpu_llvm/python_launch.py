"""Bound launches without the compiled module: ctypes fills the slots and calls the kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from dovetail.extend import QueuedLaunch, Replay, Scalar

from .command_list import LaunchTemplate, scalar_bits

_ARGUMENTS = (None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class PythonLaunch:
    """A function of (buffers, scalars, stream) that runs a kernel on the calling thread."""

    def __init__(self, owner: object, fixed: LaunchTemplate, releases: bool, buffers: int) -> None:
        prototype = ctypes.CFUNCTYPE if releases else ctypes.PYFUNCTYPE
        self._kernel: Callable[..., None] = prototype(*_ARGUMENTS)(fixed.function)
        self._owner = owner  # keeps the code alive
        self._fixed, self._buffers = fixed, buffers
        self._slots = ctypes.c_int64 * len(fixed.slots)
        self._template = bytes(self._slots(*fixed.slots))

    def __call__(self, buffers: Any, scalars: Any, stream: Any) -> None:
        """Run the kernel."""
        if not isinstance(buffers, tuple) or len(buffers) != 2 * self._buffers:
            raise TypeError(f"a launch of {self._buffers} buffers takes a tuple of as many pairs")
        sums = [buffers[i] + buffers[i + 1] for i in range(0, len(buffers), 2)]
        self.run(self.fill(sums, scalars))

    def fill(self, addresses: Sequence[int], scalars: Sequence[Scalar]) -> Any:
        """Return a new array of the slots of a call."""
        fixed = self._fixed
        slots = self._slots.from_buffer_copy(self._template)
        for i, address in enumerate(addresses):
            slots[i] = address
        for i, kind in enumerate(fixed.kinds):
            slots[fixed.first_scalar + i] = scalar_bits(scalars[i], kind)
        return slots

    def run(self, slots: Any) -> None:
        """Run the kernel over all tiles with these slots."""
        self._kernel(slots, 0, self._fixed.tiles)


def python_replay(launches: Sequence[QueuedLaunch]) -> Replay:
    """Return a function of (handles and offsets, variables, stream) that runs these launches."""
    slots = max((slot + 1 for _, places, _ in launches for slot, _ in places), default=0)

    def replay(at: Any, variables: Any, stream: Any) -> None:
        """Fill the slots of all launches from the arguments, then run the launches in order."""
        if not isinstance(at, list) or len(at) < 2 * slots:
            raise SystemError(f"a replay over {slots} buffers takes a list of as many pairs")
        calls = []
        for launch, operands, scalars in launches:
            sums = [at[2 * slot] + at[2 * slot + 1] + offset for slot, offset in operands]
            numbers = [x if where is None else variables[where] for x, where in scalars]
            calls.append((launch, launch.fill(sums, numbers)))  # type: ignore[attr-defined]  # a PythonLaunch
        for launch, filled in calls:
            launch.run(filled)  # type: ignore[attr-defined]  # a PythonLaunch

    return replay
