"""The methods of Tensor; only this module sets them on the class.

The methods are functions that `public` declares, and their in-place variants. The generated
`tensor/signatures.pyi` declares them for type checkers.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from importlib import import_module
from inspect import unwrap
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..argument_checks import choice
from ..compat import hints
from ..compat.aliases import DEVICE_METHODS, FUNCTION_METHODS, find_original
from ..declarations import IN_PLACE_METHODS, METHODS, Function, public
from ..device_class import device as device_named
from ..dtypes import DType, find_plugin
from ..errors import DTypeError, PluginError, ShapeError
from ..lazy_import import LazyModule
from ..ops import table as ops
from ..tensor import c_slots, printing
from ..tensor import layout_registry as layout_plugins
from ..tensor.host import READ_METHODS
from ..tensor.operators import OPERATORS
from ..tensor.primitives import apply
from ..tensor.promotion import Array, Operand, as_operand, overrides_operators
from ..tensor.tensor import Tensor
from ..tensor.writes import write_result
from . import datatypes, torch_methods, variants
from .creation import constructors
from .datatypes import DeviceLike, DTypeLike
from .elementwise import op_functions
from .elementwise.op_functions import Number
from .indexing import index_reads, index_writes, masks
from .io import interop, pickling, transfer
from .known_calls import multiply_cached, read_cached, write_cached
from .lazy_methods import LAZY_METHODS
from .products import matrix_products
from .random import generator
from .reductions import cumulative, statistics
from .shape import bit_views, copies, manipulation, resizing
from .sorting import distinct, stable_sort

if TYPE_CHECKING:
    from .indexing import functional_updates
    from .numpy import protocol
else:
    functional_updates = LazyModule(".indexing.functional_updates", __package__)
    protocol = LazyModule(".numpy.protocol", __package__)

# The methods of these modules are set on the class; those of others are found at their first use.
LOADED_MODULES = {__name__} | {
    module.__name__
    for module in (
        bit_views, constructors, copies, cumulative, datatypes, distinct, generator, index_reads,
        index_writes, interop, manipulation, masks, matrix_products, op_functions, pickling,
        printing, resizing, stable_sort, statistics, torch_methods, transfer,
    )
}  # fmt: skip
LAZY_MODULES = {name: home for home, names in LAZY_METHODS.items() for name in names.split()}


@public(method=("__getattr__",), wrap=False)
def find_method(x: Tensor, name: str) -> Any:
    """Return the bound method for a name that Tensor lacks, lazily; a bool for `x.is_cuda`.

    Raises: AttributeError.
    """
    if name in LAZY_MODULES:
        import_module(f".{LAZY_MODULES[name]}", __package__)
        return MethodType(method_by_name(name), x)
    original = find_original("Tensor", name) or find_original("", name) or name
    if name.endswith("_") and (plain := find_original("", name[:-1])) is not None:
        original = f"{plain}_"
    if original != name and hasattr(Tensor, original):
        return getattr(x, original)
    if original in FUNCTION_METHODS or original.startswith("linalg."):
        package: Any = sys.modules[__name__.partition(".")[0]]
        return MethodType(reduce(getattr, original.split("."), package), x)
    if name in DEVICE_METHODS:
        return partial(torch_methods.move_to_type, x, name)
    if name.removeprefix("is_") in DEVICE_METHODS:
        return x.device.type == name.removeprefix("is_")
    if name in torch_methods.HIDDEN_METHODS:
        return MethodType(torch_methods.HIDDEN_METHODS[name], x)
    added = find_plugin_attribute("methods", name, "'Tensor' object", type(x))
    assert callable(added)
    return MethodType(added, x)


def find_plugin_attribute(table: str, name: str, owner: str, kind: type = Tensor) -> object:
    """Return the attribute that a layout adds under a name, or a plugin's dtype.

    owner: the object that was asked, for the error.
    kind: the class of the object, for the hint in the error.
    Raises: AttributeError if there is none.
    """
    if name.startswith("_"):
        raise hints.attribute_error(owner, name)
    if table == "functions" and (dtype := _find_plugin_dtype(name)) is not None:
        return dtype
    try:
        attribute: object = layout_plugins.registry.find(table, name)
        return attribute
    except AttributeError as error:
        hint_text = hints.hint(name, table == "methods", kind)
        raise hints.attribute_error(owner, name, hint_text) from error.__cause__


def _find_plugin_dtype(name: str) -> DType | None:
    """Return a plugin's dtype by name, or None. Raises: AttributeError if the plugin fails."""
    try:
        return find_plugin(name)
    except (PluginError, DTypeError) as error:
        raise AttributeError(f"dt.{name}: {error}") from error


