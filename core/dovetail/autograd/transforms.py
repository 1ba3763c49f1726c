"""Products with Jacobians, of functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar, overload

from ..arguments import function as callable_
from ..arguments import named
from ..errors import ShapeError
from ..settings import current, record, restore
from ..tensor.tensor import Tensor, required
from .engine import Tensors, detach, grad, requires_grad_
from .namespace import ones, zeros

Made: TypeAlias = Tensor | tuple[Tensor, ...]  # as many as a function gives
Back: TypeAlias = Callable[..., tuple[Tensor, ...]]
R = TypeVar("R")


def _inputs(primals: Sequence[Tensor]) -> list[Tensor]:
    return [requires_grad_(detach(t)) for t in primals]


def _outputs(op: str, made: object) -> list[Tensor]:
    return [required(op, t) for t in (made if isinstance(made, (list, tuple)) else [made])]


def _recorded(function: Callable[..., R], inputs: list[Tensor]) -> R:
    before = current()
    try:
        record(True)
        return function(*inputs)
    finally:
        restore(before)


@overload
def vjp(function: Callable[..., Tensor], *primals: Tensor) -> tuple[Tensor, Back]: ...
@overload
def vjp(
    function: Callable[..., Sequence[Tensor]], *primals: Tensor
) -> tuple[tuple[Tensor, ...], Back]: ...
@named
def vjp(function: Callable[..., Tensor | Sequence[Tensor]], *primals: Tensor) -> tuple[Made, Back]:
    """What a function gives, and a function that takes gradients back to the primals.

    `function`: from tensors to a tensor or a tuple of them. `primals`: where, as its arguments. The
    function that comes back takes a gradient for each output, and gives a tuple of those of
    primals.
    Shapes: gradients have those of what they are gradients of.
    Dtypes: floats.
    Raises: DTypeError for what is no tensor, ShapeError for another number of gradients.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0], device="reference")
    >>> out, back = dt.autograd.vjp(dt.square, x)
    >>> back(dt.ones_like(out))[0].tolist()
    [2.0, 4.0]
    """
    callable_("vjp", function)
    inputs = _inputs(_outputs("vjp", primals))
    made = _recorded(function, inputs)
    outputs = _outputs("vjp", made)

    def back(*gradients: Tensor) -> tuple[Tensor, ...]:
        if len(gradients) != len(outputs):
            raise ShapeError(f"vjp: {len(gradients)} gradients for {len(outputs)} outputs")
        pairs = list(zip(outputs, gradients, strict=True))
        pairs = [p for p in pairs if p[0]._expr.tape is not None]
        outs, given = [p[0] for p in pairs], [p[1] for p in pairs]
        found = grad(outs, inputs, given, retain_graph=True, allow_unused=True)
        return tuple(
            zeros(t._expr.spec) if g is None else g for t, g in zip(inputs, found, strict=True)
        )

    plain = [detach(t) for t in outputs]
    return (plain[0] if isinstance(made, Tensor) else tuple(plain)), back


@overload
def jvp(
    function: Callable[..., Tensor], primals: Tensors, tangents: Tensors
) -> tuple[Tensor, Tensor]: ...
@overload
def jvp(
    function: Callable[..., Sequence[Tensor]], primals: Tensors, tangents: Tensors
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]: ...
@named
def jvp(
    function: Callable[..., Tensor | Sequence[Tensor]], primals: Tensors, tangents: Tensors
) -> tuple[Made, Made]:
    """What a function gives, and its derivative in the direction of `tangents`.

    `function`: from tensors to a tensor or a tuple of them. `primals`: where, one or a tuple. It is
    the gradient of a vector-Jacobian product with respect to its vector: two passes back.
    Shapes: `tangents` have those of `primals`.
    Dtypes: floats.
    Raises: ShapeError unless tangents and primals agree in number and shapes; DTypeError.

    >>> import dovetail as dt
    >>> x, v = (dt.asarray(a, device="reference") for a in ([1.0, 2.0], [1.0, 0.0]))
    >>> dt.autograd.jvp(dt.square, x, v)[1].tolist()
    [2.0, 0.0]
    """
    callable_("jvp", function)
    points, directions = _outputs("jvp", primals), _outputs("jvp", tangents)
    if [t.shape for t in points] != [t.shape for t in directions]:
        raise ShapeError("jvp: tangents must have the shapes of the primals")
    inputs = _inputs(points)
    made = _recorded(function, inputs)
    outs = _outputs("jvp", made)
    weights = [requires_grad_(detach(ones(t._expr.spec))) for t in outs]
    reached = [(t, w) for t, w in zip(outs, weights, strict=True) if t._expr.tape is not None]
    found: list[Tensor | None] = []
    if reached:
        found = list(grad([t for t, _ in reached], inputs, [w for _, w in reached],
                          create_graph=True, allow_unused=True))  # fmt: skip
    pairs = [
        (g, d) for g, d in zip(found, directions, strict=False) if g is not None and g.requires_grad
    ]
    reach: Sequence[Tensor | None] = [None] * len(outs)
    if pairs:
        reach = grad([g for g, _ in pairs], weights, [d for _, d in pairs], allow_unused=True)
    along = [zeros(t._expr.spec) if d is None else d for t, d in zip(outs, reach, strict=True)]
    plain = [detach(t) for t in outs]
    return (plain[0], along[0]) if isinstance(made, Tensor) else (tuple(plain), tuple(along))
