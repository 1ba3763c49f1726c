"""Sequences of several lengths: padded to one, or packed without padding, step after step.

PyTorch has these functions in `torch.nn.utils.rnn`. Lengths decide shapes, so they are numbers of
the host: `batch_sizes` is a tuple of ints here, which is part of what `dt.jit` tells calls by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import dovetail as dt

from ..blame import explain_all

__all__ = [
    "PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip

Tensor: TypeAlias = dt.Tensor
Lengths: TypeAlias = "Sequence[int] | dt.Tensor"


class PackedSequence(NamedTuple):
    """Sequences without padding: the elements of all that are long enough, step after step.

    `data`: (elements, ...). `batch_sizes`: how many sequences each step has, a tuple of ints.
    `sorted_indices`: which sequence is the longest, the next, ...; `unsorted_indices` puts them
    back; None where they were sorted.

    >>> import dovetail as dt
    >>> x = [dt.asarray(s, device="reference") for s in ([1, 2, 3], [4])]
    >>> packed = dt.nn.utils.rnn.pack_sequence(x)
    >>> packed.data.tolist(), packed.batch_sizes
    ([1, 4, 2, 3], (2, 1, 1))
    """

    data: Tensor
    batch_sizes: tuple[int, ...]
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None


def _lengths(name: str, lengths: Lengths, most: int | None = None) -> list[int]:
    given: list[Any] = list(
        lengths.numpy().ravel().tolist() if isinstance(lengths, dt.Tensor) else lengths
    )
    if any(not isinstance(n, int) or isinstance(n, bool) for n in given):
        raise dt.ArgumentTypeError(f"{name}: lengths are ints, not {given}")
    if not given or min(given) < 1 or (most is not None and max(given) > most):
        upto = "" if most is None else f" to {most}"
        raise dt.ArgumentError(f"{name}: lengths are from 1{upto}, one or more, not {given}")
    return given


def pack_padded_sequence(
    input: Tensor, lengths: Lengths, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The elements of padded sequences that are no padding.

    `lengths`: how many of each. `enforce_sorted`: they are in falling order; False sorts them.
    Shapes: input (steps, sequences, ...), or with `batch_first` the first two exchanged.
    Gradient: flows to the elements.
    Raises: ShapeError, ArgumentError where lengths are not sorted, not from 1 to the steps.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 4], [2, 0], [3, 0]], device="reference")
    >>> dt.nn.utils.rnn.pack_padded_sequence(x, [3, 1]).data.tolist()
    [1, 4, 2, 3]
    """
    name = "pack_padded_sequence"
    if input.ndim < 2:
        raise dt.ShapeError(f"{name}: shape {input.shape}: give (steps, sequences, ...)")
    x = dt.moveaxis(input, 0, 1) if batch_first else input
    given = _lengths(name, lengths, x.shape[0])
    if len(given) != x.shape[1]:
        raise dt.ShapeError(f"{name}: {len(given)} lengths for {x.shape[1]} sequences")
    order = sorted(range(len(given)), key=lambda k: -given[k])
    falling = [given[k] for k in order]
    if enforce_sorted and falling != given:
        raise dt.ArgumentError(
            f"{name}: lengths {given} do not fall; sort the sequences, or give enforce_sorted=False"
        )
    found: Tensor | None = None
    back: Tensor | None = None
    if not enforce_sorted:
        found = dt.asarray(order, device=x.device)
        back = dt.asarray(sorted(range(len(order)), key=order.__getitem__), device=x.device)
        x = dt.take(x, found, axis=1)
    sizes = tuple(sum(n > t for n in falling) for t in range(falling[0]))
    return PackedSequence(dt.concat(_steps(x, sizes)), sizes, found, back)


