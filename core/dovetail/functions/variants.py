"""The three forms of functions: what they return, `out=`, and `x.name_()`.

A function that makes new memory has the parameter `out` in its signature, and `into` above it,
which writes the result there; the function itself knows nothing of that. `in_place` makes the
method that writes a result of its own shape back into the tensor, `drawn` that which fills one
with random numbers. (Rows of the op table have these forms from `op_functions` and `verbs`.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache, partial, wraps
from importlib import import_module
from inspect import Parameter, getdoc, signature
from typing import Any, ParamSpec, TypeVar, cast, overload

from ..arguments import Widen, sequence
from ..compat.keywords import Options, Parameters, again, binds, parameters, retold
from ..errors import ArgumentError, DovetailError
from ..tensor.fields import expr_of
from ..tensor.tensor import Tensor, required, strided
from ..tensor.writes import (
    require_fits_out,
    require_written_in_place,
    write_node_out,
    write_result,
)
from .graph_cache import Remade
from .half_precision import call_in_float32, holds_half, widen_halves

P = ParamSpec("P")
R = TypeVar("R")
Function = Callable[..., Any]

MADE = ("dtype", "device")  # what a function that makes tensors of nothing takes from `out`
KEYED = ("generator",)  # by name alone
# Functions whose results have the shape and dtype of their first operand: where they are.
IN_PLACE: dict[str, str] = {
    name: home
    for home, names in {
        "creation.constructors": "tril triu",
        "elementwise.composed": "fmax fmin fmod logaddexp2 unwrap",
        "elementwise.decompose": "nan_to_num",
        "elementwise.op_functions": "softmax log_softmax",
        "elementwise.special_functions": "expit",
        "reductions.cumulative": "cumulative_sum cumulative_prod cumulative_logsumexp",
        "reductions.nan_functions": "nancumsum nancumprod",
        "shape.copies": "roll",
        "shape.manipulation": "flip",
        "shape.orientation": "fliplr flipud",
        "sorting.stable_sort": "sort",
    }.items()
    for name in names.split()
}
# Those of `dt.random` of which each element is drawn by itself (`gamma_` and `beta_` are rows).
DRAWN: dict[str, str] = {
    name: home
    for home, names in {
        "random": "uniform normal integers",
        "random.samplers": "bernoulli exponential laplace truncated_normal",
        "random.discrete_samplers": "binomial poisson",
    }.items()
    for name in names.split()
}


@overload
def remade(composed: Callable[P, R], /, *, widen: Widen = True) -> Callable[P, R]: ...
@overload
def remade(*, widen: Widen) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def remade(composed: Function | None = None, /, *, widen: Widen = True) -> Any:
    """`into`, of a function whose graph depends on shapes, dtypes and options: it is noted."""
    if composed is None:
        return partial(remade, widen=widen)
    return into(composed, widen=widen, noted=Remade(widen_halves(composed, widen)))


@overload
def made_again(composed: Callable[P, R], /, *, widen: Widen = True) -> Callable[P, R]: ...
@overload
def made_again(*, widen: Widen) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def made_again(composed: Function | None = None, /, *, widen: Widen = True) -> Any:
    """`remade`, of a function that makes tensors of nothing."""
    if composed is None:
        return partial(made_again, widen=widen)
    return into(composed, widen=widen, noted=Remade(widen_halves(composed, widen), makes=True))


@overload
def into(
    composed: Callable[P, R], /, *, widen: Widen = True, noted: Remade | None = None
) -> Callable[P, R]: ...
@overload
def into(*, widen: Widen) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def into(
    composed: Function | None = None, /, *, widen: Widen = True, noted: Remade | None = None
) -> Any:
    """`arguments.named`, of a function whose result goes into `out` where that is given.

    `composed` has the parameter `out` for those who read its signature, and never gets it.
    `noted`: what knows how its results are made, and widens halves beneath its cache; see `remade`.
    """
    if composed is None:
        return partial(into, widen=widen)
    function, name, widens = composed, composed.__name__, widen and noted is None

    def call(*args: Any, out: Any = None, **options: Any) -> Any:
        if out is not None:
            options = _as_out(out, parameters(function), options)
        try:
            if noted is not None:
                found = noted.given(args, options)
            elif widens and holds_half(args, options):
                found = call_in_float32(function, args, options, widen)
            else:
                found = function(*args, **options)
        except DovetailError as error:
            if name not in str(error):
                error.args = (f"{name}: {error}", *error.args[1:])
            raise
        except TypeError:
            if binds(function, args, options):
                raise
        else:
            return found if out is None else _written(name, found, out)
        given = options if out is None else {**options, "out": out}
        return again(call, function, args, given)

    call.__code__ = call.__code__.replace(co_name=name)  # what tracebacks show
    cast(Any, call).widen = widen
    return wraps(function)(call)


def _as_out(out: object, takes: Parameters, options: Options) -> Options:
    """For what makes tensors of nothing: with the dtype and the device of `out`, if none come."""
    if not isinstance(out, Tensor) or "device" not in takes:
        return options
    return {**{n: getattr(out, n) for n in MADE if n in takes}, **options}


def made_into(
    function: Callable[..., Tensor], out: Any, scope: Options, fills: bool
) -> Tensor:  # fmt: skip
    """What a maker with many spellings gives for its locals, in `out` where that is a tensor.

    `fills`: False leaves what is in `out`, which has to fit. (Makers take their parameters apart
    themselves, `into` would be half of the time of `dt.zeros`.)
    """
    name = function.__name__
    if out is None:
        return retold(function, scope)
    if scope.get("allocator") is not None:
        raise ArgumentError(f"{name}: out= has its memory; allocator= is for what is new")
    given = _as_out(out, parameters(function), {n: x for n, x in scope.items() if x is not None})
    found = retold(function, {**scope, **given})
    if fills:
        _written(name, found, out)
    else:
        require_fits_out(name, out, expr_of(found))
    given_back: Tensor = out
    return given_back


def _written(name: str, found: Any, out: Any) -> Any:
    """A result, or each of several, written into `out`, which comes back."""
    if not isinstance(found, tuple):
        return write_node_out(name, out, [strided(name, found)._expr])
    outs: Sequence[Any] = sequence(name, out, "out", "tensors, one for each result")
    if len(outs) != len(found):
        raise ArgumentError(f"{name}: out= are {len(outs)} tensors, and there are {len(found)}")
    for y, x in zip(outs, found, strict=True):  # all of them before any is written
        require_fits_out(name, y, expr_of(strided(name, x)))
    for y, x in zip(outs, found, strict=True):
        write_node_out(name, y, [expr_of(x)])
    named = hasattr(found, "_fields")
    return type(found)(*outs) if named else tuple(outs)


# --- in place -------------------------------------------------------------------------------------

IN_PLACE_SAYS = """This tensor, after `dt.{0}` of it has been written into its memory.

