"""Complex functions against NumPy in extended precision and annex G of C99."""

from __future__ import annotations

import itertools
import math
from typing import Any

import dovetail as dt
import numpy as np
import pytest

Host = np.ndarray[Any, Any]
INF, NAN = math.inf, math.nan
COMPLEX = (dt.complex64, dt.complex128)
NUMPYS = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh",
}  # fmt: skip
# The largest error measured against the result as a whole, in units of eps, rounded up.
BOUNDS = {
    "exp": 1.5, "log": 1, "log2": 1.5, "log10": 2, "sqrt": 1.5, "sin": 1.5, "cos": 1.5, "tan": 3,
    "sinh": 1.5, "cosh": 1.5, "tanh": 3, "asin": 2, "acos": 2, "atan": 2, "asinh": 2, "acosh": 2,
    "atanh": 2, "abs": 1.1, "angle": 1, "square": 1.5, "expm1": 2, "log1p": 1.5,
}  # fmt: skip


def host(d: dt.DType) -> np.dtype[Any]:
    assert d.__numpy_dtype__ is not None
    return np.dtype(d.__numpy_dtype__)


def wanted(name: str, z: Host) -> Host:
    """Return the result in extended precision."""
    w = z.astype(np.clongdouble)
    with np.errstate(all="ignore"):
        if name == "expm1":
            s = np.sin(w.imag / 2)
            return np.asarray(
                np.expm1(w.real) * np.cos(w.imag) - 2 * s * s
                + 1j * np.exp(w.real) * np.sin(w.imag)
            )  # fmt: skip
        if name == "log1p":
            size = 0.5 * np.log1p(w.real * (2 + w.real) + w.imag**2)
            return np.asarray(size + 1j * np.arctan2(w.imag, 1 + w.real))
        return np.asarray(getattr(np, NUMPYS.get(name, name))(w))


def samples(d: dt.DType) -> Host:
    """Return numbers of many sizes, on and next to the unit circle, and next to 1."""
    rng, n = np.random.default_rng(1), 3000
    parts = rng.normal(size=(2, n)) * 2.0 ** rng.integers(-25, 6, (2, n))
    circle = np.exp(1j * rng.uniform(-np.pi, np.pi, n)) * (1 + rng.normal(size=n) * 1e-3)
    small = rng.normal(size=(2, n)) * 10.0 ** rng.integers(-8, 0, (2, n))
    return np.concatenate([parts[0] + 1j * parts[1], circle, small[0] + 1j * small[1]]).astype(
        host(d)
    )


@pytest.mark.parametrize("d", COMPLEX, ids=lambda d: d.name)
@pytest.mark.parametrize("name", BOUNDS)
def test_errors_are_small_relative_to_the_result(device: dt.Device, name: str, d: dt.DType) -> None:
    z = samples(d)
    got, want = getattr(dt, name)(dt.asarray(z)).numpy(), wanted(name, z)
    fine = np.abs(want) > 1e-30
    error = np.abs(got.astype(want.dtype) - want)[fine] / np.abs(want)[fine]
    if name == "log1p":  # the expected value itself loses digits if 1 + z is small
        error = error[np.abs(1 + z[fine]) > 0.5]
    assert got.dtype == (host(d) if want.dtype.kind == "c" else host(d.part))
    assert error.max() < BOUNDS[name] * float(dt.finfo(d).eps)


@pytest.mark.parametrize("d", COMPLEX, ids=lambda d: d.name)
def test_abs_is_accurate_at_every_exponent(device: dt.Device, d: dt.DType) -> None:
    part = np.dtype(host(d.part))
    limits = np.finfo(part)
    least, most = limits.minexp - limits.nmant, limits.maxexp - 1
    sizes = np.arange(least, most).repeat(6).astype(part)
    others = np.clip(sizes - np.tile([0, 1, 11, 25, 60, 300], most - least), least, most)
    rng = np.random.default_rng(2)
    a, b = (rng.uniform(1, 1.4, sizes.shape) * np.exp2(e.astype("f8")) for e in (sizes, others))
    z = np.concatenate([a + 1j * b, -b + 1j * a]).astype(host(d))
    got, want = dt.abs(dt.asarray(z)).numpy(), np.abs(z.astype(np.clongdouble))
    unit = np.maximum(want * float(limits.eps), float(limits.smallest_subnormal))
    assert got.dtype == part
    assert np.all(np.isfinite(got))
    assert np.max(np.abs(got.astype(want.dtype) - want) / unit) < 1.1


