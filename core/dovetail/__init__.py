"""dovetail: tensors whose devices are pip packages. `import dovetail as dt`.

Names follow the Python array API standard, then PyTorch. See https://data-apis.org/array-api/2025.12/.
"""

# ruff: noqa: A004 - the standard's names shadow Python's in a namespace that is used as `dt.sum`
from __future__ import annotations

import importlib.metadata
import math
from typing import NoReturn

from . import linalg, memory, methods, plugins, random, random
from .creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    get_default_dtype,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from .cumulative import cumulative_prod, cumulative_sum, diff
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
from .elementwise import (
    abs,
    acos,
    acosh,
    add,
    allclose,
    array_equal,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    cbrt,
    ceil,
    clip,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    isclose,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    log_softmax,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    positive,
    pow,
    reciprocal,
    relu,
    remainder,
    round,
    rsqrt,
    sigmoid,
    sign,
    signbit,
    sin,
    sinh,
    softmax,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
    where,
)
from .errors import (
    ArgumentError,
    AxisError,
    CompileError,
    DeviceError,
    DovetailError,
    DTypeError,
    FallbackError,
    IndexOutOfRange,
    InternalError,
    LayoutError,
    NotYetAttribute,
    NotYetError,
    OutOfMemoryError,
    PluginError,
    ReadOnlyError,
    ShapeError,
    UnavailableError,
    ValueOverflow,
)
from .explain import explain
from .indexing import (
    argwhere,
    index_add,
    nonzero,
    scatter,
    searchsorted,
    take,
    take_along_axis,
)
from .interop import array_namespace_info as __array_namespace_info__
from .interop import from_dlpack
from .layout import sparse_coo, strided
from .linalg import matmul, matrix_transpose, outer, reproducible, tensordot, vecdot
from .manipulation import (
    as_strided,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    contiguous,
    copy,
    expand_dims,
    flatten,
    flip,
    moveaxis,
    permute_dims,
    ravel,
    repeat,
    reshape,
    roll,
    split,
    squeeze,
    stack,
    swapaxes,
    tile,
    transpose,
    unstack,
)
from .plugins import devices
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
from .streams import Event, Stream, current_stream, default_stream, stream, synchronize
from .tensor import Tensor, eager, evaluate

e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None
__array_api_version__ = "2025.12"
__version__ = importlib.metadata.version("dovetail")


def __getattr__(name: str) -> NoReturn:
    methods.refuse("dt", name)
    raise AttributeError(f"module 'dovetail' has no attribute {name!r}")
