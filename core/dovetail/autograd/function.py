"""User-defined ops with a Python forward and backward, and checkpointing to save memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar, TypeVarTuple, cast
from weakref import ref

from ..argument_checks import function as callable_
from ..engine import tracer_api
from ..errors import CaptureError, DTypeError, GradientError
from ..functions import random
from ..graph.expr import Expr, Spec, leaf
from ..settings import current, restore, set_autocast, set_recording
from ..tensor.c_fields import is_strided
from ..tensor.tensor import Tensor, attach_lazy_storage, create_tensor, required, strided
from .backward_pass import check_gradient
from .engine import backward, detach, grad, requires_grad_
from .namespace import zeros
from .tape import (
    Edge,
    Node,
    PropagatedGradient,
    SavedValue,
    TapeLeaf,
    edge_to,
    load_saved,
    rematerialize_saved,
    save_value,
)
from .transforms import inputs_of

Ts = TypeVarTuple("Ts")  # what a function takes
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Context:
    """The object that `Function.forward` hands to `backward`; any attribute may be set on it.

    - `name`: the name of the function, for errors.
    - `needs`: for each argument True if it requires a gradient.

    >>> import dovetail as dt
    >>> class Twice(dt.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x, factor):
    ...         ctx.factor = factor
    ...         return x * factor
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g * ctx.factor, None
    >>> x = dt.asarray(1.0).requires_grad_()
    >>> Twice.apply(x, 2.0).backward()
    >>> x.grad.item()
    2.0
    """

    def __init__(self, name: str, needs: tuple[bool, ...]) -> None:
        self._name, self.needs_input_grad = name, needs
        self._saved_values: list[SavedValue | None] = []
        self._saved_results: dict[int, int] = {}  # number of the result by place in `_saved_values`
        self._is_released = False
        self._is_recorded = False  # outside of `forward`
        self._needs_others = False  # tensors that `forward` got otherwise require a gradient
        self._constant: set[int] = set()
        self._node: ref[Node] | None = None  # a strong one would be a cycle of what was saved
        self._resumed_gradients: dict[
            int, Tensor
        ] = {}  # gradients sent so far to `_resume_arguments`

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save operands and results; a write to them before backward is then an error.

        - `tensors`: operands and results, or None.

        Raises: DTypeError for what is neither a tensor nor None.
        """
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise DTypeError(
                    f"save_for_backward: expected tensors or None, got {type(t).__name__}; store "
                    "other values as attributes of ctx"
                )
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """Return the tensors that `save_for_backward` saved, as a tuple.

        In `forward`, and after a call that recorded no tape, these are the tensors themselves.
        Raises: GradientError where one has been released or overwritten.
        """
        if self._is_released:
            raise GradientError(
                f"{self._name}: its saved tensors were released by an earlier backward; pass "
                "retain_graph=True to the first backward"
            )
        if self._node is None:
            return self._saved
        return tuple(
            None if k is None else self._load_tensor(i, k) for i, k in enumerate(self._saved_values)
        )

    def _save(
        self,
        saved: Sequence[Tensor | None],
        results: Sequence[Tensor],
        outputs: Sequence[Tensor],
        is_batched: bool,
    ) -> None:
        """Save the values of the tensors in `saved`, for `saved_tensors`.

        results: the tensors that `forward` returned; outputs: those over the same memory on the
        tape. A saved result is saved without its tape, which refers to this context: the cycle
        would keep the memory until a garbage collection. `saved_tensors` puts it on the tape.
        """
        numbers = {id(t): i for i, t in enumerate(results)}
        for i, t in enumerate(saved):
            if t is None:
                self._saved_values.append(None)
                continue
            number = numbers.get(id(t), -1)
            expr = t._expr if number < 0 else outputs[number]._expr
            if number >= 0 and outputs[number] is not t and not is_batched:
                self._saved_results[i] = number
                expr = create_taped_leaf(expr, None)
            self._saved_values.append(save_value(expr))

    def _load_tensor(self, i: int, saved: SavedValue) -> Tensor:
        """Return saved tensor `i`. Raises: GradientError if it was overwritten since."""
        value: Any = saved.value
        node = None if self._node is None else self._node()
        if node is None:  # all results are gone; errors need the name alone
            node = Node(self._name, value.spec, ())
        tensor = load_saved(node, f"tensor {i}", saved)
        assert isinstance(tensor, Tensor)
        if i in self._saved_results and current().grad and isinstance(node, FunctionNode):
            return attach_output(tensor, node, self._saved_results[i])
        return tensor

    _saved: tuple[Tensor | None, ...] = ()
    _first_saved_values: Sequence[
        SavedValue | None
    ] = ()  # of a call on examples, also when it is released

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Mark results that no gradient flows through.

        - `tensors`: results of `forward`.

        Raises: DTypeError if an argument is not a tensor.
        """
        self._constant.update(id(required("mark_non_differentiable", t)) for t in tensors)


def _allow_other_parameters(method: Callable[..., object]) -> Callable[..., object]:
    """Return the method unchanged; type checkers then let subclasses change its parameters."""
    return method


class FunctionNode(Node):
    """The tape node of a Function call; gradients arrive as a dict: result number -> gradient."""

    __slots__ = ("batched_arguments", "context", "function", "results")

    context: Context
    function: Any  # the class, whose `backward` takes the context and gradients
    batched_arguments: tuple[
        Expr | None, ...
    ]  # its arguments, if under vmap one stands for many examples
    results: list[Spec]

    def backward(
        self, g: dict[int, Tensor], result: SavedValue | None
    ) -> list[PropagatedGradient | None]:
        """Return the gradients of the user's `backward`, after a check of number and specs.

        Raises: GradientError for another number; DTypeError, ShapeError, DeviceError for a spec.
        """
        fills = self.function._fills_zeros
        arriving = [
            g[i] if i in g else zeros(s) if fills else None for i, s in enumerate(self.results)
        ]
        gradients = self.call_backward(arriving)
        self.context._resumed_gradients = {}
        if len(gradients) != len(self.edges):
            raise GradientError(
                f"{self.name}: backward must return {len(self.edges)} gradients, one per operand, "
                f"got {len(gradients)}"
            )
        return [
            gradient if edge is None or gradient is None else self._check_part(edge.node, gradient)
            for edge, gradient in zip(self.edges, gradients, strict=True)
        ]

    def _check_part(self, node: Node, gradient: object) -> Tensor:
        """Return a checked gradient for a node; convert it to dense unless the node is a leaf."""
        if isinstance(gradient, Tensor) and not is_strided(gradient) and type(node) is not TapeLeaf:
            gradient = gradient.to_dense()
        return check_gradient("backward", f"the gradient that {self.name} returned", node, gradient)

    def resume(self, sent: dict[Node, PropagatedGradient]) -> list[int]:
        """Store the sums sent so far to resumable arguments in the context; return the numbers."""
        resumed = [
            k
            for k in self.function._resume_arguments(self.context)
            if (edge := self.edges[k]) is not None and is_strided(sent.get(edge.node))
        ]
        self.context._resumed_gradients = {k: sent[self.edges[k].node] for k in resumed}
        return resumed

    def call_backward(self, result_gradients: Sequence[Tensor | None]) -> tuple[Any, ...]:
        """Return the user's gradients as a tuple, unchecked; a single one becomes a tuple."""
        gradients = self.function.backward(self.context, *result_gradients)
        return gradients if isinstance(gradients, tuple) else (gradients,)

    def add_gradients(self, a: PropagatedGradient, b: PropagatedGradient) -> PropagatedGradient:
        """Return one dict with the entries of both; equal result numbers are added."""
        both = {i: a[i] + b[i] for i in a.keys() & b.keys()}  # a saved result is there twice
        return {**a, **b, **both}

    def release(self) -> Callable[[], None]:
        """Drop the context's saved values; return a function that restores them."""
        saved = [rematerialize_saved(k) for k in self.context._saved_values]
        self.released = self.context._is_released = True
        self.context._saved_values = []

        def restore() -> None:
            """Put the saved values back."""
            self.released = self.context._is_released = False
            self.context._saved_values = saved

        return restore


