"""Special functions that are composed of several ops; `op_functions` has those of one row."""

from __future__ import annotations

import math

from ...argument_checks import integer
from ...ops import table as ops
from ...tensor.primitives import apply
from ...tensor.tensor import Tensor, required
from ..variants import public
from .op_functions import digamma, zeta

__all__ = ["expit", "polygamma"]


@public(in_place=True, widen=False)
def expit(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return 1 / (1 + exp(-x)): `sigmoid` under SciPy's name.

    Shapes: any; the result has the same.
    Dtypes: floats; integers and bool become float32.
    Raises: DTypeError.

    >>> import dovetail as dt
    >>> dt.expit(dt.asarray([0.0])).tolist()
    [0.5]
    """
    return apply(ops.TABLE["sigmoid"], (required("expit", x),), None, out)


@public(out=True)
def polygamma(n: int, x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the n-th derivative of `digamma`, n at most 30; for n > 0 it is NaN below 0.

    For n > 0 the result is infinite at 0, NaN below.

    - `n`: an int from 0 to 30; 0 is digamma itself.

    Shapes: any; the result has the same.
    Dtypes: floats; integers and bool become float32; float16 and bfloat16 are computed in float32.
    Accuracy: that of `zeta`, and two roundings.
    Raises: DTypeError, ArgumentError for n out of range.

    >>> import dovetail as dt
    >>> dt.polygamma(1, dt.asarray([1.0])).tolist()
    [1.644934058189392]
    """
    n = integer("polygamma", n, "n", 0, 30)
    required("polygamma", x)
    if n == 0:
        return digamma(x)
    sign = 1.0 if n % 2 else -1.0
    return zeta(n + 1.0, x) * (sign * math.factorial(n))
