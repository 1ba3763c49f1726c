"""The fast path of the caching allocator: `fast_path.py`, compiled.

The reuse of a block takes no lock. From the check of the state to the return no Python code runs:
no other thread, no finalizer (the pointer is created before) and no Ctrl-C.
"""

cimport cython

from cpython.object cimport PyObject

from dovetail.argument_checks import integer
from dovetail.locks import Lock
from dovetail.memory import blocks

from dovetail.memory.pointer cimport BlockFinalizer

cdef extern from "Python.h":
    PyObject* PyList_GET_ITEM(list, Py_ssize_t)  # borrowed
    Py_ssize_t PyList_GET_SIZE(list)
    void Py_SET_SIZE(list, Py_ssize_t)
    void Py_DECREF(PyObject*)
    long long PyLong_AsLongLongAndOverflow(object, int*) noexcept

cpdef enum:  # see `fast_path.py`
    IDLE
    BUSY
    BROKEN

cdef int UNUSED = blocks.UNUSED, LIVE = blocks.LIVE
cdef Py_ssize_t BLOCK_ALIGNMENT = blocks.BLOCK_ALIGNMENT
cdef long long NBYTES_MAX = 1 << 62  # no device has as much; rounding up does not overflow


@cython.final
cdef class FastPath:
    """The lock, the freed blocks, the default stream's pool and the statistics of an allocator."""

    def __init__(self, device, slow):
        self.device, self.slow = device, slow
        self.lock, self.state = Lock(), IDLE
        self.freed = []
        self.pool = Pool(None)
        self.live_bytes = self.peak_bytes = self.allocations = self.frees = 0

    cpdef DataPtr allocate(self, object nbytes, object stream=None):
        """Allocate `nbytes` for a stream. Zero bytes get a block, too, so every handle is valid."""
        cdef DataPtr ptr = DataPtr.__new__(DataPtr)
        cdef MemoryBlock block
        cdef int overflow
        cdef Py_ssize_t size
        if type(nbytes) is not int:
            nbytes = integer("allocate", nbytes, "nbytes", 0)
        size = PyLong_AsLongLongAndOverflow(nbytes, &overflow)  # -1 if it overflows
        if not 0 <= size <= NBYTES_MAX:
            nbytes = integer("allocate", nbytes, "nbytes", 0)
            rounded = -(-nbytes // BLOCK_ALIGNMENT) * BLOCK_ALIGNMENT
            return self._allocate_locked(ptr, nbytes, rounded, stream)
        size = (size + BLOCK_ALIGNMENT - 1) & -BLOCK_ALIGNMENT or BLOCK_ALIGNMENT
        if self.state == IDLE and stream is None and self.tracer is None:
            if self.freed:
                block = <MemoryBlock>PyList_GET_ITEM(self.freed, PyList_GET_SIZE(self.freed) - 1)
                if block.size == size and self._is_reusable(block):  # as in loops
                    _drop_last(self.freed)
                    self._take_back(block)
                    self._hand_out(ptr, block, nbytes)
                    return ptr
                self._drain_bins()
            stack = self.pool.bins.get(size)
            if stack:
                block = (<list>stack).pop()
                self._hand_out(ptr, block, nbytes)
                return ptr
        return self._allocate_locked(ptr, nbytes, size, stream)

    cdef bint _is_reusable(self, MemoryBlock block) noexcept:
        """Return True if the default stream may use a freed block, unmerged."""
        return (
            block.streams is None
            and block.bin is not None
            and block.segment.pool is self.pool
        )

    cdef void _hand_out(self, DataPtr ptr, MemoryBlock block, object nbytes) noexcept:
        """Give a block to the pointer, make it LIVE and count it."""
        ptr._handle, ptr.offset, ptr.nbytes = block.handle, block.offset, nbytes
        ptr.device, ptr.context = self.device, block
        ptr.give_back, block.state = block.finalizer, LIVE
        if block.finalizer is not None:
            ptr._known_address = (<BlockFinalizer>block.finalizer).host_address
            ptr._sum = (<BlockFinalizer>block.finalizer).sum
        self.allocations += 1
        self.live_bytes += block.size
        if self.live_bytes > self.peak_bytes:
            self.peak_bytes = self.live_bytes

    cdef DataPtr _allocate_locked(self, DataPtr ptr, object nbytes, object size, object stream):
        """Allocate in any case: `allocate` of `fast_path.py`."""
        cdef MemoryBlock block
        cdef Pool pool
        cdef int state
        with self.lock:
            state = self.state
            if state == BUSY:
                return self.slow._allocate_uncached(nbytes)
            self.state = BUSY
            try:
                if state == BROKEN:
                    self.slow._recover()
                self.drain()
                pool = self.pool if stream is None else self.slow._pool(stream)
                stack = pool.bins.get(size)
                block = stack.pop() if stack else self.slow._allocate_slow(pool, size)
                give_back = None if self.tracer is None else self.tracer.record_allocation(block)
                self._hand_out(ptr, block, nbytes)
                if give_back is not None:
                    ptr.give_back = give_back
            except BaseException:
                self.state = BROKEN
                raise
            self.state = IDLE
        return ptr

    cdef _drain_bins(self):
        """Take back freed blocks, the latest first, up to one that does not go into a bin."""
        cdef MemoryBlock block
        freed = self.freed
        while freed:
            block = freed[-1]
            if block.streams is not None or block.bin is None:
                return
            freed.pop()
            self._take_back(block)
            block.bin.append(block)

    cdef void _take_back(self, MemoryBlock block) noexcept:
        """Make a freed block UNUSED and count the free."""
        block.state = UNUSED
        self.live_bytes -= block.size
        self.frees += 1

    cpdef drain(self):
        """Take back the freed blocks. The caller holds the lock."""
        cdef MemoryBlock block
        freed = self.freed
        while freed:
            block = freed[0]
            if block.streams is not None:
                self.slow._defer_free(block)
                continue
            if self.tracer is not None:
                self.tracer.record_free(block)
            self._take_back(block)
            del freed[0]
            if block.bin is not None:
                block.bin.append(block)
            else:
                block.segment.pool.insert(block)

    def finalizer(self, block):
        """Return the finalizer of a block's pointers."""
        return _Finalizer(self.freed, block)


cdef inline void _drop_last(list stack) noexcept:
    """Drop the last block and keep the list's capacity for the next one."""
    cdef Py_ssize_t n = PyList_GET_SIZE(stack) - 1
    cdef PyObject* last = PyList_GET_ITEM(stack, n)
    Py_SET_SIZE(stack, n)
    Py_DECREF(last)


@cython.final
@cython.no_gc_clear  # in a cycle the collector may clear it before the pointer that calls it
cdef class _Finalizer(BlockFinalizer):
    """A function that appends a block to a list of freed ones."""

    cdef list freed
    cdef MemoryBlock block

    def __cinit__(self, list freed, MemoryBlock block):
        self.freed, self.block = freed, block

    cdef int run(self) except -1:
        self.freed.append(self.block)
        return 0

    def __call__(self, context=None):  # a pointer's deleter gets its context, which is the block
        self.run()
