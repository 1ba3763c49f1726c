"""The kernels of test_cstyle on the driver double, in every schedule: the reference's bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
pytest.importorskip("dovetail_cuda", reason="dovetail-cuda is not installed")

from cstyle_cases import (  # noqa: F401 - collected here again, with this module's `host`
    check,
    reduction,
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
    test_reduction_of_chunks_of_chunks_has_the_reference_bits,
    test_reductions_of_every_length_have_the_reference_bits,
    test_rounding_of_large_integers_and_of_float64_has_the_reference_bits,
)
from cuda_double import plugin as double
from dovetail.dtypes import float32, int64
from dovetail.extend import Backend, Kernel, KernelBuilder, Store, legalize, parse_kernel
from dovetail.ir.language import cast, eq, load, map_loop, reduce_loop
from dovetail_cuda import plugin, schedule
from places import GOLDEN

SHIFT = 192  # bytes before the buffers' first elements, so that offset 0 cannot be assumed
# How large a reduction or a grid must be for several threads to share a point, or one to do several
LIMITS = {"a thread for a point": 1 << 62, "the other schedules": 0}


class CudaHost:
    """Run kernels on the double, with the arrays at offsets in larger buffers."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.programs: dict[str, Any] = {}
        self.launched: set[str] = set()

    def run(
        self, kernel: Kernel, arrays: Sequence[Any], ints: Sequence[int], scalars: Sequence[Any]
    ) -> None:
        b, text = self.backend, str(kernel)
        if text not in self.programs:
            self.programs[text] = b.compile(legalize(kernel, b.info.capabilities))
        program = self.programs[text]
        handles = [b.allocate(a.nbytes + 2 * SHIFT) for a in arrays]
        for h, a in zip(handles, arrays, strict=True):
            b.copy_in(h, SHIFT, memoryview(a.reshape(-1).view(np.uint8)))
        names = dict(zip(kernel.ints, ints, strict=True))
        grid = [names[e.name] if e.op == "param" else int(e.number) for e in kernel.grid]
        places = [x for h in handles for x in (h, SHIFT)]
        if 0 not in grid:
            self.launched.add(schedule.best(program.kernel, ints, grid))
            b.launch(program, tuple(places), ints, scalars, grid)
        for h, a in zip(handles, arrays, strict=True):
            b.copy_out(memoryview(a.reshape(-1).view(np.uint8)), h, SHIFT)
            b.free(h, a.nbytes)


@pytest.fixture(scope="module", params=LIMITS)
def host(request: pytest.FixtureRequest) -> Iterator[CudaHost]:
    with double.installed(), pytest.MonkeyPatch.context() as patch:
        limit = LIMITS[request.param]
        for name in (
            "THREAD_ELEMENTS_MAX",
            "COARSENED_POINTS_MIN",
            "COARSENED_COLUMNS_MIN",
            "JAMMED_POINTS_MIN",
            "STAGED_POINTS_MIN",
        ):
            patch.setattr(schedule, name, limit)
        found = plugin.dovetail_probe({})
        yield CudaHost(plugin.dovetail_open(found[0], {}))  # type: ignore[index]


def four_axes() -> Kernel:
    """Build out[a, b, c, d] = x[a, c, d] * y[b, d] + a, and the sum of all indices."""
    k = KernelBuilder("four")
    x, y = k.buffer("x", float32, "r"), k.buffer("y", float32, "r")
    out, more = k.buffer("out", float32, "w"), k.buffer("more", int64, "w")
    sizes = [k.int(name) for name in "pqrs"]
    a, b, c, d = (k.axis(n) for n in sizes)
    _, q, r, s = sizes
    at = ((a * q + b) * r + c) * s + d
    k.store(out, at, load(x, (a * r + c) * s + d) * load(y, b * s + d) + cast(a, float32))
    k.store(more, at, a + b + c + d, when=eq(d & 1, 0))
    return k.build()


def test_grids_of_four_axes_have_the_reference_bits(host: CudaHost) -> None:
    rng = np.random.default_rng(0)
    for p, q, r, s in ((1, 1, 1, 1), (3, 2, 5, 7), (2, 3, 4, 65), (2, 1, 3, 300)):
        x, y = rng.normal(size=(p, r, s)).astype("f4"), rng.normal(size=(q, s)).astype("f4")
        out = np.zeros((p, q, r, s), "f4")
        arrays = [a.reshape(-1) for a in (x, y, out, np.full(out.shape, -1))]
        check(host, four_axes(), arrays, [p, q, r, s])  # type: ignore[arg-type]


def test_finalizer_that_launches_amid_a_launch_changes_no_argument_of_it(host: CudaHost) -> None:
    k = KernelBuilder("increment")
    x, n = k.buffer("x", float32, "rw"), k.int("n")
    at = k.axis(n)
    k.store(x, at, load(x, at) + 1)
    b = host.backend
    launch = b.bind(b.compile(legalize(k.build(), b.info.capabilities)), [4], [4])
    first, second, out = b.allocate(16), b.allocate(16), np.zeros(4, "f4")
    for handle in (first, second):
        b.copy_in(handle, 0, memoryview(out.view(np.uint8)))
    bound = launch.__self__  # type: ignore[attr-defined]
    enter = bound.enter

    def collect_garbage() -> None:
        bound.enter = enter
        launch((second, 0), [], None)

    bound.enter = collect_garbage
    launch((first, 0), [], None)
    for handle in (first, second):
        b.copy_out(memoryview(out.view(np.uint8)), handle, 0)
        assert out.tolist() == [1, 1, 1, 1]
        b.free(handle, 16)


def softmax_of_columns(access: str) -> Kernel:
    """Build x / sum(x) along columns, in place or not: loops that all lanes of a point share."""
    k = KernelBuilder("share")
    x = k.buffer("x", float32, access)
    out = x if access == "rw" else k.buffer("out", float32, "w")
    n, m = k.int("n"), k.int("m")
    i = k.axis(m)
    total = reduce_loop("add", 0, n, lambda j: load(x, j * m + i))[0]
    k.effect(map_loop(0, n, lambda j: [Store(out, j * m + i, load(x, j * m + i) / total)]))
    return k.build()


@pytest.mark.parametrize("access", ["r", "rw"])
def test_lanes_beyond_the_grid_write_nothing(host: CudaHost, access: str) -> None:
    for m in (1, 31, 32, 33, 70):
        x = np.random.default_rng(m).normal(size=(100, m)).astype("f4").reshape(-1)
        arrays = [x] if access == "rw" else [x, np.zeros_like(x)]
        check(host, softmax_of_columns(access), arrays, [100, m])  # type: ignore[arg-type]


def test_every_schedule_is_used(host: CudaHost, request: pytest.FixtureRequest) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=3000).astype("f4")
    for axis in (0, 1):
        check(host, reduction("add", [float32], axis), [x, np.zeros(30, "f4")], [30, 100])  # type: ignore[arg-type]
    matmul = parse_kernel((GOLDEN / "matmul.txt").read_text())
    square = rng.normal(size=100).astype("f4")
    check(host, matmul, [square, square, np.zeros(100, "f4")], [10] * len(matmul.ints))  # type: ignore[arg-type]
    check(host, four_axes(), [x, x, np.zeros(3000, "f4"), np.zeros(3000, "i8")], [1, 1, 1, 3000])  # type: ignore[arg-type]
    wanted = {schedule.PLAIN}
    if "other" in request.node.name:
        wanted = {schedule.JAMMED, schedule.WARP, schedule.COLUMNS, schedule.COARSENED}
    assert wanted <= host.launched
