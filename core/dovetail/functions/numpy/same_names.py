"""NumPy's functions that dovetail has under the same name, with nearly the same parameters.

Arguments are bound to NumPy's parameters. Those that equal NumPy's defaults are dropped, positional
arguments keep their positions. `protocol` has the functions whose parameters differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from inspect import Parameter, Signature, signature
from types import ModuleType
from typing import TypeAlias

import numpy as np

from ...errors import UnknownFunctionError
from ...tensor.promotion import as_operand
from ...tensor.tensor import Tensor
from ...tensor.writes import write_out

Function: TypeAlias = Callable[..., object]
Keywords: TypeAlias = dict[str, object]

NAMESAKES_BY_MODULE = {  # NumPy's module -> its functions that dovetail's module of that name has
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
UFUNC_KEYWORDS = {
    name: Parameter(name, Parameter.KEYWORD_ONLY, default=default)
    for name, default in {
        "dtype": None,
        "casting": "same_kind",
        "order": "K",
        "subok": True,
        "where": True,
        "signature": None,
    }.items()
}
RENAMED_KEYWORDS = {"ddof": "correction"}
IGNORED_KEYWORDS = {
    "overwrite_input",
    "sorted",
    "copy",
}  # the result is a new tensor for every value


PLAIN = (bool, int, float, str, tuple, type(None))  # of values that can be compared


def not_supported_error(
    name: str, reason: str = "dovetail has no such function"
) -> UnknownFunctionError:
    """Return the error for a function or parameter of NumPy that dovetail lacks."""
    return UnknownFunctionError(
        f"np.{name}: {reason}; to use NumPy's on the host, pass np.asarray(x)"
    )


@lru_cache(512)
def signature_of(function: Function) -> Signature:
    """Return a function's signature, without the parameters that collect other names."""
    full = signature(function)
    own = [p for p in full.parameters.values() if p.name not in ("more", "theirs")]
    return full if len(own) == len(full.parameters) else full.replace(parameters=own)


