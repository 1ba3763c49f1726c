"""Which of the user's lines recorded what is pending: `dt.debug_lines`.

While nobody asks nothing is noted, and recording takes no step more: blocks that ask set
`flags.depth`, as those do in which each op runs at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from ..graph.expr import Expr
from ..memory.tracing.stacktrace import caller
from ..settings import Switch
from . import events

__all__ = ["debug_lines"]

SHOWN = 6  # lines of an error
_lines: WeakKeyDictionary[Expr, str] = WeakKeyDictionary()


def note(e: Expr) -> None:
    """Notes the line that has just made a pending node."""
    if e.op is not None:
        _lines[e] = f"{e.op.name} at {caller()}"


def line_of(e: Expr) -> str | None:
    """The op and the line of a node; None where nobody asked for it to be noted."""
    return _lines.get(e) if _lines else None


def say(error: BaseException, nodes: Sequence[Expr]) -> None:
    """Adds to an error where what was being computed was recorded, the latest first."""
    if not _lines:
        return
    found = [line for e in reversed(nodes) if (line := _lines.get(e)) is not None]
    known = [*dict.fromkeys(found)]
    if known:
        more = f", and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
        error.add_note(f"It was computing what was recorded by: {', '.join(known[:SHOWN])}{more}")


class debug_lines(Switch):
    """A context in which each op notes the line that recorded it, for errors when it runs.

    An error that comes while pending work is computed, perhaps far from there, has a note with the
    ops and the lines of the user's that recorded them; `dt.draw_graph` shows them, too. `start()`
    and `stop()` do the same without a block. It is of this thread, or asyncio task, alone; outside
    of it nothing is noted, which costs nothing. It can be a decorator.

    >>> import dovetail as dt
    >>> with dt.debug_lines():
    ...     y = dt.ones(3, device="reference") * 2
    >>> "recorded by multiply" in dt.draw_graph(y).svg()
    True
    """

    def __init__(self) -> None:
        super().__init__(lines=True)

    def __enter__(self) -> debug_lines:
        events.watch(1)
        return super().__enter__()

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        events.watch(-1)

    def start(self) -> None:
        """From here on, until `stop`."""
        self.__enter__()

    def stop(self) -> None:
        """Ends what `start` began."""
        self.__exit__()
