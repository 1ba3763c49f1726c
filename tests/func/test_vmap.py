"""`dt.vmap`: axes, unsupported functions, writes, random numbers, gradients through it and in
it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import dovetail as dt
import numpy as np
import optree
import pytest
from dovetail.func.batching import BatchMap


def normal(*shape: int, seed: int = 0, dtype: str = "f4") -> dt.Tensor:
    return dt.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def loop(function: Callable[..., Any], *args: dt.Tensor) -> dt.Tensor:
    return dt.stack([function(*[a[n] for a in args]) for n in range(args[0].shape[0])])


def equal(a: dt.Tensor, b: dt.Tensor) -> bool:
    return a.shape == b.shape and a.dtype is b.dtype and a.tolist() == b.tolist()


# --- axes


@pytest.mark.parametrize(("inside", "outside"), [(0, 0), (1, 0), (2, 1), (-1, -1), (0, 2), (1, -2)])
def test_axes_of_arguments_and_results(inside: int, outside: int, device: dt.Device) -> None:
    x = normal(3, 4, 5)
    found = dt.vmap(lambda a: a * 2 + a.sum(), in_axes=inside, out_axes=outside)(x)
    want = dt.stack([a * 2 + a.sum() for a in dt.unstack(x, axis=inside)], axis=outside)
    assert equal(found, want)


def test_axes_in_containers_and_by_name(device: dt.Device) -> None:
    x, y = normal(3, 4), normal(4, 3, seed=1)

    def f(given: dict[str, Any], *, scale: dt.Tensor) -> tuple[dt.Tensor, dict[str, dt.Tensor]]:
        return given["x"] * scale, {"y": given["rest"][0] + given["rest"][1]}

    a, b = dt.vmap(f, in_axes=({"x": 0, "rest": (1, None)},), out_axes=(1, {"y": 0}))(
        {"x": x, "rest": (y, 2.0)}, scale=dt.arange(3)
    )
    assert equal(a, (x * dt.arange(3)[:, None]).T.copy()) and equal(b["y"], (y.T + 2.0).copy())


class Pair(NamedTuple):
    x: Any
    y: Any


class Reversed(NamedTuple):
    y: Any
    x: Any


class Registered:
    """A container that flattens to `y` and `x`, in this order."""

    def __init__(self, x: Any, y: Any, name: str = "registered") -> None:
        self.x, self.y, self.name = x, y, name


@pytest.fixture
def registered() -> Iterator[None]:
    """Register the class where `flatten` finds it, in the global namespace of optree."""
    namespace = vars(optree.registry)["__GLOBAL_NAMESPACE"]
    optree.register_pytree_node(
        Registered,
        lambda r: ((r.y, r.x), r.name),
        lambda name, children: Registered(children[1], children[0], name),
        namespace=namespace,
    )
    yield
    optree.unregister_pytree_node(Registered, namespace=namespace)


MAPPINGS: dict[str, Callable[[dict[Any, Any]], Any]] = {
    "dict": dict,
    "OrderedDict": OrderedDict,
    "defaultdict": lambda items: defaultdict(int, items),
}


@pytest.mark.parametrize("axes_type", MAPPINGS)
@pytest.mark.parametrize("value_type", MAPPINGS)
@pytest.mark.parametrize("keys", [("b", "a"), (1, "a"), ((0,), None)])
def test_axes_of_mappings_match_by_key(
    value_type: str, axes_type: str, keys: tuple[Any, Any], device: dt.Device
) -> None:
    k, m = keys
    x, y = normal(3), normal(5, seed=1)
    value, axes = MAPPINGS[value_type], MAPPINGS[axes_type]

    def f(items: Any) -> Any:
        return value({k: items[k] * items[m], m: items[k] + items[m].sum()})

    found = dt.vmap(f, in_axes=(axes({m: None, k: 0}),), out_axes=axes({m: 0, k: 1}))(
        value({k: x, m: y})
    )
    assert type(found) is type(value({})) and [*found] == [k, m]
    assert equal(found[k], (x * y[:, None]).copy()) and equal(found[m], x + y.sum())


@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_out_axes_of_mappings_match_by_key_in_chunks(chunk: int | None, device: dt.Device) -> None:
    x = normal(3, 2)
    found = dt.vmap(
        lambda row: defaultdict(int, {"b": row * 2, "a": row.sum()}),
        out_axes={"a": 0, "b": 1},
        chunk_size=chunk,
    )(x)
    assert equal(found["b"], (x.T * 2).copy()) and equal(found["a"], x.sum(axis=1))


@pytest.mark.parametrize(
    ("value", "axes"),
    [
        (lambda x, y: (x, y), (0, None)),
        (lambda x, y: [x, y], deque([0, None])),
        (lambda x, y: deque([x, y]), [0, None]),
        (Pair, (0, None)),
        (Pair, Pair(0, None)),
        (Registered, Registered(0, None)),
    ],
)
@pytest.mark.usefixtures("registered")
def test_axes_of_other_containers_match_by_position_or_type(
    value: Callable[..., Any], axes: Any, device: dt.Device
) -> None:
    x, y = normal(3), normal(5, seed=1)

    def f(pair: Any) -> Any:
        a, b = (pair.x, pair.y) if hasattr(pair, "x") else pair
        return value(a * b, a + b.sum())

    found = dt.vmap(f, in_axes=(axes,))(value(x, y))
    a, b = (found.x, found.y) if hasattr(found, "x") else found
    assert equal(a, (x[:, None] * y).copy()) and equal(b, x + y.sum())


@pytest.mark.parametrize(
    ("axes", "value", "text"),
    [
        ({"a": 0, "c": 0}, {"a": 1, "b": 2}, r"a dict of \['a', 'b'\], got a dict of \['a', 'c'\]"),
        ({"a": 0}, {"a": 1, "b": 2}, r"a dict of \['a', 'b'\], got a dict of \['a'\]"),
        ((0, 0), {"a": 1, "b": 2}, r"a dict of \['a', 'b'\], got a tuple of 2"),
        ((0,), (1, 2), "a tuple of 2, got a tuple of 1"),
        (Reversed(0, None), Pair(1, 2), r"a Pair of \['x', 'y'\], got a Reversed of \['y', 'x'\]"),
        ((0, None), Registered(1, 2), "a Registered of 2, got a tuple of 2"),
        (Registered(0, 0, "other"), Registered(1, 2), "got a Registered of 2 with other metadata"),
        ((0, 0), 1.0, r"an int or None for a value that is no container, got \(0, 0\)"),
        ((0, 0), None, "an int or None for a value that is no container"),
        ((0, 0), Counter("ab"), "an int or None for a value that is no container"),
        ({"a": "b"}, {"a": 1}, "in_axes must be an int, got 'b'"),
    ],
)
@pytest.mark.usefixtures("registered")
def test_axes_that_do_not_match_a_container_raise(axes: Any, value: Any, text: str) -> None:
    with pytest.raises(dt.ArgumentError, match=text):
        dt.vmap(lambda x, _: x, in_axes=(0, axes))(normal(3), value)


def test_shared_result_is_repeated_or_returned_once(device: dt.Device) -> None:
    x, w = normal(3, 2), normal(2, seed=1)
    assert equal(dt.vmap(lambda _: w * 2)(x), dt.stack([w * 2] * 3))
    assert equal(dt.vmap(lambda _: w * 2, out_axes=None)(x), w * 2)
    with pytest.raises(dt.ArgumentError, match="out_axes must be"):
        dt.vmap(lambda a: a, out_axes=None)(x)
    repeated = dt.vmap(lambda _: w)(x)
    repeated[0] = 0.0  # memory of its own
    assert w.tolist() != [0.0, 0.0] and repeated[1].tolist() == w.tolist()


def test_nested_vmap(device: dt.Device) -> None:
    x, y = normal(3, 4), normal(5, 4, seed=1)
    pairs = dt.vmap(dt.vmap(lambda a, b: (a * b).sum(), in_axes=(None, 0)), in_axes=(0, None))
    assert equal(pairs(x, y), (x[:, None] * y[None]).sum(axis=-1))
    three = dt.vmap(dt.vmap(dt.vmap(lambda a: dt.sort(a) + x[0, 0])))
    assert equal(three(normal(2, 3, 4, 5)), dt.sort(normal(2, 3, 4, 5)) + x[0, 0])


def test_vmap_of_zero_examples_and_of_one(device: dt.Device) -> None:
    for n in (0, 1):
        found = dt.vmap(lambda a: dt.histogram(a, 3, range=(-1, 1))[0] + dt.sort(a)[:3])(
            normal(n, 4)
        )
        assert found.shape == (n, 3)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 9])
def test_chunk_size_does_not_change_results(chunk: int, device: dt.Device) -> None:
    x = normal(5, 4)
    f = dt.vmap(lambda a: {"s": a.sum(), "a": a * 2}, out_axes={"s": 0, "a": 1}, chunk_size=chunk)
    assert equal(f(x)["s"], x.sum(axis=1)) and equal(f(x)["a"], (x * 2).T.copy())


def test_vmap_needs_as_many_launches_as_one_example() -> None:
    with dt.device("reference"):
        x = normal(50, 4)
        f = lambda a: dt.exp(a) / dt.exp(a).sum()  # noqa: E731
        assert len(dt.explain(dt.vmap(f)(x)).launches) == len(dt.explain(f(x[0])).launches)


# --- errors


@pytest.mark.parametrize(
    "look",
    [
        float, lambda a: a.item(), lambda a: a.tolist(), lambda a: a.numpy(), bool,
        lambda a: a if a > 0 else -a, lambda a: range(int(a)), np.asarray, lambda a: a.storage(),
        lambda a: a.data_ptr(), lambda a: a.__dlpack__(), lambda a: dt.nonzero(a[None]),
    ],
)  # fmt: skip
def test_reading_the_value_of_an_example_raises_with_the_line(
    look: Callable[[Any], Any], device: dt.Device
) -> None:
    with pytest.raises(dt.TransformError) as caught:
        dt.vmap(look)(normal(3))
    assert "test_vmap.py:" in str(caught.value) or "numpy" in str(caught.value)
    assert "dt.where" in str(caught.value) and "3 examples" in str(caught.value)


def test_shared_value_may_be_read(device: dt.Device) -> None:
    w = dt.asarray([2.0, -1.0])

    def f(a: dt.Tensor) -> dt.Tensor:
        scale = float(w[0]) if w[1] < 0 else 1.0
        return a * scale * len(dt.nonzero(w)[0])

    assert equal(dt.vmap(f)(normal(3)), normal(3) * 4.0)


def test_write_of_an_example_to_an_outer_tensor_raises(device: dt.Device) -> None:
    kept, pending = dt.zeros(2).copy(), dt.ones(2) * 3
    dt.evaluate(kept)

    def write(a: dt.Tensor, to: dt.Tensor) -> dt.Tensor:
        to[0] = a.sum()
        return a

    def add(a: dt.Tensor, to: dt.Tensor) -> dt.Tensor:
        to += a
        return a

    for f in (write, add):
        for to in (kept, pending):
            with pytest.raises(
                dt.TransformError, match=r"test_vmap.py:\d+.*outside.*return the result"
            ):
                dt.vmap(f, in_axes=(0, None))(normal(3, 2), to)
    assert kept.tolist() == [0.0, 0.0] and pending.tolist() == [3.0, 3.0]


def test_example_used_after_the_function_returned_raises(device: dt.Device) -> None:
    kept = []
    dt.vmap(lambda a: kept.append(a * 2) or a)(normal(3, 2))
    with pytest.raises(dt.TransformError, match="after the function has returned"):
        kept[0].tolist()
    with pytest.raises(dt.TransformError, match="after the function has returned"):
        (kept[0] + 1).sum().item()


def test_bad_arguments_of_vmap_raise(device: dt.Device) -> None:
    x = normal(3, 2)
    with pytest.raises(dt.ShapeError, match=r"the same length, got \[2, 3\]"):
        dt.vmap(dt.add, in_axes=(0, 1))(x, x)
    with pytest.raises(dt.ArgumentError, match="one item per positional argument, 1, got 2"):
        dt.vmap(dt.sin, in_axes=(0, 0))(x)
    with pytest.raises(dt.ArgumentError, match="at least one argument must have an axis"):
        dt.vmap(dt.sin, in_axes=None)(x)
    with pytest.raises(dt.ArgumentTypeError, match="pass None for it in in_axes"):
        dt.vmap(dt.add)(x, 2.0)
    with pytest.raises(dt.AxisError):
        dt.vmap(dt.sin, in_axes=2)(x)
    with pytest.raises(dt.AxisError):
        dt.vmap(dt.sin, out_axes=2)(x)
    with pytest.raises(dt.ArgumentError, match="out_axes"):
        dt.vmap(dt.sin, out_axes=(0, 1))(x)
    with pytest.raises(dt.ArgumentTypeError, match="function"):
        dt.vmap(3)(x)
    with pytest.raises(dt.ArgumentTypeError, match="return tensors"):
        dt.vmap(lambda a: "no")(x)
    with pytest.raises(dt.ArgumentError, match="randomness"):
        dt.vmap(dt.sin, randomness="some")
    with pytest.raises(dt.LayoutError, match="to_dense"):
        dt.vmap(dt.sin)(x.to_sparse())
    with pytest.raises(dt.OutOfRangeError):
        dt.vmap(lambda a, i: a[i])(x, dt.asarray([0, 1, 7])).tolist()


def test_error_of_the_function_leaves_state_intact(device: dt.Device) -> None:
    with pytest.raises(ZeroDivisionError):
        dt.vmap(lambda a: a * (1 / 0))(normal(3))
    assert float(normal(3)[0]) == normal(3).tolist()[0]  # reading values is allowed again
    assert equal(dt.vmap(dt.sin)(normal(3)), dt.sin(normal(3)))


# --- writes


def test_write_to_an_argument_equals_a_loop(device: dt.Device) -> None:
    x, y = normal(3, 4).copy(), normal(3, 4).copy()

    def f(a: dt.Tensor) -> dt.Tensor:
        before = a * 1
        a[1:3] *= 2
        a += 1
        return before + a

    found, want = dt.vmap(f)(x), loop(f, y)
    assert equal(found, want) and equal(x, y)


def test_views_read_what_was_written(device: dt.Device) -> None:
    def f(a: dt.Tensor) -> dt.Tensor:
        r = a.copy()
        part, turned = r[::2], r.reshape((2, 2)).T
        part[0] = 7.0
        turned[1] += part
        return dt.concat([r, part, turned.reshape(-1)])

    x = normal(3, 4)
    assert equal(dt.vmap(f)(x), loop(f, x))


def test_tensor_created_inside_may_be_written(device: dt.Device) -> None:
    def f(a: dt.Tensor) -> dt.Tensor:
        r, n = dt.zeros((2, 3)), dt.asarray(np.ones(3, "f4"))
        r[0, :2] = a[:2]
        before = r + 1
        r[1] += a.sum()
        n.mul_(a)
        return before * r + n

    x = normal(4, 3)
    assert equal(dt.vmap(f)(x), loop(f, x))


# --- when work runs


def test_vmap_in_eager_mode_and_of_long_chains(device: dt.Device) -> None:
    def f(a: dt.Tensor) -> dt.Tensor:
        for k in range(150):
            a = dt.sin(a) + k
        return a

    x = normal(3, 4)
    assert equal(dt.vmap(f)(x), loop(f, x))
    g = lambda a: dt.softmax(a @ a[:, None] * a, axis=0)  # noqa: E731
    with dt.eager(), dt.vendor_products(False):
        assert equal(dt.vmap(g)(x), loop(g, x))


def test_vmap_inside_and_outside_of_jit(device: dt.Device) -> None:
    x, w = normal(3, 4), normal(4, seed=1)
    f = lambda a: dt.sort(a * w) + dt.cumulative_sum(a)  # noqa: E731
    captured = dt.jit(dt.vmap(f))
    for _ in range(3):
        assert equal(captured(x), loop(f, x))
    assert captured.captures == 1
    assert equal(captured(x * 2), loop(f, x * 2))
    assert equal(dt.vmap(dt.jit(f))(x), loop(f, x))
    with pytest.raises(dt.TransformError):
        dt.jit(dt.vmap(lambda a: a * float(a.sum())))(x)


def test_random_numbers_advance_in_captured_vmap(device: dt.Device) -> None:
    f = dt.vmap(lambda a: a + dt.random.uniform(2))
    captured, x = dt.jit(f), dt.zeros((3, 2))
    dt.random.manual_seed(5)
    want = [f(x).tolist() for _ in range(3)]
    dt.random.manual_seed(5)
    assert [captured(x).tolist() for _ in range(3)] == want


def test_randomness_same_different_and_error(device: dt.Device) -> None:
    x = dt.zeros((3, 2))
    draw = lambda a: a + dt.random.normal(2)  # noqa: E731
    rows = dt.vmap(draw, randomness="same")(x)
    assert len({str(r) for r in rows.tolist()}) == 1
    assert len({str(r) for r in dt.vmap(draw)(x).tolist()}) == 3
    with pytest.raises(dt.TransformError, match="randomness"):
        dt.vmap(draw, randomness="error")(x)
    dt.random.manual_seed(1)
    nested = dt.vmap(dt.vmap(lambda a: a + dt.random.uniform(2)))(dt.zeros((2, 3, 2)))
    dt.random.manual_seed(1)
    assert equal(nested, dt.random.uniform((2, 3, 2)))


# --- gradients


class Cube(dt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: dt.Tensor, w: dt.Tensor) -> dt.Tensor:
        r = x * x * x * w
        ctx.save_for_backward(x, w, r)
        return r

    @staticmethod
    def backward(ctx: Any, g: dt.Tensor) -> tuple[dt.Tensor, dt.Tensor]:
        x, w, r = ctx.saved_tensors
        return g * 3 * x * x * w, g * r / w


class Scaled(dt.autograd.Function):
    """Twice `w`, with a gradient that `x` scales: for each example another one."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: dt.Tensor) -> dt.Tensor:
        ctx.save_for_backward(x if isinstance(x, dt.Tensor) else x[0])
        return w * 2

    @staticmethod
    def backward(ctx: Any, g: dt.Tensor) -> tuple[None, dt.Tensor]:
        return None, g * ctx.saved_tensors[0]


