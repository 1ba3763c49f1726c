"""The tape: records of ops through which gradients can flow back.

A node of the deferred graph has a `tape` if one of its operands requires a gradient. Gradients
flow along tapes, not along the deferred graph, whose nodes drop their operands once they are
computed. A tape keeps the values that its rules name (see `gradients`), as nodes of the deferred
graph. Cheap values are rematerialised: the backward kernel computes them on the fly.
"""

from __future__ import annotations

from cmath import isfinite
from collections.abc import Callable, Sequence
from inspect import signature
from itertools import count
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from .. import callbacks
from ..argument_checks import flag, instance, shown
from ..argument_checks import function as callable_
from ..engine import tracer_api
from ..engine.events import counters
from ..errors import GradientError
from ..functions.datatypes import cast
from ..functions.graph_cache import Recipe, build_recipe, input_properties, replay_recipe
from ..graph.expr import Expr, Spec, Watch, leaf, rematerialize, spec, watch_value
from ..lru_cache import LRUCache
from ..ops.gradient import Functions, Rule
from ..ops.kernel_context import Attrs
from ..ops.table import REPEATED_COST_MAX, WHERE, Op
from ..settings import Switch, current
from ..tensor.c_fields import is_strided
from ..tensor.tensor import Tensor, attach_lazy_storage, create_tensor, must_evaluate
from . import namespace

REMATERIALIZED_LEAVES_MAX = (
    2  # an expression that reads more tensors is not cheaper to compute again
)


class _RecordingSwitch(Switch):
    """A switch that can also decorate a function without parentheses."""

    changed: ClassVar[dict[str, object]]

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        if function is None:
            return super().__new__(cls)
        return cls()(callable_(cls.__name__, function))

    def __init__(self, function: None = None) -> None:
        super().__init__(**self.changed)


class no_grad(_RecordingSwitch):
    """A context in which ops are not recorded for gradients; a decorator, with () or without.

    - `function`: the decorated function, for a decorator without ().

    See also: `enable_grad`, `inference_mode`, `Tensor.detach`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> with dt.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    >>> @dt.no_grad
    ... def twice(x):
    ...     return x * 2
    >>> twice(x).requires_grad
    False
    """

    changed: ClassVar[dict[str, object]] = {"grad": False}


class enable_grad(_RecordingSwitch):
    """A context in which ops are recorded for gradients, as by default; a decorator, too.

    - `function`: the decorated function, for a decorator without ().

    See also: `no_grad`, `set_grad_enabled`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> with dt.no_grad(), dt.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    changed: ClassVar[dict[str, object]] = {"grad": True}


class inference_mode(Switch):
    """A context in which no op is recorded for gradients, not even under `enable_grad`.

    It can be a decorator, with () or without. It is `no_grad` that `enable_grad` does not end, and
    in which `requires_grad_` is an error: for code that must not train. Its results are ordinary
    tensors: version counters cost nothing here.

    - `mode`: False changes nothing.

    Raises: ArgumentTypeError if it is neither a bool nor a function.
    See also: `no_grad`, `nn.Module.eval`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> with dt.inference_mode(), dt.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __new__(cls, mode: Callable[..., Any] | bool = True) -> Any:
        if callable(mode):
            return cls()(mode)
        return super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        changes = {"inference": True} if flag("inference_mode", mode, "mode") else {}
        super().__init__(**changes)


def is_inference_mode_enabled() -> bool:
    """Return True if this context is in `inference_mode`.

    >>> import dovetail as dt
    >>> with dt.inference_mode():
    ...     dt.is_inference_mode_enabled()
    True
    """
    return current().inference


