"""The text of a user's function: its syntax tree, and errors that show the user's line."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, NoReturn

from ..errors import DovetailError, KernelError

BY_HAND = "in a file or a cell of a notebook, where Python keeps its text"


class Source:
    """A function of the user's: its tree, where it stands, and what its names mean outside."""

    def __init__(self, f: Callable[..., object], called: str) -> None:
        self.function, self.called, self.name = f, called, f.__name__
        self.file = f.__code__.co_filename
        try:
            lines, first = inspect.getsourcelines(f)
        except (OSError, TypeError) as error:
            raise KernelError(
                f"{called}: the text of {self.name} is not known; define it {BY_HAND}"
            ) from error
        self.lines = lines
        self.first = max(first, 1)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise KernelError(f"{called}: {self.name} is no function made with def; write one")
        self.tree = tree

    def place(self, node: ast.AST) -> str:
        """File and line of a part of the text."""
        return f"{self.file}:{self.number(node)}"

    def number(self, node: ast.AST) -> int:
        """The number of a part's line in its file."""
        return self.first + int(getattr(node, "lineno", 1)) - 1

    def line(self, node: ast.AST) -> str:
        """The line that a part stands in."""
        at = int(getattr(node, "lineno", 1)) - 1
        return self.lines[at].strip() if at < len(self.lines) else ""

    def shown(self, node: ast.AST, what: str) -> str:
        """A message, with the user's line below."""
        return (
            f'{self.name}: {what}\n  File "{self.file}", line {self.number(node)}\n'
            f"    {self.line(node)}"
        )

    def refuse(self, node: ast.AST, what: str) -> NoReturn:
        """Raises: KernelError that shows the line."""
        raise KernelError(self.shown(node, what))

    def explained(self, node: ast.AST, error: DovetailError) -> DovetailError:
        """An error of a part of the text, with the user's line."""
        made = type(error)(self.shown(node, str(error)))
        return made

    def outside(self, name: str) -> tuple[bool, Any]:
        """Whether a name means something where the function was made, and what it does now."""
        f: Any = self.function
        free = f.__code__.co_freevars
        if name in free:
            cell = f.__closure__[free.index(name)]
            try:
                return True, cell.cell_contents
            except ValueError:  # it has no value yet
                return False, None
        if name in f.__globals__:
            return True, f.__globals__[name]
        return hasattr(builtins, name), getattr(builtins, name, None)


def text_of(node: ast.AST, most: int = 60) -> str:
    """A part of the user's text, as one short line."""
    found = ast.unparse(node).split("\n")[0]
    return found if len(found) <= most else found[: most - 3] + "..."
