"""`np.testing`: NumPy's assertions; arrays are compared on the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy.testing as _theirs

from ..functions.numpy.protocol import call_with_host_values


def _with_host_values(assertion: Callable[..., Any]) -> Callable[..., Any]:
    """Return an assertion that gets arrays of NumPy in place of tensors."""

    @wraps(assertion)
    def call(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        return call_with_host_values(assertion, args, options)

    return call


__all__ = sorted(_theirs.__all__)
globals().update(
    {
        name: _with_host_values(getattr(_theirs, name))
        if name.startswith(("assert_a", "assert_e", "assert_string")) and "no_" not in name
        else getattr(_theirs, name)
        for name in __all__
    }
)


def __getattr__(name: str) -> object:
    """Return a name of `numpy.testing` that is not in its `__all__`."""
    return getattr(_theirs, name)


def __dir__() -> list[str]:
    return __all__
