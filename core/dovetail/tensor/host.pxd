# The C types of `host.py`.
cimport cython

from dovetail.engine.evaluate cimport evaluate as evaluate_nodes
from dovetail.graph.expr cimport Expr, Spec, leaf, node, spec, storage_of
from dovetail.memory.pointer cimport DataPtr
from dovetail.memory.storage cimport Storage, storage_over
from dovetail.plugins.device_handle cimport OpenedDevice
from dovetail.records cimport DeviceRecord, DTypeRecord, Flags
from dovetail.tensor.c_fields cimport expr_of, is_strided
from dovetail.tensor.host_read cimport array_over, copy_array, element
from dovetail.tensor.tensor cimport create_tensor

cdef Flags flags


@cython.locals(e=Expr, storage=Storage, device=OpenedDevice, ptr=DataPtr)
cpdef host_array(object x, object dtype, bint writable=*)
@cython.locals(s=Spec, storage=Storage)
cpdef _view_leaf(Expr e, object address, object dtype, object owner)
@cython.locals(e=Expr, ptr=DataPtr, where=OpenedDevice)
cpdef from_host(object values, DTypeRecord dtype, DeviceRecord device)


@cython.locals(e=Expr, pending=Expr)
cpdef Expr evaluate_leaf(object x)
@cython.locals(e=Expr, s=Spec)
cpdef _single_element(object x, object op=*)
@cython.locals(storage=Storage, device=OpenedDevice, ptr=DataPtr)
cpdef _host_address(Expr e)
@cython.locals(ptr=DataPtr, device=OpenedDevice, storage=Storage)
cpdef Expr allocate_leaf(Spec s)
