# The C types of `expr.py`.
cimport cython

from dovetail.graph.alias_analysis cimport are_disjoint
from dovetail.locks cimport Lock
from dovetail.graph.weak_refs cimport append_weakly, live_refs, referent, weakly
from dovetail.memory.storage cimport Storage
from dovetail.records cimport DeviceRecord, DTypeRecord


@cython.final
cdef class Spec:
    cdef object __weakref__
    cdef public tuple shape
    cdef public DTypeRecord dtype
    cdef public DeviceRecord device
    cdef public Py_ssize_t itemsize
    cdef public object nbytes
    cdef public object size
    cdef public object sized
    cdef public tuple strides


@cython.final
cdef class Expr:
    cdef object __weakref__
    cdef public object op
    cdef public tuple args
    cdef public object attrs
    cdef public Spec spec
    cdef public Py_ssize_t depth
    cdef public Storage storage
    cdef public tuple strides
    cdef public Py_ssize_t offset
    cdef public tuple moves
    cdef public object tape
    cdef public object watch
    cdef public list readers
    cdef public object check_line


cdef Lock _log_lock
cdef list _checking_nodes
cdef list _rematerialized_nodes
cdef list _pending_log
cdef Py_ssize_t _pending_log_limit
cdef list _constant_log
cdef Py_ssize_t _constant_log_limit
cdef Py_ssize_t _registered_count
cdef Py_ssize_t _unregistered_max

cpdef Spec spec(tuple shape, object dtype, object device, object op=*)
@cython.locals(e=Expr, x=Expr, depth=Py_ssize_t, taped=bint)
cpdef Expr node(object op, tuple args, Spec spec, object attrs=*)
@cython.locals(e=Expr, x=Expr, depth=Py_ssize_t)
cpdef Expr binary_node(object op, Expr a, object b, Spec spec)
cpdef log_constant(Expr e)
@cython.locals(visited=set, stack=list, a=Expr, storage=Storage)
cpdef bint reads_exported(Expr e) except -1
@cython.locals(storage=Storage, pending=Expr)
cpdef Storage storage_of(Expr e)
@cython.locals(e=Expr)
cpdef Expr leaf(Storage storage, Spec spec, tuple strides, Py_ssize_t offset, tuple moves=*)
cpdef bint has_rematerialized() noexcept
@cython.locals(e=Expr, visited=set, shared=list, i=Py_ssize_t)
cpdef tuple find_shared_arguments(nodes)
@cython.locals(pending=Expr)
cpdef convert_to_leaf(Expr e, Storage storage)
cpdef mark_index_check(Expr e, object line)
cpdef list find_readers(Storage storage)
@cython.locals(registered=list, e=Expr)
cpdef list _pending_readers(Storage storage)
@cython.locals(storage=Storage, other=Storage)
cpdef bint overlaps(Expr a, Expr b) except -1
@cython.locals(first=Py_ssize_t, e=Expr)
cpdef _register_recent()
@cython.locals(stack=list, a=Expr)
cpdef bint _is_needed_by(Expr e, Expr writer, set needed_by) except -1
@cython.locals(n=Py_ssize_t, i=Py_ssize_t, e=Expr, needed_by=set, storage=Storage, still_pending=list)
cpdef bint _must_recent_node_run_first(Expr target, Expr writer) except -1
@cython.locals(still_pending=list, needed_by=set, needed_by_overlap=set, e=Expr, storage=Storage)
cpdef bint has_other_reader(Expr target, Expr writer) except -1
cpdef bint has_no_reader(Storage storage) except -1
@cython.locals(n=Py_ssize_t, i=Py_ssize_t, e=Expr)
cpdef bint _may_unregistered_node_read(Storage storage, Expr writer) except -1
cpdef bint _must_run_before_write(Expr e, Expr target, Expr writer, set needed_by) except -1
@cython.locals(x=Expr)
cpdef bint _reads_directly(Expr e, Storage storage) except -1
@cython.locals(x=Expr)
cpdef bint reads(Expr e, Expr target) except -1
cpdef bint is_disjoint(Expr a, Expr b) except -1
@cython.locals(storage=Storage)
cpdef _register_reader(object r, Expr operand)
@cython.locals(storage=Storage)
cpdef mark_value_overwritten(Expr e, object name)
cpdef mark_overwritten(object owner, object name)
cpdef _value_owner(Expr e)