# of annex G, with the signs that it specifies
SPECIAL: dict[str, list[tuple[complex, complex]]] = {
    "acos": [
        (complex(0, 0), complex(math.pi / 2, -0.0)), (complex(0, NAN), complex(math.pi / 2, NAN)),
        (complex(2, INF), complex(math.pi / 2, -INF)), (complex(2, NAN), complex(NAN, NAN)),
        (complex(-INF, 1), complex(math.pi, -INF)), (complex(INF, 1), complex(0, -INF)),
        (complex(-INF, INF), complex(3 * math.pi / 4, -INF)),
        (complex(INF, INF), complex(math.pi / 4, -INF)), (complex(NAN, 1), complex(NAN, NAN)),
        (complex(NAN, INF), complex(NAN, -INF)),
    ],
    "acosh": [
        (complex(0, 0), complex(0, math.pi / 2)), (complex(2, INF), complex(INF, math.pi / 2)),
        (complex(-INF, 1), complex(INF, math.pi)), (complex(INF, 1), complex(INF, 0)),
        (complex(-INF, INF), complex(INF, 3 * math.pi / 4)), (complex(INF, NAN), complex(INF, NAN)),
        (complex(INF, INF), complex(INF, math.pi / 4)), (complex(NAN, INF), complex(INF, NAN)),
        (complex(NAN, 1), complex(NAN, NAN)),
    ],
    "asinh": [
        (complex(0, 0), complex(0, 0)), (complex(2, INF), complex(INF, math.pi / 2)),
        (complex(2, NAN), complex(NAN, NAN)), (complex(INF, 1), complex(INF, 0)),
        (complex(INF, INF), complex(INF, math.pi / 4)), (complex(INF, NAN), complex(INF, NAN)),
        (complex(NAN, 0), complex(NAN, 0)), (complex(NAN, 1), complex(NAN, NAN)),
    ],
    "atanh": [
        (complex(0, 0), complex(0, 0)), (complex(0, NAN), complex(0, NAN)),
        (complex(1, 0), complex(INF, 0)), (complex(2, INF), complex(0, math.pi / 2)),
        (complex(2, NAN), complex(NAN, NAN)), (complex(INF, 1), complex(0, math.pi / 2)),
        (complex(INF, INF), complex(0, math.pi / 2)), (complex(INF, NAN), complex(0, NAN)),
        (complex(NAN, 1), complex(NAN, NAN)), (complex(NAN, INF), complex(0, math.pi / 2)),
    ],
    "cosh": [
        (complex(0, 0), complex(1, 0)), (complex(2, INF), complex(NAN, NAN)),
        (complex(2, NAN), complex(NAN, NAN)), (complex(INF, 0), complex(INF, 0)),
        (complex(INF, 2), complex(-INF, INF)), (complex(INF, NAN), complex(INF, NAN)),
        (complex(NAN, 1), complex(NAN, NAN)), (complex(NAN, 0), complex(NAN, 0)),
        (complex(1000, 1e-30), complex(INF, INF)),
    ],
    "sinh": [
        (complex(0, 0), complex(0, 0)), (complex(0, INF), complex(0, NAN)),
        (complex(2, INF), complex(NAN, NAN)), (complex(INF, 0), complex(INF, 0)),
        (complex(INF, 2), complex(-INF, INF)), (complex(NAN, 0), complex(NAN, 0)),
        (complex(NAN, 1), complex(NAN, NAN)), (complex(-0.0, 0), complex(-0.0, 0)),
    ],
    "tanh": [
        (complex(0, 0), complex(0, 0)), (complex(0, INF), complex(0, NAN)),
        (complex(2, INF), complex(NAN, NAN)), (complex(2, NAN), complex(NAN, NAN)),
        (complex(60, INF), complex(NAN, NAN)), (complex(INF, 2), complex(1, 0)),
        (complex(INF, NAN), complex(1, 0)), (complex(NAN, 0), complex(NAN, 0)),
        (complex(NAN, 1), complex(NAN, NAN)), (complex(1000, 1), complex(1, 0)),
    ],
    "exp": [
        (complex(0, 0), complex(1, 0)), (complex(2, INF), complex(NAN, NAN)),
        (complex(INF, 0), complex(INF, 0)), (complex(-INF, 2), complex(-0.0, 0)),
        (complex(INF, 2), complex(-INF, INF)), (complex(-INF, INF), complex(0, 0)),
        (complex(INF, NAN), complex(INF, NAN)), (complex(NAN, 0), complex(NAN, 0)),
        (complex(NAN, 1), complex(NAN, NAN)),
    ],
    "log": [
        (complex(-0.0, 0), complex(-INF, math.pi)), (complex(0, 0), complex(-INF, 0)),
        (complex(2, INF), complex(INF, math.pi / 2)), (complex(2, NAN), complex(NAN, NAN)),
        (complex(-INF, 1), complex(INF, math.pi)), (complex(INF, 1), complex(INF, 0)),
        (complex(-INF, INF), complex(INF, 3 * math.pi / 4)),
        (complex(INF, NAN), complex(INF, NAN)), (complex(NAN, INF), complex(INF, NAN)),
    ],
    "sqrt": [
        (complex(-0.0, 0), complex(0, 0)), (complex(2, INF), complex(INF, INF)),
        (complex(NAN, INF), complex(INF, INF)), (complex(2, NAN), complex(NAN, NAN)),
        (complex(-INF, 1), complex(0, INF)), (complex(INF, 1), complex(INF, 0)),
        (complex(-INF, NAN), complex(NAN, INF)), (complex(INF, NAN), complex(INF, NAN)),
        (complex(NAN, 1), complex(NAN, NAN)), (complex(-4, -0.0), complex(0, -2)),
    ],
    "expm1": [
        (complex(0, 0), complex(0, 0)), (complex(-INF, 2), complex(-1, 0)),
        (complex(INF, 0), complex(INF, 0)), (complex(-INF, NAN), complex(-1, 0)),
    ],
    "log1p": [
        (complex(-1, 0), complex(-INF, 0)), (complex(0, 0), complex(0, 0)),
        (complex(2, INF), complex(INF, math.pi / 2)), (complex(NAN, INF), complex(INF, NAN)),
    ],
}  # fmt: skip
SIGN_IS_OPEN = [
    ("tanh", complex(INF, NAN)), ("exp", complex(-INF, INF)), ("cosh", complex(NAN, 0)),
    ("expm1", complex(-INF, NAN)), ("sqrt", complex(-INF, NAN)),
]  # fmt: skip


