"""Several launches as one built-in function: what a captured function does, without Python between.

Its block has a template of all launches' slots, and says which of them are buffers (a base and an
offset), and which are numbers that change. The function copies the template, fills those in, and
runs one kernel after the other. Where that takes long the GIL is released for all of them.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from dovetail.extend import QueuedLaunch, Scalar

INTEGER, FLOAT32, FLOAT64, BOOL = range(4)  # kinds of scalars: see `converted` in the IR


class Fixed(NamedTuple):
    """What does not change of a launch. Slots: buffers, ints, scalars, extents, tiles' extents."""

    function: int
    tiles: int
    shared: bool  # by the threads of the pool
    operations: float
    slots: list[int]
    first_scalar: int  # its slot
    kinds: list[int]  # of scalars


# The block: how many words each part has; whether to release the GIL; the pool's state; None. Then
# the parts: the template; the slots that bases are in; (word, base, offset) of each buffer;
# (word, kind, variable) of each number that changes; (function, tiles, shared, first word) of each
# launch.
_HEADER = ("words", "nslots", "nbuffers", "nnumbers", "nlaunches", "release", "state", "none")
_PARTS = (("words", 1), ("nslots", 1), ("nbuffers", 3), ("nnumbers", 3), ("nlaunches", 4))


def _header() -> str:
    lines = []
    for i, name in enumerate(_HEADER):
        lines.append(f"  %{name}p = getelementptr i64, ptr %block, i64 {i}")
        lines.append(f"  %{name} = load i64, ptr %{name}p, align 1")
    lines.append(f"  %part0 = getelementptr i64, ptr %block, i64 {len(_HEADER)}")
    for i, (name, width) in enumerate(_PARTS):
        lines.append(f"  %end{i} = mul i64 %{name}, {width}")
        lines.append(f"  %part{i + 1} = getelementptr i64, ptr %part{i}, i64 %end{i}")
    return "\n".join(lines)


def _read(what: str, part: int, width: int, names: Sequence[str]) -> str:
    """The fields of element %i of a part."""
    lines = [f"  %{what}i = mul i64 %{what}, {width}"]
    lines.append(f"  %{what}e = getelementptr i64, ptr %part{part}, i64 %{what}i")
    for k, name in enumerate(names):
        lines.append(f"  %{name}p = getelementptr i64, ptr %{what}e, i64 {k}")
        lines.append(f"  %{name} = load i64, ptr %{name}p, align 1")
    return "\n".join(lines)


