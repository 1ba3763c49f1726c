"""`dt.func` and the derivatives of `dt.autograd`: equal to PyTorch and to differences, and
composed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest


def given(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0.2, 1.5, shape)


def close(a: Any, b: Any) -> bool:
    return bool(np.allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-11))


def functions_of(xp: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return a function to vectors and one to a scalar, written with a module's functions."""

    def vector(x: Any, w: Any) -> Any:
        return xp.tanh(x @ w) * x.sum() + xp.exp(x)[:3]

    return vector, lambda x, w: (vector(x, w) ** 2).sum() + (x**3).prod()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's
def test_derivatives_equal_pytorch(device: dt.Device) -> None:
    torch = pytest.importorskip("torch")
    x, w = given(4), given(4, 3, seed=1)
    ours, theirs = [dt.asarray(a) for a in (x, w)], [torch.from_numpy(a) for a in (x, w)]
    (v, s), (tv, ts) = functions_of(dt), functions_of(torch)
    f, t = dt.func, torch.func
    for name in ("jacrev", "jacfwd"):
        for n in (0, 1):
            want = getattr(t, name)(tv, n)(*theirs)
            assert close(getattr(f, name)(v, n)(*ours), want)
    for found, want in zip(f.jacrev(v, (0, 1))(*ours), t.jacrev(tv, (0, 1))(*theirs), strict=True):
        assert close(found, want)
    assert close(f.grad(s)(*ours), t.grad(ts)(*theirs))
    want = t.hessian(ts)(*theirs)
    for twice in (f.hessian(s), f.jacfwd(f.grad(s)), f.jacrev(f.jacfwd(s)), f.jacrev(f.grad(s)),
                  f.jacfwd(f.jacfwd(s))):  # fmt: skip
        assert close(twice(*ours), want)
    both = f.hessian(s, (0, 1))(*ours)
    for row, expected in zip(both, t.hessian(ts, (0, 1))(*theirs), strict=True):
        assert all(close(a, b) for a, b in zip(row, expected, strict=True))
    assert close(dt.autograd.jacobian(v, *ours)[1], t.jacrev(tv, 1)(*theirs))
    assert close(dt.autograd.jacobian(v, *ours, mode="forward")[0], t.jacrev(tv)(*theirs))
    assert close(dt.autograd.hessian(lambda x: s(x, ours[1]), ours[0]), want)
    value, product = dt.autograd.hvp(lambda x: s(x, ours[1]), ours[0], ours[0] * 2)
    assert close(value, ts(*theirs)) and close(product, want @ theirs[0] * 2)


def test_products_equal_the_jacobian(device: dt.Device) -> None:
    x, w = dt.asarray(given(4)), dt.asarray(given(4, 3, seed=1))
    v = functions_of(dt)[0]
    jacobian = dt.func.jacrev(v)(x, w)
    out, along = dt.func.linearize(lambda x: v(x, w), x)
    direction = dt.asarray(given(4, seed=2))
    for d in (direction, direction * -3):
        assert close(along(d), jacobian @ d)
        assert close(dt.func.jvp(lambda x: v(x, w), x, d)[1], jacobian @ d)
    assert close(out, v(x, w))
    assert close(dt.func.vjp(lambda x: v(x, w), x)[1](out)[0], out @ jacobian)
    with pytest.raises(dt.ShapeError, match="directions"):
        along(out)


def test_value_and_grad_with_containers_and_aux(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0])

    def f(p: Any, x: dt.Tensor) -> Any:
        return (p["w"] * x).sum() + p["b"][0] ** 2, {"out": p["w"] * 2, "n": 3}

    p = {"w": dt.asarray([3.0, 4.0]), "b": [dt.asarray(5.0)], "unused": dt.asarray([1.0])}
    (value, aux), g = dt.func.value_and_grad(f, has_aux=True)(p, x)
    assert (value.item(), aux["out"].tolist(), aux["n"]) == (36.0, [6.0, 8.0], 3)
    assert g["w"].tolist() == [1.0, 2.0] and g["b"][0].item() == 10.0
    assert g["unused"].tolist() == [0.0]
    assert not value.requires_grad and not aux["out"].requires_grad and not g["w"].requires_grad
    g, aux = dt.func.grad(f, (1,), has_aux=True)(p, x)
    assert isinstance(g, tuple) and g[0].tolist() == [3.0, 4.0] and aux["n"] == 3
    both = dt.func.grad(lambda a, b: (a * b).sum(), (0, 1))(x, x * 2)
    assert [t.tolist() for t in both] == [[2.0, 4.0], [1.0, 2.0]]
    assert dt.func.grad(lambda a, b: (a * b).sum(), -1)(x, x * 2).tolist() == [1.0, 2.0]


