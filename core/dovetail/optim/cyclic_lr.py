"""Cyclic schedules of the learning rate and of the momentum."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import dovetail as dt
from dovetail.extend import arguments

from .optimizer import Optimizer
from .schedules import (
    LRScheduler,
    Rates,
    load_rule_state,
    rule_state,
    set_rate,
    values_per_group,
)


class _Moving(LRScheduler):
    """A schedule that also changes the momentum: `momentum`, or the first of `betas`."""

    cycle_momentum: bool
    use_beta1: bool

    def _init_momentum(self, enabled: bool, low: Any, high: Any, last_epoch: int) -> None:
        """Store the momentum's bounds; start a new schedule at the upper one.

        Raises: ArgumentError for an optimizer without momentum or betas.
        """
        self.cycle_momentum = enabled
        if not enabled:
            return
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise dt.ArgumentError(
                f"{self._name}: cycle_momentum=True needs an optimizer with momentum or betas; "
                "pass cycle_momentum=False"
            )
        self.use_beta1 = "betas" in defaults
        self.base_momentums = values_per_group(self._name, "base_momentum", self.optimizer, low)
        self.max_momentums = values_per_group(self._name, "max_momentum", self.optimizer, high)
        if last_epoch == -1:
            self._set_momentums(self.max_momentums)
            groups = self.optimizer.param_groups
            for low, high, group in zip(
                self.base_momentums, self.max_momentums, groups, strict=True
            ):
                group["base_momentum"], group["max_momentum"] = low, high

    def _set_momentums(self, momentums: list[float]) -> None:
        """Set each group's `momentum`, or the first of its `betas`."""
        for group, m in zip(self.optimizer.param_groups, momentums, strict=True):
            if self.use_beta1:
                group["betas"] = (m, *group["betas"][1:])
            else:
                group["momentum"] = m


