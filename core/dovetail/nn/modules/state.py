"""The state of a module as a dict of tensors, and loading such a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import dovetail as dt

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


class StateLoader:
    """The loading of one state into a module."""

    def __init__(
        self,
        module: Module,
        state: dict[str, Any],
        strict: bool,
        has_extra_state: Callable[[Module], bool],
    ) -> None:
        self.module, self.state, self.strict = module, state, strict
        self.has_extra_state = has_extra_state
        self.keys = IncompatibleKeys([], [])
        self.errors: list[str] = []  # about values, and from hooks
        self.values: list[tuple[Tensor, Tensor]] = []  # a tensor of the module and its new value
        self.extra: list[tuple[Module, Any]] = []

    def match(self) -> None:
        """Match state and module by name, calling the hooks; collect values, names and errors."""
        expected: set[str] = set()
        for path, module in self.module.named_modules(None, "", False):
            start = f"{path}." if path else ""
            for hook, _ in [*module._load_state_dict_pre_hooks.values()]:
                missing, unexpected = self.keys
                hook(module, self.state, start, {}, self.strict, missing, unexpected, self.errors)
            for name, x in module._own_state():
                expected.add(start + name)
                self.match_tensor(start + name, x)
            if self.has_extra_state(module):
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
        """Store a module's extra state for `write`, or add its key to the missing ones."""
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
        """Copy the new values into the module's tensors, or share them; set extra states."""
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
