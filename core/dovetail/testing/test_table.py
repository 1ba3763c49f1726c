"""Level 7: every row of the op table, on every dtype it takes, in every layout, against the
reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ..device_class import Device, device
from ..dtypes import DType, bfloat16, bool_, float32, float64, int8, int32, int64, uint8
from ..functions.creation import constructors
from ..functions.indexing.index_reads import getitem, searchsorted
from ..functions.indexing.index_reductions import index_reduce
from ..functions.indexing.index_writes import index_add, setitem
from ..functions.products.matrix_products import matmul, vendor_products
from ..functions.random.generator import Generator
from ..functions.shape.copies import concat
from ..functions.sorting.stable_sort import argsort, sort
from ..graph.expr import node, spec
from ..layout import Shape
from ..ops import sort as radix
from ..ops import table as ops
from ..ops.kernel_ops import PRODUCT_BLOCK, PRODUCT_BLOCKS
from ..ops.scan import BLOCK_ELEMENTS, SPLIT_ROW_ELEMENTS_MIN
from ..ops.table import Op
from ..tensor import primitives, writes
from ..tensor import tensor as T
from .cases import (
    CHEAP_COST_MAX,
    CHEAP_MAPS,
    COLUMNS,
    LAYOUTS,
    MAIN_DTYPES,
    MAPS,
    REAL_DTYPES,
    REDUCTIONS,
    ROWS,
    THREADED_ELEMENTS,
    Arrangement,
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
from .kit import REFERENCE, AgreementCase, Kit, host
from .test_scalar_ops import param_id
from .values import Array, finite_values, pairs, round_to_dtype, sample, specials


@pytest.mark.parametrize(("name", "d"), MAPS, ids=param_id)
def test_elementwise(kit: Kit, name: str, d: DType) -> None:
    """Check an elementwise row at a dtype in its memory layouts."""
    op = ops.TABLE[name]
    dtypes, values = operands(op, d), grids(op, d)
    cases: list[AgreementCase] = []
    for layout in layouts(op, d):

        def make(on: Device, layout: str = layout) -> T.Tensor:
            """Apply the row to operands in the layout, on `on`."""
            placed = [p(v, e, on) for p, v, e in zip(LAYOUTS[layout], values, dtypes, strict=False)]
            return primitives.apply(op, placed)

        cases.append((make, f"{name} of {d.name}, {layout}"))
    kit.check_agreements(cases)


@pytest.mark.parametrize(("name", "d"), MAPS, ids=param_id)
def test_special_values_on_threads(kit: Kit, name: str, d: DType) -> None:
    """Check an elementwise row on all pairs of special values, at 1 and 2 threads."""
    op = ops.TABLE[name]
    dtypes = operands(op, d)
    columns = pairs(d, op.arity)
    if op is ops.WHERE:
        columns[0] = sample(bool_, columns[0].shape, 1)
    size = THREADED_ELEMENTS if op.cost < CHEAP_COST_MAX else max(columns[0].size, 4097)
    values = [np.resize(c, size) for c in columns]
    for threads in kit.thread_counts():
        kit.check_agreement(
            lambda on: primitives.apply(
                op, [dense(v, e, on) for v, e in zip(values, dtypes, strict=True)]
            ),
            f"{name} of {d.name}, {size} elements, threads: {threads}",
        )


@pytest.mark.parametrize(("name", "d"), CHEAP_MAPS, ids=param_id)
def test_python_numbers(kit: Kit, name: str, d: DType) -> None:
    """Check an elementwise row with a tensor at each position, and numbers at the others."""
    op = ops.TABLE[name]
    if op.arity == 1 or op is ops.WHERE:
        values, dtypes = grids(op, d), operands(op, d)
        placed = list(zip(values, dtypes, strict=True))
        kit.check_agreement(
            lambda on: primitives.apply(op, [dense(v, e, on) for v, e in placed]), name
        )
        return
    cases: list[AgreementCase] = []
    x = sample(d, (ROWS, COLUMNS), 3)
    for number in {"b": (True,), "i": (3, -2), "u": (3,), "f": (3, 0.1, -0.0, float("inf"))}[
        d.kind
    ]:
        for position in range(op.arity):

            def make(on: Device, number: float = number, position: int = position) -> T.Tensor:
                """Apply the row to one tensor, and to numbers as its other operands."""
                args: list[T.Tensor | float] = [number] * op.arity
                args[position] = dense(x, d, on)
                return primitives.apply(op, args)

            cases.append((make, f"{name} of {d.name} and {number!r}, tensor at {position}"))
    kit.check_agreements(cases)


# --- writing


def keeps(op: Op, d: DType) -> bool:
    """Return True if the result of a row at `d` fits into its first operand."""
    return op is not ops.WHERE and op.dtypes(op.name, operands(op, d), None)[1] is d


WRITES = [(n, d) for n, d in CHEAP_MAPS if keeps(ops.TABLE[n], d)]
OVERLAP_CASES = [(n, d) for n, d in WRITES if d in MAIN_DTYPES or n in ("add", "negative")]


@pytest.mark.parametrize(("name", "d"), WRITES, ids=param_id)
def test_in_place(kit: Kit, name: str, d: DType) -> None:
    """Check an elementwise row that writes to its first operand, in each arrangement."""
    op = ops.TABLE[name]
    values = grids(op, d)
    for place in (dense, transposed, flipped, spaced) if d in MAIN_DTYPES else (dense,):

        def make(on: Device, place: Arrangement = place) -> T.Tensor:
            """Apply the row in place to a tensor arranged by `place`, on `on`."""
            x, *others = (
                p(v, d, on) for p, v in zip((place, dense, flipped), values, strict=False)
            )
            return primitives.in_place(op, x, *others)

        kit.check_agreement(make, f"{name} of {d.name} in place, {place.__name__}")


@pytest.mark.parametrize(("name", "d"), OVERLAP_CASES, ids=param_id)
def test_out_overlaps_an_operand(kit: Kit, name: str, d: DType) -> None:
    """Check `out=` that overlaps its operand: the result is that of a copied operand."""
    op = ops.TABLE[name]
    line, square = sample(d, 300, 1), sample(d, (17, 17), 2)
    for how in OVERLAPS:

        def make(on: Device, how: str = how) -> T.Tensor:
            """Write the result over a part of the operand's memory, and return that memory."""
            base = dense(square if how == "transposed" else line, d, on)
            source, target = OVERLAPS[how](base)
            primitives.apply(op, [source] * op.arity, out=target)
            return base

        kit.check_agreement(make, f"{name} of {d.name}, out= overlaps: {how}")


