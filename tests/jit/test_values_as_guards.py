"""Captures for values that the host reads: a replay is given up if it finds others."""

from __future__ import annotations

import io
import itertools
import random
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy
import pytest

DEVICES = ["reference", "cpu"]
warns_of_read = pytest.warns(dt.DovetailWarning, match="the host reads .* without a capture")


@pytest.fixture(name="device", params=DEVICES)  # code that is captured names `x.device`
def device_name(request: pytest.FixtureRequest) -> str:
    if request.param == "cpu":
        pytest.importorskip("dovetail_cpu_llvm")
    return str(request.param)


def test_branch_is_replayed_for_equal_values_and_captured_for_others(device: str) -> None:
    @dt.jit
    def grow(x: dt.Tensor) -> dt.Tensor:
        y = x * 2
        return y - 1 if y.sum() > 10 else y + 1

    def call(*values: float) -> Any:
        return grow(dt.asarray(values, device=device)).tolist()

    assert call(1.0, 2.0) == [3.0, 5.0] and call(2.0, 2.5) == [5.0, 6.0]
    assert grow.captures == 1
    assert call(5.0, 2.0) == [9.0, 3.0] and call(6.0, 2.0) == [11.0, 3.0]
    assert call(1.0, 1.0) == [3.0, 3.0]
    assert grow.captures == 2
    assert "for 1 values that the host reads" in str(dt.explain(grow))


class Counter:
    """An object whose attributes a function changes."""

    def __init__(self) -> None:
        self.count, self.seen, self.by_name = 0, list[int](), dict[str, int]()

    def add(self, x: dt.Tensor) -> dt.Tensor:
        self.count += int((x > 0).sum())
        return x * 2

    def append(self, x: dt.Tensor) -> dt.Tensor:
        self.seen.append(int((x > 0).sum()))
        return x * 2

    def insert(self, x: dt.Tensor) -> dt.Tensor:
        self.by_name[f"call {len(self.by_name)}"] = int((x > 0).sum())
        return x * 2

    def branch(self, x: dt.Tensor) -> dt.Tensor:
        if x.sum() > 0:
            self.count += 1
        return x * 2


@pytest.mark.parametrize("method", ["add", "append", "insert", "branch"])
def test_function_that_reads_values_and_changes_objects_runs_plain(
    method: str, device: str
) -> None:
    counter, plain = Counter(), Counter()
    captured = dt.jit(getattr(counter, method))
    x = dt.asarray([1.0, -1.0, 2.0], device=device)
    with pytest.warns(dt.DovetailWarning, match="it reads values and changes '"):
        captured(x)
    for _ in range(2):
        captured(x)
    for _ in range(3):
        getattr(plain, method)(x)
    assert captured.captures == 0 and vars(counter) == vars(plain)


def test_function_that_counts_in_a_closure_runs_plain(device: str) -> None:
    correct = 0

    @dt.jit
    def step(x: dt.Tensor) -> dt.Tensor:
        nonlocal correct
        correct += int((x > 0).sum())
        return x * 2

    x = dt.asarray([1.0, -1.0, 2.0], device=device)
    with pytest.warns(dt.DovetailWarning, match="it reads values and changes a variable"):
        step(x)
    step(x)
    assert correct == 4 and step.captures == 0


def test_function_that_reads_values_and_draws_in_python_runs_plain() -> None:
    own, numbers = random.Random(0), itertools.count()
    x = dt.asarray([1.0, -1.0, 2.0])
    for f in (
        dt.jit(lambda x: x * random.random() if x.sum() > 0 else x),
        dt.jit(lambda x: x * own.random() if x.sum() > 0 else x),
        dt.jit(lambda x: x * next(numbers) if x.sum() > 0 else x),
    ):
        with pytest.warns(dt.DovetailWarning, match="it reads values and changes"):
            f(x)
        assert f(x).tolist() != f(x).tolist() and f.captures == 0


