"""Derivatives at a point, as `dt.autograd` has them: `jacobian(f, x)`, `hessian(f, x)`, `hvp`.

A Jacobian is `vmap` over the rows, or the columns, of the identity; so it composes with all else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from ..arguments import choice, named, shown
from ..arguments import function as callable_
from ..autograd.engine import detach
from ..autograd.engine import grad as grad_of
from ..autograd.namespace import zeros
from ..autograd.transforms import (
    Made,
    back_through,
    inputs_of,
    is_deep,
    linearize,
    outputs_of,
    recorded,
)
from ..errors import ArgumentError, DTypeError, GradientError, ShapeError
from ..functions.creation.constructors import eye
from ..settings import current, record, restore
from ..tensor.tensor import Tensor, required
from .mapping import vmap

Nested: TypeAlias = Any  # a tensor, or tuples of them: for each output, of each primal

# --- gradients of one element ---------------------------------------------------------------------


def gradients(value: Tensor, inputs: Sequence[Tensor], deep: bool) -> list[Tensor]:
    """The gradients of what has one element, 0 where there are none."""
    if value._expr.tape is None:
        return [zeros(t._expr.spec) for t in inputs]
    found = grad_of([value], inputs, create_graph=deep, allow_unused=True)
    return filled(inputs, found)


def filled(inputs: Sequence[Tensor], found: Sequence[Tensor | None]) -> list[Tensor]:
    """Gradients, 0 where there are none."""
    return [zeros(t._expr.spec) if g is None else g for t, g in zip(inputs, found, strict=True)]


def scalar(name: str, made: object) -> Tensor:
    """What a function gives, of one element. Raises: DTypeError, GradientError."""
    if not isinstance(made, Tensor):
        raise DTypeError(f"{name}: the function gives {shown(made)}, no tensor")
    if made.size != 1:
        raise GradientError(
            f"{name}: the function gives shape {made.shape}, and only what has one element has a "
            "gradient; sum it, or see dt.func.jacrev"
        )
    return made


# --- Jacobians ------------------------------------------------------------------------------------


@named(widen=False)
def jacobian(
    function: Callable[..., Tensor | Sequence[Tensor]], *primals: Tensor,
    mode: Literal["reverse", "forward"] = "reverse",
) -> Nested:  # fmt: skip
    """The derivatives of all elements that a function gives by all elements of what it gets.

    `function`: from tensors to a tensor or a tuple of them. `primals`: where, as its arguments.
    `mode`: "reverse" goes back from each element of the outputs, "forward" along each of the
    primals: the one of which there are fewer is quicker. All of them go at once (`dt.vmap`).
    Shapes: those of the output, followed by those of the primal.
    Dtypes: floats.
    Gradient: it has gradients itself.
    Raises: DTypeError, GradientError. For several outputs or primals there are tuples: for each
    output, of each primal.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0], device="reference")
    >>> dt.autograd.jacobian(lambda x: x * x.sum(), x).tolist()
    [[4.0, 1.0], [2.0, 5.0]]
    """
    callable_("jacobian", function)
    how = choice("jacobian", mode, "mode", ("reverse", "forward"))
    points = floats("jacobian", primals)
    return (by_rows if how == "reverse" else by_columns)("jacobian", function, points)


def floats(name: str, primals: Sequence[object]) -> list[Tensor]:
    """The primals. Raises: DTypeError, ArgumentError where there are none."""
    found = [required(name, t) for t in primals]
    for t in found:
        if t.dtype.kind != "f":
            raise DTypeError(f"{name}: of floats, not of {t.dtype.name}")
    if not found:
        raise ArgumentError(f"{name}: needs at least one tensor to differentiate by")
    return found


def _basis(t: Tensor) -> Tensor:
    """Each direction of a tensor's elements."""
    return eye(t.size, dtype=t.dtype, device=t.device).reshape((t.size, *t.shape))


def by_rows(name: str, function: Callable[..., Any], points: Sequence[Tensor]) -> Nested:
    """The Jacobian, by going back from each element of the outputs."""
    inputs = inputs_of(points)
    made = recorded(function, inputs)
    outs = floats(name, outputs_of(name, made))
    deep = is_deep(outs, inputs)
    rows = [_rows(out, inputs, deep) for out in outs]
    return _nested(rows, made, points)


