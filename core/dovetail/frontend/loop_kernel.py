"""`dt.kernel`: compile a Python function of loops, loads and stores for every device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, SupportsIndex, overload

import numpy as np

from ..argument_checks import flag
from ..argument_checks import function as callable_
from ..backend.faults import IndexPurpose
from ..decorated_functions import reduce_decorated
from ..device_class import opened as open_device
from ..engine import launch_eager, programs, tracer_api
from ..engine.launching import BoundKernel
from ..engine.traced_numbers import TracedFloat
from ..errors import ArgumentTypeError
from ..fusion.plan import PlannedLaunch
from ..fusion.reasons import Reason, ReasonKind
from ..graph.expr import Expr
from ..ir.legalize import legalize
from ..locks import Lock
from ..lru_cache import LRUCache
from ..memory.tracing.stacktrace import caller_line
from ..plugins.device_handle import OpenedDevice
from ..settings import current
from .compile import CompiledKernel, KernelDefinition, Parameter, compile_kernels
from .grid_bounds import evaluate_bound
from .launch_arguments import collect_leaves
from .race_check import check_races
from .user_kernel_builder import STRIDE_ANY, TensorType

__all__ = ["kernel"]

SPECIALISATIONS_MAX = 128  # of one function, for types of tensors
LAUNCHES_MAX = 2048  # bound launches, of all functions
REASON = Reason(ReasonKind.CUSTOM, "a kernel of one's own")
_launch_cache: LRUCache[Hashable, tuple[BoundKernel, ...]] = programs.create_program_cache(
    LAUNCHES_MAX
)


class _Specialisation(NamedTuple):
    """The kernels of a function for tensors of some types."""

    kernels: tuple[CompiledKernel, ...]
    grid_scalars: tuple[int, ...]  # the arguments that the grids depend on
    outer_count: int  # how many outer numbers are known after the compilation


class LoopKernel:
    """A kernel of loops, as `dt.kernel` makes it: call it with tensors and numbers.

    It writes to tensors, and returns nothing. `text(*arguments)` is its kernel IR,
    `source(*arguments)` what the device compiles. `__wrapped__` is the function itself, which runs
    in plain Python on NumPy's arrays.
    """

    __name__: str

    def __init__(self, function: Callable[..., object], debug: bool) -> None:
        functools.update_wrapper(self, function)
        self._definition, self._debug = KernelDefinition(function), debug
        self._parameters = self._definition.parameters
        self._tensors = tuple(k for k, p in enumerate(self._parameters) if p.access)
        self._written = tuple(
            i for i, k in enumerate(self._tensors) if "w" in self._parameters[k].access
        )
        # By specs and strides; and, fewer, by dtypes and classes of strides.
        self._specialisations_by_specs: LRUCache[Hashable, _Specialisation] = LRUCache(
            SPECIALISATIONS_MAX
        )
        self._specialisations_by_types: LRUCache[Hashable, _Specialisation] = LRUCache(
            SPECIALISATIONS_MAX
        )
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<dt.kernel {self.__name__}({', '.join(p.name for p in self._parameters)})>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        return reduce_decorated(self, protocol, self._debug)

    def __call__(self, *args: Any, **named: Any) -> None:
        """Launch it on these arguments, in the order of other work on the same tensors.

        Raises: KernelError, DTypeError, with the user's line; ArgumentTypeError, DeviceError,
        ReadOnlyError, GradientError; OutOfRangeError where indices are checked.
        """
        if named or len(args) != len(self._parameters):
            args = self._bind(args, named)
        numbers = list(args)
        leaves = collect_leaves(self.__name__, self._parameters, self._tensors, self._written, args)
        for k, p in enumerate(self._parameters):
            if not p.access:
                numbers[k] = _check_number(self.__name__, p, args[k])
        steps, numbers = self._bound_steps(leaves, numbers)
        line = caller_line() if any(s.checks for s in steps) else None
        if self._debug and tracer_api.current() is None:
            self._launch_checked(leaves, steps, numbers, line)
        else:
            launch_eager.launch_steps(self.__name__, steps, leaves, self._written, numbers, line)

    def _launch_checked(
        self, leaves: list[Expr], steps: Sequence[BoundKernel], numbers: list[Any], line: str | None
    ) -> None:
        """Launch step by step; raise KernelError before a step with two writers of one place."""
        opened = launch_eager.prepare_leaves(leaves, self._written)
        leaf_of = dict(zip(self._tensors, leaves, strict=True))
        source, kernels = self._definition.source, self._specialise(leaves).kernels
        for compiled, step in zip(kernels, steps, strict=True):
            check_races(opened, source, compiled, step, leaf_of, numbers)
            launch_eager.launch_steps(self.__name__, (step,), leaves, self._written, numbers, line)

    def _bind(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments in parameter order, with defaults.

        Raises: ArgumentTypeError unless each parameter has one argument.
        """
        names = [p.name for p in self._parameters]
        defaults = self.__wrapped__.__defaults__ or ()  # type: ignore[attr-defined]  # a function
        bound = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        twice = [n for n in names[: len(args)] if n in named]
        bound |= dict(zip(names, args, strict=False)) | named
        if len(args) > len(names) or twice or {*bound} != {*names}:
            raise ArgumentTypeError(
                f"{self.__name__}: expected each of ({', '.join(names)}) once, got {len(args)} "
                f"positional arguments and {', '.join(named) or 'none'} by keyword"
            )
        return tuple(bound[n] for n in names)

    def _bound_steps(
        self, leaves: Sequence[Expr], numbers: list[Any]
    ) -> tuple[tuple[BoundKernel, ...], list[Any]]:
        """Return the bound launches, cached, and the numbers: the arguments', then the outer."""
        outer = self._definition.outer_numbers()
        scalars = numbers + outer
        key = (tuple([(e.spec, _strides(e)) for e in leaves]), *map(type, outer))
        specialisation = self._specialisations_by_specs.find(key)
        if specialisation is not None:
            grid_scalars = tuple([scalars[k] for k in specialisation.grid_scalars])
            steps = _launch_cache.find(((self, *key), grid_scalars, current().fast_math))
            if steps is not None:
                return steps, scalars
        specialisation = self._compile(leaves, key)
        scalars = numbers + self._definition.outer_numbers()  # a first compilation finds them
        grid_scalars = tuple([scalars[k] for k in specialisation.grid_scalars])
        steps = tuple(self._bind_step(k, leaves, scalars) for k in specialisation.kernels)
        if specialisation.outer_count == len(outer):
            _launch_cache[(self, *key), grid_scalars, current().fast_math] = steps
        return steps, scalars

    def _specialise(self, leaves: Sequence[Expr]) -> _Specialisation:
        """Return the kernels for the specs and strides of these leaves; compile them if new."""
        specs = tuple([(e.spec, _strides(e)) for e in leaves])
        return self._compile(leaves, (specs, *map(type, self._definition.outer_numbers())))

    def _compile(self, leaves: Sequence[Expr], specs: tuple[Any, ...]) -> _Specialisation:
        """Return the kernels for such tensors, cached by specs and types; none depends on sizes."""
        with self._lock:
            specialisation = self._specialisations_by_specs.find(specs)
            if specialisation is not None:
                return specialisation
            types: list[TensorType | None] = [None] * len(self._parameters)
            for k, e in zip(self._tensors, leaves, strict=True):
                strides = tuple([s if s in (0, 1) else STRIDE_ANY for s in _strides(e)])
                types[k] = TensorType(e.spec.dtype, strides)
            checks = self._debug or open_device(leaves[0].spec.device).backend.careful
            key = (*types, checks, *specs[1:])
            specialisation = self._specialisations_by_types.find(key)
            if specialisation is None:
                kernels = compile_kernels(self._definition, types, checks)
                grid_scalars = sorted({n for k in kernels for n in k.grid_scalars.values()})
                outer_count = len(self._definition.outer_names)
                specialisation = _Specialisation(kernels, tuple(grid_scalars), outer_count)
                self._specialisations_by_types[key] = specialisation
            self._specialisations_by_specs[specs] = specialisation
            return specialisation

    def _bind_step(
        self, compiled: CompiledKernel, leaves: Sequence[Expr], scalars: Sequence[Any]
    ) -> BoundKernel:
        """Return a kernel bound to the sizes and strides of its tensors, and to its grid."""
        leaf_of = dict(zip(self._tensors, leaves, strict=True))

        def read_tensor_int(what: str, tensor: int, axis: int) -> int:
            """Return the extent ("n") or the stride of a tensor's axis."""
            e = leaf_of[tensor]
            return (e.spec.shape if what == "n" else _strides(e))[axis]

        numbers = {n: read_tensor_int(*i) for n, i in compiled.grid_ints.items()}
        numbers |= {n: int(scalars[k]) for n, k in compiled.grid_scalars.items()}
        bounds = [
            (evaluate_bound(start, numbers), evaluate_bound(stop, numbers))
            for start, stop in compiled.grid
        ]
        grid = tuple(max(0, stop - start) for start, stop in bounds)

        def read_runtime_int(what: str, tensor: int, axis: int) -> int:
            """Return the value of an integer parameter: of the grid or of a tensor."""
            if what == "extent":
                return grid[axis]
            return bounds[axis][0] if what == "start" else read_tensor_int(what, tensor, axis)

        slots = {k: i for i, k in enumerate(self._tensors)}
        count = len(leaves)
        buffers = tuple((slots[k] if k >= 0 else count - 1 - k, 0) for k in compiled.tensors)
        checks = tuple(
            (
                count + i,
                0,
                IndexPurpose(c.message, c.axis, leaf_of[c.tensor].spec.shape[c.axis] or -1),
            )
            for i, c in enumerate(compiled.cells)
        )
        ints = tuple(read_runtime_int(*i) for i in compiled.ints)
        specs = [leaf_of[k].spec for k in {*compiled.tensors} if k >= 0]
        nbytes = sum(s.size * s.itemsize for s in specs)
        kernel = compiled.kernel
        if current().fast_math:
            kernel = replace(kernel, fast_math=True)
        step = PlannedLaunch(
            kernel, buffers, (), ints, compiled.scalars, grid, (REASON,), nbytes, checks
        )
        opened = open_device(leaves[0].spec.device)
        return BoundKernel(step, len(scalars), programs.bind_launch(opened, step))

    def _open_specialised(
        self, args: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[OpenedDevice, _Specialisation]:
        """Return the opened device, and the kernels for these arguments, compiled if new."""
        if named or len(args) != len(self._parameters):
            args = self._bind(args, named)
        leaves = collect_leaves(self.__name__, self._parameters, self._tensors, (), args)
        return open_device(leaves[0].spec.device), self._specialise(leaves)

    def text(self, *args: Any, **named: Any) -> str:
        """Return the kernel IR for these arguments, without a launch."""
        _, specialisation = self._open_specialised(args, named)
        return "\n\n".join(str(k.kernel) for k in specialisation.kernels)

    def source(self, *args: Any, **named: Any) -> str:
        """Return the source text that the device compiles for these arguments, without a launch."""
        opened, specialisation = self._open_specialised(args, named)
        can, compile_kernel = opened.backend.info.capabilities, opened.backend.compile
        kernels = [legalize(k.kernel, can) for k in specialisation.kernels]
        return "\n\n".join(compile_kernel(k).source for k in kernels)


def _strides(e: Expr) -> tuple[int, ...]:
    """Return the strides of a leaf; contiguous ones for an expression that is still pending."""
    strides: tuple[int, ...] = e.spec.strides if e.op is not None else e.strides
    return strides


def _check_number(kernel_name: str, p: Parameter, x: Any) -> Any:
    """Return an argument as the parameter's kind of number.

    Raises: ArgumentTypeError for others.
    """
    if type(x) is TracedFloat:
        x = x.to_argument()
    elif isinstance(x, np.generic):
        x = x.item()
    allowed = {"b": (bool,), "i": (int,), "u": (int,), "f": (float, int)}[p.kind]
    if not isinstance(x, allowed) or (isinstance(x, bool) and p.kind != "b"):
        expected = {"b": "a bool", "i": "an int", "u": "an int", "f": "a float"}[p.kind]
        raise ArgumentTypeError(
            f"{kernel_name}: {p.name} must be {expected}, got {type(x).__name__} {x!r}"
        )
    return x


@overload
def kernel(f: Callable[..., object], /) -> LoopKernel: ...
@overload
def kernel(*, debug: bool = False) -> Callable[[Callable[..., object]], LoopKernel]: ...
def kernel(
    f: Callable[..., object] | None = None, /, *, debug: bool = False
) -> LoopKernel | Callable[[Callable[..., object]], LoopKernel]:
    """Make a kernel of a Python function of loops, loads and stores: a decorator.

    The kernel is called like the function, with tensors of one device; it writes into them and
    returns nothing. Its parameters are declared:

        dt.In, dt.Out, dt.InOut     a tensor that is read, written, or both
        float, int, bool, dt.int8   a number

    A loop over `dt.grid` at the top of the body is one launch; its points are independent and run
    in no order. `for i in dt.grid(n)` has one axis, and `for i, j in dt.grid(n, m)` two; an extent
    is a size or (start, stop). Inside a point, `range` is a sequential loop, and `sum(...)` of a
    generator is a reduction in the canonical order. docs/kernels-of-loops.md describes the subset
    of Python.

    To debug, call `kernel.__wrapped__` with NumPy arrays: it is the plain function.
    `kernel.text(...)` shows the kernel for these arguments, `kernel.source(...)` what the device
    compiles. A kernel has no gradient; see `autograd.Function`.

    - `f`: the function.
    - `debug`: True checks all indices, and detects two points that write to one place. False leaves
      indices unchecked; one that is out of range may crash Python.

    Raises: KernelError, which shows the line, for what kernels do not have.
    See also: `grid`, `elementwise`, `raw_kernel`, `atomic_add`.

    >>> import dovetail as dt
    >>> @dt.kernel
    ... def add_rows(out: dt.Out, x: dt.In, scale: float):
    ...     for i in dt.grid(x.shape[0]):
    ...         out[i] = scale * sum(x[i, k] for k in range(x.shape[1]))
    >>> x = dt.ones((2, 3))
    >>> out = dt.zeros(2)
    >>> add_rows(out, x, 0.5); out.tolist()
    [1.5, 1.5]
    """
    debug = flag("kernel", debug, "debug")

    def decorate(function: Callable[..., object]) -> LoopKernel:
        """Return the kernel of a function. Raises: KernelError for invalid parameters."""
        callable_("kernel", function)
        return LoopKernel(function, debug)

    return decorate if f is None else decorate(f)
