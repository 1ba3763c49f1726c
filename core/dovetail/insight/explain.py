"""The report of pending work or of a captured function: `dt.explain`.

`dt.explain(x)` describes how the pending work of x would run. Nothing runs, and it stays pending.
`dt.explain(f)` describes the launches of a captured function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeGuard, overload

from ..argument_checks import flag
from ..capture.program import Call as CapturedCall
from ..capture.program import HostStep, Program
from ..capture.program import Launch as CapturedLaunch
from ..capture.program import Work as CapturedWork
from ..engine import evaluate as run
from ..engine import programs
from ..fusion.plan import Call, Step
from ..graph.expr import Spec
from ..plugins.device_handle import Opened
from ..tensor.tensor import Tensor, strided
from .explain_report import Explanation, Launch, Plan, Replay, Replays

__all__ = ["explain"]


class Captured(Protocol):
    """A function that `dt.jit` gave. `programs`: its programs, each with its kind of arguments."""

    __name__: str

    @property
    def programs(self) -> Sequence[tuple[str, Program]]: ...

    def explained(
        self, args: tuple[object, ...]
    ) -> tuple[Sequence[tuple[str, Program]], Sequence[str]]: ...


def _is_captured(x: object) -> TypeGuard[Captured]:
    return hasattr(x, "programs")


@overload
def explain(*tensors: Tensor, source: bool = False, verbose: bool = False) -> Explanation: ...
@overload
def explain(
    f: Captured, /, *args: object, source: bool = False, verbose: bool = False
) -> Replays: ...
def explain(*tensors: object, source: bool = False, verbose: bool = False) -> Explanation | Replays:
    """Report how the pending work of these tensors would run: launches, reasons, kernels.

    Nothing runs, and it stays pending. `tensors`: or a function that `dt.jit` gave; then the
    programs for each kind of arguments are reported, as `captures`, each with `launches` and the
    bytes of its `arena`. Arguments after it select the program for their kind alone, or the reasons
    why there is none (`reasons`). `source`: True also compiles each kernel, to show the backend's
    code. The result can be inspected (`launches`, `stored`, `nbytes`, `fresh`), or printed: a
    summary of a few lines, with all kernels where `verbose`, as its `text()` is. A notebook draws
    it as a graph, with the times of launches that `dt.profile` has seen; `save` writes that to a
    file.
    Shapes: any.
    Dtypes: all.
    Units: bytes for what launches move and allocate.
    Raises: DTypeError for anything but tensors; CompileError with `source`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 2.0], [3.0, 4.0]], device="reference")
    >>> why = dt.explain(dt.softmax(x * 2))
    >>> len(why.launches), why.fresh
    (1, 16)
    >>> print(str(why).splitlines()[0])
    1 launch, 32 bytes moved, 16 bytes allocated. Nothing has run.
    """
    source, verbose = flag("explain", source, "source"), flag("explain", verbose, "verbose")
    if tensors and _is_captured(f := tensors[0]):
        programs, reasons = f.explained(tensors[1:]) if len(tensors) > 1 else (f.programs, ())
        replays = tuple(_replay(inputs, p, source, verbose) for inputs, p in programs)
        return Replays(f.__name__, replays, tuple(reasons))
    launches: list[Launch] = []
    plans = []
    sketches = run.sketched([strided("explain", x)._expr for x in tensors])
    for s in sketches:
        first = len(launches)
        launches += [_launch(s.opened, step, source) for step in s.plan.steps]
        inputs = tuple((i, _spec_text(x), x.size * x.itemsize) for i, x in enumerate(s.read))
        outputs = tuple((slot, _spec_text(x)) for slot, x in s.kept)
        plans.append(Plan(first, len(launches), inputs, outputs))
    stored = tuple(f"{m.op} {m.spec}: {m.reason}" for s in sketches for m in s.plan.materialised)
    return Explanation(tuple(launches), stored, plans, verbose)


def _spec_text(x: Spec) -> str:
    return f"{x.dtype.name}{[*x.shape]}"


def _replay(arguments: str, program: Program, source: bool, verbose: bool) -> Replay:
    launches = tuple(_act(program.opened, how, act, source) for how, act in program.steps())
    return Replay(arguments, launches, program.arena, sum(program.sizes), verbose)


def _act(
    where: Opened,
    how: str,
    act: CapturedLaunch | CapturedCall | CapturedWork | HostStep,
    source: bool,
) -> Launch:
    """Return the report of one step of a captured program."""
    outputs = {(p.slot, p.offset) for p in act.written}
    inputs = tuple((p.slot, p.offset) for p in act.places())
    memory = tuple(m for m in inputs if m not in outputs), tuple(sorted(outputs))
    if isinstance(act, CapturedWork):
        text, why = act.source if source else "", "a kernel of one's own"
        device = str(where.device)
        return Launch(
            how + act.name, device, why, "", text, "raw kernel", (), act.nbytes, 0, *memory
        )
    if isinstance(act, HostStep):
        name, device = how + act.name, str(where.device)
        return Launch(name, device, "", "", "", "host routine", (), act.nbytes, 0, *memory)
    if isinstance(act, CapturedLaunch):
        launch = _launch(where, act.planned, source)
        access = zip(act.buffers, act.planned.kernel.buffers, strict=True)
        inputs = tuple((p.slot, p.offset) for p, b in access if b.access != "w")
        sizes = {}  # of the outputs, as the plan allocates them
        for p, (slot, _) in zip(act.buffers, act.planned.buffers, strict=True):
            sizes[p.slot, p.offset] = dict(act.planned.fresh).get(slot, 0)
        return launch._replace(
            name=how + launch.name,
            fresh=0,
            reads=inputs,
            writes=memory[1],
            sizes=tuple(sizes.get(m, 0) for m in memory[1]),
        )
    name, device = how + act.op.name, str(where.device)
    return Launch(name, device, "", "", "", "vendor routine", (), act.nbytes, 0, *memory)


def _launch(where: Opened, step: Step | Call, source: bool) -> Launch:
    """Return the report of one step of a plan."""
    fresh, device = sum(n for _, n in step.fresh), str(where.device)
    why = "; ".join(map(str, step.why))
    if isinstance(step, Call):
        inputs = tuple((x.slot, x.view.offset * x.dtype.itemsize) for x in step.inputs)
        out = step.output.slot, step.output.view.offset * step.output.dtype.itemsize
        name = step.op.name
        return Launch(
            name,
            device,
            why,
            "",
            "",
            "vendor routine",
            (),
            step.nbytes,
            fresh,
            inputs,
            (out,),
            (dict(step.fresh).get(out[0], 0),),
        )
    access = [*zip(step.buffers, (b.access for b in step.kernel.buffers), strict=True)]
    memory = (
        tuple(m for m, how in access if how != "w"),
        tuple(m for m, how in access if how != "r"),
    )
    origin = programs.whereabouts(where, step.kernel)
    doer = programs.does(where, step.kernel)
    elsewhere, copied = "", 0
    if doer is not None and doer is not where:
        elsewhere, copied = str(doer.device), programs.copied(where, step)
    code = programs.program(where, step.kernel).source if source else ""
    text, grid = str(step.kernel), step.grid
    name = step.kernel.name
    sizes = tuple(dict(step.fresh).get(slot, 0) for slot, _ in memory[1])
    return Launch(
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
