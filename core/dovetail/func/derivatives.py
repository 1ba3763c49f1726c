"""Derivatives of functions, as functions: `dt.func.grad`, `jacrev`, `hessian`, ...

They compose, with each other and with `vmap`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeAlias

from ..arguments import flag, integer, integers, named, shown
from ..arguments import function as callable_
from ..autograd.engine import detach
from ..autograd.transforms import inputs_of, is_deep, jvp, linearize, recorded, vjp
from ..capture.pytree import Flat, flattened, rebuilt
from ..errors import ArgumentError, ArgumentTypeError, DTypeError
from ..tensor.tensor import Tensor
from . import at_points
from .at_points import Nested, by_columns, by_rows, floats, gradients, scalar

__all__ = [
    "grad", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "value_and_grad", "vjp",
]  # fmt: skip

P = ParamSpec("P")
ArgNums: TypeAlias = int | Sequence[int]
Value: TypeAlias = Any  # what a function gives, and gradients: containers like its arguments

# --- gradients ------------------------------------------------------------------------------------


@named(widen=False)
def grad(
    function: Callable[P, Value], argnums: ArgNums = 0, *, has_aux: bool = False
) -> Callable[P, Value]:
    """A function that gives the gradient of `function`, which gives a tensor of one element.

    `argnums`: the argument that the gradient is of, or several of them: then a tuple comes. It is a
    tensor, or a container of them, and the gradient is the same. `has_aux`: True where `function`
    gives a pair, of which the second is not differentiated, but comes back, too: (gradient, aux).
    Gradient: it has gradients itself, so that it can be applied again.
    Shapes: those of the arguments.
    Dtypes: floats.
    Raises: ArgumentTypeError for what is no function or has no tensor there, GradientError for more
    than one element.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0], device="reference")
    >>> dt.func.grad(lambda x: (x**3).sum())(x).tolist()
    [3.0, 12.0]
    """
    both = _with_value("grad", function, argnums, has_aux)

    def gradient(*args: P.args, **options: P.kwargs) -> Any:
        value, found = both(*args, **options)
        return (found, value[1]) if has_aux else found

    return gradient


@named(widen=False)
def value_and_grad(
    function: Callable[P, Value], argnums: ArgNums = 0, *, has_aux: bool = False
) -> Callable[P, Value]:
    """A function that gives what `function` does, and its gradient: as `grad`, of one run.

    `argnums`, `has_aux`: as for `dt.func.grad`. With `has_aux` the value is the pair.
    Gradient: it has gradients itself.
    Shapes: those of the arguments.
    Dtypes: floats.
    Raises: as `dt.func.grad`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0], device="reference")
    >>> value, gradient = dt.func.value_and_grad(lambda x: (x * x).sum())(x)
    >>> value.item(), gradient.tolist()
    (5.0, [2.0, 4.0])
    """
    return _with_value("value_and_grad", function, argnums, has_aux)


def _with_value(
    name: str, function: Callable[..., Any], argnums: ArgNums, has_aux: bool
) -> Callable[..., Any]:
    callable_(name, function)
    has_aux, numbers = flag(name, has_aux, "has_aux"), _numbers(name, argnums)

    def both(*args: object, **options: object) -> tuple[Any, Any]:
        flat, inputs = _chosen(name, args, numbers)
        taped = inputs_of(inputs)
        given = _replaced(args, numbers, rebuilt(flat, taped))
        made = recorded(lambda: function(*given, **options), ())
        value, aux = _split(name, made) if has_aux else (made, None)
        value = scalar(name, value)
        deep = is_deep([value], taped)
        found = gradients(value, taped, deep)
        whole = rebuilt(flat, found)
        if not deep:
            value, aux = detach(value), _detached(aux)
        result = (value, aux) if has_aux else value
        return result, whole[0] if isinstance(argnums, int) else whole

    return both


def _numbers(name: str, argnums: ArgNums) -> tuple[int, ...]:
    if isinstance(argnums, int):
        return (integer(name, argnums, "argnums"),)
    return integers(name, argnums, "argnums")


def _chosen(name: str, args: Sequence[object], numbers: Sequence[int]) -> tuple[Flat, list[Tensor]]:
    """The containers at these places, and the tensors in them."""
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise ArgumentError(f"{name}: argnums has {n}, and there are {len(args)} arguments")
    flat = flattened(tuple([args[n] for n in numbers]))
    for x in flat.leaves:
        if not isinstance(x, Tensor):
            raise ArgumentTypeError(
                f"{name}: an argument to differentiate by is {shown(x)}, no tensor; see dt.asarray"
            )
        if x.dtype.kind not in "fc":
            raise DTypeError(f"{name}: {x.dtype.name} has no gradients, only floats do")
    return flat, [*flat.leaves]


def _replaced(
    args: Sequence[object], numbers: Sequence[int], values: Sequence[object]
) -> list[object]:
    found = [*args]
    for n, value in zip(numbers, values, strict=True):
        found[n] = value
    return found


def _split(name: str, made: object) -> tuple[Any, Any]:
    if not isinstance(made, tuple) or len(made) != 2:
        raise ArgumentTypeError(
            f"{name}: with has_aux the function gives a pair, not {shown(made)}"
        )
    return made


def _detached(value: Any) -> Any:
    flat = flattened(value)
    return rebuilt(flat, [detach(x) if isinstance(x, Tensor) else x for x in flat.leaves])


# --- the same as functions ------------------------------------------------------------------------


@named(widen=False)
def jacrev(function: Callable[P, Value], argnums: ArgNums = 0) -> Callable[P, Value]:
    """A function that gives the Jacobian of `function`, by going back from each of its elements.

    `argnums`: the argument that it is of, a tensor, or several: then a tuple comes.
    Shapes: those of the output, followed by those of the argument.
    Dtypes: floats.
    Gradient: it has gradients itself.
    Raises: ArgumentTypeError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0], device="reference")
    >>> dt.func.jacrev(lambda x: x * x.sum())(x).tolist()
    [[4.0, 1.0], [2.0, 5.0]]
    """
    return _as_function("jacrev", function, argnums, by_rows)


@named(widen=False)
def jacfwd(function: Callable[P, Value], argnums: ArgNums = 0) -> Callable[P, Value]:
    """A function that gives the Jacobian of `function`, along each element of the argument.

    `argnums`: as for `jacrev`, which is quicker where the output has fewer elements.
    Shapes: those of the output, followed by those of the argument.
    Dtypes: floats.
    Gradient: it has gradients itself.
    Raises: ArgumentTypeError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0], device="reference")
    >>> dt.func.jacfwd(lambda x: x * x.sum())(x).tolist()
    [[4.0, 1.0], [2.0, 5.0]]
    """
    return _as_function("jacfwd", function, argnums, by_columns)


@named(widen=False)
def hessian(function: Callable[P, Value], argnums: ArgNums = 0) -> Callable[P, Value]:
    """A function that gives the second derivatives of `function`, which gives one element.

    `argnums`: as for `jacrev`; for several a tuple of tuples comes.
    Shapes: that of the argument, twice.
    Dtypes: floats.
    Gradient: it has gradients itself.
    Raises: ArgumentTypeError, DTypeError, GradientError.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0], device="reference")
    >>> dt.func.hessian(lambda x: (x * x).sum() * x[0])(x).tolist()
    [[6.0, 4.0], [4.0, 2.0]]
    """

    def at(name: str, f: Callable[..., Any], points: Sequence[Tensor]) -> Nested:
        return at_points.hessian(f, *points)

    return _as_function("hessian", function, argnums, at)


def _as_function(
    name: str, function: Callable[..., Any], argnums: ArgNums,
    at: Callable[[str, Callable[..., Any], Sequence[Tensor]], Nested],
) -> Callable[..., Any]:  # fmt: skip
    callable_(name, function)
    numbers = _numbers(name, argnums)

    def derivative(*args: object, **options: object) -> Nested:
        _, points = _chosen(name, args, numbers)
        if len(points) != len(numbers):
            raise ArgumentTypeError(f"{name}: takes tensors to differentiate by, no containers")
        found = at(
            name,
            lambda *values: function(*_replaced(args, numbers, values), **options),
            floats(name, points),
        )
        one = not isinstance(argnums, int) and len(numbers) == 1
        return _in_tuples(found) if one else found

    return derivative


def _in_tuples(found: Nested) -> Nested:
    """Each tensor in a tuple: `argnums` was one of one number."""
    return (found,) if isinstance(found, Tensor) else tuple([_in_tuples(x) for x in found])
