# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.func`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from collections.abc import Callable, Sequence
from dovetail.autograd.engine import Tensors
from dovetail.autograd.transforms import BackwardFunction
from dovetail.func.derivatives import P, ArgNums, Value
from dovetail.func.vectorize import R, Axes, P as PVectorize
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any, overload

def functional_call(*args: Any, **options: Any) -> Any: ...
def grad(
    function: Callable[P, Value], argnums: ArgNums = 0, *, has_aux: bool = False
) -> Callable[P, Value]:
    """Return a function that computes the gradient of `function`, which gives one element."""
def hessian(function: Callable[P, Value], argnums: ArgNums = 0) -> Callable[P, Value]:
    """Return a function that computes the second derivatives of `function`."""
def jacfwd(function: Callable[P, Value], argnums: ArgNums = 0) -> Callable[P, Value]:
    """Return a function that computes the Jacobian of `function` in forward mode."""
def jacrev(function: Callable[P, Value], argnums: ArgNums = 0) -> Callable[P, Value]:
    """Return a function that computes the Jacobian of `function` in reverse mode."""
@overload
def jvp(
    function: Callable[..., AnyTensor], primals: Tensors, tangents: Tensors
) -> tuple[Tensor, Tensor]:
    """Return a function's result, and its derivative along `tangents`, by two backward
    passes."""
@overload
def jvp(
    function: Callable[..., Sequence[AnyTensor]], primals: Tensors, tangents: Tensors
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]: ...
@overload
def linearize(
    function: Callable[..., AnyTensor], *primals: AnyTensor
) -> tuple[Tensor, Callable[..., Tensor]]:
    """Return the result of a function, and its derivative as a linear function of
    directions."""
@overload
def linearize(
    function: Callable[..., Sequence[AnyTensor]], *primals: AnyTensor
) -> tuple[tuple[Tensor, ...], Callable[..., tuple[Tensor, ...]]]: ...
def value_and_grad(
    function: Callable[P, Value], argnums: ArgNums = 0, *, has_aux: bool = False
) -> Callable[P, Value]:
    """Return a function that computes the value of `function` and its gradient in one run."""
@overload
def vjp(function: Callable[..., AnyTensor], *primals: AnyTensor) -> tuple[Tensor, BackwardFunction]:
    """Return the result of a function, and a function that maps its gradients to the
    primals'."""
@overload
def vjp(
    function: Callable[..., Sequence[AnyTensor]], *primals: AnyTensor
) -> tuple[tuple[Tensor, ...], BackwardFunction]: ...
def vmap(
    function: Callable[PVectorize, R],
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    *,
    randomness: str = "different",
    chunk_size: int | None = None,
) -> Callable[PVectorize, R]:
    """Return a function that does for all examples at once what `function` does for one."""
def __getattr__(name: str) -> Any: ...