def alike(got: float, want: float) -> bool:
    """Return True if results are equal including signs, except for rounding."""
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) == math.isnan(got)
    same = got == want or abs(got - want) < 1e-6 * abs(want)
    return same and math.copysign(1, got) == math.copysign(1, want)


CASES = [(name, z, w) for name, rows in SPECIAL.items() for z, w in rows]


@pytest.mark.parametrize("d", COMPLEX, ids=lambda d: d.name)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values_equal_annex_g(device: dt.Device, name: str, d: dt.DType) -> None:
    rows = SPECIAL[name]
    given = np.array([z for z, _ in rows], host(d))
    found = getattr(dt, name)(dt.asarray(given)).tolist()
    mirrored = getattr(dt, name)(dt.asarray(given.conj())).tolist()
    for (z, want), got, other in zip(rows, found, mirrored, strict=True):
        if str((name, z)) in map(str, SIGN_IS_OPEN):
            got, want, other = (complex(v.real, abs(v.imag)) for v in (got, want, other))
            other = other.conjugate()
        assert alike(got.real, want.real) and alike(got.imag, want.imag), (name, z, got)
        assert alike(other.real, want.real), (name, z, other)
        assert math.isnan(want.imag) or alike(other.imag, -want.imag), (name, z, other)


@pytest.mark.parametrize("d", COMPLEX, ids=lambda d: d.name)
def test_quotients_do_not_overflow_unnecessarily(device: dt.Device, d: dt.DType) -> None:
    limits = dt.finfo(d)
    big, tiny = float(limits.max), float(limits.smallest_normal)
    parts = [0.0, 1.0, -2.0, 0.5, big, big / 4, tiny, tiny * 4, 1e-30, -1e30]
    every = [complex(a, b) for a, b in itertools.product(parts, parts)]
    x = np.repeat(np.array(every, host(d)), len(every))
    y = np.tile(np.array(every, host(d)), len(every))
    with np.errstate(all="ignore"):
        exact = x.astype(np.clongdouble) / y.astype(np.clongdouble)
        want = exact.astype(host(d))
    got = (dt.asarray(x) / dt.asarray(y)).numpy()
    fine = np.isfinite(want) & (y != 0)
    error = np.abs(got[fine].astype(np.clongdouble) - exact[fine])
    bound = 3 * float(limits.eps) * np.abs(exact)[fine] + 2 * tiny * float(limits.eps)
    assert (error <= bound).all() and fine.sum() > 4000


