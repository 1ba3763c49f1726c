"""Bounds of a grid: integer values that the host computes before the launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..ir.language import Value


class NonUniformBoundError(Exception):
    """A bound depends on a value that only the kernel can compute."""


def evaluate_bound(
    value: Value, numbers: Mapping[str, int], cache: dict[int, int] | None = None
) -> int:
    """Compute an integer IR value on the host, from `numbers` by name; add results to `cache`."""
    cache = {} if cache is None else cache
    if id(value) not in cache:
        if value.op == "const":
            cache[id(value)] = int(value.number)
        elif value.op == "param":
            cache[id(value)] = int(numbers[value.name])
        else:
            operands = [evaluate_bound(a, numbers, cache) for a in value.args]
            cache[id(value)] = int(_EVALUATE[value.op](*operands))
    return cache[id(value)]


def required_numbers(bound: Value) -> set[str]:
    """Return the names of a bound's numbers. Raises: NonUniformBoundError for one of a kernel."""
    names: set[str] = set()
    seen: set[int] = set()
    stack = [bound]
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        is_known = value.op in _EVALUATE or value.op in ("const", "param")
        if not is_known or value.dtype.kind not in "biu":
            raise NonUniformBoundError
        if value.op == "param":
            names.add(value.name)
        stack += value.args
    return names


def _quotient(a: int, b: int) -> int:
    """Return a / b, rounded towards zero; 0 for b = 0."""
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_EVALUATE: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "neg": lambda a: -a, "quo": _quotient, "rem": lambda a, b: a - b * _quotient(a, b),
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b, "not": lambda a: 1 - a, "where": lambda c, a, b: a if c else b,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "cast": lambda a: a,
    "shl": lambda a, b: a << b, "shr": lambda a, b: a >> b,
}  # fmt: skip
