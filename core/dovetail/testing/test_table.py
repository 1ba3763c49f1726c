"""Level 7: every row of the op table, on every dtype it takes, in every layout, against the
reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ..device_class import Device, device
from ..dtypes import DType, bfloat16, bool_, float32, float64, int32, int64
from ..functions.creation import constructors
from ..functions.indexing.index_reads import getitem, searchsorted
from ..functions.indexing.index_writes import index_add, setitem
from ..functions.products.matrix_products import matmul, reproducible
from ..functions.random.generator import Generator
from ..functions.shape.copies import concat
from ..functions.sorting.stable_sort import argsort, sort
from ..graph.expr import node, spec
from ..layout import Shape
from ..ops import sort as radix
from ..ops import table as ops
from ..ops.table import Op
from ..tensor import primitives, writes
from ..tensor import tensor as T
from .cases import (
    CHEAP,
    CHEAP_MAPS,
    COLUMNS,
    LARGE,
    LAYOUTS,
    MAIN,
    MAPS,
    REDUCTIONS,
    ROWS,
    STORED,
    Place,
    dense,
    flipped,
    grids,
    indices,
    layouts,
    operands,
    rows,
    spaced,
    transposed,
)
from .kit import REFERENCE, Case, Kit, host
from .test_scalar_ops import named
from .values import Array, as_held, finite, pairs, sample, specials


@pytest.mark.parametrize(("name", "d"), MAPS, ids=named)
def test_elementwise(kit: Kit, name: str, d: DType) -> None:
    op = ops.TABLE[name]
    dtypes, values = operands(op, d), grids(op, d)
    cases: list[Case] = []
    for layout in layouts(op, d):

        def make(on: Device, layout: str = layout) -> T.Tensor:
            placed = [p(v, e, on) for p, v, e in zip(LAYOUTS[layout], values, dtypes, strict=False)]
            return primitives.apply(op, placed)

        cases.append((make, f"{name} of {d.name}, {layout}"))
    kit.agree_all(cases)


@pytest.mark.parametrize(("name", "d"), MAPS, ids=named)
def test_special_values_on_threads(kit: Kit, name: str, d: DType) -> None:
    """Every pair of special values, and enough elements to be shared among threads."""
    op = ops.TABLE[name]
    dtypes = operands(op, d)
    columns = pairs(d, op.arity)
    if op is ops.WHERE:
        columns[0] = sample(bool_, columns[0].shape, 1)
    size = LARGE if op.cost < CHEAP else max(columns[0].size, 4097)
    values = [np.resize(c, size) for c in columns]
    for threads in kit.thread_counts():
        kit.agree(
            lambda on: primitives.apply(
                op, [dense(v, e, on) for v, e in zip(values, dtypes, strict=True)]
            ),
            f"{name} of {d.name}, {size} elements, threads: {threads}",
        )


@pytest.mark.parametrize(("name", "d"), CHEAP_MAPS, ids=named)
def test_python_numbers(kit: Kit, name: str, d: DType) -> None:
    """A Python number as each operand but one."""
    op = ops.TABLE[name]
    if op.arity == 1 or op is ops.WHERE:
        values, dtypes = grids(op, d), operands(op, d)
        placed = list(zip(values, dtypes, strict=True))
        kit.agree(lambda on: primitives.apply(op, [dense(v, e, on) for v, e in placed]), name)
        return
    cases: list[Case] = []
    x = sample(d, (ROWS, COLUMNS), 3)
    for number in {"b": (True,), "i": (3, -2), "u": (3,), "f": (3, 0.1, -0.0, float("inf"))}[
        d.kind
    ]:
        for position in range(op.arity):

            def make(on: Device, number: float = number, position: int = position) -> T.Tensor:
                args: list[T.Tensor | float] = [number] * op.arity
                args[position] = dense(x, d, on)
                return primitives.apply(op, args)

            cases.append((make, f"{name} of {d.name} and {number!r}, tensor at {position}"))
    kit.agree_all(cases)


# --- writing


def keeps(op: Op, d: DType) -> bool:
    """Return True if the result of a row at `d` fits into its first operand."""
    return op is not ops.WHERE and op.dtypes(op.name, operands(op, d), None)[1] is d


WRITES = [(n, d) for n, d in CHEAP_MAPS if keeps(ops.TABLE[n], d)]
OVERLAPPING = [(n, d) for n, d in WRITES if d in MAIN or n in ("add", "negative")]


@pytest.mark.parametrize(("name", "d"), WRITES, ids=named)
def test_in_place(kit: Kit, name: str, d: DType) -> None:
    op = ops.TABLE[name]
    values = grids(op, d)
    for place in (dense, transposed, flipped, spaced) if d in MAIN else (dense,):

        def make(on: Device, place: Place = place) -> T.Tensor:
            x, *others = (
                p(v, d, on) for p, v in zip((place, dense, flipped), values, strict=False)
            )
            return primitives.in_place(op, x, *others)

        kit.agree(make, f"{name} of {d.name} in place, {place.__name__}")


@pytest.mark.parametrize(("name", "d"), OVERLAPPING, ids=named)
def test_out_overlaps_an_operand(kit: Kit, name: str, d: DType) -> None:
    """out= is its own operand shifted by one, reversed, or transposed: as if the operand had
    been copied before."""
    op = ops.TABLE[name]
    line, square = sample(d, 300, 1), sample(d, (17, 17), 2)
    for how in OVERLAPS:

        def make(on: Device, how: str = how) -> T.Tensor:
            base = dense(square if how == "transposed" else line, d, on)
            source, target = OVERLAPS[how](base)
            primitives.apply(op, [source] * op.arity, out=target)
            return base

        kit.agree(make, f"{name} of {d.name}, out= overlaps: {how}")


def part(x: T.Tensor, start: int, length: int, step: int = 1) -> T.Tensor:
    return primitives.view(x, ("slice", (start,), (length,), (step,)))


OVERLAPS: dict[str, Callable[[T.Tensor], tuple[T.Tensor, T.Tensor]]] = {
    "shifted up": lambda x: (part(x, 0, 299), part(x, 1, 299)),
    "shifted down": lambda x: (part(x, 1, 299), part(x, 0, 299)),
    "reversed": lambda x: (part(x, 0, 300), part(x, 299, 300, -1)),
    "every second": lambda x: (part(x, 0, 150), part(x, 0, 150, 2)),
    "transposed": lambda x: (x, primitives.view(x, ("permute", (1, 0)))),
    "itself": lambda x: (x, x),
}


@pytest.mark.parametrize("d", STORED, ids=named)
def test_assign_through_views(kit: Kit, d: DType) -> None:
    """A write through one view is seen by all, and leaves what lies between."""
    values = sample(d, (ROWS, COLUMNS), 1)
    for place in (dense, transposed, flipped, spaced):

        def make(on: Device, place: Place = place) -> T.Tensor:
            base = dense(sample(d, (2 * ROWS + 1, 2 * COLUMNS + 1), 2), d, on)
            view = primitives.view(base, ("slice", (1, 1), (ROWS, COLUMNS), (2, 2)))
            writes.write("assign", view, [place(values, d, on)._expr])
            return base

        kit.agree(make, f"assign to every second {d.name}, from {place.__name__}")


# --- casts, generators, moves


@pytest.mark.parametrize("target", STORED, ids=named)
@pytest.mark.parametrize("source", STORED, ids=named)
def test_astype(kit: Kit, source: DType, target: DType) -> None:
    x = sample(source, (ROWS, COLUMNS), 1)
    cases: list[Case] = []
    for place in (dense, transposed):

        def make(on: Device, place: Place = place) -> T.Tensor:
            return primitives.apply(ops.ASTYPE, (place(x, source, on),), target)

        cases.append((make, place.__name__))
    every = specials(source)
    cases.append(
        (
            lambda on: primitives.apply(ops.ASTYPE, (dense(every, source, on),), target),
            "special values",
        )
    )
    kit.agree_all(cases)


NUMBERS = [d for d in STORED if d is not bool_]
GENERATED: dict[str, Callable[[DType, Device], T.Tensor]] = {
    "full": lambda d, on: constructors.full((5, 33), 3, dtype=d, device=on),
    "arange": lambda d, on: constructors.arange(2, 120, 3, dtype=d, device=on),
    "linspace": lambda d, on: constructors.linspace(
        -0.3 if d.kind == "f" else 3, 100, 37, dtype=d, device=on
    ),
    "eye": lambda d, on: constructors.eye(7, 40, k=2, dtype=d, device=on),
    "triangle": lambda d, on: constructors.triu(
        constructors.full((3, 17, 9), 5, dtype=d, device=on), k=-1
    ),
    "position": lambda d, on: constructors.tril(
        constructors.full((9, 70), 5, dtype=d, device=on), k=3
    ),
}


@pytest.mark.parametrize("d", NUMBERS, ids=named)
@pytest.mark.parametrize("name", GENERATED)
def test_generators(kit: Kit, name: str, d: DType) -> None:
    kit.agree(lambda on: GENERATED[name](d, on), f"{name} of {d.name}")


def make_generator(seed: int) -> Generator:
    """Return a generator that has passed 2**64 - 20: counters carry into their high words."""
    g = Generator(seed)
    g.state = (seed, (1 << 64) - 20)
    return g


def random_integers(d: DType, on: Device) -> T.Tensor:
    return make_generator(3).integers(d.min // 3, d.max, (7, 41), dtype=d, device=on)


RANDOM: dict[str, Callable[[DType, Device], T.Tensor]] = {
    "random_uniform32": lambda d, on: make_generator(1).uniform((7, 41), dtype=d, device=on),
    "random_normal32": lambda d, on: make_generator(2).normal((7, 41), dtype=d, device=on),
    "random_uniform64": lambda d, on: make_generator(1).uniform((301,), dtype=d, device=on),
    "random_normal64": lambda d, on: make_generator(2).normal((301,), dtype=d, device=on),
    "random_below": random_integers,
}
DRAWS = [
    (name, d)
    for name in RANDOM
    for d in NUMBERS
    if (
        d.is_integer
        if name == "random_below"
        else d.kind == "f" and (d is float64) == name.endswith("64")
    )
]


@pytest.mark.parametrize(("name", "d"), DRAWS, ids=named)
def test_random_numbers(kit: Kit, name: str, d: DType) -> None:
    kit.agree(lambda on: RANDOM[name](d, on), f"{name} as {d.name}")


MOVES: dict[str, tuple[tuple[int, ...], Sequence[Any]]] = {
    "transposed small": ((5, 2), [("permute", (1, 0))]),
    "rotated": ((5, 2, 9), [("permute", (2, 0, 1))]),
    "swapped inside": ((3, 4, 35), [("permute", (0, 2, 1))]),
    "swapped outside": ((3, 4, 35), [("permute", (1, 0, 2))]),
    "reversed": ((3, 65, 33), [("permute", (2, 1, 0))]),
    "four axes": ((2, 3, 4, 5), [("permute", (3, 1, 0, 2))]),
    "sliced": ((9, 40), [("slice", (7, 1), (4, 13), (-2, 3))]),
    "sliced, then turned": ((9, 40), [("slice", (8, 39), (9, 40), (-1, -1)), ("permute", (1, 0))]),
    "expanded": ((4, 1, 6), [("expand", (3, 4, 5, 6))]),
    "expanded, then turned": ((1, 33), [("expand", (7, 33)), ("permute", (1, 0))]),
    "reshaped": ((6, 8), [("reshape", (2, 3, 8)), ("permute", (1, 0, 2))]),
    "reshaped by a copy": ((6, 8), [("permute", (1, 0)), ("reshape", (3, 16))]),
    "from 0-d": ((), [("reshape", (1, 1)), ("expand", (3, 4))]),
}


@pytest.mark.parametrize("d", STORED, ids=named)
def test_views(kit: Kit, d: DType) -> None:
    cases: list[Case] = []
    for name, (shape, moves) in MOVES.items():
        values = sample(d, shape, 1)

        def make(on: Device, values: Array = values, moves: Sequence[Any] = moves) -> T.Tensor:
            x = dense(values, d, on)
            for m in moves:
                x = primitives.view(x, m)
            return primitives.apply(ops.COPY, (x,))

        cases.append((make, f"a copy of {d.name} {shape}, {name}"))
    kit.agree_all(cases)


# --- joins


def halves(x: T.Tensor) -> T.Tensor:
    return concat([x[:, 30:], x[:, :30]], axis=1)


Join = Callable[[T.Tensor, T.Tensor], T.Tensor]
JOINS: dict[str, Join] = {
    "rows": lambda x, y: concat([x, y]),
    "columns": lambda x, y: concat([x, y[:, 3:], x[:, ::-2]], axis=1),
    "transposed": lambda x, y: concat([x.T, y.T], axis=1).T,
    "of joins": lambda x, y: concat([halves(x), halves(halves(y))]),
    "of what is computed": lambda x, y: concat([primitives.apply(ops.EQUAL, (x, y)), y == y]),
    "seen in part": lambda x, y: concat([x, y], axis=1)[3:40:5, 100:9:-3],
    "with nothing": lambda x, y: concat([x[:0], y, x[:0]]),
}


@pytest.mark.parametrize("d", STORED, ids=named)
def test_join(kit: Kit, d: DType) -> None:
    x, y = (sample(d, (ROWS, COLUMNS), seed) for seed in (1, 2))
    cases: list[Case] = []
    for name, join in JOINS.items():
        for place in (dense, transposed):

            def make(on: Device, place: Place = place, join: Join = join) -> T.Tensor:
                joined: T.Tensor = join(place(x, d, on), place(y, d, on))
                return joined

            cases.append((make, f"{name} of {d.name}, {place.__name__}"))
    kit.agree_all(cases)


# --- reductions


DOMAINS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((4097,), (0,)),
    ((ROWS, COLUMNS), (1,)),
    ((ROWS, COLUMNS), (0,)),
    ((ROWS, COLUMNS), (0, 1)),
    ((3, 40, 5), (1,)),
    ((3, 4, 50), (0, 2)),
    ((1, 33), (0,)),
    ((5, 1), (1,)),
    ((), ()),
    ((3, 0), (0,)),
)


def reducible(op: Op, shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Arg-reductions take one axis; the largest of nothing is an error of the public function."""
    empty_row = 0 in (shape[a] for a in axes)
    if op.combine in ("argmax", "argmin"):
        return len(axes) == 1 and not empty_row
    return not (op.combine in ("max", "min") and empty_row)


