"""Hooks around a module's forward call and around the gradients that flow back through it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import dovetail as dt

if TYPE_CHECKING:
    from .module import Module

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
Hook: TypeAlias = Callable[..., Any]
Gradients: TypeAlias = tuple["Tensor | None", ...]

HOOK_DICTS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
PACKAGE_PREFIX = __name__.partition(".")[0] + "."
_keys = count()


class ModuleHookHandle:
    """A handle that removes a hook: by `remove()`, or at the end of a `with` block."""

    def __init__(self, hooks: dict[int, Any], key: int) -> None:
        self.hooks, self.key = hooks, key

    def remove(self) -> None:
        """Remove the hook, if it is still registered."""
        self.hooks.pop(self.key, None)

    def __enter__(self) -> ModuleHookHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def register_hook(
    op: str, hooks: dict[int, Any], hook: object, entry: Any, prepend: bool = False
) -> ModuleHookHandle:
    """Register a hook and return its handle. Raises: ArgumentTypeError if it is not callable.

    `entry`: the value to store in `hooks`. `prepend`: before all other hooks.
    """
    if not callable(hook):
        raise dt.ArgumentTypeError(f"{op}: the hook must be callable, got {type(hook).__name__}")
    key = next(_keys)
    hooks[key] = entry
    if prepend:
        others = [k for k in hooks if k != key]
        for k in others:  # move the others behind it
            hooks[k] = hooks.pop(k)
    return ModuleHookHandle(hooks, key)


def call_with_hooks(module: Module, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a module with its hooks; if it raises, call the hooks with `always_call`."""
    called: set[int] = set()
    try:
        return _call_forward(module, inputs, kwargs, called)
    except Exception:
        for key, (hook, with_named, always) in [*module._forward_hooks.items()]:
            if always and key not in called:
                hook(module, inputs, kwargs, None) if with_named else hook(module, inputs, None)
        raise


def _call_forward(
    module: Module, inputs: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]
) -> Any:
    """Call the pre-hooks, forward and the hooks; add the keys of hooks to `called`."""
    for pre_hook, with_named in [*module._forward_pre_hooks.values()]:
        inputs, kwargs = _apply_pre_hook(module, pre_hook, with_named, inputs, kwargs)
    has_backward_hooks = module._backward_hooks or module._backward_pre_hooks
    backward = BackwardHooks(module) if has_backward_hooks else None
    if backward is not None:
        inputs = backward.gate_inputs(inputs)
    result = module.forward(*inputs, **kwargs)
    for key, (hook, with_named, _) in [*module._forward_hooks.items()]:
        called.add(key)
        args = (inputs, kwargs, result) if with_named else (inputs, result)
        changed = hook(module, *args)
        result = result if changed is None else changed
    return result if backward is None else backward.gate_results(result)


def _apply_pre_hook(
    module: Module, hook: Hook, with_kwargs: bool, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Call a pre-hook; return (args, kwargs) as it changes them, unchanged for None.

    Raises: ArgumentTypeError if a hook with keyword arguments returns something else than a pair.
    """
    if not with_kwargs:
        changed = hook(module, inputs)
        if changed is not None:
            inputs = changed if isinstance(changed, tuple) else (changed,)
        return inputs, kwargs
    changed = hook(module, inputs, kwargs)
    if changed is None:
        return inputs, kwargs
    if not (isinstance(changed, tuple) and len(changed) == 2):
        raise dt.ArgumentTypeError(
            f"{type(module).__name__}: a forward pre-hook with with_kwargs=True must return None "
            f"or (args, kwargs), got {type(changed).__name__}"
        )
    return changed


class BackwardHooks:
    """The backward hooks of one call, which see the gradients of its arguments and results."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.pre_hooks = [*module._backward_pre_hooks.values()]
        self.after = [*module._backward_hooks.values()]
        self.output_gradients: Gradients | None = None
        self.input_positions: list[
            int
        ] = []  # positions of arguments that are tensors with gradients
        self.input_count = 0

    def gate_inputs(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments, gated so that hooks see their gradients; store their positions."""
        self.input_count = len(inputs)
        if not self.after:
            return inputs
        self.input_positions = [i for i, x in enumerate(inputs) if _takes_gradient(x)]
        if not self.input_positions:
            return inputs
        gated = _Gate.apply(self.on_input_gradients, *[inputs[i] for i in self.input_positions])
        new_inputs = list(inputs)
        for i, x in zip(self.input_positions, gated, strict=True):
            new_inputs[i] = x
        return tuple(new_inputs)

    def gate_results(self, result: Any) -> Any:
        """Return the results, with a gate that shows their gradients to the hooks."""
        every = result if isinstance(result, tuple) else (result,)
        at = [i for i, y in enumerate(every) if _takes_gradient(y)]
        if not at:
            return result
        gated = _Gate.apply(
            lambda g: self.on_output_gradients(g, at, len(every)), *[every[i] for i in at]
        )
        results = list(every)
        for i, y in zip(at, gated, strict=True):
            results[i] = y
        return tuple(results) if isinstance(result, tuple) else results[0]

    def on_output_gradients(self, gradients: Gradients, at: list[int], n: int) -> Gradients:
        """Call the pre-hooks; store the gradients as they change them, and return those at `at`.

        If no argument has a gradient, also call the hooks that run after the backward.
        """
        arriving = _scatter(gradients, at, n)
        for hook in self.pre_hooks:
            arriving = _apply_change(arriving, hook(self.module, arriving), "pre-hook")
        self.output_gradients = arriving
        if (
            not self.input_positions
        ):  # no argument has a gradient, so `on_input_gradients` will not be called
            for hook in self.after:
                hook(self.module, (None,) * self.input_count, arriving)
        return tuple([arriving[i] for i in at])

    def on_input_gradients(self, gradients: Gradients) -> Gradients:
        """Call the hooks; return the arguments' gradients, replaced by each result not None."""
        leaving = _scatter(gradients, self.input_positions, self.input_count)
        for hook in self.after:
            leaving = _apply_change(
                leaving, hook(self.module, leaving, self.output_gradients), "hook"
            )
        return tuple([leaving[i] for i in self.input_positions])


def _takes_gradient(x: object) -> bool:
    """Return True if `x` is a strided tensor whose gradient is recorded in this call."""
    if not isinstance(x, dt.Tensor) or x.layout is not dt.strided:
        return False
    return x.requires_grad and dt.is_grad_enabled()


def _scatter(gradients: Gradients, at: list[int], n: int) -> Gradients:
    """Return a tuple of n values: the gradients at positions `at`, else None."""
    values: list[Tensor | None] = [None] * n
    for i, g in zip(at, gradients, strict=True):
        values[i] = g
    return tuple(values)


def _apply_change(gradients: Gradients, changed: Any, kind: str) -> Gradients:
    """Return what a hook returned, as a tuple of this length, or the old gradients for None.

    Anything but a tuple counts as one gradient.
    Raises: GradientError for another number of gradients.
    """
    if changed is None:
        return gradients
    values = changed if isinstance(changed, tuple) else (changed,)
    if len(values) != len(gradients):
        raise dt.GradientError(
            f"backward: a full backward {kind} must return {len(gradients)} gradients, got "
            f"{len(values)}"
        )
    return values


class _Gate(dt.autograd.Function):
    """The identity of several tensors, whose gradients pass through one function together."""

    @staticmethod
    def forward(
        ctx: Any, hook: Callable[[Gradients], Gradients], *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the tensors unchanged; save `hook`, which gets their gradients later."""
        ctx.look = hook
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """Return the gradients that the hook returns."""
        return (None, *ctx.look(gradients))
