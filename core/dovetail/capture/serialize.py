"""Captured functions in files: `save_function`, `load_function`.

A file is a line that names its format, a digest of the rest, a text of JSON, and the bytes that
the text refers to. Kernels are text in the kernel IR. A file is read in two steps. First
`decode` builds programs: the annotated fields of classes say which JSON may stand for which value.
Then `check_program` proves that each act stays within the memory it is given. Nothing of a file
runs before that, and nothing but kernels, which the verifier has accepted.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import accumulate, pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from .. import callbacks
from ..argument_checks import path as file_name
from ..backend.faults import CELL_BYTES, IndexPurpose
from ..backend.streams import current_handle
from ..device_class import Device, usable
from ..device_class import opened as open_device
from ..dtypes import DType, dtype, int64
from ..engine import programs, tracer_api
from ..engine.launching import BoundKernel
from ..engine.traced_numbers import Environment, TracedFloat, TracedNumber
from ..errors import CaptureError, DovetailError
from ..fusion.plan import PlannedLaunch
from ..graph.expr import Spec, leaf, spec, storage_of
from ..ir.interval_analysis import UnboundedIndexError, index_intervals
from ..ir.parser import parse_kernel
from ..ir.verify import verify
from ..layout import Shape, StridedView, contiguous, element_span
from ..memory import DataPtr
from ..memory.storage import Storage, storage_at
from ..ops import host_routines
from ..ops.host_routines import HostRoutine
from ..ops.table import ARGSORT, MATMUL, SORT, TABLE, Op
from ..settings import current, uses_vendor_products
from ..tensor.c_fields import is_strided
from ..tensor.host import evaluate_leaf
from ..tensor.tensor import Tensor, create_tensor
from .bindings import FunctionTrace, ReachableTensor, Result, ResultIndex, bind_trace
from .closures import ClosurePath
from .executable import CACHE_MISS, NO_INDEX, Executable, SlotOverlap
from .jit import Captured
from .loop_acts import Branch, CountedLoop, LoopCarry, NestedProgram, RerolledLoop, WhileLoop
from .program import (
    Act,
    CapturedProgram,
    EffectAct,
    FillAct,
    HostAct,
    LaunchAct,
    LibraryCallAct,
    Place,
    StridedMemory,
    ValueGuardAct,
)
from .pytree import FlatTree, LayoutTree, StaticArgument, flatten, rebuild
from .replay import Scalars
from .session import Capture, describe_leaf

Json: TypeAlias = Any  # numbers, texts, lists, and dicts of them
Range: TypeAlias = tuple[int, int]  # bytes that may be touched, from where a slot begins

__all__ = ["load_function", "save_function"]

FORMAT = b"dovetail: a captured function, "
MAGIC = FORMAT + b"4\n"
DIGEST_BYTES = 32  # bytes
NUMBER_MAX = 1 << 62  # of sizes, offsets and strides
INVALID_FILE_ERRORS = (  # the errors that an edited file may cause
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    AssertionError,
    CaptureError,
    UnboundedIndexError,
)
FORMULAS = {  # of numbers that differ from call to call
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "pos", "abs")
} | {"float64": np.float64}


# --- functions ------------------------------------------------------------------------------------


def _digest(data: bytes) -> bytes:
    """Return the SHA-256 digest of some bytes."""
    import hashlib  # 5 ms, which `import dovetail` need not pay

    return hashlib.sha256(data).digest()


def save_function(f: Captured[..., object], path: str | os.PathLike[str]) -> None:
    """Write the captures that calls would replay now to a file: kernels as text, closure by value.

    Tensors of the closure are saved with the values they have now; names that lead to them are not.
    docs/jit.md says what a file does not keep.

    - `f`: a function of `dt.jit` that was called; each kind of arguments is saved for which a call
      would replay it now, with this closure and in this context (`dt.no_grad`,
      `dt.vendor_products`, modes of networks).
    - `path`: the name of the file.

    Raises: CaptureError for a function that was not captured, or does what a file cannot say
    (gradients, containers of other kinds than lists, tuples and dicts); OSError.
    See also: `load_function`, `jit`, `onnx.export`.

    >>> import dovetail as dt, os, tempfile
    >>> f = dt.jit(lambda x: x * 2 + 1)
    >>> y = f(dt.ones(2))
    >>> path = os.path.join(tempfile.mkdtemp(), "f")
    >>> dt.save_function(f, path)
    >>> dt.load_function(path)(dt.zeros(2)).tolist()
    [1.0, 1.0]
    """
    name = "save_function"
    where = Path(file_name(name, path))
    if not isinstance(f, Captured):
        raise CaptureError(f"{name}: expected a function of dt.jit, got {type(f).__name__}")
    if not f.list_captures():
        raise CaptureError(
            f"{name}: {f.__name__} has not been captured; call it first with arguments of each "
            "kind to save"
        )
    writer = FunctionWriter()
    saved = [_write_capture(writer, c) for c in f.captures_for_context()]
    if not saved:
        raise CaptureError(
            f"{name}: the closure of {f.__name__} or the context (dt.no_grad, dt.vendor_products, "
            "default device and dtype, net.train) has changed since the capture; call it again"
        )
    content = {
        "name": f.__name__,
        "vendor_products": uses_vendor_products(),
        "captures": saved,
        "kernels": [*writer.kernels],
        "blobs": [len(b) for b in writer.blobs],
    }
    blobs = b"".join(writer.blobs)
    try:  # what cannot be loaded is not written
        LoadedFunction(content, memoryview(blobs), None)
    except (ValueError, UnboundedIndexError) as error:
        raise CaptureError(
            f"{name}: {f.__name__} computes memory positions from data, which a file cannot be "
            f"checked for ({error}); do that part outside of the function"
        ) from None
    text = json.dumps(content).encode()
    payload = len(text).to_bytes(8, "little") + text + blobs
    where.write_bytes(MAGIC + _digest(payload) + payload)


def load_function(
    path: str | os.PathLike[str], *, device: Device | str | None = None
) -> LoadedFunction:
    """Return the captured function that `save_function` wrote to a file.

    The function takes the kinds of arguments that it was captured for, which share tensors of their
    own in place of the closure's. It has no gradients, and is no part of captured functions, loops
    or `dt.vmap`.

    - `path`: the name of the file.
    - `device`: the device on which it is to run; None is where it ran.

    Raises: CaptureError for another file, for one that is cut short or changed, and for kernels
    that are not known to stay within their memory; DeviceError; OSError.

    >>> import dovetail as dt
    >>> try:
    ...     dt.load_function(__file__ if "__file__" in globals() else dt.__file__)
    ... except dt.CaptureError:
    ...     print("no such file")
    no such file
    """
    name = "load_function"
    chosen = None if device is None else usable(device, name)
    data = Path(file_name(name, path)).read_bytes()
    begin = len(MAGIC) + DIGEST_BYTES
    if not data.startswith(FORMAT):
        raise CaptureError(f"{name}: {path} was not written by dt.save_function")
    if not data.startswith(MAGIC):
        raise CaptureError(
            f"{name}: {path} was written by another version of dt.save_function; save it again"
        )
    if len(data) < begin + 8 or _digest(data[begin:]) != data[len(MAGIC) : begin]:
        raise CaptureError(
            f"{name}: {path} was truncated or changed after dt.save_function wrote it; "
            "save it again"
        )
    try:
        size = int.from_bytes(data[begin : begin + 8], "little")
        content = json.loads(data[begin + 8 : begin + 8 + size])
        blobs = memoryview(data)[begin + 8 + size :]
        return LoadedFunction(content, blobs, chosen)
    except INVALID_FILE_ERRORS as error:
        text = str(error).partition("\n")[0]
        kind = "" if isinstance(error, DovetailError) else f"{type(error).__name__}: "
        raise CaptureError(f"{name}: {path} has invalid content: {kind}{text}") from error


class LoadedFunction:
    """A captured function from a file; see `load_function`."""

    def __init__(self, content: Json, blobs: memoryview, device: Device | None) -> None:
        self.__name__, r = str(content["name"]), FunctionReader(content, blobs)
        self._vendor_products, self._captures = content["vendor_products"], []
        for x in content["captures"]:
            r.device = usable(str(x["device"])) if device is None else device
            self._captures.append(_read_capture(r, self.__name__, x))

    def __repr__(self) -> str:
        return f"<captured function {self.__name__}, from a file>"

    def __call__(self, *args: object, **options: object) -> Any:
        if tracer_api.current() is not None:
            raise CaptureError(
                f"{self.__name__}, from a file: cannot be called in a captured function, a loop or "
                "dt.vmap; call it outside"
            )
        if self._vendor_products and not uses_vendor_products():
            raise CaptureError(
                f"{self.__name__}, from a file: must be captured under "
                "dt.vendor_products(False) to be "
                "called there; capture and save it again there"
            )
        args = tuple([float(a) if isinstance(a, (float, np.floating)) else a for a in args])
        result = CACHE_MISS if options else self._run(args, None)
        if result is CACHE_MISS:
            result = self._run(*flatten((args, options)))
        if result is not CACHE_MISS:
            return result
        kinds = "; or ".join(f"({shown})" for shown, _ in self._captures)
        raise CaptureError(
            f"{self.__name__}, from a file: the arguments must be of a captured kind, {kinds}, and "
            "must not require a gradient; capture and save it for other kinds, too"
        )

    def _run(self, leaves: Sequence[object], tree: object) -> Any:
        """Replay the first capture that matches; return its result, or CACHE_MISS."""
        settings = current()
        for _, executable in self._captures:
            result = executable.run(leaves, tree, settings)
            if result is not CACHE_MISS:
                return result
        return CACHE_MISS


# --- values as JSON -------------------------------------------------------------------------------


class FunctionWriter:
    """Kernels, each once, and runs of bytes: JSON has their numbers."""

    def __init__(self) -> None:
        self.kernels: dict[str, int] = {}
        self.blobs: list[bytes] = []
        self.state: dict[Storage, int] = {}  # the blobs of memory that captures share

    def blob(self, values: bytes) -> int:
        """Append a run of bytes to `blobs` and return its number."""
        self.blobs.append(values)
        return len(self.blobs) - 1

    def memory(self, s: Storage) -> int:
        """Append a storage's current content as a new blob; return the blob's number."""
        values = bytearray(s.nbytes)
        if values:
            backend, stream = open_device(s.device).backend, current_handle(s.device)
            backend.copy_out(memoryview(values), s.ptr.handle, s.ptr.offset, stream)
        return self.blob(bytes(values))


class FunctionReader:
    """The state of reading a file: objects by their numbers, and the device of the programs."""

    device: Device
    environment: Environment
    arguments: dict[int, ReachableTensor]  # by the numbers of leaves

    def __init__(self, content: Json, blobs: memoryview) -> None:
        self.kernels = [parse_kernel(str(text)) for text in content["kernels"]]
        for kernel in self.kernels:
            verify(kernel)
        ends = [*accumulate([_natural(n) for n in content["blobs"]], initial=0)]
        if ends[-1] != len(blobs):
            raise ValueError(f"expected {ends[-1]} bytes, got {len(blobs)}")
        self.blobs = [bytes(blobs[i:j]) for i, j in pairwise(ends)]
        self.state: dict[tuple[Device, int], Storage] = {}  # memory that captures share

    def memory(self, blob: Json) -> Storage:
        """Copy blob number `blob` to new memory; return it. Raises: ValueError if there is none."""
        values, stream = _item(self.blobs, blob), current_handle(self.device)
        opened = open_device(self.device)
        ptr = opened.allocator.allocate(len(values), stream)
        if values:
            opened.backend.copy_in(ptr.handle, ptr.offset, memoryview(values), stream)
        return storage_at(ptr, len(values), self.device)


def encode(w: FunctionWriter, x: Any) -> Json:
    """Return a value as JSON; add its kernels and bytes to the writer.

    A tuple, also a named one, is a list of its items.
    Raises: CaptureError for what a file cannot hold.
    """
    if type(x) in SIMPLE:
        return x
    for kind, writer in WRITERS.items():
        if isinstance(x, kind):
            return writer(w, x)
    return [encode(w, part) for part in x]


def decode(r: FunctionReader, hint: Any, x: Json) -> Any:
    """Convert JSON to a value of type `hint`; raise for JSON of another form.

    `hint`: an annotation. The error is a ValueError, or what Python raises.
    """
    if hint in READERS:
        return READERS[hint](r, x)
    members, origin = get_args(hint), get_origin(hint)
    if origin in (Union, UnionType):
        own = [m for m in members if m is type(x)] or [m for m in members if m not in SIMPLE]
        return decode(r, own[0], x)
    if origin is tuple:
        hints = members[:1] * len(x) if members[-1] is ... else members
        return tuple([decode(r, h, part) for h, part in zip(hints, x, strict=True)])
    fields = _fields(hint)
    values = {f: decode(r, fields[f], part) for f, part in zip(fields, x, strict=True)}
    if values.get("variable") is not None:
        _item(r.environment.values, values["variable"])
    return hint(**values)


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """Return the annotations of a class's fields: of a named tuple, or of `__init__`."""
    hints = get_type_hints(kind if issubclass(kind, tuple) else kind.__init__)
    return {name: hint for name, hint in hints.items() if name != "return"}


