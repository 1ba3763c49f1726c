"""Entry points of the backward pass, and the effect of in-place writes on the tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Literal, overload

from ..argument_checks import flag, function
from ..compat.keywords import MISSING, call_translated
from ..engine import tracer_api
from ..errors import ArgumentTypeError, DTypeError, GradientError, ShapeError
from ..graph.expr import Expr, Spec, leaf, storage_of, tape_of
from ..layout import StridedView
from ..ops import table as ops
from ..settings import current
from ..tensor.c_fields import is_strided, keep_class
from ..tensor.host import evaluate
from ..tensor.tensor import Tensor, attach_lazy_storage, create_tensor, required, strided
from .backward_pass import GradientCollector, check_gradient, propagate_gradients
from .index_checks import attach_index_checks
from .namespace import ones
from .tape import HookHandle, Node, TapeLeaf

Tensors = Tensor | Sequence[Tensor]


# --- backward and grad ---------------------------------------------------------------------------


def backward(
    outputs: Tensors,
    gradients: Tensors | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradient of the sum of `outputs` to the `grad` of the leaves; return nothing.

    - `outputs`: a tensor, or a list or tuple of tensors.
    - `gradients`: the gradients of something else with respect to `outputs`, one for each; None for
      outputs of one element.
    - `retain_graph`: True keeps the saved values for another backward; None is `create_graph`.
    - `create_graph`: True records the gradients themselves, so that they have gradients.
    - `inputs`: the only leaves whose `grad` is added to; None takes all.

    Shapes: `gradients` have those of `outputs`.
    Dtypes: floats.
    Raises: GradientError where no gradient flows there, or what is needed was released or
    overwritten; ShapeError, DTypeError, DeviceError. After an error no `grad` has changed.
    See also: `Tensor.backward`, `grad`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> dt.autograd.backward((x * x).sum())
    >>> x.grad.tolist()
    [2.0, 4.0]
    """
    retain_graph, create_graph = _check_flags("backward", retain_graph, create_graph)
    roots = _pair_with_gradients("backward", outputs, gradients)
    wanted = (
        None
        if inputs is None
        else [_require_tape("backward", t) for t in _tensor_list("backward", inputs)]
    )
    keep_graph = create_graph if retain_graph is None else retain_graph
    into = GradientCollector(wanted, accumulate=True)
    passed = propagate_gradients(roots, into, create_graph)
    grown = into.new_grads(create_graph)
    seeds = [t for t, _ in roots]
    _check_grads([n for n, _ in grown])
    carried = attach_index_checks([g for _, g in grown], seeds)
    grown = [(n, g) for (n, _), g in zip(grown, carried, strict=True)]
    roots.clear()  # an implied gradient without other references needs no memory
    undo = [] if keep_graph else [n.release() for n in passed]
    if not create_graph:
        try:
            evaluate(*seeds, *[g for _, g in grown])
        except BaseException:
            for restore in undo:
                restore()
            raise
    for n, g in grown:
        n.grad = g


