"""Networks, `dt.nn`: layers and functions, with PyTorch's names and defaults.

`dt.nn.functional` contains the functions, `dt.nn.init` initialisers, and `dt.nn.utils` functions of
all parameters of a module. Related packages: `dt.optim` (optimisers), `dt.data` (loaders),
`dt.distributions`, and `dt.onnx` (exchange with other libraries).
"""

from typing import TYPE_CHECKING

from dovetail.extend import publish_all

from . import functional, init, model_summary, modules, torch_modules, utils
from .missing_names import make_module_getattr
from .model_summary import *
from .modules import *
from .torch_modules import *

__all__: list[str] = ["functional", "init", "utils"]
__all__ += model_summary.__all__
__all__ += modules.__all__
__all__ += torch_modules.__all__

publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("nn")
