"""Learning-rate schedules of optimisers, with PyTorch's names and numbers.

A schedule writes `group["lr"]`. Steps captured by `dt.jit` read it at each call.
"""

from typing import TYPE_CHECKING

from ..nn.missing_names import refused
from .cyclic_lr import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from .schedules import (
    ChainedScheduler,
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
)

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

if not TYPE_CHECKING:
    __getattr__ = refused("optim.lr_scheduler")
