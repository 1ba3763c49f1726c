"""Lowering of calls: elementwise functions, casts, Python's built-ins and the user's functions."""

from __future__ import annotations

import ast
import builtins
import math
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

from ..functions import datatypes
from ..ir.language import Value
from ..ops.table import TABLE
from . import dsl
from .builtin_names import as_dtype_object, as_user_function, elementwise_op, reduction_name
from .lower_expressions import apply_binary
from .lower_reductions import lower_reduction
from .lower_statements import RESULT, RETURN, lower_block
from .lowering_context import Lowering, PythonObject, describe
from .source import Source, text_of
from .user_kernel_builder import TensorParameter
from .weak_types import (
    KINDS,
    WIDEST_DTYPES,
    WeakNumber,
    apply_op,
    as_dtype,
    is_constant,
    is_number,
    select,
    truth,
)

INLINE_DEPTH_MAX = 32  # functions that call each other
Builtin: TypeAlias = Callable[[Lowering, ast.Call, list[Any]], Any]


def lower_call(ctx: Lowering, node: ast.Call) -> Any:
    """Lower a call of a function that a kernel can call."""
    args = node.args
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
        owner = ctx.lower(node.func.value)
        if is_number(owner):
            return _lower_cast(ctx, node, owner, [*args, *(k.value for k in node.keywords)])
    callee = ctx.lower(node.func)
    if not isinstance(callee, PythonObject):
        ctx.refuse(node, f"{text_of(node.func)} is {describe(callee)}, and is not called")
    function = callee.value
    reduction = reduction_name(function)
    if reduction is not None and len(args) == 1 and isinstance(args[0], ast.GeneratorExp):
        return lower_reduction(ctx, reduction, args[0])
    for arg in args:
        if isinstance(arg, ast.Starred):
            ctx.refuse_syntax(arg)
    user_function = as_user_function(function)
    if node.keywords and user_function is None:
        ctx.refuse(node, f"{text_of(node)}: arguments go by place in a kernel")
    if function is datatypes.astype and len(args) == 2:
        return _lower_cast(ctx, node, ctx.lower_number(args[0]), args[1:])
    dtype = as_dtype_object(function)
    if dtype is not None and len(args) == 1:
        return as_dtype(ctx.lower_number(args[0]), dtype)
    builtin = _BUILTINS.get(id(function))
    if builtin is not None:
        return builtin(ctx, node, [ctx.lower(a) for a in args])
    op = elementwise_op(function)
    if op is not None:
        return _apply_function(ctx, node, op.name, [ctx.lower_number(a) for a in args])
    if user_function is not None:
        return _inline(ctx, node, user_function)
    _refuse_call(ctx, node, function)


def _refuse_call(ctx: Lowering, node: ast.Call, function: Any) -> NoReturn:
    name = text_of(node.func)
    if function is dsl.grid or function is range:
        ctx.refuse(node, f"{name}(...) stands behind `for ... in` in a kernel")
    if id(function) in dsl.ATOMICS:
        ctx.refuse(node, f"{name} gives nothing back: it is a statement of its own")
    if reduction_name(function) is not None:
        ctx.refuse(node, f"{name} takes a generator in a kernel: {name}(... for k in range(n))")
    ctx.refuse(
        node,
        f"a kernel does not call {name}: it has dt's elementwise functions, sum, max, min, "
        "any and all of a generator, casts, dt.atomic_*, and functions of yours like this one",
    )


def _lower_cast(ctx: Lowering, node: ast.Call, x: Any, dtypes: Sequence[ast.expr]) -> Value:
    named = ctx.lower(dtypes[0]) if len(dtypes) == 1 else None
    dtype = as_dtype_object(named.value) if isinstance(named, PythonObject) else None
    if dtype is None:
        ctx.refuse(node, f"{text_of(node)}: a dtype is asked for, as dt.float32")
    return as_dtype(int(x) if isinstance(x, float) and dtype.kind in "iu" else x, dtype)


