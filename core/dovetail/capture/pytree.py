"""Arguments and results of captured functions: pytrees of tensors, and static values."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from ..argument_checks import shown
from ..engine import tracer_api
from ..engine.traced_numbers import TracedFloat
from ..errors import CaptureError, DTypeError, LayoutError
from ..functions.creation.from_values import asarray
from ..tensor.c_fields import is_strided
from ..tensor.other_layouts import LayoutTensor, Unflattener
from ..tensor.tensor import Tensor
from .guards import static_key

R = TypeVar("R")

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


MUTABLE = (list, dict, deque)


class _Container(NamedTuple):
    """A container among the arguments of a traced function, as it was before the call.

    `original`: the caller's. `passed`: the function's; its children differ where there are floats.
    """

    original: Any
    passed: Any
    original_children: list[Any]
    children: list[Any]
    tree: Any


class ArgumentContainers:
    """The containers among the arguments of a function that is traced.

    The function gets those of the caller. Only one with traced numbers is a copy; what the function
    changes in a copied list, deque or dict is written back.
    """

    def __init__(self, arguments: Any, traced: Any) -> None:
        """`traced`: the same containers, with the leaves for the function."""
        self._containers: list[_Container] = []
        self.arguments = self._add(arguments, traced)

    def _add(self, original: Any, traced: Any) -> Any:
        """Record a container and those in it; return the container or leaf for the function."""
        original_children, tree = _children(original)
        if tree.is_leaf():
            return traced
        pairs = zip(original_children, _children(traced)[0], strict=True)
        children = [self._add(a, b) for a, b in pairs]
        passed = original if _are_same(children, original_children) else tree.unflatten(children)
        self._containers.append(_Container(original, passed, original_children, children, tree))
        return passed

    def have_aliased_copy(self, known_ids: set[int]) -> bool:
        """Return True if a copied container is an argument twice, or its id is in `known_ids`."""
        copied = [
            id(c.original)
            for c in self._containers
            if c.passed is not c.original and not isinstance(c.original, tuple)
        ]
        return len(copied) != len({*copied}) or not known_ids.isdisjoint(copied)

    def have_changed(self) -> bool:
        """Return True if the function has changed a container."""
        return any(map(_has_changed, self._containers))

    def write_back(self) -> None:
        """Give the caller's containers what the function has changed, without traced numbers."""
        originals = {
            id(traced): x
            for c in self._containers
            for traced, x in zip(c.children, c.original_children, strict=True)
        }
        originals |= {id(c.passed): c.original for c in self._containers}
        for c in self._containers:
            if isinstance(c.original, MUTABLE) and _has_changed(c):
                _refill_untraced(c.original, c.passed, originals)

    def original_of(self, returned: object, default: R) -> R:
        """Return the caller's container for `returned` if one has changed, else `default`."""
        original: Any = (c.original for c in self._containers if c.passed is returned)
        return next(original, default) if self.have_changed() else default


def _children(container: Any) -> tuple[list[Any], Any]:
    """Flatten a container by one level; return (children, tree). A leaf is its own child."""
    import optree  # here, so that `import dovetail` stays light

    is_child = iter((False,))  # the root is asked for first; it may contain itself
    return optree.tree_flatten(container, is_leaf=lambda _: next(is_child, True))


def _has_changed(c: _Container) -> bool:
    """Return True if a container has other children now."""
    children, tree = _children(c.passed)
    return bool(tree != c.tree) or not _are_same(children, c.children)


def _are_same(a: Sequence[object], b: Sequence[object]) -> bool:
    """Return True if two sequences have the same objects in the same order."""
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _untrace(x: Any, originals: dict[int, Any]) -> Any:
    """Return the caller's object for a copy of it, and the value of a traced number."""
    if id(x) in originals:
        return originals[id(x)]
    if type(x) is TracedFloat:
        return x.value
    if isinstance(x, MUTABLE):
        originals[id(x)] = x  # it may contain itself
        _refill_untraced(x, x, originals)
    elif isinstance(x, tuple):
        return replace_items(x, [_untrace(part, originals) for part in x])
    return tracer_api.read_stand_in(x)


def _refill_untraced(target: Any, source: Any, originals: dict[int, Any]) -> None:
    """Give a list, deque or dict the items of another one, or of itself, without traced numbers."""
    if isinstance(source, dict):
        pairs = [(_untrace(k, originals), _untrace(x, originals)) for k, x in source.items()]
        target.clear()
        target.update(pairs)
    else:
        values = [_untrace(x, originals) for x in source]
        target.clear()
        target.extend(values)


def replace_items(value: Any, items: Sequence[object]) -> Any:
    """Return a tuple or named tuple of other items; one of another class is returned unchanged."""
    if _are_same(value, items):
        return value
    if hasattr(value, "_make"):
        return value._make(items)
    return tuple(items) if type(value) is tuple else value


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
