"""DLPack and NumPy exchange: sharing, flags, and lifetimes."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.functions.io import interop

torch = pytest.importorskip(
    "torch", reason="PyTorch is one of the peers (pip install --group peers)"
)

REAL = [d.name for d in dt.dtypes.ALL if d.kind != "c"]


@pytest.mark.parametrize("name", [n for n in REAL if n != "bfloat16"])
def test_numpy_exchange_shares_memory(device: dt.Device, name: str) -> None:
    x = dt.asarray([0, 1, 1], dtype=name)
    a = np.from_dlpack(x)
    assert a.dtype.name == name and a.tolist() == x.tolist()
    a[0] = 1
    assert x.tolist()[0] == 1, "memory is not shared"
    y = dt.from_dlpack(a)
    a[1] = 0
    assert y.device is device and y.dtype.name == name and y.tolist() == [1, 0, 1] == x.tolist()


@pytest.mark.parametrize("name", [n for n in REAL if n not in ("uint16", "uint32", "uint64")])
def test_torch_exchange_shares_memory(device: dt.Device, name: str) -> None:
    x = dt.asarray([[0, 1, 1], [1, 0, 0]], dtype=name)
    t = torch.from_dlpack(x)
    assert str(t.dtype) == f"torch.{name}" and t.tolist() == x.tolist()
    t[0, 0] = 1
    assert x.tolist()[0][0] == 1
    y = dt.from_dlpack(t.T)
    assert y.stride() == (1, 3) and y.dtype.name == name and y.tolist() == t.T.tolist()
    y.zero_()
    assert t.sum().item() == 0 and x.count_nonzero().item() == 0


def test_jax_exchange_shares_memory(device: dt.Device) -> None:
    jnp = pytest.importorskip("jax.numpy", reason="JAX is one of the peers")
    y = dt.from_dlpack(jnp.arange(4.0))
    assert y.tolist() == [0, 1, 2, 3] and dt.asarray(jnp.arange(3)).tolist() == [0, 1, 2]
    assert jnp.from_dlpack(dt.arange(4, dtype=dt.int32)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("view", ["flip", "permute", "offset", "scalar", "empty"])
def test_views_keep_their_strides(device: dt.Device, view: str) -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    b = {"flip": a[:, ::-1, ::2], "permute": a.transpose(2, 0, 1), "offset": a[1, 1:],
         "scalar": a[1, 2, 3], "empty": a[:0]}[view]  # fmt: skip
    b = np.asarray(b)
    x = dt.from_dlpack(b)
    assert x.shape == b.shape
    np.testing.assert_array_equal(x.numpy(), b)
    back = np.from_dlpack(x)
    np.testing.assert_array_equal(back, b)
    assert b.size < 2 or np.shares_memory(back, a)
    y = dt.permute_dims(x * 1, tuple(reversed(range(x.ndim))))  # pending
    np.testing.assert_array_equal(np.from_dlpack(y), b.T)


COPYING: list[Callable[[Any], dt.Tensor]] = [
    lambda a: dt.from_dlpack(a, copy=True),
    dt.asarray,
    lambda a: dt.asarray(torch.from_numpy(a)),
    lambda a: dt.asarray(memoryview(a)),
]


@pytest.mark.parametrize("make", COPYING)
def test_copies_are_independent(device: dt.Device, make: Callable[[Any], dt.Tensor]) -> None:
    a = np.arange(3.0)
    x = make(a)
    a += 1
    assert x.tolist() == [0, 1, 2]


def test_copy_argument_of_from_dlpack(device: dt.Device) -> None:
    x = dt.ones(2)
    b: Any = np.from_dlpack(x, copy=True)
    b += 1
    assert x.tolist() == [1, 1]
    assert dt.from_dlpack(x, copy=True).storage() is not x.storage() is dt.from_dlpack(x).storage()
    a = np.arange(3.0)
    shared = dt.asarray(a, copy=False)
    a += 1
    assert shared.tolist() == [1, 2, 3]


def test_dlpack_capsules_follow_the_requested_version(device: dt.Device) -> None:
    x = dt.ones((2, 3))
    assert x.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(x.__dlpack__())
    used = _OldProducer(x.__dlpack__(), x)
    assert dt.from_dlpack(used).tolist() == x.tolist()
    with pytest.raises(BufferError, match="expected an unused capsule"):
        dt.from_dlpack(used)
    with pytest.raises(BufferError, match="cannot be exported"):
        x.__dlpack__(dl_device=(2, 0))
    assert np.from_dlpack(x, device="cpu").tolist() == x.tolist()


class _OldProducer:
    """A producer with the protocol from before DLPack 1.0."""

    def __init__(self, capsule: Any, x: dt.Tensor) -> None:
        self.capsule, self.x = capsule, x

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


def test_memory_from_before_dlpack_1_is_read_only_like_numpy(device: dt.Device) -> None:
    x = dt.ones(3)
    shared = dt.from_dlpack(_OldProducer(x.__dlpack__(), x))
    assert not np.from_dlpack(_OldProducer(x.__dlpack__(), x)).flags.writeable
    for write in (lambda: shared.add_(1), lambda: shared.__setitem__(0, 5.0)):
        with pytest.raises(dt.ReadOnlyError, match="read-only"):
            write()
    copied = dt.from_dlpack(_OldProducer(x.__dlpack__(), x), copy=True)
    copied += 1
    assert x.tolist() == [1, 1, 1] and copied.tolist() == [2, 2, 2]


def test_immutable_jax_arrays_are_not_written(device: dt.Device) -> None:
    jnp = pytest.importorskip("jax.numpy", reason="JAX is not installed")
    a = jnp.ones(3)
    for shared in (
        dt.from_dlpack(a),
        dt.asarray(a, copy=False),
        dt.asarray(memoryview(a), copy=False),
    ):
        with pytest.raises(dt.ReadOnlyError, match="read-only"):
            shared[0] = 5.0
    own = dt.asarray(a)
    own[0] = 5.0
    assert a.tolist() == [1, 1, 1] and own.tolist() == [5, 1, 1]


class _Interface:
    """An object with only NumPy's array interface."""

    def __init__(self, a: Any, read_only: bool) -> None:
        at, _ = a.__array_interface__["data"]
        self.__array_interface__ = {**a.__array_interface__, "data": (at, read_only)}
        self.held = a


