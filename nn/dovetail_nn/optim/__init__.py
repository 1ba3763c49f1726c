"""Optimisers and schedules of their rates: PyTorch's names, arguments and defaults."""

from . import adagrad, adam, lbfgs, lr_scheduler, optimizer, sgd
from .adagrad import *
from .adam import *
from .lbfgs import *
from .optimizer import *
from .sgd import *

__all__ = [
    *adagrad.__all__, *adam.__all__, *lbfgs.__all__, "lr_scheduler", *optimizer.__all__,
    *sgd.__all__,
]  # fmt: skip
