"""What is called beside a module's forward, and beside the gradients that flow back through it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, TypeAlias

import dovetail as dt

from ..blame import explained_error
from ..constructor_errors import Explained

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
Hook: TypeAlias = Callable[..., Any]
Gradients: TypeAlias = tuple["Tensor | None", ...]

KINDS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
_PACKAGE = __name__.partition(".")[0] + "."
_numbers = count()


class Handle:
    """What a hook is taken away by: `remove()`, or at the end of a `with` block."""

    def __init__(self, hooks: dict[int, Any], key: int) -> None:
        self.hooks, self.key = hooks, key

    def remove(self) -> None:
        """Takes the hook away; once it is gone nothing happens."""
        self.hooks.pop(self.key, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def added(op: str, hooks: dict[int, Any], hook: object, kept: Any, first: bool = False) -> Handle:
    """Puts a hook with the others. Raises: ArgumentTypeError for what cannot be called."""
    if not callable(hook):
        raise dt.ArgumentTypeError(f"{op}: a hook is a function, not a {type(hook).__name__}")
    key = next(_numbers)
    hooks[key] = kept
    if first:
        others = [k for k in hooks if k != key]
        for k in others:  # each moves behind it
            hooks[k] = hooks.pop(k)
    return Handle(hooks, key)


class Hooked(Explained):
    """A module's hooks, and the call that runs them."""

    _forward_pre_hooks: dict[int, tuple[Hook, bool]]  # with whether it takes keywords
    _forward_hooks: dict[int, tuple[Hook, bool, bool]]  # and whether it is always called
    _backward_pre_hooks: dict[int, Hook]
    _backward_hooks: dict[int, Hook]
    forward: Callable[..., Any]

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if (
            self._forward_pre_hooks or self._forward_hooks
            or self._backward_hooks or self._backward_pre_hooks
        ):  # fmt: skip
            return _run(self, inputs, named)
        try:
            return self.forward(*inputs, **named)
        except Exception as error:
            forward = type(self).forward
            if not forward.__module__.startswith(_PACKAGE):
                raise
            reason = explained_error(
                error, type(self).__name__, forward, (self, *inputs), named, prefix=False
            )
            if reason is None:
                raise
            cause = error
        raise reason from cause

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Has `hook(module, args)` called before forward; gives what takes it away again.

        It returns None, or the arguments that forward is given instead. `with_kwargs`: it is
        called as `hook(module, args, kwargs)`, and returns None or both. `prepend`: before others.
        Raises: ArgumentTypeError for what cannot be called.
        """
        hooks = self._forward_pre_hooks
        return added("register_forward_pre_hook", hooks, hook, (hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False,
        always_call: bool = False,
    ) -> Handle:  # fmt: skip
        """Has `hook(module, args, result)` called after forward; gives what takes it away again.

        It returns None, or what the module gives instead. `with_kwargs`: it is called as
        `hook(module, args, kwargs, result)`. `prepend`: before others. `always_call`: also where
        forward raises; the result is None then.
        Raises: ArgumentTypeError for what cannot be called.
        """
        kept = (hook, with_kwargs, always_call)
        return added("register_forward_hook", self._forward_hooks, hook, kept, prepend)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> Handle:
        """Has `hook(module, grad_output)` called when gradients come to the module's results.

        It gets a tuple, and returns None, or the gradients in place of these.
        Raises: ArgumentTypeError for what cannot be called.
        """
        hooks = self._backward_pre_hooks
        return added("register_full_backward_pre_hook", hooks, hook, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> Handle:
        """Has `hook(module, grad_input, grad_output)` called when gradients leave the module.

        They are tuples, of the arguments without names and of the results; None stands for what is
        no tensor, or has no gradient. It returns None, or what takes grad_input's place.
        Raises: ArgumentTypeError for what cannot be called.
        """
        hooks = self._backward_hooks
        return added("register_full_backward_hook", hooks, hook, hook, prepend)


def _run(module: Hooked, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A call with its hooks."""
    done: set[int] = set()
    try:
        return _forward(module, inputs, named, done)
    except Exception:
        for key, (hook, with_named, always) in [*module._forward_hooks.items()]:
            if always and key not in done:
                hook(module, inputs, named, None) if with_named else hook(module, inputs, None)
        raise


