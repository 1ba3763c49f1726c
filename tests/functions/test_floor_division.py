"""Floor division of special values: the Array API's in `dt`, Python's in other namespaces."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import dovetail as dt
import dovetail.numpy as dnp
import dovetail.torch as torch
import numpy as np
import pytest

INF, NAN = math.inf, math.nan
FINITE = (1.0, 2.5, 3e38)
# The special cases of `floor_divide` in the Array API 2025.12: dividends, divisors, quotient.
STANDARD = [
    ((NAN,), (1.0, INF, NAN, 0.0), NAN),
    ((1.0, INF, 0.0), (NAN,), NAN),
    ((INF, -INF), (INF, -INF), NAN),
    ((0.0, -0.0), (0.0, -0.0), NAN),
    ((0.0,), (*FINITE, INF), 0.0),
    ((-0.0,), (*FINITE, INF), -0.0),
    ((0.0,), (-1.0, -2.5, -INF), -0.0),
    ((-0.0,), (-1.0, -2.5, -INF), 0.0),
    ((*FINITE, INF), (0.0,), INF),
    ((*FINITE, INF), (-0.0,), -INF),
    ((-1.0, -2.5, -INF), (0.0,), -INF),
    ((-1.0, -2.5, -INF), (-0.0,), INF),
    ((INF,), FINITE, INF),
    ((INF,), (-1.0, -2.5), -INF),
    ((-INF,), FINITE, -INF),
    ((-INF,), (-1.0, -2.5), INF),
    (FINITE, (INF,), 0.0),
    (FINITE, (-INF,), -0.0),
    ((-1.0, -2.5), (INF,), -0.0),
    ((-1.0, -2.5), (-INF,), 0.0),
]
PAIRS = [(x, y, q) for xs, ys, q in STANDARD for x in xs for y in ys]
DIVIDENDS, DIVISORS, QUOTIENTS = (np.array(column) for column in zip(*PAIRS, strict=True))


def divide_in_place(x: Any, y: Any) -> Any:
    """Return x after `x //= y`."""
    x = x.copy()
    x //= y
    return x


DIVISIONS: dict[str, Callable[[Any, Any], Any]] = {
    "operator": operator.floordiv,
    "in place": divide_in_place,
    "divmod": lambda x, y: divmod(x, y)[0],
    "jit": dt.jit(operator.floordiv),
    "vmap": dt.vmap(operator.floordiv),
    "scan": lambda x, y: dt.scan(lambda c, r: (c, r[0] // r[1]), dt.zeros(()), (x, y))[1],
    "fused": lambda x, y: (x * 1.0) // (y * 1.0) * 1.0,
}


def assert_same(result: Any, expected: np.ndarray) -> None:
    """Compare values, and signs of zeros."""
    values = np.asarray(result)
    np.testing.assert_array_equal(values, expected)
    sure = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(values)[sure], np.signbit(expected)[sure])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*DIVISIONS, "function", "out", "numbers"])
def test_floor_divide_of_special_values_follows_array_api(name: str, dtype: str) -> None:
    x, y = (dt.asarray(v, dtype=getattr(dt, dtype)) for v in (DIVIDENDS, DIVISORS))
    if name == "function":
        result = dt.floor_divide(x, y)
    elif name == "out":
        result = dt.floor_divide(x, y, out=dt.zeros_like(x))
    elif name == "numbers":
        result = dt.stack([a // float(b) for a, b in zip(x, DIVISORS, strict=True)])
        assert_same([(float(a) // b).item() for a, b in zip(DIVIDENDS, y, strict=True)], QUOTIENTS)
    else:
        result = DIVISIONS[name](x, y)
    assert_same(result.numpy(), QUOTIENTS)


def divide_torch_in_place(x: Any, y: Any) -> Any:
    """Return x after `x.floor_divide_(y)`."""
    return x.clone().floor_divide_(y)


FUNCTIONS: dict[str, dict[str, Callable[[Any, Any], Any]]] = {
    "numpy": {
        "function": dnp.floor_divide,
        "ufunc": lambda x, y: np.floor_divide(x, y),
        "function divmod": lambda x, y: dnp.divmod(x, y)[0],
        "out": lambda x, y: dnp.floor_divide(x, y, out=dnp.zeros_like(x)),
        "list": lambda x, y: x // y.tolist() if x.dtype == "float64" else x // y,
        "host array": lambda x, y: x // np.asarray(y),
        "reflected": lambda x, y: np.asarray(x) // y,
    },
    "torch": {
        "function": torch.floor_divide,
        "out": lambda x, y: torch.floor_divide(x, y, out=torch.zeros_like(x)),
        "method": lambda x, y: x.floor_divide(y),
        "method in place": divide_torch_in_place,
        "div": lambda x, y: torch.div(x, y, rounding_mode="floor"),
        "numbers": lambda x, y: torch.stack([a // b.item() for a, b in zip(x, y, strict=True)]),
        "reflected": lambda x, y: torch.stack(
            [a.item() // b for a, b in zip(x, y.to(x.dtype), strict=True)]
        ),
    },
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("space", "name"), [(s, n) for s, own in FUNCTIONS.items() for n in (*DIVISIONS, *own)]
)
def test_floor_divide_of_other_namespaces_follows_numpy(space: str, name: str, dtype: str) -> None:
    a, b = DIVIDENDS.astype(dtype), DIVISORS.astype(dtype)
    create = dnp.array if space == "numpy" else torch.tensor
    with np.errstate(all="ignore"):
        expected = a // b
    result = {**DIVISIONS, **FUNCTIONS[space]}[name](create(a), create(b))
    assert result.dtype == getattr(dt, dtype)
    assert_same(result.numpy(), expected)


def test_floor_divide_of_torch_raises_with_name_of_function() -> None:
    with pytest.raises(dt.ShapeError, match=r"^floor_divide: "):
        torch.zeros(2) // torch.zeros(3)
    with pytest.raises(dt.DTypeError, match=r"^floor_divide: "):
        torch.zeros(2) // "a"
