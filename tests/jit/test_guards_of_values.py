"""Rule 3 of captures: values, functions and settings that the code names are compared at each call.

Each case captures a function, binds another value in the same place, and calls it again.
"""

from __future__ import annotations

import array
import functools
from collections import ChainMap, OrderedDict, UserList, defaultdict, deque, namedtuple
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from pathlib import PurePosixPath
from types import MappingProxyType, MethodType, SimpleNamespace
from typing import Any

import dovetail as dt
import numpy as np
import pytest

Pair = namedtuple("Pair", "a b")


class Color(Enum):
    RED = 1
    BLUE = 2


class Holder:
    def __init__(self, w: Any) -> None:
        self.w = w

    def get(self) -> Any:
        return self.w

    def __call__(self) -> Any:
        return self.w


class Slotted:
    __slots__ = ("w",)

    def __init__(self, w: Any) -> None:
        self.w = w


class PrivatelySlotted:
    __slots__ = ("__w",)

    def __init__(self, w: Any) -> None:
        self.__w = w

    def get(self) -> Any:
        return self.__w


def keep(w: Any) -> Callable[[], Any]:
    return lambda: w


# A place that holds a value, and how a function reads the value there.
PLACES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "variable": (lambda v: v, lambda o: o),
    "list": (lambda v: [v], lambda o: o[0]),
    "tuple": (lambda v: (v,), lambda o: o[0]),
    "deque": (lambda v: deque([v]), lambda o: o[0]),
    "dict": (lambda v: {"k": v}, lambda o: o["k"]),
    "nested": (lambda v: {"k": [(v,)]}, lambda o: o["k"][0][0]),
    "defaultdict": (lambda v: defaultdict(list, k=v), lambda o: o["k"]),
    "OrderedDict": (lambda v: OrderedDict(k=v), lambda o: o["k"]),
    "mappingproxy": (lambda v: MappingProxyType({"k": v}), lambda o: o["k"]),
    "namedtuple": (lambda v: Pair(v, 1), lambda o: o.a),
    "UserList": (lambda v: UserList([v]), lambda o: o[0]),
    "ChainMap": (lambda v: ChainMap({"k": v}), lambda o: o["k"]),
    "attribute": (Holder, lambda o: o.w),
    "getattr": (Holder, lambda o: getattr(o, "".join(["w"]))),
    "vars": (Holder, lambda o: next(iter(vars(o).values()))),
    "slot": (Slotted, lambda o: o.w),
    "private slot": (PrivatelySlotted, lambda o: o.get()),
    "namespace": (lambda v: SimpleNamespace(w=v), lambda o: o.w),
    "objects in a list": (lambda v: [Holder(v)], lambda o: o[0].w),
    "method": (lambda v: Holder(v).get, lambda o: o()),
    "call": (Holder, lambda o: o()),
    "bound": (lambda v: MethodType(lambda self: self, v), lambda o: o()),
    "closure": (keep, lambda o: o()),
    "default": (lambda v: lambda w=v: w, lambda o: o()),
    "keyword default": (lambda v: lambda *, w=v: w, lambda o: o()),
    "partial": (lambda v: functools.partial(lambda w: w, v), lambda o: o()),
    "keyword of a partial": (lambda v: functools.partial(lambda w: w, w=v), lambda o: o()),
    "arguments of a partial": (lambda v: functools.partial(keep, v), lambda o: o.args[0]),
    "list in a partial": (lambda v: functools.partial(lambda w: w[0], [v]), lambda o: o()),
    "partial of a method": (lambda v: functools.partial(Holder.get, Holder(v)), lambda o: o()),
    "set": (lambda v: {v}, lambda o: next(iter(o))),
    "frozenset": (lambda v: frozenset([v]), lambda o: next(iter(o))),
    "key": (lambda v: {v: 1}, lambda o: next(iter(o))),
}
UNHASHABLE = {"set", "frozenset", "key"}


