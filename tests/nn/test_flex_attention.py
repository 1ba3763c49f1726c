"""Attention with functions of scores, against PyTorch's written-out form."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import dovetail.nn.functional as F
import numpy as np
import pytest
from dovetail.nn.functional import attention
from installed import INSTALLED

RNG = np.random.default_rng
ROWS, COLUMNS, HEADS = 9, 11, 3


@pytest.fixture(params=["one block", "small blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the sizes of tiles and blocks: all scores, or some rows of one matrix."""
    sizes = {"one block": (1 << 18, 256), "small blocks": (16, 4)}
    for name, value in zip(("TILE_SCORES_MAX", "PRODUCT_BLOCK"), sizes[request.param], strict=True):
        monkeypatch.setattr(attention, name, value)


def drawn(*shapes: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> list[Any]:
    rng = RNG(seed)
    return [rng.normal(size=s).astype(dtype) for s in shapes]


def operands(rows: int = ROWS, columns: int = COLUMNS, dtype: str = "float64") -> list[Any]:
    """Return arrays of query, key and value."""
    return drawn(*[(2, HEADS, n, 4) for n in (rows, columns, columns)], dtype=dtype)


def to_tensors(arrays: list[Any], device: Any = None) -> list[dt.Tensor]:
    return [dt.asarray(a, device=device).requires_grad_() for a in arrays]


# --- functions of scores, in the words of both libraries


def alibi(xp: Any, slopes: Any, table: Any) -> Any:
    """Return a score_mod that adds a slope of each head times the distance."""
    return lambda s, b, h, i, j: s + slopes[h] * (j - i)


def learned(xp: Any, slopes: Any, table: Any) -> Any:
    """Return a score_mod that adds a learned bias of head and distance."""
    return lambda s, b, h, i, j: s + table[h, j - i + ROWS]


def softcap(xp: Any, slopes: Any, table: Any) -> Any:
    """Return a score_mod that bounds scores by a tanh, and has a learned temperature."""
    return lambda s, b, h, i, j: xp.tanh(s * slopes[h] / 2) * 2


def of_batches(xp: Any, slopes: Any, table: Any) -> Any:
    """Return a score_mod of all indices."""
    return lambda s, b, h, i, j: xp.where(i > j + b, s * 0.5, s * slopes[h]) + b


MODS = [alibi, learned, softcap, of_batches]
DOCUMENTS = [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3]


def causal(of: Any) -> Any:
    return lambda b, h, i, j: i >= j


def window(of: Any) -> Any:
    """Return a mask_mod of a sliding window, in which the last queries see no key."""
    return lambda b, h, i, j: (i >= j) & (i - j < 3) & (i < 7)


def documents(of: Any) -> Any:
    """Return a mask_mod by which a query sees the keys of its own document."""
    number = of(DOCUMENTS)
    return lambda b, h, i, j: number[i] == number[j]


def of_heads(of: Any) -> Any:
    """Return a mask_mod of all indices."""
    return lambda b, h, i, j: (i + h >= j) | (b == 1)


MASKS = [None, causal, window, documents, of_heads]


def assert_equals_torch(make_mod: Any, make_mask: Any) -> None:
    """Compare values, and the gradients of operands and of tensors that score_mod reads."""
    torch: Any = pytest.importorskip("torch")
    arrays = [*operands(), *drawn((HEADS,), (HEADS, ROWS + COLUMNS), seed=3)]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    ours = to_tensors(arrays)
    b, h, i, j = torch.meshgrid(*map(torch.arange, (2, HEADS, ROWS, COLUMNS)), indexing="ij")
    scores = theirs[0] @ theirs[1].mT * 0.5
    if make_mod is not None:
        scores = make_mod(torch, *theirs[3:])(scores, b, h, i, j)
    if make_mask is not None:
        scores = scores.masked_fill(~make_mask(torch.tensor)(b, h, i, j), -torch.inf)
    lse = torch.logsumexp(scores, -1)
    blind = lse == -torch.inf
    wanted = torch.where(blind[..., None], 0.0, torch.softmax(scores, -1)) @ theirs[2]
    found, found_lse = F.flex_attention(
        *ours[:3],
        None if make_mod is None else make_mod(dt, *ours[3:]),
        None if make_mask is None else F.create_block_mask(
            make_mask(dt.asarray), 2, HEADS, ROWS, COLUMNS
        ),
        return_lse=True,
    )  # fmt: skip
    (weights,) = drawn(tuple(wanted.shape), seed=5)
    seen = (~blind).to(torch.float64)
    their_loss = (wanted * torch.tensor(weights)).sum() + (torch.where(blind, 0.0, lse)).sum()
    our_loss = (found * dt.asarray(weights)).sum()
    our_loss = our_loss + dt.where(dt.asarray(seen.numpy()) == 1, found_lse, 0.0).sum()
    assert_near(found, wanted)
    assert_near(found_lse, lse)
    their_gradients = torch.autograd.grad(their_loss, theirs, allow_unused=True)
    our_gradients = dt.grad(our_loss, ours, allow_unused=True)
    for x, y in zip(our_gradients, their_gradients, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            assert_near(x, torch.nan_to_num(y))


def assert_near(found: dt.Tensor, wanted: Any) -> None:
    np.testing.assert_allclose(
        np.asarray(found.detach()), wanted.detach().numpy(), rtol=1e-9, atol=1e-11
    )


# --- values and gradients -------------------------------------------------------------------------


@pytest.mark.parametrize("make_mask", MASKS)
@pytest.mark.parametrize("make_mod", [None, *MODS])
def test_values_and_gradients_equal_the_written_out_form(
    blocks: None, make_mod: Any, make_mask: Any
) -> None:
    assert_equals_torch(make_mod, make_mask)


@pytest.mark.parametrize("rows", [9, 300])
def test_identity_has_the_bits_of_plain_attention(device: dt.Device, rows: int) -> None:
    given = to_tensors(operands(rows, rows + 5, dtype="float32"), device)
    plain = F.scaled_dot_product_attention(*given)
    wanted = [plain, *dt.grad((plain * plain).sum(), given)]
    for options in ({}, {"score_mod": lambda s, b, h, i, j: s}):
        flex = F.flex_attention(*given, **options)
        found = [flex, *dt.grad((flex * flex).sum(), given)]
        for x, y in zip(found, wanted, strict=True):
            assert_equal_bits(x, y)


def assert_equal_bits(x: dt.Tensor, y: dt.Tensor) -> None:
    assert x.shape == y.shape and x.detach().numpy().tobytes() == y.detach().numpy().tobytes()


def test_grouped_heads_are_numbered_as_those_of_the_queries(blocks: None) -> None:
    q, k, v = to_tensors(drawn((2, 6, ROWS, 4), (2, 2, COLUMNS, 4), (2, 2, COLUMNS, 5)))
    (slopes,) = to_tensors(drawn((6,), seed=2))
    mod, mask = alibi(dt, slopes, None), of_heads(dt.asarray)
    grouped = F.flex_attention(q, k, v, mod, mask_mod=mask, enable_gqa=True)
    repeated = F.flex_attention(
        q, dt.repeat(k, 3, axis=1), dt.repeat(v, 3, axis=1), mod, mask_mod=mask
    )
    assert_equal_bits(grouped, repeated)
    inputs = [q, k, v, slopes]
    for x, y in zip(dt.grad(grouped.sum(), inputs), dt.grad(repeated.sum(), inputs), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-9, atol=1e-12)


def test_elementwise_function_is_a_score_mod(blocks: None) -> None:
    @dt.elementwise
    def capped(s, d):  # type: ignore[no-untyped-def]
        return dt.tanh(s / 3) * 3 - d

    given = to_tensors(operands())
    one = F.flex_attention(*given, lambda s, b, h, i, j: capped(s, dt.abs(i - j)))
    other = F.flex_attention(*given, lambda s, b, h, i, j: dt.tanh(s / 3) * 3 - dt.abs(i - j))
    np.testing.assert_allclose(np.asarray(one.detach()), np.asarray(other.detach()), rtol=1e-12)
    for x, y in zip(dt.grad(one.sum(), given), dt.grad(other.sum(), given), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-9, atol=1e-13)


def test_second_derivatives_pass_gradgradcheck(blocks: None) -> None:
    given = to_tensors(drawn((1, 2, 3, 2), (1, 2, 4, 2), (1, 2, 4, 2), (2,)))

    def f(q: dt.Tensor, k: dt.Tensor, v: dt.Tensor, slopes: dt.Tensor) -> dt.Tensor:
        return F.flex_attention(q, k, v, softcap(dt, slopes, None), mask_mod=causal(dt.asarray))

    assert dt.autograd.gradcheck(f, given)
    assert dt.autograd.gradgradcheck(f, given)


def test_gradients_flow_to_the_origin_of_a_tensor_that_is_read(blocks: None) -> None:
    given, (raw,) = to_tensors(operands()), to_tensors(drawn((HEADS,), seed=4))

    class Slopes:
        """An object whose attribute the function reads."""

        def __init__(self) -> None:
            self.values = dt.exp(raw)

        def __call__(self, s: Any, b: Any, h: Any, i: Any, j: Any) -> dt.Tensor:
            return s + self.values[h] * (j - i)

    found = dt.grad(F.flex_attention(*given, Slopes()).sum(), [raw, given[0]])
    slopes = dt.exp(raw).detach().requires_grad_()
    wanted = dt.grad(F.flex_attention(*given, alibi(dt, slopes, None)).sum(), [slopes, given[0]])
    assert_equal_bits(found[0], wanted[0] * dt.exp(raw.detach()))
    assert_equal_bits(found[1], wanted[1])


@pytest.mark.parametrize("kind", [dt.float16, dt.bfloat16])
def test_halves_are_computed_in_float32_and_rounded_once(kind: dt.DType) -> None:
    given = [x.detach().astype(kind) for x in to_tensors(operands(dtype="float32"))]
    seen = []

    def mod(s: dt.Tensor, *indices: dt.Tensor) -> dt.Tensor:
        seen.append(s.dtype)
        return dt.tanh(s)

    found = F.flex_attention(*given, mod)
    wanted = F.flex_attention(*[x.astype(dt.float32) for x in given], mod)
    assert found.dtype is kind and (found == wanted.astype(kind)).all().item()
    assert {*seen} == {dt.float32}


def test_nan_of_a_masked_key_is_replaced_and_of_its_value_is_not() -> None:
    """As in the written-out form with `masked_fill`: a weight of 0 times NaN is NaN."""
    q, k, v = (dt.asarray(a) for a in operands())
    nan = dt.zeros_like(k)
    nan[:, :, -1] = float("nan")

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        return j < COLUMNS - 1

    clean = F.flex_attention(q, k, v, mask_mod=mask)
    assert_equal_bits(F.flex_attention(q, k + nan, v, mask_mod=mask), clean)
    assert dt.isnan(F.flex_attention(q, k, v + nan, mask_mod=mask)).all().item()


def test_no_keys_give_zeros() -> None:
    q, k, _ = (dt.asarray(a) for a in operands(columns=0))
    out, lse = F.flex_attention(q, k, k, alibi(dt, dt.ones(HEADS), None), return_lse=True)
    assert (out == 0).all().item() and (lse == -np.inf).all().item()


# --- properties -----------------------------------------------------------------------------------


def results(arrays: list[Any], device: Any, heads: Any = slice(None)) -> list[Any]:
    """Return attention with a bias and a window, and its gradients, as arrays."""
    given = to_tensors(arrays, device)
    slopes = dt.asarray(np.float32([0.5, 0.25, 0.125])[heads], device=device)
    out = F.flex_attention(
        *given,
        lambda s, b, h, i, j: dt.tanh(s / 3) * 3 + slopes[h] * (j - i),
        mask_mod=lambda b, h, i, j: dt.abs(i - j) < 280,
    )
    return [np.asarray(x.detach()) for x in (out, *dt.grad((out * out).sum(), given))]


@pytest.mark.parametrize("size", [1 << 18, 1 << 14])
def test_bits_depend_on_neither_batch_nor_tiles(
    device: dt.Device, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    arrays = operands(300, 290, dtype="float32")
    monkeypatch.setattr(attention, "TILE_SCORES_MAX", size)
    batch = results(arrays, device)
    monkeypatch.undo()
    alone = [
        results([a[b : b + 1, h : h + 1] for a in arrays], device, slice(h, h + 1))
        for b, h in itertools.product(range(2), range(HEADS))
    ]
    for n, found in enumerate(batch):
        assert found.tobytes() == b"".join(example[n].tobytes() for example in alone)


@pytest.mark.parametrize("name", ["cpu", "opencl"])
@pytest.mark.parametrize("rows", [9, 300])
def test_bits_are_the_same_on_every_device(name: str, rows: int) -> None:
    if name not in INSTALLED:
        pytest.skip(f"no {name} here")
    arrays = operands(rows, rows + 2, dtype="float32")
    for found, wanted in zip(results(arrays, name), results(arrays, "reference"), strict=True):
        assert found.tobytes() == wanted.tobytes()


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Yield the function that sets the number of threads, which is restored."""
    if "cpu" not in INSTALLED:
        pytest.skip("no cpu here")
    before = dt.get_num_threads()
    yield dt.set_num_threads
    dt.set_num_threads(before)


def test_bits_do_not_depend_on_threads(threads: Callable[[int], None]) -> None:
    arrays, found = operands(520, 520, dtype="float32"), []
    for n in (1, 2, 3):
        threads(n)
        found.append([x.tobytes() for x in results(arrays, "cpu")])
    assert found[0] == found[1] == found[2]


def test_memory_is_linear_in_the_length() -> None:
    if "cpu" not in INSTALLED:
        pytest.skip("no cpu here")

    def peak(length: int) -> int:
        given = [dt.zeros((1, 1, length, 8), device="cpu").requires_grad_() for _ in range(3)]
        table = dt.zeros(2 * length, device="cpu").requires_grad_()
        dt.evaluate(*given, table)
        dt.memory.reset_peak("cpu")
        before = dt.memory.stats("cpu").live_bytes
        out = F.flex_attention(
            *given,
            lambda s, b, h, i, j: dt.tanh(s) + table[j - i + length],
            mask_mod=lambda b, h, i, j: i >= j,
        )
        dt.evaluate(*dt.grad(out.sum(), [*given, table]))
        return dt.memory.stats("cpu").peak_live_bytes - before

    assert peak(8192) < 2.2 * peak(4096)


def test_captured_attention_has_the_same_bits(device: dt.Device) -> None:
    given = to_tensors(operands(dtype="float32"), device)
    slopes, table = to_tensors(drawn((HEADS,), (HEADS, ROWS + COLUMNS), dtype="float32"), device)

    def step(*x: dt.Tensor) -> tuple[dt.Tensor, ...]:
        mod = learned(dt, slopes, table * 2)
        out = F.flex_attention(*x, mod, mask_mod=causal(dt.asarray))
        return dt.grad((out * out).sum(), [*x, table])

    captured = dt.jit(step)
    for _ in range(3):
        for x, y in zip(captured(*given), step(*given), strict=True):
            assert_equal_bits(x, y)


# --- bad input ------------------------------------------------------------------------------------

X = dt.zeros((2, 3, 5, 4), device="reference")
FULL_BIAS = dt.zeros((5, 5), device="reference")


def call(mod: Any = None, mask: Any = None, **options: Any) -> Any:
    return F.flex_attention(X, X, X, mod, mask_mod=mask, **options)


BAD: list[tuple[Any, Any, str]] = [
    (lambda: call(3), dt.ArgumentTypeError, "score_mod must be a function of tensors, got int"),
    (lambda: call(lambda *x: 1.0), dt.ArgumentTypeError, "score_mod must return a tensor"),
    (lambda: call(lambda s, *x: s + FULL_BIAS), dt.ShapeError, r"at the indices, as bias\[h"),
    (lambda: call(mask=lambda b, h, i, j: i - j), dt.DTypeError, "mask_mod must return bool"),
    (lambda: call(block_mask=lambda *x: x), dt.ArgumentTypeError, "from create_block_mask, got f"),
    (
        lambda: call(block_mask=F.create_block_mask(causal(None), 2, 3, 5, 6)),
        dt.ShapeError, "created for KV_LEN=6, but query and key have 5",
    ),
    (lambda: F.flex_attention(X[0], X, X), dt.ShapeError, "must have 4 dimensions"),
    (lambda: F.flex_attention(X, X[:, :1], X[:, :1]), dt.ShapeError, "enable_gqa=True"),
    (
        lambda: F.flex_attention(X, X[:, :2], X[:, :2], enable_gqa=True),
        dt.ShapeError, "a multiple of the heads of key, got 3 and 2",
    ),
    (lambda: F.flex_attention(X, X, X.astype(dt.float64)), dt.DTypeError, "the same dtype"),
]  # fmt: skip


@pytest.mark.parametrize(("attempt", "error", "text"), BAD)
def test_wrong_arguments_are_named(attempt: Callable[[], Any], error: Any, text: str) -> None:
    with pytest.raises(error, match=text) as raised:
        attempt()
    assert str(raised.value).startswith("flex_attention: ")


def test_closure_that_changed_before_the_backward_pass_raises() -> None:
    factor, given = 2.0, to_tensors(operands())

    def mod(s: dt.Tensor, *indices: dt.Tensor) -> dt.Tensor:
        return s * SCALES["factor"]

    SCALES["factor"] = factor
    out = F.flex_attention(*given, mod)
    SCALES["factor"] = 3.0
    with pytest.raises(dt.GradientError, match=r"score_mod reads .*has changed since the forward"):
        dt.grad(out.sum(), given)


SCALES: dict[str, float] = {}


def test_tensor_with_a_gradient_that_the_closure_hides_raises() -> None:
    hidden = [dt.asarray(1.0).requires_grad_()]
    read = iter([hidden[0]] * 9)
    with pytest.raises(dt.GradientError, match="neither in its closure"):
        F.flex_attention(*to_tensors(operands()), lambda s, *indices: s * next(read))


def test_overwritten_tensor_that_score_mod_reads_raises() -> None:
    given, (slopes,) = to_tensors(operands()), to_tensors(drawn((HEADS,)))
    out = F.flex_attention(*given, alibi(dt, slopes, None))
    with dt.no_grad():
        slopes[:] = 0.0
    with pytest.raises(dt.GradientError):
        dt.grad(out.sum(), given)


@pytest.mark.parametrize("name", ["score_mod", "mask_mod"])
def test_overwritten_tensor_without_a_gradient_raises(name: str) -> None:
    given, table = to_tensors(operands()), dt.ones(COLUMNS)
    functions: dict[str, Any] = {
        "score_mod": lambda s, b, h, i, j: s + table[j],
        "mask_mod": lambda b, h, i, j: table[j] > 0,
    }
    out = F.flex_attention(*given, **{name: functions[name]})
    table[:] = 0.0
    with pytest.raises(dt.GradientError, match="overwrote it in place"):
        dt.grad(out.sum(), given)


# --- blocks that are left out ---------------------------------------------------------------------


def near(b: Any, h: Any, i: Any, j: Any) -> Any:
    return (i >= j) & (i - j < 90)


def of_documents(b: Any, h: Any, i: Any, j: Any) -> Any:
    return (i // 200 == j // 300) & (i < 1100)


def of_batch_and_head(b: Any, h: Any, i: Any, j: Any) -> Any:
    return abs(i - j) < 100 + 150 * b + 60 * h


@pytest.mark.parametrize("mask", [near, of_documents, of_batch_and_head])
@pytest.mark.parametrize(  # the interpreter takes a minute for the larger sizes
    ("device", "sizes"),
    [("cpu", (1 << 18, 256)), ("cpu", (1 << 12, 32)), ("reference", (1 << 12, 32))],
    indirect=["device"],
)
def test_blocks_that_are_left_out_change_no_bits(
    device: dt.Device, monkeypatch: pytest.MonkeyPatch, mask: Any, sizes: tuple[int, int]
) -> None:
    scale = 1 if sizes[1] == 256 else 8
    for name, value in zip(("TILE_SCORES_MAX", "PRODUCT_BLOCK"), sizes, strict=True):
        monkeypatch.setattr(attention, name, value)
    rows, columns = 1300 // scale, 1100 // scale
    arrays = drawn((1, 2, rows, 8), (1, 2, columns, 8), (1, 2, columns, 4), dtype="float32")
    (slopes,) = to_tensors(drawn((2,), dtype="float32", seed=2), device)

    def scaled(b: Any, h: Any, i: Any, j: Any) -> Any:
        return mask(b, h, i * scale, j * scale)

    block_mask = F.create_block_mask(scaled, 1, 2, rows, columns, device=device)
    assert block_mask.blocks is not None
    flags = [x for row in block_mask.blocks for x in row]
    assert 0 < flags.count(False) < len(flags)
    results = []
    for options in ({"mask_mod": scaled}, {"block_mask": block_mask}):
        given = to_tensors(arrays, device)
        out = F.flex_attention(*given, alibi(dt, slopes, None), **options)
        results.append([out, *dt.grad((out * out).sum(), [*given, slopes])])
        out = F.flex_attention(*given, **options)
        results[-1] += [out, *dt.grad((out * out).sum(), given)]
    for x, y in zip(*results, strict=True):
        assert_equal_bits(x, y)


def test_blocks_that_are_left_out_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "TILE_SCORES_MAX", 1 << 12)
    tiles = []
    attend_to = attention._Forward._attend_to

    def count(self: Any, rows: Any, keys: Any, *options: Any) -> Any:
        tiles.append(keys)
        return attend_to(self, rows, keys, *options)

    monkeypatch.setattr(attention._Forward, "_attend_to", count)
    given = [dt.zeros((1, 1, 2048, 2))] * 3
    F.flex_attention(*given, mask_mod=near)
    whole = len(tiles)
    F.flex_attention(*given, block_mask=F.create_block_mask(near, None, None, 2048, 2048))
    assert len(tiles) - whole < whole / 3


def test_mask_that_is_created_in_a_captured_function_keeps_all_blocks(device: dt.Device) -> None:
    given = [x.detach() for x in to_tensors(operands(dtype="float32"), device)]

    def attend(*x: dt.Tensor) -> dt.Tensor:
        mask = F.create_block_mask(causal(None), None, None, ROWS, COLUMNS, device=device)
        return F.flex_attention(*x, block_mask=mask)

    assert_equal_bits(dt.jit(attend)(*given), attend(*given))


def test_mask_that_hides_everything_gives_zeros(blocks: None) -> None:
    given = to_tensors(operands())

    def nothing(b: Any, h: Any, i: Any, j: Any) -> Any:
        return i < 0

    mask = F.create_block_mask(nothing, None, None, ROWS, COLUMNS)
    out = F.flex_attention(*given, block_mask=mask)
    for x in (out, *dt.grad(out.sum(), given)):
        assert (x == 0).all().item()


def test_create_block_mask_names_a_function_that_returns_no_bools() -> None:
    with pytest.raises(dt.DTypeError, match="create_block_mask: mask_mod must return bool"):
        F.create_block_mask(lambda b, h, i, j: i - j, 1, 1, 4, 4, device="reference")
