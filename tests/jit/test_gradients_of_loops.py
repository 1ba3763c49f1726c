"""Gradients of loops in captured functions: one loop each way, with the bits of a Python loop.

Each function is written once, for `dt`'s control flow or for that of Python. Its arguments are 4
floats, rows of 4 floats, and 4 floats in the closure of the body; its result is differentiated.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from control_flow_in_python import PYTHON, one_by_one
from dovetail.capture.closures import Closure, ClosureSnapshot
from dovetail.capture.loop_acts import CountedLoop
from dovetail.capture.pytree import flatten

ROWS = 5


def recurrence(c: Any, x: Any, rows: Any, w: Any) -> Any:
    return c.scan(lambda h, r: (dt.tanh(h * w + r), h * r), x, rows)


def weight_is_used_often(c: Any, x: Any, rows: Any, w: Any) -> Any:
    def step(h: Any, r: Any) -> Any:
        after = dt.tanh(h * w + r * w) * w[::-1]
        return after, w + after

    h, ys = c.scan(step, x * w, rows)
    return h * w, ys


def result_is_what_is_carried(c: Any, x: Any, rows: Any, w: Any) -> Any:
    def step(h: Any, r: Any) -> Any:
        after = h * w + r
        return after, after

    return c.scan(step, x, rows)[1]


def last_value_is_not_used(c: Any, x: Any, rows: Any, w: Any) -> Any:
    return c.scan(lambda h, r: (dt.sin(h) * w, h * h * r), x, rows)[1]


def result_is_not_used(c: Any, x: Any, rows: Any, w: Any) -> Any:
    return c.scan(lambda h, r: (dt.sin(h) * w, h * h * r), x, rows)[0]


def values_change_places(c: Any, x: Any, rows: Any, w: Any) -> Any:
    def step(state: Any, r: Any) -> Any:
        a, b, k = state["a"], state["b"], state["k"]
        return {"a": b * w, "b": a + r * k, "k": k + 1}, {"y": a}

    return c.scan(step, {"a": x, "b": x * 0 + 1, "k": 1}, rows)


def value_gets_a_gradient_later(c: Any, x: Any, rows: Any, w: Any) -> Any:
    def step(h: Any, r: Any) -> Any:
        return (h[1], h[2] + r, h[0] * w + 1), h[0]

    return c.scan(step, (dt.ones(4), dt.zeros(4), dt.ones(4)), dt.ones((ROWS, 4)))


def reversed_rows(c: Any, x: Any, rows: Any, w: Any) -> Any:
    step = lambda h, r: (dt.tanh(h * w + r["a"]) * r["b"], h + r["b"])  # noqa: E731
    return c.scan(step, x, {"a": rows, "b": rows[:, ::-1] * w}, reverse=True)


def no_rows(c: Any, x: Any, rows: Any, w: Any) -> Any:
    return c.scan(lambda h, r: (dt.cos(h) * w, h[:2]), x, None, ROWS)


def body_writes_in_place(c: Any, x: Any, rows: Any, w: Any) -> Any:
    def step(h: Any, r: Any) -> Any:
        r += h
        h[1:3] += r[:2]
        return h, r * w

    return c.scan(step, x, rows)


def counted(c: Any, x: Any, rows: Any, w: Any) -> Any:
    return c.fori_loop(2, 7, lambda i, h: dt.tanh(h * w) + i * 0.1, x)


def loop_in_loop(c: Any, x: Any, rows: Any, w: Any) -> Any:
    def step(h: Any, r: Any) -> Any:
        inner = c.fori_loop(0, 3, lambda i, z: dt.sin(z * w) + r, h)
        return inner, inner * r

    return c.scan(step, x, rows)


def equations_are_solved(c: Any, x: Any, rows: Any, w: Any) -> Any:
    def step(h: Any, r: Any) -> Any:
        a = dt.eye(2) * 2 + dt.reshape(h * 0.1, (2, 2))
        return dt.concat([dt.linalg.solve(a, r[:2]), dt.tanh(h[2:])]), dt.linalg.det(a)

    return c.scan(step, x, rows)


class Cell:
    def __init__(self, w: Any) -> None:
        self.w = [w, w * 2]

    def __call__(self, h: Any, r: Any) -> Any:
        return dt.tanh(h * self.w[0] + r * self.w[1]), h


def method_is_the_body(c: Any, x: Any, rows: Any, w: Any) -> Any:
    return c.scan(Cell(w), x, rows)


def closure_changes_afterwards(c: Any, x: Any, rows: Any, w: Any) -> Any:
    made = []
    for factor in (0.5, 2.0):
        scaled = w * factor
        step = lambda h, r: (dt.tanh(h * scaled + r * factor), h)  # noqa: B023, E731 - on purpose
        made.append(c.scan(step, x, rows))
    return made


FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        recurrence, weight_is_used_often, result_is_what_is_carried, last_value_is_not_used,
        result_is_not_used, values_change_places, value_gets_a_gradient_later, reversed_rows,
        no_rows, body_writes_in_place, counted, loop_in_loop, equations_are_solved,
        method_is_the_body, closure_changes_afterwards,
    )
}  # fmt: skip


def body_draws(c: Any, x: Any, rows: Any, w: Any) -> Any:
    return c.scan(lambda h, r: (h * w * dt.random.rand(4), h), x, rows)


def body_writes_outside(c: Any, x: Any, rows: Any, w: Any) -> Any:
    total = dt.zeros(4)

    def step(h: Any, r: Any) -> Any:
        total.add_(r)
        return h * w + total, h

    return c.scan(step, x, rows), total


def body_has_hooks(c: Any, x: Any, rows: Any, w: Any) -> Any:
    def step(h: Any, r: Any) -> Any:
        after = h * w
        if after.requires_grad:
            after.register_hook(lambda g: g * 2)
        return after + r, h

    return c.scan(step, x, rows)


UNROLLED: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (body_draws, body_writes_outside, body_has_hooks)
}  # fmt: skip


def given() -> tuple[dt.Tensor, dt.Tensor, dt.Tensor]:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(3, 4)), rng.normal(size=(ROWS, 4)), rng.normal(size=(3, 4))
    return tuple(dt.asarray(a.astype("f4")) for a in draws)  # type: ignore[return-value]


def total(f: Callable[..., Any], c: Any) -> Callable[..., Any]:
    def value(x: Any, rows: Any, w: Any) -> Any:
        leaves = [t for t in flatten(f(c, x, rows, w)).leaves if t.dtype.kind == "f"]
        weights = [dt.cos(dt.arange(t.size, dtype=dt.float32)).reshape(t.shape) for t in leaves]
        return sum((t * a).sum() for t, a in zip(leaves, weights, strict=True))

    return value


def gradient(f: Callable[..., Any], x: Any, rows: Any, w: Any) -> Any:
    return dt.func.grad(f, argnums=(0, 1, 2))(x[0], rows, w[0])


def gradient_in_vmap(f: Callable[..., Any], x: Any, rows: Any, w: Any) -> Any:
    return dt.vmap(dt.func.grad(f, argnums=(0, 1, 2)), in_axes=(0, None, 0))(x, rows, w)


def gradient_of_vmap(f: Callable[..., Any], x: Any, rows: Any, w: Any) -> Any:
    rows = dt.stack([rows, rows * 2, rows[::-1]])
    return dt.func.grad(lambda *args: dt.vmap(f)(*args).sum(), argnums=(0, 1, 2))(x, rows, w)


def gradients_one_by_one(f: Callable[..., Any], x: Any, rows: Any, w: Any) -> Any:
    rows = dt.stack([rows, rows * 2, rows[::-1]])
    return one_by_one(dt.func.grad(f, argnums=(0, 1, 2)), (x, rows, w))


def gradient_backward(f: Callable[..., Any], x: Any, rows: Any, w: Any) -> Any:
    args = [t.copy().requires_grad_() for t in (x[0], rows, w[0])]
    f(*args).backward()
    return [dt.zeros(1) if t.grad is None else t.grad for t in args]


def directional(f: Callable[..., Any], x: Any, rows: Any, w: Any) -> Any:
    return dt.func.jvp(f, (x[0], rows, w[0]), (x[1], rows * 0.5, w[1]))


WAYS = [gradient, gradient_in_vmap, gradient_of_vmap, gradient_backward, directional]


def bits(made: Any) -> list[Any]:
    return [np.asarray(t.detach()).tobytes() for t in flatten(made).leaves]


def acts(captured: Any) -> list[Any]:
    ((_, program),) = captured.programs
    found, waiting = list[Any](), [program]
    while waiting:
        program = waiting.pop()
        found += program.acts
        waiting += [p for a in program.acts for p in a.programs]
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_of_captured_loop_equals_python_loop(
    name: str, way: Callable[..., Any], device: dt.Device
) -> None:
    f, args = FUNCTIONS[name], given()
    captured = dt.jit(lambda *args: way(total(f, dt), *args))
    expected = gradients_one_by_one if way is gradient_of_vmap else way
    for _ in range(2):
        assert bits(captured(*args)) == bits(expected(total(f, PYTHON), *args))
    assert captured.captures == 1
    assert sum(isinstance(a, CountedLoop) for a in acts(captured)) >= 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", UNROLLED)
def test_gradient_of_captured_loop_with_effects_equals_plain(
    name: str, way: Callable[..., Any], device: dt.Device
) -> None:
    f, args, made = UNROLLED[name], given(), []
    for run in (way, dt.jit(way, static_argnames="f")):
        dt.random.manual_seed(3)
        made.append(bits(run(total(f, dt), *args)))
    assert made[0] == made[1]


@pytest.mark.parametrize("name", ["recurrence", "counted", "loop_in_loop", "values_change_places"])
def test_second_derivative_of_captured_loop_equals_python_loop(
    name: str, device: dt.Device
) -> None:
    def second(f: Callable[..., Any], x: Any, rows: Any, w: Any) -> Any:
        first = dt.func.grad(f, argnums=2)
        return dt.func.grad(lambda *a: (first(*a) * w[1]).sum(), argnums=(0, 1, 2))(
            x[0], rows, w[0]
        )

    captured = dt.jit(lambda *args: second(total(FUNCTIONS[name], dt), *args))
    captured(*given())
    for a, b in zip(
        captured(*given()), second(total(FUNCTIONS[name], PYTHON), *given()), strict=True
    ):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("way", [gradient, gradient_in_vmap, gradient_of_vmap, directional])
def test_capture_size_of_loop_gradient_is_independent_of_trip_count(
    way: Callable[..., Any], device: dt.Device, request: pytest.FixtureRequest
) -> None:
    sizes, runs = [], []
    gc.disable()  # garbage in cycles is computed too
    request.addfinalizer(gc.enable)
    for n in (10, 1000):
        calls = 0

        def step(h: Any, r: Any) -> Any:
            nonlocal calls
            calls += 1
            return dt.tanh(h * 1.01 + r), h

        def f(x: Any, rows: Any, w: Any, step: Any = step) -> Any:
            return dt.scan(step, x * w, rows)[0].sum()

        x, _, w = given()
        captured = dt.jit(lambda *args, f=f: way(f, *args))
        captured(x, dt.ones((n, 4)), w)
        sizes.append(len(acts(captured)))
        runs.append(calls)
    assert sizes[0] == sizes[1] < 150 and runs[0] == runs[1] <= 20


def test_snapshot_in_a_closure_leads_to_its_function_only() -> None:
    scale = dt.ones(4)
    snapshot = ClosureSnapshot("scan", lambda h, r: (dt.tanh(h * scale + r), h))
    values = [path.value for path in Closure([lambda: snapshot.function()]).paths]
    assert any(value is scale for value in values)
    assert not any(value is globals() for value in values)


def test_gradient_of_loop_raises_if_closure_was_overwritten(device: dt.Device) -> None:
    def f(x: dt.Tensor, rows: dt.Tensor) -> dt.Tensor:
        scale = x.detach() * 2
        y = dt.scan(lambda h, r: (h * scale + r, h), x, rows)[0].sum()
        scale.add_(1)
        return y

    x, rows, _ = given()
    for run in (dt.func.grad(f), dt.jit(dt.func.grad(f))):
        with pytest.raises(dt.GradientError, match="overwrote it in place"):
            run(x[0], rows)


def test_gradient_of_loop_raises_if_a_number_has_changed(device: dt.Device) -> None:
    cell = Cell(dt.ones(4))

    def f(x: dt.Tensor, rows: dt.Tensor) -> dt.Tensor:
        cell.rate = 2.0  # type: ignore[attr-defined]
        y = dt.scan(lambda h, r: (h * cell.rate + r, h), x, rows)[0].sum()  # type: ignore[attr-defined]
        cell.rate = 3.0  # type: ignore[attr-defined]
        return y

    x, rows, _ = given()
    with pytest.raises(dt.GradientError, match=r"scan: .*rate.* has changed since"):
        dt.jit(dt.func.grad(f))(x[0], rows)


@pytest.mark.parametrize("wrap", [lambda f: f, dt.jit])
def test_gradient_of_loop_with_tensor_bound_raises(
    wrap: Callable[..., Any], device: dt.Device
) -> None:
    def total(x: dt.Tensor) -> dt.Tensor:
        y = dt.fori_loop(0, dt.asarray(2), lambda i, y: y * y, x)
        return (x * x).sum() + y.sum()

    with pytest.raises(dt.GradientError, match="bounds must be ints"):
        wrap(dt.func.grad(total))(dt.ones(3))
