"""Dtypes, level 3: ops compute in float32 and round once, on every device alike."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from ..autograd.tape import rules_of
from ..capture.jit import jit
from ..device_class import device
from ..dtypes import DType, bool_, float32
from ..errors import DTypeError, SharingError
from ..functions.creation import constructors
from ..functions.datatypes import astype
from ..functions.elementwise import op_functions
from ..functions.indexing import index_reads
from ..functions.io.interop import HasDLPack, from_dlpack
from ..functions.products.matrix_products import matmul
from ..functions.random.generator import Generator
from ..functions.reductions import cumulative, statistics
from ..functions.shape.copies import concat
from ..functions.sorting import stable_sort
from ..ops import table as ops
from ..plugins.registry import open_device
from ..plugins.registry import registry as backends
from ..settings import eager
from ..tensor import tensor as T
from ..tensor.host import from_host, item, tolist
from ..tensor.primitives import apply
from .cases import rows
from .dtype import DTypeKit
from .kit import REFERENCE, host
from .values import Array, decode, host_dtype

Function = Callable[..., Any]
MAPS = tuple(op.name for op in rows("map") if op is not ops.ASTYPE)
DTYPE_SPECIFIC_OPS = {"nextafter"}  # ops that see the dtype itself


def grid(kit: DTypeKit, shape: tuple[int, ...], seed: int) -> Array:
    """Return random codes of numbers between 1/16 and 8, of both signs."""
    rng, positive = np.random.default_rng(seed), kit.subject.positive
    usual = np.flatnonzero((positive > 2.0**-4) & (positive < 8.0))
    codes = rng.choice(usual if usual.size else np.arange(positive.size), shape)
    signs = rng.integers(0, 2, shape) << (kit.dtype.bits - 1)
    numbers: Array = (codes | signs).astype(host_dtype(kit.dtype))
    return numbers


def device_and_reference(kit: DTypeKit, codes: Array) -> tuple[T.Tensor, T.Tensor]:
    """Return the codes on the device, and their numbers in float32 on the reference."""
    wide = from_host(decode(codes, kit.dtype), float32, device(REFERENCE))
    return from_host(codes, kit.dtype, kit.device), wide


def round_once(kit: DTypeKit, x: T.Tensor) -> Array:
    """Return a float32 tensor's values, rounded to the nearest number of the dtype."""
    return kit.subject.round_to_nearest(host(x))


def _accepts_dtype(name: str, d: DType) -> bool:
    """Return True if an elementwise row of the op table, except WHERE and CLIP, takes the dtype."""
    op = ops.TABLE[name]
    try:
        op.dtypes(name, [d] * op.arity, None)
    except Exception:
        return False
    return op not in (ops.WHERE, ops.CLIP) if hasattr(ops, "CLIP") else op is not ops.WHERE


