"""Stochastic gradient descent."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import dovetail as dt

from .optimizer import Group, Optimizer, Parameters, State, check_minimums, choose, number

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum.

    - `momentum`, `dampening`: the velocity m becomes momentum * m + (1 - dampening) * gradient; 0
      has no velocity.
    - `weight_decay`: the multiple of the parameter that is added to its gradient.
    - `nesterov`: use Nesterov's momentum: step by gradient + momentum * m.
    - `maximize`: go up the gradient.

    A sparse gradient changes only its rows, and needs momentum 0.
    Raises: ArgumentError for rates below 0, and nesterov without momentum or with dampening.
    See also: `AdamW`, `RMSprop`, `lr_scheduler.OneCycleLR`.
    Source: Sutskever et al., On the importance of initialization and momentum (2013).

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> for _ in range(2):
    ...     opt.zero_grad()
    ...     w.sum().backward()
    ...     opt.step()
    >>> [round(v, 4) for v in w.tolist()]
    [0.71, 0.71]
    """

    counts = False

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
        master_weights: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, options, master_weights)

    def _check(self, group: Group) -> None:
        """Raise ArgumentError for a negative option, or nesterov without plain momentum."""
        check_minimums(
            self._name, group, lr=0.0, momentum=0.0, weight_decay=0.0, dampening=-math.inf
        )
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise dt.ArgumentError(
                f"{self._name}: nesterov=True needs momentum > 0 and dampening=0, got "
                f"momentum={group['momentum']} and dampening={group['dampening']}"
            )

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """Return the name of the momentum, or nothing without one."""
        return ("momentum_buffer",) if group["momentum"] != 0 else ()

    def _options(self, group: Group) -> Hashable:
        """Return the rule's switches: maximize, weight decay, nesterov, momentum."""
        return (
            bool(group["maximize"]),
            bool(group["weight_decay"] != 0),
            bool(group["nesterov"]),
            bool(group["momentum"] != 0),
        )

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return (lr, weight_decay, momentum, gain); gain: 1 at step 1, then 1 - dampening."""
        gain = choose(step == 1.0, 1.0, 1.0 - number(group["dampening"]))
        rates = number(group["lr"]), number(group["weight_decay"])
        return (*rates, number(group["momentum"]), gain)

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, *kept: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return the new parameter, and its momentum if it has one."""
        maximize, decays, nesterov, has_momentum = options
        rate, decay, momentum, gain = numbers
        g = -g if maximize else g
        g = g + p * decay if decays else g
        if not has_momentum:
            return (p - g * rate,)
        m = kept[0] * momentum + g * gain
        g = g + m * momentum if nesterov else m
        return p - g * rate, m

    def _check_rows(self, group: Group, g: dt.Tensor) -> None:
        """Raise LayoutError for a sparse gradient with momentum or decay, or not of COO rows."""
        if group["momentum"] != 0 or group["weight_decay"] != 0:
            super()._check_rows(group, g)
        self._check_layout(g)
