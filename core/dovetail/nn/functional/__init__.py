"""Functions of networks, composed of tensor operations, with PyTorch's names and defaults.

What parameters of the same name mean in all of them:

- `input`, `input1`, `input2`: the tensors that a function is of.
- `target`: of losses, what the input should be.
- `weight`, `bias`: what a layer learns: factors, and what is added last; of losses, factors.
- `dim`: the axis, counted from the end where it is negative.
- `training`: whether the network trains; else nothing is drawn, and nothing follows the input.
- `inplace`: whether the result is written into the input and that comes back; where gradients are
  recorded it stays as it is, and the result is a tensor of its own.
- `reduction`: "mean" of losses, "sum", or "none" for a loss of each; another is an ArgumentError.
- `size_average`, `reduce`: what PyTorch once had in its place. Where one of them is given it
  counts: reduce=False is "none", size_average=False "sum", all else "mean".
- `kernel_size`, `stride`, `padding`, `dilation`: of windows, an int for all axes or one for each:
  how many elements they have; how far they are apart; how many elements come before and after the
  input; how far a window's elements are apart.
- `ceil_mode`: whether windows that begin within and end beyond the end count.
- `output_size`: the sizes of the result along the axes that a function changes.
- `return_indices`: whether a tensor of where elements are in the input comes back, too.
- `groups`: into how many parts of equal size channels fall; those of a convolution do not meet.
"""

from typing import TYPE_CHECKING

from ..blame import explain_all
from ..missing_names import refused
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
from .precision import widen_functions
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

for _module in (
    activations, adaptive, along_axis, attention, classes, convolution, distances, dropouts,
    embeddings, losses, multi_head, normalization, pooling, products, recurrent, resampling,
):  # fmt: skip
    globals().update(widen_functions(_module))
explain_all(globals(), __all__)

if not TYPE_CHECKING:
    __getattr__ = refused("nn.functional")
