"""Functions of networks: PyTorch's names, arguments and defaults; each of tensor operations."""

from . import attention
from .attention import *

__all__ = [*attention.__all__]
