"""Initializers: moments and bounds of their samples, and errors."""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt
import pytest

init = dt.nn.init


def drawn(name: str, shape: tuple[int, ...] = (60, 50), **options: Any) -> dt.Tensor:
    x = dt.nn.Parameter(dt.empty(shape))
    generator = dt.random.Generator(5)
    assert getattr(init, name)(x, **options, generator=generator) is x
    assert x.requires_grad and x.is_leaf
    return x.detach()


BOUND = {
    "uniform_": ({"a": -2.0, "b": 2.0}, 2.0),
    "xavier_uniform_": ({"gain": 2.0}, 2 * math.sqrt(6 / 110)),
    "kaiming_uniform_": ({"a": math.sqrt(5)}, 1 / math.sqrt(50)),
}
SPREAD = {
    "normal_": ({"mean": 1.0, "std": 3.0}, 1.0, 3.0),
    "xavier_normal_": ({}, 0.0, math.sqrt(2 / 110)),
    "kaiming_normal_": (
        {"mode": "fan_out", "nonlinearity": "relu"}, 0.0, math.sqrt(2 / 60),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUND)
def test_uniform_initializer_stays_in_its_bound(name: str, device: dt.Device) -> None:
    options, bound = BOUND[name]
    x = drawn(name, **options)
    assert dt.abs(x).max().item() <= bound and dt.abs(x).max().item() > 0.99 * bound
    assert x.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


@pytest.mark.parametrize("name", SPREAD)
def test_normal_initializer_has_its_mean_and_deviation(name: str, device: dt.Device) -> None:
    options, mean, std = SPREAD[name]
    x = drawn(name, **options)
    assert x.mean().item() == pytest.approx(mean, abs=std / 10)
    assert x.std().item() == pytest.approx(std, rel=0.05)


def test_other_initializers_have_their_properties(device: dt.Device) -> None:
    x = drawn("trunc_normal_", std=2.0, a=-1.0, b=3.0)
    assert x.min().item() >= -1 and x.max().item() <= 3
    for shape in ((5, 3), (3, 5), (4, 2, 3)):
        q = drawn("orthogonal_", shape, gain=2.0).reshape((shape[0], -1))
        small = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
        assert dt.allclose(small, 4 * dt.eye(small.shape[0]), atol=1e-4)
    zeros = dt.count_nonzero(drawn("sparse_", (10, 4), sparsity=0.25), axis=0)
    assert zeros.tolist() == [7] * 4
    assert init.eye_(dt.empty((2, 3))).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.constant_(dt.empty(2), 3.0).tolist() == [3, 3]
    assert init.ones_(dt.empty(1)).item() == 1 and init.zeros_(dt.empty(1)).item() == 0
    half = dt.empty((8, 4), dtype=dt.float16)
    assert dt.isfinite(init.orthogonal_(half)).all()


def test_dirac_equals_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    for shape, groups in (((4, 3, 3), 1), ((6, 2, 3, 2), 3), ((2, 4, 3, 3, 3), 2)):
        want = torch.nn.init.dirac_(torch.empty(shape), groups)
        assert init.dirac_(dt.empty(shape, device="reference"), groups).tolist() == want.tolist()


def test_gains_equal_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert init.calculate_gain("leaky_relu", 2) == torch.nn.init.calculate_gain("leaky_relu", 2)


def test_seed_gives_the_same_weights_on_every_device() -> None:
    found = []
    for device in [d for d in map(str, dt.devices()) if not d.startswith("cuda")]:
        dt.random.manual_seed(3)
        layer = dt.nn.Linear(7, 5, device=device)
        found.append((layer.weight.tolist(), layer.bias.tolist()))
    assert all(f == found[0] for f in found)


WRONG: list[tuple[str, tuple[Any, ...], type[Exception], str]] = [
    ("xavier_uniform_", (3,), dt.ShapeError, r"xavier_uniform_.*\(3,\)"),
    ("kaiming_normal_", (3,), dt.ShapeError, "kaiming_normal_"),
    ("eye_", (3,), dt.ShapeError, "2 dimensions"),
    ("dirac_", (3, 3), dt.ShapeError, "3, 4 or 5"),
    ("orthogonal_", (3,), dt.ShapeError, "2 dimensions"),
]


@pytest.mark.parametrize(("name", "shape", "kind", "said"), WRONG)
def test_wrong_shapes_raise(
    name: str, shape: tuple[int, ...], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        getattr(init, name)(dt.empty(shape, device="reference"))


def test_wrong_arguments_raise() -> None:
    x = dt.empty((4, 4, 4), device="reference")
    with pytest.raises(dt.ShapeError, match="divisible by groups, got 4 and 3"):
        init.dirac_(x, 3)
    with pytest.raises(dt.ArgumentError, match="fan_in"):
        init.kaiming_uniform_(x, mode="fan")
    with pytest.raises(dt.ArgumentError, match=r"nonlinearity must be one of .*, got 'nothing'"):
        init.calculate_gain("nothing")
    with pytest.raises(dt.ArgumentTypeError, match="number"):
        init.calculate_gain("leaky_relu", True)
