"""Derivatives as functions: `dt.func.grad`, `jacrev`, `hessian`, ...

They compose, with each other and with `vmap`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeAlias

from ..argument_checks import flag, integer, integers, shown
from ..argument_checks import function as callable_
from ..autograd.engine import detach
from ..autograd.transforms import inputs_of, jvp, linearize, needs_graph, run_recorded, vjp
from ..capture.pytree import FlatTree, flatten, rebuild
from ..declarations import public
from ..errors import ArgumentError, ArgumentTypeError, DTypeError
from ..tensor.tensor import Tensor
from . import point_derivatives
from .point_derivatives import (
    Nested,
    forward_jacobian,
    gradients,
    require_floats,
    reverse_jacobian,
    scalar,
)

__all__ = [
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "value_and_grad",
    "vjp",
]

P = ParamSpec("P")
ArgNums: TypeAlias = int | Sequence[int]
Value: TypeAlias = Any  # a function's result, and gradients: containers like its arguments

# --- gradients ------------------------------------------------------------------------------------


@public(widen=False)
def grad(
    function: Callable[P, Value], argnums: ArgNums = 0, *, has_aux: bool = False
) -> Callable[P, Value]:
    """Return a function that computes the gradient of `function`, which gives one element.

    - `function`: gives a tensor of one element.
    - `argnums`: the position of the argument to differentiate by, or a tuple of positions: then the
      result is a tuple. The argument is a tensor, or a container of them; the gradient has the same
      form.
    - `has_aux`: True if `function` gives a pair whose second item is not differentiated; the result
      is then (gradient, aux).

    Shapes: those of the arguments.
    Dtypes: floats.
    Gradient: it has gradients itself, so that it can be applied again.
    Raises: ArgumentTypeError if it is not a function or has no tensor there, GradientError for more
    than one element.
    See also: `autograd.value_and_grad`, `func.hessian`, `vmap`, `grad`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0])
    >>> dt.func.grad(lambda x: (x**3).sum())(x).tolist()
    [3.0, 12.0]
    """
    both = _with_value("grad", function, argnums, has_aux)

    def gradient(*args: P.args, **options: P.kwargs) -> Any:
        """Return the gradient, or (gradient, aux) if `has_aux`."""
        value, grads = both(*args, **options)
        return (grads, value[1]) if has_aux else grads

    return gradient


@public(widen=False)
def value_and_grad(
    function: Callable[P, Value], argnums: ArgNums = 0, *, has_aux: bool = False
) -> Callable[P, Value]:
    """Return a function that computes the value of `function` and its gradient in one run.

    - `function`: gives one element.
    - `argnums`: the position of the argument to differentiate by, or a tuple of positions.
    - `has_aux`: True if `function` gives a pair whose second item is not differentiated; the value
      is then the pair.

    Shapes: those of the arguments.
    Dtypes: floats.
    Gradient: it has gradients itself.
    Raises: as `dt.func.grad`.
    See also: `func.grad`, `Tensor.backward`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0])
    >>> value, gradient = dt.func.value_and_grad(lambda x: (x * x).sum())(x)
    >>> value.item(), gradient.tolist()
    (5.0, [2.0, 4.0])
    """
    return _with_value("value_and_grad", function, argnums, has_aux)


def _with_value(
    name: str, function: Callable[..., Any], argnums: ArgNums, has_aux: bool
) -> Callable[..., Any]:
    """Return a function that computes (value, gradient), or ((value, aux), gradient)."""
    callable_(name, function)
    has_aux, numbers = flag(name, has_aux, "has_aux"), _check_argnums(name, argnums)

    def both(*args: object, **options: object) -> tuple[Any, Any]:
        """Run the function; return (value, gradient), or ((value, aux), gradient)."""
        flat, inputs = _select_arguments(name, args, numbers)
        taped = inputs_of(inputs)
        arguments = _replace_arguments(args, numbers, rebuild(flat, taped))
        result = run_recorded(lambda: function(*arguments, **options), ())
        value, aux = _split_aux(name, result) if has_aux else (result, None)
        value = scalar(name, value)
        deep = needs_graph([value], taped)
        grads = gradients(value, taped, deep)
        whole = rebuild(flat, grads)
        if not deep:
            value, aux = detach(value), _detach_leaves(aux)
        result = (value, aux) if has_aux else value
        return result, whole[0] if isinstance(argnums, int) else whole

    return both


def _check_argnums(name: str, argnums: ArgNums) -> tuple[int, ...]:
    """Return `argnums` as a tuple of ints. Raises: ArgumentTypeError for other values."""
    if isinstance(argnums, int):
        return (integer(name, argnums, "argnums"),)
    return integers(name, argnums, "argnums")


def _select_arguments(
    name: str, args: Sequence[object], numbers: Sequence[int]
) -> tuple[FlatTree, list[Tensor]]:
    """Return the arguments `numbers` as one FlatTree, and its tensors; raise for other leaves.

    ArgumentError is for a number out of range, ArgumentTypeError for leaves that are no tensors,
    DTypeError for other dtypes than floats and complex ones.
    """
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise ArgumentError(
                f"{name}: argnums must be below {len(args)}, the number of arguments, got {n}"
            )
    flat = flatten(tuple([args[n] for n in numbers]))
    for x in flat.leaves:
        if not isinstance(x, Tensor):
            raise ArgumentTypeError(
                f"{name}: an argument to differentiate by must be a tensor, got {shown(x)}; use "
                "dt.asarray"
            )
        if x.dtype.kind not in "fc":
            raise DTypeError(
                f"{name}: an argument to differentiate by must be floating-point, got "
                f"{x.dtype.name}"
            )
    return flat, [*flat.leaves]


def _replace_arguments(
    args: Sequence[object], numbers: Sequence[int], values: Sequence[object]
) -> list[object]:
    """Return a copy of the arguments with `values` at the positions `numbers`."""
    replaced = [*args]
    for n, value in zip(numbers, values, strict=True):
        replaced[n] = value
    return replaced


def _split_aux(name: str, pair: object) -> tuple[Any, Any]:
    """Return a (value, aux) pair itself. Raises: ArgumentTypeError for other objects."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise ArgumentTypeError(
            f"{name}: with has_aux=True the function must return a pair, got {shown(pair)}"
        )
    return pair


