"""Writes in branches and loops affect only the examples that take them, and no initial value.

Each function is written once, for `dt`'s control flow or for that of Python, which is the
reference.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from control_flow_in_python import PYTHON, fori_loop, one_by_one
from dovetail.capture.pytree import flatten, rebuild
from dovetail.engine.events import counters
from dovetail.tensor.batched_assign import write_together

EXAMPLES = 4
MODES = ["plain", "eager", "jit", "vmap", "jit vmap", "nested vmap"]

# --- functions of one example: a bool, a number from 0 to 3, and 4 floats


def both_branches_write(c: Any, p: Any, n: Any, x: Any) -> Any:
    y = x * 1

    def yes(y: Any) -> Any:
        y += 10
        return y * 1

    def no(y: Any) -> Any:
        y -= 5
        return y * 2

    return c.cond(p, yes, no, y), y


def branches_write_views(c: Any, p: Any, n: Any, x: Any) -> Any:
    y, z = x * 1, x * 3

    def yes() -> Any:
        y[1:3] = z[::2]
        z[0].add_(1)
        return y.sum()

    def no() -> Any:
        y[::-1][:2] += 7
        z[...] = y * 2
        return z.sum()

    return c.cond(p, yes, no), y, z


def branch_writes_argument(c: Any, p: Any, n: Any, x: Any) -> Any:
    return c.cond(p, lambda: x.mul_(2).sum(), lambda: x.sum() * 0)


def branch_writes_what_is_the_same_for_each(c: Any, p: Any, n: Any, x: Any) -> Any:
    shared = dt.zeros(4)
    c.cond(p, lambda: shared.add_(1), lambda: shared * 1)
    return shared


def branch_writes_at_places(c: Any, p: Any, n: Any, x: Any) -> Any:
    y, at = x * 1, dt.asarray([2, 0])

    def yes() -> Any:
        y[at] = x[:2] * 5
        return y * 1

    return c.cond(p, yes, lambda: y * 1), y


def branch_writes_out(c: Any, p: Any, n: Any, x: Any) -> Any:
    y = x * 1
    c.cond(p, lambda: dt.add(x, 1, out=y) * 1, lambda: dt.multiply(x, 3, out=y) * 1)
    return y


def branch_writes_pending_value(c: Any, p: Any, n: Any, x: Any) -> Any:
    y = x * 1
    y[0] = 9

    def yes() -> Any:
        value = x * 2
        y[...] = value
        return value

    return c.cond(p, yes, lambda: x * 1), y


def branch_in_branch(c: Any, p: Any, n: Any, x: Any) -> Any:
    y = x * 1

    def inner(value: float) -> Any:
        return c.cond(n > 1, lambda: y.add_(value), lambda: y[1:].mul_(value).sum() + y)

    return c.cond(p, lambda: inner(2.0), lambda: inner(3.0)), y


def branch_has_memory_of_its_own(c: Any, p: Any, n: Any, x: Any) -> Any:
    def yes() -> Any:
        y = dt.zeros(4)
        y[1:] = x[1:]
        y[0] = 1.0
        return y

    return c.cond(p, yes, lambda: x * 2)


def condition_reads_what_branch_writes(c: Any, p: Any, n: Any, x: Any) -> Any:
    y = x * 1
    pred = y[0] > 0

    def no() -> Any:
        y.add_(1)
        return y * 1

    return c.cond(pred, lambda: y.mul_(-1), no), c.cond(pred, lambda: y * 2, lambda: y), pred


def loop_writes_outside(c: Any, p: Any, n: Any, x: Any) -> Any:
    total, y = dt.zeros(()), x * 1

    def body(i: Any) -> Any:
        total.add_(1)
        y[1:] += y[:-1]
        return i + 1

    return c.while_loop(lambda i: i < n, body, n * 0), total, y


def loop_writes_argument(c: Any, p: Any, n: Any, x: Any) -> Any:
    def body(i: Any) -> Any:
        x.add_(1)
        return i + 1

    return c.while_loop(lambda i: i < n, body, n * 0)


def condition_writes(c: Any, p: Any, n: Any, x: Any) -> Any:
    asked = n * 0

    def goes_on(i: Any) -> Any:
        asked.add_(1)
        return i < n

    return c.while_loop(goes_on, lambda i: i + 1, n * 0), asked


def loop_writes_what_it_carries(c: Any, p: Any, n: Any, x: Any) -> Any:
    def body(v: Any) -> Any:
        i, y = v
        y[::2] *= 3
        return i + 1, y

    return c.while_loop(lambda v: v[0] < n, body, (n * 0, x)), x


def branch_in_loop(c: Any, p: Any, n: Any, x: Any) -> Any:
    y = x * 1

    def body(i: Any) -> Any:
        c.cond(y.sum() > 1, lambda: y.mul_(-0.5), lambda: y[1:3].add_(2).sum() + y)
        return i + 1

    return c.while_loop(lambda i: i < n, body, n * 0), y


def loop_in_branch(c: Any, p: Any, n: Any, x: Any) -> Any:
    y = x * 1

    def grown() -> Any:
        def body(z: Any) -> Any:
            y[0] += 1
            return z + 1

        return c.while_loop(lambda z: z.sum() < 20, body, y)

    return c.cond(p, grown, lambda: y - 100), y


def branch_in_counted_loop(c: Any, p: Any, n: Any, x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        return c.cond(i < n, lambda: y.add_(1), lambda: y[::-1].mul_(2))

    return c.fori_loop(0, 3, body, x), x


def counted_loop_with_bound_of_its_own(c: Any, p: Any, n: Any, x: Any) -> Any:
    y = x * 1

    def body(i: Any, z: Any) -> Any:
        y.sub_(z)
        return z + i

    return c.fori_loop(0, n, body, x), y


def scan_in_branch(c: Any, p: Any, n: Any, x: Any) -> Any:
    y, xs = x * 1, x * 2

    def step(carried: Any, part: Any) -> Any:
        y[0] += part
        part += 100
        return carried + part, carried

    return c.cond(p, lambda: c.scan(step, x[0], xs), lambda: (x[1] * 1, y * 1)), y, xs


def loop_in_loop(c: Any, p: Any, n: Any, x: Any) -> Any:
    y = x * 1

    def body(i: Any) -> Any:
        def inner(j: Any) -> Any:
            y[1:2] += 1
            return j + 1

        c.while_loop(lambda j: j < i, inner, n * 0)
        return i + 1

    return c.while_loop(lambda i: i < n, body, n * 0), y


FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        both_branches_write, branches_write_views, branch_writes_argument,
        branch_writes_what_is_the_same_for_each, branch_writes_at_places, branch_writes_out,
        branch_writes_pending_value, branch_in_branch, branch_has_memory_of_its_own,
        condition_reads_what_branch_writes, loop_writes_outside, loop_writes_argument,
        condition_writes, loop_writes_what_it_carries, branch_in_loop, loop_in_branch,
        branch_in_counted_loop, counted_loop_with_bound_of_its_own, scan_in_branch, loop_in_loop,
    )
}  # fmt: skip
# The host checks whether any example continues, because the loop writes to outer examples.
HOST_DECIDES = (
    "loop_writes_outside", "loop_writes_argument", "condition_writes", "branch_in_loop",
    "loop_in_", "counted_loop",
)  # fmt: skip


def examples() -> tuple[dt.Tensor, dt.Tensor, dt.Tensor]:
    x = np.random.default_rng(0).integers(-3, 4, (EXAMPLES, 4)).astype("f4")
    return dt.asarray([True, False, False, True]), dt.asarray([0, 3, 1, 2]), dt.asarray(x)


def values(made: Any) -> list[Any]:
    return [x.tolist() for x in flatten(made).leaves]


def run(mode: str, f: Callable[..., Any], args: Any) -> Any:
    if mode == "eager":
        with dt.eager():
            return one_by_one(f, args)
    if mode == "jit":
        captured = dt.jit(f)
        return one_by_one(captured, args)
    if mode == "nested vmap":
        pairs = [a.reshape((2, EXAMPLES // 2, *a.shape[1:])) for a in args]
        made = flatten(dt.vmap(dt.vmap(f))(*pairs))
        return rebuild(made, [t.reshape((EXAMPLES, *t.shape[2:])) for t in made.leaves])
    if mode == "vmap":
        return dt.vmap(f)(*args)
    if mode == "jit vmap":
        return dt.jit(dt.vmap(f))(*args)
    return one_by_one(f, args)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_write_in_branch_or_loop_affects_only_its_example(
    name: str, mode: str, device: dt.Device
) -> None:
    if mode == "jit vmap" and name.startswith(HOST_DECIDES):
        pytest.skip("the host asks whether any example goes on, which no captured function may")
    f, args, expected_args = FUNCTIONS[name], examples(), examples()
    want = values(one_by_one(lambda *a: f(PYTHON, *a), expected_args))
    assert values(run(mode, lambda *a: f(dt, *a), args)) == want
    assert values(args) == values(expected_args)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if not n.endswith(("argument", "out"))])
def test_gradient_of_write_in_branch_or_loop_affects_only_its_example(
    name: str, device: dt.Device
) -> None:
    f, args = FUNCTIONS[name], examples()

    def total(c: Any, p: Any, n: Any, x: Any) -> Any:
        leaves = flatten(f(c, p, n, x * 1)).leaves
        return sum((t.astype(dt.float32) ** 2).sum() for t in leaves) + x.sum() * 0

    want = one_by_one(lambda p, n, x: dt.func.grad(lambda x: total(PYTHON, p, n, x))(x), args)
    inside = dt.vmap(lambda p, n, x: dt.func.grad(lambda x: total(dt, p, n, x))(x))(*args)
    p, n, x = args
    outside = dt.func.grad(lambda x: dt.vmap(lambda *a: total(dt, *a))(p, n, x).sum())(x)
    assert inside.tolist() == want.tolist() and outside.tolist() == want.tolist()


def test_write_of_a_per_example_branch_to_an_outer_tensor_raises(
    device: dt.Device,
) -> None:
    outside = dt.zeros(4)
    outside.numpy()
    p, n, _ = examples()
    with pytest.raises(dt.TransformError, match=r"differs between examples writes.*axis"):
        dt.vmap(lambda p: dt.cond(p, lambda: outside.add_(1), lambda: outside * 1))(p)

    def body(i: dt.Tensor) -> dt.Tensor:
        outside.add_(1)
        return i + 1

    with pytest.raises(dt.TransformError, match="differs between examples writes"):
        dt.vmap(lambda n: dt.while_loop(lambda i: i < n, body, n * 0))(n)
    assert outside.tolist() == [0.0] * 4
    dt.vmap(lambda p: dt.cond(p, lambda: p, lambda: ~p))(p)
    outside += 1  # no branch is taken any more
    assert outside.tolist() == [1.0] * 4


def test_batched_write_in_vmap(device: dt.Device) -> None:
    p, _, x = examples()
    outside, other = dt.ones(4), dt.ones(3)
    dt.evaluate(outside, other)

    def f(p: dt.Tensor, x: dt.Tensor) -> tuple[dt.Tensor, ...]:
        write_together("test", [outside, other], [outside * 2, other * 3])
        y, z = x * 1, x * 2
        dt.evaluate(y, z)

        def yes() -> dt.Tensor:
            write_together("test", [y, z], [z * 2, y * 3])
            return y * 1

        return dt.cond(p, yes, lambda: z * 1), y, z, outside * x

    first, y, z, scaled = dt.vmap(f)(p, x)
    assert outside.tolist() == [2.0] * 4 and other.tolist() == [3.0] * 3
    assert (
        scaled.tolist() == (x * 2).tolist()
        and first.tolist() == dt.where(p[:, None], y, z).tolist()
    )
    assert y.tolist() == (x * dt.where(p, 4.0, 1.0)[:, None]).tolist()
    assert z.tolist() == (x * dt.where(p, 3.0, 2.0)[:, None]).tolist()


# --- one tensor with two names


ALIASES: dict[str, Callable[[dt.Tensor], tuple[dt.Tensor, ...]]] = {
    "same": lambda t: (t, t),
    "view": lambda t: (t, t[:]),
    "reversed": lambda t: (t, t[:, ::-1]),
    "part": lambda t: (t, t[:, 1:3]),
    "three": lambda t: (t[:, :2], t[:, 1:3], t),
}


@pytest.mark.parametrize("is_pending", [True, False])
@pytest.mark.parametrize("name", ALIASES)
def test_aliasing_arguments_see_each_others_writes_in_vmap(
    name: str, is_pending: bool, device: dt.Device
) -> None:
    def f(*args: dt.Tensor) -> Any:
        before = [a * 10 for a in args]
        args[0].add_(1)
        between = [a * 10 for a in args]
        args[-1][0] = 50.0
        return before, between, [a * 1 for a in args]

    made = []
    for over in (lambda *a: dt.vmap(f)(*a), lambda *a: one_by_one(f, a)):
        t = dt.arange(float(4 * EXAMPLES)).reshape(EXAMPLES, 4) * 1
        if not is_pending:
            t.numpy()
        made.append((values(over(*ALIASES[name](t))), t.tolist()))
    assert made[0] == made[1]


# --- initial values


def writes_what_it_carries(c: Any, init: Any, xs: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        y += i
        return y

    return c.fori_loop(0, 3, body, init)


def writes_a_view(c: Any, init: Any, xs: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        y[1:] *= 2
        return y * 1

    return c.fori_loop(0, 3, body, init)


def writes_what_while_carries(c: Any, init: Any, xs: Any) -> Any:
    def body(v: Any) -> Any:
        v[1].add_(1)
        return v[0] + 1, v[1]

    return c.while_loop(lambda v: v[0] < 3, body, (0, init))


def writes_parts(c: Any, init: Any, xs: Any) -> Any:
    def step(carried: Any, x: Any) -> Any:
        x += 1
        return carried + x, x

    return c.scan(step, init, xs)


def stacks_what_it_writes(c: Any, init: Any, xs: Any) -> Any:
    def step(carried: Any, x: Any) -> Any:
        carried += x
        return carried, carried

    return c.scan(step, init, xs)


def carries_one_tensor_twice(c: Any, init: Any, xs: Any) -> Any:
    def body(i: Any, v: Any) -> Any:
        v[0].add_(1)
        return v[0], v[0]

    return c.fori_loop(0, 3, body, (init, init))


def swaps(c: Any, init: Any, xs: Any) -> Any:
    def body(i: Any, v: Any) -> Any:
        v[0].add_(1)
        return v[1], v[0]

    return c.fori_loop(0, 3, body, (init, init * 2))


def carries_a_tensor_from_outside(c: Any, init: Any, xs: Any) -> Any:
    other = init * 2

    def body(i: Any, y: Any) -> Any:
        y.add_(1)
        return other

    return c.fori_loop(0, 3, body, init), other


def writes_initial_value_by_its_name(c: Any, init: Any, xs: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        init.add_(1)
        return y * 2

    return c.fori_loop(0, 3, body, init)


def writes_parts_by_their_name(c: Any, init: Any, xs: Any) -> Any:
    def step(carried: Any, x: Any) -> Any:
        xs[...] = 100.0
        return carried + x, x

    return c.scan(step, init, xs)


def writes_parts_by_their_name_while(c: Any, init: Any, xs: Any) -> Any:
    def body(v: Any) -> Any:
        xs[0] += 1
        return v[0] + 1, v[1] * 2

    return c.while_loop(lambda v: v[0] < 3, body, (0, xs[0]))


def writes_the_bound(c: Any, init: Any, xs: Any) -> Any:
    upper = dt.asarray(3) * 1

    def body(i: Any, y: Any) -> Any:
        upper.add_(1)
        return y + i

    return c.fori_loop(0, upper, body, init), upper


INITIAL: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        writes_what_it_carries, writes_a_view, writes_what_while_carries, writes_parts,
        stacks_what_it_writes, carries_one_tensor_twice, swaps, carries_a_tensor_from_outside,
        writes_initial_value_by_its_name, writes_parts_by_their_name,
        writes_parts_by_their_name_while, writes_the_bound,
    )
}  # fmt: skip


@pytest.mark.parametrize("layout", ["contiguous", "strided", "pending"])
@pytest.mark.parametrize("mode", [*MODES, "gradients"])
@pytest.mark.parametrize("name", INITIAL)
def test_initial_value_and_xs_of_a_loop_are_not_modified(
    name: str, mode: str, layout: str, device: dt.Device
) -> None:
    f = INITIAL[name]
    if mode in ("jit vmap", "gradients") and ("while" in name or "bound" in name):
        pytest.skip("gradients and captured examples need a loop of known length")

    def arguments() -> tuple[dt.Tensor, dt.Tensor]:
        init = dt.arange(float(EXAMPLES * 4)).reshape(EXAMPLES, 4) * 1
        xs = dt.arange(float(EXAMPLES * 12)).reshape(EXAMPLES, 3, 4) * 0.5
        if layout == "strided":
            init = dt.stack([init, init], axis=2)[..., 0]
            xs = dt.stack([xs, xs], axis=3)[..., 0]
        if layout != "pending":
            init.numpy(), xs.numpy()
        return init, xs

    expected_args, args = arguments(), arguments()
    want = values(one_by_one(lambda *a: f(PYTHON, *a), expected_args))
    if mode == "gradients":
        args = tuple(a.requires_grad_() * 1 for a in args)
        made = values(one_by_one(lambda *a: f(dt, *a), args))
    else:
        made = values(run(mode, lambda *a: f(dt, *a), args))
    assert made == want and values(args) == values(expected_args)


@pytest.mark.parametrize("name", [n for n in INITIAL if "while" not in n and "bound" not in n])
def test_gradients_of_loop_that_writes_equal_the_python_loop(name: str, device: dt.Device) -> None:
    def total(c: Any, init: Any, xs: Any) -> Any:
        return sum((t**2).sum() for t in flatten(INITIAL[name](c, init * 1, xs * 1)).leaves)

    init, xs = dt.arange(8.0).reshape(2, 4), dt.arange(24.0).reshape(2, 3, 4)
    want = [
        dt.func.grad(lambda i, x: total(PYTHON, i, x))(i, x).tolist()
        for i, x in zip(dt.unstack(init), dt.unstack(xs), strict=True)
    ]
    for context in (nullcontext(), dt.eager()):
        with context:
            gradient = dt.func.grad(lambda i, x: total(dt, i, x))
            made = [
                gradient(i, x).tolist()
                for i, x in zip(dt.unstack(init), dt.unstack(xs), strict=True)
            ]
            assert made == want and dt.vmap(gradient)(init, xs).tolist() == want


def test_index_of_eager_loop_to_tensor_bound_advances(device: dt.Device) -> None:
    def f(lower: Any, upper: Any) -> dt.Tensor:
        with dt.eager():
            return dt.fori_loop(lower, upper, lambda i, c: c * 10 + i, dt.asarray(0))

    for lower, upper in ((0, dt.asarray(3)), (dt.asarray(1), 4), (dt.asarray(2), dt.asarray(2))):
        want = fori_loop(lower, upper, lambda i, c: c * 10 + i, dt.asarray(0)).item()
        assert f(lower, upper).item() == want and dt.jit(f)(lower, upper).item() == want
    x = dt.ones(()).requires_grad_()
    with dt.eager(), pytest.raises(dt.GradientError, match="bounds must be ints"):
        dt.fori_loop(0, dt.asarray(2), lambda i, c: c * x, dt.ones(()))


def test_loop_without_writes_makes_no_copies(device: dt.Device) -> None:
    x, w, xs = dt.ones(4, 4), dt.ones(4, 4), dt.ones(5, 4, 4)
    dt.evaluate(x, w, xs)
    for expected, f in (
        (5, lambda: dt.fori_loop(0, 5, lambda i, c: c * 2 + w, x)),
        (10, lambda: dt.scan(lambda c, part: (c * 2 + part, w), x, xs)[0]),
    ):
        f().numpy()
        before = counters.launches
        f().numpy()
        assert counters.launches - before == expected


@pytest.mark.parametrize("key", [..., slice(None), slice(1, 3)])
@pytest.mark.parametrize("mode", ["jit", "vmap", "jit vmap", "nested vmap", "scan", "cond"])
def test_pending_outer_tensor_survives_being_stored(device: dt.Device, mode: str, key: Any) -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        y = x.copy()
        first = y[:1]  # so that `y` has memory
        y[key] = q
        first += 1
        return y + 1

    each = {
        "jit": lambda x: dt.jit(f)(x[0])[None], "vmap": dt.vmap(f), "jit vmap": dt.jit(dt.vmap(f)),
        "nested vmap": lambda x: dt.vmap(dt.vmap(f))(x[None])[0],
        "scan": lambda x: dt.scan(lambda c, part: (c, f(part)), x[0], x)[1],
        "cond": lambda x: dt.cond(dt.asarray(True), f, lambda x: x, x[0])[None],
    }[mode]  # fmt: skip
    start = dt.arange(4.0)[key]
    q = dt.exp(start)
    made = each(dt.zeros((2, 4)))
    want = dt.exp(start).tolist()
    assert q.tolist() == want
    assert made[0][key].tolist()[1:] == [v + 1 for v in want[1:]]
