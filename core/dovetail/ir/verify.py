"""A verifier of the rules of the kernel IR.

Tests run it on every kernel that any stage makes.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable
from typing import NoReturn

from ..dtypes import BY_CODE, DType, bool_, complex64, complex128, float32, int32, int64
from ..errors import ArgumentError, InternalError
from .builder import Combine, Kernel, combine, is_combine
from .language import ALL_OPS, OPERANDS, Atomic, Block, Buffer, Loop, Store, Value

_NAME = re.compile(r"[A-Za-z_]\w*")
_INDEX = re.compile(r"i\d+")
_ATOMICS = ("add", "min", "max", "and", "or")


def verify(kernel: Kernel) -> None:
    """Check that a kernel of dovetail's own obeys every rule of the kernel IR.

    Raises: InternalError that names the broken rule and shows the kernel.
    """
    rule = find_violation(kernel)
    if rule is not None:
        raise InternalError(f"kernel {kernel.name}: {rule}", _kernel_text(kernel))


def verify_own(kernel: Kernel) -> None:
    """Check that a kernel obeys every rule of the kernel IR (docs/kernel-ir.md).

    Raises: ArgumentError that names the broken rule and where, and shows the kernel.
    """
    rule = find_violation(kernel)
    if rule is not None:
        raise ArgumentError(
            f"verify: kernel {kernel.name} breaks a rule of the kernel IR: {rule}\n"
            f"docs/kernel-ir.md lists the rules; the kernel is\n{_kernel_text(kernel)}"
        )


def find_violation(kernel: Kernel) -> str | None:
    """Return the first rule that a kernel breaks, and where; None if it breaks none."""
    try:
        _Verifier(kernel).run()
    except _BrokenRule as e:
        return str(e)
    return None


class _BrokenRule(Exception):
    """The first rule of the kernel IR that a kernel breaks; caught in `find_violation`."""


def _kernel_text(kernel: Kernel) -> str:
    """Return the printed kernel, or its body's repr if an invalid kernel cannot be printed."""
    try:
        return str(kernel)
    except (KeyError, AssertionError):  # a value before its statement, or one that lacks its `attr`
        return f"(kernel {kernel.name} cannot be printed) {kernel.body!r}"


def _fail(rule: str, where: object) -> NoReturn:
    """Raise _BrokenRule with the rule and the repr of the place."""
    raise _BrokenRule(f"{rule}: {where!r}")


