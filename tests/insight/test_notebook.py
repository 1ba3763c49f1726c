"""The notebook view of a tensor."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Callable

import dovetail as dt
import numpy as np
import pytest
from dovetail.insight import notebook


def cells(html: str) -> list[list[str]]:
    """Return the cells of the tables in an HTML text, by rows; an ellipsis is kept."""
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [[c.strip() for c in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in rows]


def numbers(text: str) -> list[str]:
    """Return the elements that a text shows, in order."""
    return re.findall(r"-?\d[\d.e+-]*|nan|inf|True|False", text)


def image(html: str) -> np.ndarray | None:
    """Return the pixels of an inline PNG file."""
    found = re.search(r"data:image/png;base64,([^\"]+)", html)
    if found is None:
        return None
    data = base64.b64decode(found[1])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        (check,) = struct.unpack(">I", data[at + 8 + size : at + 12 + size])
        assert check == zlib.crc32(name + body)
        chunks[name], at = body, at + 12 + size
    width, height, bits, kind, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert bits == 8 and rest == [0, 0, 0] and [*chunks][-1] == b"IEND"
    parts = {0: 1, 2: 3}[kind]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert (rows[:, 0] == 1).all()  # each byte is the difference to its left neighbor
    left = rows[:, 1:].reshape(height, width, parts)
    return np.cumsum(left, 1, dtype=np.uint8).squeeze(2) if parts == 1 else np.cumsum(
        left, 1, dtype=np.uint8
    )  # fmt: skip


pytestmark = pytest.mark.usefixtures("device")


def test_view_shows_header_and_values() -> None:
    x = dt.asarray([[1.0, 2.5], [-3.25, 4.0]], requires_grad=True)
    html = x._repr_html_()
    line = re.sub("<[^>]*>", "", html.split("</div>")[0])
    assert line == f"float32 (2, 2) &middot; on {x.device} &middot; strided &middot; requires_grad"
    assert cells(html) == [["1.", "2.5"], ["-3.25", "4."]]
    assert "<details" in html and "<details open" not in html and "memory: strides (2, 1)" in html
    assert "requires_grad" not in dt.zeros(3)._repr_html_()
    assert "strides (1, 2)" in x.T._repr_html_().split("</div>")[0]
    assert "3.5</div>" in dt.asarray(3.5)._repr_html_()
    assert "no elements" in dt.zeros((0, 3))._repr_html_()


@pytest.mark.parametrize(
    "make",
    [
        lambda: dt.arange(7), lambda: dt.arange(1001), lambda: dt.linspace(0, 1, 1000),
        lambda: dt.arange(12).reshape(3, 4).T, lambda: dt.arange(3000).reshape(3, 1000) * 0.5,
        lambda: dt.arange(7 * 6 * 40).reshape(7, 6, 40), lambda: dt.arange(24).reshape(2, 3, 2, 2),
        lambda: dt.asarray([float("nan"), float("inf"), -1e-20, 1e20]),
        lambda: dt.asarray([True, False]), lambda: dt.ones((2, 2), dtype=dt.bfloat16) / 3,
        lambda: dt.asarray([[1, 2], [3, 4]], dtype=dt.uint8),
    ],
)  # fmt: skip
def test_values_equal_those_of_repr(make: Callable[[], dt.Tensor]) -> None:
    x = make()
    found = [c for row in cells(x._repr_html_()) for c in row if c != "&hellip;"]
    if x.ndim == 1 and x.size <= 1000 and x.size > notebook.VECTOR_ELEMENTS_MAX:
        found = [c for row in cells(x._repr_html_()) for c in row[1:]]
    assert found == numbers(str(x)) and numbers(repr(x))[: len(found)] == found


def test_ellipses_are_at_the_places_of_repr() -> None:
    rows = cells(dt.arange(10_000).reshape(100, 100)._repr_html_())
    assert rows[0] == ["0", "1", "2", "&hellip;", "97", "98", "99"]
    assert rows[3] == ["&hellip;"] * 7 and len(rows) == 7 and rows[6][-1] == "9999"


def test_numpy_print_options_apply() -> None:
    x = dt.asarray([[1e-9, 1.0]])
    plain = cells(x._repr_html_())
    with np.printoptions(suppress=True):
        suppressed = cells(x._repr_html_())
    assert plain != suppressed == [["0.", "1."]]


def test_text_is_escaped() -> None:
    with np.printoptions(formatter={"int": lambda v: f"<b>{v}&"}):
        html = dt.asarray([1, 2])._repr_html_()
    assert cells(html) == [["&lt;b&gt;1&amp;", "&lt;b&gt;2&amp;"]]


def test_matrix_of_image_size_is_an_image() -> None:
    grey = np.arange(20 * 16, dtype=np.uint8).reshape(20, 16)
    np.testing.assert_array_equal(image(dt.asarray(grey)._repr_html_()), grey)
    ramp = np.linspace(-2, 3, 400, dtype=np.float32).reshape(20, 20)
    found = image(dt.asarray(ramp)._repr_html_())
    assert found is not None
    np.testing.assert_array_equal(found, np.round((ramp.astype(np.float64) + 2) / 5 * 255))
    assert image((dt.asarray(ramp) > 0)._repr_html_()).max() == 255  # type: ignore[union-attr]
    assert image(dt.zeros((7, 99))._repr_html_()) is None
    assert image(dt.zeros((8, 9))._repr_html_()) is not None  # a digit of scikit-learn is 8 x 8
    assert image(dt.zeros((20, 20), dtype=dt.complex64)._repr_html_()) is None
    assert (image(dt.full((16, 16), 7.0)._repr_html_()) == 0).all()


def test_images_of_one_value_or_only_nan_are_described() -> None:
    one, none = dt.full((16, 16), 7.5), dt.full((16, 16), float("nan"))
    assert "each is 7.5<" in one._repr_html_() and ", white" not in one._repr_html_()
    assert "none is a finite number<" in none._repr_html_() and "black is" not in none._repr_html_()
    some = dt.where(dt.eye(16) > 0, none, one)._repr_html_()
    assert "black is 7.5; red is no finite number<" in some


def test_color_images_show_their_pixels() -> None:
    rng = np.random.default_rng(3)
    bytes_ = rng.integers(0, 256, (17, 19, 3)).astype(np.uint8)
    np.testing.assert_array_equal(image(dt.asarray(bytes_)._repr_html_()), bytes_)
    found = image(dt.asarray(np.full((16, 16, 3), [-1, 0.5, 9], np.float32))._repr_html_())
    assert found is not None and (found == [0, 128, 255]).all()
    assert image(dt.zeros((16, 16, 3), dtype=dt.int32)._repr_html_()) is None
    assert image(dt.zeros((16, 16, 4))._repr_html_()) is None


def test_images_with_channels_first_are_recognized() -> None:
    rng = np.random.default_rng(4)
    bytes_ = rng.integers(0, 256, (3, 17, 19)).astype(np.uint8)
    html = dt.asarray(bytes_)._repr_html_()
    np.testing.assert_array_equal(image(html), bytes_.transpose(1, 2, 0))
    assert "colours, channels first" in html
    parts = rng.random((3, 600, 20), dtype=np.float32)
    html = dt.asarray(parts)._repr_html_()
    wanted = np.round(parts.astype(np.float64).transpose(1, 2, 0)[::2, ::2] * 255)
    np.testing.assert_array_equal(image(html), wanted)
    assert "colours from 0 to 1, channels first; one row and column of 2" in html
    grey = rng.integers(0, 256, (1, 9, 20)).astype(np.uint8)
    np.testing.assert_array_equal(image(dt.asarray(grey)._repr_html_()), grey[0])
    assert image(dt.asarray(parts * 2 - 1)._repr_html_()) is None  # numbers, not colors
    assert image(dt.asarray(np.full((3, 20, 20), np.nan))._repr_html_()) is None
    assert image(dt.asarray(bytes_.astype(np.int32))._repr_html_()) is None
    assert image(dt.zeros((2, 20, 20))._repr_html_()) is None
    assert image(dt.zeros((3, 20, 7))._repr_html_()) is None
    last = image(dt.zeros((3, 20, 3))._repr_html_())
    assert last is None  # 3 x 20 pixels are too few


def test_non_finite_pixels_are_red_and_the_range_is_finite() -> None:
    a = np.zeros((16, 16), np.float64)
    a[0, 0], a[1, 1], a[2, 2], a[3, 3] = np.nan, np.inf, 1.7e308, -1.7e308
    found = image(dt.asarray(a)._repr_html_())
    assert found is not None and found.shape == (16, 16, 3)
    assert found[0, 0].tolist() == found[1, 1].tolist() == [220, 40, 40]
    assert found[2, 2, 0] == 255 and found[3, 3, 0] == 0 and found[5, 5, 0] == 128
    assert image(dt.full((16, 16), float("nan"))._repr_html_()) is not None


def test_large_matrix_is_drawn_in_part() -> None:
    a = np.arange(1100 * 40, dtype=np.float32).reshape(1100, 40)
    html = dt.asarray(a)._repr_html_()
    found = image(html)
    assert found is not None and found.shape == (367, 14) and "one row and column of 3" in html
    assert found[0, 0] == 0 and found[-1, -1] == 255


def test_memory_is_shown_for_few_cells_and_for_views() -> None:
    x = dt.arange(100).reshape(10, 10)
    assert "<details" not in x._repr_html_()
    for view in (x[1:], x.T, x[0]):
        assert "100 cells" in view._repr_html_() and "<svg" in view._repr_html_()
    assert "1 cell<" in dt.ones(1)._repr_html_()


def test_view_computes_nothing_else() -> None:
    x = dt.ones(3)
    y, z = x + 1, x * 2
    y._repr_html_()
    assert y._expr.op is None and z._expr.op is not None


def test_traced_tensor_is_shown_without_values() -> None:
    seen: list[str] = []

    def look(x: dt.Tensor) -> dt.Tensor:
        y = x * 2
        seen.append(y._repr_html_())
        return y

    f = dt.jit(look)
    want = f(dt.ones(3))
    assert "not known while dt.jit captures" in seen[0] and "<table" not in seen[0]
    assert f.captures == 1 and f(dt.ones(3)).tolist() == want.tolist() == [2, 2, 2]
    dt.vmap(look)(dt.ones((4, 3)))
    assert "one of many examples" in seen[1] and "(3,)" in seen[1] and "<table" not in seen[1]
    dt.vmap(lambda x, y: look(y) + x, in_axes=(0, None))(dt.ones((4, 3)), dt.ones(3))
    assert cells(seen[2]) == [["2.", "2.", "2."]]


def test_sparse_tensors_have_their_own_view() -> None:
    x = dt.eye(20).to_sparse()
    html = x._repr_html_()
    assert "sparse_coo" in html and "nse 20, density 5 %" in html and "<svg" in html
    twice = dt.sparse_coo_tensor([[1, 1], [0, 0]], [1.0, 2.0], (2, 2))
    assert "nse 2, density 50 %, not coalesced" in twice._repr_html_()
    vector = dt.asarray([0.0, 2.0]).to_sparse()
    assert "<svg" not in vector._repr_html_() and "nse 1, density 50 %" in vector._repr_html_()


def test_gradient_is_shown_after_backward() -> None:
    w = dt.asarray([1.5, 2.5], requires_grad=True)
    y = (w * w).sum()
    assert "gradient flows through sum" in y._repr_html_()
    assert ">gradient</summary>" not in w._repr_html_()
    y.backward()
    assert ">gradient</summary>" in w._repr_html_() and ["3.", "5."] in cells(w._repr_html_())
