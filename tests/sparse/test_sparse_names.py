"""Names of other libraries for sparse tensors: the error names an existing alternative."""

from __future__ import annotations

import re
from functools import reduce

import dovetail as dt
import pytest
from dovetail.compat.hints import tables

INSTEAD = tables()["sparse"]


@pytest.mark.parametrize("name", INSTEAD)
def test_missing_name_names_an_existing_alternative(name: str) -> None:
    assert name not in dt.sparse.__all__
    with pytest.raises(AttributeError, match=f"'{name}'; use "):
        getattr(dt.sparse, name)
    for path in re.findall(r"\bdt\.([a-zA-Z_.0-9]*\w)", INSTEAD[name]):
        assert reduce(getattr, path.split("."), dt) is not None
    for method in re.findall(r"\bx\.(to_\w+)", INSTEAD[name]):
        assert callable(getattr(dt.ones((2, 2), device="reference"), method))


def test_unknown_name_raises_attribute_error_without_hint() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        _ = dt.sparse.nonsense
    assert not hasattr(dt.sparse, "__nonsense__")


def test_gradients_of_different_shapes_are_not_accumulated() -> None:
    x, y = dt.ones((2, 3)).to_sparse(), dt.ones((3, 2)).to_sparse()
    for other in (y, y.to_dense()):
        with pytest.raises(dt.ShapeError, match=r"accumulated: .*do not broadcast"):
            x.accumulated(other)
