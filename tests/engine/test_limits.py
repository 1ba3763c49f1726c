"""Devices with limits get no more than these allow, and give the reference's bits."""

from __future__ import annotations

from collections.abc import Callable

import dovetail as dt
import limited
import numpy as np
import pytest
from dovetail.device import Device
from dovetail.engine.events import counters
from dovetail.errors import ArgumentError, DeviceError
from dovetail.loops.target import LEAST_BUFFERS, Capabilities

Program = Callable[[Device], list[dt.Tensor]]


@pytest.fixture(params=limited.LIMITED, ids=lambda c: c.__name__)
def small(request: pytest.FixtureRequest) -> Device:
    """A device with limits."""
    return request.param.device()  # type: ignore[no-any-return]


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def agree(program: Program, device: Device) -> None:
    """Fails unless a program gives the same bits on the device as on the reference."""
    found = [x.numpy() for x in program(device)]
    expected = [x.numpy() for x in program(dt.device("reference"))]
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def many(device: Device, count: int = 40) -> list[dt.Tensor]:
    return [dt.asarray(numbers(5, 7, seed=k), device=device) for k in range(count)]


def sum_of_many(device: Device) -> list[dt.Tensor]:
    total, *rest = many(device)
    for x in rest:
        total = total + x
    return [total]


def sum_as_a_tree(device: Device) -> list[dt.Tensor]:
    xs = many(device)
    while len(xs) > 1:
        xs = [a * b + a for a, b in zip(xs[::2], xs[1::2], strict=False)] + xs[len(xs) & ~1 :]
    return xs


def many_results(device: Device) -> list[dt.Tensor]:
    found = [x * 2 + k for k, x in enumerate(many(device))]
    dt.evaluate(*found)
    return found


def many_reductions(device: Device) -> list[dt.Tensor]:
    found = [dt.sum(x * y, axis=1) for x, y in zip(many(device), many(device)[1:], strict=False)]
    dt.evaluate(*found)
    return found


def reduction_of_many(device: Device) -> list[dt.Tensor]:
    return [dt.sum(sum_of_many(device)[0], axis=0), dt.argmax(sum_of_many(device)[0])]


def chunks_of_many(device: Device) -> list[dt.Tensor]:
    """Few, long rows, which are cut into chunks."""
    xs = [dt.asarray(numbers(70_000, seed=k), device=device) for k in range(12)]
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return [dt.sum(total), dt.argmax(total)]


def joined(device: Device) -> list[dt.Tensor]:
    xs = many(device)
    return [dt.concat(xs), dt.stack(xs, axis=1), dt.concat(xs[:4]) * 2, dt.stack(xs[:4]) + 1]


def joined_while_pending(device: Device) -> list[dt.Tensor]:
    xs = many(device)
    parts = [xs[k] + xs[k + 1] * xs[k + 2] for k in range(0, 36, 3)]
    return [dt.concat(parts[:4]) + 1, dt.concat(parts), dt.concat([p * 2 for p in parts[:3]])]


def shifted_slices(device: Device) -> list[dt.Tensor]:
    """Forty places of one memory: of a leaf, and of what is computed first."""
    x = dt.asarray(numbers(100), device=device)
    y = dt.exp(x)
    held = y + 0
    total = x[0:60] + held[0:60]
    for k in range(1, 40):
        total = total + x[k : k + 60] * held[k : k + 60]
    return [total, held]


def in_place(device: Device) -> list[dt.Tensor]:
    xs = many(device)
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
    xs = [x.requires_grad_() for x in many(device, 12)]
    total = xs[0]
    for x in xs[1:]:
        total = dt.tanh(total * x + x)
    dt.sum(total * dt.sum(total, axis=0)).backward()
    found = [x.grad for x in xs]
    return [g for g in found if g is not None]


def examples(device: Device) -> list[dt.Tensor]:
    """One example after the other, joined."""
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
        dt.softmax(x, axis=1), dt.var(x, axis=0), dt.median(x), dt.fft.fft(x),
        dt.linalg.inv(x[:30] @ y[:30].T), dt.topk(x, 3)[0], dt.unique(dt.round(x)),
    ]  # fmt: skip


PROGRAMS: tuple[Program, ...] = (
    sum_of_many, sum_as_a_tree, many_results, many_reductions, reduction_of_many, chunks_of_many,
    joined, joined_while_pending, shifted_slices, in_place, indexed, gradients, examples, sparse,
    several_ops,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_limited_device_gives_the_same_bits(small: Device, program: Program) -> None:
    agree(program, small)


# --- buffers


def test_a_long_sum_is_cut_into_as_few_kernels_as_can_be() -> None:
    """Seven tensors in the first, and six more in each that follows."""
    few = limited.FewBuffers.device()
    xs = many(few)
    before = counters.launches
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    dt.evaluate(total)
    assert counters.launches - before == 1 + -(-33 // 6)


def test_a_kernel_of_ones_own_with_too_many_buffers_is_refused() -> None:
    @dt.kernel
    def add(out: dt.Out, a: dt.In, b: dt.In, c: dt.In, d: dt.In, e: dt.In, f: dt.In, g: dt.In,
            h: dt.In):  # fmt: skip
        for i in dt.grid(out.shape[0]):
            out[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i]

    few = limited.FewBuffers.device()
    xs = [dt.ones(3, device=few) for _ in range(9)]
    with pytest.raises(DeviceError, match="has 18 buffers, and this device takes no more than 8"):
        add(*xs)


def test_less_than_what_kernels_need_is_refused() -> None:
    with pytest.raises(ArgumentError, match="max_buffers is 7; it is 0 for no limit, else 8"):
        Capabilities(max_buffers=LEAST_BUFFERS - 1)
