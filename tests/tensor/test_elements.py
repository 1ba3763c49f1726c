"""Elements that the host reads and writes at once equal those of the deferred path."""

from __future__ import annotations

import gc
import operator
import threading
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.dtypes import ALL, DType
from dovetail.engine.evaluate import engine_lock
from dovetail.engine.events import counters

NUMBERS: list[Any] = [
    True, False, 0, 3, -3, 127, 128, 255, 256, -(2**31), 2**32 - 1, 2**53 + 1, -(2**63), 2**63,
    2**64 - 1, 2**200, 0.5, -0.0, 1e-45, 1e300, float("inf"), float("nan"), 2.0**24 + 1, 1 + 2j,
    np.float32(1.5), np.float64(0.1), np.int8(-1), np.uint64(2**63), np.bool_(True),
]  # fmt: skip


def outcome(write: Callable[[], object]) -> tuple[type, str] | None:
    """Return the class and text of the error that a write raises, or None."""
    try:
        write()
    except Exception as error:
        return type(error), str(error)
    return None


def both_outcomes(
    make: Callable[[], dt.Tensor], write: Callable[[dt.Tensor], None]
) -> list[tuple[Any, Any]]:
    """Return error and values after a write at once, and after one that a profile observes."""
    results = []
    for observed in (False, True):
        x = make()
        if observed:
            with dt.profile():
                error = outcome(lambda x=x: write(x))  # type: ignore[misc]
        else:
            error = outcome(lambda x=x: write(x))  # type: ignore[misc]
        results.append((error, x.storage().view(dt.uint8).tolist()))
    return results


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_number_written_to_one_element_equals_the_deferred_write(dtype: DType, number: Any) -> None:
    def write(x: dt.Tensor) -> None:
        x[1, -1] = number

    at_once, deferred = both_outcomes(lambda: dt.ones((2, 3), dtype=dtype, device="cpu"), write)
    assert at_once == deferred


UPDATES = [operator.iadd, operator.isub, operator.imul, operator.itruediv]
OPERANDS: list[Any] = [
    True, 0, 3, -7, 2**31, 2**53 + 1, 2**63, 0.0, 0.1, -0.0, 1e-40, 3e38, float("inf"),
    float("nan"), np.float64(0.1), 2j,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("update", UPDATES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("start", [0, 1, 119])
@pytest.mark.parametrize("operand", OPERANDS, ids=repr)
def test_update_of_one_element_equals_the_deferred_update(
    dtype: DType, update: Callable[[Any, Any], Any], start: int, operand: Any
) -> None:
    def write(x: dt.Tensor) -> None:
        x[0, 2] = update(x[0, 2], operand)

    def write_number_of_tensor(x: dt.Tensor) -> None:
        x[0, 2] = update(x[0, 2], x[1, 1])

    def make() -> dt.Tensor:
        x = dt.full((2, 3), bool(start) if dtype is ALL[0] else start, dtype=dtype, device="cpu")
        x[1, 1] = x[1, 0] if start == 0 else True
        return x

    for change in (write, write_number_of_tensor):
        at_once, deferred = both_outcomes(make, change)
        assert at_once == deferred


def test_update_of_overflowing_integers_wraps() -> None:
    for dtype, largest in ((dt.int32, 2**31 - 1), (dt.int64, 2**63 - 1)):
        x = dt.asarray([largest, 3], dtype=dtype, device="cpu")
        dt.evaluate(x)
        x[0] += x[1]
        x[1] *= largest
        assert x.tolist() == [-largest + 1, largest - 2]


VIEWS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda a: a,
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, ::-1],
    "strided": lambda a: a[1::2, ::2],
    "column": lambda a: a[:, 2:3],
}
KEYS: list[Any] = [
    (0, 0), (1, -1), (-2, 0), (2, 0), (0, -9), (10**30, 0), (True, 0), (np.int64(1), 0), (0,), 0,
    (0, 0, 0), (..., 0, 0), (0, None, 0), (1.0, 0), -1, (slice(0, 1), 0),
]  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_write_through_a_view_changes_the_elements_that_numpy_changes(view: str, key: Any) -> None:
    values = np.arange(24.0).reshape(4, 6)
    x = dt.asarray(values, device="cpu")
    raised = outcome(lambda: VIEWS[view](values).__setitem__(key, -1.0))
    if raised is not None:
        with pytest.raises((dt.OutOfRangeError, dt.DTypeError)):
            VIEWS[view](x)[key] = -1.0
    else:
        VIEWS[view](x)[key] = -1.0
    assert x.tolist() == values.tolist()


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
def test_element_of_a_tensor_is_copied_with_its_bits(dtype: DType) -> None:
    x = dt.asarray([0, 1, 1], dtype=dtype, device="cpu")
    x[2] = x[0]
    x[0] = x[1]
    assert x.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    "value",
    [
        lambda x: x[1] * 2,  # pending
        lambda x: dt.asarray(7, device="cpu"),  # of another dtype
        lambda x: dt.asarray([7.0], device="cpu"),  # of another shape
        lambda x: dt.asarray([7.0, 8.0], device="cpu"),
        lambda x: dt.asarray(7.0, device="reference"),
        lambda x: dt.asarray(7.0, device="cpu").requires_grad_(),
        lambda x: [7.0],
        lambda x: np.asarray(7.0),
    ],
)
def test_other_value_is_written_as_by_the_deferred_write(value: Callable[[dt.Tensor], Any]) -> None:
    def write(x: dt.Tensor) -> None:
        x[2] = value(x)

    at_once, deferred = both_outcomes(lambda: dt.ones(4, device="cpu"), write)
    assert at_once == deferred


