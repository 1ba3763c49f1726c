"""Compilation of a user's function to kernels: one for each loop over a grid at its top."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..argument_checks import shown
from ..dtypes import DType
from ..errors import KernelError
from ..ir.builder import Kernel
from ..ir.language import Value
from ..ir.verify import verify
from ..tensor.promotion import plain_number
from . import dsl
from .lower import RULES, lower_grid
from .lower_statements import NO_FLAGS
from .lowering_context import Lowering
from .source import FunctionSource, text_of
from .user_kernel_builder import ErrorCell, RuntimeInt, TensorType, UserKernelBuilder
from .weak_types import WeakNumber

SCALAR_KINDS = {bool: "b", int: "i", float: "f"}
DECLARATIONS = "dt.In, dt.Out, dt.InOut (tensors), float, int, bool or a dtype (numbers)"


class Parameter(NamedTuple):
    """A declared parameter: a tensor with an access, or a number."""

    name: str
    access: str  # "" of a number
    kind: str = ""  # of a number: "b", "i", "u" or "f"
    dtype: DType | None = None  # of a number that is declared with one


class CompiledKernel(NamedTuple):
    """A kernel, and what its launch passes to it."""

    kernel: Kernel
    tensors: tuple[int, ...]  # of each buffer: the argument's position, or -1 - k for cell k
    cells: tuple[ErrorCell, ...]
    ints: tuple[RuntimeInt, ...]
    scalars: tuple[int, ...]  # the argument's position, or len(parameters) + k for outer number k
    grid: tuple[tuple[Value, Value], ...]  # start and stop of each axis
    grid_ints: dict[str, RuntimeInt]  # the names in `grid`
    grid_scalars: dict[str, int]
    stores: dict[int, list[ast.expr]]  # by the argument's position: where the text writes to it


class KernelDefinition:
    """A user's function, its declared parameters, and the outer numbers that it reads.

    An outer number is that of a name in an enclosing Python scope. Each launch reads it anew.
    """

    def __init__(self, f: Callable[..., object]) -> None:
        if not inspect.isfunction(f):
            raise KernelError(f"kernel: function must be defined with def, got {shown(f)}")
        self.source = FunctionSource(f, f.__name__)
        self.parameters = _parse_parameters(self.source)
        self.outer_names: list[tuple[FunctionSource, str]] = []
        self._positions: dict[tuple[int, str], int] = {}

    def outer_position(self, source: FunctionSource, name: str) -> int:
        """Return an outer number's position among the scalar arguments; append a new name."""
        key = id(source.function), name
        if key not in self._positions:
            self._positions[key] = len(self.parameters) + len(self.outer_names)
            self.outer_names.append((source, name))
        return self._positions[key]

    def outer_numbers(self) -> list[Any]:
        """Return the present values of the outer numbers, in the order of their positions."""
        return [source.outer_value(name)[1] for source, name in self.outer_names]


def _parse_parameters(source: FunctionSource) -> tuple[Parameter, ...]:
    """Return the declared parameters of a function. Raises: KernelError for an invalid one."""
    node, a = source.tree, source.tree.args
    if a.vararg or a.kwarg or a.kwonlyargs:
        source.raise_kernel_error(
            node, "a kernel cannot have *args, **options or keyword-only parameters"
        )
    try:
        annotations = inspect.get_annotations(source.function, eval_str=True)
    except NameError as error:
        source.raise_kernel_error(
            node, f"an annotation: {error}; annotations cannot use local names of a function"
        )
    parameters = []
    for arg in (*a.posonlyargs, *a.args):
        name = arg.arg
        declared: Any = annotations.get(name)
        if any(declared is access for access in (dsl.In, dsl.Out, dsl.InOut)):
            parameters.append(Parameter(name, declared.access))
        elif isinstance(declared, DType) and declared.kind != "c":
            parameters.append(Parameter(name, "", declared.kind, declared))
        elif isinstance(declared, type) and declared in SCALAR_KINDS:
            parameters.append(Parameter(name, "", SCALAR_KINDS[declared]))
        else:
            source.raise_kernel_error(
                arg, f"{name} must be annotated: `{name}: ...` with one of {DECLARATIONS}"
            )
    if not any("w" in p.access for p in parameters):
        source.raise_kernel_error(
            node, "a kernel must write a tensor; declare a parameter dt.Out or dt.InOut"
        )
    return tuple(parameters)


