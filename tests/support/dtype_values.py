"""Values of each dtype as NumPy arrays, and their conversion to tensors and back.

NumPy has no bfloat16, so the arrays hold bfloat16 values in float32.
"""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt
import numpy as np
from dovetail import dtypes

Host = np.ndarray[Any, Any]
INF, NAN = math.inf, math.nan
INTEGERS = list(dtypes.INTEGERS)
FLOATS = [dt.float16, dt.bfloat16, dt.float32, dt.float64]
REAL = [dt.bool, *INTEGERS, *FLOATS]
HALVES = (dt.float16, dt.bfloat16)


def host(d: dt.DType) -> Any:
    return np.dtype("f4") if d is dt.bfloat16 else np.dtype(d.__numpy_dtype__)


def rounded(a: Any, d: dt.DType) -> Host:
    """Round floats to the nearest of `d`, ties to even, with one rounding."""
    a = np.asarray(a)
    with np.errstate(all="ignore"):
        if d is not dt.bfloat16:
            return a.astype(host(d))
        m, e = np.frexp(a.astype("f8"))  # 8 bits of mantissa from 2**-126 on
        unit = np.ldexp(1.0, np.maximum(e, -125) - 8)
        near = np.where(np.isfinite(a) & (a != 0), np.rint(np.ldexp(m, e) / unit) * unit, a)
        return np.where(np.abs(near) > 3.3895313892515355e38, np.copysign(INF, near), near).astype(
            "f4"
        )


def values(d: dt.DType, few: bool = False) -> Host:
    """Return special values of a dtype, and random ones, each once."""
    if d is dt.bool:
        return np.array([False, True])
    rng = np.random.default_rng(len(d.name) + d.itemsize)
    if d.kind in "iu":
        found = {
            0,
            1,
            2,
            3,
            7,
            8,
            31,
            100,
            d.max,
            d.max - 1,
            d.max // 2 + 1,
            -1,
            -2,
            -7,
            d.min,
            d.min + 1,
        }
        if not few:
            found |= {int(n) for n in rng.integers(d.min, d.max, 8, dtype=host(d))}
        return np.array(sorted(n for n in found if d.min <= n <= d.max), host(d))
    limits = dt.finfo(d)
    top, tiny, step = float(limits.max), float(limits.smallest_normal), float(limits.eps)
    least = float(rounded(tiny * step, d))
    found = [0.0, 1.0, 1.5, 2.0, 0.5, 3.0, 1 - step / 2, 1 + step, tiny, least, top, 7.25, INF]
    if not few:
        found += [2.5, 1e-3, 100.0, 17.7, tiny - least, 3 * least, top / 2, 1e30, 1e-30, 1 / step,
                  2 / step + 2, 1e4, math.pi, 0.1]  # fmt: skip
        found += (2.0 ** rng.uniform(-20, 20, 6)).tolist()
        found += np.abs(rng.normal(size=4)).tolist()
    return rounded([*np.unique([*found, *(-x for x in found)]).tolist(), -0.0, NAN], d)


def tensor(a: Host, d: dt.DType) -> dt.Tensor:
    return dt.astype(dt.asarray(np.ascontiguousarray(a)), d, copy=False)


def back(x: dt.Tensor) -> Host:
    return (dt.astype(x, dt.float32) if x.dtype is dt.bfloat16 else x).numpy()


def spacing(x: Any, d: dt.DType) -> Any:
    """Return the distance between neighboring numbers of `d` at `x`, an array or a number."""
    digits = {dt.float16: 11, dt.bfloat16: 8, dt.float32: 24, dt.float64: 53}[d]
    lowest = {dt.float16: -24, dt.bfloat16: -133, dt.float32: -149, dt.float64: -1074}[d]
    return np.ldexp(1.0, np.maximum(np.frexp(x)[1] - digits, lowest))
