"""Numbers of a captured function that may differ in its next call."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import NotImplementedType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import CaptureError
from ..graph.expr import Args
from . import tracer_api

Env: TypeAlias = list[Any]  # the value of each variable in a call


class TracedNumber(NamedTuple):
    """A scalar of a launch: a value, or the value of a variable of `env`."""

    value: float | int | bool
    variable: int | None = None


class Environment:
    """The variables of a captured function and of functions nested in it.

    A variable is a number that may differ from call to call. `values` are those during capture.
    `is_abandoned`: the function runs on without a capture, and its numbers are plain ones.
    `may_fix`: the host may read numbers; the capture is then for their values alone. `fixed`: the
    variables that it has read, and those from which they were computed.
    """

    def __init__(self) -> None:
        self.is_abandoned = self.may_fix = False
        self.fixed: set[int] = set()
        self.values: Env = []
        # Computed at the start of a replay: (variable of the result, function, arguments).
        self.formulas: list[tuple[int, Callable[..., object], tuple[TracedNumber, ...]]] = []
        self._variables_by_id: dict[int, tuple[object, tuple[int | None, ...]]] = {}  # by id, held

    def variable(self, value: object) -> int:
        """Append a variable with this value during capture, and return its index."""
        self.values.append(value)
        return len(self.values) - 1

    def fix(self, variable: int) -> bool:
        """Add a variable to `fixed`, with its sources, and return True; False if it may not be."""
        if not self.may_fix or tracer_api.current() is None:
            return False
        self.fixed.add(variable)
        for result, _, numbers in reversed(self.formulas):
            if result in self.fixed:
                self.fixed.update(x.variable for x in numbers if x.variable is not None)
        return True

    def tag(self, what: object, variables: tuple[int | None, ...]) -> None:
        """Mark an object (arguments or a number), by identity, as standing for variables."""
        self._variables_by_id[id(what)] = (what, variables)

    def number(self, args: Args, k: int) -> TracedNumber:
        """Return argument `k` of a node as a TracedNumber, with its variable if it was tagged."""
        if not self._variables_by_id:
            return TracedNumber(args[k])
        _, of_args = self._variables_by_id.get(id(args), (None, ()))
        if k < len(of_args):
            return TracedNumber(args[k], of_args[k])
        _, own = self._variables_by_id.get(id(args[k]), (None, (None,)))
        return TracedNumber(args[k], own[0])


Formula: TypeAlias = Callable[..., float]
Result: TypeAlias = "TracedFloat | float | NotImplementedType"
_REFUSED: Result = NotImplemented


class TracedFloat:
    """A float argument of a captured function: a float, or a float64 of NumPy.

    Arithmetic with Python numbers is recorded and computed again, in Python, at each call. In an op
    with a tensor it is a plain float. Every other use reads the value (`read`). `isinstance` sees
    the class of the value.
    """

    __slots__ = ("environment", "value", "variable")

    def __init__(self, environment: Environment, value: float, variable: int) -> None:
        self.environment, self.value, self.variable = environment, value, variable

    @property  # type: ignore[misc]  # it is not to be set
    def __class__(self) -> Any:
        """The class of the value."""
        return type(self.value)

    def to_argument(self) -> float:
        """Return a new float tagged with this variable. Raises: CaptureError after capture."""
        if self.environment.is_abandoned:
            return self.value
        if tracer_api.current() is None:
            raise CaptureError(
                "dt.jit: a float argument of a captured function is used after it was captured; "
                "return what you need"
            )
        number = float(self.value) * 1.0  # a new object, whose identity marks the variable
        self.environment.tag(number, (self.variable,))
        return number

    def read(self) -> float:
        """Return the value; the capture is for this value only. Raises: as `refuse_read`."""
        if not self.environment.fix(self.variable):
            tracer_api.refuse_read("a float argument is asked for its value")
        return self.value

    def __float__(self) -> float:
        return float(self.read())

    def __bool__(self) -> bool:
        return bool(self.read())

    def __repr__(self) -> str:
        return repr(self.read())

    def __str__(self) -> str:
        return str(self.read())

    def __format__(self, format_spec: str) -> str:
        return format(self.read(), format_spec)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the value, which is read."""
        if name.startswith("__") or not hasattr(type(self.value), name):
            raise AttributeError(f"{type(self.value).__name__!r} object has no attribute {name!r}")
        return getattr(self.read(), name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return NumPy's array of the value."""
        return np.asarray(self.read(), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Call NumPy's ufunc with the values."""
        values = [x.read() if type(x) is TracedFloat else x for x in inputs]
        return getattr(ufunc, method)(*values, **options)

    def compute(self, function: Formula, *args: object) -> Result:
        """Record `function(*args)` as a new variable; return it, NotImplemented for non-numbers.

        `self` only gives the capture.
        """
        environment = self.environment
        numbers, values = [], []
        for a in args:
            if type(a) is TracedFloat:
                numbers.append(TracedNumber(a.value, a.variable))
            elif isinstance(a, (bool, int, float)):
                numbers.append(TracedNumber(a))
            else:
                return _REFUSED
            values.append(numbers[-1].value)
        value = function(*values)
        if environment.is_abandoned:
            return value
        variable = environment.variable(value)
        environment.formulas.append((variable, function, tuple(numbers)))
        return TracedFloat(environment, value, variable)

    def __hash__(self) -> int:
        """Return the hash of the value; end the capture, because a cache may keep the key."""
        tracer_api.refuse_read("a float argument is a key of a dict or a member of a set")
        return hash(self.value)


def _install_operators() -> None:
    """Set the arithmetic operators of TracedFloat, which record formulas."""
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
        compute = getattr(operator, name)

        def forward(self: TracedFloat, other: object, compute: Formula = compute) -> Result:
            """Record `self op other` as a formula."""
            return self.compute(compute, self, other)

        def reflected(self: TracedFloat, other: object, compute: Formula = compute) -> Result:
            """Record `other op self` as a formula."""
            return self.compute(compute, other, self)

        setattr(TracedFloat, f"__{name}__", forward)
        setattr(TracedFloat, f"__r{name}__", reflected)
    for name in ("neg", "pos", "abs"):
        compute = getattr(operator, name)

        def unary(self: TracedFloat, compute: Formula = compute) -> Result:
            """Record `op self` as a formula."""
            return self.compute(compute, self)

        setattr(TracedFloat, f"__{name}__", unary)
    comparisons = ["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"]
    conversions = ["__int__", "__round__", "__trunc__", "__floor__", "__ceil__", "__complex__"]
    for name in comparisons + conversions:
        use = getattr(float, name, None) or getattr(complex, name)

        def read(self: TracedFloat, *args: object, use: Callable[..., object] = use) -> object:
            """Return `use(value, *args)`. Raises: CaptureError while or after it is captured."""
            traced = [x for x in (self, *args) if type(x) is TracedFloat]
            if not all(x.environment.fix(x.variable) for x in traced):
                tracer_api.refuse_read("a float argument is compared or asked for its value")
                if not self.environment.is_abandoned:
                    text = "dt.jit: a float argument is used after its function was captured"
                    raise CaptureError(text)
            return use(self.value, *[a.value if type(a) is TracedFloat else a for a in args])

        setattr(TracedFloat, name, read)


_install_operators()