@public(method=("__array_ufunc__",), wrap=False)
def array_ufunc(
    x: Tensor,
    ufunc: np.ufunc,
    method: str,
    *inputs: object,
    out: Sequence[object] = (),
    **keywords: object,
) -> object:
    """Call dovetail's function for a ufunc of NumPy with a tensor as an operand or `out=`."""
    return protocol.array_ufunc(x, ufunc, method, *inputs, out=out, **keywords)


@public(method=("__array_function__",), wrap=False)
def array_function(
    x: Tensor,
    function: Function,
    types: Sequence[type],
    args: tuple[object, ...],
    keywords: dict[str, object],
) -> object:
    """Call dovetail's function for a function of NumPy that got a tensor."""
    return protocol.array_function(x, function, types, args, keywords)


@public(method=True, wrap=False)
def to_dense(x: Tensor) -> Tensor:
    """Return the tensor itself, or a sparse layout's elements as a strided tensor.

    Shapes: any; the result has the same.
    Dtypes: all; the result has the same.
    Raises: OutOfMemoryError.

    >>> import dovetail as dt
    >>> x = dt.eye(2)
    >>> x.to_dense() is x, x.to_sparse().to_dense().tolist()
    (True, [[1.0, 0.0], [0.0, 1.0]])
    """
    return x


