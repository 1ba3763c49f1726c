"""Storages that overlap in memory: programs equal NumPy, whenever work runs."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dovetail.memory import Allocator, DataPtr

Share = Callable[[np.ndarray], dt.Tensor]


def _from_memory(a: np.ndarray) -> dt.Tensor:
    """Return a tensor over an array through `DataPtr` and a user allocator."""
    device = dt.default_device()

    class Given(Allocator):
        def allocate(self, nbytes: int, stream: object = None) -> DataPtr:
            handle = a.view(np.uint8) if str(device) == "reference" else a.ctypes.data
            return dt.memory.wrap_pointer(a, handle, a.nbytes, device)

    return dt.empty(a.shape, dtype=a.dtype, device=device, allocator=Given())


def _from_blob(a: np.ndarray) -> dt.Tensor:
    keep: list[np.ndarray] = [a]
    return dt.from_blob(a.ctypes.data, a.shape, dtype=a.dtype, deleter=keep.clear)


SHARES: dict[str, Share] = {
    "from_dlpack": dt.from_dlpack,
    "asarray": lambda a: dt.asarray(a, copy=False),
    "from_blob": _from_blob,
    "allocator": _from_memory,
}


@pytest.fixture(params=["reference", "cpu", "opencl"])
def device(request: pytest.FixtureRequest) -> object:
    if request.param not in map(str, dt.devices()):
        pytest.skip(f"device {request.param} is not installed")
    before = dt.default_device()
    yield dt.set_default_device(request.param)
    dt.set_default_device(before)


def _require(share: str, device: object) -> Share:
    if share == "allocator" and str(device) == "opencl":
        pytest.skip("a handle of opencl is an object of the driver's, not an address")
    return SHARES[share]


@pytest.mark.parametrize("second", SHARES)
@pytest.mark.parametrize("first", SHARES)
def test_write_through_one_storage_settles_readers_of_the_other(
    first: str, second: str, device: object
) -> None:
    n = np.zeros(2, "f4")
    x, y = _require(first, device)(n), _require(second, device)(n)
    z, w = y * 1.0, x + 1.0
    x[...] = 5
    assert z.tolist() == [0, 0]
    assert w.tolist() == [1, 1]
    assert y.tolist() == [5, 5]
    assert (y * 2).tolist() == [10, 10]


@pytest.mark.parametrize("step", [0, 4])
def test_allocator_that_returns_overlapping_pointers_gives_shared_memory(
    step: int, device: object
) -> None:
    _require("allocator", device)
    memory = np.zeros(5, "f4")
    starts = iter(range(0, 64, step) if step else [0] * 4)

    class Overlapping(Allocator):
        def allocate(self, nbytes: int, stream: object = None) -> DataPtr:
            part = memory.view(np.uint8)[next(starts) :]
            handle = part if str(device) == "reference" else part.ctypes.data
            return dt.memory.wrap_pointer(part, handle, nbytes, dt.default_device())

    given = Overlapping()
    x, y = (dt.empty(4, dtype="f4", allocator=given) for _ in range(2))
    x[...] = 1
    before, weight = x * 2, x[:].requires_grad_()
    saved = weight * weight
    y[...] = 5
    assert before.tolist() == [2, 2, 2, 2]
    assert x.tolist() == ([1, 5, 5, 5] if step else [5, 5, 5, 5])
    with pytest.raises(dt.GradientError):
        saved.sum().backward()


def test_overlapping_slices_of_different_dtype_and_order_settle_readers(device: object) -> None:
    n = np.arange(8, dtype="f4")
    part = dt.from_dlpack(n[2:6])
    z = part + 0.0
    bits = dt.from_dlpack(n.view(np.int32)[::-1])  # a superset that is added later
    bits[3:] = 0  # elements 0 to 4
    assert z.tolist() == [2, 3, 4, 5]
    assert part.tolist() == [0, 0, 0, 5]


@pytest.mark.parametrize(
    "make_visible",
    [
        lambda x: x.numpy(),
        np.from_dlpack,
        memoryview,
        lambda x: np.ctypeslib.as_array(
            ctypes.cast(x.data_ptr(), ctypes.POINTER(ctypes.c_float)), (4,)
        ),
        lambda x: np.asarray(x),
    ],
    ids=["numpy", "dlpack", "memoryview", "data_ptr", "asarray"],
)
def test_foreign_view_of_own_memory_is_the_same_memory(
    make_visible: Callable[[dt.Tensor], object], device: object
) -> None:
    x = dt.arange(4, dtype=dt.float32) + 0.0
    dt.evaluate(x)
    y = dt.asarray(np.asarray(make_visible(x)), copy=False)
    z = y * 1.0
    x[...] = 5
    assert z.tolist() == [0, 1, 2, 3]
    assert y.tolist() == [5, 5, 5, 5]


def test_devices_that_share_host_memory_settle_each_other() -> None:
    names = [str(d) for d in dt.devices() if str(d) in ("reference", "cpu", "opencl")]
    assert len(names) > 1
    for first in names:
        for second in names:
            n = np.zeros(1 << 16, "f4")
            x = dt.from_dlpack(n, device=first)
            y = dt.from_dlpack(n, device=second)
            z = y * 1.0
            x += 5
            assert float(z.max()) == 0, (first, second)
            assert float(y.min()) == 5, (first, second)
            y *= 2
            assert float(x.min()) == 10, (first, second)


def test_file_that_is_mapped_twice_is_the_same_memory(tmp_path: Path, device: object) -> None:
    np.zeros(4096, "f4").tofile(tmp_path / "x.bin")
    maps = [np.memmap(tmp_path / "x.bin", "f4", mode="r+") for _ in range(2)]
    if not np.array_equal(_written(maps), [7, 7]):
        pytest.skip("this system does not show writes to one mapping in the other at once")
    if not Path("/proc/self/maps").exists():
        pytest.skip("only Linux tells which file is mapped at an address")
    for share in (SHARES["from_dlpack"], SHARES["asarray"]):
        x, y = share(maps[0][1024:]), share(maps[1])
        before = float(y[1500])
        z = y * 1.0
        x[...] = before + 1
        assert float(z[1500]) == before
        assert float(y[1500]) == before + 1


def _written(maps: list[np.memmap]) -> list[float]:
    maps[0][:2] = 7
    return [float(v) for v in maps[1][:2]]


def test_write_that_reads_an_overlapping_storage_reads_old_values(device: object) -> None:
    n = np.arange(6, dtype="f4")
    x, y = dt.from_dlpack(n), dt.from_dlpack(n)
    x[1:] = y[:-1]
    assert n.tolist() == [0, 0, 1, 2, 3, 4]
    x[:-1] += y[1:] * 10
    assert n.tolist() == [0, 10, 21, 32, 43, 4]


def test_saved_value_that_is_overwritten_through_another_storage_raises(device: object) -> None:
    n = np.ones(3, "f4")
    x, y = dt.from_dlpack(n).requires_grad_(), dt.from_dlpack(n)
    loss = (x * x).sum()
    y[...] = 7
    with pytest.raises(dt.GradientError, match="overwrote it in place"):
        loss.backward()
    w = dt.ones(3).requires_grad_()
    loss = (w * y).sum()
    x.detach()[...] = 8
    with pytest.raises(dt.GradientError, match="overwrote it in place"):
        loss.backward()


def test_user_kernel_sees_overlapping_operands_as_separate_values(device: object) -> None:
    @dt.kernel
    def reverse(out: dt.Out, x: dt.In):
        for i in dt.grid(len(x)):
            out[i] = x[len(x) - 1 - i]

    n = np.arange(5, dtype="f4")
    x, y = dt.from_dlpack(n), dt.from_dlpack(n)
    z = y + 0.0
    reverse(x, y)
    assert n.tolist() == [4, 3, 2, 1, 0]
    assert z.tolist() == [0, 1, 2, 3, 4]


def test_optimizer_step_over_overlapping_parameters_equals_numpy(device: object) -> None:
    n = np.ones(4, "f4")
    p, q = dt.from_dlpack(n).requires_grad_(), dt.from_dlpack(n[1:]).requires_grad_()
    p.grad, q.grad = dt.ones(4), dt.ones(3)
    dt.optim.SGD([p, q], lr=0.25).step()
    assert n.tolist() == [0.75, 0.5, 0.5, 0.5]


def test_dead_storages_leave_no_overlap(device: object) -> None:
    n = np.zeros(4, "f4")
    x = dt.from_dlpack(n)
    for _ in range(1000):
        y = dt.from_dlpack(n)
    assert y.storage().overlap is not None
    assert len(x.storage().overlap.members()) == 2
    alone = dt.from_dlpack(np.zeros(4, "f4"))
    assert alone.storage().overlap is None


def test_random_programs_over_overlapping_storages_equal_numpy(device: object) -> None:
    """Reads, writes and views through several storages, evaluated at random times."""
    for seed in range(40):
        _check_program(random.Random(seed))


def _check_program(rng: random.Random) -> None:
    n = np.arange(12, dtype="f4")
    expected = n.copy()
    windows = [(a, rng.randint(a + 2, 12)) for a in (rng.randint(0, 9) for _ in range(4))]
    shares = [dt.from_dlpack, SHARES["asarray"], _from_blob]
    tensors = [rng.choice(shares)(n[a:b]) for a, b in windows]
    arrays = [expected[a:b] for a, b in windows]
    pending: list[tuple[dt.Tensor, np.ndarray]] = []
    for _ in range(15):
        i, j = rng.randrange(4), rng.randrange(4)
        m = min(len(arrays[i]), len(arrays[j]))
        match rng.randrange(5):
            case 0:
                pending.append((tensors[i][:m] + tensors[j][-m:], arrays[i][:m] + arrays[j][-m:]))
            case 1:
                tensors[i][:m] = tensors[j][-m:]
                arrays[i][:m] = arrays[j][-m:].copy()
            case 2:
                tensors[i][-m:] -= tensors[j][:m] * 0.5
                arrays[i][-m:] -= arrays[j][:m].copy() * np.float32(0.5)
            case 3:
                tensors[i][::-1][:m] = tensors[j][:m]
                arrays[i][::-1][:m] = arrays[j][:m].copy()
            case _ if pending:
                got, want = pending.pop(rng.randrange(len(pending)))
                assert got.tolist() == want.tolist()
    for got, want in pending:
        assert got.tolist() == want.tolist()
    assert np.array_equal(n, expected)


def _at(address: int, n: int) -> np.ndarray:
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (n,))


def test_data_ptr_waits_for_the_value(device: object) -> None:
    n = 1 << 16
    for k in range(20):
        x = dt.full((n,), float(k)) * 2 + 1
        assert _at(x.data_ptr(), n)[-1] == 2 * k + 1
        assert (_at(x.data_ptr(), n) == 2 * k + 1).all()


def test_data_ptr_settles_readers_before_other_code_writes(device: object) -> None:
    n = 1 << 16
    for k in range(20):
        x = dt.full((n,), float(k)) + 0.0
        dt.evaluate(x)
        z = x + 1
        _at(x.data_ptr(), n)[:] = -1
        assert float(z.min()) == k + 1
        assert float(x.max()) == -1
