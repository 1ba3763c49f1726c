"""Random programs: first and second derivatives equal PyTorch's.

The programs have views, writes in place, reductions and products.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

SHAPES = [(3, 4), (4,), (1, 4), (3, 1), (2, 3, 4)]
Operands = tuple[Any, Any]


class Skip(Exception):
    """Raised by a step that does not accept these operands."""


def skip_unless(condition: bool) -> None:
    if not condition:
        raise Skip


def broadcasts(x: Any, y: Any) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
    except ValueError:
        raise Skip from None


# Each step takes the module (dt or torch), two earlier values and a source of random numbers.


def unary(m: Any, x: Any, y: Any, r: random.Random) -> Any:
    return r.choice([
        lambda: m.tanh(x), lambda: m.sigmoid(x), lambda: m.exp(m.tanh(x)), lambda: m.sin(x),
        lambda: m.relu(x), lambda: m.abs(x), lambda: x * x * 0.3, lambda: -x,
        lambda: m.sqrt(x * x + 1.0),
    ])()  # fmt: skip


def binary(m: Any, x: Any, y: Any, r: random.Random) -> Any:
    broadcasts(x, y)
    return r.choice([
        lambda: x + y, lambda: x * y, lambda: x - y * 0.5, lambda: x / (y * y + 1.0),
        lambda: m.maximum(x, y), lambda: m.where(x > y, x * 0.7, y),
    ])()  # fmt: skip


def random_view(m: Any, x: Any, y: Any, r: random.Random) -> Any:
    skip_unless(0 < x.ndim < 4)
    return r.choice([
        lambda: x.reshape(-1), lambda: x[..., ::2], lambda: m.swapaxes(x, 0, -1),
        lambda: x[x.shape[0] // 2], lambda: x[None], lambda: x[-1:],
    ])()  # fmt: skip


def reduction(m: Any, x: Any, y: Any, r: random.Random) -> Any:
    skip_unless(x.ndim > 0)
    d = r.randrange(x.ndim)
    axis = {"axis": d} if m is dt else {"dim": d}
    return r.choice([
        lambda: x.sum(axis=d, keepdims=True), lambda: x.mean(axis=d),
        lambda: m.logsumexp(x, **axis), lambda: m.softmax(x, **axis),
        lambda: (dt.cumulative_sum(x, axis=d) if m is dt else torch.cumsum(x, d)) * 0.5,
    ])()  # fmt: skip


def write_in_place(m: Any, x: Any, y: Any, r: random.Random) -> Any:
    """Return a copy that is written directly and through views.

    Saved values are not overwritten.
    """
    base = x * 1.0
    skip_unless(base.ndim > 0)
    row, column = base[r.randrange(base.shape[0])], base[..., 0]
    for _ in range(r.randint(1, 4)):
        how = r.randrange(6)
        if how == 0 and broadcasts(x, y) == tuple(x.shape):
            base += y
        elif how == 1:
            row *= 0.5
        elif how == 2:
            column -= 0.3
        elif how == 3:
            base[0] = 2.0
        elif how == 4:
            base[..., 0] = x[..., -1] * 0.5
        elif m is dt:
            dt.evaluate(row)
    return base + (row.sum() + column.mean()) * 0.1


def gather(m: Any, x: Any, y: Any, r: random.Random) -> Any:
    skip_unless(x.ndim > 0)
    at = [r.randrange(-x.shape[0], x.shape[0]) for _ in range(3)]
    return x[at] if m is dt else x[torch.tensor(at)]


def concatenate(m: Any, x: Any, y: Any, r: random.Random) -> Any:
    skip_unless(
        0 < x.ndim == y.ndim and tuple(x.shape[1:]) == tuple(y.shape[1:]) and x.shape[0] < 12
    )
    return dt.concat([x, y], axis=0) if m is dt else torch.cat([x, y], 0)


def gram_product(m: Any, x: Any, y: Any, r: random.Random) -> Any:
    skip_unless(x.ndim > 1 and x.shape[-2] <= 16)
    return (x @ x.mT) * 0.2


def evaluate_early(m: Any, x: Any, y: Any, r: random.Random) -> Any:
    """Evaluate a value. Evaluated and pending values must behave alike."""
    if m is dt:
        dt.evaluate(x)
    raise Skip


Step = Callable[[Any, Any, Any, random.Random], Any]
STEPS: list[Step] = [
    unary, binary, binary, random_view, random_view, reduction, write_in_place, write_in_place,
    gather, concatenate, gram_product,
    evaluate_early,
]  # fmt: skip


def run_program(seed: int, m: Any, inputs: list[Any]) -> Any:
    """Return a weighted sum of all values of the program of this seed."""
    r = random.Random(seed)
    values = list(inputs)
    for _ in range(r.randint(4, 14)):
        step, first, second, choices = r.choice(STEPS), r.random(), r.random(), r.randrange(1 << 30)
        x, y = values[int(first * len(values))], values[int(second * len(values))]
        try:
            values.append(step(m, x, y, random.Random(choices)))
        except Skip:
            continue
    return sum(((v * (0.1 * i + 0.3)).sum() for i, v in enumerate(values)), start=0.0)


def derivatives(m: Any, seed: int, xs: list[Any]) -> Iterator[Any]:
    """Return the value, the first derivatives, and the derivatives of the sum of their squares."""
    total = run_program(seed, m, xs)
    yield total
    take = dt.grad if m is dt else torch.autograd.grad
    first = take(total, xs, create_graph=True)
    yield from first
    squares = sum((g * g).sum() for g in first)
    second = [None] * len(xs)  # a constant may report no gradient or zeros
    if squares.requires_grad:
        second = take(squares, xs, allow_unused=True)
    yield from (x.detach() * 0.0 if g is None else g for x, g in zip(xs, second, strict=True))


def to_host(value: Any) -> Any:
    return value.detach().numpy(force=True) if isinstance(value, torch.Tensor) else np.asarray(
        value.numpy() if isinstance(value, dt.Tensor) else value
    )  # fmt: skip


def check(seed: int) -> None:
    arrays = [np.random.default_rng(seed).normal(size=s) for s in SHAPES[seed % 3 : seed % 3 + 3]]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    want = [to_host(v) for v in derivatives(torch, seed, theirs)]
    found = [to_host(v) for v in derivatives(dt, seed, [dt.asarray(a).requires_grad_()
                                                     for a in arrays])]  # fmt: skip
    assert len(found) == len(want)
    for k, (x, y) in enumerate(zip(found, want, strict=True)):
        np.testing.assert_allclose(x, y, 1e-7, 1e-9, err_msg=f"seed {seed}, result {k}")


@pytest.mark.parametrize("seed", range(8))
def test_derivatives_of_random_programs_equal_pytorch(seed: int) -> None:
    check(seed)


@pytest.mark.exhaustive
def test_derivatives_of_many_random_programs_equal_pytorch() -> None:
    for seed in range(8, 300):
        check(seed)
