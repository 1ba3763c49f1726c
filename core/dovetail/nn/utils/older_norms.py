"""The older `weight_norm` and `spectral_norm`, whose tensors are the module's own."""

from __future__ import annotations

from typing import TypeAlias

import dovetail as dt

from ..modules.module import Module
from ..modules.parameter import Parameter
from .parametrizations import SpectralNorm, WeightNorm, create_spectral_norm, require_tensor
from .parametrize import compute_tensor, restore_tensor

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]

Tensor: TypeAlias = dt.Tensor


class _OlderNorm:
    """The computation of a module's tensor by a norm whose tensors the module has."""

    def __init__(self, module: Module, name: str, norm: WeightNorm | SpectralNorm) -> None:
        self.module, self.name, self.norm = module, name, norm

    def __call__(self) -> Tensor:
        """Return the tensor."""
        get, norm = self.module._get_tensor, self.norm
        if isinstance(norm, WeightNorm):
            g, v = (get(f"{self.name}_{k}", "_parameters", "parameter") for k in "gv")
            return norm.forward(g, v)
        for k in "uv":
            if f"_{k}" in norm._buffers:
                norm._buffers[f"_{k}"] = get(f"{self.name}_{k}", "_buffers", "buffer")
        norm.train(self.module.training)
        return norm.forward(get(f"{self.name}_orig", "_parameters", "parameter"))

    def right_inverse(self, value: Tensor) -> None:
        """Refuse an assignment. Raises: ArgumentError."""
        raise dt.ArgumentError(
            f"{type(self.module).__name__}: cannot assign to {self.name}, which is computed; use "
            "dt.nn.utils.parametrizations, whose tensors can be assigned"
        )


def _remove(op: str, module: Module, name: str, kind: type, keys: tuple[str, ...]) -> Module:
    """Replace the tensors of a norm by the present value. Raises: ArgumentError without one."""
    computed = module.__dict__.get("_computed", {}).get(name)
    if not isinstance(computed, _OlderNorm) or not isinstance(computed.norm, kind):
        raise dt.ArgumentError(
            f"{op}: {type(module).__name__}.{name} must have a norm of this kind; see "
            "dt.nn.utils.parametrize.remove_parametrizations for newer ones"
        )
    with dt.no_grad():
        value = Parameter(computed().detach())
    for key in keys:
        if hasattr(module, name + key):
            delattr(module, name + key)
    restore_tensor(module, name, value)
    return module


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn a weight as its norms, `weight_g`, and its direction, `weight_v`; return the module.

    - `module`: the module.
    - `name`: the name of the weight.
    - `dim`: the axis whose parts have a norm each; None is one norm of all.

    Raises: ArgumentError for a name that the module lacks.
    See also: `remove_weight_norm`, `parametrizations.weight_norm`, which is newer.

    >>> import dovetail as dt
    >>> layer = dt.nn.utils.weight_norm(dt.nn.Linear(3, 2))
    >>> [*layer.state_dict()]
    ['bias', 'weight_g', 'weight_v']
    """
    weight, norm = require_tensor("weight_norm", module, name), WeightNorm(dim)
    g, v = norm.right_inverse(weight.detach())
    compute_tensor(module, name, _OlderNorm(module, name, norm))
    module.register_parameter(f"{name}_g", Parameter(g))
    module.register_parameter(f"{name}_v", Parameter(v))
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight of the older `weight_norm` a parameter again; return the module.

    - `module`: the module.
    - `name`: the name of the weight.

    Raises: ArgumentError for a weight without that norm.

    >>> import dovetail as dt
    >>> layer = dt.nn.utils.weight_norm(dt.nn.Linear(3, 2))
    >>> dt.nn.utils.remove_weight_norm(layer)
    Linear(in_features=3, out_features=2, bias=True)
    """
    return _remove("remove_weight_norm", module, name, WeightNorm, ("_g", "_v"))


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight, `weight_orig`, by its largest singular value; return the module.

    - `module`: the module.
    - `name`: the name of the weight.
    - `n_power_iterations`: the number of power iterations at each read in training, at least 1.
    - `eps`: the lower bound of the norms of the iterations.
    - `dim`: the axis of outputs: None is 0, and 1 for transposed convolutions.

    Raises: ArgumentError for a name that the module lacks, AxisError.
    See also: `remove_spectral_norm`, `parametrizations.spectral_norm`, which is newer.

    >>> import dovetail as dt
    >>> layer = dt.nn.utils.spectral_norm(dt.nn.Linear(3, 2))
    >>> [*layer.state_dict()]
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    weight = require_tensor("spectral_norm", module, name)
    norm = create_spectral_norm(module, weight, n_power_iterations, eps, dim)
    norm.begins_with_v = True
    compute_tensor(module, name, _OlderNorm(module, name, norm))
    module.register_parameter(f"{name}_orig", weight)
    for k, x in norm._buffers.items():
        module.register_buffer(name + k, x)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight of the older `spectral_norm` a parameter again; return the module.

    - `module`: the module.
    - `name`: the name of the weight.

    Raises: ArgumentError for a weight without that norm.

    >>> import dovetail as dt
    >>> layer = dt.nn.utils.spectral_norm(dt.nn.Linear(3, 2))
    >>> dt.nn.utils.remove_spectral_norm(layer)
    Linear(in_features=3, out_features=2, bias=True)
    """
    return _remove("remove_spectral_norm", module, name, SpectralNorm, ("_orig", "_u", "_v"))
