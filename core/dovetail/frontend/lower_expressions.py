"""Lowering of names, elements of tensors and operators."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ..dtypes import bool_, float64, int64
from ..ir.language import Store, Value, const, eq, where
from ..ops.table import TABLE
from ..tensor.promotion import plain_number
from .builtin_names import BINARY_OPS, COMPARISON_OPS, UNARY_OPS
from .lowering_context import Lowering, PythonObject, Unassigned, describe_value
from .source import text_of
from .user_kernel_builder import ElementAccess, TensorParameter, read_element
from .weak_types import (
    Condition,
    WeakNumber,
    apply_op,
    as_condition,
    as_dtype,
    as_value,
    conjunction,
    is_constant,
    is_number,
    kind_of,
    select,
)


def lower_constant(ctx: Lowering, node: ast.Constant) -> Any:
    """Return the value of a literal number. Raises: KernelError for another literal."""
    if isinstance(node.value, bool | int | float | complex):
        return node.value
    ctx.refuse(node, f"a kernel cannot use a {type(node.value).__name__}, got {node.value!r}")


def lower_name(ctx: Lowering, node: ast.Name) -> Any:
    """Lower a name of the kernel's scope or of Python's. Raises: KernelError if it has no value."""
    if node.id in ctx.scope:
        value = ctx.scope[node.id]
        if isinstance(value, Unassigned):
            ctx.refuse(node, f"{node.id} may have no value here: {value.reason}")
        return value
    exists, outer = ctx.source.outer_value(node.id)
    if not exists:
        ctx.refuse(node, f"{node.id} is not defined here or outside of the kernel")
    if isinstance(outer, bool | int | float):
        return ctx.outer_number(ctx.source, node.id)
    return _python_value(outer)


def _python_value(value: object) -> Any:
    """Return a Python number as it is, a tuple with its items wrapped, others as PythonObject."""
    if isinstance(value, bool | int | float | complex):
        return plain_number(value)
    if isinstance(value, tuple):
        return tuple(_python_value(x) for x in value)
    return PythonObject(value)


def lower_tuple(ctx: Lowering, node: ast.Tuple) -> Any:
    """Lower a tuple to a tuple of values."""
    return tuple(ctx.lower(x) for x in node.elts)


def lower_attribute(ctx: Lowering, node: ast.Attribute) -> Any:
    """Lower an attribute of a tensor, of a complex number or of a Python object."""
    owner, name = ctx.lower(node.value), node.attr
    if isinstance(owner, TensorParameter):
        if name == "ndim":
            return owner.rank
        if name == "dtype":
            return PythonObject(owner.type.dtype)
        if name not in ("shape", "size"):
            ctx.refuse(
                node,
                f"in a kernel a tensor has shape, ndim, size, dtype and elements, but not {name}",
            )
        shape = tuple(WeakNumber("i", ctx.builder.extent(owner, k)) for k in range(owner.rank))
        if name == "shape":
            return shape
        size: Any = 1
        for extent in shape:
            size = apply_op(TABLE["multiply"], size, extent)
        return size
    if is_number(owner) and name in ("real", "imag"):
        if kind_of(owner) == "c":
            return apply_op(TABLE[name], owner)
        return owner if name == "real" else 0
    if isinstance(owner, PythonObject):
        if not hasattr(owner.value, name):
            ctx.refuse(node, f"{text_of(node.value)} has no {name}")
        return _python_value(getattr(owner.value, name))
    ctx.refuse(node, f"{text_of(node)}: {describe_value(owner)} has no {name} in a kernel")


def lower_subscript(ctx: Lowering, node: ast.Subscript) -> Any:
    """Lower `t[i, j]` to a load, in order with stores if `t` is written, or `t[k]` of a tuple."""
    owner = ctx.lower(node.value)
    if isinstance(owner, tuple):
        k = ctx.lower(node.slice)
        if type(k) is not int or not -len(owner) <= k < len(owner):
            ctx.refuse(
                node,
                f"{text_of(node)}: the index must be a constant integer within {len(owner)} items",
            )
        return owner[k]
    tensor, access = lower_access(ctx, node)
    if "r" not in tensor.access:
        ctx.refuse(node, f"{tensor.name} is dt.Out and cannot be read; declare it dt.InOut")
    element = read_element(tensor, access)
    if tensor.access != "r" and ctx.effects is not None:
        ctx.effects.append(element)  # read here, because a store may follow
    return element


def lower_access(ctx: Lowering, node: ast.Subscript) -> tuple[TensorParameter, ElementAccess]:
    """Return the tensor of a subscript, and the access. Raises: KernelError for another object."""
    tensor = ctx.lower(node.value)
    if not isinstance(tensor, TensorParameter):
        ctx.refuse(
            node,
            f"{text_of(node.value)} must be a tensor to be indexed, got {describe_value(tensor)}",
        )
    return tensor, element_access(ctx, node, tensor, node.slice)


def element_access(
    ctx: Lowering, node: ast.expr, tensor: TensorParameter, subscript: ast.expr
) -> ElementAccess:
    """Return the access to an element, where the code runs there and a checked index fits."""
    subscripts = subscript.elts if isinstance(subscript, ast.Tuple) else [subscript]
    for each in subscripts:
        if isinstance(each, ast.Slice):
            ctx.refuse_syntax(each)
    if len(subscripts) != tensor.rank:
        axes = f"{tensor.rank} ax{'i' if tensor.rank == 1 else 'e'}s"
        ctx.refuse(
            node,
            f"{text_of(node)}: {tensor.name} has {axes}, got {len(subscripts)} indices",
        )
    indices = [_lower_index(ctx, tensor, axis, each) for axis, each in enumerate(subscripts)]
    when = conjunction(ctx.condition, _hoisted_condition(ctx, indices))
    linear = ctx.builder.linear_index(tensor, indices)
    if ctx.builder.checks_indices:
        when = _check_indices(ctx, node, tensor, indices, when)
    return ElementAccess(linear, when)


def _check_indices(
    ctx: Lowering, node: ast.expr, tensor: TensorParameter, indices: list[Value], when: Condition
) -> Condition:
    """Return `when` narrowed to indices in range; append stores of others into error cells."""
    source = ctx.source
    location = f"{source.file}:{source.line_number(node)}"
    message = f"{source.kernel}, `{source.line(node)}` ({location}): {text_of(node)}"
    for axis, index in enumerate(indices):
        in_range = (const(0, int64) <= index) & (index < ctx.builder.extent(tensor, axis))
        if ctx.effects is not None:
            wrong = ~in_range if when is None else when & ~in_range
            shown = where(eq(index, 0), const(-1, int64), index)  # 0 in a cell means no error
            cell = ctx.builder.error_cell(tensor, axis, node, message)
            ctx.effects.append(Store(cell, const(0, int64), shown, wrong))
        when = in_range if when is None else when & in_range
    return when


def _lower_index(ctx: Lowering, tensor: TensorParameter, axis: int, node: ast.expr) -> Value:
    """Return a subscript as int64; a negative constant counts from the axis' end."""
    index = ctx.lower_number(node)
    if kind_of(index) not in "iu":
        ctx.refuse(
            node, f"{text_of(node)}: an index must be an integer; write int({text_of(node)})"
        )
    if type(index) is int and index < 0:  # counted from the end
        return ctx.builder.extent(tensor, axis) + index
    return as_dtype(index, int64)


