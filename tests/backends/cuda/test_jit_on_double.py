"""Captured functions on the double of the CUDA driver, which runs work late and in any legal
order.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
pytest.importorskip("dovetail_cuda", reason="dovetail-cuda is not installed")

import dovetail as dt
from cuda.bindings.driver import CUresult
from dovetail.capture.loop_acts import RerolledLoop
from dovetail_cuda.graph import GRAPH_LAUNCHES_MIN
from test_on_double import double as double
from test_on_double import gpu as gpu

VALUES = np.linspace(-1, 1, 40, dtype=np.float32)


@pytest.fixture
def device(double: None, gpu: Any) -> Iterator[dt.Device]:
    before = dt.default_device()
    yield dt.set_default_device(gpu.device)
    dt.set_default_device(before)


def step(x: dt.Tensor, w: dt.Tensor, rate: float) -> Any:
    x[1:-1] = 0.5 * (x[:-2] + x[2:])
    y = dt.fori_loop(0, 4, lambda i, y: dt.tanh(y * w) + i, x)
    z = dt.while_loop(lambda z: dt.max(z) > 0.5, lambda z: z * rate, y)
    return z, dt.cond(z.sum() > 0, lambda: y, lambda: -y), dt.take(y, dt.asarray([3, 0]))


def seen(results: Any, x: dt.Tensor) -> list[bytes]:
    return [t.numpy().tobytes() for t in (*results, x)]


def test_replays_have_the_bits_of_the_reference(device: dt.Device) -> None:
    captured = dt.jit(step)
    mine, w = dt.asarray(VALUES), dt.asarray(VALUES[::-1].copy())
    theirs, v = (dt.asarray(a.numpy(), device="reference") for a in (mine, w))
    for rate in (0.5, 0.25, 0.75):
        found = captured(mine, w, rate)
        before = dt.set_default_device("reference")
        wanted = step(theirs, v, rate)
        dt.set_default_device(before)
        dt.set_default_device(device)
        assert seen(found, mine) == seen(wanted, theirs)
    assert captured.captures == 1


def test_captured_training_step_equals_the_reference(device: dt.Device) -> None:
    def train(x: dt.Tensor, w: dt.Tensor) -> dt.Tensor:
        loss = ((x @ w) ** 2).mean()
        loss.backward()
        with dt.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
        return loss

    captured, losses = dt.jit(train), []
    for f in (captured, train):
        w = dt.asarray(VALUES[:4]).requires_grad_()
        x = dt.asarray(VALUES.reshape(10, 4))
        losses.append([f(x, w).item() for _ in range(4)])
    assert losses[0] == losses[1]
    assert captured.captures == 1


def test_out_of_range_index_in_a_replay_raises(device: dt.Device) -> None:
    captured = dt.jit(lambda x, i: x[i] * 2)
    x = dt.asarray(VALUES)
    assert captured(x, dt.asarray([1, 2])).tolist() == (VALUES[1:3] * 2).tolist()
    with pytest.raises(dt.OutOfRangeError):
        captured(x, dt.asarray([1, 40])).tolist()
    assert captured(x, dt.asarray([1, 2])).tolist() == (VALUES[1:3] * 2).tolist()


# --- as a graph


def chain(x: dt.Tensor, rate: float) -> dt.Tensor:
    for _ in range(5):
        x[1:-1] = rate * (x[:-2] + x[2:])
    return x * 2


def call_chain(captured: Any, values: Any, rate: float) -> dt.Tensor:
    """Return the result of a call without synchronization."""
    found: dt.Tensor = captured(dt.asarray(values), rate)
    return found


def wanted(values: Any, rate: float, device: dt.Device) -> bytes:
    dt.set_default_device("reference")
    found = chain(dt.asarray(values), rate).numpy().tobytes()
    dt.set_default_device(device)
    return found


def test_launches_of_a_replay_are_one_graph(device: dt.Device, gpu: Any) -> None:
    captured, calls = dt.jit(chain), gpu.machine.calls
    call_chain(captured, VALUES, 0.5)
    before = calls["cuLaunchKernel"]
    late = [(call_chain(captured, VALUES * k, k / 8), VALUES * k, k / 8) for k in range(1, 5)]
    assert calls["cuLaunchKernel"] == before
    assert calls["cuGraphInstantiate"] == 1 and calls["cuGraphLaunch"] == 4
    ((_, program),) = captured.programs
    assert calls["cuGraphAddKernelNode"] == program.launches > GRAPH_LAUNCHES_MIN
    for found, values, rate in late:  # graphs in flight keep their arguments
        assert found.numpy().tobytes() == wanted(values, rate, device)


def test_launches_of_a_rerolled_loop_are_one_graph(device: dt.Device, gpu: Any) -> None:
    def f(x: dt.Tensor, rows: dt.Tensor) -> dt.Tensor:
        for k in range(64):
            x[1:-1] = 0.5 * (x[:-2] + x[2:]) + rows[k] * k
        return x * 2

    captured, calls = dt.jit(f), gpu.machine.calls
    rows = np.linspace(0, 1, 64, dtype=VALUES.dtype)
    found = [captured(dt.asarray(VALUES * k), dt.asarray(rows)).tolist() for k in range(4)]
    ((_, program),) = captured.programs
    assert any(isinstance(act, RerolledLoop) for act in program.acts)
    assert calls["cuGraphInstantiate"] == 1 and calls["cuGraphLaunch"] == 3
    dt.set_default_device("reference")
    plain = [f(dt.asarray(VALUES * k), dt.asarray(rows)).tolist() for k in range(4)]
    dt.set_default_device(device)
    assert found == plain


def test_only_changed_nodes_of_a_graph_are_updated(device: dt.Device, gpu: Any) -> None:
    def f(x: dt.Tensor, y: dt.Tensor, rate: float) -> None:
        x[1:] = y[:-1] * 2
        x[:-1] = y[1:] * rate
        x[2:] = y[:-2] * 3

    captured, calls = dt.jit(f), gpu.machine.calls
    x, y = dt.asarray(VALUES), dt.asarray(VALUES)
    for rate in (1.0, 2.0, 2.0):
        captured(x, y, rate)
    changed = "cuGraphExecKernelNodeSetParams"
    assert calls[changed] == 0
    captured(x, y, 3.0)
    assert calls[changed] == 1
    captured(dt.asarray(VALUES), y, 3.0)
    assert calls[changed] == 4


def test_short_sequences_are_launched_one_by_one(device: dt.Device, gpu: Any) -> None:
    captured = dt.jit(lambda x: x * 2 + 1)
    for _ in range(3):
        assert captured(dt.asarray(VALUES)).numpy().tobytes() == (VALUES * 2 + 1).tobytes()
    assert gpu.machine.calls["cuGraphCreate"] == 0


GRAPH_CALLS = [
    "cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiate", "cuGraphLaunch",
    "cuGraphExecKernelNodeSetParams",
]  # fmt: skip


@pytest.mark.parametrize("function", GRAPH_CALLS)
def test_graph_refused_by_the_driver_raises_and_the_next_call_succeeds(
    device: dt.Device, gpu: Any, function: str
) -> None:
    captured = dt.jit(chain)
    call_chain(captured, VALUES, 0.5)
    if function.endswith("SetParams"):
        call_chain(captured, VALUES, 0.5)
    gpu.machine.refuse(function, CUresult.CUDA_ERROR_UNKNOWN)
    with pytest.raises(RuntimeError, match="CUDA_ERROR_UNKNOWN"):
        call_chain(captured, VALUES, 0.25)
    for rate in (0.25, 0.5):
        found = call_chain(captured, VALUES, rate).numpy().tobytes()
        assert found == wanted(VALUES, rate, device)


def test_graphs_are_destroyed_with_their_function(device: dt.Device, gpu: Any) -> None:
    captured = dt.jit(chain)
    for _ in range(3):
        last = call_chain(captured, VALUES, 0.5)
    assert gpu.machine.live()["graphexec"] == 1
    del captured
    gc.collect()
    live = gpu.machine.live()
    assert not live.get("graph") and not live.get("graphexec") and not live.get("node")
    assert last.numpy().tobytes() == wanted(VALUES, 0.5, device)


def test_graphs_run_on_the_current_stream(device: dt.Device, gpu: Any) -> None:
    captured, s = dt.jit(chain), dt.Stream(device)
    call_chain(captured, VALUES, 0.5)
    with s:
        found = call_chain(captured, VALUES, 0.5)
    s.synchronize()
    assert found.numpy().tobytes() == wanted(VALUES, 0.5, device)
    assert gpu.machine.calls["cuGraphLaunch"] == 1
