"""Registered subclasses of Tensor: what the core computes from them keeps the class."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import dovetail as dt
import numpy as np
import pytest
from dovetail.tensor.c_fields import is_strided, register_subclass, set_class


class Marked(dt.Tensor):
    """A subclass without fields."""

    __slots__ = ()


register_subclass(Marked)


def marked(values):
    return set_class(dt.asarray(values), Marked)


BINARY = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "divide": lambda a, b: a / b,
    "power": lambda a, b: a**b,
    "less": lambda a, b: a < b,
    "equal": lambda a, b: a == b,
    "matmul": lambda a, b: a @ b,
    "floor_divide": lambda a, b: a // b,
    "function": dt.maximum,
    "where": lambda a, b: dt.where(a > b, a, b),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_op_with_subclass_on_either_side_keeps_it(name):
    f = BINARY[name]
    for _ in range(3):  # the second and third find the caches of specs filled
        x, y = marked([1.0, 2.0, 3.0]), dt.asarray([3.0, 2.0, 1.0])
        assert type(f(x, y)) is type(f(y, x)) is type(f(x, x)) is Marked
        assert type(f(y, y)) is dt.Tensor
        assert f(x, y).tolist() == f(set_class(x + 0, dt.Tensor), y).tolist()


def test_operator_with_number_keeps_subclass():
    x = marked([1.0, 2.0])
    for y in (x + 1, 1 + x, 2.0 / x, x * 2.5, x**2, 2**x, -x, abs(x), x > 1, 1 - x):
        assert type(y) is Marked
    assert (1 - x).tolist() == [0.0, -1.0]


def test_views_reductions_and_gathers_keep_subclass():
    x = marked([[1.0, 2.0], [3.0, 4.0]])
    for y in (x[0], x[:, 1:], x.T, x.reshape(4), x.sum(), x.max(axis=0), x[x > 1], x[[1, 0]],
              x.detach(), dt.exp(x), dt.broadcast_to(x, (2, 2, 2))):  # fmt: skip
        assert type(y) is Marked
    x[0] = 7
    assert x.tolist() == [[7.0, 7.0], [3.0, 4.0]]
    x += 1
    assert type(x) is Marked and x.sum().item() == 25.0


def test_subclass_is_strided_and_other_objects_are_not():
    class Unregistered(dt.Tensor):
        __slots__ = ()

    assert is_strided(marked([1.0])) and is_strided(dt.ones(1))
    assert not is_strided(object.__new__(Unregistered))
    assert not is_strided(1.0) and not is_strided([1.0])


def test_register_subclass_with_fields_raises():
    class WithFields(dt.Tensor):
        pass

    with pytest.raises(TypeError, match=r"__slots__ = \(\)"):
        register_subclass(WithFields)


@pytest.mark.parametrize("x", [1.0, [1.0], np.ones(1), dt.sparse_coo], ids=repr)
def test_set_class_of_object_that_is_not_strided_raises(x):
    with pytest.raises(TypeError, match="set_class: expected a strided tensor"):
        set_class(x, Marked)


def test_set_class_of_other_layout_raises():
    x = dt.eye(2).to_sparse()
    kind = type(x)
    with pytest.raises(TypeError, match="set_class: expected a strided tensor"):
        set_class(x, dt.Tensor)
    assert type(x) is kind


def test_set_class_to_class_that_is_not_registered_raises():
    class Unregistered(dt.Tensor):
        __slots__ = ()

    x = dt.ones(1)
    for kind in (Unregistered, int, type(dt.eye(2).to_sparse())):
        with pytest.raises(TypeError, match="or a registered subclass"):
            set_class(x, kind)
    assert type(x) is dt.Tensor


def test_more_classes_than_free_lists_are_registered():
    for i in range(10):
        kind = type(f"Marked{i}", (dt.Tensor,), {"__slots__": ()})
        register_subclass(kind)
        register_subclass(kind)
        x = set_class(dt.asarray([1.0, float(i)]), kind)
        assert type(x + x) is type(x[1:]) is kind
        assert (x + x).tolist() == [2.0, 2.0 * i]


def test_copies_and_pickles_keep_subclass():
    x = marked([1.0, 2.0])
    copies = [copy.copy(x), copy.deepcopy(x), copy.deepcopy([x, x[:]])[1]]
    for y in [*copies, *(pickle.loads(pickle.dumps(x, protocol)) for protocol in (4, 5))]:
        assert type(y) is Marked and y.tolist() == [1.0, 2.0]
    assert type(pickle.loads(pickle.dumps(dt.ones(1)))) is dt.Tensor
    x.requires_grad_()
    (x * x).sum().backward()
    y = copy.deepcopy(x)
    assert type(y) is Marked and y.requires_grad and y.grad.tolist() == [2.0, 4.0]
    assert type(y.grad) is type(x.grad)


def test_gradient_flows_through_subclass():
    x = marked([1.0, 2.0]).requires_grad_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_captured_function_tells_classes_apart_and_keeps_results():
    @dt.jit
    def f(x):
        return x * 2, x.sum(), x[:1]

    plain = dt.asarray([1.0, 2.0])
    for _ in range(3):
        assert [type(y) for y in f(plain)] == [dt.Tensor] * 3
        assert [type(y) for y in f(marked([1.0, 2.0]))] == [Marked] * 3
    assert f(marked([3.0, 4.0]))[0].tolist() == [6.0, 8.0]


LOOPS = {
    "vmap": lambda f, x: dt.vmap(f)(x),
    "fori_loop": lambda f, x: dt.fori_loop(0, 2, lambda i, c: f(c) + 0 * i, x),
    "while_loop": lambda f, x: dt.while_loop(lambda c: (f(c) < 9).all(), f, x),
    "scan": lambda f, x: dt.scan(lambda c, r: (f(c), f(r)), x[0], x)[1],
    "scan of gradient": lambda f, x: dt.func.grad(
        lambda v: dt.scan(lambda c, r: (f(c), r), v, v)[0].sum()
    )(x),
    "cond": lambda f, x: dt.cond(x.sum() > 0, f, f, x),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("captures", [False, True])
def test_transform_and_loop_keep_subclass_inside_and_of_results(name, captures):
    kinds = set()

    def f(x):
        kinds.add(type(x))
        return x * 2

    run = dt.jit(LOOPS[name]) if captures else LOOPS[name]
    result = run(f, marked([1.0, 2.0]))
    assert kinds == {Marked}
    assert type(result) is Marked
    kinds.clear()
    assert type(run(f, dt.asarray([1.0, 2.0]))) is dt.Tensor
    assert kinds == {dt.Tensor}


def test_captured_function_reads_subclass_of_closure():
    weight = marked([2.0, 3.0])
    f = dt.jit(lambda x: x * weight)
    for _ in range(3):
        assert type(f(dt.ones(2))) is Marked
    weight = dt.asarray([5.0, 6.0])
    assert type(f(dt.ones(2))) is dt.Tensor and f(dt.ones(2)).tolist() == [5.0, 6.0]


def test_many_tensors_that_change_class_are_freed():
    references = []
    for i in range(300):
        x = marked([float(i)])
        y = x[:1] + 1
        references += [weakref.ref(x), weakref.ref(y)]
        del x, y
    gc.collect()
    assert not any(r() for r in references)
    assert type(dt.ones(1) + 1) is dt.Tensor
