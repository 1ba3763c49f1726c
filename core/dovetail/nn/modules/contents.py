"""Named contents of a module: parameters, buffers and submodules, and iteration over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, look_up_again

from ..constructor_errors import Explained
from .parameter import Buffer, Parameter, is_persistent, mark_parameter

if TYPE_CHECKING:
    from .module import Module

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
REGISTRIES = ("_parameters", "_buffers", "_modules")


class ModuleRegistry(Explained):
    """The attributes of a module that are parameters, buffers or modules, and their names."""

    training: bool
    _parameters: dict[str, Tensor | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_names: set[str]  # names of buffers that are not persistent

    if TYPE_CHECKING:  # subclasses are modules, which are hashable

        def __hash__(self) -> int: ...

    # --- attributes
    def __setattr__(self, name: str, value: object) -> None:
        if "_modules" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}: cannot assign {name} before super().__init__() is called"
            )
        registry = self._registry_of(name, value)
        for other in REGISTRIES:
            if other != registry:
                self.__dict__[other].pop(name, None)
        if not registry:
            if name == "training" and value is not self.__dict__.get(name):
                look_up_again()  # captured functions depend on the mode
            object.__setattr__(self, name, value)
            return
        self.__dict__.pop(name, None)
        if registry == "_buffers" and isinstance(value, Buffer):
            self._non_persistent_names.discard(name)
            if not is_persistent(value):
                self._non_persistent_names.add(name)
        self.__dict__[registry][name] = value

    def _registry_of(self, name: str, value: object) -> str:
        """Return the name of the dict in which a value belongs; "" for an ordinary attribute."""
        if isinstance(value, Parameter):
            return "_parameters"
        if isinstance(value, ModuleRegistry):
            return "_modules"
        if isinstance(value, Buffer):
            return "_buffers"
        for registry in REGISTRIES:  # a registered name may become None, a buffer another tensor
            if name in self.__dict__[registry]:
                if value is None or (registry == "_buffers" and isinstance(value, dt.Tensor)):
                    return registry
                raise dt.ArgumentTypeError(_wrong_kind_text(self, name, registry, value))
        return ""

    def __getattr__(self, name: str) -> Any:
        for registry in REGISTRIES:
            entries = self.__dict__.get(registry)
            if entries is not None and name in entries:
                return entries[name]
        hint = arguments.hints.find_hint("Module", name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def __delattr__(self, name: str) -> None:
        for registry in REGISTRIES:
            if name in self.__dict__[registry]:
                del self.__dict__[registry][name]
                self._non_persistent_names.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        registered = [n for registry in REGISTRIES for n in self.__dict__.get(registry, ())]
        return sorted({*super().__dir__(), *[n for n in registered if n.isidentifier()]})

    def __setstate__(self, state: dict[str, Any]) -> None:  # called by pickle and deepcopy
        self.__dict__.update(state)
        for x in self._parameters.values():
            if x is not None:
                mark_parameter(x)

    # --- registration
    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Register a parameter under a name, or None to reserve the name.

        `name`: without dots. `param`: an `nn.Parameter`, or None.
        Raises: ArgumentError for a name that is in use or has dots, ArgumentTypeError for a value
        that is not a parameter, GradientError for a parameter that is not a leaf.
        """
        self._check_name("register_parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise dt.ArgumentTypeError(
                f"register_parameter: {name!r} must be an nn.Parameter or None, got "
                f"{type(param).__name__}; use nn.Parameter(x)"
            )
        if param is not None and (grad_fn := param.grad_fn) is not None:
            raise dt.GradientError(
                f"register_parameter: {name!r} must be a leaf, got the result of {grad_fn.name}; "
                "use nn.Parameter(x.detach()), or compute it in forward()"
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is not learnt under a name.

        `name`: without dots. `persistent`: include it in `state_dict()`.
        Raises: ArgumentError for a name that is in use or has dots, ArgumentTypeError for a value
        that is neither a tensor nor None.
        """
        self._check_name("register_buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, dt.Tensor):
            raise dt.ArgumentTypeError(
                f"register_buffer: {name!r} must be a tensor or None, got "
                f"{type(tensor).__name__}; use dt.asarray(x)"
            )
        self._buffers[name] = tensor
        self._non_persistent_names.discard(name)
        if not persistent:
            self._non_persistent_names.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Register a module under a name, or None to reserve the name.

        Raises: ArgumentError for a name that is in use or has dots, ArgumentTypeError for a value
        that is neither a module nor None.
        """
        self._check_name("add_module", name, "_modules")
        if module is not None and not isinstance(module, ModuleRegistry):
            raise dt.ArgumentTypeError(
                f"add_module: {name!r} must be an nn.Module or None, got {type(module).__name__}"
            )
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """Register a module under a name: an alias of `add_module`."""
        self.add_module(name, module)

    def _check_name(self, op: str, name: object, registry: str) -> None:
        """Raise an error for a name that cannot be registered."""
        if registry not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}: cannot call {op} before super().__init__() is called"
            )
        if not isinstance(name, str):
            raise dt.ArgumentTypeError(f"{op}: the name must be a str, got {type(name).__name__}")
        if not name or "." in name:
            raise dt.ArgumentError(
                f"{op}: the name must not be empty or contain a dot, got {name!r}; dots separate "
                "the names of nested modules"
            )
        if hasattr(self, name) and name not in self.__dict__[registry]:
            raise dt.ArgumentError(f"{op}: {type(self).__name__} already has an attribute {name!r}")

    # --- iteration
    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield this module and all modules within it, each once, with their names."""
        memo = set() if memo is None else memo
        me: Module = self  # type: ignore[assignment]  # all subclasses are modules
        if me in memo:
            return
        if remove_duplicate:
            memo.add(me)
        yield prefix, me
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, inner, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all modules within it, each once or with duplicates."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the direct submodules, each once, with their names."""
        visited = set()
        for name, module in self._modules.items():
            if module is not None and module not in visited:
                visited.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yield the direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def _named_tensors(
        self, registry: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the tensors in a registry, with their names."""
        visited: set[int] = set()
        modules: Iterable[tuple[str, ModuleRegistry]] = [(prefix, self)]
        if recurse:
            modules = self.named_modules(None, prefix, remove_duplicate)
        for path, module in modules:
            for name, x in module.__dict__[registry].items():
                if x is not None and not (remove_duplicate and id(x) in visited):
                    visited.add(id(x))
                    yield (f"{path}.{name}" if path else name), x

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the parameters, each once, with names such as "layers.0.weight"."""
        return self._named_tensors("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the parameters, each once."""
        for _, x in self.named_parameters(recurse=recurse):
            yield x

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers, each once, with their names."""
        return self._named_tensors("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers, each once."""
        for _, x in self.named_buffers(recurse=recurse):
            yield x

    # --- access by name
    def get_submodule(self, target: str) -> Module:
        """Return the module with a name such as "layers.0"; "" is this module.

        Raises: AttributeError where there is none.
        """
        module: Any = self
        for depth, name in enumerate(target.split(".") if target else ()):
            inner = module._modules.get(name)
            if inner is None:
                where = ".".join(target.split(".")[:depth]) or type(self).__name__
                raise AttributeError(f"{where} has no module {name!r}, which {target!r} names")
            module = inner
        return module  # type: ignore[no-any-return]  # all subclasses are modules

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set the module with a name, or replace it.

        A replaced module keeps its position in the order. `strict`: only replace.
        Raises: AttributeError if the outer module is missing, or the name is not that of a module;
        ArgumentError for an empty name, ArgumentTypeError for a value that is not a module.
        """
        if not target:
            raise dt.ArgumentError(
                "set_submodule: the target must not be empty; pass the name of a submodule"
            )
        if not isinstance(module, ModuleRegistry):
            raise dt.ArgumentTypeError(f"set_submodule: expected a Module, got {module!r:.80}")
        where, _, name = target.rpartition(".")
        parent = self.get_submodule(where)
        if not hasattr(parent, name):
            if strict:
                raise AttributeError(f"{where or type(self).__name__} has no module {name!r}")
            parent.add_module(name, module)
        elif name in parent._modules:
            parent._modules[name] = module
        else:
            raise AttributeError(
                f"{target} is not a module, got {type(getattr(parent, name)).__name__}"
            )

    def get_parameter(self, target: str) -> Tensor:
        """Return the parameter with a name such as "layers.0.weight".

        Raises: AttributeError where there is none.
        """
        return self._get_tensor(target, "_parameters", "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer with a name.

        Raises: AttributeError where there is none.
        """
        return self._get_tensor(target, "_buffers", "buffer")

    def _get_tensor(self, target: str, registry: str, kind: str) -> Tensor:
        where, _, name = target.rpartition(".")
        tensor: Tensor | None = self.get_submodule(where).__dict__[registry].get(name)
        if tensor is None:
            raise AttributeError(f"{where or type(self).__name__} has no {kind} {name!r}")
        return tensor


def _wrong_kind_text(module: object, name: str, registry: str, value: object) -> str:
    """Return the error text for a value that cannot replace an attribute of another kind."""
    subject = f"{type(module).__name__}.{name} is a "
    if registry == "_parameters":
        return subject + (
            f"parameter, and must be assigned an nn.Parameter, got {type(value).__name__}; use "
            f"nn.Parameter(x), or module.{name}.copy_(x) under dt.no_grad(); `del module.{name}` "
            "first makes it a plain attribute"
        )
    if registry == "_buffers":
        return (
            subject + f"buffer, and must be assigned a tensor or None, got {type(value).__name__}"
        )
    return subject + f"module, and must be assigned a module or None, got {type(value).__name__}"
