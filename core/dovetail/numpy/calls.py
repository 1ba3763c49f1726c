"""Calls of NumPy's functions with ndarrays: by dovetail if it has the function, else by NumPy.

A function of numbers, lists and NumPy arrays is NumPy's own: scalar results stay NumPy's scalars,
arrays become ndarrays. With a tensor among the arguments the tables of `functions.numpy.protocol`
say which function of dovetail is called. What these tables lack is computed by NumPy if the host
can read the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as host

from ..device_class import Device, opened
from ..dtypes import BY_NAME, DType, complex128, float64, int64
from ..engine import tracer_api
from ..engine.traced_numbers import TracedFloat
from ..environment import warn_user
from ..errors import (
    AxisError,
    CaptureError,
    DeviceError,
    DTypeError,
    ShapeError,
    TransformError,
    UnknownFunctionError,
)
from ..functions.creation.from_values import asarray as tensor_from
from ..functions.datatypes import cast
from ..functions.elementwise.op_functions import real
from ..functions.indexing.index_reads import getitem
from ..functions.indexing.index_writes import setitem
from ..functions.numpy.protocol import (
    array_function,
    call_with_host_values,
    find_direct,
)
from ..functions.numpy.protocol import to_host as to_host
from ..functions.numpy.same_names import Function
from ..functions.shape.copies import copy, stack
from ..functions.shape.manipulation import reshape
from ..settings import flags
from ..tensor.c_fields import expr_of, set_class
from ..tensor.operators import pending_numbers
from ..tensor.tensor import Tensor

SHARED_BYTES_MIN = 1 << 20
HOST_KINDS = "biufc"  # kinds of NumPy's dtypes that become ndarrays; others stay NumPy's arrays
NUMBERS = (host.generic, float, int)
PYTHON_DTYPES = {float: float64, int: int64, complex: complex128}
# Functions that compute in floats: integers become float64 first, as in NumPy.
_FLOAT_FUNCTIONS = frozenset(
    getattr(module, name)
    for module, names in (
        (
            host,
            """mean std var average median quantile percentile nanmean nanvar nanstd nanmedian
            nanquantile nanpercentile cov corrcoef interp trapezoid gradient unwrap sinc i0
            linspace poly polyfit roots""",
        ),
        (
            host.linalg,
            """cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_norm norm pinv qr
            slogdet solve svd svdvals tensorinv tensorsolve vector_norm matrix_rank""",
        ),
        (host.fft, " ".join(n for n in host.fft.__all__ if n[-1] in "tn2" and "shift" not in n)),
    )
    for name in names.split()
    if hasattr(module, name)
)


# Functions whose arrays, and lists of numbers, are cast to one dtype.
_PROMOTED = """
    append average block choose column_stack concat concatenate convolve correlate cross dot dstack
    einsum hstack inner intersect1d kron linspace multi_dot outer polyadd polymul polysub polyval
    select setxor1d stack tensordot trapezoid union1d vdot vstack
"""
# Those that join arrays: numbers among these are arrays, too.
_JOINING = "append block column_stack concat concatenate dstack hstack stack vstack"
# The arguments that are such arrays, where not all are.
_PROMOTED_PARTS = {
    "average": slice(0, None, 2),  # between the elements and the weights is an axis
    "choose": slice(1, None),
    "select": slice(1, None),
    "tensordot": slice(2),  # the next one has axes
}
_PROMOTED_OPTIONS = ("b", "default", "stop", "v", "values", "weights", "x")
# Functions that compute in float64, or complex128, for every dtype.
_DOUBLE_FUNCTIONS = ("corrcoef", "cov", "interp")
# Functions that store values in their first argument: the position of the values.
_STORED = {"fill_diagonal": 1} | dict.fromkeys(
    ("insert", "place", "put", "put_along_axis", "putmask"), 2
)
# Functions that take an array of no dimensions as a vector if an axis is given: those whose result
# has no dimensions either, and those whose result is a vector.
_OF_NUMBERS = """
    all amax amin any argmax argmin count_nonzero max min nanargmax nanargmin nanmax nanmean nanmin
    nanprod nanstd nansum nanvar prod ptp squeeze sum
"""
_TO_VECTORS = """
    argpartition argsort cumprod cumsum cumulative_prod cumulative_sum nancumprod nancumsum repeat
    take
