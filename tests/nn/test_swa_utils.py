"""Means of parameters (SWA, EMA), SWALR and update_bn: definitions, and PyTorch's values."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.optim import swa_utils


def network(lib: Any, dtype: Any = None) -> Any:
    """Return a network with parameters and buffers of fixed values."""
    net = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.Linear(4, 2))
    set_values(lib, net, 0)
    return net if dtype is None else net.to(dtype)


def set_values(lib: Any, net: Any, seed: int) -> None:
    """Write values that depend on the seed into parameters and buffers."""
    draw = np.random.default_rng(seed)
    with lib.no_grad():
        for x in net.state_dict().values():
            values = draw.uniform(0.5, 2.0, tuple(x.shape)) if x.ndim else np.asarray(seed * 3)
            x.copy_(lib.asarray(values))


def values(net: Any) -> dict[str, np.ndarray]:
    return {n: np.asarray(x.detach().numpy()) for n, x in net.state_dict().items()}


def weighted(averaged: Any, current: Any, n: Any) -> Any:
    """Return another mean, as a user writes it for both libraries."""
    return (averaged * (n + 1) + current * 2) / (n + 3)


def write_weighted(averaged: Any, current: Any, n: Any) -> None:
    for a, c in zip(averaged, current, strict=True):
        a.copy_(weighted(a, c, n))


MEANS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "default": lambda u: {},
    "swa": lambda u: {"avg_fn": u.get_swa_avg_fn()},
    "ema": lambda u: {"avg_fn": u.get_ema_avg_fn(0.9)},
    "multi swa": lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    "multi ema": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9)},
    "function": lambda u: {"avg_fn": weighted},
    "multi function": lambda u: {"multi_avg_fn": write_weighted},
}


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("name", MEANS)
def test_means_equal_pytorch(name: str, use_buffers: bool, device: dt.Device) -> None:
    if name == "multi swa" and use_buffers:
        pytest.skip("no oracle: the other library raises for integer buffers")
    torch = pytest.importorskip("torch")
    utils = pytest.importorskip("torch.optim.swa_utils")
    found = []
    for lib, module in ((dt, swa_utils), (torch, utils)):
        net = network(lib)
        averaged = module.AveragedModel(net, **MEANS[name](module), use_buffers=use_buffers)
        for seed in range(1, 5):
            set_values(lib, net, seed)
            averaged.update_parameters(net)
        found.append(values(averaged))
    ours, theirs = found
    assert [*ours] == [*theirs]
    for key, wanted in theirs.items():
        assert ours[key].dtype == wanted.dtype
        np.testing.assert_allclose(ours[key], wanted, 1e-5, 1e-6, err_msg=key)


def test_means_equal_their_definitions(device: dt.Device) -> None:
    net = dt.nn.Linear(1, 1)
    means = {
        "swa": swa_utils.AveragedModel(net),
        "ema": swa_utils.AveragedModel(net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5)),
    }
    for value in (1.0, 3.0, 8.0):
        with dt.no_grad():
            net.weight.fill_(value)
        for averaged in means.values():
            averaged.update_parameters(net)
    assert means["swa"].module.weight.item() == 4.0
    assert means["ema"].module.weight.item() == 5.0
    assert means["swa"].n_averaged.item() == 3
    assert net.weight.item() == 8.0


def test_integer_buffers_are_averaged_and_truncated(device: dt.Device) -> None:
    net = dt.nn.BatchNorm1d(1)
    averaged = swa_utils.AveragedModel(
        net, multi_avg_fn=swa_utils.get_swa_multi_avg_fn(), use_buffers=True
    )
    for value in (4, 7):
        net.num_batches_tracked.fill_(value)
        averaged.update_parameters(net)
    assert averaged.module.num_batches_tracked.item() == 5


@pytest.mark.parametrize("name", MEANS)
def test_captured_updates_have_the_same_bits(name: str, device: dt.Device) -> None:
    found = []
    x = dt.asarray(np.random.default_rng(9).normal(size=(5, 3)).astype("f"))
    for captured in (False, True):
        net = network(dt)
        averaged = swa_utils.AveragedModel(net, **MEANS[name](swa_utils))
        optimizer = dt.optim.SGD(net.parameters(), lr=0.1)

        def step(x: Any, net: Any = net, averaged: Any = averaged, o: Any = optimizer) -> None:
            o.zero_grad()
            (net(x) ** 2).mean().backward()
            o.step()
            averaged.update_parameters(net)

        run = dt.jit(step) if captured else step
        for _ in range(5):
            run(x)
        assert not captured or run.captures <= 2  # type: ignore[attr-defined]
        found.append(values(averaged))
    for key, wanted in found[0].items():
        assert found[1][key].tobytes() == wanted.tobytes(), key
    assert found[1]["n_averaged"] == 5


def test_first_update_copies_values_exactly(device: dt.Device) -> None:
    net = dt.nn.Linear(2, 1, bias=False)
    averaged = swa_utils.AveragedModel(net)
    with dt.no_grad():
        net.weight.copy_(dt.asarray([[np.inf, 0.1]]))
        averaged.module.weight.copy_(dt.asarray([[np.nan, 1e30]]))
    averaged.update_parameters(net)
    assert averaged.module.weight.tolist() == net.weight.tolist()


def test_float32_mean_of_a_bfloat16_network_does_not_stall(device: dt.Device) -> None:
    net = dt.nn.Linear(1, 1, bias=False).to(dt.bfloat16)
    ema = swa_utils.get_ema_multi_avg_fn(0.999)
    averaged = swa_utils.AveragedModel(net, multi_avg_fn=ema).float()
    for value in (1.0, *[1.0 + 2.0**-7] * 10):
        with dt.no_grad():
            net.weight.fill_(value)
        averaged.update_parameters(net)
    weight = averaged.module.weight
    assert weight.dtype is dt.float32
    assert weight.item() == pytest.approx(1.0 + 2.0**-7 * (1 - 0.999**10), abs=1e-6)


def test_update_is_a_few_launches(device: dt.Device) -> None:
    net = dt.nn.Sequential(*[dt.nn.Linear(4, 4, bias=False) for _ in range(8)])
    averaged = swa_utils.AveragedModel(net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn())
    step = dt.jit(lambda: averaged.update_parameters(net))
    for _ in range(3):
        step()
    (_, program), *_ = step.programs
    assert program.launches == 2  # the means, and their number


def test_state_is_saved_loaded_and_copied(device: dt.Device) -> None:
    net = network(dt)
    averaged = swa_utils.AveragedModel(net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5))
    averaged.update_parameters(net)
    other = swa_utils.AveragedModel(net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5))
    other.load_state_dict(copy.deepcopy(averaged.state_dict()))
    copies = [other, copy.deepcopy(averaged), pickle.loads(pickle.dumps(averaged))]
    set_values(dt, net, 1)
    averaged.update_parameters(net)
    for x in copies:
        x.update_parameters(net)
        for key, wanted in values(averaged).items():
            assert values(x)[key].tobytes() == wanted.tobytes(), key


def test_averaged_network_is_called_and_independent(device: dt.Device) -> None:
    net = network(dt)
    averaged = swa_utils.AveragedModel(net)
    x = dt.ones((2, 3))
    net.eval()
    averaged.eval()
    before = averaged(x).tolist()
    assert before == net(x).tolist()
    set_values(dt, net, 1)
    assert averaged(x).tolist() == before


def test_wrong_arguments_of_means_raise() -> None:
    net = dt.nn.Linear(2, 2, device="reference")
    averaged = swa_utils.AveragedModel(net)
    with pytest.raises(dt.ArgumentError, match=r"expected shape \(2, 2\), got \(3, 2\)"):
        averaged.update_parameters(dt.nn.Linear(2, 3, device="reference"))
    with pytest.raises(dt.ArgumentError, match=r"expected shape \(2,\), got None"):
        averaged.update_parameters(dt.nn.Linear(2, 2, bias=False, device="reference"))
    with pytest.raises(dt.ArgumentError, match="must not both be given"):
        mean, multi = swa_utils.get_swa_avg_fn(), swa_utils.get_swa_multi_avg_fn()
        swa_utils.AveragedModel(net, avg_fn=mean, multi_avg_fn=multi)
    with pytest.raises(dt.ArgumentTypeError, match=r"model must be a dt.nn.Module"):
        swa_utils.AveragedModel([net])  # type: ignore[arg-type]
    for make in (swa_utils.get_ema_avg_fn, swa_utils.get_ema_multi_avg_fn):
        with pytest.raises(dt.ArgumentError, match=r"decay must be between 0 and 1, got 1\.5"):
            make(1.5)


# --- update_bn
# -----------------------------------------------------------------------------------------


def test_update_bn_equals_pytorch(device: dt.Device) -> None:
    torch = pytest.importorskip("torch")
    utils = pytest.importorskip("torch.optim.swa_utils")
    batches = [np.random.default_rng(i).normal(size=(n, 3)) for i, n in enumerate((4, 6, 3))]
    found = []
    for lib, module in ((dt, swa_utils), (torch, utils)):
        net = network(lib).eval()
        loader = [(lib.asarray(b.astype("f")), None) for b in batches]
        module.update_bn(loader, net)
        assert not net.training and net[1].momentum == 0.1
        found.append(values(net))
    for key, wanted in found[1].items():
        np.testing.assert_allclose(found[0][key], wanted, 1e-5, 1e-6, err_msg=key)


def test_update_bn_averages_statistics_of_batches(device: dt.Device) -> None:
    net = dt.nn.BatchNorm1d(1)
    swa_utils.update_bn([dt.asarray([[1.0], [3.0]]), dt.asarray([[4.0], [8.0]])], net, device)
    assert net.running_mean.tolist() == [4.0] and net.running_var.tolist() == [5.0]
    assert net.num_batches_tracked.item() == 2 and net.training


def test_update_bn_restores_momentums_after_an_error(device: dt.Device) -> None:
    net = dt.nn.BatchNorm1d(1, momentum=0.25).eval()
    with pytest.raises(dt.ShapeError):
        swa_utils.update_bn([dt.ones((2, 5))], net)
    assert net.momentum == 0.25 and not net.training


def test_update_bn_of_other_batches_raises() -> None:
    net = dt.nn.BatchNorm1d(1, device="reference")
    with pytest.raises(dt.ArgumentTypeError, match="a batch of loader must be a tensor, got"):
        swa_utils.update_bn([{"x": dt.ones((2, 1))}], net)


def test_update_bn_reads_nothing_without_batch_norm() -> None:
    def batches() -> Any:
        raise AssertionError
        yield

    swa_utils.update_bn(batches(), dt.nn.Linear(2, 2, device="reference"))


# --- SWALR
# -----------------------------------------------------------------------------------------

SCHEDULES: list[dict[str, Any]] = [
    {"swa_lr": 0.05},
    {"swa_lr": [0.5, 0.01], "anneal_epochs": 4},
    {"swa_lr": 0.5, "anneal_epochs": 5, "anneal_strategy": "linear"},
    {"swa_lr": 0.5, "anneal_epochs": 0},
]


def optimizer(lib: Any) -> Any:
    leaves = [lib.ones(1).requires_grad_() for _ in range(2)]
    groups = [{"params": [leaves[0]]}, {"params": [leaves[1]], "lr": 0.03}]
    return lib.optim.SGD(groups, lr=0.1)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("options", SCHEDULES, ids=["-".join(o) for o in SCHEDULES])
def test_rates_of_swalr_equal_pytorch(options: dict[str, Any], after: bool) -> None:
    torch = pytest.importorskip("torch")
    utils = pytest.importorskip("torch.optim.swa_utils")
    found = []
    for lib, module in ((dt, swa_utils), (torch, utils)):
        o = optimizer(lib)
        first = lib.optim.lr_scheduler.ExponentialLR(o, 0.9)
        schedule = module.SWALR(o, **options)
        rates = []
        for i in range(12):
            o.step()
            first.step() if after and i < 4 else schedule.step()
            rates += [g["lr"] for g in o.param_groups]
        found.append(rates)
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_swalr_moves_linearly_to_its_rate() -> None:
    o = dt.optim.SGD([dt.ones(1, device="reference").requires_grad_()], lr=1.0)
    schedule = swa_utils.SWALR(o, 0.5, anneal_epochs=2, anneal_strategy="linear")
    rates = []
    for _ in range(4):
        o.step()
        schedule.step()
        rates += schedule.get_last_lr()
    assert rates == [0.75, 0.5, 0.5, 0.5]


def test_saved_swalr_continues() -> None:
    first, second = optimizer(dt), optimizer(dt)
    begun = swa_utils.SWALR(first, 0.5, anneal_strategy="linear")
    resumed = swa_utils.SWALR(second, 0.5)
    for _ in range(3):
        first.step()
        begun.step()
    second.load_state_dict(first.state_dict())
    resumed.load_state_dict(begun.state_dict())
    for _ in range(3):
        for o, s in ((first, begun), (second, resumed)):
            o.step()
            s.step()
    assert begun.get_last_lr() == resumed.get_last_lr()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"swa_lr": 0.5, "anneal_strategy": "step"}, dt.ArgumentError, "must be 'cos' or 'linear'"),
        ({"swa_lr": 0.5, "anneal_epochs": -1}, dt.ArgumentError, "anneal_epochs"),
        ({"swa_lr": [0.5]}, dt.ArgumentError, "swa_lr must have 2 values"),
        ({"swa_lr": "fast"}, dt.ArgumentTypeError, "swa_lr must be"),
    ],
)
def test_wrong_arguments_of_swalr_raise(
    options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        swa_utils.SWALR(optimizer(dt), **options)
