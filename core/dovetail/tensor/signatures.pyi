# Written by tools/faces.py for type checkers:
# the methods of Tensor that its class does not define.
# fmt: off
# isort: off

import numpy as np
from collections.abc import Callable, Sequence
from dovetail.autograd.engine import Tensors
from dovetail.autograd.tape import HookHandle, Node
from dovetail.declarations import Function
from dovetail.device_class import Device
from dovetail.functions.creation.constructors import Fill
from dovetail.functions.datatypes import DTypeLike, DeviceLike
from dovetail.functions.elementwise.op_functions import Number
from dovetail.functions.indexing import functional_updates
from dovetail.functions.indexing.index_keys import Key
from dovetail.functions.io.pickling import Reduced
from dovetail.functions.random.generator import Generator
from dovetail.functions.random.samplers import Parameter
from dovetail.functions.reductions.histograms import Bins, Histogram, Range
from dovetail.functions.reductions.statistics import Axis, Mask
from dovetail.functions.shape.manipulation import Axes, Sizes
from dovetail.functions.sorting.distinct import UniqueAll, UniqueCounts, UniqueInverse
from dovetail.functions.sorting.stable_sort import TopK
from dovetail.functions.torch_order_functions import ValuesIndices
from dovetail.sparse.blocks import BSR
from dovetail.sparse.compressed import CSC, CSR
from dovetail.sparse.tensor import COO
from dovetail.tensor.promotion import Array, Operand
from dovetail.tensor.tensor import Tensor
from types import ModuleType
from typing import Literal, SupportsIndex, overload

