"""`dt.amp.GradScaler`: scales, skipped steps without a read by the host, captures, states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

INF = float("inf")
FACTORS = [1.0, INF, 1.0, 2.0, INF, 3.0, float("nan"), 1.0, -1.0]
OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("Adam", {}), ("Adam", {"amsgrad": True}), ("AdamW", {}), ("Adamax", {}), ("RAdam", {}),
    ("SGD", {"momentum": 0.9, "dampening": 0.3}), ("Adagrad", {"lr_decay": 0.1}), ("RMSprop", {}),
    ("Adadelta", {}), ("Rprop", {}),
]  # fmt: skip
Row = tuple[list[float], float, int]


def run(lib: Any, name: str, options: dict[str, Any], captured: bool = False) -> list[Row]:
    """Return the parameter, the scale and the growth tracker after each step."""
    ours = lib is dt
    w = (
        dt.asarray([1.0, 2.0]).requires_grad_()
        if ours
        else lib.tensor([1.0, 2.0], requires_grad=True)
    )
    optimizer = getattr(lib.optim, name)([w], lr=0.1, **options)
    scaler = lib.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)

    def step(x: Any) -> None:
        optimizer.zero_grad()
        scaler.scale((w * w * x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    do: Callable[[Any], object] = dt.jit(step) if captured else step
    rows = []
    for factor in FACTORS:
        do(dt.asarray(factor) if ours else lib.tensor(factor))
        state = scaler.state_dict()
        rows.append((w.detach().tolist(), scaler.get_scale(), state["_growth_tracker"]))
    return rows


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_steps_are_those_of_torch(name: str, options: dict[str, Any], captured: bool) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = run(dt, name, options, captured), run(torch, name, options)
    assert [row[1:] for row in ours] == [row[1:] for row in theirs]
    np.testing.assert_allclose([r[0] for r in ours], [r[0] for r in theirs], rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("captured", [False, True])
def test_infinite_gradient_skips_the_step_and_halves_the_scale(captured: bool) -> None:
    rows = run(dt, "SGD", {}, captured)
    assert rows[1][0] == rows[0][0]
    assert [row[1] for row in rows] == [4.0, 2.0, 2.0, 4.0, 2.0, 2.0, 1.0, 1.0, 2.0]
    assert [row[2] for row in rows] == [1, 0, 1, 0, 0, 1, 0, 1, 0]


def test_skipped_step_keeps_states_and_counts(device: dt.Device) -> None:
    w = dt.ones(3).requires_grad_()
    optimizer, scaler = dt.optim.Adam([w]), dt.amp.GradScaler(init_scale=2.0)
    states = []
    for factor in (1.0, INF):
        optimizer.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        state = optimizer.state_dict()["state"][0]
        states.append({n: x.tolist() for n, x in state.items()})
    assert states[0] == states[1]
    assert states[0]["step"] == 1.0
    optimizer.zero_grad()  # a step without a scaler goes on from there
    w.sum().backward()
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["step"].item() == 2.0


MATRIX_RULES: dict[str, dict[str, Any]] = {
    "Adam": {}, "Muon": {}, "Lion": {}, "Adafactor": {"eps": (1e-30, 1e-3)}, "RMSprop": {},
}  # fmt: skip


@pytest.mark.parametrize("name", MATRIX_RULES)
def test_scaler_skips_steps_with_master_weights(name: str) -> None:
    ends = []
    for captured in (False, True):
        w = dt.asarray([[1.0, 2.0], [3.0, 5.0]]).astype(dt.bfloat16).requires_grad_()
        rule = getattr(dt.optim, name)
        optimizer = rule([w], lr=1e-3, master_weights=True, **MATRIX_RULES[name])
        scaler = dt.amp.GradScaler(init_scale=4.0)

        def step(x: dt.Tensor) -> None:
            optimizer.zero_grad()  # noqa: B023  # called here
            scaler.scale((w.float() ** 2 * x).sum()).backward()  # noqa: B023
            scaler.step(optimizer)  # noqa: B023
            scaler.update()  # noqa: B023

        do: Callable[[dt.Tensor], object] = dt.jit(step) if captured else step
        masters = []
        for factor in (1.0, INF, 1.0, 1.0):
            do(dt.asarray(factor))
            masters.append(optimizer.state[w]["master_param"].tolist())
        assert masters[0] == masters[1] != masters[2] != masters[3]
        assert scaler.get_scale() == 2.0 and dt.all(w == dt.asarray(masters[3]).astype(w.dtype))
        ends.append(masters[3])
    np.testing.assert_allclose(*ends, rtol=1e-6)


def test_captured_step_reads_nothing_and_follows_the_schedule(device: dt.Device) -> None:
    w = dt.ones(2).requires_grad_()
    optimizer, scaler = dt.optim.Adam([w], lr=1.0), dt.amp.GradScaler()

    @dt.jit  # a read by the host would raise a CaptureError
    def step(x: dt.Tensor) -> None:
        optimizer.zero_grad()
        with dt.autocast(dtype=dt.float16):
            loss = (w * x).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        dt.nn.utils.clip_grad_norm_([w], 1.0)
        scaler.step(optimizer)
        scaler.update()

    values = []
    for lr in (1.0, 1.0, 0.0, 0.5):
        optimizer.param_groups[0]["lr"] = lr
        step(dt.ones(2))
        values.append(round(w.tolist()[0], 3))
    assert values == [0.0, -1.0, -1.0, -1.5]
    assert step.captures <= 2


def test_clipping_sees_unscaled_gradients() -> None:
    w = dt.ones(4).requires_grad_()
    optimizer, scaler = dt.optim.SGD([w], lr=1.0), dt.amp.GradScaler()
    scaler.scale((2 * w).sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad is not None and w.grad.tolist() == [2.0] * 4
    assert dt.nn.utils.clip_grad_norm_([w], 2.0).item() == 4.0
    scaler.step(optimizer)
    assert w.tolist() == pytest.approx([0.0] * 4, abs=1e-5)


def test_two_optimizers_are_skipped_one_by_one_and_back_off_together() -> None:
    a, b = dt.ones(1).requires_grad_(), dt.ones(1).requires_grad_()
    first, second = dt.optim.SGD([a], lr=1.0), dt.optim.SGD([b], lr=1.0)
    scaler = dt.amp.GradScaler(init_scale=8.0)
    loss, other = scaler.scale([(a * INF).sum(), b.sum()])
    loss.backward()
    other.backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert (a.item(), b.item(), scaler.get_scale()) == (1.0, 0.0, 4.0)


def test_scale_of_a_float16_loss_is_float32() -> None:
    assert dt.amp.GradScaler().scale(dt.ones((), dtype=dt.float16)).item() == 65536.0


def test_sparse_gradients_are_unscaled_and_skipped() -> None:
    table = dt.nn.Embedding(4, 2, sparse=True)
    before = table.weight.detach().copy().tolist()
    optimizer, scaler = dt.optim.SGD(table.parameters(), lr=1.0), dt.amp.GradScaler()
    for factor, row in ((INF, before[1]), (1.0, [v - 1.0 for v in before[1]])):
        optimizer.zero_grad()
        scaler.scale((table(dt.asarray([1])) * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert table.weight.tolist()[1] == pytest.approx(row)


def test_disabled_scaler_only_calls_the_optimizer() -> None:
    w = dt.ones(1).requires_grad_()
    optimizer, scaler = dt.optim.SGD([w], lr=1.0), dt.amp.GradScaler(enabled=False)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert (w.item(), scaler.get_scale(), scaler.state_dict()) == (0.0, 1.0, {})
    assert not scaler.is_enabled()


def test_state_goes_to_another_scaler_and_from_torch() -> None:
    scaler = dt.amp.GradScaler(init_scale=8.0, growth_interval=3)
    w = dt.ones(1).requires_grad_()
    optimizer = dt.optim.SGD([w])
    scaler.scale(w.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 3,
        "_growth_tracker": 1,
    }  # fmt: skip
    other = dt.amp.GradScaler()
    other.load_state_dict(state)
    assert other.state_dict() == state
    other.scale(w)
    other.load_state_dict({**state, "scale": 2.0})
    assert other.get_scale() == 2.0
    torch = pytest.importorskip("torch")
    other.load_state_dict(torch.amp.GradScaler("cpu").state_dict())
    assert other.get_scale() == 65536.0


def test_new_scale_replaces_the_scale() -> None:
    scaler = dt.amp.GradScaler()
    scaler.scale(dt.ones(()))
    scaler.update(16.0)
    assert scaler.get_scale() == 16.0
    scaler.update(dt.asarray([32.0]))
    assert scaler.get_scale() == 32.0


def test_calls_out_of_order_raise() -> None:
    w = dt.ones(1).requires_grad_()
    optimizer, scaler = dt.optim.SGD([w]), dt.amp.GradScaler()
    with pytest.raises(dt.ArgumentError, match="nothing was scaled"):
        scaler.update()
    with pytest.raises(dt.ArgumentError, match="no parameter of the optimizer has a gradient"):
        scaler.step(optimizer)
    scaler.scale(w.sum()).backward()
    with pytest.raises(dt.ArgumentError, match="no step was made"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(dt.ArgumentError, match="unscale_ was called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(dt.ArgumentError, match="step was called"):
        scaler.step(optimizer)
    with pytest.raises(dt.ArgumentError, match="a closure must not be given"):
        scaler.step(optimizer, lambda: 0.0)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"growth_factor": 1.0}, "growth_factor must be more than 1"),
        ({"backoff_factor": 1.0}, "backoff_factor must be less than 1"),
        ({"growth_interval": 0}, "growth_interval"),
    ],
)
def test_factor_out_of_range_raises(options: dict[str, Any], match: str) -> None:
    with pytest.raises(dt.ArgumentError, match=match):
        dt.amp.GradScaler(**options)


def test_float16_parameters_and_host_counters_raise() -> None:
    w = dt.ones(1, dtype=dt.float16).requires_grad_()
    scaler = dt.amp.GradScaler(init_scale=2.0)
    scaler.scale(w.sum()).backward()
    with pytest.raises(dt.DTypeError, match="gradients must not be float16"):
        scaler.step(dt.optim.SGD([w]))
    v = dt.ones(1).requires_grad_()
    scaler.scale(v.sum()).backward()
    with pytest.raises(dt.ArgumentError, match=r"optim\.NAdam: a GradScaler cannot skip its steps"):
        scaler.step(dt.optim.NAdam([v]))


def test_missing_name_raises_attribute_error_with_a_hint() -> None:
    with pytest.raises(AttributeError, match="autocast works on every device"):
        dt.amp.is_autocast_available  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'scaler'"):
        dt.amp.scaler  # noqa: B018


# --- user-defined ops -----------------------------------------------------------------------------


def test_custom_function_runs_backward_under_the_autocast_of_forward() -> None:
    dtypes: list[dt.DType] = []

    class Product(dt.autograd.Function):
        @staticmethod
        @dt.amp.custom_fwd
        def forward(ctx: Any, a: dt.Tensor, b: dt.Tensor) -> dt.Tensor:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @dt.amp.custom_bwd
        def backward(ctx: Any, g: dt.Tensor) -> tuple[dt.Tensor, dt.Tensor]:
            a, b = ctx.saved_tensors
            dtypes.append((a.mT @ a).dtype)
            return g @ b.mT, a.mT @ g

    a = dt.ones((2, 2)).requires_grad_()
    with dt.autocast():
        y = Product.apply(a, dt.ones((2, 2)))
    y.float().sum().backward()
    assert y.dtype is dt.bfloat16
    assert dtypes == [dt.bfloat16]
