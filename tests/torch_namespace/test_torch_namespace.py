"""`dovetail.torch`: classes of results, modules, loaders, files and errors."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import dovetail as dt
import dovetail.torch as torch
import dovetail.torch.nn as nn
import dovetail.torch.nn.functional as F
import numpy as np
import pytest
from dovetail.torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from dovetail.torch.optim import AdamW, lr_scheduler
from dovetail.torch.utils.data import DataLoader, TensorDataset, random_split

X = [[1.0, 5.0], [4.0, 2.0]]


def test_max_along_an_axis_returns_values_and_indices() -> None:
    values, indices = torch.tensor(X).max(1)
    assert (values.tolist(), indices.tolist()) == ([5.0, 4.0], [1, 0])
    assert torch.tensor(X).max(axis=1).tolist() == [5.0, 4.0]  # the Array API's parameter
    assert dt.asarray(X).max(1).tolist() == [5.0, 4.0]


def test_gradient_of_max_goes_to_the_element_at_the_index() -> None:
    w = torch.tensor([2.0, 2.0, 1.0], requires_grad=True)
    w.max(0).values.backward()
    assert w.grad.tolist() == [1.0, 0.0, 0.0]


def test_median_is_the_lower_one_and_std_divides_by_n_minus_1() -> None:
    x = torch.tensor([4.0, 1.0, 3.0, 2.0])
    assert x.median().item() == 2.0
    assert x.var().item() == pytest.approx(5 / 3)
    assert x.var(axis=0).item() == pytest.approx(5 / 4)
    assert np.isnan(torch.tensor([1.0, float("nan")]).median().item())
    assert torch.tensor([float("nan"), 3.0, 1.0]).nanmedian().item() == 1.0


def test_integers_are_divided_towards_zero_without_rounding_errors() -> None:
    n = torch.tensor([2**60 + 1, -7])
    assert torch.div(n, 2, rounding_mode="trunc").tolist() == [2**59, -3]
    assert n.div(2, rounding_mode="floor").tolist() == [2**59, -4]
    with pytest.raises(dt.ArgumentError, match="rounding_mode"):
        torch.div(n, 2, rounding_mode="up")


@pytest.mark.parametrize(
    "code",
    [
        "x + 1", "1 - x", "x @ x", "-x", "x[0]", "x[:, None]", "x.T", "x.view(-1)", "x.exp()",
        "x.sum()", "x.astype(dt.int64)", "x.cumsum(0)", "x.detach()", "x.clone()", "x > 1",
        "x[x > 1]", "torch.cat([x, x])", "torch.zeros(2)", "torch.arange(3)", "x.new_zeros(2)",
        "x.split(1)[0]", "x.max(1).values", "F.relu(x)", "torch.linalg.inv(x)", "torch.fft.fft(x)",
        "dt.asarray(x.tolist()) + x", "torch.rand(2)", "x.float()", "x.to(dt.float64)", "x.real",
        "next(iter(x))", "copy.deepcopy(x)", "copy.copy(x)", "pickle.loads(pickle.dumps(x))",
        "x.data", "divmod(x, 2)[0]", "[[1.0, 2.0]] @ x", "torch.stack([x]).squeeze(0)",
        "x.topk(1)[1]",
        "torch.distributions.Normal(x, 1.0).sample()", "torch.distributions.Normal(x, 1.0).mean",
        "torch.special.expit(x)", "x.mul_(2)", "torch.tensor(x)", "torch.nn.Parameter(x)",
        "torch.func.grad(lambda x: x.sum())(x)", "torch.vmap(lambda r: r * 2)(x)",
        "torch.compile(lambda x: x * 2)(x)", "torch.nn.init.zeros_(x)", "nn.Linear(2, 3)(x)",
    ],
)  # fmt: skip
def test_result_is_of_the_class(code: str) -> None:
    names = {"x": torch.tensor(X), "torch": torch, "F": F, "nn": nn, "dt": dt}
    result = eval(code, {**names, "copy": copy, "pickle": pickle})
    assert type(result) is torch.Tensor


def test_functions_of_dt_accept_the_class_and_leave_plain_tensors_as_they_are() -> None:
    plain = dt.asarray(X)
    assert dt.concat([plain, torch.tensor(X)]).shape == (4, 2)
    assert type(torch.asarray(plain)) is torch.Tensor
    assert type(nn.Identity()(plain)) is torch.Tensor
    assert type(plain) is dt.Tensor


def test_argument_of_class_dt_tensor_keeps_its_class_when_it_is_returned() -> None:
    plain, out = dt.ones(3), dt.zeros(3)
    results = [
        torch.einsum("i->i", [plain]),
        torch.add(plain, plain, out=out),
        *torch.broadcast_tensors(plain, plain),
        torch.atleast_1d(plain),
    ]
    assert type(plain) is type(out) is dt.Tensor
    assert all(type(x) is torch.Tensor for x in results)
    results[1][0] = 9.0
    assert out.tolist() == [9.0, 2.0, 2.0]  # over the same memory


def test_axis_has_the_meaning_of_the_array_api() -> None:
    for x in (dt.asarray(X), torch.tensor(X)):
        assert x.flip(axis=0).tolist() == X[::-1]
        assert x.argsort(axis=0).tolist() == [[0, 1], [1, 0]]
        assert x.take(dt.asarray([1]), axis=1).tolist() == [[5.0], [2.0]]
        assert x.unique(axis=0).tolist() == X


def test_method_that_is_loaded_at_its_first_use_is_wrapped_once() -> None:
    x = torch.tensor(X)
    assert x.amax.__func__ is x.amax.__func__
    assert type(x.amax(1)) is torch.Tensor


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.ReLU())
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("shift", torch.zeros(4))

    def forward(self, x: Any) -> Any:
        return (self.inner(x) * self.scale + self.shift).sum(1)


def test_module_trains_and_its_tensors_are_of_the_class() -> None:
    torch.manual_seed(0)
    net, x, y = Net(), torch.randn(8, 2), torch.ones(8)
    assert all(type(t) is torch.Tensor for t in [*net.parameters(), *net.buffers()])
    assert isinstance(net.scale, nn.Parameter) and not isinstance(x, nn.Parameter)
    optimizer = AdamW(net.parameters(), lr=0.1)
    schedule = lr_scheduler.StepLR(optimizer, 2)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        assert isinstance(torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0), torch.Tensor)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    assert type(net.scale.grad) is torch.Tensor and losses[-1] < losses[0]
    twin = copy.deepcopy(net)
    twin.load_state_dict(net.state_dict())
    assert isinstance(twin.scale, nn.Parameter) and type(twin.inner[0].weight) is torch.Tensor


def test_layers_within_layers_are_of_the_classes_of_the_namespace() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)
    linear = [m for m in encoder.modules() if isinstance(m, nn.Linear)]
    assert len(linear) >= 4
    assert all(type(p) is torch.Tensor for p in encoder.parameters())
    assert issubclass(nn.Linear, dt.nn.Linear) and issubclass(nn.BatchNorm2d, nn.Module)
    assert type(pickle.loads(pickle.dumps(nn.Linear(1, 1)))) is nn.Linear
    assert repr(nn.Linear(1, 2)) == "Linear(in_features=1, out_features=2, bias=True)"


def test_hooks_get_tensors_of_the_class() -> None:
    seen: list[type] = []
    layer, x = nn.Linear(2, 1), torch.tensor(X, requires_grad=True)
    layer.register_forward_hook(lambda m, args, result: seen.append(type(result)))
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(type(go[0])))
    x.register_hook(lambda g: seen.append(type(g)))
    result = layer(x)
    assert type(result) is torch.Tensor
    result.sum().backward()
    assert seen == [torch.Tensor] * 3


def test_function_gets_tensors_of_the_class() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            assert type(x) is type(g) is torch.Tensor
            return 2 * x * g

    w = torch.tensor([3.0], requires_grad=True)
    result = Square.apply(w)
    result.backward()
    assert type(result) is torch.Tensor and w.grad.tolist() == [6.0]


def test_loader_yields_batches_of_the_class() -> None:
    data = TensorDataset(torch.arange(6.0), torch.arange(6))
    first, second = random_split(data, [4, 2])
    batches = [*DataLoader(first, batch_size=2)]
    assert len(batches) == 2 and all(type(x) is torch.Tensor for x in batches[0])
    assert batches[0][1].dtype is torch.int64 and len(second) == 2
    values = [*DataLoader([1.5, 2.5], batch_size=2)]
    assert type(values[0]) is torch.Tensor and values[0].dtype is torch.float64


def test_packed_sequences_pass_through_an_lstm() -> None:
    packed = pack_padded_sequence(torch.ones(2, 3, 1), [3, 1], batch_first=True)
    output, (h, _) = nn.LSTM(1, 2, batch_first=True)(packed)
    padded, lengths = pad_packed_sequence(output, batch_first=True)
    assert type(padded) is type(h) is torch.Tensor and padded.shape == (2, 3, 2)
    assert lengths.tolist() == [3, 1]


def test_saved_state_is_loaded(tmp_path: Path) -> None:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "args": (1, None, "x")}
    torch.save(state, tmp_path / "state.pt")
    read = torch.load(tmp_path / "state.pt", map_location="cpu")
    assert read["args"] == (1, None, "x") and type(read["net"]["scale"]) is torch.Tensor
    assert net.load_state_dict(read["net"]).missing_keys == []
    optimizer.load_state_dict(read["optimizer"])
    memory = io.BytesIO()
    torch.save([torch.ones(2)], memory)
    memory.seek(0)
    assert torch.load(memory)[0].tolist() == [1.0, 1.0]


def test_files_of_pytorch_and_whole_modules_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.pt").write_bytes(b"PK\x03\x04")
    with pytest.raises(dt.checkpoint.CheckpointError, match="safetensors"):
        torch.load(tmp_path / "x.pt")
    with pytest.raises(dt.ArgumentTypeError, match=r"state_dict\(\)"):
        torch.save(Net(), tmp_path / "net.pt")


TEXTS = {
    "torch.tensor([1.0, 2.0])": "tensor([1., 2.])",
    "torch.tensor([1.5, 2.0])": "tensor([1.5000, 2.0000])",
    "torch.tensor([1, -20])": "tensor([  1, -20])",
    "torch.tensor(3)": "tensor(3)",
    "torch.tensor([True, False])": "tensor([ True, False])",
    "torch.zeros(0)": "tensor([])",
    "torch.zeros(2, 0)": "tensor([], size=(2, 0))",
    "torch.tensor([1e-8, 1.0])": "tensor([1.0000e-08, 1.0000e+00])",
    "torch.tensor([1.0], dtype=torch.float64)": "tensor([1.], dtype=torch.float64)",
    "torch.ones(1, requires_grad=True)": "tensor([1.], requires_grad=True)",
    "torch.tensor([float('nan'), 1.0])": "tensor([nan, 1.])",
    "torch.eye(2)": "tensor([[1., 0.],\n        [0., 1.]])",
    "torch.arange(2000)": "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])",
    "torch.tensor([1 + 2j])": "tensor([1.+2.j])",
    "torch.nn.Parameter(torch.ones(1))": (
        "Parameter containing:\ntensor([1.], requires_grad=True)"
    ),
}


@pytest.mark.parametrize("code", TEXTS)
def test_text_of_a_tensor_is_that_of_pytorch(code: str) -> None:
    assert repr(eval(code, {"torch": torch})) == TEXTS[code]
    peer = pytest.importorskip("torch")
    assert repr(eval(code, {"torch": peer})) == TEXTS[code]


def test_arrays_of_many_shapes_are_shown_as_in_pytorch() -> None:
    peer = pytest.importorskip("torch")
    values = np.random.default_rng(0).normal(size=(2, 3, 30)).astype(np.float32) * 10
    for x in (values, values[0], values[0, 0], values.astype(np.int64), values > 0, values / 1e6):
        assert repr(torch.tensor(x)) == repr(peer.tensor(x))


@pytest.mark.parametrize(
    "options",
    [
        {"precision": 2}, {"threshold": 5, "edgeitems": 1}, {"sci_mode": True},
        {"sci_mode": False}, {"linewidth": 40}, {"precision": 7, "threshold": 10},
    ],
)  # fmt: skip
def test_text_follows_the_print_options(options: dict[str, Any]) -> None:
    peer = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype(np.float32) for s in [(3,), (2000,), (5, 7, 40)]]
    arrays += [np.arange(30), np.asarray([1e-9, 1.0]), rng.normal(size=12) + 1j]
    try:
        peer.set_printoptions(**options)
        with dt.printoptions(**options):
            for x in arrays:
                assert repr(torch.tensor(x)) == repr(peer.tensor(x))
    finally:
        peer.set_printoptions(profile="default")


def test_unknown_names_raise_with_what_to_write() -> None:
    with pytest.raises(AttributeError, match=r"'dovetail\.torch' has no attribute 'igamma'; use"):
        _ = torch.igamma
    with pytest.raises(AttributeError, match=r"'dovetail\.torch\.nn' .*LazyLinear.*; use"):
        _ = nn.LazyLinear
    with pytest.raises(AttributeError, match=r"has no attribute 'argwhat'"):
        _ = torch.argwhat


def test_every_listed_name_exists() -> None:
    for name in dir(torch):
        getattr(torch, name)
    for name in ("nn", "optim", "utils.data", "distributions", "linalg", "fft", "func", "autograd"):
        space: Any = sys.modules[f"dovetail.torch.{name}"]
        assert [n for n in dir(space) if not hasattr(space, n)] == []


def test_switches_and_devices_are_accepted() -> None:
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    torch.cuda.manual_seed_all(0)
    assert torch.device("reference") == torch.zeros(1, device="reference").device
    assert isinstance(torch.device("cpu"), torch.device)
    assert torch.cuda.device_count() == 0 or torch.cuda.is_available()
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        x = torch.ones(2, 2, device="cpu")  # whatever the default device is
        assert (x @ x).dtype is torch.bfloat16
    g = torch.Generator().manual_seed(3)
    first = torch.randn(2, generator=g).tolist()
    assert torch.randn(2, generator=g.manual_seed(3)).tolist() == first


def test_results_are_not_warned_about_as_pairs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a, b = torch.tensor(X).amax(1)
        assert (a.item(), b.item()) == (5.0, 4.0)


def test_import_of_dovetail_does_not_load_the_namespace() -> None:
    code = "import dovetail, sys; dovetail.zeros(1); print('dovetail.torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
