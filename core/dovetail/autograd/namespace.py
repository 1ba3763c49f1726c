"""`dt` as the rules of rows see it: the elementwise functions, and constants like a tensor."""

from __future__ import annotations

from ..functions.creation.constructors import generate
from ..functions.elementwise import op_functions
from ..functions.elementwise.op_functions import *  # noqa: F403 - all of them
from ..graph.expr import Spec
from ..ops.table import FULL
from ..tensor.tensor import Tensor
from ..tensor.verbs import dispatch


def constant(value: float, s: Spec) -> Tensor:
    """A number everywhere."""
    return generate(FULL, s.shape, (value,), (s.dtype,), s.dtype, s.device)


def ones(s: Spec) -> Tensor:
    """Ones."""
    return constant(1.0, s)


def zeros(s: Spec) -> Tensor:
    """Zeros."""
    return constant(0.0, s)


def conj(x: Tensor | float, /) -> Tensor | float:  # type: ignore[no-redef]  # of numbers too
    """The complex conjugate: of what is real, itself."""
    if not isinstance(x, Tensor):
        return x.conjugate()
    return op_functions.conj(x) if is_complex(x) else x


def real(x: Tensor, /) -> Tensor:  # type: ignore[no-redef]  # of reals itself
    """The real part: of what is real, itself."""
    return op_functions.real(x) if is_complex(x) else x


def is_complex(x: Tensor, /) -> bool:
    """Whether the dtype is complex."""
    return x.dtype.kind == "c"


def zeros_like(x: Tensor, /) -> Tensor:
    """Zeros of the shape, dtype and device of `x`."""
    return zeros(x._expr.spec) if type(x) is Tensor else _other(x, 0.0)


def ones_like(x: Tensor, /) -> Tensor:
    """Ones of the shape, dtype and device of `x`."""
    return ones(x._expr.spec) if type(x) is Tensor else _other(x, 1.0)


def _other(x: Tensor, value: float) -> Tensor:
    """A number everywhere, in the layout of a tensor that is not strided."""
    return dispatch("constant", "full_like", (x,), x, value)
