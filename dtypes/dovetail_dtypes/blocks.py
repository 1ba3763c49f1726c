"""Blocks of 32 small integers that share a float32 scale, as layouts: int4_32 and int8_32.

A number of a block has no value without its scale, and one of four bits has no address. So the
formats are layouts: a tensor consists of two strided ones, the codes and the scales, and its
elements read as float32. A product with few rows decodes in its own kernel. Other functions read
`to_dense()`, which is pending and shares their kernels where it can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

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
    make_node,
    reduce,
    set_gradient,
    sum_of_products,
    uint8,
)

Shape: TypeAlias = tuple[int, ...]

BLOCK = 32  # numbers along the last axis that share a scale
LANES = 32  # rows whose codes are interleaved, so that a vector register reads a code of each row
FUSED_ROWS_MAX = 12  # more rows: decoding once and a dense product is faster (AVX2, 2026-12)


class BlockFormat:
    """A format of blocks: its layout, the bits of a code, and the op of its products.

    A code is a level plus `bias`. The levels are -largest to largest, so that negation is exact.
    """

    def __init__(self, name: str, bits: int) -> None:
        self.name, self.bits, self.layout = name, bits, Layout(name)
        self.bias = 1 << (bits - 1)
        self.largest = self.bias - 1
        self.code_rows = BLOCK * bits // 8  # bytes of a block
        self.product = self._product_op()

    def info(self) -> BlockInfo:
        """Return the description that dovetail asks a plugin for."""
        levels = tuple(float(n) for n in range(-self.largest, self.largest + 1))
        return BlockInfo(self.name, self.layout, BLOCK, levels, self.quantise)

    def quantise(self, x: dt.Tensor) -> BlockTensor:
        """Return `x` in blocks of 32 along its last axis.

        Each number becomes the nearest level times the scale of its block, which takes the number
        of largest magnitude to the last level. A block with NaN or infinity is all NaN.
        Shapes: at least one axis. Dtypes: floats. Gradient: none, weights are quantised when they
        are trained. Raises: ShapeError, DTypeError.
        """
        if isinstance(x, BlockTensor) and x.format is self:
            return x
        if isinstance(x, BlockTensor):
            x = to_dense(x)
        if x.ndim == 0 or not x.dtype.is_float:
            error = dt.ShapeError if x.ndim == 0 else dt.DTypeError
            raise error(
                f"{self.name}: x must be floats with at least one axis, got {x.dtype.name} of "
                f"shape {x.shape}"
            )
        return self.encode(x, _interleave(dt.astype(x.detach(), dt.float32)))

    def encode(self, x: dt.Tensor, blocks: dt.Tensor) -> BlockTensor:
        """Return the tensor of `x`'s shape whose interleaved numbers are `blocks`."""
        size = dt.max(dt.abs(blocks), axis=2)
        scales = dt.where(size < dt.inf, size / self.largest, dt.nan)
        divisor = scales[:, :, None]
        steps = dt.where(divisor > 0, blocks / divisor, 0.0)
        levels = dt.clip(dt.round(steps), -self.largest, self.largest)
        return self.pack(dt.astype(levels + self.bias, dt.uint8), scales, x.shape)

    def pack(self, codes: dt.Tensor, scales: dt.Tensor, shape: Shape) -> BlockTensor:
        """Return the tensor of uint8 codes of (groups, blocks, 32, 32)."""
        if self.bits == 4:
            codes = codes[:, :, : BLOCK // 2] | (codes[:, :, BLOCK // 2 :] << 4)
        return from_parts(self.name, codes, scales, shape)

    def levels(self, codes: dt.Tensor) -> dt.Tensor:
        """Return the levels of codes as float32 of (groups, blocks, 32, 32), pending."""
        if self.bits == 4:
            shifts = dt.asarray([0, 4], dtype=dt.uint8, device=codes.device)[:, None, None]
            codes = (codes[:, :, None] >> shifts) & 15
            groups, blocks, *_, lanes = codes.shape
            codes = dt.reshape(codes, (groups, blocks, BLOCK, lanes))
        return dt.astype(codes, dt.float32) - self.bias

    def rows(self, codes: dt.Tensor, scales: dt.Tensor) -> dt.Tensor:
        """Return the numbers as rows of float32, with the padding of rows and columns, pending."""
        return _rows_of_blocks(self.levels(codes) * scales[:, :, None])

    def _product_op(self) -> Op:
        """Return the op of x (m, k) times codes and scales: float32 of (m, groups, lanes).

        In its gradient rules the operands are called x, y and z.
        """

        def build(site: KernelSite) -> None:
            row, group, lane = (site.axis(-1, d) for d in range(3))

            def factors(k: Value) -> tuple[Value, Value]:
                """Return the elements that are multiplied at `k`."""
                block = k >> 5
                if self.bits == 4:  # bit 4 of k selects the half of the byte
                    byte = site.read(1, group, block, k & 15, lane)
                    code = (byte >> cast((k >> 2) & 4, uint8)) & 15
                else:
                    code = site.read(1, group, block, k & 31, lane)
                level = cast(code, float32) - float(self.bias)
                return site.read(0, row, k), level * site.read(2, group, block, lane)

            total = sum_of_products(site.size(0, 1), site.extent(0, 1), float32, factors)
            site.store(total, row, group, lane)

        def infer(op: str, operands: Sequence[object], attrs: object) -> Any:
            return (dt.float32, dt.uint8, dt.float32), dt.float32

        def gradient_of_x(g: dt.Tensor, x: dt.Tensor, y: dt.Tensor, z: dt.Tensor) -> dt.Tensor:
            columns = dt.reshape(g, (g.shape[0], g.shape[1] * LANES))
            return dt.matmul(columns, self.rows(y, z)[:, : x.shape[1]])

        def gradient_of_scales(g: dt.Tensor, x: dt.Tensor, y: dt.Tensor) -> dt.Tensor:
            columns = dt.reshape(g, (g.shape[0], g.shape[1] * LANES))
            of_weights = _interleave(dt.matmul(dt.matrix_transpose(columns), x))
            return dt.sum(of_weights * self.levels(y), axis=2)

        op = Op(f"{self.name}_product", "kernel", infer, build=build, arity=3)
        set_gradient(op, gradient_of_x, None, gradient_of_scales)
        return op


def _interleave(x: dt.Tensor) -> dt.Tensor:
    """Return (..., n) as blocks of (groups, blocks, 32, 32 rows), padded with zeros."""
    columns = x.shape[-1]
    count = math.prod(x.shape[:-1])
    rows = dt.reshape(x, (count, columns))
    missing = (-count % LANES, -columns % BLOCK)
    if any(missing):
        rows = dt.pad(rows, ((0, missing[0]), (0, missing[1])))
    groups, blocks = rows.shape[0] // LANES, rows.shape[1] // BLOCK
    split = dt.reshape(rows, (groups, LANES, blocks, BLOCK))
    return dt.permute_dims(split, (0, 2, 3, 1))


def _rows_of_blocks(blocks: dt.Tensor) -> dt.Tensor:
    """Return blocks of (groups, blocks, 32, 32 rows) as rows, padding included."""
    groups, count = blocks.shape[:2]
    return dt.reshape(dt.permute_dims(blocks, (0, 3, 1, 2)), (groups * LANES, count * BLOCK))


class BlockTensor(LayoutTensor):
    """A float32 tensor in blocks of 32 along its last axis, or along the one before it.

    - `format`: the format of the blocks.
    - `codes`: uint8 of (groups, blocks, bytes, 32). A group has 32 rows of the matrix (rows, last
      axis), whose codes are interleaved. With 4 bits, byte i has elements i and i + 16.
    - `scales`: float32 of (groups, blocks, 32).
    - `straight`: the shape with the blocks along the last axis.
    - `turned`: True if the last two axes are swapped.
    """

    __slots__ = ("codes", "format", "scales", "straight", "turned")
    codes: dt.Tensor
    format: BlockFormat
    scales: dt.Tensor
    straight: Shape
    turned: bool

    @property
    def device(self) -> dt.Device:
        return self.codes.device

    @property
    def dtype(self) -> dt.DType:
        return self.scales.dtype

    @property
    def layout(self) -> Layout:
        return self.format.layout

    @property
    def shape(self) -> Shape:
        s = self.straight
        return (*s[:-2], *s[:-3:-1]) if self.turned else s

    @property
    def parts(self) -> tuple[dt.Tensor, dt.Tensor]:
        return (self.codes, self.scales)

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]  # a property there, too
        return bool(self.scales.requires_grad)

    def __reduce_ex__(self, protocol: object) -> Any:
        return from_parts, (self.format.name, *self.parts, self.straight, self.turned)


