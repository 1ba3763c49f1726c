"""Lowering of assignments, branches and jumps.

Kernel IR has no branches: the statements of an `if` run under a condition, which their loads and
stores get, and a name that they assign becomes a `select` of two values. `break`, `continue` and
`return` set flags in the scope; the statements behind them run where no flag is set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from ..errors import DovetailError
from ..ir.language import Atomic, Effect, Store, Value
from . import dsl
from .builtin_names import BINARY_OPS, as_user_function
from .lower_expressions import apply_binary, element_access, lower_access
from .lowering_context import Lowering, Unassigned
from .source import text_of
from .user_kernel_builder import ElementAccess, TensorParameter, read_element
from .weak_types import as_condition, as_element, conjunction, is_number, select

CONTINUE, BREAK, RETURN, RESULT = "%continue", "%break", "%return", "%result"
FLAGS = (CONTINUE, BREAK, RETURN)
NO_FLAGS = dict.fromkeys(FLAGS, False)
Flag: TypeAlias = bool | Value


def lower_block(ctx: Lowering, body: Sequence[ast.stmt]) -> None:
    """Lower statements in order; those behind a jump run where it is not taken."""
    for k, statement in enumerate(body):
        flags_before = _read_flags(ctx)
        ctx.lower(statement)
        stopped = stop_flag(ctx)
        if stopped is True:
            return
        if isinstance(stopped, Value) and body[k + 1 :] and _read_flags(ctx) != flags_before:
            with guard_statements(ctx, ~stopped):
                lower_block(ctx, body[k + 1 :])
            return


def lower_expression_statement(ctx: Lowering, node: ast.Expr) -> None:
    """Lower an atomic or a call of a user's function; skip a string.

    Raises: KernelError for other expressions.
    """
    value = node.value
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return
    function = ctx.called_object(value)
    if isinstance(value, ast.Call) and id(function) in dsl.ATOMICS:
        _lower_atomic(ctx, value, dsl.ATOMICS[id(function)])
    elif as_user_function(function) is not None:
        ctx.lower(value)
    else:
        ctx.refuse(node, f"{text_of(node)} has no effect; assign or store its value")


def lower_assign(ctx: Lowering, node: ast.Assign) -> None:
    """Lower `a = b = value`."""
    value = ctx.lower(node.value)
    for target in node.targets:
        assign_target(ctx, target, value)


def lower_annotated_assign(ctx: Lowering, node: ast.AnnAssign) -> None:
    """Raise a KernelError: a name cannot have a type annotation."""
    ctx.refuse(
        node, f"{text_of(node)}: a name cannot have a type; write a cast such as dt.float32(...)"
    )


def lower_augmented_assign(ctx: Lowering, node: ast.AugAssign) -> None:
    """Lower `name += value` or `t[i] += value`."""
    name = BINARY_OPS.get(type(node.op))
    if name is None:
        ctx.refuse_syntax(node)
    if not isinstance(node.target, ast.Subscript):
        old = ctx.lower_number(node.target)
        assign_target(ctx, node.target, apply_binary(name, old, ctx.lower_number(node.value)))
        return
    tensor, access = lower_access(ctx, node.target)
    if tensor.access != "rw":
        ctx.refuse(node, f"{tensor.name} is read and written; declare it dt.InOut")
    old = read_element(tensor, access)
    effects_of(ctx, node).append(old)
    value = apply_binary(name, old, ctx.lower_number(node.value))
    _store_element(ctx, node.target, value, tensor, access)


def assign_target(ctx: Lowering, target: ast.expr, value: Any) -> None:
    """Assign a value to a name or an element, or a tuple to several."""
    if isinstance(target, ast.Name):
        if isinstance(ctx.scope.get(target.id), TensorParameter):
            ctx.refuse(target, f"{target.id} is a tensor; write to its elements")
        ctx.scope[target.id] = value
    elif isinstance(target, ast.Tuple) and isinstance(value, tuple):
        if len(target.elts) != len(value):
            ctx.refuse(
                target, f"expected {len(target.elts)} values, one per name, got {len(value)}"
            )
        for each, item in zip(target.elts, value, strict=True):
            assign_target(ctx, each, item)
    elif isinstance(target, ast.Subscript):
        _store_element(ctx, target, value, *lower_access(ctx, target))
    else:
        ctx.refuse(target, f"{text_of(target)}: write to a name or to x[i, j]")


def _store_element(
    ctx: Lowering, target: ast.Subscript, value: Any, tensor: TensorParameter, access: ElementAccess
) -> None:
    """Append the store of a number to an element; record it in the builder's `stores`.

    Raises: KernelError for a `dt.In` tensor, a value that is no number, and a store within a
    reduction.
    """
    _require_writable(ctx, target, tensor)
    ctx.builder.stores.setdefault(tensor.position, []).append(target)
    if not is_number(value):
        ctx.refuse(target, f"{text_of(target)}: only numbers can be stored")
    effects = effects_of(ctx, target)
    element = _as_element(ctx, target, value, tensor)
    effects.append(Store(tensor.buffer, access.linear, element, access.when))


def _as_element(ctx: Lowering, node: ast.expr, value: Any, tensor: TensorParameter) -> Value:
    """Cast a number to the tensor's dtype.

    Raises: DTypeError, ValueOverflowError, with the line.
    """
    try:
        return as_element(value, tensor.type.dtype)
    except DovetailError as error:
        raise ctx.source.with_line(node, error) from None


def _require_writable(ctx: Lowering, node: ast.expr, tensor: TensorParameter) -> None:
    """Raise a KernelError if the tensor is declared `dt.In`."""
    if "w" not in tensor.access:
        ctx.refuse(
            node, f"{tensor.name} is dt.In and cannot be written; declare it dt.Out or dt.InOut"
        )


def effects_of(ctx: Lowering, node: ast.AST) -> list[Effect | Value]:
    """Return the list that collects effects. Raises: KernelError at a node within a reduction."""
    if ctx.effects is None:
        ctx.refuse(node, "sum(), max(), min(), any() and all() must not write a tensor")
    return ctx.effects


def _lower_atomic(ctx: Lowering, node: ast.Call, op: str) -> None:
    """Append the atomic of a call `dt.atomic_*(x, place, value)`.

    Raises: KernelError for other arguments, a `dt.In` tensor, and a dtype other than int32, int64,
    uint32 and uint64.
    """
    text = text_of(node)
    if len(node.args) != 3 or node.keywords:
        ctx.refuse(node, f"{text}: expected a tensor, an index and a value")
    tensor = ctx.lower(node.args[0])
    if not isinstance(tensor, TensorParameter):
        ctx.refuse(node, f"{text}: the first argument must be a tensor parameter")
    _require_writable(ctx, node, tensor)
    dtype = tensor.type.dtype
    if not dtype.is_integer or dtype.itemsize < 4:
        ctx.refuse(
            node,
            f"{text}: an atomic must be int32, int64, uint32 or uint64, got {dtype.name}; for sums "
            "of floats, which need an order, use dt.index_add",
        )
    access = element_access(ctx, node, tensor, node.args[1])
    value = _as_element(ctx, node, ctx.lower_number(node.args[2]), tensor)
    effects_of(ctx, node).append(Atomic(op, tensor.buffer, access.linear, value, access.when))


def lower_if(ctx: Lowering, node: ast.If) -> None:
    """Lower both branches, each under its condition, and merge their scopes."""
    condition = as_condition(ctx.lower_number(node.test))
    if isinstance(condition, bool):
        lower_block(ctx, node.body if condition else node.orelse)
        return
    yes = _lower_branch(ctx, condition, node.body)
    no = _lower_branch(ctx, ~condition, node.orelse)
    ctx.scope = _merge_scopes(condition, yes, no)


def _lower_branch(ctx: Lowering, condition: Value, body: Sequence[ast.stmt]) -> dict[str, Any]:
    """Lower statements under a condition, and return the scope after them."""
    with ctx.preserve_state():
        ctx.condition = conjunction(ctx.condition, condition)
        lower_block(ctx, body)
        return ctx.scope


@contextmanager
def guard_statements(ctx: Lowering, condition: Value) -> Iterator[None]:
    """Lower the statements of a `with` block under `condition`, then merge their scope."""
    outer = ctx.scope
    with ctx.preserve_state():
        ctx.scope |= NO_FLAGS
        ctx.condition = conjunction(ctx.condition, condition)
        yield
        inner = ctx.scope
    ctx.scope = _merge_scopes(condition, inner, outer)


def _merge_scopes(condition: Value, yes: dict[str, Any], no: dict[str, Any]) -> dict[str, Any]:
    """Return the scope that is `yes` where the condition holds, else `no`."""
    scope: dict[str, Any] = {}
    for name in {**yes, **no}:
        a: Any = yes.get(name)
        b: Any = no.get(name)
        if name in FLAGS:
            scope[name] = _select_flag(condition, a or False, b or False)
        elif a is b:
            scope[name] = a
        elif name == RESULT and (a is None or b is None):
            scope[name] = b if a is None else a
        elif is_number(a) and is_number(b):
            try:
                scope[name] = select(condition, a, b)
            except DovetailError as error:
                scope[name] = Unassigned(str(error))
        elif isinstance(a, Unassigned) or isinstance(b, Unassigned):
            scope[name] = a if isinstance(a, Unassigned) else b
        else:
            scope[name] = Unassigned("it is assigned in only one branch of an `if`")
    return scope


def _read_flags(ctx: Lowering) -> tuple[Any, ...]:
    """Return the values of the flags of `break`, `continue` and `return`; False if absent."""
    return tuple(ctx.scope.get(flag, False) for flag in FLAGS)


def stop_flag(ctx: Lowering) -> Flag:
    """Return the condition that any flag is set: a bool if it is constant."""
    stopped: Flag = False
    for flag in _read_flags(ctx):
        if flag is True:
            return True
        if isinstance(flag, Value):
            stopped = stopped | flag if isinstance(stopped, Value) else flag
    return stopped


def _select_flag(condition: Value, a: Flag, b: Flag) -> Flag:
    """Return the flag `a` where the condition holds, else `b`; constant flags fold."""
    if a is b:
        return a
    if isinstance(a, bool):
        if isinstance(b, bool):
            return condition if a else ~condition
        return condition | b if a else ~condition & b
    if isinstance(b, bool):
        return ~condition | a if b else condition & a
    return (condition & a) | (~condition & b)


def lower_break(ctx: Lowering, node: ast.Break) -> None:
    """Set the flag of `break`. Raises: KernelError directly in a loop over `dt.grid`."""
    if ctx.innermost_loop == "grid":
        ctx.refuse(node, "'break' can only leave a loop over range(); use 'continue'")
    ctx.scope[BREAK] = True


def lower_continue(ctx: Lowering, node: ast.Continue) -> None:
    """Set the flag of `continue`."""
    ctx.scope[CONTINUE] = True


def lower_return(ctx: Lowering, node: ast.Return) -> None:
    """Set the flag of `return` and an inlined function's result.

    Raises: KernelError for a value that the kernel itself returns.
    """
    if node.value is not None:
        if ctx.call_depth == 0:
            ctx.refuse(node, "a kernel cannot return a value; write to a dt.Out parameter")
        ctx.scope[RESULT] = ctx.lower(node.value)
    ctx.scope[RETURN] = True
