"""`dt.raw_kernel`: source text in a device's own language, compiled at its first launch."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..argument_checks import integers, refused
from ..backend.diskcache import sha256_digest
from ..backend.host_compiler import find_included
from ..backend.interface import Grid, RawArgument, RawLaunch
from ..device_class import opened as open_device
from ..dtypes import BY_CODE, DType
from ..engine import launch_eager
from ..engine.traced_numbers import TracedFloat
from ..errors import (
    ArgumentError,
    ArgumentTypeError,
    CompileError,
    DeviceError,
    DovetailError,
    DTypeError,
    LayoutError,
)
from ..graph.expr import Expr
from ..locks import Lock
from ..tensor.promotion import plain_number
from .launch_arguments import collect_leaves

__all__ = ["raw_kernel"]

SIGNATURE_EXAMPLE = "`name(out: w float32, x: r float32, n: int64, a: float32)`"
_HEAD = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*([A-Za-z_]\w*)\s*:\s*(?:(r|w|rw)\s+)?(\w+)\s*")
# A line number in a compiler's log: `a.c:3:5: error`, `<source>(3): error`, `error: a.cl:3:5:`
_ERROR_LINE = re.compile(
    r"(?:[:(]|^)(\d+)(?:[:,]\d+)?\)?\s*:?\s*(?:fatal )?error|error: [^\n]*?:(\d+):", re.MULTILINE
)
_TYPES: dict[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,), "f": (float, int)}
_DTYPES = {d.name: d for d in BY_CODE.values()} | BY_CODE
GRID_AXES_MAX = 3
PointCounts: TypeAlias = "int | tuple[int, ...] | None"  # along each axis


class RawKernel:
    """A kernel in a device's own language, as `dt.raw_kernel` makes it.

    Call it with tensors and numbers; it returns nothing. `grid=`, where the device has one: the
    number of work items along each axis; by default the number of elements of the first tensor
    that is written. `group=`: the number of work items in a group.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        device_type: str,
        signature: str,
        options: tuple[str, ...],
        strided: bool,
    ) -> None:
        self.file: Path | None = None
        if isinstance(source, str):
            self.source, self._first_line = source, 0
        else:
            self.file = Path(source).absolute()
            text = _read_source(self.file)
            head = _file_head(self.file, options)
            self.source, self._first_line = head + text, head.count("\n")
            options = (*options, f"-I{self.file.parent}")
        self.device_type, self._options = device_type, options
        self._signature = signature
        self.__name__, self.arguments = _parse_signature(signature)
        self._strided = strided
        self._tensors = tuple(k for k, a in enumerate(self.arguments) if a.access)
        memory = [self.arguments[k] for k in self._tensors]
        self._dtypes = tuple(a.dtype for a in memory)
        self._written = tuple(i for i, a in enumerate(memory) if "w" in a.access)
        self._numbers = tuple(
            (k, a.name, _TYPES[a.dtype.kind]) for k, a in enumerate(self.arguments) if not a.access
        )
        if not self._written:
            raise ArgumentError(
                f"raw_kernel: {self.__name__} must write a tensor; declare a parameter w or rw"
            )
        self._compiled: dict[Any, RawLaunch] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<dt.raw_kernel {self.__name__} of {self.device_type}>"

    def __reduce__(self) -> tuple[object, ...]:
        options = self.source, self.device_type, self._signature, self._options, self._strided
        return RawKernel, options

    def __call__(self, *args: Any, grid: PointCounts = None, group: PointCounts = None) -> None:
        """Launch it on these arguments, in the order of other work on the same tensors.

        Raises: CompileError with the compiler's log and the line; ArgumentTypeError, DTypeError,
        DeviceError, LayoutError, ReadOnlyError, GradientError.
        """
        name = self.__name__
        if len(args) != len(self.arguments):
            names = ", ".join(a.name for a in self.arguments)
            raise ArgumentTypeError(
                f"{name}: expected ({names}) by position, got {len(args)} arguments"
            )
        leaves = collect_leaves(name, self.arguments, self._tensors, self._written, args)
        launch, backend = self._prepare_launch(leaves)
        numbers = []
        for position, parameter, types in self._numbers:
            x = args[position]
            if type(x) not in types:
                x = self._check_number(parameter, types, x)
            numbers.append(x)
        launch_grid: Grid | None = None
        if backend.raw_grids:
            launch_grid = self._check_grid(leaves, grid, group)
            if 0 in launch_grid.points:
                return
        elif grid is not None or group is not None:
            raise ArgumentError(
                f"{name}: grid= and group= are not supported on {backend.info.type}; leave them out"
            )
        launch_eager.launch_raw(
            name, self.source, leaves, self._written, numbers, launch, launch_grid
        )

    def _prepare_launch(self, leaves: Sequence[Expr]) -> tuple[RawLaunch, Any]:
        """Check dtypes and strides; compile at the first use; return launch and backend."""
        for k, e in enumerate(leaves):
            if e.spec.dtype is not self._dtypes[k]:
                a = self.arguments[self._tensors[k]]
                raise DTypeError(
                    f"{self.__name__}: {a.name} must be {a.dtype.name}, as in the signature, got "
                    f"{e.spec.dtype.name}; cast it with astype()"
                )
            if e.op is None and e.strides != e.spec.strides and not self._strided and e.spec.size:
                _require_contiguous(self.__name__, self.arguments[self._tensors[k]].name, e)
        device = leaves[0].spec.device
        opened = device.opened or open_device(device)
        launch = self._compiled.get(device)
        if launch is None:
            launch = self._compile(device, opened.backend)
        return launch, opened.backend

    def _compile(self, device: Any, backend: Any) -> RawLaunch:
        """Return the cached launch for a device, or compile and cache it.

        Raises: DeviceError for a device of another type, CompileError if the backend rejects the
        source.
        """
        if device.type != self.device_type:
            raise DeviceError(
                f"{self.__name__}: the arguments must be on {self.device_type}, got {device}; move "
                f"them with x.to({self.device_type!r})"
            )
        with self._lock:
            launch = self._compiled.get(device)
            if launch is None:
                try:
                    launch = backend.compile_raw(
                        self.source, self.__name__, self.arguments, self._options
                    )
                except CompileError as error:
                    raise CompileError(
                        f"raw_kernel {self.__name__}: {error}{self._error_lines(error)}"
                    ) from None
                alignment = backend.info.capabilities.offset_alignment
                if alignment > 1:
                    launch = self._require_alignment(launch, alignment)
                self._compiled[device] = launch
            return launch

    def _require_alignment(self, launch: RawLaunch, alignment: int) -> RawLaunch:
        """Return a launch that raises LayoutError for an offset that is not aligned."""
        memory = [self.arguments[k].name for k in self._tensors]

        def launch_aligned(addresses: list[Any], *rest: Any) -> None:
            """Launch. Raises: LayoutError unless all offsets are multiples of the alignment."""
            for name, offset in zip(memory, addresses[1::2], strict=True):
                if offset % alignment:
                    raise LayoutError(
                        f"{self.__name__}: the offset of {name} in its memory must be a multiple "
                        f"of {alignment} bytes on {self.device_type}, got {offset}; pass "
                        f"{name}.copy()"
                    )
            launch(addresses, *rest)

        return launch_aligned

    def _error_lines(self, error: DovetailError) -> str:
        """Return text with the lines of the source that a compiler's log names; "" for none."""
        lines, shown = self.source.split("\n")[self._first_line :], []
        log, prefix = str(error), "line "
        if self.file is not None:  # the log also names lines of the files that it includes
            log = "\n".join(line for line in log.splitlines() if str(self.file) in line)
            prefix = f"{self.file}:"
        for number in dict.fromkeys(int(a or b) for a, b in _ERROR_LINE.findall(log)):
            if 1 <= number <= len(lines) and lines[number - 1].strip():
                shown.append(f"\n  {prefix}{number}: {lines[number - 1].strip()}")
        return "".join(shown)

    def _check_number(self, parameter: str, types: tuple[type, ...], x: Any) -> Any:
        """Return a number of one of the types. Raises: ArgumentTypeError for others."""
        if type(x) is TracedFloat and float in types:
            return x.to_argument()
        if isinstance(x, np.generic):
            x = x.item()
        number = plain_number(x)
        if type(number) in types:
            return number
        expected = " or ".join(t.__name__ for t in types)
        raise ArgumentTypeError(
            f"{self.__name__}: {parameter} must be {expected}, got {type(x).__name__} {x!r}"
        )

    def _check_grid(self, leaves: Sequence[Expr], grid: PointCounts, group: PointCounts) -> Grid:
        """Return the checked grid, by default with a point for each element of the first output.

        Raises: ArgumentError unless grid and group have one to three numbers, equally many, of at
        least 0 and 1; ArgumentTypeError for numbers that are no ints.
        """
        size = leaves[self._written[0]].spec.size
        points = (size,) if grid is None else integers(self.__name__, grid, "grid")
        group_points = None if group is None else integers(self.__name__, group, "group")
        is_sized = 1 <= len(points) <= GRID_AXES_MAX and min(points) >= 0
        if group_points is not None:
            is_sized = is_sized and len(group_points) == len(points) and min(group_points) > 0
        if not is_sized:
            raise ArgumentError(
                f"{self.__name__}: grid= and group= must be one to three natural numbers each, the "
                f"same number of both, those of group= positive, got {grid} and {group}"
            )
        return Grid(points, group_points)


