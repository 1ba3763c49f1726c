"""Numbers that are read by code without a name in the function: operators, properties."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import pytest

SCALE = 2.0


class Operators:
    def __add__(self, x: dt.Tensor) -> dt.Tensor:
        return x * SCALE

    def __getitem__(self, i: int) -> float:
        return SCALE

    def __iter__(self) -> Iterator[float]:
        yield SCALE

    def __len__(self) -> int:
        return int(SCALE)

    def __enter__(self) -> float:
        return SCALE

    def __exit__(self, *error: object) -> None:
        pass

    def __getattr__(self, name: str) -> float:
        return SCALE

    def __class_getitem__(cls, i: int) -> float:
        return SCALE


class Descriptor:
    def __get__(self, owner: object, kind: type) -> float:
        return SCALE


class Members:
    described = Descriptor()

    def __init__(self) -> None:
        self.made = SCALE

    @functools.cached_property
    def times(self) -> Callable[[Any], Any]:
        return lambda x: x * SCALE

    @property
    def scaled(self) -> float:
        return self.kept

    @scaled.setter
    def scaled(self, value: float) -> None:
        self.kept = value * SCALE

    def multiplied(self, x: Any, by: float) -> Any:
        return x * by * SCALE

    same = functools.partialmethod(multiplied, by=1.0)

    @staticmethod
    def scale() -> float:
        return SCALE


class Meta(type):
    def __call__(cls) -> float:
        return SCALE


class Scale(metaclass=Meta):
    pass


def with_context(x: dt.Tensor) -> dt.Tensor:
    with operators as scale:
        return x * scale


def with_setter(x: dt.Tensor) -> dt.Tensor:
    members.scaled = 1.0
    return x * members.scaled


def with_iteration(x: dt.Tensor) -> dt.Tensor:
    for scale in operators:
        x = x * scale
    return x


operators, members = Operators(), Members()
CASES: dict[str, Callable[[Any], Any]] = {
    "operator": lambda x: operators + x,
    "item": lambda x: x * operators[0],
    "iteration": with_iteration,
    "length": lambda x: x * len(operators),
    "context": with_context,
    "attribute": lambda x: x * operators.anything,
    "item of a class": lambda x: x * Operators[0],  # type: ignore[type-arg,misc]  # it has items
    "constructor": lambda x: x * Members().made,
    "call of a class": lambda x: x * Scale(),  # type: ignore[operator]  # its call gives a number
    "descriptor": lambda x: x * members.described,
    "cached property": lambda x: members.times(x),
    "setter": with_setter,
    "partial method": lambda x: members.same(x),
    "name as text": lambda x: x * getattr(members, "scale")(),  # noqa: B009  # the case
    "name in a caller": lambda x: x * operator.methodcaller("scale")(members),
    "name of a global": lambda x: x * globals()["SCALE"],
}


@pytest.mark.parametrize("case", CASES)
def test_number_read_by_operators_and_properties_is_guarded(
    case: str, device: dt.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, x = dt.jit(CASES[case]), dt.ones(3)
    assert f(x).tolist() == f(x).tolist() == [2.0] * 3
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert f(x).tolist() == [5.0] * 3
    assert f.captures == 2
