"""Memory that other libraries may write to: readers of it are not left pending."""

from __future__ import annotations

import gc
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.settings import DEPTH_LIMIT, flags
from installed import INSTALLED

Given = Callable[[dt.Tensor], np.ndarray[Any, Any]]

VIEWS: dict[str, Given] = {
    "numpy": lambda x: x.numpy(),
    "asarray": np.asarray,
    "DLPack": np.from_dlpack,
    "a view of a view": lambda x: x.numpy()[::-1][::-1].reshape(-1),
    "pickle": lambda x: np.frombuffer(_buffers(x)[0], np.float32),
    "memoryview": lambda x: np.asarray(memoryview(x.numpy())),
}


def _buffers(x: dt.Tensor) -> list[pickle.PickleBuffer]:
    found: list[pickle.PickleBuffer] = []
    pickle.dumps(x, 5, buffer_callback=found.append)
    return found


@pytest.fixture(params=["reference", *(d for d in ("cpu", "opencl") if d in INSTALLED)])
def device(request: pytest.FixtureRequest) -> Iterator[dt.Device]:
    before = dt.default_device()
    yield dt.set_default_device(request.param)
    dt.set_default_device(before)


@pytest.fixture(autouse=True)
def no_views() -> None:
    """Check that no view of an earlier test is alive."""
    gc.collect()
    dt.evaluate(dt.ones(1, device="reference") + 1)


def is_pending(x: dt.Tensor) -> bool:
    return x._expr.op is not None


def pending_tensor(n: int = 4) -> dt.Tensor:
    return dt.arange(n, dtype=dt.float32) * 1


@pytest.fixture(params=VIEWS)
def viewed(request: pytest.FixtureRequest, device: dt.Device) -> Given:
    if not np.shares_memory((x := pending_tensor()).numpy(), x.numpy()):
        pytest.skip(f"the host does not reach {device}'s memory")
    return VIEWS[request.param]


def test_tensors_see_writes_through_a_view(viewed: Given) -> None:
    x = pending_tensor()
    row = x[1:3]
    a = viewed(x)
    a[1] = 9
    assert x.tolist() == [0, 9, 2, 3] and row.tolist() == [9, 2]
    x += 1
    assert a.tolist() == [1, 10, 3, 4]
    x[:2] = 5
    assert a.tolist() == [5, 5, 3, 4]


def test_values_recorded_before_a_foreign_write_are_the_old_ones(viewed: Given) -> None:
    x = pending_tensor()
    before, unheard = x * 2, (x + 1) * 3
    a = viewed(x)
    during, deep = x * 10, dt.exp(x[1:] - x[1:]) + x[0]
    copy, part = x.copy(), x[2:].copy()
    a[...] = 7
    assert before.tolist() == [0, 2, 4, 6] and unheard.tolist() == [3, 6, 9, 12]
    assert during.tolist() == [0, 10, 20, 30] and deep.tolist() == [1, 1, 1]
    assert copy.tolist() == [0, 1, 2, 3] and part.tolist() == [2, 3]
    assert (x * 10).tolist() == [70] * 4


def test_readers_of_other_memory_stay_pending(viewed: Given) -> None:
    x, other = pending_tensor(), pending_tensor()
    dt.evaluate(x, other)
    a = viewed(x)
    assert is_pending(other + 1) and not is_pending(x + 1) and not is_pending((other + 1) * x)
    assert not is_pending(dt.where(other > 1, other, x))
    del a
    gc.collect()
    assert is_pending(x + 1)
    assert is_pending(x + 1) and flags.depth == DEPTH_LIMIT


def test_each_of_several_views_counts(viewed: Given) -> None:
    x = pending_tensor()
    first, second = viewed(x), x.numpy()
    del first
    y = x + 1
    second[0] = 50
    assert y.tolist() == [1, 2, 3, 4]
    del second
    gc.collect()
    assert is_pending(x + 1)


def test_written_value_is_independent_of_later_foreign_writes(viewed: Given) -> None:
    """A value that moves into memory does not change when a view of the memory is written."""
    x, y = pending_tensor(), pending_tensor() + 1
    a = viewed(x)
    x[...] = y
    a[...] = 0
    assert y.tolist() == [1, 2, 3, 4]


