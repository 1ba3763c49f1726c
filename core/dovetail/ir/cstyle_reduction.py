"""A reduce loop as C-family text, in the canonical order of `language.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .builder import combine
from .language import CHUNK, LANES, Loop

if TYPE_CHECKING:
    from .cstyle import KernelWriter

LEVELS_MAX = 4  # levels of chunks of chunks: CHUNK ** 4 elements are more than any memory holds


class ReductionWriter:
    """A writer of one reduce loop in the canonical order.

    Level 0 combines elements into LANES lanes, level 1 the results of chunks, and so on. The lanes
    of a level are an array, or, if a group of work items shares the loop, one value in each of
    them.
    """

    def __init__(self, text: KernelWriter, loop: Loop, by_group: bool) -> None:
        self.text, self.loop, self.by_group = text, loop, by_group
        index = text.kernel.index
        self.int, self.zero = text.style.type(index), text.style.const(0, index)
        self.rule = combine(str(loop.combine), tuple(u.dtype for u in loop.update))
        self.type, self.combine = text.combiner(self.rule)
        self.identity = loop.init[: len(self.rule.identity)] or self.rule.identity
        self.shared_operands = [text.name(v) for v in loop.init[len(self.rule.identity) :]]
        self.rows = text.style.rows() if text.outermost else []
        self.unrolled = [text.style.unrolled] if self.rows and text.style.unrolled else []
        if by_group:
            self.shared = f"shared_{self.combine}"
            text.shared[self.shared] = text.style.shared(self.type, self.shared)
        else:
            self.tree = self.combine.replace("combine_", "tree_", 1)
            text.helpers.setdefault(self.tree, self.tree_lines())

    def tree_lines(self) -> list[str]:
        """Return the function that combines LANES items in the fixed tree."""
        parameters = [f"z{i}" for i in range(len(self.rule.shared))]
        operands = ", ".join([*parameters, "lanes[j]", "lanes[j + width]"])
        pair = f"lanes[j] = {self.combine}({operands});"
        outer, inner = (["  " * n + line for line in self.unrolled] for n in (1, 2))
        types = [f"const {self.text.style.type(v.dtype)} " for v in self.rule.shared]
        declared = [t + name for t, name in zip(types, parameters, strict=True)]
        head = f"{self.tree}({', '.join([*declared, f'{self.type} *lanes'])})"
        return [
            f"{self.text.style.helper}{self.type} {head} {{",
            *outer,
            f"  for (int width = {LANES // 2}; width > 0; width /= 2)",
            *inner,
            f"    for (int j = 0; j < width; ++j) {pair}",
            "  return lanes[0];",
            "}",
        ]

    def write(self, k: str, start: str, stop: str) -> None:
        """Write the loop and declare its results."""
        put, several = self.text.write_lines, len(self.loop.results) > 1
        results = [self.text.new_name(r, "r") for r in self.loop.results]
        self.result = "_".join(results)
        put(f"{self.type} {self.result};")
        with self.text.braces():
            values = ", ".join(map(self.text.name, self.identity))
            put(f"const {self.type} identity = {f'{{{values}}}' if several else values};")
            span = stop if start == self.zero else f"{stop} - {start}"
            put(f"const {self.int} count = {stop} > {start} ? {span} : 0;")
            put(f"const {self.int} chunks = count > {CHUNK} ? (count + {CHUNK - 1}) / {CHUNK} : 1;")
            array = f"lanes[{LANES}], ups" if self.unrolled else "lanes"
            array = f"up[{LEVELS_MAX}]" if self.by_group else f"{array}[{LEVELS_MAX * LANES}]"
            put(f"{self.type} {array};")
            with self.text.braces(f"for ({self.int} chunk = 0; chunk < chunks; ++chunk)"):
                more = f"(chunk + 1) * {CHUNK} < count"
                put(f"const {self.int} end = {more} ? (chunk + 1) * {CHUNK} : count;")
                (self.write_group_chunk if self.by_group else self.write_chunk)(k, start)
                self.write_levels()
        for i, r in enumerate(results if several else ()):
            self.text.declare(self.loop.results[i].dtype, r, f"{self.result}.x{i}")

    def index_offset(self, start: str) -> str:
        """Return `start + `, or "" if the loop starts at 0."""
        return "" if start == self.zero else f"{start} + "

    def write_update(self, lane: str) -> None:
        """Write the body, and combine its updates into a lane."""
        self.text.write_block(self.loop.body)
        values = [self.text.name(u) for u in self.loop.update]
        x = values[0]
        if len(values) > 1:
            x = "item"
            self.text.write_lines(f"const {self.type} item = {{{', '.join(values)}}};")
        self.text.write_lines(f"{lane} = {self.call(self.combine, lane, x)};")

    def call(self, function: str, *operands: str) -> str:
        """Return a call of the combine or the tree, with the operands that all calls share."""
        return f"{function}({', '.join([*self.shared_operands, *operands])})"

    def group_tree(self) -> list[str]:
        """Return the lines that combine the results of a group's work items."""
        lines = self.text.style.tree(self.type, self.result, self.combine, self.shared)
        shared = "".join(f"{operand}, " for operand in self.shared_operands)
        return [line.replace(f"{self.combine}(", f"{self.combine}({shared}") for line in lines]

    def write_chunk(self, k: str, start: str) -> None:
        """Write the reduction of one chunk by a single work item, with LANES partial results."""
        put, braces = self.text.write_lines, self.text.braces
        put(*self.unrolled, f"for (int j = 0; j < {LANES}; ++j) lanes[j] = identity;")
        with braces(f"for ({self.int} row = chunk * {CHUNK}; row < end; row += {LANES})"):
            put(*self.rows)
            if self.unrolled:
                self.write_row(k, start)
            else:
                put(f"const int width = end - row < {LANES} ? end - row : {LANES};")
                self.write_lanes("for (int j = 0; j < width; ++j)", k, start)
        put(f"{self.result} = {self.call(self.tree, 'lanes')};")

    def write_lanes(self, head: str, k: str, start: str) -> None:
        """Write a loop over lanes with this head, which combines a row of items into `lanes`."""
        with self.text.braces(head):
            self.text.write_lines(f"const {self.int} {k} = {self.index_offset(start)}row + j;")
            self.write_update("lanes[j]")

    def write_row(self, k: str, start: str) -> None:
        """Write LANES iterations, or those that are left: either way in a loop of known length."""
        counts = dict(self.text.name_counts)
        head = f"for (int j = 0; j < {LANES}; ++j)"
        for which, more in ((f"if (row + {LANES} <= end)", ""), ("else", " if (row + j < end)")):
            self.text.name_counts = dict(counts)
            with self.text.braces(which):
                self.text.write_lines(*self.unrolled)
                self.write_lanes(head + more, k, start)

    def write_group_chunk(self, k: str, start: str) -> None:
        """Write the reduction of one chunk by a group, one lane for each work item."""
        put, lane = self.text.write_lines, self.text.style.lane
        put(f"{self.result} = identity;", f"{self.int} row = chunk * {CHUNK};")
        counts = dict(self.text.name_counts)
        # Two loops, for whole rows and the last one: a condition in one loop halves CPUs' speed.
        put(*self.text.style.unroll(self.loop.body))
        for head in (f"for (; row + {LANES} <= end; row += {LANES})", f"if (row + {lane} < end)"):
            self.text.name_counts = dict(counts)
            with self.text.braces(head):
                put(f"const {self.int} {k} = {self.index_offset(start)}row + {lane};")
                self.write_update(self.result)
        put(*self.group_tree())

    def write_levels(self) -> None:
        """Combine a chunk's result into the level above, and go on while chunks are complete."""
        put, style, int_ = self.text.write_lines, self.text.style, self.int
        step = f"at /= {CHUNK}, of = (of + {CHUNK - 1}) / {CHUNK}, ++level"
        first = f"{int_} at = chunk, of = chunks, level = 1"
        with self.text.braces(f"for ({first}; of > 1; {step})"):
            up = "up[level]" if self.by_group else f"up[at % {LANES}]"
            into = f"{up} = {self.call(self.combine, up, self.result)};"
            last = f"if (at % {CHUNK} != {CHUNK - 1} && at + 1 != of) break;"
            if self.by_group:
                put(f"if (at % {CHUNK} == 0) up[level] = identity;")
                put(f"if (at % {LANES} == {style.lane}) {into}", last)
                put(f"{self.result} = up[level];")
                put(*self.group_tree())
            else:
                put(f"{self.type} *up = {'ups' if self.unrolled else 'lanes'} + level * {LANES};")
                put(f"if (at % {CHUNK} == 0) for (int j = 0; j < {LANES}; ++j) up[j] = identity;")
                put(into, last)
                put(f"{self.result} = {self.call(self.tree, 'up')};")
