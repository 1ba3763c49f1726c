"""Muon, Lion and Adafactor: their definitions, PyTorch's values, captures and errors."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import dovetail as dt
import numpy as np
import pytest

COEFFICIENTS = (3.4445, -4.775, 2.0315)
MATRICES = ((4, 6), (6, 4), (4, 6), (5, 5), (1, 3))


def leaf(shape: Sequence[int] = (2, 3), dtype: Any = None, device: Any = None) -> dt.Tensor:
    return dt.ones(shape, dtype=dtype, device=device).requires_grad_()


def matrices(seed: int) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [draw.normal(size=s) for s in MATRICES]


def newton_schulz(x: np.ndarray) -> np.ndarray:
    """Return the iteration of Muon's authors in float64."""
    a, b, c = COEFFICIENTS
    x = x / np.linalg.norm(x)
    for _ in range(5):
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return x


def run_steps(lib: Any, name: str, options: dict[str, Any], steps: int) -> list[np.ndarray]:
    to_tensor = dt.asarray if lib is dt else lib.tensor
    params = [to_tensor(a).requires_grad_() for a in matrices(0)]
    optimizer = getattr(lib.optim, name)(params, **options)
    for step in range(steps):
        for p, a in zip(params, matrices(step + 1), strict=True):
            p.grad = to_tensor(a)
        optimizer.step()
    return [p.detach().numpy().copy() for p in params]


MUON = [
    {},
    {"lr": 0.02, "nesterov": False, "weight_decay": 0.0, "momentum": 0.9},
    {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.5},
    {"adjust_lr_fn": "original", "ns_coefficients": (2.0, -1.5, 0.5), "ns_steps": 8, "eps": 1e-3},
]


@pytest.mark.parametrize("options", MUON, ids=["-".join(o) or "defaults" for o in MUON])
def test_muon_equals_pytorch_within_bfloat16(options: dict[str, Any], device: dt.Device) -> None:
    torch = pytest.importorskip("torch")
    found, wanted = (run_steps(lib, "Muon", options, 5) for lib in (dt, torch))
    tolerance = 5 * options.get("lr", 1e-3) * 2.0**-6  # the products are rounded to bfloat16
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, 1e-6, tolerance * max(1, 0.2 * 6**0.5))


def test_muon_steps_by_an_orthogonalized_mean(device: dt.Device) -> None:
    g, w = matrices(1)[0], dt.zeros((4, 6), dtype=dt.float64).requires_grad_()
    optimizer = dt.optim.Muon([w], lr=0.5, weight_decay=0.0, momentum=0.75, nesterov=False)
    w.grad = dt.asarray(g)
    optimizer.step()
    np.testing.assert_allclose(optimizer.state[w]["momentum_buffer"].numpy(), g / 4, 1e-12)
    np.testing.assert_allclose(w.detach().numpy(), -0.5 * newton_schulz(g), 0.0, 0.5 * 0.02)
    values = np.linalg.svd(w.detach().numpy() / 0.5, compute_uv=False)
    assert ((values > 0.6) & (values < 1.3)).all()


def test_muon_scales_the_rate_by_the_shape(device: dt.Device) -> None:
    steps = {}
    for name in (None, "match_rms_adamw"):
        for shape in ((8, 2), (2, 8)):
            w = dt.zeros(shape).requires_grad_()
            w.grad = dt.asarray(np.eye(*shape, dtype="f"))
            dt.optim.Muon([w], lr=1.0, ns_steps=0, adjust_lr_fn=name).step()
            steps[name, shape] = -w[0, 0].item() * 2**0.5
    assert steps[None, (8, 2)] == pytest.approx(2.0, rel=0.01)  # the root of 8 / 2
    assert steps[None, (2, 8)] == pytest.approx(1.0, rel=0.01)
    for shape in ((8, 2), (2, 8)):
        assert steps["match_rms_adamw", shape] == pytest.approx(0.2 * 8**0.5, rel=0.01)


