# What the compiled form of `evaluate.py` knows of its types.
cimport cython

from dovetail.backend.streams cimport current_handle
from dovetail.engine.turn cimport Turn
from dovetail.engine.launching cimport addresses, launch
from dovetail.engine.guards cimport match, match_into
from dovetail.graph.expr cimport Expr, readers, settle, storage_of
from dovetail.memory.storage cimport Storage
from dovetail.settings cimport Flags

cdef Flags flags
cdef Turn _turn


cpdef evaluate(object exprs, bint asked=*)
@cython.locals(root=Expr)
cpdef _evaluate(object exprs, bint asked)
@cython.locals(storage=Storage)
cpdef write(list value, Expr target, Py_ssize_t others=*)
cpdef update(Expr value, Expr target)
@cython.locals(pending=Expr)
cpdef Storage _in_memory(Expr target)
cpdef _written(Storage storage)
@cython.locals(found=list)
cpdef bint _read_by_others(Storage storage, Expr value) except -1
