"""The closure of a captured function: paths to the tensors, numbers and containers that it reads.

`Closure` walks over all objects that a function refers to and records the path to each value. A
replay reads the same paths again and compares the values with those of the capture.
"""

from __future__ import annotations

import functools
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from copy import copy
from inspect import isroutine
from types import CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from ..errors import GradientError
from ..memory import Storage
from ..memory.tracing.stacktrace import is_library_module
from ..tensor.c_fields import is_strided
from ..tensor.other_layouts import LayoutTensor
from ..tensor.tensor import Tensor
from .guards import (
    ARRAY_BYTES_MAX,
    CLASSES_MAX,
    CONSTANT_TYPES,
    CONTAINER_TYPES,
    MAPPING_TYPES,
    SEQUENCE_TYPES,
    array_key,
    contents_key,
    functions_of,
    is_constant,
    is_opaque_class,
    is_opaque_module,
    metadata_key,
    names_in,
    settings_key,
    state_key,
    static_key,
)
from .pytree import replace_items

_PathNumbers: TypeAlias = dict[tuple[object, ...], int]

OBJECTS_MAX = 20_000  # paths that are searched
PASSES_MAX, REWALKED_PATHS_MAX = 4, 4_000  # a search of more paths than that is not repeated
_OPAQUE_TYPES = (*CONSTANT_TYPES, CodeType, Tensor, Storage)
_is_not_searched: Callable[[type], bool] = functools.lru_cache(CLASSES_MAX)(
    lambda kind: issubclass(kind, _OPAQUE_TYPES)
)
# True for classes whose methods are all of the user's own classes.
_has_only_users_code: Callable[[type], bool] = functools.lru_cache(CLASSES_MAX)(
    lambda kind: (
        not any(
            is_library_module(base.__module__) or is_opaque_class(base)
            for base in kind.__mro__
            if base is not object and base.__module__ not in ("abc", "typing")
        )
    )
)
# Names of functions by which code reads attributes that it does not name.
_READERS_OF_ATTRIBUTES = frozenset(("vars", "getattr", "__dict__", "asdict", "astuple"))
# Methods that run without being named are these and, where they begin with two underscores, all but
# those that an object has behind it when the function gets it.
_IMPLICIT_METHODS = frozenset(("forward", "backward"))
_CONSTRUCTION_METHODS = frozenset(
    ("__init__", "__new__", "__del__", "__repr__", "__str__", "__reduce__", "__getnewargs__")
)


class ClosurePath:
    """A way to a value: a root, or an attribute or item of another path's value.

    `first_path`: the path where the walk has found the same value before. `argument`: the number of
    the argument that is this root, or -1. `named`: True if the code of the function names it (a
    cell, a global variable, an attribute), or a container or partial that it is a part of.
    `is_used`: False for a value that only unnamed attributes of the user's objects lead to, so that
    the code reads it in no way that is known. Its own code names nothing.
    `owner`: the path of the function whose cell or variables this root is. `contents`: the key of a
    named container before the function runs.
    """

    __slots__ = (
        "argument",
        "contents",
        "first_path",
        "is_item",
        "is_named",
        "is_used",
        "key",
        "owner",
        "parent",
        "value",
    )

    def __init__(
        self,
        value: Any,
        parent: ClosurePath | None = None,
        key: Any = None,
        is_item: bool = False,
        named: bool = False,
        used: bool | None = None,
    ) -> None:
        self.value, self.parent, self.key, self.is_item = value, parent, key, is_item
        self.is_named, self.argument = named, -1
        self.is_used: bool = (parent is None or parent.is_used) if used is None else used
        self.first_path: ClosurePath | None = None
        self.owner = parent
        self.contents: Hashable = None

    def read(self) -> Any:
        """Follow the path again and return the value there now; None if a step fails."""
        root, steps = self, list[ClosurePath]()
        while root.parent is not None:
            steps.append(root)
            root = root.parent
        value = root.value
        try:
            for step in reversed(steps):
                value = value[step.key] if step.is_item else getattr(value, step.key)
        except (AttributeError, LookupError, TypeError, ValueError):
            return None
        return value

    def write(self, value: object) -> None:
        """Bind the attribute, item or variable to another value, if that is possible."""
        if self.parent is None:
            return
        owner = self.parent.value
        with suppress(AttributeError, LookupError, TypeError):
            if isinstance(owner, tuple) and self.is_item:
                items = [*owner]
                items[self.key] = value
                self.parent.value = replace_items(owner, items)
                self.parent.write(self.parent.value)
            elif self.is_item:
                owner[self.key] = value
            else:
                setattr(owner, self.key, value)