def test_muon_of_a_zero_gradient_only_decays(device: dt.Device) -> None:
    w = leaf()
    w.grad = dt.zeros((2, 3))
    dt.optim.Muon([w], lr=0.5, weight_decay=0.5).step()
    assert w.tolist() == [[0.75] * 3] * 2


def test_lion_equals_its_definition(device: dt.Device) -> None:
    options = {"lr": 0.25, "betas": (0.75, 0.5), "weight_decay": 0.5}
    params = [p.astype(np.float64) for p in matrices(0)]
    means = [np.zeros(s) for s in MATRICES]
    for step in range(4):
        for p, m, g in zip(params, means, matrices(step + 1), strict=True):
            update = np.sign(0.75 * m + 0.25 * g)
            p -= 0.25 * (update + 0.5 * p)
            m[:] = 0.5 * m + 0.5 * g
    for a, b in zip(run_steps(dt, "Lion", options, 4), params, strict=True):
        np.testing.assert_allclose(a, b, 1e-12)


def test_lion_steps_have_hard_coded_values(device: dt.Device) -> None:
    w = dt.asarray([1.0, 1.0, 1.0]).requires_grad_()
    optimizer = dt.optim.Lion([w], lr=0.5, betas=(0.5, 0.75))
    for g in ([4.0, -4.0, 0.0], [-1.0, -1.0, 0.0]):  # a mean of 1, -1, 0 before the second
        w.grad = dt.asarray(g)
        optimizer.step()
    assert w.tolist() == [0.5, 2.0, 1.0]
    assert optimizer.state[w]["exp_avg"].tolist() == [0.5, -1.0, 0.0]


def test_adafactor_equals_its_definition(device: dt.Device) -> None:
    w = np.random.default_rng(0).normal(size=(3, 4))
    row, column = np.zeros((3, 1)), np.zeros((1, 4))
    t = dt.asarray(w).requires_grad_()
    optimizer = dt.optim.Adafactor([t], lr=0.1, weight_decay=0.5)
    for step in range(1, 4):
        g = np.random.default_rng(step).normal(size=(3, 4))
        t.grad = dt.asarray(g)
        optimizer.step()
        alpha = max(1e-3, np.sqrt((w * w).mean())) * min(0.1, step**-0.5)
        w = w * (1 - 0.1 * 0.5)
        row += ((g * g).mean(1, keepdims=True) - row) * step**-0.8
        column += ((g * g).mean(0, keepdims=True) - column) * step**-0.8
        update = g / np.sqrt(row * column / row.mean())
        w = w - alpha * update / max(1.0, np.sqrt((update * update).mean()))
        np.testing.assert_allclose(t.detach().numpy(), w, 1e-12)


def test_adafactor_stores_means_of_the_last_two_axes(device: dt.Device) -> None:
    params = [leaf(s, dt.float16) for s in ((2, 3, 4), (3, 2), (5,), ())]
    optimizer = dt.optim.Adafactor(params)
    for p in params:
        p.grad = dt.ones_like(p.detach())
    optimizer.step()
    shapes = [
        {n: x.shape for n, x in optimizer.state[p].items() if isinstance(x, dt.Tensor)}
        for p in params
    ]
    assert shapes == [
        {"row_var": (2, 3, 1), "col_var": (2, 1, 4)},
        {"row_var": (3, 1), "col_var": (1, 2)},
        {"variance": (5,)},
        {"variance": ()},
    ]
    assert optimizer.state[params[0]]["row_var"].dtype is dt.float32


def test_adafactor_state_of_another_shape_raises() -> None:
    first = dt.optim.Adafactor([leaf((3, 2), device="reference")])
    first.param_groups[0]["params"][0].grad = dt.ones((3, 2), device="reference")
    first.step()
    second = dt.optim.Adafactor([leaf((2, 2), device="reference")])
    with pytest.raises(dt.ArgumentError, match=r"row_var .* must have shape \(2, 1\)"):
        second.load_state_dict(first.state_dict())
    third = dt.optim.Adafactor([leaf((2,), device="reference")])
    with pytest.raises(dt.ArgumentError, match="has no variance"):
        third.load_state_dict(first.state_dict())


