"""Reads and writes of single elements of `dovetail.numpy` arrays: NumPy's scalars, at once."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy
import pytest

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = ["bool", *INTEGERS, "float16", "float32", "float64", "complex64", "complex128"]
INDEX_TYPES = [int, numpy.int64, numpy.int8, numpy.int16, numpy.int32, numpy.uint8, numpy.uint64]


def both(values: Any, dtype: Any = float) -> tuple[Any, numpy.ndarray]:
    """Return the values as an evaluated ndarray and as NumPy's array."""
    x = np.array(values, dtype=dtype)
    dt.evaluate(x)
    return x, numpy.array(values, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_element_is_numpys_scalar_of_the_dtype(dtype: str) -> None:
    x, y = both([[0, 1, 2], [3, 4, 5]], dtype)
    for i in range(-2, 2):
        for j in range(-3, 3):
            assert type(x[i, j]) is type(y[i, j])
            assert x[i, j] == y[i, j]
            assert x[i][j] == y[i][j]
            assert x.T[j, i] == y[i, j]
            assert x[:, ::2][i, j % 2] == y[:, ::2][i, j % 2]


def test_extreme_values_keep_their_bits() -> None:
    x, y = both([numpy.nan, numpy.inf, -0.0, 5e-324])
    assert [v.tobytes() for v in x] == [v.tobytes() for v in y]
    for dtype, value in (("uint64", 2**64 - 1), ("int64", -(2**63)), ("int8", -128)):
        x, y = both([value], dtype)
        assert int(x[0]) == value


@pytest.mark.parametrize("kind", INDEX_TYPES)
def test_numpys_integers_are_indices(kind: type) -> None:
    x, _ = both([[1.0, 2.0], [3.0, 4.0]])
    assert x[kind(1), kind(0)] == 3.0
    assert type(x[kind(1), 0]) is numpy.float64
    assert x[kind(1)].tolist() == [3.0, 4.0]
    assert x[kind(1), :].tolist() == [3.0, 4.0]
    x[kind(1), kind(1)] = 9
    x[kind(0)][kind(1)] = 8
    assert x.tolist() == [[1.0, 8.0], [3.0, 9.0]]
    row = x[kind(0)]
    row[0] = 7
    assert x[0, 0] == 7


def test_negative_numpy_integer_counts_from_the_end() -> None:
    x, _ = both([1, 2, 3], int)
    assert [x[numpy.int8(-1)], x[numpy.int64(-3)]] == [3, 1]


@pytest.mark.parametrize("key", [3, -4, numpy.int64(3), numpy.int8(-4), (0, 0), (1, 2)])
def test_index_out_of_range_raises_index_error(key: Any) -> None:
    x, y = both([1.0, 2.0, 3.0])
    with pytest.raises(IndexError):
        y[key]
    with pytest.raises(IndexError):
        x[key]
    with pytest.raises(IndexError):
        x[key] = 1.0
    with pytest.raises(IndexError):
        y[key] = 1.0


@pytest.mark.parametrize("key", [numpy.uint64(2**63), 2**70, -(2**70)])
def test_index_beyond_the_machines_word_raises_index_error(key: Any) -> None:
    x, _ = both([1.0, 2.0, 3.0])
    with pytest.raises(IndexError):
        x[key]
    with pytest.raises(IndexError):
        x[key] = 1.0


def test_index_error_names_the_index_and_the_size() -> None:
    x, _ = both([[1.0, 2.0]])
    with pytest.raises(IndexError, match="5") as with_int:
        x[0, 5]
    with pytest.raises(IndexError) as with_scalar:
        x[0, numpy.int64(5)]
    assert str(with_int.value) == str(with_scalar.value)


def test_bool_and_float_keys_mean_what_they_mean_in_numpy() -> None:
    x, y = both([1.0, 2.0])
    assert x[True].shape == y[True].shape
    assert x[numpy.True_].shape == y[numpy.True_].shape
    assert x[None].shape == y[None].shape
    for key in (1.0, numpy.float64(1)):
        with pytest.raises(dt.errors.DTypeError):
            x[key]


def test_array_without_dimensions_gives_scalar_at_empty_key_and_array_at_ellipsis() -> None:
    x, _ = both(2.5)
    assert type(x[()]) is numpy.float64
    assert x[()] == 2.5
    assert isinstance(x[...], np.ndarray)
    with pytest.raises(IndexError):
        x[0]
    z, _ = both([1.0, 2.0])
    assert isinstance(z[0, ...], np.ndarray)
    assert z[0, ...].shape == ()


def test_pending_array_is_computed_before_its_element_is_read() -> None:
    x, _ = both([1.0, 2.0, 3.0])
    pending = x * 2 + 1
    assert type(pending[1]) is numpy.float64
    assert [pending[i] for i in range(3)] == [3.0, 5.0, 7.0]
    view = (x + 1)[1:]
    assert [view[0], view[1]] == [3.0, 4.0]


def test_row_of_large_pending_array_leaves_it_pending() -> None:
    x, _ = both([[1.0] * 3000, [3.0] * 3000])
    pending = x * 2
    row = pending[1]
    assert pending._expr.storage.pending is not None
    assert row.tolist() == [6.0] * 3000


def test_pending_reader_keeps_the_value_before_a_write() -> None:
    x, _ = both([1.0, 2.0])
    y = x * 10
    x[0] = numpy.float64(5)
    x[numpy.int64(1)] = numpy.int64(7)
    assert y.tolist() == [10.0, 20.0]
    assert x.tolist() == [5.0, 7.0]


def test_element_of_array_with_gradient_carries_the_gradient() -> None:
    x = np.array([1.0, 2.0, 3.0])
    x.requires_grad_()
    y = x * x
    assert isinstance(y[1], dt.Tensor)
    assert isinstance(x[1], dt.Tensor)
    y[1].backward()
    assert x.grad.tolist() == [0.0, 4.0, 0.0]


def test_captured_function_reads_elements_of_its_arguments_at_each_call() -> None:
    @dt.jit
    def f(x: Any) -> Any:
        return x[0] + x[1] * 2

    for values in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]):
        x, y = both(values)
        assert float(f(x)) == y[0] + y[1] * 2


