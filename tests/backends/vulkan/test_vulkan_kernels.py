"""The kernels of test_cstyle, and more, on every Vulkan device here: the reference's bits."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dovetail_vulkan", reason="dovetail-vulkan is not installed")

from cstyle_cases import (  # noqa: F401 - collected here again, with this module's `host`
    COMBINES,
    KERNELS,
    check,
    test_atomics_have_the_reference_bits,
    test_casts_and_bitcasts_have_the_reference_bits,
    test_constants_are_exact,
    test_elementary_functions_have_the_reference_bits,
    test_every_operation_on_special_values_has_the_reference_bits,
    test_extreme_integer_constants_are_exact,
    test_fold_steps_read_the_previous_carries,
    test_fold_stops_once_its_carry_is_constant,
    test_golden_kernels_have_the_reference_bits,
    test_nested_reductions_and_maps_have_the_reference_bits,
    test_parameter_names_may_be_c_keywords,
    test_random_kernels_have_the_reference_bits,
    test_reductions_of_every_length_have_the_reference_bits,
    test_rounding_of_large_integers_and_of_float64_has_the_reference_bits,
)
from device_host import DeviceHost
from dovetail.extend import (
    INTEGERS,
    Capabilities,
    DType,
    Kernel,
    KernelBuilder,
    Loop,
    Store,
    Value,
    bool_,
    cast,
    const,
    float32,
    int32,
    legalize,
    load,
    loads,
    ne,
    parse_kernel,
    reduce_loop,
    shareable,
    uint32,
)
from dovetail.ir.language import fold_loop, map_loop
from dovetail_vulkan import schedule
from places import GOLDEN
from vulkan_devices import DEVICES, NAMES, REASON, opened, run_python

VALIDATOR = shutil.which("spirv-val")
SWIFTSHADER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")

pytestmark = pytest.mark.skipif(not DEVICES, reason=REASON)


def validate(program: Any, kernel: Kernel) -> None:
    """Check that the module of a program is valid, if there is a validator."""
    if VALIDATOR is not None:
        command = [VALIDATOR, "--target-env", "vulkan1.2", "-"]
        done = subprocess.run(command, input=program.module.words, capture_output=True)
        assert not done.returncode, f"{(done.stdout + done.stderr).decode()}\n{kernel}"


@pytest.fixture(scope="module", params=DEVICES, ids=NAMES)
def host(request: Any) -> Iterator[DeviceHost]:
    with opened(request.param) as (device, _):
        yield DeviceHost(device.opened, validate)


@pytest.fixture
def sharing_host(host: DeviceHost, monkeypatch: pytest.MonkeyPatch) -> DeviceHost:
    """Return the host, where groups compute the points of all kernels that they can share."""
    monkeypatch.setattr(schedule, "shares_points", lambda kernel, ints: shareable(kernel))
    monkeypatch.setattr(host.backend.launcher, "shares", True)
    return host


@pytest.mark.parametrize("name", COMBINES)
def test_groups_reduce_as_work_items_do(sharing_host: DeviceHost, name: str) -> None:
    test_reductions_of_every_length_have_the_reference_bits(sharing_host, name)


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_groups_compute_the_golden_kernels(sharing_host: DeviceHost, path: Path) -> None:
    kernel = legalize(parse_kernel(path.read_text()), Capabilities())
    test_golden_kernels_have_the_reference_bits(sharing_host, path, 6)
    schedules = sharing_host.programs[str(kernel)]._pipelines
    assert any(s.lanes for s in schedules) == shareable(kernel)


def test_groups_share_long_rows_alone() -> None:
    sizes = {"row_sum": (3, 65), "softmax_row": (3, 65), "cumulative_sum": (3, 65)}
    for name, (rows, columns) in sizes.items():
        kernel = parse_kernel((GOLDEN / f"{name}.txt").read_text())
        assert len(kernel.ints) == 2
        assert schedule.shares_points(kernel, (rows, columns)) == shareable(kernel)
        assert not schedule.shares_points(kernel, (rows, 63))


def test_groups_share_no_reductions_in_other_loops() -> None:
    b = KernelBuilder("nested")
    x, out, n = b.buffer("x", float32, "r"), b.buffer("out", float32, "w"), b.int("n")
    i = b.axis(n)
    (most,) = reduce_loop("max", 0, n, lambda k: load(x, k))
    b.store(out, i, most)
    assert schedule.shares_points(b.build(), (100,))
    row = lambda j: reduce_loop("add", 0, n, lambda k: load(x, j * n + k))[0]  # noqa: E731
    b.effect(map_loop(0, n, lambda j: [Store(out, j, row(j))]))
    assert not schedule.shares_points(b.build(), (100,))


def test_groups_share_maps_and_their_effects(sharing_host: DeviceHost) -> None:
    """A lane reads what the other lanes wrote in an earlier loop."""
    b = KernelBuilder("shared")
    x, work = b.buffer("x", float32, "r"), b.buffer("work", float32, "rw")
    out = b.buffer("out", float32, "w")
    i, n = b.axis(b.int("m")), b.int("n")
    (most,) = reduce_loop("max", 0, n, lambda k: load(x, i * n + k))
    b.effect(map_loop(0, n, lambda k: [Store(work, i * n + k, load(x, i * n + k) - most)]))
    (total,) = reduce_loop("add", 0, n, lambda k: load(work, i * n + (n - 1 - k)))
    b.store(out, i, total)
    x_ = np.random.default_rng(6).standard_normal(5 * 100).astype("f4")
    check(sharing_host, b.build(), [x_, np.zeros(500, "f4"), np.zeros(5, "f4")], [5, 100])


def test_group_computes_several_points(
    sharing_host: DeviceHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grid of more points than a dispatch has groups along x."""
    monkeypatch.setattr(schedule, "GROUPS_MAX", 2)
    path = GOLDEN / "softmax_row.txt"
    test_golden_kernels_have_the_reference_bits(sharing_host, path, 6)
    program = sharing_host.programs[str(legalize(parse_kernel(path.read_text()), Capabilities()))]
    assert any(s.lanes for s in program._pipelines)


