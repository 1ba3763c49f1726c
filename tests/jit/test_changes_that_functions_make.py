"""Captured functions that change what they did not make: results and changes as of plain calls."""

from __future__ import annotations

import threading
from collections import OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import dovetail as dt
import numpy as np
import optree
import pytest
from optree.registry import __GLOBAL_NAMESPACE as GLOBAL

Jit = Callable[[Callable[..., Any]], Callable[..., Any]]
Call = Callable[[int], object]
CALLS = 5

makers: dict[str, Callable[[Jit], Call]] = {}


def program(make: Callable[[Jit], Call]) -> Callable[[Jit], Call]:
    """Add a function that makes state, and returns a call that gives results and state."""
    makers[make.__name__] = make
    return make


def describe(value: object) -> object:
    """Return a value without tensors, to compare two calls."""
    if isinstance(value, dt.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, (list, tuple, deque)):
        return type(value).__name__, [describe(x) for x in value]
    if isinstance(value, (dict, UserDict)):
        return type(value).__name__, [(k, describe(x)) for k, x in value.items()]
    if isinstance(value, SimpleNamespace):
        return describe(vars(value))
    return type(value).__name__, repr(value)


def run(make: Callable[[Jit], Call], jit: Jit) -> list[object]:
    """Return what the calls of a program give."""
    call = make(jit)
    return [describe(call(i)) for i in range(1, CALLS + 1)]


# --- containers among the arguments
@program
def list_that_grows(jit: Jit) -> Call:
    seen: list[Any] = []

    def f(x: Any, items: list[Any]) -> Any:
        items.append(x * 2)
        return x + 1

    g = jit(f)
    return lambda i: (g(dt.ones(2) * i, seen), seen)


@program
def nested_containers(jit: Jit) -> Call:
    state: dict[str, Any] = {"a": [dt.zeros(2), {"b": dt.ones(2)}], "lr": 0.5}

    def f(x: Any, s: dict[str, Any]) -> Any:
        s["a"][-1]["b"] = x
        s["a"].insert(0, {"new": x * 3})
        s["lr"] *= 0.5
        s["history"] = [*s.get("history", ()), s["lr"]]
        return x * s["lr"]

    g = jit(f)
    return lambda i: (g(dt.ones(2) * i, state), state)


@program
def other_kinds_of_containers(jit: Jit) -> Call:
    queue = deque([dt.zeros(2)], maxlen=2)
    order: Any = OrderedDict(b=dt.ones(2), a=dt.zeros(2))
    groups = defaultdict[str, list[Any]](list)

    def f(x: Any, q: Any, o: Any, *, d: Any) -> Any:
        q.append(x)
        o.move_to_end("b" if next(iter(o)) == "b" else "a")
        d["x"].append(x)
        return sum(q) + len(d["x"])

    g = jit(f)
    return lambda i: (g(dt.ones(2) * i, queue, order, d=groups), queue, order, groups)


@program
def list_at_two_places(jit: Jit) -> Call:
    both: list[Any] = []

    def f(x: Any, a: list[Any], b: list[Any]) -> Any:
        a.append(x)
        return x * len(b)

    g = jit(f)
    return lambda i: (g(dt.ones(2), both, both), both)


@program
def list_that_is_returned(jit: Jit) -> Call:
    items: list[Any] = []

    def f(x: Any, xs: list[Any]) -> Any:
        xs.append(x)
        return xs

    g = jit(f)

    def call(i: int) -> object:
        result = g(dt.ones(2) * i, items)
        result.append(i)
        return result, items

    return call


@program
def list_changed_before_an_error(jit: Jit) -> Call:
    items: list[Any] = []

    def f(x: Any, xs: list[Any]) -> Any:
        xs.append(x)
        raise ValueError

    g = jit(f)

    def call(i: int) -> object:
        with pytest.raises(ValueError, match=r"^$"):
            g(dt.ones(2) * i, items)
        return items

    return call


