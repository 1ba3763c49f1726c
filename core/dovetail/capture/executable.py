"""Executables, which replay a captured function: input slots, a program and output slots.

`Executable.run` compares the arguments and the closure with those of the capture, allocates the
program's memory, runs it, and makes tensors of the results. `bindings` makes an executable from a
capture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..backend import faults
from ..backend.streams import current_handle
from ..device_class import Device
from ..device_class import opened as open_device
from ..engine import evaluate as run
from ..engine import tracer_api
from ..engine.evaluate import engine_lock
from ..engine.traced_numbers import Env, TracedNumber
from ..graph.expr import Expr, Spec, find_readers, leaf, mark_overwritten
from ..layout import Shape
from ..memory.pointer import DataPtr, StreamHandle
from ..memory.storage import Storage, storage_over
from ..plugins.device_handle import OpenedDevice
from ..settings import Settings, current, flags
from ..tensor.c_fields import expr_of, is_strided, record_alias, set_class
from ..tensor.host import evaluate_leaf
from ..tensor.operators import number_readers, pending_numbers
from ..tensor.tensor import Tensor, create_tensor
from .guards import static_key
from .pytree import FlatTree, StaticArgument, rebuild
from .replay import Addresses, Replayer, ValueGuardError

CACHE_MISS = object()  # what a call returns that the capture is not for
NO_INDEX = -1  # in place of a number
NO_OBJECT = object()  # in place of an object: no value is identical to it
(
    CHECK_NONE,
    CHECK_TENSOR,
    CHECK_TYPE,
    CHECK_IDENTITY,
    CHECK_SAME_AS_READ,
    CHECK_SAME_AS_ARGUMENT,
    CHECK_KEY,
    CHECK_OBJECT,
) = range(8)
RESULT_SINGLE, RESULT_TUPLE, RESULT_NONE, RESULT_NESTED = range(
    4
)  # what a function returns: its containers

# Attaches gradients: given the input tensors, the result tensors and the numbers of a call.
AttachGradients: TypeAlias = Callable[[list[Tensor], list[Tensor], Env], None]


@dataclass(eq=False, repr=False)
class ClosureRead:
    """A place of the closure that is read at each call, and what must be there.

    The owner of the place is the value of the read number `parent`, or the place is a root: the
    leaf number `argument` of the arguments, or else `root`. For other places `root` is an object
    that needs no key (CHECK_KEY), or a weak reference to it (CHECK_OBJECT).
    """

    parent: int  # or NO_INDEX
    argument: int  # or NO_INDEX
    root: object
    key: Any
    is_item: bool  # else an attribute
    check: int = CHECK_NONE  # CHECK_TENSOR, CHECK_TYPE, ...
    expected: object = None  # the type, the object or the key
    # CHECK_KEY, CHECK_OBJECT: makes the key; None if only the object itself is accepted
    key_of: Callable[[Any], object] | None = None
    # CHECK_SAME_AS_READ: the number of that read; CHECK_SAME_AS_ARGUMENT: that of the leaf
    same_index: int = NO_INDEX
    length: int = NO_INDEX  # CHECK_TYPE: of the container
    # CHECK_KEY: the constants of a list, or the keys and constants of a dict, which need no key
    items: list[Any] | None = None

    def accepts(self, value: Any, values: list[Any], leaves: Sequence[object]) -> bool:
        """Return True if a value passes this read's check, of its type, identity or key."""
        check = self.check
        if check == CHECK_TENSOR:
            return is_strided(value)
        if check == CHECK_TYPE:
            return type(value) is self.expected and (
                self.length == NO_INDEX or len(value) == self.length
            )
        if check == CHECK_IDENTITY:
            return value is self.expected
        if check == CHECK_SAME_AS_READ:
            return value is values[self.same_index]
        if check == CHECK_SAME_AS_ARGUMENT:
            return value is leaves[self.same_index]
        if check == CHECK_KEY:
            if value is self.root or (self.items is not None and self._has_same_items(value)):
                return True
            return self.key_of(value) == self.expected  # type: ignore[misc]  # it is set
        if check == CHECK_OBJECT:
            reference: Any = self.root
            return value is reference() or (
                self.key_of is not None and self.key_of(value) == self.expected
            )
        return True

    def _has_same_items(self, value: Any) -> bool:
        """Return True for a list or dict with the same objects as at the capture."""
        assert self.items is not None
        if type(value) is list:
            items = value
        elif type(value) is dict:
            items = [*value, *value.values()]
        else:
            return False
        if len(items) != len(self.items):
            return False
        for i in range(len(items)):  # noqa: SIM110  # compiled, an index is faster than a generator
            if items[i] is not self.items[i]:
                return False
        return True


