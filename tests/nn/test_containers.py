"""Modules that contain others: list and dict operations, names, errors."""

from __future__ import annotations

import dovetail as dt
import pytest

nn = dt.nn


def names(of: nn.Module) -> list[str]:
    return [n for n, _ in of.named_children()]


def test_sequential_supports_list_operations(device: dt.Device) -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    assert net(dt.ones(2)).shape == (3,) and net[-1] is net[1] and nn.ReLU in map(type, net)
    assert net.append(nn.Tanh()) is net and names(net) == ["0", "1", "2"]
    assert isinstance(net[1:], nn.Sequential) and [*map(type, net[1:])] == [nn.ReLU, nn.Tanh]
    net.insert(1, nn.Identity())
    assert names(net) == ["0", "1", "2", "3"] and isinstance(net[1], nn.Identity)
    del net[1]
    assert names(net) == ["0", "1", "2"] and isinstance(net.pop(0), nn.Linear)
    assert len(net) == 2 and len(net + net) == 4 and len(net * 3) == 6 and len(2 * net) == 4
    net += nn.Sequential(nn.GELU())
    net[0] = nn.SiLU()
    assert [*map(type, net)] == [nn.SiLU, nn.Tanh, nn.GELU]
    named = nn.Sequential({"in": nn.Linear(2, 2), "out": nn.Linear(2, 1)})
    assert names(named) == ["in", "out"] and named["in" == "in"] is named.out
    assert [*named[:1].state_dict()] == ["in.weight", "in.bias"]
    with pytest.raises(dt.ArgumentError):
        _ = net * 0


@pytest.mark.parametrize("part", [slice(1, None), slice(0, 3, 2), slice(2, None), slice(0, 2)])
def test_append_to_a_slice_of_a_sequential_replaces_no_module(part: slice) -> None:
    a, b, c, d, e = (nn.Linear(1, 1) for _ in range(5))
    net = nn.Sequential(a, b, c)[part]
    kept, before = [a, b, c][part], names(net)
    assert before == [str(i) for i in range(3)[part]]  # as in PyTorch: keys of the whole's state
    assert [*net.append(d)] == [*kept, d]
    net += nn.Sequential(e)
    assert [*net.extend([a, b])] == [*kept, d, e, a, b] and len(net) == len(kept) + 4
    assert names(net)[: len(kept)] == before


def test_append_after_removal_by_name_replaces_no_module() -> None:
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.GELU()])
    del layers._modules["0"]
    layers.append(nn.SiLU())
    assert [*map(type, layers)] == [nn.Tanh, nn.GELU, nn.SiLU]
    numbered = nn.Sequential({"1": nn.ReLU()}).append(nn.Tanh())
    assert [*map(type, numbered)] == [nn.ReLU, nn.Tanh] and names(numbered) == ["1", "2"]


def test_none_in_a_list_of_modules_keeps_its_place(device: dt.Device) -> None:
    layers = nn.ModuleList([nn.ReLU(), None, nn.Tanh()])  # type: ignore[list-item]  # that is the test
    assert len(layers) == 3 and layers[1] is None and isinstance(layers[2], nn.Tanh)
    assert [*layers][1] is None and layers[1:][0] is None and names(layers) == ["0", "2"]
    del layers[0]
    assert layers[0] is None and "(0): None" in repr(layers)
    net = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Identity())
    net[1] = None  # type: ignore[assignment]  # that is the test
    assert isinstance(net[2], nn.Identity) and net(-dt.ones(2)).tolist() == [0, 0]


def test_module_list_supports_list_operations() -> None:
    found = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    found.insert(0, nn.GELU())
    assert names(found) == ["0", "1", "2"] and isinstance(found[0], nn.GELU)
    assert len(found + nn.ModuleList([nn.SiLU()])) == 4 and len(found) == 3
    found.extend([nn.SiLU()])
    del found[1:3]
    assert [*map(type, found)] == [nn.GELU, nn.SiLU] and isinstance(found.pop(-1), nn.SiLU)
    found[0] = nn.ELU()
    assert isinstance(found[:], nn.ModuleList) and isinstance(found[0], nn.ELU)


