# The functions of `stacktrace.pyx` for other compiled modules.
cpdef object caller_line()
cpdef object current_line()
cpdef bint is_library_module(module) except -1
