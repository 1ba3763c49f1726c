# The C types of `executable.py`.
cimport cython

from dovetail.capture.replay cimport Replayer
from dovetail.graph.expr cimport Expr, Spec, leaf, find_readers
from dovetail.memory.pointer cimport DataPtr
from dovetail.memory.storage cimport Storage, storage_over
from dovetail.plugins.device_handle cimport OpenedDevice
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport record_alias, expr_of, is_strided, set_class
from dovetail.tensor.host cimport evaluate_leaf
from dovetail.tensor.tensor cimport create_tensor


cdef Flags flags


cdef class ClosureRead:
    cdef public Py_ssize_t parent
    cdef public Py_ssize_t argument
    cdef public object root
    cdef public object key
    cdef public bint is_item
    cdef public int check
    cdef public object expected
    cdef public object key_of
    cdef public Py_ssize_t same_index
    cdef public Py_ssize_t length
    cdef public list items
    @cython.locals(check=int)
    cpdef bint accepts(self, value, list values, leaves) except -1
    @cython.locals(i=Py_ssize_t, items=list)
    cpdef bint _has_same_items(self, value) except -1


cdef class InputSlot:
    cdef public Py_ssize_t argument
    cdef public Py_ssize_t gradient_of
    cdef public Py_ssize_t read
    cdef public Spec spec
    cdef public tuple strides
    cdef public object itemsize
    cdef public bint requires_grad
    cdef public int has_gradient
    cdef public object kind
    cpdef begin(self, Expr e)


cdef class SlotOverlap:
    cdef public Py_ssize_t slot
    cdef public Py_ssize_t base
    cdef public object distance


cdef class Inputs:
    cdef public Py_ssize_t count
    cdef public object tree
    cdef public object settings
    cdef public object device
    cdef public OpenedDevice opened
    cdef public list statics
    cdef public list floats
    cdef public list reads
    cdef public list slots
    cdef public Py_ssize_t taped_count
    cdef public list overlaps
    cdef public list program_slots
    cdef public list written_slots
    @cython.locals(i=Py_ssize_t)
    cpdef bint match(self, leaves, tree, settings) except -1
    @cython.locals(slot=InputSlot, e=Expr)
    cpdef bint read_tensors(self, leaves, list tensors, list exprs) except -1
    @cython.locals(r=ClosureRead, values=list)
    cpdef list read_closure(self, leaves)
    @cython.locals(
        o=SlotOverlap, e=Expr, base=Expr, slot=InputSlot, first=InputSlot, storage=Storage,
        n=Py_ssize_t, k=Py_ssize_t
    )
    cpdef bint _matches_aliasing(self, list tensors, list exprs) except -1
    @cython.locals(e=Expr, k=Py_ssize_t)
    cpdef bint _overlaps_another(self, Storage storage, list exprs) except -1


cdef class BoundProgram:
    cdef public str name
    cdef public object device
    cdef public OpenedDevice opened
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
    cpdef _prepare_inputs(self, list storages, stream)


cdef class OutputSlot:
    cdef public Spec spec
    cdef public tuple strides
    cdef public object offset
    cdef public bint is_saved
    cdef public Py_ssize_t input_slot
    cdef public Py_ssize_t base_slot
    cdef public Storage constant
    cdef public Py_ssize_t allocation
    cdef public Py_ssize_t earlier_output
    cdef public object kind
    cdef public bint is_number


cdef class Outputs:
    cdef public object device
    cdef public list slots
    cdef public list gradients
    cdef public list values
    cdef public int result_form
    cdef public object containers
    cdef public object attach_gradients
    @cython.locals(
        new=list, outputs=list, slot=OutputSlot, e=Expr, n=Py_ssize_t, k=Py_ssize_t,
        result=Py_ssize_t, variable=Py_ssize_t
    )
    cpdef build_result(self, Inputs inputs, list tensors, list exprs, list env, list pointers)
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
    cpdef run_with_numbers(self, leaves, list env, settings)


cpdef bint has_taped_alias(x) except -1
cpdef evaluate_readers(Storage storage)
cpdef finish_write(name, Storage storage)


cdef class RecentExecutables:
    cdef object __weakref__
    cdef public object _function
    cdef public tuple _recent
