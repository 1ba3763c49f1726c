"""Functions of networks, composed of tensor operations, with PyTorch's names and defaults.

Parameters that have one meaning in all of them:

- `input`, `input1`, `input2`: the arguments of the function.
- `target`: the desired values of the input of a loss.
- `weight`, `bias`: the factors and the addends that a layer learns; the factors of a loss.
- `dim`: the axis, counted from the end if it is negative.
- `training`: True in training; otherwise nothing is random, and no running statistic is updated.
- `inplace`: write the result into the input and return the input. If gradients are recorded, the
  input is not changed, and the result is a new tensor.
- `reduction`: "mean" or "sum" of losses, or "none" for a loss of each; others raise ArgumentError.
- `size_average`, `reduce`: PyTorch's older flags. If one is given, it replaces `reduction`:
  reduce=False is "none", size_average=False "sum", all else "mean".
- `kernel_size`, `stride`, `padding`, `dilation`: of windows, an int for all axes or one for each:
  the number of elements; the distance of windows; the number of elements before and after the
  input; the distance of a window's elements.
- `ceil_mode`: include windows that begin within the input and end beyond it.
- `output_size`: the sizes of the result along the axes that a function changes.
- `return_indices`: also return a tensor of the elements' indices in the input.
- `groups`: the number of equal parts of the channels; a convolution does not combine parts.
"""

from typing import TYPE_CHECKING

from dovetail.extend import publish_all

from ..call_errors import explain_all
from ..missing_names import make_module_getattr
from . import (
    activations,
    adaptive,
    attention,
    classes,
    convolution,
    ctc,
    distances,
    dropouts,
    embeddings,
    losses,
    multi_head,
    normalization,
    pooling,
    recurrent,
    resampling,
    score_functions,
    softmax_functions,
    weight_products,
)
from .activations import *
from .adaptive import *
from .attention import *
from .classes import *
from .convolution import *
from .ctc import *
from .distances import *
from .dropouts import *
from .embeddings import *
from .losses import *
from .multi_head import *
from .normalization import *
from .pooling import *
from .precision import widen_functions
from .recurrent import *
from .resampling import *
from .score_functions import *
from .softmax_functions import *
from .weight_products import *

__all__: list[str] = []
__all__ += activations.__all__
__all__ += adaptive.__all__
__all__ += softmax_functions.__all__
__all__ += attention.__all__
__all__ += score_functions.__all__
__all__ += classes.__all__
__all__ += convolution.__all__
__all__ += ctc.__all__
__all__ += distances.__all__
__all__ += dropouts.__all__
__all__ += embeddings.__all__
__all__ += losses.__all__
__all__ += multi_head.__all__
__all__ += normalization.__all__
__all__ += pooling.__all__
__all__ += weight_products.__all__
__all__ += recurrent.__all__
__all__ += resampling.__all__

for _module in (
    activations,
    adaptive,
    softmax_functions,
    attention,
    score_functions,
    classes,
    convolution,
    ctc,
    distances,
    dropouts,
    embeddings,
    losses,
    multi_head,
    normalization,
    pooling,
    weight_products,
    recurrent,
    resampling,
):
    globals().update(widen_functions(_module))
explain_all(globals(), __all__)
publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("nn.functional")