def test_module_dict_supports_dict_operations() -> None:
    found = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    found["c"] = nn.GELU()
    found.update([("a", nn.SiLU())])
    assert [*found] == ["a", "b", "c"] and isinstance(found["a"], nn.SiLU) and "b" in found
    assert isinstance(found.pop("b"), nn.Tanh) and len(found) == 2
    del found["c"]
    assert [*found.keys()] == ["a"] and [k for k, _ in found.items()] == ["a"]
    found.clear()
    assert len(found) == 0 and [*found.values()] == []


def test_parameter_list_and_dict_register_parameters(device: dt.Device) -> None:
    rows = nn.ParameterList([dt.ones(1), nn.Parameter(dt.ones(2))])
    rows.append(dt.ones(3))
    assert [n for n, _ in rows.named_parameters()] == ["0", "1", "2"]
    assert rows[-1].requires_grad and isinstance(rows[0], nn.Parameter)
    rows[0] = dt.zeros(5)
    assert rows[0].size == 5 and len(rows[1:]) == 2 and rows.pop(1).size == 2
    assert [x.size for x in rows] == [5, 3]
    found = nn.ParameterDict({"a": dt.ones(1)})
    found["b"] = dt.ones(2)
    assert found.setdefault("b").size == 2 and found.get("none") is None
    assert [n for n, _ in found.named_parameters()] == ["a", "b"] and found.popitem()[0] == "b"
    assert [*found.copy()] == ["a"] and len(found.fromkeys(["x", "y"], 0)) == 2
    found.clear()
    assert len(found) == 0


def test_parameter_dicts_are_merged(device: dt.Device) -> None:
    a, b = nn.ParameterDict({"a": dt.ones(1), "b": dt.ones(2)}), {"b": dt.ones(3), "c": dt.ones(4)}
    both = a | b
    assert isinstance(both, nn.ParameterDict) and both["a"] is a["a"]
    assert {n: p.size for n, p in both.named_parameters()} == {"a": 1, "b": 3, "c": 4}
    assert [*reversed(both)] == ["c", "b", "a"] and [*a] == ["a", "b"]
    assert {n: x.size for n, x in (b | a).items()} == {"b": 2, "c": 4, "a": 1}
    held = a
    a |= b
    assert a is held and [*a] == ["a", "b", "c"]
    with pytest.raises(TypeError, match=r"\|"):
        a | 3  # type: ignore[operator]  # that is the test


def test_invalid_operations_on_containers_raise() -> None:
    with pytest.raises(dt.OutOfRangeError, match="index 2 is out of range for 1"):
        nn.Sequential(nn.ReLU())[2]
    with pytest.raises(dt.ArgumentTypeError, match="index must be an int"):
        nn.ModuleList([nn.ReLU()])["a"]  # type: ignore[call-overload]  # that is the test
    for rows in (nn.ModuleList([nn.ReLU()]), nn.ParameterList([dt.ones(3, device="reference")])):
        with pytest.raises(dt.ArgumentTypeError, match="cannot assign to a slice"):
            rows[:1] = rows[:1]  # type: ignore[index]  # that is the test
    with pytest.raises(dt.ArgumentTypeError, match=r"nn\.Module"):
        nn.Sequential(dt.relu)  # type: ignore[arg-type]  # that is the test
    with pytest.raises(dt.ArgumentError, match="a dot"):
        nn.ModuleDict({"a.b": nn.ReLU()})
    with pytest.raises(dt.ArgumentError, match="already"):
        nn.ModuleDict({"training": nn.ReLU()})
    with pytest.raises(KeyError):
        nn.ParameterDict()["a"]
    with pytest.raises(dt.ArgumentTypeError, match="append"):
        nn.ParameterList(dt.ones(3, device="reference"))
    with pytest.raises(dt.OutOfRangeError):
        nn.Sequential().insert(2, nn.ReLU())


def test_flatten_and_unflatten_layers(device: dt.Device) -> None:
    x = dt.zeros((2, 3, 4))
    assert nn.Flatten()(x).shape == (2, 12) and nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Unflatten(-1, (2, -1))(x).shape == (2, 3, 2, 2)
    assert nn.Identity(3, a=4)(x) is x
    with pytest.raises(dt.AxisError, match="Unflatten: axis 5"):
        nn.Unflatten(5, (2, 2))(x)
    with pytest.raises(dt.ArgumentTypeError, match="Unflatten"):
        nn.Unflatten(1, 3)  # type: ignore[arg-type]  # that is the test
