"""Every parameter of the standard's functions is accepted as specified: by position, by name."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import dovetail as dt
import pytest

LINES = (Path(__file__).parent / "array_api_2025_12.txt").read_text().splitlines()
BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
LISTED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
BY_NAME = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def standard(line: str) -> tuple[str, list[inspect.Parameter]]:
    """Return a line of the table as a name and parameters."""
    node = ast.parse(f"def {line}: ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    space: dict[str, Any] = {}
    exec(compile(ast.Module([node], []), "table", "exec"), space)
    return node.name, list(inspect.signature(space[node.name]).parameters.values())


TABLE = dict(standard(line) for line in LINES if not line.startswith("#"))


def differences(wanted: list[inspect.Parameter], have: list[inspect.Parameter]) -> list[str]:
    """Return parameters that are not accepted as the standard specifies."""
    found = []
    named = {p.name: p for p in have}
    rest = next((i for i, p in enumerate(have) if p.kind is p.VAR_POSITIONAL), None)
    for i, want in enumerate(wanted):
        if want.kind is want.VAR_POSITIONAL:
            found += [] if rest == i else [f"takes no *{want.name}"]
            continue
        here = have[i] if i < len(have) else None
        by_rest = rest is not None and i >= rest
        if want.kind in BY_PLACE and not by_rest and (here is None or here.kind not in BY_PLACE):
            found.append(f"{want.name} cannot be given by place")
        ours = named.get(want.name)
        if want.kind in BY_NAME and (ours is None or ours.kind not in BY_NAME):
            found.append(f"{want.name} cannot be given by name")
        if want.kind is want.POSITIONAL_ONLY:
            ours = here
        if want.default is not want.empty and (ours is None or ours.default != want.default):
            found.append(f"{want.name} is not {want.default!r} where it is left out")
    names = {w.name for w in wanted}
    by_place = sum(w.kind in BY_PLACE for w in wanted)
    required = [
        p.name for i, p in enumerate(have)
        if p.default is p.empty and p.kind not in LISTED and p.name not in names
        and not (i < by_place and p.kind in BY_PLACE)
    ]  # fmt: skip
    return found + [f"{name} is required here" for name in required]


@pytest.mark.parametrize("name", sorted(TABLE))
def test_parameters_equal_the_standard(name: str) -> None:
    have = list(inspect.signature(getattr(dt, name)).parameters.values())
    assert differences(TABLE[name], have) == []


def test_difference_is_detected() -> None:
    def parameters(line: str) -> list[inspect.Parameter]:
        return standard(line)[1]

    wanted = parameters("f(x, /, shape, *, copy=None)")
    assert differences(wanted, parameters("f(x, /, shape, copy=None)")) == []
    assert differences(wanted, parameters("f(x, *sizes, shape=1, copy=None)")) == []
    for line, says in {
        "f(x, /, *shape, copy=None)": "shape cannot be given by name",
        "f(x, shape, /, copy=None)": "shape cannot be given by name",
        "f(x, *, shape, copy=None)": "shape cannot be given by place",
        "f(x, shape, copy=True)": "copy is not None where it is left out",
        "f(x, shape, other, copy=None)": "other is required here",
    }.items():
        assert differences(wanted, parameters(line)) == [says]


def test_table_covers_the_whole_standard() -> None:
    assert len(TABLE) > 120


def test_shapes_and_axes_are_accepted_by_name() -> None:
    x = dt.arange(6, device="reference")
    assert dt.reshape(x, shape=(2, 3)).shape == x.reshape(shape=(2, 3), copy=True).shape == (2, 3)
    assert dt.broadcast_to(x, shape=(2, 6)).shape == (2, 6)
    assert dt.permute_dims(x.reshape(2, 3), axes=(1, 0)).shape == (3, 2)
    with pytest.raises(TypeError, match=r"reshape.* multiple values for argument 'shape'"):
        dt.reshape(x, 2, shape=(2, 3))


@pytest.mark.parametrize("name", ["reshape", "broadcast_to", "permute_dims"])
def test_separate_sizes_start_with_the_parameter_of_the_standard(name: str) -> None:
    second = list(inspect.signature(getattr(dt, name)).parameters.values())[1]
    assert second.name == ("axes" if name == "permute_dims" else "shape")
    assert second.kind is second.POSITIONAL_OR_KEYWORD


def test_devices_returns_a_tuple_as_in_the_standard_of_2025() -> None:
    found = dt.__array_namespace_info__().devices()
    assert type(found) is tuple
    assert dt.device("reference") in found