@overload
def grad(
    outputs: Tensors,
    inputs: Tensor,
    grad_outputs: Tensors | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: Literal[False] = False,
) -> Tensor: ...
@overload
def grad(
    outputs: Tensors,
    inputs: Sequence[Tensor],
    grad_outputs: Tensors | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: Literal[False] = False,
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: Tensors,
    inputs: Tensor,
    grad_outputs: Tensors | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool,
) -> Tensor | None: ...
@overload
def grad(
    outputs: Tensors,
    inputs: Sequence[Tensor],
    grad_outputs: Tensors | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool,
) -> tuple[Tensor | None, ...]: ...
def grad(
    outputs: Tensors,
    inputs: Tensors = MISSING,
    grad_outputs: Tensors | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
    **theirs: object,
) -> Tensor | tuple[Tensor | None, ...] | None:
    """Return the gradients of the sum of `outputs` with respect to `inputs`: one, or a tuple.

    They stay pending, so they fuse with what is done with them. No `grad` changes but of tensors
    that retain theirs (`retain_grad`).

    - `outputs`: a tensor, or a list or tuple of tensors.
    - `inputs`: the tensor to differentiate by, or a list or tuple of them.
    - `grad_outputs`: gradients of something else with respect to `outputs`, one for each; None for
      outputs of one element.
    - `retain_graph`: True keeps the saved values for another backward; None is `create_graph`.
    - `create_graph`: True records the gradients themselves, so that they have gradients.
    - `allow_unused`: an input that the outputs do not depend on is an error, or None with True.

    Shapes: those of `inputs`; `grad_outputs` have those of `outputs`.
    Dtypes: floats.
    Raises: GradientError where no gradient flows there, or what is needed was released or
    overwritten; ShapeError, DTypeError, DeviceError.
    See also: `func.grad`, `Tensor.backward`, `autograd.value_and_grad`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> dt.grad((x * x).sum(), x).tolist()
    [2.0, 4.0]
    """
    if callable(outputs):
        raise ArgumentTypeError(
            "grad: outputs must be tensors, got a function; for the gradient of a function use "
            "dt.func.grad(f)"
        )
    if theirs:
        options = {
            "grad_outputs": grad_outputs,
            "retain_graph": retain_graph,
            "create_graph": create_graph,
            "allow_unused": allow_unused,
            **theirs,
        }
        return call_translated(grad, grad, (outputs, inputs), options)
    if inputs is MISSING:
        raise ArgumentTypeError("grad: inputs, the tensors to differentiate by, is required")
    retain_graph, create_graph = _check_flags("grad", retain_graph, create_graph)
    allow_unused = flag("grad", allow_unused, "allow_unused")
    roots = _pair_with_gradients("grad", outputs, grad_outputs)
    nodes = [_require_tape("grad", t) for t in _tensor_list("grad", inputs)]
    keep_graph = create_graph if retain_graph is None else retain_graph
    into = GradientCollector(nodes, accumulate=False)
    passed = propagate_gradients(roots, into, create_graph)
    grads = tuple(into.collected.get(n) for n in nodes)
    if not allow_unused:
        for i, g in enumerate(grads):
            if g is None:
                raise GradientError(
                    f"grad: the outputs do not depend on input {i}; pass allow_unused=True to get "
                    "None"
                )
    grown = into.new_grads(create_graph)  # of tensors that retain theirs
    _check_grads([n for n, _ in grown])
    for n, g in grown:
        n.grad = g
    if not keep_graph:
        for n in passed:
            n.release()
    checked_grads = iter(
        attach_index_checks([g for g in grads if g is not None], [t for t, _ in roots])
    )
    several = _tensor_list("grad", inputs)
    grads = tuple(
        None if g is None else keep_class(next(checked_grads), x)
        for g, x in zip(grads, several, strict=True)
    )
    return grads[0] if isinstance(inputs, Tensor) else grads


def _check_grads(nodes: Sequence[Node]) -> None:
    """Raise UnrolledLoop if a captured loop's body may not change the `grad` of a node."""
    if (recorder := tracer_api.current()) is not None:
        for n in nodes:
            recorder.check_grad(n.order)


def _check_flags(op: str, retain: bool | None, create_graph: bool) -> tuple[bool | None, bool]:
    """Return both flags as bools; `retain` may stay None. Raises: ArgumentTypeError for no bool."""
    retain_graph = retain if retain is None else flag(op, retain, "retain_graph")
    return retain_graph, flag(op, create_graph, "create_graph")


def _tensor_list(op: str, tensors: Tensors) -> list[Tensor]:
    """Return one tensor or a sequence of tensors as a list. Raises: DTypeError for others."""
    if isinstance(tensors, (list, tuple)):
        return [required(op, t) for t in tensors]
    return [required(op, tensors)]


def _require_tape(name: str, t: Tensor) -> Node:
    """Return the tape node of a strided tensor. Raises: GradientError if it has none."""
    tape: Node | None = strided(name, t)._expr.tape
    if tape is None:
        raise GradientError(
            f"{name}: the tensor {t._expr.spec!r} does not require a gradient, because none of its "
            "operands does or it was computed under dt.no_grad(); use x.requires_grad_()"
        )
    return tape