@pytest.mark.parametrize("how", ["vmap", "jit"])
@pytest.mark.parametrize(
    "f",
    [
        lambda a, w: Scaled.apply(a, w) * 3,
        lambda a, w: Scaled.apply(a, w)[1:][::-1],
        lambda a, w: Scaled.apply([a], w),
        lambda a, w: Scaled.apply(a, Scaled.apply(a, w)[::-1]),
        lambda a, w: Scaled.apply(a, w) + a,
    ],
)
def test_gradient_of_a_shared_result_is_taken_for_each_example(
    f: Callable[[dt.Tensor, dt.Tensor], dt.Tensor], how: str, device: dt.Device
) -> None:
    x, found = normal(3, 4, dtype="f8"), []
    mapped = dt.vmap(f, in_axes=(0, None))
    for many in (
        dt.jit(mapped) if how == "jit" else mapped,
        lambda x, w: loop(lambda v: f(v, w), x),
    ):
        w = normal(4, seed=1, dtype="f8").requires_grad_()
        (many(x, w) ** 2).sum().backward()
        found.append(w.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-12)


LOSSES: list[Callable[[dt.Tensor, dt.Tensor], dt.Tensor]] = [
    lambda a, w: dt.tanh(a * w).sum(),
    lambda a, w: (dt.sort(a) * w).prod(),
    lambda a, w: (a[dt.asarray([0, 2, 2])] * w[:3]).sum() ** 2,
    lambda a, w: dt.linalg.solve(dt.diag(w * w + 1) + a[:, None] * a, a).sum(),
    lambda a, w: (dt.linalg.inv(dt.diag(a * a + 1))[1] * w).sum(),
    lambda a, w: (Cube.apply(a, w)[1:] * 2).sum(),
    lambda a, w: (a.detach() * w + a).sum(),
    lambda a, w: dt.softmax(a * w, axis=0)[0],
    lambda a, w: (dt.cumulative_sum(a * w) * dt.as_strided(a, (4,), (1,))).sum(),
]


