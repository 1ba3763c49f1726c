"""Layers and containers."""

from . import (
    activations,
    attention,
    containers,
    convolution,
    dropout,
    embedding,
    linear,
    losses,
    module,
    normalization,
    padding,
    parameter,
    pooling,
    recurrent,
    resampling,
    shapes,
    transformer,
)
from .activations import *
from .attention import *
from .containers import *
from .convolution import *
from .dropout import *
from .embedding import *
from .linear import *
from .losses import *
from .module import *
from .normalization import *
from .padding import *
from .parameter import *
from .pooling import *
from .recurrent import *
from .resampling import *
from .shapes import *
from .transformer import *

__all__: list[str] = []
__all__ += activations.__all__
__all__ += attention.__all__
__all__ += containers.__all__
__all__ += convolution.__all__
__all__ += dropout.__all__
__all__ += embedding.__all__
__all__ += linear.__all__
__all__ += losses.__all__
__all__ += module.__all__
__all__ += normalization.__all__
__all__ += padding.__all__
__all__ += parameter.__all__
__all__ += pooling.__all__
__all__ += recurrent.__all__
__all__ += resampling.__all__
__all__ += shapes.__all__
__all__ += transformer.__all__
