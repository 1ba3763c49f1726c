"""What a module has under names: parameters, buffers and modules; and the walks through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, look_up_again

from ..constructor_errors import Explained
from .parameter import Buffer, Parameter, is_persistent, marked

if TYPE_CHECKING:
    from .module import Module

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
OWN = ("_parameters", "_buffers", "_modules")


class Contents(Explained):
    """The attributes of a module, and the names of all that is within it."""

    training: bool
    _parameters: dict[str, Tensor | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _passing: set[str]  # names of buffers that no state has

    if TYPE_CHECKING:  # of what derives from it: a module

        def __hash__(self) -> int: ...

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
        if not kept:
            if name == "training" and value is not self.__dict__.get(name):
                look_up_again()  # of functions that were captured for what it was
            object.__setattr__(self, name, value)
            return
        self.__dict__.pop(name, None)
        if kept == "_buffers" and isinstance(value, Buffer):
            self._passing.discard(name)
            if not is_persistent(value):
                self._passing.add(name)
        self.__dict__[kept][name] = value

    def _kept(self, name: str, value: object) -> str:
        """In which of the dictionaries a value belongs; "" for an attribute like any other."""
        if isinstance(value, Parameter):
            return "_parameters"
        if isinstance(value, Contents):
            return "_modules"
        if isinstance(value, Buffer):
            return "_buffers"
        for kept in OWN:  # what was one stays one, as None or as another tensor
            if name in self.__dict__[kept]:
                if value is None or (kept == "_buffers" and isinstance(value, dt.Tensor)):
                    return kept
                raise dt.ArgumentTypeError(_refusal(self, name, kept, value))
        return ""

    def __getattr__(self, name: str) -> Any:
        for kept in OWN:
            found = self.__dict__.get(kept)
            if found is not None and name in found:
                return found[name]
        way = arguments.hints.tables()["Module"].get(name)
        known = "" if way is None else f"; here it is {way}"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{known}")

    def __delattr__(self, name: str) -> None:
        for kept in OWN:
            if name in self.__dict__[kept]:
                del self.__dict__[kept][name]
                self._passing.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = [n for kept in OWN for n in self.__dict__.get(kept, ()) if n.isidentifier()]
        return sorted({*super().__dir__(), *names})

    def __setstate__(self, state: dict[str, Any]) -> None:  # of pickle and of deepcopy
        self.__dict__.update(state)
        for x in self._parameters.values():
            if x is not None:
                marked(x)

    # --- what is put under names
    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Puts a parameter, or the place of one that is not there, under a name.

        `name`: without dots. `param`: an `nn.Parameter`, or None.
        Raises: ArgumentError for a name that is taken or has dots, ArgumentTypeError for another
        tensor than a parameter, GradientError for a parameter that was computed.
        """
        self._take_name("register_parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise dt.ArgumentTypeError(
                f"register_parameter: {name!r} is to be an nn.Parameter or None, not a "
                f"{type(param).__name__}; see nn.Parameter(x)"
            )
        if param is not None and (made_by := param.grad_fn) is not None:
            raise dt.GradientError(
                f"register_parameter: {name!r} is a result of {made_by.name}: a parameter is "
                "a leaf, nn.Parameter(x.detach()); compute what depends on others in forward()"
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Puts a tensor that is not learnt under a name.

        `name`: without dots. `persistent`: whether it is part of `state_dict()`.
        Raises: ArgumentError for a name that is taken or has dots, ArgumentTypeError for what is
        neither a tensor nor None.
        """
        self._take_name("register_buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, dt.Tensor):
            raise dt.ArgumentTypeError(
                f"register_buffer: {name!r} is to be a tensor or None, not a "
                f"{type(tensor).__name__}; see dt.asarray"
            )
        self._buffers[name] = tensor
        self._passing.discard(name)
        if not persistent:
            self._passing.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Puts a module, or the place of one that is not there, under a name.

        Raises: ArgumentError for a name that is taken or has dots, ArgumentTypeError for what is
        neither a module nor None.
        """
        self._take_name("add_module", name, "_modules")
        if module is not None and not isinstance(module, Contents):
            raise dt.ArgumentTypeError(
                f"add_module: {name!r} is to be an nn.Module or None, not a {type(module).__name__}"
            )
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    def _take_name(self, op: str, name: object, kept: str) -> None:
        """Raises: ArgumentError, ArgumentTypeError for a name that cannot be taken."""
        if kept not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}: {op} was called before super().__init__() was"
            )
        if not isinstance(name, str):
            raise dt.ArgumentTypeError(f"{op}: a name is a str, not a {type(name).__name__}")
        if not name or "." in name:
            raise dt.ArgumentError(
                f"{op}: {name!r} is no name: one is not empty and has no dot, which stands between "
                "the names of a module and of what is in it"
            )
        if hasattr(self, name) and name not in self.__dict__[kept]:
            raise dt.ArgumentError(f"{op}: {type(self).__name__} has an attribute {name!r} already")

    # --- what is in it
    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module and all within it, each once, with their names from here."""
        memo = set() if memo is None else memo
        me: Module = self  # type: ignore[assignment]  # what derives from this is a module
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
        """The module and all within it, each once, or as often as it is there."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
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
        modules: Iterable[tuple[str, Contents]] = [(prefix, self)]
        if recurse:
            modules = self.named_modules(None, prefix, remove_duplicate)
        for path, module in modules:
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

    # --- by their names
    def get_submodule(self, target: str) -> Module:
        """The module under a name from here: "layers.0"; itself for "".

        Raises: AttributeError where there is none.
        """
        found: Any = self
        for at, name in enumerate(target.split(".") if target else ()):
            inner = found._modules.get(name)
            if inner is None:
                where = ".".join(target.split(".")[:at]) or type(self).__name__
                raise AttributeError(f"{where} has no module {name!r}, asked for by {target!r}")
            found = inner
        return found  # type: ignore[no-any-return]  # as above

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module under a name from here, in place of the one that may be there.

        `strict`: whether there has to be one. It keeps its place in the order.
        Raises: AttributeError where what it is to be in is not there, or what is there is no
        module; ArgumentError for no name, ArgumentTypeError for what is no module.
        """
        if not target:
            raise dt.ArgumentError("set_submodule: the module itself cannot be set; give a name")
        if not isinstance(module, Contents):
            raise dt.ArgumentTypeError(f"set_submodule: needs a Module, not {module!r:.80}")
        where, _, name = target.rpartition(".")
        home = self.get_submodule(where)
        if not hasattr(home, name):
            if strict:
                raise AttributeError(f"{where or type(self).__name__} has no module {name!r}")
            home.add_module(name, module)
        elif name in home._modules:
            home._modules[name] = module
        else:
            raise AttributeError(f"{target} is a {type(getattr(home, name)).__name__}, no module")

    def get_parameter(self, target: str) -> Tensor:
        """The parameter under a name from here: "layers.0.weight".

        Raises: AttributeError where there is none.
        """
        return self._found(target, "_parameters", "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer under a name from here.

        Raises: AttributeError where there is none.
        """
        return self._found(target, "_buffers", "buffer")

    def _found(self, target: str, kept: str, what: str) -> Tensor:
        where, _, name = target.rpartition(".")
        found: Tensor | None = self.get_submodule(where).__dict__[kept].get(name)
        if found is None:
            raise AttributeError(f"{where or type(self).__name__} has no {what} {name!r}")
        return found


def _refusal(module: object, name: str, kept: str, value: object) -> str:
    """What is said where an attribute would become something of another kind."""
    said = f"{type(module).__name__}.{name} is a "
    if kept == "_parameters":
        return said + (
            f"parameter, and cannot become a {type(value).__name__}: assign nn.Parameter(x), or "
            f"write into it under dt.no_grad(): module.{name}.copy_(x); `del module.{name}` first "
            "makes it an attribute like others"
        )
    if kept == "_buffers":
        return said + f"buffer: assign a tensor or None, not a {type(value).__name__}"
    return said + f"module: assign a module or None, not a {type(value).__name__}"
