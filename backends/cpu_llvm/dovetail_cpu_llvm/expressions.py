"""Values of the kernel IR as registers, at any width, and the environment that remembers them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from dovetail.extend import LANES, OPERANDS, Atomic, DType, Kernel, Value, bool_, int64

from .interleaved_access import Access, half_of_word, paired_accesses
from .ir_writer import FunctionWriter, Lane, Slot, constant, memory_type, scalar_type
from .memory_ops import MemoryOps
from .row_reuse import REUSE_ELEMENTS_MAX
from .schedule import CpuSchedule

Environment = dict[int, Lane]
"""Rendered values, by the id of the `Value`."""

# op -> {kinds of the operands: LLVM instruction of two operands}
_OPS: dict[str, dict[str, str]] = {
    "add": {"iu": "add", "f": "fadd"},
    "sub": {"iu": "sub", "f": "fsub"},
    "mul": {"iu": "mul", "f": "fmul"},
    "div": {"f": "fdiv"},
    "quo": {"i": "sdiv", "u": "udiv"},
    "rem": {"i": "srem", "u": "urem"},
    "shl": {"iu": "shl"},
    "shr": {"i": "ashr", "u": "lshr"},
    "and": {"biu": "and"},
    "or": {"biu": "or"},
    "xor": {"biu": "xor"},
    "lt": {"i": "icmp slt", "u": "icmp ult", "f": "fcmp olt"},
    "le": {"i": "icmp sle", "u": "icmp ule", "f": "fcmp ole"},
    "eq": {"biu": "icmp eq", "f": "fcmp oeq"},
    "ne": {"biu": "icmp ne", "f": "fcmp une"},
}
_INSTRUCTIONS = {
    (op, kind): word for op, rows in _OPS.items() for kinds, word in rows.items() for kind in kinds
}
_INTRINSICS = {op: op for op in ("fma", "sqrt", "trunc", "floor")} | {"rint": "roundeven"}
_FLOAT_CASTS = {"fi": "fptosi", "fu": "fptoui", "if": "sitofp", "uf": "uitofp", "bf": "uitofp"}


class TransposedTile(NamedTuple):
    """The rows of a block that are read from transposed copies on the stack."""

    copies: dict[int, str]  # address of the copy, by id of the load
    row: str  # the current row, counted from the block's first one
    first_column: str


class KeptRow(NamedTuple):
    """An array on the stack with a value of each iteration of a loop, if they fit there."""

    fits: str  # an i1
    type: str
    address: str


class Expressions:
    """Renders values in the environment of the current row.

    The schedule may render `jam` rows together; each row has its own environment.
    """

    def __init__(
        self, kernel: Kernel, schedule: CpuSchedule, memory: MemoryOps, params: Mapping[str, Lane]
    ) -> None:
        self.schedule, self.memory, self.writer = schedule, memory, memory.writer
        self.params = params
        self.index: list[Lane] = []  # position along each axis of the grid
        self.env: Environment = {}
        self.overrides: Environment = {}  # values that are known without being computed
        self.transposed: TransposedTile | None = None
        self.kept: dict[int, KeptRow] = {}  # by id of the value
        self.panel_results: dict[int, tuple[str, str]] = {}  # array, position of its vectors
        self.panel_column = ""  # the current vector's first column, counted from the panel's
        self.jam = 1
        self.in_branch = False
        self._envs = [self.env]
        self._rows: list[Lane] = []  # position of each row along the schedule's second axis
        self._second_accesses = paired_accesses(kernel.body)
        self._rendered: set[tuple[int, int]] = set()  # second accesses, each with its environment

    # --- environments

    def begin_rows(self, rows: Sequence[str]) -> None:
        """Render several rows together from now on, without values in common."""
        self.jam = len(rows)
        self.restore([{}] * self.jam)
        self._rows = [Lane(row) for row in rows]
        self._select_row(0)

    def end_rows(self) -> None:
        """Render one row at a time from now on, without values of those before."""
        self.jam = 1
        self.restore([{}])

    def each_row(self) -> Iterator[int]:
        """Yield the number of each row that is rendered together, and select it."""
        if self.jam == 1:
            yield 0
            return
        for j in range(self.jam):
            self._select_row(j)
            yield j
        self._select_row(0)

    def _select_row(self, row: int) -> None:
        """Make a row's environment and position current."""
        self.env, self.index[self.schedule.second_axis] = self._envs[row], self._rows[row]

    def share_with_rows(self, v: Value) -> None:
        """Copy a value's register from the current row to all other rows."""
        for env in self._envs[1:]:
            env[id(v)] = self.env[id(v)]

    def snapshot(self) -> list[Environment]:
        """Return copies of the environments, for `restore`."""
        return [dict(e) for e in (self._envs if self.jam > 1 else [self.env])]

    def restore(self, envs: Sequence[Environment]) -> None:
        """Replace the environments: values of another block do not dominate the next one."""
        self._envs = [dict(e) for e in envs]
        self.env = self._envs[0]
        self._rendered.clear()

    @contextmanager
    def branch(self) -> Iterator[None]:
        """Return a context that renders the current row alone, in a copy of its environment."""
        outer = self.env, self._envs, self.index, self.jam, self.in_branch
        self.env, self.index, self.jam = dict(self.env), list(self.index), 1
        self._envs, self.in_branch = [self.env], True
        self._rendered.clear()
        yield
        self.env, self._envs, self.index, self.jam, self.in_branch = outer
        self._rendered.clear()

    # --- values by name

    def lane(self, v: Value) -> Lane:
        """Return a value in the form that it has; render it and its operands on first use."""
        if v.op == "const":
            return Lane(constant(v))
        if v.op == "param":
            return self.params[v.name]
        if v.op == "index":
            return self.index[v.axis]
        if id(v) not in self.env:
            if v.op == "result":
                self.env[id(v)] = self._load_panel_result(v)
            elif v.op not in OPERANDS:
                for a in v.args:
                    self.lane(a)
                self.render(v)
        return self.env[id(v)]

    def uniform(self, v: Value) -> str:
        """Return the register of a uniform value. Raises: AssertionError if lanes differ."""
        lane = self.lane(v)
        assert lane.form == "uniform", v
        return lane.text

    def vector(self, v: Value) -> str:
        """Return a register with one element of the value for each lane."""
        return self.writer.vector(self.lane(v), v.dtype)

    def bind(self, v: Value, text: str) -> None:
        """Set a value to a register of the current width."""
        self.env[id(v)] = Lane(text, "uniform" if self.writer.width == 1 else "vector")

    def bind_slots(self, values: Sequence[Value], slots: Sequence[Slot]) -> None:
        """Set values to the contents of stack slots."""
        for v, slot in zip(values, slots, strict=True):
            self.bind(v, self.writer.load(slot))

    def keep(self, v: Value, count: str) -> None:
        """Reserve an array for a value of each of `count` iterations."""
        w, m = self.writer, memory_type(v.dtype)
        fits = w.let(f"icmp sle i64 {count}, {REUSE_ELEMENTS_MAX}")
        self.kept[id(v)] = KeptRow(fits, m, w.alloca(m, REUSE_ELEMENTS_MAX + LANES))

    def locate_kept(self, v: Value, variable: Value) -> str:
        """Render the address of a kept value in the iteration of a loop's variable."""
        w, row = self.writer, self.kept[id(v)]
        position = w.select_i64(row.fits, self.lane(variable).text, "0")
        return w.let(f"getelementptr {row.type}, ptr {row.address}, i64 {position}")

    def active(self, when: Value | None) -> str | None:
        """Render the mask of active lanes for which `when` holds; None stands for all lanes."""
        w = self.writer
        if when is None:
            return w.mask
        bits = self.vector(when)
        return bits if w.mask is None else w.let(f"and {w.vector_type('i1')} {w.mask}, {bits}")

    # --- operations

    def render(self, v: Value) -> None:
        """Render a value whose operands are rendered, or take its override; store the result."""
        override = self.overrides.get(id(v))
        self.env[id(v)] = override or (self._load(v) if v.op == "load" else self._compute(v))

    def _compute(self, v: Value) -> Lane:
        """Render an operation; return its result, uniform or affine if possible."""
        w = self.writer
        if w.width > 1 and (half := half_of_word(v)):
            word = self.lane(half[0])
            if word.form == "vector":
                return self._extract_half_words(word.text, half[1])
        lanes = [self.lane(a) for a in v.args]
        if all(x.form == "uniform" for x in lanes):
            return Lane(apply(w, v, [x.text for x in lanes], 1))
        if v.dtype is int64 and (affine := combine_affine(w, v.op, lanes)):
            return affine
        if v.op in ("lt", "le") and lanes[0].has_stride(1) and lanes[1].form == "uniform":
            count = w.let(f"sub i64 {lanes[1].text}, {lanes[0].text}")
            count = w.i64("add", count, "1") if v.op == "le" else count
            return Lane(w.prefix_mask(count, w.width), "vector")
        args = [w.vector(x, a.dtype) for x, a in zip(lanes, v.args, strict=True)]
        return Lane(apply(w, v, args, w.width), "vector")

    def _extract_half_words(self, words: str, which: int) -> Lane:
        """Render one float32 half of each 64-bit word by a single shuffle."""
        w = self.writer
        floats = f"<{2 * w.width} x float>"
        text = w.let(f"bitcast {w.vector_type('i64')} {words} to {floats}")
        return Lane(w.shuffle(floats, text, text, range(which, 2 * w.width, 2)), "vector")

    # --- loads

    def _load(self, v: Value) -> Lane:
        """Render a load, or take that of an earlier pair; inactive lanes are zero."""
        w, memory = self.writer, self.memory
        if self.pop_rendered(v):
            return self.env[id(v)]
        second = self.second_access(v)
        if second is not None:
            pointer, active = memory.element(v.buffer, self.lane(v.index).text), self.active(v.when)
            pair = memory.load_pair(v.dtype, memory.guard_row(pointer, active), active)
            first, self.env[id(second)] = (Lane(text, "vector") for text in pair)
            return first
        if self.transposed is not None and id(v) in self.transposed.copies:
            text = self._load_transposed(v, self.transposed)
        elif all(self.lane(a).form == "uniform" for a in v.args):
            pointer = self.element(v)
            text = w.let(f"load {memory_type(v.dtype)}, ptr {pointer}, align {v.dtype.itemsize}")
            return Lane(memory.from_memory(v.dtype, text, 1))
        else:
            active = self.active(v.when)
            text = memory.load_vector(v.buffer, self.lane(v.index), active)
        return Lane(memory.from_memory(v.dtype, text, w.width), "vector")

    def second_access(self, first: Access) -> Access | None:
        """Return the access to render together with `first`, and mark it rendered, or None."""
        second = self._second_accesses.get(id(first))
        if second is None or self.writer.width == 1 or not self.lane(first.index).has_stride(2):
            return None
        self._rendered.add((id(second), id(self.env)))
        return second

    def pop_rendered(self, access: Access) -> bool:
        """Return True, once, if an access was rendered together with the one before it."""
        key = id(access), id(self.env)
        is_rendered = key in self._rendered
        self._rendered.discard(key)
        return is_rendered

    def element(self, access: Access | Atomic) -> str:
        """Render the address of a uniform access, or of a scratch slot if its `when` is false."""
        pointer = self.memory.element(access.buffer, self.uniform(access.index))
        when = access.when
        return pointer if when is None else self.memory.guard(pointer, self.uniform(when))

    def _load_transposed(self, v: Value, tile: TransposedTile) -> str:
        """Render the load of a row from the transposed copy on the stack."""
        w, m = self.writer, memory_type(v.dtype)
        across = w.let(f"sub i64 {self.index[-1].text}, {tile.first_column}")
        down = w.let(f"mul i64 {tile.row}, {self.schedule.tile}")
        position = w.let(f"add i64 {down}, {across}")
        pointer = w.let(f"getelementptr {m}, ptr {tile.copies[id(v)]}, i64 {position}")
        return self.memory.load_row(v.dtype, pointer, None)

    def _load_panel_result(self, v: Value) -> Lane:
        """Render the load of a reduction's result for the current columns of a panel."""
        w, (array, base) = self.writer, self.panel_results[id(v)]
        position = w.let(f"mul i64 {base}, {self.schedule.width}")
        position = w.let(f"add i64 {position}, {self.panel_column}")
        pointer = w.let(f"getelementptr {memory_type(v.dtype)}, ptr {array}, i64 {position}")
        text = self.memory.load_row(v.dtype, pointer, None)
        return Lane(self.memory.from_memory(v.dtype, text, w.width), "vector")


