# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.nn.utils.parametrize`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from collections.abc import Iterator
from dovetail.nn.modules.module import Module
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from dovetail.nn.utils.parametrize import ParametrizationList as ParametrizationList
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once within a `with` block."""
def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return True if a module has a parametrized tensor, or one of a given name."""
def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make a tensor of a module a function of itself, or of other tensors; return the
    module."""
def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrized tensor an ordinary parameter or buffer again; return the module."""
def type_before_parametrizations(module: Module) -> type[Module]:
    """Return the class of a module before its tensors were parametrized."""
def __getattr__(name: str) -> Any: ...
