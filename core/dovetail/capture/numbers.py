"""The numbers of a captured function that may be others at its next call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ..graph.expr import Args

Env: TypeAlias = list[Any]  # the value of each variable in a call


class Number(NamedTuple):
    """A launch's scalar: a value, or what `env` has at a place."""

    value: float | int | bool
    variable: int | None = None


class Environment:
    """The numbers of a captured function and of what is nested in it.

    They are those that differ from call to call, with where they came from. `value`: what they are
    while it is captured.
    """

    def __init__(self) -> None:
        self.values: Env = []
        # What is computed of others, at the start of a replay: into which variable, what, of which.
        self.formulas: list[tuple[int, Callable[..., object], tuple[Number, ...]]] = []
        self._tagged: dict[int, tuple[object, tuple[int | None, ...]]] = {}  # by id, held

    def variable(self, value: object) -> int:
        """A new one."""
        self.values.append(value)
        return len(self.values) - 1

    def tag(self, what: object, variables: tuple[int | None, ...]) -> None:
        """Says that a node's arguments, or a number, stand for these variables."""
        self._tagged[id(what)] = (what, variables)

    def number(self, args: Args, k: int) -> Number:
        """What the number at `k` of a node's arguments stands for."""
        _, of_args = self._tagged.get(id(args), (None, ()))
        if k < len(of_args):
            return Number(args[k], of_args[k])
        _, own = self._tagged.get(id(args[k]), (None, (None,)))
        return Number(args[k], own[0])
