"""Broken variants of the blocks of examples/int4: the dtype kit must catch each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
from dovetail.extend import BlockInfo, Layout, hookimpl
from dovetail_int4 import BLOCK, LEVELS, Int4, in_blocks, int4


class Plugin:
    """A plugin that offers such blocks."""

    def __init__(
        self,
        name: str,
        pack: Callable[[dt.Tensor], tuple[dt.Tensor, dt.Tensor]],
        shown_by: str,
        sign: str,
    ) -> None:
        self.shown_by, self.sign = shown_by, sign
        named = Layout(name)

        class Ours(Int4):
            __slots__ = ()

            @property
            def layout(self) -> Layout:
                return named

        def quantise(x: dt.Tensor) -> Any:
            if isinstance(x, Ours):
                return x
            made = object.__new__(Ours)
            codes, scales = pack(in_blocks(dt.astype(x, dt.float32)))
            whole = int4(codes[..., ::2] | (codes[..., 1::2] << 4), scales, x.shape[-1])
            for part in Int4.__slots__:
                setattr(made, part, getattr(whole, part))
            return made

        self.info = BlockInfo(name, named, BLOCK, LEVELS, quantise)

    @hookimpl
    def dovetail_dtype_info(self) -> BlockInfo:
        return self.info


def packed(
    blocks: dt.Tensor,
    round: Any = dt.round,
    least: float = -7.0,
    size: Any = None,
    bad: float = dt.nan,
) -> tuple[dt.Tensor, dt.Tensor]:
    size = dt.max(dt.abs(blocks), axis=-1, keepdims=True) if size is None else size
    scale = dt.where(size < dt.inf, size / 7.0, bad)
    steps = dt.where(scale > 0, blocks / scale, 0.0)
    return dt.astype(dt.clip(round(steps), least, 7.0) + 8.0, dt.uint8), scale[..., 0]


def over_rows(blocks: dt.Tensor) -> tuple[dt.Tensor, dt.Tensor]:
    """Use one scale for all blocks of a row."""
    size = dt.max(dt.abs(blocks), axis=(-2, -1), keepdims=True)
    return packed(blocks, size=dt.broadcast_to(size, (*blocks.shape[:-1], 1)))


def half_up(x: dt.Tensor) -> dt.Tensor:
    return dt.floor(x + 0.5)


truncating4 = Plugin("truncating4", lambda b: packed(b, dt.trunc), "nearest", "differ")
uneven4 = Plugin("uneven4", lambda b: packed(b, half_up), "ties", "differ")
positive4 = Plugin("positive4", lambda b: packed(b, least=0.0), "nearest", "differ")
wide4 = Plugin("wide4", over_rows, "apart", "differ")
hides_nan4 = Plugin("hides_nan4", lambda b: packed(b, bad=0.0), "special_values", "differ")
BROKEN = ("truncating4", "uneven4", "positive4", "wide4", "hides_nan4")