@pytest.mark.parametrize(("name", "d"), REDUCTIONS, ids=named)
def test_reduce(kit: Kit, name: str, d: DType) -> None:
    op = ops.TABLE[name]
    cases: list[Case] = []
    for shape, axes in DOMAINS if d in MAIN else DOMAINS[:4]:
        if not reducible(op, shape, axes):
            continue
        values = finite(d, shape, 1) if op.combine in ("add", "mul") else sample(d, shape, 1)
        for place in (dense, transposed, flipped) if len(shape) == 2 and d in MAIN else (dense,):
            for keep in (False, True) if place is dense and d in MAIN else (False,):

                def make(
                    on: Device,
                    place: Place = place,
                    v: Array = values,
                    a: Shape = axes,
                    k: bool = keep,
                ) -> T.Tensor:
                    return primitives.reduce(op, place(v, d, on), a, k)

                what = f"{name} of {d.name} {shape} over {axes}, {place.__name__}"
                cases.append((make, what))
    kit.agree_all(cases)


@pytest.mark.parametrize("name", [op.name for op in rows("reduce")])
def test_reduce_long_on_threads(kit: Kit, name: str) -> None:
    op, values = ops.TABLE[name], finite(float32, (3, 50_000), 1)
    for threads in kit.thread_counts():
        for axes in ((0,), (1,)):
            kit.agree(
                lambda on, a=axes: primitives.reduce(op, dense(values, float32, on), a, False),  # type: ignore[misc]  # the defaults
                f"{name} over {axes} of (3, 50000), threads: {threads}",
            )