class Methods:
    def __array_function__(
        self,
        function: Function,
        types: Sequence[type],
        args: tuple[object, ...],
        keywords: dict[str, object],
    ) -> object:
        """Call dovetail's function for a function of NumPy that got a tensor."""
    __array_interface__: dict[str, object]
    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Return this library, for code written for the Array API."""
    def __array_ufunc__(
        self,
        ufunc: np.ufunc,
        method: str,
        *inputs: object,
        out: Sequence[object] = (),
        **keywords: object,
    ) -> object:
        """Call dovetail's function for a ufunc of NumPy with a tensor as an operand or `out=`."""
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return Arrow's schema and array capsules, for `pyarrow.array`; share memory if
        possible."""
    def __copy__(self) -> Tensor:
        """Return a copy of the tensor in new memory, for `copy.copy`."""
    __cuda_array_interface__: dict[str, object]
    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        """Return a view of a copy of the tensor's storage, for `copy.deepcopy`."""
    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a DLPack capsule of the tensor's memory, computed and synchronised."""
    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's (device type, index) of a tensor."""
    def __format__(self, spec: str) -> str:
        """Return `format(x, spec)`: a number for one element; `spec` is ignored for others."""
    def __getitem__(self, key: Key) -> Tensor:
        """Return `x[key]`: a view if the key has only integers, slices, `...` and None, else a
        copy."""
    def __imatmul__(self, other: Array) -> Tensor:
        """Write `self @ other` into `self` and return it. Raises: ShapeError if the shape
        differs."""
    def __matmul__(self, other: Array) -> Tensor:
        """Return `self @ other`."""
    def __reduce_ex__(self, protocol: SupportsIndex) -> Reduced:
        """Return the function and arguments that rebuild the tensor, for `pickle`."""
    def __repr__(self) -> str:
        """Return `repr(x)`: values, shape if the values do not show it, dtype, device,
        gradient."""
    def __rmatmul__(self, other: Array) -> Tensor:
        """Return `other @ self`, or NotImplemented if `other` overrides operators."""
    def __setitem__(self, key: Key, value: Operand) -> None:
        """Write `x[key] = value`: the value is broadcast and cast to the memory of `x[key]`."""
    def __str__(self) -> str:
        """Return `str(x)`: the values alone."""
    def _repr_html_(self) -> str:
        """Return the HTML view of a tensor for notebooks; docs/storage.md describes it."""
    def abs(self, *, out: Tensor | None = None) -> Tensor:
        """Return the absolute value, also of complex numbers."""
    def abs_(self) -> Tensor:
        """Write the result of `dt.abs` into this tensor's memory and return the tensor."""
    def acos(self, *, out: Tensor | None = None) -> Tensor:
        """Return the inverse cosine in radians, in 0..pi; NaN outside of -1..1."""
    def acos_(self) -> Tensor:
        """Write the result of `dt.acos` into this tensor's memory and return the tensor."""
    def acosh(self, *, out: Tensor | None = None) -> Tensor:
        """Return the inverse hyperbolic cosine; NaN below 1."""
    def acosh_(self) -> Tensor:
        """Write the result of `dt.acosh` into this tensor's memory and return the tensor."""
    @overload
    def add(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the sum x1 + x2; for bool: or."""
    @overload
    def add(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def add_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.add` into this tensor's memory and return the tensor."""
    @overload
    def add_(self, other: Operand) -> Tensor: ...
    def addcdiv(
        self, tensor1: Array, tensor2: Array, *, value: Operand = 1, out: Tensor | None = None
    ) -> Tensor:
        """Return `x + value * tensor1 / tensor2`."""
    def addcdiv_(self, tensor1: Array, tensor2: Array, *, value: Operand = 1) -> Tensor:
        """Write the result of `dt.addcdiv` into this tensor's memory and return the tensor."""
    def addcmul(
        self, tensor1: Array, tensor2: Array, *, value: Operand = 1, out: Tensor | None = None
    ) -> Tensor:
        """Return `x + value * tensor1 * tensor2`."""
    def addcmul_(self, tensor1: Array, tensor2: Array, *, value: Operand = 1) -> Tensor:
        """Write the result of `dt.addcmul` into this tensor's memory and return the tensor."""
    def addmm(
        self,
        mat1: Array,
        mat2: Array,
        *,
        beta: Operand = 1,
        alpha: Operand = 1,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return `beta * x + alpha * (mat1 @ mat2)`."""
    def addmm_(self, mat1: Array, mat2: Array, *, beta: Operand = 1, alpha: Operand = 1) -> Tensor:
        """Write the result of `dt.addmm` into this tensor's memory and return the tensor."""
    def addmv(
        self,
        mat: Array,
        vec: Array,
        *,
        beta: Operand = 1,
        alpha: Operand = 1,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return `beta * x + alpha * (mat @ vec)`."""
    def addmv_(self, mat: Array, vec: Array, *, beta: Operand = 1, alpha: Operand = 1) -> Tensor:
        """Write the result of `dt.addmv` into this tensor's memory and return the tensor."""
    @overload
    def all(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return True for each position where every element over `axis` is nonzero."""
    @overload
    def all(
        self,
        dim: Axis = None,
        *,
        keepdim: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    @overload
    def allclose(
        self, x2: Operand, /, *, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> bool:
        """Return True if all elements of two tensors are close."""
    @overload
    def allclose(
        self, other: Operand, *, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> bool: ...
    @overload
    def amax(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Return the largest elements along axes: `dt.max`, and the name that PyTorch has for
        it."""
    @overload
    def amax(
        self, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Tensor: ...
    @overload
    def amin(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Return the smallest elements along axes: `dt.min`, and the name that PyTorch has for
        it."""
    @overload
    def amin(
        self, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Tensor: ...
    def angle(self, *, out: Tensor | None = None) -> Tensor:
        """Return the angle to the positive real axis in radians, in -pi..pi."""
    @overload
    def any(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return True for each position where some element over `axis` is nonzero."""
    @overload
    def any(
        self,
        dim: Axis = None,
        *,
        keepdim: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    @overload
    def argmax(
        self, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Return the position of the largest element along `axis`, as int64."""
    @overload
    def argmax(
        self, dim: int | None = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Tensor: ...
    @overload
    def argmin(
        self, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Return the position of the smallest element along `axis`, as int64."""
    @overload
    def argmin(
        self, dim: int | None = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Tensor: ...
    @overload
    def argsort(
        self,
        axis: int | None = -1,
        *,
        descending: bool = False,
        stable: bool = True,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the positions along `axis` of the elements of `x` in order, as int64."""
    @overload
    def argsort(
        self,
        dim: int | None = -1,
        *,
        descending: bool = False,
        stable: bool = True,
        out: Tensor | None = None,
    ) -> Tensor: ...
    def as_strided(
        self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
    ) -> Tensor:
        """Return a view of the storage of `x` with any shape, strides and offset."""
    def asin(self, *, out: Tensor | None = None) -> Tensor:
        """Return the inverse sine in radians, in -pi/2..pi/2; NaN outside of -1..1."""
    def asin_(self) -> Tensor:
        """Write the result of `dt.asin` into this tensor's memory and return the tensor."""
    def asinh(self, *, out: Tensor | None = None) -> Tensor:
        """Return the inverse hyperbolic sine."""
    def asinh_(self) -> Tensor:
        """Write the result of `dt.asinh` into this tensor's memory and return the tensor."""
    def astype(
        self, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike = None
    ) -> Tensor:
        """Return the elements of `x` cast to another dtype, on `device` if one is given."""
    at: functional_updates.FunctionalUpdates
    def atan(self, *, out: Tensor | None = None) -> Tensor:
        """Return the inverse tangent in radians, in -pi/2..pi/2."""
    @overload
    def atan2(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the angle in radians of the point (x2, x1), in -pi..pi."""
    @overload
    def atan2(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def atan2_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.atan2` into this tensor's memory and return the tensor."""
    @overload
    def atan2_(self, other: Operand) -> Tensor: ...
    def atan_(self) -> Tensor:
        """Write the result of `dt.atan` into this tensor's memory and return the tensor."""
    def atanh(self, *, out: Tensor | None = None) -> Tensor:
        """Return the inverse hyperbolic tangent; infinite at -1 and 1, NaN outside."""
    def atanh_(self) -> Tensor:
        """Write the result of `dt.atanh` into this tensor's memory and return the tensor."""
    def backward(
        self,
        gradient: Tensor | None = None,
        *,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensors | None = None,
    ) -> None:
        """Add this tensor's gradient to the `grad` of the leaves it depends on; return
        nothing."""
    def baddbmm(
        self,
        batch1: Array,
        batch2: Array,
        *,
        beta: Operand = 1,
        alpha: Operand = 1,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return `beta * x + alpha * (batch1 @ batch2)` for batches of matrices."""
    def bernoulli_(self, p: Parameter = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Write numbers by `dt.random.bernoulli` into this tensor's memory and return the
        tensor."""
    @overload
    def beta(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return gamma(x1) * gamma(x2) / gamma(x1 + x2); NaN for negative numbers."""
    @overload
    def beta(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def beta_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.beta` into this tensor's memory and return the tensor."""
    @overload
    def beta_(self, other: Operand) -> Tensor: ...
    def bincount(
        self, weights: Array | None = None, minlength: int = 0, *, length: int | None = None
    ) -> Tensor:
        """Count the occurrences of each of 0, 1, 2, ... in a vector of integers."""
    def binomial_(
        self, n: Array | int, p: Parameter, *, generator: Generator | None = None
    ) -> Tensor:
        """Write numbers by `dt.random.binomial` into this tensor's memory and return the
        tensor."""
    @overload
    def bitwise_and(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the bits that are set in both operands."""
    @overload
    def bitwise_and(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def bitwise_and_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.bitwise_and` into this tensor's memory and return the
        tensor."""
    @overload
    def bitwise_and_(self, other: Operand) -> Tensor: ...
    def bitwise_invert(self, *, out: Tensor | None = None) -> Tensor:
        """Return x with all bits flipped; for bool: not."""
    def bitwise_invert_(self) -> Tensor:
        """Write the result of `dt.bitwise_invert` into this tensor's memory and return the
        tensor."""
    @overload
    def bitwise_left_shift(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 * 2**x2, wrapping."""
    @overload
    def bitwise_left_shift(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def bitwise_left_shift_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.bitwise_left_shift` into this tensor's memory and return the
        tensor."""
    @overload
    def bitwise_left_shift_(self, other: Operand) -> Tensor: ...
    @overload
    def bitwise_or(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the bits that are set in one or both operands."""
    @overload
    def bitwise_or(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def bitwise_or_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.bitwise_or` into this tensor's memory and return the tensor."""
    @overload
    def bitwise_or_(self, other: Operand) -> Tensor: ...
    @overload
    def bitwise_right_shift(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 / 2**x2 rounded down."""
    @overload
    def bitwise_right_shift(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def bitwise_right_shift_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.bitwise_right_shift` into this tensor's memory and return the
        tensor."""
    @overload
    def bitwise_right_shift_(self, other: Operand) -> Tensor: ...
    @overload
    def bitwise_xor(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the bits that are set in exactly one operand."""
    @overload
    def bitwise_xor(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def bitwise_xor_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.bitwise_xor` into this tensor's memory and return the
        tensor."""
    @overload
    def bitwise_xor_(self, other: Operand) -> Tensor: ...
    def broadcast_to(self, shape: Sizes, *sizes: Sizes) -> Tensor:
        """Return a read-only view of `x` in which axes of size 1 repeat without using memory."""
    def bucketize(
        self,
        boundaries: Array,
        *,
        out_int32: bool = False,
        right: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return for each element the number of boundaries below it: `dt.searchsorted(boundaries,
        x)`."""
    def cbrt(self, *, out: Tensor | None = None) -> Tensor:
        """Return the cube root, also of negative numbers."""
    def cbrt_(self) -> Tensor:
        """Write the result of `dt.cbrt` into this tensor's memory and return the tensor."""
    def ceil(self, *, out: Tensor | None = None) -> Tensor:
        """Return the least integer that is not less than x."""
    def ceil_(self) -> Tensor:
        """Write the result of `dt.ceil` into this tensor's memory and return the tensor."""
    def choose(
        self, choices: Sequence[Operand], /, *, mode: str = "raise", out: Tensor | None = None
    ) -> Tensor:
        """Pick each element from one of `choices`, using `x` as the index."""
    def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """Split `x` along an axis into at most `chunks` views of one size; the last may be
        smaller."""
    def clamp(
        self, min: Operand | None = None, max: Operand | None = None, *, out: Tensor | None = None
    ) -> Tensor:
        """Return x limited to the range from `min` to `max`."""
    def clamp_(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """Write the result of `dt.clip` into this tensor's memory and return the tensor."""
    def clip(
        self, min: Operand | None = None, max: Operand | None = None, *, out: Tensor | None = None
    ) -> Tensor:
        """Return x limited to the range from `min` to `max`."""
    def clip_(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """Write the result of `dt.clip` into this tensor's memory and return the tensor."""
    def clone(self) -> Tensor:
        """Return a new contiguous tensor of the same elements; gradients flow through it."""
    @overload
    def compress(self, condition: Array, axis: int | None = None) -> Tensor:
        """Return `dt.compress(condition, x, axis)`: the places of an axis where a condition is
        True."""
    @overload
    def compress(self, condition: Array, dim: int | None = None) -> Tensor: ...
    def conj(self, *, out: Tensor | None = None) -> Tensor:
        """Return the complex conjugate, a - bi; a real number stays."""
    def conj_(self) -> Tensor:
        """Write the result of `dt.conj` into this tensor's memory and return the tensor."""
    def conjugate(self, *, out: Tensor | None = None) -> Tensor:
        """Return the complex conjugate, a - bi; a real number stays."""
    def contiguous(self, memory_format: None = None) -> Tensor:
        """Return `x` itself if its elements are dense in row-major order, else a dense copy."""
    def copy(self) -> Tensor:
        """Return a new contiguous tensor of the same elements; gradients flow through it."""
    def copy_(self, other: Tensor, /) -> Tensor:
        """Copy the elements of another tensor into this one, and return it."""
    @overload
    def copysign(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return |x1| with the sign of x2."""
    @overload
    def copysign(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def copysign_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.copysign` into this tensor's memory and return the tensor."""
    @overload
    def copysign_(self, other: Operand) -> Tensor: ...
    def corrcoef(
        self, y: Array | None = None, /, *, rowvar: bool = True, out: Tensor | None = None
    ) -> Tensor:
        """Return the correlation coefficients of variables: `cov` divided by the standard
        deviations."""
    def cos(self, *, out: Tensor | None = None) -> Tensor:
        """Return the cosine of an angle in radians; NaN for infinity."""
    def cos_(self) -> Tensor:
        """Write the result of `dt.cos` into this tensor's memory and return the tensor."""
    def cosh(self, *, out: Tensor | None = None) -> Tensor:
        """Return the hyperbolic cosine."""
    def cosh_(self) -> Tensor:
        """Write the result of `dt.cosh` into this tensor's memory and return the tensor."""
    @overload
    def count_nonzero(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Count the nonzero elements over `axis`."""
    @overload
    def count_nonzero(
        self, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Tensor: ...
    def cov(
        self,
        y: Array | None = None,
        /,
        *,
        rowvar: bool = True,
        correction: float = 1.0,
        fweights: Array | None = None,
        aweights: Array | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the covariance matrix of variables; each row of `x` has a variable's
        observations."""
    @overload
    def cross(self, x2: Array, /, *, axis: int = -1, out: Tensor | None = None) -> Tensor:
        """Return the cross products of vectors of three elements along an axis."""
    @overload
    def cross(self, other: Array, *, dim: int = -1, out: Tensor | None = None) -> Tensor: ...
    def cummax(self, dim: int, *, out: tuple[Tensor, Tensor] | None = None) -> ValuesIndices:
        """Return the largest elements up to each one along `dim`: (values, indices)."""
    def cummin(self, dim: int, *, out: tuple[Tensor, Tensor] | None = None) -> ValuesIndices:
        """Return the smallest elements up to each one along `dim`: (values, indices)."""
    @overload
    def cumprod(
        self, axis: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
    ) -> Tensor:
        """Return the products of the elements up to each one along `axis`; a short name like
        `cumsum`."""
    @overload
    def cumprod(
        self, dim: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
    ) -> Tensor: ...
    def cumprod_(
        self, axis: int | None = None, *, dtype: DTypeLike = None, include_initial: bool = False
    ) -> Tensor:
        """Write the result of `dt.cumulative_prod` into this tensor's memory and return the
        tensor."""
    @overload
    def cumsum(
        self, axis: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
    ) -> Tensor:
        """Return the sums of the elements up to each one along `axis`; NumPy's and PyTorch's
        name."""
    @overload
    def cumsum(
        self, dim: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
    ) -> Tensor: ...
    def cumsum_(
        self, axis: int | None = None, *, dtype: DTypeLike = None, include_initial: bool = False
    ) -> Tensor:
        """Write the result of `dt.cumulative_sum` into this tensor's memory and return the
        tensor."""
    @overload
    def cumulative_logsumexp(
        self,
        axis: int | None = None,
        *,
        dtype: DTypeLike = None,
        include_initial: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the logarithms of the sums of exponentials up to each element, along `axis`."""
    @overload
    def cumulative_logsumexp(
        self,
        dim: int | None = None,
        *,
        dtype: DTypeLike = None,
        include_initial: bool = False,
        out: Tensor | None = None,
    ) -> Tensor: ...
    def cumulative_logsumexp_(
        self, axis: int | None = None, *, dtype: DTypeLike = None, include_initial: bool = False
    ) -> Tensor:
        """Write the result of `dt.cumulative_logsumexp` into this tensor's memory and return the
        tensor."""
    @overload
    def cumulative_prod(
        self,
        axis: int | None = None,
        *,
        dtype: DTypeLike = None,
        include_initial: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the products of the elements up to each one, along `axis`."""
    @overload
    def cumulative_prod(
        self,
        dim: int | None = None,
        *,
        dtype: DTypeLike = None,
        include_initial: bool = False,
        out: Tensor | None = None,
    ) -> Tensor: ...
    def cumulative_prod_(
        self, axis: int | None = None, *, dtype: DTypeLike = None, include_initial: bool = False
    ) -> Tensor:
        """Write the result of `dt.cumulative_prod` into this tensor's memory and return the
        tensor."""
    @overload
    def cumulative_sum(
        self,
        axis: int | None = None,
        *,
        dtype: DTypeLike = None,
        include_initial: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the sums of the elements up to each one, along `axis`."""
    @overload
    def cumulative_sum(
        self,
        dim: int | None = None,
        *,
        dtype: DTypeLike = None,
        include_initial: bool = False,
        out: Tensor | None = None,
    ) -> Tensor: ...
    def cumulative_sum_(
        self, axis: int | None = None, *, dtype: DTypeLike = None, include_initial: bool = False
    ) -> Tensor:
        """Write the result of `dt.cumulative_sum` into this tensor's memory and return the
        tensor."""
    data: Tensor
    def deg2rad(self, *, out: Tensor | None = None) -> Tensor:
        """Convert degrees to radians."""
    def deg2rad_(self) -> Tensor:
        """Write the result of `dt.deg2rad` into this tensor's memory and return the tensor."""
    def detach(self) -> Tensor:
        """Return a tensor over the same memory that gradients do not flow through."""
    def detach_(self) -> Tensor:
        """Cut `x` off its tape, so that no gradient flows through it any more; return `x`."""
    def diag(self, k: int = 0, *, out: Tensor | None = None) -> Tensor:
        """Return the diagonal of a matrix as a view, or a matrix with a vector as its
        diagonal."""
    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
        """Return matrices whose diagonals are the rows of `x`, and which are 0 elsewhere."""
    def diagflat(self, k: int = 0, *, out: Tensor | None = None) -> Tensor:
        """Return a matrix whose diagonal has the elements of `x` in row-major order."""
    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """Return a view of the diagonals of `x` over two axes, which become the last axis."""
    @overload
    def diff(
        self,
        *,
        axis: int = -1,
        n: int = 1,
        prepend: Operand | None = None,
        append: Operand | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the differences of neighbours along `axis`, taken `n` times."""
    @overload
    def diff(
        self,
        *,
        dim: int = -1,
        n: int = 1,
        prepend: Operand | None = None,
        append: Operand | None = None,
        out: Tensor | None = None,
    ) -> Tensor: ...
    def digamma(self, *, out: Tensor | None = None) -> Tensor:
        """Return the derivative of lgamma; NaN at negative integers."""
    def digamma_(self) -> Tensor:
        """Write the result of `dt.digamma` into this tensor's memory and return the tensor."""
    @overload
    def div(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the quotient x1 / x2, always a float."""
    @overload
    def div(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def div_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.divide` into this tensor's memory and return the tensor."""
    @overload
    def div_(self, other: Operand) -> Tensor: ...
    @overload
    def divide(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the quotient x1 / x2, always a float."""
    @overload
    def divide(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def divide_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.divide` into this tensor's memory and return the tensor."""
    @overload
    def divide_(self, other: Operand) -> Tensor: ...
    @overload
    def dot(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return NumPy's dot product: the inner product of vectors, the matrix product of
        matrices."""
    @overload
    def dot(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    def element_size(self) -> int:
        """Return the bytes of one element: `x.itemsize`."""
    @overload
    def eq(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 == x2."""
    @overload
    def eq(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def equal(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 == x2."""
    @overload
    def equal(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def equal_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.equal` into this tensor's memory and return the tensor."""
    @overload
    def equal_(self, other: Operand) -> Tensor: ...
    def erf(self, *, out: Tensor | None = None) -> Tensor:
        """Return the error function."""
    def erf_(self) -> Tensor:
        """Write the result of `dt.erf` into this tensor's memory and return the tensor."""
    def erfc(self, *, out: Tensor | None = None) -> Tensor:
        """Return 1 - erf(x), accurate where it is small."""
    def erfc_(self) -> Tensor:
        """Write the result of `dt.erfc` into this tensor's memory and return the tensor."""
    def erfinv(self, *, out: Tensor | None = None) -> Tensor:
        """Return the inverse of the error function; infinite at -1 and 1, NaN outside."""
    def erfinv_(self) -> Tensor:
        """Write the result of `dt.erfinv` into this tensor's memory and return the tensor."""
    def exp(self, *, out: Tensor | None = None) -> Tensor:
        """Return e to the power x."""
    def exp2(self, *, out: Tensor | None = None) -> Tensor:
        """Return 2 to the power x."""
    def exp2_(self) -> Tensor:
        """Write the result of `dt.exp2` into this tensor's memory and return the tensor."""
    def exp_(self) -> Tensor:
        """Write the result of `dt.exp` into this tensor's memory and return the tensor."""
    def expand(self, *shape: Sizes) -> Tensor:
        """Return a read-only view of `x` as `dt.broadcast_to` does, where -1 keeps a size."""
    def expand_as(self, other: Tensor) -> Tensor:
        """Return a view of x, broadcast to the shape of another tensor."""
    @overload
    def expand_dims(self, axis: Axes = 0) -> Tensor:
        """Return a view of `x` with inserted axes of size 1."""
    @overload
    def expand_dims(self, dim: Axes = 0) -> Tensor: ...
    def expit_(self) -> Tensor:
        """Write the result of `dt.expit` into this tensor's memory and return the tensor."""
    def expm1(self, *, out: Tensor | None = None) -> Tensor:
        """Return exp(x) - 1, accurate near 0."""
    def expm1_(self) -> Tensor:
        """Write the result of `dt.expm1` into this tensor's memory and return the tensor."""
    def exponential_(self, scale: Parameter = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Write numbers by `dt.random.exponential` into this tensor's memory and return the
        tensor."""
    def fill_(self, value: Number) -> Tensor:
        """Fill this tensor with one number, and return it."""
    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """Merge neighbouring axes of `x` into one: a view if strides permit, else a copy."""
    @overload
    def flip(self, axis: Axes | None = None) -> Tensor:
        """Return a view of `x` with the order along some axes reversed; along all for None."""
    @overload
    def flip(self, dim: Axes | None = None) -> Tensor: ...
    @overload
    def flip_(self, axis: Axes | None = None) -> Tensor:
        """Write the result of `dt.flip` into this tensor's memory and return the tensor."""
    @overload
    def flip_(self, dim: Axes | None = None) -> Tensor: ...
    def fliplr(self) -> Tensor:
        """Return a view of `x` with its second axis reversed."""
    def fliplr_(self) -> Tensor:
        """Write the result of `dt.fliplr` into this tensor's memory and return the tensor."""
    def flipud(self) -> Tensor:
        """Return a view of `x` with its first axis reversed."""
    def flipud_(self) -> Tensor:
        """Write the result of `dt.flipud` into this tensor's memory and return the tensor."""
    @overload
    def float_power(self, x2: Operand) -> Tensor:
        """Return x1 to the power x2, computed in float64."""
    @overload
    def float_power(self, other: Operand) -> Tensor: ...
    def floor(self, *, out: Tensor | None = None) -> Tensor:
        """Return the largest integer that is not more than x."""
    def floor_(self) -> Tensor:
        """Write the result of `dt.floor` into this tensor's memory and return the tensor."""
    @overload
    def floor_divide(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the quotient x1 / x2 of exact arithmetic, rounded down."""
    @overload
    def floor_divide(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def floor_divide_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.floor_divide` into this tensor's memory and return the
        tensor."""
    @overload
    def floor_divide_(self, other: Operand) -> Tensor: ...
    def fmax_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.fmax` into this tensor's memory and return the tensor."""
    def fmin_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.fmin` into this tensor's memory and return the tensor."""
    def fmod_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.fmod` into this tensor's memory and return the tensor."""
    def frexp(self, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return mantissas m and exponents e with x = m * 2**e and 1/2 <= |m| < 1: (m, e)."""
    def gamma(self, *, out: Tensor | None = None) -> Tensor:
        """Return the gamma function: (x - 1)! for a positive integer, NaN at negative ones."""
    def gamma_(self) -> Tensor:
        """Write the result of `dt.gamma` into this tensor's memory and return the tensor."""
    def gather(self, dim: int, index: Array) -> Tensor:
        """Return the elements of `x` at `index` along axis `dim`; other axes may be shorter than
        x's."""
    @overload
    def gcd(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the greatest common divisor; negative only for MIN, and 0 for 0 and 0."""
    @overload
    def gcd(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def gcd_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.gcd` into this tensor's memory and return the tensor."""
    @overload
    def gcd_(self, other: Operand) -> Tensor: ...
    @overload
    def ge(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 >= x2."""
    @overload
    def ge(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    grad: Tensor | None
    grad_fn: Node | None
    @overload
    def greater(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 > x2."""
    @overload
    def greater(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def greater_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.greater` into this tensor's memory and return the tensor."""
    @overload
    def greater_(self, other: Operand) -> Tensor: ...
    @overload
    def greater_equal(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 >= x2."""
    @overload
    def greater_equal(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def greater_equal_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.greater_equal` into this tensor's memory and return the
        tensor."""
    @overload
    def greater_equal_(self, other: Operand) -> Tensor: ...
    @overload
    def gt(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 > x2."""
    @overload
    def gt(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def heaviside(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return 0 where x1 is negative, 1 where it is positive, and x2 where it is 0."""
    @overload
    def heaviside(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def heaviside_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.heaviside` into this tensor's memory and return the tensor."""
    @overload
    def heaviside_(self, other: Operand) -> Tensor: ...
    def histc(
        self, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None
    ) -> Tensor:
        """Count the elements in each of `bins` bins of equal width from `min` to `max`."""
    def histogram(
        self,
        bins: Bins = 10,
        *,
        range: Range = None,
        density: bool = False,
        weights: Array | None = None,
    ) -> Histogram:
        """Count the elements in each bin, and return the counts and the edges: (hist,
        bin_edges)."""
    @overload
    def hypot(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the length sqrt(x1**2 + x2**2), without overflow."""
    @overload
    def hypot(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def hypot_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.hypot` into this tensor's memory and return the tensor."""
    @overload
    def hypot_(self, other: Operand) -> Tensor: ...
    def i0(self, *, out: Tensor | None = None) -> Tensor:
        """Return the modified Bessel function of the first kind and order 0."""
    def i0_(self) -> Tensor:
        """Write the result of `dt.i0` into this tensor's memory and return the tensor."""
    def i1(self, *, out: Tensor | None = None) -> Tensor:
        """Return the modified Bessel function of the first kind and order 1."""
    def i1_(self) -> Tensor:
        """Write the result of `dt.i1` into this tensor's memory and return the tensor."""
    imag: Tensor
    def index_add(
        self, dim: int, index: Operand, source: Operand, *, out: Tensor | None = None
    ) -> Tensor:
        """Return a copy of `x` with slices of `source` added at `index` along `dim`."""
    def index_add_(self, dim: int, index: Operand, source: Operand) -> Tensor:
        """Add slices of `source` to the slices of `x` at `index` along `dim`, and return `x`."""
    def index_copy(
        self, dim: int, index: Operand, source: Operand, *, out: Tensor | None = None
    ) -> Tensor:
        """Return a copy of `x` with slices of `source` written at `index` along `dim`."""
    def index_copy_(self, dim: int, index: Operand, source: Operand) -> Tensor:
        """Write slices of `source` to the slices of `x` at `index` along `dim`, and return
        `x`."""
    def index_fill(
        self, dim: int, index: Operand, value: Operand, *, out: Tensor | None = None
    ) -> Tensor:
        """Return a copy of `x` with one value written to the slices at `index` along `dim`."""
    def index_fill_(self, dim: int, index: Operand, value: Operand) -> Tensor:
        """Write one value to the slices of `x` at `index` along `dim`, and return `x`."""
    def index_reduce(
        self,
        dim: int,
        index: Operand,
        source: Operand,
        reduce: str,
        *,
        include_self: bool = True,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return a copy of `x` with slices of `source` reduced into it at `index` along `dim`."""
    def index_reduce_(
        self, dim: int, index: Operand, source: Operand, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        """Write the result of `dt.index_reduce` into this tensor's memory and return the
        tensor."""
    def index_select(self, dim: int, index: Array) -> Tensor:
        """Return the rows of `x` at `index` along axis `dim`: `dt.take(x, index, axis=dim)`."""
    @overload
    def inner(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the sums of products over the last axes of two tensors, for every pair of the
        others."""
    @overload
    def inner(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    def integers_(
        self, low: int, high: int | None = None, *, generator: Generator | None = None
    ) -> Tensor:
        """Write numbers by `dt.random.integers` into this tensor's memory and return the
        tensor."""
    def is_complex(self) -> bool:
        """Return True if the elements are complex: `x.dtype.kind == "c"`."""
    def is_floating_point(self) -> bool:
        """Return True if the elements are real floats: `x.dtype.is_float`."""
    is_leaf: bool
    def is_pinned(self) -> bool:
        """Return True if the memory is page-locked, by `pin_memory` or by a copy in flight."""
    @overload
    def isclose(
        self,
        x2: Operand,
        /,
        *,
        rtol: float = 1e-05,
        atol: float = 1e-08,
        equal_nan: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return True where two tensors are equal up to rounding: |x1 - x2| <= atol + rtol *
        |x2|."""
    @overload
    def isclose(
        self,
        other: Operand,
        *,
        rtol: float = 1e-05,
        atol: float = 1e-08,
        equal_nan: bool = False,
        out: Tensor | None = None,
    ) -> Tensor: ...
    def isfinite(self, *, out: Tensor | None = None) -> Tensor:
        """Return True where x is neither infinite nor NaN."""
    @overload
    def isin(
        self,
        x2: Tensor | int | float,
        /,
        *,
        invert: bool = False,
        assume_unique: bool = False,
        kind: str | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return True for each element of `x1` that is an element of `x2`."""
    @overload
    def isin(
        self,
        other: Tensor | int | float,
        *,
        invert: bool = False,
        assume_unique: bool = False,
        kind: str | None = None,
        out: Tensor | None = None,
    ) -> Tensor: ...
    def isinf(self, *, out: Tensor | None = None) -> Tensor:
        """Return True where x is inf or -inf."""
    def isnan(self, *, out: Tensor | None = None) -> Tensor:
        """Return True where x is NaN."""
    @overload
    def kron(self, x2: Array, /, *, out: Tensor | None = None) -> Tensor:
        """Return the Kronecker product: a block for each element of `x1`, the element times
        `x2`."""
    @overload
    def kron(self, other: Array, *, out: Tensor | None = None) -> Tensor: ...
    def kthvalue(
        self,
        k: int,
        dim: int = -1,
        keepdim: bool = False,
        *,
        out: tuple[Tensor, Tensor] | None = None,
    ) -> ValuesIndices:
        """Return the k-th smallest elements along `dim`: (values, indices)."""
    def laplace_(
        self, loc: Parameter = 0.0, scale: Parameter = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Write numbers by `dt.random.laplace` into this tensor's memory and return the
        tensor."""
    @overload
    def lcm(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the least common multiple, which wraps; 0 where an operand is 0."""
    @overload
    def lcm(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def lcm_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.lcm` into this tensor's memory and return the tensor."""
    @overload
    def lcm_(self, other: Operand) -> Tensor: ...
    @overload
    def ldexp(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 * 2**x2, with one rounding; x2 is truncated to an integer."""
    @overload
    def ldexp(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def ldexp_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.ldexp` into this tensor's memory and return the tensor."""
    @overload
    def ldexp_(self, other: Operand) -> Tensor: ...
    @overload
    def le(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 <= x2."""
    @overload
    def le(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    def lerp(self, end: Array, weight: Operand, *, out: Tensor | None = None) -> Tensor:
        """Interpolate linearly: return `x + weight * (end - x)`."""
    def lerp_(self, end: Array, weight: Operand) -> Tensor:
        """Write the result of `dt.lerp` into this tensor's memory and return the tensor."""
    @overload
    def less(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 < x2."""
    @overload
    def less(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def less_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.less` into this tensor's memory and return the tensor."""
    @overload
    def less_(self, other: Operand) -> Tensor: ...
    @overload
    def less_equal(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 <= x2."""
    @overload
    def less_equal(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def less_equal_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.less_equal` into this tensor's memory and return the tensor."""
    @overload
    def less_equal_(self, other: Operand) -> Tensor: ...
    def lgamma(self, *, out: Tensor | None = None) -> Tensor:
        """Return the logarithm of |gamma(x)|; infinite at 0 and negative integers."""
    def lgamma_(self) -> Tensor:
        """Write the result of `dt.lgamma` into this tensor's memory and return the tensor."""
    def log(self, *, out: Tensor | None = None) -> Tensor:
        """Return the natural logarithm; -inf at 0, NaN below."""
    def log1p(self, *, out: Tensor | None = None) -> Tensor:
        """Return log(1 + x), accurate near 0; -inf at -1, NaN below."""
    def log1p_(self) -> Tensor:
        """Write the result of `dt.log1p` into this tensor's memory and return the tensor."""
    def log2(self, *, out: Tensor | None = None) -> Tensor:
        """Return the logarithm to base 2; -inf at 0, NaN below."""
    def log2_(self) -> Tensor:
        """Write the result of `dt.log2` into this tensor's memory and return the tensor."""
    def log10(self, *, out: Tensor | None = None) -> Tensor:
        """Return the logarithm to base 10; -inf at 0, NaN below."""
    def log10_(self) -> Tensor:
        """Write the result of `dt.log10` into this tensor's memory and return the tensor."""
    def log_(self) -> Tensor:
        """Write the result of `dt.log` into this tensor's memory and return the tensor."""
    @overload
    def log_softmax(self, axis: int = -1, *, out: Tensor | None = None) -> Tensor:
        """Return the logarithm of softmax along `axis`, accurate where softmax underflows."""
    @overload
    def log_softmax(self, dim: int = -1, *, out: Tensor | None = None) -> Tensor: ...
    def log_softmax_(self, axis: int = -1) -> Tensor:
        """Write the result of `dt.log_softmax` into this tensor's memory and return the
        tensor."""
    @overload
    def logaddexp(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return log(exp(x1) + exp(x2)), without overflow."""
    @overload
    def logaddexp(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    def logaddexp2_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.logaddexp2` into this tensor's memory and return the tensor."""
    @overload
    def logaddexp_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.logaddexp` into this tensor's memory and return the tensor."""
    @overload
    def logaddexp_(self, other: Operand) -> Tensor: ...
    @overload
    def logical_and(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return True where both operands are true."""
    @overload
    def logical_and(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def logical_and_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.logical_and` into this tensor's memory and return the
        tensor."""
    @overload
    def logical_and_(self, other: Operand) -> Tensor: ...
    def logical_not(self, *, out: Tensor | None = None) -> Tensor:
        """Return True where x is zero or False."""
    def logical_not_(self) -> Tensor:
        """Write the result of `dt.logical_not` into this tensor's memory and return the
        tensor."""
    @overload
    def logical_or(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return True where one or both operands are true."""
    @overload
    def logical_or(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def logical_or_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.logical_or` into this tensor's memory and return the tensor."""
    @overload
    def logical_or_(self, other: Operand) -> Tensor: ...
    @overload
    def logical_xor(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return True where exactly one operand is true."""
    @overload
    def logical_xor(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def logical_xor_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.logical_xor` into this tensor's memory and return the
        tensor."""
    @overload
    def logical_xor_(self, other: Operand) -> Tensor: ...
    def logit(self, *, out: Tensor | None = None) -> Tensor:
        """Return the inverse of sigmoid, log(x / (1 - x)); infinite at 0 and 1, NaN outside."""
    def logit_(self) -> Tensor:
        """Write the result of `dt.logit` into this tensor's memory and return the tensor."""
    @overload
    def logsumexp(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Return the logarithm of the sum of exp(x) over `axis`, without overflow, in one
        kernel."""
    @overload
    def logsumexp(
        self, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Tensor: ...
    @overload
    def lt(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 < x2."""
    @overload
    def lt(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    def masked_fill(self, mask: Array, value: Operand) -> Tensor:
        """Return `dt.where(mask, value, x)` in the dtype of `x`."""
    def masked_fill_(self, mask: Array, value: Operand) -> Tensor:
        """Write `value` into `x` where the mask is true, and return `x`."""
    def masked_scatter(self, mask: Array, source: Array, *, out: Tensor | None = None) -> Tensor:
        """Return a copy of `x` with the first elements of `source` where `mask` is true, in
        order."""
    def masked_scatter_(self, mask: Array, source: Array) -> Tensor:
        """Write the result of `dt.masked_scatter` into this tensor's memory and return the
        tensor."""
    def masked_select(self, mask: Array) -> Tensor:
        """Return a vector of the elements of `x` where `mask` is True, after both are
        broadcast."""
    @overload
    def matmul(self, x2: Array, /, *, dtype: DTypeLike = None, out: Tensor | None = None) -> Tensor:
        """Return the matrix product over the last two axes; the axes before them are
        broadcast."""
    @overload
    def matmul(
        self, other: Array, *, dtype: DTypeLike = None, out: Tensor | None = None
    ) -> Tensor: ...
    @overload
    def max(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return the largest element over `axis`; NaN if one of them is NaN."""
    @overload
    def max(
        self,
        axis: Axis = None,
        *,
        keepdim: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    @overload
    def maximum(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the larger of two elements; NaN if one is NaN."""
    @overload
    def maximum(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def maximum_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.maximum` into this tensor's memory and return the tensor."""
    @overload
    def maximum_(self, other: Operand) -> Tensor: ...
    @overload
    def mean(
        self,
        axis: Axis = None,
        *,
        dtype: DTypeLike = None,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return the arithmetic mean of the elements over `axis`."""
    @overload
    def mean(
        self,
        dim: Axis = None,
        *,
        dtype: DTypeLike = None,
        keepdim: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    @overload
    def median(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Return the median over `axis`: the middle element in sorted order, or the mean of
        both."""
    @overload
    def median(
        self, axis: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Tensor: ...
    @overload
    def min(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return the smallest element over `axis`; NaN if one of them is NaN."""
    @overload
    def min(
        self,
        axis: Axis = None,
        *,
        keepdim: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    @overload
    def minimum(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the smaller of two elements; NaN if one is NaN."""
    @overload
    def minimum(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def minimum_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.minimum` into this tensor's memory and return the tensor."""
    @overload
    def minimum_(self, other: Operand) -> Tensor: ...
    def mode(
        self, dim: int = -1, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None
    ) -> ValuesIndices:
        """Return the most common elements along `dim`: (values, indices)."""
    def moveaxis(self, source: Axes, destination: Axes) -> Tensor:
        """Return a view of `x` with some axes moved to other positions."""
    def movedim(self, source: Axes, destination: Axes) -> Tensor:
        """Return a view of `x` with some axes moved to other positions."""
    @overload
    def mul(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the product x1 * x2; for bool: and."""
    @overload
    def mul(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def mul_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.multiply` into this tensor's memory and return the tensor."""
    @overload
    def mul_(self, other: Operand) -> Tensor: ...
    def multinomial(
        self,
        num_samples: int,
        replacement: bool = False,
        *,
        generator: Generator | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Draw indices of categories with the weights `x`, as PyTorch's function of this name."""
    @overload
    def multiply(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the product x1 * x2; for bool: and."""
    @overload
    def multiply(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def multiply_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.multiply` into this tensor's memory and return the tensor."""
    @overload
    def multiply_(self, other: Operand) -> Tensor: ...
    def nan_to_num(
        self,
        nan: float = 0.0,
        *,
        posinf: float | None = None,
        neginf: float | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return `x` with numbers in place of NaN and infinities."""
    def nan_to_num_(
        self, nan: float = 0.0, *, posinf: float | None = None, neginf: float | None = None
    ) -> Tensor:
        """Write the result of `dt.nan_to_num` into this tensor's memory and return the tensor."""
    @overload
    def nanargmax(
        self, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Return the first position of the largest non-NaN element along `axis`; -1 if all are
        NaN."""
    @overload
    def nanargmax(
        self, dim: int | None = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Tensor: ...
    @overload
    def nanargmin(
        self, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Return the first position of the smallest non-NaN element along `axis`; -1 if all are
        NaN."""
    @overload
    def nanargmin(
        self, dim: int | None = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Tensor: ...
    def nancumprod_(self, axis: int | None = None, *, dtype: DTypeLike = None) -> Tensor:
        """Write the result of `dt.nancumprod` into this tensor's memory and return the tensor."""
    def nancumsum_(self, axis: int | None = None, *, dtype: DTypeLike = None) -> Tensor:
        """Write the result of `dt.nancumsum` into this tensor's memory and return the tensor."""
    @overload
    def nanmax(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return the largest element over `axis` that is not NaN; NaN if all are."""
    @overload
    def nanmax(
        self,
        dim: Axis = None,
        *,
        keepdim: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    @overload
    def nanmean(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return the mean over `axis` of the elements that are not NaN; NaN if there are none."""
    @overload
    def nanmean(
        self,
        dim: Axis = None,
        *,
        keepdim: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    @overload
    def nanmedian(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Return the median of the elements that are not NaN over `axis`; NaN if there are only
        NaNs."""
    @overload
    def nanmedian(
        self, axis: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Tensor: ...
    @overload
    def nanmin(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return the smallest element over `axis` that is not NaN; NaN if all are."""
    @overload
    def nanmin(
        self,
        dim: Axis = None,
        *,
        keepdim: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    @overload
    def nanquantile(
        self,
        q: Operand,
        /,
        axis: Axis = None,
        *,
        method: str = "linear",
        weights: Array | None = None,
        keepdims: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the quantiles over `axis` of the elements that are not NaN; NaN if all are."""
    @overload
    def nanquantile(
        self,
        q: Operand,
        dim: Axis = None,
        *,
        method: str = "linear",
        weights: Array | None = None,
        keepdim: bool = False,
        out: Tensor | None = None,
    ) -> Tensor: ...
    @overload
    def nanstd(
        self,
        axis: Axis = None,
        *,
        correction: float = 0.0,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return the standard deviation over `axis` of the elements that are not NaN."""
    @overload
    def nanstd(
        self,
        dim: Axis = None,
        *,
        correction: float = 0.0,
        keepdim: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    @overload
    def nansum(
        self,
        axis: Axis = None,
        *,
        dtype: DTypeLike = None,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return the sum over `axis` of the elements that are not NaN; 0 if there are none."""
    @overload
    def nansum(
        self,
        dim: Axis = None,
        *,
        dtype: DTypeLike = None,
        keepdim: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    @overload
    def nanvar(
        self,
        axis: Axis = None,
        *,
        correction: float = 0.0,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return the variance over `axis` of the elements that are not NaN."""
    @overload
    def nanvar(
        self,
        dim: Axis = None,
        *,
        correction: float = 0.0,
        keepdim: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        """Return a view of `length` places of axis `dim` from `start` on."""
    def ndtr(self, *, out: Tensor | None = None) -> Tensor:
        """Return the probability that a standard normal variable is below x."""
    def ndtr_(self) -> Tensor:
        """Write the result of `dt.ndtr` into this tensor's memory and return the tensor."""
    def ndtri(self, *, out: Tensor | None = None) -> Tensor:
        """Return the standard normal quantile of probability x; NaN outside of 0..1."""
    def ndtri_(self) -> Tensor:
        """Write the result of `dt.ndtri` into this tensor's memory and return the tensor."""
    @overload
    def ne(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 != x2."""
    @overload
    def ne(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    def neg(self, *, out: Tensor | None = None) -> Tensor:
        """Return -x."""
    def neg_(self) -> Tensor:
        """Write the result of `dt.negative` into this tensor's memory and return the tensor."""
    def negative(self, *, out: Tensor | None = None) -> Tensor:
        """Return -x."""
    def negative_(self) -> Tensor:
        """Write the result of `dt.negative` into this tensor's memory and return the tensor."""
    def new_empty(self, *size: int, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
        """Return memory of a shape, with the dtype and the device of `x` unless others are
        given."""
    def new_full(
        self,
        size: Sequence[int],
        fill_value: complex,
        *,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
    ) -> Tensor:
        """Return a tensor of one value, with the dtype and device of `x` unless others are
        given."""
    def new_ones(self, *size: int, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
        """Return ones of a shape, with the dtype and the device of `x` unless others are
        given."""
    def new_tensor(
        self, data: object, *, dtype: DTypeLike = None, device: DeviceLike = None
    ) -> Tensor:
        """Return a copy of values, with the dtype and the device of `x` unless others are
        given."""
    def new_zeros(self, *size: int, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
        """Return zeros of a shape, with the dtype and the device of `x` unless others are
        given."""
    @overload
    def nextafter(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the next number of their dtype after x1 in the direction of x2."""
    @overload
    def nextafter(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def nextafter_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.nextafter` into this tensor's memory and return the tensor."""
    @overload
    def nextafter_(self, other: Operand) -> Tensor: ...
    def nonzero(self, *, size: int | None = None, fill_value: int = 0) -> tuple[Tensor, ...]:
        """Return for each axis the positions of the nonzero elements, in row-major order."""
    def normal_(
        self, mean: complex = 0.0, std: float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Write numbers by `dt.random.normal` into this tensor's memory and return the tensor."""
    @overload
    def not_equal(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 != x2."""
    @overload
    def not_equal(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def not_equal_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.not_equal` into this tensor's memory and return the tensor."""
    @overload
    def not_equal_(self, other: Operand) -> Tensor: ...
    @overload
    def percentile(
        self,
        q: Operand,
        /,
        axis: Axis = None,
        *,
        method: str = "linear",
        weights: Array | None = None,
        keepdims: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the percentiles over `axis`: `quantile` of q / 100."""
    @overload
    def percentile(
        self,
        q: Operand,
        dim: Axis = None,
        *,
        method: str = "linear",
        weights: Array | None = None,
        keepdim: bool = False,
        out: Tensor | None = None,
    ) -> Tensor: ...
    @overload
    def permute(self, axes: Sizes, *order: Sizes) -> Tensor:
        """Return a view of `x` with its axes in another order."""
    @overload
    def permute(self, dims: Sizes, *order: Sizes) -> Tensor: ...
    @overload
    def permute_dims(self, axes: Sizes, *order: Sizes) -> Tensor:
        """Return a view of `x` with its axes in another order."""
    @overload
    def permute_dims(self, dims: Sizes, *order: Sizes) -> Tensor: ...
    def pin_memory(self, device: Device | str | None = None) -> Tensor:
        """Return a copy of a host tensor in page-locked memory, for asynchronous copies."""
    def poisson_(self, lam: Parameter = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Write numbers by `dt.random.poisson` into this tensor's memory and return the
        tensor."""
    def positive(self, *, out: Tensor | None = None) -> Tensor:
        """Return x as a new tensor."""
    @overload
    def pow(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 to the power x2."""
    @overload
    def pow(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def pow_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.pow` into this tensor's memory and return the tensor."""
    @overload
    def pow_(self, other: Operand) -> Tensor: ...
    @overload
    def prod(
        self,
        axis: Axis = None,
        *,
        dtype: DTypeLike = None,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return the product of the elements over `axis`."""
    @overload
    def prod(
        self,
        dim: Axis = None,
        *,
        dtype: DTypeLike = None,
        keepdim: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    @overload
    def ptp(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Return the range of values over `axis`: the largest minus the smallest."""
    @overload
    def ptp(
        self, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Tensor: ...
    def put(
        self, indices: Array, values: Operand, /, *, mode: str = "raise", out: Tensor | None = None
    ) -> Tensor:
        """Write values at positions of the raveled elements of this tensor, and return it."""
    @overload
    def put_along_axis(
        self, indices: Array, values: Operand, axis: int = -1, *, out: Tensor | None = None
    ) -> Tensor:
        """Write values at `indices` along `axis` of this tensor, and return it."""
    @overload
    def put_along_axis(
        self, indices: Array, values: Operand, dim: int = -1, *, out: Tensor | None = None
    ) -> Tensor: ...
    @overload
    def quantile(
        self,
        q: Operand,
        /,
        axis: Axis = None,
        *,
        method: str = "linear",
        weights: Array | None = None,
        keepdims: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the quantiles over `axis`: the values below which a part `q` of the elements
        lies."""
    @overload
    def quantile(
        self,
        q: Operand,
        dim: Axis = None,
        *,
        method: str = "linear",
        weights: Array | None = None,
        keepdim: bool = False,
        out: Tensor | None = None,
    ) -> Tensor: ...
    def rad2deg(self, *, out: Tensor | None = None) -> Tensor:
        """Convert radians to degrees."""
    def rad2deg_(self) -> Tensor:
        """Write the result of `dt.rad2deg` into this tensor's memory and return the tensor."""
    def ravel(self) -> Tensor:
        """Return all elements in row-major order along one axis: a view if strides permit, else a
        copy."""
    real: Tensor
    def reciprocal(self, *, out: Tensor | None = None) -> Tensor:
        """Return 1 / x."""
    def reciprocal_(self) -> Tensor:
        """Write the result of `dt.reciprocal` into this tensor's memory and return the tensor."""
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Register `hook` to be called with x's gradient; return a handle that can remove it."""
    def relu(self, *, out: Tensor | None = None) -> Tensor:
        """Return max(x, 0); NaN stays."""
    def relu_(self) -> Tensor:
        """Write the result of `dt.relu` into this tensor's memory and return the tensor."""
    @overload
    def remainder(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the remainder of x1 / x2, with the sign of x2."""
    @overload
    def remainder(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def remainder_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.remainder` into this tensor's memory and return the tensor."""
    @overload
    def remainder_(self, other: Operand) -> Tensor: ...
    def renorm(self, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Tensor:
        """Return `x` with each slice along `dim` whose p-norm exceeds `maxnorm` scaled to that
        norm."""
    def renorm_(self, p: float, dim: int, maxnorm: float) -> Tensor:
        """Write the result of `dt.renorm` into this tensor's memory and return the tensor."""
    @overload
    def repeat(
        self,
        repeats: int | Sequence[int] | Tensor,
        /,
        *,
        axis: int | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Repeat each element along an axis."""
    @overload
    def repeat(
        self,
        repeats: int | Sequence[int] | Tensor,
        *,
        dim: int | None = None,
        out: Tensor | None = None,
    ) -> Tensor: ...
    def repeat_interleave(
        self, repeats: int | Sequence[int] | Tensor, dim: int | None = None
    ) -> Tensor:
        """Repeat each element of `x` along axis `dim`: `dt.repeat(x, repeats, axis=dim)`."""
    requires_grad: bool
    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Mark `x` as a leaf whose gradient is wanted, or as one without; return `x`."""
    def reshape(self, shape: Sizes, *sizes: Sizes, copy: bool | None = None) -> Tensor:
        """Return the elements, in row-major order, in another shape; one size may be -1."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """Return `x` in the shape of another tensor; a view if strides permit it."""
    def resize_(self, *shape: int | Sequence[int]) -> Tensor:
        """Give this tensor another shape over its own memory, in row-major order, and return
        it."""
    def retain_grad(self) -> None:
        """Make `backward` store this result's gradient in `grad`, as it does for leaves."""
    @overload
    def roll(self, shift: Axes, axis: Axes | None = None, *, out: Tensor | None = None) -> Tensor:
        """Return a new tensor with elements shifted cyclically along some axes."""
    @overload
    def roll(
        self, shift: Axes, dim: Axes | None = None, *, out: Tensor | None = None
    ) -> Tensor: ...
    def roll_(self, shift: Axes, axis: Axes | None = None) -> Tensor:
        """Write the result of `dt.roll` into this tensor's memory and return the tensor."""
    @overload
    def rot90(self, k: int = 1, axes: Sequence[int] = ...) -> Tensor:
        """Return a view of `x` rotated by `k` quarter turns from the first axis to the second."""
    @overload
    def rot90(self, k: int = 1, dims: Sequence[int] = ...) -> Tensor: ...
    def round(self, decimals: int = 0, *, out: Tensor | None = None) -> Tensor:
        """Return the nearest integer, or multiple of 10**-decimals; halves go to the even one."""
    def round_(self) -> Tensor:
        """Write the result of `dt.round` into this tensor's memory and return the tensor."""
    def rsqrt(self, *, out: Tensor | None = None) -> Tensor:
        """Return 1 / sqrt(x)."""
    def rsqrt_(self) -> Tensor:
        """Write the result of `dt.rsqrt` into this tensor's memory and return the tensor."""
    def scatter(
        self, dim: int, index: Operand, src: Operand, *, out: Tensor | None = None
    ) -> Tensor:
        """Return a copy of `x` with the elements of `src` written at `index` along `dim`."""
    def scatter_(self, dim: int, index: Operand, src: Operand) -> Tensor:
        """Write the elements of `src` to `x` at `index` along `dim`, and return `x`."""
    def scatter_add(
        self, dim: int, index: Operand, src: Operand, *, out: Tensor | None = None
    ) -> Tensor:
        """Return a copy of `x` with the elements of `src` added at `index` along `dim`."""
    def scatter_add_(self, dim: int, index: Operand, src: Operand) -> Tensor:
        """Add the elements of `src` to `x` at `index` along `dim`, and return `x`."""
    def scatter_reduce(
        self,
        dim: int,
        index: Operand,
        src: Operand,
        reduce: str,
        *,
        include_self: bool = True,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return a copy of `x` with the elements of `src` reduced into it at `index` along
        `dim`."""
    def scatter_reduce_(
        self, dim: int, index: Operand, src: Operand, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        """Write the result of `dt.scatter_reduce` into this tensor's memory and return the
        tensor."""
    def select(self, dim: int, index: int) -> Tensor:
        """Return a view of one place of axis `dim`, without that axis: `x[..., index, ...]`."""
    def set_(self, source: Tensor, /) -> Tensor:
        """Make this tensor refer to the memory of another one, with its device, dtype and
        shape."""
    def sigmoid(self, *, out: Tensor | None = None) -> Tensor:
        """Return 1 / (1 + exp(-x))."""
    def sigmoid_(self) -> Tensor:
        """Write the result of `dt.sigmoid` into this tensor's memory and return the tensor."""
    def sign(self, *, out: Tensor | None = None) -> Tensor:
        """Return the sign of x: -1, 0 or 1; x / abs(x) for complex numbers, 0 at 0; NaN stays."""
    def sign_(self) -> Tensor:
        """Write the result of `dt.sign` into this tensor's memory and return the tensor."""
    def signbit(self, *, out: Tensor | None = None) -> Tensor:
        """Return True where the sign bit is set, as in -0.0."""
    def sin(self, *, out: Tensor | None = None) -> Tensor:
        """Return the sine of an angle in radians; NaN for infinity."""
    def sin_(self) -> Tensor:
        """Write the result of `dt.sin` into this tensor's memory and return the tensor."""
    def sinc(self, *, out: Tensor | None = None) -> Tensor:
        """Return sin(pi * x) / (pi * x), and 1 at 0."""
    def sinc_(self) -> Tensor:
        """Write the result of `dt.sinc` into this tensor's memory and return the tensor."""
    def sinh(self, *, out: Tensor | None = None) -> Tensor:
        """Return the hyperbolic sine."""
    def sinh_(self) -> Tensor:
        """Write the result of `dt.sinh` into this tensor's memory and return the tensor."""
    @overload
    def softmax(self, axis: int = -1, *, out: Tensor | None = None) -> Tensor:
        """Return exp(x) divided by its sum along `axis`, without overflow, in one kernel."""
    @overload
    def softmax(self, dim: int = -1, *, out: Tensor | None = None) -> Tensor: ...
    def softmax_(self, axis: int = -1) -> Tensor:
        """Write the result of `dt.softmax` into this tensor's memory and return the tensor."""
    def sort(
        self,
        axis: int | None = -1,
        *,
        descending: bool = False,
        stable: bool = True,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the elements of `x` in order along `axis`, equal ones in the order that they
        had."""
    def sort_(
        self, axis: int | None = -1, *, descending: bool = False, stable: bool = True
    ) -> Tensor:
        """Write the result of `dt.sort` into this tensor's memory and return the tensor."""
    @overload
    def split(self, sizes: int | Sequence[int], /, axis: int = 0) -> tuple[Tensor, ...]:
        """Split `x` along `axis` into views of consecutive parts, as a tuple."""
    @overload
    def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]: ...
    def sqrt(self, *, out: Tensor | None = None) -> Tensor:
        """Return the square root; NaN for negative real numbers."""
    def sqrt_(self) -> Tensor:
        """Write the result of `dt.sqrt` into this tensor's memory and return the tensor."""
    def square(self, *, out: Tensor | None = None) -> Tensor:
        """Return x * x."""
    def square_(self) -> Tensor:
        """Write the result of `dt.square` into this tensor's memory and return the tensor."""
    @overload
    def squeeze(self, axis: Axes | None = None) -> Tensor:
        """Return a view of `x` without some axes of size 1."""
    @overload
    def squeeze(self, dim: Axes | None = None) -> Tensor: ...
    @overload
    def std(
        self,
        axis: Axis = None,
        *,
        correction: float = 0.0,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return the standard deviation over `axis`: the square root of `var`."""
    @overload
    def std(
        self,
        axis: Axis = None,
        *,
        correction: float = 0.0,
        keepdim: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    @overload
    def sub(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 - x2."""
    @overload
    def sub(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def sub_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.subtract` into this tensor's memory and return the tensor."""
    @overload
    def sub_(self, other: Operand) -> Tensor: ...
    @overload
    def subtract(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 - x2."""
    @overload
    def subtract(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def subtract_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.subtract` into this tensor's memory and return the tensor."""
    @overload
    def subtract_(self, other: Operand) -> Tensor: ...
    @overload
    def sum(
        self,
        axis: Axis = None,
        *,
        dtype: DTypeLike = None,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return the sum of the elements over `axis`."""
    @overload
    def sum(
        self,
        dim: Axis = None,
        *,
        dtype: DTypeLike = None,
        keepdim: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Return a view of `x` with `axis1` and `axis2` exchanged."""
    def t(self) -> Tensor:
        """Return a view with both axes exchanged, like `x.T`; a vector is returned as a view of
        itself."""
    @overload
    def take(
        self,
        indices: Array,
        /,
        axis: int | None = None,
        *,
        mode: str = "raise",
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the elements of `x` at `indices` along `axis`, which the axes of `indices`
        replace."""
    @overload
    def take(
        self,
        indices: Array,
        dim: int | None = None,
        *,
        mode: str = "raise",
        out: Tensor | None = None,
    ) -> Tensor: ...
    @overload
    def take_along_axis(
        self, indices: Array, /, axis: int | None = -1, *, out: Tensor | None = None
    ) -> Tensor:
        """Return the elements of `x` at `indices` along `axis`, one index for each result
        element."""
    @overload
    def take_along_axis(
        self, indices: Array, dim: int | None = -1, *, out: Tensor | None = None
    ) -> Tensor: ...
    def take_along_dim(self, indices: Array, dim: int | None = None) -> Tensor:
        """Return the elements of `x` at `indices` along axis `dim`; None flattens both first."""
    def tan(self, *, out: Tensor | None = None) -> Tensor:
        """Return the tangent of an angle in radians; NaN for infinity."""
    def tan_(self) -> Tensor:
        """Write the result of `dt.tan` into this tensor's memory and return the tensor."""
    def tanh(self, *, out: Tensor | None = None) -> Tensor:
        """Return the hyperbolic tangent."""
    def tanh_(self) -> Tensor:
        """Write the result of `dt.tanh` into this tensor's memory and return the tensor."""
    def tile(self, repetitions: int | Sequence[int], /, *, out: Tensor | None = None) -> Tensor:
        """Repeat the whole tensor along each axis."""
    def to(
        self,
        *wanted: Tensor | DTypeLike | DeviceLike,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
        copy: bool = False,
        non_blocking: bool = False,
    ) -> Tensor:
        """Return `x` on a device, in a dtype, or both; `x` itself if nothing changes."""
    def to_dense(self) -> Tensor:
        """Return the tensor itself, or a sparse layout's elements as a strided tensor."""
    def to_device(self, device: DeviceLike, /, *, stream: object = None) -> Tensor:
        """Return the tensor on a device: itself if it is there, else a copy (Array API)."""
    def to_sparse(self, sparse_dim: int | None = None) -> COO:
        """Convert a tensor to a coalesced sparse tensor of its nonzero elements."""
    def to_sparse_bsr(self, blocksize: Sequence[int]) -> BSR:
        """Convert a matrix to compressed rows of blocks; a block is stored if any element is
        nonzero."""
    def to_sparse_csc(self) -> CSC:
        """Convert a matrix to compressed columns; a strided matrix gives its nonzero elements."""
    def to_sparse_csr(self) -> CSR:
        """Convert a matrix to compressed rows; a strided matrix gives its nonzero elements."""
    def tobytes(self, order: Literal['C', 'F', 'A'] = "C") -> bytes:
        """Return the bytes of the elements, in row-major order."""
    @overload
    def topk(
        self,
        k: int,
        /,
        axis: int = -1,
        *,
        largest: bool = True,
        out: Sequence[Tensor] | None = None,
    ) -> TopK:
        """Return the `k` largest elements along `axis` and their positions: (values, indices)."""
    @overload
    def topk(
        self, k: int, dim: int = -1, *, largest: bool = True, out: Sequence[Tensor] | None = None
    ) -> TopK: ...
    def trace(
        self,
        *,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the sum of the diagonal over two axes."""
    def transpose(self, *axes: Sizes | None) -> Tensor:
        """Return a view of `x` with two axes exchanged or, without `axes`, all of them
        reversed."""
    def tril(self, k: int = 0, *, out: Tensor | None = None) -> Tensor:
        """Return the lower triangles of matrices: elements above the k-th diagonal become 0."""
    def tril_(self, k: int = 0) -> Tensor:
        """Write the result of `dt.tril` into this tensor's memory and return the tensor."""
    def triu(self, k: int = 0, *, out: Tensor | None = None) -> Tensor:
        """Return the upper triangles of matrices: elements below the k-th diagonal become 0."""
    def triu_(self, k: int = 0) -> Tensor:
        """Write the result of `dt.triu` into this tensor's memory and return the tensor."""
    def trunc(self, *, out: Tensor | None = None) -> Tensor:
        """Return the integer part of x, without its fraction."""
    def trunc_(self) -> Tensor:
        """Write the result of `dt.trunc` into this tensor's memory and return the tensor."""
    def truncated_normal_(
        self,
        low: Parameter = -2.0,
        high: Parameter = 2.0,
        mean: Parameter = 0.0,
        std: Parameter = 1.0,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Write numbers by `dt.random.truncated_normal` into this tensor's memory and return the
        tensor."""
    def type_as(self, other: Tensor) -> Tensor:
        """Return the elements of x in the dtype of another tensor; x itself if it has that
        dtype."""
    def unflatten(self, dim: int, sizes: Sequence[int]) -> Tensor:
        """Replace axis `dim` by several axes of these sizes, of which one may be -1."""
    def unfold(self, dimension: int, size: int, step: int) -> Tensor:
        """Return a view of the windows of `size` elements along an axis, `step` apart."""
    def uniform_(
        self, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Write numbers by `dt.random.uniform` into this tensor's memory and return the
        tensor."""
    @overload
    def unique(
        self,
        return_index: bool = False,
        return_inverse: bool = False,
        return_counts: bool = False,
        axis: int | None = None,
        *,
        equal_nan: bool = True,
    ) -> Tensor | tuple[Tensor, ...]:
        """Return the distinct elements in ascending order or, along an axis, the distinct
        slices."""
    @overload
    def unique(
        self,
        return_index: bool = False,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
        *,
        equal_nan: bool = True,
    ) -> Tensor | tuple[Tensor, ...]: ...
    def unique_all(self) -> UniqueAll:
        """Return the distinct elements, their first positions, the inverse, and their counts."""
    def unique_consecutive(
        self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Tensor | tuple[Tensor, ...]:
        """Return the first element of each run of equal elements."""
    def unique_counts(self) -> UniqueCounts:
        """Return the distinct elements in ascending order and their counts: (values, counts)."""
    def unique_inverse(self) -> UniqueInverse:
        """Return the distinct elements and each element's number: (values, inverse_indices)."""
    def unique_values(self) -> Tensor:
        """Return the distinct elements of `x`, in ascending order."""
    @overload
    def unsqueeze(self, axis: Axes = 0) -> Tensor:
        """Return a view of `x` with inserted axes of size 1."""
    @overload
    def unsqueeze(self, dim: Axes = 0) -> Tensor: ...
    @overload
    def unstack(self, axis: int = 0) -> tuple[Tensor, ...]:
        """Return views of the parts of `x` along `axis`, without that axis, as a tuple."""
    @overload
    def unstack(self, dim: int = 0) -> tuple[Tensor, ...]: ...
    def unwrap_(
        self, discont: float | None = None, axis: int = -1, *, period: float = 6.283185307179586
    ) -> Tensor:
        """Write the result of `dt.unwrap` into this tensor's memory and return the tensor."""
    @overload
    def var(
        self,
        axis: Axis = None,
        *,
        correction: float = 0.0,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor:
        """Return the variance over `axis`: the mean of the squared distances from the mean."""
    @overload
    def var(
        self,
        axis: Axis = None,
        *,
        correction: float = 0.0,
        keepdim: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Tensor: ...
    @overload
    def vdot(self, x2: Array, /, *, out: Tensor | None = None) -> Tensor:
        """Return the sum of the products of the elements of two tensors, both raveled."""
    @overload
    def vdot(self, other: Array, *, out: Tensor | None = None) -> Tensor: ...
    def view(self, *shape: Sizes | DTypeLike, dtype: DTypeLike = None) -> Tensor:
        """Return a view in another shape or dtype, never a copy: `x.view(2, 3)`,
        `x.view(dt.int32)`."""
    def view_as(self, other: Tensor) -> Tensor:
        """Return a view of `x` in the shape of another tensor."""
    def where(self, condition: Array, other: Operand) -> Tensor:
        """Return `dt.where(condition, x, other)`."""
    @overload
    def xlogy(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return x1 * log(x2), and 0 where x1 is 0, unless x2 is NaN."""
    @overload
    def xlogy(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def xlogy_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.xlogy` into this tensor's memory and return the tensor."""
    @overload
    def xlogy_(self, other: Operand) -> Tensor: ...
    def zero_(self) -> Tensor:
        """Fill this tensor with 0, and return it."""
    @overload
    def zeta(self, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """Return the Hurwitz zeta function: the sum of (x2 + k)**-x1 over k = 0, 1, 2, ..."""
    @overload
    def zeta(self, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def zeta_(self, x2: Operand, /) -> Tensor:
        """Write the result of `dt.zeta` into this tensor's memory and return the tensor."""
    @overload
    def zeta_(self, other: Operand) -> Tensor: ...
    absolute = abs
    arccos = acos
    arccosh = acosh
    arcsin = asin
    arcsinh = asinh
    arctan = atan
    arctan2 = atan2
    arctanh = atanh
    bitwise_not = bitwise_invert
    invert = bitwise_invert
    left_shift = bitwise_left_shift
    right_shift = bitwise_right_shift
    logcumsumexp = cumulative_logsumexp
    radians = deg2rad
    true_divide = divide
    bmm = matmul
    mm = matmul
    mv = matmul
    power = pow
    degrees = rad2deg
    mod = remainder
    around = round
    swapdims = swapaxes
    unbind = unstack
