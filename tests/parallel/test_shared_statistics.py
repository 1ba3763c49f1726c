"""`parallel.value_and_grad(statistics="all")`: batch normalisation over the whole batch."""

from __future__ import annotations

from functools import partial
from typing import Any

import dovetail as dt
import numpy as np
import pytest

run_threads = partial(dt.parallel.run, transport="threads", timeout=60)


class Net(dt.nn.Module):
    """Two batch normalisations, with fixed weights: threads share the random generator."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        self.first, self.second = dt.nn.Linear(3, 4), dt.nn.Conv1d(4, 2, 1)
        self.norm, self.norms = dt.nn.BatchNorm1d(4), dt.nn.BatchNorm1d(2)
        self.dropout = dt.nn.Dropout(dropout)
        for p in self.parameters():
            p.data.copy_(dt.asarray(rng.standard_normal(p.shape, np.float32)))

    def forward(self, x: dt.Tensor) -> dt.Tensor:
        x = self.dropout(dt.tanh(self.norm(self.first(x))))
        return self.norms(self.second(x.reshape((-1, 4, 1)) * dt.arange(3.0)))


def loss(net: Net, batch: Any) -> tuple[dt.Tensor, int]:
    x, y = batch
    return ((net(x) - y) ** 4).sum(), len(x)


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.standard_normal((n, 3), np.float32), rng.standard_normal((n, 2, 3), np.float32)


def compute(n: int, groups: int, dropout: float = 0.0) -> dict[str, list[Any]]:
    """Return loss, gradients and buffers after two steps on `n` examples."""
    net = Net(dropout)
    dt.parallel.current().barrier()  # workers that are threads share the random generator
    step = dt.parallel.value_and_grad(
        loss, groups=groups, statistics="all", generator=dt.random.default_rng(0)
    )
    for _ in range(2):
        value, gradients = step(net, data(n))
    tensors = {"loss": value, **gradients, **dict(net.named_buffers())}
    return {name: x.tolist() for name, x in tensors.items()}


@pytest.mark.parametrize("n", [12, 21, 3])
def test_statistics_are_those_of_the_batch(n: int) -> None:
    results = compute(n, 4)
    net = Net()
    x, y = map(dt.asarray, data(n))
    for _ in range(2):
        net.zero_grad()
        value, _ = loss(net, (x, y))
        (value / n).backward()
    np.testing.assert_allclose(results.pop("loss"), (value / n).item(), rtol=1e-5)
    for name, p in net.named_parameters():
        np.testing.assert_allclose(results[name], p.grad.numpy(), rtol=1e-3, atol=1e-4)
    for name, b in net.named_buffers():
        np.testing.assert_allclose(results[name], b.numpy(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("workers", [2, 3, 4, 8])
@pytest.mark.parametrize("n", [40, 21, 2])
def test_bits_do_not_depend_on_the_number_of_workers(workers: int, n: int) -> None:
    alone = compute(n, 8, 0.5)
    assert run_threads(compute, [n, 8, 0.5], workers=workers) == [alone] * workers


def test_bits_of_processes_are_those_of_threads() -> None:
    assert (
        dt.parallel.run(compute, [21, 8, 0.5], workers=2, timeout=60) == [compute(21, 8, 0.5)] * 2
    )


def test_other_statistics_give_another_result() -> None:
    step = dt.parallel.value_and_grad(loss, groups=4)
    assert step(Net(), data(12))[0].item() != compute(12, 4)["loss"]


def test_captured_layers_use_the_statistics_of_the_batch() -> None:
    norm = dt.nn.BatchNorm1d(4)
    captured, x = dt.jit(norm), dt.asarray(data(8)[0] @ np.ones((3, 4), np.float32))
    captured(x)  # with the statistics of this batch alone

    def gradient(layer: Any) -> float:
        step = dt.parallel.value_and_grad(
            lambda w, x: (((layer(x) + w) ** 4).sum(), len(x)), groups=4, statistics="all"
        )
        return step(dt.asarray(2.0), x)[1].item()

    assert gradient(captured) == gradient(norm)


def test_one_value_in_each_group_is_enough() -> None:
    net = dt.nn.BatchNorm1d(1)
    step = dt.parallel.value_and_grad(
        lambda net, x: ((net(x) ** 3).sum(), len(x)), groups=2, statistics="all"
    )
    step(net, np.float32([[1], [3]]))
    assert (net.running_mean.item(), net.running_var.item()) == pytest.approx((0.2, 1.1))
    with pytest.raises(dt.ArgumentError, match="more than one value"):
        step(net, np.float32([[1]]))


def test_capture_is_refused() -> None:
    with pytest.raises(dt.ArgumentError, match='jit must be False with statistics="all"'):
        dt.parallel.value_and_grad(loss, groups=2, statistics="all", jit=True)


def normalise_some(net: Any, x: dt.Tensor) -> tuple[dt.Tensor, int]:
    """Return a loss that normalises only groups whose first example is negative."""
    return (net(x) if x[0, 0].item() < 0 else x * net.weight).sum(), len(x)


@pytest.mark.parametrize("workers", [1, 2])
def test_groups_that_normalise_differently_are_an_error(workers: int) -> None:
    def work() -> None:
        step = dt.parallel.value_and_grad(
            normalise_some,
            groups=2,
            statistics="all",
            generator=dt.random.default_rng(0),
        )
        step(dt.nn.BatchNorm1d(1), np.float32([[-1], [1], [-1], [1]]))

    expected = dt.ArgumentError if workers == 1 else dt.parallel.WorkerError
    with pytest.raises(expected, match=r"groups \[0\] of \[0, 1\]" if workers == 1 else "sent"):
        run_threads(work, workers=workers)


def test_error_in_a_loss_ends_all_groups_and_restores_buffers() -> None:
    def fail(net: Any, x: dt.Tensor) -> tuple[dt.Tensor, int]:
        y = net(x)
        if x[0, 0].item() > 2:
            raise KeyError("loss")
        return y.sum(), len(x)

    net, state = dt.nn.BatchNorm1d(1), dt.random.get_state()
    step = dt.parallel.value_and_grad(
        fail, groups=4, statistics="all", generator=dt.random.default_rng(0)
    )
    with pytest.raises(KeyError):
        step(net, np.arange(8, dtype=np.float32).reshape((8, 1)))
    assert (net.running_mean.item(), net.running_var.item()) == (0.0, 1.0)
    assert dt.random.get_state() == state
