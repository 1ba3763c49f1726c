"""`dt.elementwise`: a Python function of numbers that becomes an op like those of the table.

It is traced once for each combination of dtypes into rows of the table, and these into one
expression of the loop language. So it broadcasts, is deferred, fused with its neighbours, captured
and differentiated as every row is, with the bits of the same functions on tensors.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from ..arguments import function as callable_
from ..arguments import shown
from ..autograd.tape import OPERANDS
from ..device import device
from ..dtypes import DType, bool_, complex64, complex128, dtype, float64
from ..engine.traced_numbers import TracedFloat
from ..errors import ArgumentError, ArgumentTypeError, DTypeError, GradientError
from ..functions.datatypes import DTypeLike
from ..graph.expr import spec
from ..insight.explain import explain
from ..memo import Memo
from ..ops import dtype_rules
from ..ops.gradient import Rule
from ..ops.table import Op
from ..respelled import UNGIVEN
from ..tensor.fields import expr_of
from ..tensor.host import fresh
from ..tensor.operands import ARRAYS, PYTHON_NUMBERS, Operand, beside
from ..tensor.tensor import Tensor, make
from ..tensor.verbs import apply, apply_noted, in_place
from .gradient_rules import Gradients, OwnRules
from .lower_trace import Trace, called, traced
from .trace_gradients import FLOWS, Derivative, Refused, Rules, derivative_name, needed, op_of
from .traced_value import REFERENCE, Element, fitted

__all__ = ["elementwise"]

Kind: TypeAlias = "DType | type"  # of an operand: its dtype, or the type of a Python number
CastRule: TypeAlias = Callable[..., Sequence[DTypeLike]]
Examples: TypeAlias = "Sequence[object] | Callable[[], Sequence[object]]"
Static: TypeAlias = Mapping[str, object]

_BROUGHT = (*ARRAYS, np.generic)
_lately: Memo[Op] = Memo()  # by the function, and what one or two operands are: specs, or types
_RULES = {
    "promoted": dtype_rules.same("biufc"),
    "floating": dtype_rules.analytic,
}


class Elementwise:
    """An op of a function of numbers: called with tensors and numbers, it gives a tensor.

    Its parameters that can be given by place are operands; keyword-only ones are static: the
    function is traced anew for each value.
    """

    holds_no_tensors = True  # what `dt.jit` need not look into

    def __init__(
        self, function: Callable[..., object], name: str, dtypes: str | CastRule | None,
        result: DType | None, gradient: Gradients | None, examples: Examples | None,
    ) -> None:  # fmt: skip
        functools.update_wrapper(self, function)
        self.function, self.name, self.examples = function, name, examples
        self._dtypes, self._result = dtypes, result
        self._signature = inspect.signature(function)
        self.operands = _operand_names(name, self._signature)
        self.options = tuple(n for n in self._signature.parameters if n not in self.operands)
        self._gradient = (
            None if gradient is None else OwnRules(name, gradient, self.operands, self.options)
        )
        self._made: dict[object, tuple[tuple[Op, ...], bool]] = {}

    def __repr__(self) -> str:
        return f"<elementwise {self.name}({', '.join(self.operands)})>"

    def __reduce__(self) -> str:
        return str(getattr(self.function, "__qualname__", self.name))  # by its name, as a function

    def __call__(
        self, x1: Operand = UNGIVEN, x2: Operand = UNGIVEN, /, *more: Operand,
        out: Tensor | None = None, **static: object,
    ) -> Any:  # a tensor, or a tuple of them where the function gives one  # fmt: skip
        if not more and not static:
            made = apply_noted(_lately, self, x1, x2, out)
            if made is not None:
                return made
        args = tuple([x for x in (x1, x2) if x is not UNGIVEN]) + more
        given, found, several = self._found(args, static)
        if not several:
            if not static and given is args:
                self._note(args, found[0])
            return apply(found[0], given, None, out)
        if out is not None:
            raise ArgumentError(f"{self.name}: gives {len(found)} tensors, so it takes no out=")
        return tuple([apply(op, given) for op in found])

    def _note(self, args: Sequence[object], op: Op) -> None:
        """Has the op found at once for one or two such operands."""
        kinds = [expr_of(a).spec if type(a) is Tensor else type(a) for a in args]
        if type(args[0]) is Tensor and len(kinds) <= 2:
            _lately.put(self, kinds[0], kinds[1] if len(kinds) == 2 else None, op)

    def in_place(self, x: Tensor, /, *others: Operand, **static: object) -> Tensor:
        """`x` after the result has been written into its memory, which every view of it sees."""
        given, found, several = self._found((x, *others), static)
        if several:
            raise ArgumentError(f"{self.name}: gives {len(found)} tensors; x takes one")
        return in_place(found[0], x, *given[1:])

    def text(self, *dtypes: DTypeLike, **static: object) -> str:
        """The kernel that computes it for operands of these dtypes, in the loop language.

        One dtype stands for all operands; none for float32.
        """
        wanted = dtypes if len(dtypes) == len(self.operands) else (dtypes or ("float32",))[:1]
        wanted = wanted if len(wanted) == len(self.operands) else wanted * len(self.operands)
        where = device(REFERENCE)
        given = [make(fresh(spec((4,), dtype(d, self.name), where))) for d in wanted]
        made: Any = self(*given, out=None, **static)
        launches = explain(*(made if isinstance(made, tuple) else (made,))).launches
        return "\n\n".join(step.text for step in launches)

    # --- for one combination of dtypes

    def _found(
        self, args: Sequence[object], static: Mapping[str, object]
    ) -> tuple[Sequence[object], tuple[Op, ...], bool]:
        """The operands, an op for each result, and whether the function gives a tuple."""
        if len(args) != len(self.operands) or any(n not in self.options for n in static):
            args, static = self._bound(args, static)
        if not static:
            plain = self._made.get(tuple([a.dtype if type(a) is Tensor else type(a) for a in args]))
            if plain is not None:
                return args, *plain
        if any(isinstance(a, _BROUGHT) for a in args):
            args = [self._brought(a, args) for a in args]
        kinds = tuple([self._kind(a) for a in args])
        key: object = (kinds, tuple(sorted(static.items()))) if static else kinds
        try:
            found = self._made.get(key)
        except TypeError:
            raise ArgumentTypeError(
                f"{self.name}: what is given by name is static and has to be hashable: "
                + ", ".join(f"{n}={shown(v)}" for n, v in static.items())
            ) from None
        if found is None:
            found = self._made[key] = self._traced(kinds, static)
        return args, *found

    def _bound(
        self, args: Sequence[object], static: Mapping[str, object]
    ) -> tuple[Sequence[object], dict[str, object]]:
        """Operands by place, what is static by name. Raises: ArgumentTypeError."""
        try:
            bound = self._signature.bind(*args, **static)
        except TypeError as error:
            raise ArgumentTypeError(f"{self.name}: {error}") from None
        bound.apply_defaults()
        given = bound.arguments
        known = [n for n in given if n not in self.operands]
        return [given[n] for n in self.operands], {n: given[n] for n in known if n in static}

    def _brought(self, a: object, among: Sequence[object]) -> object:
        if isinstance(a, np.generic):
            return a.item()
        return beside(self.name, a, among) if isinstance(a, ARRAYS) else a

    def _kind(self, a: object) -> Kind:
        if isinstance(a, Tensor):
            return a.dtype
        if type(a) is TracedFloat:
            return float
        for kind in PYTHON_NUMBERS:
            if isinstance(a, kind):
                return kind
        raise DTypeError(
            f"{self.name}: operands are tensors, NumPy arrays, lists and numbers, not "
            f"{type(a).__name__}; what is static is given by name"
        )

    def _traced(
        self, kinds: tuple[Kind, ...], static: Mapping[str, object]
    ) -> tuple[tuple[Op, ...], bool]:
        inputs = [Element("operand", d) for d in self._casts(kinds)]
        trace = traced(self.name, self.function, inputs, **static)
        if self._result is not None:
            outputs = [fitted(x, self._result) for x in trace.outputs]
            trace = Trace(inputs, outputs, trace.several)
        ops = []
        for k in range(len(trace.outputs)):
            name = f"{self.name}_{k}" if trace.several else self.name
            own = self._gradient
            rules = None if own is None else _Given(name, own, trace, k, self._options(static))
            ops.append(op_of(name, trace, k, rules))
        return tuple(ops), trace.several

    def _options(self, static: Static) -> Static:
        """What is static, by name, defaults too."""
        known = self._signature.parameters
        return {n: p.default for n, p in known.items() if n not in self.operands} | {**static}

    def _casts(self, kinds: tuple[Kind, ...]) -> Sequence[DType]:
        """What operands are seen as: as they are, numbers in the dtype in which tensors meet."""
        rule = self._dtypes
        if isinstance(rule, str):
            return _RULES[rule](self.name, kinds, None)[0]
        weak = [k for k in kinds if not isinstance(k, DType) and k is not bool]
        meet = dtype_rules.common(self.name, kinds, allowed="biufc") if weak else bool_
        casts = [_strong(k, kinds, meet) for k in kinds]
        if rule is None:
            return casts
        wanted = rule(*casts)
        if not isinstance(wanted, (list, tuple)) or len(wanted) != len(casts):
            raise DTypeError(
                f"{self.name}: dtypes= gives a dtype for each operand, {len(casts)} of them, not "
                f"{shown(wanted)}"
            )
        return [dtype(d, self.name) for d in wanted]


def _strong(kind: Kind, kinds: Sequence[Kind], meet: DType) -> DType:
    """The dtype of an operand."""
    if isinstance(kind, DType):
        return kind
    if kind is bool:
        return bool_
    if kind is complex:  # which stands beside tensors as a tensor
        wide = any(k.part is float64 for k in kinds if isinstance(k, DType))
        return complex128 if wide else complex64
    return meet.part


def _operand_names(name: str, signature: inspect.Signature) -> tuple[str, ...]:
    """The parameters that are operands. Raises: ArgumentError where there are none."""
    found = []
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL or p.kind is p.VAR_KEYWORD:
            raise ArgumentError(
                f"{name}: an elementwise function has no *{p.name}; name its operands, as in "
                "lambda x, y: f(x, y)"
            )
        if p.kind is not p.KEYWORD_ONLY:
            found.append(p.name)
    if not found or len(found) > len(OPERANDS):
        raise ArgumentError(
            f"{name}: an elementwise function has 1..{len(OPERANDS)} operands, not {len(found)}"
        )
    return tuple(found)


# --- gradients that the user gives ---------------------------------------------------------------


class _Given(Rules):
    """The user's rules for a trace: traced, too, so that gradients are fused and differentiable."""

    def __init__(self, name: str, own: OwnRules, trace: Trace, k: int, static: Static) -> None:
        super().__init__(name, trace, k)
        self._own, self._static = own, static

    def _rule(self, i: int) -> Rule | None:
        out, inputs = self._trace.outputs[self._k], self._trace.inputs
        if inputs[i].dtype.kind not in FLOWS or out.dtype.kind not in FLOWS:
            return None
        g, r = Element("operand", out.dtype), Element("operand", out.dtype)
        own = self._own
        values = {**self._static, **dict(zip(own.operands, inputs, strict=True)), "g": g, "r": r}
        try:
            made = called(own.name, own.gradients, [values])[i]
        except GradientError as error:
            return Refused(error)
        if made is None:
            return None
        if not isinstance(made, Element) or made.dtype.kind not in FLOWS:
            what = f"a {made.dtype.name}" if isinstance(made, Element) else shown(made)
            text = (
                f"{own.name}: gradient gave {what} for {own.operands[i]}, which is a "
                f"{inputs[i].dtype.name}: a float made of g is wanted, or None"
            )
            return Refused(GradientError(text))
        form = needed(fitted(made, inputs[i].dtype), g, r, inputs)
        return Derivative(derivative_name(self._name, i, inputs), {False: form, True: form})


