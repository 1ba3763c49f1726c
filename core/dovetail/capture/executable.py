"""What a call of a captured function does.

It compares the arguments and the closure with those of the capture, reads where they are, gives the
program memory, and makes tensors of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..backend import faults
from ..backend.streams import current_handle
from ..device import Device
from ..device import opened as open_device
from ..engine import evaluate as run
from ..engine import recording
from ..engine.evaluate import lock
from ..engine.traced_numbers import Env, Number
from ..graph.expr import Expr, Spec, leaf, mark_overwritten, readers
from ..layout import Shape
from ..memory.pointer import DataPtr, StreamHandle
from ..memory.storage import Storage, storage_over
from ..plugins.opened import Opened
from ..settings import Settings, current, flags
from ..tensor.fields import alias, expr_of
from ..tensor.host import evaluated
from ..tensor.tensor import Tensor, make
from .pytree import Flat, Static, array_key, rebuilt, static_key
from .replay import At, Replayer

MISS = object()  # what a call returns that the capture is not for
NONE = -1  # in place of a number
NOTHING_CHECKED, A_TENSOR, OF_TYPE, THE_SAME, AS_READ, AS_ARGUMENT, A_NUMBER, AN_ARRAY = range(8)
LEAF, TUPLE, NOTHING, OTHER = range(4)  # what a function gives: one value, several, None, trees


# Of the tensors that were read, those that were made, and the numbers.
Flowing: TypeAlias = Callable[[list[Tensor], list[Tensor], Env], None]


class Read:
    """A place of the closure that is read at each call, and what must be there.

    The owner of the place is the value of an earlier read (`parent`), or the place is a root: the
    argument of that number, or else `root`.
    """

    __slots__ = ("argument", "check", "expected", "is_item", "key", "number", "parent", "root")

    parent: int  # the number of an earlier read, or NONE
    argument: int  # the number of a leaf of the arguments, or NONE
    root: object
    key: Any
    is_item: bool  # else an attribute
    check: int  # NOTHING_CHECKED, A_TENSOR, ...
    expected: object
    number: int  # of another read, of an argument, or a length

    def holds(self, value: Any, values: list[Any], leaves: Sequence[object]) -> bool:
        """Return True if the value is as it was at the capture, as far as that matters."""
        check = self.check
        if check == A_TENSOR:
            return type(value) is Tensor
        if check == OF_TYPE:
            return type(value) is self.expected and (
                self.number == NONE or len(value) == self.number
            )
        if check == THE_SAME:
            return value is self.expected
        if check == AS_READ:
            return value is values[self.number]
        if check == AS_ARGUMENT:
            return value is leaves[self.number]
        if check == A_NUMBER:
            return value is self.root or static_key(value) == self.expected
        if check == AN_ARRAY:
            return isinstance(value, np.ndarray) and array_key(value) == self.expected
        return True


class Wanted:
    """A tensor that is read at each call: where it is, and what it must be like."""

    __slots__ = (
        "argument", "gradient", "gradient_of", "itemsize", "read", "spec", "strides", "taped",
    )  # fmt: skip

    argument: int  # its number among the leaves of the arguments, or NONE
    gradient_of: int  # the number of the tensor of which it is the gradient, or NONE
    read: int  # the number of the read that finds it otherwise, or NONE
    spec: Spec
    strides: Shape
    itemsize: int
    taped: bool  # whether it requires a gradient
    gradient: int  # whether it has one: 0 or 1; NONE where that does not matter

    def __init__(self, e: Expr, argument: int, gradient_of: int, read: int) -> None:
        self.argument, self.gradient_of, self.read = argument, gradient_of, read
        self.spec, self.strides, self.itemsize = e.spec, e.strides, e.spec.dtype.itemsize
        self.taped, self.gradient = False, NONE


class Beside:
    """A tensor over the memory of another, as it must be again: `apart` bytes from that."""

    __slots__ = ("apart", "base", "tensor")

    def __init__(self, tensor: int, base: int, apart: int) -> None:
        self.tensor, self.base, self.apart = tensor, base, apart


class Given:
    """A tensor that a call gives: one that was read, or a view of memory."""

    __slots__ = (
        "beside", "held", "hidden", "made", "offset", "same", "source", "spec", "start", "strides",
    )  # fmt: skip

    same: int  # the number of the tensor that it is, or NONE
    source: int  # the number of the tensor over whose memory it is, or NONE
    held: Storage | None  # a constant's memory
    made: int  # the number of new memory, or NONE
    spec: Spec
    strides: Shape
    offset: int  # in bytes, from where that begins
    start: int  # the same in elements
    beside: int  # the number of an earlier result over the same memory, or NONE
    hidden: bool  # whether it is none that the user gets, but saved for the way back

    def __init__(self, spec: Spec, strides: Shape, offset: int) -> None:
        self.spec, self.strides, self.offset = spec, strides, offset
        self.start, self.held = offset // spec.dtype.itemsize, None
        self.same = self.source = self.made = self.beside = NONE
        self.hidden = False


class Call:
    """Replays a capture; gives MISS where that is for other arguments.

    Tensors that are read have numbers: those of `wanted`.
    """

    __slots__ = (
        "around", "beside", "constants", "count", "device", "floats", "flow", "form", "formulas",
        "given", "gradients", "held", "inputs", "name", "opened", "reads", "replay", "settings",
        "sizes", "statics", "taped", "template", "tree", "values", "wanted", "written",
        "written_held",
    )  # fmt: skip

    # what it is for
    count: int  # of leaves of the arguments
    tree: object  # of the arguments; None where there are no containers
    settings: Settings | None  # of the context; None where they do not matter
    opened: Opened
    device: Device
    statics: list[tuple[int, object, object]]  # leaf, value, key
    floats: list[tuple[int, int]]  # leaf, variable
    reads: list[Read]
    wanted: list[Wanted]
    taped: int  # how many of them require a gradient
    beside: list[Beside]
    # what it does
    template: Env
    formulas: list[tuple[int, Callable[..., object], tuple[Number, ...]]]
    inputs: list[int]  # the tensors whose memory is given to the program
    written: list[int]  # those of them that it writes
    constants: tuple[Storage, ...]  # that the program keeps
    held: At  # where they are
    written_held: list[Storage]
    sizes: list[int]  # of results, and of the arena
    replay: Replayer
    name: str
    # what it gives
    given: list[Given]
    flow: Flowing | None  # has gradients flow through a result
    gradients: list[tuple[int, int]]  # whose, and which result it is, or NONE
    form: int  # LEAF, TUPLE, ...
    values: list[tuple[int, int, object]]  # result, or variable, or constant
    around: Flat  # the containers of the results

    def run(self, leaves: Sequence[object], tree: object, settings: Settings) -> Any:
        """What the function gives for these leaves of arguments, or MISS."""
        if not self._is_for(leaves, tree, settings):
            return MISS
        return self.given_numbers(leaves, self._environment(leaves), settings)

    def given_numbers(self, leaves: Sequence[object], env: Env, settings: Settings) -> Any:
        """The same for leaves whose numbers are known, and arguments that need no look."""
        tensors: list[Tensor] = []
        exprs: list[Expr] = []
        closure = self._closure(leaves) if self.reads else ()
        if closure is None:
            return MISS
        for w in self.wanted:
            x = self._read(w, leaves, exprs, closure)
            if type(x) is not Tensor:
                return MISS
            e = expr_of(x)
            if e.op is not None or e.storage.pending is not None:
                e = evaluated(x)
            if e.spec is not w.spec or (e.strides is not w.strides and e.strides != w.strides):
                return MISS
            if (e.tape is not None) != w.taped:
                return MISS
            if w.gradient != NONE and (e.tape.grad is not None) != (w.gradient == 1):
                return MISS
            tensors.append(x)
            exprs.append(e)
        if not self._is_shared_alike(tensors, exprs):
            return MISS
        stream = current_handle(self.device) if settings.streams else None
        with lock:
            pointers = self._replayed(exprs, env, stream)
        return self._result(tensors, exprs, env, pointers)

    # --- what a call is compared with
    def _is_for(self, leaves: Sequence[object], tree: object, settings: Settings) -> bool:
        if len(leaves) != self.count or self.device.opened is not self.opened:
            return False
        if tree is not self.tree and (tree is None or self.tree is None or tree != self.tree):
            return False
        s = self.settings
        if s is not None and settings is not s and (
            settings.eager
            or settings.saving is not None
            or settings.grad is not s.grad
            or settings.device is not s.device
            or settings.reproducible is not s.reproducible
        ):  # fmt: skip
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

    def _closure(self, leaves: Sequence[object]) -> list[Any] | None:
        """Read the places of the closure; None if something there is not as it was."""
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
                if r.check != NOTHING_CHECKED and not r.holds(value, values, leaves):
                    return None
                values.append(value)
        except (AttributeError, LookupError, TypeError, ValueError):
            return None
        return values

    def _read(
        self, w: Wanted, leaves: Sequence[object], exprs: Sequence[Expr], closure: Sequence[object]
    ) -> object:
        if w.argument >= 0:
            return leaves[w.argument]
        if w.gradient_of >= 0:
            e = exprs[w.gradient_of]
            return e.tape.grad
        return closure[w.read]

    def _is_shared_alike(self, tensors: list[Tensor], exprs: list[Expr]) -> bool:
        """Whether tensors that shared memory do so again, and those that are written do not."""
        for b in self.beside:
            e, base = exprs[b.tensor], exprs[b.base]
            if e.storage is not base.storage:
                return False
            if self._begin(b.tensor, e) - self._begin(b.base, base) != b.apart:
                return False
        if self.taped > 1:  # two that require gradients must not have become one
            taped: set[int] = set()
            for n in range(len(tensors)):
                if self.wanted[n].taped:
                    taped.add(id(tensors[n]))
            if len(taped) < self.taped:
                return False
        if not self.written:
            return True
        over: dict[int, int] = {}  # id of a storage -> an input that is over it
        for k in self.inputs:
            e = exprs[k]
            if over.setdefault(id(e.storage), k) != k:
                over[id(e.storage)] = NONE  # several are
        for n in self.written:
            e = exprs[n]
            storage = e.storage
            if storage.read_only or over[id(storage)] == NONE or self._overlaps_input(n, exprs):
                return False
            w = self.wanted[n]
            if not w.taped and is_taped(tensors[n]):
                return False
        return True

    def _overlaps_input(self, n: int, exprs: Sequence[Expr]) -> bool:
        """Return True if another storage that is given to the program overlaps a written one."""
        e = exprs[n]
        storage = e.storage
        if storage.overlap is None:
            return False
        members = storage.overlap.members()
        for k in self.inputs:
            other = exprs[k]
            if other.storage is not storage and other.storage in members:
                return True
        return False

    def _begin(self, n: int, e: Expr) -> int:
        """The byte of its memory at which a tensor begins."""
        w = self.wanted[n]
        return e.offset * w.itemsize

    # --- what it does
    def _environment(self, leaves: Sequence[object]) -> Env:
        """The numbers of this call."""
        if not self.template:
            return self.template
        env = self.template.copy()
        for i, variable in self.floats:
            env[variable] = leaves[i]
        for variable, compute, numbers in self.formulas:
            given = [value if k is None else env[k] for value, k in numbers]
            env[variable] = compute(*given)
        return env

    def _replayed(self, exprs: list[Expr], env: Env, stream: StreamHandle) -> list[DataPtr]:
        """Gives the program memory, and has it run; the memory of new results."""
        if flags.tainted or self.opened.streams:
            self._demand([exprs[n].storage for n in self.inputs], stream)
        for n in self.written:
            e = exprs[n]
            about_to_write(e.storage)
        for storage in self.written_held:
            about_to_write(storage)
        at: At = []
        for n in self.inputs:
            e = exprs[n]
            ptr = e.storage.ptr
            at.append(ptr.address())
            at.append(ptr.offset + self._begin(n, e) if e.offset else ptr.offset)
        if self.held:
            at += self.held
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
        for n in self.written:
            e = exprs[n]
            has_written(self.name, e.storage)
        for storage in self.written_held:
            has_written(self.name, storage)
        return pointers

    def _demand(self, storages: list[Storage], stream: StreamHandle) -> None:
        """Raises: IndexOutOfRange where an input comes of a bad index."""
        if flags.tainted:
            faults.demand(faults.carried(storages))
        if self.opened.streams:
            self.opened.share(stream, storages)

    # --- what it gives
    def _result(
        self, tensors: list[Tensor], exprs: list[Expr], env: Env, pointers: list[DataPtr]
    ) -> Any:
        if self.form == NOTHING and not self.gradients:  # so no gradient flows
            return None
        new = [storage_over(ptr, self.device) for ptr in pointers]
        made: list[Tensor] = []
        for g in self.given:
            made.append(
                tensors[g.same] if g.same >= 0 else self._view(g, tensors, exprs, new, made)
            )
        for n, k in self.gradients:
            e = exprs[n]
            e.tape.grad = None if k == NONE else made[k]
        if self.flow is not None:
            self.flow(tensors, made, env)
        if self.form == NOTHING:
            return None
        values = []
        for result, variable, value in self.values:
            if result >= 0:
                value = made[result]
            elif variable >= 0:
                value = env[variable]
            if self.form == LEAF:
                return value
            values.append(value)
        return tuple(values) if self.form == TUPLE else rebuilt(self.around, values)

    def _view(
        self, g: Given, tensors: list[Tensor], exprs: list[Expr], new: list[Storage],
        made: list[Tensor],
    ) -> Tensor:  # fmt: skip
        """A result that is over memory which was there, or is new."""
        beside = None if g.beside == NONE else made[g.beside]
        start = g.start
        if g.source >= 0:
            e = exprs[g.source]
            storage, beside = e.storage, tensors[g.source]
            start = (self._begin(g.source, e) + g.offset) // g.spec.dtype.itemsize
        else:
            storage = new[g.made] if g.held is None else g.held
        y = make(leaf(storage, g.spec, g.strides, start))
        return y if beside is None or g.hidden else alias(beside, y)


def is_taped(x: Tensor) -> bool:
    """Whether a write to x would concern some other tensor's gradient."""
    group = x._aliases
    if group is None or not current().grad:
        return False
    return group.taped and _is_any_taped(group.live())


