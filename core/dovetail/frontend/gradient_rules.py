"""Gradient rules of users: functions that name in their parameters what they need."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ..argument_checks import function as callable_
from ..argument_checks import shown
from ..errors import ArgumentError, GradientError

Gradient: TypeAlias = Callable[..., object]
Gradients: TypeAlias = "Gradient | Mapping[str, Gradient | None]"


class UserRule:
    """One rule: a function, and the names that it needs.

    `g` is the incoming gradient and `r` the result: tuples if the op has several results. Other
    names are those of operands and options.
    """

    def __init__(self, op: str, function: Gradient, allowed: Sequence[str]) -> None:
        self.function = callable_(op, function, "gradient")
        if reserved := [n for n in ("g", "r") if n in allowed]:
            raise ArgumentError(
                f"{op}: a parameter must not be named {reserved[0]}; in gradient= g is the "
                "incoming gradient and r the result"
            )
        self.needs = tuple(inspect.signature(function).parameters)
        if unknown := [n for n in self.needs if n not in ("g", "r", *allowed)]:
            raise ArgumentError(
                f"{op}: the parameters of gradient must be among g (the incoming gradient), r (the "
                f"result) and {', '.join(allowed)}, got {', '.join(unknown)}"
            )

    def apply(self, values: Mapping[str, object]) -> object:
        """Call the rule with the values that its parameters name, and return its result."""
        return self.function(*[values[n] for n in self.needs])


class UserRules:
    """The rules of an op: one for all operands, or one for each."""

    def __init__(
        self, op: str, gradient: Gradients, operands: Sequence[str], options: Sequence[str] = ()
    ) -> None:
        self.op, self.operands = op, tuple(operands)
        allowed = (*operands, *options)
        self._by_operand: dict[str, UserRule | None] | None = None
        self._joint: UserRule | None = None
        if not isinstance(gradient, Mapping):
            self._joint = UserRule(op, gradient, allowed)
            return
        if wrong := [n for n in gradient if n not in operands]:
            raise ArgumentError(
                f"{op}: the keys of gradient must be operands, {', '.join(operands)}, got "
                f"{shown(wrong[0])}"
            )
        self._by_operand = {
            n: None if rule is None else UserRule(op, rule, allowed) for n, rule in gradient.items()
        }

    @property
    def needs(self) -> set[str]:
        """Return the names that the rules need."""
        rules = [self._joint] if self._by_operand is None else self._by_operand.values()
        return {n for rule in rules if rule is not None for n in rule.needs}

    def gradients(
        self, values: Mapping[str, object], operands: Sequence[str] | None = None
    ) -> list[Any]:
        """Call the rules with `values` by name; return a gradient or None for each operand.

        operands: those that are tensors, if not all. Raises: GradientError for another number.
        """
        wanted = self.operands if operands is None else operands
        if self._by_operand is not None:
            rules = [self._by_operand.get(n) for n in wanted]
            return [None if rule is None else rule.apply(values) for rule in rules]
        assert self._joint is not None
        result = self._joint.apply(values)
        gradients = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(gradients) != len(wanted):
            raise GradientError(
                f"{self.op}: gradient must return {len(wanted)} gradients, one for each of "
                f"{', '.join(wanted)}, got {len(gradients)}; return None for an operand without one"
            )
        return gradients