@dataclass(eq=False, repr=False)
class InputSlot:
    """A tensor that is read at each call: where it is, and what it must be like."""

    argument: int  # its number among the leaves of the arguments, or NO_INDEX
    gradient_of: int  # the number of the slot whose gradient it is, or NO_INDEX
    read: int  # the number of the closure read that finds it, or NO_INDEX
    spec: Spec
    strides: Shape
    itemsize: int
    requires_grad: bool = False  # whether it requires a gradient
    has_gradient: int = NO_INDEX  # whether it has one: 0 or 1; NO_INDEX where that does not matter
    kind: type[Tensor] = Tensor  # its class

    def begin(self, e: Expr) -> int:
        """Return the byte of its memory at which the tensor begins."""
        return e.offset * self.itemsize


@dataclass(eq=False, repr=False)
class SlotOverlap:
    """Two input slots over the same memory, and the bytes from the start of `base` to `slot`."""

    slot: int
    base: int
    distance: int


@dataclass(eq=False, repr=False)
class Inputs:
    """The inputs of a call, with the conditions under which the capture applies to it."""

    count: int  # leaves of the arguments
    tree: object  # of the arguments; None if there are no containers
    settings: Settings | None  # of the context; None if they do not matter
    device: Device
    opened: OpenedDevice
    statics: list[tuple[int, object, object]]  # leaf, value, key
    floats: list[tuple[int, int]]  # leaf, variable
    reads: list[ClosureRead]
    slots: list[InputSlot]
    taped_count: int  # number of slots that require a gradient
    overlaps: list[SlotOverlap]
    program_slots: list[int]  # slots whose memory the program gets
    written_slots: list[int]  # those of them that the program writes

    def match(self, leaves: Sequence[object], tree: object, settings: Settings) -> bool:
        """Return True if containers, static values, settings and device match, tensors aside."""
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
                or settings.saved_value_hooks is not None
                or settings.grad is not s.grad
                or (settings.autocast is not s.autocast and settings.autocast != s.autocast)
                or settings.device is not s.device
                or settings.vendor_products is not s.vendor_products
                or settings.fast_math is not s.fast_math
            )
        ):
            return False
        for i, _ in self.floats:
            if type(leaves[i]) is not float:
                return False
        for i, value, key in self.statics:
            x = leaves[i]
            if type(x) is StaticArgument:
                if x.key != key:
                    return False
            elif x is not value and static_key(x) != key:
                return False
        return True

    def read_tensors(
        self, leaves: Sequence[object], tensors: list[Tensor], exprs: list[Expr]
    ) -> bool:
        """Fill `tensors` and `exprs` from the slots, evaluated; return False at a mismatch."""
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
            if type(x) is not slot.kind:
                return False
            e = expr_of(x)
            if e.op is not None or e.storage.pending is not None:
                e = evaluate_leaf(x)
            if e.spec is not slot.spec:
                return False
            if e.strides is not slot.strides and e.strides != slot.strides:
                return False
            if (e.tape is not None) != slot.requires_grad:
                return False
            if slot.has_gradient != NO_INDEX and (e.tape.grad is not None) != (
                slot.has_gradient == 1
            ):
                return False
            tensors.append(x)
            exprs.append(e)
        return self._matches_aliasing(tensors, exprs)

    def read_closure(self, leaves: Sequence[object]) -> list[Any] | None:
        """Return the values of all closure reads, in order; None if a check fails."""
        values: list[Any] = []
        value: Any
        try:
            for r in self.reads:
                if r.parent >= 0:
                    owner = values[r.parent]
                    value = owner[r.key] if r.is_item else getattr(owner, r.key)
                elif r.argument >= 0:
                    value = leaves[r.argument]
                    if type(value) is StaticArgument:
                        value = value.value
                else:
                    value = r.root
                if r.check != CHECK_NONE and not r.accepts(value, values, leaves):
                    return None
                values.append(value)
        except (AttributeError, LookupError, TypeError, ValueError):
            return None
        return values

    def _matches_aliasing(self, tensors: list[Tensor], exprs: list[Expr]) -> bool:
        """Return True if inputs share memory as at the capture, and writes to them are allowed."""
        for o in self.overlaps:
            e, slot = exprs[o.slot], self.slots[o.slot]
            base, first = exprs[o.base], self.slots[o.base]
            if e.storage is not base.storage or slot.begin(e) - first.begin(base) != o.distance:
                return False
        if self.taped_count > 1:  # two that require gradients must not have become one
            taped: set[int] = set()
            for n, slot in enumerate(self.slots):
                if slot.requires_grad:
                    taped.add(id(tensors[n]))
            if len(taped) < self.taped_count:
                return False
        if not self.written_slots:
            return True
        users: dict[int, int] = {}  # id of a storage -> how many slots give it to the program
        for k in self.program_slots:
            e = exprs[k]
            users[id(e.storage)] = users.get(id(e.storage), 0) + 1
        for n in self.written_slots:
            e = exprs[n]
            storage = e.storage
            if storage.read_only or users[id(storage)] > 1:
                return False
            if self._overlaps_another(storage, exprs):
                return False
            slot = self.slots[n]
            if not slot.requires_grad and has_taped_alias(tensors[n]):
                return False
        return True

    def _overlaps_another(self, storage: Storage, exprs: list[Expr]) -> bool:
        """Return True if another input of the program has a storage that overlaps this one."""
        if storage.overlap is None:
            return False
        members = storage.overlap.members()
        for k in self.program_slots:
            e = exprs[k]
            if e.storage is not storage and e.storage in members:
                return True
        return False