def _item(items: Sequence[Any], n: Json) -> Any:
    """Return `items[n]`. Raises: ValueError unless `n` is an int from 0 to below the length."""
    if type(n) is not int or not 0 <= n < len(items):
        raise ValueError(f"{n!r} is out of range")
    return items[n]


def _natural(n: Json) -> int:
    """Return an int from 0 to below NUMBER_MAX. Raises: ValueError for others, also a bool."""
    return _item(range(NUMBER_MAX), n)  # type: ignore[no-any-return]  # of a range


def _require_type(x: Json, *kinds: type) -> Any:
    """Return `x` itself. Raises: ValueError for another type, or an int of NUMBER_MAX or more."""
    if type(x) not in kinds or (kinds == (int,) and abs(x) >= NUMBER_MAX):
        raise ValueError(f"{x!r} is not a {kinds[0].__name__} or is too large")
    return x


def _require_simple(x: Any) -> Any:
    """Return a bool, number, string or None itself. Raises: ValueError for others."""
    if type(x) in SIMPLE:
        return x
    raise ValueError(f"a {type(x).__name__} is no number, string or None")


def _require_savable(x: Any) -> Any:
    """Return a bool, number, string or None itself. Raises: CaptureError for others."""
    if type(x) in SIMPLE:
        return x
    raise CaptureError(
        "save_function: arguments and results must be tensors, numbers, strings, None, lists, "
        f"tuples or dicts with strings as keys, got {type(x).__name__}"
    )


