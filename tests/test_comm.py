"""`dt.comm`: copies and sums of tensors between the devices of one process."""

from __future__ import annotations

from itertools import product
from typing import Any

import dovetail as dt
import numpy as np
import pytest

THERE = [str(d) for d in dt.devices() if d.type in ("reference", "cpu", "opencl")]
PAIRS = list(product(THERE, THERE))


def values(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_functions_have_the_values_of_their_definitions(first: str, second: str) -> None:
    a = values(5, 4)
    x = dt.asarray(a, device=first)
    copies = dt.comm.broadcast(x, [first, dt.device(second), first])
    assert [str(c.device) for c in copies] == [first, second, first]
    assert all(np.array_equal(c.numpy(), a) for c in copies) and copies[0] is x
    parts = dt.comm.scatter(x, [second, first])
    assert [p.shape for p in parts] == [(3, 4), (2, 4)]
    assert [str(p.device) for p in parts] == [second, first]
    joined = dt.comm.gather(parts, destination=first)
    assert str(joined.device) == first and np.array_equal(joined.numpy(), a)
    assert str(dt.comm.gather(parts).device) == second
    wide = dt.comm.scatter(x, [second, first, second], chunk_sizes=[1, 0, 3], dim=-1)
    assert [p.shape for p in wide] == [(5, 1), (5, 0), (5, 3)]
    assert np.array_equal(dt.comm.gather(wide, dim=1).numpy(), a)
    total = dt.comm.reduce_add(copies, destination=second)
    assert str(total.device) == second and np.array_equal(total.numpy(), a + a + a)


def test_sum_is_in_the_order_of_the_list() -> None:
    numbers = [1e8, 1.0, -1e8, 1.0]
    for devices in (THERE * 4, ["reference"] * 4):
        inputs = [
            dt.asarray([v], dtype=dt.float32, device=d)
            for v, d in zip(numbers, devices, strict=False)
        ]
        assert dt.comm.reduce_add(inputs).tolist() == [1.0]
        assert dt.comm.reduce_add(inputs[::-1], "reference").tolist() == [0.0]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_gradients_flow_back_to_the_first_device(first: str, second: str) -> None:
    a = values(5)
    x = dt.asarray(a, device=first).requires_grad_()
    one, two = dt.comm.scatter(x, [first, second], [2, 3])
    y = dt.comm.gather([one * 2.0, two * 3.0], destination=second)
    y.sum().backward()
    assert x.grad.device is x.device and x.grad.tolist() == [2.0, 2.0, 3.0, 3.0, 3.0]
    x.grad = None
    copies = dt.comm.broadcast(x, [first, second])
    scaled = [c * w for c, w in zip(copies, (2.0, 5.0), strict=True)]
    dt.comm.reduce_add(scaled, second).sum().backward()
    assert x.grad.tolist() == [7.0] * 5


def test_scatter_of_few_elements_has_empty_parts() -> None:
    parts = dt.comm.scatter(dt.ones((1, 2)), ["reference"] * 3)
    assert [p.shape for p in parts] == [(1, 2), (0, 2), (0, 2)]
    assert [p.shape for p in dt.comm.scatter(dt.ones(0), ["reference"] * 2)] == [(0,), (0,)]
    (whole,) = dt.comm.broadcast(dt.asarray(2.0), ["reference"])
    assert whole.item() == 2.0
    assert dt.comm.reduce_add([dt.asarray(2), dt.asarray(3)]).item() == 5


def test_functions_work_in_captured_and_mapped_ones() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        one, two = dt.comm.scatter(x, ["reference", "reference"])
        return dt.comm.gather([two, dt.comm.reduce_add([one, one])])

    x = dt.arange(4, dtype=dt.float32, device="reference")
    assert dt.jit(f)(x).tolist() == [2.0, 3.0, 0.0, 2.0]
    assert dt.vmap(f)(dt.stack([x, x + 1])).tolist() == [[2.0, 3.0, 0.0, 2.0], [3.0, 4.0, 2.0, 4.0]]


def test_wrong_arguments_are_named() -> None:
    x = dt.ones((4, 2), device="reference")
    two = ["reference", "reference"]
    for call, error, said in [
        (lambda: dt.comm.broadcast(x, []), dt.ArgumentError, "broadcast: devices must name a dev"),
        (lambda: dt.comm.broadcast(x, "cpu"), dt.ArgumentTypeError, "broadcast: devices"),
        (lambda: dt.comm.broadcast([1], two), dt.ArgumentTypeError, "broadcast: tensor"),
        (lambda: dt.comm.broadcast(x, ["nowhere"]), dt.DeviceError, "nowhere"),
        (lambda: dt.comm.scatter(x, two, [1, 2]), dt.ArgumentError, r"add up to 4, got \[1, 2\]"),
        (lambda: dt.comm.scatter(x, two, [4]), dt.ArgumentError, "2 natural numbers"),
        (lambda: dt.comm.scatter(x, two, [5, -1]), dt.ArgumentError, "natural numbers"),
        (lambda: dt.comm.scatter(x, two, dim=2), dt.AxisError, "axis 2"),
        (lambda: dt.comm.gather([]), dt.ArgumentError, "gather: tensors must have a tensor"),
        (lambda: dt.comm.gather(x), dt.ArgumentTypeError, "a list of tensors"),
        (lambda: dt.comm.reduce_add([x, x[0]]), dt.ArgumentError, "one shape and dtype"),
        (lambda: dt.comm.reduce_add([x, x.astype("int32")]), dt.ArgumentError, "one shape"),
    ]:
        with pytest.raises(error, match=said):
            call()
