"""dovetail: tensors whose devices are pip packages. `import dovetail as dt`.

`dir(dt)` lists all names, `help(dt.sum)` explains one, and the documentation has them in groups:

- tensors: `Tensor`, `tensor`, `asarray`, `zeros`, `arange`, dtypes such as `float32`, `random`
- functions: `exp`, `add`, `where`, `sum`, `matmul`, `reshape`, `concat`, `take`, `sort`; most of
  them are methods, too; `linalg`, `fft`, `sparse`
- gradients and transforms: `grad`, `no_grad`, `autograd`, `func`, `vmap`, `jit`, `cond`, `scan`
- networks: `nn`, `optim`, `amp`, `data`, `metrics`, `distributions`, `checkpoint`, `tensorboard`,
  `onnx`
- several processes: `parallel`; arrays larger than memory: `chunked`
- devices and memory: `device`, `devices`, `Stream`, `memory`, `comm`, `plugins`
- kernels of one's own: `elementwise`, `kernel`, `custom_op`, `raw_kernel`, `extension`
- what happens: `explain`, `profile`, `show`, `draw_graph`, `debug_nans`

Names follow the Python array API standard, then NumPy, then PyTorch:
https://data-apis.org/array-api/2025.12/. A parameter has the same meaning in every function:

- `x`, `x1`, `x2`: tensors. Beside a tensor, NumPy arrays, lists and Python numbers are operands
  too; they go to its device, and numbers take its dtype, or change its kind at most.
- `axis`: an int, counted from the end where it is negative; where several are possible a tuple
  of them, or None for all.
- `keepdims`: True keeps the axes that a reduction removes, with size 1.
- `out`: a tensor of exactly the result's shape, dtype and device. The result is written into it,
  and the function returns it. It has no gradient.
- `shape`: an int, or a tuple of ints.
- `dtype`: a dovetail dtype, its name, a NumPy dtype, or Python's bool, int or float.
- `device`, `spec`: "cpu", "opencl:1", ... or a `Device`; None is the default device.

Names of other libraries (`dim`, `keepdim`, `input`, `size`) are accepted if the meaning is the
same; else the error names the way to write it. An argument of a wrong kind raises
ArgumentTypeError (a TypeError), an object that is no tensor DTypeError, an axis out of range
AxisError. Every error is a DovetailError.
"""

import typing as _typing
from functools import reduce as _reduce
from importlib import import_module as _import_module
from math import e, inf, nan, pi
from sys import _getframe
from sys import modules as _modules

from . import build_info as _build_info

if _typing.TYPE_CHECKING:
    from . import autograd, fft, func, linalg, memory, plugins, random

