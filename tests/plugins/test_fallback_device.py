"""Devices that accept only some kernels: their companion runs the others, with the same bits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import partial_devices as partial
import pytest
from dovetail import sparse
from dovetail.commands import devices as devices_command
from dovetail.commands import doctor
from dovetail.device_class import device as named
from dovetail.dtypes import float32, int32, int64
from dovetail.engine.evaluate import counters
from dovetail.errors import CompileError, DeviceError, OutOfRangeError, PluginError
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.interval_analysis import index_intervals_or_none
from dovetail.ir.language import cast, load, reduce_loop
from dovetail.plugins.fallback_device import FallbackBackend, TouchedMemory
from dovetail.plugins.registry import open_device, registry

RNG = np.random.default_rng(11)
A = RNG.standard_normal((7, 5)).astype("f4")
B = RNG.standard_normal((5, 6)).astype("f4")
N = RNG.integers(-9, 9, (40,))
KINDS = (
    partial.Accelerator, partial.Newborn, partial.NewbornApart, partial.PartlyNetworked,
    partial.LateHost,
)  # fmt: skip


@pytest.fixture(params=KINDS, ids=lambda c: c.__name__)
def part(request: pytest.FixtureRequest) -> Iterator[dt.Device]:
    """Return a device that accepts only some kernels."""
    with partial.installed(request.param) as [dev]:
        yield dev


@pytest.fixture
def accelerator() -> Iterator[dt.Device]:
    with partial.installed(partial.Accelerator) as [dev]:
        yield dev


def seen(dev: dt.Device) -> FallbackBackend:
    """Return the core's view of a device's backend."""
    found: Any = open_device(dev).backend
    assert isinstance(found, FallbackBackend)
    return found


def same(program: Callable[[dt.Device], Any], dev: dt.Device) -> None:
    """Assert that results have the bits of the reference and stay on the device."""
    found, expected = program(dev), program(dt.device("reference"))
    pairs = zip(found, expected, strict=True) if type(found) is tuple else [(found, expected)]
    for x, y in pairs:
        assert x.device == dev and x.dtype is y.dtype and x.shape == y.shape
        assert x.numpy().tobytes() == y.numpy().tobytes()


# --- programs -------------------------------------------------------------------------------------


def reductions(dev: dt.Device) -> Any:
    x, n = dt.asarray(A, device=dev), dt.asarray(N, device=dev)
    return dt.sum(x, axis=0), dt.mean(x), dt.max(x.mT, axis=0), dt.sum(n), dt.softmax(x, axis=1)


def sorting(dev: dt.Device) -> Any:
    x, n = dt.asarray(A[::-1].copy(), device=dev), dt.asarray(N, device=dev)
    return dt.sort(x, axis=1), dt.argsort(n), dt.unique(n), dt.cumulative_sum(n)


def indexing(dev: dt.Device) -> Any:
    x, n = dt.asarray(A, device=dev), dt.asarray(N, device=dev)
    i = dt.asarray([3, -1, 0, 3], device=dev)
    y = x[i] * 2
    x[i] = 5.0
    x[1::2] += 1
    x[2, dt.asarray([True, False, True, False, True], device=dev)] = -1.0
    n[1:] = n[:-1]
    n += 1
    return y, x, n, n[::-3], dt.flip(x, axis=1)[1:3, ::2], dt.where(n > 2, n, 0)


def products(dev: dt.Device) -> Any:
    x, y = dt.asarray(A, device=dev), dt.asarray(B, device=dev)
    return dt.tanh(x @ y) + 1, (x @ y)[::2].mT, dt.einsum("ij,kj->ik", x, x)


def counting(dev: dt.Device) -> Any:
    n, x = dt.abs(dt.asarray(N, device=dev)), dt.asarray(A, device=dev)
    h = dt.zeros((12,), dtype=dt.int64, device=dev)
    tally(h, n)
    halves = dt.asarray(A, device=dev, dtype=dt.bfloat16) * 3
    sums = dt.index_add(x, 0, dt.asarray([0, 0, 6], device=dev), x[:3])
    return dt.bincount(n, minlength=12), h, halves.astype(dt.float32), sums


@dt.kernel
def tally(out: dt.InOut, n: dt.In):
    for i in dt.grid(len(n)):
        dt.atomic_add(out, n[i], 1)


def gradients(dev: dt.Device) -> Any:
    x = dt.asarray(A, device=dev).requires_grad_()
    y = dt.asarray(B, device=dev).requires_grad_()
    loss = dt.sum(dt.log(1 + dt.exp(x @ y)) * 0.5) + dt.sum(x[dt.asarray([1, 1, 2], device=dev)])
    loss.backward()
    return loss.detach(), x.grad, y.grad


def training(dev: dt.Device) -> Any:
    """Run three steps of a small network, by hand."""
    w, v = dt.asarray(B, device=dev), dt.asarray(B.T[:, :3].copy(), device=dev)
    x, labels = dt.asarray(A, device=dev), dt.asarray(np.arange(7) % 3, device=dev)
    for _ in range(3):
        w.requires_grad_(), v.requires_grad_()
        scores = dt.log_softmax(dt.maximum(x @ w, 0.0) @ v, axis=1)
        loss = -dt.mean(dt.take_along_axis(scores, labels[:, None], axis=1))
        loss.backward()
        w, v = (w - 0.1 * w.grad).detach(), (v - 0.1 * v.grad).detach()
    return loss.detach(), w, v


def sparse_products(dev: dt.Device) -> Any:
    dense = np.where(abs(A) > 0.7, A, 0).astype("f4")
    x, y = dt.asarray(dense, device=dev), dt.asarray(B, device=dev)
    coo = sparse.to_sparse(x)
    csr = coo.to_sparse_csr()
    return csr @ y, coo @ y, (csr + csr).to_dense(), csr.mT.to_dense()


PROGRAMS = (reductions, sorting, indexing, products, counting, gradients, training, sparse_products)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_program_has_the_bits_of_the_reference(
    program: Callable[[dt.Device], Any], part: dt.Device
) -> None:
    same(program, part)
    if program is products and not part.type.startswith("newborn"):
        assert seen(part).companion_launches == seen(part).copied_bytes == 0, (
            "it does all of this itself"
        )
    else:
        assert seen(part).companion_launches > 0
        assert (seen(part).copied_bytes > 0) != seen(part).shares_memory


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_program_on_its_own_stream_has_the_bits_of_the_reference(
    program: Callable[[dt.Device], Any], accelerator: dt.Device
) -> None:
    def on_stream(dev: dt.Device) -> Any:
        with dt.Stream(dev) as stream:
            found = tuple(x + x for x in program(dev))
            dt.evaluate(*found)
        stream.synchronize()
        return found

    same(on_stream, accelerator)


def test_only_the_used_memory_is_copied(accelerator: dt.Device) -> None:
    """All of it lies in a segment of 2 MiB."""
    for program in PROGRAMS:
        program(accelerator)
    assert 0 < seen(accelerator).copied_bytes < 200_000


def test_memory_shared_by_parameters_is_shared_on_the_companion(part: dt.Device) -> None:
    """Two parameters of a kernel have alternating elements; the elements in between are
    unchanged.
    """

    @dt.kernel
    def turned(a: dt.InOut, b: dt.InOut):
        for i in dt.grid(len(a)):
            a[i], b[i] = b[i] * 10, a[i] * 100

    def program(dev: dt.Device) -> Any:
        x = dt.asarray(np.arange(12), device=dev)
        turned(x[1:10:3], x[2:11:3])
        x[2:5] += x[3:6]
        x -= x[::-1]
        return x

    same(program, part)


def test_concurrent_writes_to_other_memory_are_kept(accelerator: dt.Device) -> None:
    """A kernel whose writes cannot be bounded is given only its own tensor."""

    @dt.kernel
    def scattered(out: dt.InOut, at: dt.In):
        for i in dt.grid(len(at)):
            out[at[i]] = i

    opened, late = open_device(accelerator), seen(accelerator).wrapped
    before, out, behind = (dt.zeros((64,), dtype=dt.int64, device=accelerator) for _ in range(3))
    at = dt.asarray([5, 1, 60], device=accelerator)
    dt.evaluate(before, out, behind, at)
    copy_in, sevens = late.copy_in, memoryview(np.full(64, 7, "i8")).cast("B")
    others = [x._expr.storage.ptr for x in (before, behind)]
    assert len({p.handle is others[0].handle for p in others}) == 1

    def and_others(handle: Any, offset: int, source: memoryview, stream: Any = None) -> None:
        for p in others:
            copy_in(p.handle, p.offset, sevens, stream)
        copy_in(handle, offset, source, stream)

    late.copy_in = and_others
    scattered(out, at)
    opened.backend.synchronize()
    assert before.tolist() == behind.tolist() == [7] * 64
    assert np.flatnonzero(out.numpy()).tolist() == [1, 60] and out[60].item() == 2


# --- captured functions ---------------------------------------------------------------------------


def chain(x: dt.Tensor, i: dt.Tensor) -> Any:
    y = x * 2 + 1
    z = dt.sort(y, axis=1)[i]
    for _ in range(2):
        z = (z @ x.mT @ x) * 0.25
        x = dt.tanh(x) + dt.sum(z)
    return z, x, dt.fori_loop(0, 3, lambda k, c: c + k * dt.max(x), dt.zeros_like(x))


def test_captured_functions_are_replayed(part: dt.Device) -> None:
    captured = dt.jit(chain)
    for seed in range(4):
        x = np.random.default_rng(seed).standard_normal((7, 5)).astype("f4")

        def program(dev: dt.Device, x: Any = x) -> Any:
            f = captured if dev == part else chain
            return f(dt.asarray(x, device=dev), dt.asarray([2, 0, -1], device=dev))

        before = counters.evaluations, seen(part).companion_launches
        same(program, part)
    assert seen(part).companion_launches > before[1]
    assert dt.explain(captured).captures[0].launches


def test_captured_function_still_checks_its_indices(part: dt.Device) -> None:
    captured = dt.jit(chain)
    x, i = dt.asarray(A, device=part), dt.asarray([2, 0], device=part)
    captured(x, i), captured(x, i)
    with pytest.raises(OutOfRangeError, match="77 is out of range for axis 0 of size 7"):
        dt.evaluate(*captured(x, dt.asarray([2, 77], device=part)))


def test_captured_function_is_saved_to_a_file(part: dt.Device, tmp_path: Path) -> None:
    captured = dt.jit(lambda x: (dt.cumulative_sum(x * 2, axis=1), dt.softmax(x @ x.mT)))
    args = (dt.asarray(A, device=part),)
    expected = captured(*args)
    dt.save_function(captured, tmp_path / "f")
    found = dt.load_function(tmp_path / "f", device=part)(*args)
    for x, y in zip(found, expected, strict=True):
        assert x.numpy().tobytes() == y.numpy().tobytes()


# --- indices, routines, raw kernels ---------------------------------------------------------------


def test_bad_indices_raise(part: dt.Device) -> None:
    x = dt.asarray(A, device=part)
    for _ in range(3):
        with pytest.raises(OutOfRangeError, match="-8 is out of range for axis 0 of size 7"):
            x[dt.asarray([0, -8], device=part)].numpy()
    with pytest.raises(OutOfRangeError):
        x[dt.asarray([9], device=part)] = 1.0
        dt.synchronize(part)
    assert x.numpy().tobytes() == A.tobytes()


def test_vendor_routines_get_the_backend_itself() -> None:
    with partial.installed(partial.WithVendor) as [dev]:
        own: Any = seen(dev).wrapped
        x = dt.asarray(A, device=dev)
        captured = dt.jit(lambda x: (x * 2) @ x.mT + 1)
        for f in (captured, captured.__wrapped__):
            np.testing.assert_allclose(f(x).numpy(), (A * 2) @ A.T + 1, rtol=1e-5)
        assert own.called >= 2 and seen(dev).companion_launches >= 4


def test_raw_kernels_run_on_the_device_itself(accelerator: dt.Device) -> None:
    text = "def put(out, n, c): out[:n] = c"
    put = dt.raw_kernel(text, "accelerator", "put(out: rw int64, n: int64, c: int64)")
    x = dt.asarray(N, device=accelerator) + 1
    dt.evaluate(x)
    before = seen(accelerator).companion_launches
    put(x, 3, 8)
    assert seen(accelerator).companion_launches == before
    assert (x + 1)[:5].tolist() == [9, 9, 9, N[3] + 2, N[4] + 2]


# --- decisions and their time --------------------------------------------------------------------


def test_backend_is_asked_once_per_kernel() -> None:
    asked: list[str] = []

    class Asked(partial.NewbornApart):
        def accepts(self, kernel: Kernel) -> bool:
            asked.append(str(kernel))
            return False

    Asked.plugin.type, partial.Asked = "asked", Asked  # type: ignore[attr-defined]  # as a module's
    Asked.__module__, Asked.__name__ = "partial_devices", "Asked"
    with partial.installed(Asked) as [dev]:
        x = dt.asarray(A, device=dev)
        dt.explain(x * 2 + 1)
        for k in range(4):
            (x * 2 + k).numpy()
        count = len(asked)
        for k in range(4):
            (x * 2 + k).numpy()
        dt.explain(x * 2 + 1)
        assert len(asked) == count == len({*asked})
    del partial.Asked  # type: ignore[attr-defined]


def test_devices_without_a_companion_are_unwrapped() -> None:
    backend = open_device("reference").backend
    assert type(backend).__name__ == "ReferenceBackend"
    with partial.installed(partial.Networked) as [dev]:
        assert type(open_device(dev).backend) is partial.Networked
        assert open_device(dev).backend.info.companion is None


def test_companion_may_have_a_companion() -> None:
    with partial.installed(partial.NewbornApart, partial.Chained) as [inner, outer]:
        same(sorting, outer)
        assert seen(outer).companion_launches == seen(inner).companion_launches > 0


def test_cpu_companion_has_the_bits_of_the_reference() -> None:
    with partial.installed(partial.NewbornOnCpu) as [dev]:
        for program in PROGRAMS:
            same(program, dev)
        assert seen(dev).copied_bytes == 0 < seen(dev).companion_launches


def test_threads_may_use_the_companion(part: dt.Device) -> None:
    """Each with tensors of its own, in one segment."""
    wrong: list[object] = []

    def work(seed: int) -> None:
        n = np.random.default_rng(seed).integers(0, 99, (50,))
        for _ in range(20):
            if dt.sort(dt.asarray(n, device=part)).tolist() != sorted(n.tolist()):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# --- errors ---------------------------------------------------------------------------------------


def test_missing_companion_raises_with_kernel_device_and_remedy() -> None:
    with partial.installed(partial.Alone) as [dev]:
        x = dt.asarray(A, device=dev)
        assert (x * 2).numpy().tobytes() == (A * 2).tobytes()
        said = "alone does not accept the kernel sort.*has no companion.*companion=.*x.to"
        with pytest.raises(CompileError, match=said) as caught:
            dt.evaluate(dt.sort(x))
        assert "kernel sort" in str(caught.value)
        why = dt.explain(dt.sort(x))
        assert {step.origin for step in why.launches} == {"accepted by no device"}
        assert {step.companion for step in why.launches} == {""}


@pytest.mark.parametrize(
    ("backends", "said"),
    [
        ((partial.Narcissus,), "its own companion: narcissus -> narcissus"),
        ((partial.Hen, partial.Egg), "its own companion: hen -> egg -> hen"),
        ((partial.Widowed,), "widowed names 'nowhere'.*no backend for \"nowhere\""),
        ((partial.Mumbling,), "mumbling names 7.*the name of a device"),
    ],
)
def test_unavailable_companion_raises(backends: tuple[Any, ...], said: str) -> None:
    with partial.installed(*backends) as [dev, *_]:
        with pytest.raises(PluginError, match=said):
            dt.ones(3, device=dev).sum().item()
        assert registry.records()[dev.type].state.value == "open failed"


def test_missing_device_index_of_an_accelerator_raises() -> None:
    with partial.installed(partial.Accelerator) as [dev]:
        other = f"{dev}:4"
        with pytest.raises(DeviceError, match="no device "):
            open_device(named(other))


def test_invalid_result_of_accepts_is_named() -> None:
    said = r"evasive: accepts\(.*\) must return True or False, got None"
    with partial.installed(partial.Evasive) as [dev], pytest.raises(PluginError, match=said):
        dt.evaluate(dt.ones(3, device=dev) * 2)


# --- explain and profile -------------------------------------------------------------------------


def test_explain_names_the_companion_and_the_copies(accelerator: dt.Device) -> None:
    x = dt.asarray(A, device=accelerator)
    y = dt.sum(dt.tanh(x) @ x.mT, axis=0)
    why = dt.explain(y)
    doers = [step.companion for step in why.launches]
    assert {*doers} == {"", "reference"} and {step.device for step in why.launches} == {
        "accelerator"
    }
    before = seen(accelerator).copied_bytes
    dt.evaluate(y)
    copied = seen(accelerator).copied_bytes - before
    assert 0 < why.copied == sum(step.copied for step in why.launches) == copied
    text = why.text()
    assert "on reference for accelerator" in text
    assert "accelerator does not accept it: " in text and "copied to reference and back" in text
    assert "by a companion" in str(why).splitlines()[0] and "reference" in why.html()
    assert "on reference" in why.svg()
    captured = dt.jit(lambda x: dt.sort(x * 2, axis=1))
    captured(x), captured(x)
    assert "reference for accelerator" in dt.explain(captured).text()


def test_explain_of_shared_memory_has_no_copies() -> None:
    with partial.installed(partial.Newborn) as [dev]:
        why = dt.explain(dt.asarray(A, device=dev) * 2)
        assert why.copied == 0 and "reference works on its memory" in why.text()


def test_explain_without_a_companion_does_not_mention_one() -> None:
    assert "companion" not in dt.explain(dt.asarray(A, device="reference") * 2).text()


def test_profile_counts_launches_and_copies(accelerator: dt.Device) -> None:
    x = dt.asarray(N, device=accelerator)
    dt.evaluate(x * 2)
    backend = seen(accelerator)
    before = backend.companion_launches, backend.copied_bytes
    with dt.profile() as p:
        for k in range(3):
            dt.evaluate(x * (k + 2))
    lines = {line.name: line for line in p.lines()}
    there, back = lines["copy to reference"], lines["copy from reference"]
    assert there.count == back.count == backend.companion_launches - before[0] == 3
    assert there.nbytes + back.nbytes == backend.copied_bytes - before[1] > 0
    assert sum(n.count for name, n in lines.items() if name.startswith("companion ")) == 3
    assert "copy to reference" in p.summary()


def test_commands_show_the_companion(
    accelerator: dt.Device, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    devices_command.main([])
    assert "companion reference" in capsys.readouterr().out.replace("\n", " ")
    assert "companion reference" in dt.devices()._repr_html_()
    found = doctor.inspect_plugin("accelerator")
    assert found.devices[0].endswith(", companion reference") and not found.complaints
    with partial.installed(partial.Newborn):
        assert doctor.inspect_plugin("newborn").kernel.endswith(" on reference")
    assert not found.kernel.endswith(" on reference") and found.kernel


# --- the memory of a launch ----------------------------------------------------------------------


def summed_rows() -> Kernel:
    """Sum as many elements of each row as a buffer says; store where another says, and in order."""
    b = KernelBuilder("summed_rows")
    x, ends, at = (b.buffer(n, d, "r") for n, d in (("x", float32), ("ends", int32), ("at", int64)))
    out, last = b.buffer("out", float32, "w"), b.buffer("last", float32, "rw")
    i = b.axis(b.int("n"))
    end = cast(load(ends, i), int64)
    (total,) = reduce_loop("add", 0, end, lambda k: load(x, k))
    b.store(out, load(at, i), total)
    b.store(last, i + 2, total)
    return b.build()


def test_reach_of_each_buffer() -> None:
    found = index_intervals_or_none(summed_rows(), [6], [6])
    assert found == {
        "x": (0, (1 << 31) - 2), "ends": (0, 5), "at": (0, 5), "out": None, "last": (2, 7),
    }  # fmt: skip
    assert index_intervals_or_none(summed_rows(), [0], [0]) == {}


def test_copied_ranges_are_bounded_by_blocks_and_merged() -> None:
    touched = TouchedMemory(summed_rows(), [6], [6])
    places = [("m", 4096), ("m", 512), ("m", 1024), ("m", 2048), ("other", 100)]
    extents = [(4096, 4608), (512, 1024), (1024, 1536), (2048, 2560), (0, 1000)]
    found = {p.buffers: p for _, p in touched.pieces(places, extents)}
    assert found[0,].span == (4096, 4608) and found[0,].written == ()
    assert found[1,].span == (512, 536) and found[2,].span == (1024, 1072)
    assert found[3,].span == (2048, 2560) and found[3,].written == ((2048, 2560),)
    assert found[4,].span == (64, 132) and found[4,].written == ((108, 132),)
    assert found[4,].nbytes == 68 + 24
    # from 1072 on: next to it, and behind its base
    places[4], extents[4] = ("m", 1064), (1024, 1536)
    places[1], extents[1] = ("m", 2064), (2048, 2560)
    found = {p.buffers: p for _, p in touched.pieces(places, extents)}
    assert {*found} == {(0,), (2, 4), (1, 3)}
    assert found[2, 4].span == (1024, 1096) and found[2, 4].written == ((1072, 1096),)


@pytest.mark.parametrize("grid", [(), (7, 100)])
@pytest.mark.parametrize("alignment", [256, 512, 1024, 4096, 65536])
def test_rounded_offsets_stay_in_their_block(
    alignment: int, grid: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    can = replace(partial.OF_REFERENCE, offset_alignment=alignment, max_grid=grid)
    monkeypatch.setattr(partial.Rounding, "capabilities", can)

    def program(dev: dt.Device) -> Any:
        kept = [dt.asarray(np.arange(k, k + 300, dtype="f4"), device=dev) for k in range(9)]
        places = dt.asarray(np.array([5, 0, 299]), device=dev)
        found = [dt.take(x, places) + x[3:6] for x in kept]  # the range depends on data
        found += [x[7:].sum() * 2 for x in kept]
        kept[4][places] = -1.0
        return (*found, *kept, dt.nonzero(kept[3] > 150)[0])

    with partial.installed(partial.Rounding) as [dev]:
        same(program, dev)
