"""Interrupt programs at a random instruction, and check the state afterwards."""

from __future__ import annotations

import contextlib
import dis
import sys
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

import dovetail as dt
from control_flow_in_python import PYTHON
from dovetail.capture.pytree import flatten
from dovetail.engine import tracer_api
from equivalence import PYTHONS, WAYS, load, stacked
from equivalent_programs import Program

__all__ = ["interrupt"]

CORE = str(Path(dt.__file__).parent)
INTERRUPTED = ["plain", "eager", "jit", "vmap", "jit of vmap", "vmap of jit", "jit of grad"]
CHECKED = ("CALL", "RESUME", "JUMP_BACKWARD")  # the interpreter checks for signals after these


@lru_cache(None)
def points(code: CodeType) -> frozenset[int]:
    """Return the offsets of instructions before which a signal can be raised."""
    found, steps = set(), list(dis.get_instructions(code))
    for step, after in pairwise(steps):
        if step.opname.startswith(CHECKED):
            found.add(step.argval if step.opname.startswith("JUMP") else after.offset)
    return frozenset(found)


class Interrupter:
    """A trace function that raises KeyboardInterrupt at the point of a number."""

    def __init__(self, at: int) -> None:
        self.at, self.count, self.where = at, 0, ""

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith((CORE, "<program>", contextlib.__file__)):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if event == "opcode" and frame.f_lasti in points(frame.f_code):
            self.count += 1
            if self.count == self.at:
                self.where = f"{name}:{frame.f_lineno}"
                sys.settrace(None)
                raise KeyboardInterrupt
        return self

    def run(self, action: Callable[[], object]) -> bool:
        """Return True if an action was interrupted."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            action()
        except KeyboardInterrupt:
            return True
        except Exception:
            pass
        finally:
            sys.settrace(before)
        return False


def contents(tensors: list[Any], by_rows: bool) -> list[str]:
    """Return what each tensor, or row of the examples, contains."""
    parts = [row for t in tensors for row in t] if by_rows else tensors
    return [repr(t.detach().tolist()) for t in parts]


def started(program: Program, c: Any, over: Any, group: str) -> tuple[Callable[[], Any], list[Any]]:
    """Return a call of a program, and the tensors that it can write to."""
    f, _, call, state = load(program, c)
    g, args = over(f), call(0)
    if "examples" in group:
        args = stacked([args, call(1), call(2)])
        return lambda: g(*args), list(args[:2])
    return lambda: g(*args), [*flatten(args[:3]).leaves, *state()]


def statement_contents(program: Program, group: str) -> list[set[str]]:
    """Return all that each tensor contains between two statements of Python's run."""
    with dt.eager(), dt.vendor_products(False):
        call, tensors = started(program, PYTHON, PYTHONS[group], group)
        seen: list[set[str]] = [{c} for c in contents(tensors, "examples" in group)]

        def trace(frame: FrameType, event: str, arg: object) -> Any:
            if frame.f_code.co_filename != "<program>":
                return None
            sys.settrace(None)
            for known, now in zip(seen, contents(tensors, "examples" in group), strict=True):
                known.add(now)
            sys.settrace(trace)
            return trace

        for _ in range(2):
            sys.settrace(trace)
            with contextlib.suppress(Exception):
                call()
            sys.settrace(None)
            for known, now in zip(seen, contents(tensors, "examples" in group), strict=True):
                known.add(now)
    return seen


def check_thread() -> None:
    """Check that nothing is recorded, and that new work of this thread is right."""
    x = dt.asarray([[1.0, 2.0], [3.0, 4.0]])
    f = dt.jit(lambda x: (x * 2 + 1).sum(axis=0))
    assert f(x).tolist() == f(x).tolist() == [10.0, 14.0]
    assert dt.vmap(lambda r: r.sum() * r)(x).tolist() == [[3.0, 6.0], [21.0, 28.0]]
    assert dt.fori_loop(0, 3, lambda i, v: v * 2 + i, x)[0].tolist() == [12.0, 20.0]
    assert dt.func.grad(lambda x: (x * x).sum())(x).tolist() == [[2.0, 4.0], [6.0, 8.0]]
    y = x + 1
    y[0] += x[1]
    assert y.tolist() == [[5.0, 7.0], [4.0, 5.0]]
    assert tracer_api.current() is None and not dt.is_inference_mode_enabled()


def interrupt(program: Program, random: Random, times: int, counts: Counter[str]) -> None:
    """Interrupt a program `times` times.

    Raises: AssertionError if its state is wrong afterwards.
    """
    names = [n for n in INTERRUPTED if n in WAYS]
    if program.writes_outside or {"random", "error"} & program.kinds:
        names = [n for n in names if WAYS[n].group != "examples"]
    allowed: dict[str, list[set[str]]] = {}
    totals: dict[str, int] = {}
    for _ in range(times):
        name = random.choice(names)
        way = WAYS[name]
        if way.group not in allowed:
            allowed[way.group] = statement_contents(program, way.group)
        with dt.vendor_products(False), dt.eager() if way.is_eager else contextlib.nullcontext():
            if name not in totals:
                totals[name] = _strike(program, name, 0)[0].count
            hit, struck, tensors = _strike(program, name, random.randint(1, totals[name]))
        counts[f"{'interrupts of' if struck else 'not reached in'} {name}"] += 1
        said = f"{name}, interrupted at {hit.where}\n\n{program.source}"
        try:
            check_thread()
        except Exception as error:
            raise AssertionError(f"the thread is harmed: {error!r}: {said}") from error
        rows = contents(tensors, "examples" in way.group)
        for known, now in zip(allowed[way.group], rows, strict=True):
            assert now in known, f"a tensor is {now}, not one of {sorted(known)}: {said}"


def _strike(program: Program, name: str, at: int) -> tuple[Interrupter, bool, list[Any]]:
    way = WAYS[name]
    call, tensors = started(program, dt, way.over, way.group)
    hit = Interrupter(at)
    struck = hit.run(lambda: (call(), call()))
    return hit, struck, tensors