def test_grad_composes_to_any_order(device: dt.Device) -> None:
    f: Callable[..., Any] = lambda x: x**5  # noqa: E731
    x = dt.asarray(2.0, dtype=dt.float64)
    for want in (80.0, 160.0, 240.0, 240.0, 120.0, 0.0):
        f = dt.func.grad(f)
        assert f(x).item() == want


def test_gradients_flow_through_inner_derivatives(device: dt.Device) -> None:
    """Second derivatives too: by arguments, and by closed-over tensors."""
    w, x = dt.asarray(given(3)).requires_grad_(), dt.asarray(given(3, seed=1)).requires_grad_()
    inner = dt.func.grad(lambda v: (v**3 * w).sum())(x)  # 3 x^2 w
    (inner**2).sum().backward()
    assert close(w.grad, 2 * inner.detach() * 3 * x.detach() ** 2)
    assert close(x.grad, 2 * inner.detach() * 6 * x.detach() * w.detach())
    with dt.no_grad():
        assert not dt.func.grad(lambda v: (v**3 * w).sum())(x).requires_grad
        assert close(dt.func.grad(lambda v: (v**3 * w).sum())(x), inner.detach())
    out, back = dt.func.vjp(lambda v: v * v * w, x)
    assert close(dt.grad((back(dt.ones_like(out))[0] ** 2).sum(), w), 8 * (x * x * w).detach())
    j = dt.func.jacfwd(lambda v: v * v * w)(x)
    assert close(dt.grad((j**2).sum(), w), 8 * (x * x * w).detach())


def test_derivatives_captured_and_eager_are_equal(device: dt.Device) -> None:
    s, x, w = functions_of(dt)[1], dt.asarray(given(4)), dt.asarray(given(4, 3, seed=1))
    each = dt.vmap(dt.func.hessian(s), in_axes=(0, None))
    many = dt.asarray(given(5, 4, seed=3))
    with dt.vendor_products(False):
        want = each(many, w)
        captured = dt.jit(each)
        assert all(captured(many, w).tolist() == want.tolist() for _ in range(3))
        assert captured.captures == 1
        with dt.eager():
            assert each(many, w).tolist() == want.tolist()
        assert close(want[2], dt.func.hessian(s)(many[2], w))
        assert close(dt.jit(dt.func.grad(s))(x, w), dt.func.grad(s)(x, w))


def test_bad_arguments_of_derivatives_raise(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0])
    for make in (dt.func.grad, dt.func.value_and_grad, dt.func.jacrev, dt.func.jacfwd,
                 dt.func.hessian):  # fmt: skip
        with pytest.raises(dt.ArgumentTypeError):
            make(3)
        with pytest.raises(dt.ArgumentTypeError, match="argnums"):
            make(dt.sin, argnums="x")
        with pytest.raises(dt.ArgumentError, match="argnums must be below 1"):
            make(lambda v: v.sum(), argnums=1)(x)
        with pytest.raises(dt.ArgumentTypeError, match="must be a tensor"):
            make(lambda v: v.sum())(2.0)
        with pytest.raises(dt.DTypeError, match="int64"):
            make(lambda v: v.sum())(dt.arange(3))
    for gradient in (dt.func.grad, dt.func.hessian):
        with pytest.raises(dt.GradientError, match=r"shape \(2,\)"):
            gradient(dt.sin)(x)
    with pytest.raises(dt.ArgumentTypeError, match="pair"):
        dt.func.grad(lambda v: v.sum(), has_aux=True)(x)
    with pytest.raises(dt.ArgumentError, match="mode"):
        dt.autograd.jacobian(dt.sin, x, mode="sideways")
    with pytest.raises(dt.ArgumentError, match="at least one"):
        dt.autograd.jacobian(dt.sin)
    with pytest.raises(dt.ShapeError, match="hvp"):
        dt.autograd.hvp(lambda v: v.sum(), x, dt.ones(3))
    with pytest.raises(dt.DTypeError, match="complex64"):
        dt.autograd.jacobian(dt.sin, dt.asarray([1j]))
    with dt.inference_mode(), pytest.raises(dt.GradientError, match="inference_mode"):
        dt.func.grad(lambda v: v.sum())(x)


def test_independent_output_has_zero_gradient(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0])
    assert dt.func.grad(lambda v: dt.asarray(1.0))(x).tolist() == [0.0, 0.0]
    assert dt.func.hessian(lambda v: v.sum())(x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert dt.func.jacrev(lambda v: x * 2)(x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert dt.func.jacfwd(lambda v: x * 2)(x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert dt.autograd.hvp(lambda v: v.sum(), x, x)[1].tolist() == [0.0, 0.0]
