"""Tracers: what sees the work of a thread while it captures a function, or maps or reads it.

While any thread has a tracer, `flags.captures` is not 0, and no fast path skips the tracer.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from threading import get_ident
from typing import TYPE_CHECKING, Protocol, TypeVar, TypeVarTuple

from ..errors import CaptureError
from ..graph.expr import Args, Expr
from ..locks import Lock
from ..memory.storage import Storage
from ..memory.tracing.stacktrace import caller_line
from ..settings import flags
from ..weak_identity_map import WeakIdentityMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from types import FrameType
    from typing import Any, TypeAlias

    from ..backend.interface import Scalar, StreamHandle
    from ..ops.host_routines import HostCall
    from ..tensor.tensor import Tensor
    from .batched_write import BatchedWrite
    from .evaluation import Evaluation
    from .launching import BoundKernel

    # Takes handle and offset of each leaf, numbers and a stream.
    Work: TypeAlias = Callable[[list[Any], Sequence[Scalar], StreamHandle], object]
    # Takes the gradient of a result, and saved tensors; returns a gradient of each operand.
    BackwardFunction: TypeAlias = Callable[[Tensor, Sequence[Tensor]], Sequence[Tensor | None]]
    # From what an iteration carries in and its row of xs to what it carries out and its ys.
    LoopBody: TypeAlias = Callable[
        [list[Tensor], list[Tensor]], tuple[Sequence[Tensor], Sequence[Tensor]]
    ]

    class Scan(Protocol):
        """A function that runs a loop body over `xs`; `reverse` starts with the last row."""

        def __call__(
            self,
            body: LoopBody,
            carry: Sequence[Tensor],
            xs: Sequence[Tensor],
            length: int,
            reverse: bool,
            closure: Sequence[Tensor] | None = None,
        ) -> tuple[list[Tensor], list[Tensor]]: ...


P = TypeVarTuple("P")
R = TypeVar("R")
T = TypeVar("T")


class StandIn:
    """An object in place of a tensor whose shape depends on values, while a function is traced."""

    __slots__ = ()

    def read(self) -> Tensor:
        """Return the tensor; the host reads values. Raises: CaptureError if it may not."""
        raise NotImplementedError


def read_stand_in(x: T) -> T | Tensor:
    """Return the tensor of a stand-in; others unchanged."""
    return x.read() if isinstance(x, StandIn) else x


class Tracer(ABC):
    """A function that is being traced: what it does goes here and not to memory.

    The parts: memory; random numbers and others that the host gives; hooks of gradients; nodes that
    stand for many examples (`dt.vmap`), of which there are none by default.
    """

    outer: Tracer | None = None  # the tracer of the thread when this one was made
    mask: Tensor | None = None  # of the examples that may write; None: all of them

    # --- memory

    @property
    def is_capture(self) -> bool:
        """Return True if this or an outer tracer builds a program to replay with other values."""
        return self.outer is not None and self.outer.is_capture

    @abstractmethod
    def run(self, evaluation: Evaluation, reports_checks: bool) -> bool:
        """Run or trace an evaluation; return False, with nothing done, if the target overlaps."""

    def run_batch(self, write: BatchedWrite) -> bool:
        """Run or trace a batched write; return False, unwritten, if the caller must write singly.

        By default each is refused.
        """
        return False

    def record_allocation(self, storage: Storage) -> None:
        """Report to the outer tracer, if any, that memory without contents was allocated."""
        if self.outer is not None:
            self.outer.record_allocation(storage)

    def record_fill(self, storage: Storage, values: bytes) -> None:
        """Report to the outer tracer, if any, that the host has put these values into memory."""
        if self.outer is not None:
            self.outer.record_fill(storage, values)

    def record_array(self, array: Any) -> None:
        """Report to the outer tracer, if any, that a tensor was made from an array's values."""
        if self.outer is not None:
            self.outer.record_array(array)

    def record_constant(self, x: Tensor) -> None:
        """Report to the outer tracer, if any, a tensor that the function may keep.

        No path of the function's closure leads to it.
        """
        if self.outer is not None:
            self.outer.record_constant(x)

    def knows_leaf(self, e: Expr) -> bool:
        """Return True if this or an outer tracer knows a leaf without contents or placeholder."""
        return self.outer is not None and self.outer.knows_leaf(e)

    @abstractmethod
    def evaluate_earlier(self, e: Expr) -> None:
        """Evaluate a pending expression if it was created before the function was traced."""

    @abstractmethod
    def launch(
        self, step: BoundKernel, leaves: Sequence[Expr], numbers: Sequence[Scalar], line: str | None
    ) -> None:
        """Launch or record a kernel over leaves; `line` is the user's line in its errors."""

    @abstractmethod
    def call(
        self,
        name: str,
        source: str,
        work: Work,
        leaves: Sequence[Expr],
        written: Sequence[int],
        numbers: Sequence[Scalar],
    ) -> None:
        """Call, or record, `work` with the addresses of leaves, with numbers and a stream."""

    def call_host(
        self, call: HostCall, operands: Sequence[Expr], into: Expr | None
    ) -> Sequence[Expr] | None:
        """Run a host routine and return its results, or None if the caller must run it.

        `into`: a leaf that gets the result, where the routine gives one; else new memory does.
        None is returned where the caller runs the routine: nothing is recorded.
        """
        return None if self.outer is None else self.outer.call_host(call, operands, into)

    @abstractmethod
    def refuse_read(self, what: str, tensors: Sequence[Tensor]) -> None:
        """Raise CaptureError or TransformError unless the host may read these tensors."""

    def has_constant_value(self, x: Tensor) -> bool:
        """Return True if the host may read a tensor, which has the same value in each call.

        By default it may read none.
        """
        return False

    def record_value_guard(self, x: Tensor) -> bool:
        """Record a guard on the value of a tensor that the host reads; return False if impossible.

        By default it is.
        """
        return False

    def has_equal_number(self, a: Expr, b: Expr, k: int) -> bool:
        """Return True if argument `k` of two nodes is a number that is equal in each call."""
        return self.outer is not None and self.outer.has_equal_number(a, b, k)

    # --- random numbers, and others that the host gives
    @abstractmethod
    def draw(self, reserve: Callable[[], tuple[int, int]]) -> tuple[int, int]:
        """Return two numbers of a random stream from `reserve`; each replay calls it again."""

    @abstractmethod
    def mark_drawn(self, args: Args) -> None:
        """Mark the first two of a node's arguments as the numbers that were drawn last."""

    def read_numbers(self, read: Callable[[], Sequence[float]], count: int) -> Sequence[float]:
        """Return the `count` numbers that `read` gives; a capture calls it again in each replay."""
        return read() if self.outer is None else self.outer.read_numbers(read, count)

    @property
    def records_draws(self) -> bool:
        """Return True if samples of the host's generators can be recorded; by default not."""
        return False

    def record_own_generator(self, generator: object) -> None:  # noqa: B027
        """Record a generator of the host that the function seeds with a constant."""

    def moving_generator(self, generator: object) -> AbstractContextManager[None]:
        """Return a context in which a draw or seed, recorded or constant, moves a generator.

        Each call must find the generator again. A capture ends if anything else moves it.
        """
        return nullcontext()

    def record_draw(self, draw: Callable[[], Any], samples: Any) -> Expr:
        """Return a leaf of samples, an array that `draw` gave; each replay calls it again.

        Raises: CaptureError unless `records_draws`.
        """
        raise capture_error("a draw of NumPy")

    def run_effect(self, action: Callable[[], object]) -> None:
        """Run an action; a capture also records it, for each replay at the same position."""
        if self.outer is None:
            action()
        else:
            self.outer.run_effect(action)

    # --- hooks of gradients
    def record_hook(self, e: Expr) -> None:  # noqa: B027 - the default does nothing
        """Record that the gradient of a node has a hook.

        A captured function needs no record: its hooks are found along the tape.
        """

    def check_retaped(self, e: Expr) -> None:  # noqa: B027 - no default check
        """Raise UnrolledLoop if a write to `e` in a loop's body retapes a tensor from outside.

        By default nothing is checked.
        """

    def check_grad(self, order: int) -> None:  # noqa: B027 - no default check
        """Raise UnrolledLoop if a loop's body sets the `grad` of a tape node older than the body.

        `order`: that of the node. By default nothing is checked.
        """

    # --- nodes that stand for many examples
    def call_batched(
        self, function: Callable[..., Sequence[Tensor]], tensors: Sequence[Tensor]
    ) -> Sequence[Tensor] | None:
        """Call a function of batches on tensors; return its results, or None if none is batched.

        After None, the caller calls the function itself. By default none is.
        """
        return None

    def is_batched(self, *exprs: Expr) -> bool:
        """Return True if any of these nodes stands for one example of a batch."""
        return False

    def is_true_for_any(self, x: Tensor) -> bool:
        """Return True if a bool is true for any writing example; by default raise CaptureError."""
        raise capture_error("a bool of a tensor")

    def use_write_mask(self, mask: Tensor) -> AbstractContextManager[None]:
        """Return a context in which only examples of `mask` and the current mask write.

        By default it has no effect.
        """
        return nullcontext()


