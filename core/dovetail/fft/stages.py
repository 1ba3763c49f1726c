"""The op `fourier`: transforms of any smooth length, by the stages of Stockham.

Operand 0 has shape (outer, n, inner), operand 1 is `roots.stage_roots`. A stage of radix r takes
what is s * m * r long apart, s being the product of the radices before it times `inner`, and

    y[q + s (r p + k)] = w^(p k) sum over j of x[q + s (p + m j)] v^(j k),   q < s, p < m,

w being the (m r)-th root of unity and v the r-th: each stage reads and writes all elements once, at
places that follow each other where q does, and the last one leaves them in order. Source: Van Loan,
Computational Frameworks for the Fast Fourier Transform, 1992, section 1.7.

The way back is the same on numbers whose parts are exchanged, at the first stage and at the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ..autograd.tape import RuleContext
from ..dtypes import DType, int64
from ..errors import InternalError
from ..graph.expr import node, spec
from ..loops.language import Effect, Loop, Store, Value, const, imag, map_loop, pair, real
from ..ops.dtype_rules import Dtypes, Given
from ..ops.site import Attrs, KernelSite, Launches
from ..ops.table import Op
from ..tensor.tensor import Tensor, make
from ..tensor.verbs import view
from . import butterflies
from .roots import factors, stage_roots, starts

AT_ONCE = (8, 16)  # radices whose points fit the registers, and whose loops are not too short
LANES = 8  # neighbours that are worth being the innermost axis of a grid


class Way(NamedTuple):
    """The op's attrs."""

    back: bool
    scale: float = 1.0


class _Stage(NamedTuple):
    """One kernel: see the module's text."""

    way: Way
    radix: int
    m: int
    s: int
    start: int  # of its roots in the table
    outer: int
    first: bool
    in_place: bool = False  # whether it stores where it reads

    @property
    def last(self) -> bool:
        """Whether it stores the result."""
        return self.m == 1

    def axes(self) -> list[str]:
        """The axes of the grid: the innermost one has neighbours in memory, or is long."""
        sizes = {"outer": self.outer, "p": self.m, "q": self.s}
        inner = "q" if self.s >= LANES else max(sizes, key=lambda a: (sizes[a], a))
        if inner == "outer" and self.m >= LANES:
            inner = "p"
        return [*(a for a in sizes if a != inner), inner]

    def build(self, site: KernelSite) -> None:
        """Its kernel."""
        sizes = {"outer": self.outer, "p": self.m, "q": self.s}
        at = {a: site.points(a, sizes[a]) for a in self.axes()}
        for stored in self._stores(site, at, site.builder.first):
            site.builder.effect(stored)

    def loop(self, site: KernelSite, outer: Value) -> Loop:
        """All of a row, where p or q is 0 throughout."""
        axis, count = ("q", self.s) if self.last else ("p", self.m)
        zero = const(0, int64)

        def step(k: Value) -> list[Effect | Value]:
            early: list[Value] = []
            at = {"outer": outer, "p": zero, "q": zero, axis: k}
            stores = self._stores(site, at, lambda *values: early.extend(values))
            return [*early, *stores]

        return map_loop(0, site.number(axis, count), step)

    def _stores(
        self, site: KernelSite, at: Mapping[str, Value], first: Callable[..., None]
    ) -> list[Store]:
        """What is stored at a point; `first` as for `butterflies.transform`."""
        found = butterflies.transform(self._points(site, at), first)
        if not self.last:
            found = self._turned(site, at["p"], found)
        s, stores = self._between(site), []
        place = at["q"] + s * (at["p"] * self.radix)
        for z in found:
            stores.append(site.stored(pair(*self._out(site, z)), at["outer"], place))
            place = place + s
        return stores

    def _between(self, site: KernelSite) -> Value:
        """What is between neighbouring p, as a run-time integer unless it is 1."""
        return const(1, int64) if self.s == 1 else site.number("q", self.s)

    def _points(self, site: KernelSite, at: Mapping[str, Value]) -> list[butterflies.Point]:
        row, found = at["p"], []
        read = site.current if self.in_place else partial(site.read, 1)
        apart = site.number("p", self.m) if self.first else site.number("apart", self.m * self.s)
        place = at["q"] + self._between(site) * row
        for _ in range(self.radix):
            z = read(at["outer"], *((row, at["q"]) if self.first else (place,)))
            exchanged = self.first and self.way.back
            found.append((imag(z), real(z)) if exchanged else (real(z), imag(z)))
            row, place = row + apart, place + apart
        return found

    def _turned(
        self, site: KernelSite, p: Value, points: Sequence[butterflies.Point]
    ) -> list[butterflies.Point]:
        m, found = site.number("p", self.m), [points[0]]
        place = site.number("start", self.start) + p
        for z in points[1:]:
            c, s = site.read(0, place), site.read(0, place + m)
            found.append(butterflies.turned(z, c, s))
            place = place + m + m
        return found

    def _out(self, site: KernelSite, z: butterflies.Point) -> butterflies.Point:
        if not self.last:
            return z
        re, im = reversed(z) if self.way.back else z
        if self.way.scale == 1.0:
            return re, im
        scale = site.scalar(0, re.dtype)
        return re * scale, im * scale


