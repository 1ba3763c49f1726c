"""Plans from shape classes: the numbers and kernels of a plan made for the sizes alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine import shape_classes
from dovetail.engine.evaluation import Evaluation
from dovetail.engine.events import counters
from dovetail.fusion.kernel_templates import GroupStructure
from dovetail.fusion.plan import Plan, PlannedCall, PlannedLaunch
from dovetail.fusion.shape_class import ShapeClass
from dovetail.fusion.symbolic_sizes import GuardRecorder
from dovetail.graph.expr import node
from dovetail.ops.table import COPY

SIZES = (0, 1, 2, 3, 5, 7, 8, 13, 16, 31, 64, 97, 120, 256, 257, 300)
LONG = (4095, 4096, 4097, 8191, 40_000)
DEVICES = ("reference", "cpu")


class Draw:
    """Random choices, of which those of sizes differ between two graphs of one structure."""

    def __init__(self, structure: int, sizes: int, device: str) -> None:
        self.structure, self._sizes = random.Random(structure), random.Random(sizes)
        self._values = np.random.default_rng(sizes)
        self.device, self.leaves = device, list[Any]()

    def size(self, limit: int = 1 << 30, long: bool = False) -> int:
        """Return a size: 0 and 1 belong to the structure, others to the sizes."""
        chosen = self.structure.choice(SIZES)
        drawn = self._sizes.choice([n for n in SIZES[2:] + LONG * long if n <= limit] or [0])
        return chosen if chosen < 2 else drawn

    def number(self, start: int, stop: int) -> int:
        return self._sizes.randrange(start, stop) if start < stop else start

    def leaf(self, *shape: int) -> Any:
        values = self._values.standard_normal(shape).astype("f4")
        x = dt.asarray(values, device=self.device)
        self.leaves.append(x)
        return x


def elementwise(d: Draw, x: Any) -> Any:
    op = d.structure.randrange(5)
    if op == 0:
        return x * 2 + x
    if op == 1:
        return dt.exp(dt.sin(x)) - x
    if op == 2 and x.ndim:
        return x + d.leaf(x.shape[-1])
    if op == 3:
        return dt.where(x > 0, x, d.leaf(*x.shape))
    return dt.maximum(x, 0.5)


def reduction(d: Draw, x: Any) -> Any:
    if not x.ndim:
        return x
    name = d.structure.choice(("sum", "max", "mean", "var", "argmax"))
    axis, keep = d.structure.choice((*range(x.ndim), None)), d.structure.random() < 0.5
    if 0 in x.shape and name in ("max", "argmax"):
        name = "sum"
    if name == "argmax":
        return dt.argmax(x, axis=d.structure.randrange(x.ndim), keepdims=keep).astype(x.dtype)
    return getattr(dt, name)(x, axis=axis, keepdims=keep)


def normalised(d: Draw, x: Any) -> Any:
    return dt.softmax(x, axis=d.structure.randrange(x.ndim)) if x.ndim and x.size else x


def part(d: Draw, x: Any) -> Any:
    if not x.ndim:
        return x
    axis = d.structure.randrange(x.ndim)
    n = x.shape[axis]
    start = d.number(0, max(n // 2, 1)) if n > 1 else 0
    stop = d.number(start + 2, n + 1) if n - start > 2 else n
    step = d.structure.choice((1, 1, 2, 3, -1))
    key = slice(start, stop, step) if step > 0 else slice(None, None, step)
    return x[(slice(None),) * axis + (key,)]


def turned(d: Draw, x: Any) -> Any:
    axes = list(range(x.ndim))
    d.structure.shuffle(axes)
    return dt.permute_dims(x, axes)


def reshaped(d: Draw, x: Any) -> Any:
    if d.structure.random() < 0.5:
        return x.reshape((x.size,))
    return x.reshape((*x.shape[:1], 1, *x.shape[1:]))


def joined(d: Draw, x: Any) -> Any:
    if not x.ndim:
        return x
    axis = d.structure.randrange(x.ndim)
    other = d.leaf(*x.shape[:axis], d.size(), *x.shape[axis + 1 :])
    return dt.concat([x, other * 2] if d.structure.random() < 0.7 else [x, x], axis=axis)


def padded(d: Draw, x: Any) -> Any:
    return dt.roll(x, d.number(1, 3), axis=0) if x.ndim and x.shape[0] > 3 else x


def product(d: Draw, x: Any) -> Any:
    if x.ndim not in (1, 2):
        return x
    return x @ (
        d.leaf(x.shape[-1], d.size(300)) if d.structure.random() < 0.7 else d.leaf(x.shape[-1])
    )


def long_product(d: Draw, x: Any) -> Any:
    if x.ndim != 1:
        return x
    return (
        d.leaf(d.size(31), x.shape[0]) @ x if d.structure.random() < 0.5 else x @ d.leaf(*x.shape)
    )


def gathered(d: Draw, x: Any) -> Any:
    if not x.ndim or not x.shape[0]:
        return x
    i = dt.arange(d.number(2, 9), device=d.device)
    dt.evaluate(i)
    return x[i]


def outer(d: Draw, x: Any) -> Any:
    return x[:, None] * d.leaf(d.size()) if x.ndim == 1 else x


def running(d: Draw, x: Any) -> Any:
    return dt.cumulative_sum(x, axis=d.structure.randrange(x.ndim)) if x.ndim else x


STEPS: tuple[Callable[[Draw, Any], Any], ...] = (
    elementwise,
    elementwise,
    reduction,
    reduction,
    normalised,
    part,
    part,
    turned,
    reshaped,
    joined,
    padded,
    product,
    long_product,
    gathered,
    outer,
    running,
)


def random_value(d: Draw) -> tuple[Any, list[Any]]:
    """Return a random graph's result, and values in it that stay referenced."""
    rank = d.structure.choice((1, 1, 2, 2, 3))
    long = rank == 1 or (rank == 2 and d.structure.random() < 0.3)
    shape = [d.size(300 if rank > 1 else 1 << 30, long and axis == 0) for axis in range(rank)]
    x = d.leaf(*shape)
    held = []
    for _ in range(d.structure.randrange(1, 6)):
        x = d.structure.choice(STEPS)(d, x)
        if d.structure.random() < 0.1:
            held.append(x)
    return x, held