class BatchTracer(ABC):
    """The interface to the batches of a tracer of a function of one example, that of `vmap`."""

    @abstractmethod
    def run_outside(self, action: Callable[[], T]) -> T:
        """Run an action outside of the mapped function, gradients recorded; return its result."""

    @abstractmethod
    def is_batched_tensor(self, x: Tensor) -> bool:
        """Return True if a tensor is not the same for each example."""

    @abstractmethod
    def full_batch(self, x: Tensor) -> Tensor:
        """Return the tensor of all examples, with the batch axis first, without gradients."""

    @abstractmethod
    def create_example(self, batch: Tensor, is_argument: bool = False) -> Tensor:
        """Return a tensor that stands for one example; a write to an argument writes to `batch`."""

    @abstractmethod
    def adopt_tensor(self, x: Tensor) -> Tensor:
        """Mark a tensor's memory as created by the mapped function, and return the tensor."""

    @abstractmethod
    def check_pending_reads(self) -> None:
        """Evaluate all examples' nodes. Raises: UnrolledLoop if one reads overwritten memory."""

    @abstractmethod
    def iteration_scope(self) -> AbstractContextManager[BatchTracer]:
        """Return a context that traces a loop's body; a write to older memory raises UnrolledLoop.

        The body is captured by the current tracer.
        """


