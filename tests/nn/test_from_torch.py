"""`dt.nn.from_torch` against the modules of PyTorch that it converts."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import nn

torch = pytest.importorskip("torch")
F = torch.nn.functional
T = torch.nn


def compare(module: Any, *inputs: np.ndarray, gradients: bool = True) -> nn.Module:
    """Check results and gradients of the converted module; return it."""
    net = nn.from_torch(module)
    assert [*net.state_dict()] == [*module.state_dict()]
    mine = [dt.asarray(x) for x in inputs]
    others = [torch.from_numpy(x) for x in inputs]
    results = dt.tree.leaves(net(*mine)), torch.utils._pytree.tree_leaves(module(*others))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), 1e-5, 1e-5)
    if gradients:
        for a, b in zip(*results, strict=True):
            if b.requires_grad:
                (a * a).sum().backward(retain_graph=True)
                (b * b).sum().backward(retain_graph=True)
        wanted = dict(module.named_parameters())
        for name, p in net.named_parameters():
            g = wanted[name].grad
            assert (p.grad is None) == (g is None), name
            if g is not None:
                np.testing.assert_allclose(p.grad.numpy(), g.numpy(), 1e-4, 1e-4, err_msg=name)
    for name, x in net.state_dict().items():  # the running statistics
        np.testing.assert_allclose(x.numpy(), module.state_dict()[name].numpy(), 1e-5, 1e-5)
    return net


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def test_mlp_has_the_results_gradients_and_repr_of_its_source() -> None:
    module = T.Sequential(T.Linear(4, 8), T.GELU("tanh"), T.Linear(8, 2, bias=False))
    net = compare(module, draw(5, 4))
    assert isinstance(net, nn.Sequential) and isinstance(net[0], nn.Linear)
    assert repr(net) == repr(
        nn.Sequential(nn.Linear(4, 8), nn.GELU("tanh"), nn.Linear(8, 2, bias=False))
    )


def test_known_weights_are_copied() -> None:
    module = T.Linear(2, 1)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[1.0, 2.0]]))
        module.bias.fill_(0.5)
    module.weight.requires_grad_(False)
    net = nn.from_torch(module.eval())
    with torch.no_grad():
        module.weight.zero_()
    assert net(dt.asarray([[10.0, 1.0]])).item() == 12.5
    assert not net.training and not net.weight.requires_grad and net.bias.requires_grad


@pytest.mark.parametrize("training", [True, False])
def test_convolutional_network_with_batch_norm_equals_pytorch(training: bool) -> None:
    module = T.Sequential(
        T.Conv2d(3, 6, 3, stride=2, padding=1, groups=3, bias=False),
        T.BatchNorm2d(6, momentum=0.3), T.ReLU(inplace=True), T.MaxPool2d(2, ceil_mode=True),
        T.ConvTranspose2d(6, 4, 2),
        T.AdaptiveAvgPool2d(1), T.Flatten(), T.Linear(4, 2),
    )  # fmt: skip
    compare(module.train(training), draw(2, 3, 9, 9))


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer_encoder_equals_pytorch(norm_first: bool) -> None:
    layer = T.TransformerEncoderLayer(
        8, 2, 16, 0.0, F.gelu, batch_first=True, norm_first=norm_first, layer_norm_eps=1e-3
    )
    module = T.TransformerEncoder(layer, 2, T.LayerNorm(8), enable_nested_tensor=False)
    compare(module, draw(3, 5, 8))


def test_whole_transformer_and_attention_equal_pytorch() -> None:
    module = T.Transformer(8, 2, 1, 2, 16, 0.0, batch_first=True)
    compare(module, draw(2, 4, 8), draw(2, 3, 8))
    compare(T.MultiheadAttention(8, 2, kdim=4, vdim=6, add_bias_kv=True), draw(4, 2, 8),
            draw(5, 2, 4), draw(5, 2, 6))  # fmt: skip


def test_recurrent_layers_equal_pytorch() -> None:
    compare(T.LSTM(3, 4, 2, batch_first=True, bidirectional=True), draw(2, 5, 3))
    compare(T.GRU(3, 4, bias=False), draw(5, 2, 3))
    compare(T.RNN(3, 4, nonlinearity="relu"), draw(5, 2, 3))


class Block(T.Module):  # type: ignore[misc]
    """A residual block with a parameter, a buffer and functions."""

    def __init__(self, n: int, act: Any) -> None:
        super().__init__()
        self.lin, self.act = T.Linear(n, n), act
        self.scale = T.Parameter(torch.ones(n))
        self.register_buffer("shift", torch.arange(float(n)), persistent=False)

    def forward(self, x: Any, gain: float = 2.0) -> Any:
        y = self.act(self.lin(x)) * self.scale + self.shift
        y = F.layer_norm(y, (y.size(-1),)) * gain
        return x + y, y.max(1)[0]


class Net(T.Module):  # type: ignore[misc]
    """Custom modules within a list, functions and methods with other names in dovetail."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = T.ModuleList([Block(4, T.Tanh()), Block(4, F.silu)])
        self.blocks[1].lin.weight = self.blocks[0].lin.weight
        self.norm = self.again = T.LayerNorm(4)

    def forward(self, x: Any) -> Any:
        tops = []
        for block in self.blocks:
            x, top = block(x, gain=3.0)
            tops.append(top)
        x = self.again(self.norm(x)).view(x.size(0), 2, 2).flatten(1)
        spread = torch.std(x, dim=1, keepdim=True) + x.var(1, unbiased=False).unsqueeze(1)
        order, index = torch.sort(x, dim=1)
        joined = torch.cat([x * spread, torch.stack(tops, dim=1), order.repeat(1, 2)], dim=1)
        return {"a": joined[:, 1:].float().softmax(-1), "b": index}


