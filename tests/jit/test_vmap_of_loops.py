"""`vmap` of a loop in a captured function is one loop, with the bits of a Python loop.

Each function is written once, for `dt`'s control flow or for that of Python. Its arguments are an
example, a number from 0 to 3 and 4 floats, and 4 floats that all examples share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from control_flow_in_python import PYTHON, one_by_one
from dovetail.capture.loop_acts import CountedLoop, WhileLoop
from dovetail.capture.pytree import flatten

EXAMPLES = 4

# --- scan


def carried_differs(c: Any, n: Any, x: Any, w: Any) -> Any:
    return c.scan(lambda y, t: (dt.tanh(y * 1.1 + t), y), x, dt.arange(5.0))


def carried_begins_to_differ(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any, t: Any) -> Any:
        return y + x * t, y * 2

    return c.scan(step, dt.zeros(4), dt.arange(5.0))


def carried_begin_to_differ_one_after_the_other(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any, t: Any) -> Any:
        return [y[1], y[2], y[3] + x[0], y[3] * 1.5], (y[0], y[3] + t)

    return c.scan(step, [0.0, 1.0, 2.0, 3.0], dt.arange(6.0))


def carried_is_the_same_for_each(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any, t: Any) -> Any:
        k, z = y
        return (k + 1, z * w + k), k * t

    return c.scan(step, (0, x), dt.arange(5.0))


def carried_in_containers(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any, t: Any) -> Any:
        z = {"a": y["b"][0] + t, "b": (y["a"] * 2, y["b"][1] + 1)}
        return z, {"y": [z["a"], 7.0], "n": y["b"][1]}

    return c.scan(step, {"a": x, "b": (w, n)}, dt.arange(3.0))


def parts_differ(c: Any, n: Any, x: Any, w: Any) -> Any:
    return c.scan(lambda y, t: (y * t + 1, y + t), n * 1.0, x)


def parts_in_containers(c: Any, n: Any, x: Any, w: Any) -> Any:
    rows = dt.reshape(dt.arange(12.0), (4, 3))

    def step(y: Any, t: Any) -> Any:
        return y * t["x"] + t["w"][0] - t["w"][1].sum(), t["w"][1] * y

    return c.scan(step, w[0], {"x": x, "w": (w, rows)}, reverse=True)


def parts_are_rows(c: Any, n: Any, x: Any, w: Any) -> Any:
    xs = x[:, None] * w[None, ::-1]
    return c.scan(lambda y, t: (y + t[::2], t[1:] * y[0]), x[:2], xs[::-1])


def no_parts(c: Any, n: Any, x: Any, w: Any) -> Any:
    return c.scan(lambda y, t: (y * 0.5 + n, y.sum()), x, None, 6)


def reads_views_from_outside(c: Any, n: Any, x: Any, w: Any) -> Any:
    y, at = x * 3, x[1:3]
    part = y[::-2]
    dt.evaluate(y)

    def step(z: Any, t: Any) -> Any:
        return z * part + at * t, part

    return c.scan(step, w[:2], dt.arange(4.0))


def reads_what_was_written(c: Any, n: Any, x: Any, w: Any) -> Any:
    y, memory = x * 1, dt.zeros(4)
    view, old = memory[1:], memory * 3
    y[1:] += w[0]
    memory[2] = x[0]

    def step(z: Any, t: Any) -> Any:
        return z * 0.5 + y + memory, view * t + old[0]

    return c.scan(step, x, dt.arange(4.0))


def writes_what_it_carries(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any, t: Any) -> Any:
        y[1:] += y[:-1] * t
        t += 100
        return y, y[0] + t

    return c.scan(step, x, w), x, w


def writes_what_begins_to_differ(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any, t: Any) -> Any:
        y += x
        t *= x[0]
        return y, t

    return c.scan(step, w, w), w


def writes_memory_of_its_own(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any, t: Any) -> Any:
        z = dt.zeros(4)
        z[1:] = y[:-1]
        z[0] = t
        return z, z[::2]

    return c.scan(step, x, w)


def writes_outside(c: Any, n: Any, x: Any, w: Any) -> Any:
    y, total = x * 1, dt.zeros(())

    def step(z: Any, t: Any) -> Any:
        total.add_(t)
        y[1:] += z
        return z * 2, y[1] + total

    return c.scan(step, n * 1.0, w), y, total


def writes_outside_what_is_the_same_for_each(c: Any, n: Any, x: Any, w: Any) -> Any:
    total = dt.zeros(())

    def step(z: Any, t: Any) -> Any:
        total.add_(t)
        return z * total, total * 1

    return c.scan(step, x, w), total


def result_is_written_afterwards(c: Any, n: Any, x: Any, w: Any) -> Any:
    (k, y), ys = c.scan(lambda y, t: ((y[0] + 1, y[1] * t), y), (0, x), w)
    k += n
    y[0] = 9.0
    ys[1][0] += n
    ys[0][1:] = n
    return k, y, ys


def scan_in_scan(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any, t: Any) -> Any:
        return c.scan(lambda z, s: (z * s + y + t, z), y, dt.arange(3.0) + x[0])

    return c.scan(step, n * 1.0, w)


def scan_in_scan_writes(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any, t: Any) -> Any:
        v = y * 1

        def inner(z: Any, s: Any) -> Any:
            v[0] += z
            return z + s, v.sum()

        return v, c.scan(inner, t, w)

    return c.scan(step, x, w)


def branch_in_scan(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any, t: Any) -> Any:
        return c.cond(y.sum() > t, lambda: y.mul_(-0.5), lambda: y * 2 + t), y[0] * 1

    return c.scan(step, x, w)


def scan_in_branch(c: Any, n: Any, x: Any, w: Any) -> Any:
    def scanned() -> Any:
        def step(y: Any, t: Any) -> Any:
            y += t
            return y, y * 2

        return c.scan(step, x, w)[0]

    return c.cond(n > 1, scanned, lambda: x - 1), x


def gradient_in_scan(c: Any, n: Any, x: Any, w: Any) -> Any:
    gradient = dt.func.grad(lambda q: (q**4 * w).sum() + (q * x).sum())

    def leap(state: Any, t: Any) -> Any:
        q, p = state
        p = p - 0.01 * gradient(q)
        q = q + 0.02 * p
        return (q, p), q[0]

    return c.scan(leap, (x * 0.25, w * 0.5), None, 5)


def sort_in_scan(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any, t: Any) -> Any:
        return dt.sort(y * t - x) + dt.cumulative_sum(y)[::-1], y[dt.argsort(w)[0]]

    return c.scan(step, x, w)


def solve_in_scan(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any, t: Any) -> Any:
        a = dt.eye(2) * (3 + n) + y[:, None] * y[None, :] * 0.125
        return dt.linalg.solve(a, y + t), dt.linalg.cholesky(a)

    return c.scan(step, x[:2], w)


SCANS = (
    carried_differs, carried_begins_to_differ, carried_begin_to_differ_one_after_the_other,
    carried_is_the_same_for_each, carried_in_containers, parts_differ, parts_in_containers,
    parts_are_rows, no_parts, reads_views_from_outside, reads_what_was_written,
    writes_what_it_carries, writes_what_begins_to_differ, writes_memory_of_its_own, writes_outside,
    writes_outside_what_is_the_same_for_each, result_is_written_afterwards, scan_in_scan,
    scan_in_scan_writes, branch_in_scan, scan_in_branch, gradient_in_scan, sort_in_scan,
    solve_in_scan,
)  # fmt: skip

# --- fori_loop and while_loop


def rounds(c: Any, n: Any, x: Any, w: Any) -> Any:
    return c.fori_loop(-1, 4, lambda i, y: (y[0] * w + i, y[1] + x[i % 4]), (x, 0.0))


def no_rounds(c: Any, n: Any, x: Any, w: Any) -> Any:
    return c.fori_loop(3, 3, lambda i, y: (y[0] * 2, x), (x, w)), x


def rounds_between_tensors(c: Any, n: Any, x: Any, w: Any) -> Any:
    last = w.argmax() + 3
    return c.fori_loop(0, last, lambda i, y: y * 0.5 + i + x, w)


def rounds_of_its_own(c: Any, n: Any, x: Any, w: Any) -> Any:
    return c.fori_loop(n, w.argmax() + 4, lambda i, y: (y[0] * 0.5 + i, y[1] + 1), (x, 0))


def upper_below_lower(c: Any, n: Any, x: Any, w: Any) -> Any:
    return c.fori_loop(3, -1, lambda i, y: y * w, x), c.fori_loop(n, n - 2, lambda i, y: y * w, x)


def rounds_between_narrow_dtypes(c: Any, n: Any, x: Any, w: Any) -> Any:
    small = n.astype(dt.uint8)
    up = c.fori_loop(small + 250, 258, lambda i, y: y * 0.5 + i, x)  # the index passes 255
    return c.fori_loop(-2, small, lambda i, y: y * 0.5 + i, x), up


def goes_on_together(c: Any, n: Any, x: Any, w: Any) -> Any:
    return c.while_loop(lambda y: y[0] < 5, lambda y: (y[0] + 1, y[1] * w + x), (0, w))


def goes_on_alone(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any) -> Any:
        k, z = y
        return k + 1, z * 1.5 + w

    return c.while_loop(lambda y: y[1].sum() + y[0] < 40, step, (0, x))


def begins_to_go_on_alone(c: Any, n: Any, x: Any, w: Any) -> Any:
    return c.while_loop(lambda y: y[0] < 20, lambda y: (y[1], y[1] * 2 + n + 1), (0, 1))


def writes_while_it_goes_on(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any) -> Any:
        k, z = y
        z[::2] *= 3
        k += 1
        return k, z

    return c.while_loop(lambda y: y[0] < n, step, (0, x)), x


def condition_writes_what_is_carried(c: Any, n: Any, x: Any, w: Any) -> Any:
    def goes_on(y: Any) -> Any:
        y[1].add_(1)
        return y[0] < n

    return c.while_loop(goes_on, lambda y: (y[0] + 1, y[1]), (0, x)), x


def loop_in_branch(c: Any, n: Any, x: Any, w: Any) -> Any:
    def grown() -> Any:
        return c.while_loop(lambda y: y[0] < 30, lambda y: y + n, x)

    return c.cond(n > 0, grown, lambda: x * 1), x


def loops_in_loops(c: Any, n: Any, x: Any, w: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        z = c.while_loop(lambda z: z.sum() < i, lambda z: z + abs(x) + 1, y)
        return c.scan(lambda a, t: (a * 0.5 + t, t), z, dt.arange(2.0) * i)[0]

    return c.fori_loop(0, 4, body, x)


def branch_in_loop(c: Any, n: Any, x: Any, w: Any) -> Any:
    def step(y: Any) -> Any:
        k, z = y
        return k + 1, c.cond(z.sum() > 1, lambda: z.mul_(-0.5), lambda: z + w)

    return c.while_loop(lambda y: y[0] < n, step, (n * 0, x))


LOOPS = (
    rounds, no_rounds, upper_below_lower, rounds_between_tensors, rounds_of_its_own,
    rounds_between_narrow_dtypes, goes_on_together, goes_on_alone, begins_to_go_on_alone,
    writes_while_it_goes_on, condition_writes_what_is_carried, loop_in_branch, loops_in_loops,
    branch_in_loop,
)  # fmt: skip
FUNCTIONS = {f.__name__: f for f in (*SCANS, *LOOPS)}
UNROLLED = ("writes_outside",)  # a write from outside of the loop to a tensor of the examples


def given() -> tuple[dt.Tensor, dt.Tensor, dt.Tensor]:
    x = np.random.default_rng(0).integers(-3, 4, (EXAMPLES, 4)).astype("f4")
    return dt.asarray([0, 3, 1, 2]), dt.asarray(x), dt.asarray([1.0, -0.5, 2.0, 0.25])


def values(made: Any) -> list[Any]:
    return [(x.dtype.name, x.tolist()) for x in flatten(made).leaves]


def expected(f: Callable[..., Any]) -> list[Any]:
    n, x, w = given()
    return values(one_by_one(lambda n, x: f(PYTHON, n, x, w * 1), (n, x)))


def over(f: Callable[..., Any], n: Any, x: Any, w: Any) -> Any:
    return dt.vmap(lambda n, x, w: f(dt, n, x, w * 1), in_axes=(0, 0, None))(n, x, w)


def over_last_axis(f: Callable[..., Any], n: Any, x: Any, w: Any) -> Any:
    return dt.vmap(lambda n, x, w: f(dt, n, x, w * 1), in_axes=(0, 1, None))(n, x.T * 1, w)


def over_pairs(f: Callable[..., Any], n: Any, x: Any, w: Any) -> Any:
    inner = dt.vmap(lambda n, x, w: f(dt, n, x, w * 1), in_axes=(0, 0, None))
    pairs = [a.reshape((2, EXAMPLES // 2, *a.shape[1:])) for a in (n, x)]
    made = flatten(dt.vmap(inner, in_axes=(0, 0, None))(*pairs, w))
    leaves = [t.reshape((EXAMPLES, *t.shape[2:])) for t in made.leaves]
    return made.tree.unflatten(leaves)


def over_diagonal(f: Callable[..., Any], n: Any, x: Any, w: Any) -> Any:
    """Map two axes of examples, of which one is only n's, the other only x's; return the
    diagonal.
    """
    inner = dt.vmap(lambda n, x, w: f(dt, n, x * 1, w * 1), in_axes=(None, 0, None))
    made = flatten(dt.vmap(inner, in_axes=(0, None, None))(n, x, w))
    at = dt.arange(EXAMPLES)
    return made.tree.unflatten([t[at, at] for t in made.leaves])


WAYS = [over, over_last_axis, over_pairs, over_diagonal]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_captured_vmap_of_loop_equals_a_python_loop(
    name: str, way: Callable[..., Any], device: dt.Device
) -> None:
    f = FUNCTIONS[name]
    captured = dt.jit(lambda *args: way(f, *args))
    for _ in range(2):
        assert values(captured(*given())) == expected(f)
    assert captured.captures == 1


def acts(captured: Any) -> list[Any]:
    ((_, program),) = captured.programs
    found, waiting = list[Any](), [program]
    while waiting:
        program = waiting.pop()
        found += program.acts
        waiting += [p for a in program.acts for p in a.programs]
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in UNROLLED])
def test_captured_vmap_of_loop_is_one_loop(
    name: str, way: Callable[..., Any], device: dt.Device
) -> None:
    captured = dt.jit(lambda *args: way(FUNCTIONS[name], *args))
    captured(*given())
    assert (
        any(isinstance(a, CountedLoop | WhileLoop) for a in acts(captured)) or name == "no_rounds"
    )


GROWING: dict[str, Callable[[int, dt.Tensor], Any]] = {
    "scan": lambda n, x: dt.scan(lambda y, t: (dt.tanh(y * 1.1 + t), y), x, dt.arange(float(n))),
    "scan of parts": lambda n, x: dt.scan(lambda y, t: (y + t, y), x, dt.arange(n) * x),
    "fori_loop": lambda n, x: dt.fori_loop(0, n, lambda i, y: dt.tanh(y * 1.1 + i), x),
    "while_loop": lambda n, x: dt.while_loop(
        lambda y: y[0] < n, lambda y: (y[0] + 1, -y[1]), (x, x)
    ),
}


@pytest.mark.parametrize("way", ["vmap", "nested"])
@pytest.mark.parametrize("name", GROWING)
def test_capture_size_of_vmap_of_loop_is_independent_of_trip_count(
    name: str, way: str, device: dt.Device
) -> None:
    sizes, runs = [], []
    for n in (10, 1000):
        calls = 0

        def f(x: dt.Tensor, n: int = n) -> Any:
            nonlocal calls
            calls += 1
            return GROWING[name](n, x)

        def body_runs(x: dt.Tensor) -> Any:
            return dt.vmap(dt.vmap(f))(x[:, None]) if way == "nested" else dt.vmap(f)(x)

        captured = dt.jit(body_runs)
        captured(dt.arange(3.0))
        sizes.append(len(acts(captured)))
        runs.append(calls)
    assert sizes[0] == sizes[1] < 60 and runs == [1, 1]


@pytest.mark.parametrize("randomness", ["different", "same"])
@pytest.mark.parametrize("name", ["scan", "fori_loop", "while_loop"])
def test_random_numbers_in_vmap_of_loop_are_those_of_each_iteration(
    name: str, randomness: str, device: dt.Device
) -> None:
    def drawn(y: Any) -> Any:
        return y * 0.5 + dt.random.rand(2) * dt.random.randn(2)

    loops: dict[str, Callable[[Any], Any]] = {
        "scan": lambda x: dt.scan(lambda y, t: (drawn(y), y), x, dt.arange(4.0)),
        "fori_loop": lambda x: dt.fori_loop(0, 4, lambda i, y: drawn(y), x),
        "while_loop": lambda x: dt.while_loop(
            lambda y: y[0] < 4, lambda y: (y[0] + 1, drawn(y[1])), (0, x)
        ),
    }
    mapped = dt.vmap(loops[name], randomness=randomness)
    captured, x, made = dt.jit(mapped), dt.arange(6.0).reshape((3, 2)), []
    for f in (mapped, captured):
        dt.random.manual_seed(5)
        made.append([values(f(x)) for _ in range(3)])
    assert made[0] == made[1]


def test_gradients_of_captured_vmap_of_scan_equal_plain(device: dt.Device) -> None:
    def one(x: dt.Tensor) -> dt.Tensor:
        return dt.scan(lambda y, t: (dt.tanh(y * 1.1 + t), y), x, dt.arange(4.0))[0].sum()

    inside = dt.vmap(dt.func.grad(one))
    outside = dt.func.grad(lambda x: dt.vmap(one)(x).sum())
    x = dt.arange(6.0).reshape((3, 2))
    for f in (inside, outside):
        assert values(dt.jit(f)(x)) == values(f(x)) == values(one_by_one(dt.func.grad(one), (x,)))
    w = dt.ones(2, requires_grad=True)

    def closure(x: dt.Tensor) -> dt.Tensor:
        return dt.scan(lambda y, t: (y * w + t, y), x, dt.arange(4.0))[0]

    dt.jit(dt.vmap(closure))(x).sum().backward()
    assert w.grad.tolist() == dt.func.grad(
        lambda v: sum(dt.fori_loop(0, 4, lambda i, y: y * v + i, r).sum() for r in x)
    )(dt.ones(2)).tolist()  # fmt: skip


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("reads", ["parameter", "both"])
@pytest.mark.parametrize("carries", ["example", "shared"])
def test_gradients_of_shared_rows_of_captured_vmap_of_scan_equal_plain(
    carries: str, reads: str, writes: bool, device: dt.Device
) -> None:
    found = []
    for wrap in (dt.jit, lambda f: f):
        w, shared = dt.asarray([3.0, -2.0]).requires_grad_(), dt.asarray([1.0, 2.0])

        def one(x: dt.Tensor, ts: dt.Tensor, w: dt.Tensor = w, shared: dt.Tensor = shared) -> Any:
            def body(y: dt.Tensor, t: dt.Tensor) -> tuple[dt.Tensor, dt.Tensor]:
                if writes:
                    y[...] += t
                return y * 0.5, w * 1 if reads == "parameter" else w[0] * y

            return dt.scan(body, x if carries == "example" else shared * 1, ts)[1]

        f = wrap(dt.vmap(one))
        for _ in range(2):
            (f(dt.arange(6.0).reshape((3, 2)), dt.ones((3, 4))) ** 2).sum().backward()
        found.append(w.grad.tolist())
    assert found[0] == found[1]


def test_error_in_body_names_the_carry_of_one_example(device: dt.Device) -> None:
    f = dt.jit(dt.vmap(lambda x: dt.scan(lambda y, t: (y[1:], t), x, dt.arange(3.0))))
    with pytest.raises(
        dt.ShapeError, match=r"scan: the body must return .*float32\[4\] on .* got float32\[3\]"
    ):
        f(dt.ones((2, 4)))
    g = dt.jit(dt.vmap(lambda x: dt.scan(lambda y, t: (y * float(t), t), x, dt.arange(3.0))))
    with pytest.raises(dt.CaptureError, match="while a function is captured"):
        g(dt.ones((2, 4)))
    assert dt.vmap(lambda x: x + 1)(dt.ones(2)).tolist() == [2.0, 2.0]


def test_shared_write_in_nested_vmap_leaves_earlier_reads(
    device: dt.Device,
) -> None:
    def f(n: dt.Tensor, x: dt.Tensor) -> tuple[dt.Tensor, ...]:
        y, total = x * 1, dt.zeros(())
        dt.evaluate(total)
        y += n
        before = y + total
        total.add_(1)
        y += n
        return before, y + total

    n, x = dt.asarray([0.0, 3.0]), dt.asarray([1.0, 5.0])
    first, second = dt.vmap(dt.vmap(f, in_axes=(None, 0)), in_axes=(0, None))(n, x)
    assert first.tolist() == [[1.0, 5.0], [4.0, 8.0]]
    assert second.tolist() == [[2.0, 6.0], [8.0, 12.0]]


def test_branch_with_a_shared_predicate_is_captured(device: dt.Device) -> None:
    w = dt.zeros(2)

    def f(p: Any, x: Any) -> Any:
        y = x * 1

        def yes() -> Any:
            w.add_(1)
            return y.add_(1) * 2

        return dt.cond(p > 0, yes, lambda: y.sub_(1) * 1), y

    captured = dt.jit(dt.vmap(f, in_axes=(None, 0)))
    x = dt.asarray([[1.0, 1.0], [2.0, 2.0]])
    for sign, result, y, written in ((1.0, 4.0, 2.0, 1.0), (-1.0, 0.0, 0.0, 1.0)):
        made = captured(dt.asarray(sign), x)
        assert [t[0, 0].item() for t in made] == [result, y] and w.tolist() == [written] * 2
    assert captured.captures == 1