@pytest.fixture
def vectorizing_host(host: DeviceHost, monkeypatch: pytest.MonkeyPatch) -> DeviceHost:
    """Return the host, where work items compute neighbours of all kernels that allow it."""
    monkeypatch.setattr(schedule, "VECTORIZED_LAUNCH_POINTS_MIN", 1)
    monkeypatch.setattr(schedule, "VECTORIZED_COLUMNS_MIN", 1)
    monkeypatch.setattr(host.backend.launcher, "vectorizes", True)
    return host


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_vectorized_points_have_the_reference_bits(
    vectorizing_host: DeviceHost, path: Path
) -> None:
    kernel = legalize(parse_kernel(path.read_text()), Capabilities())
    for size in (6, 8):
        test_golden_kernels_have_the_reference_bits(vectorizing_host, path, size)
    schedules = vectorizing_host.programs[str(kernel)]._pipelines
    assert any(s.vectorized for s in schedules) == schedule.is_vectorizable(kernel)


@pytest.mark.parametrize("d", [bool_, *INTEGERS, float32], ids=lambda d: d.name)
@pytest.mark.parametrize("columns", [1, 3, 4, 9])
def test_vectorized_points_access_vectors_of_each_dtype(
    vectorizing_host: DeviceHost, d: DType, columns: int
) -> None:
    """Rows that are no whole vectors, a row and a column that are broadcast, and a condition."""
    b = KernelBuilder("mixed")
    x, row, column = (b.buffer(name, d, "r") for name in ("x", "row", "column"))
    out, other = b.buffer("out", d, "w"), b.buffer("other", d, "w")
    m, n = b.int("m"), b.int("n")
    i, j = b.axis(m), b.axis(n)
    both = load(x, i * n + j) | load(row, j) if d.kind in "biu" else load(x, i * n + j)
    is_column = ne(load(column, i), const(0, d))
    b.store(out, i * n + j, both)
    b.effect(Store(other, j * m + i, load(row, j), is_column))
    assert schedule.is_vectorizable(b.build())
    bits = np.random.default_rng(columns).integers(0, 2, (4, 5 * columns))
    data = [v[:k].astype(d.name) for v, k in zip(bits, (5 * columns, columns, 5), strict=False)]
    zeros = [np.zeros(5 * columns, d.name) for _ in range(2)]
    check(vectorizing_host, b.build(), [*data, *zeros], [5, columns])


TRANSPOSED_COPY = """
kernel copy(x: r f32, out: w f32; n0, n1; ) grid(n0, n1) {
  v0: i64 = mul i0, n1
  v1: i64 = add v0, i1
  v2: i64 = mul i1, n0
  v3: i64 = add v2, i0
  v4: f32 = load x[v3]
  store out[v1] = v4
}
"""


