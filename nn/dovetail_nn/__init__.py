"""Networks: layers, and what is used with them. `dt.nn`; names and defaults are PyTorch's.

`dt.nn.functional` has the functions, `dt.optim` the optimisers, `dt.data` loaders,
`dt.distributions` distributions, `dt.onnx` the exchange with other libraries.
"""

from . import functional, modules, packing
from .modules import *

__all__ = ["functional", "packing", *modules.__all__]
