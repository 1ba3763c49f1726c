"""Variants of functions: `out=`, and methods `x.name_()` that write their result into the tensor.

A function that allocates its result has a parameter `out` in its signature. The wrapper of
`wrap_with_out` writes the result there; the function never gets `out`. `in_place_method` builds the
method that writes a result of equal shape into its first operand, or that fills a tensor with
random numbers. `op_functions` and `primitives` build these variants of op-table rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache as cache_results
from inspect import Parameter, Signature, getdoc, signature
from typing import Any

from .. import callbacks, settings
from ..argument_checks import sequence
from ..compat.keywords import (
    Options,
    Parameters,
    accepts_arguments,
    call_translated,
    parameters,
    rebind_keywords,
)
from ..declarations import Cache, Function, Widen, add_name, finish_wrapper, set_variants
from ..declarations import public as public  # which needs what this module sets
from ..errors import ArgumentError, DovetailError
from ..tensor.c_fields import expr_of
from ..tensor.tensor import Tensor, required, strided
from ..tensor.writes import (
    require_fits_out,
    require_strided_target,
    write_node_out,
    write_result,
)
from ..tracebacks import hide_internal_frames
from .graph_cache import CachedFunction
from .half_precision import call_in_float32, holds_half, widen_halves
from .plain_calls import accelerate

CREATION_OPTIONS = ("dtype", "device")  # a creation function takes these from `out`
KEYWORD_ONLY = ("generator",)


def wrap_with_out(function: Function, widen: Widen, cache: Cache) -> Function:
    """Return the function with a wrapper that writes the result into `out`; see `public`.

    The function has the parameter `out` only for its signature; it never gets a value.
    """
    graph_cache = (
        CachedFunction(widen_halves(function, widen), creates=cache == "creation")
        if cache
        else None
    )
    widens = widen and graph_cache is None

    def call(*args: Any, out: Any = None, **options: Any) -> Any:
        """Call the function and write into `out` if given; translate other libraries' names."""
        if (run := callbacks.run_autocast) is not None:
            every = options if out is None else {**options, "out": out}
            result = run(call, function.__name__, args, every)
            if result is not callbacks.NOT_ACTIVE:
                return result
        if out is not None:
            options = _options_like_out(out, parameters(function), options)
        try:
            if graph_cache is not None:
                result = graph_cache.call(args, options)
            elif widens and holds_half(args, options):
                result = call_in_float32(function, args, options, widen)
            else:
                result = function(*args, **options)
        except DovetailError as error:
            add_name(error, function.__name__)
            hide_internal_frames(error)
            raise
        except TypeError:
            if accepts_arguments(function, args, options):
                raise
        else:
            return result if out is None else _write_out(function.__name__, result, out)
        keywords = options if out is None else {**options, "out": out}
        try:
            return call_translated(call, function, args, keywords)
        except DovetailError as error:
            hide_internal_frames(error)
            raise

    wrapper = finish_wrapper(call, function, widen)
    return wrapper if graph_cache is None else accelerate(wrapper, graph_cache)


set_variants(holds_half, call_in_float32, wrap_with_out)


def _options_like_out(out: object, accepted: Parameters, options: Options) -> Options:
    """Return a creation function's options, with defaults for dtype and device from `out`."""
    if not isinstance(out, Tensor) or "device" not in accepted:
        return options
    return {**{n: getattr(out, n) for n in CREATION_OPTIONS if n in accepted}, **options}


def create_with_out(
    function: Callable[..., Tensor], out: Any, scope: Options, fills: bool
) -> Tensor:
    """Call a creation function with compatibility names or `out`, and write into `out` if given.

    Creation functions call this themselves only when needed: the wrapper would take half of the
    time of `dt.zeros`.

    scope: the function's locals.
    fills: False only checks that `out` fits, and leaves its elements as they are.
    """
    name = function.__name__
    if out is None:
        return rebind_keywords(function, scope)
    if scope.get("allocator") is not None:
        raise ArgumentError(
            f"{name}: out= and allocator= cannot be combined; pass only one of them"
        )
    keywords = _options_like_out(
        out, parameters(function), {n: x for n, x in scope.items() if x is not None}
    )
    result = rebind_keywords(function, {**scope, **keywords})
    if fills:
        _write_out(name, result, out)
    else:
        require_fits_out(name, out, expr_of(result))
    written: Tensor = out
    return written


