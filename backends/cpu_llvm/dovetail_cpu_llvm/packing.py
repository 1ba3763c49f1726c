"""Folds that pack: what is stored where a condition holds, one after the other, as in masks.

Their carry is the place at which comes what is next, so a vector is packed in a register, stored as
far as it is full, and the place goes on by how many that are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dovetail.extend import Loop, Store, Value, int64

from .emit import Lane, memory_type

if TYPE_CHECKING:
    from .loops import Loops

REGISTER = 64  # bytes of those that processors can pack


def packed(loop: Loop) -> Store | None:
    """The one store of a fold that packs; None of any other loop."""
    effects = [s for s in loop.body if isinstance(s, Store)]
    if loop.kind != "fold" or len(effects) != 1 or len(loop.carry) != 1:
        return None
    store, place, after = effects[0], loop.carry[0], loop.update[0]
    if place.dtype is not int64 or after.op != "add" or store.index is not place:
        return None
    if store.when is None or store.buffer.dtype.itemsize not in (4, 8):
        return None
    steps = [a for a in after.args if a is not place]
    if len(steps) != 1 or steps[0].op != "cast" or steps[0].args[0] is not store.when:
        return None
    plain = [s for s in loop.body if isinstance(s, Value)]
    if len(plain) + 1 != len(loop.body):  # loops and atomics
        return None
    alone = all(place not in s.args for s in plain if s is not after) and store.value is not place
    reads = all(s.op != "load" or s.buffer is not store.buffer for s in plain)
    return store if alone and reads else None


def pack(r: Loops, loop: Loop, store: Store) -> None:
    """Renders such a fold, a vector after the other."""
    d, at, after = store.buffer.dtype, r.slot("i64"), loop.update[0]
    r.do(f"store i64 {r.uniform(loop.init[0])}, ptr {at}")
    start, stop = r.uniform(loop.start), r.uniform(loop.stop)
    for k in r.lanes(r.counter(start), stop, REGISTER // d.itemsize):
        r.env[id(loop.var)] = k
        for s in loop.body:
            if isinstance(s, Value) and s is not after:
                r.value(s)
        w, t = r.width, r.wide(memory_type(d))
        bits = r.bits(r.active(store.when))
        text = r.to_memory(d, r.vector(store.value), w)
        form = r.suffix(d)
        found = r.let(
            f"call {t} @llvm.experimental.vector.compress.{form}({t} {text}, {bits}, {t} poison)"
        )
        few = r.let(f"call i{w} @llvm.ctpop.i{w}(i{w} {r.let(f'bitcast {bits} to i{w}')})")
        count = r.let(f"zext i{w} {few} to i64")
        ones = r.let(f"sub i64 {r.let(f'shl i64 1, {count}')}, 1")
        first = r.let(f"bitcast i{w} {r.let(f'trunc i64 {ones} to i{w}')} to <{w} x i1>")
        place = r.let(f"load i64, ptr {at}")
        to = f"ptr align {d.itemsize} {r.address(store.buffer, f'i64 {place}')}, <{w} x i1> {first}"
        r.do(f"call void @llvm.masked.store.{form}.p0({t} {found}, {to})")
        r.do(f"store i64 {r.let(f'add i64 {place}, {count}')}, ptr {at}")
    r.env[id(loop.results[0])] = Lane(r.let(f"load i64, ptr {at}"))
