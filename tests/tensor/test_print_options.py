"""`dt.set_printoptions`: the text form of tensors."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import dovetail as dt
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    dt.set_printoptions(profile="default")


def tensor(*values: float) -> dt.Tensor:
    return dt.asarray([*values], dtype=dt.float64, device="reference")


def test_options_equal_those_of_numpy() -> None:
    values = np.array([1234.56789, 1e-9, -3.0, np.nan])
    x = dt.asarray(values, device="reference")
    for options in (
        {"precision": 2}, {"precision": 2, "suppress": True}, {"sign": "+"}, {"nanstr": "none"},
        {"floatmode": "fixed", "precision": 3}, {"formatter": {"float": lambda v: f"<{v:.1f}>"}},
    ):  # fmt: skip
        with np.printoptions(**{"precision": 4, "linewidth": 88, **options}):
            theirs = np.array2string(values, separator=", ")
        with dt.printoptions(**options):
            assert str(x) == theirs, options


def test_threshold_and_edgeitems_abbreviate() -> None:
    x = dt.arange(30, device="reference")
    dt.set_printoptions(threshold=10, edgeitems=2)
    assert str(x) == "[ 0,  1, ..., 28, 29]"
    assert x._repr_html_().count("<td>") == 4 and "&hellip;" in x._repr_html_()
    dt.set_printoptions(threshold=float("inf"))
    assert str(x).count(",") == 29
    dt.set_printoptions(profile="full")
    assert "..." not in str(dt.arange(2000, device="reference"))


def test_wide_edges_of_a_vector_are_one_row() -> None:
    with dt.printoptions(threshold=10, edgeitems=15):
        html = dt.arange(100, device="reference")._repr_html_()
    assert html.count("<td>") == 30 and html.count("&hellip;") == 1


def test_sci_mode_forces_or_forbids_exponents() -> None:
    x = tensor(123456.0, 1e-7)
    with dt.printoptions(sci_mode=True, precision=1):
        assert str(x) == "[1.2e+05, 1.0e-07]"
    with dt.printoptions(sci_mode=False):
        assert "e" not in str(x)
    assert "e" in str(x), "as before"


def test_nested_printoptions_combine_and_are_restored() -> None:
    x = tensor(1 / 3, 2 / 3)
    with dt.printoptions(precision=2):
        with dt.printoptions(threshold=1, edgeitems=1):
            assert "0.33" in str(x) and dt.get_printoptions()["threshold"] == 1
        assert dt.get_printoptions()["threshold"] == 1000
        seen: list[str] = []
        thread = threading.Thread(target=lambda: seen.append(str(x)))
        thread.start()
        thread.join()
        assert seen == ["[0.3333, 0.6667]"], "a block of another thread's"
    dt.set_printoptions(precision=1)
    assert str(x) == "[0.3, 0.7]"
    dt.set_printoptions(**{k: v for k, v in dt.get_printoptions().items() if k != "precision"})
    assert str(x) == "[0.3, 0.7]"


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (
            {"legacy": "1.13"},
            dt.ArgumentError,
            "unknown option 'legacy'; the options are precision",
        ),
        ({"precision": -1}, dt.ArgumentError, "precision"),
        ({"precision": "a"}, dt.ArgumentTypeError, "precision"),
        ({"profile": "long"}, dt.ArgumentError, "profile"),
        ({"formatter": 3}, dt.ArgumentTypeError, "formatter"),
        ({"nanstr": 3}, dt.ArgumentTypeError, "nanstr"),
    ],
)
def test_invalid_options_raise(
    given: dict[str, object], error: type[Exception], words: str
) -> None:
    before = dt.get_printoptions()
    with pytest.raises(error, match=f"^set_printoptions: .*{words}"):
        dt.set_printoptions(**given)
    assert dt.get_printoptions() == before
