"""The namespace `dt` of gradient rules in table rows: elementwise functions and constants."""

from __future__ import annotations

from ..functions.creation.constructors import generate
from ..functions.elementwise import op_functions
from ..functions.elementwise.op_functions import *  # noqa: F403 - all of them
from ..graph.expr import Spec
from ..ops.table import FULL
from ..tensor.c_fields import is_strided
from ..tensor.primitives import dispatch
from ..tensor.tensor import Tensor


def constant(value: float, s: Spec) -> Tensor:
    """Return a tensor with one number everywhere."""
    return generate(FULL, s.shape, (value,), (s.dtype,), s.dtype, s.device)


def ones(s: Spec) -> Tensor:
    """Return a tensor of ones."""
    return constant(1.0, s)


def zeros(s: Spec) -> Tensor:
    """Return a tensor of zeros."""
    return constant(0.0, s)


def conj(x: Tensor | float, /) -> Tensor | float:  # type: ignore[no-redef]  # of numbers too
    """Return the complex conjugate; a real value itself."""
    if not isinstance(x, Tensor):
        return x.conjugate()
    return op_functions.conj(x) if is_complex(x) else x


def real(x: Tensor, /) -> Tensor:  # type: ignore[no-redef]  # of reals itself
    """Return the real part; a real tensor itself."""
    return op_functions.real(x) if is_complex(x) else x


def is_complex(x: Tensor, /) -> bool:
    """Return True if the dtype is complex."""
    return x.dtype.kind == "c"


def zeros_like(x: Tensor, /) -> Tensor:
    """Return zeros of the shape, dtype and device of `x`."""
    return zeros(x._expr.spec) if is_strided(x) else _constant_like(x, 0.0)


def ones_like(x: Tensor, /) -> Tensor:
    """Return ones of the shape, dtype and device of `x`."""
    return ones(x._expr.spec) if is_strided(x) else _constant_like(x, 1.0)


def _constant_like(x: Tensor, value: float) -> Tensor:
    """Return a tensor of `value` in the layout of `x`, not strided.

    Raises: LayoutError if the layout has no rule for it.
    """
    return dispatch("constant", "full_like", (x,), x, value)
