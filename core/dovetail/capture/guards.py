"""Keys of Python values: a captured function applies while the keys of what it reads are the same.

Keys tell values apart by type and bits, as the function may: `0.0` is not `-0.0`, `(True,)` is not
`(1,)`.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from dataclasses import fields
from enum import Enum
from functools import cached_property, lru_cache, partialmethod
from types import CodeType, EllipsisType, FunctionType, MappingProxyType, ModuleType, NoneType
from typing import Any

import numpy as np

from ..device_class import Device
from ..dtypes import DType
from ..memory.tracing.stacktrace import is_library_module
from ..tensor.c_fields import is_strided
from ..tensor.other_layouts import LayoutTensor

STATIC_TYPES = frozenset((bool, int, str, bytes, NoneType))  # equal only if of one type and bits
CONSTANT_TYPES = (
    *(bool, int, float, complex, str, bytes, NoneType, EllipsisType, slice, range, Enum),
    *(np.generic, np.dtype, DType, Device),
)
MAPPING_TYPES = (dict, MappingProxyType)
SEQUENCE_TYPES = (list, tuple, deque)
_SET_TYPES = (set, frozenset)
_BYTES_TYPES = (bytearray, memoryview, array)
CONTAINER_TYPES = (*SEQUENCE_TYPES, *MAPPING_TYPES, *_SET_TYPES, *_BYTES_TYPES)
ITEMS_MAX = 10_000  # a call compares as many in 0.1 ms
CLASSES_MAX = 1_024  # of which facts are kept
ARRAY_BYTES_MAX = 65_536  # larger arrays count by shape and dtype if no tensor is made of them
_OPAQUE_MODULES = frozenset((*sys.stdlib_module_names, "numpy", "scipy")) - {"__main__"}
_DATACLASS_FILENAME = "<string>"  # the file of methods that they generate, which compare all fields


def static_key(value: object) -> Hashable:
    """Return a key that tells numbers and strings apart by type and bits, not by value.

    Elements of tuples and frozensets and fields of frozen dataclasses are compared in the same way,
    objects of other types by their own `==`.
    """
    kind = type(value)
    if kind in STATIC_TYPES:
        return kind, value
    if isinstance(value, np.generic):  # two times of other units have one class and equal bytes
        return kind, value.dtype, value.tobytes()
    if isinstance(value, float):
        return kind, float.__repr__(value)
    if isinstance(value, complex):
        return kind, complex.__repr__(value)
    if isinstance(value, slice):
        return kind, static_key(value.start), static_key(value.stop), static_key(value.step)
    if isinstance(value, tuple):
        return kind, tuple([static_key(v) for v in value])
    if isinstance(value, frozenset):
        return kind, frozenset([static_key(v) for v in value])
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is not None and parameters.frozen and parameters.eq:
        compared = [f.name for f in fields(value) if f.compare]  # type: ignore[arg-type]  # it is one
        return kind, tuple([static_key(getattr(value, name)) for name in compared])
    return kind, value


def array_key(a: object) -> Hashable:
    """Return a key of the class, dtype, shape, bits and mask of a NumPy array; None for others.

    Arrays of objects count by their objects, because bytes of pointers may belong to later ones.
    """
    if not isinstance(a, np.ndarray):
        return None
    kind, values = type(a), a.view(np.ndarray)
    if a.dtype.hasobject:
        contents: Hashable = tuple(map(_element_key, values.ravel().tolist()))
    else:
        contents = values.tobytes()
    key = kind, a.dtype, a.dtype.type, a.shape, contents
    return key if kind is np.ndarray else (*key, _state_key(a))


def _element_key(value: object) -> Hashable:
    """Return a key of an item of an object array: by value, or by identity and contents."""
    if isinstance(value, tuple):  # an element of several fields
        return type(value), tuple(map(_element_key, value))
    if is_value(value):
        return static_key(value)
    contents = contents_key(value) if isinstance(value, CONTAINER_TYPES) else array_key(value)
    return _Identity(value), contents


class _Identity:
    """A key that is equal for the same object only, which lives as long as the key."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _state_key(a: np.ndarray) -> Hashable:
    """Return a key of the settings of a masked or library array; () for a class of the user's.

    A class of the user's adds none: the code names the attributes that it reads.
    """
    if isinstance(a, np.ma.MaskedArray):  # its `__dict__` holds caches as well
        settings: list[Any] = [a.mask, a.fill_value, a.hardmask]
    elif is_opaque_class(type(a)):
        settings = [x for x in getattr(a, "__dict__", {}).values() if is_constant(x)]
    else:
        settings = []
    return tuple([array_key(x) or static_key(x) for x in settings])


def metadata_key(value: object) -> Hashable:
    """Return a key of the metadata of a tensor or array (class, shape, ...); None for others."""
    if is_strided(value):
        e = value._expr
        return (
            type(value),
            e.spec,
            e.tape is not None,
            e.spec.strides if e.op is not None else e.strides,
        )
    if isinstance(value, LayoutTensor):
        return type(value), value.shape, value.dtype, value.device, value.requires_grad
    if isinstance(value, np.ndarray):
        return type(value), value.shape, value.dtype, value.dtype.type
    return None


