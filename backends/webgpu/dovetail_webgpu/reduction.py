"""A reduce loop as WGSL, in the canonical order."""

from __future__ import annotations

from dovetail.extend import CHUNK, LANES, ReductionWriter

LEVELS = 3  # rows of lanes: CHUNK ** 3 values are more than any binding holds


class RowsWriter(ReductionWriter):
    """A writer of one reduce loop: rows of lanes, where a full chunk is a value of the next row.

    The text has the combine at three places: compilers of shaders take long for more copies.
    """

    def tree_lines(self) -> list[str]:
        """Return no function: the tree stands in the loop."""
        return []

    def write(self, k: str, start: str, stop: str) -> None:
        """Write the loop and declare its results."""
        text, style, put = self.text, self.text.style, self.text.write_lines
        results = [text.new_name(r, "r") for r in self.loop.results]
        several, self.result = len(results) > 1, "_".join(results)
        values = [text.name(v) for v in self.identity]
        identity = style.pair_value(self.type, values) if several else values[0]
        put(style.variable(self.type, self.result, identity))
        with text.braces():
            put(style.constant(self.type, "identity", identity))
            put(style.constant(self.int, "count", f"{stop} - {start}"))
            put(f"var lanes: array<{self.type}, {LEVELS * LANES}>;")
            with text.loop_head(k, start, stop):
                put(style.variable(self.int, "at", f"{k} - {start}"))
                self.begin_row("0i")
                self.write_update(f"lanes[({k} - {start}) % {LANES}i]")
                put(f"if ((at + 1i) % {CHUNK}i != 0i && at + 1i < count) {{ continue; }}")
                self.write_levels()
        for i, r in enumerate(results if several else ()):
            text.declare(self.loop.results[i].dtype, r, f"{self.result}.x{i}")

    def begin_row(self, row: str) -> None:
        """Write the identity into the lanes of a row before the first value of a chunk."""
        with self.text.braces(f"if (at % {CHUNK}i == 0i)"):
            with self.text.braces(self.text.style.loop("j", row, f"{row} + {LANES}i")):
                self.text.write_lines("lanes[j] = identity;")

    def write_levels(self) -> None:
        """Combine a full row into a value of the next one, and go on while that row is full."""
        put, result = self.text.write_lines, self.result
        put("var row = 0i;", "var values = count;")
        with self.text.braces("loop"):
            with self.text.braces(f"for (var width = {LANES // 2}i; width > 0i; width /= 2i)"):
                with self.text.braces(self.text.style.loop("j", "row", "row + width")):
                    put(f"lanes[j] = {self.call(self.combine, 'lanes[j]', 'lanes[j + width]')};")
            put(f"{result} = lanes[row];")
            put(f"if (values <= {CHUNK}i) {{ break; }}")
            put(f"at /= {CHUNK}i;", f"values = (values + {CHUNK - 1}i) / {CHUNK}i;")
            put(f"row += {LANES}i;")
            self.begin_row("row")
            lane = f"lanes[row + at % {LANES}i]"
            put(f"{lane} = {self.call(self.combine, lane, result)};")
            put(f"if ((at + 1i) % {CHUNK}i != 0i && at + 1i < values) {{ break; }}")
