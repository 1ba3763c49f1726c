"""Fusion is a list of passes: each documents its decisions, and tests verify them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import dovetail as dt
import golden_plans
import pytest
from dovetail.dtypes import float32
from dovetail.fusion import cost, passes
from dovetail.fusion.decisions import Decisions
from dovetail.fusion.domain import Domain
from dovetail.fusion.groups import Access, FusionGroup, OwnKernels, SplitRows
from dovetail.fusion.plan import PlannedLaunch
from dovetail.fusion.reasons import Reason, ReasonKind
from dovetail.fusion.verify import find_violations, verify
from dovetail.layout import contiguous_strides
from dovetail.testing import verified

PROGRAM = """\
held = dt.sort(x * 2, axis=1)
root = dt.softmax(held + y, axis=1) * dt.sum(v)"""


def decided(upto: str, program: str = PROGRAM) -> Decisions:
    """Return the decisions after a pass."""
    d = Decisions(golden_plans.graph(program))
    for run in passes.PASSES:
        run(d)
        if run.__name__ == upto:
            return d
    raise AssertionError(upto)


def test_trace_shows_the_changes_of_each_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    x = dt.zeros((64, 33), device="reference")
    x.tolist()
    y = dt.exp(x) * 2
    dt.explain(y)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("DOVETAIL_TRACE", "fusion")
    dt.explain(y)
    assert capsys.readouterr().err.splitlines() == [
        "fusion, select_roots:",
        "  + materialised 2 multiply float32[64, 33] on reference, slot 1: asked for",
        "fusion, split_reductions:",
        "  unchanged",
        "fusion, group:",
        "  + kernel 0: writes 2 multiply float32[64, 33] on reference; over (64, 33); "
        "reads [], computes [0, 1] on the fly",
        "fusion, emit:",
        "  + launch exp_multiply, grid (2112,)",
        "fusion, mark_last_uses:",
        "  unchanged",
    ]


def test_unknown_trace_word_is_named_in_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_TRACE", "everything of test_passes")
    with pytest.warns(
        dt.DovetailWarning, match="DOVETAIL_TRACE must be .*'everything of test_passes'"
    ):
        # a program that no other test has planned, nor one of other sizes
        dt.explain(dt.zeros((2, 3, 5, 7, 11), device="reference"))


@pytest.mark.parametrize("name", [run.__name__ for run in passes.PASSES])
def test_decisions_satisfy_the_rules_after_each_pass(name: str) -> None:
    d = decided(name)
    verify(d, name)
    assert d.materialised and str(d)


def forget_a_root(d: Decisions) -> None:
    del d.materialised[d.graph.roots[0]]


def forget_own_kernels(d: Decisions) -> None:
    del (
        d.materialised[d.graph.externally_referenced[0]],
        d.slot_of[d.graph.externally_referenced[0]],
    )
    d.graph.output_nodes = frozenset(d.graph.roots)


def share_a_slot(d: Decisions) -> None:
    i, j, *_ = d.slot_of
    d.slot_of[i] = d.slot_of[j]


def order_axes_twice(d: Decisions) -> None:
    d.axis_orders[d.graph.roots[0]] = (1, 1)


def split_what_is_not_reduced(d: Decisions) -> None:
    d.split_domains.add(Domain((7, 7), (0,)))


def write_twice(d: Decisions) -> None:
    d.kernels.append(d.kernels[0])


def first_group(d: Decisions) -> FusionGroup:
    return next(k for k in d.kernels if isinstance(k, FusionGroup))


def lose_a_home(d: Decisions) -> None:
    d.kernel_of.popitem()


def read_before_it_is_written(d: Decisions) -> None:
    for index, kernel in enumerate(d.kernels):
        if isinstance(kernel, OwnKernels):
            late = kernel.inputs[0]._replace(slot=d.slot_of[d.graph.roots[0]])
            d.kernels[index] = kernel._replace(inputs=(late,))


def change_the_domain(d: Decisions) -> None:
    first_group(d).domain = Domain((3, 5), ())


def count_wrongly(d: Decisions) -> None:
    first_group(d).index += 1


def walk_an_axis_too_few(d: Decisions) -> None:
    a = first_group(d).accesses[0]
    a.strides = a.strides[1:]


def write_elsewhere(d: Decisions) -> None:
    out = first_group(d).outputs[0]
    other = Access(99, float32, out.access.strides, 0)
    first_group(d).outputs[0] = out._replace(access=other)
    first_group(d).accesses.append(other)


def write_unnoticed(d: Decisions) -> None:
    first_group(d).accesses.remove(first_group(d).outputs[0].access)


def grow(d: Decisions) -> None:
    group = first_group(d)
    group.value_count, group.outputs = 1000, group.outputs * 2


def walk_rows_by_two_strides(d: Decisions) -> None:
    group, full = first_group(d), (2, 3, 4)
    group.domain, strides = Domain(full, (0, 1, 2)), contiguous_strides(full)
    group.accesses = [Access(0, float32, strides, 0), Access(0, float32, strides[::-1], 0)]


def allocate_twice(d: Decisions) -> None:
    d.steps[-1].allocations = d.steps[0].allocations


def allocate_nothing(d: Decisions) -> None:
    d.steps[0].allocations = ()


def drop_too_early(d: Decisions) -> None:
    first = d.steps[0]
    assert isinstance(first, PlannedLaunch)
    first.released_slots = tuple(slot for slot, _ in first.allocations)


def drop_what_is_kept(d: Decisions) -> None:
    last = d.steps[-1]
    last.released_slots = (*last.released_slots, *(d.slot_of[i] for i in d.graph.output_nodes))


@pytest.mark.parametrize(
    ("after", "breaks", "said"),
    [
        ("select_roots", forget_a_root, "was asked for or is held, and is not materialised"),
        ("select_roots", forget_own_kernels, "has kernels of its own, and is not materialised"),
        ("select_roots", share_a_slot, "two values have one slot"),
        ("select_roots", order_axes_twice, "has its axes in the order"),
        ("split_reductions", split_what_is_not_reduced, "no reduction has the rows"),
        ("group", write_twice, "is written by the kernels"),
        ("group", lose_a_home, "other nodes than those that are materialised"),
        ("group", read_before_it_is_written, "which nothing has written"),
        ("group", change_the_domain, "does not fit the domain"),
        ("group", count_wrongly, "counts as number"),
        ("group", walk_an_axis_too_few, "has an access with strides"),
        ("group", write_elsewhere, "is written to a slot that no reader uses"),
        ("group", write_unnoticed, "is written to a slot that no reader uses"),
        ("group", grow, "has 1000 values"),
        ("group", walk_rows_by_two_strides, "no single stride walks the rows"),
        ("emit", allocate_twice, "again"),
        ("emit", allocate_nothing, "which is not there"),
        ("mark_last_uses", drop_too_early, "which is not there"),
        ("mark_last_uses", drop_what_is_kept, "is kept, and its memory is not there at the end"),
    ],
)
def test_verify_reports_each_broken_rule(
    after: str, breaks: Callable[[Decisions], None], said: str
) -> None:
    d = decided(after)
    verify(d, after)
    breaks(d)
    assert any(said in rule for rule in find_violations(d))
    with pytest.raises(dt.InternalError, match=f"fusion, after {after}: "):
        verify(d, after)


@pytest.mark.parametrize("limit", [0, 6, 7])
def test_kernel_stays_within_the_node_limit_or_has_one_value(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "KERNEL_VALUES_MAX", limit)
    d = decided("group")
    verify(d, "group")
    groups = [k for k in d.kernels if isinstance(k, FusionGroup)]
    beyond = [len(group.outputs) for group in groups if group.value_count > limit]
    assert {*beyond} == ({1} if limit == 0 else set())
    assert max(len(group.outputs) for group in groups) == (1 if limit == 0 else 2)


def test_split_rows_may_need_more_than_one_stride() -> None:
    program = "held = dt.reshape(v, (20, 5, 2000)) * 2\nroot = dt.sum(held, axis=(0, 2))"
    d = decided("group", program)
    verify(d, "group")
    split = d.kernels[-1]
    assert isinstance(split, SplitRows) and not split.group.row_is_coalescible()


def test_pass_that_breaks_a_rule_raises_in_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(d: Decisions) -> None:
        d.materialised.clear()

    monkeypatch.setattr(passes, "PASSES", (*passes.PASSES, careless))
    with (
        verified.verify_passes(),
        pytest.raises(dt.InternalError, match="fusion, after careless: node 0 was asked for"),
    ):
        # a program that no other test has planned, nor one of other sizes
        dt.explain(dt.zeros((2, 3, 5, 7, 11, 13), device="reference"))


def test_reasons_have_texts() -> None:
    assert str(Reason(ReasonKind.REQUESTED)) == "asked for"
    assert str(Reason(ReasonKind.STARTS_FROM_COPY, "scatter")) == "scatter starts from a copy"
    assert (
        len(
            {
                Reason(ReasonKind.REQUESTED),
                Reason(ReasonKind.REQUESTED),
                Reason(ReasonKind.REFERENCED),
            }
        )
        == 2
    )


def test_plan_marks_targets_read_at_other_places_without_raising() -> None:
    """`rolled_in_place` is such a plan; `in_place_over_itself` reads the same elements."""
    made = [passes.plan(golden_plans.graph(p)) for p in golden_plans.GRAPHS.values()]
    overlapping = [m for m in made if m.target_overlaps]
    assert overlapping and len(overlapping) < len(made)
    assert all((m.steps, m.output_slots, m.slot_count) == ([], (), 0) for m in overlapping)
    folder = Path(passes.__file__).parent
    trees = [ast.parse(file.read_text()) for file in folder.glob("*.py")]
    assert not [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Try)]