def _pair_with_gradients(
    name: str, outputs: Tensors, gradients: Tensors | None
) -> list[tuple[Tensor, Tensor]]:
    """Return each output with its checked gradient; each is 1 if `gradients` is None.

    Raises: ShapeError for another number of gradients than of outputs, and what `_check_incoming`
    raises.
    """
    listed = _tensor_list(name, outputs)
    if gradients is None:
        incoming: Sequence[object] = [None] * len(listed)
    else:
        incoming = gradients if isinstance(gradients, list | tuple) else [gradients]
    if len(incoming) != len(listed):
        raise ShapeError(
            f"{name}: expected one gradient per output, {len(listed)}, got {len(incoming)}; pass a "
            "list with a gradient, or None, for each"
        )
    return [(t, _check_incoming(name, t, g)) for t, g in zip(listed, incoming, strict=True)]


def _check_incoming(name: str, t: Tensor, g: object) -> Tensor:
    """Return the checked `g`, or 1 for None. Raises: GradientError unless `t` then has size 1."""
    node_ = _require_tape(name, t)
    if g is None:
        if t.size != 1:
            raise GradientError(
                f"{name}: the output must have one element if no gradient is given, got shape "
                f"{t.shape}; sum it, or pass the gradient"
            )
        return ones(t._expr.spec)
    return check_gradient(name, "the incoming gradient", node_, g)


# --- tensors' side -------------------------------------------------------------------------------


def requires_grad_(x: Tensor, requires_grad: bool = True) -> Tensor:
    """Mark `x` as a leaf whose gradient is wanted, or as one without; return `x`.

    - `requires_grad`: False stops recording for `x`.

    Shapes: any.
    Dtypes: floats.
    Raises: DTypeError unless it has floats, GradientError unless it is a leaf.
    See also: `Tensor.detach`, `no_grad`, `Tensor.backward`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> x.requires_grad, x.requires_grad_(False).requires_grad
    (True, False)
    """
    tape = strided("requires_grad_", x)._expr.tape
    requires_grad = flag("requires_grad_", requires_grad, "requires_grad")
    if requires_grad and current().inference:
        raise GradientError(
            "requires_grad_: dt.inference_mode() records nothing; call it outside, or use "
            "dt.no_grad(), in which dt.enable_grad() records"
        )
    if requires_grad and tape is None:
        if x.dtype.kind not in "fc":
            raise DTypeError(
                f"requires_grad_: x must be real or complex floating-point, got {x.dtype.name}; "
                "use x.astype(dt.float32)"
            )
        _set_tape(x, TapeLeaf(x._expr.spec))
    elif not requires_grad and tape is not None:
        if type(tape) is not TapeLeaf:
            raise GradientError(
                "requires_grad_: only a leaf can stop requiring a gradient, got a result of "
                f"{tape.name}; use x.detach()"
            )
        _set_tape(x, None)
    return x


def _set_tape(x: Tensor, tape: Node | None) -> None:
    """Give a tensor another tape; nodes that were made from it keep the old one."""
    x._expr = _leaf_without_tape(x)
    x._expr.tape = tape
    if x._aliases is not None and tape is not None:
        x._aliases.has_tape = True


def _leaf_without_tape(x: Tensor) -> Expr:
    """Return a new leaf over a tensor's memory, without a tape; a pending one gets lazy storage."""
    e = x._expr if x._expr.op is None else attach_lazy_storage(x)
    return leaf(e.storage, e.spec, e.strides, e.offset, e.moves)


def detach(x: Tensor, /) -> Tensor:
    """Return a tensor over the same memory that gradients do not flow through.

    Shapes: any; the result has the same.
    Dtypes: all; the result has the same.
    Raises: DTypeError if an argument is not a tensor.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> x.detach().requires_grad
    False
    """
    if not is_strided(x) and type(required("detach", x)).detach is not Tensor.detach:
        return x.detach()  # as its layout has it
    return keep_class(create_tensor(_leaf_without_tape(strided("detach", x))), x)


