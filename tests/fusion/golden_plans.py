"""Golden plans of many graphs in `golden/*.txt`, and their kernels in `golden_kernels`.

`python tests/fusion/golden_plans.py --write` rewrites the files after a change that is meant to
change plans or kernels; the difference of the files shows its effect.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dovetail as dt
from dovetail.fusion import passes
from dovetail.fusion.decisions import PlanGraph
from dovetail.fusion.plan import Plan, PlannedLaunch, WriteTarget
from dovetail.graph.expr import Expr, node, storage_of
from dovetail.ops import table as ops
from dovetail.ops.scatter import Manner
from dovetail.tensor.tensor import create_tensor

FOLDER = Path(__file__).parent / "golden"
KERNELS = Path(__file__).parent / "golden_kernels"
LONG = 100  # longest kernel that is shown: the kernels of ops have their own tests
DEVICE = "reference"
CONCURRENCY = 8  # of the planned device, whatever runs the test

# A graph is a program over x[64, 33], y[33], v[200000], i[20] and the functions of dovetail. It
# requests `root`, or `roots`; `held` are values with other references; `into` is the memory that
# the root is written to; `scattered` is x with values added at places.
GRAPHS = {
    "argmax_of_rows": "root = dt.argmax(x * 2, axis=1)",
    "broadcast_cheap_value": "root = (y + 1) * x",
    "broadcast_costly_value": "root = dt.exp(dt.sin(y) * dt.cos(y)) * x",
    "concat_of_one": "root = dt.concat([x])",
    "concat_seen_by_a_reshape": "root = dt.reshape(dt.concat([x, y * x]).T, (66, 64)) + 1",
    "concat_writes_a_part": "into = dt.empty((2, 64, 33), device=x.device)[1]\nroot = x * y + 1",
    "concat_in_its_reader": "root = dt.concat([x, y.reshape(1, 33) + 1]) * 2",
    "concat_of_costly_part": "root = dt.concat([dt.exp(dt.sin(x)), x])",
    "concat_of_gather_and_sum": "root = dt.concat([x[i], x.sum(axis=0, keepdims=True)])",
    "costly_value_in_two_kernels": """\
n = dt.random.normal((300,), device=x.device)
root = (n * 2).sum() + n[:100].prod()""",
    "costly_value_in_two_loops": """\
a = dt.sin(dt.sin(x))
root = a / a.sum(axis=1, keepdims=True)""",
    "costly_value_read_by_many": """\
a = dt.sin(x)
roots = [a + 1, dt.sum(a, axis=1), dt.sum(a, axis=0)]""",
    "costly_value_rolled": "root = dt.roll(dt.exp(dt.sin(x)), (1, -1), axis=(0, 1))",
    "count_of_true": "root = dt.count_nonzero(x > y, axis=0)",
    "cumulative_sum": "root = dt.cumulative_sum(x * 2, axis=1)",
    "elementwise_chain": "root = (x * y + x) / (y + 1)",
    "float16_mean": "root = (x.astype(dt.float16) * 2).mean(axis=1)",
    "gather_of_leaf": "root = x[i] * 2",
    "gather_of_pending": "root = dt.take(x + y, i, axis=0)",
    "gather_with_checks_at_two_points": "a = y[i]\nroot = a + dt.flip(a)",
    "gather_with_checks_in_a_sum": "root = dt.sum(x[i], axis=1)",
    "generated": "root = dt.arange(100, device=x.device) * 3",
    "held_and_seen_the_same_by_moves": "held = x * 2\nroot = dt.exp(held.T.T)",
    "held_value": "held = x * 2\nroot = dt.exp(held)",
    "in_place_beside_what_is_held": "into = x\nheld = x * 2\nroot = dt.exp(held)",
    "in_place_over_itself": "into = x\nroot = x * 2 + y",
    "in_place_over_shifted_self": "into = x[1:]\nroot = x[:-1] * 2",
    "in_place_slice": "into = x[::2, 3:20]\nroot = dt.exp(y[3:20])",
    "rolled_in_place": "into = x\nroot = dt.roll(x, 1, axis=0)",
    "rolled_neighbours": "root = dt.roll(x, (1, 1), axis=(0, 1)) + dt.roll(x, -1, axis=1)",
    "scatter_into_leaf": "root = scattered(x, x[:20] * 2, i)",
    "layer_norm": """\
