"""The operators of Tensor, and the attributes that are views: `x + y`, `x += y`, `-x`, `x.T`."""

from __future__ import annotations

from collections.abc import Callable
from types import NotImplementedType
from typing import Any

import numpy as np

from .. import callbacks
from ..dtypes import DType, bool_, float64, int64
from ..engine.traced_numbers import TracedFloat
from ..errors import ShapeError
from ..graph.expr import Expr, Spec, binary_node, node
from ..identity_cache import IdentityCache
from ..lru_cache import LRUCache
from ..ops import table as ops
from ..ops.table import FLOOR_DIVIDE, PYTHON_FLOOR_DIVIDE, Op
from ..settings import flags
from ..weak_identity_map import WeakIdentityMap
from .c_fields import expr_of, is_strided, keep_class
from .host_index import transpose
from .immediate import compute_binary
from .primitives import apply, view
from .promotion import PYTHON_NUMBERS, overrides_operators
from .result_type import OPERATOR_SPECS_MAX, infer_binary, is_within, operator_caches, recent_binary
from .tensor import Size, Tensor, create_tensor
from .writes import require_strided_target, update_element, write_out, write_result

Result = Tensor | NotImplementedType
Operator = Callable[[Tensor, object], Result]


Compute = Callable[[object, object], Tensor]
Promotion = Callable[[Op, object, object], Compute | None]
# By subclass of Tensor with a promotion of its own: a function of an op and two dtypes, or types of
# other operands, of which one is a dtype. It returns the function that computes the op,
# or None if dovetail's promotion is the same. A cache has what it returned, or False.
promotions: dict[type, tuple[Promotion, IdentityCache[Compute | bool]]] = {}
# Results that are immutable scalars in NumPy, where their values cannot be read yet.
pending_numbers: WeakIdentityMap[Tensor, bool] = WeakIdentityMap()
# By class of pending numbers: a function that returns the number that a plain call would return.
number_readers: dict[type, Callable[[Any], object]] = {}


def promote(op: Op, owner: object, a: object, b: object) -> Tensor | None:
    """Return the result by the promotion of the class of `owner`; None if it is dovetail's."""
    if type(owner) not in promotions:
        return None
    find, cache = promotions[type(owner)]
    first = expr_of(a).spec.dtype if is_strided(a) else a.__class__
    second = expr_of(b).spec.dtype if is_strided(b) else b.__class__
    compute = cache.get(op, first, second)
    if compute is None:
        compute = find(op, first, second) or False
        cache.put(op, first, second, compute)
    return None if compute is False else compute(a, b)  # type: ignore[operator]  # a function


def record_binary(op: Op, x: Tensor, other: object) -> Result:
    """Record `x op other`; return NotImplemented if `other` overrides the operator itself."""
    a = expr_of(x)
    if type(other) is np.int64 and a.spec.dtype is int64:
        other = int(other)  # the same as a weak number
    if type(x) is not Tensor and a.spec.dtype is not float64:
        promoted = promote(op, x, x, other)
        if promoted is not None:
            return promoted
    if is_strided(other):
        b = expr_of(other)
        inferred = recent_binary.get(op, a.spec, b.spec)
        if inferred is None:
            promoted = promote(op, x, x, other)
            if promoted is not None:
                return promoted
            inferred = infer_binary(op, a, a.spec, b, b.spec)
        return _record(op, a, b, inferred[0], x, other)
    if type(other) is Size:
        other = other.value
    other = as_number(other, a.spec.dtype)
    kind = type(other)
    if kind is float or kind is int or kind is bool:  # `in` would compare the classes by `==`
        inferred = recent_binary.get(op, a.spec, kind)
        if inferred is None:
            inferred = infer_binary(op, a, a.spec, other, kind)
        if inferred[1] is not None:
            low, high, _ = inferred[1][1]  # type: ignore[misc]  # the limits of the number
            if not low <= other <= high:  # type: ignore[operator]  # it is a number
                return _apply(op, x, other)
        return _record(op, a, other, inferred[0], x, x)
    overrides = overrides_operators(other)
    promoted = None if overrides else promote(op, x, x, other)
    if promoted is not None:
        return promoted
    return NotImplemented if overrides else _apply(op, x, other)


def as_number(x: object, dtype: DType) -> object:
    """Return a NumPy scalar as a Python number if it promotes as one; others unchanged.

    Its dtype is that of the other operand, or it is an integer beside float64.
    """
    kind = type(x)
    if dtype is float64 and kind is np.float64:
        return float(x)  # type: ignore[arg-type]  # it is a float
    if kind is np.int64 and (dtype is float64 or dtype is int64):
        return int(x)  # type: ignore[call-overload]  # it is an integer
    return x


