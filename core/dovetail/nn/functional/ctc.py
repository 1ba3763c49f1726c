"""The loss of sequences without an alignment: connectionist temporal classification.

Source: Graves et al., Connectionist temporal classification: labelling unsegmented sequence data
with recurrent neural networks, 2006. A state is a label of the target, or a blank before, between
or after the labels. A path has a state for each step and skips no label.
"""

# mypy: disable-error-code="attr-defined, index"
# because mypy does not know the language of kernels

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, in_range, is_mapping

from .precision import require_floats
from .reductions import reduce_loss, resolve_reduction

__all__ = ["ctc_loss"]

Tensor: TypeAlias = dt.Tensor
Lengths: TypeAlias = "Tensor | Sequence[int]"

# The logarithm of no path where gradients are recorded: with -inf the gradients are NaN.
_NO_PATH = -1e30


@dt.kernel
def sum_paths(
    out: dt.InOut, scores: dt.In, skips: dt.In, lengths: dt.In, last: dt.In, backwards: bool
) -> None:
    """Write the logarithm of the sum over the paths from an end to each state and step.

    `scores`: of steps, examples and states. `skips`: states that may follow the second one before.
    `lengths`, `last`: the number of steps and the last state of each example.
    """
    for b in dt.grid(scores.shape[1]):
        step = -1 if backwards else 1
        for i in range(lengths[b]):
            t = lengths[b] - 1 - i if backwards else i
            for j in range(last[b] + 1):
                s = last[b] - j if backwards else j
                total = out[t, b, s]  # -inf, which the caller has written
                if i == 0:
                    if j < 2:
                        total = scores[t, b, s]
                else:
                    total = out[t - step, b, s]
                    if j >= 1:
                        total = dt.logaddexp(total, out[t - step, b, s - step])
                    if j >= 2 and skips[b, max(s, s - 2 * step)]:
                        total = dt.logaddexp(total, out[t - step, b, s - 2 * step])
                    total = total + scores[t, b, s]
                out[t, b, s] = total


def _log_likelihood(sums: Tensor, lengths: Tensor, last: Tensor) -> Tensor:
    """Return the logarithm of the sum over all paths of each example, from those of `sum_paths`."""
    n = sums.shape[1]
    end = dt.stack([last, dt.maximum(last - 1, 0)], axis=-1)
    rows = dt.take_along_axis(sums, dt.maximum(lengths - 1, 0).reshape((1, n, 1)), axis=0)[0]
    both = dt.take_along_axis(rows, end, axis=-1)
    total = dt.where(last > 0, dt.logaddexp(both[:, 0], both[:, 1]), both[:, 0])
    return dt.where(lengths > 0, total, dt.where(last > 0, -math.inf, 0.0).astype(sums.dtype))


class _Paths(dt.autograd.Function):
    """The logarithm of the sum over the paths of each example, by one kernel for each direction."""

    @staticmethod
    def forward(ctx: Any, *args: Tensor) -> Tensor:
        """Run `sum_paths` from the first step."""
        scores, skips, lengths, last = args
        sums = dt.full_like(scores, -math.inf)
        sum_paths(sums, scores, skips, lengths, last, False)
        total = _log_likelihood(sums, lengths, last)
        ctx.save_for_backward(*args, sums, total)
        return total

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        """Return the probability of each state, times `g`; it is 0 where `g` is."""
        scores, skips, lengths, last, sums, total = ctx.saved_tensors
        if dt.is_grad_enabled() or is_mapping():
            _, vjp = dt.func.vjp(lambda x: _sum_with_tensor_ops(x, skips, lengths, last), scores)
            return (*vjp(g), None, None, None)
        suffixes = dt.full_like(scores, -math.inf)
        sum_paths(suffixes, scores, skips, lengths, last, True)
        states = dt.exp(sums + suffixes - scores - total[:, None])
        ended = dt.arange(len(scores), device=g.device)[:, None, None] >= lengths[:, None]
        is_zero = ended | (g[:, None] == 0) | (scores == -math.inf)
        return dt.where(is_zero, 0.0, g[:, None] * states), None, None, None


