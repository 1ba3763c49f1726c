"""The gradient of a traced function: the rules of the rows that it is made of, as numbers.

Backwards from the result, as the tape does it for tensors, in the same order and so with the same
bits; where there is a loop forwards, since a kernel keeps nothing for the way back: the derivative
by one operand runs along in the same loop. What comes out is a trace in turn, so it has a gradient
by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import Parameter, Signature
from typing import Any

from ..autograd import namespace
from ..autograd.tape import OPERANDS, Read, rules_of
from ..dtypes import DType
from ..errors import GradientError
from ..ops import table as ops
from ..ops.gradient import Rule
from ..ops.table import Op
from ..settings import current, record, restore
from ..tensor.tensor import Tensor
from ..tensor.verbs import apply
from .lower_trace import Trace, has_loops, live_inputs, reachable
from .traced_value import Bound, Element, Rounds, applied, constant, fitted

FLOWS = "fc"  # kinds of dtype that gradients flow through


def _read_of(x: Element, i: int) -> Read | None:
    """The rule of a row for one operand. Raises: GradientError where the row has none at all."""
    assert isinstance(x.op, Op)
    rules = rules_of(x.op)
    if not rules:
        raise GradientError(f"backward: {x.op.name} has no gradient; see x.detach()")
    return rules[i] if i < len(rules) else None


def _part(x: Element, i: int, g: Element, result: Element) -> Element | None:
    """What a rule sends to an operand of `x`."""
    a, read = x.args[i], _read_of(x, i)
    if read is None or not isinstance(a, Element) or a.dtype.kind not in FLOWS:
        return None
    given = {"g": g, "r": result, "dt": namespace, "c": None}
    given |= dict(zip(OPERANDS, x.args, strict=False))
    made = read.rule(*[given[n] for n in read.needs])
    return fitted(made, a.dtype) if isinstance(made, Element) else None


# --- backwards -----------------------------------------------------------------------------------


def backwards(out: Element, by: Element, g: Element, r: Element) -> Element | None:
    """The gradient for the operand `by`, of the gradient `g` for `out`; `r` stands for `out`."""
    arrived = {id(out): g}
    leading = _leading(out, by)
    for x in reversed(reachable([out])):
        here = arrived.get(id(x))
        if here is None or x is by:
            continue
        for i, a in enumerate(x.args):
            if not isinstance(a, Element) or id(a) not in leading:
                continue
            part = _part(x, i, here, r if x is out else x)
            if part is not None:
                before = arrived.get(id(a))
                arrived[id(a)] = part if before is None else applied(ops.ADD, (before, part), None)
    return arrived.get(id(by))


def _leading(out: Element, by: Element) -> set[int]:
    """What depends on `by`, which is with it; only gradients for these have to be known."""
    found = {id(by)}
    for x in reachable([out]):
        if any(id(a) in found for a in x.args):
            found.add(id(x))
    return found


# --- forwards ------------------------------------------------------------------------------------


class _Forward:
    """How numbers change with one operand."""

    def __init__(self, by: Element) -> None:
        self.change: dict[int, Element | None] = {id(by): constant(1.0, by.dtype)}
        self.same: dict[int, Element] = {}  # results of loops, and those of loops that do more

    def of(self, root: Element) -> Element | None:
        """By how much; None: not at all."""
        for x in reachable([root]):
            if id(x) not in self.change:
                self.change[id(x)] = self._one(x)
        return self.change[id(root)]

    def _one(self, x: Element) -> Element | None:
        if x.dtype.kind == "c":
            raise GradientError(
                "backward: a loop of complex numbers has no gradient; carry their two parts"
            )
        if isinstance(x.op, Op):
            return self._row(x)
        if x.op == "result":
            self._loop(x.attrs[0])
            return self.change[id(x)]
        return None

    def _row(self, x: Element) -> Element | None:
        if x.dtype.kind not in FLOWS:
            return None
        total: Element | None = None
        for i, a in enumerate(x.args):
            change = self.change[id(a)] if isinstance(a, Element) else None
            if change is None or not isinstance(a, Element):
                continue
            read = _read_of(x, i)  # real: a derivative is the same from both sides
            given = {"g": fitted(change, x.dtype), "r": x, "dt": namespace, "c": None}
            given |= dict(zip(OPERANDS, x.args, strict=False))
            made = None if read is None else read.rule(*[given[n] for n in read.needs])
            if isinstance(made, Element):
                made = fitted(made, x.dtype)
                total = made if total is None else applied(ops.ADD, (total, made), None)
        return total

    def _loop(self, loop: Rounds) -> None:
        """The same loop, which carries the changes, too."""
        flowing = [i for i, x in enumerate(loop.init) if x.dtype.kind in FLOWS]
        begun = [self.of(loop.init[i]) for i in flowing]
        zeros = [constant(0.0, loop.init[i].dtype) for i in flowing]
        starts = [z if c is None else c for c, z in zip(begun, zeros, strict=True)]
        start, stop = [_elsewhere(n, self.same) for n in (loop.start, loop.stop)]
        both = Rounds(start, stop, tuple(_replaced([*loop.init, *starts], self.same)))
        self.change[id(loop.index)] = None
        replaced = self.same | {id(loop.index): both.index}
        replaced |= {id(a): b for a, b in zip(loop.carry, both.carry, strict=False)}
        n = len(loop.init)
        for k, i in enumerate(flowing):
            self.change[id(loop.carry[i])] = both.carry[n + k]
        for i, x in enumerate(loop.carry):
            if i not in flowing:
                self.change[id(x)] = None
        changes = [self.of(loop.update[i]) for i in flowing]
        ends = [z if c is None else c for c, z in zip(changes, zeros, strict=True)]
        both.finish(tuple(_replaced([*loop.update, *ends], replaced)))
        for i, x in enumerate(loop.results):
            self.change[id(x)] = both.results[n + flowing.index(i)] if i in flowing else None
            self.same[id(x)] = both.results[i]


def _elsewhere(n: Bound, by: dict[int, Element]) -> Bound:
    return _replaced([n], by)[0] if isinstance(n, Element) else n


def _replaced(roots: Sequence[Element], by: dict[int, Element]) -> list[Element]:
    """The same with other Elements in the place of some, those of loops within it, too."""
    made: dict[int, Element] = dict(by)
    for x in reachable(roots):
        if id(x) not in made:
            made[id(x)] = _again(x, made)
    return [made[id(x)] for x in roots]


def _again(x: Element, made: dict[int, Element]) -> Element:
    if x.op == "result":
        loop: Rounds = x.attrs[0]
        inside = reachable([x], within=True)
        if all(made.get(id(a), a) is a for a in inside):
            return x
        start, stop = [_elsewhere(n, made) for n in (loop.start, loop.stop)]
        new = Rounds(start, stop, tuple([made[id(a)] for a in loop.init]))
        inner = made | {id(loop.index): new.index}
        inner |= {id(a): b for a, b in zip(loop.carry, new.carry, strict=True)}
        new.finish(tuple(_replaced(loop.update, inner)))
        made.update({id(a): b for a, b in zip(loop.results, new.results, strict=True)})
        return made[id(x)]
    args = tuple([made[id(a)] if isinstance(a, Element) else a for a in x.args])
    if all(a is b for a, b in zip(args, x.args, strict=True)):
        return x
    return Element(x.op, x.dtype, args, x.attrs)


# --- rules of an op ------------------------------------------------------------------------------


class Derivative:
    """A gradient rule of an op of one's own, for one operand: another op, made when it is needed.

    Its signature says what it needs, as that of any rule.
    """

    def __init__(self, name: str, forms: dict[bool, tuple[tuple[str, ...], Trace]]) -> None:
        self.name, self._forms = name, forms
        needs = dict.fromkeys(n for names, _ in forms.values() for n in names)
        self.needs = ("g", *[n for n in needs if n != "g"])
        self._ops: dict[bool, Op] = {}
        kind = Parameter.POSITIONAL_ONLY
        self.__signature__ = Signature([Parameter(n, kind) for n in self.needs])

    def __call__(self, *given: Any) -> Tensor:
        """The gradient, of what the rule needs."""
        again = current().grad
        names, trace = self._forms[again]
        args = [x for n, x in zip(self.needs, given, strict=True) if n in names]
        if trace.outputs[0] is trace.inputs[0]:  # the gradient itself
            return args[0]  # type: ignore[no-any-return]  # a tensor
        op = self._ops.get(again)
        if op is None:
            op = self._ops[again] = op_of(self.name, trace, 0)
        return apply(op, sorted_by(names, self.needs, args))


def sorted_by(names: Sequence[str], needs: Sequence[str], args: Sequence[Any]) -> list[Any]:
    """Arguments in the order of `names`, given in that of `needs`."""
    found = dict(zip([n for n in needs if n in names], args, strict=True))
    return [found[n] for n in names]


class Refused:
    """The rule of what has no gradient."""

    def __init__(self, error: GradientError) -> None:
        self.error = error

    def __call__(self, g: Tensor) -> Tensor:
        raise GradientError(*self.error.args)


def derivative_name(name: str, i: int, inputs: Sequence[Element]) -> str:
    """What an op's gradient for operand `i` is called in kernels."""
    return f"{name}_gradient" + (f"_{i}" if len(inputs) > 1 else "")