def part(x: T.Tensor, start: int, length: int, step: int = 1) -> T.Tensor:
    """Return a view of `length` elements of a 1-d tensor."""
    return primitives.view(x, ("slice", (start,), (length,), (step,)))


OVERLAPS: dict[str, Callable[[T.Tensor], tuple[T.Tensor, T.Tensor]]] = {
    "shifted up": lambda x: (part(x, 0, 299), part(x, 1, 299)),
    "shifted down": lambda x: (part(x, 1, 299), part(x, 0, 299)),
    "reversed": lambda x: (part(x, 0, 300), part(x, 299, 300, -1)),
    "every second": lambda x: (part(x, 0, 150), part(x, 0, 150, 2)),
    "transposed": lambda x: (x, primitives.view(x, ("permute", (1, 0)))),
    "itself": lambda x: (x, x),
}


@pytest.mark.parametrize("d", REAL_DTYPES, ids=param_id)
def test_assign_through_views(kit: Kit, d: DType) -> None:
    """Check that a write through a view changes just the elements of that view."""
    values = sample(d, (ROWS, COLUMNS), 1)
    for place in (dense, transposed, flipped, spaced):

        def make(on: Device, place: Arrangement = place) -> T.Tensor:
            """Write through views of a tensor on `on`, and return the whole tensor."""
            base = dense(sample(d, (2 * ROWS + 1, 2 * COLUMNS + 1), 2), d, on)
            view = primitives.view(base, ("slice", (1, 1), (ROWS, COLUMNS), (2, 2)))
            writes.write_tensor("assign", view, [place(values, d, on)._expr])
            return base

        kit.check_agreement(make, f"assign to every second {d.name}, from {place.__name__}")


