"""`dovetail.numpy`: expressions of NumPy give the same values, dtypes and kinds of results."""

from __future__ import annotations

import contextlib
import io
import math
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy
import pytest

EXPRESSIONS = [
    line
    for line in (Path(__file__).parent / "expressions.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


def names(library: Any) -> dict[str, Any]:
    """Return the names that expressions use, as arrays of a library."""
    return {
        "np": library,
        "a": library.array([[0.5, 2.25, 1.0], [3.0, 0.0, 1.75]]),
        "b": library.array([2.0, 0.5, 1.5]),
        "n": library.array([3, 1, 0, 2]),
        "m": library.array([True, False, True]),
        "c": library.array([1 + 2j, 3 - 1j, 0.5j]),
        "s": library.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]]),
        "g": library.random.default_rng(7),
    }


def run(expression: str, library: Any) -> Any:
    """Return the value of an expression, or what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = eval(expression, names(library))
    return printed.getvalue() if value is None else value


def compare(ours: Any, theirs: Any) -> None:
    """Assert that two results have the same kind, dtype, shape and nearly the same values."""
    if isinstance(theirs, (tuple, list)):
        assert isinstance(ours, (tuple, list))
        assert isinstance(ours, tuple) == isinstance(theirs, tuple)
        assert len(ours) == len(theirs)
        for x, y in zip(ours, theirs, strict=True):
            compare(x, y)
    elif isinstance(theirs, (numpy.ndarray, numpy.generic)):
        is_array = isinstance(theirs, numpy.ndarray)
        assert isinstance(ours, np.ndarray if is_array else (np.ndarray, numpy.generic))
        values = ours.numpy() if isinstance(ours, dt.Tensor) else numpy.asarray(ours)
        assert values.dtype == theirs.dtype
        assert values.shape == theirs.shape
        numpy.testing.assert_allclose(values, theirs, rtol=1e-12, atol=1e-13)
    elif callable(theirs):
        assert callable(ours)
    else:
        assert ours == theirs


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_gives_numpys_result(expression: str) -> None:
    compare(run(expression, np), run(expression, numpy))


def test_every_public_name_of_numpy_exists() -> None:
    assert [name for name in numpy.__all__ if not hasattr(np, name)] == []
    for module in ("linalg", "fft", "random", "testing"):
        theirs = getattr(numpy, module).__all__
        assert [n for n in theirs if not hasattr(getattr(np, module), n)] == []


def test_elements_are_copies_so_that_a_swap_works() -> None:
    a = np.array([1.0, 2.0])
    t = a[0]
    a[0] = a[1]
    a[1] = t
    assert a.tolist() == [2.0, 1.0]
    assert type(t) is numpy.float64


def test_defaults_are_64_bits_wide() -> None:
    assert np.zeros(2).dtype is dt.float64
    assert np.arange(2).dtype is dt.int64
    assert (np.arange(2) / 2).dtype is dt.float64
    assert (np.arange(2) * 0.5).tolist() == [0.0, 0.5]
    assert np.array([1j]).dtype is dt.complex128
    assert np.mean(np.arange(4)).item() == 1.5


def test_number_in_place_rebinds_the_name() -> None:
    s = np.array([1.0, 2.0]).sum()
    t = s
    s += 1
    assert (float(s), float(t)) == (4.0, 3.0)


def test_array_in_place_writes_through_aliases() -> None:
    x = np.zeros(2)
    y = x
    y += 1
    assert x.tolist() == [1.0, 1.0]


def test_shape_assignment_keeps_the_memory() -> None:
    x = np.arange(6)
    view = x[:]
    x.shape = (2, 3)
    view[5] = 9
    assert x.tolist() == [[0, 1, 2], [3, 4, 9]]


def test_float_in_integer_array_loses_its_fraction() -> None:
    x = np.zeros(3, dtype=int)
    x[0] = 2.7
    x[1:] = np.array([1.5, -1.5])
    assert x.tolist() == [2, 1, -1]


def test_methods_that_write_in_place() -> None:
    x = np.array([3.0, 1.0, 2.0])
    assert x.sort() is None
    assert x.tolist() == [1.0, 2.0, 3.0]
    x.fill(7)
    x.put([0], 1)
    x.resize(4)
    assert x.tolist() == [1.0, 7.0, 7.0, 0.0]


def test_flat_reads_and_writes_in_row_major_order() -> None:
    x = np.arange(4).reshape(2, 2).T
    x.flat[1] = 9
    x.flat[2:] = [7, 8]
    assert x.tolist() == [[0, 9], [7, 8]]


def test_number_behaves_like_a_python_number() -> None:
    s = np.array([1.5, 2.5]).sum()
    assert f"{s:.2f}" == "4.00"
    assert math.sqrt(s) == 2.0
    assert round(s, 1) == 4.0
    assert {s: 1}[4.0] == 1
    assert max(s, 3) is s
    assert list(range(np.array([1, 2]).sum())) == [0, 1, 2]


def test_ndarray_is_a_constructor_and_a_tensor() -> None:
    x = np.ndarray((2, 3), dtype=np.float32)
    assert isinstance(x, np.ndarray)
    assert isinstance(x, dt.Tensor)
    assert (x.shape, x.dtype, x.strides) == ((2, 3), np.float32, (12, 4))


def test_gradient_flows_through_functions_of_the_namespace() -> None:
    x = np.array([1.0, 2.0]).requires_grad_()
    np.sum(np.sin(x) * x[0]).backward()
    slope = math.sin(1.0) + math.sin(2.0) + math.cos(1.0)
    assert numpy.allclose(x.grad.tolist(), [slope, math.cos(2.0)])


def test_capture_reads_no_elements() -> None:
    @dt.jit
    def f(x: Any) -> Any:
        y = np.zeros(3)
        y[0] = x[1]
        return np.array([y[0], x[0]]) * 2

    for _ in range(2):
        assert f(np.array([1.0, 2.0])).tolist() == [4.0, 2.0]
    assert f(np.array([5.0, 6.0])).tolist() == [12.0, 10.0]


def test_random_numbers_under_vmap_raise() -> None:
    with pytest.raises(dt.CaptureError, match=r"dt\.random"):
        dt.vmap(lambda x: x + np.random.rand(2))(np.zeros((3, 2)))


def test_streams_are_numpys() -> None:
    np.random.seed(3)
    ours = np.random.rand(4)
    numpy.random.seed(3)
    assert ours.tolist() == numpy.random.rand(4).tolist()
    x = np.arange(5)
    np.random.default_rng(1).shuffle(x)
    y = numpy.arange(5)
    numpy.random.default_rng(1).shuffle(y)
    assert x.tolist() == y.tolist()


def test_pickle_keeps_the_class() -> None:
    x = pickle.loads(pickle.dumps(np.arange(3)))
    assert type(x) is np.ndarray
    assert x.tolist() == [0, 1, 2]


def test_numpys_functions_keep_the_class() -> None:
    x = np.array([1.0, 4.0])
    assert type(numpy.sqrt(x)) is np.ndarray
    assert type(numpy.cumsum(x)) is np.ndarray
    assert type(numpy.sum(x)) is numpy.float64
    assert type(numpy.float64(2) * x) is np.ndarray


def test_import_of_dovetail_does_not_load_the_namespace() -> None:
    code = "import sys, dovetail; dovetail.zeros(1); assert 'dovetail.numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_frequencies_of_a_captured_spacing_are_numpys() -> None:
    x = numpy.linspace(-1, 1, 49, endpoint=False)

    @dt.jit
    def frequencies(x: Any) -> Any:
        return np.fft.fftfreq(x.size, d=x[1] - x[0]), np.fft.rfftfreq(7, x[0])

    pair = frequencies(np.asarray(x))
    numpy.testing.assert_allclose(pair[0], numpy.fft.fftfreq(49, x[1] - x[0]), 1e-15)
    numpy.testing.assert_allclose(pair[1], numpy.array([0, 1, 2, 3]) / -7, 1e-15)
    assert np.fft.fftfreq(4, 0.5).tolist() == [0, 0.5, -1, -0.5]


POWERS = {
    "operator": lambda x, y: x**y,
    "in place": lambda x, y: x.__ipow__(y),
    "function": np.power,
    "function of a number": lambda x, y: np.power(2, y),
    "reflected": lambda x, y: 2**y,
}


@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize("size", [2, 5000])
def test_integers_to_negative_powers_raise_as_in_numpy(name: str, size: int) -> None:
    power = POWERS[name]
    for library in (numpy, np):
        x, y = library.full(size, 2), library.arange(size)
        assert int(library.max(power(x[:5].copy(), y[:5]))) == 2 ** min(size - 1, 4)
        y[-1] = -1
        with pytest.raises(ValueError, match="to negative integer powers are not allowed"):
            power(x, y)
