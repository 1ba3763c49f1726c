"""Reads of a result as PyTorch's pair of values and indices warn; other reads do not."""

from __future__ import annotations

import warnings
from typing import Any

import dovetail as dt
import numpy as np
import pytest

X = np.array([[1.0, 5.0, 2.0], [7.0, 3.0, 4.0]], np.float32)
PAIRS = [
    "x.max(1)[0]", "x.max(1)[1]", "x.max(0)[0]", "x.min(-1)[0]", "x.max(1, True)[0]",
    "dt.max(x, 1)[0]", "x.sort()[0]", "x.sort(1)[1]", "x.median(1)[0]", "x.nanmedian(1)[1]",
    "a, b = x.max(1)", "a, b = x.min(1)", "a, b = x.sort(1)", "a, b = x.median(1)",
    "a, b = dt.max(x, -1)", "dt.jit(lambda x: x.max(1)[0])(x)",
]  # fmt: skip
OTHERS = [
    "x.max(axis=1)[0]", "x.max(1)[:1]", "x.max(1)[-1]", "m = x.max(1); m[0]", "k = 0; x.max(1)[k]",
    "a, b = x.T.max(0)", "a, b = x.T.median(0)", "for row in x.max(1): pass", "[*x.max(1)]",
    "a, b = x.max(axis=1)", "x.sort(0)[0]", "x[0].sort()[0]", "a, b = x[0, :2].sort()",
    "x.sum(1)[0]", "a, b = x.sum(1)", "x.to_sparse()[0]", "a, b = x.to_sparse()",
    "x.median(axis=1)[0]", "dt.topk(x, 1)[0]",
]  # fmt: skip


def _warned(statement: str) -> list[Any]:
    with warnings.catch_warnings(record=True) as caught, dt.device("reference"):
        warnings.simplefilter("always")
        exec(compile(statement, "user.py", "exec"), {"dt": dt, "x": dt.asarray(X)})
    return caught


@pytest.mark.parametrize("statement", PAIRS)
def test_read_as_a_pair_warns_at_the_line_and_names_the_function(statement: str) -> None:
    (warning,) = _warned(statement)
    assert warning.category is dt.DovetailWarning and warning.filename == "user.py"
    name = next(n for n in ("nanmedian", "median", "max", "min", "sort") if n in statement)
    indices = {"max": "argmax", "min": "argmin"}.get(name, "argsort")
    text = str(warning.message)
    assert text.startswith(f"{name}: dovetail returns values only, so ")
    assert f"for indices dt.{indices}" in text


@pytest.mark.parametrize("statement", OTHERS)
def test_other_reads_do_not_warn(statement: str) -> None:
    assert _warned(statement) == []


def test_warning_is_shown_once_for_a_line() -> None:
    code = compile("for _ in range(3): x.max(1)[0]", "user.py", "exec")
    with warnings.catch_warnings(record=True) as caught, dt.device("reference"):
        warnings.simplefilter("default")
        exec(code, {"x": dt.asarray(X)})
    assert len(caught) == 1
