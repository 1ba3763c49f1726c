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
    begun,
    checked,
    number,
    two_numbers,
)

__all__ = ["Rprop"]


class Rprop(Optimizer):
    """Steps by the gradient's sign, each element with a step of its own size.

    `etas`: factors of the size where the sign has changed, and where it has not; after a change an
    element stays where it is once. `step_sizes`: between which bounds sizes are; they begin with
    lr. `maximize`: goes up. It is for whole data sets: batches change signs by chance.
    Raises: ArgumentError for factors that are not in (0, 1) and above 1, and rates below 0.
    Source: Riedmiller and Braun, A direct adaptive method (1993).

    >>> import dovetail as dt
    >>> w = dt.ones(2, device="reference").requires_grad_()
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
    ) -> None:
        options = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, options)

    def _check(self, group: Group) -> None:
        checked(self._name, group, lr=0.0)
        less, more = two_numbers(self._name, group, "etas")
        two_numbers(self._name, group, "step_sizes")
        if not 0.0 < less < 1.0 < more:
            raise dt.ArgumentError(
                f"{self._name}: etas are {group['etas']}; the first is in (0, 1), the other above 1"
            )

    def _names(self, group: Group) -> tuple[str, ...]:
        return "prev", "step_size"

    def _options(self, group: Group) -> Hashable:
        return (bool(group["maximize"]),)

    def _begun(self, group: Group, p: dt.Tensor) -> State:
        kept = super()._begun(group, p)
        return {**kept, "step_size": begun(p, number(group["lr"]))}

    def _numbers(self, group: Group, step: float, kept: State) -> tuple[float, ...]:
        return tuple(number(n) for n in (*group["etas"], *group["step_sizes"]))

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, *kept: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """What a parameter, its last gradient and its steps become."""
        less, more, low, high = numbers
        before, sizes = kept
        g = -g if options[0] else g
        turn = before * g
        sizes = dt.where(turn > 0, sizes * more, dt.where(turn < 0, sizes * less, sizes))
        sizes = dt.where(sizes < low, low, dt.where(sizes > high, high, sizes))
        g = dt.where(turn < 0, 0.0, g)
        return p - dt.sign(g) * sizes, g, sizes