@dataclass(eq=False, repr=False)
class BoundProgram:
    """The program of a capture, with everything that it needs beside the inputs."""

    name: str
    device: Device
    opened: OpenedDevice
    numbers: Env  # at the capture
    formulas: list[tuple[int, Callable[..., object], tuple[TracedNumber, ...]]]
    constants: tuple[Storage, ...]
    constants_at: Addresses
    written_constants: list[Storage]
    sizes: list[int]  # in bytes, of results and of the arena
    replay: Replayer

    def numbers_of(self, leaves: Sequence[object], floats: list[tuple[int, int]]) -> Env:
        """Return the variables of a call: `floats` are (leaf, variable); formulas are computed."""
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
        """Run the program on its inputs; return the memory of new results, and the arena's.

        Pending readers of memory that it writes are evaluated before. In eager mode it waits for
        the stream. Raises: OutOfRangeError where an input comes of a bad index.
        """
        if flags.has_unresolved_checks or self.opened.has_streams:
            self._prepare_inputs([exprs[n].storage for n in inputs.program_slots], stream)
        for n in inputs.written_slots:
            e = exprs[n]
            evaluate_readers(e.storage)
        for storage in self.written_constants:
            evaluate_readers(storage)
        at: Addresses = []
        for n in inputs.program_slots:
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
        for n in inputs.written_slots:
            e = exprs[n]
            finish_write(self.name, e.storage)
        for storage in self.written_constants:
            finish_write(self.name, storage)
        return pointers

    def _prepare_inputs(self, storages: list[Storage], stream: StreamHandle) -> None:
        """Settle the index checks that inputs inherit; mark inputs as used by the stream."""
        if flags.has_unresolved_checks:
            faults.settle_checks(faults.inherited_checks(storages))
        if self.opened.has_streams:
            self.opened.record_streams(stream, storages)


@dataclass(eq=False, repr=False)
class OutputSlot:
    """A tensor that a call makes: one that was read, or a view of memory."""

    spec: Spec
    strides: Shape
    offset: int  # in bytes, from where the memory (of an input: the tensor) begins
    is_saved: bool  # whether it is not for the user, but saved for the backward program
    input_slot: int = NO_INDEX  # the number of the input slot whose tensor it is
    base_slot: int = NO_INDEX  # the number of the input slot over whose memory it is
    constant: Storage | None = None  # the constant over whose memory it is
    allocation: int = NO_INDEX  # the number of the new memory over which it is
    earlier_output: int = NO_INDEX  # the number of an earlier output over the same memory
    kind: type[Tensor] = Tensor  # its class
    is_number: bool = False  # a new one of `pending_numbers`


