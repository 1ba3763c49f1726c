"""Layers against PyTorch: parameters, repr, names and shapes in states, results."""

from __future__ import annotations

import inspect
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from function_cases import normal

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

nn, THEIRS = dt.nn, torch.nn
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "Bilinear": (2, 3, 4), "Embedding": (5, 3), "EmbeddingBag": (5, 3), "GroupNorm": (2, 4),
    "LayerNorm": ((3,),), "Linear": (2, 3), "LocalResponseNorm": (2,), "RMSNorm": (3,),
    "Threshold": (1.0, 2.0), "Unflatten": (1, (2, 3)),
    **{f"{kind}Norm{n}d": (4,) for kind in ("Batch", "Instance") for n in (1, 2, 3)},
}  # fmt: skip
ROOMS = (
    "activations", "containers", "dropout", "embedding", "linear", "losses", "normalization",
    "shapes",
)  # fmt: skip
LAYERS = [
    name
    for room in ROOMS
    for name in __import__(f"dovetail.nn.modules.{room}", fromlist=["_"]).__all__
]
UNUSUAL: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("ReLU", (True,), {}), ("ELU", (2.0, True), {}), ("RReLU", (0.1, 0.2, True), {}),
    ("ReLU6", (True,), {}), ("Hardtanh", (-2.0, 2.0, True), {}), ("Threshold", (1, 2, True), {}),
    ("LeakyReLU", (0.3, True), {}), ("CELU", (2.0,), {}), ("SELU", (True,), {}),
    ("Softplus", (2.0, 3.0), {}), ("GELU", ("tanh",), {}), ("PReLU", (4,), {}),
    ("Linear", (2, 3, False), {}), ("LayerNorm", ((2, 3),), {"bias": False}),
    ("LayerNorm", (3,), {"elementwise_affine": False}), ("RMSNorm", ((2, 3), 1e-3, False), {}),
    ("GroupNorm", (2, 4), {"affine": False}), ("GroupNorm", (2, 4), {"bias": False}),
    ("BatchNorm1d", (4,), {"momentum": None, "affine": False}),
    ("BatchNorm2d", (4,), {"track_running_stats": False, "bias": False}),
    ("InstanceNorm1d", (4,), {"affine": True, "track_running_stats": True}),
    ("Embedding", (5, 3), {"padding_idx": -1, "max_norm": 2.0, "norm_type": 1.0}),
    ("Embedding", (5, 3), {"scale_grad_by_freq": True, "sparse": True}),
    ("EmbeddingBag", (5, 3), {"mode": "sum", "padding_idx": 1}),
    ("Dropout", (0.3, True), {}), ("Flatten", (0, 1), {}), ("Bilinear", (1, 2, 3, False), {}),
]  # fmt: skip
EVERY = [(name, ARGUMENTS.get(name, ()), {}) for name in LAYERS] + UNUSUAL


@pytest.mark.parametrize(("name", "args", "options"), EVERY)
def test_reprs_and_states_equal_pytorch(name: str, args: Any, options: Any) -> None:
    mine = getattr(nn, name)(*args, **options)
    want = getattr(THEIRS, name)(*args, **options)
    if not name.startswith("Parameter"):
        assert repr(mine) == repr(want)
    shapes = {k: tuple(v.shape) for k, v in want.state_dict().items()}
    assert {k: v.shape for k, v in mine.state_dict().items()} == shapes
    dtypes = {k: str(v.dtype).removeprefix("torch.") for k, v in want.state_dict().items()}
    assert {k: v.dtype.name for k, v in mine.state_dict().items()} == dtypes
    learnt = {k: p.requires_grad for k, p in want.named_parameters()}
    assert {k: p.requires_grad for k, p in mine.named_parameters()} == learnt


@pytest.mark.parametrize("name", LAYERS)
def test_parameters_equal_pytorch(name: str) -> None:
    want = inspect.signature(getattr(THEIRS, name).__init__).parameters
    mine = inspect.signature(getattr(nn, name).__init__).parameters
    if "args" in want or "args" in mine:
        return
    assert [*mine] == [*want]
    assert {k: p.default for k, p in mine.items()} == {k: p.default for k, p in want.items()}


def test_nested_reprs_equal_pytorch() -> None:
    def made(of: Any) -> Any:
        relu = [of.ReLU(), of.ReLU(), of.Linear(2, 2), of.ReLU()]
        inner = of.ModuleDict({"a": of.Sequential(*relu), "b": of.ModuleList(relu)})
        return of.Sequential(inner, of.ModuleList([]))

    assert repr(made(nn)) == repr(made(THEIRS))


