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
from .lowering_context import Lowering, PythonObject, describe_value
from .source import FunctionSource, text_of
from .user_kernel_builder import TensorParameter
from .weak_types import (
    KINDS,
    WIDEST_DTYPES,
    WeakNumber,
    apply_op,
    as_condition,
    as_dtype,
    is_constant,
    is_number,
    select,
)

INLINE_DEPTH_MAX = 32  # functions that call each other
Builtin: TypeAlias = Callable[[Lowering, ast.Call, list[Any]], Any]


def lower_call(ctx: Lowering, node: ast.Call) -> Any:
    """Lower a call, and return its value. Raises: KernelError if a kernel cannot call it."""
    args = node.args
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
        owner = ctx.lower(node.func.value)
        if is_number(owner):
            return _lower_cast(ctx, node, owner, [*args, *(k.value for k in node.keywords)])
    callee = ctx.lower(node.func)
    if not isinstance(callee, PythonObject):
        ctx.refuse(node, f"{text_of(node.func)} must be a function, got {describe_value(callee)}")
    function = callee.value
    reduction = reduction_name(function)
    if reduction is not None and len(args) == 1 and isinstance(args[0], ast.GeneratorExp):
        return lower_reduction(ctx, reduction, args[0])
    for arg in args:
        if isinstance(arg, ast.Starred):
            ctx.refuse_syntax(arg)
    user_function = as_user_function(function)
    if node.keywords and user_function is None:
        ctx.refuse(node, f"{text_of(node)}: pass the arguments by position in a kernel")
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
        return _inline_call(ctx, node, user_function)
    _refuse_call(ctx, node, function)


def _refuse_call(ctx: Lowering, node: ast.Call, function: Any) -> NoReturn:
    """Raise the KernelError of a function that a kernel cannot call in this way."""
    name = text_of(node.func)
    if function is dsl.grid or function is range:
        ctx.refuse(node, f"{name}(...) can only follow `for ... in` in a kernel")
    if id(function) in dsl.ATOMICS:
        ctx.refuse(node, f"{name} returns nothing; write it as a statement")
    if reduction_name(function) is not None:
        ctx.refuse(node, f"{name} must have a generator in a kernel: {name}(... for k in range(n))")
    ctx.refuse(
        node,
        f"a kernel cannot call {name}; it can call dt's elementwise functions, sum, max, min, "
        "any and all of a generator, casts, dt.atomic_*, and your own functions of this form",
    )


def _lower_cast(ctx: Lowering, node: ast.Call, x: Any, dtypes: Sequence[ast.expr]) -> Value:
    """Return a number cast to the dtype of one expression. Raises: KernelError if it names none."""
    named = ctx.lower(dtypes[0]) if len(dtypes) == 1 else None
    dtype = as_dtype_object(named.value) if isinstance(named, PythonObject) else None
    if dtype is None:
        ctx.refuse(node, f"{text_of(node)}: expected a dtype such as dt.float32")
    return as_dtype(int(x) if isinstance(x, float) and dtype.kind in "iu" else x, dtype)


def _apply_function(ctx: Lowering, node: ast.Call, name: str, args: list[Any]) -> Any:
    """Return an op of the table, `pow` or `where` on lowered numbers; refuse a wrong arity."""
    if name == "pow" and len(args) == 2:
        return apply_binary("pow", *args)
    if name == "where" and len(args) == 3:
        condition = as_condition(args[0])
        if isinstance(condition, bool):
            return args[1] if condition else args[2]
        return select(condition, args[1], args[2])
    op = TABLE[name]
    if len(args) != op.arity:
        many = f"{op.arity} argument{'s' if op.arity > 1 else ''}"
        ctx.refuse(node, f"{text_of(node)}: {name} expects {many}, got {len(args)}")
    return apply_op(op, *args)


