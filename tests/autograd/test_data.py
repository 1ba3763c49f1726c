"""`x.data` as in PyTorch: the memory of a tensor without its gradient."""

from __future__ import annotations

from collections.abc import Callable

import dovetail as dt
import pytest


def leaf(device: dt.Device) -> dt.Tensor:
    return dt.asarray([1.0, 2.0, 3.0], device=device).requires_grad_()


def test_data_shares_memory_without_a_gradient(device: dt.Device) -> None:
    x = leaf(device)
    assert not x.data.requires_grad and x.data.is_leaf
    assert x.data.storage() is x.storage()
    x.data[0] = 7.0
    x.data.mul_(2)
    assert x.tolist() == [14, 4, 6] and x.requires_grad and x.is_leaf
    (x * 3).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3, 3, 3]


def test_data_of_a_result_has_no_gradient(device: dt.Device) -> None:
    x = leaf(device)
    y = x * 2
    assert y.data.tolist() == [2, 4, 6] and not y.data.requires_grad and y.requires_grad


@pytest.mark.parametrize(
    "step",
    [
        lambda x: x.data.sub_(x.grad * 0.1),
        lambda x: setattr(x, "data", x.data - x.grad * 0.1),
        lambda x: setattr(x, "data", x.data.__isub__(x.grad * 0.1)),  # x.data -= ...
    ],
)
def test_manual_optimizer_step_through_data_keeps_parameter_and_gradient(
    device: dt.Device, step: Callable[[dt.Tensor], object]
) -> None:
    """Write to a parameter through `.data`, as older PyTorch code does."""
    x = leaf(device)
    seen: list[list[float]] = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    for _ in range(2):
        (x * x).sum().backward()
        step(x)
        assert x.grad is not None and x.requires_grad and x.is_leaf
    assert [round(v, 4) for v in x.tolist()] == [0.44, 0.88, 1.32]
    assert [[round(v, 4) for v in g] for g in seen] == [[2, 4, 6], [1.6, 3.2, 4.8]]


def test_assigning_data_replaces_the_memory(device: dt.Device) -> None:
    x, y = leaf(device), dt.zeros(3, device=device)
    x.sum().backward()
    x.data = y
    y[0] = 5.0
    assert x.tolist() == [5, 0, 0] and x.grad is not None and x.grad.tolist() == [1, 1, 1]
    x.data = dt.ones(2, dtype=dt.float16, device=device)
    assert x.dtype is dt.float16 and x.shape == (2,) and x.grad is None and x.requires_grad


def test_backward_raises_if_data_overwrote_a_saved_value(device: dt.Device) -> None:
    """PyTorch returns a gradient of values that were never multiplied."""
    x = leaf(device)
    y = (x * x).sum()
    x.data.zero_()
    with pytest.raises(dt.GradientError, match="overwrote it in place"):
        y.backward()


def test_assigning_data_raises_for_results_and_wrong_types(device: dt.Device) -> None:
    x = leaf(device)
    with pytest.raises(dt.GradientError, match="only a leaf"):
        (x * 2).data = x
    with pytest.raises(dt.DTypeError, match="expected a tensor"):
        x.data = [1.0]  # type: ignore[assignment]  # what is no tensor


def test_captured_step_writes_through_data(device: dt.Device) -> None:
    x = leaf(device)

    @dt.jit
    def step(g: dt.Tensor) -> None:
        x.data -= g

    for _ in range(3):
        step(dt.ones(3, device=device))
    assert x.tolist() == [-2, -1, 0] and x.requires_grad


def test_gradient_of_an_earlier_result_reaches_the_tensor(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0], device=device).requires_grad_()
    seen = list[object]()
    x.register_hook(lambda g: seen.append(g.tolist()))
    loss = (x * x).sum()
    x.data = dt.asarray([5.0, 6.0], device=device)
    loss.backward()
    assert x.grad is not None and x.grad.tolist() == [2.0, 4.0] and seen == [[2.0, 4.0]]
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0] and x.is_leaf


@pytest.mark.parametrize(
    "rebind",
    [
        lambda x: setattr(x, "data", dt.ones(3, device=x.device)),
        lambda x: setattr(x, "data", dt.ones(2, dtype=dt.float64, device=x.device)),
        lambda x: x.set_(dt.ones(2, device=x.device)),
    ],
)
def test_backward_of_an_earlier_result_raises_if_its_leaf_is_gone(
    device: dt.Device, rebind: Callable[[dt.Tensor], object]
) -> None:
    x = dt.asarray([1.0, 2.0], device=device).requires_grad_()
    seen: list[list[float]] = []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    loss = (x * x).sum()
    rebind(x)
    with pytest.raises(dt.GradientError, match=r"backward: .*float32\[2\].* call backward before"):
        loss.backward()
    assert x.grad is None and seen == []
    (x * 3).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0] * x.size
    kept = len(seen)
    handle.remove()
    (x * 3).sum().backward()
    assert len(seen) == kept