@pytest.mark.parametrize("name", MAPS)
def test_elementwise(kit: DTypeKit, name: str) -> None:
    """Check that a row gives float32's result, rounded; rows of DTYPE_SPECIFIC_OPS only run."""
    op, d = ops.TABLE[name], kit.dtype
    if not _accepts_dtype(name, d):
        kit.require(True, "is not taken")
        return
    codes = kit.subject.codes
    if codes.size > 256:
        codes = np.concatenate([codes[:: codes.size // 128], codes[-3:], codes[:3]])
    columns = [codes] if op.arity == 1 else [g.ravel() for g in np.meshgrid(codes[::5], codes[::3])]
    columns += [columns[0][::-1].copy()] * (op.arity - len(columns))
    inputs = [device_and_reference(kit, c) for c in columns]
    with kit.on_device(name):
        actual = apply(op, [x for x, _ in inputs])
        values = host(actual)
    with eager():
        wanted = apply(op, [w for _, w in inputs])
        expected = host(wanted)
    if actual.dtype is not d:
        kit.require(actual.dtype is wanted.dtype, f"{name} gives {actual.dtype.name}")
        kit.check_same_bits(values, expected, actual.dtype, name, str)
    elif name not in DTYPE_SPECIFIC_OPS:
        kit.check_same_numbers(
            decode(values, d), kit.subject.round_to_nearest(expected), name, columns[0]
        )
    else:
        kit.require(True, "its own")


def test_nextafter(kit: DTypeKit) -> None:
    """Check that `nextafter` gives the next code in either direction."""
    positive = kit.subject.positive
    x, _ = device_and_reference(kit, np.arange(positive.size - 1).astype(host_dtype(kit.dtype)))
    top = from_host(np.array([positive.size - 1], host_dtype(kit.dtype)), kit.dtype, kit.device)
    up, down = op_functions.nextafter(x, top), op_functions.nextafter(x, -top)
    kit.check_same_numbers(kit.values(up), positive[1:].astype(np.float32), "upwards")
    below = np.append(-positive[1:2], positive[: positive.size - 2]).astype(np.float32)
    kit.check_same_numbers(kit.values(down), below, "downwards")


# Functions whose results are those of float32, rounded once.
FUNCTIONS: dict[str, Function] = {
    "sum": statistics.sum,
    "sum of rows": lambda x: statistics.sum(x, axis=1),
    "sum of columns": lambda x: statistics.sum(x, axis=0, keepdims=True),
    "mean": lambda x: statistics.mean(x, axis=0),
    "max": statistics.max,
    "min of rows": lambda x: statistics.min(x, axis=1),
    "prod": lambda x: statistics.prod(x[:, :3], axis=1),
    "cumulative sum": lambda x: cumulative.cumulative_sum(x, axis=1),
    "matmul": lambda x: matmul(x, x.T),
    "sort": lambda x: stable_sort.sort(x, axis=1),
    "sort descending": lambda x: stable_sort.sort(x, axis=0, descending=True),
    "flipped": lambda x: x[::-1, ::2],
    "transposed": lambda x: x.T.reshape(-1),
    "concat": lambda x: concat([x, x + x], axis=1),
    "take": lambda x: index_reads.take(
        x, from_host(np.array([3, 0]), np_int64(), x.device), axis=1
    ),
    "where": lambda x: op_functions.where(x > 0, x, -x),
    "relu": op_functions.relu,
    "scaled": lambda x: x * 0.5,
    "cubed in float32": lambda x: astype(astype(x, float32) ** 3, x.dtype),
}
OTHER_DTYPE_FUNCTIONS: dict[str, Function] = {  # whose results are of another dtype
    "argsort": lambda x: stable_sort.argsort(x, axis=1),
    "argmax": lambda x: statistics.argmax(x, axis=0),
    "argmin": statistics.argmin,
    "greater": lambda x: x > x.T[: x.shape[1], : x.shape[0]].T[::-1],
    "equal": lambda x: x == x[::-1],
    "any": statistics.any,
    "count": lambda x: statistics.count_nonzero(x, axis=1),
    "as bool": lambda x: astype(x, bool_),
    "isnan": op_functions.isnan,
}


def np_int64() -> DType:
    """Return the dtype that argmax gives for float32."""
    return ops.ARGMAX.dtypes("argmax", [float32], None)[1]


@pytest.mark.parametrize("how", ("deferred", "eager", "captured"))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(kit: DTypeKit, name: str, how: str) -> None:
    """Check that a function gives the float32 result rounded once; deferred, eager or captured."""
    f = FUNCTIONS[name]
    x, wide = device_and_reference(kit, grid(kit, (13, 37), 5))
    with kit.on_device(name):
        if how == "eager":
            with eager():
                actual = kit.values(f(x))
        else:
            g = jit(f) if how == "captured" else f
            actual = kit.values(g(x))
            if how == "captured":
                kit.check_same_numbers(kit.values(g(x)), actual, f"{name}, replayed")
    kit.check_same_numbers(actual, round_once(kit, f(wide)), f"{name}, {how}")


@pytest.mark.parametrize("name", OTHER_DTYPE_FUNCTIONS)
def test_looks(kit: DTypeKit, name: str) -> None:
    """Check functions with results of another dtype, such as argsort, against those of float32."""
    f = OTHER_DTYPE_FUNCTIONS[name]
    x, wide = device_and_reference(kit, grid(kit, (13, 37), 6))
    actual, wanted = f(x), f(wide)
    kit.require(actual.dtype is wanted.dtype, f"{name} gives {actual.dtype.name}")
    kit.check_same_bits(host(actual), host(wanted), actual.dtype, name, str)


def test_every_code_is_sorted(kit: DTypeKit) -> None:
    """Check that `sort` and `argsort` put NaNs last and are stable."""
    codes = np.random.default_rng(4).permutation(kit.subject.codes)
    x, wide = device_and_reference(kit, codes)
    kit.check_same_numbers(
        kit.values(stable_sort.sort(x)), host(stable_sort.sort(wide)), "sort of every code"
    )
    actual, wanted = stable_sort.argsort(x), stable_sort.argsort(wide)
    kit.check_same_bits(host(actual), host(wanted), actual.dtype, "argsort of every code", str)


@pytest.mark.parametrize("name", [n for n in MAPS if rules_of(ops.TABLE[n])])
def test_gradients(kit: DTypeKit, name: str) -> None:
    """Check that gradients, if any, have their leaf's dtype, and NaN only where float32's have."""
    op = ops.TABLE[name]
    if not _accepts_dtype(name, kit.dtype):
        kit.require(True, "is not taken")
        return
    inputs = [device_and_reference(kit, grid(kit, (11,), seed)) for seed in range(op.arity)]
    leaves = [x.detach().requires_grad_() for x, _ in inputs]
    wides = [w.detach().requires_grad_() for _, w in inputs]
    for operands in (leaves, wides):
        out = apply(op, operands)
        if not out.requires_grad:
            kit.require(True, "has none")
            return
        statistics.sum(astype(out, float32)).backward()
    for x, w in zip(leaves, wides, strict=True):
        if w.grad is None:
            kit.require(x.grad is None, f"{name}: a gradient where float32 has none")
            continue
        assert x.grad is not None, kit.failure(f"{name}: no gradient", "")
        actual, wanted = kit.values(x.grad), host(w.grad)
        lost = np.isnan(actual) & (np.abs(wanted) < kit.subject.info.max)
        kit.require(not lost.any(), f"the gradient of {name} is {actual[lost][:3].tolist()}")


def test_a_gradient_is_rounded_once(kit: DTypeKit) -> None:
    """Check that the gradient through a cast to float32 is rounded once to the dtype."""
    codes = grid(kit, (50,), 8)
    x = device_and_reference(kit, codes)[0].detach().requires_grad_()
    weights = np.random.default_rng(9).normal(size=50).astype(np.float32)
    statistics.sum(astype(x, float32) * from_host(weights, float32, kit.device)).backward()
    assert x.grad is not None, kit.failure("astype: no gradient", "")
    kit.check_same_numbers(
        kit.values(x.grad), kit.subject.round_to_nearest(weights), "weights as gradients"
    )


def test_creation_and_writes(kit: DTypeKit) -> None:
    """Check `full`, `zeros` and `ones` of the dtype, and writes to a tensor in place."""
    d, on = kit.dtype, kit.device
    kit.check_same_numbers(
        kit.values(constructors.full((3,), 1.5, dtype=d, device=on)),
        kit.subject.round_to_nearest(np.full(3, 1.5)),
        "full",
    )
    kit.check_same_numbers(
        kit.values(constructors.zeros(3, dtype=d, device=on)), np.zeros(3), "zeros"
    )
    kit.check_same_numbers(
        kit.values(constructors.ones((2, 2), dtype=d.name, device=on)), np.ones((2, 2)), "ones"
    )
    x = constructors.zeros(6, dtype=d, device=on)
    x[1] = 1.0
    x[2:4] += 2.0
    x[4:] = constructors.ones(2, dtype=float32, device=on)
    kit.check_same_numbers(kit.values(x), np.array([0, 1, 2, 2, 1, 1.0]), "written in place")


def test_random(kit: DTypeKit) -> None:
    """Check that uniform numbers lie in 0..1, and that normal ones are float32's rounded once."""
    d, on = kit.dtype, kit.device
    u = kit.values(Generator(7).uniform((2000,), dtype=d, device=on))
    kit.require(
        (u >= 0).all() and (u < 1).all() and np.unique(u).size > 3, "uniform is not in 0..1"
    )
    z = kit.values(Generator(7).normal((2000,), dtype=d, device=on))
    wide = Generator(7).normal((2000,), dtype=float32, device=device(REFERENCE))
    kit.check_same_numbers(z, round_once(kit, wide), "normal")


def test_shown(kit: DTypeKit) -> None:
    """Check `str`, `repr`, `tolist`, `item`, and `numpy()`: equal values, or an error."""
    codes = grid(kit, (3, 4), 3)
    x, wide = device_and_reference(kit, codes)
    kit.require(str(x) == str(wide), f"prints as {x}")
    kit.require(f"dtype={kit.dtype.name}" in repr(x), f"repr is {x!r}")
    kit.require(tolist(x) == tolist(wide) and item(x[0, 0]) == item(wide[0, 0]), "tolist or item")
    try:
        array = x.numpy()  # of the package ml_dtypes, if that has the dtype
    except DTypeError as error:
        kit.require(kit.dtype.name in str(error), f"numpy() says {error}")
    else:
        same = np.array_equal(array.astype(np.float64), np.asarray(tolist(x)), equal_nan=True)
        kit.require(same, f"numpy() gives {array}")


def test_kept(kit: DTypeKit) -> None:
    """Check that copies and pickles have the same dtype, device and numbers."""
    x, _ = device_and_reference(kit, kit.subject.codes)
    held_in = io.BytesIO()
    pickle.dump(x, held_in, 4)  # 5 may share memory of the host
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(held_in.getvalue()), x.copy()):
        kit.require(y.dtype is x.dtype and y.device is x.device, f"a copy of {y.dtype.name}")
        kit.check_same_numbers(
            kit.values(y), kit.subject.numbers, "a copy"
        )  # a NaN is as good as another


def test_shared(kit: DTypeKit) -> None:
    """Check export by DLPack and import, or the error for a dtype without a DLPack code."""
    x, _ = device_and_reference(kit, kit.subject.codes)
    if kit.subject.info.dlpack is None:
        try:
            x.__dlpack__()
        except SharingError as error:
            kit.require(kit.dtype.name in str(error), f"__dlpack__ says {error}")
        else:
            kit.require(False, "__dlpack__ gives what DLPack has no code for")
        return
    y = from_dlpack(cast(HasDLPack, x))
    kit.require(y.dtype is x.dtype, f"comes back as {y.dtype.name}: its code is another dtype's")
    kit.require(np.array_equal(host(y), kit.subject.codes), "comes back with other bits")


CHAIN: Function = lambda x: op_functions.softmax(x * 2 - statistics.mean(x, axis=0), axis=1)  # noqa: E731


def test_devices_agree(kit: DTypeKit) -> None:
    """Check that every available device gives the same bits."""
    codes = grid(kit, (31, 45), 2)
    wanted = None
    for name in backends.devices():
        opened = open_device(name)
        x = from_host(codes, kit.dtype, opened.device)
        results = (x.to(kit.device), CHAIN(x), matmul(x, x.T), stable_sort.sort(x, axis=0), x + 1.0)
        bits = [host(p) for p in results]
        wanted = bits if wanted is None else wanted
        for k, (a, b) in enumerate(zip(bits, wanted, strict=True)):
            kit.check_same_bits(a, b, kit.dtype, f"result {k} on {name}", str)