class set_grad_enabled(Switch):
    """A context, or a decorator, that turns recording for gradients on or off.

    - `enabled`: True records ops for gradients, False does not.

    Raises: ArgumentTypeError if it is not a bool.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> with dt.set_grad_enabled(False):
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self, enabled: bool) -> None:
        super().__init__(grad=flag("set_grad_enabled", enabled, "enabled"))


def is_grad_enabled() -> bool:
    """Return True if ops are being recorded for gradients in this context.

    A new thread begins with True.

    >>> import dovetail as dt
    >>> with dt.no_grad():
    ...     dt.is_grad_enabled()
    False
    """
    return current().grad


# --- saved values --------------------------------------------------------------------------------


class SavedValue:
    """A value saved for the backward pass, with a watch that detects a later overwrite."""

    __slots__ = ("value", "watch")

    def __init__(self, value: object, watch: Watch | None) -> None:
        self.value = value  # an Expr, or a Python number
        self.watch = watch


K = TypeVar("K", SavedValue, SavedValue | None)


class PackedValue:
    """A saved value that hooks have packed, and the function that unpacks it."""

    __slots__ = ("spec", "tape", "unpack", "value")

    def __init__(self, e: Expr, value: object, unpack: Callable[[Any], object]) -> None:
        self.spec, self.tape, self.value, self.unpack = e.spec, e.tape, value, unpack

    def unpack_value(self, name: str, what: str) -> Tensor:
        """Call the unpack hook; return its tensor on the old tape.

        Raises: GradientError unless the hook returns a strided tensor of the saved spec.
        """
        tensor = self.unpack(self.value)
        if not is_strided(tensor) or tensor._expr.spec is not self.spec:
            actual = repr(tensor._expr.spec) if is_strided(tensor) else shown(tensor)
            raise GradientError(
                f"saved_tensors_hooks: unpack must return the tensor that pack got, {self.spec!r} "
                f"for {what} of {name}, got {actual}"
            )
        if self.tape is None:
            return tensor
        e = tensor._expr if tensor._expr.op is None else attach_lazy_storage(tensor)
        taped_leaf = leaf(e.storage, e.spec, e.strides, e.offset, e.moves)
        taped_leaf.tape = self.tape
        return create_tensor(taped_leaf)


def save_value(e: object) -> SavedValue:
    """Save the current value of `e`: cheap pending work to be rematerialised, others materialised.

    Within `saved_tensors_hooks`, save the packed form.
    """
    if type(e) is not Expr:
        return SavedValue(e, None)
    saving = current().saved_value_hooks
    if saving is not None:
        return SavedValue(saving.pack_node(e), None)
    is_rematerialized = e.op is not None and _is_cheap(e) and not must_evaluate(e)
    return SavedValue(rematerialize(e) if is_rematerialized else e, watch_value(e))


def rematerialize_saved(saved: K) -> K:
    """Return a copy of `saved` that can be held without storing pending work.

    Its value is a new node to be rematerialised, so the reference does not make the planner store
    it.
    """
    if saved is None or type(saved.value) is not Expr or saved.value.op is None:
        return saved
    return SavedValue(rematerialize(saved.value), saved.watch)


def _nothing() -> None:
    """Do nothing: the restore function of a node that saves no values."""
    pass


def _is_cheap(e: Expr) -> bool:
    """Return True if computing the node again costs less than storing and loading it."""
    cost, leaves, stack = 0, set(), [e]
    while stack:
        a = stack.pop()
        if a.op is None:
            leaves.add(a)
        elif a.op.kind in ("map", "generate"):
            cost += a.op.cost
            stack += [b for b in a.args if type(b) is Expr]
        elif a.op.kind == "view":
            stack.append(a.args[0])
        else:
            return False
        if cost > REPEATED_COST_MAX or len(leaves) > REMATERIALIZED_LEAVES_MAX:
            return False
    return True


def load_saved(node: Node, what: str, saved: SavedValue) -> object:
    """Return a saved value as a tensor, a number as it is. Raises: GradientError if overwritten."""
    e = saved.value
    if type(e) is PackedValue:
        return e.unpack_value(node.name, what)
    if saved.watch is None or type(e) is not Expr:
        return e
    check_unwritten(node, what, e.spec, saved.watch)
    return create_tensor(e)


def check_unwritten(node: Node, what: str, spec: Spec, watch: Watch) -> None:
    """Raise GradientError if a saved value was overwritten in place."""
    if watch.writer is not None:
        raise GradientError(
            f"backward: {node.name} saved {what}, {spec!r}, for its gradient, and {watch.writer} "
            "overwrote it in place afterwards; write to x.copy(), or write after backward()"
        )


# --- rules ---------------------------------------------------------------------------------------

OPERAND_NAMES = ("x", "y", "z", *[f"x{i}" for i in range(3, 64)])


class ParsedRule(NamedTuple):
    """A rule with the names of its parameters, in order, and the operand positions among them."""

    rule: Rule
    needs: tuple[str, ...]
    operands: tuple[int, ...]
    takes_rest: bool
    takes_result: bool


def _parse_rule(rule: Rule) -> ParsedRule:
    """Return the rule with the names of its parameters and the operands among them."""
    needs = tuple(signature(rule).parameters)
    operands = tuple([OPERAND_NAMES.index(n) for n in needs if n in OPERAND_NAMES])
    return ParsedRule(rule, needs, operands, "rest" in needs, "r" in needs)


_DT: Functions[Tensor] = namespace
# Cached template of a rule's result, per kind of operands; False if no template can express it.
_parts: LRUCache[tuple[object, ...], Recipe | Literal[False]] = LRUCache(4096)
Rules = tuple[ParsedRule | None, ...]
_rules: dict[Op, Rules] = {}  # rules of table rows (on first use) and of set_gradient


def set_gradient(op: Op, *rules: Rule | None) -> None:
    """Set the gradient rules of an op, one for each operand.

    Values that a rule names are saved. A rule runs once per kind of operands, so it must not read
    the values of tensors. Use it for rules that take more than the elementwise functions; others
    stand in the op's row. See docs/adding-an-op.md.

    - `op`: a row of the op table.
    - `rules`: for each operand a function, or None where it has no gradient. The names of its
      parameters say what it needs: `g` the gradient that comes in, `x`, `y`, ... the operands, `r`
      the result.

    Raises: ArgumentTypeError for an op or a rule of another kind.
    """
    instance("set_gradient", op, "op", Op)
    for r in rules:
        if r is not None:
            callable_("set_gradient", r, "a rule")
    _rules[op] = tuple([None if r is None else _parse_rule(r) for r in rules])


def rules_of(op: Op) -> Rules:
    """Return the parsed rules of an op's operands, by default its row's; () without a gradient."""
    if op not in _rules:
        set_gradient(op, *callbacks.gradient_rules.get(op, op.gradient))
    return _rules[op]


# --- tapes ---------------------------------------------------------------------------------------

node_counter = count()
PropagatedGradient: TypeAlias = (
    Any  # a gradient on its way; for a Function a dict, one for each of its results
)


class Edge:
    """An edge to an operand's tape node, with the operand's value if that node needs its result."""

    __slots__ = ("node", "result")

    def __init__(self, node: Node, result: SavedValue | None) -> None:
        self.node, self.result = node, result


def edge_to(e: object) -> Edge | None:
    """Return an edge to a graph node's tape, or None; save the value if the tape needs it."""
    if type(e) is not Expr or e.tape is None:
        return None
    return Edge(e.tape, save_value(e) if e.tape.needs_result else None)


