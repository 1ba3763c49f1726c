"""`np.random`: NumPy's own generators; samples are drawn on the host and become ndarrays.

The streams are NumPy's bit for bit, for `default_rng`, `Generator`, `RandomState` and the functions
with a global state, which is that of NumPy itself. `dt.random` draws on the device, and has the
same bits on each device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as host
import numpy.random as _theirs

from .array_class import upload
from .calls import call_on_host, is_tracing, require_untraced, to_host

_BIT_GENERATORS = "BitGenerator MT19937 PCG64 PCG64DXSM Philox SFC64 SeedSequence"
_STATE_METHODS = {"spawn", "bit_generator", "get_state", "set_state", "seed"}


def _draws(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function or method of NumPy whose samples become ndarrays."""

    @wraps(function, updated=(), assigned=("__name__", "__qualname__", "__doc__"))
    def call(*args: Any, **options: Any) -> Any:
        if is_tracing():
            require_untraced(
                f"np.random.{name}",
                "draw before and pass the samples, or use dt.random.normal, ...",
            )
        if options:
            return call_on_host(function, args, options)
        return upload(function(*[a if type(a) in _PLAIN else to_host(a) for a in args]))

    return call


def _wrap_class(theirs: Any) -> Any:
    """Return a subclass of a generator of NumPy whose methods return ndarrays."""
    methods = {
        name: _draws(name, method)
        for name, method in vars(theirs).items()
        if not name.startswith("_") and callable(method) and name not in _STATE_METHODS
    }
    doc = f"NumPy's {theirs.__name__}; samples become ndarrays."
    return type(theirs.__name__, (theirs,), {"__doc__": doc, "__module__": __name__, **methods})


_PLAIN: set[type] = {int, float, type(None), host.ndarray}  # arguments that NumPy takes as they are
Generator: Any = _wrap_class(_theirs.Generator)
RandomState: Any = _wrap_class(_theirs.RandomState)
_PLAIN |= {Generator, RandomState}


def default_rng(seed: Any = None) -> Any:
    """Return a Generator with NumPy's default bit generator, from a seed or as it is.

    - `seed`: None, an int, a sequence of ints, a SeedSequence, a bit generator or a Generator.

    >>> import dovetail.numpy as np
    >>> np.random.default_rng(0).integers(10, size=3)
    array([8, 6, 5])
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(_theirs.default_rng(to_host(seed)).bit_generator)


__all__ = sorted(_theirs.__all__)
for _name in __all__:
    if _name not in globals():
        _value = getattr(_theirs, _name)
        is_function = callable(_value) and _name not in _BIT_GENERATORS.split()
        globals()[_name] = (
            _draws(_name, _value) if is_function and _name not in _STATE_METHODS else _value
        )


def __dir__() -> list[str]:
    return __all__
