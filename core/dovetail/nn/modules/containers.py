"""Containers of modules or parameters: sequences, lists and dicts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from operator import index
from typing import Any, Self, TypeAlias, overload

import dovetail as dt
from dovetail.extend import arguments

from .module import Module, format_repr
from .parameter import Parameter

__all__ = ["Identity", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

Tensor: TypeAlias = dt.Tensor


def _resolve_index(name: str, at: object, n: int) -> int:
    """Return an index counted from the start of n.

    Raises: OutOfRangeError outside of -n to n - 1, ArgumentTypeError if it is no int.
    """
    try:
        i = index(at)  # type: ignore[arg-type]  # TypeError is handled
    except TypeError:
        raise dt.ArgumentTypeError(
            f"{name}: the index must be an int or a slice, got {type(at).__name__}"
        ) from None
    if not -n <= i < n:
        raise dt.OutOfRangeError(f"{name}: index {i} is out of range for {n} modules")
    return i % n


def _require_no_slice(name: str, at: object) -> None:
    """Raise ArgumentTypeError for a slice, to which nothing can be assigned."""
    if isinstance(at, slice):
        raise dt.ArgumentTypeError(
            f"{name}: cannot assign to a slice; assign to one index at a time"
        )


class Identity(Module):
    """A layer that returns its input; the arguments of the constructor are ignored.

    - `args`, `named`: any arguments, so that it can replace another layer.

    >>> import dovetail as dt
    >>> dt.nn.Identity(54, unused=0.1)(3)
    3
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Return the input."""
        return input


class _Row(Module):
    """A sequence of modules with the names "0", "1", ...; those of a Sequential may differ.

    A slice of a Sequential keeps its names, so that its `state_dict` fits that of the whole.
    """

    def _renumber(self, modules: Iterable[Module]) -> None:
        """Replace all modules by these, under the names "0", "1", ..."""
        self._modules.clear()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def _list(self) -> list[Any]:
        """Return the modules in order, and None for names without one."""
        return [*self._modules.values()]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._list())

    def __contains__(self, module: object) -> bool:
        return any(m is module for m in self._list())

    def __setitem__(self, at: int, module: Module) -> None:
        _require_no_slice(type(self).__name__, at)
        name = [*self._modules][_resolve_index(type(self).__name__, at, len(self))]
        setattr(self, name, module)

    def append(self, module: Module) -> Self:
        """Add a module at the end, under its position or the next number that is no name yet.

        - `module`: the module.

        Returns the container.
        """
        number = len(self)
        while str(number) in self._modules:  # in a slice, or after modules were removed by name
            number += 1
        self.add_module(str(number), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end.

        - `modules`: the modules, in order.

        Returns the container.
        """
        for module in [*modules]:
            self.append(module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove and return the module at an index, or the modules of a slice.

        - `key`: an index, which may count from the end, or a slice.
        """
        removed = self[key]  # type: ignore[index]  # subclasses define __getitem__
        del self[key]
        return removed


class Sequential(_Row):
    """A chain of modules: each one is called with the result of the one before.

    - `args`: modules, or one dict of modules by name.

    See also: `ModuleList`, `Module`.

    >>> import dovetail as dt
    >>> net = dt.nn.Sequential(dt.nn.Linear(4, 8), dt.nn.ReLU(), dt.nn.Linear(8, 2))
    >>> len(net), [*net.state_dict()]
    (3, ['0.weight', '0.bias', '2.weight', '2.bias'])
    """

    def __init__(self, *args: Module | Mapping[str, Module]) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            self._renumber(args)  # type: ignore[arg-type]  # add_module checks the types

    def forward(self, input: Any) -> Any:
        """Return the result of the last module."""
        for module in self._list():
            if module is not None:
                input = module(input)
        return input

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> Self: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return type(self)(OrderedDict([*self._modules.items()][at]))  # type: ignore[arg-type]  # add_module accepts None
        return self._list()[_resolve_index("Sequential", at, len(self))]

    def __delitem__(self, at: int | slice) -> None:
        names = [*self._modules]
        if not isinstance(at, slice):
            at = slice((i := _resolve_index("Sequential", at, len(self))), i + 1)
        for name in names[at]:
            del self._modules[name]
        if all(name.isdecimal() for name in names):
            self._renumber(self._list())

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before an index, and rename all modules "0", "1", ... in order.

        - `index`: the index of the new module; negative ones count from the end.
        - `module`: the module.

        Returns the container.
        """
        n = len(self)
        if not -n <= index <= n:
            raise dt.OutOfRangeError(f"Sequential: index {index} is out of range for {n} modules")
        if not isinstance(module, Module):
            raise dt.ArgumentTypeError(
                f"Sequential: expected a Module, got {type(module).__name__}"
            )
        every = self._list()
        _insert("Sequential.insert", every, index, module)
        self._renumber(every)
        return self

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            return NotImplemented
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Self:
        if not isinstance(other, Sequential):
            return NotImplemented
        return self.extend(other)

    def __mul__(self, times: int) -> Sequential:
        if not isinstance(times, int):
            return NotImplemented
        if times <= 0:
            raise dt.ArgumentError(
                f"Sequential: the number of repetitions must be at least 1, got {times}"
            )
        return Sequential(*[m for _ in range(times) for m in self])

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        self._renumber((self * times)._list())
        return self


class ModuleList(_Row):
    """A list of modules, which are registered in the module that contains it.

    - `modules`: the modules, in order; None for an empty list.

    See also: `Sequential`, `ModuleDict`, `ParameterList`.

    >>> import dovetail as dt
    >>> layers = dt.nn.ModuleList([dt.nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), len([*layers.parameters()])
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> Self: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return type(self)(self._list()[at])
        return self._list()[_resolve_index("ModuleList", at, len(self))]

    def __delitem__(self, at: int | slice) -> None:
        every = self._list()
        del every[at if isinstance(at, slice) else _resolve_index("ModuleList", at, len(self))]
        self._renumber(every)

    def insert(self, index: int, module: Module) -> None:
        """Insert a module before an index.

        - `index`: the index of the new module; negative ones count from the end.
        - `module`: the module.
        """
        every = self._list()
        _insert("ModuleList.insert", every, index, module)
        self._renumber(every)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end.

        - `modules`: the modules, in order.

        Returns the list.
        Raises: ArgumentTypeError for a single module.
        """
        if isinstance(modules, Module) and not isinstance(modules, Iterable):
            raise dt.ArgumentTypeError(
                "ModuleList: extend expects an iterable of modules, got "
                f"{type(modules).__name__}; use append for one module"
            )
        return super().extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __repr__(self) -> str:
        inner: list[str] = []
        first, run, last = 0, 0, ""
        for i, text in enumerate([*map(repr, self._list()), ""]):  # equal neighbours share a line
            if run and text == last:
                run += 1
                continue
            if run == 1:
                inner.append(f"({first}): {last}")
            elif run:
                inner.append(f"({first}-{first + run - 1}): {run} x {last}")
            first, run, last = i, 1, text
        return format_repr(type(self).__name__, [], inner)


class ModuleDict(Module):
    """A dict of submodules, registered with the parent module.

    - `modules`: a dict of modules, or pairs of a name and a module.

    See also: `ModuleList`, `Sequential`, `ParameterDict`.

    >>> import dovetail as dt
    >>> layers = dt.nn.ModuleDict({"in": dt.nn.Linear(2, 3), "out": dt.nn.Linear(3, 1)})
    >>> [*layers], layers["out"].out_features
    (['in', 'out'], 1)
    """

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove and return the module of a key.

        - `key`: the name of the module.

        Raises: KeyError.
        """
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """Return the keys, in order."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the keys with their modules, in order."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """Return the modules, in order."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add or replace the modules of a dict, or of pairs of keys and modules.

        - `modules`: the dict or the pairs.
        """
        for key, module in _as_pairs("ModuleDict.update: modules", modules):
            self.add_module(key, module)


class ParameterList(Module):
    """A list of parameters with the names "0", "1", ...; tensors become parameters.

    - `values`: the tensors, in order; None for an empty list.

    >>> import dovetail as dt
    >>> rows = dt.nn.ParameterList([dt.ones(2) for _ in range(3)])
    >>> [name for name, _ in rows.named_parameters()]
    ['0', '1', '2']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._count = 0
        if values is not None:
            self += values

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(i)) for i in range(self._count)])

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> Self: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return type(self)([*islice(self, *at.indices(self._count))])
        return getattr(self, str(_resolve_index("ParameterList", at, self._count)))

    def __setitem__(self, at: int, value: Any) -> None:
        _require_no_slice("ParameterList", at)
        setattr(self, str(_resolve_index("ParameterList", at, self._count)), _as_parameter(value))

    def append(self, value: Any) -> Self:
        """Add a parameter at the end; a tensor becomes a parameter.

        - `value`: a parameter or a tensor.

        Returns the list.
        """
        self._count += 1
        setattr(self, str(self._count - 1), _as_parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add parameters at the end.

        - `values`: parameters or tensors, in order.

        Returns the list.
        Raises: ArgumentTypeError.
        """
        if isinstance(values, dt.Tensor) or not isinstance(values, Iterable):
            raise dt.ArgumentTypeError(
                "ParameterList: extend expects an iterable of tensors, got "
                f"{type(values).__name__}; use append for one tensor"
            )
        for value in [*values]:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def pop(self, key: int) -> Any:
        """Remove and return the parameter at an index.

        - `key`: the index.
        """
        every = [*self]
        removed = every.pop(_resolve_index("ParameterList", key, self._count))
        for i in range(self._count):
            delattr(self, str(i))
        self._count = 0
        self.extend(every)
        return removed

    def __repr__(self) -> str:
        return format_repr(
            type(self).__name__, [], [f"({i}): {_describe(x)}" for i, x in enumerate(self)]
        )


class ParameterDict(Module):
    """A dict of parameters; tensors become parameters.

    - `parameters`: a dict of tensors, or pairs of a name and a tensor.

    >>> import dovetail as dt
    >>> weights = dt.nn.ParameterDict({"left": dt.ones(2)})
    >>> [*weights], [name for name, _ in weights.named_parameters()]
    (['left'], ['left'])
    """

    def __init__(
        self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None
    ) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self._keys:
            self._check_name("ParameterDict", key, "_parameters")
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter([*self._keys])

    def __reversed__(self) -> Iterator[str]:
        return reversed([*self._keys])

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: Mapping[str, Any] | ParameterDict) -> ParameterDict:
        if not isinstance(other, (Mapping, ParameterDict)):
            return NotImplemented
        return ParameterDict([*self.items(), *other.items()])

    def __ror__(self, other: Mapping[str, Any]) -> ParameterDict:
        return ParameterDict(other) | self if isinstance(other, Mapping) else NotImplemented

    def __ior__(self, other: Mapping[str, Any] | ParameterDict) -> Self:
        self.update(other)
        return self

    def keys(self) -> Iterable[str]:
        """Return the keys, in order."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the keys with their parameters, in order."""
        return [(key, self[key]) for key in self._keys]

    def values(self) -> Iterable[Any]:
        """Return the parameters, in order."""
        return [self[key] for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the parameter of a key, or `default`.

        - `key`: the name of the parameter.
        - `default`: the value for a missing key.
        """
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the parameter of a key; a missing key is first set to `default`.

        - `key`: the name of the parameter.
        - `default`: the value for a missing key.
        """
        if key not in self._keys:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove and return the parameter of a key.

        - `key`: the name of the parameter.

        Raises: KeyError.
        """
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last key and its parameter.

        Raises: KeyError.
        """
        key = next(reversed(self._keys), None)
        if key is None:
            raise KeyError("popitem: the ParameterDict is empty")
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all parameters."""
        for key in [*self._keys]:
            del self[key]

    def copy(self) -> ParameterDict:
        """Return a new dict with the same parameters."""
        return ParameterDict(dict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new dict with `default` for each key, without those of this one.

        - `keys`: the names.
        - `default`: the value of each.
        """
        return ParameterDict(dict.fromkeys(keys, default))

    def update(
        self, parameters: Mapping[str, Any] | ParameterDict | Iterable[tuple[str, Any]]
    ) -> None:
        """Add or replace the tensors of a dict, or of pairs of keys and tensors.

        - `parameters`: the dict or the pairs.
        """
        for key, value in _as_pairs("ParameterDict.update: parameters", parameters):
            self[key] = value

    def __repr__(self) -> str:
        inner = [f"({key}): {_describe(x)}" for key, x in self.items()]
        return format_repr(type(self).__name__, [], inner)


def _insert(name: str, modules: list[Module], index: int, module: Module) -> None:
    """Insert a module into a list, like `list.insert`, for an int of any size."""
    at = arguments.integer(name, index, "index")
    modules.insert(max(-len(modules), min(at, len(modules))), module)


def _as_pairs(name: str, source: Any) -> list[tuple[str, Any]]:
    """Return the items of a dict, or of pairs, as a list. Raises: ArgumentTypeError for others."""
    try:
        is_dict = isinstance(source, (Mapping, ModuleDict, ParameterDict))
        return [(key, value) for key, value in (source.items() if is_dict else source)]
    except (TypeError, ValueError):
        raise dt.ArgumentTypeError(
            f"{name} must be a dict or pairs of keys and values, got {arguments.shown(source)}"
        ) from None


def _as_parameter(value: Any) -> Any:
    """Return a tensor as a parameter, and any other value unchanged."""
    if isinstance(value, dt.Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _describe(x: Any) -> str:
    """Return the text of a value in the repr of a list of parameters."""
    if not isinstance(x, dt.Tensor):
        return f"Object of type: {type(x).__name__}"
    kind = "Parameter" if isinstance(x, Parameter) else "Tensor"
    sizes = "x".join(map(str, x.shape))
    return f"{kind} containing: [{x.dtype.name} of size {sizes} on {x.device}]"
