"""Sorts of rows by a network of exchanges have the bits of a stable sort."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import product
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail_cpu_llvm import sorting, sorting_network
from dovetail_cpu_llvm.compile import Compiler, link
from support.numpy_sorts import numpy_sorts

DTYPES = ("f4", "f8", "i4", "i8", "u4", "u8")
SIZES = (1, 2, 15, 16, 17, 100, 129, 513, 1000, 1024)  # at most 512 vectors of 16 bytes
CPU = "cpu"


@pytest.fixture(autouse=True)
def short_rows() -> Iterator[None]:
    with numpy_sorts():
        yield


@pytest.fixture
def no_routine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let NumPy's sorts fail: what is sorted nevertheless was launched."""

    def fail(*_: Any) -> None:
        raise AssertionError("NumPy sorts")

    monkeypatch.setattr(sorting, "_sort_rows", fail)
    monkeypatch.setattr(sorting, "_argsort_rows", fail)
    monkeypatch.setattr(sorting, "STABLE_ARGSORT_ELEMENTS_MAX", 0)


def draw(code: str, shape: tuple[int, ...], kind: str) -> Any:
    rng = np.random.default_rng([*code.encode(), *shape])
    dtype = np.dtype(code)
    words = rng.integers(0, 1 << 8 * dtype.itemsize, shape, f"u{dtype.itemsize}")
    if kind == "any bits":
        return words.view(dtype)
    if kind == "few values":
        return (words % 5).astype(dtype)
    special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1, -1], dtype)
    return np.where(words % 3 == 0, special[words % 8], rng.standard_normal(shape).astype(dtype))


def kinds(code: str) -> tuple[str, ...]:
    return ("any bits", "few values", *(("specials",) if code[0] == "f" else ()))


@pytest.mark.usefixtures("no_routine")
@pytest.mark.parametrize("code", DTYPES)
def test_sorts_of_short_rows_are_launched_and_equal_a_stable_sort(code: str) -> None:
    for n, rows, kind in product(SIZES, ((), (3,)), kinds(code)):
        x = draw(code, (*rows, n), kind)
        order = np.argsort(x, axis=-1, kind="stable")
        for name, expected in (("sort", np.take_along_axis(x, order, -1)), ("argsort", order)):
            result = getattr(dt, name)(dt.asarray(x, device=CPU)).numpy()
            assert result.tobytes() == expected.tobytes(), (name, n, rows, kind)


@pytest.mark.parametrize("code", DTYPES)
def test_sorts_of_the_longest_rows_equal_a_stable_sort(code: str) -> None:
    for n in (1025, sorting_network.ELEMENTS_MAX, sorting_network.ELEMENTS_MAX + 1):
        x = draw(code, (n,), kinds(code)[-1])
        order = np.argsort(x, kind="stable")
        assert dt.argsort(dt.asarray(x, device=CPU)).numpy().tobytes() == order.tobytes()
        assert dt.sort(dt.asarray(x, device=CPU)).numpy().tobytes() == x[order].tobytes()


@pytest.mark.parametrize(
    ("native", "longest"), [(16, (2048, 1024, 1024)), (32, (4096, 2048, 2048)), (64, (4096,) * 3)]
)
def test_networks_sort_rows_of_at_most_512_vectors(native: int, longest: tuple[int, ...]) -> None:
    choices = (
        (sorting_network.choose_sort, dt.float32),
        (sorting_network.choose_sort, dt.float64),
        (sorting_network.choose_argsort, dt.float32),
    )
    for (choose, dtype), n_max in zip(choices, longest, strict=True):
        for n in (n_max, n_max + 1):
            x: Any = (0, 0, (n,), (1,), dtype)
            assert (choose([x], x, native, 1) is not None) == (n == n_max), (dtype, n)


