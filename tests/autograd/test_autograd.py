"""Gradients of every op against differences, their use, and their errors."""

from __future__ import annotations

import gc
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import Function, checkpoint, gradcheck, gradgradcheck, jvp, vjp
from dovetail.autograd.tape import rules_of
from dovetail.engine import evaluate as run
from dovetail.graph.expr import node
from dovetail.ops import table as ops
from dovetail.ops.scatter import Manner
from dovetail.tensor.tensor import create_tensor
from gradient_cases import CASES, ZEROS, reason, uniform

pytestmark = pytest.mark.usefixtures("device")


def leaf(values: Any, dtype: Any = dt.float64) -> dt.Tensor:
    x = dt.asarray(values, dtype=dtype)
    dt.evaluate(x)
    return x.requires_grad_()


# --- every op ------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["reference"], indirect=True)  # elsewhere: the same bits
@pytest.mark.parametrize("name", CASES)
def test_gradients_equal_finite_differences(name: str) -> None:
    _, f, arrays, eps = CASES[name]
    xs = [leaf(a) for a in arrays]
    assert gradcheck(f, xs, eps=eps)
    assert gradgradcheck(f, xs, eps=eps)


def ops_on_tape(out: dt.Tensor) -> set[str]:
    """Return the names of the ops that a gradient would pass."""
    found: set[Any] = set()
    stack: list[Any] = [out._expr.tape]
    while stack:
        n = stack.pop()
        if n is not None and n not in found:
            found.add(n)
            stack += n.next_functions
    return {n.name for n in found}


def test_every_op_has_a_tested_gradient_or_a_reason_for_none() -> None:
    reached: set[str] = set()
    for name, (row, f, arrays, _) in CASES.items():
        rows = ops_on_tape(f(*[leaf(a) for a in arrays]))
        assert row in rows, f"{name} is there for {row}, and uses {rows}"
        reached |= rows
    without = {name for name in ops.TABLE if reason(name) is not None}
    assert set(ops.TABLE) - reached == without
    assert [name for name in without if rules_of(ops.TABLE[name])] == []


@pytest.mark.parametrize("f", [lambda x: x.prod(axis=1), lambda x: dt.cumulative_prod(x, axis=1)])
def test_third_derivatives_of_products_with_zeros_equal_differences(f: Any) -> None:
    def first(x: Any) -> Any:
        return dt.grad(f(x).sum(), x, create_graph=True)

    for values in ZEROS:
        assert gradgradcheck(first, leaf(values))


def test_to_moves_gradients_back_to_the_device_of_the_leaf() -> None:
    x = leaf([1.0, 2.0])
    y = x.to("reference") * 3.0
    assert str(y.device) == "reference"
    (y * y).sum().backward()
    assert x.grad.device is x.device and x.grad.tolist() == [18.0, 36.0]


def test_gradient_of_diff_with_a_large_n_stays_within_kernel_limits() -> None:
    x, y = leaf(uniform(3, 3, 3)), leaf(uniform(3, 3, 3))

    def f(a: dt.Tensor, b: dt.Tensor) -> dt.Tensor:
        return dt.diff(a, n=17, axis=2, prepend=b, append=b.flip(axis=2)) * 2.0**-17

    assert gradcheck(f, [x, y])


def test_backward_converts_gradients_to_the_dtype_of_each_leaf() -> None:
    x = leaf([1.0, 2.0, 3.0], dt.float16)
    y = leaf([1.0, 2.0, 3.0], dt.float32)
    (x * y * dt.asarray([2, 3, 4])).sum().backward()
    assert x.grad.dtype is dt.float16 and y.grad.dtype is dt.float32
    assert x.grad.tolist() == [2.0, 6.0, 12.0]
    assert y.grad.tolist() == [2.0, 6.0, 12.0]


# --- use -----------------------------------------------------------------------------------------


def test_requires_grad_marks_leaves_and_results() -> None:
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


def test_backward_accumulates_into_grad_without_sharing_memory() -> None:
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


