"""Options of optimizers, and runs of two libraries next to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.01}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 1e-3, "momentum": 0.5, "maximize": True}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.9), "eps": 1e-3, "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "maximize": True}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.2}),
    ("AdamW", {"lr": 0.01, "amsgrad": True}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {"lr": 0.01}),
    ("RAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("RMSprop", {}),
    ("RMSprop", {"centered": True}),
    ("RMSprop", {"centered": True, "momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"lr": 1e-3, "momentum": 0.5, "alpha": 0.9}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.05, "lambd": 0.1, "alpha": 0.5, "t0": 1.0, "weight_decay": 0.1}),
    ("ASGD", {"maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.3, "etas": (0.4, 1.5), "step_sizes": (0.01, 0.5), "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "weight_decay": 0.1, "rho": 0.8}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.02, "weight_decay": 0.1}),
    ("Adafactor", {"beta2_decay": -0.5, "eps": (1e-3, 0.5), "d": 1.5, "maximize": True}),
]
SHAPES = ((5, 3), (3,), (5, 3), ())


def names(cases: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [f"{name}-{'-'.join(options)}" for name, options in cases]


def values() -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    return [draw.normal(size=s) for s in SHAPES]


def parameters(dtype: dt.DType = dt.float64) -> list[dt.Tensor]:
    return [dt.asarray(a, dtype=dtype).requires_grad_() for a in values()]


def loss(lib: Any, params: list[Any]) -> Any:
    """Return a different, non-convex loss of each parameter."""
    return sum(((lib.sin(p * 3) + p * p) * (i + 1)).sum() for i, p in enumerate(params))


def stepper(optimizer: Any, params: list[Any], lib: Any = dt) -> Callable[[], Any]:
    def step() -> Any:
        optimizer.zero_grad()
        found = loss(lib, params)
        found.backward()
        optimizer.step()
        return found.detach()

    return step


def arrays(params: list[Any]) -> list[np.ndarray]:
    return [p.detach().numpy().copy() for p in params]