class Rules:
    """The gradient rules of output `k` of a trace, found when they are first asked for."""

    def __init__(self, name: str, trace: Trace, k: int) -> None:
        self._name, self._trace, self._k = name, trace, k
        self._found: list[Rule | None] | None = None

    def __iter__(self) -> Iterator[Rule | None]:
        if self._found is None:
            self._found = [self._rule(i) for i in range(len(self._trace.inputs))]
        return iter(self._found)

    def _rule(self, i: int) -> Rule | None:
        out, inputs = self._trace.outputs[self._k], self._trace.inputs
        if inputs[i].dtype.kind not in FLOWS or out.dtype.kind not in FLOWS:
            return None
        name = derivative_name(self._name, i, inputs)
        try:
            return Derivative(name, {again: self._form(i, again) for again in (False, True)})
        except GradientError as error:
            return Refused(GradientError(f"{self._name}: {error}"))

    def _form(self, i: int, again: bool) -> tuple[tuple[str, ...], Trace]:
        """What is needed, and the trace of it; `again`: it is to be differentiated in turn."""
        out, inputs = self._trace.outputs[self._k], self._trace.inputs
        g, r = Element("operand", out.dtype), Element("operand", out.dtype)
        before = current()
        try:
            record(again)
            made = _derived(out, inputs[i], g, r)
        finally:
            restore(before)
        if made is None:
            made = constant(0.0, inputs[i].dtype)
        return needed(made, g, r, inputs)