def _detach_leaves(value: Any) -> Any:
    """Return the containers with each tensor in them detached."""
    flat = flatten(value)
    return rebuild(flat, [detach(x) if isinstance(x, Tensor) else x for x in flat.leaves])


# --- Jacobians and Hessians -----------------------------------------------------------------------


@public(widen=False)
def jacrev(function: Callable[P, Value], argnums: ArgNums = 0) -> Callable[P, Value]:
    """Return a function that computes the Jacobian of `function` in reverse mode.

    - `function`: gives a tensor or a tuple of them.
    - `argnums`: the position of the argument to differentiate by, a tensor, or a tuple of
      positions: then the result is a tuple.

    Shapes: those of the output, followed by those of the argument.
    Dtypes: floats.
    Gradient: it has gradients itself.
    Raises: ArgumentTypeError, DTypeError.
    See also: `func.jacfwd`, `autograd.vjp`, `func.hessian`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0])
    >>> dt.func.jacrev(lambda x: x * x.sum())(x).tolist()
    [[4.0, 1.0], [2.0, 5.0]]
    """
    return _as_function("jacrev", function, argnums, reverse_jacobian)


@public(widen=False)
def jacfwd(function: Callable[P, Value], argnums: ArgNums = 0) -> Callable[P, Value]:
    """Return a function that computes the Jacobian of `function` in forward mode.

    `jacrev` is quicker where the output has fewer elements.

    - `function`: gives a tensor or a tuple of them.
    - `argnums`: the position of the argument to differentiate by, a tensor, or a tuple of
      positions.

    Shapes: those of the output, followed by those of the argument.
    Dtypes: floats.
    Gradient: it has gradients itself.
    Raises: ArgumentTypeError, DTypeError.
    See also: `func.jacrev`, `autograd.jvp`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0])
    >>> dt.func.jacfwd(lambda x: x * x.sum())(x).tolist()
    [[4.0, 1.0], [2.0, 5.0]]
    """
    return _as_function("jacfwd", function, argnums, forward_jacobian)


@public(widen=False)
def hessian(function: Callable[P, Value], argnums: ArgNums = 0) -> Callable[P, Value]:
    """Return a function that computes the second derivatives of `function`.

    - `function`: gives a tensor of one element.
    - `argnums`: the position of the argument to differentiate by, a tensor, or a tuple of
      positions, which gives a tuple of tuples.

    Shapes: that of the argument, twice.
    Dtypes: floats.
    Gradient: it has gradients itself.
    Raises: ArgumentTypeError, DTypeError, GradientError.
    See also: `autograd.hvp`, which needs less memory, `func.jacrev`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0])
    >>> dt.func.hessian(lambda x: (x * x).sum() * x[0])(x).tolist()
    [[6.0, 4.0], [4.0, 2.0]]
    """

    def hessian_at(name: str, f: Callable[..., Any], points: Sequence[Tensor]) -> Nested:
        """Return the second derivatives of `f` at the points."""
        return point_derivatives.hessian(f, *points)

    return _as_function("hessian", function, argnums, hessian_at)


def _as_function(
    name: str,
    function: Callable[..., Any],
    argnums: ArgNums,
    derivative_at: Callable[[str, Callable[..., Any], Sequence[Tensor]], Nested],
) -> Callable[..., Any]:
    """Return a function of `function`'s arguments that computes a derivative at a point."""
    callable_(name, function)
    numbers = _check_argnums(name, argnums)

    def derivative(*args: object, **options: object) -> Nested:
        """Return the derivative by the selected arguments, which must be tensors, no containers."""
        _, points = _select_arguments(name, args, numbers)
        if len(points) != len(numbers):
            raise ArgumentTypeError(
                f"{name}: arguments to differentiate by must be tensors, got a container"
            )
        result = derivative_at(
            name,
            lambda *values: function(*_replace_arguments(args, numbers, values), **options),
            require_floats(name, points),
        )
        is_single = not isinstance(argnums, int) and len(numbers) == 1
        return _in_tuples(result) if is_single else result

    return derivative


def _in_tuples(nested: Nested) -> Nested:
    """Wrap each tensor in a tuple of one, as if `argnums` is a sequence of one number."""
    return (nested,) if isinstance(nested, Tensor) else tuple([_in_tuples(x) for x in nested])