class Node:
    """A node of the tape: a tensor whose gradient can be asked for. `order` grows with time.

    `recorded_line`: the source line that asked for the op; only of an op that checks indices, or
    while anomalies are searched for.
    `accepts_unrounded`: ops send gradients in the compute dtype, before they are rounded to `spec`.
    """

    __slots__ = (
        "__weakref__",
        "accepts_unrounded",
        "edges",
        "grad",
        "hooks",
        "name",
        "needs_result",
        "order",
        "recorded_line",
        "released",
        "retains_grad",
        "spec",
    )

    def __init__(self, name: str, spec: Spec, edges: tuple[Edge | None, ...]) -> None:
        self.name, self.spec, self.edges = name, spec, edges
        self.order = next(node_counter)
        self.needs_result = self.released = self.retains_grad = self.accepts_unrounded = False
        self.grad: Tensor | None = None
        self.hooks: dict[int, Callable[[Tensor], Tensor | None]] | None = None

    @property
    def next_functions(self) -> tuple[Node | None, ...]:
        """Return the tape node of each operand, or None for one that no gradient flows to."""
        return tuple([None if e is None else e.node for e in self.edges])

    def __repr__(self) -> str:
        return f"<{self.name} on the tape, {self.spec!r}>"

    def backward(
        self, g: PropagatedGradient, result: SavedValue | None
    ) -> list[PropagatedGradient | None]:
        """Return for each edge its part of the gradient, or None; subclasses define it."""
        raise NotImplementedError

    def resume(self, sent: dict[Node, PropagatedGradient]) -> Sequence[int]:
        """Return the numbers of edges whose parts continue sums already `sent`; by default none."""
        return ()

    def gradient_mask(self, i: int, reach: Tensor | None) -> Tensor | None:
        """Return the mask of elements where the gradient of operand `i` may be other than 0.

        None if that is not known. `reach`: the mask of the gradient that comes in, or None.
        """
        return None

    def release(self) -> Callable[[], None]:
        """Drop saved values, by default none; return a function that restores them."""
        return _nothing

    def add_gradients(self, a: PropagatedGradient, b: PropagatedGradient) -> PropagatedGradient:
        """Return the sum of the gradients from two readers."""
        return a + b