def test_no_grad_and_enable_grad_nest() -> None:
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


def test_retain_grad_and_register_hook_observe_intermediate_gradients() -> None:
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


def test_grad_returns_only_requested_gradients() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    h = x * y
    gx, gh = dt.grad((h * h).sum(), (x, h))
    assert gx.tolist() == [18.0, 64.0] and gh.tolist() == [6.0, 16.0]
    assert [x.grad, y.grad] == [None, None]
    assert dt.grad((x * x).sum(), [x, y], allow_unused=True)[1] is None
    (x * y).sum().backward(inputs=[y])
    found = [x.grad, y.grad.tolist()]
    assert found == [None, [1.0, 2.0]]


def test_create_graph_allows_higher_derivatives() -> None:
    x = leaf([2.0, 3.0])
    (g,) = dt.grad((x**4).sum(), [x], create_graph=True)
    (h,) = dt.grad(g.sum(), [x], create_graph=True)
    (k,) = dt.grad(h.sum(), [x])
    assert h.tolist() == [48.0, 108.0] and k.tolist() == [48.0, 72.0]
    x.exp().sum().backward(create_graph=True)
    assert x.grad.requires_grad


def test_vjp_and_jvp_equal_analytic_products() -> None:
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


def test_custom_function_passes_gradcheck() -> None:
    x, y = leaf(uniform(3)), leaf(uniform(3) + 1.0)
    assert gradcheck(lambda a, b: MulAdd.apply(a, b, 2.5), [x, y])
    assert gradgradcheck(lambda a, b: MulAdd.apply(a, b, 2.5), [x, y])
    first, _ = MulAdd.apply(x, y, 1.0)
    first.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert not MulAdd.apply(x.detach(), y.detach(), 1.0)[0].requires_grad


def make_function(forward: Any, backward: Any) -> Any:
    namespace = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Mine", (Function,), namespace).apply


def test_custom_function_with_wrong_backward_raises() -> None:
    x = leaf([1.0, 2.0])
    twice = lambda ctx, t: t * 2.0  # noqa: E731
    with pytest.raises(
        dt.GradientError, match="Mine: backward must return 1 gradients, one per operand, got 2"
    ):
        make_function(twice, lambda ctx, g: (g, g))(x).sum().backward()
    with pytest.raises(dt.ShapeError, match="the gradient that Mine returned"):
        make_function(twice, lambda ctx, g: g[:1])(x).sum().backward()
    with pytest.raises(
        dt.DTypeError, match="the gradient that Mine returned must be a tensor, got float"
    ):
        make_function(twice, lambda ctx, g: 2.0)(x).sum().backward()
    with pytest.raises(dt.DTypeError, match="Mine: forward must return tensors, got float"):
        make_function(lambda ctx, t: 2.0, lambda ctx, g: g)(x)
    assert x.grad is None
    out = make_function(twice, lambda ctx, g: None)(x).sum() + x.sum()
    out.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_custom_function_raises_if_a_saved_tensor_was_overwritten() -> None:
    x, y = leaf(uniform(3)) * 1.0, leaf(uniform(3))
    dt.evaluate(x)
    out = MulAdd.apply(x, y, 1.0)[0].sum()
    x += 1.0
    with pytest.raises(dt.GradientError, match="MulAdd saved tensor 0"):
        out.backward()


def make_observed_function() -> tuple[Any, Any, list[Any]]:
    """Return a function, one that reads what its last call saved, and what each `forward` read."""
    contexts: list[Any] = []
    read: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        assert ctx.saved_tensors == ()
        ctx.save_for_backward(x, None)
        contexts.append(ctx)
        read.append(ctx.saved_tensors)
        return x * 2

    return make_function(forward, lambda ctx, g: g * 2), lambda: contexts[-1].saved_tensors, read


def test_saved_tensors_are_readable_in_forward() -> None:
    double, _, read = make_observed_function()
    x = leaf([1.0, 2.0])
    for call, shape in ((double, (2,)), (dt.func.vmap(double), ()), (dt.jit(double), (2,))):
        call(x).sum().backward()
        saved, nothing = read[-1]
        assert saved.shape == shape and nothing is None
    assert x.grad.tolist() == [6, 6] and read[0][0] is x


