"""Re-rolling: equal blocks of acts, which a Python loop has repeated, become one `RerolledLoop`.

Each use of a slot is linked to the use before it. Blocks are equal if their acts are equal but for
memory and numbers, and their links go back equally far. The program keeps the last block as the
body of the loop. In a body each slot is one of three:

- fixed: the same slot in all blocks. Its offset moves by the same number of bytes each time;
- fresh: no act before the block uses it. All blocks use the memory of the last block's slot;
- carried: fresh in the block before. It shares the memory of its heir, the slot that is fresh at
  the same position of this block, so its last use must be before the first use of the heir.

The loop runs the acts of the function in their order, so a value can be wrong only if memory is
reused too early. `_match_blocks` excludes that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..engine.launching import BoundKernel
from ..engine.traced_numbers import Environment, TracedNumber
from ..plugins.device_handle import OpenedDevice
from .loop_acts import NumberTable, RerolledLoop, ScannedRows
from .program import (
    Act,
    CapturedProgram,
    DrawAct,
    EffectAct,
    FillAct,
    HostAct,
    LaunchAct,
    LibraryCallAct,
    Place,
    ValueGuardAct,
    live_ranges,
    variables,
)

BODY_ACTS_MIN = 32  # an iteration that Python runs costs 0.5 us beside its acts
PERIODS_MAX = 8  # candidates for the length of an iteration
HASH_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64
)  # odd factors of a hash

Ints: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


class RerolledBlocks(NamedTuple):
    """Equal blocks of acts: `blocks` of them, of `length` acts each.

    `uses`: of each place in the body its slot, its offset in the first block, and by how many bytes
    that moves. `numbers`: by act and position, those that differ between blocks. `carried_slots`:
    slots with a value from block to block. `memory_owners`: the slots in whose memory other slots
    are. `idle_ranges`: slots, and two acts of the body between which they have no value.
    """

    begin: int
    length: int
    blocks: int
    uses: list[tuple[int, int, int]]
    numbers: dict[tuple[int, int], tuple[TracedNumber, ...]]
    carried_slots: set[int]
    memory_owners: dict[int, int]
    idle_ranges: list[tuple[int, int, int]]

    @property
    def end(self) -> int:
        """The number of the first act after the blocks."""
        return self.begin + self.length * self.blocks


class RolledActs(NamedTuple):
    """Acts, with the last block alone of each loop. `bodies`: where these begin and end."""

    acts: list[Act]
    loops: list[RerolledBlocks]
    bodies: list[tuple[int, int]]
    memory_owners: dict[int, int]

    def owner(self, slot: int) -> int:
        """Return the slot in whose memory a slot is; the slot itself if it owns memory."""
        while slot in self.memory_owners:
            slot = self.memory_owners[slot]
        return slot

    def spans(self) -> Mapping[int, tuple[int, ...]]:
        """Return the live ranges of slots that own memory: first act, last act, first act, ...

        A slot with several ranges is idle between them.
        """
        spans = live_ranges(self.acts)
        if not self.loops:
            return spans
        uses = [(slot, *span) for slot, span in spans.items()]
        idle = defaultdict[int, list[int]](list)
        for loop, (begin, end) in zip(self.loops, self.bodies, strict=True):
            uses += [(slot, begin, end - 1) for slot in loop.carried_slots]
            for slot, last, first in loop.idle_ranges:
                idle[self.owner(slot)] += begin + last, begin + first
        whole: dict[int, tuple[int, int]] = {}
        for slot, first, last in uses:
            owner_span = whole.get(self.owner(slot), (first, last))
            whole[self.owner(slot)] = min(owner_span[0], first), max(owner_span[1], last)
        return {slot: (first, *idle[slot], last) for slot, (first, last) in whole.items()}

    def build(
        self, move: Callable[[Place], Place], opened: OpenedDevice, environment: Environment
    ) -> Iterator[Act]:
        """Yield the acts with `move` applied to places, each loop as one act; add its variables."""
        done = 0
        for loop, (begin, end) in zip(self.loops, self.bodies, strict=True):
            yield from (act.replace_places(move) for act in self.acts[done:begin])
            yield _build_loop(loop, self.acts[begin:end], move, opened, environment)
            done = end
        yield from (act.replace_places(move) for act in self.acts[done:])


def reroll(
    acts: list[Act], own_slots: Container[int], live_variables: Container[int]
) -> RolledActs:
    """Find repeated blocks of acts; return the acts with only the last block of each loop.

    `own_slots`: the slots that only these acts use. `live_variables`: variables that are read
    afterwards.
    """
    trace = (
        _encode_acts(acts, own_slots, live_variables) if len(acts) >= 2 * BODY_ACTS_MIN else None
    )
    loops = [] if trace is None else _find_loops(trace)
    rolled, bodies, done = list[Act](), list[tuple[int, int]](), 0
    for loop in loops:
        rolled += acts[done : loop.begin]
        bodies.append((len(rolled), len(rolled) + loop.length))
        rolled += acts[loop.end - loop.length : loop.end]
        done = loop.end
    heirs = {slot: heir for loop in loops for slot, heir in loop.memory_owners.items()}
    return RolledActs(rolled + acts[done:], loops, bodies, heirs)


# --- acts as numbers ------------------------------------------------------------------------------


class _EncodedActs(NamedTuple):
    """A sequence of acts encoded as numbers, and the uses of their slots, in order.

    `keys`: equal for acts that do the same in other memory, with other numbers. `counts`: how many
    uses an act has. `starts`: its first use, and the end. `distances`: from each use to the one
    before; 0 for the first use of an own slot, a negative number of its own for that of another
    slot. `tokens`: hashes, equal for corresponding acts of equal blocks. `owners`: of each variable
    that an effect sets, the first variable of that effect.
    """

    acts: list[Act]
    own_slots: Container[int]
    keys: Ints
    counts: Ints
    starts: Ints
    slots: Ints
    offsets: Ints
    distances: Ints
    tokens: Ints
    owners: dict[int, int]


def _encode_acts(
    acts: list[Act], own_slots: Container[int], live_variables: Container[int]
) -> _EncodedActs | None:
    """Return acts as numbers; None if too few are equal. Variables of an effect are a slot < 0."""
    ids: dict[Hashable, int] = {}
    step_keys: dict[int, int] = {}  # by the id of a bound step
    owners: dict[int, int] = {}
    keys, operands = list[int](), list[Sequence[Place]]()
    for act in acts:
        if type(act) is LaunchAct and not act.lines:
            operand_places: Sequence[Place] = act.buffers
            key = step_keys.get(id(act.bound), -1)
            if key < 0:
                key = step_keys[id(act.bound)] = ids.setdefault(_step_key(act.bound), len(ids))
        else:
            operand_places, key = [*act.places()], ids.setdefault(_key(act), len(ids))
            if isinstance(act, EffectAct) and act.variable is not None:
                owners.update((act.variable + k, act.variable) for k in range(act.count))
                operand_places = [Place(-1 - act.variable, 0)]
        if owners:
            numbers = [v for v in variables([act]) if v in owners]
            operand_places = [
                *operand_places,
                *[Place(-1 - owners[v], v - owners[v]) for v in numbers],
            ]
        keys.append(key)
        operands.append(operand_places)
    if len(acts) - len(ids) < BODY_ACTS_MIN:
        return None
    kinds, counts = np.array(keys), np.array([*map(len, operands)])
    flat = np.fromiter(chain.from_iterable(chain.from_iterable(operands)), np.int64)
    slots, offsets = flat.reshape(-1, 2).T
    starts, uses = np.append(0, np.cumsum(counts)), np.arange(len(slots))
    before = _find_previous(slots)
    distances, new = uses - before, np.flatnonzero(before < 0)
    foreign = {-1 - owners[v] for v in owners if v in live_variables}
    is_own = [
        slot in own_slots if slot >= 0 else slot not in foreign for slot in slots[new].tolist()
    ]
    distances[new] = np.where(is_own, 0, -1 - new)
    position = uses - np.repeat(starts[:-1], counts)
    alike = _find_previous((slots << 28) + (np.repeat(kinds, counts) << 8) + position)
    moves = offsets - np.where(alike < 0, 0, offsets[alike])
    mixed = (
        distances.astype(np.uint64) * HASH_FACTORS[0] + moves.astype(np.uint64) * HASH_FACTORS[1]
    )
    mixed = (
        (mixed ^ (mixed >> np.uint64(32))) * HASH_FACTORS[2] * (2 * position + 1).astype(np.uint64)
    )
    sums = np.append(np.uint64(0), np.cumsum(mixed))
    tokens = np.diff(sums[starts]) + kinds.astype(np.uint64) * HASH_FACTORS[3]
    return _EncodedActs(
        acts, own_slots, kinds, counts, starts, slots, offsets, distances, tokens, owners
    )


def _find_previous(values: Ints) -> Ints:
    """Return for each position the index of the previous equal value, or -1."""
    order = np.argsort(values, kind="stable")
    is_known = values[order[1:]] == values[order[:-1]]
    before = np.full(len(values), -1)
    before[order[1:][is_known]] = order[:-1][is_known]
    return before


def _step_key(bound: BoundKernel) -> Hashable:
    """Return a key that is equal for launches of one kernel, with equal sizes and checks."""
    s, slots = bound.step, [slot for slot, _ in bound.step.buffers]
    checks = tuple([(slots.index(slot), asked) for slot, _, asked in s.checks])
    return str(s.kernel), s.ints, s.grid, s.nbytes, checks


def _key(act: Act) -> Hashable:
    """Return an equal key for acts that do the same in other memory, with other numbers."""
    key: Hashable = object()  # equal to no other
    if isinstance(act, LaunchAct):
        key = _step_key(act.bound), act.lines
    elif isinstance(act, LibraryCallAct):
        key = act.op, act.dtype, *[x[1:] for x in (*act.inputs, act.output)], act.nbytes
    elif isinstance(act, HostAct):
        operands = [x[1:] for x in (*act.operands, *act.results)]
        key = act.call, repr(act.call.options), *operands, act.line  # 0.0, -0.0, False are equal
    elif isinstance(act, FillAct):
        key = act.values
    elif isinstance(act, ValueGuardAct):
        key = act.values, *act.operand[1:]
    elif isinstance(act, DrawAct) and isinstance(draw := act.draw, partial):
        key = draw.func, draw.args, *draw.keywords.items(), repr(draw), *act.result[1:]
    elif isinstance(act, EffectAct) and isinstance(action := act.action, partial):
        is_plain = not action.keywords and all(type(x) is int for x in action.args)
        key = (action.func, action.args, act.count) if is_plain else key
    with suppress(TypeError):
        hash(key)
        return type(act), key
    return object()


# --- loops in them --------------------------------------------------------------------------------


def _find_loops(trace: _EncodedActs) -> list[RerolledBlocks]:
    """Return the loops, in order: the longest one that fits, then those before and after it.

    If blocks of an outer loop do not fit, shorter ones inside of it may.
    """
    loops, windows = list[RerolledBlocks](), [(0, len(trace.acts))]
    while windows:
        first, last = windows.pop()
        runs = _find_runs(trace.tokens[first:last])
        fitting = (_fit_loop(trace, first + begin, *run) for begin, *run in runs)
        loop = next((x for x in fitting if x is not None), None)
        if loop is not None:
            loops.append(loop)
            windows += [(first, loop.begin), (loop.end, last)]
        elif runs:
            begin, length, _ = runs[0]
            windows += [(first, first + begin), (first + begin + length, last)]
    return sorted(loops, key=lambda loop: loop.begin)


def _find_runs(tokens: Ints) -> list[tuple[int, int, int]]:
    """Return (begin, length, period) of the longest run of tokens of each period, longest first.

    Those that are too short for a loop are left out.
    """
    n, runs = len(tokens), dict[tuple[int, int, int], int]()
    if n < 2 * BODY_ACTS_MIN:
        return []
    before = _find_previous(tokens)
    distances = (np.arange(n) - before)[before >= 0]
    weights = np.bincount(distances[distances <= n // 2], distances[distances <= n // 2])
    for period in np.argsort(-weights, kind="stable")[:PERIODS_MAX].tolist():
        if not weights[period]:
            break
        differ = np.flatnonzero(tokens[period:] != tokens[:-period])
        edges = np.concatenate(([-1], differ, [n - period]))
        k = int(np.argmax(np.diff(edges)))
        length = int(edges[k + 1] - edges[k]) - 1 + period
        body = -(-BODY_ACTS_MIN // period) * period
        if length >= 2 * body:
            runs[int(edges[k]) + 1, length, period] = length - body
    return sorted(runs, key=lambda run: -runs[run])


def _fit_loop(trace: _EncodedActs, begin: int, length: int, period: int) -> RerolledBlocks | None:
    """Return a loop of blocks of one or more periods, or None; few periods are left over."""
    least = -(-BODY_ACTS_MIN // period)
    best = min(range(least, 2 * least), key=lambda size: (length // period % size, size))
    for size in (best, 2 * best):  # two buffers that take turns need an even number
        for first in range(3):  # the first periods may read what later ones do not
            count = (length // period - first) // size
            at = begin + first * period
            if count > 1 and (loop := _match_blocks(trace, at, size * period, count)):
                return loop
    return None


def _match_blocks(
    trace: _EncodedActs, begin: int, length: int, count: int
) -> RerolledBlocks | None:
    """Return the loop of these blocks if they are equal and may share memory, else None."""

    def by_block(x: Ints, first: int, end: int) -> Ints:
        return x[first:end].reshape(count, -1)

    end = begin + length * count
    low, high = trace.starts[[begin, end]].tolist()
    keys, counts = (by_block(x, begin, end) for x in (trace.keys, trace.counts))
    if (keys != keys[0]).any() or (counts != counts[0]).any():
        return None
    slots, offsets, distances = (
        by_block(x, low, high) for x in (trace.slots, trace.offsets, trace.distances)
    )
    moves, is_fixed = offsets[1] - offsets[0], (slots == slots[0]).all(axis=0)
    if (distances != distances[0]).any() or (np.diff(offsets, axis=0) != moves).any():
        return None
    if moves[~is_fixed].any():
        return None
    # By position in a block: the act, and the first and the last use of the slot in the block.
    width, links = slots.shape[1], distances[0].tolist()
    act_of = np.repeat(np.arange(length), counts[0]).tolist()
    first, last = list(range(width)), list(range(width))
    for k, distance in enumerate(links):
        if 0 < distance <= k:
            first[k] = first[k - distance]
        last[first[k]] = k
    is_fresh = distances[0][first] == 0
    body, heirs, idle = slots[-1].tolist(), dict[int, int](), list[tuple[int, int, int]]()
    for k in np.flatnonzero((distances[0] > np.arange(width)) & ~is_fixed).tolist():
        source = k - links[k] + width  # the use in the block before
        heir = first[source] if source >= 0 else k
        initial = int(slots[0][k])
        if not is_fresh[heir] or act_of[last[k]] >= act_of[heir]:
            return None
        if initial < 0 or initial not in trace.own_slots:
            return None
        heirs[initial] = heirs[body[k]] = body[heir]
        idle.append((body[heir], act_of[last[k]], act_of[heir]))
    # Acts after the loop may use only fixed slots, and those that are fresh in the last block.
    later = trace.distances[high:]
    source = np.arange(high, len(trace.slots)) - later
    source = source[(later > 0) & (source >= low) & (source < high)] - low
    if (source < (count - 1) * width).any() or not (is_fixed | is_fresh)[source % width].all():
        return None
    numbers = _differing_numbers(trace, begin, length, end)
    if numbers is None:
        return None
    fixed_slots = {body[k] for k in np.flatnonzero(is_fixed)} | {slot for slot, _, _ in idle}
    uses = zip(body, offsets[0].tolist(), moves.tolist(), strict=True)
    real = [use for use in uses if use[0] >= 0]
    return RerolledBlocks(
        begin, length, count, real, numbers, {s for s in fixed_slots if s >= 0}, heirs, idle
    )


def _differing_numbers(
    trace: _EncodedActs, begin: int, length: int, end: int
) -> dict[tuple[int, int], tuple[TracedNumber, ...]] | None:
    """Return numbers that differ between blocks, by (act, position); None if effects set a part.

    Numbers are those of launches. Those that effects set in all blocks are left out.
    """
    differing = {}
    for i in range(length):
        blocks = [getattr(act, "numbers", ()) for act in trace.acts[begin + i : end : length]]
        for k, column in enumerate(zip(*blocks, strict=True)):
            is_same = column.count(column[0]) == len(column)
            if is_same and (column[0].value or len({*map(repr, column)}) == 1):  # not 0.0 and -0.0
                continue
            set_by_effects = sum(x.variable in trace.owners for x in column)
            if not set_by_effects:
                differing[i, k] = column
            elif set_by_effects < len(column):
                return None
    return differing


# --- the act of a loop ----------------------------------------------------------------------------


def _build_loop(
    loop: RerolledBlocks,
    acts: Sequence[Act],
    move: Callable[[Place], Place],
    opened: OpenedDevice,
    environment: Environment,
) -> RerolledLoop:
    """Build the act of a loop in the outer program's memory; add variables for its numbers."""
    table = None
    if loop.numbers:
        variables = {at: environment.variable(c[0].value) for at, c in loop.numbers.items()}
        rows = tuple(zip(*loop.numbers.values(), strict=True))
        table = NumberTable(min(variables.values()), rows)
        acts = [_replace_numbers(act, i, variables) for i, act in enumerate(acts)]
    loop_inputs = [(move(Place(slot, offset)), step) for slot, offset, step in loop.uses]
    order = {
        key: i for i, key in enumerate(dict.fromkeys((p.slot, step) for p, step in loop_inputs))
    }
    inner = iter([Place(order[p.slot, step], p.offset) for p, step in loop_inputs])
    body = tuple([act.replace_places(lambda p: next(inner)) for act in acts])
    written = frozenset(p.slot for act in body for p in act.written)
    program = CapturedProgram(opened, len(order), (), (), 0, body, written, "")
    inputs = tuple([ScannedRows(Place(slot, 0), step) for slot, step in order])
    return RerolledLoop(program, loop.blocks, inputs, table)


def _replace_numbers(act: Act, i: int, variables: dict[tuple[int, int], int]) -> Act:
    """Return act `i` of a body with variables in place of its numbers that differ."""
    if not isinstance(act, LaunchAct):
        return act
    own = enumerate(act.numbers)
    numbers = [TracedNumber(x.value, variables.get((i, k), x.variable)) for k, x in own]
    return replace(act, numbers=tuple(numbers))
