# What the compiled form of `streams.py` knows of its types.
cpdef object current_handle(object dev)
