"""Devices with limits get only what these allow, and have the reference's bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dovetail as dt
import float_devices
import limited
import numpy as np
import partial_devices
import pytest
from dovetail.backend import limits
from dovetail.backend.limits import grid_parts
from dovetail.backend.reference import interpret
from dovetail.device_class import Device
from dovetail.dtypes import float32, int32, int64
from dovetail.engine.events import counters
from dovetail.engine.programs import get_program
from dovetail.errors import ArgumentError, DeviceError, DTypeError, LayoutError, OutOfMemoryError
from dovetail.functions.reductions import order_statistics
from dovetail.ir.analysis import values
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.language import cast, const, load
from dovetail.ir.legalize import legalize
from dovetail.ir.parser import parse_kernel
from dovetail.ir.target import BUFFER_BYTES_MIN, BUFFERS_MIN, Capabilities
from dovetail.ir.verify import find_violation, verify
from random_programs import check

Program = Callable[[Device], list[dt.Tensor]]


@pytest.fixture(params=limited.LIMITED, ids=lambda c: c.__name__)
def limited_device(request: pytest.FixtureRequest) -> Device:
    """Return a device with limits."""
    return request.param.device()  # type: ignore[no-any-return]


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def agree(program: Program, device: Device) -> None:
    """Assert that a program has the same bits on the device as on the reference."""
    found = [x.numpy() for x in program(device)]
    expected = [x.numpy() for x in program(dt.device("reference"))]
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def many_tensors(device: Device, count: int = 40) -> list[dt.Tensor]:
    return [dt.asarray(numbers(5, 7, seed=k), device=device) for k in range(count)]


def sum_of_many(device: Device) -> list[dt.Tensor]:
    total, *rest = many_tensors(device)
    for x in rest:
        total = total + x
    return [total]


def sum_as_a_tree(device: Device) -> list[dt.Tensor]:
    xs = many_tensors(device)
    while len(xs) > 1:
        xs = [a * b + a for a, b in zip(xs[::2], xs[1::2], strict=False)] + xs[len(xs) & ~1 :]
    return xs


def many_results(device: Device) -> list[dt.Tensor]:
    found = [x * 2 + k for k, x in enumerate(many_tensors(device))]
    dt.evaluate(*found)
    return found


def many_reductions(device: Device) -> list[dt.Tensor]:
    found = [
        dt.sum(x * y, axis=1)
        for x, y in zip(many_tensors(device), many_tensors(device)[1:], strict=False)
    ]
    dt.evaluate(*found)
    return found


def reduction_of_many(device: Device) -> list[dt.Tensor]:
    return [dt.sum(sum_of_many(device)[0], axis=0), dt.argmax(sum_of_many(device)[0])]


def chunks_of_many(device: Device) -> list[dt.Tensor]:
    """Return reductions of few, long rows, which are split into chunks."""
    xs = [dt.asarray(numbers(70_000, seed=k), device=device) for k in range(12)]
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return [dt.sum(total), dt.argmax(total)]


def concatenated(device: Device) -> list[dt.Tensor]:
    xs = many_tensors(device)
    return [dt.concat(xs), dt.stack(xs, axis=1), dt.concat(xs[:4]) * 2, dt.stack(xs[:4]) + 1]


def concatenated_while_pending(device: Device) -> list[dt.Tensor]:
    xs = many_tensors(device)
    parts = [xs[k] + xs[k + 1] * xs[k + 2] for k in range(0, 36, 3)]
    return [dt.concat(parts[:4]) + 1, dt.concat(parts), dt.concat([p * 2 for p in parts[:3]])]


def shifted_slices(device: Device) -> list[dt.Tensor]:
    """Return forty slices of one memory: of a leaf, and of a computed value."""
    x = dt.asarray(numbers(100), device=device)
    y = dt.exp(x)
    held = y + 0
    total = x[0:60] + held[0:60]
    for k in range(1, 40):
        total = total + x[k : k + 60] * held[k : k + 60]
    return [total, held]


def in_place(device: Device) -> list[dt.Tensor]:
    xs = many_tensors(device)
    x = xs[0]
    x += sum(xs[1:], start=xs[1])
    x[1:3] += sum(xs[4:], start=xs[5])[:2]
    x[::2] = xs[3][::2] * sum(xs[4:], start=xs[5])[::2]
    return [x]


def indexed(device: Device) -> list[dt.Tensor]:
    x = dt.asarray(numbers(6, 5, 4), device=device)
    i, j, k = (dt.asarray(np.arange(9) % n, device=device) for n in (6, 5, 4))
    return [x[i, j], x[i, j, k], x[i, j] + x[j, k], x[i] * x[j] * x[k] + x[i, j, k][:, None, None]]


def gradients(device: Device) -> list[dt.Tensor]:
    xs = [x.requires_grad_() for x in many_tensors(device, 12)]
    total = xs[0]
    for x in xs[1:]:
        total = dt.tanh(total * x + x)
    dt.sum(total * dt.sum(total, axis=0)).backward()
    found = [x.grad for x in xs]
    return [g for g in found if g is not None]


def examples(device: Device) -> list[dt.Tensor]:
    """Return vmapped results, stacked."""
    x = dt.asarray(numbers(20, 3, 3), device=device)
    count = dt.vmap(lambda a: dt.histogram(a, bins=4, range=(-2, 2))[0])
    return [dt.vmap(dt.sort)(x), count(x)]


def sparse(device: Device) -> list[dt.Tensor]:
    a = numbers(9, 8)
    a[np.abs(a) < 0.8] = 0
    x, y = dt.asarray(a, device=device), dt.asarray(numbers(8, 3), device=device)
    csr = x.to_sparse_csr()
    return [
        csr @ y,
        (x.to_sparse() + x.T.contiguous().T.to_sparse()).to_dense(),
        (csr * 2).values(),
    ]


def several_ops(device: Device) -> list[dt.Tensor]:
    x, y = (dt.asarray(numbers(40, 30, seed=k), device=device) for k in (1, 2))
    return [
        dt.sort(x), dt.argsort(x, axis=0), x @ y.T, dt.cumulative_sum(x, axis=1),
        dt.softmax(x, axis=1), dt.var(x, axis=0), dt.fft.fft(x),
        dt.linalg.inv(x[:30] @ y[:30].T), dt.topk(x, 3)[0], dt.unique(dt.round(x)), x // y,
        (x * 9).astype(dt.int32) % 7,
    ]  # fmt: skip


def doubles(device: Device) -> list[dt.Tensor]:
    """Return results that are computed or stored in float64."""
    x = dt.asarray(numbers(40, 30).astype("f8"), device=device)
    return [
        dt.median(x), dt.exp(x), dt.exp2(x * 90), dt.sort(x, axis=1), dt.nextafter(x, -x),
        dt.frexp(x)[1], x.astype(dt.int64), x.astype(dt.float16), dt.sum(x), dt.pow(abs(x), 2.5),
        *shifted(device, "c16"), dt.median(x.astype(dt.float32)),
    ]  # fmt: skip


def odd_offsets(device: Device) -> list[dt.Tensor]:
    """Read and write slices that start at odd offsets."""
    return [x for dtype in ("f4", "i1", "i8", "f2", "c8", "?") for x in shifted(device, dtype)]


def shifted(device: Device, dtype: str) -> list[dt.Tensor]:
    x = dt.asarray((numbers(300) * 50).astype(dtype), device=device)
    y = dt.asarray((numbers(300, seed=1) * 50).astype(dtype), device=device)
    for k in (1, 3, 64, 77):
        x[k : k + 100] = y[k + 5 : k + 105]
        if dtype != "?":
            x[k + 2 : 290 : 3] += y[k : k + len(range(k + 2, 290, 3))]
        x[5] = y[k]
    return [x, x[13:].copy(), dt.concat([x[7:9], y[9:11]])]


def large_grids(device: Device) -> list[dt.Tensor]:
    x = dt.asarray(numbers(321, 203), device=device)
    y = dt.asarray(numbers(2, 3, 4, 5, 6, 7), device=device)
    turned = y.permute((5, 3, 1, 0, 2, 4))
    return [
        x * 2, dt.sum(x, axis=0), dt.sum(x, axis=1), dt.argmax(x, axis=1), dt.sum(x),
        turned + turned[::-1], dt.sum(turned, axis=(1, 3)), turned.copy(), x.T.copy() @ x,
        dt.cumulative_sum(x, axis=0),
    ]  # fmt: skip


def counted(device: Device) -> list[dt.Tensor]:
    """Count with atomics, and with added rows."""
    x = dt.asarray(np.random.default_rng(3).integers(0, 30, 5000), device=device)
    rows = dt.zeros((30, 4), dtype=dt.int32, device=device)
    rows.index_add_(0, x, dt.ones((5000, 4), dtype=dt.int32, device=device))
    at = dt.zeros(30, device=device)
    at[x[:30]] = dt.asarray(numbers(30), device=device)
    return [dt.bincount(x), rows, dt.unique(x), at]


def captured(device: Device) -> list[dt.Tensor]:
    """Replay on other memory than at the capture."""

    @dt.jit
    def step(a: dt.Tensor, b: dt.Tensor) -> dt.Tensor:
        b += a * 2
        return dt.sum(a * b, axis=1) + a[:, 0]

    x = dt.asarray(numbers(90, 30), device=device)
    y = dt.asarray(numbers(90, 30, seed=1), device=device)
    return [step(x[k : k + 20], y[2 * k : 2 * k + 20]) for k in range(7)] + [y]


def custom_kernels(device: Device) -> list[dt.Tensor]:
    @dt.kernel
    def blend(out: dt.Out, x: dt.In, scale: float) -> None:
        for i, j in dt.grid(out.shape[0], out.shape[1]):
            out[i, j] = scale * x[i, j] + sum(x[i, k] for k in range(x.shape[1]))

    x = dt.asarray(numbers(40, 33), device=device)
    out = dt.zeros((50, 150), device=device)
    blend(out[3:43, 101:134], x, 0.5)
    blend(out[3:43, 7:37], x[:, 3:], 2.0)
    return [out]


def random_samples(device: Device) -> list[dt.Tensor]:
    with device:
        rng = dt.random.default_rng(3)
        return [rng.normal((37, 40)), rng.uniform((37, 40))]


def places(device: Device) -> list[dt.Tensor]:
    """Use indices as data, data as indices, and 64-bit numbers."""
    with device:
        x = dt.asarray(numbers(60, 50), device=device)
        far = dt.arange(5_000_000_000, 5_000_000_060)
        at = dt.argmax(x, axis=1)
        return [
            dt.arange(50) * 123_456_789_012, at, at * 10**12 + far, dt.roll(x, 7),
            dt.take_along_axis(x, at[:, None], 1), dt.cumulative_sum(at * 10**10), dt.argsort(at),
            x[dt.argsort(at)] + 1, dt.nonzero(x > 1)[0], dt.searchsorted(far, far[::7] + 1),
            x[(far % 60)] * 2, dt.tril(x, k=3),
        ]  # fmt: skip


PROGRAMS: tuple[Program, ...] = (
    sum_of_many, sum_as_a_tree, many_results, many_reductions, reduction_of_many, chunks_of_many,
    concatenated, concatenated_while_pending, shifted_slices, in_place, indexed, gradients,
    examples, sparse,
    several_ops, odd_offsets, large_grids, counted, captured, custom_kernels, random_samples,
    places, doubles,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_limited_device_has_the_reference_bits(limited_device: Device, program: Program) -> None:
    assert limited_device.opened is not None
    if program is doubles and not limited_device.opened.backend.info.capabilities.float64:
        with pytest.raises(DTypeError, match=r"has no (float64|complex128)"):
            program(limited_device)
        return
    agree(program, limited_device)


@pytest.mark.parametrize("of", (limited.Packed, limited.Words), ids=lambda c: c.__name__)
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_programs_on_limited_devices_have_the_reference_bits(
    of: type[limited.Limited], first: int
) -> None:
    """Most are of float64, whose bits are two words on devices without larger integers."""
    with partial_devices.installed(of) as (device,):
        for seed in range(first, first + 20):
            check(seed, str(device))


# --- buffers


def test_sum_of_many_tensors_is_split_into_the_fewest_kernels() -> None:
    """Seven tensors in the first, and six more in each that follows."""
    few = limited.FewBuffers.device()
    xs = many_tensors(few)
    before = counters.launches
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    dt.evaluate(total)
    assert counters.launches - before == 1 + -(-33 // 6)


def test_user_kernel_with_too_many_buffers_raises() -> None:
    @dt.kernel
    def add(out: dt.Out, a: dt.In, b: dt.In, c: dt.In, d: dt.In, e: dt.In, f: dt.In, g: dt.In,
            h: dt.In):  # fmt: skip
        for i in dt.grid(out.shape[0]):
            out[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i]

    few = limited.FewBuffers.device()
    xs = [dt.ones(3, device=few) for _ in range(9)]
    with pytest.raises(DeviceError, match="must have at most 8 buffers on this device, got 18"):
        add(*xs)


def test_buffer_limit_below_the_minimum_raises() -> None:
    with pytest.raises(
        ArgumentError, match=r"max_buffers must be 0 .no limit. or at least 8, got 7"
    ):
        Capabilities(max_buffers=BUFFERS_MIN - 1)
    with pytest.raises(ArgumentError, match="at least 9, got 8"):  # parts have one buffer more
        Capabilities(max_buffers=BUFFERS_MIN, max_iterations=1 << 16)


# --- offsets and grids


def test_kernel_receives_the_offsets_of_its_buffers() -> None:
    b = KernelBuilder("twice")
    x, at0 = b.buffer("x", float32, "r"), b.buffer("at0", float32, "rw")
    i = b.axis(b.int("n"))
    b.store(at0, i, load(x, i) + load(at0, i))
    legal = legalize(b.build(), Capabilities(offset_alignment=16))
    assert legal.ints == ("n", "at0_", "at1")
    assert "add i0, at1" in str(legal) and "add i0, at0_" in str(legal)
    assert legalize(legal, Capabilities()) is legal


def test_large_grid_is_split_into_several_launches() -> None:
    b = KernelBuilder("rows")
    out = b.buffer("out", float32, "w")
    i, j, k = (b.axis(b.int(n)) for n in "nml")
    b.store(out, (i * 7 + j) * 5 + k, cast(i * 100 + j * 10 + k, float32))
    legal = legalize(b.build(), Capabilities(max_grid=(4, 3)))
    assert legal.ints == ("n", "m", "l", "first0", "first1", "points0", "points1")
    assert [n.name for n in legal.grid] == ["points0", "points1"]
    out_ = np.zeros(3 * 7 * 5, np.float32)
    seen = []
    for firsts, points in grid_parts((3, 7, 5), (4, 3)):
        interpret(legal, [out_], [3, 7, 5, *firsts, *points], [], points)
        seen.append(points)
    expected = [i * 100 + j * 10 + k for i in range(3) for j in range(7) for k in range(5)]
    assert out_.tolist() == expected
    assert len(seen) == 6 * 2 and seen[0] == (4, 3) and seen[-1] == (1, 2)


def test_launches_are_cached_per_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    aligned = limited.Aligned.device()
    x = dt.asarray(numbers(500), device=aligned)
    bound: list[object] = []
    assert aligned.opened is not None
    plain = aligned.opened.backend.bind

    def counted(*given: Any) -> object:
        bound.append(given)
        return plain(*given)

    monkeypatch.setattr(aligned.opened.backend, "bind", counted)
    for k in (0, 3, 64, 67, 131, 195):  # of 4 bytes each: alternating at 0 and 12 of 256
        dt.evaluate(x[k : k + 90] * 3)
    assert len(bound) == 2


def test_whole_bindings_bind_a_launch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = limited.WholeBindings.device()
    x = dt.asarray(numbers(500), device=whole)
    kernels: list[Kernel] = []
    assert whole.opened is not None
    plain = whole.opened.backend.bind

    def counted(program: Any, *given: Any) -> object:
        kernels.append(program.kernel)
        return plain(program, *given)

    monkeypatch.setattr(whole.opened.backend, "bind", counted)
    for k in (0, 3, 64, 67, 131, 195):
        assert dt.asarray(x[k : k + 90] * 3).tolist() == (x.numpy()[k : k + 90] * 3).tolist()
    assert 1 <= len(kernels) <= 2  # a plan may be bound again, for its cache
    kernel = kernels[0]
    assert kernel.offset_ints == (("at0", 4), ("at1", 4)) and kernel.ints[-2:] == ("at0", "at1")


def test_saved_functions_load_on_devices_with_aligned_offsets(tmp_path: Path) -> None:
    for of in (limited.Aligned, limited.SmallGrids):
        device = of.device()
        x = dt.asarray(numbers(40, 30), device=device)
        f = dt.jit(lambda a: dt.sum(a[1:] * a[:-1], axis=1))
        expected = f(x[3:20]).numpy()
        dt.save_function(f, tmp_path / "f")
        assert np.array_equal(dt.load_function(tmp_path / "f")(x[3:20]).numpy(), expected)


def test_raw_kernel_with_unaligned_memory_raises() -> None:
    given: list[object] = []

    class Raw(limited.Aligned):
        raw_language = "a list"

        def compile_raw(self, *text: object) -> object:
            return lambda at, numbers, grid, stream: given.append(at)

    device = Raw.device()
    fill = dt.raw_kernel("text", "raw", "fill(x: w float32)")
    x = dt.zeros(200, device=device)
    fill(x, grid=200)
    fill(x[64:], grid=9)
    assert len(given) == 2
    with pytest.raises(LayoutError, match=r"the offset of x .* multiple of 256 bytes .* got 12"):
        fill(x[3:], grid=9)
    assert len(given) == 2


def test_tensor_beyond_the_largest_buffer_raises() -> None:
    device = limited.SmallBlocks.device()
    x = dt.ones((3, 1 << 20), device=device)
    with pytest.raises(
        OutOfMemoryError, match=r"add: float32\[6, 1048576\] needs 24.0 MiB .25165824"
    ):
        dt.evaluate(dt.concat([x, x]) + 1)
    assert dt.sum(dt.exp(x)).item() == dt.sum(dt.exp(dt.ones((3, 1 << 20)))).item()


PAIRS = 1030  # so many squared are more than 4 MiB of float32


class SmallestBlocks(limited.Limited):
    """A backend with the least size of the largest buffer, 4 MiB."""

    capabilities = Capabilities(max_buffer=BUFFER_BYTES_MIN)


# values of pairs that are costly, or reduced or repeated in ways for which they would be stored
LARGE_VALUES: dict[str, Callable[[dt.Tensor, dt.Tensor], list[dt.Tensor]]] = {
    "sum of all": lambda x, y: [(x[:, None] * y).sum()],
    "maximum of all": lambda x, y: [dt.abs(x[:, None] - y).max()],
    "costly in two loops": lambda x, y: [dt.softmax(dt.lgamma(x[:, None] * y), axis=1).max(axis=1)],
    "costly and repeated": lambda x, y: [(dt.sin(x[:, None] * y)[None] + x[:8, None, None]).sum(2)],
    "costly and joined": lambda x, y: [
        dt.concat([dt.sin(x[:, None] * y), dt.cos(x[:, None] + y)], axis=1).sum(axis=1)
    ],
    "costly, in two kernels": lambda x, y: [
        (e := dt.lgamma(x[:, None] * y)).sum(axis=0), e.max(axis=1)
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE_VALUES)
def test_values_beyond_the_largest_buffer_are_computed_where_they_are_read(name: str) -> None:
    """A buffer has 4 MiB, and the values more."""
    rng = np.random.default_rng(6)
    x, y = (rng.standard_normal(PAIRS).astype("f4") for _ in range(2))
    on = SmallestBlocks.device()
    results = LARGE_VALUES[name](dt.asarray(x, device=on), dt.asarray(y, device=on))
    expected = LARGE_VALUES[name](dt.asarray(x), dt.asarray(y))
    dt.evaluate(*results)
    for actual, wanted in zip(results, expected, strict=True):
        assert actual.numpy().tobytes() == wanted.numpy().tobytes()


def test_temporary_beyond_the_largest_buffer_is_named_with_its_reason() -> None:
    x = dt.zeros(PAIRS * PAIRS // 2, device=SmallestBlocks.device())
    with pytest.raises(
        OutOfMemoryError,
        match=r"copy: float32\[3, 530450\], stored because it is reshaped .*, needs 6.1 MiB "
        r"\(6365400 bytes\), and a buffer of smallestblocks has at most 4194304 bytes; compute",
    ):
        dt.tile(x, 3).sum().item()


# --- indices of 32 bits

NARROW = Capabilities(index_bits=32)


def gather_with_index() -> Kernel:
    """Build out[i, j] = x[at[i], j], and the index as data: where[i, j] = 4000 * i + at[i]."""
    b = KernelBuilder("picked")
    x, at = b.buffer("x", float32, "r"), b.buffer("at", int64, "r")
    out, place = b.buffer("out", float32, "w"), b.buffer("place", int64, "w")
    rows, n = b.int("rows"), b.int("n")
    i, j = b.axis(b.int("m")), b.axis(n)
    held = load(at, i)
    fine = (const(0, int64) <= held) & (held < rows)
    b.store(out, i * n + j, load(x, held * n + j, fine))
    b.store(place, i * n + j, i * 4_000_000_000 + held, i < rows * 2)
    return b.build()


def test_32_bit_index_lowering_narrows_indices_and_not_data() -> None:
    legal = legalize(gather_with_index(), NARROW)
    verify(legal)
    assert legal.index is int32 and all(n.dtype is int32 for n in legal.grid)
    text = str(legal)
    assert text.splitlines()[0].endswith("grid(m, n) index i32 {")
    assert str(parse_kernel(text)) == text and parse_kernel(text).index is int32
    by_op = [(v.op, v.args[0].dtype) for v in values(legal.body) if v.op in ("lt", "le")]
    assert sorted(by_op, key=str) == [("le", int64), ("lt", int32), ("lt", int64)]
    assert legalize(legal, NARROW) is legal
    assert legalize(gather_with_index(), Capabilities()).index is int64


@pytest.mark.parametrize("then", (NARROW, Capabilities()), ids=("32", "64"))
def test_32_bit_index_lowering_keeps_results(then: Capabilities) -> None:
    """Loaded values that are no indices must differ from indices, even if 32 of their bits are
    equal.
    """
    legal = legalize(legalize(gather_with_index(), NARROW), then)  # to 64: as for a companion
    verify(legal)
    x = numbers(4, 3).ravel()
    at = np.array([2, 1 << 32, -1, 3, (1 << 33) + 1], np.int64)
    both = [[x, at, np.zeros(15, "f4"), np.zeros(15, "i8")] for _ in range(2)]
    for kernel, arrays in zip((gather_with_index(), legal), both, strict=True):
        interpret(kernel, arrays, [4, 3, 5], [], (5, 3))
    for a, b in zip(*both, strict=True):
        assert a.tobytes() == b.tobytes()
    assert both[0][2].reshape(5, 3)[[0, 3]].tolist() == x.reshape(4, 3)[[2, 3]].tolist()
    assert both[1][3][12:].tolist() == [4 * 4_000_000_000 + (1 << 33) + 1] * 3


@pytest.mark.parametrize(
    "index, body, rule",
    [
        (" index i32", "v0: i64 = cast i0", "an index into a buffer must be int32"),
        ("", "v0: i32 = cast i0", "an index into a buffer must be int64"),
        (
            " index i32",
            "map k0 in i64(0)..i64(2) {\n}",
            "a loop's bounds and variable must be int32",
        ),
        (" index u32", "v0: u32 = add i0, n", "must be int64, or int32 for devices"),
    ],
)
def test_verify_rejects_mixed_index_dtypes(index: str, body: str, rule: str) -> None:
    at = "v0" if "v0" in body else "i0"
    text = f"kernel k(x: w i8; n; ) grid(n){index} {{\n{body}\nstore x[{at}] = i8(1)\n}}"
    assert rule in str(find_violation(parse_kernel(text)))


@pytest.mark.parametrize(
    "ints, grid, number",
    [
        ([4, 3_000_000_000, 5], (5, 3_000_000_000), 3_000_000_000),
        ([4, 3, (1 << 31) - 100], ((1 << 31) - 100, 3), (1 << 31) - 100),
        ([4, 1 << 16, 1 << 16], (1 << 16, 1 << 16), (1 << 32) - (1 << 16)),
        ([1 << 20, 1 << 20, 7], (7, 1 << 20), None),
    ],
)
def test_launch_beyond_32_bit_indices_raises(
    ints: list[int], grid: tuple[int, ...], number: int | None
) -> None:
    """An extent, a computed index, and one that depends on a loaded value."""
    device = limited.SmallIndices.device()
    assert device.opened is not None
    made = get_program(device.opened, gather_with_index())
    limits.bind_within_limits(device.opened.backend, made, [4, 3, 5], (5, 3))
    with pytest.raises(DeviceError, match="kernel picked needs sizes or indices up to") as e:
        limits.bind_within_limits(device.opened.backend, made, ints, grid)
    assert number is None or f"up to {number}," in str(e.value)


def test_tensor_beyond_32_bit_indices_raises_before_any_launch() -> None:
    device = limited.SmallIndices.device()
    x = dt.asarray(numbers(1 << 16), device=device)
    before = counters.launches
    with pytest.raises(DeviceError, match="smallindices has"):
        dt.evaluate(dt.exp(x)[:, None] + dt.exp(x) * 2)
    assert counters.launches == before


def test_launch_within_one_grid_is_that_of_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits cost nothing at each launch."""
    device = next(c for c in limited.LIMITED if c.capabilities.max_grid == (7, 100)).device()
    assert device.opened is not None
    backend, made = device.opened.backend, get_program(device.opened, gather_with_index())
    bound, bind = list[object](), backend.bind
    monkeypatch.setattr(
        backend, "bind", lambda *a: bound.append(bind(*a)) or bound[-1], raising=False
    )
    assert limits.bind_within_limits(backend, made, [4, 3, 5], (5, 3)) is bound[-1]
    bound.clear()
    assert limits.bind_within_limits(backend, made, [4, 3, 5], (8, 3)) not in bound
    assert len(bound) == 2


