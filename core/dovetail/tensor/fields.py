"""The fields of a Tensor, for the hot path: compiled (`fields.pyx`), they are read in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from ..graph.expr import Expr
    from .tensor import Aliases, Tensor

new = object.__new__
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


def become_alias(x: Tensor, group: Aliases) -> None:
    """Says that it is one of these."""
    x._aliases = group


def made(kind: type[Tensor], e: Expr) -> Tensor:
    """A tensor of a node."""
    x = new(kind)
    x._expr = e
    x._aliases = None
    return x
