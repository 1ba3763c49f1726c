"""Products whose sizes are no multiples of a tile, in every form that a group stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
from cstyle_cases import check
from dovetail.dtypes import float16, float32
from dovetail.extend import Kernel, KernelBuilder, Value
from dovetail.ir.language import cast, const, fma, fold_loop, load, ne

Case = Callable[[Any], dt.Tensor]
DTYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128", "int8", "int64")


def values(seed: int, *shape: int) -> Any:
    """Return normal numbers, some of them tiny, so that products underflow, with zeros."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape).astype("f4")
    return np.where(rng.random(shape) < 0.1, x * np.float32(1e-30), np.rint(x * 8) / 8 * (x > -2))


def put(on: Any, dtype: str, seed: int, *shape: int) -> dt.Tensor:
    """Return a tensor of these numbers on a device; integers and complex numbers are made of it."""
    x = dt.asarray(values(seed, *shape).astype("f4"), device=on)
    if dtype.startswith("int"):
        return (x * 50).astype(getattr(dt, dtype))
    if dtype.startswith("complex"):
        return x.astype(getattr(dt, dtype)) * (1 - 2j)
    return x.astype(getattr(dt, dtype))


def product(*shapes: tuple[int, ...], dtype: str = "float32") -> Case:
    """Return a product of two operands of these shapes."""
    return lambda on: put(on, dtype, 1, *shapes[0]) @ put(on, dtype, 2, *shapes[1])


def bits(x: dt.Tensor) -> Any:
    """Return the elements as an array; those of bfloat16, which NumPy lacks, as integers."""
    return (x.view(dt.int16) if x.dtype is dt.bfloat16 else x).numpy()


def strided(on: Any) -> dt.Tensor:
    """Return a product of operands with gaps, one of them backwards."""
    x, y = put(on, "float32", 1, 80, 90), put(on, "float32", 2, 60, 80)
    return x[::2, 1::3] @ y[::2, ::-2]


def transposed(on: Any) -> dt.Tensor:
    """Return a product of two transposes."""
    return put(on, "float32", 1, 300, 40).T @ put(on, "float32", 2, 70, 300).T


CASES: dict[str, Case] = {
    **{f"{d}, a block": product((67, 37), (37, 70), dtype=d) for d in DTYPES},
    **{f"{d}, blocks": product((33, 530), (530, 66), dtype=d) for d in DTYPES},
    "one more than a tile": product((65, 257), (257, 65)),
    "a whole tile": product((64, 256), (256, 64)),
    "groups of blocks": product((33, 66_000), (66_000, 34)),
    "a batch": product((3, 40, 50), (3, 50, 70)),
    "a batch with one matrix": product((3, 40, 50), (50, 70)),
    "two axes of batches": product((2, 1, 40, 50), (3, 50, 33)),
    "three axes of batches": product((2, 1, 2, 40, 17), (2, 3, 1, 17, 33)),
    "strided": strided,
    "transposed": transposed,
}


def product_of_halves() -> Kernel:
    """Build a product of float16 that is summed in float32, for a device that converts them."""
    b = KernelBuilder("halves")
    x, y, out = (
        b.buffer(n, d, a)
        for n, d, a in (("x", float16, "r"), ("y", float16, "r"), ("out", float32, "w"))
    )
    m, n, length = (b.int(name) for name in "mnk")
    i, j = b.axis(m), b.axis(n)

    def step(k: Value, total: Value) -> tuple[Value]:
        """Add a product."""
        left, right = load(x, i * length + k), load(y, k * n + j)
        return (fma(cast(left, float32), cast(right, float32), total),)

    b.store(out, i * n + j, fold_loop(0, length, (const(0.0, float32),), step).results[0])
    return b.build()


def product_with_epilogue() -> Kernel:
    """Build two sums of products with factors for each step, and stores that read more.

    Its parameters have names that the text of a tile declares.
    """
    b = KernelBuilder("epilogue")
    x, y, factors = (b.buffer(name, float32, "r") for name in ("rows0", "columns0", "x0"))
    out, where_off = b.buffer("item", float32, "w"), b.buffer("depth", float32, "w")
    m, n, length = b.int("tile_row"), b.int("first"), b.int("r")
    i, j = b.axis(m), b.axis(n)

    def step(k: Value, total: Value, negative: Value) -> tuple[Value, Value]:
        """Add a product to one sum, and subtract it from the other, with the step's factor."""
        left = load(x, i * length + k) * load(factors, k)
        right = load(y, k * n + j)
        return fma(left, right, total), fma(-left, right, negative) + total

    zero = const(0.0, float32)
    total, negative = fold_loop(0, length, (zero, load(factors, i)), step).results
    b.store(out, i * n + j, fma(total, load(x, i * length), load(y, j)))
    b.store(where_off, i * n + j, negative, when=ne(i, j))
    return b.build()


def check_product_with_epilogue(host: Any) -> None:
    """Compare the kernel with the reference, in sizes that use several tiles, one not whole."""
    m, n, k = 70, 67, 75
    arrays = [values(s, size) for s, size in enumerate((m * k, k * n, k))]
    arrays += [np.full(m * n, 7, "f4") for _ in range(2)]
    check(host, product_with_epilogue(), [a.astype("f4") for a in arrays], [m, n, k])
