"""Hooks for values that are saved for gradients: `dt.autograd.saved_tensors_hooks`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..argument_checks import function
from ..graph.expr import Expr
from ..settings import Switch
from ..tensor.tensor import Tensor, create_tensor
from .engine import detach
from .tape import PackedValue


class saved_tensors_hooks(Switch):
    """A context that stores `pack(tensor)` in place of each tensor that ops save for gradients.

    Neither function is recorded. A value that several ops save is packed for each of them.

    - `pack`: takes a tensor and returns any object: an array on the host, a file name, a tensor of
      a smaller dtype.
    - `unpack`: takes that object and returns a tensor of the original shape, dtype and device, when
      the gradient needs it.

    Raises: ArgumentTypeError if an argument is not a function; in `backward`, GradientError where
    `unpack` gives something else.
    See also: `autograd.checkpoint`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0], device="reference").requires_grad_()
    >>> with dt.autograd.saved_tensors_hooks(lambda t: t.numpy(), dt.asarray):
    ...     y = (x * x).sum()
    >>> with dt.device("reference"):
    ...     dt.grad(y, x).tolist()
    [2.0, 4.0]
    """

    def __init__(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> None:
        function("saved_tensors_hooks", pack, "pack")
        function("saved_tensors_hooks", unpack, "unpack")
        super().__init__(saved_value_hooks=_Hooks(pack, unpack))


class _Hooks:
    """A pair of hooks for saved values."""

    def __init__(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> None:
        self._pack, self._unpack = pack, unpack

    def pack_node(self, e: Expr) -> PackedValue:
        """Call the user's pack function on a node's detached tensor; return the PackedValue."""
        with _HOOKS_OFF:
            return PackedValue(e, self._pack(detach(create_tensor(e))), self._unpack_unhooked)

    def _unpack_unhooked(self, value: Any) -> Tensor:
        """Call the user's unpack function with all hooks off, and return its tensor."""
        with _HOOKS_OFF:
            return self._unpack(value)


_HOOKS_OFF = Switch(grad=False, saved_value_hooks=None)
