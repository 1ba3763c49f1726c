"""Operators with graphs: branches and loops; sequences and optional values."""

from __future__ import annotations

from typing import Any

import numpy as np

import dovetail as dt

from ..limits import nbytes_of
from .shapes import split_at
from .table import OperatorCall, register_operator

Tensor = dt.Tensor


def _is_true(call: OperatorCall, x: Any) -> bool:
    """Wait for a condition and return its value. Raises: ShapeError if it has several elements."""
    values = call.array(x).reshape(-1)
    if values.size != 1:
        raise dt.ShapeError(f"{call.op}: the condition must have one element, got {values.size}")
    return bool(values[0])


@register_operator("If", host=None, folds=False)
def _if(call: OperatorCall, condition: Any) -> tuple[Any, ...]:
    """Run one of two graphs, by the condition's value."""
    branch = "then_branch" if _is_true(call, condition) else "else_branch"
    return tuple(call.graphs(call.get(branch), ()))


@register_operator("Loop", host=None, folds=False)
def _loop(
    call: OperatorCall, count: Any = None, condition: Any = None, *carried: Any
) -> tuple[Any, ...]:
    """Run the body while the condition holds, up to `count` times; return state and stacks."""
    body = call.get("body")
    trips = None if count is None else call.number(count)
    state, rows = list(carried), [[] for _ in range(call.outputs - len(carried))]  # type: ignore[var-annotated]  # of tensors
    running, k = condition is None or _is_true(call, condition), 0
    while running and (trips is None or k < trips):
        flag = np.asarray(True)
        outputs = call.graphs(body, (np.asarray(k, np.int64), flag, *state))
        state = outputs[1 : 1 + len(carried)]
        for column, x in zip(rows, outputs[1 + len(carried) :], strict=False):
            call.reserve(nbytes_of(x))
            column.append(x)
        running, k = outputs[0] is None or _is_true(call, outputs[0]), k + 1
    stacks = [
        _stack_outputs(call, column, body, i + 1 + len(carried)) for i, column in enumerate(rows)
    ]
    return (*state, *stacks)


def _stack_outputs(call: OperatorCall, column: list[Any], body: Any, i: int) -> Tensor:
    """Stack the values of scan output `i`; an empty tensor if there are none."""
    if column:
        return dt.stack([call.tensor(x) for x in column], axis=0)
    output = body.outputs[i]
    sizes = [n if isinstance(n, int) else 0 for n in output.shape or ()]
    return dt.zeros((0, *sizes), dtype=output.dtype or dt.float32, device=call.device)


@register_operator("Scan", since=9, host=None, folds=False)
def _scan(call: OperatorCall, *inputs: Any) -> tuple[Any, ...]:
    """Run the body for each slice of the inputs; return the state and the stacked outputs."""
    body, count = call.get("body"), call.get("num_scan_inputs")
    lead = len(inputs) - count
    state, xs = list(inputs[:lead]), [call.tensor(x) for x in inputs[lead:]]
    results = call.outputs - lead
    backwards = call.get("scan_input_directions", [0] * count)
    axes = [
        call.axis(a, x.ndim)
        for a, x in zip(call.get("scan_input_axes", [0] * count), xs, strict=True)
    ]
    length = xs[0].shape[axes[0]] if xs else 0
    rows: list[list[Any]] = [[] for _ in range(results)]
    for k in range(length):
        at = [
            x[(*(slice(None),) * a, length - 1 - k if b else k)]
            for x, a, b in zip(xs, axes, backwards, strict=True)
        ]
        outputs = call.graphs(body, (*state, *at))
        state = outputs[:lead]
        for column, v in zip(rows, outputs[lead:], strict=False):
            call.reserve(nbytes_of(v))
            column.append(v)
    directions = call.get("scan_output_directions", [0] * results)
    output_axes = call.get("scan_output_axes", [0] * results)
    stacks = []
    for i, column in enumerate(rows):
        if not column:
            stacks.append(_stack_outputs(call, column, body, lead + i))
            continue
        each = [call.tensor(v) for v in (reversed(column) if directions[i] else column)]
        stacks.append(dt.stack(each, axis=call.axis(output_axes[i], each[0].ndim + 1)))
    return (*state, *stacks)


@register_operator("Scan", since=8, host=None, folds=False)
def _scan_of_batches(call: OperatorCall, lengths: Any, *inputs: Any) -> tuple[Any, ...]:
    """Run Scan of opset 8 for each example. Raises: UnsupportedError for sequence lengths."""
    if lengths is not None:
        raise dt.UnsupportedError(
            "Scan: sequence lengths (opset 8) are not supported; convert the model to a newer opset"
        )
    body, count = call.get("body"), call.get("num_scan_inputs")
    batch = call.tensor(inputs[-1]).shape[0]
    examples = []
    for b in range(batch):
        one = [call.tensor(x)[b] for x in inputs]
        inner = OperatorCall(
            call.op,
            9,
            {
                "body": body,
                "num_scan_inputs": count,
                "scan_input_directions": call.get("directions", [0] * count),
            },
            call.device,
            call.outputs,
            call.graphs,
            call.reserve,
        )
        examples.append(_scan(inner, *one))
    return tuple(
        [
            dt.stack([call.tensor(v) for v in column], axis=0)
            for column in zip(*examples, strict=True)
        ]
    )


