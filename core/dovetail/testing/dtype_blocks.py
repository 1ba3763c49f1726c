"""Cases of block formats: numbers that share a scale go to the nearest level."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ..capture.jit import jit
from ..device_class import Device
from ..dtypes import float16, float32, int32
from ..errors import DTypeError, ShapeError
from ..functions.creation import constructors
from ..functions.datatypes import astype
from ..functions.elementwise import op_functions
from ..functions.products.matrix_products import matmul
from ..functions.reductions import statistics
from ..plugins.registry import open_device
from ..plugins.registry import registry as backends
from ..tensor import tensor as T
from ..tensor.host import from_host
from ..tensor.other_layouts import LayoutTensor
from .dtype import BlockKit
from .kit import host
from .values import Array, specials

SHAPES = ((32,), (1,), (5, 64), (3, 100), (0, 40), (4, 0), (2, 3, 33), (70, 96))


def numbers(shape: tuple[int, ...], seed: int = 1) -> Array:
    """Return float32 normal samples with magnitudes spread over 18 powers of two."""
    rng = np.random.default_rng(seed)
    values: Array = (rng.normal(size=shape) * 2.0 ** rng.integers(-9, 9, shape)).astype(np.float32)
    return values


def put(kit: BlockKit, values: Array, on: Device | None = None) -> Any:
    """Quantise a float32 array into the block format on `on`, or on the kit's device."""
    return astype(from_host(values, float32, on or kit.device), kit.name)


def exact_numbers(kit: BlockKit, shape: tuple[int, ...], seed: int) -> Array:
    """Return numbers that are levels of their blocks, and whose products are exact."""
    info, rng = kit.blocks.info, np.random.default_rng(seed)
    values: Array = rng.choice(np.array(info.levels, np.float32), shape)
    values[..., :: info.block] = info.levels[-1]
    return values


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numbers_go_to_the_nearest_level(kit: BlockKit, shape: tuple[int, ...]) -> None:
    """Check layout, dtype and values of quantised arrays against the expected rounding."""
    for seed in range(3):
        x = numbers(shape, seed)
        with kit.on_device("quantised"):
            q = put(kit, x)
            actual = host(q.to_dense())
        kit.require(isinstance(q, LayoutTensor) and q.layout is kit.blocks.info.layout, "layout")
        kit.require((q.shape, q.dtype, q.device) == (shape, float32, kit.device), f"{q!r}")
        kit.check_same_numbers(
            actual, kit.blocks.round_to_nearest(x), f"numbers of shape {shape}", x
        )


def test_ties_go_to_the_even_level(kit: BlockKit) -> None:
    """Check levels, midpoints of levels and their float32 neighbours against the rounding rule."""
    info = kit.blocks.info
    levels = np.array(info.levels, np.float32)
    x = np.concatenate([levels, (levels[1:] + levels[:-1]) / 2])
    beside = np.concatenate([np.nextafter(x, np.float32(9)), np.nextafter(x, np.float32(-9)), x])
    rows = np.zeros((beside.size, info.block), np.float32)
    rows[:, 0], rows[:, 1] = levels[-1], np.clip(beside, levels[0], levels[-1])
    kit.check_same_numbers(
        host(put(kit, rows).to_dense()), kit.blocks.round_to_nearest(rows), "half way", rows
    )


def test_levels_stay(kit: BlockKit) -> None:
    """Check that levels times a power of two are quantised exactly, and blocks not once more."""
    x = exact_numbers(kit, (6, 3 * kit.blocks.info.block), 2)
    for scale in (1.0, 0.125, 1024.0):
        q = put(kit, x * np.float32(scale))
        kit.check_same_numbers(host(q.to_dense()), x * np.float32(scale), f"levels times {scale}")
        kit.check_same_numbers(
            host(astype(q.to_dense(), kit.name).to_dense()), x * np.float32(scale), "again"
        )
        kit.require(astype(q, kit.name) is q, "is quantised again, though it is in blocks")