def test_saved_tensors_are_readable_after_a_call_without_tape() -> None:
    double, saved, _ = make_observed_function()
    x = leaf([1.0, 2.0])
    for switch in (dt.no_grad(), dt.inference_mode()):
        with switch:
            double(x)
        assert saved()[0] is x and saved()[1] is None
    constant = x.detach()
    double(constant)
    assert saved()[0] is constant


def test_saved_tensors_do_not_depend_on_the_life_of_the_results() -> None:
    double, saved, _ = make_observed_function()
    x = leaf([1.0, 2.0])
    y = double(x)
    assert saved()[0].tolist() == [1, 2] and saved()[0].requires_grad
    del y
    assert saved()[0].tolist() == [1, 2] and saved()[0].requires_grad and saved()[1] is None
    y = double(x).sum()
    y.backward(retain_graph=True)
    assert saved()[0].tolist() == [1, 2]
    y.backward()
    with pytest.raises(dt.GradientError, match="Mine: its saved tensors were released"):
        saved()
    del y
    with pytest.raises(dt.GradientError, match="Mine: its saved tensors were released"):
        saved()


def test_saved_tensors_without_results_raise_if_one_was_overwritten() -> None:
    double, saved, _ = make_observed_function()
    x = leaf([1.0, 2.0]) * 1
    dt.evaluate(x)
    double(x)
    with dt.no_grad():
        x += 1
    with pytest.raises(dt.GradientError, match="Mine saved tensor 0"):
        saved()


def test_context_accepts_only_strided_tensors() -> None:
    x = leaf([1.0, 2.0])
    for value in (3, [x], np.ones(2)):
        for operand in (x, x.detach()):
            name = type(value).__name__
            with pytest.raises(dt.DTypeError, match=f"save_for_backward: expected .* got {name}"):
                make_function(lambda ctx, t, v=value: ctx.save_for_backward(v), None)(operand)
            with pytest.raises(dt.DTypeError, match=f"mark_non_differentiable: .* got {name}"):
                make_function(lambda ctx, t, v=value: ctx.mark_non_differentiable(v), None)(operand)
    sparse = dt.sparse_coo_tensor([[0]], [1.0], (2,))
    save = lambda ctx, t: (ctx.save_for_backward(sparse), t * 2)[1]  # noqa: E731
    with pytest.raises(dt.LayoutError, match=r"save_for_backward: .* sparse_coo"):
        make_function(save, None)(x)
    with pytest.raises(dt.LayoutError, match=r"Mine: .* sparse_coo"):
        make_function(lambda ctx, t: sparse * 2, None)(x)
    assert make_function(lambda ctx, t: (), None)(x) == ()


def test_checkpoint_recomputes_its_block_in_backward() -> None:
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


# --- writes in place -----------------------------------------------------------------------------


def test_in_place_op_on_evaluated_memory_keeps_gradients() -> None:
    x = leaf(uniform(4))
    h = x * 2.0
    dt.evaluate(h)
    h.exp_()
    h.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2 * x.numpy()))


def test_write_through_a_view_makes_constant_memory_require_grad() -> None:
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


def test_optimizer_step_in_place_keeps_a_leaf() -> None:
    w = leaf([1.0, 2.0])
    for _ in range(3):
        (w * w).sum().backward()
        with dt.no_grad():
            w -= 0.25 * w.grad
        w.grad = None
    assert w.requires_grad and w.is_leaf and w.tolist() == [0.125, 0.25]


def test_backward_uses_pending_values_from_before_a_write() -> None:
    x = dt.asarray([1.0, 2.0], dtype=dt.float64)
    y = leaf([3.0, 4.0])
    out = ((x + 1.0) * y).sum()
    x[...] = 100.0
    out.backward()
    assert y.grad.tolist() == [2.0, 3.0]


