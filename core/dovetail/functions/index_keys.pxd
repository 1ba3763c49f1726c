# What the compiled form of `index_keys.py` knows of its types.
cpdef bint is_integer_tensor(object key) except -1
