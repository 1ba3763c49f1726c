"""The same bits on every device: values and gradients of each function, without vendor products."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from function_cases import EVERY, Array, Case, normal

F = dt.nn.functional
OTHERS = [str(d) for d in dt.devices() if str(d) not in ("reference", "cuda") and ":" not in str(d)]


def given(x: Any, device: str, learns: bool) -> Any:
    if not isinstance(x, Array):
        return x
    found = dt.asarray(x.astype("f4") if x.dtype.kind == "f" else x, device=device, copy=True)
    return found.requires_grad_() if learns and found.dtype.kind == "f" else found


def results(case: Case, device: str) -> list[Array]:
    """Return the value and the gradients on a device."""
    operands = [given(a, device, True) for a in case.arrays]
    options = {k: given(v, device, False) for k, v in case.options.items()}
    lead: list[Any] = []
    for name in ("input", "normalized_shape", "num_groups"):
        if name in options:
            lead.append(options.pop(name))
    first = lead if case.name.startswith("embedding") else [operands[0], *lead]
    rest = operands if case.name.startswith("embedding") else operands[1:]
    with dt.vendor_products(False):
        y = getattr(F, case.name)(*first, *rest, **options)
        found = [y.detach().numpy()]
        if y.requires_grad:
            g = np.linspace(-1, 1, y.size, dtype="f4").reshape(y.shape)
            y.backward(dt.asarray(g, device=device))
            found += [
                (x.grad if x.grad.layout is dt.strided else x.grad.to_dense()).numpy()
                for x in operands if x.dtype.kind == "f" and x.grad is not None
            ]  # fmt: skip
    return found


def assert_same_bits(case: Case, device: str) -> None:
    for a, b in zip(results(case, "reference"), results(case, device), strict=True):
        assert a.tobytes() == b.tobytes()


ONCE = {c.name: c for c in reversed(EVERY)}  # a case of each function


@pytest.mark.parametrize("name", ONCE)
@pytest.mark.parametrize("device", [d for d in OTHERS if d == "cpu"])
def test_bits_equal_those_of_the_reference(name: str, device: str) -> None:
    assert_same_bits(ONCE[name], device)


@pytest.mark.parametrize("name", ["layer_norm", "cross_entropy", "gelu", "embedding", "mish"])
@pytest.mark.parametrize("device", [d for d in OTHERS if d != "cpu"])
def test_bits_of_other_devices_equal_those_of_the_reference(name: str, device: str) -> None:
    assert_same_bits(ONCE[name], device)


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", EVERY, ids=str)
@pytest.mark.parametrize("device", OTHERS)
def test_bits_of_all_cases_equal_those_of_the_reference(case: Case, device: str) -> None:
    assert_same_bits(case, device)


DRAWN = {
    "dropout": lambda x: F.dropout(x, 0.3),
    "dropout1d": lambda x: F.dropout1d(x, 0.3),
    "dropout2d": lambda x: F.dropout2d(dt.expand_dims(x, 0), 0.3),
    "dropout3d": lambda x: F.dropout3d(x.reshape((1, *x.shape, 1)), 0.3),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.3, True),
    "feature_alpha_dropout": lambda x: F.feature_alpha_dropout(x, 0.3, True),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x, hard=True),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("device", OTHERS)
def test_seed_draws_the_same_numbers_everywhere(name: str, device: str) -> None:
    x = normal(3, 5, 4).astype("f4")
    found = []
    for on in ("reference", device):
        dt.random.manual_seed(11)
        y = dt.asarray(x, device=on).requires_grad_()
        with dt.vendor_products(False):
            z = DRAWN[name](y)
            z.sum().backward()
            found.append((z.detach().numpy().tobytes(), y.grad.numpy().tobytes()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "dropout1d", "feature_alpha_dropout"])
def test_full_dropout_of_infinity_and_nan_is_zero(name: str, device: dt.Device) -> None:
    x = dt.asarray([[[dt.inf, dt.nan, -1.0]]]).requires_grad_()
    y = getattr(F, name)(x, 1.0, True)
    assert y.tolist() == [[[0, 0, 0]]]
    assert dt.autograd.grad(y.sum(), [x])[0].tolist() == [[[0, 0, 0]]]


def test_dropout_has_its_probability_and_keeps_the_mean(device: dt.Device) -> None:
    x = dt.ones((40, 50))
    dt.random.manual_seed(1)
    y = F.dropout(x, 0.3)
    assert 0.25 < (y == 0).astype(dt.float32).mean().item() < 0.35
    assert abs(y.mean().item() - 1) < 0.1
    whole = F.dropout1d(dt.ones((20, 30, 4)), 0.5).sum(axis=-1)
    assert bool(((whole == 0) | (whole == 8)).all())
    z = F.alpha_dropout(dt.nn.functional.selu(dt.random.normal((60, 60))), 0.2, True)
    assert abs(z.mean().item()) < 0.1 and abs(z.std().item() - 1) < 0.1
    assert (F.dropout(x, 1.0) == 0).all() and F.dropout(x, 0.5, False) is x


def test_hard_gumbel_softmax_has_gradients_of_the_soft_one(device: dt.Device) -> None:
    x = dt.random.normal((4, 3)).requires_grad_()
    y = F.gumbel_softmax(x, tau=0.5, hard=True)
    assert y.sum(axis=1).tolist() == pytest.approx([1.0] * 4)
    (y * dt.asarray([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad is not None and bool((x.grad != 0).any())