def _write_step(w: FunctionWriter, bound: BoundKernel) -> Json:
    """Return a launch as JSON, with its kernel's number; add the kernel to the writer."""
    s, slots = bound.step, [slot for slot, _ in bound.step.buffers]
    checks = [(slots.index(slot), asked) for slot, _, asked in s.checks]
    kernel = w.kernels.setdefault(str(s.kernel), len(w.kernels))
    return encode(w, (kernel, s.ints, s.grid, s.nbytes, checks))


def _read_step(r: FunctionReader, x: Json) -> BoundKernel:
    """Decode a launch, compile its kernel and bind it on the device.

    Raises: ValueError for a grid or a number that does not fit.
    """
    number, ints, grid, nbytes, asked = decode(r, STEP, x)
    kernel = _item(r.kernels, number)
    values_by_name = dict(zip(kernel.ints, ints, strict=True))
    wanted = [values_by_name[e.name] if e.op == "param" else e.number for e in kernel.grid]
    if [*map(_natural, grid)] != wanted:
        raise ValueError(f"a launch does not fit its kernel {kernel.name}")
    buffers = tuple((i, 0) for i in range(len(kernel.buffers)))
    checks = tuple([(*_item(buffers, i), purpose) for i, purpose in asked])
    step = PlannedLaunch(kernel, buffers, (), ints, (), grid, (), nbytes, checks)
    opened = open_device(r.device)
    run = programs.bind_program(opened, programs.get_program(opened, kernel), ints, grid)
    return BoundKernel(step, 0, run)