# --- tensors that change their places
@program
def buffers_swapped_in_a_dict(jit: Jit) -> Call:
    d = {"a": dt.zeros(2), "b": dt.ones(2)}

    def f(x: Any) -> Any:
        d["a"] += x
        d["a"], d["b"] = d["b"], d["a"]
        return d["a"] * 1

    g = jit(f)
    return lambda i: (g(dt.ones(2) * i), d)


@program
def buffers_swapped_in_variables(jit: Jit) -> Call:
    a, b = dt.zeros(2), dt.ones(2)

    def f(x: Any) -> Any:
        nonlocal a, b
        a[...] = b * 2 + x
        a, b = b, a
        return b + 0

    g = jit(f)
    return lambda i: (g(dt.ones(2) * i), a, b)


@program
def buffers_swapped_in_attributes(jit: Jit) -> Call:
    s = SimpleNamespace(u=dt.zeros(3), v=dt.ones(3))

    def f() -> None:
        s.u[...] = s.v + 1
        s.u, s.v = s.v, s.u

    g = jit(f)
    return lambda i: (g(), s)


@program
def list_of_buffers_reversed(jit: Jit) -> Call:
    buffers = [dt.zeros(3), dt.ones(3)]

    def f() -> Any:
        buffers[0][...] = buffers[1] + 1
        buffers.reverse()
        return buffers[0] + 0

    g = jit(f)
    return lambda i: (g(), buffers)


@program
def first_argument_kept(jit: Jit) -> Call:
    s = {"mean": None}

    def f(x: Any) -> Any:
        s["mean"] = x if s["mean"] is None else 0.5 * s["mean"] + 0.5 * x
        return s["mean"] * 1

    g = jit(f)
    return lambda i: (g(dt.ones(2) * i), s)


@program
def arguments_kept_in_a_list(jit: Jit) -> Call:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append(x)
        return x * 2

    g = jit(f)
    return lambda i: (g(dt.ones(2) * i), seen)


@program
def mode_of_a_network(jit: Jit) -> Call:
    net = dt.nn.Dropout(0.5)

    def f(x: Any) -> Any:
        net.eval()
        return net(x)

    g = jit(f)

    def call(i: int) -> object:
        net.train()
        return g(dt.ones(4) * i), net.training

    return call


# --- numbers that depend on a float argument
@program
def float_stored_in_places(jit: Jit) -> Call:
    s, items, total = SimpleNamespace(old=0.0), [0.0], 0.0

    def f(x: Any, r: float) -> Any:
        nonlocal total
        s.old, s.new = r * 2, r * 3
        items.append(r)
        s.pair = (s.old, [(r,)])
        total += r
        return x * r

    g = jit(f)
    return lambda i: (g(dt.ones(2), i * 1.5), s, items, total)


# --- state of functions that read values
@program
def attribute_of_the_function(jit: Jit) -> Call:
    def f(x: Any) -> Any:
        if (x > 0).all():
            f.n += 1  # type: ignore[attr-defined]  # of the test
        return x * f.n  # type: ignore[attr-defined]  # of the test

    f.n = 0  # type: ignore[attr-defined]  # of the test
    g = jit(f)
    return lambda i: (g(dt.ones(2)), f.n)  # type: ignore[attr-defined]  # of the test


@program
def private_attribute_of_the_captured_function(jit: Jit) -> Call:
    @jit
    def f(x: Any) -> Any:
        if (x > 0).all():
            f._n = getattr(f, "_n", 0) + 1  # type: ignore[attr-defined]  # of the test
        return x * f._n  # type: ignore[attr-defined]  # of the test

    return lambda i: (f(dt.ones(2)), f._n)  # type: ignore[attr-defined]  # of the test


@program
def attribute_that_was_not_there(jit: Jit) -> Call:
    s = SimpleNamespace()

    def f(x: Any) -> Any:
        if (x > 0).all() and not hasattr(s, "seen"):
            s.seen = True
            return x * 10
        return x

    g = jit(f)
    return lambda i: (g(dt.ones(2)), s)


