"""Products of float matrices by cuBLAS, if its wheel is installed (`dovetail-cuda[matmul]`).

Sums are kept in float32 (float64 for float64): no TF32, unless NVIDIA_TF32_OVERRIDE asks for it.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator, Sequence
from ctypes import c_double, c_float, c_int, c_int64, c_void_p
from typing import Any, NamedTuple

from dovetail.extend import (
    DType,
    Kernel,
    KernelBuilder,
    LibraryCall,
    Lock,
    StreamHandle,
    StridedOperand,
    Value,
    bfloat16,
    cast,
    const,
    float16,
    float32,
    float64,
    fma,
    fold_loop,
    legalize,
    load,
)

from . import driver as cuda

# dtype: cudaDataType_t, cublasComputeType_t, the type of alpha and beta
CUBLAS_TYPES: dict[DType, tuple[int, int, Any]] = {
    float16: (2, 68, c_float),
    bfloat16: (14, 68, c_float),
    float32: (0, 68, c_float),
    float64: (1, 70, c_double),
}
NOT_TRANSPOSED, TRANSPOSED, DEFAULT_ALGORITHM = 0, 1, -1


class Matrix(NamedTuple):
    """A stack of matrices in memory; strides in elements, of the stack, rows and columns."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class CublasProducts:
    """The cuBLAS of one device. Raises: OSError, RuntimeError if the library is missing."""

    def __init__(self) -> None:
        self.library = cuda.load_library("cublas")
        self.handle: c_void_p | None = None
        self.kernels: dict[DType, Any] = {}
        self.lock = Lock()

    def matmul(
        self,
        backend: Any,
        inputs: Sequence[StridedOperand],
        output: StridedOperand,
        stream: StreamHandle,
    ) -> None:
        """Write the product of two stacks, by cuBLAS or, for other strides, by a kernel."""
        backend.enter()
        with self.lock:
            for a, b, out in _split_stacks(*inputs, output):
                self.product(backend, a, b, out, output[4], stream)

    def product(
        self, backend: Any, a: Matrix, b: Matrix, out: Matrix, dtype: DType, stream: StreamHandle
    ) -> None:
        """Multiply one stack: by cuBLAS if each matrix has a stride of 1, else by a kernel."""
        left, right, result = (_find_blas_layout(m) for m in (a, b, out))
        if left is None or right is None or result is None or result[0] != NOT_TRANSPOSED:
            self.multiply_by_kernel(backend, a, b, out, dtype, stream)
            return
        (op_a, lead_a), (op_b, lead_b), (_, lead) = left, right, result
        kind, compute, number = CUBLAS_TYPES[dtype]
        one, zero = number(1), number(0)
        count, m, n = out.shape
        # cuBLAS counts by columns: it sees transposes, and makes out.T of b.T @ a.T.
        arguments = [
            self.handle_for_stream(stream),
            c_int(op_b),
            c_int(op_a),
            n,
            m,
            a.shape[2],
            ctypes.byref(one),
            c_void_p(b.address),
            c_int(kind),
            lead_b,
            b.strides[0],
            c_void_p(a.address),
            c_int(kind),
            lead_a,
            a.strides[0],
            ctypes.byref(zero),
            c_void_p(out.address),
            c_int(kind),
            lead,
            out.strides[0],
            count,
            c_int(compute),
            c_int(DEFAULT_ALGORITHM),
        ]
        converted = [c_int64(x) if isinstance(x, int) else x for x in arguments]
        self.check_status(
            self.library.cublasGemmStridedBatchedEx_64(*converted), "cublasGemmStridedBatchedEx"
        )

    def handle_for_stream(self, stream: StreamHandle) -> c_void_p:
        """Create the library's handle on first use, set its stream, and return the handle."""
        if self.handle is None:
            handle = c_void_p()
            self.check_status(self.library.cublasCreate_v2(ctypes.byref(handle)), "cublasCreate")
            self.handle = handle
        self.check_status(
            self.library.cublasSetStream_v2(self.handle, c_void_p(stream or 0)), "stream"
        )
        return self.handle

    def check_status(self, status: int, doing: str) -> None:
        """Raise CudaError unless cuBLAS's status is success."""
        if status != 0:
            raise cuda.CudaError(f"cuda: {doing}: cuBLAS returned status {status}")

    def multiply_by_kernel(
        self, backend: Any, a: Matrix, b: Matrix, out: Matrix, dtype: DType, stream: StreamHandle
    ) -> None:
        """Multiply one stack by a kernel that takes any strides, compiled on first use."""
        if dtype not in self.kernels:
            kernel = legalize(strided_product(dtype), backend.info.capabilities)
            self.kernels[dtype] = backend.compile(kernel)
        ints = (*out.shape, a.shape[2], *a.strides, *b.strides, *out.strides)
        buffers = (a.address, 0, b.address, 0, out.address, 0)
        backend.launch(self.kernels[dtype], buffers, ints, (), out.shape, stream)


