"""The renderer of kernels as SPIR-V: one work item per point of the grid.

A buffer is an address. The arguments are one struct: addresses, integers, scalars. It is the push
constant, or, where that is too small, lies in memory, and its address is the push constant.
"""

from __future__ import annotations

import struct
from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import NamedTuple, TypeAlias

from dovetail.extend import (
    LANES,
    Atomic,
    Block,
    Buffer,
    CompileError,
    DType,
    Kernel,
    Loop,
    Statement,
    Store,
    Value,
    bool_,
    expand_reductions,
    float32,
    float64,
    grid_index,
    settles,
    stride_along,
    struct_format,
    uint8,
    uint32,
    uint64,
    varies_along,
    walk,
)

from .schedule import VECTOR_POINTS, is_access
from .spirv import (
    ALIGNED,
    DEVICE_SCOPE,
    RELAXED,
    Assembler,
    BuiltIn,
    Capability,
    Decoration,
    Ext,
    Mode,
    Op,
    Storage,
)

WORD_BYTES, ADDRESS_BYTES = 4, 8
PUSH_BYTES_MAX = 128  # of push constants, which every device has


# Optional features of a device that shaders use: those of SPIR-V, and float controls, each a mode
# and the width of floats that it is for.
Features: TypeAlias = frozenset[Capability | tuple[Mode, int]]


class Argument(NamedTuple):
    """A member of the struct of arguments, with its offset in bytes. A narrow number is a word."""

    name: str
    dtype: DType
    offset: int

    @property
    def nbytes(self) -> int:
        """The size of the member."""
        return max(self.dtype.itemsize, WORD_BYTES)


class Module(NamedTuple):
    """A rendered kernel.

    - `words`: the SPIR-V module, whose entry point is `spirv.ENTRY`. The size of its workgroups is
      in the specialisation constants 0, 1 and 2.
    - `arguments`: the members of the struct of arguments: addresses, integers, scalars.
    - `format`: that of the struct, for `struct`.
    """

    words: bytes
    arguments: tuple[Argument, ...]
    format: str

    @property
    def arguments_in_buffer(self) -> bool:
        """True if the push constant is the address of the struct of arguments."""
        return struct.calcsize(self.format) > PUSH_BYTES_MAX

    @property
    def push_bytes(self) -> int:
        """The size of the push constant."""
        return ADDRESS_BYTES if self.arguments_in_buffer else struct.calcsize(self.format)


def render(kernel: Kernel, can: Features, lanes: bool = False, vectorized: bool = False) -> Module:
    """Return a kernel as SPIR-V. Raises: CompileError for what the device or SPIR-V lacks.

    - `kernel`: the kernel, legalised. Its reduce loops are expanded.
    - `can`: the features of the device.
    - `lanes`: True if a group of LANES work items does each point.
    - `vectorized`: True if a work item does VECTOR_POINTS neighbours along x, which access vectors.
      The kernel has no loops and no atomics then.
    """
    kernel = expand_reductions(kernel, by_group=lanes)
    layout = _lay_out_arguments(kernel)
    return layout._replace(words=Renderer(kernel, can, layout, lanes, vectorized).render())


def _lay_out_arguments(kernel: Kernel) -> Module:
    """Return a module without words; its struct of arguments is as C lays it out."""
    members = [(b.name, uint64) for b in kernel.buffers]
    members += [*((n, kernel.index) for n in kernel.ints), *kernel.scalars]
    arguments, format = list[Argument](), "@"
    for name, dtype in members:
        argument, format = Argument(name, dtype, 0), format + struct_format(dtype, WORD_BYTES)
        arguments.append(argument._replace(offset=struct.calcsize(format) - argument.nbytes))
    return Module(b"", tuple(arguments), f"{format}0q")  # whole words of 64 bits