def _launches(launches: Launches) -> None:
    """The stages, which write to temporary memory and to the result in turn.

    The last one stores where it has read, so that it and the one before it take the same memory.
    """
    outer, n, inner = launches.shape(0)
    radices = factors(n)
    if not radices:
        raise InternalError(f"fourier: {n} points are no stages")
    small = len(radices) == 2 and all(r in AT_ONCE for r in radices)
    if small and inner == 1 and n * launches.dtype(0).itemsize <= launches.near:
        _row_by_row(launches, outer, *radices)
        return
    other, s, m, source = -1, inner, n, 0
    for i, (radix, start) in enumerate(zip(radices, starts(n), strict=True)):
        left = len(radices) - 1 - i
        apart = left > 0 and left % 2 == 0
        if apart and other < 0:
            other = launches.temporary(launches.dtype(0), (outer, n * inner))
        target = other if apart else launches.result
        m //= radix
        again = source == target
        stage = _Stage(launches.attrs, radix, m, s, start, outer, first=not i, in_place=again)
        if again:
            launches.launch(f"fourier_by_{radix}", stage.build, 1, target, changes=(-1,))
        else:
            launches.launch(f"fourier_by_{radix}", stage.build, 1, source, target)
        s, source = s * radix, target


def _row_by_row(launches: Launches, outer: int, a: int, b: int) -> None:
    """Two stages as one kernel of two loops: in between, a row is in the nearest cache.

    4096 rows of 256, not in cache before, take 0.55 ms instead of 0.8 on two threads.
    """
    there = _Stage(launches.attrs, a, b, 1, 0, outer, first=True)
    back = _Stage(launches.attrs, b, 1, a, 0, outer, first=False, in_place=True)

    def build(site: KernelSite) -> None:
        row = site.points("outer", outer)
        for stage in (there, back):
            site.builder.effect(stage.loop(site, row))

    launches.launch(f"fourier_by_{a}_and_{b}", build, 1, 0, launches.result, changes=(-1,))


def _dtypes(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    x = operands[0]
    assert isinstance(x, DType)
    return (x, x.part, x.part), x


def _back(g: Tensor, c: RuleContext) -> Tensor:
    """The conjugate transpose: the other way, of the same scale."""
    way, shape = c.attrs, c.spec().shape
    found = staged(view(g, ("reshape", shape)), way._replace(back=not way.back))
    return view(found, ("reshape", shape))


FOURIER = Op("fourier", "kernel", _dtypes, launches=_launches, many="first", shared=(1,), arity=2,
             gradient=(_back, None))  # fmt: skip


def staged(x: Tensor, way: Way) -> Tensor:
    """The transforms of shape (outer, n * inner) along the second axis of (outer, n, inner)."""
    outer, n, inner = x.shape
    table = stage_roots(n, x.dtype.part, x.device)
    s = spec((outer, n * inner), x.dtype, x.device, "fft")
    return make(node(FOURIER, (x._expr, table._expr, way.scale), s, way))
