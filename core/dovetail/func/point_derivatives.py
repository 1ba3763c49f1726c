"""Derivatives at a point, the `dt.autograd` forms: `jacobian(f, x)`, `hessian(f, x)`, `hvp`.

A Jacobian is `vmap` over the rows, or the columns, of the identity; so it composes with all else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from ..argument_checks import choice, shown
from ..argument_checks import function as callable_
from ..autograd.engine import detach
from ..autograd.engine import grad as grad_of
from ..autograd.namespace import zeros
from ..autograd.transforms import (
    FunctionResult,
    backpropagate,
    inputs_of,
    linearize,
    needs_graph,
    outputs_of,
    run_recorded,
)
from ..declarations import public
from ..errors import ArgumentError, DTypeError, GradientError, ShapeError
from ..functions.creation.constructors import eye
from ..settings import current, restore, set_recording
from ..tensor.tensor import Tensor, required
from .vectorize import vmap

Nested: TypeAlias = Any  # a tensor, or nested tuples: for each output, for each primal

# --- gradients of one element ---------------------------------------------------------------------


def gradients(value: Tensor, inputs: Sequence[Tensor], deep: bool) -> list[Tensor]:
    """Return the gradients of a one-element tensor by the inputs, 0 where there are none.

    `deep`: True if they have gradients themselves.
    """
    if value._expr.tape is None:
        return [zeros(t._expr.spec) for t in inputs]
    grads = grad_of([value], inputs, create_graph=deep, allow_unused=True)
    return fill_zeros(inputs, grads)


def fill_zeros(inputs: Sequence[Tensor], grads: Sequence[Tensor | None]) -> list[Tensor]:
    """Return the gradients with zeros in place of None."""
    return [zeros(t._expr.spec) if g is None else g for t, g in zip(inputs, grads, strict=True)]


def scalar(name: str, result: object) -> Tensor:
    """Return a tensor of one element itself. Raises: DTypeError, GradientError for others.

    DTypeError is for what is no tensor, GradientError for other sizes.
    """
    if not isinstance(result, Tensor):
        raise DTypeError(f"{name}: the function must return a tensor, got {shown(result)}")
    if result.size != 1:
        raise GradientError(
            f"{name}: the function must return one element, got shape {result.shape}; sum it, or "
            "use dt.func.jacrev"
        )
    return result


# --- Jacobians ------------------------------------------------------------------------------------


@public(widen=False)
def jacobian(
    function: Callable[..., Tensor | Sequence[Tensor]],
    *primals: Tensor,
    mode: Literal["reverse", "forward"] = "reverse",
) -> Nested:
    """Return the derivatives of all elements of a function's result by all of its arguments'.

    All of them go at once (`dt.vmap`).

    - `function`: from tensors to a tensor or a tuple of them.
    - `primals`: the point, as the arguments of `function`.
    - `mode`: "reverse" goes back from each element of the outputs, "forward" along each of the
      primals: the one of which there are fewer is quicker.

    Shapes: those of the output, followed by those of the primal.
    Dtypes: floats.
    Gradient: it has gradients itself.
    Raises: DTypeError, GradientError. For several outputs or primals there are tuples: for each
    output, of each primal.
    See also: `func.jacrev`, `func.jacfwd`, `autograd.vjp`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0])
    >>> dt.autograd.jacobian(lambda x: x * x.sum(), x).tolist()
    [[4.0, 1.0], [2.0, 5.0]]
    """
    callable_("jacobian", function)
    direction = choice("jacobian", mode, "mode", ("reverse", "forward"))
    points = require_floats("jacobian", primals)
    return (reverse_jacobian if direction == "reverse" else forward_jacobian)(
        "jacobian", function, points
    )


def require_floats(name: str, primals: Sequence[object]) -> list[Tensor]:
    """Return the primals. Raises: DTypeError unless floats, ArgumentError if there are none."""
    tensors = [required(name, t) for t in primals]
    for t in tensors:
        if t.dtype.kind != "f":
            raise DTypeError(f"{name}: arguments must be floats, got {t.dtype.name}")
    if not tensors:
        raise ArgumentError(f"{name}: expected at least one tensor to differentiate by, got none")
    return tensors


def _basis(t: Tensor) -> Tensor:
    """Return the unit tensors of a tensor's elements, stacked on a new first axis."""
    return eye(t.size, dtype=t.dtype, device=t.device).reshape((t.size, *t.shape))


def reverse_jacobian(name: str, function: Callable[..., Any], points: Sequence[Tensor]) -> Nested:
    """Return the Jacobian by reverse mode, from each element of the outputs."""
    inputs = inputs_of(points)
    result = run_recorded(function, inputs)
    outs = require_floats(name, outputs_of(name, result))
    deep = needs_graph(outs, inputs)
    rows = [_jacobian_rows(out, inputs, deep) for out in outs]
    return _nest(rows, result, points)


