"""Functions of networks: PyTorch's names, arguments and defaults; each of tensor operations."""

from . import attention, multi_head, recurrent
from .attention import *
from .multi_head import *
from .recurrent import *

__all__ = [*attention.__all__, *multi_head.__all__, *recurrent.__all__]