def compile_kernels(
    definition: KernelDefinition, types: Sequence[TensorType | None], checks: bool
) -> tuple[CompiledKernel, ...]:
    """Return the kernels of a function for tensors of these types; None: a number.

    checks: check all indices.
    Raises: KernelError, DTypeError, ValueOverflowError, with the user's line.
    """
    source = definition.source
    uniform: list[ast.stmt] = []
    kernels: list[CompiledKernel] = []
    for s in source.tree.body:
        if isinstance(s, ast.For):
            kernels.append(_compile_grid(definition, types, checks, uniform, s))
        elif isinstance(s, ast.Assign) and not any(isinstance(t, ast.Subscript) for t in s.targets):
            uniform.append(s)
        elif not isinstance(s, ast.Pass) and not _is_literal(s):
            source.raise_kernel_error(
                s,
                "the top level of a kernel must hold assignments and loops `for i, j in "
                f"dt.grid(...)` only; move `{text_of(s, 40)}` into a loop",
            )
    if not kernels:
        source.raise_kernel_error(
            source.tree, "a kernel must have a loop over its points: `for i in dt.grid(n):`"
        )
    return tuple(kernels)


def _is_literal(s: ast.stmt) -> bool:
    """Return True for a statement that is a lone constant, such as a docstring."""
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)


def _compile_grid(
    definition: KernelDefinition,
    types: Sequence[TensorType | None],
    checks: bool,
    uniform: Sequence[ast.stmt],
    loop: ast.For,
) -> CompiledKernel:
    """Return the verified kernel of one loop over a grid, after the assignments before the loop."""
    source = definition.source
    builder = UserKernelBuilder(source.name if source.name.isidentifier() else "kernel", checks)

    def outer_number(where: FunctionSource, name: str) -> WeakNumber:
        """Return a number of an enclosing scope, declared as a scalar argument at its first use."""
        kind = SCALAR_KINDS.get(type(plain_number(where.outer_value(name)[1])), "f")
        position = definition.outer_position(where, name)
        return WeakNumber(kind, declare=lambda d: builder.scalar(position, name, d))

    scope = dict(NO_FLAGS)
    for k, p in enumerate(definition.parameters):
        scope[p.name] = _declare(builder, k, p, types[k])
    ctx = Lowering(source, builder, outer_number, RULES, scope)
    kernel = builder.build(lower_grid(ctx, uniform, loop))
    verify(kernel)
    cells = [c for c in builder.cells.values() if any(b is c.buffer for b in kernel.buffers)]
    arguments_of = {id(t.buffer): t.position for t in builder.tensors}
    arguments_of |= {id(c.buffer): -1 - k for k, c in enumerate(cells)}
    return CompiledKernel(
        kernel,
        tuple(arguments_of[id(b)] for b in kernel.buffers),
        tuple(cells),
        tuple(builder.ints[n] for n in kernel.ints),
        tuple(builder.scalars[n] for n, _ in kernel.scalars),
        tuple(builder.grid),
        {n: i for n, i in builder.ints.items() if n in builder.grid_names},
        {n: k for n, k in builder.scalars.items() if n in builder.grid_names},
        builder.stores,
    )


def _declare(
    builder: UserKernelBuilder, position: int, p: Parameter, tensor_type: TensorType | None
) -> Any:
    """Return a parameter's value in the kernel; an untyped number is declared when used."""
    if tensor_type is not None:
        return builder.tensor(position, p.name, p.access, tensor_type)
    if p.dtype is None:
        return WeakNumber(p.kind, declare=lambda d: builder.scalar(position, p.name, d))
    return WeakNumber(p.kind, builder.scalar(position, p.name, p.dtype.compute)).cast(p.dtype)
