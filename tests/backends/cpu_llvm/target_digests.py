"""Print digests of results of the device cpu, for 1, 2 and 3 threads, as JSON.

A program: `DOVETAIL_CPU_TARGET=avx2 python target_digests.py [STEP]`; with STEP, of one computation
in so many. It raises an error if a row's bits depend on its batch.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable

import dovetail as dt
import dovetail.nn.functional as F
import numpy as np

rng = np.random.default_rng(7)


def normal(*shape: int, dtype: dt.DType = dt.float32) -> dt.Tensor:
    """Return normal numbers on the device cpu."""
    return dt.asarray(rng.normal(size=shape), dtype=dtype, device="cpu")


def elementary(x: dt.Tensor) -> list[dt.Tensor]:
    """Return elementary functions of a tensor's elements, on their domains."""
    positive, unit = dt.abs(x) + 1e-3, dt.tanh(x)
    every = "exp expm1 sin cos tan sinh cosh tanh atan asinh erf sigmoid floor round trunc"
    above_zero, small = "log log2 log1p sqrt reciprocal", "asin acos atanh erfinv"
    pairs = ((every, x), (above_zero, positive), (small, unit))
    found = [getattr(dt, name)(y) for names, y in pairs for name in names.split()]
    return [*found, dt.pow(positive, x), dt.atan2(x, unit), dt.remainder(x, positive)]


def product_rows(a: dt.Tensor, b: dt.Tensor) -> dt.Tensor:
    """Return a product, after a check that single rows have the bits of the whole."""
    whole = a @ b
    for i in (0, 5, len(a) - 1):
        assert_equal_bits(a[i] @ b, whole[i])
        assert_equal_bits(a[i : i + 1] @ b, whole[i : i + 1])
    return whole


def convolutions(x: dt.Tensor, w: dt.Tensor) -> list[dt.Tensor]:
    """Return convolutions of images, after a check that single images have the same bits."""
    whole = F.conv2d(x, w, stride=2, padding=1)
    assert_equal_bits(F.conv2d(x[1:2], w, stride=2, padding=1), whole[1:2])
    return [whole, F.conv2d(x, w), *dt.grad(F.conv2d(x, w, padding=1).sum(), [x, w])]


def attention(q: dt.Tensor, k: dt.Tensor, v: dt.Tensor) -> list[dt.Tensor]:
    """Return attention and its gradients, after a check that single heads have the same bits."""
    found = []
    for is_causal in (False, True):
        out = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        one = (x[1:2, :1] for x in (q, k, v))
        assert_equal_bits(F.scaled_dot_product_attention(*one, is_causal=is_causal), out[1:2, :1])
        found += [out, *dt.grad((out * out).sum(), [q, k, v])]
    return found


def assert_equal_bits(x: dt.Tensor, y: dt.Tensor) -> None:
    """Raise an error if two tensors differ in a bit."""
    assert x.shape == y.shape and digest([x]) == digest([y])


def results() -> dict[str, Callable[[], list[dt.Tensor]]]:
    """Return the computations by name, with their operands made."""
    single, double = normal(50_021) * 8, normal(10_007, dtype=dt.float64) * 8
    half = [single.astype(dt.float16), single.astype(dt.bfloat16)]
    table = normal(301, 517)
    a, b = normal(97, 601), normal(601, 131)
    images, weights = normal(3, 5, 19, 23), normal(7, 5, 3, 3)
    heads = [normal(2, 3, 300, 16) for _ in range(3)]
    for x in (images, weights, *heads):
        x.requires_grad = True
    return {
        "elementary functions of float32": lambda: elementary(single),
        "elementary functions of float64": lambda: elementary(double),
        "elementary functions of halves": lambda: [y for x in half for y in elementary(x)],
        "sums": lambda: [
            *(f(table, axis=axis) for f in (dt.sum, dt.mean, dt.var) for axis in (None, 0, 1)),
            *(dt.sum(x) for x in (single, double, *half)),
            dt.cumulative_sum(single),
            dt.softmax(table, axis=1),
        ],
        "products of float32": lambda: [product_rows(a, b), a.mT[:, :90] @ b.mT[:90], a[0] @ a[1]],
        "products of float64": lambda: [product_rows(a.astype(dt.float64), b.astype(dt.float64))],
        "convolutions": lambda: convolutions(images, weights),
        "attention": lambda: attention(*heads),
        "sorts": lambda: [dt.sort(single), dt.argsort(table, axis=0), single[single > 0]],
        "integers": lambda: [single.astype(dt.int32) // 3, (double * 1e9).astype(dt.int64) % 1001],
    }


def digest(tensors: list[dt.Tensor]) -> str:
    """Return a digest of the bits of tensors."""
    hashed = hashlib.sha256()
    for x in tensors:
        flat = dt.reshape(x.detach(), (-1,)).copy()
        hashed.update(str(x.shape).encode() + flat.view(dt.uint8).numpy().tobytes())
    return hashed.hexdigest()[:16]


def main() -> None:
    """Print {name: {threads: digest}}."""
    step = int(sys.argv[1]) if sys.argv[1:] else 1
    computations, found = [*results().items()][::step], {}
    for name, compute in computations:
        found[name] = {}
        for threads in (1, 2, 3):
            dt.set_num_threads(threads)
            found[name][threads] = digest(compute())
    print(json.dumps(found))


if __name__ == "__main__":
    main()