def _apply_function(ctx: Lowering, node: ast.Call, name: str, args: list[Any]) -> Any:
    if name == "pow" and len(args) == 2:
        return apply_binary("pow", *args)
    if name == "where" and len(args) == 3:
        condition = truth(args[0])
        if isinstance(condition, bool):
            return args[1] if condition else args[2]
        return select(condition, args[1], args[2])
    op = TABLE[name]
    if len(args) != op.arity:
        many = f"{op.arity} argument{'s' if op.arity > 1 else ''}"
        ctx.refuse(node, f"{text_of(node)}: {name} takes {many}, not {len(args)}")
    return apply_op(op, *args)


def _inline(ctx: Lowering, node: ast.Call, function: types.FunctionType) -> Any:
    """Lower the body of a user's function in place of the call, and return its result."""
    if ctx.call_depth >= INLINE_DEPTH_MAX:
        ctx.refuse(node, f"{text_of(node)}: functions call each other {INLINE_DEPTH_MAX} deep")
    callee = Source(function, ctx.source.kernel)
    scope = _bind_arguments(ctx, node, callee)
    with ctx.preserve_state():
        ctx.source, ctx.scope, ctx.call_depth = callee, scope, ctx.call_depth + 1
        lower_block(ctx, callee.tree.body)
        return ctx.scope.get(RESULT, PythonObject(None))


def _bind_arguments(ctx: Lowering, node: ast.Call, callee: Source) -> dict[str, Any]:
    """Return the scope of an inlined function: its parameters."""
    positional = [ctx.lower(a) for a in node.args]
    named = {str(k.arg): ctx.lower(k.value) for k in node.keywords}
    a = callee.tree.args
    names = [x.arg for x in (*a.posonlyargs, *a.args)]
    defaults = getattr(callee.function, "__defaults__", None) or ()
    scope = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    scope |= dict(zip(names, positional, strict=False)) | named
    too_many = len(positional) > len(names)
    if a.vararg or a.kwarg or a.kwonlyargs or too_many or {*scope} != {*names}:
        ctx.refuse(
            node, f"{text_of(node)}: {callee.name} takes ({', '.join(names)}), by place or name"
        )
    return {**scope, RETURN: False}


def _extreme(name: str) -> Builtin:
    def lower(ctx: Lowering, node: ast.Call, args: list[Any]) -> Any:
        if len(args) < 2 or not all(map(is_number, args)):
            _refuse_call(ctx, node, getattr(builtins, name[:3]))
        result = args[0]
        for x in args[1:]:
            result = apply_op(TABLE[name], result, x)
        return result

    return lower


def _python_cast(python_type: type[int | float]) -> Builtin:
    kind = KINDS[python_type]

    def lower(ctx: Lowering, node: ast.Call, args: list[Any]) -> Any:
        if len(args) != 1 or not is_number(args[0]):
            ctx.refuse(node, f"{text_of(node)}: takes one number")
        if is_constant(args[0]):
            return python_type(args[0])
        return WeakNumber(kind, as_dtype(args[0], WIDEST_DTYPES[kind]))

    return lower


def _rounding(name: str) -> Builtin:
    def lower(ctx: Lowering, node: ast.Call, args: list[Any]) -> Any:
        if not all(map(is_number, args)):
            ctx.refuse(node, f"{text_of(node)}: takes one number")
        return _python_cast(int)(ctx, node, [_apply_function(ctx, node, name, args)])

    return lower


def _lower_len(ctx: Lowering, node: ast.Call, args: list[Any]) -> Any:
    owner = args[0] if len(args) == 1 else None
    if isinstance(owner, tuple):
        return len(owner)
    if not isinstance(owner, TensorParameter) or owner.rank == 0:
        ctx.refuse(node, f"{text_of(node)}: takes a tensor that has axes")
    return WeakNumber("i", ctx.builder.extent(owner, 0))


_BUILTINS: dict[int, Builtin] = {
    id(builtins.max): _extreme("maximum"),
    id(builtins.min): _extreme("minimum"),
    id(builtins.int): _python_cast(int),
    id(builtins.float): _python_cast(float),
    id(builtins.bool): _python_cast(bool),
    id(builtins.len): _lower_len,
    id(builtins.round): _rounding("round"),
    id(math.floor): _rounding("floor"),
    id(math.ceil): _rounding("ceil"),
    id(math.trunc): _rounding("trunc"),
}