def _write_draw(w: FunctionWriter, a: EffectAct) -> Json:
    """Return a draw of random numbers as JSON. Raises: CaptureError for other effects."""
    if isinstance(a.action, partial) and a.action.func == callbacks.reserve_random:
        return ["draw", a.action.args[0], a.variable]
    raise CaptureError(
        "save_function: a file can hold draws from the default random generator only, not other "
        "generators, seeds, or numbers of the host such as an optimizer's rate"
    )


def _read_draw(r: FunctionReader, x: Json) -> EffectAct:
    """Decode a draw from the default random generator. Raises: ValueError for an invalid number."""
    count, variable = x
    _item(r.environment.values[1:], variable)  # two numbers are made
    return EffectAct(partial(callbacks.reserve_random, _natural(count)), variable, 2)


def _write_act(w: FunctionWriter, act: Act) -> Json:
    """Return an act as JSON: its name, then its fields. Raises: CaptureError for others."""
    for name, (kind, _) in ACTS.items():
        if kind is type(act):
            return [name, *[encode(w, getattr(act, field)) for field in _fields(kind)]]
    if isinstance(act, ValueGuardAct):
        raise CaptureError(
            "save_function: the function reads values of tensors (`if x.sum() > 0`), so that its "
            "capture is for these values alone; choose with dt.where or dt.cond"
        )
    raise CaptureError(f"save_function: a file cannot hold the step {type(act).__name__}")


def _read_program(r: FunctionReader, x: Json) -> CapturedProgram:
    """Decode a program for the reader's device; `check_program` checks it later."""
    name, inputs, held, sizes, arena, acts = decode(r, PROGRAM, x)
    written_slots = {p.slot for act in acts for p in act.written}
    written = frozenset(slot for slot in written_slots if slot < inputs + len(held))
    return CapturedProgram(open_device(r.device), inputs, held, sizes, arena, acts, written, name)


def _tensor(storage: Storage, s: Spec, strides: Shape, begin: int) -> Tensor:
    """Create a tensor from element `begin` on, bounds unchecked. Raises: ValueError for strides."""
    if len(strides) != len(s.shape):
        raise ValueError(f"strides {strides} of shape {s.shape}")
    return create_tensor(leaf(storage, s, strides, begin))


def _write_reachable(w: FunctionWriter, c: ReachableTensor) -> Json:
    """Return an argument's number, or a closure tensor with values, as JSON.

    Raises: CaptureError if the closure has no such tensor any more.
    """
    if c.argument != NO_INDEX:
        return [c.argument]
    tensor = None if c.path is None else c.path.read()
    if not isinstance(tensor, Tensor) or tensor._expr.spec is not c.expr.spec:
        raise CaptureError(
            "save_function: a tensor of the closure has changed; call the function again"
        )
    e = evaluate_leaf(tensor)
    if e.storage not in w.state:
        w.state[e.storage] = w.memory(e.storage)
    return encode(w, (w.state[e.storage], e.offset, e.spec, e.strides))


def _read_reachable(r: FunctionReader, x: Json) -> ReachableTensor:
    """Decode a tensor: an argument, or one of the closure that shares its blob's memory.

    Raises: ValueError if it lies outside of its memory.
    """
    if len(x) == 1:
        return r.arguments[x[0]]
    blob, begin, s, strides = decode(r, tuple[int, int, Spec, Shape], x)
    if (r.device, blob) not in r.state:
        r.state[r.device, blob] = r.memory(blob)
    tensor = _tensor(r.state[r.device, blob], s, strides, _natural(begin))
    low, high = element_span(StridedView(s.shape, strides, begin))
    if low < 0 or high * s.dtype.itemsize > len(r.blobs[blob]):
        raise ValueError(f"a tensor of the closure, {s!r}, lies outside of its memory")
    return ReachableTensor(tensor, path=ClosurePath(tensor))


