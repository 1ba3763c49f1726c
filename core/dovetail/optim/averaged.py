"""Stochastic gradient descent that keeps a mean of where it has been."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

import dovetail as dt

from .optimizer import Group, Optimizer, Parameters, State, checked, number

__all__ = ["ASGD"]


def _rounded(rate: float) -> float:
    """A rate as PyTorch keeps it from step to step, as float32: states and steps are the same."""
    return float(np.float32(rate))


class ASGD(Optimizer):
    """Steps against the gradient, and a mean of the parameters beside them.

    The mean of a parameter is `state[p]["ax"]`: all of it until step `t0`, the mean from there on.
    That of float16 and bfloat16 parameters is float32, of what steps give before it is rounded.
    `lambd`: how fast parameters decay; `alpha`: how fast the rate falls, lr / (1 + lambd * lr *
    step) ** alpha. `weight_decay`, `maximize`: as Adam's.
    Raises: ArgumentError for numbers that are out of range.
    Source: Polyak and Juditsky, Acceleration of stochastic approximation by averaging (1992).

    >>> import dovetail as dt
    >>> w = dt.ones(2, device="reference").requires_grad_()
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
    ) -> None:
        options = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, options)

    def _check(self, group: Group) -> None:
        checked(
            self._name, group, lr=0.0, weight_decay=0.0, lambd=-math.inf, alpha=-math.inf,
            t0=-math.inf,
        )  # fmt: skip

    def _names(self, group: Group) -> tuple[str, ...]:
        return ("ax",)

    def _options(self, group: Group) -> Hashable:
        return bool(group["maximize"]), group["weight_decay"] != 0

    def _begun(self, group: Group, p: dt.Tensor) -> State:
        return {**super()._begun(group, p), "eta": _rounded(number(group["lr"])), "mu": 1.0}

    def _counted(self, group: Group, kept: State) -> State:
        step, lr = kept["step"] + 1.0, number(group["lr"])
        slower = (1.0 + number(group["lambd"]) * lr * step) ** number(group["alpha"])
        mean = 1.0 / max(1.0, step - number(group["t0"]))
        return {"step": step, "eta": _rounded(lr / slower), "mu": _rounded(mean)}

    def _numbers(self, group: Group, step: float, kept: State) -> tuple[float, ...]:
        eta, mu = kept["eta"], kept["mu"]
        left = 1.0 - number(group["lambd"]) * eta
        return eta, mu, 1.0 - mu, left, number(group["weight_decay"])

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, *kept: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return what a parameter and its mean become."""
        maximize, decays = options
        eta, mu, stay, left, decay = numbers
        g = -g if maximize else g
        g = g + p * decay if decays else g
        p = p * left - g * eta
        return p, p * mu + kept[0] * stay
