"""Networks in `dt.jit`, `dt.vmap` and `dt.func`; sparse gradients of embeddings."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest

nn, F = dt.nn, dt.nn.functional


def small() -> Any:
    return nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)
    )


@pytest.mark.parametrize("how", ["closure", "module", "argument"])
def test_captured_network_follows_its_training_mode(how: str, device: dt.Device) -> None:
    net, x = small(), dt.random.normal((5, 4))
    f = {
        "closure": dt.jit(lambda x: net(x)),
        "module": dt.jit(net),
        "argument": (lambda g: lambda x: g(net, x))(dt.jit(lambda m, x: m(x))),
    }[how]
    with dt.no_grad():
        for _ in range(2):
            found = [f(x).tolist() for _ in range(3)]
            assert found[1] != found[2]  # the dropout draws anew
            net.eval()
            found = [f(x).tolist() for _ in range(3)]
            assert found[0] == found[1] == net(x).tolist()
            net.train()
    assert net[1].num_batches_tracked.item() == 6
    if how != "argument":
        assert f.captures == 2


def test_captured_steps_have_the_bits_of_plain_ones(device: dt.Device) -> None:
    def run(captured: bool) -> list[float]:
        dt.random.manual_seed(2)
        net = small()
        x, y = dt.random.normal((6, 4)), dt.random.integers(0, 3, 6)

        def step(x: dt.Tensor, y: dt.Tensor) -> dt.Tensor:
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            with dt.no_grad():
                for p in net.parameters():
                    p.sub_(p.grad * 0.1)
            net.zero_grad()
            return loss.detach()

        f: Any = dt.jit(step) if captured else step
        losses = [f(x, y).item() for _ in range(4)]
        if captured:
            assert f.captures == 1
        return losses + net[0].weight.ravel().tolist() + net[1].running_var.tolist()

    assert run(True) == run(False)


def test_functional_call_differentiates_by_parameters(device: dt.Device) -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    params = {n: p.detach() for n, p in net.named_parameters()}
    xs = dt.random.normal((5, 4))

    def loss(p: Any, x: dt.Tensor) -> dt.Tensor:
        return (nn.utils.functional_call(net, p, (x,)) ** 2).sum()

    each = dt.vmap(dt.func.grad(loss), in_axes=(None, 0))(params, xs)
    for i in range(5):
        net.zero_grad()
        (net(xs[i]) ** 2).sum().backward()
        for name, p in net.named_parameters():
            np.testing.assert_allclose(each[name][i].numpy(), p.grad.numpy(), rtol=1e-4, atol=1e-6)
    assert net[0].weight.is_leaf and net[0].weight is dict(net.named_parameters())["0.weight"]


def test_stacked_networks_run_in_vmap(device: dt.Device) -> None:
    nets = [small().eval() for _ in range(3)]
    params, buffers = nn.utils.stack_module_state(nets)
    x = dt.random.normal((5, 4))
    both = dt.vmap(
        lambda p, b: nn.utils.functional_call(nets[0], (p, b), (x,)), in_axes=(0, 0)
    )(params, buffers)  # fmt: skip
    for i, net in enumerate(nets):
        np.testing.assert_allclose(both[i].detach().numpy(), net(x).detach().numpy(), rtol=1e-5)
    with pytest.raises(dt.ArgumentError, match="the same class"):
        nn.utils.stack_module_state([nn.ReLU(), nn.Tanh()])


def test_stack_module_state_of_modules_with_different_names_raises(device: dt.Device) -> None:
    layers = [nn.Linear(2, 3), nn.Linear(2, 3, bias=False)]
    norms = [nn.BatchNorm1d(3), nn.BatchNorm1d(3, track_running_stats=False)]
    for models, name in ((layers, "bias"), (norms, "num_batches_tracked, running_mean, ")):
        for pair in (models, models[::-1]):
            with pytest.raises(
                dt.ArgumentError, match=f"only one of module 0 and module 1 has {name}"
            ):
                nn.utils.stack_module_state(pair)


def test_functional_call_replaces_tensors(device: dt.Device) -> None:
    layer = nn.Linear(2, 1)
    layer.tied = layer.weight
    ones = dt.ones((1, 2))
    call = nn.utils.functional_call
    assert call(layer, {"weight": ones, "bias": dt.zeros(1)}, dt.ones(2)).item() == 2.0
    assert call(layer, [{"bias": dt.zeros(1)}, {"weight": ones}], (), {"input": dt.ones(2)}) == 2.0
    with pytest.raises(dt.ArgumentError, match="has no parameter or buffer no, none"):
        call(layer, {"none": ones, "no": ones}, dt.ones(2))
    with pytest.raises(dt.ArgumentError, match="needs values of bias, weight"):
        call(layer, {"tied": ones}, dt.ones(2), strict=True)
    with pytest.raises(dt.ShapeError):
        call(layer, {"weight": dt.ones((1, 3))}, dt.ones(2))
    assert layer.weight.shape == (1, 2) and isinstance(layer.weight, nn.Parameter)


def test_parameters_convert_to_a_vector_and_back(device: dt.Device) -> None:
    a, b = nn.Linear(2, 3), nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(a.parameters())
    nn.utils.vector_to_parameters(vector, b.parameters())
    assert b.weight.tolist() == a.weight.tolist() and b.bias.tolist() == a.bias.tolist()
    assert b.weight.requires_grad and b.weight.is_leaf
    with pytest.raises(dt.ShapeError, match=r"\(9,\).*\(8,\)"):
        nn.utils.vector_to_parameters(vector[:8], b.parameters())
    with pytest.raises(dt.ArgumentError, match="at least one parameter"):
        nn.utils.parameters_to_vector([])


# --- embeddings
# -------------------------------------------------------------------------------------


def test_sparse_gradient_has_the_rows_that_were_read(device: dt.Device) -> None:
    table, at = nn.Embedding(1000, 3, sparse=True), dt.asarray([[5, 7], [5, 999]])
    table(at).sum().backward()
    g = table.weight.grad
    assert g.layout is dt.sparse_coo and g.nnz == 4 and g.shape == (1000, 3)
    assert g.indices().tolist() == [[5, 7, 5, 999]] and g.values().tolist() == [[1.0] * 3] * 4
    (table(at) * 2).sum().backward()  # accumulated: the entries of both
    assert g.nnz == 4 and table.weight.grad.nnz == 8
    assert table.weight.grad.to_dense()[5].tolist() == [6.0] * 3
    (table.weight * 0.5).sum().backward()  # with a strided one: strided
    assert type(table.weight.grad) is dt.Tensor and table.weight.grad[7, 0].item() == 3.5
    table.zero_grad()
    (table(at).sum() + table(dt.asarray([1])).sum()).backward()
    assert table.weight.grad.nnz == 5
    table.zero_grad()
    ((table.weight**2).sum() + table(at).sum()).backward()
    assert type(table.weight.grad) is dt.Tensor
    found = dt.grad(table(at).sum(), table.weight)
    assert found.layout is dt.sparse_coo and found.nnz == 4


def test_sparse_gradient_of_a_non_leaf_is_dense(device: dt.Device) -> None:
    w = dt.ones((4, 2)).requires_grad_()
    F.embedding(dt.asarray([1, 1]), w * 2, sparse=True).sum().backward()
    assert w.grad.tolist() == [[0, 0], [4, 4], [0, 0], [0, 0]]


def test_grad_accepts_a_matching_sparse_tensor(device: dt.Device) -> None:
    w = dt.ones((4, 2)).requires_grad_()
    w.grad = dt.sparse_coo_tensor([[1]], [[1.0, 2.0]], (4, 2))
    assert w.grad.nnz == 1
    with pytest.raises(dt.ShapeError, match=r"float32\[5, 2\]"):
        w.grad = dt.sparse_coo_tensor([[1]], [[1.0, 2.0]], (5, 2))
    seen: list[Any] = []
    w.register_hook(lambda g: seen.append(g.layout))
    F.embedding(dt.asarray([0]), w, sparse=True).sum().backward()
    assert seen == [dt.sparse_coo] and w.grad.nnz == 2


def test_captured_steps_with_sparse_gradients(device: dt.Device) -> None:
    def run(captured: bool) -> list[float]:
        dt.random.manual_seed(4)
        table = nn.Embedding(50, 3, sparse=True)

        def step(at: dt.Tensor) -> dt.Tensor:
            loss = (table(at) ** 2).sum()
            loss.backward()
            with dt.no_grad():
                g = table.weight.grad
                table.weight.index_add_(0, g.indices()[0], g.values() * -0.1)
            table.zero_grad()
            return loss.detach()

        f: Any = dt.jit(step) if captured else step
        found = [f(dt.asarray(at)).item() for at in ([1, 2, 1], [4, 5, 6], [1, 4, 4])]
        if captured:
            assert f.captures == 1
        return found + table.weight.ravel().tolist()

    assert run(True) == run(False)


def test_function_that_sets_a_sparse_gradient_runs_uncaptured(device: dt.Device) -> None:
    table = nn.Embedding(9, 2, sparse=True)

    @dt.jit
    def back(at: dt.Tensor) -> None:
        table(at).sum().backward()

    for _ in range(3):
        back(dt.asarray([1, 2]))
    assert table.weight.grad.nnz == 6 and back.captures == 0


def test_dropout_in_a_checkpoint_repeats_its_mask(device: dt.Device) -> None:
    x = dt.ones(50).requires_grad_()
    dt.random.manual_seed(3)
    y = dt.autograd.checkpoint(lambda x: F.dropout(x * 2, 0.5), x)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()  # the same elements were dropped


# --- kernels --------------------------------------------------------------------------------------


LAUNCHES = {
    "gelu": (lambda x, t: F.gelu(x), 1),
    "mish": (lambda x, t: F.mish(x), 1),
    "layer_norm": (lambda x, t: F.layer_norm(x, (64,)), 1),
    "rms_norm": (lambda x, t: F.rms_norm(x, (64,)), 1),
    "dropout": (lambda x, t: F.dropout(x * 2), 1),
    "cross_entropy": (lambda x, t: F.cross_entropy(x, t), 3),
    "mse_loss": (lambda x, t: F.mse_loss(x, x * 2), 1),
    "softmax": (lambda x, t: F.softmax(x, 1), 1),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_functions_launch_few_kernels(name: str) -> None:
    f, most = LAUNCHES[name]
    x, t = dt.zeros((32, 64), device="reference"), dt.zeros(32, dtype=dt.int64, device="reference")
    dt.evaluate(x, t)
    said = str(dt.explain(f(x, t))).partition(" launch")[0]
    assert int(said) <= most
