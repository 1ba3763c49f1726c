"""Functions of all parameters of a module: as one vector, or as arguments of a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import dovetail as dt

from ..modules.module import Module

__all__ = ["functional_call", "parameters_to_vector", "stack_module_state", "vector_to_parameters"]

Tensor: TypeAlias = dt.Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate the elements of all parameters to one vector.

    - `parameters`: in their order, as `module.parameters()` yields them.

    Shapes: any; the result (n,), with n the number of all elements.
    Dtypes: all; the result has the dtype to which they promote.
    Raises: ArgumentError for no parameters, DeviceError for parameters on several devices.
    See also: `vector_to_parameters`.

    >>> import dovetail as dt
    >>> dt.nn.utils.parameters_to_vector(dt.nn.Linear(2, 3).parameters()).shape
    (9,)
    """
    every = [x.reshape(-1) for x in parameters]
    if not every:
        raise dt.ArgumentError("parameters_to_vector: expected at least one parameter, got none")
    return dt.concat(every)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of a vector into parameters, one after the other.

    - `vec`: the result of `parameters_to_vector`.
    - `parameters`: the parameters to write, in order.

    Shapes: vec (n,), with n the number of elements of all parameters.
    Dtypes: all; elements are cast to each parameter's dtype.
    Raises: ShapeError for a vector of another length; nothing is written then.

    >>> import dovetail as dt
    >>> layer = dt.nn.Linear(2, 3)
    >>> dt.nn.utils.vector_to_parameters(dt.ones(9), layer.parameters())
    >>> layer.bias.tolist()
    [1.0, 1.0, 1.0]
    """
    every = [*parameters]
    size = sum(x.size for x in every)
    if vec.shape != (size,):
        raise dt.ShapeError(
            f"vector_to_parameters: the vector must have shape ({size},), the number of elements "
            f"of the parameters, got shape {vec.shape}"
        )
    offset = 0
    with dt.no_grad():
        for x in every:
            x.copy_(vec[offset : offset + x.size].reshape(x.shape))
            offset += x.size


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of some of its parameters and buffers.

    - `module`: the module, which is restored afterwards.
    - `parameter_and_buffer_dicts`: a dict of tensors by name, or several; the names are those of
      `state_dict()`.
    - `args`: a tuple of arguments, or one argument.
    - `kwargs`: arguments by name.
    - `tie_weights`: replace a tensor that has several names under all of them.
    - `strict`: require all parameters and buffers.

    This makes a module a function of its parameters, for `dt.func.grad`, `dt.vmap` and others.
    Shapes: those that the module accepts; they are not compared with the replaced tensors.
    Dtypes: those that the module accepts.
    Raises: ArgumentError, which lists all names that the module does not have.
    See also: `stack_module_state`, `dt.func.grad`, `dt.vmap`.

    >>> import dovetail as dt
    >>> layer = dt.nn.Linear(2, 1)
    >>> ones = {name: dt.ones_like(x.detach()) for name, x in layer.named_parameters()}
    >>> dt.nn.utils.functional_call(layer, ones, dt.ones(2)).tolist()
    [3.0]
    """
    dicts = parameter_and_buffer_dicts
    tensors: dict[str, Tensor] = {}
    for each in [dicts] if isinstance(dicts, Mapping) else dicts:
        tensors.update(each)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replace_tensors(module, tensors, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


def _tensor_slots(module: Module) -> Iterator[tuple[str, dict[str, Tensor | None], str]]:
    """Yield the state-dict name, the owning dict and the key in that dict of each tensor."""
    for path, inner in module.named_modules(remove_duplicate=False):
        start = f"{path}." if path else ""
        for owner in (inner._parameters, inner._buffers):
            for key, x in owner.items():
                if x is not None:
                    yield start + key, owner, key


@contextmanager
def _replace_tensors(
    module: Module, tensors: Mapping[str, Tensor], tied: bool, strict: bool
) -> Iterator[None]:
    """Replace tensors of a module by name, within a `with` block.

    `tied`: also replace other names of the same tensors.
    Raises: ArgumentError for names that the module lacks, with `strict` also for missing names.
    """
    slots = [*_tensor_slots(module)]
    names = {name for name, _, _ in slots}
    unknown = sorted({*tensors} - names)
    missing = sorted(names - {*tensors}) if strict else []
    if unknown or missing:
        problems = [f"has no parameter or buffer {', '.join(unknown)}"] if unknown else []
        problems += [f"needs values of {', '.join(missing)} (strict=True)"] if missing else []
        raise dt.ArgumentError(f"functional_call: {type(module).__name__} {'; it '.join(problems)}")
    by_id = {id(owner[key]): tensors[name] for name, owner, key in slots if name in tensors}
    previous = [(owner, key, owner[key]) for _, owner, key in slots]
    try:
        for name, owner, key in slots:
            if name in tensors:
                owner[key] = tensors[name]
            elif tied and id(owner[key]) in by_id:
                owner[key] = by_id[id(owner[key])]
        yield
    finally:
        for owner, key, x in previous:
            owner[key] = x


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the parameters and the buffers of modules of one class, by name.

    - `models`: modules of one class, with parameters of equal names and shapes.

    `dt.vmap` of a `functional_call` with the result runs all modules at once.
    Raises: ArgumentError for no module, and for modules of several classes or with different
    names; ShapeError for parameters of different shapes.

    >>> import dovetail as dt
    >>> layers = [dt.nn.Linear(2, 3) for _ in range(4)]
    >>> dt.nn.utils.stack_module_state(layers)[0]["weight"].shape
    (4, 3, 2)
    """
    kinds = {type(m) for m in models}
    if len(kinds) != 1:
        raise dt.ArgumentError(
            f"stack_module_state: modules must have the same class, got {len(kinds)} classes"
        )
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return _stack(parameters, True), _stack(buffers, False)


def _stack(dicts: Sequence[Mapping[str, Tensor]], learnt: bool) -> dict[str, Tensor]:
    """Stack the tensors of several dicts by name; `learnt`: keep `requires_grad`.

    Raises: ArgumentError for different names.
    """
    for i, d in enumerate(dicts):
        if d.keys() != dicts[0].keys():
            names = ", ".join(sorted(d.keys() ^ dicts[0].keys()))
            raise dt.ArgumentError(
                "stack_module_state: modules must have the same parameters and buffers, but only "
                f"one of module 0 and module {i} has {names}"
            )
    stacked = {n: dt.stack([d[n].detach() for d in dicts]) for n in dicts[0]}
    for name, x in stacked.items():
        if learnt and dicts[0][name].requires_grad:
            x.requires_grad_()
    return stacked
