"""NumPy's vectorised sort in place of the generated passes, where few threads would share these.

It takes 4.3 ms for a million float32, the four passes 26 ms of one thread. It is not stable; so
zeros and NaNs, which are equal and differ in bits, are put back into the order in which they came,
and positions are sorted as the low bits of words that have keys above them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from dovetail.extend import (
    Backend,
    DType,
    LibraryCall,
    StreamHandle,
    StridedOperand,
    float32,
    float64,
    int32,
    int64,
    uint32,
    uint64,
)

from .memory import Array, operand_array

FEW_THREADS = 8  # with more of them the generated passes are faster
VECTOR = 32  # bytes: NumPy's sort is vectorised with AVX2 and AVX-512
CHUNK = 1 << 14  # words that stay in cache from one function to the next
WORD, HALF = 64, 32  # bits; words of half as many take half the time
SMALL = 1 << 8  # elements that NumPy's stable `argsort` orders before words are made (of data that
# the processor has not just seen: the same vector again and again seems four times quicker)
MINUS_ZERO = {4: (np.int32, -(1 << 31)), 8: (np.int64, -(1 << 63))}  # the least of all patterns


def sorting(threads: int, vector: int) -> Mapping[tuple[str, DType], LibraryCall]:
    """The routines for so many threads, with vectors of so many bytes."""
    if threads > FEW_THREADS or vector < VECTOR:
        return {}
    routines = {"sort": sort, "argsort": argsort}
    kinds = (float32, float64, int32, int64, uint32, uint64)
    return {(op, d): routine for op, routine in routines.items() for d in kinds}


def sort(
    backend: Backend, inputs: Sequence[StridedOperand], output: StridedOperand, stream: StreamHandle
) -> None:
    """Writes the elements of each row in order, as a stable sort does: NaN last, -0 equal to 0."""
    x, out = operand_array(inputs[0]), operand_array(output)
    np.copyto(out, x)
    out.sort(axis=-1)
    if x.dtype.kind == "f" and x.size:
        _restore(x, out)


def _restore(x: Array, out: Array) -> None:
    """Puts zeros and NaNs of sorted rows into the order that they have in `x`."""
    if x.ndim == 1:
        first, last = out.item(0), out.item(-1)
        if (first > 0 or last < 0) and last == last:  # neither zeros nor NaN
            return
    integer, least = MINUS_ZERO[x.itemsize]
    if np.minimum.reduce(x.view(integer), axis=None) == least:
        out[out == 0] = x[x == 0]
    last = out[..., -1]
    if (last != last).any():
        out[np.isnan(out)] = x[np.isnan(x)]


def argsort(
    backend: Backend, inputs: Sequence[StridedOperand], output: StridedOperand, stream: StreamHandle
) -> None:
    """Writes the positions of the elements of each row in order, as a stable sort does.

    Words have as many bits of a key as there is room for above the position. Those whose keys are
    equal as far as that goes are ordered by all of it.
    """
    x, out = operand_array(inputs[0]), operand_array(output)
    if x.size <= SMALL:
        out[...] = x.argsort(axis=-1, kind="stable")
        return
    n = x.shape[-1]
    place = (n - 1).bit_length()
    few = _ends(x) if x.dtype.kind in "iu" and x.size <= CHUNK else None
    if few and _argsort_half(x, out, place, *few):
        return
    apart = not out.flags.c_contiguous
    words = np.empty(x.shape, np.uint64) if apart else out.view(np.uint64)
    if few and x.dtype == np.uint64 and (few[1] - few[0]).bit_length() == WORD:  # full words
        lost = place
        np.bitwise_and(x, np.uint64((1 << WORD) - (1 << place)), out=words)
        words |= _few_places(n)
    else:
        low, high = _put_keys(x, words)
        lost = max(0, (high - low).bit_length() + place - WORD)
        _add_positions(words, low, lost, place)
    words.sort(axis=-1)
    flat = words.reshape(-1)
    tied = _tied(flat, place) if lost else None
    flat &= np.uint64((1 << place) - 1)
    if tied is not None and tied.size:
        at, row = flat[tied].astype(np.int64), tied // n
        flat[tied] = at[np.lexsort((_keys(x.reshape(-1, n)[row, at]), row))]
    if apart:
        np.copyto(out, words.view(out.dtype))


def _ends(x: Array) -> tuple[int, int]:
    """The least and the greatest."""
    return int(np.minimum.reduce(x, axis=None)), int(np.maximum.reduce(x, axis=None))


def _argsort_half(x: Array, out: Array, place: int, low: int, high: int) -> bool:
    """The same of few integers, where these and positions fit words of half a size."""
    if (high - low).bit_length() + place > HALF:
        return False
    words = np.subtract(x, low, dtype=x.dtype).astype(np.uint32) if low else x.astype(np.uint32)
    words <<= np.uint32(place)
    words |= _few_places(x.shape[-1]).astype(np.uint32)
    words.sort(axis=-1)
    words &= np.uint32((1 << place) - 1)
    np.copyto(out, words)
    return True


def _keys(x: Array) -> Array:
    """Unsigned integers in the order of elements: equal for both zeros, and for all NaNs."""
    if x.dtype.kind == "u":
        return x
    ends = np.iinfo(f"i{x.itemsize}")
    if x.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # of a signalling NaN
            x = x + x.dtype.type(0)  # no -0
        nan = np.isnan(x)
        if nan.any():
            x[nan] = np.nan
        x = x.view(ends.dtype)
        x = x ^ ((x >> (ends.bits - 1)) & ends.max)
    return (x ^ ends.min).view(f"u{x.itemsize}")


def _put_keys(x: Array, words: Array) -> tuple[int, int]:
    """Writes the keys of all elements; the least and the greatest."""
    low, high = 1 << WORD, 0
    for part, to in _chunks(x, words):
        to[...] = _keys(part)
        least, greatest = _ends(to)
        low, high = min(low, least), max(high, greatest)
    return low, high


def _add_positions(words: Array, low: int, lost: int, place: int) -> None:
    """Makes keys from `low` on words: without the `lost` lowest bits, above `place` of position."""
    for at, word in _chunks(_places(words.shape[-1]), words):
        if low:
            word -= np.uint64(low)
        if lost:
            word >>= np.uint64(lost)
        word <<= np.uint64(place)
        word |= at


def _places(n: int) -> Array:
    return _few_places(n) if n <= CHUNK else np.arange(n, dtype=np.uint64)


@lru_cache(16)
def _few_places(n: int) -> Array:
    return np.arange(n, dtype=np.uint64)


def _chunks(read: Array, changed: Array) -> Iterator[tuple[Array, Array]]:
    """The parts of an array that is changed, beside what is read for them."""
    if changed.size <= CHUNK:
        yield read, changed
        return
    flags: list[Literal["external_loop", "buffered"]] = ["external_loop", "buffered"]
    with np.nditer([read, changed], flags, [["readonly"], ["readwrite"]], buffersize=CHUNK) as all_:
        yield from all_


def _tied(words: Array, place: int) -> Array:
    """Which sorted words have the key of a neighbour."""
    above, found = np.uint64(1 << place), []
    if words.size <= CHUNK and np.minimum.reduce(words[1:] ^ words[:-1], initial=above) == above:
        return words[:0]
    for start in range(0, words.size, CHUNK):
        some = words[start : start + CHUNK + 1]
        found.append(np.flatnonzero((some[1:] ^ some[:-1]) < above) + start)
    first = np.concatenate(found)
    return np.union1d(first, first + 1) if first.size else first
