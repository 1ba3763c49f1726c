"""Tensors of other layouts than strided: what a layout plugin implements.

A plugin derives its tensors from `LayoutTensor` and gives a rule for each *verb* that has a meaning
for it. All public functions are made of these verbs, so they reach the plugin by themselves:

    apply(op, operands, attrs)           an elementwise op; some operand is of the layout
    reduce(op, x, axes, keepdims, attrs) a reduction over non-negative, sorted axes
    view(x, move)                        a move of `layout.py`: permute, expand, slice or reshape
    index(x, parts)                      x[...] with arrays; `parts` as `indexing.getitem` has them
    concat(tensors, axis)                along an existing, non-negative axis
    matmul(x1, x2)                       over the last two axes
    softmax(x, axis)                     over a non-negative axis; also log_softmax
    diagonal(x, offset)                  of the last two axes
    kron(x1, x2)                         the Kronecker product; either may be strided
    triangle(x, k, upper)                what `tril` and `triu` leave of the last two axes
    nonzero(x)                           for each axis the positions of what is not zero
    sort(x, axis, descending)            along a non-negative axis
    variance(x, axes, correction, keepdims)  over axes as for reduce
    to_device(x, device)                 the same on another device
    to_dense(x)                          the same, strided

A function that needs another verb, or one without a rule, raises LayoutError with its own name.
So does one that is given tensors of two layouts, unless they are `related`: then the first one's
rule gets both.
What a verb is run for (`dispatch`) and what asks for strided memory (`strided`) say that name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from ..arguments import instance, named
from ..dtypes import DType
from ..errors import LayoutError
from ..graph.expr import Expr, node, spec
from ..layout import Layout, Shape
from ..ops import table as ops
from ..ops.scatter import Manner
from ..ops.table import Op
from .operands import decides
from .tensor import Size, Tensor, counted, make, without_meaning
from .verbs import apply, view

INTERFACE = (1, 2)  # of layout plugins; the group of entry points carries the first number
KEEPS = frozenset((
    "apply", "view", "index", "concat", "softmax", "log_softmax", "triangle", "sort", "kron",
    "to_device",
))  # fmt: skip

Rule = Callable[..., Tensor]


class Way(Protocol):
    """How a tensor is made again of what it was taken apart into. Equal ones do the same."""

    def unflatten(self, parts: Iterator[Tensor], known: list[object]) -> Tensor:
        """The tensor. `known`: what tensors beside it have in common, as `__flatten__` met it."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class LayoutInfo:
    """What a layout plugin says of itself. `functions` and `methods` join `dt` and `Tensor`.

    The last two are for the conformance kit (`dovetail test-layout NAME`). `from_dense` gives a
    strided tensor's elements in this layout, and raises LayoutError for what the layout does not
    hold: the kit makes its samples with it. `keeps` are the verbs whose results have this layout.
    """

    layout: Layout
    functions: Mapping[str, object] = field(default_factory=dict)
    methods: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    minimum_interface: tuple[int, int] = INTERFACE
    from_dense: Callable[[Tensor], Tensor] | None = None
    keeps: frozenset[str] = KEEPS


# --- operators: a new tensor each, also of `+=` --------------------------------------------------


def _binary(op: Op) -> tuple[Rule, Rule, Rule]:
    """Operator, reflected operator and in-place operator of a binary op."""

    def forward(self: Tensor, other: object) -> Tensor:
        return NotImplemented if decides(other) else apply(op, (self, other))

    def reflected(self: Tensor, other: object) -> Tensor:
        return NotImplemented if decides(other) else apply(op, (other, self))

    return forward, reflected, forward


def _unary(op: Op) -> Rule:
    return lambda self: apply(op, (self,))


