"""The functions of `jax.numpy`: dovetail's, with operands and dtypes as in JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import dovetail as dt

from ..dtype_config import as_tensor, narrow, with_dtypes, with_operands
from ..lookup import make_module_dir, make_module_getattr, table
from . import fft, linalg

__all__ = [
    "array",
    "asarray",
    "c_",
    "complexfloating",
    "fft",
    "floating",
    "histogram",
    "index_exp",
    "inexact",
    "integer",
    "interp",
    "issubdtype",
    "linalg",
    "meshgrid",
    "ndim",
    "number",
    "r_",
    "s_",
    "shape",
    "signedinteger",
    "size",
    "split",
    "unsignedinteger",
]

_FUNCTIONS = table("""
    abs absolute acos acosh add all allclose amax amin angle any append arccos arccosh arcsin
    arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around array_equal
    array_equiv array_split asin asinh astype atan atan2 atanh atleast_1d atleast_2d atleast_3d
    average bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not
    bitwise_or bitwise_right_shift bitwise_xor block broadcast_arrays broadcast_to cbrt ceil choose
    clip column_stack compress concat concatenate conj conjugate convolve copy copysign corrcoef
    correlate cos cosh count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum deg2rad
    degrees delete diag diagflat diagonal diff digitize divide divmod dot dsplit dstack ediff1d
    equal exp exp2 expand_dims expm1 extract flatnonzero flip fliplr flipud float_power floor
    floor_divide fmax fmin fmod frexp gcd gradient greater greater_equal heaviside hsplit
    hstack hypot i0 imag inner insert intersect1d invert iscomplex isclose isfinite isin
    isinf isnan isneginf isposinf isreal kron lcm ldexp left_shift less less_equal lexsort log log10
    log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor matmul
    matrix_transpose matvec max maximum mean median min minimum mod modf moveaxis multiply
    nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin
    nanpercentile nanprod nanquantile nanstd nansum nanvar negative nextafter nonzero not_equal
    ones_like outer pad partition percentile permute_dims piecewise polyadd polyder polyfit polyint
    polymul polysub polyval positive pow power prod ptp quantile rad2deg radians ravel
    ravel_multi_index real reciprocal remainder repeat reshape resize right_shift rint=round roll
    roots rot90 round searchsorted select setdiff1d setxor1d sign signbit sin sinc sinh sort sqrt
    square squeeze stack std subtract sum swapaxes take take_along_axis tan tanh tensordot tile
    trace transpose trapezoid tril triu true_divide trunc union1d unique unravel_index unstack
    unwrap vander var vdot vecdot vecmat vsplit vstack where zeros_like empty_like full_like
    fabs=abs
""")
_PLAIN = table("""
    arange bartlett blackman bool=bool_ bool_ bfloat16 broadcast_shapes can_cast complex64
    complex128 cdouble csingle diag_indices diag_indices_from double dtype=DType e einsum empty eye
    finfo float16 float32 float64 from_dlpack fromfunction full geomspace get_printoptions hamming
    hanning identity iinfo indices inf int16 int32 int64 int8 isdtype ix_ kaiser linspace logspace
    mask_indices mgrid nan ndarray=Tensor newaxis ogrid ones pi printoptions promote_types
    result_type set_printoptions single tri tril_indices tril_indices_from triu_indices
    triu_indices_from uint16 uint32 uint64 uint8 zeros