STEP = tuple[int, Shape, Shape, int, tuple[tuple[int, IndexPurpose], ...]]
PROGRAM = tuple[str, int, tuple[Storage, ...], Shape, int, tuple[Act, ...]]
SIMPLE = (bool, int, float, str, NoneType)  # which JSON has itself
READERS: dict[Any, Callable[[FunctionReader, Json], Any]] = {
    **{kind: partial(lambda kind, r, x: _require_type(x, kind), kind) for kind in SIMPLE},
    float | int | bool: lambda r, x: _require_type(x, float, int, bool),
    Any: lambda r, x: _require_simple(x),
    bytes: lambda r, x: _item(r.blobs, x),
    DType: lambda r, x: dtype(str(x)),
    Spec: lambda r, x: spec(tuple(map(_natural, x[0])), dtype(str(x[1])), r.device),
    Op: lambda r, x: TABLE[x],
    HostRoutine: lambda r, x: host_routines.ROUTINES[x],
    ReachableTensor: _read_reachable,
    Storage: FunctionReader.memory,
    BoundKernel: _read_step,
    EffectAct: _read_draw,
    Act: lambda r, x: decode(r, ACTS[x[0]][0], x[1:]),
    CapturedProgram: _read_program,
}
WRITERS: dict[Any, Callable[[FunctionWriter, Any], Json]] = {
    bytes: FunctionWriter.blob,
    (DType, Op, HostRoutine): lambda w, x: x.name,
    Spec: lambda w, x: [[*x.shape], x.dtype.name],
    ReachableTensor: _write_reachable,
    Storage: FunctionWriter.memory,
    BoundKernel: _write_step,
    EffectAct: _write_draw,
    Act: _write_act,
    CapturedProgram: lambda w, p: encode(
        w, (p.name, p.inputs, p.constants, p.sizes, p.arena, p.acts)
    ),
}


# --- checks ---------------------------------------------------------------------------------------


class MemoryBounds:
    """The slots of a program: which bytes of each its acts may touch."""

    def __init__(self, p: CapturedProgram, inputs: Sequence[Range]) -> None:
        if len(inputs) != p.inputs:
            raise ValueError(f"{p.inputs} inputs where there are {len(inputs)}")
        sizes = [*[s.nbytes for s in p.constants], *p.sizes, *([p.arena] if p.arena else [])]
        self.slots = [*inputs, *[(0, _natural(n)) for n in sizes]]
        self.opened = p.opened

    def check(self, p: Place, low: int, high: int, unit: int = 1) -> None:
        """Raise ValueError if bytes `low` to `high` of a place are outside, or it is misaligned.

        `unit`: bytes of an element; a place is a multiple of that.
        """
        least, most = _item(self.slots, p.slot)
        begin, end = p.offset + low, p.offset + high
        if p.offset % unit or (end > begin and not least <= begin <= end <= most):
            raise ValueError(f"bytes {begin}..{end} of {least}..{most}, of elements of {unit}")

    def check_strided(self, x: StridedMemory) -> None:
        """Raise ValueError if elements of an operand are out of bounds or misaligned."""
        shape, size = tuple(map(_natural, x.shape)), x.dtype.itemsize
        if len(x.strides) != len(shape):
            raise ValueError(f"strides {x.strides} of shape {shape}")
        low, high = element_span(StridedView(shape, x.strides, 0))
        self.check(x.place, low * size, high * size, size)

    def check_part(
        self, part: NestedProgram, inputs: Sequence[int], results: Sequence[int]
    ) -> None:
        """Check a nested program, given the bytes of inputs and results.

        Raises: ValueError if it does not fit, UnboundedIndexError as `check_program`.
        """
        p = part.program
        if p.sizes != tuple(results) or (part.arena is None) != (not p.arena):
            raise ValueError(f"results of {p.sizes} bytes where there must be {[*results]}")
        if part.arena is not None:
            self.check(part.arena, 0, p.arena)
        ranges = [(0, _natural(n)) for n in inputs]
        check_program(p, [*ranges, *[self.range_at(place, 0) for place in part.outer_places]])

    def range_at(self, p: Place, distance: int) -> Range:
        """Return (low, high): bytes that acts may touch from a place, moved by 0 to `distance`."""
        least, most = _item(self.slots, p.slot)
        return least - p.offset - min(distance, 0), most - p.offset - max(distance, 0)

    def check_carried(self, carried: Sequence[LoopCarry]) -> tuple[list[int], list[int]]:
        """Check a loop's carry; return the bytes of each value, and of those with two buffers.

        Raises: as `check_program`.
        """
        sizes, new_sizes = [], []
        for c in carried:
            (n,) = c.copy.sizes
            if c.copy.constants or c.copy.arena:  # it is given two slots and no more
                raise ValueError("a copy has memory of its own")
            check_program(c.copy, [(0, n)])
            for p in (c.initial, c.buffer, c.second_buffer or c.buffer):
                self.check(p, 0, n)
            sizes.append(n)
            new_sizes += [] if c.second_buffer is None else [n]
        return sizes, new_sizes