def detach_(x: Tensor, /) -> Tensor:
    """Cut `x` off its tape, so that no gradient flows through it any more; return `x`.

    Shapes: any.
    Dtypes: all.
    Raises: nothing.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> y = x * 2
    >>> y.detach_().requires_grad
    False
    """
    _set_tape(strided("detach_", x), None)
    return x


def set_(x: Tensor, source: Tensor, /) -> Tensor:
    """Make this tensor refer to the memory of another one, with its device, dtype and shape.

    The tensor stays the same object for all its holders: so a parameter moves to another device, or
    changes its dtype, and its optimiser goes on with it. One that requires a gradient is a new
    leaf: `grad` and hooks are gone. Views of it, and results computed from it, keep their memory;
    a backward pass from them raises, because the leaf is gone. Nothing changes if the tensor has
    this memory already.

    - `source`: the other tensor; no gradient flows to it from here.

    Shapes: any.
    Dtypes: all; floats and complex numbers for what requires a gradient.
    Raises: GradientError for a result of a recorded op, DTypeError, LayoutError; CaptureError
    inside of a captured function.

    >>> import dovetail as dt
    >>> x = dt.ones(2).requires_grad_()
    >>> x.set_(dt.zeros(3, dtype=dt.float64)) is x
    True
    >>> x.tolist(), x.dtype is dt.float64, x.requires_grad
    ([0.0, 0.0, 0.0], True, True)
    """
    tape, fresh_leaf = strided("set_", x)._expr.tape, _leaf_without_tape(strided("set_", source))
    tracer_api.refuse_read(
        "set_(), or x.data = y, gives a tensor other memory (x.copy_(y) keeps its own)"
    )
    if tape is not None and type(tape) is not TapeLeaf:
        raise GradientError(
            f"set_: only a leaf can take other memory, got a result of {tape.name}; use x.detach()"
        )
    if tape is not None and fresh_leaf.spec.dtype.kind not in "fc":
        raise DTypeError(
            "set_: the source of a tensor that requires a gradient must be floating-point, got "
            f"{fresh_leaf.spec.dtype.name}; use x.requires_grad_(False)"
        )
    evaluate(source)  # a mean that each step binds anew would become a chain of all steps
    if _has_memory_of(x._expr, fresh_leaf):
        return x
    fresh_leaf.tape = None if tape is None else TapeLeaf(fresh_leaf.spec)
    if tape is not None:
        _refuse_gradients(tape, fresh_leaf.spec)
    if x._aliases is not None:
        x._aliases.remove(x)
    x._expr = fresh_leaf
    return x


def _has_memory_of(a: Expr, b: Expr) -> bool:
    """Return True if two leaves are the same elements of one storage; False for pending `a`."""
    return a.op is None and (a.storage, a.spec, a.strides, a.offset) == (
        b.storage,
        b.spec,
        b.strides,
        b.offset,
    )


def _refuse_gradients(tape: TapeLeaf, spec: Spec) -> None:
    """Let backward passes that reach a leaf raise, because its tensor has another Spec."""

    def refuse(g: Tensor) -> None:
        """Raise GradientError."""
        raise GradientError(
            f"backward: a gradient flows to {tape.spec!r}, whose tensor got the memory of another "
            f"one, {spec!r}, by set_() or x.data = y; call backward before that"
        )

    tape.hooks = {0: refuse}


def _data(x: Tensor) -> Tensor:
    """Return a tensor over the same memory that gradients do not flow through: `x.detach()`.

    Writes through it are not recorded. It can be set: x then refers to the memory of another
    tensor, as after `x.set_(y)`, but keeps its hooks, and its gradient if that still fits x.
    Gradients of results computed from x before are those at the values that x had then. Where y has
    another shape or dtype, their backward pass raises.
    Raises: what `set_` raises, where it is set.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> x.data -= 0.5
    >>> x.tolist(), x.requires_grad
    ([0.5, 1.5], True)
    """
    return detach(x)