def _is_any_taped(tensors: Sequence[Tensor]) -> bool:
    return any(t._expr.tape is not None for t in tensors)


def about_to_write(storage: Storage) -> None:
    """Does the pending work that reads this memory."""
    found = readers(storage)
    if found:
        run.evaluate(found, asked=False)


def has_written(name: str, storage: Storage) -> None:
    """Mark saved values as overwritten; wait for the device if others see the memory."""
    mark_overwritten(storage, name)
    if storage.seen and (opened := open_device(storage.device)).backend.asynchronous:
        opened.backend.synchronize(current_handle(storage.device))


class Latest:
    """A function that has captures: the latest of them are tried whatever the arguments."""

    __slots__ = ("_function", "_latest")

    _function: Callable[..., Any]
    _latest: tuple[Call, ...]

    def __call__(self, *args: object, **options: object) -> Any:
        if flags.captures and recording.current() is not None:
            return self._function(*args, **options)  # part of what is being captured
        settings = current()
        if not options:
            for call in self._latest:
                result = call.run(args, None, settings)
                if result is not MISS:
                    return result
        return self._called(args, options, settings)

    def _called(self, args: tuple[object, ...], options: Any, settings: Settings) -> Any:
        """The same for arguments that none of them is known to be for."""
        raise NotImplementedError
