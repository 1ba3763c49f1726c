"""float32 master weights of float16 and bfloat16 parameters, in every optimizer."""

from __future__ import annotations

import copy
from typing import Any

import dovetail as dt
import dovetail.nn.functional as F
import numpy as np
import pytest
from dovetail import nn
from optim_cases import CASES, arrays, names, parameters, stepper

HALVES = [dt.float16, dt.bfloat16]
ONE_OF_EACH = [next(c for c in CASES if c[0] == n) for n in dict.fromkeys(n for n, _ in CASES)]


def masters(optimizer: dt.optim.Optimizer) -> list[np.ndarray]:
    params = optimizer.param_groups[0]["params"]
    return [optimizer.state[p]["master_param"].numpy().copy() for p in params]


def set_gradients(params: list[dt.Tensor], step: int) -> None:
    draw = np.random.default_rng(step)
    for p in params:
        p.grad = dt.asarray(draw.normal(size=p.shape)).astype(dt.bfloat16).astype(p.dtype)


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize(("name", "options"), ONE_OF_EACH, ids=names(ONE_OF_EACH))
def test_copies_take_the_steps_of_float32_parameters(
    name: str, options: dict[str, Any], half: dt.DType, device: dt.Device
) -> None:
    halves = parameters(half)
    singles = [p.detach().float().requires_grad_() for p in halves]
    optimizer = getattr(dt.optim, name)(halves, **options, master_weights=True)
    other = getattr(dt.optim, name)(singles, **options)
    for step in range(4):
        set_gradients(halves, step)
        set_gradients(singles, step)
        optimizer.step()
        other.step()
    for p, found, wanted in zip(halves, masters(optimizer), singles, strict=True):
        assert found.dtype == np.float32
        assert found.tobytes() == wanted.detach().numpy().tobytes()
        assert p.tolist() == wanted.detach().astype(half).tolist()


def test_steps_below_half_a_unit_accumulate(device: dt.Device) -> None:
    found = []
    for flag in (False, True):
        w = dt.ones(1, dtype=dt.bfloat16).requires_grad_()
        w.grad = dt.ones(1, dtype=dt.bfloat16)
        optimizer = dt.optim.SGD([w], lr=2.0**-10, master_weights=flag)
        for _ in range(8):
            optimizer.step()
        found.append(w.item())
    assert found == [1.0, 1.0 - 2.0**-7]


def test_float32_parameters_have_no_copy(device: dt.Device) -> None:
    params = [dt.ones(2).requires_grad_(), dt.ones(2, dtype=dt.float16).requires_grad_()]
    optimizer = dt.optim.Adam(params, master_weights=True)
    set_gradients(params, 0)
    optimizer.step()
    assert ["master_param" in optimizer.state[p] for p in params] == [False, True]


def test_groups_choose_master_weights(device: dt.Device) -> None:
    params = [dt.ones(2, dtype=dt.float16).requires_grad_() for _ in range(2)]
    groups = [{"params": params[0]}, {"params": params[1], "master_weights": True}]
    optimizer = dt.optim.Adam(groups)
    set_gradients(params, 0)
    optimizer.step()
    assert ["master_param" in optimizer.state[p] for p in params] == [False, True]
    assert "master_weights" not in dt.optim.Adam([params[0]]).param_groups[0]


@pytest.mark.parametrize("captured", [False, True])
def test_written_elements_of_a_parameter_replace_their_copies(
    captured: bool, device: dt.Device
) -> None:
    w = dt.ones(3, dtype=dt.bfloat16).requires_grad_()
    optimizer = dt.optim.SGD([w], lr=2.0**-10, master_weights=True)

    def step() -> None:
        w.grad = dt.ones(3, dtype=dt.bfloat16)
        optimizer.step()

    run = dt.jit(step) if captured else step
    for _ in range(3):
        run()
    with dt.no_grad():
        w[1] = 0.5
    run()
    moved = 2.0**-10
    assert masters(optimizer)[0].tolist() == [1 - 4 * moved, 0.5 - moved, 1 - 4 * moved]
    assert w.tolist() == [1 - 4 * moved, 0.5, 1 - 4 * moved]


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_captured_steps_have_the_same_bits(half: dt.DType, device: dt.Device) -> None:
    found = []
    for captured in (False, True):
        params = parameters(half)
        optimizer = dt.optim.AdamW(params, lr=1e-3, master_weights=True)
        step: Any = stepper(optimizer, params)
        if captured:
            step = dt.jit(step)
        for _ in range(6):
            step()
        found.append(masters(optimizer))
        assert not captured or step.captures <= 2
    for a, b in zip(*found, strict=True):
        assert a.tobytes() == b.tobytes()


