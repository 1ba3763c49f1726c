"""Copies and pickles: preserved properties, sharing, unsupported objects, and transfers between
processes.
"""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
import pickletools
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.extend import Layout, LayoutTensor
from dovetail.tensor import other_layouts as layouts

REAL = [d.name for d in dt.dtypes.ALL if d.kind != "c"]
VIEWS: dict[str, Callable[[dt.Tensor], dt.Tensor]] = {
    "whole": lambda x: x,
    "pending": lambda x: x + x,
    "transposed": lambda x: dt.permute_dims(x, (2, 0, 1)),
    "with gaps": lambda x: x[:, ::2, 1:],
    "backwards": lambda x: dt.flip(x),
    "backwards with gaps": lambda x: x[::-1, ::-2],
    "broadcast": lambda x: dt.broadcast_to(x[0], (5, 3, 4)),
    "one element": lambda x: x[1, 2, 3],
    "empty": lambda x: x[:, 3:],
    "overlapping": lambda x: dt.as_strided(x, (3, 3), (1, 1)),
}


def round_trip(x: Any, protocol: int = pickle.DEFAULT_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(x, protocol))


def round_trip_out_of_band(x: Any) -> Any:
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=buffers)


def round_trip_into_buffers(x: Any) -> Any:
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytearray(b.raw()) for b in buffers])


WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"protocol {p}": lambda x, p=p: round_trip(x, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)
    },
    "out of band": round_trip_out_of_band,
    "into buffers": round_trip_into_buffers,
}
KEEPING_ALIASES = [w for w in WAYS if w != "copy"]


def bits(x: dt.Tensor) -> bytes:
    same = x if x.dtype is not dt.bfloat16 else x.astype(dt.float32)
    return np.ascontiguousarray(same.numpy()).tobytes()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("view", VIEWS)
def test_copy_or_pickle_is_equal_and_independent(device: dt.Device, view: str, way: str) -> None:
    for name in REAL:
        whole = dt.reshape(dt.arange(24) - 7, (2, 3, 4)).astype(name)
        x = VIEWS[view](whole)
        before = bits(x)
        y = WAYS[way](x)
        assert type(y) is dt.Tensor and y.device is device
        assert (y.shape, y.dtype) == (x.shape, x.dtype) and bits(y) == before
        assert y.storage() is not x.storage() and not y.requires_grad
        whole.zero_(), x.storage()
        assert bits(y) == before, "it shares memory with what it was made of"
        if view not in ("broadcast", "overlapping"):
            y.fill_(1)
            assert bits(y) == bits(dt.ones(y.shape, dtype=y.dtype))


@pytest.mark.parametrize("way", WAYS)
def test_special_values_keep_their_bits(device: dt.Device, way: str) -> None:
    patterns = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 0x7F800000, 1], np.uint32)
    x = dt.asarray(patterns.view(np.float32))
    assert WAYS[way](x).numpy().view(np.uint32).tolist() == patterns.tolist()


def test_copy_is_independent_before_and_after_evaluation(device: dt.Device) -> None:
    for early in (False, True):
        x = dt.ones(3) * 2
        if early:
            dt.evaluate(x)
        y, z = copy.copy(x), copy.deepcopy(x)
        x += 1
        y *= 5
        assert (x.tolist(), y.tolist(), z.tolist()) == ([3] * 3, [10] * 3, [2] * 3)


def test_each_load_of_a_pickle_has_its_own_memory(device: dt.Device) -> None:
    """A tensor must not write into the bytes object of a pickle."""
    x = dt.arange(5)
    data = pickle.dumps(x, 5)
    first, second = pickle.loads(data), pickle.loads(data)
    first.zero_()
    assert second.tolist() == x.tolist() == pickle.loads(data).tolist() == [0, 1, 2, 3, 4]


# --- aliases


@pytest.mark.parametrize("way", KEEPING_ALIASES)
def test_views_share_memory_after_a_round_trip(device: dt.Device, way: str) -> None:
    x = dt.reshape(dt.arange(6), (2, 3))
    found = WAYS[way]({"x": x, "same": x, "row": x[1], "turned": x.T, "other": dt.ones(1)})
    assert found["same"] is found["x"]
    found["x"].zero_()
    assert found["row"].tolist() == [0, 0, 0] and found["turned"].shape == (3, 2)
    found["row"] += 7
    assert found["turned"].tolist() == [[0, 7]] * 3 and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["row"].storage() is found["x"].storage() is not found["other"].storage()


