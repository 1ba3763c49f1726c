# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.optim.lr_scheduler`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from dovetail.optim.lr_scheduler import ChainedScheduler as ChainedScheduler
from dovetail.optim.lr_scheduler import ConstantLR as ConstantLR
from dovetail.optim.lr_scheduler import CosineAnnealingLR as CosineAnnealingLR
from dovetail.optim.lr_scheduler import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from dovetail.optim.lr_scheduler import CyclicLR as CyclicLR
from dovetail.optim.lr_scheduler import ExponentialLR as ExponentialLR
from dovetail.optim.lr_scheduler import LRScheduler as LRScheduler
from dovetail.optim.lr_scheduler import LambdaLR as LambdaLR
from dovetail.optim.lr_scheduler import LinearLR as LinearLR
from dovetail.optim.lr_scheduler import MultiStepLR as MultiStepLR
from dovetail.optim.lr_scheduler import MultiplicativeLR as MultiplicativeLR
from dovetail.optim.lr_scheduler import OneCycleLR as OneCycleLR
from dovetail.optim.lr_scheduler import PolynomialLR as PolynomialLR
from dovetail.optim.lr_scheduler import ReduceLROnPlateau as ReduceLROnPlateau
from dovetail.optim.lr_scheduler import SequentialLR as SequentialLR
from dovetail.optim.lr_scheduler import StepLR as StepLR
def __getattr__(name: str) -> Any: ...
