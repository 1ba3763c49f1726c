"""SciPy and PyData/sparse as oracles, conversions, files; reprs."""

from __future__ import annotations

import errno
import importlib.util
import io
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import comparison
import dovetail as dt
import numpy as np
import pytest
import scipy.sparse as ss
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_cases import sparse_cases

PYDATA = importlib.util.find_spec("numba") and importlib.util.find_spec("sparse")
needs_pydata = pytest.mark.skipif(
    not PYDATA, reason="PyData/sparse is not here: pip install sparse"
)


@st.composite
def matrices(draw: Any) -> ss.coo_array:
    n, m = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    k = draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    values = rng.integers(-4, 5, k).astype(draw(st.sampled_from(["f4", "f8", "i4"])))
    return ss.coo_array((values, (rng.integers(0, n, k), rng.integers(0, m, k))), (n, m))


def equal(x: Any, m: Any) -> None:
    want = m.toarray() if hasattr(m, "toarray") else np.asarray(m)
    np.testing.assert_array_equal(x.to_dense().numpy(), want)


@settings(max_examples=25, deadline=None)
@given(matrices(), matrices(), st.integers(0, 1 << 30))
def test_ops_equal_scipy(m: ss.coo_array, other: ss.coo_array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = dt.sparse.from_scipy(m, device="cpu")
    equal(x, m)
    assert x.coalesce().nnz == len(set(zip(*m.coords, strict=True)))
    equal(x.T, m.T)
    equal(x + x.T.mT, m + m)
    right = rng.integers(-3, 4, (m.shape[1], 3)).astype(m.dtype)
    np.testing.assert_array_equal((x @ dt.asarray(right, device="cpu")).numpy(), m @ right)
    equal(x @ x.T, m @ m.T)
    rows, columns = (slice(*sorted(rng.integers(0, n + 1, 2))) for n in m.shape)
    equal(x[rows, columns], m.tocsr()[rows, columns])
    np.testing.assert_array_equal(dt.sum(x, axis=0).to_dense().numpy(), m.sum(0))
    np.testing.assert_array_equal(dt.max(x, axis=1).to_dense().numpy(), m.max(1).toarray().ravel())
    if other.shape == m.shape:
        equal(x * dt.sparse.from_scipy(other, device="cpu"), m * other)


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_scipy_round_trip(form: str) -> None:
    m = ss.random_array((20, 30), density=0.1, format=form, rng=np.random.default_rng(0))
    x = dt.sparse.from_scipy(m)
    back = dt.sparse.to_scipy(x, form)
    assert back.format == form
    np.testing.assert_array_equal(back.toarray(), m.toarray())
    cube = ss.coo_array((np.ones(2), ([0, 1], [1, 1], [2, 0])), (2, 2, 3))
    np.testing.assert_array_equal(dt.sparse.from_scipy(cube).to_dense().numpy(), cube.toarray())
    np.testing.assert_array_equal(
        dt.sparse.to_scipy(dt.sparse.from_scipy(cube)).toarray(), cube.toarray()
    )


@needs_pydata
@pytest.mark.exhaustive  # it compiles for half a minute
def test_ops_equal_pydata_in_many_dimensions() -> None:
    import sparse

    rng = np.random.default_rng(0)
    p = sparse.random((4, 5, 6), density=0.2, random_state=rng)
    q = sparse.random((4, 1, 6), density=0.4, random_state=rng)
    x, y = dt.sparse.from_pydata(p), dt.sparse.from_pydata(q)
    for found, want in (
        (x, p), (x + y, p + q), (x * y, p * q), (x - y, p - q), (x.T if x.ndim == 2 else x, p),
        (dt.permute_dims(x, (2, 0, 1)), p.transpose((2, 0, 1))), (x[1:, ::2], p[1:, ::2]),
        (x[:, 3], p[:, 3]), (dt.sum(x, axis=(0, 2)), p.sum((0, 2))), (dt.max(x, axis=1), p.max(1)),
        (x.reshape(20, 6), p.reshape((20, 6))),
        (dt.concat([x, x], axis=1), sparse.concatenate([p, p], 1)),
        (dt.tensordot(x, y, axes=((0, 2), (0, 2))), sparse.tensordot(p, q, ((0, 2), (0, 2)))),
    ):  # fmt: skip
        np.testing.assert_allclose(found.to_dense().numpy(), want.todense(), rtol=1e-12)
    back = dt.sparse.to_pydata(x)
    assert (back != p).nnz == 0
    with pytest.raises(dt.ArgumentError, match="fill_value"):
        dt.sparse.from_pydata(p + 1)


def test_sparse_files_round_trip(tmp_path: Path) -> None:
    x = dt.sparse_coo_tensor(
        [[0, 1, 0], [2, 0, 2]], [[1.0, 2.0], [3.0, 4.0], [0.5, 0.0]], (2, 3, 2)
    )
    for y in (x, x.coalesce(), x.astype(dt.bfloat16)):
        dt.sparse.save(tmp_path / "x.npz", y)
        z = dt.sparse.load(tmp_path / "x.npz", device="reference")
        assert z.dtype is y.dtype and z.is_coalesced() is y.is_coalesced() and z.nnz == y.nnz
        assert z.to_dense().tolist() == y.to_dense().tolist() and str(z.device) == "reference"
    held = io.BytesIO()
    dt.sparse.save(held, x)
    held.seek(0)
    assert dt.sparse.load(held).to_dense().tolist() == x.to_dense().tolist()
    m = ss.random_array((5, 7), density=0.3, rng=np.random.default_rng(0))
    for form in ("coo", "csr", "csc"):
        ss.save_npz(tmp_path / "m.npz", m.asformat(form))
        np.testing.assert_array_equal(
            dt.sparse.load(tmp_path / "m.npz").to_dense().numpy(), m.toarray()
        )
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(dt.ArgumentError, match="not hold a sparse tensor"):
        dt.sparse.load(tmp_path / "other.npz")
    for call in (lambda: dt.sparse.from_scipy(np.ones(3)), lambda: dt.sparse.to_scipy(x, "lil")):
        with pytest.raises(dt.ArgumentError):
            call()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError("no 9 GiB"), dt.OutOfMemoryError),
        (OSError(errno.EIO, "disk"), OSError),
        (OSError(errno.EINVAL, "seek"), dt.ArgumentError),
    ],
)
def test_only_errors_of_a_files_content_say_that_it_is_damaged(
    error: Exception, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dt.sparse.save(tmp_path / "x.npz", dt.sparse_coo_tensor([[0], [1]], [1.0], (2, 2)))

    def fail(*args: Any, **named: Any) -> Any:
        raise error

    monkeypatch.setattr(np, "load", fail)
    with pytest.raises(expected, match=str(error.args[-1])) as raised:
        dt.sparse.load(tmp_path / "x.npz")
    assert ("damaged" in str(raised.value)) == (expected is dt.ArgumentError)


def test_repr_shows_entries_and_density() -> None:
    x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [1.5, -2.0], (2, 3), device="reference").coalesce()
    assert repr(x) == (
        "sparse_coo_tensor(\n  (0, 2) -> 1.5\n  (1, 0) -> -2\n  shape=(2, 3), nnz=2 (33.3 %), "
        'dtype=float32, device="reference")'
    )
    many = dt.ones((10, 10), device="reference").to_sparse()
    assert "(0, 3) -> 1\n  ...\n  (9, 6) -> 1" in repr(many) and len(repr(many).splitlines()) == 11


