"""Cached graphs with their plans: the compiled form of `graph_matcher.py`.

The entries are C arrays. The matched nodes are in an array on the stack, with strong references
until the launch is done. So are the sizes of a graph of a shape class.
"""

cimport cython

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.string cimport memset

from dovetail.engine.launching cimport (
    BoundPlanStep, BoundCall, BoundPlan, BoundKernel, run_library_call, launch_plan, add_offsets,
)
from dovetail.graph.expr cimport (
    Expr, convert_to_leaf, has_rematerialized, is_disjoint, storage_of,
)
from dovetail.graph.refcount cimport has_references_beyond
from dovetail.memory.pointer cimport DataPtr
from dovetail.memory.storage cimport Storage, storage_over
from dovetail.plugins.device_handle cimport OpenedDevice
from dovetail.records cimport Counters, Flags

from ..backend.faults import CELL_BYTES, out_of_range_error
from ..backend.interface import Entry as _Entry
from ..backend.streams import current_handle
from ..fusion.symbolic_sizes import INPUT_MIN
from ..plugins.plugin_errors import raise_plugin_error
from ..settings import flags as _all_flags
from .events import counters as _all_counters
from .programs import bind_plan, create_program_cache

cdef extern from "Python.h":
    void Py_XDECREF(PyObject*)
    void Py_INCREF(PyObject*)
    PyObject* Py_TYPE(PyObject*)
    tuple PyTuple_New(Py_ssize_t)
    PyObject* PyTuple_GET_ITEM(tuple, Py_ssize_t)  # borrowed
    void PyTuple_SET_ITEM(tuple, Py_ssize_t, PyObject*)  # takes the reference

cdef extern from *:
    """
    static int dovetail_raise_pending(void) { return -1; }
    """
    int _raise_pending "dovetail_raise_pending"() except -1  # raises the error that is set

cdef enum:
    _NODES = 256
    _ARGUMENTS = 1024
    _SLOTS = 128
    _SIZES = 64
    _INPUT_MIN = 2
    _PLAIN = 0  # kinds of attrs: without sizes, a move, those of ops with indices
    _MOVE = 1
    _GATHER = 2
    _PURPOSE = 3  # and above: this plus the position of an index purpose
    _MISS = 0
    _HIT = 1
    _NEEDS_TEMP = 2

MISS, HIT, NEEDS_TEMP = _MISS, _HIT, _NEEDS_TEMP
GRAPH_NODES_MAX, GRAPH_ARGUMENTS_MAX, PLAN_SLOTS_MAX = _NODES, _ARGUMENTS, _SLOTS
CLASS_SIZES_MAX, VARIANTS_MAX = _SIZES, 8192
assert INPUT_MIN == _INPUT_MIN
cdef Flags flags = _all_flags
cdef Counters counters = _all_counters
cdef tuple EMPTY = ()
cdef object _builtin = type(len)
cdef object _variants = create_program_cache(VARIANTS_MAX)  # by graph and sizes: a FlatPlan


