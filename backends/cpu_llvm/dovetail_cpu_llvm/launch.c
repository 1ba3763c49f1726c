/* Bound launches: built-in functions over a block of bytes, which Python packs (launch.py).

   A call takes about 0.1 us. The arguments of a kernel are 8-byte slots: buffer addresses, ints,
   scalars, the extents of the grid, the extents of a tile. They are put together on the caller's
   stack, so launches are reentrant. */

#if defined(_MSC_VER)
#include <malloc.h>
#define STACK_SLOTS(n) ((int64_t *)_alloca((size_t)(n) * 8))
#else
#define STACK_SLOTS(n) ((int64_t *)__builtin_alloca((size_t)(n) * 8))
#endif

enum { INTEGER, FLOAT32, FLOAT64, BOOL }; /* kinds of scalars, as in command_list.py */

/* The block of a launch; the last word of `slots` is followed by the kinds of the scalars. */
struct launch {
    tile_function *function;
    int64_t tiles;
    int64_t how; /* 0: keep the GIL, 1: release it, else: share; then it is a `weight` of pool.py */
    struct pool *pool;
    int64_t buffers, scalars, first_scalar, count;
    int64_t slots[];
};

/* The block of a sequence of launches. These parts follow each other in `parts`: the slots of all
   launches; the numbers of the bases; (slot, base, offset) of each buffer; (slot, kind, variable) of
   each number that changes; (function, tiles, weight or 0, first slot) of each launch. */
struct sequence {
    int64_t slots, bases, buffers, numbers, launches;
    int64_t release; /* 1: release the GIL */
    struct pool *pool;
    int64_t parts[];
};

static const void *block_of(PyObject *self)
{
    return PyBytes_AsString(PyTuple_GetItem(self, 0));
}

/* Return the bits of a number in a slot; the caller looks for an error. */
static int64_t convert(PyObject *number, int64_t kind)
{
    int64_t bits = 0;
    if (kind == FLOAT32) {
        float value = (float)PyFloat_AsDouble(number);
        uint32_t half;
        memcpy(&half, &value, sizeof half);
        bits = half;
    } else if (kind == FLOAT64) {
        double value = PyFloat_AsDouble(number);
        memcpy(&bits, &value, sizeof bits);
    } else if (kind == BOOL)
        bits = PyObject_IsTrue(number);
    else
        bits = (int64_t)PyLong_AsUnsignedLongLongMask(number);
    return bits;
}

static void run(const struct launch *launch, int64_t *slots)
{
    if (launch->how == 0) {
        launch->function(slots, 0, launch->tiles);
        return;
    }
    PyThreadState *thread = PyEval_SaveThread();
    if (launch->how == 1)
        launch->function(slots, 0, launch->tiles);
    else
        pool_share(launch->pool, launch->function, slots, launch->tiles, launch->how);
    PyEval_RestoreThread(thread);
}

/* launch((handle, offset, ...), scalars, stream) */
static PyObject *call_launch(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const struct launch *launch = block_of(self);
    if (count != 3) {
        PyErr_BadArgument();
        return NULL;
    }
    PyObject *places = args[0];
    int64_t *slots = STACK_SLOTS(launch->count);
    memcpy(slots, launch->slots, (size_t)launch->count * 8);
    if (PyTuple_Size(places) != 2 * launch->buffers) {
        if (!PyErr_Occurred())
            PyErr_BadArgument();
        return NULL;
    }
    for (int64_t b = 0; b < launch->buffers; b++)
        slots[b] = PyLong_AsLongLong(PyTuple_GetItem(places, 2 * b)) +
                   PyLong_AsLongLong(PyTuple_GetItem(places, 2 * b + 1));
    if (launch->scalars) {
        const int64_t *kinds = launch->slots + launch->count;
        PyObject *number, *numbers = PySequence_Tuple(args[1]);
        if (numbers == NULL)
            return NULL;
        for (int64_t s = 0; s < launch->scalars && (number = PyTuple_GetItem(numbers, s)); s++)
            slots[launch->first_scalar + s] = convert(number, kinds[s]);
        Py_DECREF(numbers);
    }
    if (PyErr_Occurred())
        return NULL;
    run(launch, slots);
    Py_RETURN_NONE;
}

/* The same launch for callers that have addresses (`extend.Entry`). */
static int enter_launch(const struct launch *launch, const int64_t *places, PyObject *const *scalars)
{
    int64_t *slots = STACK_SLOTS(launch->count);
    const int64_t *kinds = launch->slots + launch->count;
    memcpy(slots, launch->slots, (size_t)launch->count * 8);
    memcpy(slots, places, (size_t)launch->buffers * 8);
    for (int64_t s = 0; s < launch->scalars; s++)
        slots[launch->first_scalar + s] = convert(scalars[s], kinds[s]);
    if (launch->scalars && PyErr_Occurred())
        return -1;
    run(launch, slots);
    return 0;
}

/* replay([handle, offset, ...], variables, stream) */
static PyObject *call_sequence(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const struct sequence *sequence = block_of(self);
    if (count != 3) {
        PyErr_BadArgument();
        return NULL;
    }
    PyObject *places = args[0], *variables = args[1], *number;
    const int64_t *part = sequence->parts;
    int64_t *slots = PyMem_Malloc((size_t)(sequence->slots + sequence->bases) * 8);
    if (slots == NULL)
        return PyErr_NoMemory();
    int64_t *bases = slots + sequence->slots;
    memcpy(slots, part, (size_t)sequence->slots * 8);
    part += sequence->slots;
    for (int64_t i = 0; i < sequence->bases; i++, part++)
        bases[i] = PyLong_AsLongLong(PyList_GetItem(places, 2 * part[0])) +
                   PyLong_AsLongLong(PyList_GetItem(places, 2 * part[0] + 1));
    for (int64_t i = 0; i < sequence->buffers; i++, part += 3)
        slots[part[0]] = bases[part[1]] + part[2];
    for (int64_t i = 0; i < sequence->numbers; i++, part += 3) {
        number = PyList_GetItem(variables, part[2]);
        if (number == NULL)
            break;
        slots[part[0]] = convert(number, part[1]);
    }
    if (PyErr_Occurred()) {
        PyMem_Free(slots);
        return NULL;
    }
    PyThreadState *thread = sequence->release ? PyEval_SaveThread() : NULL;
    for (int64_t i = 0; i < sequence->launches; i++, part += 4) {
        tile_function *function = (tile_function *)part[0];
        if (part[2])
            pool_share(sequence->pool, function, slots + part[3], part[1], part[2]);
        else
            function(slots + part[3], 0, part[1]);
    }
    if (thread)
        PyEval_RestoreThread(thread);
    PyMem_Free(slots);
    Py_RETURN_NONE;
}

static PyMethodDef launch_method = {
    "launch", (PyCFunction)(void (*)(void))call_launch, METH_FASTCALL, NULL};
static PyMethodDef replay_method = {
    "replay", (PyCFunction)(void (*)(void))call_sequence, METH_FASTCALL, NULL};

static PyObject *bind_launch(PyObject *module, PyObject *own)
{
    (void)module;
    return PyCFunction_NewEx(&launch_method, own, NULL);
}

static PyObject *bind_sequence(PyObject *module, PyObject *own)
{
    (void)module;
    return PyCFunction_NewEx(&replay_method, own, NULL);
}