class LayoutTensor(Tensor):
    """A tensor of another layout: base of what layout plugins define.

    A subclass has `device`, `dtype`, `layout`, `shape` and `parts`, and fills `rules`. With
    `__reduce_ex__` it can be copied and sent. `related` layouts may be mixed with it.
    """

    __slots__ = ()

    rules: ClassVar[Mapping[str, Rule]] = {}
    related: ClassVar[frozenset[Layout]] = frozenset()
    """Other layouts that the rules take beside this one, and that results have which it cannot
    hold."""

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
        """The number of elements, those included that are not stored."""
        return counted(int(np.prod(self.shape, dtype=object)), self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all that is stored."""
        return sum(p.nbytes for p in self.parts)

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]  # that of the parts: not settable
        """Whether gradients flow to or through any of the parts."""
        return any(p.requires_grad for p in self.parts)

    @property
    def _expr(self) -> Expr:  # type: ignore[override]  # strided ones have a field
        """What only a strided tensor has.

        Who may be given other tensors asks `tensor.strided` first, by the name of a function.
        """
        raise LayoutError(without_meaning("strided memory", self))

    def run_rule(self, verb: str, name: str, *args: object) -> Tensor:
        """What the layout's rule for a verb gives, on behalf of the function `name`.

        Raises: LayoutError where it has none.
        """
        found = self.rules.get(verb)
        other = self._other_layout(args)
        if found is None or other:
            raise LayoutError(without_meaning(name, self, f" and {other}" if other else ""))
        return found(*args)

    def _other_layout(self, args: Sequence[object]) -> str:
        """The name of a layout among operands that is neither this one nor strided, or empty."""
        own, related = self.layout, self.related
        for a in args:
            if isinstance(a, (list, tuple)):
                if found := self._other_layout(a):
                    return found
            elif isinstance(a, LayoutTensor) and a.layout is not own and a.layout not in related:
                return a.layout.name
        return ""

    def to_dense(self) -> Tensor:
        """The same elements as a strided tensor."""
        return self.run_rule("to_dense", "to_dense", self)

    @named(widen=False)
    def accumulated(self, other: Tensor) -> Tensor:
        """The sum of this gradient and another one, which may be strided, of the same tensor.

        A layout may put the entries of both side by side, to be added up by who reads them.
        Raises: ArgumentTypeError for what is no tensor, ShapeError.
        """
        instance("accumulated", other, "other", Tensor)
        return self.to_dense() + (other if type(other) is Tensor else other.to_dense())

    def __reduce_ex__(self, protocol: object) -> tuple[Rule, tuple[object, ...]]:
        """What makes the tensor again: a function of the plugin, and its arguments."""
        raise LayoutError(without_meaning("pickle", self))

    def __copy__(self) -> Tensor:
        made, args = self.__reduce_ex__(4)
        return made(*map(copy.copy, args))

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        made, args = self.__reduce_ex__(4)
        return made(*copy.deepcopy(args, memo))

    def __flatten__(
        self, known: dict[int, tuple[int, object]]
    ) -> tuple[Sequence[Tensor], Way] | None:
        """What the tensor is for `dt.jit`: strided tensors, and how it is made of such.

        The number of these, their shapes and the way are what a function is captured for. `known`:
        by id what tensors before it had, numbered as it was met. None: it is no argument there.
        """
        return None

    def is_contiguous(self, memory_format: None = None) -> bool:
        """False: memory is not interpreted by strides."""
        return False

    def __repr__(self) -> str:
        return f"<{self.dtype.name}{list(self.shape)}, {self.layout.name}, on {self.device}>"

    def __format__(self, form: str) -> str:
        return format(str(self), form)

    __str__ = __repr__
    __hash__ = object.__hash__

    __add__, __radd__, __iadd__ = _binary(ops.ADD)
    __sub__, __rsub__, __isub__ = _binary(ops.SUBTRACT)
    __mul__, __rmul__, __imul__ = _binary(ops.MULTIPLY)
    __truediv__, __rtruediv__, __itruediv__ = _binary(ops.DIVIDE)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary(ops.FLOOR_DIVIDE)
    __mod__, __rmod__, __imod__ = _binary(ops.REMAINDER)
    __pow__, __rpow__, __ipow__ = _binary(ops.POW)
    __and__, __rand__, __iand__ = _binary(ops.BITWISE_AND)
    __or__, __ror__, __ior__ = _binary(ops.BITWISE_OR)
    __xor__, __rxor__, __ixor__ = _binary(ops.BITWISE_XOR)
    __lshift__, __rlshift__, __ilshift__ = _binary(ops.LEFT_SHIFT)
    __rshift__, __rrshift__, __irshift__ = _binary(ops.RIGHT_SHIFT)
    __eq__ = _binary(ops.EQUAL)[0]  # type: ignore[assignment]  # elementwise
    __ne__ = _binary(ops.NOT_EQUAL)[0]  # type: ignore[assignment]  # elementwise
    __lt__ = _binary(ops.LESS)[0]
    __le__ = _binary(ops.LESS_EQUAL)[0]
    __gt__ = _binary(ops.GREATER)[0]
    __ge__ = _binary(ops.GREATER_EQUAL)[0]
    __neg__ = _unary(ops.NEGATIVE)
    __pos__ = _unary(ops.POSITIVE)
    __abs__ = _unary(ops.ABS)
    __invert__ = _unary(ops.BITWISE_INVERT)


# --- what a layout's own ops are made with -------------------------------------------------------


def make_node(
    op: Op, operands: Sequence[Tensor], shape: Shape, dtype: DType, attrs: object = None
) -> Tensor:
    """The pending result of a row of one's own (`Op` of kind "kernel") on strided tensors."""
    args = tuple([t._expr for t in operands])
    return make(node(op, args, spec(shape, dtype, operands[0].device), attrs))


def gather_at(x: Tensor, at: Mapping[int, Tensor], shape: Shape, axes: Shape) -> Tensor:
    """`x` read at computed places, unchecked: they must be in range and not negative.

    `at`: by axis of `x` its positions, which broadcast to the result's `shape`. `axes`: for each
    axis of the result that of `x`, or -1. Axes of `x` named nowhere have size 1.
    """
    operands = (x, *at.values())
    return make_node(ops.GATHER, operands, shape, x.dtype, (shape, axes, tuple(at), None))


def rows_at(x: Tensor, at: Tensor) -> Tensor:
    """Rows of `x` at the places `at` along its first axis, unchecked."""
    column = view(at, ("reshape", (at.size, *(1,) * (x.ndim - 1))))
    return gather_at(x, {0: column}, (at.size, *x.shape[1:]), (-1, *range(1, x.ndim)))


def scatter_rows(x: Tensor, values: Tensor, at: Tensor) -> Tensor:
    """`x` with rows of `values` at the places `at` along its first axis, unchecked and distinct."""
    column = view(at, ("reshape", (at.size, *(1,) * (values.ndim - 1))))
    positions = view(column, ("expand", values.shape))
    return make_node(
        ops.SCATTER, (x, values, positions), x.shape, x.dtype, Manner("set", unique=True)
    )
