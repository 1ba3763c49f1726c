"""Plain calls of public functions: the compiled form, `plain_calls.pyx`, runs them in C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..declarations import Function
from ..ops.table import Op
from ..tensor.tensor import Tensor
from .graph_cache import CachedFunction

F = TypeVar("F", bound=Function)


Known = Callable[[Any], Tensor | None]


def accelerate(function: F, work: Op | CachedFunction | Known) -> F:
    """Return a public function, if compiled as an object that runs its plain calls in C.

    work: what the function does in a plain call. For an op, such a call has all operands, neither
        keywords nor further arguments; for a cached function, it has no `out`. Another function
        gets the only argument, and returns None if the public function must be called.
    """
    return function