def test_read_only_array_interface_and_buffer_stay_read_only(device: dt.Device) -> None:
    a = np.arange(3.0)
    for given in (_Interface(a, True), memoryview(a).toreadonly(), bytes(8)):
        with pytest.raises(dt.ReadOnlyError, match="read-only"):
            dt.asarray(given, copy=False)[0] = 5
    dt.asarray(_Interface(a, False), copy=False)[0] = 5
    dt.asarray(memoryview(a), copy=False)[1] = 6
    assert a.tolist() == [5, 6, 2]


def test_read_only_array_gives_a_read_only_tensor(device: dt.Device) -> None:
    a = np.arange(3.0)
    a.flags.writeable = False
    x = dt.asarray(a, copy=False)
    with pytest.raises(dt.ReadOnlyError, match="read-only"):
        x += 1
    assert (x + 1).tolist() == [1, 2, 3] and not np.from_dlpack(x).flags.writeable
    wide = dt.broadcast_to(dt.ones(1), (3,))
    assert not np.from_dlpack(wide).flags.writeable
    with pytest.raises(BufferError, match=r"read-only memory needs DLPack 1\.0"):
        wide.__dlpack__()
    assert not x.numpy().flags.writeable and not wide.numpy().flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        x.numpy().flags.writeable = True


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: dt.from_dlpack(dt.ones(2), device="x:1", copy=False), BufferError, "forbids"),
        (lambda: dt.asarray(np.zeros(3, "i1,i4")["f1"], copy=False), dt.ArgumentError, "strides"),
    ],
)  # fmt: skip
def test_dlpack_errors(device: dt.Device, call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_exported_memory_keeps_its_owner_alive(device: dt.Device) -> None:
    gc.collect()
    live, out = dt.memory.stats().live_blocks, len(interop.live_exports)
    x = dt.ones(1000) * 2
    a = np.from_dlpack(x)
    del x
    gc.collect()
    assert a.sum() == 2000 and len(interop.live_exports) == out + 1
    unused = dt.ones(10).__dlpack__()
    assert len(interop.live_exports) == out + 2
    del a, unused
    gc.collect()
    assert len(interop.live_exports) == out and dt.memory.stats().live_blocks == live
    t = torch.full((1000,), 3.0)
    y = dt.from_dlpack(t)
    z = dt.reshape(y, (10, 100))
    del t, y
    gc.collect()
    assert z.sum().item() == 3000


def test_exit_while_other_libraries_hold_memory() -> None:
    code = (
        "import torch, numpy as np, dovetail as dt\n"
        "x = dt.ones(1000, device='reference')\n"
        "torch.keep, np.keep = torch.from_dlpack(x), np.from_dlpack(x)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_array_protocol(device: dt.Device) -> None:
    x = dt.asarray([[1, 2], [3, 4]], dtype=dt.int16)
    assert np.asarray(x).dtype == np.int16 and np.asarray(x, dtype="f4").tolist() == x.tolist()
    assert np.asarray(x).tolist() == np.array(x).tolist() == x.tolist()
    assert np.array(x, copy=True).flags.writeable
    with pytest.raises(dt.ArgumentError, match="copy=False"):
        x.__array__(np.dtype("f4"), copy=False)
    with pytest.raises(ValueError, match="copy=False"):  # NumPy's own error for a buffer request
        np.asarray(x, dtype="f4", copy=False)
    added = np.float32(2) * dt.ones(2)
    assert isinstance(added, dt.Tensor) and added.tolist() == [2, 2]


def test_array_namespace_accepts_known_versions(device: dt.Device) -> None:
    x = dt.ones(2)
    assert x.__array_namespace__() is dt and x.__array_namespace__(api_version="2024.12") is dt
    with pytest.raises(dt.ArgumentError, match="1999"):
        x.__array_namespace__(api_version="1999.12")
    info = dt.__array_namespace_info__()
    assert info.default_device() is device and device in info.devices()
    assert info.default_dtypes()["real floating"] is dt.float32
    assert set(info.dtypes(kind="integral")) == {d.name for d in dt.dtypes.INTEGERS}
    assert info.capabilities()["max dimensions"] == 64  # the maximum that NumPy can show
    names = {"float32", "float64", "complex64", "complex128", "bool"}
    standard = names | {d.name for d in dt.dtypes.INTEGERS}
    assert set(info.dtypes()) == standard


# --- ml_dtypes


def test_bfloat16_and_ml_dtypes_share_memory_both_ways(device: dt.Device) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = np.asarray([[1.0, 2.5, -3e38], [0.0, 1e-40, np.inf]]).astype(ml_dtypes.bfloat16)
    for given in (a, a.T, a[:, ::2]):
        x = dt.asarray(given)
        assert x.dtype is dt.bfloat16
        for found in (x.numpy(), np.asarray(x), (x * 1).numpy()):
            assert found.dtype == a.dtype and found.tobytes() == given.tobytes()
    assert dt.asarray(a[0, 1]).dtype is dt.bfloat16 and dt.asarray(a[0, 1]).item() == 2.5
    x = dt.asarray(a, copy=False) if device == "cpu" else dt.asarray(a)
    assert np.shares_memory(x.numpy(), a) == (device == "cpu")


def test_numpy_names_the_package_of_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    x = dt.ones(2, dtype=dt.bfloat16, device="reference")
    for read in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(
            dt.DTypeError, match=r"no bfloat16; pip install ml_dtypes, or use x\.astype"
        ):
            read()
