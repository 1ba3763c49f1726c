"""Assignments across layers at the import of dovetail, in one list.

They fill the slots of `callbacks` and the methods of Tensor. Late slots are filled at their first
use, as most programs need none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import callbacks
from .autograd import engine, tape
from .engine import events, programs
from .functions import autocast, methods
from .functions.creation import from_values
from .functions.io import einops_backend
from .functions.random import generator
from .lazy_import import LazyModule, load_lazy_modules
from .plugins import registry
from .tensor import host

if TYPE_CHECKING:
    from .autograd import gradients, jit_backward
else:
    gradients = LazyModule(".autograd.gradients", __package__)
    jit_backward = LazyModule(".autograd.jit_backward", __package__)

LATE_SLOTS: dict[str, Callable[[], Any]] = {
    "tapes": lambda: jit_backward.LoopTapes(),
    "gradient_rules": lambda: gradients.GRADIENT_RULES,
    "mask_rules": lambda: gradients.MASK_RULES,
}


def fill_late_slot(name: str) -> None:
    """Fill a slot of `callbacks` that is filled at its first use; do nothing for other names."""
    if name in LATE_SLOTS:
        setattr(callbacks, name, LATE_SLOTS[name]())


def import_late_modules() -> None:
    """Fill all late slots and import all lazy modules.

    It is called at exit: a `__del__` that runs later may compute, but not import.
    """
    for name in LATE_SLOTS.keys() - vars(callbacks).keys():
        fill_late_slot(name)
    load_lazy_modules()


callbacks.import_late_modules = import_late_modules
callbacks.record_tape = tape.record_tape
callbacks.before_write = engine.before_write

callbacks.autocast_operand = autocast.cast_operand
callbacks.call_under_autocast = autocast.run

callbacks.as_tensor = from_values.asarray
callbacks.view_storage = host.view_storage
callbacks.reserve_random = generator.reserve_by_default

callbacks.program_of = programs.get_program
callbacks.record_event = events.note

callbacks.open_device = registry.open_device
callbacks.default_device_type = registry.default_type
callbacks.known_device_types = registry.registry.records

methods.install_methods(engine.TENSOR_METHODS)
einops_backend.install()
