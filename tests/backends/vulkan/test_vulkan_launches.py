"""Launches of Vulkan devices: arguments, groups, batches, streams, and errors that come late."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dovetail_vulkan", reason="dovetail-vulkan is not installed")

import dovetail as dt
from dovetail.extend import DeviceError
from dovetail.testing.programs import check as check_program
from dovetail_vulkan import loader, plugin
from dovetail_vulkan.schedule import GROUPS_MAX
from dovetail_vulkan.stream import ARGUMENT_BYTES, BATCH_LAUNCHES_MAX
from dovetail_vulkan.vulkan import VulkanError
from vulkan_devices import ADD, DEVICES, NAMES, REASON, compile_text, opened, read_floats

pytestmark = pytest.mark.skipif(not DEVICES, reason=REASON)

SCALARS = """kernel scalars(out: w f64; n; a: i8, b: u16, c: b8, d: f32, e: i64) grid(n) {
  v0: f64 = cast a
  v1: f64 = cast b
  v2: f64 = cast c
  v3: f64 = cast d
  v4: f64 = cast e
  store out[i64(0)] = v0
  store out[i64(1)] = v1
  store out[i64(2)] = v2
  store out[i64(3)] = v3
  store out[i64(4)] = v4
}"""


@pytest.fixture(params=DEVICES, ids=NAMES)
def backend(request: Any) -> Iterator[Any]:
    with opened(request.param) as (_, found):
        yield found


def test_bound_launch_reads_new_buffers_offsets_and_scalars(backend: Any) -> None:
    launch = backend.bind(compile_text(backend, ADD), [5], [5])
    x = np.arange(10, dtype="f4")
    source, target = backend.allocate(40), backend.allocate(40)
    backend.copy_in(source, 0, memoryview(x).cast("B"))
    for first, c in ((0, 1.0), (5, -2), (5, 0.5)):
        launch((source, 4 * first, target, 4 * first), [c], None)
        out = read_floats(backend, target, 10)[first : first + 5]
        assert np.array_equal(out, x[first : first + 5] + np.float32(c))


def test_batch_binds_a_pipeline_again_only_after_another(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipelines, call = list[int](), backend.device.functions
    bind = call.CmdBindPipeline
    monkeypatch.setattr(
        call,
        "CmdBindPipeline",
        lambda *a: (pipelines.append(a[2].value), bind(*a)),
        raising=False,
    )
    add = backend.bind(compile_text(backend, ADD), [1], [1])
    twice = backend.bind(compile_text(backend, ADD.replace("v0, c", "v0, v0")), [1], [1])
    x = np.ones(1, "f4")
    handle = backend.allocate(4)
    for expected in (28, 136):
        backend.copy_in(handle, 0, memoryview(x).cast("B"))
        for launch in (add, add, twice, add, add, twice):
            launch((handle, 0, handle, 0), [2.0], None)
        x = read_floats(backend, handle, 1)
        assert x.tolist() == [expected]
    assert len(pipelines) == 8 and len(set(pipelines)) == 2


def test_scalars_wrap_and_overflow_as_their_dtypes_do(backend: Any) -> None:
    if not backend.info.capabilities.float64:
        pytest.skip("this device has no float64")
    program, out, got = compile_text(backend, SCALARS), backend.allocate(40), np.zeros(5)
    for given, expected in (
        ((-3, 7, True, 1e300, 1 << 62), [-3, 7, 1, np.inf, 2.0**62]),
        ((300, -1, 2.5, -1e-300, (1 << 64) + 5), [44, 65535, 1, 0, 5]),
    ):
        backend.launch(program, (out, 0), [1], given, [1])
        backend.copy_out(memoryview(got).cast("B"), out, 0)
        assert got.tolist() == expected


def test_many_buffers_are_passed_in_memory(backend: Any) -> None:
    """More addresses than push constants hold, in more launches than memory for arguments holds."""
    count = 40
    names = [f"x{i}" for i in range(count)]
    lines = [f"  v{i}: f32 = load {n}[i0]" for i, n in enumerate(names)]
    lines += [
        f"  v{count + i}: f32 = add v{count + i - 1 if i else 0}, v{i + 1}"
        for i in range(count - 1)
    ]
    parameters = ", ".join(f"{n}: r f32" for n in names)
    text = "\n".join(
        [f"kernel many({parameters}, out: w f32; n; ) grid(n) {{", *lines,
         f"  store out[i0] = v{2 * count - 2}", "}"]
    )  # fmt: skip
    program = compile_text(backend, text)
    assert program.module.arguments_in_buffer
    handle = backend.allocate(4 * (count + 1))
    backend.copy_in(handle, 0, memoryview(np.arange(count + 1, dtype="f4")).cast("B"))
    places = [v for i in range(count + 1) for v in (handle, 4 * i)]
    launch = backend.bind(program, [1], [1])
    for _ in range(2 * ARGUMENT_BYTES // (8 * count)):
        launch(tuple(places), (), None)
    assert read_floats(backend, handle, count + 1)[count] == sum(range(count))


@pytest.mark.parametrize("shape", [(3, 5), (100, 8), (1, 1), (70, 2, 3), (2, 200_000)])
def test_each_point_of_a_grid_is_computed_once(backend: Any, shape: tuple[int, ...]) -> None:
    axes = len(shape)
    index = "v0: i64 = mul i0, i64(0)\n"
    for axis in range(axes):
        a, b = f"v{2 * axis}", f"v{2 * axis + 1}"
        index += f"  {b}: i64 = mul {a}, n{axis}\n  v{2 * axis + 2}: i64 = add {b}, i{axis}\n"
    sizes = ", ".join(f"n{a}" for a in range(axes))
    text = (
        f"kernel count(out: rw i32; {sizes}; ) grid({sizes}) {{\n  {index}"
        f"  atomic add out[v{2 * axes}] = i32(1)\n}}"
    )
    program, size = compile_text(backend, text), int(np.prod(shape))
    out, got = backend.allocate(4 * size), np.zeros(size, "i4")
    backend.copy_in(out, 0, memoryview(got).cast("B"))
    backend.launch(program, (out, 0), shape, [], shape)
    backend.copy_out(memoryview(got).cast("B"), out, 0)
    assert np.array_equal(got, np.ones(size))


@pytest.mark.parametrize("shape", [(GROUPS_MAX * 64 + 100,), (GROUPS_MAX + 5, 9), (70, 2, 3, 5)])
def test_grid_beyond_a_dispatch_is_computed(shape: tuple[int, ...]) -> None:
    """A grid of more groups than devices promise, or of more axes."""
    with opened(DEVICES[0]) as (device, _):
        x = dt.ones(shape, device=device)
        y = (x[..., ::-1] + x * 2).numpy()
        assert y.shape == shape and (y == 3).all()


# --- batches and streams


def test_launches_are_submitted_together_up_to_a_limit(backend: Any) -> None:
    launch, handle = backend.bind(compile_text(backend, ADD), [1], [1]), backend.allocate(4)
    backend.copy_in(handle, 0, memoryview(bytes(4)))
    before = backend.stream.submitted
    for _ in range(2 * BATCH_LAUNCHES_MAX + 5):
        launch((handle, 0, handle, 0), [1.0], None)
    assert backend.stream.submitted == before + 2
    assert read_floats(backend, handle, 1)[0] == 2 * BATCH_LAUNCHES_MAX + 5
    assert backend.stream.submitted == before + 3


@pytest.mark.parametrize("name", ["PipelineBarrier", "BindPipeline", "PushConstants", "Dispatch"])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_finalizer_that_launches_and_reads_amid_a_recording_divides_no_launch(
    backend: Any, name: str, late: bool, monkeypatch: Any
) -> None:
    launch, handle = backend.bind(compile_text(backend, ADD), [1], [1]), backend.allocate(4)
    backend.copy_in(handle, 0, memoryview(bytes(4)))
    call, reads, count = backend.stream.call, [], 0
    original = getattr(call, f"Cmd{name}")

    def collect_garbage() -> None:
        """Launch and read, as a finalizer may whenever Python runs its garbage collection."""
        nonlocal count
        monkeypatch.setattr(call, f"Cmd{name}", original)
        for _ in range(3):
            launch((handle, 0, handle, 0), [1.0], None)
            count += 1
            reads.append(float(read_floats(backend, handle, 1)[0]))

    def record(*arguments: Any) -> None:
        if late:
            original(*arguments)
            collect_garbage()
        else:
            collect_garbage()
            original(*arguments)

    for _ in range(3):
        launch((handle, 0, handle, 0), [1.0], None)
        count += 1
    monkeypatch.setattr(call, f"Cmd{name}", record)
    backend.record_event(None)
    for _ in range(3):
        count += 1
        launch((handle, 0, handle, 0), [1.0], None)
    assert read_floats(backend, handle, 1)[0] == count == 9 and reads == [7, 8, 9]
    monkeypatch.setattr(call, f"Cmd{name}", original)
    launch((handle, 0, handle, 0), [1.0], None)
    assert read_floats(backend, handle, 1)[0] == 10


def test_stream_without_work_waits_for_an_event(backend: Any) -> None:
    one, two = backend.create_stream(), backend.create_stream()
    launch = backend.bind(compile_text(backend, ADD), [100_000], [100_000])
    handle = backend.allocate(400_000)
    backend.copy_in(handle, 0, memoryview(bytes(400_000)))
    for _ in range(30):
        launch((handle, 0, handle, 0), [1.0], one)
    backend.wait_event(two, backend.record_event(one))
    assert np.array_equal(read_floats(backend, handle, 100_000, two), np.full(100_000, 30, "f4"))


def test_events_measure_work_and_their_queries_are_used_again(backend: Any) -> None:
    stream, handle = backend.create_stream(), backend.allocate(4 << 20)
    launch = backend.bind(compile_text(backend, ADD), [1 << 20], [1 << 20])
    start = backend.record_event(stream)
    launch((handle, 0, handle, 0), [1.0], stream)
    end = backend.record_event(stream)
    assert 0 < backend.elapsed_ms(start, end) < 60_000 and backend.event_done(end)
    free = len(stream._queries)
    del start, end
    backend.synchronize(stream)
    assert len(stream._queries) == free + 2


def test_time_between_events_survives_the_end_of_the_clock(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timestamps of Intel's GPUs have 36 bits, which are used up after an hour."""
    start, end = backend.record_event(None), backend.record_event(None)
    ticks = {start: (1 << 36) - 1000, end: 500}
    monkeypatch.setattr(type(start), "read_ticks", lambda event: ticks[event])
    monkeypatch.setattr(backend.device.physical, "timestamp_bits", 36)
    tick_ms = backend.device.physical.tick_ns / 1e6
    assert backend.elapsed_ms(start, end) == pytest.approx(1500 * tick_ms)
    assert backend.elapsed_ms(end, start) == pytest.approx(-1500 * tick_ms)


