# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.special`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from dovetail.functions.reductions.statistics import Axis
from dovetail.tensor.promotion import Operand
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any, overload

@overload
def digamma(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the derivative of lgamma; NaN at negative integers."""
@overload
def digamma(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def erf(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the error function."""
@overload
def erf(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def erfc(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return 1 - erf(x), accurate where it is small."""
@overload
def erfc(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def erfinv(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse of the error function; infinite at -1 and 1, NaN outside."""
@overload
def erfinv(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def exp2(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return 2 to the power x."""
@overload
def exp2(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def expit(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return 1 / (1 + exp(-x)): `sigmoid` under SciPy's name."""
@overload
def expit(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def expm1(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return exp(x) - 1, accurate near 0."""
@overload
def expm1(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def gammaln(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the logarithm of |gamma(x)|; infinite at 0 and negative integers."""
@overload
def gammaln(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def i0(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind and order 0."""
@overload
def i0(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def i1(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind and order 1."""
@overload
def i1(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def log1p(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return log(1 + x), accurate near 0; -inf at -1, NaN below."""
@overload
def log1p(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def log_softmax(x: AnyTensor, /, axis: int = -1, *, out: AnyTensor | None = None) -> Tensor:
    """Return the logarithm of softmax along `axis`, accurate where softmax underflows."""
@overload
def log_softmax(input: AnyTensor, dim: int = -1, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def logit(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverse of sigmoid, log(x / (1 - x)); infinite at 0 and 1, NaN outside."""
@overload
def logit(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def logsumexp(
    x: AnyTensor, /, axis: Axis = None, *, keepdims: bool = False, out: AnyTensor | None = None
) -> Tensor:
    """Return the logarithm of the sum of exp(x) over `axis`, without overflow, in one
    kernel."""
@overload
def logsumexp(
    input: AnyTensor, dim: Axis = None, *, keepdim: bool = False, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def modified_bessel_i0(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind and order 0."""
@overload
def modified_bessel_i0(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def modified_bessel_i1(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind and order 1."""
@overload
def modified_bessel_i1(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def ndtr(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the probability that a standard normal variable is below x."""
@overload
def ndtr(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def ndtri(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the standard normal quantile of probability x; NaN outside of 0..1."""
@overload
def ndtri(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
def polygamma(n: int, x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the n-th derivative of `digamma`, n at most 30; for n > 0 it is NaN below 0."""
@overload
def psi(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the derivative of lgamma; NaN at negative integers."""
@overload
def psi(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def round(x: AnyTensor, /, decimals: int = 0, *, out: AnyTensor | None = None) -> Tensor:
    """Return the nearest integer, or multiple of 10**-decimals; halves go to the even one."""
@overload
def round(input: AnyTensor, decimals: int = 0, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def sinc(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return sin(pi * x) / (pi * x), and 1 at 0."""
@overload
def sinc(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def softmax(x: AnyTensor, /, axis: int = -1, *, out: AnyTensor | None = None) -> Tensor:
    """Return exp(x) divided by its sum along `axis`, without overflow, in one kernel."""
@overload
def softmax(input: AnyTensor, dim: int = -1, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def xlogy(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return x1 * log(x2), and 0 where x1 is 0, unless x2 is NaN."""
@overload
def xlogy(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def zeta(x1: Operand, x2: Operand, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the Hurwitz zeta function: the sum of (x2 + k)**-x1 over k = 0, 1, 2, ..."""
@overload
def zeta(input: Operand, other: Operand, *, out: AnyTensor | None = None) -> Tensor: ...
def __getattr__(name: str) -> Any: ...
