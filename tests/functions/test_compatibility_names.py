"""Names of NumPy, PyTorch and JAX mean the same in dovetail, or the error says what to write."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.compat.hints import tables

ELSEWHERE, METHODS, OURS = (tables()[name] for name in ("functions", "methods", "synonyms"))
X = dt.zeros((2, 2), device="reference")
LINES = (Path(__file__).parent / "spellings.txt").read_text().splitlines()
CASES = [line for line in LINES if line and not line.startswith("#")]


@pytest.fixture
def names() -> Iterator[dict[str, Any]]:
    """Return the operands of the lines, on a device that compiles nothing."""
    with dt.device("reference"):
        x = dt.asarray([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
        yield {
            "dt": dt, "np": np, "n": np.ones(2), "x": x, "y": x + 1, "r": x[None],
            "i": dt.asarray([0, 1]), "ii": dt.asarray([[0, 1, 2], [1, 0, 2]]),
            "s": dt.asarray([1.0, 2.0, 4.0]), "c": dt.asarray([1.0, 2.0, 3.0]),
            "q": dt.asarray([[2.0, 1.0], [1.0, 3.0]]),
        }  # fmt: skip


def values(found: object) -> object:
    return [v.tolist() for v in found] if isinstance(found, tuple) else found.tolist()  # type: ignore[attr-defined]


@pytest.mark.parametrize("line", CASES)
@pytest.mark.filterwarnings("ignore")
def test_familiar_call_works_or_is_explained(line: str, names: dict[str, Any]) -> None:
    theirs, alike, ours = line.partition(" | ")
    if alike:
        assert values(eval(theirs, names)) == values(eval(ours, names))
        return
    theirs, refused, words = line.partition(" ! ")
    if not refused:
        eval(theirs, names)
        return
    with pytest.raises((dt.DovetailError, AttributeError)) as error:
        eval(theirs, names)
    assert words in str(error.value)
    assert "unexpected keyword" not in str(error.value)


def test_table_has_enough_cases() -> None:
    assert len(CASES) == len(set(CASES)) > 1000
    assert sum(" | " in line for line in CASES) > 90
    assert sum(" ! " in line for line in CASES) > 450


@pytest.mark.parametrize("theirs", sorted(OURS))
def test_hint_names_an_existing_equivalent(theirs: str) -> None:
    ours = OURS[theirs]
    with pytest.raises(AttributeError, match=f"no attribute '{theirs}'; use ") as error:
        getattr(dt, theirs)
    said = str(error.value).rpartition(" use ")[2]
    if said.startswith("x"):
        assert said == ours
    else:
        assert said == f"dt.{ours}" and reduce(getattr, ours.split("."), dt) is not None


def test_names_with_a_hint_do_not_exist_elsewhere() -> None:
    assert [n for n in METHODS if n in dir(dt.Tensor)] == []
    for name in ELSEWHERE:
        of, _, last = name.rpartition(".")
        assert name not in OURS and last not in dir(getattr(dt, of) if of else dt), name
        with pytest.raises(AttributeError, match=r"; (use|dovetail) "):
            getattr(getattr(dt, of) if of else dt, last)


@pytest.mark.parametrize("name", [n for n in dir(np) if not n.startswith("_")])
def test_every_numpy_name_exists_or_is_explained(name: str) -> None:
    try:
        assert getattr(dt, name) is not None or name == "newaxis"
    except AttributeError as error:
        said = "; use " in str(error) or "; dovetail " in str(error)
        assert said or str(error).endswith(f"; np.{name} is NumPy's")


def test_hint_for_a_tensor_names_its_method() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'sometrue'; use x\.any"):
        X.sometrue  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'solve'; use dt\.linalg"):
        X.solve  # noqa: B018


def test_unknown_name_raises_attribute_error_without_hint() -> None:
    for of in (dt, X):
        with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
            of.nonsense  # noqa: B018
        assert not hasattr(of, "nonsense")


# --- parameters


def says(words: str) -> Any:
    return pytest.raises(dt.ArgumentTypeError, match=words)


def test_parameter_given_by_both_names_raises() -> None:
    with says("sum: axis is given twice"):
        X.sum(axis=0, dim=1)
    with says("softmax: axis is given twice"):
        dt.softmax(X, 0, dim=1)  # type: ignore[call-arg]


def test_unknown_parameter_raises_with_the_existing_ones() -> None:
    with says("sum: has no parameter axs; the parameters are x, axis=, dtype=, keepdims=, out="):
        dt.sum(X, axs=0)
    with says("softmax: has no parameter axs; the parameters are x, axis="):
        dt.softmax(X, axs=0)  # type: ignore[call-arg]
    with says("median: has no parameter nonsense"):
        dt.median(X, nonsense=1)  # type: ignore[call-arg]


def test_parameters_with_another_meaning_in_pytorch_raise() -> None:
    with says(r"max: dovetail returns values only; use dt\.max\(x, axis=0\), and dt\.argmax"):
        X.max(dim=0)
    with says(r"std: dovetail divides by n; .* correction=1\) to divide by n - 1"):
        X.std(dim=0)


def test_type_errors_from_within_are_not_reported_as_wrong_calls() -> None:
    def broken(*_: object) -> float:
        raise TypeError("from within")

    with pytest.raises(TypeError, match=r"^from within$"):
        dt.fromfunction(broken, (2, 2))
    with pytest.raises(dt.ArgumentTypeError, match=r"^softmax: axis must be an int"):
        dt.softmax(X, dim="a")  # type: ignore[call-arg]


def test_requires_grad_argument_makes_a_leaf() -> None:
    x = dt.tensor([1.0, 2.0], requires_grad=True, device="reference")  # type: ignore[operator]
    assert x.is_leaf and x.requires_grad
    x.prod(dim=0).backward()
    assert x.grad.tolist() == [2, 1]
    assert dt.zeros(2, 3, requires_grad=True, device="reference").shape == (2, 3)
    assert not dt.ones(2, requires_grad=False, device="reference").requires_grad


def test_out_argument_by_another_name_is_written_to() -> None:
    z = dt.empty(2, device="reference")
    assert dt.sum(X + 1, dim=0, out=z) is z and z.tolist() == [2, 2]
