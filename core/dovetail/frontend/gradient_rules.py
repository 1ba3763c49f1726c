"""Gradient rules that the user gives: what they ask for by their parameters' names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ..arguments import function as callable_
from ..arguments import shown
from ..errors import ArgumentError, GradientError

Gradient: TypeAlias = Callable[..., object]
Gradients: TypeAlias = "Gradient | Mapping[str, Gradient | None]"


class OwnRule:
    """A rule as it was given: a function, and what it asks for.

    `g` is the gradient that comes in, `r` the result (tuples of them where the op has several), and
    the names of operands and options are these.
    """

    def __init__(self, name: str, rule: Gradient, known: Sequence[str]) -> None:
        self.name, self.function = name, callable_(name, rule, "gradient")
        if taken := [n for n in ("g", "r") if n in known]:
            raise ArgumentError(
                f"{name}: a gradient's g is what comes in and its r the result, so no parameter "
                f"can be called {taken[0]}"
            )
        self.asks = tuple(inspect.signature(rule).parameters)
        if wrong := [n for n in self.asks if n not in ("g", "r", *known)]:
            raise ArgumentError(
                f"{name}: gradient asks for {', '.join(wrong)}; it gets what its parameters name: "
                f"g, the gradient that comes in, r, the result, and {', '.join(known)}"
            )

    def given(self, values: Mapping[str, object]) -> object:
        """What the rule gives."""
        return self.function(*[values[n] for n in self.asks])


class OwnRules:
    """The rules of an op: one for all operands, or some for one each."""

    def __init__(
        self, name: str, gradient: Gradients, operands: Sequence[str], options: Sequence[str] = ()
    ) -> None:
        self.name, self.operands = name, tuple(operands)
        known = (*operands, *options)
        self.each: dict[str, OwnRule | None] | None = None
        self.all: OwnRule | None = None
        if not isinstance(gradient, Mapping):
            self.all = OwnRule(name, gradient, known)
            return
        if wrong := [n for n in gradient if n not in operands]:
            raise ArgumentError(
                f"{name}: gradient has a rule for {shown(wrong[0])}, which is no operand; they "
                f"are {', '.join(operands)}"
            )
        self.each = {
            n: None if rule is None else OwnRule(name, rule, known) for n, rule in gradient.items()
        }

    @property
    def asks(self) -> set[str]:
        """What any rule asks for."""
        rules = [self.all] if self.each is None else self.each.values()
        return {n for rule in rules if rule is not None for n in rule.asks}

    def gradients(
        self, values: Mapping[str, object], operands: Sequence[str] | None = None
    ) -> list[Any]:
        """A gradient for each operand, or None; `operands`: those that are tensors, if not all.

        Raises: GradientError for another number.
        """
        wanted = self.operands if operands is None else operands
        if self.each is not None:
            rules = [self.each.get(n) for n in wanted]
            return [None if rule is None else rule.given(values) for rule in rules]
        assert self.all is not None
        made = self.all.given(values)
        found = list(made) if isinstance(made, (tuple, list)) else [made]
        if len(found) != len(wanted):
            raise GradientError(
                f"{self.name}: gradient gave {len(found)} of {len(wanted)} gradients: one for "
                f"each of {', '.join(wanted)}, None for one without"
            )
        return found
