"""A function of numbers as it was traced: from Elements to the loop language."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from ..capture import control_flow
from ..dtypes import DType, int64
from ..errors import ArgumentTypeError, CaptureError, DovetailError, InternalError, LayoutError
from ..loops.language import Value, cast, const, fold_loop, pair
from ..ops.arithmetic import convert
from ..ops.table import Op
from . import traced_value
from .traced_value import Bound, Element, Forms, Operand, Rounds, line_in

R = TypeVar("R")
Made: TypeAlias = dict[int, Value]  # by the id of an Element

ROUNDS = 8  # what a loop of a length that is not known counts as, in an op's cost
MOST = 400  # an op's cost, as fusion sees it: it is computed where it is used, once


class Trace:
    """Numbers that come in, and those that come out. `several`: whether the function gave a tuple.

    It holds graphs alone, so that it can be differentiated, and computed in many kernels.
    """

    __slots__ = ("_last", "inputs", "outputs", "several")

    def __init__(
        self, inputs: Sequence[Element], outputs: Sequence[Element], several: bool = False
    ) -> None:
        self.inputs, self.outputs, self.several = tuple(inputs), tuple(outputs), several
        self._last: tuple[tuple[Value, ...], Made] | None = None

    def expression(self, k: int) -> Callable[..., Value]:
        """An op's expression: output `k` of Values of the inputs' dtypes."""

        def expression(*values: Value) -> Value:
            return _Emitter(self._known(values)).value(self.outputs[k])

        return expression

    def _known(self, values: tuple[Value, ...]) -> Made:
        """What has been made of these very Values, so that outputs share it, loops too."""
        last = self._last
        if last is None or any(a is not b for a, b in zip(last[0], values, strict=True)):
            last = values, {id(x): v for x, v in zip(self.inputs, values, strict=True)}
            self._last = last
        return last[1]

    def cost(self, k: int) -> int:
        """About the number of vector instructions for output `k`."""
        return min(_cost(self.outputs[k]), MOST)


def reachable(roots: Sequence[object], *, within: bool = False) -> list[Element]:
    """The Elements that these are made of, oldest first. `within`: those of rounds of loops too."""
    found: dict[int, Element] = {}
    stack = [x for x in roots if isinstance(x, Element)]
    while stack:
        x = stack.pop()
        if id(x) in found:
            continue
        found[id(x)] = x
        stack += [a for a in parts_of(x, within) if isinstance(a, Element)]
    return sorted(found.values(), key=lambda x: x.order)


def parts_of(x: Element, within: bool = False) -> Sequence[Operand]:
    """What an Element is computed from; of a loop's result what it starts with, and its bounds."""
    if x.op != "result":
        return x.args
    loop: Rounds = x.attrs[0]
    return (*loop.init, loop.start, loop.stop, *(loop.update if within else ()))


def has_loops(x: Element) -> bool:
    """Whether a loop is in it."""
    return any(e.op == "result" for e in reachable([x]))


def _cost(root: Element) -> int:
    total = 0
    loops: dict[int, Rounds] = {}
    for x in reachable([root]):
        if isinstance(x.op, Op):
            total += x.op.cost
        elif x.op == "result":
            loops[id(x.attrs[0])] = x.attrs[0]
    for loop in loops.values():
        bounds = (loop.start, loop.stop)
        known = [n for n in bounds if isinstance(n, int)]
        rounds = known[1] - known[0] if len(known) == 2 else ROUNDS
        each = sum(x.op.cost for x in reachable(loop.update, within=True) if isinstance(x.op, Op))
        total += max(rounds, 0) * each
    return total


# --- to the loop language ------------------------------------------------------------------------


