"""The names of `dovetail.numpy`, built from those of the installed NumPy."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as host

from ..tensor.tensor import Tensor
from . import adapted, creation, small_arrays
from .array_class import flatiter, ndarray
from .calls import (
    as_result,
    call_on_host,
    find_function,
    find_tensor,
    is_tracing,
    join,
    to_host,
    wrap_host_function,
)
from .ufuncs import UFUNCS, find_ufunc, ufunc


class IndexGrid:
    """`np.mgrid` or `np.ogrid`: grids of indices by slices, as ndarrays.

    - `theirs`: NumPy's object.
    """

    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs

    def __getitem__(self, key: Any) -> Any:
        return as_result(self._theirs[key])


class Concatenator:
    """`np.r_` or `np.c_`: values and slices joined along an axis, as an ndarray.

    - `theirs`: NumPy's object.
    """

    def __init__(self, theirs: Any) -> None:
        self._theirs, self._axis = theirs, theirs.axis

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if find_tensor(keys) is None or any(isinstance(k, str) for k in keys):
            return as_result(self._theirs[tuple(map(to_host, keys))])
        arrays = [as_result(host.r_[k]) if isinstance(k, slice) else join(k) for k in keys]
        if self._axis == 0:
            return NAMESPACE["concatenate"]([NAMESPACE["atleast_1d"](p) for p in arrays])
        columns = [p.reshape(-1, 1) if p.ndim < 2 else p for p in arrays]
        return NAMESPACE["concatenate"](columns, axis=-1)


def _vectorize_calls(theirs: Any) -> Any:
    """Return NumPy's `vectorize` with ndarrays for results."""

    class vectorize(theirs):  # type: ignore[misc]  # NumPy's class
        """A function of numbers that is called for each element, by NumPy on the host."""

        def __call__(self, *args: Any, **options: Any) -> Any:
            return call_on_host(super().__call__, args, options)

    return vectorize


def _isscalar(element: Any) -> bool:
    """Return True for a number: one of Python, of NumPy, or an ndarray of no dimensions."""
    return bool(host.isscalar(element))


def _iterable(y: Any) -> bool:
    """Return True if a value can be iterated."""
    return y.ndim > 0 if isinstance(y, Tensor) else bool(host.iterable(y))


def _linspace(start: Any, stop: Any, num: int = 50, *args: Any, **options: Any) -> Any:
    """Return evenly spaced numbers between two ends, which may be arrays."""
    if not args and not options and type(start) in (int, float) and type(stop) in (int, float):
        return as_result(host.linspace(start, stop, int(num)))
    return find_function(host.linspace)(start, stop, int(num), *args, **options)


def _eig_as_numpy(ours: Callable[..., Any]) -> Callable[..., Any]:
    """Return `eig` or `eigvals`, real if all eigenvalues are, unless it is captured."""

    def call(a: Any) -> Any:
        """Return the eigenvalues, with the vectors if the function has them."""
        if (
            find_tensor([a]) is None
            or is_tracing()
            or any(t.requires_grad for t in [a] if isinstance(t, Tensor))
        ):
            return ours(a)
        return as_result(getattr(host.linalg, ours.__name__)(to_host(a)))

    call.__name__, call.__doc__ = ours.__name__, ours.__doc__
    return call


# Names that NumPy's own code gives: indices in text, numbers as text, and checks of dtypes.
_DTYPE_FUNCTIONS = "can_cast result_type promote_types min_scalar_type issubdtype isdtype"
_OWN: dict[str, Any] = {
    **{name: getattr(small_arrays, name) for name in small_arrays.FUNCTIONS},
    **{name: getattr(module, name) for module in (adapted, creation) for name in module.__all__},
    "ndarray": ndarray,
    "flatiter": flatiter,
    "ufunc": ufunc,
    "mgrid": IndexGrid(host.mgrid),
    "ogrid": IndexGrid(host.ogrid),
    "r_": Concatenator(host.r_),
    "c_": Concatenator(host.c_),
    "vectorize": _vectorize_calls(host.vectorize),
    "ix_": wrap_host_function(host.ix_),
    "isscalar": _isscalar,
    "iterable": _iterable,
    "linspace": _linspace,
    **{name: wrap_host_function(getattr(host, name)) for name in _DTYPE_FUNCTIONS.split()},
}
_HOST_CLASSES = "ndenumerate nditer broadcast nested_iters"


def build_namespace() -> dict[str, Any]:
    """Return the value of each public name: dovetail's, NumPy's wrapped, or NumPy's own."""
    names: dict[str, Any] = {}
    for name in host.__all__:
        theirs = getattr(host, name)
        if isinstance(theirs, ModuleType):
            continue  # `__getattr__` finds those that this package has not
        if name in _OWN:
            names[name] = _OWN[name]
        elif isinstance(theirs, host.ufunc):
            names[name] = UFUNCS[theirs.__name__]
        elif name in _HOST_CLASSES.split():
            names[name] = wrap_host_function(theirs)
        elif isinstance(theirs, type) or not callable(theirs):
            names[name] = theirs
        else:
            names[name] = find_function(theirs)
    return names


NAMESPACE = build_namespace()


def build_submodule(module: ModuleType) -> dict[str, Any]:
    """Return the public names of a module of NumPy, with its functions wrapped."""
    names: dict[str, Any] = {}
    for name in module.__all__:
        theirs = getattr(module, name)
        if isinstance(theirs, (type, ModuleType)) or not callable(theirs):
            names[name] = theirs
        elif isinstance(theirs, host.ufunc):
            names[name] = find_ufunc(theirs)
        else:
            names[name] = find_function(theirs)
    return names


LINALG = build_submodule(host.linalg)
LINALG |= small_arrays.LINALG
LINALG |= {name: _eig_as_numpy(LINALG[name]) for name in ("eig", "eigvals")}