@lru_cache(1024)
def _name_arguments(function: Function, count: int, keywords: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parameters of `count` positional arguments, then of those by keyword.

    The values of a parameter that collects several have its name once.
    Raises: TypeError if the function does not take these arguments.
    """
    bound = signature_of(function).bind(*range(count), **dict.fromkeys(keywords))
    return tuple(bound.arguments)


def call_with_signature(
    name: str, implementation: Function, args: tuple[object, ...], keywords: Keywords
) -> object:
    """Call dovetail's function with NumPy's arguments.

    Raises: DTypeError for arguments that it does not take.
    """
    try:
        _name_arguments(implementation, len(args), tuple(keywords))
    except TypeError as error:
        raise not_supported_error(
            name, f"dovetail's function has other parameters ({error})"
        ) from None
    return implementation(*args, **keywords)


def drop_default_keywords(
    function: Function | np.ufunc, implementation: Function, keywords: Keywords
) -> Keywords:
    """Return the keywords without those that ours lacks and that have NumPy's default value."""
    if not keywords:
        return keywords
    mine, theirs = signature_of(implementation).parameters, _keyword_parameters(function)
    return {
        k: v
        for k, v in keywords.items()
        if k in mine or k not in theirs or not _is_default(theirs[k], v)
    }


@lru_cache(512)
def _keyword_parameters(function: Function | np.ufunc) -> Mapping[str, Parameter]:
    """Return a NumPy function's parameters; empty if its signature is not known."""
    if isinstance(function, np.ufunc):
        return UFUNC_KEYWORDS
    try:
        return signature_of(function).parameters
    except ValueError:  # functions in C, before NumPy 2.4
        return {}


@lru_cache(512)
def full_name(function: Function) -> str:
    """Return a function's name as users write it after `np.`."""
    module = function.__module__.removeprefix("numpy").lstrip(".")
    return f"{module}.{function.__name__}" if module else function.__name__


@lru_cache(512)
def namesake(function: Function) -> Function | None:
    """Return dovetail's function of the same name if NAMESAKES_BY_MODULE lists it, or None."""
    home, name = getattr(function, "__module__", "numpy"), function.__name__
    if name not in NAMESAKES_BY_MODULE.get(home, "").split():
        return None
    same: Function = getattr(_namespace(*home.split(".")[1:]), name)
    return same


def _namespace(*inner: str) -> ModuleType:
    """Return dovetail or a module in it, such as `dt.fft`, by attribute access."""
    namespace = sys.modules[__name__.partition(".")[0]]
    for part in inner:
        namespace = getattr(namespace, part)
    return namespace


def call_namesake(
    x: Tensor,
    function: Function,
    implementation: Function,
    args: tuple[object, ...],
    keywords: Keywords,
) -> object:
    """Call a namesake with NumPy's arguments.

    Raises: DTypeError for parameters that dovetail's function lacks; else as the function.
    """
    name = full_name(function)
    try:
        names = _name_arguments(function, len(args), tuple(keywords))
    except TypeError as error:
        raise not_supported_error(name, str(error)) from None
    if len(names) == len(args) + len(keywords) and not _collects(function):
        arguments = dict(zip(names, args, strict=False)) | keywords
    else:
        arguments = dict(signature_of(function).bind(*args, **keywords).arguments)
    out = arguments.pop("out", None)
    positional, options = _match_parameters(
        signature_of(function).parameters, arguments, implementation
    )
    if positional and isinstance(positional[0], np.ndarray):
        positional[0] = as_operand(name, positional[0], (x,))
    result = call_with_signature(name, implementation, tuple(positional), options)
    return result if out is None else _write_out(name, out, result)


def has_same_parameters(
    function: Function, implementation: Function, count: int, keywords: Sequence[str]
) -> bool:
    """Return True if both functions give the arguments of a call the same meaning.

    Parameters behind the first one must have the same name and default, and be used as they are.

    count: the number of positional arguments.
    keywords: the names of the others.
    """
    theirs, mine = signature_of(function).parameters, signature_of(implementation).parameters
    pairs = [*zip(theirs.values(), mine.values(), strict=False)][:count]
    if len(pairs) < count or not all(name in theirs and name in mine for name in keywords):
        return False
    used = [*pairs[1:], *((theirs[name], mine[name]) for name in keywords)]
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return (
        all(p.kind in positional and q.kind in positional for p, q in pairs)
        and all(q.kind is not Parameter.POSITIONAL_ONLY for q in (mine[k] for k in keywords))
        and all(p.name == q.name and p.name not in IGNORED_KEYWORDS for p, q in used)
        and all(p.default == q.default or not isinstance(p.default, PLAIN) for p, q in used)
    )


def _match_parameters(
    numpy_parameters: Mapping[str, Parameter], arguments: Keywords, implementation: Function
) -> tuple[list[object], Keywords]:
    """Return the arguments of ours for NumPy's: renamed, without defaults and ignored ones.

    Arguments that ours lacks are kept; the call raises for them later.
    """
    explicit = {k: v for k, v in arguments.items() if not _is_default(numpy_parameters[k], v)}
    positional: list[object] = []
    for k, p in zip(numpy_parameters, _positional_only(implementation), strict=False):
        if k not in explicit and p.default is not p.empty:
            break
        positional.append(arguments[k])
        explicit.pop(k, None)
    options: Keywords = {}
    for k, v in explicit.items():
        if numpy_parameters[k].kind is Parameter.VAR_POSITIONAL and isinstance(v, tuple):
            positional += v
        elif numpy_parameters[k].kind is Parameter.VAR_KEYWORD and isinstance(v, dict):
            options |= v
        elif k not in IGNORED_KEYWORDS:
            options[RENAMED_KEYWORDS.get(k, k)] = v
    return positional, options


@lru_cache(512)
def _positional_only(function: Function) -> tuple[Parameter, ...]:
    """Return the parameters of a function that are given by position alone."""
    every = signature_of(function).parameters.values()
    return tuple([p for p in every if p.kind is p.POSITIONAL_ONLY])


@lru_cache(512)
def _collects(function: Function) -> bool:
    """Return True if a parameter of a function collects several arguments."""
    kinds = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return any(p.kind in kinds for p in signature_of(function).parameters.values())


def _is_default(p: Parameter, value: object) -> bool:
    """Return True if an argument equals its parameter's default."""
    if p.default is p.empty:
        return value in ((), {}) if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) else False
    is_plain = isinstance(value, PLAIN)
    return value is p.default or (
        is_plain and type(value) is type(p.default) and value == p.default
    )


def _write_out(name: str, out: object, result: object) -> Tensor:
    """Write a result into `out` and return it. Raises: DTypeError unless both are tensors."""
    if not isinstance(out, Tensor) or not isinstance(result, Tensor):
        raise not_supported_error(name, "out= must be a tensor if an operand is one")
    return write_out(name, out, result)
