"""Who is told of what evaluation does to memory while a function is captured.

That is the recorder of the thread that captures it.

`flags.captures` is looked at wherever something is skipped for speed: while anybody records,
nothing is.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable
from weakref import ref

from ..errors import CaptureError
from ..graph.expr import Args, Expr
from ..locks import Lock
from ..memory.callers import caller
from ..memory.storage import Storage
from ..settings import flags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypeAlias

    from ..backend.interface import Scalar, StreamHandle
    from ..ops.host_routines import HostCall
    from ..tensor.tensor import Tensor
    from .evaluate import Evaluation
    from .programs import BoundStep

    # What is called with handle and offset of each leaf, numbers and a stream.
    Work: TypeAlias = Callable[[list[Any], Sequence[Scalar], StreamHandle], object]
    # From the gradient of a result, and what was saved, to one for each of what was given.
    Back: TypeAlias = Callable[[Tensor, Sequence[Tensor]], Sequence[Tensor | None]]
    # From what an iteration carries in and its row of xs to what it carries out and its ys.
    LoopBody: TypeAlias = Callable[
        [list[Tensor], list[Tensor]], tuple[Sequence[Tensor], Sequence[Tensor]]
    ]

    class Scan(Protocol):
        """Runs a body: of what is carried first, xs, how many and whether from the last one on."""

        def __call__(
            self, body: LoopBody, carry: Sequence[Tensor], xs: Sequence[Tensor], length: int,
            reverse: bool, closure: Sequence[Tensor] | None = None,
        ) -> tuple[list[Tensor], list[Tensor]]: ...  # fmt: skip


T = TypeVar("T")


class Recorder(Protocol):
    """What is told."""

    @property
    def is_capture(self) -> bool:
        """Return True if a program is made: values may differ when it is replayed."""

    @property
    def mask(self) -> Tensor | None:
        """Return the mask of the examples that may write, or None if all of them may."""

    def run(self, evaluation: Evaluation, asked: bool) -> bool:
        """Does an evaluation, or pretends to, and notes its launches. What it says: as that."""

    def born(self, storage: Storage) -> None:
        """Notes memory that has no contents yet."""

    def filled(self, storage: Storage, values: bytes) -> None:
        """Notes that the host has put these values there."""

    def is_earlier(self, e: Expr) -> bool:
        """Whether a pending node was made before the recording began."""

    def settle_earlier(self, e: Expr) -> None:
        """Computes such a node, as what has been done before."""

    def draw(self, reserve: Callable[[], tuple[int, int]]) -> tuple[int, int]:
        """Two numbers of a stream's, which every replay is to reserve anew."""

    def drawn(self, args: Args) -> None:
        """Says that the first two of a node's arguments are those that were drawn last."""

    def launch(
        self, step: BoundStep, leaves: Sequence[Expr], numbers: Sequence[Scalar], line: str | None
    ) -> None:  # fmt: skip
        """Does a launch over leaves, by number, and notes it."""

    def call(
        self, name: str, source: str, work: Work, leaves: Sequence[Expr], written: Sequence[int],
        numbers: Sequence[Scalar],
    ) -> None:  # fmt: skip
        """Calls something with handles and offsets of leaves and numbers, and notes that."""

    def host(
        self, call: HostCall, operands: Sequence[Expr], into: Expr | None
    ) -> Sequence[Expr] | None:
        """Runs a routine of the host over leaves without gaps, and notes it. Returns its results.

        `into`: a leaf that gets the result, where the routine gives one; else new memory does.
        None is returned where the caller runs the routine: nothing is to be noted.
        """

    def read(self, read: Callable[[], Sequence[float]], count: int) -> Sequence[float]:
        """So many numbers that the host gives; every replay asks for them anew in this place."""

    def act(self, action: Callable[[], object]) -> None:
        """Does something that every replay is to do in the same place."""

    def refuse(self, what: str, tensors: Sequence[Tensor]) -> None:
        """Returns where the host may look at these. Raises: CaptureError, on behalf of a read."""

    def lifted(
        self, function: Callable[..., Sequence[Tensor]], given: Sequence[Tensor]
    ) -> Sequence[Tensor] | None:
        """What a function that takes batches in front makes of tensors that stand for many each.

        None where none of them does: it is to be called as always.
        """

    def batches(self, *exprs: Expr) -> bool:
        """Whether any of these nodes stands for many, which are to be computed together."""

    def hooked(self, e: Expr) -> None:
        """Notes that somebody looks at the gradient of a node."""

    def any_of(self, x: Tensor) -> bool:
        """Whether a bool is true of any of the many that it stands for."""

    def selecting(self, mask: Tensor) -> AbstractContextManager[None]:
        """Return a context in which only those examples of `mask` write that do now."""


@runtime_checkable
class BatchTracer(Recorder, Protocol):
    """The recorder of a function of one example that runs for all of them: that of `vmap`."""

    def outside(self, action: Callable[[], T]) -> T:
        """Return what an action gives outside of the function, where gradients are recorded."""

    def differs(self, x: Tensor) -> bool:
        """Return True if a tensor is not the same for each example."""

    def untaped(self, x: Tensor) -> Tensor:
        """Return a tensor of all examples, with an axis of them in front, without gradients."""

    def example(self, many: Tensor, is_argument: bool = False) -> Tensor:
        """Return a tensor that stands for one example; a write to an argument writes to `many`."""

    def adopt(self, x: Tensor) -> Tensor:
        """Return a tensor that was made outside as one that this function made."""

    def settle(self) -> None:
        """Raises: UnrolledLoop, if a pending tensor reads what examples have overwritten since."""

    def iteration(self) -> AbstractContextManager[BatchTracer]:
        """Return a context in which the body of a loop runs, captured by the current recorder."""


