"""What a layer or a network is: parameters, buffers and modules under names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import dovetail as dt

from . import hooks, state
from .contents import OWN
from .hooks import Hooked
from .moving import Movable
from .state import Stateful

__all__ = ["Module"]


class Module(Hooked, Stateful, Movable):
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
    captured_for: ClassVar = ("training",)  # of a captured function's own: see docs/jit.md

    def __init__(self) -> None:
        for name in (*OWN, *hooks.KINDS, *state.KINDS):
            object.__setattr__(self, name, {})
        object.__setattr__(self, "_passing", set())
        object.__setattr__(self, "training", True)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """What the module makes of its inputs; a module that is called runs it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(self, ...)")

    # --- what is done to all of it
    def train(self, mode: bool = True) -> Self:
        """Sets whether it, and all within it, trains.

        Returns the module.
        Raises: ArgumentTypeError for what is no bool.
        """
        if not isinstance(mode, bool):
            raise dt.ArgumentTypeError(f"train: mode is a bool, not a {type(mode).__name__}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Ends training: `train(False)`."""
        return self.train(False)

    def apply(self, fn: Callable[[Module], object]) -> Self:
        """Calls a function with each module within it, then with it.

        Returns the module.
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether gradients are wanted for its parameters.

        Returns the module.
        """
        for x in self.parameters():
            x.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Lets go of the gradients of its parameters, or makes them zeros."""
        for x in self.parameters():
            if x.grad is not None:
                x.grad = None if set_to_none else dt.zeros_like(x)

    # --- how it looks
    def extra_repr(self) -> str:
        """What a layer says of itself between the brackets of its repr."""
        return ""

    def __repr__(self) -> str:
        said = self.extra_repr()
        inner = [f"({name}): {module!r}" for name, module in self._modules.items()]
        return listed(type(self).__name__, said.split("\n") if said else [], inner)


def listed(name: str, said: list[str], inner: list[str]) -> str:
    """A repr: what a module says of itself, and what is in it, a line each."""
    if len(said) <= 1 and not inner:
        return f"{name}({''.join(said)})"
    lines = [line.replace("\n", "\n  ") for line in [*said, *inner]]
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)"
