"""Jacobian products of functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar, overload

from ..argument_checks import function as callable_
from ..declarations import public
from ..errors import ShapeError
from ..graph.expr import tape_of
from ..ops import table as ops
from ..settings import current, restore, set_recording
from ..tensor.tensor import Tensor, create_tensor, required
from .engine import Tensors, detach, grad, requires_grad_
from .namespace import ones, zeros
from .tape import Node, TapeLeaf

FunctionResult: TypeAlias = Tensor | tuple[Tensor, ...]  # the results of a function
BackwardFunction: TypeAlias = Callable[..., tuple[Tensor, ...]]
R = TypeVar("R")


def inputs_of(primals: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors of the same values whose gradients can be asked for by themselves.

    Gradients flow on from them to where they flowed before, so nested transforms are right.
    """
    return [_separate_input(t) for t in primals]


def _separate_input(t: Tensor) -> Tensor:
    """Return a tensor over the memory of `t`: a new leaf or, while recording, behind its tape."""
    if t._expr.tape is None or not current().grad:
        return requires_grad_(detach(t))
    e = detach(t)._expr
    e.tape = tape_of(ops.VIEW, (t._expr,), e.spec, ("reshape", e.spec.shape))
    return create_tensor(e)


def backpropagate(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    gradients: Sequence[Tensor],
    create_graph: bool,
) -> Sequence[Tensor | None]:
    """Return the gradients of `inputs`, None where none flows; keep the graph for more calls.

    They are differentiable if `create_graph` or a gradient on a tape asks for it while recording.
    """
    create_graph = current().grad and (
        create_graph or any(g._expr.tape is not None for g in gradients)
    )
    if not outputs:
        return [None] * len(inputs)
    return grad(
        outputs, inputs, gradients, retain_graph=True, create_graph=create_graph, allow_unused=True
    )


