"""`dt.raw_kernel`: text in a device's own language, compiled when it is first launched there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arguments import integers, refused
from ..backend.interface import Grid, RawArgument, RawLaunch
from ..device import opened as open_device
from ..dtypes import BY_CODE, DType
from ..engine import direct
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
from .launch_arguments import leaves_of

__all__ = ["raw_kernel"]

SIGNATURE = "`name(out: w float32, x: r float32, n: int64, a: float32)`"
_HEAD = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*([A-Za-z_]\w*)\s*:\s*(?:(r|w|rw)\s+)?(\w+)\s*")
# Where compilers say that something is: `a.c:3:5: error`, `<source>(3): error`, `error: a.cl:3:5:`
_LINE = re.compile(
    r"(?:[:(]|^)(\d+)(?:[:,]\d+)?\)?\s*:?\s*(?:fatal )?error|error: [^\n]*?:(\d+):", re.MULTILINE
)
AXES = 3


class _Number(NamedTuple):
    """A number: which argument, its name, and the types that it may be."""

    position: int
    name: str
    types: tuple[type, ...]


class RawKernel:
    """What `dt.raw_kernel` gives: call it with tensors and numbers; it returns nothing.

    `grid=`, where the device has one: how many work items there are along each axis; as many as
    the first tensor that is written has elements, if not given. `group=`: how many of them in a
    group.
    """

    def __init__(
        self, source: str, device_type: str, signature: str, options: tuple[str, ...], strided: bool
    ) -> None:
        self.source, self.device_type, self._options = source, device_type, options
        self.__name__, self.arguments = _parsed(signature)
        self._strided = strided
        self._tensors = tuple(k for k, a in enumerate(self.arguments) if a.access)
        memory = [self.arguments[k] for k in self._tensors]
        self._dtypes = tuple(a.dtype for a in memory)
        self._written = tuple(i for i, a in enumerate(memory) if "w" in a.access)
        self._numbers = tuple(
            _Number(k, a.name, _TYPES[a.dtype.kind])
            for k, a in enumerate(self.arguments)
            if not a.access
        )
        if not self._written:
            raise ArgumentError(
                f"raw_kernel: {self.__name__} writes nothing; say w or rw of memory"
            )
        self._compiled: dict[Any, RawLaunch] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<dt.raw_kernel {self.__name__} of {self.device_type}>"

    def __call__(
        self, *args: Any, grid: int | tuple[int, ...] | None = None,
        group: int | tuple[int, ...] | None = None,
    ) -> None:  # fmt: skip
        """Launches it on these arguments, in the order of other work on the same tensors.

        Raises: CompileError with the compiler's log and the line; ArgumentTypeError, DTypeError,
        DeviceError, LayoutError, ReadOnlyError, GradientError.
        """
        name = self.__name__
        if len(args) != len(self.arguments):
            names = ", ".join(a.name for a in self.arguments)
            raise ArgumentTypeError(f"{name}: takes ({names}) by place, not {len(args)} arguments")
        leaves = leaves_of(name, self.arguments, self._tensors, self._written, args)
        launch, backend = self._checked(leaves)
        numbers = []
        for position, called, types in self._numbers:
            x = args[position]
            if type(x) not in types:
                x = self._number(called, types, x)
            numbers.append(x)
        asked: Grid | None = None
        if backend.raw_grids:
            asked = self._grid(leaves, grid, group)
        elif grid is not None or group is not None:
            raise ArgumentError(f"{name}: on {backend.info.type} it is called once; leave grid out")
        if asked is not None and 0 in asked.points:
            return
        direct.run(name, self.source, leaves, self._written, numbers, launch, asked)

    def _checked(self, leaves: Sequence[Expr]) -> tuple[RawLaunch, Any]:
        """What launches it on the device of these. Raises: DTypeError, LayoutError, ..."""
        for k, e in enumerate(leaves):
            if e.spec.dtype is not self._dtypes[k]:
                a = self.arguments[self._tensors[k]]
                raise DTypeError(
                    f"{self.__name__}: {a.name} is {a.dtype.name} in its signature, and "
                    f"{e.spec.dtype.name} was given; cast it with astype()"
                )
            if e.op is None and e.strides != e.spec.strides and not self._strided and e.spec.size:
                _require_dense(self.__name__, self.arguments[self._tensors[k]].name, e)
        device = leaves[0].spec.device
        opened = device.opened or open_device(device)
        found = self._compiled.get(device)
        if found is None:
            found = self._compile(device, opened.backend)
        return found, opened.backend

    def _compile(self, device: Any, backend: Any) -> RawLaunch:
        if device.type != self.device_type:
            raise DeviceError(
                f"{self.__name__}: is text for {self.device_type}, and its arguments are on "
                f"{device}; move them with x.to({self.device_type!r})"
            )
        with self._lock:
            found = self._compiled.get(device)
            if found is None:
                try:
                    found = backend.compile_raw(
                        self.source, self.__name__, self.arguments, self._options
                    )
                except CompileError as error:
                    raise CompileError(
                        f"raw_kernel {self.__name__}: {error}{self._lines(error)}"
                    ) from None
                alignment = backend.info.capabilities.offset_alignment
                if alignment > 1:
                    found = self._at_aligned(found, alignment)
                self._compiled[device] = found
            return found

    def _at_aligned(self, launch: RawLaunch, alignment: int) -> RawLaunch:
        """A launch that refuses memory at offsets that the device cannot take."""
        memory = [self.arguments[k].name for k in self._tensors]

        def checked(at: list[Any], *rest: Any) -> None:
            for name, offset in zip(memory, at[1::2], strict=True):
                if offset % alignment:
                    raise LayoutError(
                        f"{self.__name__}: {name} begins {offset} bytes into its memory, and "
                        f"{self.device_type} takes multiples of {alignment}; give {name}.copy()"
                    )
            launch(at, *rest)

        return checked

    def _lines(self, error: DovetailError) -> str:
        """The lines of the text that a compiler's log names."""
        lines, shown = self.source.split("\n"), []
        for number in dict.fromkeys(int(a or b) for a, b in _LINE.findall(str(error))):
            if 1 <= number <= len(lines) and lines[number - 1].strip():
                shown.append(f"\n  line {number}: {lines[number - 1].strip()}")
        return "".join(shown)

    def _number(self, called: str, types: tuple[type, ...], x: Any) -> Any:
        if type(x) is TracedFloat and float in types:
            return x.taken()
        if isinstance(x, np.generic):
            x = x.item()
        if type(x) in types:
            return x
        wanted = " or ".join(t.__name__ for t in types)
        raise ArgumentTypeError(
            f"{self.__name__}: {called} must be {wanted}, not {type(x).__name__}: {x!r}"
        )

    def _grid(
        self, leaves: Sequence[Expr], grid: int | tuple[int, ...] | None,
        group: int | tuple[int, ...] | None,
    ) -> Grid:  # fmt: skip
        if grid is None:
            points: tuple[int, ...] = (leaves[self._written[0]].spec.size,)
        else:
            points = integers(self.__name__, grid, "grid")
        found = None if group is None else integers(self.__name__, group, "group")
        for what in (points, found or points):
            if not 1 <= len(what) <= AXES or min(what) < 0 or len(what) != len(points):
                raise ArgumentError(
                    f"{self.__name__}: grid= and group= are one to three natural numbers, as many "
                    f"of each, not {grid} and {group}"
                )
        return Grid(points, found)


