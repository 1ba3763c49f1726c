"""From a user's function to kernels: one for each grid at its top."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..arguments import shown
from ..dtypes import DType
from ..errors import ArgumentTypeError, KernelError
from ..loops.builder import Kernel
from ..loops.language import Effect, Value
from ..loops.verify import verify
from . import dsl
from .kernel_site import Cell, Given, Int, NotUniform, Scalar, Site, asks
from .lower_expressions import Outside
from .lower_loops import Rounds
from .lower_statements import FLAGS
from .source import Source, text_of
from .weak_types import Weak

KINDS = {bool: "b", int: "i", float: "f"}
DECLARE = "dt.In, dt.Out, dt.InOut (tensors), float, int, bool or a dtype (numbers)"


class Parameter(NamedTuple):
    """A parameter: a tensor of an access, or a number."""

    name: str
    access: str  # "" of a number
    scalar: Scalar | None


class Built(NamedTuple):
    """A kernel, and what its launch is given."""

    kernel: Kernel
    tensors: tuple[int, ...]  # of each buffer: which argument it is, or -1 - k of the k-th cell
    cells: tuple[Cell, ...]
    ints: tuple[Int, ...]
    scalars: tuple[int, ...]  # which argument, or len(parameters) + k of the k-th outside number
    grid: tuple[tuple[Value, Value], ...]  # where each axis starts and stops
    named: dict[str, Int]  # what the names in those stand for:
    arguments: dict[str, int]
    stores: dict[int, list[ast.expr]]  # by argument: where the text stores in it


class Text:
    """What is known of a function of the user's, before any tensor."""

    def __init__(self, f: Callable[..., object]) -> None:
        if not inspect.isfunction(f):
            raise KernelError(f"kernel: function is a function made with def, not {shown(f)}")
        self.source = Source(f, f.__name__)
        self.parameters = _parameters(self.source)
        self.outside: list[tuple[Source, str]] = []  # numbers, which are read at each launch
        self._places: dict[tuple[int, str], int] = {}

    def place(self, source: Source, name: str) -> int:
        """Which scalar argument a number of the outside is."""
        key = id(source.function), name
        if key not in self._places:
            self._places[key] = len(self.outside)
            self.outside.append((source, name))
        return len(self.parameters) + self._places[key]

    def numbers(self) -> list[Any]:
        """The numbers of the outside, as they are now."""
        return [source.outside(name)[1] for source, name in self.outside]


def _parameters(source: Source) -> tuple[Parameter, ...]:
    f, node = source.function, source.tree
    a = node.args
    if a.vararg or a.kwarg or a.kwonlyargs:
        source.refuse(node, "a kernel has no *args, **options and parameters by name alone")
    try:
        kinds = inspect.get_annotations(f, eval_str=True)
    except NameError as error:
        source.refuse(
            node, f"an annotation: {error}; what is local to a function is not seen there"
        )
    found = []
    for arg in (*a.posonlyargs, *a.args):
        kind = kinds.get(arg.arg)
        access = getattr(kind, "access", "") if kind in (dsl.In, dsl.Out, dsl.InOut) else ""
        scalar = None
        if not access:
            if isinstance(kind, DType) and kind.kind != "c":
                scalar = Scalar(kind.kind, kind)
            elif kind in KINDS:
                scalar = Scalar(KINDS[kind])
            else:
                source.refuse(arg, f"say what {arg.arg} is: `{arg.arg}: ...` one of {DECLARE}")
        found.append(Parameter(arg.arg, access, scalar))
    if not any("w" in p.access for p in found):
        source.refuse(node, "a kernel writes: declare a parameter dt.Out or dt.InOut")
    return tuple(found)