class HookHandle:
    """A handle that `register_hook` returns, to remove the hook again.

    - `hooks`: the hooks of a tape node.
    - `key`: the number of the hook among them.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> handle = x.register_hook(lambda g: g * 10)
    >>> handle.remove()
    >>> x.sum().backward()
    >>> x.grad.tolist()
    [1.0, 1.0]
    """

    def __init__(self, hooks: dict[int, Callable[[Tensor], Tensor | None]], key: int) -> None:
        self._hooks, self._key = hooks, key

    def remove(self) -> None:
        """Remove the hook, so that it is not called any more; do nothing the second time."""
        self._hooks.pop(self._key, None)


class TapeLeaf(Node):
    """A tensor that requires a gradient and is no op's result."""

    __slots__ = ()

    def __init__(self, spec: Spec) -> None:
        super().__init__("leaf", spec, ())

    def add_gradients(self, a: PropagatedGradient, b: PropagatedGradient) -> PropagatedGradient:
        """Return the sum of two gradients; one that is not strided defines the sum's layout."""
        if is_strided(a) and is_strided(b):
            return a + b
        # A gradient of another layout defines the sum.
        return a.accumulated(b) if not is_strided(a) else b.accumulated(a)


class OpNode(Node):
    """The tape node of an op of the table."""

    __slots__ = ("attrs", "op", "operands", "result", "rules", "saved_operands")

    result: Watch  # only if `needs_result`: detects that the result was overwritten

    def __init__(self, e: Expr) -> None:
        op, args = e.op, e.args
        assert op is not None
        super().__init__(op.name, e.spec, tuple([edge_to(a) for a in args]))
        self.op, self.attrs = op, e.attrs
        self.operands = tuple([a.spec if type(a) is Expr else None for a in args])
        self.saved_operands: dict[int, SavedValue] = {}
        rules = _rules.get(op) or rules_of(op)
        if op.arity == 0:  # any number of operands, with one rule
            rules = rules * len(args)
        self.rules = rules
        for i, edge in enumerate(self.edges):
            rule = None if edge is None or i >= len(rules) else rules[i]
            if rule is None:
                continue
            wanted = rule.operands
            if rule.takes_rest:
                wanted = (*wanted, *range(len(rules), len(args)))
            for k in wanted:
                if k not in self.saved_operands:
                    self.saved_operands[k] = save_value(args[k])
            if rule.takes_result:
                self.needs_result, self.result = True, watch_value(e)

    def backward(
        self, g: Tensor, result: SavedValue | None, reach: Tensor | None = None
    ) -> list[PropagatedGradient | None]:
        """Return for each edge its part of the gradient, or None.

        `reach`: a mask; where it is False, `g` is 0, and so are the parts: also where the op has no
        finite slope, because a branch that `where` has not taken is outside of its domain there.
        Raises: GradientError for an op without rules, and for released or overwritten values.
        """
        if not self.rules:
            raise GradientError(
                f"backward: {self.name} has no gradient; use x.detach() or dt.autograd.Function"
            )
        gradients: list[PropagatedGradient | None] = []
        for i, edge in enumerate(self.edges):
            rule = None if edge is None or i >= len(self.rules) else self.rules[i]
            if rule is None:
                gradients.append(None)
                continue
            needs = [self._rule_argument(n, i, g, result) for n in rule.needs]
            gradients.append(
                self._operand_gradient(i, rule, needs, self._mask(i, rule, needs, reach))
            )
        return gradients

    def _mask(
        self, i: int, rule: ParsedRule, needs: list[Any], reach: Tensor | None
    ) -> Tensor | None:
        """Return the mask for a part, or None if a 0 that comes in gives a 0 without one."""
        if reach is None or self.op is WHERE:
            return None
        named = [
            x for n, x in zip(rule.needs, needs, strict=True) if n == "r" or n in OPERAND_NAMES
        ]
        if all([not is_strided(x) and x != 0 and isfinite(x) for x in named]):
            return None
        return reach if self.op.kind == "map" else self.gradient_mask(i, reach)

    def gradient_mask(self, i: int, reach: Tensor | None) -> Tensor | None:
        """Return the mask of elements where operand `i` may have another gradient than 0, or None.

        None: it is not known.
        """
        want = self.operands[i]
        if self.op is WHERE:
            condition = load_saved(self, "the condition", self.saved_operands[0])
            if not is_strided(condition):
                return None
            condition = (condition if i == 1 else _DT.logical_not(condition)).broadcast_to(
                self.spec.shape
            )
            mask = condition if reach is None else _DT.logical_and(condition, reach)
        elif reach is None:
            return None
        elif self.op in callbacks.mask_rules:
            return callbacks.mask_rules[self.op](reach, _Context(self, i))
        elif self.op.kind == "map":
            mask = reach
        else:
            return None
        return None if want is None else _fit_mask(mask, want.shape)

    def _operand_gradient(
        self, i: int, rule: ParsedRule, needs: list[Any], mask: Tensor | None
    ) -> Tensor | None:
        """Return an operand's gradient or None, by its rule or by a template, which is cached."""
        if mask is not None:
            needs = [*needs, mask]
        operands = [x._expr for x in needs if is_strided(x)]
        key = self._template_key(i, rule, needs, operands)
        template = None if key is None else _parts.young.get(key) or _parts.find(key)
        if template is not None and template is not False:
            return create_tensor(replay_recipe(template, operands))
        before = counters.evaluations
        want, looker = self.operands[i], current().anomaly
        args = needs[: len(rule.needs)]
        if mask is None:
            part = _apply_rule(self.op, rule, args)
        elif looker is None:
            part = _apply_rule_masked(self.op, rule, args, mask)
        else:  # elements that the mask hides may be NaN
            inputs = (self.op, rule, args, mask)
            part = looker.check_call(self.name, _apply_rule_masked, inputs, operands)
        if part is None or want is None:
            return None
        edge = self.edges[i]
        if edge is not None and edge.node.accepts_unrounded:
            want = spec(want.shape, want.dtype.compute, want.device)
            part = cast(part, want.dtype)
        part = fit_gradient(part, want)
        if template is None and key is not None:
            strange = not is_strided(part) or counters.evaluations > before
            built = None if strange else build_recipe(part._expr, operands, True, False)
            _parts[key] = False if built is None else built
        return part

    def _template_key(
        self, i: int, rule: ParsedRule, needs: list[Any], operands: list[Expr]
    ) -> tuple[object, ...] | None:
        """Return a part's cache key without tensor values, or None if it must not be cached.

        None: gradients are recorded, a tracer is active, or no key can hold a value.
        """
        now = current()
        if now.grad or tracer_api.current() is not None:
            return None
        key: list[object] = [rule, i, self.attrs, self.operands, now.vendor_products, len(operands)]
        edge = self.edges[i]
        if edge is not None and edge.node.accepts_unrounded:
            key.append("unrounded")
        for x in needs:
            kind = type(x)
            if is_strided(x):
                key.append(input_properties(x._expr))
            elif kind is float:
                key.append(x.hex())  # tells zeros apart
            elif kind is int or kind is bool:
                key += (kind, x)
            elif kind is not _Context and x is not _DT:
                return None
        if len({*operands}) < len(operands):
            key.append(tuple([operands.index(e) for e in operands]))
        return tuple(key)

    def _rule_argument(self, name: str, i: int, g: Tensor, result: SavedValue | None) -> object:
        """Return the value for a rule's parameter `name`. Raises: GradientError if overwritten."""
        if name == "g":
            return g
        if name == "dt":
            return _DT
        if name == "c":
            return _Context(self, i)
        if name == "r":
            assert result is not None
            check_unwritten(self, "its result", self.spec, self.result)
            return load_saved(self, "its result", result)
        if name == "rest":
            span = range(len(self.rules), len(self.operands))
            return [load_saved(self, f"operand {k}", self.saved_operands[k]) for k in span]
        k = OPERAND_NAMES.index(name)
        return load_saved(self, f"operand {k}", self.saved_operands[k])

    def release(self) -> Callable[[], None]:
        """Drop saved operands and results; return a function that restores them."""
        if not (
            self.saved_operands or self.needs_result or any([e and e.result for e in self.edges])
        ):
            return _nothing
        saved = {k: rematerialize_saved(v) for k, v in self.saved_operands.items()}
        edges = tuple([e and Edge(e.node, rematerialize_saved(e.result)) for e in self.edges])
        self.released, self.saved_operands = True, {}
        self.edges = tuple([e and Edge(e.node, None) for e in self.edges])

        def restore() -> None:
            """Put the saved values back."""
            self.released, self.saved_operands, self.edges = False, saved, edges

        return restore


