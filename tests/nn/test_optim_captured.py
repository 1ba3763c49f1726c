"""Optimizer steps within `dt.jit`: one capture, the same bits, changing rates."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.nn.clipping import clip_grad_norm_
from installed import INSTALLED
from optim_cases import CASES, arrays, names, parameters, stepper

# One of each, and those whose options select another rule.
CAPTURED = [c for i, c in enumerate(CASES) if c[0] != CASES[i - 1][0] or len(c[1]) > 2]


@pytest.mark.parametrize(("name", "options"), CAPTURED, ids=names(CAPTURED))
def test_captured_steps_have_the_same_bits(
    name: str, options: dict[str, Any], device: dt.Device
) -> None:
    found = []
    for captured in (False, True):
        params = parameters(dt.float32)
        optimizer = getattr(dt.optim, name)(params, **options)
        step = stepper(optimizer, params)
        if captured:
            step = dt.jit(step)
        for _ in range(8):
            step()
        found.append(arrays(params))
        if captured:
            assert step.captures <= 2  # without gradients of the previous step, and with them
            state = optimizer.state_dict()["state"]
            assert all(float(s.get("step", 8)) == 8 for s in state.values())
    for a, b in zip(*found, strict=True):
        assert a.tobytes() == b.tobytes()


def test_captured_step_reads_the_scheduled_rate(device: dt.Device) -> None:
    found = []
    for captured in (False, True):
        params = parameters()
        optimizer = dt.optim.Adam(params, lr=0.1)
        schedule = dt.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)
        step: Any = stepper(optimizer, params)
        if captured:
            step = dt.jit(step)
        for _ in range(6):
            step()
            schedule.step()
        assert not captured or step.captures == 1
        found.append(arrays(params))
    for a, b in zip(*found, strict=True):
        assert a.tobytes() == b.tobytes()


def test_captured_step_is_a_few_launches(device: dt.Device) -> None:
    params = [dt.ones((10,)).requires_grad_() for _ in range(20)]
    for p in params:
        p.grad = dt.ones((10,))
    optimizer = dt.optim.Adam(params)
    step = dt.jit(lambda: optimizer.step())
    for _ in range(3):
        step()
    (_, program), *_ = step.programs
    assert program.launches == 5  # of four tensors each
    assert step.captures == 1


def test_changed_structural_option_raises_in_a_captured_step(device: dt.Device) -> None:
    w = dt.ones(2).requires_grad_()
    optimizer = dt.optim.SGD([w], lr=0.1)
    w.grad = dt.ones(2)
    step = dt.jit(lambda: optimizer.step())
    for _ in range(3):
        step()
    optimizer.param_groups[0]["weight_decay"] = 0.1
    before = w.tolist()
    with pytest.raises(dt.CaptureError, match="capture the function again"):
        step()
    assert w.tolist() == before


def test_captured_step_reads_a_loaded_state(device: dt.Device) -> None:
    params = parameters()
    optimizer = dt.optim.Adam(params, lr=0.1)
    step = dt.jit(stepper(optimizer, params))
    for _ in range(3):
        step()
    kept, values = optimizer.state_dict(), arrays(params)
    kept = {"state": {i: {k: dt.copy(x) for k, x in s.items()} for i, s in kept["state"].items()},
            "param_groups": kept["param_groups"]}  # fmt: skip
    for _ in range(2):
        step()
    after = arrays(params)
    optimizer.load_state_dict(kept)
    for p, a in zip(params, values, strict=True):
        p.detach().copy_(dt.asarray(a))
    for _ in range(2):
        step()
    for a, b in zip(arrays(params), after, strict=True):
        assert a.tobytes() == b.tobytes()
    assert step.captures == 1


def test_clipping_within_a_captured_step(device: dt.Device) -> None:
    found = []
    for captured in (False, True):
        params = parameters(dt.float32)
        optimizer = dt.optim.SGD(params, lr=0.1, momentum=0.9)

        def step(params: Any = params, optimizer: Any = optimizer) -> dt.Tensor:
            optimizer.zero_grad()
            sum((p * p * p).sum() for p in params).backward()
            norm = clip_grad_norm_(params, 0.5)
            optimizer.step()
            return norm

        run = dt.jit(step) if captured else step
        norms = [float(run()) for _ in range(5)]
        found.append((arrays(params), norms))
        assert not captured or run.captures <= 2  # type: ignore[attr-defined]
    assert found[0][1] == found[1][1]
    for a, b in zip(found[0][0], found[1][0], strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.skipif("cpu" not in INSTALLED, reason="there is one device")
def test_captured_steps_have_the_same_bits_on_both_devices() -> None:
    found = []
    for name in ("reference", "cpu"):
        before = dt.default_device()
        dt.set_default_device(name)
        try:
            params = parameters(dt.float32)
            step = stepper(dt.optim.AdamW(params, lr=0.01), params)
            for _ in range(5):
                step()
            found.append(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays(params)))
        finally:
            dt.set_default_device(before)
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "SparseAdam"])
def test_sparse_steps_are_captured(name: str, device: dt.Device) -> None:
    begin = np.random.default_rng(1).normal(size=(9, 3)).astype("f")
    found = []
    for captured in (False, True):
        table = dt.nn.Embedding.from_pretrained(dt.asarray(begin), freeze=False, sparse=True)
        optimizer = getattr(dt.optim, name)(table.parameters(), lr=0.1)

        def step(at: Any, table: Any = table, optimizer: Any = optimizer) -> None:
            optimizer.zero_grad()
            (table(at) * table(at)).sum().backward()
            optimizer.step()

        run = dt.jit(step) if captured else step
        for seed in range(6):
            run(dt.asarray(np.random.default_rng(seed).integers(0, 9, 7)))
        assert not captured or run.captures <= 2  # type: ignore[attr-defined]
        found.append(table.weight.detach().numpy())
    assert found[0].tobytes() == found[1].tobytes()
    assert (found[0] != begin).any()


def test_schedule_cannot_advance_in_a_captured_function(device: dt.Device) -> None:
    w = dt.ones(1, device=device).requires_grad_()
    optimizer = dt.optim.SGD([w], lr=0.1)
    schedule = dt.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    @dt.jit
    def train(x: dt.Tensor) -> dt.Tensor:
        schedule.step()
        return x * optimizer.param_groups[0]["lr"]

    with pytest.raises(dt.CaptureError, match=r"^lr_scheduler.StepLR.step: .* step it outside"):
        train(dt.ones(1, device=device))
    assert schedule.last_epoch == 0
    assert optimizer.param_groups[0]["lr"] == 0.1


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Adam", {"amsgrad": True}), ("AdamW", {"weight_decay": 0.1}), ("RAdam", {}),
        ("Adamax", {}), ("SGD", {"momentum": 0.9}), ("RMSprop", {"lr": 1e-3}),
    ],
)  # fmt: skip
def test_captured_step_with_a_scaler_has_the_bits_of_a_plain_one(
    device: dt.Device, name: str, options: dict[str, Any]
) -> None:
    found = []
    for captured in (False, True):
        w = dt.linspace(-2.0, 3.0, 300, device=device).requires_grad_()
        optimizer = getattr(dt.optim, name)([w], **options)
        scaler = dt.amp.GradScaler(init_scale=8.0)

        def step(x: Any, w: Any = w, optimizer: Any = optimizer, scaler: Any = scaler) -> None:
            optimizer.zero_grad()
            scaler.scale((w * w * w * x).sum()).backward()
            scaler.step(optimizer)
            scaler.update()

        run: Any = dt.jit(step) if captured else step
        for k in range(9):
            run(dt.asarray(np.inf if k == 4 else 1 / (k + 3), dtype=dt.float32, device=device))
        found.append(w.numpy().tobytes())
    assert found[0] == found[1]
