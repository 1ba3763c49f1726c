"""The functions of `jax.nn`."""

from __future__ import annotations

from typing import Any

import dovetail as dt

from .dtype_config import as_tensor
from .lookup import make_module_dir, make_module_getattr, table

__all__ = ["gelu", "log_softmax", "one_hot", "softmax", "standardize"]

_NAMES = table("relu sigmoid tanh logsumexp identity=asarray") | {
    name: f"nn.functional.{ours}"
    for name, ours in table("""
        celu elu glu hard_sigmoid=hardsigmoid hard_silu=hardswish hard_swish=hardswish
        hard_tanh=hardtanh leaky_relu log_sigmoid=logsigmoid mish relu6 selu silu softplus
        soft_sign=softsign swish=silu
    """).items()
}
__getattr__ = make_module_getattr(globals(), _NAMES)
__dir__ = make_module_dir(globals(), _NAMES)


def softmax(x: Any, axis: int = -1) -> dt.Tensor:
    """Return the exponentials along an axis, divided by their sum.

    - `x`: a tensor.
    - `axis`: the axis of the sum.

    >>> import dovetail.jax as jax
    >>> jax.nn.softmax(jax.numpy.zeros(2)).tolist()
    [0.5, 0.5]
    """
    return dt.softmax(as_tensor(x), axis=axis)


def log_softmax(x: Any, axis: int = -1) -> dt.Tensor:
    """Return the logarithm of `softmax`.

    - `x`: a tensor.
    - `axis`: the axis of the sum.

    >>> import dovetail.jax as jax
    >>> jax.nn.log_softmax(jax.numpy.zeros((2, 1))).tolist()
    [[0.0], [0.0]]
    """
    return dt.log_softmax(as_tensor(x), axis=axis)


def gelu(x: Any, approximate: bool = True) -> dt.Tensor:
    """Return x times the normal distribution function of x.

    - `x`: a tensor.
    - `approximate`: True uses the hyperbolic tangent.

    >>> import dovetail.jax as jax
    >>> jax.nn.gelu(0.0).item()
    0.0
    """
    mode = "tanh" if approximate else "none"
    return dt.nn.functional.gelu(as_tensor(x), approximate=mode)


def one_hot(x: Any, num_classes: int, *, dtype: Any = dt.float32, axis: int = -1) -> dt.Tensor:
    """Return a tensor with 1 at each index, and 0 elsewhere; zeros for an index out of range.

    - `x`: integers.
    - `num_classes`: the length of the new axis.
    - `dtype`: the dtype of the result.
    - `axis`: the place of the new axis.

    >>> import dovetail.jax as jax
    >>> jax.nn.one_hot([0, 2], 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    x = as_tensor(x)
    classes = dt.arange(num_classes, dtype=x.dtype, device=x.device)
    return dt.moveaxis((x[..., None] == classes).astype(dtype), -1, axis)


def standardize(x: Any, axis: int | tuple[int, ...] = -1, epsilon: float = 1e-5) -> dt.Tensor:
    """Return a tensor with mean 0 and variance 1 along an axis.

    - `x`: a tensor.
    - `axis`: the axis.
    - `epsilon`: is added to the variance.

    >>> import dovetail.jax as jax
    >>> jax.nn.standardize([1.0, 1.0]).tolist()
    [0.0, 0.0]
    """
    values = as_tensor(x)
    centered = values - values.mean(axis=axis, keepdims=True)
    variance = (centered * centered).mean(axis=axis, keepdims=True)
    return centered * dt.rsqrt(variance + epsilon)