def _inline_call(ctx: Lowering, node: ast.Call, function: types.FunctionType) -> Any:
    """Lower the body of a user's function in place of the call, and return its result."""
    if ctx.call_depth >= INLINE_DEPTH_MAX:
        ctx.refuse(
            node, f"{text_of(node)}: calls of functions must be less than {INLINE_DEPTH_MAX} deep"
        )
    callee = FunctionSource(function, ctx.source.kernel)
    scope = _bind_arguments(ctx, node, callee)
    with ctx.preserve_state():
        ctx.source, ctx.scope, ctx.call_depth = callee, scope, ctx.call_depth + 1
        lower_block(ctx, callee.tree.body)
        return ctx.scope.get(RESULT, PythonObject(None))


def _bind_arguments(ctx: Lowering, node: ast.Call, callee: FunctionSource) -> dict[str, Any]:
    """Return an inlined function's scope, its parameters.

    Raises: KernelError if arguments do not fit.
    """
    positional = [ctx.lower(a) for a in node.args]
    named = {str(k.arg): ctx.lower(k.value) for k in node.keywords}
    a = callee.tree.args
    names = [x.arg for x in (*a.posonlyargs, *a.args)]
    defaults = getattr(callee.function, "__defaults__", None) or ()
    scope = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    scope |= dict(zip(names, positional, strict=False)) | named
    is_doubled = len(positional) > len(names) or {*names[: len(positional)]} & {*named}
    if a.vararg or a.kwarg or a.kwonlyargs or is_doubled or {*scope} != {*names}:
        ctx.refuse(
            node, f"{text_of(node)}: {callee.name} expects each of ({', '.join(names)}) once"
        )
    return {**scope, RETURN: False}


def _extremum_rule(name: str) -> Builtin:
    """Return the rule that lowers Python's `min` or `max` of two or more numbers."""

    def lower(ctx: Lowering, node: ast.Call, args: list[Any]) -> Any:
        """Return the extremum of the arguments, folded from left to right."""
        if len(args) < 2 or not all(map(is_number, args)):
            _refuse_call(ctx, node, getattr(builtins, name[:3]))
        result = args[0]
        for x in args[1:]:
            result = apply_op(TABLE[name], result, x)
        return result

    return lower


def _python_cast_rule(python_type: type[int | float]) -> Builtin:
    """Return the rule that lowers `int(x)` or `float(x)`."""
    kind = KINDS[python_type]

    def lower(ctx: Lowering, node: ast.Call, args: list[Any]) -> Any:
        """Return a constant as a Python number, others weakly typed in the kind's widest dtype."""
        if len(args) != 1 or not is_number(args[0]):
            ctx.refuse(node, f"{text_of(node)}: expected one number")
        if is_constant(args[0]):
            return python_type(args[0])
        return WeakNumber(kind, as_dtype(args[0], WIDEST_DTYPES[kind]))

    return lower


def _rounding_rule(name: str) -> Builtin:
    """Return the rule that lowers a rounding function of `math`, whose result is an int."""

    def lower(ctx: Lowering, node: ast.Call, args: list[Any]) -> Any:
        """Return the rounded number as an int."""
        if not all(map(is_number, args)):
            ctx.refuse(node, f"{text_of(node)}: expected one number")
        return _python_cast_rule(int)(ctx, node, [_apply_function(ctx, node, name, args)])

    return lower


def _lower_len(ctx: Lowering, node: ast.Call, args: list[Any]) -> Any:
    """Return the length of a tuple, or a tensor's first extent. Raises: KernelError for others."""
    owner = args[0] if len(args) == 1 else None
    if isinstance(owner, tuple):
        return len(owner)
    if not isinstance(owner, TensorParameter) or owner.rank == 0:
        ctx.refuse(node, f"{text_of(node)}: expected a tensor that has axes")
    return WeakNumber("i", ctx.builder.extent(owner, 0))


_BUILTINS: dict[int, Builtin] = {
    id(builtins.max): _extremum_rule("maximum"),
    id(builtins.min): _extremum_rule("minimum"),
    id(builtins.int): _python_cast_rule(int),
    id(builtins.float): _python_cast_rule(float),
    id(builtins.bool): _python_cast_rule(bool),
    id(builtins.len): _lower_len,
    id(builtins.round): _rounding_rule("round"),
    id(math.floor): _rounding_rule("floor"),
    id(math.ceil): _rounding_rule("ceil"),
    id(math.trunc): _rounding_rule("trunc"),
}
