"""Write tests/public_names.txt: every public name with its signature.

    python tools/names.py            # write the file
    python tools/names.py --check    # print the differences; the exit status is 1 if there are any

Annotations are left out: their text differs between versions of Python.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parent.parent
NAMES_FILE = ROOT / "tests" / "public_names.txt"
RECORDS = "dovetail.records"  # the module of internal bases
PACKAGES = (  # packages of `dt` that are loaded on first access, and their modules
    "amp", "checkpoint", "chunked", "comm", "data", "distributions", "extension", "jax",
    "jax.flatten_util", "jax.lax", "jax.nn", "jax.numpy", "jax.random", "jax.scipy.linalg",
    "jax.tree", "jax.tree_util", "metrics", "nn",
    "nn.functional", "nn.init", "nn.utils", "onnx", "optim", "optim.lr_scheduler",
    "optim.swa_utils", "parallel", "sparse", "tensorboard", "torch", "tree",
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Write the file, or compare it with `--check`; return the exit status."""
    if os.environ.get("DOVETAIL_PURE") != "1":  # compiled functions have incomplete signatures
        command = [sys.executable, __file__, *arguments]
        return subprocess.call(command, env={**os.environ, "DOVETAIL_PURE": "1"})
    text = "".join(f"{line}\n" for line in lines())
    before = NAMES_FILE.read_text("utf-8") if NAMES_FILE.exists() else ""
    if arguments == ["--check"]:
        diff = difflib.unified_diff(before.splitlines(), text.splitlines(), "file", "code", n=0)
        diff_lines = [*diff]
        if diff_lines:
            print("\n".join(diff_lines))
            print("public names differ: python tools/names.py writes them; say so in changes/")
        return bool(diff_lines)
    NAMES_FILE.write_text(text, "utf-8")
    return 0


def lines() -> list[str]:
    """Return the public names of dovetail with their signatures, sorted."""
    values_by_name = public_values()
    first = first_names(values_by_name)
    entries: set[str] = set()
    for name, value in values_by_name.items():
        if isinstance(value, ModuleType):
            entries.add(f"{name}: module")
        elif not inspect.isclass(value):
            entries.add(f"{name}{format_signature(value)}")
        elif first[id(value)] != name:
            entries.add(f"{name}: {first[id(value)]}")
        else:
            entries.update(class_lines(value, name, first))
    return sorted(entries)


def public_values() -> dict[str, Any]:
    """Return the public values by name: those of `dt`, of its packages, of `dovetail.extend`."""
    values_by_name: dict[str, Any] = {}
    walk(importlib.import_module("dovetail"), "dt", values_by_name, set())
    for name in PACKAGES:
        walk(importlib.import_module(f"dovetail.{name}"), f"dt.{name}", values_by_name, set())
    walk(importlib.import_module("dovetail.extend"), "dovetail.extend", values_by_name, set())
    return values_by_name


def first_names(values_by_name: dict[str, Any]) -> dict[int, str]:
    """Return the first public name of each class, by its identity."""
    first: dict[int, str] = {}
    for name, value in values_by_name.items():
        if inspect.isclass(value):
            first.setdefault(id(value), name)
    return first


def walk(module: ModuleType, name: str, values_by_name: dict[str, Any], seen: set[int]) -> None:
    """Add the public names of a module, and of the modules among them, to `values_by_name`."""
    if id(module) in seen:
        return
    seen.add(id(module))
    for each in exported_names(module):
        value = values_by_name[f"{name}.{each}"] = getattr(module, each)
        if isinstance(value, ModuleType):
            walk(value, f"{name}.{each}", values_by_name, seen)


def exported_names(module: ModuleType) -> list[str]:
    """Return the `__all__` of a module, also one that is set only for type checkers."""
    return list(getattr(module, "__all__", ()) or type_checking_all(module))


def type_checking_all(home: ModuleType) -> list[str]:
    """Return an `__all__` that is set only for type checkers, as in `dovetail.extend`."""
    tree = ast.parse(Path(home.__file__).read_text("utf-8") if home.__file__ else "")
    return [
        str(name)
        for n in ast.walk(tree)
        if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"
        for name in ast.literal_eval(n.value)
    ]


def class_lines(kind: type, name: str, public: dict[int, str]) -> Iterator[str]:
    """Yield a class's signature and bases, then its public members, but those of public bases."""
    bases = ", ".join(
        b.__name__ for b in kind.__bases__ if b is not object and b.__module__ != RECORDS
    )
    yield f"{name}{format_signature(kind)}: class({bases})"
    for each, value in own_members(kind, public):
        if isinstance(kind, type(Enum)) and isinstance(getattr(kind, each), kind):
            yield f"{name}.{each}: member"
        else:
            signature = format_signature(value) if inspect.isroutine(value) else ": attribute"
            yield f"{name}.{each}{signature}"


def own_members(kind: type, public: dict[int, str]) -> Iterator[tuple[str, Any]]:
    """Yield the public members that a class and its private bases define, sorted by name."""
    if issubclass(kind, BaseException) or kind.__module__.partition(".")[0] != "dovetail":
        return
    ours = [k for k in kind.__mro__ if k.__module__.partition(".")[0] == "dovetail"]
    known = {j for k in ours[1:] if id(k) in public for j in k.__mro__}
    owners = [k for k in ours if k not in known]
    for name in sorted({a for k in owners for a in vars(k) if not a.startswith("_")}):
        value = inspect.getattr_static(kind, name)
        yield name, value.__func__ if isinstance(value, staticmethod | classmethod) else value


class SortedSetDefault:
    """A default that is a set, printed in sorted order."""

    def __init__(self, values: Iterable[object]) -> None:
        self.text = "{" + ", ".join(sorted(map(repr, values))) + "}"

    def __repr__(self) -> str:
        return self.text


def format_signature(value: Any) -> str:
    """Return the signature of a callable, or the type of another value, as text."""
    if not callable(value) or type(value).__name__ == "DType":  # a DType raises when called
        return f": {type(value).__name__}"
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return "(...)"
    plain = [
        p.replace(annotation=p.empty, default=SortedSetDefault(p.default))
        if isinstance(p.default, set | frozenset)
        else p.replace(annotation=p.empty)
        for p in signature.parameters.values()
    ]
    text = str(signature.replace(parameters=plain, return_annotation=signature.empty))
    return re.sub(r" at 0x[0-9a-f]+", "", text).replace("\n", " ")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