def _jacobian_rows(out: Tensor, inputs: Sequence[Tensor], deep: bool) -> list[Tensor]:
    """Return the derivatives of one output by each input."""

    def back(g: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of the inputs from that of the output, 0 where there are none."""
        outs, gradients = ([out], [g]) if out._expr.tape is not None else ([], [])
        return tuple(fill_zeros(inputs, backpropagate(outs, inputs, gradients, deep)))

    stacked = vmap(back)(_basis(out))
    return [g.reshape(out.shape + t.shape) for g, t in zip(stacked, inputs, strict=True)]


def forward_jacobian(name: str, function: Callable[..., Any], points: Sequence[Tensor]) -> Nested:
    """Return the Jacobian by forward mode, along each element of the primals."""
    result, along = linearize(function, *points)
    outs = require_floats(name, outputs_of(name, result))
    columns: list[Sequence[Tensor]] = []
    for k, t in enumerate(points):

        def one(v: Tensor, k: int = k) -> tuple[Tensor, ...]:
            """Return the derivative of each output along direction `v` of primal `k`."""
            directions = [v if i == k else zeros(p._expr.spec) for i, p in enumerate(points)]
            return tuple(outputs_of(name, along(*directions)))

        columns.append(vmap(one, out_axes=-1)(_basis(t)))
    rows = [
        [columns[k][i].reshape(out.shape + t.shape) for k, t in enumerate(points)]
        for i, out in enumerate(outs)
    ]
    return _nest(rows, result, points)


def _nest(rows: Sequence[Sequence[Tensor]], result: object, points: Sequence[object]) -> Nested:
    """Return the rows as tuples: by output, then by primal; a single one has no tuple."""
    nested = [row[0] if len(points) == 1 else tuple(row) for row in rows]
    return nested[0] if isinstance(result, Tensor) else tuple(nested)


# --- second derivatives ---------------------------------------------------------------------------


@public(widen=False)
def hessian(function: Callable[..., Tensor], *primals: Tensor) -> Nested:
    """Return the second derivatives of a function that gives one element.

    - `function`: from tensors to a tensor of one element.
    - `primals`: the point, as the arguments of `function`.

    Shapes: that of the primal, twice; for several primals a tuple of tuples.
    Dtypes: floats.
    Gradient: it has gradients itself.
    Raises: DTypeError; GradientError for more than one element.
    See also: `func.hessian`, `autograd.hvp`, `autograd.jacobian`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0])
    >>> dt.autograd.hessian(lambda x: (x * x).sum() * x[0], x).tolist()
    [[6.0, 4.0], [4.0, 2.0]]
    """
    callable_("hessian", function)
    points = require_floats("hessian", primals)
    inputs = inputs_of(points)
    value, grads = _value_and_gradients(function, inputs)
    deep = needs_graph([value], inputs)
    rows = [_jacobian_rows(g, inputs, deep) for g in grads]
    nested = [row[0] if len(points) == 1 else tuple(row) for row in rows]
    return nested[0] if len(points) == 1 else tuple(nested)


def _value_and_gradients(
    function: Callable[..., Any], inputs: Sequence[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """Return the result of a function, and its gradients, which have gradients."""
    before = current()
    try:
        set_recording(True)
        value = scalar("hessian", function(*inputs))
        return value, gradients(value, inputs, True)
    finally:
        restore(before)


@public(widen=False)
def hvp(
    function: Callable[..., Tensor],
    primals: Tensor | Sequence[Tensor],
    tangents: Tensor | Sequence[Tensor],
) -> tuple[Tensor, FunctionResult]:
    """Return the result of a function of one element, and its Hessian times a vector.

    The Hessian itself is not computed: the product takes the time of two gradients.

    - `function`: from tensors to a tensor of one element.
    - `primals`: the point: one tensor or a tuple.
    - `tangents`: the vector, of the same shapes.

    Shapes: the product has those of `primals`.
    Dtypes: floats.
    Gradient: it has gradients itself.
    Raises: ShapeError unless tangents and primals agree; DTypeError, GradientError.

    >>> import dovetail as dt
    >>> x, v = (dt.asarray(a) for a in ([1.0, 2.0], [1.0, 0.0]))
    >>> dt.autograd.hvp(lambda x: (x**3).sum(), x, v)[1].tolist()
    [6.0, 0.0]
    """
    callable_("hvp", function)
    points = require_floats("hvp", outputs_of("hvp", primals))
    directions = outputs_of("hvp", tangents)
    if [t.shape for t in points] != [t.shape for t in directions]:
        raise ShapeError(
            "hvp: tangents must have the shapes of the primals, "
            f"{[t.shape for t in points]}, got {[t.shape for t in directions]}"
        )
    inputs = inputs_of(points)
    value, first = _value_and_gradients(function, inputs)
    deep = needs_graph([value], inputs)
    pairs = [(g, v) for g, v in zip(first, directions, strict=True) if g._expr.tape is not None]
    products = fill_zeros(
        inputs, backpropagate([g for g, _ in pairs], inputs, [v for _, v in pairs], deep)
    )
    plain = value if deep else detach(value)
    return plain, products[0] if isinstance(primals, Tensor) else tuple(products)
