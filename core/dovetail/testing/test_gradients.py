"""Level 9: gradients of rows of the op table, and of graphs of several: the bits of the reference,
whose backward passes run op by op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ..autograd import vjp
from ..autograd.tape import rules_of
from ..device_class import Device, device
from ..dtypes import DType, bfloat16, float16, float32, float64
from ..functions.elementwise.op_functions import exp, tanh, where
from ..functions.indexing.index_reads import getitem
from ..functions.products.convolutions import convolved
from ..functions.products.convolutions import transposed as back_to_x
from ..functions.products.matrix_products import matmul, vendor_products
from ..functions.reductions import cumulative, statistics
from ..functions.shape import copies, manipulation
from ..ops import table as ops
from ..ops.convolution import Geometry
from ..ops.table import Op
from ..settings import eager
from ..tensor import primitives
from ..tensor import tensor as T
from ..tensor.host import from_host
from .cases import (
    MAPS,
    REDUCTIONS,
    Arrangement,
    broadcast_row,
    dense,
    first_column,
    indices,
    transposed,
)
from .kit import REFERENCE, Kit, host, kernels
from .test_scalar_ops import param_id
from .values import Array, finite_values

FLOATS = (float32, float64)
SHAPE = (7, 37)

Function = Callable[..., T.Tensor]


def gradients(
    f: Function, values: Sequence[Array], arrangements: Sequence[Arrangement], d: DType, on: Device
) -> Sequence[T.Tensor]:
    """Return the gradients of `f` by each operand, for a gradient of ordinary numbers."""
    operands = [arrange(v, d, on) for arrange, v in zip(arrangements, values, strict=False)]
    result, back = vjp(f, *operands)
    grads: Sequence[T.Tensor] = back(from_host(finite_values(d, result.shape, 99), d, on))
    return grads


def check(
    kit: Kit,
    f: Function,
    values: Sequence[Array],
    d: DType,
    what: str,
    arrangements: Sequence[Arrangement] = (dense, dense, dense),
) -> None:
    """Fail unless all gradients have the reference's bits."""
    with kit.on_device(what), vendor_products(False):
        actual = gradients(f, values, arrangements, d, kit.device)
        ours = [host(g) for g in actual]
    with eager(), vendor_products(False):
        theirs = [host(g) for g in gradients(f, values, arrangements, d, device(REFERENCE))]
    for k, (x, y) in enumerate(zip(ours, theirs, strict=True)):

        def text(k: int = k) -> str:
            """Return the kernels of one gradient, for the message of a failure."""
            return kernels(gradients(f, values, arrangements, d, kit.device)[k])

        kit.check_same_bits(x, y, d, f"gradient of {what} by operand {k}", text)


def differentiable(op: Op) -> bool:
    """Return True if a row has a gradient rule for an operand."""
    return any(rule is not None for rule in rules_of(op))


def apply_op(op: Op) -> Function:
    """Return a function that applies a row of the op table to its operands."""
    return lambda *operands: primitives.apply(op, operands)


ROWS = [(n, d) for n, d in MAPS if d in FLOATS and n != "where" and differentiable(ops.TABLE[n])]
SUMS = [(n, d) for n, d in REDUCTIONS if d in FLOATS and differentiable(ops.TABLE[n])]


@pytest.mark.parametrize(("name", "d"), ROWS, ids=param_id)
def test_elementwise(kit: Kit, name: str, d: DType) -> None:
    """Check the gradients of an elementwise row, in float32 also of broadcast operands."""
    op = ops.TABLE[name]
    values = [finite_values(d, SHAPE, seed) for seed in range(op.arity)]
    check(kit, apply_op(op), values, d, name)
    if op.arity > 1 and d is float32:  # summed over the axes that were broadcast
        check(
            kit, apply_op(op), values, d, f"{name}, broadcast", (broadcast_row, first_column, dense)
        )


@pytest.mark.parametrize("d", (float16, bfloat16), ids=param_id)
@pytest.mark.parametrize("name", ("multiply", "divide", "sqrt", "tanh"))
def test_halves(kit: Kit, name: str, d: DType) -> None:
    """Check the gradients of a row in float16 or bfloat16."""
    op = ops.TABLE[name]
    check(kit, apply_op(op), [finite_values(d, SHAPE, seed) for seed in range(op.arity)], d, name)


