"""Layers, and what modules are made of: what their modules' own `__all__` say."""

from . import attention, module, parameter, recurrent, transformer
from .attention import *
from .module import *
from .parameter import *
from .recurrent import *
from .transformer import *

__all__ = [
    *attention.__all__,
    *module.__all__,
    *parameter.__all__,
    *recurrent.__all__,
    *transformer.__all__,
]
