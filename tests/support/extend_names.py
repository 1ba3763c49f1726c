"""The names of `dovetail.extend` for plugins: its `__all__`, which only type checkers see."""

from __future__ import annotations

import ast
from pathlib import Path

from dovetail import extend

TREE = ast.parse(Path(str(extend.__file__)).read_text("utf-8"))
(_LISTED,) = (
    n.value for n in ast.walk(TREE) if isinstance(n, ast.Assign) and "__all__" in ast.unparse(n)
)
NAMES = frozenset(ast.literal_eval(_LISTED))
