"""Every public function against an oracle, for every dtype, at special values, in every layout.

`table.Row` describes a row; a function without one fails here.
"""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from functools import partial
from itertools import chain
from typing import Any

import dovetail as dt
import numpy as np
import pytest

from differential import (
    of_elementwise,
    of_linalg,
    of_methods,
    of_networks,
    of_reductions,
    of_shapes,
    oracles,
)
from differential.inputs import DTYPES, arrays, materials, tensors
from differential.judge import differences, outcome, problems, results, same_bits
from differential.table import EXEMPT, Row, functions, methods

pytestmark = pytest.mark.values

TABLES = [of_elementwise, of_reductions, of_shapes, of_linalg, of_networks, of_methods]
ROWS = list(chain.from_iterable(table.ROWS for table in TABLES))
ROWS_OF_CALL = Counter(row.call for row in ROWS)
CASES = [
    pytest.param(row, d, id=f"{row.call} {d.name}") for row in ROWS for d in DTYPES
    if row.takes(d) or ROWS_OF_CALL[row.call] == 1
]  # fmt: skip
HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.fixture(autouse=True)
def on_reference() -> Any:
    """Compute on the interpreter, which compiles nothing; `judge.paths` compares other devices."""
    before = dt.default_device()
    yield dt.set_default_device("reference")
    dt.set_default_device(before)


@pytest.mark.parametrize(("row", "d"), CASES)
def test_result_equals_the_oracle(row: Row, d: dt.DType) -> None:
    if row.uses_torch and not HAS_TORCH:
        pytest.skip("the oracle of this row is PyTorch: pip install --group peers")
    assert problems(row, d) == []


# --- methods that write in place


CALL = re.compile(r"(?:dt(?=\.\w+\(x\b)|x)\.(\w+)\((?:x\b(?:, )?)?(.*)\)")


def in_place_rows() -> dict[str, Row]:
    """Return for each method `name_` without rows of its own the first row of the function."""
    own = {row.name for row in ROWS} | {*EXEMPT}
    found: dict[str, Row] = {}
    for row in ROWS:
        called = CALL.fullmatch(row.call)
        name = called and f"x.{called[1]}_"
        if name and hasattr(dt.Tensor, name[2:]) and name not in own:
            found.setdefault(name, row)
    return found


IN_PLACE = in_place_rows()


@pytest.mark.parametrize("d", DTYPES, ids=str)
@pytest.mark.parametrize("name", sorted(IN_PLACE))
def test_in_place_method_writes_the_result_of_its_function(name: str, d: dt.DType) -> None:
    plain = IN_PLACE[name]
    call = CALL.sub(rf"{name}(\2)", plain.call)
    row = Row(**{**vars(plain), "call": call})
    for material in materials(row.shapes):
        operands = arrays(material, d, plain.call)
        if operands is None or material.name == "long":
            continue
        want, refused = outcome(partial(results, plain, tensors(operands, d)))
        got, error = outcome(partial(results, row, tensors(operands, d)))
        fits = refused is None and want[0].shape == operands["x"].shape
        if fits and want[0].dtype is d:
            assert error is None and same_bits(got, want), (material.name, got, want, error)
        elif not fits:
            assert isinstance(error, dt.DovetailError), (material.name, got, want)


# --- the table itself


def test_every_function_has_a_row() -> None:
    named = {row.name for row in ROWS} | {*IN_PLACE}
    public = {*functions(), *methods()}
    without = sorted(public - named - {*EXEMPT})
    assert not without, f"{without}: has no oracle: add a row to tests/differential/of_*.py"
    assert {*EXEMPT} <= public, sorted({*EXEMPT} - public)
    assert not named & {*EXEMPT}, sorted(named & {*EXEMPT})
    assert named - public == {"operator"}, sorted(named - public)


def test_rows_are_unique() -> None:
    calls = [(row.call, row.of) for row in ROWS]
    assert len({*calls}) == len(calls)


def test_function_without_a_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dt, "brand_new", lambda x: x, raising=False)
    monkeypatch.setattr(dt, "__all__", [*dt.__all__, "brand_new"])
    with pytest.raises(AssertionError, match=r"dt\.brand_new.*has no oracle: add a row"):
        test_every_function_has_a_row()


def test_differences_in_values_dtypes_and_shapes_are_found() -> None:
    row, x = Row("dt.exp(x)"), dt.asarray([1.0, 2.0])
    assert differences(row, x, np.array([1.0, 2.0]), dt.float32, 0.0) == ""
    assert "right: float64[2]" in differences(row, x, np.array([1.0, 2.0]), dt.float64, 0.0)
    assert "right: float32[1]" in differences(row, x, np.array([1.0]), dt.float32, 0.0)
    assert "1 of 2 at [1]" in differences(row, x, np.array([1.0, 2.000001]), dt.float32, 0.0)
    assert differences(row, x, np.array([1.0, 2.0000003]), dt.float32, 0.0) == ""
    assert "nan" in differences(row, x, np.array([np.nan, 2.0]), dt.float32, 0.0)
    half = dt.asarray([1.0], dtype=dt.float16)
    assert differences(row, half, np.array([1.0009]), dt.float16, 0.0) == ""
    assert "1 of 1" in differences(row, half, np.array([1.0015]), dt.float16, 0.0)


def test_different_bits_on_a_path_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(100))
    row = Row("dt.add(x, number())", "x", of="f", shapes={"x": (3,)}, ulps=1e9)
    monkeypatch.setitem(oracles.DOVETAIL, "number", lambda: next(numbers))
    assert any("instead of" in p for p in problems(row, dt.float32))