def test_large_launches_of_kernels_without_loops_are_vectorized() -> None:
    text = (GOLDEN / "broadcast_add.txt").read_text()
    kernel = parse_kernel(text.replace("f64", "f32").replace("cast", "neg"))
    assert schedule.is_vectorizable(kernel)
    for other in (text, (GOLDEN / "row_sum.txt").read_text(), TRANSPOSED_COPY):
        assert not schedule.is_vectorizable(parse_kernel(other)), other
    for grid, vectorized, groups in (
        *(((1024, 1023), True, [4, 1024, 1]), ((1023, 255), False, [4, 1023, 1])),
        *(((4, 4096), False, [64, 4, 1]), ((1 << 20,), True, [4096, 1, 1])),
    ):
        chosen, _, size = schedule.schedule_launch(kernel, (), grid, vectorizes=True)
        assert (chosen.vectorized, size) == (vectorized, groups)
        assert not schedule.schedule_launch(kernel, (), grid)[0].vectorized


def test_launches_have_as_many_groups_as_cover_their_points() -> None:
    kernel = parse_kernel((GOLDEN / "softmax_row.txt").read_text())
    for grid, group, groups in (
        *(((7, 65), (64, 1, 1), [2, 7, 1]), ((9, 8), (8, 8, 1), [1, 2, 1])),
        *(((), (64, 1, 1), [1, 1, 1]), ((3, 2, 100), (64, 1, 1), [2, 2, 3])),
    ):
        chosen = schedule.schedule_launch(kernel, (3, 65), grid, shares=False)
        assert chosen == (schedule.Schedule(group), (3, 65), groups)
    *_, groups = schedule.schedule_launch(kernel, (3, 65), (70_000,), shares=True)
    assert groups == [schedule.GROUPS_MAX, 1, 1]


def test_products_are_jammed_and_have_the_reference_bits(host: DeviceHost) -> None:
    kernel = parse_kernel((GOLDEN / "matmul.txt").read_text())
    rng = np.random.default_rng(8)
    for m, n, p in ((1, 5, 7), (8, 3, 20), (21, 40, 9), (131, 12, 70)):
        arrays = [rng.standard_normal(k).astype("f4") for k in (m * n, n * p, m * p)]
        check(host, kernel, arrays, [m, n, p])
    program = host.programs[str(kernel)]
    jams = program.tile is not None
    assert jams or not host.backend.info.capabilities.denormals  # guarded sums have branches
    assert {s.jammed for s in program._pipelines} == {False, jams}  # False: of one row


