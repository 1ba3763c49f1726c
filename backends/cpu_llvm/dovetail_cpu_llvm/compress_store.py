"""Folds that store the elements for which a condition holds one after the other, as masks do.

Such a fold carries the position of the next element. A vector of elements is compressed in a
register, its prefix is stored, and the position grows by the number of elements in it.
"""

from __future__ import annotations

from dovetail.extend import Loop, Store, Value, int64

from .ir_writer import Lane, memory_type
from .vector_loops import VectorLoops

COMPRESS_BYTES = 64  # of a register; only AVX-512 compresses in one instruction


def find_compress_store(loop: Loop) -> Store | None:
    """Return the store of a fold that does nothing but compress, else None."""
    effects = [s for s in loop.body if isinstance(s, Store)]
    if loop.kind != "fold" or len(effects) != 1 or len(loop.carry) != 1:
        return None
    store, position, next_position = effects[0], loop.carry[0], loop.update[0]
    if position.dtype is not int64 or next_position.op != "add" or store.index is not position:
        return None
    if store.when is None or store.buffer.dtype.itemsize not in (4, 8):
        return None
    steps = [a for a in next_position.args if a is not position]
    if len(steps) != 1 or steps[0].op != "cast" or steps[0].args[0] is not store.when:
        return None
    values = [s for s in loop.body if isinstance(s, Value)]
    if len(values) + 1 != len(loop.body):  # loops and atomics
        return None
    if store.value is position or any(position in v.args for v in values if v is not next_position):
        return None
    reads = any(v.op == "load" and v.buffer is store.buffer for v in values)
    return None if reads else store


def render_compress_store(vectors: VectorLoops, loop: Loop, store: Store) -> None:
    """Render a fold that `find_compress_store` accepts, in vectors; bind its result."""
    exprs, w, memory = vectors.exprs, vectors.exprs.writer, vectors.exprs.memory
    dtype, slot, next_position = store.buffer.dtype, w.slot("i64"), loop.update[0]
    w.store(slot, exprs.uniform(loop.init[0]))
    start, stop = exprs.uniform(loop.start), exprs.uniform(loop.stop)
    for k in vectors.each_vector(w.counter(start), stop, COMPRESS_BYTES // dtype.itemsize):
        exprs.env[id(loop.var)] = k
        for s in loop.body:
            if isinstance(s, Value) and s is not next_position:
                exprs.render(s)
        width, t = w.width, w.vector_type(memory_type(dtype))
        mask = w.mask_argument(exprs.active(store.when))
        text = memory.to_memory(dtype, exprs.vector(store.value), width)
        compress = f"@llvm.experimental.vector.compress.{w.suffix(dtype)}"
        compressed = w.let(f"call {t} {compress}({t} {text}, {mask}, {t} poison)")
        bits = w.let(f"bitcast {mask} to i{width}")
        ones = w.let(f"call i{width} @llvm.ctpop.i{width}(i{width} {bits})")
        count = w.let(f"zext i{width} {ones} to i64")
        prefix = w.let(f"sub i64 {w.let(f'shl i64 1, {count}')}, 1")
        prefix = w.let(f"trunc i64 {prefix} to i{width}")
        prefix = w.let(f"bitcast i{width} {prefix} to <{width} x i1>")
        position = w.load(slot)
        pointer = memory.element(store.buffer, position)
        memory.store_masked(dtype, compressed, pointer, f"<{width} x i1> {prefix}")
        w.store(slot, w.let(f"add i64 {position}, {count}"))
    exprs.env[id(loop.results[0])] = Lane(w.load(slot))
