"""Layouts, level 6: rules for every tensor.

Results do not depend on when work runs; nothing is written in place; mistakes are named; memory is
given back.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest

from .. import layout as lay
from ..device_class import Device
from ..dtypes import DType, float32
from ..errors import DeviceError, LayoutError
from ..functions.elementwise import op_functions as e
from ..functions.indexing.index_writes import setitem
from ..functions.products.matrix_products import matmul
from ..functions.reductions import statistics
from ..functions.shape import copies
from ..functions.shape import manipulation as m
from ..layout import Layout, Shape
from ..plugins.registry import open_device
from ..plugins.registry import registry as backends
from ..settings import eager
from ..tensor import tensor as T
from ..tensor.host import from_host
from ..tensor.other_layouts import LayoutTensor
from .kit import host
from .layout import BASIC_SAMPLES, LayoutKit, Sample, dense, part_bits
from .values import Array

OPS: dict[str, Callable[[T.Tensor, T.Tensor], T.Tensor]] = {
    "itself": lambda x, y: x,
    "negative": lambda x, y: -x,
    "add": lambda x, y: x + x,
    "product": lambda x, y: x * y,
    "sum": lambda x, y: statistics.sum(x, axis=0),
    "permute": lambda x, y: m.permute_dims(x, (1, 0)),
    "slice": lambda x, y: x[1:, :2],
    "concat": lambda x, y: copies.concat([x, x], axis=0),
    "matmul": lambda x, y: matmul(x, y.mT),
}
parametrize_ops = pytest.mark.parametrize("name", OPS)


def source(kit: LayoutKit, s: Sample) -> tuple[T.Tensor, T.Tensor]:
    """Return a strided tensor to put into the layout, and one without zeros; both pending."""
    x, y = (v.array(float32) for v in (s, Sample("full", s.shape)))
    return from_host(x, float32, kit.device) + 0, from_host(y, float32, kit.device) + 0


def result_or_none(kit: LayoutKit, name: str, s: Sample) -> T.Tensor | None:
    """Return the op's result, or None if the layout refuses it."""
    x, y = source(kit, s)
    try:
        return OPS[name](kit.subject.make(x), y)
    except LayoutError:
        return None


def bits(x: T.Tensor) -> Array:
    """Return a result's values as a dense array on the host."""
    return host(dense(x))


@parametrize_ops
def test_eager_and_deferred(kit: LayoutKit, name: str) -> None:
    """Check that eager and deferred results store the same bits, or are refused alike."""
    for s in kit.samples(BASIC_SAMPLES):
        late = result_or_none(kit, name, s)
        with eager():
            soon = result_or_none(kit, name, s)
        assert (late is None) == (soon is None), kit.failure(f"{name}: refused in one mode", "")
        for a, b in zip(*([] if x is None else part_bits(x) for x in (late, soon)), strict=True):
            assert np.array_equal(a, b, equal_nan=True), kit.failure(f"{name} of {s}, eager", "")
        kit.comparisons += 1


@parametrize_ops
def test_writes_are_not_seen(kit: LayoutKit, name: str) -> None:
    """Check that writes to operands, or to the result of `dense`, change no tensor or result."""
    for s in kit.samples(BASIC_SAMPLES):
        tensor = result_or_none(kit, name, s)
        if tensor is None:
            kit.comparisons += 1
            continue
        wanted = bits(tensor)
        for when in ("pending", "computed"):
            x, y = source(kit, s)
            ours = kit.subject.make(x)
            actual = OPS[name](ours, y)
            if when == "computed":
                bits(actual)
            setitem(x, ..., 99.0)
            setitem(y, ..., 99.0)
            back = dense(ours)
            kit.equal(
                bits(actual), wanted, actual.dtype, f"{name} of {s}, operands written, {when}"
            )
            kit.equal(host(back), s.array(float32), float32, f"{s}, its source written, {when}")
            setitem(back, ..., 77.0)
            kit.equal(bits(ours), s.array(float32), float32, f"{s}, what it gave was written")


WRITES: dict[str, tuple[str, Callable[[T.Tensor, T.Tensor], object]]] = {
    "x[...] = 1": ("setitem", lambda x, y: setitem(x, ..., 1)),
    "x.add_(x)": ("add", lambda x, y: x.add_(x)),
    "x.add_(strided)": ("add", lambda x, y: x.add_(y)),
    "out=x": ("add", lambda x, y: e.add(y, y, out=x)),
    "out=x, of itself": ("add", lambda x, y: e.negative(x, out=x)),
    "strided += x": ("add", lambda x, y: y.add_(x)),
}


@pytest.mark.parametrize("name", WRITES)
def test_in_place_is_refused(kit: LayoutKit, name: str) -> None:
    """Check that a write raises LayoutError, and leaves all operands as they were."""
    op, f = WRITES[name]
    for s in kit.samples(BASIC_SAMPLES):
        x, y = kit.subject.make(source(kit, s)[0]), source(kit, s)[1]
        before, other = part_bits(x), host(y)
        kit.check_refusal(f"{op}|index|assign|negative|slice|view", name, f, x, y)
        for a, b in zip([*part_bits(x), host(y)], [*before, other], strict=True):
            assert np.array_equal(a, b), kit.failure(f"{name}: was refused, and wrote", "")


