"""Batched writes: several writes in one evaluation, and host numbers that each replay reads."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.extend import put_rows, read_each_call, rows_at, write_together


def count_launches(work: Any) -> int:
    counters = dt.engine.events.counters  # type: ignore[attr-defined]
    before = counters.launches
    work()
    return int(counters.launches - before)


def filled(*values: float) -> list[dt.Tensor]:
    found = [dt.full((5, 3), float(v)) for v in values]
    dt.evaluate(*found)
    return found


def test_writes_of_one_shape_are_one_launch(device: dt.Device) -> None:
    xs = filled(1, 2, 3, 4)

    def work() -> None:
        write_together("test", xs, [x * 2 for x in xs])

    assert count_launches(work) == 1
    assert [float(x[0, 0]) for x in xs] == [2, 4, 6, 8]


def test_batched_write_reads_all_values_before_writing(device: dt.Device) -> None:
    a, b = filled(1, 2)
    mean = (a + b) / 2
    write_together("test", [a, b], [b + mean, a * 10])
    assert (float(a[1, 1]), float(b[1, 1]), float(mean[1, 1])) == (3.5, 10, 1.5)


def test_pending_reads_see_the_previous_values(device: dt.Device) -> None:
    a, b = filled(1, 2)
    before = a * 100
    write_together("test", [a, b], [a + 1, b + 1])
    assert float(before[0, 0]) == 100


def test_referenced_value_is_unchanged_by_a_batched_write(device: dt.Device) -> None:
    a, b = filled(1, 2)
    held = a + 1
    write_together("test", [a, b], [held, held * 2])
    a.fill_(7)
    assert (float(held[0, 0]), float(b[0, 0])) == (2, 4)


def test_batched_write_of_values_that_are_not_elementwise(device: dt.Device) -> None:
    x = dt.arange(6, dtype=dt.float32)
    y = dt.arange(6, dtype=dt.float32)
    dt.evaluate(x, y)
    write_together("test", [x, y], [dt.flip(x), dt.cumulative_sum(y) + dt.flip(x)])
    assert x.tolist() == [5, 4, 3, 2, 1, 0]
    assert y.tolist() == [5, 5, 6, 8, 11, 15]


def test_batched_write_to_views_of_one_memory(device: dt.Device) -> None:
    flat = dt.zeros(6)
    a, b, across = flat[:3], flat[3:], flat[::2]
    write_together("test", [a, b], [a + 1, b + 2])
    assert flat.tolist() == [1, 1, 1, 2, 2, 2]
    write_together("test", [across, a], [across * 10, a * 5])  # overlapping: one after the other
    assert flat.tolist() == [5, 5, 5, 2, 20, 2]


def test_batched_write_broadcasts_and_casts(device: dt.Device) -> None:
    a = dt.zeros((2, 3))
    write_together("test", [a], [dt.arange(3) + 1])
    assert a.tolist() == [[1, 2, 3]] * 2
    with pytest.raises(dt.ShapeError):
        write_together("test", [a], [dt.arange(4) + 1])
    with pytest.raises(dt.DTypeError):
        write_together("test", [dt.zeros(3, dtype=dt.int32)], [dt.zeros(3) + 1])


def test_batched_write_to_read_only_memory_or_leaves_raises(device: dt.Device) -> None:
    a, b = filled(1, 2)
    wide = dt.broadcast_to(dt.zeros(3), (5, 3))
    with pytest.raises(dt.ReadOnlyError):
        write_together("test", [a, wide], [a + 1, b + 1])
    w = dt.ones(3).requires_grad_()
    with pytest.raises(dt.GradientError):
        write_together("test", [w], [w.detach() + 1])
    assert w.tolist() == [1, 1, 1]


def test_batched_write_marks_saved_values_as_overwritten(device: dt.Device) -> None:
    x = dt.full((3,), 2.0).requires_grad_()
    y = x.detach()
    found = (x * x).sum()
    write_together("test", [y], [y + 1])
    with pytest.raises(dt.GradientError, match="test"):
        found.backward()


def test_captured_batched_write_reads_numbers_each_call(device: dt.Device) -> None:
    a, b = filled(1, 2)
    count = [0]

    def read() -> list[float]:
        count[0] += 1
        return [float(count[0]), 0.5]

    @dt.jit
    def step() -> None:
        up, half = read_each_call(read, 2)
        write_together("test", [a, b], [a + up, b * half])

    for _ in range(4):
        step()
    assert step.captures == 1 and count == [4]
    assert (float(a[0, 0]), float(b[0, 0])) == (11, 0.125)


def test_numbers_are_read_in_each_round_of_a_loop(device: dt.Device) -> None:
    (a,) = filled(0)
    count = [0]

    def read() -> list[float]:
        count[0] += 1
        return [float(count[0])]

    def body(i: object, x: dt.Tensor) -> dt.Tensor:
        (up,) = read_each_call(read, 1)
        return x + up

    found = dt.fori_loop(0, 4, body, a)
    assert float(found[0, 0]) == 10 and count == [4]


def test_numbers_that_are_read_each_call_cannot_be_saved(device: dt.Device, tmp_path: Any) -> None:
    x = dt.ones(3)
    f = dt.jit(lambda x: x * read_each_call(lambda: [2.0], 1)[0])
    assert f(x).tolist() == [2, 2, 2]
    with pytest.raises(dt.CaptureError, match="numbers of the host"):
        dt.save_function(f, tmp_path / "f")


# --- rows ----------------------------------------------------------------------------------------


def row_operands(shape: tuple[int, ...], places: list[int], device: dt.Device) -> Any:
    rng = np.random.default_rng(len(places))
    some = [rng.standard_normal(shape).astype("f4") for _ in range(2)]
    new = rng.standard_normal((len(places), *shape[1:])).astype("f4")
    at = np.asarray(places)
    tensors = [dt.asarray(x, device=device) for x in (*some, new, at)]
    dt.evaluate(*tensors)
    return some, new, at, tensors


@pytest.mark.parametrize("shape", [(9, 4), (9, 1), (9,), (9, 2, 3), (5, 5)])
@pytest.mark.parametrize("places", [[7, 0, 3, 4], [2], [4, 3, 2, 1, 0]])
def test_rows_are_updated_in_place(
    device: dt.Device, shape: tuple[int, ...], places: list[int]
) -> None:
    places = [p % shape[0] for p in places]
    (x, y), new, at, (tx, ty, tnew, tat) = row_operands(shape, places, device)

    def work() -> None:
        total = rows_at(ty, tat) + tnew * tnew
        filled = [rows_at(tx, tat) - tnew * total, total]
        del total
        put_rows("test", [tx, ty], filled, tat)
        assert not filled

    # then no axis remains that identifies rows
    assert count_launches(work) == 1 or len(places) == 1
    total = y[at] + new * new
    x[at], y[at] = x[at] - new * total, total
    np.testing.assert_allclose(tx.numpy(), x, rtol=1e-6)
    np.testing.assert_allclose(ty.numpy(), y, rtol=1e-6)


def test_put_rows_of_values_that_are_no_rows_of_the_target(device: dt.Device) -> None:
    """Rows read along another axis, other rows, or no rows: several launches."""
    (x, _), new, at, (tx, ty, tnew, tat) = row_operands((4, 4), [2, 0, 3, 1], device)
    across = dt.take(tx, tat, axis=1)
    values = [across.mT + tnew]
    del across
    put_rows("test", [tx], values, tat)
    x[at] = x[:, at].T + new
    assert tx.numpy().tobytes() == x.tobytes()
    values = [rows_at(tx, (tat + 1) % 4) + tnew]
    put_rows("test", [tx], values, tat)
    x[at] = x[(at + 1) % 4] + new
    assert tx.numpy().tobytes() == x.tobytes()
    values = [tnew * 2]
    put_rows("test", [tx], values, tat)
    x[at] = new * 2
    assert tx.numpy().tobytes() == x.tobytes()
    held = rows_at(tx, tat) + 1
    put_rows("test", [tx, ty], [held, held * 2], tat)
    assert held.numpy().tobytes() == (x[at] + 1).tobytes()
    x[at] += 1
    assert tx.numpy().tobytes() == x.tobytes()
    assert ty.numpy()[at].tobytes() == (held.numpy() * 2).tobytes()


def test_rows_that_are_read_before_the_write(device: dt.Device) -> None:
    """Pending work sees the old rows; so do other kernels of the same graph."""
    (x, y), new, at, (tx, ty, tnew, tat) = row_operands((9, 4), [7, 0, 3], device)
    before = tx * 10
    values = [rows_at(tx, tat) + dt.sum(tx) + tnew, rows_at(ty, tat) + rows_at(tx, tat)]
    put_rows("test", [tx, ty], values, tat)
    assert before.numpy().tobytes() == (x * np.float32(10)).tobytes()
    np.testing.assert_allclose(ty.numpy()[at], y[at] + x[at], rtol=1e-6)
    np.testing.assert_allclose(tx.numpy()[at], x[at] + x.sum() + new, rtol=1e-4)
    assert tx.numpy()[1].tobytes() == x[1].tobytes()


def test_put_rows_to_read_only_memory_raises() -> None:
    fixed = np.ones((3, 2), "f4")
    fixed.flags.writeable = False
    x, at = dt.asarray(fixed, copy=False), dt.asarray([1])
    with pytest.raises(dt.ReadOnlyError):
        put_rows("test", [x], [rows_at(x, at) + 1], at)
    assert fixed[1, 0] == 1


def test_strided_row_indices_differ_from_contiguous_ones(device: dt.Device) -> None:
    """A view that starts at the same element and has as many elements names other places."""
    x, base = dt.zeros((8, 3), device=device), dt.asarray([5, 1, 4, 0], device=device)
    dt.evaluate(x, base)
    apart, beside = base[::2], base[:2]
    values = [rows_at(x, beside) + 1.0]
    put_rows("test", [x], values, apart)
    assert x.sum(axis=1).tolist() == [0, 0, 0, 0, 3, 3, 0, 0]