# --- casts, generators, moves


@pytest.mark.parametrize("target", REAL_DTYPES, ids=param_id)
@pytest.mark.parametrize("source", REAL_DTYPES, ids=param_id)
def test_astype(kit: Kit, source: DType, target: DType) -> None:
    """Check a cast of mixed values, dense and transposed, and of all special values."""
    x = sample(source, (ROWS, COLUMNS), 1)
    cases: list[AgreementCase] = []
    for place in (dense, transposed):

        def make(on: Device, place: Arrangement = place) -> T.Tensor:
            """Cast a tensor arranged by `place`, on `on`."""
            return primitives.apply(ops.ASTYPE, (place(x, source, on),), target)

        cases.append((make, place.__name__))
    every = specials(source)
    cases.append(
        (
            lambda on: primitives.apply(ops.ASTYPE, (dense(every, source, on),), target),
            "special values",
        )
    )
    kit.check_agreements(cases)


NUMBERS = [d for d in REAL_DTYPES if d is not bool_]
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


@pytest.mark.parametrize("d", NUMBERS, ids=param_id)
@pytest.mark.parametrize("name", GENERATED)
def test_generators(kit: Kit, name: str, d: DType) -> None:
    """Check a constructor such as `arange` at a dtype."""
    kit.check_agreement(lambda on: GENERATED[name](d, on), f"{name} of {d.name}")


def make_generator(seed: int) -> Generator:
    """Return a generator that has passed 2**64 - 20: counters carry into their high words."""
    g = Generator(seed)
    g.state = (seed, (1 << 64) - 20)
    return g


def random_integers(d: DType, on: Device) -> T.Tensor:
    """Return random integers of `d` from a third of its minimum to its maximum."""
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


@pytest.mark.parametrize(("name", "d"), DRAWS, ids=param_id)
def test_random_numbers(kit: Kit, name: str, d: DType) -> None:
    """Check a random row at a dtype; counters carry into their high words."""
    kit.check_agreement(lambda on: RANDOM[name](d, on), f"{name} as {d.name}")


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


@pytest.mark.parametrize("d", REAL_DTYPES, ids=param_id)
def test_views(kit: Kit, d: DType) -> None:
    """Check dense copies of all views in MOVES."""
    cases: list[AgreementCase] = []
    for name, (shape, moves) in MOVES.items():
        values = sample(d, shape, 1)

        def make(on: Device, values: Array = values, moves: Sequence[Any] = moves) -> T.Tensor:
            """Copy a tensor through the views, on `on`."""
            x = dense(values, d, on)
            for m in moves:
                x = primitives.view(x, m)
            return primitives.apply(ops.COPY, (x,))

        cases.append((make, f"a copy of {d.name} {shape}, {name}"))
    kit.check_agreements(cases)


# --- joins


def halves(x: T.Tensor) -> T.Tensor:
    """Return the columns from 30 on, joined with the first 30."""
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


@pytest.mark.parametrize("d", REAL_DTYPES, ids=param_id)
def test_join(kit: Kit, d: DType) -> None:
    """Check the joins in JOINS of dense and of transposed tensors."""
    x, y = (sample(d, (ROWS, COLUMNS), seed) for seed in (1, 2))
    cases: list[AgreementCase] = []
    for name, join in JOINS.items():
        for place in (dense, transposed):

            def make(on: Device, place: Arrangement = place, join: Join = join) -> T.Tensor:
                """Join two tensors arranged by `place`, on `on`."""
                joined: T.Tensor = join(place(x, d, on), place(y, d, on))
                return joined

            cases.append((make, f"{name} of {d.name}, {place.__name__}"))
    kit.check_agreements(cases)


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
    """Return True if the axes are valid: one for arg-reductions, no empty row for max and min."""
    empty_row = 0 in (shape[a] for a in axes)
    if op.combine in ("argmax", "argmin"):
        return len(axes) == 1 and not empty_row
    return not (op.combine in ("max", "min") and empty_row)


