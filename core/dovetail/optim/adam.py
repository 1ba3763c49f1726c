"""Adam and its variants."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import dovetail as dt

from .optimizer import (
    Group,
    Optimizer,
    Parameters,
    State,
    check_betas,
    check_minimums,
    choose,
    number,
    one_minus_power,
)

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "SparseAdam"]

Betas = tuple[float, float]


class _Moments(Optimizer):
    """The common base of Adam and its variants: `betas`, `eps` and `weight_decay`."""

    def _check(self, group: Group) -> None:
        """Raise ArgumentError for a negative option, or betas outside of [0, 1)."""
        check_minimums(self._name, group, lr=0.0, eps=0.0, weight_decay=0.0)
        check_betas(self._name, group)

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of the means of the gradient and of its square."""
        return "exp_avg", "exp_avg_sq"

    def _options(self, group: Group) -> Hashable:
        """Return the rule's switches: maximize, weight decay, decoupled decay, amsgrad."""
        return (
            bool(group["maximize"]),
            bool(group["weight_decay"] != 0),
            bool(group.get("decoupled_weight_decay")),
            bool(group.get("amsgrad")),
        )

    def _common_numbers(self, group: Group) -> tuple[float, ...]:
        """Return (1 - b1, b2, 1 - b2, the decay, the factor of decoupled decay, eps)."""
        b1, b2 = map(number, group["betas"])
        decay = number(group["weight_decay"])
        shrink = 1.0 - number(group["lr"]) * decay
        return 1.0 - b1, b2, 1.0 - b2, decay, shrink, number(group["eps"])


def _apply_decay(
    options: tuple[bool, bool, bool, bool], decay: float, shrink: float, p: dt.Tensor, g: dt.Tensor
) -> tuple[dt.Tensor, dt.Tensor]:
    """Return parameter and gradient after weight decay; the gradient is negated for `maximize`."""
    maximize, decays, decoupled, _ = options
    g = -g if maximize else g
    if decays and decoupled:
        return p * shrink, g
    return p, g + p * decay if decays else g


class Adam(_Moments):
    """The Adam optimizer: bias-corrected running means of the gradient and its square.

    - `betas`: the weights of the old mean of the gradient and of its square, at each step.
    - `eps`: is added to the root of the second mean, by which the first one is divided.
    - `weight_decay`: the multiple of the parameter that is added to its gradient.
    - `amsgrad`: use the greatest second mean so far.
    - `maximize`: go up the gradient.
    - `decoupled_weight_decay`: True multiplies parameters by 1 - lr * weight_decay instead, as
      `AdamW` does.

    Raises: ArgumentError for numbers that are out of range.
    See also: `AdamW`, `NAdam`, `RAdam`, `SGD`.
    Source: Kingma and Ba, Adam (2015); Reddi et al., On the convergence of Adam (2018).

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.Adam([w], lr=0.1)
    >>> w.sum().backward()
    >>> opt.step()
    >>> [round(v, 4) for v in w.tolist()]
    [0.9, 0.9]
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
        master_weights: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, options, master_weights)

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of both means and, for amsgrad, of the maximum of the second."""
        more = ("max_exp_avg_sq",) if group["amsgrad"] else ()
        return ("exp_avg", "exp_avg_sq", *more)

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return the common numbers, lr / (1 - b1**step), and (1 - b2**step)**-0.5."""
        b1, b2 = map(number, group["betas"])
        rate = number(group["lr"]) / one_minus_power(b1, step)
        return (*self._common_numbers(group), rate, one_minus_power(b2, step) ** -0.5)

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, *kept: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return the new parameter, both means and, for amsgrad, the maximum of the second one."""
        m_weight, b2, v_weight, decay, shrink, eps, rate, correction = numbers
        p, g = _apply_decay(options, decay, shrink, p, g)
        m, v, *greatest = kept
        m = m + (g - m) * m_weight
        v = v * b2 + g * g * v_weight
        greatest = [dt.maximum(x, v) for x in greatest]
        root = dt.sqrt(greatest[0] if greatest else v)
        return (p - m * rate / (root * correction + eps), m, v, *greatest)