away = x - x.mean(axis=1, keepdims=True)
root = away * dt.rsqrt((away * away).mean(axis=1, keepdims=True) + 1e-5) * y + y""",
    "lazy_storage_views": "a = x * 2\nb, c = a[:, ::2], a.T\nroot = b.sum() + c.sum()",
    "log_softmax": "root = dt.log_softmax(x, axis=0)",
    "mask": "root = x[x > 0]",
    "matmul_chain": "root = (x.T @ x) @ x.T + 1",
    "matmul_of_views": "root = dt.matmul(x[:32].T * 2, x[32:])",
    "mean_over_all_axes_of_a_transpose": "root = (x.T[1:] * y[1:, None]).mean()",
    "multiple_outputs": "a = x + y\nroots = [a, a * 2, dt.sum(a, axis=1), dt.sum(a, axis=0)]",
    "node_limit": "a = x\nfor k in range(100):\n    a = a * (k + 2) + y\nroot = a",
    "node_limit_of_costly": "a = x\nfor _ in range(60):\n    a = dt.sin(a)\nroot = a",
    "outer_of_sums": "root = dt.sum(x, axis=1)[:, None] * dt.sum(x, axis=0)",
    "product_of_all": "root = dt.prod(v * 1.5)",
    "random_normal": "root = dt.random.normal((50, 4), device=x.device) * 3 + 1",
    "reduce_middle_axis": "root = dt.sum(dt.reshape(x * 2, (8, 8, 33)), axis=1)",
    "reduce_outer_axes": """\
a = dt.reshape(x[:, :32] * 2, (4, 16, 4, 8))
root = dt.sum(a, axis=(0, 2)) + dt.max(a, axis=(0, 2))""",
    "reductions_over_both_axes": "root = dt.sum(x * 2, axis=0).sum() + dt.sum(x, axis=1).max()",
    "reshape_of_transpose": "root = dt.reshape((x * 2).T, (66, 32)) + 1",
    "roll_and_flip": "root = dt.roll(x, 3, axis=1) + dt.flip(x, axis=0)",
    "same_value_used_often": "a = x\nfor _ in range(12):\n    a = a + a\nroot = a",
    "scalars": "root = dt.clip(x * 2.5 - 1, -1.0, 3)",
    "scatter_into_pending": "root = scattered(x + 1, x[:20], i)",
    "searchsorted": "root = dt.searchsorted(dt.cumulative_sum(dt.exp(y)), x[0] * 3)",
    "softmax_of_columns": "root = dt.softmax(x * 2, axis=0)",
    "softmax_of_rows": "root = dt.softmax(x, axis=1)",
    "sort_of_pending": "root = dt.sort(x * y, axis=1)",
    "sort_of_long_rows": "root = dt.sort(v + 1)",
    "sparse_product": """\
a = dt.sparse.sparse_coo_tensor([[0, 1, 1], [2, 0, 5]], [1.0, 2.0, 3.0], (40, 64), device=x.device)
root = a @ (x * 2)""",
    "split_rows": "root = dt.sum(v * 2)",
    "split_rows_in_chunks_of_chunks": """\
root = dt.max(dt.broadcast_to(y[:2], (1 << 25, 2)) + 1, axis=0)""",
    "sums_repeated_and_flattened": """\
a = dt.broadcast_to(dt.sum(x, axis=1, keepdims=True), x.shape)
root = dt.reshape(a, (a.size,))[:64] + 1""",
    "std_of_long_rows": "root = dt.std(v)",
    "top_of_rows": "root = dt.topk(x, 3).values",
    "unique_values": "root = dt.unique_values(i)",
    "update_in_place": """\