def result(use: Callable[[Any, dt.Tensor], Any], before: Any, after: Any) -> tuple[Any, Any]:
    """Return the results of a captured function and of the plain one after the change."""
    value = before

    def f(x: dt.Tensor) -> dt.Tensor:
        return x * use(value, x)

    captured, x = dt.jit(f), dt.full((4,), 2.0)
    for _ in range(2):
        captured(x)
    value = after
    return captured(x).tolist(), f(x).tolist()


def number_of(value: Any) -> float:
    """Return another number for each constant of the tests, by type and bits."""
    return 1.0 + ["2", "3", "2.0", "3.0", "0.0", "-0.0", "True", "1", "'a'", "'b'", "None"].index(
        repr(value)
    )


@pytest.mark.parametrize(
    ("before", "after"), [(2, 3), (2.0, 3.0), (0.0, -0.0), (True, 1), ("a", "b"), (None, 2)]
)
@pytest.mark.parametrize("place", PLACES)
def test_other_constant_causes_a_new_capture(place: str, before: Any, after: Any) -> None:
    make, read = PLACES[place]
    if place == "bound" and before is None:
        pytest.skip("a method cannot be bound to None")
    captured, plain = result(lambda o, x: number_of(read(o)), make(before), make(after))
    assert captured == plain


@pytest.mark.parametrize("kind", ["tensor", "array"])
@pytest.mark.parametrize("place", PLACES)
def test_other_metadata_causes_a_new_capture(place: str, kind: str) -> None:
    if kind == "array" and place in UNHASHABLE:
        pytest.skip("an array has no hash")
    make, read = PLACES[place]
    ones = dt.ones if kind == "tensor" else np.ones
    for before, after in [((4,), (2, 2)), ((4,), ()), ((1,), (3,))]:
        captured, plain = result(
            lambda o, x: 1 + len(read(o).shape) + 10 * sum(read(o).shape),
            make(ones(before)),
            make(ones(after)),
        )
        assert captured == plain
    captured, plain = result(
        lambda o, x: 1 + (str(read(o).dtype)[-2:] == "64"),
        make(ones((4,), dtype=dt.float32 if kind == "tensor" else "f4")),
        make(ones((4,), dtype=dt.float64 if kind == "tensor" else "f8")),
    )
    assert captured == plain


SIZED = {
    "slice": (slice(0, 2), slice(0, 3), lambda v: len(range(9)[v])),
    "range": (range(2), range(3), len),
    "enum": (Color.RED, Color.BLUE, lambda v: v.value),
    "Fraction": (Fraction(1, 2), Fraction(1, 4), float),
    "path": (PurePosixPath("a"), PurePosixPath("aa"), lambda v: len(str(v))),
    "bytes": (bytearray(b"ab"), bytearray(b"bb"), lambda v: v[0]),
    "array": (array.array("d", [1.0]), array.array("d", [2.0]), lambda v: v[0]),
    "np.ndarray": (np.ones(3), np.full(3, 2.0), lambda v: float(v[0])),
    "np.dtype": (np.dtype("f4"), np.dtype("f8"), lambda v: v.itemsize),
    "dtype": (dt.float32, dt.float64, lambda v: v.itemsize),
    "empty containers": ({}, (), lambda v: 2 if isinstance(v, dict) else 3),
    "kinds of arrays": (array.array("f", [1.0]), array.array("i", [1065353216]), lambda v: v[0]),
    "dict of functions": ({"a": max}, OrderedDict(a=max), lambda v: 2 if type(v) is dict else 3),
    "class": (int, float, lambda v: len(v.__name__)),
    "Ellipsis": (..., None, lambda v: 2 if v is None else 3),
}


class Units(np.ndarray):
    """An array with a factor."""

    factor: float


def with_factor(values: Any, kind: Any, factor: float) -> Any:
    """Return values in a class that can have attributes, with a factor."""
    value = values.view(kind) if kind is Units else kind(values)
    value.factor = factor
    return value


class Numbers(list):  # type: ignore[type-arg]
    factor: float


class Table(dict):  # type: ignore[type-arg]
    factor: float

    def scale(self) -> float:
        return self.factor


