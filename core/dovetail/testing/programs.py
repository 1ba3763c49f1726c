"""Random straight-line programs over tensors, for comparisons of bits.

They run deferred and fused, eager, and on the reference.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from .. import settings
from ..device_class import device
from ..dtypes import dtype
from ..errors import DTypeError, ReadOnlyError
from ..ops import table as ops
from ..tensor import primitives, writes
from ..tensor.host import from_host

UNARY = ["exp", "abs", "negative", "square", "tanh", "floor", "sign"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "divide"]
REDUCE = ["sum", "max", "min", "mean", "argmax", "prod"]


class RandomProgram:
    """A random straight-line program over a list of tensors, replayable on any device."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.steps: list[tuple[Any, ...]] = []
        self.shapes: list[tuple[int, ...]] = []
        self.inputs: list[np.ndarray] = []
        for _ in range(self.random.randint(1, 3)):
            nd = self.random.randint(0, 3)
            shape = tuple(self.random.choice([1, 2, 3, 5, 33, 70]) for _ in range(nd))
            self.inputs.append(self.rng.standard_normal(shape).astype("f4"))
            self.shapes.append(shape)
        self.alias = [{i} for i in range(len(self.inputs))]  # tensors known to share memory
        for _ in range(self.random.randint(3, 14)):
            getattr(
                self,
                self.random.choice(
                    [
                        "unary",
                        "binary",
                        "binary",
                        "scalar",
                        "permute",
                        "slice",
                        "expand",
                        "reshape",
                        "reduce",
                        "reduce",
                        "in_place",
                        "look",
                        "drop",
                        "setitem",
                    ]
                ),
            )()

    def pick_tensor(self) -> int:
        """Draw the index of a tensor."""
        return self.random.randrange(len(self.shapes))

    def append_step(self, step: tuple[Any, ...], shape: tuple[int, ...]) -> None:
        """Append a step and the shape of its result, unless that has over 30 000 elements."""
        if int(np.prod(shape)) > 30_000:
            return
        self.steps.append(step)
        self.shapes.append(shape)

    def unary(self) -> None:
        """Append a random unary op on a random tensor."""
        i = self.pick_tensor()
        self.append_step(("unary", self.random.choice(UNARY), i), self.shapes[i])

    def scalar(self) -> None:
        """Append a random binary op of a random tensor and a Python number."""
        i = self.pick_tensor()
        self.append_step(
            ("scalar", self.random.choice(BINARY), i, self.random.choice([2, 0.5, -3])),
            self.shapes[i],
        )

    def binary(self) -> None:
        """Append a random binary op of two random tensors, if their shapes broadcast."""
        i, j = self.pick_tensor(), self.pick_tensor()
        try:
            shape = np.broadcast_shapes(self.shapes[i], self.shapes[j])
        except ValueError:
            return
        self.append_step(("binary", self.random.choice(BINARY), i, j), shape)

    def permute(self) -> None:
        """Append a view of a random tensor with its axes in random order."""
        i = self.pick_tensor()
        axes = list(range(len(self.shapes[i])))
        self.random.shuffle(axes)
        self.append_step(
            ("view", i, ("permute", tuple(axes))), tuple(self.shapes[i][a] for a in axes)
        )

    def slice(self) -> None:
        """Append a view of a random box of a tensor, with steps 1, 2 or -1."""
        i = self.pick_tensor()
        starts, lengths, steps = [], [], []
        for n in self.shapes[i]:
            step = self.random.choice([1, 1, 2, -1])
            length = self.random.randint(1, max(1, n // abs(step)))
            reach = (length - 1) * abs(step)
            first = self.random.randint(0, n - 1 - reach)
            starts.append(first + reach if step < 0 else first)
            lengths.append(length)
            steps.append(step)
        self.append_step(
            ("view", i, ("slice", tuple(starts), tuple(lengths), tuple(steps))), tuple(lengths)
        )

    def expand(self) -> None:
        """Append a view with axes of length 1 expanded, sometimes with a new first axis."""
        i = self.pick_tensor()
        shape = tuple(self.random.choice([2, 3]) if n == 1 else n for n in self.shapes[i])
        if self.random.random() < 0.3:
            shape = (self.random.choice([1, 2]), *shape)
        self.append_step(("view", i, ("expand", shape)), shape)

    def reshape(self) -> None:
        """Append a view of a random tensor with a random shape of the same size."""
        i = self.pick_tensor()
        size = int(np.prod(self.shapes[i]))
        d = self.random.choice([k for k in range(1, size + 1) if size % k == 0])
        shape = self.random.choice([(d, size // d), (size,), (1, d, size // d), (d, 1, size // d)])
        self.append_step(("view", i, ("reshape", shape)), shape)

    def reduce(self) -> None:
        """Append a random reduction over random axes; none for argmax over several axes."""
        i = self.pick_tensor()
        nd = len(self.shapes[i])
        axes = tuple(sorted(self.random.sample(range(nd), self.random.randint(min(1, nd), nd))))
        keep = self.random.random() < 0.6
        op = self.random.choice(REDUCE)
        if op in ("argmax",) and len(axes) != 1:
            return
        shape = tuple(1 if d in axes else n for d, n in enumerate(self.shapes[i]))
        if not keep:
            shape = tuple(n for d, n in enumerate(self.shapes[i]) if d not in axes)
        self.append_step(("reduce", op, i, axes, keep), shape)

    def in_place(self) -> None:
        """Append an in-place op on a random tensor, if a second one has the same shape."""
        i, j = self.pick_tensor(), self.pick_tensor()
        if self.shapes[j] == self.shapes[i]:
            self.steps.append(("in_place", self.random.choice(["add", "maximum"]), i, j))

    def setitem(self) -> None:
        """Append an assignment of a tensor to another one, if their shapes are equal."""
        i, j = self.pick_tensor(), self.pick_tensor()
        if self.shapes[j] == self.shapes[i]:
            self.steps.append(("assign", i, j))

    def look(self) -> None:
        """Append a step that reads a random tensor on the host."""
        self.steps.append(("look", self.pick_tensor()))

    def drop(self) -> None:
        """Append a step that drops a random tensor."""
        self.steps.append(("drop", self.pick_tensor()))

    def run(self, name: str, eager: bool) -> list[np.ndarray | None]:
        """Return all tensors' values at the end; None if dropped, or made of a dropped one."""
        ts: list[Any] = [from_host(a, dtype(a.dtype), device(name)) for a in self.inputs]
        if eager:
            with settings.eager():
                self._run(ts)
        else:
            self._run(ts)
        return [None if t is None else np.array(t.numpy()) for t in ts]

    def _run(self, ts: list[Any]) -> None:
        """Run all steps on `ts`, which is changed: results are appended, dropped ones are None."""
        for step in self.steps:
            kind = step[0]
            refs = {
                "unary": [2],
                "scalar": [2],
                "binary": [2, 3],
                "view": [1],
                "reduce": [2],
                "in_place": [2, 3],
                "assign": [1, 2],
                "look": [1],
                "drop": [1],
            }
            if any(ts[step[r]] is None for r in refs[kind]):
                if kind not in ("in_place", "assign", "look", "drop"):
                    ts.append(None)
                continue
            if kind == "unary":
                ts.append(primitives.apply(ops.TABLE[step[1]], (ts[step[2]],)))
            elif kind == "scalar":
                ts.append(primitives.apply(ops.TABLE[step[1]], (ts[step[2]], step[3])))
            elif kind == "binary":
                ts.append(primitives.apply(ops.TABLE[step[1]], (ts[step[2]], ts[step[3]])))
            elif kind == "view":
                ts.append(primitives.view(ts[step[1]], step[2]))
            elif kind == "reduce":
                ts.append(primitives.reduce(ops.TABLE[step[1]], ts[step[2]], step[3], step[4]))
            elif kind == "look":
                ts[step[1]].numpy()
            elif kind == "drop":
                ts[step[1]] = None
            else:
                self._write(kind, step, ts)

    def _write(self, kind: str, step: tuple[Any, ...], ts: list[Any]) -> None:
        """Run an in-place op or an assignment; ignore ReadOnlyError and DTypeError."""
        try:
            if kind == "in_place":
                primitives.in_place(ops.TABLE[step[1]], ts[step[2]], ts[step[3]])
            else:
                x, y = ts[step[1]], ts[step[2]]
                writes.write_tensor(
                    "assign", x, [writes.cast_to_spec("assign", y._expr, x._expr.spec)]
                )
        except (ReadOnlyError, DTypeError):
            pass


def same_bits(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    """Return True for equal values, with all NaNs alike, and zeros by sign."""
    if a is None or b is None:
        return a is b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    nan = np.isnan(a) & np.isnan(b)
    return bool(np.all(nan | ((a == b) & (np.signbit(a) == np.signbit(b)))))


def check(seed: int, name: str) -> None:
    """Fail unless deferred, eager and reference runs of the program of `seed` give the same bits.

    It runs on a device deferred, then eager, and on the reference.
    """
    program = RandomProgram(seed)
    deferred, eager = program.run(name, False), program.run(name, True)
    for k, (a, b) in enumerate(zip(deferred, eager, strict=True)):
        assert same_bits(a, b), (
            f"seed {seed}: tensor {k} differs between deferred and eager\n{program.steps}"
        )
    oracle = program.run("reference", True)
    for k, (a, b) in enumerate(zip(eager, oracle, strict=True)):
        assert same_bits(a, b), (
            f"seed {seed}: tensor {k} differs from the reference\n{program.steps}"
        )
