"""Attention against PyTorch; its blocks, memory, gradients and errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.nn.functional import attention
from installed import INSTALLED

attend = dt.nn.functional.scaled_dot_product_attention
SIZES = [(7, 7), (5, 9), (9, 5), (1, 4)]
RNG = np.random.default_rng


@pytest.fixture(params=["one block", "blocks", "small blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the sizes of tiles and blocks: all scores, some rows of two matrices, two rows of one."""
    sizes = {"one block": (1 << 18, 256), "blocks": (64, 4), "small blocks": (8, 2)}
    for name, value in zip(("TILE_SCORES_MAX", "PRODUCT_BLOCK"), sizes[request.param], strict=True):
        monkeypatch.setattr(attention, name, value)


def drawn(*shapes: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> list[Any]:
    rng = RNG(seed)
    return [rng.normal(size=s).astype(dtype) for s in shapes]


def masks(rows: int, columns: int) -> list[Any]:
    rng = RNG(1)
    seen = rng.random((rows, columns)) < 0.6
    seen[0] = False  # attends to nothing
    return [
        None, seen, rng.normal(size=(rows, columns)), rng.random((2, 1, rows, columns)) < 0.6,
        rng.normal(size=(2, 1, 1, columns)), rng.normal(size=(3, rows, 1)),
        np.where(seen, 0.5, -np.inf),
    ]  # fmt: skip


def assert_equals_torch(arrays: list[Any], mask: Any, causal: bool = False, **options: Any) -> None:
    """Compare values, and the gradients of all operands that have one."""
    torch: Any = pytest.importorskip("torch")
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    ours = [dt.asarray(a).requires_grad_() for a in arrays]
    their_mask, our_mask = None, None
    if mask is not None:
        is_float = mask.dtype != bool
        their_mask = torch.tensor(mask, requires_grad=is_float)
        our_mask = dt.asarray(mask).requires_grad_(is_float)
    both = their_mask
    if mask is not None and causal:
        past = torch.ones(arrays[0].shape[-2], arrays[1].shape[-2], dtype=torch.bool).tril()
        both = both.masked_fill(~past, -torch.inf) if both.dtype.is_floating_point else both & past
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *theirs, attn_mask=both, is_causal=causal and mask is None, **options
    )
    found = attend(*ours, attn_mask=our_mask, is_causal=causal, **options)
    (weights,) = drawn(tuple(wanted.shape), seed=5)
    wanted.backward(torch.tensor(weights))
    found.backward(dt.asarray(weights))
    assert_near(found.detach(), wanted.detach())
    for x, y in zip(ours, theirs, strict=True):
        assert_near(x.grad, y.grad)
    if our_mask is not None and our_mask.requires_grad:
        assert_near(our_mask.grad, their_mask.grad)


def assert_near(found: Any, wanted: Any, atol: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted.numpy(), rtol=1e-9, atol=atol)


# --- values and gradients -------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_values_and_gradients_equal_pytorch(
    blocks: None, sizes: tuple[int, int], causal: bool
) -> None:
    rows, columns = sizes
    arrays = drawn((2, 3, rows, 4), (2, 3, columns, 4), (2, 3, columns, 6))
    for mask in masks(rows, columns):
        assert_equals_torch(arrays, mask, causal)


def test_leading_axes_are_broadcast(blocks: None) -> None:
    for causal in (False, True):
        assert_equals_torch(drawn((2, 3, 5, 4), (3, 6, 4), (2, 1, 6, 3)), None, causal)
        assert_equals_torch(drawn((5, 4), (2, 5, 4), (5, 3)), None, causal)
        assert_equals_torch(drawn((5, 4), (5, 4), (5, 3)), None, causal)


@pytest.mark.parametrize("shape", [None, (9, 7), (2, 6, 9, 7), (2, 1, 9, 7)])
def test_grouped_heads_share_keys_and_values(blocks: None, shape: tuple[int, ...] | None) -> None:
    mask = None if shape is None else RNG(2).random(shape) < 0.7
    assert_equals_torch(drawn((2, 6, 9, 4), (2, 2, 7, 4), (2, 2, 7, 5)), mask, enable_gqa=True)


def test_scale_multiplies_the_products() -> None:
    assert_equals_torch(drawn((2, 5, 4), (2, 5, 4), (2, 5, 4)), None, scale=0.3)


