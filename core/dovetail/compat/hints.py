"""Hints for names of NumPy, PyTorch, JAX and others: what dovetail calls them, or what to write.

The hints are data. A TOML file for each library maps what to write to the names for it; the files
are read when the first name is asked for that is not there. Names of parameters are in `keywords`.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np

LIBRARIES = ("numpy", "torch", "jax", "others")


@cache
def tables() -> dict[str, dict[str, str]]:
    """Return {kind of names: {foreign name: replacement}}, merged from all libraries; cached.

    Kinds are the tables of the files: "functions", "methods" and others.
    """
    import tomllib  # 3 ms, which `import dovetail` need not pay

    merged: dict[str, dict[str, str]] = {}
    for library in LIBRARIES:
        text = Path(__file__).with_name(f"{library}.toml").read_text("utf-8")
        for table, ways in tomllib.loads(text).items():
            pairs = ((name, way) for way, names in ways.items() for name in names.split())
            merged.setdefault(table, {}).update((n, way.replace("NAME", n)) for n, way in pairs)
    return merged


def format_hint(replacement: str, name: str) -> str:
    """Return "; use X", "; dovetail has no NAME..." for "nothing...", or "; dovetail ..." as it is.

    A replacement that begins with "dovetail" is a sentence of its own: "; dovetail ...". Text
    behind "nothing" is kept.
    """
    if replacement.partition(";")[0].partition(":")[0] == "nothing":
        return f"; dovetail has no {name}{replacement.removeprefix('nothing')}"
    return f"; {replacement}" if replacement.startswith("dovetail ") else f"; use {replacement}"


def find_hint(table: str, name: str) -> str:
    """Return the hint for a name in one of `tables`, to end an error with; "" without one."""
    way = tables()[table].get(name)
    return "" if way is None else format_hint(way, name)


def hint(name: str, method: bool, tensor: type) -> str:
    """Return the end of the error that `dt` or a tensor has no attribute `name`, or "".

    `method`: whether a tensor was asked, and not the module. `tensor`: its class.
    """
    is_compressed = any(hasattr(tensor, n) for n in ("crow_indices", "ccol_indices"))
    if is_compressed and (text := find_hint("compressed", name)):
        return text
    if method and (text := find_hint("methods", name)):
        return text
    ours = tables()["synonyms"].get(name)
    if ours is not None:
        of = "x" if method and hasattr(tensor, ours) else "dt"
        return f"; use {ours if ours.startswith('x') else f'{of}.{ours}'}"
    if text := find_hint("functions", name):
        return text
    if name.startswith("_"):
        return ""
    if other := _other_form(name, method, tensor):
        return f"; use {other}"
    if not hasattr(np.ndarray if method else np, name):
        return ""
    if method:
        return f"; dovetail has no equivalent; use np.asarray(x).{name} on the host"
    return f"; dovetail has no equivalent; use np.{name}"


def _other_form(name: str, method: bool, tensor: type) -> str:
    """Return a call with the name that exists: of `dt`, a method, or `x[...] =`; "" without any."""
    if not method:
        return f"x.{name}{'' if name.isupper() else '()'}" if hasattr(tensor, name) else ""
    root = sys.modules[__name__.partition(".")[0]]
    for of, names in (("", root.__all__), ("linalg.", root.linalg.__all__)):
        if name in names:
            return f"dt.{of}{name}(x)"
    if name.endswith("_") and not name.startswith("new_"):
        before, is_known, way = hint(name[:-1], method, tensor).partition("; use ")
        return f"x[...] = {way}" if is_known and not before else ""
    return ""


def missing_attribute(owner: object, name: str) -> AttributeError:
    """Return the AttributeError for a name that an object lacks, with a hint if one is known."""
    kind = type(owner).__name__
    text = find_hint(kind, name)
    if not text and kind == "Generator":  # whose methods are the functions of `dt.random`
        way = tables()["functions"].get(f"random.{name}", "").replace("dt.random.", "g.")
        text = format_hint(way, name) if way else ""
    return attribute_error(f"{kind!r} object", name, text)


def attribute_error(owner: str, name: str, hint_text: str = "") -> AttributeError:
    """Return the AttributeError for a name that `owner` lacks, with the text of its hint.

    Python appends "Did you mean ...?" to an error whose `name` is not set: to those without a hint.
    """
    error = AttributeError(f"{owner} has no attribute {name!r}{hint_text}")
    if hint_text:
        error.name = name
    return error
