"""The text of a user's function: its syntax tree, and errors that show the user's line."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from ..errors import DovetailError, KernelError

_SOURCE = "__dovetail_source__"  # the attribute by which cloudpickle sends a function's lines


class FunctionSource:
    """A user's function: its syntax tree, its lines, and the names of its enclosing scopes.

    `kernel`: the name of the kernel that it is, or is inlined into.
    """

    def __init__(self, function: Callable[..., object], kernel: str) -> None:
        self.function, self.kernel, self.name = function, kernel, function.__name__
        self.file = function.__code__.co_filename
        self.lines: list[str]
        try:
            self.lines, first = getattr(function, _SOURCE, None) or inspect.getsourcelines(function)
        except (OSError, TypeError) as error:
            raise KernelError(
                f"{kernel}: the source of {self.name} is not available; define it in a file or a "
                "notebook cell"
            ) from error
        self.first_line = max(first, 1)
        with suppress(AttributeError):  # of bound methods
            setattr(function, _SOURCE, (self.lines, first))
        tree = ast.parse(textwrap.dedent("".join(self.lines))).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise KernelError(f"{kernel}: {self.name} must be a function defined with def")
        self.tree = tree

    def line_number(self, node: ast.AST) -> int:
        """Return the number of a node's line in its file."""
        return self.first_line + _line_index(node)

    def line(self, node: ast.AST) -> str:
        """Return the text of a node's line."""
        index = _line_index(node)
        return self.lines[index].strip() if index < len(self.lines) else ""

    def message(self, node: ast.AST, text: str) -> str:
        """Return an error message that shows the user's line."""
        return (
            f'{self.name}: {text}\n  File "{self.file}", line {self.line_number(node)}\n'
            f"    {self.line(node)}"
        )

    def raise_kernel_error(self, node: ast.AST, text: str) -> NoReturn:
        """Raise a KernelError that shows the user's line."""
        raise KernelError(self.message(node, text))

    def with_line(self, node: ast.AST, error: DovetailError) -> DovetailError:
        """Return an error of the same type that shows the user's line."""
        return type(error)(self.message(node, str(error)))

    def outer_value(self, name: str) -> tuple[bool, Any]:
        """Return True and the present value of a name of an enclosing scope, or False and None."""
        function: Any = self.function
        free = function.__code__.co_freevars
        if name in free:
            cell = function.__closure__[free.index(name)]
            try:
                return True, cell.cell_contents
            except ValueError:  # the enclosing function has not assigned it yet
                return False, None
        if name in function.__globals__:
            return True, function.__globals__[name]
        return hasattr(builtins, name), getattr(builtins, name, None)


def _line_index(node: ast.AST) -> int:
    """Return the number of a node's line within the function's source, from 0."""
    return int(getattr(node, "lineno", 1)) - 1


def text_of(node: ast.AST, length_max: int = 60) -> str:
    """Return the text of a node in one short line."""
    text = ast.unparse(node).split("\n")[0]
    return text if len(text) <= length_max else text[: length_max - 3] + "..."
