"""NumPy's and PyTorch's names: the error says what they are called here."""

from __future__ import annotations

from functools import reduce

import dovetail as dt
import pytest
from dovetail.functions.familiar import OURS

X = dt.zeros((2, 2), device="reference")


@pytest.mark.parametrize("theirs", sorted(OURS))
def test_the_error_names_ours_which_is_there(theirs: str) -> None:
    ours = OURS[theirs]
    with pytest.raises(AttributeError, match=f"no attribute '{theirs}'; here it is ") as error:
        getattr(dt, theirs)
    said = str(error.value).rpartition(" here it is ")[2]
    if said.startswith("x"):
        assert said == ours
    else:
        assert said == f"dt.{ours}" and reduce(getattr, ours.split("."), dt) is not None


def test_of_a_tensor_it_is_the_method_where_there_is_one() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'amax'; here it is x\.max"):
        X.amax  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'norm'; here it is dt\.linalg"):
        X.norm  # noqa: B018


def test_what_nobody_has_is_not_explained() -> None:
    for of in (dt, X):
        with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
            of.nonsense  # noqa: B018
        assert not hasattr(of, "nonsense")
