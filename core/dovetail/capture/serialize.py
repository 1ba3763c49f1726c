"""Programs as plain data, and back: what `save_function` and `load_function` are made of.

What is read is checked as it is made: every place lies in the memory that there is, every kernel
obeys the rules of the loop language, and stays within its buffers for the sizes of its launch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, TypeAlias

from ..backend import limits
from ..backend.faults import WIDTH, Asked
from ..backend.streams import current_handle
from ..device import Device
from ..device import opened as open_device
from ..dtypes import dtype, int64
from ..engine import programs, recording
from ..engine.programs import BoundStep
from ..engine.traced_numbers import Environment, Number, TracedFloat
from ..errors import CaptureError
from ..fusion.plan import Step
from ..layout import Shape, StridedView, contiguous, span
from ..loops.bounds import reach
from ..loops.builder import Kernel
from ..loops.parser import parse_kernel
from ..loops.verify import verify
from ..memory.storage import Storage, storage_at
from ..ops import host_routines
from ..ops.host_routines import HostCall
from ..ops.table import ARGSORT, MATMUL, SORT, TABLE, Op
from .forms import Branch, Carried, Part, Repeat, Scanned, While
from .program import Act, Call, Effect, Fill, HostStep, Launch, Place, Program, Strided

Json: TypeAlias = Any  # what files hold: numbers, texts, lists, and dicts of them

Range = tuple[int, int]  # bytes that may be touched, from where a slot begins
FORMULAS = {
    f.__name__: f
    for f in (
        operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
        operator.mod, operator.pow, operator.neg, operator.pos, operator.abs,
    )
}  # fmt: skip


# --- writing --------------------------------------------------------------------------------------


class Writer:
    """Makes plain data of programs; kernels and bytes are kept aside, each once."""

    def __init__(self) -> None:
        self.kernels: dict[str, int] = {}
        self.blobs: list[bytes] = []

    def content(self) -> dict[str, Json]:
        """What programs refer to."""
        return {"kernels": list(self.kernels), "blobs": [len(b) for b in self.blobs]}

    def blob(self, values: bytes) -> int:
        """The number of a run of bytes."""
        self.blobs.append(values)
        return len(self.blobs) - 1

    def environment(self, e: Environment) -> Json:
        """The numbers that differ from call to call."""
        formulas = [[v, f.__name__, [list(n) for n in given]] for v, f, given in e.formulas]
        return {"values": e.values, "formulas": formulas}

    def program(self, p: Program) -> Json:
        """A program."""
        return {
            "inputs": p.inputs,
            "held": [self.memory(s) for s in p.held],
            "sizes": list(p.sizes),
            "arena": p.arena,
            "written": sorted(p.written),
            "acts": [self._act(a) for a in p.acts],
        }

    def memory(self, s: Storage) -> int:
        """Return the number of the blob that holds what is in this storage now."""
        values = bytearray(s.nbytes)
        if values:
            backend, stream = open_device(s.device).backend, current_handle(s.device)
            backend.copy_out(memoryview(values), s.ptr.handle, s.ptr.offset, stream)
        return self.blob(bytes(values))

    def _act(self, a: Act) -> Json:
        if isinstance(a, Launch):
            return self._launch(a)
        if isinstance(a, Call):
            return ["call", a.op.name, [_strided(x) for x in (*a.inputs, a.output)], a.nbytes]
        if isinstance(a, HostStep):
            c, parts = a.call, [[_strided(x) for x in part] for part in (a.operands, a.results)]
            instead = None if c.instead is None else c.instead.name
            return ["host", c.name, c.routine.name, list(c.options), c.checks, instead, *parts]
        if isinstance(a, Fill):
            return ["fill", list(a.place), self.blob(a.values)]
        if isinstance(a, Effect):
            return self._effect(a)
        if isinstance(a, Repeat):
            bounds = [list(b) if isinstance(b, Place) else b for b in a.bounds]
            return [
                "repeat", self._part(a.body), bounds, a.variable, self._carried(a.carried),
                [[list(x.place), x.step] for x in a.inputs],
                [[list(x.place), x.step] for x in a.results], a.reverse,
            ]  # fmt: skip
        if isinstance(a, While):
            parts = [self._part(a.condition), self._part(a.body)]
            return ["while", *parts, list(a.truth), self._carried(a.carried)]
        if isinstance(a, Branch):
            parts = [self._part(p) for p in a.chosen]
            return ["branch", *parts, list(a.truth), [list(p) for p in a.results]]
        raise CaptureError(f"save_function: {type(a).__name__} is in no file")

    def _launch(self, a: Launch) -> Json:
        step, text = a.planned, str(a.planned.kernel)
        cells = {slot: asked for slot, _, asked in step.checks}
        buffers = [
            ["cell", *cells[slot]] if slot in cells else list(p)
            for (slot, _), p in zip(step.buffers, a.buffers, strict=True)
        ]
        kernel = self.kernels.setdefault(text, len(self.kernels))
        numbers = [list(n) for n in a.numbers]
        return ["launch", kernel, list(step.ints), list(step.grid), buffers, numbers, step.nbytes]

    def _effect(self, a: Effect) -> Json:
        action = a.action
        if isinstance(action, partial) and action.func == recording.default_reserve:
            return ["draw", action.args[0], a.variable]
        raise CaptureError(
            "save_function: only draws from the default random generator are in a file, no other "
            "generators, no seeds, and no numbers that the host gives, as an optimiser's rate is"
        )

    def _part(self, p: Part) -> Json:
        arena = None if p.arena is None else list(p.arena)
        return [self.program(p.program), [list(x) for x in p.outer], arena]

    def _carried(self, carried: Sequence[Carried]) -> Json:
        return [
            [
                list(c.first), list(c.buffer), None if c.other is None else list(c.other),
                self.program(c.copy),
            ]
            for c in carried
        ]  # fmt: skip


def _strided(x: Strided) -> Json:
    return [list(x.place), list(x.shape), list(x.strides), x.dtype.name]


# --- reading --------------------------------------------------------------------------------------


def within(n: Json, end: int) -> int:
    """A number in 0..end-1. Raises: ValueError."""
    if type(n) is not int or not 0 <= n < end:
        raise ValueError(f"{n!r} is out of range")
    return n


def _fits(op: Op, inputs: Sequence[Shape], output: Shape) -> bool:
    """Whether operands of these shapes are what a vendor's routine for an op may be given."""
    if op is MATMUL and len(inputs) == 2:
        a, b = inputs
        return a[-1] == b[-2] and output == (*a[:-1], b[-1]) and a[:-2] == b[:-2]
    return op in (SORT, ARGSORT) and list(inputs) == [output] and output != ()