def test_empty_keys_and_empty_queries() -> None:
    q, k, v = (dt.asarray(a) for a in drawn((2, 3, 4), (2, 0, 4), (2, 0, 5)))
    assert attend(q, k, v).tolist() == np.zeros((2, 3, 5)).tolist()
    assert attend(k, q, q, is_causal=True).shape == (2, 0, 4)


@pytest.mark.parametrize(("dtype", "eps"), [("float16", 2e-3), ("bfloat16", 2e-2)])
def test_halves_are_computed_in_float32(blocks: None, dtype: str, eps: float) -> None:
    arrays = drawn((2, 9, 4), (2, 9, 4), (2, 9, 4))
    kind = getattr(dt, dtype)
    given = [dt.asarray(a).astype(kind).requires_grad_() for a in arrays]
    exact = [x.detach().astype(dt.float32).requires_grad_() for x in given]
    found, wanted = attend(*given, is_causal=True), attend(*exact, is_causal=True)
    assert found.dtype is kind
    assert (found.detach() == wanted.detach().astype(kind)).all().item()
    found.sum().backward()
    wanted.sum().backward()
    for x, y in zip(given, exact, strict=True):
        assert x.grad is not None and y.grad is not None and x.grad.dtype is kind
        assert np.abs(np.asarray(x.grad.astype(dt.float32)) - np.asarray(y.grad)).max() < eps


def test_second_derivatives_pass_gradgradcheck(blocks: None) -> None:
    given = [dt.asarray(a).requires_grad_() for a in drawn((2, 3, 2), (2, 4, 2), (2, 4, 2), (3, 4))]
    for causal in (False, True):

        def f(*x: Any, causal: bool = causal) -> dt.Tensor:
            return attend(*x, is_causal=causal)

        assert dt.autograd.gradcheck(f, given)
        assert dt.autograd.gradgradcheck(f, given)


# --- properties -----------------------------------------------------------------------------------


def exp(x: Any) -> Any:
    return dt.exp(dt.asarray(x, device="reference")).numpy()


def multiplied(a: Any, b: Any) -> Any:
    """Return a product of at most 256 terms: one fused multiply-add for each, in order."""
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(len(b)):
        total = (a[:, k : k + 1].astype(float) * b[k].astype(float) + total).astype(np.float32)
    return total


def summed(x: Any) -> Any:
    """Return the sum of at most 4096 columns: 32 lanes, which are added in halves."""
    lanes = np.zeros((len(x), 32), np.float32)
    for k in range(x.shape[1]):
        lanes[:, k % 32] += x[:, k]
    for half in (16, 8, 4, 2, 1):
        lanes[:, :half] += lanes[:, half : 2 * half]
    return lanes[:, :1]