# --- sequences ------------------------------------------------------------------------------------


@register_operator("SequenceConstruct", host=None, folds=False)
def _sequence_construct(call: OperatorCall, *xs: Any) -> list[Any]:
    """Return the inputs as a list."""
    return list(xs)


@register_operator("SequenceEmpty", host=None, folds=False)
def _sequence_empty(call: OperatorCall) -> list[Any]:
    """Return an empty list."""
    return []


@register_operator("SequenceLength", host=None, folds=False)
def _sequence_length(call: OperatorCall, xs: list[Any]) -> np.ndarray:
    """Return the length of a sequence as an int64 array."""
    return np.asarray(len(xs), np.int64)


@register_operator("SequenceAt", host=None, folds=False)
def _sequence_at(call: OperatorCall, xs: list[Any], position: Any) -> Any:
    """Return the element at a position. Raises: OutOfRangeError."""
    return xs[_wrap_position(call, position, len(xs))]


def _wrap_position(call: OperatorCall, position: Any, n: int) -> int:
    """Return a position counted from the start. Raises: OutOfRangeError."""
    k = call.number(position)
    if not -n <= k < n:
        raise dt.OutOfRangeError(f"{call.op}: position {k} is out of range for a sequence of {n}")
    return k % n


@register_operator("SequenceInsert", host=None, folds=False)
def _sequence_insert(call: OperatorCall, xs: list[Any], x: Any, position: Any = None) -> list[Any]:
    """Return a new list with `x` before a position, or at the end. Raises: OutOfRangeError."""
    k = len(xs) if position is None else call.number(position)
    if not -len(xs) <= k <= len(xs):
        raise dt.OutOfRangeError(
            f"SequenceInsert: position {k} is out of range for a sequence of {len(xs)}"
        )
    items = list(xs)
    items.insert(k, x)
    return items


@register_operator("SequenceErase", host=None, folds=False)
def _sequence_erase(call: OperatorCall, xs: list[Any], position: Any = None) -> list[Any]:
    """Return a new list without one element, by default the last one."""
    k = len(xs) - 1 if position is None else _wrap_position(call, position, len(xs))
    return [*xs[:k], *xs[k + 1 :]]


@register_operator("ConcatFromSequence", host=None, folds=False)
def _concat_from_sequence(call: OperatorCall, xs: list[Any]) -> Tensor:
    """Join the tensors of a sequence along an axis, or stack them along a new one."""
    tensors = [call.tensor(x) for x in xs]
    return (dt.stack if call.get("new_axis", 0) else dt.concat)(tensors, axis=call.get("axis"))


@register_operator("SplitToSequence", host=(1,), folds=False)
def _split_to_sequence(call: OperatorCall, x: Tensor, split: Any = None) -> list[Any]:
    """Return the parts of a tensor along an axis, by default of length 1, as a list."""
    axis = call.axis(call.get("axis", 0), x.ndim)
    n = x.shape[axis]
    if split is None:
        pieces = split_at(x, [1] * n, axis)
        keep = call.get("keepdims", 1)
        return [*pieces] if keep else [dt.squeeze(p, axis=axis) for p in pieces]
    sizes = call.ints(split)
    if len(call.array(split).shape) == 0:
        each = call.number(split)
        sizes = [min(each, n - k * each) for k in range(-(-n // each))] if each > 0 else []
    if sum(sizes) != n:
        raise dt.ShapeError(f"SplitToSequence: the sum of split must be {n}, got {sizes}")
    return list(split_at(x, sizes, axis))


@register_operator("SequenceMap", host=None, folds=False)
def _sequence_map(call: OperatorCall, *inputs: Any) -> tuple[Any, ...]:
    """Run the body for each element of the sequences; return a list for each output."""
    body, count = call.get("body"), len(inputs[0])
    sequences: list[list[Any]] = [[] for _ in range(call.outputs)]
    for k in range(count):
        one = [x[k] if isinstance(x, list) else x for x in inputs]
        for items, v in zip(sequences, call.graphs(body, one), strict=False):
            call.reserve(nbytes_of(v))
            items.append(v)
    return tuple(sequences)


@register_operator("Optional", host=None, folds=False)
def _optional(call: OperatorCall, x: Any = None) -> Any:
    """Return the value, which may be None."""
    return x


@register_operator("OptionalHasElement", host=None, folds=False)
def _optional_has_element(call: OperatorCall, x: Any = None) -> np.ndarray:
    """Return a bool array: True unless the value is None."""
    return np.asarray(x is not None)


@register_operator("OptionalGetElement", host=None, folds=False)
def _optional_get_element(call: OperatorCall, x: Any = None) -> Any:
    """Return the value. Raises: ArgumentError if it is None."""
    if x is None:
        raise dt.ArgumentError("OptionalGetElement: the optional value must not be empty")
    return x
