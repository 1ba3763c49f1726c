"""JAX's names and meanings for tensors: `import dovetail.jax as jax`.

Programs of JAX run after a change of their imports. `jax.numpy` and `jax.lax` have 32-bit dtypes
as results (unless `jax.config.update("jax_enable_x64", True)`), `jax.random` the numbers of JAX's
keys, and `jax.jit` takes numbers as tensors. Arrays are `dt.Tensor`; their methods are dovetail's.
docs/from-jax.md has the differences.
"""

from __future__ import annotations

import dovetail as dt

from . import flatten_util, lax, nn, numpy, ops, random, scipy, tree, tree_util
from .dtype_config import config
from .transforms import (
    block_until_ready,
    checkpoint,
    device_get,
    device_put,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    linearize,
    remat,
    value_and_grad,
    vjp,
    vmap,
)

__all__ = [
    "Array",
    "block_until_ready",
    "checkpoint",
    "config",
    "device_get",
    "device_put",
    "devices",
    "flatten_util",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linearize",
    "nn",
    "numpy",
    "ops",
    "random",
    "remat",
    "scipy",
    "tree",
    "tree_util",
    "value_and_grad",
    "vjp",
    "vmap",
]

Array = dt.Tensor
devices = dt.devices


def __dir__() -> list[str]:
    return __all__
