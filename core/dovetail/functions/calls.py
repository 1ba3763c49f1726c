"""What a call of a captured function does: it looks whether the arguments are of the kind that was
captured, reads where they are, gives the program memory, and makes tensors of the results.

The Python that does so is generated for each capture, so nothing is looked up that does not change.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..backend import faults
from ..backend.streams import current_handle
from ..capture.program import Place, Program
from ..capture.recorder import Environment
from ..capture.traced import TracedFloat
from ..device import opened as open_device
from ..engine import evaluate as run
from ..graph.expr import Expr, Spec, leaf, readers, storage_of
from ..layout import Shape
from ..memory import DataPtr, Storage
from ..settings import Settings, current, flags
from ..tensor.host import evaluated
from ..tensor.tensor import Tensor, alias, make
from .closures import Path
from .containers import Flat, Static, rebuilt

MISS = object()  # what a call returns that the capture is not for
# Beside this file, so that whoever looks for the user's line passes over it.
GENERATED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "call")


class Candidate:
    """A tensor that a function may use: an argument, one that it finds, or the gradient of one."""

    def __init__(
        self, tensor: Tensor, argument: int | None = None, path: Path | None = None,
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
        self.tensor = make(leaf(Storage(ptr, 0, spec.device), spec, strides, offset))
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


# Of the leaves of the arguments, the containers around them, and the settings of the context; to
# whatever the function gives, or MISS.
Call: TypeAlias = Callable[[Sequence[object], object, Settings], Any]


def call_of(facts: Facts) -> Call:
    """The function that replays a capture, and returns MISS where that is for other arguments."""
    return _Writer(facts).function()


class _Writer:
    """Writes it."""

    def __init__(self, facts: Facts) -> None:
        self.f, program = facts, facts.program
        opened = program.opened
        self.names: dict[str, Any] = {
            "__name__": __name__, "Tensor": Tensor, "MISS": MISS, "evaluated": evaluated,
            "Storage": Storage, "leaf": leaf, "make": make, "alias": alias, "lock": run.lock,
            "faults": faults, "flags": flags, "opened": opened, "device": opened.device,
            "current_handle": current_handle, "replay": program.replay, "held": program.begun(),
            "is_taped": _is_taped, "about_to_write": _about_to_write, "written": _written,
            "storage_of": storage_of, "rebuilt": rebuilt, "TREE": facts.tree,
            "allocate": opened.allocator.allocate, "template": facts.environment.values.copy(),
            "NAME": facts.name,
        }  # fmt: skip
        self.lines: list[str] = []
        self.known: dict[int, str] = {}  # id of a candidate -> the number of its variables
        used = {id(storage_of(c.expr)) for c in facts.inputs}
        self.others = [  # not inputs, but over the memory of one
            c
            for c in facts.candidates
            if c.input is None and c.expr.op is None and id(storage_of(c.expr)) in used
        ]

    def function(self) -> Call:
        self.arguments()
        for c in [*self.f.inputs, *self.others, *filter(self.is_needed, self.f.candidates)]:
            self.candidate(c)
        self.sharing()
        self.environment()
        self.replay()
        self.results()
        text = "def call(leaves, tree, settings):\n    " + "\n    ".join(self.lines)
        exec(compile(text, GENERATED, "exec"), self.names)
        made: Call = self.names.pop("call")  # which refers to the names: no circle
        return made

    def constant(self, what: str, value: object) -> str:
        name = f"{what}{len(self.names)}"
        self.names[name] = value
        return name

    def unless(self, *conditions: str) -> None:
        self.lines.append(f"if {' or '.join(conditions)}: return MISS")

    # --- what a call is compared with
    def arguments(self) -> None:
        """Whether the arguments are of the kind that was captured."""
        leaves, settings = self.f.leaves, self.f.settings
        tree = "tree is not None" if self.f.tree is None else "tree != TREE"
        self.unless(f"len(leaves) != {len(leaves)}", tree, "device.opened is not opened")
        if settings is not None:
            self.unless(
                f"settings.grad is not {settings.grad}",
                f"settings.reproducible is not {settings.reproducible}", "settings.eager",
            )  # fmt: skip
        names = [f"a{i}" for i in range(len(leaves))]
        if names:
            self.lines.append(f"{', '.join(names)}, = leaves")
        by_leaf = {c.argument: c for c in self.f.candidates if c.argument is not None}
        for i, (x, a) in enumerate(zip(leaves, names, strict=True)):
            if i in by_leaf:
                self.tensor(by_leaf[i], a)
            elif isinstance(x, Static):
                kind = self.constant("KIND", type(x.value))
                value = self.constant("VALUE", x.value)
                self.lines.append(f"if type({a}) is Static: {a} = {a}.value")
                self.unless(f"type({a}) is not {kind}", f"{a} != {value}")
            else:
                self.unless(f"type({a}) is not float")
        if any(isinstance(x, Static) for x in leaves):
            self.names["Static"] = Static

    def candidate(self, c: Candidate) -> str:
        """The number of a candidate's variables; it is read, and looked at, the first time."""
        if id(c) not in self.known:
            if c.gradient_of is not None:
                self.tensor(c, f"e{self.candidate(c.gradient_of)}.tape.grad")
            else:
                assert c.path is not None
                self.tensor(c, f"{self.constant('read', c.path.read)}()")
        return self.known[id(c)]

    def tensor(self, c: Candidate, text: str) -> None:
        """Variables for a candidate: t, its node e, its storage s."""
        n = self.known[id(c)] = str(len(self.known))
        self.lines.append(f"t{n} = {text}")
        self.unless(f"type(t{n}) is not Tensor")
        self.lines += [
            f"e{n} = t{n}._expr",
            f"if e{n}.op is not None or e{n}.storage.pending is not None: e{n} = evaluated(t{n})",
            f"s{n} = e{n}.storage",
        ]
        e = c.expr
        spec, strides = self.constant("SPEC", e.spec), self.constant("STRIDES", e.strides)
        self.unless(
            f"e{n}.spec is not {spec}", f"e{n}.strides != {strides}",
            f"e{n}.tape {'is' if c.taped else 'is not'} None",
        )  # fmt: skip
        if c.taped and c.tensor.is_leaf:
            had = any(g.gradient_of is c for g in self.f.candidates)
            self.unless(f"e{n}.tape.grad {'is' if had else 'is not'} None")

    def is_needed(self, c: Candidate) -> bool:
        """Whether a tensor is needed though it is no input: its `grad` is set, it is returned."""
        return any(g is c for g, _ in self.f.gradients) or any(m.same is c for m in self.f.made)

    def sharing(self) -> None:
        """Tensors that shared memory must do so again, and those that are written must not."""
        inputs, written = self.f.inputs, self.f.program.written
        for c in self.others:
            n, e = self.known[id(c)], c.expr
            base = next(x for x in inputs if storage_of(x.expr) is storage_of(e))
            m, b = self.known[id(base)], base.expr
            size, other = e.spec.dtype.itemsize, b.spec.dtype.itemsize
            apart = e.offset * size - b.offset * other
            self.unless(
                f"s{n} is not s{m}", f"e{n}.offset * {size} - e{m}.offset * {other} != {apart}"
            )
        for w in sorted(w for w in written if w < len(inputs)):
            n = self.known[id(inputs[w])]
            self.unless(f"s{n}.read_only")
            if not inputs[w].taped:
                self.unless(f"t{n}._aliases is not None and is_taped(t{n})")
            for c in inputs:
                if c is not inputs[w]:
                    self.unless(f"s{n} is s{self.known[id(c)]}")

    # --- what it does
    def environment(self) -> None:
        """The numbers of this call."""
        environment = self.f.environment
        self.lines.append("env = template.copy()" if environment.values else "env = template")
        for i, variable in self.f.floats:
            self.lines.append(f"env[{variable}] = a{i}")
        for variable, compute, numbers in environment.formulas:
            given = ", ".join(
                self.constant("number", n.value) if n.variable is None else f"env[{n.variable}]"
                for n in numbers
            )
            self.lines.append(f"env[{variable}] = {self.constant('compute', compute)}({given})")

    def replay(self) -> None:
        """Gives the program memory, and has it run."""
        f, program = self.f, self.f.program
        numbers = [self.known[id(c)] for c in f.inputs]
        lines: list[str] = []
        if numbers:
            storages = "".join(f"s{n}, " for n in numbers)
            lines += [
                f"if flags.tainted and ({' or '.join(f's{n}.checks' for n in numbers)}):",
                f"    faults.demand(faults.carried(({storages})))",
                f"if opened.streams: opened.share(stream, ({storages}))",
            ]
        written = [self.storage(i) for i in sorted(program.written)]
        lines += [f"about_to_write({s})" for s in written]
        lines += [f"p{n} = s{n}.ptr" for n in numbers]
        at = [
            f"p{n}.handle, p{n}.offset + e{n}.offset * {c.expr.spec.dtype.itemsize}, "
            for n, c in zip(numbers, f.inputs, strict=True)
        ]
        at += ["*held, "] if program.held else []
        sizes = {f"r{k}": size for k, size in enumerate(program.sizes)}
        if program.arena:
            sizes["arena"] = program.arena
        lines += [f"{name} = allocate({size}, stream)" for name, size in sizes.items()]
        at += [f"{name}.handle, {name}.offset, " for name in sizes]
        lines.append(f"replay([{''.join(at)}], env, stream)")
        lines += [f"written(NAME, {s})" for s in written]
        self.lines += ["stream = current_handle(device)", "with lock:"]
        self.lines += ["    " + line for line in lines]

    def storage(self, slot: int) -> str:
        """The storage of a program's input, constant or result."""
        f, program = self.f, self.f.program
        if slot < program.inputs:
            return f"s{self.known[id(f.inputs[slot])]}"
        held = slot - program.inputs
        if held < len(program.held):
            return self.constant("storage", program.held[held])
        return f"m{held - len(program.held)}"

    def results(self) -> None:
        """Tensors of the results, and the containers around them."""
        f, program = self.f, self.f.program
        for k, nbytes in enumerate(program.sizes):
            self.lines.append(f"m{k} = Storage(r{k}, {nbytes}, device)")
        first: dict[int, str] = {}
        for j, m in enumerate(f.made):
            self.lines.append(f"y{j} = {self.made(m, first)}")
            first.setdefault(m.place.slot, f"y{j}")
        for whose, position in f.gradients:
            new = "None" if position is None else f"y{position}"
            self.lines.append(f"e{self.known[id(whose)]}.tape.grad = {new}")
        values = [self.value(x) for x in f.result.leaves]
        tree = f.result.tree
        if tree.is_leaf():
            self.lines.append(f"return {values[0]}")
        elif tree.type is tuple and tree.num_nodes == tree.num_leaves + 1:
            self.lines.append(f"return ({''.join(v + ', ' for v in values)})")
        else:
            around = self.constant("around", Flat((), tree))
            self.lines.append(f"return rebuilt({around}, [{', '.join(values)}])")

    def value(self, x: object) -> str:
        if type(x) is Position:
            return f"y{int(x)}"
        return f"env[{x.variable}]" if type(x) is TracedFloat else self.constant("value", x)

    def made(self, m: Made, first: dict[int, str]) -> str:
        if m.same is not None:
            return f"t{self.known[id(m.same)]}"
        spec, strides = self.constant("SPEC", m.spec), self.constant("STRIDES", m.strides)
        (slot, offset), size = m.place, m.spec.dtype.itemsize
        storage, start, beside = self.storage(slot), str(offset // size), first.get(slot)
        if slot < self.f.program.inputs:
            c = self.f.inputs[slot]
            beside, own = f"t{self.known[id(c)]}", c.expr.spec.dtype.itemsize
            start = f"(e{self.known[id(c)]}.offset * {own} + {offset}) // {size}"
        made = f"make(leaf({storage}, {spec}, {strides}, {start}))"
        return made if beside is None else f"alias({beside}, {made})"


def _is_taped(x: Tensor) -> bool:
    """Whether a write to x would concern some other tensor's gradient."""
    group = x._aliases
    if group is None or not current().grad:
        return False
    return group.taped and any(t._expr.tape is not None for t in group.live())


def _about_to_write(storage: Storage) -> None:
    found = readers(storage)
    if found:
        run.evaluate(found, asked=False)


def _written(name: str, storage: Storage) -> None:
    if storage.watch is not None:
        storage.watch.writer, storage.watch = name, None
    if storage.seen and (opened := open_device(storage.device)).backend.asynchronous:
        opened.backend.synchronize(current_handle(storage.device))
