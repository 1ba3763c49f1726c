"""Lowering of loops: over `range`, over `dt.grid` and over tuples."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

from ..dtypes import bool_, int64
from ..ir.language import Effect, Loop, Value, const, map_loop, quo, where
from . import dsl
from .lower_statements import (
    BREAK,
    CONTINUE,
    NO_FLAGS,
    RETURN,
    assign_target,
    effects_of,
    guard_statements,
    lower_block,
    stop_flag,
)
from .lowering_context import Lowering, Unassigned
from .source import text_of
from .weak_types import (
    CarryType,
    WeakNumber,
    as_dtype,
    carry_type,
    from_carry,
    is_number,
    is_same_type,
    join_carry_type,
    kind_of,
    to_carry,
)

CARRY_TYPE_ATTEMPTS_MAX = 16  # lowerings of a body until the types of what it carries are known
Bounds: TypeAlias = tuple[Value, Value]


def lower_for(ctx: Lowering, node: ast.For) -> None:
    """Lower a loop over `range`, `dt.grid` or a tuple."""
    if node.orelse:
        ctx.refuse(node, "a kernel cannot have 'else' after 'for'")
    callee = ctx.called_object(node.iter)
    items = None if isinstance(node.iter, ast.Call) else ctx.lower(node.iter)
    if callee is range:
        _lower_range(ctx, node)
    elif callee is dsl.grid:
        _lower_inner_grid(ctx, node)
    elif isinstance(items, tuple):
        _lower_unrolled(ctx, node, items)
    else:
        ctx.refuse(
            node,
            "a loop must be `for k in range(...)` or, if its rounds are independent, "
            "`for i, j in dt.grid(...)`",
        )


def _lower_unrolled(ctx: Lowering, node: ast.For, items: tuple[Any, ...]) -> None:
    """Lower the body once for each item, and restore the flags of the outer loop."""
    outer_loop, ctx.innermost_loop = ctx.innermost_loop, "range"
    outer_flags = {flag: ctx.scope.get(flag) for flag in (CONTINUE, BREAK)}
    ctx.scope |= {CONTINUE: False, BREAK: False}
    _lower_iterations(ctx, node, items)
    for flag, value in outer_flags.items():
        ctx.scope.pop(flag, None)
        if value is not None:
            ctx.scope[flag] = value
    ctx.innermost_loop = outer_loop


def _lower_iterations(ctx: Lowering, node: ast.For, items: tuple[Any, ...]) -> None:
    """Lower the body once per item; a conditional `break` guards the items after it."""
    for k, item in enumerate(items):
        ctx.scope[CONTINUE] = False
        assign_target(ctx, node.target, item)
        lower_block(ctx, node.body)
        ctx.scope[CONTINUE] = False
        stopped = stop_flag(ctx)
        if stopped is True:
            return
        if isinstance(stopped, Value):
            with guard_statements(ctx, ~stopped):
                _lower_iterations(ctx, node, items[k + 1 :])
            return


def _lower_range(ctx: Lowering, node: ast.For) -> None:
    """Lower a loop over `range`, which carries the numbers that it assigns, to a fold."""
    call = node.iter
    assert isinstance(call, ast.Call)
    if not isinstance(node.target, ast.Name) or not 1 <= len(call.args) <= 3 or call.keywords:
        ctx.refuse(node, "write `for k in range(start, stop)`, with one name")
    start, stop, step = _range_arguments(ctx, node, call)
    bounds = (start, stop) if step == 1 else (const(0, int64), _trip_count(start, stop, step))
    if ctx.condition is not None:  # no iterations where the code does not run
        bounds = bounds[0], where(ctx.condition, bounds[1], bounds[0])

    def compute_index(counter: Value) -> Value:
        """Return the loop variable's value for the number of the iteration."""
        return counter if step == 1 else start + counter * step

    assigned = _assigned_names(node.body)
    types = {n: carry_type(ctx.scope[n]) for n in assigned if is_number(ctx.scope.get(n))}
    jumps = ((BREAK, ast.Break), (RETURN, ast.Return))
    flags = [flag for flag, jump in jumps if _contains_jump(node.body, jump)]
    for _ in range(CARRY_TYPE_ATTEMPTS_MAX):
        loop, scope_after, effects = _lower_fold(ctx, node, bounds, compute_index, types, flags)
        joined_types = {n: join_carry_type(kind, scope_after[n]) for n, kind in types.items()}
        if all(is_same_type(joined_types[n], kind) for n, kind in types.items()):
            break
        types = joined_types
    else:
        ctx.refuse(
            node,
            "a variable that this loop assigns must keep its dtype; cast it, as in dt.float32(...)",
        )
    if effects and ctx.effects is not None:
        ctx.effects.append(loop)
    for name in assigned:
        if name not in types:
            ctx.scope[name] = Unassigned("it is assigned in a loop that may have no rounds")
    ctx.scope[node.target.id] = Unassigned("it is the variable of a loop that has ended")
    for result, (name, kind) in zip(loop.results, types.items(), strict=False):
        ctx.scope[name] = from_carry(result, kind)
    for result, flag in zip(loop.results[len(types) :], flags, strict=True):
        if flag == RETURN:
            ctx.scope[RETURN] = result