# --- fusion --------------------------------------------------------------------------------------


def chain(x: Any, y: Any) -> Any:
    return (x * 2 + y).tanh() * x - y / (1 + x * x)


def test_forward_and_backward_of_a_chain_launch_one_kernel() -> None:
    x, y = leaf(uniform(1000), dt.float32), leaf(uniform(1000) + 1, dt.float32)
    out = chain(x, y)
    g = dt.ones_like(out)
    dt.evaluate(g)
    before = run.counters.launches
    out.backward(g)
    assert run.counters.launches - before == 1


def test_backward_of_an_evaluated_chain_launches_one_kernel() -> None:
    x, y = leaf(uniform(1000), dt.float32), leaf(uniform(1000) + 1, dt.float32)
    out = chain(x, y)
    g = dt.ones_like(out)
    dt.evaluate(g, out)
    before = run.counters.launches
    out.backward(g)
    assert run.counters.launches - before == 1


def test_backward_of_several_inputs_launches_one_kernel() -> None:
    xs = [leaf(uniform(1000) + k, dt.float32) for k in range(4)]
    x, y, z, w = xs
    out = ((x * y + z).sigmoid() * w - (z / (w * w + 1)).exp()) * x.sin()
    g = dt.ones_like(out)
    dt.evaluate(g, out)
    before = run.counters.launches
    out.backward(g)
    assert run.counters.launches - before == 1
    assert all(t.grad is not None for t in xs)


def test_pending_gradients_fuse_with_later_ops() -> None:
    x, y = leaf(uniform(1000), dt.float32), leaf(uniform(1000) + 1, dt.float32)
    gx, gy = dt.grad(chain(x, y).sum(), [x, y])
    before = run.counters.launches
    dt.evaluate(gx * 0.5 - gy)
    assert run.counters.launches - before == 1


def test_backward_of_cross_entropy_launches_label_check_and_one_kernel() -> None:
    x = leaf(uniform(50, 10), dt.float32)
    labels = dt.asarray(np.arange(50).reshape(50, 1) % 10)
    dt.evaluate(labels)
    (g,) = dt.grad([-dt.mean(dt.take_along_axis(dt.log_softmax(x), labels, axis=1))], [x])
    before = run.counters.launches
    dt.evaluate(g)
    assert run.counters.launches - before == 2
    want = np.exp(x.numpy()) / np.exp(x.numpy()).sum(1, keepdims=True)
    want[np.arange(50), labels.numpy()[:, 0]] -= 1
    np.testing.assert_allclose(g.numpy(), want / 50, rtol=1e-5, atol=1e-7)


def test_gradient_of_batched_matmul_by_a_matrix_is_one_matmul() -> None:
    x, w = leaf(uniform(3, 4, 5), dt.float32), leaf(uniform(5, 2), dt.float32)
    with dt.vendor_products(False):
        y = x @ w
        (g,) = dt.grad(y.sum(), [w])
    plan = dt.explain(g).text()
    assert plan.count(" matmul on ") == 1 and "kernel sum" not in plan
    want = np.broadcast_to(x.numpy().sum((0, 1))[:, None], (5, 2))
    np.testing.assert_allclose(g.numpy(), want, rtol=1e-5)


def test_backward_of_a_deep_network_keeps_only_required_values() -> None:
    """Peak: the relu output of each of 40 layers, the gradients of the weights, and a few more."""
    layers, rows, width = 40, 64, 32
    w = [leaf(uniform(width, width, low=-0.1, high=0.1), dt.float32) for _ in range(layers)]
    h = dt.ones((rows, width))
    dt.evaluate(h)
    gc.collect()
    before = dt.memory.stats(h.device).live_bytes
    dt.memory.reset_peak(h.device)
    for m in w:
        h = dt.relu(h @ m)
    h.sum().backward()
    del h
    row, matrix = 4 * rows * width, 4 * width * width
    peak = dt.memory.stats(m.device).peak_live_bytes - before
    assert peak <= layers * (row + matrix) + 16 * row
    assert dt.memory.stats(m.device).live_bytes - before <= layers * matrix + row


