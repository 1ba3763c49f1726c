"""The functions of `jax.tree_util`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from .tree import all as tree_all
from .tree import flatten as tree_flatten
from .tree import leaves as tree_leaves
from .tree import map as tree_map
from .tree import reduce as tree_reduce
from .tree import structure as tree_structure
from .tree import transpose as tree_transpose
from .tree import unflatten as tree_unflatten

__all__ = [
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "tree_all",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_reduce",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
]

C = TypeVar("C", bound=type)


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
) -> None:
    """Register a class of containers for `dt.tree`, `jit`, `vmap`, `grad` and loops.

    - `nodetype`: the class.
    - `flatten_func`: gives the children of a container, and what is static in it.
    - `unflatten_func`: builds a container from what is static and the children.

    Raises: ValueError if it is registered.

    >>> import dovetail.jax as jax
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> jax.tree_util.register_pytree_node(
    ...     Pair, lambda p: ((p.a, p.b), None), lambda _, parts: Pair(*parts)
    ... )
    >>> jax.tree.leaves(Pair(1, [2]))
    [1, 2]
    """
    import optree

    optree.register_pytree_node(
        nodetype,
        flatten_func,
        unflatten_func,
        namespace=optree.registry.__GLOBAL_NAMESPACE,
    )


def register_pytree_node_class(cls: C) -> C:
    """Register a class with the methods `tree_flatten` and `tree_unflatten`, and return it.

    - `cls`: the class. It is a decorator.

    >>> import dovetail.jax as jax
    >>> @jax.tree_util.register_pytree_node_class
    ... class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten(self):
    ...         return (self.x,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> jax.tree.map(lambda x: x + 1, Box(1)).x
    2
    """
    node: Any = cls
    register_pytree_node(cls, lambda x: x.tree_flatten(), node.tree_unflatten)
    return cls


def register_dataclass(
    nodetype: C,
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] = (),
) -> C:
    """Register a dataclass, and return it.

    - `nodetype`: the dataclass.
    - `data_fields`: the names of fields with tensors; None is all but `meta_fields`.
    - `meta_fields`: the names of static fields.

    >>> import dataclasses
    >>> import dovetail.jax as jax
    >>> @jax.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    >>> jax.tree.leaves(Point(2.0))
    [2.0]
    """
    meta = (*meta_fields,)
    if data_fields is None:
        static = [f.name for f in dataclasses.fields(nodetype) if f.metadata.get("static")]
        meta = (*meta, *static)
        data_fields = [f.name for f in dataclasses.fields(nodetype) if f.name not in meta]
    data = (*data_fields,)

    def build(aux: tuple[Any, ...], children: Iterable[Any]) -> Any:
        """Return an instance without a call of `__init__`, whose checks expect numbers."""
        instance: Any = object.__new__(nodetype)
        for name, value in zip((*data, *meta), (*children, *aux), strict=True):
            object.__setattr__(instance, name, value)
        return instance

    register_pytree_node(
        nodetype,
        lambda x: ([getattr(x, n) for n in data], tuple([getattr(x, n) for n in meta])),
        build,
    )
    return nodetype
