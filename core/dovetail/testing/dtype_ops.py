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
EXACT = {"nextafter"}  # ops that see the dtype itself


def grid(kit: DTypeKit, shape: tuple[int, ...], seed: int) -> Array:
    """Return codes of ordinary numbers."""
    rng, positive = np.random.default_rng(seed), kit.brought.positive
    usual = np.flatnonzero((positive > 2.0**-4) & (positive < 8.0))
    codes = rng.choice(usual if usual.size else np.arange(positive.size), shape)
    signs = rng.integers(0, 2, shape) << (kit.dtype.bits - 1)
    numbers: Array = (codes | signs).astype(host_dtype(kit.dtype))
    return numbers


def both(kit: DTypeKit, codes: Array) -> tuple[T.Tensor, T.Tensor]:
    """Return numbers in the dtype on the device, and in float32 on the reference."""
    wide = from_host(decode(codes, kit.dtype), float32, device(REFERENCE))
    return from_host(codes, kit.dtype, kit.device), wide


def round_once(kit: DTypeKit, x: T.Tensor) -> Array:
    """Return a float32 result, rounded once."""
    return kit.brought.nearest(host(x))


def _takes(name: str, d: DType) -> bool:
    op = ops.TABLE[name]
    try:
        op.dtypes(name, [d] * op.arity, None)
    except Exception:
        return False
    return op not in (ops.WHERE, ops.CLIP) if hasattr(ops, "CLIP") else op is not ops.WHERE