class AdamW(Adam):
    """Adam with decoupled weight decay: parameters shrink by lr * weight_decay at each step.

    - `betas`: the weights of the old mean of the gradient and of its square, at each step.
    - `eps`: is added to the root of the second mean, by which the first one is divided.
    - `weight_decay`: each step first multiplies the parameter by 1 - lr * weight_decay.
    - `amsgrad`: use the greatest second mean so far.

    See also: `Adam`, `SGD`.
    Source: Loshchilov and Hutter, Decoupled weight decay (2019).

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.AdamW([w], lr=0.1, weight_decay=0.5)
    >>> w.sum().backward()
    >>> opt.step()
    >>> [round(v, 4) for v in w.tolist()]
    [0.85, 0.85]
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        master_weights: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
            master_weights=master_weights,
        )


class SparseAdam(Adam):
    """Adam for sparse gradients: only the rows of the gradient, and their means, change.

    - `betas`: the weights of the old mean of the gradient and of its square, at each step.
    - `eps`: is added to the root of the second mean.

    A dense gradient changes all rows.

    >>> import dovetail as dt
    >>> table = dt.ones((3, 2)).requires_grad_()
    >>> opt = dt.optim.SparseAdam([table], lr=0.5)
    >>> dt.nn.functional.embedding(dt.asarray([1, 1]), table, sparse=True).sum().backward()
    >>> opt.step()
    >>> [[round(v, 4) for v in row] for row in table.tolist()]
    [[1.0, 1.0], [0.5, 0.5], [1.0, 1.0]]
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
        *,
        master_weights: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, maximize=maximize, master_weights=master_weights)

    def _check_rows(self, group: Group, g: dt.Tensor) -> None:
        """Raise LayoutError if a sparse gradient does not consist of rows in the COO layout."""
        self._check_layout(g)

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return Adam's numbers with eps times the second correction."""
        *common, eps, rate, correction = super()._rule_numbers(group, step, state)
        return (*common, eps * correction, rate, correction)  # eps is added before the correction


class Adamax(_Moments):
    """Adam with a decaying maximum of the gradient's magnitude in place of the second mean.

    - `betas`: the weight of the old mean of the gradient, and the decay of the maximum, at each
      step.
    - `eps`: is added to the gradient's magnitude before the maximum.

    See also: `Adam`, `AdamW`.
    Source: Kingma and Ba, Adam (2015), section 7.

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.Adamax([w], lr=0.1)
    >>> w.sum().backward()
    >>> opt.step()
    >>> [round(v, 4) for v in w.tolist()]
    [0.9, 0.9]
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
        master_weights: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, options, master_weights)

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of the mean and of the decaying maximum."""
        return "exp_avg", "exp_inf"

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return the common numbers, followed by lr / (1 - b1**step)."""
        rate = number(group["lr"]) / one_minus_power(number(group["betas"][0]), step)
        return (*self._common_numbers(group), rate)

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, *kept: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return the new parameter, its mean and its maximum."""
        m_weight, b2, _, decay, shrink, eps, rate = numbers
        p, g = _apply_decay(options, decay, shrink, p, g)
        m, greatest = kept
        m = m + (g - m) * m_weight
        greatest = dt.maximum(greatest * b2, dt.abs(g) + eps)
        return p - m * rate / greatest, m, greatest