@public(method=("clip_", "clamp_"), widen=False)
def clip_(x: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Write the result of `dt.clip` into this tensor's memory and return the tensor.

    - `min`, `max`: the bounds, tensors or numbers; None is no bound.

    Shapes: the bounds are broadcast to this one's.
    Dtypes: all; the result is cast to this one's, where that loses no kind of number.
    Raises: ShapeError, DTypeError, DeviceError, ReadOnlyError, GradientError for a leaf that
    requires a gradient.

    >>> import dovetail as dt
    >>> dt.asarray([-1, 2, 9]).clip_(0, 5).tolist()
    [0, 2, 5]
    """
    return write_result("clip", x, [op_functions.clip(x, min, max)])


@public(method=True, widen=False)
def fill_(x: Tensor, value: Number) -> Tensor:
    """Fill this tensor with one number, and return it.

    - `value`: a number, or a tensor or array of one element.

    Shapes: any.
    Dtypes: all; the number has to fit.
    Raises: ValueOverflowError, DTypeError, ShapeError, ReadOnlyError, GradientError for a leaf that
    requires a gradient.
    See also: `full`, `Tensor.zero_`.

    >>> import dovetail as dt
    >>> dt.zeros(2).fill_(7).tolist()
    [7.0, 7.0]
    """
    return write_result(
        "fill", x, [constructors.full(x.shape, value, dtype=x.dtype, device=x.device)]
    )


@public(method=True, widen=False)
def zero_(x: Tensor) -> Tensor:
    """Fill this tensor with 0, and return it.

    Shapes: any.
    Dtypes: all; it keeps its own.
    Raises: ReadOnlyError, GradientError for a leaf that requires a gradient.

    >>> import dovetail as dt
    >>> dt.ones(2).zero_().tolist()
    [0.0, 0.0]
    """
    return fill_(x, 0)


@public(method=True, widen=False)
def copy_(x: Tensor, other: Tensor, /) -> Tensor:
    """Copy the elements of another tensor into this one, and return it.

    - `other`: a tensor on any device, or an array.

    Shapes: `other` is broadcast to this one's.
    Dtypes: all; `other` is cast to this one's, as by `dt.astype`.
    Raises: ShapeError, DTypeError, ReadOnlyError, GradientError for a leaf that requires a
    gradient.

    >>> import dovetail as dt
    >>> dt.zeros(3).copy_([1, 2, 3]).tolist()
    [1.0, 2.0, 3.0]
    """
    other = other if isinstance(other, Tensor) else as_operand("copy_", other, (x,))
    source = datatypes.move(other, x.device)
    return write_result("copy", x, [datatypes.cast(source, x.dtype)])


def real_part(x: Tensor) -> Tensor:
    """Return the real part as a new tensor; for a real tensor its elements.

    Shapes: any; the result has the same.
    Dtypes: all but bool; the dtype of the parts for complex ones.
    Raises: DTypeError for bool.

    >>> import dovetail as dt
    >>> dt.asarray([1 + 2j]).real.tolist()
    [1.0]
    """
    return apply(ops.REAL, (x,))


def imaginary_part(x: Tensor) -> Tensor:
    """Return the imaginary part as a new tensor; for a real tensor zeros.

    Shapes: any; the result has the same.
    Dtypes: all but bool; the dtype of the parts for complex ones.
    Raises: DTypeError for bool.

    >>> import dovetail as dt
    >>> dt.asarray([1 + 2j]).imag.tolist()
    [2.0]
    """
    return apply(ops.IMAG, (x,))


@public(method=True, out=True)
def cumsum(
    x: Tensor, axis: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
) -> Tensor:
    """Return the sums of the elements up to each one along `axis`; NumPy's and PyTorch's name.

    - `axis`: None ravels the tensor first, as in NumPy; `cumulative_sum` does not.
    - `dtype`: the elements are cast to it first.

    Shapes: any; the result has the same, or is a vector.
    Dtypes: all; integers and bool give int64 or uint64.
    Order: k ascending, one after the other: the same bits on every device.
    Raises: AxisError, DTypeError.

    >>> import dovetail as dt
    >>> dt.asarray([[1, 2], [3, 4]]).cumsum().tolist()
    [1, 3, 6, 10]
    """
    whole = manipulation.ravel(x) if axis is None else x
    return cumulative.cumulative_sum(whole, axis=0 if axis is None else axis, dtype=dtype)


@public(method=True, out=True)
def cumprod(
    x: Tensor, axis: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
) -> Tensor:
    """Return the products of the elements up to each one along `axis`; a short name like `cumsum`.

    - `axis`: None ravels the tensor first, as in NumPy; `cumulative_prod` does not.
    - `dtype`: the elements are cast to it first.

    Shapes: any; the result has the same, or is a vector.
    Dtypes: all; integers and bool give int64 or uint64.
    Order: k ascending, one after the other: the same bits on every device.
    Raises: AxisError, DTypeError.

    >>> import dovetail as dt
    >>> dt.asarray([[1, 2], [3, 4]]).cumprod(1).tolist()
    [[1, 2], [3, 12]]
    """
    whole = manipulation.ravel(x) if axis is None else x
    return cumulative.cumulative_prod(whole, axis=0 if axis is None else axis, dtype=dtype)


@public(method=True, wrap=False)
def to_device(x: Tensor, device: DeviceLike, /, *, stream: object = None) -> Tensor:
    """Return the tensor on a device: itself if it is there, else a copy (Array API).

    - `stream`: ignored: copies use the device's current stream; see `dt.stream`, and `x.to`.

    Shapes: any.
    Dtypes: all that the device has.
    Raises: DeviceError, UnavailableError, OutOfMemoryError.

    >>> import dovetail as dt
    >>> dt.zeros(2).to_device("reference").device
    device("reference")
    """
    return datatypes.move(x, device_named(device, "to_device"))


def updates_at(x: Tensor) -> functional_updates.FunctionalUpdates:
    """Return the updates that give a new tensor: `x.at[key].set(y)`, `.add(y)`, as in JAX.

    They are `get`, `set`, `add`, `subtract`, `multiply`, `divide`, `power`, `min`, `max` and
    `apply`. If integer arrays contain a position several times, `set` keeps the last value, `power`
    and `apply` act once, and the others combine all values.

    Shapes: any; the result has the same.
    Dtypes: all; values are cast to it as by `x[key] = values`.
    Gradient: to x and to the values.
    Raises: as `x[key] = values`, which writes in place.

    >>> import dovetail as dt
    >>> x = dt.zeros(3)
    >>> x.at[[0, 0, 2]].add(1.0).tolist(), x.tolist()
    ([2.0, 0.0, 1.0], [0.0, 0.0, 0.0])
    """
    return functional_updates.FunctionalUpdates(x)


ARRAY_API_VERSIONS = (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


@public(method=("__array_namespace__",), wrap=False)
def array_namespace(x: Tensor, /, *, api_version: str | None = None) -> ModuleType:
    """Return this library, for code written for the Array API.

    `api_version`: a version of the standard, 2021.12 to 2025.12, or None.
    Raises: ArgumentError for unknown versions.

    >>> import dovetail as dt
    >>> dt.zeros(2).__array_namespace__() is dt
    True
    """
    choice("__array_namespace__", api_version, "api_version", ARRAY_API_VERSIONS)
    return sys.modules[__name__.partition(".")[0]]


# --- operators and brackets -----------------------------------------------------------------------


@public(method=("__rmatmul__",), wrap=False)
def _matmul_reflected(self: Tensor, other: Array) -> Tensor:
    """Return `other @ self`, or NotImplemented if `other` overrides operators."""
    return NotImplemented if overrides_operators(other) else matrix_products.matmul(other, self)


@public(method=("__imatmul__",), wrap=False)
def _matmul_in_place(self: Tensor, other: Array) -> Tensor:
    """Write `self @ other` into `self` and return it. Raises: ShapeError if the shape differs."""
    product = variants.run_without_autocast(matrix_products.matmul, self, other)
    if product.shape != self.shape:  # it would be broadcast into `self`
        raise ShapeError(
            f"matmul in place: the result has shape {product.shape} and cannot be written into a "
            f"tensor of shape {self.shape}; write x = x @ y"
        )
    return write_result("matmul", self, [product])


# --- methods of the class -------------------------------------------------------------------------

PROPERTIES = {
    "real": property(real_part),
    "imag": property(imaginary_part),
    "at": property(updates_at),
    "__array_interface__": property(interop.array_interface),
    "__cuda_array_interface__": property(interop.cuda_array_interface),
}


def method_by_name(name: str) -> Function:
    """Return the method declared under a name, built if in place. Raises: KeyError if none is."""
    return METHODS[name] if name in METHODS else variants.in_place_method(IN_PLACE_METHODS[name])


def declaring_module(name: str) -> str:
    """Return the name of the module that declares a method."""
    function: Any = unwrap(METHODS.get(name) or IN_PLACE_METHODS[name])
    return str(function.__globals__["__name__"])


def install_methods(gradients: Mapping[str, object]) -> None:
    """Set all methods on Tensor.

    These are the declared methods, the operators, the reads by the host, and `gradients`, the
    methods of autograd, which imports this package.
    """
    names = (n for n in (*METHODS, *IN_PLACE_METHODS) if declaring_module(n) in LOADED_MODULES)
    declared = {n: method_by_name(n) for n in names}
    for methods in (OPERATORS, READ_METHODS, PROPERTIES, declared, gradients):
        for name, method in methods.items():
            setattr(Tensor, name, method)
    c_slots.fill(Tensor, read_cached, write_cached, multiply_cached)