def test_captured_step_with_copies_is_one_launch(device: dt.Device) -> None:
    params = [dt.ones(8, dtype=dt.bfloat16).requires_grad_() for _ in range(3)]
    optimizer = dt.optim.Adam(params, master_weights=True)
    set_gradients(params, 0)
    step = dt.jit(lambda: optimizer.step())
    for _ in range(3):
        step()
    (_, program), *_ = step.programs
    assert program.launches == 1


def test_changed_master_weights_raise_in_a_captured_step(device: dt.Device) -> None:
    w = dt.ones(2, dtype=dt.float16).requires_grad_()
    w.grad = dt.ones(2, dtype=dt.float16)
    optimizer = dt.optim.SGD([w], lr=2.0**-12)
    step = dt.jit(lambda: optimizer.step())
    for flag in (False, True):  # a new option is a new capture
        optimizer.param_groups[0].update({"master_weights": True} if flag else {})
        for _ in range(2):
            step()
    assert masters(optimizer)[0].tolist() == [1 - 2.0**-11] * 2
    optimizer.param_groups[0]["master_weights"] = False
    with pytest.raises(dt.CaptureError, match="capture the function again"):
        step()


def test_state_with_copies_resumes_with_the_same_bits(device: dt.Device) -> None:
    params = parameters(dt.bfloat16)
    optimizer = dt.optim.Adam(params, lr=1e-3, master_weights=True)
    step = stepper(optimizer, params)
    for _ in range(3):
        step()
    others = [p.detach().clone().requires_grad_() for p in params]
    resumed = dt.optim.Adam(others)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert resumed.param_groups[0]["master_weights"] is True
    other_step = stepper(resumed, others)
    for _ in range(3):
        step()
        other_step()
    for a, b in zip(masters(optimizer), masters(resumed), strict=True):
        assert a.tobytes() == b.tobytes()


def test_state_without_copies_takes_them_from_the_parameters(device: dt.Device) -> None:
    params = parameters(dt.bfloat16)
    first = dt.optim.Adam(params, lr=1e-3)
    stepper(first, params)()
    before = arrays([p.float() for p in params])
    second = dt.optim.Adam(params, lr=0.0, master_weights=True)
    second.load_state_dict(first.state_dict())
    second.param_groups[0]["lr"] = 0.0
    stepper(second, params)()
    for a, b in zip(masters(second), before, strict=True):
        assert a.tolist() == b.tolist()


def test_sparse_gradients_update_rows_of_the_copy(device: dt.Device) -> None:
    table = dt.ones((4, 2), dtype=dt.bfloat16).requires_grad_()
    optimizer = dt.optim.SGD([table], lr=2.0**-10, master_weights=True)

    def step(rows: dt.Tensor) -> None:
        optimizer.zero_grad()
        F.embedding(rows, table, sparse=True).float().sum().backward()
        optimizer.step()

    for run in (step, dt.jit(step)):
        for _ in range(2):
            run(dt.asarray([1, 2, 1]))
    copied = optimizer.state[table]["master_param"]
    assert [1 - v[0] for v in copied.tolist()][1:3] == [8 * 2.0**-10, 4 * 2.0**-10]
    assert table.tolist() == [[1, 1], [1 - 2.0**-7] * 2, [1 - 2.0**-8] * 2, [1, 1]]


def test_bfloat16_network_reaches_the_loss_of_float32() -> None:
    losses = {}
    x = dt.random.default_rng(1).normal((64, 8))
    y = dt.sin(x.sum(axis=1, keepdims=True))
    for dtype, flag in ((dt.float32, False), (dt.bfloat16, True), (dt.bfloat16, False)):
        dt.random.manual_seed(0)
        net = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 1)).to(dtype)
        optimizer = dt.optim.Adam(net.parameters(), lr=1e-3, master_weights=flag)

        @dt.jit
        def step(net: Any = net, optimizer: Any = optimizer, dtype: Any = dtype) -> dt.Tensor:
            optimizer.zero_grad()
            loss = F.mse_loss(net(x.astype(dtype)).float(), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        for _ in range(400):
            loss = step()
        losses[dtype, flag] = loss.item()
    wanted = losses[dt.float32, False]
    assert losses[dt.bfloat16, True] == pytest.approx(wanted, rel=0.03)
    assert losses[dt.bfloat16, False] > 1.5 * wanted


def test_lbfgs_has_no_master_weights() -> None:
    w = dt.ones(2, device="reference").requires_grad_()
    with pytest.raises(dt.ArgumentError, match="master_weights must be False"):
        dt.optim.LBFGS([{"params": [w], "master_weights": True}])


def test_misspelt_master_weights_raises() -> None:
    w = dt.ones(2, device="reference").requires_grad_()
    with pytest.raises(dt.ArgumentError, match="did you mean 'master_weights'"):
        dt.optim.SGD([{"params": [w], "master_weight": True}])
