"""Modules: attributes, operations on all submodules, hooks, and errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import dovetail as dt
import numpy as np
import pytest

nn = dt.nn


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(dt.ones((2, 3)))
        self.register_buffer("count", dt.zeros((), dtype=dt.int64))
        self.passing = nn.Buffer(dt.zeros(2), persistent=False)
        self.register_parameter("bias", None)

    def forward(self, x: dt.Tensor) -> dt.Tensor:
        return x @ self.weight.T


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Layer(), Layer()
        self.tied = nn.Linear(3, 2, bias=False)
        self.tied.weight = self.first.weight

    def forward(self, x: dt.Tensor) -> dt.Tensor:
        return self.first(x) + self.second(x)


def test_named_parameters_and_other_iterators(device: dt.Device) -> None:
    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["first.weight", "second.weight"]
    names = [n for n, _ in net.named_parameters("net", remove_duplicate=False)]
    assert names == ["net.first.weight", "net.second.weight", "net.tied.weight"]
    assert [n for n, _ in net.named_buffers()] == [
        "first.count", "first.passing", "second.count", "second.passing",
    ]  # fmt: skip
    assert [n for n, _ in net.named_modules()] == ["", "first", "second", "tied"]
    assert [n for n, _ in net.named_children()] == ["first", "second", "tied"]
    assert [*net.parameters(recurse=False)] == [] and len([*net.buffers()]) == 4
    assert net.get_parameter("first.weight") is net.first.weight
    assert net.get_buffer("second.count") is net.second.count
    assert net.get_submodule("tied") is net.tied and net.get_submodule("") is net
    for ask in (
        lambda: net.get_submodule("first.none"), lambda: net.get_parameter("first.count"),
        lambda: net.get_buffer("none.count"), lambda: net.nothing,
    ):  # fmt: skip
        with pytest.raises(AttributeError):
            ask()
    net.set_submodule("first", nn.Identity())
    assert repr(net.first) == "Identity()"


def test_attributes_keep_their_kind() -> None:
    layer = Layer()
    with pytest.raises(dt.ArgumentTypeError, match=r"Layer\.weight is a parameter.*nn\.Parameter"):
        layer.weight = dt.ones((2, 3))
    with pytest.raises(dt.ArgumentTypeError, match="buffer"):
        layer.count = 3
    layer.count = dt.ones(())
    assert "count" in layer.state_dict()
    layer.weight = None
    assert [*layer.parameters()] == [] and layer.weight is None
    layer.weight = nn.Parameter(dt.zeros(1))
    assert layer.weight.size == 1
    layer.plain = 3
    layer.plain = nn.Parameter(dt.zeros(1))  # moves to the parameters
    assert "plain" not in vars(layer) and [n for n, _ in layer.named_parameters()] == [
        "weight", "plain",
    ]  # fmt: skip
    del layer.plain
    assert not hasattr(layer, "plain") and "weight" in dir(layer)


class Early(nn.Module):
    def __init__(self) -> None:
        self.weight = nn.Parameter(dt.ones(1))


WRONG_NAMES: list[tuple[str, Any, type[Exception], str]] = [
    ("register_buffer", ("a.b", None), dt.ArgumentError, "a dot"),
    ("register_buffer", ("", None), dt.ArgumentError, "not be empty"),
    ("register_buffer", ("forward", None), dt.ArgumentError, "already"),
    ("register_buffer", ("weight", None), dt.ArgumentError, "already"),
    ("register_buffer", (3, None), dt.ArgumentTypeError, "str"),
    ("register_buffer", ("b", [1.0]), dt.ArgumentTypeError, "tensor"),
    ("register_parameter", ("a.b", None), dt.ArgumentError, "a dot"),
    ("register_parameter", ("count", None), dt.ArgumentError, "already"),
    ("register_parameter", ("w", dt.ones(1, device="reference")), dt.ArgumentTypeError, "Param"),
    ("add_module", ("a.b", None), dt.ArgumentError, "a dot"),
    ("add_module", ("m", 3), dt.ArgumentTypeError, "nn.Module"),
    ("add_module", ("weight", None), dt.ArgumentError, "already"),
    ("register_forward_hook", (3,), dt.ArgumentTypeError, "callable"),
    ("train", (1,), dt.ArgumentTypeError, "bool"),
    ("to", (dt.int32,), dt.DTypeError, "float or complex"),
]


@pytest.mark.parametrize(("method", "args", "kind", "said"), WRONG_NAMES)
def test_methods_with_invalid_arguments_raise(
    method: str, args: Any, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        getattr(Layer(), method)(*args)


def test_use_before_init_and_missing_forward_raise() -> None:
    with pytest.raises(AttributeError, match=r"before super\(\).__init__\(\)"):
        Early()
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        nn.Module()(1)


def test_train_and_eval_apply_to_all_submodules(device: dt.Device) -> None:
    net = Net()
    assert net.eval() is net and not net.first.training and not net.tied.training
    assert net.train().first.training
    seen: list[str] = []
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Layer", "Layer", "Linear", "Net"]
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_zero_grad_clears_or_zeroes_gradients(device: dt.Device) -> None:
    net = Net()
    net(dt.ones(3)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.first.weight.grad.tolist() == [[0.0] * 3] * 2
    net.zero_grad()
    assert net.first.weight.grad is None


def test_dtype_conversion_keeps_parameter_objects(device: dt.Device) -> None:
    net = Net()
    weight = net.first.weight
    net(dt.ones(3)).sum().backward()
    assert net.double() is net
    assert net.first.weight is weight is net.tied.weight and weight.dtype is dt.float64
    assert weight.requires_grad and weight.is_leaf and weight.grad.dtype is dt.float64
    assert net.first.passing.dtype is dt.float64 and net.first.count.dtype is dt.int64
    for name in ("half", "bfloat16", "float"):
        getattr(net, name)()
    assert weight.dtype is dt.float32
    net.to(dt.ones(1, dtype=dt.float16))
    assert weight.dtype is dt.float16
    net.to("reference", dt.float64)
    assert weight.device == dt.device("reference") and weight.dtype is dt.float64
    net.to(device=device, dtype=dt.float32)
    assert weight.device == device and weight.dtype is dt.float32
    with pytest.raises(dt.ArgumentTypeError, match="where"):
        net.to(where="cpu")


def test_to_empty_allocates_memory_on_a_device(device: dt.Device) -> None:
    net = Net()
    weight, passing, at = net.first.weight, net.first.passing, net.first.weight.data_ptr()
    net(dt.ones(3)).sum().backward()
    assert net.to_empty(device=device) is net and net.first.weight is weight is net.tied.weight
    assert weight.data_ptr() != at and weight.grad is None and isinstance(weight, nn.Parameter)
    net.to_empty(device="reference", recurse=False)
    assert weight.device == device
    net.to_empty(device="reference")
    assert weight.device == passing.device == dt.device("reference") and weight.is_leaf
    assert weight.shape == (2, 3) and net.first.count.dtype is dt.int64 and weight.requires_grad
    with pytest.raises(dt.DeviceError, match="nowhere"):
        net.to_empty(device="nowhere")
    assert net.load_state_dict(net.state_dict()).missing_keys == []


def test_optimizer_continues_after_a_move(device: dt.Device) -> None:
    layer = nn.Linear(2, 1)
    held = [*layer.parameters()]
    layer.to("reference").double()
    layer(dt.ones((1, 2), dtype=dt.float64, device="reference")).sum().backward()
    with dt.no_grad():
        for p in held:
            p.sub_(p.grad)
    assert layer.weight is held[0] and held[0].device == dt.device("reference")


def test_copies_and_pickles_are_independent_modules(device: dt.Device) -> None:
    net = Net()
    net.first.weight.requires_grad_(False)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        names = [n for n, _ in other.named_parameters()]
        assert names == ["first.weight", "second.weight"]
        assert other.tied.weight is other.first.weight is not net.first.weight
        assert isinstance(other.second.weight, nn.Parameter) and other.second.weight.requires_grad
        assert not other.first.weight.requires_grad
        assert [*other.state_dict()] == [*net.state_dict()]
        with dt.no_grad():
            other.second.weight.fill_(5.0)
        assert net.second.weight[0, 0].item() == 1.0


def test_repr_is_indented() -> None:
    class Said(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.ReLU())

        def extra_repr(self) -> str:
            return "first\nsecond"

    want = "Said(\n  first\n  second\n  (inner): Sequential(\n    (0): ReLU()\n  )\n)"
    assert repr(Said()) == want


# --- hooks ---------------------------------------------------------------------------------------


def test_forward_hooks_run_before_and_after(device: dt.Device) -> None:
    layer, seen = nn.Linear(2, 1), []
    handles = [
        layer.register_forward_pre_hook(lambda m, args: seen.append("second")),
        layer.register_forward_pre_hook(lambda m, args: (args[0] * 0.0,), prepend=True),
        layer.register_forward_hook(lambda m, args, y: y + 1.0),
        layer.register_forward_hook(lambda m, a, named, y: seen.append(named), with_kwargs=True),
    ]  # fmt: skip
    y = layer(dt.ones(2))
    assert y.item() == pytest.approx(layer.bias.item() + 1.0) and seen == ["second", {}]
    for h in handles:
        h.remove()
    assert layer(dt.zeros(2)).item() == pytest.approx(layer.bias.item())
    with layer.register_forward_pre_hook(lambda m, a, k: ((k["input"],), {}), with_kwargs=True):
        assert layer(input=dt.zeros(2)).shape == (1,)
    with (
        layer.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True),
        pytest.raises(dt.ArgumentTypeError, match=r"\(args, kwargs\)"),
    ):
        layer(dt.zeros(2))


def test_hook_with_always_call_runs_after_an_error(device: dt.Device) -> None:
    layer, seen = nn.Linear(2, 1), []
    layer.register_forward_hook(lambda m, a, y: seen.append(y), always_call=True)
    with pytest.raises(dt.ShapeError):
        layer(dt.zeros(3))
    assert seen == [None]


def test_backward_hooks_see_and_replace_gradients(device: dt.Device) -> None:
    layer, seen = nn.Linear(2, 1, bias=False), []
    layer.register_full_backward_pre_hook(lambda m, g: (g[0] * 2.0,))
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi[0].shape, go[0].item())))
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10.0,))
    x = dt.ones(2).requires_grad_()
    layer(x).sum().backward()
    assert seen == [((2,), 2.0)]
    np.testing.assert_allclose(x.grad.numpy(), 20.0 * layer.weight.detach().numpy()[0], rtol=1e-6)
    assert layer.weight.grad.tolist() == [[2.0, 2.0]]


def test_backward_hook_with_an_input_without_gradient(device: dt.Device) -> None:
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].shape)))
    layer(dt.ones(2)).sum().backward()
    assert seen == [((None,), (1,))]
    wrong = nn.Linear(2, 1)
    wrong.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    with pytest.raises(dt.GradientError, match="1 gradients, got 2"):
        wrong(dt.ones(2).requires_grad_()).sum().backward()


def test_set_submodule_replaces_a_module() -> None:
    """It keeps its place in the order in which a Sequential calls its modules."""
    net = nn.Sequential(nn.Identity(), nn.Sequential(nn.ReLU(), nn.Tanh()), nn.Sigmoid())
    net.set_submodule("0", nn.ReLU())
    net.set_submodule("1.0", nn.GELU(), strict=True)
    assert [type(m).__name__ for m in net] == ["ReLU", "Sequential", "Sigmoid"]
    assert [type(m).__name__ for m in net[1]] == ["GELU", "Tanh"]
    net.set_submodule("1.more", nn.Identity())
    assert [name for name, _ in net[1].named_children()] == ["0", "1", "more"]


def test_set_submodule_at_an_invalid_path_raises() -> None:
    net = nn.Sequential(nn.Linear(2, 2, device="reference"))
    with pytest.raises(AttributeError, match="0 has no module 'gone'"):
        net.set_submodule("0.gone", nn.Identity(), strict=True)
    with pytest.raises(AttributeError, match="no module 'gone'"):
        net.set_submodule("gone.0", nn.Identity())
    with pytest.raises(AttributeError, match=r"0\.weight is not a module, got Tensor"):
        net.set_submodule("0.weight", nn.Identity())
    with pytest.raises(dt.ArgumentError, match="pass the name"):
        net.set_submodule("", nn.Identity())
    with pytest.raises(dt.ArgumentTypeError, match="expected a Module"):
        net.set_submodule("0", dt.ones(2, device="reference"))  # type: ignore[arg-type]  # what is none
    assert type(net[0]) is nn.Linear and net[0].weight.shape == (2, 2)


def test_shared_submodule_is_listed_once() -> None:
    inner = nn.ReLU()
    net = nn.Sequential(inner, nn.Tanh(), inner)
    assert [*net.modules()] == [net, inner, net[1]]
    assert [*net.modules(remove_duplicate=False)] == [net, inner, net[1], inner]
    assert [*net.modules(False)] == [m for _, m in net.named_modules(remove_duplicate=False)]


def test_activations_are_instances_of_the_classes_of_pytorch_only() -> None:
    assert isinstance(nn.ReLU6(), nn.Hardtanh)
    assert not isinstance(nn.CELU(), nn.ELU)
    assert not isinstance(nn.Softshrink(), nn.Hardshrink)
