"""Index checks on an asynchronous device: a bad index raises IndexError at the next wait."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from itertools import count
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import engine
from dovetail.backend.faults import CELLS_PER_STREAM
from dovetail.backend.reference import ReferenceBackend
from dovetail.device_class import Device, device
from dovetail.memory import make_allocator
from dovetail.plugins.device_handle import OpenedDevice
from dovetail.settings import flags
from installed import INSTALLED


class LateBackend(ReferenceBackend):
    """A backend that runs nothing until a wait. `waits` counts the waits."""

    asynchronous = True

    def __init__(self) -> None:
        self.queue: list[Any] = []
        self.waits = 0

    def launch(self, *args: Any) -> None:
        self.queue.append(args)

    def synchronize(self, stream: Any = None) -> None:
        self.waits += 1
        queue, self.queue = self.queue, []
        for args in queue:
            super().launch(*args)

    def copy_in(self, *args: Any) -> None:
        self.synchronize()
        super().copy_in(*args)

    def copy_out(self, *args: Any) -> None:
        self.synchronize()
        super().copy_out(*args)


numbers = count()


@pytest.fixture(scope="module")
def late() -> Iterator[Device]:
    dev = device(f"lagging:{next(numbers)}")  # cached graphs belong to an opened device
    backend = LateBackend()
    dev.opened = OpenedDevice(backend, make_allocator(dev, backend), dev, {})
    yield dev
    dev.opened = None


def test_gather_does_not_wait_and_a_bad_index_raises_on_read(late: Device) -> None:
    x, i = dt.arange(4, device=late), dt.asarray([0, 7], device=late)
    y = dt.take(x, dt.asarray([1, 0], device=late))
    dt.evaluate(y)
    waits = late.opened.backend.waits
    y = dt.take(x, i)
    dt.evaluate(y)
    assert late.opened.backend.waits == waits
    with pytest.raises(IndexError, match="take: 7 is out of range for axis 0 of size 4"):
        y.numpy()
    assert dt.take(x, dt.asarray([-1, 3], device=late)).tolist() == [3, 3]


def test_synchronize_raises_a_bad_index_once(late: Device) -> None:
    y = dt.take(dt.arange(4, device=late), dt.asarray([4], device=late))
    dt.evaluate(y)
    with pytest.raises(IndexError):
        dt.synchronize(late)
    dt.synchronize(late)


def test_nothing_is_written_at_a_bad_index(late: Device) -> None:
    x = dt.zeros(4, device=late)
    with pytest.raises(IndexError):
        x[dt.asarray([1, 9], device=late)] = 1.0
    assert x.tolist() == [0.0] * 4


def test_more_launches_than_check_cells(late: Device) -> None:
    x, i = dt.arange(4, device=late), dt.asarray([3], device=late)
    for _ in range(CELLS_PER_STREAM + 1):
        y = dt.take(x, i)
        dt.evaluate(y)
    assert y.tolist() == [3]
    bad = dt.take(x, i + 1)
    dt.evaluate(bad)
    for _ in range(2 * CELLS_PER_STREAM + 1):
        y = dt.take(x, i)
        dt.evaluate(y)
    assert y.tolist() == [3]
    with pytest.raises(IndexError, match="take: 4 is out of range"):
        bad.tolist()


# --- which values raise, on every device
# ------------------------------------------------------------

WHERE = ["reference", "late", *(d for d in ("cpu", "opencl") if d in INSTALLED)]
BAD = "index: 7 is out of range for axis 0 of size 3"


@pytest.fixture(params=WHERE)
def where(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue("late") if request.param == "late" else device(request.param)


def good_and_bad(where: Device) -> tuple[dt.Tensor, dt.Tensor]:
    x = dt.arange(3, device=where) + 10
    return x, x[dt.asarray([1, 7], device=where)]


def assert_raises_always(*tensors: dt.Tensor, message: str = BAD) -> None:
    """Assert that every way to read the tensors raises, each time."""
    for y in tensors:
        for look in (dt.Tensor.tolist, repr, dt.Tensor.numpy, np.from_dlpack, dt.Tensor.tolist):
            with pytest.raises(dt.OutOfRangeError, match=message):
                look(y)


def evaluate_ignoring_errors(y: dt.Tensor) -> None:
    """Evaluate `y`; ignore the error of devices that check immediately."""
    if y.device.opened.backend.asynchronous:
        dt.evaluate(y)
    else:
        with pytest.raises(dt.OutOfRangeError, match=BAD):
            dt.evaluate(y)


def test_values_of_a_bad_index_raise_each_time_and_others_do_not(where: Device) -> None:
    x, y = good_and_bad(where)
    other, beside = x * 2, x + 1
    evaluate_ignoring_errors(y)
    assert other.tolist() == [20, 22, 24]
    assert_raises_always(y)
    z = y * 2 + beside[:2]
    assert_raises_always(z, z.sum(), y[:1], y.reshape(2, 1))
    assert beside.tolist() == [11, 12, 13] and x.tolist() == [10, 11, 12]
    assert y.shape == (2,) and x[dt.asarray([1], device=where)].tolist() == [11]


def test_referenced_values_of_the_same_kernel_stay_valid(where: Device) -> None:
    x = dt.arange(3, device=where) + 10
    i = dt.asarray([1, 7, 0], device=where)
    fine = dt.asarray([2, 1, 0], device=where)
    a, b, c = x * 2, x[i], x[fine]
    d = a + b + c
    evaluate_ignoring_errors(d)
    assert a.tolist() == [20, 22, 24] and c.tolist() == [12, 11, 10]
    assert_raises_always(b, d)


def test_error_propagates_through_kernels_views_and_cached_graphs(where: Device) -> None:
    x, y = good_and_bad(where)
    evaluate_ignoring_errors(y)
    for _ in range(4):  # the third time it is a guard hit
        z = y * 2.0 + 1.0
        assert_raises_always(z)
        good = x[:2] * 2.0 + 1.0
        assert good.tolist() == [21.0, 23.0]
    assert_raises_always(dt.sort(y), dt.cumulative_sum(y), dt.concat([y, x]))


def test_write_proceeds_if_pending_work_has_a_bad_index(where: Device) -> None:
    x = dt.zeros(3, device=where)
    dt.evaluate(x)
    y = x[dt.asarray([1, 7], device=where)]
    z = y + 1
    x += 1
    x[0] = 5
    assert x.tolist() == [5.0, 1.0, 1.0]
    assert_raises_always(y, z)


def test_long_chain_of_a_bad_value_raises_when_it_is_read(where: Device) -> None:
    x, y = good_and_bad(where)
    for _ in range(100):
        y = y + 1
    assert_raises_always(y)
    assert (x + 1).tolist() == [11, 12, 13]


@pytest.mark.parametrize("evaluated", [False, True])
def test_write_of_a_bad_value_raises_and_keeps_the_target(where: Device, evaluated: bool) -> None:
    _, y = good_and_bad(where)
    target, whole = dt.zeros(2, device=where, dtype=y.dtype), dt.zeros(4, device=where) + 1
    dt.evaluate(target, whole)
    if evaluated:
        evaluate_ignoring_errors(y)
    for write in (
        lambda: target.add_(y), lambda: target.__setitem__(slice(None), y),
        lambda: dt.add(y, y, out=target), lambda: whole[2:].__iadd__(y.astype(whole.dtype)),
        lambda: target.__setitem__(dt.asarray([0, 1], device=where), y),
        lambda: target.__setitem__(dt.asarray([0, 7], device=where), 1),
    ):  # fmt: skip
        with pytest.raises(dt.OutOfRangeError, match="7 is out of range"):
            write()
        assert target.tolist() == [0, 0] and whole.tolist() == [1.0] * 4
    assert_raises_always(y)


def test_write_of_a_bad_value_to_a_pending_target_keeps_its_value(where: Device) -> None:
    x, y = good_and_bad(where)
    target = x[:2] * 0 + 3
    with pytest.raises(dt.OutOfRangeError, match=BAD):
        target.add_(y)
    assert target.tolist() == [3, 3]
    target += x[:2]
    assert target.tolist() == [13, 14]


def test_error_follows_a_value_to_another_device(where: Device) -> None:
    _, y = good_and_bad(where)
    evaluate_ignoring_errors(y)
    there = "cpu" if where.type == "reference" and "cpu" in INSTALLED else "reference"
    if there != where.type:
        with pytest.raises(dt.OutOfRangeError, match=BAD):
            y.to(there)


def test_synchronize_raises_an_unreported_error(late: Device) -> None:
    x, y = good_and_bad(late)
    dt.evaluate(y)
    assert (x + 1).tolist() == [11, 12, 13]  # which raises the error
    with pytest.raises(dt.OutOfRangeError, match=BAD):
        dt.synchronize(late)
    dt.synchronize(late)
    assert_raises_always(y)
    x, y = good_and_bad(late)
    dt.evaluate(y)
    assert_raises_always(y)
    dt.synchronize(late)


def test_checks_are_dropped_with_their_values(late: Device) -> None:
    x, y = good_and_bad(late)
    dt.evaluate(y)
    z = x + 1
    z.tolist()
    assert flags.has_unresolved_checks
    del y
    gc.collect()
    dt.evaluate(dt.sqrt(z) * 3 - z)  # no guard hit: that would not check what remains
    assert not flags.has_unresolved_checks
    y = x[dt.asarray([1, 2], device=late)]
    dt.evaluate(y)
    assert flags.has_unresolved_checks
    y.tolist()
    assert not flags.has_unresolved_checks and y.storage().checks == ()


# --- the message of the error
# ----------------------------------------------------------------------

LINES = {  # the user's expression -> the op's name in the error, the axis and its size
    "x[i]": ("index", 0, 3),
    "x[:, i]": ("index", 1, 4),
    "x[good, i]": ("index", 1, 4),
    "x[..., None, i]": ("index", 1, 4),
    "x[1, i]": ("index", 1, 4),
    "dt.take(x, i, axis=1)": ("take", 1, 4),
    "dt.take_along_axis(x, along, axis=0)": ("take_along_axis", 0, 3),
    "x.__setitem__(i, 1.0)": ("setitem", 0, 3),
    "x.__setitem__((slice(None), i), 1.0)": ("setitem", 1, 4),
    "x.index_add_(0, i, 1.0)": ("index_add", 0, 3),
    "x.scatter_(0, along, 1.0)": ("scatter", 0, 3),
    "x.scatter_add_(0, along, 1.0)": ("scatter_add", 0, 3),
    "dt.searchsorted(x[0], 1.0, sorter=many)": ("searchsorted", 0, 4),
}


@pytest.mark.parametrize("text", LINES)
def test_index_error_names_op_index_axis_size_and_line(
    text: str, request: pytest.FixtureRequest
) -> None:
    code, found = compile(f"\n\n{text}", "user.py", "eval"), set()
    for name in WHERE:
        on = request.getfixturevalue("late") if name == "late" else device(name)
        for block in (contextlib.nullcontext, dt.eager):
            x = dt.ones((3, 4), device=on)
            names = {
                "dt": dt, "x": x, "i": dt.asarray([1, -9], device=on),
                "good": dt.asarray([0, 0], device=on), "along": dt.asarray([[-9] * 4], device=on),
                "many": dt.asarray([1, -9, 0, 0], device=on),
            }  # fmt: skip
            with pytest.raises(IndexError) as caught, block():
                y = eval(code, names)
                assert y.shape is not None
                y.tolist()
            found.add(str(caught.value))
            assert (x == 1).all()
    op, axis, size = LINES[text]
    assert found == {
        f"{op}: -9 is out of range for axis {axis} of size {size} (requested at user.py:3)"
    }


def test_empty_dimension_has_no_valid_index(where: Device) -> None:
    empty, i = dt.zeros((0, 2), device=where), dt.asarray([0, 0], device=where)
    assert_raises_always(empty[i], message="index: 0 is out of range for axis 0 of size 0")
    assert empty[i[:0]].tolist() == []


@pytest.mark.parametrize("is_replayed", [False, True])
def test_refused_launch_reports_no_index(is_replayed: bool) -> None:
    class Refusing(LateBackend):
        refuses = False

        def launch(self, *args: Any) -> None:
            if self.refuses:
                raise RuntimeError("the driver has lost the device")
            super().launch(*args)

    dev, backend = device(f"lagging:{next(numbers)}"), Refusing()
    dev.opened = OpenedDevice(backend, make_allocator(dev, backend), dev, {})
    empty, i = dt.zeros((0, 2), device=dev), dt.asarray([0, 0], device=dev)
    read = dt.jit(lambda x, i: x[i]) if is_replayed else lambda x, i: x[i]
    try:
        dt.evaluate(empty, i)
        if is_replayed:
            with pytest.raises(IndexError):
                read(empty, i).tolist()
        backend.refuses = True
        with pytest.raises(RuntimeError, match="lost the device"):
            read(empty, i).tolist()
        backend.refuses = False
        dt.synchronize(dev)  # raises no IndexError of the launch that did not run
    finally:
        dev.opened = None


# --- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [(), (4,)])
def test_backward_with_a_bad_index_changes_no_gradient(
    where: Device, width: tuple[int, ...]
) -> None:
    w, v = (dt.ones((3, *width), device=where).requires_grad_() for _ in range(2))
    (v * 2).sum().backward()
    loss = (w[dt.asarray([1, 7], device=where)] * v.exp()[:2]).sum()
    if where.opened.backend.asynchronous:
        loss.backward()  # which does not wait for the check
        assert_raises_always(loss, w.grad, v.grad)
        return
    for _ in range(2):  # nothing has been released
        with pytest.raises(dt.OutOfRangeError, match=BAD):
            loss.backward()
        assert w.grad is None and (v.grad == 2).all()
    (w * 3 + v).sum().backward()
    assert (w.grad == 3).all() and (v.grad == 3).all()


@pytest.mark.parametrize("width", [(), (4,)])
def test_gradient_with_a_bad_index_raises_without_reading_the_loss(
    where: Device, width: tuple[int, ...]
) -> None:
    w = dt.ones((3, *width), device=where).requires_grad_()
    assert_raises_always(dt.grad(w[dt.asarray([1, 7], device=where)].sum(), w))
    label = dt.asarray([[1, 0], [0, 0], [900000, 1]], device=where)
    x = dt.ones((3, 2), device=where).requires_grad_()
    picked = dt.grad(dt.take_along_axis(x, label, axis=1).sum(), x)
    assert_raises_always(
        picked, message="take_along_axis: 900000 is out of range for axis 1 of size 2"
    )


def test_failed_backward_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = dt.asarray([1.0, 2.0], device="reference").requires_grad_()
    y = x.exp()
    loss = (y * y.sin() + (x * 2).tanh()).sum()
    evaluate = engine.evaluate

    def fails(*tensors: Any) -> None:
        raise MemoryError("no more")

    for _ in range(2):
        monkeypatch.setattr(engine, "evaluate", fails)
        with pytest.raises(MemoryError):
            loss.backward()
        assert x.grad is None
    monkeypatch.setattr(engine, "evaluate", evaluate)
    loss.backward()
    e = np.exp([1.0, 2.0])
    want = e * np.sin(e) + e * e * np.cos(e) + 2 * (1 - np.tanh([2.0, 4.0]) ** 2)
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-5)
