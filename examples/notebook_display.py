"""What a notebook shows of a tensor. Run: python examples/notebook_display.py"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

import dovetail as dt
import numpy as np
from beside import Asked, asked, beside, picture


def numbers(page: str) -> np.ndarray:
    """The numbers in the cells of a table."""
    cells = (html.unescape(c).strip() for c in re.findall(r"<td[^>]*>([^<]*)</td>", page))
    return np.asarray([float(c) for c in cells if re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", c)])


def table(a: np.ndarray) -> str:
    """NumPy has no view of its own in notebooks: a plain table."""
    rows = ("".join(f"<td>{v:.4f}</td>" for v in row) for row in a)
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The values on both pages agree; with --out the picture is what an image view shows."""
    options = asked(__doc__, arguments)
    plain = np.round(np.random.default_rng(0).random((5, 6)), 4)
    x = dt.asarray(plain)
    show: Any = x._repr_html_
    beside(
        "a view of a small matrix",
        lambda: numbers(show()),
        "NumPy in a table",
        lambda: numbers(table(plain)),
        options,
        rtol=1e-3, atol=1e-3,
    )  # fmt: skip
    rings = dt.sin(dt.hypot(dt.linspace(-9, 9, 128)[:, None], dt.linspace(-9, 9, 128)))
    assert "data:image/png" in rings._repr_html_()
    picture(options, lambda a: a.imshow(rings))
    return options


if __name__ == "__main__":
    main()
