"""Gradients: every row against differences, programs against torch, and all that can go wrong."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import ops, run
from dovetail.autograd import Function, checkpoint, gradcheck, gradgradcheck, jvp, vjp

torch = pytest.importorskip("torch")


pytestmark = pytest.mark.usefixtures("device")


def leaf(values: Any, dtype: Any = dt.float64) -> dt.Tensor:
    x = dt.asarray(values, dtype=dtype)
    dt.evaluate(x)
    return x.requires_grad_()


def uniform(*shape: int, low: float = -2.0, high: float = 2.0) -> Any:
    return np.random.default_rng(abs(hash(shape)) % 1000).uniform(low, high, shape)


# --- every row -----------------------------------------------------------------------------------

DOMAINS: dict[str, tuple[float, float]] = {
    "sqrt": (0.2, 3), "rsqrt": (0.2, 3), "log": (0.2, 3), "log2": (0.2, 3), "log10": (0.2, 3),
    "log1p": (-0.8, 2), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9),
    "acosh": (1.1, 3), "tan": (-1.2, 1.2), "cbrt": (0.2, 3), "reciprocal": (0.3, 3),
    "divide": (0.3, 3), "pow": (0.3, 3), "hypot": (0.2, 2), "remainder": (0.6, 0.9),
    "floor_divide": (0.6, 0.9),
}  # fmt: skip
WITHOUT = {"nextafter"}  # floats, but no gradient


def differentiable(arity: int) -> list[str]:
    found = []
    for name, op in ops.TABLE.items():
        if op.kind == "map" and op.arity == arity and name not in WITHOUT | {"astype", "copy"}:
            try:
                out = op.dtypes(name, [dt.float32] * arity, None)[1]
            except dt.DTypeError:
                continue
            if out.kind == "f":
                found.append(name)
    return found


@pytest.mark.parametrize("name", differentiable(1))
def test_rows_of_one_operand(name: str) -> None:
    low, high = DOMAINS.get(name, (-2.0, 2.0))
    x = leaf(uniform(5, low=low, high=high) + 0.013)

    def f(t: dt.Tensor) -> dt.Tensor:
        return dt.tensor.apply(ops.TABLE[name], (t,))

    assert gradcheck(f, x)
    assert gradgradcheck(f, x)


@pytest.mark.parametrize("name", differentiable(2))
def test_rows_of_two_operands(name: str) -> None:
    low, high = DOMAINS.get(name, (-2.0, 2.0))
    x, y = leaf(uniform(4, 3, low=low, high=high)), leaf(uniform(3, low=low, high=high) + 0.01)

    def f(*ts: Any) -> dt.Tensor:
        return dt.tensor.apply(ops.TABLE[name], ts)

    assert gradcheck(f, [x, y])
    assert gradcheck(lambda t: f(t, 0.7), x)
    assert gradcheck(lambda t: f(0.7, t), y)
    assert gradgradcheck(f, [x, y])


def test_every_float_row_has_a_gradient() -> None:
    missing = []
    for name, op in ops.TABLE.items():
        if op.kind == "generate" or op.gradient is not None:
            continue
        try:
            kinds = [dt.float32] * max(op.arity, 1)
            out = op.dtypes(name, kinds, (0, False, None) if op.kind == "rows" else None)[1]
        except dt.DTypeError:
            continue
        if out.kind == "f":
            missing.append(name)
    assert set(missing) == WITHOUT


REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(axis=1),
    "sum of all": lambda x: x.sum(),
    "sum with dims": lambda x: x.sum(axis=(0, 2), keepdims=True),
    "mean": lambda x: x.mean(axis=(0, 1)),
    "prod": lambda x: x.prod(axis=1),
    "prod of all": lambda x: x[0].prod(),
    "max": lambda x: x.max(axis=2),
    "min": lambda x: x.min(axis=0, keepdims=True),
    "var": lambda x: x.var(axis=1, correction=1),
    "std": lambda x: x.std(axis=2),
    "logsumexp": lambda x: x.logsumexp(axis=1),
    "softmax": lambda x: x.softmax(axis=-1),
    "log_softmax": lambda x: x.log_softmax(axis=0),
    "cumulative_sum": lambda x: dt.cumulative_sum(x, axis=1),
    "cumulative_sum after 0": lambda x: dt.cumulative_sum(x, axis=2, include_initial=True),
    "cumulative_prod": lambda x: dt.cumulative_prod(x, axis=0),
    "cumulative_prod after 1": lambda x: dt.cumulative_prod(x, axis=1, include_initial=True),
}  # fmt: skip
VIEWS: dict[str, Callable[[Any], Any]] = {
    "permute": lambda x: x.permute_dims((2, 0, 1)) * 2.0,
    "transpose": lambda x: x.mT.exp(),
    "expand": lambda x: x[:, :1].expand(2, 3, 4) * x,
    "reshape": lambda x: x.reshape(4, 6) ** 2,
    "reshape of a transpose": lambda x: x.mT.reshape(24) * 3.0,
    "slice": lambda x: x[1:, ::2, 1:3].exp(),
    "slice backwards": lambda x: x[::-1, ::-2, 3:0:-1] * 2.0,
    "integers": lambda x: x[1, :, 2],
    "new axes": lambda x: x[:, None, 0, ..., None],
    "flip": lambda x: dt.flip(x, axis=1) * x,
    "nothing": lambda x: x[:0].sum() + x.sum(),
    "split": lambda x: x.split(2, axis=2)[0] * x.split(2, axis=2)[1],
    "unstack": lambda x: x.unstack(axis=1)[1] * x.unstack(axis=1)[2],
    "concat": lambda x: dt.concat([x, x * 2.0, x[:1]], axis=0),
    "stack": lambda x: dt.stack([x[0], x[1].exp()], axis=1),
    "roll": lambda x: dt.roll(x, 2, axis=1) * x,
    "tile": lambda x: dt.tile(x, (2, 1, 1)),
    "repeat": lambda x: dt.repeat(x, 2, axis=1),
    "repeat each": lambda x: dt.repeat(x, [1, 0, 3], axis=1),
    "as_strided": lambda x: (x * 1.0).as_strided((5, 3), (4, 1), 2),
    "as_strided windows": lambda x: (x * 1.0).as_strided((5, 3), (2, 1), 1) ** 2,
    "diff": lambda x: dt.diff(x, axis=2),
    "tril": lambda x: dt.tril(x),
}  # fmt: skip
INDEXED: dict[str, Callable[[Any], Any]] = {
    "take": lambda x: dt.take(x, [0, 2, 2, 1], axis=1),
    "take of a tensor": lambda x: dt.take(x, dt.asarray([-1, 0, -1]), axis=2),
    "rows": lambda x: x[[1, 0, 1]] ** 2,
    "points": lambda x: x[[0, 1, 1], [2, 2, 0]],
    "points apart": lambda x: x[[0, 1], :, [3, 3]],
    "grid": lambda x: x[:, [[0], [2]], [1, 1, 0]],
    "mask": lambda x: x[x > 0],
    "take_along_axis": lambda x: dt.take_along_axis(x, dt.argmax(x, axis=2, keepdims=True), axis=2),
}  # fmt: skip


@pytest.mark.parametrize("name", [*REDUCTIONS, *VIEWS, *INDEXED])
def test_shapes_and_reductions(name: str) -> None:
    f = {**REDUCTIONS, **VIEWS, **INDEXED}[name]
    x = leaf(uniform(2, 3, 4) + 0.01)
    assert gradcheck(f, x)
    assert gradgradcheck(f, x)


@pytest.mark.parametrize("shapes", [((3, 4), (4, 2)), ((4,), (4, 2)), ((3, 4), (4,)), ((4,), (4,)),
                                    ((2, 3, 4), (4, 2)), ((2, 1, 3, 4), (3, 4, 2))])  # fmt: skip
def test_matmul(shapes: Any) -> None:
    x, y = (leaf(uniform(*s)) for s in shapes)
    assert gradcheck(dt.matmul, [x, y])
    assert gradgradcheck(dt.matmul, [x, y])


def test_other_products() -> None:
    x, y = leaf(uniform(3, 4)), leaf(uniform(4, 3))
    assert gradcheck(lambda a, b: dt.tensordot(a, b, axes=1), [x, y])
    assert gradcheck(lambda a, b: dt.vecdot(a, b.T), [x, y])
    assert gradcheck(lambda a, b: dt.outer(a[0], b[0]), [x, y])


def test_where_and_clip() -> None:
    x, y, z = (
        leaf(uniform(6)),
        leaf(uniform(6, low=-1, high=-0.2)),
        leaf(uniform(6, low=0.2, high=1)),
    )
    assert gradcheck(lambda a, b: dt.where(a > 0, a * b, b), [x, y])
    assert gradcheck(lambda a, b, c: dt.tensor.apply(ops.CLIP, (a, b, c)), [x, y, z])
    assert gradcheck(lambda a: dt.clip(a, -1, 1), x)
    assert gradcheck(lambda a: dt.clip(a, max=0.3), x)


@pytest.mark.parametrize("zeros", [(), (1,), (1, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("name", ["prod", "cumulative_prod"])
def test_products_with_zeros(name: str, zeros: Any) -> None:
    values = np.array([1.5, -2.0, 0.5, 3.0])
    values[list(zeros)] = 0.0
    f = {"prod": lambda t: t.prod(), "cumulative_prod": dt.cumulative_prod}[name]
    assert gradcheck(f, leaf(values))


# --- against torch -------------------------------------------------------------------------------


def both(f: Callable[..., Any], g: Callable[..., Any], *arrays: Any) -> None:
    """Gradients of f with dovetail and of g with torch, of the sum of results times 1, 2, ..."""
    xs = [leaf(a) for a in arrays]
    ts = [torch.tensor(a, requires_grad=True) for a in arrays]
    out, want = f(*xs), g(*ts)
    weights = np.arange(1.0, 1.0 + out.size).reshape(out.shape)
    out.backward(dt.asarray(weights))
    want.backward(torch.tensor(weights))
    for x, t in zip(xs, ts, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), 1e-12, 1e-12)


TIES = np.array([-1.0, 0.0, 0.0, 1.0, 1.0, 2.0])
OTHER = np.array([-1.0, 0.0, 1.0, 1.0, 0.5, 2.0])


@pytest.mark.parametrize(
    "f, g",
    [
        (dt.abs, torch.abs), (dt.relu, torch.relu), (dt.sign, torch.sign), (dt.floor, torch.floor),
        (lambda x: dt.clip(x, 0, 1), lambda x: torch.clip(x, 0, 1)),
        (lambda x: dt.clip(x, min=0), lambda x: torch.clip(x, min=0)),
        (lambda x: dt.clip(x, max=1), lambda x: torch.clip(x, max=1)),
        (lambda x: dt.max(x), torch.amax), (lambda x: dt.min(x), torch.amin),
        (lambda x: x**0, lambda x: x**0), (lambda x: x**1, lambda x: x**1),
        (lambda x: x**3, lambda x: x**3), (lambda x: x**2.0, lambda x: x**2.0),
        (lambda x: 0.0**x.exp(), lambda x: 0.0 ** x.exp()),
        (lambda x: dt.cumulative_prod(x, axis=0), lambda x: torch.cumprod(x, 0)),
    ],
)  # fmt: skip
def test_choices_where_there_is_no_derivative(f: Any, g: Any) -> None:
    both(f, g, TIES)


@pytest.mark.parametrize("name", ["maximum", "minimum", "copysign", "pow"])
def test_choices_for_two(name: str) -> None:
    low = abs(TIES) if name == "pow" else TIES
    both(getattr(dt, name), getattr(torch, name), low, OTHER)


def test_a_tensor_used_often() -> None:
    def f(x: Any, y: Any) -> Any:
        h = x * y
        return h * h + x * h - y

    both(f, f, uniform(5), uniform(5))


def test_integers_and_halves_take_part() -> None:
    x = leaf([1.0, 2.0, 3.0], dt.float16)
    y = leaf([1.0, 2.0, 3.0], dt.float32)
    (x * y * dt.asarray([2, 3, 4])).sum().backward()
    assert x.grad.dtype is dt.float16 and y.grad.dtype is dt.float32
    assert x.grad.tolist() == [2.0, 6.0, 12.0]
    assert y.grad.tolist() == [2.0, 6.0, 12.0]


def test_a_network_against_torch() -> None:
    arrays = [uniform(8, 5), uniform(5, 7), uniform(7), uniform(7, 3)]

    def loss(x: Any, w: Any, b: Any, v: Any) -> Any:
        h = (x @ w + b).tanh() @ v
        return (h - h.logsumexp(1).reshape(8, 1)).sum()

    both(
        lambda *t: loss(*t),
        lambda x, w, b, v: (lambda h: (h - h.logsumexp(1, keepdim=True)).sum())(
            (x @ w + b).tanh() @ v
        ),
        *arrays,
    )


# --- how it is used ------------------------------------------------------------------------------


def test_leaves_and_results() -> None:
    x = dt.asarray([1.0, 2.0])
    assert x.is_leaf and not x.requires_grad and x.grad is None and x.grad_fn is None
    assert x.requires_grad_() is x and x.requires_grad and x.is_leaf
    y = (x * 3).exp()
    assert y.requires_grad and not y.is_leaf and y.grad_fn.name == "exp"
    assert y.grad_fn.next_functions[0].name == "multiply"
    assert not (x > 0).requires_grad and not x.astype(dt.int32).requires_grad
    assert not y.detach().requires_grad and y.detach().is_leaf
    x.requires_grad = False
    assert not x.requires_grad and y.requires_grad


def test_gradients_add_up_and_are_nobody_elses() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x + y).sum().backward()
    (x + y).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with dt.no_grad():
        x.grad *= 5.0
    assert y.grad.tolist() == [2.0, 2.0]
    x.grad = None
    assert x.grad is None
    g = dt.asarray([1.0, 1.0], dtype=dt.float64)
    z = leaf([0.0, 0.0])
    z.backward(g)
    g[0] = 7.0
    assert z.grad.tolist() == [1.0, 1.0]


def test_no_grad_and_enable_grad() -> None:
    x = leaf([1.0])
    with dt.no_grad():
        assert not dt.is_grad_enabled() and not (x * 2).requires_grad
        with dt.enable_grad():
            assert (x * 2).requires_grad
    with dt.set_grad_enabled(False):
        assert not (x * 2).requires_grad

    @dt.no_grad()
    def f(t: dt.Tensor) -> dt.Tensor:
        return t * 2

    assert not f(x).requires_grad and (x * 2).requires_grad


def test_retain_grad_and_hooks() -> None:
    x = leaf([1.0, 2.0])
    h = x * 3
    h.retain_grad()
    seen: list[Any] = []
    handle = h.register_hook(lambda g: seen.append(g.tolist()))
    h.register_hook(lambda g: g * 10)
    y = (h * h).sum()
    y.backward(retain_graph=True)
    assert seen == [[6.0, 12.0]] and h.grad.tolist() == [60.0, 120.0]
    assert x.grad.tolist() == [180.0, 360.0]
    handle.remove()
    y.backward()
    assert len(seen) == 1


def test_grad_asks_for_some_only() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    h = x * y
    gx, gh = dt.grad((h * h).sum(), (x, h))
    assert gx.tolist() == [18.0, 64.0] and gh.tolist() == [6.0, 16.0]
    assert [x.grad, y.grad] == [None, None]
    assert dt.grad((x * x).sum(), [x, y], allow_unused=True)[1] is None
    (x * y).sum().backward(inputs=[y])
    found = [x.grad, y.grad.tolist()]
    assert found == [None, [1.0, 2.0]]


def test_gradients_of_gradients() -> None:
    x = leaf([2.0, 3.0])
    (g,) = dt.grad((x**4).sum(), [x], create_graph=True)
    (h,) = dt.grad(g.sum(), [x], create_graph=True)
    (k,) = dt.grad(h.sum(), [x])
    assert h.tolist() == [48.0, 108.0] and k.tolist() == [48.0, 72.0]
    x.exp().sum().backward(create_graph=True)
    assert x.grad.requires_grad


def test_vjp_and_jvp() -> None:
    x, v = dt.asarray(uniform(4)), dt.asarray(uniform(4, low=0.5))
    out, back = vjp(lambda t: (t.sin(), t * t), x)
    a, b = dt.asarray(uniform(4)), dt.asarray(uniform(4))
    want = a.numpy() * np.cos(x.numpy()) + 2 * b.numpy() * x.numpy()
    np.testing.assert_allclose(back(a, b)[0].numpy(), want)
    assert not out[0].requires_grad
    out, along = jvp(lambda t: t.sin() * 2, x, v)
    np.testing.assert_allclose(along.numpy(), 2 * np.cos(x.numpy()) * v.numpy())
    _, along = jvp(lambda s, t: (s @ t, t * 3), (x, x), (v, v))
    np.testing.assert_allclose(along[0].item(), 2 * (x.numpy() * v.numpy()).sum())
    np.testing.assert_allclose(along[1].numpy(), 3 * v.numpy())


class MulAdd(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, k: float) -> Any:
        ctx.save_for_backward(x, y)
        ctx.k = k
        return x * y, x + k * y

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y + h, g * x + h * ctx.k, None


def test_functions_of_ones_own() -> None:
    x, y = leaf(uniform(3)), leaf(uniform(3) + 1.0)
    assert gradcheck(lambda a, b: MulAdd.apply(a, b, 2.5), [x, y])
    assert gradgradcheck(lambda a, b: MulAdd.apply(a, b, 2.5), [x, y])
    first, _ = MulAdd.apply(x, y, 1.0)
    first.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert not MulAdd.apply(x.detach(), y.detach(), 1.0)[0].requires_grad


def test_a_function_that_writes_what_it_saved() -> None:
    x, y = leaf(uniform(3)) * 1.0, leaf(uniform(3))
    dt.evaluate(x)
    out = MulAdd.apply(x, y, 1.0)[0].sum()
    x += 1.0
    with pytest.raises(dt.GradientError, match="MulAdd saved tensor 0"):
        out.backward()


def test_checkpoint_computes_again() -> None:
    calls = []
    w = leaf(uniform(4))

    def block(t: Any) -> Any:
        calls.append(1)
        return (t * w).tanh() * t

    x = leaf(uniform(4))
    block(x).sum().backward()
    want, want_w = x.grad.numpy().copy(), w.grad.numpy().copy()
    x.grad = w.grad = None
    checkpoint(block, x).sum().backward()
    assert len(calls) == 3
    np.testing.assert_array_equal(x.grad.numpy(), want)
    np.testing.assert_array_equal(w.grad.numpy(), want_w)


# --- writing in place ----------------------------------------------------------------------------


def test_in_place_ops() -> None:
    def f(x: Any, y: Any) -> Any:
        h = x * 2.0
        h += y
        h *= 3.0
        h.exp_()
        return h * y

    both(f, f, uniform(4), uniform(4))
    assert gradgradcheck(f, [leaf(uniform(4)), leaf(uniform(4))])


def test_in_place_on_evaluated_memory() -> None:
    x = leaf(uniform(4))
    h = x * 2.0
    dt.evaluate(h)
    h.exp_()
    h.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2 * x.numpy()))


def writes(x: Any, y: Any, empty: Any) -> Any:
    buffer = empty(4, 3)
    buffer[0] = x
    for i in range(1, 4):
        buffer[i] = (buffer[i - 1] + 0.0) * y + i
    buffer[1:3, 1] = 5.0
    buffer[:, 2] *= 3.0
    buffer[0, :2] += x[1:]
    return buffer


def test_writing_rows_of_a_buffer() -> None:
    both(
        lambda x, y: writes(x, y, lambda *s: dt.zeros(s, dtype=dt.float64)),
        lambda x, y: writes(x, y, lambda *s: torch.zeros(s, dtype=torch.float64)),
        uniform(3), uniform(3) + 1.0,
    )  # fmt: skip


@pytest.mark.parametrize("evaluated", [False, True])
def test_a_write_through_a_view_is_seen_by_the_base_and_the_other_way_round(
    evaluated: bool,
) -> None:
    def f(x: Any, base: Any) -> Any:
        row, column = base[1], base[:, 0]
        row.add_(x)
        base[:, 2] = x * x
        column *= 2.0
        return column * 2.0, row * 3.0, base * 1.0

    for k in range(3):
        both(
            lambda x, y, k=k: f(x, (y * 1.0).reshape(3, 3))[k],
            lambda x, y, k=k: f(x, (y * 1.0).reshape(3, 3))[k],
            uniform(3), uniform(9),
        )  # fmt: skip


def test_writes_into_constant_memory_through_a_view() -> None:
    x = leaf([2.0, 3.0])
    base = dt.zeros(5, dtype=dt.float64)
    dt.evaluate(base)
    part = base[1:3]
    other = base[2:]
    part[...] = x * x
    assert base.requires_grad and other.requires_grad and part.requires_grad
    (base * dt.arange(5)).sum().backward(retain_graph=True)
    assert x.grad.tolist() == [4.0, 12.0]
    x.grad = None
    other.sum().backward()
    assert x.grad.tolist() == [0.0, 6.0]


@pytest.mark.parametrize(
    "key", [[0, 2], [1, 1, 0], (slice(None), [1, 2]), "mask", "mask and values"]
)
def test_writing_with_index_arrays(key: Any) -> None:
    mask = np.array([[True, False, True], [False, True, False], [True, True, False]])
    shape = {"mask": (1,), "mask and values": (5,)}.get(key) if isinstance(key, str) else None

    def f(x: Any, v: Any) -> Any:
        h = x * 1.0
        h[mask if isinstance(key, str) else key] = v
        return h * x

    x = uniform(3, 3)
    want = shape or x[key].shape
    assert gradcheck(f, [leaf(x), leaf(uniform(*want))])
    assert gradgradcheck(f, [leaf(x), leaf(uniform(*want))])


def test_scatter_and_index_add() -> None:
    x, v = leaf(uniform(4, 3)), leaf(uniform(5, 3))
    assert gradcheck(lambda a, b: dt.index_add(a, 0, [0, 3, 0, 1, 3], b), [x, v])
    index = dt.asarray([[0, 1, 2], [3, 1, 0]])
    assert gradcheck(lambda a, b: dt.scatter(a, 0, index, b[:2]), [x, v])


def test_optimiser_steps_in_place() -> None:
    w = leaf([1.0, 2.0])
    for _ in range(3):
        (w * w).sum().backward()
        with dt.no_grad():
            w -= 0.25 * w.grad
        w.grad = None
    assert w.requires_grad and w.is_leaf and w.tolist() == [0.125, 0.25]


def test_values_of_pending_work_outlive_a_write() -> None:
    x = dt.asarray([1.0, 2.0], dtype=dt.float64)
    y = leaf([3.0, 4.0])
    out = ((x + 1.0) * y).sum()
    x[...] = 100.0
    out.backward()
    assert y.grad.tolist() == [2.0, 3.0]


# --- fused ---------------------------------------------------------------------------------------


def chain(x: Any, y: Any) -> Any:
    return (x * 2 + y).tanh() * x - y / (1 + x * x)


def test_forward_and_backward_of_a_chain_are_one_kernel() -> None:
    x, y = leaf(uniform(1000), dt.float32), leaf(uniform(1000) + 1, dt.float32)
    out = chain(x, y)
    g = dt.ones_like(out)
    dt.evaluate(g)
    before = run.counters.launches
    out.backward(g)
    assert run.counters.launches - before == 1


def test_backward_of_an_evaluated_chain_is_one_kernel() -> None:
    x, y = leaf(uniform(1000), dt.float32), leaf(uniform(1000) + 1, dt.float32)
    out = chain(x, y)
    g = dt.ones_like(out)
    dt.evaluate(g, out)
    before = run.counters.launches
    out.backward(g)
    assert run.counters.launches - before == 1


def test_cheap_values_are_not_stored_for_the_way_back() -> None:
    x, y = leaf(uniform(1000), dt.float32), leaf(uniform(1000) + 1, dt.float32)
    out = y / (1 + x * x)
    plan = str(dt.explain(out))
    assert "still held" not in plan, plan
    assert "still held" in str(dt.explain((x * x).tanh() * y))


# --- errors --------------------------------------------------------------------------------------


def test_backward_twice() -> None:
    x = leaf([1.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0]
    with pytest.raises(dt.GradientError, match=r"multiply kept .* retain_graph=True"):
        y.backward()


def test_backward_of_no_scalar() -> None:
    with pytest.raises(dt.GradientError, match=r"shape \(2,\)"):
        (leaf([1.0, 2.0]) * 2).backward()


def test_incoming_gradients_that_do_not_fit() -> None:
    y = leaf([1.0, 2.0]) * 2
    with pytest.raises(dt.ShapeError, match="the gradient that comes in"):
        y.backward(dt.ones(3, dtype=dt.float64))
    with pytest.raises(dt.DTypeError, match="float32"):
        y.backward(dt.ones(2, dtype=dt.float32))
    with pytest.raises(dt.DTypeError, match="float"):
        y.backward(1.0)  # type: ignore[arg-type]


def test_no_path() -> None:
    x, y = leaf([1.0]), leaf([1.0])
    with pytest.raises(dt.GradientError, match="does not require a gradient"):
        dt.ones(()).backward()
    with pytest.raises(dt.GradientError, match="input 1"):
        dt.grad((x * 2).sum(), [x, y])
    with pytest.raises(dt.GradientError, match="does not require"):
        dt.grad(x.sum(), dt.ones(1))


def test_integers_have_no_gradients() -> None:
    with pytest.raises(dt.DTypeError, match="int64 has no gradients"):
        dt.arange(3).requires_grad_()


def test_saved_and_overwritten() -> None:
    x = leaf([1.0, 2.0])
    h = x.exp()
    y = (h * h).sum()
    dt.evaluate(h, y)
    h += 1.0
    with pytest.raises(
        dt.GradientError, match=r"(multiply|exp) saved .* written in place .*version 1"
    ):
        y.backward()


def test_leaves_are_not_written() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(dt.GradientError, match=r"add in place: .* leaf"):
        x += 1.0
    with pytest.raises(dt.GradientError, match="leaf"):
        x[0] = 3.0
    with pytest.raises(dt.GradientError, match="leaf"):
        x[:1].mul_(0.0)
    assert x.tolist() == [1.0, 2.0]


def test_out_has_no_gradient() -> None:
    with pytest.raises(dt.GradientError, match="exp: out="):
        dt.exp(leaf([1.0]), out=dt.zeros(1, dtype=dt.float64))


def test_hooks_that_return_the_wrong_thing() -> None:
    x = leaf([1.0, 2.0])
    h = x * 2
    h.register_hook(lambda g: g[:1])
    with pytest.raises(dt.ShapeError, match="what a hook returned"):
        h.sum().backward()


def test_ops_without_a_gradient() -> None:
    with pytest.raises(dt.GradientError, match="nextafter has no gradient"):
        dt.nextafter(leaf([1.0]), 2.0).sum().backward()


def test_only_leaves_stop_requiring_gradients() -> None:
    with pytest.raises(dt.GradientError, match="result of exp"):
        leaf([1.0]).exp().requires_grad_(False)


def test_gradcheck_finds_a_wrong_gradient() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 3.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2.0

    assert not gradcheck(Wrong.apply, leaf([1.0, 2.0]), raise_exception=False)
    with pytest.raises(dt.GradientError, match="differences give"):
        gradcheck(Wrong.apply, leaf([1.0, 2.0]))


def test_memory_is_let_go() -> None:
    x = leaf(uniform(1 << 12), dt.float32)
    gc.collect()
    live = dt.memory.stats(x.device).live_bytes
    for _ in range(3):
        y = chain(x, x * 2.0).exp()
        dt.evaluate(y)
        del y
    assert dt.memory.stats(x.device).live_bytes == live
