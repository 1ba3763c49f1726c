"""The rules that lower a user's function to kernel IR: one for each kind of syntax node."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ..ir.language import Effect, Value
from . import dsl, lower_calls, lower_expressions, lower_loops, lower_reductions, lower_statements
from .grid_bounds import NonUniformBoundError
from .lowering_context import Lowering
from .weak_types import WeakNumber

RULES: dict[type[ast.AST], Callable[[Lowering, Any], Any]] = {
    ast.Constant: lower_expressions.lower_constant,
    ast.Name: lower_expressions.lower_name,
    ast.Tuple: lower_expressions.lower_tuple,
    ast.Attribute: lower_expressions.lower_attribute,
    ast.Subscript: lower_expressions.lower_subscript,
    ast.BinOp: lower_expressions.lower_binary,
    ast.UnaryOp: lower_expressions.lower_unary,
    ast.Compare: lower_expressions.lower_comparison,
    ast.BoolOp: lower_expressions.lower_boolean,
    ast.IfExp: lower_expressions.lower_conditional,
    ast.Call: lower_calls.lower_call,
    ast.GeneratorExp: lower_reductions.lower_generator,
    ast.Expr: lower_statements.lower_expression_statement,
    ast.Assign: lower_statements.lower_assign,
    ast.AnnAssign: lower_statements.lower_annotated_assign,
    ast.AugAssign: lower_statements.lower_augmented_assign,
    ast.If: lower_statements.lower_if,
    ast.Break: lower_statements.lower_break,
    ast.Continue: lower_statements.lower_continue,
    ast.Return: lower_statements.lower_return,
    ast.Pass: lambda ctx, node: None,
    ast.For: lower_loops.lower_for,
}


def lower_grid(ctx: Lowering, uniform: Sequence[ast.stmt], loop: ast.For) -> list[Effect | Value]:
    """Lower a loop over `dt.grid` at the top of a kernel and return its effects; add its axes.

    uniform: the assignments before it. Raises: KernelError, DTypeError, ValueOverflowError.
    """
    effects = lower_statements.effects_of(ctx, loop)
    lower_statements.lower_block(ctx, uniform)
    if ctx.called_object(loop.iter) is not dsl.grid or loop.orelse:
        ctx.refuse(loop, "a loop at the top level of a kernel must be `for i, j in dt.grid(...):`")
    axes, names = lower_loops.grid_axes(ctx, loop)
    for name, (start, stop) in zip(names, axes, strict=True):
        try:
            ctx.scope[name] = WeakNumber("i", ctx.builder.add_axis(start, stop))
        except NonUniformBoundError:
            ctx.refuse(
                loop,
                "the extents of dt.grid must be known before the launch; use shapes and int "
                "arguments",
            )
    lower_statements.lower_block(ctx, loop.body)
    if all(isinstance(effect, Value) for effect in effects):
        ctx.refuse(loop, "a loop over dt.grid must write a tensor, and this loop writes none")
    return effects
