# The C types of `size_program.py`.


cdef struct Instruction:
    long long opcode
    long long a
    long long b


cdef class SizeProgram:
    cdef Instruction* _instructions
    cdef long long* _registers
    cdef Py_ssize_t* _outputs
    cdef Py_ssize_t _inputs
    cdef Py_ssize_t _count
    cdef Py_ssize_t _output_count
    cpdef object run(self, tuple inputs)
    cdef bint compute(self) noexcept
