from dovetail.locks cimport Lock

cpdef object weakly(object x)
cpdef append_weakly(list log, object x, Py_ssize_t first, Lock lock)
cpdef object referent(object r)
cpdef list live_refs(list refs)