# --- written by tools/faces.py from the `__all__` of the modules ---
# fmt: off
# isort: off
if _typing.TYPE_CHECKING:
    from .autograd import (
        enable_grad, grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad,
        set_grad_enabled,
    )
    from .autograd.nan_checks import debug_nans
    from .backend.naming import device
    from .backend.streams import Event, Stream, current_stream, default_stream, stream, synchronize
    from .backend.threads import get_num_threads, set_num_threads
    from .capture.control_flow import cond, fori_loop, scan, while_loop
    from .capture.jit import constant, jit
    from .capture.serialize import load_function, save_function
    from .device_class import Device, default_device, set_default_device
    from .dtypes import (
        DType, bfloat16, bool_ as bool, complex64, complex128, float16, float32, float64, int8,
        int16, int32, int64, uint8, uint16, uint32, uint64,
    )
    from .engine.provenance import record_lines
    from .errors import (
        AnomalyError, ArgumentError, ArgumentTypeError, AxisError, CaptureError, CompileError,
        DTypeError, DeviceError, DovetailError, DovetailWarning, FallbackError, GradientError,
        InternalError, KernelError, LayoutError, LinAlgError, OutOfMemoryError, OutOfRangeError,
        PluginError, ReadOnlyError, ShapeError, SharingError, SlowDeviceWarning, TransformError,
        UnavailableError, UnknownFunctionError, UnsupportedError, ValueOverflowError,
    )
    from .fft.short_time import istft, stft
    from .frontend.custom_op import custom_op
    from .frontend.dsl import (
        In, InOut, Out, atomic_add, atomic_and, atomic_max, atomic_min, atomic_or, grid,
    )
    from .frontend.elementwise_op import elementwise
    from .frontend.loop_kernel import kernel
    from .frontend.raw_source import raw_kernel
    from .func.vectorize import vmap
    from .functions.autocast import autocast, get_autocast_dtype, is_autocast_enabled
    from .functions.creation.constructors import arange, eye, linspace, meshgrid, tril, triu
    from .functions.creation.from_values import array
    from .functions.creation.grids import fromfunction, geomspace, indices, logspace, mgrid, ogrid
    from .functions.creation.windows import (
        bartlett, bartlett_window, blackman, blackman_window, hamming, hamming_window, hann,
        hann_window, kaiser, kaiser_window,
    )
    from .functions.datatypes import (
        can_cast, finfo, get_default_dtype, iinfo, isdtype, result_type, set_default_dtype,
    )
    from .functions.elementwise.composed import (
        array_equiv, bitwise_count, fmax, fmin, fmod, iscomplex, isneginf, isposinf, isreal,
        logaddexp2,
    )
    from .functions.elementwise.decompose import divmod, frexp, modf, nan_to_num
    from .functions.elementwise.op_functions import (
        abs, acos, acosh, add, allclose, angle, array_equal, asin, asinh, atan, atan2, atanh, beta,
        bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_or, bitwise_right_shift,
        bitwise_xor, cbrt, ceil, clip, conj, copysign, cos, cosh, deg2rad, digamma, divide, equal,
        erf, erfc, erfinv, exp, exp2, expm1, floor, floor_divide, gamma, gcd, greater,
        greater_equal, heaviside, hypot, i0, i1, imag, isclose, isfinite, isinf, isnan, lcm, ldexp,
        less, less_equal, lgamma, log, log1p, log2, log10, logaddexp, logical_and, logical_not,
        logical_or, logical_xor, logit, maximum, minimum, multiply, ndtr, ndtri, negative,
        nextafter, not_equal, positive, rad2deg, real, reciprocal, relu, remainder, round, rsqrt,
        sigmoid, sign, signbit, sin, sinc, sinh, sqrt, square, subtract, tan, tanh, trunc, xlogy,
        zeta,
    )
    from .functions.elementwise.special_functions import expit, polygamma
    from .functions.evaluation import evaluate
    from .functions.indexing.index_arrays import (
        diag_indices_from, ix_, mask_indices, ravel_multi_index, tril_indices_from,
        triu_indices_from, unravel_index,
    )
    from .functions.indexing.index_reads import searchsorted
    from .functions.indexing.index_reductions import (
        index_copy, index_fill, index_reduce, masked_scatter, scatter_add, scatter_reduce,
        segment_max, segment_mean, segment_min, segment_prod, segment_sum,
    )
    from .functions.indexing.index_writes import index_add, scatter
    from .functions.indexing.insert_delete import (
        block, copyto, extract, fill_diagonal, flatnonzero, place, putmask, resize,
    )
    from .functions.indexing.masks import argwhere, nonzero
    from .functions.indexing.selection import choose, piecewise, put, select, vectorize
    from .functions.io.files import load, load_metadata, save
    from .functions.io.interop import (
        array_namespace_info as __array_namespace_info__, from_blob, from_dlpack,
    )
    from .functions.io.transfer import pin_memory
    from .functions.products.einsum import einsum
    from .functions.products.matrix_products import (
        matrix_transpose, outer, tensordot, vendor_products,
    )
    from .functions.products.vector_products import dot, inner, kron, matvec, vdot, vecmat
    from .functions.reductions.covariance import corrcoef, cov
    from .functions.reductions.histograms import (
        bincount, digitize, histogram, histogram2d, histogram_bin_edges,
    )
    from .functions.reductions.numerical import (
        convolve, correlate, ediff1d, interp, polyval, vander,
    )
    from .functions.shape.copies import contiguous, tile
    from .functions.shape.joining import (
        atleast_1d, atleast_2d, atleast_3d, column_stack, dsplit, dstack, hsplit, hstack, vsplit,
        vstack,
    )
    from .functions.shape.manipulation import (
        as_strided, broadcast_arrays, broadcast_shapes, flatten, ravel,
    )
    from .functions.shape.orientation import (
        diag, diag_indices, diagflat, fliplr, flipud, rot90, trace, tri, tril_indices, triu_indices,
    )
    from .functions.shape.padding import pad
    from .functions.shape.patches import fold, unfold
    from .functions.shape.strides import (
        contiguous_strides, element_size, is_complex, is_contiguous, is_floating_point, numel,
        storage_index,
    )
    from .functions.sorting.distinct import (
        isin, unique_all, unique_counts, unique_inverse, unique_values,
    )
    from .functions.sorting.set_operations import intersect1d, setdiff1d, setxor1d, union1d
    from .functions.sorting.stable_sort import sort
    from .functions.torch_functions import (
        addcdiv, addcmul, addmm, addmv, are_deterministic_algorithms_enabled, baddbmm, diag_embed,
        float_power, gather, index_select, is_tensor, lerp, masked_select, multinomial, narrow,
        repeat_interleave, take_along_dim, unflatten, use_deterministic_algorithms,
    )
    from .functions.torch_methods import cat, chunk, masked_fill, t
    from .functions.torch_order_functions import (
        bucketize, cummax, cummin, histc, kthvalue, mode, unique_consecutive,
    )
    from .insight.explain import explain
    from .insight.graph import draw_graph
    from .insight.profile import profile
    from .insight.show import show
    from .layout import sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
    from .linalg.polynomials import (
        poly, polyadd, polyder, polyfit, polyint, polymul, polysub, roots,
    )
    from .linalg.torch_functions import cdist, logdet, renorm
    from .memory.storage import Storage
    from .plugins.registry import devices
    from .settings import eager, fast_math, poison_empty
    from .tensor.print_options import get_printoptions, printoptions, set_printoptions
    from .tensor.tensor import Tensor
    from .functions.shown import (
        all, amax, amin, any, append, argmax, argmin, argpartition, argsort, array_split, asarray,
        astype, average, broadcast_to, compress, concat, copy, count_nonzero, cross,
        cumulative_logsumexp, cumulative_prod, cumulative_sum, delete, diagonal, diff, empty,
        empty_like, expand_dims, flip, full, full_like, gradient, insert, lexsort, log_softmax,
        logsumexp, matmul, max, mean, median, min, moveaxis, nanargmax, nanargmin, nancumprod,
        nancumsum, nanmax, nanmean, nanmedian, nanmin, nanpercentile, nanprod, nanquantile, nanstd,
        nansum, nanvar, ones, ones_like, partition, percentile, permute_dims, pow, prod, ptp,
        put_along_axis, quantile, repeat, reshape, roll, sliding_window_view, softmax, split,
        squeeze, stack, std, sum, swapaxes, take, take_along_axis, topk, transpose, trapezoid,
        trim_zeros, unique, unstack, unwrap, var, vecdot, where, zeros, zeros_like,
    )
    from .capture.jit import jit as compile
    from .device_class import default_device as get_default_device
    from .dtypes import (
        bool_ as bool_, complex128 as cdouble, complex64 as cfloat, complex64 as csingle, float16 as
        half, float32 as float, float32 as single, float64 as double, int16 as short, int32 as intc,
        int64 as int_, int64 as long, uint64 as uint, uint64 as ulong,
    )
    from .functions.creation.constructors import eye as identity
    from .functions.creation.windows import hann as hanning
    from .functions.datatypes import result_type as promote_types
    from .functions.elementwise.op_functions import (
        abs as absolute, acos as arccos, acosh as arccosh, asin as arcsin, asinh as arcsinh, atan as
        arctan, atan2 as arctan2, atanh as arctanh, bitwise_invert as bitwise_not, bitwise_invert as
        invert, bitwise_left_shift as left_shift, bitwise_right_shift as right_shift, clip as clamp,
        conj as conjugate, deg2rad as radians, divide as div, divide as true_divide, equal as eq,
        greater as gt, greater_equal as ge, less as lt, less_equal as le, multiply as mul, negative
        as neg, not_equal as ne, rad2deg as degrees, remainder as mod, round as around, subtract as
        sub,
    )
    from .functions.products.matrix_products import outer as ger
    from .functions.random import (
        get_state as get_rng_state, manual_seed as manual_seed, permutation as randperm, rand as
        rand, rand_like as rand_like, randint as randint, randn as randn, randn_like as randn_like,
        set_state as set_rng_state,
    )
    from .functions.shape.joining import vstack as row_stack
    from .functions.shape.manipulation import broadcast_arrays as broadcast_tensors
    from .functions.shown import (
        array_split as tensor_split, asarray as as_tensor, asarray as asanyarray, asarray as
        from_numpy, concat as concatenate, copy as clone, cumulative_logsumexp as logcumsumexp,
        cumulative_prod as cumprod, cumulative_sum as cumsum, expand_dims as unsqueeze, matmul as
        bmm, matmul as mm, matmul as mv, moveaxis as movedim, permute_dims as permute, pow as power,
        swapaxes as swapdims, trapezoid as trapz, unstack as unbind,
    )
    from .linalg import (
        block_diag as block_diag, cholesky as cholesky, det as det, expm as matrix_exp, inv as
        inverse, matrix_power as matrix_power, pinv as pinverse, qr as qr, slogdet as slogdet,
        vector_norm as norm,
    )