# --- rows that read at computed places, and kernels of their own


@pytest.mark.parametrize("d", STORED, ids=named)
def test_gather(kit: Kit, d: DType) -> None:
    """x[:, index] and x[index, index'], with negative indices: from the host, and checked on
    the device."""
    x = sample(d, (9, 14), 1)
    rng = np.random.default_rng(2)
    i, j = rng.integers(-9, 9, 50), rng.integers(-14, 14, 50)
    at: dict[str, Callable[[Device], Any]] = {
        "a column index": lambda on: (slice(None), j),
        "two indices": lambda on: (i, j),
        "indices on the device": lambda on: (indices(i, on), indices(j, on)),
    }
    cases: list[Case] = []
    for place in (dense, transposed, flipped):
        for what, key in at.items():

            def make(on: Device, p: Place = place, key: Any = key) -> T.Tensor:
                return getitem(p(x, d, on), key(on))

            cases.append((make, f"{what}, {place.__name__}"))
    kit.agree_all(cases)


def test_an_index_out_of_range_is_an_error(kit: Kit) -> None:
    """The device goes on working, and nothing was written."""
    kit.comparisons += 1
    for wrong in (9, -10, 1 << 40):
        x = dense(sample(float32, (9, 5), 1), float32, kit.device)
        with pytest.raises(IndexError):
            getitem(x, indices(np.array([0, wrong]), kit.device)).numpy()
        with pytest.raises(IndexError):
            setitem(x, indices(np.array([0, wrong]), kit.device), 3.0)
            x.numpy()
        kit.same(host(x), sample(float32, (9, 5), 1), float32, "the target of a refused write", str)


