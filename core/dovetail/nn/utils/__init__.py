"""Functions of all parameters of a module, of gradients, and (`rnn`) of sequences."""

from typing import TYPE_CHECKING

from dovetail.extend import publish_all

from .. import clipping
from ..call_errors import explain_all
from ..clipping import *
from ..missing_names import make_module_getattr
from . import older_norms, parameter_functions, parametrizations, parametrize, rnn
from .older_norms import *
from .parameter_functions import *

__all__: list[str] = ["parametrizations", "parametrize", "rnn"]
__all__ += clipping.__all__
__all__ += older_norms.__all__
__all__ += parameter_functions.__all__

explain_all(globals(), __all__)
publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("nn.utils")
