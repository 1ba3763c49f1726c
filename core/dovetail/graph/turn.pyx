"""Whose turn it is: `turn.py`, compiled.

While nobody waits there is no lock, only a note of who is inside: Python's own lock keeps threads
from reading it half written. Who must wait shuts the gate on behalf of who is inside, and stands
before it.
"""

cdef extern from "pythread.h" nogil:
    unsigned long PyThread_get_thread_ident()
    PyThread_type_lock PyThread_allocate_lock()
    void PyThread_free_lock(PyThread_type_lock)
    int PyThread_acquire_lock(PyThread_type_lock, int)
    int PyThread_acquire_lock_timed(PyThread_type_lock, long long, int)
    void PyThread_release_lock(PyThread_type_lock)
    int PY_LOCK_ACQUIRED

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1


cdef enum:
    LOOK_UP = 200_000  # microseconds that one waits before it looks for Ctrl-C again


cdef class Turn:
    """A lock that the thread which holds it may take again."""

    def __cinit__(self):
        self._gate = PyThread_allocate_lock()
        if self._gate == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self._gate != NULL:
            PyThread_free_lock(self._gate)

    cpdef object held(self, object work, tuple args):
        """What `work(*args)` gives, done inside."""
        self._enter()
        try:
            return work(*args)
        finally:
            self._leave()

    cdef int _enter(self) except -1:
        cdef unsigned long me = PyThread_get_thread_ident()
        if self._depth == 0:
            if self._waiting == 0:
                self._owner, self._depth = me, 1
                return 0
        elif self._owner == me:
            self._depth += 1
            return 0
        return self._wait(me)

    cdef _leave(self):
        self._depth -= 1
        if self._depth == 0 and self._shut:
            self._shut = False
            PyThread_release_lock(self._gate)

    cdef int _wait(self, unsigned long me) except -1:
        cdef int got = 0
        if not self._shut and self._waiting == 0 and PyThread_acquire_lock(self._gate, 0):
            self._shut = True  # for who is inside, who opens it again
        self._waiting += 1
        try:
            while not got:  # not for ever: another thread may take a signal in, or the wait miss it
                with nogil:
                    got = PyThread_acquire_lock_timed(self._gate, LOOK_UP, 1) == PY_LOCK_ACQUIRED
                if not got:
                    PyErr_CheckSignals()  # Ctrl-C
        finally:
            self._waiting -= 1
        self._shut, self._owner, self._depth = True, me, 1
        return 0

    def __enter__(self):
        self._enter()

    def __exit__(self, kind, error, traceback):
        self._leave()

    def acquire(self):
        """As `with`."""
        self._enter()

    def release(self):
        """As the end of `with`."""
        self._leave()

    def release_in_child(self):
        """Gives it up after a fork, where nobody else waits any more."""
        self._waiting = 0
        self._leave()