def build(text: Text, given: Sequence[Given | None], careful: bool) -> tuple[Built, ...]:
    """The kernels of a function for tensors of these kinds (None: a number).

    Raises: KernelError, DTypeError, ValueOverflow, with the user's line.
    """
    source = text.source
    uniform: list[ast.stmt] = []
    made: list[Built] = []
    for s in source.tree.body:
        if isinstance(s, ast.For):
            made.append(_one(text, given, careful, uniform, s))
        elif isinstance(s, ast.Assign) and not any(isinstance(t, ast.Subscript) for t in s.targets):
            uniform.append(s)
        elif not isinstance(s, ast.Pass) and not _is_text(s):
            source.refuse(
                s, "at the top of a kernel stand names and loops `for i, j in dt.grid(...)`; put "
                f"`{text_of(s, 40)}` inside",
            )  # fmt: skip
    if not made:
        source.refuse(source.tree, "a kernel has a loop over its points: `for i in dt.grid(n):`")
    return tuple(made)


def _is_text(s: ast.stmt) -> bool:
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)


def _one(
    text: Text, given: Sequence[Given | None], careful: bool, uniform: Sequence[ast.stmt],
    loop: ast.For,
) -> Built:  # fmt: skip
    source = text.source
    site = Site(source.name if source.name.isidentifier() else "kernel", careful)

    def number(where: Source, name: str) -> Weak:
        kind = KINDS.get(type(where.outside(name)[1]), "f")
        position = text.place(where, name)
        return Weak(kind, declare=lambda d: site.scalar(position, name, d))

    run = Rounds(source, site, number)
    run.around = ["grid"]
    run.env = dict.fromkeys(FLAGS, False)
    for k, p in enumerate(text.parameters):
        run.env[p.name] = _argument(site, k, p, given[k])
    effects: list[Effect | Value] = []
    run.effects = effects
    run.block(uniform)
    f = run.expr(loop.iter.func) if isinstance(loop.iter, ast.Call) else None
    if not (isinstance(f, Outside) and f.what is dsl.grid) or loop.orelse:
        source.refuse(loop, "the loop at the top of a kernel is `for i, j in dt.grid(...):`")
    axes, names = run.axes(loop)
    asked: set[str] = set()
    for name, (start, stop) in zip(names, axes, strict=True):
        try:
            asked |= asks(start) | asks(stop)
        except NotUniform:
            source.refuse(
                loop, "the extents of dt.grid follow from shapes and int arguments: they are known "
                "before the launch",
            )  # fmt: skip
        run.env[name] = Weak("i", site.axis(start, stop))
    run.block(loop.body)
    if not any(not isinstance(e, Value) for e in effects):
        source.refuse(loop, "this loop writes nothing")
    kernel = site.kernel(effects)
    verify(kernel)
    buffers = {id(t.buffer): t.position for t in site.tensors}
    cells = [c for c in site.cells.values() if any(b is c.buffer for b in kernel.buffers)]
    buffers |= {id(c.buffer): -1 - k for k, c in enumerate(cells)}
    return Built(
        kernel,
        tuple(buffers[id(b)] for b in kernel.buffers),
        tuple(cells),
        tuple(site.ints[n] for n in kernel.ints),
        tuple(site.scalars[n] for n, _ in kernel.scalars),
        tuple(axes),
        {n: i for n, i in site.ints.items() if n in asked},
        {n: k for n, k in site.scalars.items() if n in asked},
        site.stores,
    )


def _argument(site: Site, k: int, p: Parameter, given: Given | None) -> Any:
    if given is not None:
        return site.tensor(k, p.name, p.access, given)
    assert p.scalar is not None
    if p.scalar.dtype is None:
        return Weak(p.scalar.kind, declare=lambda d: site.scalar(k, p.name, d))
    d = p.scalar.dtype
    from_python = site.scalar(k, p.name, d.compute)
    return Weak(p.scalar.kind, from_python).cast(d)


def checked_number(called: str, p: Parameter, x: object) -> None:
    """Returns if an argument is a number of its parameter's kind. Raises: ArgumentTypeError."""
    assert p.scalar is not None
    allowed = {"b": (bool,), "i": (int,), "u": (int,), "f": (float, int)}[p.scalar.kind]
    if not isinstance(x, allowed) or (isinstance(x, bool) and p.scalar.kind != "b"):
        wanted = {"b": "a bool", "i": "an int", "u": "an int", "f": "a float"}[p.scalar.kind]
        raise ArgumentTypeError(
            f"{called}: {p.name} must be {wanted}, not {type(x).__name__}: {x!r}"
        )
