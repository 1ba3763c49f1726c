"""Captured functions in files: `save_function`, `load_function`.

A file is plain data: a line that says what it is, a digest of the rest, a text of JSON, and bytes
that this refers to. Kernels are text in the loop language. Nothing in a file is executed but those,
when the verifier has accepted them and it is known that they stay within the memory they are given.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ..arguments import path as file_name
from ..device import Device, usable
from ..dtypes import dtype
from ..errors import CaptureError, DovetailError
from ..graph.expr import leaf, spec, storage_of
from ..layout import StridedView, span
from ..loops.bounds import Unbounded
from ..memory import DataPtr
from ..memory.storage import Storage, storage_at
from ..settings import current
from ..tensor.host import evaluated
from ..tensor.tensor import Tensor, make
from .bindings import KnownTensor, Result, ResultNumber, Trace, bind
from .closures import ClosurePath
from .executable import MISS, NONE, Executable, Overlap
from .jit import Captured
from .program import Place, Program
from .pytree import Flat, Grown, Static, flattened
from .serialize import Reader, Writer, natural, whole, within
from .session import Capture, shown_leaf

Json: TypeAlias = Any  # what files hold; and arguments of any kind

__all__ = ["load_function", "save_function"]

MAGIC = b"dovetail: a captured function, 2\n"
DIGEST = 32  # bytes


def _digest(data: bytes) -> bytes:
    import hashlib  # 5 ms, which `import dovetail` need not pay

    return hashlib.sha256(data).digest()


def save_function(f: Captured[..., object], path: str | os.PathLike[str]) -> None:
    """Writes what a captured function does to a file, with its kernels; returns nothing.

    `f`: what `dt.jit` gave, and was called; each kind of arguments that it was captured for is
    saved. `path`: the file. Tensors that are no arguments are saved with the values they have now.
    Raises: CaptureError for a function that was not captured, or does what a file cannot say
    (gradients, containers of other kinds than lists, tuples and dicts); OSError.

    >>> import dovetail as dt, os, tempfile
    >>> f = dt.jit(lambda x: x * 2 + 1)
    >>> y = f(dt.ones(2, device="reference"))
    >>> path = os.path.join(tempfile.mkdtemp(), "f")
    >>> dt.save_function(f, path)
    >>> dt.load_function(path)(dt.zeros(2, device="reference")).tolist()
    [1.0, 1.0]
    """
    name = "save_function"
    where = Path(file_name(name, path))
    if not isinstance(f, Captured):
        raise CaptureError(f"{name}: needs what dt.jit gave, not a {type(f).__name__}")
    captures = f.captured()
    if not captures:
        raise CaptureError(
            f"{name}: {f.__name__} has not been captured; call it first, with what it is to be for"
        )
    writer, state = Writer(), list[Storage]()
    saved = [_saved(c, writer, state) for c in captures if _is_current(c)]
    if not saved:
        raise CaptureError(
            f"{name}: what {f.__name__} reads of its closure is no longer as it was captured; "
            "call it again"
        )
    memory = [writer.memory(storage) for storage in state]
    content = {"name": f.__name__, "captures": saved, "state": memory, **writer.content()}
    try:  # what cannot be loaded is not written
        _calls(content, memoryview(b"".join(writer.blobs)), None)
    except (ValueError, Unbounded) as error:
        raise CaptureError(
            f"{name}: {f.__name__} goes to places that depend on data, so that nobody could check "
            f"a file with it ({error}); leave what needs it out of the function"
        ) from None
    text = json.dumps(content).encode()
    rest = len(text).to_bytes(8, "little") + text + b"".join(writer.blobs)
    where.write_bytes(MAGIC + _digest(rest) + rest)


def load_function(
    path: str | os.PathLike[str], *, device: Device | str | None = None
) -> Loaded:  # fmt: skip
    """The captured function that `save_function` wrote to a file.

    `path`: the file. `device`: where it is to run, else where it ran. It takes the kinds of
    arguments that it was captured for. It has no gradients.
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
    data = Path(file_name(name, path)).read_bytes()
    begin = len(MAGIC) + DIGEST
    if not data.startswith(MAGIC):
        raise CaptureError(f"{name}: {path} is no file that dt.save_function wrote")
    if len(data) < begin + 8 or _digest(data[begin:]) != data[len(MAGIC) : begin]:
        raise CaptureError(
            f"{name}: {path} has been cut short or changed since dt.save_function wrote it; "
            "save it again"
        )
    try:
        size = int.from_bytes(data[begin : begin + 8], "little")
        content = json.loads(data[begin + 8 : begin + 8 + size])
        blobs = memoryview(data)[begin + 8 + size :]
        return Loaded(str(content["name"]), _calls(content, blobs, device))
    except Unbounded as error:
        raise CaptureError(
            f"{name}: {path} has a kernel, {error}, of which nobody knows where it reads and writes"
        ) from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        if isinstance(error, DovetailError) and not isinstance(error, CaptureError):
            text = str(error).partition("\n")[0]
        else:
            text = f"{type(error).__name__}: {error}"
        raise CaptureError(f"{name}: {path} says what makes no sense: {text}") from error
    except AssertionError as error:  # an InternalError of the verifier's
        text = str(error).partition("\n")[0]
        raise CaptureError(f"{name}: {path} has a kernel that is none: {text}") from error


