"""Learning rate schedules against PyTorch, their states, and errors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import dovetail as dt
import pytest

S = dt.optim.lr_scheduler
Make = Callable[[Any, Any], Any]

CASES: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 3}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.5}),
    ("ConstantLR", {}),
    ("LinearLR", {"start_factor": 0.2, "end_factor": 0.9, "total_iters": 6}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 8, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4}),
    ("OneCycleLR", {"max_lr": [0.5, 0.2], "total_steps": 20}),
    ("OneCycleLR", {"max_lr": 0.5, "epochs": 4, "steps_per_epoch": 5, "three_phase": True,
                    "anneal_strategy": "linear"}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "step_size_down": 4}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "mode": "exp_range",
                  "gamma": 0.9, "cycle_momentum": False}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "scale_mode": "iterations",
                  "scale_fn": lambda x: 0.5**x}),
    ("LambdaLR", {"lr_lambda": lambda e: 0.9**e}),
    ("LambdaLR", {"lr_lambda": [lambda e: 0.9**e, lambda e: 1 / (1 + e)]}),
    ("MultiplicativeLR", {"lr_lambda": lambda e: 0.95}),
]  # fmt: skip
IDS = [f"{name}-{'-'.join(options)}" for name, options in CASES]

MADE: dict[str, Make] = {
    "one after the other": lambda o, m: m.SequentialLR(
        o,
        [m.ConstantLR(o, factor=0.1, total_iters=2), m.ExponentialLR(o, gamma=0.9),
         m.CosineAnnealingLR(o, T_max=4)],
        milestones=[3, 7],
    ),
    "warm-up": lambda o, m: m.SequentialLR(
        o,
        [m.LinearLR(o, total_iters=3), m.CosineAnnealingWarmRestarts(o, T_0=4),
         m.LambdaLR(o, lambda e: 0.5**e)],
        milestones=[4, 9],
    ),
    "polynomial": lambda o, m: m.SequentialLR(
        o, [m.LinearLR(o, total_iters=3), m.StepLR(o, 2), m.PolynomialLR(o, 6)], milestones=[4, 10]
    ),
    "at once": lambda o, m: m.ChainedScheduler(
        [m.ConstantLR(o, factor=0.1, total_iters=2), m.ExponentialLR(o, gamma=0.9), m.StepLR(o, 3)]
    ),
}  # fmt: skip


def optimizer(lib: Any, kind: str = "SGD") -> Any:
    def leaf() -> Any:
        return lib.ones(1, requires_grad=True) if lib is not dt else dt.ones(1).requires_grad_()

    options = {"lr": 0.1, "momentum": 0.9} if kind == "SGD" else {"lr": 0.1}
    return getattr(lib.optim, kind)(
        [{"params": [leaf()]}, {"params": [leaf()], "lr": 0.03}], **options
    )


def series(
    lib: Any, make: Make, kind: str = "SGD", measures: list[Any] | None = None
) -> list[float]:
    o = optimizer(lib, kind)
    schedule = make(o, lib.optim.lr_scheduler)
    found: list[float] = []
    for measure in measures or [None] * 20:
        o.step()
        schedule.step() if measure is None else schedule.step(measure)
        for g in o.param_groups:
            found += [g["lr"], g.get("momentum", 0), *g.get("betas", ())]
        found += schedule.get_last_lr()
    return found


def assert_equals_pytorch(make: Make, **options: Any) -> None:
    torch = pytest.importorskip("torch")
    assert series(dt, make, **options) == pytest.approx(series(torch, make, **options), rel=1e-13)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_rates_equal_pytorch(name: str, options: dict[str, Any]) -> None:
    assert_equals_pytorch(lambda o, m: getattr(m, name)(o, **options))


@pytest.mark.parametrize("name", MADE)
def test_composed_schedules_equal_pytorch(name: str) -> None:
    assert_equals_pytorch(MADE[name])


def test_one_cycle_schedules_betas() -> None:
    assert_equals_pytorch(lambda o, m: m.OneCycleLR(o, max_lr=0.1, total_steps=21), kind="Adam")


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2},
        {"patience": 1, "mode": "max", "threshold_mode": "abs", "cooldown": 2, "factor": 0.5},
        {"patience": 0, "min_lr": [0.05, 0.001], "threshold": 0.1},
    ],
)
def test_plateau_schedule_equals_pytorch(options: dict[str, Any]) -> None:
    measures = [1.5, 1.2, 0.9, 0.95, 0.91, 1.1, 0.5, 0.7, 0.52, 0.8, 0.6, 0.55, 0.9, 0.49] * 2
    assert_equals_pytorch(lambda o, m: m.ReduceLROnPlateau(o, **options), measures=measures)


@pytest.mark.parametrize("name", ["OneCycleLR", "CyclicLR", "MultiStepLR", "CosineAnnealingLR"])
def test_saved_schedule_continues(name: str) -> None:
    options = next(o for n, o in CASES if n == name)
    whole, first, second = optimizer(dt), optimizer(dt), optimizer(dt)
    reference = getattr(S, name)(whole, **options)
    begun, resumed = getattr(S, name)(first, **options), getattr(S, name)(second, **options)
    for k in range(10):
        for o, s in ((whole, reference), (first, begun)):
            if o is whole or k < 5:
                o.step()
                s.step()
    resumed.load_state_dict(json.loads(json.dumps(begun.state_dict())))
    second.load_state_dict(first.state_dict())
    for _ in range(5):
        second.step()
        resumed.step()
    assert [g["lr"] for g in second.param_groups] == [g["lr"] for g in whole.param_groups]
    assert resumed.get_last_lr() == reference.get_last_lr()


def test_saved_sequential_schedule_continues() -> None:
    whole, other = optimizer(dt), optimizer(dt)
    reference, resumed = (MADE["one after the other"](o, S) for o in (whole, other))
    for _ in range(5):
        whole.step()
        reference.step()
    resumed.load_state_dict(reference.state_dict())
    other.load_state_dict(whole.state_dict())
    for _ in range(5):
        for o, s in ((whole, reference), (other, resumed)):
            o.step()
            s.step()
        assert resumed.get_last_lr() == reference.get_last_lr()


COMPOSED: dict[str, Make] = {
    "chain": lambda o, m: m.ChainedScheduler([m.ExponentialLR(o, 0.5), m.StepLR(o, 2)]),
    "chain of a factor": lambda o, m: m.ChainedScheduler(
        [m.ConstantLR(o, 0.5, 2), m.LinearLR(o, 0.5, total_iters=2)]
    ),
    "sequence": lambda o, m: m.SequentialLR(
        o, [m.ConstantLR(o, 0.5, 9), m.ExponentialLR(o, 0.5)], [2]
    ),
    "chain of a sequence": lambda o, m: m.ChainedScheduler(
        [COMPOSED["sequence"](o, m), m.StepLR(o, 2)]
    ),
}


def rates_of(make: Make, count: int) -> list[list[float]]:
    o = optimizer(dt)
    schedule = make(o, S)
    found = [schedule.get_last_lr()]
    for _ in range(count):
        assert found[-1] == [g["lr"] for g in o.param_groups]
        o.step()
        schedule.step()
        found.append(schedule.get_last_lr())
    return found


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_schedule_in_a_sequence_begins_at_its_milestone(name: str) -> None:
    def make(o: Any, m: Any) -> Any:
        return m.SequentialLR(o, [m.LinearLR(o, 0.1, total_iters=3), COMPOSED[name](o, m)], [3])

    assert rates_of(make, 9)[3:] == rates_of(COMPOSED[name], 6)


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_schedule_begins_a_sequence(name: str) -> None:
    alone = rates_of(COMPOSED[name], 4)
    for milestones in ([5], [0, 5]):

        def make(o: Any, m: Any, milestones: list[int] = milestones) -> Any:
            others = [m.ConstantLR(o, 0.25, 9) for _ in milestones]
            others.insert(len(milestones) - 1, COMPOSED[name](o, m))
            return m.SequentialLR(o, [m.SequentialLR(o, others, milestones)], [])

        assert rates_of(make, 4) == alone


class Slotted:
    """A callable object without a `__dict__`."""

    __slots__ = ()

    def __call__(self, epoch: float) -> float:
        return 1.0


class Scale:
    """A callable object with an attribute."""

    factor = 1.0

    def __call__(self, epoch: float) -> float:
        return self.factor


@pytest.mark.parametrize("rule", [math.exp, float, Slotted()])
def test_state_of_rules_without_attributes_is_none(rule: Any) -> None:
    for schedule, key, want in (
        (S.LambdaLR(optimizer(dt), rule), "lr_lambdas", [None] * 2),
        (S.CyclicLR(optimizer(dt), 0.1, 0.2, scale_fn=rule), "_scale_fn_custom", None),
    ):
        state: Any = schedule.state_dict()
        assert state[key] == want
        schedule.load_state_dict(state)
        state[key] = [{"factor": 0.5}] * 2 if want else {"factor": 0.5}
        with pytest.raises(dt.ArgumentError, match="attributes of a callable object"):
            schedule.load_state_dict(state)


def test_state_of_callable_objects_is_loaded() -> None:
    first, second = Scale(), Scale()
    first.factor = 0.5
    S.LambdaLR(optimizer(dt), second).load_state_dict(S.LambdaLR(optimizer(dt), first).state_dict())
    assert second.factor == 0.5


def test_tensor_rate_is_written_in_place() -> None:
    w, rate = dt.ones(1).requires_grad_(), dt.asarray(0.5, dtype=dt.float64)
    o = dt.optim.SGD([w], lr=rate)
    schedule = S.ExponentialLR(o, 0.5)
    w.grad = dt.ones(1)
    o.step()
    schedule.step()
    assert o.param_groups[0]["lr"] is rate and float(rate) == 0.25 and w.tolist() == [0.5]


def test_schedule_step_before_the_optimizer_step_warns() -> None:
    schedule = S.StepLR(optimizer(dt), 2)
    with pytest.warns(dt.DovetailWarning, match=r"call optimizer.step\(\) first"):
        schedule.step()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda o: S.StepLR(3, 1), "optimizer must be an Optimizer, got 3"),
        (lambda o: S.StepLR(o, 0), "step_size must be at least 1, got 0"),
        (lambda o: S.StepLR(o, 2, last_epoch=3), "needs 'initial_lr'"),
        (
            lambda o: S.ConstantLR(o, factor=1.5),
            "factor must be greater than 0 and at most 1, got 1.5",
        ),
        (lambda o: S.LinearLR(o, start_factor=0), "start_factor must be greater than 0"),
        (lambda o: S.ConstantLR(o, factor=0), "factor must be greater than 0"),
        (lambda o: S.CosineAnnealingLR(o, 0), "T_max must be at least 1, got 0"),
        (lambda o: S.CosineAnnealingWarmRestarts(o, 2.5), "T_0 must be an int, got 2.5"),
        (lambda o: S.OneCycleLR(o, 0.1), "total_steps, or epochs"),
        (lambda o: S.OneCycleLR(o, 0.1, total_steps=5, pct_start=2), "pct_start"),
        (lambda o: S.OneCycleLR(o, [0.1], total_steps=5), "2 values, .*got 1"),
        (lambda o: S.OneCycleLR(o, 0.1, 5, div_factor=0.0), "div_factor must be .*, got 0.0"),
        (lambda o: S.OneCycleLR(o, 0.1, 5, final_div_factor=0.0), "final_div_factor must be .*0"),
        (lambda o: S.PolynomialLR(o, 5, power=-1.0), "power must be at least 0, got -1.0"),
        (lambda o: S.CosineAnnealingWarmRestarts(o, 3).step(math.nan), "epoch must be .*, got nan"),
        (lambda o: S.CosineAnnealingWarmRestarts(o, 3, 2).step(math.inf), "epoch must be .* inf"),
        (lambda o: S.CyclicLR(o, 0.1, 0.2, mode="square"), "mode must be .*, got 'square'"),
        (lambda o: S.LambdaLR(o, [lambda e: 1.0]), "2 values, .*got 1"),
        (lambda o: S.ReduceLROnPlateau(o, mode="most"), "mode must be .*, got 'most'"),
        (lambda o: S.ReduceLROnPlateau(o, factor=1.0), "factor must be .*, got 1.0"),
        (lambda o: S.SequentialLR(o, [], []), "at least one schedule"),
        (lambda o: S.SequentialLR(o, [S.StepLR(o, 2)], [3]), "need 0 milestones"),
        (lambda o: S.SequentialLR(o, [S.ReduceLROnPlateau(o)], []), "needs metrics"),
        (lambda o: S.ChainedScheduler([S.StepLR(optimizer(dt), 2)], o), "another optimizer"),
        (lambda o: S.StepLR(o, 2).load_state_dict({}), "expected the state of a schedule"),
        (lambda o: S.CyclicLR(dt.optim.Adagrad([dt.ones(1)]), 0.1, 0.2), "momentum or betas"),
    ],
)
def test_invalid_schedules_raise(make: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(dt.ArgumentError, match=said):
        make(optimizer(dt))


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize(
    ("steps", "start", "three"),
    [(10, 0.1, False), (10, 0.1, True), (2, 0.5, False), (1, 1.0, True)],
)
def test_one_cycle_without_steps_that_rise_begins_at_the_highest_rate(
    steps: int, start: float, three: bool, strategy: str
) -> None:
    o = optimizer(dt)
    schedule = S.OneCycleLR(
        o, 0.1, steps, pct_start=start, anneal_strategy=strategy, three_phase=three
    )
    assert schedule.get_last_lr() == [0.1, 0.1] and o.param_groups[0]["momentum"] == 0.85
    o.step()
    for _ in range(1, steps):
        schedule.step()
    if steps > 1:
        assert schedule.get_last_lr() == pytest.approx([0.1 / 25 / 1e4] * 2)


def test_one_cycle_without_steps_that_fall_ends_at_the_highest_rate() -> None:
    o = optimizer(dt)
    schedule = S.OneCycleLR(o, 0.1, 10, pct_start=1.0)
    o.step()
    for _ in range(9):
        schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.1, 0.1])
    schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.1 / 25 / 1e4] * 2)


def test_step_after_the_last_one_raises() -> None:
    o = optimizer(dt)
    schedule = S.OneCycleLR(o, 0.1, total_steps=2)
    o.step()
    for _ in range(2):
        schedule.step()
    with pytest.raises(dt.ArgumentError, match="step 3 is beyond total_steps=2"):
        schedule.step()


def resumed(lib: Any, name: str, options: dict[str, Any], epoch: int) -> list[float]:
    """Return the rates of a schedule that resumes after an epoch, with the optimizer's state."""
    o = optimizer(lib)
    made = getattr(lib.optim.lr_scheduler, name)
    schedule = made(o, **options)
    for _ in range(epoch):
        o.step()
        schedule.step()
    schedule = made(o, **options, last_epoch=epoch)
    found = [*schedule.get_last_lr()]
    for _ in range(8):
        o.step()
        schedule.step()
        found += schedule.get_last_lr()
    return [float(lr) for lr in found]