@program
def array_of_numpy(jit: Jit) -> Call:
    count = np.zeros(2)

    def f(x: Any) -> Any:
        if (x > 0).all():
            count[0] += 1
        return x

    g = jit(f)
    return lambda i: (g(dt.ones(2)), count.tolist())


@program
def variable_of_a_context(jit: Jit) -> Call:
    v = ContextVar("v", default=0)

    def f(x: Any) -> Any:
        if (x > 0).all():
            v.set(v.get() + 1)
        return x * v.get()

    g = jit(f)
    return lambda i: (g(dt.ones(2)), v.get())


@program
def variable_of_a_context_set_between(jit: Jit) -> Call:
    v = ContextVar("v", default=0)
    g = jit(lambda x: x * v.get())

    def call(i: int) -> object:
        v.set(i)
        return g(dt.ones(2))

    return call


# --- results that a replay cannot renew
@program
def generator_function(jit: Jit) -> Call:
    def f(x: Any) -> Iterator[Any]:
        for k in range(3):
            yield x * k

    g = jit(f)
    return lambda i: [*g(dt.ones(2) * i)]


@program
def array_of_numpy_as_result(jit: Jit) -> Call:
    g = jit(lambda x: (np.arange(3.0), x * 2))

    def call(i: int) -> object:
        a, x = g(dt.ones(2) * i)
        a += 1
        return a.tolist(), x

    return call


@program
def list_with_another_name(jit: Jit) -> Call:
    both: list[Any] = [dt.ones(2)]

    def f(x: Any, items: list[Any]) -> Any:
        both.append(len(items))
        items[0] = items[0] * 2
        return both[0] + x

    g = jit(f)
    return lambda i: (g(dt.ones(2) * i, both), both)


@program
def list_of_floats_with_another_name(jit: Jit) -> Call:
    rates = [0.5]

    def f(x: Any, items: list[float]) -> Any:
        items[0] *= 0.5
        return x * rates[0]

    g = jit(f)
    return lambda i: (g(dt.ones(2) * i, rates), rates)


class Log:
    """A class that is registered as a container."""

    def __init__(self, lines: list[Any], weight: Any) -> None:
        self.lines, self.weight = lines, weight


optree.register_pytree_node(
    Log, lambda s: ((s.lines, s.weight), None), lambda _, c: Log(*c), namespace=GLOBAL
)


@program
def registered_container(jit: Jit) -> Call:
    log = Log([], dt.ones(2))

    def f(s: Log) -> Any:
        s.lines.append(1)
        s.weight = s.weight * 2
        return s.weight + 0

    g = jit(f)
    return lambda i: (g(log), log.lines, log.weight)


@program
def new_objects_as_results(jit: Jit) -> Call:
    g = jit(lambda x: (x + 1, {1}, SimpleNamespace(n=0), bytearray(2)))

    def call(i: int) -> object:
        x, numbers, space, text = g(dt.ones(2))
        before = [*numbers], space.n, bytes(text)
        numbers.add(i)
        space.n = text[0] = i
        return x, before

    return call


@program
def objects_in_a_context_variable(jit: Jit) -> Call:
    variable: ContextVar[Any] = ContextVar("variable")
    g = jit(lambda x: x * variable.get().n)

    def call(i: int) -> object:
        variable.set(None)  # so that the next object may have the address of the last one
        variable.set(SimpleNamespace(n=i))
        return g(dt.ones(2))

    return call


@program
def float_stored_before_an_error(jit: Jit) -> Call:
    state = SimpleNamespace(rate=0.0)

    def f(x: Any, rate: float) -> Any:
        state.rate = rate
        raise ValueError(rate)

    g = jit(f)

    def call(i: int) -> object:
        with pytest.raises(ValueError) as error:
            g(dt.ones(2), i / 2)
        return type(state.rate), state, error.value.args

    return call


