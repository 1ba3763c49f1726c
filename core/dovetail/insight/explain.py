"""The report of pending work or of a captured function: `dt.explain`.

`dt.explain(x)` describes how the pending work of x would run. Nothing runs, and it stays pending.
`dt.explain(f)` describes the launches of a captured function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeGuard, cast, overload

from ..argument_checks import flag
from ..capture.program import CapturedProgram, HostAct
from ..capture.program import LaunchAct as CapturedLaunch
from ..capture.program import LibraryCallAct as CapturedCall
from ..capture.program import RawLaunchAct as CapturedWork
from ..engine import evaluate as run
from ..engine import programs
from ..fusion.plan import PlannedCall, PlannedLaunch
from ..graph.expr import Spec
from ..plugins.device_handle import OpenedDevice
from ..tensor.c_fields import is_strided
from ..tensor.tensor import OtherLayout, Tensor, parts_of, required
from .explain_report import (
    Explanation,
    LaunchReport,
    MessageReport,
    PlanReport,
    ReplayReport,
    ReplayReports,
)

__all__ = ["explain"]


class CapturedFunction(Protocol):
    """A function that `dt.jit` gave. `programs`: its programs, each with its kind of arguments."""

    __name__: str

    @property
    def programs(self) -> Sequence[tuple[str, CapturedProgram]]:
        """Return the captured programs, each with the description of its arguments."""

    def explain_captures(
        self, args: tuple[object, ...]
    ) -> tuple[Sequence[tuple[str, CapturedProgram]], Sequence[str]]:
        """Return the programs for such arguments, and the reasons of their failed captures."""


def _is_captured_function(x: object) -> TypeGuard[CapturedFunction]:
    """Return True if an object has `programs`, as a function from `dt.jit` has."""
    return hasattr(x, "programs")


@overload
def explain(*tensors: Tensor, source: bool = False, verbose: bool = False) -> Explanation: ...
@overload
def explain(
    f: CapturedFunction, /, *args: object, source: bool = False, verbose: bool = False
) -> ReplayReports: ...
@overload
def explain(
    f: Callable[..., object], /, *args: object, source: bool = False, verbose: bool = False
) -> Explanation: ...
def explain(
    *tensors: object, source: bool = False, verbose: bool = False
) -> Explanation | ReplayReports:
    """Report how the pending work of these tensors would run: launches, reasons, kernels.

    Nothing runs, and it stays pending. The result can be inspected (`launches`, `stored`, `nbytes`,
    `fresh`), or printed. A notebook draws it as a graph, with the times of launches that
    `dt.profile` has seen; `save` writes that to a file.

    - `tensors`: tensors with pending work; or a function and its arguments, some of them sharded
      (docs/sharded-tensors.md): it is called, but sends and computes nothing, and `messages` and
      `bytes_sent` tell what it would send; or a function that `dt.jit` gave: then the programs for
      each kind of arguments are reported, as `captures`, each with `launches` and the bytes of its
      `arena`. Arguments after it select the program for their kind alone, or the reasons why there
      is none (`reasons`).
    - `source`: True also compiles each kernel, to show the backend's code.
    - `verbose`: True prints all kernels, as `text()` does; False a summary of a few lines.

    Shapes: any.
    Dtypes: all.
    Units: bytes for what launches move and allocate.
    Raises: DTypeError if an argument is not a tensor; CompileError with `source`.
    See also: `profile`, `draw_graph`, `record_lines`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> why = dt.explain(dt.softmax(x * 2))
    >>> len(why.launches), why.fresh
    (1, 16)
    >>> print(str(why).splitlines()[0])
    1 launch, 32 bytes moved, 16 bytes allocated. Nothing has run.
    """
    source, verbose = flag("explain", source, "source"), flag("explain", verbose, "verbose")
    if tensors and _is_captured_function(f := tensors[0]):
        programs, reasons = (
            f.explain_captures(tensors[1:]) if len(tensors) > 1 else (f.programs, ())
        )
        replays = tuple(_explain_program(inputs, p, source, verbose) for inputs, p in programs)
        return ReplayReports(f.__name__, replays, tuple(reasons))
    launches: list[LaunchReport] = []
    plans = []
    messages: Sequence[MessageReport] = ()
    others = [x for x in tensors[1:] if isinstance(x, Tensor) and not is_strided(x)]
    if others and callable(f := tensors[0]) and not isinstance(f, Tensor):
        traced: Any = cast(OtherLayout, others[0]).run_rule("trace", "explain", f, tensors[1:])
        tensors, messages = traced
    strided = [p for x in tensors for p in parts_of(required("explain", x))]
    sketches = run.sketch_plans([p._expr for p in strided])
    for s in sketches:
        first = len(launches)
        launches += [_explain_launch(s.opened, step, source) for step in s.plan.steps]
        inputs = tuple(
            (i, _format_spec(x), x.size * x.itemsize) for i, x in enumerate(s.read_specs)
        )
        outputs = tuple((slot, _format_spec(x)) for slot, x in s.stored_specs)
        plans.append(PlanReport(first, len(launches), inputs, outputs))
    stored = tuple(f"{m.op} {m.spec}: {m.reason}" for s in sketches for m in s.plan.materialised)
    return Explanation(tuple(launches), stored, plans, verbose, tuple(messages))


def _format_spec(x: Spec) -> str:
    """Return dtype and shape as text, such as "float32[2, 3]"."""
    return f"{x.dtype.name}{[*x.shape]}"


def _explain_program(
    arguments: str, program: CapturedProgram, source: bool, verbose: bool
) -> ReplayReport:
    """Return the report of a captured program for one kind of arguments."""
    launches = tuple(_explain_act(program.opened, how, act, source) for how, act in program.steps())
    return ReplayReport(arguments, launches, program.arena, sum(program.sizes), verbose)


def _explain_act(
    opened: OpenedDevice,
    prefix: str,
    act: CapturedLaunch | CapturedCall | CapturedWork | HostAct,
    source: bool,
) -> LaunchReport:
    """Return the report of one step of a captured program."""
    outputs = {(p.slot, p.offset) for p in act.written}
    inputs = tuple((p.slot, p.offset) for p in act.places())
    memory = tuple(m for m in inputs if m not in outputs), tuple(sorted(outputs))
    if isinstance(act, CapturedWork):
        text, why = act.source if source else "", "a kernel of one's own"
        device = str(opened.device)
        return LaunchReport(
            prefix + act.name, device, why, "", text, "raw kernel", (), act.nbytes, 0, *memory
        )
    if isinstance(act, HostAct):
        name, device = prefix + act.name, str(opened.device)
        return LaunchReport(name, device, "", "", "", "host routine", (), act.nbytes, 0, *memory)
    if isinstance(act, CapturedLaunch):
        launch = _explain_launch(opened, act.plan_step, source)
        access = zip(act.buffers, act.plan_step.kernel.buffers, strict=True)
        inputs = tuple((p.slot, p.offset) for p, b in access if b.access != "w")
        sizes = {}  # of the outputs, as the plan allocates them
        for p, (slot, _) in zip(act.buffers, act.plan_step.buffers, strict=True):
            sizes[p.slot, p.offset] = dict(act.plan_step.allocations).get(slot, 0)
        return launch._replace(
            name=prefix + launch.name,
            fresh=0,
            reads=inputs,
            writes=memory[1],
            sizes=tuple(sizes.get(m, 0) for m in memory[1]),
        )
    name, device = prefix + act.op.name, str(opened.device)
    return LaunchReport(name, device, "", "", "", "library call", (), act.nbytes, 0, *memory)


def _explain_launch(
    opened: OpenedDevice, step: PlannedLaunch | PlannedCall, source: bool
) -> LaunchReport:
    """Return the report of one step of a plan; with `source`, compile its kernel."""
    fresh, device = sum(n for _, n in step.allocations), str(opened.device)
    why = "; ".join(map(str, step.reasons))
    if isinstance(step, PlannedLaunch) and step.kernel.fast_math:
        why += "; fast math"
    if isinstance(step, PlannedCall):
        inputs = tuple((x.slot, x.view.offset * x.dtype.itemsize) for x in step.inputs)
        out = step.output.slot, step.output.view.offset * step.output.dtype.itemsize
        name = step.op.name
        return LaunchReport(
            name,
            device,
            why,
            "",
            "",
            "library call",
            (),
            step.nbytes,
            fresh,
            inputs,
            (out,),
            (dict(step.allocations).get(out[0], 0),),
        )
    access = [*zip(step.buffers, (b.access for b in step.kernel.buffers), strict=True)]
    memory = (
        tuple(m for m, how in access if how != "w"),
        tuple(m for m, how in access if how != "r"),
    )
    origin = programs.describe_program_source(opened, step.kernel)
    doer = programs.find_executing_device(opened, step.kernel)
    elsewhere, copied = "", 0
    if doer is not None and doer is not opened:
        elsewhere, copied = str(doer.device), programs.fallback_copy_bytes(opened, step)
    code = programs.get_program(opened, step.kernel).source if source else ""
    text, grid = str(step.kernel), step.grid
    name = step.kernel.name
    sizes = tuple(dict(step.allocations).get(slot, 0) for slot, _ in memory[1])
    return LaunchReport(
        name,
        device,
        why,
        text,
        code,
        origin,
        grid,
        step.nbytes,
        fresh,
        *memory,
        sizes,
        elsewhere,
        copied,
    )
