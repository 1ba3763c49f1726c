"""Loops and branches equal the same loop in Python, bit for bit, captured or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from captured import bits, device, vector

__all__ = ["device"]


def in_python(lower: int, upper: int, body: Callable[..., Any], init: Any) -> Any:
    for i in range(lower, upper):
        init = body(dt.asarray(i), init)
    return init


def both(f: Callable[..., Any], *args: Any, calls: int = 3) -> Any:
    """Return the result of a function, which must be the same when captured."""
    want = bits(f(*args))
    captured = dt.jit(f)
    for _ in range(calls):
        assert bits(captured(*args)) == want
    assert captured.captures == 1
    return f(*args)


BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "new value": lambda i, x: x * 0.5 + i,
    "in place": lambda i, x: x.add_(1) * 2 if False else x.mul_(2),
    "written and new": lambda i, x: x.add_(i) * 2,
    "what it got": lambda i, x: x,
    "a view": lambda i, x: x[::-1],
    "by the index": lambda i, x: x + x[i % 8],
}


@pytest.mark.parametrize("count", [0, 1, 2, 5, 6])
@pytest.mark.parametrize("what", BODIES)
def test_fori_loop_equals_a_python_loop(device: dt.Device, what: str, count: int) -> None:
    x = vector()
    dt.evaluate(x)
    got = both(lambda x: dt.fori_loop(0, count, BODIES[what], x), x)
    assert bits(x) == bits(vector()), "what a loop begins with stays as it is"
    assert bits(got) == bits(in_python(0, count, BODIES[what], vector().copy()))


def test_loop_bounds_may_be_negative_or_tensors(device: dt.Device) -> None:
    def f(n: dt.Tensor, x: dt.Tensor) -> Any:
        return dt.fori_loop(-2, n, lambda i, x: x * 2 + i, x)

    captured, x = dt.jit(f), vector()
    for n in (3, 0, -5, 4):
        want = in_python(-2, n, lambda i, x: x * 2 + i, x)
        assert bits(captured(dt.asarray(n), x)) == bits(f(dt.asarray(n), x)) == bits(want)
    assert captured.captures == 1


def test_loop_with_upper_below_lower_returns_a_copy_of_init(device: dt.Device) -> None:
    x, w = vector().requires_grad_(), vector(seed=1).requires_grad_()
    bodies: list[Callable[..., Any]] = [lambda i, y: y * 2, lambda i, y: y * w]
    for body in bodies:
        for start in (x, x.detach()):
            last = both(lambda x, body=body: dt.fori_loop(3, 0, body, x), start)
            assert bits(last) == bits(start) and last is not start
    dt.jit(lambda x: dt.fori_loop(3, 0, bodies[1], x))(x).sum().backward()
    assert bits(x.grad) == bits(dt.ones(8)) and w.grad is None


def test_loops_carry_containers_and_swap_values(device: dt.Device) -> None:
    def body(i: Any, c: Any) -> Any:
        return {"a": c["b"], "b": c["a"] + i, "count": c["count"] + 1}

    start = {"a": vector(), "b": vector(seed=1), "count": 0}
    for n in (0, 1, 4, 7):
        got = both(lambda s, n=n: dt.fori_loop(0, n, body, s), start)
        want = in_python(0, n, body, {**start, "count": dt.asarray(0)})
        assert bits(got) == bits(want)


def test_bodies_use_outer_tensors(device: dt.Device) -> None:
    def f(x: dt.Tensor, w: dt.Tensor, rate: float) -> Any:
        scale = dt.exp(w) * rate  # pending
        seen = dt.zeros(8)

        def body(i: Any, x: Any) -> Any:
            seen.add_(x)
            return x * scale + dt.asarray([1.0] * 8)

        return dt.fori_loop(0, 4, body, x), seen * 2

    captured = dt.jit(f)
    for seed, rate in enumerate((0.5, 0.25, 2.0)):
        args = vector(seed=seed), vector(seed=seed + 1), rate
        assert bits(captured(*args)) == bits(f(*args))
    assert captured.captures == 1


def test_nested_loops_equal_python(device: dt.Device) -> None:
    def f(x: dt.Tensor) -> Any:
        def outer(i: Any, x: Any) -> Any:
            y = x + i
            return dt.fori_loop(0, 3, lambda j, z: z * 0.5 + y * i + j, x)

        return dt.fori_loop(0, 4, outer, x)

    got = both(f, vector())
    want = vector()
    for i in range(4):
        y, z = want + dt.asarray(i), want
        for j in range(3):
            z = z * 0.5 + y * dt.asarray(i) + dt.asarray(j)
        want = z
    assert bits(got) == bits(want)


def test_stencil_in_a_loop_equals_python(device: dt.Device) -> None:
    def body(i: Any, pair: Any) -> Any:
        a, b = pair
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
        return a, b

    pair = vector(64, dt.float64), vector(64, dt.float64, 1)
    got = both(lambda *pair: dt.fori_loop(0, 20, body, pair), *pair)
    a, b = (t.numpy().copy() for t in pair)
    for _ in range(20):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
    assert [x.numpy().tobytes() for x in got] == [a.tobytes(), b.tobytes()]


def test_game_of_life_in_a_loop(device: dt.Device) -> None:
    def step(i: Any, board: Any) -> Any:
        moves = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]
        near = sum(dt.roll(board, m, axis=(0, 1)) for m in moves)
        return dt.astype((near == 3) | ((board == 1) & (near == 2)), dt.int64)

    glider = np.zeros((8, 8), np.int64)
    glider[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = 1
    got = both(lambda b: dt.fori_loop(0, 32, step, b), dt.asarray(glider))
    assert got.tolist() == glider.tolist()  # back at its start


def test_random_numbers_in_loops_advance(device: dt.Device) -> None:
    def f(x: dt.Tensor) -> Any:
        first = dt.random.uniform(8)
        x = dt.fori_loop(0, 3, lambda i, x: x + dt.random.uniform(8), x)
        return x, first, dt.random.uniform(8)

    def plain(x: dt.Tensor) -> Any:
        first = dt.random.uniform(8)
        for _ in range(3):
            x = x + dt.random.uniform(8)
        return x, first, dt.random.uniform(8)

    captured = dt.jit(f)
    dt.random.manual_seed(3)
    want = [bits(plain(vector())) for _ in range(3)]
    dt.random.manual_seed(3)
    assert [bits(captured(vector())) for _ in range(3)] == want


# --- while_loop, cond


@pytest.mark.parametrize("limit", [-100, 3, 50, 1000])
def test_while_loop_stops_when_its_condition_is_false(device: dt.Device, limit: int) -> None:
    def f(x: dt.Tensor) -> Any:
        return dt.while_loop(
            lambda c: (c[0].sum() < limit) & (c[1] < 30),
            lambda c: (c[0] * 1.5 + 1, c[1] + 1),
            (x, 0),
        )

    got = both(f, dt.abs(vector()))
    x, n = dt.abs(vector()), 0
    while float(x.sum()) < limit and n < 30:
        x, n = x * 1.5 + 1, n + 1
    assert bits(got[0]) == bits(x) and got[1].item() == n


def test_newton_iteration_in_a_while_loop(device: dt.Device) -> None:
    def root(a: dt.Tensor) -> Any:
        return dt.while_loop(
            lambda x: dt.max(dt.abs(x * x - a)) > 1e-9, lambda x: 0.5 * (x + a / x), a
        )

    captured = dt.jit(root)
    for values in ([2.0, 9.0], [0.01, 1e4], [1.0, 1.0]):
        a = dt.asarray(values, dtype=dt.float64)
        assert np.allclose(captured(a).numpy() ** 2, values, rtol=1e-6)
    assert captured.captures == 1


def test_cond_runs_one_branch(device: dt.Device) -> None:
    log = dt.zeros(2, dtype=dt.int64)
    dt.evaluate(log)

    def up(x: dt.Tensor, y: dt.Tensor) -> Any:
        log[0] += 1
        return x + y, [y * 2]

    def down(x: dt.Tensor, y: dt.Tensor) -> Any:
        log[1] += 1
        return y, [x[::-1]]

    captured = dt.jit(lambda x, y: dt.cond(x.sum() > y.sum(), up, down, x, y))
    for k, (a, b) in enumerate([(0, 1), (1, 0), (1, 0), (0, 1)]):
        x, y = vector(seed=a), vector(seed=b)
        want = (x + y, [y * 2]) if float(x.sum()) > float(y.sum()) else (y, [x[::-1]])
        assert bits(captured(x, y)) == bits(want)
        assert int(log.sum()) == k + 1
    assert captured.captures == 1
    assert dt.cond(True, lambda: 1, lambda: 2) == 1


def test_cond_in_a_loop(device: dt.Device) -> None:
    def collatz(n: dt.Tensor) -> Any:
        def body(c: Any) -> Any:
            n, count = c
            n = dt.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n)
            return n, count + 1

        return dt.while_loop(lambda c: c[0] != 1, body, (n, 0))[1]

    captured = dt.jit(collatz)
    assert [captured(dt.asarray(n)).item() for n in (1, 6, 7, 27)] == [0, 8, 16, 111]
    assert captured.captures == 1


# --- scan


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_scan_carries_and_stacks(device: dt.Device, n: int, reverse: bool) -> None:
    def f(carried: Any, x: Any) -> Any:
        total = carried["total"] * 0.5 + x[0].sum()
        return {"total": total}, (total * x[1], x[0][1:])

    xs = (dt.reshape(vector(4 * n), (n, 4)), vector(2 * n)[::2])
    got = both(lambda *xs: dt.scan(f, {"total": 0.0}, xs, reverse=reverse), *xs)
    carried: Any = {"total": dt.asarray(0.0)}
    ys: list[Any] = []
    for k in range(n - 1, -1, -1) if reverse else range(n):
        carried, y = f(carried, (xs[0][k], xs[1][k]))
        ys.append(y)
    ys = ys[::-1] if reverse else ys
    want = carried, (dt.stack([y[0] for y in ys]), dt.stack([y[1] for y in ys]))
    assert bits(got) == bits(want)


def test_scan_without_xs(device: dt.Device) -> None:
    def f(pair: Any, x: None) -> Any:
        a, b = pair
        return (b, a + b), a

    _, found = both(lambda: dt.scan(f, (dt.asarray(0), dt.asarray(1)), length=12))
    assert found.tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]


# --- gradients


@pytest.mark.parametrize("captured", [False, True])
def test_gradients_through_loops_equal_unrolled_ones(device: dt.Device, captured: bool) -> None:
    def loss(w: dt.Tensor, xs: dt.Tensor) -> Any:
        h, ys = dt.scan(lambda h, x: (dt.tanh(h * w + x), h * x), dt.zeros(4), xs)
        return dt.fori_loop(0, 3, lambda i, h: h * w + i, h).sum() + ys.sum()

    def plain(w: dt.Tensor, xs: dt.Tensor) -> Any:
        h, ys = dt.zeros(4), []
        for k in range(3):
            ys.append(h * xs[k])
            h = dt.tanh(h * w + xs[k])
        for i in range(3):
            h = h * w + dt.asarray(i)
        return h.sum() + dt.stack(ys).sum()

    def step(f: Any, w: dt.Tensor, xs: dt.Tensor) -> Any:
        value = f(w, xs)
        value.backward()
        g, w.grad = w.grad, None
        return g

    xs = dt.reshape(vector(12), (3, 4))
    mine, theirs = vector(4).requires_grad_(), vector(4).requires_grad_()
    run = dt.jit(lambda w, xs: step(loss, w, xs)) if captured else lambda w, xs: step(loss, w, xs)
    for _ in range(3):
        assert bits(run(mine, xs)) == bits(step(plain, theirs, xs))
    outside = dt.jit(loss)
    outside(mine, xs).backward()
    plain(theirs, xs).backward()
    assert bits(mine.grad) == bits(theirs.grad)


def test_closed_over_weights_of_a_body_get_gradients(device: dt.Device) -> None:
    w = vector().requires_grad_()
    dt.fori_loop(0, 3, lambda i, x: x * w, vector(seed=1)).sum().backward()
    other = vector().requires_grad_()
    (vector(seed=1) * other * other * other).sum().backward()
    assert bits(w.grad) == bits(other.grad)


def test_gradient_through_a_loop_of_unknown_length_raises(device: dt.Device) -> None:
    w = vector().requires_grad_()
    with pytest.raises(dt.GradientError, match=r"while_loop.*fori_loop or dt.scan"):
        dt.while_loop(lambda x: x.sum() < 9, lambda x: x + w * w, vector())
    with pytest.raises(dt.GradientError, match=r"fori_loop.*bounds must be ints"):
        dt.fori_loop(0, dt.asarray(3), lambda i, x: x * w, vector())
    with dt.no_grad():
        assert not dt.fori_loop(0, dt.asarray(3), lambda i, x: x * w, vector()).requires_grad
    f = dt.jit(lambda x: dt.cond(x.sum() > 0, lambda: x * w, lambda: x))
    with pytest.raises(dt.GradientError, match=r"cond.*dt.where"):
        f(vector())


# --- bad input


def test_carry_of_another_shape_or_dtype_raises(device: dt.Device) -> None:
    x = vector()
    with pytest.raises(dt.ShapeError, match=r"must return .*float32\[8\].*float32\[7\]"):
        dt.fori_loop(0, 3, lambda i, x: x[1:], x)
    with pytest.raises(dt.DTypeError, match=r"float32\[8\].*float64\[8\].*astype"):
        dt.while_loop(lambda x: x.sum() < 1, lambda x: x.astype(dt.float64), x)
    with pytest.raises(dt.DTypeError, match=r"the containers of its carry"):
        dt.scan(lambda c, x: ((c, c), x), x, x)
    with pytest.raises(dt.ArgumentTypeError, match=r"pair"):
        dt.scan(lambda c, x: c + x, x[0], x)
    with pytest.raises(dt.ShapeError, match=r"lengths \[3, 8\]"):
        dt.scan(lambda c, x: (c, x), x[0], x, length=3)
    with pytest.raises(dt.ShapeError, match=r"tensors with the same first axis"):
        dt.scan(lambda c, x: (c, x), x)
    with pytest.raises(dt.DTypeError, match=r"must hold tensors and numbers"):
        dt.fori_loop(0, 3, lambda i, x: x, "text")
    with pytest.raises(dt.ArgumentTypeError, match=r"lower"):
        dt.fori_loop(0.5, 3, lambda i, x: x, x)  # type: ignore[arg-type]  # it is wrong
    with pytest.raises(dt.ShapeError, match=r"pred must be one bool.*dt.where"):
        dt.cond(x > 0, lambda: x, lambda: x)
    with pytest.raises(dt.ShapeError, match=r"pred must be one bool"):
        dt.cond(np.ones(2), lambda: x, lambda: x)
    f = dt.jit(lambda x: dt.cond(x.sum() > 0, lambda: x, lambda: x[1:]))
    with pytest.raises(dt.ShapeError, match=r"must return .*float32\[8\].*float32\[7\]"):
        f(x)


def test_body_that_reads_values_raises(device: dt.Device) -> None:
    with pytest.raises(dt.CaptureError, match=r"test_control_flow.py"):
        dt.fori_loop(0, 3, lambda i, x: x * (2 if x.sum() > 0 else 3), vector())
    with pytest.raises(dt.CaptureError, match=r"test_control_flow.py"):
        dt.fori_loop(0, 3, lambda i, x: x * int(i), vector())
    with pytest.raises(dt.CaptureError, match=r"which is constant"):
        dt.while_loop(lambda x: True, lambda x: x, vector())
    assert vector().sum().item()  # the failed loop leaves no trace


def test_eager_loops_equal_python(device: dt.Device) -> None:
    with dt.eager():
        got = dt.fori_loop(0, 4, lambda i, x: x * 2 + i, vector())
    assert bits(got) == bits(in_python(0, 4, lambda i, x: x * 2 + i, vector()))
