"""Guards match cached graphs: hits have the same results, and different graphs miss."""

from __future__ import annotations

from functools import partial
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine.evaluate import counters


def tensors(device: str, *shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(5)
    found = [dt.asarray(rng.standard_normal(s).astype("f4"), device=device) for s in shapes]
    dt.evaluate(*found)
    return found


def is_guard_hit(root: Any) -> bool:
    """Return True if a guard matches the evaluation of `root`."""
    before = counters.graph_hits
    dt.evaluate(root)
    return bool(counters.graph_hits > before)


def test_third_evaluation_hits_the_guard(device: str) -> None:
    x, y = tensors(device, (6, 5), (5,))
    seen = []
    for scale in (2.5, 3.5, 4.5):
        root = dt.exp(x * scale + y) - x
        seen.append(is_guard_hit(root))
        expected = np.exp(x.numpy() * np.float32(scale) + y.numpy()) - x.numpy()
        assert np.allclose(root.numpy(), expected, rtol=1e-5)
    assert seen == [False, False, True]


def test_guard_matches_other_tensors_of_the_same_kind(device: str) -> None:
    for _ in range(3):
        x, y = tensors(device, (7,), (7,))
        y += 1
        root = x / y
        last = is_guard_hit(root)
        assert np.array_equal(root.numpy(), x.numpy() / y.numpy())
    assert last


def test_guard_rejects_graphs_that_differ(device: str) -> None:
    x, y = tensors(device, (4, 4), (4, 4))
    for _ in range(3):
        dt.evaluate((x + y) * y)
    for other in (
        lambda: (y + y) * y,  # one leaf in two places differs from two equal leaves
        lambda: (x.T + y) * y,
        lambda: (x - y) * y,
        lambda: (x + 1) * y,
        lambda: (x + y) * 2,
        lambda: (x + y * 1) * y,
    ):
        root = other()
        with dt.eager():
            expected = other().numpy()
        is_guard_hit(root)
        assert np.array_equal(root.numpy(), expected)


def test_guard_hit_stores_referenced_values(device: str) -> None:
    (x,) = tensors(device, (9,))
    for _ in range(3):
        dt.evaluate((x * 3) + 1)
    held = x * 3
    root = held + 1
    before = counters.launches
    dt.evaluate(root)
    held.numpy()
    assert counters.launches - before == 1
    assert np.array_equal(root.numpy(), held.numpy() + 1)


def test_guard_rejects_a_pending_leaf_in_place_of_memory(device: str) -> None:
    (x,) = tensors(device, (4, 3))
    for _ in range(3):
        dt.evaluate(x + 1)
    pending = dt.reshape(x.T * 2, (4, 3))
    assert np.array_equal((pending + 1).numpy(), (x.numpy().T * 2).reshape(4, 3) + 1)


def test_guard_matches_views_of_pending_work(device: str) -> None:
    x, y = tensors(device, (4, 4), (4, 4))
    for turn in range(6):
        made = x + turn
        seen, part = made.T, made[1:]
        root = (seen @ y)[1:] - part
        if turn == 4:
            del made, seen, part  # in the others they are referenced
        last = is_guard_hit(root)
        a = x.numpy() + np.float32(turn)
        assert np.allclose(root.numpy(), (a.T @ y.numpy())[1:] - a[1:], atol=1e-5)
        assert last is (turn not in (0, 1, 4))
        if turn != 4:
            before = counters.launches
            assert np.array_equal(made.numpy(), a) and np.array_equal(part.numpy(), a[1:])
            assert counters.launches == before, "they were stored"


def test_guard_distinguishes_numbers_of_operands(device: str) -> None:
    (x,) = tensors(device, (8,))
    for n in (1, 2, 3, 3, 3, 2):
        assert dt.take(x, dt.asarray(list(range(n)), device=device)).shape == (n,)


def is_write_hit(write: Any) -> bool:
    """Return True if a guard matches the in-place write of `write`."""
    before = counters.graph_hits
    write()
    return bool(counters.graph_hits > before)


def test_guards_match_in_place_writes(device: str) -> None:
    x, y = tensors(device, (9, 4), (4,))
    expected = x.numpy().copy()
    seen = []
    for k in range(4):
        seen.append(is_write_hit(partial(dt.add, x, k + 0.5, out=x)))
        seen.append(is_write_hit(partial(x.add_, y)))
        expected = expected + np.float32(k + 0.5) + y.numpy()
        assert np.allclose(x.numpy(), expected, rtol=1e-5)
    assert seen == [False] * 4 + [True] * 4


def test_cached_write_stores_referenced_values(device: str) -> None:
    x, y = tensors(device, (9, 4), (9, 4))
    want, moment = x.numpy().copy(), np.zeros((9, 4), "f4")
    m, seen = dt.zeros((9, 4), device=device), []
    for k in range(5):
        m = m * 0.5 + y  # as an optimizer keeps it
        seen.append(is_write_hit(partial(x.sub_, m * (k + 1.0))))
        assert m._expr.op is None  # stored by the same kernel
        moment = moment * np.float32(0.5) + y.numpy()
        want -= moment * np.float32(k + 1.0)
        np.testing.assert_allclose(m.numpy(), moment, rtol=1e-5)
        np.testing.assert_allclose(x.numpy(), want, rtol=1e-4, atol=1e-5)
    assert seen[-1] and not seen[0]
    seen.append(is_write_hit(lambda: x.sub_((m * 0.5 + y) * 7.0)))
    assert not seen[-1]  # the sum is not referenced this time
    np.testing.assert_allclose(
        x.numpy(), want - (moment * 0.5 + y.numpy()) * 7, rtol=1e-4, atol=1e-5
    )


def test_cached_graph_stores_a_referenced_value_next_to_its_root(device: str) -> None:
    (x,) = tensors(device, (6, 5))
    seen = []
    for _ in range(4):
        half = dt.exp(x)
        root = half * 2.0
        seen.append(is_guard_hit(root))
        assert half._expr.op is None
        np.testing.assert_array_equal(root.numpy(), half.numpy() * np.float32(2))
    assert seen[-1]
    half = None
    root = dt.exp(x) * 2.0
    assert not is_guard_hit(root)
    np.testing.assert_allclose(root.numpy(), np.exp(x.numpy()) * 2, rtol=1e-5)


def test_guard_rejects_writes_with_another_overlap(device: str) -> None:
    x, y = tensors(device, (8,), (8,))
    want = x.numpy() + y.numpy()
    for _ in range(3):
        fresh = x.copy()
        dt.add(fresh, y, out=fresh)  # the operand is the target
        assert np.array_equal(fresh.numpy(), want)
    z = dt.empty(8, device=device)
    dt.add(x, y, out=z)  # the operand is not the target
    assert np.array_equal(z.numpy(), want)
    both = x.copy()
    dt.add(both, both, out=both)
    assert np.array_equal(both.numpy(), 2 * x.numpy())
    shifted = dt.concat([x, x])
    for _ in range(3):
        dt.add(shifted[0:8], y, out=shifted[0:8])
    before = shifted.numpy().copy()
    dt.add(shifted[1:9], y, out=shifted[0:8])  # same memory, another place
    assert np.array_equal(shifted.numpy()[:8], before[1:9] + y.numpy())


def test_cached_write_stores_a_referenced_value(device: str) -> None:
    x, y = tensors(device, (8,), (8,))
    want = x.numpy() * 2
    for _ in range(4):
        held = x * 2
        y[:] = held
        held += 1
        assert np.array_equal(y.numpy(), want)
        assert np.array_equal(held.numpy(), want + 1)


def test_pending_readers_run_before_a_cached_write(device: str) -> None:
    x, y = tensors(device, (8,), (8,))
    for _ in range(4):
        before = x.numpy().copy()
        reader = x * 3
        x += y
        assert np.array_equal(reader.numpy(), before * 3)
        assert np.array_equal(x.numpy(), before + y.numpy())


def test_written_value_gets_no_memory_of_its_own(device: str) -> None:
    """Python's stack references it until the end of the statement, as `v` does here."""
    x, y = tensors(device, (9,), (9,))
    a, old = x.numpy().copy(), dt.memory.stats(device).allocations
    for k in range(4):
        v = x[:-2] * k + x[2:]
        y[1:-1] = v
        assert dt.memory.stats(device).allocations == old
    y[1:-1] = 0.0  # an owner of the value keeps it
    np.testing.assert_array_equal(v.numpy(), a[:-2] * np.float32(3) + a[2:])
    assert float(y[1:-1].sum()) == 0.0


def test_guards_match_writes_at_indices(device: str) -> None:
    x, _ = tensors(device, (40,), (8,))
    i = dt.asarray([3, 1, 3, 39], device=device)
    before, want = counters.graph_hits, x.numpy().copy()
    for k in range(5):
        x[i] = float(k)
        want[[3, 1, 3, 39]] = float(k)
        assert np.array_equal(x.numpy(), want)
    assert counters.graph_hits >= before + 3
    for _ in range(4):
        reader = x * 2  # it reads the previous content
        x[i] = 7.0
        assert np.array_equal(reader.numpy(), want * 2)
        want[[3, 1, 3, 39]] = 7.0
        x[i] = x[i] + 1  # reads its own target
        want[[3, 1, 39]] += 1
        assert np.array_equal(x.numpy(), want)
    for _ in range(4):
        with pytest.raises(dt.OutOfRangeError):
            x[dt.asarray([1, 40], device=device)] = 0.0
            x.tolist()
        assert np.array_equal(x.numpy(), want)