class NAdam(_Moments):
    """Adam with Nesterov's momentum.

    - `betas`: the weights of the old mean of the gradient and of its square, at each step.
    - `eps`: is added to the root of the second mean.
    - `momentum_decay`: the rate at which the momentum grows to betas[0].
    - `decoupled_weight_decay`: True multiplies parameters by 1 - lr * weight_decay instead, as
      `AdamW` does.

    See also: `Adam`, `AdamW`.
    Source: Dozat, Incorporating Nesterov momentum into Adam (2016).

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.NAdam([w], lr=0.1)
    >>> w.sum().backward()
    >>> opt.step()
    >>> all(v < 1 for v in w.tolist())
    True
    """

    numbers_kept = ("mu_product",)

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        master_weights: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, options, master_weights)

    def _check(self, group: Group) -> None:
        """Raise ArgumentError for a negative option, or betas outside of [0, 1)."""
        super()._check(group)
        check_minimums(self._name, group, momentum_decay=0.0)

    def _initial_state(self, group: Group, p: dt.Tensor) -> State:
        """Return Adam's state and `mu_product` 1, the product of all momentums."""
        return {**super()._initial_state(group, p), "mu_product": 1.0}

    def _momentum(self, group: Group, step: float) -> float:
        """Return b1 * (1 - 0.96**(step * momentum_decay) / 2)."""
        b1: float = number(group["betas"][0])
        return b1 * (1.0 - 0.5 * float(0.96 ** (step * number(group["momentum_decay"]))))

    def _advanced_numbers(self, group: Group, state: State) -> State:
        """Return the next step and the product of all momentums up to it."""
        step = state["step"] + 1.0
        return {"step": step, "mu_product": state["mu_product"] * self._momentum(group, step)}

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return the common numbers, the rates of gradient and mean, and 1 / (1 - b2**step)."""
        mu, next_mu = self._momentum(group, step), self._momentum(group, step + 1.0)
        product, lr = state["mu_product"] * mu, number(group["lr"])
        correction = 1.0 / (1.0 - number(group["betas"][1]) ** step)
        rates = lr * (1.0 - mu) / (1.0 - product), lr * next_mu / (1.0 - product * next_mu)
        return (*self._common_numbers(group), *rates, correction)

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, *kept: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return the new parameter and its two means."""
        m_weight, b2, v_weight, decay, shrink, eps, g_rate, m_rate, correction = numbers
        p, g = _apply_decay(options, decay, shrink, p, g)
        m, v = kept
        m = m + (g - m) * m_weight
        v = v * b2 + g * g * v_weight
        return p - (g * g_rate + m * m_rate) / (dt.sqrt(v * correction) + eps), m, v


class RAdam(_Moments):
    """Adam that uses only the first mean while the variance of the second one is too large.

    - `betas`: the weights of the old mean of the gradient and of its square, at each step.
    - `eps`: is added to the root of the second mean.
    - `decoupled_weight_decay`: True multiplies parameters by 1 - lr * weight_decay instead, as
      `AdamW` does.

    See also: `Adam`, `AdamW`.
    Source: Liu et al., On the variance of the adaptive learning rate (2020).

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.RAdam([w], lr=0.1)
    >>> w.sum().backward()
    >>> opt.step()
    >>> [round(v, 4) for v in w.tolist()]
    [0.9, 0.9]
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        master_weights: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, options, master_weights)

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return the common numbers and two rates, one of which is 0: plain or rectified."""
        b1, b2 = map(number, group["betas"])
        rate = number(group["lr"]) / one_minus_power(b1, step)
        correction = one_minus_power(b2, step)
        end = 2.0 / (1.0 - b2) - 1.0
        length = end - 2.0 * step * b2**step / correction
        is_plain = length <= 5.0
        if is_plain is True:
            return (*self._common_numbers(group), rate, 0.0)
        shown = choose(is_plain, end, length)  # the factor is not defined for short lengths
        rectified = (shown - 4) * (shown - 2) * end / ((end - 4) * (end - 2) * shown)
        adapted = rate * rectified**0.5 * correction**0.5
        rates = choose(is_plain, rate, 0.0), choose(is_plain, 0.0, adapted)
        return (*self._common_numbers(group), *rates)

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, *kept: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return the new parameter and its two means."""
        m_weight, b2, v_weight, decay, shrink, eps, plain, rectified = numbers
        p, g = _apply_decay(options, decay, shrink, p, g)
        m, v = kept
        m = m + (g - m) * m_weight
        v = v * b2 + g * g * v_weight
        return p - m * (rectified / (dt.sqrt(v) + eps) + plain), m, v