@pytest.mark.parametrize("d", STORED, ids=named)
def test_scatter(kit: Kit, d: DType) -> None:
    """x[index] = values: each place once, and with places named again and again, where the last
    one stays."""
    rng = np.random.default_rng(3)
    for at in (rng.permutation(40)[:25], rng.integers(-40, 40, 300)):
        values = sample(d, (at.size, 3), 4)
        for on_host in (True, False):

            def make(
                on: Device, at: Array = at, values: Array = values, on_host: bool = on_host
            ) -> T.Tensor:
                x = dense(sample(d, (40, 3), 2), d, on)
                setitem(x, at if on_host else indices(at, on), dense(values, d, on))
                return x

            kit.agree(make, f"{at.size} rows of {d.name}")


@pytest.mark.parametrize("d", NUMBERS, ids=named)
def test_scatter_adds_in_order(kit: Kit, d: DType) -> None:
    at = np.random.default_rng(3).integers(0, 7, 500)

    def make(on: Device) -> T.Tensor:
        x, values = (dense(finite(d, (n, 3), n), d, on) for n in (7, 500))
        return index_add(x, 0, indices(at, on), values)

    kit.agree(make, f"500 rows of {d.name} into 7")


@pytest.mark.parametrize("size", (0, 1, 31, 4095, 4096, 4097, 10_000))
@pytest.mark.parametrize("share", (0.0, 0.01, 0.9, 1.0))
def test_masks(kit: Kit, size: int, share: float) -> None:
    """x[mask]: the rows `count_blocks`, `true_positions` and `packed_positions`."""
    mask = np.random.default_rng(size).random(size) < share

    def make(on: Device) -> T.Tensor:
        return getitem(dense(finite(int32, size, 1), int32, on), dense(mask, bool_, on))

    kit.agree(make, f"{size} elements, a share of {share} true")


