"""The decorator of public functions: it declares their methods, and adds what they share.

`functions/methods` sets the declared methods on `Tensor`. `functions/variants` provides what needs
tensors: half operands, `out=` and caches of graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar, cast, overload

from . import callbacks
from .compat.keywords import accepts_arguments, call_translated
from .errors import DovetailError, InternalError
from .tracebacks import hide_internal_frames

P = ParamSpec("P")
R = TypeVar("R")
Function: TypeAlias = Callable[..., Any]
Names: TypeAlias = bool | tuple[str, ...]
"""The names of methods; True is the function's own name."""
Cache: TypeAlias = bool | Literal["creation"]
Widen: TypeAlias = bool | Literal["first"]

METHODS: dict[str, Function] = {}  # by name, of the modules that are loaded
IN_PLACE_METHODS: dict[str, Function] = {}  # method name -> the function whose result it writes

holds_half: Callable[[tuple[Any, ...], dict[str, Any]], bool]
call_in_float32: Callable[[Function, tuple[Any, ...], dict[str, Any], Widen], Any]
wrap_with_out: Callable[[Function, Widen, Cache], Function]


def set_variants(holds: Function, call: Function, wrap: Function) -> None:
    """Set the functions of a higher layer that compute with halves, and wrap for `out=`."""
    global holds_half, call_in_float32, wrap_with_out
    holds_half, call_in_float32, wrap_with_out = holds, call, wrap


@overload
def public(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def public(
    *,
    method: Names = False,
    in_place: Names = False,
    out: bool = False,
    cache: Cache = False,
    widen: Widen = True,
    wrap: bool = True,
    compiled: Callable[[Function], Function] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def public(
    function: Function | None = None,
    /,
    *,
    method: Names = False,
    in_place: Names = False,
    out: bool = False,
    cache: Cache = False,
    widen: Widen = True,
    wrap: bool = True,
    compiled: Callable[[Function], Function] | None = None,
) -> Any:
    """Declare a public function: its methods, and what a wrapper adds to its calls.

    The wrapper prefixes errors with the function's name ("clip: maximum: ..."), and translates
    parameters by the names that they have in other libraries (`compat.keywords`).

    method: the function is a method, under its own name or these.
    in_place: a method writes the function's result into its first operand, or fills the tensor with
        samples; its name is the function's with "_" appended, or these.
    out: the wrapper writes the result into the argument `out`; the function never gets it.
    cache: like `out`, and the function's graph is cached by shapes, dtypes and options.
        "creation": the function has no tensor arguments.
    widen: how the function computes with float16 and bfloat16 operands. True: they are cast to
        float32, and results of float32 are rounded to the dtype to which the operands promote.
        "first": results are rounded to the dtype of the first tensor. False: the function gets its
        operands as they are, because it moves, selects or creates elements, calls a function of the
        user, or is a single op, which rounds once anyway.
    wrap: False adds no wrapper: the function is only declared, and translates names itself.
    compiled: a function that gets the wrapper, and returns it as an object that runs plain calls in
        C (`functions.plain_calls`).
    """

    def declare(function: Function) -> Function:
        """Wrap the function, and enter its methods into the tables."""
        if isinstance(method, tuple) and wrap and function.__name__.startswith("_"):
            function.__name__ = method[0]  # errors name the method
        if out or cache:
            wrapper = wrap_with_out(function, widen, cache)
        else:
            wrapper = _wrap(function, widen) if wrap else function
        if compiled is not None:
            wrapper = compiled(wrapper)
        if method:
            _enter(METHODS, method, function.__name__, wrapper)
        if in_place:
            _enter(IN_PLACE_METHODS, in_place, f"{function.__name__}_", wrapper)
        return wrapper

    return declare if function is None else declare(function)


def _enter(table: dict[str, Function], names: Names, own: str, function: Function) -> None:
    """Enter a function into a table under these names, or its own if `names` is True."""
    for name in (own,) if isinstance(names, bool) else names:
        if table.setdefault(name, function) is not function:
            raise InternalError(f"public: two functions declare the method {name}")


def _wrap(function: Function, widen: Widen) -> Function:
    """Return the function with its name in errors, widened halves and translated parameters."""

    def call(*args: Any, **options: Any) -> Any:
        """Call the function with halves widened; name it in errors, retry with translated names."""
        if (run := callbacks.run_autocast) is not None:
            result = run(call, function.__name__, args, options)
            if result is not callbacks.NOT_ACTIVE:
                return result
        try:
            if widen and holds_half(args, options):
                return call_in_float32(function, args, options, widen)
            return function(*args, **options)
        except DovetailError as error:
            add_name(error, function.__name__)
            hide_internal_frames(error)
            raise
        except TypeError:
            if accepts_arguments(function, args, options):
                raise
        try:
            return call_translated(call, function, args, options)
        except DovetailError as error:
            hide_internal_frames(error)
            raise

    return finish_wrapper(call, function, widen)


def finish_wrapper(call: Function, function: Function, widen: Widen) -> Function:
    """Give a wrapper the name, the docstring and the signature of its function."""
    call.__code__ = call.__code__.replace(co_name=function.__name__)  # tracebacks show it
    cast(Any, call).widen = widen  # a test reads it
    return wraps(function)(call)


def add_name(error: DovetailError, name: str) -> None:
    """Prefix an error of a part of a function with the function's name."""
    # in place, the op is named without "_"
    if name.rstrip("_") not in str(error) and not names_request(error):
        error.args = (f"{name}: {error}", *error.args[1:])


def names_request(error: BaseException) -> bool:
    """Return True if an error is of an earlier call, whose line it names.

    The function during which a deferred check fails is not the one that was called wrongly.
    """
    return " (requested at " in str(error)