# PyTorch's warm restarts of growing length start another period there; the next test has these.
ALIKE = [case for case in CASES if case[1].get("T_mult", 1) == 1]


@pytest.mark.parametrize("epoch", [0, 1, 3, 4, 7])
@pytest.mark.parametrize(("name", "options"), ALIKE)
def test_resumed_schedules_equal_pytorch(name: str, options: dict[str, Any], epoch: int) -> None:
    torch = pytest.importorskip("torch")
    wanted = resumed(torch, name, options, epoch)
    assert resumed(dt, name, options, epoch) == pytest.approx(wanted, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("epoch", range(12))
@pytest.mark.parametrize("options", [{"T_0": 3, "T_mult": 2}, {"T_0": 4}, {"T_0": 1, "T_mult": 3}])
def test_resumed_warm_restarts_equal_an_uninterrupted_run(
    options: dict[str, Any], epoch: int
) -> None:
    whole = S.CosineAnnealingWarmRestarts(optimizer(dt), **options)
    rates = []
    for _ in range(epoch + 10):
        rates += [float(lr) for lr in whole.get_last_lr()]
        whole.optimizer.step()
        whole.step()
    wanted = rates[2 * (epoch + 1) :]
    found = resumed(dt, "CosineAnnealingWarmRestarts", options, epoch)
    assert found == pytest.approx(wanted, rel=1e-12)
