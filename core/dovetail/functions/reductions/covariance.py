"""Weighted means, covariances and the range of values."""

from __future__ import annotations

from collections.abc import Sequence

from ... import layout as lay
from ...arguments import flag, named, real
from ...dtypes import DType, float32
from ...errors import ArgumentError, ShapeError
from ...ops import table as ops
from ...tensor.operands import Array, beside
from ...tensor.tensor import Tensor, required, strided
from ...tensor.verbs import apply, view
from ..datatypes import cast, result_type, working_float
from ..products.matrix_products import conjugate, matmul
from ..shape.copies import concat
from ..shape.manipulation import broadcast_to, diagonal
from ..variants import into
from .statistics import Axis
from .statistics import max as max_of
from .statistics import mean as mean_of
from .statistics import min as min_of
from .statistics import sum as sum_of

__all__ = ["average", "corrcoef", "cov", "ptp"]


@into
def ptp(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The range of values over `axis`: the largest less the smallest.

    Shapes: any with elements along `axis`; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: integers and floats; the result has the same, and integers wrap.
    Raises: ShapeError where there are no elements, AxisError, DTypeError for bool.

    >>> import dovetail as dt
    >>> dt.ptp(dt.asarray([[1, 5], [2, 2]], device="reference"), axis=1).tolist()
    [4, 0]
    """
    top = max_of(x, axis=axis, keepdims=keepdims)
    return apply(ops.SUBTRACT, (top, min_of(x, axis=axis, keepdims=keepdims)))


@named
def average(
    x: Tensor, /, axis: Axis = None, weights: Array | None = None, *, returned: bool = False,
    keepdims: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """The weighted mean over `axis`: sum(x * weights) / sum(weights).

    `weights`: how much each element counts; all alike unless given. `returned`: whether the sum of
    the weights comes too, as a second tensor.
    Shapes: `weights` has x's, or is a vector along one axis; the axes go, or stay with size 1 with
    `keepdims`. Where the weights sum to 0 there is no mean, and it is infinite or NaN.
    Dtypes: all, promoted; integers and bool give float32.
    Order: the canonical one (docs/numerics.md): the same bits on every device.
    Raises: ShapeError, AxisError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.average(dt.asarray([1.0, 3.0], device="reference"), weights=[3, 1]).item()
    1.5
    """
    axes = lay.ordered_axes("average", axis, required("average", x).ndim)
    returned, keepdims = (
        flag("average", returned, "returned"),
        flag("average", keepdims, "keepdims"),
    )
    if weights is None:
        found = mean_of(x, axis=axes, keepdims=keepdims)
        count = x.size // max(found.size, 1)
        ones = apply(ops.EQUAL, (found, found)) if returned else found
        total = apply(ops.WHERE, (ones, float(count), float(count))) if returned else found
        return (found, cast(total, found.dtype)) if returned else found
    w = weights if isinstance(weights, Tensor) else beside("average", weights, (x,))
    d, work = _float(x, w), _working(x, w)
    wide = _spread_weights(x, cast(w, work if w.dtype.kind == "c" else work.part), axes)
    total = sum_of(wide, axis=axes, keepdims=keepdims)
    product = apply(ops.MULTIPLY, (cast(x, work), wide))
    found = cast(apply(ops.DIVIDE, (sum_of(product, axis=axes, keepdims=keepdims), total)), d)
    return (found, cast(total, d)) if returned else found


def _float(*given: Tensor) -> DType:
    """Return the float dtype of a result; integers give float32, whether or not they meet."""
    if all(x.dtype.kind not in "fc" for x in given):
        return float32
    return result_type(*given)


def _working(*given: Tensor) -> DType:
    """Return the dtype in which all of them are computed."""
    return result_type(*[working_float(x.dtype) for x in given])


def _spread_weights(x: Tensor, w: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return the weight of every element; those of some axes come in the order of the axes."""
    if w.shape == x.shape:
        return w
    if w.shape != tuple(x.shape[d] for d in axes):
        raise ShapeError(f"average: weights of shape {w.shape} for axis {axes} of shape {x.shape}")
    w = view(w, ("permute", tuple(sorted(range(len(axes)), key=axes.__getitem__))))
    column = tuple(n if d in axes else 1 for d, n in enumerate(x.shape))
    return broadcast_to(view(w, ("reshape", column)), x.shape)


@into
def cov(
    x: Tensor, y: Array | None = None, /, *, rowvar: bool = True, correction: float = 1.0,
    fweights: Array | None = None, aweights: Array | None = None, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The covariance matrix of variables, of which each row of `x` has the observations.

    `y`: more variables. `rowvar`: False has a variable in each column. `correction`: c in the
    divisor n - c; NumPy's `ddof`, and with 0 its `bias=True`. `fweights`: how often each
    observation counts; `aweights`: how much.
    Shapes: of at most 2 dimensions; a vector is one variable. Gives (variables, variables), and ()
    for one.
    Dtypes: all; integers and bool give float32. Of complex numbers the second one is conjugated.
    Order: of the products that of `matmul`, unless within `dt.reproducible()`.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError for a `correction` that is no number.

    >>> import dovetail as dt
    >>> dt.cov(dt.asarray([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]], device="reference")).tolist()
    [[1.0, -2.0], [-2.0, 4.0]]
    """
    given = {"fweights": fweights, "aweights": aweights}
    parts, c = _parts("cov", x, y), real("cov", correction, "correction")
    return _rounded(_covariance("cov", parts, rowvar, c, given), parts)


def _parts(op: str, x: Tensor, y: Array | None) -> tuple[Tensor, ...]:
    """Return the tensors of which each has some of the variables."""
    x = strided(op, x)
    return (x,) if y is None else (x, y if isinstance(y, Tensor) else beside(op, y, (x,)))


def _variables(op: str, parts: Sequence[Tensor], rowvar: bool) -> Tensor:
    """Return a matrix with a variable in each row, in the dtype in which it is computed."""
    rowvar = flag(op, rowvar, "rowvar")
    rows, work = [], _working(*parts)
    for part in parts:
        if part.ndim > 2:
            raise ShapeError(f"{op}: needs a matrix or a vector, not shape {part.shape}")
        if part.ndim < 2:
            rows.append(view(part, ("reshape", (1, part.size))))
        else:  # a row as `y` is one variable, as in NumPy
            kept = rowvar or (len(rows) == 1 and part.shape[0] == 1)
            rows.append(part if kept else part.mT)
    rows = [cast(part, work) for part in rows]
    return rows[0] if len(rows) == 1 else concat(rows, axis=0)


def _covariance(
    op: str, parts: Sequence[Tensor], rowvar: bool, correction: float,
    weights: dict[str, Array | None],
) -> Tensor:  # fmt: skip
    rows = _variables(op, parts, rowvar)
    n = rows.shape[1]
    given = {k: _weights(op, k, w, rows) for k, w in weights.items() if w is not None}
    w = None
    for part in given.values():
        w = part if w is None else w * part
    if w is None:
        away = rows - mean_of(rows, axis=1, keepdims=True)
        left = n - correction
        return matmul(away, conjugate(away).mT) / (left if left > 0 else 0.0)
    total = sum_of(w)
    away = rows - sum_of(rows * w, axis=1, keepdims=True) / total
    divisor = total
    if correction:
        aw = given.get("aweights")
        share = 1.0 if aw is None else sum_of(w * aw) / total
        divisor = total - share * correction
    divisor = apply(ops.MAXIMUM, (divisor, 0.0))
    return matmul(away, conjugate(away * w).mT) / divisor


def _weights(op: str, name: str, w: Array, rows: Tensor) -> Tensor:
    found = w if isinstance(w, Tensor) else beside(op, w, (rows,))
    if found.shape != (rows.shape[1],):
        raise ShapeError(f"{op}: {name} of shape {found.shape} for {rows.shape[1]} observations")
    if name == "fweights" and found.dtype.kind == "f":
        raise ArgumentError(f"{op}: fweights are integers, not {found.dtype.name}; see aweights")
    return cast(found, rows.dtype.part)


@into
def corrcoef(
    x: Tensor, y: Array | None = None, /, *, rowvar: bool = True, out: Tensor | None = None
) -> Tensor:
    """The correlation coefficients of variables: `cov`, divided by both standard deviations.

    `y`: more variables. `rowvar`: False has a variable in each column.
    Shapes: of at most 2 dimensions; a vector is one variable. Gives (variables, variables), and ()
    for one.
    Dtypes: all; integers and bool give float32.
    Order: of the products that of `matmul`, unless within `dt.reproducible()`.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.corrcoef(dt.asarray([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]], device="reference")).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    parts = _parts("corrcoef", x, y)
    c = _covariance("corrcoef", parts, rowvar, 1.0, {})
    scale = apply(ops.SQRT, (apply(ops.REAL, (diagonal(c),)),))
    n = scale.shape[0]
    row, column = view(scale, ("reshape", (1, n))), view(scale, ("reshape", (n, 1)))
    return _rounded(_within_one(c / column / row), parts)


def _rounded(found: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """Return a matrix in the float of its variables; that of one variable as a number."""
    made = cast(found, _float(*parts))
    return view(made, ("reshape", ())) if made.shape == (1, 1) else made


def _within_one(x: Tensor) -> Tensor:
    """Rounding put right: real numbers, and parts of complex ones, from -1 to 1."""
    if x.dtype.kind != "c":
        return apply(ops.CLIP, (x, -1.0, 1.0))
    parts = [apply(ops.CLIP, (apply(part, (x,)), -1.0, 1.0)) for part in (ops.REAL, ops.IMAG)]
    return parts[0] + parts[1] * 1j