def test_it_is_small(kit: BlockKit) -> None:
    """Check that an element takes the bits that its levels need, plus its share of a scale."""
    info, shape = kit.blocks.info, (64, 8 * kit.blocks.info.block)
    q = put(kit, numbers(shape))
    bits = 8 * q.nbytes / q.size
    need = np.ceil(np.log2(len(info.levels)))
    kit.require(need <= bits <= need + 32 / info.block, f"an element takes {bits} bits, not {need}")


def test_special_values(kit: BlockKit) -> None:
    """Check that exactly the blocks with NaN or infinity are NaN, and that zeros stay zeros."""
    info = kit.blocks.info
    x = numbers((6, 3 * info.block))
    x[0, 1], x[1, info.block], x[2, -1] = np.nan, np.inf, -np.inf
    x[3], x[4, :] = 0.0, -0.0
    x[5, : info.block] = np.resize(specials(float32)[np.isfinite(specials(float32))], info.block)
    actual, wanted = host(put(kit, x).to_dense()), kit.blocks.round_to_nearest(x)
    kit.check_same_numbers(np.abs(actual), np.abs(wanted), "special values", x)
    kit.require(np.isnan(actual).sum() == 3 * info.block, "NaN spreads, or does not")


def test_blocks_are_apart(kit: BlockKit) -> None:
    """Check that a large number changes the scale of its own block only."""
    block = kit.blocks.info.block
    x = numbers((4 * block,))
    y = x.copy()
    y[block + 3] = 3e30
    a, b = (host(put(kit, v).to_dense()) for v in (x, y))
    same = np.delete(np.arange(4 * block), np.arange(block, 2 * block))
    kit.check_same_numbers(b[same], a[same], "numbers of other blocks")
    beside = np.delete(b[block : 2 * block], 3)
    kit.require(b[block + 3] > 1e30 and not beside.any(), "its own block keeps another scale")


def test_from_others(kit: BlockKit) -> None:
    """Check quantisation of float16; check the errors for 0-d tensors, integers and `zeros`."""
    x = numbers((3, 40)).astype(np.float16)
    with np.errstate(all="ignore"):
        actual = host(astype(from_host(x, float16, kit.device), kit.name).to_dense())
    kit.check_same_numbers(
        actual, kit.blocks.round_to_nearest(x.astype(np.float32)), "from float16"
    )
    number = constructors.zeros((), device=kit.device)
    integers = constructors.zeros(4, dtype=int32, device=kit.device)
    for wrong, error in ((number, ShapeError), (integers, DTypeError)):
        with pytest.raises(error, match=kit.name):
            astype(wrong, kit.name)
        kit.comparisons += 1
    with pytest.raises(DTypeError, match="astype"):
        constructors.zeros(4, dtype=kit.name, device=kit.device)


def results(kit: BlockKit, on: Device) -> list[T.Tensor]:
    """Return the parts of a tensor in blocks, and its products, function values and views."""
    block = kit.blocks.info.block
    q, x = (
        put(kit, numbers((7, 2 * block + 5)), on),
        from_host(numbers((3, 2 * block + 5), 4), float32, on),
    )
    return [
        *q.parts,
        q.to_dense(),
        matmul(x, q.T),
        matmul(q, x.T),
        matmul(q, x[0]),
        op_functions.exp(q) + 1,
        q * 2 - q,
        statistics.sum(q, axis=1),
        q[2:5, ::-3],
        q.T.reshape(-1),
    ]


def test_devices_agree(kit: BlockKit) -> None:
    """Check that every device gives the same bits, and that a tensor survives a move and back."""
    wanted = [host(r) for r in results(kit, kit.device)]
    for name in backends.devices():
        on = open_device(name).device
        for k, (r, w) in enumerate(zip(results(kit, on), wanted, strict=True)):
            kit.check_same_bits(host(r), w, r.dtype, f"result {k} on {on}", str)
        moved = put(kit, numbers((4, 50))).to(on)
        kit.require(moved.device is on and moved.layout is kit.blocks.info.layout, f"to {on}")
        back = host(moved.to(kit.device).to_dense())
        kit.check_same_numbers(
            back, host(put(kit, numbers((4, 50))).to_dense()), f"to {on} and back"
        )


