"""What is done with a module's parameters as a whole: as one vector, or as arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import dovetail as dt

from ..modules.module import Module

__all__ = ["functional_call", "parameters_to_vector", "stack_module_state", "vector_to_parameters"]

Tensor: TypeAlias = dt.Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other.

    `parameters`: in their order, as `module.parameters()` gives them.
    Shapes: any; the result (n,), of as many elements as all have.
    Dtypes: all; the result has that to which they are promoted.
    Raises: ArgumentError where there are none, DeviceError where they are on several devices.

    >>> import dovetail as dt
    >>> dt.nn.utils.parameters_to_vector(dt.nn.Linear(2, 3, device="reference").parameters()).shape
    (9,)
    """
    every = [x.reshape(-1) for x in parameters]
    if not every:
        raise dt.ArgumentError("parameters_to_vector: there are no parameters")
    return dt.concat(every)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes the elements of a vector into parameters, one after the other.

    `vec`: as `parameters_to_vector` gives it. `parameters`: that are written, in their order.
    Shapes: vec (n,), of as many elements as all parameters have.
    Dtypes: all; elements are cast to each parameter's.
    Raises: ShapeError for a vector of another length; nothing is written then.

    >>> import dovetail as dt
    >>> layer = dt.nn.Linear(2, 3, device="reference")
    >>> dt.nn.utils.vector_to_parameters(dt.ones(9, device="reference"), layer.parameters())
    >>> layer.bias.tolist()
    [1.0, 1.0, 1.0]
    """
    every = [*parameters]
    wanted = sum(x.size for x in every)
    if vec.shape != (wanted,):
        raise dt.ShapeError(
            f"vector_to_parameters: a vector of shape {vec.shape} for parameters of {wanted} "
            "elements"
        )
    at = 0
    with dt.no_grad():
        for x in every:
            x.copy_(vec[at : at + x.size].reshape(x.shape))
            at += x.size


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None, kwargs: Mapping[str, Any] | None = None, *, tie_weights: bool = True,
    strict: bool = False,
) -> Any:  # fmt: skip
    """What a module gives with other tensors in place of some of its parameters and buffers.

    `module`: is afterwards as it was; so it is a function of its parameters, for `dt.func.grad`,
    `dt.vmap` and the like. `parameter_and_buffer_dicts`: tensors by name, or several such dicts.
    `args`: a tuple of arguments, or one. `kwargs`: those by name. `tie_weights`: what the module
    has under several names is replaced under all of them. `strict`: all have to be given.
    Shapes: those with which the module works: they are not compared with what is replaced.
    Dtypes: likewise.
    Raises: ArgumentError for names that it does not have, all of which are listed.

    >>> import dovetail as dt
    >>> layer = dt.nn.Linear(2, 1, device="reference")
    >>> ones = {name: dt.ones_like(x.detach()) for name, x in layer.named_parameters()}
    >>> dt.nn.utils.functional_call(layer, ones, dt.ones(2, device="reference")).tolist()
    [3.0]
    """
    dicts = parameter_and_buffer_dicts
    given: dict[str, Tensor] = {}
    for each in [dicts] if isinstance(dicts, Mapping) else dicts:
        given.update(each)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


def _places(module: Module) -> Iterator[tuple[str, dict[str, Tensor | None], str]]:
    """Under which name, in which dict, and as what there, each tensor of a module is."""
    for path, inner in module.named_modules(remove_duplicate=False):
        start = f"{path}." if path else ""
        for kept in (inner._parameters, inner._buffers):
            for name, x in kept.items():
                if x is not None:
                    yield start + name, kept, name


@contextmanager
def _replaced(
    module: Module, given: Mapping[str, Tensor], tied: bool, strict: bool
) -> Iterator[None]:
    places = [*_places(module)]
    names = {name for name, _, _ in places}
    unknown = sorted({*given} - names)
    missing = sorted(names - {*given}) if strict else []
    if unknown or missing:
        what = [f"does not have {', '.join(unknown)}"] if unknown else []
        what += [f"has {', '.join(missing)}, too"] if missing else []
        raise dt.ArgumentError(f"functional_call: {type(module).__name__} {'; it '.join(what)}")
    by_tensor = {id(kept[name]): given[full] for full, kept, name in places if full in given}
    before = [(kept, name, kept[name]) for _, kept, name in places]
    try:
        for full, kept, name in places:
            if full in given:
                kept[name] = given[full]
            elif tied and id(kept[name]) in by_tensor:
                kept[name] = by_tensor[id(kept[name])]
        yield
    finally:
        for kept, name, x in before:
            kept[name] = x


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of modules of one kind, stacked by name.

    `models`: of one class, with parameters of the same shapes. `dt.vmap` of a `functional_call`
    with what comes back runs all of them at once.
    Raises: ArgumentError for no module, and for modules of several kinds; ShapeError for parameters
    of several shapes.

    >>> import dovetail as dt
    >>> layers = [dt.nn.Linear(2, 3, device="reference") for _ in range(4)]
    >>> dt.nn.utils.stack_module_state(layers)[0]["weight"].shape
    (4, 3, 2)
    """
    kinds = {type(m) for m in models}
    if len(kinds) != 1:
        raise dt.ArgumentError(
            f"stack_module_state: needs modules of one kind, not {len(kinds)} kinds"
        )
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return _stacked(parameters, True), _stacked(buffers, False)


def _stacked(every: Sequence[Mapping[str, Tensor]], learnt: bool) -> dict[str, Tensor]:
    made = {n: dt.stack([d[n].detach() for d in every]) for n in every[0]}
    for name, x in made.items():
        if learnt and every[0][name].requires_grad:
            x.requires_grad_()
    return made