def random_graph(d: Draw) -> tuple[Evaluation, Any]:
    """Return the evaluation of a random graph, perhaps into memory, and what must stay alive."""
    x, held = random_value(d)
    x = x * 3 if x._expr.op is None else x
    target, how = None, d.structure.randrange(4)
    if how == 0:
        target = d.leaf(*x.shape)._expr
    elif how == 1 and x.ndim:
        target = d.leaf(*[n + 3 for n in x.shape])[tuple(slice(1, 1 + n) for n in x.shape)]._expr
    root = node(COPY, (x._expr,), x._expr.spec) if target is not None else x._expr
    kept: tuple[Any, ...] = (x, *held, *d.leaves)
    return Evaluation([root], target), kept


def parts(evaluation: Evaluation) -> tuple[Any, ...]:
    """Return the graph of an evaluation with what else its plan depends on."""
    _, referenced, roots, target = evaluation.whole_key()
    return evaluation.graph, referenced, roots, target


def described(plan: Plan) -> list[Any]:
    """Return everything that a plan says."""
    steps: list[Any] = []
    for s in plan.steps:
        if isinstance(s, PlannedCall):
            steps.append((s.op, s.dtype, s.inputs, s.output, s.allocations, s.reasons, s.nbytes))
        else:
            steps.append((str(s.kernel), s.buffers, s.allocations, s.ints, s.scalars, s.grid))
            steps.append((s.reasons, s.nbytes, s.checks))
        steps.append(s.released_slots)
    return [steps, plan.slot_count, plan.output_slots, plan.materialised, plan.target_overlaps]


def numbers(x: Any) -> list[Any]:
    """Return all values in nested tuples and lists."""
    if isinstance(x, (tuple, list)):
        return [v for part in x for v in numbers(part)]
    return [x]


def class_of(graph: tuple[Any, ...]) -> tuple[Any, ShapeClass]:
    """Return the skeleton of a graph and the class that planning it makes."""
    key, sizes = shape_classes.build_skeleton(*graph, False)
    made = shape_classes._create_class(*graph, sizes)
    assert made is not None
    return key, made


