"""The class `torch.Tensor`, and wrappers that give it to the results of dovetail's functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper, wraps
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, overload

import dovetail as dt
from dovetail.extend import register_subclass, set_class

if TYPE_CHECKING:
    from .tensor_methods import TensorMethods
else:
    TensorMethods = dt.Tensor


class Tensor(TensorMethods):
    """A tensor with PyTorch's methods: `max(1)` is a pair, `std()` divides by n - 1.

    It has all methods of `dt.Tensor`, and those of PyTorch whose meaning differs (`methods`). Every
    function of `dt` accepts it. The results of operators, and of the functions of `dovetail.torch`,
    have this class.

    - `data`: sizes of uninitialised memory, or a list of numbers, as in PyTorch.

    >>> import dovetail.torch as torch
    >>> torch.Tensor([1.0, 2.0]).max(0)
    torch.return_types.max(
    values=tensor(2.),
    indices=tensor(1))
    """

    __slots__ = ()
    _divides_as_python = True

    def __init__(self, *data: Any, device: Any = None) -> None:
        pass  # `__new__`, which `methods` sets, has made it


ADOPTED_CLASSES = frozenset([Tensor, int, float, bool, type(None)])  # whose values stay as they are
register_subclass(Tensor)
Tensor.__module__ = __name__.rpartition(".")[0]


@overload
def adopt(value: dt.Tensor) -> Tensor: ...
@overload
def adopt(value: Any) -> Any: ...
def adopt(value: Any) -> Any:
    """Give the new tensors in a value the class `torch.Tensor`, in place; return the value."""
    kind = type(value)
    if kind is dt.Tensor:
        set_class(value, Tensor)
    elif isinstance(value, (tuple, list)):
        for part in value:
            adopt(part)
    elif isinstance(value, dict):
        for part in value.values():
            adopt(part)
    elif (derived := DERIVED_CLASSES.get(kind, kind)) is None:
        pass
    elif derived is not kind or is_derivable(kind):  # an object that a function of `dt` has made
        value.__class__ = derive(kind)
        adopt(vars(value))
    else:
        DERIVED_CLASSES[kind] = None
    return value


def adopt_result(value: Any, *arguments: Any) -> Any:
    """Adopt a result; an argument of class `dt.Tensor` in it is replaced by a view of it.

    - `value`: the result of a function.
    - `arguments`: those of the call, also in tuples, lists and dicts.
    """
    passed = _plain_tensor_ids(value)
    if passed:
        passed &= _plain_tensor_ids(arguments)
    if passed:
        value = dt.tree.map(lambda x: x.view_as(x) if id(x) in passed else x, value)
    return adopt(value)


def _plain_tensor_ids(value: Any) -> set[int]:
    """Return the ids of tensors of class `dt.Tensor` in nested tuples, lists and dicts."""
    ids, stack = set(), [value]
    while stack:
        part = stack.pop()
        kind = type(part)
        if kind is dt.Tensor:
            ids.add(id(part))
        elif kind in ADOPTED_CLASSES:
            continue
        elif isinstance(part, (tuple, list)):
            stack.extend(part)
        elif isinstance(part, dict):
            stack.extend(part.values())
    return ids


def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose results are adopted."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        value = function(*args, **options)
        return value if type(value) in ADOPTED_CLASSES else adopt_result(value, args, options)

    return call


def wrap_callback(function: Any) -> Any:
    """Return a callback of the user's whose arguments are adopted; other objects as they are."""
    if not isinstance(function, FunctionType | MethodType | partial):
        return function

    def call(*args: Any, **options: Any) -> Any:
        adopt(args)
        adopt(options)
        return function(*args, **options)

    return update_wrapper(call, function)


def wrap_transform(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Return a transform of functions: arguments and results of these functions are adopted."""

    @wraps(transform)
    def call(*args: Any, **options: Any) -> Any:
        result = transform(*map(wrap_callback, args), **options)
        return wrap(result) if isinstance(result, FunctionType) else adopt(result)

    return call


DERIVED_CLASSES: dict[type, type | None] = {}  # class of dovetail -> its derived class
DERIVED_ROOTS = {"Module": "nn", "Distribution": "distributions", "Transform": "distributions"}
PACKAGE = __name__.rpartition(".")[0]


def _find_package(cls: type) -> str:
    """Return the name of the package of dovetail's layers or distributions, "" of other classes."""
    for base in cls.__mro__:
        package = DERIVED_ROOTS.get(base.__name__)
        if package is not None and base.__module__.startswith(f"dovetail.{package}"):
            return package
    return ""


def is_derivable(cls: type) -> bool:
    """Return True for dovetail's own layers, distributions and their transforms."""
    package = _find_package(cls)
    return bool(package) and cls.__module__.startswith(f"dovetail.{package}")


def derive(cls: type) -> type:
    """Return the subclass of a class of dovetail whose methods return `torch.Tensor`; cached.

    Bases are derived, too, so `issubclass` answers as for dovetail's classes. Objects that a
    constructor makes, such as the layers of a transformer, become objects of derived classes.
    """
    cached = DERIVED_CLASSES.get(cls)
    if cached is not None:
        return cached
    bases = [derive(b) for b in cls.__bases__ if is_derivable(b)]
    members: dict[str, Any] = {"__module__": f"{PACKAGE}.{_find_package(cls)}"}
    members.update(__doc__=cls.__doc__, __qualname__=cls.__qualname__)
    for name, member in vars(cls).items():
        if name == "__init__":
            members[name] = _wrap_constructor(member)
        elif name.startswith("register_") and name.endswith("_hook"):
            members[name] = wrap_transform(member)
        elif name == "__call__" or not (name.startswith("_") or cls.__name__ == "Module"):
            members[name] = _wrap_member(member)
    derived = type(cls)(cls.__name__, (cls, *bases), members)
    DERIVED_CLASSES[cls] = derived
    return derived


def _wrap_member(member: Any) -> Any:
    """Return a method or property whose results are adopted; other members as they are."""
    if isinstance(member, FunctionType):
        return wrap(member)
    if isinstance(member, (staticmethod, classmethod)):
        return type(member)(wrap(member.__func__))
    if isinstance(member, property) and member.fget is not None:
        return property(wrap(member.fget), member.fset, member.fdel, member.__doc__)
    return member


def _wrap_constructor(construct: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that adopts what it has put into the attributes."""

    @wraps(construct)
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        construct(self, *args, **options)
        adopt(vars(self))

    return __init__
