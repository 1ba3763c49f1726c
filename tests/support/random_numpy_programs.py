"""Random short programs of NumPy statements, and their results under NumPy and dovetail.

A program is the text of a function `program(np, x, y, m, k, s, n)`: two vectors of floats, a
matrix, a vector of integers, a float and an integer. Each statement is tried with NumPy when it is
generated, so a program raises no error there. The function returns all of its variables.
"""

from __future__ import annotations

import contextlib
import random
import types
import warnings
from collections.abc import Callable
from typing import Any

import dovetail as dt
import dovetail.numpy as ours
import numpy

LENGTH = 5
ARGUMENTS = ["x", "y", "m", "k", "s", "n"]
ELEMENTWISE = """
sqrt(abs({a})) exp(-abs({a})) sin({a}) abs({a}) sign({a}) floor({a}) square({a}) negative({a})
round({a},1) isfinite({a}) cos({a}) log1p(abs({a})) rint({a}) tanh({a}) logical_not({a})
positive({a})
""".split()  # noqa: SIM905
PAIRS = """
maximum minimum add multiply subtract hypot arctan2 greater logical_and
""".split()  # noqa: SIM905
REDUCTIONS = """
sum mean max min prod any all std argmax argmin median var ptp count_nonzero
""".split()  # noqa: SIM905
METHODS = """
sum() mean() max() min() any() all() argmax() cumsum() copy() prod() std()
""".split()  # noqa: SIM905
VECTORS = """
cumsum({v}) diff({v}) sort({v}) flip({v}) argsort({v},kind='stable') roll({v},2) zeros_like({v})
cumprod({v}) unique({v}) concatenate([{v},{w}]) outer({v},{w}) where({v}>{f},{v},{w}) dot({v},{w})
nonzero({v}>{f})[0] clip({v},-1,{f}) arange({i}) linspace(0,1,{i}) full({i},{f})
zeros({i},dtype=int) array([{f},{g}]) interp({f},np.sort({v}),{w}) convolve({v},[1.0,2.0])
append({v},{f}) repeat({v},2) stack([{v},{w}]) searchsorted(np.sort({v}),{f}) where({v}>{f})[0]
array({f}) trapezoid({v}*1.0) polyval([1.0,2.0],{f}) bincount(abs({k})) inner({v},{w})
allclose({v},{w}) isclose({f},{g}) array_equal({v},{w}) eye({i}) ones(({i},2)) gradient({v})
cross([1.0,{f},2.0],[{g},0.0,1.0]) tile({v},2) median({v}) quantile({v},0.3) percentile({v},40)
cumsum({m},axis=0) mean({m},axis=1) max({m},axis=0,keepdims=True) linalg.norm({v}) triu({m})
diag({m}) trace({m}[:,:2]) transpose({m}) expand_dims({v},0) atleast_2d({v}) nan_to_num({v})
array([{v},{w}]) asarray({f}) float64({f}) int64({i})
""".split()  # noqa: SIM905
OPERATORS = "+ - * / // % ** < <= > >= == != & | ^".split()  # noqa: SIM905
UPDATES = "+= -= *= /= //=".split()  # noqa: SIM905


