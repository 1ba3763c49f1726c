# ruff: noqa
# Written by tools/faces.py for type checkers:
# the base of subclasses of Tensor, whose results have the subclass.
# fmt: off
# isort: off

import numpy as np
from collections.abc import Callable, Iterator, Sequence
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
from typing import Literal, Self, SupportsIndex, overload

class TensorSubclass(Tensor):
    def __add__(self, other: Operand, /) -> Self: ...
    def __radd__(self, other: Operand, /) -> Self: ...
    def __iadd__(self, other: Operand, /) -> Self: ...
    def __sub__(self, other: Operand, /) -> Self: ...
    def __rsub__(self, other: Operand, /) -> Self: ...
    def __isub__(self, other: Operand, /) -> Self: ...
    def __mul__(self, other: Operand, /) -> Self: ...
    def __rmul__(self, other: Operand, /) -> Self: ...
    def __imul__(self, other: Operand, /) -> Self: ...
    def __truediv__(self, other: Operand, /) -> Self: ...
    def __rtruediv__(self, other: Operand, /) -> Self: ...
    def __itruediv__(self, other: Operand, /) -> Self: ...
    def __floordiv__(self, other: Operand, /) -> Self: ...
    def __rfloordiv__(self, other: Operand, /) -> Self: ...
    def __ifloordiv__(self, other: Operand, /) -> Self: ...
    def __mod__(self, other: Operand, /) -> Self: ...
    def __rmod__(self, other: Operand, /) -> Self: ...
    def __imod__(self, other: Operand, /) -> Self: ...
    def __pow__(self, other: Operand, /) -> Self: ...
    def __rpow__(self, other: Operand, /) -> Self: ...
    def __ipow__(self, other: Operand, /) -> Self: ...
    def __and__(self, other: Operand, /) -> Self: ...
    def __rand__(self, other: Operand, /) -> Self: ...
    def __iand__(self, other: Operand, /) -> Self: ...
    def __or__(self, other: Operand, /) -> Self: ...
    def __ror__(self, other: Operand, /) -> Self: ...
    def __ior__(self, other: Operand, /) -> Self: ...
    def __xor__(self, other: Operand, /) -> Self: ...
    def __rxor__(self, other: Operand, /) -> Self: ...
    def __ixor__(self, other: Operand, /) -> Self: ...
    def __lshift__(self, other: Operand, /) -> Self: ...
    def __rlshift__(self, other: Operand, /) -> Self: ...
    def __ilshift__(self, other: Operand, /) -> Self: ...
    def __rshift__(self, other: Operand, /) -> Self: ...
    def __rrshift__(self, other: Operand, /) -> Self: ...
    def __irshift__(self, other: Operand, /) -> Self: ...
    def __eq__(self, other: object, /) -> Self: ...  # type: ignore[override]  # elementwise
    def __ne__(self, other: object, /) -> Self: ...  # type: ignore[override]  # elementwise
    def __lt__(self, other: Operand, /) -> Self: ...
    def __le__(self, other: Operand, /) -> Self: ...
    def __gt__(self, other: Operand, /) -> Self: ...
    def __ge__(self, other: Operand, /) -> Self: ...
    def __neg__(self) -> Self: ...
    def __pos__(self) -> Self: ...
    def __abs__(self) -> Self: ...
    def __invert__(self) -> Self: ...
    def __divmod__(self, other: Operand, /) -> tuple[Self, Self]: ...
    def __rdivmod__(self, other: Operand, /) -> tuple[Self, Self]: ...
    @property
    def T(self) -> Self: ...
    @property
    def mT(self) -> Self: ...
    def __iter__(self) -> Iterator[Self]: ...
    def __copy__(self) -> Self:
        """Return a copy of the tensor in new memory, for `copy.copy`."""
    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return a view of a copy of the tensor's storage, for `copy.deepcopy`."""
    def __getitem__(self, key: Key) -> Self:
        """Return `x[key]`: a view if the key has only integers, slices, `...` and None, else a
        copy."""
    def __imatmul__(self, other: Array) -> Self:
        """Write `self @ other` into `self` and return it. Raises: ShapeError if the shape
        differs."""
    def __matmul__(self, other: Array) -> Self:
        """Return `self @ other`."""
    def __rmatmul__(self, other: Array) -> Self:
        """Return `other @ self`, or NotImplemented if `other` overrides operators."""
    def abs(self, *, out: Tensor | None = None) -> Self:
        """Return the absolute value, also of complex numbers."""
    def abs_(self) -> Self:
        """Write the result of `dt.abs` into this tensor's memory and return the tensor."""
    def acos(self, *, out: Tensor | None = None) -> Self:
        """Return the inverse cosine in radians, in 0..pi; NaN outside of -1..1."""
    def acos_(self) -> Self:
        """Write the result of `dt.acos` into this tensor's memory and return the tensor."""
    def acosh(self, *, out: Tensor | None = None) -> Self:
        """Return the inverse hyperbolic cosine; NaN below 1."""
    def acosh_(self) -> Self:
        """Write the result of `dt.acosh` into this tensor's memory and return the tensor."""
    @overload
    def add(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the sum x1 + x2; for bool: or."""
    @overload
    def add(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def add_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.add` into this tensor's memory and return the tensor."""
    @overload
    def add_(self, other: Operand) -> Self: ...
    def addcdiv(
        self, tensor1: Array, tensor2: Array, *, value: Operand = 1, out: Tensor | None = None
    ) -> Self:
        """Return `x + value * tensor1 / tensor2`."""
    def addcdiv_(self, tensor1: Array, tensor2: Array, *, value: Operand = 1) -> Self:
        """Write the result of `dt.addcdiv` into this tensor's memory and return the tensor."""
    def addcmul(
        self, tensor1: Array, tensor2: Array, *, value: Operand = 1, out: Tensor | None = None
    ) -> Self:
        """Return `x + value * tensor1 * tensor2`."""
    def addcmul_(self, tensor1: Array, tensor2: Array, *, value: Operand = 1) -> Self:
        """Write the result of `dt.addcmul` into this tensor's memory and return the tensor."""
    def addmm(
        self,
        mat1: Array,
        mat2: Array,
        *,
        beta: Operand = 1,
        alpha: Operand = 1,
        out: Tensor | None = None,
    ) -> Self:
        """Return `beta * x + alpha * (mat1 @ mat2)`."""
    def addmm_(self, mat1: Array, mat2: Array, *, beta: Operand = 1, alpha: Operand = 1) -> Self:
        """Write the result of `dt.addmm` into this tensor's memory and return the tensor."""
    def addmv(
        self,
        mat: Array,
        vec: Array,
        *,
        beta: Operand = 1,
        alpha: Operand = 1,
        out: Tensor | None = None,
    ) -> Self:
        """Return `beta * x + alpha * (mat @ vec)`."""
    def addmv_(self, mat: Array, vec: Array, *, beta: Operand = 1, alpha: Operand = 1) -> Self:
        """Write the result of `dt.addmv` into this tensor's memory and return the tensor."""
    @overload
    def all(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Self:
        """Return True for each position where every element over `axis` is nonzero."""
    @overload
    def all(
        self,
        dim: Axis = None,
        *,
        keepdim: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Self: ...
    @overload
    def amax(self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None) -> Self:
        """Return the largest elements along axes: `dt.max`, and the name that PyTorch has for
        it."""
    @overload
    def amax(
        self, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Self: ...
    @overload
    def amin(self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None) -> Self:
        """Return the smallest elements along axes: `dt.min`, and the name that PyTorch has for
        it."""
    @overload
    def amin(
        self, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Self: ...
    def angle(self, *, out: Tensor | None = None) -> Self:
        """Return the angle to the positive real axis in radians, in -pi..pi."""
    @overload
    def any(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Self:
        """Return True for each position where some element over `axis` is nonzero."""
    @overload
    def any(
        self,
        dim: Axis = None,
        *,
        keepdim: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Self: ...
    @overload
    def argmax(
        self, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Self:
        """Return the position of the largest element along `axis`, as int64."""
    @overload
    def argmax(
        self, dim: int | None = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Self: ...
    @overload
    def argmin(
        self, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Self:
        """Return the position of the smallest element along `axis`, as int64."""
    @overload
    def argmin(
        self, dim: int | None = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Self: ...
    @overload
    def argsort(
        self,
        axis: int | None = -1,
        *,
        descending: bool = False,
        stable: bool = True,
        out: Tensor | None = None,
    ) -> Self:
        """Return the positions along `axis` of the elements of `x` in order, as int64."""
    @overload
    def argsort(
        self,
        dim: int | None = -1,
        *,
        descending: bool = False,
        stable: bool = True,
        out: Tensor | None = None,
    ) -> Self: ...
    def as_strided(
        self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
    ) -> Self:
        """Return a view of the storage of `x` with any shape, strides and offset."""
    def asin(self, *, out: Tensor | None = None) -> Self:
        """Return the inverse sine in radians, in -pi/2..pi/2; NaN outside of -1..1."""
    def asin_(self) -> Self:
        """Write the result of `dt.asin` into this tensor's memory and return the tensor."""
    def asinh(self, *, out: Tensor | None = None) -> Self:
        """Return the inverse hyperbolic sine."""
    def asinh_(self) -> Self:
        """Write the result of `dt.asinh` into this tensor's memory and return the tensor."""
    def astype(self, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike = None) -> Self:
        """Return the elements of `x` cast to another dtype, on `device` if one is given."""
    def atan(self, *, out: Tensor | None = None) -> Self:
        """Return the inverse tangent in radians, in -pi/2..pi/2."""
    @overload
    def atan2(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the angle in radians of the point (x2, x1), in -pi..pi."""
    @overload
    def atan2(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def atan2_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.atan2` into this tensor's memory and return the tensor."""
    @overload
    def atan2_(self, other: Operand) -> Self: ...
    def atan_(self) -> Self:
        """Write the result of `dt.atan` into this tensor's memory and return the tensor."""
    def atanh(self, *, out: Tensor | None = None) -> Self:
        """Return the inverse hyperbolic tangent; infinite at -1 and 1, NaN outside."""
    def atanh_(self) -> Self:
        """Write the result of `dt.atanh` into this tensor's memory and return the tensor."""
    def baddbmm(
        self,
        batch1: Array,
        batch2: Array,
        *,
        beta: Operand = 1,
        alpha: Operand = 1,
        out: Tensor | None = None,
    ) -> Self:
        """Return `beta * x + alpha * (batch1 @ batch2)` for batches of matrices."""
    def bernoulli_(self, p: Parameter = 0.5, *, generator: Generator | None = None) -> Self:
        """Write numbers by `dt.random.bernoulli` into this tensor's memory and return the
        tensor."""
    @overload
    def beta(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return gamma(x1) * gamma(x2) / gamma(x1 + x2); NaN for negative numbers."""
    @overload
    def beta(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def beta_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.beta` into this tensor's memory and return the tensor."""
    @overload
    def beta_(self, other: Operand) -> Self: ...
    def bincount(
        self, weights: Array | None = None, minlength: int = 0, *, length: int | None = None
    ) -> Self:
        """Count the occurrences of each of 0, 1, 2, ... in a vector of integers."""
    def binomial_(
        self, n: Array | int, p: Parameter, *, generator: Generator | None = None
    ) -> Self:
        """Write numbers by `dt.random.binomial` into this tensor's memory and return the
        tensor."""
    @overload
    def bitwise_and(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the bits that are set in both operands."""
    @overload
    def bitwise_and(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def bitwise_and_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.bitwise_and` into this tensor's memory and return the
        tensor."""
    @overload
    def bitwise_and_(self, other: Operand) -> Self: ...
    def bitwise_invert(self, *, out: Tensor | None = None) -> Self:
        """Return x with all bits flipped; for bool: not."""
    def bitwise_invert_(self) -> Self:
        """Write the result of `dt.bitwise_invert` into this tensor's memory and return the
        tensor."""
    @overload
    def bitwise_left_shift(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 * 2**x2, wrapping."""
    @overload
    def bitwise_left_shift(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def bitwise_left_shift_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.bitwise_left_shift` into this tensor's memory and return the
        tensor."""
    @overload
    def bitwise_left_shift_(self, other: Operand) -> Self: ...
    @overload
    def bitwise_or(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the bits that are set in one or both operands."""
    @overload
    def bitwise_or(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def bitwise_or_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.bitwise_or` into this tensor's memory and return the tensor."""
    @overload
    def bitwise_or_(self, other: Operand) -> Self: ...
    @overload
    def bitwise_right_shift(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 / 2**x2 rounded down."""
    @overload
    def bitwise_right_shift(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def bitwise_right_shift_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.bitwise_right_shift` into this tensor's memory and return the
        tensor."""
    @overload
    def bitwise_right_shift_(self, other: Operand) -> Self: ...
    @overload
    def bitwise_xor(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the bits that are set in exactly one operand."""
    @overload
    def bitwise_xor(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def bitwise_xor_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.bitwise_xor` into this tensor's memory and return the
        tensor."""
    @overload
    def bitwise_xor_(self, other: Operand) -> Self: ...
    def broadcast_to(self, shape: Sizes, *sizes: Sizes) -> Self:
        """Return a read-only view of `x` in which axes of size 1 repeat without using memory."""
    def bucketize(
        self,
        boundaries: Array,
        *,
        out_int32: bool = False,
        right: bool = False,
        out: Tensor | None = None,
    ) -> Self:
        """Return for each element the number of boundaries below it: `dt.searchsorted(boundaries,
        x)`."""
    def cbrt(self, *, out: Tensor | None = None) -> Self:
        """Return the cube root, also of negative numbers."""
    def cbrt_(self) -> Self:
        """Write the result of `dt.cbrt` into this tensor's memory and return the tensor."""
    def ceil(self, *, out: Tensor | None = None) -> Self:
        """Return the least integer that is not less than x."""
    def ceil_(self) -> Self:
        """Write the result of `dt.ceil` into this tensor's memory and return the tensor."""
    def choose(
        self, choices: Sequence[Operand], /, *, mode: str = "raise", out: Tensor | None = None
    ) -> Self:
        """Pick each element from one of `choices`, using `x` as the index."""
    def chunk(self, chunks: int, dim: int = 0) -> tuple[Self, ...]:
        """Split `x` along an axis into at most `chunks` views of one size; the last may be
        smaller."""
    def clamp(
        self, min: Operand | None = None, max: Operand | None = None, *, out: Tensor | None = None
    ) -> Self:
        """Return x limited to the range from `min` to `max`."""
    def clamp_(self, min: Operand | None = None, max: Operand | None = None) -> Self:
        """Write the result of `dt.clip` into this tensor's memory and return the tensor."""
    def clip(
        self, min: Operand | None = None, max: Operand | None = None, *, out: Tensor | None = None
    ) -> Self:
        """Return x limited to the range from `min` to `max`."""
    def clip_(self, min: Operand | None = None, max: Operand | None = None) -> Self:
        """Write the result of `dt.clip` into this tensor's memory and return the tensor."""
    def clone(self) -> Self:
        """Return a new contiguous tensor of the same elements; gradients flow through it."""
    @overload
    def compress(self, condition: Array, axis: int | None = None) -> Self:
        """Return `dt.compress(condition, x, axis)`: the places of an axis where a condition is
        True."""
    @overload
    def compress(self, condition: Array, dim: int | None = None) -> Self: ...
    def conj(self, *, out: Tensor | None = None) -> Self:
        """Return the complex conjugate, a - bi; a real number stays."""
    def conj_(self) -> Self:
        """Write the result of `dt.conj` into this tensor's memory and return the tensor."""
    def conjugate(self, *, out: Tensor | None = None) -> Self:
        """Return the complex conjugate, a - bi; a real number stays."""
    def contiguous(self, memory_format: None = None) -> Self:
        """Return `x` itself if its elements are dense in row-major order, else a dense copy."""
    def copy(self) -> Self:
        """Return a new contiguous tensor of the same elements; gradients flow through it."""
    def copy_(self, other: Tensor, /) -> Self:
        """Copy the elements of another tensor into this one, and return it."""
    @overload
    def copysign(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return |x1| with the sign of x2."""
    @overload
    def copysign(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def copysign_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.copysign` into this tensor's memory and return the tensor."""
    @overload
    def copysign_(self, other: Operand) -> Self: ...
    def corrcoef(
        self, y: Array | None = None, /, *, rowvar: bool = True, out: Tensor | None = None
    ) -> Self:
        """Return the correlation coefficients of variables: `cov` divided by the standard
        deviations."""
    def cos(self, *, out: Tensor | None = None) -> Self:
        """Return the cosine of an angle in radians; NaN for infinity."""
    def cos_(self) -> Self:
        """Write the result of `dt.cos` into this tensor's memory and return the tensor."""
    def cosh(self, *, out: Tensor | None = None) -> Self:
        """Return the hyperbolic cosine."""
    def cosh_(self) -> Self:
        """Write the result of `dt.cosh` into this tensor's memory and return the tensor."""
    @overload
    def count_nonzero(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Self:
        """Count the nonzero elements over `axis`."""
    @overload
    def count_nonzero(
        self, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Self: ...
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
    ) -> Self:
        """Return the covariance matrix of variables; each row of `x` has a variable's
        observations."""
    @overload
    def cross(self, x2: Array, /, *, axis: int = -1, out: Tensor | None = None) -> Self:
        """Return the cross products of vectors of three elements along an axis."""
    @overload
    def cross(self, other: Array, *, dim: int = -1, out: Tensor | None = None) -> Self: ...
    @overload
    def cumprod(
        self, axis: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
    ) -> Self:
        """Return the products of the elements up to each one along `axis`; a short name like
        `cumsum`."""
    @overload
    def cumprod(
        self, dim: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
    ) -> Self: ...
    def cumprod_(
        self, axis: int | None = None, *, dtype: DTypeLike = None, include_initial: bool = False
    ) -> Self:
        """Write the result of `dt.cumulative_prod` into this tensor's memory and return the
        tensor."""
    @overload
    def cumsum(
        self, axis: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
    ) -> Self:
        """Return the sums of the elements up to each one along `axis`; NumPy's and PyTorch's
        name."""
    @overload
    def cumsum(
        self, dim: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
    ) -> Self: ...
    def cumsum_(
        self, axis: int | None = None, *, dtype: DTypeLike = None, include_initial: bool = False
    ) -> Self:
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
    ) -> Self:
        """Return the logarithms of the sums of exponentials up to each element, along `axis`."""
    @overload
    def cumulative_logsumexp(
        self,
        dim: int | None = None,
        *,
        dtype: DTypeLike = None,
        include_initial: bool = False,
        out: Tensor | None = None,
    ) -> Self: ...
    def cumulative_logsumexp_(
        self, axis: int | None = None, *, dtype: DTypeLike = None, include_initial: bool = False
    ) -> Self:
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
    ) -> Self:
        """Return the products of the elements up to each one, along `axis`."""
    @overload
    def cumulative_prod(
        self,
        dim: int | None = None,
        *,
        dtype: DTypeLike = None,
        include_initial: bool = False,
        out: Tensor | None = None,
    ) -> Self: ...
    def cumulative_prod_(
        self, axis: int | None = None, *, dtype: DTypeLike = None, include_initial: bool = False
    ) -> Self:
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
    ) -> Self:
        """Return the sums of the elements up to each one, along `axis`."""
    @overload
    def cumulative_sum(
        self,
        dim: int | None = None,
        *,
        dtype: DTypeLike = None,
        include_initial: bool = False,
        out: Tensor | None = None,
    ) -> Self: ...
    def cumulative_sum_(
        self, axis: int | None = None, *, dtype: DTypeLike = None, include_initial: bool = False
    ) -> Self:
        """Write the result of `dt.cumulative_sum` into this tensor's memory and return the
        tensor."""
    data: Self
    def deg2rad(self, *, out: Tensor | None = None) -> Self:
        """Convert degrees to radians."""
    def deg2rad_(self) -> Self:
        """Write the result of `dt.deg2rad` into this tensor's memory and return the tensor."""
    def detach(self) -> Self:
        """Return a tensor over the same memory that gradients do not flow through."""
    def detach_(self) -> Self:
        """Cut `x` off its tape, so that no gradient flows through it any more; return `x`."""
    def diag(self, k: int = 0, *, out: Tensor | None = None) -> Self:
        """Return the diagonal of a matrix as a view, or a matrix with a vector as its
        diagonal."""
    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Self:
        """Return matrices whose diagonals are the rows of `x`, and which are 0 elsewhere."""
    def diagflat(self, k: int = 0, *, out: Tensor | None = None) -> Self:
        """Return a matrix whose diagonal has the elements of `x` in row-major order."""
    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
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
    ) -> Self:
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
    ) -> Self: ...
    def digamma(self, *, out: Tensor | None = None) -> Self:
        """Return the derivative of lgamma; NaN at negative integers."""
    def digamma_(self) -> Self:
        """Write the result of `dt.digamma` into this tensor's memory and return the tensor."""
    @overload
    def div(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the quotient x1 / x2, always a float."""
    @overload
    def div(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def div_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.divide` into this tensor's memory and return the tensor."""
    @overload
    def div_(self, other: Operand) -> Self: ...
    @overload
    def divide(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the quotient x1 / x2, always a float."""
    @overload
    def divide(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def divide_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.divide` into this tensor's memory and return the tensor."""
    @overload
    def divide_(self, other: Operand) -> Self: ...
    @overload
    def dot(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return NumPy's dot product: the inner product of vectors, the matrix product of
        matrices."""
    @overload
    def dot(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def eq(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 == x2."""
    @overload
    def eq(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def equal(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 == x2."""
    @overload
    def equal(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def equal_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.equal` into this tensor's memory and return the tensor."""
    @overload
    def equal_(self, other: Operand) -> Self: ...
    def erf(self, *, out: Tensor | None = None) -> Self:
        """Return the error function."""
    def erf_(self) -> Self:
        """Write the result of `dt.erf` into this tensor's memory and return the tensor."""
    def erfc(self, *, out: Tensor | None = None) -> Self:
        """Return 1 - erf(x), accurate where it is small."""
    def erfc_(self) -> Self:
        """Write the result of `dt.erfc` into this tensor's memory and return the tensor."""
    def erfinv(self, *, out: Tensor | None = None) -> Self:
        """Return the inverse of the error function; infinite at -1 and 1, NaN outside."""
    def erfinv_(self) -> Self:
        """Write the result of `dt.erfinv` into this tensor's memory and return the tensor."""
    def exp(self, *, out: Tensor | None = None) -> Self:
        """Return e to the power x."""
    def exp2(self, *, out: Tensor | None = None) -> Self:
        """Return 2 to the power x."""
    def exp2_(self) -> Self:
        """Write the result of `dt.exp2` into this tensor's memory and return the tensor."""
    def exp_(self) -> Self:
        """Write the result of `dt.exp` into this tensor's memory and return the tensor."""
    def expand(self, *shape: Sizes) -> Self:
        """Return a read-only view of `x` as `dt.broadcast_to` does, where -1 keeps a size."""
    def expand_as(self, other: Tensor) -> Self:
        """Return a view of x, broadcast to the shape of another tensor."""
    @overload
    def expand_dims(self, axis: Axes = 0) -> Self:
        """Return a view of `x` with inserted axes of size 1."""
    @overload
    def expand_dims(self, dim: Axes = 0) -> Self: ...
    def expit_(self) -> Self:
        """Write the result of `dt.expit` into this tensor's memory and return the tensor."""
    def expm1(self, *, out: Tensor | None = None) -> Self:
        """Return exp(x) - 1, accurate near 0."""
    def expm1_(self) -> Self:
        """Write the result of `dt.expm1` into this tensor's memory and return the tensor."""
    def exponential_(self, scale: Parameter = 1.0, *, generator: Generator | None = None) -> Self:
        """Write numbers by `dt.random.exponential` into this tensor's memory and return the
        tensor."""
    def fill_(self, value: Number) -> Self:
        """Fill this tensor with one number, and return it."""
    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """Merge neighbouring axes of `x` into one: a view if strides permit, else a copy."""
    @overload
    def flip(self, axis: Axes | None = None) -> Self:
        """Return a view of `x` with the order along some axes reversed; along all for None."""
    @overload
    def flip(self, dim: Axes | None = None) -> Self: ...
    @overload
    def flip_(self, axis: Axes | None = None) -> Self:
        """Write the result of `dt.flip` into this tensor's memory and return the tensor."""
    @overload
    def flip_(self, dim: Axes | None = None) -> Self: ...
    def fliplr(self) -> Self:
        """Return a view of `x` with its second axis reversed."""
    def fliplr_(self) -> Self:
        """Write the result of `dt.fliplr` into this tensor's memory and return the tensor."""
    def flipud(self) -> Self:
        """Return a view of `x` with its first axis reversed."""
    def flipud_(self) -> Self:
        """Write the result of `dt.flipud` into this tensor's memory and return the tensor."""
    @overload
    def float_power(self, x2: Operand) -> Self:
        """Return x1 to the power x2, computed in float64."""
    @overload
    def float_power(self, other: Operand) -> Self: ...
    def floor(self, *, out: Tensor | None = None) -> Self:
        """Return the largest integer that is not more than x."""
    def floor_(self) -> Self:
        """Write the result of `dt.floor` into this tensor's memory and return the tensor."""
    @overload
    def floor_divide(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the quotient x1 / x2 of exact arithmetic, rounded down."""
    @overload
    def floor_divide(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def floor_divide_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.floor_divide` into this tensor's memory and return the
        tensor."""
    @overload
    def floor_divide_(self, other: Operand) -> Self: ...
    def fmax_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.fmax` into this tensor's memory and return the tensor."""
    def fmin_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.fmin` into this tensor's memory and return the tensor."""
    def fmod_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.fmod` into this tensor's memory and return the tensor."""
    def frexp(self, *, out: Sequence[Tensor] | None = None) -> tuple[Self, Self]:
        """Return mantissas m and exponents e with x = m * 2**e and 1/2 <= |m| < 1: (m, e)."""
    def gamma(self, *, out: Tensor | None = None) -> Self:
        """Return the gamma function: (x - 1)! for a positive integer, NaN at negative ones."""
    def gamma_(self) -> Self:
        """Write the result of `dt.gamma` into this tensor's memory and return the tensor."""
    def gather(self, dim: int, index: Array) -> Self:
        """Return the elements of `x` at `index` along axis `dim`; other axes may be shorter than
        x's."""
    @overload
    def gcd(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the greatest common divisor; negative only for MIN, and 0 for 0 and 0."""
    @overload
    def gcd(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def gcd_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.gcd` into this tensor's memory and return the tensor."""
    @overload
    def gcd_(self, other: Operand) -> Self: ...
    @overload
    def ge(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 >= x2."""
    @overload
    def ge(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    grad: Self | None
    @overload
    def greater(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 > x2."""
    @overload
    def greater(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def greater_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.greater` into this tensor's memory and return the tensor."""
    @overload
    def greater_(self, other: Operand) -> Self: ...
    @overload
    def greater_equal(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 >= x2."""
    @overload
    def greater_equal(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def greater_equal_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.greater_equal` into this tensor's memory and return the
        tensor."""
    @overload
    def greater_equal_(self, other: Operand) -> Self: ...
    @overload
    def gt(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 > x2."""
    @overload
    def gt(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def heaviside(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return 0 where x1 is negative, 1 where it is positive, and x2 where it is 0."""
    @overload
    def heaviside(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def heaviside_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.heaviside` into this tensor's memory and return the tensor."""
    @overload
    def heaviside_(self, other: Operand) -> Self: ...
    def histc(
        self, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None
    ) -> Self:
        """Count the elements in each of `bins` bins of equal width from `min` to `max`."""
    @overload
    def hypot(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the length sqrt(x1**2 + x2**2), without overflow."""
    @overload
    def hypot(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def hypot_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.hypot` into this tensor's memory and return the tensor."""
    @overload
    def hypot_(self, other: Operand) -> Self: ...
    def i0(self, *, out: Tensor | None = None) -> Self:
        """Return the modified Bessel function of the first kind and order 0."""
    def i0_(self) -> Self:
        """Write the result of `dt.i0` into this tensor's memory and return the tensor."""
    def i1(self, *, out: Tensor | None = None) -> Self:
        """Return the modified Bessel function of the first kind and order 1."""
    def i1_(self) -> Self:
        """Write the result of `dt.i1` into this tensor's memory and return the tensor."""
    imag: Self
    def index_add(
        self, dim: int, index: Operand, source: Operand, *, out: Tensor | None = None
    ) -> Self:
        """Return a copy of `x` with slices of `source` added at `index` along `dim`."""
    def index_add_(self, dim: int, index: Operand, source: Operand) -> Self:
        """Add slices of `source` to the slices of `x` at `index` along `dim`, and return `x`."""
    def index_copy(
        self, dim: int, index: Operand, source: Operand, *, out: Tensor | None = None
    ) -> Self:
        """Return a copy of `x` with slices of `source` written at `index` along `dim`."""
    def index_copy_(self, dim: int, index: Operand, source: Operand) -> Self:
        """Write slices of `source` to the slices of `x` at `index` along `dim`, and return
        `x`."""
    def index_fill(
        self, dim: int, index: Operand, value: Operand, *, out: Tensor | None = None
    ) -> Self:
        """Return a copy of `x` with one value written to the slices at `index` along `dim`."""
    def index_fill_(self, dim: int, index: Operand, value: Operand) -> Self:
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
    ) -> Self:
        """Return a copy of `x` with slices of `source` reduced into it at `index` along `dim`."""
    def index_reduce_(
        self, dim: int, index: Operand, source: Operand, reduce: str, *, include_self: bool = True
    ) -> Self:
        """Write the result of `dt.index_reduce` into this tensor's memory and return the
        tensor."""
    def index_select(self, dim: int, index: Array) -> Self:
        """Return the rows of `x` at `index` along axis `dim`: `dt.take(x, index, axis=dim)`."""
    @overload
    def inner(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the sums of products over the last axes of two tensors, for every pair of the
        others."""
    @overload
    def inner(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    def integers_(
        self, low: int, high: int | None = None, *, generator: Generator | None = None
    ) -> Self:
        """Write numbers by `dt.random.integers` into this tensor's memory and return the
        tensor."""
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
    ) -> Self:
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
    ) -> Self: ...
    def isfinite(self, *, out: Tensor | None = None) -> Self:
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
    ) -> Self:
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
    ) -> Self: ...
    def isinf(self, *, out: Tensor | None = None) -> Self:
        """Return True where x is inf or -inf."""
    def isnan(self, *, out: Tensor | None = None) -> Self:
        """Return True where x is NaN."""
    @overload
    def kron(self, x2: Array, /, *, out: Tensor | None = None) -> Self:
        """Return the Kronecker product: a block for each element of `x1`, the element times
        `x2`."""
    @overload
    def kron(self, other: Array, *, out: Tensor | None = None) -> Self: ...
    def laplace_(
        self, loc: Parameter = 0.0, scale: Parameter = 1.0, *, generator: Generator | None = None
    ) -> Self:
        """Write numbers by `dt.random.laplace` into this tensor's memory and return the
        tensor."""
    @overload
    def lcm(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the least common multiple, which wraps; 0 where an operand is 0."""
    @overload
    def lcm(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def lcm_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.lcm` into this tensor's memory and return the tensor."""
    @overload
    def lcm_(self, other: Operand) -> Self: ...
    @overload
    def ldexp(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 * 2**x2, with one rounding; x2 is truncated to an integer."""
    @overload
    def ldexp(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def ldexp_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.ldexp` into this tensor's memory and return the tensor."""
    @overload
    def ldexp_(self, other: Operand) -> Self: ...
    @overload
    def le(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 <= x2."""
    @overload
    def le(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    def lerp(self, end: Array, weight: Operand, *, out: Tensor | None = None) -> Self:
        """Interpolate linearly: return `x + weight * (end - x)`."""
    def lerp_(self, end: Array, weight: Operand) -> Self:
        """Write the result of `dt.lerp` into this tensor's memory and return the tensor."""
    @overload
    def less(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 < x2."""
    @overload
    def less(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def less_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.less` into this tensor's memory and return the tensor."""
    @overload
    def less_(self, other: Operand) -> Self: ...
    @overload
    def less_equal(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 <= x2."""
    @overload
    def less_equal(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def less_equal_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.less_equal` into this tensor's memory and return the tensor."""
    @overload
    def less_equal_(self, other: Operand) -> Self: ...
    def lgamma(self, *, out: Tensor | None = None) -> Self:
        """Return the logarithm of |gamma(x)|; infinite at 0 and negative integers."""
    def lgamma_(self) -> Self:
        """Write the result of `dt.lgamma` into this tensor's memory and return the tensor."""
    def log(self, *, out: Tensor | None = None) -> Self:
        """Return the natural logarithm; -inf at 0, NaN below."""
    def log1p(self, *, out: Tensor | None = None) -> Self:
        """Return log(1 + x), accurate near 0; -inf at -1, NaN below."""
    def log1p_(self) -> Self:
        """Write the result of `dt.log1p` into this tensor's memory and return the tensor."""
    def log2(self, *, out: Tensor | None = None) -> Self:
        """Return the logarithm to base 2; -inf at 0, NaN below."""
    def log2_(self) -> Self:
        """Write the result of `dt.log2` into this tensor's memory and return the tensor."""
    def log10(self, *, out: Tensor | None = None) -> Self:
        """Return the logarithm to base 10; -inf at 0, NaN below."""
    def log10_(self) -> Self:
        """Write the result of `dt.log10` into this tensor's memory and return the tensor."""
    def log_(self) -> Self:
        """Write the result of `dt.log` into this tensor's memory and return the tensor."""
    @overload
    def log_softmax(self, axis: int = -1, *, out: Tensor | None = None) -> Self:
        """Return the logarithm of softmax along `axis`, accurate where softmax underflows."""
    @overload
    def log_softmax(self, dim: int = -1, *, out: Tensor | None = None) -> Self: ...
    def log_softmax_(self, axis: int = -1) -> Self:
        """Write the result of `dt.log_softmax` into this tensor's memory and return the
        tensor."""
    @overload
    def logaddexp(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return log(exp(x1) + exp(x2)), without overflow."""
    @overload
    def logaddexp(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    def logaddexp2_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.logaddexp2` into this tensor's memory and return the tensor."""
    @overload
    def logaddexp_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.logaddexp` into this tensor's memory and return the tensor."""
    @overload
    def logaddexp_(self, other: Operand) -> Self: ...
    @overload
    def logical_and(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return True where both operands are true."""
    @overload
    def logical_and(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def logical_and_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.logical_and` into this tensor's memory and return the
        tensor."""
    @overload
    def logical_and_(self, other: Operand) -> Self: ...
    def logical_not(self, *, out: Tensor | None = None) -> Self:
        """Return True where x is zero or False."""
    def logical_not_(self) -> Self:
        """Write the result of `dt.logical_not` into this tensor's memory and return the
        tensor."""
    @overload
    def logical_or(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return True where one or both operands are true."""
    @overload
    def logical_or(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def logical_or_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.logical_or` into this tensor's memory and return the tensor."""
    @overload
    def logical_or_(self, other: Operand) -> Self: ...
    @overload
    def logical_xor(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return True where exactly one operand is true."""
    @overload
    def logical_xor(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def logical_xor_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.logical_xor` into this tensor's memory and return the
        tensor."""
    @overload
    def logical_xor_(self, other: Operand) -> Self: ...
    def logit(self, *, out: Tensor | None = None) -> Self:
        """Return the inverse of sigmoid, log(x / (1 - x)); infinite at 0 and 1, NaN outside."""
    def logit_(self) -> Self:
        """Write the result of `dt.logit` into this tensor's memory and return the tensor."""
    @overload
    def logsumexp(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Self:
        """Return the logarithm of the sum of exp(x) over `axis`, without overflow, in one
        kernel."""
    @overload
    def logsumexp(
        self, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Self: ...
    @overload
    def lt(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 < x2."""
    @overload
    def lt(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    def masked_fill(self, mask: Array, value: Operand) -> Self:
        """Return `dt.where(mask, value, x)` in the dtype of `x`."""
    def masked_fill_(self, mask: Array, value: Operand) -> Self:
        """Write `value` into `x` where the mask is true, and return `x`."""
    def masked_scatter(self, mask: Array, source: Array, *, out: Tensor | None = None) -> Self:
        """Return a copy of `x` with the first elements of `source` where `mask` is true, in
        order."""
    def masked_scatter_(self, mask: Array, source: Array) -> Self:
        """Write the result of `dt.masked_scatter` into this tensor's memory and return the
        tensor."""
    def masked_select(self, mask: Array) -> Self:
        """Return a vector of the elements of `x` where `mask` is True, after both are
        broadcast."""
    @overload
    def matmul(self, x2: Array, /, *, dtype: DTypeLike = None, out: Tensor | None = None) -> Self:
        """Return the matrix product over the last two axes; the axes before them are
        broadcast."""
    @overload
    def matmul(
        self, other: Array, *, dtype: DTypeLike = None, out: Tensor | None = None
    ) -> Self: ...
    @overload
    def max(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Self:
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
    ) -> Self: ...
    @overload
    def maximum(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the larger of two elements; NaN if one is NaN."""
    @overload
    def maximum(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def maximum_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.maximum` into this tensor's memory and return the tensor."""
    @overload
    def maximum_(self, other: Operand) -> Self: ...
    @overload
    def mean(
        self,
        axis: Axis = None,
        *,
        dtype: DTypeLike = None,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Self:
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
    ) -> Self: ...
    @overload
    def median(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Self:
        """Return the median over `axis`: the middle element in sorted order, or the mean of
        both."""
    @overload
    def median(
        self, axis: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Self: ...
    @overload
    def min(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Self:
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
    ) -> Self: ...
    @overload
    def minimum(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the smaller of two elements; NaN if one is NaN."""
    @overload
    def minimum(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def minimum_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.minimum` into this tensor's memory and return the tensor."""
    @overload
    def minimum_(self, other: Operand) -> Self: ...
    def moveaxis(self, source: Axes, destination: Axes) -> Self:
        """Return a view of `x` with some axes moved to other positions."""
    def movedim(self, source: Axes, destination: Axes) -> Self:
        """Return a view of `x` with some axes moved to other positions."""
    @overload
    def mul(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the product x1 * x2; for bool: and."""
    @overload
    def mul(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def mul_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.multiply` into this tensor's memory and return the tensor."""
    @overload
    def mul_(self, other: Operand) -> Self: ...
    def multinomial(
        self,
        num_samples: int,
        replacement: bool = False,
        *,
        generator: Generator | None = None,
        out: Tensor | None = None,
    ) -> Self:
        """Draw indices of categories with the weights `x`, as PyTorch's function of this name."""
    @overload
    def multiply(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the product x1 * x2; for bool: and."""
    @overload
    def multiply(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def multiply_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.multiply` into this tensor's memory and return the tensor."""
    @overload
    def multiply_(self, other: Operand) -> Self: ...
    def nan_to_num(
        self,
        nan: float = 0.0,
        *,
        posinf: float | None = None,
        neginf: float | None = None,
        out: Tensor | None = None,
    ) -> Self:
        """Return `x` with numbers in place of NaN and infinities."""
    def nan_to_num_(
        self, nan: float = 0.0, *, posinf: float | None = None, neginf: float | None = None
    ) -> Self:
        """Write the result of `dt.nan_to_num` into this tensor's memory and return the tensor."""
    @overload
    def nanargmax(
        self, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Self:
        """Return the first position of the largest non-NaN element along `axis`; -1 if all are
        NaN."""
    @overload
    def nanargmax(
        self, dim: int | None = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Self: ...
    @overload
    def nanargmin(
        self, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Self:
        """Return the first position of the smallest non-NaN element along `axis`; -1 if all are
        NaN."""
    @overload
    def nanargmin(
        self, dim: int | None = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Self: ...
    def nancumprod_(self, axis: int | None = None, *, dtype: DTypeLike = None) -> Self:
        """Write the result of `dt.nancumprod` into this tensor's memory and return the tensor."""
    def nancumsum_(self, axis: int | None = None, *, dtype: DTypeLike = None) -> Self:
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
    ) -> Self:
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
    ) -> Self: ...
    @overload
    def nanmean(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Self:
        """Return the mean over `axis` of the elements that are not NaN; NaN if there are none."""
    @overload
    def nanmean(
        self,
        dim: Axis = None,
        *,
        keepdim: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Self: ...
    @overload
    def nanmedian(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Self:
        """Return the median of the elements that are not NaN over `axis`; NaN if there are only
        NaNs."""
    @overload
    def nanmedian(
        self, axis: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Self: ...
    @overload
    def nanmin(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: Fill | None = None,
        where: Mask = None,
    ) -> Self:
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
    ) -> Self: ...
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
    ) -> Self:
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
    ) -> Self: ...
    @overload
    def nanstd(
        self,
        axis: Axis = None,
        *,
        correction: float = 0.0,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Self:
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
    ) -> Self: ...
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
    ) -> Self:
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
    ) -> Self: ...
    @overload
    def nanvar(
        self,
        axis: Axis = None,
        *,
        correction: float = 0.0,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Self:
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
    ) -> Self: ...
    def narrow(self, dim: int, start: int, length: int) -> Self:
        """Return a view of `length` places of axis `dim` from `start` on."""
    def ndtr(self, *, out: Tensor | None = None) -> Self:
        """Return the probability that a standard normal variable is below x."""
    def ndtr_(self) -> Self:
        """Write the result of `dt.ndtr` into this tensor's memory and return the tensor."""
    def ndtri(self, *, out: Tensor | None = None) -> Self:
        """Return the standard normal quantile of probability x; NaN outside of 0..1."""
    def ndtri_(self) -> Self:
        """Write the result of `dt.ndtri` into this tensor's memory and return the tensor."""
    @overload
    def ne(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 != x2."""
    @overload
    def ne(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    def neg(self, *, out: Tensor | None = None) -> Self:
        """Return -x."""
    def neg_(self) -> Self:
        """Write the result of `dt.negative` into this tensor's memory and return the tensor."""
    def negative(self, *, out: Tensor | None = None) -> Self:
        """Return -x."""
    def negative_(self) -> Self:
        """Write the result of `dt.negative` into this tensor's memory and return the tensor."""
    def new_empty(self, *size: int, dtype: DTypeLike = None, device: DeviceLike = None) -> Self:
        """Return memory of a shape, with the dtype and the device of `x` unless others are
        given."""
    def new_full(
        self,
        size: Sequence[int],
        fill_value: complex,
        *,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
    ) -> Self:
        """Return a tensor of one value, with the dtype and device of `x` unless others are
        given."""
    def new_ones(self, *size: int, dtype: DTypeLike = None, device: DeviceLike = None) -> Self:
        """Return ones of a shape, with the dtype and the device of `x` unless others are
        given."""
    def new_tensor(
        self, data: object, *, dtype: DTypeLike = None, device: DeviceLike = None
    ) -> Self:
        """Return a copy of values, with the dtype and the device of `x` unless others are
        given."""
    def new_zeros(self, *size: int, dtype: DTypeLike = None, device: DeviceLike = None) -> Self:
        """Return zeros of a shape, with the dtype and the device of `x` unless others are
        given."""
    @overload
    def nextafter(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the next number of their dtype after x1 in the direction of x2."""
    @overload
    def nextafter(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def nextafter_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.nextafter` into this tensor's memory and return the tensor."""
    @overload
    def nextafter_(self, other: Operand) -> Self: ...
    def nonzero(self, *, size: int | None = None, fill_value: int = 0) -> tuple[Self, ...]:
        """Return for each axis the positions of the nonzero elements, in row-major order."""
    def normal_(
        self, mean: complex = 0.0, std: float = 1.0, *, generator: Generator | None = None
    ) -> Self:
        """Write numbers by `dt.random.normal` into this tensor's memory and return the tensor."""
    @overload
    def not_equal(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 != x2."""
    @overload
    def not_equal(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def not_equal_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.not_equal` into this tensor's memory and return the tensor."""
    @overload
    def not_equal_(self, other: Operand) -> Self: ...
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
    ) -> Self:
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
    ) -> Self: ...
    @overload
    def permute(self, axes: Sizes, *order: Sizes) -> Self:
        """Return a view of `x` with its axes in another order."""
    @overload
    def permute(self, dims: Sizes, *order: Sizes) -> Self: ...
    @overload
    def permute_dims(self, axes: Sizes, *order: Sizes) -> Self:
        """Return a view of `x` with its axes in another order."""
    @overload
    def permute_dims(self, dims: Sizes, *order: Sizes) -> Self: ...
    def pin_memory(self, device: Device | str | None = None) -> Self:
        """Return a copy of a host tensor in page-locked memory, for asynchronous copies."""
    def poisson_(self, lam: Parameter = 1.0, *, generator: Generator | None = None) -> Self:
        """Write numbers by `dt.random.poisson` into this tensor's memory and return the
        tensor."""
    def positive(self, *, out: Tensor | None = None) -> Self:
        """Return x as a new tensor."""
    @overload
    def pow(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 to the power x2."""
    @overload
    def pow(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def pow_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.pow` into this tensor's memory and return the tensor."""
    @overload
    def pow_(self, other: Operand) -> Self: ...
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
    ) -> Self:
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
    ) -> Self: ...
    @overload
    def ptp(self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None) -> Self:
        """Return the range of values over `axis`: the largest minus the smallest."""
    @overload
    def ptp(
        self, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
    ) -> Self: ...
    def put(
        self, indices: Array, values: Operand, /, *, mode: str = "raise", out: Tensor | None = None
    ) -> Self:
        """Write values at positions of the raveled elements of this tensor, and return it."""
    @overload
    def put_along_axis(
        self, indices: Array, values: Operand, axis: int = -1, *, out: Tensor | None = None
    ) -> Self:
        """Write values at `indices` along `axis` of this tensor, and return it."""
    @overload
    def put_along_axis(
        self, indices: Array, values: Operand, dim: int = -1, *, out: Tensor | None = None
    ) -> Self: ...
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
    ) -> Self:
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
    ) -> Self: ...
    def rad2deg(self, *, out: Tensor | None = None) -> Self:
        """Convert radians to degrees."""
    def rad2deg_(self) -> Self:
        """Write the result of `dt.rad2deg` into this tensor's memory and return the tensor."""
    def ravel(self) -> Self:
        """Return all elements in row-major order along one axis: a view if strides permit, else a
        copy."""
    real: Self
    def reciprocal(self, *, out: Tensor | None = None) -> Self:
        """Return 1 / x."""
    def reciprocal_(self) -> Self:
        """Write the result of `dt.reciprocal` into this tensor's memory and return the tensor."""
    def relu(self, *, out: Tensor | None = None) -> Self:
        """Return max(x, 0); NaN stays."""
    def relu_(self) -> Self:
        """Write the result of `dt.relu` into this tensor's memory and return the tensor."""
    @overload
    def remainder(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the remainder of x1 / x2, with the sign of x2."""
    @overload
    def remainder(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def remainder_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.remainder` into this tensor's memory and return the tensor."""
    @overload
    def remainder_(self, other: Operand) -> Self: ...
    def renorm(self, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Self:
        """Return `x` with each slice along `dim` whose p-norm exceeds `maxnorm` scaled to that
        norm."""
    def renorm_(self, p: float, dim: int, maxnorm: float) -> Self:
        """Write the result of `dt.renorm` into this tensor's memory and return the tensor."""
    @overload
    def repeat(
        self,
        repeats: int | Sequence[int] | Tensor,
        /,
        *,
        axis: int | None = None,
        out: Tensor | None = None,
    ) -> Self:
        """Repeat each element along an axis."""
    @overload
    def repeat(
        self,
        repeats: int | Sequence[int] | Tensor,
        *,
        dim: int | None = None,
        out: Tensor | None = None,
    ) -> Self: ...
    def repeat_interleave(
        self, repeats: int | Sequence[int] | Tensor, dim: int | None = None
    ) -> Self:
        """Repeat each element of `x` along axis `dim`: `dt.repeat(x, repeats, axis=dim)`."""
    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Mark `x` as a leaf whose gradient is wanted, or as one without; return `x`."""
    def reshape(self, shape: Sizes, *sizes: Sizes, copy: bool | None = None) -> Self:
        """Return the elements, in row-major order, in another shape; one size may be -1."""
    def reshape_as(self, other: Tensor) -> Self:
        """Return `x` in the shape of another tensor; a view if strides permit it."""
    def resize_(self, *shape: int | Sequence[int]) -> Self:
        """Give this tensor another shape over its own memory, in row-major order, and return
        it."""
    @overload
    def roll(self, shift: Axes, axis: Axes | None = None, *, out: Tensor | None = None) -> Self:
        """Return a new tensor with elements shifted cyclically along some axes."""
    @overload
    def roll(self, shift: Axes, dim: Axes | None = None, *, out: Tensor | None = None) -> Self: ...
    def roll_(self, shift: Axes, axis: Axes | None = None) -> Self:
        """Write the result of `dt.roll` into this tensor's memory and return the tensor."""
    @overload
    def rot90(self, k: int = 1, axes: Sequence[int] = ...) -> Self:
        """Return a view of `x` rotated by `k` quarter turns from the first axis to the second."""
    @overload
    def rot90(self, k: int = 1, dims: Sequence[int] = ...) -> Self: ...
    def round(self, decimals: int = 0, *, out: Tensor | None = None) -> Self:
        """Return the nearest integer, or multiple of 10**-decimals; halves go to the even one."""
    def round_(self) -> Self:
        """Write the result of `dt.round` into this tensor's memory and return the tensor."""
    def rsqrt(self, *, out: Tensor | None = None) -> Self:
        """Return 1 / sqrt(x)."""
    def rsqrt_(self) -> Self:
        """Write the result of `dt.rsqrt` into this tensor's memory and return the tensor."""
    def scatter(self, dim: int, index: Operand, src: Operand, *, out: Tensor | None = None) -> Self:
        """Return a copy of `x` with the elements of `src` written at `index` along `dim`."""
    def scatter_(self, dim: int, index: Operand, src: Operand) -> Self:
        """Write the elements of `src` to `x` at `index` along `dim`, and return `x`."""
    def scatter_add(
        self, dim: int, index: Operand, src: Operand, *, out: Tensor | None = None
    ) -> Self:
        """Return a copy of `x` with the elements of `src` added at `index` along `dim`."""
    def scatter_add_(self, dim: int, index: Operand, src: Operand) -> Self:
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
    ) -> Self:
        """Return a copy of `x` with the elements of `src` reduced into it at `index` along
        `dim`."""
    def scatter_reduce_(
        self, dim: int, index: Operand, src: Operand, reduce: str, *, include_self: bool = True
    ) -> Self:
        """Write the result of `dt.scatter_reduce` into this tensor's memory and return the
        tensor."""
    def select(self, dim: int, index: int) -> Self:
        """Return a view of one place of axis `dim`, without that axis: `x[..., index, ...]`."""
    def set_(self, source: Tensor, /) -> Self:
        """Make this tensor refer to the memory of another one, with its device, dtype and
        shape."""
    def sigmoid(self, *, out: Tensor | None = None) -> Self:
        """Return 1 / (1 + exp(-x))."""
    def sigmoid_(self) -> Self:
        """Write the result of `dt.sigmoid` into this tensor's memory and return the tensor."""
    def sign(self, *, out: Tensor | None = None) -> Self:
        """Return the sign of x: -1, 0 or 1; x / abs(x) for complex numbers, 0 at 0; NaN stays."""
    def sign_(self) -> Self:
        """Write the result of `dt.sign` into this tensor's memory and return the tensor."""
    def signbit(self, *, out: Tensor | None = None) -> Self:
        """Return True where the sign bit is set, as in -0.0."""
    def sin(self, *, out: Tensor | None = None) -> Self:
        """Return the sine of an angle in radians; NaN for infinity."""
    def sin_(self) -> Self:
        """Write the result of `dt.sin` into this tensor's memory and return the tensor."""
    def sinc(self, *, out: Tensor | None = None) -> Self:
        """Return sin(pi * x) / (pi * x), and 1 at 0."""
    def sinc_(self) -> Self:
        """Write the result of `dt.sinc` into this tensor's memory and return the tensor."""
    def sinh(self, *, out: Tensor | None = None) -> Self:
        """Return the hyperbolic sine."""
    def sinh_(self) -> Self:
        """Write the result of `dt.sinh` into this tensor's memory and return the tensor."""
    @overload
    def softmax(self, axis: int = -1, *, out: Tensor | None = None) -> Self:
        """Return exp(x) divided by its sum along `axis`, without overflow, in one kernel."""
    @overload
    def softmax(self, dim: int = -1, *, out: Tensor | None = None) -> Self: ...
    def softmax_(self, axis: int = -1) -> Self:
        """Write the result of `dt.softmax` into this tensor's memory and return the tensor."""
    def sort(
        self,
        axis: int | None = -1,
        *,
        descending: bool = False,
        stable: bool = True,
        out: Tensor | None = None,
    ) -> Self:
        """Return the elements of `x` in order along `axis`, equal ones in the order that they
        had."""
    def sort_(
        self, axis: int | None = -1, *, descending: bool = False, stable: bool = True
    ) -> Self:
        """Write the result of `dt.sort` into this tensor's memory and return the tensor."""
    @overload
    def split(self, sizes: int | Sequence[int], /, axis: int = 0) -> tuple[Self, ...]:
        """Split `x` along `axis` into views of consecutive parts, as a tuple."""
    @overload
    def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Self, ...]: ...
    def sqrt(self, *, out: Tensor | None = None) -> Self:
        """Return the square root; NaN for negative real numbers."""
    def sqrt_(self) -> Self:
        """Write the result of `dt.sqrt` into this tensor's memory and return the tensor."""
    def square(self, *, out: Tensor | None = None) -> Self:
        """Return x * x."""
    def square_(self) -> Self:
        """Write the result of `dt.square` into this tensor's memory and return the tensor."""
    @overload
    def squeeze(self, axis: Axes | None = None) -> Self:
        """Return a view of `x` without some axes of size 1."""
    @overload
    def squeeze(self, dim: Axes | None = None) -> Self: ...
    @overload
    def std(
        self,
        axis: Axis = None,
        *,
        correction: float = 0.0,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: Mask = None,
    ) -> Self:
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
    ) -> Self: ...
    @overload
    def sub(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 - x2."""
    @overload
    def sub(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def sub_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.subtract` into this tensor's memory and return the tensor."""
    @overload
    def sub_(self, other: Operand) -> Self: ...
    @overload
    def subtract(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 - x2."""
    @overload
    def subtract(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def subtract_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.subtract` into this tensor's memory and return the tensor."""
    @overload
    def subtract_(self, other: Operand) -> Self: ...
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
    ) -> Self:
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
    ) -> Self: ...
    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """Return a view of `x` with `axis1` and `axis2` exchanged."""
    def t(self) -> Self:
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
    ) -> Self:
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
    ) -> Self: ...
    @overload
    def take_along_axis(
        self, indices: Array, /, axis: int | None = -1, *, out: Tensor | None = None
    ) -> Self:
        """Return the elements of `x` at `indices` along `axis`, one index for each result
        element."""
    @overload
    def take_along_axis(
        self, indices: Array, dim: int | None = -1, *, out: Tensor | None = None
    ) -> Self: ...
    def take_along_dim(self, indices: Array, dim: int | None = None) -> Self:
        """Return the elements of `x` at `indices` along axis `dim`; None flattens both first."""
    def tan(self, *, out: Tensor | None = None) -> Self:
        """Return the tangent of an angle in radians; NaN for infinity."""
    def tan_(self) -> Self:
        """Write the result of `dt.tan` into this tensor's memory and return the tensor."""
    def tanh(self, *, out: Tensor | None = None) -> Self:
        """Return the hyperbolic tangent."""
    def tanh_(self) -> Self:
        """Write the result of `dt.tanh` into this tensor's memory and return the tensor."""
    def tile(self, repetitions: int | Sequence[int], /, *, out: Tensor | None = None) -> Self:
        """Repeat the whole tensor along each axis."""
    def to(
        self,
        *wanted: Tensor | DTypeLike | DeviceLike,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
        copy: bool = False,
        non_blocking: bool = False,
    ) -> Self:
        """Return `x` on a device, in a dtype, or both; `x` itself if nothing changes."""
    def to_dense(self) -> Self:
        """Return the tensor itself, or a sparse layout's elements as a strided tensor."""
    def to_device(self, device: DeviceLike, /, *, stream: object = None) -> Self:
        """Return the tensor on a device: itself if it is there, else a copy (Array API)."""
    def trace(
        self,
        *,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike = None,
        out: Tensor | None = None,
    ) -> Self:
        """Return the sum of the diagonal over two axes."""
    def transpose(self, *axes: Sizes | None) -> Self:
        """Return a view of `x` with two axes exchanged or, without `axes`, all of them
        reversed."""
    def tril(self, k: int = 0, *, out: Tensor | None = None) -> Self:
        """Return the lower triangles of matrices: elements above the k-th diagonal become 0."""
    def tril_(self, k: int = 0) -> Self:
        """Write the result of `dt.tril` into this tensor's memory and return the tensor."""
    def triu(self, k: int = 0, *, out: Tensor | None = None) -> Self:
        """Return the upper triangles of matrices: elements below the k-th diagonal become 0."""
    def triu_(self, k: int = 0) -> Self:
        """Write the result of `dt.triu` into this tensor's memory and return the tensor."""
    def trunc(self, *, out: Tensor | None = None) -> Self:
        """Return the integer part of x, without its fraction."""
    def trunc_(self) -> Self:
        """Write the result of `dt.trunc` into this tensor's memory and return the tensor."""
    def truncated_normal_(
        self,
        low: Parameter = -2.0,
        high: Parameter = 2.0,
        mean: Parameter = 0.0,
        std: Parameter = 1.0,
        *,
        generator: Generator | None = None,
    ) -> Self:
        """Write numbers by `dt.random.truncated_normal` into this tensor's memory and return the
        tensor."""
    def type_as(self, other: Tensor) -> Self:
        """Return the elements of x in the dtype of another tensor; x itself if it has that
        dtype."""
    def unflatten(self, dim: int, sizes: Sequence[int]) -> Self:
        """Replace axis `dim` by several axes of these sizes, of which one may be -1."""
    def unfold(self, dimension: int, size: int, step: int) -> Self:
        """Return a view of the windows of `size` elements along an axis, `step` apart."""
    def uniform_(
        self, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None
    ) -> Self:
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
    ) -> Self | tuple[Self, ...]:
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
    ) -> Self | tuple[Self, ...]: ...
    def unique_consecutive(
        self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Self | tuple[Self, ...]:
        """Return the first element of each run of equal elements."""
    def unique_values(self) -> Self:
        """Return the distinct elements of `x`, in ascending order."""
    @overload
    def unsqueeze(self, axis: Axes = 0) -> Self:
        """Return a view of `x` with inserted axes of size 1."""
    @overload
    def unsqueeze(self, dim: Axes = 0) -> Self: ...
    @overload
    def unstack(self, axis: int = 0) -> tuple[Self, ...]:
        """Return views of the parts of `x` along `axis`, without that axis, as a tuple."""
    @overload
    def unstack(self, dim: int = 0) -> tuple[Self, ...]: ...
    def unwrap_(
        self, discont: float | None = None, axis: int = -1, *, period: float = 6.283185307179586
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self: ...
    @overload
    def vdot(self, x2: Array, /, *, out: Tensor | None = None) -> Self:
        """Return the sum of the products of the elements of two tensors, both raveled."""
    @overload
    def vdot(self, other: Array, *, out: Tensor | None = None) -> Self: ...
    def view(self, *shape: Sizes | DTypeLike, dtype: DTypeLike = None) -> Self:
        """Return a view in another shape or dtype, never a copy: `x.view(2, 3)`,
        `x.view(dt.int32)`."""
    def view_as(self, other: Tensor) -> Self:
        """Return a view of `x` in the shape of another tensor."""
    def where(self, condition: Array, other: Operand) -> Self:
        """Return `dt.where(condition, x, other)`."""
    @overload
    def xlogy(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return x1 * log(x2), and 0 where x1 is 0, unless x2 is NaN."""
    @overload
    def xlogy(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def xlogy_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.xlogy` into this tensor's memory and return the tensor."""
    @overload
    def xlogy_(self, other: Operand) -> Self: ...
    def zero_(self) -> Self:
        """Fill this tensor with 0, and return it."""
    @overload
    def zeta(self, x2: Operand, /, *, out: Tensor | None = None) -> Self:
        """Return the Hurwitz zeta function: the sum of (x2 + k)**-x1 over k = 0, 1, 2, ..."""
    @overload
    def zeta(self, other: Operand, *, out: Tensor | None = None) -> Self: ...
    @overload
    def zeta_(self, x2: Operand, /) -> Self:
        """Write the result of `dt.zeta` into this tensor's memory and return the tensor."""
    @overload
    def zeta_(self, other: Operand) -> Self: ...
