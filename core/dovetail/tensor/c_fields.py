"""The fields of a Tensor; the compiled form, `c_fields.pyx`, reads them at their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard, TypeVar
from weakref import ref

from ..errors import ArgumentTypeError
from ..graph.weak_refs import live_refs

if TYPE_CHECKING:
    from ..graph.expr import Expr
    from .tensor import Tensor

Kind = TypeVar("Kind", bound="Tensor")
new = object.__new__


class Fields:
    """The base of Tensor; the compiled form has the links between tensors over one memory."""

    __slots__ = ()


class AliasGroup:
    """The tensors that share one memory, if there are several.

    A write to one of them affects the gradients of the others.
    has_tape: True if any of them may have a tape.
    """

    __slots__ = ("_refs", "has_tape")

    _refs: list[ref[Tensor]]
    has_tape: bool

    def __init__(self) -> None:
        self._refs, self.has_tape = [], False

    def add(self, y: Tensor) -> None:
        """Add a tensor by weak reference, and set its `_aliases` to this group."""
        y._aliases = self
        self._refs.append(ref(y))
        if y._expr.tape is not None:
            self.has_tape = True
        n = len(self._refs)
        if n >= 64 and not n & (n - 1):  # at doubled sizes, so the cost per tensor is constant
            self._refs = live_refs(self._refs)

    def remove(self, x: Tensor) -> None:
        """Remove a tensor that no longer shares the memory; its `_aliases` becomes None."""
        self._refs = [r for r in self._refs if r() is not x]
        x._aliases = None

    def live_tensors(self) -> list[Tensor]:
        """Return the tensors that are alive."""
        return [t for r in self._refs if (t := r()) is not None]


_tensor: type[Tensor] | None = None


def register_tensor_class(tensor: type[Tensor]) -> None:
    """Store the class Tensor, which `is_strided` compares with."""
    global _tensor
    _tensor = tensor
    _strided_classes.add(tensor)


_strided_classes: set[type] = set()  # Tensor and its registered subclasses


def register_subclass(kind: type[Tensor]) -> None:
    """Let the core treat instances of a subclass of Tensor without fields as strided tensors.

    - `kind`: the subclass, with `__slots__ = ()`. Results of operations on it keep the class.

    Raises: ArgumentTypeError for another class.
    """
    if _tensor is None or not issubclass(kind, _tensor) or kind.__dict__.get("__slots__") != ():
        raise ArgumentTypeError(
            f"register_subclass: {kind.__name__} must derive from Tensor and have __slots__ = ()"
        )
    _strided_classes.add(kind)


def set_class(x: Tensor, kind: type[Kind]) -> Kind:
    """Change the class of a strided tensor in place, and return it.

    - `x`: the tensor.
    - `kind`: Tensor or a registered subclass.

    Raises: ArgumentTypeError for another object or class.
    """
    if type(x) not in _strided_classes or kind not in _strided_classes:
        raise ArgumentTypeError(
            "set_class: expected a strided tensor, and Tensor or a registered subclass; got "
            f"{type(x).__name__} and {kind}; call register_subclass first"
        )
    if type(x) is not kind:
        x.__class__ = kind
    return x  # type: ignore[return-value]  # its class was set


def keep_class(result: Tensor, operand: object) -> Tensor:
    """Give a new Tensor the class of `operand`, if that is a subclass, and return it."""
    kind = type(operand)
    if kind is not _tensor and type(result) is _tensor and kind in _strided_classes:
        result.__class__ = kind  # type: ignore[assignment]  # a subclass
    return result


def expr_of(x: Tensor) -> Expr:
    """Return the node of a strided tensor."""
    return x._expr


def become(x: Tensor, e: Expr) -> None:
    """Replace the node of a tensor in place; its aliases are not changed."""
    x._expr = e


def is_strided(x: object) -> TypeGuard[Tensor]:
    """Return True for a Tensor over strided memory: of that class or a registered subclass."""
    return type(x) in _strided_classes


def aliases_of(x: Tensor) -> AliasGroup | None:
    """Return the group of tensors that share the memory, or None if there are no others."""
    return x._aliases


def record_alias(x: Tensor, y: Tensor) -> Tensor:
    """Add `x` and `y`, its view, to one alias group, and return `y` with the class of `x`."""
    keep_class(y, x)
    group = x._aliases
    if group is None:
        group = AliasGroup()
        group.add(x)
    group.add(y)
    return y


def create_view(x: Tensor, e: Expr) -> Tensor:
    """Return a tensor over a leaf without a tape, in memory that it shares with `x`."""
    return record_alias(x, new_tensor(type(x), e))


def new_tensor(kind: type[Tensor], e: Expr) -> Tensor:
    """Create a tensor of class `kind` over a node, in no alias group yet; evaluate nothing."""
    x = new(kind)
    x._expr = e
    x._aliases = None
    return x
