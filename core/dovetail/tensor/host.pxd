# What the compiled form of `host.py` knows of its types.
cimport cython

from dovetail.engine.evaluate cimport evaluate as evaluate_nodes
from dovetail.graph.expr cimport Expr, leaf, node, spec, storage_of
from dovetail.memory.storage cimport Storage
from dovetail.tensor.fields cimport expr_of
from dovetail.tensor.tensor cimport make


@cython.locals(e=Expr, pending=Expr)
cpdef Expr evaluated(object x)
@cython.locals(storage=Storage)
cpdef _host_address(Expr e)
