"""Syntax trees of source files, parsed once for all tests of a process."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path


@functools.cache
def parse_file(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file, the same object for each call."""
    return ast.parse(path.read_text("utf-8"), str(path))


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and the statements in it, in the order of `ast.walk`, and no expressions.

    A module has 20 times as many nodes as statements.
    """
    todo = [tree]
    for node in todo:  # the list grows during the loop
        yield node
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            part = getattr(node, block, ())
            todo += part if isinstance(part, list) else ()