def test_gradient_of_gather_accumulates_without_a_copy() -> None:
    x = leaf(uniform(50, 8), dt.float32)
    index = dt.asarray(np.arange(30) % 7)
    g = dt.grad((dt.take(x, index, axis=0) * 2.0).sum(), x)
    assert "starts from a copy" not in dt.explain(g).text()
    want = np.zeros((50, 8), "f4")
    np.add.at(want, index.numpy(), np.float32(2))
    assert g.numpy().tobytes() == want.tobytes()


def test_scatter_does_not_overwrite_a_base_that_is_still_referenced() -> None:
    base, values = dt.ones(6) * 2.0, dt.ones((3,))
    at = dt.asarray([1, 1, 4])
    operands = tuple(t._expr for t in (base, values, at))
    added = create_tensor(node(ops.SCATTER, operands, base._expr.spec, Manner("add")))
    both = added + base * 10.0
    assert both.tolist() == [22.0, 24.0, 22.0, 22.0, 23.0, 22.0]
    assert base.tolist() == [2.0] * 6 and added.tolist() == [2.0, 4.0, 2.0, 2.0, 3.0, 2.0]


@pytest.mark.parametrize("evaluated, kept", [(False, 3), (True, 4)])
def test_peak_memory_of_forward_and_backward_is_minimal(evaluated: bool, kept: int) -> None:
    """Peak: the result and two gradients; after an evaluated forward pass also tanh(x * 2 + y)."""
    n = 1 << 16
    x, y = leaf(uniform(n), dt.float32), leaf(uniform(n) + 1, dt.float32)
    g = dt.ones((n,))
    dt.evaluate(g)
    gc.collect()
    before = dt.memory.stats(x.device).live_bytes
    dt.memory.reset_peak(x.device)
    out = chain(x, y)
    if evaluated:
        dt.evaluate(out)
    out.backward(g)
    assert dt.memory.stats(x.device).peak_live_bytes - before <= kept * 4 * n + 4096
    assert dt.memory.stats(x.device).live_bytes - before <= 3 * 4 * n + 4096


def test_cheap_values_are_recomputed_in_backward() -> None:
    x, y = leaf(uniform(1000), dt.float32), leaf(uniform(1000) + 1, dt.float32)
    out = y / (1 + x * x)
    plan = dt.explain(out).text()
    assert "still held" not in plan, plan
    assert "still held" in dt.explain((x * x).tanh() * y).text()


# --- errors --------------------------------------------------------------------------------------