# op -> its instruction for integers (signed, unsigned), floats, bools; None: there is none
_INSTRUCTIONS: Mapping[str, tuple[Op | None, Op | None, Op | Ext | None, Op | None]] = {
    "add": (Op.I_ADD, Op.I_ADD, Op.F_ADD, None),
    "sub": (Op.I_SUB, Op.I_SUB, Op.F_SUB, None),
    "mul": (Op.I_MUL, Op.I_MUL, Op.F_MUL, None),
    "div": (None, None, Op.F_DIV, None),
    "fma": (None, None, Ext.FMA, None),
    "neg": (Op.S_NEGATE, None, Op.F_NEGATE, None),
    "sqrt": (None, None, Ext.SQRT, None),
    "trunc": (None, None, Ext.TRUNC, None),
    "floor": (None, None, Ext.FLOOR, None),
    "rint": (None, None, Ext.ROUND_EVEN, None),
    "quo": (Op.S_DIV, Op.U_DIV, None, None),
    "rem": (Op.S_REM, Op.U_MOD, None, None),
    "shl": (Op.SHIFT_LEFT_LOGICAL, Op.SHIFT_LEFT_LOGICAL, None, None),
    "shr": (Op.SHIFT_RIGHT_ARITHMETIC, Op.SHIFT_RIGHT_LOGICAL, None, None),
    "and": (Op.BITWISE_AND, Op.BITWISE_AND, None, Op.LOGICAL_AND),
    "or": (Op.BITWISE_OR, Op.BITWISE_OR, None, Op.LOGICAL_OR),
    "xor": (Op.BITWISE_XOR, Op.BITWISE_XOR, None, Op.LOGICAL_NOT_EQUAL),
    "not": (Op.NOT, Op.NOT, None, Op.LOGICAL_NOT),
    "lt": (Op.S_LESS_THAN, Op.U_LESS_THAN, Op.F_ORD_LESS_THAN, None),
    "le": (Op.S_LESS_THAN_EQUAL, Op.U_LESS_THAN_EQUAL, Op.F_ORD_LESS_THAN_EQUAL, None),
    "eq": (Op.I_EQUAL, Op.I_EQUAL, Op.F_ORD_EQUAL, Op.LOGICAL_EQUAL),
    "ne": (Op.I_NOT_EQUAL, Op.I_NOT_EQUAL, Op.F_UNORD_NOT_EQUAL, Op.LOGICAL_NOT_EQUAL),
    "where": (Op.SELECT, Op.SELECT, Op.SELECT, Op.SELECT),
    "bitcast": (Op.BITCAST, Op.BITCAST, Op.BITCAST, None),
}
_COLUMN = {"i": 0, "u": 1, "f": 2, "b": 3}
_ATOMICS = {
    "add": (Op.ATOMIC_I_ADD, Op.ATOMIC_I_ADD),
    "min": (Op.ATOMIC_S_MIN, Op.ATOMIC_U_MIN),
    "max": (Op.ATOMIC_S_MAX, Op.ATOMIC_U_MAX),
    "and": (Op.ATOMIC_AND, Op.ATOMIC_AND),
    "or": (Op.ATOMIC_OR, Op.ATOMIC_OR),
}
_ROUNDED = frozenset(
    (Op.F_ADD, Op.F_SUB, Op.F_MUL, Op.F_DIV, Op.F_NEGATE, Op.EXT_INST, Op.F_CONVERT)
)
_WRAPPING = ("add", "sub", "mul", "neg", "shl", "not")  # of integers
_FORMATS = {float32: ("<f", "<I"), float64: ("<d", "<Q")}  # of a float, and of its bits
_INTEGER_CAPABILITIES = {8: Capability.INT8, 16: Capability.INT16, 64: Capability.INT64}
_STORAGE_CAPABILITIES = {
    1: Capability.STORAGE_BUFFER_8_BIT,
    2: Capability.STORAGE_BUFFER_16_BIT,
}  # by the bytes of elements


