"""What is known of a captured function after its first call, and the later calls made of that."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isroutine
from types import MethodType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..engine.traced_numbers import Environment, TracedFloat
from ..graph.expr import Expr, Spec, leaf, storage_of
from ..layout import Shape
from ..memory import DataPtr
from ..memory.storage import storage_at
from ..settings import Settings
from ..tensor.other_layouts import LayoutTensor
from ..tensor.tensor import Tensor, make
from .closures import CONTAINERS, NUMBERS, ClosurePath
from .executable import (
    A_NUMBER,
    A_TENSOR,
    AN_ARRAY,
    AS_ARGUMENT,
    AS_READ,
    LEAF,
    NONE,
    NOTHING,
    NOTHING_CHECKED,
    OF_TYPE,
    OTHER,
    THE_SAME,
    TUPLE,
    Beside,
    Call,
    Given,
    Read,
    Wanted,
)
from .program import Place, Program
from .pytree import Flat, Static, array_key, static_key


class Candidate:
    """A tensor that a function may use: an argument, one that it finds, or the gradient of one."""

    def __init__(
        self, tensor: Tensor, argument: int | None = None, path: ClosurePath | None = None,
        gradient_of: Candidate | None = None,
    ) -> None:  # fmt: skip
        self.tensor, self.argument, self.path = tensor, argument, path
        self.gradient_of = gradient_of
        self.input: int | None = None  # its number among the program's inputs, if it is one
        self.tape = tensor._expr.tape  # before

    @property
    def taped(self) -> bool:
        """Whether it required a gradient."""
        return self.tape is not None

    @property
    def expr(self) -> Expr:
        """Its node."""
        return self.tensor._expr

    def forget(self) -> Tensor:
        """Keeps of the tensor only what it is like, which comes back."""
        e = self.tensor._expr
        spec, strides, offset = e.spec, e.spec.strides, 0
        if e.op is None:
            strides, offset = e.strides, e.offset
        ptr = DataPtr(None, 0, 0, spec.device)
        self.tensor = make(leaf(storage_at(ptr, 0, spec.device), spec, strides, offset))
        self.tape = None
        return self.tensor


class Made(NamedTuple):
    """A result: a tensor that is a candidate, or a view of an input, a constant or new memory."""

    same: Candidate | None
    place: Place
    spec: Spec
    strides: Shape


class Position(int):
    """Which of the tensors made stands at a leaf of the result."""


Gradient: TypeAlias = tuple[Candidate, int | None]  # whose, and which result it is


class Facts(NamedTuple):
    """All that is known of what a function did, of which a call is made."""

    name: str
    program: Program
    leaves: Sequence[object]  # of the arguments
    tree: object  # of the arguments; None where there are no containers
    settings: Settings | None  # of the context; None where they do not matter
    candidates: list[Candidate]
    inputs: list[Candidate]
    environment: Environment
    floats: list[tuple[int, int]]  # leaf of the arguments -> variable
    made: list[Made]
    result: Flat  # leaves: positions in `made`, or values
    gradients: list[Gradient]
    closure: Sequence[ClosurePath] = ()
    arrays: Sequence[np.ndarray] = ()  # that tensors were made of
    saved: int | None = None  # where gradients flow: so many of `made`, the last, are for that


def call_of(facts: Facts) -> Call:
    """What replays a capture, and says where that is for other arguments."""
    return _Maker(facts).call


def numbered_call(facts: Facts) -> tuple[Call, dict[int, int]]:
    """The same, and by the ids of candidates the numbers of their tensors."""
    maker = _Maker(facts)
    return maker.call, maker.numbers


class _Maker:
    """Makes it."""

    def __init__(self, facts: Facts) -> None:
        self.f, self.call = facts, Call()
        self.numbers: dict[int, int] = {}  # id of a candidate -> that of its tensor
        self.call.name, self.call.wanted, self.call.reads = facts.name, [], []
        self.reads: dict[int, int] = {}  # id of a place of the closure -> the number of its read
        self.arguments()
        for c in [*facts.inputs, *self.others(), *filter(self.is_needed, facts.candidates)]:
            self.number(c)
        self.add_closure_reads()
        self.sharing()
        self.memory()
        self.results()

    def arguments(self) -> None:
        """What the leaves of the arguments must be."""
        f, call = self.f, self.call
        call.count, call.tree, call.settings = len(f.leaves), f.tree, f.settings
        call.statics, call.floats = [], [*f.floats]
        by_leaf = {c.argument: c for c in f.candidates if c.argument is not None}
        for i, x in enumerate(f.leaves):
            if i in by_leaf:
                self.number(by_leaf[i])
            elif isinstance(x, Static):
                call.statics.append((i, x.value, x.key))

    def number(self, c: Candidate) -> int:
        """That of a candidate's tensor, which is read at each call."""
        if id(c) not in self.numbers:
            of = NONE if c.gradient_of is None else self.number(c.gradient_of)
            read = NONE if c.path is None else self.read(c.path)
            made = Wanted(c.expr, NONE if c.argument is None else c.argument, of, read)
            made.taped = c.taped
            if c.taped and c.tensor.is_leaf:
                made.gradient = int(any(g.gradient_of is c for g in self.f.candidates))
            self.numbers[id(c)] = len(self.call.wanted)
            self.call.wanted.append(made)
        return self.numbers[id(c)]

    def add_closure_reads(self) -> None:
        """Add a read for each path of the closure that decides what the function gives."""
        used = {id(c.tensor) for c in self.f.candidates if id(c) in self.numbers}
        for p in self.f.closure:
            if type(p.value) is Tensor:
                is_read = id(p.value) in used
            elif isinstance(p.value, np.ndarray):
                is_read = any(np.may_share_memory(p.value, a) for a in self.f.arrays)
            elif hasattr(type(p.value), "captured_for"):
                is_read = True
            else:
                is_empty = isinstance(p.value, CONTAINERS) and not p.value
                is_read = p.named and (is_empty or isinstance(p.value, NUMBERS))
            if is_read:
                self.read(p)
        for p in self.f.closure:  # code that runs beside the tensors
            if p.parent is not None and id(p.parent) in self.reads and callable(p.value):
                self.read(p)
        before = -1
        while before != len(self.reads):  # another name for a container leads to the same values
            before = len(self.reads)
            for p in self.f.closure:
                if p.again is not None and id(p.again) in self.reads:
                    self.read(p)

    def read(self, p: ClosurePath) -> int:
        """Return the number of the read of a place; its owners are read before."""
        waiting: list[ClosurePath] = []
        owner: ClosurePath | None = p
        while owner is not None and id(owner) not in self.reads:
            waiting.append(owner)
            owner = owner.owner
        for path in reversed(waiting):
            r = Read()
            r.parent = NONE if path.parent is None else self.reads[id(path.parent)]
            r.argument, r.key, r.is_item = path.argument, path.key, path.is_item
            r.root = path.value if path.parent is None and path.argument < 0 else None
            self.set_check(r, path)
            self.reads[id(path)] = len(self.call.reads)
            self.call.reads.append(r)
        return self.reads[id(p)]

    def set_check(self, r: Read, p: ClosurePath) -> None:
        """Set what the read of a path must find, from the value there after the capture."""
        r.check, r.expected, r.number = NOTHING_CHECKED, None, NONE
        value = p.value
        if type(value) is Tensor:
            r.check = A_TENSOR
            by_argument = (c.argument for c in self.f.candidates if c.tensor is value)
            argument = next(by_argument, None)
            if argument is not None:
                r.check, r.number = AS_ARGUMENT, argument
            elif p.again is not None:
                r.check, r.number = AS_READ, self.read(p.again)
        elif p.parent is None and p.argument < 0:
            return
        elif p.again is not None:
            r.check, r.number = AS_READ, self.read(p.again)
        elif isinstance(value, NUMBERS):
            r.check, r.root = A_NUMBER, p.read()
            r.expected = static_key(r.root)
        elif isinstance(value, np.ndarray):
            r.check, r.expected = AN_ARRAY, array_key(value)
        elif p.parent is not None and isinstance(p.parent.value, LayoutTensor):
            r.check, r.expected = THE_SAME, value  # a pattern, of which much is known
        elif isinstance(value, type) or (isroutine(value) and type(value) is not MethodType):
            r.check, r.expected = THE_SAME, value
        else:
            r.check, r.expected = OF_TYPE, type(value)
            r.number = len(value) if isinstance(value, CONTAINERS) else NONE

    def others(self) -> list[Candidate]:
        """What is no input, but lies over the memory of one."""
        used = {id(storage_of(c.expr)) for c in self.f.inputs}
        return [
            c
            for c in self.f.candidates
            if c.input is None and c.expr.op is None and id(storage_of(c.expr)) in used
        ]

    def is_needed(self, c: Candidate) -> bool:
        """Whether a tensor is needed though it is no input.

        Its `grad` is set, it is returned, gradients flow there.
        """
        if self.f.saved is not None and c.taped:
            return True
        return any(g is c for g, _ in self.f.gradients) or any(m.same is c for m in self.f.made)

    def sharing(self) -> None:
        """Which tensors share memory, and which must not."""
        call, program = self.call, self.f.program
        call.inputs = [self.number(c) for c in self.f.inputs]
        call.taped = sum(w.taped for w in call.wanted)
        call.beside = []
        for c in self.others():
            base = next(x for x in self.f.inputs if storage_of(x.expr) is storage_of(c.expr))
            apart = _begin(c.expr) - _begin(base.expr)
            call.beside.append(Beside(self.number(c), self.number(base), apart))
        call.written = [call.inputs[i] for i in sorted(program.written) if i < program.inputs]
        call.written_held = [
            program.held[i - program.inputs] for i in sorted(program.written) if i >= program.inputs
        ]

    def memory(self) -> None:
        """What the program is given, and the numbers that it reads."""
        call, program, environment = self.call, self.f.program, self.f.environment
        call.opened, call.device = program.opened, program.opened.device
        call.constants, call.held, call.sizes = program.held, program.begun(), [*program.sizes]
        call.sizes += [program.arena] if program.arena else []
        call.replay, call.template = program.replay, environment.values.copy()
        call.formulas = environment.formulas.copy()

    def results(self) -> None:
        """What is made of that."""
        call, f = self.call, self.f
        call.given = []
        for m in f.made:
            call.given.append(self.made(m, [x.place.slot for x in f.made]))
        call.gradients = [(self.number(c), NONE if k is None else k) for c, k in f.gradients]
        call.values, call.around = [_value(x) for x in f.result.leaves], Flat((), f.result.tree)
        call.form, call.flow = _form(f.result.tree), None

    def made(self, m: Made, slots: list[int]) -> Given:
        """How a result is made; `slots`: of all results."""
        given, program = Given(m.spec, m.strides, m.place.offset), self.f.program
        slot = m.place.slot
        held = slot - program.inputs
        if m.same is not None:
            given.same = self.number(m.same)
        elif held < 0:
            given.source = self.number(self.f.inputs[slot])
        elif held < len(program.held):
            given.held = program.held[held]
        else:
            given.made = held - len(program.held)
        given.hidden = len(self.call.given) >= len(slots) - (self.f.saved or 0)
        first = slots.index(slot)
        if first < len(self.call.given):
            given.beside = first
        return given


def _begin(e: Expr) -> int:
    return e.offset * e.spec.dtype.itemsize


def _value(x: object) -> tuple[int, int, object]:
    """A leaf of the result: which tensor, which variable, or what."""
    if type(x) is Position:
        return int(x), NONE, None
    if type(x) is TracedFloat:
        return NONE, x.variable, None
    return NONE, NONE, x


def _form(tree: Any) -> int:
    """What a function gives, by the containers of that."""
    if tree.is_leaf():
        return LEAF
    if tree.type is tuple and tree.num_nodes == tree.num_leaves + 1:
        return TUPLE
    return NOTHING if tree.type is type(None) else OTHER
