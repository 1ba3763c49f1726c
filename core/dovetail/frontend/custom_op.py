"""`dt.custom_op`: an op made of a function of tensors or a kernel, with a rule for its gradient.

The function runs unrecorded. Its operands and results are checked against what the user declares of
the op, and gradients against the operands that they belong to.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, overload

from ..argument_checks import flag, shown
from ..argument_checks import function as callable_
from ..autograd.function import Function
from ..dtypes import dtype
from ..errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DovetailError,
    DTypeError,
    GradientError,
    ShapeError,
)
from ..functions.creation.constructors import empty
from ..functions.datatypes import DTypeLike
from ..graph.expr import Spec, spec
from ..tensor.promotion import plain_number
from ..tensor.tensor import Tensor, required, strided
from .gradient_rules import Gradients, UserRules

__all__ = ["custom_op"]

ResultSpec: TypeAlias = "tuple[Sequence[int], DTypeLike]"  # shape and dtype
ResultRule: TypeAlias = "Callable[..., ResultSpec | list[ResultSpec]]"
Examples: TypeAlias = "Sequence[object] | Callable[[], Sequence[object]]"
NAME_PATTERN = re.compile(r"[A-Za-z_]\w*([.:]+[A-Za-z_]\w*)*")


class CustomOp:
    """An op of a user: called as its function is, with tensors and other arguments."""

    def __init__(
        self,
        name: str,
        function: Callable[..., object],
        result: ResultRule | None,
        writes: bool,
        gradient: Gradients | None,
        examples: Examples | None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.name, self.function, self.examples = name, function, examples
        self._result, self._writes = result, writes
        self._signature = _read_signature(name, function)
        self.operands = tuple(self._signature.parameters)
        self._rules = None if gradient is None else UserRules(name, gradient, self.operands)
        methods = {"forward": staticmethod(self._forward), "backward": staticmethod(self._backward)}
        self._function_class: Any = type(name, (Function,), methods)

    def __repr__(self) -> str:
        return f"<custom op {self.name}({', '.join(self.operands)})>"

    def __reduce__(self) -> str:
        return str(getattr(self.function, "__qualname__", self.name))  # by its name, as a function

    def __call__(self, /, *args: object, **options: object) -> Any:
        """Return the function's tensor or tensors."""
        try:
            bound = self._bind(args, options)
        except TypeError as error:
            raise ArgumentTypeError(f"{self.name}: {error}") from None
        values = [strided(self.name, x) if isinstance(x, Tensor) else x for x in bound.values()]
        if self._rules is None and not self._writes:  # its ops have gradients
            return self._run(dict(zip(bound, values, strict=True)))
        return self._function_class.apply(tuple(bound), *values)

    def _bind(self, args: Sequence[object], options: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments by parameter, without the outputs.

        Raises: TypeError if they do not fit the parameters.
        """
        if not self._writes:
            bound = self._signature.bind(*args, **options)
            bound.apply_defaults()
            return dict(bound.arguments)
        names = self.operands
        written = len(names) - len(args) - len(options)
        if written < 1:
            raise TypeError(f"the first of {', '.join(names)} is the output and must not be passed")
        arguments = dict(zip(names[written:], args, strict=False)) | {**options}
        if {*arguments} != {*names[written:]}:
            raise TypeError(
                f"expected {', '.join(names[written:])}, got {', '.join(arguments) or 'nothing'}"
            )
        return {n: arguments[n] for n in names[written:]}

    def _run(self, arguments: Mapping[str, object]) -> Any:
        """Call the function; return its checked results, or the new outputs that it has written."""
        specs, several = self._result_specs(arguments)
        if self._writes:
            assert specs is not None
            outputs = tuple([empty(s.shape, dtype=s.dtype, device=s.device) for s in specs])
            if len(outputs) + len(arguments) != len(self.operands):
                raise ArgumentError(
                    f"{self.name}: result= describes {len(outputs)} outputs and the call passed "
                    f"{len(arguments)} operands, which must together be the parameters of the "
                    f"function, {', '.join(self.operands)}"
                )
            self.function(*outputs, *arguments.values())
            return outputs if several else outputs[0]
        parameters = self._signature.parameters
        options = {n: arguments[n] for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
        result = self.function(*[x for n, x in arguments.items() if n not in options], **options)
        if specs is not None:
            self._check_results(result, specs, several)
        return tuple(result) if isinstance(result, list) else result

    def _result_specs(self, arguments: Mapping[str, object]) -> tuple[list[Spec] | None, bool]:
        """Call `result=`; return its specs (None without it), and True if it returns a list."""
        if self._result is None:
            return None, False
        needs = inspect.signature(self._result).parameters
        result = self._result(*[arguments[n] for n in needs])
        several = isinstance(result, list)
        tensors = [x for x in arguments.values() if isinstance(x, Tensor)]
        if not tensors:
            raise DTypeError(f"{self.name}: at least one operand must be a tensor")
        specs = []
        for one in result if isinstance(result, list) else [result]:
            if not isinstance(one, tuple) or len(one) != 2:
                raise ArgumentError(
                    f"{self.name}: result= must return (shape, dtype) or a list of them, got "
                    f"{shown(one)}"
                )
            shape, d = one
            is_shape = isinstance(shape, (tuple, list))
            if not is_shape or not {type(plain_number(n)) for n in shape} <= {int}:
                raise ArgumentError(
                    f"{self.name}: the shape of result= must be a tuple of ints, got {shown(shape)}"
                )
            specs.append(spec(tuple(shape), dtype(d, self.name), tensors[0].device))
        return specs, several

    def _check_results(self, result: object, specs: Sequence[Spec], several: bool) -> None:
        """Check the function's results against `result=`.

        Raises: ArgumentError for another number of results; ShapeError, DTypeError or DeviceError
        for another spec.
        """
        if isinstance(result, (tuple, list)) is not several:
            raise ArgumentError(
                f"{self.name}: the function must return "
                f"{'a sequence of tensors' if several else 'one tensor'}, as result= says, got "
                f"{shown(result)}"
            )
        results = result if isinstance(result, (tuple, list)) else (result,)
        if len(results) != len(specs):
            raise ArgumentError(
                f"{self.name}: the function must return {len(specs)} results, as result= says, got "
                f"{len(results)}"
            )
        for k, (x, expected) in enumerate(zip(results, specs, strict=True)):
            which = f"{self.name}: result {k}" if several else f"{self.name}: the result"
            actual = strided(self.name, required(self.name, x))._expr.spec
            if actual is not expected:
                raise _spec_error(actual, expected)(
                    f"{which} must be {expected!r}, as result= says, got {actual!r}"
                )

    def _forward(self, ctx: Any, names: Sequence[str], *values: object) -> Any:
        """Run the op, and save in `ctx` the tensors that the gradient rule needs."""
        arguments = dict(zip(names, values, strict=True))
        result = self._run(arguments)
        results = result if isinstance(result, tuple) else (result,)
        needs = set() if self._rules is None else self._rules.needs
        tensors = {n: x for n, x in arguments.items() if isinstance(x, Tensor)}
        ctx.written = self.operands[: len(self.operands) - len(names)] if self._writes else ()
        saved = {n: x for n, x in tensors.items() if n in needs}
        saved_results = results if needs & {"r", *ctx.written} else ()
        ctx.save_for_backward(*saved.values(), *saved_results)
        ctx.names, ctx.saved_names = tuple(names), tuple(saved)
        ctx.several = isinstance(result, tuple)
        ctx.specs = {n: x._expr.spec for n, x in tensors.items()}
        ctx.others = {n: x for n, x in arguments.items() if n not in tensors}
        return result

    def _backward(self, ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return None for the names, a gradient or None for each value.

        Raises: GradientError without rules; DTypeError, ShapeError or DeviceError for a gradient
        that does not match its operand.
        """
        if self._rules is None:
            raise GradientError(
                f"{self.name}: has no gradient; pass gradient= to dt.custom_op, or call it with "
                "x.detach()"
            )
        kept = ctx.saved_tensors
        saved = dict(zip(ctx.saved_names, kept, strict=False))
        results = kept[len(saved) :]
        values = {**ctx.others, **saved, **dict(zip(ctx.written, results, strict=False))}
        values["g"] = gradients if ctx.several else gradients[0]
        values["r"] = (results if ctx.several else results[0]) if results else None
        by_operand = {
            n: None if part is None else self._checked_gradient(n, part, ctx.specs[n])
            for n, part in zip(ctx.specs, self._rules.gradients(values, [*ctx.specs]), strict=True)
        }
        return (None, *[by_operand.get(n) for n in ctx.names])

    def _checked_gradient(self, name: str, gradient: object, expected: Spec) -> Tensor:
        """Return `gradient` if it is a strided tensor of the spec `expected`.

        Raises: DTypeError for no tensor, LayoutError for another layout; ShapeError, DTypeError or
        DeviceError for another spec.
        """
        if not isinstance(gradient, Tensor):
            raise DTypeError(
                f"{self.name}: gradient must return a tensor for {name}, got {shown(gradient)}"
            )
        have = strided(self.name, gradient)._expr.spec
        if have is not expected:
            raise _spec_error(have, expected)(
                f"{self.name}: gradient must return {expected!r} for {name}, as the operand is, "
                f"got {have!r}"
            )
        return gradient


def _spec_error(actual: Spec, expected: Spec) -> type[DovetailError]:
    """Return the error class for specs that differ: by shape, else by dtype, else by device."""
    if actual.shape != expected.shape:
        return ShapeError
    return DTypeError if actual.dtype is not expected.dtype else DeviceError


def _read_signature(name: str, function: Callable[..., object]) -> inspect.Signature:
    """Return a function's signature. Raises: ArgumentError if parameters are unnamed or absent."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = inspect.Signature()
    kinds = {p.kind for p in signature.parameters.values()}
    if not kinds or kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        raise ArgumentError(
            f"{name}: the function of a custom op must have named parameters and no *args or "
            "**options; wrap it, as in lambda x, y: f(x, y)"
        )
    return signature


@overload
def custom_op(
    name: str,
    function: Callable[..., object],
    /,
    *,
    result: ResultRule | None = None,
    writes: bool = False,
    gradient: Gradients | None = None,
    examples: Examples | None = None,
) -> CustomOp: ...
@overload
def custom_op(
    name: str,
    /,
    *,
    result: ResultRule | None = None,
    writes: bool = False,
    gradient: Gradients | None = None,
    examples: Examples | None = None,
) -> Callable[[Callable[..., object]], CustomOp]: ...
def custom_op(
    name: str,
    function: Callable[..., object] | None = None,
    /,
    *,
    result: ResultRule | None = None,
    writes: bool = False,
    gradient: Gradients | None = None,
    examples: Examples | None = None,
) -> CustomOp | Callable[[Callable[..., object]], CustomOp]:
    """Make an op of a function of tensors or a kernel, with rules for its results and gradient.

    - `name`: the name of the op in errors and on the tape.
    - `function`: a function of tensors and other arguments, or a kernel; None gives a decorator.
    - `result`: a function of operands, which its parameters name; it gives (shape, dtype), or a
      list of them for several results, and the results must match. None accepts any.
    - `writes`: True calls the function with new tensors of `result` in front of the operands, and
      it writes them, as kernels do.
    - `gradient`: a function that gives a gradient, or None, for each operand that is a tensor; its
      parameters name what it gets: `g` the incoming gradient, `r` the result, operands by name; or
      a dict from an operand's name to a function for it alone. Without it, gradients flow through
      the ops of the function.
    - `examples`: for `dovetail test-op`, lists of operands, or a function without parameters that
      gives some.

    Shapes: those that the function takes; gradients have those of their operands.
    Dtypes: those that the function takes; gradients have those of their operands.
    Gradient: by the rule; higher ones, if the ops of the rule have gradients.
    Raises: ArgumentError, ArgumentTypeError for parameters; ShapeError, DTypeError for results that
    are not as `result` says; GradientError, ShapeError, DTypeError in `backward`, naming the
    operand, for a rule that gives another number of gradients, or one of another shape or dtype.
    See also: `elementwise`, `kernel`, `autograd.Function`.

    >>> import dovetail as dt
    >>> @dt.custom_op("cube", gradient=lambda g, x: g * 3 * x * x)
    ... def cube(x):
    ...     return x * x * x
    >>> x = dt.asarray(2.0).requires_grad_()
    >>> cube(x).backward()
    >>> x.grad.item()
    12.0
    """
    if not isinstance(name, str) or NAME_PATTERN.fullmatch(name) is None:
        raise ArgumentError(
            f"custom_op: name must be a name such as 'mine.cube', got {shown(name)}"
        )
    writes = flag(name, writes, "writes")
    if result is not None:
        callable_(name, result, "result")
    if writes and result is None:
        raise ArgumentError(
            f"{name}: writes=True requires result=, which returns the shape and dtype of the "
            "outputs"
        )

    def decorate(function: Callable[..., object]) -> CustomOp:
        """Return the op of a function. Raises: ArgumentError if the function is not callable."""
        callable_(name, function)
        return CustomOp(name, function, result, writes, gradient, examples)

    return decorate if function is None else decorate(function)
