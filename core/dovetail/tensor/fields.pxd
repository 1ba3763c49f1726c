from dovetail.graph.expr cimport Expr


cpdef Expr expr_of(object x)
cpdef become(object x, Expr e)
cpdef bint is_strided(object x)
cpdef object aliases_of(object x)
cpdef become_alias(object x, object group)
cpdef object made(object kind, Expr e)
