"""int4_32: numbers of four bits, 32 of which share a scale, for dovetail.

An element has no bytes of its own, and means nothing without the scale of its block, so it cannot
be what a `DType` is: something with an address, that strides step over. It is a layout: a tensor
that is made of two strided ones, the packed codes and the scales, whose elements read as float32.
A matrix product dequantises in its own kernel, and nothing of full size is stored; other functions
read what `to_dense` gives, which shares kernels with them where it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dovetail as dt
from dovetail.extend import (
    BlockInfo,
    KernelSite,
    Layout,
    LayoutTensor,
    Op,
    Value,
    apply,
    cast,
    float32,
    hookimpl,
    make_node,
    reduce,
    reduce_loop,
    set_gradient,
)

Shape = tuple[int, ...]
int4_32 = Layout("int4_32")
BLOCK, HALF = 32, 16
LEVELS = tuple(float(n) for n in range(-7, 8))  # -8 is left out: what is negated stays a level


class Int4(LayoutTensor):
    """A float32 tensor in blocks of 32 along its last axis (`turned`: along the one before it).

    `codes`: uint8 of (..., blocks, 16); the low half of byte k is element 2k of its block, plus
    8, the high half element 2k + 1. `scales`: float32 of (..., blocks). `length` of that axis.
    """

    __slots__ = ("codes", "length", "scales", "turned")
    codes: dt.Tensor
    scales: dt.Tensor
    length: int
    turned: bool

    @property
    def device(self) -> dt.Device:
        return self.codes.device

    @property
    def dtype(self) -> dt.DType:
        return self.scales.dtype

    @property
    def layout(self) -> Layout:
        return int4_32

    @property
    def shape(self) -> Shape:
        straight = (*self.scales.shape[:-1], self.length)
        return (*straight[:-2], *straight[:-3:-1]) if self.turned else straight

    @property
    def parts(self) -> tuple[dt.Tensor, ...]:
        return (self.codes, self.scales)

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]  # a property there, too
        return bool(self.scales.requires_grad)

    def __reduce_ex__(self, protocol: object) -> Any:
        return int4, (self.codes, self.scales, self.length, self.turned)


def int4(codes: dt.Tensor, scales: dt.Tensor, length: int, turned: bool = False) -> Int4:
    """The tensor of these codes and scales. Raises: ShapeError where they do not belong together.

    Shapes: `codes` (..., blocks, 16), `scales` (..., blocks); `length` in the last of the blocks.
    """
    blocks = scales.shape[-1] if scales.ndim else -1
    if codes.shape != (*scales.shape, HALF) or not 0 <= blocks * BLOCK - length < BLOCK:
        raise dt.ShapeError(
            f"int4: codes {codes.shape} and scales {scales.shape} of {length} elements in a row "
            f"are no blocks of {BLOCK}"
        )
    made = object.__new__(Int4)
    made.codes, made.scales, made.length, made.turned = codes, scales, length, turned
    return made


def in_blocks(x: dt.Tensor) -> dt.Tensor:
    """(..., n) as (..., blocks, 32), filled up with zeros."""
    missing = -x.shape[-1] % BLOCK
    if missing:
        zeros = dt.zeros((*x.shape[:-1], missing), dtype=x.dtype, device=x.device)
        x = dt.concat([x, zeros], axis=-1)
    return dt.reshape(x, (*x.shape[:-1], x.shape[-1] // BLOCK, BLOCK))


def quantise(x: dt.Tensor) -> Int4:
    """`x` in blocks of 32 along its last axis: the nearest of -7 to 7 times the block's scale.

    The scale is a seventh of the largest in size. A block that holds NaN or infinity is all NaN.
    Shapes: at least one axis. Dtypes: floats. Gradient: none; weights are quantised once trained.
    Raises: ShapeError, DTypeError.
    """
    if isinstance(x, Int4):
        return x
    if x.ndim == 0 or not x.dtype.is_float:
        error = dt.ShapeError if x.ndim == 0 else dt.DTypeError
        raise error(f"int4_32: needs floats along an axis, not {x.dtype.name} of shape {x.shape}")
    blocks = in_blocks(dt.astype(x.detach(), dt.float32))
    size = dt.max(dt.abs(blocks), axis=-1, keepdims=True)
    scale = dt.where(size < dt.inf, size / 7.0, dt.nan)
    steps = dt.where(scale > 0, blocks / scale, 0.0)
    codes = dt.astype(dt.clip(dt.round(steps), -7.0, 7.0) + 8.0, dt.uint8)
    return int4(codes[..., ::2] | (codes[..., 1::2] << 4), scale[..., 0], x.shape[-1])


def dense_rows(codes: dt.Tensor, scales: dt.Tensor) -> dt.Tensor:
    """What all codes stand for, the filling included: (..., blocks * 32), pending."""
    shifts = dt.arange(0, 8, 4, dtype=dt.uint8, device=codes.device)
    each = (dt.expand_dims(codes, axis=-1) >> shifts) & 15
    values = (dt.astype(each, dt.float32) - 8.0) * dt.reshape(scales, (*scales.shape, 1, 1))
    return dt.reshape(values, (*scales.shape[:-1], scales.shape[-1] * BLOCK))


def to_dense(x: Int4) -> dt.Tensor:
    """The elements, as float32."""
    found = dense_rows(x.codes, x.scales)[..., : x.length]
    return dt.matrix_transpose(found) if x.turned else found


# --- the product of rows: one kernel, in which a byte is read once and becomes two numbers


def product(site: KernelSite) -> None:
    """product(x, codes, scales): x (m, k), codes (n, k / 2), scales (n, k / 32)."""
    row, column = site.axis(-1, 0), site.axis(-1, 1)

    def term(k: Value) -> Value:
        both, scale = site.read(1, column, k), site.read(2, column, k >> 4)
        low, high = (cast(c, float32) - 8.0 for c in (both & 15, both >> 4))
        first, second = site.read(0, row, k * 2), site.read(0, row, k * 2 + 1)
        return first * (low * scale) + second * (high * scale)

    site.store(reduce_loop("add", 0, site.size(1, 1), term)[0], row, column)


def of_rows(g: dt.Tensor, y: dt.Tensor, z: dt.Tensor) -> dt.Tensor:
    codes = dt.reshape(y, (*z.shape, HALF))
    return dt.matmul(g, dense_rows(codes, z))


def of_scales(g: dt.Tensor, x: dt.Tensor, y: dt.Tensor, z: dt.Tensor) -> dt.Tensor:
    codes = dt.reshape(y, (*z.shape, HALF))
    levels = dense_rows(codes, dt.ones_like(z))
    whole = dt.matmul(dt.matrix_transpose(g), x) * levels
    return dt.sum(dt.reshape(whole, (*z.shape, BLOCK)), axis=-1)


def in_float32(op: str, operands: Sequence[object], attrs: object) -> Any:
    return (dt.float32, dt.uint8, dt.float32), dt.float32


PRODUCT = Op("int4_product", "kernel", in_float32, build=product, arity=3)
set_gradient(PRODUCT, of_rows, None, of_scales)


def rows_times(x: dt.Tensor, w: Int4) -> dt.Tensor:
    """x (..., k) and w (n, k), in blocks along k: (..., n)."""
    blocks = in_blocks(dt.astype(x, dt.float32, copy=False))
    n, width = w.scales.shape[0], blocks.shape[-2] * BLOCK
    rows = dt.reshape(blocks, (-1 if width else 0, width))
    codes = dt.reshape(w.codes, (n, width // 2))
    found = make_node(PRODUCT, (rows, codes, w.scales), (rows.shape[0], n), dt.float32)
    return dt.reshape(found, (*x.shape[:-1], n))


# --- a rule for each verb: all but a few read what is dequantised


def straight(x: Any) -> Any:
    return to_dense(x) if isinstance(x, Int4) else x


def elementwise(op: Op, operands: Sequence[object], attrs: object) -> dt.Tensor:
    return apply(op, [straight(a) for a in operands], attrs)


def view(x: Int4, move: tuple[Any, ...]) -> dt.Tensor:
    last = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    if move[0] == "permute" and x.ndim > 1 and tuple(move[1]) == last:
        return int4(x.codes, x.scales, x.length, not x.turned)
    dense, kind = to_dense(x), move[0]
    if kind == "permute":
        return dt.permute_dims(dense, move[1])
    if kind == "slice":
        starts, lengths, steps = move[1:]
        ends = [s + n * k for s, n, k in zip(starts, lengths, steps, strict=True)]
        parts = zip(starts, ends, steps, strict=True)
        return dense[tuple(slice(s, e if e >= 0 else None, k) for s, e, k in parts)]
    return dt.broadcast_to(dense, move[1]) if kind == "expand" else dt.reshape(dense, move[1])


def matmul(x1: Any, x2: Any) -> dt.Tensor:
    """Where the blocks lie along the axis that is summed over, in the kernel of the product."""
    inner = (x1.shape[-1], x2.shape[-2 if x2.ndim > 1 else 0])
    if inner[0] != inner[1]:
        raise dt.ShapeError(f"matmul: shapes {x1.shape} and {x2.shape} do not fit")
    if isinstance(x2, Int4) and not isinstance(x1, Int4) and x2.ndim == 2 and x2.turned:
        return rows_times(x1, x2)
    if isinstance(x1, Int4) and not isinstance(x2, Int4) and x1.ndim == 2 and not x1.turned:
        if x2.ndim == 1:
            return rows_times(x2, x1)
        return dt.matrix_transpose(rows_times(dt.matrix_transpose(x2), x1))
    return dt.matmul(straight(x1), straight(x2))


def reduction(op: Op, x: Int4, axes: Shape, keepdims: bool, attrs: object) -> dt.Tensor:
    return reduce(op, to_dense(x), axes, keepdims, attrs)


def to_device(x: Int4, device: dt.Device) -> Int4:
    return int4(x.codes.to(device), x.scales.to(device), x.length, x.turned)


Int4.rules = {
    "apply": elementwise,
    "reduce": reduction,
    "view": view,
    "concat": lambda tensors, axis: dt.concat([straight(t) for t in tensors], axis=axis),
    "matmul": matmul,
    "softmax": lambda x, axis: dt.softmax(to_dense(x), axis=axis),
    "log_softmax": lambda x, axis: dt.log_softmax(to_dense(x), axis=axis),
    "diagonal": lambda x, offset: dt.diagonal(to_dense(x), offset=offset),
    "to_device": to_device,
    "to_dense": to_dense,
}


@hookimpl
def dovetail_dtype_info() -> BlockInfo:
    """Blocks of 32 numbers, and how a tensor is put into them."""
    return BlockInfo("int4_32", int4_32, BLOCK, LEVELS, quantise)
