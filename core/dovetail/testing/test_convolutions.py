"""Level 7: the rows of convolutions, on every dtype they take, against the reference."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest

from ..device_class import Device, device
from ..dtypes import DType, float32
from ..functions.products.convolutions import convolved, weight_gradient
from ..functions.products.convolutions import transposed as back_to_x
from ..layout import Shape
from ..ops.convolution import Geometry
from ..tensor import tensor as T
from .cases import Arrangement, dense, flipped, transposed
from .kit import REFERENCE, AgreementCase, Kit, host
from .test_scalar_ops import param_id
from .test_table import NUMBERS
from .values import Array, finite_values

# Of x and w: shapes, and the attributes. Rows of the result; rows that are walked together; phases,
# of which some have no taps, and as many groups as channels; three axes; sums of several blocks of
# products, over channels and over positions, in groups of many filters; a group for each of many
# channels, also of blocks.
CONVOLUTIONS: tuple[tuple[Shape, Shape, Geometry], ...] = (
    ((2, 3, 9, 40), (9, 3, 3, 3), Geometry((1, 1), (1, 1), (1, 1), 1)),
    ((3, 4, 6, 5), (8, 2, 2, 3), Geometry((2, 1), (0, 1), (1, 2), 2)),
    ((2, 5, 37), (5, 1, 4), Geometry((3,), (2,), (2,), 5)),
    ((2, 8, 3, 4, 5), (10, 8, 2, 1, 3), Geometry((1, 2, 3), (1, 0, 1), (1, 1, 1), 1)),
    ((2, 76, 9, 37), (70, 38, 3, 3), Geometry((2, 1), (1, 1), (1, 1), 2)),
    ((3, 34, 11, 9), (34, 1, 3, 3), Geometry((1, 1), (1, 1), (1, 1), 34)),
)


@pytest.mark.parametrize("d", [d for d in NUMBERS if d.kind != "c"], ids=param_id)
def test_convolutions(kit: Kit, d: DType) -> None:
    """Check convolutions and their gradients by x and w, also of operands in other layouts."""
    cases: list[AgreementCase] = []
    arrangements = cycle((dense, transposed, flipped)) if d.kind == "f" else cycle((dense,))
    for (x, w, g), p in zip(CONVOLUTIONS, arrangements, strict=False):
        cases += _make_cases(x, w, g, d, p)
    kit.check_agreements(cases)


@pytest.mark.parametrize("case", [c for c in CONVOLUTIONS if c[2].groups == 1], ids=str)
def test_convolution_and_gradient_by_w_are_products(
    kit: Kit, case: tuple[Shape, Shape, Geometry]
) -> None:
    """Check the bits of a convolution and of its gradient by w against products of matrices.

    Patches are a matrix of (channels and taps, batch and positions), each in row-major order. So no
    order depends on how rows are padded.
    """
    left, right, g = case
    counts = _count_positions(left, right, g)
    order = (1, 0, *range(2, len(left)))
    x, w = (finite_values(float32, s, i) for i, s in enumerate((left, right)))
    y = finite_values(float32, (left[0], right[0], *counts), 2)
    patches = _patches(x, right[2:], counts, g)
    result = _multiply(w.reshape(right[0], -1), patches).reshape(right[0], left[0], *counts)
    gradient = _multiply(y.transpose(order).reshape(right[0], -1), patches.T).reshape(right)
    for _ in kit.thread_counts():
        a, b, c = (dense(v, float32, kit.device) for v in (x, w, y))
        pairs = (
            ("convolution", convolved(a, b, None, counts, g), result.transpose(order)),
            ("gradient by w", weight_gradient(a, c, right[2:], g), gradient),
        )
        for what, actual, expected in pairs:
            kit.check_same_bits(host(actual), expected, float32, what, lambda: f"{case}")


def _multiply(a: Array, b: Array) -> Array:
    """Return the product of two matrices, in the order of the reference."""
    x, y = (dense(v, float32, device(REFERENCE)) for v in (a, b))
    return host(x @ y)


def _patches(x: Array, taps: Shape, counts: Shape, g: Geometry) -> Array:
    """Return the matrix of patches of `x`."""
    reach = zip(x.shape[2:], taps, counts, g.stride, g.low, g.dilation, strict=True)
    high = [max(0, (m - 1) * s + (k - 1) * e + 1 - n - q) for n, k, m, s, q, e in reach]
    padded = np.pad(x, ((0, 0), (0, 0), *zip(g.low, high, strict=True)))
    columns = []
    for tap in np.ndindex(taps):
        along = zip(tap, counts, g.stride, g.dilation, strict=True)
        slices = [slice(i * e, i * e + (m - 1) * s + 1, s) for i, m, s, e in along]
        columns.append(padded[:, :, *slices].swapaxes(0, 1).reshape(x.shape[1], -1))
    return np.stack(columns, 1).reshape(x.shape[1] * len(columns), -1)


def _count_positions(left: Shape, right: Shape, g: Geometry) -> Shape:
    """Return the positions of a convolution along each axis, with equal zeros on both sides."""
    steps = zip(left[2:], right[2:], g.stride, g.low, g.dilation, strict=True)
    return tuple([(n + 2 * q - e * (k - 1) - 1) // s + 1 for n, k, s, q, e in steps])


def _make_cases(
    left: Shape, right: Shape, g: Geometry, d: DType, p: Arrangement
) -> list[AgreementCase]:
    """Return a convolution and its two gradients as cases, with operands arranged by `p`."""
    sizes, taps = left[2:], right[2:]
    counts = _count_positions(left, right, g)
    shapes = (left, right, (left[0], right[0], *counts), right[:1])
    x, w, y, b = (finite_values(d, s, i) for i, s in enumerate(shapes))

    def forward(on: Device) -> T.Tensor:
        """Return the convolution of x and w with bias."""
        return convolved(p(x, d, on), p(w, d, on), dense(b, d, on), counts, g)

    def to_x(on: Device) -> T.Tensor:
        """Return the gradient of the convolution by x."""
        return back_to_x(p(y, d, on), p(w, d, on), sizes, g)

    def to_w(on: Device) -> T.Tensor:
        """Return the gradient of the convolution by w."""
        return weight_gradient(p(x, d, on), p(y, d, on), taps, g)

    what = f"{left} by {right} of {d.name}, {p.__name__}"
    return [(forward, what), (to_x, f"to x, {what}"), (to_w, f"to w, {what}")]
