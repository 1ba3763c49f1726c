"""A generator whose random words are the ends of their range, or neighbors of them."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import dovetail as dt
import numpy as np
from dovetail.backend.reference import interpret
from dovetail.dtypes import DType, float32, float64, int64, uint32, uint64
from dovetail.engine import tracer_api
from dovetail.ir.builder import KernelBuilder
from dovetail.ir.language import Value, const, load
from dovetail.ops import philox
from dovetail.ops import table as ops

TOP = 2**32
WORDS = (0, 1, 0x7FFFFFFF, 0x80000000, TOP - 2, TOP - 1)
# The formula of each op from words, before its result is rounded to the requested dtype.
COMPUTED = {
    ops.RANDOM_UNIFORM32: float32, ops.RANDOM_UNIFORM64: float64, ops.RANDOM_NORMAL32: float32,
    ops.RANDOM_NORMAL64: float64, ops.RANDOM_BELOW: uint64,
}  # fmt: skip


class ExtremeGenerator(dt.random.Generator):
    """A generator whose rows of words are drawn from `WORDS` in place of Philox's."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._choices = np.random.default_rng(seed)

    def _draw(
        self, op: ops.Op, shape: Sequence[int], scalars: Sequence[int | float],
        kinds: Sequence[DType], d: DType, wanted: object,
    ) -> dt.Tensor:  # fmt: skip
        assert tracer_api.current() is None, "captured functions draw by Philox itself"
        size = int(np.prod(shape, dtype=int))
        words = self._choices.choice(np.array(WORDS, np.uint32), (size, 4))
        numbers = numbers_of(op, words, scalars, kinds)
        return dt.asarray(numbers.reshape(shape), device=wanted).astype(d)  # type: ignore[arg-type]


def numbers_of(
    op: ops.Op, words: np.ndarray, scalars: Sequence[int | float], kinds: Sequence[DType]
) -> np.ndarray:
    """Return the results of an op for rows of four words."""
    b = KernelBuilder("extreme")
    given, out = b.buffer("words", uint32, "r"), b.buffer("out", COMPUTED[op], "w")
    i = b.axis(const(len(words), int64))

    def row(index: Value, seed: Value, offset: Value) -> tuple[Value, ...]:
        return tuple(load(given, index * 4 + k) for k in range(4))

    zero = const(0, uint64)
    with mock.patch.object(philox, "random_words", row):
        numbers = [const(s, kind) for s, kind in zip(scalars, kinds, strict=True)]
        b.store(out, i, op.expression(i, zero, zero, *numbers))
    found = np.zeros(len(words), np.dtype(COMPUTED[op].name))
    if len(words):
        interpret(b.build(), [words.reshape(-1), found], [], [], [len(words)])
    return found