def _rows(out: Tensor, inputs: Sequence[Tensor], deep: bool) -> list[Tensor]:
    """The derivatives of one output by each input."""

    def back(g: Tensor) -> tuple[Tensor, ...]:
        outs, given = ([out], [g]) if out._expr.tape is not None else ([], [])
        return tuple(filled(inputs, back_through(outs, inputs, given, deep)))

    found = vmap(back)(_basis(out))
    return [g.reshape(out.shape + t.shape) for g, t in zip(found, inputs, strict=True)]


def by_columns(name: str, function: Callable[..., Any], points: Sequence[Tensor]) -> Nested:
    """The Jacobian, along each element of the primals."""
    made, along = linearize(function, *points)
    outs = floats(name, outputs_of(name, made))
    columns: list[Sequence[Tensor]] = []
    for k, t in enumerate(points):

        def one(v: Tensor, k: int = k) -> tuple[Tensor, ...]:
            directions = [v if i == k else zeros(p._expr.spec) for i, p in enumerate(points)]
            return tuple(outputs_of(name, along(*directions)))

        columns.append(vmap(one, out_axes=-1)(_basis(t)))
    rows = [
        [columns[k][i].reshape(out.shape + t.shape) for k, t in enumerate(points)]
        for i, out in enumerate(outs)
    ]
    return _nested(rows, made, points)


def _nested(rows: Sequence[Sequence[Tensor]], made: object, points: Sequence[object]) -> Nested:
    found = [row[0] if len(points) == 1 else tuple(row) for row in rows]
    return found[0] if isinstance(made, Tensor) else tuple(found)


# --- second derivatives ---------------------------------------------------------------------------


@named(widen=False)
def hessian(function: Callable[..., Tensor], *primals: Tensor) -> Nested:
    """The second derivatives of a function that gives one element.

    `function`: from tensors to a tensor of one element. `primals`: where, as its arguments.
    Shapes: that of the primal, twice; for several primals a tuple of tuples.
    Dtypes: floats.
    Gradient: it has gradients itself.
    Raises: DTypeError; GradientError for more than one element.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0], device="reference")
    >>> dt.autograd.hessian(lambda x: (x * x).sum() * x[0], x).tolist()
    [[6.0, 4.0], [4.0, 2.0]]
    """
    callable_("hessian", function)
    points = floats("hessian", primals)
    inputs = inputs_of(points)
    value, found = _first(function, inputs)
    deep = is_deep([value], inputs)
    rows = [_rows(g, inputs, deep) for g in found]
    nested = [row[0] if len(points) == 1 else tuple(row) for row in rows]
    return nested[0] if len(points) == 1 else tuple(nested)


def _first(function: Callable[..., Any], inputs: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """What a function gives, and its gradients, which have gradients."""
    before = current()
    try:
        record(True)
        value = scalar("hessian", function(*inputs))
        return value, gradients(value, inputs, True)
    finally:
        restore(before)


@named(widen=False)
def hvp(
    function: Callable[..., Tensor], primals: Tensor | Sequence[Tensor],
    tangents: Tensor | Sequence[Tensor],
) -> tuple[Tensor, Made]:  # fmt: skip
    """What a function of one element gives, and its second derivatives times a vector.

    `function`: from tensors to a tensor of one element. `primals`: where, one or a tuple.
    `tangents`: the vector, of the same shapes. The Hessian itself is not made: it takes the time of
    two gradients.
    Shapes: the product has those of `primals`.
    Dtypes: floats.
    Gradient: it has gradients itself.
    Raises: ShapeError unless tangents and primals agree; DTypeError, GradientError.

    >>> import dovetail as dt
    >>> x, v = (dt.asarray(a, device="reference") for a in ([1.0, 2.0], [1.0, 0.0]))
    >>> dt.autograd.hvp(lambda x: (x**3).sum(), x, v)[1].tolist()
    [6.0, 0.0]
    """
    callable_("hvp", function)
    points = floats("hvp", outputs_of("hvp", primals))
    directions = outputs_of("hvp", tangents)
    if [t.shape for t in points] != [t.shape for t in directions]:
        raise ShapeError("hvp: tangents must have the shapes of the primals")
    inputs = inputs_of(points)
    value, first = _first(function, inputs)
    deep = is_deep([value], inputs)
    pairs = [(g, v) for g, v in zip(first, directions, strict=True) if g._expr.tape is not None]
    found = filled(inputs, back_through([g for g, _ in pairs], inputs, [v for _, v in pairs], deep))
    plain = value if deep else detach(value)
    return plain, found[0] if isinstance(primals, Tensor) else tuple(found)
