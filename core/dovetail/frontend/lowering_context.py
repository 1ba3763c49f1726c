"""The state that all `lower_*` modules share, and the way from a syntax node to its rule."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from ..dtypes import int64
from ..errors import DovetailError, KernelError
from ..ir.language import Effect, Loop, Value
from .builtin_names import SYNTAX_HINTS
from .source import FunctionSource, text_of
from .user_kernel_builder import TensorParameter, UserKernelBuilder
from .weak_types import Condition, as_dtype, is_number, kind_of


class PythonObject:
    """An object of the scope around a kernel: a function, a module, a dtype."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Unassigned:
    """The value of a name that some path leaves without one, and the reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Lowering:
    """The state of lowering one loop nest of a user's function.

    The value of an expression is a number (`weak_types.Number`), a `TensorParameter`, a tuple of
    values or a `PythonObject`. `outer_number` declares a number of an enclosing Python scope.
    """

    def __init__(
        self,
        source: FunctionSource,
        builder: UserKernelBuilder,
        outer_number: Callable[[FunctionSource, str], Any],
        rules: Mapping[type[ast.AST], Callable[[Lowering, Any], Any]],
        scope: dict[str, Any],
    ) -> None:
        self.source = source  # the kernel's, or that of the function that is inlined
        self.builder, self.outer_number, self.rules = builder, outer_number, rules
        self.scope = scope  # the values of names
        self.effects: list[Effect | Value] | None = []  # None: no writes allowed
        self.condition: Condition = None  # where the code runs
        self.loops: tuple[tuple[Loop, Condition], ...] = ()  # around: see `enter_loop`
        self.innermost_loop = "grid"  # or "range"
        self.call_depth = 0

    def lower(self, node: ast.expr | ast.stmt) -> Any:
        """Return the value of an expression, or append the effects of a statement.

        Raises: DovetailError with the user's line.
        """
        rule = self.rules.get(type(node))
        if rule is None:
            self.refuse_syntax(node)
        try:
            return rule(self, node)
        except KernelError:
            raise
        except DovetailError as error:
            if "\n  File " in str(error):
                raise
            raise self.source.with_line(node, error) from None
        except (ArithmeticError, TypeError, ValueError) as error:  # of Python, on constants
            self.refuse(node, f"{text_of(node)}: {error}")

    def lower_number(self, node: ast.expr) -> Any:
        """Lower an expression and return its value. Raises: KernelError unless it is a number."""
        value = self.lower(node)
        if is_number(value):
            return value
        self.refuse(node, f"{text_of(node)} must be a number, got {describe_value(value)}")

    def lower_integer(self, node: ast.expr) -> Value:
        """Return the value of an expression, cast to int64. Raises: KernelError for no integer."""
        value = self.lower_number(node)
        if kind_of(value) not in "iu":
            self.refuse(node, f"{text_of(node)} must be an integer; write int(...)")
        return as_dtype(value, int64)

    def called_object(self, node: ast.expr) -> Any:
        """Return the Python object that a call expression calls, or None for others."""
        callee = self.lower(node.func) if isinstance(node, ast.Call) else None
        return callee.value if isinstance(callee, PythonObject) else None

    def refuse(self, node: ast.AST, message: str) -> NoReturn:
        """Raise a KernelError that shows the user's line."""
        self.source.raise_kernel_error(node, message)

    def refuse_syntax(self, node: ast.AST) -> NoReturn:
        """Raise a KernelError with a hint for syntax that kernels do not have."""
        hint = SYNTAX_HINTS.get(type(node).__name__, repr(text_of(node)))
        self.refuse(node, f"a kernel has no {hint}")

    def enter_loop(self, loop: Loop) -> None:
        """Add a loop, and the condition that it has iterations, to the enclosing loops."""
        start, stop = loop.start, loop.stop
        surely = start.op == stop.op == "const" and start.number < stop.number
        self.loops += ((loop, None if surely else start < stop),)

    @contextmanager
    def preserve_state(self) -> Iterator[None]:
        """Let a `with` block assign to a copy of the scope, and restore all state at its end."""
        outer = self.__dict__.copy()
        self.scope = dict(self.scope)
        try:
            yield
        finally:
            self.__dict__.update(outer)


def describe_value(value: object) -> str:
    """Return the description of a value in an error message, such as "a tensor"."""
    if isinstance(value, TensorParameter):
        return "a tensor"
    if isinstance(value, PythonObject):
        name = getattr(value.value, "__name__", "")
        return f"the {type(value.value).__name__} {name}".rstrip()
    return "a tuple" if isinstance(value, tuple) else "a number"
