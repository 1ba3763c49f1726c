"""The module and the signature that a public function or class shows: `help`, `repr`, pickle.

A function shows the module in which users find it, and only its own parameters: those that exist
to accept the arguments of other libraries are hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from inspect import Parameter, Signature, signature
from sys import modules
from types import FunctionType
from typing import Any

from .compat.keywords import MISSING

PUBLIC_MODULES = {"dovetail", "dovetail.errors"}  # those that own a name; more are published


class PublicSignature(Signature):
    """A signature that is computed when it is first read: an import has no time for hundreds."""

    __slots__ = ("_function",)
    _function: Any

    @classmethod
    def of(cls, function: Callable[..., Any]) -> PublicSignature:
        """Return the signature of a function, without the parameters for other libraries."""
        lazy = cls.__new__(cls)
        lazy._function = function
        return lazy

    def __getattr__(self, name: str) -> Any:
        """Compute the signature; the slots of an uncomputed one are empty."""
        if name not in ("_parameters", "_return_annotation"):
            raise AttributeError(name)
        raw = self.raw()
        parameters = [_show(p) for p in raw.parameters.values() if not _is_hidden(p)]
        super().__init__(parameters, return_annotation=_text(raw.return_annotation))
        return getattr(self, name)

    def raw(self) -> Signature:
        """Return the signature with all parameters of the code."""
        function = self._function
        if hasattr(function, "__wrapped__"):
            return signature(function.__wrapped__)
        code, defaults = function.__code__, function.__defaults__  # compiled functions have both
        plain = FunctionType(code, {}, function.__name__, defaults, function.__closure__)
        plain.__kwdefaults__ = function.__kwdefaults__
        plain.__annotations__ = function.__annotations__
        return signature(plain)


class _Annotation(str):
    """The text of an annotation, which `help` shows without quotes."""

    __slots__ = ()

    __repr__ = str.__str__


def _is_hidden(parameter: Parameter) -> bool:
    """Return True for the parameters that take the arguments of other libraries."""
    is_more = parameter.name == "more" and parameter.kind is parameter.VAR_POSITIONAL
    return is_more or parameter.name == "theirs"


def _show(parameter: Parameter) -> Parameter:
    """Return a parameter as users should see it."""
    default = Parameter.empty if parameter.default is MISSING else parameter.default
    return parameter.replace(annotation=_text(parameter.annotation), default=default)


def _text(annotation: Any) -> Any:
    """Return an annotation; one that is a text is shown without quotes."""
    return _Annotation(annotation) if isinstance(annotation, str) else annotation


def publish(module: str, values: Iterable[Any]) -> None:
    """Let functions and classes show `module` as theirs, and their public signatures.

    A name that `dt` has, too, shows `dovetail`. Classes in C cannot be changed.
    """
    sources = getattr(modules["dovetail"], "_SOURCES", {})
    PUBLIC_MODULES.add(module)
    for value in values:
        is_class = isinstance(value, type)
        if not is_class and not hasattr(type(value), "__code__"):
            continue
        home = value.__module__
        if home not in PUBLIC_MODULES and home.startswith("dovetail."):
            exporter, source = sources.get(value.__name__, ("", ""))
            exported = getattr(modules.get(f"dovetail.{exporter}"), source, None)
            with suppress(TypeError):
                if exported is value:
                    value.__module__ = "dovetail"
                elif module != "dovetail":  # else `dt` has it under another name
                    value.__module__ = module
        function = value.__init__ if is_class else value
        if isinstance(function, FunctionType) or not is_class:
            vars(function).setdefault("__signature__", PublicSignature.of(function))


def publish_all(namespace: dict[str, Any]) -> None:
    """Publish the names in the `__all__` of a module that are loaded."""
    module = namespace["__name__"].replace(".functions.", ".")  # dt.random
    publish(module, [namespace[n] for n in namespace["__all__"] if n in namespace])
