"""dovetail: tensors whose devices are pip packages. `import dovetail as dt`.

Names follow the Python array API standard, then PyTorch; https://data-apis.org/array-api/2025.12/.

What parameters of the same name mean in every function:

- `x`, `x1`, `x2`: tensors. Beside a tensor, NumPy arrays, lists and Python numbers are operands
  too; they go to its device, and numbers take its dtype, or change its kind at most.
- `axis`: an int, counted from the end where it is negative; where several are possible a tuple
  of them, or None for all.
- `keepdims`: whether axes that a reduction takes away stay, with size 1.
- `out`: a tensor of exactly the result's shape, dtype and device that the result is written into;
  it is what comes back. It has no gradient.
- `shape`: an int, or a tuple of ints.
- `dtype`: a dovetail dtype, its name, a NumPy dtype, or Python's bool, int or float.
- `device`, `spec`: "cpu", "opencl:1", ... or a `Device`; None is the default device.

A value of another kind than a parameter takes is an ArgumentTypeError (a TypeError), what is no
tensor a DTypeError, an axis out of range an AxisError. Every error is a DovetailError.
"""

import math
import typing

from . import compiled as _compiled  # first: it says where the others are found

from . import autograd, memory  # isort: skip
from .autograd.engine import METHODS as _METHODS_OF_GRADIENTS
from .functions import linalg, methods, random
from .late import late as _fetched_late
from .plugins import registry as plugins

# --- written by .ci/faces.py from the `__all__` of the modules ------------------------------------
# fmt: off
# isort: off
from .autograd import enable_grad, grad, is_grad_enabled, no_grad, set_grad_enabled
from .backend.streams import Event, Stream, current_stream, default_stream, stream, synchronize
from .device import Device, default_device, device, set_default_device
from .dtypes import (
    DType, bfloat16, bool_ as bool, complex64, complex128, float16, float32, float64, int8, int16,
    int32, int64, uint8, uint16, uint32, uint64,
)
from .errors import (
    ArgumentError, ArgumentTypeError, AxisError, CaptureError, CompileError, DTypeError,
    DeviceError, DovetailError, DovetailWarning, FallbackError, GradientError, IndexOutOfRange,
    InternalError, LayoutError, NotYetAttribute, NotYetError, OutOfMemoryError, PluginError,
    ReadOnlyError, ShapeError, SharingError, UnavailableError, ValueOverflow,
)
from .functions.copies import concat, contiguous, copy, repeat, roll, stack, tile
from .functions.creation import (
    arange, empty, empty_like, eye, full, full_like, get_default_dtype, linspace, meshgrid, ones,
    ones_like, tril, triu, zeros, zeros_like,
)
from .functions.cumulative import cumulative_prod, cumulative_sum, diff
from .functions.datatypes import astype, can_cast, finfo, iinfo, isdtype, result_type
from .functions.einsum import einsum
from .functions.elementwise import (
    abs, acos, acosh, add, allclose, array_equal, asin, asinh, atan, atan2, atanh, bitwise_and,
    bitwise_invert, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor, cbrt, ceil,
    clip, copysign, cos, cosh, divide, equal, erf, erfc, exp, exp2, expm1, floor, floor_divide,
    greater, greater_equal, hypot, isclose, isfinite, isinf, isnan, less, less_equal, log, log1p,
    log2, log10, log_softmax, logaddexp, logical_and, logical_not, logical_or, logical_xor, maximum,
    minimum, multiply, negative, nextafter, not_equal, positive, pow, reciprocal, relu, remainder,
    round, rsqrt, sigmoid, sign, signbit, sin, sinh, softmax, sqrt, square, subtract, tan, tanh,
    trunc, where,
)
from .functions.from_values import asarray
from .functions.index_writes import index_add, scatter
from .functions.indexing import searchsorted, take, take_along_axis
from .functions.interop import array_namespace_info as __array_namespace_info__, from_dlpack
from .functions.linalg import matmul, matrix_transpose, outer, reproducible, tensordot, vecdot
from .functions.manipulation import (
    as_strided, broadcast_arrays, broadcast_shapes, broadcast_to, diagonal, expand_dims, flatten,
    flip, moveaxis, permute_dims, ravel, reshape, split, squeeze, swapaxes, transpose, unstack,
)
from .functions.masks import argwhere, nonzero
from .functions.sets import isin, unique_all, unique_counts, unique_inverse, unique_values
from .functions.sorting import argsort, sort, topk
from .functions.statistics import (
    all, any, argmax, argmin, count_nonzero, logsumexp, max, mean, min, prod, std, sum, var,
)
from .functions.transfer import pin_memory
from .layout import sparse_coo, strided
from .plugins.registry import devices
from .settings import eager
from .tensor.host import evaluate
from .tensor.tensor import Tensor

