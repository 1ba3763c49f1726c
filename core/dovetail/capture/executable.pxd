# The C types of `executable.py`.
cimport cython

from dovetail.capture.replay cimport Replayer
from dovetail.graph.expr cimport Expr, Spec, leaf, readers
from dovetail.memory.pointer cimport DataPtr
from dovetail.memory.storage cimport Storage, storage_over
from dovetail.plugins.device_handle cimport Opened
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport alias, expr_of
from dovetail.tensor.host cimport evaluated
from dovetail.tensor.tensor cimport make


cdef Flags flags


cdef class ClosureRead:
    cdef public Py_ssize_t parent
    cdef public Py_ssize_t argument
    cdef public object root
    cdef public object key
    cdef public bint is_item
    cdef public int check
    cdef public object expected
    cdef public Py_ssize_t same_as
    cdef public Py_ssize_t length
    @cython.locals(check=int)
    cpdef bint accepts(self, value, list values, leaves) except -1


cdef class InputSlot:
    cdef public Py_ssize_t argument
    cdef public Py_ssize_t gradient_of
    cdef public Py_ssize_t read
    cdef public Spec spec
    cdef public tuple strides
    cdef public object itemsize
    cdef public bint taped
    cdef public int gradient
    cpdef begin(self, Expr e)


cdef class Overlap:
    cdef public Py_ssize_t slot
    cdef public Py_ssize_t base
    cdef public object distance


cdef class Inputs:
    cdef public Py_ssize_t count
    cdef public object tree
    cdef public object settings
    cdef public object device
    cdef public Opened opened
    cdef public list statics
    cdef public list floats
    cdef public list reads
    cdef public list slots
    cdef public Py_ssize_t taped
    cdef public list overlaps
    cdef public list given
    cdef public list written
    @cython.locals(i=Py_ssize_t)
    cpdef bint match(self, leaves, tree, settings) except -1
    @cython.locals(slot=InputSlot, e=Expr)
    cpdef bint read(self, leaves, list tensors, list exprs) except -1
    @cython.locals(r=ClosureRead, values=list)
    cpdef list read_closure(self, leaves)
    @cython.locals(
        o=Overlap, e=Expr, base=Expr, slot=InputSlot, first=InputSlot, storage=Storage,
        n=Py_ssize_t, k=Py_ssize_t
    )
    cpdef bint _share_memory_alike(self, list tensors, list exprs) except -1
    @cython.locals(e=Expr, k=Py_ssize_t)
    cpdef bint _overlaps_another(self, Storage storage, list exprs) except -1


cdef class BoundProgram:
    cdef public str name
    cdef public object device
    cdef public Opened opened
    cdef public list numbers
    cdef public list formulas
    cdef public tuple constants
    cdef public list constants_at
    cdef public list written_constants
    cdef public list sizes
    cdef public Replayer replay
    @cython.locals(env=list, i=Py_ssize_t, variable=Py_ssize_t)
    cpdef list numbers_of(self, leaves, list floats)
    @cython.locals(
        e=Expr, slot=InputSlot, ptr=DataPtr, storage=Storage, at=list, pointers=list, n=Py_ssize_t
    )
    cpdef list run(self, Inputs inputs, list exprs, list env, stream)
    cpdef _take_over(self, list storages, stream)


cdef class OutputSlot:
    cdef public Spec spec
    cdef public tuple strides
    cdef public object offset
    cdef public bint hidden
    cdef public Py_ssize_t same
    cdef public Py_ssize_t source
    cdef public Storage constant
    cdef public Py_ssize_t new
    cdef public Py_ssize_t earlier


cdef class Outputs:
    cdef public object device
    cdef public list slots
    cdef public list gradients
    cdef public list values
    cdef public int form
    cdef public object containers
    cdef public object attach_gradients
    @cython.locals(
        new=list, outputs=list, slot=OutputSlot, e=Expr, n=Py_ssize_t, k=Py_ssize_t,
        result=Py_ssize_t, variable=Py_ssize_t
    )
    cpdef make(self, Inputs inputs, list tensors, list exprs, list env, list pointers)
    @cython.locals(e=Expr, source=InputSlot, storage=Storage)
    cpdef _view(
        self, OutputSlot slot, Inputs inputs, list tensors, list exprs, list new, list made
    )


cdef class Executable:
    cdef public Inputs inputs
    cdef public BoundProgram program
    cdef public Outputs outputs
    cpdef run(self, leaves, tree, settings)
    @cython.locals(tensors=list, exprs=list, pointers=list)
    cpdef run_with(self, leaves, list env, settings)


cpdef bint is_taped(x) except -1
cpdef about_to_write(Storage storage)
cpdef has_written(name, Storage storage)


cdef class RecentExecutables:
    cdef object __weakref__
    cdef public object _function
    cdef public tuple _latest
