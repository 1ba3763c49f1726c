"""Lowering of `sum(... for k in range(n))` and its like to reductions in canonical order."""

from __future__ import annotations

import ast
from typing import Any

from ..dtypes import DType, bool_, int64
from ..ir.builder import combine
from ..ir.language import Effect, Loop, Store, Value, const, fold_loop, reduce_loop, where
from ..ops.arithmetic import convert
from ..ops.table import TABLE
from .lowering_context import Lowering
from .source import text_of
from .weak_types import Condition, WeakNumber, as_condition, as_dtype, as_value, conjunction


def lower_generator(ctx: Lowering, node: ast.GeneratorExp) -> Any:
    """Raise a KernelError: a generator may only be the argument of a reduction."""
    ctx.refuse(
        node, f"{text_of(node)}: a generator must be the argument of sum, max, min, any or all"
    )


def lower_reduction(ctx: Lowering, name: str, node: ast.GeneratorExp) -> Any:
    """Lower the reduction `name` of a generator, and return its value.

    With index checks, a loop before it checks the indices: a reduction has no effects.
    """
    effects = ctx.effects
    if ctx.builder.checks_indices and effects is not None:
        _append_index_checks(ctx, node, 0, effects)
    with ctx.preserve_state():
        ctx.effects = None
        value, results = _lower_reduction_loop(ctx, name, node, 0)
    if effects is not None:
        effects += results  # computed here, because a store may follow
    return value


def _lower_reduction_loop(
    ctx: Lowering, name: str, node: ast.GeneratorExp, depth: int
) -> tuple[Any, tuple[Value, ...]]:
    """Return the value of the `for`s from `depth` on, and the IR results of their loop."""
    start, stop = _lower_bounds(ctx, node, depth)
    op, is_truth = TABLE[name], name in ("any", "all")
    element: Any = None
    result_dtype: DType = bool_

    def lower_terms(index: Value) -> tuple[Value, ...]:
        """Return the terms of an iteration; the identity where an `if` is false."""
        nonlocal element, result_dtype
        condition = _enter_loop(ctx, node, depth, index)
        if depth + 1 < len(node.generators):
            element, _ = _lower_reduction_loop(ctx, name, node, depth + 1)
        else:
            element = ctx.lower_number(node.elt)
        if is_truth:
            element = as_condition(element)
        casts, result_dtype = op.dtypes(name, [as_value(element).dtype], None)
        terms = tuple(op.before(as_dtype(element, casts[0].compute), index))
        if condition is not None:
            identity = combine(op.combine, tuple(t.dtype for t in terms)).identity
            terms = tuple(where(condition, t, i) for t, i in zip(terms, identity, strict=True))
        return terms

    with ctx.preserve_state():
        results = reduce_loop(op.combine, start, stop, lower_terms)
    value = convert(op.after(results, stop - start), result_dtype)
    if is_truth:
        return WeakNumber("b", value), results
    return value if isinstance(element, Value) else WeakNumber(value.dtype.kind, value), results


def _lower_bounds(ctx: Lowering, node: ast.GeneratorExp, depth: int) -> tuple[Value, Value]:
    """Return start and stop of the `for` at `depth`. Raises: KernelError unless over a range."""
    generator = node.generators[depth]
    call = generator.iter
    if ctx.called_object(call) is not range or generator.is_async:
        ctx.refuse(node, f"{text_of(node)}: the loop must be `for k in range(...)`")
    assert isinstance(call, ast.Call)
    if not isinstance(generator.target, ast.Name) or not 1 <= len(call.args) <= 2:
        ctx.refuse(node, f"{text_of(node)}: write `for k in range(start, stop)`")
    bounds = [ctx.lower_integer(a) for a in call.args]
    return (const(0, int64), bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])


def _enter_loop(ctx: Lowering, node: ast.GeneratorExp, depth: int, index: Value) -> Condition:
    """Bind the variable of the `for` at `depth`, and return the condition of its `if`s."""
    generator = node.generators[depth]
    assert isinstance(generator.target, ast.Name)
    ctx.scope[generator.target.id] = WeakNumber("i", index)
    ctx.enter_loop(index.place[0])
    result: Condition = None
    for test in generator.ifs:
        value = as_condition(ctx.lower_number(test))
        condition = const(value, bool_) if isinstance(value, bool) else value
        result = condition if result is None else result & condition
        ctx.condition = conjunction(ctx.condition, condition)
    return result


def _append_index_checks(
    ctx: Lowering, node: ast.GeneratorExp, depth: int, effects: list[Effect | Value]
) -> None:
    """Append to `effects` a loop that checks the indices of a generator."""
    start, stop = _lower_bounds(ctx, node, depth)
    checks: list[Effect | Value] = []

    def lower_checks(index: Value) -> Any:
        """Lower the element with its index checks; return no carries, and the checks."""
        _enter_loop(ctx, node, depth, index)
        if depth + 1 < len(node.generators):
            _append_index_checks(ctx, node, depth + 1, checks)
        else:
            ctx.lower(node.elt)
        return (), tuple(checks)

    with ctx.preserve_state():
        ctx.effects = checks
        loop = fold_loop(start, stop, (), lower_checks)
    if any(isinstance(effect, Store | Loop) for effect in loop.effects):
        effects.append(loop)