@pytest.mark.parametrize("n", range(len(LOSSES)))
def test_gradients_through_vmap_equal_a_loop(n: int, device: dt.Device) -> None:
    f = LOSSES[n]
    given = [normal(3, 4, dtype="f8"), normal(4, seed=1, dtype="f8")]
    found = []
    for many in (dt.vmap(lambda a, w: f(a, w), in_axes=(0, None)),
                 lambda a, w: loop(lambda v: f(v, w), a)):  # fmt: skip
        x, w = (g.detach().requires_grad_() for g in given)
        first = dt.grad((many(x, w) ** 2).sum(), [x, w], create_graph=True)
        second = dt.grad(sum((g**2).sum() for g in first), [x, w], allow_unused=True)
        found.append([*first, *[g for g in second if g is not None]])
    assert len(found[0]) == len(found[1])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", range(len(LOSSES)))
def test_gradients_inside_vmap_equal_those_of_each_example(n: int, device: dt.Device) -> None:
    f, x, w = LOSSES[n], normal(3, 4, dtype="f8"), normal(4, seed=1, dtype="f8")
    g = dt.func.grad(f)
    with dt.vendor_products(False):
        assert equal(dt.vmap(g, in_axes=(0, None))(x, w), loop(lambda a: g(a, w), x))
        by_weights = dt.func.grad(f, 1)
        found = dt.vmap(by_weights, in_axes=(0, None))(x, w)
        assert equal(found, loop(lambda a: by_weights(a, w), x))