@pytest.mark.parametrize(("name", "d"), REDUCTIONS, ids=param_id)
def test_reduce(kit: Kit, name: str, d: DType) -> None:
    """Check a reduction at a dtype over its domains, arrangements and `keepdims`."""
    op = ops.TABLE[name]
    cases: list[AgreementCase] = []
    for shape, axes in DOMAINS if d in MAIN_DTYPES else DOMAINS[:4]:
        if not reducible(op, shape, axes):
            continue
        values = finite_values(d, shape, 1) if op.combine in ("add", "mul") else sample(d, shape, 1)
        for place in (
            (dense, transposed, flipped) if len(shape) == 2 and d in MAIN_DTYPES else (dense,)
        ):
            for keep in (False, True) if place is dense and d in MAIN_DTYPES else (False,):

                def make(
                    on: Device,
                    place: Arrangement = place,
                    v: Array = values,
                    a: Shape = axes,
                    k: bool = keep,
                ) -> T.Tensor:
                    """Reduce the values over the axes, on `on`."""
                    return primitives.reduce(op, place(v, d, on), a, k)

                what = f"{name} of {d.name} {shape} over {axes}, {place.__name__}"
                cases.append((make, what))
    kit.check_agreements(cases)


@pytest.mark.parametrize("name", [op.name for op in rows("reduce")])
def test_reduce_long_on_threads(kit: Kit, name: str) -> None:
    """Check a reduction of 3 x 50000 elements at 1 and 2 threads."""
    op, values = ops.TABLE[name], finite_values(float32, (3, 50_000), 1)
    for threads in kit.thread_counts():
        for axes in ((0,), (1,)):
            kit.check_agreement(
                lambda on, a=axes: primitives.reduce(op, dense(values, float32, on), a, False),  # type: ignore[misc]  # the defaults
                f"{name} over {axes} of (3, 50000), threads: {threads}",
            )


# --- rows that read at computed places, and kernels of their own


@pytest.mark.parametrize("d", REAL_DTYPES, ids=param_id)
def test_gather(kit: Kit, d: DType) -> None:
    """Check x[:, i] and x[i, j] with negative indices, from the host and on the device."""
    x = sample(d, (9, 14), 1)
    rng = np.random.default_rng(2)
    i, j = rng.integers(-9, 9, 50), rng.integers(-14, 14, 50)
    at: dict[str, Callable[[Device], Any]] = {
        "a column index": lambda on: (slice(None), j),
        "two indices": lambda on: (i, j),
        "indices on the device": lambda on: (indices(i, on), indices(j, on)),
    }
    cases: list[AgreementCase] = []
    for place in (dense, transposed, flipped):
        for what, key in at.items():

            def make(on: Device, p: Arrangement = place, key: Any = key) -> T.Tensor:
                """Read at the indices from a tensor on `on`."""
                return getitem(p(x, d, on), key(on))

            cases.append((make, f"{what}, {place.__name__}"))
    kit.check_agreements(cases)


def test_an_index_out_of_range_is_an_error(kit: Kit) -> None:
    """Check that an index out of range raises IndexError and that no element is written."""
    kit.comparisons += 1
    for wrong in (9, -10, 1 << 40):
        x = dense(sample(float32, (9, 5), 1), float32, kit.device)
        with pytest.raises(IndexError):
            getitem(x, indices(np.array([0, wrong]), kit.device)).numpy()
        with pytest.raises(IndexError):
            setitem(x, indices(np.array([0, wrong]), kit.device), 3.0)
            x.numpy()
        kit.check_same_bits(
            host(x), sample(float32, (9, 5), 1), float32, "the target of a refused write", str
        )