class _Verifier:
    """A walk over a kernel that raises at the first broken rule."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.buffers = {id(b) for b in (*kernel.buffers, *kernel.arrays)}
        self.params: dict[str, DType] = dict.fromkeys(kernel.ints, kernel.index)
        self.params |= dict(kernel.scalars)
        self.defined_ids: set[int] = set()  # ids of every Value and Loop so far
        self.in_scope: set[int] = set()
        self.parallel_loops = 0  # open maps and reduces

    def run(self) -> None:
        """Check the header and the body. Raises: _BrokenRule."""
        self.check_header()
        self.check_block(self.kernel.body)

    def check_header(self) -> None:
        """Check index dtype, parameter names, buffers, scalars and grid. Raises: _BrokenRule."""
        k = self.kernel
        if k.index not in (int64, int32):
            _fail(
                "the index dtype must be int64, or int32 for devices with 32-bit indices", k.index
            )
        names = [b.name for b in (*k.buffers, *k.arrays)] + list(k.ints) + [n for n, _ in k.scalars]
        for name in names:
            if not _NAME.fullmatch(name) or _INDEX.fullmatch(name) or names.count(name) > 1:
                _fail("a parameter's name must be an identifier, unique, and not like i0", name)
        for b in k.buffers:
            if b.access not in ("r", "w", "rw") or b.dtype not in BY_CODE.values():
                _fail("a buffer must have a known dtype, and access r, w or rw", b)
            if b.length:
                _fail("a buffer must be a parameter, and not a private array", b)
        for b in k.arrays:
            self.check_real(b.dtype, b)
            if b.access != "rw" or b.length < 1:
                _fail("a private array must have access rw and a positive length", b)
        for name, dtype in k.scalars:
            self.check_real(dtype, name)
        for extent in k.grid:
            if extent.op not in ("param", "const") or extent.dtype is not k.index:
                _fail(f"a grid extent must be an {k.index.name} parameter or constant", extent)
            self.check_operand(extent)

    def check_computable(self, d: DType, where: object) -> None:
        """Raise _BrokenRule for a dtype that is only stored, such as float16."""
        if d.compute is not d:
            _fail(f"a value of dtype {d.name} must not be computed with", where)

    def check_real(self, d: DType, where: object) -> None:
        """Raise _BrokenRule for a dtype that is complex or only stored."""
        self.check_computable(d, where)
        if d.kind == "c":
            _fail("scalars and constants must be real", where)

    def check_operand(self, v: Value) -> None:
        """Check that `v` may be named at this position. Raises: _BrokenRule."""
        if v.op == "const":
            self.check_constant(v)
        elif v.op == "param":
            if not isinstance(v.attr, str) or self.params.get(v.attr) is not v.dtype:
                _fail("a parameter must be declared, with its dtype", v)
        elif v.op == "index":
            index = self.kernel.index
            if v.dtype is not index or v.attr not in range(len(self.kernel.grid)):
                _fail(f"an index must be {index.name} and name a grid axis", v)
        elif id(v) not in self.in_scope:
            _fail("a value must be used after its statement and within its scope", v)

    def check_constant(self, v: Value) -> None:
        """Check that a constant has a real dtype and fits it exactly. Raises: _BrokenRule."""
        self.check_real(v.dtype, v)
        kind = {"b": "bool", "i": "int", "u": "int", "f": "float"}[v.dtype.kind]
        if type(v.attr).__name__ != kind:
            _fail("a constant must be a Python number of its dtype's kind", v)
        if v.dtype.kind in "iu" and not v.dtype.min <= v.number <= v.dtype.max:
            _fail("an integer constant must be in its dtype's range", v)
        if v.dtype is float32 and math.isfinite(v.number):
            try:
                exact = struct.unpack("f", struct.pack("f", v.number))[0] == v.number
            except OverflowError:
                exact = False
            if not exact:
                _fail("a float32 constant must be exact in float32", v)

    def check_block(self, block: Block) -> None:
        """Check the statements of a scope and add the defined values to it. Raises: _BrokenRule."""
        for s in block:
            if isinstance(s, Value):
                self.check_value(s)
            elif isinstance(s, Loop):
                self.check_loop(s)
            else:
                self.check_effect(s)

    def define(self, x: Value | Loop) -> None:
        """Add a value or loop to the scope. Raises: _BrokenRule if it was already defined."""
        if id(x) in self.defined_ids:
            _fail("a value or loop must be in exactly one block", x)
        self.defined_ids.add(id(x))
        self.in_scope.add(id(x))

    def check_value(self, v: Value) -> None:
        """Check a value's statement and add the value to the scope. Raises: _BrokenRule."""
        for a in v.args:
            self.check_operand(a)
        if v.op in OPERANDS:
            _fail("a constant, parameter or loop operand must not be a statement", v)
        if v.op == "load":
            self.check_load(v)
        elif v.op in ALL_OPS:
            self.check_operation(v)
        else:
            _fail("the operation must be one of the kernel IR", v)
        self.define(v)

    def check_load(self, v: Value) -> None:
        """Check a load's buffer, access, dtype, index and condition. Raises: _BrokenRule."""
        self.check_access(v.attr, "r", v)
        if v.dtype is not v.buffer.dtype:
            _fail("a load must have its buffer's dtype", v)
        if len(v.args) not in (1, 2):
            _fail("a load must have an index, and at most a condition", v)
        self.check_index(v.index, v.when, v)

    def check_access(self, buffer: object, letter: str, where: object) -> None:
        """Raise _BrokenRule if a buffer is undeclared or its access lacks `letter` ("r" or "w")."""
        if not isinstance(buffer, Buffer) or id(buffer) not in self.buffers:
            _fail("a buffer must be declared by the kernel", where)
        if letter not in buffer.access:
            _fail(f"a buffer of access {buffer.access!r} must not be accessed as {letter!r}", where)
        if buffer.length and not buffer.shared and self.parallel_loops:
            _fail("a private array must be accessed outside of map and reduce loops", where)

    def check_index(self, index: Value, when: Value | None, where: object) -> None:
        """Raise _BrokenRule if an index or a condition has the wrong dtype."""
        if index.dtype is not self.kernel.index:
            _fail(f"an index into a buffer must be {self.kernel.index.name}", where)
        if when is not None and when.dtype is not bool_:
            _fail("a condition must be bool", where)

    def check_operation(self, v: Value) -> None:
        """Check an operation's arguments and dtypes by the table of ops. Raises: _BrokenRule."""
        count, kinds, out = ALL_OPS[v.op]
        if len(v.args) != count:
            _fail(f"{v.op} must have {count} arguments", v)
        args = v.args
        if v.op == "where":
            if args[0].dtype is not bool_:
                _fail("the first argument of where must be bool", v)
            args = args[1:]
        for a in args:
            if a.dtype.kind not in kinds or a.dtype is not args[0].dtype:
                _fail(f"{v.op} must have arguments of one dtype, of kinds {kinds}", v)
            if v.op != "cast":
                self.check_computable(a.dtype, v)
        first = args[0].dtype
        expected = {
            "same": first,
            "b": bool_,
            "attr": v.dtype,
            "part": first.part,
            "complex": complex64 if first is float32 else complex128,
        }[out]
        if v.dtype is not expected:
            _fail(f"{v.op} must return {expected.name}", v)
        if v.op == "cast" and (v.dtype.kind == "c") != (first.kind == "c"):
            _fail("a cast must be from complex to complex, or from real to real", v)
        if v.op == "bitcast":
            self.check_computable(v.dtype, v)
            if v.dtype.itemsize != args[0].dtype.itemsize or v.dtype is bool_:
                _fail("a bitcast must keep the size and must not return bool", v)

    def check_effect(self, s: Store | Atomic) -> None:
        """Check a store's or an atomic's operands, access and dtypes. Raises: _BrokenRule."""
        for v in (s.index, s.value, *(() if s.when is None else (s.when,))):
            self.check_operand(v)
        self.check_access(s.buffer, "w", s)
        self.check_index(s.index, s.when, s)
        if s.value.dtype is not s.buffer.dtype:
            _fail("a stored value must have the buffer's dtype", s)
        if isinstance(s, Atomic) and (s.op not in _ATOMICS or not s.value.dtype.is_integer):
            _fail(f"an atomic must be one of {', '.join(_ATOMICS)} on integers", s)
        if isinstance(s, Atomic) and s.buffer.length:
            _fail("an atomic must be on a buffer, and not on a private array", s)

    def check_loop(self, s: Loop) -> None:
        """Check a loop and its body, and add its results to the scope. Raises: _BrokenRule."""
        for v in (s.start, s.stop, *s.init):
            self.check_operand(v)
        index = self.kernel.index
        if not s.start.dtype is s.stop.dtype is s.var.dtype is index:
            _fail(f"a loop's bounds and variable must be {index.name}", s)
        self.define(s)
        {"map": self.check_map, "reduce": self.check_reduce, "fold": self.check_fold}.get(
            s.kind, self.check_no_loop
        )(s)
        outside = set(self.in_scope)
        self.add_to_scope(s, (s.var,), "loopvar")
        self.add_to_scope(s, s.carry, "carry")
        self.parallel_loops += s.kind != "fold"
        self.check_block(s.body)
        self.parallel_loops -= s.kind != "fold"
        for u in s.update:
            self.check_operand(u)
        if tuple(x for x in s.body if not isinstance(x, Value)) != tuple(s.effects):
            _fail("a loop's effects must be the effects in its body", s)
        self.in_scope = outside
        self.add_to_scope(s, s.results, "result")

    def add_to_scope(self, loop: Loop, values: Iterable[Value], op: str) -> None:
        """Check the variable, carries or results of a loop and add them to the scope."""
        for i, v in enumerate(values):
            if v.op != op or v.attr != (loop, i):
                _fail(f"the loop's {op} {i} must name the loop and its position", v)
            self.check_computable(v.dtype, v)
            self.in_scope.add(id(v))

    def check_no_loop(self, s: Loop) -> None:
        """Raise _BrokenRule for a loop of an unknown kind."""
        _fail("a loop must be a map, a reduce or a fold", s.kind)

    def check_map(self, s: Loop) -> None:
        """Raise _BrokenRule if a map has updates, carries, results or a combine."""
        if s.update or s.carry or s.init or s.results or s.combine:
            _fail("a map must have effects only", s)

    def check_reduce(self, s: Loop) -> None:
        """Check the combine, body, updates and results of a reduce. Raises: _BrokenRule."""
        if s.combine is None or not is_combine(s.combine) or s.carry:
            _fail("a reduce must have a known combine and no carries", s)
        if any(not isinstance(x, (Value, Loop)) for x in s.body):
            _fail("a reduce must have no effects", s)
        dtypes = tuple(u.dtype for u in s.update)
        rule = self.find_combine(s.combine, dtypes)
        if not len(s.update) == len(s.results) == len(rule.result):
            _fail(f"a reduce {s.combine} must have as many updates and results as its combine", s)
        if tuple(r.dtype for r in s.results) != dtypes:
            _fail("a reduce's results must have the dtypes of its updates", s)
        own = dtypes + tuple(v.dtype for v in rule.shared)
        if (s.init or rule.shared) and tuple(v.dtype for v in s.init) != own:
            _fail("a reduce's init must have the dtypes of its updates and of what it shares", s)

    def find_combine(self, name: str, dtypes: tuple[DType, ...]) -> Combine:
        """Return the combine of a name, its body checked. Raises: _BrokenRule if there is none."""
        try:
            rule = combine(name, dtypes)
        except (TypeError, IndexError, ValueError, OverflowError):
            _fail(f"there is no combine {name} of dtypes {', '.join(d.name for d in dtypes)}", name)
        for s in rule.body:
            self.check_operation(s)
        return rule

    def check_fold(self, s: Loop) -> None:
        """Raise _BrokenRule if a fold has a combine, or its values disagree in number or dtype."""
        if s.combine is not None:
            _fail("a fold must have no combine", s)
        columns = [tuple(v.dtype for v in vs) for vs in (s.init, s.carry, s.update, s.results)]
        if any(c != columns[0] for c in columns):
            _fail("a fold's inits, carries, updates and results must agree in number and dtype", s)