class CyclicLR(_Moving):
    """A schedule that cycles the rates between `base_lr` and `max_lr`.

    - `base_lr`, `max_lr`: the bounds of the rates: numbers, or lists of one for each group.
    - `step_size_up`: the number of steps from `base_lr` to `max_lr`.
    - `step_size_down`: the number of steps back. Default: `step_size_up`.
    - `mode`: "triangular"; "triangular2" halves the height in each cycle; "exp_range" multiplies it
      by `gamma` at each step.
    - `gamma`: the factor of mode "exp_range".
    - `scale_fn`: a function that returns the height, from 0 to 1; it replaces `mode`.
    - `scale_mode`: the argument of `scale_fn`: "cycle", the number of the cycle, from 1, or
      "iterations", the number of steps.
    - `cycle_momentum`: move the momentum, or the first of `betas`, in the opposite direction. False
      is for optimizers without these.
    - `base_momentum`, `max_momentum`: the bounds of the momentum.

    See also: `OneCycleLR`.
    Source: Smith, Cyclical learning rates (2017).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        self._attach(optimizer)
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise dt.ArgumentError(
                f"{self._name}: mode must be 'triangular', 'triangular2' or 'exp_range', got "
                f"{mode!r}"
            )
        bases = values_per_group(self._name, "base_lr", optimizer, base_lr)
        self.max_lrs = values_per_group(self._name, "max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for lr, group in zip(bases, optimizer.param_groups, strict=True):
                set_rate(group, lr)
        up = float(step_size_up)
        self.total_size = up + float(step_size_up if step_size_down is None else step_size_down)
        if not 0 < up <= self.total_size:
            raise dt.ArgumentError(
                f"{self._name}: step_size_up must be at least 1, got {step_size_up}"
            )
        self.step_ratio = up / self.total_size
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        by_steps = scale_fn is None and mode == "exp_range"
        self.scale_mode = (
            ("iterations" if by_steps else "cycle") if scale_fn is None else scale_mode
        )
        self._init_momentum(cycle_momentum, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = bases

    def scale_fn(self, x: float) -> float:
        """Return the height of a cycle as a fraction of the full range."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return float(1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x)

    def get_lr(self) -> Rates:
        """Return the rates of `last_epoch`; set the momentums, if they are cycled."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        up = x <= self.step_ratio
        height = x / self.step_ratio if up else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            pairs = zip(self.base_momentums, self.max_momentums, strict=True)
            self._set_momentums([high - (high - low) * height for low, high in pairs])
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height for low, high in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the schedule, without the optimiser and functions."""
        return {**super().state_dict(), "_scale_fn_custom": rule_state(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state, with the attributes of a `scale_fn` that is an object.

        - `state_dict`: the result of `state_dict()`.
        """
        state = dict(state_dict)
        attributes, rule = state.pop("_scale_fn_custom", None), self._scale_fn_custom
        super().load_state_dict(state)
        if rule is not None:
            load_rule_state(self._name, rule, attributes)


class OneCycleLR(_Moving):
    """A schedule that raises the rates to `max_lr` and then lowers them, once.

    - `max_lr`: the greatest rate: a number, or a list of one for each group.
    - `total_steps`: the number of steps. Default: epochs * steps_per_epoch.
    - `epochs`, `steps_per_epoch`: the number of steps, as a product.
    - `pct_start`: the fraction of steps that rise, from 0 to 1.
    - `anneal_strategy`: "cos" or "linear".
    - `cycle_momentum`: move the momentum, or the first of `betas`, in the opposite direction. False
      is for optimizers without these.
    - `base_momentum`, `max_momentum`: the bounds of the momentum, which begins with the upper one.
    - `div_factor`: the first rate is max_lr / div_factor.
    - `final_div_factor`: the last rate is the first / final_div_factor.
    - `three_phase`: fall to the first rate as long as the rates rose, and then to the last rate.

    Call `step()` after each batch, `total_steps` times at most.
    See also: `CyclicLR`, `CosineAnnealingLR`.
    Source: Smith and Topin, Super-convergence (2018).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self._attach(optimizer)
        if total_steps is None and epochs is not None and steps_per_epoch is not None:
            total_steps = epochs * steps_per_epoch
        if total_steps is None:
            raise dt.ArgumentError(
                f"{self._name}: total_steps, or epochs and steps_per_epoch, must be positive ints"
            )
        total_steps = arguments.integer(self._name, total_steps, "total_steps", 1)
        if not 0.0 <= pct_start <= 1.0:
            raise dt.ArgumentError(
                f"{self._name}: pct_start must be between 0 and 1, got {pct_start}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise dt.ArgumentError(
                f"{self._name}: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}"
            )
        for name, value in (("div_factor", div_factor), ("final_div_factor", final_div_factor)):
            if not value > 0:
                raise dt.ArgumentError(f"{self._name}: {name} must be greater than 0, got {value}")
        self.total_steps, self._anneal_func_type = total_steps, anneal_strategy
        self._phases = _phases(pct_start * total_steps - 1, total_steps - 1, three_phase)
        if last_epoch == -1:
            max_lrs = values_per_group(self._name, "max_lr", optimizer, max_lr)
            for high, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"], group["max_lr"] = high / div_factor, high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self._init_momentum(cycle_momentum, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _interpolate(self, start: float, end: float, part: float) -> float:
        """Return the value between `start` and `end`, by a cosine or linearly."""
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)
        return (end - start) * part + start

    def get_lr(self) -> Rates:
        """Return the rates of `last_epoch`; set momentums. Raises: ArgumentError after the last."""
        n = self.last_epoch
        if n > self.total_steps:
            raise dt.ArgumentError(
                f"{self._name}: step {n} is beyond total_steps={self.total_steps}; pass a larger "
                "total_steps"
            )
        k = next((i for i, phase in enumerate(self._phases) if n <= phase[0]), -1)
        end, lrs, momentums = self._phases[k]
        begin = self._phases[k - 1][0] if k % len(self._phases) else 0.0
        part = (n - begin) / (end - begin) if end != begin else 1.0  # a phase without steps
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            self._set_momentums(
                [self._interpolate(g[momentums[0]], g[momentums[1]], part) for g in groups]
            )
        return [self._interpolate(g[lrs[0]], g[lrs[1]], part) for g in groups]


def _phases(up: float, last: float, three: bool) -> list[Any]:
    """Return (last step, names of its two rates, names of its two momentums) of each phase."""
    down = ("base_momentum", "max_momentum")
    first = (up, ("initial_lr", "max_lr"), down[::-1])
    if not three:
        return [first, (last, ("max_lr", "min_lr"), down)]
    third = (last, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum"))
    return [first, (2 * up, ("max_lr", "initial_lr"), down), third]


class CosineAnnealingWarmRestarts(LRScheduler):
    """A schedule that lowers the rates to `eta_min` by half a cosine wave, and restarts.

    - `T_0`: epochs until the first restart.
    - `T_mult`: the factor by which each period is longer than the one before.
    - `eta_min`: the least rate.
    - `last_epoch`: the number of epochs after which to continue, in the same period; -1 begins.
      PyTorch begins a new period there.

    Source: Loshchilov and Hutter, SGDR (2017).
    """

    T_cur: float
    T_i: int

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_0 = arguments.integer(self._name, T_0, "T_0", 1)
        self.T_mult = arguments.integer(self._name, T_mult, "T_mult", 1)
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        """Return the rates of `last_epoch`."""
        wave = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (b - self.eta_min) * wave for b in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Set the rates of the next epoch, or those of `epoch` and its position in the cycle.

        - `epoch`: an epoch, which may be a fraction: epoch + batch / batches. None is the next
          epoch.
        """
        self._step_count += 1
        if epoch is None and self._is_initial:
            epoch = self.last_epoch + 1
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            self._set_epoch(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_rates(self.get_lr())

    def _set_epoch(self, epoch: float) -> None:
        """Store the position in the cycle and its length. Raises: ArgumentError."""
        if not 0 <= epoch < math.inf:
            raise dt.ArgumentError(
                f"{self._name}.step: epoch must be finite and at least 0, got {epoch}"
            )
        begin, length = 0, self.T_0
        if self.T_mult == 1:
            begin = int(epoch // length) * length
        else:
            while epoch >= begin + length:
                begin, length = begin + length, length * self.T_mult
        self.T_cur, self.T_i = epoch - begin, length