_PUBLIC_MODULES = {
    "autograd":
        "enable_grad grad inference_mode is_grad_enabled is_inference_mode_enabled no_grad "
        "set_grad_enabled",
    "autograd.nan_checks": "debug_nans",
    "backend.naming": "device",
    "backend.streams": "Event Stream current_stream default_stream stream synchronize",
    "backend.threads": "get_num_threads set_num_threads",
    "capture.control_flow": "cond fori_loop scan while_loop",
    "capture.jit": "constant jit",
    "capture.serialize": "load_function save_function",
    "device_class": "Device default_device set_default_device",
    "dtypes":
        "DType bfloat16 bool:bool_ complex64 complex128 float16 float32 float64 int8 int16 int32 "
        "int64 uint8 uint16 uint32 uint64",
    "engine.provenance": "record_lines",
    "errors":
        "AnomalyError ArgumentError ArgumentTypeError AxisError CaptureError CompileError "
        "DTypeError DeviceError DovetailError DovetailWarning FallbackError GradientError "
        "InternalError KernelError LayoutError LinAlgError OutOfMemoryError OutOfRangeError "
        "PluginError ReadOnlyError ShapeError SharingError SlowDeviceWarning TransformError "
        "UnavailableError UnknownFunctionError UnsupportedError ValueOverflowError",
    "fft.short_time": "istft stft",
    "frontend.custom_op": "custom_op",
    "frontend.dsl": "In InOut Out atomic_add atomic_and atomic_max atomic_min atomic_or grid",
    "frontend.elementwise_op": "elementwise",
    "frontend.loop_kernel": "kernel",
    "frontend.raw_source": "raw_kernel",
    "func.vectorize": "vmap",
    "functions.autocast": "autocast get_autocast_dtype is_autocast_enabled",
    "functions.creation.constructors":
        "arange empty empty_like eye full full_like linspace meshgrid ones ones_like tril triu "
        "zeros zeros_like",
    "functions.creation.from_values": "array asarray",
    "functions.creation.grids": "fromfunction geomspace indices logspace mgrid ogrid",
    "functions.creation.windows":
        "bartlett bartlett_window blackman blackman_window hamming hamming_window hann "
        "hann_window kaiser kaiser_window",
    "functions.datatypes":
        "astype can_cast finfo get_default_dtype iinfo isdtype result_type set_default_dtype",
    "functions.elementwise.composed":
        "array_equiv bitwise_count fmax fmin fmod iscomplex isneginf isposinf isreal logaddexp2 "
        "unwrap",
    "functions.elementwise.decompose": "divmod frexp modf nan_to_num",
    "functions.elementwise.op_functions":
        "abs acos acosh add allclose angle array_equal asin asinh atan atan2 atanh beta "
        "bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor"
        " cbrt ceil clip conj copysign cos cosh deg2rad digamma divide equal erf erfc erfinv exp "
        "exp2 expm1 floor floor_divide gamma gcd greater greater_equal heaviside hypot i0 i1 imag"
        " isclose isfinite isinf isnan lcm ldexp less less_equal lgamma log log1p log2 log10 "
        "log_softmax logaddexp logical_and logical_not logical_or logical_xor logit maximum "
        "minimum multiply ndtr ndtri negative nextafter not_equal positive pow rad2deg real "
        "reciprocal relu remainder round rsqrt sigmoid sign signbit sin sinc sinh softmax sqrt "
        "square subtract tan tanh trunc where xlogy zeta",
    "functions.elementwise.special_functions": "expit polygamma",
    "functions.evaluation": "evaluate",
    "functions.indexing.index_arrays":
        "diag_indices_from ix_ mask_indices ravel_multi_index tril_indices_from triu_indices_from"
        " unravel_index",
    "functions.indexing.index_reads": "searchsorted take take_along_axis",
    "functions.indexing.index_reductions":
        "index_copy index_fill index_reduce masked_scatter scatter_add scatter_reduce segment_max"
        " segment_mean segment_min segment_prod segment_sum",
    "functions.indexing.index_writes": "index_add scatter",
    "functions.indexing.insert_delete":
        "append block compress copyto delete extract fill_diagonal flatnonzero insert place "
        "putmask resize trim_zeros",
    "functions.indexing.masks": "argwhere nonzero",
    "functions.indexing.selection": "choose piecewise put put_along_axis select vectorize",
    "functions.io.files": "load load_metadata save",
    "functions.io.interop": "__array_namespace_info__:array_namespace_info from_blob from_dlpack",
    "functions.io.transfer": "pin_memory",
    "functions.products.einsum": "einsum",
    "functions.products.matrix_products":
        "matmul matrix_transpose outer tensordot vecdot vendor_products",
    "functions.products.vector_products": "cross dot inner kron matvec vdot vecmat",
    "functions.reductions.covariance": "average corrcoef cov ptp",
    "functions.reductions.cumulative": "cumulative_logsumexp cumulative_prod cumulative_sum diff",
    "functions.reductions.histograms":
        "bincount digitize histogram histogram2d histogram_bin_edges",
    "functions.reductions.nan_functions":
        "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum "
        "nanvar",
    "functions.reductions.numerical":
        "convolve correlate ediff1d gradient interp polyval trapezoid vander",
    "functions.reductions.order_statistics":
        "median nanmedian nanpercentile nanquantile percentile quantile",
    "functions.reductions.statistics":
        "all any argmax argmin count_nonzero logsumexp max mean min prod std sum var",
    "functions.shape.copies": "concat contiguous copy repeat roll stack tile",
    "functions.shape.joining":
        "array_split atleast_1d atleast_2d atleast_3d column_stack dsplit dstack hsplit hstack "
        "vsplit vstack",
    "functions.shape.manipulation":
        "as_strided broadcast_arrays broadcast_shapes broadcast_to diagonal expand_dims flatten "
        "flip moveaxis permute_dims ravel reshape split squeeze swapaxes transpose unstack",
    "functions.shape.orientation":
        "diag diag_indices diagflat fliplr flipud rot90 trace tri tril_indices triu_indices",
    "functions.shape.padding": "pad",
    "functions.shape.patches": "fold sliding_window_view unfold",
    "functions.shape.strides":
        "contiguous_strides element_size is_complex is_contiguous is_floating_point numel "
        "storage_index",
    "functions.sorting.distinct": "isin unique_all unique_counts unique_inverse unique_values",
    "functions.sorting.lexsort_partition": "argpartition lexsort partition",
    "functions.sorting.set_operations": "intersect1d setdiff1d setxor1d union1d",
    "functions.sorting.stable_sort": "argsort sort topk",
    "functions.sorting.unique": "unique",
    "functions.torch_functions":
        "addcdiv addcmul addmm addmv amax amin are_deterministic_algorithms_enabled baddbmm "
        "diag_embed float_power gather index_select is_tensor lerp masked_select multinomial "
        "narrow repeat_interleave take_along_dim unflatten use_deterministic_algorithms",
    "functions.torch_methods": "cat chunk masked_fill t",
    "functions.torch_order_functions":
        "bucketize cummax cummin histc kthvalue mode unique_consecutive",
    "insight.explain": "explain",
    "insight.graph": "draw_graph",
    "insight.profile": "profile",
    "insight.show": "show",
    "layout": "sparse_bsr sparse_coo sparse_csc sparse_csr strided",
    "linalg.polynomials": "poly polyadd polyder polyfit polyint polymul polysub roots",
    "linalg.torch_functions": "cdist logdet renorm",
    "memory.storage": "Storage",
    "plugins.registry": "devices",
    "settings": "eager fast_math poison_empty",
    "tensor.print_options": "get_printoptions printoptions set_printoptions",
    "tensor.tensor": "Tensor",
}

