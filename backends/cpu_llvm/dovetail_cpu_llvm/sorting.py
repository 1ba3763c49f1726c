"""NumPy's vectorised sort in place of the generated passes, for few threads.

It takes 4.3 ms for a million float32, the four passes 26 ms of one thread. It is not stable. So
zeros and NaNs, which are equal and differ in bits, are put back into their original order,
and positions are sorted as the low bits of words that have keys above them. Threads share rows, and
not the halves of a vector, cut at its median: on two cores that was 0.85 to 1.6 times as fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
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

from . import parallel_numpy
from .memory import Array, operand_array

SORT_THREADS_MAX = 8  # with more of them the generated passes are faster
VECTOR_BYTES_MIN = 32  # bytes: NumPy's sort is vectorised with AVX2 and AVX-512
# NumPy's sort stores selected lanes of AVX-512, which these execute as microcode: a million float32
# take 33 ms, the passes 12 ms (one thread, Zen 5, 2026-11-30).
SLOW_COMPRESS_CPUS = frozenset(("znver4", "znver5"))
CHUNK_WORDS = 1 << 14  # words that stay in cache from one function to the next
WORD_BITS, HALF_WORD_BITS = 64, 32  # bits; words of half as many take half the time
# elements that NumPy's stable `argsort` orders before words are made (of data that
# the processor has not just seen: the same vector again and again seems four times quicker)
STABLE_ARGSORT_ELEMENTS_MAX = 1 << 8
MINUS_ZERO = {4: (np.int32, -(1 << 31)), 8: (np.int64, -(1 << 63))}  # the least of all patterns


def sort_routines(threads: int, vector: int, cpu: str) -> Mapping[tuple[str, DType], LibraryCall]:
    """Return the routines by op and dtype; none where the generated passes are faster.

    They are with many threads, and on CPUs with narrow vectors or slow stores of selected lanes.
    """
    if threads > SORT_THREADS_MAX or vector < VECTOR_BYTES_MIN or cpu in SLOW_COMPRESS_CPUS:
        return {}
    routines = {"sort": partial(sort, threads), "argsort": partial(argsort, threads)}
    kinds = (float32, float64, int32, int64, uint32, uint64)
    return {(op, d): routine for op, routine in routines.items() for d in kinds}


def sort(
    threads: int,
    backend: Backend,
    inputs: Sequence[StridedOperand],
    output: StridedOperand,
    stream: StreamHandle,
) -> None:
    """Write the elements of each row in order, stably: NaN last, -0 equal to 0."""
    x, out = operand_array(inputs[0]), operand_array(output)
    parallel_numpy.map_parts(lambda p: _sort_rows(x[p], out[p]), _split_rows(x, threads))


def _split_rows(x: Array, threads: int) -> list[slice]:
    """Return slices of rows for the threads to share, or one slice of all."""
    wanted = parallel_numpy.part_count(threads, x.size) if x.ndim > 1 else 1
    return parallel_numpy.split_range(len(x), wanted)


def _sort_rows(x: Array, out: Array) -> None:
    """Copy rows to `out` and sort them; restore the order of equal floats."""
    np.copyto(out, x)
    out.sort(axis=-1)
    if x.dtype.kind == "f" and x.size:
        _restore_stability(x, out)


def _restore_stability(x: Array, out: Array) -> None:
    """Put zeros and NaNs of sorted rows into the order that they have in `x`."""
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
    threads: int,
    backend: Backend,
    inputs: Sequence[StridedOperand],
    output: StridedOperand,
    stream: StreamHandle,
) -> None:
    """Write the positions of the elements of each row in order, as a stable sort does.

    A word has as many bits of a key as fit above the position. Words whose keys are equal in these
    bits are ordered by the whole key.
    """
    x, out = operand_array(inputs[0]), operand_array(output)
    if x.size <= STABLE_ARGSORT_ELEMENTS_MAX:
        out[...] = x.argsort(axis=-1, kind="stable")
        return
    parallel_numpy.map_parts(lambda p: _argsort_rows(x[p], out[p]), _split_rows(x, threads))


def _argsort_rows(x: Array, out: Array) -> None:
    """Write the positions of each row's elements to `out`, in stable sorted order."""
    n = x.shape[-1]
    position_bits = (n - 1).bit_length()
    is_small = x.size <= CHUNK_WORDS
    checks_range = x.dtype.kind in "iu" and (is_small or x.dtype == np.uint64)
    ends = _find_min_max(x[..., :CHUNK_WORDS]) if checks_range else None
    if ends and is_small and _argsort_half(x, out, position_bits, *ends):
        return
    is_strided = not out.flags.c_contiguous
    words = np.empty(x.shape, np.uint64) if is_strided else out.view(np.uint64)
    if (
        ends and x.dtype == np.uint64 and (ends[1] - ends[0]).bit_length() == WORD_BITS
    ):  # as all have
        dropped_bits = position_bits
        _put_full_words(x, words, position_bits)
    else:
        low, high = _put_keys(x, words)
        dropped_bits = max(0, (high - low).bit_length() + position_bits - WORD_BITS)
        _add_positions(words, low, dropped_bits, position_bits)
    words.sort(axis=-1)
    flat = words.reshape(-1)
    ties = _find_ties(flat, position_bits) if dropped_bits else None
    flat &= np.uint64((1 << position_bits) - 1)
    if ties is not None and ties.size:
        at, row = flat[ties].astype(np.int64), ties // n
        flat[ties] = at[np.lexsort((_compute_keys(x.reshape(-1, n)[row, at]), row))]
    if is_strided:
        np.copyto(out, words.view(out.dtype))


