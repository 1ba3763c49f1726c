"""From Python to machine code: each bound launch is a built-in function object over generated code.

`PyCFunction_NewEx` wraps the generated `launch`, whose `self` is (block, program, fixed): the block
is what does not change from call to call, packed into bytes; the program keeps the code alive;
`fixed` is what sequences of launches are made of. A call takes about 0.1 us. Arguments of kernels
are 8-byte slots: buffer addresses, ints, scalars, the extents of the grid, the extents of a tile.
They are put together on the caller's stack, so launches are re-entrant.
"""

from __future__ import annotations

import ctypes
import math
import re
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from dovetail.extend import (
    Entry,
    Launch,
    QueuedLaunch,
    Replay,
    StridedOperand,
    cache_binary,
    cached_binary,
)

from . import command_list, gemm, pool
from .command_list import BOOL, FLOAT32, FLOAT64, INTEGER, Fixed
from .compile import Compiler, CpuProgram, link
from .ir_writer import counted, fields
from .pool import Pool, weight
from .schedule import elements, traffic, work

RELEASE_GIL = 200_000  # scalar operations (some 20 us) from which other Python threads may run
SHARE = 250_000  # from which threads that are awake are faster than one
# Points, of the grid and of the loops of each, from which they share launches of less, too: what
# others of as many points wrote, or will read, is in both their caches (a stencil in place: 7 us,
# and 20 where its copy was not shared; the largest of each of 256 rows of 256 elements: 6, not 10).
POINTS = 16_384
# While threads are far from each other they share what is this many times as much, or a fourth of
# that with so many operations for each byte that is loaded or stored (log2 of 64 K: 14 us, not 24),
# or loads and stores so many bytes, which one thread takes some 0.2 ms for, ...
WORTH, DENSE, TRAFFIC = 32, 4, 1 << 22
# ... and products only with this many multiplications for each number that is read or written.
REUSE = 64

# The block: function, tiles, how (0: keep the GIL, 1: release it, else: share, `weight` of
# the scalar operations), state of the pool,
# None, buffers, scalars, position of the first scalar's slot, slots; then the slots; then the kinds
# of the scalars.
_HEADER = (
    "ptr function", "i64 tiles", "i64 how", "ptr state", "ptr none", "i64 nbuffers", "i64 nscalars",
    "i64 first", "i64 nslots",
)  # fmt: skip
_KINDS = {"f32": FLOAT32, "f64": FLOAT64, "b8": BOOL}  # of scalars; the others are INTEGER

_BUFFER = """  %bh = mul i64 %b, 2
  %bo = add i64 %bh, 1
  %handle = call ptr @PyTuple_GetItem(ptr %handles, i64 %bh)
  %base = call i64 @PyLong_AsLongLong(ptr %handle)
  %offset = call ptr @PyTuple_GetItem(ptr %handles, i64 %bo)
  %bytes = call i64 @PyLong_AsLongLong(ptr %offset)
  %address = add i64 %base, %bytes
  %bslot = getelementptr i64, ptr %slots, i64 %b
  store i64 %address, ptr %bslot"""
_SCALAR = """  %number = call ptr @PyTuple_GetItem(ptr %tuple, i64 %s)
  %missing = icmp eq ptr %number, null
  br i1 %missing, label %release, label %present
present:
"""
_CONVERTED = """  %kindp = getelementptr i64, ptr %kinds, i64 %s
  %kind = load i64, ptr %kindp, align 1
  %x = call i64 @converted(ptr %number, i64 %kind)
  %at = add i64 %first, %s
  %sslot = getelementptr i64, ptr %slots, i64 %at
  store i64 %x, ptr %sslot"""
_NUMBER = f"""  %numberp = getelementptr ptr, ptr %scalars, i64 %s
  %number = load ptr, ptr %numberp
{_CONVERTED}"""

_GO = """go:
  switch i64 %how, label %share [ i64 0, label %direct
                                  i64 1, label %aside ]
direct:
  call void %function(ptr %slots, i64 0, i64 %tiles)
  br label %done
aside:
  %thread1 = call ptr @PyEval_SaveThread()
  call void %function(ptr %slots, i64 0, i64 %tiles)
  call void @PyEval_RestoreThread(ptr %thread1)
  br label %done
share:
  %thread2 = call ptr @PyEval_SaveThread()
  call void @share(ptr %state, ptr %function, ptr %slots, i64 %tiles, i64 %how)
  call void @PyEval_RestoreThread(ptr %thread2)
  br label %done
"""

