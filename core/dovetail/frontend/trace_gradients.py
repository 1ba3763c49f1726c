"""Gradients of traced functions, by the gradient rules of the ops that they are made of.

Without loops: backwards from the result, in the order of the tape, so with the bits of the tape.
With a loop: forwards, because a kernel saves nothing for a backward pass. The derivative by one
operand is carried along in the same loop. A gradient is a trace, so it has gradients of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from inspect import Parameter, Signature
from typing import Any, NoReturn, TypeAlias

from ..autograd import namespace
from ..autograd.tape import OPERAND_NAMES, ParsedRule, rules_of
from ..dtypes import DType
from ..errors import GradientError
from ..ops import table as ops
from ..ops.gradient import Rule
from ..ops.table import Op
from ..settings import current, restore, set_recording
from ..tensor.primitives import apply
from ..tensor.tensor import Tensor
from .lower_trace import FunctionTrace, topological_order
from .traced_value import Operand, TracedLoop, TracedValue, fit_dtype, trace_op, traced_constant

DIFFERENTIABLE_KINDS = "fc"  # kinds of dtypes

Gradient: TypeAlias = "TracedValue | None"  # None: a value does not depend on the operand
RuleInputs: TypeAlias = tuple[str, ...]  # "g", "r" and operands, by the names that rules give them
Replacements: TypeAlias = dict[int, TracedValue]  # by the id of the replaced one


def _find_rule(x: TracedValue, i: int) -> ParsedRule | None:
    """Return an op's rule for operand `i`. Raises: GradientError if the op has no rules."""
    assert isinstance(x.op, Op)
    rules = rules_of(x.op)
    if not rules:
        raise GradientError(f"backward: {x.op.name} has no gradient; use x.detach()")
    return rules[i] if i < len(rules) else None


def _apply_rule(rule: ParsedRule, x: TracedValue, g: TracedValue, result: TracedValue) -> object:
    """Return the gradient that the rule of the op `x` computes from `g`; half floats in float32.

    As on the tape, half floats are computed in float32.
    """
    values = {"g": g, "r": result, "dt": namespace, "c": None}
    values |= dict(zip(OPERAND_NAMES, x.args, strict=False))
    needs = [values[n] for n in rule.needs]
    assert isinstance(x.op, Op)
    if not x.op.widens_gradient:
        return rule.rule(*needs)
    wide = [fit_dtype(v, v.dtype.compute) if isinstance(v, TracedValue) else v for v in needs]
    gradient = rule.rule(*wide)
    passed = [v for v, w in zip(needs, wide, strict=True) if w is gradient]
    return passed[0] if passed else gradient


def _backward_gradient(
    out: TracedValue, operand: TracedValue, g: TracedValue, r: TracedValue
) -> Gradient:
    """Return the gradient for `operand`, from the gradient `g` for `out`; `r` stands for `out`."""
    gradients = {id(out): g}
    dependent = _dependent_on(operand, out)
    for x in reversed(topological_order([out])):
        gradient = gradients.get(id(x))
        if gradient is None or x is operand:
            continue
        for i, a in enumerate(x.args):
            if not isinstance(a, TracedValue) or id(a) not in dependent:
                continue
            rule = _find_rule(x, i)
            if rule is None or a.dtype.kind not in DIFFERENTIABLE_KINDS:
                continue
            contribution = _apply_rule(rule, x, gradient, r if x is out else x)
            if isinstance(contribution, TracedValue):
                contribution = fit_dtype(contribution, a.dtype)
                earlier = gradients.get(id(a))
                gradients[id(a)] = (
                    contribution if earlier is None else trace_op(ops.ADD, (earlier, contribution))
                )
    return gradients.get(id(operand))


def _dependent_on(operand: TracedValue, out: TracedValue) -> set[int]:
    """Return the ids of `operand` and of the values below `out` that depend on `operand`."""
    dependent = {id(operand)}
    for x in topological_order([out]):
        if any(id(a) in dependent for a in x.args):
            dependent.add(id(x))
    return dependent