def _forward(
    module: Hooked, inputs: tuple[Any, ...], named: dict[str, Any], done: set[int]
) -> Any:  # fmt: skip
    for before, with_named in [*module._forward_pre_hooks.values()]:
        inputs, named = _before(module, before, with_named, inputs, named)
    back = Back(module) if module._backward_hooks or module._backward_pre_hooks else None
    if back is not None:
        inputs = back.through_inputs(inputs)
    result = module.forward(*inputs, **named)
    for key, (after, with_named, _) in [*module._forward_hooks.items()]:
        done.add(key)
        given = (inputs, named, result) if with_named else (inputs, result)
        changed = after(module, *given)
        result = result if changed is None else changed
    return result if back is None else back.through_results(result)


def _before(
    module: Hooked, hook: Hook, with_named: bool, inputs: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if not with_named:
        changed = hook(module, inputs)
        if changed is not None:
            inputs = changed if isinstance(changed, tuple) else (changed,)
        return inputs, named
    changed = hook(module, inputs, named)
    if changed is None:
        return inputs, named
    if not (isinstance(changed, tuple) and len(changed) == 2):
        raise dt.ArgumentTypeError(
            f"{type(module).__name__}: a forward pre-hook with_kwargs returns None or (args, "
            f"kwargs), not a {type(changed).__name__}"
        )
    return changed


class Back:
    """The hooks of one call that look at gradients: gates at the arguments and at the results."""

    def __init__(self, module: Hooked) -> None:
        self.module = module
        self.before = [*module._backward_pre_hooks.values()]
        self.after = [*module._backward_hooks.values()]
        self.arriving: Gradients | None = None
        self.at: list[int] = []  # the arguments that are tensors with gradients
        self.count = 0

    def through_inputs(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, whose gradients pass the gate."""
        self.count = len(inputs)
        if not self.after or not dt.is_grad_enabled():
            return inputs
        self.at = [i for i, x in enumerate(inputs) if type(x) is dt.Tensor and x.requires_grad]
        if not self.at:
            return inputs
        passed = _Gate.apply(self.leave, *[inputs[i] for i in self.at])
        found = list(inputs)
        for i, x in zip(self.at, passed, strict=True):
            found[i] = x
        return tuple(found)

    def through_results(self, result: Any) -> Any:
        """What the module gives, whose gradients pass the gate."""
        every = result if isinstance(result, tuple) else (result,)
        at = [i for i, y in enumerate(every) if type(y) is dt.Tensor and y.requires_grad]
        if not at or not dt.is_grad_enabled():
            return result
        passed = _Gate.apply(lambda g: self.arrive(g, at, len(every)), *[every[i] for i in at])
        found = list(every)
        for i, y in zip(at, passed, strict=True):
            found[i] = y
        return tuple(found) if isinstance(result, tuple) else found[0]

    def arrive(self, gradients: Gradients, at: list[int], n: int) -> Gradients:
        """Gradients have come to the results."""
        arriving = _spread(gradients, at, n)
        for hook in self.before:
            arriving = _changed(arriving, hook(self.module, arriving), "pre-hook")
        self.arriving = arriving
        if not self.at:  # nothing will leave by the arguments
            for hook in self.after:
                hook(self.module, (None,) * self.count, arriving)
        return tuple([arriving[i] for i in at])

    def leave(self, gradients: Gradients) -> Gradients:
        """Gradients leave by the arguments."""
        leaving = _spread(gradients, self.at, self.count)
        for hook in self.after:
            leaving = _changed(leaving, hook(self.module, leaving, self.arriving), "hook")
        return tuple([leaving[i] for i in self.at])


def _spread(gradients: Gradients, at: list[int], n: int) -> Gradients:
    found: list[Tensor | None] = [None] * n
    for i, g in zip(at, gradients, strict=True):
        found[i] = g
    return tuple(found)


def _changed(before: Gradients, changed: Any, what: str) -> Gradients:
    if changed is None:
        return before
    found = changed if isinstance(changed, tuple) else (changed,)
    if len(found) != len(before):
        raise dt.GradientError(
            f"backward: a full backward {what} returned {len(found)} gradients for {len(before)}"
        )
    return found


class _Gate(dt.autograd.Function):
    """Tensors as they are, whose gradients something looks at together."""

    @staticmethod
    def forward(
        ctx: Any, look: Callable[[Gradients], Gradients], *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.look = look
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return (None, *ctx.look(gradients))
