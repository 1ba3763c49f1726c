"""Calls of NumPy's functions with ndarrays: by dovetail if it has the function, else by NumPy.

A function of numbers, lists and NumPy arrays is NumPy's own: scalar results stay NumPy's scalars,
arrays become ndarrays. With a tensor among the arguments the tables of `functions.numpy.protocol`
say which function of dovetail is called. What these tables lack is computed by NumPy if the host
can read the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as host

from ..dtypes import BY_NAME, DType, complex128, float64, int64
from ..engine import tracer_api
from ..errors import CaptureError, DeviceError
from ..functions.creation.from_values import asarray as tensor_from
from ..functions.datatypes import cast
from ..functions.indexing.index_reads import getitem
from ..functions.indexing.index_writes import setitem
from ..functions.numpy.protocol import FUNCTIONS, array_function
from ..functions.numpy.same_names import Function, UnknownFunctionError, signature_of
from ..functions.shape.copies import copy, stack
from ..tensor.c_fields import set_class
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
            nanquantile nanpercentile cov corrcoef interp trapezoid gradient unwrap angle sinc i0
            linspace polyfit roots""",
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


def ndarray_class() -> type[Tensor]:
    """Return the class ndarray, which `array_class` registers."""
    return _classes[0]


_classes: list[type[Tensor]] = []
_PLAIN: set[type] = {
    int,
    float,
    str,
    tuple,
    list,
    bool,
    type(None),
}  # and ndarray: stay as they are


def is_tracing() -> bool:
    """Return True if a tracer sees the work of this thread, so that values cannot be read."""
    return tracer_api.current() is not None


def as_ndarray(x: Tensor) -> Tensor:
    """Return a tensor as an ndarray over the same memory."""
    cls = _classes[0]
    return x if type(x) is cls else set_class(getitem(x, ...), cls)


def as_result(x: Any) -> Any:
    """Give fresh results the class ndarray: tensors and NumPy arrays, also in tuples and lists."""
    kind = type(x)
    if kind is Tensor:
        return set_class(x, _classes[0])
    if kind is host.ndarray:
        return from_host(x)
    if isinstance(x, (tuple, list)):
        items = [as_result(v) for v in x]
        return items if kind is list else kind(*items) if hasattr(x, "_fields") else kind(items)
    return x


def from_host(x: host.ndarray, is_shared: bool = True) -> Any:
    """Return a NumPy array as an ndarray; one of text, objects or records stays as it is.

    A large fresh array is shared; a copy of a small one takes less time. A captured function
    copies, since each replay may write.
    """
    if x.dtype.kind not in HOST_KINDS or x.dtype.name not in BY_NAME:
        return x
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    shares = is_shared and x.nbytes >= SHARED_BYTES_MIN and x.flags.writeable and not is_tracing()
    try:
        tensor = tensor_from(x, copy=not shares)
    except (DeviceError, ValueError):  # the default device has memory of its own, or odd strides
        tensor = tensor_from(x, copy=True)
    return set_class(tensor, _classes[0])


def to_host(x: Any) -> Any:
    """Return an argument for NumPy: tensors as arrays over their memory, also in lists.

    Raises: CaptureError in a captured function; DeviceError if the host cannot read the memory.
    """
    if isinstance(x, Tensor):
        return x.numpy()
    if type(x) is DType:
        return x.__numpy_dtype__
    if type(x) in (tuple, list):
        return type(x)(map(to_host, x))
    if type(x) is dict:
        return {k: to_host(v) for k, v in x.items()}
    return getattr(x, "__wrapped_ufunc__", x)


def call_on_host(
    theirs: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """Call a function of NumPy with the values of tensors, and return arrays as ndarrays."""
    out = options.get("out")
    result = theirs(*map(to_host, args), **{k: to_host(v) for k, v in options.items()})
    return out if isinstance(out, Tensor) else as_result(result)


def find_tensor(values: Sequence[Any]) -> Tensor | None:
    """Return the first tensor among arguments, also in lists of them, or None."""
    for x in values:
        if isinstance(x, Tensor):
            return x
        if type(x) in (tuple, list) and x and (tensor := find_tensor(x)) is not None:
            return tensor
    return None


def as_argument(x: Any) -> Any:
    """Return an argument for dovetail.

    `float` is float64, a NumPy scalar a Python number, and an array a tensor.
    """
    if x is float or x is complex or x is int:
        return PYTHON_DTYPES[x]
    if type(x) is Tensor:
        return as_ndarray(x)
    if isinstance(x, host.generic) and x.dtype.kind in HOST_KINDS:
        return x.item()
    return x if not isinstance(x, host.ndarray) else from_host(x, is_shared=False)


def widen(x: Any) -> Any:
    """Return integers and bools as float64, also in lists."""
    if isinstance(x, Tensor):
        return cast(x, float64) if x.dtype.kind in "biu" else x
    if isinstance(x, host.ndarray):
        return x.astype(host.float64) if x.dtype.kind in "biu" else x
    if type(x) in (tuple, list) and find_tensor(x) is not None:
        return type(x)(map(widen, x))
    return x


def write_out(out: Any, result: Any, casting: str = "same_kind") -> Any:
    """Write a result into `out`, cast as NumPy does, and return `out`.

    Raises: TypeError for a cast that `casting` forbids.
    """
    if not isinstance(out, Tensor):
        host.copyto(out, to_host(result), casting=casting)  # type: ignore[arg-type]  # NumPy checks it
        return out
    tensor = result if isinstance(result, Tensor) else tensor_from(result, device=out.device)
    if tensor.dtype is not out.dtype:
        theirs, target = tensor.dtype.__numpy_dtype__, out.dtype.__numpy_dtype__
        if theirs is not None and target is not None and not host.can_cast(theirs, target, casting):  # type: ignore[arg-type]  # NumPy checks it
            raise TypeError(
                f"out: {theirs} does not fit into {target} with casting={casting!r}; pass "
                "casting='unsafe', or another out="
            )
        tensor = cast(tensor, out.dtype)
    setitem(out, ..., tensor)
    return out


def wrap_function(theirs: Function) -> Callable[..., Any]:
    """Return a function of NumPy that takes ndarrays, and returns ndarrays for arrays."""
    ours = FUNCTIONS.get(theirs)
    name = getattr(theirs, "__name__", "")
    is_float, takes_array = theirs in _FLOAT_FUNCTIONS, name not in _OF_SEQUENCES
    names = frozenset(signature_of(ours).parameters) if ours else frozenset()

    @wraps(theirs, updated=())
    def call(*args: Any, **options: Any) -> Any:
        """Call dovetail's function if an argument is a tensor, else NumPy's."""
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
        if not all(type(a) in _PLAIN for a in args):
            args = tuple([as_argument(a) for a in args])
        if options:
            options = {k: as_argument(v) for k, v in options.items()}
        if is_float:
            args = tuple(map(widen, args))
        try:
            if ours is not None and options.keys() <= names:
                result = ours(*args, **options)
            else:
                result = array_function(x, theirs, (Tensor,), args, options)
        except UnknownFunctionError:
            if is_tracing():
                raise
            result = call_on_host(theirs, args, options)
        return as_result(result) if out is None else write_out(out, result)

    return call


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
    joined = stack(items)
    return joined if dtype is None else cast(joined, dtype)


def require_untraced(name: str, advice: str) -> None:
    """Raise CaptureError in a captured function, where values of the host would be constants."""
    if is_tracing():
        raise CaptureError(f"{name}: a captured function must not call it; {advice}")
