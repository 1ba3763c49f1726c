from dovetail.graph.expr cimport Expr


cpdef Expr expr_of(object x)
cpdef object made(object kind, Expr e)