def library_calls() -> dict[tuple[str, DType], LibraryCall]:
    """Return cuBLAS's matmul routines by op and dtype; {} if the library is not installed."""
    try:
        products = CublasProducts()
    except (ImportError, OSError, RuntimeError):
        return {}
    return {("matmul", d): products.matmul for d in CUBLAS_TYPES}


def _find_blas_layout(m: Matrix) -> tuple[int, int] | None:
    """Return cuBLAS's transposition flag of a matrix and its leading dimension, or None.

    The result has its leading dimension, or is None if cuBLAS cannot read it.
    """
    (_, rows, columns), (_, row, column) = m.shape, m.strides
    if (columns == 1 or column == 1) and (rows == 1 or row >= columns):
        return NOT_TRANSPOSED, max(row if rows > 1 else columns, 1)
    if (rows == 1 or row == 1) and (columns == 1 or column >= rows):
        return TRANSPOSED, max(column if columns > 1 else rows, 1)
    return None


def _split_stacks(*operands: StridedOperand) -> Iterator[tuple[Matrix, ...]]:
    """Yield the operands as stacks along their last batch axis.

    Each is (handle, byte offset, shape, strides, dtype); without such an axis a stack has one
    matrix. An empty result yields nothing.
    """
    *batch, _, _ = operands[-1][2]
    if 0 in operands[-1][2]:
        return
    for at in itertools.product(*map(range, batch[:-1])):
        stacks = []
        for handle, offset, shape, strides, dtype in operands:
            first = sum(i * s for i, s in zip(at, strides, strict=False)) * dtype.itemsize
            stack = (shape[-3:], strides[-3:]) if batch else ((1, *shape), (0, *strides))
            stacks.append(Matrix(handle + offset + first, *map(tuple, stack)))
        yield tuple(stacks)


def strided_product(dtype: DType) -> Kernel:
    """Build the kernel of a product of stacks with any strides.

    k ascends, with fused multiply-add.
    """
    b = KernelBuilder("matmul_strided")
    x, y, out = (b.buffer(n, dtype, access) for n, access in (("x", "r"), ("y", "r"), ("out", "w")))
    count, m, n, length = (b.int(name) for name in ("count", "m", "n", "length"))
    (x0, x1, x2), (y0, y1, y2), (o0, o1, o2) = (
        [b.int(f"{name}{d}") for d in range(3)] for name in ("x_", "y_", "out_")
    )
    s, i, j = (b.axis(extent) for extent in (count, m, n))
    wide = float64 if dtype is float64 else float32

    def step(k: Value, total: Value) -> tuple[Value]:
        """Add the product at position `k` to the total, with one rounding."""
        left = cast(load(x, s * x0 + i * x1 + k * x2), wide)
        right = cast(load(y, s * y0 + k * y1 + j * y2), wide)
        return (fma(left, right, total),)

    total = fold_loop(0, length, (const(0.0, wide),), step).results[0]
    b.store(out, s * o0 + i * o1 + j * o2, cast(total, dtype))
    return b.build()
