"""Errors for calls whose arguments do not fit their annotations.

A wrong argument may fail far inside, as an AttributeError of an int. A function wrapped by
`explain` raises ArgumentTypeError instead, which names the function, the parameter, the expected
types and the value. Annotations are read only after a call has failed, so a valid call costs one
Python frame. If all arguments fit, the error is not changed: it is then a fault of the library.
Arguments that do not bind are translated from the names of other libraries, or refused.
"""

from __future__ import annotations

import builtins
import collections.abc as abc
import functools
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin

import numpy as np

import dovetail as dt
from dovetail.extend import arguments, callbacks, hide_internal_frames

P = ParamSpec("P")
R = TypeVar("R")

# Modules of the library, Python and NumPy. A frame of any other module is the user's code.
_LIBRARY = {"dovetail", *(n for n in sys.stdlib_module_names if n != "__main__"), "numpy"}
_PACKAGE = __name__.partition(".")[0] + "."
_WRAPPED_DUNDERS = ("__call__", "__getitem__", "__setitem__", "__delitem__")
# Errors of dovetail that do not name the wrong argument begin with these.
_CONVERSIONS = {"asarray", "bool", "complex", "float", "index", "int", "item", "iter", "len"}
_TYPE_CHECKING_NAMES = {
    "Generator": dt.random.Generator
}  # names that are imported for type checkers
_FUNCTION_NAMES: set[str] = set()  # of functions and classes whose errors are explained
_METHOD_NAMES: set[str] = set()
_PARAMETER_PATTERN = re.compile(r"(\w+)(?:\[[^\]]*\]|, [^,]*,)? must ")  # that an error is about
_SCALARS: dict[object, tuple[tuple[type, ...], str]] = {
    bool: ((bool, int, np.bool_), "True or False"),
    int: ((int, np.integer), "an int"),
    float: ((Real,), "a number"),
    str: ((str,), "a str"),
    type(None): ((type(None),), "None"),
}


# --- wrappers ------------------------------------------------------------------------------------


def explain(
    function: Callable[P, R], title: Callable[[tuple[Any, ...]], str] | None = None
) -> Callable[P, R]:
    """Return a wrapper of a function whose errors name the function and the unfit argument.

    title: a function from the arguments to the name in errors; by default the function's own name.
    """

    (_METHOD_NAMES if title else _FUNCTION_NAMES).add(function.__name__)

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        """Call the function; replace an error that an unfit argument explains."""
        try:
            if (run := callbacks.run_autocast) is not None and title is None:
                result: Any = run(call, function.__name__, args, named)
                if result is not callbacks.NOT_ACTIVE:
                    return cast(R, result)
            return function(*args, **named)
        except Exception as error:
            binds = type(error) is not TypeError or arguments.accepts_arguments(
                function, args, named
            )
            reason = None
            if binds:
                name = title(args) if title else function.__name__
                reason = explain_error(error, name, function, args, named)
                hide_internal_frames(error)
                if reason is None:
                    raise
            cause = error
        try:
            if reason is not None:
                raise reason from cause
            return arguments.call_translated(call, function, args, named)
        except dt.DovetailError as error:
            own = f"{function.__name__}: "
            if title and reason is None and str(error).startswith(own):
                error.args = (f"{title(args)}: {str(error).removeprefix(own)}",)
            hide_internal_frames(error)
            raise

    return call


