"""Functions of higher layers that lower layers call: typed slots, which `wiring` fills.

A layer imports only the layers below it. To call one above it, it uses a slot of this module. For
example, the graph has autograd record a node by `callbacks.record_tape(e)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from .backend.interface import Program
    from .device_class import Device
    from .dtypes import DType
    from .engine.tracer_api import Tapes
    from .graph.expr import Expr
    from .ir.builder import Kernel
    from .memory.storage import Storage
    from .ops.gradient import Rule
    from .ops.table import Op
    from .plugins.device_handle import OpenedDevice
    from .tensor.tensor import Tensor

    AutocastCall: TypeAlias = Callable[
        [Callable[..., Any], str, tuple[Any, ...], dict[str, Any]], Any
    ]

# Return the tape of a node that reads a node with a tape; None if no gradient flows through it.
record_tape: Callable[[Expr], Any]
# Check the gradients before a write by the op of this name; return what is to be called after it.
before_write: Callable[[str, Tensor, Expr], Callable[[], None] | None]
# The tape services of captured functions and loops.
tapes: Tapes
# The gradient rules of ops that are written in functions of tensors.
gradient_rules: Mapping[Op, tuple[Rule | None, ...]]
# Of an op that moves elements: from the result's mask to an operand's. A mask is True at the
# elements that a gradient may reach.
mask_rules: Mapping[Op, Callable[[Tensor, Any], Tensor]]

# Return `dt.asarray(x, dtype=, device=)`.
as_tensor: Callable[..., Tensor]
# Return an operand of the function of this name as autocast has it in this context.
autocast_operand: Callable[[str, Any], Any]
# Run a function under autocast on its operands; return NOT_ACTIVE if autocast is off here. Wrappers
# call `run_autocast`, which is None unless some context has autocast on.
call_under_autocast: AutocastCall
run_autocast: AutocastCall | None = None
NOT_ACTIVE: Any = object()
# Return the elements of a storage as a vector of this dtype.
view_storage: Callable[[Storage, DType | str | None], Tensor]
# Reserve so many numbers of the default random generator; return its seed and their offset.
reserve_random: Callable[[int], tuple[int, int]]

# Return the program of a kernel on a device, compiled if need be.
program_of: Callable[[OpenedDevice, Kernel], Program]
# Note an event that began at this time, in nanoseconds, and ends now: `engine.events.note`.
record_event: Callable[..., None]

# Import what a program has not needed so far.
import_late_modules: Callable[[], None]
# Open a device that has not been used before.
open_device: Callable[[Device], OpenedDevice]
# Return the device type that is the default unless the user chooses, and all installed ones.
default_device_type: Callable[[], str]
known_device_types: Callable[[], Iterable[str]]


def __getattr__(name: str) -> Any:
    """Return a slot that is still empty: import `wiring`, which fills all but late ones."""
    if not name.startswith("__"):  # imports probe `__path__`
        import_module(".wiring", __package__).fill_late_slot(name)
    if name not in globals():
        raise AttributeError(f"dovetail.callbacks has no slot {name!r}")
    return globals()[name]
