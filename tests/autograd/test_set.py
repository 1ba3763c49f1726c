"""`x.set_(y)` gives a tensor object another memory."""

from __future__ import annotations

import dovetail as dt
import pytest
from dovetail.engine.events import counters


def test_set_takes_memory_device_and_dtype(device: dt.Device) -> None:
    x, y = dt.ones(2), dt.zeros(3, dtype=dt.float64)
    assert x.set_(y) is x and x.shape == (3,) and x.dtype is dt.float64
    y += 1
    assert x.tolist() == [1.0, 1.0, 1.0]
    x.set_(dt.arange(2, device="reference") + 1)  # of pending work, too
    assert x.device == dt.device("reference") and x.tolist() == [1, 2]


def test_set_of_a_leaf_keeps_it_a_leaf_and_clears_its_gradient(device: dt.Device) -> None:
    x = dt.ones(2).requires_grad_()
    (x * 2).sum().backward()
    x.set_(dt.ones(3, dtype=dt.float64))
    assert x.requires_grad and x.is_leaf and x.grad is None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0] * 3 and x.grad.dtype is dt.float64
    plain = dt.ones(2)
    plain.set_(x)
    assert not plain.requires_grad


@pytest.mark.parametrize("source", [lambda x: x, lambda x: x.detach(), lambda x: x.data])
def test_set_to_own_memory_keeps_gradient_and_graph(device: dt.Device, source) -> None:
    x = dt.asarray([1.0, 2.0]).requires_grad_()
    (x * 3).sum().backward()
    y = (x * x).sum()
    assert x.set_(source(x)) is x
    assert x.grad.tolist() == [3.0, 3.0]
    y.backward()
    assert x.grad.tolist() == [5.0, 7.0]


def test_set_leaves_views_on_the_previous_memory(device: dt.Device) -> None:
    x = dt.zeros(4)
    v = x[:2]
    x.set_(dt.ones(4))
    v += 5
    assert x.tolist() == [1.0] * 4 and v.tolist() == [5.0] * 2
    w = dt.ones(4).requires_grad_()
    u = w.detach()[:2]
    w.set_(dt.zeros(4))
    u += 1  # of memory that no leaf uses any more
    assert w.tolist() == [0.0] * 4


def test_set_raises_for_results_and_wrong_types(device: dt.Device) -> None:
    x = dt.ones(2).requires_grad_()
    with pytest.raises(dt.GradientError, match="set_: only a leaf"):
        (x * 2).set_(dt.ones(2))
    with pytest.raises(dt.DTypeError, match=r"set_: .*int64"):
        x.set_(dt.zeros(2, dtype=dt.int64))
    with pytest.raises(dt.LayoutError):
        x.set_(dt.sparse_coo_tensor([[0]], [1.0], (2,)))

    @dt.jit(fullgraph=True)
    def inside(y: dt.Tensor) -> dt.Tensor:
        return y.set_(dt.ones(2))

    with pytest.raises(dt.CaptureError, match="set_"):
        inside(dt.zeros(2))


def test_pending_value_is_computed_when_a_tensor_is_bound_to_it(device: dt.Device) -> None:
    mean, w = dt.zeros(3, device=device), dt.ones(3, device=device)
    dt.evaluate(mean, w)
    for _ in range(4):
        before = counters.evaluations
        mean.data = mean.data * 0.5 + w * 0.5
        assert counters.evaluations == before + 1
        w += 1.0
    assert mean.tolist() == [3.0625] * 3