def _write_out(name: str, results: Any, out: Any) -> Any:
    """Write a result, or each result of a tuple, into `out`, and return `out`."""
    if not isinstance(results, tuple):
        return write_node_out(name, out, [strided(name, results)._expr])
    outs: Sequence[Any] = sequence(name, out, "out", "tensors, one for each result")
    if len(outs) != len(results):
        raise ArgumentError(f"{name}: out= must have {len(results)} tensors, got {len(outs)}")
    for y, x in zip(outs, results, strict=True):  # check all before the first write
        require_fits_out(name, y, expr_of(strided(name, x)))
    for y, x in zip(outs, results, strict=True):
        write_node_out(name, y, [expr_of(x)])
    is_named_tuple = hasattr(results, "_fields")
    return type(results)(*outs) if is_named_tuple else tuple(outs)


# --- in place -------------------------------------------------------------------------------------

IN_PLACE_DOC = """Write the result of `dt.{0}` into this tensor's memory and return the tensor.

The result is cast to this tensor's dtype, if that loses no kind of number. Every view of the
memory sees it.
Raises: as `dt.{0}`; ReadOnlyError; GradientError for a leaf that requires one.

`dt.{0}`:
{1}"""
RANDOM_DOC = """Write numbers by `dt.random.{0}` into this tensor's memory and return the tensor.

Shape, dtype and device are this tensor's. Parameters may also be passed by position. Every view
of the memory sees the numbers.
Raises: as `dt.random.{0}`; ReadOnlyError; GradientError for a leaf that requires one.

`dt.random.{0}`:
{1}"""


@cache_results
def in_place_method(function: Function) -> Function:
    """Return the method that writes a function's result into its first operand.

    A function with a parameter `shape` has no operand: its method fills the tensor with samples.
    """
    own = signature(function)
    if "shape" in own.parameters:
        return _sampling_method(function, own)
    name = function.__name__

    def method(x: Tensor, *args: object, **options: object) -> Tensor:
        """Write the function's result into the tensor and return it."""
        require_strided_target(name, required(name, x))
        if callbacks.run_autocast is not None:  # as in PyTorch, a method that writes is not cast
            return write_result(name, x, [run_without_autocast(function, x, *args, **options)])
        return write_result(name, x, [function(x, *args, **options)])

    return _attach_signature(method, function, own, IN_PLACE_DOC, ("out",))


def run_without_autocast(function: Function, *args: Any, **options: Any) -> Any:
    """Return a function's result with autocast off."""
    before = settings.current()
    try:
        settings.set_autocast(settings.NO_AUTOCAST)
        return function(*args, **options)
    finally:
        settings.restore(before)


def _sampling_method(function: Function, own: Signature) -> Function:
    """Return the method that fills a tensor with samples of a function of `dt.random`."""
    name = function.__name__
    fixed = ("shape", *CREATION_OPTIONS, "out")
    positional = [n for n in own.parameters if n not in (*fixed, *KEYWORD_ONLY)]

    def method(x: Tensor, *args: object, **options: object) -> Tensor:
        """Fill the tensor with samples and return it.

        Raises: ArgumentError for too many positional arguments.
        """
        require_strided_target(name, required(name, x))
        if len(args) > len(positional):
            raise ArgumentError(
                f"{name}_: expected at most {len(positional)} positional arguments, got {len(args)}"
            )
        for n, value in zip(positional, args, strict=False):
            options[n] = value
        samples = function(shape=x.shape, dtype=x.dtype, device=x.device, **options)
        return write_result(name, x, [samples])

    first = Parameter("x", Parameter.POSITIONAL_ONLY, annotation="Tensor")
    return _attach_signature(method, function, own, RANDOM_DOC, fixed, first)


POSITIONAL = Parameter.POSITIONAL_OR_KEYWORD


def _attach_signature(
    method: Function,
    function: Function,
    own: Signature,
    text: str,
    excluded: Sequence[str],
    *leading_parameters: Parameter,
) -> Function:
    """Set the name, docstring and signature of a method that stands for `function`.

    excluded: parameters of the function that the method does not have.
    leading_parameters: parameters in front of the function's, which may then be passed by position.
    """
    name = function.__name__
    method.__name__ = method.__qualname__ = f"{name}_"
    method.__code__ = method.__code__.replace(co_name=f"{name}_", co_qualname=f"{name}_")
    method.__doc__ = text.format(name, getdoc(function))
    params = [p for n, p in own.parameters.items() if n not in excluded]
    if leading_parameters:
        params = [p if p.name in KEYWORD_ONLY else p.replace(kind=POSITIONAL) for p in params]
    typed_method: Any = method
    typed_method.__wrapped__ = function
    typed_method.__signature__ = own.replace(
        parameters=[*leading_parameters, *params], return_annotation="Tensor"
    )
    return method
