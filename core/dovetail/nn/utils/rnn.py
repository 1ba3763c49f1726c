"""Sequences of different lengths: padded to one length, or packed step by step without padding.

These are the functions of `torch.nn.utils.rnn`. Lengths determine shapes, so they are numbers on
the host: `batch_sizes` is a tuple of ints, which is part of the key of captured calls of `dt.jit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from ..call_errors import explain_all

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

Tensor: TypeAlias = dt.Tensor
Lengths: TypeAlias = "Sequence[int] | dt.Tensor"


class PackedSequence(NamedTuple):
    """Sequences without padding: for each step, the elements of all sequences that reach it.

    - `data`: (elements, ...).
    - `batch_sizes`: the number of sequences at each step, a tuple of ints.
    - `sorted_indices`: the order of the sequences by falling length.
    - `unsorted_indices`: the inverse order; both are None if the sequences were sorted.

    >>> import dovetail as dt
    >>> x = [dt.asarray(s) for s in ([1, 2, 3], [4])]
    >>> packed = dt.nn.utils.rnn.pack_sequence(x)
    >>> packed.data.tolist(), packed.batch_sizes
    ([1, 4, 2, 3], (2, 1, 1))
    """

    data: Tensor
    batch_sizes: tuple[int, ...]
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None


def _check_lengths(name: str, lengths: Lengths, greatest: int | None = None) -> list[int]:
    """Return lengths as a list of ints, read from a tensor on the host.

    Raises: ArgumentTypeError for other numbers, ArgumentError for none, and for lengths below 1 or
    above `greatest`.
    """
    values: list[Any] = list(
        lengths.numpy().ravel().tolist() if isinstance(lengths, dt.Tensor) else lengths
    )
    if any(not isinstance(n, int) or isinstance(n, bool) for n in values):
        raise dt.ArgumentTypeError(f"{name}: lengths must be ints, got {values}")
    if not values or min(values) < 1 or (greatest is not None and max(values) > greatest):
        upto = "of at least 1" if greatest is None else f"from 1 to {greatest}"
        raise dt.ArgumentError(f"{name}: lengths must be one or more ints {upto}, got {values}")
    return values


def pack_padded_sequence(
    input: Tensor, lengths: Lengths, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences, without the padding.

    - `lengths`: the length of each sequence: a list or a tensor of integers.
    - `batch_first`: True if the first axis of the input is that of the sequences.
    - `enforce_sorted`: True requires falling lengths; False sorts the sequences.

    Shapes: input (steps, sequences, ...), or with `batch_first` the first two exchanged.
    Gradient: flows to the elements.
    Raises: ShapeError; ArgumentError for lengths that are not sorted or not from 1 to the steps.
    See also: `pack_sequence`, `pad_packed_sequence`, `PackedSequence`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 4], [2, 0], [3, 0]])
    >>> dt.nn.utils.rnn.pack_padded_sequence(x, [3, 1]).data.tolist()
    [1, 4, 2, 3]
    """
    name = "pack_padded_sequence"
    if input.ndim < 2:
        raise dt.ShapeError(
            f"{name}: the input must have shape (steps, sequences, ...), got shape {input.shape}"
        )
    batch, steps = input.shape[:2] if batch_first else input.shape[1::-1]
    values = _check_lengths(name, lengths, steps)
    if len(values) != batch:
        raise dt.ShapeError(
            f"{name}: expected one length for each of {batch} sequences, got {len(values)}"
        )
    order = sorted(range(batch), key=lambda k: -values[k])
    falling = [values[k] for k in order]
    if enforce_sorted and falling != values:
        raise dt.ArgumentError(
            f"{name}: lengths must be in descending order, got {values}; sort the sequences, or "
            "pass enforce_sorted=False"
        )
    sizes = tuple(sum(n > t for n in falling) for t in range(falling[0]))
    stride, step_stride = (steps, 1) if batch_first else (1, batch)
    rows = [t * step_stride + k * stride for t, n in enumerate(sizes) for k in order[:n]]
    flat = dt.reshape(input, (batch * steps, *input.shape[2:]))
    data = dt.take(flat, dt.asarray(rows, device=input.device), axis=0)
    if enforce_sorted:
        return PackedSequence(data, sizes, None, None)
    inverse = sorted(range(batch), key=order.__getitem__)
    indices = [dt.asarray(k, device=input.device) for k in (order, inverse)]
    return PackedSequence(data, sizes, *indices)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return padded sequences, in the order in which they were packed, and their lengths.

    - `sequence`: the packed sequences.
    - `batch_first`: True puts the axis of the sequences first.
    - `padding_value`: the number behind the end of a sequence.
    - `total_length`: the number of steps, by default the greatest length.

    Shapes: (steps, sequences, ...), or with `batch_first` the first two exchanged.
    Gradient: flows from the elements.
    Raises: ArgumentError if `total_length` is less than the greatest length.

    >>> import dovetail as dt
    >>> x = [dt.asarray(s) for s in ([1, 2, 3], [4])]
    >>> padded, lengths = dt.nn.utils.rnn.pad_packed_sequence(dt.nn.utils.rnn.pack_sequence(x))
    >>> padded.tolist(), lengths.tolist()
    ([[1, 4], [2, 0], [3, 0]], [3, 1])
    """
    data, sizes, _, inverse = sequence
    steps = len(sizes)
    if total_length is not None:
        steps = arguments.integer("pad_packed_sequence", total_length, "total_length")
    if steps < len(sizes):
        raise dt.ArgumentError(
            f"pad_packed_sequence: total_length must be at least {len(sizes)}, the longest "
            f"sequence, got {steps}"
        )
    starts = [0, *accumulate(sizes)]
    end = [starts[-1]] * sizes[0]  # the row of padding, behind the elements
    rows = [[*range(start, start + n), *end[n:]] for start, n in zip(starts, sizes, strict=False)]
    index = dt.asarray(rows + [end] * (steps - len(sizes)), device=data.device)
    sums = [sum(n > k for n in sizes) for k in range(sizes[0])]
    lengths = dt.asarray(sums, device=data.device)
    if inverse is not None:
        index, lengths = dt.take(index, inverse, axis=1), dt.take(lengths, inverse, axis=0)
    index = index.mT if batch_first else index
    padding = dt.full((1, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    return dt.concat([data, padding])[index], lengths


def _pad_rows(x: Tensor, n: int, value: float) -> Tensor:
    """Return `x` with n rows, the last of which are padding."""
    if x.shape[0] == n:
        return x
    shape = (n - x.shape[0], *x.shape[1:])
    return dt.concat([x, dt.full(shape, value, dtype=x.dtype, device=x.device)])


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences, padded to the greatest length.

    - `sequences`: the sequences, which differ only in their lengths.
    - `batch_first`: True puts the axis of the sequences first.
    - `padding_value`: the number outside of a sequence.
    - `padding_side`: "right" pads at the end, "left" at the start.

    Shapes: (length, ...) each, which differ only in the length; the result (steps, sequences, ...),
    or with `batch_first` the first two exchanged.
    Raises: ArgumentError for no sequences or another side, ShapeError.
    See also: `unpad_sequence`, `pack_sequence`.

    >>> import dovetail as dt
    >>> x = [dt.asarray(s) for s in ([1, 2, 3], [4])]
    >>> dt.nn.utils.rnn.pad_sequence(x, batch_first=True).tolist()
    [[1, 2, 3], [4, 0, 0]]
    """
    tensors = _check_sequences("pad_sequence", sequences)
    if padding_side not in ("left", "right"):
        raise dt.ArgumentError(
            f"pad_sequence: padding_side must be 'left' or 'right', got {padding_side!r}"
        )
    n = max(x.shape[0] for x in tensors)
    if padding_side == "right":
        padded = [_pad_rows(x, n, padding_value) for x in tensors]
    else:
        padded = [dt.flip(_pad_rows(dt.flip(x, axis=0), n, padding_value), axis=0) for x in tensors]
    return dt.stack(padded, axis=0 if batch_first else 1)


