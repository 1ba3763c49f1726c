"""Rule 1 of captures: tensors from outside are read at each call and not recomputed."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable
from typing import Any

import dovetail as dt
import pytest

Function = Callable[[dt.Tensor], dt.Tensor]


def gradient_of(lam: Callable[[], dt.Tensor]) -> Function:
    return lambda w: dt.func.grad(lambda v: lam() * (v * v).sum())(w)


def in_fori_loop(f: Function) -> Function:
    return lambda w: dt.fori_loop(0, 1, lambda i, c: f(c), w)


def in_scan(f: Function) -> Function:
    return lambda w: dt.scan(lambda c, x: (f(c), x), w, dt.arange(1))[0]


def in_while_loop(f: Function) -> Function:
    def once(w: dt.Tensor) -> dt.Tensor:
        state = dt.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (dt.asarray(0), w))
        return state[1]

    return once


def in_cond(f: Function) -> Function:
    return lambda w: dt.cond(w.sum() > 0, f, lambda v: v, w)


AROUND = [lambda f: f, in_fori_loop, in_scan, in_while_loop, in_cond]


@pytest.mark.parametrize("around", AROUND)
def test_capture_reads_a_pending_closure_tensor_again_after_a_write(
    device: dt.Device, around: Callable[[Function], Function]
) -> None:
    lam, w = dt.full((), 0.25), dt.asarray([1.0, 2.0])
    f = dt.jit(around(gradient_of(lambda: lam)))
    assert f(w).tolist() == [0.5, 1.0]
    lam[...] = 10.0
    assert f(w).tolist() == [20.0, 40.0]


@pytest.mark.parametrize("around", AROUND)
def test_capture_reads_a_pending_closure_tensor_again_after_a_rebinding(
    device: dt.Device, around: Callable[[Function], Function]
) -> None:
    lam, w = dt.full((), 0.25), dt.asarray([1.0, 2.0])
    f = dt.jit(around(gradient_of(lambda: lam)))
    f(w)
    lam = dt.full((), 2.0) * 5.0
    assert f(w).tolist() == [20.0, 40.0]


def test_capture_reads_the_buffer_of_a_network_again_in_its_gradient(device: dt.Device) -> None:
    net = dt.nn.BatchNorm1d(2).eval()
    net.running_var = dt.full(2, 3.0)
    w = dt.asarray([[1.0, 2.0], [3.0, 4.0]])

    def gradient(v: dt.Tensor) -> dt.Tensor:
        return dt.func.grad(lambda x: (net(x) * x).sum())(v)

    f = dt.jit(gradient)
    f(w)
    net.running_var = dt.full(2, 8.0)
    assert f(w).tolist() == gradient(w).tolist()


def test_gradient_outside_reads_a_pending_closure_tensor_again(device: dt.Device) -> None:
    lam, w = dt.full((), 0.25), dt.asarray([1.0, 2.0]).requires_grad_()
    f = dt.jit(lambda v: (lam * (v * v)).sum())
    f(w).backward()
    lam[...], w.grad = 10.0, None
    f(w).backward()
    assert w.grad is not None and w.grad.tolist() == [20.0, 40.0]


def test_custom_function_in_a_capture_reads_its_saved_tensor_again(device: dt.Device) -> None:
    scale = dt.full(2, 3.0)

    class Scaled(dt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: dt.Tensor) -> dt.Tensor:
            ctx.save_for_backward(scale)
            return x * scale

        @staticmethod
        def backward(ctx: Any, g: dt.Tensor) -> dt.Tensor:
            return g * ctx.saved_tensors[0]

    f = dt.jit(dt.func.grad(lambda v: Scaled.apply(v).sum()))
    assert f(dt.ones(2)).tolist() == [3.0, 3.0]
    scale[...] = 7.0
    assert f(dt.ones(2)).tolist() == [7.0, 7.0]


# --- tensors without a path ----------------------------------------------------------------------


@functools.cache
def cached_tensor(device: str) -> dt.Tensor:
    return dt.asarray([1.0, 2.0], device=device)


VARIABLE: contextvars.ContextVar[dt.Tensor] = contextvars.ContextVar("variable")


class Computing:
    """An object whose tensor is returned by code."""

    def __init__(self, x: dt.Tensor) -> None:
        self._find = {id(self): {x}}

    def __getitem__(self, i: int) -> dt.Tensor:
        return next(iter(self._find[id(self)]))


def ways_to_get_a_tensor(device: dt.Device) -> list[Callable[[], dt.Tensor]]:
    held = Computing(dt.asarray([1.0, 2.0]))
    VARIABLE.set(dt.asarray([1.0, 2.0]))
    cached_tensor(device.type)
    return [lambda: held[0], VARIABLE.get, lambda: cached_tensor(device.type)]


@pytest.mark.parametrize("way", range(3))
@pytest.mark.parametrize("around", AROUND)
def test_capture_raises_for_a_tensor_that_it_cannot_find_again(
    device: dt.Device, around: Callable[[Function], Function], way: int
) -> None:
    get = ways_to_get_a_tensor(device)[way]
    f = dt.jit(around(lambda x: x * get()))
    with pytest.raises(
        dt.CaptureError, match=r"test_input_slots.py:\d+ .*cannot find again.*constant"
    ):
        f(dt.ones(2))
    assert (dt.ones(2) + 1).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("way", range(3))
def test_constant_keeps_a_tensor_and_reads_its_memory_again(device: dt.Device, way: int) -> None:
    get = ways_to_get_a_tensor(device)[way]
    f = dt.jit(lambda x: x * dt.constant(get()))
    before = get().tolist()
    assert f(dt.ones(2)).tolist() == before
    get()[...] = get() + 4.0
    assert f(dt.ones(2)).tolist() == [v + 4.0 for v in before]
    assert f.captures == 1


def test_constant_of_a_non_tensor_raises() -> None:
    with pytest.raises(dt.ArgumentTypeError, match="constant: x"):
        dt.constant([1.0])  # type: ignore[arg-type]


def test_tables_of_the_library_are_part_of_a_capture(device: dt.Device) -> None:
    x = dt.arange(12.0)
    dt.fft.fft(x).numpy()
    f = dt.jit(lambda x: dt.fft.fft(x))
    assert f(x).tolist() == f(x).tolist() == dt.fft.fft(x).tolist()


def test_leftover_tensor_of_a_vmap_does_not_prevent_a_capture(device: dt.Device) -> None:
    left: list[dt.Tensor] = []
    dt.vmap(lambda x: (left.append(x + 1), x)[1])(dt.ones(2))
    assert dt.jit(lambda x: x + 1)(dt.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(dt.TransformError, match="cannot be read after"):
        left[0].tolist()


def test_leftover_tensor_of_a_failed_capture_does_not_prevent_a_capture(
    device: dt.Device,
) -> None:
    """An error keeps the frames of its capture, and with them tensors without memory."""
    left: list[dt.Tensor] = []

    def body(i: dt.Tensor, c: dt.Tensor) -> dt.Tensor:
        left.append((c + 1) * 2)
        return c + float(left[-1].sum())

    with pytest.raises(dt.CaptureError):
        dt.jit(lambda x: dt.fori_loop(0, 3, body, x))(dt.ones(2))
    assert dt.jit(lambda x: x + 1)(dt.ones(2)).tolist() == [2.0, 2.0]
    assert dt.fori_loop(0, 3, lambda i, c: c + 1, dt.ones(2)).tolist() == [4.0, 4.0]
    assert len(left) == 1


@pytest.mark.parametrize("depth", [1, 2])
def test_nested_loop_reads_pending_values_of_its_outer_body(device: dt.Device, depth: int) -> None:
    def inner(c: dt.Tensor) -> dt.Tensor:
        lam = c.sum() * 2.0  # pending when the inner loop starts
        made = dt.fori_loop(0, 2, lambda i, w: dt.func.grad(lambda v: lam * (v * v).sum())(w), c)
        lam[...] = 1.0
        return made * lam

    def outer(c: dt.Tensor) -> dt.Tensor:
        if depth == 1:
            return inner(c)
        return dt.fori_loop(0, 2, lambda i, w: inner(w) / 100.0, c)

    c = dt.asarray([1.0, 2.0])
    with dt.eager():
        want = outer(c).tolist()
    assert dt.jit(outer)(c).tolist() == outer(c).tolist() == want
