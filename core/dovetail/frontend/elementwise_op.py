"""`dt.elementwise`: an op like those of the table, made of a Python function of numbers.

The function is traced once for each combination of dtypes, and the trace becomes the expression of
an op. So the op broadcasts, is deferred, fused, captured and differentiated as every row is, with
the bits of the same functions on tensors.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsIndex, TypeAlias, overload

import numpy as np

from ..argument_checks import function as callable_
from ..argument_checks import shown
from ..autograd.tape import OPERAND_NAMES
from ..compat.keywords import MISSING
from ..decorated_functions import reduce_decorated
from ..device_class import device
from ..dtypes import DType, bool_, complex64, complex128, dtype, float64
from ..engine.traced_numbers import TracedFloat
from ..errors import ArgumentError, ArgumentTypeError, DTypeError, GradientError
from ..functions.datatypes import DTypeLike
from ..graph.expr import spec
from ..identity_cache import IdentityCache
from ..insight.explain import explain
from ..ops import dtype_rules
from ..ops.gradient import Rule
from ..ops.table import Op
from ..tensor.c_fields import expr_of, is_strided
from ..tensor.host import allocate_leaf
from ..tensor.primitives import apply, apply_cached, in_place
from ..tensor.promotion import ARRAY_TYPES, PYTHON_NUMBERS, Operand, as_operand
from ..tensor.tensor import Tensor, create_tensor
from .gradient_rules import Gradients, UserRules
from .lower_trace import FunctionTrace, call_traced, trace_function
from .trace_gradients import (
    DIFFERENTIABLE_KINDS,
    LazyRules,
    TracedRule,
    gradient_trace,
    has_gradient,
    make_op,
    raising_rule,
    rule_name,
)
from .traced_value import REFERENCE_DEVICE, TracedValue, fit_dtype

__all__ = ["elementwise"]

OperandKind: TypeAlias = "DType | type"  # of an operand: its dtype, or the type of a Python number
CastRule: TypeAlias = Callable[..., Sequence[DTypeLike]]
Examples: TypeAlias = "Sequence[object] | Callable[[], Sequence[object]]"
StaticOptions: TypeAlias = Mapping[str, object]

_NUMPY_OPERANDS = (*ARRAY_TYPES, np.generic)
# by the function, and the specs or types of one or two operands
_recent_ops: IdentityCache[Op] = IdentityCache()
_CAST_RULES = {"promoted": dtype_rules.same("biufc"), "floating": dtype_rules.analytic}


class Elementwise:
    """An op of a function of numbers: called with tensors and numbers, it returns a tensor.

    Positional parameters are operands. Keyword-only ones are static: each value of them is a new
    trace.
    """

    holds_no_tensors = True  # `dt.jit` need not search it

    def __init__(
        self,
        function: Callable[..., object],
        name: str,
        dtypes: str | CastRule | None,
        result: DType | None,
        gradient: Gradients | None,
        examples: Examples | None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function, self.name, self.examples = function, name, examples
        self._dtypes, self._result = dtypes, result
        self._signature = inspect.signature(function)
        self.operands = _operand_names(name, self._signature)
        self.options = tuple(n for n in self._signature.parameters if n not in self.operands)
        self._rules = None
        if gradient is not None:
            self._rules = UserRules(name, gradient, self.operands, self.options)
        self._ops: dict[object, tuple[tuple[Op, ...], bool]] = {}  # by dtypes and static options

    def __repr__(self) -> str:
        return f"<elementwise {self.name}({', '.join(self.operands)})>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        if self._rules is not None or self.examples is not None or callable(self._dtypes):
            return str(getattr(self.function, "__qualname__", self.name))  # lambdas have no pickles
        options = self.name, self._dtypes, self._result, None, None
        return reduce_decorated(self, protocol, *options)

    def __call__(
        self,
        x1: Operand = MISSING,
        x2: Operand = MISSING,
        /,
        *more: Operand,
        out: Tensor | None = None,
        **static: object,
    ) -> Any:
        """Return a tensor, or a tuple of tensors if the function returns a tuple."""
        if not more and not static:
            result = apply_cached(_recent_ops, self, x1, x2, out)
            if result is not None:
                return result
        args = tuple([x for x in (x1, x2) if x is not MISSING]) + more
        operands, ops, several = self._resolve(args, static)
        if not several:
            if not static and operands is args:
                self._remember(args, ops[0])
            return apply(ops[0], operands, None, out)
        if out is not None:
            raise ArgumentError(
                f"{self.name}: out= is not supported for a function that returns {len(ops)} tensors"
            )
        return tuple([apply(op, operands) for op in ops])

    def _remember(self, args: Sequence[object], op: Op) -> None:
        """Cache the op of one or two operands if the first is a tensor."""
        kinds = [expr_of(a).spec if is_strided(a) else type(a) for a in args]
        if is_strided(args[0]) and len(kinds) <= 2:
            _recent_ops.put(self, kinds[0], kinds[1] if len(kinds) == 2 else None, op)

    def in_place(self, x: Tensor, /, *others: Operand, **static: object) -> Tensor:
        """Write the result into the memory of `x`, which all its views see, and return `x`."""
        operands, ops, several = self._resolve((x, *others), static)
        if several:
            raise ArgumentError(
                f"{self.name}: a function used in place must return one tensor, got {len(ops)}"
            )
        return in_place(ops[0], x, *operands[1:])

    def text(self, *dtypes: DTypeLike, **static: object) -> str:
        """Return the kernel IR for operands of these dtypes.

        One dtype is that of all operands; none is float32.
        """
        count = len(self.operands)
        wanted = dtypes if len(dtypes) == count else [*dtypes, "float32"][:1] * count
        where = device(REFERENCE_DEVICE)
        operands = [
            create_tensor(allocate_leaf(spec((4,), dtype(d, self.name), where))) for d in wanted
        ]
        result: Any = self(*operands, out=None, **static)
        launches = explain(*(result if isinstance(result, tuple) else (result,))).launches
        return "\n\n".join(step.text for step in launches)

    def _resolve(
        self, args: Sequence[object], static: StaticOptions
    ) -> tuple[Sequence[object], tuple[Op, ...], bool]:
        """Convert NumPy operands; return all, the cached ops of the results, True for several."""
        if len(args) != len(self.operands) or any(n not in self.options for n in static):
            args, static = self._bind(args, static)
        if not static:
            key: object = tuple([a.dtype if is_strided(a) else type(a) for a in args])
            entry = self._ops.get(key)
            if entry is not None:
                return args, *entry
        if any(isinstance(a, _NUMPY_OPERANDS) for a in args):
            args = [self._from_numpy(a, args) for a in args]
        kinds = tuple([self._kind(a) for a in args])
        key = (kinds, tuple(sorted(static.items()))) if static else kinds
        try:
            entry = self._ops.get(key)
        except TypeError:
            raise ArgumentTypeError(
                f"{self.name}: keyword arguments are static and must be hashable, got "
                + ", ".join(f"{n}={shown(v)}" for n, v in static.items())
            ) from None
        if entry is None:
            entry = self._ops[key] = self._make_ops(kinds, static)
        return args, *entry

    def _bind(
        self, args: Sequence[object], static: StaticOptions
    ) -> tuple[Sequence[object], StaticOptions]:
        """Return (operands in order, the passed static options by name).

        Raises: ArgumentTypeError if the arguments do not fit the signature.
        """
        try:
            bound = self._signature.bind(*args, **static)
        except TypeError as error:
            raise ArgumentTypeError(f"{self.name}: {error}") from None
        bound.apply_defaults()
        values = bound.arguments
        options = [n for n in values if n not in self.operands and n in static]
        return [values[n] for n in self.operands], {n: values[n] for n in options}

    def _from_numpy(self, a: object, operands: Sequence[object]) -> object:
        """Return a NumPy scalar as a Python number, an array as a tensor, others unchanged."""
        if isinstance(a, np.generic):
            return a.item()
        return as_operand(self.name, a, operands) if isinstance(a, ARRAY_TYPES) else a

    def _kind(self, a: object) -> OperandKind:
        """Return a tensor's dtype or a number's Python type. Raises: DTypeError for others."""
        if isinstance(a, Tensor):
            return a.dtype
        if type(a) is TracedFloat:
            return float
        for kind in PYTHON_NUMBERS:
            if isinstance(a, kind):
                return kind
        raise DTypeError(
            f"{self.name}: operands must be tensors, NumPy arrays, lists or numbers, got "
            f"{type(a).__name__}; pass static values by keyword"
        )

    def _make_ops(
        self, kinds: tuple[OperandKind, ...], static: StaticOptions
    ) -> tuple[tuple[Op, ...], bool]:
        """Trace the function; return an op for each result, and True if it returns a tuple."""
        inputs = [TracedValue("operand", d) for d in self._casts(kinds)]
        trace = trace_function(self.name, self.function, inputs, **static)
        if self._result is not None:
            outputs = [fit_dtype(x, self._result) for x in trace.outputs]
            trace = FunctionTrace(inputs, outputs, trace.returns_tuple)
        parameters = self._signature.parameters
        options = {n: parameters[n].default for n in self.options} | {**static}
        ops = []
        for k in range(len(trace.outputs)):
            name = f"{self.name}_{k}" if trace.returns_tuple else self.name
            rules = None
            if self._rules is not None:
                derive = functools.partial(_trace_user_rule, self._rules, name, trace, k, options)
                rules = LazyRules(derive, len(inputs))
            ops.append(make_op(name, trace, k, rules))
        return tuple(ops), trace.returns_tuple

    def _casts(self, kinds: tuple[OperandKind, ...]) -> Sequence[DType]:
        """Return the dtypes of the casts; numbers take the common one.

        Raises: DTypeError if operands have no common dtype, or `dtypes=` does not return one dtype
        for each operand.
        """
        rule = self._dtypes
        if isinstance(rule, str):
            return _CAST_RULES[rule](self.name, kinds, None)[0]
        weak = [k for k in kinds if not isinstance(k, DType) and k is not bool]
        common = dtype_rules.common(self.name, kinds, allowed="biufc") if weak else bool_
        casts = [_dtype_of(k, kinds, common) for k in kinds]
        if rule is None:
            return casts
        wanted = rule(*casts)
        if not isinstance(wanted, (list, tuple)) or len(wanted) != len(casts):
            raise DTypeError(
                f"{self.name}: dtypes= must return {len(casts)} dtypes, one per operand, got "
                f"{shown(wanted)}"
            )
        return [dtype(d, self.name) for d in wanted]


def _dtype_of(kind: OperandKind, kinds: Sequence[OperandKind], common: DType) -> DType:
    """Return an operand's dtype; `common`, of all operands, decides for a Python int or float."""
    if isinstance(kind, DType):
        return kind
    if kind is bool:
        return bool_
    if kind is complex:  # operators make a tensor of a complex number
        is_double = any(k.part is float64 for k in kinds if isinstance(k, DType))
        return complex128 if is_double else complex64
    return common.part


