"""Devices without float64, float16, exact division, shared memory or large groups: same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyopencl", reason="pyopencl is not installed")
pytest.importorskip("dovetail_opencl", reason="dovetail-opencl is not installed")

import dovetail as dt
from dovetail.device_class import Device
from dovetail.functions.products.matrix_products import vendor_products
from opencl_devices import DEVICES, NAMES, REASON, bare

pytestmark = pytest.mark.skipif(not DEVICES, reason=REASON)

X = np.random.default_rng(1).standard_normal((9, 100)).astype("f4")
K = np.random.default_rng(2).integers(-(2**40), 2**40, (9, 100))


def random(on: Device) -> dt.Tensor:
    return dt.random.Generator(3).normal((50,), device=on)


OPS: dict[str, Callable[[Device, dt.Tensor, dt.Tensor], dt.Tensor]] = {
    "elementwise": lambda on, x, k: dt.exp(x) / (x * x + 1) + dt.sqrt(dt.abs(x)),
    "halves": lambda on, x, k: x.astype(dt.float16) * 3 + x.astype(dt.bfloat16).astype(dt.float16),
    "integers": lambda on, x, k: (k // 7) % 1000 + dt.bitwise_xor(k, k >> 3),
    "rows": lambda on, x, k: x.sum(axis=1),
    "columns": lambda on, x, k: dt.var(x, axis=0),
    "places": lambda on, x, k: dt.argmax(x, axis=1),
    "softmax": lambda on, x, k: dt.softmax(x),
    "running": lambda on, x, k: dt.cumulative_sum(k, axis=1),
    "gather": lambda on, x, k: dt.take(x, dt.asarray([3, -1, 0], device=on), axis=0),
    "mask": lambda on, x, k: x[x > 0],
    "sorted": lambda on, x, k: dt.sort(k, axis=1),
    "product": lambda on, x, k: dt.matmul(x, x.T),
    "random": lambda on, x, k: random(on),
}  # fmt: skip


@pytest.fixture(scope="module", params=DEVICES, ids=NAMES)
def limited_device(request: Any) -> Iterator[tuple[Device, Any]]:
    with bare(request.param, 16) as found:
        yield found


def result(on: Any, op: str) -> Any:
    with vendor_products(False):
        return OPS[op](on, dt.asarray(X, device=on), dt.asarray(K, device=on))


@pytest.mark.parametrize("op", OPS)
def test_every_class_of_op_keeps_its_bits(limited_device: tuple[Device, Any], op: str) -> None:
    found, expected = result(limited_device[0], op), result("reference", op)
    assert found.dtype is expected.dtype and found.device is limited_device[0]
    assert found.numpy().tobytes() == expected.numpy().tobytes()


def test_groups_of_one_work_item_keep_their_bits(limited_device: tuple[Device, Any]) -> None:
    with bare(limited_device[1].info, 1) as (dev, backend):
        assert backend.launcher.sizes == [1]
        found, expected = (
            (dt.asarray(X, device=d) * 2 + 1).sum(axis=1) for d in (dev, "reference")
        )
        assert found.numpy().tobytes() == expected.numpy().tobytes()


def test_float64_tensor_raises_dtype_error(limited_device: tuple[Device, Any]) -> None:
    with pytest.raises(dt.DTypeError, match="float64"):
        dt.evaluate(dt.asarray(X.astype("f8"), device=limited_device[0]) + 1)


def test_device_memory_is_copied_to_the_host(limited_device: tuple[Device, Any]) -> None:
    dev, backend = limited_device
    x = dt.asarray(X, device=dev)
    assert backend.host_address(backend.allocate(8), 0) is None
    assert not np.shares_memory(x.numpy(), x.numpy())
    with pytest.raises(ValueError, match="copy=False"):
        dt.asarray(X, device=dev, copy=False)


def test_non_blocking_copies_complete(limited_device: tuple[Device, Any]) -> None:
    dev, backend = limited_device
    x = dt.asarray(X, device="reference").pin_memory(dev)
    there = x.to(dev, non_blocking=True)
    back = (there * 2).to("reference", non_blocking=True)
    assert np.array_equal(back.numpy(), X * 2)
    assert len(backend.memory._pinned) >= 1
    address = backend.allocate_pinned(100)
    assert address % 64 == 0
    before = len(backend.memory._pinned)
    backend.free_pinned(address, 100)
    assert len(backend.memory._pinned) == before - 1
