# The C types of `evaluate.py`.
cimport cython

from dovetail.locks cimport Lock
from dovetail.engine.graph_matcher cimport run_first_match
from dovetail.engine.plan_cache cimport find_value_graphs, match_cached_graph, match_cached_graphs, try_cached_write, try_cached_update
from dovetail.graph.expr cimport Expr, has_no_reader, has_other_reader, find_readers, reads_exported, storage_of
from dovetail.memory.storage cimport Storage
from dovetail.plugins.device_handle cimport OpenedDevice
from dovetail.graph.refcount cimport is_sole_owner
from dovetail.records cimport DeviceRecord, Flags

cdef Flags flags
cdef Lock _turn


cpdef evaluate(object exprs, bint reports_checks=*)
cpdef evaluate_all_readers(Storage storage)
cpdef _evaluate_all_readers(Storage storage)
@cython.locals(opened=OpenedDevice)
cpdef _synchronize(DeviceRecord device)
cpdef evaluate_and_wait(Expr e)
cdef bint _is_observed() except -1
cpdef Expr _source(Expr e)
cpdef _evaluate(object exprs, bint reports_checks)
@cython.locals(root=Expr)
cpdef _evaluate_source(Expr e, bint reports_checks)
@cython.locals(root=Expr)
cpdef evaluate_node(Expr e)
cpdef _evaluate_node(Expr e)
cpdef write(list value, Expr target, Py_ssize_t other_references=*)
@cython.locals(storage=Storage)
cpdef _write(list value, Expr target, Py_ssize_t other_references)
cdef bint _is_leaf(Expr e) except -1
cpdef update(Expr value, Expr target)
@cython.locals(storage=Storage)
cpdef _update_memory(Expr value, Expr target)
@cython.locals(pending=Expr)
cpdef Storage _prepare_storage(Expr target)
cpdef wait_for_overlapping(Storage storage)
cpdef bint may_write_at_once(Storage storage) except -1
cpdef _wait_if_visible(Storage storage)
