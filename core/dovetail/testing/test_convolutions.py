"""Level 7: the rows of convolutions, on every dtype they take, against the reference."""

from __future__ import annotations

from itertools import cycle

import pytest

from ..device_class import Device
from ..dtypes import DType
from ..functions.products.convolutions import convolved, weight_gradient
from ..functions.products.convolutions import transposed as back_to_x
from ..layout import Shape
from ..ops.convolution import Geometry
from ..tensor import tensor as T
from .cases import Arrangement, dense, flipped, transposed
from .kit import AgreementCase, Kit
from .test_scalar_ops import param_id
from .test_table import NUMBERS
from .values import finite_values

# Of x and w: shapes, and the attributes. Rows of the result; rows that are walked together; phases,
# of which some have no taps, and as many groups as channels; three axes.
CONVOLUTIONS: tuple[tuple[Shape, Shape, Geometry], ...] = (
    ((2, 3, 9, 40), (9, 3, 3, 3), Geometry((1, 1), (1, 1), (1, 1), 1)),
    ((3, 4, 6, 5), (8, 2, 2, 3), Geometry((2, 1), (0, 1), (1, 2), 2)),
    ((2, 5, 37), (5, 1, 4), Geometry((3,), (2,), (2,), 5)),
    ((2, 8, 3, 4, 5), (10, 8, 2, 1, 3), Geometry((1, 2, 3), (1, 0, 1), (1, 1, 1), 1)),
)


@pytest.mark.parametrize("d", [d for d in NUMBERS if d.kind != "c"], ids=param_id)
def test_convolutions(kit: Kit, d: DType) -> None:
    """Check convolutions and their gradients by x and w, also of operands in other layouts."""
    cases: list[AgreementCase] = []
    arrangements = cycle((dense, transposed, flipped)) if d.kind == "f" else cycle((dense,))
    for (x, w, g), p in zip(CONVOLUTIONS, arrangements, strict=False):
        cases += _make_cases(x, w, g, d, p)
    kit.check_agreements(cases)


def _make_cases(
    left: Shape, right: Shape, g: Geometry, d: DType, p: Arrangement
) -> list[AgreementCase]:
    """Return a convolution and its two gradients as cases, with operands arranged by `p`."""
    sizes, taps = left[2:], right[2:]
    steps = zip(sizes, taps, g.stride, g.low, g.dilation, strict=True)
    counts = tuple([(n + 2 * q - e * (k - 1) - 1) // s + 1 for n, k, s, q, e in steps])
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