into = x
root = scattered(x, y * y, i)""",
    "var_of_rows": "root = dt.var(x, axis=1)",
    "view_of_a_view": "root = x[10:50:2].T[::-1, 3:].sum(axis=0) * 2",
    "where": "root = dt.where(x > 0, dt.exp(x), dt.tanh(x)).sum(axis=1)",
}


def graph(program: str) -> PlanGraph:
    """Return the graph of a program."""
    names: dict[str, Any] = {"dt": dt, "scattered": scattered}
    for name, shape in (("x", (64, 33)), ("y", (33,)), ("v", (200_000,))):
        names[name] = dt.zeros(shape, device=DEVICE)
    names["i"] = dt.arange(20, device=DEVICE)
    dt.evaluate(*(names[name] for name in "xyvi"))
    exec(program, names)
    roots = [_pending(x._expr) for x in names.get("roots", [names.get("root")])]
    target = names["into"]._expr if "into" in names else None
    if target is not None and roots[0].op is not None and not roots[0].op.updates:
        roots = [node(ops.COPY, (roots[0],), target.spec)]
    held = [_pending(names["held"]._expr)] if "held" in names else []
    return walked(roots, held, target)


def scattered(x: dt.Tensor, values: dt.Tensor, places: dt.Tensor) -> dt.Tensor:
    """Return `x` with values added to its rows at these places."""
    shape = (*places.shape, *x.shape[1:])
    operands = (x, dt.broadcast_to(values, shape), dt.broadcast_to(places[:, None], shape))
    return create_tensor(
        node(ops.SCATTER, tuple(a._expr for a in operands), x._expr.spec, Manner("add"))
    )


def _pending(e: Expr) -> Expr:
    """Return what must be computed for `e` to be in memory."""
    found = e if e.op is not None else storage_of(e).pending
    assert found is not None, "the program leaves nothing pending"
    return found


def walked(roots: Sequence[Expr], held: Sequence[Expr], target: Expr | None) -> PlanGraph:
    """Return the graph of these expressions."""
    nodes: list[Expr] = []
    index: dict[Expr, int] = {}
    leaves: list[Expr] = []

    def visit(e: Expr) -> None:
        if e in index:
            return
        if e.op is None and storage_of(e).pending is None:
            leaves.append(e)
        for a in e.args if e.op is not None else (e.storage.pending,):
            if isinstance(a, Expr):
                visit(a)
        index[e] = len(nodes)
        nodes.append(e)

    for e in roots:
        visit(e)
    leaf_slot = {index[e]: slot for slot, e in enumerate(leaves)}
    at, kept = [index[e] for e in roots], [index[e] for e in held]
    into = _target(target, leaves)
    return PlanGraph(nodes, index, leaf_slot, at, kept, CONCURRENCY, frozenset(), into)


def _target(e: Expr | None, leaves: Sequence[Expr]) -> WriteTarget | None:
    if e is None:
        return None
    over = [slot for slot, a in enumerate(leaves) if a.storage is e.storage]
    here = (e.offset, e.strides, e.spec.shape)
    same = [s for s in over if (leaves[s].offset, leaves[s].strides, leaves[s].spec.shape) == here]
    return WriteTarget(e.strides, len(leaves), frozenset(over), frozenset(same))


def text(name: str) -> str:
    """Return the text of a golden plan."""
    program = GRAPHS[name]
    made = graph(program)
    lines = _described(passes.plan(made), len(made.leaf_slot), made.target is not None)
    return "\n".join([*(f"# {line}" for line in program.splitlines()), "", *lines, ""])


def kernels(name: str) -> str:
    """Return the distinct kernels of a graph."""
    made = passes.plan(graph(GRAPHS[name]))
    texts = dict.fromkeys(
        str(step.kernel) for step in made.steps if isinstance(step, PlannedLaunch)
    )
    shown = (t if t.count("\n") < LONG else f"{t.splitlines()[0]} ... }}" for t in texts)
    return "\n\n".join(shown) + "\n"


def _described(made: Plan, leaves: int, writes: bool) -> list[str]:
    if made.target_overlaps:
        return ["what is read would be overwritten: it goes through fresh memory"]
    names = {slot: f"leaf {slot}" for slot in range(leaves)}
    if writes:
        names[leaves] = "the target"

    def named(slot: int) -> str:
        """Return a slot's name; temporaries are numbered in order of appearance."""
        return names.setdefault(slot, f"t{len(names) - leaves - writes + 1}")

    lines: list[str] = []
    for number, step in enumerate(made.steps, 1):
        assert isinstance(step, PlannedLaunch)
        lines.append(f"{number}. {step.kernel.name}, grid {' x '.join(map(str, step.grid))}")
        lines.append(f"   since {'; '.join(map(str, step.reasons))}")
        for does, access in (("reads", "r"), ("changes", "rw"), ("writes", "w")):
            of = zip(step.buffers, step.kernel.buffers, strict=True)
            used = [_placed(named(slot), start) for (slot, start), b in of if b.access == access]
            lines += [f"   {does} {', '.join(dict.fromkeys(used))}"] if used else []
        new = [f"{named(slot)} of {nbytes:,} bytes" for slot, nbytes in step.allocations]
        lines += [f"   allocates {', '.join(new)}"] if new else []
        lines.append(f"   moves {step.nbytes:,} bytes")
        lines += [f"   takes integers {', '.join(map(str, step.ints))}"] if step.ints else []
        lines += [f"   takes numbers {', '.join(map(str, step.scalars))}"] if step.scalars else []
        lines += [f"   checks the indices of {asked.op}" for _, _, asked in step.checks]
        lines += (
            [f"   drops {', '.join(sorted(map(named, step.released_slots)))}"]
            if step.released_slots
            else []
        )
    notes = (f"  {op} {spec}: {reason}" for op, spec, reason in made.materialised)
    kept = ", ".join(named(slot) for _, slot in made.output_slots)
    return [*lines, "", "materialised:", *notes, f"kept: {kept}"]


def _placed(name: str, start: int) -> str:
    return f"{name} from byte {start:,}" if start else name


def main(arguments: Sequence[str]) -> int:
    """Write the files if asked to, otherwise print their new content."""
    for name in GRAPHS:
        if arguments == ["--write"]:
            (FOLDER / f"{name}.txt").write_text(text(name))
            (KERNELS / f"{name}.txt").write_text(kernels(name))
        else:
            print(f"=== {name}\n{text(name)}\n{kernels(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
