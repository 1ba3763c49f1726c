# What other modules know of the compiled form of `callers.py`.
cpdef object caller()
cpdef object line()
cpdef bint is_ours(module) except -1
