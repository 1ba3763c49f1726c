"""Random programs are equal plain, eager, captured, mapped over examples, and loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import dovetail as dt
import pytest
from dovetail.settings import current
from equivalence import differences, shrunk
from equivalent_programs import generate
from installed import INSTALLED
from interruption import interrupt

SAMPLE, BLOCK = 100, 25  # programs on cpu; a default run takes one block
MANY = {"cpu": 2_000, "reference": 8_000}
SAMPLE_INTERRUPTS, INTERRUPTS, PER_PROGRAM = 24, 5_000, 12
CAPTURE_ERRORS = 0.02  # of the runs, on average over all programs; others save functions


@contextmanager
def on(device: str) -> Iterator[None]:
    if device != "reference" and device not in INSTALLED:
        pytest.skip(f"the backend for {device} is not installed")
    before = dt.default_device()
    dt.set_default_device(device)
    try:
        yield
    finally:
        dt.set_default_device(before)


def check(device: str, seeds: Iterable[int], is_sample: bool) -> None:
    """Fail with the shortest program that differs, as runnable source."""
    counts = Counter[str]()
    with on(device):
        for seed in seeds:
            program = generate(seed)
            said = differences(program, counts, seed=seed if is_sample else None)
            if said:
                short = shrunk(program, said)
                said = differences(short, Counter()) or said
                raise AssertionError(f"seed {seed} on {device}: {said}\n\n{short.source}")
    runs = sum(n for name, n in counts.items() if name.startswith("runs of"))
    mean = CAPTURE_ERRORS * runs
    assert counts["asks for a value"] <= mean + 3 * mean**0.5 + 1, counts  # 3 standard deviations
    print(f"programs on {device}: {dict(counts)}")


@pytest.mark.parametrize("start", range(0, SAMPLE, BLOCK))
def test_random_program_is_equal_in_every_way(start: int, thinned: Callable[..., Any]) -> None:
    check("cpu", thinned(range(start, start + BLOCK), 4), is_sample=True)


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("device", "start"), [(d, s) for d, n in MANY.items() for s in range(10_000, 10_000 + n, BLOCK)]
)
def test_many_random_programs_are_equal_in_every_way(device: str, start: int) -> None:
    check(device, range(start, start + BLOCK), is_sample=False)


@pytest.mark.parametrize("device", ["cpu"])
def test_interrupt_leaves_threads_and_tensors_intact(
    device: str, thinned: Callable[..., Any]
) -> None:
    with on(device):
        for seed in thinned(range(0, SAMPLE_INTERRUPTS, PER_PROGRAM), 2):
            interrupt(generate(seed), Random(seed), PER_PROGRAM, Counter())


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("start", range(0, INTERRUPTS, 500))
def test_many_interrupts_leave_threads_and_tensors_intact(start: int) -> None:
    counts, seed = Counter[str](), 20_000 + start
    with on("cpu"):
        while sum(n for name, n in counts.items() if name.startswith("interrupts")) < 500:
            interrupt(generate(seed), Random(seed), PER_PROGRAM, counts)
            seed += 1


def test_generator_is_deterministic_and_covers_every_feature() -> None:
    programs = [generate(seed) for seed in range(400)]
    assert programs[:20] == [generate(seed) for seed in range(20)]
    text = "\n".join(p.source.partition("def make")[2] for p in programs)
    wanted = """c.cond c.scan c.fori_loop c.while_loop func.grad value_and_grad func.vjp backward()
        requires_grad_ detach() linalg.solve cholesky linalg.inv linalg.det dt.random generator
        np.arange dt.constant functools.partial ContextVar deque dt.evaluate global nonlocal nan
        -0.0 np.float32 np.int64 [::-1] .mT [::2] x[::-1] base[1:] .append( (3,) SimpleNamespace
        Data( Slots( Net( module( keep( type('C' {"w" {"a" __defaults__ (x[0] {"k" ["k"] (k=
        LeakyReLU elementwise lambda k:"""
    assert [word for word in wanted.split() if text.count(word) < 4] == []


def test_difference_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    right = dt.Tensor.mul_
    monkeypatch.setattr(dt.Tensor, "mul_", lambda x, y: right(x, y + (not current().eager)))
    with pytest.raises(AssertionError, match="seed") as caught:
        check("reference", range(20, 40), is_sample=False)
    function = str(caught.value).partition("def f(")[2].partition("def change")[0]
    assert "mul_" in function and function.count("\n") <= 10, caught.value
