"""Functions of networks: PyTorch's names, arguments and defaults; each of tensor operations."""

from . import convolution
from .convolution import *

__all__ = [
    *convolution.__all__,
]
