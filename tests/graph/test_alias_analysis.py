"""Alias analysis of views, compared with the sets of their elements."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine.events import counters
from dovetail.graph.alias_analysis import are_disjoint
from dovetail.graph.expr import PENDING_READERS_MAX, pending_nodes

View = tuple[tuple[int, ...], tuple[int, ...], int]


def elements(view: View) -> set[int]:
    shape, strides, offset = view
    axes = ([k * s for k in range(n)] for n, s in zip(shape, strides, strict=True))
    return {offset + sum(at) for at in itertools.product(*axes)}


def sliced(rng: random.Random, shape: tuple[int, ...]) -> View:
    """Return a random view by slices of a tensor of this shape at offset 5, with permuted axes."""
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    found, offset = [], 5
    for n, s in zip(shape, strides, strict=True):
        k = slice(rng.randrange(n), rng.randrange(n + 1), rng.choice([1, 1, 1, 2, 3]))
        if rng.random() < 0.2:
            k = slice(rng.randrange(n), None, rng.choice([-1, -2]))
        picked = range(n)[k]
        if rng.random() < 0.3 and picked:
            picked = picked[:1]
        offset += (picked[0] if picked else 0) * s
        found.append((len(picked), picked.step * s))
    rng.shuffle(found)
    return tuple(n for n, _ in found), tuple(s for _, s in found), offset


@pytest.mark.parametrize("shape", [(23,), (5, 7), (4, 6), (3, 4, 5), (2, 3, 2, 3)])
def test_disjoint_slices_of_one_tensor_are_recognized(shape):
    rng, apart, told = random.Random(len(shape)), 0, 0
    for _ in range(4000):
        a, b = sliced(rng, shape), sliced(rng, shape)
        is_apart = not elements(a) & elements(b)
        said = are_disjoint(*a, *b)
        assert not said or is_apart, (a, b)
        apart, told = apart + is_apart, told + said
    assert told > 0.97 * apart > 1000


def test_undecidable_views_are_treated_as_overlapping():
    rng = random.Random(0)
    for _ in range(20000):
        views = [
            (
                tuple(rng.randrange(5) for _ in range(3)),
                tuple(rng.randrange(-9, 10) for _ in range(3)),
                rng.randrange(40, 60),
            )
            for _ in range(2)
        ]
        if are_disjoint(*views[0], *views[1]):
            assert not elements(views[0]) & elements(views[1]), views


WRITES = {
    "a row of those before": (lambda x, k: x.__setitem__(k, x[k - 1] * 2 + x[k - 2]), range(2, 7)),
    "a column of those before": (
        lambda x, k: x.__setitem__((slice(None), k), x[:, :k].sum(axis=1)), range(1, 8),
    ),
    "odd places of even ones": (
        lambda x, k: x.__setitem__(
            (slice(1, -1), slice(1 + k % 2, -1, 2)),
            (x[1:-1, k % 2 : -2 : 2] + x[1:-1, 2 + k % 2 :: 2]) / 2,
        ), range(6),
    ),
    "an element of the rest": (
        lambda x, k: x.__setitem__((k, k), (x[k, :k] * x[k - 1, :k]).sum()), range(1, 8),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.usefixtures("device")
def test_disjoint_write_is_one_launch_without_extra_memory(name):
    """In one launch, and with no memory but what is there."""
    f, steps = WRITES[name]
    a = np.random.default_rng(1).normal(size=(8, 8)).astype(np.float32)
    x = dt.asarray(a)
    for k in steps:
        before, held = counters.launches, dt.memory.stats(x.device).allocations
        f(x, k)
        assert counters.launches == before + 1, k
        assert dt.memory.stats(x.device).allocations == held
        f(a, k)
        np.testing.assert_allclose(x.numpy(), a, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("device")
def test_overlapping_views_after_disjoint_ones_are_recognized():
    """The same statements, cached or not, on disjoint rows and on overlapping rows."""
    rng, a = np.random.default_rng(2), np.arange(600.0) % 64
    x = dt.asarray(a)
    for k in range(40):
        i, j = (int(v) for v in rng.integers(0, 400, size=2)) if k % 3 else (50, 300)
        x[i : i + 180] = x[j : j + 180] * 2 + x[j + 1 : j + 181]
        a[i : i + 180] = a[j : j + 180] * 2 + a[j + 1 : j + 181]
        a %= 64
        x %= 64
        assert x.numpy().tobytes() == a.tobytes(), k


@pytest.mark.usefixtures("device")
def test_write_leaves_unrelated_reads_pending():
    x = dt.asarray(np.arange(12.0).reshape(3, 4))
    first, last = x[0] * 2, x[2].sum()
    dt.evaluate(x)
    before = counters.launches
    x[1] = 7.0
    assert counters.launches == before + 1
    assert first._expr.op is not None and last._expr.op is not None
    x[0, 1:] = 5.0
    assert first._expr.op is None and last._expr.op is not None
    assert first.tolist() == [0.0, 2.0, 4.0, 6.0] and last.item() == 38.0


@pytest.mark.usefixtures("device")
def test_pending_reads_are_evaluated_together_at_a_limit():
    x, found = dt.zeros((500, 3)), []
    dt.evaluate(x)
    before = counters.evaluations
    for k in range(500):
        x[k] = float(k)
        found.append(x[k].sum())
        assert len(pending_nodes()) <= 2 * PENDING_READERS_MAX
    assert counters.evaluations - before < 500 + 30  # each write is one launch
    assert [float(y) for y in found] == [3.0 * k for k in range(500)]


@pytest.mark.usefixtures("device")
def test_captured_function_accepts_overlapping_arguments():
    """At the capture they were disjoint."""

    def f(a, b):
        a[...] = b * 2 + b[::-1]
        return a.sum()

    g, a = dt.jit(f), np.arange(120.0)
    x = dt.asarray(a.copy())
    for i, j in ((0, 60), (0, 60), (60, 0), (20, 40), (40, 20), (30, 30), (0, 60)):
        found, wanted = g(x[i : i + 50], x[j : j + 50]), f(a[i : i + 50], a[j : j + 50])
        assert found.item() == wanted and x.tolist() == a.tolist()


def random_key(rng, shape, want):
    """Return a key of some slices that select `want` elements along each axis."""
    found = []
    for n, m in zip(shape, want, strict=True):
        step = rng.choice([1, 1, 2])
        span = (m - 1) * step + 1
        if span > n:
            step, span = 1, m
        first = rng.randrange(n - span + 1)
        found.append(slice(first, first + span, step))
    return tuple(found)


STATEMENTS = (
    lambda x, t, r, s, copy: x.__setitem__(t, copy(x[r]) + copy(x[s])),
    lambda x, t, r, s, copy: x.__setitem__(t, copy(x[r]) * 2 - copy(x[s])),
    lambda x, t, r, s, copy: x.__setitem__(t, copy(x[r])),
    lambda x, t, r, s, copy: x.__setitem__(t, x[t] + copy(x[r])),
    lambda x, t, r, s, copy: x.__setitem__(t, copy(x[r])[::-1] + copy(x[s])),
)


@pytest.mark.usefixtures("device")
def test_programs_of_slices_equal_numpy_with_copies(thinned: Callable[..., Any]):
    """With some work pending, and with pending work written at the end."""
    for seed in thinned(range(150), 3):
        rng = random.Random(seed)
        shape = rng.choice([(12,), (6, 7), (3, 4, 5)])
        a = np.arange(float(np.prod(shape))).reshape(shape) % 17
        x, kept = dt.asarray(a.copy()), []
        for _ in range(rng.randrange(4, 20)):
            want = [rng.randrange(1, n + 1) for n in shape]
            t, r, s = (random_key(rng, shape, want) for _ in range(3))
            if (what := rng.random()) < 0.5:
                f = rng.choice(STATEMENTS)
                f(x, t, r, s, lambda v: v)
                f(a, t, r, s, np.copy)
                x %= 64
                a %= 64
            elif what < 0.8:
                kept.append((x[r] * 2 + 1, a[r] * 2 + 1))
            elif kept:
                y, b = kept.pop(rng.randrange(len(kept)))
                t = random_key(rng, shape, b.shape)
                x[t], a[t] = y, b
                assert y.tolist() == b.tolist(), seed
        assert [y.tolist() for y, _ in kept] == [b.tolist() for _, b in kept], seed
        assert x.tolist() == a.tolist(), seed
