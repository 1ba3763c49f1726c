"""The tracer of a thread: `recording.run_traced` installs and removes it, in one C call."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar, copy_context

import dovetail as dt
import pytest
from dovetail.capture.tracer import Recorder
from dovetail.device_class import device
from dovetail.engine import recording
from dovetail.settings import current, flags

LEVEL: ContextVar[int] = ContextVar("level", default=0)


def recorder() -> Recorder:
    return Recorder(device("reference"), dry=True)


def test_scope_left_by_an_interrupt_is_dropped_at_the_next_lookup() -> None:
    def leave() -> None:
        recording._entered.set(left)
        recording._set_scope(threading.get_ident(), left)
        assert recording.current() is left.tracer

    left = recording._Scope(recorder(), None)
    # the state after an interrupt: the context has ended, the scope has not
    copy_context().run(leave)
    assert flags.captures == 1
    assert recording.current() is None and flags.captures == 0


def test_inner_scope_left_by_an_interrupt_yields_to_the_outer_one() -> None:
    def outside() -> None:
        left = recording._Scope(inner, recording._current_scope())
        copy_context().run(recording._entered.set, left)
        recording._set_scope(threading.get_ident(), left)
        assert recording.current() is outer

    outer, inner = recorder(), recorder()
    recording.run_traced(outer, outside)
    assert recording.current() is None and flags.captures == 0


def test_capture_count_is_corrected_after_an_interrupt() -> None:
    flags.captures = 1  # an interrupt came between the removal of a scope and the count
    assert recording.current() is None and flags.captures == 0


def test_tracer_is_active_in_a_context_copied_before_it() -> None:
    tracer, earlier = recorder(), copy_context()
    assert recording.run_traced(tracer, earlier.run, recording.current) is tracer
    assert recording.current() is None


def test_task_that_outlives_its_capture_has_no_tracer() -> None:
    async def later() -> object:
        await asyncio.sleep(0)
        return recording.current()

    async def main() -> tuple[object, object]:
        task = recording.run_traced(recorder(), asyncio.ensure_future, later())
        return recording.current(), await task

    assert asyncio.run(main()) == (None, None)


def test_thread_with_the_context_has_no_tracer() -> None:
    def seen_by_a_thread() -> object:
        seen: list[object] = []
        context = copy_context()
        thread = threading.Thread(
            target=lambda: context.run(lambda: seen.append(recording.current()))
        )
        thread.start()
        thread.join()
        return seen

    assert recording.run_traced(recorder(), seen_by_a_thread) == [None]


def test_context_variables_set_by_a_traced_function_persist() -> None:
    @dt.vmap
    def function(x: dt.Tensor) -> dt.Tensor:
        LEVEL.set(LEVEL.get() + 1)
        return x * 2

    token = LEVEL.set(1)
    assert function(dt.ones((2, 2), device="reference")).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert LEVEL.get() == 2
    LEVEL.reset(token)


def test_settings_of_an_isolated_function_are_restored() -> None:
    before = current()
    recording.run_traced(None, dt.no_grad().__enter__, isolated=True)
    assert current() is before


def test_error_of_a_traced_function_removes_the_tracer() -> None:
    with pytest.raises(ZeroDivisionError):
        recording.run_traced(recorder(), lambda: 1 // 0)
    assert recording.current() is None and flags.captures == 0
