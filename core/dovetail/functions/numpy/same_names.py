"""NumPy's functions that dovetail has by the same name, with nearly the same parameters.

Arguments are matched with NumPy's parameters; those that are what NumPy has for them anyway are
left out, and what is given in a place here is given in the same place there. See `protocol`,
which has those whose parameters differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from inspect import Parameter, Signature, signature
from types import ModuleType
from typing import TypeAlias

import numpy as np

from ...errors import DTypeError, NotYetAttribute
from ...tensor.operands import beside
from ...tensor.tensor import Tensor
from ...tensor.writes import write_out

Function: TypeAlias = Callable[..., object]
Given: TypeAlias = dict[str, object]

NAMES = {  # of the functions of a module of NumPy that dovetail's module of that name has
    "numpy": """
        median quantile percentile nanmedian nanquantile nanpercentile nansum nanprod nanmean nanvar
        nanstd nanmin nanmax nanargmin nanargmax nancumsum nancumprod ptp average cov corrcoef
        histogram histogram2d histogram_bin_edges bincount digitize pad interp gradient trapezoid
        convolve correlate ediff1d polyval polyfit vander unique nan_to_num sinc i0 kron inner vdot
        cross trace diag diagflat rot90 fliplr flipud dstack column_stack array_split hsplit vsplit
        dsplit atleast_3d select piecewise choose put_along_axis fmax fmin fmod logaddexp2
        bitwise_count matvec vecmat isneginf isposinf isreal iscomplex unwrap lexsort
        partition argpartition roots poly polyadd polysub polymul polyder polyint unravel_index
        ravel_multi_index ix_ tril_indices_from triu_indices_from diag_indices_from union1d
        intersect1d setdiff1d setxor1d append insert delete extract compress flatnonzero trim_zeros
        fill_diagonal resize block place put putmask copyto frexp modf
    """,
    "numpy.fft": """
        fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftshift ifftshift fft2 ifft2 rfft2
        irfft2
    """,
}
OF_UFUNCS = {
    name: Parameter(name, Parameter.KEYWORD_ONLY, default=default)
    for name, default in {
        "dtype": None, "casting": "same_kind", "order": "K", "subok": True, "where": True,
        "signature": None,
    }.items()
}  # fmt: skip
RENAMED = {"ddof": "correction"}
MEANINGLESS = {"overwrite_input", "sorted", "copy"}  # whatever they are, a new tensor comes out


def lacking(name: str, why: str = "dovetail has no such function") -> DTypeError:
    """The error for what NumPy has and dovetail has not."""
    return DTypeError(f"np.{name}: {why}; for NumPy's, on the host, give it np.asarray(x)")


@lru_cache(512)
def signature_of(function: Function) -> Signature:
    """A function's parameters, without what takes the names of others."""
    found = signature(function)
    own = [p for p in found.parameters.values() if p.name not in ("more", "theirs")]
    return found if len(own) == len(found.parameters) else found.replace(parameters=own)


def called(name: str, ours: Function, args: tuple[object, ...], given: Given) -> object:
    """What ours gives for NumPy's arguments. Raises: DTypeError for those that it does not take."""
    try:
        bound = signature_of(ours).bind(*args, **given)
    except TypeError as error:
        raise lacking(name, f"dovetail's has other parameters ({error})") from None
    return ours(*bound.args, **bound.kwargs)


def without_usual(function: Function | np.ufunc, ours: Function, given: Given) -> Given:
    """Return the keywords without those that ours lacks and that have NumPy's default value."""
    mine, theirs = signature_of(ours).parameters, _keywords(function)
    return {
        k: v
        for k, v in given.items()
        if k in mine or k not in theirs or not _as_usual(theirs[k], v)
    }


@lru_cache(512)
def _keywords(function: Function | np.ufunc) -> Mapping[str, Parameter]:
    if isinstance(function, np.ufunc):
        return OF_UFUNCS
    try:
        return signature_of(function).parameters
    except ValueError:  # NumPy's in C, of before 2.4
        return {}


def full_name(function: Function) -> str:
    """As users write it, behind `np.`."""
    module = function.__module__.removeprefix("numpy").lstrip(".")
    return f"{module}.{function.__name__}" if module else function.__name__


@lru_cache(512)
def namesake(function: Function) -> Function | None:
    """dovetail's function of the same name."""
    home, name = getattr(function, "__module__", "numpy"), function.__name__
    if name not in NAMES.get(home, "").split():
        return None
    try:
        found: Function = getattr(_namespace(*home.split(".")[1:]), name)
    except NotYetAttribute:
        return None
    return found


def _namespace(*inner: str) -> ModuleType:
    """What users import: transforms and fits stand above this package."""
    found = sys.modules[__name__.partition(".")[0]]
    for part in inner:
        found = getattr(found, part)
    return found


def by_name(
    x: Tensor, function: Function, ours: Function, args: tuple[object, ...], given: Given
) -> object:
    """The result of a namesake for NumPy's arguments.

    Raises: DTypeError for parameters that dovetail's has not; else as the function.
    """
    name = full_name(function)
    try:
        bound = signature_of(function).bind(*args, **given)
    except TypeError as error:
        raise lacking(name, str(error)) from None
    wanted = dict(bound.arguments)
    out = wanted.pop("out", None)
    places, options = _matched(signature_of(function).parameters, wanted, ours)
    if places and isinstance(places[0], np.ndarray):
        places[0] = beside(name, places[0], (x,))
    made = called(name, ours, tuple(places), options)
    return made if out is None else _written(name, out, made)


def _matched(
    theirs: Mapping[str, Parameter], wanted: Given, ours: Function
) -> tuple[list[object], Given]:
    """What ours is given by place and by name, for what NumPy's was given."""
    meant = {k: v for k, v in wanted.items() if not _as_usual(theirs[k], v)}
    places: list[object] = []
    mine = [p for p in signature_of(ours).parameters.values() if p.kind is p.POSITIONAL_ONLY]
    for k, p in zip(list(theirs), mine, strict=False):
        if k not in meant and p.default is not p.empty:
            break
        places.append(wanted[k])
        meant.pop(k, None)
    options: Given = {}
    for k, v in meant.items():
        if theirs[k].kind is Parameter.VAR_POSITIONAL and isinstance(v, tuple):
            places += v
        elif theirs[k].kind is Parameter.VAR_KEYWORD and isinstance(v, dict):
            options |= v
        elif k not in MEANINGLESS:
            options[RENAMED.get(k, k)] = v
    return places, options


def _as_usual(p: Parameter, value: object) -> bool:
    """Whether an argument is what it is without being given."""
    if p.default is p.empty:
        return value in ((), {}) if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) else False
    plain = isinstance(value, (bool, int, float, str, tuple))
    return value is p.default or (plain and type(value) is type(p.default) and value == p.default)


def _written(name: str, out: object, made: object) -> Tensor:
    if not isinstance(out, Tensor) or not isinstance(made, Tensor):
        raise lacking(name, "out= is no tensor, and an operand is one")
    return write_out(name, out, made)