def test_second_backward_raises_without_retain_graph() -> None:
    x = leaf([1.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0]
    with pytest.raises(dt.GradientError, match=r"multiply saved .* retain_graph=True"):
        y.backward()


def test_backward_of_a_non_scalar_raises_shape_error() -> None:
    with pytest.raises(dt.GradientError, match=r"shape \(2,\)"):
        (leaf([1.0, 2.0]) * 2).backward()


def test_backward_raises_if_the_incoming_gradient_does_not_match() -> None:
    y = leaf([1.0, 2.0]) * 2
    with pytest.raises(dt.ShapeError, match="the incoming gradient"):
        y.backward(dt.ones(3, dtype=dt.float64))
    with pytest.raises(dt.DTypeError, match="float32"):
        y.backward(dt.ones(2, dtype=dt.float32))
    with pytest.raises(dt.DTypeError, match="float"):
        y.backward(1.0)  # type: ignore[arg-type]


def test_number_of_gradients_must_be_that_of_the_outputs() -> None:
    x = dt.ones(2).requires_grad_()
    a, b, g = x * 2, x * 3, dt.ones(2)
    for gradients in (g, [g], (g,), [g, g, g], []):
        with pytest.raises(dt.ShapeError, match="grad: expected one gradient per output, 2, got"):
            dt.grad((a, b), x, gradients)
        with pytest.raises(dt.ShapeError, match="backward: expected one gradient per output, 2"):
            dt.autograd.backward([a, b], gradients)
    for gradients in ([g, g], []):
        with pytest.raises(dt.ShapeError, match="grad: expected one gradient per output, 1, got"):
            dt.grad(a, x, gradients)
        with pytest.raises(dt.ShapeError, match="backward: expected one gradient per output, 1"):
            a.backward(gradients)  # type: ignore[arg-type]  # that is the test
    assert x.grad is None
    kept: Any = {"retain_graph": True}
    assert dt.grad((a, b), x, (g, g * 2), **kept).tolist() == [8, 8]
    assert dt.grad([a], x, g, **kept).tolist() == dt.grad(a, x, [g], **kept).tolist() == [2, 2]
    assert dt.grad((a.sum(), b), x, [None, g]).tolist() == [5, 5]  # type: ignore[list-item]


def test_grad_raises_if_no_path_leads_to_an_input() -> None:
    x, y = leaf([1.0]), leaf([1.0])
    with pytest.raises(dt.GradientError, match="does not require a gradient"):
        dt.ones(()).backward()
    with pytest.raises(dt.GradientError, match="input 1"):
        dt.grad((x * 2).sum(), [x, y])
    with pytest.raises(dt.GradientError, match="does not require"):
        dt.grad(x.sum(), dt.ones(1))


def test_requires_grad_of_integers_raises_dtype_error() -> None:
    with pytest.raises(dt.DTypeError, match="floating-point, got int64"):
        dt.arange(3).requires_grad_()


def test_backward_raises_if_a_saved_value_was_overwritten() -> None:
    x = leaf([1.0, 2.0])
    h = x.exp()
    y = (h * h).sum()
    dt.evaluate(h, y)
    h += 1.0
    with pytest.raises(
        dt.GradientError, match=r"(multiply|exp) saved .* add overwrote it in place"
    ):
        y.backward()


def test_in_place_write_to_a_leaf_raises() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(dt.GradientError, match=r"add in place: .* leaf"):
        x += 1.0
    with pytest.raises(dt.GradientError, match="leaf"):
        x[0] = 3.0
    with pytest.raises(dt.GradientError, match="leaf"):
        x[:1].mul_(0.0)
    assert x.tolist() == [1.0, 2.0]


def test_out_argument_with_a_gradient_raises() -> None:
    with pytest.raises(dt.GradientError, match="exp: out="):
        dt.exp(leaf([1.0]), out=dt.zeros(1, dtype=dt.float64))


def test_hook_that_returns_a_wrong_shape_raises() -> None:
    x = leaf([1.0, 2.0])
    h = x * 2
    h.register_hook(lambda g: g[:1])
    with pytest.raises(dt.ShapeError, match="the gradient that a hook returned"):
        h.sum().backward()


def test_failed_backward_changes_no_state() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    h = x * y
    handle = h.register_hook(lambda g: g[:1])
    out = (h * h).sum() + (y * y).sum()
    with pytest.raises(dt.ShapeError, match="the gradient that a hook returned"):
        out.backward()
    found = [x.grad, y.grad]
    assert found == [None, None]
    handle.remove()
    out.backward()  # nothing had been released
    assert x.grad.tolist() == [18.0, 64.0] and y.grad.tolist() == [12.0, 40.0]
    with pytest.raises(dt.GradientError, match="retain_graph=True"):
        out.backward()
    assert x.grad.tolist() == [18.0, 64.0] and y.grad.tolist() == [12.0, 40.0]


def test_hook_errors_and_wrong_types_are_raised() -> None:
    x = leaf([1.0, 2.0])
    h = x * 2

    def broken(g: dt.Tensor) -> None:
        raise KeyError("mine")

    handle = h.register_hook(broken)
    with pytest.raises(KeyError, match="mine"):
        h.sum().backward()
    handle.remove()
    for wrong, error in ((lambda g: 3.0, dt.DTypeError),
                         (lambda g: g.astype(dt.float32), dt.DTypeError)):  # fmt: skip
        handle = h.register_hook(wrong)
        with pytest.raises(error, match="the gradient that a hook returned"):
            h.sum().backward()
        handle.remove()
    h.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_backward_of_overwritten_values_sets_no_partial_gradients() -> None:
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    h = x.exp()
    dt.evaluate(h)
    out = h * h * y + y
    dt.evaluate(out)
    h *= 2.0
    with pytest.raises(dt.GradientError, match=r"saved .* multiply overwrote it in place"):
        out.sum().backward()
    found = [x.grad, y.grad]
    assert found == [None, None]


@pytest.mark.parametrize("dtype", [dt.int32, dt.uint8, dt.bool])
def test_requires_grad_of_non_floats_raises(dtype: Any) -> None:
    x = dt.zeros(3, dtype=dtype)
    with pytest.raises(dt.DTypeError, match=rf"got {dtype.name}.*astype"):
        x.requires_grad = True
    assert not x.requires_grad


def test_op_without_a_gradient_raises_in_backward() -> None:
    with pytest.raises(dt.GradientError, match="nextafter has no gradient"):
        dt.nextafter(leaf([1.0]), 2.0).sum().backward()


def test_requires_grad_false_of_a_result_raises() -> None:
    with pytest.raises(dt.GradientError, match="result of exp"):
        leaf([1.0]).exp().requires_grad_(False)


def test_gradcheck_reports_a_wrong_gradient() -> None:
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


def test_gradcheck_names_a_wrong_element_beside_equal_infinities() -> None:
    class Step(Function):
        """0 up to 0, infinite up to 1, and x above; the second gradient is wrong."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return dt.where(x <= 0.0, 0.0, dt.where(x < 1.0, float("inf"), x))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            slopes = dt.asarray([float("inf"), 5.0], dtype=g.dtype, device=g.device)
            return dt.where(g == 0, 0.0, slopes)

    with pytest.raises(dt.GradientError, match=r"element 1\) by .* is 5\.0, but .* give 1\.0"):
        gradcheck(Step.apply, leaf([0.0, 2.0]))


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_gradcheck_fails_if_differences_are_not_finite(value: float) -> None:
    class Jump(Function):
        """x up to 0 and not finite above, with a finite gradient."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return dt.where(x > 0.0, value, x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    with pytest.raises(dt.GradientError, match=f"but differences give {value}"):
        gradcheck(Jump.apply, leaf([-1.0, 0.0]))


def test_graph_memory_is_freed_with_its_result() -> None:
    x = leaf(uniform(1 << 12), dt.float32)
    gc.collect()
    live = dt.memory.stats(x.device).live_bytes
    for _ in range(3):
        y = chain(x, x * 2.0).exp()
        dt.evaluate(y)
        del y
    assert dt.memory.stats(x.device).live_bytes == live


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_second_derivatives_of_power_at_zero_are_exact(dtype: str) -> None:
    """At x = 0 of x**y: twice by x y (y - 1) x**(y - 2), mixed 0 above y = 1, twice by y 0."""
    for power, twice in ((0.0, 0.0), (1.0, 0.0), (2.0, 2.0), (2.5, 0.0), (3.0, 0.0)):
        x = dt.asarray(0.0, dtype=dtype, device="reference").requires_grad_()
        y = dt.asarray(power, dtype=dtype, device="reference").requires_grad_()
        by_x, by_y = dt.grad(dt.pow(x, y), [x, y], create_graph=True)
        xx, xy = (g.item() for g in dt.grad(by_x, [x, y], retain_graph=True))
        yx, yy = (g.item() for g in dt.grad(by_y, [x, y]))
        assert (xx, yy) == (twice, 0.0)
        assert yx == 0.0
        assert power <= 1.0 or xy == 0.0
        assert np.isfinite(xy)
        e = dt.asarray(power, dtype=dtype, device="reference").requires_grad_()
        (by_e,) = dt.grad(dt.pow(0.0, e), [e], create_graph=True)
        again = dt.grad(by_e, e, allow_unused=True)
        assert again is None or again.item() == 0.0