def natural(shape: Json) -> tuple[int, ...]:
    """Sizes. Raises: ValueError."""
    return tuple(within(n, 1 << 62) for n in shape)


def whole(numbers: Json, count: int) -> tuple[int, ...]:
    """So many integers. Raises: ValueError."""
    found = tuple(within(abs(n), 1 << 62) * (1 if n >= 0 else -1) for n in numbers)
    if len(found) != count:
        raise ValueError(f"{len(found)} numbers where there must be {count}")
    return found


class Reader:
    """Makes programs of plain data, for a device."""

    def __init__(self, content: Json, blobs: memoryview, device: Device) -> None:
        self.opened, self.device = open_device(device), device
        self.kernels = [_kernel(str(text)) for text in content["kernels"]]
        sizes = natural(content["blobs"])
        ends = [*accumulate(sizes)]
        if ends and ends[-1] != len(blobs):
            raise ValueError(f"{len(blobs)} bytes where there must be {ends[-1]}")
        self.blobs = [bytes(blobs[e - n : e]) for n, e in zip(sizes, ends, strict=True)]
        self.made: Environment = Environment()

    def blob(self, n: Json) -> bytes:
        """A run of bytes."""
        return self.blobs[within(n, len(self.blobs))]

    def put(self, storage: Storage, values: bytes) -> None:
        """Copies them into memory."""
        ptr = storage.ptr
        if values:
            stream = current_handle(self.device)
            self.opened.backend.copy_in(ptr.handle, ptr.offset, memoryview(values), stream)

    def environment(self, e: Json) -> Environment:
        """The numbers that differ from call to call; read before programs are."""
        self.made.values = [_number(x) for x in e["values"]]
        for variable, name, given in e["formulas"]:
            numbers = tuple(self.number(n) for n in given)
            self.made.formulas.append((self.variable(variable), FORMULAS[name], numbers))
        return self.made

    def variable(self, n: Json) -> int:
        """The number of a variable."""
        return within(n, len(self.made.values))

    def number(self, n: Json) -> Number:
        """A scalar."""
        value, variable = n
        return Number(_number(value), None if variable is None else self.variable(variable))

    def traced(self, n: Json) -> TracedFloat:
        """What stands for a variable among results."""
        return TracedFloat(self.made, 0.0, self.variable(n))

    def program(self, p: Json, given: Sequence[Range], name: str = "") -> Program:
        """A program whose inputs may be touched as far as `given`."""
        if len(given) != p["inputs"]:
            raise ValueError(f"{p['inputs']} inputs where there are {len(given)}")
        held = [self.memory(b) for b in p["held"]]
        sizes, arena = natural(p["sizes"]), within(p["arena"], 1 << 62)
        slots = [*given, *((0, s.nbytes) for s in held), *((0, n) for n in sizes)]
        slots += [(0, arena)] if arena else []
        acts = tuple(self._act(a, slots) for a in p["acts"])
        written = {x.slot for a in acts for x in a.written}
        first = len(given) + len(held)
        return Program(
            self.opened, len(given), tuple(held), sizes, arena, acts,
            frozenset(i for i in written if i < first), name,
        )  # fmt: skip

    def memory(self, blob: Json) -> Storage:
        """Return new memory that holds a blob."""
        values = self.blob(blob)
        ptr = self.opened.allocator.allocate(len(values), current_handle(self.device))
        made = storage_at(ptr, len(values), self.device)
        self.put(made, values)
        return made

    # --- acts
    def _act(self, a: Json, slots: Sequence[Range]) -> Act:
        kind, *rest = a
        makers: dict[str, Callable[..., Act]] = {
            "launch": self._launch, "call": self._call, "fill": self._fill, "draw": self._draw,
            "host": self._host, "repeat": self._repeat, "while": self._while,
            "branch": self._branch,
        }  # fmt: skip
        return makers[kind](slots, *rest)

    def _place(self, slots: Sequence[Range], p: Json, low: int, high: int) -> Place:
        """A place of which the bytes from `low` to `high` are touched."""
        slot, offset = p
        least, most = slots[within(slot, len(slots))]
        (offset,) = whole([offset], 1)
        if high > low and not least <= offset + low <= offset + high <= most:
            raise ValueError(
                f"bytes {offset + low}..{offset + high} of {least}..{most} are touched"
            )
        return Place(slot, offset)

    def _launch(
        self, slots: Sequence[Range], kernel: Json, ints: Json, grid: Json, buffers: Json,
        numbers: Json, nbytes: Json,
    ) -> Launch:  # fmt: skip
        k = self.kernels[within(kernel, len(self.kernels))]
        sizes, extents = whole(ints, len(k.ints)), natural(grid)
        known = dict(zip(k.ints, sizes, strict=True))
        wanted = tuple(known[e.name] if e.op == "param" else e.number for e in k.grid)
        if extents != wanted or len(buffers) != len(k.buffers) or len(numbers) != len(k.scalars):
            raise ValueError(f"a launch does not fit its kernel {k.name}")
        touched = reach(k, sizes, extents)
        places, checks = [], []
        for i, (b, given) in enumerate(zip(k.buffers, buffers, strict=True)):
            size = b.dtype.itemsize
            low, high = touched.get(b.name, (0, -1))
            if given[0] == "cell":
                _, op, axis, extent = given
                self._place([(0, WIDTH)], (0, 0), low * size, (high + 1) * size)
                checks.append((i, 0, Asked(str(op), int(axis), int(extent))))
                places.append(Place(0, 0))
            else:
                places.append(self._place(slots, given, low * size, (high + 1) * size))
                if places[-1].offset % size:
                    raise ValueError(f"a place in {k.name} is not aligned")
        step = Step(
            k, tuple((i, 0) for i in range(len(places))), (), sizes, (), extents, (),
            within(nbytes, 1 << 62), tuple(checks),
        )  # fmt: skip
        run = limits.bind(self.opened.backend, programs.program(self.opened, k), sizes, extents)
        bound = BoundStep(step, 0, run)
        found = tuple(self.number(n) for n in numbers)
        return Launch(bound, tuple(places), found, (None,) * len(checks))

    def _operand(self, slots: Sequence[Range], x: Json) -> Strided:
        place, shape, strides, kind = x
        d, sizes = dtype(str(kind)), natural(shape)
        steps = whole(strides, len(sizes))
        low, high = span(StridedView(sizes, steps, 0))
        p = self._place(slots, place, low * d.itemsize, high * d.itemsize)
        return Strided(p, sizes, steps, d)

    def _call(self, slots: Sequence[Range], name: Json, operands: Json, nbytes: Json) -> Call:
        made = [self._operand(slots, x) for x in operands]
        op, inputs, output = TABLE[str(name)], made[:-1], made[-1]
        if (op.name, inputs[0].dtype) not in self.opened.library_calls:
            raise ValueError(f"{self.device} has no routine for {op.name}")
        shapes = [x.shape for x in inputs]
        result = int64 if op is ARGSORT else output.dtype
        same = all(x.dtype is inputs[0].dtype for x in inputs)
        if not same or output.dtype is not result or not _fits(op, shapes, output.shape):
            raise ValueError(f"a routine for {op.name} does not fit its operands, {shapes}")
        return Call(op, tuple(inputs), output, within(nbytes, 1 << 62))

    def _host(
        self, slots: Sequence[Range], name: Json, routine: Json, options: Json, checks: Json,
        instead: Json, *parts: Json,
    ) -> HostStep:  # fmt: skip
        other = None if instead is None else host_routines.TABLE[str(instead)]
        given = tuple(_plain(x) for x in options)
        call = HostCall(
            str(name), host_routines.TABLE[str(routine)], given, checks is True, other
        )  # fmt: skip
        operands, results = (tuple(self._operand(slots, x) for x in part) for part in parts)
        wanted = call.results([(x.shape, x.dtype) for x in operands])
        if wanted != [(x.shape, x.dtype) for x in results] or any(
            x.strides != contiguous(x.shape).strides for x in (*operands, *results)
        ):
            raise ValueError(f"the host routine {routine} does not fit its operands")
        return HostStep(call, operands, results)

    def _fill(self, slots: Sequence[Range], place: Json, blob: Json) -> Fill:
        values = self.blob(blob)
        return Fill(self._place(slots, place, 0, len(values)), values)

    def _draw(self, slots: Sequence[Range], n: Json, variable: Json) -> Effect:
        reserve = recording.default_reserve
        assert reserve is not None, "random is not imported"
        self.variable(variable + 1)
        return Effect(partial(reserve, within(n, 1 << 64)), self.variable(variable))

    # --- loops and branches
    def _part(self, slots: Sequence[Range], part: Json, given: Sequence[Range]) -> Part:
        """A program in another, given some of its inputs; the others are the other's."""
        inner, outer, arena = part
        places = tuple(self._place(slots, p, 0, 0) for p in outer)
        seen = [(slots[p.slot][0] - p.offset, slots[p.slot][1] - p.offset) for p in places]
        program = self.program(inner, [*given, *seen])
        if (arena is None) != (not program.arena):
            raise ValueError("a program has no arena")
        own = None if arena is None else self._place(slots, arena, 0, program.arena)
        return Part(program, places, own)

    def _carry(
        self, slots: Sequence[Range], carried: Json
    ) -> tuple[tuple[Carried, ...], list[int]]:
        found, sizes = [], []
        for first, buffer, other, copy in carried:
            (n,) = natural(copy["sizes"])
            made = [
                None if p is None else self._place(slots, p, 0, n) for p in (first, buffer, other)
            ]
            assert made[0] is not None and made[1] is not None
            found.append(Carried(made[0], made[1], made[2], self.program(copy, [(0, n)])))
            sizes.append(n)
        return tuple(found), sizes

    def _results(self, part: Part, sizes: Sequence[int]) -> None:
        if part.program.sizes != tuple(sizes):
            raise ValueError(f"results of {part.program.sizes} bytes where {sizes} are expected")

    def _scan(self, slots: Sequence[Range], scanned: Json, rounds: int) -> tuple[Scanned, ...]:
        return tuple(
            Scanned(self._place(slots, p, 0, within(step, 1 << 62) * rounds), step)
            for p, step in scanned
        )

    def _repeat(
        self, slots: Sequence[Range], body: Json, bounds: Json, variable: Json, carried: Json,
        inputs: Json, results: Json, reverse: Json,
    ) -> Repeat:  # fmt: skip
        low, high = (
            self._place(slots, b, 0, 8) if isinstance(b, list) else whole([b], 1)[0] for b in bounds
        )
        if inputs or results:
            assert isinstance(low, int) and isinstance(high, int)
        rounds = max(high - low, 0) if isinstance(low, int) and isinstance(high, int) else 0
        carry, sizes = self._carry(slots, carried)
        xs, ys = (self._scan(slots, x, rounds) for x in (inputs, results))
        part = self._part(slots, body, [(0, n) for n in (*sizes, *(x.step for x in xs))])
        fresh = [n for n, c in zip(sizes, carry, strict=True) if c.other is not None]
        self._results(part, [*fresh, *(y.step for y in ys)])
        index = None if variable is None else self.variable(variable)
        return Repeat(part, (low, high), index, carry, xs, ys, bool(reverse))

    def _while(
        self, slots: Sequence[Range], condition: Json, body: Json, truth: Json, carried: Json
    ) -> While:
        carry, sizes = self._carry(slots, carried)
        asked, done = (self._part(slots, p, [(0, n) for n in sizes]) for p in (condition, body))
        self._results(asked, [1])
        self._results(done, [n for n, c in zip(sizes, carry, strict=True) if c.other is not None])
        return While(asked, self._place(slots, truth, 0, 1), done, carry)

    def _branch(
        self, slots: Sequence[Range], yes: Json, no: Json, truth: Json, results: Json
    ) -> Branch:
        parts = self._part(slots, yes, []), self._part(slots, no, [])
        sizes = parts[0].program.sizes
        self._results(parts[1], sizes)
        places = tuple(self._place(slots, p, 0, n) for p, n in zip(results, sizes, strict=True))
        return Branch(self._place(slots, truth, 0, 1), parts, places)


def _kernel(text: str) -> Kernel:
    kernel = parse_kernel(text)
    verify(kernel)
    return kernel


def _plain(x: Json) -> float | int | bool | str:
    """An option of a host routine. Raises: ValueError."""
    return x if type(x) is str else _number(x)


def _number(x: Json) -> float | int | bool:
    if type(x) not in (bool, int, float):
        raise ValueError(f"{x!r} is no number")
    return x  # type: ignore[no-any-return]  # it is one
