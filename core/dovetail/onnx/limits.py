"""Limits on the memory and size of a loaded model, so a small file cannot exhaust memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import dovetail as dt
from dovetail.extend import Lock, arguments

MODEL_BYTES_MAX = 8 << 30  # default of `limit`
NODES_MAX = 1 << 20  # of a model with its functions inlined
DEPTH_MAX = 64  # of graphs in graphs, and of functions that call functions


class MemoryBudget:
    """A budget of bytes for the values that a model holds at one time."""

    def __init__(self, nbytes: int | None) -> None:
        self.nbytes = (
            MODEL_BYTES_MAX
            if nbytes is None
            else arguments.integer("onnx.load", nbytes, "limit", 1)
        )
        self.used = 0
        self._lock = Lock()  # a model may run on several threads

    def reserve(self, nbytes: int, what: str) -> None:
        """Reserve a value's bytes in advance. Raises: OutOfMemoryError beyond the limit."""
        with self._lock:
            fits = self.used + nbytes <= self.nbytes
            self.used += nbytes if fits else 0
        if not fits:
            raise dt.OutOfMemoryError(
                f"onnx: {what} needs {nbytes} bytes in addition to {self.used} of other values, "
                f"and the model may use at most {self.nbytes}; pass a larger limit= to dt.onnx.load"
            )

    def release(self, nbytes: int) -> None:
        """Release the bytes of a value that is dropped."""
        with self._lock:
            self.used -= nbytes


class Reservation:
    """The bytes that one user of a budget has reserved, which are released together."""

    def __init__(self, budget: MemoryBudget) -> None:
        self.budget, self.used = budget, 0

    def reserve(self, nbytes: int, what: str) -> None:
        """Reserve bytes of the budget. Raises: OutOfMemoryError."""
        self.budget.reserve(nbytes, what)
        self.used += nbytes

    def release(self) -> None:
        """Release all bytes."""
        self.budget.release(self.used)
        self.used = 0


def size_of(shape: Sequence[int], d: dt.DType) -> int:
    """Return the number of bytes of a tensor of this shape and dtype."""
    return math.prod(shape) * d.itemsize


def nbytes_of(value: object) -> int:
    """Count the bytes of a tensor, an array or a list of them; shared memory counts each time.

    Other values have 0 bytes.
    """
    if isinstance(value, dt.Tensor):
        return size_of(value.shape, value.dtype)
    if isinstance(value, list):
        return sum(nbytes_of(v) for v in value)
    return getattr(value, "nbytes", 0)
