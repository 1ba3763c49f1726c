# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.random`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from dovetail.functions.datatypes import DTypeLike, DeviceLike
from dovetail.functions.random.generator import Extents, Generator
from dovetail.functions.random.samplers import Parameter
from dovetail.tensor.promotion import Array
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any, overload

from dovetail.random import Generator as Generator
def bernoulli(
    p: Parameter = 0.5,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw True or 1 with probability `p`, else False or 0."""
def beta(
    a: Parameter,
    b: Parameter,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw floats in 0..1 from the beta distribution with mean a / (a + b)."""
def binomial(
    n: Array | int,
    p: Parameter,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw integers from the binomial distribution: the successes of n trials of chance p."""
@overload
def categorical(
    logits: Array,
    axis: int = -1,
    shape: Extents | None = None,
    *,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw indices of categories whose probabilities are the softmax of `logits` along
    `axis`."""
@overload
def categorical(
    logits: Array,
    dim: int = -1,
    shape: Extents | None = None,
    *,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def choice(
    x: int | Array,
    shape: Extents = (),
    *,
    replace: bool = True,
    p: Array | None = None,
    axis: int = 0,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw random elements of `x` along an axis, or of the integers 0..x-1."""
@overload
def choice(
    input: int | Array,
    shape: Extents = (),
    *,
    replace: bool = True,
    p: Array | None = None,
    dim: int = 0,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
def default_rng(seed: int | None = None) -> Generator:
    """Return a new generator of random numbers."""
def dirichlet(
    alpha: Array,
    shape: Extents = (),
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw vectors of positive floats that sum to 1 from the Dirichlet distribution."""
def exponential(
    scale: Parameter = 1.0,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw floats from the exponential distribution with mean `scale`."""
def gamma(
    concentration: Parameter,
    scale: Parameter = 1.0,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw floats from the gamma distribution with mean concentration * scale."""
def get_state() -> tuple[int, int]:
    """Return the state of the default generator: (seed, offset), the offset in elements."""
def integers(
    low: int,
    high: int | None = None,
    shape: Extents = (),
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw integers from low <= k < high, or from 0 <= k < low without `high`."""
def laplace(
    loc: Parameter = 0.0,
    scale: Parameter = 1.0,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw floats from the Laplace distribution: exponential on both sides of `loc`."""
def manual_seed(seed: int) -> Generator:
    """Restart the default generator at the start of the stream of `seed`, and return it."""
def multinomial(
    n: int,
    p: Array,
    shape: Extents = (),
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw the numbers of n elements of several kinds from the multinomial distribution."""
def normal(
    shape: Extents = (),
    *,
    mean: complex = 0.0,
    std: float = 1.0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw floats from the normal distribution."""
@overload
def permutation(
    x: int | AnyTensor,
    *,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the integers 0..x-1, or the slices of a tensor `x`, in random order."""
@overload
def permutation(
    input: int | AnyTensor,
    *,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
def poisson(
    lam: Parameter = 1.0,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw integers from the Poisson distribution with mean `lam`."""
def rand(
    *shape: int,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw floats from the uniform distribution over 0 <= x < 1, as NumPy's and PyTorch's
    `rand`."""
@overload
def rand_like(
    x: AnyTensor,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw floats from the uniform distribution over 0 <= u < 1, in the shape of `x`."""
@overload
def rand_like(
    input: AnyTensor,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor: ...
def randint(
    low: int,
    high: int | None = None,
    shape: Extents = (),
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw integers from low <= k < high; NumPy's and PyTorch's older name for `integers`."""
def randn(
    *shape: int,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw floats from the standard normal distribution; a short name for `normal`."""
@overload
def randn_like(
    x: AnyTensor,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw floats from the standard normal distribution, in the shape of `x`."""
@overload
def randn_like(
    input: AnyTensor,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor: ...
def set_state(state: tuple[int, int]) -> None:
    """Make the default generator continue from a state."""
@overload
def shuffle(x: AnyTensor, *, axis: int = 0, generator: Generator | None = None) -> Tensor:
    """Put the slices of this tensor along `axis` in random order, and return it."""
@overload
def shuffle(input: AnyTensor, *, dim: int = 0, generator: Generator | None = None) -> Tensor: ...
def truncated_normal(
    low: Parameter = -2.0,
    high: Parameter = 2.0,
    shape: Extents | None = None,
    *,
    mean: Parameter = 0.0,
    std: Parameter = 1.0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw floats from the normal distribution between two bounds."""
def uniform(
    shape: Extents = (),
    *,
    low: float = 0.0,
    high: float = 1.0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Draw floats from the uniform distribution over low <= x < high."""
def __getattr__(name: str) -> Any: ...
