"""Asynchronous copies, on a device that runs queued copies as late as possible."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.backend.reference import ReferenceBackend
from dovetail.device_class import Device, device
from dovetail.functions.io import transfer
from dovetail.memory import CachingAllocator
from dovetail.plugins.device_handle import OpenedDevice


class LateDevice(ReferenceBackend):
    """A backend with memory that the host cannot map, which copies at a synchronization."""

    dlpack_type = None
    pins_memory = True

    def __init__(self) -> None:
        self.queue: list[Callable[[], None]] = []
        self.pages: dict[int, Any] = {}

    def host_address(self, handle: Any, offset: int) -> None:
        return None

    def adopt(self, address: int, nbytes: int) -> None:
        return None

    def queue_copy_in(self, *copy: Any) -> None:
        self.queue.append(lambda: ReferenceBackend.copy_in(self, *copy))

    def queue_copy_out(self, *copy: Any) -> None:
        self.queue.append(lambda: ReferenceBackend.copy_out(self, *copy))

    def copy_out(self, target: Any, handle: Any, offset: int, stream: Any = None) -> None:
        self.synchronize()
        super().copy_out(target, handle, offset, stream)

    def launch(self, *args: Any, **kwargs: Any) -> None:
        self.synchronize()
        super().launch(*args, **kwargs)

    def synchronize(self, stream: Any = None) -> None:
        self.wait_event(None, None)

    def record_event(self, stream: Any) -> Any:
        return list(self.queue)

    def event_done(self, event: Any) -> bool:
        return not any(copy in self.queue for copy in event)

    def wait_event(self, stream: Any, event: Any) -> None:
        while self.queue:
            self.queue.pop(0)()

    def allocate_pinned(self, nbytes: int) -> int:
        page = np.zeros(nbytes + 64, np.uint8)
        address = -(-page.ctypes.data // 64) * 64
        self.pages[address] = page
        return address

    def free_pinned(self, address: int, nbytes: int) -> None:
        del self.pages[address]


@pytest.fixture
def late() -> Iterator[Device]:
    found, backend = device("late"), LateDevice()
    found.opened = OpenedDevice(backend, CachingAllocator(backend, found), found, {})
    yield found
    found.opened = None


X = np.arange(6, dtype="f4").reshape(2, 3)


def pinned_tensor(x: Any = X) -> dt.Tensor:
    return dt.asarray(x, device="reference").pin_memory("late")


def test_pinned_memory_has_the_same_values(late: Device) -> None:
    x = dt.asarray(X, device="reference").mT
    assert not x.is_pinned()
    y = dt.pin_memory(x, late)
    assert y.is_pinned() and y.pin_memory() is y and y.device == x.device
    assert y.shape == (3, 2) and np.array_equal(y.numpy(), X.T)
    assert (y * 2).numpy().tolist() == (X.T * 2).tolist()
    assert dt.empty((0,), device="reference").pin_memory(late).shape == (0,)


def test_copy_to_the_device_does_not_wait(late: Device) -> None:
    x = pinned_tensor()
    y = x.to("late", non_blocking=True)
    assert len(late.opened.backend.queue) == 1
    assert np.array_equal(y.numpy(), X) and not late.opened.backend.queue


def test_write_to_the_source_waits_for_the_copy(late: Device) -> None:
    x = pinned_tensor()
    y = x.to("late", non_blocking=True)
    x += 1
    assert np.array_equal(y.numpy(), X) and np.array_equal(x.numpy(), X + 1)


def test_host_read_waits_for_the_copy(late: Device) -> None:
    x = dt.asarray(X, device="late")
    for look in (lambda y: y.numpy(), lambda y: (y + 0).numpy(), lambda y: np.asarray(y.mT).T):
        y = x.to("reference", non_blocking=True)
        assert y.is_pinned() and len(late.opened.backend.queue) == 1
        assert np.array_equal(look(y), X)


def test_source_memory_outlives_its_copy(late: Device) -> None:
    x = pinned_tensor()
    y = x.to("late", non_blocking=True)
    del x
    gc.collect()
    z = pinned_tensor(X + 7)  # of the same size: it would get the memory of x if that were free
    assert np.array_equal(y.numpy(), X) and np.array_equal(z.numpy(), X + 7)


def test_pinned_memory_is_reused_after_its_copy(late: Device) -> None:
    for _ in range(20):
        y = pinned_tensor().to("late", non_blocking=True)
        dt.evaluate(y + 1)
        late.opened.backend.synchronize()
    assert len(late.opened.backend.pages) == 1


def test_bad_index_raises_when_the_copy_is_read(
    late: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LateDevice, "asynchronous", True)
    x, i = dt.asarray(X, device="late"), dt.asarray([0, 7], device="late")
    y = x[i].to("reference", non_blocking=True)
    with pytest.raises(IndexError, match="out of range"):
        y.numpy()
    assert x[i[:1]].to("reference", non_blocking=True).tolist() == X[:1].tolist()


def test_bfloat16_and_gradients_are_copied(late: Device) -> None:
    x = dt.asarray(X, device="reference").astype(dt.bfloat16).pin_memory("late")
    y = x.to("late", non_blocking=True)
    assert y.dtype is dt.bfloat16 and y.to("reference").tolist() == X.tolist()
    w = dt.asarray(X, device="reference").requires_grad_()
    (w.to("late", non_blocking=True) * 3).sum().backward()
    assert w.grad is not None and w.grad.tolist() == np.full((2, 3), 3.0).tolist()


def test_pin_memory_on_an_unsupported_device_raises(late: Device) -> None:
    with pytest.raises(dt.DeviceError, match="got late"):
        dt.asarray(X, device="late").pin_memory()
    with pytest.raises(dt.DeviceError, match="reference cannot lock pages"):
        dt.asarray(X, device="reference").pin_memory("reference")


def test_missing_pinning_device_has_a_clear_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for place in ("devices", "opened_devices"):
        monkeypatch.setattr(transfer, place, lambda: [device("reference")])
    with pytest.raises(dt.DeviceError, match="no device on this machine can lock pages"):
        dt.asarray(X, device="reference").pin_memory()


def test_non_blocking_copy_works_without_page_locked_memory() -> None:
    x = dt.asarray(X, device="reference")
    assert x.to("cpu", non_blocking=True).numpy().tolist() == X.tolist()
