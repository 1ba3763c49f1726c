"""What a captured function reads of its closure: tensors, numbers and containers.

`Closure` walks over everything that a function leads to and records each source where it finds a
value, so that a replay can read the same sources again and compare them with the capture.
"""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from copy import copy
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ..device import Device
from ..memory import Storage
from ..memory.callers import is_ours
from ..tensor.other_layouts import LayoutTensor
from ..tensor.tensor import Tensor

OBJECTS_MAX = 20_000  # sources that are searched
PASSES_MAX, LARGE_MIN = 4, 4_000  # a search of more sources than that is not repeated
CONTAINERS = (list, tuple, dict, deque)
NUMBERS = (bool, int, float, complex, str, bytes, type(None))
_OPAQUE = (*NUMBERS, CodeType, Tensor, Device, Storage)
_UNNAMED = ("__call__", "forward", "backward")  # methods that run without being named
_FOREIGN = frozenset((*sys.stdlib_module_names, "numpy", "scipy")) - {"__main__"}


class Source:
    """A place where a value is found: a root, or an attribute or item of another source's value.

    `again`: the source where the walk has found the same value before. `argument`: the number of
    the argument that is this root, or -1. `named`: True if the code of the function names it (a
    cell, a global variable, an attribute). `owner`: the source of the function whose cell or
    variables this root is.
    """

    __slots__ = ("again", "argument", "is_item", "key", "named", "owner", "parent", "value")

    def __init__(
        self, value: Any, parent: Source | None = None, key: Any = None, is_item: bool = False,
        named: bool = False,
    ) -> None:  # fmt: skip
        self.value, self.parent, self.key, self.is_item = value, parent, key, is_item
        self.named, self.argument = named, -1
        self.again: Source | None = None
        self.owner = parent

    def read(self) -> Any:
        """Return the value that is there now; None if the way to it is gone."""
        if self.parent is None:
            return self.value
        owner = self.parent.read()
        try:
            return owner[self.key] if self.is_item else getattr(owner, self.key)
        except (AttributeError, LookupError, TypeError, ValueError):
            return None

    def way(self) -> tuple[Hashable, ...]:
        """Return a key that is equal for the same source of two walks."""
        if self.parent is None:
            return (self.argument, id(self.value) if self.argument < 0 else 0)
        return (*self.parent.way(), self.is_item, self.key)


