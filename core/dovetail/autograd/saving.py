"""What becomes of values that are saved for gradients: `dt.autograd.saved_tensors_hooks`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arguments import function
from ..graph.expr import Expr
from ..settings import Switch
from ..tensor.tensor import Tensor, make
from .engine import detach
from .tape import Packed


class saved_tensors_hooks(Switch):
    """A context in which `pack` is called with what ops save for gradients, and keeps it.

    `pack`: takes a tensor and gives anything: the tensor on the host, a name in a file, a smaller
    dtype. `unpack`: takes that and gives the tensor, of the same shape, dtype and device, when the
    gradient needs it. Neither is recorded. A value that several ops save is packed for each.
    Raises: ArgumentTypeError for what is no function; in `backward`, GradientError where `unpack`
    gives something else.

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
        super().__init__(saving=_Hooks(pack, unpack))


class _Hooks:
    """A pair of hooks, of which what is saved is told."""

    def __init__(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> None:
        self._pack, self._unpack = pack, unpack

    def packed(self, e: Expr) -> Packed:
        """What is kept in place of a node."""
        with _UNHOOKED:
            return Packed(e, self._pack(detach(make(e))), self._unhooked)

    def _unhooked(self, value: Any) -> Tensor:
        with _UNHOOKED:
            return self._unpack(value)


_UNHOOKED = Switch(grad=False, saving=None)
