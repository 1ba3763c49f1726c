"""`dt.jit`: a captured function equals the plain one, bit for bit."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from captured import Pair, bits, device, same, vector
from dovetail.capture.closures import Closure
from dovetail.capture.jit import ARGUMENT_KINDS_MAX

__all__ = ["device"]

# --- results


def test_captured_function_equals_the_plain_one(device: dt.Device) -> None:
    f = same(lambda x, y: dt.softmax(x * y) + dt.sum(y), lambda: (vector(), vector(seed=1)), 4)
    assert f.captures == 1


def test_replays_read_new_arguments(device: dt.Device) -> None:
    f = dt.jit(lambda x: dt.exp(x) - 1)
    for seed in range(4):
        x = vector(seed=seed)
        assert bits(f(x)) == bits(dt.exp(x) - 1)
    assert f.captures == 1


def test_arguments_may_be_pending(device: dt.Device) -> None:
    f = dt.jit(lambda x: x + 1)
    for _ in range(3):
        assert bits(f(vector() * 2)) == bits(vector() * 2 + 1)
        assert bits(f((vector(16) * 2)[8:])) == bits((vector(16) * 2)[8:] + 1)
    assert f.captures == 1


def test_new_shapes_dtypes_and_strides_are_captured_once_each(device: dt.Device) -> None:
    f = dt.jit(lambda x: x.sum(axis=0))
    square = dt.reshape(vector(16), (4, 4))
    for x in (vector(8), vector(9), vector(8, dt.float64), square, square.T, vector(8), square.T):
        assert bits(f(x)) == bits(x.sum(axis=0))
    assert f.captures == 5


def test_kind_of_arguments_in_use_is_not_captured_again_after_many_others() -> None:
    f = dt.jit(lambda x: x * 2)
    for n in range(1, 200):
        f(dt.ones(n, device="reference"))
        if n % 5 == 0:
            f(dt.ones(1, device="reference"))
    assert f.captures == 199 and len(f.list_captures()) <= ARGUMENT_KINDS_MAX


def test_views_at_other_offsets_need_no_new_capture(device: dt.Device) -> None:
    f, x = dt.jit(lambda x: x * 2), vector(16)
    dt.evaluate(x)
    for start in range(4):
        assert bits(f(x[start : start + 5])) == bits(x[start : start + 5] * 2)
    assert f.captures == 1


def test_containers_of_arguments_and_results_keep_their_types(device: dt.Device) -> None:
    def f(given: dict[str, Any], rest: Any) -> Any:
        p = given["pair"]
        total = p.first + p.second[0] + rest[0]
        return {"sum": total, "parts": [p.first * 2, (total, None, "label", 3)]}, Pair(total, 1.5)

    captured = dt.jit(f)
    for seed in range(3):
        given = {"pair": Pair(vector(seed=seed), [vector(seed=seed + 1)])}
        rest = (vector(seed=9), "label")
        want, got = f(given, rest), captured(given, rest)
        assert bits(got) == bits(want)
        assert type(got[1]) is Pair and got[0]["parts"][1][1:] == (None, "label", 3)
    assert captured.captures == 1
    captured({"pair": Pair(vector(), [vector()])}, [vector(), "label"])
    assert captured.captures == 2  # a list and a tuple have different keys


def test_tensor_returned_twice_is_one_tensor(device: dt.Device) -> None:
    def f(x: dt.Tensor) -> Any:
        y = x * 2
        return y, y, y[1:]

    captured = dt.jit(f)
    for _ in range(2):
        a, b, c = captured(vector())
        assert a is b
        a[...] = 0
        assert c.tolist() == [0.0] * 7


def test_results_may_alias_an_argument(device: dt.Device) -> None:
    captured = dt.jit(lambda x: (x, x[2:], x.reshape((2, 4)).T))
    for seed in range(3):
        x = vector(seed=seed)
        same_, tail, matrix = captured(x)
        assert same_ is x
        tail[...] = 7
        assert x.tolist()[2:] == [7.0] * 6
        assert matrix.tolist()[1] == [x.tolist()[1], x.tolist()[5]]
    assert captured.captures == 1


def test_keyword_arguments_and_defaults(device: dt.Device) -> None:
    def f(x: dt.Tensor, scale: float = 2.0, *, shift: Any = 0) -> dt.Tensor:
        return x * scale + shift

    captured = dt.jit(f)
    x = vector()
    for _ in range(2):
        assert bits(captured(x)) == bits(f(x))
        assert bits(captured(x, shift=x)) == bits(f(x, shift=x))
        assert bits(captured(x, scale=3.0, shift=1)) == bits(f(x, scale=3.0, shift=1))
    assert captured.captures == 3


def test_methods_are_captured(device: dt.Device) -> None:
    class Model:
        def __init__(self) -> None:
            self.weight = vector()

        @dt.jit
        def forward(self, x: dt.Tensor) -> dt.Tensor:
            return x * self.weight

    model, x = Model(), vector(seed=1)
    for _ in range(3):
        assert bits(model.forward(x)) == bits(x * model.weight)
        model.weight = model.weight + 1
    assert Model.forward.captures == 1


# --- static arguments, floats


def test_ints_bools_and_strings_are_static(device: dt.Device) -> None:
    def f(x: dt.Tensor, n: int, how: str, on: bool) -> dt.Tensor:
        for _ in range(n):
            x = x + 1 if how == "up" else x - 1
        return x if on else -x

    captured = dt.jit(f)
    for args in [(1, "up", True), (2, "up", True), (2, "down", True), (2, "down", False)] * 2:
        assert bits(captured(vector(), *args)) == bits(f(vector(), *args))
    assert captured.captures == 4


def test_true_and_one_have_different_captures(device: dt.Device) -> None:
    captured = dt.jit(lambda x, n: x * 2 if n is True else x)
    assert captured(dt.ones(1), 1).tolist() == [1.0]
    assert captured(dt.ones(1), True).tolist() == [2.0]


def test_static_argnames_makes_a_float_static(device: dt.Device) -> None:
    @dt.jit(static_argnames="rate")
    def f(x: dt.Tensor, rate: float) -> dt.Tensor:
        return x * 2 if rate > 1 else x * rate

    for rate in (0.5, 2.0, 0.5, 2.0):
        assert f(dt.ones(1), rate).tolist() == [rate]
        assert f(dt.ones(1), rate=rate).tolist() == [rate]
    assert f.captures == 4
    with pytest.raises(
        dt.ArgumentError, match=r"static_argnames must name parameters.*x, rate, got speed"
    ):
        dt.jit(f, static_argnames=["speed"])
    with pytest.raises(dt.ArgumentTypeError, match="names of arguments"):
        dt.jit(f, static_argnames=3)


# --- writes in place, closures


def test_writes_to_arguments_are_replayed(device: dt.Device) -> None:
    def f(x: dt.Tensor, y: dt.Tensor) -> None:
        x += y
        x[1:-1] = 0.5 * (x[:-2] + x[2:])
        y[...] = x[::-1]

    assert same(f, lambda: (vector(), vector(seed=1)), 5).captures == 1


def test_new_alias_pattern_of_arguments_is_captured_again(device: dt.Device) -> None:
    def f(x: dt.Tensor, y: dt.Tensor) -> dt.Tensor:
        x[...] = y + 1
        return x + y

    captured = dt.jit(f)
    for _ in range(2):
        for start in (0, 1, 2):
            a, b = vector(16), vector(16)
            dt.evaluate(a, b)
            part = slice(start, start + 8)
            assert bits(captured(a[:8], a[part])) == bits(f(b[:8], b[part]))
            assert bits(a) == bits(b)
        assert bits(captured(vector(), vector(seed=1))) == bits(f(vector(), vector(seed=1)))
    assert captured.captures >= 4


def test_pending_reader_of_an_argument_sees_old_values(device: dt.Device) -> None:
    captured = dt.jit(lambda x: x.add_(1))
    captured(vector())
    x = vector()
    dt.evaluate(x)
    before = x * 2
    captured(x)
    assert bits(before) == bits(vector() * 2)


def test_closure_tensors_are_read_at_each_call(device: dt.Device) -> None:
    weight = vector()
    held = {"list": [vector(seed=1)]}

    def f(x: dt.Tensor) -> dt.Tensor:
        return x * weight + held["list"][0]

    captured = dt.jit(f)
    for step in range(4):
        assert bits(captured(vector(seed=2))) == bits(f(vector(seed=2)))
        if step == 0:
            weight += 1
        elif step == 1:
            weight = weight * 2
        else:
            held["list"] = [vector(seed=5)]
    assert captured.captures == 1
    weight = vector(1)
    assert bits(captured(vector(seed=2))) == bits(f(vector(seed=2)))
    assert captured.captures == 2


def test_writes_to_closure_tensors_are_replayed(device: dt.Device) -> None:
    states = [vector() * 2, vector() * 2]  # pending

    def f(state: dt.Tensor, x: dt.Tensor) -> dt.Tensor:
        state[1:] = x[:-1]
        state += x
        return state.sum()

    plain, x = states[0], vector(seed=3)
    mine = states[1]
    captured = dt.jit(lambda x: f(mine, x))
    for _ in range(4):
        assert bits(captured(x)) == bits(f(plain, x))
        assert bits(mine) == bits(plain)
    assert captured.captures == 1


def test_argument_may_alias_a_closure_tensor(device: dt.Device) -> None:
    state = vector(16)
    dt.evaluate(state)

    def f(x: dt.Tensor) -> dt.Tensor:
        state[:8] += 1
        return x * 2

    captured = dt.jit(f)
    for _ in range(2):
        for x in (state[4:12], vector(), state[:8], vector(16)[8:]):
            got = captured(x)
            assert bits(got) == bits(x * 2)


def test_functions_of_several_launches(device: dt.Device) -> None:
    def f(x: dt.Tensor) -> Any:
        order = dt.argsort(x)
        table = dt.concat([x, x * 2, dt.cumulative_sum(x)])
        return dt.sort(table), table[order], dt.var(x), dt.max(table), x.reshape((4, 2)) @ x[:2]

    assert same(f, lambda: (vector(),), 3).captures == 1


def test_function_that_rebinds_its_closure_runs_uncaptured(device: dt.Device) -> None:
    class Model:
        def __init__(self) -> None:
            self.weight, self.seen = vector(), [vector()]

        def step(self, x: dt.Tensor) -> dt.Tensor:
            self.weight = self.weight * 2
            self.seen.append(x + 1)
            return self.weight * x

    mine, theirs = Model(), Model()
    captured = dt.jit(mine.step)
    for seed in range(6):
        x = vector(seed=seed)
        assert bits(captured(x)) == bits(theirs.step(x))
        assert bits([mine.weight, *mine.seen]) == bits([theirs.weight, *theirs.seen])
    assert captured.captures == 0


def test_state_created_by_the_first_call_is_updated_by_later_calls(device: dt.Device) -> None:
    class Momentum:
        def __init__(self) -> None:
            self.state: dict[str, dt.Tensor] = {}

        def step(self, x: dt.Tensor, g: dt.Tensor) -> None:
            speed = self.state.setdefault("speed", dt.zeros(8))
            speed *= 0.5
            speed += g
            x -= speed

    mine, theirs = Momentum(), Momentum()
    captured = dt.jit(mine.step)
    x, y = vector(), vector()
    for seed in range(5):
        captured(x, vector(seed=seed))
        theirs.step(y, vector(seed=seed))
        assert bits(x) == bits(y)
    assert captured.captures == 1


# --- random numbers


def test_random_state_advances_at_each_call(device: dt.Device) -> None:
    def f(x: dt.Tensor) -> Any:
        noise = dt.random.normal(8)
        return x + noise, dt.random.integers(0, 100, (3,)), noise * dt.random.uniform(8, high=3.0)

    captured = dt.jit(f)
    dt.random.manual_seed(5)
    wanted = [bits(f(vector())) for _ in range(4)]
    dt.random.manual_seed(5)
    assert [bits(captured(vector())) for _ in range(4)] == wanted
    assert wanted[0] != wanted[1]


def test_function_may_create_or_seed_generators(device: dt.Device) -> None:
    generator = dt.random.default_rng(1)

    def f() -> Any:
        fresh = dt.random.default_rng(3)
        a = fresh.uniform(2)
        b = generator.uniform(2)
        generator.manual_seed(8)
        return a, b, generator.uniform(2), fresh.uniform(2)

    captured = dt.jit(f)
    wanted = [bits(f()) for _ in range(3)]
    generator.manual_seed(1)
    assert [bits(captured()) for _ in range(3)] == wanted


# --- gradients inside


def steps(captured: bool, device: dt.Device, momentum: bool) -> Any:
    """Return the losses of some training steps, written by hand."""
    rng = np.random.default_rng(0)
    w, b = (dt.asarray(rng.normal(size=s)).requires_grad_() for s in [(4, 3), (3,)])
    speeds = [dt.zeros(p.shape, dtype=dt.float64) for p in (w, b)]

    def step(x: dt.Tensor, y: dt.Tensor, rate: float) -> dt.Tensor:
        loss = ((dt.tanh(x @ w + b) - y) ** 2).mean()
        loss.backward()
        with dt.no_grad():
            for p, v in zip((w, b), speeds, strict=True):
                if momentum:
                    v *= 0.9
                    v += p.grad
                    p -= rate * v
                else:
                    p -= rate * p.grad
                p.grad = None
        return loss

    f = dt.jit(step) if captured else step
    losses = []
    for i in range(5):
        x, y = (dt.asarray(rng.normal(size=(6, n))) for n in (4, 3))
        losses.append(f(x, y, 0.1 / (i + 1)).item())
    if captured:
        assert f.captures == 1
    return losses, bits([w.detach(), b.detach(), *speeds]), w.grad, w.requires_grad


@pytest.mark.parametrize("momentum", [False, True])
def test_training_step_is_captured_with_its_gradients(device: dt.Device, momentum: bool) -> None:
    assert steps(True, device, momentum) == steps(False, device, momentum)


def test_gradients_accumulate_across_calls(device: dt.Device) -> None:
    def run(jit: bool) -> Any:
        w = vector().requires_grad_()

        def f(x: dt.Tensor) -> None:
            (w * x).sum().backward()

        g = dt.jit(f) if jit else f
        for seed in range(4):
            g(vector(seed=seed))
        assert not jit or g.captures == 2  # without a grad, and with one
        return bits(w.grad)

    assert run(True) == run(False)


def test_dt_grad_inside_a_captured_function(device: dt.Device) -> None:
    def f(x: dt.Tensor) -> Any:
        x = x.detach().requires_grad_()
        y = (x * x * x).sum()
        (g,) = dt.grad([y], [x], create_graph=True)
        return y.detach(), g.detach(), dt.grad(g.sum(), x)

    assert same(f, lambda: (vector(),)).captures == 1


def test_captured_function_is_differentiable_from_outside(device: dt.Device) -> None:
    def f(x: dt.Tensor, w: dt.Tensor) -> dt.Tensor:
        return dt.tanh(x * w).sum()

    captured = dt.jit(f)
    w, other = vector().requires_grad_(), vector().requires_grad_()
    for seed in range(3):
        captured(vector(seed=seed), w).backward()
        f(vector(seed=seed), other).backward()
        assert bits(w.grad) == bits(other.grad)


# --- inside other functions and settings


def test_captured_function_inside_another_is_inlined(device: dt.Device) -> None:
    inner = dt.jit(lambda x: x * 2)
    outer = dt.jit(lambda x: inner(x) + inner(x + 1))
    for _ in range(3):
        assert bits(outer(vector())) == bits(vector() * 2 + (vector() + 1) * 2)
    assert (outer.captures, inner.captures) == (1, 0)


def test_eager_mode_and_settings_apply_to_captured_functions(device: dt.Device) -> None:
    f = dt.jit(lambda x: x @ x)
    x = dt.reshape(vector(16), (4, 4))
    with dt.eager():
        assert bits(f(x)) == bits(x @ x)
    assert f.captures == 0
    for _ in range(2):
        assert bits(f(x)) == bits(x @ x)
        with dt.vendor_products(False):
            assert bits(f(x)) == bits(x @ x)
    assert f.captures == 2


def test_closure_search_does_not_enter_captures(device: dt.Device) -> None:
    """A captured method that is stored on its object leads to its own captures."""
    w = dt.full(3, 2.0, device=device)
    f = dt.jit(lambda x: x * w + 1)
    for n in (3, 1):
        f(dt.ones(n, device=device))
    assert [p.value for p in Closure([lambda: f(w)]).tensors()] == [w]


def test_closure_search_does_not_enter_dovetail_functions() -> None:
    """The walk over what a function leads to ends at the library's own functions."""
    resize = dt.nn.functional.interpolate
    seen = [p.value for p in Closure([lambda x: resize(x, (8, 6))]).paths]
    assert resize in seen and len(seen) < 10


