"""`nn.utils.parametrize` and `parametrizations`: values, states and training, after PyTorch."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

nn, utils = dt.nn, dt.nn.utils
parametrize, named = utils.parametrize, utils.parametrizations
APPLY: dict[str, Callable[[Any, Any], Any]] = {
    "weight_norm": lambda lib, m: lib.weight_norm(m),
    "weight_norm of columns": lambda lib, m: lib.weight_norm(m, dim=1),
    "weight_norm of all": lambda lib, m: lib.weight_norm(m, dim=None),
    "spectral_norm": lambda lib, m: lib.spectral_norm(m),
    "spectral_norm of columns": lambda lib, m: lib.spectral_norm(m, n_power_iterations=2, dim=1),
    "cayley": lambda lib, m: lib.orthogonal(m, orthogonal_map="cayley"),
    "matrix_exp": lambda lib, m: lib.orthogonal(m, orthogonal_map="matrix_exp"),
    "householder": lambda lib, m: lib.orthogonal(m, orthogonal_map="householder"),
    "cayley alone": lambda lib, m: lib.orthogonal(
        m, orthogonal_map="cayley", use_trivialization=False
    ),
}


class Symmetric(nn.Module):
    def forward(self, x: dt.Tensor) -> dt.Tensor:
        return dt.triu(x) + dt.triu(x, 1).mT


class Doubled(nn.Module):
    def forward(self, x: dt.Tensor) -> dt.Tensor:
        return x * 2

    def right_inverse(self, x: dt.Tensor) -> dt.Tensor:
        return x / 2


class RankOne(nn.Module):
    def forward(self, x: dt.Tensor, y: dt.Tensor) -> dt.Tensor:
        return dt.outer(x, y)

    def right_inverse(self, z: dt.Tensor) -> tuple[dt.Tensor, dt.Tensor]:
        return z[:, 0], dt.ones(z.shape[1])


# --- parametrize ----------------------------------------------------------------------------------


def test_parametrized_tensor_is_computed_and_its_original_learns() -> None:
    layer = nn.Linear(3, 3)
    before, original = layer.weight.numpy().copy(), layer.weight
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert layer.weight.tolist() == layer.weight.T.tolist()
    assert layer.parametrizations.weight.original is original  # an optimizer keeps it
    assert [*layer.state_dict()] == ["bias", "parametrizations.weight.original"]
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    layer(dt.ones((2, 3))).sum().backward()
    assert original.grad is not None and not isinstance(layer.weight, nn.Parameter)
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert layer.weight is original and layer.weight.numpy().tolist() == before.tolist()
    assert type(layer) is nn.Linear and [*layer.state_dict()] == ["bias", "weight"]


def test_removal_keeps_the_computed_value() -> None:
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    value, original = layer.weight.tolist(), layer.parametrizations.weight.original
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight is original and layer.weight.tolist() == value
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.requires_grad


def test_assignment_writes_the_originals_by_the_right_inverse() -> None:
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Doubled())
    layer.weight = dt.full((2, 2), 6.0)
    assert layer.parametrizations.weight.original.tolist() == [[3.0, 3.0]] * 2
    assert layer.weight.tolist() == [[6.0, 6.0]] * 2
    parametrize.register_parametrization(layer, "weight", Symmetric())
    with pytest.raises(dt.ArgumentError, match=r"Symmetric: cannot assign .* no right_inverse"):
        layer.weight = dt.ones((2, 2))


def test_several_parametrizations_are_applied_in_order() -> None:
    layer = nn.Linear(2, 2)
    value = layer.weight.numpy().copy()
    for module in (Doubled(), Symmetric(), Doubled()):
        parametrize.register_parametrization(layer, "weight", module)
    want = 2 * (np.triu(value) + np.triu(value, 1).T)  # the first one begins at the value
    np.testing.assert_allclose(layer.weight.numpy(), want, rtol=1e-6)
    assert len(layer.parametrizations.weight) == 3
    parametrize.register_parametrization(layer, "bias", Doubled())
    assert parametrize.is_parametrized(layer, "bias") and parametrize.is_parametrized(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert not parametrize.is_parametrized(layer, "weight") and parametrize.is_parametrized(layer)


def test_parametrization_of_several_tensors_and_of_buffers() -> None:
    layer = parametrize.register_parametrization(nn.Linear(2, 3), "weight", RankOne())
    names = [name for name, _ in layer.named_parameters()]
    assert names == [
        "bias",
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
    ]
    with pytest.raises(dt.ArgumentError, match="leave_parametrized must be True"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.shape == (3, 2)
    norm = parametrize.register_parametrization(nn.BatchNorm1d(2), "running_mean", Doubled())
    assert "parametrizations.running_mean.original" in dict(norm.named_buffers())
    parametrize.remove_parametrizations(norm, "running_mean")
    assert [*dict(norm.named_buffers())] == ["running_var", "num_batches_tracked", "running_mean"]


def test_cached_computes_once_within_the_block() -> None:
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Doubled())
    with parametrize.cached():
        x = layer.weight
        with parametrize.cached():
            assert layer.weight is x
        assert layer.weight is x
    assert layer.weight is not x


def test_copies_pickles_and_states() -> None:
    layer = named.weight_norm(nn.Linear(3, 2))
    x = dt.asarray([[1.0, 2.0, 3.0]])
    want = layer(x).tolist()
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(twin) is type(layer) and twin(x).tolist() == want
        parametrize.remove_parametrizations(twin, "weight")
        assert twin.weight.tolist() == layer.weight.tolist()
    other = named.weight_norm(nn.Linear(3, 2))
    other.load_state_dict(layer.state_dict())
    assert other(x).tolist() == want
    old = {"bias": layer.bias, "weight_g": layer.parametrizations.weight.original0}
    old["weight_v"] = layer.parametrizations.weight.original1
    third = named.weight_norm(nn.Linear(3, 2))
    third.load_state_dict(old)
    assert third(x).tolist() == want


def test_jit_reads_the_originals_at_each_call() -> None:
    for apply in APPLY.values():
        layer = apply(named, nn.Linear(4, 3)).eval()
        call = dt.jit(lambda x, layer=layer: layer(x))
        x = dt.ones((2, 4))
        for _ in range(3):
            np.testing.assert_array_equal(call(x).numpy(), layer(x).numpy())
            with dt.no_grad():
                for p in layer.parameters():
                    p += 0.25


def test_jitted_training_updates_the_singular_vectors() -> None:
    twins = [named.spectral_norm(nn.Linear(4, 3)) for _ in range(2)]
    twins[1].load_state_dict(twins[0].state_dict())
    calls = [twins[0], dt.jit(lambda x: twins[1](x))]
    for _ in range(4):
        a, b = (call(dt.ones((2, 4))).tolist() for call in calls)
        np.testing.assert_allclose(a, b, rtol=1e-6)
    states = [t.state_dict()["parametrizations.weight.0._u"].tolist() for t in twins]
    np.testing.assert_allclose(*states, rtol=1e-6)


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
def test_orthogonal_weights_stay_orthogonal(shape: tuple[int, int], orthogonal_map: str) -> None:
    layer = nn.Linear(*shape[::-1], dtype=dt.float64)
    start = np.linalg.qr(layer.weight.numpy() if shape[0] >= shape[1] else layer.weight.numpy().T)[
        0
    ]
    named.orthogonal(layer, orthogonal_map=orthogonal_map)
    layer.weight = dt.asarray(start if shape[0] >= shape[1] else start.T)
    np.testing.assert_allclose(
        layer.weight.numpy().ravel(),
        (start if shape[0] >= shape[1] else start.T).ravel(),
        atol=1e-12,
    )
    with dt.no_grad():
        layer.parametrizations.weight.original.add_(dt.random.randn(shape, dtype=dt.float64))
    if orthogonal_map == "householder":  # the signs on the diagonal are not learnt
        dt.fill_diagonal(layer.parametrizations.weight.original.detach(), -1.0)
    w = layer.weight.numpy()
    square = w.T @ w if shape[0] >= shape[1] else w @ w.T
    np.testing.assert_allclose(square, np.eye(min(shape)), atol=1e-12)


def test_wrong_arguments_are_refused() -> None:
    layer = nn.Linear(3, 2)
    for call, error, text in [
        (lambda: named.weight_norm(layer, "scale"), dt.ArgumentError, "no parameter or buffer"),
        (lambda: named.spectral_norm(layer, dim=2), dt.AxisError, "dim must be an axis"),
        (lambda: named.spectral_norm(layer, n_power_iterations=0), dt.ArgumentError, "positive"),
        (lambda: named.orthogonal(layer, "bias"), dt.ShapeError, "must be a matrix"),
        (lambda: named.orthogonal(layer, orthogonal_map="qr"), dt.ArgumentError, "must be one of"),
        (
            lambda: parametrize.register_parametrization(layer, "weight", nn.Flatten(0)),
            dt.ShapeError,
            "must keep the shape",
        ),
        (
            lambda: parametrize.register_parametrization(layer, "other", Doubled()),
            dt.ArgumentError,
            "no parameter or buffer 'other'",
        ),
        (
            lambda: parametrize.remove_parametrizations(layer, "weight"),
            dt.ArgumentError,
            "must be parametrized",
        ),
    ]:
        with pytest.raises(error, match=text):
            call()
    assert [*layer.state_dict()] == ["weight", "bias"]  # nothing has changed


# --- PyTorch --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", APPLY)
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_training_agrees_with_pytorch(name: str, shape: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    theirs = APPLY[name](torch.nn.utils.parametrizations, torch.nn.Linear(*shape).double())
    ours = APPLY[name](named, nn.Linear(*shape, dtype=dt.float64))
    state = {k: dt.asarray(v.numpy()) for k, v in theirs.state_dict().items()}
    ours.load_state_dict(state)
    train_both(torch, theirs, ours, shape[0])


def train_both(torch: Any, theirs: Any, ours: Any, n: int) -> None:
    """Compare the losses of three steps, and the states after them."""
    x = np.random.default_rng(1).standard_normal((6, n))
    steps = [torch.optim.SGD(theirs.parameters(), 0.1), dt.optim.SGD(ours.parameters(), 0.1)]
    for _ in range(3):
        losses = []
        for model, step, data in zip(
            (theirs, ours), steps, (torch.from_numpy(x), dt.asarray(x)), strict=True
        ):
            step.zero_grad()
            loss = (model(data) ** 3).sum()
            loss.backward()
            step.step()
            losses.append(loss.item())
        np.testing.assert_allclose(losses[1], losses[0], rtol=1e-10)
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[key].numpy(), value.numpy(), atol=1e-10)


# --- the older functions --------------------------------------------------------------------------

OLDER: dict[str, Callable[[Any, Any], Any]] = {
    "weight_norm": lambda lib, m: lib.weight_norm(m, dim=None),
    "weight_norm of rows": lambda lib, m: lib.weight_norm(m),
    "spectral_norm": lambda lib, m: lib.spectral_norm(m, n_power_iterations=2),
}


@pytest.mark.parametrize("name", OLDER)
def test_older_norms_compute_the_weight_from_tensors_of_the_module(name: str) -> None:
    layer = OLDER[name](utils, nn.Linear(4, 3))
    assert "weight" not in layer.state_dict() and not parametrize.is_parametrized(layer)
    layer(dt.ones((2, 4))).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    layer.eval()
    want = layer(dt.ones((2, 4))).tolist()
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert twin(dt.ones((2, 4))).tolist() == want
    with pytest.raises(dt.ArgumentError, match="Linear: cannot assign to weight"):
        layer.weight = dt.zeros((3, 4))
    remove = getattr(utils, f"remove_{name.split()[0]}")
    assert remove(layer) is layer and type(layer) is nn.Linear
    assert {*layer.state_dict()} == {"bias", "weight"} and layer(dt.ones((2, 4))).tolist() == want
    with pytest.raises(dt.ArgumentError, match="must have a norm of this kind"):
        remove(layer)


@pytest.mark.parametrize("name", OLDER)
@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
def test_older_norms_train_as_in_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    theirs = OLDER[name](torch.nn.utils, torch.nn.Linear(5, 3).double())
    ours = OLDER[name](utils, nn.Linear(5, 3, dtype=dt.float64))
    ours.load_state_dict({k: dt.asarray(v.numpy()) for k, v in theirs.state_dict().items()})
    train_both(torch, theirs, ours, 5)
