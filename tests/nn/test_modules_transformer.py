"""Multi-head attention and transformers against PyTorch, and errors."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.nn import functional as F

RNG = np.random.default_rng


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def drawn(*shape: int, seed: int = 0) -> Any:
    return RNG(seed).normal(size=shape)


def assert_near(found: Any, wanted: Any) -> None:
    a, b = np.asarray(found), wanted.detach().numpy()
    np.testing.assert_allclose(a, b, atol=1e-11, rtol=1e-8)


def pair(torch: Any, kind: str, *args: Any, **options: Any) -> tuple[Any, Any]:
    """Return the same module of both libraries, in float64, with random parameters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(torch.nn, kind)(*args, dtype=torch.float64, **options)
    ours = getattr(dt.nn, kind)(*args, dtype=dt.float64, **options)
    with torch.no_grad():
        for i, p in enumerate(theirs.parameters()):
            p.copy_(torch.tensor(drawn(*p.shape, seed=i) / 2))
    assert [*ours.state_dict()] == [*theirs.state_dict()]
    ours.load_state_dict({k: dt.asarray(v.numpy()) for k, v in theirs.state_dict().items()})
    return ours, theirs


def compare(
    torch: Any, ours: Any, theirs: Any, arrays: list[Any], masks: dict[str, Any], **options: Any
) -> None:
    """Compare values and the gradients of inputs and parameters; one array thrice is one tensor
    thrice.
    """
    ids = {id(a): a for a in arrays}
    mine = {k: dt.asarray(a).requires_grad_() for k, a in ids.items()}
    its = {k: torch.tensor(a, requires_grad=True) for k, a in ids.items()}
    mine_masks = {k: None if m is None else dt.asarray(m) for k, m in masks.items()}
    its_masks = {k: None if m is None else torch.tensor(m) for k, m in masks.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = theirs(*[its[id(a)] for a in arrays], **its_masks, **options)
    found = ours(*[mine[id(a)] for a in arrays], **mine_masks, **options)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    found = found if isinstance(found, tuple) else (found,)
    assert [x is None for x in found] == [x is None for x in wanted]
    found, wanted = ([x for x in y if x is not None] for y in (found, wanted))
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == tuple(b.shape)
        assert_near(a.detach(), b)
    weights = [drawn(*w.shape, seed=9) for w in wanted]
    got = dt.grad(
        found, [*mine.values(), *ours.parameters()], [dt.asarray(w) for w in weights],
        allow_unused=True,
    )  # fmt: skip
    want = torch.autograd.grad(
        wanted, [*its.values(), *theirs.parameters()], [torch.tensor(w) for w in weights],
        allow_unused=True,
    )  # fmt: skip
    for a, b in zip(got, want, strict=True):
        assert_near(a, torch.zeros(a.shape) if b is None else b)


# --- multi-head attention
# ---------------------------------------------------------------------------

L, S, N, E, H = 3, 4, 2, 4, 2
SEEN = np.triu(np.ones((L, S), bool), 2)
MASKS: list[dict[str, Any]] = [
    {},
    {"attn_mask": SEEN},
    {"attn_mask": drawn(L, S)},
    {"attn_mask": drawn(N * H, L, S)},
    {"attn_mask": np.stack([SEEN] * N * H)},
    {"key_padding_mask": np.array([[False] * 4, [False, False, True, True]])},
    {"key_padding_mask": drawn(N, S), "attn_mask": drawn(L, S)},
    {"key_padding_mask": np.array([[False] * 4, [False, False, True, True]]), "attn_mask": SEEN},
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"bias": False, "add_zero_attn": True},
    {"add_bias_kv": True},
    {"kdim": 3, "vdim": 5, "add_bias_kv": True, "add_zero_attn": True},
    {"batch_first": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_multihead_attention_equals_pytorch(torch: Any, options: dict[str, Any]) -> None:
    ours, theirs = pair(torch, "MultiheadAttention", E, H, **options)
    q, k, v = (
        drawn(n, N, size, seed=n)
        for n, size in ((L, E), (S, options.get("kdim", E)), (S, options.get("vdim", E)))
    )
    if options.get("batch_first"):
        q, k, v = (np.ascontiguousarray(x.swapaxes(0, 1)) for x in (q, k, v))
    for masks, (needed, average) in itertools.product(
        MASKS, [(True, True), (True, False), (False, True)]
    ):
        compare(
            torch, ours, theirs, [q, k, v], masks, need_weights=needed, average_attn_weights=average
        )


@pytest.mark.parametrize("needed", [True, False])
def test_self_attention_equals_pytorch(torch: Any, needed: bool) -> None:
    ours, theirs = pair(torch, "MultiheadAttention", E, H)
    x, alone = drawn(S, N, E), drawn(S, E)
    mask = np.triu(np.ones((S, S), bool), 1)
    for masks in ({}, {"attn_mask": mask}):
        compare(torch, ours, theirs, [x] * 3, masks, need_weights=needed)
        compare(torch, ours, theirs, [alone] * 3, masks, need_weights=needed)
    compare(torch, ours, theirs, [x] * 3, {"attn_mask": mask}, need_weights=needed, is_causal=True)
    padding = {"key_padding_mask": np.array([False, False, True, True])}
    compare(torch, ours, theirs, [alone] * 3, padding, need_weights=needed)


@pytest.mark.parametrize("needed", [True, False])
def test_is_causal_equals_a_causal_mask(needed: bool) -> None:
    for options in ({}, {"add_bias_kv": True, "add_zero_attn": True}):
        layer, x = dt.nn.MultiheadAttention(E, H, **options), dt.asarray(drawn(S, N, E).astype("f"))
        mask = dt.asarray(np.triu(np.ones((S, S), bool), 1))
        found, _ = layer(x, x, x, need_weights=needed, is_causal=True)
        wanted, _ = layer(x, x, x, need_weights=needed, attn_mask=mask)
        assert np.allclose(np.asarray(found.detach()), np.asarray(wanted.detach()), atol=1e-6)


def test_fully_masked_rows_give_zeros() -> None:
    layer, x = dt.nn.MultiheadAttention(E, H, bias=False), dt.asarray(drawn(S, 1, E).astype("f"))
    mask = dt.asarray(np.eye(S) == 2)  # every row attends to all
    mask[1] = True
    for needed in (True, False):
        out, _ = layer(x, x, x, need_weights=needed, attn_mask=mask)
        assert not out[1].any().item() and out[0].any().item()


def test_multi_head_attention_forward_with_given_weights(torch: Any) -> None:
    q, k, v = drawn(L, N, E), drawn(N * H, 5, E // H), drawn(N * H, 5, E // H, seed=1)
    w, b = drawn(3 * E, E), drawn(3 * E)
    out = drawn(E, E, seed=3)

    def call(f: Any, array: Any) -> Any:
        given = array(q), array(q), array(q), E, H, array(w), array(b), None, None, False, 0.0
        return f(*given, array(out), None, static_k=array(k), static_v=array(v))

    found = call(F.multi_head_attention_forward, dt.asarray)
    wanted = call(torch.nn.functional.multi_head_attention_forward, torch.tensor)
    for a, b in zip(found, wanted, strict=True):
        assert_near(a, b)


def test_dropout_applies_only_in_training() -> None:
    layer, x = dt.nn.MultiheadAttention(E, H, dropout=0.5), dt.asarray(drawn(9, N, E).astype("f"))
    for needed in (True, False):
        a, b = (layer.train()(x, x, x, need_weights=needed)[0].detach() for _ in range(2))
        assert (a != b).any().item()
        a, b = (layer.eval()(x, x, x, need_weights=needed)[0].detach() for _ in range(2))
        assert (a == b).all().item()


# --- transformers ---------------------------------------------------------------------------------

PADDING = np.array([[False] * 4, [False, False, True, True]])


@pytest.mark.parametrize(
    ("first", "activation", "bias"),
    [(True, "relu", True), (False, "relu", False), (True, "gelu", False), (False, "gelu", True)],
)
def test_transformer_layers_equal_pytorch(
    torch: Any, first: bool, activation: str, bias: bool
) -> None:
    options = {"activation": activation, "norm_first": first, "bias": bias, "batch_first": first}
    ours, theirs = pair(torch, "TransformerEncoderLayer", E, H, 5, 0.0, **options)
    x, y = drawn(S, N, E), drawn(3, N, E)
    if first:
        x, y = (np.ascontiguousarray(a.swapaxes(0, 1)) for a in (x, y))
    causal = np.triu(np.full((S, S), -np.inf), 1)
    for masks in ({}, {"src_mask": causal}, {"src_key_padding_mask": PADDING}):
        compare(torch, ours, theirs, [x], masks)
    compare(torch, ours, theirs, [x], {"src_mask": causal}, is_causal=True)
    ours, theirs = pair(torch, "TransformerDecoderLayer", E, H, 5, 0.0, **options)
    compare(torch, ours, theirs, [y, x], {"memory_key_padding_mask": PADDING})
    mask = np.triu(np.ones((3, 3), bool), 1)
    compare(torch, ours, theirs, [y, x], {"tgt_mask": mask}, tgt_is_causal=True)
    compare(torch, ours, theirs, [y[0], x[0]], {})


@pytest.mark.parametrize("first", [True, False])
def test_transformer_equals_pytorch(torch: Any, first: bool) -> None:
    options = {"batch_first": first, "norm_first": first}
    ours, theirs = pair(torch, "Transformer", E, H, 2, 2, 5, 0.0, **options)
    src, tgt = drawn(S, N, E), drawn(3, N, E, seed=1)
    if first:
        src, tgt = (np.ascontiguousarray(a.swapaxes(0, 1)) for a in (src, tgt))
    made = dt.nn.Transformer.generate_square_subsequent_mask(3, dtype=dt.float64)
    assert_near(made, torch.nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64))
    masks = {"tgt_mask": made.numpy(), "src_key_padding_mask": PADDING}
    compare(torch, ours, theirs, [src, tgt], masks)
    theirs.eval()  # PyTorch's own inference path
    compare(torch, ours.eval(), theirs, [src, tgt], {})


def test_captured_layer_is_the_same(device: dt.Device) -> None:
    model = dt.nn.TransformerEncoderLayer(E, H, 5, 0.0)
    x = dt.asarray(drawn(S, N, E).astype("f"))

    def slopes(x: dt.Tensor) -> Any:
        return dt.grad((model(x, is_causal=True) ** 2).sum(), [*model.parameters()])

    f, wanted = dt.jit(slopes), slopes(x)
    for _ in range(2):
        for a, b in zip(f(x), wanted, strict=True):
            assert np.allclose(a.numpy(), b.numpy(), atol=1e-6)


def test_encoder_copies_its_layer() -> None:
    layer = dt.nn.TransformerEncoderLayer(E, H, 5)
    model = dt.nn.TransformerEncoder(layer, 2, dt.nn.LayerNorm(E))
    first, second = (x.linear1.weight for x in model.layers)
    assert (first == second).all().item() and first is not second
    with dt.no_grad():
        first.add_(1.0)
    assert not (first == second).any().item()


def test_user_activation_is_applied() -> None:
    layer = dt.nn.TransformerEncoderLayer(E, H, 5, 0.0, activation=lambda x: x * 0)
    x = dt.asarray(drawn(S, N, E).astype("f"))
    assert layer(x).shape == (S, N, E)


# --- bad input ------------------------------------------------------------------------------------

X = dt.zeros((3, 2, 4), device="reference")
K = dt.zeros((5, 2, 4), device="reference")
BOOL = dt.zeros((3, 3), dtype=dt.bool, device="reference")


def heads(*args: Any, **options: Any) -> Any:
    return dt.nn.MultiheadAttention(4, 2, device="reference")(*args, **options)


BAD: list[tuple[Callable[[], Any], Any, str]] = [
    (lambda: heads(X[..., :3], X, X), dt.ShapeError, "embed_dim, 4, got 3"),
    (lambda: heads(X, K, X), dt.ShapeError, "the same length"),
    (lambda: heads(X, K[:, 0], K[:, 0]), dt.ShapeError, r"shape \(length, batch, size\)"),
    (lambda: heads(X, K[..., :3], K), dt.ShapeError, "the weight of key must have shape"),
    (lambda: heads(X, K, K, attn_mask=BOOL), dt.ShapeError, r"shape \(3, 5\) or \(4, 3, 5\)"),
    (lambda: heads(X, K, K, BOOL), dt.ShapeError, r"key_padding_mask must have shape \(2, 5\)"),
    (
        lambda: heads(X, X, X, attn_mask=BOOL.astype(dt.int32)),
        dt.DTypeError, "attn_mask must be bool .*, got .*int32",
    ),
    (lambda: dt.nn.MultiheadAttention(4, 3), dt.ArgumentError, "divisible by num_heads"),
    (lambda: dt.nn.MultiheadAttention(0, 1), dt.ArgumentError, "embed_dim must be at least 1"),
    (
        lambda: dt.nn.TransformerEncoderLayer(4, 2, activation="x"),
        dt.ArgumentError, "activation must be 'relu', 'gelu' or a function",
    ),
    (
        lambda: dt.nn.Transformer(4, 2, 1, 1, 5, device="reference")(X, K[:, :1]),
        dt.ShapeError, "the same batch size in axis 1",
    ),
    (
        lambda: dt.nn.Transformer(4, 2, 1, 1, 5, device="reference")(X, K[..., :3]),
        dt.ShapeError, r"must have shape \(length, batch, 4\)",
    ),
    (
        lambda: dt.nn.TransformerEncoder(dt.nn.TransformerEncoderLayer(4, 2, 5), -1),
        dt.ArgumentError, "num_layers must be between 0 and 65536, got -1",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), BAD)
def test_wrong_arguments_are_named(call: Callable[[], Any], error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()