RECORD = [("a", "f8")]
TWO, LARGE = np.full((2, 2), 2.0), np.ones((300, 300))
STATES: dict[str, tuple[Any, Any, Callable[[Any], float]]] = {
    "matrix": (TWO.view(np.matrix), TWO, lambda v: float((v**2)[0, 0])),
    "large matrix": (LARGE.view(np.matrix), LARGE, lambda v: v[0].ndim),
    "mask": (np.ma.array([1, 999_999], mask=[0, 1]), np.ma.array([1, 999_999], mask=[0, 0]),
             lambda v: float(v.sum())),
    "no mask": (np.ma.array([1, 999_999], mask=[0, 1]), np.ma.array([1, 999_999]),
                lambda v: float(v.sum())),
    "fill value": (np.ma.array([1, 2], mask=[0, 1], fill_value=3),
                   np.ma.array([1, 2], mask=[0, 1], fill_value=4), lambda v: float(v.filled()[1])),
    "recarray": (np.rec.array([(1.0,)], dtype=RECORD), np.array([(1.0,)], dtype=RECORD),
                 lambda v: 1.0 + isinstance(v, np.recarray)),
    "records": (np.array([(1.0,)], dtype=np.dtype((np.record, RECORD))),
                np.array([(1.0,)], dtype=RECORD), lambda v: 1.0 + isinstance(v[0], np.record)),
    "attribute of an array": (with_factor(np.ones(2), Units, 2.0),
                              with_factor(np.ones(2), Units, 3.0), lambda v: v.factor),
    "objects": (np.array([Fraction(1, 2)]), np.array([Fraction(1, 4)]), lambda v: float(v[0])),
    "lists": (np.array([[1], 0], object), np.array([[2], 0], object), lambda v: float(v[0][0])),
    "times": (np.timedelta64(1, "s"), np.timedelta64(1, "h"),
              lambda v: float(v / np.timedelta64(1, "s"))),
    "void": (np.array([(1.0,)], RECORD)[0], np.ones(1).view([("a", "i8")])[0],
             lambda v: float(v[0])),
    "maxlen": (deque([1.0], maxlen=2), deque([1.0]), lambda v: 3.0 if v.maxlen else 2.0),
    "default_factory": (defaultdict(lambda: 2.0), defaultdict(lambda: 3.0),
                        lambda v: v.default_factory()),
    "read-only memory": (memoryview(b"a"), memoryview(bytearray(b"a")), lambda v: 2 + v.readonly),
    "attribute of a list": (with_factor([1.0], Numbers, 2.0), with_factor([1.0], Numbers, 3.0),
                            lambda v: v.factor),
    "method of a dict": (with_factor({"a": 1.0}, Table, 2.0), with_factor({"a": 1.0}, Table, 3.0),
                         lambda v: v.scale()),
}  # fmt: skip


@pytest.mark.parametrize("kind", STATES)
def test_values_of_equal_bytes_in_another_state_cause_a_new_capture(kind: str) -> None:
    before, after, number_of = STATES[kind]
    for first, second in ((before, after), (after, before)):
        captured, plain = result(lambda o, x: number_of(o), first, second)
        assert captured == plain
        captured, plain = result(lambda o, x: number_of(o["k"][0]), {"k": [first]}, {"k": [second]})
        assert captured == plain


def test_array_of_objects_is_not_compared_by_their_addresses() -> None:
    held = np.array([Fraction(1, 2)])
    f = dt.jit(lambda x: x * float(held[0]))
    for k in range(2, 20):  # a new fraction may be where an earlier one was
        held[0] = None
        held[0] = Fraction(1, k)
        assert f(dt.ones(2)).tolist() == pytest.approx([1 / k] * 2)


@pytest.mark.parametrize("kind", [lambda v: np.array(v).view(np.matrix), np.ma.array, np.array])
def test_array_of_equal_class_and_contents_causes_no_capture(kind: Callable[[Any], Any]) -> None:
    held = kind([[1.0, 2.0]])
    f = dt.jit(lambda x: x * float(held.sum()))
    for _ in range(4):
        f(dt.ones(2))
        held = kind([[1.0, 2.0]])
    assert f.captures == 1


