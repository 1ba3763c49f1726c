"""Recognising a graph that has been evaluated before, at the least cost in Python.

For a graph that became one launch, a function is generated that compares a new graph with it, node
by node and without building anything, and on a match allocates, launches and settles the root. It
takes 3 us off an evaluation that takes 7 us by way of its key. It answers False to whatever is not
exactly the same; `run` then goes the long way, which knows everything.

For x * 2.5 + y it is, but for names:

    def recalled(n0, stream):
        if n0.op is not OP0 or n0.spec is not SPEC0: return False
        n1, n2 = n0.args
        if type(n1) is not Expr or n1.op is not OP1 or n1.spec is not SPEC1: return False
        if getrefcount(n1) > 3: return False  # somebody holds it: it would have to be stored
        n3, c0 = n1.args
        ... n2 and n3 are leaves of the same spec and strides, in memory; c0 is a float ...
        ptr = where.allocator.allocate(4096, stream)
        launch((ptr.handle, ptr.offset, n3.storage.ptr.handle, ...), (c0,), stream)
        settle(n0, Storage(ptr, 4096, device))
        return True

What is written into memory that is there (`x += y`) has a function of the same kind, with the leaf
`t` that views this memory: it takes 5 us where the long way takes 15.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any, NamedTuple

from ..backend import faults
from ..fusion.plan import Plan, Step, Target
from ..graph.expr import Expr, settle
from ..memory import Storage
from ..ops.table import COPY
from ..plugins.registry import Opened
from ..recent import Recent

Recalled = Callable[..., bool]
KEPT = 4  # graphs with the same root op and Spec that are compared; beyond, the oldest goes
# Beside this file, so that whoever looks for the user's line passes over it.
GENERATED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recalled")
NODES = 48  # larger graphs are not worth it
LIMIT = 4096  # root ops and Specs whose graphs are kept

_known: Recent[Any, tuple[Recalled, ...]] = Recent(LIMIT)


def turn() -> None:
    """Lets go of graphs that were not met since this was last called."""
    _known.turn()


def attempt(root: Expr, stream: Any) -> bool:
    """Evaluates `root` if its graph is known; whether it was."""
    key = (root.op, root.spec)
    for recalled in _known.young.get(key) or _known.find(key) or ():
        if recalled(root, stream):
            return True
    return False


def learn(nodes: Sequence[Expr], index: dict[Expr, int], plan: Plan, where: Opened) -> None:
    """Remembers a graph, if it is of the simple kind: one launch that stores the root, and perhaps
    what else is held.
    """
    root = nodes[-1]
    if not _is_simple(nodes, plan) or len(plan.steps[0].fresh) != len(plan.stored):
        return
    key = (root.op, root.spec)
    made = _Writer(nodes, index, plan, where).function()
    _known[key] = (made, *(_known.find(key) or ()))[:KEPT]


def _is_simple(nodes: Sequence[Expr], plan: Plan) -> bool:
    """One launch, for whose leaves nothing is pending; its root is stored."""
    if len(nodes) > NODES or len(plan.steps) != 1:
        return False
    step = plan.steps[0]
    if type(step) is not Step or not step.simple or step.drops:
        return False
    if all(i != len(nodes) - 1 for i, _ in plan.stored):
        return False
    return not any(e.op is None and e.storage.pending is not None for e in nodes)


def attempt_into(value: Expr, target: Expr, stream: Any) -> bool:
    """Writes `value`, that nobody else holds, into what the leaf `target` views, if graph and leaf
    are known; whether it did. Nothing else that is pending may read this memory.
    """
    key = (value.op, value.spec, target.strides)
    for recalled in _known.young.get(key) or _known.find(key) or ():
        if recalled(value, stream, target):
            return True
    return False


def learn_into(
    nodes: Sequence[Expr], index: dict[Expr, int], plan: Plan, where: Opened, into: Into
) -> None:
    """Remembers a graph whose root copies a value into a leaf, if it is one launch and no more."""
    if not _is_simple(nodes, plan) or into.target.overlaps != into.target.same:
        return
    copied = nodes[-1].args
    if len(plan.steps[0].fresh) != len(plan.stored) - 1 or nodes[-1].op is not COPY:
        return
    key = (copied[0].op, copied[0].spec, into.leaf.strides)
    made = _Writer(nodes, index, plan, where, into).function()
    _known[key] = (made, *(_known.find(key) or ()))[:KEPT]


class Into(NamedTuple):
    """A leaf that is written, and what its plan was made for."""

    leaf: Expr
    target: Target


class _Writer:
    """Writes the function for one graph."""

    def __init__(
        self,
        nodes: Sequence[Expr],
        index: dict[Expr, int],
        plan: Plan,
        where: Opened,
        into: Into | None = None,
    ) -> None:
        self.nodes, self.index, self.into = nodes, index, into
        self.step: Step = plan.steps[0]
        fresh = {slot for slot, _ in self.step.fresh}
        self.stored = {i: slot for i, slot in plan.stored if slot in fresh}
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "Expr": Expr, "getrefcount": getrefcount, "settle": settle, "Storage": Storage,
            "__name__": __name__, "faults": faults, "where": where, "launch": self.step.run,
            "device": where.device,
        }  # fmt: skip
        self.seen: dict[int, str] = {}  # position of a node -> its variable
        self.scalars: dict[int, list[str]] = {}  # position of a node -> its numbers
        self.uses = [0] * len(nodes)
        for e in nodes:
            for a in e.args:
                if type(a) is Expr:
                    self.uses[index[a]] += 1

    def function(self) -> Recalled:
        root = len(self.nodes) - 1
        self.node(root if self.into is None else self.index[self.nodes[root].args[0]], "n0", True)
        self.launch()
        text = "def recalled(n0, stream, t=None):\n    " + "\n    ".join(self.lines)
        exec(compile(text, GENERATED, "exec"), self.names)
        made: Recalled = self.names.pop("recalled")  # which refers to the names: no circle
        return made

    def constant(self, letter: str, value: Any) -> str:
        name = f"{letter}{len(self.names)}"
        self.names[name] = value
        return name

    def unless(self, condition: str) -> None:
        self.lines.append(f"if {condition}: return False")

    def node(self, i: int, name: str, root: bool = False) -> None:
        """Compares the node in variable `name` with node `i`, and then what it needs."""
        e = self.nodes[i]
        self.seen[i] = name
        wrong = f"{name}.spec is not {self.constant('SPEC', e.spec)}"
        if not root:
            wrong = f"type({name}) is not Expr or {wrong}"
        if e.op is None:
            strides = self.constant("STRIDES", e.strides)
            self.unless(
                f"{wrong} or {name}.op is not None or {name}.strides != {strides} "
                f"or {name}.storage.pending is not None"
            )
            return
        wrong += f" or {name}.op is not {self.constant('OP', e.op)}"
        if e.attrs is None:
            wrong += f" or {name}.attrs is not None"
        else:
            wrong += f" or {name}.attrs != {self.constant('ATTRS', e.attrs)}"
        if e.op.kind != "map":  # whose number of arguments is fixed
            wrong += f" or len({name}.args) != {len(e.args)}"
        if not root:
            held = "<=" if i in self.stored else ">"
            wrong += f" or getrefcount({name}) {held} {self.uses[i] + _OWN}"
        self.unless(wrong)
        self.arguments(i, e, name)

    def arguments(self, i: int, e: Expr, name: str) -> None:
        names = [f"{name}{'abcdefgh'[k % 8]}{k // 8 or ''}" for k in range(len(e.args))]
        if names:
            self.lines.append(f"{', '.join(names)}, = {name}.args")
        for a, variable in zip(e.args, names, strict=True):
            if type(a) is not Expr:
                self.unless(f"type({variable}) is not {self.constant('TYPE', type(a))}")
                self.scalars.setdefault(i, []).append(variable)
            elif (j := self.index[a]) in self.seen:
                self.unless(f"{variable} is not {self.seen[j]}")
                self.lines.append(f"del {variable}")  # or it would count as a holder
            else:
                self.node(j, variable)

    def launch(self) -> None:
        leaves = [i for i, e in enumerate(self.nodes) if e.op is None]
        if self.into is not None:
            self.same_memory(leaves, self.into.target)
        handles = []
        for slot, _ in self.step.buffers:
            if slot < len(leaves):
                handles.append(_memory(self.seen[leaves[slot]], self.nodes[leaves[slot]]))
            elif slot in self.stored.values() or self.into is None:
                handles.append(f"ptr{slot}.handle, ptr{slot}.offset")
            else:
                handles.append(_memory("t", self.into.leaf))
        scalars = [s for i in range(len(self.nodes)) for s in self.scalars.get(i, ())]
        numbers = "".join(f"{scalars[k]}, " for k in self.step.scalars)
        fresh = dict(self.step.fresh)
        used = [self.seen[i] for i in leaves] + ["t"] * (self.into is not None)
        held = " or ".join(f"{n}.storage.checks" for n in used)
        self.lines += [
            *([f"if faults.tainted and ({held}): return False"] if used else ()),
            f"if where.streams: where.share(stream, ({''.join(f'{n}.storage, ' for n in used)}))",
            *(f"ptr{s} = where.allocator.allocate({n}, stream)" for s, n in fresh.items()),
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
                self.unless(f"{n}.storage is not t.storage or {n}.offset != t.offset")
            else:
                self.unless(f"{n}.storage is t.storage")


def _own_references() -> int:
    """What a generated function itself adds to the count of a node, measured in one: Pythons
    differ in what a variable and a call's argument add.
    """
    names: dict[str, Any] = {"getrefcount": getrefcount}
    exec("def recalled(n0):\n    n0a, = n0.args\n    return getrefcount(n0a)", names)
    outer = Expr()
    outer.args = (Expr(),)
    return int(names["recalled"](outer)) - 1


_OWN = _own_references()


def _memory(name: str, leaf: Expr) -> str:
    """Handle and byte offset of a leaf in a variable."""
    size = leaf.spec.dtype.itemsize
    return f"{name}.storage.ptr.handle, {name}.storage.ptr.offset + {name}.offset * {size}"
