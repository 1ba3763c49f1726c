"""Level 3: every scalar op of the kernel IR on every dtype, with special values, in each
form a kernel can have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from ..backend.float_probe import FLOAT_EXPRESSIONS
from ..dtypes import ALL, BY_NAME, COMPLEX, DType, bfloat16, bool_, float16, float32, float64, int64
from ..ir.builder import Kernel, KernelBuilder
from ..ir.language import (
    OPS,
    Store,
    Value,
    bitcast,
    cast,
    const,
    fold_loop,
    load,
    map_loop,
    reduce_loop,
    where,
)
from .kit import Kit
from .values import Array, half_boundary_values, host_dtype, pairs, round_to_dtype, sample, specials

SIZES = (1, 2, 31, 32, 33, 63, 64, 65, 1000, 4095, 4096, 4097, 10_000)
# The forms: a point of the grid for each element; a grid of two axes; one point with a `map`,
# `fold` or `reduce` loop.
FORMS = ("grid", "grid2", "map", "fold", "reduce")
HALVES = (float16, bfloat16)
COMPUTE_DTYPES = tuple(d for d in ALL if d not in (*HALVES, *COMPLEX))
REAL_DTYPES = tuple(d for d in ALL if d not in COMPLEX)
ARITHMETIC = tuple(op for op in OPS if op not in ("cast", "bitcast", "where"))
CASES = [(op, d) for op in ARITHMETIC for d in COMPUTE_DTYPES if d.kind in OPS[op][1]]


def param_id(p: Any) -> str:
    """Return the name of a dtype, or the text of another parameter, as part of a case's name."""
    return p.name if isinstance(p, DType) else str(p)


def kernel_of(
    form: str, name: str, sources: Sequence[DType], target: DType, make: Callable[..., Value]
) -> Kernel:
    """Build out[i] = make(x0[i], x1[i], ...) for i < n, in one of FORMS."""
    b = KernelBuilder(name)
    inputs = [b.buffer(f"x{j}", d, "r") for j, d in enumerate(sources)]
    out = b.buffer("out", target, "w")
    n = b.int("n")

    def effect(i: Value) -> Store:
        """Return the store of the value at position `i`."""
        return Store(out, i, make(*[load(x, i) for x in inputs]))

    if form == "grid":
        b.effect(effect(b.axis(n)))
    elif form == "grid2":
        m = b.int("m")
        b.effect(effect(b.axis(n) * m + b.axis(m)))
    elif form == "map":
        b.effect(map_loop(0, n, lambda k: [effect(k)]))
    elif form == "fold":
        b.effect(fold_loop(0, n, [const(0, int64)], lambda k, c: ([c + 1], [effect(k)])))
    else:
        b.effect(map_loop(0, n, lambda k: [_store_by_reduction(out, inputs, make, k)]))
    return b.build()


def _store_by_reduction(
    out: Any, inputs: Sequence[Any], make: Callable[..., Value], k: Value
) -> Store:
    """Return the store out[k] = value, combined as bits by a reduction of one iteration."""

    def value(j: Value) -> Value:
        """Return the bits of the value at `j` as an unsigned integer."""
        reduced = make(*[load(x, j) for x in inputs])
        unsigned = BY_NAME[f"uint{reduced.dtype.bits}"]
        return cast(reduced, unsigned) if reduced.dtype is bool_ else bitcast(reduced, unsigned)

    (result,) = reduce_loop("or", k, k + 1, value)
    return Store(out, k, cast(result, bool_) if out.dtype is bool_ else bitcast(result, out.dtype))


