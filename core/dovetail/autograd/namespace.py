"""`dt` as the rules of rows see it: the elementwise functions, and constants like a tensor."""

from __future__ import annotations

from ..functions.creation import generate
from ..functions.elementwise import *  # noqa: F403 - all of them
from ..graph.expr import Spec
from ..ops.table import FULL
from ..tensor.tensor import Tensor


def constant(value: float, s: Spec) -> Tensor:
    """A number everywhere."""
    return generate(FULL, s.shape, (value,), (s.dtype,), s.dtype, s.device)


def ones(s: Spec) -> Tensor:
    """Ones."""
    return constant(1.0, s)


def zeros(s: Spec) -> Tensor:
    """Zeros."""
    return constant(0.0, s)


def zeros_like(x: Tensor, /) -> Tensor:
    """Zeros of the shape, dtype and device of `x`."""
    return zeros(x._expr.spec)


def ones_like(x: Tensor, /) -> Tensor:
    """Ones of the shape, dtype and device of `x`."""
    return ones(x._expr.spec)
