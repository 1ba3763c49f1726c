"""Averaged stochastic gradient descent."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

import dovetail as dt

from .optimizer import Group, Optimizer, Parameters, State, check_minimums, number

__all__ = ["ASGD"]


def _round_to_float32(rate: float) -> float:
    """Round a rate to float32, as PyTorch stores it, so that states and steps are equal."""
    return float(np.float32(rate))


class ASGD(Optimizer):
    """Averaged SGD: steps against the gradient and averages the parameters.

    - `lambd`: the decay: each step multiplies parameters by 1 - lambd * rate.
    - `alpha`: the exponent of the rate, which is lr / (1 + lambd * lr * step) ** alpha.
    - `t0`: the step at which averaging begins.

    The mean of a parameter is `state[p]["ax"]`: a copy of it until step `t0`, then the mean. The
    mean of float16 and bfloat16 parameters is float32, and averages values before rounding.
    Raises: ArgumentError for numbers that are out of range.
    Source: Polyak and Juditsky, Acceleration of stochastic approximation by averaging (1992).

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.ASGD([w], lr=0.5, lambd=0.0)
    >>> w.sum().backward()
    >>> opt.step()
    >>> w.tolist(), opt.state[w]["ax"].tolist()
    ([0.5, 0.5], [0.5, 0.5])
    """

    numbers_kept = ("eta", "mu")

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
        *,
        master_weights: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, options, master_weights)

    def _check(self, group: Group) -> None:
        """Raise ArgumentError for a negative lr or decay, ArgumentTypeError for non-numbers."""
        check_minimums(
            self._name,
            group,
            lr=0.0,
            weight_decay=0.0,
            lambd=-math.inf,
            alpha=-math.inf,
            t0=-math.inf,
        )

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """Return the name of the averaged parameter."""
        return ("ax",)

    def _options(self, group: Group) -> Hashable:
        """Return the rule's switches: maximize, weight decay."""
        return bool(group["maximize"]), bool(group["weight_decay"] != 0)

    def _initial_state(self, group: Group, p: dt.Tensor) -> State:
        """Return zeros for the average, rate `eta` = lr and weight `mu` = 1."""
        return {
            **super()._initial_state(group, p),
            "eta": _round_to_float32(number(group["lr"])),
            "mu": 1.0,
        }

    def _advanced_numbers(self, group: Group, state: State) -> State:
        """Return the next step, its rate `eta` and the weight `mu` of its parameter in the mean."""
        step, lr = state["step"] + 1.0, number(group["lr"])
        divisor = (1.0 + number(group["lambd"]) * lr * step) ** number(group["alpha"])
        mean = 1.0 / max(1.0, step - number(group["t0"]))
        return {"step": step, "eta": _round_to_float32(lr / divisor), "mu": _round_to_float32(mean)}

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return (eta, mu, 1 - mu, 1 - lambd * eta, weight_decay)."""
        eta, mu = state["eta"], state["mu"]
        shrink = 1.0 - number(group["lambd"]) * eta
        return eta, mu, 1.0 - mu, shrink, number(group["weight_decay"])

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, *kept: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return the new parameter and its mean."""
        maximize, decays = options
        eta, mu, old_weight, shrink, decay = numbers
        g = -g if maximize else g
        g = g + p * decay if decays else g
        p = p * shrink - g * eta
        return p, p * mu + kept[0] * old_weight