def _steps(x: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """What each step has of padded sequences; neighbours of one size at a time."""
    found, start = [], 0
    for t in range(1, len(sizes) + 1):
        if t == len(sizes) or sizes[t] != sizes[start]:
            part = x[start:t, : sizes[start]]
            found.append(dt.reshape(part, (-1, *x.shape[2:])))
            start = t
    return found


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Padded sequences, in the order in which they were packed, and their lengths.

    `total_length`: of the steps; as many as the longest has for None.
    Shapes: (steps, sequences, ...), or with `batch_first` the first two exchanged.
    Gradient: flows from the elements.
    Raises: ArgumentError where `total_length` is less than the longest.

    >>> import dovetail as dt
    >>> x = [dt.asarray(s, device="reference") for s in ([1, 2, 3], [4])]
    >>> padded, lengths = dt.nn.utils.rnn.pad_packed_sequence(dt.nn.utils.rnn.pack_sequence(x))
    >>> padded.tolist(), lengths.tolist()
    ([[1, 4], [2, 0], [3, 0]], [3, 1])
    """
    data, sizes, _, back = sequence
    steps = len(sizes) if total_length is None else total_length
    if steps < len(sizes):
        raise dt.ArgumentError(
            f"pad_packed_sequence: total_length {steps} is less than the longest, {len(sizes)}"
        )
    rows, start = [], 0
    for n in sizes:
        rows.append(_padded(data[start : start + n], sizes[0], padding_value))
        start += n
    x = _padded(dt.stack(rows), steps, padding_value)
    lengths = [sum(n > k for n in sizes) for k in range(sizes[0])]
    found = dt.asarray(lengths, device=data.device)
    if back is not None:
        x, found = dt.take(x, back, axis=1), dt.take(found, back, axis=0)
    return dt.moveaxis(x, 0, 1) if batch_first else x, found


def _padded(x: Tensor, n: int, value: float) -> Tensor:
    """With n rows, the last of which are padding."""
    if x.shape[0] == n:
        return x
    shape = (n - x.shape[0], *x.shape[1:])
    return dt.concat([x, dt.full(shape, value, dtype=x.dtype, device=x.device)])


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:  # fmt: skip
    """Sequences side by side, padded to the longest.

    `padding_side`: "right" pads after them, "left" before.
    Shapes: of (length, ...) each, alike but for the length: (steps, sequences, ...), or with
    `batch_first` the first two exchanged.
    Raises: ArgumentError for no sequences or another side, ShapeError.

    >>> import dovetail as dt
    >>> x = [dt.asarray(s, device="reference") for s in ([1, 2, 3], [4])]
    >>> dt.nn.utils.rnn.pad_sequence(x, batch_first=True).tolist()
    [[1, 2, 3], [4, 0, 0]]
    """
    given = _sequences("pad_sequence", sequences)
    if padding_side not in ("left", "right"):
        raise dt.ArgumentError(f"pad_sequence: padding_side is left or right, not {padding_side!r}")
    n = max(x.shape[0] for x in given)
    if padding_side == "right":
        made = [_padded(x, n, padding_value) for x in given]
    else:
        made = [dt.flip(_padded(dt.flip(x, axis=0), n, padding_value), axis=0) for x in given]
    return dt.stack(made, axis=0 if batch_first else 1)


def _sequences(name: str, sequences: Sequence[Tensor]) -> list[Tensor]:
    given = list(sequences)
    if not given:
        raise dt.ArgumentError(f"{name}: no sequences; give one or more")
    if any(x.ndim < 1 or x.shape[1:] != given[0].shape[1:] for x in given):
        raise dt.ShapeError(
            f"{name}: shapes {', '.join(str(x.shape) for x in given)} differ besides the first axis"
        )
    return given


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """The elements of sequences, packed; see `pack_padded_sequence`.

    Shapes: of (length, ...) each, alike but for the length.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> x = [dt.asarray(s, device="reference") for s in ([1, 2, 3], [4])]
    >>> dt.nn.utils.rnn.pack_sequence(x).data.tolist()
    [1, 4, 2, 3]
    """
    given = _sequences("pack_sequence", sequences)
    lengths = [x.shape[0] for x in given]
    return pack_padded_sequence(pad_sequence(given), lengths, enforce_sorted=enforce_sorted)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Lengths, batch_first: bool = False
) -> list[Tensor]:
    """Each of padded sequences, without its padding.

    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 4], [2, 0], [3, 0]], device="reference")
    >>> [s.tolist() for s in dt.nn.utils.rnn.unpad_sequence(x, [3, 1])]
    [[1, 2, 3], [4]]
    """
    x = padded_sequences if batch_first else dt.moveaxis(padded_sequences, 0, 1)
    given = _lengths("unpad_sequence", lengths, x.shape[1])
    if len(given) != x.shape[0]:
        raise dt.ShapeError(f"unpad_sequence: {len(given)} lengths for {x.shape[0]} sequences")
    return [x[k, :n] for k, n in enumerate(given)]


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Each of packed sequences, in the order in which they were packed.

    >>> import dovetail as dt
    >>> x = [dt.asarray(s, device="reference") for s in ([1, 2, 3], [4])]
    >>> [s.tolist() for s in dt.nn.utils.rnn.unpack_sequence(dt.nn.utils.rnn.pack_sequence(x))]
    [[1, 2, 3], [4]]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


explain_all(globals(), __all__)