__all__ = [
    "AnomalyError", "ArgumentError", "ArgumentTypeError", "AxisError", "CaptureError",
    "CompileError", "DType", "DTypeError", "Device", "DeviceError", "DovetailError",
    "DovetailWarning", "Event", "FallbackError", "GradientError", "In", "InOut", "InternalError",
    "KernelError", "LayoutError", "LinAlgError", "Out", "OutOfMemoryError", "OutOfRangeError",
    "PluginError", "ReadOnlyError", "ShapeError", "SharingError", "SlowDeviceWarning", "Storage",
    "Stream", "Tensor", "TransformError", "UnavailableError", "UnknownFunctionError",
    "UnsupportedError", "ValueOverflowError", "__array_namespace_info__", "abs", "acos", "acosh",
    "add", "addcdiv", "addcmul", "addmm", "addmv", "all", "allclose", "amax", "amin", "angle",
    "any", "append", "arange", "are_deterministic_algorithms_enabled", "argmax", "argmin",
    "argpartition", "argsort", "argwhere", "array", "array_equal", "array_equiv", "array_split",
    "as_strided", "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh", "atleast_1d",
    "atleast_2d", "atleast_3d", "atomic_add", "atomic_and", "atomic_max", "atomic_min", "atomic_or",
    "autocast", "autograd", "average", "baddbmm", "bartlett", "bartlett_window", "beta", "bfloat16",
    "bincount", "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman", "blackman_window", "block",
    "bool", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "bucketize", "can_cast", "cat",
    "cbrt", "cdist", "ceil", "choose", "chunk", "clip", "column_stack", "complex64", "complex128",
    "compress", "concat", "cond", "conj", "constant", "contiguous", "contiguous_strides",
    "convolve", "copy", "copysign", "copyto", "corrcoef", "correlate", "cos", "cosh",
    "count_nonzero", "cov", "cross", "cummax", "cummin", "cumulative_logsumexp", "cumulative_prod",
    "cumulative_sum", "current_stream", "custom_op", "debug_nans", "default_device",
    "default_stream", "deg2rad", "delete", "device", "devices", "diag", "diag_embed",
    "diag_indices", "diag_indices_from", "diagflat", "diagonal", "diff", "digamma", "digitize",
    "divide", "divmod", "dot", "draw_graph", "dsplit", "dstack", "e", "eager", "ediff1d", "einsum",
    "element_size", "elementwise", "empty", "empty_like", "enable_grad", "equal", "erf", "erfc",
    "erfinv", "evaluate", "exp", "exp2", "expand_dims", "expit", "explain", "expm1", "extract",
    "eye", "fast_math", "fft", "fill_diagonal", "finfo", "flatnonzero", "flatten", "flip", "fliplr",
    "flipud", "float16", "float32", "float64", "float_power", "floor", "floor_divide", "fmax",
    "fmin", "fmod", "fold", "fori_loop", "frexp", "from_blob", "from_dlpack", "fromfunction",
    "full", "full_like", "func", "gamma", "gather", "gcd", "geomspace", "get_autocast_dtype",
    "get_default_dtype", "get_num_threads", "get_printoptions", "grad", "gradient", "greater",
    "greater_equal", "grid", "hamming", "hamming_window", "hann", "hann_window", "heaviside",
    "histc", "histogram", "histogram2d", "histogram_bin_edges", "hsplit", "hstack", "hypot", "i0",
    "i1", "iinfo", "imag", "index_add", "index_copy", "index_fill", "index_reduce", "index_select",
    "indices", "inf", "inference_mode", "inner", "insert", "int8", "int16", "int32", "int64",
    "interp", "intersect1d", "is_autocast_enabled", "is_complex", "is_contiguous",
    "is_floating_point", "is_grad_enabled", "is_inference_mode_enabled", "is_tensor", "isclose",
    "iscomplex", "isdtype", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal",
    "istft", "ix_", "jit", "kaiser", "kaiser_window", "kernel", "kron", "kthvalue", "lcm", "ldexp",
    "lerp", "less", "less_equal", "lexsort", "lgamma", "linalg", "linspace", "load",
    "load_function", "load_metadata", "log", "log1p", "log2", "log10", "log_softmax", "logaddexp",
    "logaddexp2", "logdet", "logical_and", "logical_not", "logical_or", "logical_xor", "logit",
    "logspace", "logsumexp", "mask_indices", "masked_fill", "masked_scatter", "masked_select",
    "matmul", "matrix_transpose", "matvec", "max", "maximum", "mean", "median", "memory",
    "meshgrid", "mgrid", "min", "minimum", "mode", "modf", "moveaxis", "multinomial", "multiply",
    "nan", "nan_to_num", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean",
    "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar",
    "narrow", "ndtr", "ndtri", "negative", "newaxis", "nextafter", "no_grad", "nonzero",
    "not_equal", "numel", "ogrid", "ones", "ones_like", "outer", "pad", "partition", "percentile",
    "permute_dims", "pi", "piecewise", "pin_memory", "place", "plugins", "poison_empty", "poly",
    "polyadd", "polyder", "polyfit", "polygamma", "polyint", "polymul", "polysub", "polyval",
    "positive", "pow", "printoptions", "prod", "profile", "ptp", "put", "put_along_axis", "putmask",
    "quantile", "rad2deg", "random", "ravel", "ravel_multi_index", "raw_kernel", "real",
    "reciprocal", "record_lines", "relu", "remainder", "renorm", "repeat", "repeat_interleave",
    "reshape", "resize", "result_type", "roll", "roots", "rot90", "round", "rsqrt", "save",
    "save_function", "scan", "scatter", "scatter_add", "scatter_reduce", "searchsorted",
    "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum", "select",
    "set_default_device", "set_default_dtype", "set_grad_enabled", "set_num_threads",
    "set_printoptions", "setdiff1d", "setxor1d", "show", "sigmoid", "sign", "signbit", "sin",
    "sinc", "sinh", "sliding_window_view", "softmax", "sort", "sparse_bsr", "sparse_coo",
    "sparse_csc", "sparse_csr", "split", "sqrt", "square", "squeeze", "stack", "std", "stft",
    "storage_index", "stream", "strided", "subtract", "sum", "swapaxes", "synchronize", "t", "take",
    "take_along_axis", "take_along_dim", "tan", "tanh", "tensordot", "tile", "topk", "trace",
    "transpose", "trapezoid", "tri", "tril", "tril_indices", "tril_indices_from", "trim_zeros",
    "triu", "triu_indices", "triu_indices_from", "trunc", "uint8", "uint16", "uint32", "uint64",
    "unflatten", "unfold", "union1d", "unique", "unique_all", "unique_consecutive", "unique_counts",
    "unique_inverse", "unique_values", "unravel_index", "unstack", "unwrap",
    "use_deterministic_algorithms", "vander", "var", "vdot", "vecdot", "vecmat", "vectorize",
    "vendor_products", "vmap", "vsplit", "vstack", "where", "while_loop", "xlogy", "zeros",
    "zeros_like", "zeta",
]
if _typing.TYPE_CHECKING:
    __all__ += [
        "absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
        "around", "as_tensor", "asanyarray", "bitwise_not", "block_diag", "bmm", "bool_",
        "broadcast_tensors", "cdouble", "cfloat", "cholesky", "clamp", "clone", "compile",
        "concatenate", "conjugate", "csingle", "cumprod", "cumsum", "degrees", "det", "div",
        "double", "eq", "float", "from_numpy", "ge", "ger", "get_default_device", "get_rng_state",
        "gt", "half", "hanning", "identity", "int_", "intc", "inverse", "invert", "le",
        "left_shift", "logcumsumexp", "long", "lt", "manual_seed", "matrix_exp", "matrix_power",
        "mm", "mod", "movedim", "mul", "mv", "ne", "neg", "norm", "permute", "pinverse", "power",
        "promote_types", "qr", "radians", "rand", "rand_like", "randint", "randn", "randn_like",
        "randperm", "right_shift", "row_stack", "set_rng_state", "short", "single", "slogdet",
        "sub", "swapdims", "tensor_split", "trapz", "true_divide", "uint", "ulong", "unbind",
        "unsqueeze",
    ]
