"""Binding of a captured program: the sources of its inputs, and the use of its results.

`bind_trace` makes an executable from a `FunctionTrace`, the record of a function's first call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from inspect import isroutine
from types import MethodType, ModuleType
from typing import Any, NamedTuple, TypeAlias
from weakref import ref

import numpy as np

from ..engine.traced_numbers import Environment, TracedFloat
from ..graph.expr import Expr, Spec, leaf, storage_of
from ..layout import Shape
from ..memory import DataPtr
from ..memory.storage import storage_at
from ..memory.tracing.stacktrace import is_library_module
from ..settings import Settings
from ..tensor.c_fields import is_strided
from ..tensor.other_layouts import LayoutTensor
from ..tensor.tensor import Tensor, create_tensor
from .closures import ClosurePath
from .executable import (
    CHECK_IDENTITY,
    CHECK_KEY,
    CHECK_OBJECT,
    CHECK_SAME_AS_ARGUMENT,
    CHECK_SAME_AS_READ,
    CHECK_TENSOR,
    CHECK_TYPE,
    NO_INDEX,
    NO_OBJECT,
    RESULT_NESTED,
    RESULT_NONE,
    RESULT_SINGLE,
    RESULT_TUPLE,
    BoundProgram,
    ClosureRead,
    Executable,
    Inputs,
    InputSlot,
    Outputs,
    OutputSlot,
    SlotOverlap,
)
from .guards import (
    ARRAY_BYTES_MAX,
    CONTAINER_TYPES,
    ITEMS_MAX,
    MAPPING_TYPES,
    array_key,
    contents_key,
    is_constant,
    is_opaque_class,
    is_value,
    metadata_key,
    names_key,
    settings_key,
    state_key,
    static_key,
)
from .program import CapturedProgram, Place
from .pytree import FlatTree, StaticArgument


class ReachableTensor:
    """A tensor that a function may use: an argument, one of its closure, or a gradient of one.

    `input`: its number among the inputs of the program, if it is one. `tape`: its place on the tape
    before the call. `kind`: its class.
    """

    def __init__(
        self,
        tensor: Tensor,
        argument: int = NO_INDEX,
        path: ClosurePath | None = None,
        gradient_of: ReachableTensor | None = None,
        input: int | None = None,
    ) -> None:
        self.tensor, self.argument, self.path = tensor, argument, path
        self.gradient_of, self.input = gradient_of, input
        self.tape, self.kind = tensor._expr.tape, type(tensor)

    @property
    def expr(self) -> Expr:
        """The node of the tensor."""
        return self.tensor._expr

    @property
    def begin(self) -> int:
        """The byte offset of the tensor in its memory."""
        return self.expr.offset * self.expr.spec.dtype.itemsize

    def drop_memory(self) -> Tensor:
        """Set `tensor` to one of the same layout without memory or tape, and return it."""
        e = self.expr
        spec, strides, offset = e.spec, e.spec.strides, 0
        if e.op is None:
            strides, offset = e.strides, e.offset
        ptr = DataPtr(None, 0, 0, spec.device)
        self.tensor = create_tensor(leaf(storage_at(ptr, 0, spec.device), spec, strides, offset))
        self.tape = None
        return self.tensor


class Result(NamedTuple):
    """A result: a known tensor, or a view of an input, a constant or new memory."""

    reachable_tensor: ReachableTensor | None
    place: Place
    spec: Spec
    strides: Shape


class ResultIndex(int):
    """The number of a result, in place of a leaf of the returned containers."""


NewGradient: TypeAlias = tuple[ReachableTensor, int | None]  # its tensor, the number of the result


class FunctionTrace(NamedTuple):
    """The record of a function's first call."""

    name: str
    program: CapturedProgram
    leaves: Sequence[object]  # of the arguments
    tree: object  # of the arguments; None if there are no containers
    settings: Settings | None  # of the context; None if they do not matter
    known: list[ReachableTensor]
    inputs: list[ReachableTensor]
    environment: Environment
    floats: list[tuple[int, int]]  # leaf of the arguments -> variable
    results: list[Result]
    returned: FlatTree  # leaves: numbers of results, or values
    gradients: list[NewGradient]
    closure: Sequence[ClosurePath] = ()
    arrays: Sequence[np.ndarray] = ()  # arrays from which tensors were made
    saved: int | None = (
        None  # if gradients flow: number of saved values, which are the last results
    )


