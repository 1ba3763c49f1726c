"""An empty batch does not change running statistics."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import nn

F = nn.functional
LAYERS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "BatchNorm1d": (nn.BatchNorm1d, (0, 3)),
    "BatchNorm1d of signals": (nn.BatchNorm1d, (0, 3, 5)),
    "BatchNorm1d without positions": (nn.BatchNorm1d, (2, 3, 0)),
    "BatchNorm2d": (nn.BatchNorm2d, (0, 3, 2, 2)),
    "BatchNorm3d": (nn.BatchNorm3d, (0, 3, 2, 2, 2)),
    "InstanceNorm1d": (nn.InstanceNorm1d, (0, 3, 4)),
    "InstanceNorm2d": (nn.InstanceNorm2d, (0, 3, 2, 2)),
    "InstanceNorm3d": (nn.InstanceNorm3d, (2, 3, 0, 2, 2)),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("name", LAYERS)
def test_running_statistics_equal_those_without_the_empty_batch(
    device: dt.Device, name: str, momentum: float | None, dtype: str
) -> None:
    make, shape = LAYERS[name]
    if momentum is None and "Instance" in name:
        momentum = 0.3
    full = np.random.default_rng(0).normal(1.0, 2.0, (4, 3, *(3,) * (len(shape) - 2)))

    def states(*batches: Any) -> dict[str, Any]:
        layer = make(3, momentum=momentum, track_running_stats=True).to(getattr(dt, dtype))
        for batch in batches:
            out = layer(dt.asarray(batch, dtype=getattr(dt, dtype)))
            assert out.shape == batch.shape
        return {k: v.tolist() for k, v in layer.state_dict().items()}

    empty = np.zeros(shape)
    assert states(empty, full, empty, full) == states(full, full)
    assert np.isfinite(states(empty)["running_mean"]).all()


def test_functions_keep_running_statistics_for_an_empty_batch(device: dt.Device) -> None:
    for norm in (F.batch_norm, F.instance_norm):
        mean, var = dt.full(3, 2.0), dt.full(3, 5.0)
        training = {"training": True} if norm is F.batch_norm else {}
        norm(dt.zeros(0, 3, 2), mean, var, **training)
        assert (mean.tolist(), var.tolist()) == ([2.0] * 3, [5.0] * 3)