# fmt: on
# isort: on
# --- as far as here -------------------------------------------------------------------------------

newaxis = None
__array_api_version__ = "2025.12"
__version__ = "0.1.0"  # the only source of the version: tools/metadata.py


_PACKAGES = [
    "amp",
    "checkpoint",
    "chunked",
    "comm",
    "data",
    "distributions",
    "extend",
    "extension",
    "jax",
    "metrics",
    "nn",
    "numpy",
    "onnx",
    "optim",
    "parallel",
    "sparse",
    "sparse_coo_tensor",
    "tensor",
    "tensorboard",
    "torch",
    "tree",
]


def __dir__() -> list[str]:  # no other submodules, which importing them puts here
    caller = _getframe(1)
    while caller.f_globals.get("__name__") == "inspect" and caller.f_back is not None:
        caller = caller.f_back
    if caller.f_globals.get("__name__") == "pydoc":  # `help(dt)` would print 13 000 lines
        return ["__version__"]
    return [*__all__, *_PACKAGES, "__array_api_version__", "__config__", "__version__"]


if _typing.TYPE_CHECKING:
    from . import amp as amp
    from . import checkpoint as checkpoint
    from . import chunked as chunked
    from . import comm as comm
    from . import data as data
    from . import distributions as distributions
    from . import extension as extension
    from . import jax as jax
    from . import metrics as metrics
    from . import nn as nn
    from . import numpy as numpy
    from . import onnx as onnx
    from . import optim as optim
    from . import parallel as parallel
    from . import sparse as sparse
    from . import special as special
    from . import tensorboard as tensorboard
    from . import torch as torch
    from . import tree as tree
    from .functions.shown import tensor as tensor
    from .sparse import sparse_coo_tensor as sparse_coo_tensor

    __config__: dict[str, object]