def _operand_names(name: str, signature: inspect.Signature) -> tuple[str, ...]:
    """Return the names of the positional parameters. Raises: ArgumentError for *args or none."""
    operands = []
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL or p.kind is p.VAR_KEYWORD:
            raise ArgumentError(
                f"{name}: an elementwise function cannot have *{p.name}; name its operands, as in "
                "lambda x, y: f(x, y)"
            )
        if p.kind is not p.KEYWORD_ONLY:
            operands.append(p.name)
    if not operands or len(operands) > len(OPERAND_NAMES):
        raise ArgumentError(
            f"{name}: an elementwise function must have 1 to {len(OPERAND_NAMES)} operands, got "
            f"{len(operands)}"
        )
    return tuple(operands)


def _trace_user_rule(
    rules: UserRules, name: str, trace: FunctionTrace, k: int, static: StaticOptions, i: int
) -> Rule | None:
    """Return the user's rule for output `k` and operand `i`, traced; None, or one that raises."""
    if not has_gradient(trace, k, i):
        return None
    operand_dtype, dtype_out = trace.inputs[i].dtype, trace.outputs[k].dtype
    g, r = TracedValue("operand", dtype_out), TracedValue("operand", dtype_out)
    values = {**static, **dict(zip(rules.operands, trace.inputs, strict=True)), "g": g, "r": r}
    try:
        gradient = call_traced(rules.op, rules.gradients, [values])[i]
    except GradientError as error:
        return raising_rule(str(error))
    if gradient is None:
        return None
    if not isinstance(gradient, TracedValue) or gradient.dtype.kind not in DIFFERENTIABLE_KINDS:
        is_traced = isinstance(gradient, TracedValue)
        what = f"a {gradient.dtype.name}" if is_traced else shown(gradient)
        return raising_rule(
            f"{rules.op}: gradient must return a float computed from g, or None, for "
            f"{rules.operands[i]}, which is a {operand_dtype.name}, got {what}"
        )
    form = gradient_trace(fit_dtype(gradient, operand_dtype), g, r, trace)
    return TracedRule(rule_name(name, trace, i), {False: form, True: form})


