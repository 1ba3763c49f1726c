# What other modules know of the compiled form of `callers.py`.
cpdef object caller()
cpdef object line()
