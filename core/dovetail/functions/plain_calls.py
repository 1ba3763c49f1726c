"""Plain calls of public functions: the compiled form, `plain_calls.pyx`, runs them in C."""

from __future__ import annotations

from typing import TypeVar

from ..declarations import Function
from ..ops.table import Op
from .graph_cache import CachedFunction

F = TypeVar("F", bound=Function)


def accelerate(function: F, work: Op | CachedFunction) -> F:
    """Return a public function, if compiled as an object that runs its plain calls in C.

    work: what the function does in a plain call. For an op, such a call has all operands, neither
        keywords nor further arguments; for a cached function, it has no `out`.
    """
    return function