@pytest.mark.usefixtures("no_routine")
@pytest.mark.parametrize("code", DTYPES)
def test_descending_sorts_are_no_radix_sorts_and_keep_the_order_of_equals(code: str) -> None:
    for n, axis, kind in product((100, 1000), (0, 1), kinds(code)):
        x = draw(code, (n, 3) if axis == 0 else (3, n), kind)
        order = np.argsort(-x if code[0] == "f" else ~x, axis=axis, kind="stable")
        y = dt.asarray(x, device=CPU)
        result = dt.sort(y, axis=axis, descending=True)
        assert "radix" not in str(dt.explain(result))
        assert result.numpy().tobytes() == np.take_along_axis(x, order, axis).tobytes()
        assert dt.argsort(y, axis=axis, descending=True).numpy().tobytes() == order.tobytes()


@pytest.mark.usefixtures("no_routine")
@pytest.mark.parametrize(
    "view", ["rows apart", "elements apart", "reversed", "repeated", "transposed"]
)
def test_sorts_of_views_equal_a_stable_sort(view: str) -> None:
    x = draw("f4", (40, 128), "specials")
    views = {
        "rows apart": lambda a: a[::3, 2:100],
        "elements apart": lambda a: a[:, ::2],
        "reversed": lambda a: a[:, ::-1],
        "repeated": lambda a: (dt if isinstance(a, dt.Tensor) else np).broadcast_to(a[0], (3, 128)),
        "transposed": lambda a: a.T,
    }
    a, b = views[view](x), views[view](dt.asarray(x, device=CPU))
    order = np.argsort(a, axis=-1, kind="stable")
    assert dt.argsort(b).numpy().tobytes() == order.tobytes()
    assert dt.sort(b).numpy().tobytes() == np.take_along_axis(a, order, -1).tobytes()


@pytest.mark.usefixtures("no_routine")
def test_a_captured_function_launches_sorts() -> None:
    ordered = dt.jit(lambda x: dt.sort(x * 2) + 1)
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((4, 300)).astype("f4")
        result = ordered(dt.asarray(x, device=CPU)).numpy()
        assert result.tobytes() == (np.sort(x * 2) + np.float32(1)).tobytes()


@pytest.mark.parametrize("bytes_of_vector", [16, 32])
@pytest.mark.parametrize("code", ["f4", "u8"])
def test_networks_of_narrower_vectors_sort(code: str, bytes_of_vector: int) -> None:
    n, machine = 300, Compiler()
    lanes = bytes_of_vector // int(code[1])
    bits = (-(-n // lanes) - 1).bit_length()
    for op in ("sort", "argsort"):
        if op == "argsort":
            bits = (-(-n * 8 // bytes_of_vector) - 1).bit_length()
        name = f"{op}_{code[0]}{8 * int(code[1])}_{bits}"
        ir = sorting_network.ir(machine.machine.triple, bytes_of_vector, name)
        linked = link(machine.object_code(ir), (name,), {})
        x = draw(code, (2, n), kinds(code)[-1])
        out = np.full((2, n + 1), 7, x.dtype if op == "sort" else "i8")
        slots = np.array([x.ctypes.data, out.ctypes.data, n, *x.strides[:1], *out.strides[:1], 1])
        run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(linked[name])
        run(slots.ctypes.data, 0, 2)
        order = np.argsort(x, axis=-1, kind="stable")
        expected = order if op == "argsort" else np.take_along_axis(x, order, -1)
        assert out[:, :n].tobytes() == expected.tobytes()
        assert (out[:, n] == 7).all()  # nothing is written behind a row


@pytest.mark.parametrize("n", [1, 2, 4, 8, 16])
def test_exchanges_of_columns_sort_every_sequence_of_bits(n: int) -> None:
    exchanges = [*sorting_network.batcher_exchanges(n)]
    bits = np.arange(1 << n, dtype="u4")[:, None] >> np.arange(n, dtype="u4") & 1
    for i, j in exchanges:
        bits[:, i], bits[:, j] = np.minimum(*bits.T[[i, j]]), np.maximum(*bits.T[[i, j]])
    assert (np.diff(bits.astype("i4"), axis=1) >= 0).all()
