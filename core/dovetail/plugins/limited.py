"""Calls of a plugin with a time limit.

A call runs in a daemon thread, so that the caller can stop waiting for it. An exception of the
plugin there, KeyboardInterrupt included, is its answer; the user's Ctrl-C interrupts the caller.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import copy_context
from threading import Thread
from typing import Any

from .. import environment
from ..errors import PluginError

SECONDS_VARIABLE = "DOVETAIL_PROBE_SECONDS"
SECONDS_DEFAULT, SECONDS_MIN, SECONDS_MAX = 30, 0.01, 86_400


def call_with_time_limit(
    call_name: str, work: Callable[[], Any]
) -> tuple[Any, BaseException | None]:
    """Run `work` in a thread; return (result, None) or (None, its error or a timeout's).

    It is a PluginError, with the stack of the call, if that takes longer than the time limit.
    `call_name`: the call, for that error.
    """
    answer: list[tuple[Any, BaseException | None]] = []
    seconds = environment.read_float(SECONDS_VARIABLE, SECONDS_DEFAULT, SECONDS_MIN, SECONDS_MAX)
    context = copy_context()

    def run() -> None:
        """Append the result and None, or None and the error, to `answer`."""
        try:
            answer.append((context.run(work), None))
        except BaseException as error:
            answer.append((None, error))

    thread = Thread(target=run, name=f"dovetail: {call_name}", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread can be started while the interpreter ends
        return call_catching(work)
    thread.join(seconds)
    return answer[0] if answer else (None, _build_timeout_error(call_name, seconds, thread))


def call_catching(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Run `work` in this thread; return (its result, None) or (None, its error).

    Raises: KeyboardInterrupt, which is the user's in the thread that waits.
    """
    try:
        return work(), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, error


def _build_timeout_error(call_name: str, seconds: float, thread: Thread) -> PluginError:
    """Build the PluginError of a call past its limit, with the thread's current stack."""
    import traceback  # 1 ms, which `import dovetail` need not pay

    error = PluginError(
        f"{call_name} did not return within {seconds:g} s; set {SECONDS_VARIABLE} for another limit"
    )
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is not None:
        error.add_note("It was executing:\n" + "".join(traceback.format_stack(frame)))
    return error