def needs_graph(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> bool:
    """Return True if gradients flow on to others than `inputs`, so theirs must have gradients."""
    if not current().grad:
        return False
    ends = {t._expr.tape for t in inputs}
    if any(type(n) is not TapeLeaf for n in ends):
        return True
    stack: list[Node] = [t._expr.tape for t in outputs if t._expr.tape is not None]
    visited: set[Node] = set()
    while stack:
        n = stack.pop()
        if n in visited or n in ends:
            continue
        if type(n) is TapeLeaf:
            return True
        visited.add(n)
        stack += [e.node for e in n.edges if e is not None]
    return False


def outputs_of(op: str, returned: object) -> list[Tensor]:
    """Return the tensors that a function gave. Raises: DTypeError if one is no tensor."""
    return [
        required(op, t) for t in (returned if isinstance(returned, (list, tuple)) else [returned])
    ]


def run_recorded(function: Callable[..., R], inputs: Sequence[object]) -> R:
    """Run a function with recording for gradients on; return its result."""
    before = current()
    try:
        set_recording(True)
        return function(*inputs)
    finally:
        restore(before)


@overload
def vjp(function: Callable[..., Tensor], *primals: Tensor) -> tuple[Tensor, BackwardFunction]: ...
@overload
def vjp(
    function: Callable[..., Sequence[Tensor]], *primals: Tensor
) -> tuple[tuple[Tensor, ...], BackwardFunction]: ...
@public(widen=False)
def vjp(
    function: Callable[..., Tensor | Sequence[Tensor]], *primals: Tensor
) -> tuple[FunctionResult, BackwardFunction]:
    """Return the result of a function, and a function that maps its gradients to the primals'.

    The returned function takes a gradient for each output, and returns a tuple of those of the
    primals.

    - `function`: from tensors to a tensor or a tuple of them.
    - `primals`: the point, as the arguments of `function`.

    Shapes: gradients have those of what they are gradients of.
    Dtypes: floats.
    Raises: DTypeError if an argument is not a tensor, ShapeError for another number of gradients.
    See also: `autograd.jvp`, `grad`, `autograd.jacobian`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0])
    >>> out, back = dt.autograd.vjp(dt.square, x)
    >>> back(dt.ones_like(out))[0].tolist()
    [2.0, 4.0]
    """
    callable_("vjp", function)
    inputs = inputs_of(outputs_of("vjp", primals))
    result = run_recorded(function, inputs)
    outputs = outputs_of("vjp", result)
    deep = needs_graph(outputs, inputs)

    def back(*gradients: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of the primals, 0 where there are none.

        Raises: ShapeError unless there is one gradient per output.
        """
        if len(gradients) != len(outputs):
            raise ShapeError(
                f"vjp: expected one gradient per output, {len(outputs)}, got {len(gradients)}"
            )
        pairs = list(zip(outputs, gradients, strict=True))
        pairs = [p for p in pairs if p[0]._expr.tape is not None]
        outs, incoming = [p[0] for p in pairs], [p[1] for p in pairs]
        grads = backpropagate(outs, inputs, incoming, deep)
        return tuple(
            zeros(t._expr.spec) if g is None else g for t, g in zip(inputs, grads, strict=True)
        )

    plain = outputs if deep else [detach(t) for t in outputs]
    return (plain[0] if isinstance(result, Tensor) else tuple(plain)), back


@overload
def jvp(
    function: Callable[..., Tensor], primals: Tensors, tangents: Tensors
) -> tuple[Tensor, Tensor]: ...
@overload
def jvp(
    function: Callable[..., Sequence[Tensor]], primals: Tensors, tangents: Tensors
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]: ...
@public(widen=False)
def jvp(
    function: Callable[..., Tensor | Sequence[Tensor]], primals: Tensors, tangents: Tensors
) -> tuple[FunctionResult, FunctionResult]:
    """Return a function's result, and its derivative along `tangents`, by two backward passes.

    The derivative is the gradient of a vector-Jacobian product by its vector.

    - `function`: from tensors to a tensor or a tuple of them.
    - `primals`: the point: one tensor or a tuple.
    - `tangents`: the direction, like `primals`.

    Shapes: `tangents` have those of `primals`.
    Dtypes: floats.
    Raises: ShapeError unless tangents and primals agree in number and shapes; DTypeError.
    See also: `autograd.vjp`, `autograd.linearize`, `autograd.hvp`.

    >>> import dovetail as dt
    >>> x, v = (dt.asarray(a) for a in ([1.0, 2.0], [1.0, 0.0]))
    >>> dt.autograd.jvp(dt.square, x, v)[1].tolist()
    [2.0, 0.0]
    """
    callable_("jvp", function)
    points, directions = outputs_of("jvp", primals), outputs_of("jvp", tangents)
    if [t.shape for t in points] != [t.shape for t in directions]:
        raise ShapeError(
            "jvp: tangents must have the shapes of the primals, "
            f"{[t.shape for t in points]}, got {[t.shape for t in directions]}"
        )
    result, along, deep = _linearize(function, points)
    outs = outputs_of("jvp", result)
    tangent = along(directions)
    plain = outs if deep else [detach(t) for t in outs]
    return (plain[0], tangent[0]) if isinstance(result, Tensor) else (tuple(plain), tuple(tangent))


def _linearize(
    function: Callable[..., R], points: Sequence[Tensor]
) -> tuple[R, Callable[[Sequence[Tensor]], list[Tensor]], bool]:
    """Run a function; return its result, a function for its derivatives, and `needs_graph`.

    That function maps a direction per input to a derivative per output: the gradient of a
    vector-Jacobian product with respect to its vector.
    """
    inputs = inputs_of(points)
    result = run_recorded(function, inputs)
    outs = outputs_of("jvp", result)
    deep = needs_graph(outs, inputs)
    before = current()
    try:
        set_recording(True)
        weights = [requires_grad_(detach(ones(t._expr.spec))) for t in outs]
        reached = [(t, w) for t, w in zip(outs, weights, strict=True) if t._expr.tape is not None]
        grads: list[Tensor | None] = []
        if reached:
            grads = list(
                grad(
                    [t for t, _ in reached],
                    inputs,
                    [w for _, w in reached],
                    create_graph=True,
                    allow_unused=True,
                )
            )
    finally:
        restore(before)

    def along(directions: Sequence[Tensor]) -> list[Tensor]:
        """Return the derivative of each output in the given directions, 0 where there is none."""
        pairs = [
            (g, d)
            for g, d in zip(grads, directions, strict=False)
            if g is not None and g.requires_grad
        ]
        reach = backpropagate([g for g, _ in pairs], weights, [d for _, d in pairs], deep)
        return [zeros(t._expr.spec) if d is None else d for t, d in zip(outs, reach, strict=True)]

    return result, along, deep


@overload
def linearize(
    function: Callable[..., Tensor], *primals: Tensor
) -> tuple[Tensor, Callable[..., Tensor]]: ...
@overload
def linearize(
    function: Callable[..., Sequence[Tensor]], *primals: Tensor
) -> tuple[tuple[Tensor, ...], Callable[..., tuple[Tensor, ...]]]: ...
@public(widen=False)
def linearize(
    function: Callable[..., Tensor | Sequence[Tensor]], *primals: Tensor
) -> tuple[FunctionResult, Callable[..., FunctionResult]]:
    """Return the result of a function, and its derivative as a linear function of directions.

    The returned function takes a direction for each, and gives what `jvp` does for it, without
    running `function` again: use it for many directions at one point.

    - `function`: from tensors to a tensor or a tuple of them.
    - `primals`: the point, as the arguments of `function`.

    Shapes: directions have those of `primals`.
    Dtypes: floats.
    Raises: DTypeError if an argument is not a tensor, ShapeError for other directions.
    See also: `autograd.jvp`, `autograd.vjp`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0])
    >>> out, along = dt.autograd.linearize(dt.square, x)
    >>> along(dt.ones_like(x)).tolist(), along(x).tolist()
    ([2.0, 4.0], [2.0, 8.0])
    """
    callable_("linearize", function)
    points = outputs_of("linearize", primals)
    result, along, deep = _linearize(function, points)
    outs = outputs_of("linearize", result)

    def derivative(*directions: Tensor) -> FunctionResult:
        """Return the derivative in the given directions, one per primal.

        Raises: ShapeError if the shapes of the directions are not those of the primals, DTypeError
        for a direction that is no tensor.
        """
        vectors = outputs_of("linearize", directions)
        if [t.shape for t in vectors] != [t.shape for t in points]:
            raise ShapeError(
                "linearize: directions must have the shapes of the primals, "
                f"{[t.shape for t in points]}, got {[t.shape for t in vectors]}"
            )
        tangents = along(vectors)
        return tangents[0] if isinstance(result, Tensor) else tuple(tangents)

    plain = outs if deep else [detach(t) for t in outs]
    return (plain[0] if isinstance(result, Tensor) else tuple(plain)), derivative
