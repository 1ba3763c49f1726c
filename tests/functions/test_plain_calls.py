"""Functions whose plain calls run in C are called, bound and shown as Python functions are."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import struct
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import dovetail as dt
import pytest
from dovetail import tracebacks
from dovetail.functions.elementwise.op_functions import FUNCTIONS

NAMES = sorted(FUNCTIONS.keys() & {*dt.__all__} - {"pow", "round"})


@pytest.mark.parametrize("name", NAMES)
def test_plain_call_records_the_expression_of_a_call_with_keywords(name: str) -> None:
    function, arity = getattr(dt, name), FUNCTIONS[name].arity
    for values in ([0.25, 0.5], [3, 1], [True, False], [0.5 + 1j, 2.0]):
        operands = (dt.asarray(values), dt.asarray(values))[:arity]
        results = []
        for options in ({}, {"out": None}):
            try:
                x = function(*operands, **options)
                results.append((x.dtype, x.shape, x.numpy().tobytes()))
            except dt.DovetailError as error:
                results.append((type(error), str(error)))
        assert results[0] == results[1]


@pytest.mark.parametrize("name", ["add", "sin", "tril", "eye"])
def test_function_has_the_attributes_of_a_python_function(name: str) -> None:
    function = getattr(dt, name)
    assert callable(function) and isinstance(function, Callable) and inspect.isfunction(function)
    assert inspect.isroutine(function) and inspect.isfunction(inspect.unwrap(function))
    assert function.__name__ == function.__qualname__ == name
    assert function.__module__ == "dovetail" and name in repr(function)
    assert inspect.signature(function).parameters["out"].default is None
    assert ">>> import dovetail as dt" in function.__doc__ and function.__code__.co_name == name
    assert pickle.loads(pickle.dumps(function)) is function is copy.deepcopy(function)


def test_methods_bind_and_are_the_functions() -> None:
    x = dt.asarray([1.0, 2.0])
    bound = x.add
    assert bound(x).tolist() == x.add(x).tolist() == dt.Tensor.add(x, x).tolist() == [2.0, 4.0]
    assert dt.Tensor.add is dt.add and bound.__self__ is x and bound.__func__ is dt.add
    assert dt.add.outer(x, x).tolist() == [[2.0, 3.0], [3.0, 4.0]]


def test_function_of_a_class_binds_its_objects() -> None:
    class Holder:
        negate = dt.negative

    with pytest.raises(dt.DTypeError, match="Holder"):
        Holder().negate()
    assert Holder.negate(dt.asarray([1.0])).tolist() == [-1.0]


@pytest.mark.parametrize(
    "call", [lambda x: dt.add(x, dt.ones(3)), lambda x: x.add(dt.ones(3)), lambda x: dt.sin("a")]
)
def test_traceback_of_an_error_ends_in_the_caller(
    call: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracebacks, "keeps_frames", False)
    with pytest.raises(dt.DovetailError) as raised:
        call(dt.ones(2))
    assert traceback.extract_tb(raised.value.__traceback__)[-1].filename == __file__


def test_missing_and_further_arguments_raise_in_the_name_of_the_function() -> None:
    x = dt.ones(2)
    for call in (lambda: dt.add(x), lambda: x.add(), lambda: dt.add()):
        with pytest.raises(dt.ArgumentTypeError, match="add: missing argument"):
            call()
    with pytest.raises(dt.DovetailError, match="sin"):
        dt.sin(x, x, x)


def test_transforms_and_captures_take_the_functions() -> None:
    x = dt.asarray([0.5, 2.0])
    f = dt.jit(dt.multiply)
    for _ in range(3):
        assert f(x, x).tolist() == [0.25, 4.0]
    assert dt.vmap(dt.square)(x).tolist() == [0.25, 4.0]
    assert dt.func.grad(dt.square)(dt.asarray(3.0)).item() == 6.0


def test_autocast_and_written_out_reach_plain_calls() -> None:
    x, out = dt.asarray([0.5, 2.0]), dt.zeros(2)
    assert dt.negative(x, out=out) is out and out.tolist() == [-0.5, -2.0]
    with dt.autocast("cpu"):
        plain = dt.exp(x.astype(dt.bfloat16)).dtype
        assert plain is dt.exp(x.astype(dt.bfloat16), out=None).dtype


def test_cached_function_takes_positions_keywords_and_out() -> None:
    x, out = dt.asarray([[1.0, 2.0], [3.0, 4.0]]), dt.zeros((2, 2))
    for _ in range(3):  # the second call stores a template, the third one replays it
        assert dt.tril(x).tolist() == dt.tril(x=x).tolist() == x.tril().tolist()
        assert dt.tril(x, -1).tolist() == dt.tril(x, k=-1).tolist() == [[0.0, 0.0], [3.0, 0.0]]
        assert dt.tril(x, diagonal=-1).tolist() == [[0.0, 0.0], [3.0, 0.0]]
        assert dt.tril(x, out=out) is out and out.tolist() == [[1.0, 0.0], [3.0, 4.0]]
    with pytest.raises(dt.DovetailError, match=r"^tril"):
        dt.tril(x, 0.5)
    with pytest.raises(dt.DovetailError, match="tril"):
        dt.tril(x, 1, 2, 3)
    with pytest.raises(dt.DovetailError, match="colour"):
        dt.tril(x, colour=1)


def test_cached_function_tells_equal_options_of_other_classes_apart() -> None:
    x = dt.asarray([1.0, 2.0, 3.0])
    for _ in range(3):
        assert dt.roll(x, 1).tolist() == [3.0, 1.0, 2.0]
        with pytest.raises(dt.DovetailError):
            dt.roll(x, 1.0)
        assert dt.arange(2).dtype is dt.int64 and dt.arange(2.0).dtype is dt.float32
        assert dt.full(2, 1).dtype is dt.int64 and dt.full(2, 1.0).dtype is dt.float32
        assert dt.full(2, True).dtype is dt.bool_
        assert dt.std(x, correction=0).item() == dt.std(x, correction=0.0).item()
        assert dt.std(x, axis=0).shape == () and dt.std(x, axis=(0,), keepdims=True).shape == (1,)


def test_repeated_calls_keep_no_settings_of_a_block() -> None:
    class Hooks:
        def pack(self, x: dt.Tensor) -> dt.Tensor:
            return x

    hooks = Hooks()
    alive = weakref.ref(hooks)
    with dt.autograd.saved_tensors_hooks(hooks.pack, hooks.pack):
        for _ in range(5):
            dt.zeros(3)
    del hooks
    gc.collect()
    assert alive() is None


def test_filled_tensors_have_the_bits_of_their_value() -> None:
    quiet = struct.unpack("d", struct.pack("Q", 0x7FF8_0000_0000_0000))[0]
    for value in (quiet, -quiet, 0.0, -0.0) * 4:
        x = dt.full(2, value, dtype=dt.float64)
        assert x.view(dt.uint64).tolist() == [struct.unpack("Q", struct.pack("d", value))[0]] * 2


def test_value_of_full_has_one_name() -> None:
    with pytest.raises(dt.ArgumentTypeError, match="no parameter value"):
        dt.full(3, value=7)  # type: ignore[call-arg]  # wrong
