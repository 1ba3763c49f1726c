"""What a caching allocator does most: `front.py`, compiled.

Between the look at the state and the end nothing of Python's runs where a block is there: no other
thread, no finaliser (the pointer is made before), no Ctrl-C. So there is no lock on that way.
"""

cimport cython

from cpython.object cimport PyObject

from dovetail.arguments import integer
from dovetail.locks import Lock

cdef extern from "Python.h":
    PyObject* PyList_GET_ITEM(list, Py_ssize_t)  # borrowed
    void Py_SET_SIZE(list, Py_ssize_t)
    void Py_DECREF(PyObject*)

IDLE, BUSY, TORN = range(3)  # nobody is inside; somebody is; somebody was, and left by an exception

BEYOND = 1 << 62
cdef int AT_REST = 0, INSIDE = 1, BROKEN = 2  # the same
cdef int WITH_NOBODY = 0, WITH_SOMEBODY = 2  # states of blocks: UNUSED, LIVE


cdef class Front:
    """An allocator's state, as far as its cache is concerned."""

    def __init__(self, device):
        self.device = device
        self._lock = Lock()
        # BUSY: the lock's holder is inside, so a finaliser that allocates gets memory uncached
        self._state = AT_REST
        self._freed = []
        self._default = Pool(None)
        self._live = self._peak = self._allocations = self._frees = 0
        self._tracer = None  # notes what is done, while somebody wants to know

    cpdef DataPtr allocate(self, object nbytes, object stream=None):
        """See `Allocator.allocate`.

        Zero bytes get a real block too, so that every handle is valid.
        """
        cdef DataPtr ptr = DataPtr.__new__(DataPtr)
        cdef Block block
        cdef Py_ssize_t size
        if type(nbytes) is not int or nbytes < 0:
            nbytes = integer("allocate", nbytes, "nbytes", 0)
        if nbytes >= BEYOND:  # which nobody has: an error that says so
            return self._allocate(ptr, nbytes, (nbytes + 511) & -512, stream)
        size = ((<Py_ssize_t>nbytes + 511) & -512) or 512  # ROUND
        if self._state == AT_REST and stream is None and self._tracer is None:
            if self._freed:
                block = <Block>PyList_GET_ITEM(self._freed, len(self._freed) - 1)
                if block.size == size and self._is_ready(block):
                    _shorten(self._freed)  # at once the same one again, as loops do
                    self._take_back(block)
                    self._hand_out(ptr, block, nbytes)
                    return ptr
                self._drain_small()
            waiting = self._default.bins.get(size)
            if waiting:
                block = (<list>waiting).pop()
                self._hand_out(ptr, block, nbytes)
                return ptr
        return self._allocate(ptr, nbytes, size, stream)

    cdef bint _is_ready(self, Block block):
        """Whether a freed block may be handed out where no stream is named, unmerged."""
        return (
            block.streams is None
            and block.bin is not None
            and block.segment.pool is self._default
        )

    cdef _hand_out(self, DataPtr ptr, Block block, object nbytes):
        ptr._handle, ptr.offset, ptr.nbytes = block.handle, block.offset, nbytes
        ptr.device, ptr.context = self.device, block
        ptr.give_back, block.state = block.give_back, WITH_SOMEBODY
        self._allocations += 1
        self._live += block.size
        if self._live > self._peak:
            self._peak = self._live

    cdef DataPtr _allocate(self, DataPtr ptr, object nbytes, object size, object stream):
        """The same in full."""
        cdef Block block
        cdef Pool pool
        with self._lock:
            if self._state:
                if self._state == INSIDE:
                    return self._aside(nbytes)
                self._restore()
            self._state = INSIDE
            try:
                self._drain()
                pool = self._default if stream is None else self._pool(stream)
                waiting = pool.bins.get(size)
                block = waiting.pop() if waiting else self._miss(pool, size)
                give_back = None if self._tracer is None else self._tracer.allocated(block)
                self._hand_out(ptr, block, nbytes)
                if give_back is not None:
                    ptr.give_back = give_back
            except BaseException:
                self._state = BROKEN
                raise
            self._state = AT_REST
        return ptr

    cdef _drain_small(self):
        """Takes back freed blocks as long as they go into bins."""
        cdef Block block
        freed = self._freed
        while freed:
            block = freed[-1]
            if block.streams is not None or block.bin is None:
                return
            freed.pop()
            self._take_back(block)
            block.bin.append(block)

    cdef _take_back(self, Block block):
        block.state = WITH_NOBODY
        self._live -= block.size
        self._frees += 1

    cpdef _drain(self):
        """Takes back what was freed."""
        cdef Block block
        freed = self._freed
        while freed:
            block = freed[0]
            if block.streams is not None:
                self._set_aside(block)
                continue
            if self._tracer is not None:
                self._tracer.freed(block)
            self._take_back(block)
            del freed[0]
            if block.bin is not None:
                block.bin.append(block)
            else:
                block.segment.pool.insert(block)

    def _returning(self, block):
        """What a block's pointers call at their end."""
        return Returning(self._freed, block)


cdef inline _shorten(list blocks):
    """Drops the last, and keeps the room for the next."""
    cdef Py_ssize_t n = len(blocks) - 1
    cdef PyObject* last = PyList_GET_ITEM(blocks, n)
    Py_SET_SIZE(blocks, n)
    Py_DECREF(last)


@cython.final
@cython.no_gc_clear  # it is called at the end of a pointer, whichever of a ring ends first
cdef class Returning:
    """Adds a block to those that were freed."""

    cdef list freed
    cdef Block block

    def __cinit__(self, list freed, Block block):
        self.freed, self.block = freed, block

    def __call__(self):
        self.freed.append(self.block)