def _record(op: Op, a: Expr, b: object, s: Spec, x: Tensor, y: object) -> Tensor:
    """Record an op of a node and another operand, or compute it at once for single numbers.

    The result gets the class of `x` and `y`, the operands.
    """
    result = None
    if len(s.shape) == 0:
        result = compute_binary(op, a, b, s)  # type: ignore[arg-type]  # b is a node or a number
    if result is None:
        if op is FLOOR_DIVIDE:
            op = _choose_division(s.dtype, x, y)
        result = create_tensor(binary_node(op, a, b, s))
    return keep_class(keep_class(result, x), y)


def _choose_division(dtype: DType, x: object, y: object) -> Op:
    """Return the op of `x // y` with results of a dtype: PYTHON_FLOOR_DIVIDE by their classes."""
    for t in (x, y):
        if dtype.kind == "f" and is_strided(t) and t._divides_as_python:
            return PYTHON_FLOOR_DIVIDE
    return FLOOR_DIVIDE


def _apply(op: Op, a: object, b: object) -> Tensor:
    """Apply an operator to operands of any kind."""
    result = apply(op, (a, b))
    if op is FLOOR_DIVIDE and _choose_division(result.dtype, result, result) is not op:
        return apply(PYTHON_FLOOR_DIVIDE, (a, b))
    return result


def divide_as_python(x1: object, x2: object, out: Tensor | None = None) -> Tensor:
    """Return the quotients rounded down, of infinities as Python, NumPy and PyTorch do.

    Raises: as `dt.floor_divide`.
    """
    result = apply(FLOOR_DIVIDE, (x1, x2))  # raises errors with the name of the function
    if result.dtype.kind == "f":
        result = apply(PYTHON_FLOOR_DIVIDE, (x1, x2))
    return result if out is None else write_out(FLOOR_DIVIDE.name, out, result)


def record_reflected(op: Op, number: object, x: Tensor) -> Result:
    """Record `number op x` for a Python number, by `apply` for an int out of range."""
    b, kind = expr_of(x), type(number)
    if type(x) is not Tensor and b.spec.dtype is not float64:
        promoted = promote(op, x, number, x)
        if promoted is not None:
            return promoted
    inferred = recent_binary.get(op, kind, b.spec)
    if inferred is None:
        inferred = infer_binary(op, number, kind, b, b.spec)
    if inferred[1] is not None and not is_within((number, b), inferred[1]):
        return _apply(op, number, x)
    if len(b.spec.shape) == 0:
        result = compute_binary(op, number, b, inferred[0])  # type: ignore[arg-type]  # a number
        if result is not None:
            return keep_class(result, x)
    if op is FLOOR_DIVIDE:
        op = _choose_division(inferred[0].dtype, x, x)
    return keep_class(create_tensor(node(op, (number, b), inferred[0])), x)


def _build_binary_methods(op: Op) -> tuple[Operator, Operator, Operator]:
    """Build the operator, reflected operator and in-place operator of a binary op.

    The first is dovetail's hot path.
    """
    operator_caches[op] = LRUCache(OPERATOR_SPECS_MAX)

    def forward(self: Tensor, other: object) -> Result:
        """Record `self op other`."""
        return record_binary(op, self, other)

    def reflected(self: Tensor, other: object) -> Result:
        """Record `other op self`, or return NotImplemented if `other` overrides operators."""
        if is_strided(self) and type(other) in (bool, int, float):
            return record_reflected(op, other, self)
        if is_strided(self) and type(other) is Size:
            return record_reflected(op, other.value, self)
        if type(other) in (complex, list, tuple, TracedFloat):
            promoted = promote(op, self, other, self)
            if promoted is not None:
                return promoted
        return NotImplemented if overrides_operators(other) else _apply(op, other, self)

    def inplace(self: Tensor, other: object) -> Result:
        """Write `self op other` into the memory of `self`, and return `self`.

        A tensor of `pending_numbers` is immutable: the result is a new one.
        """
        if type(self) in promotions and self in pending_numbers:
            return NotImplemented  # type: ignore[no-any-return]  # Python rebinds the name
        if is_strided(self):
            other = as_number(other, expr_of(self).spec.dtype)
        if is_strided(self) and (is_strided(other) or type(other) in PYTHON_NUMBERS):
            if update_element(op, self, other):
                return self
            return write_result(op.name, self, [record_binary(op, self, other)])
        require_strided_target(op.name, self)
        # never NotImplemented, which would rebind the name
        return write_result(op.name, self, [_apply(op, self, other)])

    return forward, reflected, inplace


def _build_unary_method(op: Op) -> Callable[[Tensor], Tensor]:
    """Build the operator method of a unary op."""
    return lambda self: apply(op, (self,))