@pytest.mark.parametrize("d", REAL_DTYPES, ids=param_id)
def test_scatter(kit: Kit, d: DType) -> None:
    """Check x[index] = values; of duplicate indices the last one wins."""
    rng = np.random.default_rng(3)
    for at in (rng.permutation(40)[:25], rng.integers(-40, 40, 300)):
        values = sample(d, (at.size, 3), 4)
        for on_host in (True, False):

            def make(
                on: Device, at: Array = at, values: Array = values, on_host: bool = on_host
            ) -> T.Tensor:
                """Write to the indices of a tensor on `on`, and return the tensor."""
                x = dense(sample(d, (40, 3), 2), d, on)
                setitem(x, at if on_host else indices(at, on), dense(values, d, on))
                return x

            kit.check_agreement(make, f"{at.size} rows of {d.name}")


@pytest.mark.parametrize("d", NUMBERS, ids=param_id)
def test_scatter_adds_in_order(kit: Kit, d: DType) -> None:
    """Check that `index_add` with repeated indices adds in their order."""
    at = np.random.default_rng(3).integers(0, 7, 500)

    def make(on: Device) -> T.Tensor:
        """Add 500 rows to 7 on `on`."""
        x, values = (dense(finite_values(d, (n, 3), n), d, on) for n in (7, 500))
        return index_add(x, 0, indices(at, on), values)

    kit.check_agreement(make, f"500 rows of {d.name} into 7")


@pytest.mark.parametrize("reduce", ("prod", "amax", "amin"))
@pytest.mark.parametrize("d", NUMBERS, ids=param_id)
def test_scatter_reduces_in_order(kit: Kit, d: DType, reduce: str) -> None:
    """Check `index_reduce` with repeated indices, by the row `scatter_reduce`."""
    at = np.random.default_rng(3).integers(0, 7, 500)

    def make(on: Device) -> T.Tensor:
        """Reduce 500 rows into 7 on `on`."""
        x, values = (dense(finite_values(d, (n, 3), n), d, on) for n in (7, 500))
        return index_reduce(x, 0, indices(at, on), values, reduce)

    kit.check_agreement(make, f"{reduce} of 500 rows of {d.name} into 7")


@pytest.mark.parametrize("size", (0, 1, 31, 4095, 4096, 4097, 10_000))
@pytest.mark.parametrize("share", (0.0, 0.01, 0.9, 1.0))
def test_masks(kit: Kit, size: int, share: float) -> None:
    """Check x[mask], by the rows `count_blocks`, `true_positions` and `packed_positions`."""
    mask = np.random.default_rng(size).random(size) < share

    def make(on: Device) -> T.Tensor:
        """Read the masked elements of a tensor on `on`."""
        return getitem(dense(finite_values(int32, size, 1), int32, on), dense(mask, bool_, on))

    kit.check_agreement(make, f"{size} elements, a share of {share} true")


@pytest.mark.parametrize("side", ("left", "right"))
@pytest.mark.parametrize("d", REAL_DTYPES, ids=param_id)
def test_search(kit: Kit, d: DType, side: str) -> None:
    """Check `searchsorted` for tables of each size, special values and a sorter."""
    wide = sample(d, 500, 1)
    if d.kind == "f":
        wide = round_to_dtype(np.random.default_rng(1).integers(-9, 9, 500).astype("f8"), d)
    order = np.argsort(to_floats(wide, d), kind="stable")
    table, values = wide[order], np.concatenate([wide[:50], specials(d)])
    for n in (1, 2, 255, 256, 500):

        def make(on: Device, n: int = n) -> T.Tensor:
            """Search the values in the first `n` table entries, on `on`."""
            return searchsorted(dense(table[:n], d, on), dense(values, d, on), side=side)

        kit.check_agreement(make, f"{d.name}, {n} sorted")
    kit.check_agreement(
        lambda on: searchsorted(
            dense(wide, d, on), dense(values, d, on), side=side, sorter=indices(order, on)
        ),
        f"{d.name}, with a sorter",
    )


def to_floats(x: Array, d: DType) -> Array:
    """Return values as numbers that NumPy can sort: those of bfloat16 as float32."""
    return (x.astype(np.uint32) << 16).view(np.float32) if d is bfloat16 else x