def test_tiles_need_points_for_all_items_and_leave_few_idle() -> None:
    product = parse_kernel((GOLDEN / "matmul.txt").read_text())
    tile = schedule.join_points(product)
    assert tile is not None
    for grid, concurrency, suits in (
        *(((64, 64), 128, True), ((64, 64), 129, False), ((4, 4096), 2, False)),
        *(((4096, 2), 2, False), ((5, 3), 0, True)),
    ):
        assert tile.suits(grid, concurrency) == suits, grid
    for grid, group, groups in (
        *(((256, 256), (8, 8, 1), [8, 4, 1]), ((64, 10), (8, 8, 1), [1, 1, 1])),
        ((8, 256), (64, 1, 1), [1, 1, 1]),
    ):
        chosen, ints, size = schedule.schedule_launch(product, (1, 2, 3), grid, tile=tile)
        assert chosen == schedule.Schedule(group, jammed=True)
        assert (ints, size) == ((1, 2, 3, -(-grid[0] // 8), -(-grid[1] // 4)), groups)


def test_item_loads_a_value_once_for_the_points_of_its_tile() -> None:
    product = parse_kernel((GOLDEN / "matmul.txt").read_text())
    tile = schedule.join_points(product)
    assert tile is not None
    in_folds = [v for loop in tile.kernel.body if isinstance(loop, Loop) for v in loads(loop.body)]
    assert len(in_folds) == 8 + 4
    assert schedule.join_points(parse_kernel((GOLDEN / "row_sum.txt").read_text())) is None


def test_points_that_share_loads_along_rows_alone_are_joined_along_rows(host: DeviceHost) -> None:
    b = KernelBuilder("shared_rows")
    x, y, out = (
        b.buffer("x", float32, "r"),
        b.buffer("y", float32, "r"),
        b.buffer("o", float32, "w"),
    )
    m, n, p = (b.int(name) for name in "mnp")
    i, j = b.axis(m), b.axis(n)

    def step(k: Value, total: Value) -> list[Value]:
        return [total + load(x, (i * p + k) * n + j) * load(y, k * n + j)]

    b.store(out, i * n + j, fold_loop(0, p, [const(0.0, float32)], step).results[0])
    kernel = b.build()
    tile = schedule.join_points(kernel)
    assert tile is not None
    assert tile[1:] == (schedule.JAMMED_ROWS, 1)
    rng = np.random.default_rng(8)
    arrays = [rng.standard_normal(k).astype("f4") for k in (131 * 5 * 70, 5 * 70, 131 * 70)]
    check(host, kernel, arrays, [131, 70, 5])


@pytest.mark.skipif(not SWIFTSHADER.exists(), reason="SwiftShader (of Chromium) is not here")
@pytest.mark.parametrize("seed", range(3))
def test_driver_of_words_alone_gives_the_same_bits(seed: int) -> None:
    """SwiftShader has neither 64-bit numbers nor narrow integers, and flushes subnormals."""
    script = f"""if True:
        import dovetail as dt
        from dovetail.testing.programs import check
        check({seed}, "vulkan")
        rows = dt.arange(12, dtype=dt.int8, device="vulkan").reshape(3, 4)
        print((rows * 100).sum(axis=1).tolist())
    """
    done = run_python(script, VK_ICD_FILENAMES=str(SWIFTSHADER))
    x = np.arange(12, dtype="i1").reshape(3, 4) * np.int8(100)
    assert done.stdout.split("\n")[0] == str(x.sum(axis=1).tolist()), done.stderr


@pytest.mark.parametrize("op", ["lt", "le", "eq", "ne"])
@pytest.mark.parametrize(
    ("source", "target"), [(s, t) for s in INTEGERS for t in INTEGERS if s.bits < t.bits], ids=str
)
def test_extended_integers_are_compared_with_constants(
    host: DeviceHost, source: DType, target: DType, op: str
) -> None:
    """Mesa compares an int32 extended to 64 bits with a constant wrongly."""
    limits = [x + d for x in (source.min, 0, 64, source.max) for d in (-1, 0, 1)]
    constants = [const(x, target) for x in limits if target.min <= x <= target.max]
    b = KernelBuilder("compare")
    x, out = b.buffer("x", source, "r"), b.buffer("out", uint32, "w")
    i = b.axis(b.int("n"))
    wide, bits = cast(load(x, i), target), const(0, uint32)
    for k, c in enumerate(constants):
        for j, args in enumerate([(wide, c), (c, wide)]):
            bits = bits | cast(Value(op, bool_, args), uint32) << (2 * k + j)
    b.store(out, i, bits)
    numbers = np.array([n for n in limits if source.min <= n <= source.max], source.name)
    check(host, b.build(), [numbers, np.zeros(numbers.size, "u4")], [numbers.size])


# Integers that are 0 whatever k is.
ZEROS: dict[str, Callable[[Value], Value]] = {
    "bool": lambda k: ne(k, k),
    "sub": lambda k: k - k,
    "xor": lambda k: k ^ k,
    "and_of_sub": lambda k: (k - k) & k,
    "and_of_not": lambda k: k & Value("not", int32, (k,)),
    "or_of_subs": lambda k: (k - k) | (k ^ k),
    "disjoint_masks": lambda k: (k & 12) & 3,
    "shifted_out": lambda k: (k & 7) >> 3,
    "shifted_in": lambda k: (k << 4) & 15,
    "shift_of_sub": lambda k: (k - k) << (k & 3),
    "and_of_bool": lambda k: cast(ne(k, k), int32) & k,
    "sign_shifted_in": lambda k: ((k & 0x7FFFFFFF) >> 2) & (1 << 30),
}


@pytest.mark.parametrize("op", ["add", "mul", "div"])
@pytest.mark.parametrize("zero", ZEROS.values(), ids=ZEROS)
def test_floats_meet_integers_that_a_compiler_knows_to_be_0(
    host: DeviceHost, zero: Callable[[Value], Value], op: str
) -> None:
    """Mesa's compiler for CPUs takes x / 0 for undefined, and 0 / x and 0 * x for 0."""
    b = KernelBuilder("known_zero")
    x, k = b.buffer("x", float32, "r"), b.buffer("k", int32, "r")
    left, right = b.buffer("left", float32, "w"), b.buffer("right", float32, "w")
    i = b.axis(b.int("n"))
    args = load(x, i), cast(zero(load(k, i)), float32)
    b.store(left, i, Value(op, float32, args))
    b.store(right, i, Value(op, float32, args[::-1]))
    numbers = np.array([1.5, -1.5, 0.0, -0.0, np.inf, -np.inf, np.nan], "f4")
    n = numbers.size
    arrays = [numbers, np.arange(n, dtype="i4"), np.zeros(n, "f4"), np.zeros(n, "f4")]
    check(host, b.build(), arrays, [n])
