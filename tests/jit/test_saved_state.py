"""Rule 5 of captures: saved functions keep one state and distinguish arguments as before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import dovetail as dt
import numpy as np
import pytest


def saved(f: object, path: Path) -> dt.capture.serialize.Loaded:
    dt.save_function(f, path / "f")  # type: ignore[arg-type]
    return dt.load_function(path / "f")


def test_loaded_function_distinguishes_one_tensor_given_twice_from_two(
    device: dt.Device, tmp_path: Path
) -> None:
    f = dt.jit(lambda x, y: x * 2 + y)
    q = dt.asarray([1.0, 2.0])
    f(q, q)
    loaded = saved(f, tmp_path)
    assert loaded(q, q).tolist() == [3.0, 6.0]
    with pytest.raises(dt.CaptureError, match="of a captured kind"):
        loaded(dt.asarray([1.0, 1.0]), dt.asarray([5.0, 5.0]))
    f(dt.asarray([1.0, 1.0]), dt.asarray([5.0, 5.0]))
    assert saved(f, tmp_path)(dt.asarray([1.0, 1.0]), dt.asarray([5.0, 5.0])).tolist() == [7.0, 7.0]


def test_captures_of_a_loaded_function_share_its_state(device: dt.Device, tmp_path: Path) -> None:
    state = dt.zeros(4)
    part = state[1:3]

    def count(x: dt.Tensor) -> dt.Tensor:
        part.__iadd__(1)
        return x.sum() + state.sum()

    f = dt.jit(count)
    f(dt.zeros(2)), f(dt.zeros(3))
    loaded = saved(f, tmp_path)
    assert [loaded(dt.zeros(n)).item() for n in (2, 3, 2)] == [6.0, 8.0, 10.0]
    assert state.tolist() == [0.0, 2.0, 2.0, 0.0]


def test_capture_of_another_closure_is_not_saved(device: dt.Device, tmp_path: Path) -> None:
    model = SimpleNamespace(k=2.0)
    f = dt.jit(lambda x: x * model.k)
    f(dt.ones(2))
    model.k = 3.0
    f(dt.ones(2))
    assert saved(f, tmp_path)(dt.ones(2)).tolist() == [3.0, 3.0]
    model.k = 4.0
    with pytest.raises(dt.CaptureError, match="has changed since the capture"):
        dt.save_function(f, tmp_path / "f")


def test_function_whose_argument_shares_memory_with_its_closure_is_not_saved(
    device: dt.Device, tmp_path: Path
) -> None:
    state = dt.zeros(4)
    f = dt.jit(lambda x: x + state[:2])
    f(state[2:])
    with pytest.raises(dt.CaptureError, match="must not share memory with a tensor of the closure"):
        dt.save_function(f, tmp_path / "f")


def test_loaded_function_compares_static_arguments_by_type_and_bits(
    device: dt.Device, tmp_path: Path
) -> None:
    f = dt.jit(lambda x, k: x * dt.asarray(k, dtype=dt.float32), static_argnames="k")
    for k in (0.0, -0.0):
        f(dt.ones(1), k)
    loaded = saved(f, tmp_path)
    signs = [dt.signbit(loaded(dt.ones(1), k)).item() for k in (0.0, -0.0)]
    assert signs == [False, True]
    for k in (2, 1.0, "1", None):
        with pytest.raises(dt.CaptureError, match="of a captured kind"):
            loaded(dt.ones(1), k)
    g = dt.jit(lambda x, k: x if k is True else -x)
    g(dt.ones(1), True), g(dt.ones(1), 1)
    loaded = saved(g, tmp_path)
    assert [loaded(dt.ones(1), k).item() for k in (True, 1)] == [1.0, -1.0]


def test_loaded_function_accepts_numpy_floats(device: dt.Device, tmp_path: Path) -> None:
    f = dt.jit(lambda x, k: x * k)
    f(dt.ones(1), 2.0)
    loaded = saved(f, tmp_path)
    assert [loaded(dt.ones(1), k(3)).item() for k in (float, np.float32, np.float64)] == [3.0] * 3


def test_loaded_function_compares_the_containers_of_its_arguments(
    device: dt.Device, tmp_path: Path
) -> None:
    f = dt.jit(lambda parts: sum(parts.values()) if isinstance(parts, dict) else parts[0])
    x, y = dt.asarray([1.0]), dt.asarray([2.0])
    f([x, y]), f((y, x)), f({"b": x, "a": y})
    loaded = saved(f, tmp_path)
    assert [loaded(p).item() for p in ([x, y], (y, x), {"a": x, "b": x})] == [1.0, 2.0, 2.0]
    for parts in ([x], [x, y, x], {"a": x, "c": y}, [[x], y]):
        with pytest.raises(dt.CaptureError, match="of a captured kind"):
            loaded(parts)


def test_loaded_function_compares_the_distance_of_aliasing_arguments(
    device: dt.Device, tmp_path: Path
) -> None:
    def shift(x: dt.Tensor, y: dt.Tensor) -> dt.Tensor:
        x += 1
        return y * 1

    f, q = dt.jit(shift), dt.zeros(6)
    f(q[:3], q[1:4])
    loaded = saved(f, tmp_path)
    assert loaded(q[2:5], q[3:6]).tolist() == [1.0, 1.0, 0.0]
    assert q.tolist() == [1.0, 1.0, 2.0, 1.0, 1.0, 0.0]
    for x, y in ((q[:3], q[2:5]), (q[1:4], q[:3]), (q[:3], dt.zeros(3))):
        with pytest.raises(dt.CaptureError, match="of a captured kind"):
            loaded(x, y)


def test_capture_of_other_containers_of_the_closure_is_not_saved(
    device: dt.Device, tmp_path: Path
) -> None:
    weights = [dt.asarray([2.0])]
    f = dt.jit(lambda x: sum((x * w for w in weights), x * 0))
    f(dt.ones(1))
    weights.append(dt.asarray([3.0]))
    f(dt.ones(1))
    assert saved(f, tmp_path)(dt.ones(1)).tolist() == [5.0]
    weights.pop()
    assert saved(f, tmp_path)(dt.ones(1)).tolist() == [2.0]
    weights.clear()
    with pytest.raises(dt.CaptureError, match="has changed since the capture"):
        dt.save_function(f, tmp_path / "f")


def test_capture_of_another_mode_is_not_saved(device: dt.Device, tmp_path: Path) -> None:
    net = dt.nn.Dropout(1.0)
    f = dt.jit(lambda x: net(x) + 1)
    f(dt.ones(1))
    net.eval()
    f(dt.ones(1))
    assert saved(f, tmp_path)(dt.ones(1)).tolist() == [2.0]
    net.train()
    assert saved(f, tmp_path)(dt.ones(1)).tolist() == [1.0]


def test_capture_of_another_context_is_not_saved(device: dt.Device, tmp_path: Path) -> None:
    w = dt.asarray([2.0]).requires_grad_()
    f = dt.jit(lambda x: w * x)
    f(dt.ones(1))
    with dt.no_grad():
        with pytest.raises(dt.CaptureError, match=r"dt\.no_grad.*has changed since the capture"):
            dt.save_function(f, tmp_path / "f")
        f(dt.ones(1))
        loaded = saved(f, tmp_path)
    assert loaded(dt.asarray([3.0])).tolist() == [6.0]
    with pytest.raises(dt.CaptureError, match="gradients"):
        dt.save_function(f, tmp_path / "f")


def test_loaded_function_avoids_vendor_products_only_if_captured_so(
    device: dt.Device, tmp_path: Path
) -> None:
    f = dt.jit(lambda x: x @ x)
    f(dt.ones((2, 2)))
    loaded = saved(f, tmp_path)
    with dt.vendor_products(False):
        with pytest.raises(dt.CaptureError, match=r"captured under dt\.vendor_products"):
            loaded(dt.ones((2, 2)))
        f(dt.ones((2, 2)))
        loaded = saved(f, tmp_path)
        assert loaded(dt.ones((2, 2))).tolist() == [[2.0, 2.0]] * 2
    assert loaded(dt.ones((2, 2))).tolist() == [[2.0, 2.0]] * 2


def test_loaded_function_cannot_be_part_of_a_capture(device: dt.Device, tmp_path: Path) -> None:
    f = dt.jit(lambda x: x * 2)
    f(dt.ones(2))
    loaded = saved(f, tmp_path)
    x = dt.ones((3, 2))
    for call in (
        lambda: dt.jit(lambda x: loaded(x) + 1)(x[0]),
        lambda: dt.vmap(loaded)(x),
        lambda: dt.scan(lambda c, y: (loaded(c), y), x[0], x),
    ):
        with pytest.raises(dt.CaptureError, match="cannot be called in a captured function"):
            call()


def test_error_of_a_loaded_function_names_the_calling_line(
    device: dt.Device, tmp_path: Path
) -> None:
    f = dt.jit(lambda x, i: dt.take(dt.linalg.inv(x), i, axis=0))
    f(dt.eye(2), dt.asarray([1]))
    loaded = saved(f, tmp_path)
    with pytest.raises(dt.LinAlgError, match=r"singular.*\(requested at .*test_saved_state\.py:"):
        loaded(dt.zeros((2, 2)), dt.asarray([1]))
    with pytest.raises(dt.OutOfRangeError, match=r"requested at .*test_saved_state\.py:"):
        loaded(dt.eye(2), dt.asarray([2]))[0].tolist()


def test_function_with_an_object_as_an_argument_is_not_saved(
    device: dt.Device, tmp_path: Path
) -> None:
    f = dt.jit(lambda x, n: x * n[0], static_argnames="n")
    f(dt.ones(2), (2, 3))
    with pytest.raises(dt.CaptureError, match="got tuple"):
        dt.save_function(f, tmp_path / "f")