def test_custom_modules_are_traced_and_keep_shared_weights() -> None:
    net = compare(Net(), draw(3, 4))
    assert net.blocks[0].lin.weight is net.blocks[1].lin.weight and net.norm is net.again
    assert len([*net.parameters()]) == len([*Net().parameters()])
    x = dt.asarray(draw(3, 4))
    captured = dt.jit(net)
    for _ in range(3):
        np.testing.assert_array_equal(captured(x)["a"].numpy(), net(x)["a"].numpy())


def test_hidden_meaning_of_names_is_that_of_pytorch() -> None:
    class Reduce(T.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            values, index = torch.max(x, 1, keepdim=True)
            return (values, index, torch.max(x), torch.min(x, -x), x.std(), x.to(torch.float64),
                    x.reshape(-1)[torch.argmin(x)], torch.nonzero(x), x.t())  # fmt: skip

    compare(Reduce(), draw(3, 4), gradients=False)


def test_every_layer_without_arguments_of_tensors_has_the_repr_of_its_source() -> None:
    examples = [
        T.Conv1d(2, 4, 3, padding="same", padding_mode="circular"), T.BatchNorm1d(3, affine=False),
        T.GroupNorm(2, 4), T.InstanceNorm2d(3, affine=True), T.RMSNorm(4), T.Embedding(5, 3, 0),
        T.EmbeddingBag(5, 3, mode="sum"), T.Bilinear(2, 3, 4), T.PReLU(3, 0.1), T.Softmax(1),
        T.LeakyReLU(0.3), T.Threshold(0.1, 2), T.Hardtanh(-2, 2), T.Upsample(scale_factor=2),
        T.PixelShuffle(2), T.ZeroPad2d(1), T.ConstantPad1d(1, 2.0), T.Unflatten(1, (2, 2)),
        T.CrossEntropyLoss(torch.ones(3), label_smoothing=0.1), T.HuberLoss(delta=2.0),
        T.LSTMCell(2, 3), T.CosineSimilarity(0), T.Fold((4, 4), 2), T.LPPool2d(2, 3),
        T.ParameterList([torch.ones(2)]), T.ModuleDict({"a": T.Identity()}), T.AvgPool2d(2, 1),
    ]  # fmt: skip
    for module in examples:
        net = nn.from_torch(module)
        assert type(net).__name__ == type(module).__name__
        assert [*net.state_dict()] == [*module.state_dict()], module
        options = [n for n in getattr(module, "__constants__", []) if hasattr(net, n)]
        for name in options:
            value = getattr(module, name)
            if isinstance(value, (int, float, str, tuple)):
                assert getattr(net, name) == value, (module, name)


def test_random_state_stays_and_device_is_that_of_the_argument() -> None:
    before = dt.random.get_state()
    net = nn.from_torch(T.Linear(2, 2), device="reference")
    assert dt.random.get_state() == before and str(net.weight.device) == "reference"


class Branch(T.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return x if x.sum() > 0 else -x


class Fft(T.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return torch.cartesian_prod(x)


def test_parametrized_layers_keep_their_parametrizations() -> None:
    torch.manual_seed(3)
    norms = torch.nn.utils.parametrizations
    theirs = T.Sequential(
        norms.weight_norm(T.Linear(3, 4)),
        norms.weight_norm(T.Conv1d(1, 2, 2), dim=None),
        T.Flatten(),
        norms.spectral_norm(T.Linear(6, 2, bias=False), n_power_iterations=2),
    )
    theirs[0].parametrizations.weight.original0.requires_grad_(False)
    theirs.eval()
    ours = nn.from_torch(theirs)
    assert [*ours.state_dict()] == [*theirs.state_dict()] and not ours.training
    assert [p.requires_grad for p in ours.parameters()] == [
        p.requires_grad for p in theirs.parameters()
    ]
    x = torch.randn(5, 1, 3)
    y = ours(dt.asarray(x))
    np.testing.assert_allclose(y.detach().numpy(), theirs(x).detach().numpy(), rtol=1e-5)
    theirs.train(), ours.train()
    y, z = ours(dt.asarray(x)), theirs(x)  # with iterations of spectral_norm
    y.sum().backward(), z.sum().backward()
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-5)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        if q.grad is not None:
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-6)
    with pytest.raises(dt.ArgumentError, match=r"module\.0 has the parametrization _Orthogonal"):
        nn.from_torch(T.Sequential(norms.orthogonal(T.Linear(3, 3))))


def test_what_cannot_be_converted_is_named() -> None:
    with pytest.raises(dt.ArgumentError, match=r"module\.0 \(Branch\): symbolically traced"):
        nn.from_torch(T.Sequential(Branch()))
    with pytest.raises(dt.ArgumentError, match=r"no equal of .*cartesian_prod"):
        nn.from_torch(Fft())
    hooked = T.Linear(2, 2)
    hooked.register_forward_hook(lambda *args: None)
    with pytest.raises(dt.ArgumentError, match="has hooks"):
        nn.from_torch(T.Sequential(hooked))
    with pytest.raises(dt.ArgumentTypeError, match=r"must be a torch\.nn\.Module, got Linear"):
        nn.from_torch(nn.Linear(2, 2))
