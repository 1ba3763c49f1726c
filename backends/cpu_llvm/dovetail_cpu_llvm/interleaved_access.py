"""Analysis of loads and stores of adjacent elements, such as the two parts of a complex number.

Each of them alone would be a gather or a scatter. A paired access moves both elements of all lanes
at once and shuffles even and odd ones apart: 16 K sums of complex128 take 8.5 us instead of 16. A
store group is the same for four stores or more.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from dovetail.extend import Block, Loop, Store, Value, bool_, float32, loads, uint32, uint64

GROUP_STORES_MIN = 4

Access = Value | Store


def paired_accesses(block: Block) -> dict[int, Access]:
    """Return the second access of each pair in a block and its loops, by the id of the first."""
    pairs: dict[int, Access] = {}
    for a, b in pairwise(block):
        if isinstance(b, Value | Store) and type(a) is type(b) and _is_pair(a, b):
            pairs[id(a)] = b
    for s in block:
        if isinstance(s, Loop):
            pairs |= paired_accesses(s.body)
    return pairs


def _is_pair(a: Access, b: Access) -> bool:
    """Return True if two loads or two stores access an even element and the next one."""
    if isinstance(a, Value) and isinstance(b, Value) and not a.op == b.op == "load":
        return False
    is_one_place = a.buffer is b.buffer and a.when is b.when and a.buffer.dtype is not bool_
    return is_one_place and _is_next_index(a.index, b.index)


def _is_next_index(a: Value, b: Value) -> bool:
    """Return True if `a` is an even index and `b` is computed as `a + 1`."""
    even = a.op == "mul" and a.args[1].op == "const" and a.args[1].number == 2
    return even and b.op == "add" and b.args[0] is a and b.args[1].number == 1


class StoreGroup(NamedTuple):
    """Stores to consecutive elements that become transposed vector stores.

    Lanes are `stride` elements apart, so that all groups of a run fill memory without gaps.
    """

    stores: tuple[Store, ...]
    stride: int


def store_groups(block: Block, native: int) -> dict[int, StoreGroup]:
    """Return the store groups of a straight-line block or of the map loops in it, by store id.

    The last store of a group writes for all of it. That is safe because the block does not load
    from the buffer. A group has at most as many stores as a register of `native` bytes has
    elements.
    """
    maps = [s.body for s in block if isinstance(s, Loop) and s.kind == "map"]
    if any(isinstance(s, Loop) for s in block):
        return {k: group for body in maps for k, group in store_groups(body, native).items()}
    read = {v.buffer for v in loads(block)}
    runs: dict[object, list[Store]] = {}
    for s in block:
        plain = isinstance(s, Store) and s.when is None and s.buffer not in read
        if isinstance(s, Store) and plain and s.buffer.dtype is not bool_:
            terms = frozenset(_split_linear_terms(s.index)[0].items())
            runs.setdefault((s.buffer, terms), []).append(s)
    groups: dict[int, StoreGroup] = {}
    for run in runs.values():
        count, side = len(run), min(len(run), native // run[0].buffer.dtype.itemsize)
        is_power = not count & (count - 1)
        if count >= GROUP_STORES_MIN and is_power and all(map(_is_next_store, run, run[1:])):
            for i in range(0, count, side):
                group = StoreGroup(tuple(run[i : i + side]), count)
                groups |= {id(s): group for s in group.stores}
    return groups


def _is_next_store(a: Store, b: Store) -> bool:
    """Return True if `b` stores to the element after that of `a`."""
    return _split_linear_terms(b.index)[1] == _split_linear_terms(a.index)[1] + 1


def _split_linear_terms(v: Value) -> tuple[dict[int, int], int]:
    """Return an index as {id of a value: factor} and a constant."""
    if v.op == "const":
        return {}, int(v.number)
    if v.op == "add":
        (a, m), (b, n) = map(_split_linear_terms, v.args)
        return {k: a.get(k, 0) + b.get(k, 0) for k in a | b}, m + n
    if v.op == "mul" and v.args[1].op == "const":
        (a, m), factor = _split_linear_terms(v.args[0]), int(v.args[1].number)
        return {k: c * factor for k, c in a.items()}, m * factor
    return {id(v): 1}, 0


def half_of_word(v: Value) -> tuple[Value, int] | None:
    """Return the 64-bit word of which `v` is a float32 half and the half's number, or None.

    Complex64 numbers are loaded as such words.
    """
    if v.op != "bitcast" or v.dtype is not float32 or v.args[0].op != "cast":
        return None
    word = v.args[0].args[0]
    if v.args[0].dtype is not uint32 or word.dtype is not uint64:
        return None
    if word.op == "shr" and word.args[1].op == "const" and word.args[1].number == 32:
        return word.args[0], 1
    return word, 0
