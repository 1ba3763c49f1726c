# The C types of `evaluate.py`.
cimport cython

from dovetail.locks cimport Lock
from dovetail.engine.plan_cache cimport match_cached_graph, match_cached_graphs, try_cached_write, try_cached_update
from dovetail.graph.expr cimport Expr, has_other_reader, find_readers, reads_exported, storage_of
from dovetail.memory.storage cimport Storage
from dovetail.records cimport Flags

cdef Flags flags
cdef Lock _turn


cpdef evaluate(object exprs, bint reports_checks=*)
cpdef evaluate_and_wait(Expr e)
cdef bint _is_observed() except -1
cpdef Expr _source(Expr e)
@cython.locals(root=Expr)
cpdef _evaluate(object exprs, bint reports_checks)
cpdef write(list value, Expr target, Py_ssize_t other_references=*)
@cython.locals(storage=Storage)
cpdef _write(list value, Expr target, Py_ssize_t other_references)
cpdef update(Expr value, Expr target)
@cython.locals(storage=Storage)
cpdef _update_memory(Expr value, Expr target)
@cython.locals(pending=Expr)
cpdef Storage _prepare_storage(Expr target)
cpdef _wait_if_visible(Storage storage)
