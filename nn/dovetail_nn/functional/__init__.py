"""Functions of networks: PyTorch's names, arguments and defaults; each of tensor operations."""

from . import attention, recurrent
from .attention import *
from .recurrent import *

__all__ = [*attention.__all__, *recurrent.__all__]
