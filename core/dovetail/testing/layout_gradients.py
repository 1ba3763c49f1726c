"""Layouts, level 5: gradients flow through the layout as they do through strided tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ..autograd import grad
from ..dtypes import DType, float32, float64
from ..errors import LayoutError
from ..functions.elementwise import op_functions as e
from ..functions.products import matrix_products
from ..functions.products.matrix_products import matmul, vendor_products
from ..functions.reductions import statistics
from ..functions.shape import copies
from ..tensor import tensor as T
from ..tensor.host import from_host
from .kit import host
from .layout import (
    BASIC_SAMPLES,
    LayoutKit,
    Sample,
    UndeclaredRefusal,
    call_as_user,
    dense,
    unsigned_zeros,
)
from .test_scalar_ops import param_id
from .values import Array, host_dtype

Function = Callable[[T.Tensor, T.Tensor, T.Tensor], T.Tensor]
MOVES = "slice|view|permute|expand"  # a layout may not know which function asked for a move
# Of two tensors of the layout and a strided one without zeros: the op's name, its verb.
FUNCTIONS: dict[str, tuple[str, str, Function]] = {
    "there and back": ("to_dense", "to_dense", lambda x, y, z: x),
    "negative": ("negative", "apply", lambda x, y, z: -x),
    "square": ("square", "apply", lambda x, y, z: e.square(x)),
    "tanh": ("tanh", "apply", lambda x, y, z: e.tanh(x)),
    "times a number": ("multiply", "apply", lambda x, y, z: x * 3),
    "sum of two": ("add", "apply", lambda x, y, z: x + y),
    "product of two": ("multiply", "apply", lambda x, y, z: x * y),
    "times strided": ("multiply", "apply", lambda x, y, z: x * z),
    "itself twice": ("add", "apply", lambda x, y, z: x + x * x),
    "sum": ("sum", "reduce", lambda x, y, z: statistics.sum(x)),
    "sum of rows": ("sum", "reduce", lambda x, y, z: statistics.sum(x, axis=-1)),
    "mean of columns": ("mean", "reduce", lambda x, y, z: statistics.mean(x, axis=0)),
    "transpose": ("matrix_transpose", "view", lambda x, y, z: matrix_products.matrix_transpose(x)),
    "slice": ("index", "view", lambda x, y, z: x[1:4]),
    "concat": ("concat", "concat", lambda x, y, z: copies.concat([x, y], axis=0)),
    "product of matrices": ("matmul", "matmul", lambda x, y, z: matmul(x, z.mT)),
    "product from the left": ("matmul", "matmul", lambda x, y, z: matmul(z.mT, x)),
    "product of both": ("matmul", "matmul", lambda x, y, z: matmul(x, y.mT)),
}


def gradients(
    f: Function, kit: LayoutKit, s: Sample, d: DType, in_layout: bool
) -> tuple[list[Array], list[bool]]:
    """Return gradients of a weighted sum of `f` by all leaves, and the inputs' requires_grad."""
    leaves = [from_host(s.array(d, k), d, kit.device).requires_grad_() for k in range(2)]
    leaves.append(from_host(Sample("full", s.shape).array(d, 5), d, kit.device).requires_grad_())
    inputs: list[T.Tensor] = [kit.subject.make(x) if in_layout else x for x in leaves[:2]]
    flows = [x.requires_grad for x in inputs]
    grads = dense(call_as_user(f, *inputs, leaves[2]))
    weights = Sample("full", grads.shape).array(d, 9)
    loss = statistics.sum(grads * from_host(weights, d, kit.device))
    back = grad(loss, leaves, allow_unused=True)
    return [
        np.zeros(x.shape, host_dtype(d)) if g is None else host(dense(g))
        for g, x in zip(back, leaves, strict=True)
    ], flows


@pytest.mark.parametrize("d", (float32, float64), ids=param_id)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(kit: LayoutKit, name: str, d: DType) -> None:
    """Check gradients: those of strided tensors at nonzero elements, the same or 0 elsewhere."""
    op, verb, f = FUNCTIONS[name]
    for s in (s for s in kit.samples(BASIC_SAMPLES, d) if s.mask != "nothing"):
        if not kit.has_rule(verb):
            kit.check_refusal(f"{op}|{MOVES}", name, gradients, f, kit, s, d, True)
            continue
        with vendor_products(False):
            wanted, _ = gradients(f, kit, s, d, False)
            try:
                with kit.on_device(name):
                    actual, flows = gradients(f, kit, s, d, True)
            except LayoutError as error:
                kit.check_message(error, f"{op}|{MOVES}", name)
                raise UndeclaredRefusal(kit.failure(f"{name}: refused: {error}", "")) from error
        assert all(flows), kit.failure("from_dense of what requires a gradient does not", "")
        for k, (g, w) in enumerate(zip(actual, wanted, strict=True)):
            there = s.where(k) if k < 2 else np.ones(s.shape, bool)
            found_there = unsigned_zeros(np.where(there, g, w), d)
            what = f"gradient of {name} by operand {k}, {s}"
            kit.check_same_bits(found_there, unsigned_zeros(w, d), d, what, str)
            outside = (g == w) | (g == 0)
            assert outside.all(), kit.failure(f"gradient of {name} where nothing is stored", "")