def test_spy_draws_the_positions_of_entries() -> None:
    x = dt.eye(1000).to_sparse()
    root = ET.fromstring(dt.sparse.spy(x, cells=50))
    marks = root.findall(".//{*}g/{*}rect")
    assert len(marks) == 50 and all(m.get("x") == m.get("y") for m in marks)
    assert "nnz=1000 (0.1 %)" in root.findtext("{*}title", "")
    assert "<svg" in x._repr_html_() and "&lt;" not in x._repr_html_()
    (ground,) = root.findall("{*}rect")  # the color of the page, light or dark
    assert ground.get("fill") == "none" and ground.get("stroke")
    assert (
        len(ET.fromstring(dt.sparse.spy(dt.zeros((3, 4)).to_sparse())).findall(".//{*}g/{*}rect"))
        == 0
    )
    with pytest.raises(dt.ShapeError):
        dt.sparse.spy(dt.ones(3).to_sparse())


def test_benchmarks_compute_the_results_of_scipy() -> None:
    for case in sparse_cases(shrink=100):
        arrays = case.inputs()
        truth = case.contestants["scipy"](*arrays)()
        found = case.contestants["dovetail"](*arrays)()
        comparison._check(case, "dovetail", found, truth)
        with pytest.raises(ArithmeticError):
            comparison._check(case, "dovetail", np.asarray(found)[..., :0], truth)
