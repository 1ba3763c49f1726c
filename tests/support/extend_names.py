"""The names of `dovetail.extend` for plugins: its `__all__`, which only type checkers see."""

from __future__ import annotations

import ast
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from dovetail import extend

TREE = ast.parse(Path(str(extend.__file__)).read_text("utf-8"))
(_LISTED,) = (
    n.value for n in ast.walk(TREE) if isinstance(n, ast.Assign) and "__all__" in ast.unparse(n)
)
NAMES = frozenset(ast.literal_eval(_LISTED))
HOMES = {
    name.asname or name.name: f"dovetail.{node.module}"
    for node in ast.walk(TREE) if isinstance(node, ast.ImportFrom) and node.level
    for name in node.names
}  # fmt: skip


def attribute_docstring(name: str) -> str:
    """Return the string after the assignment of a name in its module, or ""."""
    source = Path(str(import_module(HOMES[name]).__file__)).read_text("utf-8")
    for statement, following in pairwise(ast.parse(source).body):
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            text = following.value if isinstance(following, ast.Expr) else None
            return str(text.value) if isinstance(text, ast.Constant) else ""
    return ""
