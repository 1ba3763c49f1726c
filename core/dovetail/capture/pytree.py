"""Arguments and results of captured functions: pytrees of tensors, and static values."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..argument_checks import shown
from ..errors import CaptureError, DTypeError, LayoutError
from ..functions.creation.from_values import asarray
from ..tensor.c_fields import is_strided
from ..tensor.other_layouts import LayoutTensor, Unflattener
from ..tensor.tensor import Tensor
from .guards import static_key

SIMPLE = frozenset(
    (Tensor, float, int, bool, str, bytes)
)  # types of leaves without further containers

# Types that match each other in `split_prefix`.
DICTS = (dict, OrderedDict, defaultdict)
SEQUENCES = (tuple, list, deque)


class StaticArgument:
    """An argument that is part of the key of a capture. It is no tuple, which is a container."""

    __slots__ = ("key", "value")

    def __init__(self, value: Hashable) -> None:
        self.value, self.key = value, static_key(value)


class FlatTree(NamedTuple):
    """The leaves of containers, and the tree of containers; None if there is none."""

    leaves: Sequence[Any]
    tree: Any


def flatten(value: object) -> FlatTree:
    """Return the leaves and the tree of nested containers: all types that optree supports."""
    import optree  # here, so that `import dovetail` stays light

    whole: Any = value  # any object is a tree
    leaves, tree = optree.tree_flatten(whole)
    return FlatTree(leaves, tree)


def split_prefix(prefix: Any, tree: Any) -> Sequence[Any] | None:
    """Return the children of a prefix in the order of a tree's children, or None at a mismatch.

    `prefix`: a container of the same structure as the tree, perhaps with a leaf for a whole branch.
    Dicts of any type match by key, sequences of any type by position, named tuples also by their
    fields. Other containers match if type and metadata are equal. A leaf matches nothing.
    """
    import optree  # here, so that `import dovetail` stays light

    kind, entries = tree.type, tree.entries()
    if kind in DICTS and isinstance(prefix, DICTS):
        has_keys = len(prefix) == len(entries) and all(key in prefix for key in entries)
        return [prefix[key] for key in entries] if has_keys else None
    if isinstance(prefix, SEQUENCES) and (kind in SEQUENCES or optree.is_namedtuple(kind)):
        fields = getattr(kind, "_fields", None), getattr(prefix, "_fields", None)
        has_fields = None in fields or fields[0] == fields[1]
        return [*prefix] if len(prefix) == len(entries) and has_fields else None
    if kind is None or type(prefix) is not kind:
        return None
    children, one_level = optree.tree_flatten(prefix, is_leaf=lambda x: x is not prefix)
    return children if one_level.is_prefix(tree) else None


class LayoutTree:
    """A tree of containers with tensors of other layouts, each of several leaves."""

    __slots__ = ("outer", "unflatteners")

    type: ClassVar[Any] = None  # an attribute of optree's trees: neither a tuple nor None

    def __init__(self, outer: Any, ways: tuple[Unflattener | None, ...]) -> None:
        self.outer, self.unflatteners = outer, ways

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LayoutTree):
            return False
        return self.unflatteners == other.unflatteners and bool(self.outer == other.outer)

    def __hash__(self) -> int:
        return hash((self.outer, self.unflatteners))

    def is_leaf(self) -> bool:
        """Return False: even a single tensor is a container here."""
        return False

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Rebuild the tensors from their leaves, and the containers around them."""
        leaves_left, shared = iter(leaves), list[object]()
        rebuilt_leaves = [
            next(leaves_left) if w is None else w.unflatten(leaves_left, shared)
            for w in self.unflatteners
        ]
        return self.outer.unflatten(rebuilt_leaves)


def flatten_with_layouts(value: object) -> FlatTree:
    """Flatten containers, and tensors of other layouts in them if they support it."""
    flat = flatten(value)
    if not any(isinstance(x, LayoutTensor) for x in flat.leaves):
        return flat
    leaves, ways = list[Any](), list[Unflattener | None]()
    shared: dict[int, tuple[int, object]] = {}
    for x in flat.leaves:
        flattened_tensor = x.__flatten__(shared) if isinstance(x, LayoutTensor) else None
        leaves += [x] if flattened_tensor is None else flattened_tensor[0]
        ways.append(None if flattened_tensor is None else flattened_tensor[1])
    return FlatTree(leaves, LayoutTree(flat.tree, tuple(ways)))


def rebuild(flat: FlatTree, leaves: Sequence[object]) -> Any:
    """Return the containers of `flat`, with `leaves` in place of its own leaves."""
    return flat.tree.unflatten(leaves)


def require_static(name: str, value: object) -> Hashable:
    """Return a hashable value itself. Raises: CaptureError for others."""
    try:
        hash(value)
    except TypeError:
        raise CaptureError(
            f"{name}: an argument must be a tensor, a container of tensors or hashable, got "
            f"{_describe(value)}; pass dt.asarray(...) for an array and a tuple for a list"
        ) from None
    return value


def _describe(value: object) -> str:
    """Return text for an error: the shape of an array, or the value."""
    if isinstance(value, np.ndarray):
        return f"a NumPy array of shape {value.shape}"
    return shown(value)


def require_strided_leaf(name: str, x: Tensor) -> Tensor:
    """Return a strided tensor itself. Raises: LayoutError for one of another layout."""
    if not is_strided(x):
        raise LayoutError(
            f"{name}: arguments and results of a captured function must be strided, got layout "
            f"{x.layout.name}; pass its parts, or x.to_dense()"
        )
    return x


def tensor_leaves(name: str, value: object, like: Tensor | None = None) -> FlatTree:
    """Flatten a loop's carry; numbers become tensors. Raises: DTypeError, LayoutError for others.

    They go to the device of the first tensor, or else of `like`. DTypeError is for leaves that are
    no tensor or number, LayoutError for tensors of other layouts.
    """
    flat = flatten(value)
    tensors = [x for x in flat.leaves if isinstance(x, Tensor)]
    first = tensors[0] if tensors else like
    carried = [_carry_leaf(name, x, first) for x in flat.leaves]
    return FlatTree(carried, flat.tree)


def _carry_leaf(name: str, x: object, like: Tensor | None) -> Tensor:
    """Return a leaf as a strided tensor; convert numbers that are not complex.

    Raises: LayoutError for a tensor of another layout, DTypeError for other objects.
    """
    if isinstance(x, Tensor):
        return require_strided_leaf(name, x)
    if isinstance(x, (bool, int, float, np.generic)):
        return asarray(x, device=None if like is None else like.device)
    raise DTypeError(
        f"{name}: the carry must hold tensors and numbers, in containers, got {shown(x)}"
    )