RUNS: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("Linear", (3, 2), {}, (4, 3)), ("LayerNorm", ((2, 3),), {}, (4, 2, 3)),
    ("RMSNorm", (3,), {}, (4, 3)), ("GroupNorm", (2, 4), {}, (3, 4, 5)),
    ("BatchNorm1d", (3,), {}, (4, 3)), ("BatchNorm1d", (3,), {"momentum": None}, (4, 3, 5)),
    ("BatchNorm2d", (3,), {"affine": False}, (4, 3, 2, 2)),
    ("BatchNorm3d", (3,), {"track_running_stats": False}, (2, 3, 2, 2, 2)),
    ("InstanceNorm1d", (3,), {"affine": True}, (3, 5)),
    ("InstanceNorm2d", (3,), {"track_running_stats": True}, (2, 3, 4, 2)),
    ("InstanceNorm3d", (3,), {}, (2, 3, 2, 2, 2)), ("LocalResponseNorm", (2,), {}, (2, 3, 4)),
    ("PReLU", (3,), {}, (2, 3)), ("Softmax2d", (), {}, (2, 3, 2, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "options", "shape"), RUNS)
def test_layers_in_training_and_evaluation_equal_pytorch(
    name: str, args: Any, options: Any, shape: tuple[int, ...]
) -> None:
    mine = getattr(nn, name)(*args, **options)
    want = getattr(THEIRS, name)(*args, **options)
    with torch.no_grad():
        for p in want.parameters():
            p.copy_(torch.from_numpy(normal(*p.shape)))
    mine.load_state_dict({k: v.numpy() for k, v in want.state_dict().items()})
    for training in (True, True, False):
        mine.train(training), want.train(training)
        x = normal(*shape).astype("f4")
        y, z = mine(dt.asarray(x)), want(torch.from_numpy(x))
        np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-4, atol=1e-5)
    for k, v in want.state_dict().items():
        np.testing.assert_allclose(mine.state_dict()[k].numpy(), v.numpy(), rtol=1e-5, atol=1e-6)


LOSSES = [n for n in LAYERS if n.endswith("Loss")]


@pytest.mark.parametrize("name", LOSSES)
def test_loss_layers_equal_pytorch(name: str) -> None:
    rng = np.random.default_rng(2)
    x, y, z = (rng.random((4, 3)) * 0.8 + 0.1 for _ in range(3))
    given: list[Any] = [x, y]
    if name in ("CrossEntropyLoss", "NLLLoss", "MultiMarginLoss"):
        given = [x, np.array([0, 2, 1, 1])]
    elif name == "MultiLabelMarginLoss":
        given = [x, np.array([[0, 1, -1]] * 4)]
    elif name in ("MarginRankingLoss", "GaussianNLLLoss") or name.startswith("Triplet"):
        given = [x, y, z]
    elif name == "CosineEmbeddingLoss":
        given = [x, y, np.array([1, -1, 1, -1])]
    options = {"reduction": "batchmean"} if name == "KLDivLoss" else {}
    mine = getattr(nn, name)(**options)(*[dt.asarray(v) for v in given])
    want = getattr(THEIRS, name)(**options)(*[torch.from_numpy(v) for v in given])
    assert mine.item() == pytest.approx(want.item(), rel=1e-6)


def test_legacy_reduction_arguments_are_accepted() -> None:
    x, y = dt.asarray([1.0, 3.0]), dt.asarray([0.0, 0.0])
    assert nn.L1Loss(size_average=False)(x, y).item() == 4.0
    assert nn.L1Loss(reduce=False)(x, y).tolist() == [1.0, 3.0]
    assert nn.functional.mse_loss(x, y, size_average=True).item() == 5.0


def test_embedding_from_pretrained_weights() -> None:
    weight = dt.asarray(normal(4, 2))
    layer = nn.Embedding.from_pretrained(weight, padding_idx=1)
    assert not layer.weight.requires_grad and layer.weight.tolist() == weight.tolist()
    assert nn.Embedding.from_pretrained(weight, freeze=False).weight.requires_grad
    bag = nn.EmbeddingBag.from_pretrained(weight, mode="max")
    assert not bag.weight.requires_grad
    want = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(weight.numpy()), mode="max")
    at = np.array([[0, 1], [2, 2]])
    got = bag(dt.asarray(at)).numpy()
    np.testing.assert_allclose(got, want(torch.from_numpy(at)).numpy(), rtol=1e-6)
    assert nn.Embedding(5, 2, padding_idx=2).weight[2].tolist() == [0.0, 0.0]