def check_program(p: CapturedProgram, inputs: Sequence[Range]) -> None:
    """Raise ValueError if an act touches memory outside of its program, or beyond `inputs`.

    UnboundedIndexError is raised for a kernel whose indices are not known.
    """
    memory = MemoryBounds(p, inputs)
    for act in p.acts:
        [check] = [check for kind, check in ACTS.values() if kind is type(act)]
        check(memory, act)


def _check_launch(m: MemoryBounds, a: LaunchAct) -> None:
    """Check a launch's numbers, and the bytes it reaches.

    Raises: ValueError if they do not fit, UnboundedIndexError if an index has no known bounds.
    """
    step, kernel = a.plan_step, a.plan_step.kernel
    cells = {i for i, _, _ in step.checks}
    if len(a.numbers) != len(kernel.scalars) or not len(cells) == len(step.checks) == len(a.lines):
        raise ValueError(f"a launch does not fit its kernel {kernel.name}")
    _check_numbers(a, a.numbers)
    reach_by_buffer = index_intervals(kernel, step.ints, step.grid)
    for i, (buffer, place) in enumerate(zip(kernel.buffers, a.buffers, strict=True)):
        low, high = reach_by_buffer.get(buffer.name, (0, -1))
        size = buffer.dtype.itemsize
        if i not in cells:
            m.check(place, low * size, (high + 1) * size, size)
        elif low < 0 or (high + 1) * size > CELL_BYTES:
            raise ValueError(f"a launch of {kernel.name} writes beyond a cell for a bad index")


def _check_numbers(a: LaunchAct, numbers: Scalars) -> None:
    """Raise ValueError if a launch's integers do not fit the dtypes of its scalars."""
    kernel = a.plan_step.kernel
    for (x, _), (name, kind) in zip(numbers, kernel.scalars, strict=True):
        if kind.kind in "iub" and not (isinstance(x, int) and kind.min <= x <= kind.max):
            raise ValueError(f"the number {name} of {kernel.name} is {x}, of {kind.name}")


def _check_call(m: MemoryBounds, a: LibraryCallAct) -> None:
    """Raise ValueError unless a library call's memory, dtypes, shapes and device fit."""
    for x in (*a.inputs, a.output):
        m.check_strided(x)
    name, shapes = (a.op.name, a.dtype), [x.shape for x in a.inputs]
    if name not in m.opened.library_calls:
        raise ValueError(f"{m.opened.device} has no routine for {a.op.name}")
    accepted = m.opened.ordered_calls.get(name, (a.dtype,))
    result = int64 if a.op is ARGSORT else a.dtype
    same = a.output.dtype is result and all(x.dtype in accepted for x in a.inputs)
    if not same or not _fits(a.op, shapes, a.output.shape):
        raise ValueError(f"a routine for {a.op.name} does not fit its operands, {shapes}")


def _fits(op: Op, inputs: Sequence[Shape], output: Shape) -> bool:
    """Return True for a matmul or sort whose shapes a vendor's routine may be given."""
    if op is MATMUL and len(inputs) in (2, 4):
        a, b, *scales = inputs
        if scales not in ([], [a, b]):
            return False
        return a[-1] == b[-2] and output == (*a[:-1], b[-1]) and a[:-2] == b[:-2]
    return op in (SORT, ARGSORT) and [*inputs] == [output] and output != ()


def _check_host_step(m: MemoryBounds, a: HostAct) -> None:
    """Raise ValueError unless a host step's operands are in bounds, dense and fit the routine."""
    for x in (*a.operands, *a.results):
        m.check_strided(x)
        if x.strides != contiguous(x.shape).strides:
            raise ValueError(f"an operand of {a.name} has gaps")
    wanted = a.call.results([(x.shape, x.dtype) for x in a.operands])
    if wanted != [(x.shape, x.dtype) for x in a.results]:
        raise ValueError(f"{a.name} does not fit its operands")


def _check_repeat(m: MemoryBounds, a: CountedLoop) -> None:
    """Check a counted loop: bounds, rows, carry, body.

    Raises: ValueError if they do not fit, UnboundedIndexError as `check_program`.
    """
    rounds, (low, high) = 0, a.bounds
    if isinstance(low, int) and isinstance(high, int):
        rounds = max(high - low, 0)
    elif a.inputs or a.results:
        raise ValueError("a loop has parts for each of an unknown number of rounds")
    for bound in a.bounds:
        if isinstance(bound, Place):
            m.check(bound, 0, 8)
    for x in (*a.inputs, *a.results):
        m.check(x.place, 0, _natural(x.row_bytes) * rounds)
    sizes, new_sizes = m.check_carried(a.carried)
    inputs, results = [x.row_bytes for x in a.inputs], [x.row_bytes for x in a.results]
    m.check_part(a.body, [*sizes, *inputs], [*new_sizes, *results])