def test_deep_copies_share_memory_in_any_order(device: dt.Device) -> None:
    x = dt.arange(6)
    part, other, whole = copy.deepcopy([x[4:], x[:2], x])
    whole.fill_(9)
    assert part.tolist() == other.tolist() == [9, 9] and x.tolist() == list(range(6))


def test_loaded_views_alias_each_other_for_gradients(device: dt.Device) -> None:
    x = dt.zeros(4)
    for whole, part in (round_trip((x, x[:2])), copy.deepcopy((x, x[:2]))):
        w = dt.ones(2).requires_grad_()
        part.copy_(w)
        whole.sum().backward()
        assert w.grad is not None and w.grad.tolist() == [1, 1]


def test_single_view_is_pickled_without_the_rest_of_its_memory(device: dt.Device) -> None:
    x = dt.zeros((1000, 1000))
    wide = dt.broadcast_to(x[0, 0], (9**6,))
    assert len(pickle.dumps(x[3:5, :2])) < 400 > len(pickle.dumps(wide))
    assert len(pickle.dumps(x[:, 3])) < 4400 > len(pickle.dumps(x[7]))
    rows = round_trip([x[0], x[1]])
    assert rows[0].storage().nbytes == 4000


def test_pickle_contains_shared_memory_once(device: dt.Device) -> None:
    x = dt.zeros(1000)
    assert len(pickle.dumps([x, x[1:], x[::-1], x])) < 4600


# --- gradients


@pytest.mark.parametrize("way", WAYS)
def test_leaf_keeps_its_gradient(device: dt.Device, way: str) -> None:
    w = dt.asarray([1.0, 2.0]).requires_grad_()
    fresh = WAYS[way](w)
    assert fresh.requires_grad and fresh.is_leaf and fresh.grad is None
    (w * w).sum().backward()
    found = WAYS[way](w)
    assert found.grad.tolist() == [2, 4] and found.grad is not w.grad
    (found * 3).sum().backward()
    assert found.grad.tolist() == [5, 7] and w.grad is not None and w.grad.tolist() == [2, 4]


def test_deep_copy_or_pickle_of_a_result_raises(device: dt.Device) -> None:
    w = dt.ones(2).requires_grad_()
    y = w * 2
    for f in (copy.deepcopy, pickle.dumps):
        with pytest.raises(dt.GradientError, match=r"a result of multiply .*x\.detach\(\)"):
            f(y)
        assert f(y.detach()) is not None
    copy.copy(y).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [2, 2]
    with dt.no_grad():
        assert not copy.deepcopy(w * 2).requires_grad


def test_tied_parameters_stay_tied(device: dt.Device) -> None:
    w = dt.ones((2, 2)).requires_grad_()
    for way in KEEPING_ALIASES:
        model = WAYS[way]({"in": w, "out": w})
        (model["in"] * 2 + model["out"]).sum().backward()
        assert model["in"].grad.tolist() == [[3, 3], [3, 3]], way


# --- other objects


@pytest.mark.parametrize("way", WAYS)
def test_devices_dtypes_and_layouts_stay_singletons(device: dt.Device, way: str) -> None:
    for thing in (device, dt.device("opencl:3"), *dt.dtypes.ALL, dt.strided, dt.sparse_coo):
        assert WAYS[way](thing) is thing


@pytest.mark.parametrize("way", WAYS)
def test_generator_continues_its_stream(device: dt.Device, way: str) -> None:
    g = dt.random.default_rng(7)
    g.uniform((5,))
    h = WAYS[way](g)
    assert h.state == g.state and h.uniform((4,)).tolist() == g.uniform((4,)).tolist()
    h.uniform((1,))
    assert h.state != g.state and round_trip(dt.random.get_state()) == dt.random.get_state()


