# What the compiled form of `graph_cache.py` knows of its types.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, ask, leaf, node, storage_of
from dovetail.memory.storage cimport Storage
from dovetail.memory.tracing.stacktrace cimport line
from dovetail.records cimport Flags
from dovetail.tensor.fields cimport expr_of, is_strided
from dovetail.tensor.tensor cimport make, waiting_storage


cdef Flags flags
cdef list _ONCE
cdef list _NEVER


cdef class Step:
    cdef public object op
    cdef public tuple args
    cdef public tuple numbers
    cdef public object attrs
    cdef public Spec spec
    cdef public bint asks
    cdef public bint plain
    cdef public tuple strides
    cdef public Py_ssize_t offset
    cdef public tuple moves


cpdef tuple described(Expr e)
@cython.locals(
    made=list, step=Step, args=tuple, places=tuple, e=Expr, k=Py_ssize_t, j=Py_ssize_t, storages=dict,
    found=list
)
cpdef Expr again(list steps, list given)
@cython.locals(moves=tuple, offset=Py_ssize_t)
cpdef Expr _seen(Step step, Expr source, dict storages)


cdef class Remade:
    cdef public object function
    cdef public object known
    cdef public bint makes
    cdef public dict _young

    @cython.locals(exprs=list, key=list, whole=tuple, steps=list)
    cpdef given(self, tuple args, dict options)
    @cython.locals(found=list)
    cpdef _made(self, tuple args, dict options, tuple key, list exprs, list steps)


cpdef list _key(tuple args, dict options, list exprs, bint makes)
cpdef bint _is_described(object a, list key, list exprs) except -1
cpdef bint _is_plain(object a) except -1
@cython.locals(other=Expr)
cpdef bint _is_added(Expr e, list key, list exprs) except -1
