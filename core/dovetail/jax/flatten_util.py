"""The function of `jax.flatten_util`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt

from .dtype_config import as_tensor

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[dt.Tensor, Callable[[dt.Tensor], Any]]:
    """Return the elements of all leaves as one vector, and a function that builds the tree again.

    - `pytree`: a tree of tensors and numbers.

    >>> import dovetail.jax as jax
    >>> flat, unravel = jax.flatten_util.ravel_pytree({"a": [1.0, 2.0]})
    >>> flat.tolist(), unravel(2 * flat)["a"][1].item()
    ([1.0, 2.0], 4.0)
    """
    leaves, treedef = dt.tree.flatten(pytree)
    tensors = [as_tensor(leaf) for leaf in leaves]
    flat = dt.concat([x.reshape(-1) for x in tensors]) if tensors else dt.zeros(0)

    def unravel(vector: dt.Tensor) -> Any:
        """Return the tree with the elements of a vector."""
        new_leaves, start = [], 0
        for x in tensors:
            part = vector[start : start + x.size].reshape(x.shape)
            new_leaves.append(part.astype(x.dtype))
            start += x.size
        return dt.tree.unflatten(treedef, new_leaves)

    return flat, unravel
