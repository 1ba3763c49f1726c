# Written by tools/faces.py for type checkers:
# ruff: noqa
# the functions of `torch`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from collections.abc import Callable, Sequence
from dovetail.device_class import Device
from dovetail.dtypes import DType
from dovetail.func.vectorize import P, R, Axes as AxesVectorize
from dovetail.functions.creation.constructors import Fill, ShapeLike
from dovetail.functions.datatypes import DTypeLike, DeviceLike, Finfo, Iinfo
from dovetail.functions.indexing.index_arrays import Index
from dovetail.functions.io.interop import HasDLPack
from dovetail.functions.products.matrix_products import Axes as AxesMatrixProducts
from dovetail.functions.random.generator import Extents, Generator
from dovetail.functions.random.samplers import Parameter
from dovetail.functions.reductions.statistics import Axis, Mask
from dovetail.functions.shape.joining import SplitPoints
from dovetail.functions.shape.manipulation import Axes, Sizes as SizesManipulation
from dovetail.functions.sorting.stable_sort import TopK
from dovetail.functions.torch_order_functions import ValuesIndices
from dovetail.layout import Shape
from dovetail.linalg.factors import LUResult, Mode, QRResult, SVDResult
from dovetail.linalg.least_squares import Threshold
from dovetail.linalg.norms import Axis as AxisNorms
from dovetail.linalg.solving import SlogdetResult
from dovetail.memory.allocator import Allocator
from dovetail.nn.functional.adaptive import MaxPoolResult, OutputSize
from dovetail.nn.functional.pooling import MaxPoolResult as MaxPoolResultPooling
from dovetail.nn.functional.sizes import Sizes
from dovetail.sparse.blocks import BSR
from dovetail.sparse.compressed import CSC, CSR
from dovetail.sparse.tensor import COO
from dovetail.tensor.promotion import Array, Operand, Scalar
from dovetail.tensor.tensor import Tensor as AnyTensor
from dovetail.torch.adoption import Tensor as TensorCreation
from typing import Any, overload