def test_write_of_one_number_launches_no_kernel() -> None:
    gc.collect()  # pending nodes of other tests
    x = dt.zeros((3, 4), device="cpu")
    dt.evaluate(x)
    x[0, 0] = 0.0  # forgets which nodes died
    before = counters.launches
    x[1, 2] = 5.0
    x[0][3] = x[1, 2]
    x[2, 1] += x[1, 2]
    x[2, 1] *= 2.0
    assert (x.sum().item(), counters.launches - before) == (20.0, 1)


# --- what a write must wait for, and what must notice it ------------------------------------------


def test_pending_tensor_is_computed_before_its_element_is_written() -> None:
    x = dt.zeros(3, device="cpu") + 1.0
    x[1] = 5.0
    assert x.tolist() == [1.0, 5.0, 1.0]


@pytest.mark.parametrize("others", [0, 1, 9, 40])
def test_pending_reader_keeps_the_value_from_before_the_write(others: int) -> None:
    x = dt.ones(3, device="cpu")
    dt.evaluate(x)
    y = x * 2.0
    pending = [dt.ones(2, device="cpu") + float(i) for i in range(others)]
    x[0] = 5.0
    z = x + 1.0
    x[0] = 7.0
    assert (y.tolist(), z.tolist(), x.tolist()) == ([2.0] * 3, [6.0, 2.0, 2.0], [7.0, 1.0, 1.0])
    assert [p[0].item() for p in pending] == [1.0 + i for i in range(others)]


def test_reader_through_a_pending_view_keeps_its_value() -> None:
    base = dt.ones(4, device="cpu") * 3.0
    view = base[1:]  # over memory that does not exist yet
    y = view + 1.0
    dt.evaluate(base)
    base[2] = 9.0
    assert (y.tolist(), view.tolist()) == ([4.0, 4.0, 4.0], [3.0, 9.0, 3.0])


def test_reader_of_overlapping_storage_keeps_its_value() -> None:
    memory = np.ones(4, np.float32)
    x = dt.asarray(memory, device="cpu", copy=False)
    tail = dt.asarray(memory[1:], device="cpu", copy=False)
    y = tail * 2.0
    x[1] = 5.0
    assert (y.tolist(), tail.tolist(), memory.tolist()) == (
        [2.0, 2.0, 2.0],
        [5.0, 1.0, 1.0],
        [1.0, 5.0, 1.0, 1.0],
    )


def test_array_over_the_memory_shows_the_write() -> None:
    x = dt.zeros(3, device="cpu")
    shown = x.numpy()
    x[2] = 4.0
    assert shown.tolist() == [0.0, 0.0, 4.0]


def test_read_only_memory_is_not_written() -> None:
    memory = np.zeros(3, np.float32)
    memory.flags.writeable = False
    x = dt.asarray(memory, device="cpu", copy=False)
    with pytest.raises(dt.ReadOnlyError, match="read-only"):
        x[0] = 1.0
    assert memory.tolist() == [0.0, 0.0, 0.0]


def test_leaf_that_requires_a_gradient_is_not_written() -> None:
    x = dt.zeros(3, device="cpu").requires_grad_()
    with pytest.raises(dt.GradientError):
        x[0] = 1.0
    with pytest.raises(dt.GradientError):
        x.detach().__class__.__setitem__(x[:], 0, 1.0)
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_write_to_saved_value_makes_the_backward_pass_raise() -> None:
    saved = dt.ones(3, device="cpu")
    dt.evaluate(saved)
    w = dt.ones(3, device="cpu").requires_grad_()
    loss = (w * saved).sum()
    saved[1] = 5.0
    with pytest.raises(dt.GradientError, match="setitem"):
        loss.backward()


def test_anomaly_checker_sees_an_update_of_one_element() -> None:
    x = dt.asarray([1.0, 0.0], device="cpu")
    dt.evaluate(x)
    with dt.debug_nans(), pytest.raises(dt.AnomalyError, match="divide"):
        x[0] /= x[1]


def test_gradient_flows_through_an_element_that_is_written() -> None:
    w = dt.asarray([2.0, 3.0], device="cpu").requires_grad_()
    x = w * 1.0
    x[0] = 5.0
    (x * x).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [0.0, 6.0]


