"""Distributions of float16 and bfloat16, computed in float32 and rounded once.

`Distribution.__init_subclass__` applies `in_float32` to all methods and properties in
`FLOAT32_MEMBERS`. The wrapper calls them with copies of the distributions: each half in a copy is
cast to float32, also in nested distributions, transforms and modules. `widen_halves` makes the
casts and rounds the results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar, cast

import dovetail as dt
from dovetail.extend import widen_halves

from ..nn.constructor_errors import Explained
from ..nn.functional.precision import is_half, widen_half

__all__: list[str] = []

Function = TypeVar("Function", bound=Callable[..., Any])
Tensor: TypeAlias = dt.Tensor

FLOAT32_MEMBERS = frozenset((
    "cdf", "entropy", "icdf", "log_prob", "mean", "median", "mode", "perplexity", "stddev",
    "variance",
))  # fmt: skip
FLOAT16, BFLOAT16 = dt.float16, dt.bfloat16
MISSING = object()


def widen_values(cls: type) -> None:
    """Replace the members of a class that return values by ones that compute in float32."""
    for name in FLOAT32_MEMBERS & cls.__dict__.keys():
        value = cls.__dict__[name]
        if isinstance(value, property) and value.fget is not None:
            setattr(cls, name, property(in_float32(value.fget), doc=value.__doc__))
        elif callable(value):
            setattr(cls, name, in_float32(value))


def in_float32(function: Function) -> Function:
    """Return a wrapper of `function` that computes halves in float32 and rounds its results."""

    @functools.wraps(function)
    def call(first: Any = MISSING, second: Any = MISSING, /, *others: Any, **options: Any) -> Any:
        """Call the function, in float32 if an argument has halves."""
        # inline, because a density of float32 takes 2 us and the call of a function 0.1 us
        if getattr(first, "_has_halves", None) is False and not options and not others:
            if second is MISSING:
                return function(first)
            if isinstance(second, dt.Tensor) and second.layout is dt.strided:
                d = second.dtype
                if d is not FLOAT16 and d is not BFLOAT16:
                    return function(first, second)
            elif not has_halves(second):
                return function(first, second)
        args = tuple(x for x in (first, second, *others) if x is not MISSING)
        if not any(map(has_halves, args)) and not any(map(has_halves, options.values())):
            return function(*args, **options)
        return _call_in_float32(function, args, options)

    cast(Any, call).is_widened = True  # a test reads it
    return cast(Function, call)


def _call_in_float32(
    function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Call a function with halves cast to float32, and round its results once."""
    before = list({id(x): x for x in tensors_in((args, options), set())}.values())
    halves = [x.dtype for x in before if is_half(x)]
    if not halves:  # attributes have changed since `_has_halves` was cached
        return function(*args, **options)

    def run(after: list[Tensor]) -> Any:
        """Call the function with `after` in place of the tensors of its arguments."""
        casts = {id(x): y for x, y in zip(before, after, strict=True)}
        wide_args, wide_options = cast_within((args, options), casts, halves[-1])
        return function(*wide_args, **wide_options)

    return _run_widened(before, run)


def _run(tensors: list[Tensor], run: Callable[[list[Tensor]], Any]) -> Any:
    """Call `run` with the tensors."""
    return run(tensors)


_run_widened: Callable[..., Any] = widen_halves(_run)


def has_halves(x: object) -> bool:
    """Return True for a half, and for an object that contains one; cached in the object."""
    if isinstance(x, dt.Tensor):
        return is_half(x)
    if not isinstance(x, Explained):
        return False
    result: bool | None = x.__dict__.get("_has_halves")
    if result is None:
        result = x.__dict__["_has_halves"] = any(map(is_half, tensors_in(x, set())))
    return result


def tensors_in(x: object, seen: set[int]) -> Iterator[Tensor]:
    """Yield the tensors in containers and in the attributes of this package's objects."""
    if isinstance(x, dt.Tensor):
        yield x
    elif isinstance(x, (list, tuple)):
        for v in x:
            yield from tensors_in(v, seen)
    elif isinstance(x, dict):
        yield from tensors_in(list(x.values()), seen)
    elif isinstance(x, Explained) and id(x) not in seen:
        seen.add(id(x))
        # a transform that distributions share may have cached a value of another dtype
        yield from tensors_in([v for n, v in x.__dict__.items() if n != "_cached"], seen)


def cast_within(x: Any, replacements: dict[int, Any], half: dt.DType) -> Any:
    """Return a copy with the tensors in `replacements` replaced; other halves become float32.

    `replacements`: by the id of the original; copies are added to it. `half`: the dtype in which
    copies of distributions validate values.
    """
    if id(x) in replacements:
        return replacements[id(x)]
    if isinstance(x, dt.Tensor):
        return widen_half(x)
    if isinstance(x, (list, tuple)):
        items = [cast_within(v, replacements, half) for v in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if isinstance(x, dict):
        return type(x)((n, cast_within(v, replacements, half)) for n, v in x.items())
    if not isinstance(x, Explained):
        return x
    new = replacements[id(x)] = object.__new__(type(x))
    attributes = {n: cast_within(v, replacements, half) for n, v in x.__dict__.items()}
    new.__dict__.update(attributes, _has_halves=False, _validation_dtype=half)
    if derive := getattr(type(x), "_update_derived", None):
        derive(new)
    return new
