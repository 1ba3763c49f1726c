cimport cython

from cpython.object cimport PyObject
from dovetail.engine.launching cimport BoundPlan, BoundKernel
from dovetail.graph.expr cimport Expr
from dovetail.locks cimport Lock
from dovetail.memory.pointer cimport DataPtr
from dovetail.plugins.device_handle cimport OpenedDevice


ctypedef int (*Entry)(const char*, const long long*, PyObject**) noexcept  # -1: an error is set


cdef struct Node:
    PyObject* op  # null: a leaf
    PyObject* spec
    PyObject* dtype
    Py_ssize_t codes  # in _codes, of a shape class: those of the shape, then those of the strides
    Py_ssize_t rank
    int kind  # of the attrs
    PyObject* attrs
    PyObject* strides  # of a leaf; for a leaf over a lazy storage, its moves
    Py_ssize_t source  # position of the node that fills a lazy storage; else -1
    Py_ssize_t args  # index of its first argument in _args
    Py_ssize_t count  # number of arguments
    Py_ssize_t number  # index of its first scalar
    Py_ssize_t uses
    int referenced  # 1 if referenced from outside, else 0; -1: not checked


cdef struct Act:  # a step; each pair is a range of _words: its start and its length
    PyObject* step
    bint special
    bint checked  # checks indices
    bint call  # a library call
    Py_ssize_t fresh
    Py_ssize_t fresh_count
    Py_ssize_t drops
    Py_ssize_t drop_count
    Py_ssize_t picked
    Py_ssize_t picked_count
    Py_ssize_t scalars
    Py_ssize_t scalar_count
    Py_ssize_t shifts  # pairs: the position of an address, and the bytes to add
    Py_ssize_t shift_count
    Entry entry  # the C function of the launch, or null, and its first argument
    const char* block


@cython.final
cdef class FlatPlan:
    cdef list _alive  # owners of the objects behind the borrowed pointers
    cdef Py_ssize_t _count
    cdef Py_ssize_t* _leaves
    cdef Py_ssize_t _leaf_count
    cdef Py_ssize_t _numbers
    cdef Act* _acts
    cdef Py_ssize_t _act_count
    cdef Py_ssize_t* _words
    cdef PyObject** _bytes  # for words that are slots to allocate: the size in bytes
    cdef Py_ssize_t _slots
    cdef Py_ssize_t _kept
    cdef Py_ssize_t _kept_count
    cdef BoundPlan _plan
    cdef OpenedDevice _opened
    cdef bint _is_single  # one kernel with a C function, which writes one result at most
    cdef _flatten(self, BoundPlan plan)
    cdef _launch(self, PyObject** matched, PyObject** numbers, Expr target)
    cdef _launch_single(self, PyObject** matched, PyObject** numbers, Expr target)
    cdef DataPtr _memory(self, Py_ssize_t k, object stream)
    cdef _launch_listed(self, PyObject** matched, PyObject** numbers, Expr target)
    cdef _allocate(self, Act* act, PyObject** at, PyObject** keep, object stream)
    cdef _launch_by_entry(self, Act* act, PyObject** at, PyObject** numbers)
    cdef int _enter(self, Act* act, long long* addresses, PyObject** numbers) noexcept
    cdef _raise_entry_error(self, Act* act)
    cdef _raise_launch_error(self, Act* act, object error)
    cdef _run(self, Act* act, PyObject** at, PyObject** numbers, object stream)
    cdef _run_special(self, Act* act, PyObject** at, object stream)
    cdef _run_checked(
        self, Act* act, PyObject** at, PyObject** matched, PyObject** numbers, object stream
    )
    cdef _record_stream(self, PyObject** matched, Expr target, object stream)


@cython.final
cdef class CachedGraph:
    cdef list _alive  # owners of the objects behind the borrowed pointers
    cdef Node* _nodes
    cdef Py_ssize_t _count
    cdef Py_ssize_t* _args
    cdef PyObject** _types
    cdef Py_ssize_t* _leaves
    cdef int* _over  # of each leaf: 1 if it overlapped the target, 2 if it was the target itself
    cdef Py_ssize_t _leaf_count
    cdef Py_ssize_t* _lazy  # leaves over lazy storages
    cdef Py_ssize_t _lazy_count
    cdef Py_ssize_t _numbers
    cdef Py_ssize_t _root
    cdef tuple _other_roots  # positions of the other roots
    cdef tuple _shared  # positions of nodes that share their arguments with an earlier one
    cdef long long* _codes  # of a shape class
    cdef Py_ssize_t _target_codes
    cdef Py_ssize_t _target_rank
    cdef Py_ssize_t _sizes  # number of distinct sizes
    cdef public object shape_class  # None: the graph matches graphs of the same sizes
    cdef BoundPlan _plan
    cdef FlatPlan _flat
    cdef OpenedDevice _opened
    cdef public bint overlaps
    cdef bint _needs_temp
    cpdef int run(self, Expr root, Expr target, bint reports_checks, other_roots=*) except -1
    cdef FlatPlan _find_variant(self, PyObject** matched, long long* sizes)
    cdef bint _matches_others(
        self, others, PyObject** matched, PyObject** numbers, long long* sizes
    ) except -1
    cdef bint _matches_node(
        self, Py_ssize_t i, Expr e, PyObject** matched, PyObject** numbers, long long* sizes
    ) except -1
    cdef bint _matches_memory(self, PyObject** matched, Expr target) except -1
    cdef bint _has_failed_checks(self, PyObject** matched, Expr target) except -1
    cdef bint _matches_references(self, PyObject** matched) noexcept
    cdef bint _has_same_sharing(self, PyObject** matched) except -1
    cdef bint _matches_lazy_references(self, PyObject** matched) noexcept


cpdef bint run_first_match(Lock lock, tuple graphs, Expr root) except -1
