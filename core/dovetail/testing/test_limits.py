"""Level 12: what a device says that it takes no more of, the core gives it no more of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ..device import Device
from ..dtypes import float32
from ..engine.evaluate import planned
from ..functions.copies import concat
from ..functions.statistics import sum as sum_
from ..fusion.plan import Step
from ..tensor.tensor import Tensor
from .cases import dense
from .kit import Kit

MANY = 40  # tensors, where nothing limits the buffers of a kernel


def _sum(xs: list[Tensor]) -> Tensor:
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


def _sum_of_rows(xs: list[Tensor]) -> Tensor:
    return sum_(_sum(xs), axis=1)


def _joined(xs: list[Tensor]) -> Tensor:
    return concat([_sum(xs[k::4]) for k in range(4)], axis=1) + 1


@pytest.mark.parametrize("program", (_sum, _sum_of_rows, _joined), ids=lambda p: p.__name__[1:])
def test_buffers(kit: Kit, program: Callable[[list[Tensor]], Tensor]) -> None:
    """More tensors than a kernel may have buffers."""
    most = kit.backend.info.capabilities.max_buffers

    def make(on: Device) -> Tensor:
        count = 3 * most + 4 if most else MANY
        rng = np.random.default_rng(1)
        xs = [rng.standard_normal((6, 17)).astype("f4") for _ in range(count)]
        return program([dense(x, float32, on) for x in xs])

    kit.agree(make, f"{program.__name__[1:]} of more tensors than a kernel takes")
    kernels = [s.kernel for _, p in planned([make(kit.device)._expr]) for s in p.steps
               if isinstance(s, Step)]  # fmt: skip
    for kernel in kernels:
        assert not most or len(kernel.buffers) <= most, kit.failure(
            f"{len(kernel.buffers)} buffers of {most}", str(kernel)
        )
