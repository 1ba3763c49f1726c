"""Random programs, run by dovetail and by an oracle without shared code (`numpy_oracle`).

A program is a list of lines over a few names, in dovetail's own syntax, so a failing one can be run
as it stands.

Values are pending and referenced through views while their operands are written in place; names are
rebound and deleted, so that ownership changes; values are read at random points. The oracle runs
the same lines immediately, op by op.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import dovetail as dt
import numpy_oracle as oracle

REPEATS = 3  # the second time a plan is cached, the third time it is a guard hit
NAMES = "abcdefghijkmnpqrstuvw"
PRELUDE = """\
def softmax64(x, axis):
    e = dt.exp2(dt.maximum(x - dt.max(x, axis=axis, keepdims=True), -9))
    return dt.floor(e / dt.sum(e, axis=axis, keepdims=True) * 64)

def spread(x, axis):
    away = x - dt.floor(dt.mean(x, axis=axis, keepdims=True))
    return dt.sum(dt.square(away), axis=axis)
"""
# the message of the oracle for an invalid program
REFUSALS = (oracle.Unfit, ValueError, IndexError, NameError)


class Line(NamedTuple):
    """A statement; or, if it is `looked` at, an expression whose value is compared."""

    text: str
    looked: bool = False


Program = list[Line]


def ours() -> dict[str, Any]:
    """Return a namespace in which a program runs on dovetail."""
    scope: dict[str, Any] = {"dt": dt}
    exec(_code(PRELUDE, "exec"), scope)
    return scope


def theirs() -> dict[str, Any]:
    """Return a namespace in which a program runs on the oracle."""
    return {"dt": oracle, "softmax64": oracle.softmax64, "spread": oracle.spread}


@lru_cache(1 << 14)
def _code(text: str, how: str) -> Any:
    return compile(text, "<program>", how)


def expected(program: Program) -> list[Any]:
    """Return the expected value at each line that looks. Raises: Unfit."""
    scope, found = theirs(), []
    for text, looked in program:
        try:
            if looked:
                found.append(_seen(eval(_code(text, "eval"), scope)))
            else:
                exec(_code(text, "exec"), scope)
        except REFUSALS as error:
            raise oracle.Unfit(f"{text}: {error}") from None
    return found


def failure(program: Program, device: str) -> str:
    """Return the difference between a device and the oracle, in words, or an empty string."""
    wanted = expected(program)
    before = dt.default_device()
    dt.set_default_device(device)
    try:
        for repeat in range(REPEATS):
            said = _run(program, wanted)
            if said:
                return f"run {repeat + 1} on {device}: {said}"
        return ""
    finally:
        dt.set_default_device(before)


def _run(program: Program, wanted: list[Any]) -> str:
    scope, looks = ours(), iter(wanted)
    for text, looked in program:
        try:
            if not looked:
                exec(_code(text, "exec"), scope)
                continue
            found = _seen(eval(_code(text, "eval"), scope))
        except Exception as error:
            return f"{text}: {type(error).__name__}: {error}"
        want = next(looks)
        if found != want:
            return f"{text} is {found}, not {want}"
    return ""


def _seen(value: Any) -> Any:
    """Return the comparable parts: of a tensor its dtype, shape and elements."""
    if isinstance(value, oracle.Array):
        return value.dtype.name, value.shape, value.tolist()
    if isinstance(value, dt.Tensor):
        return value.dtype.name, value.shape, value.tolist()
    return value


def shrunk(program: Program, fails: Callable[[Program], Any]) -> Program:
    """Remove the lines that the failure does not need."""
    size = len(program)
    while True:
        size, before = max(size // 2, 1), program
        for at in range(len(program) - size, -1, -size):
            shorter = program[:at] + program[at + size :]
            with suppress(oracle.Unfit):
                if fails(shorter):
                    program = shorter
        if size == 1 and program == before:
            return program


def script(program: Program, device: str) -> str:
    """Return the program as runnable text."""
    looks = iter(expected(program))
    lines = [
        "import dovetail as dt",
        f"dt.set_default_device({device!r})",
        PRELUDE,
        "def seen(x):",
        "    return (x.dtype.name, x.shape, x.tolist()) if isinstance(x, dt.Tensor) else x\n",
        f"for _ in range({REPEATS}):",
    ]
    for text, looked in program:
        text = f"assert seen({text}) == {next(looks)!r}, {text}" if looked else text
        lines += ["    " + part for part in text.split("\n")]
    return "\n".join(lines)


def check(seed: int, device: str) -> None:
    """Fail, with the shortest failing program, if a device and the oracle differ."""
    program = generated(seed)
    said = failure(program, device)
    if said:
        short = shrunk(program, lambda p: failure(p, device))
        said = failure(short, device) or f"{said} (only the first time)"
        raise AssertionError(f"seed {seed}: {said}\n\n{script(short, device)}")


# --- generation


def generated(seed: int) -> Program:
    """Return the program of a seed."""
    return _Generator(seed).program()


class _Generator:
    """Generate random lines, and keep those that the oracle accepts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scope = theirs()
        self.lines: Program = []
        self.n, self.m = (self.random.choice([1, 2, 2, 3, 3, 4, 5, 7, 34]) for _ in range(2))
        self.floats = self.random.choice(["dt.float32", "dt.float64"])

    def program(self) -> Program:
        for _ in range(self.random.randint(2, 4)):
            self.input()
        wanted = len(self.lines) + self.random.randint(4, 12)
        for _ in range(60):
            if len(self.lines) >= wanted:
                break
            self.random.choices(
                [self.bind, self.held, self.view, self.update, self.store, self.call, self.forget,
                 self.look, self.swap, self.sparse],
                [5, 8, 4, 5, 5, 3, 2, 2, 1, 1],
            )[0]()  # fmt: skip
        names = self.names() + self.names(sparse=True)
        self.random.shuffle(names)
        for name in names:
            self.keep(f"{name}.to_dense()" if self.scope[name].sparse else name, looked=True)
        return self.lines

    # --- available values

    def names(self, sparse: bool = False) -> list[str]:
        arrays = {k: v for k, v in self.scope.items() if isinstance(v, oracle.Array)}
        return [k for k, v in arrays.items() if bool(v.sparse) == sparse]

    def name(self) -> str:
        """Return a name, preferably one of the newest."""
        names = self.names()
        return names[max(self.random.choices(range(len(names)), k=2))]

    def free(self) -> str:
        """Return a name to bind, mostly a new one."""
        unused = [n for n in NAMES if n not in self.scope]
        return self.random.choice(unused) if unused and self.flip(0.85) else self.name()

    def flip(self, chance: float = 0.5) -> bool:
        return self.random.random() < chance

    def keep(self, text: str, looked: bool = False) -> bool:
        """Run a line on the oracle, and append it on success."""
        if not looked and self.flip(0.05):
            text = "with dt.eager():\n    " + text.replace("\n", "\n    ")
        try:
            exec(_code(text, "exec"), self.scope)
        except REFUSALS:
            return False
        self.lines.append(Line(text, looked))
        return True

    def value(self, text: str) -> Any:
        """Return the oracle's value of an expression, or None if it rejects it."""
        try:
            return eval(_code(text, "eval"), self.scope)
        except REFUSALS:
            return None

    # --- lines

    def input(self) -> None:
        n, m = self.n, self.m
        shape = self.random.choices(
            [(), (n,), (m,), (n, m), (m, n), (n, n), (n, m, n), (1, n), (0, n), (n, 0), (1,)],
            [1, 5, 3, 5, 3, 4, 1, 1, 0.3, 0.3, 0.6],
        )[0]
        dtype = self.random.choices([self.floats, "dt.int64", "dt.bool", "dt.float64"],
                                    [10, 4, 1.5, 1])[0]  # fmt: skip
        size = math.prod(shape)
        low, high = (0, 1) if dtype == "dt.bool" else (-4, 4)
        flat = [self.random.randint(low, high) for _ in range(size)]
        values = oracle.np.reshape(flat, shape).tolist()
        text = f"dt.asarray({values}, dtype={dtype})"
        if not size:
            text = f"dt.zeros({shape}, dtype={dtype})"
        self.keep(f"{self.fresh()} = {text}")

    def fresh(self) -> str:
        return self.random.choice([n for n in NAMES if n not in self.scope])

    def bind(self) -> None:
        self.keep(f"{self.free()} = {self.expression(self.random.choice([1, 1, 2, 3]))}")

    def view(self) -> None:
        self.keep(f"{self.free()} = {self.viewed(self.name())}")

    def held(self) -> None:
        """Create a value with kernels of its own, perhaps referenced only by a view, and
        overwrite its operand.
        """
        source, result = self.name(), self.fresh()
        text = self.kernel(source)
        if not self.keep(f"{result} = {text}"):
            return
        held = result
        if self.flip(0.6):
            held = self.fresh()
            if not self.keep(f"{held} = {self.viewed(result)}"):
                held = result
            elif self.flip(0.3):
                self.keep(f"del {result}")
        self.write(source, held if self.flip(0.85) else None)

    def update(self) -> None:
        """Append `x += ...` or a similar statement."""
        target = self.name()
        op = self.random.choice(["+=", "-=", "*=", "//=", "%="])
        if self.flip(0.3):
            target = self.viewed_in_place(target)
        self.keep(f"{target} {op} {self.fitting(target)}")

    def store(self) -> None:
        self.write(self.name(), None)

    def write(self, name: str, source: str | None) -> None:
        """Append a write to a tensor's memory, of an expression of `source`."""
        target = name if self.flip(0.4) else self.viewed_in_place(name)
        value = self.fitting(target, source)
        x = self.value(name)
        forms = [
            f"{target}[...] = {value}",
            f"{target}.copy_({value})",
            f"{target} -= {value}",
            f"{target} += {value}",
            f"{target}.{self.random.choice(['add_', 'mul_', 'sub_'])}({value})",
        ]
        if x is not None and x.ndim and self.flip(0.3):
            key, _ = self.places(name)
            forms = [f"{name}[{key}] = {self.fitting(f'{name}[{key}]', source)}",
                     f"{name}[{key}] += {self.fitting(f'{name}[{key}]', source)}"]  # fmt: skip
        self.keep(self.random.choice(forms))

    def call(self) -> None:
        """Append a call with `out=`, or of a method that writes."""
        x, y, z = self.name(), self.name(), self.name()
        self.keep(self.random.choice([
            f"dt.add({x}, {y}, out={z})",
            f"dt.multiply({x}, {self.scalar()}, out={z})",
            f"dt.matmul({x}, {y}, out={z})",
            f"dt.sum({x}, axis={self.axis(x)}, out={z})",
            f"{x}.fill_({self.scalar()})",
            f"{x}.zero_()",
            f"{x}.index_add_(0, {self.indices(x, 0)}, {y})",
            f"{x}.index_add_(0, dt.arange({self.size(x, 0)}) // 2, {x})",
            f"{x}.scatter_(0, dt.argsort({x}, axis=0), {y})",
            f"{x}[1:] = {x}[:-1]",
            f"{x}[:-1] -= {x}[1:]",
            f"{x}[...] = {x}[::-1]",
            f"{x}[...] = {x}.T",
            f"dt.evaluate({x}, {y})",
            f"repr({x})",
        ]))  # fmt: skip

    def forget(self) -> None:
        if len(self.names()) > 2:
            self.keep(f"del {self.random.choice(self.names() + self.names(sparse=True))}")

    def look(self) -> None:
        name = self.name()
        self.keep(self.random.choice([name, f"dt.sum({name}).item()"]), looked=True)

    def swap(self) -> None:
        x, y = self.name(), self.name()
        self.keep(f"{x}, {y} = {y}, {x}")

    def sparse(self) -> None:
        self.keep(f"{self.fresh()} = {self.name()}.to_sparse()")

    # --- expressions

    def expression(self, depth: int) -> str:
        """Return the text of an expression that the oracle accepts."""
        for _ in range(8):
            text = self.random.choices(
                [self.arithmetic, self.unary, self.reduction, self.compound, self.gather,
                 self.arranged, self.kernel, self.of_sparse],
                [5, 2, 3, 2, 3, 2, 5, 1],
            )[0](self.operand(depth - 1))  # fmt: skip
            if self.value(text) is not None:
                return text
        return self.name()

    def operand(self, depth: int) -> str:
        if depth > 0 and self.flip(0.7):
            return self.expression(depth)
        name = self.name()
        return self.viewed(name) if self.flip(0.2) else name

    def fitting(self, target: str, source: str | None = None) -> str:
        """Return an expression that can be written to a target; of `source`, if given."""
        into = self.value(target)
        for _ in range(6):
            text = source if source is not None and self.flip(0.7) else self.expression(
                self.random.choice([1, 1, 2]))  # fmt: skip
            found = self.value(text)
            if into is None or found is None:
                break
            for candidate in self.cut(text, found, into):
                value = self.value(candidate)
                if value is not None and self.broadcasts(value.shape, into.shape):
                    return candidate
        return self.scalar()

    def cut(self, text: str, found: Any, into: Any) -> Iterator[str]:
        """Return ways to shrink an array, so that the written value comes from the computed one."""
        yield text
        if found.ndim > into.ndim:
            yield f"{text}[{', '.join(['0'] * (found.ndim - into.ndim))}]"
        if found.ndim == into.ndim and found.ndim:
            yield f"{text}[{', '.join(f':{n}' for n in into.shape)}]"
        yield f"dt.sum({text})"

    @staticmethod
    def broadcasts(shape: Any, into: Any) -> bool:
        try:
            return bool(oracle.np.broadcast_shapes(shape, into) == into)
        except ValueError:
            return False

    def scalar(self) -> str:
        return str(self.random.choice([0, 1, 2, 3, -1, -2]))

    def arithmetic(self, x: str) -> str:
        y = self.scalar() if self.flip(0.3) else self.operand(0)
        op = self.random.choice(["+", "-", "-", "*", "//", "%"])
        pick = self.random.choice
        return pick([
            f"({x} {op} {y})",
            f"({x} {op} {y})",
            f"({y} {op} {x})",
            f"dt.{pick(['maximum', 'minimum'])}({x}, {y})",
            f"({x} {pick(['<', '<='])} {y})",
            f"dt.where({x} < {y}, {x}, {y})",
            f"dt.where({x} <= {self.scalar()}, {y}, {self.scalar()})",
        ])  # fmt: skip

    def unary(self, x: str) -> str:
        name = self.random.choice(["abs", "negative", "square", "sign", "relu", "logical_not"])
        return self.random.choice([
            f"dt.{name}({x})",
            f"(-{x})",
            f"dt.exp2(dt.clip({x}, 0, 3))",
            f"dt.astype({x}, {self.random.choice(['dt.float32', 'dt.float64', 'dt.int64'])})",
            f"dt.copy({x})",
        ])  # fmt: skip

    def axis(self, x: str) -> int:
        found = self.value(x)
        ndim = found.ndim if found is not None else 0
        return self.random.randrange(-ndim, ndim) if ndim else 0

    def size(self, x: str, axis: int) -> int:
        found = self.value(x)
        return int(found.shape[axis]) if found is not None and found.ndim else 0

    def reduction(self, x: str) -> str:
        name = self.random.choice(["sum", "sum", "prod", "max", "min", "any", "all", "argmax",
                                   "argmin", "count_nonzero"])  # fmt: skip
        axis = self.random.choice([None, self.axis(x), self.axis(x)])
        return f"dt.{name}({x}, axis={axis}, keepdims={self.flip()})".replace(
            ", keepdims=False", "")  # fmt: skip

    def compound(self, x: str) -> str:
        """Return reductions whose results are combined with their operand."""
        a = self.axis(x)
        return self.random.choice([
            f"softmax64({x}, {a})",
            f"spread({x}, {a})",
            f"({x} - dt.max({x}, axis={a}, keepdims=True))",
            f"({x} * dt.sum({x}, axis={a}, keepdims=True))",
        ])  # fmt: skip

    def kernel(self, x: str) -> str:
        """Return an op with kernels of its own."""
        a, y = self.axis(x), self.operand(0)
        pick = self.random.choice
        return pick([
            f"({x} @ {y})",
            f"({y} @ {x})",
            f"({x} @ {x})",
            f"({x}.T @ {x})",
            f"({x} @ {x}.T)",
            f"dt.matmul({x}, {y})",
            f"dt.tensordot({x}, {y}, axes={pick([0, 1, 1])})",
            f"dt.vecdot({x}, {y})",
            f"dt.outer({x}, {y})",
            f"dt.einsum('ij,kj->ki', {x}, {y})",
            f"dt.sort({x}, axis={a}, descending={self.flip()})",
            f"dt.argsort({x}, axis={a}, descending={self.flip()})",
            f"dt.topk({x}, {self.random.randint(0, max(self.size(x, -1), 0))}).{pick(TOPK)}",
            f"dt.cumulative_sum({x}, axis={a})",
            f"dt.cumulative_sum({x}, axis={a}, include_initial=True)",
            f"dt.cumulative_prod({x}, axis={a})",
            f"dt.searchsorted(dt.sort({x}), {y})",
            f"dt.unique_values({x})",
        ])  # fmt: skip

    def indices(self, x: str, axis: int) -> str:
        """Return the text of an index vector along an axis."""
        n = self.size(x, axis)
        if not n:
            return "dt.asarray([], dtype=dt.int64)"
        if self.flip(0.3):
            for name in self.names():
                if self.scope[name].dtype == oracle.int64 and self.scope[name].ndim == 1:
                    return f"({name} % {n})"
        count = self.random.choice([1, n, n, 2])
        places = [self.random.randrange(-n, n) for _ in range(count)]
        return f"dt.asarray({places}, dtype=dt.int64)"

    def places(self, x: str) -> tuple[str, int]:
        """Return a key with an index array or a mask, and its axis."""
        found = self.value(x)
        if found is None or not found.ndim:
            return "...", 0
        axis = self.random.randrange(found.ndim)
        if self.flip(0.35):
            return f"{x} < {self.scalar()}" if found.dtype.kind != "b" else x, 0
        return ":, " * axis + self.indices(x, axis), axis

    def gather(self, x: str) -> str:
        key, axis = self.places(x)
        a = self.axis(x)
        return self.random.choice([
            f"{x}[{key}]",
            f"{x}[{key}]",
            f"dt.take({x}, {self.indices(x, axis)}, axis={axis})",
            f"dt.take_along_axis({x}, dt.argsort({x}, axis={a}), axis={a})",
            f"dt.index_add({x}, 0, {self.indices(x, 0)}, {self.operand(0)})",
        ])  # fmt: skip

    def arranged(self, x: str) -> str:
        """Return an op that moves elements into memory of its own."""
        y, a = self.operand(0), self.axis(x)
        return self.random.choice([
            f"dt.concat([{x}, {y}], axis={a})",
            f"dt.concat([{x}, {x}, {x}], axis={a})",
            f"dt.stack([{x}, {y}], axis={a})",
            f"dt.roll({x}, {self.random.randint(-2, 3)}, axis={a})",
            f"dt.repeat({x}, 2, axis={a})",
            f"dt.tile({x}, 2)",
            f"dt.tril({x})",
            f"dt.diff({x}, axis={a})",
            f"dt.reshape({x}.T, (-1,))",
        ])  # fmt: skip

    def of_sparse(self, x: str) -> str:
        names = self.names(sparse=True)
        s = self.random.choice(names) if names and self.flip(0.8) else f"{x}.to_sparse()"
        return self.random.choice([
            f"{s}.to_dense()",
            f"({s} @ {x})",
            f"({x} @ {s})",
            f"({s}.sum(axis={self.axis(s)})).to_dense()",
            f"{s}.sum()",
        ])  # fmt: skip

    # --- views

    def viewed(self, x: str) -> str:
        """Return a view of the value of `x`."""
        found = self.value(x)
        if found is None or not found.ndim:
            return f"dt.reshape({x}, (1,))" if self.flip() else f"{x}[None]"
        if self.flip(0.6):
            return f"{x}[{self.key(found.shape)}]"
        a, n = self.axis(x), math.prod(found.shape)
        order = self.random.sample(range(found.ndim), found.ndim)
        return self.random.choice([
            f"{x}.T" if found.ndim == 2 else f"dt.permute_dims({x}, {tuple(order)})",
            f"dt.permute_dims({x}, {tuple(order)})",
            f"dt.reshape({x}, (-1,))" if n else f"dt.expand_dims({x}, axis=0)",
            f"dt.reshape({x}, {(*found.shape[:-2], -1)})" if n and found.ndim > 1 else f"{x}[:]",
            f"dt.expand_dims({x}, axis={a})",
            f"dt.squeeze({x})",
            f"dt.flip({x}, axis={a})",
            f"dt.diagonal({x})" if found.ndim > 1 else f"dt.flip({x})",
            f"dt.broadcast_to({x}, {(2, *found.shape)})",
        ])  # fmt: skip

    def viewed_in_place(self, x: str) -> str:
        """Return a view that can be written to, as the target of an assignment."""
        text = self.viewed(x)
        return text if text.endswith("]") else f"{text}[...]"

    def key(self, shape: Any) -> str:
        """Return a basic index."""
        parts = []
        for n in shape[: self.random.randint(1, len(shape))]:
            parts.append(self.random.choices(
                [":", "1:", ":-1", "::-1", "::2", self.between(n), str(self.inside(n)), "None, :"],
                [3, 4, 3, 2, 2, 2, 3, 0.5],
            )[0])  # fmt: skip
        return ", ".join(parts)

    def between(self, n: int) -> str:
        a, b = sorted(self.random.randint(0, n) for _ in range(2))
        return f"{a}:{b}"

    def inside(self, n: int) -> int:
        return self.random.randrange(-n, n) if n else 0


TOPK = ("values", "indices")