BINARY = {
    "add": ops.ADD,
    "sub": ops.SUBTRACT,
    "mul": ops.MULTIPLY,
    "truediv": ops.DIVIDE,
    "floordiv": ops.FLOOR_DIVIDE,
    "mod": ops.REMAINDER,
    "pow": ops.POW,
    "and": ops.BITWISE_AND,
    "or": ops.BITWISE_OR,
    "xor": ops.BITWISE_XOR,
    "lshift": ops.LEFT_SHIFT,
    "rshift": ops.RIGHT_SHIFT,
}
COMPARISONS = {
    "eq": ops.EQUAL,
    "ne": ops.NOT_EQUAL,
    "lt": ops.LESS,
    "le": ops.LESS_EQUAL,
    "gt": ops.GREATER,
    "ge": ops.GREATER_EQUAL,
}
UNARY = {"neg": ops.NEGATIVE, "pos": ops.POSITIVE, "abs": ops.ABS, "invert": ops.BITWISE_INVERT}

_power, _power_reflected, _ = _build_binary_methods(ops.POW)
_divide_reflected = _build_binary_methods(ops.DIVIDE)[1]


def power(self: Tensor, other: object) -> Result:
    """Return `self ** other`; the int 2 is recorded as a squaring, except of bools."""
    if flags.has_autocast:
        self = callbacks.autocast_operand("pow", self)
        other = callbacks.autocast_operand("pow", other)
    if type(other) is int and other == 2:
        dtype = expr_of(self).spec.dtype if is_strided(self) else self.dtype
        if dtype is not bool_:
            return apply(ops.SQUARE, (self,))
    return _power(self, other)


def power_reflected(self: Tensor, other: object) -> Result:
    """Return `other ** self`."""
    return _power_reflected(
        callbacks.autocast_operand("pow", self) if flags.has_autocast else self, other
    )


def divide_reflected(self: Tensor, other: object) -> Result:
    """Return `other / self`, which autocast treats as a reciprocal."""
    return _divide_reflected(
        callbacks.autocast_operand("reciprocal", self) if flags.has_autocast else self, other
    )


def divide_with_remainder(self: Tensor, other: object) -> tuple[Tensor, Tensor]:
    """Return `divmod(self, other)`."""
    return self // other, self % other  # type: ignore[operator]  # unchecked until here


def divide_with_remainder_reflected(self: Tensor, other: object) -> tuple[Tensor, Tensor]:
    """Return `divmod(other, self)`."""
    return other // self, other % self  # type: ignore[operator]  # unchecked until here


def contains(self: Tensor, value: object) -> bool:
    """Return `value in self`: evaluate, and return True if an element equals the value."""
    return bool((self == value).any())


def transpose_matrix(self: Tensor) -> Tensor:
    """Return the transpose of a matrix: a view.

    Raises: ShapeError for other than 2 dimensions; see `dt.permute_dims`.

    >>> import dovetail as dt
    >>> x = dt.zeros((2, 3))
    >>> x.T.shape
    (3, 2)
    """
    if self.ndim == 2 and is_strided(self) and (transposed := transpose(self)) is not None:
        return transposed
    if self.ndim != 2:
        raise ShapeError(
            f"T: expected 2 dimensions, got shape {self.shape}; use x.mT or dt.permute_dims"
        )
    return view(self, ("permute", (1, 0)), "T")


def transpose_matrices(self: Tensor) -> Tensor:
    """Return the transpose of the last two dimensions: a view.

    Raises: ShapeError below 2 dimensions.

    >>> import dovetail as dt
    >>> x = dt.zeros((2, 3))
    >>> x.mT.shape
    (3, 2)
    """
    if self.ndim == 2 and is_strided(self) and (transposed := transpose(self)) is not None:
        return transposed
    if self.ndim < 2:
        raise ShapeError(f"mT: expected at least 2 dimensions, got shape {self.shape}")
    axes = (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)
    return view(self, ("permute", axes), "mT")


def _build_operator_methods() -> dict[str, object]:
    """Build the table of Tensor's operators and matrix properties, by attribute name."""
    methods: dict[str, object] = {
        "__divmod__": divide_with_remainder,
        "__rdivmod__": divide_with_remainder_reflected,
        "__contains__": contains,
        "T": property(transpose_matrix),
        "mT": property(transpose_matrices),
    }
    for name, op in BINARY.items():
        forms = _build_binary_methods(op)
        methods |= {
            f"__{n}__": form for n, form in zip((name, f"r{name}", f"i{name}"), forms, strict=True)
        }
    methods |= {f"__{name}__": _build_binary_methods(op)[0] for name, op in COMPARISONS.items()}
    methods |= {f"__{name}__": _build_unary_method(op) for name, op in UNARY.items()}
    return {
        **methods,
        "__pow__": power,
        "__rpow__": power_reflected,
        "__rtruediv__": divide_reflected,
    }


OPERATORS = _build_operator_methods()  # methods of Tensor
