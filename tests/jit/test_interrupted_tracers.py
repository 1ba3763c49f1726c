"""Ctrl-C at any line of a capture, a `vmap`, a loop or a graph leaves the thread intact.

A trace function raises KeyboardInterrupt at the n-th line that runs within dovetail. The error is
kept with the frames of its traceback, as `sys.last_traceback` keeps them. Afterwards no tracer is
left, the settings of the thread are as before, and each tensor has its value from before or after
the statement.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import dovetail as dt
import pytest
from dovetail import locks
from dovetail.capture.tracer import ONE_CAPTURE
from dovetail.engine import tracer_api
from dovetail.extend import Lock, graph_of
from dovetail.settings import current, flags

is_compiled = locks.__file__.endswith((".so", ".pyd"))
PACKAGE = os.path.dirname(dt.__file__)
SAMPLES = 24  # interrupts of a statement in the default run, spread over all of its lines


class Interrupt(KeyboardInterrupt):
    """The interrupt of these tests."""


class Interrupter:
    """A trace function that raises Interrupt at line event `at` within dovetail."""

    def __init__(self, at: int) -> None:
        self.at, self.lines = at, 0

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "call":
            return self if frame.f_code.co_filename.startswith(PACKAGE) else None
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                raise Interrupt
        return self

    def run(self, statement: Callable[[], object]) -> Interrupt | None:
        """Run a statement; return the interrupt that ended it."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            statement()
        except Interrupt as error:
            return error
        finally:
            sys.settrace(before)
        return None


class Tensors:
    """The tensors that a statement reads and writes."""

    def __init__(self) -> None:
        self.x = dt.asarray([1.0, 2.0, 3.0], device="cpu")
        self.rows = dt.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        self.weight = dt.asarray([2.0, 2.0, 2.0], device="cpu").requires_grad_()
        self.state = dt.zeros(3, device="cpu") + 0
        self.pending = self.x * 3

    def values(self) -> list[Any]:
        return [t.tolist() for t in (self.x, self.rows, self.weight, self.pending)]


def capture(t: Tensors) -> Any:
    def step(x: dt.Tensor) -> dt.Tensor:
        t.state += x
        return dt.tanh(x * t.pending).sum()

    return dt.jit(step)(t.x)


def captured_gradient(t: Tensors) -> Any:
    def loss(x: dt.Tensor) -> dt.Tensor:
        (g,) = dt.grad((t.weight * x * x).sum(), [t.weight])
        with dt.no_grad():
            t.state += g
        return g

    return dt.jit(loss)(t.x)


def vmapped(t: Tensors) -> Any:
    def one(row: dt.Tensor) -> dt.Tensor:
        return (row * t.pending[0]).sum() + dt.grad((t.weight * row[0]).sum(), [t.weight])[0].sum()

    return dt.vmap(one)(t.rows)


def scanned(t: Tensors) -> Any:
    def step(c: dt.Tensor, x: dt.Tensor) -> tuple[dt.Tensor, dt.Tensor]:
        t.state += x
        return c * 0.5 + x, c

    return dt.scan(step, t.pending[0], t.x)


def branched(t: Tensors) -> Any:
    @dt.jit
    def choose(x: dt.Tensor) -> dt.Tensor:
        return dt.cond(x.sum() > 1, lambda x: x * 2, lambda x: -x, x)

    return choose(t.x), dt.while_loop(lambda c: c < 100, lambda c: c * 2, t.x.sum())


def traced(t: Tensors) -> Any:
    graph = graph_of(lambda x: dt.tanh(x * t.pending).sum(), [t.x])
    return [n.op for n in graph.nodes]


AFTER_ITERATIONS = [[n] * 3 for n in (0.0, 1.0, 3.0, 6.0)]  # of `scanned`, none of them in part
STATEMENTS = (capture, captured_gradient, vmapped, scanned, branched, traced)


def plain(result: Any) -> Any:
    if isinstance(result, tuple):
        return [plain(x) for x in result]
    return result.tolist() if isinstance(result, dt.Tensor) else result


def line_count(statement: Callable[[Tensors], Any]) -> int:
    """Return how many lines of dovetail a statement runs, in a process that has run it before."""
    for _ in range(2):
        interrupter = Interrupter(0)
        t = Tensors()
        assert interrupter.run(lambda t=t: statement(t)) is None
    return interrupter.lines


def is_free_for_others(lock: Lock) -> bool:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lock._is_free).result()


def check_interrupted(
    statement: Callable[[Tensors], Any], at: int, expected: Any, before: Any, after: Any
) -> None:
    t, settings = Tensors(), current()
    # kept, because its traceback holds the frames
    error = Interrupter(at).run(lambda: statement(t))
    where = error and error.__traceback__
    assert tracer_api.current() is None, where
    assert flags.captures == 0, where
    assert current() is settings, where
    if is_compiled:  # Python's `with` calls `__exit__` after a line event
        assert is_free_for_others(ONE_CAPTURE), where
    allowed = AFTER_ITERATIONS if statement is scanned else (before[1], after[1])
    assert t.state.tolist() in allowed, where
    assert t.values() == before[0], where
    (t.weight * t.x).sum().backward()
    assert t.weight.grad is not None and t.weight.grad.tolist() == [1.0, 2.0, 3.0], where
    again = Tensors()
    assert plain(statement(again)) == expected, where
    assert [again.values(), again.state.tolist()] == after, where


def check_every(statement: Callable[[Tensors], Any], lines: Callable[[int], range]) -> None:
    t = Tensors()
    before = [t.values(), t.state.tolist()]
    t = Tensors()
    expected = plain(statement(t))
    after = [t.values(), t.state.tolist()]
    count = line_count(statement)
    assert count > 20
    for at in lines(count):
        check_interrupted(statement, at, expected, before, after)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_thread_works_after_an_interrupt_at_a_line(statement: Callable[[Tensors], Any]) -> None:
    check_every(statement, lambda count: range(1, count + 1, max(1, count // SAMPLES)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("statement", STATEMENTS)
def test_thread_works_after_an_interrupt_at_every_line(
    statement: Callable[[Tensors], Any],
) -> None:
    check_every(statement, lambda count: range(1, count + 1))