class _ForwardDerivatives:
    """The derivatives of traced values by one operand."""

    def __init__(self, operand: TracedValue) -> None:
        self.derivatives: dict[int, Gradient] = {id(operand): traced_constant(1.0, operand.dtype)}
        # results of loops, by those of loops with derivatives
        self.replaced_results: Replacements = {}

    def derivative_of(self, root: TracedValue) -> Gradient:
        """Return the derivative of a value, cached; None if it is zero."""
        for x in topological_order([root]):
            if id(x) not in self.derivatives:
                self.derivatives[id(x)] = self._differentiate_value(x)
        return self.derivatives[id(root)]

    def _differentiate_value(self, x: TracedValue) -> Gradient:
        """Return a value's derivative, None for 0. Raises: GradientError, also if it is complex."""
        if x.dtype.kind == "c":
            raise GradientError(
                "backward: a loop of complex numbers has no gradient; carry the real and imaginary "
                "parts"
            )
        if isinstance(x.op, Op):
            return self._differentiate_op(x)
        if x.op == "result":
            self._differentiate_loop(x.attrs[0])
            return self.derivatives[id(x)]
        return None

    def _differentiate_op(self, x: TracedValue) -> Gradient:
        """Return the sum of an op's rules applied to derivatives of its operands, or None."""
        if x.dtype.kind not in DIFFERENTIABLE_KINDS:
            return None
        total: Gradient = None
        for i, a in enumerate(x.args):
            derivative = self.derivatives[id(a)] if isinstance(a, TracedValue) else None
            rule = None if derivative is None else _find_rule(x, i)
            if derivative is None or rule is None:
                continue
            # For real numbers the rule for the backward direction is also that for the forward one.
            contribution = _apply_rule(rule, x, fit_dtype(derivative, x.dtype), x)
            if isinstance(contribution, TracedValue):
                contribution = fit_dtype(contribution, x.dtype)
                total = contribution if total is None else trace_op(ops.ADD, (total, contribution))
        return total

    def _differentiate_loop(self, loop: TracedLoop) -> None:
        """Record the derivatives of a loop's results, which a second loop carries."""
        floats = [i for i, x in enumerate(loop.init) if x.dtype.kind in DIFFERENTIABLE_KINDS]
        initial = [self._derivative_or_zero(loop.init[i]) for i in floats]
        start, stop = _substitute((loop.start, loop.stop), self.replaced_results)
        extended = TracedLoop(
            start, stop, tuple(_substitute([*loop.init, *initial], self.replaced_results))
        )
        self.derivatives[id(loop.index)] = None
        replaced = self.replaced_results | {id(loop.index): extended.index}
        replaced |= {id(a): b for a, b in zip(loop.carry, extended.carry, strict=False)}
        n = len(loop.init)
        self._set_derivatives(loop.carry, floats, extended.carry[n:])
        update = [self._derivative_or_zero(loop.update[i]) for i in floats]
        extended.finish(tuple(_substitute([*loop.update, *update], replaced)))
        self._set_derivatives(loop.results, floats, extended.results[n:])
        self.replaced_results |= {
            id(a): b for a, b in zip(loop.results, extended.results, strict=False)
        }

    def _derivative_or_zero(self, x: TracedValue) -> TracedValue:
        """Return the derivative of a value, or a traced 0."""
        derivative = self.derivative_of(x)
        return traced_constant(0.0, x.dtype) if derivative is None else derivative

    def _set_derivatives(
        self, values: Sequence[TracedValue], floats: list[int], derivatives: Sequence[TracedValue]
    ) -> None:
        """Set the derivatives of the values at the positions `floats`; others have none."""
        self.derivatives |= dict.fromkeys(map(id, values))
        self.derivatives |= {id(values[i]): d for i, d in zip(floats, derivatives, strict=True)}


def _forward_gradient(out: TracedValue, operand: TracedValue, g: TracedValue) -> Gradient:
    """Return the gradient for `operand`, from the gradient `g` for `out`."""
    forward = _ForwardDerivatives(operand)
    slope = forward.derivative_of(out)
    if slope is None:
        return None
    (slope,) = _substitute([slope], forward.replaced_results)
    return fit_dtype(trace_op(ops.MULTIPLY, (g, slope)), operand.dtype)


def _substitute(roots: Sequence[Operand], replaced: Replacements) -> list[Any]:
    """Return copies of values in which some are replaced, also in the loops that they contain.

    A Python number is returned as it is.
    """
    copies = dict(replaced)
    for x in topological_order(roots):
        if id(x) not in copies:
            copies[id(x)] = _copy_with_operands(x, copies)
    return [copies[id(x)] if isinstance(x, TracedValue) else x for x in roots]


def _copy_with_operands(x: TracedValue, copies: Replacements) -> TracedValue:
    """Return `x` with its operands from `copies`, or itself; add a copied loop's results there."""
    if x.op == "result":
        loop: TracedLoop = x.attrs[0]
        if all(copies.get(id(a), a) is a for a in topological_order([x], in_loops=True)):
            return x
        start, stop = _substitute((loop.start, loop.stop), copies)
        copy = TracedLoop(start, stop, tuple([copies[id(a)] for a in loop.init]))
        inner = copies | {id(loop.index): copy.index}
        inner |= {id(a): b for a, b in zip(loop.carry, copy.carry, strict=True)}
        copy.finish(tuple(_substitute(loop.update, inner)))
        copies.update({id(a): b for a, b in zip(loop.results, copy.results, strict=True)})
        return copies[id(x)]
    args = tuple([copies[id(a)] if isinstance(a, TracedValue) else a for a in x.args])
    if all(a is b for a, b in zip(args, x.args, strict=True)):
        return x
    return TracedValue(x.op, x.dtype, args, x.attrs)


