# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.autograd`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from collections.abc import Callable, Sequence
from dovetail.autograd.check import Function
from dovetail.autograd.engine import Tensors
from dovetail.autograd.function import R, Ts
from dovetail.autograd.transforms import BackwardFunction, FunctionResult
from dovetail.func.derivatives import P, ArgNums, Value
from dovetail.func.point_derivatives import Nested
from dovetail.ops.gradient import Rule
from dovetail.ops.table import Op
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any, Literal, overload

from . import functional as functional
from dovetail.autograd import Context as Context
from dovetail.torch.training import Function as Function
from dovetail.autograd import HookHandle as HookHandle
def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
    """Return the tensor, which requires a gradient if asked: PyTorch's old `Variable`."""
def backward(
    outputs: Tensors,
    gradients: Tensors | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradient of the sum of `outputs` to the `grad` of the leaves; return
    nothing."""
def checkpoint(function: Callable[[*Ts], R], *args: *Ts) -> R:
    """Return `function(*args)` without saving values for gradients: backward runs it
    again."""
def detach(x: AnyTensor, /) -> Tensor:
    """Return a tensor over the same memory that gradients do not flow through."""
from dovetail.autograd import detect_anomaly as detect_anomaly
from dovetail.autograd import enable_grad as enable_grad
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
) -> tuple[Any, ...]:
    """Return the gradients of the sum of outputs, one for each input: always a tuple."""
def gradcheck(
    function: Function,
    inputs: Tensors,
    *,
    eps: float = 1e-06,
    atol: float = 1e-05,
    rtol: float = 0.001,
    raise_exception: bool = True,
) -> bool:
    """Return True if a function's gradients agree with central differences, else raise an
    error."""
def gradgradcheck(
    function: Function,
    inputs: Tensors,
    *,
    eps: float = 1e-06,
    atol: float = 1e-05,
    rtol: float = 0.001,
    raise_exception: bool = True,
) -> bool:
    """Return True if second derivatives agree with central differences, else raise an
    error."""
def hessian(function: Callable[..., AnyTensor], *primals: AnyTensor) -> Nested:
    """Return the second derivatives of a function that gives one element."""
def hvp(
    function: Callable[..., AnyTensor],
    primals: AnyTensor | Sequence[AnyTensor],
    tangents: AnyTensor | Sequence[AnyTensor],
) -> tuple[Tensor, FunctionResult]:
    """Return the result of a function of one element, and its Hessian times a vector."""
from dovetail.autograd import inference_mode as inference_mode
def is_grad_enabled() -> bool:
    """Return True if ops are being recorded for gradients in this context."""
def is_inference_mode_enabled() -> bool:
    """Return True if this context is in `inference_mode`."""
def jacobian(
    function: Callable[..., AnyTensor | Sequence[AnyTensor]],
    *primals: AnyTensor,
    mode: Literal['reverse', 'forward'] = "reverse",
) -> Nested:
    """Return the derivatives of all elements of a function's result by all of its
    arguments'."""
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
from dovetail.autograd import no_grad as no_grad
from dovetail.autograd import saved_tensors_hooks as saved_tensors_hooks
from dovetail.autograd import set_grad_enabled as set_grad_enabled
def set_gradient(op: Op, *rules: Rule | None) -> None:
    """Set the gradient rules of an op, one for each operand."""
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
def __getattr__(name: str) -> Any: ...
