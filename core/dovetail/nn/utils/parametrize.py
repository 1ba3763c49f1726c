"""Parametrizations: a module's tensor as a function of other tensors, which are learnt instead.

A parametrized module has a class of its own, a subclass of its former one. Its tensor is computed
when it is read; the module's tensors are under the keys `parametrizations.NAME.original`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import dovetail as dt

from ..call_errors import explain_all
from ..modules.containers import ModuleDict
from ..modules.module import Module
from ..modules.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

Tensor: TypeAlias = dt.Tensor
LISTS = "parametrizations"  # the name of the ModuleDict of a parametrized module

_cache: ContextVar[dict[int, Tensor] | None] = ContextVar("parametrized tensors", default=None)


class ParametrizationList(Module):
    """The parametrizations of one tensor, and the tensors of which they compute it.

    - `modules`: the parametrizations, in the order of their application.
    - `original`: the tensor. The `right_inverse` of the modules gives the learnt tensors:
      `original`, or `original0`, `original1` and so on if it returns several.
    - `unsafe`: allow another shape and dtype.

    `register_parametrization` makes it: `module.parametrizations.weight`.

    >>> import dovetail as dt
    >>> layer = dt.nn.utils.parametrizations.weight_norm(dt.nn.Linear(3, 2))
    >>> [name for name, _ in layer.parametrizations.weight.named_parameters()]
    ['original0', 'original1']
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        super().__init__()
        self.unsafe = unsafe
        for module in modules:
            self.append(module)
        with dt.no_grad():
            inverse = self._invert(original, is_strict=False)
        self.is_tensor = isinstance(inverse, dt.Tensor)
        for name, x in self._named_originals(inverse):
            if not isinstance(original, Parameter):
                self.register_buffer(name, x.detach())
            elif self.is_tensor:  # the same object, which an optimizer may have
                self.register_parameter(name, original.set_(x.detach()) if x is not original else x)
            else:
                learns = original.requires_grad and x.dtype.kind in "fc"
                self.register_parameter(name, Parameter(x.detach(), requires_grad=learns))

    def append(self, module: Module) -> None:
        """Add a module that is applied after the others.

        - `module`: the parametrization.
        """
        self.add_module(str(len(self)), module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, k: int) -> Any:
        return [*self][k]

    def _named_originals(self, tensors: Tensor | Sequence[Tensor]) -> list[tuple[str, Tensor]]:
        """Return the names of originals with tensors: new ones, or of `originals`."""
        if isinstance(tensors, dt.Tensor):
            return [("original", tensors)]
        return [(f"original{k}", x) for k, x in enumerate(tensors)]

    def _invert(self, value: Tensor, is_strict: bool = True) -> Any:
        """Return the originals of a value by the `right_inverse` of each module, the last first.

        Raises: ArgumentError with `is_strict` for a module without it.
        """
        inverse: Any = value
        for module in reversed([*self]):
            try:
                inverse = module.right_inverse(inverse)
            except (AttributeError, NotImplementedError):
                if hasattr(type(module), "right_inverse") and is_strict:
                    raise
                if is_strict:
                    raise dt.ArgumentError(
                        f"{type(module).__name__}: cannot assign to a parametrized tensor, because "
                        "this parametrization has no right_inverse(value)"
                    ) from None
        return inverse

    def originals(self) -> list[Tensor]:
        """Return the tensors of which the parametrized one is computed."""
        tensors = (*self._parameters.values(), *self._buffers.values())
        return [x for x in tensors if x is not None]

    def right_inverse(self, value: Tensor) -> None:
        """Write the originals for which the parametrized tensor is `value`.

        - `value`: the tensor.

        Raises: ArgumentError for a parametrization without `right_inverse`.
        """
        with dt.no_grad():
            inverse = self._invert(value)
            for name, x in self._named_originals(inverse):
                getattr(self, name).copy_(x)

    def forward(self) -> Tensor:
        """Return the parametrized tensor."""
        first, *others = [*self]
        x: Tensor = first(*self.originals())
        for module in others:
            x = module(x)
        return x


