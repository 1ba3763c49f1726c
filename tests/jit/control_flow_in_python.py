"""Loops and branches in plain Python, the reference for those of dovetail."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dovetail as dt
from dovetail.capture.pytree import flatten, rebuild

__all__ = ["PYTHON", "one_by_one"]


def copies(value: Any) -> Any:
    flat = flatten(value)
    return rebuild(flat, [dt.asarray(x).copy() for x in flat.leaves])


def cond(pred: Any, true_fn: Any, false_fn: Any, *operands: Any) -> Any:
    return true_fn(*operands) if bool(pred) else false_fn(*operands)


def while_loop(condition: Any, body: Any, init: Any) -> Any:
    value = copies(init)
    while bool(condition(value)):
        value = copies(body(value))
    return value


def fori_loop(lower: Any, upper: Any, body: Any, init: Any) -> Any:
    value = copies(init)
    for i in range(int(lower), int(upper)):
        value = copies(body(dt.asarray(i), value))
    return value


def scan(f: Any, init: Any, xs: Any, length: int | None = None, reverse: bool = False) -> Any:
    value, parts, made = copies(init), flatten(copies(xs)), []
    n = parts.leaves[0].shape[0] if length is None else length
    for k in range(n)[:: -1 if reverse else 1]:
        value, y = copies(f(value, rebuild(parts, [x[k].copy() for x in parts.leaves])))
        made.append(flatten(y))
    made = made[:: -1 if reverse else 1]
    columns = zip(*[m.leaves for m in made], strict=True)
    return value, rebuild(made[0], [dt.stack(list(column)) for column in columns])


PYTHON = SimpleNamespace(cond=cond, while_loop=while_loop, fori_loop=fori_loop, scan=scan)


def one_by_one(f: Callable[..., Any], args: Any) -> Any:
    """Return the results of a function for one example after the other."""
    made = [f(*[a[k] for a in args]) for k in range(len(args[0]))]
    every = [flatten(m) for m in made]
    columns = zip(*[m.leaves for m in every], strict=True)
    return rebuild(every[0], [dt.stack(list(column)) for column in columns])
