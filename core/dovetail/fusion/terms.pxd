# What the compiled form of `terms.py` knows of its types: the source is the same.
cimport cython

from dovetail.fusion.groups cimport Access, Group, Term


cdef class Draft:
    cdef public Group group
    cdef public object node
    cdef public bint in_chunks
    cdef public Py_ssize_t size
    cdef public set seen


@cython.locals(known=Term)
cpdef object term(object d, object i, tuple path, Draft draft)