@dataclass(eq=False, repr=False)
class Outputs:
    """The outputs of a call."""

    device: Device
    slots: list[OutputSlot]
    # input slot, and the number of its gradient's output, or NO_INDEX
    gradients: list[tuple[int, int]]
    values: list[tuple[int, int, object]]  # for each leaf: an output, or a variable, or a constant
    result_form: int  # RESULT_SINGLE, RESULT_TUPLE, ...
    containers: FlatTree
    attach_gradients: AttachGradients | None = None

    def build_result(
        self,
        inputs: Inputs,
        tensors: list[Tensor],
        exprs: list[Expr],
        env: Env,
        pointers: list[DataPtr],
    ) -> Any:
        """Build the function's result; set the `grad`s that it sets, and attach gradients."""
        if self.result_form == RESULT_NONE and not self.gradients:  # so no gradient flows
            return None
        new = [storage_over(ptr, self.device) for ptr in pointers]
        outputs: list[Any] = []
        for slot in self.slots:
            if slot.input_slot >= 0:
                outputs.append(tensors[slot.input_slot])
            else:
                outputs.append(self._view(slot, inputs, tensors, exprs, new, outputs))
        for n, k in self.gradients:
            e = exprs[n]
            e.tape.grad = None if k == NO_INDEX else outputs[k]
        if self.attach_gradients is not None:
            self.attach_gradients(tensors, outputs, env)
        if self.result_form == RESULT_NONE:
            return None
        for k, slot in enumerate(self.slots):
            if slot.is_number:
                outputs[k] = number_readers[slot.kind](outputs[k])
        values = []
        for result, variable, value in self.values:
            if result >= 0:
                value = outputs[result]
            elif variable >= 0:
                value = env[variable]
            if self.result_form == RESULT_SINGLE:
                return value
            values.append(value)
        return (
            tuple(values) if self.result_form == RESULT_TUPLE else rebuild(self.containers, values)
        )

    def _view(
        self,
        slot: OutputSlot,
        inputs: Inputs,
        tensors: list[Tensor],
        exprs: list[Expr],
        new: list[Storage],
        outputs: list[Tensor],
    ) -> Tensor:
        """Create a tensor over an input's memory (then its alias), a constant, or new memory."""
        base = None if slot.earlier_output == NO_INDEX else outputs[slot.earlier_output]
        begin = slot.offset
        if slot.base_slot >= 0:
            e, source = exprs[slot.base_slot], inputs.slots[slot.base_slot]
            storage, base = e.storage, tensors[slot.base_slot]
            begin += source.begin(e)
        else:
            storage = new[slot.allocation] if slot.constant is None else slot.constant
        if begin:
            begin //= slot.spec.dtype.itemsize
        y = create_tensor(leaf(storage, slot.spec, slot.strides, begin))
        if slot.kind is not Tensor:
            set_class(y, slot.kind)
            if slot.is_number:
                pending_numbers[y] = True
        return y if base is None or slot.is_saved else record_alias(base, y)


@dataclass(eq=False, repr=False)
class Executable:
    """The replay of a capture; a call with other arguments returns CACHE_MISS."""

    inputs: Inputs
    program: BoundProgram
    outputs: Outputs

    def run(self, leaves: Sequence[object], tree: object, settings: Settings) -> Any:
        """Replay the capture for these leaves; return its result, or CACHE_MISS on a mismatch."""
        if not self.inputs.match(leaves, tree, settings):
            return CACHE_MISS
        env = self.program.numbers_of(leaves, self.inputs.floats)
        return self.run_with_numbers(leaves, env, settings)

    def run_with_numbers(self, leaves: Sequence[object], env: Env, settings: Settings) -> Any:
        """Replay with variables `env`; return CACHE_MISS if tensors, closure or values differ."""
        tensors: list[Tensor] = []
        exprs: list[Expr] = []
        if not self.inputs.read_tensors(leaves, tensors, exprs):
            return CACHE_MISS
        stream = current_handle(self.program.device) if settings.streams else None
        try:
            with engine_lock:
                pointers = self.program.run(self.inputs, exprs, env, stream)
        except ValueGuardError:  # so far it has written to its own memory alone
            return CACHE_MISS
        return self.outputs.build_result(self.inputs, tensors, exprs, env, pointers)


def has_taped_alias(x: Tensor) -> bool:
    """Return True if gradients are on, x has aliases, and x or one of them has a tape."""
    group = x._aliases
    if group is None or not current().grad:
        return False
    return group.has_tape and _is_any_taped(group.live_tensors())


def _is_any_taped(tensors: Sequence[Tensor]) -> bool:
    """Return True if gradients flow through one of the tensors."""
    return any([t._expr.tape is not None for t in tensors])


def evaluate_readers(storage: Storage) -> None:
    """Compute the pending nodes that read this memory; bad indices are not reported here."""
    pending_readers = find_readers(storage)
    if pending_readers:
        run.evaluate(pending_readers, reports_checks=False)


def finish_write(name: str, storage: Storage) -> None:
    """Mark values that backward saved as overwritten; wait if foreign code sees the memory."""
    mark_overwritten(storage, name)
    if storage.seen and (opened := open_device(storage.device)).backend.asynchronous:
        opened.backend.synchronize(current_handle(storage.device))


class RecentExecutables:
    """A function with executables; a call tries the most recent ones before it builds a key."""

    __slots__ = ("_function", "_recent")

    _function: Callable[..., Any]
    _recent: tuple[Executable, ...]

    def __call__(self, *args: object, **options: object) -> Any:
        if flags.captures and tracer_api.current() is not None:
            return self._function(*args, **options)  # part of an outer capture
        settings = current()
        if not options:
            for executable in self._recent:
                result = executable.run(args, None, settings)
                if result is not CACHE_MISS:
                    return result
        return self._call_slow(args, options, settings)

    def _call_slow(self, args: tuple[object, ...], options: Any, settings: Settings) -> Any:
        """Run a call that has keywords, or that no recent executable took; subclasses define it."""
        raise NotImplementedError
