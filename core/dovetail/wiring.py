"""Assignments across layers at the import of dovetail, in one list.

They fill the slots of `callbacks`, the methods of Tensor, and the gradients of ops that are written
in functions of tensors.
"""

from __future__ import annotations

from . import callbacks
from .autograd import engine, gradients, jit_backward, tape
from .engine import events, programs
from .functions import autocast, methods
from .functions.creation import from_values
from .functions.io import einops_backend
from .functions.random import generator
from .plugins import registry
from .tensor import host

callbacks.record_tape = tape.record_tape
callbacks.before_write = engine.before_write
callbacks.tapes = jit_backward.LoopTapes()

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

for op, rules in gradients.GRADIENT_RULES.items():
    tape.set_gradient(op, *rules)
for op, mask in gradients.MASK_RULES.items():
    tape.set_reach(op, mask)

methods.install_methods(engine.TENSOR_METHODS)
einops_backend.install()