def _range_arguments(ctx: Lowering, node: ast.For, call: ast.Call) -> tuple[Value, Value, int]:
    """Return start, stop, step of `range(...)`. Raises: KernelError unless the step is constant."""
    arguments = [ctx.lower_integer(a) for a in call.args]
    if len(arguments) == 1:
        return const(0, int64), arguments[0], 1
    if len(arguments) == 2:
        return arguments[0], arguments[1], 1
    start, stop, step = arguments
    if step.op != "const" or step.number == 0:
        ctx.refuse(node, "the step of range() must be a constant number other than 0")
    return start, stop, int(step.number)


def _lower_fold(
    ctx: Lowering,
    node: ast.For,
    bounds: Bounds,
    index_of: Callable[[Value], Value],
    types: dict[str, CarryType],
    flags: Sequence[str],
) -> tuple[Loop, dict[str, Any], list[Effect | Value]]:
    """Lower the body of a loop that carries names in these types, and flags.

    Return the loop, the scope after an iteration and the effects.
    """
    assert isinstance(node.target, ast.Name)
    initial = [to_carry(ctx.scope[name], kind) for name, kind in types.items()]
    loop = Loop("fold", *bounds, init=(*initial, *(const(False, bool_) for _ in flags)))
    loop.carry = _create_loop_values("carry", loop)
    carried_flags = loop.carry[len(types) :]
    if RETURN in flags and ctx.call_depth:
        ctx.refuse(
            node,
            "'return' cannot stand in a loop of a function; break, and return after it",
        )
    with ctx.preserve_state():
        ctx.scope |= NO_FLAGS
        for value, (name, kind) in zip(loop.carry, types.items(), strict=False):
            ctx.scope[name] = from_carry(value, kind)
        ctx.scope[node.target.id] = WeakNumber("i", index_of(loop.var))
        ctx.condition, ctx.innermost_loop = None, "range"
        ctx.effects = None if ctx.effects is None else []
        ctx.enter_loop(loop)
        if not flags:
            lower_block(ctx, node.body)
        else:
            with guard_statements(ctx, ~reduce(or_, carried_flags)):
                lower_block(ctx, node.body)
            for flag, carried_flag in zip(flags, carried_flags, strict=True):
                now = ctx.scope[flag]
                if isinstance(now, Value):
                    ctx.scope[flag] = carried_flag | now
                else:
                    ctx.scope[flag] = const(True, bool_) if now else carried_flag
        scope_after, effects = ctx.scope, ctx.effects or []
    update = []
    for name, kind in types.items():
        value = scope_after[name]
        if not is_number(value):
            reason = value.reason if isinstance(value, Unassigned) else "it is not a number"
            ctx.refuse(node, f"{name} may have no value after a round: {reason}")
        update.append(to_carry(value, join_carry_type(kind, value)))
    loop.update = (*update, *(scope_after[flag] for flag in flags))
    loop.effects = tuple(effects)  # type: ignore[arg-type]  # Values too
    loop.results = _create_loop_values("result", loop)
    return loop, scope_after, effects


def _create_loop_values(op: str, loop: Loop) -> tuple[Value, ...]:
    """Return new carries or results of a loop, one for each initial value."""
    return tuple(Value(op, v.dtype, (), (loop, i)) for i, v in enumerate(loop.init))


