"""Python loops in captured functions are re-rolled and equal the unrolled programs."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.capture import loop_acts, rerolling
from dovetail.capture.loop_acts import RerolledLoop
from dovetail.capture.pytree import flatten
from dovetail.capture.serialize import DIGEST_BYTES, MAGIC
from dovetail.engine.events import counters

ROWS, WIDTH = 80, 6
Function = Callable[..., Any]
FUNCTIONS: dict[str, Function] = {}
UNROLLED: dict[str, Function] = {}  # content of places that must not change
LONG = {"epochs_over_rows", "value_that_only_the_next_iteration_would_use"}  # of thousands of acts


def loop(f: Function) -> Function:
    FUNCTIONS[f.__name__] = f
    return f


def no_loop(f: Function) -> Function:
    UNROLLED[f.__name__] = f
    return loop(f)


def sums(x: Any) -> Any:
    """Return sums along the last axis, which a kernel of its own computes."""
    return dt.cumulative_sum(x, axis=-1)


@loop
def carry_of_one_tensor(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for _ in range(n):
        x = dt.sin(sums(x))
    return x


@loop
def carry_of_two_tensors(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    y = x * 2
    for _ in range(n):
        x, y = dt.sin(y) + dt.flip(x), dt.cos(x) - rate * y
        x = sums(x)
    return x, y


@loop
def inner_loops_of_results_that_are_kept(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    kept = []
    for _ in range(4):  # it is not re-rolled: its results are used after it
        ys = xs * rate
        for k in range(1, n):
            ys[k] = sums(ys[k - 1] * 0.5 + xs[k])
        x = x + ys[n - 1]
        kept.append(x)
    return kept


@loop
def arrays_of_numbers(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for _ in range(n):
        weights = dt.asarray([0.5, -1.0, 0.25, 1.0, 2.0, -0.5], device=x.device)
        written = dt.asarray([0.5, -1.0, 0.25, 1.0, 2.0, -0.5], device=x.device)
        written += sums(x)
        x = sums(dt.sin(x * weights) + dt.flip(written))
    return x, weights, written


@loop
def recurrence_of_three_terms(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    before = x * 0.5
    for _ in range(n):
        x, before = dt.sin(2 * x - before + sums(x)), x
    return x, before


@loop
def value_from_five_iterations_ago(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    values = [x * k for k in range(5)]
    for _ in range(3 * n):
        values = [*values[1:], sums(values[0] * 0.5 + values[-1])]
    return values[0] + values[1]


@loop
def write_in_place(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for _ in range(n):
        x[1:-1] += rate * (x[2:] - 2 * x[1:-1] + x[:-2])


@loop
def buffers_that_take_turns(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    a, b = x.copy(), x * 0
    for _ in range(n):
        b[...] = dt.flip(a) * 0.5 + x
        a, b = b, a
    return a, b


@loop
def write_to_values_of_its_own(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for _ in range(n):
        y = x * 0.5
        y[1:3] += x[::2][:2]
        x = sums(y) * 0.5
    return x


@loop
def rows_read(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for k in range(n):
        x = sums(x + xs[k])
    return x


@loop
def rows_read_backwards(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for k in range(n):
        x = sums(x + xs[n - 1 - k] * xs[0])
    return x


@loop
def rows_and_their_neighbours(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    ys = dt.zeros(xs.shape, device=xs.device)
    for k in range(1, n + 1):
        ys[k] = sums(xs[k - 1] + xs[k + 1] - ys[k - 1])
    return ys


@loop
def rows_written(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    ys = dt.zeros(xs.shape, device=xs.device)
    for k in range(n):
        x = sums(dt.sin(x))
        ys[k] = x
        xs[k] += x
    return ys.sum(axis=0)


@loop
def epochs_over_rows(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for _ in range(5):
        for k in range(n):
            x = sums(x * 0.5 + xs[k])
    return x


@loop
def loop_in_loop(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for _ in range(n):
        for _ in range(4):
            x = sums(x * 0.5 + 1)
        x = sums(dt.flip(x))
    return x


@loop
def one_loop_after_another(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for _ in range(n):
        x = sums(x * 0.5 + 1)
    y = x.sum()
    for _ in range(n):
        x = dt.cumulative_sum(x * 0.25)
    return x, y


@loop
def value_of_the_last_iteration(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for _ in range(n):
        y = sums(x * 2)
        z = y * y
        x = sums(dt.sin(z) + y)
    w = y + z
    return x, y, w


@loop
def first_value_used_after_the_loop(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    first = sums(x * 2)
    x = first
    for _ in range(n):
        x = sums(dt.sin(x))
    return x + first


@loop
def value_from_before_the_loop(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    kept = sums(x * 2)
    for _ in range(n):
        x = sums(x * 0.5)
        x = sums(x + kept)
        x = sums(dt.sin(x))
    return x * 2


@loop
def value_that_only_the_next_iteration_would_use(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    y, z, a = x * 3, x * 2, dt.eye(WIDTH, device=x.device) * 3
    for _ in range(n):
        z = sums(z + y)
        y = dt.linalg.solve(a, y)
        x = sums(x * 0.5)
        z = sums(z * 0.5)
    return x + z


@loop
def value_before_the_last_iteration(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for _ in range(n):
        before, w = x, sums(xs[:WIDTH] * 0.5)
        x = (before @ w) @ w
    return x + before


@loop
def value_of_two_iterations_ago(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    before, x, w = xs[:WIDTH] * 1, xs[1 : WIDTH + 1] * 1, xs[:WIDTH] * 0.1
    for _ in range(n):
        before, x = x, x + before @ w
    return x + before


@no_loop
def row_of_a_new_tensor(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    tall = dt.concat([xs] * (n // ROWS + 1))
    for k in range(n):
        made = sums(tall * 2)
        made[k] = x
        x = sums(made.sum(axis=0) * 0.01)
    return x


@loop
def carry_that_begins_as_a_row(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    x = sums(xs)[0]
    for _ in range(n):
        x = sums(x * 0.5)
    return x * 2


@no_loop
def values_of_all_iterations(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    made = []
    for _ in range(n):
        x = sums(dt.sin(x))
        made.append(x)
    return made


@no_loop
def earlier_values_used_later(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    made = [x]
    for _ in range(n):
        made.append(sums(dt.sin(made[-1])))
    x = made[-1]
    for k in range(n):
        x = sums(x + made[k])
    return x


@no_loop
def rows_in_another_order(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for k in np.random.default_rng(3).permutation(n).tolist():
        x = sums(x + xs[k])
    return x


@no_loop
def shapes_that_differ(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for k in range(n):
        x = sums(x + xs[k : n + 1].sum(axis=0))
    return x


@loop
def numbers_that_differ(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for k in range(n):
        x = sums(x * 0.5 + k * 0.1 + rate * k)
    return x


@loop
def numbers_that_differ_beside_checked_indices(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for k in range(n):
        x = sums(x * 0.5 + x[i[k]] + 0.1 * k)
    return x


@loop
def zeros_of_both_signs(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    ys = dt.zeros(xs.shape, device=xs.device)
    for k in range(n):
        ys[k] = dt.abs(x) * (-0.0 if k % 3 == 1 else 0.0)
    return ys


@loop
def random_numbers(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    shift = dt.random.normal(x.shape, device=x.device)
    for _ in range(n):
        x = sums(x * 0.5 + dt.random.normal(x.shape, device=x.device) + shift)
    return x


@loop
def routine_of_the_host(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    a = dt.eye(6, device=x.device) * 3 + dt.linspace(0, 1, 6, device=x.device)
    b = xs[:WIDTH, :2] * 1
    for _ in range(n):
        b = dt.linalg.solve(a, b + 1)
    return b


@loop
def matrix_products(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    w, y = xs[:WIDTH] * 0.1, xs[1 : WIDTH + 1]
    for _ in range(n):
        y = dt.tanh(y @ w)
    return y


@loop
def indices_that_are_checked(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for k in range(n):
        x = sums(x * 0.5 + x[i[k]])
    return x


@loop
def values_from_the_host(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for _ in range(n):
        t = dt.asarray([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], device=x.device)
        t += x
        x = sums(t * 0.5)
    return x


@loop
def loop_in_the_body_of_a_loop(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    def body(_: Any, x: Any) -> Any:
        for k in range(n):
            x = sums(x * 0.5 + xs[k])
        return x

    return dt.fori_loop(0, 3, body, x)


@no_loop
def body_of_a_loop_in_a_loop(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    for _ in range(n):
        x = dt.fori_loop(0, 2, lambda _, x: sums(x * 0.5 + 1), x)
    return x


@loop
def gradient_in_each_iteration(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
    w = xs[:WIDTH] * 0.1
    for k in range(n):
        g = dt.func.grad(lambda w, k=k: dt.tanh(xs[k : k + 4] @ w).sum())(w)
        w = w - rate * g
    return w


def given(device: Any, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    x, xs = rng.standard_normal(WIDTH), rng.standard_normal((ROWS, WIDTH))
    i = rng.integers(-WIDTH, WIDTH, (ROWS, WIDTH))
    return [dt.asarray(a, device=device) for a in (x.astype("f4"), xs.astype("f4"), i)]


def bits(made: Any) -> list[Any]:
    return [np.asarray(t.detach()).tobytes() for t in flatten(made).leaves]


def calls(f: Function, n: int, device: Any, count: int = 3) -> list[list[Any]]:
    """Return the results of calls with different arguments, and the arguments afterwards."""
    made = []
    for k in range(count):
        args = given(device, seed=k)
        dt.random.manual_seed(k)
        made.append(bits([f(n, *args, 0.1 / (k + 1)), *args]))
    return made


def programs(f: Any) -> list[Any]:
    """Return the programs of a captured function, and those in them."""
    found = [program for _, program in f.programs]
    for program in found:
        found += [p for act in program.acts for p in act.programs]
    return found


def loops(f: Any) -> list[RerolledLoop]:
    return [a for p in programs(f) for a in p.acts if isinstance(a, RerolledLoop)]


def count_acts(f: Any) -> int:
    return sum(len(p.acts) for p in programs(f))


def jit_unrolled(f: Function, n: int, device: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a captured function whose loops are not re-rolled."""
    captured = dt.jit(f)
    with monkeypatch.context() as m:
        m.setattr(rerolling, "BODY_ACTS_MIN", 1 << 40)
        calls(captured, n, device, 1)
    assert not loops(captured)
    return captured