def test_values_that_change_in_most_calls_end_the_captures() -> None:
    f = dt.jit(lambda x: x + int(x.sum()))
    for n in range(4):
        f(dt.asarray([n]))
    assert f.captures == 4
    with pytest.warns(dt.DovetailWarning, match="the values that it reads change in most calls"):
        for _ in range(20):
            for n in range(4):
                assert f(dt.asarray([n])).tolist() == [2 * n]
    assert "change in most calls" in str(dt.explain(f, dt.asarray([1])))


def test_copy_of_integers_to_another_device_runs_plain() -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    move = dt.jit(lambda x: (x + 1).to("reference") * 2)
    x = dt.asarray([1, 2], device="cpu")
    with warns_of_read:
        result = move(x)
    assert str(result.device) == "reference" and result.tolist() == [4, 6]


@pytest.mark.parametrize(
    "read",
    [
        lambda x: int(x.sum()),
        lambda x: x.max().item(),
        lambda x: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9][x[0]],
        lambda x: sum(x.tolist()),
        lambda x: [v * 2 for v in x[x > 1].tolist()],
        lambda x: list(range(x[-1])),
        lambda x: 3 in x,
        lambda x: bool((x == 2).any()),
        lambda x: len(x[x > 2]),
        lambda x: dt.nonzero(x > 2),
        lambda x: dt.nonzero(dt.repeat(x, 1000) > 2)[0].sum(),
        lambda x: dt.arange(8, device=x.device)[[x[0], 1]].tolist(),
        lambda x: dt.unique_values(x),
    ],
)
def test_replays_and_new_captures_give_the_values_of_plain_calls(
    read: Callable[[Any], Any], device: str
) -> None:
    captured = dt.jit(lambda x: (read(x), x + 1))
    for values in ([1, 2, 3], [1, 2, 3], [3, 2, 1], [1, 2, 3], [5, 2, 0], [3, 2, 1], [2, 2, 2]):
        x = dt.asarray(values, device=device)
        (number, y), (wanted, z) = captured(x), (read(x), x + 1)
        assert str(number) == str(wanted) and y.tolist() == z.tolist()
    assert captured.captures >= 1


def test_fifth_kind_of_values_ends_the_captures_with_a_warning() -> None:
    f = dt.jit(lambda x: x + int(x.sum()))
    for n in range(4):
        assert f(dt.asarray([n])).tolist() == [2 * n]
    with warns_of_read:
        assert f(dt.asarray([4])).tolist() == [8]
    assert [f(dt.asarray([n])).tolist() for n in (0, 9)] == [[0], [18]]
    assert f.captures == 4


def test_more_reads_than_the_limit_run_plain() -> None:
    f = dt.jit(lambda x: [int(k) for k in x])
    with warns_of_read:
        assert f(dt.arange(600)) == [*range(600)]
    assert f.captures == 0


@pytest.mark.parametrize("read", [lambda x: float(x.sum()), lambda x: x.astype(dt.int64).numpy()])
def test_floats_and_arrays_that_the_host_may_write_are_no_guards(
    read: Callable[[dt.Tensor], Any],
) -> None:
    f = dt.jit(lambda x: x + 1 if read(x) is not None else x)
    with warns_of_read:
        f(dt.ones(1))
    assert f.captures == 0


@pytest.mark.parametrize("show", [print, repr, str, lambda x: f"{x}", lambda x: f"{x:d}"])
def test_shown_value_is_shown_at_each_call(show: Callable[[Any], Any]) -> None:
    out, shown = io.StringIO(), list[object]()
    f = dt.jit(lambda x: shown.append(show(x.sum())))
    with redirect_stdout(out), warns_of_read:
        for _ in range(3):
            f(dt.asarray([1, 2]))
    assert len(shown) == 3 and f.captures == 0
    assert show is not print or out.getvalue() == "3\n" * 3


# --- what a replay that is given up must not have done --------------------------------------------


def test_write_to_an_argument_before_a_read_runs_plain(device: str) -> None:
    @dt.jit
    def step(x: dt.Tensor) -> dt.Tensor:
        x += 1
        return x * 10 if x.sum() > 4 else x - 10

    x = dt.asarray([0, 1], device=device)
    with warns_of_read:
        results = [step(x).tolist() for _ in range(4)]
    assert results == [[-9, -8], [20, 30], [30, 40], [40, 50]] and step.captures == 0