def check(kit: Kit, form: str, kernel: Kernel, columns: Sequence[Array], target: DType) -> None:
    """Check a kernel of `form` on prefixes of the columns, repeated if need be, at every size."""
    total = columns[0].size
    sizes = sorted({n for n in SIZES if n <= max(total, 4097)} | {total})
    if form in ("fold", "reduce"):  # the reference takes these one by one
        sizes, total = [min(total, 777)], min(total, 777)
    for n in sizes:
        if form == "grid2" and n % 3:
            continue
        arrays = [*(np.resize(c, n) for c in columns), np.zeros(n, host_dtype(target))]
        ints, grid = (
            ([n // 3, 3], [n // 3, 3]) if form == "grid2" else ([n], [n] if form == "grid" else [])
        )
        kit.check(kernel, arrays, ints, [], grid)


def columns_for(op: str, d: DType) -> list[Array]:
    """Return columns of special values on which `op` is defined."""
    columns = pairs(d, OPS[op][0])
    if op in ("shl", "shr"):
        columns[1] = columns[1] % host_dtype(d).type(d.bits)
    if op in ("quo", "rem"):
        bad = columns[1] == 0
        if d.kind == "i":
            bad |= (columns[1] == -1) & (columns[0] == d.min)
        columns[1] = np.where(bad, host_dtype(d).type(1), columns[1])
    return columns


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("op", "d"), CASES, ids=param_id)
def test_arithmetic(kit: Kit, op: str, d: DType, form: str) -> None:
    """Check a scalar op at a dtype on special values, in one of FORMS."""
    target = bool_ if OPS[op][2] == "b" else d
    columns = columns_for(op, d)
    sources = [d] * len(columns)
    kernels = {
        f: kernel_of(f, f"{op}_{d.code}", sources, target, lambda *v: Value(op, target, v))
        for f in FORMS
    }
    kit.compile([*kernels.values()])
    check(kit, form, kernels[form], columns, target)


@pytest.mark.parametrize("d", (float32, float64), ids=param_id)
def test_fma_rounds_once(kit: Kit, d: DType) -> None:
    """Check `fma` on products whose low half decides the last bit of the sum."""
    rng, n = np.random.default_rng(8), 5000
    digits = 24 if d is float32 else 53
    a, b = (
        round_to_dtype(1 + rng.integers(1, 1 << 20, n) * 2.0 ** (1 - digits), d) for _ in range(2)
    )
    c = round_to_dtype(-(a.astype("f8") * b.astype("f8")), d)
    far = round_to_dtype(rng.choice([1.0, -1.0], n) * 2.0 ** rng.integers(-70, 70, n), d)
    columns = [np.concatenate([a, a]), np.concatenate([b, b]), np.concatenate([c, far])]
    kernel = kernel_of("grid", "fma", [d] * 3, d, lambda *v: Value("fma", d, v))
    check(kit, "grid", kernel, columns, d)


def sum_of_expressions(name: str, d: DType) -> Kernel:
    """Build out[i] = the sum of an expression's values at 3 * i, 3 * i + 1, 3 * i + 2."""
    b = KernelBuilder(name)
    inputs, out = [b.buffer(f"x{j}", d, "r") for j in range(3)], b.buffer("out", d, "w")
    i = b.axis(b.int("n"))
    make = FLOAT_EXPRESSIONS[name]
    sums = reduce_loop("add", 0, 3, lambda k: make(*[load(x, i * 3 + k) for x in inputs]))
    b.store(out, i, sums[0])
    return b.build()


@pytest.mark.parametrize("form", ("grid", "reduce", "sum"))
@pytest.mark.parametrize("d", (float32, float64), ids=param_id)
@pytest.mark.parametrize("name", FLOAT_EXPRESSIONS)
def test_nothing_is_contracted_or_reassociated(kit: Kit, name: str, d: DType, form: str) -> None:
    """Check expressions whose bits change if a compiler fuses or reorders, also in reductions."""
    rng, n = np.random.default_rng(8), 1000
    x, y = (round_to_dtype(1 + rng.random(n), d) for _ in range(2))
    near = round_to_dtype(-(x.astype("f8") * y.astype("f8")), d)  # all but the product's rounding
    far = round_to_dtype(rng.choice([1.0, -1.0], n) * 2.0 ** rng.integers(-60, 60, n), d)
    some = [sample(d, n, seed) for seed in (1, 2, 3)]
    columns = [np.concatenate(c) for c in ([x, x, some[0]], [y, far, some[1]], [near, y, some[2]])]
    if form == "sum":
        kit.check(sum_of_expressions(name, d), [*columns, np.zeros(n, host_dtype(d))], [n], [], [n])
    else:
        check(kit, form, kernel_of(form, name, [d] * 3, d, FLOAT_EXPRESSIONS[name]), columns, d)


def castable(source: DType, target: DType) -> Array:
    """Return values of `source` whose cast is defined: within the range of an integer dtype."""
    x = np.concatenate([specials(source), sample(source, 300, 1)])
    if source.kind == "f" and target.is_integer:
        wide = (
            x.astype(np.float64)
            if source is not bfloat16
            else (x.astype("u4") << 16).view("f4").astype("f8")
        )
        with np.errstate(invalid="ignore"):
            x = x[(np.trunc(wide) >= float(target.min)) & (np.trunc(wide) < float(target.max + 1))]
    return x


def casts() -> Iterator[tuple[DType, DType]]:
    """Yield (source, target) of each cast between real dtypes, except from halves to integers."""
    for source in REAL_DTYPES:
        for target in REAL_DTYPES:
            if source is not target and not (source in HALVES and target.kind in "biu"):
                yield source, target


@pytest.mark.parametrize("form", ("grid", "map"))
@pytest.mark.parametrize(("source", "target"), list(casts()), ids=param_id)
def test_cast(kit: Kit, source: DType, target: DType, form: str) -> None:
    """Check a cast on all special values for which it is defined."""
    kernels = {
        (f, t): kernel_of(f, "cast", [source], t, lambda v, t=t: cast(v, t))
        for f in ("grid", "map")
        for s, t in casts()
        if s is source and kit.has_dtype(t)
    }
    kit.compile([*kernels.values()])
    check(kit, form, kernels[form, target], [castable(source, target)], target)


@pytest.mark.parametrize("half", HALVES, ids=param_id)
def test_every_half_becomes_a_float(kit: Kit, half: DType) -> None:
    """Check the cast of all 65536 bit patterns of a half to float32."""
    every = np.arange(1 << 16, dtype=np.uint16).view(host_dtype(half))
    kernel = kernel_of("grid", "up", [half], float32, lambda v: cast(v, float32))
    kit.check(kernel, [every, np.zeros(every.size, "f4")], [every.size], [], [every.size])


@pytest.mark.parametrize("source", (float32, float64), ids=param_id)
@pytest.mark.parametrize("half", HALVES, ids=param_id)
def test_floats_round_to_the_nearest_half(kit: Kit, half: DType, source: DType) -> None:
    """Check the cast of ties and their neighbours to a half dtype."""
    x = half_boundary_values(half).astype(host_dtype(source))
    if source is float64:  # a hair beside a tie: rounding twice would go wrong
        x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)])
    kernel = kernel_of("grid", "down", [source], half, lambda v: cast(v, half))
    kit.check(kernel, [x, np.zeros(x.size, host_dtype(half))], [x.size], [], [x.size])


