# What type checkers know of the methods that other files attach to Tensor.

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..functions.datatypes import DeviceLike, DTypeLike
from ..functions.sets import UniqueAll, UniqueCounts, UniqueInverse
from ..functions.sorting import TopK
from ..functions.statistics import Axis
from .operands import Operand
from .tensor import Tensor

Number = bool | int | float

class Unary(Protocol):  # `x.exp()`
    def __call__(self, *, out: Tensor | None = None) -> Tensor: ...

class Binary(Protocol):  # `x.add(y)`
    def __call__(self, other: Operand, /, *, out: Tensor | None = None) -> Tensor: ...

class UnaryInPlace(Protocol):  # `x.exp_()`
    def __call__(self) -> Tensor: ...

class BinaryInPlace(Protocol):  # `x.add_(y)`
    def __call__(self, other: Operand, /) -> Tensor: ...

class Sum(Protocol):  # `x.sum(axis)`
    def __call__(
        self,
        axis: Axis = None,
        *,
        dtype: DTypeLike = None,
        keepdims: bool = False,
        out: Tensor | None = None,
    ) -> Tensor: ...

class Reduction(Protocol):  # `x.max(axis)`
    def __call__(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor: ...

class Moment(Protocol):  # `x.var(axis)`
    def __call__(
        self,
        axis: Axis = None,
        *,
        correction: float = 0.0,
        keepdims: bool = False,
        out: Tensor | None = None,
    ) -> Tensor: ...

class Place(Protocol):  # `x.argmax(axis)`
    def __call__(
        self, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor: ...

class Shaped(Protocol):  # `x.view(2, 3)` or `x.view((2, 3))`
    def __call__(self, *sizes: Any) -> Tensor: ...

class Plain(Protocol):  # `x.copy()`
    def __call__(self) -> Tensor: ...

class Methods:  # The methods of Tensor that are functions elsewhere.
    abs: Unary
    negative: Unary
    positive: Unary
    sign: Unary
    square: Unary
    reciprocal: Unary
    sqrt: Unary
    rsqrt: Unary
    cbrt: Unary
    ceil: Unary
    floor: Unary
    trunc: Unary
    logical_not: Unary
    bitwise_invert: Unary
    isnan: Unary
    isinf: Unary
    isfinite: Unary
    signbit: Unary
    exp: Unary
    exp2: Unary
    expm1: Unary
    log: Unary
    log2: Unary
    log10: Unary
    log1p: Unary
    sin: Unary
    cos: Unary
    tan: Unary
    asin: Unary
    acos: Unary
    atan: Unary
    sinh: Unary
    cosh: Unary
    tanh: Unary
    asinh: Unary
    acosh: Unary
    atanh: Unary
    erf: Unary
    erfc: Unary
    sigmoid: Unary
    relu: Unary
    neg: Unary

    abs_: UnaryInPlace
    negative_: UnaryInPlace
    positive_: UnaryInPlace
    sign_: UnaryInPlace
    square_: UnaryInPlace
    reciprocal_: UnaryInPlace
    sqrt_: UnaryInPlace
    rsqrt_: UnaryInPlace
    cbrt_: UnaryInPlace
    ceil_: UnaryInPlace
    floor_: UnaryInPlace
    trunc_: UnaryInPlace
    logical_not_: UnaryInPlace
    bitwise_invert_: UnaryInPlace
    isnan_: UnaryInPlace
    isinf_: UnaryInPlace
    isfinite_: UnaryInPlace
    signbit_: UnaryInPlace
    exp_: UnaryInPlace
    exp2_: UnaryInPlace
    expm1_: UnaryInPlace
    log_: UnaryInPlace
    log2_: UnaryInPlace
    log10_: UnaryInPlace
    log1p_: UnaryInPlace
    sin_: UnaryInPlace
    cos_: UnaryInPlace
    tan_: UnaryInPlace
    asin_: UnaryInPlace
    acos_: UnaryInPlace
    atan_: UnaryInPlace
    sinh_: UnaryInPlace
    cosh_: UnaryInPlace
    tanh_: UnaryInPlace
    asinh_: UnaryInPlace
    acosh_: UnaryInPlace
    atanh_: UnaryInPlace
    erf_: UnaryInPlace
    erfc_: UnaryInPlace
    sigmoid_: UnaryInPlace
    relu_: UnaryInPlace
    neg_: UnaryInPlace

    add: Binary
    subtract: Binary
    multiply: Binary
    divide: Binary
    floor_divide: Binary
    remainder: Binary
    maximum: Binary
    minimum: Binary
    atan2: Binary
    hypot: Binary
    copysign: Binary
    nextafter: Binary
    logaddexp: Binary
    pow: Binary
    equal: Binary
    not_equal: Binary
    less: Binary
    less_equal: Binary
    greater: Binary
    greater_equal: Binary
    logical_and: Binary
    logical_or: Binary
    logical_xor: Binary
    bitwise_and: Binary
    bitwise_or: Binary
    bitwise_xor: Binary
    bitwise_left_shift: Binary
    bitwise_right_shift: Binary
    mul: Binary
    sub: Binary
    div: Binary
    eq: Binary
    ne: Binary
    lt: Binary
    le: Binary
    gt: Binary
    ge: Binary

    add_: BinaryInPlace
    subtract_: BinaryInPlace
    multiply_: BinaryInPlace
    divide_: BinaryInPlace
    floor_divide_: BinaryInPlace
    remainder_: BinaryInPlace
    maximum_: BinaryInPlace
    minimum_: BinaryInPlace
    atan2_: BinaryInPlace
    hypot_: BinaryInPlace
    copysign_: BinaryInPlace
    nextafter_: BinaryInPlace
    logaddexp_: BinaryInPlace
    pow_: BinaryInPlace
    equal_: BinaryInPlace
    not_equal_: BinaryInPlace
    less_: BinaryInPlace
    less_equal_: BinaryInPlace
    greater_: BinaryInPlace
    greater_equal_: BinaryInPlace
    logical_and_: BinaryInPlace
    logical_or_: BinaryInPlace
    logical_xor_: BinaryInPlace
    bitwise_and_: BinaryInPlace
    bitwise_or_: BinaryInPlace
    bitwise_xor_: BinaryInPlace
    bitwise_left_shift_: BinaryInPlace
    bitwise_right_shift_: BinaryInPlace
    mul_: BinaryInPlace
    sub_: BinaryInPlace
    div_: BinaryInPlace

    sum: Sum
    prod: Sum
    mean: Sum

    max: Reduction
    min: Reduction
    any: Reduction
    all: Reduction
    count_nonzero: Reduction

    var: Moment
    std: Moment

    argmax: Place
    argmin: Place

    view: Shaped
    permute: Shaped
    permute_dims: Shaped
    expand: Shaped
    broadcast_to: Shaped
    transpose: Shaped

    copy: Plain
    clone: Plain
    contiguous: Plain
    detach: Plain
    detach_: Plain
    ravel: Plain

    requires_grad: bool
    grad: Any  # a Tensor, or None before `backward`
    grad_fn: Any
    is_leaf: bool
    def requires_grad_(self, requires_grad: bool = True) -> Tensor: ...
    def backward(
        self,
        gradient: Tensor | None = None,
        *,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None: ...
    def retain_grad(self) -> None: ...
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any: ...
    def __getitem__(self, key: Any, /) -> Tensor: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def astype(
        self, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike = None
    ) -> Tensor: ...
    def to(
        self,
        *wanted: Any,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
        copy: bool = False,
        non_blocking: bool = False,
    ) -> Tensor: ...
    def pin_memory(self, device: DeviceLike = None) -> Tensor: ...
    def is_pinned(self) -> bool: ...
    def to_device(self, device: DeviceLike, /, *, stream: Any = None) -> Tensor: ...
    def to_dense(self) -> Tensor: ...
    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor: ...
    def to_sparse(self, sparse_dim: int | None = None) -> Any: ...
    def reshape(self, *shape: Any, copy: bool | None = None) -> Tensor: ...
    def swapaxes(self, axis1: int, axis2: int, /) -> Tensor: ...
    def moveaxis(
        self, source: int | Sequence[int], destination: int | Sequence[int], /
    ) -> Tensor: ...
    def movedim(
        self, source: int | Sequence[int], destination: int | Sequence[int], /
    ) -> Tensor: ...
    def expand_dims(self, axis: int | Sequence[int] = 0) -> Tensor: ...
    def unsqueeze(self, axis: int | Sequence[int] = 0) -> Tensor: ...
    def squeeze(self, axis: int | Sequence[int] | None = None) -> Tensor: ...
    def flip(self, axis: int | Sequence[int] | None = None) -> Tensor: ...
    def unstack(self, *, axis: int = 0) -> tuple[Tensor, ...]: ...
    def split(self, sizes: int | Sequence[int], /, *, axis: int = 0) -> tuple[Tensor, ...]: ...
    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor: ...
    def as_strided(
        self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
    ) -> Tensor: ...
    def roll(
        self, shift: int | Sequence[int], /, *, axis: int | Sequence[int] | None = None
    ) -> Tensor: ...
    def repeat(
        self, repeats: int | Sequence[int] | Tensor, /, *, axis: int | None = None
    ) -> Tensor: ...
    def tile(self, repetitions: int | Sequence[int], /) -> Tensor: ...
    def tril(self, *, k: int = 0) -> Tensor: ...
    def triu(self, *, k: int = 0) -> Tensor: ...
    def round(self, *, decimals: int = 0, out: Tensor | None = None) -> Tensor: ...
    def round_(self) -> Tensor: ...
    def clip(
        self,
        min: Tensor | Number | None = None,
        max: Tensor | Number | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor: ...
    def clamp(
        self,
        min: Tensor | Number | None = None,
        max: Tensor | Number | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor: ...
    def clip_(
        self, min: Tensor | Number | None = None, max: Tensor | Number | None = None
    ) -> Tensor: ...
    def clamp_(
        self, min: Tensor | Number | None = None, max: Tensor | Number | None = None
    ) -> Tensor: ...
    def fill_(self, value: Number) -> Tensor: ...
    def zero_(self) -> Tensor: ...
    def copy_(self, other: Tensor, /) -> Tensor: ...
    def softmax(self, axis: int = -1) -> Tensor: ...
    def log_softmax(self, axis: int = -1) -> Tensor: ...
    def logsumexp(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor: ...
    def isclose(
        self,
        other: Tensor | Number,
        /,
        *,
        rtol: float = 1e-5,
        atol: float = 1e-8,
        equal_nan: bool = False,
    ) -> Tensor: ...
    def allclose(
        self,
        other: Tensor | Number,
        /,
        *,
        rtol: float = 1e-5,
        atol: float = 1e-8,
        equal_nan: bool = False,
    ) -> bool: ...
    def __matmul__(self, other: Operand, /) -> Tensor: ...
    def __imatmul__(self, other: Operand, /) -> Tensor: ...
    def matmul(self, other: Tensor, /, *, out: Tensor | None = None) -> Tensor: ...
    def cumulative_sum(
        self,
        *,
        axis: int | None = None,
        dtype: DTypeLike = None,
        include_initial: bool = False,
        out: Tensor | None = None,
    ) -> Tensor: ...
    def cumulative_prod(
        self,
        *,
        axis: int | None = None,
        dtype: DTypeLike = None,
        include_initial: bool = False,
        out: Tensor | None = None,
    ) -> Tensor: ...
    def diff(
        self,
        *,
        axis: int = -1,
        n: int = 1,
        prepend: Tensor | None = None,
        append: Tensor | None = None,
    ) -> Tensor: ...
    def take(self, indices: Any, /, *, axis: int | None = None) -> Tensor: ...
    def take_along_axis(self, indices: Any, /, *, axis: int = -1) -> Tensor: ...
    def nonzero(self) -> tuple[Tensor, ...]: ...
    def sort(
        self, /, *, axis: int = -1, descending: bool = False, stable: bool = True
    ) -> Tensor: ...
    def argsort(
        self, /, *, axis: int = -1, descending: bool = False, stable: bool = True
    ) -> Tensor: ...
    def topk(self, k: int, /, *, axis: int = -1, largest: bool = True) -> TopK: ...
    def unique_all(self) -> UniqueAll: ...
    def unique_counts(self) -> UniqueCounts: ...
    def unique_inverse(self) -> UniqueInverse: ...
    def unique_values(self) -> Tensor: ...
    def isin(self, x2: Tensor | Number, /, *, invert: bool = False) -> Tensor: ...
    def scatter(self, dim: int, index: Any, src: Any) -> Tensor: ...
    def scatter_(self, dim: int, index: Any, src: Any) -> Tensor: ...
    def scatter_add_(self, dim: int, index: Any, src: Any) -> Tensor: ...
    def index_add(self, dim: int, index: Any, source: Any) -> Tensor: ...
    def index_add_(self, dim: int, index: Any, source: Any) -> Tensor: ...