# --- the decorator -------------------------------------------------------------------------------


@overload
def elementwise(function: Callable[..., object], /) -> Elementwise: ...
@overload
def elementwise(
    *, name: str | None = None, dtypes: str | CastRule | None = None, result: DTypeLike = None,
    gradient: Gradients | None = None, examples: Examples | None = None,
) -> Callable[[Callable[..., object]], Elementwise]: ...  # fmt: skip
def elementwise(
    function: Callable[..., object] | None = None, /, *, name: str | None = None,
    dtypes: str | CastRule | None = None, result: DTypeLike = None,
    gradient: Gradients | None = None, examples: Examples | None = None,
) -> Elementwise | Callable[[Callable[..., object]], Elementwise]:  # fmt: skip
    """An op that is made of a Python function of numbers: fused, differentiable, on every device.

    `function`: called with numbers that stand for one element of each operand; it may use
    operators, comparisons, the elementwise functions of `dt`, `dt.where` and `dt.fori_loop`, and
    gives a number or a tuple of them. It is traced once for each combination of dtypes, so it does
    not see values: `if x > 0` is an error, which shows the line. Keyword-only parameters are
    static. `name`: for errors and kernels, the function's by default. `dtypes`: what operands are
    cast to: None as they are, "promoted" to the dtype in which they meet, "floating" to a float
    one, or a function from their dtypes to as many. `result`: a dtype that results are cast to.
    `gradient`: rules in place of those that follow from the function: a function of `g`, `r` and
    operands, as its parameters name them, that gives a gradient for each operand, or a dict from
    an operand's name to one. `examples`: for `dovetail test-op`, lists of operands, or a function
    without parameters that gives some.
    Shapes: operands are broadcast; numbers have none.
    Dtypes: a Python number takes the dtype in which the tensors meet; in the function dtypes
    promote as those of tensors do, and each step in float16 and bfloat16 is rounded.
    Gradient: by the rules of the functions it is made of, and again; through a `dt.fori_loop`
    forwards, in one loop for each operand.
    Raises: CaptureError for what needs values or a whole tensor, with the user's line; DTypeError,
    ShapeError, DeviceError as ops do; ArgumentError, ArgumentTypeError for its own parameters.

    >>> import dovetail as dt
    >>> @dt.elementwise
    ... def soft_step(x, width):
    ...     return 0.5 + 0.5 * dt.tanh(x / width)
    >>> soft_step(dt.asarray([-1.0, 0.0, 1.0], device="reference"), 0.5).tolist()
    [0.017986208200454712, 0.5, 0.9820138216018677]
    """
    if function is None:
        return functools.partial(
            _made, name=name, dtypes=dtypes, result=result, gradient=gradient, examples=examples
        )
    return _made(function, name, dtypes, result, gradient, examples)


def _made(
    function: Callable[..., object], name: str | None, dtypes: str | CastRule | None,
    result: DTypeLike, gradient: Gradients | None, examples: Examples | None,
) -> Elementwise:  # fmt: skip
    callable_("elementwise", function)
    called_so = name if name is not None else getattr(function, "__name__", "<lambda>")
    if not isinstance(called_so, str) or not called_so.isidentifier():
        if name is None and called_so == "<lambda>":
            called_so = "elementwise"
        else:
            raise ArgumentError(f"elementwise: name is a Python name, not {shown(called_so)}")
    if isinstance(dtypes, str) and dtypes not in _RULES:
        raise ArgumentError(
            f"{called_so}: dtypes is None, {', '.join(map(repr, _RULES))} or a function, not "
            f"{dtypes!r}"
        )
    if dtypes is not None and not isinstance(dtypes, str):
        callable_(called_so, dtypes, "dtypes")
    wanted = None if result is None else dtype(result, called_so)
    return Elementwise(function, called_so, dtypes, wanted, gradient, examples)
