"""Optimizers against PyTorch: fifty steps, with their options."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from installed import INSTALLED
from optim_cases import CASES, arrays, names, parameters, stepper, values

torch = pytest.importorskip("torch")


def theirs(name: str, options: dict[str, Any], dtype: str, steps: int) -> tuple[Any, list[Any]]:
    params = [torch.tensor(a, dtype=getattr(torch, dtype), requires_grad=True) for a in values()]
    optimizer = getattr(torch.optim, name)(params, **options)
    step = stepper(optimizer, params, torch)
    for _ in range(steps):
        step()
    return optimizer, params


def ours(name: str, options: dict[str, Any], dtype: dt.DType, steps: int) -> tuple[Any, list[Any]]:
    params = parameters(dtype)
    optimizer = getattr(dt.optim, name)(params, **options)
    step = stepper(optimizer, params)
    for _ in range(steps):
        step()
    return optimizer, params


@pytest.mark.parametrize(("name", "options"), CASES, ids=names(CASES))
def test_fifty_steps_equal_pytorch(name: str, options: dict[str, Any], device: dt.Device) -> None:
    steps = 10 if device.type == "reference" else 50  # fewer on the interpreter
    _, found = ours(name, options, dt.float64, steps)
    _, wanted = theirs(name, options, "float64", steps)
    # PyTorch keeps NAdam's product of momentums in float32
    tolerance = 1e-9 if name == "NAdam" else 1e-10
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), tolerance, tolerance)


SOME = [case for case in CASES if len(case[1]) != 1]


@pytest.mark.skipif("cpu" not in INSTALLED, reason="fifty steps take an interpreter too long")
@pytest.mark.parametrize(("name", "options"), SOME, ids=names(SOME))
def test_fifty_steps_in_float32_are_close_to_pytorch(name: str, options: dict[str, Any]) -> None:
    _, found = ours(name, options, dt.float32, 50)
    _, wanted = theirs(name, options, "float32", 50)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 2e-4, 2e-5)


ONE_OF_EACH = [next(c for c in CASES if c[0] == n) for n in dict.fromkeys(n for n, _ in CASES)]


@pytest.mark.parametrize(("name", "options"), ONE_OF_EACH, ids=names(ONE_OF_EACH))
def test_states_are_exchanged_with_pytorch(name: str, options: dict[str, Any]) -> None:
    """Three steps in one library, the state moved to the other, three more: equal to six steps
    of one.
    """
    mine, params = ours(name, options, dt.float64, 3)
    other, wanted = theirs(name, options, "float64", 3)
    kept, state = mine.state_dict(), other.state_dict()
    assert kept["state"].keys() == state["state"].keys()
    for i in kept["state"]:
        assert kept["state"][i].keys() == state["state"][i].keys()
    assert kept["param_groups"][0].keys() == state["param_groups"][0].keys()
    moved = {
        i: {k: None if x is None else dt.asarray(x.numpy()) for k, x in s.items()}
        for i, s in state["state"].items()
    }
    if name == "SGD" and not options.get("momentum"):
        moved = {}
    mine.load_state_dict({"state": moved, "param_groups": state["param_groups"]})
    other.load_state_dict(
        {
            "state": {
                i: {k: torch.tensor(np.asarray(x)) for k, x in s.items()}
                for i, s in kept["state"].items()
            },
            "param_groups": kept["param_groups"],
        }
    )
    for _ in range(3):
        stepper(mine, params)()
        stepper(other, wanted, torch)()
    for a, b in zip(arrays(params), arrays(wanted), strict=True):
        np.testing.assert_allclose(a, b, 1e-8, 1e-8)


def rosenbrock(x: Any) -> Any:
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()


@pytest.mark.parametrize(
    "options",
    [
        {"line_search_fn": "strong_wolfe"},
        {"lr": 1e-3, "max_iter": 5},
        {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 7},
    ],
    ids=["strong_wolfe", "steps", "short"],
)
def test_lbfgs_equals_pytorch(options: dict[str, Any], device: dt.Device) -> None:
    begin = np.random.default_rng(1).normal(size=6)
    x, y = dt.asarray(begin).requires_grad_(), torch.tensor(begin, requires_grad=True)
    mine, other = dt.optim.LBFGS([x], **options), torch.optim.LBFGS([y], **options)

    def closure(optimizer: Any, at: Any) -> Any:
        optimizer.zero_grad()
        found = rosenbrock(at)
        found.backward()
        return found

    for _ in range(4):
        a = float(mine.step(lambda: closure(mine, x)).detach())
        b = float(other.step(lambda: closure(other, y)).detach())
        assert a == pytest.approx(b, rel=1e-6, abs=1e-9)
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), 1e-7, 1e-9)
    assert mine.state[x]["func_evals"] == other.state[y]["func_evals"]


@pytest.mark.filterwarnings("ignore:Sparse invariant")  # PyTorch's
@pytest.mark.parametrize("name", ["SGD", "Adagrad", "SparseAdam"])
def test_sparse_steps_equal_pytorch(name: str, device: dt.Device) -> None:
    begin = np.random.default_rng(2).normal(size=(8, 3))
    x, y = dt.asarray(begin).requires_grad_(), torch.tensor(begin, requires_grad=True)
    mine, other = getattr(dt.optim, name)([x], lr=0.1), getattr(torch.optim, name)([y], lr=0.1)
    for seed in range(10):
        draw = np.random.default_rng(seed)
        at, values = draw.integers(0, 8, (1, 5)), draw.normal(size=(5, 3))
        x.grad = dt.sparse_coo_tensor(dt.asarray(at), dt.asarray(values), (8, 3))
        y.grad = torch.sparse_coo_tensor(at, values, (8, 3), check_invariants=True)
        mine.step()
        other.step()
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), 1e-12, 1e-12)
