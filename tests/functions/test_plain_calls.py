"""Functions whose plain calls run in C are called, bound and shown as Python functions are."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import struct
import sys
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import tracebacks
from dovetail.functions.elementwise.op_functions import FUNCTIONS
from dovetail.settings import flags

COMPILED = "dovetail.functions.plain_calls" in dt.__config__["compiled_modules"]
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


VIEWS: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda x: dt.reshape(x, (3, 2)),
    "reshape, sizes": lambda x: x.reshape(3, -1),
    "permute_dims": lambda x: dt.permute_dims(x, (1, 0)),
    "swapaxes": lambda x: x.swapaxes(0, -1),
    "transpose": lambda x: x.transpose(),
    "moveaxis": lambda x: dt.moveaxis(x, 0, 1),
    "expand_dims": lambda x: dt.expand_dims(x, axis=-1),
    "squeeze": lambda x: dt.squeeze(x),
    "flip": lambda x: dt.flip(x, 1),
    "broadcast_to": lambda x: dt.broadcast_to(x, (2, 2, 3)),
    "expand": lambda x: x.expand(4, -1, -1),
    "flatten": lambda x: x.flatten(0, 1),
    "ravel": lambda x: dt.ravel(x),
    "diagonal": lambda x: dt.diagonal(x, offset=1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_repeated_view_has_the_elements_and_the_strides_of_a_first_one(name: str) -> None:
    view = VIEWS[name]
    memory = dt.arange(40).astype(dt.int32)
    dt.evaluate(memory)
    operands = {
        "dense": memory[:6].reshape(2, 3),
        "later": memory[10:16].reshape(2, 3),
        "spread": memory[:20].reshape(4, 5)[::2, 1:4],
        "transposed": memory[:6].reshape(3, 2).T,
        "long": memory.reshape(8, 5),
    }
    for _ in range(2):
        for x in operands.values():
            results = [repr(view_or_error(view, x)) for _ in range(3)]
            deferred = repr(view_or_error(view, x + 0))
            assert len({*results}) == 1 and results[0].split("|")[0] == deferred.split("|")[0]


def view_or_error(view: Callable[[Any], Any], x: dt.Tensor) -> object:
    """Return the elements, the strides and the offset of a view, or its error."""
    try:
        y = view(x)
    except dt.DovetailError as raised:
        return type(raised), "|", str(raised)
    return y.tolist(), "|", y.stride(), y.storage_offset()


def test_repeated_view_shares_memory_gradients_and_class() -> None:
    x = dt.zeros((2, 3))
    dt.evaluate(x)
    for _ in range(4):
        y = dt.reshape(x, (6,))
        y += 1
    assert x.tolist() == [[4.0] * 3] * 2
    x.requires_grad_()
    (dt.reshape(x, (6,)) * 2).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[2.0] * 3] * 2
    a = dt.numpy.zeros((2, 3))
    for _ in range(4):
        assert type(a.reshape(6)) is type(dt.reshape(a, (6,))) is dt.numpy.ndarray


def test_repeated_view_tells_equal_arguments_of_other_classes_apart() -> None:
    x = dt.zeros((1, 2, 3))
    dt.evaluate(x)
    for _ in range(3):
        assert dt.squeeze(x, 0).shape == dt.squeeze(x, (0,)).shape == (2, 3)
        assert dt.squeeze(x).shape == dt.squeeze(x, axis=None).shape == (2, 3)
        assert dt.expand_dims(x, 1).shape == (1, 1, 2, 3)
        assert dt.swapaxes(x, axis1=0, axis2=1).shape == (2, 1, 3)
        assert dt.swapaxes(x, axis2=0, axis1=2).shape == (3, 2, 1)
        assert dt.swapaxes(x, 0, axis2=2).shape == (3, 2, 1)
        assert dt.reshape(x, (6,), copy=False).stride() == dt.reshape(x.mT, (6,)).stride()
        with pytest.raises(dt.ArgumentError, match="copy"):
            dt.reshape(x.mT, (6,), copy=False)
        for call in (lambda: dt.expand_dims(x, 1.0), lambda: dt.reshape(x, (1, 2.0, 3))):  # type: ignore[arg-type]  # wrong
            with pytest.raises(dt.DovetailError):
                call()


def functions_of(call: Callable[[dt.Tensor], Any], x: dt.Tensor) -> set[str]:
    """Return the names of the Python functions that a call runs."""
    names = set[str]()
    sys.setprofile(lambda frame, event, _: names.add(frame.f_code.co_name))
    try:
        call(x)
    finally:
        sys.setprofile(None)
    return names - {"functions_of"}


@pytest.mark.skipif(not COMPILED, reason="only compiled functions repeat calls")
@pytest.mark.parametrize("name", VIEWS)
def test_repeated_view_runs_no_python_function(name: str) -> None:
    view = VIEWS[name]
    x = dt.zeros((1, 2, 3))[0] if name != "squeeze" else dt.zeros((1, 2, 3))
    dt.evaluate(x)
    view(x)
    assert functions_of(view, x) <= {"<lambda>"}


PLAIN: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {  # the same call, plain and not
    "copy": (dt.copy, lambda x: dt.Tensor.copy(x, **{})),
    "astype": (
        lambda x: dt.astype(x, dt.float64),
        lambda x: dt.astype(x, dt.float64, copy=True),
    ),
    "astype of the same": (
        lambda x: x.astype(dt.float32),
        lambda x: x.astype(dt.float32, copy=True),
    ),
    "round": (dt.round, lambda x: dt.round(x, decimals=0)),
    "clip": (lambda x: dt.clip(x, -1, 1.5), lambda x: dt.clip(x, min=-1, max=1.5)),
    "clip by tensors": (
        lambda x: dt.clip(x, dt.zeros(2), x),
        lambda x: dt.clip(x, min=dt.zeros(2), max=x),
    ),
    "clip by far ints": (
        lambda x: x.clip(-1000, 1000),
        lambda x: x.clip(min=-1000, max=1000),
    ),
    "clip without bounds": (lambda x: dt.clip(x, None, None), lambda x: dt.clip(x)),
    "where": (lambda x: dt.where(x > 1, x, 2), lambda x: dt.where(x > 1, x, 2, out=None)),
    "where of no bool": (lambda x: dt.where(x, x, x), lambda x: dt.where(x, x, x, out=None)),
    "where of numbers": (
        lambda x: dt.where(x > 1, 1, 0.5),
        lambda x: dt.where(x > 1, 1, 0.5, out=None),
    ),
    "where of a large int": (
        lambda x: dt.where(x > 1, x, 300),
        lambda x: dt.where(x > 1, x, 300, out=None),
    ),
    "zeros_like": (dt.zeros_like, lambda x: dt.zeros_like(x, dtype=None)),
    "ones_like": (dt.ones_like, lambda x: dt.ones_like(x, dtype=None)),
    "full_like": (lambda x: dt.full_like(x, 3), lambda x: dt.full_like(x, fill_value=3)),
    "full_like of a large int": (
        lambda x: dt.full_like(x, 300),
        lambda x: dt.full_like(x, fill_value=300),
    ),
    "full_like of a bool": (
        lambda x: dt.full_like(x, True),
        lambda x: dt.full_like(x, fill_value=True),
    ),
    "vecdot": (lambda x: dt.vecdot(x, x), lambda x: dt.vecdot(x, x, axis=-1)),
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int64", "float16", "bfloat16", "float32", "float64"]
)
def test_plain_call_gives_the_result_of_one_with_keywords(name: str, dtype: str) -> None:
    x = dt.asarray([0, 1, 1, 0] if dtype == "bool" else [0.5, 1.5, 2.5, 100]).astype(dtype)
    for operand in (x[1:3], x[::2], (x[2:] * x[:2]), dt.asarray([[3.0], [1.0]]).astype(dtype)):
        for _ in range(3):
            plain, general = (_describe_result(call, operand) for call in PLAIN[name])
            assert plain == general


def _describe_result(call: Callable[..., Any], x: dt.Tensor) -> object:
    """Return the dtype, the shape and the bytes of a result, or its error."""
    try:
        y = call(x)
    except dt.DovetailError as error:
        return type(error), str(error)
    return y.dtype, y.shape, y.stride(), y.reshape(-1).view(dt.uint8).numpy().tobytes()


@pytest.mark.parametrize("name", [n for n in PLAIN if n not in ("vecdot", "where of no bool")])
def test_gradients_flow_through_plain_calls(name: str) -> None:
    gradients = []
    for call in PLAIN[name]:
        x = dt.asarray([0.5, 2.0], requires_grad=True)
        y = call(x)
        if y.requires_grad:
            y.sum().backward()
        gradients.append(None if x.grad is None else x.grad.tolist())
    assert gradients[0] == gradients[1]


@pytest.mark.skipif(not COMPILED, reason="only compiled functions run without Python")
@pytest.mark.parametrize(
    "call",
    [
        dt.copy,
        dt.round,
        dt.zeros_like,
        dt.ones_like,
        dt.empty_like,
        lambda x: x.copy(),
        lambda x: dt.astype(x, dt.float64),
        lambda x: dt.clip(x, 0.25, 0.5),
        lambda x: dt.where(x > 0, x, 0.5),
        lambda x: dt.empty(3, dtype=dt.float64),
        lambda x: dt.vecdot(x, x),
        lambda x: x.T,
        lambda x: x.mT.shape,
    ],
)
def test_plain_call_runs_no_python_function(call: Callable[..., Any]) -> None:
    x = dt.ones((2, 3))
    dt.evaluate(x)
    for _ in range(4):
        call(x)
    assert functions_of(call, x) <= {"<lambda>"}


def test_autocast_reaches_plain_calls_of_one_op() -> None:
    x = dt.asarray([0.5, 2.5])
    for _ in range(3):
        dt.vecdot(x, x)
    with dt.autocast("cpu"):
        assert dt.vecdot(x, x).dtype is dt.bfloat16
        assert dt.clip(x, 0.0, 1.0).dtype is dt.round(x).dtype is dt.float32


def test_repeated_tensor_is_told_from_two() -> None:
    x, y = dt.asarray([1.0, 2.0]), dt.asarray([3.0, 5.0])
    for _ in range(5):
        assert dt.vecdot(x, x).item() == 5 and dt.vecdot(y, y).item() == 34
        assert dt.vecdot(x, y).item() == dt.vecdot(y, x).item() == 13
        assert dt.vecdot(x + 0, y + 0).item() == 13
        z = x + 0
        assert dt.vecdot(z, z).item() == 5
        assert dt.outer(x, x).tolist() == [[1.0, 2.0], [2.0, 4.0]]
        assert dt.vecdot(x, x[:]).item() == 5


def test_repeated_empty_has_new_memory_and_obeys_settings() -> None:
    made = [dt.empty(3, dtype=dt.float32).fill_(i) for i in range(6)]
    assert [x.tolist() for x in made] == [[float(i)] * 3 for i in range(6)]
    for _ in range(4):
        assert dt.empty((2, 3)).shape == (2, 3) and dt.empty(2, 3).shape == (2, 3)
        assert dt.empty(2).dtype is dt.float32 and dt.empty(2, dtype=dt.int8).dtype is dt.int8
        assert str(dt.empty(2, device="reference").device) == "reference"
        with dt.poison_empty():
            assert dt.empty(2).isnan().all().item() and dt.empty_like(made[0]).isnan().all().item()
        with dt.poison_empty(False):
            assert dt.empty(2).shape == (2,)
            with dt.poison_empty():
                assert dt.empty_like(made[0]).isnan().all().item()
        assert not flags.may_fill_junk  # no context has the setting any more
    dt.set_default_dtype(dt.float64)
    try:
        assert dt.empty(2).dtype is dt.float64
    finally:
        dt.set_default_dtype(dt.float32)
    assert dt.empty(2).dtype is dt.float32
    for wrong in (-1, 2.0, (2, "a")):
        with pytest.raises(dt.DovetailError, match="empty"):
            dt.empty(wrong)


def test_repeated_empty_is_captured() -> None:
    for _ in range(4):
        dt.empty(2)

    @dt.jit
    def double(x: dt.Tensor) -> dt.Tensor:
        y = dt.empty(2)
        y[:] = x
        return y + y

    x = dt.asarray([1.0, 2.0])
    first = double(x)
    assert first.tolist() == [2.0, 4.0]
    assert double(x * 2).tolist() == double(x * 2).tolist() == [4.0, 8.0]
    assert first.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    "name", ["sum", "prod", "mean", "max", "min", "any", "all", "count_nonzero", "argmax", "argmin"]
)
def test_repeated_reduction_equals_the_first(name: str) -> None:
    x = dt.asarray([[3, 0, 6], [1, 2, 3]], device="reference")
    f, method = getattr(dt, name), getattr(x, name)
    wanted = getattr(np, name)(x.numpy(), 1)
    for _ in range(3):  # the second time it is cached
        assert f(x).item() == method().item() == getattr(np, name)(x.numpy())
        out = dt.zeros_like(f(x, 1))
        assert f(x, 1, out=out) is out and out.tolist() == wanted.tolist()
        assert (
            f(x, axis=1).tolist() == f(x, 1).tolist() == method(axis=1).tolist() == wanted.tolist()
        )
        assert f(x, keepdims=True, axis=1).tolist() == wanted.reshape(2, 1).tolist()
        with pytest.raises(dt.AxisError, match=name):
            f(x, 2)
        with pytest.raises(dt.DovetailError, match=name):
            f(x, axis="rows")
        with pytest.raises(dt.DovetailError, match=name):
            f(x, keepdims=1.5)
        with pytest.raises(TypeError, match="axis"):
            f(x, 1, axis=1)