def test_arguments_may_be_views_of_closure_tensors(device: str) -> None:
    class Training:
        def __init__(self) -> None:
            self.data = dt.arange(24, dtype=dt.float32, device=device).reshape((12, 2))
            self.total = dt.zeros(2, device=device)

        def step(self, x: dt.Tensor) -> dt.Tensor:
            self.total += dt.sum(x, axis=0)
            return x * 2

    training = Training()
    step = dt.jit(training.step)
    for k in (0, 3, 6, 9, 3, 0):
        assert step(training.data[k : k + 3]).tolist() == (training.data[k : k + 3] * 2).tolist()
    assert step.captures == 2  # the offset does not matter, as the second call shows
    want = sum(training.data[k : k + 3].sum(axis=0).numpy() for k in (0, 3, 6, 9, 3, 0))
    assert training.total.tolist() == want.tolist()


@pytest.mark.parametrize("kind", ["both", "written", "given", "gradients"])
def test_closure_tensor_next_to_an_argument_keeps_its_place(device: str, kind: str) -> None:
    data = dt.arange(24, dtype=dt.float32, device=device)
    weight = dt.ones(4, device=device, requires_grad=True)

    def both(x: dt.Tensor) -> dt.Tensor:
        return x + data[:4]

    def written(x: dt.Tensor) -> dt.Tensor:
        data[:4] += 1
        return x + 1

    def given(x: dt.Tensor) -> dt.Tensor:
        x += 1
        return data[4:8]

    def gradients(x: dt.Tensor) -> dt.Tensor:
        y = dt.sum(weight * x * data[:4])
        y.backward()
        return y.detach()

    plain = {"both": both, "written": written, "given": given, "gradients": gradients}[kind]
    first = data.numpy().copy()
    found = []
    for f in (dt.jit(plain), plain):
        data[:] = dt.asarray(first, device=device)
        weight.grad = dt.zeros(4, device=device)
        results = [f(data[k : k + 4]).tolist() for k in (8, 12, 16, 0, 4, 8, 12, 20)]
        assert weight.grad is not None
        found.append((results, data.tolist(), weight.grad.tolist()))
    assert found[0] == found[1]
