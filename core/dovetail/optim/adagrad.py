"""Adagrad, RMSprop and Adadelta: steps scaled by squares of the gradients."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import dovetail as dt

from .optimizer import Group, Optimizer, Parameters, State, check_minimums, filled_like, number

__all__ = ["Adadelta", "Adagrad", "RMSprop"]


class _Scaled(Optimizer):
    """The common base of Adagrad, RMSprop and Adadelta."""

    def _options(self, group: Group) -> Hashable:
        """Return the rule's switches: maximize, weight decay, centered, momentum."""
        return (
            bool(group["maximize"]),
            bool(group["weight_decay"] != 0),
            bool(group.get("centered")),
            bool(group.get("momentum", 0) > 0),
        )


def _add_decay(options: tuple[bool, ...], decay: float, p: dt.Tensor, g: dt.Tensor) -> dt.Tensor:
    """Return the gradient, negated for `maximize`, plus the weight decay."""
    g = -g if options[0] else g
    return g + p * decay if options[1] else g


class Adagrad(_Scaled):
    """Adagrad: divides the gradient by the root of the sum of its squares over all steps.

    - `lr_decay`: the rate is lr / (1 + steps * lr_decay).
    - `weight_decay`: the multiple of the parameter that is added to its gradient; it must be 0 for
      sparse gradients.
    - `initial_accumulator_value`: the initial value of the sum.
    - `eps`: is added to the root of the sum.

    A step with a sparse gradient reads and writes only the rows of the gradient.
    Raises: ArgumentError for numbers that are out of range.
    See also: `RMSprop`, `Adadelta`.
    Source: Duchi, Hazan and Singer, Adaptive subgradient methods (2011).

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.Adagrad([w], lr=0.5)
    >>> w.sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [0.5, 0.5]
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        master_weights: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, options, master_weights)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = self._initial_state(group, p)

    def _check(self, group: Group) -> None:
        """Raise ArgumentError for a negative option."""
        check_minimums(
            self._name,
            group,
            lr=0.0,
            lr_decay=0.0,
            weight_decay=0.0,
            initial_accumulator_value=0.0,
            eps=0.0,
        )

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """Return the name of the sum of squared gradients."""
        return ("sum",)

    def _initial_state(self, group: Group, p: dt.Tensor) -> State:
        """Return step 0 and a sum of squares filled with the group's initial value."""
        return {"step": 0.0, "sum": filled_like(p, group["initial_accumulator_value"])}

    def _rate(self, group: Group, step: float) -> float:
        """Return lr / (1 + (step - 1) * lr_decay)."""
        return number(group["lr"]) / (1.0 + (step - 1.0) * number(group["lr_decay"]))

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return (rate, weight_decay, eps)."""
        return self._rate(group, step), number(group["weight_decay"]), number(group["eps"])

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, *kept: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return the new parameter and its sum of squares."""
        rate, decay, eps = numbers
        g = _add_decay(options, decay, p, g)
        total = kept[0] + g * g
        return p - g * rate / (dt.sqrt(total) + eps), total

    def _check_rows(self, group: Group, g: dt.Tensor) -> None:
        """Raise LayoutError for a sparse gradient with weight decay, or not of COO rows."""
        if group["weight_decay"] != 0:
            raise dt.LayoutError(
                f"{self._name}: weight_decay must be 0 for sparse gradients, because it would "
                "change every row; use p.grad.to_dense() to decay them"
            )
        self._check_layout(g)


class RMSprop(_Scaled):
    """RMSprop: divides the gradient by the root of a moving mean of its squares.

    - `alpha`: the weight of the old mean at each step.
    - `eps`: is added to the root of the mean.
    - `momentum`: the momentum of the scaled gradients.
    - `centered`: subtract the square of the gradient's mean from the mean of squares: scale by the
      deviation.

    Raises: ArgumentError for numbers that are out of range.
    See also: `Adagrad`, `Adam`, `SGD`.
    Source: Tieleman and Hinton, Lecture 6.5 (2012); Graves, Generating sequences (2013).

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.RMSprop([w], lr=0.1)
    >>> w.sum().backward()
    >>> opt.step()
    >>> [round(v, 4) for v in w.tolist()]
    [0.0, 0.0]
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        *,
        master_weights: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, options, master_weights)

    def _check(self, group: Group) -> None:
        """Raise ArgumentError for a negative option."""
        check_minimums(
            self._name, group, lr=0.0, alpha=0.0, eps=0.0, weight_decay=0.0, momentum=0.0
        )

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of the mean of squares and, if used, of momentum and mean."""
        momentum = ("momentum_buffer",) if group["momentum"] > 0 else ()
        mean = ("grad_avg",) if group["centered"] else ()
        return ("square_avg", *momentum, *mean)

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return (lr, weight_decay, eps, momentum, alpha, 1 - alpha)."""
        names = ("lr", "weight_decay", "eps", "momentum", "alpha")
        values = tuple(number(group[n]) for n in names)
        return (*values, 1.0 - values[-1])

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, *kept: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return the new parameter, its mean of squares, and its momentum and mean, if any."""
        rate, decay, eps, momentum, old_weight, new_weight = numbers
        *_, centered, has_momentum = options
        g = _add_decay(options, decay, p, g)
        v = kept[0] * old_weight + g * g * new_weight
        variance, means = v, []
        if centered:
            mean = kept[-1] + (g - kept[-1]) * new_weight
            variance, means = v - mean * mean, [mean]
        scaled = g / (dt.sqrt(variance) + eps)
        if not has_momentum:
            return (p - scaled * rate, v, *means)
        velocity = kept[1] * momentum + scaled
        return (p - velocity * rate, v, velocity, *means)


class Adadelta(_Scaled):
    """Adadelta: scales the gradient by the ratio of the RMS of earlier steps to that of gradients.

    - `lr`: a factor of the steps.
    - `rho`: the weight of the old means at each step.
    - `eps`: is added to both means before their roots.

    Raises: ArgumentError for numbers that are out of range.
    Source: Zeiler, ADADELTA (2012).

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.Adadelta([w])
    >>> w.sum().backward()
    >>> opt.step()
    >>> [round(v, 4) for v in w.tolist()]
    [0.9968, 0.9968]
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
        master_weights: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, options, master_weights)

    def _check(self, group: Group) -> None:
        """Raise ArgumentError for a negative option, or rho above 1."""
        check_minimums(self._name, group, lr=0.0, rho=0.0, eps=0.0, weight_decay=0.0)
        if group["rho"] > 1.0:
            raise dt.ArgumentError(f"{self._name}: rho must be between 0 and 1, got {group['rho']}")

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of the means of squared gradients and of squared steps."""
        return "square_avg", "acc_delta"

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return (lr, weight_decay, eps, rho, 1 - rho)."""
        values = tuple(number(group[n]) for n in ("lr", "weight_decay", "eps", "rho"))
        return (*values, 1.0 - values[-1])

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, *kept: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return the new parameter and its means of squared gradients and squared steps."""
        rate, decay, eps, old_weight, new_weight = numbers
        g = _add_decay(options, decay, p, g)
        v, u = kept
        v = v * old_weight + g * g * new_weight
        step = dt.sqrt(u + eps) / dt.sqrt(v + eps) * g
        return p - step * rate, v, u * old_weight + step * step * new_weight
