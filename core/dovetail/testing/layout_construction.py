"""Layouts, level 1: made from strided tensors and back, moved, copied, sent and shown."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ..device_class import opened_devices
from ..dtypes import ALL, COMPLEX, DType, float32
from ..errors import LayoutError
from ..functions.datatypes import astype
from ..plugins.registry import open_device
from ..plugins.registry import registry as backends
from ..tensor.c_fields import is_strided
from ..tensor.host import from_host
from ..tensor.other_layouts import LayoutTensor
from .kit import host
from .layout import SAMPLES, LayoutKit, Sample, UndeclaredRefusal, part_bits
from .test_scalar_ops import param_id
from .values import Array

PICKLE_METHOD = "__reduce_ex__"
REAL_DTYPES = tuple(d for d in ALL if d not in COMPLEX)


def check_same_parts(kit: LayoutKit, x: Any, y: Any, what: str) -> None:
    """Fail unless two tensors of the layout are alike in all that they store."""
    for part in ("layout", "shape", "dtype"):
        a, b = getattr(x, part), getattr(y, part)
        assert a == b, kit.failure(f"{what}: {part} {a!r}, not {b!r}", "")
    for k, (p, q) in enumerate(zip(x.parts, y.parts, strict=True)):
        kit.check_same_bits(host(p), host(q), p.dtype, f"{what}, part {k}", str)


def round_trip(kit: LayoutKit, v: Array, d: DType, what: str) -> None:
    """Convert an array to the layout and back; fail if metadata or values change."""
    with kit.on_device(what):
        x, y = kit.put(v, d)
        back = x.to_dense()
        actual = host(back)
    kit.check_parts(x, what)
    assert isinstance(x, LayoutTensor) and x.layout is kit.subject.info.layout, kit.failure(
        f"{what}: from_dense made {x!r}, no tensor of the layout {kit.name}", ""
    )
    assert is_strided(back), kit.failure(f"{what}: to_dense made {type(back)}", "")
    for z in (x, back):
        assert (z.dtype, z.device, z.shape) == (d, kit.device, v.shape), kit.failure(
            f"{what}: {z.dtype} {z.shape} on {z.device}, of {d} {v.shape} on {kit.device}", ""
        )
    assert (x.ndim, x.size) == (v.ndim, v.size), kit.failure(f"{what}: ndim or size", "")
    kit.equal(actual, host(y), d, what)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_round_trip(kit: LayoutKit, sample: Sample) -> None:
    """Check that a sample, converted to the layout and back, has the same values."""
    for seed in range(3):
        round_trip(kit, sample.array(float32, seed), float32, f"to {kit.name} and back, {sample}")


@pytest.mark.parametrize("d", REAL_DTYPES, ids=param_id)
def test_dtypes(kit: LayoutKit, d: DType) -> None:
    """Check ordinary and special values of a dtype, converted to the layout and back."""
    for s in kit.samples(SAMPLES, d):
        round_trip(kit, s.array(d), d, f"{s} of {d.name}")
        round_trip(kit, s.special(d), d, f"{s} of {d.name}, special values")


def test_something_is_held(kit: LayoutKit) -> None:
    """Check that the layout holds some samples, and names itself in errors for others.

    A layout that refuses everything, or all but zeros, has shown nothing.
    """
    actual = [s for s in kit.samples(SAMPLES) if np.unique(s.array(float32)).size > 2]
    assert actual, kit.failure("from_dense takes no sample with several values", "")
    kit.comparisons += 1
    for s in SAMPLES:
        if s not in kit.samples(SAMPLES):
            x = from_host(s.array(float32), float32, kit.device)
            with pytest.raises(LayoutError, match=kit.name):
                kit.subject.make(x)


def test_names_are_what_they_say(kit: LayoutKit) -> None:
    """Check that names which the layout adds to `dt` and `Tensor` have docstrings."""
    info = kit.subject.info
    for name, value in {**info.functions, **info.methods}.items():
        assert name.isidentifier() and value.__doc__, kit.failure(f"{name} has no docstring", "")
    assert all(map(callable, info.methods.values())), kit.failure("a method is no function", "")
    kit.comparisons += 1


@pytest.mark.parametrize("d", REAL_DTYPES, ids=param_id)
def test_astype(kit: LayoutKit, d: DType) -> None:
    """Check a cast from float32 of tensors without negative numbers."""
    for s in kit.samples():
        positive = np.abs(s.array(float32))
        kit.check_rule(
            "apply",
            "astype",
            lambda x: astype(x, d),
            [(positive, float32, True)],
            f"{s} as {d.name}",
        )


def test_to_device(kit: LayoutKit) -> None:
    """Check moves to each available device and back, or the error if there is no such rule."""
    x, _ = kit.put(kit.samples()[0].array(float32), float32)
    if "to_device" not in x.rules:
        kit.check_refusal(
            "to|to_device", "to a device", lambda x: x.to(device="reference", copy=True), x
        )
        return
    check_same_parts(kit, x.to(device=kit.device), x, "to its own device")
    for other in backends.devices():
        opened = open_device(other)
        for s in kit.samples():
            x, _ = kit.put(s.array(float32), float32)
            moved = x.to(device=opened.device)
            assert moved.device is opened.device, kit.failure(f"to {other}: {moved.device}", "")
            kit.check_parts(moved, f"to {other}")
            check_same_parts(kit, moved, x, f"{s} to {other}")
            check_same_parts(kit, moved.to(device=kit.device), x, f"{s} to {other} and back")
    assert kit.device in opened_devices()


@pytest.mark.parametrize("how", ("copy", "deepcopy", "pickle"))
def test_copies(kit: LayoutKit, how: str) -> None:
    """Check that copies are equal, or that LayoutError is raised if there is no pickle method."""
    copier: Callable[[Any], Any] = {
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "pickle": lambda x: pickle.loads(pickle.dumps(x, 5)),
    }[how]
    for s in kit.samples():
        x, _ = kit.put(s.array(float32), float32)
        if getattr(type(x), PICKLE_METHOD) is getattr(LayoutTensor, PICKLE_METHOD):
            kit.check_refusal("pickle", how, copier, x)
            continue
        try:
            y = copier(x)
        except LayoutError as error:
            text = kit.failure(f"{how}: refused, and no declared gap: {error}", "")
            raise UndeclaredRefusal(text) from None
        assert y is not x and y.device is x.device, kit.failure(f"{how}: {y.device}", "")
        check_same_parts(kit, y, x, f"{how} of {s}")


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_printing(kit: LayoutKit, sample: Sample) -> None:
    """Check that the text names layout, dtype and shape, and that printing changes no part."""
    x, _ = kit.put(sample.array(float32), float32)
    before = part_bits(x)
    for text in (repr(x), str(x), format(x)):
        facts = (kit.name, x.dtype.name, *map(str, x.shape))
        missing = [fact for fact in facts if fact not in text]
        assert not missing, kit.failure(f"{sample}: {missing} not in {text!r}", "")
    for p, q in zip(x.parts, before, strict=True):
        kit.check_same_bits(host(p), q, p.dtype, f"{sample} after it was shown", str)