def _check_rerolled(m: MemoryBounds, a: RerolledLoop) -> None:
    """Check a loop's rounds, numbers and memory; its body must own no memory.

    Raises: ValueError if they do not fit, UnboundedIndexError as `check_program`.
    """
    rounds = range(a.count if a.table is None else len(a.table.rows))
    if len(rounds) != a.count or not rounds:
        raise ValueError(f"{len(rounds)} rows of numbers for {a.count} rounds")
    if a.body.sizes or a.body.constants or a.body.arena:  # it is given inputs alone
        raise ValueError("the body of a Python loop has memory of its own")
    if a.table is not None:
        for act in [act for act in a.body.acts if isinstance(act, LaunchAct)]:
            for k in rounds:
                _check_numbers(act, a.table.replace(act.numbers, k))
    check_program(a.body, [m.range_at(x.place, x.row_bytes * (a.count - 1)) for x in a.inputs])


def _check_while(m: MemoryBounds, a: WhileLoop) -> None:
    """Check a loop's condition, body and carry.

    Raises: ValueError if they do not fit, UnboundedIndexError as `check_program`.
    """
    m.check(a.truth, 0, 1)
    sizes, new_sizes = m.check_carried(a.carried)
    m.check_part(a.condition, sizes, [1])
    m.check_part(a.body, sizes, new_sizes)


def _check_branch(m: MemoryBounds, a: Branch) -> None:
    """Check a branch's bool, both programs and the results.

    Raises: ValueError if they do not fit, UnboundedIndexError as `check_program`.
    """
    m.check(a.truth, 0, 1)
    sizes = a.branches[0].program.sizes
    for part in a.branches:
        m.check_part(part, [], sizes)
    for p, n in zip(a.results, sizes, strict=True):
        m.check(p, 0, n)


ACTS: dict[str, tuple[Any, Callable[[MemoryBounds, Any], None]]] = {
    "launch": (LaunchAct, _check_launch),
    "call": (LibraryCallAct, _check_call),
    "host": (HostAct, _check_host_step),
    "fill": (FillAct, lambda m, a: m.check(a.place, 0, len(a.values))),
    "draw": (EffectAct, lambda m, a: None),
    "repeat": (CountedLoop, _check_repeat),
    "rerolled": (RerolledLoop, _check_rerolled),
    "while": (WhileLoop, _check_while),
    "branch": (Branch, _check_branch),
}


# --- captures -------------------------------------------------------------------------------------


def _write_value(w: FunctionWriter, x: Any) -> Json:
    """Return arguments or results as JSON, tensors without values.

    Raises: CaptureError for other objects than tensors, numbers, strings, None and containers.
    """
    if type(x) in (list, tuple):
        return [type(x).__name__, *[_write_value(w, part) for part in x]]
    if type(x) is dict and all(type(k) is str for k in x):
        return ["dict", *[[k, _write_value(w, part)] for k, part in x.items()]]
    if is_strided(x):
        return ["tensor", encode(w, x._expr.spec), [*x._expr.strides]]
    if type(x) is ResultIndex:
        return ["made", int(x)]
    if type(x) is TracedFloat:
        return ["variable", x.variable]
    return (
        ["static", encode(w, _require_savable(x.value))]
        if type(x) is StaticArgument
        else _require_savable(x)
    )


def _read_value(r: FunctionReader, x: Json) -> Any:
    """Decode an argument or result of a trace; its tensors have no memory.

    Raises: ValueError for a wrong value, or what Python raises for JSON of another form.
    """
    if type(x) is not list:
        return _require_simple(x)
    kind, *items = x
    if kind == "dict":
        return {str(k): _read_value(r, part) for k, part in items}
    if kind == "tensor":
        s, strides = decode(r, tuple[Spec, Shape], items)
        return _tensor(storage_at(DataPtr(None, 0, 0, r.device), 0, r.device), s, strides, 0)
    if kind in ("list", "tuple"):
        return {"list": list, "tuple": tuple}[kind]([_read_value(r, part) for part in items])
    [part] = items
    if kind == "variable":
        _item(r.environment.values, part)
        return TracedFloat(r.environment, 0.0, part)
    return {"made": ResultIndex, "static": StaticArgument}[kind](_require_simple(part))


TRACE: dict[str, Any] = {  # of a `FunctionTrace`, what a file has as it is
    "floats": tuple[tuple[int, int], ...],
    "inputs": tuple[ReachableTensor, ...],
    "program": CapturedProgram,
    "results": tuple[Result, ...],
}