@cython.final
cdef class FlatPlan:
    """A bound plan, laid out in C structs for graphs with leaves at these positions."""

    def __cinit__(self, BoundPlan plan, OpenedDevice opened, CachedGraph graph):
        cdef Py_ssize_t k
        self._plan, self._opened, self._alive = plan, opened, []
        self._count, self._numbers, self._leaf_count = graph._count, graph._numbers, graph._leaf_count
        self._leaves = <Py_ssize_t*>_malloc(self._leaf_count * sizeof(Py_ssize_t))
        for k in range(self._leaf_count):
            self._leaves[k] = graph._leaves[k]
        self._flatten(plan)

    def __dealloc__(self):
        PyMem_Free(self._leaves)
        PyMem_Free(self._acts)
        PyMem_Free(self._words)
        PyMem_Free(self._bytes)

    cdef _flatten(self, BoundPlan plan):
        """Lay out the steps of the plan in C structs, and their integers in one array of words."""
        cdef Act* act = NULL
        words, nbytes = [], []
        self._slots, self._act_count = len(plan.empty_memory), len(plan.steps)
        self._acts = <Act*>_malloc(self._act_count * sizeof(Act))
        for i, step in enumerate(plan.steps):
            act = &self._acts[i]
            memset(act, 0, sizeof(Act))
            act.step = <PyObject*>step
            act.call = type(step) is BoundCall
            act.special = step.run is None if act.call else step.has_empty_grid
            act.checked = not act.call and bool(step.checks)
            act.fresh, act.fresh_count = len(words), len(step.allocations)
            words += [slot for slot, _ in step.allocations]
            nbytes += [None] * (act.fresh - len(nbytes)) + [n for _, n in step.allocations]
            act.drops, act.drop_count = len(words), len(step.freed_slots)
            words += step.freed_slots
            if not act.special:
                act.picked, act.picked_count = len(words), len(step.address_positions)
                words += step.address_positions
                scalars = () if act.call else step.scalars
                act.scalars, act.scalar_count = len(words), len(scalars)
                words += scalars
                act.shifts, act.shift_count = len(words), len(step.offsets)
                words += [k for which, offset in step.offsets for k in (which // 2, offset)]
                if len(step.address_positions) <= 2 * _SLOTS and len(scalars) <= _SLOTS:
                    _find_entry(act, step.run)
        self._is_single = (
            self._act_count == 1 and act.entry != NULL and not (act.call or act.checked)
            and act.fresh_count <= 1 and len(plan.kept) <= 1 and self._slots <= _SLOTS
        )
        self._kept, self._kept_count = len(words), len(plan.kept)
        words += [k for pair in plan.kept for k in pair]
        self._alive.append(nbytes)
        self._words = <Py_ssize_t*>_malloc(len(words) * sizeof(Py_ssize_t))
        self._bytes = <PyObject**>_malloc(len(nbytes) * sizeof(PyObject*))
        for i, word in enumerate(words):
            self._words[i] = word
        for i, n in enumerate(nbytes):
            self._bytes[i] = <PyObject*>n

    cdef _launch(self, PyObject** matched, PyObject** numbers, Expr target):
        """Run the plan; turn stored nodes into leaves; an inlined `launching.launch_plan`."""
        cdef OpenedDevice opened = self._opened
        cdef Py_ssize_t k, slot
        cdef Act* act
        cdef object stream = None
        if self._is_single and not opened.has_streams:
            self._launch_single(matched, numbers, target)
            return
        if opened.takes_batches and self._act_count > 1:
            self._launch_listed(matched, numbers, target)
            return
        cdef PyObject* at[2 * _SLOTS]  # handle and offset of each slot, held
        cdef PyObject* keep[_SLOTS]
        memset(at, 0, 2 * self._slots * sizeof(PyObject*))
        memset(keep, 0, self._slots * sizeof(PyObject*))
        try:
            for k in range(self._leaf_count):
                _store_address(at + 2 * k, <Expr>matched[self._leaves[k]])
            if target is not None:
                _store_address(at + 2 * self._leaf_count, target)
            if opened.has_streams:
                stream = current_handle(opened.device)
                self._record_stream(matched, target, stream)
            for k in range(self._act_count):
                act = &self._acts[k]
                self._allocate(act, at, keep, stream)
                if act.special:
                    self._run_special(act, at, stream)
                elif act.checked:
                    self._run_checked(act, at, matched, numbers, stream)
                else:
                    self._run(act, at, numbers, stream)
                for slot in self._words[act.drops : act.drops + act.drop_count]:
                    Py_XDECREF(keep[slot])
                    keep[slot] = NULL
            for k in range(self._kept_count):
                slot = self._words[self._kept + 2 * k + 1]
                if keep[slot] != NULL:  # null: the value is in the target
                    convert_to_leaf(
                        <Expr>matched[self._words[self._kept + 2 * k]],
                        storage_over(<DataPtr>keep[slot], opened.device),
                    )
        finally:
            for k in range(2 * self._slots):
                Py_XDECREF(at[k])
            for k in range(self._slots):
                Py_XDECREF(keep[k])

    cdef _launch_single(self, PyObject** matched, PyObject** numbers, Expr target):
        """Run a plan of one kernel that has a C function, which writes one result at most."""
        cdef Act* act = self._acts
        cdef long long at[_SLOTS]  # address of each slot
        cdef long long addresses[_SLOTS]
        cdef DataPtr fresh = None
        cdef Py_ssize_t k, slot = -1
        cdef Py_ssize_t* words = self._words + act.picked
        for k in range(self._leaf_count):
            at[k] = _address_of(<Expr>matched[self._leaves[k]])
        if target is not None:
            at[self._leaf_count] = _address_of(target)
        if act.fresh_count:
            slot, fresh = self._words[act.fresh], self._memory(act.fresh, None)
            at[slot] = fresh.sum()
        for k in range(act.picked_count // 2):
            addresses[k] = at[words[2 * k] // 2]
        if self._enter(act, addresses, numbers) == -1:
            self._raise_entry_error(act)
        counters.launches += 1
        if self._kept_count and self._words[self._kept + 1] == slot:  # else it is in the target
            convert_to_leaf(
                <Expr>matched[self._words[self._kept]], storage_over(fresh, self._opened.device)
            )

    cdef DataPtr _memory(self, Py_ssize_t k, object stream):
        """Allocate the memory of the slot in word `k`."""
        if self._opened.fast_path is not None:
            return self._opened.fast_path.allocate(<object>self._bytes[k], stream)
        return self._opened.allocate(<object>self._bytes[k], stream)

    cdef _launch_listed(self, PyObject** matched, PyObject** numbers, Expr target):
        """Run the plan by `launching.launch_plan`, for backends that take launches in batches."""
        cdef Py_ssize_t k
        leaves = [<Expr>matched[self._leaves[k]] for k in range(self._leaf_count)]
        stream = current_handle(self._opened.device) if self._opened.has_streams else None
        nodes, values = _to_list(matched, self._count), _to_list(numbers, self._numbers)
        launch_plan(self._opened, self._plan, nodes, leaves, values, target, stream)

    cdef _allocate(self, Act* act, PyObject** at, PyObject** keep, object stream):
        """Allocate the memory that a step writes first; store it in `keep`, its address in `at`."""
        cdef Py_ssize_t k, slot
        cdef DataPtr ptr
        for k in range(act.fresh, act.fresh + act.fresh_count):
            slot = self._words[k]
            ptr = self._memory(k, stream)
            _store_reference(&keep[slot], ptr)
            _store_reference(&at[2 * slot], ptr.address())
            _store_reference(&at[2 * slot + 1], ptr.offset)

    cdef _launch_by_entry(self, Act* act, PyObject** at, PyObject** numbers):
        """Launch a step by the C function of its kernel."""
        cdef long long addresses[_SLOTS]
        cdef Py_ssize_t* words = self._words + act.picked
        cdef Py_ssize_t k
        for k in range(act.picked_count // 2):
            addresses[k] = <long long><object>at[words[2 * k]] + <long long><object>at[words[2 * k + 1]]
        if self._enter(act, addresses, numbers) == -1:
            _raise_pending()

    cdef int _enter(self, Act* act, long long* addresses, PyObject** numbers) noexcept:
        """Call the C function of a step's kernel; add the step's offsets to the addresses.

        Return -1 after setting an error; a block that catches it would cost each launch 50
        instructions.
        """
        cdef PyObject* scalars[_SLOTS]
        cdef Py_ssize_t* shifts = self._words + act.shifts
        cdef Py_ssize_t k
        for k in range(act.shift_count):
            addresses[shifts[2 * k]] += shifts[2 * k + 1]
        for k in range(act.scalar_count):
            scalars[k] = numbers[self._words[act.scalars + k]]
        return act.entry(act.block, addresses, scalars)

    cdef _raise_entry_error(self, Act* act):
        """Raise the error that a C function has set, as a PluginError if it does not pass unchanged."""
        try:
            _raise_pending()
        except Exception as error:
            self._raise_launch_error(act, error)
            raise

    cdef _run(self, Act* act, PyObject** at, PyObject** numbers, object stream):
        """Launch a step or run a bound library call, and count it. Raises: PluginError."""
        cdef BoundPlanStep step = <BoundPlanStep>act.step
        cdef tuple args, scalars = EMPTY
        try:
            if act.entry != NULL:
                self._launch_by_entry(act, at, numbers)
            else:
                args = _pick(at, self._words + act.picked, act.picked_count)
                if step.offsets:
                    args = add_offsets(args, step.offsets)
                if act.scalar_count:
                    scalars = _pick(numbers, self._words + act.scalars, act.scalar_count)
                step.run(args, scalars, stream)
        except Exception as error:
            self._raise_launch_error(act, error)
            raise
        if act.call:
            counters.calls += 1
        else:
            counters.launches += 1

    cdef _raise_launch_error(self, Act* act, object error):
        """Raise PluginError for an error of a step, unless it is one that passes unchanged."""
        cdef BoundPlanStep step = <BoundPlanStep>act.step
        if act.call:
            what, kernel = f"the library call of {(<BoundCall>step).call.op.name}", ""
        else:
            kernel = (<BoundKernel>step).step.kernel
            what = f"the launch of {kernel.name}"
        raise_plugin_error(self._opened.device, what, kernel, error)

    cdef _run_special(self, Act* act, PyObject** at, object stream):
        """Run a library call that is not bound; an empty launch does nothing."""
        if act.call:
            run_library_call(self._opened, <BoundCall>act.step, _to_list(at, 2 * self._slots), stream)

    cdef _run_checked(
        self, Act* act, PyObject** at, PyObject** matched, PyObject** numbers, object stream
    ):
        """Launch a step with bounds checks; read its cells at once. Raises: OutOfRangeError."""
        cdef tuple checks = (<BoundKernel>act.step).checks
        cdef Py_ssize_t k = 0, slot
        prompt = self._opened.host_cells
        assert prompt is not None, "the plan is not prompt"
        handle, cells = prompt
        for check in checks:
            slot = check[0]
            cells[k] = 0  # an interrupt may have left an old value
            _store_reference(&at[2 * slot], handle)
            _store_reference(&at[2 * slot + 1], k * CELL_BYTES)
            k += 1
        self._run(act, at, numbers, stream)
        k = 0
        for _, i, purpose in checks:
            index = cells[k]
            if index or purpose.size == 0:  # along an axis of size 0 even index 0 is out of range
                raise out_of_range_error(purpose, index, (<Expr>matched[<Py_ssize_t>i]).check_line)
            k += 1

    cdef _record_stream(self, PyObject** matched, Expr target, object stream):
        """Record that a stream uses the memory of leaves and target."""
        cdef Py_ssize_t k
        storages = [(<Expr>matched[self._leaves[k]]).storage for k in range(self._leaf_count)]
        if target is not None:
            storages.append(target.storage)
        self._opened.record_streams(stream, storages)


@cython.final
cdef class CachedGraph:
    """A graph that was evaluated, with its plan."""

    def __init__(
        self, list node_keys, Py_ssize_t root, list uses, list referenced, plan, target, opened,
        other_roots=(), shared=(), shape_class=None, Py_ssize_t sizes=0
    ):
        cdef Py_ssize_t i, k, j, at = 0, count = 0
        cdef Node* n
        self._alive, self._other_roots = [node_keys], tuple(other_roots)
        self.shape_class, self._sizes = shape_class, sizes
        self._shared = shared
        self._count, self._root = len(node_keys), root
        self._plan, self._opened = plan, opened
        self.overlaps, self._needs_temp = target is not None and bool(target.overlapping_slots), plan.plan.target_overlaps
        if sizes > _SIZES:
            raise ValueError(f"a graph of a shape class has at most {_SIZES} sizes")
        codes = []
        for e in node_keys:
            count += len(e.args)
        self._nodes = <Node*>_malloc(self._count * sizeof(Node))
        self._args = <Py_ssize_t*>_malloc(count * sizeof(Py_ssize_t))
        self._types = <PyObject**>_malloc(count * sizeof(PyObject*))
        self._leaves = <Py_ssize_t*>_malloc(self._count * sizeof(Py_ssize_t))
        self._lazy = <Py_ssize_t*>_malloc(self._count * sizeof(Py_ssize_t))
        self._over = <int*>_malloc(self._count * sizeof(int))
        for i, e in enumerate(node_keys):
            n = &self._nodes[i]
            n.op = NULL if e.op is None else <PyObject*>e.op
            n.dtype, n.kind = <PyObject*>e.spec.dtype, _PLAIN
            if shape_class is not None:
                n.codes, n.rank = len(codes), len(e.codes)
                codes += e.codes
                if e.op is not None:
                    n.kind = _kind_of_attrs(e.op)
                elif e.source < 0:
                    codes += e.strides
            n.spec, n.attrs, n.strides = <PyObject*>e.spec, <PyObject*>e.attrs, <PyObject*>e.strides
            n.source = e.source
            if n.source >= 0:
                n.strides = <PyObject*>e.moves
                self._lazy[self._lazy_count] = i
                self._lazy_count += 1
            n.args, n.count, n.number, n.uses = at, len(e.args), e.first_number, uses[i]
            n.referenced = -1 if referenced[i] is None else referenced[i]
            for k in range(n.count):
                j = e.args[k]
                self._args[at + k], self._types[at + k] = j, PyTuple_GET_ITEM(e.types, k)
                self._numbers += j < 0
            at += n.count
            if n.op == NULL and n.source < 0:
                self._leaves[self._leaf_count] = i
                if target is not None and self._leaf_count in target.overlapping_slots:
                    self._over[self._leaf_count] = 2 if self._leaf_count in target.identical_slots else 1
                else:
                    self._over[self._leaf_count] = 0
                self._leaf_count += 1
        if shape_class is not None and target is not None:
            self._target_codes, self._target_rank = len(codes), len(target.strides)
            codes += target.strides
        self._codes = <long long*>_malloc(len(codes) * sizeof(long long))
        for i, code in enumerate(codes):
            self._codes[i] = code
        self._flat = FlatPlan(plan, opened, self)

    def __dealloc__(self):
        PyMem_Free(self._nodes)
        PyMem_Free(self._args)
        PyMem_Free(self._types)
        PyMem_Free(self._leaves)
        PyMem_Free(self._lazy)
        PyMem_Free(self._over)
        PyMem_Free(self._codes)

    cpdef int run(self, Expr root, Expr target, bint reports_checks, other_roots=()) except -1:
        """Launch the plan if the graph of the roots matches; return HIT, MISS or NEEDS_TEMP."""
        cdef PyObject* matched[_NODES]
        cdef PyObject* numbers[_ARGUMENTS]
        cdef long long sizes[_SIZES]
        cdef FlatPlan flat = self._flat
        cdef Py_ssize_t i
        if self._plan.checks and not self._plan.is_prompt(self._opened, reports_checks):
            return _MISS
        for i in range(self._count):  # few: a call of memset takes longer
            matched[i] = NULL
        for i in range(self._numbers):
            numbers[i] = NULL
        for i in range(self._sizes):
            sizes[i] = 0
        try:
            if not self._matches_node(self._root, root, matched, numbers, sizes):
                return _MISS
            if self._other_roots and not self._matches_others(other_roots, matched, numbers, sizes):
                return _MISS
            if target is not None and not self._matches_memory(matched, target):
                return _MISS
            if flags.has_unresolved_checks and self._has_failed_checks(matched, target):
                return _MISS
            if not self._has_same_sharing(matched) or not self._matches_references(matched):
                return _MISS
            if self.shape_class is not None:
                if target is not None and not _fits_codes(
                    self._codes + self._target_codes, self._target_rank, target.strides, sizes
                ):
                    return _MISS
                flat = self._find_variant(matched, sizes)
                if flat is None:
                    return _MISS
            if self._needs_temp:
                return _NEEDS_TEMP
            flat._launch(matched, numbers, target)
        finally:
            for i in range(self._count):
                Py_XDECREF(matched[i])
            for i in range(self._numbers):
                Py_XDECREF(numbers[i])
        counters.evaluations += 1
        counters.graph_hits += 1
        return _HIT

    cdef FlatPlan _find_variant(self, PyObject** matched, long long* sizes):
        """Return the plan of these sizes, cached or from the shape class; None if that has none."""
        cdef Py_ssize_t i
        cdef FlatPlan variant
        cdef tuple values = tuple([sizes[i] for i in range(self._sizes)])
        if 0 in values:  # the size of a node that is not matched
            return None
        key = self, values
        variant = _variants.young.get(key) or _variants.find(key)
        if variant is None:
            specs = [None if matched[i] == NULL else (<Expr>matched[i]).spec for i in range(self._count)]
            plan = self.shape_class.build_plan(values, specs)
            if plan is None:
                return None
            counters.shape_class_hits += 1
            bound = bind_plan(self._opened, plan, self._numbers)
            variant = _variants[key] = FlatPlan(bound, self._opened, self)
        return variant

    cdef bint _matches_node(
        self, Py_ssize_t i, Expr e, PyObject** matched, PyObject** numbers, long long* sizes
    ) except -1:
        """Return True if node `e` and its arguments match key `i`; store the matched nodes."""
        cdef Node* n = &self._nodes[i]
        cdef Py_ssize_t k, j, number
        cdef PyObject* a
        cdef tuple args
        cdef bint is_class = self.shape_class is not None
        if is_class:
            if <PyObject*>e.spec.dtype != n.dtype or e.spec.device is not self._opened.device:
                return False
            if not _fits_codes(self._codes + n.codes, n.rank, e.spec.shape, sizes):
                return False
        elif <PyObject*>e.spec != n.spec:
            return False
        if n.source >= 0:
            if e.op is not None or storage_of(e).pending is None:
                return False
            if is_class:
                if not _fits_moves(<tuple>n.strides, e.moves, sizes):
                    return False
            elif e.moves != <tuple>n.strides:
                return False
            j = n.source
            if matched[j] == NULL and not self._matches_node(j, e.storage.pending, matched, numbers, sizes):
                return False
            if matched[j] != <PyObject*>e.storage.pending:
                return False
        elif n.op == NULL:
            if e.op is not None:
                return False
            if e.storage.pending is not None and storage_of(e).pending is not None:
                return False
            if is_class:
                if not _fits_codes(self._codes + n.codes + n.rank, n.rank, e.strides, sizes):
                    return False
            elif <PyObject*>e.strides != n.strides and e.strides != <tuple>n.strides:
                return False
        else:
            if <PyObject*>e.op != n.op:
                return False
            if is_class and n.kind != _PLAIN:
                if not _fits_attrs(n.kind, <object>n.attrs, e.attrs, sizes):
                    return False
            elif <PyObject*>e.attrs != n.attrs and e.attrs != <object>n.attrs:
                return False
            args, number = e.args, n.number
            if len(args) != n.count:
                return False
            for k in range(n.count):
                j, a = self._args[n.args + k], PyTuple_GET_ITEM(args, k)
                if j < 0:
                    if Py_TYPE(a) != self._types[n.args + k]:
                        return False
                    Py_INCREF(a)
                    numbers[number] = a
                    number += 1
                elif matched[j] != NULL:
                    if matched[j] != a:
                        return False
                elif type(<object>a) is not Expr:
                    return False
                elif not self._matches_node(j, <Expr>a, matched, numbers, sizes):
                    return False
        Py_INCREF(<PyObject*>e)
        matched[i] = <PyObject*>e
        return True

    cdef bint _matches_others(
        self, others, PyObject** matched, PyObject** numbers, long long* sizes
    ) except -1:
        """Return True if the other roots match their keys; store the matched nodes."""
        cdef Py_ssize_t j
        cdef Expr e
        for j, e in zip(self._other_roots, others, strict=True):
            if matched[j] == NULL and not self._matches_node(j, e, matched, numbers, sizes):
                return False
            if matched[j] != <PyObject*>e:
                return False
        return True

    cdef bint _matches_memory(self, PyObject** matched, Expr target) except -1:
        """Return True if the leaves that overlap the target, and that equal it, are as before."""
        cdef Py_ssize_t slot
        cdef Expr e
        for slot in range(self._leaf_count):
            e = <Expr>matched[self._leaves[slot]]
            if e.storage is not target.storage:
                if self._over[slot] or e.storage.overlap is not None:
                    return False
            elif not self._over[slot]:
                if not is_disjoint(e, target):
                    return False
            elif _has_same_elements(e, target) != (self._over[slot] == 2):
                return False
        return True

    cdef bint _has_failed_checks(self, PyObject** matched, Expr target) except -1:
        """Return True if memory of an operand or the target has checks that may have failed."""
        cdef Py_ssize_t slot
        for slot in range(self._leaf_count):
            if (<Expr>matched[self._leaves[slot]]).storage.checks:
                return True
        return target is not None and bool(target.storage.checks)

    cdef bint _has_same_sharing(self, PyObject** matched) except -1:
        """Return True if the nodes that share their arguments are those of the cached graph."""
        cdef Py_ssize_t i
        cdef Expr e
        cdef set seen
        cdef list shared
        if not has_rematerialized():
            return not self._shared
        seen, shared = set(), []
        for i in range(self._count):
            if matched[i] != NULL:
                e = <Expr>matched[i]
                if e.op is not None and e.args:
                    key = <size_t><PyObject*>e.args
                    if key in seen:
                        shared.append(i)
                    else:
                        seen.add(key)
        return tuple(shared) == self._shared

    cdef bint _matches_references(self, PyObject** matched) noexcept:
        """Return True if exactly the nodes that the entries mark have references from outside."""
        cdef Py_ssize_t i
        if self._lazy_count:
            return self._matches_lazy_references(matched)
        for i in range(self._count):
            if self._nodes[i].referenced >= 0:
                if has_references_beyond(matched[i], self._nodes[i].uses) != self._nodes[i].referenced:
                    return False
        return True

    cdef bint _matches_lazy_references(self, PyObject** matched) noexcept:
        """Return True if references match, counted as by `graph_key.find_lazy_references`."""
        cdef Py_ssize_t over[_NODES]  # number of storages that refer to a node
        cdef bint referenced[_NODES]  # through its leaves and storages
        cdef Py_ssize_t i, k, m, sharers, first
        cdef Storage storage
        memset(over, 0, self._count * sizeof(Py_ssize_t))
        memset(referenced, 0, self._count * sizeof(bint))
        for k in range(self._lazy_count):
            i = self._lazy[k]
            storage = (<Expr>matched[i]).storage
            sharers, first = 0, -1
            for m in range(self._lazy_count):
                if (<Expr>matched[self._lazy[m]]).storage is storage:
                    sharers += 1
                    if first < 0:
                        first = m
            if first == k:
                over[self._nodes[i].source] += 1
            if has_references_beyond(<PyObject*>storage, sharers):
                referenced[self._nodes[i].source] = True
            if has_references_beyond(matched[i], self._nodes[i].uses):
                referenced[self._nodes[i].source] = True
        for i in range(self._count):
            if self._nodes[i].referenced >= 0:
                if not referenced[i]:
                    referenced[i] = has_references_beyond(matched[i], self._nodes[i].uses + over[i])
                if referenced[i] != self._nodes[i].referenced:
                    return False
        return True


cpdef bint run_first_match(Lock lock, tuple graphs, Expr root) except -1:
    """Run the first graph that matches `root`, with the lock held; return True if one did."""
    lock._enter()
    try:
        for graph in graphs:
            if (<CachedGraph>graph).run(root, None, True) == _HIT:
                return True
        return False
    finally:
        lock._leave()


cdef inline bint _fits(long long code, long long value, long long* sizes) noexcept:
    """Return True if a value is the constant, or the size, that a code stands for; store the size."""
    cdef long long* size
    if -_INPUT_MIN < code < _INPUT_MIN:
        return value == code
    if code < 0:
        code, value = -code, -value
    size = &sizes[code - _INPUT_MIN]
    if size[0] == 0:
        size[0] = value
        return value >= _INPUT_MIN
    return size[0] == value


cdef bint _fits_codes(long long* codes, Py_ssize_t count, tuple values, long long* sizes) except -1:
    """Return True if all values fit their codes."""
    cdef Py_ssize_t k
    if len(values) != count:
        return False
    for k in range(count):
        if not _fits(codes[k], <object>PyTuple_GET_ITEM(values, k), sizes):
            return False
    return True


cdef bint _fits_tuple(tuple codes, tuple values, long long* sizes) except -1:
    """Return True if all values fit the codes in a tuple."""
    cdef Py_ssize_t k
    if len(values) != len(codes):
        return False
    for k in range(len(codes)):
        if not _fits(
            <object>PyTuple_GET_ITEM(codes, k), <object>PyTuple_GET_ITEM(values, k), sizes
        ):
            return False
    return True


cdef bint _fits_move(tuple codes, tuple move, long long* sizes) except -1:
    """Return True if a move fits one with codes (`graph_key.map_move`)."""
    cdef Py_ssize_t k
    if len(codes) != len(move) or codes[0] != move[0]:
        return False
    if codes[0] == "permute":
        return codes[1] == move[1]
    if codes[0] == "pad":
        return codes[1] == move[1] and _fits(codes[2], move[2], sizes) and _fits(codes[3], move[3], sizes)
    for k in range(1, len(codes)):
        if not _fits_tuple(codes[k], move[k], sizes):
            return False
    return True


cdef bint _fits_moves(tuple codes, tuple moves, long long* sizes) except -1:
    """Return True if all moves fit those with codes."""
    cdef Py_ssize_t k
    if len(codes) != len(moves):
        return False
    for k in range(len(codes)):
        if not _fits_move(codes[k], moves[k], sizes):
            return False
    return True


cdef int _kind_of_attrs(object op) except -1:
    """Return the kind of an op's attrs: the place of their sizes."""
    if op.purpose_at >= 0:
        return _PURPOSE + <int>op.purpose_at
    return _MOVE if op.kind == "view" else _GATHER if op.kind == "gather" else _PLAIN


cdef bint _fits_attrs(int kind, object codes, object attrs, long long* sizes) except -1:
    """Return True if attrs fit those with codes (`graph_key.map_attrs`)."""
    if kind == _MOVE:
        return _fits_move(codes, attrs, sizes)
    cdef Py_ssize_t at = kind - _PURPOSE
    if at >= 0:
        return (
            codes[:at] == attrs[:at]
            and codes[at + 1 :] == attrs[at + 1 :]
            and _fits_purpose(codes[at], attrs[at], sizes)
        )
    if not _fits_tuple(codes[0], attrs[0], sizes) or codes[1] != attrs[1] or codes[2] != attrs[2]:
        return False
    purposes, asked = codes[3], attrs[3]
    if purposes is None or asked is None:
        return purposes is asked
    if len(purposes) != len(asked):
        return False
    for purpose, other in zip(purposes, asked):
        if not _fits_purpose(purpose, other, sizes):
            return False
    return True


cdef bint _fits_purpose(object codes, object purpose, long long* sizes) except -1:
    """Return True if the purpose of an index, or None, fits one with codes."""
    if codes is None or purpose is None:
        return codes is purpose
    return codes[0] == purpose[0] and codes[1] == purpose[1] and _fits(codes[2], purpose[2], sizes)


cdef _find_entry(Act* act, object run):
    """Store in `act` the C function of a launch that has one (`interface.Entry`)."""
    cdef object own = getattr(run, "__self__", None)
    if type(run) is _builtin and type(own) is tuple and len(own) > 1:
        block, entry = own[0], own[1]
        if type(entry) is _Entry and type(block) is bytes:
            act.entry, act.block = <Entry><size_t>entry, PyBytes_AS_STRING(block)


cdef inline bint _has_same_elements(Expr e, Expr t) except -1:
    """Return True if two leaves of one storage view the same elements in the same order."""
    return (
        e.offset == t.offset
        and (e.strides is t.strides or e.strides == t.strides)
        and (e.spec is t.spec or e.spec.shape == t.spec.shape)
    )


cdef void* _malloc(Py_ssize_t nbytes) except NULL:
    """Allocate `nbytes` + 1 bytes. Raises: MemoryError."""
    cdef void* memory = PyMem_Malloc(nbytes + 1)
    if memory == NULL:
        raise MemoryError
    return memory


cdef inline _store_reference(PyObject** slot, object value):
    """Store a strong reference in a slot, and drop the old one."""
    Py_INCREF(<PyObject*>value)
    Py_XDECREF(slot[0])
    slot[0] = <PyObject*>value


cdef inline _store_address(PyObject** at, Expr e):
    """Store handle and byte offset of a leaf in two slots."""
    cdef DataPtr ptr = e.storage.ptr
    _store_reference(&at[0], ptr.address())
    if e.offset:
        _store_reference(&at[1], <Py_ssize_t>ptr.offset + e.offset * e.spec.itemsize)
    else:
        _store_reference(&at[1], ptr.offset)


cdef inline long long _address_of(Expr e) except? -1:
    """Return the sum of handle and byte offset of a leaf, for a device whose handles are ints."""
    cdef DataPtr ptr = e.storage.ptr
    return ptr.sum() + e.offset * e.spec.itemsize


cdef inline tuple _pick(PyObject** values, Py_ssize_t* which, Py_ssize_t n):
    """Return the values at the given positions."""
    cdef tuple result = PyTuple_New(n)
    cdef Py_ssize_t k
    for k in range(n):
        Py_INCREF(values[which[k]])
        PyTuple_SET_ITEM(result, k, values[which[k]])
    return result


cdef list _to_list(PyObject** values, Py_ssize_t n):
    """Return the values as a list; None for each null."""
    cdef Py_ssize_t k
    return [None if values[k] == NULL else <object>values[k] for k in range(n)]