class Renderer:
    """A renderer of one kernel."""

    def __init__(
        self, kernel: Kernel, can: Features, layout: Module, lanes: bool, vectorized: bool
    ) -> None:
        self.kernel, self.can, self.layout = kernel, can, layout
        self.lanes, self.vectorized = lanes, vectorized
        self.has_read = False  # an array of the group, since the last barrier
        self.asm = Assembler()
        self.ids: MutableMapping[int, int] = {}  # of values, by their identity
        self.bool = self.asm.type(Op.TYPE_BOOL)
        self.index_type = self.type(kernel.index)
        self.uint = self.type(uint32)
        self.lane = self.asm.builtin(BuiltIn.LOCAL_INVOCATION_INDEX, self.uint) if lanes else 0

    def render(self) -> bytes:
        """Return the module."""
        self.arguments = self.load_arguments()
        self.arrays = {b: self.declare_array(b) for b in self.kernel.arrays}
        with self.points() as self.indices:
            if self.vectorized:
                self.write_vectorized_points(self.kernel.body)
            else:
                self.write_block(self.kernel.body, by_group=self.lanes)
        return self.asm.assemble()

    # --- types and constants

    def require(self, capability: Capability) -> None:
        """Declare a capability. Raises: CompileError if the device lacks it."""
        if capability not in self.can:
            raise CompileError(
                f"kernel {self.kernel.name} needs {capability.name.lower()} of SPIR-V, which this "
                "device lacks"
            )
        self.asm.require(capability)

    def type(self, dtype: DType) -> int:
        """Return the type of values of a dtype. Raises: CompileError if there is none."""
        if dtype is bool_:
            return self.asm.type(Op.TYPE_BOOL)
        if dtype.kind in "iu":
            return self.int_type(self.value_bits(dtype))
        if dtype not in _FORMATS:
            raise CompileError(f"SPIR-V has no type for {dtype.name}")
        if dtype is float64:
            self.require(Capability.FLOAT64)
        for mode in Mode:  # IEEE's subnormals, special values and rounding
            if (mode, dtype.bits) in self.can:
                self.asm.require(Capability[mode.name])
                self.asm.modes[mode, dtype.bits] = None
        return self.asm.type(Op.TYPE_FLOAT, dtype.bits)

    def int_type(self, bits: int) -> int:
        """Return a type of integers."""
        if bits in _INTEGER_CAPABILITIES:
            self.require(_INTEGER_CAPABILITIES[bits])
        return self.asm.int_type(bits)

    def value_bits(self, dtype: DType) -> int:
        """Return the bits of values of an integer dtype: 32 on a device without narrower ones."""
        is_word = dtype.bits < 32 and _INTEGER_CAPABILITIES[dtype.bits] not in self.can
        return 32 if is_word else dtype.bits

    def wrap(self, x: int, dtype: DType) -> int:
        """Return an integer modulo the range of a dtype, extended to the bits of its values."""
        bits, type = self.value_bits(dtype), self.type(dtype)
        if bits == dtype.bits:
            return x
        if dtype.kind == "u":
            return self.asm.value(Op.BITWISE_AND, type, x, self.asm.integer(bits, dtype.max))
        lost = self.asm.integer(bits, bits - dtype.bits)
        x = self.asm.value(Op.SHIFT_LEFT_LOGICAL, type, x, lost)
        return self.asm.value(Op.SHIFT_RIGHT_ARITHMETIC, type, x, lost)

    def constant(self, number: float, dtype: DType) -> int:
        """Return a constant."""
        if dtype is bool_:
            op = Op.CONSTANT_TRUE if number else Op.CONSTANT_FALSE
            return self.asm.constant(op, self.bool)
        if dtype.kind != "f":
            self.type(dtype)
            return self.asm.integer(self.value_bits(dtype), int(number))
        to, of = _FORMATS[dtype]
        (bits,) = struct.unpack(of, struct.pack(to, number))
        words = (bits,) if dtype is float32 else (bits & 0xFFFFFFFF, bits >> 32)
        return self.asm.constant(Op.CONSTANT, self.type(dtype), *words)

    # --- arguments

    def load_arguments(self) -> dict[str, int]:
        """Return the arguments by their names, loaded in the first block.

        The push constant is their struct, or its address.
        """
        asm, layout, arguments = self.asm, self.layout, dict[str, int]()
        pointers = map(self.pointer_type, self.kernel.buffers)
        numbers = [a.dtype if a.dtype.itemsize == a.nbytes else uint32 for a in layout.arguments]
        members = [*pointers, *map(self.type, numbers[len(self.kernel.buffers) :])]
        block = asm.struct(members, [a.offset for a in layout.arguments])
        storage, in_buffer = Storage.PUSH_CONSTANT, layout.arguments_in_buffer
        if in_buffer:
            pointer = asm.pointer_type(Storage.BUFFER, block)
            push = asm.global_variable(storage, asm.struct([pointer], [0]))
            address = self.load_member(storage, pointer, push, 0)
            storage, block = Storage.BUFFER, address
        else:
            block = asm.global_variable(storage, block)
        for i, (a, type) in enumerate(zip(layout.arguments, members, strict=True)):
            x = self.load_member(
                storage, type, block, i, *((ALIGNED, a.nbytes) if in_buffer else ())
            )
            arguments[a.name] = self.narrow(x, a.dtype)
        return arguments

    def load_member(self, storage: Storage, type: int, block: int, i: int, *aligned: int) -> int:
        """Return a member of a struct, loaded in the first block."""
        pointer, number = self.asm.pointer_type(storage, type), self.asm.integer(32, i)
        address = self.asm.at_head(Op.ACCESS_CHAIN, pointer, block, number)
        return self.asm.at_head(Op.LOAD, type, address, *aligned)

    def narrow(self, word: int, dtype: DType) -> int:
        """Return an argument as a value of its dtype: the launch has extended a narrow number."""
        if dtype is bool_:
            return self.asm.at_head(Op.I_NOT_EQUAL, self.bool, word, self.asm.integer(32, 0))
        if dtype.itemsize >= WORD_BYTES or self.value_bits(dtype) == 32:
            return word
        return self.asm.at_head(Op.U_CONVERT, self.type(dtype), word)

    def declare_array(self, array: Buffer) -> int:
        """Declare an array of the work item, or of the group."""
        length = self.asm.integer(32, array.length)
        type = self.asm.type(Op.TYPE_ARRAY, self.type(array.dtype), length)
        if array.shared:
            return self.asm.global_variable(Storage.WORKGROUP, type)
        return self.asm.variable(type)

    def pointer_type(self, buffer: Buffer) -> int:
        """Return the type of pointers to the elements of a buffer."""
        type = self.memory_type(buffer.dtype)
        return self.asm.pointer_type(Storage.BUFFER, type, buffer.dtype.itemsize)

    def memory_type(self, dtype: DType) -> int:
        """Return the type of the elements of buffers of a dtype."""
        if dtype.itemsize in _STORAGE_CAPABILITIES:
            self.require(_STORAGE_CAPABILITIES[dtype.itemsize])
        return self.type(dtype) if dtype.kind == "f" else self.int_type(8 * dtype.itemsize)

    # --- the grid

    @contextmanager
    def points(self) -> Iterator[list[int]]:
        """Run the context for the point of a work item or group; yield its indices.

        The last axis is x. Groups may be fewer than points along it: then each does several. Its
        index is that of the first of several vectorized points.
        """
        asm, vector = self.asm, self.asm.type(Op.TYPE_VECTOR, self.uint, 3)
        sizes = [asm.spec_constant(d, self.uint, 1) for d in range(3)]
        size = asm.constant(Op.SPEC_CONSTANT_COMPOSITE, vector, *sizes)
        asm.decorate(size, Decoration.BUILT_IN, BuiltIn.WORKGROUP_SIZE)
        number = BuiltIn.WORKGROUP_ID if self.lanes else BuiltIn.GLOBAL_INVOCATION_ID
        extents = [self.value_id(n) for n in self.kernel.grid] or [
            self.constant(1, self.kernel.index)
        ]
        indices = list[int]()
        with ExitStack() as stack:
            for dimension, stop in zip(reversed(range(len(extents))), extents, strict=True):
                k = self.component(number, vector, dimension)
                if self.lanes and dimension == 0:
                    groups = self.component(BuiltIn.NUM_WORKGROUPS, vector, 0)
                    loop = asm.count(self.kernel.index.bits, k, stop, groups)
                    k, _ = stack.enter_context(loop)
                else:
                    if self.vectorized and dimension == 0:
                        count = self.constant(VECTOR_POINTS, self.kernel.index)
                        k = asm.value(Op.I_MUL, self.index_type, k, count)
                    inside = asm.value(Op.U_LESS_THAN, self.bool, k, stop)
                    stack.enter_context(asm.when(inside))
                indices.append(k)
            yield indices

    def component(self, builtin: BuiltIn, vector: int, dimension: int) -> int:
        """Return a component of an input as an index."""
        whole = self.asm.builtin(builtin, vector)
        return self.widen(self.asm.value(Op.COMPOSITE_EXTRACT, self.uint, whole, dimension))

    def widen(self, word: int) -> int:
        """Return an unsigned integer of 32 bits as an index."""
        narrow = self.index_type == self.uint
        return word if narrow else self.asm.value(Op.U_CONVERT, self.index_type, word)

    # --- statements

    def write_block(self, block: Block, by_group: bool = False) -> None:
        """Write the statements of a block. If `by_group`, all lanes of a group run them together.

        A map is shared then, and a store is done by the first lane. What others read is written
        between barriers; the first one is left out if no lane has read since the one before.
        """
        for s in block:
            if isinstance(s, Value):
                args = [self.value_id(a) for a in s.args]
                self.ids[id(s)] = self.load(s) if s.op == "load" else self.operation(s, args)
                self.has_read |= by_group and _reads_shared(s)
            elif isinstance(s, Loop) and s.kind == "fold":
                self.write_fold(s, by_group)
            else:
                synchronizes = by_group and _writes_what_others_read(s)
                if synchronizes and self.has_read:
                    self.asm.barrier()
                if isinstance(s, Loop):
                    self.write_map(s, by_group)
                else:
                    with self.asm.when(self.is_first()) if by_group else nullcontext():
                        self.write_effect(s)
                if synchronizes:
                    self.asm.barrier()
                    self.has_read = False

    def write_vectorized_points(self, block: Block) -> None:
        """Write a block for VECTOR_POINTS neighbours along x; the last item may have fewer."""
        asm, type, bits = self.asm, self.index_type, self.kernel.index.bits
        first, stop = self.indices[-1], self.value_id(self.kernel.grid[-1])
        steps = [asm.integer(bits, i) for i in range(VECTOR_POINTS)]
        points = [asm.value(Op.I_ADD, type, first, step) for step in steps]
        complete = asm.value(Op.U_LESS_THAN, self.bool, points[-1], stop)
        with asm.when(complete):
            self.write_vectors(block, points)
        first = asm.value(Op.SELECT, type, complete, stop, first)
        with asm.count(bits, first, stop, steps[1]) as (k, _):
            self.indices[-1], self.ids = k, {}
            self.write_block(block)

    def write_vectors(self, block: Block, points: Sequence[int]) -> None:
        """Write each statement of a block for all of some neighbours along x.

        What does not depend on x is written once. Accesses to neighbours are one of a vector.
        """
        variable = grid_index(len(self.kernel.grid) - 1)
        varies, stride = varies_along(block, variable), stride_along(block, variable)
        common: dict[int, int] = {}  # ids of values
        own: list[MutableMapping[int, int]] = [ChainMap({}, common) for _ in points]
        for s in block:
            if isinstance(s, Value) and not varies(s):
                self.ids = common
                self.write_block((s,))
            elif is_access(s) and s.when is None and stride(s.index) == 1:
                self.write_vector(s, points, own)
            else:
                for self.indices[-1], self.ids in zip(points, own, strict=True):
                    self.write_block((s,))

    def write_vector(
        self, s: Value | Store, points: Sequence[int], ids: Sequence[MutableMapping[int, int]]
    ) -> None:
        """Write a load or a store for neighbours as one of a vector, aligned like an element.

        - `points`: their indices along x.
        - `ids`: the ids of their values.
        """
        asm, dtype, element = self.asm, s.buffer.dtype, self.memory_type(s.buffer.dtype)
        self.indices[-1], self.ids = points[0], ids[0]
        vector = asm.type(Op.TYPE_VECTOR, element, len(points))
        pointer = asm.pointer_type(Storage.BUFFER, vector)
        address = asm.value(Op.BITCAST, pointer, self.element_pointer(s.buffer, s.index))
        aligned = ALIGNED, dtype.itemsize
        if isinstance(s, Store):
            elements = []
            for self.ids in ids:
                elements.append(self.pack(self.value_id(s.value), dtype))
            whole = asm.value(Op.COMPOSITE_CONSTRUCT, vector, *elements)
            asm.emit(Op.STORE, address, whole, *aligned)
        else:
            whole = asm.value(Op.LOAD, vector, address, *aligned)
            for i, values in enumerate(ids):
                part = asm.value(Op.COMPOSITE_EXTRACT, element, whole, i)
                values[id(s)] = self.unpack(part, dtype)

    def is_first(self) -> int:
        """Return the condition that a work item is the first one of its group."""
        return self.asm.value(Op.I_EQUAL, self.bool, self.lane, self.asm.integer(32, 0))

    def value_id(self, v: Value) -> int:
        """Return the id of a value that is known at this place."""
        if v.op == "const":
            return self.constant(v.number, v.dtype)
        if v.op == "param":
            return self.arguments[v.name]
        return self.indices[v.axis] if v.op == "index" else self.ids[id(v)]

    def operation(self, v: Value, args: Sequence[int]) -> int:
        """Return the result of an operation of these arguments."""
        of = v.args[v.op == "where"].dtype
        if v.op == "cast":
            return self.cast(args[0], of, v.dtype)
        op = _INSTRUCTIONS[v.op][_COLUMN[of.kind]]
        assert op is not None, v
        type = self.type(v.dtype)
        if v.op == "bitcast" and type == self.type(of):
            return self.wrap(args[0], v.dtype)
        if isinstance(op, Ext):
            return self.emit_rounded(Op.EXT_INST, type, self.asm.extended, op, *args)
        result = self.emit_rounded(op, type, *args)
        return self.wrap(result, v.dtype) if v.op in _WRAPPING and v.dtype is not bool_ else result

    def emit_rounded(self, op: Op, type: int, *operands: int) -> int:
        """Append an instruction; one that rounds must not be contracted."""
        result = self.asm.value(op, type, *operands)
        if op in _ROUNDED and not self.kernel.fast_math:
            self.asm.decorate(result, Decoration.NO_CONTRACTION)
        return result

    def cast(self, x: int, source: DType, target: DType) -> int:
        """Return a value converted to another dtype."""
        type, asm = self.type(target), self.asm
        if target is bool_:
            return asm.value(_instruction("ne", source), type, x, self.constant(0, source))
        if source is bool_:
            return asm.value(Op.SELECT, type, x, self.constant(1, target), self.constant(0, target))
        signed = source.kind == "i"
        if target.kind == "f":
            if source.kind == "f":
                return self.emit_rounded(Op.F_CONVERT, type, x)
            return asm.value(Op.CONVERT_S_TO_F if signed else Op.CONVERT_U_TO_F, type, x)
        if source.kind == "f":
            to = Op.CONVERT_F_TO_S if target.kind == "i" else Op.CONVERT_F_TO_U
            x = asm.value(to, type, x)
        elif signed and self.value_bits(source) == 32 and target.bits == 64:
            # x + 2^31 without a sign, less 2^31: Mesa 22.3 compares an S_CONVERT wrongly
            sign = 1 << 31
            x = asm.value(Op.BITWISE_XOR, self.type(source), x, asm.integer(32, sign))
            x = asm.value(Op.U_CONVERT, type, x)
            x = asm.value(Op.I_SUB, type, x, asm.integer(64, sign))
        elif type != self.type(source):
            x = asm.value(Op.S_CONVERT if signed else Op.U_CONVERT, type, x)
        return self.wrap(x, target)

    # --- memory

    def element_pointer(self, buffer: Buffer, index: Value) -> int:
        """Return the pointer to an element of a buffer or an array."""
        asm, at = self.asm, self.value_id(index)
        if buffer not in self.arrays:
            start = self.arguments[buffer.name]
            return asm.value(Op.PTR_ACCESS_CHAIN, self.pointer_type(buffer), start, at)
        storage = Storage.WORKGROUP if buffer.shared else Storage.FUNCTION
        pointer = asm.pointer_type(storage, self.type(buffer.dtype))
        return asm.value(Op.ACCESS_CHAIN, pointer, self.arrays[buffer], at)

    def load(self, v: Value) -> int:
        """Return a loaded element; 0 where the load has a condition that is false."""
        if v.when is None:
            return self.load_element(v)
        asm, zero, before = self.asm, self.constant(0, v.dtype), self.asm.block
        with asm.when(self.value_id(v.when)):
            element, inside = self.load_element(v), asm.block
        return asm.value(Op.PHI, self.type(v.dtype), element, inside, zero, before)

    def load_element(self, v: Value) -> int:
        """Return the element that a load reads."""
        asm, pointer = self.asm, self.element_pointer(v.buffer, v.index)
        if v.buffer.length:
            return asm.value(Op.LOAD, self.type(v.dtype), pointer)
        type, nbytes = self.memory_type(v.dtype), v.dtype.itemsize
        element = asm.value(Op.LOAD, type, pointer, ALIGNED, nbytes)
        return self.unpack(element, v.dtype)

    def unpack(self, element: int, dtype: DType) -> int:
        """Return the value of an element in memory, where a bool is a byte."""
        if dtype is not bool_:
            return element
        return self.asm.value(Op.I_NOT_EQUAL, self.bool, element, self.constant(0, uint8))

    def pack(self, value: int, dtype: DType) -> int:
        """Return the element in memory of a value."""
        return self.cast(value, bool_, uint8) if dtype is bool_ else value

    def write_effect(self, s: Store | Atomic) -> None:
        """Write a store or an atomic, under its condition if it has one."""
        with nullcontext() if s.when is None else self.asm.when(self.value_id(s.when)):
            self.write_access(s)

    def write_access(self, s: Store | Atomic) -> None:
        """Write a store or an atomic, without its condition."""
        asm, dtype, value = self.asm, s.buffer.dtype, self.value_id(s.value)
        pointer = self.element_pointer(s.buffer, s.index)
        if s.buffer.length:
            asm.emit(Op.STORE, pointer, value)
        elif isinstance(s, Store):
            asm.emit(Op.STORE, pointer, self.pack(value, dtype), ALIGNED, dtype.itemsize)
        elif dtype.bits < 32:
            self.write_narrow_atomic(s.op, dtype, pointer, value)
        else:
            if dtype.bits == 64:
                self.require(Capability.INT64_ATOMICS)
            op = _ATOMICS[s.op][_COLUMN[dtype.kind]]
            scope = (asm.integer(32, DEVICE_SCOPE), asm.integer(32, RELAXED))
            asm.value(op, self.type(dtype), pointer, *scope, value)

    def write_narrow_atomic(self, op: str, dtype: DType, pointer: int, value: int) -> None:
        """Write an atomic of 8 or 16 bits, by compare-and-exchange of the word around it."""
        asm, uint, narrow = self.asm, self.uint, self.type(dtype)
        scope, relaxed = asm.integer(32, DEVICE_SCOPE), asm.integer(32, RELAXED)
        pair = asm.type(Op.TYPE_VECTOR, uint, 2)  # an address, also without 64-bit integers
        address = asm.value(Op.BITCAST, pair, pointer)
        low = asm.value(Op.COMPOSITE_EXTRACT, uint, address, 0)
        aligned = asm.value(Op.BITWISE_AND, uint, low, asm.integer(32, ~3))
        byte = asm.value(Op.I_SUB, uint, low, aligned)
        address = asm.value(Op.COMPOSITE_INSERT, pair, aligned, address, 0)
        word = asm.value(Op.BITCAST, asm.pointer_type(Storage.BUFFER, uint, 4), address)
        shift = asm.value(Op.I_MUL, uint, byte, asm.integer(32, 8))
        ones = asm.integer(32, (1 << dtype.bits) - 1)
        others = asm.value(Op.NOT, uint, asm.value(Op.SHIFT_LEFT_LOGICAL, uint, ones, shift))
        latest = asm.variable(uint)
        asm.emit(Op.STORE, latest, asm.value(Op.ATOMIC_LOAD, uint, word, scope, relaxed))
        with asm.repeat() as loop:
            before = asm.value(Op.LOAD, uint, latest)
            shifted = asm.value(Op.SHIFT_RIGHT_LOGICAL, uint, before, shift)
            old = asm.value(Op.U_CONVERT, narrow, shifted)
            if op in ("min", "max"):
                less = _instruction("lt", dtype)
                right = asm.value(less, self.bool, *((value, old) if op == "min" else (old, value)))
                new = asm.value(Op.SELECT, narrow, right, value, old)
            else:
                new = asm.value(_instruction(op, dtype), narrow, old, value)
            new = asm.value(Op.U_CONVERT, uint, new)
            new = asm.value(Op.SHIFT_LEFT_LOGICAL, uint, new, shift)
            new = asm.value(
                Op.BITWISE_OR, uint, asm.value(Op.BITWISE_AND, uint, before, others), new
            )
            operands = (word, scope, relaxed, relaxed, new, before)
            after = asm.value(Op.ATOMIC_COMPARE_EXCHANGE, uint, *operands)
            asm.emit(Op.STORE, latest, after)
            asm.leave(loop, asm.value(Op.I_EQUAL, self.bool, after, before))

    # --- loops

    def write_map(self, s: Loop, by_group: bool) -> None:
        """Write a map; if `by_group`, each lane of a group runs every LANES-th iteration."""
        start, stop = self.value_id(s.start), self.value_id(s.stop)
        if by_group:
            start = self.asm.value(Op.I_ADD, self.index_type, start, self.widen(self.lane))
        bits = self.kernel.index.bits
        step = self.asm.integer(bits, LANES if by_group else 1)
        with self.asm.count(bits, start, stop, step) as (k, _):
            self.ids[id(s.var)] = k
            self.write_block(s.body)

    def write_fold(self, s: Loop, by_group: bool) -> None:
        """Write a fold; if `by_group`, all lanes run its iterations, and share the maps in them."""
        asm, bits, had_read = self.asm, self.kernel.index.bits, self.has_read
        by_group = by_group and any(isinstance(x, Store) for x in walk(s.body))
        self.has_read |= by_group and any(map(_reads_shared, s.body))  # in the iteration before
        states = [asm.variable(self.type(c.dtype)) for c in s.carry]
        self.store_all(states, s.init)
        start, stop = self.value_id(s.start), self.value_id(s.stop)
        with asm.count(bits, start, stop, asm.integer(bits, 1)) as (k, loop):
            self.ids[id(s.var)] = k
            self.load_all(s.carry, states)
            self.write_block(s.body, by_group)
            self.store_all(states, s.update)
            if s.carry and settles(s):
                asm.leave(loop, self.equal_bits(s.carry, s.update))
        self.load_all(s.results, states)
        self.has_read |= had_read  # there may have been no iteration

    def store_all(self, variables: Sequence[int], values: Sequence[Value]) -> None:
        """Store values in variables."""
        for variable, v in zip(variables, values, strict=True):
            self.asm.emit(Op.STORE, variable, self.value_id(v))

    def load_all(self, values: Sequence[Value], variables: Sequence[int]) -> None:
        """Let values be those of variables, at this place."""
        for v, variable in zip(values, variables, strict=True):
            self.ids[id(v)] = self.asm.value(Op.LOAD, self.type(v.dtype), variable)

    def equal_bits(self, old: Sequence[Value], new: Sequence[Value]) -> int:
        """Return the condition that all bits of some values are equal."""
        asm, equal = self.asm, self.constant(True, bool_)
        for a, b in zip(old, new, strict=True):
            x, y = self.value_id(a), self.value_id(b)
            same = _instruction("eq", a.dtype)
            if a.dtype.kind == "f":
                x, y = (asm.value(Op.BITCAST, asm.int_type(a.dtype.bits), v) for v in (x, y))
                same = Op.I_EQUAL
            one = asm.value(same, self.bool, x, y)
            equal = asm.value(Op.LOGICAL_AND, self.bool, equal, one)
        return equal


def _instruction(op: str, dtype: DType) -> Op:
    """Return the instruction of an operation that is none of the extended set."""
    instruction = _INSTRUCTIONS[op][_COLUMN[dtype.kind]]
    assert isinstance(instruction, Op), op
    return instruction


def _reads_shared(s: Statement) -> bool:
    """Return True for a load from an array of the group."""
    return isinstance(s, Value) and s.op == "load" and s.buffer.shared


def _writes_what_others_read(s: Statement) -> bool:
    """Return True if a statement writes to a buffer that the kernel also reads, or to an array."""
    effects = (x for x in walk((s,)) if isinstance(x, (Store, Atomic)))
    return any(x.buffer.access == "rw" for x in effects)