class _FunctionSubclass(Protocol[*Ts, R_co]):
    """The interface of a subclass of Function."""

    @staticmethod
    @_allow_other_parameters
    def backward(ctx: Context, *gradients: Tensor) -> object:
        """Return a gradient, or None, for each argument of `forward`."""

    @staticmethod
    def forward(ctx: Context, /, *args: *Ts) -> R_co:
        """Return the results of the op; nothing in here is recorded."""


class FunctionOutput(Node):
    """The tape node of one result of a Function."""

    __slots__ = ("index", "value")

    index: int
    value: Expr | None  # its value, if under vmap that stands for many examples

    def backward(self, g: Tensor, result: SavedValue | None) -> list[PropagatedGradient | None]:
        """Return the gradient as a dict for the FunctionNode, under this result's number."""
        return [{self.index: g}]


class Function:
    """A user-defined op: a subclass with static `forward(ctx, ...)` and `backward(ctx, *g)`.

    `backward` returns a gradient, or None, for each argument of `forward`. Call `F.apply(...)`.

    >>> import dovetail as dt
    >>> class Cube(dt.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * 3 * x * x
    >>> x = dt.asarray(2.0).requires_grad_()
    >>> Cube.apply(x).backward()
    >>> x.grad.item()
    12.0
    """

    _fills_zeros: ClassVar[bool] = True  # False: `backward` gets None for missing gradients
    _accepts_unrounded: ClassVar[bool] = False  # True: gradients of halves may arrive as float32

    @staticmethod
    def _resume_arguments(ctx: Context) -> Sequence[int]:
        """Return the numbers of arguments whose gradients continue sums begun elsewhere.

        `backward` finds the sums so far in `ctx._resumed_gradients`, and returns the totals.
        """
        return ()

    @staticmethod
    @_allow_other_parameters
    def forward(ctx: Context, *args: object) -> object:
        """Compute the results from the arguments; nothing in here is recorded.

        - `ctx`: a `Context`, to keep values for `backward`.
        - `args`: the arguments of `apply`.
        """
        raise NotImplementedError("Function: a subclass must define forward(ctx, ...)")

    @staticmethod
    @_allow_other_parameters
    def backward(ctx: Context, *gradients: Tensor) -> object:
        """Return a gradient for each argument, from one for each result.

        - `ctx`: the `Context` that `forward` got.
        - `gradients`: one for each result.
        """
        raise NotImplementedError("Function: a subclass must define backward(ctx, *gradients)")

    @classmethod
    def apply(cls: type[_FunctionSubclass[*Ts, R]], *args: *Ts) -> R:
        """Return the results of `forward`; gradients flow through them by `backward`.

        - `args`: the arguments of `forward` after `ctx`, by position.
        """
        edges = tuple(edge_to(a._expr) if isinstance(a, Tensor) else None for a in args)
        context = Context(cls.__name__, tuple(e is not None for e in edges))
        before = current()
        context._is_recorded = before.grad
        try:
            set_recording(False)
            returned = cls.forward(context, *args)
        finally:
            restore(before)
        every = returned if isinstance(returned, tuple) else (returned,)
        results = [_require_tensor(cls.__name__, t) for t in every]
        needs = context._needs_others or any(context.needs_input_grad)
        if not results or not current().grad or not needs:
            return returned
        results = [strided(cls.__name__, t) for t in results]
        saved = [None if t is None else strided("save_for_backward", t) for t in context._saved]
        node = FunctionNode(cls.__name__, results[0]._expr.spec, edges)
        node.context, node.function = context, cls
        node.results = [t._expr.spec for t in results]
        node.batched_arguments = _batched_arguments(
            args, [*results, *(t for t in saved if t is not None)]
        )
        outputs = [_attach_differentiable(t, node, i, context, args) for i, t in enumerate(results)]
        context._save(saved, results, outputs, is_batched=bool(node.batched_arguments))
        context._node, context._saved = ref(node), ()
        context._first_saved_values = context._saved_values if node.batched_arguments else ()
        # A tuple or one tensor, as `forward` returned it; each tensor has a tape.
        return cast(R, tuple(outputs) if isinstance(returned, tuple) else outputs[0])


