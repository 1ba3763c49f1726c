"""Functions of all parameters of a module, of gradients, and (`rnn`) of sequences."""

from typing import TYPE_CHECKING

from .. import clipping
from ..blame import explain_all
from ..clipping import *
from ..missing_names import refused
from . import rnn, whole
from .whole import *

__all__: list[str] = ["rnn"]
__all__ += clipping.__all__
__all__ += whole.__all__

explain_all(globals(), __all__)

if not TYPE_CHECKING:
    __getattr__ = refused("nn.utils")
