"""`ctc_loss`: against its definition, finite differences and PyTorch."""

from __future__ import annotations

import itertools
import math
from typing import Any

import dovetail as dt
import numpy as np
import pytest

F = dt.nn.functional
STEPS, BATCH, CLASSES = 7, 4, 5
TARGETS = np.array([[1, 1, 2], [3, 4, 1], [2, 2, 2], [1, 3, 0]])
TIMES, SIZES = (7, 5, 6, 4), (3, 3, 3, 1)


def scores(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((STEPS, BATCH, CLASSES))


def log_softmax(x: np.ndarray) -> dt.Tensor:
    return dt.log_softmax(dt.asarray(x), axis=-1)


def loss_of(x: dt.Tensor, **options: Any) -> dt.Tensor:
    y = dt.log_softmax(x, axis=-1)
    return F.ctc_loss(y, dt.asarray(TARGETS, device=x.device), TIMES, SIZES, **options)


def collapse(path: tuple[int, ...], blank: int) -> list[int]:
    return [c for c, _ in itertools.groupby(path) if c != blank]


@pytest.mark.parametrize("blank", [0, 2])
def test_loss_is_the_sum_over_all_paths_that_collapse_to_the_target(blank: int) -> None:
    p = np.random.default_rng(1).dirichlet(np.ones(3), 5)
    target = [1, 1] if blank == 0 else [0, 1]
    total = sum(
        math.prod(p[t, c] for t, c in enumerate(path))
        for path in itertools.product(range(3), repeat=5)
        if collapse(path, blank) == target
    )
    got = F.ctc_loss(dt.log(dt.asarray(p)), dt.asarray(target), (5,), (2,), blank, "sum")
    assert got.shape == ()
    np.testing.assert_allclose(got.item(), -math.log(total), rtol=1e-12)


def test_gradients_agree_with_finite_differences() -> None:
    x = dt.asarray(scores()).requires_grad_()
    weights = dt.asarray([1.0, -2.0, 0.5, 3.0])

    def loss(y: dt.Tensor) -> dt.Tensor:
        return F.ctc_loss(y, dt.asarray(TARGETS), TIMES, SIZES, reduction="none") * weights

    def short(y: dt.Tensor) -> dt.Tensor:
        return F.ctc_loss(dt.log_softmax(y, axis=-1), dt.asarray([[1, 2]]), (3,), (2,))

    assert dt.autograd.gradcheck(loss, (x,))  # of any numbers, not only normalised ones
    assert dt.autograd.gradcheck(loss_of, (x,))
    assert dt.autograd.gradgradcheck(short, (dt.asarray(scores()[:3, :1, :3]).requires_grad_(),))


@pytest.mark.parametrize("as_tensors", [False, True])
def test_concatenated_targets_give_the_losses_of_padded_ones(as_tensors: bool) -> None:
    x = log_softmax(scores())
    times, sizes = map(dt.asarray, (TIMES, SIZES)) if as_tensors else (TIMES, SIZES)
    joined = dt.asarray(np.concatenate([t[:n] for t, n in zip(TARGETS, SIZES, strict=True)]))
    padded = F.ctc_loss(x, dt.asarray(TARGETS), times, sizes, reduction="none")
    assert F.ctc_loss(x, joined, times, sizes, reduction="none").tolist() == padded.tolist()


def test_unbatched_scores_give_a_number() -> None:
    x, target = log_softmax(scores()), dt.asarray(TARGETS[0])
    every = F.ctc_loss(x, dt.asarray(TARGETS), TIMES, SIZES, reduction="none")
    for times, sizes in [((7,), (3,)), (dt.asarray(7), dt.asarray(3))]:
        one = F.ctc_loss(x[:, 0], target, times, sizes, reduction="none")
        assert one.shape == () and one.item() == every[0].item()


def test_targets_that_are_too_long_have_infinite_losses_or_zeros() -> None:
    x = dt.asarray(scores()).requires_grad_()
    y = dt.log_softmax(x, axis=-1)
    arguments = (y, dt.asarray(TARGETS), (7, 2, 4, 0), SIZES)
    losses = F.ctc_loss(*arguments, reduction="none")
    assert np.isinf(losses.tolist()).tolist() == [False, True, True, True]
    losses = F.ctc_loss(*arguments, reduction="none", zero_infinity=True)
    losses.sum().backward()
    assert losses.tolist()[1:] == [0.0] * 3
    assert np.isfinite(x.grad.numpy()).all() and not x.grad.numpy()[:, 1:].any()


def test_empty_targets_and_batches() -> None:
    x = log_softmax(scores())
    none = F.ctc_loss(x, dt.zeros((4, 0), dtype=dt.int64), TIMES, (0,) * 4, reduction="none")
    want = [-x[:n, b, 0].sum().item() for b, n in enumerate(TIMES)]
    np.testing.assert_allclose(none.numpy(), want, rtol=1e-12)
    joined = F.ctc_loss(x, dt.zeros(0, dtype=dt.int64), TIMES, (0,) * 4, reduction="none")
    assert joined.tolist() == none.tolist()
    assert F.ctc_loss(x, dt.asarray(TARGETS), (0,) * 4, (0,) * 4, reduction="sum").item() == 0.0
    assert F.ctc_loss(x[:, :0], dt.asarray(TARGETS[:0]), (), (), reduction="none").shape == (0,)


def test_zero_probabilities_have_no_gradient() -> None:
    p = dt.asarray([[[0.5, 0.5, 0.0]], [[0.0, 1.0, 0.0]], [[0.5, 0.0, 0.5]]], dtype=dt.float64)
    y = dt.log(p).requires_grad_()
    loss = F.ctc_loss(y, dt.asarray([[1]]), (3,), (1,), reduction="sum")
    loss.backward()
    np.testing.assert_allclose(loss.item(), -math.log(0.5))
    np.testing.assert_allclose(y.grad.numpy()[:, 0], [[-0.5, -0.5, 0], [0, -1, 0], [-1, 0, 0]])


def test_vmap_and_jit_give_the_same_losses_and_gradients() -> None:
    both = dt.asarray(np.stack([scores(1), scores(2)]))
    slope = dt.func.grad(loss_of)
    want = [slope(x).numpy() for x in both]
    np.testing.assert_allclose(dt.vmap(loss_of)(both).tolist(), [loss_of(x).item() for x in both])
    np.testing.assert_allclose(dt.vmap(slope)(both).numpy(), want, atol=1e-14)
    captured = dt.jit(slope)
    for x, g in zip([*both, both[0]], [*want, want[0]], strict=True):
        np.testing.assert_array_equal(captured(x).numpy(), g)


def test_devices_give_the_same_bits() -> None:
    bits = set()
    for device in ("reference", *(str(d) for d in dt.devices() if str(d) in ("cpu", "opencl"))):
        x = dt.asarray(scores().astype("f"), device=device).requires_grad_()
        loss = loss_of(x)
        loss.backward()
        bits.add((loss.numpy().tobytes(), x.grad.numpy().tobytes()))
    assert len(bits) == 1


def test_halves_are_computed_in_float32() -> None:
    x = log_softmax(scores()).astype(dt.float16)
    got = F.ctc_loss(x, dt.asarray(TARGETS), TIMES, SIZES)
    want = F.ctc_loss(x.astype(dt.float32), dt.asarray(TARGETS), TIMES, SIZES)
    assert got.dtype is dt.float16 and got.item() == want.astype(dt.float16).item()


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"input_lengths": (8, 5, 6, 4)}, dt.OutOfRangeError, "input_lengths must be from 0 to 7"),
        ({"target_lengths": (4, 3, 3, 1)}, dt.OutOfRangeError, "target_lengths must be from 0"),
        ({"targets": dt.asarray(TARGETS + 3)}, dt.OutOfRangeError, "a class must be from 0 to 4"),
        ({"targets": dt.asarray(TARGETS[0])}, dt.ShapeError, "as many elements as the sum"),
        ({"targets": dt.asarray(TARGETS[:3])}, dt.ShapeError, "a row for each of 4 examples"),
        ({"targets": dt.asarray(TARGETS * 1.0)}, dt.DTypeError, "must have an integer dtype"),
        ({"input_lengths": (7,)}, dt.ShapeError, "input_lengths must have a length for each"),
        ({"input_lengths": (7.0,) * 4}, dt.DTypeError, "input_lengths must be integers"),
        ({"log_probs": dt.zeros(3)}, dt.ShapeError, "log_probs must have shape"),
        ({"log_probs": dt.zeros((0, 4, 5))}, dt.ShapeError, "at least one step"),
        ({"blank": 5}, dt.ArgumentError, "blank must be from 0 to 4"),
        ({"reduction": "max"}, dt.ArgumentError, "reduction must be one of"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(changes: Any, error: Any, text: str) -> None:
    options = {"log_probs": log_softmax(scores()), "targets": dt.asarray(TARGETS)}
    options |= {"input_lengths": TIMES, "target_lengths": SIZES}
    with pytest.raises(error, match=text):
        F.ctc_loss(**{**options, **changes}).item()


# --- PyTorch --------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("blank", [0, 4])
@pytest.mark.parametrize("times", [TIMES, (7, 2, 6, 3)])
def test_losses_and_gradients_agree_with_pytorch(
    reduction: str, zero_infinity: bool, blank: int, times: tuple[int, ...]
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    targets = (TARGETS if blank == 0 else TARGETS % 4).clip(1)
    results = []
    for lib in (dt, torch):
        x = (dt.asarray if lib is dt else torch.from_numpy)(scores()).requires_grad_()
        t = (dt.asarray if lib is dt else torch.from_numpy)(targets)
        layer = lib.nn.CTCLoss(blank, reduction, zero_infinity)
        loss = layer(lib.nn.functional.log_softmax(x, dim=-1), t, times, SIZES)
        loss.sum().backward()
        results.append((loss.detach().numpy(), x.grad.numpy()))
    (ours, our_grad), (theirs, their_grad) = results
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    np.testing.assert_allclose(our_grad, their_grad, atol=1e-12)


def test_lengths_of_a_speech_batch_agree_with_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    r = np.random.default_rng(5)
    x, t = r.standard_normal((120, 6, 30)), r.integers(1, 30, (6, 25))
    times, sizes = r.integers(100, 121, 6), r.integers(0, 26, 6)
    y = torch.from_numpy(x).log_softmax(-1)
    want = torch.nn.functional.ctc_loss(y, *map(torch.from_numpy, (t, times, sizes)))
    got = F.ctc_loss(log_softmax(x), *map(dt.asarray, (t, times, sizes)))
    np.testing.assert_allclose(got.item(), want.item(), rtol=1e-12)
