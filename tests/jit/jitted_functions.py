"""Captured functions at module level, which other processes import."""

from __future__ import annotations

import dovetail as dt


@dt.jit
def double(x: dt.Tensor) -> dt.Tensor:
    return x * 2


@dt.jit(static_argnames="n")
def power(x: dt.Tensor, n: float = 2.0) -> dt.Tensor:
    """Raise each element to a power."""
    return x**n if n > 0 else x


def triple(x: dt.Tensor) -> dt.Tensor:
    return x * 3


tripled = dt.jit(triple)


class Scale:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @dt.jit
    def times(self, x: dt.Tensor) -> dt.Tensor:
        return x * self.factor


def captured_values(f: object, values: list[float]) -> list[float]:
    """Call a captured function in another process."""
    made = f(dt.asarray(values, device="reference"))  # type: ignore[operator]
    assert f.captures == 1  # type: ignore[attr-defined]
    return made.tolist()  # type: ignore[no-any-return]


@dt.kernel
def twice(x: dt.In, out: dt.Out) -> None:
    for i in dt.grid(x.shape[0]):
        out[i] = x[i] * 2


@dt.elementwise
def plus_one(x: float) -> float:
    return x + 1


def run_twice(kernel: object, values: list[float]) -> list[float]:
    """Launch a kernel in another process."""
    x = dt.asarray(values, device="reference")
    out = dt.zeros_like(x)
    kernel(x, out)  # type: ignore[operator]
    return out.tolist()  # type: ignore[no-any-return]
