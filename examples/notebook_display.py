"""What a notebook shows of a tensor. Run: python examples/notebook_display.py"""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Sequence
from typing import Any

import dovetail as dt
import numpy as np
from beside import Asked, asked, beside, picture
from matplotlib.image import imsave


def numbers(page: str) -> np.ndarray:
    """The numbers in the cells of a table."""
    cells = (html.unescape(c).strip() for c in re.findall(r"<td[^>]*>([^<]*)</td>", page))
    return np.asarray([float(c) for c in cells if re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", c)])


def by_matplotlib(a: np.ndarray) -> str:
    """What shows a matrix as a picture without us: Matplotlib's PNG in a page."""
    file = io.BytesIO()
    imsave(file, a, format="png", cmap="RdBu_r")
    return f'<img src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'


def size(page: str) -> list[int]:
    """Width and height of the picture in a page, which a PNG says in bytes 16 to 23."""
    found = re.search(r"data:image/png;base64,([^\"]*)", page)
    assert found is not None
    png = base64.b64decode(found[1])
    return [int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")]


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The matrix as a picture beside Matplotlib's; with --out that is drawn."""
    options = asked(__doc__, arguments)
    n = 128
    rings = dt.sin(dt.hypot(dt.linspace(-9, 9, n)[:, None], dt.linspace(-9, 9, n)))
    plain = rings.numpy()
    show: Any = rings._repr_html_
    beside(
        "a view of a matrix with its picture",
        lambda: size(show()),
        "Matplotlib",
        lambda: size(by_matplotlib(plain)),
        options,
    )
    few: Any = dt.asarray(np.round(np.random.default_rng(0).random((5, 6)), 4))
    assert numbers(few._repr_html_()).tolist() == few.reshape(-1).tolist()
    picture(options, lambda a: a.imshow(rings))
    return options


if __name__ == "__main__":
    main()
