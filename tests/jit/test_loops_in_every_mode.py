"""`fori_loop` and `scan` equal a Python loop: plain, eager, captured and with gradients.

Each combination of a loop, its bounds or xs, the writes of its body and the differentiated argument
is compared with the same loop in Python: values, gradients, and the arguments afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from control_flow_in_python import PYTHON
from dovetail.capture.pytree import flatten

MODES = ["plain", "eager", "jit", "vmap", "jit vmap"]


def new_value(i: Any, h: Any, row: Any) -> Any:
    return h * 0.5 + i + row, h


def write_to_carry(i: Any, h: Any, row: Any) -> Any:
    h += row
    return h, h * i


def write_to_carry_view(i: Any, h: Any, row: Any) -> Any:
    h[1:3] += row[::-1][:2]
    return h, h[::-1]


def write_to_row(i: Any, h: Any, row: Any) -> Any:
    row *= 2
    row[0] = 7.0
    return h + row, row


def give_back(i: Any, h: Any, row: Any) -> Any:
    return h, row


BODIES: dict[str, Callable[[Any, Any, Any], Any]] = {
    f.__name__: f for f in (new_value, write_to_carry, write_to_carry_view, write_to_row, give_back)
}

Xs = Callable[[Any], Any]
XS: dict[str, Xs] = {
    "contiguous": lambda xs: xs * 1,
    "every second row": lambda xs: xs[::2],
    "from the last row on": lambda xs: xs[::-1],
    "columns": lambda xs: xs.T[:, :4] if xs.shape[0] == 4 else xs[:4].T,
    "the same row each time": lambda xs: dt.broadcast_to(xs[0], (3, 4)),
    "overlapping rows": lambda xs: dt.as_strided(xs * 1, (3, 4), (2, 1)),
}


def given() -> tuple[dt.Tensor, dt.Tensor]:
    rng = np.random.default_rng(1)
    h, xs = rng.integers(-4, 5, (2, 4)), rng.integers(-4, 5, (2, 6, 4))
    return dt.asarray(h.astype("f4")), dt.asarray(xs.astype("f4"))


def run(mode: str, f: Callable[..., Any], h: Any, xs: Any) -> Any:
    """Return the result of a function for the first example, and the arguments afterwards."""
    if "vmap" not in mode:
        h, xs = h[0] * 1, xs[0] * 1
    else:
        h, xs = h * 1, xs * 1
    dt.evaluate(h, xs)
    f = dt.vmap(f) if "vmap" in mode else f
    f = dt.jit(f) if "jit" in mode else f
    with dt.eager() if mode == "eager" else nullcontext():
        made = f(h, xs)
        leaves = [*flatten(made).leaves, h, xs]
        return [(t[0] if "vmap" in mode else t).tolist() for t in leaves]


def differentiated(f: Callable[..., Any]) -> Callable[..., Any]:
    def total(h: Any, xs: Any) -> Any:
        leaves = flatten(f(h, xs)).leaves
        return sum((t * dt.arange(1.0, 1.0 + t.size).reshape(t.shape)).sum() for t in leaves)

    return lambda h, xs: dt.func.grad(total, argnums=(0, 1))(h, xs)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("rows", XS)
@pytest.mark.parametrize("name", BODIES)
def test_scan_in_every_mode_equals_a_python_loop(
    name: str, rows: str, reverse: bool, mode: str, gradient: bool, device: dt.Device
) -> None:
    def loop(c: Any) -> Callable[..., Any]:
        def f(h: Any, xs: Any) -> Any:
            step = lambda h, row: BODIES[name](2.0, h, row)  # noqa: E731
            return c.scan(step, h, XS[rows](xs), reverse=reverse)

        return differentiated(f) if gradient else f

    assert run(mode, loop(dt), *given()) == run("plain", loop(PYTHON), *given())


BOUNDS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "ints": lambda n: (1, 4),
    "no iterations": lambda n: (2, 2),
    "negative": lambda n: (-3, -1),
    "upper below lower": lambda n: (3, 0),
    "tensor": lambda n: (0, n * 3),
    "both tensors": lambda n: (n, n + 2),
    "upper tensor below lower": lambda n: (3, n - 3),
    "int32 tensor": lambda n: (0, n.astype(dt.int32) * 2),
}


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("name", ["new_value", "write_to_carry", "write_to_carry_view"])
def test_fori_loop_in_every_mode_equals_a_python_loop(
    name: str, bounds: str, mode: str, gradient: bool, device: dt.Device
) -> None:
    def loop(c: Any) -> Callable[..., Any]:
        def f(h: Any, xs: Any) -> Any:
            low, high = BOUNDS[bounds](dt.asarray(1))
            return c.fori_loop(low, high, lambda i, h: BODIES[name](i, h, xs[1])[0], h)

        return differentiated(f) if gradient else f

    if gradient and "tensor" in bounds and mode != "vmap":
        with pytest.raises(dt.GradientError, match="bounds must be ints"):
            run(mode, loop(dt), *given())
        return
    assert run(mode, loop(dt), *given()) == run("plain", loop(PYTHON), *given())