""")  # without operands in first place

_find_function = make_module_getattr(globals(), _FUNCTIONS, with_operands)
_find_plain = make_module_getattr(globals(), _PLAIN, with_dtypes)
__dir__ = make_module_dir(globals(), _FUNCTIONS | _PLAIN)


def __getattr__(name: str) -> Any:
    """Return a function of the tables."""
    return (_find_plain if name in _PLAIN else _find_function)(name)


index_exp, s_, c_, r_ = np.index_exp, np.s_, np.c_, np.r_
number, inexact, floating, complexfloating = (
    np.number,
    np.inexact,
    np.floating,
    np.complexfloating,
)
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger


def array(object: Any, dtype: Any = None, copy: bool = True) -> dt.Tensor:
    """Return a new tensor of numbers, an array, or nested lists of numbers and tensors.

    - `object`: the values.
    - `dtype`: None is int32, float32 or complex64, by the values.
    - `copy`: False may return a tensor itself.

    >>> import dovetail.jax.numpy as jnp
    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.array([x[0, 0], 5.0]).tolist(), x.dtype.name
    ([1.0, 5.0], 'int32')
    """
    return as_tensor(object, dtype, copy)


def asarray(a: Any, dtype: Any = None, copy: bool | None = None) -> dt.Tensor:
    """Return the values as a tensor; a tensor of the right dtype itself. See `array`.

    - `a`: the values.
    - `dtype`: None is int32, float32 or complex64, by the values.
    - `copy`: True returns a new tensor.

    >>> import dovetail.jax.numpy as jnp
    >>> jnp.asarray(0.5).dtype.name
    'float32'
    """
    return as_tensor(a, dtype, bool(copy))


def split(ary: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[dt.Tensor]:
    """Return the parts of a tensor along an axis, as NumPy's `split`.

    - `ary`: the tensor.
    - `indices_or_sections`: the number of equal parts, or the indices where parts begin.
    - `axis`: the axis that is split.

    Raises: ShapeError if parts are not equal.

    >>> import dovetail.jax.numpy as jnp
    >>> [part.tolist() for part in jnp.split(jnp.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    x = as_tensor(ary)
    if isinstance(indices_or_sections, int) and x.shape[axis] % indices_or_sections:
        raise dt.ShapeError(
            f"split: {x.shape[axis]} elements make no {indices_or_sections} equal parts; use "
            "jnp.array_split"
        )
    return [*dt.array_split(x, indices_or_sections, axis=axis)]


def meshgrid(*xi: Any, sparse: bool = False, indexing: str = "xy") -> list[dt.Tensor]:
    """Return the coordinates of a grid, one tensor for each vector of coordinates.

    - `xi`: vectors.
    - `sparse`: True leaves axes of size 1 where a coordinate is constant.
    - `indexing`: "ij", or "xy" for a first axis along the second vector.

    >>> import dovetail.jax.numpy as jnp
    >>> [x.tolist() for x in jnp.meshgrid(jnp.arange(2), jnp.ones(1))]
    [[[0, 1]], [[1.0, 1.0]]]
    """
    vectors = [as_tensor(x).reshape(-1) for x in xi]
    return [*dt.meshgrid(*vectors, indexing=indexing, sparse=sparse)]


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> dt.Tensor:
    """Return the piecewise linear function through points, at x.

    - `x`: where the function is computed.
    - `xp`: the increasing coordinates of the points.
    - `fp`: their values.
    - `left`, `right`: the value below and above all points; None is that of the nearest.
    - `period`: the period of the coordinates, or None.

    >>> import dovetail.jax.numpy as jnp
    >>> jnp.interp(0.5, jnp.arange(2.0), jnp.array([1.0, 3.0])).item()
    2.0
    """
    at, nodes, values = (as_tensor(v) for v in (x, xp, fp))
    result: dt.Tensor = narrow(dt.interp(at, nodes, values, left=left, right=right, period=period))
    return result


def histogram(a: Any, bins: Any = 10, range: Any = None, **options: Any) -> Any:
    """Return the numbers of elements in bins, as floats, and the edges of the bins.

    - `a`: a tensor.
    - `bins`: the number of bins, or their edges.
    - `range`: the ends of the bins; None is those of the elements.
    - `options`: `weights` and `density`, as for `dt.histogram`.

    >>> import dovetail.jax.numpy as jnp
    >>> jnp.histogram(jnp.array([0.0, 0.2, 1.0]), 2)[0].tolist()
    [2.0, 1.0]
    """
    counts, edges = dt.histogram(as_tensor(a), bins, range=range, **options)
    return counts.astype(edges.dtype), edges


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Return True if a dtype belongs to a kind.

    - `arg1`: a dtype.
    - `arg2`: a dtype, or a kind: `jnp.floating`, `jnp.integer`, ...

    >>> import dovetail.jax.numpy as jnp
    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
    True
    """
    kinds = [
        d.__numpy_dtype__ or np.float32 if isinstance(d, dt.DType) else d for d in (arg1, arg2)
    ]
    return np.issubdtype(*kinds)


def ndim(a: Any) -> int:
    """Return the number of axes of a value.

    - `a`: a tensor or a number.

    >>> import dovetail.jax.numpy as jnp
    >>> jnp.ndim(2.0)
    0
    """
    return as_tensor(a).ndim


def shape(a: Any) -> tuple[int, ...]:
    """Return the shape of a value.

    - `a`: a tensor or a number.

    >>> import dovetail.jax.numpy as jnp
    >>> jnp.shape(2.0)
    ()
    """
    return as_tensor(a).shape


def size(a: Any, axis: int | None = None) -> int:
    """Return the number of elements of a value.

    - `a`: a tensor or a number.
    - `axis`: an axis, of which the length is returned.

    >>> import dovetail.jax.numpy as jnp
    >>> jnp.size(jnp.ones((2, 3)))
    6
    """
    x = as_tensor(a)
    return x.size if axis is None else x.shape[axis]