@overload
def elementwise(function: Callable[..., object], /) -> Elementwise: ...
@overload
def elementwise(
    *,
    name: str | None = None,
    dtypes: str | CastRule | None = None,
    result: DTypeLike = None,
    gradient: Gradients | None = None,
    examples: Examples | None = None,
) -> Callable[[Callable[..., object]], Elementwise]: ...
def elementwise(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str | None = None,
    dtypes: str | CastRule | None = None,
    result: DTypeLike = None,
    gradient: Gradients | None = None,
    examples: Examples | None = None,
) -> Elementwise | Callable[[Callable[..., object]], Elementwise]:
    """Make an op of a Python function of numbers: fused, differentiable, on every device.

    The function is traced once for each combination of dtypes, so it does not see values: `if x >
    0` is an error, which shows the line.

    - `function`: a function of numbers that stand for one element of each operand. It may use
      operators, comparisons, the elementwise functions of `dt`, `dt.where` and `dt.fori_loop`, and
      returns a number or a tuple of numbers. Its keyword-only parameters are static. None gives a
      decorator.
    - `name`: the name for errors and kernels; None takes the function's.
    - `dtypes`: what operands are cast to: None leaves them, "promoted" is their common dtype,
      "floating" a float one; or a function from their dtypes to as many.
    - `result`: a dtype that results are cast to.
    - `gradient`: rules in place of those that follow from the function: a function of `g`, `r` and
      operands, as its parameters name them, that gives a gradient for each operand, or a dict from
      an operand's name to a function.
    - `examples`: for `dovetail test-op`, lists of operands, or a function without parameters that
      gives some.

    Shapes: operands are broadcast; numbers have none.
    Dtypes: a Python number takes the common dtype of the tensors; in the function dtypes promote as
    those of tensors do, and each step in float16 and bfloat16 is rounded.
    Gradient: by the rules of the functions it is made of, also of higher order; through a
    `dt.fori_loop` forwards, in one loop for each operand.
    Raises: CaptureError for what needs values or a whole tensor, with the user's line; DTypeError,
    ShapeError, DeviceError as ops do; ArgumentError, ArgumentTypeError for its own parameters.
    See also: `custom_op`, `kernel`, `vectorize`.

    >>> import dovetail as dt
    >>> @dt.elementwise
    ... def soft_step(x, width):
    ...     return 0.5 + 0.5 * dt.tanh(x / width)
    >>> soft_step(dt.asarray([-1.0, 0.0, 1.0]), 0.5).tolist()
    [0.017986208200454712, 0.5, 0.9820138216018677]
    """

    def decorate(function: Callable[..., object]) -> Elementwise:
        """Return the op of a function. Raises: ArgumentError for an invalid name or `dtypes`."""
        callable_("elementwise", function)
        called = name if name is not None else getattr(function, "__name__", "<lambda>")
        if name is None and called == "<lambda>":
            called = "elementwise"
        if not isinstance(called, str) or not called.isidentifier():
            raise ArgumentError(
                f"elementwise: name must be a Python identifier, got {shown(called)}"
            )
        if isinstance(dtypes, str) and dtypes not in _CAST_RULES:
            raise ArgumentError(
                f"{called}: dtypes must be None, {', '.join(map(repr, _CAST_RULES))} or a "
                f"function, got {dtypes!r}"
            )
        if dtypes is not None and not isinstance(dtypes, str):
            callable_(called, dtypes, "dtypes")
        result_dtype = None if result is None else dtype(result, called)
        return Elementwise(function, called, dtypes, result_dtype, gradient, examples)

    return decorate if function is None else decorate(function)
