"""Functions of networks: PyTorch's names, arguments and defaults; each of tensor operations."""

from . import (
    activations,
    adaptive,
    along_axis,
    attention,
    classes,
    convolution,
    distances,
    dropouts,
    embeddings,
    losses,
    multi_head,
    normalization,
    pooling,
    products,
    recurrent,
    resampling,
)
from .activations import *
from .adaptive import *
from .along_axis import *
from .attention import *
from .classes import *
from .convolution import *
from .distances import *
from .dropouts import *
from .embeddings import *
from .losses import *
from .multi_head import *
from .normalization import *
from .pooling import *
from .products import *
from .recurrent import *
from .resampling import *

__all__: list[str] = []
__all__ += activations.__all__
__all__ += adaptive.__all__
__all__ += along_axis.__all__
__all__ += attention.__all__
__all__ += classes.__all__
__all__ += convolution.__all__
__all__ += distances.__all__
__all__ += dropouts.__all__
__all__ += embeddings.__all__
__all__ += losses.__all__
__all__ += multi_head.__all__
__all__ += normalization.__all__
__all__ += pooling.__all__
__all__ += products.__all__
__all__ += recurrent.__all__
__all__ += resampling.__all__
