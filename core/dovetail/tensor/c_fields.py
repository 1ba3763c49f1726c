"""The fields of a Tensor; the compiled form, `c_fields.pyx`, reads them at their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard
from weakref import ref

from ..graph.weak_refs import alive

if TYPE_CHECKING:
    from ..graph.expr import Expr
    from .tensor import Tensor

new = object.__new__


class Fields:
    """The base of Tensor; the compiled form has the links between tensors over one memory."""

    __slots__ = ()


class Aliases:
    """The tensors that share one memory, if there are several.

    A write to one of them affects the gradients of the others.
    taped: True if any of them may have a tape.
    """

    __slots__ = ("_refs", "taped")

    _refs: list[ref[Tensor]]
    taped: bool

    def __init__(self) -> None:
        self._refs, self.taped = [], False

    def add(self, y: Tensor) -> None:
        """Add a tensor."""
        y._aliases = self
        self._refs.append(ref(y))
        if y._expr.tape is not None:
            self.taped = True
        n = len(self._refs)
        if n >= 64 and not n & (n - 1):  # at doubled sizes, so the cost per tensor is constant
            self._refs = alive(self._refs)

    def leave(self, x: Tensor) -> None:
        """Remove a tensor that no longer shares the memory."""
        self._refs = [r for r in self._refs if r() is not x]
        x._aliases = None

    def live(self) -> list[Tensor]:
        """Return the tensors that are alive."""
        return [t for r in self._refs if (t := r()) is not None]


_tensor: type[Tensor] | None = None


def bind(tensor: type[Tensor]) -> None:
    """Register the class Tensor."""
    global _tensor
    _tensor = tensor


def expr_of(x: Tensor) -> Expr:
    """Return the node of a strided tensor."""
    return x._expr


def become(x: Tensor, e: Expr) -> None:
    """Replace the node of a tensor."""
    x._expr = e


def is_strided(x: object) -> TypeGuard[Tensor]:
    """Return True for a Tensor over strided memory: of exactly that class."""
    return type(x) is _tensor


def aliases_of(x: Tensor) -> Aliases | None:
    """Return the tensors that share the memory, or None if there are no others."""
    return x._aliases


def alias(x: Tensor, y: Tensor) -> Tensor:
    """Record that `y` shares the memory of `x`, and return `y`."""
    group = x._aliases
    if group is None:
        group = Aliases()
        group.add(x)
    group.add(y)
    return y


def new_tensor(kind: type[Tensor], e: Expr) -> Tensor:
    """Create a tensor of a node."""
    x = new(kind)
    x._expr = e
    x._aliases = None
    return x
