"""Executables, which replay a captured function: input slots, a program and output slots.

`Executable.run` compares the arguments and the closure with those of the capture, allocates the
program's memory, runs it, and makes tensors of the results. `bindings` makes an executable from a
capture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..backend import faults
from ..backend.streams import current_handle
from ..device_class import Device
from ..device_class import opened as open_device
from ..engine import evaluate as run
from ..engine import tracer_api
from ..engine.evaluate import lock
from ..engine.traced_numbers import Env, Number
from ..graph.expr import Expr, Spec, leaf, mark_overwritten, readers
from ..layout import Shape
from ..memory.pointer import DataPtr, StreamHandle
from ..memory.storage import Storage, storage_over
from ..plugins.device_handle import Opened
from ..settings import Settings, current, flags
from ..tensor.c_fields import alias, expr_of
from ..tensor.host import evaluated
from ..tensor.tensor import Tensor, make
from .pytree import Flat, Static, array_key, metadata_key, rebuilt, static_key
from .replay import At, Replayer

MISS = object()  # what a call returns that the capture is not for
NONE = -1  # in place of a number
NOTHING_CHECKED, A_TENSOR, OF_TYPE, THE_SAME, AS_READ, AS_ARGUMENT, A_NUMBER, AN_ARRAY, ALIKE = (
    range(9)
)
ONE_VALUE, TUPLE, NOTHING, NESTED = range(4)  # what a function returns: its containers

# Attaches gradients: given the input tensors, the result tensors and the numbers of a call.
AttachGradients: TypeAlias = Callable[[list[Tensor], list[Tensor], Env], None]


@dataclass
class ClosureRead:
    """A place of the closure that is read at each call, and what must be there.

    The owner of the place is the value of the read number `parent`, or the place is a root: the
    leaf number `argument` of the arguments, or else `root`.
    """

    parent: int  # or NONE
    argument: int  # or NONE
    root: object
    key: Any
    is_item: bool  # else an attribute
    check: int = NOTHING_CHECKED  # A_TENSOR, OF_TYPE, ...
    expected: object = None  # the type, the object or the key
    same_as: int = NONE  # AS_READ: the number of that read; AS_ARGUMENT: that of the leaf
    length: int = NONE  # OF_TYPE: of the container

    def accepts(self, value: Any, values: list[Any], leaves: Sequence[object]) -> bool:
        """Return True if the value is as it was at the capture, as far as that matters."""
        check = self.check
        if check == A_TENSOR:
            return type(value) is Tensor
        if check == OF_TYPE:
            return type(value) is self.expected and (
                self.length == NONE or len(value) == self.length
            )
        if check == THE_SAME:
            return value is self.expected
        if check == AS_READ:
            return value is values[self.same_as]
        if check == AS_ARGUMENT:
            return value is leaves[self.same_as]
        if check == A_NUMBER:
            return value is self.root or static_key(value) == self.expected
        if check == AN_ARRAY:
            return isinstance(value, np.ndarray) and array_key(value) == self.expected
        if check == ALIKE:
            return metadata_key(value) == self.expected
        return True


@dataclass
class InputSlot:
    """A tensor that is read at each call: where it is, and what it must be like."""

    argument: int  # its number among the leaves of the arguments, or NONE
    gradient_of: int  # the number of the slot whose gradient it is, or NONE
    read: int  # the number of the closure read that finds it, or NONE
    spec: Spec
    strides: Shape
    itemsize: int
    taped: bool = False  # whether it requires a gradient
    gradient: int = NONE  # whether it has one: 0 or 1; NONE where that does not matter

    def begin(self, e: Expr) -> int:
        """Return the byte of its memory at which the tensor begins."""
        return e.offset * self.itemsize


@dataclass
class Overlap:
    """Two input slots over the same memory, and the bytes from the start of `base` to `slot`."""

    slot: int
    base: int
    distance: int


@dataclass
class Inputs:
    """The inputs of a call, with the conditions under which the capture applies to it."""

    count: int  # leaves of the arguments
    tree: object  # of the arguments; None if there are no containers
    settings: Settings | None  # of the context; None if they do not matter
    device: Device
    opened: Opened
    statics: list[tuple[int, object, object]]  # leaf, value, key
    floats: list[tuple[int, int]]  # leaf, variable
    reads: list[ClosureRead]
    slots: list[InputSlot]
    taped: int  # number of slots that require a gradient
    overlaps: list[Overlap]
    given: list[int]  # slots whose memory the program gets
    written: list[int]  # those of them that the program writes

    def match(self, leaves: Sequence[object], tree: object, settings: Settings) -> bool:
        """Return True if arguments, settings and device are those of the capture."""
        if len(leaves) != self.count or self.device.opened is not self.opened:
            return False
        if tree is not self.tree and (tree is None or self.tree is None or tree != self.tree):
            return False
        s = self.settings
        if (
            s is not None
            and settings is not s
            and (
                settings.eager
                or settings.saving is not None
                or settings.grad is not s.grad
                or settings.device is not s.device
                or settings.reproducible is not s.reproducible
            )
        ):
            return False
        for i, _ in self.floats:
            if type(leaves[i]) is not float:
                return False
        for i, value, key in self.statics:
            x = leaves[i]
            if type(x) is Static:
                if x.key != key:
                    return False
            elif x is not value and static_key(x) != key:
                return False
        return True

    def read(self, leaves: Sequence[object], tensors: list[Tensor], exprs: list[Expr]) -> bool:
        """Add the tensors of all slots; return False if one is not like that of the capture."""
        values = self.read_closure(leaves) if self.reads else ()
        if values is None:
            return False
        for slot in self.slots:
            x: object
            if slot.argument >= 0:
                x = leaves[slot.argument]
            elif slot.gradient_of >= 0:
                e = exprs[slot.gradient_of]
                x = e.tape.grad
            else:
                x = values[slot.read]
            if type(x) is not Tensor:
                return False
            e = expr_of(x)
            if e.op is not None or e.storage.pending is not None:
                e = evaluated(x)
            if e.spec is not slot.spec:
                return False
            if e.strides is not slot.strides and e.strides != slot.strides:
                return False
            if (e.tape is not None) != slot.taped:
                return False
            if slot.gradient != NONE and (e.tape.grad is not None) != (slot.gradient == 1):
                return False
            tensors.append(x)
            exprs.append(e)
        return self._share_memory_alike(tensors, exprs)

    def read_closure(self, leaves: Sequence[object]) -> list[Any] | None:
        """Return the values of all closure reads; None if one is not as it was."""
        values: list[Any] = []
        value: Any
        try:
            for r in self.reads:
                if r.parent >= 0:
                    owner = values[r.parent]
                    value = owner[r.key] if r.is_item else getattr(owner, r.key)
                elif r.argument >= 0:
                    value = leaves[r.argument]
                    if type(value) is Static:
                        value = value.value
                else:
                    value = r.root
                if r.check != NOTHING_CHECKED and not r.accepts(value, values, leaves):
                    return None
                values.append(value)
        except (AttributeError, LookupError, TypeError, ValueError):
            return None
        return values

    def _share_memory_alike(self, tensors: list[Tensor], exprs: list[Expr]) -> bool:
        """Return True if those share memory that did, and none that is written shares more."""
        for o in self.overlaps:
            e, slot = exprs[o.slot], self.slots[o.slot]
            base, first = exprs[o.base], self.slots[o.base]
            if e.storage is not base.storage or slot.begin(e) - first.begin(base) != o.distance:
                return False
        if self.taped > 1:  # two that require gradients must not have become one
            taped: set[int] = set()
            for n, slot in enumerate(self.slots):
                if slot.taped:
                    taped.add(id(tensors[n]))
            if len(taped) < self.taped:
                return False
        if not self.written:
            return True
        users: dict[int, int] = {}  # id of a storage -> how many slots give it to the program
        for k in self.given:
            e = exprs[k]
            users[id(e.storage)] = users.get(id(e.storage), 0) + 1
        for n in self.written:
            e = exprs[n]
            storage = e.storage
            if storage.read_only or users[id(storage)] > 1:
                return False
            if self._overlaps_another(storage, exprs):
                return False
            slot = self.slots[n]
            if not slot.taped and is_taped(tensors[n]):
                return False
        return True

    def _overlaps_another(self, storage: Storage, exprs: list[Expr]) -> bool:
        """Return True if another storage that is given to the program lies over this one."""
        if storage.overlap is None:
            return False
        members = storage.overlap.members()
        for k in self.given:
            e = exprs[k]
            if e.storage is not storage and e.storage in members:
                return True
        return False


@dataclass
class BoundProgram:
    """The program of a capture, with everything that it needs beside the inputs."""

    name: str
    device: Device
    opened: Opened
    numbers: Env  # at the capture
    formulas: list[tuple[int, Callable[..., object], tuple[Number, ...]]]
    constants: tuple[Storage, ...]
    constants_at: At
    written_constants: list[Storage]
    sizes: list[int]  # in bytes, of results and of the arena
    replay: Replayer

    def numbers_of(self, leaves: Sequence[object], floats: list[tuple[int, int]]) -> Env:
        """Return the numbers of a call, given where its floats are."""
        if not self.numbers:
            return self.numbers
        env = self.numbers.copy()
        for i, variable in floats:
            env[variable] = leaves[i]
        for variable, compute, numbers in self.formulas:
            env[variable] = compute(*[value if k is None else env[k] for value, k in numbers])
        return env

    def run(
        self, inputs: Inputs, exprs: list[Expr], env: Env, stream: StreamHandle
    ) -> list[DataPtr]:
        """Run the program over the memory of its inputs. Returns the memory of new results.

        Raises: IndexOutOfRange where an input comes of a bad index.
        """
        if flags.tainted or self.opened.streams:
            self._take_over([exprs[n].storage for n in inputs.given], stream)
        for n in inputs.written:
            e = exprs[n]
            about_to_write(e.storage)
        for storage in self.written_constants:
            about_to_write(storage)
        at: At = []
        for n in inputs.given:
            e, slot = exprs[n], inputs.slots[n]
            ptr = e.storage.ptr
            at.append(ptr.address())
            at.append(ptr.offset + slot.begin(e) if e.offset else ptr.offset)
        if self.constants_at:
            at += self.constants_at
        pointers: list[DataPtr] = []
        if self.sizes:
            allocate = self.opened.allocate
            for nbytes in self.sizes:
                ptr = allocate(nbytes, stream)
                at.append(ptr.address())
                at.append(ptr.offset)
                pointers.append(ptr)
        self.replay.run(at, env, stream)
        if flags.depth == 0 and self.opened.asynchronous:  # what it reads others may write
            self.opened.backend.synchronize(stream)
        for n in inputs.written:
            e = exprs[n]
            has_written(self.name, e.storage)
        for storage in self.written_constants:
            has_written(self.name, storage)
        return pointers

    def _take_over(self, storages: list[Storage], stream: StreamHandle) -> None:
        if flags.tainted:
            faults.demand(faults.carried(storages))
        if self.opened.streams:
            self.opened.share(stream, storages)


@dataclass
class OutputSlot:
    """A tensor that a call makes: one that was read, or a view of memory."""

    spec: Spec
    strides: Shape
    offset: int  # in bytes, from where the memory (of an input: the tensor) begins
    hidden: bool  # whether it is not for the user, but saved for the backward program
    same: int = NONE  # the number of the input slot whose tensor it is
    source: int = NONE  # the number of the input slot over whose memory it is
    constant: Storage | None = None  # the constant over whose memory it is
    new: int = NONE  # the number of the new memory over which it is
    earlier: int = NONE  # the number of an earlier output over the same memory


@dataclass
class Outputs:
    """The outputs of a call."""

    device: Device
    slots: list[OutputSlot]
    gradients: list[tuple[int, int]]  # input slot, and the number of its gradient's output, or NONE
    values: list[tuple[int, int, object]]  # for each leaf: an output, or a variable, or a constant
    form: int  # ONE_VALUE, TUPLE, ...
    containers: Flat
    attach_gradients: AttachGradients | None = None

    def make(
        self,
        inputs: Inputs,
        tensors: list[Tensor],
        exprs: list[Expr],
        env: Env,
        pointers: list[DataPtr],
    ) -> Any:
        """Return the function's result, and set the gradients that the function sets."""
        if self.form == NOTHING and not self.gradients:  # so no gradient flows
            return None
        new = [storage_over(ptr, self.device) for ptr in pointers]
        outputs: list[Tensor] = []
        for slot in self.slots:
            if slot.same >= 0:
                outputs.append(tensors[slot.same])
            else:
                outputs.append(self._view(slot, inputs, tensors, exprs, new, outputs))
        for n, k in self.gradients:
            e = exprs[n]
            e.tape.grad = None if k == NONE else outputs[k]
        if self.attach_gradients is not None:
            self.attach_gradients(tensors, outputs, env)
        if self.form == NOTHING:
            return None
        values = []
        for result, variable, value in self.values:
            if result >= 0:
                value = outputs[result]
            elif variable >= 0:
                value = env[variable]
            if self.form == ONE_VALUE:
                return value
            values.append(value)
        return tuple(values) if self.form == TUPLE else rebuilt(self.containers, values)

    def _view(
        self,
        slot: OutputSlot,
        inputs: Inputs,
        tensors: list[Tensor],
        exprs: list[Expr],
        new: list[Storage],
        outputs: list[Tensor],
    ) -> Tensor:
        """Return a view of an input's memory, of a constant, or of new memory."""
        base = None if slot.earlier == NONE else outputs[slot.earlier]
        begin = slot.offset
        if slot.source >= 0:
            e, source = exprs[slot.source], inputs.slots[slot.source]
            storage, base = e.storage, tensors[slot.source]
            begin += source.begin(e)
        else:
            storage = new[slot.new] if slot.constant is None else slot.constant
        if begin:
            begin //= slot.spec.dtype.itemsize
        y = make(leaf(storage, slot.spec, slot.strides, begin))
        return y if base is None or slot.hidden else alias(base, y)


