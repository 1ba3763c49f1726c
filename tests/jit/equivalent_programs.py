"""A generator of random programs of captured functions, as source text.

A program is a function with a closure, calls of it, and changes of the closure between the calls.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

__all__ = ["HEADER", "PLACES", "Program", "generate"]

HEADER = """\
import functools, types
from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass
import numpy as np
import dovetail as dt

def vec(seed, shape=(4,), dtype=dt.float32):
    values = np.random.default_rng(seed).integers(-7, 8, shape) / 4
    return dt.asarray(values).astype(dtype).copy()

@dataclass(eq=False)
class Data:
    w: object
    def get(self):
        return self.w

class Slots:
    __slots__ = ("w",)
    def __init__(self, w):
        self.w = w

class Net(dt.nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = dt.nn.Parameter(w)

def module(w):
    made = types.ModuleType("made")
    made.w = w
    return made

def keep(w):
    return lambda: w
"""

# How a tensor variable is created, read, and bound again; {n} is its name, {v} a tensor.
PLACES = {
    "cell": ("{n} = {v}", "{n}", "{n} = {v}"),
    "global": ("{n} = {v}", "{n}", "{n} = {v}"),
    "list": ("{n} = [{v}, vec(90)]", "{n}[0]", "{n}[0] = {v}"),
    "tuple": ("{n} = ({v}, vec(91))", "{n}[0]", "{n} = ({v}, {n}[1])"),
    "dict": ('{n} = {{"w": {v}}}', '{n}["w"]', '{n}["w"] = {v}'),
    "deque": ("{n} = deque([{v}, vec(92)])", "{n}[0]", "{n}[0] = {v}"),
    "dataclass": ("{n} = Data({v})", "{n}.w", "{n}.w = {v}"),
    "object": ("{n} = types.SimpleNamespace(w={v})", "{n}.w", "{n} = types.SimpleNamespace(w={v})"),
    "slots": ("{n} = Slots({v})", "{n}.w", "{n}.w = {v}"),
    "class": ("{n} = type('C', (), dict(w={v}))", "{n}.w", "{n}.w = {v}"),
    "instance": ("{n} = type('C', (), dict(w={v}))()", "{n}.w", "type({n}).w = {v}"),
    "module": ("{n} = module({v})", "{n}.w", "{n}.w = {v}"),
    "partial": (
        "{n} = functools.partial(lambda w: w, {v})",
        "{n}()",
        "{n} = functools.partial({n}.func, {v})",
    ),
    "method": ("{n} = Data({v}).get", "{n}()", "{n}.__self__.w = {v}"),
    "function": ("{n} = keep({v})", "{n}()", "{n} = keep({v})"),
    "default": ("{n} = lambda w={v}: w", "{n}()", "{n}.__defaults__ = ({v},)"),
    "nested": ('{n} = {{"a": [Data({v})]}}', '{n}["a"][0].w', '{n}["a"][0].w = {v}'),
    "parameter": ("{n} = Net({v})", "{n}.w", "{n}.w = dt.nn.Parameter({v})"),
    "context": ("{n} = ContextVar('v'); {n}.set({v})", "dt.constant({n}.get())", ""),
}
# The same for a number, and for a function.
NUMBER_PLACES = {
    "name": ("{n} = {v}", "{n}", "{n} = {v}"),
    "list": ("{n} = [{v}, 7]", "{n}[0]", "{n}[0] = {v}"),
    "dict": ('{n} = {{"k": {v}}}', '{n}["k"]', '{n}["k"] = {v}'),
    "nested": ('{n} = {{"a": [({v},)]}}', '{n}["a"][0][0]', '{n}["a"][0] = ({v},)'),
    "attribute": ("{n} = types.SimpleNamespace(k={v})", "{n}.k", "{n}.k = {v}"),
    "partial": (
        "{n} = functools.partial(lambda k: k, {v})",
        "{n}()",
        "{n} = functools.partial({n}.func, {v})",
    ),
    "default": ("{n} = lambda k={v}: k", "{n}()", "{n}.__defaults__ = ({v},)"),
    "function": ("{n} = keep({v})", "{n}()", "{n} = keep({v})"),
    "method": ("{n} = Data({v}).get", "{n}()", "{n}.__self__.w = {v}"),
}
FUNCTIONS = ["dt.tanh", "dt.sin", "lambda v: v * 2", "functools.partial(dt.maximum, vec(6))",
             "dt.nn.LeakyReLU(0.5)", "dt.nn.LeakyReLU(0.25)", "dt.elementwise(lambda v: v * 3)",
             "dt.func.grad(lambda v: (v * v).sum())"]  # fmt: skip
NUMBERS = ["2", "3", "0.0", "-0.0", "True", "False", "float('nan')", "np.float32(0.5)",
           "np.int64(2)", "0.25"]  # fmt: skip
VIEWS = ["{0}", "{0}[:]", "{0}[1:3]", "{0}[::-1]", "{0}[::2]", "{0}[2]", "{0}.reshape(2, 2)[1]",
         "{0}[1:][::2]", "{0}.reshape(2, 2).mT", "{0}[-2:]"]  # fmt: skip
WHOLE = ["{0}[:]", "{0}[::-1]", "{0}.reshape(2, 2).reshape(-1)", "{0}.reshape(2, 2).mT.reshape(4)",
         "dt.roll({0}, 1)"]  # fmt: skip
WRITES = ["{0}.add_({1})", "{0}.sub_({1})", "{0}.mul_(0.5)", "{0}[...] = {1}", "{0}.fill_(2.0)",
          "{0}.copy_({1})", "{0}.zero_()", "{0}[...] += {1}"]  # fmt: skip
SCATTERS = ["{0}[dt.asarray([0, 3])] = 1.5", "{0}[{0} > 0] = 0.5", "{0}[dt.asarray([2, 2])] += 1",
            "{0}.index_add_(0, dt.asarray([1, 1, 0, 3]), {1})"]  # fmt: skip
SMOOTH = ["{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} * 0.5 + {1}[::-1]", "{1} - 1",
          "dt.tanh({0})", "dt.sin({0}) * {1}", "{0} * {1}.sum()", "dt.maximum({0}, {1})",
          "dt.where({0} > {1}, {0}, 1.0)", "dt.exp(-{0} * {0})", "{0} / (1 + {1} * {1})",
          "{0}[dt.asarray([3, 0, 0, 1])]", "dt.cumulative_sum({0})"]  # fmt: skip
OTHER = ["dt.sort({0})", "{0} * rate", "{0} + rate * {1}", "{0} + n", "{0}.mean() + {1}",
         "dt.concat([{0}[2:], {1}[:2]])", "dt.stack([{0}, {1}]).mT.reshape(-1)[::2]",
         "(({0} > 0) & ({1} > 0)).astype(dt.float32)", "{0}.astype(dt.int32).astype(dt.float32)",
         "dt.argsort({0}).astype(dt.float32)", "({0}[:, None] * {1}).sum(axis=0)"]  # fmt: skip
PRODUCTS = ["({0}.reshape(2, 2) @ {1}.reshape(2, 2)).reshape(4)", "{0} * ({0} @ {1})"]
SQUARE = "({0}.reshape(2, 2) * 0.25 + 3 * dt.eye(2))"
ROUTINES = [f"dt.linalg.solve({SQUARE}, {{1}}.reshape(2, 2)).reshape(4)",
            f"dt.linalg.det({SQUARE}) * {{1}}", f"dt.linalg.inv({SQUARE}).reshape(4)",
            f"dt.linalg.cholesky({SQUARE} + {SQUARE}.mT).reshape(4)"]  # fmt: skip
GRADIENTS = [  # each plus 0: the gradient of a sum may be a broadcast view, which is read-only
    "dt.func.grad(lambda v: ({f}).sum())({0}) + 0",
    "dt.func.grad(lambda v: dt.func.grad(lambda v: ({f}).sum())(v).sum())({0}) + 0",
    "dt.func.grad(lambda v: (dt.func.grad(lambda v: dt.func.grad(lambda v: (({f}) * v).sum())(v)"
    ".sum())(v) * v).sum())({0}) + 0",
    "dt.func.value_and_grad(lambda v: ({f}).sum())({0})[1] + 0",
    "dt.func.vjp(lambda v: {f}, {0})[1]({1})[0] + 0",
]
ERRORS = ["{0} + dt.zeros(3)", "dt.linalg.inv(dt.zeros((2, 2)) * {0}[0]).reshape(4)",
          "dt.linalg.cholesky(-dt.eye(2) - {0}[0] * {0}[0]).reshape(4)", "{0}.reshape(3, 2)",
          "{0}[dt.asarray([9]) + 0 * {0}.astype(dt.int64)[:1]]", "{0}[7]",
          "dt.concat([{0}, {1}[:, None]])", "{0}.nothing_"]  # fmt: skip
LOOPS = [  # the parameters of a body, first line, result, and the call
    ("(i, v)", "pass", "{} * 1", "c.fori_loop(0, {n}, {f}, {0})"),
    ("(v, part)", "v[...] += part", "(v * 0.5, {}[1] * 1)", "c.scan({f}, {0}, {1})[1]"),
    ("(v, part)", "part.add_(1)", "(v, {}[1] + part)", "c.scan({f}, {0}, {1}, reverse=True)[1]"),
    ("(s)", "v = s[1]", "(s[0] + 1, {} * 1)",
     "c.while_loop(lambda s: s[0] < 2, {f}, (({1}[0] > 0).astype(dt.int64), {0}))[1]"),
]  # fmt: skip
LENGTHS = ["0", "1", "2", "n", "dt.asarray(n)", "(x[0] > 0).astype(dt.int64) + n"]
ARRAY_USES = ["{0} + dt.asarray({array})", "{0} * dt.asarray({array}[::-1].copy())"]
ITEMS = ["sum((w for w in {all}), {0} * 1)", "{all}[-1] * {0}"]
DRAWS = ["{0} + dt.random.normal(size=(4,)).astype(dt.float32)",
         "{0} * dt.random.uniform(size=(4,)).astype(dt.float32)",
         "{0} + generator.normal(size=(4,)).astype(dt.float32)"]  # fmt: skip
NUMBER_USES = ["{0} * {n}", "{0} * 1 if {n} else -{0}", "{0} + (5 if {n} == 2 else {n})"]


class Program(NamedTuple):
    """The source of a program, and the ways of running it that apply."""

    source: str
    calls: int
    writes_outside: bool
    kinds: frozenset[str]


def generate(seed: int) -> Program:
    """Return the program of a seed."""
    return _Generator(seed).program()


class _Generator:
    """Write random statements; all variables are tensors of four elements."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.setup: list[str] = []
        self.places: dict[str, str] = {}  # the kind, by name
        self.variables = ["x", "y", "p", "q"]
        self.inner = ["x", "y"]  # variables whose memory lies in examples, or in the function
        self.numbers: dict[str, str] = {}  # the kind, by name
        self.functions: list[str] = []
        self.arrays: list[str] = []
        self.kinds: set[str] = set()
        self.count, self.depth = 0, self.random.choice([2, 2, 2, 3])
        self.writes_outside = self.flip(0.5)

    # --- choices

    def flip(self, chance: float = 0.5) -> bool:
        return self.random.random() < chance

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def tensor(self) -> str:
        """Return an expression that makes a tensor of a closure or argument."""
        text = f"vec({self.random.randrange(50)})"
        other = self.random.choice(list(self.places)) if self.places else ""
        if other and self.flip(0.25):
            text = self.path(other)
            return f"{text}.detach()[::-1]" if self.flip(0.3) else text
        forms = [f"{text} * 2", f"{text}[::-1]", f"vec({self.random.randrange(50)}, (8,))[1::2]",
                 f"({text} + 1)[:]"]  # fmt: skip
        return text if self.flip(0.6) else self.random.choice(forms)

    def path(self, place: str) -> str:
        return PLACES[self.places[place]][1].format(n=place)

    def operand(self) -> str:
        paths = [self.path(n) for n in self.places]
        if paths and self.flip(0.35):
            return self.random.choice(paths)
        newest = max(self.random.choices(range(len(self.variables)), k=2))
        return self.variables[newest]

    def target(self) -> str:
        """Return a variable that may be written to."""
        if not self.writes_outside:
            return self.random.choice(self.inner)
        taken = {n for n, k in self.places.items() if k in ("parameter", "context")}
        paths = [self.path(n) for n in self.places if n not in taken]
        return self.random.choice(paths if paths and self.flip(0.4) else self.variables)

    def expression(self, smooth: bool = False, is_body: bool = True) -> str:
        tables = {"smooth": (SMOOTH, 6), "product": (PRODUCTS, 0.6), "routine": (ROUTINES, 0.6)}
        lists = [n for n, k in self.places.items() if k in ("list", "deque", "tuple")]
        if not smooth:
            tables |= {"other": (OTHER, 3), "random": (DRAWS, 0.2)}
            tables |= {"number": (NUMBER_USES, 0.8)} if self.numbers else {}
            tables |= {"array": (ARRAY_USES, 0.8)} if self.arrays else {}
            tables |= {"function": (["{f}({0})"], 0.8)} if self.functions else {}
            tables |= {"items": (ITEMS, 0.8)} if lists else {}
            tables |= {} if is_body else {"error": (ERRORS, 0.2)}  # dead branches are captured, too
        name = self.random.choices([*tables], [weight for _, weight in tables.values()])[0]
        self.kinds.add(name)
        numbers = [NUMBER_PLACES[kind][1].format(n=n) for n, kind in self.numbers.items()]
        kinds = (numbers, self.arrays, lists, self.functions)
        n, array, all_, f = (self.random.choice(names or [""]) for names in kinds)
        form = self.random.choice(tables[name][0])
        return form.format(self.operand(), self.operand(), n=n, array=array, all=all_, f=f)

    # --- the closure and its changes

    def make_closure(self) -> None:
        for kind in self.random.choices(list(PLACES), k=self.random.randint(1, 3)):
            name = self.name("g_" if kind == "global" else "w")
            self.setup.append(PLACES[kind][0].format(n=name, v=self.tensor()))
            self.places[name] = kind
        if self.flip(0.15):
            self.kinds.add("gradient outside")
            self.setup.append(f"{self.path(name)}.requires_grad_()")
        if self.flip(0.3):
            number, kind = (
                self.name(self.random.choice(["g_", "k"])),
                self.random.choice(list(NUMBER_PLACES)),
            )
            self.numbers[number] = kind
            self.setup.append(
                NUMBER_PLACES[kind][0].format(n=number, v=self.random.choice(NUMBERS))
            )
        if self.flip(0.15):
            self.functions.append(self.name(self.random.choice(["g_", "act"])))
            self.setup.append(f"{self.functions[-1]} = {self.random.choice(FUNCTIONS)}")
        if self.flip(0.15):
            self.arrays.append(self.name("array"))
            self.setup.append(f"{self.arrays[-1]} = np.arange(4, dtype='f4')")

    def change(self) -> list[str]:
        """Return statements that change the closure between two calls."""
        choices = [self.change_place] * 3 + [self.write_place] * 2
        choices += [self.change_number] * bool(self.numbers) + [self.change_array] * bool(
            self.arrays
        )
        choices += [self.change_function] * bool(self.functions)
        return [self.random.choice(choices)() for _ in range(self.random.randint(0, 2))] or ["pass"]

    def change_place(self) -> str:
        name = self.random.choice(list(self.places))
        made, path, bound = (t.format(n=name, v=self.tensor()) for t in PLACES[self.places[name]])
        kind = self.places[name]
        if kind in ("list", "deque") and self.flip(0.3):
            return f"{name}.append(vec(7))" if self.flip() else f"{name}[1] = {name}[0]"
        if kind == "dict" and self.flip(0.3):
            return f'{name}["k"] = vec(8)'
        if kind == "instance" and self.flip(0.3):
            return f"{name}.w = vec(9)"
        if self.flip(0.3) and not self.has_bodies:  # whose bodies keep shapes
            other = self.random.choice(["vec(1, (1,))", "vec(2, (), dt.float64)", "vec(3, (3,))",
                                        "vec(4, (4,), dt.float64)"])  # fmt: skip
            bound = PLACES[kind][2].format(n=name, v=other)
        if kind == "context":
            return f"{path}.data.fill_(3.0)"
        return made if self.flip(0.3) else bound

    def write_place(self) -> str:
        path = self.path(self.random.choice(list(self.places)))
        how = self.random.choice([".fill_(0.5)", ".mul_(2)", "[1:3].add_(1)", ".copy_(vec(5))",
                                  "[::2].sub_(1)"])  # fmt: skip
        look = f"; dt.evaluate({path})" if self.flip() else ""
        return f"{path}.detach(){how}{look}"

    def change_number(self) -> str:
        name = self.random.choice(list(self.numbers))
        form = NUMBER_PLACES[self.numbers[name]][self.random.choice([0, 2])]
        return form.format(n=name, v=self.random.choice(NUMBERS))

    def change_function(self) -> str:
        return f"{self.random.choice(self.functions)} = {self.random.choice(FUNCTIONS)}"

    def change_array(self) -> str:
        return f"{self.random.choice(self.arrays)}[1] += 1"

    def arguments(self) -> list[str]:
        """Return statements that make the arguments of a call."""
        x = self.tensor()
        y = self.random.choice([self.tensor(), self.tensor(), self.tensor(), "x", "x[::-1]"])
        lines = [f"x = {x}", f"y = {y}", f'd = {{"a": {self.tensor()}, "b": [{self.tensor()}]}}']
        if self.flip(0.1):
            lines = ["base = vec(60, (5,))", "x = base[:4]", "y = base[1:]", *lines[2:]]
        return [*lines, f"return x, y, d, {self.random.choice([0.5, 2.0, -0.0])}, {self.bound}"]

    # --- the function

    def block(self, depth: int, most: int) -> list[str]:
        kinds = {self.new: 6, self.write: 5.5, self.view: 2, self.gradient: 2, self.backward: 0.5,
                 self.shape: 0.7}  # fmt: skip
        if depth:
            kinds |= {self.cond: 1.5, self.loop: 3.5}
        lines: list[str] = []
        for _ in range(self.random.randint(1, most)):
            lines += self.random.choices(list(kinds), list(kinds.values()))[0](depth)
        return lines

    def assign(self, text: str, is_inner: bool = True) -> list[str]:
        name = self.name("t")
        self.variables.append(name)
        if is_inner:
            self.inner.append(name)
        return [f"{name} = {text}"]

    def new(self, depth: int) -> list[str]:
        return self.assign(self.expression(is_body=depth < self.depth))

    def shape(self, depth: int) -> list[str]:
        """Return a statement that uses a tensor of the closure without its values."""
        path = self.path(self.random.choice(list(self.places))) if self.places else "y"
        form = self.random.choice(["sum({0}.shape)", "dt.zeros_like({0}).sum()",
                                   "({0}.dtype is dt.float32)"])  # fmt: skip
        return self.assign(f"{self.operand()} * {form.format(path)}")

    def view(self, depth: int) -> list[str]:
        source = self.operand()
        return self.assign(self.random.choice(WHOLE).format(source), source in self.inner)

    def write(self, depth: int) -> list[str]:
        if self.flip(0.15):
            return [self.random.choice(SCATTERS).format(self.target(), self.operand())]
        view, value = self.random.choice(VIEWS), self.operand()
        value = value if self.flip(0.3) else f"({self.expression()})"
        return [self.random.choice(WRITES).format(view.format(self.target()), view.format(value))]

    def gradient(self, depth: int) -> list[str]:
        inner, self.variables = self.variables, [*self.variables[-2:], "v", "v"]
        f = self.expression(smooth=True)
        f = f if self.flip() else f"({f}) * v"
        self.variables = inner
        form = self.random.choice(GRADIENTS)
        return self.assign(form.format(self.operand(), self.operand(), f=f))

    def backward(self, depth: int) -> list[str]:
        leaf, other = self.name("leaf"), self.operand()
        if not self.writes_outside:  # the gradient of a tensor from outside is added to there
            other += ".detach()"
        lines = [f"{leaf} = ({self.operand()} * 1).detach().requires_grad_()",
                 f"({leaf} * {leaf} * {other}).sum().backward()"]  # fmt: skip
        return [*lines, *self.assign(f"{leaf}.grad + 0")]

    def nested(self, head: str, more: list[str], depth: int, result: str) -> list[str]:
        """Return the lines of a function with a block of its own."""
        before = self.variables, self.inner
        self.variables, self.inner = [*self.variables, *more], [*self.inner, *more]
        lines = self.block(depth - 1, 3)
        last = result.format(self.variables[-1])
        self.variables, self.inner = before
        return [head, *["    " + line for line in lines], f"    return {last}"]

    def cond(self, depth: int) -> list[str]:
        yes, no = self.name("yes"), self.name("no")
        lines = self.nested(f"def {yes}():", [], depth, "{} * 1")
        lines += self.nested(f"def {no}():", [], depth, "{} * 1")
        test = f"{self.operand()}[{self.random.randrange(4)}] > {self.random.randrange(-1, 2)}"
        return [*lines, *self.assign(f"c.cond({test}, {yes}, {no})")]

    def loop(self, depth: int) -> list[str]:
        parameters, first, result, call = self.random.choice(LOOPS)
        body = self.name("body")
        lines = self.nested(f"def {body}{parameters}:", ["v"], depth, result)
        call = call.format(self.operand(), self.operand(), f=body, n=self.random.choice(LENGTHS))
        return [lines[0], f"    {first}", *lines[1:], *self.assign(call)]

    def program(self) -> Program:
        self.make_closure()
        self.bound = self.random.randrange(3)
        body = self.block(self.depth, 6)
        kept = self.random.sample(self.variables, min(len(self.variables), 3))
        results = ["({})".format(", ".join([*kept, self.variables[-1]])), self.variables[-1],
                   "{" + f'"a": [{kept[0]}], "b": {self.variables[-1]}[::-1]' + "}"]  # fmt: skip
        self.has_bodies = any(line.startswith("def ") for line in body)
        calls = [self.arguments() for _ in range(4)]
        if self.flip():  # arguments of one kind, so that later calls replay the first
            calls = [[line.replace("vec(", "vec(k + ") for line in calls[0]]] * 4
        changes = [["pass"], *[self.change() for _ in range(3)]]
        cells = [
            n for n in [*self.places, *self.numbers, *self.functions] if not n.startswith("g_")
        ]
        outer = [n for n in [*self.places, *self.numbers, *self.functions] if n.startswith("g_")]
        named = [f"{word} {', '.join(names)}" for word, names in
                 (("nonlocal", cells), ("global", outer)) if names]  # fmt: skip
        globals_ = [f"global {', '.join(outer)}"] if outer else []
        lines = [
            "def make(c, seed=0):",
            *_indented([*globals_, "dt.random.manual_seed(3)",
                        "generator = dt.random.default_rng(5)", *self.setup]),
            "    def f(x, y, d, rate, n):",
            *_indented(['p, q = d["a"], d["b"][0]', *body,
                        f"return {self.random.choice(results)}"], 2),
            "    def change(k):",
            *_indented(named, 2),
            *_cases(changes),
            "    def call(k):",
            *_cases(calls),
            "    def state():",
            f"        return [{', '.join(self.path(n) for n in self.places)}]",
            "    return f, change, call, state",
        ]  # fmt: skip
        return Program(
            HEADER + "\n" + "\n".join(lines) + "\n", len(calls), self.writes_outside,
            frozenset(self.kinds),
        )  # fmt: skip


def _indented(lines: list[str], by: int = 1) -> list[str]:
    return ["    " * by + line for line in lines]


def _cases(blocks: list[list[str]]) -> list[str]:
    lines: list[str] = []
    for k, block in enumerate(blocks):
        lines += [f"        if k == {k}:", *_indented(block, 3)]
    return lines