class Closure:
    """All paths that are reachable from functions and objects, those closer to the roots first.

    A container or object is searched at the first path where it is found, of those that are used.
    `leaves`: arguments that are no tensors, by their number; a replay finds these roots among its
    own arguments.
    """

    def __init__(self, roots: Iterable[object], leaves: Iterable[tuple[int, object]] = ()) -> None:
        self._roots, self._leaves = list(roots), list(leaves)
        self._names: set[str] = set()
        self._implicit_members: dict[tuple[type, bool], set[str]] = {}  # members that run unnamed
        for _ in range(PASSES_MAX):  # a name met late may lead on from an earlier path
            self._names_before = {*self._names}
            self.paths: list[ClosurePath] = []
            self._stateful: list[ClosurePath] = []  # iterators and generators that the code names
            self._walk()
            if self._names == self._names_before or len(self.paths) > REWALKED_PATHS_MAX:
                break
        for path in self.paths:
            if path.is_named:
                path.contents = state_key(path.value)

    def walk_again(self) -> Closure:
        """Return a new closure, walked from the same roots now, by the same names."""
        closure = copy(self)
        closure._names, closure.paths, closure._stateful = {*self._names_before}, [], []
        closure._walk()
        return closure

    def find_change(self, after: Closure) -> ClosurePath | None:
        """Return a path that only `after` has, or whose value has changed; None if there is none.

        An iterator counts as changed. Objects of libraries, such as caches, do not count.
        """
        if self._stateful:
            return self._stateful[0]
        known_numbers: _PathNumbers = {}
        before = {*self._number_paths(known_numbers)}
        for number, path in zip(after._number_paths(known_numbers), after.paths, strict=True):
            if path.is_named and number not in before and not _is_of_library(path):
                return path
        for path in self.paths:
            if not path.is_named or path.first_path is not None or _is_of_library(path):
                continue
            now = path.read()
            if path.contents is not None:
                if state_key(now) != path.contents:
                    return path
            elif is_constant(path.value) and _snapshot_key(path, now) != static_key(path.value):
                return path
        return None

    def has_rebound_tensor(self, after: Closure) -> bool:
        """Return True if a path in `after` leads to a tensor that it did not lead to before."""
        known_numbers: _PathNumbers = {}
        numbered = [*zip(self._number_paths(known_numbers), self.paths, strict=True)]
        before = {number: p.value for number, p in numbered if is_strided(p.value)}
        return any(
            is_strided(p.value) and before.get(number) is not p.value and not _is_of_library(p)
            for number, p in zip(after._number_paths(known_numbers), after.paths, strict=True)
            if p.parent is not None
        )

    def _number_paths(self, known_numbers: _PathNumbers) -> list[int]:
        """Return the number of each path in `known_numbers`, to which new ones are added.

        Paths of the same root and the same keys have one number.
        """
        numbered: dict[int, int] = {}  # by the id of a path; owners precede what they lead to
        for p in self.paths:
            owner = p.parent
            if owner is None:
                key: tuple[object, ...] = (id(p.value),)
            else:
                key = numbered.get(id(owner), id(owner.value)), p.key, p.is_item
            numbered[id(p)] = known_numbers.setdefault(key, len(known_numbers))
        return [numbered[id(p)] for p in self.paths]

    def modes(self) -> list[ClosurePath]:
        """Return the paths of objects with attributes that are part of the key of a capture.

        Their classes name these in `captured_for`, as a network's does that trains or does not.
        """
        return [
            p for p in self.paths if p.first_path is None and hasattr(type(p.value), "captured_for")
        ]

    def tensors(self) -> list[ClosurePath]:
        """Return the paths of tensors, one for each tensor."""
        return [p for p in self.paths if is_strided(p.value) and p.first_path is None]

    def drop_values(self) -> None:
        """Set the values of all paths except the roots to None."""
        for path in self.paths:
            if path.parent is not None:
                path.value = None

    def _walk(self) -> None:
        """Add the paths from the roots to `paths`, closest first, up to OBJECTS_MAX objects."""
        paths_by_id: dict[int, ClosurePath] = {}
        for value in self._roots:
            self._add(ClosurePath(value), paths_by_id)
        for number, value in self._leaves:
            path = ClosurePath(value)
            path.argument = number
            self._add(path, paths_by_id)
        for used in (True, False):
            for path in self.paths:  # the list grows during the loop
                is_first = path.first_path is None and path.is_used is used
                if is_first and len(paths_by_id) <= OBJECTS_MAX:
                    for part in self._parts(path):
                        self._add(part, paths_by_id)

    def _add(self, path: ClosurePath, paths_by_id: dict[int, ClosurePath]) -> None:
        """Append a path, unless nothing depends on its value; link it to an earlier path there."""
        value = path.value
        is_tensor = is_strided(value)
        if path.is_named and isinstance(value, (Iterator, random.Random)):
            self._stateful.append(path)
        if _is_not_searched(type(value)) and not is_tensor and not isinstance(value, LayoutTensor):
            if not (path.is_named and is_constant(value)):
                return
        else:
            first = paths_by_id.setdefault(id(value), path)
            if path.is_used and not first.is_used:
                paths_by_id[id(value)], first.first_path = path, path
            elif first is not path:
                path.first_path = first
        self.paths.append(path)

    # --- what a value leads to
    def _parts(self, path: ClosurePath) -> Iterator[ClosurePath]:
        """Yield the paths to the parts of a path's value: items, attributes, cells, globals."""
        value = path.value
        if isinstance(value, LayoutTensor):  # a container of strided tensors
            kind = type(value)
            for base in kind.__mro__[: kind.__mro__.index(LayoutTensor)]:
                yield from self._slots_of(path, value, base)
            return
        if _is_not_searched(type(value)):
            return
        if isinstance(value, FunctionType):
            yield from self._parts_of_function(path, value)
        elif isinstance(value, MethodType):
            yield from self._attributes_of(path, ("__func__", "__self__"))
        elif isinstance(value, functools.partial):
            yield from self._attributes_of(path, ("func", "args", "keywords"))
        elif isinstance(value, (*SEQUENCE_TYPES, *MAPPING_TYPES)):
            container: Any = value
            is_mapping = isinstance(value, MAPPING_TYPES)
            for key, part in list(container.items() if is_mapping else enumerate(container)):
                if not is_constant(part):  # the key of the container has these
                    yield ClosurePath(part, path, key, is_item=True, named=path.is_named)
            if isinstance(value, defaultdict):
                yield from self._attributes_of(path, ("default_factory",))
            if not is_library_module(type(value).__module__) and not is_opaque_class(type(value)):
                yield from self._parts_of_object(path, value)
        elif isinstance(value, type):
            metaclass: type = type(value)
            for base in (*value.__mro__, *metaclass.__mro__):
                yield from self._members_of_class(path, value, base)
        elif isinstance(value, ModuleType):
            if not is_library_module(value.__name__):
                named = not is_opaque_module(value.__name__)
                for name in sorted(self._names & {*vars(value)}):
                    yield ClosurePath(vars(value)[name], path, name, named=named)
        else:
            yield from self._parts_of_object(path, value)

    def _attributes_of(self, path: ClosurePath, names: Iterable[str]) -> Iterator[ClosurePath]:
        """Yield the paths to these attributes of a path's value, named if the path is."""
        for name in names:
            yield ClosurePath(getattr(path.value, name), path, name, named=path.is_named)

    def _parts_of_function(self, path: ClosurePath, f: FunctionType) -> Iterator[ClosurePath]:
        """Yield the paths to a function's cells, globals and defaults; add to `_names`."""
        is_users = not is_library_module(f.__globals__.get("__name__"))
        for cell in f.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not bound yet
                continue
            named = is_users and path.is_used
            yield ClosurePath(value, _owned_root(cell, path), "cell_contents", named=named)
        if not is_users:  # a transform of a function leads to that function, and to nothing else
            return
        used = names_in(f.__code__)
        if path.is_used:
            self._names |= used
        variables = _owned_root(f.__globals__, path)
        for name in sorted(used & {*f.__globals__}):
            value = f.__globals__[name]
            yield ClosurePath(value, variables, name, is_item=True, named=path.is_used)
        for name in ("__defaults__", "__kwdefaults__", "__wrapped__"):
            if getattr(f, name, None) is not None:
                named = name != "__wrapped__" and path.is_used
                yield ClosurePath(getattr(f, name), path, name, named=named)
        for name in sorted(self._names & {*vars(f)} - {"__wrapped__"}):
            yield ClosurePath(vars(f)[name], path, name, named=path.is_used)

    def _parts_of_object(self, path: ClosurePath, value: object) -> Iterator[ClosurePath]:
        """Yield the paths to an object's attributes, and to the methods that may run."""
        kind = type(value)
        if kind.__module__ in ("builtins", "numpy") or hasattr(kind, "holds_no_tensors"):
            return
        only = getattr(kind, "closure_attributes", None)
        if only is not None:
            yield from self._attributes_of(path, only)
            for name in sorted(self._names & {*getattr(value, "user_attributes", ())}):
                yield ClosurePath(getattr(value, name), path, name, named=path.is_used)
            return
        holds_named = path.is_named and is_opaque_class(kind) and kind is not SimpleNamespace
        reads_all = not is_library_module(kind.__module__) and self._names & _READERS_OF_ATTRIBUTES
        own = getattr(value, "__dict__", None)
        for name, part in list(own.items()) if isinstance(own, dict) else ():
            is_held = holds_named and isinstance(part, CONTAINER_TYPES)  # by a UserList, a ChainMap
            named = path.is_used and (name in self._names or is_held or bool(reads_all))
            used = named or (path.is_used and not _has_only_users_code(kind))
            yield ClosurePath(part, path, name, named=named, used=used)
        for base in kind.__mro__:
            yield from self._parts_of_class(path, value, base)

    def _parts_of_class(
        self, path: ClosurePath, value: object, base: type
    ) -> Iterator[ClosurePath]:
        """Yield the paths to a value's slots and members that class `base` defines."""
        yield from self._slots_of(path, value, base)
        yield from self._members_of_class(path, value, base)

    def _slots_of(self, path: ClosurePath, value: object, base: type) -> Iterator[ClosurePath]:
        """Yield the paths to the set slots of class `base`, private ones by their mangled names."""
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{base.__name__.lstrip('_')}{name}"
            if not name.startswith("__") and hasattr(value, name):
                named = path.is_used and name in self._names
                used = named or (path.is_used and not _has_only_users_code(type(value)))
                yield ClosurePath(getattr(value, name), path, name, named=named, used=used)

    def _members_of_class(
        self, path: ClosurePath, value: object, base: type
    ) -> Iterator[ClosurePath]:
        """Yield the paths to members of class `base` that the code names, or that run unnamed."""
        members = base.__dict__
        if is_library_module(base.__module__) or is_opaque_class(base):
            return
        key = base, isinstance(value, type)
        if key not in self._implicit_members:
            earlier = frozenset() if key[1] else _CONSTRUCTION_METHODS
            special = {n for n in members if n.startswith("__") and n not in earlier}
            self._implicit_members[key] = special | ({*members} & _IMPLICIT_METHODS)
        for name in sorted(self._implicit_members[key] | ({*members} & self._names)):
            member = members[name]
            for part in functions_of(member):
                yield _owned_root(part, path)
            if hasattr(type(member), "__get__"):
                if type(member).__module__ not in ("builtins", "functools"):
                    yield _owned_root(member, path)  # a descriptor of the user's
            elif name in self._names and getattr(value, name, None) is member:
                yield ClosurePath(member, path, name, named=path.is_used)