def _hoisted_condition(ctx: Lowering, indices: Sequence[Value]) -> Condition:
    """Return the condition that the loops on which an access does not depend have iterations.

    The access is hoisted out of these loops. If they have no iterations, it may be out of range.
    """
    conditional = [(loop, condition) for loop, condition in ctx.loops if condition is not None]
    result: Condition = None
    if conditional:
        inner = _loops_of([*indices, *([] if ctx.condition is None else [ctx.condition])])
        for loop, condition in conditional:
            if id(loop) not in inner:
                result = conjunction(result, condition)
    return result


def _loops_of(values: Sequence[Value]) -> set[int]:
    """Return the ids of the loops in which the values must be computed."""
    loops: set[int] = set()
    seen: set[int] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if value.op in ("loopvar", "carry"):
            loops.add(id(value.place[0]))
        elif value.op == "result":
            loop = value.place[0]
            stack += [loop.start, loop.stop, *loop.init, *loop.update]
        else:
            stack += value.args
    return loops


def lower_binary(ctx: Lowering, node: ast.BinOp) -> Any:
    """Lower a binary operator."""
    name = BINARY_OPS.get(type(node.op))
    if name is None:
        ctx.refuse(node, "a kernel has no '@': write sum(a[i, k] * b[k, j] for k in ...)")
    return apply_binary(name, ctx.lower_number(node.left), ctx.lower_number(node.right))


