"""`dt.kernel`: a Python function of loops, loads and stores as kernels on every device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from ..arguments import flag
from ..arguments import function as callable_
from ..backend.faults import Asked
from ..device import opened as open_device
from ..engine import direct, programs, recording
from ..engine.programs import BoundStep
from ..engine.traced_numbers import TracedFloat
from ..errors import ArgumentTypeError
from ..fusion.plan import Step
from ..fusion.reasons import Kind, Reason
from ..graph.expr import Expr
from ..locks import Lock
from ..loops.legalize import legalize
from ..memory.tracing.stacktrace import caller
from ..plugins.opened import Opened
from ..recent import Recent
from . import race_check
from .compile import Built, Parameter, Text, build, checked_number
from .kernel_site import ANY, Given, known
from .launch_arguments import leaves_of

__all__ = ["kernel"]

MADE = 64  # kinds of tensors that a kernel is built for
LAUNCHES = 2048  # launches made ready, of all kernels
WHY = Reason(Kind.WORDS, "a kernel of one's own")
_ready: Recent[Hashable, tuple[BoundStep, ...]] = programs.holding(LAUNCHES)


class _Made(NamedTuple):
    built: tuple[Built, ...]
    static: tuple[int, ...]  # the arguments that bounds of grids depend on
    outside: int  # how many numbers of the outside there are


class LoopKernel:
    """What `dt.kernel` gives: call it with tensors and numbers; it writes, and returns nothing.

    `text(*arguments)` is its kernels in the loop language, `source(*arguments)` what the device
    compiles of them. `__wrapped__` is the function itself, which plain Python runs on NumPy's
    arrays.
    """

    def __init__(self, f: Callable[..., object], debug: bool) -> None:
        functools.update_wrapper(self, f)
        self._text, self._debug = Text(f), debug
        self._parameters = self._text.parameters
        self._tensors = tuple(k for k, p in enumerate(self._parameters) if p.access)
        self._written = tuple(
            i for i, k in enumerate(self._tensors) if "w" in self._parameters[k].access
        )
        self._made: Recent[Hashable, _Made] = Recent(2 * MADE)  # by specs and strides
        self._kernels: Recent[Hashable, _Made] = Recent(2 * MADE)  # by dtypes and kinds of strides
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<dt.kernel {self.__name__}({', '.join(p.name for p in self._parameters)})>"

    __name__: str

    def __call__(self, *args: Any, **named: Any) -> None:
        """Launches it on these arguments, in the order of other work on the same tensors.

        Raises: KernelError, DTypeError, with the user's line; ArgumentTypeError, DeviceError,
        ReadOnlyError, GradientError; IndexOutOfRange where indices are checked.
        """
        if named or len(args) != len(self._parameters):
            args = self._bound(args, named)
        numbers = list(args)
        leaves = leaves_of(self.__name__, self._parameters, self._tensors, self._written, args)
        for k, p in enumerate(self._parameters):
            if p.scalar is not None:
                numbers[k] = _number(self.__name__, p, args[k])
        steps, numbers = self._steps(leaves, numbers)
        line = caller() if any(s.checks for s in steps) else None
        if self._debug and recording.current() is None:
            self._launch_looking(leaves, steps, numbers, line)
        else:
            direct.launch(self.__name__, steps, leaves, self._written, numbers, line)

    def _launch_looking(
        self, leaves: list[Expr], steps: Sequence[BoundStep], numbers: list[Any], line: str | None
    ) -> None:
        """Launches step by step, each after a look for points that write to one place."""
        opened = direct.ready(leaves, self._written)
        of = dict(zip(self._tensors, leaves, strict=True))
        for b, step in zip(self._known(leaves).built, steps, strict=True):
            race_check.check(opened, self._text.source, b, step, of, numbers)
            direct.launch(self.__name__, (step,), leaves, self._written, numbers, line)

    def _bound(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        names = [p.name for p in self._parameters]
        defaults = self.__wrapped__.__defaults__ or ()  # type: ignore[attr-defined]  # a function
        found = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        twice = [n for n in names[: len(args)] if n in named]
        found |= dict(zip(names, args, strict=False)) | named
        if len(args) > len(names) or twice or {*found} != {*names}:
            raise ArgumentTypeError(
                f"{self.__name__}: takes ({', '.join(names)}), each once, by place or name; given "
                f"were {len(args)} by place, and {', '.join(named) or 'none'} by name"
            )
        return tuple(found[n] for n in names)

    # --- what is launched
    def _steps(
        self, leaves: Sequence[Expr], numbers: list[Any]
    ) -> tuple[tuple[BoundStep, ...], list[Any]]:
        """The launches made ready, and all numbers that they may ask for."""
        outside = self._text.numbers()
        every = numbers + outside
        kinds = (tuple([(e.spec, _strides(e)) for e in leaves]), *map(type, outside))
        key = (self, *kinds)
        made = self._made.find(kinds)
        if made is not None:
            static = tuple([every[k] for k in made.static])
            found = _ready.find((key, static))
            if found is not None:
                return found, every
        opened = open_device(leaves[0].spec.device)
        made = self._build(opened, leaves, kinds)
        outside = self._text.numbers()  # the first time they are found while it is built
        every = numbers + outside
        static = tuple([every[k] for k in made.static])
        steps = tuple(self._step(opened, b, leaves, every) for b in made.built)
        if made.outside == len(kinds) - 1:
            _ready[key, static] = steps
        return steps, every

    def _known(self, leaves: Sequence[Expr]) -> _Made:
        """What is launched for such tensors."""
        opened = open_device(leaves[0].spec.device)
        specs = tuple([(e.spec, _strides(e)) for e in leaves])
        return self._build(opened, leaves, (specs, *map(type, self._text.numbers())))

    def _build(self, opened: Opened, leaves: Sequence[Expr], kinds: tuple[Any, ...]) -> _Made:
        with self._lock:
            found = self._made.find(kinds)
            if found is None:
                given: list[Given | None] = [None] * len(self._parameters)
                for k, e in zip(self._tensors, leaves, strict=True):
                    classes = tuple([s if s in (0, 1) else ANY for s in _strides(e)])
                    given[k] = Given(e.spec.dtype, classes)
                careful = self._debug or opened.backend.careful
                key = (*given, careful, *kinds[1:])  # no kernel depends on sizes
                found = self._kernels.find(key)
                if found is None:
                    built = build(self._text, given, careful)
                    static = {k for b in built for k in b.arguments.values()}
                    found = _Made(built, tuple(sorted(static)), len(self._text.outside))
                    self._kernels[key] = found
                self._made[kinds] = found
            return found

    def _step(
        self, opened: Opened, b: Built, leaves: Sequence[Expr], numbers: Sequence[Any]
    ) -> BoundStep:
        of = dict(zip(self._tensors, leaves, strict=True))

        def value(what: str, tensor: int, axis: int) -> int:
            e = of[tensor]
            return (e.spec.shape if what == "n" else _strides(e))[axis]

        asked = {n: value(*i) for n, i in b.named.items()}
        asked |= {n: int(numbers[k]) for n, k in b.arguments.items()}
        ends = [(known(start, asked), known(stop, asked)) for start, stop in b.grid]
        grid = tuple(max(0, stop - start) for start, stop in ends)

        def integer(what: str, tensor: int, axis: int) -> int:
            if what == "extent":
                return grid[axis]
            return ends[axis][0] if what == "start" else value(what, tensor, axis)

        slots = {k: i for i, k in enumerate(self._tensors)}
        count = len(leaves)
        buffers = tuple((slots[k] if k >= 0 else count - 1 - k, 0) for k in b.tensors)
        checks = tuple(
            (count + i, 0, Asked(c.words, c.axis, of[c.tensor].spec.shape[c.axis] or -1))
            for i, c in enumerate(b.cells)
        )
        ints = tuple(integer(*i) for i in b.ints)
        nbytes = sum(of[k].spec.size * of[k].spec.itemsize for k in {*b.tensors} if k >= 0)
        step = Step(b.kernel, buffers, (), ints, b.scalars, grid, (WHY,), nbytes, checks)
        run = programs.launch_of(opened, step)
        return BoundStep(step, len(numbers), run)

    # --- what it is
    def _looked_at(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Opened, _Made]:
        if named or len(args) != len(self._parameters):
            args = self._bound(args, named)
        leaves = leaves_of(self.__name__, self._parameters, self._tensors, (), args)
        return open_device(leaves[0].spec.device), self._known(leaves)

    def text(self, *args: Any, **named: Any) -> str:
        """The kernels for these arguments, in the loop language; nothing is launched.

        Raises: as a call.
        """
        _, made = self._looked_at(args, named)
        return "\n\n".join(str(b.kernel) for b in made.built)

    def source(self, *args: Any, **named: Any) -> str:
        """What the device compiles for these arguments; nothing is launched.

        Raises: as a call; CompileError.
        """
        opened, made = self._looked_at(args, named)
        can, compiled = opened.backend.info.capabilities, opened.backend.compile
        return "\n\n".join(compiled(legalize(b.kernel, can)).source for b in made.built)


def _strides(e: Expr) -> tuple[int, ...]:
    found: tuple[int, ...] = e.spec.strides if e.op is not None else e.strides
    return found


def _number(called: str, p: Parameter, x: Any) -> Any:
    if type(x) is TracedFloat:
        x = x.taken()
    elif isinstance(x, np.generic):
        x = x.item()
    checked_number(called, p, x)
    return x


@overload
def kernel(f: Callable[..., object], /) -> LoopKernel: ...
@overload
def kernel(*, debug: bool = False) -> Callable[[Callable[..., object]], LoopKernel]: ...
def kernel(
    f: Callable[..., object] | None = None, /, *, debug: bool = False
) -> LoopKernel | Callable[[Callable[..., object]], LoopKernel]:
    """A kernel of one's own, made of a Python function of loops, loads and stores: a decorator.

    `f`: its parameters are declared `dt.In`, `dt.Out`, `dt.InOut` (tensors), float, int, bool or a
    dtype (numbers); its body is loops over `dt.grid`, whose points are independent, in the subset
    of Python that docs/kernels-of-loops.md describes. It is called with tensors of one device.
    `debug`: True has all indices checked, and tells where two points write to one place.
    Raises: KernelError, which shows the line, for what kernels do not have.

    >>> import dovetail as dt
    >>> @dt.kernel
    ... def add_rows(out: dt.Out, x: dt.In, scale: float):
    ...     for i in dt.grid(x.shape[0]):
    ...         out[i] = scale * sum(x[i, k] for k in range(x.shape[1]))
    >>> x = dt.ones((2, 3), device="reference")
    >>> out = dt.zeros(2, device="reference")
    >>> add_rows(out, x, 0.5); out.tolist()
    [1.5, 1.5]
    """
    debug = flag("kernel", debug, "debug")
    if f is None:
        return lambda g: kernel_of(g, debug)
    return kernel_of(f, debug)


def kernel_of(f: Callable[..., object], debug: bool) -> LoopKernel:
    """The kernel of a function."""
    callable_("kernel", f)
    return LoopKernel(f, debug)
