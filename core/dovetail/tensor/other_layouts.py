"""The base of tensors with a layout other than strided, for layout plugins.

A plugin derives its tensors from `LayoutTensor` and defines a rule for each *verb* that it
supports. All public functions are composed of these verbs, so they call the plugin's rules:

    apply(op, operands, attrs)           an elementwise op; some operand is of the layout
    reduce(op, x, axes, keepdims, attrs) a reduction over non-negative, sorted axes
    view(x, move)                        a move of `layout.py`: permute, expand, slice or reshape
    index(x, parts)                      x[...] with arrays; `parts` as `indexing.getitem` has them
    concat(tensors, axis)                along an existing, non-negative axis
    matmul(x1, x2)                       over the last two axes
    softmax(x, axis)                     over a non-negative axis; also log_softmax
    diagonal(x, offset)                  of the last two axes
    kron(x1, x2)                         the Kronecker product; either may be strided
    triangle(x, k, upper)                `tril` or `triu` of the last two axes
    nonzero(x)                           for each axis the positions of non-zero elements
    sort(x, axis, descending)            along a non-negative axis
    variance(x, axes, correction, keepdims)  over axes as for reduce
    to_device(x, device)                 the same on another device
    to_dense(x)                          the same, strided
    constant(x, value)                   a tensor of one value, in the layout of x
    along(name, function, operands, axes)  a function of strided tensors with equal numbers of axes;
                                         it treats positions of all other axes alike
    index_by(x, parts)                   as index, of a strided x, if an array is of the layout
    trace(f, args)                       for `dt.explain`, see docs/writing-a-layout.md

A function that needs another verb, or one without a rule, raises LayoutError with its own name.
So does a function on tensors of two layouts, unless they are `related`: then the first one's rule
gets both. `dispatch` and `strided` get the name of the function from their caller.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from ..argument_checks import instance
from ..declarations import public
from ..dtypes import DType
from ..errors import LayoutError
from ..graph.expr import Expr, node, spec
from ..layout import Layout, Shape
from ..ops import table as ops
from ..ops.scatter import Manner
from ..ops.table import Op
from .c_fields import is_strided
from .primitives import apply, dispatch, view
from .promotion import overrides_operators
from .tensor import (
    Size,
    Tensor,
    create_size,
    create_tensor,
    strided,
    unsupported_layout_text,
)

INTERFACE = (1, 2)  # version of the plugin interface; the entry points' group has the major number
KEEPS = frozenset(
    (
        "apply",
        "view",
        "index",
        "concat",
        "softmax",
        "log_softmax",
        "triangle",
        "sort",
        "kron",
        "to_device",
    )
)

Rule = Callable[..., Tensor]


class Unflattener(Protocol):
    """The inverse of `__flatten__`. Equal objects rebuild tensors in the same way."""

    def unflatten(self, parts: Iterator[Tensor], known: list[object]) -> Tensor:
        """Rebuild the tensor from the next tensors of `parts` and the shared objects `known`."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class LayoutInfo:
    """The description of a layout plugin.

    The last two are for the conformance kit (`dovetail test-layout NAME`).

    - `layout`: the layout.
    - `functions`: functions by name, which are added to `dt`.
    - `methods`: methods by name, which are added to `Tensor`.
    - `minimum_interface`: the least interface (major, minor) that the plugin needs.
    - `from_dense`: converts a strided tensor to this layout, and raises LayoutError for values that
      the layout cannot represent; the kit makes its samples with it.
    - `keeps`: the verbs whose results have this layout.
    """

    layout: Layout
    functions: Mapping[str, object] = field(default_factory=dict)
    methods: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    minimum_interface: tuple[int, int] = INTERFACE
    from_dense: Callable[[Tensor], Tensor] | None = None
    keeps: frozenset[str] = KEEPS


# --- operators: `+=` returns a new tensor, too ----------------------------------------------------


def _build_binary_methods(op: Op) -> tuple[Rule, Rule, Rule]:
    """Build the operator and reflected operator of a binary op; `op=` returns a new tensor."""

    def forward(self: Tensor, other: object) -> Tensor:
        """Apply the layout's rule to `self op other`, or return NotImplemented."""
        return NotImplemented if overrides_operators(other) else apply(op, (self, other))

    def reflected(self: Tensor, other: object) -> Tensor:
        """Apply the layout's rule to `other op self`, or return NotImplemented."""
        return NotImplemented if overrides_operators(other) else apply(op, (other, self))

    return forward, reflected, forward


def _build_unary_method(op: Op) -> Rule:
    """Build the operator method of a unary op."""
    return lambda self: apply(op, (self,))