class RuleContext(Protocol):
    """The facts about an op that a rule can ask for, besides values."""

    @property
    def attrs(self) -> Attrs:
        """Return the static attributes of the op."""

    @property
    def position(self) -> int:
        """Return the position of the operand whose gradient is wanted."""

    @property
    def operands(self) -> tuple[Spec | None, ...]:
        """Return the specs of all operands; None for one that is no node."""

    @property
    def line(self) -> str | None:
        """Return the source line that asked for an op which checks indices."""

    def spec(self, i: int | None = None) -> Spec:
        """Return the spec of operand `i`, else of the one whose gradient is wanted."""


class _Context(NamedTuple):
    """The context of the rule at `position` of a tape node."""

    node: OpNode
    position: int

    @property
    def attrs(self) -> Attrs:
        """Return the static attributes of the op."""
        return self.node.attrs

    @property
    def operands(self) -> tuple[Spec | None, ...]:
        """Return the specs of all operands; None for one that is no node."""
        return self.node.operands

    @property
    def line(self) -> str | None:
        """Return the source line that asked for an op which checks indices."""
        line = getattr(self.node, "recorded_line", None)
        return None if line is None else str(line)

    def spec(self, i: int | None = None) -> Spec:
        """Return the spec of operand `i`, else of the one whose gradient is wanted."""
        operand = self.operands[self.position if i is None else i]
        assert operand is not None
        return operand