def _derived(out: Element, by: Element, g: Element, r: Element) -> Element | None:
    if not has_loops(out):
        return backwards(out, by, g, r)
    forward = _Forward(by)
    slope = forward.of(out)
    if slope is None:
        return None
    (slope,) = _replaced([slope], forward.same)
    return fitted(applied(ops.MULTIPLY, (g, slope), None), by.dtype)


def needed(
    made: Element, g: Element, r: Element, inputs: Sequence[Element]
) -> tuple[tuple[str, ...], Trace]:
    """The trace of a gradient, of the gradient that comes in and what else it depends on."""
    named = dict(zip(("r", *OPERANDS), (r, *inputs), strict=False))
    live = {id(x) for x in live_inputs(Trace([r, *inputs], [made]))}
    used = {n: x for n, x in named.items() if id(x) in live}
    return ("g", *used), Trace([g, *used.values()], [made])


def op_of(name: str, trace: Trace, k: int, rules: Rules | None = None) -> Op:
    """The row of output `k` of a trace, for operands of its inputs' dtypes."""
    casts: tuple[DType, ...] = tuple([x.dtype for x in trace.inputs])
    dtypes = casts, trace.outputs[k].dtype
    late: Any = Rules(name, trace, k) if rules is None else rules  # found when they are asked for
    return Op(
        name, "map", lambda op, operands, attrs: dtypes, trace.expression(k), trace.cost(k),
        widens=False, arity=len(casts), gradient=late,
    )  # fmt: skip