def _batched_arguments(args: Sequence[object], others: Sequence[Tensor]) -> tuple[Expr | None, ...]:
    """Return the arguments' nodes (None: no tensor) if one of all tensors is batched, else ()."""
    nodes = tuple([a._expr if is_strided(a) else None for a in args])
    present = [e for e in nodes if e is not None] + [t._expr for t in others]
    return nodes if tracer_api.is_batched(*present) else ()


def _require_tensor(name: str, t: object) -> Tensor:
    """Return a result of `forward` unchanged. Raises: DTypeError if it is no tensor."""
    if not isinstance(t, Tensor):
        raise DTypeError(f"{name}: forward must return tensors, got {type(t).__name__}")
    return t


def _attach_differentiable(
    t: Tensor, node: FunctionNode, i: int, context: Context, args: tuple[object, ...]
) -> Tensor:
    """Return result `i` on the tape; `t` itself if non-differentiable by mark or dtype."""
    if id(t) in context._constant or t.dtype.kind not in "fc":
        return t
    return attach_output(t, node, i)


def attach_output(t: Tensor, node: FunctionNode, number: int) -> Tensor:
    """Return a tensor over the memory of `t`, on the tape as result `number` of a Function."""
    out = FunctionOutput(node.name, t._expr.spec, (Edge(node, None),))
    out.index, out.accepts_unrounded = number, node.function._accepts_unrounded
    e: Expr = t._expr if t._expr.op is None else attach_lazy_storage(t)
    out.value = e if node.batched_arguments else None
    return create_tensor(create_taped_leaf(e, out))


def create_taped_leaf(e: Expr, tape: Node | None) -> Expr:
    """Return a leaf over the same memory with another tape, or without one."""
    taped_leaf = leaf(e.storage, e.spec, e.strides, e.offset, e.moves)
    taped_leaf.tape = tape
    return taped_leaf


# --- checkpoint ----------------------------------------------------------------------------------


