"""The base class of layers and networks, with named parameters, buffers and modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import dovetail as dt

from . import hooks, state
from .contents import REGISTRIES
from .hooks import Hooked
from .moving import Movable
from .state import Stateful

__all__ = ["Module"]


class Module(Hooked, Stateful, Movable):
    """The base class of layers and networks: assign parameters and modules, define `forward`.

    `training`: the mode of layers such as dropout and batch norm, which differ in training.
    Functions captured with `dt.jit` read the tensors of their modules again at each call.

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
    captured_for: ClassVar = ("training",)  # attributes that captures depend on: docs/jit.md

    def __init__(self) -> None:
        for name in (*REGISTRIES, *hooks.HOOK_DICTS, *state.KINDS):
            object.__setattr__(self, name, {})
        object.__setattr__(self, "_non_persistent_names", set())
        object.__setattr__(self, "training", True)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Return the module's result for its inputs, when the module is called."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(self, ...)")

    # --- changes of the whole module
    def train(self, mode: bool = True) -> Self:
        """Set the module and all modules within it to training mode, or to evaluation.

        Returns the module.
        Raises: ArgumentTypeError for a mode that is not a bool.
        """
        if not isinstance(mode, bool):
            raise dt.ArgumentTypeError(f"train: mode must be a bool, got {type(mode).__name__}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Set evaluation mode: `train(False)`."""
        return self.train(False)

    def apply(self, fn: Callable[[Module], object]) -> Self:
        """Call a function with each module within this one, then with this one.

        Returns the module.
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters.

        Returns the module.
        """
        for x in self.parameters():
            x.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros."""
        for x in self.parameters():
            if x.grad is not None:
                x.grad = None if set_to_none else dt.zeros_like(x)

    # --- repr
    def extra_repr(self) -> str:
        """Return the options of a layer, which `repr` shows between the brackets."""
        return ""

    def __repr__(self) -> str:
        options = self.extra_repr()
        inner = [f"({name}): {module!r}" for name, module in self._modules.items()]
        return format_repr(type(self).__name__, options.split("\n") if options else [], inner)


def format_repr(name: str, options: list[str], inner: list[str]) -> str:
    """Return a repr: a module's options and its contents, one per line."""
    if len(options) <= 1 and not inner:
        return f"{name}({''.join(options)})"
    lines = [line.replace("\n", "\n  ") for line in [*options, *inner]]
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)"