The result is cast to this tensor's dtype, where that loses no kind of number. Every view of the
memory sees it.
Raises: as `dt.{0}`; ReadOnlyError; GradientError for a leaf that requires one.

`dt.{0}`:
{1}"""
DRAWN_SAYS = """This tensor, after numbers by `dt.random.{0}` have been written into its memory.

Shape, dtype and device are this tensor's; parameters may be given by place, too. Every view of
the memory sees them.
Raises: as `dt.random.{0}`; ReadOnlyError; GradientError for a leaf that requires one.

`dt.random.{0}`:
{1}"""


@cache
def in_place(function: Function) -> Function:
    """The method that writes the result of a function into its first operand."""
    name = function.__name__

    def method(x: Tensor, *args: object, **options: object) -> Tensor:
        require_written_in_place(name, required(name, x))
        return write_result(name, x, [function(x, *args, **options)])

    return _described(method, function, name, IN_PLACE_SAYS, ("out",))


@cache
def drawn(function: Function) -> Function:
    """The method that fills a tensor with what a function of `dt.random` draws."""
    name = function.__name__
    fixed = ("shape", *MADE, "out")
    taken = [n for n in signature(function).parameters if n not in (*fixed, *KEYED)]

    def method(x: Tensor, *args: object, **options: object) -> Tensor:
        require_written_in_place(name, required(name, x))
        if len(args) > len(taken):
            raise ArgumentError(f"{name}_: takes {len(taken)} by place, not {len(args)}")
        for n, value in zip(taken, args, strict=False):
            options[n] = value
        made = function(shape=x.shape, dtype=x.dtype, device=x.device, **options)
        return write_result(name, x, [made])

    first = Parameter("x", Parameter.POSITIONAL_ONLY, annotation="Tensor")
    return _described(method, function, name, DRAWN_SAYS, fixed, first)


BY_PLACE = Parameter.POSITIONAL_OR_KEYWORD


def _described(
    method: Function, function: Function, name: str, says: str, without: Sequence[str],
    *before: Parameter,
) -> Function:  # fmt: skip
    """A method under its name, with the signature that it takes."""
    method.__name__ = method.__qualname__ = f"{name}_"
    method.__code__ = method.__code__.replace(co_name=f"{name}_", co_qualname=f"{name}_")
    method.__doc__ = says.format(name, getdoc(function))
    old = signature(function)
    kept = [p for n, p in old.parameters.items() if n not in without]
    if before:
        kept = [p if p.name in KEYED else p.replace(kind=BY_PLACE) for p in kept]
    made: Any = method
    made.__wrapped__ = function
    made.__signature__ = old.replace(parameters=[*before, *kept], return_annotation="Tensor")
    return method


def methods(homes: Collection[str]) -> dict[str, Function]:
    """The forms in place of functions in these modules, by their names."""
    named = [f"{n}_" for table in (IN_PLACE, DRAWN) for n, home in table.items() if home in homes]
    return {n: form for n in named if (form := method_of(n)) is not None}


def method_of(name: str) -> Function | None:
    """The form in place of this name, "softmax_" or "normal_"; None where there is none."""
    plain = name[:-1]
    if not name.endswith("_"):
        return None
    if plain in IN_PLACE:
        return in_place(getattr(import_module(f".{IN_PLACE[plain]}", __package__), plain))
    if plain in DRAWN:
        return drawn(getattr(import_module(f".{DRAWN[plain]}", __package__), plain))
    return None
