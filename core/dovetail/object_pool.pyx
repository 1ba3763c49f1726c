"""Memory of objects that come and go all the time, kept for the next ones: `object_pool.py`, compiled.

A class's own `tp_alloc` and `tp_free` do it, so that it does not matter who makes objects or ends
them. Objects of derived classes have the usual ones.
"""

cdef extern from *:
    """
    #include <stdint.h>
    #define DOVETAIL_MOST 64 /* objects of a class */
    #define DOVETAIL_CLASSES_MAX 8

    typedef struct {
        PyTypeObject *type;
        int count;
        PyObject *free[DOVETAIL_MOST];
    } dovetail_freelist;

    static dovetail_freelist dovetail_lists[DOVETAIL_CLASSES_MAX];

    static PyObject *dovetail_make(dovetail_freelist *list, PyTypeObject *type, Py_ssize_t n) {
        if (type != list->type || list->count == 0)
            return PyType_GenericAlloc(type, n);
        PyObject *o = list->free[--list->count];
        memset(o + 1, 0, (size_t)type->tp_basicsize - sizeof(PyObject));
    #ifdef Py_REF_DEBUG
        PyObject_Init(o, type);
    #else /* the class is still in the object */
        if (type->tp_flags & Py_TPFLAGS_HEAPTYPE)
            Py_INCREF(type);
        Py_SET_REFCNT(o, 1);
    #endif
        ((uintptr_t *)o)[-1] &= ~(uintptr_t)1; /* _gc_prev: not finalized, as a new object */
        PyObject_GC_Track(o);
        return o;
    }

    static void dovetail_release(dovetail_freelist *list, PyObject *o) {
        if (Py_TYPE(o) == list->type && list->count < DOVETAIL_MOST)
            list->free[list->count++] = o;
        else
            PyObject_GC_Del(o);
    }

    #define DOVETAIL_KEEPS(k)                                              \\
        static PyObject *dovetail_make_##k(PyTypeObject *type, Py_ssize_t n) { \\
            return dovetail_make(&dovetail_lists[k], type, n);             \\
        }                                                                  \\
        static void dovetail_release_##k(void *o) {                        \\
            dovetail_release(&dovetail_lists[k], (PyObject *)o);           \\
        }
    DOVETAIL_KEEPS(0) DOVETAIL_KEEPS(1) DOVETAIL_KEEPS(2) DOVETAIL_KEEPS(3)
    DOVETAIL_KEEPS(4) DOVETAIL_KEEPS(5) DOVETAIL_KEEPS(6) DOVETAIL_KEEPS(7)

    static const allocfunc dovetail_makers[] = {
        dovetail_make_0, dovetail_make_1, dovetail_make_2, dovetail_make_3,
        dovetail_make_4, dovetail_make_5, dovetail_make_6, dovetail_make_7};
    static const freefunc dovetail_releasers[] = {
        dovetail_release_0, dovetail_release_1, dovetail_release_2, dovetail_release_3,
        dovetail_release_4, dovetail_release_5, dovetail_release_6, dovetail_release_7};

    static int dovetail_keep(int k, PyTypeObject *type) {
        if (type->tp_itemsize != 0 || !PyType_IS_GC(type))
            return 0;
        dovetail_lists[k].type = type;
        type->tp_alloc = dovetail_makers[k];
        type->tp_free = dovetail_releasers[k];
        return 1;
    }
    """
    ctypedef struct PyTypeObject:
        pass
    int CLASSES_MAX "DOVETAIL_CLASSES_MAX"
    bint _keep "dovetail_keep"(int k, PyTypeObject* kind)

cdef int _kept = 0


cpdef pool_objects(object kind):
    """Keep the memory of dead objects of a class for new ones; do nothing after eight classes."""
    global _kept
    if _kept == CLASSES_MAX:
        return
    if not _keep(_kept, <PyTypeObject*>kind):
        raise AssertionError(f"{kind.__name__}: its objects differ in size")
    _kept += 1
