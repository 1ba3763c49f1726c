"""Programs over integers: guards about the sizes of a graph, and the numbers of its plan.

The compiled version computes in 64 bits; a value beyond them counts as a guard that fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

VALUE_MAX = (1 << 63) - 1  # of a register


class Opcode(IntEnum):
    """The opcodes: operand `a` is a register, and so is `b` unless it is a constant."""

    CONSTANT = 0  # of a
    ADD = 1
    ADD_CONSTANT = 2
    MULTIPLY = 3
    MULTIPLY_CONSTANT = 4
    DIVIDE_DOWN = 5
    DIVIDE_UP = 6
    BIT_LENGTH = 7
    REQUIRE_ZERO = 8
    REQUIRE_NONZERO = 9
    REQUIRE_NONNEGATIVE = 10


class SizeProgram:
    """Instructions over registers: the inputs have the first ones, then one per instruction.

    instructions: (opcode, a, b) of each. outputs: the registers with the results.
    """

    __slots__ = ("_inputs", "_instructions", "_outputs")

    def __init__(
        self, inputs: int, instructions: Sequence[tuple[int, int, int]], outputs: Sequence[int]
    ) -> None:
        self._inputs, self._instructions = inputs, list(instructions)
        self._outputs = list(outputs)

    def run(self, inputs: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the outputs, or None if a guard fails."""
        registers = [*inputs]
        for opcode, a, b in self._instructions:
            x = a if opcode == Opcode.CONSTANT else registers[a]
            if opcode == Opcode.ADD:
                x += registers[b]
            elif opcode == Opcode.ADD_CONSTANT:
                x += b
            elif opcode == Opcode.MULTIPLY:
                x *= registers[b]
            elif opcode == Opcode.MULTIPLY_CONSTANT:
                x *= b
            elif opcode == Opcode.DIVIDE_DOWN or opcode == Opcode.DIVIDE_UP:
                if registers[b] <= 0:
                    return None
                x = x // registers[b] if opcode == Opcode.DIVIDE_DOWN else -(-x // registers[b])
            elif opcode == Opcode.BIT_LENGTH:
                x = x.bit_length()
            elif opcode >= Opcode.REQUIRE_ZERO and not _is_met(opcode, x):
                return None
            if not -VALUE_MAX <= x <= VALUE_MAX:
                return None
            registers.append(x)
        return tuple([registers[k] for k in self._outputs])


def _is_met(guard: int, x: int) -> bool:
    """Return True if a number meets a guard."""
    if guard == Opcode.REQUIRE_ZERO:
        return x == 0
    return x != 0 if guard == Opcode.REQUIRE_NONZERO else x >= 0