def _set_data(x: Tensor, source: Tensor) -> None:
    """Make `x` refer to the memory of `source`; keep hooks, and a `grad` that fits.

    If its shape and dtype stay, so does its place on the tape: gradients of earlier results reach
    `x`. Nothing changes if it views that memory in the same way already.
    """
    before, fresh_leaf = (
        _leaf_without_tape(strided("data", x)),
        _leaf_without_tape(strided("data", source)),
    )
    tape = x._expr.tape
    if before.storage is fresh_leaf.storage and _view_key(before) == _view_key(fresh_leaf):
        return  # what `x.data += y` ends with
    hooks = None if tape is None else tape.hooks
    set_(x, source)
    if tape is not None:
        if before.spec is fresh_leaf.spec:
            x._expr.tape = tape
        _require_tape("data", x).hooks = hooks


def _view_key(e: Expr) -> tuple[object, ...]:
    """Return a key that is equal for two leaves of one storage if they are the same view."""
    return e.spec, e.strides, e.offset, e.moves


def is_leaf(x: Tensor) -> bool:
    """Return True if no recorded op made this tensor.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> x.is_leaf, (x * 2).is_leaf
    (True, False)
    """
    return x._expr.tape is None or type(x._expr.tape) is TapeLeaf


def get_grad(x: Tensor) -> Tensor | None:
    """Return the gradient that `backward` has accumulated here; None before.

    It has the class of this tensor.
    It can be set, to a tensor of this shape and dtype or to None.
    Raises: GradientError, ShapeError, DTypeError where it is set.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> x.sum().backward()
    >>> x.grad.tolist()
    [1.0, 1.0]
    >>> x.grad = None
    """
    n = x._expr.tape
    return None if n is None or n.grad is None else keep_class(n.grad, x)


def set_grad(x: Tensor, g: Tensor | None) -> None:
    """Replace the accumulated gradient by a tensor of x's spec, or clear it by None.

    Raises: GradientError if no gradient flows to x; ShapeError, DTypeError, DeviceError.
    """
    if g is None:
        n = x._expr.tape
        if n is not None and n.grad is not None:
            _check_grads([n])
            n.grad = None
        return
    n = _require_tape("grad", x)
    _check_grads([n])
    n.grad = check_gradient("grad", "the new gradient", n, g)


def retain_grad(x: Tensor) -> None:
    """Make `backward` store this result's gradient in `grad`, as it does for leaves.

    Shapes: any.
    Dtypes: floats.
    Raises: GradientError where no gradient flows through it.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> y = x * 2
    >>> y.retain_grad()
    >>> y.sum().backward()
    >>> y.grad.tolist()
    [1.0, 1.0]
    """
    n = _require_tape("retain_grad", x)
    n.retains_grad = type(n) is not TapeLeaf


_hook_count = count()


