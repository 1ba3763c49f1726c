# The C types of `host.py`.
cimport cython

from dovetail.engine.evaluate cimport evaluate as evaluate_nodes
from dovetail.engine.evaluate cimport evaluate_all_readers, evaluate_node
from dovetail.graph.expr cimport Expr, Spec, leaf, node, spec, storage_of
from dovetail.memory.fast_path cimport FastPath
from dovetail.memory.pointer cimport DataPtr
from dovetail.memory.storage cimport Storage, storage_over
from dovetail.plugins.device_handle cimport OpenedDevice
from dovetail.records cimport DeviceRecord, DTypeRecord, Flags
from dovetail.tensor.c_fields cimport expr_of, is_strided
from dovetail.tensor.host_read cimport array_over, copy_array, element, round_number
from dovetail.tensor.tensor cimport create_tensor

cdef Flags flags
cdef object FULL


cpdef bint is_writable(Expr e) except -1
cpdef _numpy_dtype(object x)
@cython.locals(e=Expr, storage=Storage, device=OpenedDevice, ptr=DataPtr)
cpdef host_array(object x, object dtype, bint writable=*, bint may_guard=*)
@cython.locals(s=Spec, storage=Storage, itemsize=Py_ssize_t, low=Py_ssize_t, high=Py_ssize_t, dense=bint)
cpdef _view_leaf(Expr e, object address, object dtype, object owner)
@cython.locals(e=Expr, ptr=DataPtr, where=OpenedDevice)
cpdef from_host(object values, DTypeRecord dtype, DeviceRecord device)


@cython.locals(e=Expr, pending=Expr)
cpdef Expr evaluate_leaf(object x)
@cython.locals(e=Expr, s=Spec, address=Py_ssize_t)
cpdef _single_element(object x, object op=*)
cpdef bint as_bool(object x) except -1
cpdef as_float(object x)
cpdef as_int(object x)
cpdef _require_real(object name, object value)
@cython.locals(storage=Storage, device=OpenedDevice, ptr=DataPtr)
cpdef Py_ssize_t _await_address(Expr e) except -1
@cython.locals(storage=Storage, device=OpenedDevice, start=Py_ssize_t)
cpdef Py_ssize_t reachable_address(Expr e) except -1
@cython.locals(address=Py_ssize_t)
cpdef object number_at_hand(Expr e)
@cython.locals(ptr=DataPtr, device=OpenedDevice, storage=Storage, fast_path=FastPath)
cpdef Expr allocate_leaf(Spec s)