@pytest.mark.parametrize("name", MAPS)
def test_elementwise(kit: DTypeKit, name: str) -> None:
    """Every row of the op table that takes it: the float32 result, rounded."""
    op, d = ops.TABLE[name], kit.dtype
    if not _takes(name, d):
        kit.claim(True, "is not taken")
        return
    codes = kit.brought.codes
    if codes.size > 256:
        codes = np.concatenate([codes[:: codes.size // 128], codes[-3:], codes[:3]])
    columns = [codes] if op.arity == 1 else [g.ravel() for g in np.meshgrid(codes[::5], codes[::3])]
    columns += [columns[0][::-1].copy()] * (op.arity - len(columns))
    inputs = [both(kit, c) for c in columns]
    with kit.on_device(name):
        actual = apply(op, [x for x, _ in inputs])
        values = host(actual)
    with eager():
        wanted = apply(op, [w for _, w in inputs])
        expected = host(wanted)
    if actual.dtype is not d:
        kit.claim(actual.dtype is wanted.dtype, f"{name} gives {actual.dtype.name}")
        kit.same(values, expected, actual.dtype, name, str)
    elif name not in EXACT:
        kit.alike(decode(values, d), kit.brought.nearest(expected), name, columns[0])
    else:
        kit.claim(True, "its own")


def test_nextafter(kit: DTypeKit) -> None:
    """The next code, in either direction."""
    positive = kit.brought.positive
    x, _ = both(kit, np.arange(positive.size - 1).astype(host_dtype(kit.dtype)))
    top = from_host(np.array([positive.size - 1], host_dtype(kit.dtype)), kit.dtype, kit.device)
    up, down = op_functions.nextafter(x, top), op_functions.nextafter(x, -top)
    kit.alike(kit.values(up), positive[1:].astype(np.float32), "upwards")
    below = np.append(-positive[1:2], positive[: positive.size - 2]).astype(np.float32)
    kit.alike(kit.values(down), below, "downwards")


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
LOOKS: dict[str, Function] = {  # whose results are of another dtype
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
    return ops.ARGMAX.dtypes("argmax", [float32], None)[1]


@pytest.mark.parametrize("how", ("deferred", "eager", "captured"))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(kit: DTypeKit, name: str, how: str) -> None:
    f = FUNCTIONS[name]
    x, wide = both(kit, grid(kit, (13, 37), 5))
    with kit.on_device(name):
        if how == "eager":
            with eager():
                actual = kit.values(f(x))
        else:
            g = jit(f) if how == "captured" else f
            actual = kit.values(g(x))
            if how == "captured":
                kit.alike(kit.values(g(x)), actual, f"{name}, replayed")
    kit.alike(actual, round_once(kit, f(wide)), f"{name}, {how}")


@pytest.mark.parametrize("name", LOOKS)
def test_looks(kit: DTypeKit, name: str) -> None:
    f = LOOKS[name]
    x, wide = both(kit, grid(kit, (13, 37), 6))
    actual, wanted = f(x), f(wide)
    kit.claim(actual.dtype is wanted.dtype, f"{name} gives {actual.dtype.name}")
    kit.same(host(actual), host(wanted), actual.dtype, name, str)


def test_every_code_is_sorted(kit: DTypeKit) -> None:
    """NaNs last, and of equal ones the first first."""
    codes = np.random.default_rng(4).permutation(kit.brought.codes)
    x, wide = both(kit, codes)
    kit.alike(kit.values(stable_sort.sort(x)), host(stable_sort.sort(wide)), "sort of every code")
    actual, wanted = stable_sort.argsort(x), stable_sort.argsort(wide)
    kit.same(host(actual), host(wanted), actual.dtype, "argsort of every code", str)


@pytest.mark.parametrize("name", [n for n in MAPS if rules_of(ops.TABLE[n])])
def test_gradients(kit: DTypeKit, name: str) -> None:
    """They have the dtype of what they are of, and no NaN where float32's have none."""
    op = ops.TABLE[name]
    if not _takes(name, kit.dtype):
        kit.claim(True, "is not taken")
        return
    inputs = [both(kit, grid(kit, (11,), seed)) for seed in range(op.arity)]
    leaves = [x.detach().requires_grad_() for x, _ in inputs]
    wides = [w.detach().requires_grad_() for _, w in inputs]
    for operands in (leaves, wides):
        out = apply(op, operands)
        if not out.requires_grad:
            kit.claim(True, "has none")
            return
        statistics.sum(astype(out, float32)).backward()
    for x, w in zip(leaves, wides, strict=True):
        if w.grad is None:
            kit.claim(x.grad is None, f"{name}: a gradient where float32 has none")
            continue
        assert x.grad is not None, kit.failure(f"{name}: no gradient", "")
        actual, wanted = kit.values(x.grad), host(w.grad)
        lost = np.isnan(actual) & (np.abs(wanted) < kit.brought.info.max)
        kit.claim(not lost.any(), f"the gradient of {name} is {actual[lost][:3].tolist()}")


def test_a_gradient_is_rounded_once(kit: DTypeKit) -> None:
    codes = grid(kit, (50,), 8)
    x = both(kit, codes)[0].detach().requires_grad_()
    weights = np.random.default_rng(9).normal(size=50).astype(np.float32)
    statistics.sum(astype(x, float32) * from_host(weights, float32, kit.device)).backward()
    assert x.grad is not None, kit.failure("astype: no gradient", "")
    kit.alike(kit.values(x.grad), kit.brought.nearest(weights), "weights as gradients")


def test_creation_and_writes(kit: DTypeKit) -> None:
    d, on = kit.dtype, kit.device
    kit.alike(
        kit.values(constructors.full((3,), 1.5, dtype=d, device=on)),
        kit.brought.nearest(np.full(3, 1.5)),
        "full",
    )
    kit.alike(kit.values(constructors.zeros(3, dtype=d, device=on)), np.zeros(3), "zeros")
    kit.alike(
        kit.values(constructors.ones((2, 2), dtype=d.name, device=on)), np.ones((2, 2)), "ones"
    )
    x = constructors.zeros(6, dtype=d, device=on)
    x[1] = 1.0
    x[2:4] += 2.0
    x[4:] = constructors.ones(2, dtype=float32, device=on)
    kit.alike(kit.values(x), np.array([0, 1, 2, 2, 1, 1.0]), "written in place")


def test_random(kit: DTypeKit) -> None:
    d, on = kit.dtype, kit.device
    u = kit.values(Generator(7).uniform((2000,), dtype=d, device=on))
    kit.claim((u >= 0).all() and (u < 1).all() and np.unique(u).size > 3, "uniform is not in 0..1")
    z = kit.values(Generator(7).normal((2000,), dtype=d, device=on))
    wide = Generator(7).normal((2000,), dtype=float32, device=device(REFERENCE))
    kit.alike(z, round_once(kit, wide), "normal")


def test_shown(kit: DTypeKit) -> None:
    """A tensor prints its numbers, with the name of its dtype."""
    codes = grid(kit, (3, 4), 3)
    x, wide = both(kit, codes)
    kit.claim(str(x) == str(wide), f"prints as {x}")
    kit.claim(f"dtype={kit.dtype.name}" in repr(x), f"repr is {x!r}")
    kit.claim(tolist(x) == tolist(wide) and item(x[0, 0]) == item(wide[0, 0]), "tolist or item")
    try:
        x.numpy()
    except DTypeError as error:
        kit.claim(kit.dtype.name in str(error), f"numpy() says {error}")
    else:
        kit.claim(False, "numpy() gives an array of a dtype that NumPy lacks")


def test_kept(kit: DTypeKit) -> None:
    """Copied and sent, with the same bits."""
    x, _ = both(kit, kit.brought.codes)
    held_in = io.BytesIO()
    pickle.dump(x, held_in, 4)  # 5 may share memory of the host
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(held_in.getvalue()), x.copy()):
        kit.claim(y.dtype is x.dtype and y.device is x.device, f"a copy of {y.dtype.name}")
        kit.alike(kit.values(y), kit.brought.numbers, "a copy")  # a NaN is as good as another


def test_shared(kit: DTypeKit) -> None:
    """By DLPack, where that has a code for it."""
    x, _ = both(kit, kit.brought.codes)
    if kit.brought.info.dlpack is None:
        try:
            x.__dlpack__()
        except SharingError as error:
            kit.claim(kit.dtype.name in str(error), f"__dlpack__ says {error}")
        else:
            kit.claim(False, "__dlpack__ gives what DLPack has no code for")
        return
    y = from_dlpack(cast(HasDLPack, x))
    kit.claim(y.dtype is x.dtype, f"comes back as {y.dtype.name}: its code is another dtype's")
    kit.claim(np.array_equal(host(y), kit.brought.codes), "comes back with other bits")


CHAIN: Function = lambda x: op_functions.softmax(x * 2 - statistics.mean(x, axis=0), axis=1)  # noqa: E731


def test_devices_agree(kit: DTypeKit) -> None:
    """Every device that is here gives the same bits."""
    codes = grid(kit, (31, 45), 2)
    wanted = None
    for name in backends.devices():
        opened = open_device(name)
        x = from_host(codes, kit.dtype, opened.device)
        results = (x.to(kit.device), CHAIN(x), matmul(x, x.T), stable_sort.sort(x, axis=0), x + 1.0)
        bits = [host(p) for p in results]
        wanted = bits if wanted is None else wanted
        for k, (a, b) in enumerate(zip(bits, wanted, strict=True)):
            kit.same(a, b, kit.dtype, f"result {k} on {name}", str)
