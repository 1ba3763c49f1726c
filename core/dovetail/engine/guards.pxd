# What the compiled form of `guards.py` knows of its types.
cimport cython

from dovetail.backend.streams cimport current_handle
from dovetail.engine.events cimport Counters
from dovetail.engine.launching cimport launch
from dovetail.engine.programs cimport BoundPlan
from dovetail.graph.expr cimport Expr, Spec
from dovetail.plugins.opened cimport Opened
from dovetail.graph.ownership cimport is_held_alike
from dovetail.settings cimport Flags

cdef Counters counters
cdef Flags flags
cdef list NO_NUMBERS


cdef class Entry:
    cdef public object op
    cdef public Spec spec
    cdef public object attrs
    cdef public tuple strides
    cdef public tuple args
    cdef public tuple types
    cdef public Py_ssize_t first


cdef class Known:
    cdef public list entries
    cdef public list uses
    cdef public list held
    cdef public list leaves
    cdef public Py_ssize_t numbers
    cdef public Py_ssize_t root
    cdef public BoundPlan plan
    cdef public object target
    cdef public Opened opened
    cdef public bint overlaps


cpdef bint match(Expr root, bint waits=*) except -1
cpdef bint match_into(Expr value, Expr target, Py_ssize_t others=*) except -1
cpdef bint match_update(Expr value, Expr target) except -1
@cython.locals(known=Known, young=dict)
cdef bint run_known(tuple key, Expr root, Expr target, bint waits, Py_ssize_t others=*) except -1
@cython.locals(found=list, numbers=list, leaves=list, i=Py_ssize_t, opened=Opened)
cpdef bint run(Known known, Expr root, Expr target, bint waits) except -1
@cython.locals(entry=Entry, args=tuple, known=tuple, number=Py_ssize_t, k=Py_ssize_t, j=Py_ssize_t)
cpdef bint is_same(list entries, Py_ssize_t i, Expr e, list found, list numbers) except -1
@cython.locals(e=Expr, slot=Py_ssize_t)
cpdef bint is_same_memory(list leaves, Expr t, object known) except -1
@cython.locals(e=Expr)
cpdef bint is_any_bad(list leaves, Expr target) except -1
