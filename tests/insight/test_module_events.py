"""`dt.profile(modules=net)`: launches by module."""

from __future__ import annotations

import dovetail as dt
import pytest
from dovetail import nn


class Net(nn.Module):
    """Two layers, of which one is called twice, and a function."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x: dt.Tensor, *, scale: dt.Tensor) -> dict[str, dt.Tensor]:
        return {"out": self.body(self.body(x * scale)) * 2}


def test_launches_belong_to_the_module_that_recorded_them(device: dt.Device) -> None:
    net = Net().to(device)
    x, scale = dt.ones((3, 4), device=device), dt.asarray(2.0, device=device)
    dt.evaluate(x, scale, *net.parameters())
    wanted = net(x, scale=scale)["out"].tolist()
    with dt.profile(modules=net) as p:
        out = net(x, scale=scale)["out"]
        dt.evaluate(out + 1)
    rows = {row.name: row for row in p.by_module()}
    assert [*rows] == ["", "body", "body.0", "body.1", "outside"]
    assert [row.calls for row in rows.values()] == [1, 2, 2, 2, 0]
    own = {name: [e for e in p.events if e["details"].get("module") == name] for name in rows}
    launches = {
        name: sum(e["name"].split()[0] in ("launch", "call") for e in events)
        for name, events in own.items()
    }
    assert launches["body.1"] == 2 and launches["body"] == 0 and launches[""] == 2
    assert launches["body.0"] >= 2
    assert rows["body"].launches == launches["body.0"] + launches["body.1"]
    assert rows[""].launches == rows["body"].launches + 2 and rows["outside"].launches == 1
    assert rows[""].seconds > rows["body.0"].seconds > 0 and rows["body.1"].nbytes == 2 * 2 * 48
    assert out.tolist() == wanted
    lines = p.summary().splitlines()
    assert lines[-6].split()[:3] == ["module", "calls", "launches"]
    assert lines[-3].startswith("    0: Linear") and lines[-1].startswith("outside")


def test_hooks_are_removed_also_after_an_error() -> None:
    net = nn.Sequential(nn.Linear(4, 4))
    with pytest.raises(dt.ShapeError), dt.profile(modules=net) as p:
        net(dt.ones((3, 5)))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())
    assert p.by_module()[0].calls == 1


def test_captured_functions_run_as_without_a_profile() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    x = dt.ones((3, 4))
    wanted = net(x).tolist()
    with dt.profile(modules=net) as p:
        step = dt.jit(lambda x: net(x))
        assert [step(x).tolist() for _ in range(3)] == [wanted] * 3
    assert p.by_module()[-1].launches > 0


def test_profile_without_modules_refuses_rows_of_modules() -> None:
    with dt.profile() as p:
        pass
    with pytest.raises(dt.ArgumentError, match=r"enter dt\.profile\(modules=net\)"):
        p.by_module()
    assert "module" not in p.summary()


def test_profile_refuses_modules_that_are_no_network() -> None:
    with pytest.raises(dt.ArgumentTypeError, match=r"modules must be a dt\.nn\.Module, got True"):
        dt.profile(modules=True)
