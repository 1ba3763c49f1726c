"""The state of a module as a dict of tensors, and a module in a state that was kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import dovetail as dt

from .contents import Contents
from .hooks import Handle, Hook, added

if TYPE_CHECKING:
    from .module import Module

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
EXTRA = "_extra_state"
KINDS = (
    "_state_dict_pre_hooks", "_state_dict_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)  # fmt: skip


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` did not find, and what it did not know."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys({self.missing_keys=}, {self.unexpected_keys=})".replace(
            "self.", ""
        )


class Stateful(Contents):
    """A module's state: its parameters and persistent buffers by name."""

    _state_dict_pre_hooks: dict[int, Hook]
    _state_dict_hooks: dict[int, Hook]
    _load_state_dict_pre_hooks: dict[int, tuple[Hook, bool]]  # with whether it takes the module
    _load_state_dict_post_hooks: dict[int, Hook]

    # --- what else than tensors belongs to it
    def get_extra_state(self) -> Any:
        """What a module adds to its state; written by subclasses, with `set_extra_state`."""
        raise NotImplementedError(f"{type(self).__name__} has no get_extra_state()")

    def set_extra_state(self, state: Any) -> None:
        """Takes what `get_extra_state` gave; written by subclasses."""
        raise NotImplementedError(f"{type(self).__name__} has no set_extra_state(state)")

    # --- as a dict
    def state_dict(
        self, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Its parameters and persistent buffers by name, detached, over the same memory.

        `dt.save("net.safetensors", net.state_dict())` keeps it. `destination`: a dict that it is
        put into. `prefix`: what stands before each name. `keep_vars`: the tensors themselves,
        which gradients flow to.
        """
        found: dict[str, Any] = {} if destination is None else destination
        for path, module in self.named_modules(None, "", False):
            start = f"{prefix}{path}." if path else prefix
            for before in [*module._state_dict_pre_hooks.values()]:
                before(module, start, keep_vars)
            for name, x in module._own_state():
                found[start + name] = x if keep_vars else x.detach()
            if _has_extra(module):
                found[start + EXTRA] = module.get_extra_state()
        for path, module in reversed([*self.named_modules(None, "", False)]):  # the inner first
            start = f"{prefix}{path}." if path else prefix
            for after in [*module._state_dict_hooks.values()]:
                changed = after(module, found, start, {})
                found = found if changed is None else changed
        return found

    def _own_state(self) -> list[tuple[str, Tensor]]:
        """What is right in it, by name."""
        own = [*self._parameters.items()]
        own += [(n, x) for n, x in self._buffers.items() if n not in self._passing]
        return [(n, x) for n, x in own if x is not None]

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Takes the values of a state; gives the names that were missing and those unknown.

        `state_dict`: tensors by name, on any device, as `state_dict()` and `dt.load` give them;
        arrays of others, too. `strict`: whether names must be the same on both sides. `assign`:
        parameters take the given tensors' memory, device and dtype, instead of their elements.
        Where anything is wrong all of it is said, and nothing is loaded.
        Raises: ArgumentError for missing and unexpected names, ShapeError where only shapes
        differ, ArgumentTypeError for what is no dict.
        """
        if not isinstance(state_dict, Mapping):
            raise dt.ArgumentTypeError(
                f"load_state_dict: needs a dict of tensors by name, not a "
                f"{type(state_dict).__name__}; see dt.load"
            )
        loading = _Loading(self, dict(state_dict), strict)
        loading.look()
        loading.refuse()
        loading.write(assign)
        return loading.keys

    # --- hooks
    def register_state_dict_pre_hook(self, hook: Hook) -> Handle:
        """Has `hook(module, prefix, keep_vars)` called before `state_dict` looks at the module."""
        return added("register_state_dict_pre_hook", self._state_dict_pre_hooks, hook, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> Handle:
        """Has `hook(module, state_dict, prefix, local_metadata)` called with what was found."""
        return added("register_state_dict_post_hook", self._state_dict_hooks, hook, hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> Handle:
        """Has a hook called before a state is loaded, which may change the dict.

        It gets (module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs); the dict is a copy of the one given.
        """
        hooks = self._load_state_dict_pre_hooks
        return added("register_load_state_dict_pre_hook", hooks, hook, (hook, True))

    def register_load_state_dict_post_hook(self, hook: Hook) -> Handle:
        """Has `hook(module, incompatible_keys)` called after a state is loaded.

        It may change the lists of names that it gets: what it takes out is no error. So it is
        called before the names are judged, and sees the module before it takes the values.
        """
        hooks = self._load_state_dict_post_hooks
        return added("register_load_state_dict_post_hook", hooks, hook, hook)


def _has_extra(module: Stateful) -> bool:
    return type(module).get_extra_state is not Stateful.get_extra_state


class _Loading:
    """A state on its way into a module."""

    def __init__(self, module: Stateful, given: dict[str, Any], strict: bool) -> None:
        self.module, self.given, self.strict = module, given, strict
        self.keys = IncompatibleKeys([], [])
        self.wrong: list[str] = []  # of shapes, and what hooks say
        self.values: list[tuple[Tensor, Tensor]] = []  # a tensor of the module, and what it gets
        self.extra: list[tuple[Module, Any]] = []

    def look(self) -> None:
        """Finds what belongs together, and what does not."""
        known: set[str] = set()
        for path, module in self.module.named_modules(None, "", False):
            start = f"{path}." if path else ""
            for before, _ in [*module._load_state_dict_pre_hooks.values()]:
                missing, unexpected = self.keys
                before(module, self.given, start, {}, self.strict, missing, unexpected, self.wrong)
            for name, x in module._own_state():
                known.add(start + name)
                self.pair(start + name, x)
            if _has_extra(module):
                known.add(start + EXTRA)
                self.pair_extra(start + EXTRA, module)
        self.keys.unexpected_keys.extend(k for k in self.given if k not in known)
        for _, module in reversed([*self.module.named_modules(None, "", False)]):
            for after in [*module._load_state_dict_post_hooks.values()]:
                after(module, self.keys)

    def pair(self, key: str, x: Tensor) -> None:
        """What a tensor of the module gets."""
        if key not in self.given:
            self.keys.missing_keys.append(key)
            return
        y = self.given[key]
        try:
            y = y if isinstance(y, dt.Tensor) else dt.asarray(y)
        except (dt.DovetailError, TypeError, ValueError) as error:
            self.wrong.append(f"{key}: {error}")
            return
        if y.shape == (1,) and x.shape == ():  # of before there were scalars
            y = y.reshape(())
        if y.shape != x.shape:
            self.wrong.append(f"{key} has shape {y.shape}, the module's {x.shape}")
        elif y.dtype.kind == "c" and x.dtype.kind != "c":
            self.wrong.append(f"{key} is {y.dtype.name}, the module's {x.dtype.name}")
        else:
            self.values.append((x, y))

    def pair_extra(self, key: str, module: Module) -> None:
        """What is no tensor."""
        if key in self.given:
            self.extra.append((module, self.given[key]))
        else:
            self.keys.missing_keys.append(key)

    def refuse(self) -> None:
        """Raises: ArgumentError, ShapeError where something does not fit; all of it is listed."""
        missing, unexpected = self.keys if self.strict else ([], [])
        parts = [
            f"{what}:{''.join(f'{sep}{line}' for line in found)}"
            for what, found, sep in (
                ("missing", missing, "\n    "),
                ("unexpected", unexpected, "\n    "),
                ("not fitting", self.wrong, "\n    "),
            )
            if found
        ]
        if not parts:
            return
        kind = dt.ArgumentError if missing or unexpected else dt.ShapeError
        way = "; strict=False leaves out what is missing or unexpected" if len(parts) else ""
        raise kind(
            f"load_state_dict: the state does not fit {type(self.module).__name__}, and nothing "
            f"was loaded{way}\n  " + "\n  ".join(parts)
        )

    def write(self, assign: bool) -> None:
        """Puts the values where they belong."""
        ready = [(x, y if assign else y.to(x.device, x.dtype)) for x, y in self.values]
        dt.evaluate(*[y for _, y in ready])
        with dt.no_grad():
            for x, y in ready:
                if assign:
                    x.set_(y)
                else:
                    x.copy_(y)
        for module, extra in self.extra:
            module.set_extra_state(extra)
