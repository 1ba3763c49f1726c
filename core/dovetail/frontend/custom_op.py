"""`dt.custom_op`: an op of any function of tensors, or of a kernel, with a rule for its gradient.

The function runs unrecorded; what goes into it and comes out of it is checked against what is said
of the op, and gradients against the operands that they are of.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, overload

from ..arguments import flag, shown
from ..arguments import function as callable_
from ..autograd.function import Context, Function
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
from ..functions.creation import empty
from ..functions.datatypes import DTypeLike
from ..graph.expr import Spec, spec
from ..layout import Shape
from ..tensor.tensor import Tensor, required, strided
from .gradient_rules import Gradients, OwnRules

__all__ = ["custom_op"]

Facts: TypeAlias = "tuple[Sequence[int], DTypeLike]"  # of a result: its shape and dtype
FactsRule: TypeAlias = "Callable[..., Facts | list[Facts]]"
Examples: TypeAlias = "Sequence[object] | Callable[[], Sequence[object]]"
NAME = re.compile(r"[A-Za-z_]\w*([.:]+[A-Za-z_]\w*)*")


class CustomOp:
    """An op of one's own: called as its function is, of tensors and whatever else that takes."""

    def __init__(
        self, name: str, function: Callable[..., object], result: FactsRule | None, writes: bool,
        gradient: Gradients | None, examples: Examples | None,
    ) -> None:  # fmt: skip
        functools.update_wrapper(self, function)
        self.name, self.function, self.examples = name, function, examples
        self._result, self._writes = result, writes
        self._signature = _signature(name, function)
        self.operands = tuple(self._signature.parameters)
        self._rule = gradient
        self._own = None if gradient is None else OwnRules(name, gradient, self.operands)
        self._call: Any = type(
            name, (Function,), {"forward": staticmethod(self._forward),
                                "backward": staticmethod(self._backward)},
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<custom op {self.name}({', '.join(self.operands)})>"

    def __reduce__(self) -> str:
        return str(getattr(self.function, "__qualname__", self.name))  # by its name, as a function

    def __call__(self, /, *args: object, **options: object) -> Any:  # tensors, as the function's
        try:
            bound = self._bound(args, options)
        except TypeError as error:
            raise ArgumentTypeError(f"{self.name}: {error}") from None
        values = [strided(self.name, x) if isinstance(x, Tensor) else x for x in bound.values()]
        if self._own is None and not self._writes:
            return self._run(dict(zip(bound, values, strict=True)))  # by the gradients of its ops
        return self._call.apply(tuple(bound), *values)

    def _bound(self, args: Sequence[object], options: Mapping[str, object]) -> dict[str, object]:
        """What is given, by parameter. Those that are written come first, and are not given."""
        if not self._writes:
            bound = self._signature.bind(*args, **options)
            bound.apply_defaults()
            return dict(bound.arguments)
        names = self.operands
        rest = len(names) - len(args) - len(options)
        if rest < 1:
            raise TypeError(f"the first of {', '.join(names)} is written, and is not given")
        given = dict(zip(names[rest:], args, strict=False)) | {**options}
        if {*given} != {*names[rest:]}:
            raise TypeError(f"needs {', '.join(names[rest:])}, not {', '.join(given)}")
        return {n: given[n] for n in names[rest:]}

    # --- there

    def _run(self, given: Mapping[str, object]) -> Any:
        wanted, several = self._facts(given)
        if self._writes:
            assert wanted is not None
            made = tuple([empty(s.shape, dtype=s.dtype, device=s.device) for s in wanted])
            if len(made) + len(given) != len(self.operands):
                raise ArgumentError(
                    f"{self.name}: result= says that {len(made)} tensors are written, and the "
                    f"function has {', '.join(self.operands)}, of which {len(given)} were given"
                )
            self.function(*made, *given.values())
            return made if several else made[0]
        by_name = [n for n, p in self._signature.parameters.items() if p.kind is p.KEYWORD_ONLY]
        options = {n: given[n] for n in by_name}
        found = self.function(*[x for n, x in given.items() if n not in options], **options)
        if wanted is not None:
            self._check(found, wanted, several)
        return tuple(found) if isinstance(found, list) else found

    def _facts(self, given: Mapping[str, object]) -> tuple[list[Spec] | None, bool]:
        """The specs of results, as `result=` says, and whether there are several."""
        if self._result is None:
            return None, False
        asked = inspect.signature(self._result).parameters
        rule = self._result(*[given[n] for n in asked])
        several = isinstance(rule, list)
        tensors = [x for x in given.values() if isinstance(x, Tensor)]
        if not tensors:
            raise DTypeError(f"{self.name}: at least one operand has to be a tensor")
        made = []
        for one in rule if isinstance(rule, list) else [rule]:
            if not isinstance(one, tuple) or len(one) != 2:
                raise ArgumentError(
                    f"{self.name}: result= gives (shape, dtype), or a list of them, not "
                    f"{shown(one)}"
                )
            shape, d = one
            made.append(spec(_shape(self.name, shape), dtype(d, self.name), tensors[0].device))
        return made, several

    def _check(self, found: object, wanted: Sequence[Spec], several: bool) -> None:
        """Raises: ArgumentError, ShapeError, DTypeError where results are not as they should be."""
        if isinstance(found, (tuple, list)) is not several:
            raise ArgumentError(f"{self.name}: gave {shown(found)}, and result= says otherwise")
        every = found if isinstance(found, (tuple, list)) else (found,)
        if len(every) != len(wanted):
            raise ArgumentError(
                f"{self.name}: gave {len(every)} results, and result= says {len(wanted)}"
            )
        for k, (x, want) in enumerate(zip(every, wanted, strict=True)):
            what = f"{self.name}: result {k}" if several else f"{self.name}: the result"
            have = strided(self.name, required(self.name, x))._expr.spec
            if have is not want:
                raise _unlike(have, want)(f"{what} is {have!r}, and result= says {want!r}")

    def _forward(self, ctx: Context, names: Sequence[str], *values: object) -> Any:
        given = dict(zip(names, values, strict=True))
        made = self._run(given)
        every = made if isinstance(made, tuple) else (made,)
        asks = set() if self._own is None else self._own.asks
        written = self.operands[: len(self.operands) - len(names)] if self._writes else ()
        saved = {n: x for n, x in given.items() if n in asks and isinstance(x, Tensor)}
        results = every if asks & {"r", *written} else ()
        ctx.save_for_backward(*saved.values(), *results)
        own: Any = ctx
        own.saved_as, own.written, own.several = tuple(saved), written, isinstance(made, tuple)
        own.tensors = [n for n, x in given.items() if isinstance(x, Tensor)]
        own.specs = {n: x._expr.spec for n, x in given.items() if isinstance(x, Tensor)}
        own.others = {n: x for n, x in given.items() if not isinstance(x, Tensor)}
        own.names = tuple(names)
        return made

    # --- and back

    def _backward(self, ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if self._own is None:
            raise GradientError(
                f"{self.name}: has no gradient; give dt.custom_op a rule, gradient=, or call it "
                "with x.detach()"
            )
        kept = ctx.saved_tensors
        saved = dict(zip(ctx.saved_as, kept, strict=False))
        results = kept[len(saved) :]
        values = {**ctx.others, **saved, **dict(zip(ctx.written, results, strict=False))}
        values["g"] = gradients if ctx.several else gradients[0]
        values["r"] = (results if ctx.several else results[0]) if results else None
        found = self._own.gradients(values, ctx.tensors)
        parts = {
            n: None if part is None else self._fitting(n, part, ctx.specs[n])
            for n, part in zip(ctx.tensors, found, strict=True)
        }
        return (None, *[parts.get(n) for n in ctx.names])

    def _fitting(self, name: str, part: object, want: Spec) -> Tensor:
        """A gradient for the operand. Raises: DTypeError, ShapeError, DeviceError."""
        if not isinstance(part, Tensor):
            raise DTypeError(f"{self.name}: gradient gave {shown(part)} for {name}, not a tensor")
        have = strided(self.name, part)._expr.spec
        if have is not want:
            raise _unlike(have, want)(
                f"{self.name}: gradient gave {have!r} for {name}, which is {want!r}; they must be "
                "the same"
            )
        return part


def _unlike(have: Spec, want: Spec) -> type[DovetailError]:
    """The error for a tensor that is another one than is wanted."""
    if have.shape != want.shape:
        return ShapeError
    return DTypeError if have.dtype is not want.dtype else DeviceError


def _shape(name: str, given: object) -> Shape:
    if not isinstance(given, (tuple, list)) or not all(type(n) is int for n in given):
        raise ArgumentError(f"{name}: result= gives a shape, a tuple of ints, not {shown(given)}")
    return tuple(given)


def _signature(name: str, function: Callable[..., object]) -> inspect.Signature:
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        found = inspect.Signature()
    kinds = {p.kind for p in found.parameters.values()}
    if not kinds or kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        raise ArgumentError(
            f"{name}: a custom op needs parameters with names, by which gradient= asks for them; "
            "wrap it, as in lambda x, y: f(x, y)"
        )
    return found


# --- the decorator -------------------------------------------------------------------------------


@overload
def custom_op(
    name: str, function: Callable[..., object], /, *, result: FactsRule | None = None,
    writes: bool = False, gradient: Gradients | None = None, examples: Examples | None = None,
) -> CustomOp: ...  # fmt: skip
@overload
def custom_op(
    name: str, /, *, result: FactsRule | None = None, writes: bool = False,
    gradient: Gradients | None = None, examples: Examples | None = None,
) -> Callable[[Callable[..., object]], CustomOp]: ...  # fmt: skip
def custom_op(
    name: str, function: Callable[..., object] | None = None, /, *,
    result: FactsRule | None = None, writes: bool = False, gradient: Gradients | None = None,
    examples: Examples | None = None,
) -> CustomOp | Callable[[Callable[..., object]], CustomOp]:  # fmt: skip
    """An op of a function of tensors or of a kernel, with rules for its results and its gradient.

    `name`: what errors and the tape call it. `function`: of tensors and whatever else; without it
    this is a decorator. `result`: a rule of the operands that its parameters name, which gives
    (shape, dtype), or a list of them for several results: what comes out must be so. `writes`: the
    function is called with new tensors of `result` in front of the operands, and writes them, as
    kernels do. `gradient`: a rule that gives a gradient for each operand that is a tensor, or None
    for one; its parameters say what it gets: `g` the gradient that comes in, `r` the result,
    operands by name; or a dict from an operand's name to a rule of its own. Without it gradients
    flow through what the function does. `examples`: for `dovetail test-op`, lists of operands, or
    a function without parameters that gives some.
    Shapes: those that the function takes; gradients have those of their operands.
    Dtypes: the same.
    Gradient: as the rule says; again, if the rule is made of what has gradients.
    Raises: ArgumentError, ArgumentTypeError for parameters; ShapeError, DTypeError for results that
    are not as `result` says; GradientError, ShapeError, DTypeError in `backward`, naming the
    operand, for a rule that gives another number of gradients, or one of another shape or dtype.

    >>> import dovetail as dt
    >>> @dt.custom_op("cube", gradient=lambda g, x: g * 3 * x * x)
    ... def cube(x):
    ...     return x * x * x
    >>> x = dt.asarray(2.0, device="reference").requires_grad_()
    >>> cube(x).backward()
    >>> x.grad.item()
    12.0
    """
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise ArgumentError(f"custom_op: name is a name, such as 'mine.cube', not {shown(name)}")
    writes = flag(name, writes, "writes")
    if result is not None:
        callable_(name, result, "result")
    if writes and result is None:
        raise ArgumentError(f"{name}: writes=True needs result=, which says what is to be written")

    def made(function: Callable[..., object]) -> CustomOp:
        callable_(name, function)
        return CustomOp(name, function, result, writes, gradient, examples)

    return made if function is None else made(function)