@pytest.mark.parametrize("device", DEVICES)
def test_class_gives_the_plans_that_planning_gives(device: str) -> None:
    seen = Counter[str]()
    for structure in range(200):
        first, kept = random_graph(Draw(structure, 0, device))
        key, made = class_of(parts(first))
        for sizes in range(6):
            try:
                other, alive = random_graph(Draw(structure, sizes, device))
            except dt.DovetailError:  # sizes that the program refuses
                continue
            graph = parts(other)
            found, vector = shape_classes.build_skeleton(*graph, False)
            if found != key:
                seen["other skeleton"] += 1
                continue
            plan = made.build_plan(vector, [e.spec for e in other.graph.nodes])
            assert plan is not None or sizes, structure
            if plan is None:
                seen["refused"] += 1
                continue
            wanted = described(shape_classes._plan_with_sizes(*graph))
            assert described(plan) == wanted, (structure, sizes)
            assert not any("Symbolic" in type(x).__name__ for x in numbers(described(plan)))
            seen["equal" if sizes else "first"] += 1
            del alive
        del kept
    assert seen["equal"] > 150 and seen["refused"] > 50, seen


def test_groups_that_share_a_kernel_have_the_launches_that_emission_gives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = (dt.asarray(np.ones((7, 7)), device="reference") for _ in range(2))
    views = [a, b, a.T, a[0], a[::-1], dt.concat([a[:3], b[3:]]), dt.concat([a[:4], b[4:]])]
    layouts = [[x * 2 for x in views], [a * 2, a * 3, b + a, b + b, a + b.T]]
    layouts += [[dt.pad(x, ((k, 3 - k), (0, 0))) for x in (a, b) for k in range(3)]]
    layouts += [[x.sum(axis=k) for x in (a, b, a.T) for k in (0, 1)]]
    shared = 0
    for structure in range(60):
        values = [random_value(Draw(structure, sizes // 3, "reference")) for sizes in range(6)]
        layouts.append([x * 3 for x, _ in values])
    for structure, tensors in enumerate(layouts):
        roots = [x._expr for x in tensors]
        graph = parts(Evaluation(roots))
        plan = shape_classes._plan_with_sizes(*graph)
        with monkeypatch.context() as patch:
            patch.setattr(GroupStructure, "key", None)
            wanted = shape_classes._plan_with_sizes(*graph)
        assert described(plan) == described(wanted), structure
        kernels = [s.kernel for s in plan.steps if isinstance(s, PlannedLaunch)]
        shared += len(kernels) - len({*map(id, kernels)})
    assert shared > 60


def test_groups_with_equal_keys_have_equal_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    emitted: dict[Any, set[Any]] = {}
    create = GroupStructure.create_template

    def record(structure: GroupStructure, launch: PlannedLaunch) -> Any:
        template = create(structure, launch)
        emitted.setdefault(structure.key, set()).add((str(template.kernel), *template[1:]))
        return template

    monkeypatch.setattr(GroupStructure, "create_template", record)
    a, b = (dt.asarray(np.ones((7, 7)), device="reference") for _ in range(2))
    views = [a, b, a.T, a[::-1], a[:, ::-1], dt.concat([a[:3], b[3:]]), dt.concat([a[:4], b[4:]])]
    tensors = [f(x) for x in views for f in (lambda x: x * 2, lambda x: x + b, lambda x: x + x)]
    tensors += [dt.pad(x, ((k, 3 - k), (0, 0))) for x in (a, b) for k in range(3)]
    tensors += [x.sum(axis=k) for x in (a, b, a.T) for k in (0, 1)]
    for x in tensors:
        shape_classes._plan_with_sizes(*parts(Evaluation([x._expr])))
    assert all(len(kernels) == 1 for kernels in emitted.values())
    assert 5 < len(emitted) < len(tensors)


def test_cached_graphs_of_classes_compute_what_eager_mode_does() -> None:
    hits, classes = counters.graph_hits, counters.shape_class_hits
    for structure in range(60):
        for sizes in range(6):
            try:
                x, held = random_value(Draw(structure, sizes, "reference"))
                value = x.numpy().copy()
                kept = [h.numpy().copy() for h in held]
            except dt.DovetailError:
                continue
            with dt.eager():
                x, held = random_value(Draw(structure, sizes, "reference"))
            assert value.tobytes() == x.numpy().tobytes(), (structure, sizes)
            assert [k.tobytes() for k in kept] == [h.numpy().tobytes() for h in held]
    assert counters.graph_hits - hits > 50 and counters.shape_class_hits - classes > 50


# --- guards


GUARDS: dict[str, tuple[Callable[[Any, Any], object], tuple[int, int], tuple[int, int]]] = {
    # what is done with sizes 6 and 4, other sizes that agree, and ones that do not
    "equal": (lambda n, m: n == m + 2, (7, 5), (7, 4)),
    "unequal": (lambda n, m: n != m, (4, 6), (4, 4)),
    "less": (lambda n, m: n < 10, (9, 3), (10, 4)),
    "less_refused": (lambda n, m: n < 5, (5, 3), (4, 3)),
    "less_or_equal": (lambda n, m: n * m <= 24, (8, 3), (5, 5)),
    "greater": (lambda n, m: n > m, (5, 4), (5, 5)),
    "greater_or_equal": (lambda n, m: n - m >= 2, (7, 5), (6, 5)),
    "bool": (lambda n, m: bool(n - 6), (6, 9), (7, 4)),
    "index": (lambda n, m: [*range(n)], (6, 3), (7, 4)),
    "int": (lambda n, m: int(n * m), (8, 3), (8, 4)),
    "float": (lambda n, m: n / 2, (6, 2), (5, 4)),
    "text": (lambda n, m: f"{n}", (6, 2), (5, 4)),
    "hash": (lambda n, m: {n - 5: 0}[1], (6, 3), (7, 4)),
    "key": (lambda n, m: (n, 0) in {(m + 2, 0)}, (9, 7), (9, 8)),
    "other_key": (lambda n, m: (n, 0) in {(m, 0)}, (9, 7), (9, 9)),
    "divided": (lambda n, m: n // 4 == 1, (7, 4), (8, 4)),
    "divided_up": (lambda n, m: -(-n // 4) == 2, (8, 4), (9, 4)),
    "remainder": (lambda n, m: n % m == 2, (8, 3), (9, 3)),
    "absolute": (lambda n, m: abs(m - n), (9, 3), (4, 5)),
    "least": (lambda n, m: min(n, m), (9, 3), (3, 4)),
    "sorted": (lambda n, m: sorted([n, m]), (9, 8), (9, 9)),
    "bits": (lambda n, m: n.bit_length() == 3, (7, 4), (8, 4)),
    "with_float": (lambda n, m: n * 0.5 + 1, (6, 2), (5, 4)),
    "with_bool": (lambda n, m: n + True == 7, (6, 2), (5, 4)),
    "above_float": (lambda n, m: n > 5.5, (6, 2), (5, 4)),
    "bitwise": (lambda n, m: (n & 3, n | 1, n ^ 2, ~n), (6, 2), (5, 4)),
}


@pytest.mark.parametrize("name", GUARDS)
def test_guard_refuses_sizes_by_which_planning_would_differ(name: str) -> None:
    use, agreeing, other = GUARDS[name]
    recorder = GuardRecorder((6, 4))
    use(*recorder.inputs)
    assert 0 < recorder.guard_count <= 2
    program = recorder.compile([recorder.inputs[0] * 10])
    assert program is not None
    assert program.run((6, 4)) == (60,)
    assert program.run(agreeing) == (10 * agreeing[0],)
    assert program.run(other) is None


def test_comparisons_that_all_sizes_agree_on_record_no_guard() -> None:
    recorder = GuardRecorder((6, 4))
    n, m = recorder.inputs
    assert n > 1 and n != 0 and n * m == m * n and n + 1 > n and (n * m) // m == n
    assert 0 not in (n, m) and max(n * m, 1) == n * m and n - n == 0 and -n < 0
    assert -(-n // 4) > 0
    assert recorder.guard_count == 0


def test_formulas_compute_what_ints_do() -> None:
    rng = random.Random(3)

    def formula(x: Any, y: Any, rng: random.Random) -> Any:
        values = [x, y, 3]
        for _ in range(12):
            a, b = rng.choice(values), rng.choice(values)
            op = rng.randrange(7)
            values.append(
                a + b
                if op == 0
                else a - b
                if op == 1
                else a * (b % 7)
                if op == 2
                else a // (b % 5 + 2)
                if op == 3
                else -(-a // 3)
                if op == 4
                else abs(a) % 1000
                if op == 5
                else abs(a).bit_length()
            )
        return values[-4:]

    agreed = 0
    for seed in range(100):
        recorder = GuardRecorder((30, 7))
        program = recorder.compile(formula(*recorder.inputs, random.Random(seed)))
        assert program is not None
        for _ in range(5):
            sizes = rng.randrange(2, 100), rng.randrange(2, 100)
            found = program.run(sizes)
            agreed += found is not None
            assert found in (None, tuple(formula(*sizes, random.Random(seed))))
    assert agreed > 250


def test_number_beyond_64_bits_is_refused() -> None:
    recorder = GuardRecorder((6, 4))
    n, m = recorder.inputs
    program = recorder.compile([n * n * m])
    assert program is not None
    assert program.run((1 << 40, 4)) is None and program.run((1 << 20, 4)) == (1 << 42,)


# --- loops


LOOPS: dict[str, Callable[[Any, Any, int], Any]] = {
    "dot": lambda x, y, n: x[3, :n] @ y[4, :n],
    "chain": lambda x, y, n: dt.exp(x[n:, 1]) * 2 - y[2, n:],
    "rows": lambda x, y, n: dt.softmax(x[:n, : n + 7], axis=1),
    "sum": lambda x, y, n: dt.sum(dt.abs(x[n:, n:]), axis=0),
    "product": lambda x, y, n: x[:n, :20] @ y[:20, :n],
    "turned": lambda x, y, n: (x[:n, ::-1].T + 1)[:, ::2],
    "concat": lambda x, y, n: dt.concat([x[:n], y[n:]]) * 2,
    "argmax": lambda x, y, n: dt.argmax(dt.abs(x[n:, 5])),
    "pending": lambda x, y, n: (x[:n] * 2)[1:] + (x[:n] * 2)[:-1],
}


@pytest.mark.parametrize("name", LOOPS)
def test_loop_over_lengths_makes_few_plans(name: str, device: dt.Device) -> None:
    rng = np.random.default_rng(1)
    x, y = (dt.asarray(rng.standard_normal((215, 215)).astype("f4"), device=device) for _ in "xy")
    lengths = range(4, 204) if device.type == "cpu" else range(4, 54)
    plans, hits = counters.plans, counters.shape_class_hits
    found = [LOOPS[name](x, y, n).numpy() for n in lengths]
    assert counters.plans - plans <= 12
    assert counters.shape_class_hits - hits > len(lengths) // 2
    for n, value in [*zip(lengths, found, strict=True)][::23]:
        with dt.eager():
            wanted = LOOPS[name](x, y, n).numpy()
        assert value.tobytes() == wanted.tobytes(), n


def test_write_into_shrinking_part_makes_few_plans(device: dt.Device) -> None:
    values = np.random.default_rng(1).standard_normal((100, 100)).astype("f4")
    a, b = dt.asarray(values, device=device), values.copy()
    plans = counters.plans
    for k in range(60):
        a[k + 1 :, k] /= 2.5
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, None, k + 1 :] * 0.125
        b[k + 1 :, k] /= np.float32(2.5)
        b[k + 1 :, k + 1 :] -= b[k + 1 :, k, None] * b[k, None, k + 1 :] * np.float32(0.125)
    assert counters.plans - plans <= 12
    np.testing.assert_array_equal(a.numpy(), b)


def test_op_that_accepts_ints_only_is_planned_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*graph: Any) -> None:
        raise TypeError

    monkeypatch.setattr(shape_classes, "_create_class", refuse)
    x = dt.asarray(np.arange(50, dtype="f4"), device="reference")
    plans = counters.plans
    for n in range(30, 35):
        assert (x[:n] * 2.25 - 7).tolist() == [k * 2.25 - 7 for k in range(n)]
    assert counters.plans - plans == 5


# --- sizes of indexed axes

INDEXED: dict[str, Callable[[Any, Any], Any]] = {
    "take": lambda x, i: dt.take(x, i, axis=0) * 2,
    "index": lambda x, i: x[i] + 1,
    "gather": lambda x, i: dt.take_along_axis(x, i[:, None], axis=0) - 1,
    "index_add": lambda x, i: dt.index_add(x, 0, i, dt.ones((i.shape[0], 4), device=x.device)) * 2,
    "index_reduce": lambda x, i: dt.index_reduce(x, 0, i, x[1:5], "amax") * 2,
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", INDEXED)
def test_sizes_of_indexed_axes_share_a_class(name: str, device: str) -> None:
    def run(n: int, index: list[int]) -> Any:
        x = dt.asarray(np.arange(4.0 * n, dtype="f4").reshape(n, 4), device=device)
        return INDEXED[name](x, dt.asarray(index, device=device)).numpy()

    # 18 is also the code of a size in the key of a class
    rows = {n: [0, n // 2, n - 1, 1] for n in (40, 50, 60, 18, 33, 70)}
    with dt.eager():
        expected = {n: run(n, index) for n, index in rows.items()}
    for n in (40, 50):
        run(n, rows[n])
    plans = counters.plans
    for n in (60, 18, 33, 70):
        assert run(n, rows[n]).tobytes() == expected[n].tobytes()
    assert counters.plans == plans
    with pytest.raises(dt.OutOfRangeError, match=r"29.* size 28\b"):
        run(28, [0, 29, 1, 2])
