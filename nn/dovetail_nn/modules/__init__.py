"""Layers, and what modules are made of: what their modules' own `__all__` say."""

from . import module, parameter
from .module import *
from .parameter import *

__all__ = [*module.__all__, *parameter.__all__]
