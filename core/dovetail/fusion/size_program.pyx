"""Programs over integers: the compiled form of `size_program.py`."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc

from enum import IntEnum

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define dovetail_add(a, b, result) __builtin_add_overflow(a, b, result)
    #define dovetail_multiply(a, b, result) __builtin_mul_overflow(a, b, result)
    #else
    static int dovetail_add(long long a, long long b, long long *result) {
        if (b > 0 ? a > LLONG_MAX - b : a < LLONG_MIN - b)
            return 1;
        *result = a + b;
        return 0;
    }
    static int dovetail_multiply(long long a, long long b, long long *result) {
        const long long most = 1LL << 31;
        if ((a >= most || a <= -most || b >= most || b <= -most) && a != 0 && b != 0) {
            const long long x = a < 0 ? -a : a, y = b < 0 ? -b : b;
            if (x < 0 || y < 0 || x > LLONG_MAX / y)
                return 1;
        }
        *result = a * b;
        return 0;
    }
    #endif
    """
    bint add_overflows "dovetail_add"(long long a, long long b, long long* result) noexcept
    bint multiply_overflows "dovetail_multiply"(long long a, long long b, long long* result) noexcept

VALUE_MAX = (1 << 63) - 1

cdef enum:
    CONSTANT
    ADD
    ADD_CONSTANT
    MULTIPLY
    MULTIPLY_CONSTANT
    DIVIDE_DOWN
    DIVIDE_UP
    BIT_LENGTH
    REQUIRE_ZERO
    REQUIRE_NONZERO
    REQUIRE_NONNEGATIVE


class Opcode(IntEnum):
    """The opcodes: operand `a` is a register, and so is `b` unless it is a constant."""

    CONSTANT = 0
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


cdef class SizeProgram:
    """Instructions over registers: the inputs have the first ones, then one per instruction."""

    def __init__(self, Py_ssize_t inputs, instructions, outputs):
        cdef Py_ssize_t i
        self._inputs, self._count, self._output_count = inputs, len(instructions), len(outputs)
        self._instructions = <Instruction*>PyMem_Malloc((self._count + 1) * sizeof(Instruction))
        self._registers = <long long*>PyMem_Malloc((inputs + self._count + 1) * sizeof(long long))
        self._outputs = <Py_ssize_t*>PyMem_Malloc((self._output_count + 1) * sizeof(Py_ssize_t))
        if self._instructions == NULL or self._registers == NULL or self._outputs == NULL:
            raise MemoryError
        for i, (opcode, a, b) in enumerate(instructions):
            self._instructions[i] = Instruction(opcode, a, b)
        for i, register in enumerate(outputs):
            self._outputs[i] = register

    def __dealloc__(self):
        PyMem_Free(self._instructions)
        PyMem_Free(self._registers)
        PyMem_Free(self._outputs)

    cpdef object run(self, tuple inputs):
        """Return the outputs, or None if a guard fails."""
        cdef Py_ssize_t i
        for i in range(self._inputs):
            self._registers[i] = inputs[i]
        if not self.compute():
            return None
        return tuple([self._registers[self._outputs[i]] for i in range(self._output_count)])

    cdef bint compute(self) noexcept:
        """Compute all registers from those of the inputs; return False if a guard fails."""
        cdef long long* registers = self._registers
        cdef long long* result = registers + self._inputs
        cdef Instruction* at = self._instructions
        cdef long long opcode, x, divisor
        cdef Py_ssize_t i
        for i in range(self._count):
            opcode = at.opcode
            x = at.a if opcode == CONSTANT else registers[at.a]
            if opcode == ADD:
                if add_overflows(x, registers[at.b], &x):
                    return False
            elif opcode == ADD_CONSTANT:
                if add_overflows(x, at.b, &x):
                    return False
            elif opcode == MULTIPLY:
                if multiply_overflows(x, registers[at.b], &x):
                    return False
            elif opcode == MULTIPLY_CONSTANT:
                if multiply_overflows(x, at.b, &x):
                    return False
            elif opcode == DIVIDE_DOWN or opcode == DIVIDE_UP:
                divisor = registers[at.b]
                if divisor <= 0:
                    return False
                if opcode == DIVIDE_DOWN:
                    x = x // divisor
                else:
                    x = -(-x // divisor)
            elif opcode == BIT_LENGTH:
                x = _bit_length(x)
            elif opcode == REQUIRE_ZERO:
                if x != 0:
                    return False
            elif opcode == REQUIRE_NONZERO:
                if x == 0:
                    return False
            elif opcode == REQUIRE_NONNEGATIVE:
                if x < 0:
                    return False
            result[0] = x
            result += 1
            at += 1
        return True


cdef long long _bit_length(long long x) noexcept:
    """Return the number of bits of the absolute value."""
    cdef unsigned long long rest = <unsigned long long>x if x >= 0 else 0 - <unsigned long long>x
    cdef long long bits = 0
    while rest:
        rest >>= 1
        bits += 1
    return bits
