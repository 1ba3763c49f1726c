"""What a layer or a network is: parameters, buffers and modules under names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, TypeAlias

import dovetail as dt

from .parameter import Buffer, Parameter, is_persistent

__all__ = ["Module"]

Tensor: TypeAlias = dt.Tensor
OWN = ("_parameters", "_buffers", "_modules")


class Module:
    """Base of layers and networks: assign parameters and modules to attributes, write `forward`.

    `training`: whether layers that tell training from use (dropout, batch norm) train.
    A module's tensors are read anew by functions captured with `dt.jit` that use it.

    >>> import dovetail as dt
    >>> class Scale(dt.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.weight = dt.nn.Parameter(dt.ones(2, device="reference"))
    ...     def forward(self, x):
    ...         return x * self.weight
    >>> [name for name, _ in Scale().named_parameters()]
    ['weight']
    """

    training: bool
    _parameters: dict[str, Tensor | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    def __init__(self) -> None:
        for name in OWN:
            object.__setattr__(self, name, {})
        object.__setattr__(self, "_passing", set())  # names of buffers that no state has
        object.__setattr__(self, "training", True)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """What the module makes of its inputs; a module that is called runs it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(self, ...)")

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return self.forward(*inputs, **named)

    # --- attributes
    def __setattr__(self, name: str, value: object) -> None:
        if "_modules" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}.{name} is assigned before super().__init__() was called"
            )
        kept = self._kept(name, value)
        for other in OWN:
            if other != kept:
                self.__dict__[other].pop(name, None)
        if kept:
            self.__dict__.pop(name, None)
            self.__dict__[kept][name] = value
        else:
            object.__setattr__(self, name, value)
        if kept == "_buffers" and isinstance(value, Buffer) and not is_persistent(value):
            self.__dict__["_passing"].add(name)

    def _kept(self, name: str, value: object) -> str:
        """In which of the dictionaries a value belongs; "" for an attribute like any other."""
        if isinstance(value, Parameter):
            return "_parameters"
        if isinstance(value, Module):
            return "_modules"
        if isinstance(value, Buffer):
            return "_buffers"
        for kept in OWN:  # what was one stays one, as None or as another tensor
            if name in self.__dict__[kept]:
                if value is None or (kept == "_buffers" and isinstance(value, dt.Tensor)):
                    return kept
                if kept == "_parameters" and isinstance(value, dt.Tensor):
                    raise dt.ArgumentTypeError(
                        f"{type(self).__name__}.{name} is a parameter: assign nn.Parameter(x), or "
                        f"write into it under dt.no_grad(): module.{name}.copy_(x)"
                    )
        return ""

    def __getattr__(self, name: str) -> Any:
        for kept in OWN:
            found = self.__dict__.get(kept)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for kept in OWN:
            if name in self.__dict__[kept]:
                del self.__dict__[kept][name]
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = [n for kept in OWN for n in self.__dict__.get(kept, ())]
        return sorted({*super().__dir__(), *names})

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Puts a parameter, or the place of one that is not there, under a name."""
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Puts a tensor that is not learnt under a name; `persistent`: as part of the state."""
        self._buffers[name] = tensor
        if not persistent:
            self.__dict__["_passing"].add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Puts a module under a name."""
        self._modules[name] = module

    register_module = add_module

    # --- what is in it
    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module and all within it, each once, with their names from here."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, inner, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """The module and all within it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules right within it, each once, with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules right within it, each once."""
        for _, module in self.named_children():
            yield module

    def _named(
        self, kept: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        modules = self.named_modules(None, prefix, remove_duplicate)
        for path, module in modules if recurse else ((prefix, self),):
            for name, x in module.__dict__[kept].items():
                if x is not None and not (remove_duplicate and id(x) in seen):
                    seen.add(id(x))
                    yield (f"{path}.{name}" if path else name), x

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """What it learns, each once, with names from here: "layers.0.weight"."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """What it learns, each once."""
        for _, x in self.named_parameters(recurse=recurse):
            yield x

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """What it keeps and does not learn, each once, with names from here."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """What it keeps and does not learn, each once."""
        for _, x in self.named_buffers(recurse=recurse):
            yield x

    # --- what is done to all of it
    def train(self, mode: bool = True) -> Self:
        """Sets whether it, and all within it, trains. Returns the module."""
        for module in self.modules():
            object.__setattr__(module, "training", bool(mode))
        return self

    def eval(self) -> Self:
        """Ends training: `train(False)`."""
        return self.train(False)

    def apply(self, fn: Callable[[Module], object]) -> Self:
        """Calls a function with each module within it, then with it. Returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether gradients are wanted for its parameters. Returns the module."""
        for x in self.parameters():
            x.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Lets go of the gradients of its parameters, or makes them zeros."""
        for x in self.parameters():
            if x.grad is not None:
                x.grad = None if set_to_none else dt.zeros_like(x)

    # --- its state
    def state_dict(self, prefix: str = "") -> dict[str, Tensor]:
        """Its parameters and persistent buffers by name, detached, over the same memory."""
        found: dict[str, Tensor] = {}
        for path, module in self.named_modules(None, prefix.removesuffix("."), False):
            start = f"{path}." if path else ""
            for name, x in module._parameters.items():
                if x is not None:
                    found[start + name] = x.detach()
            for name, x in module._buffers.items():
                if x is not None and name not in module.__dict__["_passing"]:
                    found[start + name] = x.detach()
        return found

    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True) -> object:
        """Copies a state into its parameters and buffers."""
        with dt.no_grad():
            for name, x in self.state_dict().items():
                x.copy_(state_dict[name])
        return None

    # --- how it looks
    def extra_repr(self) -> str:
        """What a layer says of itself between the brackets of its repr."""
        return ""

    def __repr__(self) -> str:
        inner = [f"({name}): {module!r}" for name, module in self._modules.items()]
        inner = [line.replace("\n", "\n  ") for line in inner]
        said = self.extra_repr()
        if not inner:
            return f"{type(self).__name__}({said})"
        return (
            f"{type(self).__name__}(\n  " + "\n  ".join([said, *inner] if said else inner) + "\n)"
        )
