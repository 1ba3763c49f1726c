"""The state of a module as a dict of tensors, and loading such a state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import dovetail as dt

from .contents import ModuleRegistry
from .hooks import Hook, ModuleHookHandle, register_hook

if TYPE_CHECKING:
    from .module import Module

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
EXTRA_STATE_KEY = "_extra_state"
KINDS = (
    "_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class IncompatibleKeys(NamedTuple):
    """The names that `load_state_dict` missed, and the names that it did not expect."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys({self.missing_keys=}, {self.unexpected_keys=})".replace(
            "self.", ""
        )


class Stateful(ModuleRegistry):
    """A module's state: its parameters and persistent buffers by name."""

    _state_dict_pre_hooks: dict[int, Hook]
    _state_dict_hooks: dict[int, Hook]
    _load_state_dict_pre_hooks: dict[int, tuple[Hook, bool]]  # hook, with_module
    _load_state_dict_post_hooks: dict[int, Hook]

    # --- additional state
    def get_extra_state(self) -> Any:
        """Return additional state; subclasses define it together with `set_extra_state`."""
        raise NotImplementedError(f"{type(self).__name__} has no get_extra_state()")

    def set_extra_state(self, state: Any) -> None:
        """Restore the result of `get_extra_state`; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} has no set_extra_state(state)")

    # --- saving and loading
    def state_dict(
        self, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return parameters and persistent buffers by name, detached, over the same memory.

        Save it with `dt.save("net.safetensors", net.state_dict())`. `destination`: a dict to fill.
        `prefix`: a prefix of all names. `keep_vars`: do not detach the tensors.
        """
        state: dict[str, Any] = {} if destination is None else destination
        for path, module in self.named_modules(None, "", False):
            start = f"{prefix}{path}." if path else prefix
            for pre_hook in [*module._state_dict_pre_hooks.values()]:
                pre_hook(module, start, keep_vars)
            for name, x in module._own_state():
                state[start + name] = x if keep_vars else x.detach()
            if _has_extra(module):
                state[start + EXTRA_STATE_KEY] = module.get_extra_state()
        for path, module in reversed([*self.named_modules(None, "", False)]):  # inner modules first
            start = f"{prefix}{path}." if path else prefix
            for hook in [*module._state_dict_hooks.values()]:
                changed = hook(module, state, start, {})
                state = state if changed is None else changed
        return state

    def _own_state(self) -> list[tuple[str, Tensor]]:
        """Return the tensors of this module's own state, without submodules, by name."""
        own = [*self._parameters.items()]
        own += [(n, x) for n, x in self._buffers.items() if n not in self._non_persistent_names]
        return [(n, x) for n, x in own if x is not None]

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Load a state; return the missing and the unexpected names.

        If anything does not fit, nothing is loaded and the error lists all of it.
        `state_dict`: tensors or arrays by name, on any device, as `state_dict()` and `dt.load`
        return them. `strict`: require the same names on both sides. `assign`: parameters take the
        memory, device and dtype of the given tensors, instead of copies of their elements.
        Raises: ArgumentError for missing and unexpected names, ShapeError if only shapes differ,
        ArgumentTypeError for a value that is not a dict.
        """
        if not isinstance(state_dict, Mapping):
            raise dt.ArgumentTypeError(
                "load_state_dict: expected a dict of tensors by name, got "
                f"{type(state_dict).__name__}; use dt.load(file)"
            )
        loading = _StateLoader(self, dict(state_dict), strict)
        loading.match()
        loading.require_fitting()
        loading.write(assign)
        return loading.keys

    # --- hooks
    def register_state_dict_pre_hook(self, hook: Hook) -> ModuleHookHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` reads the module."""
        return register_hook("register_state_dict_pre_hook", self._state_dict_pre_hooks, hook, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> ModuleHookHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` with the collected state."""
        return register_hook("register_state_dict_post_hook", self._state_dict_hooks, hook, hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> ModuleHookHandle:
        """Call a hook, which may change the dict, before a state is loaded.

        Its arguments are (module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs); the dict is a copy of the user's.
        """
        hooks = self._load_state_dict_pre_hooks
        return register_hook("register_load_state_dict_pre_hook", hooks, hook, (hook, True))

    def register_load_state_dict_post_hook(self, hook: Hook) -> ModuleHookHandle:
        """Call `hook(module, incompatible_keys)` after a state is compared with the module.

        The hook may change the lists of names; names that it removes cause no error. Therefore it
        runs before errors are raised and before the values are written.
        """
        hooks = self._load_state_dict_post_hooks
        return register_hook("register_load_state_dict_post_hook", hooks, hook, hook)


def _has_extra(module: Stateful) -> bool:
    return type(module).get_extra_state is not Stateful.get_extra_state


class _StateLoader:
    """The loading of one state into a module."""

    def __init__(self, module: Stateful, state: dict[str, Any], strict: bool) -> None:
        self.module, self.state, self.strict = module, state, strict
        self.keys = IncompatibleKeys([], [])
        self.errors: list[str] = []  # about values, and from hooks
        self.values: list[tuple[Tensor, Tensor]] = []  # a tensor of the module and its new value
        self.extra: list[tuple[Module, Any]] = []

    def match(self) -> None:
        """Match the names of the state with those of the module."""
        expected: set[str] = set()
        for path, module in self.module.named_modules(None, "", False):
            start = f"{path}." if path else ""
            for hook, _ in [*module._load_state_dict_pre_hooks.values()]:
                missing, unexpected = self.keys
                hook(module, self.state, start, {}, self.strict, missing, unexpected, self.errors)
            for name, x in module._own_state():
                expected.add(start + name)
                self.match_tensor(start + name, x)
            if _has_extra(module):
                expected.add(start + EXTRA_STATE_KEY)
                self.match_extra(start + EXTRA_STATE_KEY, module)
        self.keys.unexpected_keys.extend(k for k in self.state if k not in expected)
        for _, module in reversed([*self.module.named_modules(None, "", False)]):
            for post_hook in [*module._load_state_dict_post_hooks.values()]:
                post_hook(module, self.keys)

    def match_tensor(self, key: str, x: Tensor) -> None:
        """Match a tensor of the module with its new value, or record why that fails."""
        if key not in self.state:
            self.keys.missing_keys.append(key)
            return
        y = self.state[key]
        try:
            y = y if isinstance(y, dt.Tensor) else dt.asarray(y)
        except (dt.DovetailError, TypeError, ValueError) as error:
            self.errors.append(f"{key}: {error}")
            return
        if y.shape == (1,) and x.shape == ():  # old states of PyTorch have vectors for scalars
            y = y.reshape(())
        if y.shape != x.shape:
            self.errors.append(f"{key} has shape {y.shape}, the module's {x.shape}")
        elif y.dtype.kind == "c" and x.dtype.kind != "c":
            self.errors.append(f"{key} is {y.dtype.name}, the module's {x.dtype.name}")
        else:
            self.values.append((x, y))

    def match_extra(self, key: str, module: Module) -> None:
        """Match the extra state of a module."""
        if key in self.state:
            self.extra.append((module, self.state[key]))
        else:
            self.keys.missing_keys.append(key)

    def require_fitting(self) -> None:
        """Raise an error that lists everything that does not fit: ArgumentError or ShapeError."""
        missing, unexpected = self.keys if self.strict else ([], [])
        paragraphs = [
            "\n    ".join([f"{kind}:", *lines])
            for kind, lines in (
                ("missing", missing),
                ("unexpected", unexpected),
                ("not fitting", self.errors),
            )
            if lines
        ]
        if not paragraphs:
            return
        error = dt.ArgumentError if missing or unexpected else dt.ShapeError
        raise error(
            f"load_state_dict: the state does not fit {type(self.module).__name__}, and nothing "
            "was loaded; strict=False leaves out what is missing or unexpected\n  "
            + "\n  ".join(paragraphs)
        )

    def write(self, assign: bool) -> None:
        """Write the new values."""
        pairs = [(x, y if assign else y.to(x.device, x.dtype)) for x, y in self.values]
        dt.evaluate(*[y for _, y in pairs])
        with dt.no_grad():
            for x, y in pairs:
                if assign:
                    x.set_(y)
                else:
                    x.copy_(y)
        for module, extra in self.extra:
            module.set_extra_state(extra)
