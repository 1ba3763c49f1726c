"""Philox against published vectors, and random functions against statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dovetail import dtypes, random
from dovetail.backend.reference import interpret
from dovetail.engine import evaluate as run
from dovetail.errors import ArgumentError, DTypeError
from dovetail.ir.builder import KernelBuilder
from dovetail.ir.language import const
from dovetail.ops import philox
from dovetail.ops import table as ops
from dovetail.tensor.primitives import apply

DEVICES = ["reference", "cpu"]
FLOATS = [dtypes.float16, dtypes.float32, dtypes.float64]
# Source: kat_vectors of Random123 1.09, philox4x32 with 10 rounds: counter, key, result
VECTORS = [
    ("00000000 " * 4, "00000000 " * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff " * 4, "ffffffff " * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        "243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]  # fmt: skip


@pytest.mark.parametrize("counter, key, want", VECTORS)
def test_philox_equals_published_vectors(counter: str, key: str, want: str) -> None:
    b = KernelBuilder("philox")
    out = b.buffer("out", dtypes.uint32, "w")
    b.axis(const(1, dtypes.int64))
    words = [[const(int(w, 16), dtypes.uint32) for w in text.split()] for text in (counter, key)]
    for i, word in enumerate(philox.philox(*words)):
        b.store(out, const(i, dtypes.int64), word)
    found = np.zeros(4, np.uint32)
    interpret(b.build(), [found], [], [], [1])
    assert [f"{w:08x}" for w in found] == want.split()


@pytest.mark.parametrize("draw", [
    *(lambda g, on, d=d: g.uniform((3, 50), dtype=d, device=on) for d in FLOATS),
    *(lambda g, on, d=d: g.normal((3, 50), dtype=d, device=on) for d in FLOATS),
    lambda g, on: g.uniform(99, low=-2, high=5, device=on),
    lambda g, on: g.normal(99, mean=-2, std=5, device=on),
    lambda g, on: g.integers(-7, 1000, (9, 9), device=on),
    lambda g, on: g.integers(1 << 40, shape=70, dtype=dtypes.uint64, device=on),
    lambda g, on: g.permutation(100, device=on),
])  # fmt: skip
def test_seed_gives_one_stream_on_every_device(draw: Any) -> None:
    streams = [random.Generator(2**64 - 5) for _ in DEVICES]
    for _ in range(2):
        found = [draw(g, on).numpy() for g, on in zip(streams, DEVICES, strict=True)]
        np.testing.assert_array_equal(*found)
    assert streams[0].state == streams[1].state
    other = draw(random.Generator(6), DEVICES[0]).numpy()
    assert not np.array_equal(other, found[0])


def test_stream_does_not_depend_on_the_sizes_of_draws() -> None:
    whole = random.Generator(3).uniform(100, device="reference").numpy()
    g = random.Generator(3)
    parts = [g.uniform(n, device="reference").numpy() for n in (1, 60, 0, 39)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert g.state == (3, 100)
    g.state = (3, 61)
    np.testing.assert_array_equal(g.uniform(39, device="reference").numpy(), whole[61:])


def test_default_generator_state_is_saved_and_restored() -> None:
    random.manual_seed(5)
    first = random.uniform(8, device="reference").numpy()
    state = random.get_state()
    second = random.normal(8, device="reference").numpy()
    random.set_state(state)
    np.testing.assert_array_equal(random.normal(8, device="reference").numpy(), second)
    given = random.uniform(8, device="reference", generator=random.default_rng(5)).numpy()
    np.testing.assert_array_equal(given, first)
    assert random.default_rng().state != random.default_rng().state


@pytest.mark.parametrize("d", FLOATS)
def test_uniform_follows_its_distribution(d: dtypes.DType) -> None:
    a = random.Generator(1).uniform(200_000, dtype=d, device="cpu").numpy().astype(np.float64)
    assert a.min() >= 0 and a.max() < 1
    counts, _ = np.histogram(a, 64, (0, 1))
    expected = a.size / 64
    assert ((counts - expected) ** 2 / expected).sum() < 130  # chi-squared, 63 degrees: p < 1e-6
    assert abs(np.corrcoef(a[:-1], a[1:])[0, 1]) < 0.01


@pytest.mark.parametrize("d", FLOATS)
def test_normal_follows_its_distribution(d: dtypes.DType) -> None:
    a = random.Generator(1).normal(200_000, dtype=d, device="cpu").numpy().astype(np.float64)
    assert abs(a.mean()) < 0.012 and abs(a.std() - 1) < 0.01
    assert abs((a**3).mean()) < 0.05 and abs((a**4).mean() - 3) < 0.1
    assert abs((np.abs(a) < 0.6745).mean() - 0.5) < 0.006
    assert np.isfinite(a).all() and np.abs(a).max() < 6.67


def test_normal_equals_box_muller_in_float64() -> None:
    """NumPy evaluates the formula in float64 from the same bits."""
    bits = random.Generator(9).uniform(1000, dtype=dtypes.float64, device="reference").numpy()
    b = KernelBuilder("words")
    out = b.buffer("out", dtypes.uint32, "w")
    i = b.axis(const(1000, dtypes.int64))
    seed, zero = const(9, dtypes.uint64), const(0, dtypes.uint64)
    for k, word in enumerate(philox.random_words(i, seed, zero)):
        b.store(out, i * 4 + k, word)
    w = np.zeros((1000, 4), np.uint32)
    interpret(b.build(), [w.reshape(-1)], [], [], [1000])
    w64 = w.astype(np.uint64)
    u, v = ((w64[:, k] | (w64[:, k + 1] << np.uint64(32))) >> np.uint64(11) for k in (0, 2))
    np.testing.assert_array_equal(bits, u * 2.0**-53)
    want = np.sqrt(-2 * np.log((u + 1.0) * 2.0**-53)) * np.cos(2 * np.pi * (v * 2.0**-53))
    got = random.Generator(9).normal(1000, dtype=dtypes.float64, device="reference").numpy()
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)
    angle = 2 * np.pi * (w[:, 1] >> 8) * 2.0**-24
    want = np.sqrt(-2 * np.log((w[:, 0] + 1.0) * 2.0**-32)) * np.cos(angle)
    got = random.Generator(9).normal(1000, device="reference").numpy()
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-7)


def test_integers_follow_their_distribution() -> None:
    g = random.Generator(4)
    a = g.integers(-3, 4, 70_000, dtype=dtypes.int8, device="cpu").numpy()
    counts = np.bincount(a + 3, minlength=7)
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 40 and len(counts) == 7
    for d in (*dtypes.INTEGERS,):
        full = g.integers(d.min, d.max + 1, 2000, dtype=d, device="cpu").numpy().astype(float)
        assert abs((full - d.min).mean() / (d.max - d.min) - 0.5) < 0.03
        assert set(g.integers(d.max, d.max + 1, 3, dtype=d, device="cpu").tolist()) == {d.max}


def test_permutation_contains_each_number_once() -> None:
    g = random.Generator(4)
    a = g.permutation(1000, device="cpu").numpy()
    assert sorted(a) == list(range(1000)) and (a[:-1] < a[1:]).sum() < 600
    x = apply(ops.ADD, (g.integers(0, 9, (5, 3), device="cpu"), 0))
    rows = g.permutation(x).tolist()
    assert sorted(rows) == sorted(x.tolist())
    counts = np.zeros((3, 3))
    for _ in range(600):
        counts[np.arange(3), g.permutation(3, device="reference").numpy()] += 1
    assert abs(counts - 200).max() < 60


def test_random_draws_fuse_with_their_use() -> None:
    before = run.counters.launches
    x = random.Generator(1).uniform((50, 50), device="reference")
    y = apply(ops.WHERE, (apply(ops.LESS, (x, 0.5)), x, 0.0))
    del x
    y.numpy()
    assert run.counters.launches == before + 1


def test_wrong_arguments_of_random_functions_raise() -> None:
    g = random.Generator(1)
    with pytest.raises(DTypeError):
        g.uniform(3, dtype=dtypes.int32, device="reference")
    with pytest.raises(DTypeError):
        g.integers(3, dtype=dtypes.float32, device="reference")
    for low, high in ((3, 3), (0, 257), (-1, 5)):
        with pytest.raises(ArgumentError):
            g.integers(low, high, dtype=dtypes.uint8, device="reference")
    assert g.state == (1, 0)