@pytest.mark.parametrize(
    ("name", "options"),
    [("Muon", {"lr": 0.1}), ("Lion", {"lr": 0.1}), ("Adafactor", {"lr": 0.1})],
)
@pytest.mark.parametrize("half", [False, True])
def test_captured_steps_have_the_same_bits(
    name: str, options: dict[str, Any], half: bool, device: dt.Device
) -> None:
    found = []
    for captured in (False, True):
        dtype = dt.bfloat16 if half else dt.float32
        params = [dt.asarray(a, dtype=dtype).requires_grad_() for a in matrices(0)]
        optimizer = getattr(dt.optim, name)(params, **options, master_weights=half)
        schedule = dt.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step(params: Any = params, optimizer: Any = optimizer) -> None:
            optimizer.zero_grad()
            sum((p.float() ** 3).sum() for p in params).backward()
            optimizer.step()

        run = dt.jit(step) if captured else step
        for _ in range(4):
            run()
            schedule.step()
        assert not captured or run.captures <= 2  # type: ignore[attr-defined]
        found.append(params)
    for a, b in zip(*found, strict=True):
        assert a.tolist() == b.tolist()


@pytest.mark.parametrize("name", ["Muon", "Lion"])
def test_states_resume_with_the_same_bits(name: str, device: dt.Device) -> None:
    params = [dt.asarray(a).requires_grad_() for a in matrices(0)]
    optimizer = getattr(dt.optim, name)(params, lr=0.1)

    def run(optimizer: Any, params: list[dt.Tensor], steps: range) -> None:
        for step in steps:
            for p, a in zip(params, matrices(step + 1), strict=True):
                p.grad = dt.asarray(a)
            optimizer.step()

    run(optimizer, params, range(3))
    others = [p.detach().clone().requires_grad_() for p in params]
    resumed = getattr(dt.optim, name)(others)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    run(optimizer, params, range(3, 6))
    run(resumed, others, range(3, 6))
    assert [p.tolist() for p in params] == [p.tolist() for p in others]
    assert {*optimizer.state_dict()["state"][0]} == (
        {"momentum_buffer"} if name == "Muon" else {"exp_avg"}
    )


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("Muon", {"lr": -1.0}, "lr must be at least 0"),
        ("Muon", {"momentum": -1.0}, "momentum must be at least 0"),
        ("Muon", {"weight_decay": -1.0}, "weight_decay must be at least 0"),
        ("Muon", {"ns_steps": 100}, "ns_steps must be an integer of at most 99, got 100"),
        ("Muon", {"ns_coefficients": (1.0, 2.0)}, "ns_coefficients must be three numbers"),
        ("Muon", {"adjust_lr_fn": "mine"}, "adjust_lr_fn must be 'original'"),
        ("Lion", {"betas": (0.9, 1.0)}, r"betas\[1\] must be"),
        ("Lion", {"weight_decay": -1.0}, "weight_decay must be at least 0"),
        ("Adafactor", {"beta2_decay": 0.8}, "beta2_decay must be at most 0, got 0.8"),
        ("Adafactor", {"d": 0.5}, "d must be at least 1, got 0.5"),
        ("Adafactor", {"eps": 1e-3}, "eps must be two numbers, or None and a number"),
        ("Adafactor", {"eps": (-1.0, 1e-3)}, r"eps\[0\] must be at least 0, got -1"),
    ],
)
def test_wrong_options_raise(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(dt.ArgumentError, match=said):
        getattr(dt.optim, name)([leaf(device="reference")], **options)


def test_muon_of_vectors_names_adamw() -> None:
    with pytest.raises(dt.ArgumentError, match=r"parameter 1 must be a matrix.*dt.optim.AdamW"):
        dt.optim.Muon([leaf(device="reference"), leaf((3,), device="reference")])
