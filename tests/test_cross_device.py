"""Transfers between all installed devices and host memory, DLPack both ways, and mixed-device
errors.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.commands import demo
from rich.console import Console

DEVICES = [str(d) for d in dt.__array_namespace_info__().devices()]
PAIRS = list(itertools.product(DEVICES, DEVICES))
REAL = [d for d in dt.dtypes.ALL if d.kind != "c"]


def hosted(device: str) -> bool:
    """Return True if its memory is host memory for DLPack; some devices have no DLPack type."""
    try:
        return dt.ones(1, device=device).__dlpack_device__()[0] == 1
    except dt.errors.SharingError:
        return False


HOSTED = [d for d in DEVICES if hosted(d)]


def bits(x: dt.Tensor) -> bytes:
    held = dt.astype(x, dt.float32) if x.dtype is dt.bfloat16 else x
    return bytes(np.ascontiguousarray(held.numpy()).tobytes())


def has(name: str, d: dt.DType) -> bool:
    can = dt.plugins.open_device(name).backend.info.capabilities
    return d in can.dtypes and (can.float64 or d is not dt.float64)


def some(d: dt.DType, device: str) -> dt.Tensor:
    x = dt.asarray(np.arange(-6, 18).reshape(4, 6), device=device)
    return dt.astype(dt.abs(x) if d.kind == "u" else x, d)


def test_at_least_two_devices_exist() -> None:
    assert "reference" in DEVICES and len(DEVICES) >= 2


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_to_moves_every_dtype_and_layout(here: str, there: str) -> None:
    for d in REAL:
        if not (has(here, d) and has(there, d)):
            continue
        x = some(d, here)
        views = (x.mT, x[::-1, 1::2], x[2, 3], x[:0], dt.broadcast_to(x[0], (3, 6)), x + x)
        for view in (x, *views) if d is dt.float32 else (x,):
            y = view.to(there)
            assert str(y.device) == there and y.dtype is d and y.shape == view.shape
            assert bits(y) == bits(view)
    assert x.to(here) is x and (x.to(there) is x) == (here == there)


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_asarray_moves_a_tensor(here: str, there: str) -> None:
    x = some(dt.float32, here)
    y = dt.asarray(x, device=there)
    assert str(y.device) == there and bits(y) == bits(x)
    z = dt.asarray(x, device=there, dtype=dt.int32)
    assert z.dtype is dt.int32 and bits(z) == bits(some(dt.int32, here))
    assert str(dt.zeros_like(x, device=there).device) == there
    assert str(dt.from_dlpack(x, device=there).device) == there
    if here != there:
        with pytest.raises((dt.DovetailError, BufferError), match="copy"):
            dt.asarray(x, device=there, copy=False)


@pytest.mark.parametrize("there", DEVICES)
def test_asarray_accepts_arrays_and_lists(there: str) -> None:
    for made in ([[1, 2], [3, 4]], np.arange(1, 5).reshape(2, 2), memoryview(bytes([1, 2, 3, 4]))):
        x = dt.asarray(made, device=there)
        assert str(x.device) == there and x.sum().item() == 10


@pytest.mark.parametrize(("here", "there"), [p for p in PAIRS if p[0] != p[1]])
def test_moved_tensor_is_no_view(here: str, there: str) -> None:
    x = some(dt.float32, here)
    y = x.to(there)
    y += 1
    x *= 2
    assert bits(x) == bits(some(dt.float32, here) * 2)
    assert bits(y) == bits(some(dt.float32, there) + 1)


@pytest.mark.parametrize(("here", "there"), [p for p in PAIRS if p[0] != p[1]])
def test_gradients_return_to_the_source_device(here: str, there: str) -> None:
    x = some(dt.float32, here).requires_grad_()
    (dt.tanh(x.to(there)) * 3).sum().backward()
    expected = some(dt.float32, "reference").requires_grad_()
    (dt.tanh(expected) * 3).sum().backward()
    assert x.grad is not None and str(x.grad.device) == here
    assert bits(x.grad) == bits(expected.grad)


# --- two devices in one op

MIXED: dict[str, Callable[[dt.Tensor, dt.Tensor], Any]] = {
    "add": lambda x, y: x + y,
    "in place": lambda x, y: x.add_(y),
    "out": lambda x, y: dt.add(x, x, out=y),
    "where": lambda x, y: dt.where(x > 0, x, y),
    "matmul": lambda x, y: x @ y.mT,
    "concat": lambda x, y: dt.concat([x, y]),
    "stack": lambda x, y: dt.stack([x, y]),
    "take": lambda x, y: x[dt.astype(y[0], dt.int64)],
    "mask": lambda x, y: x[y > 0],
    "assign": lambda x, y: x.__setitem__(slice(None), y),
    "searchsorted": lambda x, y: dt.searchsorted(x[0], y[0]),
    "scalar of another device": lambda x, y: x * y[0, 0],
}


@pytest.mark.parametrize("name", MIXED)
def test_operands_on_two_devices_raise_and_name_both(name: str) -> None:
    other = next(d for d in DEVICES if d != "reference")
    x, y = some(dt.float32, "reference"), some(dt.float32, other)
    before = bits(x), bits(y)
    with pytest.raises(dt.DeviceError) as caught:
        dt.evaluate(MIXED[name](x, y))
    text = str(caught.value)
    assert "reference" in text and other in text, text
    assert ".to(" in text or "must be the same" in text, text
    assert (bits(x), bits(y)) == before


# --- DLPack


@pytest.mark.parametrize("there", DEVICES)
def test_foreign_host_memory_moves_to_any_device(there: str) -> None:
    """Shared if the device uses host memory directly, otherwise copied; a view stays right."""
    a = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (a, a.T, a[::-1, 1::2], a[:0], a[1, 2:3]):
        x = dt.from_dlpack(view, device=there)
        assert str(x.device) == there and np.array_equal(x.numpy(), view)
    copied = dt.from_dlpack(a, device=there, copy=True)
    a[0, 0] = 99
    assert copied[0, 0].item() == 0


@pytest.mark.parametrize("here", DEVICES)
@pytest.mark.parametrize("versions", [None, (0, 8), (1, 0), (1, 1), (2, 0)])
def test_host_memory_can_be_requested_from_any_device(here: str, versions: Any) -> None:
    """`dl_device=(1, 0)`: a copy if the memory is elsewhere, and marked as one."""
    x = some(dt.float32, here)
    capsule = x.__dlpack__(dl_device=(1, 0), max_version=versions)
    versioned = versions is not None and versions >= (1, 0)
    assert ('"dltensor_versioned"' in repr(capsule)) == versioned
    found = np.from_dlpack(_Producer(capsule))
    assert np.array_equal(found, x.numpy())


class _Producer:
    """An object that hands over an existing capsule of host memory."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **asked: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize("here", DEVICES)
