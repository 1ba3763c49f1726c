"""Overwritten saved values: `vmap` raises where plain code does, and equals it elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

EXAMPLES, WIDTH = 3, 4

# --- what is written after it was saved

WRITES: dict[str, Callable[[dt.Tensor], object]] = {
    "nothing": lambda y: None,
    "whole": lambda y: y.mul_(0.5),
    "all of it": lambda y: y[...].fill_(2.0),
    "slice": lambda y: y[0:1].add_(1),
    "item": lambda y: y[0].fill_(0.0),
    "reversed": lambda y: y[::-1].mul_(3),
    "by key": lambda y: y.__setitem__(slice(1, None, 2), 7.0),
    "view of a view": lambda y: y[1:][::2].sub_(1),
    "reshaped": lambda y: y.reshape(2, 2)[0].add_(1),
    "places": lambda y: y.__setitem__(dt.asarray([0, 2]), 1.0),
    "copy": lambda y: y.copy().mul_(0.5),
}

# --- what saves `y`, or a view of its memory

SAVES: dict[str, Callable[[dt.Tensor], dt.Tensor]] = {
    "product": lambda y: (y * y).sum(),
    "product of views": lambda y: (y[:2] * y[2:]).sum(),
    "result": lambda y: dt.exp(y).sum() + y[0] * 0,
    "result itself": lambda y: (y * 1).sum(),
    "power": lambda y: (y**3).sum(),
    "evaluated": lambda y: (dt.evaluate(y), (y * y).sum())[1],
    "where": lambda y: dt.where(y > 0, y * y, y).sum(),
    "places": lambda y: (y[dt.asarray([0, 1, 1])] ** 2).sum(),
}


def function(saves: str, writes: str, is_result: bool) -> Callable[[dt.Tensor], dt.Tensor]:
    def f(x: dt.Tensor) -> dt.Tensor:
        y = dt.tanh(x) if is_result else x * 2
        z = SAVES[saves](y)
        WRITES[writes](y)
        return z

    return f


def backward(f: Callable[[dt.Tensor], dt.Tensor]) -> Callable[[dt.Tensor], dt.Tensor]:
    def gradient(x: dt.Tensor) -> dt.Tensor:
        x = x.detach().requires_grad_()
        f(x).backward()
        assert x.grad is not None
        return x.grad

    return gradient


TRANSFORMS: dict[str, Callable[..., Callable[[dt.Tensor], Any]]] = {
    "grad": dt.func.grad,
    "value_and_grad": lambda f: lambda x: dt.func.value_and_grad(f)(x)[1],
    "jacrev": dt.func.jacrev,
    "jacfwd": dt.func.jacfwd,
    "jvp": lambda f: lambda x: dt.func.jvp(f, (x,), (dt.ones_like(x),))[1],
    "hessian": dt.func.hessian,
    "backward": backward,
    "grad of grad": lambda f: dt.func.grad(lambda x: (dt.func.grad(f)(x) ** 2).sum()),
}


def outcome(f: Callable[[], dt.Tensor]) -> Any:
    """Return the values, or the type of the error."""
    try:
        return f().tolist()
    except dt.DovetailError as error:
        return type(error)


@pytest.mark.parametrize("is_result", [False, True])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("saves", SAVES)
@pytest.mark.parametrize("writes", WRITES)
def test_overwritten_value_in_vmap_has_the_outcome_of_plain_code(
    writes: str, saves: str, transform: str, is_result: bool, device: dt.Device
) -> None:
    derivative = TRANSFORMS[transform](function(saves, writes, is_result))
    x = dt.asarray(np.random.default_rng(1).uniform(0.1, 1, (EXAMPLES, WIDTH)).astype("f4"))
    want = outcome(lambda: dt.stack([derivative(row) for row in dt.unstack(x)]))
    assert outcome(lambda: dt.vmap(derivative)(x)) == want
    nested = outcome(lambda: dt.vmap(dt.vmap(derivative))(x[None]))
    assert nested == (want if isinstance(want, type) else [want])
    if writes in ("nothing", "copy"):
        assert not isinstance(want, type)


@pytest.mark.parametrize("writes", ["whole", "slice", "item", "reversed", "by key", "places"])
def test_overwritten_value_in_vmap_raises_gradient_error(writes: str, device: dt.Device) -> None:
    f = function("product", writes, False)
    for derivative in (dt.func.grad(f), dt.func.jacrev(f), dt.func.jacfwd(f), backward(f)):
        with pytest.raises(dt.GradientError, match="multiply saved operand 1"):
            dt.vmap(derivative)(dt.ones((EXAMPLES, WIDTH)))


def test_overwritten_shared_value_of_all_examples_raises(device: dt.Device) -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        w = dt.ones(WIDTH) * 2
        z = (x * w).sum()
        w[1:] = x[1:].detach()  # it differs between examples from here on
        return z

    with pytest.raises(dt.GradientError, match="multiply saved operand 1"):
        dt.vmap(dt.func.grad(f))(dt.ones((EXAMPLES, WIDTH)))


def test_value_overwritten_through_an_aliasing_argument_raises(device: dt.Device) -> None:
    def f(x: dt.Tensor, y: dt.Tensor, z: dt.Tensor) -> dt.Tensor:
        return dt.func.grad(lambda v: ((v * y).sum(), z[0].add_(1))[0])(x)

    x, t = dt.ones((EXAMPLES, WIDTH)), dt.ones((EXAMPLES, WIDTH)) * 2
    for y, z in ((t, t), (t, t[:, ::-1]), (t[:, :2], t)):
        first = x[:, : y.shape[1]]
        with pytest.raises(dt.GradientError, match="saved operand 1"):
            dt.vmap(f)(first, y, z)
        with pytest.raises(dt.GradientError, match="saved operand 1"):
            f(first[0], y[0], z[0])


def test_masked_write_of_saved_value_raises_gradient_error(device: dt.Device) -> None:
    def f(x: dt.Tensor, p: dt.Tensor) -> dt.Tensor:
        y = x * 2
        z = (y * y).sum()
        dt.cond(p, lambda: y[1:].add_(1).sum(), lambda: y.sum())
        return z

    x, p = dt.ones((EXAMPLES, WIDTH)), dt.asarray([False, True, False])
    with pytest.raises(dt.GradientError, match="multiply saved operand 1"):
        dt.vmap(dt.func.grad(f))(x, p)


@pytest.mark.parametrize("writes", [w for w in WRITES if w != "nothing"])
def test_gradient_through_a_view_of_a_written_tensor_equals_plain_code(
    writes: str, device: dt.Device
) -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        y = x * 1
        seen = y[::-1]
        WRITES[writes](y)
        return (seen * seen).sum() + y[0]

    x = dt.asarray([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    want = [dt.func.grad(f)(row).tolist() for row in dt.unstack(x)]
    assert dt.vmap(dt.func.grad(f))(x).tolist() == want


def test_loop_of_the_other_branch_reads_a_pending_value_before_the_write(
    device: dt.Device,
) -> None:
    w = dt.ones(2)
    dt.evaluate(w)

    def f(x: dt.Tensor) -> dt.Tensor:
        t = w + 1  # pending, and shared by all examples

        def yes() -> dt.Tensor:
            t.add_(1)
            return x * 1

        return dt.cond(x[0] > 2, yes, lambda: dt.fori_loop(0, 2, lambda _, v: t * x, x))

    x = dt.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert dt.jit(dt.vmap(f))(x).tolist() == [[2.0, 4.0], [3.0, 4.0]]


@pytest.mark.parametrize("differs", [True, False])
def test_value_saved_after_a_write_to_its_operand(device: dt.Device, differs: bool) -> None:
    w = dt.asarray([2.0, 3.0])

    def f(x: dt.Tensor) -> dt.Tensor:
        t = w * x if differs else w * 1
        u = x + t
        t[:].copy_(w)
        return (u * u).sum()

    x = dt.asarray([[1.0, 1.0], [2.0, 2.0]])
    want = [dt.func.grad(f)(row).tolist() for row in x]
    assert dt.vmap(dt.func.grad(f))(x).tolist() == want


def test_write_ignores_leftover_tensors_of_an_ended_vmap(device: dt.Device) -> None:
    w, kept = dt.asarray([1.0, 2.0]), list[dt.Tensor]()
    dt.evaluate(w)

    def f(x: dt.Tensor) -> dt.Tensor:
        kept.append(x * w)
        return x * 2

    dt.vmap(f)(dt.ones((3, 2)))
    pending = w * 3
    w[0] = 5.0
    assert w.tolist() == [5.0, 2.0] and pending.tolist() == [3.0, 6.0]