def _require_contiguous(kernel: str, name: str, e: Expr) -> None:
    """Raise a LayoutError if the strides of an expression are not contiguous."""
    for n, s, want in zip(e.spec.shape, e.strides, e.spec.strides, strict=True):
        if n != 1 and s != want:
            raise LayoutError(
                f"{kernel}: {name} must be contiguous, got strides {e.strides}; pass "
                "x.contiguous(), or create the kernel with strided=True and pass the strides"
            )


def _read_source(file: Path) -> str:
    """Return the text of a source file. Raises: ArgumentError if it cannot be read."""
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"raw_kernel: source {str(file)!r} cannot be read: {error}") from None


def _file_head(file: Path, options: Sequence[str]) -> str:
    """Return lines that name the file for the compiler, and contain a digest of its headers."""
    folders = [Path(o[2:]) for o in options if o.startswith("-I") and len(o) > 2]
    included = [path.read_bytes() for path in find_included([file], folders)]
    name = json.dumps(str(file), ensure_ascii=False)
    return f"// included files: {sha256_digest(repr(included).encode()).hex()}\n#line 1 {name}\n"


def _parse_signature(signature: str) -> tuple[str, tuple[RawArgument, ...]]:
    """Return the name and the parameters. Raises: ArgumentError for an invalid signature."""
    if not isinstance(signature, str):
        raise refused("raw_kernel", "signature", "a string", signature)
    head = _HEAD.fullmatch(signature)
    if head is None:
        raise ArgumentError(
            f"raw_kernel: signature must be like {SIGNATURE_EXAMPLE}, got {signature!r}"
        )
    arguments = []
    for part in head[2].split(",") if head[2].strip() else []:
        match = _PARAMETER.fullmatch(part)
        dtype: DType | None = None if match is None else _DTYPES.get(match[3])
        if match is None or dtype is None:
            raise ArgumentError(
                "raw_kernel: a parameter of the signature must be memory, `x: r float32` (r, w or "
                f"rw), or a number, `n: int64`, got {part.strip()!r}"
            )
        if not match[2] and (dtype.kind == "c" or dtype.compute is not dtype):
            raise ArgumentError(f"raw_kernel: a number cannot be {dtype.name}; pass a tensor")
        arguments.append(RawArgument(match[1], dtype, match[2] or ""))
    if len({a.name for a in arguments}) < len(arguments):
        raise ArgumentError(f"raw_kernel: the names of parameters must differ, got {signature!r}")
    return head[1], tuple(arguments)