def test_threads_launch_on_one_stream(backend: Any) -> None:
    launch, handle = backend.bind(compile_text(backend, ADD), [1], [1]), backend.allocate(4)
    backend.copy_in(handle, 0, memoryview(bytes(4)))

    def work() -> None:
        for _ in range(500):
            launch((handle, 0, handle, 0), [1.0], None)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_floats(backend, handle, 1)[0] == 2000


# --- late errors


def test_lost_device_is_reported_with_its_unfinished_kernels(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = backend.allocate(4)
    backend.launch(compile_text(backend, ADD), (handle, 0, handle, 0), [1], [1.0], [1])

    wait = backend.device.functions.WaitSemaphores

    def lose(*arguments: Any) -> None:
        wait(*arguments)
        raise VulkanError("vulkan: vkWaitSemaphores failed: VK_ERROR_DEVICE_LOST", -4)

    with monkeypatch.context() as m:
        m.setattr(backend.device.functions, "WaitSemaphores", lose, raising=False)
        with pytest.raises(DeviceError, match=r"DEVICE_LOST.*kernels: add\b.*restart"):
            backend.synchronize()
        backend.free(handle, 4)  # raises nothing
    backend.synchronize()


# --- what devices lack


def test_long_loops_are_not_cut_short(backend: Any) -> None:
    """Mesa's driver for the CPU ends loops after 65,535 iterations, in silence."""

    @dt.kernel
    def horner(out: dt.Out, x: dt.In) -> None:
        for i in dt.grid(out.shape[0]):
            total = x[0]
            for j in range(x.shape[0]):
                total = total * 3 + x[j]
            out[i] = total

    results = []
    for name in (DEVICES[0].type, "reference"):
        x = dt.arange(70_000, dtype=dt.int64, device=name)
        out = dt.zeros(2, dtype=dt.int64, device=name)
        horner(out, x)
        results.append(out.tolist())
    assert results[0] == results[1] and results[0][0] != 0


WIDE = frozenset(("shaderInt64", "shaderFloat64", "shaderBufferInt64Atomics"))
NARROW_MEMORY = frozenset(("storageBuffer8BitAccess", "storageBuffer16BitAccess"))
NARROW = NARROW_MEMORY | {"shaderInt8", "shaderInt16"}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lacking", [WIDE, NARROW_MEMORY, WIDE | NARROW_MEMORY, WIDE | NARROW])
def test_device_with_fewer_features_gives_the_same_bits(
    seed: int, lacking: frozenset[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    physical = loader.instance().devices()[0]
    physical.features -= lacking
    monkeypatch.setattr(plugin, "usable_devices", lambda devices: [physical])
    with opened(plugin.describe(physical, 0)) as (device, found):
        assert found.info.capabilities.int64 == ("shaderInt64" not in lacking)
        check_program(seed, str(device))
