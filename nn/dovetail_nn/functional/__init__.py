"""Functions of networks: PyTorch's names, arguments and defaults; each of tensor operations."""

from . import adaptive, convolution, pooling, resampling
from .adaptive import *
from .convolution import *
from .pooling import *
from .resampling import *

__all__ = [
    *adaptive.__all__,
    *convolution.__all__,
    *pooling.__all__,
    *resampling.__all__,
]