class LayoutTensor(Tensor):
    """A tensor of another layout: the base class of layout plugins' tensors.

    A subclass defines `device`, `dtype`, `layout`, `shape` and `parts`, and fills `rules`. With
    `__reduce_ex__` it can be copied and pickled. `related` layouts may be mixed with it.
    """

    __slots__ = ()

    rules: ClassVar[Mapping[str, Callable[..., Any]]] = {}  # `trace` returns no tensor
    related: ClassVar[frozenset[Layout]] = frozenset()
    """Other layouts that the rules accept; results that this one cannot hold have one of them."""

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The strided tensors that this one is made of."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> Size:
        """The number of elements, including those that are not stored."""
        return create_size(int(np.prod(self.shape, dtype=object)), self.shape)

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all stored parts."""
        return sum(p.nbytes for p in self.parts)

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]  # computed from the parts, so read-only
        """True if gradients flow to or through any of the parts."""
        return any(p.requires_grad for p in self.parts)

    @property
    def _expr(self) -> Expr:  # type: ignore[override]  # a field of strided tensors
        """Raise LayoutError: a tensor of this layout has no node.

        Functions that accept any tensor call `tensor.strided` first, for an error with their name.
        """
        raise LayoutError(unsupported_layout_text("strided memory", self))

    def run_rule(self, verb: str, name: str, *args: object) -> Tensor:
        """Run the layout's rule for a verb, in the name of the function `name`.

        - `verb`: the name of the rule, such as "apply".
        - `name`: the function that errors name.
        - `args`: the arguments of the rule.

        Raises: LayoutError if it has none.
        """
        rule: Rule | None = self.rules.get(verb)
        foreign_layout = self._find_foreign_layout(args)
        if rule is None or foreign_layout:
            raise LayoutError(
                unsupported_layout_text(
                    name, self, f" and {foreign_layout}" if foreign_layout else ""
                )
            )
        return rule(*args)

    def _find_foreign_layout(self, args: Sequence[object]) -> str:
        """Return the name of an operand's layout that the rules do not accept, or ""."""
        own, related = self.layout, self.related
        for a in args:
            if isinstance(a, (list, tuple)):
                if name := self._find_foreign_layout(a):
                    return name
            elif isinstance(a, LayoutTensor) and a.layout is not own and a.layout not in related:
                return a.layout.name
        return ""

    def to_dense(self) -> Tensor:
        """Return the elements as a strided tensor."""
        return self.run_rule("to_dense", "to_dense", self)

    @public(widen=False)
    def accumulated(self, other: Tensor) -> Tensor:
        """Return the sum of this gradient and another one of the same tensor, perhaps strided.

        A layout may concatenate the entries of both; readers then add entries of one position.

        - `other`: the other gradient.

        Raises: ArgumentTypeError if `other` is no tensor, ShapeError.
        """
        instance("accumulated", other, "other", Tensor)
        return self.to_dense() + (other if is_strided(other) else other.to_dense())

    def __reduce_ex__(self, protocol: object) -> tuple[Rule, tuple[object, ...]]:
        """Return a function of the plugin, and its arguments, that rebuild the tensor."""
        raise LayoutError(unsupported_layout_text("pickle", self))

    def __copy__(self) -> Tensor:
        rebuild, args = self.__reduce_ex__(4)
        return rebuild(*map(copy.copy, args))

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        rebuild, args = self.__reduce_ex__(4)
        return rebuild(*copy.deepcopy(args, memo))

    def __flatten__(
        self, known: dict[int, tuple[int, object]]
    ) -> tuple[Sequence[Tensor], Unflattener] | None:
        """Return strided tensors for `dt.jit`, with the way to rebuild this tensor from them.

        A function is captured for the number of these, their shapes and the way. `known`: objects
        of earlier tensors by id, numbered in order. None: jit does not accept the tensor.
        """
        return None

    def is_contiguous(self, memory_format: None = None) -> bool:
        """Return False: the memory has no strides.

        - `memory_format`: without effect.
        """
        return False

    def __repr__(self) -> str:
        return f"<{self.dtype.name}{list(self.shape)}, {self.layout.name}, on {self.device}>"

    def __format__(self, form: str) -> str:
        return format(str(self), form)

    __str__ = __repr__
    __hash__ = object.__hash__

    __add__, __radd__, __iadd__ = _build_binary_methods(ops.ADD)
    __sub__, __rsub__, __isub__ = _build_binary_methods(ops.SUBTRACT)
    __mul__, __rmul__, __imul__ = _build_binary_methods(ops.MULTIPLY)
    __truediv__, __rtruediv__, __itruediv__ = _build_binary_methods(ops.DIVIDE)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _build_binary_methods(ops.FLOOR_DIVIDE)
    __mod__, __rmod__, __imod__ = _build_binary_methods(ops.REMAINDER)
    __pow__, __rpow__, __ipow__ = _build_binary_methods(ops.POW)
    __and__, __rand__, __iand__ = _build_binary_methods(ops.BITWISE_AND)
    __or__, __ror__, __ior__ = _build_binary_methods(ops.BITWISE_OR)
    __xor__, __rxor__, __ixor__ = _build_binary_methods(ops.BITWISE_XOR)
    __lshift__, __rlshift__, __ilshift__ = _build_binary_methods(ops.LEFT_SHIFT)
    __rshift__, __rrshift__, __irshift__ = _build_binary_methods(ops.RIGHT_SHIFT)
    __eq__ = _build_binary_methods(ops.EQUAL)[0]  # type: ignore[assignment]  # elementwise
    __ne__ = _build_binary_methods(ops.NOT_EQUAL)[0]  # type: ignore[assignment]  # elementwise
    __lt__ = _build_binary_methods(ops.LESS)[0]
    __le__ = _build_binary_methods(ops.LESS_EQUAL)[0]
    __gt__ = _build_binary_methods(ops.GREATER)[0]
    __ge__ = _build_binary_methods(ops.GREATER_EQUAL)[0]
    __neg__ = _build_unary_method(ops.NEGATIVE)
    __pos__ = _build_unary_method(ops.POSITIVE)
    __abs__ = _build_unary_method(ops.ABS)
    __invert__ = _build_unary_method(ops.BITWISE_INVERT)