class UnrolledLoop(BaseException):
    """Raised where a loop of examples cannot be one loop of all of them.

    No `Exception`, because the body of a loop must not catch it. `storage`: the memory that is
    written there, if a write is the reason.
    """

    def __init__(self, storage: Storage | None = None) -> None:
        super().__init__()
        self.storage = storage


class Tapes(Protocol):
    """What autograd does for captured functions."""

    def lead_straight(self, result: Tensor, given: Sequence[Tensor]) -> bool:
        """Whether gradients flow from a result to these alone, to each on one way.

        Nor does anybody look at what passes. Of several ways the parts would be added up in another
        order.
        """

    def gradients(
        self, result: Tensor, given: Sequence[Tensor], g: Tensor
    ) -> Sequence[Tensor | None]:
        """The gradients of these; the tape stays. Raises: GradientError."""

    def attach(
        self, name: str, result: Tensor, given: Sequence[Tensor], saved: Sequence[Tensor],
        back: Back,
    ) -> None:  # fmt: skip
        """Has gradients flow through a result, on a way that reads what is saved."""

    def run_loop(
        self, scan: Scan, body: LoopBody, again: LoopBody, carry: Sequence[Tensor],
        xs: Sequence[Tensor], length: int, reverse: bool, closure: Sequence[Tensor],
        watched: Callable[[], Sequence[Tensor]],
    ) -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
        """Run a loop through which gradients flow, as one loop; so is their way back.

        `again`: the body, for the way back. `closure`: tensors with gradients that the body may
        find outside of the loop. `watched`: when the loop has run, gives other tensors that it has
        read, which must not be written before the way back.
        Raises: UnrolledLoop, if it cannot be one loop.
        """


class _OfThread(threading.local):
    recorder: Recorder | None = None
    arrays: list[Any] | None = None  # NumPy's, from which the captured function has made tensors


_mine = _OfThread()
# The default random generator's, set by `functions`: numbers that a replay reserves anew.
default_reserve: Callable[[int], tuple[int, int]] | None = None
tapes: Tapes | None = None  # set by `autograd`
_constants: dict[int, ref[Storage]] = {}  # by id: memory that captures keep, see `dt.constant`
_counting = Lock()


def current() -> Recorder | None:
    """The recorder of this thread."""
    return _mine.recorder if flags.captures else None


def is_captured() -> bool:
    """Return True while a function is captured, also within `vmap` in it."""
    recorder = current()
    return recorder is not None and recorder.is_capture


def become(recorder: Recorder | None) -> Recorder | None:
    """Makes this the recorder of this thread; the one before, to be put back in a `finally`."""
    before = _mine.recorder
    with _counting:
        flags.captures += (recorder is not None) - (before is not None)
        _mine.recorder = recorder
    return before


def keep_constant(storage: Storage) -> None:
    """Let captures keep this memory although no path of their closures leads to it."""
    for key in [k for k, r in _constants.items() if r() is None]:
        del _constants[key]
    _constants[id(storage)] = ref(storage)


def is_constant(storage: Storage) -> bool:
    """Return True if captures may keep this memory."""
    known = _constants.get(id(storage))
    return known is not None and known() is storage


@contextmanager
def arrays_seen() -> Iterator[list[Any]]:
    """Give the list of arrays from which this thread makes tensors meanwhile."""
    before = _mine.arrays
    arrays: list[Any] = []
    _mine.arrays = arrays
    try:
        yield arrays
    finally:
        _mine.arrays = before


def see_array(a: Any) -> None:
    """Note that a tensor is made from the values of an array."""
    if _mine.arrays is not None:
        _mine.arrays.append(a)


def refuse(what: str, *tensors: Tensor) -> None:
    """Returns where nothing is being captured, or these may be looked at.

    Raises: CaptureError, on behalf of a host read, of all tensors or of these.
    """
    if flags.captures and (recorder := _mine.recorder) is not None:
        recorder.refuse(what, tensors)


def refused_capture(what: str) -> CaptureError:
    """What a captured function that asks for values is told."""
    return CaptureError(
        f"dt.jit: {what} at {caller()}, while a function is captured: its values are not known "
        "then, only shapes and dtypes are. Choose with dt.where or dt.cond, repeat with "
        "dt.while_loop, dt.fori_loop or dt.scan, pass what is to be a Python value as a static "
        "argument (static_argnames), or do it outside of the function"
    )


def lifted(
    function: Callable[..., Sequence[Tensor]], given: Sequence[Tensor]
) -> Sequence[Tensor] | None:
    """What a function that takes batches in front makes of tensors that stand for many each.

    None where they do not: it is to be called as always.
    """
    recorder = current()
    return None if recorder is None else recorder.lifted(function, given)


def look(function: Callable[[Tensor], T], x: Tensor) -> T:
    """Return what the host finds in a tensor, within `vmap` in that of all examples."""
    values: list[T] = []

    def look_outside(all_of_x: Tensor) -> tuple[Tensor, ...]:
        if lifted(look_outside, (all_of_x,)) is None:
            values.append(function(all_of_x))
        return ()

    look_outside(x)
    return values[0]


@contextmanager
def selecting(mask: Tensor | None) -> Iterator[None]:
    """Yield while only the examples of `mask` write in place; None: all that do now."""
    recorder = current()
    with nullcontext() if recorder is None or mask is None else recorder.selecting(mask):
        yield


def mask() -> Tensor | None:
    """Return the mask of the examples that may write now, or None if all of them may."""
    recorder = current()
    return None if recorder is None else recorder.mask


def batches(*exprs: Expr) -> bool:
    """Whether any of these nodes stands for many, which are to be computed together."""
    recorder = current()
    return recorder is not None and recorder.batches(*exprs)