def test_failed_check_is_raised_and_not_overwritten() -> None:
    x = dt.zeros(3, device="cpu")
    y = x[dt.asarray([0, 7], device="cpu")]
    with pytest.raises(dt.OutOfRangeError):
        float(y[0])
    with pytest.raises(dt.OutOfRangeError):
        y[0] = 1.0
        y.tolist()


def test_captured_write_is_replayed() -> None:
    @dt.jit
    def f(x: dt.Tensor) -> dt.Tensor:
        y = x.copy()
        y[1] = 5.0
        x[0] = y[1]
        return y

    for start in (1.0, 2.0):
        x = dt.full(3, start, device="cpu")
        dt.evaluate(x)
        assert (f(x).tolist(), x.tolist()) == ([start, 5.0, start], [5.0, start, start])


def test_write_under_vmap_is_made_for_each_example() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        y = x.copy()
        y[1] = 5.0
        y[0] = x[2]
        return y

    batch = dt.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device="cpu")
    assert dt.vmap(f)(batch).tolist() == [[3.0, 5.0, 3.0], [6.0, 5.0, 6.0]]


def test_write_waits_for_the_thread_that_evaluates() -> None:
    x = dt.zeros(2, device="cpu")
    dt.evaluate(x)
    writer = threading.Thread(target=lambda: x.__setitem__(0, 1.0))
    with engine_lock:
        writer.start()
        writer.join(0.2)
        waited = writer.is_alive()
    writer.join()
    assert waited and x.tolist() == [1.0, 0.0]


def test_write_on_a_stream_of_the_host_is_seen_on_the_default_stream() -> None:
    x = dt.zeros(3, device="cpu")
    y = x + 1.0
    with dt.Stream("cpu"):
        x[0] = 5.0
        z = x * 2.0
        dt.evaluate(z)
        x[1] = z[0]
    assert (x.tolist(), y.tolist(), z.tolist()) == (
        [5.0, 10.0, 0.0],
        [1.0, 1.0, 1.0],
        [10.0, 0.0, 0.0],
    )


def test_copy_to_the_device_ends_before_an_element_is_written() -> None:
    values = dt.ones(1 << 16, device="cpu")
    dt.evaluate(values)
    moved = values.to("reference")
    values[0] = 5.0
    assert moved[0].item() == 1.0


# --- reads ----------------------------------------------------------------------------------------

READS: list[tuple[str, Callable[[Any], Any]]] = [
    ("float", float), ("int", int), ("bool", bool), ("complex", complex),
    ("item", lambda v: v.item()),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [d for d in ALL if d is not dt.bfloat16], ids=lambda d: d.name)
@pytest.mark.parametrize(("name", "read"), READS, ids=[name for name, _ in READS])
def test_number_that_is_read_equals_numpys(
    dtype: DType, name: str, read: Callable[[Any], Any]
) -> None:
    values = np.asarray([[0, 1], [0, 1]], dtype.name)
    x = dt.asarray(values, device="cpu")
    if dtype.is_complex and name in ("float", "int"):
        with pytest.raises(dt.DTypeError, match=f"{name}: expected a real number"):
            read(x[1, 1])
        return
    for pair in ((x[0, 0], values[0, 0]), (x.T[1, -1], values[1, 1]), (x[1, 1] + x[0, 1], None)):
        ours, theirs = (
            read(pair[0]),
            read(values[1, 1] + values[0, 1]) if pair[1] is None else read(pair[1]),
        )
        assert type(ours) is type(theirs) and ours == theirs


@pytest.mark.parametrize("read", [float, int, bool], ids=lambda f: f.__name__)
def test_number_of_several_elements_raises(read: Callable[[Any], Any]) -> None:
    with pytest.raises(dt.ShapeError, match=read.__name__):
        read(dt.zeros(2, device="cpu"))


@pytest.mark.parametrize("name", ["__float__", "__int__", "__bool__"])
def test_conversion_set_on_the_class_is_called(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = dt.ones((), device="cpu")
    convert = {"__float__": float, "__int__": int, "__bool__": bool}[name]
    mine = {"__float__": 4.5, "__int__": 7, "__bool__": False}[name]
    with monkeypatch.context() as patch:
        patch.setattr(dt.Tensor, name, lambda self: mine)
        assert convert(x) == mine
    assert convert(x) == 1


def test_conversion_of_another_layout_raises() -> None:
    sparse = dt.asarray([[0.0, 2.0]], device="cpu").to_sparse()
    for convert in (float, int, bool):
        with pytest.raises((dt.ShapeError, dt.LayoutError)):
            convert(sparse)


def test_read_of_a_captured_value_raises() -> None:
    @dt.jit(fullgraph=True)
    def f(x: dt.Tensor) -> dt.Tensor:
        return x * float(x[0])

    with pytest.raises(dt.CaptureError, match="the host reads a tensor"):
        f(dt.ones(2, device="cpu"))
