"""The cases of `run.py`: each case for each contestant, dovetail and its peers."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import dovetail as dt
import numpy as np

THREADS = int(os.environ.get("DOVETAIL_NUM_THREADS", "2"))  # for every contestant
M, K = 1 << 20, 1 << 10
PEERS = ("numpy", "scipy", "torch", "torch.compile", "jax", "numexpr", "sparse")

Foreign: TypeAlias = Any  # a module, function or array of some library that is compared
Work = Callable[[], Foreign]  # does the case once, completely, and returns the result
Array = np.ndarray[Foreign, Foreign]


@dataclass(frozen=True)
class Target:
    """One thing that is promised.

    `of`: a peer, or several as "numpy|torch" (the faster of them), whose time is to be at least
    `bound` times ours; "copy", of as many bytes, which we are to take at most `bound` times as long
    as; or "" for a figure that is to be at most `bound`.
    """

    of: str
    bound: float
    unit: str = ""  # of a figure on its own: "ms", ""

    def __str__(self) -> str:
        if not self.of or self.of == "copy":
            return f"<= {self.bound:g} {'x copy' if self.of else self.unit}".rstrip()
        return f">= {self.bound:g} x {self.of}"


def peers(**bounds: float) -> tuple[Target, ...]:
    """`peers(numpy=6, jax=3)`: at least so many times as fast as each of these."""
    return tuple(Target(name.replace("_or_", "|"), bound) for name, bound in bounds.items())


@dataclass(frozen=True)
class Case:
    """One thing to compute. `contestants`: name -> inputs -> Work; `nbytes`: read and written."""

    name: str
    targets: tuple[Target, ...]
    inputs: Callable[[], Sequence[Array]]
    contestants: Mapping[str, Callable[..., Work]]
    nbytes: int = 0
    tolerance: float = 2e-5


# --- the contestants ------------------------------------------------------------------------------


def installed(name: str) -> bool:
    """Whether a contestant can take part."""
    return importlib.util.find_spec(name.split(".")[0]) is not None


def limit_threads(count: int = THREADS) -> None:
    """Bounds the threads of what is imported from now on; XLA takes as many as there are cores."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
                 "NUMEXPR_MAX_THREADS", "DOVETAIL_NUM_THREADS"):  # fmt: skip
        os.environ.setdefault(name, str(count))


