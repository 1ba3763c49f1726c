"""Arithmetic of single numbers that the host computes at once.

To record an op, and to run a kernel for one element, takes five times as long. Each op here is
rounded correctly in IEEE arithmetic, so the bits are those of a kernel. The result is a pending
constant: it has no memory yet, and kernels get it as an argument.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from .. import settings
from ..dtypes import DType, bool_
from ..graph.expr import Attrs, Expr, Spec, log_constant
from ..identity_cache import IdentityCache
from ..ops.table import ABS, FULL, NEGATIVE, SQRT, SQUARE, Op
from ..settings import flags
from .c_fields import new_tensor
from .host import number_at_hand
from .host_read import compute_number, round_number
from .tensor import Tensor

Number = bool | int | float

_UNARY: dict[Op, Callable[[int | float], int | float]] = {
    NEGATIVE: operator.neg,
    ABS: abs,
    SQUARE: lambda x: x * x,  # in float32 a second rounding is exact, as that of sqrt
    SQRT: math.sqrt,
}
_attrs_of_specs: IdentityCache[Attrs] = IdentityCache()  # attributes of constants, by Spec


def compute_binary(op: Op, a: Expr | Number, b: Expr | Number, s: Spec) -> Tensor | None:
    """Compute an op of two numbers at once, into a tensor of Spec `s`; return None to record it.

    An operand is a Python number, or a node without dimensions. The op is recorded if an operand is
    not at hand, or has a tape; where a tracer, a profile or an eager mode must see the op; and for
    ops, dtypes and numbers that `compute_number` refuses.
    """
    computed = s.dtype
    if computed is bool_:  # a comparison
        if type(a) is not Expr:
            return None
        computed = _dtype_of(a)
        if type(b) is Expr and _dtype_of(b) is not computed:
            return None
    x, y = _read_number(a), _read_number(b)
    if x is None or y is None or is_observed():
        return None
    result = compute_number(op.name, computed.name, x, y)
    return None if result is None else _create_constant(s, result)


def compute_unary(op: Op, a: Expr, s: Spec) -> Tensor | None:
    """Compute an op of one number at once, as `compute_binary`; return None to record it."""
    compute = _UNARY.get(op)
    if compute is None or a.spec is not s:
        return None
    x = _read_number(a)
    if x is None or x != x or (x < 0 and op is SQRT) or is_observed():
        return None  # the bits of NaNs may differ between machines
    result = round_number(s.dtype.name, compute(x))
    return None if result is None else _create_constant(s, result)


def is_observed() -> bool:
    """Return True if a tracer, a profile, an index check or an eager mode must see each op."""
    if flags.captures or flags.is_observed or flags.has_unresolved_checks:
        return True
    return flags.depth == 0 and (settings.is_eager() or settings.current().records_lines)


def _dtype_of(e: Expr) -> DType:
    """Return the dtype of a node; compiled, a typed read of its fields."""
    return e.spec.dtype


def _read_number(a: Expr | Number) -> Number | None:
    """Return an operand's number, or None if it cannot be read at once."""
    if type(a) is not Expr:
        return a  # type: ignore[return-value]  # mypy does not narrow
    e: Expr = a
    return number_at_hand(e) if e.tape is None and len(e.spec.shape) == 0 else None


def _create_constant(s: Spec, value: Number) -> Tensor:
    """Create a tensor over a pending constant, and log the constant.

    Its depth is 0, which tells it from a constant of the program: no recipe may repeat it.
    """
    attrs = _attrs_of_specs.get(s, None)
    if attrs is None:
        attrs = ((s.dtype,), s.dtype)
        _attrs_of_specs.put(s, None, None, attrs)
    e = Expr.__new__(Expr)
    e.op, e.args, e.attrs, e.spec, e.depth = FULL, (value,), attrs, s, 0
    e.tape = e.watch = e.readers = e.check_line = None
    log_constant(e)
    return new_tensor(Tensor, e)