class TracedRule:
    """A gradient rule that is another op, which is made when it is first needed.

    Its signature names what it needs. `traces`: for gradients that are not recorded (False), and
    for those that are (True), what is needed and the trace of it.
    """

    def __init__(self, name: str, traces: Mapping[bool, tuple[RuleInputs, FunctionTrace]]) -> None:
        self.name, self._traces = name, traces
        needs = dict.fromkeys(n for names, _ in traces.values() for n in names)
        self.needs = ("g", *[n for n in needs if n != "g"])
        self._ops: dict[bool, Op] = {}
        kind = Parameter.POSITIONAL_ONLY
        self.__signature__ = Signature([Parameter(n, kind) for n in self.needs])

    def __call__(self, *values: Any) -> Tensor:
        """Return the gradient."""
        recorded = current().grad
        needs, trace = self._traces[recorded]
        by_name = dict(zip(self.needs, values, strict=True))
        if trace.outputs[0] is trace.inputs[0]:  # the incoming gradient
            return by_name["g"]  # type: ignore[no-any-return]  # a tensor
        op = self._ops.get(recorded)
        if op is None:
            op = self._ops[recorded] = make_op(self.name, trace, 0)
        return apply(op, [by_name[n] for n in needs])


def raising_rule(message: str) -> Rule:
    """Return a rule that raises a GradientError with this message."""

    def raise_error(g: Tensor) -> NoReturn:
        """Raise the GradientError."""
        raise GradientError(message)

    return raise_error


class LazyRules:
    """The gradient rules of an op, derived when they are first needed."""

    def __init__(self, derive: Callable[[int], Rule | None], count: int) -> None:
        self._derive, self._count = derive, count
        self._rules: list[Rule | None] | None = None

    def __iter__(self) -> Iterator[Rule | None]:
        if self._rules is None:
            self._rules = [self._derive(i) for i in range(self._count)]
        return iter(self._rules)


def has_gradient(trace: FunctionTrace, k: int, i: int) -> bool:
    """Return True if a gradient can flow from output `k` to input `i`, by their dtypes."""
    dtypes = trace.inputs[i].dtype, trace.outputs[k].dtype
    return all(d.kind in DIFFERENTIABLE_KINDS for d in dtypes)


def rule_name(op: str, trace: FunctionTrace, i: int) -> str:
    """Return the name of an op's gradient for operand `i` in kernels."""
    return f"{op}_gradient" + (f"_{i}" if len(trace.inputs) > 1 else "")


def _derive_rule(op: str, trace: FunctionTrace, k: int, i: int) -> Rule | None:
    """Return the rule of output `k` for operand `i`, None without gradient, or one that raises."""
    if not has_gradient(trace, k, i):
        return None
    try:
        traces = {recorded: _differentiate(trace, k, i, recorded) for recorded in (False, True)}
    except GradientError as error:
        return raising_rule(f"{op}: {error}")
    return TracedRule(rule_name(op, trace, i), traces)


def _differentiate(
    trace: FunctionTrace, k: int, i: int, recorded: bool
) -> tuple[RuleInputs, FunctionTrace]:
    """Return the input names of operand `i`'s gradient, and its trace, with or without a tape."""
    out, operand = trace.outputs[k], trace.inputs[i]
    g, r = TracedValue("operand", out.dtype), TracedValue("operand", out.dtype)
    has_loop = any(x.op == "result" for x in topological_order([out]))
    previous_tape = current()
    try:
        set_recording(recorded)
        gradient = (
            _forward_gradient(out, operand, g)
            if has_loop
            else _backward_gradient(out, operand, g, r)
        )
    finally:
        restore(previous_tape)
    return gradient_trace(
        traced_constant(0.0, operand.dtype) if gradient is None else gradient, g, r, trace
    )


def gradient_trace(
    gradient: TracedValue, g: TracedValue, r: TracedValue, trace: FunctionTrace
) -> tuple[RuleInputs, FunctionTrace]:
    """Return the names of the inputs that a gradient of `trace` needs, and its trace.

    g: the incoming gradient. r: stands for the output.
    """
    named = dict(zip(("r", *OPERAND_NAMES), (r, *trace.inputs), strict=False))
    live = {id(x) for x in topological_order([gradient], in_loops=True)}
    used = {n: x for n, x in named.items() if id(x) in live}
    return ("g", *used), FunctionTrace([g, *used.values()], [gradient])


def make_op(name: str, trace: FunctionTrace, k: int, rules: LazyRules | None = None) -> Op:
    """Return a new elementwise op for output `k` of a trace, with operands of its inputs' dtypes.

    rules: those of the user; None: those that follow from the trace.
    """
    casts: tuple[DType, ...] = tuple([x.dtype for x in trace.inputs])
    dtypes = casts, trace.outputs[k].dtype
    gradient: Any = rules or LazyRules(partial(_derive_rule, name, trace, k), len(casts))
    return Op(
        name,
        "map",
        lambda op, operands, attrs: dtypes,
        trace.expression(k),
        trace.cost(k),
        widens=False,
        arity=len(casts),
        gradient=gradient,
    )