def register_hook(x: Tensor, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
    """Register `hook` to be called with x's gradient; return a handle that can remove it.

    - `hook`: takes the gradient, and returns None, or a tensor that takes its place.

    Shapes: what the hook returns has x's.
    Dtypes: floats.
    Raises: GradientError where no gradient flows through x, ArgumentTypeError if the hook is not a
    function.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> handle = x.register_hook(lambda g: g * 10)
    >>> x.sum().backward()
    >>> x.grad.tolist()
    [10.0, 10.0]
    """
    function("register_hook", hook, "hook")
    n = _require_tape("register_hook", x)
    if n.hooks is None:
        n.hooks = {}
    key = next(_hook_count)
    n.hooks[key] = hook
    if (recorder := tracer_api.current()) is not None:
        recorder.record_hook(x._expr)
    return HookHandle(n.hooks, key)


# --- writing in place ----------------------------------------------------------------------------


def before_write(name: str, x: Tensor, value: Expr) -> Callable[[], None] | None:
    """Return a function that updates all tapes over x's memory after `value` is written there.

    Return None if there is nothing to update. The new tapes are built now, from the old values.
    Raises: GradientError where a leaf that requires a gradient would be overwritten; UnrolledLoop
    where the write is in a captured body, which does not run as often as it is captured.
    """
    if not current().grad:
        return None
    group = {id(t): t for t in (x._aliases.live_tensors() if x._aliases is not None else ())}
    group.setdefault(id(x), x)
    if value.tape is None and all(t._expr.tape is None for t in group.values()):
        return None
    for t in group.values():
        if type(t._expr.tape) is TapeLeaf:
            raise GradientError(
                f"{name} in place: {t._expr.spec!r} is a leaf that requires a gradient, or shares "
                "memory with one; write to x.copy(), or under dt.no_grad()"
            )
    if (recorder := tracer_api.current()) is not None:
        recorder.check_retaped(x._expr)
    tapes = [(t, _tape_after(t, x, value)) for t in group.values()]

    def update_tapes() -> None:
        """Give each affected tensor the tape that was computed before the write."""
        for t, tape in tapes:
            _set_tape(t, tape)

    return update_tapes


def _tape_after(t: Tensor, x: Tensor, value: Expr) -> Node | None:
    """Return the tape of `t` for the time after `value` is written into x's memory.

    It is built before the write, so that the values it saves are stored in time.
    """
    if t is x:
        copy_tape: Node | None = tape_of(ops.COPY, (value,), value.spec, None)
        return copy_tape
    view_layout, written_layout = _layout(t._expr), _layout(x._expr)
    size = storage_of(x._expr).nbytes // x.itemsize
    attrs = (view_layout, written_layout, size)
    tape: Node | None = tape_of(ops.WRITTEN, (t._expr, value), t._expr.spec, attrs)
    return tape


def _layout(e: Expr) -> StridedView:
    """Return the shape, strides and offset of a leaf."""
    return StridedView(e.spec.shape, e.strides, e.offset)


# --- methods -------------------------------------------------------------------------------------


def _backward_method(
    self: Tensor,
    gradient: Tensor | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Add this tensor's gradient to the `grad` of the leaves it depends on; return nothing.

    - `gradient`: the gradient of something else with respect to this tensor; None for a tensor of
      one element.
    - `retain_graph`: True keeps the saved values for another backward; None is `create_graph`.
    - `create_graph`: True records the gradients themselves, so that they have gradients.
    - `inputs`: the only leaves whose `grad` is added to; None takes all.

    Shapes: `gradient` has that of this tensor.
    Dtypes: floats.
    Raises: GradientError where no gradient flows there, or what is needed was released or
    overwritten; ShapeError, DTypeError, DeviceError. After an error no `grad` has changed.
    See also: `autograd.backward`, `grad`, `func.grad`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0]).requires_grad_()
    >>> (x * x).sum().backward()
    >>> x.grad.tolist()
    [2.0, 4.0]
    """
    backward(self, gradient, retain_graph=retain_graph, create_graph=create_graph, inputs=inputs)


def _requires_grad(x: Tensor) -> bool:
    """Return True if gradients flow to or through this tensor; it can be set on leaves.

    >>> import dovetail as dt
    >>> x = dt.asarray(1.0).requires_grad_()
    >>> x.requires_grad, (x * 2).requires_grad
    (True, True)
    """
    return x._expr.tape is not None


def _set_requires_grad(x: Tensor, on: bool) -> None:
    """Set the property `requires_grad` of `x`, as `requires_grad_` does."""
    requires_grad_(x, on)


def _grad_fn(x: Tensor) -> Node | None:
    """Return the tape node of the op that made this tensor; None for a leaf.

    >>> import dovetail as dt
    >>> x = dt.asarray(1.0).requires_grad_()
    >>> x.grad_fn is None, (x * 2).grad_fn.name
    (True, 'multiply')
    """
    return None if is_leaf(x) else x._expr.tape


TENSOR_METHODS: dict[
    str, object
] = {  # the methods and properties of tensors that concern gradients
    "requires_grad": property(_requires_grad, _set_requires_grad),
    "grad": property(get_grad, set_grad),
    "data": property(_data, _set_data),
    "is_leaf": property(is_leaf),
    "grad_fn": property(_grad_fn),
    "requires_grad_": requires_grad_,
    "detach": detach,
    "detach_": detach_,
    "set_": set_,
    "retain_grad": retain_grad,
    "register_hook": register_hook,
    "backward": _backward_method,
}