def _owned_root(value: object, owner: ClosurePath) -> ClosurePath:
    """Return a root that is valid while its owner's value is unchanged: a cell, a method."""
    path = ClosurePath(value, used=owner.is_used)
    path.owner = owner
    return path


def _is_of_library(path: ClosurePath) -> bool:
    """Return True if a path leads through an object of a library's class."""
    while (parent := path.parent) is not None:
        kind = type(parent.value)
        is_users = kind.__module__ in ("builtins", "collections") or hasattr(
            kind, "user_attributes"
        )
        if not is_users and is_library_module(kind.__module__):
            return True
        path = parent
    return False


class ClosureSnapshot:
    """The values that the body of a loop reads from its closure, at the time of the loop.

    - `name`: the function that errors name.
    - `function`: the body of the loop.
    """

    closure_attributes = ("_function",)  # its paths lead to all that the body could read

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self._function = name, _with_own_cells(function, {})
        paths = [p for p in Closure([self._function]).paths if p.first_path is None]
        self._paths = [(p, p.value, _snapshot_key(p, p.value)) for p in paths]
        self.tensors = [value for _, value, _ in self._paths if is_strided(value)]

    def function(self) -> Callable[..., Any]:
        """Return a copy of the body whose cells hold the values from the time of the loop."""
        copy: Callable[..., Any] = _with_own_cells(self._function, {})
        return copy

    def constants(self) -> list[Tensor]:
        """Return the snapshot's tensors that the code names and that have no gradients."""
        named = [value for path, value, _ in self._paths if path.is_named]
        return [t for t in named if is_strided(t) and t._expr.tape is None]

    def find_gradient_reads(self, operand: Tensor, result: Tensor) -> list[Tensor]:
        """Return the tensors of the closure to which gradients of the function's result flow.

        - `operand`: a tensor with a gradient, made just before the function ran with it.
        - `result`: the result of the function.

        Raises: GradientError if gradients flow to other tensors, too.
        """
        taped = {t._expr.tape: t for t in self.tensors if t._expr.tape is not None}
        visited, reads = {operand._expr.tape}, list[Tensor]()
        stack = [] if result._expr.tape is None else [result._expr.tape]
        while stack:
            node = stack.pop()
            if node in visited:
                continue
            visited.add(node)
            if node in taped:
                reads.append(taped[node])
            elif node.order < operand._expr.tape.order:
                raise GradientError(
                    f"{self.name}: the function reads a tensor with a gradient that is neither in "
                    "its closure nor in an attribute that it names; make it a variable of the "
                    "function"
                )
            else:
                stack += [edge.node for edge in node.edges if edge is not None]
        return reads

    def find_change(self) -> ClosurePath | None:
        """Return a path to a value of the closure that changed, or None."""
        for path, value, key in self._paths:
            now = path.read()
            if is_strided(value):
                if now is not value:
                    return path
            elif key is not None and _snapshot_key(path, now) != key:
                return path
        return None

    def require_unchanged(self) -> None:
        """Raise GradientError if the body would read other values now."""
        path = self.find_change()
        if path is not None:
            raise GradientError(
                f"{self.name}: the body reads {path.key!r}, which has changed since the loop ran, "
                "and the gradient runs the body again; pass it in init or xs"
            )


