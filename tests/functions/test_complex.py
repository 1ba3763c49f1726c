"""Complex tensors: creation, display, promotion, data movement, reductions, products and writes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

Host = np.ndarray[Any, Any]
KINDS = ("c8", "c16")


def random_complex(shape: tuple[int, ...], kind: str = "c16", seed: int = 0) -> Host:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(kind)


# --- dtypes ---------------------------------------------------------------------------------------


def test_complex_dtypes_have_their_properties() -> None:
    assert (dt.complex64.itemsize, dt.complex128.itemsize) == (8, 16)
    assert dt.complex64.is_complex and not dt.float32.is_complex and not dt.complex64.is_float
    assert dt.complex64.part is dt.float32 and dt.complex128.part is dt.float64
    assert dt.float16.part is dt.float16
    assert dt.isdtype(dt.complex64, "complex floating") and dt.isdtype(dt.complex128, "numeric")
    assert not dt.isdtype(dt.complex64, "real floating")
    assert dt.finfo(dt.complex64).eps == dt.finfo(dt.float32).eps


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        (dt.complex64, dt.float32, dt.complex64), (dt.complex64, dt.float64, dt.complex128),
        (dt.complex64, dt.int64, dt.complex64), (dt.complex128, dt.float32, dt.complex128),
        (dt.complex64, dt.complex128, dt.complex128), (dt.bool, dt.complex64, dt.complex64),
        (dt.float16, dt.complex64, dt.complex64),
    ],
)  # fmt: skip
def test_promotion_of_complex_dtypes(a: dt.DType, b: dt.DType, want: dt.DType) -> None:
    assert dt.result_type(a, b) is dt.result_type(b, a) is want
    x, y = dt.ones(2, dtype=a), dt.ones(2, dtype=b)
    for found in (x + y, x * y, y - x if dt.bool not in (a, b) else x + y, dt.where(x == y, x, y)):
        assert found.dtype is want


def test_complex_numbers_are_weakly_typed() -> None:
    assert (dt.ones(2) * 1j).dtype is dt.complex64
    assert (1j * dt.ones(2, dtype=dt.float64)).dtype is dt.complex128
    assert (dt.ones(2, dtype=dt.int8) + 1j).dtype is dt.complex64
    assert (dt.ones(2, dtype=dt.complex64) / 2.5).dtype is dt.complex64
    assert dt.result_type(dt.float64, 1j) is dt.complex128
    assert dt.result_type(dt.int32, 1j) is dt.complex64


def test_casts_to_and_from_complex(device: dt.Device) -> None:
    z = dt.asarray([1 + 2j, 0j, complex(0, float("nan"))])
    assert z.astype(dt.complex128).dtype is dt.complex128
    assert z.astype(dt.bool).tolist() == [True, False, True]
    assert dt.asarray([3, -1]).astype(dt.complex64).tolist() == [3, -1]
    assert dt.asarray([1.5], dtype=dt.float16).astype(dt.complex128).tolist() == [1.5]
    assert dt.can_cast(dt.float32, dt.complex64) and not dt.can_cast(dt.complex64, dt.float64)
    for real in (dt.float64, dt.int32, dt.float16):
        with pytest.raises(dt.DTypeError, match=r"use dt\.real, dt\.imag or dt\.abs"):
            z.astype(real)


# --- creation and display -------------------------------------------------------------------------


def test_creation_of_complex_tensors(device: dt.Device) -> None:
    assert dt.asarray([1 + 2j, 3]).dtype is dt.complex64
    assert dt.asarray(np.array([1 + 2j])).dtype is dt.complex128
    assert dt.asarray([1, 2], dtype=dt.complex128).tolist() == [1, 2]
    assert dt.full(2, 1 - 1j).dtype is dt.complex64 and dt.full(2, 1 - 1j).tolist() == [1 - 1j] * 2
    assert dt.full(2, 3, dtype=complex).tolist() == [3, 3]
    assert dt.zeros(2, dtype=dt.complex128).tolist() == [0, 0]
    assert dt.ones_like(dt.zeros(2, dtype=dt.complex64)).tolist() == [1, 1]
    assert dt.full_like(dt.zeros(2, dtype=dt.complex64), 2j).tolist() == [2j, 2j]
    assert dt.eye(2, dtype=dt.complex64).tolist() == [[1, 0], [0, 1]]
    assert dt.linspace(0, 1 + 2j, 3).tolist() == [0, 0.5 + 1j, 1 + 2j]
    assert dt.linspace(0, 1, 3, dtype=dt.complex128).dtype is dt.complex128


def test_item_tolist_and_repr_of_complex_tensors(device: dt.Device) -> None:
    z = dt.asarray([1 - 2j])
    assert z.item() == complex(z[0]) == 1 - 2j and z.tolist() == [1 - 2j]
    assert z.numpy().dtype == np.complex64
    assert repr(z) == f'tensor([1.-2.j], dtype=complex64, device="{device}")'
    for number in (float, int):
        with pytest.raises(dt.DTypeError, match="expected a real number"):
            number(z)
    assert bool(z) and not bool(dt.zeros((), dtype=dt.complex64))


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_dlpack_and_torch_exchange_complex_tensors(device: dt.Device, kind: str) -> None:
    a = random_complex((3, 4), kind)
    z = dt.asarray(a)
    assert np.array_equal(np.asarray(z), a) and np.array_equal(np.from_dlpack(z.copy()), a)
    assert np.array_equal(dt.from_dlpack(a.copy()).numpy(), a)
    for again in (pickle.loads(pickle.dumps(z)), copy.deepcopy(z), z.copy()):
        assert np.array_equal(again.numpy(), a) and again.dtype is z.dtype
    assert np.array_equal((z + np.float32(1)).numpy(), a + np.float32(1))
    assert np.array_equal((z + a).numpy(), a + a)


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_real_imag_conj_angle_and_abs_equal_numpy(device: dt.Device, kind: str) -> None:
    a = random_complex((5, 7), kind)
    z = dt.asarray(a)
    for name in ("real", "imag", "conj", "angle", "abs"):
        want = getattr(np, name)(a)
        assert np.allclose(getattr(dt, name)(z).numpy(), want, rtol=1e-6)
        assert getattr(dt, name)(z).numpy().dtype == want.dtype
    assert np.array_equal(z.real.numpy(), a.real) and np.array_equal(z.imag.numpy(), a.imag)
    assert np.array_equal(z.conj().numpy(), a.conj())
    x = dt.asarray([1.5, -2.0])
    assert x.real.tolist() == x.conj().tolist() == [1.5, -2] and x.imag.tolist() == [0, 0]
    assert np.allclose(dt.angle(x).numpy(), [0, np.pi])


@pytest.mark.parametrize("kind", KINDS)
def test_round_rounds_each_part_half_to_even(device: dt.Device, kind: str) -> None:
    x = np.array([0.5 + 1.5j, -0.4 - 0.6j, complex(np.inf, 2.5), complex(-3.5, np.nan)], kind)
    rounded = dt.round(dt.asarray(x))
    assert rounded.numpy().tobytes() == np.round(x).tobytes()
    np.testing.assert_allclose(dt.round(dt.asarray(x[:2] * 1.11), decimals=1).numpy(),
                               np.round(x[:2] * 1.11, 1), rtol=1e-6)  # fmt: skip


def test_isnan_isinf_and_isfinite_of_complex_values(device: dt.Device) -> None:
    inf, nan = float("inf"), float("nan")
    z = dt.asarray([1j, complex(nan, 1), complex(nan, -inf), complex(1, inf)])
    assert dt.isnan(z).tolist() == [False, True, True, False]
    assert dt.isinf(z).tolist() == [False, False, True, True]
    assert dt.isfinite(z).tolist() == [True, False, False, False]


# --- data movement, selection, writes -------------------------------------------------------------

Both = Callable[[Any, Any], Any]
MOVES: dict[str, Both] = {  # of NumPy's arrays and of tensors
    "transposed": lambda f, x: x.T,
    "sliced": lambda f, x: x[::-2, 1:5],
    "indexed": lambda f, x: x[[3, 0, 3]],
    "masked": lambda f, x: x[abs(x) > 1],
    "joined": lambda f, x: f.concat([x, x[:2]], axis=0),
    "stacked": lambda f, x: f.stack([x, x]),
    "rolled": lambda f, x: f.roll(x, 2, axis=1),
    "flipped": lambda f, x: f.flip(x, axis=0),
    "repeated": lambda f, x: f.repeat(x, 2, axis=0),
    "tiled": lambda f, x: f.tile(x, (2, 1)),
    "chosen": lambda f, x: f.where(abs(x) > 1, x, 1j),
    "lower": lambda f, x: f.tril(x),
    "equal": lambda f, x: x == x[0],
    "compared": lambda f, x: x != 1j,
    "nonzero": lambda f, x: f.nonzero(x * (abs(x) > 1))[0],
    "summed": lambda f, x: f.sum(x, axis=1),
    "multiplied": lambda f, x: f.prod(x, axis=0),
    "averaged": lambda f, x: f.mean(x),
    "variance": lambda f, x: f.var(x, axis=0),
    "deviation": lambda f, x: f.std(x),
    "counted": lambda f, x: f.count_nonzero(x, axis=0),
    "any": lambda f, x: f.any(x * 0, axis=0),
    "running sum": lambda f, x: f.cumulative_sum(x, axis=1),
    "running product": lambda f, x: f.cumulative_prod(x, axis=0),
    "difference": lambda f, x: f.diff(x, axis=1),
    "product": lambda f, x: x @ x.T,
    "outer": lambda f, x: f.multiply.outer(x[0], x[1]) if f is np else f.outer(x[0], x[1]),
    "vecdot": lambda f, x: f.vecdot(x, x[::-1]),
    "vdot": lambda f, x: f.vdot(x[0], x[1]),
    "correlation": lambda f, x: f.correlate(x[0], x[1, :3], mode="full"),
    "convolution": lambda f, x: f.convolve(x[0], x[1, :3]),
    "mean beside NaN": lambda f, x: f.nanmean(x, axis=0),
    "tensordot": lambda f, x: f.tensordot(x, x, axes=([0], [0])),
    "close": lambda f, x: f.isclose(x, x + 1e-12),
    "members": lambda f, x: f.isin(x, x[::2]),
    "unique": lambda f, x: f.unique(f.concat([x, x])),
    "covariance": lambda f, x: f.cov(x).astype(x.dtype),
    "weighted covariance": lambda f, x: f.cov(x, aweights=np.arange(1, 8)).astype(x.dtype),
    "coefficients of correlation": lambda f, x: f.corrcoef(x, rowvar=False).astype(x.dtype),
    "weighted mean": lambda f, x: f.average(x, axis=0, weights=np.arange(1.0, 7)),
    "area": lambda f, x: f.trapezoid(x, np.arange(7.0) ** 2),
    "slopes": lambda f, x: f.gradient(x, np.arange(7.0) ** 2, axis=1, edge_order=2),
    "between": lambda f, x: f.interp(x.real[0], np.arange(7.0) - 3, x[1]),
    "polynomial": lambda f, x: f.polyval(x[0, :3], x),
    "neighbours": lambda f, x: f.ediff1d(x),
    "expression": lambda f, x: (x * 2j + 1) * (x - 0.5) / (x + 3),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MOVES)
def test_functions_of_complex_tensors_equal_numpy(device: dt.Device, name: str, kind: str) -> None:
    a = random_complex((6, 7), kind)
    want, found = MOVES[name](np, a), MOVES[name](dt, dt.asarray(a))
    tolerance = 1e-5 if kind == "c8" else 1e-13
    assert found.shape == want.shape
    assert np.allclose(found.numpy(), want, rtol=tolerance, atol=tolerance)
    if want.dtype.kind == "c":
        assert found.numpy().dtype == want.dtype


BESIDE_NAN: dict[str, Both] = {
    "sum": lambda f, x: f.nansum(x, axis=1),
    "product": lambda f, x: f.nanprod(x, axis=1),
    "mean": lambda f, x: f.nanmean(x, axis=0),
    "variance": lambda f, x: f.nanvar(x, axis=0),
    "deviation": lambda f, x: f.nanstd(x),
    "running sum": lambda f, x: f.nancumsum(x, axis=0),
    "running product": lambda f, x: f.nancumprod(x, axis=0),
    "replaced": lambda f, x: f.nan_to_num(x, nan=3.0, posinf=9.0),
    "unique": lambda f, x: f.unique(x),
    "members": lambda f, x: f.isin(x, x),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BESIDE_NAN)
def test_nan_functions_of_complex_tensors_equal_numpy(
    device: dt.Device, name: str, kind: str
) -> None:
    a = random_complex((6, 7), kind)
    a[1, 2], a[0, 0], a[3, 3] = np.nan, complex(1, np.nan), complex(np.nan, 2)
    if name == "replaced":
        a[5, 5] = complex(np.inf, -np.inf)
    want, found = BESIDE_NAN[name](np, a), BESIDE_NAN[name](dt, dt.asarray(a))
    tolerance = 1e-5 if kind == "c8" else 1e-13
    assert (found.shape, found.numpy().dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(found.numpy(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: dt.cov(x),
        lambda x: dt.average(x, axis=0, weights=[1.0, 2.0, 3.0]),
        lambda x: dt.trapezoid(x, [0.0, 1.0, 4.0, 9.0]),
        lambda x: dt.gradient(x, axis=1),
        lambda x: dt.interp(
            dt.asarray([0.5, 2.2], dtype="float64", device="reference"), [0.0, 1.0, 2.0, 3.0], x[0]
        ),
        lambda x: dt.nanvar(x, axis=0),
        lambda x: dt.nansum(dt.where(dt.abs(x) > 1, dt.nan, x), axis=0),
        lambda x: dt.nan_to_num(x * x),
        lambda x: dt.round(x) * x,
    ],
)
def test_gradients_of_complex_functions(f: Callable[[dt.Tensor], dt.Tensor]) -> None:
    x = dt.asarray(random_complex((3, 4)), device="reference").requires_grad_()
    assert dt.autograd.gradcheck(f, (x,))


@pytest.mark.parametrize("kind", KINDS)
def test_writes_to_complex_tensors_equal_numpy(device: dt.Device, kind: str) -> None:
    a = random_complex((4, 5), kind)
    z = dt.asarray(a)
    z[1] = 2 - 1j
    z[:, 2] = dt.ones(4)
    z[0, 0] = 5
    z[[2, 3], 4] += 1j
    a[1], a[:, 2], a[0, 0] = 2 - 1j, 1, 5
    a[[2, 3], 4] += 1j
    assert np.array_equal(z.numpy(), a)
    z *= 2j
    z.add_(dt.ones(5))
    assert np.allclose(z.numpy(), a * 2j + 1, rtol=1e-6)
    x = dt.ones(3)
    for write in (lambda: x.__setitem__(0, 1j), lambda: x.add_(1j)):
        with pytest.raises(dt.DTypeError, match="does not fit"):
            write()
    assert x.tolist() == [1, 1, 1]


def test_long_complex_sums_are_split_into_chunks(device: dt.Device) -> None:
    a = random_complex((200_000,), "c8")
    z = dt.asarray(a)
    assert abs(z.sum().item() - a.astype("c16").sum()) < 1e-3
    assert abs(dt.vecdot(z, z).item() - np.vdot(a, a)) < 1


def test_ordering_of_complex_tensors_raises() -> None:
    z = dt.asarray([1j, 2], device="reference")
    for f in (dt.max, dt.argmin, dt.sort, dt.floor, lambda x: x < 1, lambda x: dt.maximum(x, 0)):
        with pytest.raises(dt.DTypeError, match="got complex64"):
            f(z)  # type: ignore[operator]  # they are functions of a tensor


def test_captured_functions_accept_complex_tensors(device: dt.Device) -> None:
    @dt.jit
    def f(z: dt.Tensor, s: float) -> dt.Tensor:
        return dt.exp(z * 1j) * s + z.conj()

    a = random_complex((30,), "c8")
    for s in (2.0, 3.0, 4.0):
        assert np.allclose(f(dt.asarray(a), s).numpy(), np.exp(a * 1j) * s + a.conj(), rtol=1e-4)


@pytest.mark.parametrize("d", [dt.complex64, dt.complex128], ids=lambda d: d.name)
def test_complex_products_have_a_fixed_order(device: dt.Device, d: dt.DType) -> None:
    a, b = random_complex((9, 33)).astype(str(d.__numpy_dtype__)), random_complex((33, 5), seed=1)
    with dt.vendor_products(False):
        found = (dt.asarray(a) @ dt.asarray(b, dtype=d)).numpy()
    assert np.allclose(found, a @ b, rtol=1e-4)


@pytest.mark.parametrize("d", [dt.complex64, dt.complex128], ids=lambda d: d.name)
def test_random_normal_complex_numbers(device: dt.Device, d: dt.DType) -> None:
    z = dt.random.default_rng(7).normal((100, 200), dtype=d, mean=1 - 2j, std=3.0)
    a = z.numpy() - (1 - 2j)
    assert z.dtype is d and abs(a.mean()) < 0.1
    assert abs((abs(a) ** 2).mean() - 9) < 0.3 and abs((a.real * a.imag).mean()) < 0.1
    again = dt.random.default_rng(7).normal((100, 200), dtype=d, mean=1 - 2j, std=3.0)
    assert np.array_equal(again.numpy(), z.numpy())


def test_unique_of_complex_tensors_equals_numpy(device: dt.Device) -> None:
    a = np.array([1 + 1j, 2, 1 + 1j, 1 - 1j, -0.0 + 0j, 0, 2j, 2], "c8")
    z = dt.asarray(a.reshape(2, 4))
    want, first, inverse, counts = np.unique(a, True, True, True)
    found = dt.unique_all(z)
    assert np.array_equal(found.values.numpy(), want) and found.indices.tolist() == first.tolist()
    assert found.inverse_indices.tolist() == inverse.reshape(2, 4).tolist()
    assert found.counts.tolist() == dt.unique_counts(z).counts.tolist() == counts.tolist()
    assert np.array_equal(dt.unique_values(z).numpy(), want)


def test_numpy_functions_accept_complex_tensors(device: dt.Device) -> None:
    a = random_complex((4, 5))
    z = dt.asarray(a)
    for f in (np.real, np.imag, np.conj, np.angle, np.abs, np.exp, np.square, np.isnan, np.sum):
        found = f(z)
        assert isinstance(found, dt.Tensor) and np.allclose(found.numpy(), f(a))
    assert np.allclose(np.angle(z, deg=True).numpy(), np.angle(a, deg=True))
    assert np.allclose((np.array(2j) * z).numpy(), 2j * a)


def test_saved_functions_accept_complex_tensors(device: dt.Device, tmp_path: Any) -> None:
    @dt.jit
    def f(z: dt.Tensor) -> dt.Tensor:
        return dt.exp(z) * 2j + z.sum()

    z = dt.asarray(random_complex((30,)))
    want = f(z)
    dt.save_function(f, tmp_path / "f")
    assert np.array_equal(dt.load_function(tmp_path / "f")(z).numpy(), want.numpy())