def test_captured_function_writes_elements_at_each_call() -> None:
    @dt.jit
    def f(x: Any) -> Any:
        x[0] = x[1]
        x[1] += 1
        return x + 0

    for values in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]):
        x, _ = both(values)
        assert f(x).tolist() == [values[1], values[1] + 1]


def test_mapped_function_reads_the_element_of_each_example() -> None:
    x, _ = both([[1.0, 2.0], [3.0, 4.0]])
    assert dt.vmap(lambda row: row[1] * 2)(x).tolist() == [4.0, 8.0]


def test_elements_are_swapped_through_a_name() -> None:
    x, _ = both([1.0, 2.0])
    held = x[0]
    x[0] = x[1]
    x[1] = held
    assert x.tolist() == [2.0, 1.0]


def test_write_shows_in_views_and_in_arrays_of_numpy() -> None:
    x, _ = both([[1.0, 2.0], [3.0, 4.0]])
    row, array = x[1], x.numpy()
    x[1, 0] = numpy.float64(9)
    assert row[0] == array[1, 0] == 9
    array[1, 1] = 8
    assert x[1, 1] == row[1] == 8


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", DTYPES)
def test_scalar_is_cast_to_the_dtype_of_the_array(dtype: str, kind: str) -> None:
    if kind.startswith("complex") and not dtype.startswith("complex"):
        return
    x, y = both([0, 0], dtype)
    value = numpy.dtype(kind).type(1)
    x[1], y[1] = value, value
    x[0] += value
    y[0] += value
    assert x.dtype == y.dtype
    assert x.tolist() == y.tolist()


@pytest.mark.parametrize("value", [2.75, -2.75, numpy.float64(2.75), numpy.float32(-1.5), True, 3])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64", "complex128"])
def test_number_is_cast_to_the_dtype_of_the_array(dtype: str, value: Any) -> None:
    x, y = both([0, 0], dtype)
    x[0], y[0] = value, value
    assert x.tolist() == y.tolist()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_fraction_is_dropped_in_integers(dtype: str) -> None:
    x, y = both([[0, 1], [2, 3]], dtype)
    for a in (x, y):
        a[0, 0] = 2.75
        a[1, 0] = numpy.float64(7.999)
        a[0, 1] *= 1.5
    assert x.tolist() == y.tolist()


def test_tensor_refuses_scalars_of_a_higher_kind() -> None:
    x = dt.asarray([1, 2])
    with pytest.raises(dt.errors.DTypeError):
        x[0] = numpy.float64(2.5)
    x[numpy.int64(0)] = numpy.int32(7)
    assert x.tolist() == [7, 2]
    assert isinstance(x[numpy.int64(0)], dt.Tensor)


