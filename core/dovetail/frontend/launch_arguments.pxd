# What the compiled form of `launch_arguments.py` knows of its types.
cimport cython

from dovetail.graph.expr cimport Expr, is_apart, storage_of
from dovetail.memory.storage cimport Storage
from dovetail.settings cimport Flags
from dovetail.tensor.fields cimport Aliases, aliases_of, expr_of, is_strided

cdef Flags flags


@cython.locals(found=list, e=Expr, k=Py_ssize_t, i=Py_ssize_t, group=Aliases, grad=bint)
cpdef list leaves_of(
    object called, object parameters, tuple tensors, tuple written, tuple args
)
@cython.locals(i=Py_ssize_t, j=Py_ssize_t, target=Expr, e=Expr)
cpdef _part(object called, object parameters, tuple tensors, tuple written, list found)
@cython.locals(x=Storage, y=Storage)
cpdef bint _meet(Expr a, Expr b) except -1
