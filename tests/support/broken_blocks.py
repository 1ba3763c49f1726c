"""Broken variants of the blocks of dovetail-dtypes: the dtype kit must catch each."""

from __future__ import annotations

from typing import Any

import dovetail as dt
from dovetail.extend import BlockInfo, hookimpl
from dovetail_dtypes.blocks import FORMATS, BlockFormat, BlockTensor


class Plugin(BlockFormat):
    """A plugin that offers blocks of four bits, encoded by other rules than the right ones."""

    def __init__(
        self,
        name: str,
        shown_by: str,
        round: Any = dt.round,
        least: float = -7.0,
        bad: float = dt.nan,
        axes: tuple[int, ...] = (2,),
    ) -> None:
        super().__init__(name, 4)
        FORMATS[name] = self
        self.shown_by, self.sign = shown_by, "differ"
        self.round, self.least, self.bad, self.axes = round, least, bad, axes

    def encode(self, x: dt.Tensor, blocks: dt.Tensor) -> BlockTensor:
        size = dt.max(dt.abs(blocks), axis=self.axes, keepdims=True)
        size = dt.broadcast_to(size, (*blocks.shape[:2], 1, blocks.shape[3]))
        scales = dt.where(size < dt.inf, size / 7.0, self.bad)
        steps = dt.where(scales > 0, blocks / scales, 0.0)
        codes = dt.astype(dt.clip(self.round(steps), self.least, 7.0) + 8.0, dt.uint8)
        return self.pack(codes, scales[:, :, 0], x.shape)

    @hookimpl
    def dovetail_dtype_info(self) -> BlockInfo:
        return self.info()


def half_up(x: dt.Tensor) -> dt.Tensor:
    return dt.floor(x + 0.5)


truncating4 = Plugin("truncating4", "nearest", round=dt.trunc)
uneven4 = Plugin("uneven4", "ties", round=half_up)
positive4 = Plugin("positive4", "nearest", least=0.0)
wide4 = Plugin("wide4", "apart", axes=(1, 2))  # one scale for all blocks of a row
hides_nan4 = Plugin("hides_nan4", "special_values", bad=0.0)
BROKEN = ("truncating4", "uneven4", "positive4", "wide4", "hides_nan4")
