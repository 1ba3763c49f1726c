"""Operators through Python's type slots: Tensor follows the rules of the data model."""

from __future__ import annotations

import operator
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import dovetail as dt
import dovetail.numpy
import dovetail.torch
import numpy as np
import pytest
from dovetail.extend import register_subclass, set_class
from dovetail.tensor.slicing import basic_leaf

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv]


class Other:
    """An operand that implements every operator."""

    __array_ufunc__ = None  # so that arrays and array-likes defer to it

    def answer(self, x: object) -> str:
        return f"with {type(x).__name__}"

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = answer
    __add__ = __sub__ = __mul__ = __truediv__ = answer


def tensor(values: object = (1.0, 2.0, 4.0)) -> dt.Tensor:
    return dt.asarray(list(values), device="reference")  # type: ignore[call-overload]  # a tuple


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("other", [3, 2.5, True, np.float32(3), np.float32([3, 2, 1])])
def test_numbers_and_arrays_may_be_on_either_side(
    op: Callable[[Any, Any], Any], other: Any
) -> None:
    x, want = tensor(), np.asarray([1.0, 2.0, 4.0], np.float32)
    assert op(x, other).tolist() == op(want, other).tolist()
    assert op(other, x).tolist() == op(other, want).tolist()


@pytest.mark.parametrize("op", OPERATORS)
def test_operand_with_its_own_operators_decides(op: Callable[[Any, Any], Any]) -> None:
    assert op(tensor(), Other()) == "with Tensor" == op(Other(), tensor())


def test_other_layouts_decide_on_either_side() -> None:
    x, s = tensor(), tensor([0.0, 5.0, 0.0]).to_sparse()
    for a, b in ((x, s), (s, x)):
        assert (a * b).to_dense().tolist() == [0.0, 10.0, 0.0]
        with pytest.raises(
            dt.LayoutError,
            match="subtract: the result of a sparse_coo and a strided tensor would be dense",
        ):
            a - b