@pytest.mark.parametrize("kind", SIZED)
def test_other_value_of_any_kind_causes_a_new_capture(kind: str) -> None:
    before, after, number_of = SIZED[kind]
    captured, plain = result(lambda o, x: number_of(o), before, after)
    assert captured == plain
    captured, plain = result(lambda o, x: number_of(o["k"][0]), {"k": [before]}, {"k": [after]})
    assert captured == plain


FUNCTIONS: dict[str, Callable[[float], Callable[[dt.Tensor], dt.Tensor]]] = {
    "lambda": lambda k: lambda x: x * k,
    "partial": lambda k: functools.partial(dt.multiply, k),
    "jit": lambda k: dt.jit(lambda x: x * k),
    "vmap": lambda k: dt.vmap(lambda x: x * k),
    "grad": lambda k: dt.func.grad(lambda x: (x * x * k).sum()),
    "elementwise": lambda k: dt.elementwise(lambda x: x * k),
    "layer": dt.nn.LeakyReLU,
    "layers": lambda k: dt.nn.Sequential(dt.nn.ReLU(), dt.nn.ELU(k)),
    "loss": lambda k: functools.partial(
        dt.nn.MSELoss(reduction="sum" if k > 2 else "mean"), dt.ones(4)
    ),
    "distribution": lambda k: dt.distributions.Normal(0.0, k).log_prob,
    "transform": lambda k: dt.distributions.transforms.AffineTransform(0.0, k),
}


@pytest.mark.parametrize("where", [lambda f: f, lambda f: [f], lambda f: {"act": (f,)}, Holder])
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_other_function_causes_a_new_capture(kind: str, where: Callable[[Any], Any]) -> None:
    def use(o: Any, x: dt.Tensor) -> Any:
        if type(o) is list:
            return o[0](-x)
        if type(o) is dict:
            return o["act"][0](-x)
        return (o.w if type(o) is Holder else o)(-x)

    captured, plain = result(use, where(FUNCTIONS[kind](2.0)), where(FUNCTIONS[kind](3.0)))
    assert captured == plain


def test_built_in_function_of_dovetail_is_compared() -> None:
    captured, plain = result(lambda o, x: o(x), dt.exp, dt.sin)
    assert captured == plain


def test_object_of_another_class_causes_a_new_capture() -> None:
    first = type("First", (), {"go": lambda self, v: v * 3})
    second = type("Second", (), {"go": lambda self, v: v * 4})
    captured, plain = result(lambda o, x: o.go(x), first(), second())
    assert captured == plain


def test_other_generator_draws_its_own_numbers() -> None:
    generator = dt.random.default_rng(1)

    def f() -> dt.Tensor:
        return generator.normal(size=(4,))

    captured = dt.jit(f)
    for _ in range(2):
        captured()
    generator = dt.random.default_rng(2)
    drawn = captured().tolist()
    generator = dt.random.default_rng(2)
    assert drawn == f().tolist()


def test_setting_of_a_layer_that_changes_causes_a_new_capture() -> None:
    net = dt.nn.Sequential(dt.nn.Linear(4, 4), dt.nn.LeakyReLU(0.1))
    f, x = dt.jit(lambda x: net(x)), dt.full((4,), -2.0)
    f(x), f(x)
    net[1].negative_slope = 0.5
    assert f(x).tolist() == net(x).tolist()
    assert f.captures == 2


def test_nested_setting_of_a_layer_that_changes_causes_a_new_capture() -> None:
    layer = dt.nn.AvgPool1d(2)
    f, x = dt.jit(lambda x: layer(x)), dt.arange(12.0).reshape((1, 2, 6))
    layer.kernel_size = [[2]][0]
    f(x), f(x)
    layer.kernel_size = [3]
    layer.stride = [3]
    assert f(x).tolist() == layer(x).tolist()


def test_network_of_the_same_settings_causes_no_capture() -> None:
    net = dt.nn.Sequential(dt.nn.Linear(4, 4), dt.nn.LeakyReLU(0.1))
    f, x = dt.jit(lambda x: net(x)), dt.full((4,), -2.0)
    f(x)
    net = dt.nn.Sequential(dt.nn.Linear(4, 4), dt.nn.LeakyReLU(0.1))
    assert f(x).tolist() == net(x).tolist()
    assert f.captures == 1


