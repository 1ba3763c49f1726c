"""Layers, and what modules are made of: what their modules' own `__all__` say."""

from . import module, parameter, recurrent
from .module import *
from .parameter import *
from .recurrent import *

__all__ = [*module.__all__, *parameter.__all__, *recurrent.__all__]
