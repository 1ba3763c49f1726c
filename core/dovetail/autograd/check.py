"""Gradients against differences: what every rule is tested with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ..arguments import flag, named, real
from ..arguments import function as callable_
from ..dtypes import complex128, float64
from ..errors import DTypeError, GradientError
from ..functions.creation.from_values import asarray
from ..tensor.tensor import Tensor, required
from .engine import Tensors, detach, grad, requires_grad_

Array: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
_WIDE = (float64, complex128)
Function: TypeAlias = Callable[..., object]  # of tensors and others, to one or several tensors


@named(widen=False)
def gradcheck(
    function: Function, inputs: Tensors, *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True,
) -> bool:  # fmt: skip
    """Whether the gradients of a function agree with central differences.

    `function`: from tensors to tensors. `inputs`: its arguments; others than tensors are passed on.
    `eps`: the step of the differences. `atol`, `rtol`: what they may differ by.
    `raise_exception`: False returns False instead of an error.
    Shapes: any; the function is called twice for each element.
    Dtypes: inputs that require a gradient are float64 or complex128, whose parts vary alone.
    Raises: GradientError with the worst element, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0], dtype=dt.float64, device="reference").requires_grad_()
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
    if not wanted or any(args[i].dtype not in _WIDE for i in wanted):
        raise DTypeError("gradcheck: needs float64 or complex128 inputs that require a gradient")
    outputs = _listed("gradcheck", function(*args))
    for o, out in enumerate(outputs):
        if not out.requires_grad:
            continue
        found = _analytic(out, [args[i] for i in wanted])
        for i, have in zip(wanted, found, strict=True):
            want = _differences(function, args, i, o, eps)
            bad = np.abs(have - want) > atol + rtol * np.abs(want)
            if bad.any() or np.isnan(have).any():
                if raise_exception:
                    raise GradientError(_report(o, i, have, want))
                return False
    return True


@named(widen=False)
def gradgradcheck(
    function: Function, inputs: Tensors, *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True,
) -> bool:  # fmt: skip
    """Whether the gradients of a function's gradients agree with central differences.

    They are those with respect to inputs and incoming gradients.
    `function`: from tensors to tensors. `inputs`: its arguments; others than tensors are passed on.
    `eps`: the step of the differences. `atol`, `rtol`: what they may differ by.
    `raise_exception`: False returns False instead of an error.
    Shapes: any; the function is called twice for each element.
    Dtypes: inputs that require a gradient are float64 or complex128, whose parts vary alone.
    Raises: GradientError with the worst element, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0], dtype=dt.float64, device="reference").requires_grad_()
    >>> dt.autograd.gradgradcheck(dt.tanh, x)
    True
    """
    callable_("gradgradcheck", function)
    args: list[Any] = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    wanted = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
    rng = np.random.default_rng(0)
    weights = [
        requires_grad_(asarray(_shaped(rng.normal(size=_count(t)), t), device=t.device))
        for t in _listed("gradgradcheck", function(*args)) if t.requires_grad
    ]  # fmt: skip

    def first(*given: Tensor) -> tuple[Tensor, ...]:
        points, ws = given[: len(args)], given[len(args) :]
        outs = [t for t in _listed("gradgradcheck", function(*points)) if t.requires_grad]
        found = grad(outs, [points[i] for i in wanted], ws, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(first, [*args, *weights], eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception)  # fmt: skip


def _listed(op: str, made: object) -> list[Tensor]:
    return [required(op, t) for t in (made if isinstance(made, (list, tuple)) else [made])]


def _analytic(out: Tensor, inputs: list[Tensor]) -> list[Array]:
    """The Jacobians, (elements of out, elements of the input) each."""
    rows: list[list[Array]] = [[] for _ in inputs]
    for k in range(_count(out)):
        unit = np.zeros(_count(out))
        unit[k] = 1.0
        g = asarray(_shaped(unit, out), device=out.device)
        found = grad(out, inputs, g, retain_graph=True, allow_unused=True)
        for row, part, t in zip(rows, found, inputs, strict=True):
            row.append(np.zeros(_count(t)) if part is None else _flat(part))
    return [np.array(r).reshape(_count(out), _count(t)) for r, t in zip(rows, inputs, strict=True)]


def _count(t: Tensor) -> int:
    """How many real numbers a tensor holds."""
    return t.size * (2 if t.dtype.kind == "c" else 1)


def _flat(t: Tensor) -> Array:
    """The real numbers that a tensor holds: of complex ones their parts."""
    return np.array(t.numpy()).reshape(-1).view(np.float64)


def _shaped(flat: Array, like: Tensor) -> np.ndarray:
    """Real numbers as the elements of a tensor."""
    held = np.complex128 if like.dtype.kind == "c" else np.float64
    return flat.view(held).reshape(like.shape)


def _differences(function: Function, args: list[Any], i: int, o: int, eps: float) -> Array:
    at = _flat(args[i])
    columns = []
    for k in range(at.size):
        sides = []
        for step in (eps, -eps):
            moved = at.copy()
            moved[k] += step
            sides.append(_value(function, args, i, o, moved))
        columns.append((sides[0] - sides[1]) / (2 * eps))
    size = columns[0].size if columns else _value(function, args, i, o, at).size
    return np.array(columns).reshape(at.size, size).T


def _value(function: Function, args: list[Any], i: int, o: int, at: Array) -> Array:
    """The result at another point; leaves again, since a function may take gradients itself."""
    given = [detach(a) if isinstance(a, Tensor) else a for a in args]
    given[i] = asarray(_shaped(at, args[i]), device=args[i].device)
    for k, a in enumerate(args):
        if isinstance(a, Tensor) and a.requires_grad:
            requires_grad_(given[k])
    return _flat(_listed("gradcheck", function(*given))[o])


def _report(o: int, i: int, have: Array, want: Array) -> str:
    away = np.where(np.isnan(have), np.inf, np.abs(have - want))
    row, column = np.unravel_index(np.argmax(away), away.shape)
    return (
        f"gradcheck: the derivative of output {o} (element {row}) by input {i} (element {column}) "
        f"is {have[row, column]}, but differences give {want[row, column]}"
    )