@pytest.mark.parametrize(("n", "acts"), [(21, 1), (70, 8)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rerolled_loop_has_the_bits_of_the_unrolled_one(
    name: str, n: int, acts: int, device: dt.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = FUNCTIONS[name]
    unrolled, captured = jit_unrolled(f, n, device, monkeypatch), dt.jit(f)
    monkeypatch.setattr(rerolling, "BODY_ACTS_MIN", acts)
    rolled = calls(captured, n, device)
    assert captured.captures == 1
    assert rolled == calls(unrolled, n, device) == calls(f, n, device)
    with dt.eager():
        assert rolled == calls(f, n, device)


@pytest.mark.parametrize("name", ["write_in_place", "rows_read_backwards", "numbers_that_differ"])
def test_loop_beyond_the_sequence_limit_has_the_same_bits(
    name: str, device: dt.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = dt.jit(FUNCTIONS[name])
    monkeypatch.setattr(rerolling, "BODY_ACTS_MIN", 8)
    monkeypatch.setattr(loop_acts, "UNROLLED_LAUNCHES_MAX", 15)
    assert calls(captured, 70, device) == calls(FUNCTIONS[name], 70, device)
    assert loops(captured)


def captured_with(name: str, n: int) -> Any:
    f = dt.jit(FUNCTIONS[name])
    x, xs, i = given("cpu")
    f(n, x, *[dt.concat([t] * (n // ROWS + 2)) for t in (xs, i)], 0.5)
    return f


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - UNROLLED.keys() - LONG))
def test_number_of_acts_does_not_grow_with_the_trip_count(name: str) -> None:
    few, many = captured_with(name, 100), captured_with(name, 1000)
    assert loops(many) and max(count_acts(few), count_acts(many)) < 1000


@pytest.mark.parametrize("name", UNROLLED)
def test_loop_with_different_iterations_is_not_rerolled(name: str) -> None:
    assert not loops(captured_with(name, 200))


def save_and_load(f: Any, path: Path) -> Any:
    dt.save_function(f, path)
    return dt.load_function(path)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_loaded_loop_has_the_bits_of_the_saved_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured, n = dt.jit(FUNCTIONS[name]), 30
    monkeypatch.setattr(rerolling, "BODY_ACTS_MIN", 2)
    expected = calls(captured, n, "cpu")
    assert calls(save_and_load(captured, tmp_path / "f"), n, "cpu") == expected


def test_file_size_does_not_grow_with_the_trip_count(tmp_path: Path) -> None:
    sizes = []
    for n in (200, 2000):
        save_and_load(captured_with("write_in_place", n), tmp_path / "f")
        sizes.append((tmp_path / "f").stat().st_size)
    assert abs(sizes[1] - sizes[0]) < 3000


def edited(data: bytes, change: Callable[[Any], object]) -> bytes:
    """Return a file whose first loop is replaced."""
    begin = len(MAGIC) + DIGEST_BYTES
    size = int.from_bytes(data[begin : begin + 8], "little")
    content = json.loads(data[begin + 8 : begin + 8 + size])
    change(next(act for act in content["captures"][0]["program"][5] if act[0] == "rerolled"))
    text = json.dumps(content).encode()
    rest = len(text).to_bytes(8, "little") + text + data[begin + 8 + size :]
    return MAGIC + hashlib.sha256(rest).digest() + rest


def moving(act: Any) -> Any:
    return next(x for x in act[3] if x[1])


CHANGES: dict[str, Callable[[Any], object]] = {
    "more iterations than rows": lambda act: act.__setitem__(2, ROWS + 1),
    "no iterations": lambda act: act.__setitem__(2, 0),
    "rows that are too far apart": lambda act: moving(act).__setitem__(1, 1000),
    "rows before the memory": lambda act: moving(act).__setitem__(1, -24),
    "a body with memory of its own": lambda act: act[1].__setitem__(4, 512),
    "less memory than inputs": lambda act: act[3].clear(),
    "fewer numbers than iterations": lambda act: act[4][1].pop(),
    "no numbers": lambda act: act[4].__setitem__(1, []),
    "variables that are none": lambda act: act[4].__setitem__(0, 1 << 20),
}


@pytest.mark.parametrize("what", CHANGES)
def test_edited_loop_in_a_file_raises(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerolling, "BODY_ACTS_MIN", 2)

    def f(x: Any, xs: Any) -> Any:
        for k in range(70):
            x = sums(x * k + xs[k])
        return x

    captured, path = dt.jit(f), tmp_path / "f"
    captured(*given("cpu")[:2])
    dt.save_function(captured, path)
    path.write_bytes(edited(path.read_bytes(), lambda act: None))
    dt.load_function(path)
    path.write_bytes(edited(path.read_bytes(), CHANGES[what]))
    with pytest.raises(dt.CaptureError, match="has invalid content"):
        dt.load_function(path)


def test_bad_index_of_an_iteration_raises_with_its_line(
    device: dt.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def f(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
        for k in range(n):
            x = sums(x * 0.5 + x[i[k]])
            x = x + xs[0][i[0]]
        return x

    unrolled, captured = jit_unrolled(f, 30, device, monkeypatch), dt.jit(f)
    monkeypatch.setattr(rerolling, "BODY_ACTS_MIN", 4)
    calls(captured, 30, device, 1)
    assert loops(captured)
    messages = []
    for g in (f, unrolled, captured):
        x, xs, i = given(device)
        i[17, 2] = WIDTH
        with pytest.raises(dt.OutOfRangeError) as raised:
            g(30, x, xs, i, 0.5).tolist()
        messages.append(str(raised.value))
    assert messages[1] == messages[2] and f"{__file__}:" in messages[2]
    assert calls(captured, 30, device) == calls(f, 30, device)


def test_singular_matrix_of_an_iteration_raises_with_its_line() -> None:
    def f(a: Any, b: Any) -> Any:
        for k in range(100):
            b = dt.linalg.solve(a[k], b)
        return b

    captured = dt.jit(f)
    a = dt.eye(3, device="cpu") * dt.ones((100, 1, 1), device="cpu")
    captured(a, dt.eye(3, device="cpu"))
    assert loops(captured)
    a[57] = 0.0
    with pytest.raises(dt.LinAlgError, match=rf"singular.*{__file__}:"):
        captured(a, dt.eye(3, device="cpu")).tolist()


@pytest.mark.parametrize("name", ["carry_of_one_tensor", "random_numbers", "rows_read"])
def test_gradient_of_a_captured_loop_equals_the_plain_one(
    name: str, device: dt.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerolling, "BODY_ACTS_MIN", 1)

    def gradients(f: Function) -> list[Any]:
        made = []
        for seed in range(3):
            args = given(device, seed)
            args[0].requires_grad_()
            dt.random.manual_seed(seed)
            f(12, *args, 0.5).sum().backward()
            made.append(bits(args[0].grad))
        return made

    assert gradients(dt.jit(FUNCTIONS[name])) == gradients(FUNCTIONS[name])


def test_gradient_in_a_captured_function_equals_the_plain_one(
    device: dt.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerolling, "BODY_ACTS_MIN", 1)

    def f(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
        return dt.func.grad(lambda x: rows_read(n, x, xs, i, rate).sum())(x)

    assert calls(dt.jit(f), 12, device) == calls(f, 12, device)


def test_arguments_that_share_memory_are_read_in_order_of_writes(
    device: dt.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerolling, "BODY_ACTS_MIN", 2)

    def f(x: Any, y: Any) -> Any:
        for k in range(30):
            x[1:] += y[:-1] * 0.5
            y[0] = k * 0.25
        return x + y

    captured = dt.jit(f)
    for shift in (0, 1, 2, 1, 0):
        made = []
        for g in (f, captured):
            base = dt.linspace(0, 1, 10, device=device)
            made.append(bits([g(base[:6], base[shift : shift + 6]), base]))
        assert made[0] == made[1]
    assert captured.captures == 3 and loops(captured)


def test_launches_of_a_loop_are_counted_and_profiled_per_iteration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rerolling, "BODY_ACTS_MIN", 8)
    for name in ("write_in_place", "indices_that_are_checked", "matrix_products"):
        unrolled = jit_unrolled(FUNCTIONS[name], 80, "cpu", monkeypatch)
        captured = dt.jit(FUNCTIONS[name])
        calls(captured, 80, "cpu", 1)
        assert loops(captured)
        args = [*given("cpu"), 0.5]
        counts = []
        for f in (unrolled, captured, unrolled, captured):
            f(80, *args)
            before = counters.launches, counters.calls
            f(80, *args)
            count = counters.launches - before[0], counters.calls - before[1]
            with dt.profile() as p:
                f(80, *args)
            names = Counter(e["name"] for e in p.events)
            assert sum(names[k] for k in names if k.startswith(("launch", "call "))) == count[0]
            counts.append((count, names))
        assert counts[0] == counts[1] == counts[2] == counts[3]


def test_explanation_shows_the_launches_of_a_loop_once() -> None:
    f = captured_with("write_in_place", 500)
    shown = str(dt.explain(f))
    assert shown.count("repeat: ") > 0 and len(programs(f)[0].acts) < 10


State = dict[str, Any]
Statement = Callable[[State, int], None]


def compute(rng: random.Random) -> Statement:
    to, a, b = rng.choices("abc", k=3)

    def run(v: State, k: int) -> None:
        v[to] = sums(v[a] * 0.5 + dt.sin(v[b]))

    return run


def shift(rng: random.Random) -> Statement:
    (to, a), places = rng.choices("abc", k=2), rng.randrange(4)
    number = rng.choice([0.5, -0.0, 0.0])

    def run(v: State, k: int) -> None:
        v[to] = dt.roll(v[a], places) * 0.5 + number * k

    return run


def swap(rng: random.Random) -> Statement:
    a, b = rng.sample("abc", 2)

    def run(v: State, k: int) -> None:
        v[a], v[b] = v[b], v[a]

    return run


def write(rng: random.Random) -> Statement:
    (to, a), begin = rng.choices("abc", k=2), rng.randrange(4)

    def run(v: State, k: int) -> None:
        v[to][begin:] += v[a][: WIDTH - begin] * 0.5

    return run


def row(rng: random.Random) -> Callable[[int], int]:
    first, step = rng.randrange(4), rng.choice([0, 1, 1, -1])
    return lambda k: first + step * k if step >= 0 else first + ROWS // 2 - k


def read_row(rng: random.Random) -> Statement:
    (to, a), rows, at = rng.choices("abc", k=2), rng.choice(["xs", "made"]), row(rng)

    def run(v: State, k: int) -> None:
        v[to] = v[a] * 0.5 + v[rows][at(k)]

    return run


def write_row(rng: random.Random) -> Statement:
    a, at = rng.choice("abc"), row(rng)

    def run(v: State, k: int) -> None:
        v["made"][at(k)] = v[a] * 0.5

    return run


def draw(rng: random.Random) -> Statement:
    to, a = rng.choices("abc", k=2)

    def run(v: State, k: int) -> None:
        v[to] = v[a] * v["rate"] + dt.random.normal((WIDTH,), device="cpu")

    return run


def gather(rng: random.Random) -> Statement:
    (to, a), at = rng.choices("abc", k=2), row(rng)

    def run(v: State, k: int) -> None:
        v[to] = v[a][v["i"][at(k)]]

    return run


def keep(rng: random.Random) -> Statement:
    to, a = rng.choices("abc", k=2)

    def run(v: State, k: int) -> None:
        v[to] = v[a]

    return run


KINDS = [compute, compute, compute, shift, swap, write, read_row, write_row, draw, gather, keep]


def random_loop(rng: random.Random) -> Function:
    """Return a function with a loop of statements of some tensors, before and after others."""
    before, body, after = (
        [rng.choice(KINDS)(rng) for _ in range(rng.randrange(least, 6))] for least in (0, 1, 0)
    )
    results = rng.sample(["a", "b", "c", "made"], rng.randrange(1, 4))

    def f(n: int, x: Any, xs: Any, i: Any, rate: Any) -> Any:
        v: State = {"a": x, "b": x * 1, "c": x + 1, "xs": xs, "i": i, "rate": rate}
        v["made"] = dt.zeros((ROWS, WIDTH), device="cpu")
        for statement in before:
            statement(v, 0)
        for k in range(n):
            for statement in body:
                statement(v, k)
        for statement in after:
            statement(v, 0)
        return [v[name] for name in results]

    return f


def check_random_loops(seeds: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> None:
    rerolled = 0
    for seed in seeds:
        rng = random.Random(seed)
        f, n = random_loop(rng), rng.choice([7, 20, 33])
        unrolled, captured = jit_unrolled(f, n, "cpu", monkeypatch), dt.jit(f)
        monkeypatch.setattr(rerolling, "BODY_ACTS_MIN", rng.choice([1, 3, 8]))
        assert calls(captured, n, "cpu") == calls(unrolled, n, "cpu") == calls(f, n, "cpu"), seed
        rerolled += bool(loops(captured))
    assert rerolled > len(seeds) // 4


@pytest.mark.parametrize("seed", range(0, 60, 20))
def test_random_loops_have_the_bits_of_the_unrolled_ones(
    seed: int, monkeypatch: pytest.MonkeyPatch, thinned: Callable[..., Any]
) -> None:
    check_random_loops(thinned(range(seed, seed + 20), 2), monkeypatch)


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(1000, 5000, 200))
def test_many_random_loops_have_the_bits_of_the_unrolled_ones(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_random_loops(range(seed, seed + 200), monkeypatch)