# --- instructions


def combine_affine(w: FunctionWriter, op: str, lanes: Sequence[Lane]) -> Lane | None:
    """Render a sum, difference, multiple or choice of affine values; None if not affine."""
    if any(x.form == "vector" for x in lanes):
        return None
    if op == "where":
        condition, a, b = lanes
        text = w.select_i64(condition.text, a.text, b.text)
        if a.stride == b.stride:
            return Lane(text, "affine", a.stride)
        return Lane(text, "affine", w.select_i64(condition.text, a.stride, b.stride))
    if op in ("add", "sub"):
        a, b = lanes
        return Lane(w.i64(op, a.text, b.text), "affine", w.i64(op, a.stride, b.stride))
    if op == "mul" and lanes[0].form != lanes[1].form:
        factor, line = sorted(lanes, key=lambda x: x.form == "affine")
        text = w.i64("mul", line.text, factor.text)
        return Lane(text, "affine", w.i64("mul", line.stride, factor.text))
    return None


def apply(w: FunctionWriter, v: Value, args: Sequence[str], width: int) -> str:
    """Render one operation on scalars (width 1) or vectors. Raises: LookupError if unknown."""
    source = v.args[-1].dtype
    s, d = scalar_type(source), scalar_type(v.dtype)
    t = w.vector_type(s, width)
    if v.op in ("quo", "rem") and width > 1 and w.mask:
        # An inactive lane may divide by zero, and vector divisions trap.
        args = args[0], w.select(w.mask, t, args[1], f"splat ({s} 1)", width)
    if instruction := _INSTRUCTIONS.get((v.op, source.kind)):
        return w.let(f"{instruction} {t} {args[0]}, {args[1]}")
    if intrinsic := _INTRINSICS.get(v.op):
        suffix = f"f{source.bits}" if width == 1 else f"v{width}f{source.bits}"
        return w.let(f"call {t} @llvm.{intrinsic}.{suffix}({', '.join(f'{t} {a}' for a in args)})")
    match v.op:
        case "where":
            return w.select(args[0], t, args[1], args[2], width)
        case "cast":
            return cast(w, args[0], source, v.dtype, width)
        case "bitcast":
            target = w.vector_type(d, width)
            return args[0] if s == d else w.let(f"bitcast {t} {args[0]} to {target}")
        case "not":
            return w.let(f"xor {t} {args[0]}, {'-1' if width == 1 else f'splat ({s} -1)'}")
        case "neg" if source.kind == "f":
            return w.let(f"fneg {t} {args[0]}")
        case "neg":
            return w.let(f"sub {t} {'0' if width == 1 else 'zeroinitializer'}, {args[0]}")
    raise LookupError(f"{v.op} of {source.name} has no instruction")


def cast(w: FunctionWriter, a: str, source: DType, target: DType, width: int) -> str:
    """Render a cast of scalars or vectors; equal LLVM types need no instruction."""
    s, d = (w.vector_type(scalar_type(x), width) for x in (source, target))
    if s == d:
        return a
    if target is bool_:
        zero = "zeroinitializer" if width > 1 else ("0.0" if source.kind == "f" else "0")
        return w.let(f"{'fcmp une' if source.kind == 'f' else 'icmp ne'} {s} {a}, {zero}")
    kinds = source.kind + target.kind
    if kinds == "ff":
        op = "fpext" if target.bits > source.bits else "fptrunc"
    elif kinds in _FLOAT_CASTS:
        op = _FLOAT_CASTS[kinds]
    elif source is not bool_ and target.bits < source.bits:
        op = "trunc"
    else:
        op = "sext" if source.kind == "i" else "zext"
    return w.let(f"{op} {s} {a} to {d}")