def test_augmented_assignment_makes_a_new_tensor(kit: LayoutKit) -> None:
    """Check that `x *= 2` rebinds x or raises LayoutError, and never writes to x."""
    for s in kit.samples(BASIC_SAMPLES):
        x = original = kit.subject.make(source(kit, s)[0])
        before = part_bits(original)
        try:
            x *= 2
        except LayoutError as error:
            kit.check_message(error, "multiply", "x *= 2")
        assert all(map(np.array_equal, part_bits(original), before)), kit.failure(
            "x *= 2 wrote", ""
        )
        kit.comparisons += 1


# --- mistakes


MISTAKES: dict[str, tuple[str, Callable[..., object], Shape | None]] = {
    "shapes do not broadcast": ("add", lambda x, y: x + y, (5, 4)),
    "axis out of range": ("sum", lambda x, y: statistics.sum(x, axis=7), None),
    "axis twice": ("permute_dims", lambda x, y: m.permute_dims(x, (0, 0)), None),
    "shape does not fit": ("reshape", lambda x, y: m.reshape(x, (1000, 3)), None),
    "sizes do not fit": ("matmul", lambda x, y: matmul(x, y), (9, 9)),
    "cannot be broadcast": ("broadcast_to", lambda x, y: m.broadcast_to(x, (2, 2)), None),
    "floats have no bits": ("bitwise_and", e.bitwise_and, None),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_those_of_strided_tensors(kit: LayoutKit, name: str) -> None:
    """Check that a wrong call raises the error of strided tensors, or LayoutError."""
    op, f, other = MISTAKES[name]
    for s in kit.samples(BASIC_SAMPLES):
        second = s if other is None else Sample("full", other)
        pair = [
            (s.array(float32), float32, True),
            (second.array(float32, 1), float32, other is None),
        ]
        kit.check_same_error(op, f, pair, f"{name}, {s}")


class UnknownLayoutTensor(LayoutTensor):
    """A tensor of an unknown layout, without a single rule."""

    __slots__ = ("device", "dtype", "layout", "parts", "shape")

    device: Device
    dtype: DType
    layout: Layout
    parts: tuple[T.Tensor, ...]
    shape: Shape


def foreign(x: T.Tensor) -> UnknownLayoutTensor:
    """Wrap a tensor as the only part of a LayoutTensor of an unknown layout, without rules."""
    tensor: UnknownLayoutTensor = object.__new__(UnknownLayoutTensor)
    tensor.device, tensor.dtype, tensor.shape = x.device, x.dtype, x.shape
    tensor.layout, tensor.parts = lay.layout("foreign"), (x,)
    return tensor


MIXED: dict[str, Callable[[T.Tensor, T.Tensor], T.Tensor]] = {
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: x * y,
    "matmul": lambda x, y: matmul(x, y),
    "concat": lambda x, y: copies.concat([x, y], axis=0),
}


@pytest.mark.parametrize("name", MIXED)
def test_layouts_do_not_mix(kit: LayoutKit, name: str) -> None:
    """Check that an op with a tensor of an unknown layout raises LayoutError."""
    for s in (s for s in kit.samples(BASIC_SAMPLES) if s.shape == (6, 6)):
        x, y = source(kit, s)
        ours, theirs = kit.subject.make(x), foreign(y)
        for pair in ((ours, theirs), (theirs, ours)):
            kit.check_refusal(name, f"{name} of two layouts", MIXED[name], *pair)


def test_devices_do_not_mix(kit: LayoutKit) -> None:
    """Check that adding tensors on two devices raises an error."""
    for other in backends.devices():
        opened = open_device(other)
        if opened.device is not kit.device:
            v = kit.samples(BASIC_SAMPLES)[0].array(float32)
            x, y = kit.put(v, float32)[0], kit.put(v, float32, opened.device)[0]
            with pytest.raises((DeviceError, LayoutError), match=r"add|multiply"):
                _ = x + y
    kit.comparisons += 1


def test_memory_is_given_back(kit: LayoutKit) -> None:
    """Check that a third round of work leaves as many live blocks as the second."""
    allocator = kit.opened.allocator

    def all_of_it() -> None:
        """Compute all ops on all basic samples, and drop the results."""
        for s in kit.samples(BASIC_SAMPLES):
            for name in OPS:
                result = result_or_none(kit, name, s)
                if result is not None:
                    bits(result)

    live = []
    for _ in range(3):
        all_of_it()
        gc.collect()
        kit.backend.synchronize()
        live.append(allocator.stats().live_blocks)
    assert live[1] == live[2], kit.failure(f"live blocks after each round: {live}", "")
    kit.comparisons += 1
