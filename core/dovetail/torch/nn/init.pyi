# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.nn.init`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from dovetail.nn.init import Generator
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that keeps the standard deviation of values through a
    nonlinearity."""
def constant_(tensor: AnyTensor, val: float) -> Tensor:
    """Fill a tensor with a number."""
def dirac_(tensor: AnyTensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it copies as many channels as it can."""
def eye_(tensor: AnyTensor) -> Tensor:
    """Fill a matrix with ones on its diagonal and zeros elsewhere."""
def kaiming_normal_(
    tensor: AnyTensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill a weight from a normal distribution so that values keep their variance."""
def kaiming_uniform_(
    tensor: AnyTensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill a weight uniformly so that values keep their variance through the nonlinearity."""
def normal_(
    tensor: AnyTensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill a tensor from the normal distribution."""
def ones_(tensor: AnyTensor) -> Tensor:
    """Fill a tensor with ones."""
def orthogonal_(tensor: AnyTensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill a weight with orthonormal rows, or columns if these are fewer, times `gain`."""
def sparse_(
    tensor: AnyTensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fill a matrix from the normal distribution, with a fraction of zeros in each column."""
def trunc_normal_(
    tensor: AnyTensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill a tensor from the normal distribution between the bounds a and b."""
def uniform_(
    tensor: AnyTensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill a tensor from the uniform distribution over a <= x < b."""
def xavier_normal_(
    tensor: AnyTensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill a weight from the normal distribution of std gain * sqrt(2 / (in + out))."""
def xavier_uniform_(
    tensor: AnyTensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill a weight from the uniform distribution over +-gain * sqrt(6 / (in + out))."""
def zeros_(tensor: AnyTensor) -> Tensor:
    """Fill a tensor with zeros."""
def __getattr__(name: str) -> Any: ...
