"""`x[mask]` in captured functions: functions of elements, writes and sums need no host read."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy
import pytest
from dovetail.capture.pytree import flatten

Case = Callable[[Any, Any], Any]


def negate_in_place(x: Any, m: Any) -> Any:
    x = x.copy()
    x[m] *= -1
    return x


def write_of_an_equal_mask(x: Any, m: Any) -> Any:
    x = x.copy()
    x[x > 0.5] = x[x > 0.5] ** -1.5
    return x


def other_array(x: Any, m: Any) -> Any:
    y = np.zeros_like(x)
    y[m] = 1.0 / x[m]
    y[x < 0] = np.sqrt(-x[x < 0]) - 3 * x[x < 0]
    return y


def integers_from_floats(x: Any, m: Any) -> Any:
    y = np.zeros(x.shape, dtype=int)
    y[m] = 100 * x[m]
    return y


def written_before_use(x: Any, m: Any) -> Any:
    x = x.copy()
    chosen = x[m]
    x[m] = 0
    x[::2] += 1
    return x, chosen.sum(), (chosen * x[m]).sum()


def sums(x: Any, m: Any) -> Any:
    return x[m].sum(), np.sum(x[x > 0.5] * 2 + 1), x[m].mean(), (m[m] | (x[m] > 1)).sum()


def sums_of_dtypes(x: Any, m: Any) -> Any:
    return [x.astype(d)[m].sum() for d in (np.float32, np.int8, np.complex64, bool)]


def truths(x: Any, m: Any) -> Any:
    return (x[m] > 0).any(), (x[m] > 0).all(), np.any(x[m] > 9), np.all(x[m] < 9)


def copies(x: Any, m: Any) -> Any:
    a = x[m]
    b, c = a, a.copy()
    a += 1
    return a.sum(), b.sum(), c.sum()


def scalars_of_the_capture(x: Any, m: Any) -> Any:
    return (x[m] * x.max() - x.mean()).sum()


CAPTURED: list[Case] = [
    negate_in_place, write_of_an_equal_mask, other_array, integers_from_floats, written_before_use,
    sums, sums_of_dtypes, truths, copies, scalars_of_the_capture,
]  # fmt: skip


def bits(result: Any) -> list[tuple[Any, ...]]:
    arrays = [numpy.asarray(x) for x in flatten(result).leaves]
    return [(a.dtype, a.shape, a.tobytes()) for a in arrays]


def operands(seed: int, *shape: int) -> list[Any]:
    rng = numpy.random.default_rng(seed)
    share = (0.4, 0.0, 1.0, 0.9)[seed]
    return [np.array(rng.normal(size=shape)), np.array(rng.random(shape) < share)]


@pytest.mark.filterwarnings("ignore:Mean of empty", "ignore:invalid value")
@pytest.mark.parametrize("case", CAPTURED)
@pytest.mark.parametrize("shape", [(7,), (5000,), (13, 40)])
def test_captured_selections_have_the_bits_of_plain_ones(
    case: Case, shape: tuple[int, ...], device: dt.Device
) -> None:
    captured = dt.jit(case, fullgraph=True)
    for seed in range(4):
        for _ in range(2):
            x, m = operands(seed, *shape)
            assert bits(captured(x, m)) == bits(case(x, m))
    assert captured.captures == 1


@pytest.mark.parametrize("axis", [0, -2])
def test_sums_along_the_selected_axis(axis: int, device: dt.Device) -> None:
    def rows(x: Any, m: Any) -> Any:
        y = x.copy()
        y[1, m[0]] = x[2, m[0]]  # an integer beside the mask
        y[:, m[0]] -= 1
        return x[m[:, 0]].sum(axis=axis), y[..., m[1]].sum(axis=-1), y

    captured = dt.jit(rows, fullgraph=True)
    for seed in range(4):
        x, m = operands(seed, 20, 33)
        assert bits(captured(x, m)) == bits(rows(x, m))


def use(name: str, function: Case) -> Any:
    return pytest.param(function, id=name)


READING = [
    use("result", lambda x, m: x[m]),
    use("nested result", lambda x, m: {"a": (x[m] + 1, [m[m]])}),
    use("length", lambda x, m: len(x[m])),
    use("size", lambda x, m: x[m].size),
    use("shape", lambda x, m: (x[m] * 2).shape),
    use("max", lambda x, m: x[m].max()),
    use("np.max", lambda x, m: np.max(x[m])),
    use("element", lambda x, m: x[m][-1] - x[m][0]),
    use("write to it", lambda x, m: np.put(a := x[m], 0, 5.0) or a),
    use("element written", lambda x, m: x[m].__setitem__(0, 3.0)),
    use("other mask", lambda x, m: x[m] + x[~(~m)]),
    use("other length", lambda x, m: x[m] + x[: m.sum()]),
    use("array first", lambda x, m: x[: m.sum()] + x[m]),
    use("ufunc of an array", lambda x, m: np.subtract(x[: m.sum()], x[m])),
    use("out", lambda x, m: np.exp(x[m], out=np.zeros(m.sum()))),
    use("write into a slice", lambda x, m: x.copy().__setitem__(slice(0, 1), x[m][:1])),
    use("integer power", lambda x, m: (x * 9).astype(int)[m] ** 2),
    use("floor division", lambda x, m: (x * 9).astype(int)[m] // 2),
    use("integer times float", lambda x, m: (x * 9).astype(int)[m] * 0.5),
    use("concatenate", lambda x, m: np.concatenate([x[m], x])),
    use("stack", lambda x, m: np.stack([x[m], x[m]])),
    use("append", lambda x, m: np.append(x, x[m])),
    use("where", lambda x, m: np.where(x[m] > 0, x[m], 0.0)),
    use("cumsum", lambda x, m: np.cumsum(x[m])),
    use("sort", lambda x, m: np.sort(x[m])),
    use("sorted", lambda x, m: np.array(sorted(x[m]))),
    use("unique", lambda x, m: np.unique((x * 3).astype(int)[m])),
    use("array", lambda x, m: np.array(x[m])),
    use("asarray", lambda x, m: np.asarray(x[m])),
    use("list", lambda x, m: x[m].tolist()),
    use("math", lambda x, m: math.fsum(x[m])),
    use("dt.asarray", lambda x, m: dt.asarray(x[m])),
    use("dt.sum", lambda x, m: dt.sum(dt.asarray(x[m]) * 2)),
    use("norm", lambda x, m: np.linalg.norm(x[m])),
    use("dot", lambda x, m: np.dot(x[m], x[m])),
    use("matmul", lambda x, m: x[m] @ x[m]),
    use("median", lambda x, m: np.median(x[m])),
    use("std", lambda x, m: x[m].std()),
    use("text", lambda x, m: f"{x[m]!r} {x[m]}"),
    use("reshape", lambda x, m: x[m].reshape(-1, 1) * x),
    use("newaxis", lambda x, m: x[m][:, None] + x),
    use("add.at", lambda x, m: np.add.at(x.copy(), np.arange(x.size)[m], x[m])),
    use("index", lambda x, m: x[np.arange(x.size)[m]]),
    use("keepdims", lambda x, m: x[m].sum(keepdims=True)),
    use("float", lambda x, m: float(x[m][0])),
    use("iteration", lambda x, m: [v * 2 for v in x[m]]),
    use("in place", lambda x, m: (a := x[m], a.__iadd__(x[: m.sum()]), a.sum())[2]),
    use("mask of a mask", lambda x, m: x[m][x[m] > 0].sum()),
]


@pytest.mark.parametrize("case", READING)
def test_other_uses_read_the_number_and_give_plain_results(case: Case, device: dt.Device) -> None:
    captured = dt.jit(case)
    for seed in (0, 3):
        x, m = operands(seed, 30)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dt.errors.DovetailWarning)
            result = captured(x, m)
        expected = case(x, m)
        assert flatten(result).tree == flatten(expected).tree
        assert [*map(type, flatten(result).leaves)] == [*map(type, flatten(expected).leaves)]
        assert repr(result) == repr(expected)
    assert captured.captures <= 2


def test_a_mask_that_was_written_is_another_mask(device: dt.Device) -> None:
    def write(x: Any, m: Any) -> Any:
        x, m = x.copy(), m.copy()
        chosen = x[m] * 2
        m[1], m[2] = ~m[1], ~m[2]
        x[m] = 7.0
        return x, chosen.sum(), m

    captured = dt.jit(write, fullgraph=True)
    for seed in range(4):
        x, m = operands(seed, 30)
        assert bits(captured(x, m)) == bits(write(x, m))

    def write_selection(x: Any, m: Any) -> Any:
        x, m = x.copy(), m.copy()
        chosen = x[m] * 2
        m[1], m[2] = ~m[1], ~m[2]
        x[m] = chosen
        return x

    x, m = operands(0, 30)
    m[1], m[2] = True, False  # as many elements as before
    with pytest.raises(dt.CaptureError):
        dt.jit(write_selection, fullgraph=True)(x, m)
    captured = dt.jit(write_selection)
    for seed in (0, 3):
        x = operands(seed, 30)[0]
        assert bits(captured(x, m)) == bits(write_selection(x, m))
        m = ~m


def test_masks_of_other_random_numbers_differ(device: dt.Device) -> None:
    def draw(x: Any, rng: Any) -> Any:
        x = x.copy()
        x[rng.random(x.size) < 0.5] = x[rng.random(x.size) < 0.5]
        return x

    with pytest.raises(dt.CaptureError):
        dt.jit(draw, fullgraph=True)(np.ones(64), np.random.default_rng(1))


def test_masks_of_equal_float_arguments_differ(device: dt.Device) -> None:
    def write(x: Any, low: float, high: float) -> Any:
        x = x.copy()
        x[x > low] = x[x > high] * 2
        return x

    x = np.arange(6.0)
    with pytest.raises(dt.CaptureError):
        dt.jit(write, fullgraph=True)(x, 2.0, 2.0)


def test_selections_of_closures_are_read(device: dt.Device) -> None:
    kept: list[Any] = []

    def keep(x: Any, m: Any) -> Any:
        kept[:] = [x[m]]
        return x.sum()

    captured = dt.jit(keep)
    for seed in (0, 3):
        x, m = operands(seed, 30)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dt.errors.DovetailWarning)
            captured(x, m)
        assert numpy.asarray(kept[0]).tobytes() == x[m].numpy().tobytes()


def test_rolls_by_values_and_writes_of_listed_values(device: dt.Device) -> None:
    def move(x: Any, shifts: Any) -> Any:
        y = np.roll(np.roll(x, shifts[0], axis=0), -shifts[1], axis=-1)
        y[:, 0] = (x.sum(), x.max(), 2.0)
        y[0] = [x[0, 1], *y[1, 1:]]
        return y

    captured = dt.jit(move, fullgraph=True)
    x = np.array(numpy.random.default_rng(0).normal(size=(3, 5)))
    for shifts in ([1, 2], [-7, 0], [3, 11]):
        assert bits(captured(x, np.array(shifts))) == bits(move(x, np.array(shifts)))
    assert captured.captures == 1


READS = pytest.mark.filterwarnings("ignore:.*the host reads a tensor")


@READS
def test_selection_is_an_instance_of_ndarray() -> None:
    def f(x: Any) -> Any:
        return x * 1 if isinstance(x[x > 0], np.ndarray) else x * 0

    captured = dt.jit(f)
    for _ in range(3):
        assert captured(np.array([1.0, -2.0])).tolist() == [1.0, -2.0]


@READS
def test_attribute_that_is_set_is_that_of_the_elements() -> None:
    def f(x: Any) -> Any:
        selected = x[x > 0]
        selected.shape = (-1, 1)
        return selected

    captured = dt.jit(f)
    for _ in range(3):
        assert captured(np.array([1.0, -2.0, 3.0])).tolist() == [[1.0], [3.0]]


@READS
def test_gradient_of_a_factor_sees_the_selected_elements_alone() -> None:
    def loss(w: Any, x: Any) -> Any:
        return (np.log(x[x > 0]) * w).sum()  # log(0) is not selected

    w, x = np.array(2.0), np.array([0.0, 1.0, 2.0, 3.0])
    expected = dt.func.grad(loss)(w, x)
    assert np.isfinite(expected)
    captured = dt.jit(dt.func.grad(loss))
    assert [captured(w, x) for _ in range(3)] == [expected] * 3