@overload
def abs(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the absolute value, also of complex numbers."""
@overload
def abs(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def absolute(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the absolute value, also of complex numbers."""
@overload
def absolute(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def acos(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse cosine in radians, in 0..pi; NaN outside of -1..1."""
@overload
def acos(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def acosh(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse hyperbolic cosine; NaN below 1."""
@overload
def acosh(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def adaptive_avg_pool1d(input: AnyTensor, output_size: OutputSize) -> Tensor:
    """Return the means of a given number of windows that cover signals evenly."""
def adaptive_max_pool1d(
    input: AnyTensor, output_size: OutputSize, return_indices: bool = False
) -> MaxPoolResult:
    """Return the largest elements of a given number of windows of signals."""
@overload
def add(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the sum x1 + x2; for bool: or."""
@overload
def add(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """Return `beta * input + alpha * (batch1 @ batch2).sum(0)`."""
@overload
def addcdiv(
    x: AnyTensor, tensor1: Array, tensor2: Array, *, value: Operand = 1, out: AnyTensor | None = None
) -> Tensor:
    """Return `x + value * tensor1 / tensor2`."""
@overload
def addcdiv(
    input: AnyTensor, tensor1: Array, tensor2: Array, *, value: Operand = 1, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def addcmul(
    x: AnyTensor, tensor1: Array, tensor2: Array, *, value: Operand = 1, out: AnyTensor | None = None
) -> Tensor:
    """Return `x + value * tensor1 * tensor2`."""
@overload
def addcmul(
    input: AnyTensor, tensor1: Array, tensor2: Array, *, value: Operand = 1, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def addmm(
    x: AnyTensor,
    mat1: Array,
    mat2: Array,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return `beta * x + alpha * (mat1 @ mat2)`."""
@overload
def addmm(
    input: AnyTensor,
    mat1: Array,
    mat2: Array,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def addmv(
    x: AnyTensor,
    mat: Array,
    vec: Array,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return `beta * x + alpha * (mat @ vec)`."""
@overload
def addmv(
    input: AnyTensor,
    mat: Array,
    vec: Array,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
    out: AnyTensor | None = None,
) -> Tensor: ...
def addr(input: Any, vec1: Any, vec2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """Return `beta * input + alpha * outer(vec1, vec2)`."""
@overload
def all(
    x: AnyTensor,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: AnyTensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return True for each position where every element over `axis` is nonzero."""
@overload
def all(
    input: AnyTensor,
    dim: Axis = None,
    *,
    keepdim: bool = False,
    out: AnyTensor | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def allclose(
    x1: Operand,
    x2: Operand,
    /,
    *,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Return True if all elements of two tensors are close."""
@overload
def allclose(
    input: Operand,
    other: Operand,
    *,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool: ...
def alpha_dropout(
    input: AnyTensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Apply dropout for `selu`: dropped values become its limit; mean and variance stay."""
@overload
def amax(
    x: AnyTensor, axis: Axis = None, *, keepdims: bool = False, out: AnyTensor | None = None
) -> Tensor:
    """Return the largest elements along axes: `dt.max`, and the name that PyTorch has for
    it."""
@overload
def amax(
    input: AnyTensor, dim: Axis = None, *, keepdim: bool = False, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def amin(
    x: AnyTensor, axis: Axis = None, *, keepdims: bool = False, out: AnyTensor | None = None
) -> Tensor:
    """Return the smallest elements along axes: `dt.min`, and the name that PyTorch has for
    it."""
@overload
def amin(
    input: AnyTensor, dim: Axis = None, *, keepdim: bool = False, out: AnyTensor | None = None
) -> Tensor: ...
def aminmax(
    input: Any, *, dim: int | None = None, keepdim: bool = False, axis: int | None = None
) -> Any:
    """Return the pair (min, max) of all elements, or along an axis; `axis` is `dim`."""
@overload
def angle(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the angle to the positive real axis in radians, in -pi..pi."""
@overload
def angle(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def any(
    x: AnyTensor,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: AnyTensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return True for each position where some element over `axis` is nonzero."""
@overload
def any(
    input: AnyTensor,
    dim: Axis = None,
    *,
    keepdim: bool = False,
    out: AnyTensor | None = None,
    where: Mask = None,
) -> Tensor: ...
def arange(
    start: Fill,
    /,
    stop: Fill | None = None,
    step: Fill = 1,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the numbers from `start` up to but excluding `stop`, `step` apart."""
@overload
def arccos(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse cosine in radians, in 0..pi; NaN outside of -1..1."""
@overload
def arccos(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def arccosh(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse hyperbolic cosine; NaN below 1."""
@overload
def arccosh(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def arcsin(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse sine in radians, in -pi/2..pi/2; NaN outside of -1..1."""
@overload
def arcsin(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def arcsinh(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse hyperbolic sine."""
@overload
def arcsinh(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def arctan(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse tangent in radians, in -pi/2..pi/2."""
@overload
def arctan(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def arctan2(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the angle in radians of the point (x2, x1), in -pi..pi."""
@overload
def arctan2(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def arctanh(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse hyperbolic tangent; infinite at -1 and 1, NaN outside."""
@overload
def arctanh(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def are_deterministic_algorithms_enabled() -> bool:
    """Return True if products use no vendor's routine here: all results have one order of
    sums."""
@overload
def argmax(
    x: AnyTensor, /, axis: int | None = None, *, keepdims: bool = False, out: AnyTensor | None = None
) -> Tensor:
    """Return the position of the largest element along `axis`, as int64."""
@overload
def argmax(
    input: AnyTensor, dim: int | None = None, *, keepdim: bool = False, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def argmin(
    x: AnyTensor, /, axis: int | None = None, *, keepdims: bool = False, out: AnyTensor | None = None
) -> Tensor:
    """Return the position of the smallest element along `axis`, as int64."""
@overload
def argmin(
    input: AnyTensor, dim: int | None = None, *, keepdim: bool = False, out: AnyTensor | None = None
) -> Tensor: ...
def argsort(
    input: Any,
    dim: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    axis: int | None = None,
) -> Any:
    """Return the indices that order the elements along an axis; equal ones keep their
    order."""
@overload
def argwhere(x: AnyTensor, /) -> Tensor:
    """Return the positions of the nonzero elements, one row each, in row-major order."""
@overload
def argwhere(input: AnyTensor) -> Tensor: ...
@overload
def as_strided(
    x: AnyTensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Return a view of the storage of `x` with any shape, strides and offset."""
@overload
def as_strided(
    input: AnyTensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor: ...
def as_tensor(
    obj: object, /, dtype: DTypeLike = None, *, device: DeviceLike = None, copy: bool | None = None
) -> Tensor:
    """Return a tensor of numbers, nested lists, an array or an object with DLPack or
    `__array__`."""
def asarray(
    obj: object, /, dtype: DTypeLike = None, *, device: DeviceLike = None, copy: bool | None = None
) -> Tensor:
    """Return a tensor of numbers, nested lists, an array or an object with DLPack or
    `__array__`."""
@overload
def asin(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse sine in radians, in -pi/2..pi/2; NaN outside of -1..1."""
@overload
def asin(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def asinh(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse hyperbolic sine."""
@overload
def asinh(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def atan(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse tangent in radians, in -pi/2..pi/2."""
@overload
def atan(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def atan2(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the angle in radians of the point (x2, x1), in -pi..pi."""
@overload
def atan2(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def atanh(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse hyperbolic tangent; infinite at -1 and 1, NaN outside."""
@overload
def atanh(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def atleast_1d(*arrays: Array) -> Tensor | tuple[Tensor, ...]:
    """Return views with at least one axis: one for one tensor, else a tuple."""
def atleast_2d(*arrays: Array) -> Tensor | tuple[Tensor, ...]:
    """Return views with at least two axes: one for one tensor, else a tuple."""
def atleast_3d(*arrays: Array) -> Tensor | tuple[Tensor, ...]:
    """Return views with at least three axes: one for one tensor, else a tuple."""
def avg_pool1d(
    input: AnyTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of signals."""
@overload
def baddbmm(
    x: AnyTensor,
    batch1: Array,
    batch2: Array,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return `beta * x + alpha * (batch1 @ batch2)` for batches of matrices."""
@overload
def baddbmm(
    input: AnyTensor,
    batch1: Array,
    batch2: Array,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
    out: AnyTensor | None = None,
) -> Tensor: ...
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor:
    """Return the triangle of `bartlett(n, sym=False)`, PyTorch's `bartlett_window`."""
def bernoulli(input: Any, p: float | None = None, *, generator: Any = None) -> Any:
    """Return zeros and ones in the dtype of `input`, whose elements are the probabilities of
    1."""
def bilinear(
    input1: AnyTensor, input2: AnyTensor, weight: AnyTensor, bias: AnyTensor | None = None
) -> Tensor:
    """Return `input1 @ weight[k] @ input2` for each k, plus the bias."""
@overload
def bincount(
    x: AnyTensor, /, weights: Array | None = None, minlength: int = 0, *, length: int | None = None
) -> Tensor:
    """Count the occurrences of each of 0, 1, 2, ... in a vector of integers."""
@overload
def bincount(
    input: AnyTensor, weights: Array | None = None, minlength: int = 0, *, length: int | None = None
) -> Tensor: ...
@overload
def bitwise_and(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the bits that are set in both operands."""
@overload
def bitwise_and(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def bitwise_left_shift(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 * 2**x2, wrapping."""
@overload
def bitwise_left_shift(
    input: Operand, other: Operand, *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def bitwise_not(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x with all bits flipped; for bool: not."""
@overload
def bitwise_not(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def bitwise_or(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the bits that are set in one or both operands."""
@overload
def bitwise_or(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def bitwise_right_shift(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 / 2**x2 rounded down."""
@overload
def bitwise_right_shift(
    input: Operand, other: Operand, *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def bitwise_xor(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the bits that are set in exactly one operand."""
@overload
def bitwise_xor(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor:
    """Return the Blackman window of `blackman(n, sym=False)`, PyTorch's `blackman_window`."""
def block_diag(*arrays: AnyTensor, out: AnyTensor | None = None) -> Tensor:
    """Return a matrix with the given blocks on its diagonal, one after the other, and 0
    elsewhere."""
@overload
def bmm(
    x1: Array, x2: Array, /, *, dtype: DTypeLike = None, out: AnyTensor | None = None
) -> Tensor:
    """Return the matrix product over the last two axes; the axes before them are
    broadcast."""
@overload
def bmm(
    input: Array, other: Array, *, dtype: DTypeLike = None, out: AnyTensor | None = None
) -> Tensor: ...
def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the common shape to which shapes are broadcast."""
def broadcast_tensors(*arrays: Array) -> tuple[Tensor, ...]:
    """Return views of tensors in their common shape, as a tuple."""
@overload
def broadcast_to(x: AnyTensor, /, shape: SizesManipulation, *sizes: SizesManipulation) -> Tensor:
    """Return a read-only view of `x` in which axes of size 1 repeat without using memory."""
@overload
def broadcast_to(
    input: AnyTensor, shape: SizesManipulation, *sizes: SizesManipulation
) -> Tensor: ...
@overload
def bucketize(
    x: Array,
    boundaries: Array,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return for each element the number of boundaries below it: `dt.searchsorted(boundaries,
    x)`."""
@overload
def bucketize(
    input: Array,
    boundaries: Array,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: AnyTensor | None = None,
) -> Tensor: ...
def can_cast(from_: AnyTensor | DTypeLike, to: DTypeLike, /) -> bool:
    """Return True if promotion can turn one dtype into another and loses no kind of
    number."""
def cartesian_prod(*tensors: Any) -> Any:
    """Return all combinations of elements of vectors, as rows."""
def cat(tensors: Sequence[Array], dim: int = 0, *, out: AnyTensor | None = None) -> Tensor:
    """Concatenate tensors along an existing axis: `dt.concat` under PyTorch's name."""
@overload
def cdist(x1: AnyTensor, x2: AnyTensor, p: float = 2.0) -> Tensor:
    """Return the distances between the rows of `x1` and of `x2`, in the p-norm."""
@overload
def cdist(input: AnyTensor, other: AnyTensor, p: float = 2.0) -> Tensor: ...
@overload
def ceil(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the least integer that is not less than x."""
@overload
def ceil(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def celu(input: AnyTensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the input where it is positive, else alpha * (exp(x / alpha) - 1)."""
def chain_matmul(arrays: Sequence[AnyTensor], /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the product of several matrices, in the order of the fewest multiplications."""
def channel_shuffle(input: AnyTensor, groups: int) -> Tensor:
    """Reorder channels: the first of each group, then the second of each group, and so on."""
@overload
def cholesky(x: AnyTensor, /, *, upper: bool = False, out: AnyTensor | None = None) -> Tensor:
    """Return the lower triangular L of Hermitian, positive definite matrices: `L @
    conj(L).mT`."""
@overload
def cholesky(input: AnyTensor, *, upper: bool = False, out: AnyTensor | None = None) -> Tensor: ...
def cholesky_solve(
    b: Array, factor: Array, /, *, upper: bool = False, out: AnyTensor | None = None
) -> Tensor:
    """Return the solutions x of `a @ x = b`, given the Cholesky factor of a, which comes
    second."""
@overload
def chunk(x: AnyTensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split `x` along an axis into at most `chunks` views of one size; the last may be
    smaller."""
@overload
def chunk(input: AnyTensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]: ...
@overload
def clamp(
    x: AnyTensor,
    /,
    min: Operand | None = None,
    max: Operand | None = None,
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return x limited to the range from `min` to `max`."""
@overload
def clamp(
    input: AnyTensor,
    min: Operand | None = None,
    max: Operand | None = None,
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
def clamp_max(input: Any, max: Any) -> Any:
    """Return the elements, lowered to an upper bound."""
def clamp_min(input: Any, min: Any) -> Any:
    """Return the elements, raised to a lower bound."""
@overload
def clip(
    x: AnyTensor,
    /,
    min: Operand | None = None,
    max: Operand | None = None,
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return x limited to the range from `min` to `max`."""
@overload
def clip(
    input: AnyTensor,
    min: Operand | None = None,
    max: Operand | None = None,
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def clone(x: AnyTensor, /) -> Tensor:
    """Return a new contiguous tensor of the same elements; gradients flow through it."""
@overload
def clone(input: AnyTensor) -> Tensor: ...
def column_stack(arrays: Sequence[Array], /, *, out: AnyTensor | None = None) -> Tensor:
    """Concatenate tensors as columns of a matrix; each vector is one column."""
def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """Return the combinations of `r` elements of a vector, as rows."""
def compile(model: Any = None, **options: Any) -> Any:
    """Return a function or module, captured by `dt.jit`."""
def concat(
    arrays: Sequence[Array],
    /,
    axis: int | None = 0,
    *,
    dim: int | None = None,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: AnyTensor | None = None,
) -> Tensor:
    """Concatenate tensors along an existing axis."""
def concatenate(
    arrays: Sequence[Array],
    /,
    axis: int | None = 0,
    *,
    dim: int | None = None,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: AnyTensor | None = None,
) -> Tensor:
    """Concatenate tensors along an existing axis."""
@overload
def conj(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the complex conjugate, a - bi; a real number stays."""
@overload
def conj(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def conj_physical(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the complex conjugate, a - bi; a real number stays."""
@overload
def conj_physical(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def conv1d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of signals with filters: sums of products at each position."""
def conv2d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of images with filters; see `conv1d`."""
def conv3d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of volumes with filters; see `conv1d`."""
def conv_transpose1d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the transpose of `conv1d` at `input`: each element is spread by a filter."""
def conv_transpose2d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the transpose of `conv2d` at `input`; see `conv_transpose1d`."""
def conv_transpose3d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the transpose of `conv3d` at `input`; see `conv_transpose1d`."""
@overload
def copysign(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return |x1| with the sign of x2."""
@overload
def copysign(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def corrcoef(
    x: AnyTensor, y: Array | None = None, /, *, rowvar: bool = True, out: AnyTensor | None = None
) -> Tensor:
    """Return the correlation coefficients of variables: `cov` divided by the standard
    deviations."""
@overload
def corrcoef(
    input: AnyTensor, y: Array | None = None, *, rowvar: bool = True, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def cos(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the cosine of an angle in radians; NaN for infinity."""
@overload
def cos(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def cosh(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the hyperbolic cosine."""
@overload
def cosh(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def cosine_similarity(x1: AnyTensor, x2: AnyTensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """Return the cosine of the angle between two tensors along an axis."""
@overload
def cosine_similarity(
    input: AnyTensor, other: AnyTensor, dim: int = 1, eps: float = 1e-08
) -> Tensor: ...
@overload
def count_nonzero(
    x: AnyTensor, /, axis: Axis = None, *, keepdims: bool = False, out: AnyTensor | None = None
) -> Tensor:
    """Count the nonzero elements over `axis`."""
@overload
def count_nonzero(
    input: AnyTensor, dim: Axis = None, *, keepdim: bool = False, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def cov(
    x: AnyTensor,
    y: Array | None = None,
    /,
    *,
    rowvar: bool = True,
    correction: float = 1.0,
    fweights: Array | None = None,
    aweights: Array | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the covariance matrix of variables; each row of `x` has a variable's
    observations."""
@overload
def cov(
    input: AnyTensor,
    y: Array | None = None,
    *,
    rowvar: bool = True,
    correction: float = 1.0,
    fweights: Array | None = None,
    aweights: Array | None = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def cross(x1: Array, x2: Array, /, *, axis: int = -1, out: AnyTensor | None = None) -> Tensor:
    """Return the cross products of vectors of three elements along an axis."""
@overload
def cross(
    input: Array, other: Array, *, dim: int = -1, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def cummax(x: AnyTensor, dim: int, *, out: tuple[AnyTensor, AnyTensor] | None = None) -> ValuesIndices:
    """Return the largest elements up to each one along `dim`: (values, indices)."""
@overload
def cummax(
    input: AnyTensor, dim: int, *, out: tuple[AnyTensor, AnyTensor] | None = None
) -> ValuesIndices: ...
@overload
def cummin(x: AnyTensor, dim: int, *, out: tuple[AnyTensor, AnyTensor] | None = None) -> ValuesIndices:
    """Return the smallest elements up to each one along `dim`: (values, indices)."""
@overload
def cummin(
    input: AnyTensor, dim: int, *, out: tuple[AnyTensor, AnyTensor] | None = None
) -> ValuesIndices: ...
@overload
def cumprod(
    x: AnyTensor,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the products of the elements up to each one, along `axis`."""
@overload
def cumprod(
    input: AnyTensor,
    dim: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def cumsum(
    x: AnyTensor,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the sums of the elements up to each one, along `axis`."""
@overload
def cumsum(
    input: AnyTensor,
    dim: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def deg2rad(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Convert degrees to radians."""
@overload
def deg2rad(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def det(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the determinants of square matrices."""
@overload
def det(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def detach(x: AnyTensor, /) -> Tensor:
    """Return a tensor over the same memory that gradients do not flow through."""
@overload
def diag(x: AnyTensor, /, k: int = 0, *, out: AnyTensor | None = None) -> Tensor:
    """Return the diagonal of a matrix as a view, or a matrix with a vector as its
    diagonal."""
@overload
def diag(input: AnyTensor, k: int = 0, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def diag_embed(x: AnyTensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices whose diagonals are the rows of `x`, and which are 0 elsewhere."""
@overload
def diag_embed(input: AnyTensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor: ...
@overload
def diagflat(x: AnyTensor, /, k: int = 0, *, out: AnyTensor | None = None) -> Tensor:
    """Return a matrix whose diagonal has the elements of `x` in row-major order."""
@overload
def diagflat(input: AnyTensor, k: int = 0, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def diagonal(x: AnyTensor, /, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of the diagonals of `x` over two axes, which become the last axis."""
@overload
def diagonal(input: AnyTensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor: ...
@overload
def diff(
    x: AnyTensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Operand | None = None,
    append: Operand | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the differences of neighbours along `axis`, taken `n` times."""
@overload
def diff(
    input: AnyTensor,
    *,
    dim: int = -1,
    n: int = 1,
    prepend: Operand | None = None,
    append: Operand | None = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def digamma(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the derivative of lgamma; NaN at negative integers."""
@overload
def digamma(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def dist(input: Any, other: Any, p: float = 2) -> Any:
    """Return the p-norm of the difference of two tensors."""
def div(input: Any, other: Any, *, rounding_mode: str | None = None, **options: Any) -> Any:
    """Return the quotients, rounded if asked."""
@overload
def divide(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the quotient x1 / x2, always a float."""
@overload
def divide(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def dot(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return NumPy's dot product: the inner product of vectors, the matrix product of
    matrices."""
@overload
def dot(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
def dropout(
    input: AnyTensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set each value to 0 with probability `p`, and divide the others by 1 - p."""
@overload
def dsplit(x: AnyTensor, indices_or_sections: SplitPoints, /) -> tuple[Tensor, ...]:
    """Split `x` into views of equal parts along its third axis."""
@overload
def dsplit(input: AnyTensor, indices_or_sections: SplitPoints) -> tuple[Tensor, ...]: ...
def dstack(arrays: Sequence[Array], /, *, out: AnyTensor | None = None) -> Tensor:
    """Concatenate tensors along the third axis; see `atleast_3d`."""
def einsum(equation: Any, *operands: Any) -> Any:
    """Return a sum of products by Einstein's notation; operands may be one list."""
@overload
def empty(
    shape: ShapeLike,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    allocator: Allocator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return a new tensor of this shape, with arbitrary contents."""
@overload
def empty(
    shape: ShapeLike,
    dtype: DTypeLike,
    /,
    *,
    device: DeviceLike = None,
    allocator: Allocator | None = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def empty(
    shape: int,
    /,
    *more: int,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    allocator: Allocator | None = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def empty_like(
    x: AnyTensor,
    /,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    allocator: Allocator | None = None,
) -> Tensor:
    """Return a new tensor of x's shape, dtype and device, with arbitrary contents."""
@overload
def empty_like(
    input: AnyTensor,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    allocator: Allocator | None = None,
) -> Tensor: ...
@overload
def empty_like(
    x: AnyTensor, dtype: DTypeLike, /, *, device: DeviceLike = None, allocator: Allocator | None = None
) -> Tensor: ...
@overload
def eq(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 == x2."""
@overload
def eq(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
def equal(input: Any, other: Any) -> bool:
    """Return True if both tensors have one shape and equal elements."""
@overload
def erf(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the error function."""
@overload
def erf(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def erfc(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return 1 - erf(x), accurate where it is small."""
@overload
def erfc(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def erfinv(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse of the error function; infinite at -1 and 1, NaN outside."""
@overload
def erfinv(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def exp(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return e to the power x."""
@overload
def exp(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def exp2(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return 2 to the power x."""
@overload
def exp2(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def expm1(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return exp(x) - 1, accurate near 0."""
@overload
def expm1(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return a matrix with ones on one diagonal and zeros elsewhere."""
def feature_alpha_dropout(
    input: AnyTensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Apply `alpha_dropout` to whole channels."""
def finfo(type: AnyTensor | DTypeLike, /) -> Finfo:
    """Return the limits of a floating-point dtype: bits, eps, max, min, smallest_normal,
    dtype."""
@overload
def fix(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the integer part of x, without its fraction."""
@overload
def fix(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def flatten(x: AnyTensor, /, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge neighbouring axes of `x` into one: a view if strides permit, else a copy."""
@overload
def flatten(input: AnyTensor, start_dim: int = 0, end_dim: int = -1) -> Tensor: ...
def flip(input: Any, *args: int, dims: Any = (), axis: Any = None) -> Any:
    """Return the elements in reverse order along axes."""
@overload
def fliplr(x: AnyTensor, /) -> Tensor:
    """Return a view of `x` with its second axis reversed."""
@overload
def fliplr(input: AnyTensor) -> Tensor: ...
@overload
def flipud(x: AnyTensor, /) -> Tensor:
    """Return a view of `x` with its first axis reversed."""
@overload
def flipud(input: AnyTensor) -> Tensor: ...
@overload
def float_power(x1: AnyTensor, x2: Operand) -> Tensor:
    """Return x1 to the power x2, computed in float64."""
@overload
def float_power(input: AnyTensor, other: Operand) -> Tensor: ...
@overload
def floor(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the largest integer that is not more than x."""
@overload
def floor(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def floor_divide(input: Any, other: Any, *, out: Any = None) -> Any:
    """Return the quotients rounded down; `inf // 1` is NaN, as in PyTorch."""
@overload
def fmax(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the larger of x1 and x2, element by element, and the other one for a NaN."""
@overload
def fmax(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def fmin(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the smaller of x1 and x2, element by element, and the other one for a NaN."""
@overload
def fmin(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def fmod(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the remainder of x1 / x2 with the sign of x1, as C's `fmod`."""
@overload
def fmod(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
def frac(input: Any) -> Any:
    """Return the part of each element behind the point, with its sign."""
@overload
def frexp(x: AnyTensor, /, *, out: Sequence[AnyTensor] | None = None) -> tuple[Tensor, Tensor]:
    """Return mantissas m and exponents e with x = m * 2**e and 1/2 <= |m| < 1: (m, e)."""
@overload
def frexp(
    input: AnyTensor, *, out: Sequence[AnyTensor] | None = None
) -> tuple[Tensor, Tensor]: ...
@overload
def from_dlpack(
    x: HasDLPack, /, *, device: DeviceLike = None, copy: bool | None = None
) -> Tensor:
    """Return a tensor over the memory of `x`, which has `__dlpack__`: NumPy's, PyTorch's,
    JAX's."""
@overload
def from_dlpack(
    input: HasDLPack, *, device: DeviceLike = None, copy: bool | None = None
) -> Tensor: ...
def from_numpy(
    obj: object, /, dtype: DTypeLike = None, *, device: DeviceLike = None, copy: bool | None = None
) -> Tensor:
    """Return a tensor of numbers, nested lists, an array or an object with DLPack or
    `__array__`."""
@overload
def full(
    shape: ShapeLike,
    fill_value: Fill,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return a new tensor of this shape, filled with one number."""
@overload
def full(
    shape: ShapeLike,
    fill_value: Fill,
    dtype: DTypeLike,
    /,
    *,
    device: DeviceLike = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def full_like(
    x: AnyTensor, /, fill_value: Fill, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor:
    """Return a new tensor of x's shape, dtype and device, filled with one number."""
@overload
def full_like(
    input: AnyTensor, fill_value: Fill, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor: ...
@overload
def full_like(
    x: AnyTensor, fill_value: Fill, dtype: DTypeLike, /, *, device: DeviceLike = None
) -> Tensor: ...
@overload
def gather(x: AnyTensor, dim: int, index: Array) -> Tensor:
    """Return the elements of `x` at `index` along axis `dim`; other axes may be shorter than
    x's."""
@overload
def gather(input: AnyTensor, dim: int, index: Array) -> Tensor: ...
@overload
def gcd(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the greatest common divisor; negative only for MIN, and 0 for 0 and 0."""
@overload
def gcd(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def ge(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 >= x2."""
@overload
def ge(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def ger(x1: Array, x2: Array, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the products of every element of one vector with every element of the other."""
@overload
def ger(input: Array, other: Array, *, out: AnyTensor | None = None) -> Tensor: ...
def get_autocast_dtype(device_type: str | None = None) -> DType:
    """Return the dtype in which products compute under the autocast that is on here."""
def get_default_device() -> Device:
    """Return the device of tensors that are made without `device=`, chosen at the first
    use."""
def get_default_dtype() -> DType:
    """Return the dtype of tensors from Python floats and of `zeros`, `ones`, ...; first
    float32."""
def get_float32_matmul_precision() -> str:
    """Return "highest"."""
def get_num_threads(spec: Device | str | None = None) -> int:
    """Return how many threads share a large launch on `spec`, the default device, or else
    "cpu"."""
def get_rng_state() -> tuple[int, int]:
    """Return the state of the default generator: (seed, offset), the offset in elements."""
@overload
def gradient(
    x: AnyTensor, /, *spacing: Operand, axis: Axis = None, edge_order: int = 1
) -> Tensor | tuple[Tensor, ...]:
    """Return slopes of samples along each axis: central differences, one-sided at the
    ends."""
@overload
def gradient(
    input: AnyTensor, *spacing: Operand, dim: Axis = None, edge_order: int = 1
) -> Tensor | tuple[Tensor, ...]: ...
@overload
def greater(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 > x2."""
@overload
def greater(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def greater_equal(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 >= x2."""
@overload
def greater_equal(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
def group_norm(
    input: AnyTensor,
    num_groups: int,
    weight: AnyTensor | None = None,
    bias: AnyTensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Normalise each group of channels of each example to mean 0 and variance 1."""
@overload
def gt(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 > x2."""
@overload
def gt(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the window alpha + beta times a cosine, PyTorch's `hamming_window`."""
def hann_window(
    window_length: int, periodic: bool = True, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor:
    """Return the Hann window of `hann(n, sym=False)`, PyTorch's `hann_window`."""
def hardshrink(input: AnyTensor, lambd: float = 0.5) -> Tensor:
    """Return the input where its magnitude is greater than `lambd`, else 0."""
@overload
def heaviside(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return 0 where x1 is negative, 1 where it is positive, and x2 where it is 0."""
@overload
def heaviside(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def histc(
    x: AnyTensor, bins: int = 100, min: float = 0, max: float = 0, *, out: AnyTensor | None = None
) -> Tensor:
    """Count the elements in each of `bins` bins of equal width from `min` to `max`."""
@overload
def histc(
    input: AnyTensor, bins: int = 100, min: float = 0, max: float = 0, *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def hsplit(x: AnyTensor, indices_or_sections: SplitPoints, /) -> tuple[Tensor, ...]:
    """Split `x` into views of equal parts along its second axis; a vector along its only
    one."""
@overload
def hsplit(input: AnyTensor, indices_or_sections: SplitPoints) -> tuple[Tensor, ...]: ...
def hstack(
    arrays: Sequence[Array],
    /,
    *,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: AnyTensor | None = None,
) -> Tensor:
    """Concatenate tensors along the second axis; vectors along their only one."""
@overload
def hypot(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the length sqrt(x1**2 + x2**2), without overflow."""
@overload
def hypot(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def i0(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind and order 0."""
@overload
def i0(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def iinfo(type: AnyTensor | DTypeLike, /) -> Iinfo:
    """Return the limits of an integer dtype: bits, max, min, dtype."""
@overload
def imag(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the imaginary part as a new tensor; 0 for a real number."""
@overload
def imag(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def index_add(
    x: AnyTensor, dim: int, index: Operand, source: Operand, *, out: AnyTensor | None = None
) -> Tensor:
    """Return a copy of `x` with slices of `source` added at `index` along `dim`."""
@overload
def index_add(
    input: AnyTensor, dim: int, index: Operand, source: Operand, *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def index_copy(
    x: AnyTensor, dim: int, index: Operand, source: Operand, *, out: AnyTensor | None = None
) -> Tensor:
    """Return a copy of `x` with slices of `source` written at `index` along `dim`."""
@overload
def index_copy(
    input: AnyTensor, dim: int, index: Operand, source: Operand, *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def index_fill(
    x: AnyTensor, dim: int, index: Operand, value: Operand, *, out: AnyTensor | None = None
) -> Tensor:
    """Return a copy of `x` with one value written to the slices at `index` along `dim`."""
@overload
def index_fill(
    input: AnyTensor, dim: int, index: Operand, value: Operand, *, out: AnyTensor | None = None
) -> Tensor: ...
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Return a copy with `values` at indices."""
@overload
def index_reduce(
    x: AnyTensor,
    dim: int,
    index: Operand,
    source: Operand,
    reduce: str,
    *,
    include_self: bool = True,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return a copy of `x` with slices of `source` reduced into it at `index` along `dim`."""
@overload
def index_reduce(
    input: AnyTensor,
    dim: int,
    index: Operand,
    source: Operand,
    reduce: str,
    *,
    include_self: bool = True,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def index_select(x: AnyTensor, dim: int, index: Array) -> Tensor:
    """Return the rows of `x` at `index` along axis `dim`: `dt.take(x, index, axis=dim)`."""
@overload
def index_select(input: AnyTensor, dim: int, index: Array) -> Tensor: ...
def initial_seed() -> int:
    """Return the seed of the default generator."""
@overload
def inner(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the sums of products over the last axes of two tensors, for every pair of the
    others."""
@overload
def inner(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def inverse(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverses of square matrices."""
@overload
def inverse(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return True if autocast is on in this thread, for a device type or by default for
    any."""
@overload
def is_complex(x: AnyTensor, /) -> bool:
    """Return True if the elements are complex: `x.dtype.kind == "c"`."""
@overload
def is_complex(input: AnyTensor) -> bool: ...
@overload
def is_floating_point(x: AnyTensor, /) -> bool:
    """Return True if the elements are real floats: `x.dtype.is_float`."""
@overload
def is_floating_point(input: AnyTensor) -> bool: ...
def is_grad_enabled() -> bool:
    """Return True if ops are being recorded for gradients in this context."""
def is_inference_mode_enabled() -> bool:
    """Return True if this context is in `inference_mode`."""
def is_nonzero(input: Any) -> bool:
    """Return True if the only element is not 0."""
def is_tensor(obj: object) -> bool:
    """Return True for a tensor of dovetail, also of class `dt.Tensor`."""
@overload
def isclose(
    x1: Operand,
    x2: Operand,
    /,
    *,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return True where two tensors are equal up to rounding: |x1 - x2| <= atol + rtol *
    |x2|."""
@overload
def isclose(
    input: Operand,
    other: Operand,
    *,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def isfinite(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return True where x is neither infinite nor NaN."""
@overload
def isfinite(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def isin(
    x1: AnyTensor | int | float,
    x2: AnyTensor | int | float,
    /,
    *,
    invert: bool = False,
    assume_unique: bool = False,
    kind: str | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return True for each element of `x1` that is an element of `x2`."""
@overload
def isin(
    input: AnyTensor | int | float,
    other: AnyTensor | int | float,
    *,
    invert: bool = False,
    assume_unique: bool = False,
    kind: str | None = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def isinf(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return True where x is inf or -inf."""
@overload
def isinf(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def isnan(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return True where x is NaN."""
@overload
def isnan(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def isneginf(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return True where an element is negative infinity."""
@overload
def isneginf(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def isposinf(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return True where an element is positive infinity."""
@overload
def isposinf(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def isreal(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return True where an element is real or has an imaginary part of 0."""
@overload
def isreal(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def istft(
    x: AnyTensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: AnyTensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signal of given spectra, by least squares: the inverse of `stft`."""
@overload
def istft(
    input: AnyTensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: AnyTensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor: ...
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the Kaiser window of `kaiser(n, beta, sym=False)`, PyTorch's `kaiser_window`."""
@overload
def kron(x1: Array, x2: Array, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the Kronecker product: a block for each element of `x1`, the element times
    `x2`."""
@overload
def kron(input: Array, other: Array, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def kthvalue(
    x: AnyTensor,
    k: int,
    dim: int = -1,
    keepdim: bool = False,
    *,
    out: tuple[AnyTensor, AnyTensor] | None = None,
) -> ValuesIndices:
    """Return the k-th smallest elements along `dim`: (values, indices)."""
@overload
def kthvalue(
    input: AnyTensor,
    k: int,
    dim: int = -1,
    keepdim: bool = False,
    *,
    out: tuple[AnyTensor, AnyTensor] | None = None,
) -> ValuesIndices: ...
def layer_norm(
    input: AnyTensor,
    normalized_shape: int | Sequence[int],
    weight: AnyTensor | None = None,
    bias: AnyTensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Normalise over the last axes to mean 0 and variance 1, times `weight`, plus `bias`."""
@overload
def lcm(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the least common multiple, which wraps; 0 where an operand is 0."""
@overload
def lcm(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def ldexp(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 * 2**x2, with one rounding; x2 is truncated to an integer."""
@overload
def ldexp(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def le(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 <= x2."""
@overload
def le(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def lerp(x: AnyTensor, end: Array, weight: Operand, *, out: AnyTensor | None = None) -> Tensor:
    """Interpolate linearly: return `x + weight * (end - x)`."""
@overload
def lerp(
    input: AnyTensor, end: Array, weight: Operand, *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def less(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 < x2."""
@overload
def less(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def less_equal(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 <= x2."""
@overload
def less_equal(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def lgamma(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the logarithm of |gamma(x)|; infinite at 0 and negative integers."""
@overload
def lgamma(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def linspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    endpoint: bool = True,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return `num` evenly spaced numbers from `start` to `stop`; both ends are exact."""
def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
    **options: Any,
) -> Any:
    """Return the state that `torch.save` wrote."""
@overload
def log(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the natural logarithm; -inf at 0, NaN below."""
@overload
def log(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def log10(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the logarithm to base 10; -inf at 0, NaN below."""
@overload
def log10(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def log1p(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return log(1 + x), accurate near 0; -inf at -1, NaN below."""
@overload
def log1p(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def log2(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the logarithm to base 2; -inf at 0, NaN below."""
@overload
def log2(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def log_softmax(x: AnyTensor, /, axis: int = -1, *, out: AnyTensor | None = None) -> Tensor:
    """Return the logarithm of softmax along `axis`, accurate where softmax underflows."""
@overload
def log_softmax(input: AnyTensor, dim: int = -1, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def logaddexp(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return log(exp(x1) + exp(x2)), without overflow."""
@overload
def logaddexp(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def logaddexp2(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return log2(2**x1 + 2**x2), without overflow."""
@overload
def logaddexp2(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def logcumsumexp(
    x: AnyTensor,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the logarithms of the sums of exponentials up to each element, along `axis`."""
@overload
def logcumsumexp(
    input: AnyTensor,
    dim: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def logdet(x: AnyTensor) -> Tensor:
    """Return the logarithm of the determinant of matrices; NaN if it is negative, -inf if it
    is 0."""
@overload
def logdet(input: AnyTensor) -> Tensor: ...
@overload
def logical_and(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return True where both operands are true."""
@overload
def logical_and(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def logical_not(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return True where x is zero or False."""
@overload
def logical_not(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def logical_or(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return True where one or both operands are true."""
@overload
def logical_or(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def logical_xor(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return True where exactly one operand is true."""
@overload
def logical_xor(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def logit(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse of sigmoid, log(x / (1 - x)); infinite at 0 and 1, NaN outside."""
@overload
def logit(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def logspace(
    start: float,
    stop: float,
    /,
    num: int = 50,
    *,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return `num` powers of `base` with evenly spaced exponents from `start` to `stop`."""
@overload
def logsumexp(
    x: AnyTensor, /, axis: Axis = None, *, keepdims: bool = False, out: AnyTensor | None = None
) -> Tensor:
    """Return the logarithm of the sum of exp(x) over `axis`, without overflow, in one
    kernel."""
@overload
def logsumexp(
    input: AnyTensor, dim: Axis = None, *, keepdim: bool = False, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def lt(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 < x2."""
@overload
def lt(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def lu_solve(
    lu: LUResult | tuple[AnyTensor, AnyTensor, AnyTensor], x2: Array, /, *, out: AnyTensor | None = None
) -> Tensor:
    """Return the solutions x of `a @ x = x2`, given the LU factors of a."""
@overload
def lu_solve(
    lu: LUResult | tuple[AnyTensor, AnyTensor, AnyTensor], other: Array, *, out: AnyTensor | None = None
) -> Tensor: ...
def manual_seed(seed: int) -> Any:
    """Restart the default generator at a seed, and return it."""
@overload
def masked_fill(x: AnyTensor, mask: Array, value: Operand) -> Tensor:
    """Return `dt.where(mask, value, x)` in the dtype of `x`."""
@overload
def masked_fill(input: AnyTensor, mask: Array, value: Operand) -> Tensor: ...
@overload
def masked_scatter(
    x: AnyTensor, mask: Array, source: Array, *, out: AnyTensor | None = None
) -> Tensor:
    """Return a copy of `x` with the first elements of `source` where `mask` is true, in
    order."""
@overload
def masked_scatter(
    input: AnyTensor, mask: Array, source: Array, *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def masked_select(x: AnyTensor, mask: Array) -> Tensor:
    """Return a vector of the elements of `x` where `mask` is True, after both are
    broadcast."""
@overload
def masked_select(input: AnyTensor, mask: Array) -> Tensor: ...
@overload
def matmul(
    x1: Array, x2: Array, /, *, dtype: DTypeLike = None, out: AnyTensor | None = None
) -> Tensor:
    """Return the matrix product over the last two axes; the axes before them are
    broadcast."""
@overload
def matmul(
    input: Array, other: Array, *, dtype: DTypeLike = None, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def matrix_exp(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the exponentials of square matrices, by scaling and squaring."""
@overload
def matrix_exp(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def matrix_power(x: AnyTensor, n: int, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return square matrices to the power n; their inverses to -n if n is negative."""
@overload
def matrix_power(input: AnyTensor, n: int, *, out: AnyTensor | None = None) -> Tensor: ...
def max(input: Any, *args: Any, **options: Any) -> Any:
    """Return the largest element; with `dim` the pair (values, indices) along it."""
def max_pool1d(
    input: AnyTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaxPoolResultPooling:
    """Return the largest element of each window of signals."""
def max_pool2d(
    input: AnyTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaxPoolResultPooling:
    """Return the largest element of each window of images; see `max_pool1d`."""
def max_pool3d(
    input: AnyTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaxPoolResultPooling:
    """Return the largest element of each window of volumes; see `max_pool1d`."""
@overload
def maximum(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the larger of two elements; NaN if one is NaN."""
@overload
def maximum(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def mean(
    x: AnyTensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: AnyTensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the arithmetic mean of the elements over `axis`."""
@overload
def mean(
    input: AnyTensor,
    dim: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdim: bool = False,
    out: AnyTensor | None = None,
    where: Mask = None,
) -> Tensor: ...
def median(input: Any, *args: Any, **options: Any) -> Any:
    """Return the lower median; with `dim` the pair (values, indices). A NaN makes it NaN."""
def meshgrid(*tensors: Any, indexing: str = "ij") -> Any:
    """Return the coordinates of a grid; the first vector runs along the first axis."""
def min(input: Any, *args: Any, **options: Any) -> Any:
    """Return the smallest element; with `dim` the pair (values, indices) along it."""
@overload
def minimum(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the smaller of two elements; NaN if one is NaN."""
@overload
def minimum(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def mm(
    x1: Array, x2: Array, /, *, dtype: DTypeLike = None, out: AnyTensor | None = None
) -> Tensor:
    """Return the matrix product over the last two axes; the axes before them are
    broadcast."""
@overload
def mm(
    input: Array, other: Array, *, dtype: DTypeLike = None, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def mode(
    x: AnyTensor, dim: int = -1, keepdim: bool = False, *, out: tuple[AnyTensor, AnyTensor] | None = None
) -> ValuesIndices:
    """Return the most common elements along `dim`: (values, indices)."""
@overload
def mode(
    input: AnyTensor, dim: int = -1, keepdim: bool = False, *, out: tuple[AnyTensor, AnyTensor] | None = None
) -> ValuesIndices: ...
@overload
def moveaxis(x: AnyTensor, /, source: Axes, destination: Axes) -> Tensor:
    """Return a view of `x` with some axes moved to other positions."""
@overload
def moveaxis(input: AnyTensor, source: Axes, destination: Axes) -> Tensor: ...
@overload
def movedim(x: AnyTensor, /, source: Axes, destination: Axes) -> Tensor:
    """Return a view of `x` with some axes moved to other positions."""
@overload
def movedim(input: AnyTensor, source: Axes, destination: Axes) -> Tensor: ...
def msort(input: Any) -> Any:
    """Return the elements, ordered along the first axis."""
@overload
def mul(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the product x1 * x2; for bool: and."""
@overload
def mul(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def multinomial(
    x: AnyTensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw indices of categories with the weights `x`, as PyTorch's function of this name."""
@overload
def multinomial(
    input: AnyTensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def multiply(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the product x1 * x2; for bool: and."""
@overload
def multiply(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def mv(
    x1: Array, x2: Array, /, *, dtype: DTypeLike = None, out: AnyTensor | None = None
) -> Tensor:
    """Return the matrix product over the last two axes; the axes before them are
    broadcast."""
@overload
def mv(
    input: Array, other: Array, *, dtype: DTypeLike = None, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def nan_to_num(
    x: AnyTensor,
    /,
    nan: float = 0.0,
    *,
    posinf: float | None = None,
    neginf: float | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return `x` with numbers in place of NaN and infinities."""
@overload
def nan_to_num(
    input: AnyTensor,
    nan: float = 0.0,
    *,
    posinf: float | None = None,
    neginf: float | None = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def nanmean(
    x: AnyTensor,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: AnyTensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the mean over `axis` of the elements that are not NaN; NaN if there are none."""
@overload
def nanmean(
    input: AnyTensor,
    dim: Axis = None,
    *,
    keepdim: bool = False,
    out: AnyTensor | None = None,
    where: Mask = None,
) -> Tensor: ...
def nanmedian(input: Any, *args: Any, **options: Any) -> Any:
    """Return the lower median without NaNs; with `dim` the pair (values, indices)."""
@overload
def nanquantile(
    x: AnyTensor,
    q: Operand,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdims: bool = False,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the quantiles over `axis` of the elements that are not NaN; NaN if all are."""
@overload
def nanquantile(
    input: AnyTensor,
    q: Operand,
    dim: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdim: bool = False,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def nansum(
    x: AnyTensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: AnyTensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the sum over `axis` of the elements that are not NaN; 0 if there are none."""
@overload
def nansum(
    input: AnyTensor,
    dim: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdim: bool = False,
    out: AnyTensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def narrow(x: AnyTensor, dim: int, start: int, length: int) -> Tensor:
    """Return a view of `length` places of axis `dim` from `start` on."""
@overload
def narrow(input: AnyTensor, dim: int, start: int, length: int) -> Tensor: ...
@overload
def ne(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 != x2."""
@overload
def ne(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def neg(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return -x."""
@overload
def neg(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def negative(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return -x."""
@overload
def negative(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def nextafter(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the next number of their dtype after x1 in the direction of x2."""
@overload
def nextafter(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """Return the indices of nonzero elements: rows of a matrix, or a tuple of one vector an
    axis."""
@overload
def norm(
    x: AnyTensor,
    /,
    *,
    axis: AxisNorms = None,
    keepdims: bool = False,
    ord: int | float = 2,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the norms of vectors along one axis, or of all elements along several."""
@overload
def norm(
    input: AnyTensor,
    *,
    dim: AxisNorms = None,
    keepdim: bool = False,
    ord: int | float = 2,
    out: AnyTensor | None = None,
) -> Tensor: ...
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Return normal numbers: of tensors of means and deviations, or of a size."""
@overload
def not_equal(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 != x2."""
@overload
def not_equal(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
def numel(input: Any) -> int:
    """Return the number of elements."""
@overload
def ones(
    shape: ShapeLike,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return a new tensor of this shape, filled with 1."""
@overload
def ones(
    shape: ShapeLike, dtype: DTypeLike, /, *, device: DeviceLike = None, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def ones(
    shape: int,
    /,
    *more: int,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def ones_like(x: AnyTensor, /, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Return a new tensor of x's shape, dtype and device, filled with 1."""
@overload
def ones_like(
    input: AnyTensor, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor: ...
@overload
def ones_like(x: AnyTensor, dtype: DTypeLike, /, *, device: DeviceLike = None) -> Tensor: ...
@overload
def outer(x1: Array, x2: Array, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the products of every element of one vector with every element of the other."""
@overload
def outer(input: Array, other: Array, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def pairwise_distance(
    x1: AnyTensor, x2: AnyTensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False
) -> Tensor:
    """Return the p-norm of `x1 - x2 + eps` along the last axis."""
@overload
def pairwise_distance(
    input: AnyTensor, other: AnyTensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False
) -> Tensor: ...
@overload
def permute(x: AnyTensor, /, axes: SizesManipulation, *order: SizesManipulation) -> Tensor:
    """Return a view of `x` with its axes in another order."""
@overload
def permute(input: AnyTensor, dims: SizesManipulation, *order: SizesManipulation) -> Tensor: ...
@overload
def pinverse(x: AnyTensor, /, *, rtol: Threshold = None, out: AnyTensor | None = None) -> Tensor:
    """Return the Moore-Penrose pseudo-inverses of matrices."""
@overload
def pinverse(
    input: AnyTensor, *, rtol: Threshold = None, out: AnyTensor | None = None
) -> Tensor: ...
def pixel_shuffle(input: AnyTensor, upscale_factor: int) -> Tensor:
    """Return images larger by a factor r, with each r * r channels moved to a square."""
def pixel_unshuffle(input: AnyTensor, downscale_factor: int) -> Tensor:
    """Return images smaller by a factor and with more channels: invert `pixel_shuffle`."""
def poisson(
    lam: Parameter = 1.0,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw integers from the Poisson distribution with mean `lam`."""
def polar(abs: Any, angle: Any) -> Any:
    """Return complex numbers of absolute values and angles in radians."""
def polygamma(n: int, x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the n-th derivative of `digamma`, n at most 30; for n > 0 it is NaN below 0."""
@overload
def positive(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x as a new tensor."""
@overload
def positive(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def pow(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 to the power x2."""
@overload
def pow(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
def prelu(input: AnyTensor, weight: AnyTensor) -> Tensor:
    """Return the input where it is positive, else `weight` times it."""
@overload
def prod(
    x: AnyTensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: AnyTensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the product of the elements over `axis`."""
@overload
def prod(
    input: AnyTensor,
    dim: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdim: bool = False,
    out: AnyTensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor: ...
def promote_types(*operands: AnyTensor | DTypeLike | Scalar) -> DType:
    """Return the dtype to which tensors, dtypes and Python numbers promote."""
@overload
def qr(x: AnyTensor, /, *, mode: Mode = "reduced", out: Sequence[AnyTensor] | None = None) -> QRResult:
    """Return orthonormal Q and upper triangular R whose products `Q @ R` are x."""
@overload
def qr(
    input: AnyTensor, *, mode: Mode = "reduced", out: Sequence[AnyTensor] | None = None
) -> QRResult: ...
@overload
def quantile(
    x: AnyTensor,
    q: Operand,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdims: bool = False,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the quantiles over `axis`: the values below which a part `q` of the elements
    lies."""
@overload
def quantile(
    input: AnyTensor,
    q: Operand,
    dim: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdim: bool = False,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def rad2deg(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Convert radians to degrees."""
@overload
def rad2deg(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def rand(
    *shape: int,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw floats from the uniform distribution over 0 <= x < 1, as NumPy's and PyTorch's
    `rand`."""
@overload
def rand_like(
    x: AnyTensor,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw floats from the uniform distribution over 0 <= u < 1, in the shape of `x`."""
@overload
def rand_like(
    input: AnyTensor,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor: ...
def randint(low: int, *bounds: Any, **options: Any) -> Any:
    """Return random integers: `randint(high, size)` or `randint(low, high, size)`."""
def randint_like(input: Any, *bounds: int, dtype: Any = None, device: Any = None) -> Any:
    """Return random integers below `high`, or from `low` on, in the shape of `input`."""
def randn(
    *shape: int,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw floats from the standard normal distribution; a short name for `normal`."""
@overload
def randn_like(
    x: AnyTensor,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw floats from the standard normal distribution, in the shape of `x`."""
@overload
def randn_like(
    input: AnyTensor,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor: ...
@overload
def randperm(
    x: int | AnyTensor,
    *,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the integers 0..x-1, or the slices of a tensor `x`, in random order."""
@overload
def randperm(
    input: int | AnyTensor,
    *,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
def range(start: float, end: float | None = None, step: float = 1, **options: Any) -> Any:
    """Return numbers from `start` to `end`, which is included: `torch.range`."""
@overload
def ravel(x: AnyTensor, /) -> Tensor:
    """Return all elements in row-major order along one axis: a view if strides permit, else a
    copy."""
@overload
def ravel(input: AnyTensor) -> Tensor: ...
@overload
def real(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the real part as a new tensor; a real number stays."""
@overload
def real(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def reciprocal(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return 1 / x."""
@overload
def reciprocal(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def relu(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return max(x, 0); NaN stays."""
@overload
def relu(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def remainder(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the remainder of x1 / x2, with the sign of x2."""
@overload
def remainder(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def renorm(
    x: AnyTensor, p: float, dim: int, maxnorm: float, *, out: AnyTensor | None = None
) -> Tensor:
    """Return `x` with each slice along `dim` whose p-norm exceeds `maxnorm` scaled to that
    norm."""
@overload
def renorm(
    input: AnyTensor, p: float, dim: int, maxnorm: float, *, out: AnyTensor | None = None
) -> Tensor: ...
def repeat(input: Any, *sizes: Any, **options: Any) -> Any:
    """Return the tensor, repeated as a whole along each axis."""
@overload
def repeat_interleave(
    x: AnyTensor, repeats: int | Sequence[int] | AnyTensor, dim: int | None = None
) -> Tensor:
    """Repeat each element of `x` along axis `dim`: `dt.repeat(x, repeats, axis=dim)`."""
@overload
def repeat_interleave(
    input: AnyTensor, repeats: int | Sequence[int] | AnyTensor, dim: int | None = None
) -> Tensor: ...
@overload
def reshape(
    x: AnyTensor, /, shape: SizesManipulation, *sizes: SizesManipulation, copy: bool | None = None
) -> Tensor:
    """Return the elements, in row-major order, in another shape; one size may be -1."""
@overload
def reshape(
    input: AnyTensor, shape: SizesManipulation, *sizes: SizesManipulation, copy: bool | None = None
) -> Tensor: ...
def result_type(*operands: AnyTensor | DTypeLike | Scalar) -> DType:
    """Return the dtype to which tensors, dtypes and Python numbers promote."""
def rms_norm(
    input: AnyTensor,
    normalized_shape: int | Sequence[int],
    weight: AnyTensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide the input by the root of its mean square over its last axes, times `weight`."""
@overload
def roll(
    x: AnyTensor, /, shift: Axes, axis: Axes | None = None, *, out: AnyTensor | None = None
) -> Tensor:
    """Return a new tensor with elements shifted cyclically along some axes."""
@overload
def roll(
    input: AnyTensor, shift: Axes, dim: Axes | None = None, *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def rot90(x: AnyTensor, /, k: int = 1, axes: Sequence[int] = ...) -> Tensor:
    """Return a view of `x` rotated by `k` quarter turns from the first axis to the second."""
@overload
def rot90(input: AnyTensor, k: int = 1, dims: Sequence[int] = ...) -> Tensor: ...
@overload
def round(x: AnyTensor, /, decimals: int = 0, *, out: AnyTensor | None = None) -> Tensor:
    """Return the nearest integer, or multiple of 10**-decimals; halves go to the even one."""
@overload
def round(input: AnyTensor, decimals: int = 0, *, out: AnyTensor | None = None) -> Tensor: ...
def row_stack(
    arrays: Sequence[Array],
    /,
    *,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: AnyTensor | None = None,
) -> Tensor:
    """Concatenate tensors along the first axis; vectors are rows."""
def rrelu(
    input: AnyTensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return `leaky_relu` with a random slope per element in training, else with the mean
    slope."""
@overload
def rsqrt(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return 1 / sqrt(x)."""
@overload
def rsqrt(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def rsub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Return `other - alpha * input`."""
def save(obj: Any, f: Any, *settings: Any, **options: Any) -> None:
    """Write a state to a file: tensors, numbers, strings, and lists, tuples and dicts of
    them."""
def scalar_tensor(value: Any, **options: Any) -> Any:
    """Return a tensor of one number, without axes."""
@overload
def scatter(
    x: AnyTensor, dim: int, index: Operand, src: Operand, *, out: AnyTensor | None = None
) -> Tensor:
    """Return a copy of `x` with the elements of `src` written at `index` along `dim`."""
@overload
def scatter(
    input: AnyTensor, dim: int, index: Operand, src: Operand, *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def scatter_add(
    x: AnyTensor, dim: int, index: Operand, src: Operand, *, out: AnyTensor | None = None
) -> Tensor:
    """Return a copy of `x` with the elements of `src` added at `index` along `dim`."""
@overload
def scatter_add(
    input: AnyTensor, dim: int, index: Operand, src: Operand, *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def scatter_reduce(
    x: AnyTensor,
    dim: int,
    index: Operand,
    src: Operand,
    reduce: str,
    *,
    include_self: bool = True,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return a copy of `x` with the elements of `src` reduced into it at `index` along
    `dim`."""
@overload
def scatter_reduce(
    input: AnyTensor,
    dim: int,
    index: Operand,
    src: Operand,
    reduce: str,
    *,
    include_self: bool = True,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def searchsorted(
    x1: Array,
    x2: Operand,
    /,
    *,
    side: str = "left",
    sorter: Array | None = None,
    right: bool = False,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the positions at which the values of `x2` would be inserted in the sorted vector
    `x1`."""
@overload
def searchsorted(
    input: Array,
    other: Operand,
    *,
    side: str = "left",
    sorter: Array | None = None,
    right: bool = False,
    out: AnyTensor | None = None,
) -> Tensor: ...
def seed() -> int:
    """Seed the default generator from the system's entropy, and return the seed."""
def select(input: Any, dim: int, index: int) -> Any:
    """Return a view without an axis, at one position along it."""
def selu(input: AnyTensor, inplace: bool = False) -> Tensor:
    """Return scaled `elu`, with constants for which layers keep mean 0 and variance 1."""
def set_default_device(spec: Device | str) -> Device:
    """Make `spec` the default device of this process, and return it."""
def set_default_dtype(dtype: DTypeLike) -> DType:
    """Set the dtype of Python's floats in this process, float32 or float64, and return it."""
def set_float32_matmul_precision(precision: str) -> None:
    """Do nothing: products of float32 are always computed in float32."""
def set_num_threads(num: int, spec: Device | str | None = None) -> None:
    """Set the number of threads of this process that share a large launch; no result depends
    on it."""
def set_printoptions(**options: object) -> None:
    """Set the options for printing tensors in this process; return nothing."""
def set_rng_state(state: tuple[int, int]) -> None:
    """Make the default generator continue from a state."""
@overload
def sgn(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the sign of x: -1, 0 or 1; x / abs(x) for complex numbers, 0 at 0; NaN stays."""
@overload
def sgn(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def sigmoid(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return 1 / (1 + exp(-x))."""
@overload
def sigmoid(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def sign(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the sign of x: -1, 0 or 1; x / abs(x) for complex numbers, 0 at 0; NaN stays."""
@overload
def sign(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def signbit(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return True where the sign bit is set, as in -0.0."""
@overload
def signbit(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def sin(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the sine of an angle in radians; NaN for infinity."""
@overload
def sin(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def sinc(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return sin(pi * x) / (pi * x), and 1 at 0."""
@overload
def sinc(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def sinh(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the hyperbolic sine."""
@overload
def sinh(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def slogdet(x: AnyTensor, /, *, out: Sequence[AnyTensor] | None = None) -> SlogdetResult:
    """Return the signs of determinants and the logarithms of their absolute values."""
@overload
def slogdet(input: AnyTensor, *, out: Sequence[AnyTensor] | None = None) -> SlogdetResult: ...
@overload
def softmax(x: AnyTensor, /, axis: int = -1, *, out: AnyTensor | None = None) -> Tensor:
    """Return exp(x) divided by its sum along `axis`, without overflow, in one kernel."""
@overload
def softmax(input: AnyTensor, dim: int = -1, *, out: AnyTensor | None = None) -> Tensor: ...
def sort(input: Any, dim: int = -1, descending: bool = False, **options: Any) -> Any:
    """Return the pair (values, indices), ordered along an axis; equal elements keep their
    order."""
def sparse_bsr_tensor(
    crow_indices: object,
    col_indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    check_invariants: bool = True,
) -> BSR:
    """Build a sparse matrix by rows of blocks: as `sparse_csr_tensor`, each value a small
    matrix."""
def sparse_coo_tensor(
    indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    is_coalesced: bool = False,
    check_invariants: bool = True,
) -> COO:
    """Build a sparse tensor with `values` at `indices`; values at one position are added."""
def sparse_csc_tensor(
    ccol_indices: object,
    row_indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    check_invariants: bool = True,
) -> CSC:
    """Build a CSC matrix over the given tensors, uncopied; rows must ascend within a
    column."""
def sparse_csr_tensor(
    crow_indices: object,
    col_indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    check_invariants: bool = True,
) -> CSR:
    """Build a CSR matrix over the given tensors, uncopied; columns must ascend within a
    row."""
@overload
def split(x: AnyTensor, sizes: int | Sequence[int], /, axis: int = 0) -> tuple[Tensor, ...]:
    """Split `x` along `axis` into views of consecutive parts, as a tuple."""
@overload
def split(input: AnyTensor, sizes: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]: ...
@overload
def sqrt(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the square root; NaN for negative real numbers."""
@overload
def sqrt(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def square(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x * x."""
@overload
def square(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def squeeze(input: Any, *dims: Any, dim: Any = None, axis: Any = None) -> Any:
    """Return a view without axes of size 1; axes of other sizes stay."""
@overload
def stack(
    arrays: Sequence[Array],
    /,
    axis: int = 0,
    *,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: AnyTensor | None = None,
) -> Tensor:
    """Stack tensors along a new axis."""
@overload
def stack(
    arrays: Sequence[Array],
    dim: int = 0,
    *,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: AnyTensor | None = None,
) -> Tensor: ...
def std(input: Any, *args: Any, **options: Any) -> Any:
    """Return the standard deviation, of all elements or along axes; it divides by n - 1."""
def std_mean(input: Any, *args: Any, **options: Any) -> Any:
    """Return the pair of the standard deviation, as `std`, and the mean."""
@overload
def stft(
    x: AnyTensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: AnyTensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """Return the spectra of overlapping windows of a signal, PyTorch's `stft`."""
@overload
def stft(
    input: AnyTensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: AnyTensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor: ...
@overload
def sub(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 - x2."""
@overload
def sub(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def subtract(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 - x2."""
@overload
def subtract(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def sum(
    x: AnyTensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: AnyTensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the sum of the elements over `axis`."""
@overload
def sum(
    input: AnyTensor,
    dim: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdim: bool = False,
    out: AnyTensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def svd(
    x: AnyTensor, /, *, full_matrices: bool = True, out: Sequence[AnyTensor] | None = None
) -> SVDResult:
    """Return the singular value decomposition: x is `U @ diag(S) @ Vh`, with S descending."""
@overload
def svd(
    input: AnyTensor, *, full_matrices: bool = True, out: Sequence[AnyTensor] | None = None
) -> SVDResult: ...
@overload
def swapaxes(x: AnyTensor, /, axis1: int, axis2: int) -> Tensor:
    """Return a view of `x` with `axis1` and `axis2` exchanged."""
@overload
def swapaxes(input: AnyTensor, axis1: int, axis2: int) -> Tensor: ...
@overload
def swapdims(x: AnyTensor, /, axis1: int, axis2: int) -> Tensor:
    """Return a view of `x` with `axis1` and `axis2` exchanged."""
@overload
def swapdims(input: AnyTensor, axis1: int, axis2: int) -> Tensor: ...
@overload
def t(x: AnyTensor) -> Tensor:
    """Return a view with both axes exchanged, like `x.T`; a vector is returned as a view of
    itself."""
@overload
def t(input: AnyTensor) -> Tensor: ...
def take(input: Any, index: Any, *, axis: int | None = None) -> Any:
    """Return the elements at positions in the flattened tensor."""
@overload
def take_along_dim(x: AnyTensor, indices: Array, dim: int | None = None) -> Tensor:
    """Return the elements of `x` at `indices` along axis `dim`; None flattens both first."""
@overload
def take_along_dim(input: AnyTensor, indices: Array, dim: int | None = None) -> Tensor: ...
@overload
def tan(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the tangent of an angle in radians; NaN for infinity."""
@overload
def tan(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def tanh(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the hyperbolic tangent."""
@overload
def tanh(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> TensorCreation:
    """Return a new tensor with a copy of the data."""
@overload
def tensor_split(
    x: AnyTensor, indices_or_sections: SplitPoints, /, *, axis: int = 0
) -> tuple[Tensor, ...]:
    """Split `x` along `axis` into views of consecutive parts, as equal as possible."""
@overload
def tensor_split(
    input: AnyTensor, indices_or_sections: SplitPoints, *, dim: int = 0
) -> tuple[Tensor, ...]: ...
@overload
def tensordot(
    x1: Array,
    x2: Array,
    /,
    *,
    axes: AxesMatrixProducts = 2,
    dtype: DTypeLike = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the sum of products over pairs of axes, computed by one `matmul`."""
@overload
def tensordot(
    input: Array,
    other: Array,
    *,
    dims: AxesMatrixProducts = 2,
    dtype: DTypeLike = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
def threshold(input: AnyTensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return the input where it is above `threshold`, else `value`."""
@overload
def tile(
    x: AnyTensor, repetitions: int | Sequence[int], /, *, out: AnyTensor | None = None
) -> Tensor:
    """Repeat the whole tensor along each axis."""
@overload
def tile(
    input: AnyTensor, repetitions: int | Sequence[int], *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def topk(
    x: AnyTensor,
    k: int,
    /,
    axis: int = -1,
    *,
    largest: bool = True,
    out: Sequence[AnyTensor] | None = None,
) -> TopK:
    """Return the `k` largest elements along `axis` and their positions: (values, indices)."""
@overload
def topk(
    input: AnyTensor,
    k: int,
    dim: int = -1,
    *,
    largest: bool = True,
    out: Sequence[AnyTensor] | None = None,
) -> TopK: ...
@overload
def trace(
    x: AnyTensor,
    /,
    *,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the sum of the diagonal over two axes."""
@overload
def trace(
    input: AnyTensor,
    *,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def transpose(x: AnyTensor, /, *axes: SizesManipulation | None) -> Tensor:
    """Return a view of `x` with two axes exchanged or, without `axes`, all of them
    reversed."""
@overload
def transpose(input: AnyTensor, *axes: SizesManipulation | None) -> Tensor: ...
@overload
def trapezoid(
    y: AnyTensor,
    x: Array | None = None,
    /,
    *,
    dx: float | None = None,
    axis: int = -1,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the area under samples along `axis`, by the trapezoidal rule."""
@overload
def trapezoid(
    y: AnyTensor,
    x: Array | None = None,
    *,
    dx: float | None = None,
    dim: int = -1,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def trapz(
    y: AnyTensor,
    x: Array | None = None,
    /,
    *,
    dx: float | None = None,
    axis: int = -1,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the area under samples along `axis`, by the trapezoidal rule."""
@overload
def trapz(
    y: AnyTensor,
    x: Array | None = None,
    *,
    dx: float | None = None,
    dim: int = -1,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def tril(x: AnyTensor, /, k: int = 0, *, out: AnyTensor | None = None) -> Tensor:
    """Return the lower triangles of matrices: elements above the k-th diagonal become 0."""
@overload
def tril(input: AnyTensor, k: int = 0, *, out: AnyTensor | None = None) -> Tensor: ...
def tril_indices(
    n: int, k: int = 0, m: int | None = None, *, device: DeviceLike = None
) -> tuple[Tensor, Tensor]:
    """Return the indices of the lower triangle of a matrix, row by row: (rows, columns)."""
@overload
def triu(x: AnyTensor, /, k: int = 0, *, out: AnyTensor | None = None) -> Tensor:
    """Return the upper triangles of matrices: elements below the k-th diagonal become 0."""
@overload
def triu(input: AnyTensor, k: int = 0, *, out: AnyTensor | None = None) -> Tensor: ...
def triu_indices(
    n: int, k: int = 0, m: int | None = None, *, device: DeviceLike = None
) -> tuple[Tensor, Tensor]:
    """Return the indices of the upper triangle of a matrix, row by row: (rows, columns)."""
@overload
def true_divide(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the quotient x1 / x2, always a float."""
@overload
def true_divide(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def trunc(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the integer part of x, without its fraction."""
@overload
def trunc(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def unbind(x: AnyTensor, /, axis: int = 0) -> tuple[Tensor, ...]:
    """Return views of the parts of `x` along `axis`, without that axis, as a tuple."""
@overload
def unbind(input: AnyTensor, dim: int = 0) -> tuple[Tensor, ...]: ...
@overload
def unflatten(x: AnyTensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Replace axis `dim` by several axes of these sizes, of which one may be -1."""
@overload
def unflatten(input: AnyTensor, dim: int, sizes: Sequence[int]) -> Tensor: ...
def unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    axis: int | None = None,
) -> Any:
    """Return the distinct elements in ascending order, or the distinct slices along an
    axis."""
@overload
def unique_consecutive(
    x: AnyTensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Return the first element of each run of equal elements."""
@overload
def unique_consecutive(
    input: AnyTensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]: ...
def unravel_index(
    indices: Index, /, shape: int | Sequence[int], *, device: DeviceLike = None
) -> tuple[Tensor, ...]:
    """Return the indices along each axis of positions in a raveled shape."""
@overload
def unsqueeze(x: AnyTensor, /, axis: Axes = 0) -> Tensor:
    """Return a view of `x` with inserted axes of size 1."""
@overload
def unsqueeze(input: AnyTensor, dim: Axes = 0) -> Tensor: ...
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Require one order of sums in the whole process, as PyTorch's switch does."""
@overload
def vander(
    x: Array, n: int | None = None, /, *, increasing: bool = False, out: AnyTensor | None = None
) -> Tensor:
    """Return the Vandermonde matrix: the powers of each element, the highest first."""
@overload
def vander(
    input: Array, n: int | None = None, *, increasing: bool = False, out: AnyTensor | None = None
) -> Tensor: ...
def var(input: Any, *args: Any, **options: Any) -> Any:
    """Return the variance, of all elements or along axes; it divides by n - 1."""
def var_mean(input: Any, *args: Any, **options: Any) -> Any:
    """Return the pair of the variance, as `var`, and the mean."""
@overload
def vdot(x1: Array, x2: Array, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the sum of the products of the elements of two tensors, both raveled."""
@overload
def vdot(input: Array, other: Array, *, out: AnyTensor | None = None) -> Tensor: ...
def view_as_complex(input: Any) -> Any:
    """Return complex numbers of a last axis of two parts, as a new tensor."""
def view_as_real(input: Any) -> Any:
    """Return real and imaginary parts along a new last axis, as a new tensor."""
def vmap(
    function: Callable[P, R],
    in_axes: AxesVectorize = 0,
    out_axes: AxesVectorize = 0,
    *,
    randomness: str = "different",
    chunk_size: int | None = None,
) -> Callable[P, R]:
    """Return a function that does for all examples at once what `function` does for one."""
@overload
def vsplit(x: AnyTensor, indices_or_sections: SplitPoints, /) -> tuple[Tensor, ...]:
    """Split `x` into views of equal parts along its first axis."""
@overload
def vsplit(input: AnyTensor, indices_or_sections: SplitPoints) -> tuple[Tensor, ...]: ...
def vstack(
    arrays: Sequence[Array],
    /,
    *,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: AnyTensor | None = None,
) -> Tensor:
    """Concatenate tensors along the first axis; vectors are rows."""
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Return elements of `input` where the condition is true, else of `other`."""
@overload
def xlogy(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 * log(x2), and 0 where x1 is 0, unless x2 is NaN."""
@overload
def xlogy(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def zeros(
    shape: ShapeLike,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return a new tensor of this shape, filled with 0."""
@overload
def zeros(
    shape: ShapeLike, dtype: DTypeLike, /, *, device: DeviceLike = None, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def zeros(
    shape: int,
    /,
    *more: int,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def zeros_like(x: AnyTensor, /, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Return a new tensor of x's shape, dtype and device, filled with 0."""
@overload
def zeros_like(
    input: AnyTensor, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor: ...
@overload
def zeros_like(x: AnyTensor, dtype: DTypeLike, /, *, device: DeviceLike = None) -> Tensor: ...
