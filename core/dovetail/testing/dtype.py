"""The dtype under test: its plugin's description, and its numbers as the plugin decodes them.

NumPy computes the expected results from these numbers alone, never by the plugin's encode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from ..dtypes import DType
from ..errors import DTypeError
from ..ir.formats import DTYPE_INFOS, DTypeInfo
from ..plugins.dtype_registry import BlockInfo, registry
from ..plugins.plugin_state import PluginRecord
from ..tensor import tensor as T
from .kit import Kit, host
from .values import Array, decode, encode, host_dtype


def case_files() -> list[str]:
    """Return the names of the modules with the cases of this kit."""
    return [p.stem for p in sorted(Path(__file__).parent.glob("dtype_*.py"))]


@dataclass(frozen=True)
class DTypeSubject:
    """A dtype under test, with its plugin's description."""

    dtype: DType
    info: DTypeInfo
    record: PluginRecord
    gaps: Mapping[str, str]

    @cached_property
    def codes(self) -> Array:
        """Return every code, in order."""
        return np.arange(1 << self.dtype.bits, dtype=np.uint32).astype(host_dtype(self.dtype))

    @cached_property
    def numbers(self) -> Array:
        """Return the number of every code, as float32."""
        return decode(self.codes, self.dtype)

    @cached_property
    def positive(self) -> Array:
        """Return the finite numbers from 0 on, in the order of their codes, as float64."""
        with np.errstate(invalid="ignore"):  # NaNs that signal
            half = self.numbers[: self.codes.size // 2].astype(np.float64)
        wrong = np.flatnonzero(~np.isfinite(half))
        return half[: wrong[0] if wrong.size else None]

    def round_to_nearest(self, values: Array) -> Array:
        """Return float64 values rounded to the nearest number, ties to even codes.

        From half a unit beyond the largest on they are too large.
        """
        numbers = self.positive
        ladder = np.append(numbers, 2 * numbers[-1] - numbers[-2])
        middles = (ladder[:-1] + ladder[1:]) / 2
        with np.errstate(all="ignore"):
            size = np.abs(values.astype(np.float64))
            index = np.searchsorted(middles, size, "left")
            tie = middles[np.minimum(index, middles.size - 1)] == size
            index = index + (tie & (index % 2 == 1))
            wide = np.append(numbers, self.overflow_value)[np.minimum(index, numbers.size)]
            near = np.copysign(np.where(np.isnan(size), np.nan, wide), values)
        return np.asarray(near, np.float32)

    @cached_property
    def overflow_value(self) -> float:
        """Return the result of numbers that are too large: infinity, or its conversion."""
        if self.info.infinities:
            return math.inf
        largest = decode(encode(np.array([np.inf], np.float32), self.dtype), self.dtype)[0]
        return math.nan if np.isnan(largest) else float(self.positive[-1])


@dataclass(frozen=True)
class BlocksSubject:
    """A block format under test, with its plugin's description."""

    info: BlockInfo
    record: PluginRecord
    gaps: Mapping[str, str]

    def round_to_nearest(self, values: Array) -> Array:
        """Return float32 values quantised along the last axis to levels times a block's scale."""
        info = self.info
        levels = np.array(info.levels, np.float32)
        n = values.shape[-1]
        filled = np.zeros((*values.shape[:-1], -(-n // info.block) * info.block), np.float32)
        filled[..., :n] = values
        count = filled.shape[-1] // info.block
        blocks = filled.reshape(*values.shape[:-1], count, info.block)
        with np.errstate(all="ignore"):
            size = np.abs(blocks).max(axis=-1, keepdims=True)
            scale = np.where(size < np.inf, size / levels[-1], np.float32(np.nan))
            steps = np.where(scale > 0, blocks / scale, np.float32(0)).astype(np.float64)
            middles = (levels[1:].astype(np.float64) + levels[:-1]) / 2
            index = np.searchsorted(middles, steps, "left")
            tie = middles[np.minimum(index, middles.size - 1)] == steps
            index = index + (tie & (levels[np.minimum(index, levels.size - 1)] % 2 != 0))
            rounded: Array = (levels[index] * scale).astype(np.float32)
        return rounded.reshape(filled.shape)[..., :n]


def load_dtype_subject(name: str) -> DTypeSubject | BlocksSubject:
    """Return the dtype, or the block format, of this name as its plugin describes it.

    Raises: DTypeError where there is none, PluginError where it cannot be used.
    """
    record = registry.records().get(name)
    if record is None:
        installed = ", ".join(registry.records()) or "none"
        raise DTypeError(
            f"no plugin brings a dtype {name!r}; those that are installed: {installed}"
        )
    blocks = registry.blocks(name)
    gaps = registry.call(record, "dovetail_conformance") or {}
    if blocks is not None:
        return BlocksSubject(blocks, record, gaps)
    dtype = registry.find_by_name(name)
    assert dtype is not None
    return DTypeSubject(dtype, DTYPE_INFOS[dtype], record, gaps)


@dataclass
class NumbersKit(Kit):
    """A kit that compares numbers of a dtype or of blocks."""

    @property
    def name(self) -> str:
        """Return the name of the dtype or blocks under test."""
        raise NotImplementedError

    def check_same_numbers(
        self, actual: Array, wanted: Array, what: str, inputs: Array | None = None
    ) -> None:
        """Fail unless float32 arrays have the same shape and bits; NaNs are equal. Count it."""
        self.comparisons += 1
        assert actual.shape == wanted.shape, self.failure(f"{what}: {actual.shape}", "")
        x, y = (np.ascontiguousarray(a, np.float32).reshape(-1) for a in (actual, wanted))
        same = (x.view(np.uint32) == y.view(np.uint32)) | (np.isnan(x) & np.isnan(y))
        wrong = np.flatnonzero(~same)[:5]
        if wrong.size:
            of = "" if inputs is None else f" of {inputs.reshape(-1)[wrong].tolist()}"
            text = f"{what}: {(~same).sum()} of {x.size} differ: {x[wrong].tolist()} instead of"
            raise AssertionError(self.failure(f"{text} {y[wrong].tolist()}{of}", ""))

    def require(self, condition: object, what: str) -> None:
        """Count a comparison, and fail with `what` unless the condition is true."""
        self.comparisons += 1
        assert condition, self.failure(f"{self.name}: {what}", "")


@dataclass
class BlockKit(NumbersKit):
    """One case's view of the blocks, on one device."""

    blocks: BlocksSubject = field(kw_only=True)

    @property
    def name(self) -> str:
        """Return the name of the blocks."""
        return self.blocks.info.name


@dataclass
class DTypeKit(NumbersKit):
    """One case's view of the dtype, on one device."""

    subject: DTypeSubject = field(kw_only=True)

    @property
    def dtype(self) -> DType:
        """Return the dtype under test."""
        return self.subject.dtype

    @property
    def name(self) -> str:
        """Return the name of the dtype."""
        return self.dtype.name

    def values(self, x: T.Tensor) -> Array:
        """Return a tensor's elements as float32 on the host; fail if its dtype is another one."""
        self.require(x.dtype is self.dtype, f"a result is of dtype {x.dtype.name}")
        return decode(host(x), self.dtype)