_IR = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyBytes_AsString(ptr)
declare ptr @PySequence_Tuple(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare double @PyFloat_AsDouble(ptr)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyErr_Occurred()
declare i32 @PyErr_BadArgument()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)

define internal i64 @converted(ptr %number, i64 %kind) {{
  switch i64 %kind, label %integer [ i64 {FLOAT32}, label %single
                                     i64 {FLOAT64}, label %double
                                     i64 {BOOL}, label %truth ]
integer:
  %x0 = call i64 @PyLong_AsUnsignedLongLongMask(ptr %number)
  ret i64 %x0
single:
  %wide = call double @PyFloat_AsDouble(ptr %number)
  %narrow = fptrunc double %wide to float
  %bits1 = bitcast float %narrow to i32
  %x1 = zext i32 %bits1 to i64
  ret i64 %x1
double:
  %float = call double @PyFloat_AsDouble(ptr %number)
  %x2 = bitcast double %float to i64
  ret i64 %x2
truth:
  %true = call i32 @PyObject_IsTrue(ptr %number)
  %x3 = zext i32 %true to i64
  ret i64 %x3
}}

define ptr @launch(ptr %self, ptr %args, i64 %nargs) {{
entry:
  %packed = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %block = call ptr @PyBytes_AsString(ptr %packed)
{fields("block", _HEADER)}
  %three = icmp eq i64 %nargs, 3
  br i1 %three, label %prepare, label %bad
bad:
  call i32 @PyErr_BadArgument()
  ret ptr null
prepare:
  %slots = alloca i64, i64 %nslots, align 16
  %template = getelementptr i64, ptr %block, i64 {len(_HEADER)}
  %kinds = getelementptr i64, ptr %template, i64 %nslots
  %length = mul i64 %nslots, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 16 %slots, ptr %template, i64 %length, i1 false)
  %handles = load ptr, ptr %args
  %given = call i64 @PyTuple_Size(ptr %handles)
  %twice = mul i64 %nbuffers, 2
  %fits = icmp eq i64 %given, %twice
  br i1 %fits, label %each_b, label %misfit
misfit:
  %raised = call ptr @PyErr_Occurred()
  %already = icmp ne ptr %raised, null
  br i1 %already, label %fail, label %bad
{counted("b", "nbuffers", "prepare", "scalars", _BUFFER)}
scalars:
  %plain = icmp eq i64 %nscalars, 0
  br i1 %plain, label %check, label %sequence
sequence:
  %numbersp = getelementptr ptr, ptr %args, i64 1
  %numbers = load ptr, ptr %numbersp
  %tuple = call ptr @PySequence_Tuple(ptr %numbers)
  %notuple = icmp eq ptr %tuple, null
  br i1 %notuple, label %fail, label %each_s
{counted("s", "nscalars", "sequence", "release", _SCALAR + _CONVERTED, "present")}
release:
  call void @Py_DecRef(ptr %tuple)
  br label %check
check:
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %fail, label %go
fail:
  ret ptr null
{_GO}done:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}