def test_write_to_a_tensor_of_the_closure_before_a_read_runs_plain() -> None:
    count = dt.zeros(1, dtype=dt.int64)

    @dt.jit
    def step(x: dt.Tensor) -> dt.Tensor:
        count.copy_(count + 1)
        return x if x.sum() > 0 else -x

    with warns_of_read:
        for value in (1, -1, 1, -1, 5):
            assert step(dt.asarray([value])).tolist() == [abs(value)]
    assert count.tolist() == [5] and step.captures == 0


def test_write_to_a_kept_constant_before_a_read_runs_plain() -> None:
    tables = {0: dt.zeros(1, dtype=dt.int64)}

    class Keeper:
        def __getitem__(self, k: int) -> dt.Tensor:
            return tables[k]

    keeper = Keeper()

    @dt.jit
    def step(x: dt.Tensor) -> dt.Tensor:
        table = dt.constant(keeper[0])
        table += 1
        return x if x.sum() > 0 else -x

    with warns_of_read:
        for value in (1, -1, 1, -1, 5):
            assert step(dt.asarray([value])).tolist() == [abs(value)]
    assert tables[0].tolist() == [5] and step.captures == 0


@pytest.mark.parametrize("draw", ["dt", "np"])
def test_draw_before_a_read_runs_plain(draw: str) -> None:
    def step(x: Any) -> Any:
        noise = dt.random.normal(shape=(2,)) if draw == "dt" else np.random.normal(size=2)
        return noise + x if x.sum() > 0 else noise - x

    def run(f: Callable[[Any], Any]) -> list[Any]:
        dt.random.manual_seed(1)
        np.random.seed(1)
        return [f(np.asarray([value, 0])).tolist() for value in (1, 1, -1, 2, -1, 1)]

    wanted = run(step)
    with warns_of_read:
        assert run(dt.jit(step)) == wanted


def test_writes_and_draws_after_the_read_happen_once(device: str) -> None:
    def step(x: dt.Tensor) -> dt.Tensor:
        if x.sum() > 3:
            x[0] -= 5
        else:
            x += 1
        return x + dt.random.integers(0, 100, (2,), device=device)

    def run(f: Callable[[dt.Tensor], dt.Tensor]) -> list[object]:
        dt.random.manual_seed(1)
        x = dt.asarray([0, 1], device=device)
        return [[f(x).tolist(), x.tolist()] for _ in range(12)]

    captured = dt.jit(step)
    assert run(captured) == run(step) and captured.captures == 2


def test_writes_to_memory_of_its_own_before_a_read_are_captured(device: str) -> None:
    def f(x: dt.Tensor) -> tuple[dt.Tensor, int]:
        table = dt.zeros(3, dtype=dt.int64, device=device)
        listed = dt.asarray([1, 2, 3], device=device)
        table[1] = x.sum()
        listed[x[0]] = 7
        n = int(table[1])
        return table * n + listed, int(listed.sum())

    captured = dt.jit(f)
    for values in ([0, 1], [0, 1], [1, 0], [0, 1], [1, 0]):
        x = dt.asarray(values, device=device)
        assert str(captured(x)) == str(f(x))
    assert captured.captures == 2


def test_value_that_is_written_after_its_read_is_compared_again() -> None:
    def f(x: dt.Tensor, y: dt.Tensor) -> list[int]:
        total = x.sum(axis=0, keepdims=True)
        first = int(total)
        total += y
        return [first, int(total)]

    captured = dt.jit(f)
    for a, b in ((1, 2), (1, 3), (1, 2), (2, 1), (1, 3)):
        x, y = dt.asarray([a]), dt.asarray([b])
        assert captured(x, y) == [a, a + b]


def test_error_of_a_replay_that_would_be_given_up_is_that_of_a_plain_call() -> None:
    def f(x: dt.Tensor, k: dt.Tensor) -> dt.Tensor:
        return x * 2 if int(x[k]) > 1 else x

    captured = dt.jit(f)
    x = dt.asarray([1, 2, 3])
    assert captured(x, dt.asarray(2)).tolist() == [2, 4, 6]
    for g in (f, captured):
        with pytest.raises(dt.OutOfRangeError, match="5"):
            g(x, dt.asarray(5))
    assert captured(x, dt.asarray(0)).tolist() == [1, 2, 3]