def test_alignment_counts_in_elements_against_32_bit_indices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    can = replace(limited.OF_REFERENCE, index_bits=32, offset_alignment=1 << 20)
    monkeypatch.setattr(limited.Aligned, "capabilities", can)
    backend = limited.Aligned(limited.Aligned.described())
    made = backend.compile(legalize(gather_with_index(), can))
    n = (1 << 31) - 600_000
    limits.bind_within_limits(backend, made, [1, n, 1], (1, n))
    n = (1 << 31) - 200_000  # an alignment is 1 << 18 elements of float32
    with pytest.raises(DeviceError, match="needs sizes or indices"):
        limits.bind_within_limits(backend, made, [1, n, 1], (1, n))


@pytest.mark.parametrize(
    "limit, says",
    [
        ({"offset_alignment": 12}, "offset_alignment must be a power of two, in bytes, got 12"),
        ({"offset_alignment": 0}, "offset_alignment must be a power of two, in bytes, got 0"),
        ({"index_bits": 16}, "index_bits must be 32 or 64, got 16"),
        (
            {"offset_alignment": 1 << 21, "index_bits": 32},
            "offset_alignment must be at most 1048576 with index_bits=32, got 2097152",
        ),
        (
            {"max_iterations": 4096},
            r"max_iterations must be 0 .no limit. or at least 8192, got 4096",
        ),
        ({"max_grid": (4, 0)}, r"max_grid must hold a positive number for each axis, got \(4, 0\)"),
    ],
)
def test_invalid_limits_raise(limit: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        Capabilities(**limit)


class ShortLoopsWithoutZeros(limited.ShortLoops, float_devices.FoldsZeros):
    """A backend with few iterations in a launch, whose compiler folds float zeros."""

    capabilities = replace(limited.ShortLoops.capabilities, algebra="zeros")


class ShortLoopsOfWords(limited.ShortLoops):
    """A backend with few iterations in a launch, and float64 but no 64-bit integers."""

    capabilities = replace(limited.ShortLoops.capabilities, index_bits=32, int64=False)


@pytest.mark.parametrize("count", [1, 4096, 4097, 8193, 20_000])
def test_long_reduction_of_negative_zeros_on_a_device_that_folds_zeros(count: int) -> None:
    agree(
        lambda on: [dt.sum(dt.full((2, count), -0.0, device=on), axis=1)],
        ShortLoopsWithoutZeros.device(),
    )


def test_long_float64_loops_on_a_device_without_int64() -> None:
    def sums(on: Device) -> list[dt.Tensor]:
        x = dt.asarray(numbers(2, 9000).astype(np.float64), device=on)
        return [dt.sum(x, axis=1), dt.cumulative_sum(x, axis=1)]

    agree(sums, ShortLoopsOfWords.device())


def test_selection_on_a_device_that_must_know_the_length_of_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The number of keys that are left in a block comes from memory, as two words."""
    monkeypatch.setattr(order_statistics, "SELECT_ELEMENTS_MIN", 1)

    def median(on: Device) -> list[dt.Tensor]:
        return [dt.median(dt.asarray(numbers(2, 3000), device=on), axis=1)]

    agree(median, ShortLoopsOfWords.device())