def _write_capture(w: FunctionWriter, capture: Capture) -> Json:
    """Return a capture as JSON. Raises: CaptureError for gradients and for other layouts."""
    t, e = capture.trace, capture.trace.environment
    if t.saved is not None or t.gradients or any(c.gradient_of is not None for c in t.inputs):
        raise CaptureError(
            "save_function: a file cannot hold a function with gradients; capture and save it "
            "under dt.no_grad()"
        )
    if isinstance(t.tree, LayoutTree) or isinstance(t.returned.tree, LayoutTree):
        raise CaptureError(
            "save_function: arguments and results must be strided tensors; save a function of the "
            "parts"
        )
    arguments = t.leaves if t.tree is None else rebuild(FlatTree((), t.tree), t.leaves)
    is_argument = [
        r.reachable_tensor is not None and r.reachable_tensor.argument != NO_INDEX
        for r in t.results
    ]
    pairs = zip(t.results, is_argument, strict=True)
    portable = t._replace(
        results=[r if known else r._replace(reachable_tensor=None) for r, known in pairs]
    )
    return {
        "device": str(t.program.opened.device),
        "variables": e.values,
        "formulas": encode(w, [(v, formula.__name__, of) for v, formula, of in e.formulas]),
        "contained": t.tree is not None,
        "arguments": _write_value(w, arguments),
        **{field: encode(w, getattr(portable, field)) for field in TRACE},
        "returned": _write_value(w, rebuild(t.returned, t.returned.leaves)),
        "overlaps": _overlaps(capture.executable),
    }


def _overlaps(executable: Executable) -> list[tuple[int, int, int]]:
    """Return overlaps of arguments as (i, j, bytes). Raises: CaptureError for one with the closure.

    The bytes are those from argument `j` to argument `i` in their memory.
    """
    slots = executable.inputs.slots
    pairs = [(slots[o.slot], slots[o.base], o.distance) for o in executable.inputs.overlaps]
    if any((a.argument == NO_INDEX) != (b.argument == NO_INDEX) for a, b, _ in pairs):
        raise CaptureError(
            "save_function: an argument must not share memory with a tensor of the closure; call "
            "it with a copy"
        )
    return [(a.argument, b.argument, n) for a, b, n in pairs if a.argument != NO_INDEX]


def _read_capture(r: FunctionReader, name: str, x: Json) -> tuple[str, Executable]:
    """Decode and check a capture; return (text of its arguments, executable).

    Raises: ValueError, UnboundedIndexError if a check fails, or what Python raises for JSON of
    another form.
    """
    r.environment = environment = Environment()
    environment.values = [*decode(r, tuple[float | int | bool, ...], x["variables"])]
    for v, formula, of in decode(
        r, tuple[tuple[int, str, tuple[TracedNumber, ...]], ...], x["formulas"]
    ):
        _item(environment.values, v)
        environment.formulas.append((v, FORMULAS[formula], of))
    value = _read_value(r, x["arguments"])
    leaves, tree = flatten(value) if x["contained"] else FlatTree([*value], None)
    r.arguments = {i: ReachableTensor(t, i) for i, t in enumerate(leaves) if is_strided(t)}
    fields = {field: decode(r, hint, x[field]) for field, hint in TRACE.items()}
    inputs: tuple[ReachableTensor, ...] = fields["inputs"]
    for k, c in enumerate(inputs):
        c.input = k
    trace = FunctionTrace(
        name=name,
        leaves=leaves,
        tree=tree,
        settings=None,
        environment=environment,
        gradients=[],
        known=[*r.arguments.values(), *[c for c in inputs if c.path is not None]],
        returned=flatten(_read_value(r, x["returned"])),
        **fields,
    )
    overlaps = decode(r, tuple[tuple[int, int, int], ...], x["overlaps"])
    _check_trace(trace, [_byte_range(c, r.arguments, overlaps) for c in inputs])
    executable, _ = bind_trace(trace)
    slots = {w.argument: n for n, w in enumerate(executable.inputs.slots) if w.argument != NO_INDEX}
    for i, j, distance in overlaps:
        executable.inputs.overlaps.append(SlotOverlap(slots[i], slots[j], distance))
    return ", ".join(map(describe_leaf, leaves)), executable


def _check_trace(t: FunctionTrace, inputs: Sequence[Range]) -> None:
    """Check a trace's program, results, returned values and floats.

    Raises: ValueError if they do not fit, UnboundedIndexError as `check_program`.
    """
    check_program(t.program, inputs)
    for r in t.results:
        if r.reachable_tensor is None:
            x = StridedMemory(r.place, r.spec.shape, r.strides, r.spec.dtype)
            MemoryBounds(t.program, inputs).check_strided(x)
    for value in t.returned.leaves:
        if type(value) is ResultIndex:
            _item(t.results, int(value))
        elif type(value) is not TracedFloat:
            _require_simple(value)
    for i, variable in t.floats:
        _item(t.leaves, i)
        _item(t.environment.values, variable)


def _byte_range(
    c: ReachableTensor,
    arguments: dict[int, ReachableTensor],
    overlaps: Sequence[tuple[int, int, int]],
) -> Range:
    """Return (low, high): the bytes that may be touched, counted from where a tensor begins.

    They include those of arguments that lie beside it in the same memory, as each call checks.
    """
    e, size = c.expr, c.expr.spec.dtype.itemsize
    if c.path is not None:
        return -c.begin, storage_of(e).nbytes - c.begin
    low, high = element_span(StridedView(e.spec.shape, e.strides, 0))
    low, high = low * size, high * size
    for i, base, distance in overlaps:
        if base == c.argument:
            least, most = _byte_range(arguments[i], {}, ())
            low, high = min(low, distance + least), max(high, distance + most)
    return low, high
