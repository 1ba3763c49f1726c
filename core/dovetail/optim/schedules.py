"""Learning-rate schedules with one rate for each group, and compositions of schedules."""

from __future__ import annotations

import math
import types
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, SupportsFloat, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, is_capturing

from ..nn.constructor_errors import Explained
from .optimizer import Optimizer

Rates: TypeAlias = list[Any]
Rule: TypeAlias = Callable[[int], float]


def set_rate(group: dict[str, Any], lr: Any) -> None:
    """Set the rate of a group; a rate that is a tensor is overwritten in place."""
    if isinstance(group["lr"], dt.Tensor):
        group["lr"].fill_(float(lr))
    else:
        group["lr"] = lr


def group_values(optimizer: Optimizer, option: str = "lr") -> Rates:
    """Return an option of each group; tensors are copied."""
    values = [group[option] for group in optimizer.param_groups]
    return [dt.copy(x) if isinstance(x, dt.Tensor) else x for x in values]


def values_per_group(name: str, option: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return a list of a value per group. Raises: ArgumentError for a list of another length.

    `value`: a value for all groups, or a list of values.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise dt.ArgumentError(
            f"{name}: {option} must have {count} values, one for each group of the optimizer, got "
            f"{len(value)}"
        )
    return [*value]


def rule_state(rule: object) -> dict[str, Any] | None:
    """Return the attributes of a callable object; None for functions, classes and __slots__."""
    attributes: Any = getattr(rule, "__dict__", None)
    is_object = isinstance(attributes, dict) and not isinstance(rule, types.FunctionType)
    return {**attributes} if is_object else None


def load_rule_state(name: str, rule: object, state: dict[str, Any] | None) -> None:
    """Set the attributes of a callable object. Raises: ArgumentError if it can have none."""
    if state is None:
        return
    attributes: Any = getattr(rule, "__dict__", None)
    if not isinstance(attributes, dict):
        raise dt.ArgumentError(
            f"{name}.load_state_dict: the state has attributes of a callable object, and "
            f"{arguments.shown(rule)} has none; construct the schedule with such an object"
        )
    attributes.update(state)


def refuse_captures(step: Callable[..., None]) -> Callable[..., None]:
    """Return a schedule's `step` that raises CaptureError while a function is captured.

    What that function reads of the schedule would stay as it was at the capture.
    """

    @wraps(step)
    def call(self: LRScheduler, *args: Any, **named: Any) -> None:
        if is_capturing():
            raise dt.CaptureError(
                f"{self._name}.step: a captured function cannot advance a schedule; step it outside"
            )
        step(self, *args, **named)

    return call


class LRScheduler(Explained):
    """The base class of schedules, which define `get_lr()`.

    - `last_epoch`: the number of steps after which to continue; -1 begins, and sets the first
      rates.

    Call `step()` after each epoch, or after each step of the optimiser, outside of functions that
    `dt.jit` captures.
    Raises: ArgumentTypeError, ArgumentError.
    See also: `LambdaLR`, `dt.optim.Optimizer`.

    >>> import dovetail as dt
    >>> w = dt.ones(1).requires_grad_()
    >>> opt = dt.optim.SGD([w], lr=1.0)
    >>> halved = dt.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     opt.step()
    ...     halved.step()
    >>> halved.get_last_lr()
    [0.25]
    """

    optimizer: Optimizer
    last_epoch: int
    base_lrs: Rates
    _is_initial = False
    _step_count = 0
    _unsaved_attributes: tuple[str, ...] = ("optimizer",)  # attributes that state_dict() leaves out
    _checks_annotations = True

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self._attach(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", dt.copy(lr) if isinstance(lr, dt.Tensor) else lr)
            elif "initial_lr" not in group:
                raise dt.ArgumentError(
                    f"{self._name}: last_epoch={last_epoch} needs 'initial_lr' in each group, and "
                    f"group {i} has none; load the optimizer's state first"
                )
        self.base_lrs = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._run_initial_step()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in vars(cls):
            cls.step = refuse_captures(vars(cls)["step"])  # type: ignore[method-assign]  # the same parameters

    @property
    def _name(self) -> str:
        """Return the name in errors: "lr_scheduler.StepLR"."""
        return f"lr_scheduler.{type(self).__name__}"

    def _attach(self, optimizer: Optimizer) -> None:
        """Store the optimiser. Raises: ArgumentTypeError for another object."""
        if not isinstance(optimizer, Optimizer):
            raise dt.ArgumentTypeError(
                f"{self._name}: optimizer must be a dt.optim optimizer, got "
                f"{type(optimizer).__name__}"
            )
        self.optimizer = optimizer

    def _run_initial_step(self) -> None:
        """Call `step` with `_is_initial` set, which sets the first rates."""
        self._step_count, self._is_initial = 0, True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> Rates:
        """Return the rates of `last_epoch`; the groups contain those of the epoch before."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr(self)")

    def get_last_lr(self) -> Rates:
        """Return the rates that were set last."""
        return self._last_lr

    @refuse_captures
    def step(self) -> None:
        """Advance by an epoch and set its rates; warn if the optimiser has not stepped yet."""
        if self._step_count == 1 and not self.optimizer.stepped:
            warnings.warn(
                f"{self._name}.step() is called before the optimizer's step(), so the first rate "
                "is not used; call optimizer.step() first",
                dt.DovetailWarning,
                stacklevel=2,
            )
        self._step_count += 1
        self.last_epoch += 1
        self._set_rates(self.get_lr())

    def _set_rates(self, values: Rates) -> None:
        """Set the rate of each group, and store copies as the last rates."""
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_rate(group, lr)
        self._last_lr = group_values(self.optimizer)

    def _restart(self) -> None:
        """Go back to epoch 0 and set its rates; a sequence calls it when it reaches this one."""
        self.last_epoch = 0
        self._set_rates(self._first_rates())

    def _first_rates(self) -> Rates:
        """Return the rates of epoch 0, for a restart."""
        return self.get_lr()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the schedule, without the optimiser."""
        return {n: v for n, v in self.__dict__.items() if n not in self._unsaved_attributes}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state.

        - `state_dict`: the result of `state_dict()`.

        Raises: ArgumentError if it is not the state of a schedule.
        """
        if not isinstance(state_dict, Mapping) or "last_epoch" not in state_dict:
            raise dt.ArgumentError(
                f"{self._name}.load_state_dict: expected the state of a schedule, a dict with "
                "'last_epoch'"
            )
        for name, value in state_dict.items():
            if not _is_compatible(name, value, self.__dict__.get(name)):
                raise dt.ArgumentError(
                    f"{self._name}.load_state_dict: {name!r} must be of the kind that the schedule "
                    f"has, {type(self.__dict__[name]).__name__}, got {arguments.shown(value)}"
                )
        self.__dict__.update(state_dict)


class _Scaled(LRScheduler):
    """A schedule that multiplies the rates of the epoch before, so that several can be chained."""

    def _ratio(self) -> float:
        """Return the factor at `last_epoch`."""
        raise NotImplementedError

    def get_lr(self) -> Rates:
        """Return the current rates times the factor of `last_epoch`."""
        ratio = self._ratio()
        return [lr * ratio if ratio != 1.0 else lr for lr in group_values(self.optimizer)]

    def _first_rates(self) -> Rates:
        """Return the base rates times the factor of epoch 0."""
        ratio = self._ratio()
        return [lr * ratio for lr in self.base_lrs]


class StepLR(_Scaled):
    """A schedule that multiplies the rates by `gamma` every `step_size` epochs.

    - `step_size`: the number of epochs between changes.
    - `gamma`: the factor at each change.

    See also: `MultiStepLR`, `ExponentialLR`, `CosineAnnealingLR`.
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = arguments.integer(self._name, step_size, "step_size", 1), gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self) -> float:
        """Return `gamma` at multiples of `step_size`, else 1."""
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self.gamma if due else 1.0


class MultiStepLR(_Scaled):
    """A schedule that multiplies the rates by `gamma` at each of the epochs `milestones`.

    - `milestones`: the epochs of changes; a repeated one changes twice.
    - `gamma`: the factor at each change.

    See also: `StepLR`, `SequentialLR`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self) -> float:
        """Return `gamma` to the number of milestones at `last_epoch`."""
        return float(self.gamma ** self.milestones[self.last_epoch])

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state. Milestones may be strings, which JSON makes of integer keys.

        - `state_dict`: the result of `state_dict()`.
        """
        super().load_state_dict(state_dict)
        self.milestones = Counter({int(n): k for n, k in self.milestones.items()})


class ConstantLR(_Scaled):
    """A schedule that multiplies the rates by `factor` for the first `total_iters` epochs.

    - `factor`: the factor of the first rates, greater than 0 and at most 1; afterwards it is 1.
    - `total_iters`: the number of epochs with the factor.

    See also: `LinearLR`, `SequentialLR`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.factor = _check_factor(self._name, "factor", factor)
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _ratio(self) -> float:
        """Return `factor` at epoch 0, its inverse at `total_iters`, else 1."""
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1.0


class LinearLR(_Scaled):
    """A schedule that moves the rates' factor from `start_factor` to `end_factor` linearly.

    - `start_factor`: the factor of the first epoch, greater than 0 and at most 1.
    - `end_factor`: the factor from epoch `total_iters` on, from 0 to 1.
    - `total_iters`: the number of epochs between them.

    See also: `ConstantLR`, `SequentialLR`, `OneCycleLR`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor = _check_factor(self._name, "start_factor", start_factor)
        self.end_factor = _check_range(self._name, "end_factor", end_factor, 0.0, 1.0)
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _ratio(self) -> float:
        """Return the linear factor of `last_epoch`, divided by that of the epoch before."""
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        change = self.end_factor - self.start_factor
        previous = self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        return 1.0 + change / previous


class ExponentialLR(_Scaled):
    """A schedule that multiplies the rates by `gamma` at each epoch.

    - `gamma`: the factor at each epoch.

    See also: `StepLR`, `CosineAnnealingLR`.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self) -> float:
        """Return `gamma`, or 1 at the start."""
        return 1.0 if self._is_initial or self.last_epoch == 0 else self.gamma


class PolynomialLR(_Scaled):
    """A schedule that lowers the rates to 0 in `total_iters` epochs, as a power of the rest.

    - `total_iters`: the number of epochs until the rates are 0.
    - `power`: the exponent: the factor of epoch i is (1 - i / total_iters) ** power.
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = arguments.integer(self._name, total_iters, "total_iters", 1)
        if not power >= 0:
            raise dt.ArgumentError(f"{self._name}: power must be at least 0, got {power}")
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _ratio(self) -> float:
        """Return the decay of `last_epoch`, divided by that of the epoch before."""
        n, end = self.last_epoch, self.total_iters
        if self._is_initial or n == 0 or n > end:
            return 1.0
        return float(((1.0 - n / end) / (1.0 - (n - 1) / end)) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """A schedule that lowers the rates to `eta_min` by half a cosine wave in `T_max` epochs.

    - `T_max`: the number of epochs of half a wave; afterwards the rates rise again.
    - `eta_min`: the least rate.

    See also: `CosineAnnealingWarmRestarts`, `OneCycleLR`.
    Source: Loshchilov and Hutter, SGDR (2017), without restarts.
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = arguments.integer(self._name, T_max, "T_max", 1), eta_min
        super().__init__(optimizer, last_epoch)

    def _wave(self, epoch: int) -> float:
        """Return 1 + cos(pi * epoch / T_max), from 2 to 0."""
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def get_lr(self) -> Rates:
        """Return the rates of `last_epoch`, computed from the groups' rates of the epoch before."""
        n, low, rates = self.last_epoch, self.eta_min, group_values(self.optimizer)
        if self._is_initial:
            return rates
        if self._step_count == 1 and n > 0:
            return self._first_rates()
        if (n - 1 - self.T_max) % (
            2 * self.T_max
        ) == 0:  # after the minimum, where the ratio has divisor 0
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (b - low) * rise for b, lr in zip(self.base_lrs, rates, strict=True)]
        ratio = self._wave(n) / self._wave(n - 1)
        return [(lr - low) * ratio + low for lr in rates]

    def _first_rates(self) -> Rates:
        """Return the rates of `last_epoch` in closed form."""
        low = self.eta_min
        return [low + (b - low) * self._wave(self.last_epoch) / 2 for b in self.base_lrs]


class _Ruled(LRScheduler):
    """A schedule by functions of the epoch, one for all groups or one for each."""

    _unsaved_attributes = ("optimizer", "lr_lambdas")

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Rule | list[Rule], last_epoch: int = -1
    ) -> None:
        self._attach(optimizer)
        self.lr_lambdas: list[Any] = values_per_group(self._name, "lr_lambda", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def _ratios(self) -> list[float]:
        """Return the functions' results for `last_epoch`.

        Raises: ArgumentTypeError if no number.
        """
        ratios = [rule(self.last_epoch) for rule in self.lr_lambdas]
        for r in ratios:
            if not isinstance(r, dt.Tensor):
                arguments.real(self._name, r, "what lr_lambda returns")
        return ratios

    def state_dict(self) -> dict[str, Any]:
        """Return the state, without the optimiser and functions; callable objects as a dict."""
        return {**super().state_dict(), "lr_lambdas": [*map(rule_state, self.lr_lambdas)]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state, with the attributes of functions that are objects.

        - `state_dict`: the result of `state_dict()`.
        """
        state = dict(state_dict)
        lr_lambdas = state.pop("lr_lambdas", [])
        super().load_state_dict(state)
        for rule, attributes in zip(self.lr_lambdas, lr_lambdas, strict=False):
            load_rule_state(self._name, rule, attributes)


class LambdaLR(_Ruled):
    """A schedule that multiplies the first rates by a function of the epoch.

    See also: `MultiplicativeLR`, `LRScheduler`.
    """

    def get_lr(self) -> Rates:
        """Return the rates of `last_epoch`: the first ones times the functions' results."""
        return [b * r for b, r in zip(self.base_lrs, self._ratios(), strict=True)]


class MultiplicativeLR(_Ruled):
    """A schedule that multiplies the current rates by a function of the epoch at each epoch."""

    def get_lr(self) -> Rates:
        """Return the rates of `last_epoch`: the current ones times the functions' results."""
        rates = group_values(self.optimizer)
        if self._is_initial:
            return rates
        return [lr * r for lr, r in zip(rates, self._ratios(), strict=True)]


# --- compositions ---------------------------------------------------------------------------------


class _OfOthers(LRScheduler):
    """A schedule composed of several schedules of one optimiser."""

    _unsaved_attributes = ("optimizer", "_schedulers")

    def _set_schedulers(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None
    ) -> None:
        """Check and store the schedules, and their optimizer.

        Raises: ArgumentError for none, for ReduceLROnPlateau and for several optimizers;
        ArgumentTypeError for other objects.
        """
        schedulers = [*schedulers]
        if not schedulers:
            raise dt.ArgumentError(f"{self._name}: expected at least one schedule, got none")
        optimizer = optimizer or schedulers[0].optimizer
        for i, s in enumerate(schedulers):
            if not isinstance(s, LRScheduler):
                raise dt.ArgumentTypeError(
                    f"{self._name}: item {i} must be a schedule, got {type(s).__name__}"
                )
            if isinstance(s, ReduceLROnPlateau):
                raise dt.ArgumentError(
                    f"{self._name}: item {i} must not be ReduceLROnPlateau, because its step() "
                    "needs metrics; call its step() separately"
                )
            if s.optimizer is not optimizer:
                raise dt.ArgumentError(
                    f"{self._name}: item {i} belongs to another optimizer; all schedules must "
                    "have the same one"
                )
        self._schedulers, self.optimizer = schedulers, optimizer

    def _restart(self) -> None:
        """Go back to epoch 0 and set its rates, from the optimiser's initial ones."""
        self._rewind()
        for group in self.optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        self._run_initial_step()

    def _rewind(self) -> None:
        """Set `last_epoch` of all schedules to -1, the epoch before their first one."""
        for s in self._schedulers:
            if isinstance(s, _OfOthers):
                s._rewind()
            else:
                s.last_epoch = -1

    def state_dict(self) -> dict[str, Any]:
        """Return the state, with those of the schedules that it is composed of."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state, then those of the schedules in turn.

        - `state_dict`: the result of `state_dict()`.

        Raises: ArgumentError for another number of schedules.
        """
        own_state = dict(state_dict)
        states = own_state.pop("_schedulers", ())
        if len(states) != len(self._schedulers):
            raise dt.ArgumentError(
                f"{self._name}.load_state_dict: expected the state of {len(self._schedulers)} "
                f"schedules, got {len(states)}"
            )
        self.__dict__.update(own_state)
        for s, state in zip(self._schedulers, states, strict=True):
            s.load_state_dict(state)


class SequentialLR(_OfOthers):
    """A sequence of schedules; the next one begins at each of the epochs `milestones`.

    - `schedulers`: the schedules of `optimizer`, in order.
    - `milestones`: the epochs at which the second and later ones begin.

    See also: `ChainedScheduler`, `LinearLR`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        self._set_schedulers(schedulers, optimizer)
        if len(milestones) != len(self._schedulers) - 1:
            raise dt.ArgumentError(
                f"{self._name}: {len(self._schedulers)} schedules need "
                f"{len(self._schedulers) - 1} milestones, got {len(milestones)}"
            )
        self._milestones, self.last_epoch = [*milestones], last_epoch + 1
        for group in self.optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        _undo_first_steps(self)
        self._run_initial_step()

    def step(self) -> None:
        """Advance by an epoch and set the rates of its schedule, which restarts at a milestone."""
        self.last_epoch += 1
        k = bisect_right(self._milestones, self.last_epoch)
        s = self._schedulers[k]
        if k > 0 and self._milestones[k - 1] == self.last_epoch:
            s._restart()
        else:
            s.step()
        self._last_lr = s.get_last_lr()

    def _run_initial_step(self) -> None:
        """Run the initial step of the schedule of epoch 0, which sets the first rates."""
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._run_initial_step()
        self._last_lr = first.get_last_lr()

    def _rewind(self) -> None:
        """Go back to epoch 0 and rewind the schedules, without setting rates."""
        super()._rewind()
        self.last_epoch = 0


def _undo_first_steps(sequence: _OfOthers) -> None:
    """Decrement `last_epoch` of the schedules in a sequence, at any depth; rates do not change."""
    for s in sequence._schedulers:
        if isinstance(s, _OfOthers):
            _undo_first_steps(s)
        else:
            s.last_epoch -= 1


class ChainedScheduler(_OfOthers):
    """Several schedules at once; each one changes the rates that the one before it has set.

    - `schedulers`: the schedules of one optimizer.
    - `optimizer`: their optimizer; None reads it from the first one.

    See also: `SequentialLR`.
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        self._set_schedulers(schedulers, optimizer)
        self._last_lr = group_values(self.optimizer)

    def step(self) -> None:
        """Step all schedules in order; each one changes the rates that the previous one set."""
        for s in self._schedulers:
            s.step()
        self._last_lr = group_values(self.optimizer)

    def _run_initial_step(self) -> None:
        """Run the initial steps of all schedules, in order."""
        for s in self._schedulers:
            s._run_initial_step()
        self._last_lr = group_values(self.optimizer)


class ReduceLROnPlateau(LRScheduler):
    """A schedule that multiplies the rates by `factor` when a metric stops improving.

    - `mode`: "min" if a smaller metric is better, "max" if a greater one is.
    - `factor`: the factor of a reduction, at least 0 and less than 1.
    - `patience`: the number of epochs without improvement that are allowed; the next one reduces
      the rates.
    - `threshold`: the least improvement of the best metric.
    - `threshold_mode`: "rel" for a fraction of the best metric, "abs" for a difference.
    - `cooldown`: the number of epochs after a reduction without another one.
    - `min_lr`: the least rate: a number, or a list of one for each group.
    - `eps`: the change up to which a rate stays.

    See also: `StepLR`, `CosineAnnealingLR`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        self._attach(optimizer)
        if not 0.0 <= factor < 1.0:
            raise dt.ArgumentError(
                f"{self._name}: factor must be at least 0 and less than 1, got {factor}"
            )
        for name, value, allowed in (
            ("mode", mode, ("min", "max")),
            ("threshold_mode", threshold_mode, ("rel", "abs")),
        ):
            if value not in allowed:
                raise dt.ArgumentError(
                    f"{self._name}: {name} must be one of {allowed}, got {value!r}"
                )
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.min_lrs = values_per_group(self._name, "min_lr", optimizer, min_lr)
        self.last_epoch, self._last_lr = 0, group_values(optimizer)
        self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = self.num_bad_epochs = 0

    def _is_better(self, value: float) -> bool:
        """Return True if a metric beats the best one by more than the threshold."""
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "rel":
            bound = self.best * (1.0 + sign * self.threshold)
        else:
            bound = self.best + sign * self.threshold
        return value > bound if self.mode == "max" else value < bound

    @property
    def in_cooldown(self) -> bool:
        """Return True during the epochs after a reduction in which no other one happens."""
        return self.cooldown_counter > 0

    def step(self, metrics: SupportsFloat) -> None:
        """Compare a metric with the best one, and reduce the rates after `patience` bad epochs.

        - `metrics`: a number, or a tensor with one element.
        """
        try:
            value = float(metrics)
        except (TypeError, ValueError, OverflowError):
            raise arguments.refused(f"{self._name}.step", "metrics", "a number", metrics) from None
        self.last_epoch += 1
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = group_values(self.optimizer)

    def _reduce(self) -> None:
        """Multiply each rate by `factor`, to at least its minimum; skip changes up to `eps`."""
        for group, low in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                set_rate(group, new)


def _is_compatible(name: str, new: object, old: object) -> bool:
    """Return True if a value of a state can replace the value of a schedule's attribute."""
    if isinstance(old, bool) or old is None:
        return True
    if isinstance(old, (int, float)):
        is_number = isinstance(new, (int, float, dt.Tensor))
        return is_number and (name not in _PERIODS or bool(new >= 1))  # type: ignore[operator]  # a number
    if isinstance(old, list):
        if not isinstance(new, list) or len(new) != len(old):
            return False
        return all(_is_compatible(name, n, o) for n, o in zip(new, old, strict=True))
    if isinstance(old, (str, Mapping)):
        return isinstance(new, str if isinstance(old, str) else Mapping)
    return True


_PERIODS = ("step_size", "T_0", "T_i", "T_max", "T_mult")  # divisors, which must not be 0


def _check_range(name: str, option: str, value: float, low: float, high: float) -> float:
    """Return the value. Raises: ArgumentError unless it is between `low` and `high`."""
    if not low <= value <= high:
        raise dt.ArgumentError(
            f"{name}: {option} must be between {low:g} and {high:g}, got {value}"
        )
    return value


def _check_factor(name: str, option: str, value: float) -> float:
    """Return `value`, by which rates are divided later. Raises: ArgumentError outside (0, 1]."""
    if not 0.0 < value <= 1.0:
        raise dt.ArgumentError(
            f"{name}: {option} must be greater than 0 and at most 1, got {value}"
        )
    return value