class _Emitter:
    """Makes Values of Elements, each as the op on tensors of that dtype computes it."""

    def __init__(self, made: Made) -> None:
        self.made = made

    def value(self, root: Element) -> Value:
        """The Value of an Element, all that it is made of being made first."""
        if id(root) not in self.made:
            for x in reachable([root]):
                if id(x) not in self.made:
                    self.made[id(x)] = self._one(x)
        return self.made[id(root)]

    def _one(self, x: Element) -> Value:
        if isinstance(x.op, Op):
            return self._row(x, x.op)
        if x.op == "constant":
            return literal(x.attrs, x.dtype)
        if x.op == "result":
            self._loop(x.attrs[0])
            return self.made[id(x)]
        raise CaptureError(
            "elementwise: a number of a loop's body, or of another function, is used outside of "
            "it; return what is needed, or carry it"
        )

    def _row(self, x: Element, op: Op) -> Value:
        kinds = [a.dtype if isinstance(a, Element) else type(a) for a in x.args]
        casts, _ = op.dtypes(op.name, kinds, x.attrs)
        values = [self._operand(a, d) for a, d in zip(x.args, casts, strict=True)]
        if op.widens:
            values = [widened(v) for v in values]
        return convert(op.expression(*values), x.dtype)

    def _operand(self, a: Operand, d: DType) -> Value:
        return convert(self.made[id(a)], d) if isinstance(a, Element) else literal(a, d)

    def _loop(self, loop: Rounds) -> None:
        """A loop; halves are carried as float32, which holds them."""

        def step(k: Value, *carry: Value) -> list[Value]:
            self.made[id(loop.index)] = k
            for x, v in zip(loop.carry, carry, strict=True):
                self.made[id(x)] = cast(v, x.dtype)
            return [widened(self.value(u)) for u in loop.update]

        start, stop = (self._bound(n) for n in (loop.start, loop.stop))
        begun = [widened(self.value(x)) for x in loop.init]
        found = fold_loop(start, stop, begun, step).results
        for x, v in zip(loop.results, found, strict=True):
            self.made[id(x)] = cast(v, x.dtype)

    def _bound(self, n: Bound) -> Value:
        return self.value(n) if isinstance(n, Element) else const(n, int64)


def widened(v: Value) -> Value:
    """A Value as it is computed with: halves as float32."""
    return cast(v, v.dtype.compute)


def literal(value: complex, d: DType) -> Value:
    """A Python number as a Value, rounded as one beside a tensor is."""
    if isinstance(value, complex):
        return pair(const(value.real, d.part), const(value.imag, d.part))
    return convert(const(value, d.compute.part), d)


# --- tracing -------------------------------------------------------------------------------------


def traced(
    name: str, function: Callable[..., object], inputs: Sequence[Element], **static: object
) -> Trace:
    """What a function of numbers does. Raises: what it raises, with the user's line."""
    made: Any = called(name, function, inputs, **static)
    several = isinstance(made, (tuple, list))
    return Trace(inputs, [_output(name, x, inputs) for x in (made if several else [made])], several)


def called(name: str, function: Callable[..., R], inputs: Sequence[object], **static: object) -> R:
    """What a function of numbers gives."""
    before = traced_value.names.set(name), control_flow.of_numbers.set(Forms())
    try:
        return function(*inputs, **static)
    except InternalError:
        raise
    except DovetailError as error:
        _place(name, error)
        raise
    finally:
        traced_value.names.reset(before[0])
        control_flow.of_numbers.reset(before[1])


def _place(name: str, error: DovetailError) -> None:
    """Says in an error which line of the function it is about."""
    text, line = str(error), line_in(error.__traceback__)
    if isinstance(error, LayoutError):
        asked = text.partition(":")[0]
        text = (
            f"{name}: {asked} needs a tensor, and {name} is called with one number of each "
            "operand; do that outside of it"
        )
    if not text.startswith(f"{name}:"):
        text = f"{name}: {text}"
    if line and line not in text:
        text = f"{text}\n  at {line}"
    error.args = (text,)


def _output(name: str, x: object, inputs: Sequence[Element]) -> Element:
    if isinstance(x, Element):
        return x
    if isinstance(x, (bool, int, float, complex)):
        return traced_value.carried(name, x)
    raise ArgumentTypeError(
        f"{name}: an elementwise function gives a number of dovetail's or a tuple of them, not a "
        f"{type(x).__name__}"
    )


def live_inputs(trace: Trace) -> Iterator[Element]:
    """The inputs that outputs depend on."""
    found = {id(x) for x in reachable(trace.outputs, within=True)}
    return (x for x in trace.inputs if id(x) in found)