class Loaded:
    """A captured function from a file; see `load_function`."""

    def __init__(self, name: str, calls: list[tuple[str, Executable]]) -> None:
        self.__name__, self._calls = name, calls

    def __repr__(self) -> str:
        return f"<captured function {self.__name__}, from a file>"

    def __call__(self, *args: object, **options: object) -> Json:
        settings, tree = current(), None
        leaves: Sequence[object] = args
        for _, call in self._calls:
            result = MISS if options else call.run(leaves, None, settings)
            if result is not MISS:
                return result
        leaves, tree = flattened((args, options))
        for _, call in self._calls:
            result = call.run(leaves, tree, settings)
            if result is not MISS:
                return result
        kinds = "; or ".join(f"({given})" for given, _ in self._calls)
        raise CaptureError(
            f"{self.__name__}, from a file: takes arguments of the kinds that it was captured for, "
            f"{kinds}, of which none may require a gradient; save it for others, too"
        )


def _calls(
    content: Json, blobs: memoryview, device: Device | str | None
) -> list[tuple[str, Executable]]:
    state: dict[tuple[Device, int], Storage] = {}
    return [_loaded(c, content, blobs, device, state) for c in content["captures"]]


# --- one capture ----------------------------------------------------------------------------------


def _is_current(capture: Capture) -> bool:
    """Return True if the closure is as it was captured, so that no other capture contradicts."""
    return capture.executable.inputs.read_closure(capture.trace.leaves) is not None


def _saved(capture: Capture, writer: Writer, state: list[Storage]) -> dict[str, Json]:
    """Return a capture as plain data; `state`: the memory of tensors of the closure so far."""
    f = capture.trace
    if f.saved is not None or f.gradients or any(c.gradient_of is not None for c in f.inputs):
        raise CaptureError(
            "save_function: a function with gradients is in no file; save it under dt.no_grad()"
        )
    by_leaf = {c.argument: c for c in f.known if c.argument != NONE}
    return {
        "device": str(f.program.opened.device),
        "arguments": None if f.tree is None else _encoded(f.tree),
        "leaves": [_leaf(x, by_leaf.get(i)) for i, x in enumerate(f.leaves)],
        "inputs": [_input(c, state) for c in f.inputs],
        "beside": _beside(capture.executable),
        "program": writer.program(f.program),
        "environment": writer.environment(f.environment),
        "floats": f.floats,
        "made": [_made(m) for m in f.results],
        "result": _encoded(f.returned.tree),
        "values": [_value(x) for x in f.returned.leaves],
    }


def _encoded(tree: Json) -> Json:
    """Containers around numbers of leaves, as JSON has them."""
    if isinstance(tree, Grown):
        raise CaptureError(
            "save_function: a tensor that is not strided is in no file; save a function of its "
            "parts"
        )
    return _container(tree.unflatten(list(range(tree.num_leaves))))


