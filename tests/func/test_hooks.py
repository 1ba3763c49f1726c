"""Gradient hooks and saved-tensor hooks in `vmap` equal a loop over examples."""

from __future__ import annotations

from collections.abc import Callable

import dovetail as dt
import numpy as np
import pytest
from dovetail.func import grad

pytestmark = pytest.mark.usefixtures("device")
Of = Callable[[dt.Tensor], dt.Tensor]


def rows() -> dt.Tensor:
    return dt.linspace(-1, 2, 12, dtype=dt.float64).reshape(4, 3)


def hooked(hook: Callable[[dt.Tensor], object], cube: bool = False) -> Of:
    """Return a function of one example that hooks an intermediate value."""

    def f(x: dt.Tensor) -> dt.Tensor:
        y = dt.sin(x) * 2
        y.register_hook(hook)  # type: ignore[arg-type]  # one gives None
        return (y * y * y if cube else y * y).sum()

    return f


def scaled(g: dt.Tensor) -> dt.Tensor:
    return g * 10


def clipped(g: dt.Tensor) -> dt.Tensor:
    """Clip by the norm of one example's gradient."""
    return g / dt.sqrt((g * g).sum() + 1)


def looped(f: Of) -> Of:
    return lambda x: dt.stack([f(x[i]) for i in range(x.shape[0])])


def around(f: Of, x: dt.Tensor) -> bytes:
    """Return the bits of a gradient that is taken outside of `f`."""
    x = x.detach().copy().requires_grad_()
    (g,) = dt.grad(f(x).sum(), [x])
    return g.numpy().tobytes()


@pytest.mark.parametrize("hook", [scaled, clipped])
@pytest.mark.parametrize("cube", [False, True])
def test_hook_receives_the_gradient_of_one_example(hook: Of, cube: bool) -> None:
    f, x = hooked(hook, cube), rows()
    assert dt.vmap(grad(f))(x).numpy().tobytes() == looped(grad(f))(x).numpy().tobytes()
    assert around(dt.vmap(f), x) == around(looped(f), x)
    assert around(dt.vmap(f), x) != around(dt.vmap(hooked(lambda g: g, cube)), x)
    twice = around(dt.vmap(grad(f)), x), around(looped(grad(f)), x)
    np.testing.assert_allclose(*(np.frombuffer(b) for b in twice), rtol=1e-12, atol=1e-14)


def test_hooks_in_nested_and_captured_vmap() -> None:
    f, x = hooked(clipped), rows().reshape(2, 2, 3)
    want = around(looped(looped(f)), x)
    assert around(dt.vmap(dt.vmap(f)), x) == want
    assert around(dt.vmap(looped(f)), x) == want
    captured = dt.jit(dt.vmap(f))
    for _ in range(2):
        assert around(captured, rows()) == around(looped(f), rows())


def test_hook_sees_the_shape_of_one_example_and_none_changes_nothing() -> None:
    seen: list[tuple[int, ...]] = []
    f = hooked(lambda g: seen.append(g.shape))
    assert around(dt.vmap(f), rows()) == around(dt.vmap(hooked(lambda g: g)), rows())
    assert seen == [(3,)]
    with pytest.raises(dt.ShapeError, match="the gradient that a hook returned"):
        around(dt.vmap(hooked(lambda g: g.sum())), rows())
    with pytest.raises(dt.TransformError, match="stands for 4 examples"):
        around(dt.vmap(hooked(lambda g: print(float(g.sum())))), rows())


def test_removed_hook_and_write_to_a_hooked_value() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        y = x * 2
        y.register_hook(scaled).remove()
        z = x * 3
        z.register_hook(scaled)
        w = z + 1
        dt.evaluate(z)
        z += 5
        return (y * w + z).sum()

    assert around(dt.vmap(f), rows()) == around(looped(f), rows())


def test_hook_of_the_argument_itself() -> None:
    def of_it(x: dt.Tensor) -> dt.Tensor:
        x.register_hook(scaled)
        return (x * x).sum()

    def of_a_copy(x: dt.Tensor) -> dt.Tensor:
        return of_it(x.copy())

    x = rows()
    assert dt.vmap(grad(of_it))(x).tolist() == (x * 20).tolist()
    with pytest.raises(
        dt.TransformError, match=r"register_hook cannot be used on an argument.*x\.copy\(\)"
    ):
        around(dt.vmap(of_it), x)
    assert around(dt.vmap(of_a_copy), x) == around(looped(of_it), x)
    assert around(dt.vmap(of_it, in_axes=1), x) == around(looped(of_it), x)


def test_hook_of_a_shared_value_runs_once() -> None:
    w = dt.ones(3, dtype=dt.float64, requires_grad=True)
    calls: list[tuple[int, ...]] = []

    def f(x: dt.Tensor) -> dt.Tensor:
        v = w * 1
        v.register_hook(lambda g: calls.append(g.shape))
        return (v * x).sum()

    (g,) = dt.grad(dt.vmap(f)(rows()).sum(), [w])
    assert g.tolist() == rows().sum(axis=0).tolist() and calls == [(3,)]


def test_saved_tensors_hooks_around_vmap_see_all_examples() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        return (dt.sin(x) * x).sum()

    packed: list[tuple[int, ...]] = []

    def pack(t: dt.Tensor) -> np.ndarray:
        packed.append(t.shape)
        return t.numpy()

    x, want = rows(), around(looped(f), rows())
    with dt.autograd.saved_tensors_hooks(pack, dt.asarray):
        assert around(dt.vmap(f), x) == want
        assert packed and {*packed} == {(4, 3)}
        packed.clear()
        inner = dt.vmap(grad(f))(x).numpy().tobytes()
    assert inner == want and packed == []  # nothing is saved for all examples


def test_saved_tensors_hooks_inside_vmap_see_one_example() -> None:
    shapes: list[tuple[int, ...]] = []

    def f(x: dt.Tensor) -> dt.Tensor:
        with dt.autograd.saved_tensors_hooks(
            lambda t: (shapes.append(t.shape), t * 2)[1], lambda t: t / 2
        ):
            return (dt.sin(x) * x).sum()

    x, want = rows(), looped(grad(f))(rows()).numpy().tobytes()
    shapes.clear()
    assert dt.vmap(grad(f))(x).numpy().tobytes() == want and {*shapes} == {(3,)}

    def reads(x: dt.Tensor) -> dt.Tensor:
        with dt.autograd.saved_tensors_hooks(lambda t: t.numpy(), dt.asarray):
            return (dt.sin(x) * x).sum()

    with pytest.raises(dt.TransformError, match="stands for 4 examples"):
        dt.vmap(grad(reads))(x)