def checkpoint(function: Callable[[*Ts], R], *args: *Ts) -> R:
    """Return `function(*args)` without saving values for gradients: backward runs it again.

    The default generator is put back for the second run, so that it draws the same random numbers.
    Tensors that `function` uses without getting them as arguments receive gradients in `backward`,
    and none from `dt.grad`. Within `dt.vmap` the function runs as always.

    - `function`: a function of tensors and other arguments. It must do the same both times.
    - `args`: its arguments, by position.

    Gradient: it has gradients itself, by the arguments.
    Cost: the forward pass runs twice, in exchange for less memory.
    Raises: ArgumentTypeError if an argument is not a function, and what the function raises;
    CaptureError where it draws random numbers in a captured function, and gradients flow.
    See also: `autograd.saved_tensors_hooks`, `autograd.grad`.

    >>> import dovetail as dt
    >>> x = dt.asarray([0.0, 1.0]).requires_grad_()
    >>> dt.autograd.checkpoint(lambda x: dt.exp(x) * x, x).sum().backward()
    >>> x.grad.tolist()[0]
    1.0
    """
    callable_("checkpoint", function)
    if tracer_api.is_batched(*[a._expr for a in args if is_strided(a)]):
        return function(*args)
    result: R = _Checkpoint.apply(function, *args)
    return result


class _Checkpoint(Function):
    """The user-defined op behind `checkpoint`: its backward runs the function again."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., object], *args: object) -> Any:
        """Run the function; save its tensor arguments and, if it drew numbers, the random state.

        If no argument requires a gradient, the run is recorded to learn which results require one,
        because the function uses others that do.
        Raises: CaptureError, if it draws random numbers in a captured function and gradients flow.
        """
        ctx.function = function
        ctx.args = [a if isinstance(a, Tensor) else None for a in args]
        ctx.save_for_backward(*ctx.args)
        ctx.args = [None if isinstance(a, Tensor) else a for a in args]
        state, ctx.autocast = random.get_state(), current().autocast
        needs = any(ctx.needs_input_grad)
        set_recording(ctx._is_recorded and not needs)  # `apply` restores it
        result = function(*args)
        set_recording(False)
        ctx.state = None if random.get_state() == state else state
        every = result if isinstance(result, tuple) else (result,)
        taped = [isinstance(t, Tensor) and t.requires_grad for t in every]
        if not needs and any(taped):
            ctx._needs_others = True
            every = tuple([detach(t) if isinstance(t, Tensor) else t for t in every])
            ctx.mark_non_differentiable(*[t for t, on in zip(every, taped, strict=True) if not on])
            result = every if isinstance(result, tuple) else every[0]
        if needs or ctx._needs_others:
            _refuse_captured_random_numbers(ctx)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Run the function again, recorded, and backpropagate through it to its arguments.

        Unless gradients are recorded, other tensors that it uses get theirs added to `grad`.
        """
        deep, saved = current().grad, ctx.saved_tensors
        needed = ctx.needs_input_grad[1:]
        again = [
            plain if kept is None else _rerun_argument(kept, needs, deep)
            for kept, plain, needs in zip(saved, ctx.args, needed, strict=True)
        ]
        outputs = _rerun_function(ctx, again)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (t, g) for t, g in zip(outputs, gradients, strict=True) if t._expr.tape is not None
        ]
        inputs = [t for t, needs in zip(again, needed, strict=True) if needs]
        if not pairs or not deep:
            backward([t for t, _ in pairs], [g for _, g in pairs])
            grads = [t.grad for t in inputs]
        else:
            grads = [
                *grad(
                    [t for t, _ in pairs],
                    inputs,
                    [g for _, g in pairs],
                    create_graph=True,
                    allow_unused=True,
                )
            ]
        remaining = iter(grads)
        return (None, *(next(remaining) if needs else None for needs in needed))


def _refuse_captured_random_numbers(ctx: Any) -> None:
    """Raise CaptureError if the function of a checkpoint drew random numbers in a capture."""
    if ctx.state is not None and tracer_api.current() is not None:
        raise CaptureError(
            "checkpoint: the function must not draw random numbers in a captured function, "
            "which cannot draw the same numbers again; draw them outside and pass them as an "
            "argument"
        )


def _rerun_argument(argument: Tensor, needs: bool, create_graph: bool) -> Tensor:
    """Return an argument for the second run: detached, or an input of its own if it `needs` it."""
    if not needs:
        return detach(argument)
    return inputs_of([argument])[0] if create_graph else requires_grad_(detach(argument))


def _rerun_function(ctx: Any, args: list[Any]) -> Any:
    """Run the function again, recorded, with the random state and autocast of the first run."""
    before, state = current(), random.get_state()
    try:
        set_recording(True)
        set_autocast(ctx.autocast)
        if ctx.state is not None:
            random.set_state(ctx.state)
        return ctx.function(*args)
    finally:
        restore(before)
        if ctx.state is not None:
            random.set_state(state)