def test_requested_copies_are_independent(here: str) -> None:
    x = dt.ones(3, device=here)
    y = np.from_dlpack(_Producer(x.__dlpack__(dl_device=(1, 0), copy=True, max_version=(1, 0))))
    x += 1
    assert y.tolist() == [1, 1, 1] and x.tolist() == [2, 2, 2]
    if here not in HOSTED:
        with pytest.raises(BufferError, match="copy=False"):
            x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match=r"\(99, 0\)"):
        x.__dlpack__(dl_device=(99, 0))


@pytest.mark.parametrize("here", HOSTED)
def test_libraries_share_host_memory(here: str) -> None:
    x = dt.zeros(4, device=here)
    a = np.from_dlpack(x)
    a[1] = 5
    assert x.tolist() == [0, 5, 0, 0]
    torch = pytest.importorskip("torch", reason="PyTorch is one of the peers")
    t = torch.from_dlpack(x)
    t[2] = 7
    assert x.tolist() == [0, 5, 7, 0] == a.tolist()
    y = dt.from_dlpack(t, device=here)
    y[3] = 9
    assert t.tolist() == [0, 5, 7, 9]
    jnp = pytest.importorskip("jax.numpy", reason="JAX is one of the peers")
    assert jnp.from_dlpack(x).tolist() == [0, 5, 7, 9]
    assert dt.from_dlpack(jnp.arange(3.0), device=here).tolist() == [0, 1, 2]


