"""The lock of the library: `locks.py`, compiled.

While no thread waits there is no system lock, only the owner's number: Python's own lock keeps
threads from reading it half written. A waiting thread locks the gate on the owner's behalf, then
blocks on it.
"""

from dovetail.forks import register_lock

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
    WAIT_MICROSECONDS = 200_000  # before a waiting thread looks for Ctrl-C again


cdef class Lock:
    """A reentrant lock that is free in a child of fork()."""

    def __cinit__(self):
        self._gate = PyThread_allocate_lock()
        if self._gate == NULL:
            raise MemoryError

    def __init__(self, waited=True):
        register_lock(self, waited)

    def __dealloc__(self):
        if self._gate != NULL:
            PyThread_free_lock(self._gate)

    cpdef object held(self, object work, tuple args):
        """Return `work(*args)`, called with the lock held."""
        self._enter()
        try:
            return work(*args)
        finally:
            self._leave()

    cpdef object hold_within(self, double seconds, object error, object work, tuple args):
        """Return `work(*args)`, called with the lock held; raise `error()` after so many seconds."""
        if not self._enter(<long long>(seconds * 1_000_000 / WAIT_MICROSECONDS) + 1):
            raise error()
        try:
            return work(*args)
        finally:
            self._leave()

    cpdef object _call(self, object work, object x):
        """Return `work(x)`, called with the lock held."""
        self._enter()
        try:
            return work(x)
        finally:
            self._leave()

    cpdef bint _is_free(self) noexcept:
        """Return True if no other thread has the lock."""
        return self._depth == 0 or self._owner == PyThread_get_thread_ident()

    cdef int _enter(self, long long waits=-1) except -1:
        """Acquire the lock once more for this thread; return 0 if another one has it too long.

        waits: the number of waits after which it is too long; -1 has no end.
        """
        cdef unsigned long me = PyThread_get_thread_ident()
        if self._depth == 0:
            if self._waiting == 0:
                self._owner, self._depth = me, 1
                return 1
        elif self._owner == me:
            self._depth += 1
            return 1
        return self._wait(me, waits)

    cdef _leave(self):
        """Release the lock once; after the last time open the gate, if it is locked."""
        self._depth -= 1
        if self._depth == 0 and self._shut:
            self._shut = False
            PyThread_release_lock(self._gate)

    cdef int _wait(self, unsigned long me, long long waits) except -1:
        """Block on the gate until this thread has the lock; return 0 after so many waits.

        A signal's handler may raise. waits: -1 has no end.
        """
        cdef int got = 0
        if not self._shut and self._waiting == 0 and PyThread_acquire_lock(self._gate, 0):
            self._shut = True  # the owner unlocks the gate when it leaves
        self._waiting += 1
        try:
            while not got:  # bounded waits: the signal may reach another thread, or miss the wait
                with nogil:
                    got = PyThread_acquire_lock_timed(self._gate, WAIT_MICROSECONDS, 1) == PY_LOCK_ACQUIRED
                if not got:
                    PyErr_CheckSignals()  # Ctrl-C
                    waits -= 1
                    if waits == 0:
                        return 0
        finally:
            self._waiting -= 1
        self._shut, self._owner, self._depth = True, me, 1
        return 1

    def __enter__(self):
        self._enter()

    def __exit__(self, kind, error, traceback):
        self._leave()

    def acquire(self, blocking=True):
        """Return True once this thread has the lock; False if it is not `blocking` and has not."""
        cdef bint free = self._depth == 0 and self._waiting == 0 and not self._shut
        if blocking or free or (self._depth and self._owner == PyThread_get_thread_ident()):
            self._enter()
            return True
        return False

    def release(self):
        """Release the lock once."""
        self._leave()

    def renew(self):
        """Free the lock in a child of fork(), unless this thread holds it."""
        cdef bint waited = self._waiting != 0
        self._waiting = 0
        if self._depth and self._owner == PyThread_get_thread_ident():
            return
        self._depth = 0
        if self._shut or waited:  # a new gate: one of the vanished threads may have locked the old
            self._shut = False
            self._gate = PyThread_allocate_lock()
            if self._gate == NULL:
                raise MemoryError