class UnrolledLoop(BaseException):
    """Raised where a loop of examples cannot be one loop of all of them.

    No `Exception`, because the body of a loop must not catch it. `storage`: the memory that is
    written there, if a write is the reason.
    """

    def __init__(self, storage: Storage | None = None) -> None:
        super().__init__()
        self.storage = storage


class Tapes(Protocol):
    """The services of autograd for captured functions."""

    def order(self) -> int:
        """Take and return an order number above that of each tape node so far."""

    def has_direct_paths(self, result: Tensor, sources: Sequence[Tensor]) -> bool:
        """Return True if gradients flow from a result to `sources` alone, to each on one path.

        No hook sees what passes. With several paths the parts would be added in another order.
        """

    def gradients(
        self, result: Tensor, sources: Sequence[Tensor], g: Tensor
    ) -> Sequence[Tensor | None]:
        """Return the gradients of `sources`, None where none flows, from `g` of the result.

        The tape is kept. Raises: GradientError.
        """

    def attach(
        self,
        name: str,
        result: Tensor,
        sources: Sequence[Tensor],
        saved: Sequence[Tensor],
        backward: BackwardFunction,
    ) -> None:
        """Let gradients flow from a result to `sources` by `backward`, which reads `saved`."""

    def run_loop(
        self,
        scan: Scan,
        body: LoopBody,
        rerun_body: LoopBody,
        carry: Sequence[Tensor],
        xs: Sequence[Tensor],
        length: int,
        reverse: bool,
        closure: Sequence[Tensor],
        find_untaped_reads: Callable[[], Sequence[Tensor]],
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Run a loop and its way back as one loop each; return the last carry and the stacked ys.

        Gradients flow through it. `rerun_body`: the body, for the way back. `closure`: tensors with
        gradients that the body may find outside of the loop. `find_untaped_reads`: when the loop
        has run, gives other tensors that it has read, which must not be written before the way
        back.
        Raises: UnrolledLoop, if it cannot be one loop.
        """


_constants: WeakIdentityMap[Storage, bool] = WeakIdentityMap()  # see `dt.constant`


# --- the tracer of a thread -----------------------------------------------------------------------


class _Scope:
    """A call whose work goes to a tracer (or, if that is None, to memory), within `outer`."""

    __slots__ = ("outer", "tracer")

    def __init__(self, tracer: Tracer | None, outer: _Scope | None) -> None:
        self.tracer, self.outer = tracer, outer


_scopes: dict[int, _Scope] = {}  # the innermost one of each thread that has one
_changing_scopes = Lock()
# The scope in whose `Context.run` this thread is. C code puts the old value back when the call
# ends, however that ends; so the two differ once an interrupt has ended a call without clean-up.
_entered: ContextVar[_Scope | None] = ContextVar("dovetail tracer", default=None)


def current() -> Tracer | None:
    """Return the innermost tracer of this thread, or None if its work goes to memory."""
    if not flags.captures:
        return None
    scope = _scopes.get(get_ident())
    if scope is not None and scope is _entered.get():  # as in most calls
        return scope.tracer
    scope = _current_scope()
    if scope is None:
        if not _scopes:  # an interrupt came before `flags.captures` was set
            _changing_scopes.held(_set_scope, (get_ident(), None))
        return None
    return scope.tracer


def _current_scope() -> _Scope | None:
    """Return this thread's innermost live scope, or None; drop scopes left by an interrupt."""
    thread = get_ident()
    scope = _scopes.get(thread)
    if scope is _entered.get():
        return scope
    alive = scope
    while alive is not None and not _is_on_stack(alive):
        alive = alive.outer
    if alive is not scope:
        _changing_scopes.held(_set_scope, (thread, alive))
    return alive


def _is_on_stack(scope: _Scope) -> bool:
    """Return True if the call of `run_traced` that has made a scope still runs in this thread."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code is run_traced.__code__ and frame.f_locals.get("scope") is scope:
            return True
        frame = frame.f_back
    return False


def _set_scope(thread: int, scope: _Scope | None) -> None:
    """Set a thread's innermost scope (None removes it), recount `flags.captures`; needs a lock."""
    if scope is None:
        _scopes.pop(thread, None)
    else:
        _scopes[thread] = scope
    captures = 0
    for other in tuple(_scopes.values()):
        if other.tracer is not None:
            captures += 1
    flags.captures = captures


def run_traced(
    tracer: Tracer | None, function: Callable[[*P], R], *args: *P, isolated: bool = False
) -> R:
    """Return `function(*args)`, whose work goes to `tracer`; to memory if that is None.

    The call runs in a copy of the thread's context, which C code leaves when the call ends. So an
    interrupt at any instruction leaves neither a tracer nor settings behind: `current` drops a
    scope whose call has ended. What the function has set in the context is kept after it returns,
    unless it is `isolated`.
    """
    thread, outer = get_ident(), _current_scope()
    scope = _Scope(tracer, outer)
    context = copy_context()
    context.run(_entered.set, scope)
    try:
        _changing_scopes.held(_set_scope, (thread, scope))
        result = context.run(function, *args)
    finally:
        _changing_scopes.held(_set_scope, (thread, outer))
    if not isolated:
        for variable, value in context.items():
            if variable is not _entered and variable.get(None) is not value:
                variable.set(value)
    return result


@contextmanager
def recorded_by(tracer: Tracer | None) -> Iterator[None]:
    """Return a context in which this thread's work goes to `tracer`; to memory if that is None.

    `run_traced` is sound if an interrupt comes as the block ends; this is so within it alone.
    """
    thread, outer = get_ident(), _current_scope()
    scope = _Scope(tracer, outer)
    try:
        _entered.set(scope)
        _changing_scopes.held(_set_scope, (thread, scope))
        yield
    finally:
        _changing_scopes.held(_set_scope, (thread, outer))
        _entered.set(outer)


def stop_tracing(tracer: Tracer) -> bool:
    """Let this thread's work go to memory from now on, and not to `tracer`.

    Return False, with nothing done, unless it is the thread's only tracer, of its innermost call.
    """
    scope = _current_scope()
    if scope is None or scope.tracer is not tracer:
        return False
    outer = scope.outer
    while outer is not None:
        if outer.tracer is not None:
            return False
        outer = outer.outer
    scope.tracer = None
    _changing_scopes.held(_set_scope, (get_ident(), scope))
    return True


def is_captured() -> bool:
    """Return True while a function is captured, also within `vmap` in it."""
    tracer = current()
    return tracer is not None and tracer.is_capture


def keep_constant(storage: Storage) -> None:
    """Register a storage so that captures may keep it without a path from their closures."""
    _constants.purge()
    _constants[storage] = True


def is_constant(storage: Storage) -> bool:
    """Return True if `keep_constant` has registered this storage."""
    return storage in _constants


def record_array(array: Any) -> None:
    """Report to the thread's tracer, if any, that a tensor is made from the values of an array."""
    if (tracer := current()) is not None:
        tracer.record_array(array)


def refuse_read(what: str, *tensors: Tensor) -> None:
    """Raise CaptureError, or TransformError under `vmap`, if the host may not read these tensors.

    Without tensors: if a function is captured.
    """
    if (tracer := current()) is not None:
        tracer.refuse_read(what, tensors)


def require_value(what: str, x: Tensor, may_guard: bool = False) -> None:
    """Raise an error, as `refuse_read`, unless the host may read the value of a tensor.

    `may_guard`: allow the read if replays can compare the value (`Tracer.record_value_guard`).
    """
    tracer = current()
    if (
        tracer is None
        or tracer.has_constant_value(x)
        or (may_guard and tracer.record_value_guard(x))
    ):
        return
    tracer.refuse_read(what, (x,))


READ_ADVICE = (
    "Choose with dt.where or dt.cond, repeat with dt.while_loop, dt.fori_loop or dt.scan, pass "
    "what is to be a Python value as a static argument (static_argnames), or do it outside of the "
    "function"
)


def capture_error(what: str) -> CaptureError:
    """Build the error for a captured function in which `what` needs values."""
    return CaptureError(
        f"dt.jit: {what} at {caller_line()}, while a function is captured: its values are not "
        f"known then, only shapes and dtypes are. {READ_ADVICE}"
    )


def call_batched(
    function: Callable[..., Sequence[Tensor]], tensors: Sequence[Tensor]
) -> Sequence[Tensor] | None:
    """Call a function of batches on tensors; return its results, or None if none is batched.

    After None, the caller calls the function itself.
    """
    tracer = current()
    return None if tracer is None else tracer.call_batched(function, tensors)


def call_on_batch(function: Callable[[Tensor], T], x: Tensor) -> T:
    """Return `function(x)`; under `vmap` its plain result for the outermost batch."""
    values: list[T] = []

    def look_outside(all_of_x: Tensor) -> tuple[Tensor, ...]:
        """Append `function` of the outermost batch to `values`; recurse through nested `vmap`."""
        if call_batched(look_outside, (all_of_x,)) is None:
            values.append(function(all_of_x))
        return ()

    look_outside(x)
    return values[0]


def use_write_mask(mask: Tensor | None) -> AbstractContextManager[None]:
    """Return a context in which only examples of `mask` write in place; None: unchanged."""
    tracer = current()
    return nullcontext() if tracer is None or mask is None else tracer.use_write_mask(mask)


def current_write_mask() -> Tensor | None:
    """Return the bool tensor of the examples that may write in place, or None if all may."""
    tracer = current()
    return None if tracer is None else tracer.mask


def is_batched(*exprs: Expr) -> bool:
    """Return True if any of these nodes stands for one example of a `vmap` batch."""
    tracer = current()
    return tracer is not None and tracer.is_batched(*exprs)