@pytest.mark.parametrize("library", ["numpy", "torch", "jax.numpy"])
@pytest.mark.parametrize("there", [d for d in DEVICES if d not in HOSTED])
def test_libraries_reach_other_devices_through_the_host(there: str, library: str) -> None:
    made = pytest.importorskip(library, reason="one of the peers").arange(5)
    x = dt.from_dlpack(made, device=there)
    assert str(x.device) == there and x.tolist() == [0, 1, 2, 3, 4]
    assert np.asarray(x).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.skipif("cuda" not in DEVICES, reason="there is no GPU here")
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_libraries_share_gpu_memory(library: str) -> None:
    peer = pytest.importorskip(library, reason="one of the peers")
    x = dt.zeros(4, device="cuda")
    theirs = peer.from_dlpack(x)
    theirs[1] = 5
    dt.streams.synchronize("cuda")
    assert x.tolist() == [0, 5, 0, 0]
    y = dt.from_dlpack(theirs)
    assert str(y.device) == "cuda" and y.tolist() == [0, 5, 0, 0]


class UnreachableArray:
    """An array in memory that no device can access, whose library can copy it to the host."""

    def __init__(self, kind: int, copies: bool) -> None:
        self.kind, self.copies, self.asked = kind, copies, list[dict[str, Any]]()
        self.host = np.arange(4, dtype=np.int32)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, **asked: Any) -> Any:
        self.asked.append(asked)
        if asked.get("dl_device") != (1, 0) or not self.copies:
            raise BufferError("this memory is on the moon")
        return self.host.__dlpack__(max_version=asked["max_version"], copy=True)


def test_unreachable_memory_is_requested_on_the_host() -> None:
    moon = UnreachableArray(13, copies=True)
    assert dt.from_dlpack(moon, device="reference").tolist() == [0, 1, 2, 3]
    assert moon.asked[-1]["dl_device"] == (1, 0)
    with pytest.raises(BufferError, match="copy=False"):
        dt.from_dlpack(UnreachableArray(13, copies=True), device="reference", copy=False)
    with pytest.raises(BufferError, match="moon"):
        dt.from_dlpack(UnreachableArray(13, copies=False), device="reference")
    with pytest.raises(dt.DeviceError, match="type 13"):
        dt.from_dlpack(UnreachableArray(13, copies=False))


@pytest.mark.parametrize("there", DEVICES)
def test_unaligned_memory_raises(there: str) -> None:
    a = np.frombuffer(bytearray(17), dtype="f8", offset=1)
    with pytest.raises(BufferError, match="multiple"):
        dt.from_dlpack(a, device=there)
    assert dt.asarray(a, device=there).tolist() == [0, 0]


# --- the demo


def test_demo_gives_one_digest_on_every_device(tmp_path: Path) -> None:
    """`dovetail demo` on every device fails unless they agree to the last bit."""
    pytest.importorskip("sklearn", reason="the demo's data: pip install dovetail-tensor[demo]")
    console = Console(file=io.StringIO(), width=120)
    small = demo.DemoSize(iterations=6, seeds=2, steps=12)
    assert demo.run_demo(demo.available(), tmp_path / "picture.png", small, console) == 0
    text = console.file.getvalue()
    assert all(name in text for name in demo.available()) and set(DEVICES) <= {*demo.available()}
