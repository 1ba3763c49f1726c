"""Traces of elementwise functions, and their lowering to kernel IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from ..capture import control_flow
from ..dtypes import DType, int64
from ..errors import ArgumentTypeError, CaptureError, DovetailError, InternalError, LayoutError
from ..ir.language import Value, cast, complex_value, const, fold_loop
from ..ops.arithmetic import convert
from ..ops.table import Op
from .traced_value import (
    Bound,
    Operand,
    TracedControlFlow,
    TracedLoop,
    TracedValue,
    as_traced,
    function_name,
    user_line,
)

R = TypeVar("R")
Values: TypeAlias = dict[int, Value]  # by the id of a TracedValue

UNKNOWN_TRIP_COUNT = 8  # that the cost of an op assumes for a loop of unknown length
OP_COST_MAX = 400  # of the cost that fusion sees for one op


class FunctionTrace:
    """A graph of traced values: inputs and outputs. `returns_tuple`: the function returned a tuple.

    It holds no tensors. It can be differentiated, and lowered many times.
    """

    __slots__ = ("_last_lowering", "inputs", "outputs", "returns_tuple")

    def __init__(
        self,
        inputs: Sequence[TracedValue],
        outputs: Sequence[TracedValue],
        returns_tuple: bool = False,
    ) -> None:
        self.inputs, self.outputs, self.returns_tuple = tuple(inputs), tuple(outputs), returns_tuple
        self._last_lowering: tuple[tuple[Value, ...], Values] | None = None

    def expression(self, k: int) -> Callable[..., Value]:
        """Return the expression of an op that computes output `k` of values of the inputs."""

        def lower_output(*values: Value) -> Value:
            """Return output `k`, lowered for these values of the inputs."""
            return _TraceLowering(self._lowered_values(values)).lower(self.outputs[k])

        return lower_output

    def _lowered_values(self, inputs: tuple[Value, ...]) -> Values:
        """Return the dict of values lowered for these inputs so far, which outputs share."""
        last = self._last_lowering
        if last is None or any(a is not b for a, b in zip(last[0], inputs, strict=True)):
            last = inputs, {id(x): v for x, v in zip(self.inputs, inputs, strict=True)}
            self._last_lowering = last
        return last[1]

    def cost(self, k: int) -> int:
        """Return about the number of vector instructions for output `k`, at most OP_COST_MAX."""
        return min(_estimate_cost(self.outputs[k]), OP_COST_MAX)


def topological_order(roots: Sequence[object], *, in_loops: bool = False) -> list[TracedValue]:
    """Return the traced values that `roots` depend on. in_loops: also those of loop bodies."""
    seen: dict[int, TracedValue] = {}
    stack = [x for x in roots if isinstance(x, TracedValue)]
    while stack:
        x = stack.pop()
        if id(x) in seen:
            continue
        seen[id(x)] = x
        operands: Sequence[Operand] = x.args
        if x.op == "result":
            loop: TracedLoop = x.attrs[0]
            operands = (*loop.init, loop.start, loop.stop, *(loop.update if in_loops else ()))
        stack += [a for a in operands if isinstance(a, TracedValue)]
    return sorted(seen.values(), key=lambda x: x.order)


def _estimate_cost(root: TracedValue) -> int:
    """Return the sum of op costs below `root`; a loop counts its iterations, if these are known."""
    order = topological_order([root])
    loops: dict[int, TracedLoop] = {id(x.attrs[0]): x.attrs[0] for x in order if x.op == "result"}
    total = sum(x.op.cost for x in order if isinstance(x.op, Op))
    for loop in loops.values():
        iterations = UNKNOWN_TRIP_COUNT
        if isinstance(loop.start, int) and isinstance(loop.stop, int):
            iterations = max(loop.stop - loop.start, 0)
        body = topological_order(loop.update, in_loops=True)
        total += iterations * sum(x.op.cost for x in body if isinstance(x.op, Op))
    return total


class _TraceLowering:
    """The lowering of traced values, each with the bits of its op on tensors of that dtype."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def lower(self, root: TracedValue) -> Value:
        """Return the value of `root`; lower first what it depends on."""
        if id(root) not in self.values:
            for x in topological_order([root]):
                if id(x) not in self.values:
                    self.values[id(x)] = self._lower_one(x)
        return self.values[id(root)]

    def _lower_one(self, x: TracedValue) -> Value:
        """Return a value whose operands are lowered. Raises: CaptureError for a foreign number."""
        if isinstance(x.op, Op):
            return self._lower_op(x, x.op)
        if x.op == "constant":
            return _lower_literal(x.attrs, x.dtype)
        if x.op == "result":
            self._lower_loop(x.attrs[0])
            return self.values[id(x)]
        raise CaptureError(
            "elementwise: a number of a loop's body or of another function cannot be used outside "
            "of it; return it or carry it"
        )

    def _lower_op(self, x: TracedValue, op: Op) -> Value:
        """Return an op on lowered operands, cast and widened as on tensors."""
        kinds = [a.dtype if isinstance(a, TracedValue) else type(a) for a in x.args]
        casts, _ = op.dtypes(op.name, kinds, x.attrs)
        values = [
            convert(self.values[id(a)], d) if isinstance(a, TracedValue) else _lower_literal(a, d)
            for a, d in zip(x.args, casts, strict=True)
        ]
        if op.widens:
            values = [_widen(v) for v in values]
        return convert(op.expression(*values), x.dtype)

    def _lower_loop(self, loop: TracedLoop) -> None:
        """Lower a loop and record its results; half floats are carried as float32."""

        def step(k: Value, *carry: Value) -> list[Value]:
            """Record the index and the carries of an iteration; return its updates."""
            self.values[id(loop.index)] = k
            for x, v in zip(loop.carry, carry, strict=True):
                self.values[id(x)] = cast(v, x.dtype)
            return [_widen(self.lower(u)) for u in loop.update]

        start, stop = self._lower_bound(loop.start), self._lower_bound(loop.stop)
        results = fold_loop(start, stop, [_widen(self.lower(x)) for x in loop.init], step).results
        for x, v in zip(loop.results, results, strict=True):
            self.values[id(x)] = cast(v, x.dtype)

    def _lower_bound(self, n: Bound) -> Value:
        """Return a loop bound as a value."""
        return self.lower(n) if isinstance(n, TracedValue) else const(n, int64)


