# What the compiled form of `calls.py` knows of its types.
cimport cython

from dovetail.capture.replay cimport Replayer
from dovetail.graph.expr cimport Expr, Spec, leaf, readers
from dovetail.memory.pointer cimport DataPtr
from dovetail.memory.storage cimport Storage, storage_over
from dovetail.plugins.opened cimport Opened
from dovetail.settings cimport Flags
from dovetail.tensor.fields cimport alias, expr_of
from dovetail.tensor.host cimport evaluated
from dovetail.tensor.tensor cimport make


cdef Flags flags


cdef class Read:
    cdef public Py_ssize_t argument
    cdef public int check
    cdef public object expected
    cdef public bint is_item
    cdef public object key
    cdef public Py_ssize_t number
    cdef public Py_ssize_t parent
    cdef public object root
    @cython.locals(check=int)
    cpdef bint holds(self, value, list values, leaves) except -1


cdef class Wanted:
    cdef public Py_ssize_t argument
    cdef public Py_ssize_t gradient_of
    cdef public Py_ssize_t read
    cdef public Spec spec
    cdef public tuple strides
    cdef public object itemsize
    cdef public bint taped
    cdef public int gradient


cdef class Beside:
    cdef public object apart
    cdef public Py_ssize_t base
    cdef public Py_ssize_t tensor


cdef class Given:
    cdef public Py_ssize_t beside
    cdef public Storage held
    cdef public bint hidden
    cdef public Py_ssize_t made
    cdef public object offset
    cdef public Py_ssize_t same
    cdef public Py_ssize_t source
    cdef public Spec spec
    cdef public object start
    cdef public tuple strides


cdef class Call:
    cdef public object around
    cdef public list beside
    cdef public tuple constants
    cdef public Py_ssize_t count
    cdef public object device
    cdef public list floats
    cdef public object flow
    cdef public int form
    cdef public list formulas
    cdef public list given
    cdef public list gradients
    cdef public list held
    cdef public list inputs
    cdef public str name
    cdef public Opened opened
    cdef public list reads
    cdef public Replayer replay
    cdef public object settings
    cdef public list sizes
    cdef public list statics
    cdef public list template
    cdef public Py_ssize_t taped
    cdef public object tree
    cdef public list values
    cdef public list wanted
    cdef public list written
    cdef public list written_held

    cpdef run(self, leaves, tree, settings)
    @cython.locals(tensors=list, exprs=list, w=Wanted, e=Expr, pointers=list)
    cpdef given_numbers(self, leaves, list env, settings)
    @cython.locals(i=Py_ssize_t)
    cpdef bint _is_for(self, leaves, tree, settings) except -1
    @cython.locals(r=Read, values=list)
    cpdef list _closure(self, leaves)
    @cython.locals(e=Expr)
    cpdef _read(self, Wanted w, leaves, list exprs, closure)
    @cython.locals(e=Expr, other=Expr, storage=Storage, k=Py_ssize_t)
    cpdef bint _overlaps_input(self, Py_ssize_t n, list exprs) except -1
    @cython.locals(
        b=Beside, e=Expr, base=Expr, w=Wanted, storage=Storage, n=Py_ssize_t, k=Py_ssize_t
    )
    cpdef bint _is_shared_alike(self, list tensors, list exprs) except -1
    @cython.locals(w=Wanted)
    cpdef _begin(self, Py_ssize_t n, Expr e)
    @cython.locals(env=list, i=Py_ssize_t, variable=Py_ssize_t)
    cpdef list _environment(self, leaves)
    @cython.locals(
        e=Expr, w=Wanted, ptr=DataPtr, storage=Storage, at=list, pointers=list,
        n=Py_ssize_t
    )
    cpdef list _replayed(self, list exprs, list env, stream)
    cpdef _demand(self, list storages, stream)
    @cython.locals(
        new=list, made=list, g=Given, e=Expr, n=Py_ssize_t, k=Py_ssize_t, result=Py_ssize_t,
        variable=Py_ssize_t
    )
    cpdef _result(self, list tensors, list exprs, list env, list pointers)
    @cython.locals(e=Expr, w=Wanted, storage=Storage)
    cpdef _view(self, Given g, list tensors, list exprs, list new, list made)


cpdef bint is_taped(x) except -1
cpdef about_to_write(Storage storage)
cpdef has_written(name, Storage storage)


cdef class Latest:
    cdef object __weakref__
    cdef public object _function
    cdef public tuple _latest