"""
# Functions that cast the elements to `dtype` first: its position among the arguments.
_SUMS = {"trace": 4} | dict.fromkeys(
    """cumprod cumsum cumulative_prod cumulative_sum mean nancumprod nancumsum nanprod nansum prod
    std sum var""".split(),  # noqa: SIM905
    2,
)
# Arguments of these functions that stay integers or bools.
_NOT_WIDENED = ("axis", "axes", "bins", "fweights", "n", "num", "rowvar", "s", "where")
# Functions that end with a ufunc or an assignment in NumPy, so that results are broadcast to `out`.
_UFUNC_LIKE = """
    fix isneginf isposinf nanmedian nanpercentile nanquantile outer percentile quantile
"""
# Functions whose first argument is a sequence of arrays; in others it is one array.
_OF_SEQUENCES = {
    "block",
    "broadcast_arrays",
    "choose",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "einsum",
    "hstack",
    "ix_",
    "lexsort",
    "meshgrid",
    "multi_dot",
    "ravel_multi_index",
    "select",
    "stack",
    "vstack",
    "where",
}


_ndarray: type[Tensor] = Tensor  # until `register_ndarray` sets the class
# Classes of arguments that stay as they are; `register_ndarray` adds its class to the first.
_PLAIN: set[type] = {int, float, str, tuple, list, bool, type(None)}
_PLAIN_OPTIONS = frozenset([int, float, str, tuple, bool, type(None)])
_NUMBER_TYPES = frozenset([float, int, bool, complex])


def register_ndarray(kind: type[Tensor]) -> None:
    """Set the class that results get."""
    global _ndarray
    _ndarray = kind
    _PLAIN.add(kind)


def ndarray_class() -> type[Tensor]:
    """Return the class ndarray, which `array_class` registers."""
    return _ndarray


def is_tracing() -> bool:
    """Return True if a tracer sees the work of this thread, so that values cannot be read."""
    return tracer_api.current() is not None


def as_ndarray(x: Tensor) -> Tensor:
    """Return a tensor as an ndarray over the same memory."""
    return x if type(x) is _ndarray else set_class(getitem(x, ...), _ndarray)


def as_result(x: Any, passed: Collection[int] = (), device: Device | None = None) -> Any:
    """Return a result with ndarrays for its tensors and NumPy arrays, also in tuples and lists.

    The tensors must be fresh: their class is set in place. Large NumPy arrays share their memory.

    passed: the ids of arrays of the caller, which are copied.
    device: where NumPy's arrays go; None is the default device.
    """
    kind = type(x)
    if kind is _ndarray:
        return x
    if kind is Tensor:
        return set_class(x, _ndarray)
    if kind is host.ndarray:
        return from_host(x, id(x) not in passed, device)
    if isinstance(x, (tuple, list)):
        items = [as_result(v, passed, device) for v in x]
        return items if kind is list else kind(*items) if hasattr(x, "_fields") else kind(items)
    return x


def from_host(x: host.ndarray, may_share: bool = True, device: Device | None = None) -> Any:
    """Return a NumPy array as an ndarray; one of text, objects or records stays as it is.

    A large array that owns its memory is shared if it may be; a copy of a small one takes less
    time. A captured function copies, since each replay may write.
    """
    if x.dtype.kind not in HOST_KINDS or x.dtype.name not in BY_NAME:
        return x
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    shares = may_share and x.nbytes >= SHARED_BYTES_MIN and x.flags.owndata and not is_tracing()
    try:
        tensor = tensor_from(x, device=device, copy=not (shares and x.flags.writeable))
    except (DeviceError, ValueError):  # the device has memory of its own, or odd strides
        tensor = tensor_from(x, device=device, copy=True)
    return set_class(tensor, _ndarray)


def read_result(result: Any, args: Sequence[Any] = ()) -> Any:
    """Return NumPy's scalar for a fresh result of no dimensions, other results unchanged.

    The result stays an array if a tracer or a gradient needs it, or if its device is asynchronous;
    in-place operators then leave it as it is.
    """
    if isinstance(result, tuple):
        values = map(read_result, result)
        return type(result)(*values) if hasattr(result, "_fields") else tuple(values)
    if type(result) is not _ndarray:
        return result
    e = expr_of(result)
    if e.spec.shape or (len(args) > 2 and any(a is result for a in args)):  # `out` is no new array
        return result
    if (
        (flags.captures and is_tracing())
        or e.tape is not None
        or opened(e.spec.device).asynchronous
    ):
        pending_numbers[result] = True
        return result
    return result[()]


def call_on_host(
    theirs: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """Call a function of NumPy with the values of tensors, and return arrays as ndarrays.

    They are on the device of the first tensor. `out` is returned itself; an array of the caller
    that NumPy returns is copied.
    """
    result = call_with_host_values(theirs, args, options)
    x, out = find_tensor([*args, *options.values()]), options.get("out")
    device = None if x is None else x.device
    if type(out) is tuple:
        results = result if len(out) > 1 else (result,)
        final = [
            as_result(r, (), device) if o is None else o for r, o in zip(results, out, strict=True)
        ]
        return tuple(final) if len(final) > 1 else final[0]
    if out is not None:
        return out
    arrays = [id(a) for a in (*args, *options.values()) if type(a) is host.ndarray]
    return as_result(result, arrays, device)


def retry_on_host(
    error: DTypeError | ShapeError,
    theirs: Callable[..., Any],
    args: Sequence[Any],
    options: Mapping[str, Any],
) -> Any:
    """Return NumPy's result of a call that dovetail has refused.

    NumPy orders complex numbers, has more functions of bools, and a median of no elements.

    A captured function then runs on without a capture.

    Raises: the error, if it is not about dtypes or empty arrays, if NumPy refuses the call too, or
    if the host may not read values.
    """
    is_empty = any(isinstance(x, Tensor) and not x.size for x in args)
    if not (is_empty or isinstance(error, DTypeError)):
        raise error
    try:
        tracer_api.refuse_read("NumPy computes what dovetail refuses")
    except (CaptureError, TransformError):
        raise error from None
    try:
        return call_on_host(theirs, args, options)
    except (TypeError, ValueError):
        raise error from None


def find_tensor(values: Sequence[Any]) -> Tensor | None:
    """Return the first tensor among arguments, also in lists of them, or None."""
    if _NUMBER_TYPES.issuperset(map(type, values)):
        return None
    for x in values:
        if isinstance(x, Tensor):
            return x
        if type(x) in (tuple, list) and x and (tensor := find_tensor(x)) is not None:
            return tensor
    return None


def as_argument(x: Any) -> Any:
    """Return an argument for dovetail.

    `float` is float64, a NumPy scalar a Python number, and an array a tensor. A float argument of
    a captured function is read, because promotion and NumPy's functions need its value.
    """
    if type(x) is TracedFloat or isinstance(x, tracer_api.StandIn):
        x = x.read()
    if x is float or x is complex or x is int:
        return PYTHON_DTYPES[x]
    if type(x) is Tensor:
        return as_ndarray(x)
    if isinstance(x, host.generic) and x.dtype.kind in HOST_KINDS:
        return x.item()
    return x if not isinstance(x, host.ndarray) else from_host(x, may_share=False)


def widen(x: Any, kinds: str = "biu") -> Any:
    """Return arrays of these kinds of dtypes as float64 or complex128, also in lists."""
    if isinstance(x, (Tensor, host.ndarray)):
        if x.dtype.kind not in kinds:
            return x
        wide = complex128 if x.dtype.kind == "c" else float64
        return cast(x, wide) if isinstance(x, Tensor) else x.astype(wide.__numpy_dtype__)
    if type(x) in (tuple, list) and find_tensor(x) is not None:
        return type(x)([widen(v, kinds) for v in x])
    return x


def cast_values(x: Tensor, dtype: DType) -> Tensor:
    """Return a tensor as another dtype; warn, as NumPy does, where imaginary parts are lost."""
    if x.dtype.kind == "c" and dtype.kind not in "bc":
        text = "Casting complex values to real discards the imaginary part"
        warn_user(text, host.exceptions.ComplexWarning)
        x = real(x)
    return cast(x, dtype)


def cast_elements(
    name: str, args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], DType | None]:
    """Return the arguments of a sum without `dtype`, with elements cast to it, and the dtype.

    The result is cast to it, too. The dtype is None where dovetail's function takes it as NumPy's.
    Raises: UnknownFunctionError for `std` and `var` of a dtype that is no float.
    """
    position, x = _SUMS[name], args[0]
    dtype = options["dtype"] if "dtype" in options else args[position]
    d = None if dtype is None else BY_NAME.get(host.dtype(to_host(dtype)).name)
    loses_parts = d is not None and x.dtype.kind == "c" and d.kind != "c"
    is_spread = name in ("std", "var")
    odd_kinds = "biuc" if is_spread else "biu" if name == "mean" else "b"
    if d is None or not (loses_parts or d.kind in odd_kinds):
        return args, options, None
    if is_spread:
        raise UnknownFunctionError(
            f"np.{name}: in a captured function dtype must be a float, and the elements real"
        )
    options = {k: v for k, v in options.items() if k != "dtype"}
    others = [None if k == position else a for k, a in enumerate(args)][1:]
    return (cast_values(x, d), *others), options, d


def as_stored(dtype: DType, value: Any) -> Any:
    """Return a value to store in an array of a dtype, cast as NumPy does.

    Floats lose their fraction in integers. Raises: ValueError for NaN, OverflowError for infinity.
    """
    if isinstance(value, float) and dtype.kind in "iu":
        return int(value)
    if dtype.kind == "b" and isinstance(value, (int, float, complex, host.generic)):
        return bool(value)
    if isinstance(value, (int, float, complex)):
        return value
    joined = join(value) if isinstance(value, (list, tuple, Tensor)) else value
    if not isinstance(joined, Tensor):
        joined = from_host(host.asarray(joined), may_share=False)
    is_tensor = isinstance(joined, Tensor)
    return cast_values(joined, dtype) if is_tensor and joined.dtype is not dtype else joined


def write_out(out: Any, result: Any, casting: str = "same_kind", broadcasts: bool = False) -> Any:
    """Write a result into `out`, cast as NumPy does, and return `out`.

    broadcasts: whether `out` may have a shape to which the result broadcasts, as in ufuncs.
    Raises: TypeError for a cast that `casting` forbids, and for a number; ShapeError for another
    shape.
    """
    shape = host.shape(result)
    if not broadcasts and host.shape(out) != shape:
        raise ShapeError(f"out: must have the shape of the result, {shape}, got {host.shape(out)}")
    if not isinstance(out, Tensor):
        host.copyto(out, to_host(result), casting=casting)  # type: ignore[arg-type]  # NumPy checks it
        return out
    require_array(out)
    tensor = result if isinstance(result, Tensor) else tensor_from(result, device=out.device)
    if tensor.dtype is not out.dtype:
        theirs, target = tensor.dtype.__numpy_dtype__, out.dtype.__numpy_dtype__
        if theirs is not None and target is not None and not host.can_cast(theirs, target, casting):  # type: ignore[arg-type]  # NumPy checks it
            raise TypeError(
                f"out: {theirs} does not fit into {target} with casting={casting!r}; pass "
                "casting='unsafe', or another out="
            )
        tensor = cast_values(tensor, out.dtype)
    setitem(out, ..., tensor)
    return out


def require_array(x: Tensor) -> None:
    """Raise TypeError for a pending number: once read, it is one of NumPy's scalars."""
    if expr_of(x).spec.shape == () and x in pending_numbers:
        raise TypeError(
            f"'numpy.{x.dtype}' object does not support item assignment: it is a number; use "
            "np.array(x) to get an array"
        )


