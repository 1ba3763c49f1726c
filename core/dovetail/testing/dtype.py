"""The dtype under test: what its plugin says of it, and its numbers as the plugin decodes them.

What is expected is worked out with NumPy from these numbers alone, never by the plugin's encode.
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
from ..loops.formats import INFOS, DTypeInfo
from ..plugins.dtype_registry import BlockInfo, registry
from ..plugins.record import Record
from ..tensor import tensor as T
from .kit import Kit, host
from .values import Array, decoded, encoded, held


def case_files() -> list[str]:
    """The modules with the cases of this kit."""
    return [p.stem for p in sorted(Path(__file__).parent.glob("dtype_*.py"))]


@dataclass(frozen=True)
class Brought:
    """A dtype that is to be judged: what its plugin says of it."""

    dtype: DType
    info: DTypeInfo
    record: Record
    gaps: Mapping[str, str]

    @cached_property
    def codes(self) -> Array:
        """Every code, in order."""
        return np.arange(1 << self.dtype.bits, dtype=np.uint32).astype(held(self.dtype))

    @cached_property
    def numbers(self) -> Array:
        """What every code stands for, as float32."""
        return decoded(self.codes, self.dtype)

    @cached_property
    def positive(self) -> Array:
        """The finite numbers from 0 on, by their codes, as float64."""
        with np.errstate(invalid="ignore"):  # NaNs that signal
            half = self.numbers[: self.codes.size // 2].astype(np.float64)
        wrong = np.flatnonzero(~np.isfinite(half))
        return half[: wrong[0] if wrong.size else None]

    def nearest(self, values: Array) -> Array:
        """float64 values rounded to the nearest number, of two to the one whose code is even.

        From half a unit beyond the largest on they are too large.
        """
        known = self.positive
        ladder = np.append(known, 2 * known[-1] - known[-2])
        middles = (ladder[:-1] + ladder[1:]) / 2
        with np.errstate(all="ignore"):
            size = np.abs(values.astype(np.float64))
            place = np.searchsorted(middles, size, "left")
            tie = middles[np.minimum(place, middles.size - 1)] == size
            place = place + (tie & (place % 2 == 1))
            wide = np.append(known, self.beyond)[np.minimum(place, known.size)]
            near = np.copysign(np.where(np.isnan(size), np.nan, wide), values)
        return np.asarray(near, np.float32)

    @cached_property
    def beyond(self) -> float:
        """What too large numbers become: infinite or, without infinities, what infinity becomes."""
        if self.info.infinities:
            return math.inf
        found = decoded(encoded(np.array([np.inf], np.float32), self.dtype), self.dtype)[0]
        return math.nan if np.isnan(found) else float(self.positive[-1])


@dataclass(frozen=True)
class BroughtBlocks:
    """Blocks that are to be judged: what their plugin says of them."""

    info: BlockInfo
    record: Record
    gaps: Mapping[str, str]

    def nearest(self, values: Array) -> Array:
        """float32 values as they have to read once they were quantised, along the last axis."""
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
            place = np.searchsorted(middles, steps, "left")
            tie = middles[np.minimum(place, middles.size - 1)] == steps
            place = place + (tie & (levels[np.minimum(place, levels.size - 1)] % 2 != 0))
            found: Array = (levels[place] * scale).astype(np.float32)
        return found.reshape(filled.shape)[..., :n]


def brought(name: str) -> Brought | BroughtBlocks:
    """The dtype of this name, as its plugin describes it, or the blocks.

    Raises: DTypeError where there is none, PluginError where it cannot be used.
    """
    record = registry.records().get(name)
    if record is None:
        known = ", ".join(registry.records()) or "none"
        raise DTypeError(f"no plugin brings a dtype {name!r}; those that are installed: {known}")
    blocks = registry.blocks(name)
    gaps = registry.call(record, "dovetail_conformance") or {}
    if blocks is not None:
        return BroughtBlocks(blocks, record, gaps)
    found = registry.named(name)
    assert found is not None
    return Brought(found, INFOS[found], record, gaps)


@dataclass
class NumbersKit(Kit):
    """What cases of dtypes and of blocks compare."""

    @property
    def name(self) -> str:
        """What is under test."""
        raise NotImplementedError

    def alike(self, found: Array, wanted: Array, what: str, given: Array | None = None) -> None:
        """Fails unless float32 arrays have the same bits; NaNs are alike."""
        self.comparisons += 1
        assert found.shape == wanted.shape, self.failure(f"{what}: {found.shape}", "")
        x, y = (np.ascontiguousarray(a, np.float32).reshape(-1) for a in (found, wanted))
        same = (x.view(np.uint32) == y.view(np.uint32)) | (np.isnan(x) & np.isnan(y))
        wrong = np.flatnonzero(~same)[:5]
        if wrong.size:
            of = "" if given is None else f" of {given.reshape(-1)[wrong].tolist()}"
            text = f"{what}: {(~same).sum()} of {x.size} differ: {x[wrong].tolist()} instead of"
            raise AssertionError(self.failure(f"{text} {y[wrong].tolist()}{of}", ""))

    def claim(self, true: object, what: str) -> None:
        """Fails with `what` unless it is true."""
        self.comparisons += 1
        assert true, self.failure(f"{self.name}: {what}", "")


@dataclass
class BlockKit(NumbersKit):
    """One case's view of the blocks, on one device."""

    blocks: BroughtBlocks = field(kw_only=True)

    @property
    def name(self) -> str:
        """What they are called."""
        return self.blocks.info.name


@dataclass
class DTypeKit(NumbersKit):
    """One case's view of the dtype, on one device."""

    brought: Brought = field(kw_only=True)

    @property
    def dtype(self) -> DType:
        """The dtype under test."""
        return self.brought.dtype

    @property
    def name(self) -> str:
        """What it is called."""
        return self.dtype.name

    def values(self, x: T.Tensor) -> Array:
        """A tensor of the dtype on the host, as the float32 numbers that its bits stand for."""
        self.claim(x.dtype is self.dtype, f"a result is of dtype {x.dtype.name}")
        return decoded(host(x), self.dtype)