def bind_trace(trace: FunctionTrace) -> tuple[Executable, dict[int, int]]:
    """Return the executable, and a dict: id of a ReachableTensor -> number of its input slot."""
    binder = _Binder(trace)
    return Executable(binder.inputs(), binder.program(), binder.outputs()), binder.slot_index


class _Binder:
    """The builder of an executable: it numbers the tensors and closure reads of a trace.

    `slot_index`: the input slot of each known tensor, by its id.
    """

    def __init__(self, trace: FunctionTrace) -> None:
        self.trace = trace
        self.slot_index: dict[int, int] = {}
        self.slots: list[InputSlot] = []
        self.reads: list[ClosureRead] = []
        self._read_index: dict[int, int] = {}  # id of a path -> the number of its read
        used = {id(storage_of(k.expr)) for k in trace.inputs}
        self._overlapping = [  # no inputs, but over the memory of one
            k
            for k in trace.known
            if k.input is None and k.expr.op is None and id(storage_of(k.expr)) in used
        ]
        arguments = [k for k in trace.known if k.argument != NO_INDEX]
        others = [k for k in trace.known if self._is_needed(k)]
        for tensor in (*arguments, *trace.inputs, *self._overlapping, *others):
            self._find_slot(tensor)
        self._add_closure_reads()

    def _is_needed(self, tensor: ReachableTensor) -> bool:
        """Return True if a call must find a tensor even if the program does not read it.

        Its `grad` is set, it is returned, or gradients flow there.
        """
        trace = self.trace
        if trace.saved is not None and tensor.tape is not None:
            return True
        return any(k is tensor for k, _ in trace.gradients) or any(
            r.reachable_tensor is tensor for r in trace.results
        )

    def _find_slot(self, tensor: ReachableTensor) -> int:
        """Return the number of a tensor's input slot; add the slot and its read if missing."""
        if id(tensor) not in self.slot_index:
            of = NO_INDEX if tensor.gradient_of is None else self._find_slot(tensor.gradient_of)
            read = NO_INDEX if tensor.path is None else self._add_read(tensor.path)
            spec, strides = tensor.expr.spec, tensor.expr.strides
            slot = InputSlot(tensor.argument, of, read, spec, strides, spec.dtype.itemsize)
            slot.kind = tensor.kind
            slot.requires_grad = tensor.tape is not None
            if slot.requires_grad and tensor.tensor.is_leaf:
                slot.has_gradient = int(any(k.gradient_of is tensor for k in self.trace.known))
            self.slot_index[id(tensor)] = len(self.slots)
            self.slots.append(slot)
        return self.slot_index[id(tensor)]

    # --- the closure
    def _add_closure_reads(self) -> None:
        """Add a read for each path of the closure that decides what the function gives."""
        paths = self.trace.closure
        tensors = {id(k.tensor) for k in self.trace.known}
        used = {id(k.tensor) for k in self.trace.known if id(k) in self.slot_index}
        arrays = [p.value for p in paths if isinstance(p.value, np.ndarray)]
        is_computed = any(  # by NumPy, perhaps from an array that the code names
            not any(np.may_share_memory(a, k) for k in arrays) for a in self.trace.arrays
        )
        for p in paths:
            if self._affects_result(p, used, is_computed):
                self._add_read(p)
        for p in paths:  # of these the code may ask the shape, without the values
            if self._needs_only_metadata(p, tensors):
                _compare_key(self.reads[self._add_read(p)], metadata_key, p.value)
        for p in paths:  # code that runs beside the tensors
            if p.parent is not None and id(p.parent) in self._read_index and callable(p.value):
                self._add_read(p)
        before = -1
        while before != len(self.reads):  # another name for a container leads to the same values
            before = len(self.reads)
            for p in paths:
                if p.first_path is not None and id(p.first_path) in self._read_index:
                    self._add_read(p)

    def _affects_result(self, p: ClosurePath, used: set[int], is_computed: bool) -> bool:
        """Return True if each call must check the value at a path, not only its parts.

        `used`: ids of tensors that do. `is_computed`: True if arrays may have been made of others.
        """
        value = p.value
        if is_strided(value):
            return id(value) in used
        if isinstance(value, np.ndarray):
            return (p.is_named and (is_computed or value.nbytes <= ARRAY_BYTES_MAX)) or any(
                np.may_share_memory(value, a) for a in self.trace.arrays
            )
        if hasattr(type(value), "captured_for"):
            return True
        return p.is_named and not isinstance(value, ModuleType) and not _is_in_layout(p)

    def _needs_only_metadata(self, p: ClosurePath, tensors: set[int]) -> bool:
        """Return True if the code names a tensor or array, of which no values are read.

        `tensors`: ids of the known ones.
        """
        if not p.is_named or id(p) in self._read_index or metadata_key(p.value) is None:
            return False
        return not is_strided(p.value) or id(p.value) in tensors

    def _add_read(self, p: ClosurePath) -> int:
        """Return the number of a path's read; add it, after those of its owners, if missing."""
        waiting: list[ClosurePath] = []
        owner: ClosurePath | None = p
        while owner is not None and id(owner) not in self._read_index:
            waiting.append(owner)
            owner = owner.owner
        for path in reversed(waiting):
            parent = NO_INDEX if path.parent is None else self._read_index[id(path.parent)]
            root = path.value if path.parent is None and path.argument == NO_INDEX else None
            r = ClosureRead(parent, path.argument, root, path.key, path.is_item)
            self._set_check(r, path)
            self._read_index[id(path)] = len(self.reads)
            self.reads.append(r)
        return self._read_index[id(p)]

    def _set_check(self, r: ClosureRead, p: ClosurePath) -> None:
        """Set read `r`'s check by its path's value after the capture; add a read if needed."""
        value, argument = p.value, NO_INDEX
        if is_strided(value):
            arguments = (k.argument for k in self.trace.known if k.tensor is value)
            argument = next(arguments, NO_INDEX)
        if argument != NO_INDEX:
            r.check, r.same_index = CHECK_SAME_AS_ARGUMENT, argument
        elif p.first_path is not None and (p.parent is not None or p.argument != NO_INDEX):
            r.check, r.same_index = CHECK_SAME_AS_READ, self._add_read(p.first_path)
        elif is_strided(value):
            r.check = CHECK_TENSOR
        elif p.parent is None and p.argument == NO_INDEX:
            return
        elif is_value(value):
            now = p.read()
            _compare_key(r, static_key, now, now)
        elif isinstance(value, np.ndarray):
            _compare_key(r, array_key, value)
        elif isinstance(value, ContextVar):
            _compare_key(r, state_key, value)
        elif p.parent is not None and isinstance(p.parent.value, LayoutTensor):
            r.check, r.expected = CHECK_IDENTITY, value  # a pattern, of which much is known
        elif isinstance(value, type) or (isroutine(value) and type(value) is not MethodType):
            r.check, r.expected = CHECK_IDENTITY, value
        elif isinstance(value, CONTAINER_TYPES):
            self._set_container_check(r, p)
        elif _is_compared_by_identity(value):
            try:
                r.check, r.root = CHECK_OBJECT, ref(value)
            except TypeError:
                r.check, r.expected = CHECK_IDENTITY, value
            if hasattr(type(value), "captured_for"):
                r.key_of, r.expected = settings_key, settings_key(value)
        else:
            r.check, r.expected = CHECK_TYPE, type(value)

    def _set_container_check(self, r: ClosureRead, p: ClosurePath) -> None:
        """Set the check of a container's read: its type and length, its keys, or its constants."""
        kind, is_mapping = type(p.value), isinstance(p.value, MAPPING_TYPES)
        constants = [*map(is_constant, p.value.values() if is_mapping else p.value)]
        if not p.is_named or contents_key(p.value) != p.contents:  # the function itself changes it
            r.check, r.expected = CHECK_TYPE, kind
            r.length = NO_INDEX if p.is_named and all(constants) else len(p.value)
        elif kind in (list, tuple) and not any(constants):  # each item has a read
            r.check, r.expected, r.length = CHECK_TYPE, kind, len(p.value)
        elif kind is dict and not any(constants) and all(type(k) is str for k in p.value):
            _compare_key(r, names_key, p.value)
        else:
            is_immutable = kind is tuple and all(constants)
            _compare_key(r, contents_key, p.value, p.value if is_immutable else NO_OBJECT)
            if kind in (list, dict) and all(constants) and len(p.value) <= ITEMS_MAX:
                r.items = [*p.value, *p.value.values()] if is_mapping else [*p.value]

    # --- the parts
    def inputs(self) -> Inputs:
        """Build the `Inputs` of the executable, by which a call finds and checks its tensors."""
        trace = self.trace
        input_slots = [self._find_slot(k) for k in trace.inputs]
        overlaps = []
        for k in self._overlapping:
            base = next(x for x in trace.inputs if storage_of(x.expr) is storage_of(k.expr))
            overlaps.append(
                SlotOverlap(self._find_slot(k), self._find_slot(base), k.begin - base.begin)
            )
        return Inputs(
            count=len(trace.leaves),
            tree=trace.tree,
            settings=trace.settings,
            device=trace.program.opened.device,
            opened=trace.program.opened,
            statics=[
                (i, x.value, x.key) for i, x in enumerate(trace.leaves) if type(x) is StaticArgument
            ],
            floats=[*trace.floats],
            reads=self.reads,
            slots=self.slots,
            taped_count=sum(s.requires_grad for s in self.slots),
            overlaps=overlaps,
            program_slots=input_slots,
            written_slots=[
                input_slots[i] for i in sorted(trace.program.written) if i < len(input_slots)
            ],
        )

    def program(self) -> BoundProgram:
        """Return the program with its constants and the sizes of its memory."""
        f, p = self.trace, self.trace.program
        return BoundProgram(
            name=f.name,
            device=p.opened.device,
            opened=p.opened,
            numbers=f.environment.values.copy(),
            formulas=f.environment.formulas.copy(),
            constants=p.constants,
            constants_at=p.constant_addresses(),
            written_constants=[
                p.constants[i - p.inputs] for i in sorted(p.written) if i >= p.inputs
            ],
            sizes=[*p.sizes, *([p.arena] if p.arena else [])],
            replay=p.replay,
        )

    def outputs(self) -> Outputs:
        """Build the `Outputs` of the executable, by which a call makes its results."""
        trace = self.trace
        memory_slots = [r.place.slot for r in trace.results]
        return Outputs(
            device=trace.program.opened.device,
            slots=[self._output(i, r, memory_slots) for i, r in enumerate(trace.results)],
            gradients=[
                (self._find_slot(k), NO_INDEX if i is None else i) for k, i in trace.gradients
            ],
            values=[_source_of_leaf(x) for x in trace.returned.leaves],
            result_form=_result_form(trace.returned.tree),
            containers=FlatTree((), trace.returned.tree),
        )

    def _output(self, i: int, r: Result, memory_slots: list[int]) -> OutputSlot:
        """Build the output slot of result `i`; `memory_slots`: the program's, of each result."""
        program = self.trace.program
        hidden = i >= len(memory_slots) - (self.trace.saved or 0)
        slot = OutputSlot(r.spec, r.strides, r.place.offset, hidden)
        constant = r.place.slot - program.inputs
        if r.reachable_tensor is not None:
            slot.input_slot = self._find_slot(r.reachable_tensor)
        elif constant < 0:
            slot.base_slot = self._find_slot(self.trace.inputs[r.place.slot])
        elif constant < len(program.constants):
            slot.constant = program.constants[constant]
        else:
            slot.allocation = constant - len(program.constants)
        first = memory_slots.index(r.place.slot)
        slot.earlier_output = first if first < i else NO_INDEX
        return slot