def test_closed_over_parameters_get_gradients(device: dt.Device) -> None:
    w = normal(4, 2, dtype="f8").requires_grad_()
    x = normal(3, 4, seed=1, dtype="f8")
    dt.vmap(lambda a: dt.tanh(a @ w))(x).sum().backward()
    found, w.grad = w.grad, None
    dt.tanh(x @ w).sum().backward()
    np.testing.assert_allclose(found.numpy(), w.grad.numpy(), rtol=1e-12)


def test_no_grad_inside_vmap_stops_gradients(device: dt.Device) -> None:
    x = normal(3, 4).requires_grad_()

    def f(a: dt.Tensor) -> dt.Tensor:
        with dt.no_grad():
            b = a * 3
        return a * b

    g = dt.grad(dt.vmap(f)(x).sum(), x)
    assert equal(g, (x * 3).detach())
    with dt.no_grad():
        assert not dt.vmap(f)(x).requires_grad


def test_op_without_a_batching_rule_runs_per_example(device: dt.Device) -> None:
    noted: list[list[str]] = []
    before = BatchMap.__init__

    def seen(self: BatchMap, size: int) -> None:
        before(self, size)
        noted.append(self.sequential_ops)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BatchMap, "__init__", seen)
        found = dt.vmap(lambda a: dt.searchsorted(dt.sort(a), a))(normal(3, 4))
    assert noted == [["searchsorted"]]
    assert equal(found, loop(lambda a: dt.searchsorted(dt.sort(a), a), normal(3, 4)))


