# Written by tools/faces.py for type checkers: the names of NumPy 2.4, for ndarrays.
# mypy: disable-error-code=override
# ruff: noqa
# fmt: off
# isort: off

import builtins as _python
from collections.abc import Sequence
from typing import Any, TypeAlias, overload

import numpy as _host
import numpy.typing as _typing

from .array_class import flatiter as flatiter, ndarray as ndarray
from .ufuncs import ufunc as _ufunc
from . import fft as fft, lib as lib, linalg as linalg, polynomial as polynomial, random as random, testing as testing

_Array: TypeAlias = ndarray | _typing.ArrayLike
_Axis: TypeAlias = int | Sequence[int] | None
_Shape: TypeAlias = int | Sequence[int] | None

class ufunc(_ufunc):
    @overload
    def __call__(self, x: ndarray, /, *args: Any, **options: Any) -> ndarray: ...
    @overload
    def __call__(self, *args: Any, **options: Any) -> Any: ...

False_: bool
ScalarType: tuple[type, ...]
True_: bool
__array_namespace_info__ = _host.__array_namespace_info__
__version__: str
abs: ufunc
absolute: ufunc
acos: ufunc
acosh: ufunc
add: ufunc
def all(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    *,
    where: Any = ...,
) -> ndarray: ...
def allclose(
    a: _Array | Sequence[Any],
    b: _Array | Sequence[Any],
    rtol: Any = ...,
    atol: Any = ...,
    equal_nan: _python.bool = ...,
) -> _python.bool: ...
def amax(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    initial: Any = ...,
    where: Any = ...,
) -> ndarray: ...
def amin(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    initial: Any = ...,
    where: Any = ...,
) -> ndarray: ...
def angle(z: Any, deg: Any = ...) -> ndarray: ...
def any(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    *,
    where: Any = ...,
) -> ndarray: ...
def append(
    arr: _Array | Sequence[Any], values: _Array | Sequence[Any], axis: _Axis | None = ...
) -> ndarray: ...
def apply_along_axis(
    func1d: Any, axis: _Axis, arr: _Array | Sequence[Any], *args: Any, **kwargs: Any
) -> Any: ...
def apply_over_axes(func: Any, a: _Array | Sequence[Any], axes: _Axis) -> ndarray: ...
def arange(
    start_or_stop: Any,
    /,
    stop: Any = ...,
    step: Any = ...,
    *,
    dtype: _typing.DTypeLike | None = ...,
    device: Any = ...,
    like: Any = ...,
) -> ndarray: ...
arccos: ufunc
arccosh: ufunc
arcsin: ufunc
arcsinh: ufunc
arctan: ufunc
arctan2: ufunc
arctanh: ufunc
def argmax(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    *,
    keepdims: _python.bool = ...,
) -> ndarray: ...
def argmin(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    *,
    keepdims: _python.bool = ...,
) -> ndarray: ...
def argpartition(
    a: _Array | Sequence[Any], kth: Any, axis: _Axis = ..., kind: Any = ..., order: Any = ...
) -> ndarray: ...
def argsort(
    a: _Array | Sequence[Any],
    axis: _Axis = ...,
    kind: Any = ...,
    order: Any = ...,
    *,
    stable: Any = ...,
) -> ndarray: ...
def argwhere(a: _Array | Sequence[Any]) -> ndarray: ...
def around(
    a: _Array | Sequence[Any],
    decimals: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def array(
    object: Any,
    dtype: _typing.DTypeLike | None = ...,
    *,
    copy: _python.bool = ...,
    order: Any = ...,
    subok: _python.bool = ...,
    ndmin: Any = ...,
    ndmax: Any = ...,
    like: Any = ...,
) -> ndarray: ...
def array2string(
    a: _Array | Sequence[Any],
    max_line_width: Any = ...,
    precision: Any = ...,
    suppress_small: Any = ...,
    separator: Any = ...,
    prefix: Any = ...,
    *,
    formatter: Any = ...,
    threshold: Any = ...,
    edgeitems: Any = ...,
    sign: Any = ...,
    floatmode: Any = ...,
    suffix: Any = ...,
    legacy: Any = ...,
) -> str: ...
def array_equal(
    a1: _Array | Sequence[Any], a2: _Array | Sequence[Any], equal_nan: _python.bool = ...
) -> _python.bool: ...
def array_equiv(a1: _Array | Sequence[Any], a2: _Array | Sequence[Any]) -> _python.bool: ...
def array_repr(
    arr: _Array | Sequence[Any],
    max_line_width: Any = ...,
    precision: Any = ...,
    suppress_small: Any = ...,
) -> str: ...
def array_split(
    ary: _Array | Sequence[Any], indices_or_sections: Any, axis: _Axis = ...
) -> list[ndarray]: ...
def array_str(
    a: _Array | Sequence[Any],
    max_line_width: Any = ...,
    precision: Any = ...,
    suppress_small: Any = ...,
) -> str: ...
def asanyarray(
    a: _Array | Sequence[Any],
    dtype: _typing.DTypeLike | None = ...,
    order: Any = ...,
    *,
    device: Any = ...,
    copy: _python.bool | None = ...,
    like: Any = ...,
) -> ndarray: ...
def asarray(
    a: _Array | Sequence[Any],
    dtype: _typing.DTypeLike | None = ...,
    order: Any = ...,
    *,
    device: Any = ...,
    copy: _python.bool | None = ...,
    like: Any = ...,
) -> ndarray: ...
def asarray_chkfinite(
    a: _Array | Sequence[Any], dtype: _typing.DTypeLike | None = ..., order: Any = ...
) -> ndarray: ...
def ascontiguousarray(
    a: _Array | Sequence[Any], dtype: _typing.DTypeLike | None = ..., *, like: Any = ...
) -> ndarray: ...
def asfortranarray(
    a: _Array | Sequence[Any], dtype: _typing.DTypeLike | None = ..., *, like: Any = ...
) -> ndarray: ...
asin: ufunc
asinh: ufunc
def asmatrix(data: Any, dtype: _typing.DTypeLike | None = ...) -> ndarray: ...
def astype(
    x: _Array | Sequence[Any],
    dtype: _typing.DTypeLike | None,
    /,
    *,
    copy: _python.bool = ...,
    device: Any = ...,
) -> ndarray: ...
atan: ufunc
atan2: ufunc
atanh: ufunc
def atleast_1d(*arys: Any) -> ndarray: ...
def atleast_2d(*arys: Any) -> ndarray: ...
def atleast_3d(*arys: Any) -> ndarray: ...
def average(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    weights: _Array | Sequence[Any] | None = ...,
    returned: _python.bool = ...,
    *,
    keepdims: _python.bool = ...,
) -> Any: ...
def bartlett(M: _Array | Sequence[Any]) -> ndarray: ...
def base_repr(number: Any, base: Any = ..., padding: Any = ...) -> str: ...
def binary_repr(num: Any, width: Any = ...) -> str: ...
def bincount(
    x: _Array | Sequence[Any], /, weights: _Array | Sequence[Any] | None = ..., minlength: Any = ...
) -> ndarray: ...
bitwise_and: ufunc
bitwise_count: ufunc
bitwise_invert: ufunc
bitwise_left_shift: ufunc
bitwise_not: ufunc
bitwise_or: ufunc
bitwise_right_shift: ufunc
bitwise_xor: ufunc
def blackman(M: _Array | Sequence[Any]) -> ndarray: ...
def block(arrays: _Array | Sequence[Any]) -> ndarray: ...
def bmat(obj: Any, ldict: Any = ..., gdict: Any = ...) -> Any: ...
bool = _host.bool
bool_ = _host.bool_
broadcast: Any
def broadcast_arrays(*args: Any, subok: _python.bool = ...) -> tuple[ndarray, ...]: ...
def broadcast_shapes(*args: Any) -> tuple[int, ...]: ...
def broadcast_to(
    array: _Array | Sequence[Any], shape: _Shape, subok: _python.bool = ...
) -> ndarray: ...
def busday_count(
    begindates: Any,
    enddates: Any,
    weekmask: Any = ...,
    holidays: Any = ...,
    busdaycal: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> Any: ...
def busday_offset(
    dates: Any,
    offsets: Any,
    roll: Any = ...,
    weekmask: Any = ...,
    holidays: Any = ...,
    busdaycal: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> Any: ...
busdaycalendar = _host.busdaycalendar
byte = _host.byte
bytes_ = _host.bytes_
c_: Any
def can_cast(from_: Any, to: Any, casting: Any = ...) -> _python.bool: ...
cbrt: ufunc
cdouble = _host.cdouble
ceil: ufunc
character = _host.character
def choose(
    a: _Array | Sequence[Any],
    choices: Any,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    mode: Any = ...,
) -> ndarray: ...
def clip(
    a: _Array | Sequence[Any],
    a_min: Any = ...,
    a_max: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    *,
    min: Any = ...,
    max: Any = ...,
    **kwargs: Any,
) -> ndarray: ...
clongdouble = _host.clongdouble
def column_stack(tup: _Array | Sequence[Any]) -> ndarray: ...
def common_type(*arrays: Any) -> type: ...
complex128 = _host.complex128
complex256 = _host.complex256
complex64 = _host.complex64
complexfloating = _host.complexfloating
def compress(
    condition: _Array | Sequence[Any],
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def concat(
    arrays: _Array | Sequence[Any],
    /,
    axis: _Axis = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    *,
    dtype: _typing.DTypeLike | None = ...,
    casting: Any = ...,
) -> ndarray: ...
def concatenate(
    arrays: _Array | Sequence[Any],
    /,
    axis: _Axis = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    *,
    dtype: _typing.DTypeLike | None = ...,
    casting: Any = ...,
) -> ndarray: ...
conj: ufunc
conjugate: ufunc
def convolve(a: _Array | Sequence[Any], v: _Array | Sequence[Any], mode: Any = ...) -> ndarray: ...
def copy(a: _Array | Sequence[Any], order: Any = ..., subok: _python.bool = ...) -> ndarray: ...
copysign: ufunc
def copyto(dst: Any, src: Any, casting: Any = ..., where: Any = ...) -> None: ...
def corrcoef(
    x: _Array | Sequence[Any],
    y: _Array | Sequence[Any] | None = ...,
    rowvar: _python.bool = ...,
    *,
    dtype: _typing.DTypeLike | None = ...,
) -> ndarray: ...
def correlate(a: _Array | Sequence[Any], v: _Array | Sequence[Any], mode: Any = ...) -> ndarray: ...
cos: ufunc
cosh: ufunc
def count_nonzero(
    a: _Array | Sequence[Any], axis: _Axis | None = ..., *, keepdims: _python.bool = ...
) -> Any: ...
def cov(
    m: _Array | Sequence[Any],
    y: _Array | Sequence[Any] | None = ...,
    rowvar: _python.bool = ...,
    bias: Any = ...,
    ddof: Any = ...,
    fweights: Any = ...,
    aweights: Any = ...,
    *,
    dtype: _typing.DTypeLike | None = ...,
) -> ndarray: ...
def cross(
    a: _Array | Sequence[Any],
    b: _Array | Sequence[Any],
    axisa: _Axis = ...,
    axisb: _Axis = ...,
    axisc: _Axis = ...,
    axis: _Axis | None = ...,
) -> ndarray: ...
csingle = _host.csingle
def cumprod(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def cumsum(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def cumulative_prod(
    x: _Array | Sequence[Any],
    /,
    *,
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    include_initial: Any = ...,
) -> ndarray: ...
def cumulative_sum(
    x: _Array | Sequence[Any],
    /,
    *,
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    include_initial: Any = ...,
) -> ndarray: ...
datetime64 = _host.datetime64
def datetime_as_string(
    arr: _Array | Sequence[Any], unit: Any = ..., timezone: Any = ..., casting: Any = ...
) -> Any: ...
def datetime_data(dtype: _typing.DTypeLike | None, /) -> Any: ...
deg2rad: ufunc
degrees: ufunc
def delete(arr: _Array | Sequence[Any], obj: Any, axis: _Axis | None = ...) -> ndarray: ...
def diag(v: _Array | Sequence[Any], k: Any = ...) -> ndarray: ...
def diag_indices(n: Any, ndim: Any = ...) -> tuple[ndarray, ...]: ...
def diag_indices_from(arr: _Array | Sequence[Any]) -> tuple[ndarray, ...]: ...
def diagflat(v: _Array | Sequence[Any], k: Any = ...) -> ndarray: ...
def diagonal(
    a: _Array | Sequence[Any], offset: Any = ..., axis1: _Axis = ..., axis2: _Axis = ...
) -> ndarray: ...
def diff(
    a: _Array | Sequence[Any],
    n: Any = ...,
    axis: _Axis = ...,
    prepend: Any = ...,
    append: Any = ...,
) -> ndarray: ...
def digitize(x: _Array | Sequence[Any], bins: Any, right: _python.bool = ...) -> ndarray: ...
divide: ufunc
divmod: ufunc
def dot(
    a: _Array | Sequence[Any],
    b: _Array | Sequence[Any],
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
double = _host.double
def dsplit(ary: _Array | Sequence[Any], indices_or_sections: Any) -> list[ndarray]: ...
def dstack(tup: _Array | Sequence[Any]) -> ndarray: ...
dtype = _host.dtype
e: float
def ediff1d(ary: _Array | Sequence[Any], to_end: Any = ..., to_begin: Any = ...) -> ndarray: ...
def einsum(
    *operands: Any,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    optimize: Any = ...,
    **kwargs: Any,
) -> ndarray: ...
def einsum_path(*operands: Any, optimize: Any = ..., einsum_call: Any = ...) -> Any: ...
def empty(
    shape: _Shape,
    dtype: _typing.DTypeLike | None = ...,
    order: Any = ...,
    *,
    device: Any = ...,
    like: Any = ...,
) -> ndarray: ...
def empty_like(
    prototype: Any,
    /,
    dtype: _typing.DTypeLike | None = ...,
    order: Any = ...,
    subok: _python.bool = ...,
    shape: _Shape | None = ...,
    *,
    device: Any = ...,
) -> ndarray: ...
equal: ufunc
errstate = _host.errstate
euler_gamma: float
exp: ufunc
exp2: ufunc
def expand_dims(a: _Array | Sequence[Any], axis: _Axis) -> ndarray: ...
expm1: ufunc
def extract(condition: _Array | Sequence[Any], arr: _Array | Sequence[Any]) -> ndarray: ...
def eye(
    N: Any,
    M: _Array | Sequence[Any] | None = ...,
    k: Any = ...,
    dtype: _typing.DTypeLike | None = ...,
    order: Any = ...,
    *,
    device: Any = ...,
    like: Any = ...,
) -> ndarray: ...
fabs: ufunc
def fill_diagonal(a: _Array | Sequence[Any], val: Any, wrap: Any = ...) -> None: ...
finfo = _host.finfo
def fix(
    x: _Array | Sequence[Any], out: _Array | tuple[_Array | None, ...] | None = ...
) -> ndarray: ...
def flatnonzero(a: _Array | Sequence[Any]) -> ndarray: ...
flexible = _host.flexible
def flip(m: _Array | Sequence[Any], axis: _Axis | None = ...) -> ndarray: ...
def fliplr(m: _Array | Sequence[Any]) -> ndarray: ...
def flipud(m: _Array | Sequence[Any]) -> ndarray: ...
float128 = _host.float128
float16 = _host.float16
float32 = _host.float32
float64 = _host.float64
float_power: ufunc
floating = _host.floating
floor: ufunc
floor_divide: ufunc
fmax: ufunc
fmin: ufunc
fmod: ufunc
def format_float_positional(
    x: _Array | Sequence[Any],
    precision: Any = ...,
    unique: Any = ...,
    fractional: Any = ...,
    trim: Any = ...,
    sign: Any = ...,
    pad_left: Any = ...,
    pad_right: Any = ...,
    min_digits: Any = ...,
) -> str: ...
def format_float_scientific(
    x: _Array | Sequence[Any],
    precision: Any = ...,
    unique: Any = ...,
    trim: Any = ...,
    sign: Any = ...,
    pad_left: Any = ...,
    exp_digits: Any = ...,
    min_digits: Any = ...,
) -> str: ...
frexp: ufunc
def from_dlpack(
    x: _Array | Sequence[Any], /, *, device: Any = ..., copy: _python.bool | None = ...
) -> Any: ...
def frombuffer(
    buffer: Any,
    dtype: _typing.DTypeLike | None = ...,
    count: Any = ...,
    offset: Any = ...,
    *,
    like: Any = ...,
) -> ndarray: ...
def fromfile(
    file: Any,
    dtype: _typing.DTypeLike | None = ...,
    count: Any = ...,
    sep: Any = ...,
    offset: Any = ...,
    *,
    like: Any = ...,
) -> ndarray: ...
def fromfunction(
    function: Any,
    shape: _Shape,
    *,
    dtype: _typing.DTypeLike | None = ...,
    like: Any = ...,
    **kwargs: Any,
) -> ndarray: ...
def fromiter(
    iter: Any, dtype: _typing.DTypeLike | None, count: Any = ..., *, like: Any = ...
) -> ndarray: ...
def frompyfunc(func: Any, /, nin: Any, nout: Any, **kwargs: Any) -> Any: ...
def fromregex(
    file: Any, regexp: Any, dtype: _typing.DTypeLike | None, encoding: Any = ...
) -> Any: ...
def fromstring(*args: Any, **options: Any) -> Any: ...
def full(
    shape: _Shape,
    fill_value: Any,
    dtype: _typing.DTypeLike | None = ...,
    order: Any = ...,
    *,
    device: Any = ...,
    like: Any = ...,
) -> ndarray: ...
def full_like(
    a: _Array | Sequence[Any],
    fill_value: Any,
    dtype: _typing.DTypeLike | None = ...,
    order: Any = ...,
    subok: _python.bool = ...,
    shape: _Shape | None = ...,
    *,
    device: Any = ...,
) -> ndarray: ...
gcd: ufunc
generic = _host.generic
def genfromtxt(
    fname: Any,
    dtype: _typing.DTypeLike | None = ...,
    comments: Any = ...,
    delimiter: Any = ...,
    skip_header: Any = ...,
    skip_footer: Any = ...,
    converters: Any = ...,
    missing_values: Any = ...,
    filling_values: Any = ...,
    usecols: Any = ...,
    names: Any = ...,
    excludelist: Any = ...,
    deletechars: Any = ...,
    replace_space: Any = ...,
    autostrip: Any = ...,
    case_sensitive: Any = ...,
    defaultfmt: Any = ...,
    unpack: Any = ...,
    usemask: Any = ...,
    loose: Any = ...,
    invalid_raise: Any = ...,
    max_rows: Any = ...,
    encoding: Any = ...,
    *,
    ndmin: Any = ...,
    like: Any = ...,
) -> Any: ...
def geomspace(
    start: Any,
    stop: Any,
    num: Any = ...,
    endpoint: _python.bool = ...,
    dtype: _typing.DTypeLike | None = ...,
    axis: _Axis = ...,
) -> ndarray: ...
def get_include(*args: Any, **options: Any) -> Any: ...
def get_printoptions(*args: Any, **options: Any) -> Any: ...
def getbufsize(*args: Any, **options: Any) -> Any: ...
def geterr(*args: Any, **options: Any) -> Any: ...
def geterrcall(*args: Any, **options: Any) -> Any: ...
def gradient(f: Any, *varargs: Any, axis: _Axis | None = ..., edge_order: Any = ...) -> Any: ...
greater: ufunc
greater_equal: ufunc
half = _host.half
def hamming(M: _Array | Sequence[Any]) -> ndarray: ...
def hanning(M: _Array | Sequence[Any]) -> ndarray: ...
heaviside: ufunc
def histogram(
    a: _Array | Sequence[Any],
    bins: Any = ...,
    range: Any = ...,
    density: _python.bool | None = ...,
    weights: _Array | Sequence[Any] | None = ...,
) -> tuple[ndarray, ndarray]: ...
def histogram2d(
    x: _Array | Sequence[Any],
    y: _Array | Sequence[Any],
    bins: Any = ...,
    range: Any = ...,
    density: _python.bool | None = ...,
    weights: _Array | Sequence[Any] | None = ...,
) -> tuple[ndarray, ndarray, ndarray]: ...
def histogram_bin_edges(
    a: _Array | Sequence[Any],
    bins: Any = ...,
    range: Any = ...,
    weights: _Array | Sequence[Any] | None = ...,
) -> ndarray: ...
def histogramdd(
    sample: Any,
    bins: Any = ...,
    range: Any = ...,
    density: _python.bool | None = ...,
    weights: _Array | Sequence[Any] | None = ...,
) -> Any: ...
def hsplit(ary: _Array | Sequence[Any], indices_or_sections: Any) -> list[ndarray]: ...
def hstack(
    tup: _Array | Sequence[Any], *, dtype: _typing.DTypeLike | None = ..., casting: Any = ...
) -> ndarray: ...
hypot: ufunc
def i0(x: _Array | Sequence[Any]) -> ndarray: ...
def identity(n: Any, dtype: _typing.DTypeLike | None = ..., *, like: Any = ...) -> ndarray: ...
iinfo = _host.iinfo
def imag(val: Any) -> ndarray: ...
index_exp: Any
def indices(
    dimensions: _Shape, dtype: _typing.DTypeLike | None = ..., sparse: _python.bool = ...
) -> ndarray: ...
inexact = _host.inexact
inf: float
def info(
    object: Any = ..., maxwidth: Any = ..., output: Any = ..., toplevel: Any = ...
) -> None: ...
def inner(a: _Array | Sequence[Any], b: _Array | Sequence[Any], /) -> ndarray: ...
def insert(
    arr: _Array | Sequence[Any], obj: Any, values: _Array | Sequence[Any], axis: _Axis | None = ...
) -> ndarray: ...
int16 = _host.int16
int32 = _host.int32
int64 = _host.int64
int8 = _host.int8
int_ = _host.int_
intc = _host.intc
integer = _host.integer
def interp(
    x: _Array | Sequence[Any],
    xp: _Array | Sequence[Any],
    fp: _Array | Sequence[Any],
    left: Any = ...,
    right: _python.bool | None = ...,
    period: Any = ...,
) -> ndarray: ...
def intersect1d(
    ar1: _Array | Sequence[Any],
    ar2: _Array | Sequence[Any],
    assume_unique: _python.bool = ...,
    return_indices: Any = ...,
) -> ndarray: ...
intp = _host.intp
invert: ufunc
def is_busday(
    dates: Any,
    weekmask: Any = ...,
    holidays: Any = ...,
    busdaycal: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> Any: ...
def isclose(
    a: _Array | Sequence[Any],
    b: _Array | Sequence[Any],
    rtol: Any = ...,
    atol: Any = ...,
    equal_nan: _python.bool = ...,
) -> ndarray: ...
def iscomplex(x: _Array | Sequence[Any]) -> ndarray: ...
def iscomplexobj(x: _Array | Sequence[Any]) -> _python.bool: ...
def isdtype(dtype: _typing.DTypeLike | None, kind: Any) -> _python.bool: ...
isfinite: ufunc
def isfortran(a: _Array | Sequence[Any]) -> _python.bool: ...
def isin(
    element: _Array | Sequence[Any],
    test_elements: Any,
    assume_unique: _python.bool = ...,
    invert: _python.bool = ...,
    *,
    kind: Any = ...,
) -> ndarray: ...
isinf: ufunc
isnan: ufunc
isnat: ufunc
def isneginf(
    x: _Array | Sequence[Any], out: _Array | tuple[_Array | None, ...] | None = ...
) -> ndarray: ...
def isposinf(
    x: _Array | Sequence[Any], out: _Array | tuple[_Array | None, ...] | None = ...
) -> ndarray: ...
def isreal(x: _Array | Sequence[Any]) -> ndarray: ...
def isrealobj(x: _Array | Sequence[Any]) -> _python.bool: ...
def isscalar(element: _Array | Sequence[Any]) -> _python.bool: ...
def issubdtype(arg1: Any, arg2: Any) -> _python.bool: ...
def iterable(y: _Array | Sequence[Any]) -> _python.bool: ...
def ix_(*args: Any) -> tuple[ndarray, ...]: ...
def kaiser(M: _Array | Sequence[Any], beta: Any) -> ndarray: ...
def kron(a: _Array | Sequence[Any], b: _Array | Sequence[Any]) -> ndarray: ...
lcm: ufunc
ldexp: ufunc
left_shift: ufunc
less: ufunc
less_equal: ufunc
def lexsort(keys: Any, axis: _Axis = ...) -> ndarray: ...
def linspace(
    start: Any,
    stop: Any,
    num: Any = ...,
    endpoint: _python.bool = ...,
    retstep: _python.bool = ...,
    dtype: _typing.DTypeLike | None = ...,
    axis: _Axis = ...,
    *,
    device: Any = ...,
) -> Any: ...
little_endian: bool
def load(
    file: Any,
    mmap_mode: Any = ...,
    allow_pickle: Any = ...,
    fix_imports: Any = ...,
    encoding: Any = ...,
    *,
    max_header_size: Any = ...,
) -> Any: ...
def loadtxt(
    fname: Any,
    dtype: _typing.DTypeLike | None = ...,
    comments: Any = ...,
    delimiter: Any = ...,
    converters: Any = ...,
    skiprows: Any = ...,
    usecols: Any = ...,
    unpack: Any = ...,
    ndmin: Any = ...,
    encoding: Any = ...,
    max_rows: Any = ...,
    *,
    quotechar: Any = ...,
    like: Any = ...,
) -> Any: ...
log: ufunc
log10: ufunc
log1p: ufunc
log2: ufunc
logaddexp: ufunc
logaddexp2: ufunc
logical_and: ufunc
logical_not: ufunc
logical_or: ufunc
logical_xor: ufunc
def logspace(
    start: Any,
    stop: Any,
    num: Any = ...,
    endpoint: _python.bool = ...,
    base: Any = ...,
    dtype: _typing.DTypeLike | None = ...,
    axis: _Axis = ...,
) -> ndarray: ...
long = _host.long
longdouble = _host.longdouble
longlong = _host.longlong
def mask_indices(n: Any, mask_func: Any, k: Any = ...) -> tuple[ndarray, ...]: ...
matmul: ufunc
matrix = _host.matrix
def matrix_transpose(x: _Array | Sequence[Any], /) -> ndarray: ...
matvec: ufunc
def max(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    initial: Any = ...,
    where: Any = ...,
) -> ndarray: ...
maximum: ufunc
def may_share_memory(
    a: _Array | Sequence[Any], b: _Array | Sequence[Any], /, max_work: Any = ...
) -> _python.bool: ...
def mean(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    *,
    where: Any = ...,
) -> ndarray: ...
def median(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    overwrite_input: _python.bool = ...,
    keepdims: _python.bool = ...,
) -> ndarray: ...
memmap = _host.memmap
def meshgrid(
    *xi: Any, copy: _python.bool = ..., sparse: _python.bool = ..., indexing: Any = ...
) -> tuple[ndarray, ...]: ...
mgrid: Any
def min(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    initial: Any = ...,
    where: Any = ...,
) -> ndarray: ...
def min_scalar_type(a: _Array | Sequence[Any], /) -> _host.dtype: ...
minimum: ufunc
def mintypecode(typechars: Any, typeset: Any = ..., default: Any = ...) -> str: ...
mod: ufunc
modf: ufunc
def moveaxis(a: _Array | Sequence[Any], source: Any, destination: Any) -> ndarray: ...
multiply: ufunc
nan: float
def nan_to_num(
    x: _Array | Sequence[Any],
    copy: _python.bool = ...,
    nan: Any = ...,
    posinf: Any = ...,
    neginf: Any = ...,
) -> ndarray: ...
def nanargmax(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    *,
    keepdims: _python.bool = ...,
) -> ndarray: ...
def nanargmin(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    *,
    keepdims: _python.bool = ...,
) -> ndarray: ...
def nancumprod(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def nancumsum(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def nanmax(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    initial: Any = ...,
    where: Any = ...,
) -> ndarray: ...
def nanmean(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    *,
    where: Any = ...,
) -> ndarray: ...
def nanmedian(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    overwrite_input: _python.bool = ...,
    keepdims: _python.bool = ...,
) -> ndarray: ...
def nanmin(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    initial: Any = ...,
    where: Any = ...,
) -> ndarray: ...
def nanpercentile(
    a: _Array | Sequence[Any],
    q: Any,
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    overwrite_input: _python.bool = ...,
    method: Any = ...,
    keepdims: _python.bool = ...,
    *,
    weights: _Array | Sequence[Any] | None = ...,
) -> ndarray: ...
def nanprod(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    initial: Any = ...,
    where: Any = ...,
) -> ndarray: ...
def nanquantile(
    a: _Array | Sequence[Any],
    q: Any,
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    overwrite_input: _python.bool = ...,
    method: Any = ...,
    keepdims: _python.bool = ...,
    *,
    weights: _Array | Sequence[Any] | None = ...,
) -> ndarray: ...
def nanstd(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    ddof: Any = ...,
    keepdims: _python.bool = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> ndarray: ...
def nansum(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    initial: Any = ...,
    where: Any = ...,
) -> ndarray: ...
def nanvar(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    ddof: Any = ...,
    keepdims: _python.bool = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> ndarray: ...
ndenumerate: Any
def ndim(a: _Array | Sequence[Any]) -> int: ...
ndindex = _host.ndindex
nditer: Any
negative: ufunc
def nested_iters(
    op: Any,
    axes: _Axis,
    flags: Any = ...,
    op_flags: Any = ...,
    op_dtypes: Any = ...,
    order: Any = ...,
    casting: Any = ...,
    buffersize: Any = ...,
) -> Any: ...
newaxis: None
nextafter: ufunc
def nonzero(a: _Array | Sequence[Any]) -> tuple[ndarray, ...]: ...
not_equal: ufunc
number = _host.number
object_ = _host.object_
ogrid: Any
def ones(
    shape: _Shape,
    dtype: _typing.DTypeLike | None = ...,
    order: Any = ...,
    *,
    device: Any = ...,
    like: Any = ...,
) -> ndarray: ...
def ones_like(
    a: _Array | Sequence[Any],
    dtype: _typing.DTypeLike | None = ...,
    order: Any = ...,
    subok: _python.bool = ...,
    shape: _Shape | None = ...,
    *,
    device: Any = ...,
) -> ndarray: ...
def outer(
    a: _Array | Sequence[Any],
    b: _Array | Sequence[Any],
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def packbits(
    a: _Array | Sequence[Any], /, axis: _Axis | None = ..., bitorder: Any = ...
) -> ndarray: ...
def pad(
    array: _Array | Sequence[Any], pad_width: Any, mode: Any = ..., **kwargs: Any
) -> ndarray: ...
def partition(
    a: _Array | Sequence[Any], kth: Any, axis: _Axis = ..., kind: Any = ..., order: Any = ...
) -> ndarray: ...
def percentile(
    a: _Array | Sequence[Any],
    q: Any,
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    overwrite_input: _python.bool = ...,
    method: Any = ...,
    keepdims: _python.bool = ...,
    *,
    weights: _Array | Sequence[Any] | None = ...,
) -> ndarray: ...
def permute_dims(a: _Array | Sequence[Any], axes: _Axis | None = ...) -> ndarray: ...
pi: float
def piecewise(
    x: _Array | Sequence[Any], condlist: Any, funclist: Any, *args: Any, **kw: Any
) -> ndarray: ...
def place(arr: _Array | Sequence[Any], mask: _Array | Sequence[Any], vals: Any) -> None: ...
def poly(seq_of_zeros: Any) -> ndarray: ...
poly1d = _host.poly1d
def polyadd(a1: _Array | Sequence[Any], a2: _Array | Sequence[Any]) -> ndarray: ...
def polyder(p: Any, m: _Array | Sequence[Any] = ...) -> ndarray: ...
def polydiv(u: Any, v: _Array | Sequence[Any]) -> ndarray: ...
def polyfit(
    x: _Array | Sequence[Any],
    y: _Array | Sequence[Any],
    deg: Any,
    rcond: Any = ...,
    full: _python.bool = ...,
    w: Any = ...,
    cov: Any = ...,
) -> Any: ...
def polyint(p: Any, m: _Array | Sequence[Any] = ..., k: Any = ...) -> ndarray: ...
def polymul(a1: _Array | Sequence[Any], a2: _Array | Sequence[Any]) -> ndarray: ...
def polysub(a1: _Array | Sequence[Any], a2: _Array | Sequence[Any]) -> ndarray: ...
def polyval(p: Any, x: _Array | Sequence[Any]) -> ndarray: ...
positive: ufunc
pow: ufunc
power: ufunc
def printoptions(*args: Any, **kwargs: Any) -> Any: ...
def prod(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    initial: Any = ...,
    where: Any = ...,
) -> ndarray: ...
def promote_types(type1: Any, type2: Any, /) -> _host.dtype: ...
def ptp(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
) -> ndarray: ...
def put(
    a: _Array | Sequence[Any], ind: Any, v: _Array | Sequence[Any], mode: Any = ...
) -> None: ...
def put_along_axis(
    arr: _Array | Sequence[Any],
    indices: _Array | Sequence[Any],
    values: _Array | Sequence[Any],
    axis: _Axis,
) -> None: ...
def putmask(
    a: _Array | Sequence[Any], /, mask: _Array | Sequence[Any], values: _Array | Sequence[Any]
) -> None: ...
def quantile(
    a: _Array | Sequence[Any],
    q: Any,
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    overwrite_input: _python.bool = ...,
    method: Any = ...,
    keepdims: _python.bool = ...,
    *,
    weights: _Array | Sequence[Any] | None = ...,
) -> ndarray: ...
r_: Any
rad2deg: ufunc
radians: ufunc
def ravel(a: _Array | Sequence[Any], order: Any = ...) -> ndarray: ...
def ravel_multi_index(
    multi_index: Any, dims: _Shape, mode: Any = ..., order: Any = ...
) -> ndarray: ...
def real(val: Any) -> ndarray: ...
def real_if_close(a: _Array | Sequence[Any], tol: Any = ...) -> ndarray: ...
recarray = _host.recarray
reciprocal: ufunc
record = _host.record
remainder: ufunc
def repeat(a: _Array | Sequence[Any], repeats: Any, axis: _Axis | None = ...) -> ndarray: ...
def require(
    a: _Array | Sequence[Any],
    dtype: _typing.DTypeLike | None = ...,
    requirements: Any = ...,
    *,
    like: Any = ...,
) -> Any: ...
def reshape(
    a: _Array | Sequence[Any],
    /,
    shape: _Shape,
    order: Any = ...,
    *,
    copy: _python.bool | None = ...,
) -> ndarray: ...
def resize(a: _Array | Sequence[Any], new_shape: _Shape) -> ndarray: ...
def result_type(*arrays_and_dtypes: Any) -> _host.dtype: ...
right_shift: ufunc
rint: ufunc
def roll(a: _Array | Sequence[Any], shift: Any, axis: _Axis | None = ...) -> ndarray: ...
def rollaxis(a: _Array | Sequence[Any], axis: _Axis, start: Any = ...) -> ndarray: ...
def roots(p: Any) -> ndarray: ...
def rot90(m: _Array | Sequence[Any], k: Any = ..., axes: _Axis = ...) -> ndarray: ...
def round(
    a: _Array | Sequence[Any],
    decimals: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def row_stack(
    tup: _Array | Sequence[Any], *, dtype: _typing.DTypeLike | None = ..., casting: Any = ...
) -> ndarray: ...
s_: Any
def save(file: Any, arr: _Array | Sequence[Any], allow_pickle: Any = ...) -> None: ...
def savetxt(
    fname: Any,
    X: Any,
    fmt: Any = ...,
    delimiter: Any = ...,
    newline: Any = ...,
    header: Any = ...,
    footer: Any = ...,
    comments: Any = ...,
    encoding: Any = ...,
) -> None: ...
def savez(file: Any, *args: Any, allow_pickle: Any = ..., **kwds: Any) -> None: ...
def savez_compressed(file: Any, *args: Any, allow_pickle: Any = ..., **kwds: Any) -> None: ...
sctypeDict: Any
def searchsorted(
    a: _Array | Sequence[Any], v: _Array | Sequence[Any], side: Any = ..., sorter: Any = ...
) -> ndarray: ...
def select(condlist: Any, choicelist: Any, default: Any = ...) -> ndarray: ...
def set_printoptions(
    precision: Any = ...,
    threshold: Any = ...,
    edgeitems: Any = ...,
    linewidth: Any = ...,
    suppress: Any = ...,
    nanstr: Any = ...,
    infstr: Any = ...,
    formatter: Any = ...,
    sign: Any = ...,
    floatmode: Any = ...,
    *,
    legacy: Any = ...,
    override_repr: Any = ...,
) -> None: ...
def setbufsize(size: _Shape) -> None: ...
def setdiff1d(
    ar1: _Array | Sequence[Any], ar2: _Array | Sequence[Any], assume_unique: _python.bool = ...
) -> ndarray: ...
def seterr(
    all: Any = ..., divide: Any = ..., over: Any = ..., under: Any = ..., invalid: Any = ...
) -> Any: ...
def seterrcall(func: Any) -> None: ...
def setxor1d(
    ar1: _Array | Sequence[Any], ar2: _Array | Sequence[Any], assume_unique: _python.bool = ...
) -> ndarray: ...
def shape(a: _Array | Sequence[Any]) -> tuple[int, ...]: ...
def shares_memory(
    a: _Array | Sequence[Any], b: _Array | Sequence[Any], /, max_work: Any = ...
) -> _python.bool: ...
short = _host.short
def show_config(mode: Any = ...) -> None: ...
def show_runtime(*args: Any, **options: Any) -> Any: ...
sign: ufunc
signbit: ufunc
signedinteger = _host.signedinteger
sin: ufunc
def sinc(x: _Array | Sequence[Any]) -> ndarray: ...
single = _host.single
sinh: ufunc
def size(a: _Array | Sequence[Any], axis: _Axis | None = ...) -> int: ...
def sort(
    a: _Array | Sequence[Any],
    axis: _Axis = ...,
    kind: Any = ...,
    order: Any = ...,
    *,
    stable: Any = ...,
) -> ndarray: ...
def sort_complex(a: _Array | Sequence[Any]) -> ndarray: ...
spacing: ufunc
def split(
    ary: _Array | Sequence[Any], indices_or_sections: Any, axis: _Axis = ...
) -> list[ndarray]: ...
sqrt: ufunc
square: ufunc
def squeeze(a: _Array | Sequence[Any], axis: _Axis | None = ...) -> ndarray: ...
def stack(
    arrays: _Array | Sequence[Any],
    axis: _Axis = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    *,
    dtype: _typing.DTypeLike | None = ...,
    casting: Any = ...,
) -> ndarray: ...
def std(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    ddof: Any = ...,
    keepdims: _python.bool = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> ndarray: ...
str_ = _host.str_
subtract: ufunc
def sum(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    keepdims: _python.bool = ...,
    initial: Any = ...,
    where: Any = ...,
) -> ndarray: ...
def swapaxes(a: _Array | Sequence[Any], axis1: _Axis, axis2: _Axis) -> ndarray: ...
def take(
    a: _Array | Sequence[Any],
    indices: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    mode: Any = ...,
) -> ndarray: ...
def take_along_axis(
    arr: _Array | Sequence[Any], indices: _Array | Sequence[Any], axis: _Axis = ...
) -> ndarray: ...
tan: ufunc
tanh: ufunc
def tensordot(
    a: _Array | Sequence[Any], b: _Array | Sequence[Any], axes: _Axis = ...
) -> ndarray: ...
def test(
    label: Any = ...,
    verbose: Any = ...,
    extra_argv: Any = ...,
    doctests: Any = ...,
    coverage: Any = ...,
    durations: Any = ...,
    tests: Any = ...,
) -> ndarray: ...
def tile(A: _Array | Sequence[Any], reps: Any) -> ndarray: ...
timedelta64 = _host.timedelta64
def trace(
    a: _Array | Sequence[Any],
    offset: Any = ...,
    axis1: _Axis = ...,
    axis2: _Axis = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def transpose(a: _Array | Sequence[Any], axes: _Axis | None = ...) -> ndarray: ...
def trapezoid(
    y: _Array | Sequence[Any],
    x: _Array | Sequence[Any] | None = ...,
    dx: Any = ...,
    axis: _Axis = ...,
) -> ndarray: ...
def tri(
    N: Any,
    M: _Array | Sequence[Any] | None = ...,
    k: Any = ...,
    dtype: _typing.DTypeLike | None = ...,
    *,
    like: Any = ...,
) -> ndarray: ...
def tril(m: _Array | Sequence[Any], k: Any = ...) -> ndarray: ...
def tril_indices(
    n: Any, k: Any = ..., m: _Array | Sequence[Any] | None = ...
) -> tuple[ndarray, ...]: ...
def tril_indices_from(arr: _Array | Sequence[Any], k: Any = ...) -> tuple[ndarray, ...]: ...
def trim_zeros(filt: Any, trim: Any = ..., axis: _Axis | None = ...) -> ndarray: ...
def triu(m: _Array | Sequence[Any], k: Any = ...) -> ndarray: ...
def triu_indices(
    n: Any, k: Any = ..., m: _Array | Sequence[Any] | None = ...
) -> tuple[ndarray, ...]: ...
def triu_indices_from(arr: _Array | Sequence[Any], k: Any = ...) -> tuple[ndarray, ...]: ...
true_divide: ufunc
trunc: ufunc
typecodes: Any
def typename(char: Any) -> str: ...
ubyte = _host.ubyte
uint = _host.uint
uint16 = _host.uint16
uint32 = _host.uint32
uint64 = _host.uint64
uint8 = _host.uint8
uintc = _host.uintc
uintp = _host.uintp
ulong = _host.ulong
ulonglong = _host.ulonglong
def union1d(ar1: _Array | Sequence[Any], ar2: _Array | Sequence[Any]) -> ndarray: ...
def unique(
    ar: _Array | Sequence[Any],
    return_index: _python.bool = ...,
    return_inverse: _python.bool = ...,
    return_counts: _python.bool = ...,
    axis: _Axis | None = ...,
    *,
    equal_nan: _python.bool = ...,
    sorted: _python.bool = ...,
) -> Any: ...
def unique_all(x: _Array | Sequence[Any]) -> Any: ...
def unique_counts(x: _Array | Sequence[Any]) -> Any: ...
def unique_inverse(x: _Array | Sequence[Any]) -> Any: ...
def unique_values(x: _Array | Sequence[Any]) -> ndarray: ...
def unpackbits(
    a: _Array | Sequence[Any], /, axis: _Axis | None = ..., count: Any = ..., bitorder: Any = ...
) -> ndarray: ...
def unravel_index(
    indices: _Array | Sequence[Any], shape: _Shape, order: Any = ...
) -> tuple[ndarray, ...]: ...
unsignedinteger = _host.unsignedinteger
def unstack(x: _Array | Sequence[Any], /, *, axis: _Axis = ...) -> tuple[ndarray, ...]: ...
def unwrap(p: Any, discont: Any = ..., axis: _Axis = ..., *, period: Any = ...) -> ndarray: ...
ushort = _host.ushort
def vander(x: _Array | Sequence[Any], N: Any = ..., increasing: _python.bool = ...) -> ndarray: ...
def var(
    a: _Array | Sequence[Any],
    axis: _Axis | None = ...,
    dtype: _typing.DTypeLike | None = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
    ddof: Any = ...,
    keepdims: _python.bool = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> ndarray: ...
def vdot(a: _Array | Sequence[Any], b: _Array | Sequence[Any], /) -> ndarray: ...
vecdot: ufunc
vecmat: ufunc
class vectorize(_host.vectorize): ...
void = _host.void
def vsplit(ary: _Array | Sequence[Any], indices_or_sections: Any) -> list[ndarray]: ...
def vstack(
    tup: _Array | Sequence[Any], *, dtype: _typing.DTypeLike | None = ..., casting: Any = ...
) -> ndarray: ...
def where(
    condition: _Array | Sequence[Any],
    x: _Array | Sequence[Any] | None = ...,
    y: _Array | Sequence[Any] | None = ...,
    /,
) -> Any: ...
def zeros(
    shape: _Shape,
    dtype: _typing.DTypeLike | None = ...,
    order: Any = ...,
    *,
    device: Any = ...,
    like: Any = ...,
) -> ndarray: ...
def zeros_like(
    a: _Array | Sequence[Any],
    dtype: _typing.DTypeLike | None = ...,
    order: Any = ...,
    subok: _python.bool = ...,
    shape: _Shape | None = ...,
    *,
    device: Any = ...,
) -> ndarray: ...
emath: Any
def __getattr__(name: str) -> Any: ...
