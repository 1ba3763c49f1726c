"""Lion: steps by the sign of a mean of gradients."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import dovetail as dt

from .optimizer import Group, Optimizer, Parameters, State, check_betas, check_minimums, number

__all__ = ["Lion"]


class Lion(Optimizer):
    """Lion: each element steps by lr against the sign of a mean of gradients.

    - `betas`: the weights of the old mean in the sign of the step, and in the new mean.
    - `weight_decay`: each step first multiplies the parameter by 1 - lr * weight_decay.

    Its state is one tensor for each parameter, Adam's two. Rates of a third to a tenth of AdamW's,
    with a decay that is greater by that factor, are a good start.
    Raises: ArgumentError for numbers that are out of range.
    See also: `AdamW`, `Rprop`.
    Source: Chen et al., Symbolic discovery of optimization algorithms (2023), algorithm 2.

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.Lion([w], lr=0.25)
    >>> (w * dt.asarray([5.0, -0.1])).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [0.75, 1.25]
    """

    counts = False

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        master_weights: bool = False,
    ) -> None:
        options = {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options, master_weights)

    def _check(self, group: Group) -> None:
        """Raise ArgumentError for a negative option, or betas outside of [0, 1)."""
        check_minimums(self._name, group, lr=0.0, weight_decay=0.0)
        check_betas(self._name, group)

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """Return the name of the mean of gradients."""
        return ("exp_avg",)

    def _options(self, group: Group) -> Hashable:
        """Return the rule's switch: maximize."""
        return bool(group["maximize"])

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return (lr, 1 - lr * weight_decay, b1, 1 - b1, b2, 1 - b2)."""
        lr, (b1, b2) = number(group["lr"]), map(number, group["betas"])
        return lr, 1.0 - lr * number(group["weight_decay"]), b1, 1.0 - b1, b2, 1.0 - b2

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, m: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return the new parameter and its mean of gradients."""
        rate, shrink, b1, g_weight, b2, m_weight = numbers
        g = -g if options else g
        return p * shrink - dt.sign(m * b1 + g * g_weight) * rate, m * b2 + g * m_weight