@pytest.mark.parametrize("way", WAYS)
def test_sparse_tensors_round_trip(device: dt.Device, way: str) -> None:
    a = np.array([[0, 2.0, 0], [3, 0, 4]], np.float32)
    hybrid = dt.sparse_coo_tensor([[1, 1]], [[1.0, 2.0], [3.0, 4.0]], (2, 2))
    for x in (dt.asarray(a).to_sparse(), hybrid, dt.asarray(a * 0).to_sparse()):
        y = WAYS[way](x)
        assert y.layout is dt.sparse_coo and y.device is device and y.shape == x.shape
        assert (y.is_coalesced(), y.nnz) == (x.is_coalesced(), x.nnz)
        assert y.to_dense().tolist() == x.to_dense().tolist()
        assert y.indices().tolist() == x.indices().tolist()
        assert y.values().storage() is not x.values().storage()
    w = dt.asarray(a).to_sparse().requires_grad_()
    (w * w).to_dense().sum().backward()
    v = WAYS[way](w)
    assert v.requires_grad and v.is_leaf and v.grad.to_dense().tolist() == (2 * a).tolist()


@pytest.mark.parametrize(
    "make", [lambda d: dt.default_stream(d), dt.Event, lambda d: dt.ones(2, device=d).storage(),
             lambda d: dt.ones(2, device=d).storage().ptr],
)  # fmt: skip
def test_objects_of_this_process_raise_a_clear_error(
    device: dt.Device, make: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    thing = make(device)
    for way in WAYS.values():
        with pytest.raises(dt.DTypeError, match=r"^pickle, copy: an? .* this process; "):
            way([thing] if way is not copy.copy else thing)
    gc.collect()
    assert capfd.readouterr().err == ""


def test_layout_without_pickle_support_is_named() -> None:
    class Odd(LayoutTensor):
        layout = Layout("odd")
        device, dtype, shape = dt.device("reference"), dt.float32, (2,)

    for way in WAYS.values():
        with pytest.raises(dt.LayoutError, match=r"pickle: not supported for the layout odd"):
            way(object.__new__(Odd))
    assert layouts.INTERFACE


# --- buffers


def test_out_of_band_pickle_makes_no_copies(device: dt.Device) -> None:
    x = dt.arange(1000)
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    (raw,) = (b.raw() for b in buffers)
    assert len(data) < 400 and raw.nbytes == 8000
    address = np.frombuffer(raw, np.uint8).ctypes.data
    assert address == x.data_ptr(), "what is sent was copied"
    place = bytearray(raw)
    y = pickle.loads(data, buffers=[place])
    place[:8] = (77).to_bytes(8, sys.byteorder)
    assert y.tolist()[:3] == [77, 1, 2] and x.tolist()[0] == 0
    z = pickle.loads(data, buffers=[bytes(raw)])
    z += 1
    assert z.tolist()[:2] == [1, 2] and raw[8] == 1, "memory that must not be written was copied"
    at = memoryview(bytearray(8003))[3:]
    at[:] = raw
    assert pickle.loads(data, buffers=[at]).tolist() == x.tolist(), "bytes at odd addresses"


def test_loaded_memory_lives_as_long_as_its_buffer(device: dt.Device) -> None:
    buffers: list[pickle.PickleBuffer] = []
    pickle.dumps(dt.arange(1000) + 5, 5, buffer_callback=buffers.append)
    gc.collect()
    again = dt.zeros(1000, dtype=dt.int64)
    dt.evaluate(again)
    assert np.frombuffer(buffers[0].raw(), np.int64)[:2].tolist() == [5, 6]


# --- loaded objects


def test_pickle_names_only_dovetail_functions(device: dt.Device) -> None:
    w = dt.ones(2).requires_grad_()
    for x in (dt.ones(2), dt.ones((2, 2))[:, 0], w, dt.ones((2, 2)).to_sparse()):
        named: set[str] = set()
        strings: list[str] = []
        for op, arg, _ in pickletools.genops(pickle.dumps(x)):
            strings += [arg] if "UNICODE" in op.name else []
            if op.name == "STACK_GLOBAL":
                named.add(".".join(s for s in strings if s)[-0:])
        modules = {s for s in strings if "." in s}
        assert named and all(m.startswith("dovetail.") for m in modules), modules


def _on(device: str) -> bytes:
    data = pickle.dumps([dt.ones(2, device="reference"), dt.zeros(3, device="reference")])
    return data.replace(b"reference", device.encode())


def test_tensor_of_a_missing_device_loads_on_the_default_device(device: dt.Device) -> None:
    with pytest.warns(dt.DovetailWarning, match=rf"on no_device, .* it is now on {device}"):
        first, second = pickle.loads(_on("no_device"))
    assert first.device is second.device is device and first.tolist() == [1, 1]


def test_missing_default_device_raises_with_both_names() -> None:
    says = "on no_device, which cannot be had .*the default device is not available .*neither_do"
    with dt.device("neither_do"), pytest.raises(dt.DeviceError, match=says):
        pickle.loads(_on("no_device"))
    with pytest.raises(dt.DeviceError, match=r"pickle: expected a device name .* got 'No device'"):
        pickle.loads(_on("No device"))


def test_damaged_pickle_reads_only_its_own_memory(device: dt.Device) -> None:
    made, (memory, shape, strides, offset, *rest) = dt.arange(4).__reduce_ex__(5)
    load, args = memory.__reduce_ex__(4)
    for wrong in [((5,), strides, offset), (shape, (2,), 0), (shape, strides, 1), ((2,), (-1,), 0)]:
        with pytest.raises(dt.ShapeError, match="reach"):
            made(load(*args), *wrong, *rest)
    with pytest.raises(dt.ArgumentError, match="must be a multiple of 8 for int64, got 9 bytes"):
        load(args[0], args[1], b"x" * 9)


def test_random_views_round_trip(device: dt.Device) -> None:
    rng = random.Random(3)
    for _ in range(60):
        whole = dt.reshape(dt.arange(60), (3, 4, 5)).astype(rng.choice(REAL[1:]))
        views = [whole]
        for _ in range(rng.randint(1, 4)):
            v = rng.choice(views)
            key = tuple(
                rng.choice([slice(None), slice(None, None, -1), slice(1, None), slice(0, None, 2)])
                for _ in range(v.ndim)
            )
            v = v[key]
            views.append(dt.permute_dims(v, rng.sample(range(v.ndim), v.ndim)))
        rng.shuffle(views)
        way = rng.choice(KEEPING_ALIASES)
        found = WAYS[way](views)
        assert [f.tolist() for f in found] == [v.tolist() for v in views], way
        if way == "deepcopy":
            target = rng.randrange(len(views))
            views[target].fill_(99), found[target].fill_(99)
            assert [f.tolist() for f in found] == [v.tolist() for v in views]


# --- processes


def doubled(x: dt.Tensor) -> dt.Tensor:
    return x * 2


def pool_map(method: str, device: str) -> list[Any]:
    rows = list(dt.reshape(dt.arange(6, device=device).astype(dt.float32), (3, 2)))
    with multiprocessing.get_context(method).Pool(1) as pool:
        return [y.tolist() for y in pool.map(doubled, rows)]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_exchange_tensors(tmp_path: Path, method: str) -> None:
    program = (
        "import multiprocessing, test_copy_and_pickle, gc\n"
        "if __name__ == '__main__':\n"
        f"    print(test_copy_and_pickle.pool_map({method!r}, 'reference'))\n"
        "    gc.collect()\n"
    )
    (tmp_path / "program.py").write_text(program)
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.stdout == "[[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]]\n", done.stderr
    assert done.stderr == ""


def test_cloudpickle_sends_closures_over_tensors(device: dt.Device) -> None:
    cloudpickle = pytest.importorskip("cloudpickle", reason="pip install dovetail-tensor[test]")
    x = dt.arange(3)
    assert pickle.loads(cloudpickle.dumps(lambda n: x * n))(2).tolist() == [0, 2, 4]


def test_joblib_stores_and_hashes_tensors(device: dt.Device, tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib", reason="pip install dovetail-tensor[test]")
    x = dt.reshape(dt.arange(6), (2, 3))
    joblib.dump({"x": x, "row": x[1]}, tmp_path / "x.joblib")
    found = joblib.load(tmp_path / "x.joblib")
    found["x"].zero_()
    assert found["row"].tolist() == [0, 0, 0]
    assert joblib.hash(x) == joblib.hash(x.copy()) != joblib.hash(x + 1)
    work = (joblib.delayed(doubled)(row) for row in x)
    assert [y.tolist() for y in joblib.Parallel(2, "threading")(work)] == [[0, 2, 4], [6, 8, 10]]