def test_attribute_that_no_code_reads_causes_no_capture() -> None:
    class Counting(dt.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.epoch = 0

        def forward(self, x: dt.Tensor) -> dt.Tensor:
            return x * 2

    net, x = Counting(), dt.ones(4)
    f = dt.jit(lambda x: net(x))
    for net.epoch in range(3):
        f(x)
    assert f.captures == 1


@pytest.mark.parametrize("kind", [list, dict, set])
def test_container_that_the_function_fills_itself_causes_no_capture(kind: type) -> None:
    log = kind()
    add = {
        list: lambda: log.append(len(log)),
        dict: lambda: log.update({len(log): 1}),
        set: lambda: log.add(len(log)),
    }[kind]

    @dt.jit
    def f(x: dt.Tensor) -> dt.Tensor:
        add()
        return x + 1

    add()
    for shape in [(2,), (3,)] * 3:
        f(dt.ones(shape))
    assert f.captures == 2


def test_large_array_is_compared_by_shape_unless_a_tensor_is_made_of_it() -> None:
    held = np.zeros(100_000)
    f = dt.jit(lambda x: x + held.shape[0])
    f(dt.ones(2))
    held[0] = 1.0
    f(dt.ones(2))
    assert f.captures == 1
    held = np.zeros(100_001)
    assert f(dt.ones(2)).tolist() == [100_002.0, 100_002.0]


@pytest.mark.parametrize("kind", [list, dict])
def test_large_container_is_compared_by_its_length(kind: type) -> None:
    held = [1.0] * 10_001 if kind is list else dict.fromkeys(range(10_001), 1.0)
    f = dt.jit(lambda x: x + len(held))
    f(dt.ones(2))
    held[0] = 2.0
    f(dt.ones(2))
    assert f.captures == 1
    if kind is list:
        held.append(1.0)
    else:
        held[-1] = 1.0
    assert f(dt.ones(2)).tolist() == [10_003.0, 10_003.0]


@pytest.mark.parametrize("kind", [list, np.array])
def test_body_of_a_loop_raises_if_its_number_changed_before_backward(
    kind: Callable[[Any], Any],
) -> None:
    factors = kind([2.0])

    @dt.jit
    def f(x: dt.Tensor) -> dt.Tensor:
        x = (x * 1).detach().requires_grad_()
        y = dt.fori_loop(0, 3, lambda i, v: v * float(factors[0]), x)
        factors[0] = 3.0
        y.sum().backward()
        return x.grad

    with pytest.raises(dt.GradientError, match="which has changed since the loop ran"):
        f(dt.ones(2))


# --- tensors of dt.constant -----------------------------------------------------------------------


@pytest.mark.parametrize("reads_gradient", [False, True])
def test_gradient_of_a_constant_is_added_at_each_call(
    device: dt.Device, reads_gradient: bool
) -> None:
    def run(wrap: Callable[[Any], Any]) -> tuple[list[Any], list[Any]]:
        held = {1: dt.ones(2).requires_grad_()}
        get = held.__getitem__

        def f(x: dt.Tensor) -> dt.Tensor:
            (x * dt.constant(get(1))).sum().backward()
            return dt.constant(get(1)).grad * 2 if reads_gradient else x + 1

        g = wrap(f)
        results = [g(dt.full((2,), k + 1.0)).tolist() for k in range(4)]
        return results, held[1].grad.tolist()

    assert run(dt.jit) == run(lambda f: f)


def test_gradient_flows_to_a_constant(device: dt.Device) -> None:
    w = dt.ones(2).requires_grad_()
    get = {1: w}.__getitem__
    f = dt.jit(lambda x: (x * x * dt.constant(get(1))).sum())
    for k in range(3):
        f(dt.full((2,), k + 1.0)).backward()
    assert w.grad.tolist() == [14.0, 14.0]
    assert f.captures >= 1