def wrap_function(theirs: Function) -> Callable[..., Any]:
    """Return a function of NumPy that takes ndarrays, and returns ndarrays for arrays."""
    name = getattr(theirs, "__name__", "")
    is_float, takes_array = theirs in _FLOAT_FUNCTIONS, name not in _OF_SEQUENCES
    narrow = "biufc" if name in _DOUBLE_FUNCTIONS else "biu"
    stored = _STORED.get(name)
    is_promoted, part = name in _PROMOTED.split(), _PROMOTED_PARTS.get(name, slice(None))
    of_numbers, to_vectors = name in _OF_NUMBERS.split(), name in _TO_VECTORS.split()
    is_sum = name in _SUMS
    direct: dict[Any, Callable[..., Any] | None] = {}  # by the form of a call

    @wraps(theirs, updated=())
    def call(*args: Any, **options: Any) -> Any:
        """Call dovetail's function if an argument is a tensor, else NumPy's."""
        first = args[0] if args else None
        if type(first) is not _ndarray and (takes_array or not _begins_with_ndarray(first)):
            return call_translated(*args, **options)
        form: Any = len(args)
        if options:
            form = (form, *options)
            for value in options.values():
                if type(value) not in _PLAIN_OPTIONS:
                    return call_translated(*args, **options)
        ours = direct[form] if form in direct else find_by_form(form, args, options)
        if (
            ours is None
            or (len(args) > 1 and not _PLAIN.issuperset(map(type, args)))
            or (is_float and not _has_floats_only(args, narrow))
            or (stored is not None and len(args) > stored)
            or (is_promoted and not _has_one_dtype((*args[part], *options.values())))
        ):
            return call_translated(*args, **options)
        try:
            result = ours(*args, **options)
        except (AxisError, ShapeError, DTypeError) as error:
            if counts_as_vector(args, options):
                return call_translated(*args, **options)
            if isinstance(error, AxisError):
                raise
            return retry_on_host(error, theirs, args, options)
        return result if type(result) is _ndarray else as_result(result)

    def find_by_form(form: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Return dovetail's function for calls of a form, or None, and remember it."""
        if form not in direct:
            is_general = "out" in options or (is_sum and has_dtype(args, options))
            direct[form] = None if is_general else find_direct(theirs, len(args), tuple(options))
        return direct[form]

    def counts_as_vector(args: Sequence[Any], options: Mapping[str, Any]) -> bool:
        """Return True for an array of no dimensions and an axis that NumPy accepts for it."""
        is_number = isinstance(args[0], Tensor) and args[0].ndim == 0
        has_tuple = tuple in map(type, (*args, *options.values()))
        return (of_numbers or to_vectors) and is_number and not has_tuple

    def has_dtype(args: Sequence[Any], options: Mapping[str, Any]) -> bool:
        """Return True if a sum has an argument `dtype`."""
        return "dtype" in options or len(args) > _SUMS[name]

    def call_translated(*args: Any, **options: Any) -> Any:
        """Call dovetail's function after a conversion of the arguments, or NumPy's."""
        if len(args) == 1 and not options and isinstance(args[0], NUMBERS):
            result = theirs(args[0])
            return result if isinstance(result, NUMBERS) else as_result(result)
        x = find_tensor(args)
        if x is None and (not options or (x := find_tensor([*options.values()])) is None):
            return call_on_host(theirs, args, options)
        if takes_array and args and type(args[0]) in (list, tuple):
            args = (join(args[0]), *args[1:])
        out = options.pop("out", None) if options else None
        if type(out) is tuple:
            (out,) = out
        args = tuple([as_argument(a) for a in args])
        options = {k: as_argument(v) for k, v in options.items()}
        if is_float:
            args = tuple([widen(a, narrow) for a in args])
            options = {k: v if k in _NOT_WIDENED else widen(v, narrow) for k, v in options.items()}
        if stored is not None and len(args) > stored and isinstance(args[0], Tensor):
            value = as_stored(args[0].dtype, args[stored])
            args = (*args[:stored], value, *args[stored + 1 :])
        if is_promoted:
            args, options = promote_arguments(name, args, options)
        target = None
        try:
            if is_sum and has_dtype(args, options) and isinstance(args[0], Tensor):
                args, options, target = cast_elements(name, args, options)
            ours = find_by_form((len(args), *options), args, options)
            if ours is not None:
                result = ours(*args, **options)
            else:
                result = array_function(x, theirs, (Tensor,), args, options)
        except UnknownFunctionError:
            if is_tracing():
                raise
            result = call_on_host(theirs, args, options)
        except (AxisError, ShapeError, DTypeError) as error:
            if counts_as_vector(args, options):
                result = call(as_ndarray(reshape(args[0], (1,))), *args[1:], **options)
                result = (
                    reshape(result, ()) if isinstance(result, Tensor) and not to_vectors else result
                )
            elif isinstance(error, AxisError):
                raise
            else:
                result = retry_on_host(error, theirs, args, options)
        if isinstance(result, Tensor):
            result = cast(result, target)
        if out is None:
            return as_result(result)
        return write_out(out, result, broadcasts=name in _UFUNC_LIKE.split())

    return call


def _dtypes_of(values: Any) -> Iterator[DType]:
    """Yield the dtypes of tensors in nested lists and tuples."""
    for x in values:
        if isinstance(x, Tensor):
            yield x.dtype
        elif type(x) is list or type(x) is tuple:
            yield from _dtypes_of(x)


def promote_arguments(
    name: str, args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a function with its arrays, and lists of numbers, of one dtype."""
    part = _PROMOTED_PARTS.get(name, slice(None))
    names = [k for k in options if k in _PROMOTED_OPTIONS]
    values = (*args[part], *[options[k] for k in names])
    has_lists_of_axes = name == "einsum" and type(args[0]) is not str
    promoted = promote(values if has_lists_of_axes else _with_arrays(values, name))
    final, count = [*args], len(args[part])
    final[part] = promoted[:count]
    by_name = dict(zip(names, promoted[count:], strict=True))
    return tuple(final), options | by_name


def promote(values: Any) -> Any:
    """Return nested lists of values in which tensors have NumPy's common dtype."""
    dtypes = [d.__numpy_dtype__ for d in {*_dtypes_of(values)}]
    if len(dtypes) < 2 or any(d is None for d in dtypes):  # `None in dtypes` is true for float64
        return values
    target = BY_NAME.get(host.result_type(*dtypes).name)

    def convert(x: Any) -> Any:
        """Return a value with its tensors cast."""
        if isinstance(x, Tensor):
            return x if x.dtype is target else cast(x, target)
        return type(x)(map(convert, x)) if type(x) in (list, tuple) else x

    return convert(values)


def _with_arrays(values: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    """Return arguments with an array for each list of numbers, and for numbers that are joined."""
    joins = name in _JOINING.split()

    def convert(x: Any) -> Any:
        """Return an array for a list of numbers, other lists with arrays in it."""
        if type(x) not in (list, tuple):
            return x
        if _is_list_of_numbers(x):
            return from_host(host.asarray(x))
        return type(x)([asarray_of(v) if type(v) in _NUMBER_TYPES else convert(v) for v in x])

    def asarray_of(x: Any) -> Any:
        """Return a number that is joined with arrays as an array."""
        return from_host(host.asarray(x)) if joins else x

    return tuple(map(convert, values))


def _is_list_of_numbers(x: Any) -> bool:
    """Return True for a list or tuple of Python's numbers, or of such lists; it may be empty."""
    return all(
        _is_list_of_numbers(v) if type(v) in (list, tuple) else type(v) in _NUMBER_TYPES for v in x
    )


def _begins_with_ndarray(values: Any) -> bool:
    """Return True for a list or tuple whose first item is an ndarray."""
    return type(values) in (list, tuple) and bool(values) and type(values[0]) is _ndarray


def _has_floats_only(args: Sequence[Any], narrow: str) -> bool:
    """Return True if no argument is, or may hold, an array of these kinds of dtypes."""
    for x in args:
        if type(x) is _ndarray:
            dtype = expr_of(x).spec.dtype
            if dtype.kind in narrow and dtype is not float64 and dtype is not complex128:
                return False
        elif type(x) is list:
            return False
    return True


def _has_one_dtype(args: Sequence[Any]) -> bool:
    """Return True if all ndarrays have one dtype, also in lists; False for lists of others."""
    first = None
    for arg in args:
        is_sequence = type(arg) is list or type(arg) is tuple
        if is_sequence and not arg:
            return False  # NumPy's array of no elements is of float64
        for x in arg if is_sequence else (arg,):
            if type(x) is _ndarray:
                dtype = expr_of(x).spec.dtype
                if first is not None and dtype is not first:
                    return False
                first = dtype
            elif is_sequence:
                return False
    return True


_wrappers: dict[Any, Callable[..., Any]] = {}


def find_function(theirs: Function) -> Callable[..., Any]:
    """Return the function of the namespace for a function of NumPy."""
    ours = _wrappers.get(theirs)
    if ours is None:
        ours = _wrappers[theirs] = wrap_function(theirs)
    return ours


def wrap_host_function(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that NumPy computes on the host, with ndarrays for arrays."""

    @wraps(theirs, updated=())
    def call(*args: Any, **options: Any) -> Any:
        """Call NumPy's function with the values of tensors."""
        return call_on_host(theirs, args, options)

    return call


def join(values: Any, dtype: DType | None = None) -> Tensor:
    """Return nested lists that hold tensors as one tensor, with their gradients."""
    if isinstance(values, Tensor):
        return copy(values) if dtype is None else cast(values, dtype)
    if not isinstance(values, (tuple, list)) or find_tensor(values) is None:
        return as_ndarray(tensor_from(host.asarray(values)))
    items = [join(v) for v in values]
    joined = stack(promote(items))
    return joined if dtype is None else cast(joined, dtype)


def require_untraced(name: str, advice: str) -> None:
    """Raise CaptureError in a captured function, where values of the host would be constants."""
    if is_tracing():
        raise CaptureError(f"{name}: a captured function must not call it; {advice}")