@pytest.mark.parametrize("name", [*makers])
@pytest.mark.filterwarnings("ignore:dt.jit of:dovetail.DovetailWarning")
def test_function_changes_what_a_plain_call_changes(name: str) -> None:
    assert run(makers[name], dt.jit) == run(makers[name], lambda f: f)


def test_function_that_returns_a_function_of_an_argument_raises() -> None:
    f = dt.jit(lambda x: lambda: x + 1)
    with pytest.raises(dt.CaptureError, match="function that leads to a new tensor or an argument"):
        f(dt.ones(2))


def test_change_of_an_argument_warns_once_and_raises_with_fullgraph() -> None:
    def f(x: Any, items: list[Any]) -> Any:
        items.append(x)
        return x

    captured = dt.jit(f)
    with pytest.warns(dt.DovetailWarning, match="it changes a list or dict among its arguments"):
        captured(dt.ones(2), [])
    captured(dt.ones(2), [])  # a second warning would be an error
    assert captured.captures == 0
    with pytest.raises(dt.CaptureError, match="it changes a list or dict among its arguments"):
        dt.jit(f, fullgraph=True)(dt.ones(2), [])


def test_list_at_two_places_that_stays_unchanged_is_captured() -> None:
    f = dt.jit(lambda a, b: a[0] + b[0], fullgraph=True)
    items = [dt.ones(2)]
    assert [f(items, items).tolist() for _ in range(3)] == [[2.0, 2.0]] * 3
    assert f.captures == 1


def test_tuple_of_floats_at_two_places_is_captured() -> None:
    f = dt.jit(lambda x, a, b: x * a[0] + b[0], fullgraph=True)
    rates = (0.5,)
    assert f(dt.ones(1), rates, rates).tolist() == [1.0]
    assert f(dt.ones(1), (2.0,), (0.5,)).tolist() == [2.5]
    assert f.captures == 1


def test_list_of_floats_at_two_places_warns_and_raises_with_fullgraph() -> None:
    def function(x: Any, a: list[float], b: list[float]) -> Any:
        return x * a[0] + b[0]

    rates = [0.5]
    with pytest.warns(dt.DovetailWarning, match="a list or dict with floats is an argument twice"):
        assert dt.jit(function)(dt.ones(1), rates, rates).tolist() == [1.0]
    with pytest.raises(dt.CaptureError, match="is an argument twice or has other names; pass a"):
        dt.jit(function, fullgraph=True)(dt.ones(1), rates, rates)


def test_uncaptured_calls_of_threads_run_at_once() -> None:
    barrier = threading.Barrier(2, timeout=20)
    rates, met = [0.5], list[int]()
    f = dt.jit(lambda a, b: met.append(barrier.wait()))
    with pytest.warns(dt.DovetailWarning):
        threads = [threading.Thread(target=f, args=(rates, rates)) for _ in range(2)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert sorted(met) == [0, 1]


def test_containers_that_stay_unchanged_are_captured() -> None:
    f = dt.jit(lambda s: s["w"] * s["lr"])
    state = {"w": dt.ones(2), "lr": 0.5}
    for lr in (0.5, 0.25):
        state["lr"] = lr
        assert f(state).tolist() == [lr, lr]
    assert f.captures == 1
    assert type(state["lr"]) is float


def test_attribute_of_a_captured_function_is_read_again() -> None:
    @dt.jit
    def f(x: Any) -> Any:
        return x * f.scale  # type: ignore[attr-defined]  # of the test

    for scale in (2, 3, 3):
        f.scale = scale  # type: ignore[attr-defined]  # of the test
        assert f(dt.ones(2)).tolist() == [scale, scale]
    assert f.captures == 2
    threads = [threading.Thread(target=f, args=(dt.ones(2),)) for _ in range(2)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert f.captures == 2
