"""Modules whose names are tables: JAX's name, and dovetail's function for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import dovetail as dt

from .dtype_config import with_operands


def table(text: str) -> dict[str, str]:
    """Return {JAX's name: dovetail's} of words `name` or `theirs=ours`."""
    pairs = (word.partition("=") for word in text.split())
    return {theirs: ours or theirs for theirs, _, ours in pairs}


def make_module_getattr(
    module: dict[str, Any],
    names: Mapping[str, str],
    prepare: Callable[[Callable[..., Any]], Any] = with_operands,
) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which builds functions at their first use.

    module: the module's globals, where the functions are stored.
    names: JAX's names -> paths below `dt`.
    prepare: wraps functions; other values stay as they are.
    """

    def find(name: str) -> Any:
        """Return the value of a name. Raises: AttributeError for a name that is not a JAX name."""
        if name not in names:
            where = module["__name__"]
            raise AttributeError(
                f"module {where!r} has no attribute {name!r}; docs/from-jax.md lists what is there"
            )
        value: Any = reduce(getattr, names[name].split("."), dt)
        is_plain = isinstance(value, (type, dt.DType)) or not callable(value)
        module[name] = value if is_plain else prepare(value)
        return module[name]

    return find


def make_module_dir(module: dict[str, Any], names: Mapping[str, str]) -> Callable[[], list[str]]:
    """Return the `__dir__` of a module with the names of a table and its own."""
    return lambda: sorted({*names, *module["__all__"]})
