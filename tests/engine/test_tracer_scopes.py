"""The tracer of a thread: `recording.run_traced` installs and removes it, in one C call."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar, copy_context

import dovetail as dt
import pytest
from dovetail.capture.tracer import CaptureTracer
from dovetail.device_class import device
from dovetail.engine import tracer_api
from dovetail.settings import current, flags

LEVEL: ContextVar[int] = ContextVar("level", default=0)


def recorder() -> CaptureTracer:
    return CaptureTracer(device("reference"), is_dry=True)


def test_scope_left_by_an_interrupt_is_dropped_at_the_next_lookup() -> None:
    def leave() -> None:
        tracer_api._entered.set(left)
        tracer_api._set_scope(threading.get_ident(), left)
        assert tracer_api.current() is left.tracer

    left = tracer_api._Scope(recorder(), None)
    # the state after an interrupt: the context has ended, the scope has not
    copy_context().run(leave)
    assert flags.captures == 1
    assert tracer_api.current() is None and flags.captures == 0


def test_inner_scope_left_by_an_interrupt_yields_to_the_outer_one() -> None:
    def outside() -> None:
        left = tracer_api._Scope(inner, tracer_api._current_scope())
        copy_context().run(tracer_api._entered.set, left)
        tracer_api._set_scope(threading.get_ident(), left)
        assert tracer_api.current() is outer

    outer, inner = recorder(), recorder()
    tracer_api.run_traced(outer, outside)
    assert tracer_api.current() is None and flags.captures == 0


def test_capture_count_is_corrected_after_an_interrupt() -> None:
    flags.captures = 1  # an interrupt came between the removal of a scope and the count
    assert tracer_api.current() is None and flags.captures == 0


def test_tracer_is_active_in_a_context_copied_before_it() -> None:
    tracer, earlier = recorder(), copy_context()
    assert tracer_api.run_traced(tracer, earlier.run, tracer_api.current) is tracer
    assert tracer_api.current() is None


def test_task_that_outlives_its_capture_has_no_tracer() -> None:
    async def later() -> object:
        await asyncio.sleep(0)
        return tracer_api.current()

    async def main() -> tuple[object, object]:
        task = tracer_api.run_traced(recorder(), asyncio.ensure_future, later())
        return tracer_api.current(), await task

    assert asyncio.run(main()) == (None, None)


def test_thread_with_the_context_has_no_tracer() -> None:
    def seen_by_a_thread() -> object:
        seen: list[object] = []
        context = copy_context()
        thread = threading.Thread(
            target=lambda: context.run(lambda: seen.append(tracer_api.current()))
        )
        thread.start()
        thread.join()
        return seen

    assert tracer_api.run_traced(recorder(), seen_by_a_thread) == [None]


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
    tracer_api.run_traced(None, dt.no_grad().__enter__, isolated=True)
    assert current() is before


def test_error_of_a_traced_function_removes_the_tracer() -> None:
    with pytest.raises(ZeroDivisionError):
        tracer_api.run_traced(recorder(), lambda: 1 // 0)
    assert tracer_api.current() is None and flags.captures == 0