def _sum_with_tensor_ops(scores: Tensor, skips: Tensor, lengths: Tensor, last: Tensor) -> Tensor:
    """Compute `_Paths` with tensor operations, differentiable any number of times."""
    scores = dt.maximum(scores, _NO_PATH)
    states = dt.arange(scores.shape[-1], device=scores.device)
    nothing = dt.full((scores.shape[1], 2), _NO_PATH, dtype=scores.dtype, device=scores.device)

    def add_step(sums: Tensor, at: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the sums after one more step, twice; those of ended examples stay."""
        t, score = at
        before = dt.concat([nothing, sums], axis=-1)
        total = dt.logaddexp(sums, before[:, 1:-1])
        total = dt.logaddexp(total, dt.where(skips, before[:, :-2], _NO_PATH)) + score
        sums = dt.where((t < lengths)[:, None], total, sums)
        return sums, sums

    first = dt.where(states < 2, scores[0], _NO_PATH)
    steps = dt.arange(1, len(scores), device=scores.device)
    sums = first if len(scores) == 1 else dt.scan(add_step, first, (steps, scores[1:]))[0]
    total = _log_likelihood(sums[None], dt.minimum(lengths, 1), last)
    return dt.where(total <= _NO_PATH / 2, -math.inf, total)


# --- arguments ------------------------------------------------------------------------------------


def _parse_lengths(name: str, lengths: Lengths, n: int, most: int, device: dt.Device) -> Tensor:
    """Return n lengths, which are checked to be at most `most` when the work runs."""
    listed = lengths if isinstance(lengths, dt.Tensor) else dt.asarray(lengths)
    if listed.shape not in ((n,), () if n == 1 else (n,)):
        raise dt.ShapeError(
            f"ctc_loss: {name} must have a length for each of {n} examples, got shape "
            f"{listed.shape}"
        )
    if listed.dtype.kind not in "iu" and listed.size:
        raise dt.DTypeError(f"ctc_loss: {name} must be integers, got {listed.dtype.name}")
    rule = f"{name} must be from 0 to {most}"
    return in_range("ctc_loss", listed.to(device).reshape((n,)), most + 1, rule=rule)


def _split_targets(targets: Tensor, lengths: Lengths, n: int) -> Tensor:
    """Return concatenated targets as rows. Raises: ShapeError if the sum of lengths differs."""
    counts = [int(n) for n in dt.asarray(lengths).reshape(-1).numpy()]
    if len(counts) != n or sum(counts) != targets.size:
        raise dt.ShapeError(
            f"ctc_loss: concatenated targets must have as many elements as the sum of "
            f"target_lengths of {n} examples, got shape {targets.shape} and lengths {counts}"
        )
    rows = dt.zeros((n, max(counts, default=0)), dtype=targets.dtype, device=targets.device)
    columns = dt.arange(rows.shape[1], device=targets.device)
    rows[columns < dt.asarray(counts, device=targets.device)[:, None]] = targets
    return rows


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return minus the logarithm of the probability of each target, over all alignments.

    - `log_probs`: the logarithms of the probabilities of the classes at each step, of
      `log_softmax`.
    - `targets`: the classes of each example, as rows that are padded, or concatenated to a vector.
    - `input_lengths`, `target_lengths`: the number of steps and of classes of each example, a
      tensor or ints.
    - `blank`: the class that stands between labels, and for none.
    - `reduction`: "none", "sum", or "mean" of the losses that are divided by the target's length.
    - `zero_infinity`: replace infinite losses, of targets that are too long for their input, and
      their gradients by 0.

    Shapes: log_probs (steps, batch, classes) or (steps, classes); targets (batch, labels) or the
    sum of target_lengths.
    Dtypes: floats; halves are computed as float32; targets and lengths of integers.
    Gradient: minus the probability of each class. PyTorch adds exp(log_probs), which `log_softmax`
    cancels: the gradients of its input are the same.
    Cost: one kernel in each direction. With concatenated targets, the host reads target_lengths.
    Raises: ShapeError, DTypeError, ArgumentError; OutOfRangeError for a class or a length out of
    range.
    See also: `log_softmax`, `dt.nn.CTCLoss`.

    >>> import dovetail as dt
    >>> x = dt.log_softmax(dt.zeros((2, 1, 3)), axis=-1)
    >>> loss = dt.nn.functional.ctc_loss(x, dt.asarray([[1]]), (2,), (1,))
    >>> round(dt.exp(-loss).item(), 4)  # 3 of 9 paths: 11, 1-, -1
    0.3333
    """
    op = "ctc_loss"
    resolve_reduction(op, reduction)
    require_floats(op, log_probs)
    x = log_probs if log_probs.ndim != 2 else log_probs[:, None]
    if x.ndim != 3 or not x.shape[0] or not x.shape[2]:
        raise dt.ShapeError(
            f"{op}: log_probs must have shape (steps, batch, classes) or (steps, classes), with at "
            f"least one step and class, got shape {log_probs.shape}"
        )
    (steps, n, count), device = x.shape, x.device
    if not 0 <= arguments.integer(op, blank, "blank") < count:
        raise dt.ArgumentError(f"{op}: blank must be from 0 to {count - 1}, got {blank}")
    if targets.dtype.kind not in "iu":
        raise dt.DTypeError(
            f"{op}: targets must have an integer dtype, got {targets.dtype.name}; use "
            "targets.astype(dt.int64)"
        )
    rows = _split_targets(targets, target_lengths, n) if targets.ndim == 1 else targets
    if rows.ndim != 2 or len(rows) != n:
        raise dt.ShapeError(
            f"{op}: targets must have a row for each of {n} examples, or be a vector of all, got "
            f"shape {targets.shape}"
        )
    width = rows.shape[1]
    lengths = _parse_lengths("input_lengths", input_lengths, n, steps, device)
    sizes = _parse_lengths("target_lengths", target_lengths, n, width, device)

    rows = dt.where(dt.arange(width, device=device) < sizes[:, None], rows, blank)
    rows = in_range(op, rows, count, rule=f"a class must be from 0 to {count - 1}")
    between = dt.full_like(rows, blank)
    labels = dt.stack([between, rows], axis=-1).reshape((n, 2 * width))
    labels = dt.concat([labels, dt.full((n, 1), blank, dtype=labels.dtype, device=device)], axis=1)
    skips = dt.concat(
        [dt.zeros((n, 2), dtype=dt.bool, device=device), labels[:, 2:] != labels[:, :-2]], axis=1
    )
    skips = skips[:, : 2 * width + 1]
    scores = dt.take_along_axis(x, dt.broadcast_to(labels, (steps, *labels.shape)), axis=-1)
    by = _sum_with_tensor_ops if is_mapping() else _Paths.apply
    loss = -by(scores, skips, lengths, 2 * sizes)
    if zero_infinity:
        loss = dt.where(loss == math.inf, 0.0, loss)
    if reduction == "mean":
        loss = loss / dt.maximum(sizes, 1).astype(loss.dtype)
    return reduce_loss(loss[0] if log_probs.ndim == 2 else loss, reduction, log_probs)
