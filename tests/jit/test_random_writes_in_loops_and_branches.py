"""Random programs of loops, branches and writes through views: as Python does them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import dovetail as dt
import pytest
from control_flow_in_python import PYTHON, one_by_one
from dovetail.capture.pytree import flattened

EXAMPLES, WIDTH = 3, 4
SEEDS = 48

VIEWS: list[Callable[[Any], Any]] = [
    lambda y: y, lambda y: y[:], lambda y: y[1:3], lambda y: y[::-1], lambda y: y[::2],
    lambda y: y[2], lambda y: y.reshape(2, 2)[1], lambda y: y[1:][::2], lambda y: y.reshape(2, 2).T,
]  # fmt: skip
LINEAR: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * 0.5 + b[::-1], lambda a, b: b - 1,
]  # fmt: skip
WRITES: list[Callable[[Any, Any], object]] = [
    lambda to, v: to.add_(v), lambda to, v: to.sub_(v), lambda to, v: to.mul_(0.5),
    lambda to, v: to.__setitem__(..., v), lambda to, v: to.fill_(2.0),
]  # fmt: skip


class Program:
    """A random program; what it does is known before it runs."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.block = self.statements(3)

    def statements(self, depth: int) -> list[tuple[Any, ...]]:
        kinds = ["new", "write", "write", "view"]
        if depth:
            kinds += ["cond", "cond", "while", "fori", "scan"]
        return [
            self.statement(self.random.choice(kinds), depth)
            for _ in range(self.random.randint(1, 5 if depth == 3 else 3))
        ]

    def statement(self, kind: str, depth: int) -> tuple[Any, ...]:
        chosen = [self.random.randrange(1000) for _ in range(4)]
        if kind == "cond":
            return kind, chosen, self.statements(depth - 1), self.statements(depth - 1)
        if kind in ("while", "fori", "scan"):
            return kind, chosen, self.statements(depth - 1)
        return kind, chosen

    def run(self, c: Any, n: Any, x: Any) -> tuple[Any, ...]:
        tensors = [x, x * 1, x[::-1], dt.zeros(WIDTH)]
        self._run(c, n, tensors, self.block)
        return tuple([t * 1 for t in tensors])

    def _run(self, c: Any, n: Any, tensors: list[Any], block: list[tuple[Any, ...]]) -> Any:
        """Do statements, which may add tensors, and return the last tensor."""
        for kind, (i, j, k, m), *blocks in block:
            a, b = tensors[i % len(tensors)], tensors[j % len(tensors)]

            def inner(which: int, *more: Any, blocks: Any = blocks) -> Any:
                return self._run(c, n, [*tensors, *more], blocks[which])

            if kind == "new":
                tensors.append(LINEAR[k % len(LINEAR)](a, b))
            elif kind == "view":
                tensors.append(a[::-1])
            elif kind == "write":
                view = VIEWS[m % len(VIEWS)]
                WRITES[k % len(WRITES)](view(a), view(b * 1))
            elif kind == "cond":
                pred = a[k % WIDTH] > m % 3 - 1
                tensors.append(c.cond(pred, lambda: inner(0) * 1, lambda: inner(1) * 1))
            elif kind == "while":
                tensors.append(self._while(c, n, a, inner, k))
            elif kind == "fori":
                upper = n if m % 2 else k % 3
                tensors.append(c.fori_loop(0, upper, lambda _, v: inner(0, v) * 1, a))
            else:
                init, xs = a[0] * 1, b
                tensors.append(c.scan(lambda v, p: self._step(inner, v, p), init, xs)[1])
        return tensors[-1]

    def _while(self, c: Any, n: Any, a: Any, inner: Callable[..., Any], k: int) -> Any:
        def body(v: Any) -> Any:
            made = inner(0, v[1])
            return v[0] + 1, (v[1] if k % 2 else made * 1)

        return c.while_loop(lambda v: v[0] < n, body, (n * 0, a))[1]

    def _step(self, inner: Callable[..., Any], v: Any, part: Any) -> Any:
        part += 1
        v += part
        return v, inner(0)[1] + part


def arguments() -> tuple[dt.Tensor, dt.Tensor]:
    x = (dt.arange(EXAMPLES * WIDTH) % 5 - 2).astype(dt.float32).reshape(EXAMPLES, WIDTH) * 1
    return dt.asarray([0, 2, 1]), x


def values(made: Any) -> list[Any]:
    return [repr(t.tolist()) for t in flattened(made).leaves]


def outcome(over: Callable[[Callable[..., Any]], Callable[..., Any]], f: Any) -> Any:
    """What comes back, and what the arguments are then."""
    args = arguments()
    made = over(f)(*args)
    return values(made), values(args)


def each(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: one_by_one(f, args)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_program_of_loops_and_branches_is_what_python_makes_of_it(
    seed: int, device: dt.Device
) -> None:
    program = Program(seed)
    want = outcome(each, lambda n, x: program.run(PYTHON, n, x))

    def by_dovetail(n: Any, x: Any) -> Any:
        return program.run(dt, n, x)

    assert outcome(each, by_dovetail) == want
    assert outcome(dt.vmap, by_dovetail) == want
    with dt.eager():
        assert outcome(each, by_dovetail) == want
    assert outcome(lambda f: each(dt.jit(f)), by_dovetail) == want


@pytest.mark.parametrize("seed", range(SEEDS, 2 * SEEDS))
def test_gradient_of_random_program_in_vmap_is_that_of_python(seed: int, device: dt.Device) -> None:
    program = Program(seed)

    def gradient(c: Any) -> Callable[[Any, Any], Any]:
        def total(x: Any, n: Any) -> Any:
            return sum((t * t).sum() for t in program.run(c, n, x * 1))

        return lambda n, x: dt.func.grad(total)(x, n)

    want = outcome(each, gradient(PYTHON))
    assert outcome(dt.vmap, gradient(dt)) == want

    def all_of_them(n: Any, x: Any) -> Any:
        def total(x: Any) -> Any:
            return dt.vmap(lambda n, x: sum((t * t).sum() for t in program.run(dt, n, x * 1)))(
                n, x
            ).sum()

        return dt.func.grad(total)(x)

    assert outcome(lambda f: f, all_of_them) == want
