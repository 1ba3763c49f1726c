"""Optimisers and learning-rate schedules, with PyTorch's names, arguments and defaults."""

from typing import TYPE_CHECKING

from dovetail.extend import publish_all

from ..nn.missing_names import NotCallableModule, make_module_getattr
from . import (
    adafactor,
    adagrad,
    adam,
    averaged,
    lbfgs,
    lion,
    lr_scheduler,
    muon,
    optimizer,
    rprop,
    sgd,
    swa_utils,
)
from .adafactor import *
from .adagrad import *
from .adam import *
from .averaged import *
from .lbfgs import *
from .lion import *
from .muon import *
from .optimizer import *
from .rprop import *
from .sgd import *

__all__: list[str] = ["lr_scheduler", "swa_utils"]
__all__ += adafactor.__all__
__all__ += adagrad.__all__
__all__ += adam.__all__
__all__ += averaged.__all__
__all__ += lbfgs.__all__
__all__ += lion.__all__
__all__ += muon.__all__
__all__ += optimizer.__all__
__all__ += rprop.__all__
__all__ += sgd.__all__

publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    for _module in (
        adafactor,
        adagrad,
        adam,
        lbfgs,
        lion,
        muon,
        rprop,
        sgd,
    ):  # PyTorch's modules, and Optax' functions
        _module.__class__ = NotCallableModule
    __getattr__ = make_module_getattr("optim")
