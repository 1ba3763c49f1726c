"""Shape classes: a plan for all sizes that meet its guards, with formulas in place of numbers.

`plan_shape_class` plans a graph whose sizes are symbolic. The class then builds the plan of any
graph of the same structure from its sizes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..backend.faults import IndexPurpose
from ..dtypes import DType
from ..graph.expr import Spec
from ..ir.builder import Kernel
from ..layout import StridedView
from ..ops.table import Op
from . import passes
from .decisions import PlanGraph
from .plan import Materialised, MemoryOperand, Plan, PlannedCall, PlannedLaunch
from .reasons import Reason
from .size_program import SizeProgram
from .symbolic_sizes import GuardRecorder, SizeLike


class LaunchTemplate(NamedTuple):
    """A launch without its numbers. These are, in order:

    the offset of each buffer, the bytes of each allocation, the ints, the grid, the bytes moved,
    and the size of the axis of each check.
    """

    kernel: Kernel
    buffer_slots: tuple[int, ...]
    allocation_slots: tuple[int, ...]
    int_count: int
    scalars: tuple[int, ...]
    grid_rank: int
    reasons: tuple[Reason, ...]
    checks: tuple[tuple[int, int, IndexPurpose], ...]
    released_slots: tuple[int, ...]

    def build(self, numbers: Sequence[int], at: int) -> tuple[PlannedLaunch, int]:
        """Return the launch with its numbers, which begin at `at`, and where they end."""
        allocations = at + len(self.buffer_slots)
        ints = allocations + len(self.allocation_slots)
        grid = ints + self.int_count
        nbytes = grid + self.grid_rank
        end = nbytes + 1 + len(self.checks)
        step = PlannedLaunch(
            self.kernel,
            tuple(zip(self.buffer_slots, numbers[at:ints], strict=False)),
            tuple(
                zip(self.allocation_slots, numbers[at + len(self.buffer_slots) : ints], strict=True)
            ),
            tuple(numbers[ints:grid]),
            self.scalars,
            tuple(numbers[grid:nbytes]),
            self.reasons,
            numbers[nbytes],
            tuple(
                [
                    (slot, i, purpose._replace(size=numbers[nbytes + 1 + k]))
                    for k, (slot, i, purpose) in enumerate(self.checks)
                ]
            ),
            self.released_slots,
        )
        return step, end


class OperandTemplate(NamedTuple):
    """An operand of a call without its numbers: its shape, its strides and its offset."""

    slot: int
    rank: int
    dtype: DType
    scale: OperandTemplate | None

    def build(self, numbers: Sequence[int], at: int) -> tuple[MemoryOperand, int]:
        """Return the operand with its numbers, which begin at `at`, and where they end."""
        strides = at + self.rank
        offset = strides + self.rank
        shape = tuple(numbers[at:strides])
        view = StridedView(shape, tuple(numbers[strides:offset]), numbers[offset])
        if self.scale is None:
            return MemoryOperand(self.slot, view, self.dtype), offset + 1
        scale, end = self.scale.build(numbers, offset + 1)
        return MemoryOperand(self.slot, view, self.dtype, scale), end


class CallTemplate(NamedTuple):
    """A library call without its numbers: those of its operands, allocations, and bytes moved."""

    op: Op
    dtype: DType
    operands: tuple[OperandTemplate, ...]  # the last one is the output
    allocation_slots: tuple[int, ...]
    reasons: tuple[Reason, ...]
    released_slots: tuple[int, ...]

    def build(self, numbers: Sequence[int], at: int) -> tuple[PlannedCall, int]:
        """Return the call with its numbers, which begin at `at`, and where they end."""
        operands = []
        for template in self.operands:
            operand, at = template.build(numbers, at)
            operands.append(operand)
        end = at + len(self.allocation_slots)
        allocations = tuple(zip(self.allocation_slots, numbers[at:end], strict=True))
        *inputs, output = operands
        call = PlannedCall(
            self.op, self.dtype, tuple(inputs), output, allocations, self.reasons, numbers[end]
        )
        call.released_slots = self.released_slots
        return call, end + 1


@dataclass(eq=False, slots=True, repr=False)
class ShapeClass:
    """A plan for all graphs of one structure whose sizes meet the guards of `program`.

    materialised: (op, position of the node, reason) of each. guards: their number.
    """

    program: SizeProgram
    steps: tuple[LaunchTemplate | CallTemplate, ...]
    slot_count: int
    output_slots: tuple[tuple[int, int], ...]
    materialised: tuple[tuple[str, int, Reason], ...]
    target_overlaps: bool
    guards: int

    def build_plan(self, sizes: tuple[int, ...], specs: Sequence[Spec | None]) -> Plan | None:
        """Return the plan for these sizes, or None if they do not meet the guards.

        specs: those of the nodes, by which the plan describes what is materialised; None leaves a
            node out.
        """
        numbers = self.program.run(sizes)
        return None if numbers is None else self.fill(numbers, specs)

    def fill(self, numbers: Sequence[int], specs: Sequence[Spec | None]) -> Plan:
        """Return the plan with the numbers that the program has computed."""
        steps: list[PlannedLaunch | PlannedCall] = []
        at = 0
        for template in self.steps:
            step, at = template.build(numbers, at)
            steps.append(step)
        materialised = [
            Materialised(op, spec, why)
            for op, i, why in self.materialised
            if (spec := specs[i]) is not None
        ]
        return Plan(
            steps, self.slot_count, self.output_slots, materialised, self.target_overlaps, self
        )


def plan_shape_class(
    graph: PlanGraph, recorder: GuardRecorder, fast_math: bool
) -> ShapeClass | None:
    """Plan a graph with symbolic sizes; return its class, or None if that is too large."""
    plan = passes.plan(graph, fast_math)
    numbers: list[SizeLike] = []
    steps = tuple([_strip_step(step, numbers) for step in plan.steps])
    position: dict[int, int] = {}
    for i, e in enumerate(graph.nodes):
        position.setdefault(id(e.spec), i)
    materialised = tuple([(m.op, position[id(m.spec)], m.reason) for m in plan.materialised])
    program = recorder.compile(numbers)
    if program is None:
        return None
    return ShapeClass(
        program,
        steps,
        plan.slot_count,
        plan.output_slots,
        materialised,
        plan.target_overlaps,
        recorder.guard_count,
    )


def _strip_step(
    step: PlannedLaunch | PlannedCall, numbers: list[SizeLike]
) -> LaunchTemplate | CallTemplate:
    """Return the template of a step; append its numbers in the order of the template."""
    if isinstance(step, PlannedCall):
        operands = tuple([_strip_operand(x, numbers) for x in (*step.inputs, step.output)])
        numbers += [nbytes for _, nbytes in step.allocations]
        numbers.append(step.nbytes)
        allocation_slots = tuple([slot for slot, _ in step.allocations])
        return CallTemplate(
            step.op, step.dtype, operands, allocation_slots, step.reasons, step.released_slots
        )
    numbers += [offset for _, offset in step.buffers]
    numbers += [nbytes for _, nbytes in step.allocations]
    numbers += [*step.ints, *step.grid, step.nbytes]
    numbers += [purpose.size for _, _, purpose in step.checks]
    return LaunchTemplate(
        step.kernel,
        tuple([slot for slot, _ in step.buffers]),
        tuple([slot for slot, _ in step.allocations]),
        len(step.ints),
        step.scalars,
        len(step.grid),
        step.reasons,
        tuple([(slot, i, purpose._replace(size=0)) for slot, i, purpose in step.checks]),
        step.released_slots,
    )


def _strip_operand(operand: MemoryOperand, numbers: list[SizeLike]) -> OperandTemplate:
    """Return the template of an operand; append its numbers, and then those of its scale."""
    numbers += [*operand.view.shape, *operand.view.strides, operand.view.offset]
    scale = None if operand.scale is None else _strip_operand(operand.scale, numbers)
    return OperandTemplate(operand.slot, len(operand.view.shape), operand.dtype, scale)
