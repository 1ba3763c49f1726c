"""Functions of all parameters of a module, of gradients, and (`rnn`) of sequences."""

from typing import TYPE_CHECKING

from .. import clipping
from ..call_errors import explain_all
from ..clipping import *
from ..missing_names import refused
from . import parameter_functions, rnn
from .parameter_functions import *

__all__: list[str] = ["rnn"]
__all__ += clipping.__all__
__all__ += parameter_functions.__all__

explain_all(globals(), __all__)

if not TYPE_CHECKING:
    __getattr__ = refused("nn.utils")
