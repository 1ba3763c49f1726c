"""Calls in a kernel of loops: of functions of numbers, of casts, of the user's own."""

from __future__ import annotations

import ast
import builtins
import math
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..dtypes import DType, float64, int64
from ..loops.language import (
    Value,
)
from ..ops.arithmetic import convert
from ..ops.table import TABLE
from . import dsl
from .builtin_names import (
    dtype_of,
    is_astype,
    reduction,
    row,
)
from .kernel_site import Tensor
from .lower_expressions import Expressions, Outside, described, is_known, unwrapped
from .source import text_of
from .weak_types import (
    Weak,
    apply,
    as_dtype,
    choose,
    is_number,
    truth,
)

DEEP = 32  # functions that call each other


class Calls(Expressions):
    """What calls come to."""

    def _call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
            of = self.expr(node.func.value)
            if is_number(of):
                return self._as(node, of, [*node.args, *(k.value for k in node.keywords)])
        f = self.expr(node.func)
        if not isinstance(f, Outside):
            self.source.refuse(node, f"{text_of(node.func)} is {described(f)}, and is not called")
        what, args = f.what, node.args
        if (found := reduction(what)) and len(args) == 1 and isinstance(args[0], ast.GeneratorExp):
            return self.reduced(found, args[0])
        if any(isinstance(a, ast.Starred) for a in args):
            self.lacks(next(a for a in args if isinstance(a, ast.Starred)))
        if node.keywords and not self.is_users(what):
            self.source.refuse(node, f"{text_of(node)}: arguments go by place in a kernel")
        if is_astype(what) and len(args) == 2:
            return self._as(node, self.number(args[0]), args[1:])
        if (dtype := dtype_of(what)) is not None and len(args) == 1:
            return as_dtype(self.number(args[0]), dtype)
        builtin = _BUILTINS.get(id(what))
        if builtin is not None:
            return builtin(self, node, [self.expr(a) for a in args])
        if (op := row(what)) is not None:
            return self._row(node, op.name, [self.number(a) for a in args])
        if self.is_users(what):
            return self.inlined(node, unwrapped(what))
        self.refuse_call(node, what)

    def refuse_call(self, node: ast.Call, what: Any) -> NoReturn:
        """Raises: KernelError."""
        name = text_of(node.func)
        if what is dsl.grid or what is range:
            self.source.refuse(node, f"{name}(...) stands behind `for ... in` in a kernel")
        if id(what) in dsl.ATOMICS:
            self.source.refuse(node, f"{name} gives nothing back: it is a statement of its own")
        if reduction(what) is not None:
            self.source.refuse(
                node, f"{name} takes a generator in a kernel: {name}(... for k in range(n))"
            )
        self.source.refuse(
            node,
            f"a kernel does not call {name}: it has dt's elementwise functions, sum, max, min, "
            "any and all of a generator, casts, dt.atomic_*, and functions of yours like this one",
        )

    def is_users(self, what: Any) -> bool:
        f = unwrapped(what)
        return isinstance(f, types.FunctionType) and not f.__module__.startswith("dovetail.")

    def reduced(self, name: str, node: ast.GeneratorExp) -> Any:
        """What a reduction comes to: generators know how."""
        raise NotImplementedError

    def inlined(self, node: ast.Call, f: types.FunctionType) -> Any:
        """What a function of the user's gives: statements know how."""
        raise NotImplementedError

    def _as(self, node: ast.Call, x: Any, asked: Sequence[ast.expr]) -> Any:
        found = self.expr(asked[0]) if len(asked) == 1 else None
        dtype = dtype_of(found.what) if isinstance(found, Outside) else None
        if dtype is None:
            self.source.refuse(node, f"{text_of(node)}: a dtype is asked for, as dt.float32")
        return self.cast(x, dtype)

    def cast(self, x: Any, dtype: DType) -> Value:
        """A number as an element of this dtype."""
        if isinstance(x, float) and dtype.kind in "iu":
            x = int(x)
        return as_dtype(x, dtype)

    def _row(self, node: ast.Call, name: str, args: list[Any]) -> Any:
        if name == "pow" and len(args) == 2:
            return self.combined("pow", *args)
        if name == "where" and len(args) == 3:
            args[0] = truth(args[0])
            if isinstance(args[0], bool):
                return args[1] if args[0] else args[2]
            return choose(*args)
        op = TABLE[name]
        if len(args) != op.arity:
            many = f"{op.arity} argument{'s' if op.arity > 1 else ''}"
            self.source.refuse(node, f"{text_of(node)}: {name} takes {many}, not {len(args)}")
        return apply(op, *args)


# --- Python's own functions -----------------------------------------------------------------------


def _extreme(name: str) -> Callable[[Calls, ast.Call, list[Any]], Any]:
    def made(self: Calls, node: ast.Call, args: list[Any]) -> Any:
        if len(args) < 2 or not all(map(is_number, args)):
            self.refuse_call(node, getattr(builtins, name[:3]))
        found = args[0]
        for x in args[1:]:
            found = apply(TABLE[name], found, x)
        return found

    return made


def _casting(kind: str) -> Callable[[Calls, ast.Call, list[Any]], Any]:
    def made(self: Calls, node: ast.Call, args: list[Any]) -> Any:
        if len(args) != 1 or not is_number(args[0]):
            self.source.refuse(node, f"{text_of(node)}: takes one number")
        x = args[0]
        if is_known(x):
            return {"i": int, "f": float, "b": bool}[kind](x)
        if kind == "b":
            return Weak("b", truth(x))  # type: ignore[arg-type]  # of no constant
        wide = int64 if kind == "i" else float64
        return Weak(kind, x.cast(wide) if isinstance(x, Weak) else convert(x, wide))

    return made


def _rounded(name: str) -> Callable[[Calls, ast.Call, list[Any]], Any]:
    def made(self: Calls, node: ast.Call, args: list[Any]) -> Any:
        return _casting("i")(self, node, [self._row(node, name, args)])

    return made


def _length(self: Calls, node: ast.Call, args: list[Any]) -> Any:
    if len(args) == 1 and isinstance(args[0], tuple):
        return len(args[0])
    if len(args) != 1 or not isinstance(args[0], Tensor) or args[0].rank == 0:
        self.source.refuse(node, f"{text_of(node)}: takes a tensor that has axes")
    return Weak("i", self.site.size(args[0], 0))


_BUILTINS: dict[int, Callable[[Calls, ast.Call, list[Any]], Any]] = {
    id(builtins.max): _extreme("maximum"), id(builtins.min): _extreme("minimum"),
    id(builtins.int): _casting("i"), id(builtins.float): _casting("f"),
    id(builtins.bool): _casting("b"), id(builtins.len): _length,
    id(builtins.round): _rounded("round"), id(math.floor): _rounded("floor"),
    id(math.ceil): _rounded("ceil"), id(math.trunc): _rounded("trunc"),
}  # fmt: skip
