# What other modules know of the compiled form of `reading.py`.
cpdef object element(str dtype, Py_ssize_t address)
