"""NumPy functions that `dt` lacks: composed of others, written into arrays, or an error with an
alternative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.functions.numpy import extra_functions, like_creation, protocol, same_names

CUBE, CUBE_OF_0 = np.arange(24.0).reshape(2, 3, 4), np.zeros((2, 3, 4))
A = np.array([[3.0, -1.5, 2.0], [0.5, 4.0, -7.25]])
Z = np.array([3 + 1j, 1 - 2j, 1 + 5j, 1 - 7j])
B = np.array([[1, 200, 7], [255, 0, 128]], np.uint8)

NAMED = r"^(unpackbits|packbits|apply_along_axis|rollaxis|polydiv): "
MORE: list[tuple[Callable[..., Any], Any]] = [
    (lambda x: np.fix(x), A), (lambda x: np.rollaxis(x, 1), A),
    (lambda x: np.rollaxis(x, 2), CUBE_OF_0),
    (lambda x: np.rollaxis(x, 0, 3), CUBE_OF_0),
    (lambda x: np.rollaxis(x, -1, -2), CUBE_OF_0),
    (lambda x: np.real_if_close(x), Z), (lambda x: np.real_if_close(x), Z.real + 0j),
    (lambda x: np.real_if_close(x, 0.5), Z.real + 0.25j), (lambda x: np.real_if_close(x), A),
    (lambda x: np.sort_complex(x), Z), (lambda x: np.sort_complex(x), A),
    (lambda x: np.float_power(x, 2), np.array([1, 2, 3], np.int32)),
    (lambda x: np.float_power(2.0, x), np.array([0.5, 2], np.float32)),
    (lambda x: np.float_power(x, [2.0, 3.0]), np.array([3, 2], np.int8)),
    (lambda x: np.float_power(x, 2), Z.astype("c8")),
    (lambda x: np.apply_along_axis(lambda v: v.sum(), 0, x), A),
    (lambda x: np.apply_along_axis(lambda v: v * 2, 0, x), A),
    (lambda x: np.apply_along_axis(lambda v: v[:2, None] * v, 0, x), CUBE),
    (lambda x: np.apply_along_axis(lambda v, k, b: v[:2] * k + b, 1, x, 2, b=1), CUBE),
    (lambda x: np.apply_over_axes(np.sum, x, [0, 2]), CUBE),
    (lambda x: np.apply_over_axes(np.sum, x, -1), A),
    (lambda x: np.polydiv(x, np.array([1.0, 2.0])), np.array([3.0, 5.0, 2.0])),
    (lambda x: np.polydiv(x, np.array([1.0, 2.0, 4.0])), np.array([2.0, 7.0, 1.0, -3.0])),
    (lambda x: np.polydiv(x, np.array([1.0, 2.0, 4.0])), np.array([2.0, 7.0])),
    (lambda x: np.polydiv(np.array([1, 2, 5]), x), np.array([2, 1])),
    (lambda x: np.unpackbits(x), B), (lambda x: np.unpackbits(x, axis=1), B),
    (lambda x: np.unpackbits(x, axis=0, bitorder="little"), B),
    (lambda x: np.unpackbits(x, 1, 5), B),
    (lambda x: np.unpackbits(x, 1, 30), B), (lambda x: np.unpackbits(x, 1, -2), B),
    (lambda x: np.packbits(x), B), (lambda x: np.packbits(x > 5, 1), B),
    (lambda x: np.packbits(x, axis=0, bitorder="little"), B),
    (lambda x: np.packbits(x), np.arange(16) % 3),
    (lambda x: np.frexp(x), A), (lambda x: np.modf(x), A), (lambda x: np.linspace(x, 3.0, 5), A),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(MORE)))
def test_composed_numpy_functions_equal_numpy(number: int) -> None:
    f, a = MORE[number]
    found, want = f(dt.asarray(a, device="reference")), f(a)
    parts = zip(found, want, strict=True) if isinstance(want, tuple) else [(found, want)]
    for ours, theirs in parts:
        assert type(ours) is dt.Tensor and str(ours.device) == "reference"
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12)
        assert ours.shape == theirs.shape
        assert ours.dtype.name == str(theirs.dtype) or a.dtype.kind == "i"


def test_every_composed_function_has_a_case() -> None:
    named = {n for f, _ in MORE for n in f.__code__.co_names}
    assert {f.__name__ for f in extra_functions.EXTRA_FUNCTIONS.values()} - named == {"einsum_path"}


def test_einsum_path_needs_no_elements() -> None:
    x = dt.ones((2, 3), device="reference") * 2
    path, _ = np.einsum_path("ij,jk->ik", x, x.mT)
    assert path == ["einsum_path", (0, 1)]


def test_gradients_flow_through_composed_functions() -> None:
    x = dt.asarray(A, device="reference").requires_grad_()
    np.apply_along_axis(lambda v: (v * v).sum(), 1, x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == (2 * A).tolist()


@pytest.mark.parametrize("f", [
    lambda: np.unpackbits(dt.ones(3, device="reference")),
    lambda: np.packbits(dt.ones(3, device="reference")),
    lambda: np.packbits(dt.ones(3, dtype=dt.bool, device="reference"), bitorder="middle"),
    lambda: np.apply_along_axis(sum, 0, dt.ones((0, 3), device="reference")),
    lambda: np.apply_along_axis(3, 0, dt.ones(3, device="reference")),
    lambda: np.rollaxis(dt.ones(3, device="reference"), 2),
    lambda: np.polydiv(dt.ones(0, device="reference"), np.ones(2)),
])  # fmt: skip
def test_bad_arguments_name_the_function(f: Callable[[], Any]) -> None:
    with pytest.raises(dt.DovetailError, match=NAMED):
        f()


INTO: list[Callable[[Any, Any, Any], None]] = [
    lambda a, i, m: np.put(a, i, i + 7),
    lambda a, i, m: np.put(a, i, [9.0]),
    lambda a, i, m: np.place(a, m, [5.0, 6.0]),
    lambda a, i, m: np.putmask(a, m, 5.0),
    lambda a, i, m: np.put_along_axis(a, i, 7.0, 0),
    lambda a, i, m: np.copyto(a, i[0], where=m),
]


@pytest.mark.parametrize("number", range(len(INTO)))
def test_writing_functions_write_into_tensors_and_arrays(number: int) -> None:
    i, m = np.array([2, 0]), np.array([True, False, True, True])
    want = np.zeros(4)
    INTO[number](want, i, m)
    ours = [dt.asarray(v, device="reference") for v in (np.zeros(4), i, m)]
    assert INTO[number](*ours) is None
    assert ours[0].tolist() == want.tolist() != [0] * 4
    array = np.zeros(4)
    assert INTO[number](array, *ours[1:]) is None
    assert array.tolist() == want.tolist()


def test_fill_diagonal_writes_in_place() -> None:
    x, a = dt.zeros((3, 3), device="reference"), np.zeros((3, 3))
    assert (
        np.fill_diagonal(x, 2.0) is None
        and np.fill_diagonal(a, dt.full((), 2.0, device="reference")) is None
    )
    assert x.tolist() == a.tolist() == (np.eye(3) * 2).tolist()


@pytest.mark.parametrize(
    "options",
    [{}, {"num": 7, "endpoint": False}, {"num": 1}, {"num": 0}, {"num": 4, "axis": -1},
     {"num": 9, "dtype": "int32"}, {"num": 5, "dtype": "float32"}],
)  # fmt: skip
def test_linspace_accepts_tensor_ends(device: dt.Device, options: dict[str, Any]) -> None:
    a, b = np.asarray([[1.0, -2.0, 5.0]]), np.asarray([[2.0], [7.5]])
    x, y = dt.asarray(a), dt.asarray(b)
    cases = [((x, y), (a, b)), ((x, 3), (a, 3)), ((-1, y), (-1, b)), ((x[0, 0], b), (a[0, 0], b))]
    for ours, theirs in cases:
        got, want = np.linspace(*ours, **options), np.linspace(*theirs, **options)
        assert type(got) is dt.Tensor and got.device is device and got.dtype == want.dtype
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6, atol=1e-6)
    made, step = np.linspace(x, y, 5, retstep=True)  # type: ignore[call-overload]  # tensors
    np.testing.assert_allclose(step.numpy(), (b - a) / 4)
    assert made[0].tolist() == np.broadcast_to(a, (2, 3)).tolist()
    assert made[-1].tolist() == np.broadcast_to(b, (2, 3)).tolist()
    assert np.linspace(dt.asarray(1), 4, 4).tolist() == [1, 2, 3, 4]
    assert np.linspace(dt.asarray(1.0), np.inf, 3).tolist()[::2] == [1, np.inf]


# --- coverage of NumPy


def dispatched() -> list[str]:
    """Return NumPy's functions and ufuncs that dispatch to a tensor."""
    every = {n: getattr(np, n) for n in dir(np) if not n.startswith("_")}
    return [n for n, f in every.items() if isinstance(f, np.ufunc) or hasattr(f, "_implementation")]


ABSENT = {  # days; steps of floats; many dimensions; progressions whose ends are tensors
    "busday_count", "busday_offset", "is_busday", "datetime_as_string", "isnat", "spacing",
    "histogramdd", "logspace", "geomspace",
}  # fmt: skip


def test_every_dispatched_function_is_supported_or_listed() -> None:
    known = {*protocol.FUNCTIONS, *protocol.UFUNCS, *extra_functions.EXTRA_FUNCTIONS}
    known |= set(like_creation.LIKE_FUNCTIONS)
    lacking = {
        n for n in dispatched()
        if getattr(np, n) not in known and same_names.namesake(getattr(np, n)) is None
    }  # fmt: skip
    assert lacking == ABSENT


TWO = ("busday_count", "busday_offset", "logspace", "geomspace")


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_unsupported_function_names_an_alternative(name: str) -> None:
    x = dt.ones(3, device="reference")
    with pytest.raises(dt.DTypeError, match=rf"np\.{name}: .* pass np\.asarray\(x\)"):
        getattr(np, name)(x, *([x] if name in TWO else []))