def contents_key(value: Any) -> Hashable:
    """Return a key of a container: type, length, and (up to ITEMS_MAX items) its constants.

    Other items count by their positions, and in sets by their metadata: they are compared where
    they are read.
    """
    kind = type(value)
    if len(value) > ITEMS_MAX:
        return kind, len(value)
    if isinstance(value, MAPPING_TYPES):  # copied first: another thread may change it
        return kind, tuple([(_member_key(k), _item_key(v)) for k, v in [*value.items()]])
    if isinstance(value, _SET_TYPES):
        return kind, frozenset(Counter(map(_member_key, [*value])).items())
    if isinstance(value, SEQUENCE_TYPES):
        return kind, getattr(value, "maxlen", None), tuple(map(_item_key, [*value]))
    details = [getattr(value, name, None) for name in ("typecode", "format", "shape", "readonly")]
    return kind, tuple(details), bytes(value)


def state_key(value: object) -> Hashable:
    """Return a key of what a container, small array or ContextVar contains; None for others.

    Objects in a ContextVar count by their identity.
    """
    if isinstance(value, CONTAINER_TYPES):
        return contents_key(value)
    if isinstance(value, ContextVar):
        content = value.get(None)
        return static_key(content) if is_constant(content) else _Identity(content)
    small = isinstance(value, np.ndarray) and value.nbytes <= ARRAY_BYTES_MAX
    return array_key(value) if small else None


def names_key(value: Any) -> Hashable:
    """Return a key of a dict's type and of its keys, in order; its values do not matter."""
    return type(value), *value


def is_constant(value: object) -> bool:
    """Return True for a value of a type in `CONSTANT_TYPES`, or of a subclass."""
    return type(value) in STATIC_TYPES or _is_constant_class(type(value))


_is_constant_class: Callable[[type], bool] = lru_cache(CLASSES_MAX)(
    lambda kind: issubclass(kind, CONSTANT_TYPES)
)


def _item_key(value: object) -> Hashable:
    """Return the key of a constant, and None for other items."""
    return static_key(value) if is_constant(value) else None


def _member_key(value: object) -> Hashable:
    """Return a key of a member of a set or a key of a dict, which no path leads to."""
    return metadata_key(value) or static_key(value)


def is_opaque_class(kind: type) -> bool:
    """Return True for a class of the standard library, NumPy or SciPy: its code is not searched."""
    return is_opaque_module(kind.__module__)


def is_opaque_module(name: str) -> bool:
    """Return True for a module of the standard library, NumPy or SciPy."""
    return name.partition(".")[0] in _OPAQUE_MODULES


def is_value(value: object) -> bool:
    """Return True for constants, and hashable objects of opaque modules that define `==`.

    For example a Fraction or a Path.
    """
    kind = type(value)
    return is_constant(value) or (
        is_opaque_class(kind)
        and not isinstance(value, (type, ModuleType, FunctionType, *CONTAINER_TYPES))
        and kind.__hash__ is not None
        and kind.__eq__ is not object.__eq__
        and not hasattr(kind, "__get__")
    )


# --- objects of dovetail with settings ------------------------------------------------------------


@lru_cache(CLASSES_MAX)
def setting_names(kind: type) -> tuple[str, ...]:
    """Return the names of attributes whose values captures depend on.

    These are the ones in `captured_for`, which marks such classes, and those that methods of
    dovetail's own subclasses use, for example the slope of a layer.
    """
    names = {*kind.captured_for}  # type: ignore[attr-defined]  # the mark
    for base in kind.__mro__:
        if is_library_module(base.__module__) and "captured_for" not in vars(base):
            for member in vars(base).values():
                for f in functions_of(member):
                    names |= names_in(f.__code__)
    return tuple(sorted(names))


def settings_key(value: object) -> Hashable:
    """Return a key of an object's settings; None unless its class has `captured_for`.

    Settings are constants, containers and functions.
    """
    kind: Any = type(value)
    if not hasattr(kind, "captured_for"):
        return None
    attributes: Mapping[str, object] = vars(value)
    names = [n for n in setting_names(kind) if n in attributes]
    return kind, tuple([(n, _setting_key(attributes[n])) for n in names])


def _setting_key(value: object) -> Hashable:
    """Return a key of a setting; None for what is no constant, container or function."""
    if isinstance(value, MAPPING_TYPES):
        return type(value), tuple([(_member_key(k), _setting_key(v)) for k, v in value.items()])
    if isinstance(value, SEQUENCE_TYPES):
        return type(value), tuple(map(_setting_key, value))
    if isinstance(value, CONTAINER_TYPES):
        return contents_key(value)
    return value if isinstance(value, (FunctionType, type)) else _item_key(value)


# --- names in code --------------------------------------------------------------------------------


def functions_of(member: object) -> list[FunctionType]:
    """Return the Python functions in a class member (a property has three); [] for others."""
    if isinstance(member, (staticmethod, classmethod)):
        return functions_of(member.__func__)
    if isinstance(member, (cached_property, partialmethod)):
        return functions_of(member.func)
    if isinstance(member, property):
        accessors = (member.fget, member.fset, member.fdel)
        return [f for f in accessors if isinstance(f, FunctionType)]
    if isinstance(member, FunctionType) and member.__code__.co_filename != _DATACLASS_FILENAME:
        return [member]
    return []


def names_in(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in code, those of nested functions included.

    A string may be one, too, as in `getattr(x, "name")`.
    """
    names = {*code.co_names}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            names |= names_in(part)
        elif isinstance(part, str) and part.isidentifier():
            names.add(part)
    return names