; The same for those who have addresses, and no more need than this of Python (`extend.Entry`).
define i32 @entry(ptr %block, ptr %places, ptr %scalars) {{
entry:
{fields("block", _HEADER)}
  %slots = alloca i64, i64 %nslots, align 16
  %template = getelementptr i64, ptr %block, i64 {len(_HEADER)}
  %kinds = getelementptr i64, ptr %template, i64 %nslots
  %length = mul i64 %nslots, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 16 %slots, ptr %template, i64 %length, i1 false)
  %given = mul i64 %nbuffers, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 16 %slots, ptr %places, i64 %given, i1 false)
  %plain = icmp eq i64 %nscalars, 0
  br i1 %plain, label %go, label %each_s
{counted("s", "nscalars", "entry", "check", _NUMBER)}
check:
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %fail, label %go
fail:
  ret i32 -1
{_GO}
done:
  ret i32 0
}}
"""
_IMPORTED = re.compile(r"declare .*@(Py\w+)")


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_METH_FASTCALL = 0x80
_new_function = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
)(("PyCFunction_NewEx", ctypes.pythonapi))


class Launcher:
    """The generated entry and the thread pool behind it; makes bound launches."""

    def __init__(self, compiler: Compiler, fingerprint: str) -> None:
        ir = pool.IR + _IR + command_list.IR
        imports = {name: _address(name) for name in _IMPORTED.findall(ir)} | pool.SYMBOLS
        symbols = ("launch", "entry", "replay")
        self._code = _linked(compiler, fingerprint, ir, symbols, imports)
        self._launch = _method(b"launch", self._code)
        self._replay = _method(b"replay", self._code)
        self._entry = Entry(self._code["entry"])
        self.pool = Pool()
        self._products: Any = None  # the code of NumPy's BLAS, if it can be called
        if blas := gemm.symbols():
            ir = gemm.ir(compiler.machine.triple)
            self._products = _linked(compiler, fingerprint, ir, gemm.KERNELS, blas)

    def bind(self, program: CpuProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """A built-in function of (buffers, scalars, stream) that runs `program`."""
        k = program.kernel
        blocks = program.schedule.blocks(grid)
        tiles = math.prod(-(-n // b) for n, b in zip(grid, blocks, strict=True))
        points, sizes = math.prod(grid), dict(zip(k.ints, ints, strict=True))
        operations = points * work(k, sizes)
        how = int(operations >= RELEASE_GIL)
        near = points * elements(k.body, sizes)
        if tiles > 1 and (operations >= SHARE or near >= POINTS):
            how = weight(operations, _is_worth_it(program, sizes, points, operations))
            self.pool.start()
        slots = [0] * len(k.buffers) + [*ints] + [0] * len(k.scalars) + [*grid] + blocks
        first = len(k.buffers) + len(ints)
        kinds = [_KINDS.get(d.code, INTEGER) for _, d in k.scalars]
        shared = how if how > 1 else 0
        fixed = Fixed(program.address, tiles, shared, operations, slots, first, kinds)
        return self._made(program, fixed, how, len(k.buffers))

    def product(self, inputs: Sequence[StridedOperand], output: StridedOperand) -> Launch | None:
        """A built-in function of (buffers, scalars, stream) that multiplies, if there is one."""
        found = gemm.routine(inputs, output) if self._products is not None else None
        if found is None:
            return None
        slots = [0, 0, 0, *found.ints]
        address, n = self._products[found.kernel], found.operations
        how = int(n >= RELEASE_GIL)
        numbers = sum(math.prod(shape) for _, _, shape, *_ in (*inputs, output))
        if found.blocks > 1 and (n >= SHARE or numbers >= POINTS):
            how = weight(n, n >= WORTH * SHARE and n >= REUSE * numbers)
            self.pool.start()
        shared = how if how > 1 else 0
        fixed = Fixed(address, found.blocks, shared, n, slots, len(slots), [])
        return self._made(self._products, fixed, how, 3)

    def _made(self, owner: object, fixed: Fixed, how: int, buffers: int) -> Launch:
        """`owner` keeps the code alive; `how`, as in the block."""
        header = [fixed.function, fixed.tiles, how, self.pool.state, id(None)]
        words = [*header, buffers, len(fixed.kinds), fixed.first_scalar, len(fixed.slots)]
        words += [*fixed.slots, *fixed.kinds]
        block = struct.pack(f"={len(words)}q", *words)
        own = (block, self._entry, owner, fixed)
        made: Launch = _new_function(ctypes.addressof(self._launch), own, None)
        return made

    def sequence(self, launches: Sequence[QueuedLaunch]) -> Replay:
        """A built-in function of (handles and offsets, variables, stream) that runs these."""
        block = command_list.block(launches, RELEASE_GIL, self.pool.state)
        own = (block, tuple(launches))  # whose programs stay loaded
        made: Replay = _new_function(ctypes.addressof(self._replay), own, None)
        return made


def _is_worth_it(
    program: CpuProgram, ints: Mapping[str, int], points: int, operations: float
) -> bool:
    """Whether threads share a launch even while they are far from each other."""
    if operations >= WORTH * SHARE:
        return True
    moved = points * traffic(program.kernel, program.schedule, ints)
    return moved >= TRAFFIC or operations >= max(WORTH // 4 * SHARE, DENSE * moved)


def _method(name: bytes, code: Any) -> _MethodDef:
    return _MethodDef(name, code[name.decode()], _METH_FASTCALL, None)


def _address(name: str) -> int:
    """Return the address of a function of Python's."""
    return int(ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0)


def _linked(
    compiler: Compiler, fingerprint: str, ir: str, symbols: tuple[str, ...], imports: dict[str, int]
) -> Any:
    """Code that is the same for every kernel, in memory. Its object code is kept on disk; one that
    does not link is made and written anew."""
    kept = cached_binary(fingerprint, ir)
    if kept is not None:
        with suppress(RuntimeError):
            return link(kept, symbols, imports)
    code = compiler.object_code(ir)
    found = link(code, symbols, imports)
    cache_binary(fingerprint, ir, code)
    return found
