"""asarray and the creation functions: values, dtypes, sharing, and errors."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, list-item, no-untyped-call"
from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine.evaluate import counters

pytestmark = pytest.mark.usefixtures("device")


@pytest.mark.parametrize(
    ("obj", "dtype"),
    [
        (True, dt.bool), (3, dt.int64), (2.5, dt.float32), ([1, 2], dt.int64), ([1, 2.5],
        dt.float32), ([[True], [False]], dt.bool), ([], dt.float32), ([[], []], dt.float32),
        (np.float64(1), dt.float64), (np.int8(3), dt.int8), ([np.float64(1.5)], dt.float64),
        (range(3), dt.int64), (((1,), (2,)), dt.int64), (2**63, dt.uint64),
        (array.array("f", [1, 2]), dt.float32), (b"ab", dt.uint8),
    ],
)  # fmt: skip
def test_asarray_of_values_equals_numpy(obj: Any, dtype: dt.DType) -> None:
    x = dt.asarray(obj)
    want = np.frombuffer(obj, np.uint8) if isinstance(obj, bytes) else np.asarray(obj)
    assert x.dtype is dtype and x.shape == want.shape
    np.testing.assert_array_equal(x.numpy(), want)


@pytest.mark.parametrize(
    "name", [d.name for d in dt.dtypes.ALL if d.kind != "c" and d.name != "bfloat16"]
)
def test_asarray_of_numpy_arrays_keeps_the_dtype(name: str) -> None:
    a = np.arange(6).reshape(2, 3).astype(name)
    for view in (a, a.T, a[:, ::-2], a[:0], a.astype(a.dtype.newbyteorder(">"))):
        x = dt.asarray(view)
        assert x.dtype.name == name
        np.testing.assert_array_equal(x.numpy(), view)
    x = dt.asarray(a)
    a[0, 0] = 1
    assert x.tolist()[0][0] == 0, "a NumPy array was not copied"


@pytest.mark.parametrize("name", ["bool", "uint8", "int64", "float16", "bfloat16", "float64"])
def test_asarray_with_dtype_converts(name: str) -> None:
    x = dt.asarray([0, 1, 2], dtype=name)
    assert x.dtype.name == name and x.tolist() == (
        [False, True, True] if name == "bool" else [0, 1, 2]
    )
    assert dt.asarray(np.arange(3.0), dtype=name).dtype.name == name


def test_asarray_of_floats_out_of_range_saturates_or_rounds() -> None:
    assert dt.asarray([1e300]).tolist() == [np.inf]
    assert dt.asarray(1.0 + 2**-9, dtype=dt.bfloat16).item() == 1.0
    assert dt.asarray(0.1, dtype=dt.float64).item() == 0.1


def test_asarray_of_tensors_shares_or_copies(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0])
    assert dt.asarray(x) is x
    y = dt.asarray(x, copy=True)
    y += 1
    assert x.tolist() == [1, 2] and y.tolist() == [2, 3]
    assert dt.asarray(x, dtype=dt.int32).tolist() == [1, 2]
    assert dt.asarray([x, x + 1]).tolist() == [[1, 2], [2, 3]]
    moved = dt.asarray(x, device="reference")
    assert moved.device == dt.device("reference") and moved.tolist() == [1, 2]
    assert (moved is x) == (device.type == "reference")


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: dt.asarray([[1, 2], [3]]), dt.ShapeError, r"obj\[0\] has shape \(2,\), but "
            r"obj\[1\] has \(1,\)"),
        (lambda: dt.asarray([1, [2]]), dt.ShapeError, "ragged"),
        (lambda: dt.asarray([2**70]), dt.ValueOverflowError, "int64"),
        (lambda: dt.asarray([300], dtype=dt.uint8), dt.ValueOverflowError, "300 does not fit"),
        (lambda: dt.asarray([1j], dtype=dt.float64), dt.DTypeError, "do not fit float64"),
        (lambda: dt.full(2, 1j, dtype=dt.float32), dt.DTypeError, "which is real"),
        (lambda: dt.arange(1j), dt.DTypeError, "stop must be a real number"),
        (lambda: dt.asarray("text"), dt.DTypeError, "str"),
        (lambda: dt.asarray(["a"]), dt.DTypeError, "expected numbers, got str"),
        (lambda: dt.asarray([None]), dt.DTypeError, "NoneType"),
        (lambda: dt.asarray(object()), dt.DTypeError, "object"),
        (lambda: dt.asarray([1], copy=False), dt.ArgumentError, "list"),
        (lambda: dt.asarray(dt.ones(2), dtype=dt.int8, copy=False), dt.ArgumentError, "a copy"),
        (lambda: dt.asarray(np.ones(2), dtype=dt.int8, copy=False), dt.ArgumentError, "a copy"),
        (lambda: dt.asarray(1, dtype="float31"), dt.DTypeError, "float31"),
        (lambda: dt.zeros(-1), dt.ShapeError, "negative"),
        (lambda: dt.zeros((2.5,)), dt.ShapeError, "tuple of ints"),
        (lambda: dt.full(2, 256, dtype=dt.uint8), dt.ValueOverflowError, "256"),
        (lambda: dt.full(2, float("nan"), dtype=dt.int8), dt.ValueOverflowError, "nan"),
        (lambda: dt.full(2, "x", dtype=dt.int8), dt.DTypeError, "str"),
        (lambda: dt.arange(1, 5, 0), dt.ArgumentError, "step"),
        (lambda: dt.arange(300, dtype=dt.uint8), dt.ValueOverflowError, "299"),
        (lambda: dt.arange(2, dtype=dt.bool), dt.DTypeError, "bool"),
        (lambda: dt.linspace(0, 1, -1), dt.ArgumentError, "negative"),
        (lambda: dt.tril(dt.ones(3)), dt.ShapeError, r"\(3,\)"),
        (lambda: dt.meshgrid(dt.ones((2, 2))), dt.ShapeError, "1-dimensional"),
        (lambda: dt.meshgrid(dt.ones(2), indexing="ab"), dt.ArgumentError, "ij"),
    ],
)  # fmt: skip
def test_creation_errors(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_meshgrid_keeps_the_dtype_of_each_vector() -> None:
    a, b = dt.meshgrid(dt.ones(2), dt.arange(3))
    assert a.dtype is dt.float32 and b.dtype is dt.int64 and a.shape == b.shape == (3, 2)


@pytest.mark.parametrize(
    "name", ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "float64"]
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 3), (4, 5)])
def test_zeros_ones_and_full_equal_numpy(name: str, shape: tuple[int, ...]) -> None:
    for made, value in ((dt.zeros, 0), (dt.ones, 1)):
        x = made(shape, dtype=name)
        assert x.shape == shape and x.dtype.name == name
        assert x.tolist() == np.full(shape, value).tolist()
        like = getattr(dt, f"{made.__name__}_like")(x)
        assert like.dtype is x.dtype and like.tolist() == x.tolist()
    assert dt.empty(shape, dtype=name).shape == dt.empty_like(dt.ones(shape)).shape == shape


@pytest.mark.parametrize(
    "fill",
    [
        lambda s: dt.full((2, 3), s),
        lambda s: dt.full((2,), s, dtype="float64"),
        lambda s: dt.full_like(dt.zeros(3), s),
        lambda s: dt.pad(dt.zeros(2), 1, constant_values=s),
    ],
)
def test_full_of_a_tensor_reads_no_value_on_the_host(
    fill: Callable[[dt.Tensor], dt.Tensor],
) -> None:
    x = dt.asarray([1.0, 2.0])

    def sum_and_fill(x: dt.Tensor) -> dt.Tensor:
        return fill(x.sum())

    captured = dt.jit(sum_and_fill)
    for k in (1.0, 3.0):
        want = fill(dt.asarray(3.0 * k))
        assert captured(x * k).tolist() == want.tolist()
        assert dt.vmap(sum_and_fill)(dt.stack([x * k])).tolist() == [want.tolist()]
    assert captured.captures == 1
    count = np.count_nonzero(fill(dt.asarray(1.0)).numpy())
    assert dt.func.grad(lambda x: sum_and_fill(x).sum())(x).tolist() == [count, count]


def test_full_of_a_tensor_beyond_the_dtype_raises() -> None:
    with pytest.raises(dt.ValueOverflowError, match="300"):
        dt.full(2, dt.asarray(300), dtype=dt.uint8)
    with pytest.raises(dt.ValueOverflowError, match="300"):
        dt.full(2, dt.asarray(300, dtype=dt.int16), dtype=dt.int8)


def test_full_takes_the_dtype_of_its_value() -> None:
    kinds = [
        dt.full(2, v).dtype for v in (True, 1, 1.5, np.int16(3), dt.asarray(1.0, dtype=dt.float64))
    ]
    assert kinds == [dt.bool, dt.int64, dt.float32, dt.int16, dt.float64]
    assert dt.full((), 2**63, dtype=dt.uint64).item() == 2**63
    assert dt.full_like(dt.ones(2, dtype=dt.int8), 7).tolist() == [7, 7]


@pytest.mark.parametrize(
    "args",
    [
        (5,),
        (0,),
        (-3,),
        (2, 8),
        (2, 8, 3),
        (8, 2, -2),
        (0, 1, 0.25),
        (1.0, -1.0, -0.5),
        (0.0, 0.3, 0.1),
    ],
)
def test_arange_equals_numpy(args: tuple[Any, ...]) -> None:
    x, want = dt.arange(*args), np.arange(*args)
    assert x.shape == want.shape and x.dtype is (dt.int64 if want.dtype == np.int64 else dt.float32)
    np.testing.assert_allclose(x.numpy(), want, rtol=1e-6, atol=1e-7)


def test_arange_in_narrow_and_unsigned_dtypes() -> None:
    assert dt.arange(5, 0, -1, dtype=dt.uint8).tolist() == [5, 4, 3, 2, 1]
    assert dt.arange(-3, 3, dtype=dt.int8).tolist() == list(range(-3, 3))
    assert dt.arange(4, dtype=dt.bfloat16).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("num", [0, 1, 2, 5, 1000])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
def test_linspace_equals_numpy(num: int, endpoint: bool, dtype: dt.DType) -> None:
    x = dt.linspace(-0.1, 3.3, num, dtype=dtype, endpoint=endpoint)
    want = np.linspace(-0.1, 3.3, num, endpoint=endpoint)
    np.testing.assert_allclose(
        x.numpy(), want, rtol=2e-6, atol=1e-6 if dtype is dt.float32 else 1e-14
    )
    if num and endpoint:
        assert x.numpy()[0] == dtype.__numpy_dtype__.type(-0.1)  # type: ignore[union-attr]
    if num > 1 and endpoint:
        assert x.numpy()[-1] == dtype.__numpy_dtype__.type(3.3)  # type: ignore[union-attr]


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (0, 3), (3, 0)])
@pytest.mark.parametrize("k", [-3, -1, 0, 1, 4])
def test_eye_tril_and_triu_equal_numpy(shape: tuple[int, int], k: int) -> None:
    np.testing.assert_array_equal(dt.eye(*shape, k=k).numpy(), np.eye(*shape, k=k))
    a = np.arange(2 * shape[0] * shape[1]).reshape(2, *shape)
    np.testing.assert_array_equal(dt.tril(dt.asarray(a), k=k).numpy(), np.tril(a, k))
    np.testing.assert_array_equal(dt.triu(dt.asarray(a), k=k).numpy(), np.triu(a, k))
    truths = dt.tril(dt.ones(shape, dtype=dt.bool), k=k)
    assert truths.dtype is dt.bool and truths.tolist() == np.tri(*shape, k, dtype=bool).tolist()


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid_equals_numpy(indexing: Any) -> None:
    parts = [np.arange(2), np.arange(3), np.arange(4)]
    for n in range(1, 4):
        found = dt.meshgrid(*map(dt.asarray, parts[:n]), indexing=indexing)
        for x, want in zip(found, np.meshgrid(*parts[:n], indexing=indexing), strict=True):
            np.testing.assert_array_equal(x.numpy(), want)


def test_creation_functions_fuse() -> None:
    x = dt.asarray(np.ones(50, np.float32))
    dt.evaluate(x)
    before = counters.launches
    y = x * dt.arange(50, dtype=dt.float32) + dt.ones(50) * dt.zeros(())
    assert y.tolist() == list(range(50))
    assert counters.launches == before + 1


@pytest.mark.parametrize("dtype", [None, dt.uint64])
@pytest.mark.parametrize(
    "given",
    [[2**63 + 1, 1], [[1, 2], [3, 2**64 - 1]], [0, np.uint64(2**63 + 1)], [True, 2**63 + 1]],
)
def test_ints_beyond_int64_are_exact_next_to_smaller_ones(given: Any, dtype: Any) -> None:
    """NumPy converts such lists to floats."""
    x = dt.asarray(given, dtype=dtype)
    expected = np.array(given, dtype=object).astype(np.uint64)
    assert x.dtype is dt.uint64 and x.numpy().tolist() == expected.tolist()
    y = dt.zeros(x.shape, dtype=dt.uint64)
    y[...] = given
    assert y.numpy().tolist() == expected.tolist()
    assert dt.asarray(given, dtype=dt.float64).numpy().tolist() == np.array(given, "f8").tolist()


def test_ints_without_a_common_dtype_raise() -> None:
    for given in ([-1, 2**63], [np.int64(-1), np.uint64(2**63)], [[0, -3], [2**64 - 1, 1]]):
        for dtype in (None, dt.uint64, dt.int64):
            with pytest.raises(dt.ValueOverflowError):
                dt.asarray(given, dtype=dtype)
        assert dt.asarray(given, dtype=dt.float64).dtype is dt.float64
        with pytest.raises(dt.ValueOverflowError):
            dt.zeros(np.shape(given), dtype=dt.uint64)[...] = given
    assert dt.asarray([2.0**63, -1.0]).dtype is dt.float32
    assert dt.asarray([2**63, -1.5]).dtype is dt.float32


def test_full_like_tells_equal_numbers_of_other_classes_and_signs_apart() -> None:
    x = dt.zeros(2, dtype=dt.float32)
    for _ in range(3):
        for value in (0, 0.0, -0.0, False, 1, True, 1.0):
            want = np.full(2, value, np.float32)
            assert dt.full_like(x, value).numpy().tobytes() == want.tobytes()
        with pytest.raises(dt.ValueOverflowError, match="full_like: 300"):
            dt.full_like(x.astype(dt.uint8), 300)
        assert dt.ones_like(x.astype(dt.bool_)).tolist() == [True, True]