def attended(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Compute attention in the order that docs/numerics.md describes."""
    scores = multiplied(q, k.T * np.float32(1 / np.sqrt(q.shape[1])))
    if causal:
        scores[~np.tri(*scores.shape, dtype=bool)] = -np.inf
    top: Any = None
    for i in range(0, len(k), 256):
        block = scores[:, i : i + 256]
        first = np.maximum(block.max(1, keepdims=True), np.finfo(np.float32).min)
        weights = exp(block - first)
        parts = summed(weights), multiplied(weights, v[i : i + 256])
        if top is None:
            top, total, values = first, *parts
            continue
        new = np.maximum(top, first)
        old_factor, factor = exp(top - new), exp(first - new)
        total, values = (
            x * old_factor + y * factor for x, y in zip((total, values), parts, strict=True)
        )
        top = new
    return values / total


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [40, 256, 600])
def test_attention_adds_in_the_documented_order(
    device: dt.Device, length: int, causal: bool
) -> None:
    q, k, v = drawn((length, 8), (length, 8), (length, 3), dtype="float32")
    found = attend(*[dt.asarray(a, device=device) for a in (q, k, v)], is_causal=causal)
    assert found.numpy().tobytes() == attended(q, k, v, causal).tobytes()


def results(arrays: list[Any], device: Any, **options: Any) -> list[Any]:
    """Return attention, and the gradients of the sum of its squares."""
    given = [dt.asarray(a, device=device).requires_grad_() for a in arrays]
    out = attend(*given, **options)
    return [np.asarray(x.detach()) for x in (out, *dt.grad((out * out).sum(), given))]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [1 << 18, 1 << 14])
def test_bits_depend_on_neither_batch_nor_tiles(
    device: dt.Device, monkeypatch: pytest.MonkeyPatch, size: int, causal: bool
) -> None:
    arrays = drawn((2, 3, 300, 8), (2, 3, 270, 8), (2, 3, 270, 4), dtype="float32")
    monkeypatch.setattr(attention, "TILE_SCORES_MAX", size)
    batch = results(arrays, device, is_causal=causal)
    monkeypatch.undo()
    alone = [
        results([a[i, j] for a in arrays], device, is_causal=causal)
        for i, j in itertools.product(range(2), range(3))
    ]
    for n, found in enumerate(batch):
        assert found.tobytes() == b"".join(example[n].tobytes() for example in alone)


def test_exponentials_of_a_large_tile_are_computed_once() -> None:
    q, k, v = (dt.asarray(x, dtype=dt.float32) for x in drawn(*[(8, 4, 64, 16)] * 3))
    with dt.profile() as p:
        dt.evaluate(attend(q, k, v, is_causal=True))
    names = [e["name"] for e in p.events if "exp" in e["name"] and e["name"].startswith("launch")]
    assert len(names) == 1 and "sum" not in names[0]


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_tiles_have_the_bits_of_whole_products(
    device: dt.Device, causal: bool
) -> None:
    """Gradients that are differentiated again are computed without tiles."""
    arrays = drawn((2, 530, 8), (2, 600, 8), (2, 600, 4), dtype="float32")
    _, *gradients = results(arrays, device, is_causal=causal)
    given = [dt.asarray(a, device=device).requires_grad_() for a in arrays]
    out = attend(*given, is_causal=causal)
    whole = dt.grad((out * out).sum(), given, create_graph=True)
    for x, y in zip(gradients, whole, strict=True):
        assert x.tobytes() == y.detach().numpy().tobytes()


@pytest.mark.parametrize("name", ["cpu", "opencl"])
@pytest.mark.parametrize("causal", [False, True])
def test_bits_are_the_same_on_every_device(name: str, causal: bool) -> None:
    if name not in INSTALLED:
        pytest.skip(f"no {name} here")
    mask = RNG(1).random((300, 270)) < 0.9
    for shapes, options in (
        (((2, 9, 4), (2, 9, 4), (2, 9, 3)), {}),
        (((2, 300, 4), (2, 270, 4), (2, 270, 3)), {}),
        (((300, 4), (270, 4), (270, 3)), {"attn_mask": mask}),
    ):
        arrays = drawn(*shapes, dtype="float32")

        def of(device: str, arrays: Any = arrays, options: Any = options) -> list[Any]:
            tensors = {key: dt.asarray(x, device=device) for key, x in options.items()}
            return results(arrays, device, is_causal=causal, **tensors)

        for found, wanted in zip(of(name), of("reference"), strict=True):
            assert found.tobytes() == wanted.tobytes()


def test_bits_do_not_depend_on_threads() -> None:
    if "cpu" not in INSTALLED:
        pytest.skip("no cpu here")
    arrays, before = drawn(*[(4, 4, 520, 32)] * 3, dtype="float32"), dt.get_num_threads()
    try:
        found = []
        for n in (1, 2, 3):
            dt.set_num_threads(n)
            found.append([x.tobytes() for x in results(arrays, "cpu", is_causal=True)])
    finally:
        dt.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_memory_is_linear_in_the_length() -> None:
    if "cpu" not in INSTALLED:
        pytest.skip("no cpu here")

    def peak(length: int, causal: bool) -> int:
        given = [dt.zeros((length, 8), device="cpu").requires_grad_() for _ in range(3)]
        dt.evaluate(*given)
        dt.memory.reset_peak("cpu")
        before = dt.memory.stats("cpu").live_bytes
        dt.evaluate(*dt.grad(attend(*given, is_causal=causal).sum(), given))
        return dt.memory.stats("cpu").peak_live_bytes - before

    for causal in (False, True):
        assert peak(8192, causal) < 2.2 * peak(4096, causal)


def test_full_score_matrix_is_never_stored() -> None:
    """One of 2048 x 2048 float32 has 16 MiB; two heads would need several."""
    if "cpu" not in INSTALLED:
        pytest.skip("no cpu here")
    for causal in (False, True):
        given = [dt.zeros((2, 2048, 8), device="cpu").requires_grad_() for _ in range(3)]
        dt.evaluate(*given)
        dt.memory.reset_peak("cpu")
        before = dt.memory.stats("cpu").live_bytes
        dt.evaluate(*dt.grad(attend(*given, is_causal=causal).sum(), given))
        assert dt.memory.stats("cpu").peak_live_bytes - before < 30 << 20


@pytest.mark.parametrize("make", [dt.jit, dt.vmap])
def test_captured_and_mapped_attention_is_the_same(
    device: dt.Device, blocks: None, make: Callable[..., Callable[..., dt.Tensor]]
) -> None:
    given = [dt.asarray(a) for a in drawn((3, 2, 5, 4), (3, 2, 5, 4), (3, 2, 5, 4))]

    def slopes(*x: dt.Tensor) -> dt.Tensor:
        def f(q: dt.Tensor) -> dt.Tensor:
            return attend(q, *x[1:], is_causal=True).sum()

        return dt.func.grad(f)(x[0])

    found, wanted = make(slopes), slopes(*given).numpy()
    for _ in range(2):
        assert np.allclose(found(*given).numpy(), wanted, atol=1e-14)


def test_dropout_zeroes_weights_and_scales_the_others(blocks: None) -> None:
    given = [dt.asarray(a).requires_grad_() for a in drawn((2, 5, 2), (2, 5, 2), (2, 5, 2))]

    def f(*x: dt.Tensor) -> dt.Tensor:
        dt.random.manual_seed(3)
        return attend(*x, dropout_p=0.3)

    q, k = (dt.asarray(a) for a in drawn((2, 9, 4), (2, 9, 4)))
    one = dt.eye(9, dtype=dt.float64)
    dt.random.manual_seed(3)
    left = attend(q, k, one, dropout_p=0.3).numpy()
    whole = attend(q, k, one).numpy()
    assert 0.1 < (left == 0).mean() < 0.5
    np.testing.assert_allclose(left[left != 0], whole[left != 0] / 0.7)
    assert dt.autograd.gradcheck(f, given)
    assert not attend(q, k, one, dropout_p=1.0).any().item()


def test_captured_dropout_draws_new_numbers() -> None:
    q, k, v = (dt.asarray(a) for a in drawn((2, 9, 4), (2, 9, 4), (2, 9, 4)))
    f = dt.jit(lambda q, k, v: attend(q, k, v, dropout_p=0.5))
    made = [f(q, k, v).numpy() for _ in range(3)]
    assert all((a != b).any() for a, b in itertools.combinations(made, 2))


# --- bad input ------------------------------------------------------------------------------------

X = dt.zeros((2, 5, 4), device="reference")
BAD: list[tuple[Any, Any, str]] = [
    (lambda: attend(X, X[..., :3], X), dt.ShapeError, "query and key must have the same size"),
    (lambda: attend(X, X, X[:, :3]), dt.ShapeError, "key and value must have the same size"),
    (lambda: attend(X[0, 0], X, X), dt.ShapeError, "at least 2 dimensions"),
    (lambda: attend(X, dt.concat([X, X]), X), dt.ShapeError, "enable_gqa=True"),
    (lambda: attend(X, X.astype(dt.float64), X), dt.DTypeError, "must have the same dtype"),
    (lambda: attend(X.astype(dt.int32), X, X), dt.DTypeError, "a float dtype, got .*int32"),
    (lambda: attend([1.0], X, X), dt.ArgumentTypeError, "query must be a tensor, got list"),
    (lambda: attend(X, X, X, X[0].astype(dt.int32)), dt.DTypeError, "attn_mask must be bool"),
    (lambda: attend(X, X, X, X[0]), dt.ShapeError, r"to the scores' shape \(..., 5, 5\)"),
    (lambda: attend(X, X, X, True), dt.ArgumentTypeError, "attn_mask must be a tensor"),
    (lambda: attend(X, X, X, dropout_p=1.5), dt.ArgumentError, "dropout_p must be"),
    (lambda: attend(X[0], X, X, enable_gqa=True), dt.ShapeError, "the heads in axis -3"),
    (lambda: attend(dt.concat([X, X[:1]]), X, X, enable_gqa=True), dt.ShapeError, "a multiple"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), BAD)
def test_wrong_arguments_are_named(call: Callable[[], Any], error: Any, text: str) -> None:
    with pytest.raises(error, match=text) as raised:
        call()
    assert str(raised.value).startswith("scaled_dot_product_attention: ")