def _snapshot_key(path: ClosurePath, value: object) -> Hashable:
    """Return a key of a value that a body reads by itself; None if only its parts matter.

    Large arrays count by their metadata.
    """
    if is_constant(value):
        return static_key(value)
    if path.is_named and isinstance(value, CONTAINER_TYPES):
        return contents_key(value)
    if path.is_named and isinstance(value, np.ndarray):
        return array_key(value) if value.nbytes <= ARRAY_BYTES_MAX else metadata_key(value)
    return value if path.is_named and isroutine(value) and isinstance(value, Hashable) else None


def _with_own_cells(function: Any, copies: dict[int, Any]) -> Any:
    """Return a copy of a function with its own cells; functions in them are copied, too.

    Objects that are no function, or have no cells, are returned themselves. `copies`: gets the
    copies, by the id of the function.
    """
    if isinstance(function, functools.partial):
        inner = _with_own_cells(function.func, copies)
        return functools.partial(inner, *function.args, **function.keywords)
    if not isinstance(function, FunctionType) or not function.__closure__:
        return function
    if id(function) not in copies:
        cells = tuple(CellType() for _ in function.__closure__)
        copy = copies[id(function)] = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__dict__.update(function.__dict__)
        for cell, own in zip(function.__closure__, cells, strict=True):
            with suppress(ValueError):  # not bound yet
                own.cell_contents = _with_own_cells(cell.cell_contents, copies)
    return copies[id(function)]


def read_modes(modes: list[ClosurePath]) -> tuple[object, ...]:
    """Read these paths again and return the settings keys of their objects, in order."""
    return tuple([settings_key(path.read()) for path in modes])