def _compare_key(
    r: ClosureRead, key_of: Callable[[Any], object], value: object, same: object = NO_OBJECT
) -> None:
    """Make a read accept `same` itself, or any value with the same key as `value`."""
    r.check, r.key_of, r.expected, r.root = CHECK_KEY, key_of, key_of(value), same


def _is_in_layout(path: ClosurePath | None) -> bool:
    """Return True if a path leads to a tensor of another layout or into one; None gives False."""
    while path is not None:
        if isinstance(path.value, LayoutTensor):
            return True
        path = path.parent
    return False


def _is_compared_by_identity(value: object) -> bool:
    """Return True for opaque objects without `__dict__`, and dovetail's own but layout tensors."""
    kind = type(value)
    if is_opaque_class(kind):
        return not hasattr(value, "__dict__") and not isinstance(value, (MethodType, partial))
    return is_library_module(kind.__module__) and not isinstance(value, LayoutTensor)


def _source_of_leaf(x: object) -> tuple[int, int, object]:
    """Return (number of a result, variable, constant) of a leaf; NO_INDEX for the two unused."""
    if type(x) is ResultIndex:
        return int(x), NO_INDEX, None
    if type(x) is TracedFloat:
        return NO_INDEX, x.variable, None
    return NO_INDEX, NO_INDEX, x


def _result_form(tree: Any) -> int:
    """Return RESULT_SINGLE, RESULT_TUPLE, RESULT_NONE or RESULT_NESTED for a tree."""
    if tree.is_leaf():
        return RESULT_SINGLE
    if tree.type is tuple and tree.num_nodes == tree.num_leaves + 1:
        return RESULT_TUPLE
    return RESULT_NONE if tree.type is type(None) else RESULT_NESTED