@dataclass
class Executable:
    """The replay of a capture; a call with other arguments returns MISS."""

    inputs: Inputs
    program: BoundProgram
    outputs: Outputs

    def run(self, leaves: Sequence[object], tree: object, settings: Settings) -> Any:
        """Return the function's result for these leaves of arguments, or MISS."""
        if not self.inputs.match(leaves, tree, settings):
            return MISS
        env = self.program.numbers_of(leaves, self.inputs.floats)
        return self.run_with(leaves, env, settings)

    def run_with(self, leaves: Sequence[object], env: Env, settings: Settings) -> Any:
        """Do the same with numbers that are known, for arguments that need no check."""
        tensors: list[Tensor] = []
        exprs: list[Expr] = []
        if not self.inputs.read(leaves, tensors, exprs):
            return MISS
        stream = current_handle(self.program.device) if settings.streams else None
        with lock:
            pointers = self.program.run(self.inputs, exprs, env, stream)
        return self.outputs.make(self.inputs, tensors, exprs, env, pointers)


def is_taped(x: Tensor) -> bool:
    """Return True if a write to x would concern some other tensor's gradient."""
    group = x._aliases
    if group is None or not current().grad:
        return False
    return group.taped and _is_any_taped(group.live())


def _is_any_taped(tensors: Sequence[Tensor]) -> bool:
    return any(t._expr.tape is not None for t in tensors)


def about_to_write(storage: Storage) -> None:
    """Compute the pending nodes that read this memory."""
    pending_readers = readers(storage)
    if pending_readers:
        run.evaluate(pending_readers, asked=False)


def has_written(name: str, storage: Storage) -> None:
    """Mark saved values as overwritten; wait for the device if the memory is visible outside."""
    mark_overwritten(storage, name)
    if storage.seen and (opened := open_device(storage.device)).backend.asynchronous:
        opened.backend.synchronize(current_handle(storage.device))


class RecentExecutables:
    """A function with executables; a call tries the most recent ones before it builds a key."""

    __slots__ = ("_function", "_latest")

    _function: Callable[..., Any]
    _latest: tuple[Executable, ...]

    def __call__(self, *args: object, **options: object) -> Any:
        if flags.captures and tracer_api.current() is not None:
            return self._function(*args, **options)  # part of an outer capture
        settings = current()
        if not options:
            for executable in self._latest:
                result = executable.run(args, None, settings)
                if result is not MISS:
                    return result
        return self._call_slow(args, options, settings)

    def _call_slow(self, args: tuple[object, ...], options: Any, settings: Settings) -> Any:
        """Run the function for arguments that match none of the recent executables."""
        raise NotImplementedError