class Closure:
    """All sources that are reachable from functions and objects, those closer to the roots first.

    A container or object is searched at the first source where it is found. `leaves`: arguments
    that are no tensors, by their number; a replay finds these roots among its own arguments.
    """

    def __init__(self, roots: Iterable[object], leaves: Iterable[tuple[int, object]] = ()) -> None:
        self._roots, self._leaves = list(roots), list(leaves)
        self._names: set[str] = set()
        for _ in range(PASSES_MAX):  # a name met late may lead on from an earlier source
            self._names_before = {*self._names}
            self.sources: list[Source] = []
            self._walk()
            if self._names == self._names_before or len(self.sources) > LARGE_MIN:
                break

    def again(self) -> Closure:
        """Return what the same roots lead to now; the search goes by the same names."""
        now = copy(self)
        now._names, now.sources = {*self._names_before}, []
        now._walk()
        return now

    def modes(self) -> list[Source]:
        """Return the sources of objects of which some attributes decide what a function does.

        Their classes name these in `captured_for`, as a network's does that trains or does not.
        """
        return [
            p for p in self.sources if p.again is None and hasattr(type(p.value), "captured_for")
        ]

    def tensors(self) -> list[Source]:
        """Return the sources of tensors, one for each tensor."""
        return [p for p in self.sources if type(p.value) is Tensor and p.again is None]

    def forget(self) -> None:
        """Let go of the values of all sources but the roots."""
        for source in self.sources:
            if source.parent is not None:
                source.value = None

    def _walk(self) -> None:
        seen: dict[int, Source] = {}
        for value in self._roots:
            self._add(Source(value), seen)
        for number, value in self._leaves:
            source = Source(value)
            source.argument = number
            self._add(source, seen)
        for source in self.sources:  # it grows meanwhile
            if source.again is None and len(seen) <= OBJECTS_MAX:
                for part in self._parts(source):
                    self._add(part, seen)

    def _add(self, source: Source, seen: dict[int, Source]) -> None:
        value = source.value
        is_tensor = type(value) is Tensor
        if isinstance(value, _OPAQUE) and not is_tensor and not isinstance(value, LayoutTensor):
            if not (source.named and isinstance(value, NUMBERS)):
                return
        else:
            first = seen.setdefault(id(value), source)
            source.again = None if first is source else first
        self.sources.append(source)

    # --- what a value leads to
    def _parts(self, source: Source) -> Iterator[Source]:
        value = source.value
        if isinstance(value, LayoutTensor):  # a container of strided tensors
            kind = type(value)
            for base in kind.__mro__[: kind.__mro__.index(LayoutTensor)]:
                yield from self._slots_of(source, value, base)
            return
        if isinstance(value, _OPAQUE):
            return
        if isinstance(value, FunctionType):
            yield from self._parts_of_function(source, value)
        elif isinstance(value, MethodType):
            yield from self._attributes_of(source, ("__func__", "__self__"))
        elif isinstance(value, functools.partial):
            yield from self._attributes_of(source, ("func", "args", "keywords"))
        elif isinstance(value, (list, tuple, deque)):
            for i, part in enumerate(list(value)):
                yield Source(part, source, i, is_item=True)
        elif isinstance(value, dict):
            for key, part in list(value.items()):
                yield Source(part, source, key, is_item=True)
        elif isinstance(value, type):
            for base in value.__mro__:
                yield from self._members_of_class(source, value, base)
        elif isinstance(value, ModuleType):
            if not is_ours(value.__name__):
                named = value.__name__.partition(".")[0] not in _FOREIGN
                for name in sorted(self._names & {*vars(value)}):
                    yield Source(vars(value)[name], source, name, named=named)
        else:
            yield from self._parts_of_object(source, value)

    def _attributes_of(self, source: Source, names: Iterable[str]) -> Iterator[Source]:
        for name in names:
            yield Source(getattr(source.value, name), source, name)

    def _parts_of_function(self, source: Source, f: FunctionType) -> Iterator[Source]:
        is_users = not is_ours(f.__globals__.get("__name__"))
        for cell in f.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not bound yet
                continue
            yield Source(value, _root(cell, source), "cell_contents", named=is_users)
        if not is_users:  # a transform of a function leads to that function, and to nothing else
            return
        used = _names_in(f.__code__)
        self._names |= used
        variables = _root(f.__globals__, source)
        for name in sorted(used & {*f.__globals__}):
            yield Source(f.__globals__[name], variables, name, is_item=True, named=True)
        for name in ("__defaults__", "__kwdefaults__", "__wrapped__"):
            if getattr(f, name, None) is not None:
                yield Source(getattr(f, name), source, name)

    def _parts_of_object(self, source: Source, value: object) -> Iterator[Source]:
        kind = type(value)
        if kind.__module__ in ("builtins", "numpy") or hasattr(kind, "holds_no_tensors"):
            return
        only = getattr(kind, "leads_to", None)
        if only is not None:
            yield from self._attributes_of(source, only)
            return
        own = getattr(value, "__dict__", None)
        for name, part in list(own.items()) if isinstance(own, dict) else ():
            yield Source(part, source, name, named=name in self._names)
        for base in kind.__mro__:
            yield from self._parts_of_class(source, value, base)

    def _parts_of_class(self, source: Source, value: object, base: type) -> Iterator[Source]:
        yield from self._slots_of(source, value, base)
        yield from self._members_of_class(source, value, base)

    def _slots_of(self, source: Source, value: object, base: type) -> Iterator[Source]:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(value, name):
                yield Source(getattr(value, name), source, name, named=name in self._names)

    def _members_of_class(self, source: Source, value: object, base: type) -> Iterator[Source]:
        """Yield what the code names, or runs unnamed, of the class `base` of a value."""
        members = base.__dict__
        if is_ours(base.__module__) or base.__module__.partition(".")[0] in _FOREIGN:
            return
        for name in sorted({*members} & {*self._names, *_UNNAMED}):
            member = members[name]
            if isinstance(member, (staticmethod, classmethod)):
                member = member.__func__
            if isinstance(member, property):
                member = member.fget
            if isinstance(member, FunctionType):
                yield _root(member, source)
            elif not hasattr(type(member), "__get__") and getattr(value, name, None) is member:
                yield Source(member, source, name, named=True)


def _root(value: object, owner: Source) -> Source:
    """Return the source of a value that stays with the value of its owner."""
    source = Source(value)
    source.owner = owner
    return source


def _names_in(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in code, those of nested functions included."""
    names = {*code.co_names}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            names |= _names_in(part)
    return names


def modes_now(modes: list[Source]) -> tuple[object, ...]:
    """Return what those attributes are now."""
    objects = [source.read() for source in modes]
    return tuple(
        [getattr(x, name, None) for x in objects for name in getattr(type(x), "captured_for", ())]
    )