def _trip_count(start: Value, stop: Value, step: int) -> Value:
    """Return len(range(start, stop, step))."""
    distance = stop - start if step > 0 else start - stop
    size, zero = abs(step), const(0, int64)
    return where(zero < distance, quo(distance + (size - 1), size), zero)


def _assigned_names(body: Sequence[ast.stmt]) -> list[str]:
    """Return the names that statements assign, nested ones too, but not in comprehensions."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    generators = [node.target for node in nodes if isinstance(node, ast.comprehension)]
    targets = {target for generator in generators for target in ast.walk(generator)}
    stored = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return list(dict.fromkeys(n.id for n in stored if n not in targets))


def _contains_jump(body: Sequence[ast.stmt], kind: type[ast.stmt]) -> bool:
    """Return True if statements contain such a jump; a `break` of an inner loop does not count."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, kind):
            return True
        if kind is ast.Break and isinstance(node, ast.For):
            continue
        stack += ast.iter_child_nodes(node)
    return False


def _lower_inner_grid(ctx: Lowering, node: ast.For) -> None:
    """Lower a loop over `dt.grid` within a point, and append its effects.

    Raises: KernelError if the body assigns a number from before the loop.
    """
    axes, names = grid_axes(ctx, node)
    changed = [n for n in _assigned_names(node.body) if is_number(ctx.scope.get(n))]
    if changed:
        ctx.refuse(
            node,
            f"{changed[0]} must not be assigned in a loop over dt.grid, whose rounds are "
            "independent, because it has a value before; use range(), or a reduction such as sum()",
        )
    effects, condition = effects_of(ctx, node), ctx.condition

    def lower_axis(axis: int) -> list[Effect | Value]:
        """Return the effects of the loops over an axis and the axes inside of it."""
        if axis == len(axes):
            inner: list[Effect | Value] = []
            ctx.effects = inner
            lower_block(ctx, node.body)
            return inner
        start, stop = axes[axis]
        if condition is not None and axis == 0:  # no iterations where the code does not run
            stop = where(condition, stop, start)

        def lower_iteration(index: Value) -> list[Effect | Value]:
            """Return an iteration's effects; bind the index to the axis' name."""
            ctx.enter_loop(index.place[0])
            ctx.scope[names[axis]] = WeakNumber("i", index)
            return lower_axis(axis + 1)

        return [map_loop(start, stop, lower_iteration)]

    with ctx.preserve_state():
        ctx.scope |= NO_FLAGS
        ctx.condition, ctx.innermost_loop = None, "grid"
        loops = lower_axis(0)
    effects += loops


def grid_axes(ctx: Lowering, node: ast.For) -> tuple[list[Bounds], list[str]]:
    """Return the bounds of each axis of a `dt.grid`, and the names of the indices."""
    call, target = node.iter, node.target
    assert isinstance(call, ast.Call)
    extents: list[Any] = []
    for a in call.args:
        if isinstance(a, ast.Starred):
            shape = ctx.lower(a.value)
            if not isinstance(shape, tuple):
                ctx.refuse(node, f"{text_of(a)}: write *x.shape")
            extents += shape
        else:
            extents.append(ctx.lower(a))
    if not extents or call.keywords:
        ctx.refuse(node, "dt.grid expects an extent or (start, stop) for each axis")
    axes = [_axis_bounds(ctx, node, extent) for extent in extents]
    targets = target.elts if isinstance(target, ast.Tuple) and len(axes) > 1 else [target]
    names = [t.id for t in targets if isinstance(t, ast.Name)]
    if not len(names) == len(targets) == len(axes):
        ctx.refuse(node, f"{text_of(target)}: expected one name per axis of dt.grid, {len(axes)}")
    return axes, names


def _axis_bounds(ctx: Lowering, node: ast.For, extent: Any) -> Bounds:
    """Return an axis' start and stop as int64. Raises: KernelError if they are no integers."""
    bounds = extent if isinstance(extent, tuple) else (0, extent)
    if len(bounds) != 2 or not all(map(is_number, bounds)):
        ctx.refuse(node, "an axis of dt.grid must be an extent or (start, stop)")
    if any(kind_of(x) not in "biu" for x in bounds):
        ctx.refuse(node, "the extents of dt.grid must be integers; write int(...)")
    return as_dtype(bounds[0], int64), as_dtype(bounds[1], int64)
