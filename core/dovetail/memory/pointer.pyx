"""Pointers: the compiled form of `pointer.py`.

A finalizer in C calls the deleter, so an interrupt cannot come in between.
"""

cimport cython

from cpython.object cimport PyObject

from dovetail.object_pool cimport pool_objects
from dovetail.records cimport Flags

import sys

from ..errors import ArgumentError, process_memory_error
from ..settings import flags as _flags
from .pointer_arguments import (
    check,
    check_deleter,
    is_same_deleter,
    pointer_text,
    split_deleter,
)

cdef extern from *:
    """
    static int dovetail_take_back(PyObject *); /* below */
    static destructor dovetail_clear_pointer; /* Cython's own */

    /* End a pointer. Cython's function saves the current error and makes the object live again
       before a finalizer runs; C code that takes a block back needs neither. */
    static void dovetail_end_pointer(PyObject *pointer) {
        if (!dovetail_take_back(pointer) && !PyObject_GC_IsFinalized(pointer)
            && PyObject_CallFinalizerFromDealloc(pointer) < 0)
            return;
        dovetail_clear_pointer(pointer);
    }

    static void dovetail_end_pointers(PyObject *kind) {
        dovetail_clear_pointer = ((PyTypeObject *)kind)->tp_dealloc;
        ((PyTypeObject *)kind)->tp_dealloc = dovetail_end_pointer;
    }
    """
    void _end_pointers "dovetail_end_pointers"(object kind)

cdef object _is_ending = sys.is_finalizing  # a C global: names of the module are gone at exit

cdef Flags flags = _flags
cdef Py_ssize_t _UNREACHABLE = -2  # of the host

Handle = StreamHandle = Context = Deleter = object


class GivenBack:
    """A stand-in for the copy of a pointer whose memory was freed, for a resurrected owner."""

    def wait(self):
        """Raise ArgumentError."""
        raise ArgumentError(
            "DataPtr: this memory was given back when the garbage collector found its tensor "
            "unreachable, and a finalizer (__del__) then kept the tensor; keep x.copy() instead"
        )


cdef object GIVEN_BACK = GivenBack()


cdef class BlockFinalizer:
    """The base of an allocator's finalizers, which pointers run without a call of Python's.

    It keeps what a pointer to a block has found out, for later pointers to the block.
    """

    cdef int run(self) except -1:
        """Take the block back."""
        return 0


