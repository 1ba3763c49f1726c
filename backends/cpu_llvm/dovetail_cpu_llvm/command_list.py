"""Command lists: several launches as one built-in function, without Python between them.

A block of bytes holds a template of the slots of all launches. It lists the slots that are buffers
(a base and an offset) and those that are numbers which change. The function copies the template,
sets these slots, and runs one kernel after the other. It releases the GIL if they take long.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from dovetail.extend import QueuedLaunch, Scalar

from .ir_writer import counted, fields

INTEGER, FLOAT32, FLOAT64, BOOL = range(4)  # kinds of scalars: see `converted` in the IR


class Fixed(NamedTuple):
    """The part of a launch that is the same in all calls."""

    function: int
    tiles: int
    shared: int  # `pool.weight` of what its threads share, or 0
    operations: float
    slots: list[int]  # buffers, ints, scalars, extents of the grid, extents of a tile
    first_scalar: int  # its slot
    kinds: list[int]  # of scalars


# The block: the length of each part; 1 to release the GIL; the pool's state; None. Then the parts:
# the template; the slots of bases; (word, base, offset) of each buffer; (word, kind, variable) of
# each number that changes; (function, tiles, shared, first word) of each launch.
_HEADER = (
    "i64 words", "i64 nslots", "i64 nbuffers", "i64 nnumbers", "i64 nlaunches", "i64 release",
    "ptr state", "ptr none",
)  # fmt: skip
_PARTS = (("words", 1), ("nslots", 1), ("nbuffers", 3), ("nnumbers", 3), ("nlaunches", 4))


def _parts() -> str:
    """Return the code that computes where each part begins."""
    lines = [f"  %part0 = getelementptr i64, ptr %block, i64 {len(_HEADER)}"]
    for i, (name, width) in enumerate(_PARTS):
        lines.append(f"  %end{i} = mul i64 %{name}, {width}")
        lines.append(f"  %part{i + 1} = getelementptr i64, ptr %part{i}, i64 %end{i}")
    return "\n".join(lines)


def _each(i: str, part: int, came: str, then: str, names: str, body: str, end: str = "") -> str:
    """Return a loop over the elements of a part, whose words have these names."""
    count, width = _PARTS[part]
    typed = [n if " " in n else f"i64 {n}" for n in names.split(", ")]
    element = f"""  %{i}.word = mul i64 %{i}, {width}
  %{i}.element = getelementptr i64, ptr %part{part}, i64 %{i}.word
"""
    return counted(i, count, came, then, element + fields(f"{i}.element", typed) + body, end)


_BASE = """
  %h = mul i64 %number, 2
  %o = add i64 %h, 1
  %handle = call ptr @PyList_GetItem(ptr %at, i64 %h)
  %base = call i64 @PyLong_AsLongLong(ptr %handle)
  %start = call ptr @PyList_GetItem(ptr %at, i64 %o)
  %first = call i64 @PyLong_AsLongLong(ptr %start)
  %address = add i64 %base, %first
  %basep = getelementptr i64, ptr %bases, i64 %s
  store i64 %address, ptr %basep"""
_BUFFER = """
  %whose = getelementptr i64, ptr %bases, i64 %of
  %its = load i64, ptr %whose
  %where = add i64 %its, %offset
  %bto = getelementptr i64, ptr %made, i64 %bword
  store i64 %where, ptr %bto"""
_NUMBER = """
  %value = call ptr @PyList_GetItem(ptr %env, i64 %variable)
  %missing = icmp eq ptr %value, null
  br i1 %missing, label %fail, label %present
present:
  %x = call i64 @converted(ptr %value, i64 %kind)
  %nto = getelementptr i64, ptr %made, i64 %nword
  store i64 %x, ptr %nto"""
_LAUNCH = """
  %slots = getelementptr i64, ptr %made, i64 %from
  %alone = icmp eq i64 %shared, 0
  br i1 %alone, label %direct, label %share
direct:
  call void %function(ptr %slots, i64 0, i64 %tiles)
  br label %launched
share:
  call void @share(ptr %state, ptr %function, ptr %slots, i64 %tiles, i64 %shared)
  br label %launched
launched:"""

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
{fields("block", _HEADER)}
{_parts()}
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
  %length = mul i64 %words, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %made, ptr %part0, i64 %length, i1 false)
  br label %each_s
{_each("s", 1, "prepare", "each_b", "number", _BASE)}
{_each("b", 2, "each_s", "each_n", "bword, of, offset", _BUFFER)}
{_each("n", 3, "each_b", "check", "nword, kind, variable", _NUMBER, "present")}
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
  br label %each_l
{_each("l", 4, "run", "end", "ptr function, tiles, shared, from", _LAUNCH, "launched")}
end:
  br i1 %releases, label %back, label %done
back:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %done
done:
  call void @PyMem_RawFree(ptr %made)
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}
"""


def block(launches: Sequence[QueuedLaunch], release_from: int, state: int) -> bytes:
    """Return the block of these launches.

    release_from: the scalar operations from which other Python threads may run.
    state: the address of the pool's state.
    """
    words: list[int] = []
    slots: dict[int, int] = {}
    buffers: list[int] = []
    numbers: list[int] = []
    runs: list[int] = []
    operations = 0.0
    for launch, places, scalars in launches:
        own, first = _fixed_part(launch), len(words)
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


def _fixed_part(launch: Any) -> Fixed:
    """Return the fixed part of a built-in function that `Launcher.bind` returned."""
    fixed: Fixed = launch.__self__[-1]
    return fixed


def _bits(value: Scalar, kind: int) -> int:
    """Return the bits of a number in a slot."""
    if kind == FLOAT32:
        return int.from_bytes(ctypes.c_float(value), "little")
    if kind == FLOAT64:
        return int.from_bytes(ctypes.c_double(value), "little", signed=True)
    return int(bool(value)) if kind == BOOL else ctypes.c_int64(int(value)).value