class Builder:
    """A program that grows by statements that NumPy runs without an error.

    seed: of the choices.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.inputs = build_inputs(seed)
        self.scope = copy_inputs(self.inputs)
        self.lines: list[str] = []
        self.count = 0

    def build(self, statements: int) -> str:
        """Return the program after so many attempts to add a statement."""
        for _ in range(statements):
            with contextlib.suppress(IndexError):  # no variable has the kind of value
                self.try_to_add(self.statement())
        return self.text(self.lines)

    def text(self, lines: list[str]) -> str:
        """Return the text of the function."""
        body = "".join(f"    {line}\n" for line in lines)
        arguments = ", ".join(ARGUMENTS)
        return f"def program(np, {arguments}):\n{body}    return dict(locals())\n"

    def try_to_add(self, statement: str) -> None:
        """Add a statement if NumPy runs the program, and no value is huge or has no elements."""
        lines = [*self.lines, *statement.split("\n")]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = run_with_numpy(self.text(lines), self.inputs)
        except Exception:
            return
        if all(map(is_comparable, found.values())):
            self.scope, self.lines = found, lines

    # --- operands

    def pick(self, accept: Callable[[Any], bool]) -> str:
        """Return a variable with an accepted value."""
        return self.random.choice([n for n, value in self.scope.items() if accept(value)])

    def vector(self) -> str:
        """Return a vector: a variable, a slice, a row or a mask."""
        name = self.pick(lambda v: isinstance(v, numpy.ndarray) and v.ndim == 1)
        form = self.random.randrange(9)
        if form == 0:
            return f"{name}[1:]"
        if form == 1:
            return f"{name}[::-1]"
        if form == 2:
            return f"{self.matrix()}[{self.random.randrange(3)}]"
        if form == 3:
            return f"{self.matrix()}[:, 1]"
        if form == 4:
            return f"{name}[{name} > 0]"
        if form == 5:
            return f"{name}[k]"
        return name

    def matrix(self) -> str:
        """Return a variable that is a matrix."""
        return self.pick(lambda v: isinstance(v, numpy.ndarray) and v.ndim == 2)

    def number(self) -> str:
        """Return a number: a variable, an element, or a constant."""
        form = self.random.randrange(6)
        if form < 2:
            return self.pick(lambda v: not isinstance(v, numpy.ndarray) or v.ndim == 0)
        if form == 2:
            return f"{self.vector()}[{self.random.randrange(-2, 3)}]"
        if form == 3:
            return f"{self.matrix()}[{self.random.randrange(3)}, -1]"
        return self.random.choice(["2", "3.5", "-1", "0.5", "True", "1e-3", "7"])

    def any_value(self) -> str:
        """Return a vector, a matrix or a number."""
        choices = [self.vector, self.vector, self.matrix, self.number, self.number]
        return self.random.choice(choices)()

    def expression(self) -> str:
        """Return an expression of one or two calls or operators."""
        form = self.random.randrange(12)
        a, b = self.any_value(), self.any_value()
        if form < 4:
            return f"({a}) {self.random.choice(OPERATORS)} ({b})"
        if form == 4:
            return "np." + self.random.choice(ELEMENTWISE).format(a=a)
        if form == 5:
            return f"np.{self.random.choice(PAIRS)}({a}, {b})"
        if form == 6:
            axis = self.random.choice(["", "", ", axis=0", ", axis=-1", ", keepdims=True"])
            return f"np.{self.random.choice(REDUCTIONS)}({a}{axis})"
        if form == 7:
            return f"({a}).{self.random.choice(METHODS)}"
        if form == 8:
            cast = self.random.choice(["float", "int", "bool", "abs", "round", "np.float32", "-"])
            return f"{cast}({self.number()})"
        if form == 9:
            dtype = self.random.choice(["float32", "int64", "bool", "int32"])
            x = f"({self.matrix()}).astype(np.{dtype})"
            return x if self.random.random() < 0.5 else f"({x}) + ({b})"
        if form == 10:
            return f"({self.vector()}) @ ({self.vector()})"
        k = self.pick(
            lambda v: isinstance(v, numpy.ndarray) and v.ndim == 1 and v.dtype.kind == "i"
        )
        return "np." + self.random.choice(VECTORS).format(
            v=self.vector(), w=self.vector(), m=self.matrix(), f=self.number(), g=self.number(),
            i=self.random.randrange(1, 6), k=k,
        )  # fmt: skip

    # --- statements

    def statement(self, depth: int = 0) -> str:
        """Return a statement; in loops and branches a simple one."""
        form = self.random.randrange(10 if depth == 0 else 7)
        if form < 3:
            return f"{self.new_name(depth)} = {self.expression()}"
        if form == 3:
            target = self.pick(lambda v: True)
            return f"{target} {self.random.choice(UPDATES)} {self.any_value()}"
        if form < 6:
            place = self.random.choice(
                ["[1]", "[-1]", "[1:3]", "[::2]", "[0]", "[:]", "[k]", "[...]"]
            )
            name = self.pick(lambda v: isinstance(v, numpy.ndarray))
            operator = self.random.choice(["=", "=", *UPDATES])
            if self.random.random() < 0.2:  # NumPy reads what it has written if memory overlaps
                return f"{name}[{name} > 0] {operator} {self.number()}"
            return f"{name}{place} {operator} {self.any_value()}"
        if form == 6:
            name = self.pick(lambda v: isinstance(v, numpy.ndarray) and v.ndim > 0)
            view = self.random.choice(["[1:]", "[::-1]", "[0]", ".T", ".reshape(-1)", "[...]"])
            return f"{self.new_name(depth)} = {name}{view}"
        if form == 7:
            condition = f"{self.number()} {self.random.choice(['<', '>', '=='])} {self.number()}"
            if self.random.random() < 0.3:
                condition = f"np.{self.random.choice(['any', 'all'])}({self.vector()} > 0.3)"
            first, second = self.statement(1), self.statement(1)
            return f"if {condition}:\n    {first}\nelse:\n    {second}"
        name, i = self.pick(lambda v: isinstance(v, numpy.ndarray) and v.ndim > 0), "i"
        loop = self.random.choice([f"for {i} in range(3):", f"for {i} in range(1, len({name})):"])
        body = self.random.choice([
            f"{name}[{i}] = {name}[{i} - 1] * 0.5 + {self.number()}",
            f"{name}[{i}] += {self.any_value()}",
            self.statement(1),
            f"s = s * 0.5 + {name}[{i}]",
            f"s += {name}[{i}]\n    n = {name}.argmax()",
            f"if {name}[{i}] > s:\n        s = {name}[{i}]",
        ])  # fmt: skip
        return f"{loop}\n    {body}"

    def new_name(self, depth: int) -> str:
        """Return the name of a new variable, or of an argument, as always in a branch."""
        if depth or self.random.random() < 0.2:
            return self.random.choice([*ARGUMENTS[:3], "s"])
        self.count += 1
        return f"v{self.count}"


def build_inputs(seed: int) -> dict[str, Any]:
    """Return the arguments of a program."""
    rng = numpy.random.default_rng(seed)
    return {
        "x": rng.normal(size=LENGTH),
        "y": rng.normal(size=LENGTH),
        "m": rng.normal(size=(3, LENGTH)),
        "k": rng.integers(0, 3, size=LENGTH),
        "s": float(rng.normal()),
        "n": int(rng.integers(1, 4)),
    }


def copy_value(value: Any) -> Any:
    """Return a copy of an array, and other values as they are."""
    return value.copy() if isinstance(value, numpy.ndarray) else value


def copy_inputs(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with copies of their arrays."""
    return {name: copy_value(value) for name, value in inputs.items()}


