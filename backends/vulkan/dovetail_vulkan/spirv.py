"""An assembler of SPIR-V 1.5 modules with one function, the entry point of a compute shader.

Types and constants are interned: an equal one has one id. Functions are structured as Vulkan asks:
`when` and `loop` are the only control flow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum

MAGIC, VERSION = 0x07230203, 0x00010500
ENTRY = "main"


# The numbers in use, by their names in the specification.

Op = IntEnum("Op", {
    "EXT_INST_IMPORT": 11, "EXT_INST": 12, "MEMORY_MODEL": 14, "ENTRY_POINT": 15,
    "EXECUTION_MODE": 16, "CAPABILITY": 17,
    "TYPE_VOID": 19, "TYPE_BOOL": 20, "TYPE_INT": 21, "TYPE_FLOAT": 22, "TYPE_VECTOR": 23,
    "TYPE_ARRAY": 28, "TYPE_STRUCT": 30, "TYPE_POINTER": 32, "TYPE_FUNCTION": 33,
    "CONSTANT_TRUE": 41, "CONSTANT_FALSE": 42, "CONSTANT": 43, "SPEC_CONSTANT": 50,
    "SPEC_CONSTANT_COMPOSITE": 51,
    "FUNCTION": 54, "FUNCTION_END": 56, "VARIABLE": 59, "LOAD": 61, "STORE": 62,
    "ACCESS_CHAIN": 65, "PTR_ACCESS_CHAIN": 67,
    "DECORATE": 71, "MEMBER_DECORATE": 72, "COMPOSITE_CONSTRUCT": 80,
    "COMPOSITE_EXTRACT": 81, "COMPOSITE_INSERT": 82,
    "CONVERT_F_TO_U": 109, "CONVERT_F_TO_S": 110, "CONVERT_S_TO_F": 111, "CONVERT_U_TO_F": 112,
    "U_CONVERT": 113, "S_CONVERT": 114, "F_CONVERT": 115, "BITCAST": 124,
    "S_NEGATE": 126, "F_NEGATE": 127, "I_ADD": 128, "F_ADD": 129, "I_SUB": 130, "F_SUB": 131,
    "I_MUL": 132, "F_MUL": 133, "U_DIV": 134, "S_DIV": 135, "F_DIV": 136, "U_MOD": 137,
    "S_REM": 138,
    "LOGICAL_EQUAL": 164, "LOGICAL_NOT_EQUAL": 165, "LOGICAL_OR": 166, "LOGICAL_AND": 167,
    "LOGICAL_NOT": 168,
    "SELECT": 169, "I_EQUAL": 170, "I_NOT_EQUAL": 171, "U_LESS_THAN": 176, "S_LESS_THAN": 177,
    "U_LESS_THAN_EQUAL": 178, "S_LESS_THAN_EQUAL": 179, "F_ORD_EQUAL": 180,
    "F_UNORD_NOT_EQUAL": 183, "F_ORD_LESS_THAN": 184, "F_ORD_LESS_THAN_EQUAL": 188,
    "SHIFT_RIGHT_LOGICAL": 194, "SHIFT_RIGHT_ARITHMETIC": 195, "SHIFT_LEFT_LOGICAL": 196,
    "BITWISE_OR": 197, "BITWISE_XOR": 198, "BITWISE_AND": 199, "NOT": 200,
    "CONTROL_BARRIER": 224, "ATOMIC_LOAD": 227, "ATOMIC_COMPARE_EXCHANGE": 230,
    "ATOMIC_I_ADD": 234, "ATOMIC_S_MIN": 236, "ATOMIC_U_MIN": 237, "ATOMIC_S_MAX": 238,
    "ATOMIC_U_MAX": 239, "ATOMIC_AND": 240, "ATOMIC_OR": 241,
    "PHI": 245, "LOOP_MERGE": 246, "SELECTION_MERGE": 247, "LABEL": 248, "BRANCH": 249,
    "BRANCH_CONDITIONAL": 250, "RETURN": 253,
})  # fmt: skip
"""Opcodes of instructions."""


class Ext(IntEnum):
    """Instructions of the extended set GLSL.std.450."""

    ROUND_EVEN, TRUNC, FLOOR, SQRT, FMA = 2, 3, 8, 31, 50


class Capability(IntEnum):
    """Capabilities that a module declares."""

    SHADER, FLOAT64, INT64, INT64_ATOMICS, INT16, INT8 = 1, 10, 11, 12, 22, 39
    STORAGE_BUFFER_16_BIT, STORAGE_BUFFER_8_BIT = 4433, 4448
    DENORM_PRESERVE, SIGNED_ZERO_INF_NAN_PRESERVE, ROUNDING_MODE_RTE = 4464, 4466, 4467
    PHYSICAL_STORAGE_BUFFER_ADDRESSES = 5347


class Mode(IntEnum):
    """Execution modes: float controls of one width. Their capabilities have the same names."""

    DENORM_PRESERVE, SIGNED_ZERO_INF_NAN_PRESERVE, ROUNDING_MODE_RTE = 4459, 4461, 4462


class Storage(IntEnum):
    """Storage classes of variables and pointers; BUFFER is PhysicalStorageBuffer."""

    INPUT, WORKGROUP, FUNCTION, PUSH_CONSTANT, BUFFER = 1, 4, 7, 9, 5349


class Decoration(IntEnum):
    """Decorations of ids and of the members of structs."""

    SPEC_ID, BLOCK, ARRAY_STRIDE, BUILT_IN, OFFSET, NO_CONTRACTION = 1, 2, 6, 11, 35, 42


class BuiltIn(IntEnum):
    """Inputs of a work item."""

    NUM_WORKGROUPS, WORKGROUP_SIZE, WORKGROUP_ID = 24, 25, 26
    GLOBAL_INVOCATION_ID, LOCAL_INVOCATION_INDEX = 28, 29


# Of a loop. Mesa unrolls the loops over lanes, each with the combine in it: the module of a softmax
# took 1.9 s to compile, and takes 0.17 s without (Zen 4, Mesa 22.3, 2026-12-02).
DONT_UNROLL = 2
ALIGNED = 2  # a memory operand, followed by the alignment in bytes
DEVICE_SCOPE, WORKGROUP_SCOPE = 1, 2
RELAXED, VISIBLE = 0, 0x148  # memory of groups and buffers, acquired and released


def encode(op: Op, *operands: int | str) -> list[int]:
    """Return the words of an instruction."""
    words: list[int] = []
    for x in operands:
        if isinstance(x, str):
            text = x.encode() + b"\0"
            words += struct.unpack(
                f"<{-(-len(text) // 4)}I", text.ljust(-(-len(text) // 4) * 4, b"\0")
            )
        else:
            words.append(x)
    return [(len(words) + 1) << 16 | op, *words]


class Assembler:
    """A module under construction: sections of words, and the block that grows.

    `head` is the first block: variables and values that every other block may use.
    """

    def __init__(self) -> None:
        self.ids = 0
        self.interned: dict[tuple[int | str, ...], int] = {}
        self.capabilities: dict[Capability, None] = {}
        self.modes: dict[tuple[Mode, int], None] = {}
        self.interface: list[int] = []
        self.decorations: list[int] = []
        self.globals: list[int] = []
        self.variables: list[int] = []
        self.head: list[int] = []
        self.body: list[int] = []
        self.require(Capability.SHADER)
        self.require(Capability.PHYSICAL_STORAGE_BUFFER_ADDRESSES)
        self.extended, self.main = self.new_id(), self.new_id()
        self.block = self.first = self.new_id()

    def new_id(self) -> int:
        """Return an unused id."""
        self.ids += 1
        return self.ids

    def require(self, capability: Capability) -> None:
        """Declare a capability."""
        self.capabilities[capability] = None

    def decorate(self, target: int, decoration: Decoration, *operands: int) -> None:
        """Decorate an id."""
        self.decorations += encode(Op.DECORATE, target, decoration, *operands)

    # --- types, constants and variables

    def type(self, op: Op, *operands: int) -> int:
        """Return the id of a type."""
        key = (op, *operands)
        if key not in self.interned:
            self.interned[key] = self.new_id()
            self.globals += encode(op, self.interned[key], *operands)
        return self.interned[key]

    def constant(self, op: Op, type: int, *words: int) -> int:
        """Return the id of a constant."""
        key = (op, type, *words)
        if key not in self.interned:
            self.interned[key] = self.new_id()
            self.globals += encode(op, type, self.interned[key], *words)
        return self.interned[key]

    def integer(self, bits: int, number: int) -> int:
        """Return the id of an integer constant; all integers are of unsigned types."""
        number &= (1 << bits) - 1
        words = (number & 0xFFFFFFFF, number >> 32) if bits == 64 else (number,)
        return self.constant(Op.CONSTANT, self.int_type(bits), *words)

    def spec_constant(self, number: int, type: int, default: int) -> int:
        """Return the id of a new specialisation constant with this number."""
        constant = self.new_id()
        self.decorate(constant, Decoration.SPEC_ID, number)
        self.globals += encode(Op.SPEC_CONSTANT, type, constant, default)
        return constant

    def int_type(self, bits: int) -> int:
        """Return the id of the unsigned integer type of so many bits."""
        return self.type(Op.TYPE_INT, bits, 0)

    def pointer_type(self, storage: Storage, type: int, stride: int = 0) -> int:
        """Return the id of a pointer type, of elements `stride` bytes apart unless that is 0."""
        new = (Op.TYPE_POINTER, storage, type) not in self.interned
        pointer = self.type(Op.TYPE_POINTER, storage, type)
        if new and stride:
            self.decorate(pointer, Decoration.ARRAY_STRIDE, stride)
        return pointer

    def struct(self, members: Sequence[int], offsets: Sequence[int]) -> int:
        """Return the id of a struct type that is a block of memory."""
        block = self.type(Op.TYPE_STRUCT, *members)
        self.decorate(block, Decoration.BLOCK)
        for i, offset in enumerate(offsets):
            self.decorations += encode(Op.MEMBER_DECORATE, block, i, Decoration.OFFSET, offset)
        return block

    def variable(self, type: int) -> int:
        """Return the id of a new variable of the function."""
        pointer, variable = self.pointer_type(Storage.FUNCTION, type), self.new_id()
        self.variables += encode(Op.VARIABLE, pointer, variable, Storage.FUNCTION)
        return variable

    def global_variable(self, storage: Storage, type: int) -> int:
        """Return the id of a new variable outside of the function."""
        pointer, variable = self.pointer_type(storage, type), self.new_id()
        self.globals += encode(Op.VARIABLE, pointer, variable, storage)
        self.interface.append(variable)
        return variable

    def builtin(self, builtin: BuiltIn, type: int) -> int:
        """Return the value of an input, loaded in the first block."""
        if ("builtin", builtin) not in self.interned:
            variable = self.global_variable(Storage.INPUT, type)
            self.decorate(variable, Decoration.BUILT_IN, builtin)
            self.interned["builtin", builtin] = self.at_head(Op.LOAD, type, variable)
        return self.interned["builtin", builtin]

    # --- instructions

    def emit(self, op: Op, *operands: int) -> None:
        """Append an instruction without a result."""
        self.body += encode(op, *operands)

    def value(self, op: Op, type: int, *operands: int) -> int:
        """Append an instruction and return the id of its result."""
        result = self.new_id()
        self.body += encode(op, type, result, *operands)
        return result

    def at_head(self, op: Op, type: int, *operands: int) -> int:
        """Append an instruction to the first block and return the id of its result."""
        result = self.new_id()
        self.head += encode(op, type, result, *operands)
        return result

    def barrier(self) -> None:
        """Wait for all work items of the group, whose earlier effects are visible then."""
        scope = self.integer(32, WORKGROUP_SCOPE)
        self.emit(Op.CONTROL_BARRIER, scope, scope, self.integer(32, VISIBLE))

    # --- control flow

    def start(self, label: int) -> None:
        """Begin a block."""
        self.emit(Op.LABEL, label)
        self.block = label

    def go(self, label: int) -> None:
        """End the block with a jump, and begin the block of this label."""
        self.emit(Op.BRANCH, label)
        self.start(label)

    @contextmanager
    def when(self, condition: int) -> Iterator[None]:
        """Run the instructions of the context only where a condition is true."""
        then, merge = self.new_id(), self.new_id()
        self.emit(Op.SELECTION_MERGE, merge, 0)
        self.emit(Op.BRANCH_CONDITIONAL, condition, then, merge)
        self.start(then)
        yield
        self.go(merge)

    @contextmanager
    def repeat(self) -> Iterator[int]:
        """Repeat the instructions of the context; `leave` ends the loop by its label."""
        header, body, again, merge = (self.new_id() for _ in range(4))
        self.go(header)
        self.emit(Op.LOOP_MERGE, merge, again, DONT_UNROLL)
        self.go(body)
        yield merge
        self.go(again)
        self.emit(Op.BRANCH, header)
        self.start(merge)

    def leave(self, loop: int, condition: int) -> None:
        """End the innermost loop, which has this label, where a condition is true."""
        further = self.new_id()
        self.emit(Op.BRANCH_CONDITIONAL, condition, loop, further)
        self.start(further)

    @contextmanager
    def count(self, bits: int, start: int, stop: int, step: int) -> Iterator[tuple[int, int]]:
        """Repeat the instructions of the context for integers below `stop`.

        Yield the integer, and the label of the loop for `leave`.
        """
        type = self.int_type(bits)
        variable = self.variable(type)
        self.emit(Op.STORE, variable, start)
        with self.repeat() as loop:
            k = self.value(Op.LOAD, type, variable)
            end = self.value(Op.S_LESS_THAN_EQUAL, self.type(Op.TYPE_BOOL), stop, k)
            self.leave(loop, end)
            yield k, loop
            self.emit(Op.STORE, variable, self.value(Op.I_ADD, type, k, step))

    # --- the module

    def assemble(self) -> bytes:
        """Return the module; the function ends here."""
        void = self.type(Op.TYPE_VOID)
        signature = self.type(Op.TYPE_FUNCTION, void)
        modes = [encode(Op.EXECUTION_MODE, self.main, *mode) for mode in self.modes]
        words = [
            *(MAGIC, VERSION, 0, self.ids + 1, 0),
            *(w for c in self.capabilities for w in encode(Op.CAPABILITY, c)),
            *encode(Op.EXT_INST_IMPORT, self.extended, "GLSL.std.450"),
            *encode(Op.MEMORY_MODEL, Storage.BUFFER - 1, 1),  # PhysicalStorageBuffer64, GLSL450
            *encode(Op.ENTRY_POINT, 5, self.main, ENTRY, *self.interface),  # GLCompute
            *(w for mode in modes for w in mode),
            *self.decorations,
            *self.globals,
            *encode(Op.FUNCTION, void, self.main, 0, signature),
            *encode(Op.LABEL, self.first),
            *self.variables,
            *self.head,
            *self.body,
            *encode(Op.RETURN),
            *encode(Op.FUNCTION_END),
        ]
        return struct.pack(f"<{len(words)}I", *words)
