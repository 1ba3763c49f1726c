"""Nested containers of tensors (pytrees), under the names of `jax.tree`.

A tree is a tuple, list, dict, named tuple, dataclass that is registered with optree, or another of
its containers; None is an empty tree, and every other object a leaf. `dt.jit`, `dt.vmap` and
`dt.grad` take their arguments apart by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from .argument_checks import function as require_function
from .argument_checks import refused
from .declarations import public
from .errors import ArgumentError

__all__ = ["flatten", "leaves", "map", "structure", "unflatten"]

IsLeaf: TypeAlias = Callable[[Any], bool] | None


def __dir__() -> list[str]:
    return __all__


@public(widen=False)
def map(f: Callable[..., Any], tree: Any, *others: Any, is_leaf: IsLeaf = None) -> Any:
    """Return a tree of the results of `f` on the leaves of a tree, and of others of its structure.

    - `f`: is called with one leaf of each tree, in the order of the leaves.
    - `others`: trees of the same structure; below a leaf of `tree` they may have whole branches.
    - `is_leaf`: a function of a node; True makes a leaf of a container.

    Raises: ArgumentError if the trees have different structures.
    See also: `leaves`, `flatten`.

    >>> import dovetail as dt
    >>> dt.tree.map(lambda w, g: w - 0.5 * g, {"w": 3.0, "b": (1.0,)}, {"w": 2.0, "b": (0.0,)})
    {'w': 2.0, 'b': (1.0,)}
    """
    import optree  # here, so that `import dovetail` stays light

    require_function("map", f, "f")
    first, shape = optree.tree_flatten(tree, is_leaf=is_leaf)
    try:
        parts_of_others = [shape.flatten_up_to(other) for other in others]
    except ValueError as error:
        raise ArgumentError(f"tree.map: the trees must have one structure: {error}") from None
    return shape.unflatten([f(*parts) for parts in zip(first, *parts_of_others, strict=True)])


@public(widen=False)
def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a tree as a list; those of a dict in the order of its sorted keys.

    - `is_leaf`: a function of a node; True makes a leaf of a container.

    See also: `flatten`, `map`.

    >>> import dovetail as dt
    >>> dt.tree.leaves({"b": [1, None], "a": 2})
    [2, 1]
    """
    import optree

    return optree.tree_leaves(tree, is_leaf=is_leaf)


@public(widen=False)
def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], Any]:
    """Return the leaves of a tree and its structure, from which `unflatten` builds it again.

    - `is_leaf`: a function of a node; True makes a leaf of a container.

    See also: `unflatten`, `leaves`, `structure`.

    >>> import dovetail as dt
    >>> leaves, treedef = dt.tree.flatten((1, [2, 3]))
    >>> leaves, dt.tree.unflatten(treedef, [4, 5, 6])
    ([1, 2, 3], (4, [5, 6]))
    """
    import optree

    flat, treedef = optree.tree_flatten(tree, is_leaf=is_leaf)
    return flat, treedef


@public(widen=False)
def unflatten(treedef: Any, leaves: Iterable[Any]) -> Any:
    """Return the tree of a structure with these leaves.

    - `treedef`: a structure, of `flatten` or `structure`.
    - `leaves`: as many as the structure has, in its order.

    Raises: ArgumentError for another number of leaves.
    See also: `flatten`, `structure`.

    >>> import dovetail as dt
    >>> dt.tree.unflatten(dt.tree.structure({"a": 0}), [7])
    {'a': 7}
    """
    if not hasattr(treedef, "unflatten"):
        raise refused("tree.unflatten", "treedef", "a structure of dt.tree.flatten", treedef)
    try:
        return treedef.unflatten(leaves)
    except ValueError as error:
        raise ArgumentError(f"tree.unflatten: {error}") from None


@public(widen=False)
def structure(tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Return the structure of a tree: its containers without the leaves, which `==` compares.

    - `is_leaf`: a function of a node; True makes a leaf of a container.

    See also: `flatten`, `unflatten`.

    >>> import dovetail as dt
    >>> dt.tree.structure([1, (2, 3)]) == dt.tree.structure([4, (5, 6)])
    True
    """
    import optree

    return optree.tree_structure(tree, is_leaf=is_leaf)
