"""Adafactor: second moments of matrices as means of rows and columns."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any

import dovetail as dt
from dovetail.extend import arguments

from .optimizer import Group, Optimizer, Parameters, State, check_minimums, choose, number

__all__ = ["Adafactor"]

_FACTORS = ("row_var", "col_var")


class Adafactor(Optimizer):
    """Adafactor: Adam's second mean of a matrix as the product of two vectors.

    - `lr`: the greatest relative step, which falls as 1 / sqrt(step), and the factor of the decay.
    - `beta2_decay`: the exponent of the weight of a new square, step ** beta2_decay.
    - `eps`: the least root of the second mean, by default the eps of the dtype that the step
      computes in, and the least root mean square of a parameter that scales its steps.
    - `d`: updates with a greater root mean square are scaled down to it.
    - `weight_decay`: each step first multiplies the parameter by 1 - lr * weight_decay.

    The state of an (m, n) matrix has m + n numbers; more axes are a batch of matrices. Parameters
    with fewer axes have a whole second mean.
    Raises: ArgumentError for numbers that are out of range.
    See also: `Adam`, `RMSprop`.
    Source: Shazeer and Stern, Adafactor (2018); its lr and eps are PyTorch's.

    >>> import dovetail as dt
    >>> w = dt.ones((2, 3)).requires_grad_()
    >>> opt = dt.optim.Adafactor([w], lr=0.25)
    >>> w.sum().backward()
    >>> opt.step()
    >>> w.tolist(), opt.state[w]["row_var"].shape
    ([[0.75, 0.75, 0.75], [0.75, 0.75, 0.75]], (2, 1))
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        master_weights: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, options, master_weights)

    def _check(self, group: Group) -> None:
        """Raise ArgumentError for an option that is out of range."""
        check_minimums(self._name, group, lr=0.0, d=1.0, weight_decay=0.0, beta2_decay=-math.inf)
        if number(group["beta2_decay"]) > 0.0:
            raise dt.ArgumentError(
                f"{self._name}: beta2_decay must be at most 0, got {group['beta2_decay']}"
            )
        pair = group["eps"]
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise dt.ArgumentError(
                f"{self._name}: eps must be two numbers, or None and a number, got "
                f"{arguments.shown(pair)}"
            )
        for i, eps in enumerate(pair):
            if i or eps is not None:
                check_minimums(self._name, {f"eps[{i}]": eps}, **{f"eps[{i}]": 0.0})

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of the means of squares: of rows and columns, or of all elements."""
        return (*_FACTORS, "variance")

    def _with_state_names(self, group: Group) -> Iterable[tuple[dt.Tensor, tuple[str, ...]]]:
        """Return pairs of a parameter and the names of its one or two means of squares."""
        return [(p, _FACTORS if p.ndim > 1 else ("variance",)) for p in group["params"]]

    def _state_shape(self, name: str, p: dt.Tensor) -> tuple[int, ...]:
        """Return the shape of a state tensor; a mean keeps its axis, of size 1."""
        if name == "row_var":
            return (*p.shape[:-1], 1)
        return (*p.shape[:-2], 1, *p.shape[-1:]) if name == "col_var" else p.shape

    def _initial_state(self, group: Group, p: dt.Tensor) -> State:
        """Return zeros for the means of squares of a parameter."""
        ((_, names),) = self._with_state_names({"params": [p]})
        dtype, device = p.dtype.compute, p.device
        means = {n: dt.zeros(self._state_shape(n, p), dtype=dtype, device=device) for n in names}
        return {"step": 0.0, **means}

    def _options(self, group: Group) -> Hashable:
        """Return the rule's switches: maximize, the default of the first eps."""
        return bool(group["maximize"]), group["eps"][0] is None

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return (rate, 1 - lr * weight_decay, weight of a square, eps, its square, scale, d)."""
        lr = number(group["lr"])
        greatest = step**-0.5
        rate = choose(lr < greatest, lr, greatest)
        rates = rate, 1.0 - lr * number(group["weight_decay"])
        eps, least_scale = (0.0 if x is None else number(x) for x in group["eps"])
        gain = step ** number(group["beta2_decay"])
        return (*rates, gain, eps, eps * eps, least_scale, number(group["d"]))

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, *means: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return the new parameter and its means of squared gradients."""
        maximize, default_eps = options
        rate, shrink, gain, eps, least_variance, least_scale, d = numbers
        if default_eps:
            eps = dt.finfo(p.dtype).eps
            least_variance = eps * eps
        g = -g if maximize else g
        squares = g * g
        if p.ndim > 1:
            row, column = means
            row = row + (squares.mean(axis=-1, keepdims=True) - row) * gain
            column = column + (squares.mean(axis=-2, keepdims=True) - column) * gain
            means = row, column
            variance = row * column / dt.maximum(row.mean(axis=-2, keepdims=True), eps)
        else:
            (variance,) = means
            variance = variance + (squares - variance) * gain
            means = (variance,)
        update = g * dt.rsqrt(dt.maximum(variance, least_variance))
        # like PyTorch, a NaN scales nothing
        rate = dt.fmax(_root_mean_square(p), least_scale) * rate
        return p * shrink - update * (rate / dt.fmax(_root_mean_square(update) / d, 1.0)), *means


def _root_mean_square(x: dt.Tensor) -> dt.Tensor:
    """Return the root of the mean of the squares of all elements."""
    return dt.sqrt((x * x).mean())
