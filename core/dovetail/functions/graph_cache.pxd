# Static types of the compiled version of `graph_cache.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, mark_index_check, leaf, node, storage_of
from dovetail.memory.storage cimport Storage
from dovetail.memory.tracing.stacktrace cimport current_line
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport expr_of, is_strided, keep_class
from dovetail.tensor.host cimport allocate_leaf
from dovetail.tensor.tensor cimport create_tensor, create_lazy_storage


cdef Flags flags
cdef list _SEEN_ONCE
cdef list _NOT_REPEATABLE


cdef class NodeTemplate:
    cdef public object op
    cdef public tuple args
    cdef public tuple numbers
    cdef public object attrs
    cdef public Spec spec
    cdef public bint checks_indices
    cdef public bint numbers_only
    cdef public tuple strides
    cdef public Py_ssize_t offset
    cdef public tuple moves


cpdef tuple input_properties(Expr e)
@cython.locals(exprs=list, step=NodeTemplate, storages=dict)
cpdef Expr replay_recipe(list steps, list inputs)
@cython.locals(args=tuple, positions=tuple, e=Expr, k=Py_ssize_t, j=Py_ssize_t, numbered=list)
cpdef Expr _replay_step(NodeTemplate step, list exprs, dict storages)
@cython.locals(moves=tuple, offset=Py_ssize_t)
cpdef Expr _alias_leaf(NodeTemplate step, Expr source, dict storages)


cdef class CachedFunction:
    cdef public object function
    cdef public object templates
    cdef public bint creates
    cdef public bint allocates
    cdef public Py_ssize_t generation
    cdef public object latest
    cdef public dict _young

    cpdef call(self, tuple args, dict options)
    @cython.locals(exprs=list, key=list, whole=tuple, steps=list)
    cpdef tuple call_and_find_template(self, tuple args, dict options)
    @cython.locals(template=list)
    cpdef _call_function(self, tuple args, dict options, tuple key, list exprs, list steps)


cpdef list _key(tuple args, dict options, list exprs, bint creates)
cpdef bint _append_argument(object a, list key, list exprs) except -1
cpdef bint _is_comparable(object a) except -1
@cython.locals(other=Expr, position=Py_ssize_t)
cpdef bint _append_expr(Expr e, list key, list exprs) except -1
