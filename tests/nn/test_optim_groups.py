"""Parameter groups, states, hooks and closures of optimizers, and errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import dovetail as dt
import pytest
from optim_cases import CASES, arrays, names, parameters, stepper


def one(n: int = 2, dtype: dt.DType = dt.float32) -> dt.Tensor:
    return dt.ones(n, dtype=dtype).requires_grad_()


def test_groups_have_their_own_options(device: dt.Device) -> None:
    a, b, c = one(), one(), one()
    optimizer = dt.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.25)
    optimizer.add_param_group({"params": c, "lr": 1.0, "momentum": 0.5})
    (a.sum() + b.sum() + c.sum()).backward()
    optimizer.step()
    assert [x.tolist()[0] for x in (a, b, c)] == [0.75, 0.5, 0.0]
    assert [g["momentum"] for g in optimizer.param_groups] == [0, 0, 0.5]


def test_parameter_without_a_gradient_is_unchanged(device: dt.Device) -> None:
    a, b = one(), one()
    optimizer = dt.optim.Adam([a, b], lr=0.5)
    a.sum().backward()
    optimizer.step()
    assert b.tolist() == [1, 1] and b not in optimizer.state
    optimizer.zero_grad()
    (a.sum() + b.sum()).backward()
    optimizer.step()  # their first and their second step together
    assert (optimizer.state[a]["step"], optimizer.state[b]["step"]) == (2, 1)
    assert abs(b.tolist()[0] - 0.5) < 1e-6


def test_parameter_names_are_kept_in_the_state(device: dt.Device) -> None:
    optimizer = dt.optim.SGD([("w", one()), ("b", one())], lr=0.1)
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["w", "b"]


def test_zero_grad_clears_or_zeroes(device: dt.Device) -> None:
    a = one()
    optimizer = dt.optim.SGD([a], lr=0.1)
    a.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert a.grad is not None and a.grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert a.grad is None


def test_closure_runs_with_gradients_enabled(device: dt.Device) -> None:
    a = one()
    optimizer = dt.optim.SGD([a], lr=0.5)

    def closure() -> dt.Tensor:
        optimizer.zero_grad()
        loss = (a * a).sum()
        loss.backward()
        return loss

    with dt.no_grad():
        assert float(optimizer.step(closure).detach()) == 2
    assert a.tolist() == [0, 0]


def test_step_hooks_run_before_and_after(device: dt.Device) -> None:
    a, seen = one(), list[str]()
    optimizer = dt.optim.SGD([a], lr=0.5)
    before = optimizer.register_step_pre_hook(lambda o, args, named: seen.append("before"))
    optimizer.register_step_post_hook(lambda o, args, named: seen.append("after"))
    optimizer.step()
    before.remove()
    optimizer.step()
    assert seen == ["before", "after", "after"]


def test_copies_and_pickles_continue(device: dt.Device) -> None:
    params = parameters()
    optimizer = dt.optim.Adam(params, lr=0.1)
    stepper(optimizer, params)()
    for made in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        others = made.param_groups[0]["params"]
        assert {id(p) for p in made.state} <= {id(p) for p in others} | {0}
        again = copy.deepcopy(optimizer)
        stepper(made, others)()
        stepper(again, again.param_groups[0]["params"])()
        for a, b in zip(arrays(others), arrays(again.param_groups[0]["params"]), strict=True):
            assert a.tobytes() == b.tobytes()


def test_loaded_state_is_cast_to_the_dtype_of_parameters(device: dt.Device) -> None:
    params = parameters()
    optimizer = dt.optim.Adam(params, lr=0.1)
    stepper(optimizer, params)()
    other = dt.optim.Adam(parameters(dt.float32))
    other.load_state_dict(optimizer.state_dict())
    p = other.param_groups[0]["params"][0]
    assert other.state[p]["exp_avg"].dtype is dt.float32
    assert other.state[p]["step"] == 1 and other.param_groups[0]["lr"] == 0.1


def test_step_writes_through_views_of_parameters(device: dt.Device) -> None:
    """Parameters over one memory, and one whose strides are not row-major."""
    flat = dt.arange(6, dtype=dt.float32)
    a, b = flat[:3].detach(), flat[3:].detach()
    across = dt.ones((3, 2)).T.detach()
    for p in (a, b, across):
        p.requires_grad_()
        p.grad = dt.ones_like(p)
    optimizer = dt.optim.SGD([a, b, across], lr=1.0)
    for _ in range(2):
        optimizer.step()
    assert flat.tolist() == [-2, -1, 0, 1, 2, 3]
    assert across.tolist() == [[-1, -1, -1]] * 2


def test_pending_use_of_a_parameter_reads_the_old_value(device: dt.Device) -> None:
    a = one()
    before = a.detach() * 3
    a.grad = dt.ones(2)
    dt.optim.SGD([a], lr=1.0).step()
    assert before.tolist() == [3, 3] and a.tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16])
def test_half_precision_parameters_are_updated(dtype: dt.DType, device: dt.Device) -> None:
    a = one(3, dtype)
    optimizer = dt.optim.Adam([a], lr=0.5, eps=1e-3)
    a.sum().backward()
    optimizer.step()
    assert a.dtype is dtype and abs(float(a[0].detach()) - 0.5) < 0.01


# --- errors
# -----------------------------------------------------------------------------------------


def leaf() -> dt.Tensor:
    return dt.ones(2, device="reference").requires_grad_()


@pytest.mark.parametrize(
    ("params", "error", "said"),
    [
        ([], dt.ArgumentError, "at least one parameter"),
        (iter(()), dt.ArgumentError, "at least one parameter"),
        ([{"params": []}], dt.ArgumentError, "at least one parameter"),
        (leaf(), dt.ArgumentTypeError, "got a tensor"),
        (3, dt.ArgumentTypeError, "params must be .*, got int"),
        ([3], dt.ArgumentTypeError, "parameter 0 must be a tensor, got int"),
        ([{"lr": 1}], dt.ArgumentTypeError, "a dict with 'params'"),
        ([{"params": {leaf()}}], dt.ArgumentTypeError, "must be ordered"),
        ([leaf() * 2], dt.ArgumentError, "result of a computation"),
        ([dt.ones(2, dtype=dt.int32, device="reference")], dt.DTypeError, "a real float dtype"),
        ([leaf()] * 2 + [leaf()], None, ""),
        ([{"params": [leaf()], "momentun": 0.9}], dt.ArgumentError, "did you mean 'momentum'"),
    ],
)
def test_wrong_parameters_raise(params: Any, error: Any, said: str) -> None:
    if error is None:
        p = leaf()
        with pytest.raises(dt.ArgumentError, match="occur twice"):
            dt.optim.SGD([p, p])
        with pytest.raises(dt.ArgumentError, match="more than one group"):
            dt.optim.SGD([{"params": [p]}, {"params": [leaf(), p]}])
        return
    with pytest.raises(error, match=said) as caught:
        dt.optim.SGD(params)
    assert "optim.SGD" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("SGD", {"lr": -1.0}, "lr must be at least 0, got -1.0"),
        ("SGD", {"lr": float("nan")}, "lr must be at least 0, got nan"),
        ("SGD", {"lr": "fast"}, "lr must be a number, got"),
        ("SGD", {"momentum": -0.1}, "momentum"),
        ("SGD", {"weight_decay": -0.1}, "weight_decay"),
        ("SGD", {"nesterov": True}, "nesterov=True needs momentum"),
        ("SGD", {"nesterov": True, "momentum": 0.9, "dampening": 0.1}, "dampening=0"),
        ("Adam", {"lr": -1.0}, "lr must be at least 0, got -1.0"),
        ("Adam", {"betas": (1.0, 0.9)}, r"betas\[0\] must be .*, got 1.0"),
        ("Adam", {"betas": (0.9, -0.9)}, r"betas\[1\] must be .*, got -0.9"),
        ("Adam", {"betas": 0.9}, "two numbers"),
        ("AdamW", {"eps": -1e-8}, "eps"),
        ("NAdam", {"momentum_decay": -1}, "momentum_decay"),
        ("Adagrad", {"lr_decay": -1}, "lr_decay"),
        ("Adagrad", {"initial_accumulator_value": -1}, "initial_accumulator_value"),
        ("RMSprop", {"alpha": -0.5}, "alpha"),
        ("Adadelta", {"rho": 1.5}, "rho must be between 0 and 1, got 1.5"),
        ("LBFGS", {"line_search_fn": "golden"}, "strong_wolfe"),
        ("LBFGS", {"max_iter": 0}, "max_iter"),
    ],
)
def test_options_out_of_range_raise(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(dt.ArgumentError, match=said) as caught:
        getattr(dt.optim, name)([leaf()], **options)
    assert f"optim.{name}" in str(caught.value)
    optimizer = getattr(dt.optim, name)([leaf()])
    if name != "LBFGS":  # options of a group are checked too
        with pytest.raises(dt.ArgumentError, match=said):
            optimizer.add_param_group({"params": [leaf()], **options})


def state_values(optimizer: Any) -> list[Any]:
    state = optimizer.state_dict()
    tensors = [x.tolist() for s in state["state"].values() for x in s.values()]
    return [tensors, state["param_groups"]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: s.pop("param_groups"), "expected the state of an optimizer"),
        (lambda s: s["param_groups"].append(s["param_groups"][0]), "groups of"),
        (lambda s: s["param_groups"][0]["params"].pop(), "groups of"),
        (lambda s: s["state"][1].pop("exp_avg"), "parameter 1 has no exp_avg"),
        (lambda s: s["state"][1].update(exp_avg=dt.ones(9)), r"exp_avg of parameter 1 .*\(9,\)"),
        (lambda s: s["param_groups"][0].update(lr=-1), "lr must be at least 0, got -1"),
    ],
)
def test_mismatched_state_raises_and_loads_nothing(
    change: Any, said: str, device: dt.Device
) -> None:
    params = parameters()
    optimizer = dt.optim.Adam(params, lr=0.1)
    stepper(optimizer, params)()
    before = state_values(optimizer)
    state = copy.deepcopy(optimizer.state_dict())
    change(state)
    with pytest.raises(dt.ArgumentError, match=said):
        optimizer.load_state_dict(state)
    assert state_values(optimizer) == before  # nothing has been loaded


def test_sparse_gradients_of_dense_optimizers_raise(device: dt.Device) -> None:
    p = one(4)
    p.grad = dt.sparse_coo_tensor(dt.asarray([[1]]), dt.asarray([1.0]), (4,))
    for optimizer, said in (
        (dt.optim.Adam([p]), "to_dense"),
        (dt.optim.SGD([p], momentum=0.9), "to_dense"),
        (dt.optim.Adagrad([p], weight_decay=0.1), "weight_decay"),
    ):
        with pytest.raises(dt.LayoutError, match=said):
            optimizer.step()


def test_sparse_gradient_must_match_its_parameter(device: dt.Device) -> None:
    p = one(4)
    at, values = dt.asarray([[1]]), dt.asarray([1.0])
    with pytest.raises(dt.ShapeError, match="grad: the new gradient"):
        p.grad = dt.sparse_coo_tensor(at, values, (5,))
    with pytest.raises(dt.DTypeError, match="grad: the new gradient"):
        p.grad = dt.sparse_coo_tensor(at, values.astype(dt.float64), (4,))
    assert p.grad is None


def test_lbfgs_requires_a_closure_and_one_group() -> None:
    optimizer = dt.optim.LBFGS([leaf()])
    with pytest.raises(dt.ArgumentError, match="closure="):
        optimizer.step()
    with pytest.raises(dt.ArgumentError, match="one group"):
        optimizer.add_param_group({"params": [leaf()]})


def test_failed_step_does_not_advance_the_count(device: dt.Device) -> None:
    a = one()
    optimizer = dt.optim.Adam([a], lr=0.5)
    a.sum().backward()
    optimizer.step()
    a.grad = dt.ones(2)

    class Stop(Exception):
        pass

    def stop(*args: object) -> None:
        raise Stop

    before, optimizer._run = a.tolist(), stop  # type: ignore[assignment]
    with pytest.raises(Stop):
        optimizer.step()
    assert a.tolist() == before and optimizer.state[a]["step"] == 1


@pytest.mark.parametrize(("name", "options"), CASES, ids=names(CASES))
def test_options_that_are_tensors_are_read_as_numbers(name: str, options: dict[str, Any]) -> None:
    found = []
    for is_tensor in (False, True):
        given = {
            n: dt.asarray(x, dtype=dt.float64) if is_tensor and type(x) is float else x
            for n, x in options.items()
        }
        params = parameters()
        optimizer = getattr(dt.optim, name)(params, **given)
        step = stepper(optimizer, params)
        for _ in range(3):
            step()
        assert optimizer._run.captures == 1
        found.append([a.tolist() for a in arrays(params)])
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["ASGD", "NAdam"])
def test_parameters_with_different_histories_keep_their_own_numbers(name: str) -> None:
    """Steps are counted alike, while other numbers of the states differ."""

    def run(is_shared: bool) -> list[list[float]]:
        ps = [dt.ones(2).requires_grad_() for _ in range(2)]
        make = getattr(dt.optim, name)
        opts = [make(ps, lr=0.1)] * 2 if is_shared else [make([p], lr=0.1) for p in ps]
        for k, p in enumerate(ps):
            for group in opts[k].param_groups:
                group.update({"lambd": 0.5, "alpha": 2.0} if name == "ASGD" else {})
                if k:
                    group.update({"lr": 5.0} if name == "ASGD" else {"momentum_decay": 0.5})
            p.grad = dt.ones(2)
            opts[k].step()
            p.grad = None
        for opt in opts:
            for group in opt.param_groups:
                group.update({"lr": 5.0} if name == "ASGD" else {"momentum_decay": 0.5})
        for _ in range(2):
            for p in ps:
                p.grad = dt.ones(2)
            for opt in {id(o): o for o in opts}.values():
                opt.step()
        return [p.tolist() for p in ps]

    assert run(True) == run(False)
