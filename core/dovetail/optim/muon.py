"""Muon: momentum whose matrices are orthogonalized."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import dovetail as dt
from dovetail.extend import arguments

from .optimizer import Group, Optimizer, Parameters, State, check_minimums, number

__all__ = ["Muon"]

STEPS_MAX = 99


class Muon(Optimizer):
    """Muon: SGD with momentum, whose matrices are replaced by nearly orthogonal ones.

    - `weight_decay`: each step first multiplies the parameter by 1 - lr * weight_decay.
    - `momentum`: the weight of the old mean of the gradient at each step.
    - `nesterov`: orthogonalize the mean of gradient and momentum, in place of the momentum.
    - `ns_coefficients`: the coefficients (a, b, c) of the iteration X = aX + (bS + cSS)X, where S
      is X times its transpose.
    - `eps`: the least norm that the matrix is divided by before the iteration.
    - `ns_steps`: the number of iterations, less than 100.
    - `adjust_lr_fn`: "original" (or None) multiplies lr by the root of max(1, rows / columns),
      "match_rms_adamw" by 0.2 times the root of max(rows, columns): then rates of AdamW fit.

    All parameters must be matrices: those of hidden layers. Use `AdamW` for vectors, embeddings and
    the last layer. The iteration computes in bfloat16, as PyTorch's does.
    Raises: ArgumentError for parameters that are not matrices, and numbers that are out of range.
    See also: `AdamW`, `SGD`.
    Source: Jordan et al., Muon (2024); Liu et al., Muon is scalable for LLM training (2025).

    >>> import dovetail as dt
    >>> w = dt.zeros((2, 2)).requires_grad_()
    >>> opt = dt.optim.Muon([w], lr=1.0)
    >>> (w * dt.asarray([[3.0, 0.0], [0.0, -3.0]])).sum().backward()
    >>> opt.step()
    >>> [[round(v, 1) for v in row] for row in w.tolist()]
    [[-1.1, 0.0], [0.0, 1.1]]
    """

    counts = False

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
        *,
        master_weights: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, options, master_weights)

    def _check(self, group: Group) -> None:
        """Raise ArgumentError for options out of range, and parameters that are not matrices."""
        check_minimums(
            self._name, group, lr=0.0, weight_decay=0.0, momentum=0.0, eps=0.0, ns_steps=0
        )
        if group["ns_steps"] > STEPS_MAX or int(group["ns_steps"]) != group["ns_steps"]:
            raise dt.ArgumentError(
                f"{self._name}: ns_steps must be an integer of at most {STEPS_MAX}, got "
                f"{group['ns_steps']}"
            )
        coefficients = group["ns_coefficients"]
        if not isinstance(coefficients, (tuple, list)) or len(coefficients) != 3:
            raise dt.ArgumentError(
                f"{self._name}: ns_coefficients must be three numbers, got "
                f"{arguments.shown(coefficients)}"
            )
        for x in coefficients:
            arguments.real(self._name, x, "ns_coefficients")
        if group["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise dt.ArgumentError(
                f"{self._name}: adjust_lr_fn must be 'original', 'match_rms_adamw' or None, got "
                f"{group['adjust_lr_fn']!r}"
            )
        for i, p in enumerate(group["params"]):
            if p.ndim != 2:
                raise dt.ArgumentError(
                    f"{self._name}: parameter {i} must be a matrix, got shape {p.shape}; use "
                    "dt.optim.AdamW for the other parameters"
                )

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """Return the name of the momentum."""
        return ("momentum_buffer",)

    def _options(self, group: Group) -> Hashable:
        """Return the switches of the rule and the constants of the iteration."""
        return (
            bool(group["nesterov"]),
            group["adjust_lr_fn"] == "match_rms_adamw",
            tuple(map(number, group["ns_coefficients"])),
            int(group["ns_steps"]),
            number(group["eps"]),
        )

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return (lr, 1 - lr * weight_decay, momentum, 1 - momentum)."""
        lr, momentum = number(group["lr"]), number(group["momentum"])
        return lr, 1.0 - lr * number(group["weight_decay"]), momentum, 1.0 - momentum

    @staticmethod
    def rule(
        options: Any, numbers: Any, p: dt.Tensor, g: dt.Tensor, m: dt.Tensor
    ) -> tuple[dt.Tensor, ...]:
        """Return the new parameter and its momentum."""
        nesterov, matches_adamw, *iteration = options
        rate, shrink, momentum, gain = numbers
        m = m + (g - m) * gain
        update = _orthogonalize(g + (m - g) * momentum if nesterov else m, *iteration)
        rows, columns = p.shape
        if matches_adamw:
            ratio = 0.2 * math.sqrt(max(rows, columns))
        else:
            ratio = math.sqrt(max(1.0, rows / max(1, columns)))
        return p * shrink - update.astype(p.dtype) * ratio * rate, m


def _orthogonalize(
    x: dt.Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> dt.Tensor:
    """Return a matrix with the singular vectors of x and singular values near 1, in bfloat16.

    A Newton-Schulz iteration: each step applies an odd polynomial to the singular values.
    """
    a, b, c = coefficients
    is_tall = x.shape[0] > x.shape[1]
    x = x.astype(dt.bfloat16)
    x = x.T if is_tall else x  # the smaller of the two products with the transpose
    x = x / dt.maximum(dt.linalg.vector_norm(x), eps)  # no singular value is above 1
    for _ in range(steps):
        s = x @ x.T
        x = dt.addmm(x, dt.addmm(s, s, s, beta=b, alpha=c), x, beta=a)
    return x.T if is_tall else x
