# C declarations of the compiled form of `locks.py`.
cdef extern from "pythread.h":
    ctypedef void* PyThread_type_lock


cdef class Lock:
    cdef object __weakref__
    cdef PyThread_type_lock _gate
    cdef unsigned long _owner
    cdef Py_ssize_t _depth
    cdef Py_ssize_t _waiting
    cdef bint _shut
    cpdef object held(self, object work, tuple args)
    cpdef object hold_within(self, double seconds, object error, object work, tuple args)
    cpdef object _call(self, object work, object x)
    cpdef bint _is_free(self) noexcept
    cdef int _enter(self, long long waits=*) except -1
    cdef _leave(self)
    cdef int _wait(self, unsigned long me, long long waits) except -1
