from cpython.object cimport PyObject
from dovetail.engine.launching cimport BoundPlan, BoundStep
from dovetail.graph.expr cimport Expr
from dovetail.plugins.opened cimport Opened


ctypedef int (*Entry)(const char*, const long long*, PyObject**) except -1


cdef struct Node:
    PyObject* op  # null: a leaf
    PyObject* spec
    PyObject* attrs
    PyObject* strides  # of a leaf; of one over a storage that waits, its moves
    Py_ssize_t source  # of such a one, what it waits for; else -1
    Py_ssize_t args  # where its arguments begin
    Py_ssize_t count  # how many they are
    Py_ssize_t number  # the first of its numbers
    Py_ssize_t uses
    int held  # -1: not asked


cdef struct Act:  # a step; where what belongs to it begins among the words, and how many they are
    PyObject* step
    bint special
    bint checked  # it notes bad indices
    bint call  # of a vendor's routine
    Py_ssize_t fresh
    Py_ssize_t fresh_count
    Py_ssize_t drops
    Py_ssize_t drop_count
    Py_ssize_t picked
    Py_ssize_t picked_count
    Py_ssize_t scalars
    Py_ssize_t scalar_count
    Entry entry  # of what is launched by a C function, or null; and what that is given
    const char* block


cdef class Known:
    cdef list _alive  # what the pointers point to
    cdef Node* _nodes
    cdef Py_ssize_t _count
    cdef Py_ssize_t* _args
    cdef PyObject** _types
    cdef Py_ssize_t* _leaves
    cdef int* _over  # of each leaf: 1 if it was over what was written, 2 if it was that itself
    cdef Py_ssize_t _leaf_count
    cdef Py_ssize_t* _lazy  # leaves over storages that wait
    cdef Py_ssize_t _lazy_count
    cdef Py_ssize_t _numbers
    cdef Act* _acts
    cdef Py_ssize_t _act_count
    cdef Py_ssize_t* _words
    cdef PyObject** _bytes  # of the words that are slots that get memory: how much
    cdef Py_ssize_t _slots
    cdef Py_ssize_t _kept
    cdef Py_ssize_t _kept_count
    cdef Py_ssize_t _root
    cdef tuple _others  # positions of roots beside it
    cdef BoundPlan _plan
    cdef Opened _opened
    cdef public bint overlaps
    cdef bint _apart
    cpdef int run(self, Expr root, Expr target, bint waits, others=*) except -1
    cdef bint _are_same(self, others, PyObject** found, PyObject** numbers) except -1
    cdef bint _is_same(self, Py_ssize_t i, Expr e, PyObject** found, PyObject** numbers) except -1
    cdef bint _is_same_memory(self, PyObject** found, Expr target)
    cdef bint _is_any_bad(self, PyObject** found, Expr target)
    cdef bint _is_held_alike(self, PyObject** found)
    cdef bint _is_held_alike_lazily(self, PyObject** found)
    cdef _launch(self, PyObject** found, PyObject** numbers, Expr target)
    cdef _launch_listed(self, PyObject** found, PyObject** numbers, Expr target)
    cdef _allocate(self, Act* act, PyObject** at, PyObject** keep, object stream)
    cdef _enter(self, Act* act, PyObject** at, PyObject** numbers)
    cdef _run(self, Act* act, PyObject** at, PyObject** numbers, object stream)
    cdef _run_special(self, Act* act, PyObject** at, object stream)
    cdef _run_checked(
        self, Act* act, PyObject** at, PyObject** found, PyObject** numbers, object stream
    )
    cdef _share(self, PyObject** found, Expr target, object stream)
