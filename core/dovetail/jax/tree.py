"""The functions of `jax.tree`: those of `dt.tree`, and `reduce`, `all`, `transpose`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import dovetail as dt

__all__ = ["all", "flatten", "leaves", "map", "reduce", "structure", "transpose", "unflatten"]

_tree: Any = dt.tree  # whose types mypy infers later: the packages import each other
flatten, unflatten, structure = _tree.flatten, _tree.unflatten, _tree.structure
leaves, map = _tree.leaves, _tree.map

_NONE = object()


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _NONE,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Return the leaves of a tree combined by `function`, from the first to the last.

    - `function`: takes the result so far and a leaf.
    - `tree`: the tree.
    - `initializer`: the first result.
    - `is_leaf`: a function of a node; True makes a leaf of a container.

    >>> import dovetail.jax as jax
    >>> jax.tree.reduce(lambda a, b: a + b, {"x": 1, "y": [2, 3]})
    6
    """
    first = () if initializer is _NONE else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *first)


def all(tree: Any) -> bool:
    """Return True if all leaves of a tree are true.

    - `tree`: a tree of bools.

    >>> import dovetail.jax as jax
    >>> jax.tree.all([True, {"a": False}])
    False
    """
    return not [leaf for leaf in leaves(tree) if not leaf]


def transpose(outer_treedef: Any, inner_treedef: Any, pytree_to_transpose: Any) -> Any:
    """Return a tree of trees with the two structures exchanged.

    - `outer_treedef`: the structure of the tree.
    - `inner_treedef`: the structure of each of its leaves.
    - `pytree_to_transpose`: the tree.

    >>> import dovetail.jax as jax
    >>> outer, inner = (jax.tree.structure(t) for t in ([0, 0], {"a": 0}))
    >>> jax.tree.transpose(outer, inner, [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    flat = dt.tree.leaves(pytree_to_transpose)
    n = inner_treedef.num_leaves
    return unflatten(inner_treedef, [unflatten(outer_treedef, flat[i::n]) for i in range(n)])