@pytest.mark.parametrize(("name", "d"), SUMS, ids=param_id)
def test_reductions(kit: Kit, name: str, d: DType) -> None:
    """Check the gradient of a reduction over rows, columns and both."""
    op = ops.TABLE[name]
    for axes in ((1,), (0,), (0, 1)):
        for place in (dense, transposed) if d is float32 else (dense,):
            check(
                kit,
                lambda x, a=axes: primitives.reduce(op, x, a, False),
                [finite_values(d, SHAPE, 1)],
                d,
                f"{name} over {axes}, {place.__name__}",
                (place,),
            )


def softmax(x: T.Tensor) -> T.Tensor:
    """Return softmax along the last axis, written as several rows of the op table."""
    e = exp(x - statistics.max(x, axis=-1, keepdims=True))
    return e / statistics.sum(e, axis=-1, keepdims=True)


def normalise(x: T.Tensor) -> T.Tensor:
    """Return values with mean 0 and variance 1 along the last axis."""
    centred = x - statistics.mean(x, axis=-1, keepdims=True)
    return centred / (statistics.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) ** 0.5


GRAPHS: dict[str, tuple[Function, Sequence[tuple[int, ...]]]] = {
    "chain": (lambda x, y: tanh(x * 2 + y) * x - y / (1 + x * x), (SHAPE, SHAPE)),
    "where": (lambda x, y: where(x > y, x * y, y), (SHAPE, SHAPE)),
    "softmax": (softmax, (SHAPE,)),
    "layer norm": (normalise, (SHAPE,)),
    "layer": (lambda x, w, b: tanh(matmul(x, w) + b), ((9, 20), (20, 33), (33,))),
    "batched product": (matmul, ((3, 5, 7), (7, 4))),
    "moved": (lambda x: manipulation.permute_dims(x[1:, ::-2], (1, 0)) * x[3, 0], (SHAPE,)),
    "concatenated": (lambda x, y: copies.concat([x * y, y[:3]], axis=0), (SHAPE, SHAPE)),
    "convolution": (
        lambda x, w, b: convolved(x, w, b, (3, 4), Geometry((2, 1), (1, 0), (1, 2), 1)),
        ((2, 3, 5, 8), (9, 3, 3, 3), (9,)),
    ),
    "convolution transposed": (
        lambda y, w: back_to_x(y, w, (5, 8), Geometry((2, 1), (1, 0), (1, 2), 1)),
        ((2, 9, 3, 4), (9, 3, 3, 3)),
    ),
    "running sum": (lambda x: cumulative.cumulative_sum(x * x, axis=1), (SHAPE,)),
}


@pytest.mark.parametrize("d", FLOATS, ids=param_id)
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(kit: Kit, name: str, d: DType) -> None:
    """Check the gradients of a graph of several rows, such as softmax."""
    f, shapes = GRAPHS[name]
    check(kit, f, [finite_values(d, s, k) for k, s in enumerate(shapes)], d, name)


@pytest.mark.parametrize("d", FLOATS, ids=param_id)
def test_gather_adds_up_in_order(kit: Kit, d: DType) -> None:
    """Check that gradients of repeated rows are added in the order of the indices."""
    at = np.random.default_rng(1).integers(0, 7, 300)
    gather_rows: Function = lambda x: getitem(x, indices(at, x.device))  # noqa: E731
    check(kit, gather_rows, [finite_values(d, SHAPE, 1)], d, "300 rows of 7")


@pytest.mark.parametrize("d", FLOATS, ids=param_id)
def test_second_derivatives(kit: Kit, d: DType) -> None:
    """Check the gradient of a gradient, of tanh(x) * x."""

    def slope(x: T.Tensor) -> Any:
        """Return the derivative of tanh(x) * x."""
        _, back = vjp(lambda v: tanh(v) * v, x)
        return back(x * 0 + 1)[0]

    check(kit, slope, [finite_values(d, SHAPE, 1)], d, "the gradient of tanh(x) * x")
