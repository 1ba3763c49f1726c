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
    """Set the block size: all scores at once, a few rows of a few matrices, and two rows of one."""
    room = {"one block": (1 << 20, 64, 1 << 17), "blocks": (64, 4, 16), "small blocks": (16, 2, 8)}
    for name, value in zip(
        ("BLOCK_SCORES_MAX", "BLOCK_ROWS_MIN", "CAUSAL_BLOCK_SCORES"),
        room[request.param],
        strict=True,
    ):
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


# --- properties
# -------------------------------------------------------------------------------------


def test_bits_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sums that no block splits: forward, without causality."""
    q, k, v = (dt.asarray(a) for a in drawn((2, 3, 9, 4), (2, 3, 8, 4), (2, 3, 8, 4)))
    whole = attend(q, k, v).numpy()
    for name, value in (("BLOCK_SCORES_MAX", 16), ("BLOCK_ROWS_MIN", 2)):
        monkeypatch.setattr(attention, name, value)
    assert (attend(q, k, v).numpy() == whole).all()


@pytest.mark.parametrize("name", ["cpu", "opencl"])
def test_bits_are_the_same_on_every_device(blocks: None, name: str) -> None:
    if name not in INSTALLED:
        pytest.skip(f"no {name} here")
    arrays = drawn((2, 9, 4), (2, 9, 4), (2, 9, 4), (9, 9), dtype="float32")

    def made(device: str) -> list[Any]:
        given = [dt.asarray(a, device=device).requires_grad_() for a in arrays]
        out = attend(*given, is_causal=True)
        return [np.asarray(x.detach()) for x in (out, *dt.grad((out * out).sum(), given))]

    with dt.vendor_products(False):
        for found, wanted in zip(made(name), made("reference"), strict=True):
            assert found.tobytes() == wanted.tobytes()


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