def _check_sequences(name: str, sequences: Sequence[Tensor]) -> list[Tensor]:
    """Return sequences as a list. Raises: ArgumentError for none, ShapeError if they do not fit."""
    tensors = list(sequences)
    if not tensors:
        raise dt.ArgumentError(f"{name}: expected at least one sequence, got none")
    if any(x.ndim < 1 or x.shape[1:] != tensors[0].shape[1:] for x in tensors):
        raise dt.ShapeError(
            f"{name}: shapes must be equal except along the first axis, got "
            f"{', '.join(str(x.shape) for x in tensors)}"
        )
    return tensors


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences; see `pack_padded_sequence`.

    - `sequences`: the sequences, which differ only in their lengths.
    - `enforce_sorted`: True requires falling lengths; False sorts the sequences.

    Shapes: (length, ...) each, which differ only in the length.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> x = [dt.asarray(s) for s in ([1, 2, 3], [4])]
    >>> dt.nn.utils.rnn.pack_sequence(x).data.tolist()
    [1, 4, 2, 3]
    """
    tensors = _check_sequences("pack_sequence", sequences)
    lengths = [x.shape[0] for x in tensors]
    return pack_padded_sequence(pad_sequence(tensors), lengths, enforce_sorted=enforce_sorted)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Lengths, batch_first: bool = False
) -> list[Tensor]:
    """Return a list of the sequences without their padding.

    - `padded_sequences`: the sequences with padding at the end.
    - `lengths`: the length of each sequence.
    - `batch_first`: True if the first axis is that of the sequences.

    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 4], [2, 0], [3, 0]])
    >>> [s.tolist() for s in dt.nn.utils.rnn.unpad_sequence(x, [3, 1])]
    [[1, 2, 3], [4]]
    """
    x = padded_sequences if batch_first else dt.moveaxis(padded_sequences, 0, 1)
    values = _check_lengths("unpad_sequence", lengths, x.shape[1])
    if len(values) != x.shape[0]:
        raise dt.ShapeError(
            f"unpad_sequence: expected one length for each of {x.shape[0]} sequences, got "
            f"{len(values)}"
        )
    return [x[k, :n] for k, n in enumerate(values)]


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return a list of the packed sequences, in the order in which they were packed.

    - `packed_sequences`: the packed sequences.

    >>> import dovetail as dt
    >>> x = [dt.asarray(s) for s in ([1, 2, 3], [4])]
    >>> [s.tolist() for s in dt.nn.utils.rnn.unpack_sequence(dt.nn.utils.rnn.pack_sequence(x))]
    [[1, 2, 3], [4]]
    """
    if not isinstance(packed_sequences, PackedSequence):
        raise arguments.refused(
            "unpack_sequence", "packed_sequences", "a PackedSequence", packed_sequences
        )
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


explain_all(globals(), __all__)
