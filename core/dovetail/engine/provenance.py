"""The user's lines that recorded pending nodes: `dt.record_lines`.

By default nothing is stored, and recording takes no extra step. Blocks of `record_lines` set
`flags.depth`, like the modes that run each op at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from ..graph.expr import Expr
from ..memory.tracing.stacktrace import caller_line
from ..settings import Switch
from . import events

__all__ = ["record_lines"]

ERROR_LINES_MAX = 6  # lines in an error message
_lines: WeakKeyDictionary[Expr, str] = WeakKeyDictionary()


def record_line(e: Expr) -> None:
    """Store the op and the calling user's line for a node, if it is pending."""
    if e.op is not None:
        _lines[e] = f"{e.op.name} at {caller_line()}"


def line_of(e: Expr) -> str | None:
    """Return "op at line" of a node, or None if no `record_lines` was active."""
    return _lines.get(e) if _lines else None


def add_lines_to_error(error: BaseException, nodes: Sequence[Expr]) -> None:
    """Add a note to an error with the recorded lines of these nodes, if any, latest first."""
    if not _lines:
        return
    latest_lines = [line for e in reversed(nodes) if (line := _lines.get(e)) is not None]
    recorded = [*dict.fromkeys(latest_lines)]
    if recorded:
        more = (
            f", and {len(recorded) - ERROR_LINES_MAX} more"
            if len(recorded) > ERROR_LINES_MAX
            else ""
        )
        error.add_note(
            "It was computing expressions recorded by: "
            f"{', '.join(recorded[:ERROR_LINES_MAX])}{more}"
        )


class record_lines(Switch):
    """A context that stores the line that records each op, for errors when the op runs.

    An error during the evaluation of pending work, perhaps far from those lines, gets a note with
    the ops and the user's lines that recorded them. `dt.draw_graph` shows them, too. `start()` and
    `stop()` work without a block. It applies to this thread, or asyncio task, alone. It can be a
    decorator.

    >>> import dovetail as dt
    >>> with dt.record_lines():
    ...     y = dt.ones(3) * 2
    >>> "recorded by multiply" in dt.draw_graph(y).svg()
    True
    """

    def __init__(self) -> None:
        super().__init__(records_lines=True)

    def __enter__(self) -> record_lines:
        events.change_slow_path_blocks(1)
        return super().__enter__()

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        events.change_slow_path_blocks(-1)

    def start(self) -> None:
        """Start to store lines, until `stop`."""
        self.__enter__()

    def stop(self) -> None:
        """Stop what `start` began."""
        self.__exit__()
