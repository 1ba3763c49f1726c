"""Layers, and what modules are made of: what their modules' own `__all__` say."""

from . import (
    activations,
    containers,
    dropout,
    embedding,
    linear,
    losses,
    module,
    normalization,
    parameter,
    shapes,
)
from .activations import *
from .containers import *
from .dropout import *
from .embedding import *
from .linear import *
from .losses import *
from .module import *
from .normalization import *
from .parameter import *
from .shapes import *

__all__ = [
    *activations.__all__,
    *containers.__all__,
    *dropout.__all__,
    *embedding.__all__,
    *linear.__all__,
    *losses.__all__,
    *module.__all__,
    *normalization.__all__,
    *parameter.__all__,
    *shapes.__all__,
]