def _call_in_compute_dtype(rule: Rule, needs: list[Any]) -> Any:
    """Call a rule on tensors widened to their compute dtype; return its result unrounded.

    An operand that the rule passes on is returned as it came.
    """
    wide = [cast(x, x.dtype.compute) if is_strided(x) else x for x in needs]
    part = rule(*wide)
    for before, x in zip(needs, wide, strict=True):
        if x is part:  # passed on as it came: nothing to round
            return before
    return part


def fit_gradient(g: Tensor, want: Spec) -> Tensor:
    """Return `g` summed over broadcast axes, in the shape and dtype of the operand.

    A real operand takes the real part: the imaginary one is along no direction that it has.
    """
    if g._expr.spec is want:
        return g
    if g.dtype.kind == "c" and want.dtype.kind != "c":
        g = _DT.real(g)
    if g.shape != want.shape:
        lead = g.ndim - len(want.shape)
        axes = tuple([d for d in range(g.ndim) if d < lead or want.shape[d - lead] != g.shape[d]])
        g = sum_to(g, axes, want.shape)
    return g if g.dtype is want.dtype else g.astype(want.dtype)


def _apply_rule(op: Op, rule: ParsedRule, needs: list[Any]) -> Any:
    """Return the result of a rule, computed in float32 for halves unless the op says otherwise."""
    return _call_in_compute_dtype(rule.rule, needs) if op.widens_gradient else rule.rule(*needs)


def _apply_rule_masked(op: Op, rule: ParsedRule, needs: list[Any], mask: Tensor) -> Tensor | None:
    """Return the result of a rule where the mask is True, and 0 elsewhere."""
    part = _apply_rule(op, rule, needs)
    return None if part is None else _DT.where(mask, part, 0.0)


def _fit_mask(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the mask of an operand that was broadcast: True if any of its readers is."""
    if mask.shape == shape:
        return mask
    lead = mask.ndim - len(shape)
    axes = tuple([d for d in range(mask.ndim) if d < lead or shape[d - lead] != mask.shape[d]])
    reduced = mask.any(axis=axes, keepdims=True)
    return reduced if reduced.shape == shape else reduced.reshape(shape)


def sum_to(g: Tensor, axes: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """Return the sum over `axes`, reshaped to `shape`."""
    g = g.sum(axis=axes, keepdims=True)
    return g if g.shape == shape else g.reshape(shape)


def record_tape(e: Expr) -> OpNode | None:
    """Return the tape of a new node with a taped operand; None if no gradient can flow."""
    if not current().grad or e.spec.dtype.kind not in "fc":
        return None
    return OpNode(e)
