# The C interface of `host_reductions.pyx`.


cpdef object reduce(int op, tuple args, dict options)
