# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.nn.utils.parametrizations`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from dovetail.nn.modules.module import Module
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Make a weight orthogonal: its columns, or rows if there are fewer, are orthonormal."""
def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value, which bounds a layer's slope."""
def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn a weight as its norms and its direction; return the module."""
def __getattr__(name: str) -> Any: ...
