"""`dovetail.numpy`: which arguments functions take, and whose memory and class results have."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy
import pytest
from dovetail.tensor.c_slots import install_element_slots

LARGE = 1 << 18  # elements of float64, in 2 MiB


def test_array_of_the_caller_that_is_returned_is_copied() -> None:
    mine = numpy.zeros(LARGE)
    for result in (np.atleast_1d(mine), np.atleast_1d(mine, mine)[1], np.ravel(mine)):
        result[0] = 1.0
    assert mine[0] == 0.0


def test_view_of_an_array_of_the_caller_is_copied() -> None:
    mine = numpy.zeros((2, LARGE))
    result = np.squeeze(mine[:1])
    result[0] = 1.0
    assert mine[0, 0] == 0.0


def test_out_on_the_host_is_returned_itself() -> None:
    mine = numpy.arange(3.0)
    assert np.add(mine, 1, out=mine) is mine
    assert mine.tolist() == [1.0, 2.0, 3.0]
    whole, part = numpy.zeros(3), numpy.zeros(3)
    results = np.modf(mine + 0.5, out=(part, whole))
    assert results[0] is part and results[1] is whole
    assert type(np.modf(mine, out=(part, None))[1]) is np.ndarray


def test_array_over_a_buffer_shares_it() -> None:
    memory = numpy.zeros(3)
    np.ndarray(2, float, memory, 8)[0] = 5.0
    assert memory.tolist() == [0.0, 5.0, 0.0]


@pytest.mark.parametrize(
    "call",
    [
        "np.mean(a=n)", "np.std(a=n)", "np.average(x, weights=n)", "np.percentile(a=n, q=50)",
        "np.mean(x, where=n > 1)", "np.cov(x, fweights=n)", "np.median(n, keepdims=True)",
        "np.mean(n, 0)", "np.mean(n, axis=0)", "np.linalg.norm(n)", "np.linalg.norm(x=n)",
        "np.sum(n, 0)", "np.prod(x, axis=0, keepdims=True)", "np.cumsum(x.reshape(3, 1))",
        "np.sort(x.reshape(3, 1), None)", "np.sort(x, kind='stable')", "np.dot(x, 2)",
        "np.dot(x, x.reshape(1, 3, 1))", "np.dot(2, 3)", "np.dot(n, x)",
        "np.take(x.reshape(3, 1), n)", "np.outer(x.reshape(3, 1), n)", "np.clip(n, 0, 1.5)",
        "np.clip(n, 0, 1)", "np.clip(x, n, 2)", "np.clip(x, None, 1)", "np.where(x > 1, n, 0.5)",
        "np.where(x > 1, f, 0.1)", "np.where(x > 1, f, x)", "np.where(x > 1, 1, n)",
        "np.where(n, x, 0)", "np.where(x > 1, 1, 0)",
        "np.concatenate([n, x])", "np.concatenate((x, x), 0)", "np.stack([x, x], axis=1)",
        "np.max(x, initial=9)", "np.sum(x, dtype=np.float32)", "np.argmax(x)", "np.std(x, ddof=1)",
        "np.meshgrid(x, n, sparse=True)", "np.meshgrid(x, n, indexing='ij')", "np.meshgrid(x)",
        "np.diff(x, 2)", "np.diff(x, n=1, axis=0)", "np.any(x > 1, axis=0)", "x.sum(0)", "n.mean()",
    ],
)  # fmt: skip
def test_form_of_a_call_does_not_change_the_result(call: str) -> None:
    def run(library: Any) -> Any:
        x, n = library.array([0.5, 2.0, 3.5]), library.array([1, 2, 1])
        return eval(call, {"np": library, "x": x, "n": n, "f": x.astype("float32")})

    ours, theirs = run(np), run(numpy)
    pairs = zip(ours, theirs, strict=True) if isinstance(theirs, tuple) else [(ours, theirs)]
    for a, b in pairs:
        assert numpy.asarray(a).dtype == b.dtype
        assert numpy.shape(a) == b.shape
        numpy.testing.assert_allclose(numpy.asarray(a), b, 1e-12)
    for result in ours if isinstance(ours, tuple) else [ours]:
        assert isinstance(result, (np.ndarray, numpy.generic))


@pytest.mark.parametrize(
    "call",
    [
        "np.concatenate([n, f])", "np.stack((n, f))", "np.vstack([f, n])", "np.append(n, f)",
        "np.dot(n, f)", "np.outer(n, f)", "np.inner(n, f)", "np.vdot(f, n)", "n @ f", "f @ n",
        "np.tensordot(n, f, 1)", "np.einsum('i,i', n, f)", "np.kron(n, f)", "np.convolve(n, f)",
        "np.select([f > 1], [n], f)", "np.choose([0, 1, 0], [n, f])", "np.block([[n], [f]])",
        "np.array([n, f])", "np.r_[n, f]", "np.max([n, f])", "np.cov(f)", "np.corrcoef(f, f)",
        "np.union1d(n, f)", "np.linalg.multi_dot([np.outer(n, n), f])", "np.poly(n)",
    ],
)  # fmt: skip
def test_arrays_of_several_dtypes_promote_as_in_numpy(call: str) -> None:
    def run(library: Any) -> Any:
        f = library.array([0.5, 1.5, 2.5], dtype="float32")
        return numpy.asarray(eval(call, {"np": library, "n": library.array([1, 2, 3]), "f": f}))

    ours, theirs = run(np), run(numpy)
    assert ours.dtype == theirs.dtype == "float64"
    numpy.testing.assert_allclose(ours, theirs, 1e-12)


@pytest.mark.parametrize("shape", [(4,), (2, 2), ()])
def test_real_and_imaginary_parts_are_views(shape: tuple[int, ...]) -> None:
    for library in (np, numpy):
        z = library.array([1 + 2j, 3 + 4j, 5j, 6])[: 4 if shape else 1].reshape(shape).copy()
        z.T.imag[...] = 7.0
        z.real[...] = library.asarray(8)
        assert set(library.ravel(z).tolist()) == {8 + 7j}
        z.imag, z.real = 1, 2.5
        assert set(library.ravel(z).tolist()) == {2.5 + 1j}
        x = library.arange(3.0)
        x.real[1] = 9
        assert x.tolist() == [0.0, 9.0, 2.0]


def test_array_of_ints_is_a_shape_or_an_order() -> None:
    x = np.arange(6).reshape(np.array([2, 3]))
    assert x.transpose(np.array([1, 0])).shape == (3, 2)
    assert x.transpose(None).shape == (3, 2)
    assert x.reshape(np.array(6)).shape == (6,)


def test_gradient_has_the_class_of_its_tensor() -> None:
    x = np.array([1.0, 2.0]).requires_grad_()
    y = (x * x).sum()
    assert type(dt.grad(y, x, retain_graph=True)) is np.ndarray
    assert type(dt.grad(y, [x], retain_graph=True)[0]) is np.ndarray
    y.backward()
    assert type(x.grad) is np.ndarray
    plain = dt.ones(2).requires_grad_()
    (plain * np.array([1.0, 2.0]).astype("float32")).sum().backward()
    assert type(plain.grad) is dt.Tensor


def test_metric_of_two_classes_is_an_array() -> None:
    true, predicted = np.array([0, 1, 1]), np.array([0, 1, 0])
    score = dt.metrics.f1_score(true, predicted)
    assert type(score) is np.ndarray and score.shape == ()
    assert score.item() == pytest.approx(2 / 3)


def test_view_as_is_that_of_tensors() -> None:
    assert np.zeros(4).view_as(np.zeros((2, 2))).shape == (2, 2)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_number_that_integers_lack_raises_as_in_numpy(dtype: str) -> None:
    for library in (np, numpy):
        x = library.zeros(2, dtype)
        for key in (0, slice(None)):
            with pytest.raises(ValueError):
                x[key] = float("nan")
            for value in (float("inf"), 1e300, -1e300):
                with pytest.raises(OverflowError):
                    x[key] = value
        assert x.tolist() == [0, 0]


@pytest.mark.parametrize(
    "statement",
    [
        "x.fill(2.7)", "x.put([0], [2.7])", "np.put(x, [0, 5], 2.7)", "np.putmask(x, x > 1, 2.7)",
        "np.place(x, x > 1, [2.7, 1.2])", "np.fill_diagonal(x.reshape(2, 3), 2.7)",
        "np.put_along_axis(x, np.array([0]), 2.7, 0)", "x.flat.__setitem__(slice(0, 2), 2.7)",
        "np.copyto(x, 2.5, casting='unsafe')", "x.flat.__setitem__(0, 2.7)",
    ],
)  # fmt: skip
def test_floats_lose_their_fraction_in_integers(statement: str) -> None:
    ours, theirs = np.arange(6), numpy.arange(6)
    assert eval(statement, {"np": np, "x": ours}) is None
    eval(statement, {"np": numpy, "x": theirs})
    assert ours.tolist() == theirs.tolist()


def test_tolerances_may_be_arrays() -> None:
    for library in (np, numpy):
        x = library.array([0.5, 2.0, numpy.inf, numpy.nan])
        y = library.array([0.5, 2.1, numpy.inf, numpy.nan])
        rtol = library.array([0.0, 0.2, 0.0, 0.0])
        assert library.isclose(x, y, rtol, 0).tolist() == [True, True, True, False]
        assert library.isclose(x, y, 0, rtol, True).tolist() == [True, True, True, True]
        assert bool(library.allclose(x, y, rtol, equal_nan=True))
        near = library.asarray(1.0, dtype="float32")
        assert not library.isclose(near, numpy.float64(1 - 2**-52), rtol=0, atol=0)


def test_clip_has_numpys_casts_and_bounds() -> None:
    for library in (np, numpy):
        n = library.arange(5, dtype="int32")
        assert library.clip(n, 0.5, 3.5, out=n, casting="unsafe") is n
        assert n.tolist() == [0, 1, 2, 3, 3]
        assert library.clip(n, None, None).tolist() == n.tolist()
        with pytest.raises(ValueError):
            library.clip(n, 0, 1, max=2)


def test_absolute_value_of_bools_and_equal_flags() -> None:
    for library in (np, numpy):
        m = library.array([True, False])
        assert library.abs(m).dtype == bool and library.abs(m).tolist() == [True, False]
        assert m.flags == library.array([False]).flags


def test_error_of_linear_algebra_is_numpys() -> None:
    with pytest.raises(numpy.linalg.LinAlgError) as caught:
        np.linalg.inv(np.zeros((2, 2))).tolist()
    assert isinstance(caught.value, dt.LinAlgError)


@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "float32"])
def test_matrix_power_takes_the_dtypes_of_numpy(dtype: str) -> None:
    for n in (0, 1, 3, -1):
        x = numpy.array([[1, 1], [0, 1]], dtype)
        if n < 0 and dtype == "float16":
            continue
        ours, theirs = np.linalg.matrix_power(np.array(x), n), numpy.linalg.matrix_power(x, n)
        assert numpy.asarray(ours).dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()
    assert len(np.linalg.qr(np.array(x.astype("float32")), mode="raw")) == 2


def test_masks_and_numbers_are_indices_and_sets() -> None:
    for library in (np, numpy):
        x, m = library.array([1, 2, 3]), library.array([True, False, True])
        assert library.delete(x, m).tolist() == [2]
        assert library.delete(x, [True, False, False]).tolist() == [2, 3]
        assert library.delete(x.reshape(1, 3), 1, axis=1).tolist() == [[1, 3]]
        assert library.insert(x, m, 9).tolist() == [9, 1, 2, 9, 3]
        assert library.insert(x, 1, 9).tolist() == [1, 9, 2, 3]
        assert library.setxor1d(x, 2).tolist() == [1, 3]
        assert library.union1d(x, 5).tolist() == [1, 2, 3, 5]


def test_interpolation_of_complex_numbers_is_that_of_their_parts() -> None:
    def run(library: Any) -> Any:
        y = library.array([1 + 2j, 3 - 1j, complex(numpy.inf, 0)])
        x = library.array([-1.0, 0.5, 1.5, 9.0])
        return library.interp(x, library.arange(3.0), y, left=2j, right=1)

    assert run(np).tolist() == run(numpy).tolist()
    for library in (np, numpy):
        spaced = library.gradient(library.array([1.0, 2.0, 4.0]), library.array(0.5))
        assert spaced.tolist() == [2.0, 3.0, 4.0]


@pytest.mark.parametrize("method", ["inverted_cdf", "lower", "nearest", "linear", "midpoint"])
def test_quantiles_that_are_elements_have_their_dtype(method: str) -> None:
    for q in (0.4, [0.1, 0.9]):
        ours = np.quantile(np.arange(5, dtype="int32"), np.asarray(q), method=method)
        theirs = numpy.quantile(numpy.arange(5, dtype="int32"), q, method=method)
        assert numpy.asarray(ours).dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()
        assert np.percentile([1, 2], 50, method=method).dtype == (
            numpy.percentile([1, 2], 50, method=method).dtype
        )


def test_functions_of_arrays_fill_and_insert_as_numpys_do() -> None:
    for library in (np, numpy):
        x = library.array([1, 2])
        assert library.insert(x, 0, 0.5).tolist() == [0, 1, 2]
        assert library.full_like(x, library.array([3.5, 4])).tolist() == [3, 4]
        assert library.tril(x).tolist() == [[1, 0], [1, 2]]


def test_number_in_an_array_of_bools_is_its_truth() -> None:
    for library in (np, numpy):
        m = library.zeros(4, dtype=bool)
        m[0], m[1], m[2:] = 1, 2.5, numpy.int64(-1)
        assert m.tolist() == [True, True, True, True]


@pytest.mark.parametrize(
    "expression",
    [
        "f + np.int64(2)", "np.int64(2) + f", "n + np.uint64(1)", "f * np.float64(2)",
        "np.float64(2) * f", "f * np.float32(2)", "f * 2", "i + np.int64(300)",
        "i * np.float32(1.5)", "f < np.float64(0.1)", "np.bool_(True) + i", "f * x[0]",
        "x[0] * f", "i // np.int64(2)",
    ],
)  # fmt: skip
def test_scalar_of_numpy_promotes_as_in_numpy(expression: str) -> None:
    def run(library: Any) -> Any:
        x = library.array([0.1, 2.0])
        values = {"x": x, "n": library.array([1, 2]), "f": x.astype("float32")}
        return eval(expression, {"np": numpy, "i": library.array([1, 2], "int8"), **values})

    ours, theirs = run(np), run(numpy)
    assert ours.numpy().dtype == theirs.dtype
    assert ours.tolist() == theirs.tolist()


def test_date_is_not_stored_as_a_number() -> None:
    for x in (np.zeros(2), dt.zeros(2)):
        dt.evaluate(x)
        for value in (numpy.timedelta64(5, "ns"), numpy.datetime64(5, "ns")):
            with pytest.raises(dt.DTypeError, match="cannot store a"):
                x[0] = value
        assert x.tolist() == [0.0, 0.0]


def test_second_class_with_element_slots_raises() -> None:
    with pytest.raises(RuntimeError, match="another class"):
        install_element_slots(np.ndarray, abs)


@pytest.mark.parametrize(
    "call",
    [
        "np.sum(c, dtype=float)", "np.mean(c, dtype=int)", "np.cumsum(c, dtype=float)",
        "np.add.reduce(c, dtype=float)", "c.astype(float)", "np.prod(c, dtype=int)",
        "x.__setitem__(slice(None), c)", "np.array(c, dtype=float)",
    ],
)  # fmt: skip
def test_lost_imaginary_parts_are_warned_of(call: str) -> None:
    c, x = np.array([1 + 2j, 3j]), np.zeros(2)
    with pytest.warns(numpy.exceptions.ComplexWarning) as warned:
        eval(call, {"np": np, "c": c, "x": x})
    assert [w.filename for w in warned] == ["<string>"]


@pytest.mark.parametrize("call", ["sum", "max", "mean", "argmax", "cumsum", "repeat"])
def test_array_without_dimensions_has_no_second_axis(call: str) -> None:
    arguments = (2,) if call == "repeat" else ()
    with pytest.raises(ValueError, match=r"axis|dimension"):
        getattr(np, call)(np.array(3.0), *arguments, axis=1)
    with pytest.raises((ValueError, TypeError)):
        getattr(np, call)(np.array(3.0), *arguments, axis=(0,))


def test_captured_sum_casts_its_elements_first() -> None:
    x = np.array([[1.5, 2.75], [0.0, 4.0]])
    sums = dt.jit(lambda x: (np.sum(x, axis=0, dtype=bool), np.mean(x, axis=0, dtype=int)))
    for _ in range(2):
        has_any, means = sums(x)
        assert has_any.tolist() == [True, True]
        assert (means.tolist(), means.dtype) == ([0, 3], dt.int64)


def test_directory_has_public_names_only() -> None:
    for module in (np, np.linalg, np.fft, np.random, np.testing, np.lib):
        names = dir(module)
        assert set(module.__all__) <= {*names}
        assert [n for n in names if n not in module.__all__ and not n.startswith("__")] == []


def test_methods_of_generators_share_one_state() -> None:
    ours, theirs = np.random.default_rng(3), numpy.random.default_rng(3)
    for _ in range(3):
        assert ours.random() == theirs.random()
        assert ours.permutation(np.arange(9)).tolist() == theirs.permutation(9).tolist()
        assert ours.choice(5, p=[0.1, 0.5, 0.4, 0, 0]) == theirs.choice(5, p=[0.1, 0.5, 0.4, 0, 0])
        assert type(ours.permuted(np.arange(4))) is type(ours.normal(size=2)) is np.ndarray
        assert theirs.permuted(numpy.arange(4)).size + theirs.normal(size=2).size == 6


@pytest.mark.parametrize("f", [operator.add, operator.mul, operator.lt, operator.truediv])
def test_list_beside_an_array_of_integers_is_of_float64(f: Any) -> None:
    values, numbers = [0.1, 1.1, 7.0000000001], [1, 2, 7]
    ours, theirs = np.array(numbers), numpy.array(numbers)
    for a, b, want in ((ours, values, f(theirs, values)), (values, ours, f(values, theirs))):
        found = numpy.asarray(f(a, b))
        assert found.dtype == want.dtype and found.tolist() == want.tolist()


@pytest.mark.parametrize("dtype", ["int64", "float32", "complex64"])
@pytest.mark.parametrize(
    "values", [[0.1, 1.1], [1, 2], (1j, 2.0)], ids=["floats", "ints", "complex"]
)
def test_lists_of_numbers_are_arrays_of_numpys_dtypes(values: Any, dtype: str) -> None:
    calls: list[Callable[[Any, Any], Any]] = [
        lambda m, a: m.append(a, values),
        lambda m, a: m.append(a, values=values),
        lambda m, a: m.average(a, weights=values),
        lambda m, a: m.concatenate((a, values)),
        lambda m, a: m.convolve(a, values),
        lambda m, a: m.dot(a, values),
        lambda m, a: m.einsum("i,i->i", a, values),
        lambda m, a: m.einsum(a, [0], a, [0], [0]),
        lambda m, a: m.hstack([values, a]),
        lambda m, a: m.linspace(a, values, 3),
        lambda m, a: m.outer(a, values),
        lambda m, a: m.polyval(a, values),
        lambda m, a: m.setxor1d(a, values),
        lambda m, a: m.stack([a, values]),
        lambda m, a: m.tensordot(a, values, 1),
        lambda m, a: m.tensordot(a, values, [[0], [0]]),
        lambda m, a: m.where(m.array([False, True]), values, a),
    ]
    for call in calls:
        want = numpy.asarray(call(numpy, numpy.array([1, 2], dtype)))
        found = numpy.asarray(call(np, np.array([1, 2], dtype)))
        assert found.dtype == want.dtype
        assert numpy.allclose(found, want, rtol=1e-14 if want.dtype.itemsize > 4 else 1e-6)


def test_bounds_in_lists_of_floats_are_float64() -> None:
    assert np.clip(np.array([1, 2]), [0.1, 1.1], [1.5, 1.7]).tolist() == [1.0, 1.7]


@pytest.mark.parametrize("size", [10, 5000])
@pytest.mark.parametrize("call", ["flatnonzero", "argwhere", "nonzero", "i0", "spacing"])
def test_results_stay_on_the_device_of_the_argument(call: str, size: int) -> None:
    x = np.asarray(numpy.arange(float(size)), device="reference")
    result = getattr(np, call)(x)
    result = result[0] if type(result) is tuple else result
    assert result.device == dt.device("reference")


def test_complex_numbers_have_no_order_in_a_captured_function() -> None:
    with pytest.raises(dt.DTypeError, match="max"):
        dt.jit(np.max, fullgraph=True)(np.asarray([1j, 2]))


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4"])
def test_imaginary_parts_of_an_assigned_array_are_lost_with_a_warning(dtype: str) -> None:
    for value in (np.asarray([1 + 2j, 3, 4]), np.asarray(1 + 2j)):
        x = np.zeros(3, dtype)
        with pytest.warns(numpy.exceptions.ComplexWarning):
            x[...] = value
        wanted = numpy.zeros(3, dtype)
        wanted[...] = value.numpy().real
        assert x.tolist() == wanted.tolist()


def test_error_that_numpy_raises_too_is_dovetails() -> None:
    with pytest.raises(dt.ShapeError, match="max: expected at least one element"):
        np.max(np.zeros(0))


@pytest.mark.parametrize("name", ["append", "dot", "inner", "kron", "outer", "vdot", "convolve"])
@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float32", "float64", "complex64"])
def test_number_beside_an_array_has_the_dtype_of_its_own_array(name: str, dtype: str) -> None:
    a = numpy.array([1, 0, 3], dtype)
    for number in (2, 2.5, True, 2.5j, numpy.float64(2.5), numpy.int64(2)):
        for operands in ((a, number), (number, a)):
            try:
                want = getattr(numpy, name)(*operands)
            except (TypeError, ValueError):
                continue
            got = getattr(np, name)(*[np.array(x) if x is a else x for x in operands])
            assert got.dtype == want.dtype
            assert numpy.array_equal(numpy.asarray(got), want)


SHAPES_OF_OUT = [
    ("add", lambda m, a, out: m.add(a, 1, out=out), (2, 2, 3)),
    ("add to fewer", lambda m, a, out: m.add(a, 1, out=out), (3,)),
    ("clip", lambda m, a, out: m.clip(a, 1, 2, out=out), (2, 2, 3)),
    ("fix", lambda m, a, out: m.fix(a, out=out), (2, 2, 3)),
    ("matmul", lambda m, a, out: m.matmul(a, a.T, out=out), (2, 2, 2)),
    ("outer", lambda m, a, out: m.outer(a[0], a[1], out=out), (2, 3, 3)),
    ("add.outer", lambda m, a, out: m.add.outer(a[0], a[1], out=out), (2, 3, 3)),
    ("add.reduce", lambda m, a, out: m.add.reduce(a, out=out), (2, 3)),
    ("add.accumulate", lambda m, a, out: m.add.accumulate(a, out=out), (2, 2, 3)),
    ("argmax", lambda m, a, out: a.argmax(0, out=out.astype(int)), (2, 3)),
    ("concatenate", lambda m, a, out: m.concatenate([a, a], out=out), (2, 4, 3)),
    ("cumsum", lambda m, a, out: m.cumsum(a, axis=0, out=out), (2, 2, 3)),
    ("dot", lambda m, a, out: m.dot(a, a.T, out=out), (2, 2, 2)),
    ("einsum", lambda m, a, out: m.einsum("ij->j", a, out=out), (2, 3)),
    ("max", lambda m, a, out: a.max(axis=1, out=out), (2, 2)),
    ("max", lambda m, a, out: a.max(axis=1, out=out), (2,)),
    ("median", lambda m, a, out: m.median(a, axis=0, out=out), (2, 3)),
    ("nanmean", lambda m, a, out: m.nanmean(a, axis=0, out=out), (2, 3)),
    ("round", lambda m, a, out: m.round(a, 1, out=out), (2, 2, 3)),
    ("sum", lambda m, a, out: m.sum(a, axis=0, keepdims=True, out=out), (3,)),
    ("sum", lambda m, a, out: m.sum(a, axis=0, keepdims=True, out=out), (1, 3)),
    ("sum of all", lambda m, a, out: m.sum(a, out=out), (1,)),
    ("take", lambda m, a, out: m.take(a, [0, 1], axis=0, out=out), (2, 2, 3)),
]


@pytest.mark.parametrize(("call", "shape"), [pytest.param(c, s, id=n) for n, c, s in SHAPES_OF_OUT])
def test_out_of_another_shape_is_broadcast_to_by_ufuncs_alone(call: Any, shape: Any) -> None:
    try:
        want = call(numpy, numpy.arange(6.0).reshape(2, 3), numpy.zeros(shape))
    except ValueError:
        with pytest.raises(ValueError):  # of whichever function
            call(np, np.arange(6.0).reshape(2, 3), np.zeros(shape))
    else:
        got = call(np, np.arange(6.0).reshape(2, 3), np.zeros(shape))
        assert got.tolist() == want.tolist()


def test_array_of_a_pending_number_is_a_new_one() -> None:
    def f(x: Any) -> Any:
        total = x.sum()
        array = np.asarray(total)
        array[...] = 9
        return array, total

    assert [float(v) for v in dt.jit(f)(np.arange(3.0))] == [9, 3]


def test_choose_takes_several_arrays_as_numpy() -> None:
    a, b = np.array([1, 2, 3]), np.array([10, 20, 30])
    index = np.array([0, 1, 0])
    assert index.choose(a, b).tolist() == index.choose([a, b]).tolist() == [1, 20, 3]


def test_base_of_a_repeated_array_is_what_it_repeats() -> None:
    x = np.ones((3, 1))
    y = np.broadcast_to(x, (3, 4))
    assert y.base is x and not y.flags.owndata
    assert x.base is None and x.flags.owndata
    del x
    assert y.base.nbytes == 3 * y.itemsize
    assert np.broadcast_to(np.ones((), np.int8), (10, 10)).base.nbytes == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda host, a: host.true_divide(a, 2),
        lambda host, a: host.float64(2) * a,
        lambda host, a: host.add.outer(a[0], a[0]),
        lambda host, a: host.logical_xor.accumulate(a[0] > 0),
    ],
)
def test_ufuncs_of_numpy_give_arrays_of_its_dtypes(call: Any) -> None:
    values = [[1, -1], [-1, 1]]
    found, expected = call(numpy, np.array(values)), call(numpy, numpy.array(values))
    assert type(found) is np.ndarray and found.dtype.name == expected.dtype.name
    assert found.tolist() == expected.tolist()


WRITES: dict[str, Callable[[Any], Any]] = {
    "row": lambda v: operator.setitem(v, 0, 9.0),
    "column": lambda v: operator.setitem(v, (slice(None), 0), 9.0),
    "element": lambda v: operator.setitem(v, (0, 0), 9.0),
    "array": lambda v: operator.setitem(v, 0, np.ones(v.shape[1])),
    "indices": lambda v: operator.setitem(v, [0], 9.0),
    "mask": lambda v: operator.setitem(v, v > 0, 9.0),
    "all": lambda v: operator.setitem(v, ..., 9.0),
    "flat": lambda v: operator.setitem(v.flat, 0, 9.0),
    "flat array": lambda v: operator.setitem(v.flat, slice(2), [1.0, 2.0]),
    "add": lambda v: operator.iadd(v, 1.0),
    "add array": lambda v: operator.iadd(v, np.ones(v.shape)),
    "out": lambda v: np.negative(v, out=v),
    "fill": lambda v: v.fill(1.0),
    "sort": lambda v: v.sort(),
    "put": lambda v: np.put(v, [0], 9.0),
    "place": lambda v: np.place(v, np.ones(v.shape, bool), [9.0]),
    "putmask": lambda v: np.putmask(v, np.ones(v.shape, bool), 9.0),
    "copyto": lambda v: np.copyto(v, 9.0),
    "fill_diagonal": lambda v: np.fill_diagonal(v, 9.0),
    "put_along_axis": lambda v: np.put_along_axis(v, np.zeros((3, 1), int), 9.0, 1),
    "add.at": lambda v: np.add.at(v, [0], 1.0),
}


@pytest.mark.parametrize("n", [4, 1 << 13])
@pytest.mark.parametrize("write", WRITES.values(), ids=[*WRITES])
def test_write_into_a_part_of_a_broadcast_array_raises_read_only_error(
    write: Callable[[Any], Any], n: int
) -> None:
    for x in (np.arange(float(n)), np.arange(float(n)) * 2 + 1):
        before = x.tolist()
        for y in (x, x.reshape(1, n), x[::-1]):
            with pytest.raises(dt.errors.ReadOnlyError):
                write(np.broadcast_to(y, (3, n)))
        assert x.tolist() == before
        write(np.broadcast_to(np.ones((3, n)), (3, n)))  # no elements share memory
