"""Classes and functions of `dovetail.torch.nn`, `utils.data` and `autograd` of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any

import dovetail as dt

from .adoption import adopt, wrap_callback


class Parameter(dt.nn.Parameter):
    """A tensor that a module learns; a `torch.Tensor`.

    - `data`: a tensor, whose memory the parameter shares, or any argument of `dt.asarray`.
    - `requires_grad`: compute gradients for it.
    """

    def __new__(cls, data: Any = (), requires_grad: bool = True) -> Any:
        return adopt(dt.nn.Parameter(data, requires_grad))


class Buffer(dt.nn.Buffer):
    """A tensor that a module stores and does not learn; a `torch.Tensor`.

    - `data`: a tensor, whose memory the buffer shares, or any argument of `dt.asarray`.
    - `persistent`: include it in the module's `state_dict()`.
    """

    def __new__(cls, data: Any = (), *, persistent: bool = True) -> Any:
        return adopt(dt.nn.Buffer(data, persistent=persistent))


class DataLoader(dt.data.DataLoader):
    """An iterable over the batches of a data set, whose tensors are of class `torch.Tensor`.

    It takes the arguments of `dt.data.DataLoader`.
    """

    def __iter__(self) -> Iterator[Any]:
        return map(adopt, super().__iter__())


class Context(dt.autograd.Context):
    """The context of a `Function`, whose saved tensors are of class `torch.Tensor`."""

    saved_tensors = property(lambda self: adopt(dt.autograd.Context.saved_tensors.__get__(self)))


class Function(dt.autograd.Function):
    """An operation with a gradient of its own: subclasses define `forward` and `backward`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("forward", "backward"):
            method = cls.__dict__.get(name)
            if isinstance(method, staticmethod):
                setattr(cls, name, staticmethod(_adopt_arguments(method.__func__)))

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Return the results of `forward`; gradients flow through them by `backward`.

        - `args`: the arguments of `forward` after `ctx`.
        """
        return adopt(super().apply(*args))


def _adopt_arguments(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return `forward` or `backward` of a Function, whose arguments are adopted."""

    @wraps(method)
    def call(ctx: Any, *args: Any) -> Any:
        if type(ctx) is dt.autograd.Context:
            ctx.__class__ = Context
        return method(ctx, *adopt(args))

    return call


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
) -> tuple[Any, ...]:
    """Return the gradients of the sum of outputs, one for each input: always a tuple.

    - `outputs`, `inputs`: a tensor or a sequence of them.
    - `grad_outputs`: the gradients of the outputs; None for numbers.
    - `retain_graph`: keep what the gradients need, for another call; None is `create_graph`.
    - `create_graph`: record the gradients, so that they have gradients themselves.
    - `only_inputs`: has no effect.
    - `allow_unused`: return None for an input that the outputs do not depend on.
    """
    several = [inputs] if isinstance(inputs, dt.Tensor) else [*inputs]
    result = dt.autograd.grad(
        outputs,
        several,
        grad_outputs,
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=bool(allow_unused),
    )
    return tuple(adopt([*result]))


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    debug: bool = False,
    context_fn: Any = None,
    **options: Any,
) -> Any:
    """Return `function(*args, **options)` without saving values for gradients.

    - `function`: a function, which the backward pass calls again.
    - `args`, `options`: its arguments.
    - `use_reentrant`, `preserve_rng_state`, `determinism_check`, `debug`, `context_fn`: have no
      effect.
    """
    return adopt(dt.autograd.checkpoint(partial(function, **options), *args))


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Any:
    """Return a function of the pair (gradient, value).

    - `func`: a function of tensors whose result is a number.
    - `argnums`: the numbers of the arguments to differentiate.
    - `has_aux`: the function returns a pair (result, other values).
    """
    both = dt.func.value_and_grad(wrap_callback(func), argnums, has_aux=has_aux)

    def call(*args: Any, **options: Any) -> Any:
        value, gradient = both(*args, **options)
        return adopt((gradient, value))

    return call


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return parameters and buffers of several models, by name, stacked along a new first axis.

    `torch.vmap` over `functional_call` with them runs all models at once.

    - `models`: modules of one class and equal shapes, all in training or all not; a parameter
      requires a gradient in all of them or in none.

    Raises: ArgumentError for no models, and for models that differ.
    """
    models = [*models]
    if not models:
        raise dt.ArgumentError("stack_module_state: expected at least one model, got none")
    if len({(type(model), model.training) for model in models}) > 1:
        raise dt.ArgumentError(
            "stack_module_state: the models must be of one class, and all in training or none; "
            "call model.train() or model.eval()"
        )
    stacked: list[dict[str, Any]] = []
    for read in (dt.nn.Module.named_parameters, dt.nn.Module.named_buffers):
        states = [dict(read(model)) for model in models]
        stacked.append({})
        for name, first in states[0].items():
            values = [s[name] for s in states]
            if any(x.requires_grad != first.requires_grad for x in values):
                raise dt.ArgumentError(
                    f"stack_module_state: {name} requires a gradient in some models only"
                )
            value = dt.stack([x.detach() for x in values])
            stacked[-1][name] = value.requires_grad_(first.requires_grad)
    parameters, buffers = adopt(stacked)
    return parameters, buffers


class Generator(dt.random.Generator):
    """A stream of random numbers, which starts as PyTorch's with a fixed seed.

    The numbers are dovetail's: the same on all devices, and others than PyTorch's of this seed.

    - `device`: has no effect.
    """

    DEFAULT_SEED = 67280421310721

    def __init__(self, device: Any = None) -> None:
        super().__init__(self.DEFAULT_SEED)

    def initial_seed(self) -> int:
        """Return the seed."""
        return self.state[0]

    def seed(self) -> int:
        """Seed it from the system's entropy, and return the seed."""
        self.state = dt.random.Generator().state
        return self.state[0]

    def get_state(self) -> Any:
        """Return the state, for `set_state`."""
        return self.state

    def set_state(self, state: Any) -> Generator:
        """Continue from a state.

        - `state`: the result of `get_state`.
        """
        self.state = state
        return self
