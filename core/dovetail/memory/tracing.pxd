# What the compiled form of `tracing.py` knows of its types.
cpdef object caller()
