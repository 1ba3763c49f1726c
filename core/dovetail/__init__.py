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
- `more`, `theirs`: what others take by place, and what they call parameters (`dim`, `keepdim`,
  `input`, `size`): it is taken where it means the same; else the error says what to write.
- `device`, `spec`: "cpu", "opencl:1", ... or a `Device`; None is the default device.

A value of another kind than a parameter takes is an ArgumentTypeError (a TypeError), what is no
tensor a DTypeError, an axis out of range an AxisError. Every error is a DovetailError.
"""

import math
import typing
from importlib import import_module as _import_module

from . import compiled as _compiled  # first: it says where the others are found

# Then NumPy, early: where many imports are on the stack its own are at the end of a chunk of the
# stack, which CPython then maps and unmaps 650 times: 5 % of this import.
from . import arguments as _arguments  # isort: skip  # noqa: F401

with _compiled.Uncollected(is_kept=True):  # these load nearly all
    from . import autograd, fft, func, linalg, memory
    from . import wiring as _wiring  # noqa: F401 - what it assigns
from .functions import methods, random
from .late import late as _fetched_late
from .plugins import registry as plugins

# --- written by tools/faces.py from the `__all__` of the modules ---
# fmt: off
# isort: off
from .autograd import (
    enable_grad, grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad,
    set_grad_enabled,
)
from .backend.naming import device
from .backend.streams import Event, Stream, current_stream, default_stream, stream, synchronize
from .backend.threads import get_num_threads, set_num_threads
from .device import Device, default_device, set_default_device
from .dtypes import (
    DType, bfloat16, bool_ as bool, complex64, complex128, float16, float32, float64, int8, int16,
    int32, int64, uint8, uint16, uint32, uint64,
)
from .engine.lines import debug_lines
from .errors import (
    AnomalyError, ArgumentError, ArgumentTypeError, AxisError, CaptureError, CompileError,
    DTypeError, DeviceError, DovetailError, DovetailWarning, FallbackError, GradientError,
    IndexOutOfRange, InternalError, KernelError, LayoutError, LinAlgError, NotYetAttribute,
    NotYetError, OutOfMemoryError, PluginError, ReadOnlyError, ShapeError, SharingError,
    SlowDeviceWarning, TransformError, UnavailableError, ValueOverflow,
)
from .functions.copies import contiguous, repeat, roll, stack, tile
from .functions.creation import arange, eye, linspace, meshgrid, tril, triu
from .functions.cumulative import cumulative_logsumexp, cumulative_prod, cumulative_sum, diff
from .functions.datatypes import (
    can_cast, finfo, get_default_dtype, iinfo, isdtype, result_type, set_default_dtype,
)
from .functions.einsum import einsum
from .functions.elementwise import (
    abs, acos, acosh, add, allclose, angle, array_equal, asin, asinh, atan, atan2, atanh, beta,
    bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor,
    cbrt, ceil, clip, conj, copysign, cos, cosh, deg2rad, digamma, divide, equal, erf, erfc, erfinv,
    exp, exp2, expm1, floor, floor_divide, gamma, gcd, greater, greater_equal, heaviside, hypot, i0,
    i1, imag, isclose, isfinite, isinf, isnan, lcm, ldexp, less, less_equal, lgamma, log, log1p,
    log2, log10, log_softmax, logaddexp, logical_and, logical_not, logical_or, logical_xor, logit,
    maximum, minimum, multiply, ndtr, ndtri, negative, nextafter, not_equal, positive, rad2deg,
    real, reciprocal, relu, remainder, round, rsqrt, sigmoid, sign, signbit, sin, sinc, sinh,
    softmax, sqrt, square, subtract, tan, tanh, trunc, xlogy, zeta,
)
from .functions.index_writes import index_add, scatter
from .functions.indexing import searchsorted, take, take_along_axis
from .functions.interop import (
    array_namespace_info as __array_namespace_info__, from_blob, from_dlpack,
)
from .functions.linalg import matrix_transpose, outer, reproducible, tensordot, vecdot
from .functions.manipulation import as_strided, broadcast_arrays, broadcast_shapes, flatten, ravel
from .functions.masks import argwhere, nonzero
from .functions.sets import isin, unique_all, unique_counts, unique_inverse, unique_values
from .functions.sorting import argsort, sort, topk
from .functions.statistics import logsumexp, std, var
from .functions.transfer import pin_memory
from .layout import sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from .memory.storage import Storage
from .plugins.registry import devices
from .settings import eager, junk_filled
from .tensor.host import evaluate
from .tensor.print_options import get_printoptions, printoptions, set_printoptions
from .tensor.tensor import Tensor
if typing.TYPE_CHECKING:  # without the names that others have for parameters
    from .functions.shown import (
        all, any, argmax, argmin, asarray, astype, broadcast_to, concat, copy, count_nonzero,
        diagonal, empty, empty_like, expand_dims, flip, full, full_like, matmul, max, mean, min,
        moveaxis, ones, ones_like, permute_dims, pow, prod, reshape, split, squeeze, sum, swapaxes,
        transpose, unstack, where, zeros, zeros_like,
    )
else:
    from .functions.copies import concat, copy
    from .functions.creation import (
        empty, empty_like, full, full_like, ones, ones_like, zeros, zeros_like,
    )
    from .functions.datatypes import astype
    from .functions.elementwise import pow, where
    from .functions.from_values import asarray
    from .functions.linalg import matmul
    from .functions.manipulation import (
        broadcast_to, diagonal, expand_dims, flip, moveaxis, permute_dims, reshape, split, squeeze,
        swapaxes, transpose, unstack,
    )
    from .functions.statistics import (
        all, any, argmax, argmin, count_nonzero, max, mean, min, prod, sum,
    )

_LATE = {  # name -> the module that is loaded when it is first asked for
    "debug_nans": "autograd.nans",
    "vmap": "func.mapping",
    "load_function": "capture.serialize",
    "save_function": "capture.serialize",
    "custom_op": "frontend.custom_op",
    "In": "frontend.dsl",
    "InOut": "frontend.dsl",
    "Out": "frontend.dsl",
    "atomic_add": "frontend.dsl",
    "atomic_and": "frontend.dsl",
    "atomic_max": "frontend.dsl",
    "atomic_min": "frontend.dsl",
    "atomic_or": "frontend.dsl",
    "grid": "frontend.dsl",
    "elementwise": "frontend.elementwise_op",
    "kernel": "frontend.loop_kernel",
    "raw_kernel": "frontend.raw_source",
    "choose": "functions.choosing",
    "piecewise": "functions.choosing",
    "put": "functions.choosing",
    "put_along_axis": "functions.choosing",
    "select": "functions.choosing",
    "vectorize": "functions.choosing",
    "cond": "capture.control_flow",
    "fori_loop": "capture.control_flow",
    "scan": "capture.control_flow",
    "while_loop": "capture.control_flow",
    "append": "functions.editing",
    "block": "functions.editing",
    "compress": "functions.editing",
    "copyto": "functions.editing",
    "delete": "functions.editing",
    "extract": "functions.editing",
    "fill_diagonal": "functions.editing",
    "flatnonzero": "functions.editing",
    "insert": "functions.editing",
    "place": "functions.editing",
    "putmask": "functions.editing",
    "resize": "functions.editing",
    "trim_zeros": "functions.editing",
    "argpartition": "functions.everyday",
    "array_equiv": "functions.everyday",
    "bitwise_count": "functions.everyday",
    "fmax": "functions.everyday",
    "fmin": "functions.everyday",
    "fmod": "functions.everyday",
    "iscomplex": "functions.everyday",
    "isneginf": "functions.everyday",
    "isposinf": "functions.everyday",
    "isreal": "functions.everyday",
    "lexsort": "functions.everyday",
    "logaddexp2": "functions.everyday",
    "matvec": "functions.everyday",
    "partition": "functions.everyday",
    "unwrap": "functions.everyday",
    "vecmat": "functions.everyday",
    "load": "functions.files",
    "save": "functions.files",
    "fromfunction": "functions.grids",
    "geomspace": "functions.grids",
    "indices": "functions.grids",
    "logspace": "functions.grids",
    "mgrid": "functions.grids",
    "ogrid": "functions.grids",
    "bincount": "functions.histograms",
    "digitize": "functions.histograms",
    "histogram": "functions.histograms",
    "histogram2d": "functions.histograms",
    "histogram_bin_edges": "functions.histograms",
    "constant": "capture.jit",
    "jit": "capture.jit",
    "array_split": "functions.joining",
    "atleast_1d": "functions.joining",
    "atleast_2d": "functions.joining",
    "atleast_3d": "functions.joining",
    "column_stack": "functions.joining",
    "dsplit": "functions.joining",
    "dstack": "functions.joining",
    "hsplit": "functions.joining",
    "hstack": "functions.joining",
    "vsplit": "functions.joining",
    "vstack": "functions.joining",
    "average": "functions.moments",
    "corrcoef": "functions.moments",
    "cov": "functions.moments",
    "ptp": "functions.moments",
    "nanargmax": "functions.nan_functions",
    "nanargmin": "functions.nan_functions",
    "nancumprod": "functions.nan_functions",
    "nancumsum": "functions.nan_functions",
    "nanmax": "functions.nan_functions",
    "nanmean": "functions.nan_functions",
    "nanmin": "functions.nan_functions",
    "nanprod": "functions.nan_functions",
    "nanstd": "functions.nan_functions",
    "nansum": "functions.nan_functions",
    "nanvar": "functions.nan_functions",
    "divmod": "functions.number_parts",
    "frexp": "functions.number_parts",
    "modf": "functions.number_parts",
    "nan_to_num": "functions.number_parts",
    "median": "functions.order_statistics",
    "nanmedian": "functions.order_statistics",
    "nanpercentile": "functions.order_statistics",
    "nanquantile": "functions.order_statistics",
    "percentile": "functions.order_statistics",
    "quantile": "functions.order_statistics",
    "diag": "functions.orientation",
    "diag_indices": "functions.orientation",
    "diagflat": "functions.orientation",
    "fliplr": "functions.orientation",
    "flipud": "functions.orientation",
    "rot90": "functions.orientation",
    "trace": "functions.orientation",
    "tri": "functions.orientation",
    "tril_indices": "functions.orientation",
    "triu_indices": "functions.orientation",
    "pad": "functions.padding",
    "fold": "functions.patches",
    "unfold": "functions.patches",
    "diag_indices_from": "functions.places",
    "ix_": "functions.places",
    "mask_indices": "functions.places",
    "ravel_multi_index": "functions.places",
    "tril_indices_from": "functions.places",
    "triu_indices_from": "functions.places",
    "unravel_index": "functions.places",
    "cat": "functions.ported",
    "cross": "functions.products",
    "dot": "functions.products",
    "inner": "functions.products",
    "kron": "functions.products",
    "vdot": "functions.products",
    "convolve": "functions.sampled",
    "correlate": "functions.sampled",
    "ediff1d": "functions.sampled",
    "gradient": "functions.sampled",
    "interp": "functions.sampled",
    "polyval": "functions.sampled",
    "trapezoid": "functions.sampled",
    "vander": "functions.sampled",
    "intersect1d": "functions.set_operations",
    "setdiff1d": "functions.set_operations",
    "setxor1d": "functions.set_operations",
    "union1d": "functions.set_operations",
    "expit": "functions.special",
    "polygamma": "functions.special",
    "element_size": "functions.strides",
    "index_to_pos": "functions.strides",
    "is_complex": "functions.strides",
    "is_contiguous": "functions.strides",
    "is_floating_point": "functions.strides",
    "numel": "functions.strides",
    "strides_from_shape": "functions.strides",
    "unique": "functions.unique",
    "bartlett": "functions.windows",
    "blackman": "functions.windows",
    "hamming": "functions.windows",
    "hann": "functions.windows",
    "kaiser": "functions.windows",
    "explain": "insight.explain",
    "draw_graph": "insight.graph",
    "profile": "insight.profile",
    "show": "insight.show",
    "poly": "linalg.polynomials",
    "polyadd": "linalg.polynomials",
    "polyder": "linalg.polynomials",
    "polyfit": "linalg.polynomials",
    "polyint": "linalg.polynomials",
    "polymul": "linalg.polynomials",
    "polysub": "linalg.polynomials",
    "roots": "linalg.polynomials",
}
if typing.TYPE_CHECKING:
    from .autograd.nans import debug_nans
    from .func.mapping import vmap
    from .capture.serialize import load_function, save_function
    from .frontend.custom_op import custom_op
    from .frontend.dsl import (
        In, InOut, Out, atomic_add, atomic_and, atomic_max, atomic_min, atomic_or, grid,
    )
    from .frontend.elementwise_op import elementwise
    from .frontend.loop_kernel import kernel
    from .frontend.raw_source import raw_kernel
    from .functions.choosing import choose, piecewise, put, put_along_axis, select, vectorize
    from .capture.control_flow import cond, fori_loop, scan, while_loop
    from .functions.editing import (
        append, block, compress, copyto, delete, extract, fill_diagonal, flatnonzero, insert, place,
        putmask, resize, trim_zeros,
    )
    from .functions.everyday import (
        argpartition, array_equiv, bitwise_count, fmax, fmin, fmod, iscomplex, isneginf, isposinf,
        isreal, lexsort, logaddexp2, matvec, partition, unwrap, vecmat,
    )
    from .functions.files import load, save
    from .functions.grids import fromfunction, geomspace, indices, logspace, mgrid, ogrid
    from .functions.histograms import (
        bincount, digitize, histogram, histogram2d, histogram_bin_edges,
    )
    from .capture.jit import constant, jit
    from .functions.joining import (
        array_split, atleast_1d, atleast_2d, atleast_3d, column_stack, dsplit, dstack, hsplit,
        hstack, vsplit, vstack,
    )
    from .functions.moments import average, corrcoef, cov, ptp
    from .functions.nan_functions import (
        nanargmax, nanargmin, nancumprod, nancumsum, nanmax, nanmean, nanmin, nanprod, nanstd,
        nansum, nanvar,
    )
    from .functions.number_parts import divmod, frexp, modf, nan_to_num
    from .functions.order_statistics import (
        median, nanmedian, nanpercentile, nanquantile, percentile, quantile,
    )
    from .functions.orientation import (
        diag, diag_indices, diagflat, fliplr, flipud, rot90, trace, tri, tril_indices, triu_indices,
    )
    from .functions.padding import pad
    from .functions.patches import fold, unfold
    from .functions.places import (
        diag_indices_from, ix_, mask_indices, ravel_multi_index, tril_indices_from,
        triu_indices_from, unravel_index,
    )
    from .functions.ported import cat
    from .functions.products import cross, dot, inner, kron, vdot
    from .functions.sampled import (
        convolve, correlate, ediff1d, gradient, interp, polyval, trapezoid, vander,
    )
    from .functions.set_operations import intersect1d, setdiff1d, setxor1d, union1d
    from .functions.special import expit, polygamma
    from .functions.strides import (
        element_size, index_to_pos, is_complex, is_contiguous, is_floating_point, numel,
        strides_from_shape,
    )
    from .functions.unique import unique
    from .functions.windows import bartlett, blackman, hamming, hann, kaiser
    from .insight.explain import explain
    from .insight.graph import draw_graph
    from .insight.profile import profile
    from .insight.show import show
    from .linalg.polynomials import (
        poly, polyadd, polyder, polyfit, polyint, polymul, polysub, roots,
    )

__all__ = [
    "AnomalyError", "ArgumentError", "ArgumentTypeError", "AxisError", "CaptureError",
    "CompileError", "DType", "DTypeError", "Device", "DeviceError", "DovetailError",
    "DovetailWarning", "Event", "FallbackError", "GradientError", "In", "InOut", "IndexOutOfRange",
    "InternalError", "KernelError", "LayoutError", "LinAlgError", "NotYetAttribute", "NotYetError",
    "Out", "OutOfMemoryError", "PluginError", "ReadOnlyError", "ShapeError", "SharingError",
    "SlowDeviceWarning", "Storage", "Stream", "Tensor", "TransformError", "UnavailableError",
    "ValueOverflow", "__array_namespace_info__", "abs", "acos", "acosh", "add", "all", "allclose",
    "angle", "any", "append", "arange", "argmax", "argmin", "argpartition", "argsort", "argwhere",
    "array_equal", "array_equiv", "array_split", "as_strided", "asarray", "asin", "asinh", "astype",
    "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "atomic_add", "atomic_and",
    "atomic_max", "atomic_min", "atomic_or", "autograd", "average", "bartlett", "beta", "bfloat16",
    "bincount", "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman", "block", "bool",
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "cat", "cbrt", "ceil",
    "choose", "clip", "column_stack", "complex64", "complex128", "compress", "concat", "cond",
    "conj", "constant", "contiguous", "convolve", "copy", "copysign", "copyto", "corrcoef",
    "correlate", "cos", "cosh", "count_nonzero", "cov", "cross", "cumulative_logsumexp",
    "cumulative_prod", "cumulative_sum", "current_stream", "custom_op", "debug_lines", "debug_nans",
    "default_device", "default_stream", "deg2rad", "delete", "device", "devices", "diag",
    "diag_indices", "diag_indices_from", "diagflat", "diagonal", "diff", "digamma", "digitize",
    "divide", "divmod", "dot", "draw_graph", "dsplit", "dstack", "e", "eager", "ediff1d", "einsum",
    "element_size", "elementwise", "empty", "empty_like", "enable_grad", "equal", "erf", "erfc",
    "erfinv", "evaluate", "exp", "exp2", "expand_dims", "expit", "explain", "expm1", "extract",
    "eye", "fft", "fill_diagonal", "finfo", "flatnonzero", "flatten", "flip", "fliplr", "flipud",
    "float16", "float32", "float64", "floor", "floor_divide", "fmax", "fmin", "fmod", "fold",
    "fori_loop", "frexp", "from_blob", "from_dlpack", "fromfunction", "full", "full_like", "func",
    "gamma", "gcd", "geomspace", "get_default_dtype", "get_num_threads", "get_printoptions", "grad",
    "gradient", "greater", "greater_equal", "grid", "hamming", "hann", "heaviside", "histogram",
    "histogram2d", "histogram_bin_edges", "hsplit", "hstack", "hypot", "i0", "i1", "iinfo", "imag",
    "index_add", "index_to_pos", "indices", "inf", "inference_mode", "inner", "insert", "int8",
    "int16", "int32", "int64", "interp", "intersect1d", "is_complex", "is_contiguous",
    "is_floating_point", "is_grad_enabled", "is_inference_mode_enabled", "isclose", "iscomplex",
    "isdtype", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "ix_", "jit",
    "junk_filled", "kaiser", "kernel", "kron", "lcm", "ldexp", "less", "less_equal", "lexsort",
    "lgamma", "linalg", "linspace", "load", "load_function", "log", "log1p", "log2", "log10",
    "log_softmax", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or",
    "logical_xor", "logit", "logspace", "logsumexp", "mask_indices", "matmul", "matrix_transpose",
    "matvec", "max", "maximum", "mean", "median", "memory", "meshgrid", "mgrid", "min", "minimum",
    "modf", "moveaxis", "multiply", "nan", "nan_to_num", "nanargmax", "nanargmin", "nancumprod",
    "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod",
    "nanquantile", "nanstd", "nansum", "nanvar", "ndtr", "ndtri", "negative", "newaxis",
    "nextafter", "no_grad", "nonzero", "not_equal", "numel", "ogrid", "ones", "ones_like", "outer",
    "pad", "partition", "percentile", "permute_dims", "pi", "piecewise", "pin_memory", "place",
    "plugins", "poly", "polyadd", "polyder", "polyfit", "polygamma", "polyint", "polymul",
    "polysub", "polyval", "positive", "pow", "printoptions", "prod", "profile", "ptp", "put",
    "put_along_axis", "putmask", "quantile", "rad2deg", "random", "ravel", "ravel_multi_index",
    "raw_kernel", "real", "reciprocal", "relu", "remainder", "repeat", "reproducible", "reshape",
    "resize", "result_type", "roll", "roots", "rot90", "round", "rsqrt", "save", "save_function",
    "scan", "scatter", "searchsorted", "select", "set_default_device", "set_default_dtype",
    "set_grad_enabled", "set_num_threads", "set_printoptions", "setdiff1d", "setxor1d", "show",
    "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "softmax", "sort", "sparse_bsr",
    "sparse_coo", "sparse_csc", "sparse_csr", "split", "sqrt", "square", "squeeze", "stack", "std",
    "stream", "strided", "strides_from_shape", "subtract", "sum", "swapaxes", "synchronize", "take",
    "take_along_axis", "tan", "tanh", "tensordot", "tile", "topk", "trace", "transpose",
    "trapezoid", "tri", "tril", "tril_indices", "tril_indices_from", "trim_zeros", "triu",
    "triu_indices", "triu_indices_from", "trunc", "uint8", "uint16", "uint32", "uint64", "unfold",
    "union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "unravel_index", "unstack", "unwrap", "vander", "var", "vdot", "vecdot", "vecmat", "vectorize",
    "vmap", "vsplit", "vstack", "where", "while_loop", "xlogy", "zeros", "zeros_like", "zeta",
]
# fmt: on
# isort: on
# --- as far as here -------------------------------------------------------------------------------

e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None
__array_api_version__ = "2025.12"
__version__ = "0.1.0"  # as in pyproject.toml: reading the metadata would take 16 ms
_PACKAGES = {  # loaded on first access: they are written with `dt` itself
    "checkpoint", "data", "distributions", "nn", "onnx", "optim", "sparse", "tensorboard",
}  # fmt: skip


def __dir__() -> list[str]:  # no submodules, which importing them puts here
    return [*__all__, "__array_api_version__", "__config__", "__version__"]


if typing.TYPE_CHECKING:
    from . import checkpoint as checkpoint
    from . import data as data
    from . import distributions as distributions
    from . import nn as nn
    from . import onnx as onnx
    from . import optim as optim
    from . import sparse as sparse
    from . import tensorboard as tensorboard
    from .sparse import sparse_coo_tensor as sparse_coo_tensor

    __config__: dict[str, object]
else:

    def __getattr__(name):
        if name in _PACKAGES:
            return _import_module(f".{name}", __name__)  # the import makes it an attribute
        if name in _LATE:
            return _fetched_late(__name__, _LATE)(name)
        if name == "__config__":  # how this dovetail was built: "hot_path" is compiled, or python
            return _compiled.config()
        methods.refuse("dt", name)
        return methods.added("functions", name, "module 'dovetail' has no attribute")
