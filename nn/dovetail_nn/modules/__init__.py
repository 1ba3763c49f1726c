"""Layers, and what modules are made of: what their modules' own `__all__` say."""

from . import activations, containers, linear, module, parameter, shapes
from .activations import *
from .containers import *
from .linear import *
from .module import *
from .parameter import *
from .shapes import *

__all__ = [
    *activations.__all__,
    *containers.__all__,
    *linear.__all__,
    *module.__all__,
    *parameter.__all__,
    *shapes.__all__,
]
