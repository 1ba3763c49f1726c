"""Captured functions that draw from NumPy's generators draw as plain calls, call after call."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy as host
import pytest

CALLS = 4
Maker = Callable[[], tuple[Callable[[], Any], list[Any]]]  # of a function and its generators


def from_global() -> tuple[Callable[[], Any], list[Any]]:
    return lambda: np.random.normal(size=3) * 2 + np.random.rand(3), []


def from_global_that_is_seeded() -> tuple[Callable[[], Any], list[Any]]:
    def f() -> Any:
        x = np.random.randn(3)
        np.random.seed(7)
        return x + np.random.normal(size=3) * np.random.normal()

    return f, []


def from_generator() -> tuple[Callable[[], Any], list[Any]]:
    rng = np.random.default_rng(3)

    def f() -> Any:
        chosen = rng.choice([1.5, 2.5], size=4)[rng.permutation(4)]
        return chosen + rng.integers(0, 9, 4) * rng.standard_normal((4,), dtype=np.float32)

    return f, [rng]


def from_random_state() -> tuple[Callable[[], Any], list[Any]]:
    rng = np.random.RandomState(3)

    def f() -> Any:
        x = rng.randn(3)
        for _ in range(60):  # is re-rolled
            x = np.sin(x) + rng.normal(size=3)
        return x * rng.choice(5, size=3) + rng.rand(3)

    return f, [rng]


def from_own_generators() -> tuple[Callable[[], Any], list[Any]]:
    def f() -> Any:
        a, b = np.random.default_rng([1, 2]), np.random.RandomState(5)
        x = np.zeros(3)
        for _ in range(9):
            x = x + a.normal(size=3) if a.random() < 0.5 else x * b.randint(1, 9)
        return x

    return f, []


def from_attribute() -> tuple[Callable[[], Any], list[Any]]:
    class Noise:
        def __init__(self) -> None:
            self.rng = np.random.default_rng(8)

        def sample(self) -> Any:
            return self.rng.uniform(size=2)

    noise = Noise()
    return lambda: noise.sample() + 1, [noise.rng]


def with_parameters_that_change() -> tuple[Callable[[], Any], list[Any]]:
    rng = np.random.default_rng(8)

    def f() -> Any:
        weights, means = [0.5, 0.5], host.asarray([1.0, 2.0])
        x = rng.choice(2, 8, p=weights) + rng.normal(means, size=(4, 2)).ravel()
        weights[:] = 1.0, 0.0
        means += 100
        for _ in range(60):
            x = np.sin(x) + rng.choice(weights, 8)
            weights[0] += 1
        return x

    return f, [rng]


def of_a_shared_bit_generator() -> tuple[Callable[[], Any], list[Any]]:
    a = np.random.default_rng(8)
    b = np.random.Generator(a.bit_generator)
    return lambda: a.normal(size=3) * b.normal(size=3) - a.normal(size=3), [a, b]


CAPTURED = [
    from_global, from_global_that_is_seeded, from_generator, from_random_state,
    from_own_generators, from_attribute, with_parameters_that_change, of_a_shared_bit_generator,
]  # fmt: skip


def one_number() -> tuple[Callable[[], Any], list[Any]]:
    rng = np.random.default_rng(3)
    return lambda: rng.normal() * np.ones(2), [rng]


def shuffled() -> tuple[Callable[[], Any], list[Any]]:
    rng = np.random.default_rng(3)

    def f() -> Any:
        x = np.arange(9) * 1
        rng.shuffle(x)
        return x

    return f, [rng]


def with_a_tensor_as_parameter() -> tuple[Callable[[], Any], list[Any]]:
    rng, rates = np.random.default_rng(3), np.asarray([1.0, 9.0])
    return lambda: rng.poisson(rates * 2), [rng]


def kept() -> tuple[Callable[[], Any], list[Any]]:
    made = list[Any]()

    def f() -> Any:
        made.append(np.random.default_rng(4))
        return made[-1].normal(size=2)

    return f, []


def of_a_bit_generator() -> tuple[Callable[[], Any], list[Any]]:
    bits = np.random.PCG64(1)
    return lambda: np.random.Generator(bits).normal(size=2), [bits]


def by_numpy() -> tuple[Callable[[], Any], list[Any]]:
    rng = host.random.default_rng(3)
    return lambda: dt.asarray(rng.normal(size=3)), [rng]


def by_numpy_globally() -> tuple[Callable[[], Any], list[Any]]:
    return lambda: dt.asarray(host.random.normal(size=3)), []


def by_state() -> tuple[Callable[[], Any], list[Any]]:
    rng = np.random.default_rng(3)

    def f() -> Any:
        rng.bit_generator.advance(5)
        return rng.normal(size=2)

    return f, [rng]


def by_both_globally() -> tuple[Callable[[], Any], list[Any]]:
    def f() -> Any:
        from numpy.random import normal

        return np.random.normal(size=3) * normal() + np.random.rand(3)

    return f, []


def by_numpy_with_the_state_that_is_there() -> tuple[Callable[[], Any], list[Any]]:
    state = host.random.get_state()

    def f() -> Any:
        host.random.set_state(state)
        return np.random.normal(size=3)

    return f, []


def of_a_copy() -> tuple[Callable[[], Any], list[Any]]:
    rng = np.random.default_rng(3)
    return lambda: copy.deepcopy(rng).normal(size=2) * rng.normal(size=2), [rng]


PLAIN = [
    one_number, shuffled, with_a_tensor_as_parameter, kept, of_a_bit_generator, by_numpy,
    by_numpy_globally, by_state, by_both_globally, by_numpy_with_the_state_that_is_there,
    of_a_copy,
]  # fmt: skip


def run(maker: Maker, jits: bool) -> tuple[list[Any], list[bytes], int]:
    """Return the values of some calls, the generators' states behind them, and the captures."""
    host.random.seed(11)
    f, generators = maker()
    captured = dt.jit(f)
    values = [host.asarray(captured() if jits else f()) for _ in range(CALLS)]
    states = [pickle.dumps(x) for x in (host.random.get_state(legacy=False), *generators)]
    return values, states, captured.captures