@pytest.mark.parametrize("side", ("left", "right"))
@pytest.mark.parametrize("d", STORED, ids=named)
def test_search(kit: Kit, d: DType, side: str) -> None:
    wide = sample(d, 500, 1)
    if d.kind == "f":
        wide = as_held(np.random.default_rng(1).integers(-9, 9, 500).astype("f8"), d)
    order = np.argsort(to_floats(wide, d), kind="stable")
    table, values = wide[order], np.concatenate([wide[:50], specials(d)])
    for n in (1, 2, 255, 256, 500):

        def make(on: Device, n: int = n) -> T.Tensor:
            return searchsorted(dense(table[:n], d, on), dense(values, d, on), side=side)

        kit.agree(make, f"{d.name}, {n} sorted")
    kit.agree(
        lambda on: searchsorted(
            dense(wide, d, on), dense(values, d, on), side=side, sorter=indices(order, on)
        ),
        f"{d.name}, with a sorter",
    )


def to_floats(x: Array, d: DType) -> Array:
    """Held values as numbers that NumPy can sort."""
    return (x.astype(np.uint32) << 16).view(np.float32) if d is bfloat16 else x


@pytest.mark.parametrize("descending", (False, True))
@pytest.mark.parametrize("d", STORED, ids=named)
def test_sort(kit: Kit, d: DType, descending: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sort` and `argsort`, by rank and by passes: ties, NaN, infinities, both zeros."""
    monkeypatch.setattr(radix, "RANKED", 0)  # else it depends on the device what is short
    cases = [
        ((1,), 0, dense),
        ((3, 40), 1, dense),
        ((3, 0), 1, dense),
        ((2, 400), 1, dense),
        ((3, 40), 0, flipped),
        ((300, 2), 0, spaced),
    ]
    for shape, axis, place in cases:
        values = sample(d, shape, 1)
        for rule in (sort, argsort):
            kit.agree(
                lambda on, v=values, p=place, r=rule, a=axis: r(  # type: ignore[misc]  # the defaults
                    p(v, d, on), axis=a, descending=descending
                ),
                f"{rule.__name__} of {d.name} {shape} along {axis}, {place.__name__}",
            )


@pytest.mark.parametrize("d", STORED, ids=named)
@pytest.mark.parametrize("name", ("cumulative_sum", "cumulative_prod", "cumulative_logsumexp"))
def test_cumulative(kit: Kit, name: str, d: DType) -> None:
    op = ops.TABLE[name]
    cases: list[Case] = []
    for shape, axis in (
        ((300,), 0),
        ((ROWS, COLUMNS), 0),
        ((ROWS, COLUMNS), 1),
        ((2, 5, 9), 1),
        ((4, 0), 1),
        *([((40_000,), 0)] if d in (bool_, int64) else []),  # in blocks
    ):
        values = finite(d, shape, 1)
        for first in (False, True) if axis == 0 or d in MAIN else (False,):

            def make(
                on: Device, v: Array = values, axis: int = axis, first: bool = first
            ) -> T.Tensor:
                attrs = (axis, first, None)
                _, out = op.dtypes(name, [d], attrs)
                full = tuple(n + (first and k == axis) for k, n in enumerate(v.shape))
                return T.make(node(op, (dense(v, d, on)._expr,), spec(full, out, on), attrs))

            cases.append((make, f"{name} of {d.name} {shape} along {axis}, initial: {first}"))
    kit.agree_all(cases)


@pytest.mark.parametrize("d", [d for d in NUMBERS if d.kind == "f"], ids=named)
def test_recurrence(kit: Kit, d: DType) -> None:
    for shape, axis in (((300,), 0), ((ROWS, COLUMNS), 0), ((ROWS, COLUMNS), 1), ((4, 0), 1)):
        for lag in (0, 1):

            def make(
                on: Device, shape: Shape = shape, axis: int = axis, lag: int = lag
            ) -> T.Tensor:
                x, b = (dense(finite(d, shape, s), d, on)._expr for s in (1, 2))
                return T.make(node(ops.RECURRENCE, (x, b), b.spec, (axis, lag)))

            kit.agree(make, f"{shape} of {d.name} along {axis}, lag {lag}")


PRODUCTS = (
    ((4, 5), (5, 3)),
    ((1, 1), (1, 1)),
    ((33,), (33,)),
    ((17, 64), (64, 40)),
    ((2, 3, 4), (4, 5)),
    ((3, 1, 6, 7), (2, 7, 5)),
    ((5, 0), (0, 3)),
    ((70, 130), (130, 65)),
)


@pytest.mark.parametrize("d", NUMBERS, ids=named)
def test_matmul(kit: Kit, d: DType) -> None:
    """The generated kernel; a vendor's routine has an order of its own."""
    cases: list[Case] = []
    for left, right in PRODUCTS:
        x, y = finite(d, left, 1), finite(d, right, 2)
        for place in (dense, transposed, flipped):

            def make(on: Device, x: Array = x, y: Array = y, p: Place = place) -> T.Tensor:
                return matmul(p(x, d, on), p(y, d, on))

            cases.append((make, f"{left} @ {right} of {d.name}, {place.__name__}"))
    with reproducible():
        kit.agree_all(cases)


@pytest.mark.parametrize("d", [d for d in NUMBERS if d.kind == "f"], ids=named)
def test_matmul_of_a_vendor_is_close(kit: Kit, d: DType) -> None:
    """A vendor's routine differs by no more than any order of summation may."""
    with reproducible():
        expected = host(
            matmul(*(dense(finite(d, (65, 65), s), d, device(REFERENCE)) for s in (1, 2)))
        )
    actual = host(matmul(*(dense(finite(d, (65, 65), s), d, kit.device) for s in (1, 2))))
    x, y = (to_floats(v, d).astype("f8") for v in (actual, expected))
    step = {2: 2.0**-7 if d is bfloat16 else 2.0**-10, 4: 2.0**-23, 8: 2.0**-52}[d.itemsize]
    kit.comparisons += 1
    assert np.abs(x - y).max() <= 65 * 16 * step, kit.failure(f"off by {np.abs(x - y).max()}", "")


# Elementwise rows and reductions are gone through one by one; any other needs a test of its
# own, and is named here.
BY_NAME = {
    "gather",
    "count_blocks",
    "true_positions",
    "packed_positions",
    "count_runs",
    "run_bounds",
    "checked_indices",
    "scatter",
    "searchsorted",
    "concat",
    "cumulative_sum",
    "cumulative_prod",
    "cumulative_logsumexp",
    "recurrence",
    "sort",
    "argsort",
    "select",
    "count_values",
    "matmul",
    "full_complex",
    "convolution",
    "convolution_input",
    "convolution_weight",
    *GENERATED,
    *RANDOM,
}


def unreached() -> list[str]:
    """Return the rows of the table that no case of the kit reaches."""
    ours = {n for n, _ in (*MAPS, *REDUCTIONS)} | BY_NAME | {"astype", "view"}
    return [name for name in ops.TABLE if name not in ours]