def explain_all(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Replace public functions in a package's namespace by their `explain` wrappers."""
    for name in names:
        function = namespace[name]
        if inspect.isfunction(inspect.unwrap(function)):  # a wrapper may be compiled
            namespace[name] = explain(function)
            namespace[name].__module__ = namespace["__name__"]  # pickle imports it from there


def explain_methods(cls: type, excluded: Iterable[str] = ("forward",)) -> None:
    """Replace a class's public methods that have parameters, and its item access, by wrappers."""
    _FUNCTION_NAMES.add(cls.__name__)  # for constructors
    for name, member in list(vars(cls).items()):
        if (name.startswith("_") and name not in _WRAPPED_DUNDERS) or name in excluded:
            continue
        is_classmethod = isinstance(member, classmethod)
        method = member.__func__ if is_classmethod else member
        if not isinstance(method, types.FunctionType):
            continue
        if method.__code__.co_argcount + method.__code__.co_kwonlyargcount > 1:
            wrapped = explain(method, functools.partial(_method_title, name))
            setattr(cls, name, classmethod(wrapped) if is_classmethod else wrapped)


def title(cls: type) -> str:
    """Return the name of a class in errors: "Linear", "optim.SGD"."""
    library_class = next((c for c in cls.__mro__ if c.__module__.startswith(_PACKAGE)), cls)
    package = library_class.__module__.removeprefix(_PACKAGE).partition(".")[0]
    name = cls.__name__.lstrip("_")
    return f"{package}.{name}" if package in ("optim", "data") else name


def _method_title(name: str, args: tuple[Any, ...]) -> str:
    """Return a method's name in errors: "SGD.step", or only the class for a dunder."""
    owner = args[0] if isinstance(args[0], type) else type(args[0])
    return f"{title(owner)}.{name}" if name not in _WRAPPED_DUNDERS else title(owner)


def explain_error(
    error: Exception,
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    prefix: bool = True,
) -> dt.DovetailError | None:
    """Return an error that names the bad argument, or None; prefix a dovetail error with `name`.

    None if the error passed through code of the user, or if it is an error of dovetail other than
    a failed conversion.

    prefix: put the name in front of the message of an error of dovetail that lacks it, in place.
    """
    is_dovetail_error, parts = isinstance(error, dt.DovetailError), name.split(".")[-2:]
    if (is_dovetail_error and any(p in str(error) for p in parts)) or _raised_in_user_code(
        error.__traceback__
    ):
        return None
    if isinstance(error, MemoryError) and not is_dovetail_error:
        return dt.OutOfMemoryError(f"{name}: the host has no memory: {error}")
    vague = not is_dovetail_error or str(error).partition(":")[0] in _CONVERSIONS
    reason = argument_error(name, function, args, kwargs) if vague else None
    is_unnamed = parts[-1].rstrip("_") not in str(error) and not arguments.names_request(error)
    if reason is None and is_dovetail_error and prefix and is_unnamed:
        error.args = (_prefix_text(str(error), name, function), *error.args[1:])
    return reason


def _prefix_text(text: str, name: str, function: Callable[..., Any]) -> str:
    """Return an error's text with `name` in front, in place of an inner function's name.

    The inner name stays if `explain` does not wrap that function, or if the text is of a parameter
    that only the inner function has.
    """
    inner, _, message = text.partition(": ")
    names = _METHOD_NAMES if "." in inner else _FUNCTION_NAMES
    if inner.rpartition(".")[2] not in names:
        return f"{name}: {text}"
    parameter = _PARAMETER_PATTERN.match(message)
    if parameter and parameter[1] not in inspect.signature(inspect.unwrap(function)).parameters:
        return f"{name}: {text}"
    return f"{name}: {message}"


def _raised_in_user_code(traceback: TracebackType | None) -> bool:
    """Return True if any frame of the traceback is outside of dovetail, Python and NumPy."""
    while traceback is not None:
        module = str(traceback.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if module not in _LIBRARY and not module.startswith("dovetail_"):
            return True
        traceback = traceback.tb_next
    return False


# --- annotations ---------------------------------------------------------------------------------


def argument_error(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dt.ArgumentError | None:
    """Return the error for the first argument that does not fit its annotation, or None."""
    signature, kinds = _signature(inspect.unwrap(function))
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None  # Python's own error says what is missing or too many
    for key, value in bound.items():
        p, kind = signature.parameters[key], kinds[key]
        every = value if p.kind is p.VAR_POSITIONAL else (value,)
        for v in () if p.kind is p.VAR_KEYWORD else every:
            if not fits_annotation(kind, v):
                text = f"must be {describe(kind)}, got {arguments.shown(v)}"
                return dt.ArgumentTypeError(f"{name}: {key} {text}")
            if isinstance(v, int) and abs(v) > _greatest_int(kind):
                text = f"is out of range, got {arguments.shown(v)}"
                return dt.ArgumentError(f"{name}: {key} {text}")
    return None


@functools.lru_cache(1024)
def _signature(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    """Return a function's signature, and the evaluated annotation of each parameter."""
    signature, names = inspect.signature(function), _AnnotationNamespace(function.__globals__)
    return signature, {n: names.evaluate(p.annotation) for n, p in signature.parameters.items()}


def _greatest_int(kind: Any) -> float | int:
    """Return the greatest int that an annotated parameter accepts, as a float64 or an int64."""
    kinds = (kind, *get_args(kind))
    return arguments.BEYOND_FLOAT - 1 if float in kinds else arguments.LARGEST


class _AnnotationNamespace(dict[str, Any]):
    """A namespace for annotations: a module's names, then built-in ones; Any for all others."""

    def __init__(self, module_names: Mapping[str, Any]) -> None:
        self.module_names = module_names

    def __missing__(self, name: str) -> Any:
        default = _TYPE_CHECKING_NAMES.get(name, getattr(builtins, name, Any))
        value = self.module_names.get(name, default)
        return self.evaluate(value) if isinstance(value, str) else value

    def evaluate(self, annotation: object) -> Any:
        """Return the value of an annotation, or Any if it cannot be evaluated."""
        if annotation is inspect.Parameter.empty:
            return Any
        if not isinstance(annotation, str):
            return annotation
        try:
            return eval(annotation, {}, self)
        except Exception:
            return Any


def fits_annotation(kind: Any, value: object) -> bool:
    """Return True if a value fits an annotation, or if the annotation cannot be checked."""
    if kind is None:
        return value is None
    if kind in _SCALARS:
        return isinstance(value, _SCALARS[kind][0])
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(fits_annotation(k, value) for k in inner)
    if origin is Literal:
        return any(type(v) is type(value) and v == value for v in inner)
    if origin is None:
        try:
            return kind is Any or not isinstance(kind, type) or isinstance(value, kind)
        except TypeError:  # a protocol
            return True
    if origin is tuple and inner[-1:] != (...,):
        if not isinstance(value, (tuple, list)) or len(value) != len(inner):
            return False
        return all(map(fits_annotation, inner, value))
    if origin in (tuple, list, abc.Sequence):
        if not isinstance(value, abc.Sequence) or isinstance(value, (str, bytes, bytearray)):
            return False
        return all(fits_annotation(inner[0], v) for v in value)
    if not isinstance(origin, type):
        return True
    if not isinstance(value, origin) or getattr(value, "ndim", 1) == 0:
        return False
    if origin is abc.Iterable and isinstance(value, (list, tuple, str)):
        return all(fits_annotation(inner[0], v) for v in value)
    return True


def describe(kind: Any) -> str:
    """Return an annotation in words, for an error text."""
    if kind is None:
        return "None"
    if kind in _SCALARS:
        return _SCALARS[kind][1]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        *first, last = [describe(k) for k in inner]
        return f"{', '.join(first)} or {last}"
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin is abc.Callable:
        return "a function"
    if origin in (tuple, list, abc.Sequence):
        if origin is tuple and inner[-1:] != (...,):
            return f"a tuple ({', '.join(map(describe, inner))})"
        return f"a list or tuple of {_plural(inner[0])}"
    if origin is abc.Iterable:
        return f"an iterable of {_plural(inner[0])}"
    name = str(getattr(origin or kind, "__name__", kind))
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _plural(kind: Any) -> str:
    """Return an annotation's description in the plural, without its article."""
    return "values" if kind is Any else describe(kind).removeprefix("an ").removeprefix("a ") + "s"