def test_read_only_memory_refuses_scalars() -> None:
    array = numpy.array([1.0, 2.0])
    array.setflags(write=False)
    x = np.asarray(dt.from_dlpack(array))
    assert x.storage().read_only
    assert x[1] == 2.0
    with pytest.raises(dt.errors.ReadOnlyError):
        x[0] = numpy.float64(1)


def test_update_in_place_equals_numpys() -> None:
    x, y = both([[1.0, 2.0], [3.0, 4.0]])
    for a in (x, y):
        a[0, 1] += 2.5
        a[1, 0] *= a[0, 1]
        a[-1, -1] -= a[1, 0] / 3
        a[0, 0] **= 2
    assert x.tolist() == y.tolist()


def test_comparisons_and_conversions_are_numpys() -> None:
    x, y = both([1.5, 2.5])
    assert type(x[0] > x[1]) is type(y[0] > y[1])
    assert (float(x[0]), int(x[1]), bool(x[0] < x[1])) == (1.5, 2, True)
    n, _ = both([3, 1], int)
    assert list(range(n[0])) == [0, 1, 2]
    assert "abc"[n[1]] == "b"


def test_iteration_gives_scalars_and_sees_writes() -> None:
    x, y = both([1.0, 2.0, 3.0])
    for a in (x, y):
        read = []
        for i, v in enumerate(a):
            read.append(v)
            a[(i + 1) % 3] = v + 10
        assert read == [1.0, 11.0, 21.0]
        assert type(read[0]) is numpy.float64
    rows, _ = both([[1.0, 2.0], [3.0, 4.0]])
    for row in rows:
        row[0] = 0
    assert rows.tolist() == [[0.0, 2.0], [0.0, 4.0]]
    with pytest.raises(TypeError):
        iter(np.array(1.0))


def test_iteration_ends_at_the_length_of_its_begin() -> None:
    x, _ = both([])
    assert list(x) == []
    rows, _ = both([[1.0], [2.0]])
    iterator = iter(rows)
    assert iter(iterator) is iterator
    assert [row.tolist() for row in iterator] == [[1.0], [2.0]]
    assert next(iterator, None) is None


def test_length_is_the_size_of_the_first_dimension() -> None:
    x, _ = both([[1.0], [2.0]])
    assert (len(x), len(x[0]), len(x + 1), x.__len__()) == (2, 1, 2, 2)
    for zero in (np.array(1.0), dt.asarray(1.0)):
        with pytest.raises(TypeError):
            len(zero)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_scalar_of_numpy_times_array_is_numpys_result(dtype: str) -> None:
    x, y = both([1, 2, 4], dtype)
    two = numpy.float64(2)
    for ours, theirs in (
        (two * x, two * y),
        (two + x, two + y),
        (two - x, two - y),
        (two / x, two / y),
        (x / two, y / two),
        (numpy.multiply(two, two, out=None) * x, numpy.multiply(two, two) * y),
    ):
        assert type(ours) is np.ndarray
        assert ours.numpy().dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()


def test_deletion_of_an_element_raises_an_error() -> None:
    x, _ = both([1.0])
    with pytest.raises((TypeError, ValueError, AttributeError)):
        del x[0]


def test_subclass_calls_its_own_method() -> None:
    class Logged(np.ndarray):
        __slots__ = ()

        def __getitem__(self, key: Any) -> Any:
            return "logged"

    assert Logged.__getitem__ is not np.ndarray.__getitem__
    x, _ = both([1.0])
    assert x[0] == 1.0
    assert np.ndarray.__getitem__(x, 0) == 1.0
    assert x.__getitem__(0) == 1.0


@pytest.mark.parametrize("name", ["reference", "opencl"])
def test_elements_on_other_devices_are_numpys_scalars(name: str) -> None:
    try:
        x = dt.asarray([1.0, 2.0], dtype=dt.float32, device=dt.device(name))
        dt.evaluate(x)
    except dt.errors.DovetailError as error:
        pytest.skip(str(error))
    y = np.asarray(x)
    assert y.device is x.device
    y[0] = numpy.float32(5)
    y[1] += 1
    assert type(y[0]) is numpy.float32
    assert [float(y[0]), float(y[1])] == [5.0, 3.0]