def raw_kernel(
    source: str | os.PathLike[str],
    device_type: str,
    signature: str,
    *,
    options: tuple[str, ...] = (),
    strided: bool = False,
) -> RawKernel:
    """Make a kernel of C, OpenCL C or CUDA C text; memory must be contiguous unless `strided`.

    Memory is passed as a pointer to its first element. No check covers what the text does with it.
    See docs/kernels-of-loops.md.

    - `source`: the text, which is compiled at the first launch, or a `pathlib.Path` of its file.
      The file is read now, so after an edit make the kernel again. `#include "name"` is relative to
      the file, and errors show the file and the line.
    - `device_type`: the type of the devices that it is for.
    - `signature`: the function's name, and of each parameter, in order, its name and dtype; of
      memory also r, w or rw, as in "scale(out: w float32, x: r float32, n: int64, a: float32)".
    - `options`: words for the compiler.
    - `strided`: True accepts memory that is not contiguous; pass the strides to the text as
      numbers.

    Raises: ArgumentError, ArgumentTypeError.
    See also: `kernel`, `custom_op`.

    >>> import dovetail as dt
    >>> scale = dt.raw_kernel(
    ...     "void scale(float *out, const float *x, int64_t n, float a) {"
    ...     " for (int64_t i = 0; i < n; i++) out[i] = a * x[i]; }",
    ...     "cpu", "scale(out: w float32, x: r float32, n: int64, a: float32)")
    >>> scale
    <dt.raw_kernel scale of cpu>
    """
    if not isinstance(source, str | os.PathLike):
        raise refused("raw_kernel", "source", "a string or a pathlib.Path", source)
    if not isinstance(device_type, str):
        raise refused("raw_kernel", "device_type", "a string", device_type)
    if isinstance(options, str) or not all(isinstance(o, str) for o in options):
        raise refused("raw_kernel", "options", "a tuple of strings", options)
    return RawKernel(
        source, device_type.partition(":")[0], signature, tuple(options), bool(strided)
    )
