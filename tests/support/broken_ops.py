"""User ops with one error each: `dovetail test-op` must detect every one."""

from __future__ import annotations

from itertools import count
from typing import Any

import dovetail as dt
import numpy as np

PAIR = [(np.linspace(0.5, 2.0, 12).reshape(3, 4), np.linspace(1.0, 2.0, 12).reshape(3, 4) ** 2)]
ONE = [np.linspace(0.5, 2.0, 12).reshape(3, 4)]
_calls = count()


def op(function: Any = None, /, *, gradient: Any = None, examples: Any = ONE) -> Any:
    """Return a custom op."""
    if function is None:
        return lambda f: op(f, gradient=gradient, examples=examples)
    return dt.custom_op("lying", function, gradient=gradient, examples=examples)


@op
def honest(x: Any) -> Any:
    return x * dt.exp(-x)


@dt.elementwise
def honest_numbers(x: Any, y: Any) -> Any:
    return x * dt.exp(-y)


@op
def another_each_time(x: Any) -> Any:
    return x + next(_calls) * 1e-3


@op
def writes_its_operand(x: Any) -> Any:
    x += 1.0
    return x * 2


@op
def no_tensor(x: Any) -> Any:
    return 3.0


@op
def always_float32(x: Any) -> Any:
    return x.astype(dt.float32) * 2


@op
def rough_in_float32(x: Any) -> Any:
    return x * 2 if x.dtype is not dt.float32 else dt.floor(x) * 2


@op
def blind_to_strides(x: Any) -> Any:
    """Read memory from the first element on, ignoring strides."""
    flat = dt.as_strided(x, x.shape, tuple(np.cumprod((1, *x.shape[:0:-1]))[::-1].tolist()))
    return flat * 2


@op(examples=PAIR)
def broadcasts_wrongly(x: Any, y: Any) -> Any:
    return x + y if x.shape == y.shape else x + dt.flip(dt.broadcast_to(y, x.shape), axis=1)


@op
def another_on_the_cpu(x: Any) -> Any:
    return x * (2.0 if x.device.type == "reference" else 2.0000002)


@op
def another_when_captured(x: Any) -> Any:
    return x * float(np.asarray(x).reshape(-1)[0])


@op(gradient=lambda g, x: g * 2 * x)
def wrong_gradient(x: Any) -> Any:
    return x * x * x


@op(gradient=lambda g, x: (g, g))
def two_gradients(x: Any) -> Any:
    return x * 1.0


@op(gradient=lambda g, x: (g * 2 * x).sum(axis=0))
def gradient_of_another_shape(x: Any) -> Any:
    return x * x


@op(gradient=lambda g, x: (g * 2 * x).astype(dt.float32))
def gradient_of_another_dtype(x: Any) -> Any:
    return x * x


@op(gradient=lambda g, x: g * 2 * x.detach())
def gradient_without_a_gradient(x: Any) -> Any:
    return x * x


@op(gradient=lambda g, x: g * (2.0 if x.device.type == "reference" else 2.0000002))
def gradient_by_device(x: Any) -> Any:
    return x * 2.0


@dt.elementwise(gradient=lambda g, x: g * x)
def wrong_gradient_of_numbers(x: Any) -> Any:
    return x * x


@op
def out_of_nothing(x: Any) -> Any:
    """Fail for other values than the first."""
    return dt.take(x, dt.asarray([99], device=x.device), axis=0)


# The check that each must fail.
BROKEN = {
    "another_each_time": "values", "writes_its_operand": "values", "no_tensor": "values",
    "always_float32": "dtypes", "rough_in_float32": "dtypes", "blind_to_strides": "layouts",
    "broadcasts_wrongly": "shapes", "another_on_the_cpu": "devices",
    "another_when_captured": "captured",
    "wrong_gradient": "gradient", "two_gradients": "gradient",
    "gradient_of_another_shape": "gradient", "gradient_of_another_dtype": "gradient",
    "gradient_without_a_gradient": "gradients of gradients", "gradient_by_device": "gradient bits",
    "wrong_gradient_of_numbers": "gradient", "out_of_nothing": "values",
}  # fmt: skip
