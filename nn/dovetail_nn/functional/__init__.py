"""Functions of networks: PyTorch's names, arguments and defaults; each of tensor operations."""

from . import (
    activations,
    along_axis,
    classes,
    convolution,
    distances,
    dropouts,
    embeddings,
    losses,
    normalization,
    products,
)
from .activations import *
from .along_axis import *
from .classes import *
from .convolution import *
from .distances import *
from .dropouts import *
from .embeddings import *
from .losses import *
from .normalization import *
from .products import *

__all__: list[str] = [
    *activations.__all__,
    *along_axis.__all__,
    *classes.__all__,
    *convolution.__all__,
    *distances.__all__,
    *dropouts.__all__,
    *embeddings.__all__,
    *losses.__all__,
    *normalization.__all__,
    *products.__all__,
]