BLOCK_FUNCTIONS: dict[str, Callable[[T.Tensor], T.Tensor]] = {
    "exp": op_functions.exp,
    "less one": lambda q: q - 1,
    "sum": statistics.sum,
    "largest of columns": lambda q: statistics.max(q, axis=0),
    "softmax": lambda q: op_functions.softmax(q, axis=1),
    "rows": lambda q: q[1:4],
    "turned": lambda q: q.T + 0,
}


def test_functions_read_it(kit: BlockKit) -> None:
    """Check that functions of blocks give the bits of functions of `to_dense`."""
    block = kit.blocks.info.block
    q = put(kit, numbers((6, 3 * block)))
    d = q.to_dense()
    for name, f in BLOCK_FUNCTIONS.items():
        kit.check_same_numbers(host(f(q)), host(f(d)), name)


def test_products(kit: BlockKit) -> None:
    """Check exact matrix and vector products with strided operands, on both sides and captured."""
    block = kit.blocks.info.block
    for n, k, m in ((5, 2 * block, 3), (4, block + 7, 6), (1, 1, 1), (3, 2 * block, 0)):
        w, x = exact_numbers(kit, (n, k), 1), exact_numbers(kit, (m, k), 2)
        q, a = put(kit, w), from_host(x, float32, kit.device)
        with kit.on_device("products"):
            kit.check_same_numbers(host(matmul(a, q.T)), x @ w.T, f"x @ w.T, {(n, k, m)}")
            kit.check_same_numbers(host(matmul(q, a.T)), w @ x.T, f"w @ x.T, {(n, k, m)}")
            if m:
                kit.check_same_numbers(host(matmul(q, a[0])), w @ x[0], "w @ a vector")
                kit.check_same_numbers(host(matmul(a[0], q.T)), w @ x[0], "a vector @ w.T")
            f = jit(lambda v: matmul(v, q.T) + 1)  # noqa: B023  # called here
            for _ in range(2):
                kit.check_same_numbers(host(f(a)), x @ w.T + 1, "captured")
        e = from_host(exact_numbers(kit, (m, n), 3), float32, kit.device)
        kit.check_same_numbers(host(matmul(e, q)), host(e) @ w, "across blocks")
    with pytest.raises(ShapeError, match="matmul"):
        matmul(constructors.ones((2, 3), device=kit.device), put(kit, numbers((4, 40))).T)


def test_gradients_reach_activations(kit: BlockKit) -> None:
    """Check the gradient of x @ w.T by x, where only `w` is quantised."""
    w, x = exact_numbers(kit, (5, 70), 1), exact_numbers(kit, (3, 70), 2)
    a = from_host(x, float32, kit.device).requires_grad_()
    statistics.sum(matmul(a, put(kit, w).T)).backward()
    assert a.grad is not None
    kit.check_same_numbers(
        host(a.grad), np.broadcast_to(w.sum(axis=0), x.shape), "gradient of x @ w.T"
    )


@pytest.mark.parametrize("way", ("copy", "deepcopy", "pickle"))
def test_kept(kit: BlockKit, way: str) -> None:
    """Check that copies and pickles have the same numbers, and that repr names format and shape."""
    copiers: Callable[[Any], Any] = {
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "pickle": lambda x: pickle.loads(pickle.dumps(x, 4)),
    }[way]
    q = put(kit, numbers((3, 50)))
    for x in (q, q.T):
        y = copiers(x)
        kit.require((y.shape, y.layout, y.device) == (x.shape, x.layout, x.device), f"{y!r}")
        kit.check_same_numbers(host(y.to_dense()), host(x.to_dense()), way)
    for fact in (kit.name, "float32", "3", "50"):
        kit.require(fact in repr(q), f"repr does not say {fact}: {q!r}")