def _container(x: object) -> Json:
    if x is None or type(x) is int:
        return x
    if type(x) in (list, tuple):
        return [type(x).__name__, [_container(a) for a in x]]  # type: ignore[attr-defined]  # it is one
    if type(x) is dict and all(type(k) is str for k in x):
        return ["dict", [[k, _container(v)] for k, v in x.items()]]
    raise CaptureError(
        f"save_function: a {type(x).__name__} is in no file; lists, tuples and dicts with strings "
        "as keys are"
    )


def _decoded(x: Json) -> Json:
    if x is None or type(x) is int:
        return x
    kind, parts = x
    if kind == "dict":
        return {str(k): _decoded(v) for k, v in parts}
    return {"list": list, "tuple": tuple}[kind](_decoded(a) for a in parts)


def _leaf(x: object, c: KnownTensor | None) -> Json:
    if c is not None:
        s = c.expr.spec
        return ["tensor", list(s.shape), s.dtype.name, list(c.expr.strides)]
    return ["static", _plain(x.value)] if isinstance(x, Static) else ["float"]


def _plain(x: object) -> Json:
    if x is None or type(x) in (bool, int, float, str):
        return x
    raise CaptureError(
        f"save_function: a {type(x).__name__} among arguments or results is in no file; tensors, "
        "numbers, strings and None are"
    )


def _input(c: KnownTensor, state: list[Storage]) -> Json:
    if c.argument != NONE:
        return ["argument", c.argument]
    tensor = None if c.path is None else c.path.read()
    if not isinstance(tensor, Tensor) or tensor._expr.spec is not c.expr.spec:
        raise CaptureError("save_function: a tensor of the closure has changed; call it again")
    e = evaluated(tensor)
    if e.storage not in state:
        state.append(e.storage)
    number = state.index(e.storage)
    return ["state", number, list(e.spec.shape), e.spec.dtype.name, list(e.strides), e.offset]


def _beside(executable: Executable) -> Json:
    """Return which arguments share memory: two numbers and the bytes between their beginnings."""
    slots = executable.inputs.slots
    pairs = [(slots[o.slot], slots[o.base], o.distance) for o in executable.inputs.overlaps]
    if any((w.argument < 0) != (base.argument < 0) for w, base, _ in pairs):
        raise CaptureError(
            "save_function: an argument shares memory with a tensor of the closure, which no "
            "argument of a loaded function does; call it with a copy"
        )
    return [[w.argument, base.argument, apart] for w, base, apart in pairs if w.argument >= 0]


def _made(m: Result) -> Json:
    if m.same is not None and m.same.argument != NONE:
        return ["argument", m.same.argument]
    return ["view", list(m.place), list(m.spec.shape), m.spec.dtype.name, list(m.strides)]


def _value(x: object) -> Json:
    if type(x) is ResultNumber:
        return ["made", int(x)]
    variable = getattr(x, "variable", None)
    return ["value", _plain(x)] if variable is None else ["variable", variable]


