"""Networks: layers, and what is used with them. `dt.nn`; names and defaults are PyTorch's.

`dt.nn.functional` has the functions, `dt.nn.init` initialisers, `dt.nn.utils` what is done with all
parameters of a module; `dt.optim` the optimisers, `dt.data` loaders, `dt.distributions`
distributions, `dt.onnx` the exchange with other libraries.
"""

from typing import TYPE_CHECKING

from . import functional, init, modules, utils
from .missing_names import refused
from .modules import *

__all__: list[str] = ["functional", "init", "utils"]
__all__ += modules.__all__

if not TYPE_CHECKING:
    __getattr__ = refused("nn")