def test_quotients_by_zero_and_infinity(device: dt.Device) -> None:
    z = dt.asarray([1 + 2j, complex(INF, 1), complex(NAN, INF)])
    assert dt.isinf(z / 0j).tolist() == [True, True, True]
    assert (dt.asarray([1 + 2j, -3j]) / complex(INF, NAN)).tolist() == [0, 0]
    assert dt.isinf(z / (1 + 1j)).tolist() == [False, True, True]


def test_real_operand_has_no_imaginary_part(device: dt.Device) -> None:
    z = dt.asarray([complex(INF, 2), complex(1, -0.0)])
    assert str((z * 2.0).tolist()) == "[(inf+4j), (2-0j)]"
    assert str((z + 1).tolist()) == "[(inf+2j), (2-0j)]"
    assert str((z / dt.asarray(2.0)).tolist()) == "[(inf+1j), (0.5-0j)]"
    assert str((1 - z).tolist()) == "[(-inf-2j), 0j]"


def test_powers_are_close_to_numpy(device: dt.Device) -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=(2, 500)) * 3 + 1j * rng.normal(size=(2, 500))).astype("c16")
    got = (dt.asarray(x) ** dt.asarray(y)).numpy()
    want = x.astype(np.clongdouble) ** y.astype(np.clongdouble)
    assert (np.abs(got - want) <= 1e-13 * np.abs(want)).all()
    z = dt.asarray(np.array([0, 2, -1, 3j], "c16"))
    assert (z**0).tolist() == [1, 1, 1, 1] and (z**2).tolist() == [0, 4, 1, -9]
    assert (z ** (1 + 1j))[0].item() == 0
    assert np.allclose((2**z).numpy(), 2 ** z.numpy(), rtol=1e-14)


def test_sign_divides_by_the_absolute_value(device: dt.Device) -> None:
    z = np.array([3 + 4j, 0, 3e38 + 3e38j, 1e-45j, -2, complex(INF, 1)], "c8")
    got = dt.sign(dt.asarray(z)).numpy()
    assert np.allclose(got, [0.6 + 0.8j, 0, (1 + 1j) / np.sqrt(2), 1j, -1, 1], rtol=1e-6)