def _loaded(
    c: Json, content: Json, blobs: memoryview, chosen: Device | str | None,
    state: dict[tuple[Device, int], Storage],
) -> tuple[str, Executable]:  # fmt: skip
    """Return what replays a saved capture; `state`: the memory that captures share."""
    device = usable(str(c["device"]) if chosen is None else chosen)
    reader = Reader(content, blobs, device)
    leaves = [_argument(x, device) for x in c["leaves"]]
    arguments = {i: KnownTensor(x, argument=i) for i, x in enumerate(leaves) if type(x) is Tensor}
    inputs = [_candidate(x, arguments, reader, content["state"], state) for x in c["inputs"]]
    for k, x in enumerate(inputs):
        x.input = k
    environment = reader.environment(c["environment"])
    program = reader.program(c["program"], [_range(x) for x in inputs], str(content["name"]))
    made = [_remade(m, arguments, inputs, program, device) for m in c["made"]]
    values = [_revalued(v, reader, len(made)) for v in c["values"]]
    floats = [(within(i, len(leaves)), reader.variable(v)) for i, v in c["floats"]]
    tree = None if c["arguments"] is None else flattened(_decoded(c["arguments"])).tree
    result = Flat(values, flattened(_decoded(c["result"])).tree)
    if result.tree.num_leaves != len(values):
        raise ValueError(f"{len(values)} values in containers of {result.tree.num_leaves}")
    candidates = [*arguments.values(), *(x for x in inputs if x.path is not None)]
    facts = Trace(
        str(content["name"]), program, leaves, tree, None, candidates, inputs, environment, floats,
        made, result, [],
    )  # fmt: skip
    executable, _ = bind(facts)
    numbers = {w.argument: n for n, w in enumerate(executable.inputs.slots) if w.argument >= 0}
    for i, j, apart in c["beside"]:
        distance = within(abs(apart), 1 << 62) and apart
        executable.inputs.overlaps.append(Overlap(numbers[i], numbers[j], distance))
    return ", ".join(map(shown_leaf, leaves)), executable


def _argument(x: Json, device: Device) -> Json:
    if x[0] != "tensor":
        return 0.0 if x[0] == "float" else Static(x[1])
    _, shape, name, strides = x
    s = spec(natural(shape), dtype(name), device)
    ptr = DataPtr(None, 0, 0, device)
    return make(leaf(storage_at(ptr, 0, device), s, whole(strides, len(s.shape)), 0))


def _candidate(
    x: Json, arguments: dict[int, KnownTensor], reader: Reader, blobs: Json,
    state: dict[tuple[Device, int], Storage],
) -> KnownTensor:  # fmt: skip
    if x[0] == "argument":
        return arguments[x[1]]
    _, number, shape, name, strides, offset = x
    key = reader.device, within(number, len(blobs))
    storage = state.get(key)
    if storage is None:
        storage = state[key] = reader.memory(blobs[number])
    s, begin = spec(natural(shape), dtype(name), reader.device), within(offset, 1 << 62)
    steps = whole(strides, len(s.shape))
    low, high = span(StridedView(s.shape, steps, begin))
    if low < 0 or high * s.dtype.itemsize > storage.nbytes:
        raise ValueError(f"a tensor of the closure, {s!r}, lies outside of its memory")
    tensor = make(leaf(storage, s, steps, begin))
    return KnownTensor(tensor, path=ClosurePath(tensor))


def _range(c: KnownTensor) -> tuple[int, int]:
    """The bytes that may be touched, from where a tensor begins."""
    e, size = c.expr, c.expr.spec.dtype.itemsize
    if c.path is not None:
        begin = e.offset * size
        return -begin, storage_of(e).nbytes - begin
    low, high = span(StridedView(e.spec.shape, e.strides, 0))
    return low * size, high * size


def _remade(
    m: Json, arguments: dict[int, KnownTensor], inputs: list[KnownTensor], program: Program,
    device: Device,
) -> Result:  # fmt: skip
    if m[0] == "argument":
        c = arguments[m[1]]
        return Result(c, Place(0, 0), c.expr.spec, c.expr.strides)
    _, (slot, offset), shape, name, strides = m
    s = spec(natural(shape), dtype(name), device)
    steps = whole(strides, len(s.shape))
    low, high = span(StridedView(s.shape, steps, 0))
    size = s.dtype.itemsize
    sizes = [_range(c) for c in inputs]
    sizes += [(0, x.nbytes) for x in program.held] + [(0, n) for n in program.sizes]
    least, most = sizes[within(slot, len(sizes))]
    if offset % size or offset + low * size < least or offset + high * size > most:
        raise ValueError(f"a result, {s!r}, lies outside of its memory")
    return Result(None, Place(slot, offset), s, steps)


def _revalued(v: Json, reader: Reader, made: int) -> Json:
    kind, x = v
    if kind == "made":
        return ResultNumber(within(x, made))
    return reader.traced(x) if kind == "variable" else _plain(x)
