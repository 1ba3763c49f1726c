"""The decorator `public`: the methods that it declares, and the wrappers that it adds."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

import dovetail as dt
import pytest
from dovetail.declarations import IN_PLACE_METHODS, METHODS, public
from dovetail.functions.methods import method_by_name
from test_layers import GRAPH, MODULES


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    """Remove what a test declares."""
    before = [(table, {**table}) for table in (METHODS, IN_PLACE_METHODS)]
    yield
    for table, content in before:
        table.clear()
        table.update(content)


def double(x: dt.Tensor, /, times: int = 1, *, out: dt.Tensor | None = None) -> dt.Tensor:
    """Return `x` times a power of two."""
    return x * 2**times


def test_public_declares_a_method_under_the_name_of_the_function() -> None:
    wrapper = public(method=True)(double)
    assert METHODS["double"] is wrapper and "double_" not in IN_PLACE_METHODS
    with pytest.raises(dt.InternalError, match="two functions declare the method double"):
        public(method=True)(double)


def test_public_declares_only_the_listed_names() -> None:
    wrapper = public(method=("twice", "doubled"), in_place=("twice_",))(double)
    assert METHODS["twice"] is METHODS["doubled"] is IN_PLACE_METHODS["twice_"] is wrapper
    assert "double" not in METHODS and "double_" not in IN_PLACE_METHODS


def test_public_returns_the_function_itself_without_a_wrapper() -> None:
    assert public(method=True, wrap=False)(double) is double is METHODS["double"]
    assert public(double) is not double


def test_declared_in_place_method_writes_the_result() -> None:
    public(in_place=True)(double)
    x = dt.ones(2, device="reference")
    assert method_by_name("double_")(x, 2) is x and x.tolist() == [4.0, 4.0]


@pytest.mark.parametrize("options", [{}, {"out": True}, {"cache": True}])
def test_wrapper_keeps_the_signature_and_names_the_function_in_errors(options: Any) -> None:
    wrapper = public(**options)(double)
    assert (wrapper.__name__, wrapper.__doc__) == (double.__name__, double.__doc__)
    assert inspect.signature(wrapper) == inspect.signature(double)
    with pytest.raises(dt.ShapeError, match=r"^double: "):
        wrapper(dt.ones(2, device="reference"), dt.ones(3, device="reference"))


@pytest.mark.parametrize("options", [{"out": True}, {"cache": True, "widen": False}])
def test_wrapper_writes_into_out(options: Any) -> None:
    x, y = dt.ones(2, device="reference"), dt.zeros(2, device="reference")
    assert public(**options)(double)(x, out=y) is y and y.tolist() == [2.0, 2.0]


def test_extend_has_the_decorator_under_its_names() -> None:
    assert dt.extend.arguments.named is dt.extend.arguments.public is public


def test_modules_whose_functions_have_out_load_the_wrapper_first() -> None:
    """`functions.variants` sets the wrapper; without it the declaration fails."""
    wrapped = {
        name
        for name, tree in MODULES.items()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and {"out", "cache"} & {k.arg for k in call.keywords}
        if ast.unparse(call.func) == "public"
    }
    assert "functions.reductions.statistics" in wrapped, "declarations are not seen at all"
    assert {n for n in wrapped if "functions.variants" not in GRAPH[n]} == set()