def check(maker: Maker) -> int:
    (plain, states, _), (captured, captured_states, captures) = run(maker, False), run(maker, True)
    for a, b in zip(captured, plain, strict=True):
        assert a.dtype == b.dtype
        host.testing.assert_array_equal(a, b)
    assert captured_states == states
    return captures


@pytest.mark.parametrize("maker", CAPTURED)
def test_replay_draws_as_a_plain_call_and_leaves_the_same_state(maker: Maker) -> None:
    assert check(maker) == 1


@pytest.mark.parametrize("maker", PLAIN)
def test_draw_that_cannot_be_repeated_runs_plain_with_a_warning(maker: Maker) -> None:
    with pytest.warns(dt.DovetailWarning, match="runs without a capture"):
        assert check(maker) == 0


def test_warning_of_one_number_names_the_line_and_the_way_out() -> None:
    rng = np.random.default_rng(3)

    @dt.jit
    def f(x: Any) -> Any:
        return x * rng.normal()

    line = inspect.getsourcelines(f.__wrapped__)[1] + 2
    with pytest.warns(dt.DovetailWarning) as caught:
        f(np.ones(2))
    text = str(caught[0].message)
    assert "np.random.normal draws one number" in text and "draw an array before" in text
    assert f"test_numpy_draws.py:{line}" in text


def test_another_generator_is_captured_anew() -> None:
    state = {"rng": np.random.default_rng(1)}
    f = dt.jit(lambda: state["rng"].normal(size=2))
    g = dt.jit(lambda rng: rng.normal(size=2))
    for seed in (1, 2, 1):
        state["rng"] = np.random.default_rng(seed)
        want = host.random.default_rng(seed).normal(size=(2, 2))
        assert [f().tolist(), f().tolist()] == want.tolist()
        rng = np.random.default_rng(seed)
        assert [g(rng).tolist(), g(rng).tolist()] == want.tolist()


def test_draw_in_the_body_of_a_loop_is_an_error() -> None:
    rng = np.random.default_rng(1)

    @dt.jit
    def f(x: Any) -> Any:
        return dt.fori_loop(0, 3, lambda i, c: c + rng.normal(size=2), x)

    before = rng.bit_generator.state
    with pytest.raises(dt.CaptureError, match=r"np\.random\.normal"):
        f(np.ones(2))
    assert rng.bit_generator.state == before


def test_state_of_an_own_generator_ends_the_capture() -> None:
    states = host.random.default_rng(3)

    def f() -> Any:
        rng = np.random.default_rng(1)
        rng.bit_generator.state = states.bit_generator.state
        return rng.normal(size=2)

    captured = dt.jit(f)
    with pytest.warns(dt.DovetailWarning, match="uses the state of a generator"):
        for _ in range(3):
            assert captured().tolist() == f().tolist()
            states.normal()


@pytest.mark.parametrize("maker", [np.random.default_rng, np.random.RandomState])
def test_copy_of_a_generator_has_its_class_and_draws_the_same(maker: Any) -> None:
    rng = maker(4)
    rng.normal(size=3)
    for copied in (copy.copy(rng), copy.deepcopy(rng), pickle.loads(pickle.dumps(rng))):
        assert type(copied) is type(rng)
    assert copied.normal(size=3).tolist() == rng.normal(size=3).tolist()


def test_sliding_windows_are_a_view_in_a_capture() -> None:
    def f(x: Any) -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3))
        return windows.sum(axis=(2, 3)), np.lib.stride_tricks.sliding_window_view(x, 2, axis=0)

    x, captured = np.arange(20.0).reshape(4, 5), dt.jit(f)
    for _ in range(2):
        for found, want in zip(captured(x), f(x), strict=True):
            assert type(found) is np.ndarray
            host.testing.assert_array_equal(found, want)
        x += 1
    assert captured.captures == 1
    assert f(x)[1].storage() is x.storage()