def _find_min_max(x: Array) -> tuple[int, int]:
    """Return the least and the greatest element as ints."""
    return int(np.minimum.reduce(x, axis=None)), int(np.maximum.reduce(x, axis=None))


def _argsort_half(x: Array, out: Array, position_bits: int, low: int, high: int) -> bool:
    """Sort positions of a few integers in words of half size; return True if done.

    The keys and the positions must fit these words together.
    """
    if (high - low).bit_length() + position_bits > HALF_WORD_BITS:
        return False
    words = np.subtract(x, low, dtype=x.dtype).astype(np.uint32) if low else x.astype(np.uint32)
    words <<= np.uint32(position_bits)
    words |= _cached_positions(x.shape[-1]).astype(np.uint32)
    words.sort(axis=-1)
    words &= np.uint32((1 << position_bits) - 1)
    np.copyto(out, words)
    return True


def _compute_keys(x: Array) -> Array:
    """Return unsigned integers in the order of elements, equal for both zeros and all NaNs."""
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
    """Write the keys of all elements to `words`; return the least and the greatest."""
    low, high = 1 << WORD_BITS, 0
    for part, target in _iterate_chunks(x, words):
        target[...] = _compute_keys(part)
        least, greatest = _find_min_max(target)
        low, high = min(low, least), max(high, greatest)
    return low, high


def _put_full_words(x: Array, words: Array, position_bits: int) -> None:
    """Write words of keys that use all bits.

    A word has the highest bits of the key, above the bits of the position.
    """
    above = np.uint64((1 << WORD_BITS) - (1 << position_bits))
    for part in _split_chunks(words):
        np.bitwise_and(x[..., part], above, out=words[..., part])
        _put_positions(words, part)


def _add_positions(words: Array, low: int, dropped_bits: int, position_bits: int) -> None:
    """Turn keys from `low` on into words with positions.

    The `dropped_bits` lowest bits of a key are dropped, and the position is below it.
    """
    for part in _split_chunks(words):
        chunk = words[..., part]
        if low:
            chunk -= np.uint64(low)
        if dropped_bits:
            chunk >>= np.uint64(dropped_bits)
        chunk <<= np.uint64(position_bits)
        _put_positions(words, part)


def _split_chunks(words: Array) -> list[slice]:
    """Return the chunks of a long vector, or all of its rows."""
    n = words.shape[-1]
    step = CHUNK_WORDS if words.ndim == 1 else n
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def _put_positions(words: Array, part: slice) -> None:
    """Put the position in its row into the low bits of each word, which are zeros."""
    chunk = words[..., part]
    chunk |= _find_positions(chunk.shape[-1])
    if part.start:
        chunk |= np.uint64(part.start)


def _find_positions(n: int) -> Array:
    """Return 0..n-1 as uint64; the array may be a cached one, not to be changed."""
    return _cached_positions(n) if n <= CHUNK_WORDS else np.arange(n, dtype=np.uint64)


@lru_cache(16)
def _cached_positions(n: int) -> Array:
    """Return 0..n-1 as uint64, the same array for the same n."""
    return np.arange(n, dtype=np.uint64)


def _iterate_chunks(source: Array, target: Array) -> Iterator[tuple[Array, Array]]:
    """Yield chunks of `target`, to be changed in place, with the chunks of `source`."""
    if target.size <= CHUNK_WORDS:
        yield source, target
        return
    flags: list[Literal["external_loop", "buffered"]] = ["external_loop", "buffered"]
    with np.nditer(
        [source, target], flags, [["readonly"], ["readwrite"]], buffersize=CHUNK_WORDS
    ) as all_:
        yield from all_


def _find_ties(words: Array, position_bits: int) -> Array:
    """Return the indices of sorted words that have the key of a neighbour."""
    above, indices = np.uint64(1 << position_bits), [words[:0].view(np.intp)]
    for start in range(0, words.size, CHUNK_WORDS):
        chunk = words[start : start + CHUNK_WORDS + 1]
        differences = chunk[1:] ^ chunk[:-1]
        if np.minimum.reduce(differences, initial=above) < above:  # there are few
            indices.append(np.flatnonzero(differences < above) + start)
    first = np.concatenate(indices)
    return np.union1d(first, first + 1) if first.size else first
