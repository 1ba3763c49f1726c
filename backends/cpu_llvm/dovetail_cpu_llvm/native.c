/* The compiled module of the backend: the thread pool and bound launches. `native.py` loads it. */

#include <Python.h>

#include "pool.c"

#include "launch.c"

static PyObject *init(PyObject *module, PyObject *args)
{
    Py_ssize_t pool, workers;
    if (!PyArg_ParseTuple(args, "nn", &pool, &workers))
        return NULL;
    pool_init((struct pool *)pool, workers);
    Py_RETURN_NONE;
}

static PyObject *resize(PyObject *module, PyObject *args)
{
    Py_ssize_t pool, workers;
    if (!PyArg_ParseTuple(args, "nn", &pool, &workers))
        return NULL;
    pool_resize((struct pool *)pool, workers);
    Py_RETURN_NONE;
}

static PyObject *work(PyObject *module, PyObject *args)
{
    Py_ssize_t pool, id;
    if (!PyArg_ParseTuple(args, "nn", &pool, &id))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    pool_work((struct pool *)pool, id); /* which does not return */
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"bind_launch", bind_launch, METH_O, "bind_launch((block, ...)): return a bound launch."},
    {"bind_sequence", bind_sequence, METH_O, "bind_sequence((block, ...)): return a replay."},
    {"init", init, METH_VARARGS, "init(pool, workers): initialize a pool at an address."},
    {"resize", resize, METH_VARARGS, "resize(pool, workers): set how many workers take part."},
    {"work", work, METH_VARARGS, "work(pool, id): run a worker in this thread, for ever."},
    {NULL, NULL, 0, NULL},
};

#define FIELD(name) #name, (Py_ssize_t)(offsetof(struct pool, name) / 8)
#define SEAT(name) #name, (Py_ssize_t)(offsetof(struct pool, seats[0].name) / 8)

static int execute(PyObject *module)
{
    /* for tests: where the 8-byte words of a pool are; those of seats repeat every 16 */
    PyObject *words = Py_BuildValue(
        "{sn,sn,sn,sn,sn,sn,sn,sn,sn,sn,sn,sn}", FIELD(generation), FIELD(sleepers),
        FIELD(inside), FIELD(last), FIELD(owed), FIELD(until), FIELD(probed), FIELD(distance),
        FIELD(is_far), SEAT(next), SEAT(thread), SEAT(moved));
    PyObject *entry = PyLong_FromVoidPtr((void *)enter_launch);
    int failed = words == NULL || entry == NULL;
    failed = failed || PyModule_AddObjectRef(module, "words", words);
    failed = failed || PyModule_AddObjectRef(module, "entry", entry);
    Py_XDECREF(words);
    Py_XDECREF(entry);
    if (failed || PyModule_AddIntConstant(module, "size", sizeof(struct pool)) ||
        PyModule_AddIntConstant(module, "alignment", LINE) ||
        PyModule_AddIntConstant(module, "threads_max", THREADS_MAX) ||
        PyModule_AddIntConstant(module, "owed_operations_max", OWED_OPERATIONS_MAX) ||
        PyModule_AddIntConstant(module, "far_ns", FAR_NS) ||
        PyModule_AddIntConstant(module, "near_ns", NEAR_NS) ||
        PyModule_AddIntConstant(module, "has_affinity", HAS_AFFINITY))
        return -1;
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_native", .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