def test_raised_error_depends_on_the_value() -> None:
    @dt.jit
    def root(x: dt.Tensor) -> dt.Tensor:
        if (x < 0).any():
            raise ValueError("negative")
        return x * x

    assert [root(dt.asarray([k])).tolist() for k in (1, 2)] == [[1], [4]]
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            root(dt.asarray([-1]))
    assert root(dt.asarray([3])).tolist() == [9] and root.captures == 1


def test_selected_indices_are_no_values_that_a_capture_compares() -> None:
    def f(x: Any, k: Any) -> Any:
        total = np.zeros(3)
        np.add.at(total, k[x > 1], x[x > 1])
        return total

    captured = dt.jit(f)
    for values, indices in (([1.0, 2.0, 3.0], [0, 1, 2]), ([3.0, 1.0, 2.0], [0, 1, 1])):
        x, k = np.array(values), np.array(indices)
        assert captured(x, k).tolist() == f(x, k).tolist()
    assert captured.captures == 1


def test_value_on_another_device_is_no_guard() -> None:
    pytest.importorskip("dovetail_cpu_llvm")

    def f(x: dt.Tensor, k: dt.Tensor) -> dt.Tensor:
        return x * int(k)

    captured = dt.jit(f)
    with warns_of_read:
        for n in (2, 3, 2):
            x, k = dt.ones(2, device="cpu"), dt.asarray(n, device="reference")
            assert captured(x, k).tolist() == [n, n]


def test_values_of_every_integer_dtype_are_compared() -> None:
    for d in (dt.bool, dt.int8, dt.uint8, dt.int16, dt.uint16, dt.int32, dt.uint32, dt.uint64):
        f = dt.jit(lambda x: x.tolist())
        for values in ([0, 1], [1, 1], [0, 1], [1, 1]):
            assert f(dt.asarray(values, dtype=d)) == values
        assert f.captures == 2


