"""dovetail: tensors whose devices are pip packages. `import dovetail as dt`; see docs/."""

# ruff: noqa: F401, A004
from __future__ import annotations

import math

from . import memory, methods, plugins
from .creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from .datatypes import astype, can_cast, finfo, iinfo, isdtype, result_type
from .device import Device, default_device, device, set_default_device
from .dtypes import (
    DType,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .dtypes import bool_ as bool
from .elementwise import *  # noqa: F403
from .errors import *  # noqa: F403
from .explain import explain
from .interop import from_dlpack
from .manipulation import (
    as_strided,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    contiguous,
    copy,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    split,
    squeeze,
    stack,
    swapaxes,
    tile,
    unstack,
)
from .profile import profile
from .statistics import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    logsumexp,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from .tensor import Tensor, eager, evaluate

e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None
__version__ = "0.1.0"