def apply_binary(name: str, a: Any, b: Any) -> Any:
    """Return the result of a binary operator on numbers, with the bits of that on tensors."""
    if name == "pow" and type(b) is int:
        if b == 2 and kind_of(a) != "b" and not is_constant(a):
            return apply_op(TABLE["square"], a)
        if b < 0 and isinstance(a, WeakNumber):
            a = WeakNumber("f", a.cast(float64))  # as in Python
    return apply_op(TABLE[name], a, b)


def lower_unary(ctx: Lowering, node: ast.UnaryOp) -> Any:
    """Lower a unary operator."""
    return apply_op(TABLE[UNARY_OPS[type(node.op)]], ctx.lower_number(node.operand))


def lower_comparison(ctx: Lowering, node: ast.Compare) -> Any:
    """Lower a comparison, or a chain of them."""
    left, result = ctx.lower_number(node.left), None
    for op, operand in zip(node.ops, node.comparators, strict=True):
        name = COMPARISON_OPS.get(type(op))
        if name is None:
            word = {ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}[type(op)]
            ctx.refuse(node, f"a kernel has no '{word}'; compare numbers")
        right = ctx.lower_number(operand)
        link = apply_op(TABLE[name], left, right)
        result = link if result is None else _and_conditions(result, link)
        left = right
    return result


def _and_conditions(a: Any, b: Any) -> Any:
    """Return `a and b` for bools and numbers; constants fold."""
    if isinstance(a, bool) or isinstance(b, bool):
        return b if a is True else a if b is True else False
    return WeakNumber("b", as_value(a) & as_value(b))


def lower_boolean(ctx: Lowering, node: ast.BoolOp) -> Any:
    """Lower `and` or `or`; an operand is evaluated where the earlier ones do not decide."""
    deciding = isinstance(node.op, ast.Or)
    outer = ctx.condition
    result: Condition = None
    with ctx.preserve_state():
        for operand in node.values:
            value = as_condition(ctx.lower_number(operand))
            if value is deciding:
                if result is None:
                    return deciding
                constant = const(deciding, bool_)
                return WeakNumber("b", result | constant if deciding else result & constant)
            if isinstance(value, Value):
                if result is not None:
                    value = result | value if deciding else result & value
                result = value
                ctx.condition = conjunction(outer, ~result if deciding else result)
    return (not deciding) if result is None else WeakNumber("b", result)


def lower_conditional(ctx: Lowering, node: ast.IfExp) -> Any:
    """Lower `a if condition else b`."""
    condition = as_condition(ctx.lower_number(node.test))
    if isinstance(condition, bool):
        return ctx.lower_number(node.body if condition else node.orelse)
    outer = ctx.condition
    with ctx.preserve_state():
        ctx.condition = conjunction(outer, condition)
        a = ctx.lower_number(node.body)
        ctx.condition = conjunction(outer, ~condition)
        b = ctx.lower_number(node.orelse)
    return select(condition, a, b)