# --- functions along axes -------------------------------------------------------------------------


def has_rule(x: object, verb: str) -> bool:
    """Return True if a tensor is of another layout than strided, with a rule for the verb."""
    return isinstance(x, LayoutTensor) and verb in x.rules


def require_along(name: str, x: Tensor) -> Tensor:
    """Return a tensor that is strided or whose layout has the rule "along".

    Raises: LayoutError for other layouts, ArgumentTypeError for what is no tensor.
    """
    return x if has_rule(x, "along") else strided(name, x)


def call_along(
    name: str, function: Callable[..., Any], operands: Sequence[Tensor], axes: Shape
) -> Any:
    """Call a function of strided tensors along axes, by the layout's rule "along".

    - `name`: the function that errors name.
    - `function`: gets strided tensors with the operands' number of axes, and returns one or a tuple
      of them; sizes may change along `axes` only. It treats positions of all other axes alike.
    - `operands`: tensors with equal numbers of axes, some of the layout, that broadcast except
      along `axes`.
    - `axes`: the axes, not negative.

    Raises: LayoutError if the layout has no such rule.
    """
    return dispatch("along", name, operands, name, function, operands, axes)


# --- nodes for the ops of a layout ----------------------------------------------------------------


def make_node(
    op: Op, operands: Sequence[Tensor], shape: Shape, dtype: DType, attrs: object = None
) -> Tensor:
    """Record a plugin's op (of kind "kernel") on strided tensors; shape and dtype are unchecked.

    - `op`: a row of the op table, of kind "kernel".
    - `operands`: strided tensors.
    - `shape`, `dtype`: those of the result.
    - `attrs`: the static attributes of this use.
    """
    args = tuple([t._expr for t in operands])
    return create_tensor(node(op, args, spec(shape, dtype, operands[0].device), attrs))


def gather_at(x: Tensor, at: Mapping[int, Tensor], shape: Shape, axes: Shape) -> Tensor:
    """Return `x` at computed positions, which must be in range, not negative, and are unchecked.

    Axes of `x` in neither have size 1.

    - `at`: by axis of `x` its positions, which broadcast to the result's `shape`.
    - `axes`: for each axis of the result the axis of `x`, or -1.
    """
    operands = (x, *at.values())
    return make_node(ops.GATHER, operands, shape, x.dtype, (shape, axes, tuple(at), None))


def rows_at(x: Tensor, at: Tensor) -> Tensor:
    """Return a copy of the rows of `x` at positions `at`, which are not checked.

    - `at`: the positions along the first axis.
    """
    column = view(at, ("reshape", (at.size, *(1,) * (x.ndim - 1))))
    return gather_at(x, {0: column}, (at.size, *x.shape[1:]), (-1, *range(1, x.ndim)))


def scatter_rows(x: Tensor, values: Tensor, at: Tensor) -> Tensor:
    """Return a copy of `x` with rows at distinct, unchecked positions `at` replaced by `values`.

    - `values`: the new rows.
    - `at`: the positions along the first axis.
    """
    column = view(at, ("reshape", (at.size, *(1,) * (values.ndim - 1))))
    positions = view(column, ("expand", values.shape))
    return make_node(
        ops.SCATTER, (x, values, positions), x.shape, x.dtype, Manner("set", unique=True)
    )