_LATE = {  # name -> the module that is loaded when it is first asked for
    "load_function": "functions.captured_files",
    "save_function": "functions.captured_files",
    "cond": "functions.control_flow",
    "fori_loop": "functions.control_flow",
    "scan": "functions.control_flow",
    "while_loop": "functions.control_flow",
    "jit": "functions.jit",
    "explain": "insight.explain",
    "profile": "insight.profile",
}
if typing.TYPE_CHECKING:
    from .functions.captured_files import load_function, save_function
    from .functions.control_flow import cond, fori_loop, scan, while_loop
    from .functions.jit import jit
    from .insight.explain import explain
    from .insight.profile import profile

__all__ = [
    "ArgumentError", "ArgumentTypeError", "AxisError", "CaptureError", "CompileError", "DType",
    "DTypeError", "Device", "DeviceError", "DovetailError", "DovetailWarning", "Event",
    "FallbackError", "GradientError", "IndexOutOfRange", "InternalError", "LayoutError",
    "NotYetAttribute", "NotYetError", "OutOfMemoryError", "PluginError", "ReadOnlyError",
    "ShapeError", "SharingError", "Stream", "Tensor", "UnavailableError", "ValueOverflow",
    "__array_namespace_info__", "abs", "acos", "acosh", "add", "all", "allclose", "any", "arange",
    "argmax", "argmin", "argsort", "argwhere", "array_equal", "as_strided", "asarray", "asin",
    "asinh", "astype", "atan", "atan2", "atanh", "autograd", "bfloat16", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "bool", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "cbrt", "ceil",
    "clip", "complex64", "complex128", "concat", "cond", "contiguous", "copy", "copysign", "cos",
    "cosh", "count_nonzero", "cumulative_prod", "cumulative_sum", "current_stream",
    "default_device", "default_stream", "device", "devices", "diagonal", "diff", "divide", "e",
    "eager", "einsum", "empty", "empty_like", "enable_grad", "equal", "erf", "erfc", "evaluate",
    "exp", "exp2", "expand_dims", "explain", "expm1", "eye", "finfo", "flatten", "flip", "float16",
    "float32", "float64", "floor", "floor_divide", "fori_loop", "from_dlpack", "full", "full_like",
    "get_default_dtype", "grad", "greater", "greater_equal", "hypot", "iinfo", "index_add", "inf",
    "int8", "int16", "int32", "int64", "is_grad_enabled", "isclose", "isdtype", "isfinite", "isin",
    "isinf", "isnan", "jit", "less", "less_equal", "linalg", "linspace", "load_function", "log",
    "log1p", "log2", "log10", "log_softmax", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "logsumexp", "matmul", "matrix_transpose", "max", "maximum",
    "mean", "memory", "meshgrid", "min", "minimum", "moveaxis", "multiply", "nan", "negative",
    "newaxis", "nextafter", "no_grad", "nonzero", "not_equal", "ones", "ones_like", "outer",
    "permute_dims", "pi", "pin_memory", "plugins", "positive", "pow", "prod", "profile", "random",
    "ravel", "reciprocal", "relu", "remainder", "repeat", "reproducible", "reshape", "result_type",
    "roll", "round", "rsqrt", "save_function", "scan", "scatter", "searchsorted",
    "set_default_device", "set_grad_enabled", "sigmoid", "sign", "signbit", "sin", "sinh",
    "softmax", "sort", "sparse_coo", "split", "sqrt", "square", "squeeze", "stack", "std", "stream",
    "strided", "subtract", "sum", "swapaxes", "synchronize", "take", "take_along_axis", "tan",
    "tanh", "tensordot", "tile", "topk", "transpose", "tril", "triu", "trunc", "uint8", "uint16",
    "uint32", "uint64", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack",
    "var", "vecdot", "where", "while_loop", "zeros", "zeros_like",
]
# fmt: on
# isort: on
# --- as far as here -------------------------------------------------------------------------------

e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None
__array_api_version__ = "2025.12"
__version__ = "0.1.0"  # as in pyproject.toml: reading the metadata would take 16 ms

methods.install(_METHODS_OF_GRADIENTS)


def __dir__() -> list[str]:  # no submodules, which importing them puts here
    return [*__all__, "__array_api_version__", "__config__", "__version__"]


if typing.TYPE_CHECKING:  # what the layouts that are shipped with dovetail add
    import dovetail_sparse as sparse  # noqa: F401
    from dovetail_sparse import sparse_coo_tensor as sparse_coo_tensor

    __config__: dict[str, object]
else:

    def __getattr__(name):
        if name in _LATE:
            return _fetched_late(__name__, _LATE)(name)
        if name == "__config__":  # how this dovetail was built: "hot_path" is compiled, or python
            return _compiled.config()
        methods.refuse("dt", name)
        return methods.added("functions", name, "module 'dovetail' has no attribute")