@pytest.mark.parametrize("source", COMPUTE_DTYPES[1:], ids=param_id)
def test_bitcast(kit: Kit, source: DType) -> None:
    """Check bitcasts between dtypes of the same size."""
    for target in COMPUTE_DTYPES[1:]:
        if target.itemsize == source.itemsize and kit.has_dtype(target):
            kernel = kernel_of("grid", "bits", [source], target, lambda v, t=target: bitcast(v, t))
            check(kit, "grid", kernel, [sample(source, 500, 2)], target)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("d", COMPUTE_DTYPES, ids=param_id)
def test_where(kit: Kit, d: DType, form: str) -> None:
    """Check `where` at a dtype, in one of FORMS."""
    columns = [sample(bool_, 2000, 1), sample(d, 2000, 2), sample(d, 2000, 3)]
    kernels = {f: kernel_of(f, "where", [bool_, d, d], d, where) for f in FORMS}
    kit.compile([*kernels.values()])
    check(kit, form, kernels[form], columns, d)


@pytest.mark.parametrize("d", REAL_DTYPES, ids=param_id)
def test_load_and_store_move_bits(kit: Kit, d: DType) -> None:
    """Check that a load and a store keep every bit."""
    forms = ("grid", "grid2", "map", "fold")
    kernels = [kernel_of(form, "copy", [d], d, lambda v: v) for form in forms]
    kit.compile(kernels)
    for form, kernel in zip(forms, kernels, strict=True):
        check(kit, form, kernel, [sample(d, 10_000, 4)], d)


@pytest.mark.parametrize("form", ("grid", "map", "fold"))
@pytest.mark.parametrize("d", REAL_DTYPES, ids=param_id)
def test_predicated_access(kit: Kit, d: DType, form: str) -> None:
    """Check that a false predicate accesses no memory, and that its load gives zero.

    The index may then be anything.
    """
    b = KernelBuilder("guard")
    c, x, out = b.buffer("c", bool_, "r"), b.buffer("x", d, "r"), b.buffer("out", d, "w")
    n = b.int("n")

    def effect(i: Value) -> Store:
        """Return a store whose false predicate comes with an index far out of range."""
        yes = load(c, i)
        value = load(x, where(yes, i, i << 40), yes)
        keep = yes | (i < 9)
        return Store(out, where(keep, i, i << 40), value, keep)

    if form == "grid":
        b.effect(effect(b.axis(n)))
    elif form == "map":
        b.effect(map_loop(0, n, lambda k: [effect(k)]))
    else:
        b.effect(fold_loop(0, n, [const(0, int64)], lambda k, s: ([s + 1], [effect(k)])))
    kernel = b.build()
    for size in (1, 31, 64, 333):
        arrays = [sample(bool_, size, 1), sample(d, size, 2), sample(d, size, 3)]
        kit.check(kernel, arrays, [size], [], [size] if form == "grid" else [])


@pytest.mark.parametrize("d", COMPUTE_DTYPES, ids=param_id)
def test_constants_and_scalars(kit: Kit, d: DType) -> None:
    """Check that constants and scalar arguments keep every bit."""
    values = specials(d).tolist()
    b = KernelBuilder("scalars")
    out, index = b.buffer("out", d, "w"), 0
    for value in values:
        b.store(out, const(index, int64), const(value, d))
        index += 1
    names = [b.scalar(f"s{j}", d) for j in range(len(values))]
    for name in names:
        b.store(out, const(index, int64), name)
        index += 1
    kit.check(b.build(), [np.zeros(index, host_dtype(d))], [], values, [])


@pytest.mark.parametrize("d", [d for d in COMPUTE_DTYPES if d.kind == "f"], ids=param_id)
def test_scalars_of_floats_may_be_whole_numbers(kit: Kit, d: DType) -> None:
    """Check that an int or a bool is accepted for a float parameter of a launch."""
    b = KernelBuilder("whole")
    x, out, c = b.buffer("x", d, "r"), b.buffer("out", d, "w"), b.scalar("c", d)
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i) * c)
    kernel, arrays = b.build(), [sample(d, 65, 4), np.zeros(65, host_dtype(d))]
    for value in (2, -3, 0, 1 << 20, True):
        kit.check(kernel, arrays, [65], [value], [65])
