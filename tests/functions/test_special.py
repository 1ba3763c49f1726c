"""Special functions: errors against mpmath, special values against SciPy, gradients, bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import dovetail as dt
import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
import scipy.special
from dovetail.autograd import gradcheck
from places import ROOT

INF, NAN = math.inf, math.nan
mp = mpmath.mp
ROW = r"\| (\w+) \| float(32|64) \| \w+ \| [^|]+ \| ([\d.]+) \|"
LIMITS = {
    (name, bits): float(ulps)
    for name, bits, ulps in re.findall(ROW, (ROOT / "docs" / "accuracy.md").read_text())
}


def ulps(got: float, true: Any, bits: int) -> float:
    digits, lowest = (24, -126) if bits == 32 else (53, -1022)
    if not true:
        return 0.0 if got == 0 else INF
    exponent = max(int(mp.frexp(abs(true))[1]) - 1, lowest)
    return float(abs(mp.mpf(got) - true) / mp.mpf(2) ** (exponent - digits + 1))


def normal_quantile(p: Any) -> Any:
    y = mp.mpf(float(scipy.special.ndtri(float(p))))
    for _ in range(3):
        y -= (mp.erfc(-y / mp.sqrt(2)) / 2 - p) * mp.exp(y * y / 2) * mp.sqrt(2 * mp.pi)
    return y


def error_quantile(x: Any) -> Any:
    y = mp.mpf(float(scipy.special.erfinv(float(x))))
    for _ in range(3):
        y -= (mp.erf(y) - x) * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
    return y


# For each function mpmath's, and its samples: (low, high) evenly, or exponents of ten.
EXACT: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "erfinv": (error_quantile, [(-0.9999, 0.9999), "-30 -1"]),
    "ndtr": (lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, [(-12, 5), (-1, 1)]),
    "ndtri": (normal_quantile, [(0.001, 0.999), "-36 -1"]),
    "logit": (lambda x: mp.log(x / (1 - x)), [(0, 1), (0.49, 0.51), "-36 -1"]),
    "lgamma": (mp.loggamma, [(0, 3), (0.9, 1.1), (1.9, 2.1), (0, 30), "-36 36"]),
    "gamma": (mp.gamma, [(0, 3), (0, 34), "-36 0"]),
    "digamma": (mp.digamma, [(0, 3), (1.4, 1.5), (0, 30), "-36 36"]),
    "i0": (lambda x: mp.besseli(0, x), [(-9, 9), (0, 85)]),
    "i1": (lambda x: mp.besseli(1, x), [(-9, 9), (0, 85), "-36 0"]),
    "sinc": (mp.sincpi, [(-5, 5), (-1000, 1000)]),
    "xlogy": (lambda x, y: x * mp.log(y), [((0, 9), (0, 9))]),
    "beta": (mp.beta, [((0, 9), (0, 9)), ((0, 100), (0, 20)), ((0, 1), "-36 15")]),
    "zeta": (mp.zeta, [((1, 12), (0, 10)), ((1, 1.1), (0.01, 3))]),
}


def sample(where: Any, bits: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if isinstance(where, str):
        low, high = map(float, where.split())
        return (10.0 ** rng.uniform(low, high, 60)).astype(f"f{bits // 8}")
    return rng.uniform(*where, 60).astype(f"f{bits // 8}")


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", EXACT)
def test_errors_are_within_the_documented_bounds(device: dt.Device, name: str, bits: int) -> None:
    exact, places = EXACT[name]
    bound = max(LIMITS[name, str(bits)], 1.0) + 0.01
    with mp.workprec(400):
        for where in places:
            parts = where if isinstance(where[0], (tuple, str)) and len(where) == 2 else (where,)
            parts = (where,) if isinstance(where, str) else parts
            xs = [sample(w, bits, k) for k, w in enumerate(parts)]
            got = getattr(dt, name)(*map(dt.asarray, xs)).numpy()
            for y, *x in zip(got.tolist(), *(a.tolist() for a in xs), strict=True):
                true = exact(*map(mp.mpf, x))
                if abs(true) < 2.0 ** (127 if bits == 32 else 1023):
                    assert ulps(y, true, bits) <= bound, (x, y, true)


NEGATIVE = np.concatenate([-np.linspace(0.1, 5.9, 98), [-20.3, -33.75, -0.001, -1e-20]])


@pytest.mark.parametrize("name", ["gamma", "lgamma", "digamma"])
def test_gamma_functions_of_negative_arguments(device: dt.Device, name: str) -> None:
    exact = {"gamma": mp.gamma, "digamma": mp.digamma, "lgamma": lambda x: mp.log(abs(mp.gamma(x)))}
    for bits in (32, 64):
        xs = NEGATIVE.astype(f"f{bits // 8}")
        for x, y in zip(xs.tolist(), getattr(dt, name)(dt.asarray(xs)).tolist(), strict=True):
            true = exact[name](mp.mpf(x))
            at_zero = 0 if name == "gamma" else 2.0 ** (3 - (23 if bits == 32 else 52))
            assert ulps(y, true, bits) < 5 or abs(y - true) < at_zero, (x, y, true)


EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, -3.5, 30.0, INF, -INF, NAN])
OURS = {  # values that differ from SciPy's
    "gamma": {-INF: NAN, -1.0: NAN, -2.0: NAN},
    "lgamma": {-INF: INF}, "digamma": {-1.0: NAN, -2.0: NAN, -INF: NAN},
    "sinc": {INF: 0.0, -INF: 0.0}, "erfinv": {}, "ndtr": {}, "ndtri": {}, "logit": {},
    "i0": {INF: INF, -INF: INF}, "i1": {INF: INF, -INF: -INF},
}  # fmt: skip
SCIPYS = {"lgamma": scipy.special.gammaln, "digamma": scipy.special.psi, "sinc": np.sinc}


@pytest.mark.parametrize("name", OURS)
def test_special_values_equal_scipy(device: dt.Device, name: str) -> None:
    rule = SCIPYS.get(name) or getattr(scipy.special, name)
    with np.errstate(all="ignore"):
        want = np.array([OURS[name].get(x, float(rule(x))) for x in EDGES])
    for dtype in ("float32", "float64", "float16"):
        got = getattr(dt, name)(dt.asarray(EDGES, dtype=dtype)).numpy().astype("f8")
        top = {"float16": 65504.0, "float32": 3.4e38, "float64": 1.7e308}[dtype]
        clipped = np.where(np.abs(want) > top, np.copysign(INF, want), want)
        close = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-14}[dtype]
        np.testing.assert_allclose(got, clipped, rtol=close, atol=close / 4)


@pytest.mark.parametrize("name", ["xlogy", "beta", "zeta"])
def test_special_pairs_equal_scipy(device: dt.Device, name: str) -> None:
    x, y = (a.ravel() for a in np.meshgrid([0.0, 0.5, 1.0, 2.0, 40.0, INF, NAN], EDGES))
    with np.errstate(all="ignore"):
        want = getattr(scipy.special, name)(x, y)
    keep = np.ones(x.size, bool)
    if name == "beta":  # where gamma's arguments are not positive, ours is NaN or infinite
        keep = ~((x <= 0) | (y <= 0) | np.isinf(x) | np.isinf(y))
    if name == "zeta":  # below 0 ours is NaN
        keep = (y > 0) & (x >= 1) & np.isfinite(x) & np.isfinite(y) | np.isnan(x) & (y > 0)
    got = getattr(dt, name)(dt.asarray(x), dt.asarray(y)).numpy()
    np.testing.assert_allclose(got[keep], want[keep], rtol=1e-13)


@pytest.mark.parametrize("d", [dt.float32, dt.float64], ids=str)
def test_zeta_of_a_large_second_operand_does_not_underflow(device: dt.Device, d: dt.DType) -> None:
    """q**-x underflows long before the sum, which is q**(1 - x) / (x - 1) there."""
    largest = float(dt.finfo(d).max)
    q = dt.asarray([1e18, 1e20, 1e30, largest], dtype=d)
    for x in (1.5, 2.0):
        want = q.numpy().astype(np.float64) ** (1.0 - x) / (x - 1.0)
        least = float(dt.finfo(d).smallest_normal)
        np.testing.assert_allclose(dt.zeta(x, q).numpy(), want, rtol=1e-6, atol=least / 1e6)
    np.testing.assert_allclose(dt.polygamma(1, q).numpy(), 1 / q.numpy(), rtol=1e-6)


def test_beta_and_zeta_at_their_ends(device: dt.Device) -> None:
    def pairs(f: Any, *xs: tuple[float, float]) -> list[float]:
        found: list[float] = f(*(dt.asarray(c, dtype="float64") for c in zip(*xs, strict=True)))
        return found.tolist()  # type: ignore[attr-defined]

    found = pairs(dt.beta, (0, 2), (2, 0), (INF, 2), (-1, 2), (NAN, 1), (1e-310, 1), (1e300, 1.0))
    np.testing.assert_allclose(found, [INF, INF, 0, NAN, NAN, INF, 1e-300], rtol=1e-13)
    found = pairs(dt.zeta, (2, -1), (0.5, 1), (1, 3), (2, 0), (INF, 1), (INF, 2), (2, INF))
    np.testing.assert_allclose(found, [NAN, NAN, INF, INF, 1, 0, 0])


def test_factorials_are_exact(device: dt.Device) -> None:
    n = np.arange(1, 23)
    want = [math.factorial(k - 1) for k in n.tolist()]
    assert dt.gamma(dt.asarray(n, dtype="float64")).tolist() == list(map(float, want))
    assert dt.gamma(dt.asarray(n[:13], dtype="float32")).tolist() == np.float32(want[:13]).tolist()
    assert dt.lgamma(dt.asarray([1.0, 2.0])).tolist() == [0, 0]
    assert not dt.sinc(dt.arange(1, 9, dtype="float32")).any()


@pytest.mark.parametrize("n", [0, 1, 2, 5, 30])
def test_polygamma_equals_scipy(device: dt.Device, n: int) -> None:
    x = np.linspace(0.3, 20, 40)
    got = dt.polygamma(n, dt.asarray(x))
    np.testing.assert_allclose(got.numpy(), scipy.special.polygamma(n, x), rtol=1e-13)
    assert dt.polygamma(n, dt.asarray([1, 2])).dtype is dt.float32
    assert dt.polygamma(n, dt.asarray([1.5], dtype="float16")).dtype is dt.float16


def test_expit_equals_sigmoid(device: dt.Device) -> None:
    x = dt.asarray([-2.0, 0.0, 5.0])
    assert dt.expit(x).tolist() == dt.sigmoid(x).tolist()
    out = dt.zeros(3)
    assert dt.expit(x, out=out) is out


def test_gradients_of_special_functions() -> None:
    x = dt.asarray([0.7, -1.3, -2.6], dtype=dt.float64, device="reference").requires_grad_()
    for f in (dt.gamma, dt.lgamma, dt.digamma, dt.i1, dt.sinc, dt.ndtr):
        assert gradcheck(f, x)
    y = dt.asarray([0.7, 1.3], dtype=dt.float64, device="reference").requires_grad_()
    assert gradcheck(lambda t: dt.polygamma(2, t), y)
    zero = dt.asarray([0.0], dtype=dt.float64, device="reference").requires_grad_()
    assert gradcheck(dt.sinc, zero) and gradcheck(dt.i1, zero)
    (g,) = dt.grad(dt.xlogy(zero, zero.detach()).sum(), [zero])
    assert g.tolist() == [0.0]


def _slopes(function: Any, at: list[float], d: dt.DType) -> list[float]:
    x = dt.asarray(at, dtype=d).requires_grad_()
    function(x).sum().backward()
    found: list[float] = x.grad.tolist()
    return found


@pytest.mark.parametrize("d", [dt.float32, dt.float64])
def test_slope_of_digamma_near_and_at_poles(d: dt.DType) -> None:
    at = [-1.0078125, -0.99609375, -2.015625, -3.015625, -77.5078125]
    exact = [float(mp.psi(1, mp.mpf(v))) for v in at]
    assert _slopes(dt.digamma, at, d) == pytest.approx(exact, rel=8 * float(dt.finfo(d).eps))
    assert _slopes(dt.digamma, [0.0, -1.0, -3.0], d) == [math.inf] * 3


@pytest.mark.parametrize("d", [dt.float32, dt.float64])
def test_slope_of_sinc_at_large_arguments(d: dt.DType) -> None:
    at = [4001.25, -77.375, 100000.25, -12345.0]
    exact = [float((mp.cospi(v) - mp.sinpi(v) / (mp.pi * v)) / v) for v in at]
    assert _slopes(dt.sinc, at, d) == pytest.approx(exact, rel=8 * float(dt.finfo(d).eps))


def test_wrong_orders_raise() -> None:
    x = dt.ones(2, device="reference")
    for n in (-1, 31):
        with pytest.raises(dt.ArgumentError, match="polygamma: n"):
            dt.polygamma(n, x)
    with pytest.raises(dt.ArgumentTypeError, match="polygamma: n"):
        dt.polygamma(1.5, x)
    with pytest.raises(dt.DTypeError, match="expit"):
        dt.expit("a")


def test_slopes_of_xlogy_at_zero_equal_torch(device: dt.Device) -> None:
    x, y = (dt.asarray(v).requires_grad_() for v in ([0.0, 0.0], [0.0, -1.0]))
    by_x, by_y = dt.autograd.grad(dt.xlogy(x, y).sum(), [x, y])
    assert by_x.tolist() == [0, 0]
    assert np.isnan(by_y[0].item()) and by_y[1].item() == 0