def is_comparable(value: Any) -> bool:
    """Return True for numbers and small arrays of finite values of moderate size."""
    if not isinstance(value, (bool, int, float, numpy.generic, numpy.ndarray)):
        return False
    array = numpy.asarray(value)
    if array.dtype.kind not in "biuf" or array.dtype.name == "float16":
        return False
    return 0 < array.size <= 300 and bool((abs(array.astype(float)) < 1e6).all())


def compile_program(text: str) -> Callable[..., dict[str, Any]]:
    """Return the function of a program."""
    module = types.ModuleType("programs")
    exec(text, module.__dict__)
    program: Callable[..., dict[str, Any]] = module.program
    return program


def run_with_numpy(text: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of a program under NumPy."""
    with numpy.errstate(all="ignore"):
        return _select_values(compile_program(text)(numpy, **copy_inputs(inputs)))


def _select_values(variables: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of a program without the namespace and the counter of its loops."""
    return {name: value for name, value in variables.items() if name not in ("np", "i")}


def as_ours(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with ndarrays of dovetail."""
    return {n: ours.array(v) if isinstance(v, numpy.ndarray) else v for n, v in inputs.items()}


def describe_difference(got: Any, want: Any, has_types: bool) -> str:
    """Return how two values differ, or an empty text.

    has_types: a number must be one, of the same type.
    """
    arrays = (numpy.ndarray, ours.ndarray)  # a method of NumPy's scalar gives NumPy's array
    if has_types and isinstance(want, numpy.ndarray) != isinstance(got, arrays):
        return f"{type(got).__name__} instead of {type(want).__name__}"
    if has_types and not isinstance(want, numpy.ndarray) and type(got) is not type(want):
        return f"{type(got).__name__} instead of {type(want).__name__}"
    a, b = numpy.asarray(got), numpy.asarray(want)
    has_number = not has_types and isinstance(want, (bool, int, float))
    if a.shape != b.shape or (a.dtype != b.dtype and not has_number):
        return f"{a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
    if a.dtype.kind in "f":
        rtol = 1e-4 if numpy.float32 in (a.dtype, b.dtype) else 1e-8
        is_close = numpy.allclose(a, b, rtol, rtol, equal_nan=True)
    else:
        is_close = bool((a == b).all())
    return "" if is_close else f"{a.tolist()} instead of {b.tolist()}"


def find_differences(text: str, seed: int, captures: bool) -> list[str]:
    """Return the differences between the variables of a program under dovetail and under NumPy.

    A captured program is called with its own arguments, and with those of another seed, twice.
    """
    program = compile_program(text)
    if not captures:
        found = program(ours, **as_ours(build_inputs(seed)))
        return _compare(found, run_with_numpy(text, build_inputs(seed)), True)
    captured = dt.jit(lambda *values: _select_values(program(ours, *values)))
    differences = []
    for call in (seed, seed + 1, seed, seed + 1):
        try:
            want = run_with_numpy(text, build_inputs(call))
        except Exception:
            continue  # a statement that fits other values only
        if not all(map(is_comparable, want.values())):
            continue
        found = captured(*as_ours(build_inputs(call)).values())
        differences += [f"call {call - seed}: {d}" for d in _compare(found, want, False)]
    return differences


def _compare(found: dict[str, Any], want: dict[str, Any], has_types: bool) -> list[str]:
    """Return a text for each variable that differs."""
    texts = {n: describe_difference(found[n], want[n], has_types) for n in want}
    return [f"{name}: {text}" for name, text in texts.items() if text]


def generate(seed: int, statements: int = 12) -> str:
    """Return the program of a seed."""
    return Builder(seed).build(statements)
