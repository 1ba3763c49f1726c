# The C types of `plan_cache.py`.
cimport cython

from dovetail.engine.graph_matcher cimport CachedGraph
from dovetail.graph.expr cimport Expr
from dovetail.identity_cache cimport IdentityCache

cdef IdentityCache _values, _updates, _staying, _together


@cython.locals(graph=CachedGraph)
cpdef bint match(Expr root, bint waits=*) except -1
@cython.locals(graph=CachedGraph, root=Expr, candidates=tuple)
cpdef bint match_all(list roots, bint waits) except -1
@cython.locals(graph=CachedGraph, outcome=int)
cpdef int try_cached_write(Expr value, Expr target, Py_ssize_t others=*) except -1
@cython.locals(graph=CachedGraph, outcome=int)
cpdef int try_cached_update(Expr value, Expr target) except -1
cdef tuple _candidates(IdentityCache lately, Expr root, tuple strides, object kind)
