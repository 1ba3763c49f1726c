"""Data sets, samplers and the loader, with PyTorch's names, arguments and defaults."""

from typing import TYPE_CHECKING

from dovetail.extend import publish_all

from ..nn.call_errors import explain_all
from ..nn.missing_names import make_module_getattr
from . import collate, datasets, loader, progress, samplers, workers
from .collate import *
from .datasets import *
from .loader import *
from .progress import *
from .samplers import *
from .workers import *

__all__: list[str] = []
__all__ += collate.__all__
__all__ += datasets.__all__
__all__ += loader.__all__
__all__ += progress.__all__
__all__ += samplers.__all__
__all__ += workers.__all__

explain_all(globals(), __all__)
publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("data")
