"""Layers, and what modules are made of: what their modules' own `__all__` say."""

from . import convolution, module, padding, parameter, pooling, resampling
from .convolution import *
from .module import *
from .padding import *
from .parameter import *
from .pooling import *
from .resampling import *

__all__ = [
    *convolution.__all__,
    *module.__all__,
    *padding.__all__,
    *parameter.__all__,
    *pooling.__all__,
    *resampling.__all__,
]