IR = f"""
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare ptr @PyErr_NoMemory()

define ptr @replay(ptr %self, ptr %args, i64 %nargs) {{
entry:
  %three = icmp eq i64 %nargs, 3
  br i1 %three, label %begin, label %bad
bad:
  call i32 @PyErr_BadArgument()
  ret ptr null
begin:
  %packed = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %block = call ptr @PyBytes_AsString(ptr %packed)
{_header()}
  %all = add i64 %words, %nslots
  %bytes = mul i64 %all, 8
  %made = call ptr @PyMem_RawMalloc(i64 %bytes)
  %refused = icmp eq ptr %made, null
  br i1 %refused, label %nomemory, label %prepare
nomemory:
  call ptr @PyErr_NoMemory()
  ret ptr null
prepare:
  %bases = getelementptr i64, ptr %made, i64 %words
  %at = load ptr, ptr %args
  %envp = getelementptr ptr, ptr %args, i64 1
  %env = load ptr, ptr %envp
  br label %copy
copy:
  %w = phi i64 [ 0, %prepare ], [ %w1, %copying ]
  %wmore = icmp slt i64 %w, %words
  br i1 %wmore, label %copying, label %slot
copying:
  %from = getelementptr i64, ptr %part0, i64 %w
  %to = getelementptr i64, ptr %made, i64 %w
  %word = load i64, ptr %from, align 1
  store i64 %word, ptr %to
  %w1 = add i64 %w, 1
  br label %copy
slot:
  %s = phi i64 [ 0, %copy ], [ %s1, %based ]
  %smore = icmp slt i64 %s, %nslots
  br i1 %smore, label %based, label %buffer
based:
{_read("s", 1, 1, ["number"])}
  %h = mul i64 %number, 2
  %o = add i64 %h, 1
  %handle = call ptr @PyList_GetItem(ptr %at, i64 %h)
  %base = call i64 @PyLong_AsLongLong(ptr %handle)
  %start = call ptr @PyList_GetItem(ptr %at, i64 %o)
  %first = call i64 @PyLong_AsLongLong(ptr %start)
  %address = add i64 %base, %first
  %basep = getelementptr i64, ptr %bases, i64 %s
  store i64 %address, ptr %basep
  %s1 = add i64 %s, 1
  br label %slot
buffer:
  %b = phi i64 [ 0, %slot ], [ %b1, %placed ]
  %bmore = icmp slt i64 %b, %nbuffers
  br i1 %bmore, label %placed, label %scalar
placed:
{_read("b", 2, 3, ["bword", "bbase", "boffset"])}
  %whose = getelementptr i64, ptr %bases, i64 %bbase
  %its = load i64, ptr %whose
  %where = add i64 %its, %boffset
  %bto = getelementptr i64, ptr %made, i64 %bword
  store i64 %where, ptr %bto
  %b1 = add i64 %b, 1
  br label %buffer
scalar:
  %n = phi i64 [ 0, %buffer ], [ %n1, %present ]
  %nmore = icmp slt i64 %n, %nnumbers
  br i1 %nmore, label %convert, label %check
convert:
{_read("n", 3, 3, ["nword", "nkind", "variable"])}
  %value = call ptr @PyList_GetItem(ptr %env, i64 %variable)
  %missing = icmp eq ptr %value, null
  br i1 %missing, label %fail, label %present
present:
  %x = call i64 @converted(ptr %value, i64 %nkind)
  %nto = getelementptr i64, ptr %made, i64 %nword
  store i64 %x, ptr %nto
  %n1 = add i64 %n, 1
  br label %scalar
check:
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %fail, label %go
fail:
  call void @PyMem_RawFree(ptr %made)
  ret ptr null
go:
  %releases = icmp ne i64 %release, 0
  br i1 %releases, label %aside, label %run
aside:
  %saved = call ptr @PyEval_SaveThread()
  br label %run
run:
  %thread = phi ptr [ null, %go ], [ %saved, %aside ]
  br label %launch
launch:
  %l = phi i64 [ 0, %run ], [ %l1, %launched ]
  %lmore = icmp slt i64 %l, %nlaunches
  br i1 %lmore, label %one, label %end
one:
{_read("l", 4, 4, ["address0", "tiles", "shared", "its0"])}
  %function = inttoptr i64 %address0 to ptr
  %slots = getelementptr i64, ptr %made, i64 %its0
  %alone = icmp eq i64 %shared, 0
  br i1 %alone, label %direct, label %share
direct:
  call void %function(ptr %slots, i64 0, i64 %tiles)
  br label %launched
share:
  %pool = inttoptr i64 %state to ptr
  call void @share(ptr %pool, ptr %function, ptr %slots, i64 %tiles)
  br label %launched
launched:
  %l1 = add i64 %l, 1
  br label %launch
end:
  br i1 %releases, label %back, label %done
back:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %done
done:
  call void @PyMem_RawFree(ptr %made)
  %nonevalue = inttoptr i64 %none to ptr
  call void @Py_IncRef(ptr %nonevalue)
  ret ptr %nonevalue
}}
"""


def block(launches: Sequence[QueuedLaunch], release_from: int, state: int) -> bytes:
    """What does not change of these launches.

    `release_from`: the scalar operations from which other Python threads may run; `state`: the
    pool's.
    """
    words: list[int] = []
    slots: dict[int, int] = {}
    buffers: list[int] = []
    numbers: list[int] = []
    runs: list[int] = []
    operations = 0.0
    for launch, places, scalars in launches:
        own, first = _fixed(launch), len(words)
        operations += own.operations
        words += own.slots
        runs += (own.function, own.tiles, own.shared, first)
        for k, (slot, offset) in enumerate(places):
            buffers += (first + k, slots.setdefault(slot, len(slots)), offset)
        for k, ((value, variable), kind) in enumerate(zip(scalars, own.kinds, strict=True)):
            word = first + own.first_scalar + k
            words[word] = _bits(value, kind)
            if variable is not None:
                numbers += (word, kind, variable)
    release = operations >= release_from or any(runs[2::4])
    counts = [len(words), len(slots), len(buffers) // 3, len(numbers) // 3, len(launches)]
    every = [*counts, release, state, id(None), *words, *slots, *buffers, *numbers, *runs]
    return struct.pack(f"={len(every)}q", *every)


def _fixed(launch: Any) -> Fixed:
    """That of a built-in function which `Launcher.bind` made."""
    found: Fixed = launch.__self__[2]
    return found


def _bits(value: Scalar, kind: int) -> int:
    """A number as it stands in a slot."""
    if kind == FLOAT32:
        return int.from_bytes(ctypes.c_float(value), "little")
    if kind == FLOAT64:
        return int.from_bytes(ctypes.c_double(value), "little", signed=True)
    return int(bool(value)) if kind == BOOL else ctypes.c_int64(int(value)).value
