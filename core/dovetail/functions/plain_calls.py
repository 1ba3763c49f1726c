"""Plain calls of public functions: the compiled form, `plain_calls.pyx`, runs them in C."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..declarations import Function
from ..ops.table import Op
from ..tensor.tensor import Tensor
from .graph_cache import CachedFunction

F = TypeVar("F", bound=Function)


Known = Callable[..., Tensor | None]


def accelerate(function: F, work: Op | CachedFunction | Known, count: int = 1) -> F:
    """Return a public function, if compiled as an object that runs its plain calls in C.

    work: what the function does in a plain call. For an op, such a call has all operands, neither
        keywords nor further arguments; for a reduction, a tensor, `axis` and `keepdims`; for a
        cached function, it has no `out`. Another function gets `count` arguments, and returns None
        if the public function must be called.
    """
    return function


def cache_view_calls(function: F) -> F:
    """Wrap a function that returns a view: if compiled, its latest calls are repeated in C.

    A result that is a view of the first operand must depend on the operand's layout and the other
    arguments alone.
    """
    return function


def accelerate_evaluate(function: F) -> F:
    """Return `evaluate`, if compiled as an object that computes one tensor in C."""
    return function
