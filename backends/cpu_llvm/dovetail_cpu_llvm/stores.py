"""Store and atomic statements."""

from __future__ import annotations

from dovetail.extend import Atomic, Kernel, Store

from .expressions import Expressions
from .interleaved_access import StoreGroup, store_groups
from .ir_writer import memory_type


class Stores:
    """Renders stores alone, in pairs or in groups."""

    def __init__(self, kernel: Kernel, exprs: Expressions) -> None:
        self.exprs = exprs
        self._groups = store_groups(kernel.body, exprs.schedule.native)

    def store(self, s: Store) -> None:
        """Render a store: alone, with the next one as a pair, or at the end of its group."""
        exprs, w, memory = self.exprs, self.exprs.writer, self.exprs.memory
        dtype, group = s.buffer.dtype, self._groups.get(id(s))
        if exprs.pop_rendered(s):
            return
        if group is not None and self._fills_memory(group, s):
            if s is group.stores[-1]:
                self._store_group(group)
            return
        second = exprs.second_access(s)
        if isinstance(second, Store):
            pointer = memory.element(s.buffer, exprs.lane(s.index).text)
            text = memory.interleave(dtype, exprs.vector(s.value), exprs.vector(second.value))
            with memory.double_width(exprs.active(s.when)) as both:
                memory.store_row(dtype, text, pointer, both)
            return
        text = memory.to_memory(dtype, exprs.vector(s.value), w.width)
        if w.width == 1:
            pointer = exprs.element(s)
            w.emit(f"store {memory_type(dtype)} {text}, ptr {pointer}, align {dtype.itemsize}")
        else:
            active = exprs.active(s.when)
            memory.store_vector(s.buffer, exprs.lane(s.index), text, active)

    def _fills_memory(self, group: StoreGroup, s: Store) -> bool:
        """Return True if the lanes of all stores, at this width and stride, leave no gaps."""
        w = self.exprs.writer
        is_wide = w.width >= len(group.stores) and not w.mask
        return is_wide and self.exprs.lane(s.index).has_stride(group.stride)

    def _store_group(self, group: StoreGroup) -> None:
        """Render the transposed store of a whole group."""
        exprs, memory, first = self.exprs, self.exprs.memory, group.stores[0]
        dtype, width = first.buffer.dtype, exprs.writer.width
        start = exprs.lane(first.index).text
        rows = [memory.to_memory(dtype, exprs.vector(s.value), width) for s in group.stores]
        memory.store_transposed(first.buffer, start, rows, group.stride)

    def store_atomic(self, s: Atomic) -> None:
        """Render an atomic update at width 1."""
        exprs, dtype = self.exprs, s.buffer.dtype
        assert exprs.writer.width == 1
        pointer = exprs.element(s)
        op = "u" + s.op if dtype.kind == "u" and s.op in ("min", "max") else s.op
        value = f"{memory_type(dtype)} {exprs.uniform(s.value)}"
        exprs.writer.emit(f"atomicrmw {op} ptr {pointer}, {value} monotonic")