@dt.kernel
def doubled(out: dt.Out, x: dt.In):  # type: ignore[no-untyped-def]
    for i in dt.grid(x.shape[0]):
        out[i] = x[i] * 2.0


@dt.elementwise
def tripled(x):  # type: ignore[no-untyped-def]
    return x * 3.0


def test_loop_kernels_raise_and_elementwise_kernels_run(device: dt.Device) -> None:
    def by_kernel(x: dt.Tensor) -> dt.Tensor:
        out = dt.zeros_like(x)
        doubled(out, x)
        return out

    x = dt.asarray([[1.0, 2.0], [3.0, 4.0]], device=device)
    for stream in (dt.current_stream(device), dt.Stream(device)):
        with dt.stream(stream):
            with pytest.raises(dt.TransformError, match=r"vmap: the kernel doubled.*test_vmap"):
                dt.vmap(by_kernel)(x)
            stream.synchronize()
    assert dt.vmap(tripled)(x).tolist() == [[3.0, 6.0], [9.0, 12.0]]
    assert by_kernel(x[0]).tolist() == [2.0, 4.0]  # nothing is left behind


def test_bincount_choose_and_expm_in_nested_vmap(device: dt.Device) -> None:
    rng = np.random.default_rng(0)
    i, w = rng.integers(0, 5, (2, 3, 7)), rng.random((2, 3, 7)).astype("f4")
    m = (rng.random((2, 3, 2, 2)) * 8).astype("f4")

    def one(i: Any, w: Any, m: Any) -> Any:
        counts = dt.bincount(i), dt.bincount(i, w, minlength=9)
        return *counts, dt.choose(i, [w, w * 2, 0.5, 1.0, w]), dt.linalg.expm(m)

    found = dt.vmap(dt.vmap(one))(*map(dt.asarray, (i, w, m)))
    assert found[0].shape == (2, 3, i.max() + 1) and found[1].shape == (2, 3, 9)
    for a, b in np.ndindex(2, 3):
        want = one(*[dt.asarray(v[a, b]) for v in (i, w, m)])
        assert found[0][a, b, : want[0].size].tolist() == want[0].tolist()
        assert not bool(found[0][a, b, want[0].size :].any())
        assert found[1][a, b].tolist() == want[1].tolist()
        assert found[2][a, b].tolist() == want[2].tolist()
        np.testing.assert_allclose(found[3][a, b].numpy(), want[3].numpy(), rtol=1e-5)


def test_choose_with_an_invalid_number_in_an_example_raises() -> None:
    x = dt.asarray([[0, 1], [1, 2]], device="reference")
    with pytest.raises(
        dt.OutOfRangeError, match=r"choose: indices must be between 0 and 1, got 0\.\.2"
    ):
        dt.vmap(lambda i: dt.choose(i, [5, 6]))(x)
    with pytest.raises(
        dt.ArgumentError, match="bincount: x must not hold negative elements, got -1"
    ):
        dt.vmap(dt.bincount)(x - 1)


def test_gradient_of_expm_of_each_example(device: dt.Device) -> None:
    m = dt.asarray(np.random.default_rng(1).random((3, 2, 2)))
    found = dt.vmap(dt.func.grad(lambda a: dt.linalg.expm(a).sum()))(m)
    for n in range(3):
        want = dt.func.grad(lambda a: dt.linalg.expm(a).sum())(m[n])
        np.testing.assert_allclose(found[n].numpy(), want.numpy(), rtol=1e-9)
