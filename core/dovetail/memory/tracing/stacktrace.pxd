# The functions of `stacktrace.pyx` for other compiled modules.
cpdef object caller()
cpdef object line()
cpdef bint is_ours(module) except -1