@pytest.mark.parametrize(
    "part", [lambda x: x[1:, 1], lambda x: x.T, lambda x: x[::-1], lambda x: x[1]]
)
def test_values_of_views_are_those_of_plain_calls(part: Callable[[Any], Any]) -> None:
    f = dt.jit(lambda x: (part(x).tolist(), int(part(x).reshape(-1)[1])))
    for values in ([1, 2, 3, 4], [1, 2, 3, 5], [4, 3, 2, 1]):
        x = dt.repeat(dt.asarray([0, *values, 7]).reshape(3, 2), 2, axis=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert f(x) == (part(x).tolist(), int(part(x).reshape(-1)[1]))


def test_call_that_numpy_alone_computes_runs_plain() -> None:
    f = dt.jit(lambda x: np.floor(x) if x.any() else x)
    with pytest.warns(dt.DovetailWarning, match="NumPy computes what dovetail refuses"):
        assert f(np.array([True, False])).tolist() == [1.0, 0.0]
    with pytest.raises(dt.DTypeError, match="floor"):
        dt.jit(np.floor, fullgraph=True)(np.array([True, False]))


# --- with loops, gradients and other transforms ---------------------------------------------------


@pytest.mark.parametrize("count", [3, 40])
def test_loop_until_a_condition_runs_as_often_as_plain(count: int, device: str) -> None:
    def halve(x: dt.Tensor) -> tuple[dt.Tensor, int]:
        n = 0
        while (x > 1).any():
            x, n = x / 2, n + 1
        return x, n

    captured = dt.jit(halve)
    for power in (count, count, count - 1, count + 1, count - 1):
        x = dt.asarray([1.5, 2.0**power], device=device)
        y, n = captured(x)
        assert n == power and y.tolist() == [1.5 / 2**power, 1.0]
    assert captured.captures == 3


def test_gradients_flow_through_a_capture_for_a_value() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        y = dt.exp(x)
        return y.sum() if (y > 8).any() else (3 * x).sum()

    captured = dt.jit(f)
    for values in ([1.0, 2.0], [1.0, 3.0], [1.0, 1.0], [0.5, 1.0], [1.0, 2.0]):
        gradients = list[Any]()
        for g in (f, captured):
            x = dt.asarray(values).requires_grad_()
            g(x).backward()
            assert x.grad is not None
            gradients.append(x.grad.tolist())
        assert gradients[0] == gradients[1]
    assert captured.captures == 2


def test_read_under_vmap_in_a_capture_is_an_error() -> None:
    f = dt.jit(lambda x: dt.vmap(lambda row: row if row.sum() > 0 else -row)(x))
    with pytest.raises(dt.DovetailError):
        f(dt.ones((2, 2)))


def test_read_in_an_inner_captured_function_guards_the_outer_one() -> None:
    inner = dt.jit(lambda x: x * 2 if x.sum() > 0 else -x)
    outer = dt.jit(lambda x: inner(x) + 1)
    for value in (1, -1, 2, -2):
        assert outer(dt.asarray([value])).tolist() == [abs(value) * (1 + (value > 0)) + 1]
    assert outer.captures == 2 and inner.captures == 0


def test_captured_function_with_a_guard_is_not_saved(tmp_path: Path) -> None:
    f = dt.jit(lambda x: x if x.sum() > 0 else -x)
    f(dt.ones(2))
    with pytest.raises(dt.CaptureError, match=r"reads values.*dt\.where"):
        dt.save_function(f, tmp_path / "f")


def test_profile_of_a_replay_that_is_given_up_captures_anew() -> None:
    f = dt.jit(lambda x: x * 2 if x.sum() > 0 else -x)
    f(dt.asarray([1]))
    with dt.profile():
        assert f(dt.asarray([-1])).tolist() == [1] and f(dt.asarray([2])).tolist() == [4]
    assert f.captures == 2


# --- random programs ------------------------------------------------------------------------------


def build_program(seed: int) -> Callable[[dt.Tensor, dt.Tensor], object]:
    """Return a function of two tensors of integers that branches, loops, writes and draws."""
    choices = random.Random(seed)
    steps = [choices.randrange(9) for _ in range(choices.randint(3, 7))]
    limits = [choices.randint(-3, 6) for _ in steps]

    def program(x: dt.Tensor, y: dt.Tensor) -> object:
        values, numbers = [x, y, x + y], list[int]()
        for k, (step, limit) in enumerate(zip(steps, limits, strict=True)):
            a, b = values[k % len(values)], values[-1]
            if step == 0:
                values.append(a * 2 if a.sum() > limit else b - a)
            elif step == 1:
                numbers.append(int((a > limit).sum()))
                values.append(a + numbers[-1])
            elif step == 2:
                count = 0
                while count < 4 and (b + count < limit).any():
                    count += 1
                values.append(b + count)
            elif step == 3:
                values[-1] += a.sum()  # in place, of an argument, too
            elif step == 4:
                values.append(b + dt.random.integers(0, 3, b.shape))
            elif step == 5:
                values.append(a[int(dt.argmax(b))] + a)
            elif step == 6:
                numbers += [int(k) for k in a - b]
            elif step == 7:
                own = dt.zeros(a.shape, dtype=dt.int64)
                own[0] = a.max()
                values.append(own + b if own[0] > limit else own)
            else:
                values.append(a.max() + b if b[0] == a[0] else a.min() - b)
        return values[2:], numbers

    return program


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.filterwarnings("ignore:dt.jit of")
def test_random_programs_that_read_values_do_as_plain(seed: int) -> None:
    def run(f: Callable[[dt.Tensor, dt.Tensor], object]) -> list[str]:
        dt.random.manual_seed(seed)
        generator = numpy.random.default_rng(seed)
        pairs = [generator.integers(-2, 3, (2, 3)) for _ in range(3)]
        results = list[str]()
        for k in (0, 0, 1, 0, 1, 2, 0, 2):
            x, y = (dt.asarray(v, copy=True) for v in pairs[k])
            results.append(f"{f(x, y)} {x} {y}")
        return results

    program = build_program(seed)
    assert run(dt.jit(program)) == run(program)
