"""How much memory a model may ask for, so that a small file cannot ask for all there is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import dovetail as dt
from dovetail.extend import Lock, arguments

LIMIT = 8 << 30  # bytes, unless a caller says otherwise
NODES = 1 << 20  # of a model whose functions are written out
DEPTH = 64  # of graphs in graphs, and of functions that call functions


class Limit:
    """The bytes that a model's values may have at one time; what has been asked for so far."""

    def __init__(self, nbytes: int | None) -> None:
        self.nbytes = (
            LIMIT if nbytes is None else arguments.integer("onnx.load", nbytes, "limit", 1)
        )
        self.used = 0
        self._turn = Lock()  # a model may run on several threads

    def take(self, nbytes: int, what: str) -> None:
        """Notes that a value is there. Raises: OutOfMemoryError, before there is memory for it."""
        with self._turn:
            fits = self.used + nbytes <= self.nbytes
            self.used += nbytes if fits else 0
        if not fits:
            raise dt.OutOfMemoryError(
                f"onnx: {what} takes {nbytes} bytes beside {self.used} of other values, more than "
                f"the {self.nbytes} that the model may have; dt.onnx.load(..., limit=) allows more"
            )

    def give(self, nbytes: int) -> None:
        """Notes that a value is gone."""
        with self._turn:
            self.used -= nbytes


def size_of(shape: Sequence[int], d: dt.DType) -> int:
    """The bytes of a tensor, however large."""
    return math.prod(shape) * d.itemsize


def nbytes_of(value: object) -> int:
    """The bytes of a value of a model: what a tensor would take by itself."""
    if isinstance(value, dt.Tensor):
        return size_of(value.shape, value.dtype)
    if isinstance(value, list):
        return sum(nbytes_of(v) for v in value)
    return getattr(value, "nbytes", 0)