@pytest.mark.parametrize("descending", (False, True))
@pytest.mark.parametrize("d", REAL_DTYPES, ids=param_id)
def test_sort(kit: Kit, d: DType, descending: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check `sort` and `argsort`, by rank and by radix passes, on special values and ties."""
    monkeypatch.setattr(
        radix, "RANK_COMPARISONS_MAX", 0
    )  # else it depends on the device what is short
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
            kit.check_agreement(
                lambda on, v=values, p=place, r=rule, a=axis: r(  # type: ignore[misc]  # the defaults
                    p(v, d, on), axis=a, descending=descending
                ),
                f"{rule.__name__} of {d.name} {shape} along {axis}, {place.__name__}",
            )


RUNNING_EXTREMES = ("cumulative_max", "cumulative_min")  # of numbers only


@pytest.mark.parametrize(
    ("name", "d"),
    [
        pytest.param(name, d, id=f"{name}-{param_id(d)}")
        for name in (
            "cumulative_sum",
            "cumulative_prod",
            "cumulative_logsumexp",
            *RUNNING_EXTREMES,
        )
        for d in REAL_DTYPES
        if d is not bool_ or name not in RUNNING_EXTREMES
    ],
)
def test_cumulative(kit: Kit, name: str, d: DType) -> None:
    """Check a cumulative row along each axis, with and without the initial value."""
    op = ops.TABLE[name]
    cases: list[AgreementCase] = []
    units = kit.backend.info.capabilities.concurrency
    # long enough for launches that work in blocks, which only logsumexp never has
    blocks = max(4 * BLOCK_ELEMENTS, SPLIT_ROW_ELEMENTS_MIN // units) + BLOCK_ELEMENTS + 1
    for shape, axis in (
        ((300,), 0),
        ((ROWS, COLUMNS), 0),
        ((ROWS, COLUMNS), 1),
        ((2, 5, 9), 1),
        ((4, 0), 1),
        *([((blocks,), 0)] if d in (bool_, int64) and name != "cumulative_logsumexp" else []),
    ):
        values = finite_values(d, shape, 1)
        for first in (False, True) if axis == 0 or d in MAIN_DTYPES else (False,):

            def make(
                on: Device, v: Array = values, axis: int = axis, first: bool = first
            ) -> T.Tensor:
                """Apply the row to the values along the axis, on `on`."""
                attrs = (axis, first, None)
                _, out = op.dtypes(name, [d], attrs)
                full = tuple(n + (first and k == axis) for k, n in enumerate(v.shape))
                return T.create_tensor(
                    node(op, (dense(v, d, on)._expr,), spec(full, out, on), attrs)
                )

            cases.append((make, f"{name} of {d.name} {shape} along {axis}, initial: {first}"))
    kit.check_agreements(cases)


@pytest.mark.parametrize("d", [d for d in NUMBERS if d.kind == "f"], ids=param_id)
def test_recurrence(kit: Kit, d: DType) -> None:
    """Check the recurrence row along an axis, for each lag."""
    for shape, axis in (((300,), 0), ((ROWS, COLUMNS), 0), ((ROWS, COLUMNS), 1), ((4, 0), 1)):
        for lag in (0, 1):

            def make(
                on: Device, shape: Shape = shape, axis: int = axis, lag: int = lag
            ) -> T.Tensor:
                """Apply the recurrence to two tensors, on `on`."""
                x, b = (dense(finite_values(d, shape, s), d, on)._expr for s in (1, 2))
                return T.create_tensor(node(ops.RECURRENCE, (x, b), b.spec, (axis, lag)))

            kit.check_agreement(make, f"{shape} of {d.name} along {axis}, lag {lag}")


PRODUCTS = (
    ((4, 5), (5, 3)),
    ((1, 1), (1, 1)),
    ((33,), (33,)),
    ((17, 64), (64, 40)),
    ((2, 3, 4), (4, 5)),
    ((3, 1, 6, 7), (2, 7, 5)),
    ((5, 0), (0, 3)),
    ((70, 130), (130, 65)),
    ((3, 600), (600, 5)),  # several blocks of products
    ((600,), (600,)),
    ((40,), (40, 3)),
    ((3, 600), (600,)),
)
LONG_PRODUCT = PRODUCT_BLOCK * PRODUCT_BLOCKS + 300  # several groups of blocks


@pytest.mark.parametrize("d", NUMBERS, ids=param_id)
def test_matmul(kit: Kit, d: DType) -> None:
    """Check the generated kernel for matrix products, without a vendor's routine."""
    cases: list[AgreementCase] = []
    for left, right in PRODUCTS:
        x, y = finite_values(d, left, 1), finite_values(d, right, 2)
        for place in (dense, transposed, flipped):

            def make(on: Device, x: Array = x, y: Array = y, p: Arrangement = place) -> T.Tensor:
                """Multiply the matrices, arranged by `p`, on `on`."""
                return matmul(p(x, d, on), p(y, d, on))

            cases.append((make, f"{left} @ {right} of {d.name}, {place.__name__}"))
    with vendor_products(False):
        kit.check_agreements(cases)


@pytest.mark.parametrize("d", (int8, uint8), ids=param_id)
def test_matmul_of_small_integers_adds_in_int32(kit: Kit, d: DType) -> None:
    """Check products of a small dtype and int8 whose sums, in int32, are exact."""
    cases: list[AgreementCase] = []
    for left, right in PRODUCTS:
        x, y = finite_values(d, left, 1), finite_values(int8, right, 2)
        for arrange in (dense, transposed, flipped):

            def make(on: Device, x: Array = x, y: Array = y, p: Arrangement = arrange) -> T.Tensor:
                """Multiply the matrices, arranged by `p`, on `on`."""
                return matmul(p(x, d, on), p(y, int8, on), dtype=int32)

            cases.append((make, f"{left} of {d.name} @ {right} of int8, {arrange.__name__}"))
    kit.check_agreements(cases)


@pytest.mark.parametrize("columns", [(3,), ()], ids=["matrix", "vector"])
def test_matmul_of_several_groups(kit: Kit, columns: tuple[int, ...]) -> None:
    """Check the generated kernels for a product that is longer than a group of blocks."""
    x, y = (
        finite_values(float32, (2, LONG_PRODUCT), 1),
        finite_values(float32, (LONG_PRODUCT, *columns), 2),
    )

    def make(on: Device) -> T.Tensor:
        """Multiply the matrices on `on`."""
        return matmul(dense(x, float32, on), dense(y, float32, on))

    with vendor_products(False):
        kit.check_agreements([(make, f"{x.shape} @ {y.shape}")])


@pytest.mark.parametrize("d", [d for d in NUMBERS if d.kind == "f"], ids=param_id)
def test_matmul_of_a_vendor_is_close(kit: Kit, d: DType) -> None:
    """Check that a product differs from the reference by no more than rounding errors."""
    with vendor_products(False):
        expected = host(
            matmul(*(dense(finite_values(d, (65, 65), s), d, device(REFERENCE)) for s in (1, 2)))
        )
    actual = host(matmul(*(dense(finite_values(d, (65, 65), s), d, kit.device) for s in (1, 2))))
    x, y = (to_floats(v, d).astype("f8") for v in (actual, expected))
    step = {2: 2.0**-7 if d is bfloat16 else 2.0**-10, 4: 2.0**-23, 8: 2.0**-52}[d.itemsize]
    kit.comparisons += 1
    assert np.abs(x - y).max() <= 65 * 16 * step, kit.failure(f"off by {np.abs(x - y).max()}", "")


# Elementwise rows and reductions are gone through one by one; any other needs a test of its
# own, and is named here.
OPS_REACHED_BY_NAME = {
    "gather",
    "count_blocks",
    "true_positions",
    "packed_positions",
    "count_runs",
    "run_bounds",
    "checked_indices",
    "scatter",
    "scatter_reduce",
    "searchsorted",
    "concat",
    "cumulative_sum",
    "cumulative_prod",
    "cumulative_logsumexp",
    "cumulative_max",
    "cumulative_min",
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
    ours = {n for n, _ in (*MAPS, *REDUCTIONS)} | OPS_REACHED_BY_NAME | {"astype", "view"}
    return [name for name in ops.TABLE if name not in ours]
