"""Arguments that `dovetail.torch` refuses, as PyTorch does; and `index_put_`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import dovetail.torch as torch
import pytest


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.einsum(x, [-1]),
        lambda x: torch.einsum(x, [60]),
        lambda x: torch.einsum(x),
        lambda x: x.squeeze(0, dim=0),
        lambda x: x.squeeze(0, axis=0),
    ],
)
def test_axes_that_torch_refuses_raise_an_error(call: Callable[[Any], Any]) -> None:
    with pytest.raises(dt.DovetailError, match=r"^(einsum|squeeze): "):
        call(torch.ones(3))


@pytest.mark.parametrize("differs", ["class", "mode", "requires_grad"])
def test_states_of_models_that_differ_are_refused(differs: str) -> None:
    a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    if differs == "class":
        b = torch.nn.Bilinear(2, 2, 2)
    elif differs == "mode":
        b.eval()
    else:
        b.weight.requires_grad_(False)
    with pytest.raises(dt.ArgumentError, match=r"^stack_module_state: "):
        torch.func.stack_module_state([a, b])


def test_index_put_in_place_makes_no_copy_of_the_tensor() -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    x = torch.zeros(1 << 20, device="cpu")
    dt.evaluate(x)
    index, values = torch.tensor([1, 5], device="cpu"), torch.tensor([2.0, 3.0], device="cpu")
    dt.memory.reset_peak("cpu")
    before = dt.memory.stats("cpu").live_bytes
    assert x.index_put_((index,), values) is x
    assert x[:6].tolist() == [0, 2, 0, 0, 0, 3]
    assert dt.memory.stats("cpu").peak_live_bytes < before + 4096
