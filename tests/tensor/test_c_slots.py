"""Operators through Python's type slots: Tensor follows the rules of the data model."""

from __future__ import annotations

import operator
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

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
