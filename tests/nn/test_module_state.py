"""States of modules: saved, loaded, rejected, and exchanged with PyTorch through files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest

nn = dt.nn


def net() -> Any:
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))


def values(state: Mapping[str, dt.Tensor]) -> dict[str, list[float]]:
    return {name: x.tolist() for name, x in state.items()}


def test_state_dict_shares_memory_with_the_module(device: dt.Device) -> None:
    a = net()
    state = a.state_dict()
    assert [*state][:3] == ["0.weight", "0.bias", "1.weight"] and len(state) == 9
    assert not any(x.requires_grad for x in state.values())
    with dt.no_grad():
        a[0].weight.fill_(2.0)
    assert state["0.weight"][0, 0].item() == 2.0
    assert a.state_dict(keep_vars=True)["0.weight"] is a[0].weight
    assert next(iter(a.state_dict(prefix="net."))) == "net.0.weight"
    into: dict[str, Any] = {"epoch": 3}
    assert a.state_dict(destination=into) is into and "epoch" in into and "0.bias" in into
    by_place: dict[str, Any] = {}
    assert a.state_dict(by_place, "net.", True) is by_place
    assert by_place["net.0.weight"] is a[0].weight


def test_assigned_tensors_share_memory_and_stay_parameters(device: dt.Device) -> None:
    a = nn.Linear(2, 1)
    a(dt.ones(2)).sum().backward()
    weight, given = a.weight, dt.ones((1, 2), dtype=dt.float64).requires_grad_()
    a.load_state_dict({"weight": given * 2, "bias": (bias := dt.zeros(1))}, assign=True)
    assert a.weight is weight and isinstance(weight, nn.Parameter) and weight.is_leaf
    assert weight.dtype is dt.float64 and weight.tolist() == [[2.0, 2.0]] and weight.grad is None
    bias.fill_(3.0)
    assert a.bias.item() == 3.0 and a.bias.requires_grad


def test_state_dict_is_loaded(device: dt.Device) -> None:
    a, b = net(), net()
    weight = b[0].weight
    found = b.load_state_dict(a.state_dict())
    assert values(a.state_dict()) == values(b.state_dict()) and b[0].weight is weight
    assert repr(found) == "<All keys matched successfully>" and weight.requires_grad
    wide = {k: x.numpy().astype("f8") for k, x in a.state_dict().items()}
    b.load_state_dict(wide)
    assert weight.dtype is dt.float32
    b.load_state_dict({k: dt.asarray(x) for k, x in wide.items()}, assign=True)
    assert b[0].weight is weight and weight.dtype is dt.float64 and weight.requires_grad


def test_mismatches_are_listed_and_nothing_is_loaded(device: dt.Device) -> None:
    a = net()
    before = values(a.state_dict())
    state = {k: x + 1 for k, x in net().state_dict().items()}
    del state["0.bias"], state["3.weight"]
    state |= {"zz": dt.zeros(1), "0.more": dt.zeros(1), "0.weight": dt.zeros((9, 9))}
    with pytest.raises(dt.ArgumentError) as error:
        a.load_state_dict(state)
    for said in (
        "missing:\n    0.bias\n    3.weight", "unexpected:\n    zz\n    0.more",
        "0.weight has shape (9, 9), the module's (3, 4)", "nothing was loaded", "Sequential",
    ):  # fmt: skip
        assert said in str(error.value)
    assert values(a.state_dict()) == before
    with pytest.raises(dt.ShapeError, match=r"not fitting:\n    0.weight has"):
        a.load_state_dict(state, strict=False)
    assert values(a.state_dict()) == before
    del state["0.weight"]
    found = a.load_state_dict(state, strict=False)
    assert found.missing_keys == ["0.weight", "0.bias", "3.weight"]
    assert found.unexpected_keys == ["zz", "0.more"]
    assert values(a.state_dict())["0.bias"] == before["0.bias"]
    assert values(a.state_dict())["3.bias"] != before["3.bias"]


@pytest.mark.parametrize("state", [None, [("0.weight", 1)], "state.safetensors"])
def test_invalid_state_dict_raises(state: Any) -> None:
    with pytest.raises(dt.ArgumentTypeError, match="dict of tensors"):
        net().load_state_dict(state)


def test_non_tensor_in_a_state_dict_raises() -> None:
    state = {**nn.Linear(1, 1).state_dict(), "weight": object()}
    with pytest.raises(dt.ShapeError, match=r"not fitting:\n    weight"):
        nn.Linear(1, 1).load_state_dict(state)


class ModuleWithExtraState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.count = nn.Linear(1, 1), 0

    def get_extra_state(self) -> object:
        return {"count": self.count}

    def set_extra_state(self, state: Any) -> None:
        self.count = state["count"]


def test_extra_state_is_saved_and_loaded(device: dt.Device) -> None:
    a, b = ModuleWithExtraState(), ModuleWithExtraState()
    a.count = 7
    assert [*a.state_dict()] == ["_extra_state", "inner.weight", "inner.bias"]
    b.load_state_dict(a.state_dict())
    assert b.count == 7
    with pytest.raises(dt.ArgumentError, match="_extra_state"):
        b.load_state_dict(a.inner.state_dict(prefix="inner."))


def test_state_dict_hooks_run(device: dt.Device) -> None:
    a = nn.Sequential(nn.Linear(1, 1))
    seen: list[Any] = []
    a[0].register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((prefix, keep)))
    a.register_state_dict_post_hook(lambda m, state, prefix, meta: state.update(extra=dt.zeros(1)))
    state = a.state_dict()
    assert seen == [("0.", False)] and "extra" in state

    def renamed(m: Any, state: dict[str, Any], *rest: Any) -> None:
        state.pop("extra")
        state["0.weight"] = state.pop("0.old")

    a.register_load_state_dict_pre_hook(renamed)
    state["0.old"] = state.pop("0.weight") + 1
    a.load_state_dict(state)
    assert "0.old" in state and a[0].weight.item() == state["0.old"].item()
    b = nn.Linear(1, 1)
    b.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    assert b.load_state_dict({"weight": dt.ones((1, 1))}).missing_keys == []


def test_non_persistent_buffer_is_not_in_the_state() -> None:
    layer = nn.Module()
    layer.register_buffer("kept", dt.zeros(1))
    layer.register_buffer("passing", dt.zeros(1), persistent=False)
    assert [*layer.state_dict()] == ["kept"]
    layer.register_buffer("passing", dt.zeros(1))
    assert [*layer.state_dict()] == ["kept", "passing"]


def test_weights_round_trip_through_pytorch(tmp_path: Path, device: dt.Device) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    files = pytest.importorskip("safetensors.torch")
    a = net()
    with dt.no_grad():
        a[1].running_mean.fill_(0.5)
    theirs = torch.nn.Sequential(
        torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.ReLU(), torch.nn.Linear(3, 2)
    )
    dt.save(tmp_path / "a.safetensors", a.state_dict())
    theirs.load_state_dict(files.load_file(tmp_path / "a.safetensors"))
    x = np.random.default_rng(0).standard_normal((5, 4)).astype("f4")
    a.eval(), theirs.eval()
    want = theirs(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(a(dt.asarray(x)).detach().numpy(), want, rtol=1e-5, atol=1e-6)
    files.save_file(theirs.state_dict(), tmp_path / "b.safetensors")
    b = net()
    b.load_state_dict(dt.load(tmp_path / "b.safetensors"))
    assert values(b.state_dict()) == values(a.state_dict())
    b.load_state_dict(theirs.state_dict())  # unchanged too
    assert values(b.state_dict()) == values(a.state_dict())