class _Parametrized:
    """The methods of modules with tensors that `_computed` computes: a function by name."""

    _computed: dict[str, Callable[[], Tensor]]

    def __getattr__(self, name: str) -> Any:
        compute = self.__dict__["_computed"].get(name)
        if compute is None:
            return super().__getattr__(name)  # type: ignore[misc]  # that of Module
        results = _cache.get()
        if results is None:
            return compute()
        if id(compute) not in results:
            results[id(compute)] = compute()
        return results[id(compute)]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__["_computed"]:
            self.__dict__["_computed"][name].right_inverse(value)
        else:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__dict__["_computed"]})

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return _create_empty, (type(self).__bases__[1],), self.__dict__


_classes: dict[type[Module], type[Module]] = {}  # of parametrized modules, by their former class


def _make_class(base: type[Module]) -> type[Module]:
    """Return the class of parametrized modules of a class, one for each."""
    if base not in _classes:
        _classes[base] = type(f"Parametrized{base.__name__}", (_Parametrized, base), {})
    return _classes[base]


def _create_empty(base: type[Module]) -> Module:
    """Return a parametrized module of a class without any attribute, for pickle and deepcopy."""
    kind = _make_class(base)
    return kind.__new__(kind)


def compute_tensor(module: Module, name: str, compute: Callable[[], Tensor]) -> None:
    """Remove a tensor of a module, and compute it at each read."""
    delattr(module, name)
    if not isinstance(module, _Parametrized):
        module.__dict__["_computed"] = {}
        module.__class__ = _make_class(type(module))
    module.__dict__["_computed"][name] = compute


def restore_tensor(module: Module, name: str, x: Tensor) -> None:
    """Make a computed tensor a parameter or buffer again, and restore the class."""
    del module.__dict__["_computed"][name]
    if not module.__dict__["_computed"]:
        object.__setattr__(module, "__class__", type_before_parametrizations(module))
        del module.__dict__["_computed"]
    if isinstance(x, Parameter):
        module.register_parameter(name, x)
    else:
        module.register_buffer(name, x)


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once within a `with` block.

    It saves time if a tensor is read often, as the weights of a cell in a loop are.

    >>> import dovetail as dt
    >>> cell = dt.nn.utils.parametrizations.weight_norm(dt.nn.RNNCell(2, 3), "weight_hh")
    >>> with dt.nn.utils.parametrize.cached():
    ...     cell.weight_hh is cell.weight_hh
    True
    """
    token = _cache.set({} if _cache.get() is None else _cache.get())
    try:
        yield
    finally:
        _cache.reset(token)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make a tensor of a module a function of itself, or of other tensors; return the module.

    - `module`: the module, whose class becomes a subclass of its former one.
    - `tensor_name`: the name of a parameter or buffer.
    - `parametrization`: a module whose `forward` returns the tensor. Its method `right_inverse`,
      if it has one, returns the tensor or tensors that are learnt instead.
    - `unsafe`: allow another shape and dtype, and do not compare them.

    A second parametrization is applied to the result of the first.
    Raises: ArgumentError for a name that the module lacks, ShapeError and DTypeError for a result
    of another shape or dtype.
    See also: `remove_parametrizations`, `parametrizations`.

    >>> import dovetail as dt
    >>> class Symmetric(dt.nn.Module):
    ...     def forward(self, x):
    ...         return dt.triu(x) + dt.triu(x, 1).mT
    >>> layer = dt.nn.Linear(3, 3)
    >>> layer = dt.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool(dt.all(layer.weight == layer.weight.T)), [*layer.state_dict()]
    (True, ['bias', 'parametrizations.weight.original'])
    """
    op = "register_parametrization"
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        owner = module._modules[LISTS][tensor_name]  # type: ignore[index]  # a ModuleDict
        if not unsafe:
            before = owner()
            _check_result(op, before, parametrization(before))
        owner.append(parametrization)
        owner.unsafe |= unsafe
        return module
    original = module._parameters.get(tensor_name, module._buffers.get(tensor_name))
    if original is None:
        raise dt.ArgumentError(
            f"{op}: {type(module).__name__} has no parameter or buffer {tensor_name!r}"
        )
    shape, dtype = original.shape, original.dtype
    created = ParametrizationList([parametrization], original, unsafe)
    if not unsafe:
        with dt.no_grad():
            _check_result(op, dt.empty(shape, dtype=dtype), created())
    compute_tensor(module, tensor_name, created)
    if LISTS not in module._modules:
        module.add_module(LISTS, ModuleDict())
    module._modules[LISTS][tensor_name] = created  # type: ignore[index]  # a ModuleDict
    return module


