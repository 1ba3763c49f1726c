"""One capture of a function: how it came about, and what a call does with it.

A call reads where its inputs are, gives the program memory, and makes tensors of its results. The
Python that does so is generated for each capture.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..backend import faults
from ..backend.streams import current_handle
from ..capture.program import Number, Place, Program
from ..capture.recorder import Recorder, recorded_by
from ..capture.traced import TracedFloat
from ..device import Device
from ..device import opened as open_device
from ..engine import evaluate as run
from ..graph.expr import Expr, Spec, leaf, readers, storage_of
from ..layout import Shape
from ..memory import Storage
from ..settings import current
from ..tensor.host import evaluated
from ..tensor.tensor import Tensor, alias, make
from .closures import Path, tensors_of
from .containers import Flat, Static, flattened, rebuilt, strided_leaf

MISS = object()  # what a call returns that this capture is not for
# Beside this file, so that whoever looks for the user's line passes over it.
GENERATED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "call")


class Candidate:
    """A tensor that a function may use: an argument, one it finds by itself, or a gradient.

    `read` says where it is, given the leaves of the arguments.
    """

    def __init__(
        self, tensor: Tensor, argument: int | None = None, path: Path | None = None,
        gradient_of: Candidate | None = None,
    ) -> None:  # fmt: skip
        self.tensor, self.argument, self.path = tensor, argument, path
        self.gradient_of = gradient_of
        self.input: int | None = None  # its number among the program's inputs, if it is one
        self.tape = tensor._expr.tape
        self.taped = self.tape is not None


class Made(NamedTuple):
    """A result: the tensor that is an input, or a view of an input, a constant or new memory."""

    same: Candidate | None
    place: Place
    spec: Spec
    strides: Shape


Gradient: TypeAlias = tuple[Candidate, int | None]  # whose, and which result


class Capture:
    """What a function did for arguments of one kind. `call` does it again."""

    def __init__(
        self, session: Session, program: Program, made: list[Made], result: Flat,
        gradients: list[Gradient],
    ) -> None:  # fmt: skip
        self.name, self.program = session.name, program
        self.candidates, self.inputs = session.candidates, session.inputs
        self.environment, self.floats = session.recorder.environment, session.floats
        self.made, self.result, self.gradients = made, result, gradients
        used = {id(storage_of(c.tensor._expr)) for c in self.inputs}
        self.others = [  # not inputs, but over the memory of one
            c
            for c in self.candidates
            if c.input is None
            and c.tensor._expr.op is None
            and id(storage_of(c.tensor._expr)) in used
        ]
        self.call = _Writer(self).function()


class Failed(NamedTuple):
    """Why a kind of arguments is not captured: the function runs as always."""

    reason: str


class Session:
    """A function that is being run and noted."""

    def __init__(self, name: str, roots: list[object], leaves: Sequence[Any]) -> None:
        self.name, self.leaves = name, leaves
        self.candidates = [
            Candidate(x, argument=i) for i, x in enumerate(leaves) if isinstance(x, Tensor)
        ]
        mine = {id(c.tensor) for c in self.candidates}
        statics = [x.value for x in leaves if isinstance(x, Static)]
        self.candidates += [
            Candidate(t, path=path)
            for path, t in tensors_of([*roots, *statics])
            if id(t) not in mine
        ]
        for c in [*self.candidates]:
            if c.taped and c.tensor.is_leaf and (g := c.tensor.grad) is not None:
                self.candidates.append(Candidate(g, gradient_of=c))
        self.inputs: list[Candidate] = []
        self.device = self._device()
        self.recorder = Recorder(self.device, False, self._resolve)
        self.floats: list[tuple[int, int]] = []

    def _device(self) -> Device | None:
        """The device of the first argument; where there is none, the first work says it."""
        return next((c.tensor.device for c in self.candidates if c.argument is not None), None)

    def traced(self) -> list[object]:
        """The leaves that the function gets."""
        return [self._traced(i, x) for i, x in enumerate(self.leaves)]

    def _traced(self, i: int, x: object) -> object:
        if isinstance(x, Static):
            return x.value
        if isinstance(x, float):
            environment = self.recorder.environment
            variable = environment.variable(x)
            self.floats.append((i, variable))
            return TracedFloat(environment, x, variable)
        return x

    def _resolve(self, storage: Storage) -> tuple[int, int] | None:
        for c in self.candidates:
            e = c.tensor._expr
            if e.op is None and storage_of(e) is storage:
                self.inputs.append(c)
                c.input = self.recorder.input()
                return c.input, e.offset * e.spec.dtype.itemsize
        return None

    def run(self, function: Callable[[], object]) -> tuple[object, Capture | Failed]:
        """What the function gives, and its capture."""
        with recorded_by(self.recorder):
            result = function()
            flat = flattened(result)
            for x in flat.leaves:
                if isinstance(x, Tensor):
                    strided_leaf(self.name, x)
            tensors, leaves = self._results(flat)
            gradients = self._gradients(tensors)
            pending = [t._expr for t in tensors]
            if pending:
                run.evaluate(pending)
        failed = self._failed(tensors)
        shown = rebuilt(flat, [x.value if type(x) is TracedFloat else x for x in flat.leaves])
        if failed is not None:
            return shown, failed
        return shown, self._capture(tensors, Flat(leaves, flat.tree), gradients)

    def _results(self, flat: Flat) -> tuple[list[Tensor], list[object]]:
        """The tensors among the results, each once, and what stands for each leaf."""
        tensors: list[Tensor] = []
        position: dict[int, int] = {}
        leaves: list[object] = []
        for x in flat.leaves:
            if isinstance(x, Tensor):
                if id(x) not in position:
                    position[id(x)] = len(tensors)
                    tensors.append(x)
                leaves.append(_Position(position[id(x)]))
            else:
                leaves.append(x)
        return tensors, leaves

    def _gradients(self, tensors: list[Tensor]) -> list[Gradient]:
        """Whose `grad` has changed; the new ones are added to the results."""
        found: list[Gradient] = []
        before = {id(c.gradient_of): c.tensor for c in self.candidates if c.gradient_of is not None}
        for c in self.candidates:
            if c.gradient_of is not None or not c.taped or not c.tensor.is_leaf:
                continue
            now = c.tensor.grad
            if now is before.get(id(c)):
                continue
            k = None
            if now is not None:
                k = next((k for k, t in enumerate(tensors) if t is now), None)
                if k is None:
                    k = len(tensors)
                    tensors.append(now)
            found.append((c, k))
        return found

    def _failed(self, tensors: list[Tensor]) -> Failed | None:
        if any(c.tensor._expr.tape is not c.tape for c in self.candidates):
            return Failed("it changes what an argument's gradient flows through")
        mine = {id(c.tensor) for c in self.candidates}
        for t in tensors:
            if id(t) not in mine and t._expr.tape is not None and not _is_spent(t._expr.tape):
                return Failed("gradients flow through its results")
        return None

    def _capture(self, tensors: list[Tensor], result: Flat, gradients: list[Gradient]) -> Capture:
        recorder = self.recorder
        same = {id(c.tensor): c for c in self.candidates}
        exprs = [evaluated_leaf(t) for t in tensors]
        places = [recorder.place(e) for e in exprs]
        program = recorder.program(places)
        made = [
            Made(same.get(id(t)), recorder.renumbered(p), e.spec, e.strides)
            for t, p, e in zip(tensors, places, exprs, strict=True)
        ]
        return Capture(self, program, made, result, gradients)


class _Position(int):
    """Which of the tensors stands at a leaf of the result."""


def evaluated_leaf(t: Tensor) -> Expr:
    """The leaf of a tensor that has been computed."""
    e = t._expr
    storage_of(e)
    return e


def _is_spent(tape: Any) -> bool:
    """Whether some of what a gradient would flow through has been released."""
    seen: set[int] = set()
    stack = [tape]
    while stack:
        n = stack.pop()
        if id(n) in seen:
            continue
        seen.add(id(n))
        if n.released:
            return True
        stack += [e.node for e in n.edges if e is not None]
    return False


# --- calls ----------------------------------------------------------------------------------------


class _Writer:
    """Writes the function that replays a capture: of the leaves of the arguments."""

    def __init__(self, capture: Capture) -> None:
        self.c = capture
        program = capture.program
        opened = program.opened
        self.names: dict[str, Any] = {
            "__name__": __name__, "Tensor": Tensor, "MISS": MISS, "evaluated": evaluated,
            "Storage": Storage, "leaf": leaf, "make": make, "alias": alias, "run": run,
            "lock": run.lock, "faults": faults, "opened": opened, "device": opened.device,
            "current_handle": current_handle, "replay": program.replay,
            "held": program.begun(), "is_taped": _is_taped, "about_to_write": _about_to_write,
            "written": _written,
            "storage_of": storage_of, "rebuilt": rebuilt, "result": capture.result,
            "counters": run.counters, "name": capture.name, "template": capture.environment.values,
        }  # fmt: skip
        self.lines: list[str] = []
        self.tensors: dict[int, str] = {}  # id of a candidate -> its variable

    def constant(self, what: str, value: object) -> str:
        name = f"{what}{len(self.names)}"
        self.names[name] = value
        return name

    def unless(self, *conditions: str) -> None:
        self.lines.append(f"if {' or '.join(conditions)}: return MISS")

    def function(self) -> Callable[[Sequence[Any]], Any]:
        c, program = self.c, self.c.program
        self.unless("device.opened is not opened")
        watched = [x for x in c.candidates if x.argument is None and _matters(x, c)]
        for x in [*c.inputs, *c.others, *watched]:
            self.tensor(x)
        self.memory()
        self.environment()
        self.lines += ["stream = current_handle(device)", "with lock:"]
        body: list[str] = []
        storages = "".join(f"s{i}, " for i in range(len(c.inputs)))
        if storages:
            checked = " or ".join(f"s{i}.checks" for i in range(len(c.inputs)))
            body += [
                f"if faults.tainted and ({checked}):",
                f"    faults.demand(faults.carried(({storages})))",
                f"if opened.streams: opened.share(stream, ({storages}))",
            ]
        written = [f"s{i}" for i in sorted(program.written) if i < len(c.inputs)]
        written += [
            self.constant("storage", program.held[i - len(c.inputs)])
            for i in sorted(program.written)
            if i >= len(c.inputs)
        ]
        body += [f"about_to_write({s})" for s in written]
        at = []
        for i, x in enumerate(c.inputs):
            size = x.tensor._expr.spec.dtype.itemsize
            body.append(f"p{i} = s{i}.ptr")
            at.append(f"p{i}.handle, p{i}.offset + {self.tensors[id(x)]}._expr.offset * {size}, ")
        if program.held:
            at.append("*held, ")
        for k, nbytes in enumerate(program.sizes):
            body.append(f"r{k} = opened.allocator.allocate({nbytes}, stream)")
            at.append(f"r{k}.handle, r{k}.offset, ")
        if program.arena:
            body.append(f"arena = opened.allocator.allocate({program.arena}, stream)")
            at.append("arena.handle, arena.offset, ")
        body.append(f"replay(({''.join(at)}), env, stream)")
        body += [f"written(name, {s})" for s in written]
        self.lines += ["    " + line for line in body]
        self.results()
        text = "def call(leaves):\n    " + "\n    ".join(self.lines)
        exec(compile(text, GENERATED, "exec"), self.names)
        made: Any = self.names.pop("call")
        return made  # type: ignore[no-any-return]  # it has just been compiled

    def tensor(self, x: Candidate) -> str:
        """The variable that holds a candidate; it is read, and looked at, the first time."""
        known = self.tensors.get(id(x))
        if known is not None:
            return known
        t = self.tensors[id(x)] = f"t{len(self.tensors)}"
        if x.argument is not None:
            self.lines.append(f"{t} = leaves[{x.argument}]")
        elif x.gradient_of is not None:
            self.lines.append(f"{t} = {self.tensor(x.gradient_of)}.grad")
        else:
            assert x.path is not None
            self.lines.append(f"{t} = {self.constant('read', x.path.read)}()")
        if x.argument is None:
            self.unless(f"type({t}) is not Tensor")
            self.lines.append(
                f"if {t}._expr.op is not None or {t}._expr.storage.pending is not None:"
                f" evaluated({t})"
            )
            e = x.tensor._expr
            spec, strides = self.constant("SPEC", e.spec), self.constant("STRIDES", e.strides)
            tape = "is" if x.taped else "is not"
            self.unless(
                f"{t}._expr.spec is not {spec}", f"{t}._expr.strides != {strides}",
                f"{t}._expr.tape {tape} None",
            )  # fmt: skip
            if x.taped and x.tensor.is_leaf:
                has = any(g.gradient_of is x for g in self.c.candidates)
                self.unless(f"{t}.grad {'is' if has else 'is not'} None")
        return t

    def memory(self) -> None:
        """The inputs' storages, which must be the same or others, as they were."""
        c = self.c
        for i, x in enumerate(c.inputs):
            self.lines.append(f"s{i} = storage_of({self.tensors[id(x)]}._expr)")
        for x in c.others:
            i, e = self._shared_with(x), x.tensor._expr
            t, base = self.tensors[id(x)], self.tensors[id(c.inputs[i])]
            size, base_size = e.spec.dtype.itemsize, c.inputs[i].tensor._expr.spec.dtype.itemsize
            apart = e.offset * size - c.inputs[i].tensor._expr.offset * base_size
            self.unless(
                f"storage_of({t}._expr) is not s{i}",
                f"{t}._expr.offset * {size} - {base}._expr.offset * {base_size} != {apart}",
            )
        for w in sorted(c.program.written):
            if w >= len(c.inputs):
                continue
            self.unless(f"s{w}.read_only")
            self.lines += [f"if s{w} is s{i}: return MISS" for i in range(len(c.inputs)) if i != w]
            if not c.inputs[w].taped:
                self.unless(f"is_taped({self.tensors[id(c.inputs[w])]})")

    def _shared_with(self, x: Candidate) -> int:
        mine = storage_of(x.tensor._expr)
        return next(i for i, y in enumerate(self.c.inputs) if storage_of(y.tensor._expr) is mine)

    def environment(self) -> None:
        """The numbers of this call."""
        environment = self.c.environment
        if not environment.values:
            self.lines.append("env = template")
            return
        self.lines.append("env = template.copy()")
        for i, variable in self.c.floats:
            self.lines.append(f"env[{variable}] = leaves[{i}]")
        for variable, compute, numbers in environment.formulas:
            given = ", ".join(self._number(n) for n in numbers)
            self.lines.append(f"env[{variable}] = {self.constant('compute', compute)}({given})")

    def _number(self, n: Number) -> str:
        return self.constant("number", n.value) if n.variable is None else f"env[{n.variable}]"

    def results(self) -> None:
        """Tensors of the results, and the containers around them."""
        c, program = self.c, self.c.program
        for k, nbytes in enumerate(program.sizes):
            self.lines.append(f"m{k} = Storage(r{k}, {nbytes}, device)")
        first: dict[int, str] = {}
        for j, m in enumerate(c.made):
            self.lines.append(f"y{j} = {self._made(m, first)}")
            first.setdefault(m.place.slot, f"y{j}")
        for whose, position in c.gradients:
            new = "None" if position is None else f"y{position}"
            self.lines.append(f"{self.tensor(whose)}._expr.tape.grad = {new}")
        values = [
            f"y{int(x)}" if type(x) is _Position
            else f"env[{x.variable}]" if type(x) is TracedFloat
            else self.constant("value", x)
            for x in c.result.leaves
        ]  # fmt: skip
        kind = c.result.tree
        if kind.is_leaf():
            self.lines.append(f"return {values[0]}")
        elif kind.type is tuple and kind.num_leaves == kind.num_children:
            self.lines.append(f"return ({''.join(v + ', ' for v in values)})")
        else:
            self.lines.append(f"return rebuilt(result, [{', '.join(values)}])")

    def _made(self, m: Made, first: dict[int, str]) -> str:
        c, program = self.c, self.c.program
        if m.same is not None:
            return self.tensor(m.same)
        spec, strides = self.constant("SPEC", m.spec), self.constant("STRIDES", m.strides)
        size = m.spec.dtype.itemsize
        slot, offset = m.place
        held = slot - program.inputs
        if slot < program.inputs:
            x = c.inputs[slot]
            t = self.tensors[id(x)]
            own = x.tensor._expr.spec.dtype.itemsize
            start = f"({t}._expr.offset * {own} + {offset}) // {size}"
            return f"alias({t}, make(leaf(s{slot}, {spec}, {strides}, {start})))"
        if held < len(program.held):
            storage = self.constant("storage", program.held[held])
        else:
            storage = f"m{held - len(program.held)}"
        made = f"make(leaf({storage}, {spec}, {strides}, {offset // size}))"
        return f"alias({first[slot]}, {made})" if slot in first else made


def _matters(x: Candidate, c: Capture) -> bool:
    """Whether a tensor that is no input is needed: its `grad` is set, or it is returned."""
    return any(g is x for g, _ in c.gradients) or any(m.same is x for m in c.made)


def _is_taped(x: Tensor) -> bool:
    """Whether a write to x would concern some other tensor's gradient."""
    group = x._aliases
    if group is None or not current().grad:
        return False
    return any(t._expr.tape is not None for r in group if (t := r()) is not None)


def _about_to_write(storage: Storage) -> None:
    found = readers(storage)
    if found:
        run.evaluate(found, asked=False)


def _written(name: str, storage: Storage) -> None:
    if storage.watch is not None:
        storage.watch.writer, storage.watch = name, None
    if storage.seen and (opened := open_device(storage.device)).backend.asynchronous:
        opened.backend.synchronize(current_handle(storage.device))
