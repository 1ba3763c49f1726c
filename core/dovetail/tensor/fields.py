"""The fields of a Tensor, for the hot path: compiled (`fields.pyx`), they are read in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard
from weakref import ref

from ..graph.weak import alive

if TYPE_CHECKING:
    from ..graph.expr import Expr
    from .tensor import Tensor

new = object.__new__


class Fields:
    """The base of Tensor: compiled, it has what links tensors over one memory."""

    __slots__ = ()


class Aliases:
    """The tensors over one memory, once there are several.

    A write to one concerns the gradients of the others. `taped`: whether any of them may have a
    tape.
    """

    __slots__ = ("_refs", "taped")

    _refs: list[ref[Tensor]]
    taped: bool

    def __init__(self) -> None:
        self._refs, self.taped = [], False

    def add(self, y: Tensor) -> None:
        """Notes another one."""
        y._aliases = self
        self._refs.append(ref(y))
        if y._expr.tape is not None:
            self.taped = True
        n = len(self._refs)
        if n >= 64 and not n & (n - 1):  # when doubled, so that many live ones cost no more each
            self._refs = alive(self._refs)

    def leave(self, x: Tensor) -> None:
        """Forgets one, whose memory is another one now."""
        self._refs = [r for r in self._refs if r() is not x]
        x._aliases = None

    def live(self) -> list[Tensor]:
        """Those that are still there."""
        return [t for r in self._refs if (t := r()) is not None]


_tensor: type[Tensor] | None = None


def bind(tensor: type[Tensor]) -> None:
    """Says which class this is about."""
    global _tensor
    _tensor = tensor


def expr_of(x: Tensor) -> Expr:
    """The node of a strided tensor."""
    return x._expr


def become(x: Tensor, e: Expr) -> None:
    """Has a tensor stand for another node."""
    x._expr = e


def is_strided(x: object) -> TypeGuard[Tensor]:
    """Whether it is a Tensor over strided memory: of that class, and no other."""
    return type(x) is _tensor


def aliases_of(x: Tensor) -> Aliases | None:
    """The tensors over the same memory, once there are several."""
    return x._aliases


def alias(x: Tensor, y: Tensor) -> Tensor:
    """`y`, noted as sharing x's memory."""
    group = x._aliases
    if group is None:
        group = Aliases()
        group.add(x)
    group.add(y)
    return y


def made(kind: type[Tensor], e: Expr) -> Tensor:
    """A tensor of a node."""
    x = new(kind)
    x._expr = e
    x._aliases = None
    return x