def _widen(v: Value) -> Value:
    """Return a value in the dtype that it is computed in: half floats as float32."""
    return cast(v, v.dtype.compute)


def _lower_literal(value: complex, d: DType) -> Value:
    """Return a Python number as a value, rounded like one that an op on tensors takes."""
    if isinstance(value, complex):
        return complex_value(const(value.real, d.part), const(value.imag, d.part))
    return convert(const(value, d.compute.part), d)


def trace_function(
    name: str, function: Callable[..., object], inputs: Sequence[TracedValue], **static: object
) -> FunctionTrace:
    """Call a function on traced inputs, and return its trace; errors show the user's line."""
    result: Any = call_traced(name, function, inputs, **static)
    several = isinstance(result, (tuple, list))
    return FunctionTrace(
        inputs, [_as_output(name, x) for x in (result if several else [result])], several
    )


def call_traced(
    name: str, function: Callable[..., R], inputs: Sequence[object], **static: object
) -> R:
    """Call a function within traced control flow; add the user's line to its errors."""
    name_before = function_name.set(name)
    control_flow_before = control_flow.number_loops.set(TracedControlFlow())
    try:
        return function(*inputs, **static)
    except InternalError:
        raise
    except DovetailError as error:
        _add_location(name, error)
        raise
    finally:
        function_name.reset(name_before)
        control_flow.number_loops.reset(control_flow_before)


def _add_location(name: str, error: DovetailError) -> None:
    """Add the function's name and user's line to an error's text; replace a LayoutError's text."""
    text, line = str(error), user_line(error.__traceback__)
    if isinstance(error, LayoutError):
        op = text.partition(":")[0]
        text = (
            f"{name}: {op} needs a tensor, but {name} gets one number of each operand; call {op} "
            "outside of it"
        )
    if not text.startswith(f"{name}:"):
        text = f"{name}: {text}"
    if line and line not in text:
        text = f"{text}\n  at {line}"
    error.args = (text,)


def _as_output(name: str, x: object) -> TracedValue:
    """Return a result of the function as a traced value. Raises: ArgumentTypeError if no number."""
    if isinstance(x, (TracedValue, bool, int, float, complex)):
        return as_traced(name, x)
    raise ArgumentTypeError(
        f"{name}: an elementwise function must return a number or a tuple of numbers, got "
        f"{type(x).__name__}"
    )
