# The C types of `evaluate.py`.
cimport cython

from dovetail.locks cimport Lock
from dovetail.engine.plan_cache cimport match, match_all, try_cached_write, try_cached_update
from dovetail.graph.expr cimport Expr, is_read, readers, reads_exported, storage_of
from dovetail.memory.storage cimport Storage
from dovetail.records cimport Flags

cdef Flags flags
cdef Lock _turn


cpdef evaluate(object exprs, bint asked=*)
cpdef finish(Expr e)
cdef bint _is_watched() except -1
cpdef Expr _source(Expr e)
@cython.locals(root=Expr)
cpdef _evaluate(object exprs, bint asked)
cpdef write(list value, Expr target, Py_ssize_t others=*)
@cython.locals(storage=Storage)
cpdef _write(list value, Expr target, Py_ssize_t others)
cpdef update(Expr value, Expr target)
@cython.locals(storage=Storage)
cpdef _update(Expr value, Expr target)
@cython.locals(pending=Expr)
cpdef Storage _in_memory(Expr target)
cpdef _finish_visible(Storage storage)