@cython.no_gc_clear  # the deleter must survive until the finalizer has run
cdef class DataPtr:
    """Memory on a device, freed exactly once: when this object dies or is released.

    - `handle`: the backend's handle of the memory.
    - `offset`: the start of the memory in the handle's, in bytes.
    - `nbytes`: the size of the memory.
    - `device`: the device that has the memory.
    - `context`: the argument of `deleter`, any object; it lives as long as the pointer.
    - `deleter`: a function that frees the memory by its context; None if the end of the context
      frees it.

    The ownership can change. Each of these calls is one step, also for threads and Ctrl-C, so the
    memory is freed exactly once: `deleter` can be set, `compare_exchange_deleter` replaces a known
    one, `move_context` moves the ownership to another pointer, `release_context` to the caller. A
    forked process frees its own copy.

    >>> import dovetail as dt
    >>> ptr = dt.memory.get_allocator("reference").allocate(100)
    >>> free = ptr.deleter
    >>> ptr.deleter = lambda context: (print("freed"), free(context))
    >>> ptr.nbytes >= 100, ptr.device_type()
    (True, 'reference')
    >>> ptr.release()
    freed
    """

    def __init__(self, handle, offset, nbytes, device, context=None, deleter=None):
        check(offset, nbytes, device, deleter)
        self._handle = handle
        self.offset = offset
        self.nbytes = nbytes
        self.device = device
        self.context = context
        if deleter is not None:
            self.give_back = _Call(deleter, context)

    cdef inline object address(self):
        if self.copy is not None:
            self.land()
        return self._handle

    cdef long long sum(self) except? -1:
        """Return the sum of handle and offset, which are ints, after a wait as in `address`."""
        if self.copy is not None:
            self.land()
        if self._sum == 0:
            self._sum = <long long>self._handle + <long long>self.offset
            if isinstance(self.give_back, BlockFinalizer):
                (<BlockFinalizer>self.give_back).sum = self._sum
        return self._sum

    cpdef Py_ssize_t _host_address(self, object find) except -1:
        """Return the address where the host reaches the memory; 0 if it does not, or must wait.

        `find`: the backend's function of handle and offset, which is called once.
        """
        if self.copy is not None or self._handle is None:
            return 0
        if self._known_address == 0:
            self._known_address = find(self._handle, self.offset) or _UNREACHABLE
            if isinstance(self.give_back, BlockFinalizer):
                (<BlockFinalizer>self.give_back).host_address = self._known_address
        return 0 if self._known_address == _UNREACHABLE else self._known_address

    @property
    def handle(self):
        """Return the backend's handle, after a wait for a copy that uses the memory."""
        return self.address()

    @handle.setter
    def handle(self, handle):
        self._handle = handle

    def __del__(self):
        # A finalizer (PEP 442): the cycle collector calls it before it clears any object of a
        # cycle. A deleter that is a cleared closure would crash the process.
        give_back, self.give_back = self.give_back, None
        if isinstance(give_back, BlockFinalizer):
            self.copy = GIVEN_BACK
            (<BlockFinalizer>give_back).run()
        elif give_back is not None:
            self.copy = GIVEN_BACK
            try:
                give_back()
            except BaseException:
                if not _is_ending():  # the owner of the memory may be gone by then
                    raise

    def release(self):
        """Free the memory now.

        An error in the deleter is reported, not raised.
        """
        heir = DataPtr(self._handle, self.offset, self.nbytes, self.device)
        heir.give_back, self.give_back, self.copy = self.give_back, None, None
        self.context = None

    def device_type(self):
        """Return the type of the device, such as "cpu"."""
        return self.device.type

    @property
    def deleter(self):
        """The function that frees the memory by its context; None if the end of the context does.

        A deleter that is set replaces the present one, which is not called. So read that first, and
        call it in the new one, or use `compare_exchange_deleter`.
        """
        self.land()
        return _find_deleter(self.give_back)

    @deleter.setter
    def deleter(self, deleter):
        check_deleter("deleter", deleter)
        self.land()
        self.give_back = None if deleter is None else _Call(deleter, self.context)

    def compare_exchange_deleter(self, expected, new):
        """Replace the deleter if it is `expected`, in one step; return True if it was replaced.

        - `expected`: the deleter that `deleter` returned before.
        - `new`: a function that frees the memory by its context, or None.

        Raises: ArgumentTypeError.
        """
        check_deleter("compare_exchange_deleter", new)
        self.land()
        give_back = self.give_back
        successor = None if new is None else _Call(new, self.context)
        is_same = is_same_deleter(_find_deleter(give_back), expected)
        if not is_same or self.give_back is not give_back:
            return False
        self.give_back = successor  # no Python code runs after the comparison
        return True

    def move_context(self):
        """Return a pointer that owns the memory from now on; this one keeps the address only."""
        self.land()
        heir = DataPtr(self._handle, self.offset, self.nbytes, self.device)
        heir.context, heir.give_back = self.context, self.give_back
        self.context = self.give_back = None
        return heir

    def release_context(self):
        """Drop the deleter and the context, and return the context, whose owner is the caller."""
        self.land()
        context, self.context, self.give_back = self.context, None, None
        return context

    def detach(self):
        """Drop the deleter and return the context; the caller frees it by `raw_deallocate`."""
        self.land()
        self.give_back = None
        return self.context

    def depart(self, copy, give_back):
        """Mark host memory as used by a copy, and replace the pointer's deleter by `give_back`.

        Until the copy is complete, the end of this pointer calls `give_back`, and reads of the
        handle wait.

        - `copy`: the copy that uses the memory.
        - `give_back`: a function without arguments that frees the memory.
        """
        self.give_back, self.copy = give_back, copy

    def land(self):
        """Wait until no copy uses the memory; then take the deleter that the copy returns."""
        if self.copy is not None:
            copy = self.copy
            copy.wait()
            self.give_back, self.copy = copy.give_back, None

    def __reduce_ex__(self, protocol):
        raise process_memory_error("a DataPtr")

    def __repr__(self):
        return pointer_text(
            self._handle, self.offset, self.nbytes, self.device, _find_deleter(self.give_back)
        )


cdef int take_back "dovetail_take_back"(PyObject* pointer) noexcept:
    """Take the block of a dead pointer back; return 0 if the pointer has no block."""
    cdef PyObject* give_back = <PyObject*>(<DataPtr>pointer).give_back
    if not isinstance(<object>give_back, BlockFinalizer):
        return 0
    (<BlockFinalizer>give_back).run()
    (<DataPtr>pointer).give_back = None
    return 1


pool_objects(DataPtr)
_end_pointers(DataPtr)


@cython.final
@cython.no_gc_clear  # as a pointer's
cdef class _Call:
    """A deleter and its context: `functools.partial` refers to its own dict, too."""

    cdef object deleter
    cdef object context

    def __init__(self, deleter, context):
        self.deleter, self.context = deleter, context

    def __call__(self):
        self.deleter(self.context)


cdef object _find_deleter(object give_back):
    """Return the deleter of a finalizer without arguments, or None."""
    if isinstance(give_back, _Call):
        return (<_Call>give_back).deleter
    return split_deleter(give_back)


cdef class Export:
    """The owner of a view by which other code may write to a storage.

    While it lives, work that reads the storage is computed at once.
    """

    cdef readonly object storage
    cdef list _exports  # of the storage

    def __init__(self, storage):
        exports = storage.exports
        if exports is None:
            storage.exports = exports = []
        self.storage, self._exports = storage, exports
        self._exports.append(None)
        flags.exports += 1
        flags.depth = 0

    def __del__(self):
        self._exports.pop()
        flags.exports -= 1
