"""What is done with all parameters of a module, with gradients, and (`rnn`) with sequences."""

from .. import clipping
from ..clipping import *
from . import rnn, whole
from .whole import *

__all__: list[str] = ["rnn"]
__all__ += clipping.__all__
__all__ += whole.__all__