@functools.cache
def peer(name: str) -> Foreign:
    """A peer's module, imported and set to THREADS threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module(name)
    if name in ("torch", "numexpr"):
        module.set_num_threads(THREADS)
    return module


def ours(compute: Callable[..., Foreign], device: str | None = None) -> Callable[..., Work]:
    """dovetail, as a user would: recorded and evaluated each time, and the result dropped."""

    def make(*arrays: Array) -> Work:
        tensors = [dt.asarray(a, device=device) for a in arrays]

        def work() -> Foreign:
            result = compute(*tensors)
            dt.evaluate(result)
            return result

        return work

    return make


def by_numpy(compute: Callable[..., Foreign]) -> Callable[..., Work]:
    """NumPy."""
    return lambda *arrays: lambda: compute(*arrays)


def by_torch(compute: Callable[..., Foreign], compiled: bool = False) -> Callable[..., Work]:
    """PyTorch, eager or through `torch.compile`. `compute(torch, *tensors)`."""

    def make(*arrays: Array) -> Work:
        torch = peer("torch")
        tensors = [torch.from_numpy(a) for a in arrays]
        function = functools.partial(compute, torch)
        if compiled:
            peer("torch._dynamo").reset()  # it counts all cases as recompilations of one function
            function = torch.compile(function, dynamic=False)

        def work() -> Foreign:
            with torch.inference_mode():
                return function(*tensors)

        return work

    return make


def by_jax(compute: Callable[..., Foreign]) -> Callable[..., Work]:
    """JAX, through `jax.jit`, waited for. `compute(jax.numpy, *arrays)`."""

    def make(*arrays: Array) -> Work:
        jax, jnp = peer("jax"), peer("jax.numpy")
        placed = [jnp.asarray(a) for a in arrays]
        if any(p.dtype != a.dtype for p, a in zip(placed, arrays, strict=True)):
            raise RuntimeError("64-bit integers are off by default")
        function = jax.jit(functools.partial(compute, jnp))
        return lambda: function(*placed).block_until_ready()

    return make


def by_numexpr(expression: str) -> Callable[..., Work]:
    """numexpr, on arrays x and y."""

    def make(*arrays: Array) -> Work:
        evaluate = peer("numexpr").evaluate
        names = dict(zip("xy", arrays, strict=False))
        return lambda: evaluate(expression, local_dict=names)

    return make


def everyone(
    compute: Callable[..., Foreign], expression: str = ""
) -> dict[str, Callable[..., Work]]:
    """The same text for every namespace that has these functions: `compute(namespace, *arrays)`."""
    found = {
        "dovetail": ours(functools.partial(compute, dt)),
        "numpy": by_numpy(functools.partial(compute, np)),
        "torch": by_torch(compute),
        "torch.compile": by_torch(compute, compiled=True),
        "jax": by_jax(compute),
    }
    if expression:
        found["numexpr"] = by_numexpr(expression)
    return found


# --- the cases ------------------------------------------------------------------------------------


def numbers(
    *shape: int, count: int = 1, low: float = 0.1, high: float = 2.0
) -> Callable[[], list[Array]]:
    """`count` float32 arrays of seeded uniform numbers."""

    def make() -> list[Array]:
        rng = np.random.default_rng(7)
        return [rng.uniform(low, high, shape).astype("f4") for _ in range(count)]

    return make


def chain_of_seven(xp: Foreign, x: Foreign, y: Foreign) -> Foreign:
    """Seven elementwise ops."""
    return xp.tanh(x * 2 + y) * x - y / (1 + x * x)


def chain(n: int) -> Case:
    """Seven elementwise ops: fused they read two arrays and write one."""
    text = "tanh(x * 2 + y) * x - y / (1 + x * x)"
    return Case(
        f"chain of 7, {count_text(n)}",
        _CHAIN_TARGETS.get(n, ()),
        numbers(n, count=2),
        everyone(chain_of_seven, text),
        12 * n,
    )


_COMPILED = {"torch.compile": 1.0, "jax": 1.0}
_CHAIN_TARGETS = {
    16 * M: (*peers(numpy=6, jax=3, **{"torch.compile": 3}), Target("copy", 1.6)),
    M: peers(numpy=3.5, **_COMPILED),
    64 * K: peers(numpy=2, **_COMPILED),
    K: peers(torch=1),
}


def elementwise(name: str, n: int) -> Case:
    """One elementary function."""

    def compute(xp: Foreign, x: Foreign) -> Foreign:
        return getattr(xp, name)(x)

    return Case(
        f"{name}, {count_text(n)}",
        peers(numpy_or_torch=1.5),
        numbers(n),
        everyone(compute, f"{name}(x)"),
        8 * n,
    )


def add(n: int) -> Case:
    """x + y: nothing but memory."""
    return Case(
        f"x + y, {count_text(n)}", peers(numpy=1.3), numbers(n, count=2),
        everyone(lambda xp, x, y: x + y, "x + y"), 12 * n,
    )  # fmt: skip


def total(n: int) -> Case:
    """The sum of all elements."""
    return Case(
        f"sum, {count_text(n)}",
        peers(numpy_or_torch=0.9),
        numbers(n),
        everyone(lambda xp, x: xp.sum(x)),
        4 * n,
    )


def sums(axis: int, n: int) -> Case:
    """The sums along an axis of a square matrix."""

    def compute(xp: Foreign, x: Foreign) -> Foreign:
        return x.sum(axis)

    return Case(
        f"sum axis {axis}, {n} x {n}", peers(numpy_or_torch=0.9), numbers(n, n),
        everyone(compute) | {"dovetail": ours(lambda x: x.sum(axis=axis))}, 4 * n * n,
    )  # fmt: skip


def _softmax(xp: Foreign, x: Foreign) -> Foreign:
    e = xp.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _dovetail_softmax(x: Foreign) -> Foreign:
    e = dt.exp(x - dt.max(x, axis=1, keepdims=True))
    return e / dt.sum(e, axis=1, keepdims=True)


def softmax(rows: int, columns: int) -> Case:
    """Softmax along rows; PyTorch and JAX have a function of their own for it."""
    contestants = {
        "dovetail": ours(_dovetail_softmax),
        "numpy": by_numpy(functools.partial(_softmax, np)),
        "torch": by_torch(lambda torch, x: torch.softmax(x, 1)),
        "torch.compile": by_torch(lambda torch, x: torch.softmax(x, 1), compiled=True),
        "jax": by_jax(_softmax),
    }
    return Case(
        f"softmax, {rows} x {columns}", peers(torch=1.5), numbers(rows, columns), contestants,
        8 * rows * columns,
    )  # fmt: skip


def transposed_copy(n: int) -> Case:
    """A contiguous copy of a transposed matrix."""
    contestants = {
        "dovetail": ours(lambda x: dt.contiguous(x.T)),
        "numpy": by_numpy(lambda x: np.ascontiguousarray(x.T)),
        "torch": by_torch(lambda torch, x: x.T.contiguous()),
        "torch.compile": by_torch(lambda torch, x: x.T.contiguous(), compiled=True),
        "jax": by_jax(lambda jnp, x: jnp.copy(x.T)),
    }
    return Case(f"copy of x.T, {n} x {n}", peers(torch=2), numbers(n, n), contestants, 8 * n * n)


def matmul(n: int) -> Case:
    """A float32 matrix product."""
    return Case(
        f"matmul float32, {n}", peers(numpy=0.95), numbers(n, n, count=2),
        everyone(lambda xp, x, y: x @ y), tolerance=1e-3,
    )  # fmt: skip


def integer_matmul(n: int) -> Case:
    """An int64 matrix product, for which there is no BLAS."""

    def inputs() -> list[Array]:
        rng = np.random.default_rng(7)
        return [rng.integers(-1000, 1000, (n, n), dtype="i8") for _ in range(2)]

    contestants = everyone(lambda xp, x, y: x @ y)
    return Case(f"matmul int64, {n}", peers(numpy=20, torch=1), inputs, contestants, tolerance=0)


def sorting(name: str, kind: str, n: int) -> Case:
    """A stable sort, or the order that it gives. Integers are of the whole range."""

    def inputs() -> list[Array]:
        rng = np.random.default_rng(7)
        if kind == "f4":
            return [rng.standard_normal(n, "f4")]
        return [rng.integers(-(1 << 63), (1 << 63) - 1, n, endpoint=True)]

    contestants = {
        "dovetail": ours(getattr(dt, name)),
        "numpy": by_numpy(lambda x: getattr(np, name)(x, kind="stable")),
        "torch": by_torch(lambda torch, x: torch.sort(x, stable=True)[name == "argsort"]),
        "jax": by_jax(lambda jnp, x: getattr(jnp, name)(x, stable=True)),
    }
    title = f"{name} {np.dtype(kind).name}, {count_text(n)}"
    return Case(title, peers(numpy=1), inputs, contestants, tolerance=0)


def distinct(inverse: bool, below: int, n: int) -> Case:
    """The distinct ones of n integers from 0 to `below`, in order; or which one each is."""

    def inputs() -> list[Array]:
        return [np.random.default_rng(7).integers(0, below, n)]

    def recorded(x: Foreign) -> Foreign:
        return dt.unique_inverse(x).inverse_indices if inverse else dt.unique_values(x)

    def by_sorting(x: Array) -> Foreign:
        return np.unique(x, return_inverse=True)[1] if inverse else np.unique(x)

    name = f"{'inverse of unique' if inverse else 'unique'}, {count_text(n)} below"
    contestants = {"dovetail": ours(recorded), "numpy": by_numpy(by_sorting)}
    return Case(f"{name} {count_text(below)}", peers(numpy=1), inputs, contestants, tolerance=0)


def chain_backward(n: int) -> Case:
    """The gradients of the chain of seven with respect to both inputs; the forward pass is done."""

    def by_hand(x: Array, y: Array, g: Array) -> Work:
        def work() -> Array:
            t, d = np.tanh(x * 2 + y), 1 + x * x
            inner = g * x * (1 - t * t)
            return np.stack([g * t + inner * 2 + g * y / d / d * 2 * x, inner - g / d])

        return work

    def recorded(x: Array, y: Array, g: Array) -> Work:
        xs = [dt.asarray(a).requires_grad_() for a in (x, y)]
        out, incoming = chain_of_seven(dt, *xs), dt.asarray(g)
        dt.evaluate(out, incoming)

        def work() -> _Pair:
            found = dt.grad(out, xs, incoming, retain_graph=True)
            dt.evaluate(*found)
            return _Pair(found)

        return work

    def eager(x: Array, y: Array, g: Array) -> Work:
        torch = peer("torch")
        xs = [torch.from_numpy(a).requires_grad_() for a in (x, y)]
        out, incoming = chain_of_seven(torch, *xs), torch.from_numpy(g)
        return lambda: _Pair(torch.autograd.grad(out, xs, incoming, retain_graph=True))

    return Case(
        f"backward of chain of 7, {count_text(n)}", peers(torch=3), numbers(n, count=3),
        {"dovetail": recorded, "numpy": by_hand, "torch": eager}, 24 * n,
    )  # fmt: skip


class _Pair(tuple[Foreign, ...]):
    """Two results, which become one array only for whoever checks them."""

    __slots__ = ()

    def __array__(self, dtype: Foreign = None, copy: Foreign = None) -> Array:
        return np.stack([np.asarray(x) for x in self])


LAYERS = (784, 512, 512, 10)
RATE, FIRST, SECOND, TINY = 1e-3, 0.9, 0.999, 1e-8  # Adam's


def training(batch: int) -> Case:
    """A training step of a network of three layers: forward, backward, Adam. Gives the loss."""

    def inputs() -> list[Array]:
        rng = np.random.default_rng(7)
        pixels = rng.normal(size=(batch, LAYERS[0])).astype("f4")
        matrices = [(rng.normal(size=s) * (2 / s[0]) ** 0.5).astype("f4") for s in pairwise(LAYERS)]
        return [pixels, rng.integers(0, LAYERS[-1], batch), *matrices]

    return Case(
        f"training step, batch {batch}", peers(torch=1.0 if batch > 64 else 0.7), inputs,
        {"dovetail": _train, "numpy": _train_by_hand, "torch": _train_by_torch}, tolerance=1e-3,
    )  # fmt: skip


def _train(pixels: Array, labels: Array, *matrices: Array) -> Work:
    x, y = dt.asarray(pixels), dt.asarray(labels).reshape(-1, 1)
    starts = [a for m in matrices for a in (m, np.zeros(m.shape[1], "f4"))]
    w = [dt.asarray(a).requires_grad_() for a in starts]
    moments = [(dt.zeros_like(t), dt.zeros_like(t)) for t in w]
    steps = 0

    def work() -> Foreign:
        nonlocal steps
        h = dt.relu(x @ w[0] + w[1])
        h = dt.relu(h @ w[2] + w[3])
        scores = dt.log_softmax(h @ w[4] + w[5])
        loss = -dt.mean(dt.take_along_axis(scores, y, axis=1))
        loss.backward()
        steps += 1
        rate, spread = RATE / (1 - FIRST**steps), (1 - SECOND**steps) ** -0.5
        with dt.no_grad():
            for i, (t, (m, v)) in enumerate(zip(w, moments, strict=True)):
                g = t.grad
                assert g is not None
                m = m * FIRST + g * (1 - FIRST)
                v = v * SECOND + g * g * (1 - SECOND)
                t -= m * rate / (dt.sqrt(v) * spread + TINY)
                t.grad, moments[i] = None, (m, v)
        return loss.detach()

    return work


def _train_by_torch(pixels: Array, labels: Array, *matrices: Array) -> Work:
    torch = peer("torch")
    x, y = torch.from_numpy(pixels), torch.from_numpy(labels)
    starts = [a for m in matrices for a in (m, np.zeros(m.shape[1], "f4"))]
    w = [torch.tensor(a, requires_grad=True) for a in starts]
    adam = torch.optim.Adam(w, RATE)

    def work() -> Foreign:
        adam.zero_grad()
        h = torch.relu(x @ w[0] + w[1])
        h = torch.relu(h @ w[2] + w[3])
        loss = torch.nn.functional.cross_entropy(h @ w[4] + w[5], y)
        loss.backward()
        adam.step()
        return loss.detach()

    return work


def _train_by_hand(pixels: Array, labels: Array, *matrices: Array) -> Work:
    """The gradients written out."""
    w = [a.copy() for m in matrices for a in (m, np.zeros(m.shape[1], "f4"))]
    moments = [(np.zeros_like(a), np.zeros_like(a)) for a in w]
    rows, steps = np.arange(len(labels)), 0

    def gradients() -> tuple[Foreign, list[Array]]:
        h = np.maximum(pixels @ w[0] + w[1], 0)
        k = np.maximum(h @ w[2] + w[3], 0)
        scores = k @ w[4] + w[5]
        scores -= scores.max(1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(1, keepdims=True))
        loss = -scores[rows, labels].mean()
        d = np.exp(scores)
        d[rows, labels] -= 1
        d /= np.float32(len(rows))
        found = [d.sum(0), k.T @ d]
        d = (d @ w[4].T) * (k > 0)
        found += [d.sum(0), h.T @ d]
        d = (d @ w[2].T) * (h > 0)
        return loss, [*found, d.sum(0), pixels.T @ d][::-1]

    def work() -> Foreign:
        nonlocal steps
        loss, found = gradients()
        steps += 1
        rate, spread = RATE / (1 - FIRST**steps), (1 - SECOND**steps) ** -0.5
        for a, g, (m, v) in zip(w, found, moments, strict=True):
            m += (1 - FIRST) * (g - m)
            v += (1 - SECOND) * (g * g - v)
            a -= rate * m / (np.sqrt(v) * spread + TINY)
        return loss

    return work


def all_cases(shrink: int = 1) -> list[Case]:
    """Every timed case. `shrink` > 1 divides the sizes, to try the machinery out."""
    big, side = 16 * M // shrink, max(4096 // shrink, 8)
    return [
        *(chain(n) for n in (big, M // shrink, 64 * K // shrink, K)),
        add(big),
        *(elementwise(name, M // shrink) for name in ("exp", "log", "sin", "tanh")),
        total(big),
        *(sums(axis, side) for axis in (0, 1)),
        softmax(max(16384 // shrink, 4), 1024),
        transposed_copy(side),
        matmul(max(2048 // shrink, 8)),
        integer_matmul(max(512 // shrink, 8)),
        *(sorting(f, kind, big) for f in ("sort", "argsort") for kind in ("f4", "i8")),
        *(distinct(inverse, M // shrink, big) for inverse in (False, True)),
        chain_backward(big),
        *(training(batch) for batch in (256, 8)),
    ]


def few_cases(shrink: int = 1) -> list[Case]:
    """Return the cases of `run.py --few`."""
    rest = ("log", "sin", "tanh", "sum axis", "sort int64", "argsort", "unique", "inverse")
    return [c for c in all_cases(shrink) if not c.name.startswith(rest)]


def count_text(n: int) -> str:
    """16777216 -> "16 M"."""
    for unit, name in ((M, "M"), (K, "K")):
        if n >= unit and n % unit == 0:
            return f"{n // unit} {name}"
    return str(n)
