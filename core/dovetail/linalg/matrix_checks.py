"""Checks of matrix arguments, and helpers that the modules of linalg share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from .. import layout as lay
from ..dtypes import COMPLEX, DType, float32, float64, promote
from ..errors import DeviceError, DTypeError, LayoutError, ShapeError
from ..functions.creation.constructors import eye
from ..functions.datatypes import cast
from ..functions.products.matrix_products import conjugate
from ..layout import Shape
from ..tensor.c_fields import expr_of, is_strided
from ..tensor.other_layouts import call_along, has_rule
from ..tensor.primitives import view
from ..tensor.promotion import Array, as_tensors
from ..tensor.tensor import Tensor, required, strided

P = ParamSpec("P")
R = TypeVar("R")
LAPACK_DTYPES = (float32, float64, *COMPLEX)  # the dtypes of LAPACK's routines


def require_matrices(name: str, x: Tensor) -> Tensor:
    """Return `x` unchanged if it is a strided tensor of matrices in a dtype that LAPACK takes.

    Errors name `name`. Raises: DTypeError, LayoutError, ShapeError.
    """
    x = strided(name, required(name, x))
    if x.dtype not in LAPACK_DTYPES:
        raise DTypeError(
            f"{name}: x must be float32, float64 or complex, got {x.dtype.name}; use "
            "x.astype(dt.float32)"
        )
    if x.ndim < 2:
        raise ShapeError(f"{name}: expected at least 2 dimensions, got shape {x.shape}")
    return x


def square(name: str, x: Tensor) -> Tensor:
    """Return `x` unchanged if it is a strided tensor of square matrices that LAPACK takes.

    Raises: DTypeError, LayoutError, ShapeError if it is not.
    """
    x = require_matrices(name, x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}: expected square matrices, got {x.shape[-2]} x {x.shape[-1]}")
    return x


def extend_to_layouts_of_matrices(
    function: Callable[Concatenate[Tensor, P], R],
) -> Callable[Concatenate[Tensor, P], R]:
    """Wrap a function of matrices: a tensor of another layout goes to its rule "along".

    Results have the axes of the batch, then up to two more.
    """

    @wraps(function)
    def call(x: Tensor, /, *args: P.args, **options: P.kwargs) -> R:
        if is_strided(x) or not has_rule(x, "along") or x.ndim < 2:
            return function(x, *args, **options)
        for value in (*args, *options.values()):  # each shard would need its part
            if getattr(value, "ndim", 0) or isinstance(value, list | tuple):
                raise LayoutError(
                    f"{function.__name__}: one number for each matrix is not supported for the "
                    f"layout {x.layout}; pass one number for all matrices, or use x.to_dense()"
                )
        results: list[Any] = []  # of the last call, before they get the operand's number of axes

        def add_axes(t: Tensor) -> tuple[Tensor, ...]:
            """Return the results with the number of axes of the operand."""
            result: Any = function(t, *args, **options)
            results[:] = [result, *(result if isinstance(result, tuple) else (result,))]
            return tuple([r[(..., *[None] * (x.ndim - r.ndim))] for r in results[1:]])

        wide = call_along(function.__name__, add_axes, (x,), (x.ndim - 2, x.ndim - 1))
        result, *others = results
        narrow = [r[(..., *[0] * (x.ndim - p.ndim))] for r, p in zip(wide, others, strict=True)]
        joined: Any = type(result)(*narrow) if isinstance(result, tuple) else narrow[0]
        return joined  # type: ignore[no-any-return]  # of the function's type

    return call


def same_dtype(name: str, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Cast tensors to their promoted dtype. Raises: DeviceError for several devices."""
    first, *others = tensors
    promoted: DType = first.dtype
    for t in others:
        if t.device is not first.device:
            raise DeviceError(
                f"{name}: operands are on {first.device} and {t.device}; move one with x.to(device)"
            )
        promoted = promote(promoted, t.dtype)
    return tuple([cast(t, promoted) for t in tensors])


def same_batch(name: str, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Broadcast the axes before the last two of all matrices. Raises: ShapeError if they do not."""
    batch: Shape = lay.broadcast_shapes(name, *(t.shape[:-2] for t in tensors))
    return tuple(
        t if t.shape[:-2] == batch else view(t, ("expand", (*batch, *t.shape[-2:])))
        for t in tensors
    )


def right_sides(name: str, a: Array, b: Array) -> tuple[Tensor, Tensor, bool]:
    """Return matrices and right-hand sides with equal dtypes and batches; True for one vector.

    Raises: DTypeError, DeviceError, ShapeError.
    """
    if is_strided(a) and is_strided(b) and _is_one_system(a, b):
        is_vector = len(expr_of(b).spec.shape) == 1
        return a, as_column(b) if is_vector else b, is_vector
    a, b = (strided(name, x) for x in as_tensors(name, a, b))
    vector = b.ndim == 1
    a, b = same_dtype(
        name, require_matrices(name, a), require_matrices(name, as_column(b) if vector else b)
    )
    if a.shape[-2] != b.shape[-2]:
        raise ShapeError(
            f"{name}: both operands must have the same number of rows, got {a.shape[-2]} and "
            f"{b.shape[-2]} (shapes {a.shape} and {b.shape})"
        )
    a, b = same_batch(name, a, b)
    return a, b, vector


def _is_one_system(a: Tensor, b: Tensor) -> bool:
    """Return True for one matrix and right-hand sides that fit it without a cast."""
    s, t = expr_of(a).spec, expr_of(b).spec
    if len(s.shape) != 2 or len(t.shape) not in (1, 2) or s.shape[0] != t.shape[0]:
        return False
    return s.dtype is t.dtype and s.device is t.device and s.dtype in LAPACK_DTYPES


def without_column(x: Tensor, vector: bool) -> Tensor:
    """Return the result without its column axis if the operand was one vector."""
    return view(x, ("reshape", x.shape[:-1])) if vector else x


def adjoint(x: Tensor) -> Tensor:
    """Return the conjugate transpose of each matrix."""
    return conjugate(x).mT


def hermitian_part(x: Tensor) -> Tensor:
    """Return the mean of matrices and their adjoints."""
    return (x + adjoint(x)) * 0.5


def as_column(x: Tensor) -> Tensor:
    """Return vectors as matrices of one column."""
    return view(x, ("reshape", (*x.shape, 1)))


def as_row(x: Tensor) -> Tensor:
    """Return vectors as matrices of one row."""
    return view(x, ("reshape", (*x.shape[:-1], 1, x.shape[-1])))


def as_scalars(x: Tensor) -> Tensor:
    """Return numbers as matrices of one element, with two more axes of size 1."""
    return view(x, ("reshape", (*x.shape, 1, 1)))


def identity(n: int, like: Tensor) -> Tensor:
    """Return the identity of n rows, in a tensor's dtype and device."""
    return eye(n, dtype=like.dtype, device=like.device)