def _check_result(op: str, before: Tensor, after: Tensor) -> None:
    """Raise ShapeError or DTypeError if a parametrization changes the shape or dtype."""
    if before.shape != after.shape:
        raise dt.ShapeError(
            f"{op}: the parametrization must keep the shape {before.shape}, got {after.shape}; "
            "pass unsafe=True to change it"
        )
    if before.dtype is not after.dtype:
        raise dt.DTypeError(
            f"{op}: the parametrization must keep the dtype {before.dtype.name}, got "
            f"{after.dtype.name}; pass unsafe=True to change it"
        )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return True if a module has a parametrized tensor, or one of a given name.

    - `module`: the module.
    - `tensor_name`: the name of the tensor; None is any.

    >>> import dovetail as dt
    >>> dt.nn.utils.parametrize.is_parametrized(dt.nn.Linear(2, 2))
    False
    """
    lists: Any = module._modules.get(LISTS, ()) if isinstance(module, _Parametrized) else ()
    return len(lists) > 0 if tensor_name is None else tensor_name in lists


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrized tensor an ordinary parameter or buffer again; return the module.

    - `module`: the module.
    - `tensor_name`: the name of the tensor.
    - `leave_parametrized`: True keeps its present value; False restores the original, which must
      be one tensor.

    Raises: ArgumentError for a tensor that is not parametrized, and for several originals with
    leave_parametrized=False.

    >>> import dovetail as dt
    >>> layer = dt.nn.utils.parametrizations.weight_norm(dt.nn.Linear(3, 2))
    >>> layer = dt.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    """
    op = "remove_parametrizations"
    if not is_parametrized(module, tensor_name):
        raise dt.ArgumentError(
            f"{op}: {type(module).__name__}.{tensor_name} must be parametrized; see is_parametrized"
        )
    lists: Any = module._modules[LISTS]
    owner = lists[tensor_name]
    first = owner.originals()[0]
    if not leave_parametrized and not owner.is_tensor:
        raise dt.ArgumentError(
            f"{op}: leave_parametrized must be True for a tensor with several originals, got False"
        )
    if leave_parametrized:
        with dt.no_grad():
            value = owner().detach()
        if owner.is_tensor:
            first.set_(value.copy())
        elif isinstance(first, Parameter):
            first = Parameter(value, requires_grad=first.requires_grad)
        else:
            first = value
    del lists[tensor_name]
    if not len(lists):
        del module._modules[LISTS]
    restore_tensor(module, tensor_name, first)
    return module


def type_before_parametrizations(module: Module) -> type[Module]:
    """Return the class of a module before its tensors were parametrized.

    - `module`: any module.

    >>> import dovetail as dt
    >>> layer = dt.nn.utils.parametrizations.weight_norm(dt.nn.Linear(3, 2))
    >>> dt.nn.utils.parametrize.type_before_parametrizations(layer).__name__
    'Linear'
    """
    kind = type(module)
    return kind.__bases__[1] if isinstance(module, _Parametrized) else kind


explain_all(globals(), __all__)
