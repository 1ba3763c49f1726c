"""Resilient backpropagation: steps by the sign of the gradient."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import dovetail as dt

from .optimizer import (
    Group,
    Optimizer,
    Parameters,
    State,
    check_minimums,
    check_pair,
    filled_like,
    number,
)

__all__ = ["Rprop"]


class Rprop(Optimizer):
    """Rprop: steps by the gradient's sign, with a step size for each element.

    - `lr`: the first step size of each element.
    - `etas`: factors of the step size after the sign changed, and after it did not; after a change
      the element skips one step.
    - `step_sizes`: the least and the greatest step size.
    - `maximize`: go up the gradient.

    Use it with gradients of a whole data set: those of batches change their signs at random.
    Raises: ArgumentError for factors that are not in (0, 1) and above 1, and rates below 0.
    Source: Riedmiller and Braun, A direct adaptive method (1993).

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.Rprop([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist(), opt.state[w]["step_size"].tolist()
    ([0.5, 0.5], [0.5, 0.5])
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        master_weights: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, options, master_weights)

    def _check(self, group: Group) -> None:
        """Raise ArgumentError for a negative lr, or unless 0 < etas[0] < 1 < etas[1]."""
        check_minimums(self._name, group, lr=0.0)
        shrink, grow = check_pair(self._name, group, "etas")
        check_pair(self._name, group, "step_sizes")
        if not 0.0 < shrink < 1.0 < grow:
            raise dt.ArgumentError(
                f"{self._name}: the first of etas must be between 0 and 1, the second greater "
                f"than 1, got {group['etas']}"
            )

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of the previous gradient and of the step sizes."""
        return "prev", "step_size"

    def _options(self, group: Group) -> Hashable:
        """Return the rule's switch: maximize."""
        return (bool(group["maximize"]),)

    def _initial_state(self, group: Group, p: dt.Tensor) -> State:
        """Return zeros for the previous gradient, and step sizes of lr."""
        state = super()._initial_state(group, p)
        return {**state, "step_size": filled_like(p, number(group["lr"]))}

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return both etas and the limits of step sizes."""
        return tuple(number(n) for n in (*group["etas"], *group["step_sizes"]))

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, *kept: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return the new parameter, its gradient (0 where its sign changed) and its step sizes."""
        shrink, grow, low, high = numbers
        last_g, sizes = kept
        g = -g if options[0] else g
        sign = last_g * g
        sizes = dt.where(sign > 0, sizes * grow, dt.where(sign < 0, sizes * shrink, sizes))
        sizes = dt.where(sizes < low, low, dt.where(sizes > high, high, sizes))
        g = dt.where(sign < 0, 0.0, g)
        return p - dt.sign(g) * sizes, g, sizes
