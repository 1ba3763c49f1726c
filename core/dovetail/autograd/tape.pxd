# C declarations for the compiled build of `tape.py`.
cimport cython

from dovetail.functions.graph_cache cimport replay_recipe, input_properties
from dovetail.graph.expr cimport Expr, Spec
from dovetail.tensor.tensor cimport must_evaluate, create_tensor
from dovetail.tensor.c_fields cimport is_strided


cdef class SavedValue:
    cdef public object value
    cdef public object watch


cdef class Edge:
    cdef public Node node
    cdef public SavedValue result


cdef class Node:
    cdef object __weakref__
    cdef public bint accepts_unrounded
    cdef public object recorded_line
    cdef public tuple edges
    cdef public object grad
    cdef public dict hooks
    cdef public object name
    cdef public bint needs_result
    cdef public Py_ssize_t order
    cdef public bint released
    cdef public bint retains_grad
    cdef public Spec spec


cdef class TapeLeaf(Node):
    pass


cdef class OpNode(Node):
    cdef public object attrs
    cdef public dict saved_operands
    cdef public object op
    cdef public tuple operands
    cdef public object result
    cdef public tuple rules
    @cython.locals(operands=list, key=tuple, edge=Edge)
    cpdef object _operand_gradient(self, Py_ssize_t i, object rule, list needs, object mask)
    @cython.locals(key=list, edge=Edge)
    cpdef tuple _template_key(self, Py_ssize_t i, object rule, list needs, list operands)
    cpdef object _rule_argument(self, str name, Py_ssize_t i, object g, SavedValue result)


cpdef SavedValue save_value(object e)
@cython.locals(cost=Py_ssize_t, leaves=set, stack=list, a=Expr)
cpdef bint _is_cheap(Expr e) except -1
cpdef object load_saved(Node node, object what, SavedValue saved)
cpdef Edge edge_to(object e)
cpdef object record_tape(Expr e)
