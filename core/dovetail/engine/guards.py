"""Recognising a graph that has been evaluated before, at the least cost in Python.

For a graph that became one launch, a function is generated from its key that compares a new graph
with it, node by node and without building anything, and on a match allocates, launches and settles
the root. It takes 3 us off an evaluation that takes 7 us by way of its key. It answers False to
whatever is not exactly the same; `evaluate` then goes the long way, which knows everything.

For x * 2.5 + y it is, but for names:

    def guard(n0, stream, t=None):
        if n0.op is not OP0 or n0.attrs is not None or n0.spec is not SPEC0: return False
        n1, n2 = n0.args
        if type(n1) is not Expr or n1.op is not OP1 or n1.spec is not SPEC1: return False
        if count(n1) > 3: return False  # somebody holds it: it would have to be stored
        n3, c0 = n1.args
        ... n2 and n3 are leaves of the same spec and strides, in memory; c0 is a float ...
        ptr = opened.allocator.allocate(4096, stream)
        launch((ptr.handle, ptr.offset, n3.storage.ptr.handle, ...), (c0,), stream)
        settle(n0, Storage(ptr, 4096, device))
        return True

What is written into memory that is there (`x += y`) has a function of the same kind, with the leaf
`t` that views this memory: it takes 5 us where the long way takes 15.

A guard sees every mismatch that the key sees, but for two that change nothing: whether anybody
holds the root, which is stored anyway, and one leaf in two places where there were two of one kind.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

from ..backend import faults
from ..device import opened as open_device
from ..fusion.plan import Target
from ..graph.expr import Expr, settle
from ..graph.ownership import IN_VARIABLE, count
from ..memory.pointer import StreamHandle
from ..memory.storage import Storage
from ..ops.table import COPY
from ..recent import Recent
from .programs import BoundPlan, BoundStep, holding
from .walk import LEAF, PENDING, Walk

Guard: TypeAlias = Callable[..., bool]  # of a root, a stream and, for a write, a leaf
KEPT = 4  # graphs with the same root op and Spec that are compared; beyond, the oldest goes
# Beside this file, so that whoever looks for the user's line passes over it.
GENERATED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guard")
NODES = 48  # larger graphs are not worth it
LIMIT = 4096  # root ops and Specs whose graphs are kept
EQUAL = frozenset(("strides", "attrs"))  # of what keys have of nodes; the rest is unique

_known: Recent[tuple[Hashable, ...], tuple[Guard, ...]] = holding(LIMIT)


def match(root: Expr, stream: StreamHandle) -> bool:
    """Evaluates `root` if its graph is known; whether it was."""
    key = (root.op, root.spec)
    for guard in _known.young.get(key) or _known.find(key) or ():  # noqa: SIM110 - quicker
        if guard(root, stream):
            return True
    return False


def match_into(value: Expr, target: Expr, stream: StreamHandle) -> bool:
    """Writes `value`, that nobody else holds, into what the leaf `target` views, if graph and leaf
    are known; whether it did. Nothing else that is pending may read this memory.
    """
    key = (value.op, value.spec, target.strides)
    for guard in _known.young.get(key) or _known.find(key) or ():
        if guard(value, stream, target):
            return True
    return False


def add(walk: Walk, plan: BoundPlan, held: Sequence[int], target: Target | None) -> None:
    """Guards for a graph, if it is of the simple kind: one launch, for whose leaves nothing is
    pending, that stores the one root, and perhaps what else is held.
    """
    if len(walk.nodes) > NODES or len(walk.roots) != 1 or walk.lazy_leaves or len(plan.steps) != 1:
        return
    step, root = plan.steps[0], walk.nodes[-1]
    if not isinstance(step, BoundStep) or not step.simple or step.drops:
        return
    if all(i != len(walk.nodes) - 1 for i, _ in plan.kept):
        return
    if len(step.fresh) != len(plan.kept) - (target is not None):
        return
    key: tuple[Hashable, ...] = (root.op, root.spec)
    if target is not None:
        copied = root.args[0] if root.op is COPY else None
        if copied is None or walk.index[copied] in held or target.overlaps != target.same:
            return
        root = copied
        key = (root.op, root.spec, target.strides)
    made = _Writer(walk, plan, step, held, target).guard(walk.index[root])
    _known[key] = (made, *(_known.find(key) or ()))[:KEPT]


class _Writer:
    """Writes the guard of one graph."""

    def __init__(
        self,
        walk: Walk,
        plan: BoundPlan,
        step: BoundStep,
        held: Sequence[int],
        target: Target | None,
    ) -> None:
        self.walk, self.parts, self.target = walk, walk.parts(), target
        self.step, self.held = step.step, held
        fresh = {slot for slot, _ in step.fresh}
        self.stored = {i: slot for i, slot in plan.kept if slot in fresh}
        self.lines: list[str] = []
        opened = open_device(walk.device)
        self.names: dict[str, object] = {
            "__name__": __name__, "Expr": Expr, "count": count, "settle": settle,
            "Storage": Storage, "faults": faults, "opened": opened, "launch": step.run,
            "device": opened.device,
        }  # fmt: skip
        self.seen: dict[int, str] = {}  # position of a node -> its variable
        self.variables = Counter[int]()  # how many variables each node is in so far
        self.scalars: dict[int, list[str]] = {}  # position of a node -> its numbers

    def guard(self, root: int) -> Guard:
        self.node(root, "n0", True)
        self.launch()
        text = "def guard(n0, stream, t=None):\n    " + "\n    ".join(self.lines)
        exec(compile(text, GENERATED, "exec"), self.names)
        made: Any = self.names.pop("guard")  # which refers to the names: no circle
        return made  # type: ignore[no-any-return]  # it has just been compiled

    def constant(self, fact: str, value: object) -> str:
        name = f"{fact.upper()}{len(self.names)}"
        self.names[name] = value
        return name

    def unless(self, *wrong: str) -> None:
        self.lines.append(f"if {' or '.join(wrong)}: return False")

    def node(self, i: int, name: str, root: bool = False) -> None:
        """Compares the node in variable `name` with node `i`, as the key has it, and then what it
        needs.
        """
        self.seen[i] = name
        op = self.walk.nodes[i].op
        wrong = [] if root else [f"type({name}) is not Expr"]
        if op is None:  # first: others have no strides
            wrong.append(f"{name}.op is not None")
        wrong += map(self.other, [name] * 3, LEAF if op is None else PENDING, self.parts[i])
        if op is None:
            self.unless(*wrong, f"{name}.storage.pending is not None")
            return
        args = self.parts[i][len(PENDING) :]
        if op.kind != "map":  # whose number of arguments is fixed
            wrong.append(f"len({name}.args) != {len(args)}")
        if not root:
            known = self.walk.uses[i] + IN_VARIABLE + self.variables[i] - 1
            wrong.append(f"count({name}) {'<=' if i in self.held else '>'} {known}")
        self.unless(*wrong)
        self.arguments(i, args, name)

    def other(self, name: str, fact: str, value: object) -> str:
        """Whether a fact of the node in a variable is another one than the key has."""
        if value is None:
            return f"{name}.{fact} is not None"
        return f"{name}.{fact} {'!=' if fact in EQUAL else 'is not'} {self.constant(fact, value)}"

    def arguments(self, i: int, args: Sequence[object], name: str) -> None:
        names = [f"{name}{'abcdefgh'[k % 8]}{k // 8 or ''}" for k in range(len(args))]
        if names:
            self.lines.append(f"{', '.join(names)}, = {name}.args")
        self.variables.update(a for a in args if isinstance(a, int))
        for a, variable in zip(args, names, strict=True):
            if not isinstance(a, int):
                self.unless(f"type({variable}) is not {self.constant('TYPE', a)}")
                self.scalars.setdefault(i, []).append(variable)
            elif a in self.seen:
                self.unless(f"{variable} is not {self.seen[a]}")
            else:
                self.node(a, variable)

    def launch(self) -> None:
        nodes = self.walk.nodes
        leaves = [i for i, e in enumerate(nodes) if e.op is None]
        if self.target is not None:
            self.same_memory(leaves, self.target)
        handles = []
        for slot, _ in self.step.buffers:
            if slot < len(leaves):
                handles.append(_memory(self.seen[leaves[slot]], nodes[leaves[slot]]))
            elif slot in self.stored.values() or self.walk.target is None:
                handles.append(f"ptr{slot}.handle, ptr{slot}.offset")
            else:
                handles.append(_memory("t", self.walk.target))
        scalars = [s for i in range(len(nodes)) for s in self.scalars.get(i, ())]
        numbers = "".join(f"{scalars[k]}, " for k in self.step.scalars)
        fresh = dict(self.step.fresh)
        used = [self.seen[i] for i in leaves] + ["t"] * (self.target is not None)
        checked = " or ".join(f"{n}.storage.checks" for n in used)
        shared = "".join(f"{n}.storage, " for n in used)
        self.lines += [
            *([f"if faults.tainted and ({checked}): return False"] if used else ()),
            f"if opened.streams: opened.share(stream, ({shared}))",
            *(f"ptr{s} = opened.allocator.allocate({n}, stream)" for s, n in fresh.items()),
            f"launch(({', '.join(handles)},), ({numbers}), stream)",
            *(f"settle({self.seen[i]}, Storage(ptr{s}, {fresh[s]}, device))"
              for i, s in self.stored.items()),
            "return True",
        ]  # fmt: skip

    def same_memory(self, leaves: Sequence[int], target: Target) -> None:
        """Those leaves that were what is written must be so again, and no others."""
        for slot, i in enumerate(leaves):
            n = self.seen[i]
            if slot in target.same:
                self.unless(f"{n}.storage is not t.storage", f"{n}.offset != t.offset")
            else:
                self.unless(f"{n}.storage is t.storage")


def _memory(name: str, leaf: Expr) -> str:
    """Handle and byte offset of a leaf in a variable."""
    size = leaf.spec.dtype.itemsize
    return f"{name}.storage.ptr.handle, {name}.storage.ptr.offset + {name}.offset * {size}"