def _require_dense(called: str, name: str, e: Expr) -> None:
    for n, s, want in zip(e.spec.shape, e.strides, e.spec.strides, strict=True):
        if n != 1 and s != want:
            raise LayoutError(
                f"{called}: {name} has strides {e.strides}, and a raw kernel is given contiguous "
                "memory; pass x.contiguous(), or make it with strided=True and pass strides"
            )


_TYPES: dict[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,), "f": (float, int)}
_DTYPES = {d.name: d for d in BY_CODE.values()} | BY_CODE


def _parsed(signature: str) -> tuple[str, tuple[RawArgument, ...]]:
    """The name and the parameters. Raises: ArgumentError."""
    if not isinstance(signature, str):
        raise refused("raw_kernel", "signature", "a text", signature)
    head = _HEAD.fullmatch(signature)
    if head is None:
        raise ArgumentError(f"raw_kernel: signature must be like {SIGNATURE}, not {signature!r}")
    found = []
    for part in head[2].split(",") if head[2].strip() else []:
        one = _PARAMETER.fullmatch(part)
        dtype: DType | None = None if one is None else _DTYPES.get(one[3])
        if one is None or dtype is None:
            raise ArgumentError(
                f"raw_kernel: {part.strip()!r} in the signature: write `x: r float32` of memory "
                "(r, w or rw), `n: int64` of a number"
            )
        if not one[2] and (dtype.kind == "c" or dtype.compute is not dtype):
            raise ArgumentError(f"raw_kernel: no number of {dtype.name} is passed; pass a tensor")
        found.append(RawArgument(one[1], dtype, one[2] or ""))
    if len({a.name for a in found}) < len(found):
        raise ArgumentError(f"raw_kernel: two parameters of one name in {signature!r}")
    return head[1], tuple(found)


def raw_kernel(
    source: str, device_type: str, signature: str, *, options: tuple[str, ...] = (),
    strided: bool = False,
) -> RawKernel:  # fmt: skip
    """A kernel in a device's own language: C for "cpu", OpenCL C, CUDA C; compiled when launched.

    `source`: the text. `device_type`: of the devices that it is for. `signature`: the function's
    name, and of each parameter, in order, its name and dtype; of memory also r, w or rw, as in
    "scale(out: w float32, x: r float32, n: int64, a: float32)". `options`: words for the compiler.
    `strided`: True lets memory come that is not contiguous; the text is then to be told of strides.
    Memory is passed as a pointer to its first element. Nothing is checked of what the text does
    with it. See docs/kernels-of-loops.md.
    Raises: ArgumentError, ArgumentTypeError.

    >>> import dovetail as dt
    >>> scale = dt.raw_kernel(
    ...     "void scale(float *out, const float *x, int64_t n, float a) {"
    ...     " for (int64_t i = 0; i < n; i++) out[i] = a * x[i]; }",
    ...     "cpu", "scale(out: w float32, x: r float32, n: int64, a: float32)")
    >>> scale
    <dt.raw_kernel scale of cpu>
    """
    for name, x in (("source", source), ("device_type", device_type)):
        if not isinstance(x, str):
            raise refused("raw_kernel", name, "a text", x)
    if isinstance(options, str) or not all(isinstance(o, str) for o in options):
        raise refused("raw_kernel", "options", "a tuple of texts", options)
    return RawKernel(
        source, device_type.partition(":")[0], signature, tuple(options), bool(strided)
    )