FORMATS = {f.name: f for f in (BlockFormat("int4_32", 4), BlockFormat("int8_32", 8))}


def from_parts(
    name: str, codes: dt.Tensor, scales: dt.Tensor, shape: Shape, turned: bool = False
) -> BlockTensor:
    """Return the tensor of these codes and scales.

    - `name`: the format, "int4_32" or "int8_32".
    - `codes`, `scales`, `shape`, `turned`: see `BlockTensor`; `shape` is its `straight`.

    Raises: ShapeError if the parts do not have the sizes that the shape needs.
    """
    format = FORMATS[name]
    groups = -(-math.prod(shape[:-1]) // LANES)
    sizes = (groups, -(-shape[-1] // BLOCK), LANES)
    if scales.shape != sizes or codes.shape != (*sizes[:2], format.code_rows, LANES):
        raise dt.ShapeError(
            f"{name}: shape {shape} needs scales of {sizes} and codes of "
            f"{(*sizes[:2], format.code_rows, LANES)}, got {scales.shape} and {codes.shape}"
        )
    x = object.__new__(BlockTensor)
    x.format, x.codes, x.scales, x.straight, x.turned = format, codes, scales, shape, turned
    return x


def to_dense(x: BlockTensor) -> dt.Tensor:
    """Return the elements as float32, pending."""
    s = x.straight
    dense = dt.reshape(x.format.rows(*x.parts)[: math.prod(s[:-1]), : s[-1]], s)
    return dt.matrix_transpose(dense) if x.turned else dense


# --- products


def multiply_rows(x: dt.Tensor, w: BlockTensor) -> dt.Tensor:
    """Return the product of x (..., k) and the rows of `w.straight`, (n, k): (..., n).

    Both ways add in the order of products, so the bits do not depend on the number of rows.
    """
    x = dt.astype(x, dt.float32, copy=False)
    n, k = w.straight
    count = math.prod(x.shape[:-1])
    if count > FUSED_ROWS_MAX:
        return dt.matmul(x, dt.matrix_transpose(w.format.rows(*w.parts)[:n, :k]))
    rows = dt.reshape(x, (count, k))
    shape = (count, *w.scales.shape[::2])
    result = make_node(w.format.product, (rows, *w.parts), shape, dt.float32)
    flat = dt.reshape(result, (count, shape[1] * LANES))[:, :n]
    return dt.reshape(flat, (*x.shape[:-1], n))


def matmul(x1: Any, x2: Any) -> dt.Tensor:
    """Return a product; it decodes in its kernel if the blocks lie along the summed axis."""
    inner = (x1.shape[-1], x2.shape[-2 if x2.ndim > 1 else 0])
    if inner[0] != inner[1]:
        raise dt.ShapeError(f"matmul: shapes {x1.shape} and {x2.shape} do not fit")
    if isinstance(x2, BlockTensor) and not isinstance(x1, BlockTensor):
        if x2.ndim == 2 and x2.turned:
            return multiply_rows(x1, x2)
    elif not isinstance(x2, BlockTensor) and x1.ndim == 2 and not x1.turned:
        if x2.ndim == 1:
            return multiply_rows(x2, x1)
        return dt.matrix_transpose(multiply_rows(dt.matrix_transpose(x2), x1))
    return dt.matmul(_dense(x1), _dense(x2))


# --- a rule for each verb; most read the dense elements


def _dense(x: Any) -> Any:
    """Return the elements of a tensor in blocks, and other operands unchanged."""
    return to_dense(x) if isinstance(x, BlockTensor) else x


def _apply(op: Op, operands: Sequence[object], attrs: object) -> dt.Tensor:
    """Apply an elementwise op."""
    return apply(op, [_dense(a) for a in operands], attrs)


def _view(x: BlockTensor, move: tuple[Any, ...]) -> dt.Tensor:
    """Return a view. A transpose of the last two axes stays in blocks; others are dense."""
    kind, last = move[0], (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    if kind == "permute" and x.ndim > 1 and tuple(move[1]) == last:
        return from_parts(x.format.name, *x.parts, x.straight, not x.turned)
    dense = to_dense(x)
    if kind == "permute":
        return dt.permute_dims(dense, move[1])
    if kind == "slice":
        starts, lengths, steps = move[1:]
        ends = [s + n * k for s, n, k in zip(starts, lengths, steps, strict=True)]
        parts = zip(starts, ends, steps, strict=True)
        return dense[tuple(slice(s, e if e >= 0 else None, k) for s, e, k in parts)]
    return dt.broadcast_to(dense, move[1]) if kind == "expand" else dt.reshape(dense, move[1])


def _reduce(op: Op, x: BlockTensor, axes: Shape, keepdims: bool, attrs: object) -> dt.Tensor:
    """Reduce over axes."""
    return reduce(op, to_dense(x), axes, keepdims, attrs)


def _to_device(x: BlockTensor, device: dt.Device) -> BlockTensor:
    """Copy to another device."""
    codes, scales = (p.to(device) for p in x.parts)
    return from_parts(x.format.name, codes, scales, x.straight, x.turned)


RULES: dict[str, Callable[..., Any]] = {
    "apply": _apply,
    "reduce": _reduce,
    "view": _view,
    "concat": lambda tensors, axis: dt.concat([_dense(t) for t in tensors], axis=axis),
    "matmul": matmul,
    "softmax": lambda x, axis: dt.softmax(to_dense(x), axis=axis),
    "log_softmax": lambda x, axis: dt.log_softmax(to_dense(x), axis=axis),
    "diagonal": lambda x, offset: dt.diagonal(to_dense(x), offset=offset),
    "to_device": _to_device,
    "to_dense": to_dense,
}
BlockTensor.rules = RULES
