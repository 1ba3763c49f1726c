"""Comparison of gradients with central differences; every gradient rule is tested with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ..argument_checks import flag, real
from ..argument_checks import function as callable_
from ..declarations import public
from ..dtypes import complex128, float64
from ..errors import DTypeError, GradientError
from ..functions.creation.from_values import asarray
from ..tensor.tensor import Tensor, required
from .engine import Tensors, detach, grad, requires_grad_

Array: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
_DOUBLE_DTYPES = (float64, complex128)
Function: TypeAlias = Callable[..., object]  # of tensors and others, to one or several tensors


@public(widen=False)
def gradcheck(
    function: Function,
    inputs: Tensors,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Return True if a function's gradients agree with central differences, else raise an error.

    - `function`: a function from tensors to tensors.
    - `inputs`: its arguments; others than tensors are passed on.
    - `eps`: the step of the differences.
    - `atol`, `rtol`: the absolute and the relative tolerance of a difference.
    - `raise_exception`: False returns False instead of an error.

    Shapes: any; the function is called twice for each element.
    Dtypes: inputs that require a gradient are float64 or complex128, whose parts vary alone.
    Raises: GradientError with the worst element, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0], dtype=dt.float64).requires_grad_()
    >>> dt.autograd.gradcheck(dt.tanh, x)
    True
    """
    callable_("gradcheck", function)
    eps, atol, rtol = (
        real("gradcheck", v, name) for v, name in ((eps, "eps"), (atol, "atol"), (rtol, "rtol"))
    )
    raise_exception = flag("gradcheck", raise_exception, "raise_exception")
    args: list[Any] = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    wanted = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
    if not wanted or any(args[i].dtype not in _DOUBLE_DTYPES for i in wanted):
        raise DTypeError("gradcheck: inputs must be float64 or complex128 and require a gradient")
    outputs = _tensor_list("gradcheck", function(*args))
    for o, out in enumerate(outputs):
        if not out.requires_grad:
            continue
        jacobians = _analytic_jacobian(out, [args[i] for i in wanted])
        for i, have in zip(wanted, jacobians, strict=True):
            want = _numeric_jacobian(function, args, i, o, eps)
            if not np.isclose(have, want, rtol=rtol, atol=atol).all():
                if raise_exception:
                    raise GradientError(_format_mismatch(o, i, have, want))
                return False
    return True


@public(widen=False)
def gradgradcheck(
    function: Function,
    inputs: Tensors,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Return True if second derivatives agree with central differences, else raise an error.

    They are taken with respect to inputs and incoming gradients.

    - `function`: a function from tensors to tensors.
    - `inputs`: its arguments; others than tensors are passed on.
    - `eps`: the step of the differences.
    - `atol`, `rtol`: the absolute and the relative tolerance of a difference.
    - `raise_exception`: False returns False instead of an error.

    Shapes: any; the function is called twice for each element.
    Dtypes: inputs that require a gradient are float64 or complex128, whose parts vary alone.
    Raises: GradientError with the worst element, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0], dtype=dt.float64).requires_grad_()
    >>> dt.autograd.gradgradcheck(dt.tanh, x)
    True
    """
    callable_("gradgradcheck", function)
    args: list[Any] = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    wanted = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
    rng = np.random.default_rng(0)
    weights = [
        requires_grad_(asarray(_as_elements(rng.normal(size=_count_reals(t)), t), device=t.device))
        for t in _tensor_list("gradgradcheck", function(*args))
        if t.requires_grad
    ]

    def first(*values: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of the function, as a function of its arguments and the weights."""
        points, ws = values[: len(args)], values[len(args) :]
        outs = [t for t in _tensor_list("gradgradcheck", function(*points)) if t.requires_grad]
        grads = grad(outs, [points[i] for i in wanted], ws, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        first, [*args, *weights], eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception
    )


def _tensor_list(op: str, outputs: object) -> list[Tensor]:
    """Return one output or a sequence of outputs as a list. Raises: DTypeError for no tensor."""
    return [required(op, t) for t in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]


def _analytic_jacobian(out: Tensor, inputs: list[Tensor]) -> list[Array]:
    """Return a Jacobian (reals of `out`, reals of the input) for each input, row by row."""
    rows: list[list[Array]] = [[] for _ in inputs]
    for k in range(_count_reals(out)):
        unit = np.zeros(_count_reals(out))
        unit[k] = 1.0
        g = asarray(_as_elements(unit, out), device=out.device)
        grads = grad(out, inputs, g, retain_graph=True, allow_unused=True)
        for row, part, t in zip(rows, grads, inputs, strict=True):
            row.append(np.zeros(_count_reals(t)) if part is None else _flatten_reals(part))
    return [
        np.array(r).reshape(_count_reals(out), _count_reals(t))
        for r, t in zip(rows, inputs, strict=True)
    ]


def _count_reals(t: Tensor) -> int:
    """Return the number of real numbers of a tensor: two for each complex element."""
    return t.size * (2 if t.dtype.kind == "c" else 1)


def _flatten_reals(t: Tensor) -> Array:
    """Return the real numbers that a tensor holds; a complex element gives two."""
    return np.array(t.numpy()).reshape(-1).view(np.float64)


def _as_elements(flat: Array, like: Tensor) -> np.ndarray:
    """Return real numbers as an array of the shape and kind of a tensor."""
    dtype = np.complex128 if like.dtype.kind == "c" else np.float64
    return flat.view(dtype).reshape(like.shape)


def _numeric_jacobian(function: Function, args: list[Any], i: int, o: int, eps: float) -> Array:
    """Return the Jacobian (reals of output `o`, reals of input `i`) from central differences."""
    at = _flatten_reals(args[i])
    columns = []
    for k in range(at.size):
        sides = []
        for step in (eps, -eps):
            point = at.copy()
            point[k] += step
            sides.append(_run_at(function, args, i, o, point))
        columns.append((sides[0] - sides[1]) / (2 * eps))
    size = columns[0].size if columns else _run_at(function, args, i, o, at).size
    return np.array(columns).reshape(at.size, size).T


def _run_at(function: Function, args: list[Any], i: int, o: int, at: Array) -> Array:
    """Run the function with the elements of input `i` replaced by `at`; return output `o`, flat.

    The arguments become new leaves, because the function may take gradients itself.
    """
    values = [detach(a) if isinstance(a, Tensor) else a for a in args]
    values[i] = asarray(_as_elements(at, args[i]), device=args[i].device)
    for k, a in enumerate(args):
        if isinstance(a, Tensor) and a.requires_grad:
            requires_grad_(values[k])
    return _flatten_reals(_tensor_list("gradcheck", function(*values))[o])


def _format_mismatch(o: int, i: int, have: Array, want: Array) -> str:
    """Return the error text for the element with the largest difference; NaN is the largest."""
    with np.errstate(invalid="ignore"):  # equal infinities: their difference is NaN
        away = np.where(have == want, 0.0, np.abs(have - want))
    away[np.isnan(away)] = np.inf
    row, column = np.unravel_index(np.argmax(away), away.shape)
    return (
        f"gradcheck: the derivative of output {o} (element {row}) by input {i} (element {column}) "
        f"is {have[row, column]}, but differences give {want[row, column]}"
    )
