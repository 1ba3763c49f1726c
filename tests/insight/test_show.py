"""`dt.show`: the cells that a view accesses, their order, and SVG pictures."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type"
from __future__ import annotations

import random
import re
from pathlib import Path
from xml.etree import ElementTree

import dovetail as dt
import numpy as np
import pytest
from dovetail.insight import show as pictures

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    """Return the texts of a drawing, in order."""
    tree = ElementTree.fromstring(svg)
    return [t.text or "" for t in tree.iter(f"{SVG}text")]


def random_view(rng: random.Random) -> dt.Tensor:
    """Return a random view of a storage that it may access only in part."""
    shape = [rng.randint(1, 4) for _ in range(rng.randint(1, 3))]
    x = dt.arange(int(np.prod(shape))).reshape(shape)
    for _ in range(rng.randint(0, 3)):
        kind = rng.randrange(4)
        d = rng.randrange(x.ndim) if x.ndim else 0
        if kind == 0 and x.ndim:
            x = x.permute_dims(rng.sample(range(x.ndim), x.ndim))
        elif kind == 1 and x.ndim:
            key = [slice(None)] * x.ndim
            key[d] = slice(None, None, rng.choice([-2, -1, 2]))
            x = x[tuple(key)]
        elif kind == 2 and x.ndim < 4:
            x = x[None].expand(rng.randint(1, 3), *x.shape)
        elif x.ndim and x.shape[d] > 1:
            x = x.swapaxes(0, d)[1:]
    return x


def test_visited_cells_equal_numpy() -> None:
    rng = random.Random(7)
    with dt.device("reference"):
        for _ in range(150):
            x = random_view(rng)
            positions = x.numpy().ravel().tolist()  # a value is its own position in `arange`
            v = pictures._view(x, "")
            for cell in range(v.cells):
                times = positions.count(cell)
                want = (times, positions.index(cell)) if times else (0, None)
                assert v.count_visits(cell) == want, (x.shape, x.stride(), cell)
            (line,) = [f for f in v.facts if f.startswith("touches")]
            assert line.startswith(f"touches {len({*positions})} of {v.cells} cell")


def test_overlapping_windows_count_each_visit() -> None:
    with dt.device("reference"):
        x = dt.arange(9).as_strided((4, 3), (2, 1))
        v = pictures._view(x, "")
        positions = [i * 2 + j for i in range(4) for j in range(3)]
        for cell in range(9):
            assert v.count_visits(cell)[0] == positions.count(cell)
        assert "touches 9 of 9 cells" in v.facts[1]


def enumerate_visits(v: pictures.MemoryView) -> dict[int, tuple[int, int]]:
    """Return for each cell of a view how many elements it has, and the first in a walk by rows."""
    visits: dict[int, tuple[int, int]] = {}
    for place, index in enumerate(np.ndindex(*v.shape)):
        count, first = visits.get(v.position(index), (0, place))
        visits[v.position(index)] = count + 1, first
    return visits


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((100, 100), (1, 2)), ((100, 100), (2, 1)), ((70, 80), (1, 1)), ((50, 60), (-3, 2)),
        ((60, 2, 50), (2, 0, -4)), ((40, 1, 45), (6, 5, 9)), ((9, 10, 3, 4), (12, 1, 12, 1)),
        ((5, 6, 7, 8), (1, -2, 3, -1)), ((100,), (-1,)), ((4, 5), (0, 0)), ((3, 0), (1, 1)),
        ((), ()),
    ],
)  # fmt: skip
def test_walk_positions_in_overlapping_views_equal_enumeration(
    shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    spans = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    offset = 2 - sum(s for s in spans if s < 0)
    cells = offset + sum(s for s in spans if s > 0) + 3
    v = pictures.MemoryView("", shape, strides, offset, cells, None, ())
    visits = enumerate_visits(v)
    for cell in range(cells):
        assert v.count_visits(cell) == visits.get(cell, (0, None)), cell
    assert pictures._count_touched(v) == str(len(visits))


def test_walk_positions_of_large_overlapping_views_are_quick_and_true() -> None:
    v = pictures.MemoryView("", (10**9, 10**9), (1, 2), 0, 3 * 10**9, None, ())
    assert v.count_visits(10**9 - 1) == (5 * 10**8, 10**9 + 499_999_999)
    windows = pictures.MemoryView("", (998, 998, 3, 3), (1000, 1, 1000, 1), 0, 10**6, None, ())
    assert windows.count_visits(5005) == (9, ((3 * 998 + 3) * 3 + 2) * 3 + 2)


def test_walk_positions_that_take_too_long_are_shown_as_unknown() -> None:
    with dt.device("reference"):
        x = dt.zeros(15_000).as_strided((5_000, 5_000, 5_000), (-1, 1, -1), 9_998)
        assert pictures._view(x, "").count_visits(9_998) is None
        assert "#?" in texts(dt.show(x).svg())
        assert "?" in str(dt.show(x)).split()


def test_picture_shows_dtype_shape_and_strides(device: dt.Device) -> None:
    x = dt.arange(6).reshape(2, 3)
    picture = dt.show(x, x.T)
    said = texts(picture.svg())
    assert f"int64 (2, 3) on {device}" in said and f"int64 (3, 2) on {device}" in said
    assert "strides (3, 1), offset 0, 8 bytes an element" in said
    assert "strides (1, 3), offset 0, 8 bytes an element" in said
    assert said.count("the same memory as picture 1") == 1
    second = said[said.index(f"int64 (3, 2) on {device}") :]
    assert [t for t in second if t.startswith("#")] == ["#0", "#2", "#4", "#1", "#3", "#5"]
    assert [t for t in second if t.startswith("@")][:6] == ["@0", "@3", "@1", "@4", "@2", "@5"]
    flipped = texts(dt.show(x[:, ::-1]).svg())
    assert "touches 6 of 6 cells, a negative stride walks back" in flipped
    assert [t for t in flipped if t.startswith("#")] == ["#2", "#1", "#0", "#5", "#4", "#3"]
    repeated = texts(dt.show(dt.arange(2).expand(3, 2)).svg())
    assert "touches 2 of 2 cells, stride 0 repeats elements" in repeated
    assert [t for t in repeated if t.startswith("#")] == ["#0 x3", "#1 x3"]
    assert repr(picture) == f"<Picture of int64 (2, 3) on {device}; int64 (3, 2) on {device}>"


def test_pending_values_are_computed_and_nothing_is_changed(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0]).requires_grad_()
    y = x * 2
    assert "4" in texts(dt.show(y).svg())
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2]
    with pytest.raises(dt.CaptureError):
        dt.jit(lambda x: dt.show(x) and x, fullgraph=True)(dt.ones(2))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "bfloat16", "float64", "complex64"])
def test_values_of_every_dtype_are_shown(device: dt.Device, dtype: str) -> None:
    x = dt.asarray([0, 1, 1]).astype(dtype)
    for svg in (dt.show(x).svg(), dt.show(x[::2])._repr_svg_(), dt.show(x[:0]).svg()):
        assert all(len(t) <= 52 for t in texts(svg))
    big = dt.asarray([1e30, -1.25e-30, dt.nan, -dt.inf, 123456789.0])
    assert {"1e+30", "nan", "-inf"} <= {*texts(dt.show(big).svg())}
    assert "9.2e+18" in texts(dt.show(dt.full(1, 2**63 - 1, dtype=dt.int64)).svg())


def test_large_and_empty_tensors_are_abbreviated() -> None:
    with dt.device("reference"):
        x = dt.empty((100, 1000, 100)).fill_(1.0)
        views = (
            x, x.permute_dims((2, 0, 1))[::7], x[50], dt.zeros(()), dt.zeros((0, 3)),
            dt.zeros((1,) * 20), x[:, 3], dt.zeros(1).expand(10**6, 10**6), dt.zeros(10**6)[::-1],
        )  # fmt: skip
        for view in views:
            for picture in (dt.show(view), dt.show(view, view)):
                assert len(picture.svg()) < 120_000 and len(str(picture)) < 8_000
                assert all(len(t) <= 52 for t in texts(picture.svg()))
        assert "... and 97 more of these" in texts(dt.show(x).svg())
        assert "no elements" in texts(dt.show(dt.zeros((0, 3))).svg())


def test_sparse_tensor_shows_its_parts(device: dt.Device) -> None:
    x = dt.asarray([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]).to_sparse()
    said = texts(dt.show(x).svg())
    assert said[0] == f"float32 (2, 3) on {device}, sparse_coo"
    assert [t for t in said if t.startswith("#")] == ["#0", "#1", "#2"]
    assert "indices, axis 0: int64 (3,)" in " ".join(said) and "values: float32" in " ".join(said)
    for other in (dt.zeros((3, 3)), dt.zeros(4), dt.ones((2, 2, 2))):
        sparse = other.to_sparse()
        assert texts(dt.show(sparse, other).svg())[0].endswith("sparse_coo")


def test_picture_is_shown_in_notebooks_and_saved_to_files(tmp_path: Path) -> None:
    with dt.device("reference"):
        x = dt.arange(6).reshape(2, 3)
        picture = dt.show(x, x.T)
        html = picture._repr_html_()
        assert html.count("<svg") == 2 and "flex-wrap:wrap" in html and "<script" not in html
        assert picture.save(tmp_path / "x.svg") == tmp_path / "x.svg"
        ElementTree.fromstring((tmp_path / "x.svg").read_text())
        page = picture.save(str(tmp_path / "x.html")).read_text()
        assert page.startswith("<!doctype html>") and "width=device-width" in page
        with pytest.raises(dt.ArgumentError, match=r"save: .* got 'x\.png'"):
            picture.save(tmp_path / "x.png")
        with pytest.raises(dt.ArgumentTypeError, match="save"):
            picture.save(3)


def test_show_of_a_non_tensor_raises() -> None:
    with pytest.raises(dt.ArgumentError, match="show: expected at least one tensor"):
        dt.show()
    for bad in ([1, 2], np.ones(2), None):
        with pytest.raises(dt.DTypeError, match="show: expected a tensor"):
            dt.show(bad)


def test_long_numbers_stay_in_their_cells() -> None:
    """A small letter is 5.4 pixels wide; the text of a cell fits into it and its neighbor."""
    x = dt.broadcast_to(dt.asarray(1.5, device="reference"), (10_000, 10_000))
    found = re.findall(r'font-size="9"[^>]*>([^<]*)<', dt.show(x).svg())
    assert "#0 x1e8" in found and max(map(len, found)) * 5.4 < pictures.CELL_WIDTH
    row = dt.as_strided(dt.arange(9, device="reference"), (10**6,), (0,))
    assert "#0 x1e6" in dt.show(row).svg() and "@99999" in dt.show(dt.zeros(10**5)).svg()
