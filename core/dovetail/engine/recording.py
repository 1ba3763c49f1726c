"""Who is told of what evaluation does to memory while a function is captured.

That is the recorder of the thread that captures it.

`active` is looked at wherever something is skipped for speed: while anybody records, nothing is.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from ..errors import CaptureError
from ..graph.expr import Args, Expr
from ..memory.storage import Storage
from ..memory.tracing import caller
from ..settings import flags

if TYPE_CHECKING:
    from collections.abc import Callable

    from .evaluate import Evaluation


class Recorder(Protocol):
    """What is told."""

    def run(self, evaluation: Evaluation, asked: bool) -> None:
        """Does an evaluation, or pretends to, and notes its launches."""

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

    def act(self, action: Callable[[], object]) -> None:
        """Does something that every replay is to do in the same place."""


class _OfThread(threading.local):
    recorder: Recorder | None = None


_mine = _OfThread()
# The default random generator's, set by `functions`: numbers that a replay reserves anew.
default_reserve: Callable[[int], tuple[int, int]] | None = None
_counting = threading.Lock()
active = 0  # recorders that are in use, on any thread


def current() -> Recorder | None:
    """The recorder of this thread."""
    return _mine.recorder if active else None


def become(recorder: Recorder | None) -> Recorder | None:
    """Makes this the recorder of this thread; the one before, to be put back in a `finally`."""
    global active
    before = _mine.recorder
    with _counting:
        change = (recorder is not None) - (before is not None)
        active += change
        flags.noted += change
        _mine.recorder = recorder
    return before


def refuse(what: str) -> None:
    """Returns where nothing is being captured. Raises: CaptureError, on behalf of a host read."""
    if active and _mine.recorder is not None:
        raise CaptureError(
            f"dt.jit: {what} at {caller()}, while a function is captured: its values are not known "
            "then, only shapes and dtypes are. Choose with dt.where or dt.cond, repeat with "
            "dt.while_loop, dt.fori_loop or dt.scan, pass what is to be a Python value as a static "
            "argument (static_argnames), or do it outside of the function"
        )
