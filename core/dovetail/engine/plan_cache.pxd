# The C types of `plan_cache.py`.
cimport cython

from dovetail.engine.graph_matcher cimport CachedGraph
from dovetail.graph.expr cimport Expr
from dovetail.identity_cache cimport IdentityCache
from dovetail.records cimport Flags

cdef Flags flags
cdef IdentityCache _value_graphs, _update_graphs, _referenced_graphs, _joint_graphs


@cython.locals(graph=CachedGraph)
cpdef bint match_cached_graph(Expr root, bint reports_checks=*) except -1
@cython.locals(graph=CachedGraph, root=Expr, candidates=tuple)
cpdef bint match_cached_graphs(list roots, bint reports_checks) except -1
@cython.locals(graph=CachedGraph, outcome=int)
cpdef int try_cached_write(Expr value, Expr target, Py_ssize_t other_references=*) except -1
@cython.locals(graph=CachedGraph, outcome=int)
cpdef int try_cached_update(Expr value, Expr target) except -1
cpdef tuple find_value_graphs(Expr root)
cdef tuple _find_candidates(IdentityCache identity_cache, Expr root, tuple strides, object kind)
cdef tuple _look_up(Expr root, tuple strides, object kind, bint fast_math)
cdef tuple _class_key(Expr root, tuple strides, object kind, bint fast_math)
