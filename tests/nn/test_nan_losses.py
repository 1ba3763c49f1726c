"""A loss that is no number: anomaly mode names the line of the network that made it."""

from __future__ import annotations

from pathlib import Path

import dovetail as dt
import pytest
from dovetail import nn


class Roots(nn.Module):
    """A layer that takes the root of what may be negative."""

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


def test_without_it_the_loss_is_nan_as_ever() -> None:
    net = Roots()
    with dt.no_grad():
        net.layer.weight.copy_(dt.asarray([[-1.0, 0.0], [0.0, 1.0]]))
    loss = nn.functional.mse_loss(net(dt.ones((3, 2))), dt.ones((3, 2)))
    assert bool(dt.isnan(loss))