def test_in_place_write_with_a_viewed_operand_runs_immediately(viewed: Given) -> None:
    x, y = pending_tensor(), pending_tensor()
    a = viewed(x)
    y += x
    y[1:] *= x[1:]
    a[...] = 100
    assert y.tolist() == [0, 2, 8, 18]


def test_large_graphs_next_to_an_export_read_old_values(device: dt.Device) -> None:
    x, others = pending_tensor(), [pending_tensor() + i for i in range(300)]
    a = x.numpy()
    y = dt.stack(others).sum(axis=0) + x
    z = dt.stack([pending_tensor() + i for i in range(300)]).sum(axis=0)
    a[...] = 0
    want = [sum(k + i for i in range(300)) for k in range(4)]
    assert y.tolist() == [w + k for k, w in enumerate(want)] and z.tolist() == want


def test_captured_function_reads_foreign_writes(viewed: Given) -> None:
    x, bias = pending_tensor(), pending_tensor()

    @dt.jit
    def f(x: dt.Tensor) -> dt.Tensor:
        return (x * 2 + bias) * (x + 1)

    a, b = viewed(x), viewed(bias)
    first = f(x)
    second = f(x)
    a[...], b[...] = 1, 2
    third = f(x)
    a[...] = 0
    assert first.tolist() == second.tolist() == [0, 6, 18, 36] and third.tolist() == [8] * 4


def test_tensors_leaked_by_a_captured_function_are_evaluated(device: dt.Device) -> None:
    leaked: list[dt.Tensor] = []
    x = pending_tensor()

    @dt.jit
    def f(x: dt.Tensor) -> dt.Tensor:
        leaked.extend((x * 2, x[:2] - 5))
        return leaked[0] + 1

    a = x.numpy()
    y = f(x)
    a[...] = 100
    assert y.tolist() == [1, 3, 5, 7] and leaked[1].tolist() == [-5, -4]


@pytest.mark.parametrize("early", [False, True])
def test_view_sees_writes_of_a_captured_function(viewed: Given, early: bool) -> None:
    x = pending_tensor()

    @dt.jit
    def f(x: dt.Tensor) -> None:
        x += 1

    if early:
        f(x)
    a = viewed(x)
    f(x)
    assert a.tolist() == [n + 1 + early for n in range(4)]


def test_saved_results_are_not_affected_by_foreign_writes(viewed: Given) -> None:
    """An op saves its own result in memory that is not exported."""
    x = pending_tensor().requires_grad_()
    a = viewed(x.detach())
    y = dt.exp(x * 0)
    a[...] = 100
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0, 0, 0, 0] and y.tolist() == [1] * 4


def test_saved_operands_are_affected_by_foreign_writes(viewed: Given) -> None:
    """As docs/numpy.md says."""
    x = pending_tensor().requires_grad_()
    a = viewed(x.detach())
    y = (x * x).sum()
    a[...] = 10
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [20] * 4 and y.item() == 14


def test_eager_blocks_and_views_may_end_in_any_order(device: dt.Device) -> None:
    x, other = pending_tensor(), pending_tensor()
    dt.evaluate(x, other)
    with dt.eager():
        a = x.numpy()
        assert not is_pending(other + 1)
    gc.collect()
    assert is_pending(other + 1)
    with dt.eager():
        del a
        gc.collect()
        assert not is_pending(other + 1)
    gc.collect()
    assert is_pending(x + 1) and is_pending(x + 1) and flags.depth == DEPTH_LIMIT


def test_other_threads_respect_the_view(device: dt.Device) -> None:
    x = pending_tensor()
    a, found = x.numpy(), []
    thread = threading.Thread(target=lambda: found.append(x + 1))
    thread.start()
    thread.join()
    a[...] = 100
    assert found[0].tolist() == [1, 2, 3, 4]


def test_reading_values_is_no_export(device: dt.Device) -> None:
    x = pending_tensor()
    y = x + 1
    dt.evaluate(x)
    repr(x), x.tolist(), x[0].item(), dt.nonzero(x), pickle.dumps(x, 4)
    assert is_pending(y) and flags.depth == DEPTH_LIMIT


def test_views_outlive_their_tensors(viewed: Given) -> None:
    x = pending_tensor()
    a = viewed(x)
    y = x[1:]
    del x
    a[2] = 30
    assert y.tolist() == [1, 30, 3]
    del y
    gc.collect()
    for _ in range(20):
        dt.evaluate(pending_tensor() + 5)
    assert a.tolist() == [0, 1, 30, 3]
