"""Random programs, each compared with NumPy op by op (see `random_programs`)."""

from __future__ import annotations

import dovetail as dt
import numpy_oracle as oracle
import pytest
import random_programs as programs
from random_programs import Line, check, expected, failure, generated, script, shrunk

DEVICES = {str(d) for d in dt.__array_namespace_info__().devices()}
SAMPLE = {"reference": 240, "cpu": 160, "opencl": 10}  # seeds from 0; opencl compiles slowly
MANY = {"reference": 10_000, "cpu": 9_800, "opencl": 200}
BLOCK = 20


def blocks(counts: dict[str, int], first: int = 0) -> list[tuple[str, int]]:
    return [(d, s) for d, n in counts.items() for s in range(first, first + n, BLOCK)]


def run(device: str, start: int, stop: int) -> None:
    if device not in DEVICES:
        pytest.skip(f"there is no {device} here")
    for seed in range(start, stop):
        check(seed, device)


@pytest.mark.parametrize(("device", "start"), blocks(SAMPLE))
def test_random_programs_equal_numpy(device: str, start: int) -> None:
    run(device, start, min(start + BLOCK, SAMPLE[device]))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("device", "start"), blocks(MANY, first=1_000))
def test_many_random_programs_equal_numpy(device: str, start: int) -> None:
    run(device, start, start + BLOCK)


# --- regressions


def program(text: str) -> list[Line]:
    """Return a program of lines; those that begin with "?" are compared."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return [Line(t.lstrip("? "), t.startswith("?")) for t in lines]


START = """
    x = dt.asarray([1, 2], dtype=dt.float64)
    A = dt.asarray([[1, 2], [3, 4]], dtype=dt.float64)
"""
ONCE_WRONG = {
    "a product that updates its operand": "y = dt.matmul(x, x)\nx -= y\n? y\n? x",
    "a product written over its operand": "u = A @ x\nx[:] = u\n? u\n? x",
    "a product held through a view": "u = A @ x\nw = u[1:]\nx[:] = u\n? w\n? u\n? x",
    "only the view is held": "u = A @ x\nw = u[1:]\ndel u\nx -= w\n? w\n? x",
    "a gradient step": "g = A.T @ (A @ x)\nx -= 2 * g\n? g\n? x",
    "a sort that fills what it sorted": "k = dt.sort(x)\nw = k[::-1]\nx[:] = w\n? k\n? w\n? x",
    "an order": "k = dt.argsort(x)\nw = k[None]\nx += k\n? w\n? x",
    "a running sum": "k = dt.cumulative_sum(x, axis=0)\nw = k[1:]\nx *= k\n? w\n? k\n? x",
    "a gather": "k = x[dt.asarray([1, 0], dtype=dt.int64)]\nw = k[1:]\nx += w\n? w\n? k\n? x",
    "a sparse product": "s = A.to_sparse()\nu = s @ x\nw = u[1:]\nx[:] = u\n? w\n? u\n? x",
}


@pytest.mark.parametrize("what", ONCE_WRONG)
@pytest.mark.parametrize("device", sorted(SAMPLE))
def test_referenced_value_is_unchanged_by_a_write(device: str, what: str) -> None:
    if device not in DEVICES:
        pytest.skip(f"there is no {device} here")
    lines = program(START + ONCE_WRONG[what])
    assert not failure(lines, device), script(lines, device)


# --- tests of the generator and the oracle


def test_generator_is_deterministic_and_covers_every_feature() -> None:
    made = [generated(seed) for seed in range(200)]
    assert made[:20] == [generated(seed) for seed in range(20)]
    text = "\n".join(line.text for lines in made for line in lines)
    wanted = """@ dt.sort dt.argsort .values cumulative_sum cumulative_prod dt.take take_along_axis
        index_add_ scatter_ to_sparse out= del dt.eager dt.evaluate softmax64 spread [...] = -= ::-1
        .T tensordot einsum vecdot unique_values dt.diagonal dt.broadcast_to dt.concat dt.where
        searchsorted dt.bool dt.int64 dt.float32 dt.float64 dt.maximum // % *"""
    assert [word for word in wanted.split() if text.count(word) < 3] == []
    assert sum(line.looked for lines in made for line in lines) > 5 * len(made)


def test_wrong_op_is_found_and_the_program_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    right = dt.sort

    def wrong(x: dt.Tensor, **options: object) -> dt.Tensor:
        return right(x)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(dt, "sort", wrong)
    with pytest.raises(AssertionError, match="seed") as caught:
        run("reference", 0, 100)
    lines = str(caught.value).partition("for _ in")[2].splitlines()[1:]
    assert "dt.sort" in "".join(lines) and len(lines) <= 5, caught.value
    assert all(line.startswith("    ") for line in lines)


def test_lost_write_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dt.Tensor, "__isub__", lambda x, y: x - y)
    with pytest.raises(AssertionError, match="seed"):
        run("reference", 0, 100)


def test_printed_script_runs_and_fails_for_an_error() -> None:
    lines = generated(3)
    exec(compile(script(lines, "reference"), "<script>", "exec"), {})
    broken = script(lines, "reference").replace("dt.asarray([[", "dt.asarray([[1 + ")
    with pytest.raises((AssertionError, dt.DovetailError)):
        exec(compile(broken, "<script>", "exec"), {})


def test_shrinking_keeps_the_failing_lines() -> None:
    lines = [*program(START), Line("y = x * 2"), Line("y"), Line("x", looked=True)]
    short = shrunk(lines, lambda p: any("x =" in line.text for line in p) and expected(p))
    assert short == [lines[0], lines[-1]]


@pytest.mark.parametrize(
    "text", ["dt.asarray([1.5], dtype=dt.float64)", "x * 5000", "x // 0", "(x * 2000) @ (x * 2000)"]
)
def test_oracle_rejects_operations_that_may_round(text: str) -> None:
    with pytest.raises(oracle.Unfit):
        expected([*program(START), Line(f"y = {text}")])
    assert programs.expected([*program(START), Line("x", looked=True)])
