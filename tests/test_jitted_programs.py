"""Random programs as captured functions: each call equals NumPy, including replays."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy_oracle as oracle
import pytest
import random_programs as programs
from installed import INSTALLED
from random_programs import Program

SAMPLE = {"reference": 120, "cpu": 120, "opencl": 6}
MANY = {"reference": 4_000, "cpu": 4_000, "opencl": 100}
BLOCK = 20
CALLS = 3
INPUT = re.compile(r"\w+ = dt\.asarray\(")
READS = ("unique_values", "to_sparse")  # methods by which the host reads


def function_of(program: Program) -> tuple[list[str], list[str]]:
    """Return the lines that create tensors, which become arguments, and those of a function."""
    first = next(
        (i for i, line in enumerate(program) if line.looked or not INPUT.match(line.text)),
        len(program),
    )
    inputs = [line.text for line in program[:first]]
    names = [text.partition(" = ")[0] for text in inputs]
    body = [f"def program({', '.join(dict.fromkeys(names))}):", "    seen = []"]
    for text, looked in program[first:]:
        # compared values are copied: later lines may write there
        text = f"seen.append(dt.copy({text}))" if looked else text
        body += ["    " + part for part in text.split("\n")]
    return inputs, [*body, "    return seen"]


def outcomes(program: Program, device: str) -> list[Any] | None:
    """Return the result of each call, or None for a program that cannot be captured."""
    inputs, body = function_of(program)
    scope = programs.ours()
    exec("\n".join(body), scope)
    captured: Callable[..., list[dt.Tensor]] = dt.jit(scope["program"], fullgraph=True)
    found = []
    for _ in range(CALLS):
        given: dict[str, Any] = {"dt": dt}
        for text in inputs:
            exec(text, given)
        names = dict.fromkeys(text.partition(" = ")[0] for text in inputs)
        try:
            seen = captured(*(given[n] for n in names))
        except dt.CaptureError:
            return None
        found.append([programs._seen(x) for x in seen])
    assert captured.captures == 1  # type: ignore[attr-defined]  # what dt.jit gives has it
    return found


def check(start: int, stop: int, device: str) -> int:
    """Return how many programs were captured; fail for a wrong one."""
    if device != "reference" and device not in INSTALLED:
        pytest.skip(f"there is no {device} here")
    before = dt.set_default_device(dt.default_device())
    dt.set_default_device(device)
    captured = 0
    try:
        for seed in range(start, stop):
            program = programs.generated(seed)
            program = [x for x in program if all(word not in x.text for word in READS)]
            try:
                wanted = programs.expected(program)
            except oracle.Unfit:  # it depends on a skipped line
                continue
            found = outcomes(program, device)
            if found is not None:
                captured += 1
                assert found == [wanted] * CALLS, (seed, "\n".join(function_of(program)[1]))
    finally:
        dt.set_default_device(before)
    return captured


def blocks(counts: dict[str, int], first: int) -> list[tuple[str, int, int]]:
    return [
        (d, s, min(s + BLOCK, first + n))
        for d, n in counts.items()
        for s in range(first, first + n, BLOCK)
    ]


@pytest.mark.parametrize(("device", "start", "stop"), blocks(SAMPLE, 20_000))
def test_captured_programs_equal_numpy(device: str, start: int, stop: int) -> None:
    assert check(start, stop, device) >= (stop - start) // 3


@pytest.mark.exhaustive
@pytest.mark.parametrize(("device", "start", "stop"), blocks(MANY, 30_000))
def test_many_captured_programs_equal_numpy(device: str, start: int, stop: int) -> None:
    assert check(start, stop, device)