def test_method_set_on_the_class_is_called() -> None:
    # in a process of its own: a class whose methods were set does not get its C slots back
    program = """if True:
        import operator
        import dovetail as dt
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "eq"):
            op, x, method = getattr(operator, name), dt.arange(1, 5), f"__{name}__"
            usual = getattr(dt.Tensor, method)
            setattr(dt.Tensor, method, lambda self, other: "mine")
            assert op(x, x) == "mine", name
            setattr(dt.Tensor, method, usual)
            assert op(x, x).tolist() == op(x.numpy(), x.numpy()).tolist(), name
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_invalid_operand_raises() -> None:
    for a, b in ((tensor(), "text"), ("text", tensor())):
        with pytest.raises(dt.DTypeError, match="subtract: expected tensors"):
            a - b


KEYS = [
    0, -1, (1, 2), (slice(None), 1), (slice(None, None, -1), slice(1, None)), (slice(-2, None, 2),),
    (slice(0, 10**30), -1), slice(5, 1), (slice(3, 3), 0), (1, slice(2, 0, -5), 3), ..., (..., 1),
    (0, 1, 2), (slice(-1, -100, -1), slice(None, 10**20, 10**20)),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_keys_of_integers_and_slices_equal_numpy(key: Any) -> None:
    want = np.arange(60).reshape(3, 4, 5)
    x = dt.asarray(want, device="reference")
    for a, b in ((x, want), (x[::-1, :, 1:], want[::-1, :, 1:]), (x.mT, want.swapaxes(1, 2))):
        try:
            wanted = b[key]
        except IndexError:
            with pytest.raises(dt.OutOfRangeError):
                a[key]
        else:
            assert a[key].shape == wanted.shape and a[key].tolist() == wanted.tolist()


def test_cached_specs_belong_to_their_own_tensor() -> None:
    """Many shapes and dtypes, so that cache slots are shared."""
    for n in range(2, 300):
        for d in (dt.float32, dt.int64):
            x = dt.zeros((n, 3), dtype=d, device="reference")
            dt.evaluate(x)
            part = x[1 : n // 2 + 1]
            assert part.shape == (n // 2, 3) and part.dtype is d and x[0].shape == (3,)


@pytest.mark.parametrize("number", [2**70, -(2**70)])
def test_number_on_the_left_has_the_same_limits(number: int) -> None:
    x = dt.asarray([1, 2], device="reference")
    for op in (operator.add, operator.sub, operator.mul):
        with pytest.raises(dt.ValueOverflowError, match="does not fit int64"):
            op(number, x)
        with pytest.raises(dt.ValueOverflowError, match="does not fit int64"):
            op(x, number)


def test_deleting_an_item_raises() -> None:
    x = tensor()
    with pytest.raises((TypeError, AttributeError), match=r"delet|__delitem__"):
        del x[0]
    with pytest.raises((TypeError, AttributeError), match=r"delet|__delitem__"):
        del x[:1]
    assert x.tolist() == [1.0, 2.0, 4.0]


def test_setitem_set_on_the_class_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    usual = dt.Tensor.__setitem__

    def noted(x: dt.Tensor, key: Any, value: Any) -> None:
        seen.append(key)
        usual(x, key, value)

    x = tensor()
    with monkeypatch.context() as m:
        m.setattr(dt.Tensor, "__setitem__", noted)
        x[:2] = 7
    x[2] = 8
    assert x.tolist() == [7.0, 7.0, 8.0] and seen == [slice(None, 2, None)]


def test_attribute_is_found_on_the_object_the_class_and_by_getattr() -> None:
    x = dt.ones((2, 3))
    assert x.shape == (2, 3) and x.ndim == 2 and x.dtype is dt.float32 and x.itemsize == 4
    assert x.T.shape == (3, 2) and x.sum().item() == 6 and x.is_cpu is True  # type: ignore[attr-defined]  # by `__getattr__`
    assert x.median().item() == 1 and getattr(x, "absent", None) is None
    with pytest.raises(AttributeError, match="absent"):
        _ = x.absent  # type: ignore[attr-defined]  # there is none


@pytest.mark.parametrize("kind", [dt.numpy.ndarray, dt.torch.Tensor])
def test_attributes_of_subclasses_are_found(kind: type[dt.Tensor]) -> None:
    x = set_class(dt.ones((2, 3)), kind)
    assert x.shape == (2, 3) and type(x.T) is kind and x.T.shape == (3, 2)
    assert type(x.mT) is kind and hasattr(x, "sum") and not hasattr(x, "absent")


def test_getattr_set_on_the_class_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    x = dt.ones(2)
    with monkeypatch.context() as patch:
        patch.setattr(dt.Tensor, "__getattr__", lambda self, name: name.upper())
        assert x.absent == "ABSENT" and x.shape == (2,)  # type: ignore[attr-defined]  # set above
    assert not hasattr(x, "absent")


def test_subclass_with_getattribute_keeps_it() -> None:
    class Spy(dt.Tensor):
        __slots__ = ()

        def __getattribute__(self, name: str) -> Any:
            return 7 if name == "shape" else super().__getattribute__(name)

    register_subclass(Spy)
    x = set_class(dt.ones(2), Spy)
    assert x.shape == 7 and x.ndim == 1 and not hasattr(x, "absent")  # type: ignore[comparison-overlap]  # as it says


def test_transposes_share_memory_and_gradients() -> None:
    x = dt.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    dt.evaluate(x)
    pending = x * 1
    for a in (x, x[:, ::2], x[:0], pending, x.T):
        expected = [*map(list, zip(*a.tolist(), strict=True))] if a.shape[0] else [[]] * a.shape[1]
        assert a.T.tolist() == a.mT.tolist() == dt.matrix_transpose(a).tolist() == expected
    y = x.T
    y[0, 1] = 9
    assert x[1, 0].item() == 9 and x.T.mT.stride() == x.stride()
    w = dt.asarray([[1.0, 2.0]], requires_grad=True)
    (w.T * 3).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [[3.0, 3.0]]
    for wrong in (dt.ones(3), dt.ones((2, 2, 2))):
        with pytest.raises(dt.ShapeError, match="T: expected 2"):
            _ = wrong.T
    assert dt.ones((2, 3, 4)).mT.shape == (2, 4, 3)
    with pytest.raises(dt.ShapeError, match="mT"):
        _ = dt.ones(3).mT


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float32", "float64"])
def test_assignment_of_a_number_fills_each_element(dtype: str) -> None:
    for n in (1, 2, 3, 5, 64, 1000, 4096, 4097):
        x = dt.zeros(n + 2).astype(dtype)
        dt.evaluate(x)
        x[1:-1] = 1
        assert x.tolist() == [0, *[1] * n, 0]
        x[::2] = 0
        assert x.tolist() == [0 if i % 2 == 0 or i == n + 1 else 1 for i in range(n + 2)]


def test_tensor_that_was_sliced_while_pending_takes_the_fast_path_once_computed() -> None:
    x = dt.asarray([[1.0, 2.0], [3.0, 4.0]]) * 2
    row = x[0]
    assert basic_leaf(x, 1) is None  # a view of a pending value is recorded with its moves
    dt.evaluate(row)
    assert basic_leaf(x, 1) is not None and basic_leaf(row, 1) is not None
    x[1] = 7
    row += 1
    assert x.tolist() == [[3.0, 5.0], [7.0, 7.0]] and row.tolist() == [3.0, 5.0]


def test_transposed_small_pending_array_is_computed_once() -> None:
    x = dovetail.numpy.eye(2, 4) + 1
    assert x.T.tolist() == [[2.0, 1.0], [1.0, 2.0], [1.0, 1.0], [1.0, 1.0]]
    y = dovetail.numpy.eye(3)
    y.T[0, 2] = 5
    assert y.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [5.0, 0.0, 1.0]]
    y.shape = 9
    assert y.shape == (9,) and dovetail.numpy.ndarray.shape.__doc__


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "float32", "float64", "complex128"])
def test_assigned_tensor_is_copied_broadcast_and_cast(dtype: str) -> None:
    y = dt.arange(24).reshape(4, 6).astype(dtype)
    dt.evaluate(y)
    for key, value in (
        (slice(None), y),
        ((slice(1, 3), slice(None, None, 2)), y[:2, 3:]),
        ((slice(None), 1), y[:, 2]),
        (2, y[0, :1]),
        (slice(None), y[1]),
        ((slice(None, None, -1), slice(None)), y),
        ((slice(None), slice(0, 4)), y[:, :4].T[:1, :4].mT),
        (slice(None), y.astype(dt.bool)),
    ):
        x = dt.ones((4, 6)).astype(dtype)
        dt.evaluate(x)
        expected = x.numpy().copy()
        reader = x + x
        expected_reader = reader.numpy().copy() if dtype == "bool" else expected + expected
        x[key] = value
        expected[key] = value.numpy()
        assert np.array_equal(x.numpy(), expected)
        assert np.array_equal(reader.numpy(), expected_reader)
    for wrong in (y[:, :5], dt.zeros((2, 4, 6)).astype(dtype), y.to("reference")):
        with pytest.raises(dt.DovetailError):
            x[:] = wrong


def test_assigned_tensor_of_the_same_memory_and_of_a_gradient() -> None:
    x = dt.arange(6.0)
    dt.evaluate(x)
    x[1:] = x[:-1]
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]
    w = dt.ones(3, requires_grad=True)
    y = dt.zeros(5)
    dt.evaluate(w, y)
    y[1:4] = w
    (y * 2).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [2.0, 2.0, 2.0]

    @dt.jit
    def shift(a: dt.Tensor, b: dt.Tensor) -> dt.Tensor:
        c = dt.zeros(4)
        c[1:3] = b
        return c + a

    b = dt.asarray([1.0, 2.0])
    for k in range(3):
        assert shift(dt.ones(4), b * k).tolist() == [1.0, 1.0 + k, 1.0 + 2 * k, 1.0]