else:
    _SOURCES = {  # of each public name the module, and its name there
        public: (home, source or public)
        for home, names in _PUBLIC_MODULES.items()
        for public, _, source in (name.partition(":") for name in names.split())
    }

    def __getattr__(name):
        """Return a public name, fetched from its module; the first one loads the core."""
        if name in _SOURCES:
            _load_core()
            home, source = _SOURCES[name]
            value = getattr(_import_module(f".{home}", __name__), source)
            _publish(value)
        elif name == "__config__":  # how this dovetail was built: "hot_path" is compiled, or python
            _load_core()  # whose modules may be compiled
            return _build_info.config()
        elif name.startswith("__"):
            raise AttributeError(f"module 'dovetail' has no attribute {name!r}")
        elif (original := _find_original(name)) is not None:
            value = _reduce(getattr, original.split("."), _modules[__name__])
        elif name == "tensor":  # the core makes this package callable
            _load_core()
            value = _modules[f"{__name__}.tensor"]
        elif (value := _submodule(name)) is None:
            _load_core()
            methods = _import_module(".functions.methods", __name__)
            return methods.find_plugin_attribute("functions", name, "module 'dovetail'")
        globals()[name] = value
        return value

    def _find_original(name):
        """Return dovetail's name for an exact synonym of another library, or None."""
        return _import_module(".compat.aliases", __name__).find_original("", name)

    def _submodule(name):
        """Import a module of this package; return None if there is none of this name."""
        try:
            return _import_module(f".{name}", __name__)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
            return None

    def _load_core():
        """Import the modules that nearly every program needs, and store their public names here.

        Wait if another thread does so.
        """
        if f"{__name__}.wiring" in _modules:
            _import_module(".wiring", __name__)
            return
        # `argument_checks` first: it imports NumPy. Below many other imports NumPy's own would
        # cross the end of a chunk of the stack, which CPython would map and unmap 650 times: 5 %
        # of the time.
        _import_module(".argument_checks", __name__)
        with _build_info.GcPause(is_kept=True):
            _import_module(".wiring", __name__)
            values = []
            for public, (home, source) in _SOURCES.items():  # also for finalisers at Python's end
                module = _modules.get(f"{__name__}.{home}")
                if hasattr(module, source):  # not while another thread imports that module
                    values.append(globals().setdefault(public, getattr(module, source)))
            _publish(*values)

    def _publish(*values):
        """Let functions and classes show this package as their module."""
        _import_module(".public_names", __name__).publish(__name__, values)
