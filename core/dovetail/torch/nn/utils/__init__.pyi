# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.nn.utils`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
import dovetail as dt
from collections.abc import Iterable, Mapping, Sequence
from dovetail.nn.clipping import Tensors
from dovetail.nn.modules.module import Module
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from . import parametrizations as parametrizations
from . import parametrize as parametrize
from . import rnn as rnn
def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients in place to a norm of at most `max_norm`, and return their old
    norm."""
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clip all gradients in place to the range from -clip_value to clip_value."""
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: dt.Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients in place by max_norm / total_norm, if that is less than 1."""
def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, AnyTensor] | Sequence[Mapping[str, AnyTensor]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of some of its parameters and buffers."""
def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of all tensors, as if they were one vector."""
def parameters_to_vector(parameters: Iterable[AnyTensor]) -> Tensor:
    """Concatenate the elements of all parameters to one vector."""
def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight of the older `spectral_norm` a parameter again; return the module."""
def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight of the older `weight_norm` a parameter again; return the module."""
def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight, `weight_orig`, by its largest singular value; return the module."""
def stack_module_state(
    models: Sequence[Module]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the parameters and the buffers of modules of one class, by name."""
def vector_to_parameters(vec: AnyTensor, parameters: Iterable[AnyTensor]) -> None:
    """Write the elements of a vector into parameters, one after the other."""
def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn a weight as its norms, `weight_g`, and its direction, `weight_v`; return the
    module."""
def __getattr__(name: str) -> Any: ...
