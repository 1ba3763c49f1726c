"""The compiler: kernel -> C with work items -> binary of the driver -> module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dovetail.extend import Buffer, CompileError, CStyle, Kernel, Program

from . import driver


class ItemStyle(CStyle):
    """C in which a kernel is the code of one work item, numbered `work_item`.

    A kernel receives no address: a buffer is passed as its memory and a byte offset.
    """

    reserved: ClassVar[frozenset[str]] = CStyle.reserved | {
        "arguments", "items", "kernel", "work_item",
    }  # fmt: skip

    def function(self, name: str, parameters: Sequence[str], lanes: bool) -> str:
        return f"kernel {super().function(name, parameters, lanes)}"

    def parameter(self, buffer: Buffer, name: str) -> list[str]:
        return [f"void *{name}_memory", f"int64_t {name}_offset"]

    def prologue(self, buffer: Buffer, name: str) -> list[str]:
        pointer = self.pointer(buffer)
        return [f"{pointer}{name} = ({pointer})((char *){name}_memory + {name}_offset);"]

    def points(self, extents: Sequence[str], lanes: bool) -> list[str]:
        """Split `work_item` into axes, the last axis fastest. Items behind the end return."""
        lines, inner = [], ""
        for d, n in reversed([*enumerate(extents)]):
            mine = f"work_item{inner} % {n}" if d else f"work_item{inner}"
            lines.append(f"const int64_t i{d} = {mine};")
            inner += f" / {n}"
        beyond = f"i0 >= {extents[0]}" if extents else "work_item >= 1"
        return [*lines, f"if ({beyond}) return;"]


STYLE = ItemStyle()


class ItemProgram(Program):
    """A loaded kernel. Its constructor raises OSError or AttributeError for other data."""

    def __init__(self, kernel: Kernel, source: str, binary: bytes) -> None:
        self.kernel, self.source, self.binary = kernel, source, binary
        self.module = driver.Module(binary, STYLE.entry(kernel))


def compile_kernel(command: Sequence[str], kernel: Kernel) -> ItemProgram:
    """Return the program of `kernel`, or raise CompileError with kernel and compiler log."""
    source = STYLE.render(kernel)
    try:
        return ItemProgram(kernel, source, driver.build(command, source))
    except driver.DriverError as error:
        raise CompileError(f"{error}\n{kernel}\n\n{source}") from error
