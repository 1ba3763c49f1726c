"""The OpenCL backend around its kernels: devices, capabilities, memory, streams, binaries."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyopencl", reason="pyopencl is not installed")
pytest.importorskip("dovetail_opencl", reason="dovetail-opencl is not installed")

import dovetail as dt
import pyopencl as cl
from cstyle_cases import reduction
from dovetail.device_class import device
from dovetail.dtypes import dtype
from dovetail.extend import (
    Backend,
    CompileError,
    DeviceInfo,
    Unavailable,
    float16,
    float32,
    float64,
    legalize,
    parse_kernel,
)
from dovetail.tensor.host import from_host
from dovetail.testing.programs import check as check_program
from dovetail.testing.test_layouts import matrix_product
from dovetail_opencl import loader, plugin
from dovetail_opencl.compile import groups_of
from dovetail_opencl.render import OpenCLStyle, ndrange_sizes
from dovetail_opencl.schedule import (
    GROUPED_COLUMNS_MIN,
    ITEM_ELEMENTS_MAX,
    JAMMED,
    LANED,
    PLAIN,
    STAGED,
    Groups,
    best,
    schedules,
)
from opencl_devices import LimitedDevice, opened
from staged_cases import product_of_halves

FOUND = plugin.dovetail_probe({})
DEVICES = [] if isinstance(FOUND, Unavailable) else list(FOUND)
NAMES = [d.details["platform"].split("(")[0] for d in DEVICES]
needs_device = pytest.mark.skipif(not DEVICES, reason="no OpenCL device: dovetail-opencl[cpu]")

ADD = """kernel add(x: r f32, out: w f32; n; c: f32) grid(n) {
  v0: f32 = load x[i0]
  v1: f32 = add v0, c
  store out[i0] = v1
}"""
HALF = """kernel half(x: r f16, out: w f32; n; ) grid(n) {
  v0: f16 = load x[i0]
  v1: f32 = cast v0
  store out[i0] = v1
}"""
DIVIDE = """kernel divide(x: r f32, out: w f32; n; c: f32) grid(n) {
  v0: f32 = load x[i0]
  v1: f32 = div c, v0
  v2: f32 = sqrt v1
  store out[i0] = v2
}"""


@pytest.fixture(scope="module", params=DEVICES, ids=NAMES)
def backend(request: pytest.FixtureRequest) -> Backend:
    return plugin.dovetail_open(request.param, {})


def run(b: Backend, program: Any, x: Any, out: Any, *scalars: float, stream: Any = None) -> Any:
    handles = [b.allocate(a.nbytes) for a in (x, out)]
    b.copy_in(handles[0], 0, memoryview(x).cast("B"), stream)
    b.launch(program, (handles[0], 0, handles[1], 0), [x.size], scalars, [x.size], stream)
    b.copy_out(memoryview(out).cast("B"), handles[1], 0, stream)
    for h, a in zip(handles, (x, out), strict=True):
        b.free(h, a.nbytes)
    return out


# --- finding devices


def probe_in_new_process(**environ: str) -> str:
    """Return the result of a probe in a new process."""
    script = "from dovetail_opencl import plugin; print(plugin.dovetail_probe({}))"
    path = os.pathsep.join(p for p in sys.path if p)
    full = {**os.environ, "PYTHONPATH": path, **environ}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=full, capture_output=True, text=True, check=True).stdout


def test_hidden_drivers_are_reported_with_their_variable(tmp_path: Any) -> None:
    found = probe_in_new_process(OCL_ICD_VENDORS=str(tmp_path))
    assert "no OpenCL platform has a device" in found and "unset OCL_ICD_VENDORS" in found


@pytest.mark.parametrize("installed", [(), ("intel-opencl-rt",), loader.RUNTIME_PACKAGES])
def test_only_missing_packages_are_recommended(
    installed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "_is_installed", lambda name: name in installed)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    for name in loader.DRIVER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    said = loader.suggest_fix()
    assert ("dovetail-opencl[cpu]" in said) == (not installed)
    assert ("pip install intel-cmplr-lib-rt" in said) == (len(installed) == 1)
    assert "hardware's OpenCL driver" in said
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert "pip install" not in loader.suggest_fix()


def test_reason_why_a_driver_does_not_load_is_reported(tmp_path: Any) -> None:
    (tmp_path / "junk.so").write_text("no library")
    (tmp_path / "a.icd").write_text(f"{tmp_path / 'junk.so'}\n")
    (tmp_path / "b.icd").write_text("libnowhere_to_be_found.so\n")
    found = probe_in_new_process(OCL_ICD_VENDORS=str(tmp_path))
    assert f"{tmp_path / 'junk.so'} cannot be loaded: " in found
    assert "libnowhere_to_be_found.so cannot be loaded: " in found and "cannot open shared" in found


def test_damaged_intel_runtime_is_not_recommended(tmp_path: Any) -> None:
    for name in loader.RUNTIME_PACKAGES:
        info = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "RECORD").write_text("libintelocl.so,,\n")
    (tmp_path / "libintelocl.so").write_text("damaged")
    path = os.pathsep.join([str(tmp_path), *(p for p in sys.path if p)])
    command = [sys.executable, "-m", "dovetail.commands.cli", "doctor"]
    environ = {k: v for k, v in os.environ.items() if k not in loader.DRIVER_VARIABLES}
    done = subprocess.run(
        command, env={**environ, "PYTHONPATH": path, "DOVETAIL_BACKENDS": "opencl"},
        capture_output=True, text=True,
    )  # fmt: skip
    why = [x for x in done.stdout.splitlines() if "libintelocl.so" in x and "cannot be loaded" in x]
    assert why and str(tmp_path) in why[0], done.stdout
    if "opencl: unavailable" in done.stdout:  # the system may have a driver
        assert "dovetail-opencl[cpu]" not in done.stdout


@pytest.mark.parametrize(
    ("error", "mend"),
    [
        ("ImportError('no such thing')", "pip install --force-reinstall pyopencl"),
        ("ModuleNotFoundError('none', name='pyopencl')", "pip install pyopencl"),
    ],
)
def test_missing_pyopencl_is_reported(error: str, mend: str, tmp_path: Any) -> None:
    (tmp_path / "pyopencl.py").write_text(f"raise {error}\n")
    path = os.pathsep.join([str(tmp_path), *(p for p in sys.path if p)])
    found = probe_in_new_process(PYTHONPATH=path)
    assert "Unavailable" in found and mend in found


@pytest.mark.skipif(loader.intel_runtime() is None, reason="intel-opencl-rt is not installed")
def test_intel_runtime_from_pip_is_found() -> None:
    assert any("Intel" in name for name in NAMES)
    assert "OCL_ICD_VENDORS" not in os.environ or "dovetail" not in os.environ["OCL_ICD_VENDORS"]


@needs_device
def test_devices_are_numbered_and_have_unique_fingerprints() -> None:
    assert [d.index for d in DEVICES] == list(range(len(DEVICES)))
    assert len({d.fingerprint for d in DEVICES}) == len(DEVICES)


# --- missing capabilities


def masked(b: Backend, **changes: Any) -> DeviceInfo:
    return replace(b.info, capabilities=replace(b.info.capabilities, **changes))


def test_halves_keep_their_values_with_and_without_fp16(backend: Backend) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for native in (backend.info.capabilities.native_halves, frozenset()):
        caps = masked(backend, native_halves=native).capabilities
        program = backend.compile(legalize(parse_kernel(HALF), caps))
        assert ("half" in program.source.split("kernel_half")[1]) == (float16 in native)
        got = run(backend, program, every, np.zeros(every.size, "f4"))
        assert np.array_equal(got, every.astype("f4"), equal_nan=True)


def test_division_is_correctly_rounded_without_hardware_support(backend: Backend) -> None:
    rng = np.random.default_rng(0)
    x = np.abs(rng.standard_normal(3000) * 10.0 ** rng.integers(-30, 30, 3000)).astype("f4")
    x[:4] = [0, np.inf, 1e-42, np.nan]
    with np.errstate(all="ignore"):
        wanted = np.sqrt(np.float32(0.7) / x)
    with_64 = masked(backend, exact_division=False)
    without = masked(backend, exact_division=False, float64=False)
    for info in (backend.info, with_64, without):
        program = backend.compile(legalize(parse_kernel(DIVIDE), info.capabilities))
        got = run(backend, program, x, np.zeros_like(x), 0.7)
        assert np.array_equal(got, wanted, equal_nan=True)
    assert "double" not in program.source


# --- memory, launches, streams


def test_copies_accept_read_only_memory_and_offsets(backend: Backend) -> None:
    handle, got = backend.allocate(100), bytearray(8)
    backend.copy_in(handle, 0, memoryview(bytes(range(100))))
    backend.copy_in(handle, 50, memoryview(b"abcd"))
    backend.copy_out(memoryview(got), handle, 48)
    assert bytes(got) == b"01abcd67"
    backend.free(handle, 100)


def test_allocation_beyond_memory_raises_memory_error(backend: Backend) -> None:
    with pytest.raises(MemoryError):
        backend.allocate(1 << 60)


def test_bound_launch_reads_new_buffers_offsets_and_scalars(backend: Backend) -> None:
    program = backend.compile(parse_kernel(ADD))
    launch = backend.bind(program, [5], [5])
    x = np.arange(10, dtype="f4")
    source, target = backend.allocate(40), backend.allocate(40)
    backend.copy_in(source, 0, memoryview(x).cast("B"))
    for first, c in ((0, 1.0), (5, -2.0), (5, 0.5)):
        launch((source, 4 * first, target, 4 * first), [c], None)
        out = np.zeros(5, "f4")
        backend.copy_out(memoryview(out).cast("B"), target, 4 * first)
        assert np.array_equal(out, x[first : first + 5] + np.float32(c))


def test_streams_and_events_order_and_measure_work(backend: Backend) -> None:
    program = backend.compile(parse_kernel(ADD))
    one, two = backend.create_stream(), backend.create_stream()
    start = backend.record_event(one)
    x = np.ones(1000, "f4")
    assert run(backend, program, x, np.zeros_like(x), 2.0, stream=one).sum() == 3000
    end = backend.record_event(one)
    backend.wait_event(two, end)
    backend.synchronize(two)
    backend.wait_event(None, end)
    assert backend.event_done(end) and backend.elapsed_ms(start, end) >= 0


def test_binaries_are_loaded_and_foreign_ones_rejected(backend: Backend) -> None:
    kernel = parse_kernel(ADD)
    program = backend.compile(kernel)
    loaded = backend.load(kernel, program.binary or b"")
    x = np.ones(10, "f4")
    assert run(backend, loaded, x, np.zeros_like(x), 2.0)[9] == 3
    with pytest.raises(ValueError, match="another source"):
        backend.load(parse_kernel(ADD.replace("add v0, c", "mul v0, c")), program.binary or b"")
    with pytest.raises(ValueError, match="damaged"):
        backend.load(kernel, (program.binary or b"")[:-200] + bytes(10))


def test_build_error_shows_kernel_and_log(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenCLStyle, "store", lambda *a: "no such statement;")
    with pytest.raises(CompileError, match=r"(?s)rejected a kernel.*error.*kernel add\("):
        backend.compile(parse_kernel(ADD))


def test_long_rows_use_groups_and_short_ones_do_not(backend: Backend) -> None:
    kernel = reduction("add", [float32])
    program = backend.compile(kernel)
    fast = "Intel" in backend.info.details["platform"]
    groups = Groups(fast)
    assert program.first == ("lanes" if fast else "plain")  # type: ignore[attr-defined]
    long = LANED if fast else PLAIN
    assert best(kernel, groups, [3, ITEM_ELEMENTS_MAX - 1], [3]) == PLAIN
    assert best(kernel, groups, [3, ITEM_ELEMENTS_MAX], [3]) == long
    columns = reduction("add", [float32], axis=0)
    names = ["plain", "unrolled" if fast else "tiled"]
    assert list(schedules(columns, groups)) == names
    assert (
        best(columns, groups, [GROUPED_COLUMNS_MIN, ITEM_ELEMENTS_MAX], [GROUPED_COLUMNS_MIN])
        == names[1]
    )
    assert (
        best(
            columns, groups, [GROUPED_COLUMNS_MIN - 1, ITEM_ELEMENTS_MAX], [GROUPED_COLUMNS_MIN - 1]
        )
        == PLAIN
    )


def test_products_compute_several_rows_at_once(backend: Backend) -> None:
    program = backend.compile(legalize(matrix_product(float32), backend.info.capabilities))
    assert program.first == "jammed"  # type: ignore[attr-defined]
    rng = np.random.default_rng(1)
    for m, k, n in ((1, 5, 40), (9, 33, 40), (16, 3, 1)):
        x, y = (rng.integers(-9, 9, s).astype("f4") for s in ((m, k), (k, n)))
        handles = [backend.allocate(4 * size) for size in (m * k, k * n, m * n)]
        for h, a in zip(handles, (x, y), strict=False):
            backend.copy_in(h, 0, memoryview(a).cast("B"))
        buffers = tuple(v for h in handles for v in (h, 0))
        backend.launch(program, buffers, [m, k, n], [], [m, n])
        out = np.zeros((m, n), "f4")
        backend.copy_out(memoryview(out).cast("B"), handles[2], 0)
        assert np.array_equal(out, x @ y)


@needs_device
def test_products_are_staged_in_local_memory_of_large_groups_alone() -> None:
    """A GPU may emulate local memory, and a group may be too small for a tile."""
    with opened(DEVICES[0]) as (_, backend):
        for local, items, staged in (
            (cl.device_local_mem_type.LOCAL, 128, True),
            (cl.device_local_mem_type.LOCAL, 127, False),
            (cl.device_local_mem_type.GLOBAL, 128, False),
        ):
            gpu: Any = LimitedDevice(
                backend.device, type=cl.device_type.GPU, local_mem_type=local,
                local_mem_size=32 << 10, max_work_group_size=items, extensions="",
            )  # fmt: skip
            groups = groups_of(gpu)
            assert (STAGED in schedules(matrix_product(float32), groups)) is staged


def test_compilers_that_make_vectors_stage_only_halves() -> None:
    """Several rows of a work item are faster for elements that need no conversion."""
    groups = Groups(True, local_bytes=32 << 10, items=128, vectors=True)
    assert STAGED not in schedules(matrix_product(float32), groups)
    assert STAGED in schedules(product_of_halves(), groups)
    groups = Groups(True, local_bytes=32 << 10, items=128)
    assert STAGED in schedules(matrix_product(float32), groups)


def test_small_products_are_not_staged() -> None:
    groups = Groups(True, local_bytes=32 << 10, items=128, staged_points_min=1 << 15)
    kernel, ints = matrix_product(float32), [99] * 3
    assert best(kernel, groups, ints, [128, 256]) == STAGED
    assert best(kernel, groups, ints, [128, 255]) == JAMMED


@needs_device
def test_gpus_stage_smaller_products_than_processors() -> None:
    """An eighth of a tile is enough for each compute unit; PoCL compiles a tile for seconds."""
    with opened(DEVICES[0]) as (_, backend):
        assert groups_of(backend.device).staged_points_min == 1 << 18
        gpu: Any = LimitedDevice(
            backend.device, type=cl.device_type.GPU, max_compute_units=128,
            local_mem_type=cl.device_local_mem_type.LOCAL, extensions="",
        )  # fmt: skip
        assert groups_of(gpu).staged_points_min == 1 << 16


def test_kernels_built_together_keep_their_meaning(backend: Backend) -> None:
    """They may have the same names and helpers."""
    texts = [ADD, ADD.replace("add v0, c", "mul v0, c"), ADD.replace("add v0, c", "sub v0, c")]
    sums = [reduction("add", [float32]), reduction("add", [float64])]
    kernels = [*(parse_kernel(t) for t in texts), *sums, *(parse_kernel(t) for t in 6 * texts)]
    programs = backend.compile_all(kernels)
    assert len(programs) == len(kernels) and programs[0].binary is None
    x = np.arange(10, dtype="f4")
    for program, expected in zip(programs, (x + 3, x * 3, x - 3), strict=False):
        assert np.array_equal(run(backend, program, x, np.zeros_like(x), 3.0), expected)
    assert np.array_equal(run(backend, programs[-1], x, np.zeros_like(x), 3.0), x - 3)


def test_build_error_in_a_batch_shows_the_failing_kernel(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = OpenCLStyle.store
    monkeypatch.setattr(
        OpenCLStyle, "store", lambda s, b, n, i, v: "oops;" if i == "7L" else store(s, b, n, i, v)
    )
    bad = parse_kernel(ADD.replace("out[i0]", "out[i64(7)]").replace("kernel add", "kernel seven"))
    with pytest.raises(CompileError, match=r"(?s)rejected a kernel.*kernel seven\("):
        backend.compile_all([parse_kernel(ADD), bad])


def test_dimensions_fold_a_grid_into_an_ndrange() -> None:
    assert ndrange_sizes(()) == (1,)
    assert ndrange_sizes((2, 3)) == (3, 2)
    assert ndrange_sizes((2, 3, 4, 5, 6)) == (6, 5, 24)


# --- whole programs


@needs_device
@pytest.mark.parametrize("index", range(len(DEVICES)))
def test_random_programs_keep_their_bits(index: int) -> None:
    for seed in range(500, 512):
        check_program(seed, f"opencl:{index}")


@needs_device
@pytest.mark.parametrize("index", range(len(DEVICES)))
def test_tensors_on_the_device_have_the_reference_bits(index: int) -> None:
    x = np.random.default_rng(1).standard_normal((70, 90)).astype("f4")
    results = []
    for name in ("reference", f"opencl:{index}"):
        t = from_host(x, dtype("float32"), device(name))
        y = dt.tanh(t * 2 + 1).sum(axis=1)
        results.append(y.numpy())
    assert results[0].tobytes() == results[1].tobytes()


COLUMNS: dict[str, Callable[[dt.Tensor], dt.Tensor]] = {
    "sum": lambda x: x.sum(axis=-2),
    "var": lambda x: dt.var(x, axis=-2),
    "softmax": lambda x: dt.softmax(x, axis=-2),
    "argmax": lambda x: dt.argmax(x, axis=-2),
}


@pytest.mark.parametrize("name", COLUMNS)
@needs_device
@pytest.mark.parametrize("index", range(len(DEVICES)))
def test_reductions_of_long_columns_have_the_reference_bits(index: int, name: str) -> None:
    """Groups run in lockstep: the last one starts early; chunks of rows and remaining rows."""
    for shape in (
        (GROUPED_COLUMNS_MIN, ITEM_ELEMENTS_MAX),
        (600, 100),
        (3, GROUPED_COLUMNS_MIN + 1, 100),
        (GROUPED_COLUMNS_MIN + 9, 4200),
    ):
        x = np.random.default_rng(1).standard_normal((*shape[:-2], *shape[:-3:-1])).astype("f4")
        found, expected = (
            COLUMNS[name](dt.asarray(x, device=d)) for d in (f"opencl:{index}", "reference")
        )
        assert found.numpy().tobytes() == expected.numpy().tobytes()


@needs_device
def test_float64_kernel_is_refused_without_the_capability() -> None:
    caps = replace(DEVICES[0].capabilities, float64=False)
    kernel = parse_kernel(ADD.replace("f32", "f64"))
    assert any(d is float64 for _, d in kernel.scalars)
    with pytest.raises(dt.DTypeError, match="float64"):
        legalize(kernel, caps)
