"""Learning-rate schedules of optimisers, with PyTorch's names and numbers.

A schedule writes `group["lr"]`. Steps captured by `dt.jit` read it at each call.
"""

from typing import TYPE_CHECKING

from dovetail.extend import publish_all

from ..nn.missing_names import make_module_getattr
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

publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("optim.lr_scheduler")
