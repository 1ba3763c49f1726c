"""A loss that is NaN: anomaly mode names the line of the network that made it."""

from __future__ import annotations

from pathlib import Path

import dovetail as dt
import pytest
from dovetail import nn


class Roots(nn.Module):
    """A layer that takes the square root of possibly negative values."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2, bias=False)

    def forward(self, x: dt.Tensor) -> dt.Tensor:
        return dt.sqrt(self.layer(x))  # the line


def test_anomaly_mode_names_the_line_of_a_nan_loss() -> None:
    net = Roots()
    with dt.no_grad():
        net.layer.weight.copy_(dt.asarray([[-1.0, 0.0], [0.0, 1.0]]))
    target = dt.ones((3, 2))
    with dt.autograd.detect_anomaly(), pytest.raises(dt.AnomalyError, match="sqrt") as caught:
        nn.functional.mse_loss(net(dt.ones((3, 2))), target).backward()
    line = 1 + Path(__file__).read_text().split("  # the line")[0].count("\n")
    assert f"test_nan_losses.py:{line}" in str(caught.value)


def test_loss_is_nan_without_anomaly_mode() -> None:
    net = Roots()
    with dt.no_grad():
        net.layer.weight.copy_(dt.asarray([[-1.0, 0.0], [0.0, 1.0]]))
    loss = nn.functional.mse_loss(net(dt.ones((3, 2))), dt.ones((3, 2)))
    assert bool(dt.isnan(loss))


@pytest.mark.parametrize("wrong", [-0.25, 1.25, -1e-20, float("inf"), float("nan")])
@pytest.mark.parametrize("where", ["input", "target"])
def test_loss_of_an_invalid_probability_is_nan(wrong: float, where: str, device: dt.Device) -> None:
    """PyTorch raises; in dovetail the loss and its gradient are NaN, never a plausible number."""
    for right in (0.0, 0.5, 1.0):
        x = dt.asarray([0.5, wrong if where == "input" else right], device=device).requires_grad_()
        t = dt.asarray([0.5, wrong if where == "target" else right], device=device)
        loss = nn.functional.binary_cross_entropy(x, t, reduction="none")
        loss.sum().backward()
        assert dt.isnan(loss).tolist() == [False, True]
        assert x.grad is not None and dt.isnan(x.grad).tolist() == [False, True]


@pytest.mark.parametrize("where", ["input", "target"])
def test_debug_nans_names_the_line_of_an_invalid_probability(where: str, device: dt.Device) -> None:
    edges = dt.asarray([0.0, 1.0, 0.5], device=device)
    wrong = dt.asarray([0.0, 1.0, 1.5], device=device)
    with dt.debug_nans():
        right = nn.functional.binary_cross_entropy(edges, edges)
        assert right.item() == pytest.approx(0.6931 / 3, rel=1e-3)
        given = (wrong, edges) if where == "input" else (edges, wrong)
        with pytest.raises(dt.AnomalyError, match=r"test_nan_losses\.py"):
            nn.functional.binary_cross_entropy(*given).item()
